/* cmd_wait.c - waits until objects are as they shall be. */
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/client/cli_kinds.h"
#include "cli/client/gather.h"
#include "cli/terminal/jsonpath.h"
#include "resource/resource.h"
#include "json/json.h"

/* How often the server is asked, and for how long unless told otherwise. */
#define LOOK_MS 250u
#define WAIT_DEFAULT_MS 30000u
#define TEXT_BYTES_MAX (1u << 20)

/* What is waited for: an object's end, a condition, or a value. */
struct goal {
    bool is_gone;
    dv_str condition; /* its type */
    dv_str template;
    dv_str value; /* empty, with a template: any */
};

/* "delete", "condition=TYPE[=STATUS]", "jsonpath=TEMPLATE[=VALUE]" */
static bool read_goal(dv_str text, struct goal *goal, struct dv_err *err)
{
    const dv_str condition = DV_STR("condition=");
    const dv_str jsonpath = DV_STR("jsonpath=");
    size_t end;

    *goal = (struct goal){.value = DV_STR("True")};
    goal->is_gone = dv_str_eq(text, DV_STR("delete"));
    if (dv_str_starts_with(text, condition)) {
        text = dv_str_slice(text, condition.n, text.n);
        end = dv_str_find_char(text, '=');
        goal->condition = dv_str_slice(text, 0, end);
        if (end < text.n)
            goal->value = dv_str_slice(text, end + 1, text.n);
    } else if (dv_str_starts_with(text, jsonpath)) {
        text = dv_str_slice(text, jsonpath.n, text.n);
        end = dv_str_find(text, DV_STR("}="));
        goal->template = end < text.n ? dv_str_slice(text, 0, end + 1) : text;
        goal->value = end < text.n ? dv_str_slice(text, end + 2, text.n) : DV_STR("");
    }
    if (goal->is_gone || goal->condition.n > 0 || goal->template.n > 0)
        return true;
    return dv_fail(err, DV_INVALID_ARGUMENT,
                   "--for takes delete, condition=TYPE[=STATUS] or jsonpath={PATH}[=VALUE]");
}

static bool has_condition(const struct goal *goal, const struct dv_json *doc)
{
    const struct dv_json *conditions =
        dv_json_get(dv_json_get(doc, DV_STR("status")), DV_STR("conditions"));

    for (const struct dv_json *one = dv_json_first(conditions); one; one = dv_json_next(one))
        if (dv_str_eq_nocase(dv_cli_text(one, "", "type"), goal->condition))
            return dv_str_eq_nocase(dv_cli_text(one, "", "status"), goal->value);
    return false;
}

static bool is_met(const struct goal *goal, const struct dv_json *doc, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text = {0};
    struct dv_err err;

    if (goal->is_gone)
        return false; /* it is there */
    if (goal->condition.n > 0)
        return has_condition(goal, doc);
    dv_buf_init(&text, TEXT_BYTES_MAX);
    return dv_jsonpath_print(goal->template, doc, arena, &text, &err) &&
           (goal->value.n > 0 ? dv_str_eq(dv_buf_str(&text), goal->value) : text.n > 0);
}

static dv_str name_of(const struct dv_cli_found *found, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s/%.*s", DV_FMT(found->kind->singular),
                         DV_FMT(dv_cli_text(found->doc, "metadata", "name")));
}

/* Looks once. *n_left: how many objects are not as they shall be, *first: one of them. */
static bool look(struct dv_cli_api *api, const struct dv_cli_targets *targets,
                 const struct goal *goal, size_t *n_left, dv_str *first, bool *has_failed)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_cli_gathered gathered = {0};
    bool ok = dv_cli_gather(api, targets, arena, &gathered);

    *n_left = 0;
    for (size_t i = 0; ok && i < gathered.n; i++)
        if (!is_met(goal, gathered.v[i].doc, arena) && (*n_left)++ == 0)
            *first = dv_str_copy(name_of(&gathered.v[i], arena), api->cli->arena);
    *has_failed = gathered.has_failed;
    dv_arena_free(arena);
    return ok;
}

static enum dv_exit wait(struct dv_cli_api *api, const struct dv_cli_targets *targets,
                         const struct goal *goal)
{
    struct dv_cli *cli = api->cli;
    struct dv_clock *clock = dv_clock_real();
    uint64_t end_ms = dv_clock_now_ms(clock) + (cli->gone_ms > 0 ? cli->gone_ms : WAIT_DEFAULT_MS);
    dv_str first = DV_STR("");
    bool has_failed;
    size_t n_left;

    cli->ignores_absent = goal->is_gone;
    for (;;) {
        if (!look(api, targets, goal, &n_left, &first, &has_failed))
            return api->exit;
        if (has_failed)
            return DV_EXIT_FAILED; /* it is told */
        if (n_left == 0)
            break;
        if (dv_clock_now_ms(clock) >= end_ms)
            return dv_cli_complain("%.*s%s is not so within the time; davit explain and describe "
                                   "may say why",
                                   DV_FMT(first), n_left > 1 ? " and others" : "");
        dv_cli_api_sleep(api, LOOK_MS);
    }
    (void)puts(goal->is_gone ? "gone" : "condition met");
    return DV_EXIT_OK;
}

enum dv_exit dv_cmd_wait(struct dv_cli *cli)
{
    struct dv_cli_targets targets;
    struct dv_cli_api api;
    struct goal goal;
    struct dv_err err;
    enum dv_exit exit;

    if (!read_goal(cli->goal, &goal, &err) || !dv_cli_gather_parse(cli, &targets, &err))
        return dv_cli_complain_usage("wait", "%s", err.msg);
    exit = dv_cli_api_open(cli, &api);
    if (exit != DV_EXIT_OK)
        return exit;
    exit = wait(&api, &targets, &goal);
    dv_cli_api_close(&api);
    return exit;
}

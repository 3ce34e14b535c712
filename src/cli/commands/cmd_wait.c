/* cmd_wait.c - waits until objects are as they shall be. */
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/client/cli_kinds.h"
#include "cli/client/gather.h"
#include "cli/terminal/progress.h"
#include "resource/resource.h"
#include "json/json.h"
#include "json/jsonpath.h"

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

/* "{.a.b}", or as kubectl takes it too, ".a.b" and "a.b"; a "=VALUE" may follow. Without
 * braces it would be plain text, which every object prints. */
static bool read_template(dv_str text, struct goal *goal, struct dv_arena *arena,
                          struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf unused = {0};
    bool has_braces = dv_str_starts_with(text, DV_STR("{"));
    size_t end = has_braces ? dv_str_find(text, DV_STR("}=")) + 1 : dv_str_find_char(text, '=');
    dv_str path = dv_str_slice(text, 0, end);

    if (end + 1 == text.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--for %.*s says no value behind =", DV_FMT(text));
    goal->value = dv_str_slice(text, end + 1, text.n);
    if (!has_braces && path.n > 0)
        path = dv_str_printf(arena, "{%s%.*s}", path.p[0] == '.' ? "" : ".", DV_FMT(path));
    goal->template = path;
    dv_buf_init(&unused, TEXT_BYTES_MAX);
    return dv_jsonpath_print(path, dv_json_new_null(arena), arena, &unused, err) ||
           dv_wrap(err, "--for");
}

/* "delete", "condition=TYPE[=STATUS]", "jsonpath=TEMPLATE[=VALUE]" */
static bool read_goal(dv_str text, struct goal *goal, struct dv_arena *arena, struct dv_err *err)
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
        if (!read_template(dv_str_slice(text, jsonpath.n, text.n), goal, arena, err))
            return false;
    }
    if (goal->is_gone || goal->condition.n > 0 || goal->template.n > 0)
        return true;
    return dv_fail(err, DV_INVALID_ARGUMENT,
                   "--for takes delete, condition=TYPE[=STATUS] or jsonpath={PATH}[=VALUE]");
}

/* What has not come: "condition Ready is not True". */
static const char *goal_text(const struct goal *goal, struct dv_arena *arena)
{
    dv_str text =
        goal->condition.n > 0 ? dv_str_printf(arena, "condition %.*s is not %.*s",
                                              DV_FMT(goal->condition), DV_FMT(goal->value))
        : goal->is_gone       ? DV_STR("it is not gone")
        : goal->value.n > 0
            ? dv_str_printf(arena, "%.*s is not %.*s", DV_FMT(goal->template), DV_FMT(goal->value))
            : dv_str_printf(arena, "there is no %.*s", DV_FMT(goal->template));

    return dv_cli_plain(text, arena);
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

/* What it is at, for the line of progress: of a pod why its first container that does not run
 * waits, else its phase. Empty: it does not say. */
static dv_str state_of(const struct dv_json *doc)
{
    const struct dv_json *status = dv_json_get(doc, DV_STR("status"));
    const struct dv_json *all = dv_json_get(status, DV_STR("containerStatuses"));

    for (const struct dv_json *one = dv_json_first(all); one; one = dv_json_next(one)) {
        dv_str reason = dv_cli_text(dv_json_get(one, DV_STR("state")), "waiting", "reason");

        if (reason.n > 0)
            return reason;
    }
    return dv_cli_text(doc, "status", "phase");
}

/* What one look has found. */
struct seen {
    size_t n;
    size_t n_left; /* that are not as they shall be */
    dv_str first;  /* one of them */
    dv_str state;  /* what it is at */
    dv_str detail; /* both, for the line of progress */
    bool has_failed;
};

static bool look(struct dv_cli_api *api, const struct dv_cli_targets *targets,
                 const struct goal *goal, struct seen *seen)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_cli_gathered gathered = {0};
    bool ok = dv_cli_gather(api, targets, arena, &gathered);
    dv_str first = DV_STR("");
    dv_str state = DV_STR("");

    seen->n = gathered.n;
    seen->n_left = 0;
    for (size_t i = 0; ok && i < gathered.n; i++)
        if (!is_met(goal, gathered.v[i].doc, arena) && seen->n_left++ == 0) {
            first = name_of(&gathered.v[i], arena);
            state = state_of(gathered.v[i].doc);
        }
    if (!dv_str_eq(seen->first, first) || !dv_str_eq(seen->state, state)) {
        seen->first = dv_str_copy(first, api->cli->arena);
        seen->state = dv_str_copy(state, api->cli->arena);
        seen->detail = dv_str_printf(api->cli->arena, "%.*s%s%.*s", DV_FMT(first),
                                     state.n > 0 ? ": " : "", DV_FMT(state));
    }
    seen->has_failed = gathered.has_failed;
    dv_arena_free(arena);
    return ok;
}

/* Looks again and again. False: a look has failed. */
static bool look_until(struct dv_cli_api *api, const struct dv_cli_targets *targets,
                       const struct goal *goal, uint64_t end_ms, struct seen *seen)
{
    struct dv_progress progress = {
        .is_on = true, .is_short = true, .is_terminal = isatty(STDERR_FILENO) == 1};
    bool ok;

    while ((ok = look(api, targets, goal, seen)) && !seen->has_failed && seen->n_left > 0 &&
           dv_clock_now_ms(dv_clock_real()) < end_ms) {
        if (!progress.what) /* what is so at once needs no word */
            dv_progress_tell_begin(&progress, dv_str_to_c(api->cli->goal, api->cli->arena));
        progress.detail = seen->detail;
        dv_progress_tell_count(&progress, seen->n - seen->n_left, seen->n);
        dv_cli_api_sleep(api, LOOK_MS);
    }
    dv_progress_tell_wipe(&progress);
    return ok;
}

static enum dv_exit wait(struct dv_cli_api *api, const struct dv_cli_targets *targets,
                         const struct goal *goal)
{
    struct dv_cli *cli = api->cli;
    struct seen seen = {0};

    cli->ignores_absent = goal->is_gone;
    if (!look_until(api, targets, goal,
                    dv_clock_now_ms(dv_clock_real()) +
                        (cli->gone_ms > 0 ? cli->gone_ms : WAIT_DEFAULT_MS),
                    &seen))
        return api->exit;
    if (seen.has_failed)
        return DV_EXIT_FAILED; /* it is told */
    if (seen.n_left > 0)
        return dv_cli_complain("%.*s%s: %s within the time; davit explain and describe may say why",
                               DV_FMT(seen.first), seen.n_left > 1 ? " and others" : "",
                               goal_text(goal, cli->arena));
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

    if (!read_goal(cli->goal, &goal, cli->arena, &err) || !dv_cli_gather_parse(cli, &targets, &err))
        return dv_cli_complain_usage("wait", "%s", err.msg);
    exit = dv_cli_api_open(cli, &api);
    if (exit != DV_EXIT_OK)
        return exit;
    exit = wait(&api, &targets, &goal);
    dv_cli_api_close(&api);
    return exit;
}

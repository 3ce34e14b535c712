/* cmd_get.c - objects of the API as tables, and whole. */
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/client/cli_kinds.h"
#include "cli/client/follow.h"
#include "cli/client/gather.h"
#include "cli/describe/cli_rows.h"
#include "resource/resource.h"
#include "json/json.h"

/* The style of kubectl, so that programs that read its output read ours. */
static const struct dv_json_style style = {.indent = 4, .sort_keys = true};

static void hide_managed_fields(const struct dv_cli *cli, struct dv_json *doc)
{
    struct dv_json *managed =
        dv_json_get(dv_json_get(doc, DV_STR("metadata")), DV_STR("managedFields"));

    if (managed && !cli->shows_managed_fields)
        dv_json_remove(managed);
}

static void print_whole(struct dv_cli *cli, const struct dv_cli_targets *targets,
                        const struct dv_cli_gathered *gathered)
{
    struct dv_json *list = dv_json_new_object(cli->arena);
    struct dv_json *items = dv_json_new_array(cli->arena);
    struct dv_json *meta = dv_json_new_object(cli->arena);

    for (size_t i = 0; i < gathered->n; i++) {
        hide_managed_fields(cli, gathered->v[i].doc);
        dv_json_append(items, dv_json_copy(gathered->v[i].doc, cli->arena));
    }
    if (targets->has_names && targets->n == 1) {
        if (gathered->n == 1)
            dv_cli_print_json(cli, gathered->v[0].doc, &style);
        return;
    }
    dv_json_set(meta, DV_STR("resourceVersion"), dv_json_new_str(DV_STR(""), cli->arena),
                cli->arena);
    dv_json_set(list, DV_STR("apiVersion"), dv_json_new_str(DV_STR("v1"), cli->arena), cli->arena);
    dv_json_set(list, DV_STR("items"), items, cli->arena);
    dv_json_set(list, DV_STR("kind"), dv_json_new_str(DV_STR("List"), cli->arena), cli->arena);
    dv_json_set(list, DV_STR("metadata"), meta, cli->arena);
    dv_cli_print_json(cli, list, &style);
}

static void print_names(const struct dv_cli_gathered *gathered)
{
    for (size_t i = 0; i < gathered->n; i++)
        (void)printf("%.*s/%.*s\n", DV_FMT(gathered->v[i].kind->singular),
                     DV_FMT(dv_cli_text(gathered->v[i].doc, "metadata", "name")));
}

/* Prints one table for each kind, with an empty line between. */
static enum dv_exit print_tables(struct dv_cli *cli, const struct dv_cli_targets *targets,
                                 const struct dv_cli_gathered *gathered)
{
    struct dv_time now = dv_cli_now();
    enum dv_exit exit = DV_EXIT_OK;
    size_t i = 0;

    while (i < gathered->n) {
        const struct dv_kind *kind = gathered->v[i].kind;
        struct dv_cli_rows rows;

        if (i > 0)
            (void)puts("");
        dv_cli_rows_init(&rows, cli, kind, targets->are_of_kinds, cli->arena);
        for (; i < gathered->n && gathered->v[i].kind == kind; i++) {
            struct dv_object object;
            struct dv_err err;

            if (dv_cli_object_decode(kind, gathered->v[i].doc, cli->arena, &object, &err))
                dv_cli_rows_add(&rows, &object, now, cli->arena);
            else
                exit = dv_cli_complain("%s", err.msg);
        }
        dv_table_print(&rows.table, cli->has_headers);
    }
    return exit;
}

static enum dv_exit print_all(struct dv_cli_api *api, const struct dv_cli_targets *targets,
                              const struct dv_cli_gathered *gathered)
{
    struct dv_cli *cli = api->cli;
    enum dv_exit exit = DV_EXIT_OK;

    if (!dv_cli_is_table(cli))
        print_whole(cli, targets, gathered);
    else if (gathered->n == 0 && !gathered->has_failed)
        dv_cli_gather_tell_none(api, targets);
    else if (cli->output == DV_OUTPUT_NAME)
        print_names(gathered);
    else
        exit = print_tables(cli, targets, gathered);
    return gathered->has_failed ? DV_EXIT_FAILED : exit;
}

/* ---- watching ---- */

struct watch {
    struct dv_cli *cli;
    struct dv_cli_rows rows;
    bool has_printed;
};

static void print_change(void *ctx, const struct dv_object *object, struct dv_json *doc,
                         struct dv_arena *arena)
{
    struct watch *watch = ctx;
    struct dv_cli *cli = watch->cli;

    switch (cli->output) {
    case DV_OUTPUT_YAML:
        if (watch->has_printed)
            (void)puts("---");
        hide_managed_fields(cli, doc);
        dv_cli_print_json(cli, doc, &style);
        break;
    case DV_OUTPUT_JSON:
    case DV_OUTPUT_JSONPATH:
        hide_managed_fields(cli, doc);
        dv_cli_print_json(cli, doc, &style);
        break;
    case DV_OUTPUT_NAME:
        (void)printf("%.*s/%.*s\n", DV_FMT(object->kind->singular), DV_FMT(object->meta->name));
        break;
    case DV_OUTPUT_TABLE:
    case DV_OUTPUT_WIDE:
        dv_cli_rows_add(&watch->rows, object, dv_cli_now(), arena);
        return; /* until the end of what came together */
    }
    watch->has_printed = true;
}

static bool print_rows(void *ctx)
{
    struct watch *watch = ctx;
    bool has_headers = !watch->has_printed && watch->cli->has_headers;

    if (watch->rows.table.n_cells > watch->rows.table.n_columns) {
        dv_table_print(&watch->rows.table, has_headers);
        dv_table_restart(&watch->rows.table);
        watch->has_printed = true;
    }
    return fflush(stdout) == 0 && !ferror(stdout); /* a watch is read as it comes */
}

static enum dv_exit watch_all(struct dv_cli_api *api, const struct dv_cli_targets *targets)
{
    struct watch watch = {.cli = api->cli};
    const struct dv_cli_follow follow = {
        .target = targets->v[0],
        .changed = print_change,
        .pause = print_rows,
        .ctx = &watch,
    };

    dv_cli_rows_init(&watch.rows, api->cli, targets->v[0].kind, false, api->cli->arena);
    return dv_cli_follow(api, &follow);
}

static enum dv_exit run(struct dv_cli *cli, const char *verb)
{
    struct dv_cli_targets targets;
    struct dv_cli_gathered gathered;
    struct dv_cli_api api;
    struct dv_err err;
    enum dv_exit exit;

    if (!dv_cli_gather_parse(cli, &targets, &err))
        return dv_cli_complain_usage(verb, "%s", err.msg);
    if (cli->watches && targets.n != 1)
        return dv_cli_complain_usage(verb, "one kind, or one object, can be watched at a time");
    exit = dv_cli_api_open(cli, &api);
    if (exit != DV_EXIT_OK)
        return exit;
    if (cli->watches)
        exit = watch_all(&api, &targets);
    else if (dv_cli_gather(&api, &targets, cli->arena, &gathered))
        exit = print_all(&api, &targets, &gathered);
    else
        exit = api.exit;
    dv_cli_api_close(&api);
    return exit;
}

enum dv_exit dv_cmd_get(struct dv_cli *cli)
{
    return run(cli, "get");
}

enum dv_exit dv_cmd_watch(struct dv_cli *cli)
{
    cli->watches = true;
    return run(cli, "watch");
}

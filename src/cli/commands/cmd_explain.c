/* cmd_explain.c - why a claim is not allocated: on the server's objects, or on those of files. */
#include <stdio.h>

#include "alloc/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/client/cli_kinds.h"
#include "cli/explain/cli_explain.h"
#include "cli/explain/world.h"
#include "resource/resource.h"
#include "json/json.h"

#define OUTPUT_BYTES_MAX (256u << 20)

static const struct dv_json_style style = {.indent = 4};

/* Reads the target. NULL: `err` says what is wrong. */
static const struct dv_cli_target *read_target(const struct dv_cli *cli, struct dv_err *err)
{
    struct dv_cli_targets targets;
    enum dv_kind_id kind;

    if (!dv_cli_targets_parse(cli->words, cli->n_words, cli->arena, &targets, err))
        return NULL;
    if (!targets.has_names || targets.n != 1) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "name one claim or one pod: claim NAME");
        return NULL;
    }
    kind = targets.v[0].kind->id;
    if (kind == DV_KIND_CLAIM || kind == DV_KIND_POD)
        return &targets.v[0];
    (void)dv_fail(err, DV_INVALID_ARGUMENT, "claims and pods can be explained, a %.*s cannot",
                  DV_FMT(targets.v[0].kind->singular));
    return NULL;
}

static enum dv_exit explain(struct dv_cli *cli, struct dv_cli_world *world,
                            const struct dv_cli_target *target)
{
    struct dv_cli_nodes nodes = {0};
    struct dv_cli_wish wish;
    struct dv_cli_explain question = {
        .wish = &wish,
        .nodes = &nodes,
        .arena = cli->arena,
        .is_all = cli->is_all,
        .has_headers = cli->has_headers,
    };
    struct dv_json *doc;
    struct dv_buf buf;
    struct dv_err err;
    bool ok;

    if (!dv_cli_wish_find(world, target->kind->id, world->namespace, target->name, &wish, &err) ||
        (wish.pending.n > 0 && !wish.is_hopeless &&
         !dv_cli_world_nodes(world, cli->node.n ? cli->node : wish.node, &nodes, &err)))
        return dv_cli_complain("%s", err.msg);
    question.inventory = dv_cli_world_inventory(world);
    if (cli->output != DV_OUTPUT_TABLE) {
        ok = dv_cli_explain_data(&question, &doc);
        dv_cli_print_json(cli, doc, &style);
    } else {
        dv_buf_init(&buf, OUTPUT_BYTES_MAX);
        ok = dv_cli_explain_print(&question, &buf);
        (void)fputs(dv_buf_c(&buf), stdout);
        dv_buf_fini(&buf);
    }
    dv_inventory_free(question.inventory);
    return ok ? DV_EXIT_OK : DV_EXIT_REFUSED;
}

static enum dv_exit explain_files(struct dv_cli *cli, const struct dv_cli_target *target)
{
    struct dv_cli_world world;
    struct dv_err err;
    enum dv_exit exit = DV_EXIT_OK;

    dv_cli_world_init(&world, cli->namespace.n ? cli->namespace : DV_STR("default"), cli->arena);
    for (size_t i = 0; exit == DV_EXIT_OK && i < cli->n_files; i++)
        if (!dv_cli_world_read(&world, cli->files[i], &err))
            exit = dv_cli_complain("%s", err.msg);
    if (exit == DV_EXIT_OK)
        exit = explain(cli, &world, target);
    dv_cli_world_fini(&world);
    return exit;
}

static enum dv_exit explain_server(struct dv_cli *cli, const struct dv_cli_target *target)
{
    struct dv_cli_world world;
    struct dv_cli_api api;
    enum dv_exit exit = dv_cli_api_open(cli, &api);

    if (exit != DV_EXIT_OK)
        return exit;
    dv_cli_world_init(&world, api.namespace, cli->arena);
    exit = dv_cli_world_fetch(&world, &api,
                              target->kind->id == DV_KIND_POD ? target->name : DV_STR_NONE)
               ? explain(cli, &world, target)
               : api.exit;
    dv_cli_world_fini(&world);
    dv_cli_api_close(&api);
    return exit;
}

enum dv_exit dv_cmd_explain(struct dv_cli *cli)
{
    struct dv_err err;
    const struct dv_cli_target *target = read_target(cli, &err);

    if (!target)
        return dv_cli_complain_usage("explain", "%s", err.msg);
    return cli->n_files > 0 ? explain_files(cli, target) : explain_server(cli, target);
}

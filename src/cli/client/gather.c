#include "cli/client/gather.h"

#include <stdio.h>

#include "base/err.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/client/cli_kinds.h"
#include "resource/resource.h"

bool dv_cli_gather_parse(const struct dv_cli *cli, struct dv_cli_targets *targets,
                         struct dv_err *err)
{
    if (!dv_cli_targets_parse(cli->words, cli->n_words, cli->arena, targets, err))
        return false;
    if (targets->has_names && (cli->labels.n || cli->fields.n))
        return dv_fail(err, DV_INVALID_ARGUMENT, "names and selectors exclude each other");
    if (cli->is_everywhere && cli->namespace.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "-n and -A exclude each other");
    for (size_t i = 0; i < targets->n; i++)
        if (targets->has_names && cli->is_everywhere && targets->v[i].kind->is_namespaced)
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "a name means an object of one namespace: give -n, not -A");
    return true;
}

dv_str dv_cli_gather_namespace(const struct dv_cli_api *api, const struct dv_kind *kind)
{
    return kind->is_namespaced && !api->cli->is_everywhere ? api->namespace : DV_STR_NONE;
}

static bool gather_all(struct dv_cli_api *api, const struct dv_kind *kind, struct dv_arena *arena,
                       struct dv_cli_gathered *gathered)
{
    struct dv_cli_list list = {
        .kind = kind,
        .namespace = dv_cli_gather_namespace(api, kind),
        .labels = api->cli->labels,
        .fields = api->cli->fields,
    };

    if (!dv_cli_api_list(api, &list, arena))
        return false;
    if (list.failure) {
        gathered->has_failed = true;
        (void)dv_cli_api_complain(api, list.failure, kind->plural);
        return true;
    }
    for (size_t i = 0; i < list.n_items; i++)
        *dv_vec_add_in(gathered, arena) = (struct dv_cli_found){kind, list.items[i]};
    return true;
}

static bool gather_one(struct dv_cli_api *api, const struct dv_cli_target *target,
                       struct dv_arena *arena, struct dv_cli_gathered *gathered)
{
    const struct dv_cli_ask ask = {
        .method = DV_STR("GET"),
        .kind = target->kind,
        .namespace = dv_cli_gather_namespace(api, target->kind),
        .name = target->name,
    };
    struct dv_cli_answer answer;

    if (!dv_cli_api_ask(api, &ask, arena, &answer))
        return false;
    if (answer.failure) {
        if (answer.failure->code == 404 && api->cli->ignores_absent)
            return true;
        gathered->has_failed = true;
        (void)dv_cli_api_complain(api, answer.failure, DV_STR_NONE);
        return true;
    }
    *dv_vec_add_in(gathered, arena) = (struct dv_cli_found){target->kind, answer.doc};
    return true;
}

bool dv_cli_gather(struct dv_cli_api *api, const struct dv_cli_targets *targets,
                   struct dv_arena *arena, struct dv_cli_gathered *gathered)
{
    *gathered = (struct dv_cli_gathered){0};
    for (size_t i = 0; i < targets->n; i++) {
        const struct dv_cli_target *target = &targets->v[i];
        bool ok = target->name.n ? gather_one(api, target, arena, gathered)
                                 : gather_all(api, target->kind, arena, gathered);

        if (!ok)
            return false;
    }
    return true;
}

void dv_cli_gather_tell_none(const struct dv_cli_api *api, const struct dv_cli_targets *targets)
{
    bool is_namespaced = false;

    for (size_t i = 0; i < targets->n; i++)
        is_namespaced |= targets->v[i].kind->is_namespaced;
    if (is_namespaced && !api->cli->is_everywhere)
        (void)fprintf(stderr, "No resources found in %.*s namespace.\n", DV_FMT(api->namespace));
    else
        (void)fputs("No resources found\n", stderr);
}

/* cmd_claim.c - the claims that this node has, and giving one up. */
#include <stdio.h>

#include "base/arena.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/describe/cli_node_claims.h"
#include "proto/davit_node_v1.pb-c.h"

static const char *pods_of(const NodeV1__Claim *claim, struct dv_arena *arena)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < claim->n_pods; i++) {
        const NodeV1__PodRef *pod = claim->pods[i];

        text = dv_str_printf(arena, "%.*s%s%s", DV_FMT(text), i ? "," : "",
                             pod->name[0] ? pod->name : pod->uid);
    }
    return dv_cli_plain(text, arena);
}

static const char *devices_of(const NodeV1__Claim *claim, struct dv_arena *arena)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < claim->n_drivers; i++)
        for (size_t k = 0; k < claim->drivers[i]->n_devices; k++)
            text = dv_str_printf(arena, "%.*s%s%s/%s/%s", DV_FMT(text), text.n ? "," : "",
                                 claim->drivers[i]->name, claim->drivers[i]->devices[k]->pool,
                                 claim->drivers[i]->devices[k]->device);
    return dv_cli_plain(text, arena);
}

static enum dv_exit list(struct dv_cli *cli)
{
    static const char *const headers[] = {"NAMESPACE", "CLAIM", "STATE", "PODS", "DEVICES"};
    NodeV1__ListClaimsRequest request = NODE_V1__LIST_CLAIMS_REQUEST__INIT;
    const NodeV1__ListClaimsResponse *claims;
    struct dv_table table;
    enum dv_exit exit;

    claims = dv_cli_call(cli, "/davit.node.v1.Node/ListClaims", &request.base,
                         &node_v1__list_claims_response__descriptor, &exit);
    if (!claims)
        return exit;
    if (!dv_cli_is_table(cli)) {
        dv_cli_print_message(cli, &claims->base);
        return DV_EXIT_OK;
    }
    dv_cli_table_init(cli, &table, headers, DV_COUNT(headers));
    for (size_t i = 0; i < claims->n_claims; i++) {
        const NodeV1__Claim *claim = claims->claims[i];

        dv_table_add(&table, dv_cli_plain(dv_str_from_c(claim->namespace_), cli->arena));
        dv_table_add(&table, dv_cli_plain(dv_str_from_c(claim->name), cli->arena));
        dv_table_add(&table, dv_node_claim_state(claim, cli->arena));
        dv_table_add(&table, pods_of(claim, cli->arena));
        dv_table_add(&table, devices_of(claim, cli->arena));
    }
    dv_cli_print_table(cli, &table, 2, "no claims on this node");
    return DV_EXIT_OK;
}

static enum dv_exit release(struct dv_cli *cli)
{
    NodeV1__ReleaseClaimRequest request = NODE_V1__RELEASE_CLAIM_REQUEST__INIT;
    dv_str name = cli->n_words == 2 ? cli->words[1] : DV_STR("");
    size_t slash = dv_str_find_char(name, '/');
    enum dv_exit exit;

    if (name.n == 0)
        return dv_cli_complain_usage("claim", "name one claim: [NAMESPACE/]NAME");
    if (!cli->is_forced || dv_str_trim(cli->reason).n == 0)
        return dv_cli_complain_usage(
            "claim", "release gives a claim up without asking its drivers, and what they prepared "
                     "is not undone: it needs --force and --reason TEXT. A claim is unprepared by "
                     "itself when its pods are gone and its drivers are there");
    request.namespace_ =
        dv_str_to_c(slash < name.n ? dv_str_slice(name, 0, slash) : cli->namespace, cli->arena);
    request.name =
        dv_str_to_c(slash < name.n ? dv_str_slice(name, slash + 1, name.n) : name, cli->arena);
    request.reason = dv_str_to_c(cli->reason, cli->arena);
    if (!dv_cli_call(cli, "/davit.node.v1.Node/ReleaseClaim", &request.base,
                     &node_v1__release_claim_response__descriptor, &exit))
        return exit;
    if (dv_cli_is_table(cli))
        (void)puts("released");
    return DV_EXIT_OK;
}

enum dv_exit dv_cmd_claim(struct dv_cli *cli)
{
    if (cli->n_words >= 1 && dv_str_eq(cli->words[0], DV_STR("release")))
        return release(cli);
    if (cli->n_words == 1 && dv_str_eq(cli->words[0], DV_STR("list")))
        return list(cli);
    return dv_cli_complain_usage("claim", "say list, or release and a claim");
}

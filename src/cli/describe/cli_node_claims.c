#include "cli/describe/cli_node_claims.h"

#include "base/clock.h"
#include "base/defs.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/describe/describe.h"
#include "proto/davit_node_v1.pb-c.h"

const NodeV1__ListClaimsResponse *dv_node_claims_ask(struct dv_cli *cli)
{
    NodeV1__ListClaimsRequest request = NODE_V1__LIST_CLAIMS_REQUEST__INIT;

    return dv_cli_ask(cli, "/davit.node.v1.Node/ListClaims", &request.base,
                      &node_v1__list_claims_response__descriptor);
}

const NodeV1__Claim *dv_node_claims_find(const NodeV1__ListClaimsResponse *claims, dv_str uid)
{
    for (size_t i = 0; claims && i < claims->n_claims; i++)
        if (dv_str_eq(dv_str_from_c(claims->claims[i]->uid), uid))
            return claims->claims[i];
    return NULL;
}

const char *dv_node_claim_state(const NodeV1__Claim *claim, struct dv_arena *arena)
{
    const char *waits = claim->awaited[0] ? ": waits for " : "";
    const char *fails = claim->error[0] ? ": " : "";
    char since[DV_TIME_BYTES] = "";

    if (claim->awaited[0] && claim->since_ms > 0)
        dv_time_print((uint64_t)claim->since_ms * DV_NS_PER_MS, since);
    return dv_cli_plain(dv_str_printf(arena, "%s%s%s%s%s%s%s", claim->state, waits, claim->awaited,
                                      since[0] ? " since " : "", since, fails, claim->error),
                        arena);
}

static void describe_device(const NodeV1__ClaimDriver *driver, const NodeV1__ClaimDevice *device,
                            struct dv_table *table, struct dv_arena *arena)
{
    dv_str names = DV_STR("");

    for (size_t i = 0; i < device->n_cdi_devices; i++)
        names =
            dv_str_printf(arena, "%.*s%s%s", DV_FMT(names), i ? ", " : "", device->cdi_devices[i]);
    dv_table_add(table, dv_cli_plain(dv_str_from_c(driver->name), arena));
    dv_table_add(table, dv_cli_plain(dv_str_from_c(device->pool), arena));
    dv_table_add(table, dv_cli_plain(dv_str_from_c(device->device), arena));
    dv_table_add(table, dv_cli_plain(dv_str_printf(arena, "%s%s%s", device->health,
                                                   device->message[0] ? ": " : "", device->message),
                                     arena));
    dv_table_add(table, dv_cli_plain(names, arena));
}

void dv_describe_node_claim(const struct dv_describe *d, const NodeV1__Claim *claim)
{
    static const char *const headers[] = {"Driver", "Pool", "Device", "Health", "CDI names"};
    struct dv_table table;

    dv_describe_line(d, 0, "On this node", "%s", claim->state);
    dv_describe_text(d, 1, "Waits for", dv_str_from_c(claim->awaited));
    dv_describe_text(d, 1, "Last error", dv_str_from_c(claim->error));
    for (size_t i = 0; i < claim->n_pods; i++)
        dv_describe_line(d, 1, "Used by", "%s/%s, uid %s", claim->pods[i]->namespace_,
                         claim->pods[i]->name, claim->pods[i]->uid);
    dv_table_init(&table, d->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < claim->n_drivers; i++) {
        if (!claim->drivers[i]->connected)
            dv_describe_line(d, 1, "Not there", "driver %s", claim->drivers[i]->name);
        for (size_t k = 0; k < claim->drivers[i]->n_devices; k++)
            describe_device(claim->drivers[i], claim->drivers[i]->devices[k], &table, d->arena);
    }
    if (table.n_cells > table.n_columns)
        dv_describe_table(d, 1, &table);
}

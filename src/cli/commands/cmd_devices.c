/* cmd_devices.c - davit devices: the devices of the node, whoever offers them, and who holds
 * them. */
#include <stdio.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/describe/device_text.h"
#include "proto/davit_node_v1.pb-c.h"

/* A device of a plugin or of a driver, as a row. */
struct row {
    const char *of; /* the resource, or the driver */
    const char *pool;
    const char *id;
    const char *state;
    const char *numa;
    NodeV1__Holder *const *holders;
    size_t n_holders;
    const char *keepers;
    const char *note; /* what is to say of its trouble */
};

static void add_row(struct dv_cli *cli, struct dv_table *table, const struct row *row)
{
    int64_t since_ms = dv_device_since_ms(row->holders, row->n_holders);

    dv_table_add(table, row->of);
    dv_table_add(table, row->id);
    dv_table_add(table, row->pool);
    dv_table_add(table, row->state);
    dv_table_add(table, row->numa);
    dv_table_add(table, since_ms > 0 ? dv_cli_age(cli, since_ms) : "");
    dv_table_add(table, row->keepers);
    dv_table_add(table, dv_device_claims_text(row->holders, row->n_holders, cli->arena));
    dv_table_add(table, row->note);
}

static void add_resource(struct dv_cli *cli, struct dv_table *table,
                         const NodeV1__Resource *resource)
{
    for (size_t i = 0; i < resource->n_devices; i++) {
        const NodeV1__Device *device = resource->devices[i];

        add_row(
            cli, table,
            &(struct row){
                .of = resource->name,
                .pool = "",
                .id = device->id,
                .state = dv_device_state_text(device->state, device->trouble, cli->arena),
                .numa = dv_device_numa_text(device->numa_nodes, device->n_numa_nodes, cli->arena),
                .holders = device->holders,
                .n_holders = device->n_holders,
                .keepers = dv_device_holders_text(device->holders, device->n_holders, cli->arena),
                .note = resource->removed ? "its plugin was gone for five minutes" : "",
            });
    }
    if (resource->n_devices == 0)
        add_row(cli, table,
                &(struct row){.of = resource->name,
                              .pool = "",
                              .id = "",
                              .state = resource->removed || !resource->connected ? "gone" : "",
                              .numa = "",
                              .keepers = "",
                              .note = ""});
}

static const char *note_of(struct dv_cli *cli, const NodeV1__PoolDevice *device)
{
    dv_str text = dv_str_from_c(device->message);

    for (size_t i = 0; i < device->n_taints; i++)
        text = dv_str_printf(cli->arena, "%.*s%staint %s", DV_FMT(text), text.n > 0 ? ", " : "",
                             device->taints[i]);
    if (device->shortage[0])
        text = dv_str_printf(cli->arena, "%.*s%s%s", DV_FMT(text), text.n > 0 ? ", " : "",
                             device->shortage);
    if (device->offer[0])
        text = dv_str_printf(cli->arena, "%.*s%soffer %s", DV_FMT(text), text.n > 0 ? ", " : "",
                             device->offer);
    return dv_str_to_c(text, cli->arena);
}

static void add_pool(struct dv_cli *cli, struct dv_table *table, const NodeV1__Pool *pool)
{
    for (size_t i = 0; i < pool->n_devices; i++) {
        const NodeV1__PoolDevice *device = pool->devices[i];

        add_row(
            cli, table,
            &(struct row){
                .of = pool->driver,
                .pool = pool->name,
                .id = device->name,
                .state = dv_device_state_text(device->state, device->trouble, cli->arena),
                .numa = dv_device_numa_text(device->numa_nodes, device->n_numa_nodes, cli->arena),
                .holders = device->holders,
                .n_holders = device->n_holders,
                .keepers = dv_device_keepers_text(device, cli->arena),
                .note = note_of(cli, device),
            });
    }
}

/* Whether the device is among those that the user has named, behind the resource; none: all are. */
static bool is_named(const struct dv_cli *cli, const char *id)
{
    for (size_t i = 1; i < cli->n_words; i++)
        if (dv_str_eq(cli->words[i], dv_str_from_c(id)))
            return true;
    return cli->n_words < 2;
}

/* Leaves of the list, which is ours, the devices that the user has named. The counts stay those of
 * the resource: they are about all of it. Returns how many devices are left. */
static size_t keep_named(const struct dv_cli *cli, const NodeV1__ListDevicesResponse *list)
{
    size_t n_kept = 0;

    for (size_t i = 0; i < list->n_resources; i++) {
        NodeV1__Resource *resource = list->resources[i];
        size_t n = 0;

        for (size_t k = 0; k < resource->n_devices; k++)
            if (is_named(cli, resource->devices[k]->id))
                resource->devices[n++] = resource->devices[k];
        resource->n_devices = n;
        n_kept += n;
    }
    for (size_t i = 0; i < list->n_pools; i++) {
        NodeV1__Pool *pool = list->pools[i];
        size_t n = 0;

        for (size_t k = 0; k < pool->n_devices; k++)
            if (is_named(cli, pool->devices[k]->name))
                pool->devices[n++] = pool->devices[k];
        pool->n_devices = n;
        n_kept += n;
    }
    return n_kept;
}

static bool has_device(const NodeV1__ListDevicesResponse *list, dv_str id)
{
    for (size_t i = 0; i < list->n_resources; i++)
        for (size_t k = 0; k < list->resources[i]->n_devices; k++)
            if (dv_str_eq(id, dv_str_from_c(list->resources[i]->devices[k]->id)))
                return true;
    for (size_t i = 0; i < list->n_pools; i++)
        for (size_t k = 0; k < list->pools[i]->n_devices; k++)
            if (dv_str_eq(id, dv_str_from_c(list->pools[i]->devices[k]->name)))
                return true;
    return false;
}

/* Says which of the devices that the user has named are not there. */
static enum dv_exit miss_named(const struct dv_cli *cli, const NodeV1__ListDevicesResponse *list)
{
    enum dv_exit exit = DV_EXIT_OK;

    for (size_t i = 1; i < cli->n_words; i++)
        if (!has_device(list, cli->words[i]))
            exit = dv_cli_complain("%.*s has no device %.*s; davit devices %.*s lists what it has",
                                   DV_FMT(cli->words[0]), DV_FMT(cli->words[i]),
                                   DV_FMT(cli->words[0]));
    return exit;
}

static void print_devices(struct dv_cli *cli, const void *message)
{
    static const char *const headers[] = {"RESOURCE", "DEVICE",  "+POOL",  "STATE", "NUMA",
                                          "SINCE",    "HELD BY", "+CLAIM", "+NOTE"};
    const NodeV1__ListDevicesResponse *list = message;
    struct dv_table table;

    (void)keep_named(cli, list);
    if (!dv_cli_is_table(cli)) {
        dv_cli_print_message(cli, &list->base);
        return;
    }
    dv_cli_table_init(cli, &table, headers, DV_COUNT(headers));
    for (size_t i = 0; i < list->n_resources; i++)
        add_resource(cli, &table, list->resources[i]);
    for (size_t i = 0; i < list->n_pools; i++)
        add_pool(cli, &table, list->pools[i]);
    dv_cli_print_table(cli, &table, 2,
                       "no devices: no plugin has listed any, and no driver has published a slice");
    (void)fflush(stdout); /* a watch is read as it comes */
}

enum dv_exit dv_cmd_devices(struct dv_cli *cli)
{
    NodeV1__ListDevicesRequest request = NODE_V1__LIST_DEVICES_REQUEST__INIT;
    const NodeV1__ListDevicesResponse *list;
    enum dv_exit exit;

    if (cli->n_words > 0)
        request.resource = dv_str_to_c(cli->words[0], cli->arena);
    if (cli->watches)
        return dv_cli_watch(cli, "/davit.node.v1.Node/WatchDevices", &request.base,
                            &node_v1__list_devices_response__descriptor, print_devices);
    list = dv_cli_call(cli, "/davit.node.v1.Node/ListDevices", &request.base,
                       &node_v1__list_devices_response__descriptor, &exit);
    if (!list)
        return exit;
    if (cli->n_words > 0 && list->n_resources + list->n_pools == 0)
        return dv_cli_complain("no plugin or driver has offered %.*s; davit devices lists what "
                               "there is",
                               DV_FMT(cli->words[0]));
    if (cli->n_words < 2 || keep_named(cli, list) > 0)
        print_devices(cli, list);
    return miss_named(cli, list);
}

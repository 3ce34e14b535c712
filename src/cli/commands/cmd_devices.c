/* cmd_devices.c - davit devices: the devices of the node, and who holds them. */
#include <stdio.h>

#include "base/str.h"
#include "cli/cli.h"
#include "proto/davit_node_v1.pb-c.h"

static const char *nodes_text(struct dv_cli *cli, const NodeV1__Device *device)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < device->n_numa_nodes; i++)
        text = dv_str_printf(cli->arena, "%.*s%s%lld", DV_FMT(text), i > 0 ? "," : "",
                             (long long)device->numa_nodes[i]);
    return dv_str_to_c(text, cli->arena);
}

static const char *holders_text(struct dv_cli *cli, const NodeV1__Device *device)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < device->n_holders; i++) {
        const NodeV1__Holder *holder = device->holders[i];

        text = dv_str_printf(
            cli->arena, "%.*s%s%s/%s:%s", DV_FMT(text), i > 0 ? "," : "", holder->pod->namespace_,
            holder->pod->name[0] ? holder->pod->name : holder->pod->uid, holder->container);
    }
    return dv_str_to_c(text, cli->arena);
}

/* The health of a device; NULL: the state of a resource without any. */
static const char *health_text(const NodeV1__Resource *resource, const NodeV1__Device *device)
{
    if (resource->removed)
        return "removed";
    if (!resource->connected)
        return "plugin gone";
    if (!device)
        return "";
    return device->healthy ? "healthy" : "unhealthy";
}

static void print_devices(struct dv_cli *cli, const void *message)
{
    static const char *const headers[] = {"RESOURCE", "DEVICE", "HEALTH", "NUMA", "HELD BY"};
    const NodeV1__ListDevicesResponse *list = message;
    struct dv_table table;

    if (cli->output != DV_OUTPUT_TABLE) {
        dv_cli_print_message(cli, &list->base);
        return;
    }
    dv_table_init(&table, cli->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < list->n_resources; i++) {
        const NodeV1__Resource *resource = list->resources[i];

        for (size_t k = 0; k < resource->n_devices; k++) {
            const NodeV1__Device *device = resource->devices[k];

            dv_table_add(&table, resource->name);
            dv_table_add(&table, device->id);
            dv_table_add(&table, health_text(resource, device));
            dv_table_add(&table, nodes_text(cli, device));
            dv_table_add(&table, holders_text(cli, device));
        }
        if (resource->n_devices == 0) {
            dv_table_add(&table, resource->name);
            for (size_t k = 1; k < DV_COUNT(headers); k++)
                dv_table_add(&table, k == 2 ? health_text(resource, NULL) : "");
        }
    }
    dv_table_print(&table, cli->has_headers);
    (void)fflush(stdout); /* a watch is read as it comes */
}

enum dv_exit dv_cmd_devices(struct dv_cli *cli)
{
    NodeV1__ListDevicesRequest request = NODE_V1__LIST_DEVICES_REQUEST__INIT;
    const NodeV1__ListDevicesResponse *list;
    enum dv_exit exit;

    if (cli->n_words > 1)
        return dv_cli_complain_usage("devices", "one resource at most");
    if (cli->n_words == 1)
        request.resource = dv_str_to_c(cli->words[0], cli->arena);
    if (cli->watches)
        return dv_cli_watch(cli, "/davit.node.v1.Node/WatchDevices", &request.base,
                            &node_v1__list_devices_response__descriptor, print_devices);
    list = dv_cli_call(cli, "/davit.node.v1.Node/ListDevices", &request.base,
                       &node_v1__list_devices_response__descriptor, &exit);
    if (!list)
        return exit;
    if (cli->n_words == 1 && list->n_resources == 0)
        return dv_cli_complain("no plugin has offered %.*s; davit devices lists what there is",
                               DV_FMT(cli->words[0]));
    print_devices(cli, list);
    return DV_EXIT_OK;
}

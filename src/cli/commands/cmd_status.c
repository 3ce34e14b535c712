/* cmd_status.c - the verb `davit status`: what the daemon says about itself, its plugins and its
 * pods. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/describe/device_text.h"
#include "proto/davit_node_v1.pb-c.h"

static const char *number(struct dv_cli *cli, uint64_t n)
{
    return dv_str_to_c(dv_str_printf(cli->arena, "%" PRIu64, n), cli->arena);
}

static void add_resource(struct dv_cli *cli, struct dv_table *table,
                         const NodeV1__ResourceStatus *resource)
{
    dv_table_add(table, resource->name);
    dv_table_add(table, number(cli, resource->capacity));
    dv_table_add(table, number(cli, resource->allocatable));
    dv_table_add(table, number(cli, resource->held));
    dv_table_add(table, number(cli, resource->counts ? resource->counts->free : 0));
    dv_table_add(table, resource->removed ? "removed" : resource->connected ? "there" : "gone");
}

/* The devices of all pools of the driver whose first pool is this. Returns how many those are. */
static size_t add_driver(struct dv_cli *cli, struct dv_table *table,
                         NodeV1__PoolStatus *const *pools, size_t n_pools)
{
    uint64_t total = 0;
    uint64_t bad = 0;
    uint64_t held = 0;
    uint64_t free = 0;
    size_t n = 0;

    while (n < n_pools && strcmp(pools[n]->driver, pools[0]->driver) == 0) {
        const NodeV1__DeviceCounts *counts = pools[n++]->counts;

        if (!counts)
            continue;
        total += counts->total;
        bad += counts->gone + counts->unhealthy + counts->tainted + counts->held_bad;
        held += counts->held;
        free += counts->free;
    }
    dv_table_add(table, pools[0]->driver);
    dv_table_add(table, number(cli, total));
    dv_table_add(table, number(cli, total - bad));
    dv_table_add(table, number(cli, held));
    dv_table_add(table, number(cli, free));
    dv_table_add(table, pools[0]->connected ? "there" : "gone");
    return n;
}

/* Adds a line for each resource of a plugin, and for each DRA driver. Returns how many. */
static size_t fill_resources(struct dv_cli *cli, const NodeV1__StatusResponse *status,
                             struct dv_table *table)
{
    static const char *const headers[] = {"RESOURCE", "CAPACITY", "ALLOCATABLE",
                                          "HELD",     "FREE",     "PLUGIN"};
    size_t n = status->n_resource_status;

    dv_table_init(table, cli->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < status->n_resource_status; i++)
        add_resource(cli, table, status->resource_status[i]);
    for (size_t i = 0; i < status->n_pool_status; n++)
        i += add_driver(cli, table, status->pool_status + i, status->n_pool_status - i);
    return n;
}

/* "healthy", or the devices that are not; empty: none. */
static const char *health_text(struct dv_cli *cli, const NodeV1__PodStatus *pod)
{
    const char *ill = dv_device_ill_text(pod, cli->arena);

    return ill[0] || pod->n_containers == 0 ? ill : "healthy";
}

/* How many of the pods only hold devices for a lease. */
static size_t count_leases(const NodeV1__StatusResponse *status)
{
    size_t n = 0;

    for (size_t i = 0; i < status->n_pods; i++)
        n += status->pods[i]->lease[0] != '\0';
    return n;
}

static void fill_pods(struct dv_cli *cli, const NodeV1__StatusResponse *status,
                      struct dv_table *table)
{
    static const char *const headers[] = {"NAMESPACE", "POD",     "STATE",    "SINCE",
                                          "+RETRY",    "DEVICES", "WAITS FOR"};

    dv_cli_table_init(cli, table, headers, DV_COUNT(headers));
    for (size_t i = 0; i < status->n_pods; i++) {
        const NodeV1__PodStatus *pod = status->pods[i];

        if (pod->lease[0])
            continue; /* davit leases tells of it */
        dv_table_add(table, pod->pod->namespace_);
        dv_table_add(table, pod->pod->name);
        dv_table_add(table, pod->state);
        dv_table_add(table, dv_cli_age(cli, pod->since_ms));
        dv_table_add(table, dv_cli_until(cli, pod->retry_at_ms));
        dv_table_add(table, health_text(cli, pod));
        dv_table_add(table, pod->awaited);
    }
}

static void print_pods(struct dv_cli *cli, const NodeV1__StatusResponse *status)
{
    struct dv_table table;

    if (count_leases(status) == status->n_pods)
        return;
    fill_pods(cli, status, &table);
    (void)puts("");
    dv_table_print(&table, cli->has_headers);
}

/* Prints the calls that have not been answered yet, and since when. */
static void print_calls(struct dv_cli *cli, const NodeV1__StatusResponse *status)
{
    static const char *const headers[] = {"NO ANSWER FROM", "TO", "SINCE", "POD", "CLAIMS"};
    struct dv_table table;

    if (status->n_calls == 0)
        return;
    dv_table_init(&table, cli->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < status->n_calls; i++) {
        const NodeV1__Call *call = status->calls[i];
        dv_str claims = DV_STR("");
        dv_str pod = DV_STR("");

        for (size_t k = 0; k < call->n_claims; k++)
            claims = dv_str_printf(cli->arena, "%.*s%s%s", DV_FMT(claims), k ? ", " : "",
                                   call->claims[k]);
        if (call->pod)
            pod = call->pod->name[0]
                      ? dv_str_printf(cli->arena, "%s/%s", call->pod->namespace_, call->pod->name)
                      : dv_str_from_c(call->pod->uid);
        dv_table_add(&table, dv_cli_plain(dv_str_from_c(call->name), cli->arena));
        dv_table_add(&table, call->method);
        dv_table_add(&table, dv_cli_age(cli, call->since_ms));
        dv_table_add(&table, dv_cli_plain(pod, cli->arena));
        dv_table_add(&table, dv_cli_plain(claims, cli->arena));
    }
    (void)puts("");
    dv_table_print(&table, cli->has_headers);
}

enum dv_exit dv_cmd_status(struct dv_cli *cli)
{
    NodeV1__StatusRequest request = NODE_V1__STATUS_REQUEST__INIT;
    const NodeV1__StatusResponse *status;
    struct dv_table resources;
    struct dv_table table;
    enum dv_exit exit;
    size_t n_resources;

    if (cli->n_words > 0)
        return dv_cli_complain_usage("status", "it takes no words");
    status = dv_cli_call(cli, "/davit.node.v1.Node/Status", &request.base,
                         &node_v1__status_response__descriptor, &exit);
    if (!status)
        return exit;
    if (!dv_cli_is_table(cli)) {
        dv_cli_print_message(cli, &status->base);
        return DV_EXIT_OK;
    }
    if (cli->output == DV_OUTPUT_NAME) {
        fill_pods(cli, status, &table);
        dv_cli_print_table(cli, &table, 2, "no pods on this node");
        return DV_EXIT_OK;
    }
    (void)printf("node        %s\n", status->node_name);
    (void)printf("davitd      %s, up %s\n", status->version,
                 dv_cli_age(cli, status->started_at_ms));
    n_resources = fill_resources(cli, status, &resources);
    (void)printf("resources   %zu\n", n_resources);
    (void)printf("devices     %" PRIu64 ": %s\n", status->n_devices,
                 dv_device_counts_text(status->device_counts, cli->arena));
    (void)printf("pods        %zu\n", status->n_pods - count_leases(status));
    if (count_leases(status) > 0)
        (void)printf("leases      %zu\n", count_leases(status));
    if (status->state_error[0])
        (void)printf("trouble     %s\n",
                     dv_cli_plain(dv_str_from_c(status->state_error), cli->arena));
    for (size_t i = 0; i < status->n_notes; i++)
        (void)printf("look at     %s\n", dv_cli_plain(dv_str_from_c(status->notes[i]), cli->arena));
    if (n_resources > 0) {
        (void)puts("");
        dv_table_print(&resources, cli->has_headers);
    }
    print_calls(cli, status);
    print_pods(cli, status);
    return DV_EXIT_OK;
}

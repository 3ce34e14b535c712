#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "proto/davit_node_v1.pb-c.h"

static void print_pods(struct dv_cli *cli, const NodeV1__StatusResponse *status)
{
    static const char *const headers[] = {"NAMESPACE", "POD", "STATE", "SINCE", "WAITS FOR"};
    struct dv_table table;

    if (status->n_pods == 0)
        return;
    dv_table_init(&table, cli->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < status->n_pods; i++) {
        dv_table_add(&table, status->pods[i]->pod->namespace_);
        dv_table_add(&table, status->pods[i]->pod->name);
        dv_table_add(&table, status->pods[i]->state);
        dv_table_add(&table, dv_cli_age(cli, status->pods[i]->since_ms));
        dv_table_add(&table, status->pods[i]->awaited);
    }
    (void)puts("");
    dv_table_print(&table, cli->has_headers);
}

enum dv_exit dv_cmd_status(struct dv_cli *cli)
{
    NodeV1__StatusRequest request = NODE_V1__STATUS_REQUEST__INIT;
    const NodeV1__StatusResponse *status;
    enum dv_exit exit;

    if (cli->n_words > 0)
        return dv_cli_complain_usage("status", "it takes no words");
    status = dv_cli_call(cli, "/davit.node.v1.Node/Status", &request.base,
                         &node_v1__status_response__descriptor, &exit);
    if (!status)
        return exit;
    if (cli->output != DV_OUTPUT_TABLE) {
        dv_cli_print_message(cli, &status->base);
        return DV_EXIT_OK;
    }
    (void)printf("node        %s\n", status->node_name);
    (void)printf("davitd      %s, up %s\n", status->version,
                 dv_cli_age(cli, status->started_at_ms));
    (void)printf("resources   %" PRIu64 "\n", status->n_resources);
    (void)printf("devices     %" PRIu64 "\n", status->n_devices);
    (void)printf("pods        %zu\n", status->n_pods);
    if (status->state_error[0])
        (void)printf("trouble     %s\n", status->state_error);
    print_pods(cli, status);
    return DV_EXIT_OK;
}

enum dv_exit dv_cmd_version(struct dv_cli *cli)
{
    if (cli->output == DV_OUTPUT_JSON)
        (void)puts("{\"version\": \"" DV_VERSION "\"}");
    else if (cli->output == DV_OUTPUT_YAML)
        (void)puts("version: " DV_VERSION);
    else
        (void)puts("davit " DV_VERSION);
    return DV_EXIT_OK;
}

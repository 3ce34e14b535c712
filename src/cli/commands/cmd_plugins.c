/* cmd_plugins.c - davit plugins: the plugins and drivers that have registered. */
#include "base/str.h"
#include "cli/cli.h"
#include "proto/davit_node_v1.pb-c.h"

/* A DRA driver may have registered and not answer. */
static const char *state_text(const NodeV1__Plugin *plugin)
{
    return plugin->service[0] && !plugin->connected ? "silent" : plugin->state;
}

/* One that has not told its name yet is known by its socket. */
static const char *name_text(const NodeV1__Plugin *plugin)
{
    return plugin->name[0] ? plugin->name : plugin->socket;
}

static const char *versions_text(struct dv_cli *cli, const NodeV1__Plugin *plugin)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < plugin->n_versions; i++)
        text =
            dv_str_printf(cli->arena, "%.*s%s%s", DV_FMT(text), i ? "," : "", plugin->versions[i]);
    return dv_cli_plain(text, cli->arena);
}

enum dv_exit dv_cmd_plugins(struct dv_cli *cli)
{
    static const char *const headers[] = {"NAME",   "TYPE",  "STATE",   "+VERSIONS", "+USES",
                                          "+TRIES", "RETRY", "+SOCKET", "ERROR"};
    NodeV1__ListPluginsRequest request = NODE_V1__LIST_PLUGINS_REQUEST__INIT;
    const NodeV1__ListPluginsResponse *list;
    struct dv_table table;
    enum dv_exit exit;

    if (cli->n_words > 0)
        return dv_cli_complain_usage("plugins", "it takes no words");
    list = dv_cli_call(cli, "/davit.node.v1.Node/ListPlugins", &request.base,
                       &node_v1__list_plugins_response__descriptor, &exit);
    if (!list)
        return exit;
    if (!dv_cli_is_table(cli)) {
        dv_cli_print_message(cli, &list->base);
        return DV_EXIT_OK;
    }
    dv_cli_table_init(cli, &table, headers, DV_COUNT(headers));
    for (size_t i = 0; i < list->n_plugins; i++) {
        const NodeV1__Plugin *plugin = list->plugins[i];

        dv_table_add(&table, name_text(plugin));
        dv_table_add(&table, plugin->type);
        dv_table_add(&table, state_text(plugin));
        dv_table_add(&table, versions_text(cli, plugin));
        dv_table_add(&table, plugin->service);
        dv_table_add(&table,
                     dv_str_to_c(dv_str_printf(cli->arena, "%u", plugin->attempts), cli->arena));
        dv_table_add(&table, dv_cli_until(cli, plugin->retry_at_ms));
        dv_table_add(&table, plugin->socket[0] ? plugin->socket : plugin->endpoint);
        dv_table_add(&table, plugin->error);
    }
    dv_cli_print_table(cli, &table, 1,
                       "no plugins: none has put a socket into plugins_registry/, or registered");
    return DV_EXIT_OK;
}

/* test_fakes.c - plugins for this module's tests, on a server of ours. */
#include <stdio.h>
#include <unistd.h>

#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "plugin/tests/test_plugin_node.h"
#include "proto/registration_v1.pb-c.h"
#include "support/dvtest.h"

static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    struct fake_plugin *plugin = ctx;

    plugin->held = NULL;
    dv_server_call_finish(call, NULL);
}

/* True when the plugin does not answer now. */
static bool stops_at(struct fake_plugin *plugin, struct dv_server_call *call, enum fake_step step)
{
    if (plugin->holds_at == step || plugin->dies_at == step) {
        plugin->held = call;
        dv_server_call_on_cancel(call, on_cancelled, plugin);
    }
    if (plugin->dies_at == step) {
        if (plugin->unlinks_when_dying)
            fake_plugin_stop(plugin);
        else
            fake_plugin_kill(plugin);
    }
    return plugin->holds_at == step || plugin->dies_at == step;
}

static void fail_call(const struct fake_plugin *plugin, struct dv_server_call *call,
                      const char *text)
{
    struct dv_err err;

    (void)dv_fail(&err, plugin->fails_with != DV_OK ? plugin->fails_with : DV_INTERNAL, "%s", text);
    dv_server_call_finish(call, &err);
}

static struct dv_h2_msg *encode_info(const struct fake_plugin *plugin)
{
    RegistrationV1__PluginInfo info = REGISTRATION_V1__PLUGIN_INFO__INIT;
    const char *versions[DV_COUNT(plugin->versions)];
    struct dv_h2_msg *msg;
    size_t n;

    info.type = plugin->type ? plugin->type : "DevicePlugin";
    info.name = plugin->plugin_name ? plugin->plugin_name : "";
    info.endpoint = plugin->endpoint ? plugin->endpoint : "";
    for (n = 0; n < DV_COUNT(versions) && plugin->versions[n]; n++)
        versions[n] = plugin->versions[n];
    info.n_supported_versions = n;
    info.supported_versions = versions;
    n = dv_pb_size(&info.base);
    msg = dv_h2_msg_new(n);
    dv_pb_encode(&info.base, dv_h2_msg_data(msg), n);
    return msg;
}

static void handle_info(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct fake_plugin *plugin = ctx;

    assert_int_equal(request.n, 0);
    plugin->info_timeout_ms = dv_server_call_deadline_ms(call) - dv_loop_now_ms(plugin->node->loop);
    if (plugin->n_info++ < plugin->fail_info)
        fail_call(plugin, call, "not today");
    else if (stops_at(plugin, call, AT_INFO))
        return;
    else if (plugin->info)
        dv_server_call_reply(call, dv_h2_msg_copy((dv_str){plugin->info, plugin->info_bytes}));
    else
        dv_server_call_reply(call, encode_info(plugin));
}

static void handle_notify(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct fake_plugin *plugin = ctx;
    const RegistrationV1__RegistrationStatus *status;
    struct dv_err err;

    plugin->notify_timeout_ms =
        dv_server_call_deadline_ms(call) - dv_loop_now_ms(plugin->node->loop);
    status = dv_pb_decode(&registration_v1__registration_status__descriptor, request,
                          dv_server_call_arena(call), &err);
    assert_non_null(status);
    if (status->plugin_registered) {
        plugin->n_ok++;
        assert_string_equal(status->error, "");
    } else {
        plugin->n_refused++;
        dv_buf_clear(&plugin->error);
        dv_buf_add_c(&plugin->error, status->error);
    }
    if (plugin->n_ok + plugin->n_refused <= plugin->fail_notify) {
        fail_call(plugin, call, "do not care");
        return;
    }
    if (stops_at(plugin, call, AT_NOTIFY))
        return;
    dv_server_call_reply(call, dv_h2_msg_new(0));
    if (plugin->dies_at == AFTER_NOTIFY)
        fake_plugin_kill(plugin);
}

void fake_plugin_start(struct fake_plugin *plugin, struct node *node, const char *name)
{
    static const struct dv_method methods[] = {
        {"/pluginregistration.Registration/GetInfo",                  handle_info  },
        {"/pluginregistration.Registration/NotifyRegistrationStatus", handle_notify},
    };
    static unsigned n_plugins;
    const struct dv_service service = {methods, DV_COUNT(methods), plugin};
    const struct dv_server_options options = {
        .name = DV_STR("fake"),
        .mode = 0600,
        .services = &service,
        .n_services = 1,
        .message_bytes_max = 32u << 20,
    };
    struct dv_err err;

    if (!plugin->node)
        dv_buf_init(&plugin->error, 1u << 20);
    plugin->node = node;
    (void)snprintf(plugin->inner, sizeof(plugin->inner), "%s/%u", node->dir, n_plugins++);
    (void)snprintf(plugin->path, sizeof(plugin->path), "%s", node_path(node, name));
    plugin->server = dv_server_open(node->loop, dv_str_from_c(plugin->inner), &options, &err);
    assert_non_null(plugin->server);
    (void)unlink(plugin->path); /* what a predecessor left */
    assert_int_equal(link(plugin->inner, plugin->path), 0);
}

void fake_plugin_kill(struct fake_plugin *plugin)
{
    dv_server_close(plugin->server, 0, NULL, NULL);
    plugin->server = NULL;
}

void fake_plugin_stop(struct fake_plugin *plugin)
{
    (void)unlink(plugin->path); /* may have been renamed */
    fake_plugin_kill(plugin);
}

void fake_plugin_end(struct fake_plugin *plugin)
{
    if (plugin->server)
        fake_plugin_stop(plugin);
    settle(plugin->node);
    dv_buf_fini(&plugin->error);
}

/* A plugin beside the bad one, which must not notice. */
void assert_others_get_on(struct node *node)
{
    struct fake_plugin good = {.type = "DRAPlugin"};

    fake_plugin_start(&good, node, "good.sock");
    wait_state(node, "good.sock", DV_PLUGIN_REGISTERED);
    fake_plugin_stop(&good);
    wait_state(node, "good.sock", DV_PLUGIN_GONE);
    fake_plugin_end(&good);
}

#include "support/device_plugin.h"

#include <stdio.h>

#include "base/buf.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "support/dvtest.h"

#define MESSAGE_BYTES_MAX (1u << 20)

static struct dv_h2_msg *message_of(struct dv_buf *buf)
{
    struct dv_h2_msg *msg = dv_h2_msg_copy(dv_buf_str(buf));

    dv_buf_fini(buf);
    return msg;
}

static void fail_call(struct dv_server_call *call, enum dv_code code)
{
    struct dv_err err;

    (void)dv_fail(&err, code, "not today");
    dv_server_call_finish(call, &err);
}

static void handle_options(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct device_plugin *plugin = ctx;
    struct dv_buf buf;

    (void)request;
    plugin->n_options++;
    if (plugin->fails_at_options != DV_OK) {
        fail_call(call, plugin->fails_at_options);
        return;
    }
    dv_buf_init(&buf, MESSAGE_BYTES_MAX);
    dv_pb_add_number(&buf, 1, plugin->needs_pre_start);
    dv_server_call_reply(call, message_of(&buf));
}

static void send_list(struct device_plugin *plugin)
{
    dv_str rest = dv_str_from_c(plugin->devices);
    struct dv_h2_msg *msg;
    struct dv_buf buf;
    struct dv_err err;
    dv_str id;

    dv_buf_init(&buf, MESSAGE_BYTES_MAX);
    while (rest.n > 0 && dv_str_split(&rest, ' ', &id)) {
        bool is_healthy = !dv_str_ends_with(id, DV_STR("!"));
        size_t mark = dv_pb_begin(&buf, 1);

        dv_pb_add_bytes(&buf, 1, dv_str_slice(id, 0, is_healthy ? id.n : id.n - 1));
        dv_pb_add_bytes(&buf, 2, is_healthy ? DV_STR("Healthy") : DV_STR("Unhealthy"));
        dv_pb_end(&buf, mark);
    }
    msg = message_of(&buf);
    assert_ok(dv_server_call_send(plugin->stream, msg, &err), &err);
    dv_h2_msg_unref(msg);
}

static void on_stream_cancelled(void *ctx, struct dv_server_call *call)
{
    struct device_plugin *plugin = ctx;

    plugin->stream = NULL;
    dv_server_call_finish(call, NULL);
}

static void handle_list(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct device_plugin *plugin = ctx;

    (void)request;
    plugin->n_lists++;
    if (plugin->refuses_list) {
        fail_call(call, DV_INTERNAL);
        return;
    }
    plugin->stream = call;
    dv_server_call_on_cancel(call, on_stream_cancelled, plugin);
    if (!plugin->is_silent)
        send_list(plugin);
}

/* One response, with an environment variable. */
static void reply_allocate(const struct device_plugin *plugin, struct dv_server_call *call)
{
    struct dv_buf buf;
    size_t response;
    size_t env;
    size_t node;

    dv_buf_init(&buf, MESSAGE_BYTES_MAX);
    response = dv_pb_begin(&buf, 1);
    env = dv_pb_begin(&buf, 1);
    dv_pb_add_bytes(&buf, 1, DV_STR("GIVEN"));
    dv_pb_add_bytes(&buf, 2, DV_STR("yes"));
    dv_pb_end(&buf, env);
    if (plugin->node) {
        node = dv_pb_begin(&buf, 3);
        dv_pb_add_bytes(&buf, 1, dv_str_from_c(plugin->node));
        dv_pb_add_bytes(&buf, 2, dv_str_from_c(plugin->node));
        dv_pb_end(&buf, node);
    }
    dv_pb_end(&buf, response);
    dv_server_call_reply(call, message_of(&buf));
}

static void on_allocate_cancelled(void *ctx, struct dv_server_call *call)
{
    struct device_plugin *plugin = ctx;

    plugin->held = NULL;
    dv_server_call_finish(call, NULL);
}

static void handle_allocate(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct device_plugin *plugin = ctx;

    (void)request;
    plugin->n_allocate++;
    if (plugin->fails != DV_OK) {
        fail_call(call, plugin->fails);
    } else if (plugin->holds_allocate) {
        plugin->held = call;
        dv_server_call_on_cancel(call, on_allocate_cancelled, plugin);
    } else {
        reply_allocate(plugin, call);
    }
}

static void handle_pre_start(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct device_plugin *plugin = ctx;

    (void)request;
    plugin->n_pre_start++;
    dv_server_call_reply(call, dv_h2_msg_new(0));
}

void device_plugin_start(struct device_plugin *plugin, struct dv_loop *loop, const char *dir,
                         const char *name, const char *resource, const char *devices)
{
    static const struct dv_method methods[] = {
        {"/v1beta1.DevicePlugin/GetDevicePluginOptions", handle_options  },
        {"/v1beta1.DevicePlugin/ListAndWatch",           handle_list     },
        {"/v1beta1.DevicePlugin/Allocate",               handle_allocate },
        {"/v1beta1.DevicePlugin/PreStartContainer",      handle_pre_start},
    };
    const struct dv_service service = {methods, DV_COUNT(methods), plugin};
    const struct dv_server_options options = {
        .name = DV_STR("plugin"), .mode = 0600, .services = &service, .n_services = 1};
    struct dv_err err;

    plugin->loop = loop;
    plugin->resource = resource;
    plugin->devices = devices;
    (void)snprintf(plugin->name, sizeof(plugin->name), "%s", name);
    (void)snprintf(plugin->path, sizeof(plugin->path), "%s/%s", dir, name);
    plugin->server = dv_server_open(loop, dv_str_from_c(plugin->path), &options, &err);
    assert_ok(plugin->server, &err);
}

static void on_registered(struct dv_call *call, const struct dv_err *err)
{
    struct device_plugin *plugin = DV_CONTAINER(call, struct device_plugin, call);

    plugin->n_registered++;
    if (err)
        plugin->err = *err;
    else
        (void)dv_succeed(&plugin->err);
    dv_channel_close(plugin->channel, NULL, NULL);
    plugin->channel = NULL;
}

void device_plugin_register(struct device_plugin *plugin, const char *dir)
{
    const struct dv_channel_options options = {.name = DV_STR("kubelet")};
    char path[128];
    struct dv_buf buf;
    struct dv_err err;

    assert_null(plugin->channel);
    (void)snprintf(path, sizeof(path), "%s/kubelet.sock", dir);
    plugin->channel = dv_channel_open(plugin->loop, dv_str_from_c(path), &options, &err);
    assert_ok(plugin->channel, &err);
    plugin->call = (struct dv_call){
        .method = "/v1beta1.Registration/Register",
        .done = on_registered,
        .deadline_ms = DV_NO_DEADLINE,
        .waits_for_ready = true,
    };
    dv_buf_init(&buf, MESSAGE_BYTES_MAX);
    dv_pb_add_bytes(&buf, 1, DV_STR("v1beta1"));
    dv_pb_add_bytes(&buf, 2, dv_str_from_c(plugin->name));
    dv_pb_add_bytes(&buf, 3, dv_str_from_c(plugin->resource));
    dv_call_start(plugin->channel, &plugin->call, message_of(&buf));
}

void device_plugin_list(struct device_plugin *plugin, const char *devices)
{
    assert_non_null(plugin->stream);
    plugin->devices = devices;
    send_list(plugin);
}

void device_plugin_end_list(struct device_plugin *plugin)
{
    struct dv_server_call *stream = plugin->stream;

    assert_non_null(stream);
    plugin->stream = NULL;
    dv_server_call_finish(stream, NULL);
}

void device_plugin_answer(struct device_plugin *plugin)
{
    struct dv_server_call *held = plugin->held;

    assert_non_null(held);
    plugin->held = NULL;
    reply_allocate(plugin, held);
}

void device_plugin_kill(struct device_plugin *plugin)
{
    if (!plugin->server)
        return;
    dv_server_close(plugin->server, 0, NULL, NULL);
    plugin->server = NULL;
}

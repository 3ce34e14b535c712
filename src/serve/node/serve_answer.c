#include "serve/node/serve_answer.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "plugin/guard.h"
#include "plugin/plugin.h"
#include "pod/agent.h"
#include "pod/pod.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/serve.h"

/* A message that takes more memory takes more than a millisecond to encode. */
#define SHORT_BYTES_MAX (1u << 20)

void dv_serve_reply(struct dv_server_call *call, const struct ProtobufCMessage *message)
{
    dv_server_call_reply(call, dv_grpc_encode(message));
}

/* ---- long messages ---- */

bool dv_serve_is_short(const struct dv_arena *arena)
{
    return dv_arena_size_bytes(arena) <= SHORT_BYTES_MAX;
}

uint64_t dv_serve_hash(struct dv_h2_msg *msg)
{
    return dv_hash((dv_str){dv_h2_msg_data(msg), dv_h2_msg_size(msg)});
}

static void run_encoding(struct dv_work *work)
{
    struct dv_serve_encoding *encoding = DV_CONTAINER(work, struct dv_serve_encoding, work);

    encoding->encoded = dv_grpc_encode(encoding->message);
    encoding->hash = dv_serve_hash(encoding->encoded);
    dv_arena_free(encoding->arena);
    encoding->arena = NULL;
}

static void on_encoded(struct dv_work *work, const struct dv_err *err)
{
    struct dv_serve_encoding *encoding = DV_CONTAINER(work, struct dv_serve_encoding, work);

    dv_arena_free(encoding->arena); /* still there when the job was dropped */
    encoding->arena = NULL;
    encoding->done(encoding, encoding->encoded, err);
}

void dv_serve_encode(struct dv_serve_encoding *encoding, struct dv_loop *loop,
                     const struct ProtobufCMessage *message, struct dv_arena *arena)
{
    encoding->work = (struct dv_work){.run = run_encoding, .done = on_encoded};
    encoding->message = message;
    encoding->arena = arena;
    encoding->encoded = NULL;
    dv_work_start(&encoding->work, loop);
}

/* An answer that is being encoded. */
struct reply {
    struct dv_serve_encoding encoding;
    struct dv_server_call *call;
};

static void on_reply_encoded(struct dv_serve_encoding *encoding, struct dv_h2_msg *msg,
                             const struct dv_err *err)
{
    struct reply *reply = DV_CONTAINER(encoding, struct reply, encoding);

    if (err)
        dv_server_call_finish(reply->call, err);
    else
        dv_server_call_reply(reply->call, msg);
    free(reply);
}

void dv_serve_reply_long(struct dv_server_call *call, struct dv_loop *loop,
                         const struct ProtobufCMessage *message, struct dv_arena *arena)
{
    struct reply *reply;

    if (dv_serve_is_short(arena)) {
        dv_serve_reply(call, message);
        dv_arena_free(arena);
        return;
    }
    reply = DV_ALLOC(struct reply);
    reply->encoding.done = on_reply_encoded;
    reply->call = call;
    dv_serve_encode(&reply->encoding, loop, message, arena);
}

struct NodeV1__PodRef *dv_serve_ref(const struct dv_pod_ref *ref, struct dv_arena *arena)
{
    NodeV1__PodRef *message = DV_NEW(arena, NodeV1__PodRef);

    node_v1__pod_ref__init(message);
    message->uid = dv_str_to_c(ref->uid, arena);
    message->namespace_ = dv_str_to_c(ref->namespace, arena);
    message->name = dv_str_to_c(ref->name, arena);
    return message;
}

struct NodeV1__PodRef *dv_serve_ref_of_uid(const struct dv_node *node, dv_str uid,
                                           struct dv_arena *arena)
{
    struct dv_pod_ref ref = {.uid = uid};
    struct dv_pod_view view;

    if (dv_pods_find(node->pods, &ref, &view))
        return dv_serve_ref(&view.spec->ref, arena);
    if (node->agent)
        (void)dv_agent_find_name(node->agent, uid, &ref.namespace, &ref.name); /* else by its uid */
    return dv_serve_ref(&ref, arena);
}

/* ---- plugins ---- */

int64_t dv_serve_wall_ms(const struct dv_node *node, uint64_t at_ms)
{
    struct dv_clock *clock = dv_loop_clock(node->loop);
    int64_t ahead_ms = (int64_t)at_ms - (int64_t)dv_clock_now_ms(clock);

    return (int64_t)(dv_clock_wall_ns(clock) / DV_NS_PER_MS) + ahead_ms;
}

/* Adds what is used with a DRA driver, of all that it offers. */
static void add_driver(NodeV1__Plugin *plugin, const struct dv_dra_instance *instance)
{
    if (!instance)
        return;
    plugin->service = dv_dra_service_name(instance->service);
    plugin->health_service = dv_dra_health_service(instance->health);
    plugin->connected = instance->is_connected;
}

static NodeV1__Plugin *plugin_message(const struct dv_node *node, const struct dv_plugin_view *view,
                                      struct dv_arena *arena)
{
    NodeV1__Plugin *plugin = DV_NEW(arena, NodeV1__Plugin);
    const struct dv_plugin_info *info = view->info;

    node_v1__plugin__init(plugin);
    plugin->socket = dv_str_to_c(info->socket, arena);
    plugin->type = dv_str_to_c(info->type, arena);
    plugin->name = dv_str_to_c(info->name, arena);
    plugin->endpoint = dv_str_to_c(info->endpoint, arena);
    plugin->versions = DV_NEW_ARRAY(arena, const char *, info->n_versions);
    for (size_t i = 0; i < info->n_versions; i++)
        plugin->versions[plugin->n_versions++] = dv_str_to_c(info->versions[i], arena);
    plugin->state = dv_plugin_state_name(view->state);
    plugin->error = dv_str_to_c(dv_str_from_c(view->last_err.msg), arena);
    plugin->retry_at_ms = view->next_retry_ms ? dv_serve_wall_ms(node, view->next_retry_ms) : 0;
    plugin->attempts = (uint32_t)view->n_attempts;
    add_driver(plugin,
               dv_dra_find(dv_claim_manager_drivers(node->claims), info->name, info->endpoint));
    return plugin;
}

/* Describes a device plugin that called Register itself: it has no socket in the registry, so it is
 * shown by its resource. */
static NodeV1__Plugin *classic_message(const struct dv_device_resource_info *info,
                                       struct dv_arena *arena)
{
    NodeV1__Plugin *plugin = DV_NEW(arena, NodeV1__Plugin);

    node_v1__plugin__init(plugin);
    plugin->type = "DevicePlugin";
    plugin->name = dv_str_to_c(info->name, arena);
    plugin->endpoint = dv_str_to_c(info->socket, arena);
    plugin->state = info->plugin == DV_DEVICE_STOPPED || info->plugin == DV_DEVICE_NO_PLUGIN
                        ? "gone"
                        : "registered";
    return plugin;
}

/* Describes a peer that was refused. It has no socket here as a rule, so it is shown by what it
 * wanted. */
static NodeV1__Plugin *refusal_message(const struct dv_guard_refusal *refusal,
                                       struct dv_arena *arena)
{
    NodeV1__Plugin *plugin = DV_NEW(arena, NodeV1__Plugin);

    node_v1__plugin__init(plugin);
    plugin->type = "Policy";
    plugin->name = dv_str_to_c(refusal->name, arena);
    plugin->state = refusal->is_warning ? "warned" : "refused";
    plugin->error = dv_str_to_c(refusal->text, arena);
    plugin->attempts = (uint32_t)dv_u64_min(refusal->n, UINT32_MAX);
    return plugin;
}

/* Whether a socket of the registry shows the resource's plugin; one that has lost its plugin has no
 * socket of its own any more. */
static bool is_listed(const NodeV1__ListPluginsResponse *response,
                      const struct dv_device_resource_info *info)
{
    for (size_t i = 0; i < response->n_plugins; i++)
        if (dv_str_eq(dv_str_from_c(response->plugins[i]->name), info->name) &&
            (info->socket.n == 0 ||
             dv_str_eq(dv_str_from_c(response->plugins[i]->endpoint), info->socket)))
            return true;
    return false;
}

/* Whether an instance that is gone has left its place to another one, as after a driver's rolling
 * update: then there is nothing to look after. */
static bool is_replaced(const struct dv_node *node, const struct dv_plugin_view *gone)
{
    struct dv_plugin_view view;
    size_t at = 0;

    if (gone->state != DV_PLUGIN_GONE || gone->info->name.n == 0)
        return false;
    while (dv_plugins_next(node->plugins, &at, &view))
        if (view.state == DV_PLUGIN_REGISTERED && dv_str_eq(view.info->name, gone->info->name) &&
            dv_str_eq(view.info->type, gone->info->type))
            return true;
    return false;
}

NodeV1__ListPluginsResponse *dv_serve_plugin_list(const struct dv_node *node,
                                                  struct dv_arena *arena)
{
    NodeV1__ListPluginsResponse *response = DV_NEW(arena, NodeV1__ListPluginsResponse);
    const struct dv_device_resource_info *infos;
    size_t n_infos = dv_device_resources(dv_device_manager_state(node->devices), arena, &infos);
    struct dv_plugin_view view;
    const struct dv_guard_refusal *refusal;
    size_t n = n_infos;
    size_t at = 0;

    while (dv_guard_refusal(node->guard, n - n_infos))
        n++;
    while (dv_plugins_next(node->plugins, &at, &view))
        n++;
    node_v1__list_plugins_response__init(response);
    response->plugins = DV_NEW_ARRAY(arena, NodeV1__Plugin *, n);
    at = 0;
    while (dv_plugins_next(node->plugins, &at, &view))
        if (!is_replaced(node, &view))
            response->plugins[response->n_plugins++] = plugin_message(node, &view, arena);
    for (size_t i = 0; i < n_infos; i++)
        if (!is_listed(response, &infos[i]))
            response->plugins[response->n_plugins++] = classic_message(&infos[i], arena);
    for (size_t i = 0; (refusal = dv_guard_refusal(node->guard, i)) != NULL; i++)
        response->plugins[response->n_plugins++] = refusal_message(refusal, arena);
    return response;
}

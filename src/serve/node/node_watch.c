/* node_watch.c - davit.node.v1: WatchDevices, WatchPods and WatchClaims, which send the whole list
 * after every change. */
#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/node_service.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

/* A watch; it is in the call's arena. */
struct watch {
    struct dv_node_server *server;
    struct dv_server_call *call;
    struct dv_link link;
    /* Makes the list as it is now. */
    const ProtobufCMessage *(*make)(const struct watch *watch, struct dv_arena *arena);
    dv_str resource;       /* for devices: only this resource */
    struct dv_pod_ref pod; /* for pods or claims: only this pod */
    bool is_behind;        /* something changed while the last list was still going out */
};

static const ProtobufCMessage *make_devices(const struct watch *watch, struct dv_arena *arena)
{
    return &dv_serve_device_list(watch->server->node, watch->resource, arena)->base;
}

static const ProtobufCMessage *make_pods(const struct watch *watch, struct dv_arena *arena)
{
    return &dv_serve_pod_list(watch->server->node, &watch->pod, arena)->base;
}

static const ProtobufCMessage *make_claims(const struct watch *watch, struct dv_arena *arena)
{
    return &dv_serve_claim_list(watch->server->node, watch->pod.namespace, watch->pod.name, arena)
                ->base;
}

static void send_list(struct watch *watch)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_h2_msg *msg;
    struct dv_err err;
    bool ok;

    if (dv_server_call_unsent_bytes(watch->call) > 0) {
        watch->is_behind = true; /* a slow reader gets the newest list when it has read this one */
        return;
    }
    watch->is_behind = false;
    msg = dv_grpc_encode(watch->make(watch, scratch));
    ok = dv_server_call_send(watch->call, msg, &err);
    dv_h2_msg_unref(msg);
    if (!ok) {
        dv_link_remove(&watch->link);
        dv_server_call_finish(watch->call, &err);
    }
}

static void on_drained(void *ctx, struct dv_server_call *call)
{
    struct watch *watch = ctx;

    (void)call;
    if (watch->is_behind)
        send_list(watch);
}

static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    struct watch *watch = ctx;

    dv_link_remove(&watch->link);
    dv_server_call_finish(call, NULL);
}

static struct watch *new_watch(struct dv_node_server *server, struct dv_server_call *call)
{
    struct watch *watch = DV_NEW(dv_server_call_arena(call), struct watch);

    watch->server = server;
    watch->call = call;
    dv_server_call_on_cancel(call, on_cancelled, watch);
    dv_server_call_on_drained(call, on_drained, watch);
    return watch;
}

void dv_node_handle_watch_devices(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__ListDevicesRequest *request =
        dv_node_decode(call, &node_v1__list_devices_request__descriptor, bytes);
    struct watch *watch;

    if (!request)
        return;
    watch = new_watch(server, call);
    watch->make = make_devices;
    watch->resource = dv_str_from_c(request->resource);
    dv_list_push(&server->device_watches, &watch->link);
    send_list(watch);
}

void dv_node_handle_watch_pods(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__WatchPodsRequest *request =
        dv_node_decode(call, &node_v1__watch_pods_request__descriptor, bytes);
    struct watch *watch;

    if (!request)
        return;
    watch = new_watch(server, call);
    watch->make = make_pods;
    watch->pod = dv_node_ref(request->pod);
    dv_list_push(&server->pod_watches, &watch->link);
    send_list(watch);
}

void dv_node_handle_watch_claims(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__ListClaimsRequest *request =
        dv_node_decode(call, &node_v1__list_claims_request__descriptor, bytes);
    struct watch *watch;

    if (!request)
        return;
    watch = new_watch(server, call);
    watch->make = make_claims;
    watch->pod.namespace = dv_str_from_c(request->namespace_);
    watch->pod.name = dv_str_from_c(request->name);
    dv_list_push(&server->claim_watches, &watch->link);
    send_list(watch);
}

static void send_all(struct dv_list *watches)
{
    struct dv_link *link = watches->head.next;

    while (link != &watches->head) {
        struct dv_link *next = link->next; /* taken first: a watch that fails leaves the list */

        send_list(DV_CONTAINER(link, struct watch, link));
        link = next;
    }
}

static void on_device_task(struct dv_task *task)
{
    send_all(&DV_CONTAINER(task, struct dv_node_server, device_task)->device_watches);
}

static void on_pod_task(struct dv_task *task)
{
    send_all(&DV_CONTAINER(task, struct dv_node_server, pod_task)->pod_watches);
}

static void on_claim_task(struct dv_task *task)
{
    send_all(&DV_CONTAINER(task, struct dv_node_server, claim_task)->claim_watches);
}

void dv_node_server_claims_changed(struct dv_node_server *server)
{
    if (!dv_list_is_empty(&server->claim_watches))
        dv_task_post(&server->claim_task, server->node->loop, on_claim_task);
}

void dv_node_server_devices_changed(struct dv_node_server *server)
{
    if (!dv_list_is_empty(&server->device_watches))
        dv_task_post(&server->device_task, server->node->loop, on_device_task);
}

void dv_node_server_pods_changed(struct dv_node_server *server)
{
    if (!dv_list_is_empty(&server->pod_watches))
        dv_task_post(&server->pod_task, server->node->loop, on_pod_task);
}

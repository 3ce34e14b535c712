/* podres.c - the PodResources services, v1 and v1alpha1, on their socket: who may call is decided
 * in podres_gate.c, and what is answered in podres_answer.c. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device_manager.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "pod/pod.h"
#include "proto/podresources_v1.pb-c.h"
#include "proto/podresources_v1alpha1.pb-c.h"
#include "serve/health.h"
#include "serve/node/serve_answer.h"
#include "serve/node/serve_socket.h"
#include "serve/podresources/podres_answer.h"
#include "serve/podresources/podres_gate.h"
#include "serve/podresources/podres_known.h"
#include "serve/serve.h"

/* The limit of a request: it is empty or has two names. */
#define MESSAGE_BYTES_MAX (64u * 1024u)
#define SOCKET_MODE 0777

struct dv_podres_server {
    struct dv_serve_socket socket;
    const struct dv_node *node;
    struct dv_podres_gate gate;
};

/* ---- calls ---- */

/* Spends a token for the call. False: the call has been refused. */
static bool pass(struct dv_podres_server *server, enum dv_podres_call which,
                 struct dv_server_call *call)
{
    struct dv_err err;

    if (dv_podres_gate_pass(&server->gate, which, dv_loop_now_ns(server->node->loop), &err))
        return true;
    dv_server_call_finish(call, &err);
    return false;
}

static void handle_list(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_podres_server *server = ctx;
    struct dv_arena *arena;
    struct dv_podres_node node;

    (void)bytes;
    if (!pass(server, DV_PODRES_LIST, call))
        return;
    arena = dv_arena_new();
    node = dv_podres_known_node(server->node, arena);
    dv_serve_reply_long(call, server->node->loop, &dv_podres_list(&node, arena)->base, arena);
}

static void handle_allocatable(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_podres_server *server = ctx;
    struct dv_podres_node node = {.devices = dv_device_manager_state(server->node->devices),
                                  .is_strict = server->node->is_strict};

    struct dv_arena *arena;

    (void)bytes;
    if (!pass(server, DV_PODRES_GET_ALLOCATABLE, call))
        return;
    arena = dv_arena_new();
    dv_serve_reply_long(call, server->node->loop, &dv_podres_allocatable(&node, arena)->base,
                        arena);
}

/* Makes the answer of Get; NULL: `err` is set. */
static PodresV1__GetPodResourcesResponse *
answer_get(struct dv_podres_server *server, const PodresV1__GetPodResourcesRequest *request,
           struct dv_arena *arena, struct dv_err *err)
{
    struct dv_pod_ref ref = {.namespace = dv_str_from_c(request->pod_namespace),
                             .name = dv_str_from_c(request->pod_name)};
    struct dv_podres_node node = {.devices = dv_device_manager_state(server->node->devices),
                                  .is_strict = server->node->is_strict};
    PodresV1__GetPodResourcesResponse *response;
    struct dv_podres_pod pod;
    struct dv_pod_view view;

    /* One pod is looked up by its name, which is cheaper than all. An empty namespace would stand
     * for none here, and no pod has it. */
    if (ref.namespace.n > 0 && dv_pods_find(server->node->pods, &ref, &view)) {
        pod = dv_podres_known_pod(server->node, &view, arena);
        node.pods = &pod;
        node.n_pods = 1;
    }
    response = dv_podres_get(&node, ref.namespace, ref.name, arena, err);
    if (!response)
        server->gate.counts.n_get_errors++;
    return response;
}

static void handle_get(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_podres_server *server = ctx;
    struct dv_arena *arena = dv_server_call_arena(call);
    const PodresV1__GetPodResourcesRequest *request;
    PodresV1__GetPodResourcesResponse *response = NULL;
    struct dv_err err;

    if (!pass(server, DV_PODRES_GET, call))
        return;
    request = dv_pb_decode(&podres_v1__get_pod_resources_request__descriptor, bytes, arena, &err);
    if (request)
        response = answer_get(server, request, arena, &err);
    if (response)
        dv_serve_reply(call, &response->base);
    else
        dv_server_call_finish(call, &err);
}

static void handle_alpha_list(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_podres_server *server = ctx;
    struct dv_arena *arena;
    struct dv_podres_node node;

    (void)bytes;
    if (!pass(server, DV_PODRES_ALPHA_LIST, call))
        return;
    arena = dv_arena_new();
    node = dv_podres_known_node(server->node, arena);
    dv_serve_reply_long(call, server->node->loop, &dv_podres_alpha_list(&node, arena)->base, arena);
}

/* ---- life ---- */

static void free_server(struct dv_serve_socket *socket)
{
    free(DV_CONTAINER(socket, struct dv_podres_server, socket));
}

struct dv_podres_server *dv_podres_server_open(const struct dv_node *node, dv_str path,
                                               struct dv_err *err)
{
    static const struct dv_method methods[] = {
        {"/v1.PodResourcesLister/List",                    handle_list       },
        {"/v1.PodResourcesLister/GetAllocatableResources", handle_allocatable},
        {"/v1.PodResourcesLister/Get",                     handle_get        },
        {"/v1alpha1.PodResourcesLister/List",              handle_alpha_list },
    };
    struct dv_podres_server *server = DV_ALLOC(struct dv_podres_server);
    const struct dv_service service = {methods, DV_COUNT(methods), server};
    const struct dv_serve_socket_options options = {
        .server_name = DV_STR("pod-resources"),
        .mode = SOCKET_MODE,
        .service = &service,
        .message_bytes_max = MESSAGE_BYTES_MAX,
    };

    server->socket = (struct dv_serve_socket){.node = node,
                                              .name = DV_STR("pod-resources"),
                                              .part = DV_HEALTH_PODRES,
                                              .free_owner = free_server};
    server->node = node;
    dv_podres_gate_init(&server->gate, dv_loop_now_ns(node->loop));
    if (dv_serve_socket_open(&server->socket, path, &options, err))
        return server;
    free(server);
    return NULL;
}

void dv_podres_server_close(struct dv_podres_server *server, dv_closed_fn *closed, void *ctx)
{
    dv_serve_socket_close(&server->socket, 0, closed, ctx);
}

void dv_podres_server_get_counts(const struct dv_podres_server *server,
                                 struct dv_podres_counts *counts)
{
    *counts = server->gate.counts;
}

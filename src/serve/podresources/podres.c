/* podres.c - the PodResources services, v1 and v1alpha1, on their socket: who may call is decided
 * in podres_gate.c, and what is answered in podres_answer.c. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "pod/pod.h"
#include "proto/podresources_v1.pb-c.h"
#include "proto/podresources_v1alpha1.pb-c.h"
#include "serve/node/serve_answer.h"
#include "serve/node/serve_socket.h"
#include "serve/podresources/podres_answer.h"
#include "serve/podresources/podres_gate.h"
#include "serve/serve.h"

/* The limit of a request: it is empty or has two names. */
#define MESSAGE_BYTES_MAX (64u * 1024u)
#define SOCKET_MODE 0777

struct dv_podres_server {
    struct dv_serve_socket socket;
    const struct dv_node *node;
    struct dv_podres_gate gate;
};

/* ---- what is known ---- */

static struct dv_podres_claim *claim_of(const struct dv_claim *claim, struct dv_arena *arena)
{
    const struct dv_claim_record *record = &claim->record;
    struct dv_podres_claim *made = DV_NEW(arena, struct dv_podres_claim);
    struct dv_podres_claim_driver *drivers =
        DV_NEW_ARRAY(arena, struct dv_podres_claim_driver, record->n_drivers);

    for (size_t i = 0; i < record->n_drivers; i++) {
        const struct dv_claim_driver *from = &record->drivers[i];
        struct dv_podres_claim_device *devices =
            DV_NEW_ARRAY(arena, struct dv_podres_claim_device, from->n_devices);

        for (size_t k = 0; k < from->n_devices; k++)
            devices[k] = (struct dv_podres_claim_device){
                .pool = from->devices[k].pool,
                .device = from->devices[k].name,
                .share_id = from->devices[k].share_id,
                .has_share_id = from->devices[k].share_id.p != NULL,
                .cdi_ids = from->devices[k].cdi_ids,
                .n_cdi_ids = from->devices[k].n_cdi_ids,
            };
        drivers[i] = (struct dv_podres_claim_driver){from->name, devices, from->n_devices};
    }
    *made = (struct dv_podres_claim){record->namespace, record->name, drivers, record->n_drivers};
    return made;
}

/* Returns what the pod's containers use; NULL: it has no claims. */
static const struct dv_podres_use *uses_of(const struct dv_node *node,
                                           const struct dv_pod_spec *spec, struct dv_arena *arena)
{
    struct dv_podres_use *uses;
    struct dv_claim_lookup lookup;

    if (!spec->object)
        return NULL;
    dv_claim_lookup_init(&lookup, spec->object);
    uses = DV_NEW_ARRAY(arena, struct dv_podres_use, spec->n_containers);
    for (size_t i = 0; i < spec->n_containers; i++) {
        const struct dv_api_container *container =
            dv_pod_spec_container(spec, spec->containers[i].name);
        const struct dv_podres_claim **claims;
        const struct dv_claim **used;
        struct dv_err missing; /* the container then shows no claims at all */
        size_t n;

        if (!container || !dv_claim_of_container(dv_claim_manager_state(node->claims), &lookup,
                                                 container, arena, &used, &n, &missing))
            continue;
        claims = DV_NEW_ARRAY(arena, const struct dv_podres_claim *, n);
        for (size_t k = 0; k < n; k++)
            claims[k] = claim_of(used[k], arena);
        uses[i] = (struct dv_podres_use){claims, n};
    }
    dv_claim_lookup_fini(&lookup);
    return uses;
}

/* Describes a pod. A pod is active when it is admitted, or was before and has not been looked at
 * again. */
static struct dv_podres_pod known_pod(const struct dv_node *node, const struct dv_pod_view *view,
                                      struct dv_arena *arena)
{
    return (struct dv_podres_pod){
        .spec = view->spec,
        .uses = uses_of(node, view->spec, arena),
        .is_active = view->state == DV_POD_ADMITTED || view->was_admitted,
    };
}

/* Describes all pods, after what inactive ones held has been given back. */
static struct dv_podres_node known_node(const struct dv_node *node, struct dv_arena *arena)
{
    struct dv_device_state *devices = dv_device_manager_state(node->devices);
    struct dv_podres_pod *pods =
        DV_NEW_ARRAY(arena, struct dv_podres_pod, dv_pods_count(node->pods));
    struct dv_pod_view view;
    size_t at = 0;
    size_t n = 0;

    (void)dv_device_collect(devices); /* it does not matter how many were given back */
    while (dv_pods_next(node->pods, &at, &view))
        pods[n++] = known_pod(node, &view, arena);
    return (struct dv_podres_node){
        .devices = devices, .pods = pods, .n_pods = n, .is_strict = node->is_strict};
}

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
    node = known_node(server->node, arena);
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
        pod = known_pod(server->node, &view, arena);
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
    node = known_node(server->node, arena);
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

    server->socket = (struct dv_serve_socket){
        .node = node, .name = DV_STR("pod-resources"), .free_owner = free_server};
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

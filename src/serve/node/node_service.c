/* node_service.c - davit.node.v1: the table of its calls, and its socket. */
#include "serve/node/node_service.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "pod/pod.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/serve_answer.h"
#include "serve/node/serve_socket.h"
#include "serve/serve.h"

/* The limit of a message: a pod has at most 3 MiB, and there is its envelope. */
#define MESSAGE_BYTES_MAX (4u << 20)

const void *dv_node_decode(struct dv_server_call *call, const ProtobufCMessageDescriptor *type,
                           dv_str bytes)
{
    struct dv_err err;
    const void *message = dv_pb_decode(type, bytes, dv_server_call_arena(call), &err);

    if (!message)
        dv_server_call_finish(call, &err);
    return message;
}

struct dv_pod_ref dv_node_ref(const NodeV1__PodRef *ref)
{
    if (!ref)
        return (struct dv_pod_ref){0};
    return (struct dv_pod_ref){dv_str_from_c(ref->uid), dv_str_from_c(ref->namespace_),
                               dv_str_from_c(ref->name)};
}

/* ---- what there is ---- */

static void handle_list(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__ListDevicesRequest *request =
        dv_node_decode(call, &node_v1__list_devices_request__descriptor, bytes);
    struct dv_arena *arena;

    if (!request)
        return;
    arena = dv_arena_new();
    dv_serve_reply_long(
        call, server->node->loop,
        &dv_serve_device_list(server->node, dv_str_from_c(request->resource), arena)->base, arena);
}

static void handle_plugins(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    struct dv_arena *arena = dv_arena_new();

    (void)bytes;
    dv_serve_reply_long(call, server->node->loop, &dv_serve_plugin_list(server->node, arena)->base,
                        arena);
}

/* A status that is made in two turns. The server is not closed before its call is answered. */
struct status {
    struct dv_task task;
    const struct dv_node *node;
    struct dv_server_call *call;
    NodeV1__StatusResponse *message;
    struct dv_arena *arena;
};

static void count_devices(struct dv_task *task)
{
    struct status *status = DV_CONTAINER(task, struct status, task);

    dv_serve_add_counts(status->node, status->message, status->arena);
    dv_serve_reply_long(status->call, status->node->loop, &status->message->base, status->arena);
    free(status);
}

static void handle_status(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    struct status *status = DV_ALLOC(struct status);

    (void)bytes;
    *status = (struct status){.node = server->node, .call = call, .arena = dv_arena_new()};
    status->message = dv_serve_status(status->node, status->arena);
    if (dv_serve_is_short(status->arena))
        count_devices(&status->task);
    else /* pods with very many claims: their devices take as long again */
        dv_task_post_next_turn(&status->task, status->node->loop, count_devices);
}

/* ---- life ---- */

static void free_server(struct dv_serve_socket *socket)
{
    struct dv_node_server *server = DV_CONTAINER(socket, struct dv_node_server, socket);

    dv_task_cancel(&server->listing_task);
    free(server);
}

static const struct dv_method methods[] = {
    {"/davit.node.v1.Node/AdmitPod",         dv_node_handle_admit        },
    {"/davit.node.v1.Node/ReleasePod",       dv_node_handle_release      },
    {"/davit.node.v1.Node/ContainerOptions", dv_node_handle_options      },
    {"/davit.node.v1.Node/ContainerStarted", dv_node_handle_started      },
    {"/davit.node.v1.Node/ContainerEnded",   dv_node_handle_ended        },
    {"/davit.node.v1.Node/ListDevices",      handle_list                 },
    {"/davit.node.v1.Node/WatchDevices",     dv_node_handle_watch_devices},
    {"/davit.node.v1.Node/ListPlugins",      handle_plugins              },
    {"/davit.node.v1.Node/ListOffers",       dv_node_handle_list_offers  },
    {"/davit.node.v1.Node/Status",           handle_status               },
    {"/davit.node.v1.Node/WatchPods",        dv_node_handle_watch_pods   },
    {"/davit.node.v1.Node/ListClaims",       dv_node_handle_list_claims  },
    {"/davit.node.v1.Node/WatchClaims",      dv_node_handle_watch_claims },
    {"/davit.node.v1.Node/ReleaseClaim",     dv_node_handle_release_claim},
    {"/davit.node.v1.Node/Backup",           dv_node_handle_backup       },
    {"/davit.node.v1.Node/TakeLease",        dv_node_handle_take_lease   },
    {"/davit.node.v1.Node/RenewLease",       dv_node_handle_renew_lease  },
    {"/davit.node.v1.Node/GiveLease",        dv_node_handle_give_lease   },
    {"/davit.node.v1.Node/EndLease",         dv_node_handle_end_lease    },
    {"/davit.node.v1.Node/ListLeases",       dv_node_handle_list_leases  },
    {"/davit.node.v1.Node/WatchLeases",      dv_node_handle_watch_leases },
};

/* What users other than root may call, when the socket is given to a group: looking, and leases,
 * which check themselves whose they are. Everything that is not named here is root's alone: pods
 * are admitted and released, options may hold secrets, and a backup has them all. */
static const char *const for_all[] = {
    "/davit.node.v1.Node/ListDevices", "/davit.node.v1.Node/WatchDevices",
    "/davit.node.v1.Node/ListPlugins", "/davit.node.v1.Node/ListOffers",
    "/davit.node.v1.Node/Status",      "/davit.node.v1.Node/WatchPods",
    "/davit.node.v1.Node/ListClaims",  "/davit.node.v1.Node/WatchClaims",
    "/davit.node.v1.Node/TakeLease",   "/davit.node.v1.Node/RenewLease",
    "/davit.node.v1.Node/GiveLease",   "/davit.node.v1.Node/EndLease",
    "/davit.node.v1.Node/ListLeases",  "/davit.node.v1.Node/WatchLeases",
};

static bool allows_call(void *ctx, const struct dv_server_call *call, const char *path,
                        struct dv_err *err)
{
    struct dv_peer peer = dv_server_call_peer(call);

    (void)ctx;
    if (peer.uid == 0 || peer.uid == geteuid())
        return true;
    for (size_t i = 0; i < DV_COUNT(for_all); i++)
        if (strcmp(for_all[i], path) == 0)
            return true;
    return dv_fail(err, DV_PERMISSION_DENIED, "%s is for root; user %u may look and lease devices",
                   path + 1, peer.uid);
}

struct dv_node_server *dv_node_server_open(const struct dv_node *node, dv_str path,
                                           struct dv_err *err)
{
    struct dv_node_server *server = DV_ALLOC(struct dv_node_server);
    const struct dv_service service = {methods, DV_COUNT(methods), server};
    const struct dv_serve_socket_options options = {
        .server_name = DV_STR("davit"),
        .mode = 0600,
        .service = &service,
        .message_bytes_max = MESSAGE_BYTES_MAX,
        .has_group = node->has_group,
        .group = node->group,
        .allows_call = allows_call,
    };

    server->socket = (struct dv_serve_socket){.node = node,
                                              .name = DV_STR("davit.sock"),
                                              .part = DV_HEALTH_DAVIT,
                                              .free_owner = free_server};
    server->node = node;
    dv_list_init(&server->device_listings);
    dv_list_init(&server->pod_listings);
    dv_list_init(&server->claim_listings);
    dv_list_init(&server->lease_listings);
    dv_list_init(&server->due_listings);
    if (dv_serve_socket_open(&server->socket, path, &options, err))
        return server;
    free(server);
    return NULL;
}

void dv_node_server_close(struct dv_node_server *server, uint64_t grace_ms, dv_closed_fn *closed,
                          void *ctx)
{
    dv_serve_socket_close(&server->socket, grace_ms, closed, ctx);
}

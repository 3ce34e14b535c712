/* node_service.h - the calls of davit.node.v1, and what they share. */
#ifndef DV_SERVE_NODE_SERVICE_H
#define DV_SERVE_NODE_SERVICE_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "device/device.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/serve_socket.h"

struct dv_arena;
struct dv_node;

struct dv_node_server {
    struct dv_serve_socket socket;
    const struct dv_node *node;
    /* The lists that somebody watches, by what they list (node_watch.c). */
    struct dv_list device_listings;
    struct dv_list pod_listings;
    struct dv_list claim_listings;
    struct dv_list lease_listings;
    struct dv_list due_listings; /* those that are to be made anew now */
    struct dv_task listing_task; /* makes them */
    bool is_backing_up;
};

/* Decodes the request; NULL: it could not be, and the call is finished. */
const void *dv_node_decode(struct dv_server_call *call, const ProtobufCMessageDescriptor *type,
                           dv_str bytes);
/* Returns the reference to a pod, with texts of the message; empty when `ref` is NULL. */
struct dv_pod_ref dv_node_ref(const NodeV1__PodRef *ref);

/* node_pods.c: AdmitPod, ReleasePod, ContainerOptions; ctx is the server */
void dv_node_handle_admit(void *ctx, struct dv_server_call *call, dv_str bytes);
void dv_node_handle_release(void *ctx, struct dv_server_call *call, dv_str bytes);
void dv_node_handle_options(void *ctx, struct dv_server_call *call, dv_str bytes);

/* Adds the ids of what a container holds, each once. */
void dv_node_add_ids(NodeV1__ResourceDevices *resource, const struct dv_device_record *record,
                     struct dv_arena *arena);
/* What the container is to be started with; nothing, when the pod is gone. */
DV_CHECKED bool dv_node_container_options(const struct dv_node *node, const struct dv_pod_ref *ref,
                                          dv_str container, struct dv_arena *arena,
                                          NodeV1__ContainerOptionsResponse *response,
                                          struct dv_err *err);

/* node_leases.c: TakeLease, RenewLease, GiveLease, EndLease, ListLeases */
void dv_node_handle_take_lease(void *ctx, struct dv_server_call *call, dv_str bytes);
void dv_node_handle_renew_lease(void *ctx, struct dv_server_call *call, dv_str bytes);
void dv_node_handle_give_lease(void *ctx, struct dv_server_call *call, dv_str bytes);
void dv_node_handle_end_lease(void *ctx, struct dv_server_call *call, dv_str bytes);
void dv_node_handle_list_leases(void *ctx, struct dv_server_call *call, dv_str bytes);

/* node_runs.c: ContainerStarted, ContainerEnded */
void dv_node_handle_started(void *ctx, struct dv_server_call *call, dv_str bytes);
void dv_node_handle_ended(void *ctx, struct dv_server_call *call, dv_str bytes);

/* node_claims.c: ListClaims, ReleaseClaim */
void dv_node_handle_list_claims(void *ctx, struct dv_server_call *call, dv_str bytes);
void dv_node_handle_release_claim(void *ctx, struct dv_server_call *call, dv_str bytes);

/* node_backup.c: Backup */
void dv_node_handle_backup(void *ctx, struct dv_server_call *call, dv_str bytes);

/* node_offers.c: ListOffers */
void dv_node_handle_list_offers(void *ctx, struct dv_server_call *call, dv_str bytes);

/* node_watch.c: WatchDevices, WatchPods, WatchClaims, WatchLeases */
void dv_node_handle_watch_claims(void *ctx, struct dv_server_call *call, dv_str bytes);
void dv_node_handle_watch_devices(void *ctx, struct dv_server_call *call, dv_str bytes);
void dv_node_handle_watch_leases(void *ctx, struct dv_server_call *call, dv_str bytes);
void dv_node_handle_watch_pods(void *ctx, struct dv_server_call *call, dv_str bytes);

#endif

/* controllers.h - the controllers from inside: what their files share. */
#ifndef DV_CONTROL_CONTROLLERS_H
#define DV_CONTROL_CONTROLLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "control/control.h"
#include "control/control_index.h"
#include "control/control_queue.h"
#include "control/uses.h"
#include "loop/loop.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_evictor;
struct dv_json;
struct dv_recorder;

/* The names under which the controllers are known. */
#define DV_CONTROL_CLAIMS_MANAGER "ResourceClaimController"
#define DV_CONTROL_CLAIMS_COMPONENT "resource_claim"
#define DV_CONTROL_TAINTS "device-taint-eviction-controller"
#define DV_CONTROL_NODES_MANAGER "node-lifecycle-controller"
#define DV_CONTROL_ACCOUNTS_MANAGER "service-account-controller"

/* ---- the last of many: uids of objects that are gone, whatever a view still says ---- */

struct dv_recent {
    struct dv_map uids;
    struct dv_list order;
    size_t n_max;
};

void dv_recent_init(struct dv_recent *recent, size_t n_max);
void dv_recent_fini(struct dv_recent *recent);
void dv_recent_add(struct dv_recent *recent, dv_str uid);
bool dv_recent_has(const struct dv_recent *recent, dv_str uid);

/* ---- claims that were made and that the view does not show yet ---- */

struct dv_made {
    struct dv_map claims; /* "namespace/name" */
    struct dv_list order;
    struct dv_timer timer;
};

/* ---- the controllers ---- */

enum dv_control_view {
    DV_CONTROL_PODS,
    DV_CONTROL_CLAIMS,
    DV_CONTROL_TEMPLATES,
    DV_CONTROL_SLICES,
    DV_CONTROL_RULES,
    DV_CONTROL_NODES,
    DV_CONTROL_LEASES,
    DV_CONTROL_NAMESPACES,
    DV_CONTROL_ACCOUNTS,
    DV_CONTROL_CONFIG_MAPS,
    DV_CONTROL_CLUSTER_ROLES,
    DV_CONTROL_SERVICES,
    DV_CONTROL_ENDPOINT_SLICES,
    DV_N_CONTROL_VIEWS,
};

enum dv_control_queue {
    DV_CONTROL_POD_QUEUE,
    DV_CONTROL_CLAIM_QUEUE,
    DV_CONTROL_EVICTION_QUEUE,
    DV_CONTROL_RULE_QUEUE,
    DV_CONTROL_NODE_QUEUE,
    DV_CONTROL_STRAY_QUEUE,   /* of nodes that are gone */
    DV_CONTROL_ACCOUNT_QUEUE, /* of namespaces */
    DV_CONTROL_ROLE_QUEUE,    /* of ClusterRoles that are made of others */
    DV_CONTROL_SERVICE_QUEUE,
    DV_N_CONTROL_QUEUES,
};

struct dv_control {
    struct dv_loop *loop;
    struct dv_control_options options;
    struct dv_view *views[DV_N_CONTROL_VIEWS]; /* NULL: its gate is off */
    struct dv_queue queues[DV_N_CONTROL_QUEUES];
    struct dv_recorder *claims_recorder;
    struct dv_recorder *taints_recorder;
    struct dv_control_lookup lookup;
    struct dv_index pods;      /* "namespace/name" by "claim namespace/name", "template ..." */
    struct dv_index claims;    /* by the uids of the pod that owns it, and of those that use it */
    struct dv_index services;  /* by a label that pods must have to be behind them */
    struct dv_index endpoints; /* pods, by "namespace/name" of the services that select them */
    struct dv_made made;
    struct dv_recent gone; /* pods */
    struct dv_evictor *evictor;
    struct dv_map leases;     /* of nodes, by name */
    struct dv_index placed;   /* pods, by the name of their node */
    struct dv_map gone_nodes; /* by name: since when */
    struct dv_control_stats stats;
    bool is_closing;
    size_t n_closing; /* parts that have not ended */
    struct dv_task close_task;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* The object of a view; NULL when absent, or when the view's gate is off. */
struct dv_object *dv_control_get(const struct dv_control *control, enum dv_control_view view,
                                 dv_str namespace, dv_str name);
const struct dv_api_pod *dv_control_get_pod(const struct dv_control *control, dv_str namespace,
                                            dv_str name);
struct dv_time dv_control_now(const struct dv_control *control); /* wall time, whole seconds */
/* "namespace/name" into its parts. */
void dv_control_split(dv_str key, dv_str *namespace, dv_str *name);
/* Adds all that the index has under the word. */
void dv_control_queue_all(struct dv_control *control, enum dv_control_queue queue,
                          const struct dv_index *index, dv_str word);

/* ---- syncs: one run for a key of a queue ---- */

struct dv_control_sync {
    struct dv_queue_item item;
    struct dv_control *control;
    struct dv_arena *arena; /* of one run */
    struct dv_request request;
    bool is_asking;
    struct dv_object *object; /* that it is about; a reference, or NULL */
    void (*answered)(struct dv_control_sync *sync, const struct dv_api_status *failure);
};

/* Begins a run: an arena of its own, and the object with a reference. */
void dv_control_sync_begin(struct dv_control_sync *sync, struct dv_control *control,
                           struct dv_object *object);
/* Starts the sync's request, of which the caller has set all but `done`. */
void dv_control_sync_ask(struct dv_control_sync *sync,
                         void (*answered)(struct dv_control_sync *sync,
                                          const struct dv_api_status *failure));
void dv_control_sync_cancel(struct dv_queue_item *item);
/* The ends of a run. */
void dv_control_sync_finish(struct dv_control_sync *sync);
void dv_control_sync_finish_after(struct dv_control_sync *sync, uint64_t ms);
void dv_control_sync_fail(struct dv_control_sync *sync, const char *what,
                          const struct dv_api_status *failure);
void dv_control_sync_fail_err(struct dv_control_sync *sync, const char *what,
                              const struct dv_err *err);

/* ---- claims (control_views.c, made.c, pod_sync.c, claim_sync.c) ---- */

void dv_control_pod_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_control_claim_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_control_template_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_control_lookup_init(struct dv_control *control);

/* The view does not show the claim yet: it is remembered for an hour. */
void dv_made_init(struct dv_control *control);
void dv_made_fini(struct dv_control *control);
void dv_made_add(struct dv_control *control, struct dv_object *claim);
/* The view has shown it, or that it is gone. */
void dv_made_forget(struct dv_control *control, dv_str namespace, dv_str name);
struct dv_object *dv_made_get(const struct dv_control *control, dv_str key);
/* From now on the claim is found by the uids of its pod and of those it is reserved for. */
void dv_control_index_claim(struct dv_control *control, dv_str key,
                            const struct dv_api_resource_claim *claim);

size_t dv_control_pod_sync_bytes(void);
void dv_control_pod_sync_run(struct dv_queue_item *item);
size_t dv_control_claim_sync_bytes(void);
void dv_control_claim_sync_run(struct dv_queue_item *item);

/* ---- nodes (node_sync.c) ---- */

void dv_control_node_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_control_lease_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_control_leases_free(struct dv_control *control);
size_t dv_control_node_sync_bytes(void);
void dv_control_node_sync_run(struct dv_queue_item *item);

/* ---- pods on nodes that are gone (stray_sync.c) ---- */

/* The condition of pods that are about to be deleted for a reason which is not theirs. */
#define DV_DISRUPTION "DisruptionTarget"

void dv_control_strays_init(struct dv_control *control);
void dv_control_strays_fini(struct dv_control *control);
/* A pod has changed, come (`was` is NULL) or gone (`pod` is NULL); a node has come or gone. */
void dv_control_stray_changed(struct dv_control *control, const struct dv_api_pod *was,
                              const struct dv_api_pod *pod);
void dv_control_stray_node_changed(struct dv_control *control, dv_str node, bool is_there);
size_t dv_control_stray_sync_bytes(void);
void dv_control_stray_sync_run(struct dv_queue_item *item);

/* A strategic merge patch of a pod's status, by which conditions are merged by their type, so that
 * the others stay; for the pod of that uid alone. An empty phase stays as it is. */
struct dv_json *dv_control_disruption_patch(const struct dv_api_pod_condition *condition,
                                            dv_str uid, dv_str phase, struct dv_arena *arena);

/* ---- service accounts (account_sync.c) ---- */

void dv_control_namespace_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_control_account_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_control_config_map_changed(void *ctx, struct dv_object *old, struct dv_object *now);
size_t dv_control_account_sync_bytes(void);
void dv_control_account_sync_run(struct dv_queue_item *item);

/* ---- ClusterRoles that are made of others (role_sync.c) ---- */

void dv_control_cluster_role_changed(void *ctx, struct dv_object *old, struct dv_object *now);
size_t dv_control_role_sync_bytes(void);
void dv_control_role_sync_run(struct dv_queue_item *item);

/* ---- what is behind services (service_sync.c) ---- */

/* A pod has changed, come (`was` is NULL) or gone (`pod` is NULL). */
void dv_control_endpoint_changed(struct dv_control *control, const struct dv_api_pod *was,
                                 const struct dv_api_pod *pod);
void dv_control_service_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_control_endpoint_slice_changed(void *ctx, struct dv_object *old, struct dv_object *now);
size_t dv_control_service_sync_bytes(void);
void dv_control_service_sync_run(struct dv_queue_item *item);

#endif

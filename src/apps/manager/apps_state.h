/* apps_state.h - the controllers of what makes pods from inside: what their files share. */
#ifndef DV_APPS_STATE_H
#define DV_APPS_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/manager/failed_pods.h"
#include "apps/plan/apps_plan.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "control/control_index.h"
#include "control/control_queue.h"
#include "loop/loop.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_link;
struct dv_recorder;

enum dv_apps_view {
    DV_APPS_PODS,
    DV_APPS_NODES,
    DV_APPS_REVISIONS,
    DV_APPS_DAEMON_SETS,
    DV_APPS_REPLICA_SETS,
    DV_APPS_DEPLOYMENTS,
    DV_APPS_JOBS,
    DV_APPS_BUDGETS,
    DV_N_APPS_VIEWS,
};

enum dv_apps_queue {
    DV_APPS_DAEMON_QUEUE,
    DV_APPS_REPLICA_QUEUE,
    DV_APPS_DEPLOYMENT_QUEUE,
    DV_APPS_JOB_QUEUE,
    DV_APPS_TRACKED_QUEUE, /* of pods with the finalizer of Jobs */
    DV_APPS_BUDGET_QUEUE,
    DV_N_APPS_QUEUES,
};

struct dv_apps_sync;

/* A controller: how it gathers what concerns an object, and what it plans from that. */
struct dv_apps_controller {
    enum dv_apps_view view; /* of the objects that it looks after */
    const char *component;  /* under which its events are told */
    /* The input for `plan`, in the sync's arena. The sync keeps the objects in it. */
    void *(*gather)(struct dv_apps_sync *sync);
    /* It does not look into pods itself: of many, most are read on the worker that plans. */
    bool reads_pods_later;
    /* Pure: where there is much, it runs on a worker. */
    void (*plan)(const void *input, struct dv_plan *plan);
    /* An action was done; may be NULL. */
    void (*done)(struct dv_apps_sync *sync, const struct dv_action *action);
};

struct dv_apps {
    struct dv_loop *loop;
    struct dv_cluster *cluster;
    struct dv_view *views[DV_N_APPS_VIEWS];
    struct dv_queue queues[DV_N_APPS_QUEUES];
    struct dv_recorder *recorders[DV_N_APPS_QUEUES];
    /* What is owned by the uid of its controller, what is nobody's by its namespace and labels. */
    struct dv_index owned[DV_N_APPS_VIEWS];
    /* Who looks after objects, by its namespace and the first label of its selector. */
    struct dv_index selecting[DV_N_APPS_VIEWS];
    struct dv_index budgeted; /* pods by those of their labels that budgets look at */
    struct dv_failed_pods failed;
    struct dv_map job_failures; /* by the uid of the Job; job_sync.c */
    bool is_closing;
    size_t n_closing; /* parts that have not ended */
    struct dv_task close_task;
    dv_closed_fn *closed;
    void *closed_ctx;
};

extern const struct dv_apps_controller dv_daemon_controller;
extern const struct dv_apps_controller dv_replica_controller;
extern const struct dv_apps_controller dv_deployment_controller;
extern const struct dv_apps_controller dv_job_controller;
extern const struct dv_apps_controller dv_tracked_controller;
extern const struct dv_apps_controller dv_budget_controller;
/* By their queues. */
extern const struct dv_apps_controller *const dv_apps_controllers[DV_N_APPS_QUEUES];

/* How many requests of one sync are under way at most. Syncs begin with one and double that while
 * all goes well: where every pod is refused, one has been tried and not hundreds. */
#define DV_APPS_BATCH_MAX 64u

struct dv_apps_request {
    struct dv_request request;
    struct dv_apps_sync *sync;
    const struct dv_action *action;
    struct dv_api_delete_options delete_options;
    struct dv_api_preconditions preconditions;
    bool is_asking;
};

/* Values that were gathered, with the objects of those that have yet to be read (NULL so far). */
struct dv_apps_unread {
    const void **values;
    struct dv_object **objects;
    size_t n;
};

/* A look at one object. */
struct dv_apps_sync {
    struct dv_queue_item item;
    struct dv_apps *apps;
    const struct dv_apps_controller *controller;
    struct dv_recorder *recorder;
    struct dv_arena *arena; /* of one run */
    struct dv_object *object;
    DV_VEC(struct dv_object *) held; /* references, for the time of the run */
    DV_VEC(struct dv_object *) kept; /* such as they may be packed with */
    DV_VEC(struct dv_apps_unread) unread;
    const void *input;
    struct dv_plan plan;
    struct dv_work work;
    bool is_working;
    struct dv_apps_request *requests;
    size_t n_batch;   /* how many may be under way */
    size_t n_started; /* of the plan's actions */
    size_t n_running;
    /* An action has failed: the rest of the plan is left, and nothing but the status is planned. */
    bool has_failed;
    bool has_collided; /* because a name was taken */
    bool is_hopeless;  /* it need not be tried again */
    dv_str failed_reason;
    dv_str failed_message;
    uint64_t retry_ms_min;
    struct dv_err err;
};

void dv_apps_sync_run(struct dv_queue_item *item);
void dv_apps_sync_cancel(struct dv_queue_item *item);

/* With more objects than this the plan is made on a worker: so many take about a millisecond. */
#define DV_APPS_ON_LOOP_MAX 1000u

/* Keeps the object for the run; it may be read on a worker. */
const void *dv_apps_hold(struct dv_apps_sync *sync, struct dv_object *object);

/* ---- what belongs to whom (apps_owned.c) ---- */

void dv_apps_index(struct dv_apps *apps, enum dv_apps_view view, const struct dv_object *object,
                   const struct dv_api_object_meta *meta);
/* The object that a word of the index leads to; NULL: it is gone. */
struct dv_object *dv_apps_find(const struct dv_apps *apps, enum dv_apps_view view,
                               struct dv_link *ref);
/* Holds what the owner has, and what is nobody's and may match its selector. Returns an array of
 * values in the sync's arena. */
const void **dv_apps_gather_owned(struct dv_apps_sync *sync, enum dv_apps_view view,
                                  const struct dv_api_label_selector *selector, size_t *n);
/* Holds what those of these uids own. */
const void **dv_apps_gather_of(struct dv_apps_sync *sync, enum dv_apps_view view,
                               const dv_str *uids, size_t n_uids, size_t *n);
/* The same for who looks after objects; NULL: it is gone. */
void dv_apps_index_keeper(struct dv_apps *apps, enum dv_apps_view view,
                          const struct dv_object *object, const struct dv_api_object_meta *meta);
/* Queues who looks after an object of the view: its controller, or those whose selectors match
 * it. */
void dv_apps_queue_owners(struct dv_apps *apps, enum dv_apps_view view,
                          const struct dv_api_object_meta *meta);

/* Has budgets find the pod by those of its labels that they look at; false: it is gone. */
void dv_apps_index_budgeted(struct dv_apps *apps, const struct dv_api_object_meta *pod,
                            bool is_there);
/* Queues the budgets in the namespace whose selectors may match the labels. */
void dv_apps_queue_budgets(struct dv_apps *apps, dv_str namespace,
                           const struct dv_api_object_meta *labelled);
/* Holds the pods that the budget of the sync may select. */
const void **dv_apps_gather_budgeted(struct dv_apps_sync *sync,
                                     const struct dv_api_label_selector *selector, size_t *n);

/* ---- changes that the views tell ---- */

void dv_apps_node_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_apps_daemon_set_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_apps_replica_set_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_apps_deployment_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_apps_job_changed(void *ctx, struct dv_object *old, struct dv_object *now);
/* A pod has changed, which may have been counted by a Job, or be left by one. */
void dv_apps_tracked_changed(struct dv_apps *apps, struct dv_object *old, struct dv_object *now);
void dv_apps_budget_changed(void *ctx, struct dv_object *old, struct dv_object *now);
/* A pod has changed, which budgets may be about. */
void dv_apps_budget_pod_changed(struct dv_apps *apps, struct dv_object *old, struct dv_object *now);
void dv_apps_fini_job_failures(struct dv_apps *apps);

#endif

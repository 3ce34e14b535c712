/* claim_manager.h - DRA on the loop: drivers register and are watched, the claims of pods are
 * prepared and unprepared, and what becomes of them is on the disk before anyone is told.
 *
 *     prepare     GET each claim -> may the pod have it? -> drivers there? else wait
 *                 -> record, on the disk -> a call to each driver -> devices, on the disk -> done
 *     unprepare   nothing under way? else wait -> record, on the disk -> a call to each driver
 *                 -> record gone from the disk -> done
 *
 * The decisions are claim.h's; here are sockets, calls, timers, requests and the store. Where this
 * differs from the reference on purpose: drivers of a pod are called at the same time, and once for
 * a claim that several pods want at the same time; what was prepared stays so over a restart, but
 * not over a reboot; wiping is tried for ever, and no more once the driver is back. */
#ifndef DV_CLAIM_MANAGER_H
#define DV_CLAIM_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "claim/claim.h"
#include "loop/loop.h"
#include "plugin/plugin.h"
#include "store/store_saver.h"

struct dv_api_pod;
struct dv_api_resource_claim;
struct dv_arena;
struct dv_claim_batch;
struct dv_claim_job;
struct dv_claim_step;
struct dv_claim_manager;
struct dv_claim_offer;
struct dv_cluster;
struct dv_store;

struct dv_claim_manager_options {
    struct dv_store *store;     /* kept, like the cluster; both outlive the manager */
    uint32_t table;             /* of the store, for this module alone */
    struct dv_cluster *cluster; /* NULL: there is none, or it comes with dv_claim_manager_connect */
    dv_str node_name;
    dv_str boot_id;                    /* of the kernel */
    struct dv_guard *guard;            /* of peers; NULL: all may; outlives the manager */
    struct dv_grpc_observer *observer; /* of calls to drivers; may be NULL; outlives the manager */
    bool is_strict;    /* refuse at once and take today's services only, as the reference */
    bool takes_groups; /* the gate DRAWorkloadResourceClaims */
    /* Whether the node still has this pod; called from dv_claim_manager_set_ready on. NULL: all
     * pods are wanted. */
    bool (*is_wanted)(void *ctx, dv_str pod_uid);
    /* Whether the pod is admitted: then its claims are prepared again after a crash or a boot. A
     * pod that is not asks for them itself, once no other pod has its devices. NULL: all wanted
     * pods are. */
    bool (*is_admitted)(void *ctx, dv_str pod_uid);
    /* Called when a driver or a claim came or went, or a claim changed its phase: at most once a
     * turn, and never from within a function of this header. May be NULL. */
    void (*changed)(void *ctx);
    /* Called when the health of devices that these pods hold has changed. May be NULL. */
    void (*pods_changed)(void *ctx, const dv_str *pod_uids, size_t n_pod_uids);
    /* Called when a driver of 1.30 has told which devices it offers, all of them, and with NULL
     * when it tells no more: what is published then stays until the driver's slices are wiped.
     * Neither is called from within a function of this header but dv_claim_manager_close. NULL:
     * nobody is interested, and drivers are not asked. */
    void (*offered)(void *ctx, dv_str driver, const struct dv_claim_offer *offer);
    /* Called when an operation that was asked for has ended, for
     * dra_operations_duration_seconds. */
    void (*operation_ended)(void *ctx, const char *name, bool is_error, uint64_t ns);
    /* Called when a call to a driver has ended, for dra_grpc_operations_duration_seconds. */
    void (*call_ended)(void *ctx, dv_str driver, const char *method, enum dv_code code,
                       uint64_t ns);
    void *ctx;
};

/* The buckets of dra_operations_duration_seconds and dra_grpc_operations_duration_seconds, which
 * are the kubelet's: 15 of them, exponential, from 0.1 s to 40 s. */
#define DV_CLAIM_SECONDS_BOUNDS 15u
extern const double dv_claim_seconds_bounds[DV_CLAIM_SECONDS_BOUNDS];

/* Loads the claims that the store has. Blocks, so it is for the start of the daemon. */
struct dv_claim_manager *dv_claim_manager_open(struct dv_loop *loop,
                                               const struct dv_claim_manager_options *options,
                                               struct dv_err *err);
/* The API is there, from now to the end: claims are found, and this node's ResourceSlices are wiped
 * whose drivers have not registered within half a minute. Once, and not when the options had it. */
void dv_claim_manager_connect(struct dv_claim_manager *claims, struct dv_cluster *cluster);
/* Ends operations with DV_CANCELLED before `closed` runs, which may be NULL. */
void dv_claim_manager_close(struct dv_claim_manager *claims, dv_closed_fn *closed, void *ctx);
/* Tells that all pods of the node are known: from now on, at once and every minute, what was left
 * unfinished is finished. */
void dv_claim_manager_set_ready(struct dv_claim_manager *claims);
/* Finishes at once what was left unfinished, instead of waiting for the next minute. */
void dv_claim_manager_reconcile(struct dv_claim_manager *claims);

/* The state that is decided on. A caller who changes it, as an import does, saves it. */
struct dv_claim_state *dv_claim_manager_state(struct dv_claim_manager *claims);
const struct dv_dra_drivers *dv_claim_manager_drivers(const struct dv_claim_manager *claims);
/* The sum for all drivers of the pod's claims. */
uint64_t dv_claim_manager_epoch_of_pod(const struct dv_claim_manager *claims, dv_str pod_uid);
/* For DRA drivers, which register through the plugin watcher. */
struct dv_plugin_handler dv_claim_manager_handler(struct dv_claim_manager *claims);

/* ---- saving ---- */

/* Calls save->done when all that has changed is on the disk. */
void dv_claim_manager_save(struct dv_claim_manager *claims, struct dv_save *save);
/* Tells that the store has lost what it had: with the next save all of it is written again. */
void dv_claim_manager_save_all(struct dv_claim_manager *claims);
/* Why what has changed could not be written; NULL: all is written. Writing is tried again by
 * itself. */
const struct dv_err *dv_claim_manager_store_error(const struct dv_claim_manager *claims);

/* ---- what is under way, for people to see ---- */

/* A call to a driver that has not been answered; all members are borrowed. */
struct dv_claim_call {
    dv_str driver;
    dv_str endpoint;
    dv_str method;  /* "NodePrepareResources" */
    dv_str pod_uid; /* empty: for none */
    struct dv_claim *const *claims;
    size_t n_claims;
    uint64_t since_ns; /* on the loop's clock */
};
void dv_claim_manager_each_call(const struct dv_claim_manager *claims,
                                void (*see)(void *ctx, const struct dv_claim_call *call),
                                void *ctx);

/* A claim whose preparing waits, for a driver or for another pod; it may have no record yet. */
struct dv_claim_wait {
    dv_str namespace;
    dv_str name;
    dv_str uid;
    dv_str pod_uid;
    dv_str awaited;
    uint64_t since_ns; /* on the loop's clock: when it was asked for */
};
void dv_claim_manager_each_wait(const struct dv_claim_manager *claims,
                                void (*see)(void *ctx, const struct dv_claim_wait *wait),
                                void *ctx);

/* When a driver takes longer to answer than this, `awaited` names it. */
#define DV_CLAIM_SLOW_MS 5000u

/* ---- operations ---- */

enum dv_claim_operation_kind {
    DV_CLAIM_PREPARE,
    DV_CLAIM_PREPARE_AGAIN, /* what was prepared, or about to be, before a crash or a boot */
    DV_CLAIM_UNPREPARE,
    DV_CLAIM_RELEASE, /* forget the claim without asking its drivers */
};

/* One operation, embedded in the caller's struct: zeroed, with `done` set. It is lent to this
 * module until `done` has run. */
struct dv_claim_operation {
    /* err: NULL when the operation is done and on the disk. */
    void (*done)(struct dv_claim_operation *operation, const struct dv_err *err);
    /* How long the operation may wait for a driver, or for the end of another operation on a claim
     * of the same name. 0, or strictly: not at all. */
    uint64_t wait_ms;
    /* Called each time before drivers are: whether the pod may have what these claims are
     * allocated. Many claims come in several calls, over several turns. May be NULL. */
    bool (*may_prepare)(struct dv_claim_operation *operation,
                        const struct dv_api_resource_claim *const *objects, size_t n_objects,
                        struct dv_err *err);
    /* What the operation waits for now, "driver gpu.example.com to register"; or "". A driver that
     * takes long to answer is named too, and since when. */
    char awaited[DV_ERR_MSG_BYTES];
    bool is_brief;  /* what it waits for is under way, and ends by itself */
    bool has_asked; /* drivers were called */
    struct {
        struct dv_claim_manager *claims;
        struct dv_arena *arena;
        enum dv_claim_operation_kind kind;
        const struct dv_claim_step *step; /* the row of the table where it is */
        const struct dv_api_pod *pod;     /* the pod that claims are prepared for, or NULL */
        dv_str pod_uid;
        struct dv_claim_job *jobs; /* one for each claim */
        size_t n_jobs;
        size_t n_fetching;
        size_t n_reserved;              /* jobs about which the owner was asked */
        struct dv_claim_batch *batches; /* one for each driver */
        size_t n_batches;
        struct dv_map by_driver; /* the batches */
        size_t n_calling;
        struct dv_link link;
        struct dv_link waiting;
        struct dv_task task;
        struct dv_timer timer;
        struct dv_save save;
        struct dv_err end; /* code DV_OK: nothing has gone wrong */
        uint64_t start_ns;
        uint64_t wait_until_ms;
        bool has_waited; /* in the step where it is */
        bool is_chore;   /* chores.c started it, and nobody else waits for it */
    } priv;
};

/* Prepares all claims of the pod, which lives until `done`. On success dv_claim_cdi_names has what
 * its containers get. */
void dv_claim_manager_prepare(struct dv_claim_manager *claims, struct dv_claim_operation *operation,
                              const struct dv_api_pod *pod);
/* Unprepares the claims of a pod that has ended, except those that another pod uses. Copies the
 * uid. A pod without claims is fine. */
void dv_claim_manager_unprepare(struct dv_claim_manager *claims,
                                struct dv_claim_operation *operation, dv_str pod_uid);
/* Forgets a claim without asking its drivers, whatever pods use it: for a driver that does not come
 * back. DV_NOT_FOUND: no such claim here. */
void dv_claim_manager_release(struct dv_claim_manager *claims, struct dv_claim_operation *operation,
                              dv_str namespace, dv_str name);
/* Gives the operation up; `done` still runs, with DV_CANCELLED or with the end that was reached
 * before. The claims stay as recorded. */
void dv_claim_manager_cancel(struct dv_claim_operation *operation);

#endif

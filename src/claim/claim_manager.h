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
struct dv_claims;
struct dv_cluster;
struct dv_store;

struct dv_claims_options {
    struct dv_store *store;     /* kept, like the cluster; both outlive the manager */
    uint32_t table;             /* of the store, for this module alone */
    struct dv_cluster *cluster; /* NULL: there is none, or it comes with dv_claims_connect */
    dv_str node_name;
    dv_str boot_id;         /* of the kernel */
    struct dv_guard *guard; /* of peers; NULL: all may; outlives the manager */
    bool is_strict;         /* as the reference: refuse at once, today's services only */
    bool takes_groups;      /* the gate DRAWorkloadResourceClaims */
    /* Whether the node still has this pod; asked from dv_claims_set_ready on. NULL: all are wanted.
     */
    bool (*is_wanted)(void *ctx, dv_str pod_uid);
    /* Whether it is admitted: then its claims are prepared again after a crash or a boot. One that
     * is not asks for them itself, when nobody else has its devices. NULL: all that are wanted. */
    bool (*is_admitted)(void *ctx, dv_str pod_uid);
    /* A driver came or went, a claim came or went or is in another phase. Once a turn at most,
     * never from within a function of this header. May be NULL. */
    void (*changed)(void *ctx);
    /* The health of devices that these pods hold has changed. May be NULL. */
    void (*pods_changed)(void *ctx, const dv_str *pod_uids, size_t n_pod_uids);
    /* For dra_operations_duration_seconds: an operation that was asked for has ended. */
    void (*operation_ended)(void *ctx, const char *name, bool is_error, uint64_t ns);
    /* For dra_grpc_operations_duration_seconds: a call to a driver has ended. */
    void (*call_ended)(void *ctx, dv_str driver, const char *method, enum dv_code code,
                       uint64_t ns);
    void *ctx;
};

/* The buckets of dra_operations_duration_seconds and dra_grpc_operations_duration_seconds, which
 * are the kubelet's: 15 of them, exponential, from 0.1 s to 40 s. */
#define DV_CLAIM_SECONDS_BOUNDS 15u
extern const double dv_claim_seconds_bounds[DV_CLAIM_SECONDS_BOUNDS];

/* Loads what the store has. Blocks: for start-up. */
struct dv_claims *dv_claims_open(struct dv_loop *loop, const struct dv_claims_options *options,
                                 struct dv_err *err);
/* The API is there, from now to the end: claims are found, and this node's ResourceSlices are wiped
 * whose drivers have not registered within half a minute. Once, and not when the options had it. */
void dv_claims_connect(struct dv_claims *claims, struct dv_cluster *cluster);
/* Operations end with DV_CANCELLED before `closed` runs; it may be NULL. */
void dv_claims_close(struct dv_claims *claims, dv_closed_fn *closed, void *ctx);
/* All pods of the node are known: what was left unfinished is finished, now and every minute. */
void dv_claims_set_ready(struct dv_claims *claims);
/* Finishes what was left unfinished at once, and not in the next minute only. */
void dv_claims_reconcile(struct dv_claims *claims);

/* What is decided on. Whoever changes it (an import) saves it. */
struct dv_claim_state *dv_claims_state(struct dv_claims *claims);
const struct dv_dra_drivers *dv_claims_drivers(const struct dv_claims *claims);
/* The sum for all drivers of the pod's claims. */
uint64_t dv_claims_epoch_of_pod(const struct dv_claims *claims, dv_str pod_uid);
/* For DRA drivers, which register through the plugin watcher. */
struct dv_plugin_handler dv_claims_handler(struct dv_claims *claims);

/* ---- saving ---- */

/* Waits until all that has changed is on the disk. */
void dv_claims_save(struct dv_claims *claims, struct dv_save *save);
/* The store has lost what it had: with the next save, all of it is written again. */
void dv_claims_save_all(struct dv_claims *claims);
/* Why what has changed could not be written; NULL: all is written. It is tried again by itself. */
const struct dv_err *dv_claims_store_error(const struct dv_claims *claims);

/* ---- what is under way, for people to see ---- */

/* A call to a driver that has not been answered; all of it is borrowed. */
struct dv_claim_call {
    dv_str driver;
    dv_str endpoint;
    dv_str method;  /* "NodePrepareResources" */
    dv_str pod_uid; /* empty: for none */
    struct dv_claim *const *claims;
    size_t n_claims;
    uint64_t since_ns; /* on the loop's clock */
};
void dv_claims_each_call(const struct dv_claims *claims,
                         void (*see)(void *ctx, const struct dv_claim_call *call), void *ctx);

/* A claim whose preparing waits, for a driver or for another pod; it may have no record yet. */
struct dv_claim_wait {
    dv_str namespace;
    dv_str name;
    dv_str uid;
    dv_str pod_uid;
    dv_str awaited;
    uint64_t since_ns; /* on the loop's clock: when it was asked for */
};
void dv_claims_each_wait(const struct dv_claims *claims,
                         void (*see)(void *ctx, const struct dv_claim_wait *wait), void *ctx);

/* A driver that takes longer to answer is waited for, and `awaited` says so. */
#define DV_CLAIM_SLOW_MS 5000u

/* ---- operations ---- */

enum dv_claim_operation_kind {
    DV_CLAIM_PREPARE,
    DV_CLAIM_PREPARE_AGAIN, /* what was prepared, or about to be, before a crash or a boot */
    DV_CLAIM_UNPREPARE,
    DV_CLAIM_RELEASE, /* by force */
};

/* One operation, embedded in what waits for it; zeroed, then `done` is set; lent until that has
 * run. */
struct dv_claim_operation {
    /* err: NULL when it is done and on the disk. */
    void (*done)(struct dv_claim_operation *operation, const struct dv_err *err);
    /* How long it may wait for what is not there yet: a driver, the end of what is under way for a
     * claim of the same name. 0, or strictly: not at all. */
    uint64_t wait_ms;
    /* Asked before any driver is, each time: whether the pod may have what these are allocated. May
     * be NULL. */
    bool (*may_prepare)(struct dv_claim_operation *operation,
                        const struct dv_api_resource_claim *const *objects, size_t n_objects,
                        struct dv_err *err);
    /* What it waits for now, "driver gpu.example.com to register"; or "". Also a driver that takes
     * long to answer, and since when. */
    char awaited[DV_ERR_MSG_BYTES];
    bool is_brief;  /* that is under way, and ends by itself */
    bool has_asked; /* drivers were called */
    struct {
        struct dv_claims *claims;
        struct dv_arena *arena;
        enum dv_claim_operation_kind kind;
        const struct dv_claim_step *step; /* where it is */
        const struct dv_api_pod *pod;     /* to prepare for; else NULL */
        dv_str pod_uid;
        struct dv_claim_job *jobs; /* one for each claim */
        size_t n_jobs;
        size_t n_fetching;
        struct dv_claim_batch *batches; /* one for each driver */
        size_t n_batches;
        size_t n_calling;
        struct dv_link link;
        struct dv_link waiting;
        struct dv_task task;
        struct dv_timer timer;
        struct dv_save save;
        struct dv_err end; /* code DV_OK: nothing has gone wrong */
        uint64_t start_ns;
        uint64_t wait_until_ms;
        bool has_waited; /* in this step */
        bool is_chore;   /* our own */
    } priv;
};

/* Prepares all claims of the pod, which lives until `done`. On success dv_claim_cdi_names has what
 * its containers get. */
void dv_claims_prepare(struct dv_claims *claims, struct dv_claim_operation *operation,
                       const struct dv_api_pod *pod);
/* The pod has ended: unprepares what no other pod uses. Copies the uid. A pod without claims is
 * fine. */
void dv_claims_unprepare(struct dv_claims *claims, struct dv_claim_operation *operation,
                         dv_str pod_uid);
/* Forgets a claim whatever its drivers and pods have to say: for a driver that does not come back.
 * DV_NOT_FOUND: no such claim here. */
void dv_claims_release(struct dv_claims *claims, struct dv_claim_operation *operation,
                       dv_str namespace, dv_str name);
/* `done` still runs: with DV_CANCELLED, or with the end that was reached before. The claims stay as
 * recorded. */
void dv_claims_cancel(struct dv_claim_operation *operation);

#endif

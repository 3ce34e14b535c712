/* sched.h - the scheduler: finds a node and devices for each pod, and binds it.
 *
 * It reads views and decides in memory, one pod after the other; what it has decided counts at once
 * for the next pod, and is written meanwhile, many pods at a time: the claim's allocation and
 * reservation, then the binding. A pod that fits nowhere waits for an event that can help it, and
 * says in its PodScheduled condition and in an event why no node does.
 *
 * Pods that were bound by others, with claims that nobody has allocated, get their devices on the
 * node that they are on. */
#ifndef DV_SCHED_H
#define DV_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "base/str.h"
#include "loop/loop.h"
#include "resource/resource.h"

struct dv_api_allocation_result;
struct dv_api_device;
struct dv_api_device_class;
struct dv_api_resource_claim;
struct dv_api_resource_slice_spec;
struct dv_arena;
struct dv_cluster;
struct dv_err;
struct dv_metrics;
struct dv_sched;

#define DV_SCHED_NAME "default-scheduler"

struct dv_sched_options {
    struct dv_cluster *cluster; /* must outlive it */
    /* Who it is: pods with this schedulerName, with DV_SCHED_NAME and with none are its own.
     * Copied; empty: DV_SCHED_NAME. */
    dv_str scheduler_name;
    bool is_second;              /* another one has those with DV_SCHED_NAME and with none */
    unsigned gates;              /* enum dv_gate; 0: DV_GATES_DEFAULT */
    bool without_taint_rules;    /* the server does not have the kind DeviceTaintRule */
    bool is_strict;              /* nothing that the reference would not do */
    bool preempts_devices;       /* pods give up devices for those of higher priority */
    size_t n_binding_max;        /* pods whose decision is being written; 0: 512 */
    uint64_t binding_timeout_ms; /* for the conditions of devices to come true; 0: 600 s */
    /* What the decisions in one turn of the loop may cost, in the allocator's units of ten
     * nanoseconds: what takes longer goes on in the next turn, or is searched for beside the loop.
     * 0: a millisecond or two. */
    uint64_t turn_budget;
    /* Whether a controller of this process is about to make the claims of a pod: then nothing is
     * said of a pod that waits for them. May be NULL. */
    bool (*is_making_claims)(void *ctx, dv_str namespace, dv_str pod);
    /* Called when devices may have become free, or others have come: who got DV_SCHED_NOT_NOW or
     * DV_SCHED_BUSY may ask again. Possibly many times a turn. May be NULL. */
    void (*devices_changed)(void *ctx);
    void *ctx;
    /* Where its families are added (scheduler_schedule_attempts_total and so on), and stay; NULL:
     * nowhere. Must outlive it. */
    struct dv_metrics *metrics;
};

/* Opens its views; decides nothing before all of them have told what is there. */
struct dv_sched *dv_sched_open(struct dv_loop *loop, const struct dv_sched_options *options,
                               struct dv_err *err);
/* Gives up waiting for what is being written; what is written stays, and is gone on with by the
 * next one that is opened. `closed` may be NULL. */
void dv_sched_close(struct dv_sched *sched, dv_closed_fn *closed, void *ctx);
/* All views have told what is there. */
bool dv_sched_is_synced(const struct dv_sched *sched);

/* ---- devices for those who are no pods ---- */

enum dv_sched_answer {
    DV_SCHED_HELD,
    DV_SCHED_NOT_NOW, /* devices that would do are in use */
    DV_SCHED_NEVER,   /* no devices of the node would do, or the claim is at fault */
    DV_SCHED_BUSY,    /* nothing can be told in this turn */
};

/* Chooses devices for the claim on the node as for a pod, and holds them, so that no pod gets them.
 * The result is in `arena`, but for texts of slices: copy it, write it into the claim, and let go
 * when the claim shows it. `err` is set unless they are held. */
enum dv_sched_answer dv_sched_hold(struct dv_sched *sched, dv_str node,
                                   const struct dv_api_resource_claim *claim,
                                   struct dv_arena *arena,
                                   struct dv_api_allocation_result *allocation, struct dv_err *err);
void dv_sched_let_go(struct dv_sched *sched, const struct dv_api_allocation_result *allocation);
/* Whether the node's devices would do for the claim if nobody held any: HELD (nothing is), NEVER
 * with the reason, or BUSY. */
enum dv_sched_answer dv_sched_would_do(struct dv_sched *sched, dv_str node,
                                       const struct dv_api_resource_claim *claim,
                                       struct dv_err *err);

/* What stands in the way of claims on a node, device by device. */
struct dv_sched_verdict {
    dv_str node;
    struct dv_explanation explanation;
    struct dv_alloc_miss miss; /* of a node that does not fit */
};
struct dv_sched_verdicts {
    struct dv_sched_verdict *v; /* the nearest first */
    size_t n;
    size_t n_nodes; /* how many there are; some are not asked when there are many */
};
/* Explains why the claims, which are to be allocated together, have no devices yet: on the node of
 * that name or, without one, on the first nodes by name. Takes some milliseconds at most; what is
 * not found out by then is said not to be. All in `arena`, but for names, which are borrowed until
 * the next turn. DV_UNAVAILABLE: nothing can be told in this turn. */
bool dv_sched_explain(struct dv_sched *sched, const struct dv_api_resource_claim *const *claims,
                      size_t n_claims, dv_str node, struct dv_arena *arena,
                      struct dv_sched_verdicts *verdicts, struct dv_err *err);
/* How many devices the first request of the claim could have on the node now, up to what it wants;
 * false: that cannot be told in this turn. Costs as much as a few choices. */
bool dv_sched_count_free(struct dv_sched *sched, dv_str node,
                         const struct dv_api_resource_claim *claim, uint64_t *n);
/* Shows the devices of the class on the node, up to a thousand, each with what its slice says of
 * its driver and pool. False: there is no such class. */
bool dv_sched_each_of_class(struct dv_sched *sched, dv_str node, dv_str class,
                            void (*see)(void *ctx, const struct dv_api_resource_slice_spec *slice,
                                        const struct dv_api_device *device),
                            void *ctx);

/* Shows all device classes, in no particular order. */
void dv_sched_each_class(const struct dv_sched *sched,
                         void (*see)(void *ctx, const struct dv_api_device_class *class),
                         void *ctx);
bool dv_sched_has_class(const struct dv_sched *sched, dv_str class);
/* The class that pods get devices of when they ask for this extended resource; empty: none.
 * Borrowed until the next turn of the loop. */
dv_str dv_sched_class_serving(const struct dv_sched *sched, dv_str resource);

/* ---- numbers ---- */

enum dv_sched_result {
    DV_SCHED_SCHEDULED,
    DV_SCHED_UNSCHEDULABLE,
    DV_SCHED_ERROR,
    DV_SCHED_N_RESULTS,
};

enum dv_sched_queue {
    DV_SCHED_ACTIVE,
    DV_SCHED_BACKOFF,
    DV_SCHED_WAITING, /* no node fits: until an event that can help */
    DV_SCHED_GATED,   /* a claim is not there yet, or it has scheduling gates */
    DV_SCHED_N_QUEUES,
};

struct dv_sched_numbers {
    uint64_t n_attempts[DV_SCHED_N_RESULTS];
    size_t n_pending[DV_SCHED_N_QUEUES];
    size_t n_binding;   /* pods whose decision is being written */
    size_t n_in_flight; /* claims with an allocation that is not written */
    size_t n_unsaid;    /* conditions and events that are yet to be written */
    uint64_t n_events_dropped;
    uint64_t n_preempted;   /* pods that were sent away for others */
    uint64_t n_conflicts;   /* devices given away that another scheduler was first to give */
    uint64_t n_node_visits; /* nodes that were looked at, and calls of the allocator */
    uint64_t n_allocations;
    bool is_searching;      /* an attempt, or a change of a slice, is put off until a later turn */
    uint64_t n_jobs;        /* searches that were made beside the loop */
    uint64_t turn_cost_max; /* the most that the decisions of one turn have cost, in its units */
};

void dv_sched_get_numbers(const struct dv_sched *sched, struct dv_sched_numbers *numbers);

#endif

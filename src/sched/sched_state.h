/* sched_state.h - the scheduler's state, and what its files do for each other.
 *
 *     views -> pods, claims, nodes, slices: records        (what is there)
 *     queue -> decide -> bind -> write                      (what is done about it)
 *
 * A decision is made in memory and counts at once: the node's room is taken, the devices are held
 * in the inventory. Nothing is looked up by walking what is allocated. What takes long is made in
 * several turns of the loop (attempt.h). */
#ifndef DV_SCHED_STATE_H
#define DV_SCHED_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "affinity/affinity.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "sched/fit.h"
#include "sched/sched.h"

struct dv_arena;
struct dv_counter;
struct dv_family;
struct dv_gauge;
struct dv_histogram;
struct dv_json;
struct dv_inventory;
struct dv_inventory_slice;
struct dv_sched_attempt;
struct dv_sched_claim;
struct dv_sched_crowd;
struct dv_sched_binding;
struct dv_sched_pod;

/* ---- nodes ---- */

struct dv_sched_node {
    size_t place; /* its index in sched->nodes, while the node exists */
    /* The tick at which something last changed that may let a pod fit which did not. */
    uint64_t improved;
    uint64_t version;         /* counts changes of the node and of what is taken of it */
    struct dv_object *object; /* NULL: there is no such node, but pods are on it */
    struct dv_sched_room room;
    dv_str name;
    size_t n_pods;
    struct dv_affinity_node near; /* it has the pods on the node, of struct dv_sched_placed */
};

/* ---- claims ---- */

/* A device that a claim holds alone. These records show when another scheduler has given the same
 * device to another claim. */
struct dv_sched_taken {
    dv_str key;
    struct dv_sched_claim *claim;
    struct dv_sched_taken *next_of_claim;
    struct dv_sched_taken *rival; /* others that hold the same device */
};

enum dv_sched_claim_change {
    DV_SCHED_CHANGE_NONE,
    /* Reserve the claim for the pod, and write the allocation that was decided on. */
    DV_SCHED_CHANGE_RESERVE,
    DV_SCHED_CHANGE_DROP, /* undo what DV_SCHED_CHANGE_RESERVE did */
    /* Give back the devices: the pod cannot be where they are, and nobody else uses them. */
    DV_SCHED_CHANGE_DEALLOCATE,
    DV_SCHED_CHANGE_DELETE, /* delete a claim for extended resources that was left over */
};

/* A pod's use of a claim. */
struct dv_sched_pod_claim {
    struct dv_sched_pod *pod;
    struct dv_sched_claim *claim;
    struct dv_link user; /* in claim->users */
    /* The write that is wanted. */
    struct dv_link want; /* in claim->wanted or claim->writing */
    enum dv_sched_claim_change change;
    void (*written)(struct dv_sched_pod_claim *use, const struct dv_err *err);
    bool is_reserved;    /* by the current attempt */
    bool is_allocated;   /* by the current attempt */
    bool is_lost;        /* another scheduler was first to allocate the claim */
    const char *problem; /* why the change cannot be made; for sched_write.c */
};

enum dv_sched_claim_step {
    DV_SCHED_CLAIM_IDLE,
    DV_SCHED_CLAIM_READING,
    DV_SCHED_CLAIM_MARKING, /* the finalizer comes or goes */
    DV_SCHED_CLAIM_WRITING, /* the status */
    DV_SCHED_CLAIM_DELETING,
    DV_SCHED_CLAIM_PAUSING, /* until the write is tried again */
    DV_SCHED_CLAIM_BUSY,    /* callbacks of those who waited are running */
};

struct dv_sched_claim {
    struct dv_sched *sched;
    dv_str key; /* "namespace/name" */
    /* The newest version that is known, maybe packed; NULL: there is no such claim. */
    struct dv_object *object;
    uint64_t shown;       /* the version that the view has shown last */
    bool is_told;         /* its users are being told, so the record must stay */
    uint64_t found_mark;  /* sched->n_found, when a pod last added it: see find_claims */
    struct dv_list users; /* of struct dv_sched_pod_claim */
    /* What it holds in the inventory: the allocation of `held_by`, or one that was decided on and
     * is not written yet (`assumed`). */
    struct dv_object *held_by;
    uint64_t held_since; /* the version of the claim that brought the allocation */
    struct dv_sched_taken *taken;
    const struct dv_api_allocation_result *assumed;
    struct dv_sched_pod_claim *assumed_by;
    dv_str extended_for; /* uid of the pod whose extended resources it serves; empty: none */
    char *extended_text;
    /* Another one for the same pod: another scheduler's, or left by an answer that was lost. */
    struct dv_sched_claim *next_extended;
    enum dv_sched_claim_step step;
    struct dv_list wanted;          /* of struct dv_sched_pod_claim */
    struct dv_sched_writer *writer; /* NULL while nothing is written, as nearly always */
};

/* What a claim needs while something is written to it: sched_write.c. */
struct dv_sched_writer {
    struct dv_sched_claim *claim;
    struct dv_list writing; /* of struct dv_sched_pod_claim: what the current write is for */
    struct dv_request request;
    struct dv_api_delete_options delete_options;
    struct dv_api_preconditions preconditions;
    struct dv_arena *arena;
    struct dv_timer pause;
    unsigned n_pauses;
    uint64_t based; /* the version that the current write was made from */
};

/* ---- pods ---- */

enum dv_sched_pod_state {
    DV_SCHED_POD_GATED,
    DV_SCHED_POD_ACTIVE,
    DV_SCHED_POD_BACKOFF,
    DV_SCHED_POD_WAITING,
    DV_SCHED_POD_BINDING,
    DV_SCHED_POD_BOUND, /* bound, until the view shows it */
};

struct dv_sched_pod {
    struct dv_sched *sched;
    dv_str key; /* "namespace/name" */
    struct dv_object *object;
    enum dv_sched_pod_state state;
    bool is_preset;   /* bound by others: only its claims have to be allocated */
    bool is_gone;     /* deleted or replaced while it is being bound */
    bool is_woken;    /* woken by an event: when it fits, the next of its crowd may fit too */
    bool is_late;     /* its last search was given up: others of its priority go first */
    bool is_extended; /* classes serve some of its extended resources */
    bool is_related;  /* it wants others near or apart, or others want that of it */
    struct dv_sched_pod_claim *claims;
    size_t n_claims;
    /* Its use of the claim for its extended resources: made now, or left over. */
    struct dv_sched_pod_claim extended;
    size_t n_writes; /* writes of claims that no binding waits for */
    struct dv_sched_crowd *crowd;
    struct dv_link waits;                   /* in crowd->waiting, or in class_wait->pods */
    struct dv_sched_class_wait *class_wait; /* the class that it waits for; NULL: none */
    struct dv_link wakes;                   /* in sched->woken */
    size_t place;                           /* in the queue's heap, from 1 */
    int64_t priority;
    uint64_t order; /* of arrival */
    /* Fires at the end of its back-off, or when it shall say that it waits. */
    struct dv_timer timer;
    unsigned n_attempts; /* attempts in a row that failed */
    uint64_t backoff_until_ms;
    uint64_t seen_ns;
    struct dv_sched_binding *binding;
    /* The node that others were sent away from for it; NULL: none. */
    char *nominated;
    struct dv_link nominates; /* in sched->nominated */
    size_t n_evictions;       /* requests for it that are under way */
    /* Until then victims may still have devices that they are about to give back; 0: none has. */
    uint64_t releases_until_ms;
    /* The node that was decided on: its room is taken before the view shows the pod there. */
    struct dv_sched_node *assumed;
    struct dv_object *assumed_as;
    /* Its PodScheduled condition as it was last said: say.c. */
    struct dv_link says;
    char *said;
    const char *said_reason;
    bool is_saying;
    struct dv_request say_request;
    struct dv_arena *say_arena;
};

/* ---- events ---- */

struct dv_sched_said_event {
    struct dv_link link;
    struct dv_sched *sched;
    struct dv_request request;
    struct dv_api_event value;
    unsigned n_failures;
    char texts[]; /* of the value */
};

/* ---- pools: on which node what is given back may help ---- */

struct dv_sched_pool {
    dv_str key; /* "driver/name" */
    dv_str node;
    size_t n_slices;
    size_t n_wide; /* slices whose devices other nodes may use, too */
};

struct dv_sched_slice {
    struct dv_object *object; /* as the driver published it, without the taints of rules; kept */
    struct dv_inventory_slice *place;
    struct dv_sched_pool *pool;
    bool is_wide;
};

/* A change of a slice that is not in the inventory yet. At a start thousands of slices are told in
 * one turn of the loop: they are put into the inventory over several turns. */
struct dv_sched_slice_change {
    struct dv_link link;   /* in sched->slice_changes */
    dv_str name;           /* in the same block */
    struct dv_object *now; /* kept; NULL: it is gone */
    /* Its taints have changed by a rule: put it in again even when the slice is the same. */
    bool is_retainted;
};

struct dv_sched_class_wait {
    dv_str name;
    struct dv_list pods;
};

struct dv_sched_metrics {
    struct dv_counter *attempts[DV_SCHED_N_RESULTS];
    struct dv_gauge *pending[DV_SCHED_N_QUEUES];
    struct dv_histogram *attempt_seconds[DV_SCHED_N_RESULTS];
    struct dv_histogram *pod_seconds;
    struct dv_counter *claim_creates[2]; /* failure, success */
    struct dv_family *conditions;
    struct dv_family *condition_seconds;
};

struct dv_sched_priority {
    int64_t priority;
    size_t n_pods;
};

enum {
    DV_SCHED_VIEW_NAMESPACES,
    DV_SCHED_VIEW_NODES,
    DV_SCHED_VIEW_CLASSES,
    DV_SCHED_VIEW_SLICES,
    DV_SCHED_VIEW_RULES,
    DV_SCHED_VIEW_CLAIMS,
    DV_SCHED_VIEW_PODS,
    DV_SCHED_VIEW_BUDGETS,
    DV_N_SCHED_VIEWS
};

struct dv_sched {
    struct dv_loop *loop;
    struct dv_cluster *cluster;
    struct dv_sched_options options;
    dv_str name;
    struct dv_view *views[DV_N_SCHED_VIEWS];
    size_t n_unsynced;
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
    struct dv_task end;
    struct dv_list woken; /* pods that one of their many claims has woken */
    struct dv_task wake;
    size_t n_requests; /* of all kinds, that are not answered yet */
    uint64_t tick;     /* counts improvements: see `improved` of node and crowd */
    uint64_t n_found;  /* counts how often the claims of a pod were gathered */

    struct dv_inventory *inventory;
    struct dv_map slices; /* of struct dv_sched_slice, by name */
    struct dv_list slice_changes;
    struct dv_map slice_changes_by_name;
    struct dv_map pools;       /* of struct dv_sched_pool */
    struct dv_map class_waits; /* of struct dv_sched_class_wait */

    struct dv_sched_resources resources;
    struct dv_map nodes_by_name;
    DV_VEC(struct dv_sched_node *) nodes; /* that exist, in no order */
    size_t next_node;
    struct dv_sched_amounts amounts;  /* of the pod that is being looked at; scratch memory */
    struct dv_sched_attempt *attempt; /* the one that is under way; NULL: none is */
    uint64_t shape;                   /* changes with the nodes and classes that are there */
    uint64_t n_slice_changes;         /* of the inventory */
    /* What is left of the current turn, in the allocator's units of cost. */
    uint64_t budget_left;
    uint64_t turn_cost; /* what the current turn has cost so far */

    struct dv_map claims;   /* by key */
    struct dv_map taken;    /* of struct dv_sched_taken, by device */
    struct dv_map extended; /* claims for extended resources, by the pod's uid */
    size_t n_in_flight;

    struct dv_map placed; /* of struct dv_sched_placed, by key */
    uint64_t n_placings;  /* counts how often one of them came, went or changed */
    /* How many pods on nodes have which priority; the lowest first. */
    DV_VEC(struct dv_sched_priority) priorities;
    struct dv_list nominated; /* of struct dv_sched_pod: they wait for victims to go */
    size_t n_nominated;
    struct dv_list evictions; /* sched_evict.c */
    struct dv_affinity *affinity;
    size_t n_wanting; /* crowds that look at other pods */
    struct dv_task relate;

    struct dv_map pods; /* by key */
    DV_VEC(struct dv_sched_pod *) heap;
    uint64_t n_arrivals;
    size_t n_pending[DV_SCHED_N_QUEUES];
    struct dv_task turn;
    struct dv_slabs memory;  /* of claims, what they hold, and pods that have a node */
    struct dv_timer rest;    /* until the inventory gives back what nobody has used meanwhile */
    bool is_used;            /* it was, since the last look */
    struct dv_list bindings; /* of struct dv_sched_binding */
    size_t n_binding;

    struct dv_map crowds;
    struct dv_list crowds_waiting;
    struct dv_list idle;
    size_t n_idle;
    size_t memo_bytes;

    struct dv_list to_say; /* of struct dv_sched_pod */
    size_t n_unsaid;
    size_t n_saying;
    struct dv_timer say_again;
    unsigned n_say_pauses;
    struct dv_timer tell_again;
    struct dv_timer tell_late; /* events wait for others until it fires */
    struct dv_list events;     /* of struct dv_sched_said_event, to be told and being told */
    struct dv_list telling;
    size_t n_events;
    size_t n_telling;

    struct dv_arena *scratch; /* of the current attempt */
    struct dv_buf text;
    struct dv_buf why;
    struct dv_buf crowd_key;
    struct dv_sched_metrics metrics;
    struct dv_sched_numbers numbers;
};

/* ---- sched_nodes.c ---- */

void dv_sched_node_changed(void *ctx, struct dv_object *old, struct dv_object *now);
/* Returns the record of that node, making one when there is none. */
struct dv_sched_node *dv_sched_node(struct dv_sched *sched, dv_str name);
/* A pod comes onto the node, or leaves it. */
void dv_sched_node_take(struct dv_sched *sched, struct dv_sched_node *node,
                        const struct dv_api_pod_spec *pod);
void dv_sched_node_give_back(struct dv_sched *sched, struct dv_sched_node *node,
                             const struct dv_api_pod_spec *pod);
/* Something got better on the node: of each crowd that may fit there now, one pod is woken. */
void dv_sched_node_improved(struct dv_sched *sched, struct dv_sched_node *node);
void dv_sched_nodes_free(struct dv_sched *sched);

/* ---- sched_slices.c: slices, taint rules and classes, into the inventory ---- */

void dv_sched_slice_changed(void *ctx, struct dv_object *old, struct dv_object *now);
bool dv_sched_slices_are_behind(const struct dv_sched *sched);
/* Whether the inventory can be asked in this turn by those who are no pods (sched_hold.c). */
bool dv_sched_can_be_asked(const struct dv_sched *sched, struct dv_err *err);
/* Puts the changes that were told into the inventory, as many as the budget of this turn has room
 * for. */
void dv_sched_slices_catch_up(struct dv_sched *sched);
void dv_sched_rule_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_sched_class_changed(void *ctx, struct dv_object *old, struct dv_object *now);
/* Devices of that pool are free again: pods that may use them are woken. */
void dv_sched_pool_improved(struct dv_sched *sched, dv_str driver, dv_str pool);
void dv_sched_wait_for_class(struct dv_sched_pod *pod, dv_str name);
void dv_sched_leave_class(struct dv_sched_pod *pod);
void dv_sched_slices_free(struct dv_sched *sched);

/* ---- sched_claims.c ---- */

void dv_sched_claim_changed(void *ctx, struct dv_object *old, struct dv_object *now);
/* Returns the record of that claim, making one when there is none. */
struct dv_sched_claim *dv_sched_claim(struct dv_sched *sched, dv_str namespace, dv_str name);
const struct dv_api_resource_claim *dv_sched_claim_value(const struct dv_sched_claim *claim);
/* Takes over a newer state, from the view or from the answer to a write; an older one is
 * ignored. */
void dv_sched_claim_learn(struct dv_sched_claim *claim, struct dv_object *object);
void dv_sched_claim_assume(struct dv_sched_pod_claim *use,
                           const struct dv_api_allocation_result *allocation);
/* What was decided on is not going to be written: the devices are given back, and pods that share
 * the claim look at it again. */
void dv_sched_claim_unassume(struct dv_sched_claim *claim);
/* Whether another claim was given one of its devices before. */
bool dv_sched_claim_is_rivalled(const struct dv_sched_claim *claim);
/* Frees the record when nothing needs it any more. */
void dv_sched_claim_drop(struct dv_sched_claim *claim);
void dv_sched_claims_free(struct dv_sched *sched);

/* ---- sched_ask.c: requests for a binding ---- */

/* How long to wait before a request that failed is made again, after `n_pauses` others. */
uint64_t dv_sched_pause_ms(uint64_t n_pauses);

/* ---- sched_write.c: one write of a claim at a time, for all who want one ---- */

/* Starts a write; use->change says which. use->written runs once; not before this has returned,
 * unless the claim is gone. */
void dv_sched_write(struct dv_sched_pod_claim *use);
/* Cancels the write that is under way: the scheduler is closing. */
void dv_sched_writer_free(struct dv_sched_writer *writer); /* NULL is fine */
void dv_sched_write_cancel(struct dv_sched_claim *claim);

/* ---- sched_pods.c ---- */

void dv_sched_pod_changed(void *ctx, struct dv_object *old, struct dv_object *now);
/* Looks at the pod again from the start: it is queued when its claims are there, and gated
 * otherwise. */
void dv_sched_pod_reconsider(struct dv_sched_pod *pod);
/* A claim of the pod changed, or a class that it waits for: goes on with what it is doing. */
void dv_sched_pod_woken(struct dv_sched_pod *pod);
/* Like dv_sched_pod_woken, because of one claim of the pod: when it has many, once in the next turn
 * for all that change in this one. */
void dv_sched_pod_woken_by_claim(struct dv_sched_pod *pod);
/* Removes the pod from all queues. It is freed at once, or when what is being written for it is
 * answered. */
void dv_sched_pod_forget(struct dv_sched_pod *pod);
/* Finds the name of the claim for an entry. False: the claim is not made yet. An empty name: the
 * controller has found that none is needed. */
bool dv_sched_claim_name(const struct dv_map *statuses,
                         const struct dv_api_pod_resource_claim *entry, dv_str *name);
const struct dv_api_pod *dv_sched_pod_value(const struct dv_sched_pod *pod);
void dv_sched_pod_assume(struct dv_sched_pod *pod, struct dv_sched_node *node);
void dv_sched_pod_unassume(struct dv_sched_pod *pod);
/* Frees a forgotten pod when nothing that is under way needs it any more. */
void dv_sched_pod_release(struct dv_sched_pod *pod);
void dv_sched_pods_start(struct dv_sched *sched); /* when all views are synced */
void dv_sched_pods_free(struct dv_sched *sched);

/* ---- sched_queue.c ---- */

void dv_sched_set_state(struct dv_sched_pod *pod, enum dv_sched_pod_state state);
/* Puts the pod into the queue, at once or when its back-off has ended. */
void dv_sched_queue(struct dv_sched_pod *pod);
void dv_sched_unqueue(struct dv_sched_pod *pod);
/* Has decisions made in the next turn of the loop, if there are any to make. */
void dv_sched_turn(struct dv_sched *sched);

/* To be called when the inventory is asked: it gives back what it makes for that some time later.
 */
void dv_sched_inventory_used(struct dv_sched *sched);
/* Counts what is done in this turn, so that the scheduler gives way to others before it takes
 * long. */
void dv_sched_spend(struct dv_sched *sched, uint64_t cost);
/* Whether enough of this turn's budget is left to begin something more. */
bool dv_sched_has_budget(const struct dv_sched *sched);

/* ---- decide.c ---- */

/* Begins an attempt, and ends it if that takes little; otherwise dv_sched_attempt_go_on is called
 * in the next turn. */
void dv_sched_decide(struct dv_sched_pod *pod);
void dv_sched_attempt_go_on(struct dv_sched *sched);
const struct dv_sched_pod *dv_sched_attempt_pod(const struct dv_sched *sched);
bool dv_sched_attempt_is_waiting(const struct dv_sched *sched); /* for a job that searches */
/* Drops the attempt under way, if there is one. */
void dv_sched_attempt_drop(struct dv_sched *sched);

/* ---- bind.c ---- */

struct dv_sched_decision {
    struct dv_sched_node *node;
    /* For each of `claims`; in the scratch arena. */
    const struct dv_api_allocation_result *allocations;
    struct dv_sched_pod_claim **claims; /* the claims that are to be allocated */
    size_t n_claims;
    /* The requests of the claim for extended resources, when the pod needs one: its allocation is
     * the last. */
    struct dv_api_device_request *requests;
    size_t n_requests;
    const struct dv_api_container_extended_resource_request *mappings;
    size_t n_mappings;
};

void dv_sched_bind(struct dv_sched_pod *pod, const struct dv_sched_decision *decision);
void dv_sched_binds_cancel(struct dv_sched *sched);

/* ---- conditions.c: devices that say when they are ready ---- */

bool dv_sched_conditions_hold(const struct dv_api_resource_claim *claim);
/* Whether one of the failure conditions is true; err says which. */
bool dv_sched_conditions_have_failed(const struct dv_api_resource_claim *claim, struct dv_err *err);
/* Like dv_sched_conditions_have_failed, and also true when the conditions took too long. */
bool dv_sched_conditions_failed(const struct dv_sched *sched,
                                const struct dv_api_resource_claim *claim, struct dv_err *err);

/* ---- say.c: conditions and events ---- */

/* Sets PodScheduled to False with this reason and text, and makes an event of it, unless it said
 * the same before. */
void dv_sched_say(struct dv_sched_pod *pod, const char *reason, dv_str text);
/* Whether so few events wait that decisions may add more. */
bool dv_sched_says_keep_up(const struct dv_sched *sched);
/* Writes events that waited for others, when there are enough of them or few pods to come. */
void dv_sched_says_look(struct dv_sched *sched);
/* Sets the condition among those of the status. */
void dv_sched_set_condition(struct dv_api_pod_status *status,
                            const struct dv_api_pod_condition *now, struct dv_arena *arena);
/* {"status":{"conditions":[...]}} */
struct dv_json *dv_sched_condition_patch(const struct dv_api_pod_condition *now,
                                         struct dv_arena *arena);
/* Like dv_sched_say_event, for a pod that is not ours. */
void dv_sched_say_event_of(struct dv_sched *sched, const struct dv_api_object_meta *meta,
                           const char *type, const char *reason, const char *action, dv_str note);
void dv_sched_say_event(struct dv_sched_pod *pod, const char *type, const char *reason,
                        const char *action, dv_str note);
/* Drops what the pod has yet to say. False: a request that says it is under way; wait for its
 * answer before the pod is bound. */
bool dv_sched_say_nothing(struct dv_sched_pod *pod);
void dv_sched_say_cancel(struct dv_sched_pod *pod);
void dv_sched_says_cancel(struct dv_sched *sched);

/* ---- sched_metrics.c ---- */

void dv_sched_metrics_open(struct dv_sched *sched);
void dv_sched_metrics_close(struct dv_sched *sched);
void dv_sched_count_attempt(struct dv_sched *sched, enum dv_sched_result result, uint64_t ns);
void dv_sched_count_conditions(struct dv_sched *sched, dv_str driver, const char *status,
                               uint64_t ns);

/* ---- sched.c ---- */

void dv_sched_request(struct dv_sched *sched, struct dv_request *request);
/* A request was answered. Call it last: it may free the scheduler. */
void dv_sched_request_done(struct dv_sched *sched);
struct dv_time dv_sched_now(const struct dv_sched *sched);
/* An empty inventory with the features that these gates give. */
struct dv_inventory *dv_sched_new_inventory(unsigned gates);
/* Tells those who are no pods that devices may have become free. */
void dv_sched_tell_devices(const struct dv_sched *sched);
/* "namespace/name" into sched->text. */
dv_str dv_sched_key(struct dv_sched *sched, dv_str namespace, dv_str name);

#endif

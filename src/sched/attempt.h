/* attempt.h - one attempt to find a place for a pod. For decide.c and its neighbours.
 *
 * It is made in parts, one in a turn of the loop, within the turn's budget: nodes are looked at,
 * some of them are asked for devices, one is chosen. Between two turns anything may change. What
 * the attempt borrows it has references to; what it found out is held against what is there when it
 * decides.
 *
 *     BEGIN -> [COUNTING] -> NODES -> RANKING -> CHOOSING -> decided, or [PREEMPTING] given up
 *       ^                      ^                    |
 *       |                      +--- none of them ---+
 *       +--- nodes or classes came or went, or a claim of the pod is another one */
#ifndef DV_SCHED_ATTEMPT_H
#define DV_SCHED_ATTEMPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "sched/fit.h"
#include "sched/placed.h"

struct dv_sched_crowd;
struct dv_sched_crowd_reason;
struct dv_api_pod;
struct dv_api_resource_claim;
struct dv_object;
struct dv_sched;
struct dv_sched_node;
struct dv_sched_pod;
struct dv_sched_pod_claim;

/* Why a node is out when a claim that is allocated already cannot be used there. */
#define DV_SCHED_UNAVAILABLE "resourceclaim not available on the node"
/* Why a node is out that does not have the devices. */
#define DV_SCHED_NO_DEVICES "cannot allocate all claims"

/* What a node would give the pod. */
struct dv_sched_offer {
    struct dv_alloc_result result;
    struct dv_extended extended;
    bool is_known;
    bool is_refused;
    uint64_t version; /* the inventory's version when it was found */
};

struct dv_sched_candidate {
    struct dv_sched_node *node;
    uint64_t node_version; /* node->version when it was looked at */
    struct dv_sched_merit merit;
    struct dv_sched_offer *offer; /* NULL: not asked for yet */
};

/* A search that is made on another thread. */
struct dv_sched_job {
    struct dv_work work;
    bool is_running;
    bool is_answered;
    atomic_bool is_cancelled;
    struct dv_object *node; /* a reference while it runs */
    struct dv_alloc_node where;
    struct dv_sched_offer *offer; /* the offer that the job searches for */
    size_t n_asked;
    uint64_t cost_max;
    uint64_t begun; /* the inventory's version when it began */
    struct dv_alloc_result result;
    struct dv_err err;
};

/* The search for a node where pods of lower priority could make room. */
struct dv_sched_search {
    size_t start;
    size_t n_seen;
    size_t n_in_vain; /* nodes that could be right, but nobody there can help */
    size_t n_candidates;
    struct dv_sched_node *node; /* the best of them */
    struct dv_sched_toll toll;
};

struct dv_sched_attempt {
    struct dv_sched *sched;
    struct dv_sched_pod *pod;
    struct dv_object *object; /* the pod as it was when the attempt began; a reference */
    const struct dv_api_pod *value;
    struct dv_sched_crowd *crowd;
    uint64_t begin_ns;
    enum attempt_stage {
        DV_SCHED_AT_BEGIN,
        DV_SCHED_AT_COUNTING,   /* of pods that it wants near or apart */
        DV_SCHED_AT_NODES,      /* they are looked at */
        DV_SCHED_AT_RANKING,    /* all candidates are asked for devices, */
        DV_SCHED_AT_CHOOSING,   /* or one after the other */
        DV_SCHED_AT_PREEMPTING, /* none of them: who could make room? */
    } stage;
    struct dv_sched_pod_claim **open; /* claims that are not allocated */
    size_t n_open;
    /* What is asked of the allocator; with room for one claim more. */
    const struct dv_api_resource_claim **asked;
    /* Of the pod, as they were when the attempt began: references. */
    struct dv_object **claims;
    size_t n_claims;
    DV_VEC(struct dv_sched_candidate) candidates;
    size_t n_ranked; /* so many of the candidates have been ranked */
    /* The nodes that are looked at: all, or those that the pod names. */
    struct dv_sched_node *const *nodes;
    size_t n_nodes;
    bool is_pinned;      /* they are those that the pod names */
    size_t start;        /* the first node that is looked at, */
    size_t n_seen;       /* how many were, */
    size_t n_wanted;     /* and how many candidates are enough */
    uint64_t visit_cost; /* of looking at a node */
    bool has_alternatives;
    bool is_contradiction; /* the nodes that its terms name have none in common */
    bool is_nowhere;       /* the pod is bound to a node that does not exist */
    bool is_early;         /* a claim is being allocated for another pod: that is no failure */
    bool is_error;
    const struct dv_sched_crowd_reason *fatal; /* why it must not be bound anywhere; NULL: it may */
    bool is_spent;                             /* a search was given up at its limit of cost */
    bool is_paused; /* it is put aside, or was: things may have changed since it began */
    bool is_dropped;
    uint64_t cost_left;
    uint64_t shape; /* sched->shape when it began */
    uint64_t tick;  /* sched->tick when it began */
    /* The pod's amounts while the attempt is paused; otherwise they are in sched->amounts. */
    struct dv_sched_amounts amounts;
    struct dv_sched_job job;
    struct dv_sched_search trial;
    bool preempts;     /* pods of lower priority were sent away for it, or are about to go */
    dv_str preemption; /* what is said about that; empty: nothing */
};

/* ---- visit.c ---- */

void dv_sched_attempt_count(struct dv_sched_attempt *attempt, struct dv_sched_crowd_reason *reason);
void dv_sched_attempt_turn_down(struct dv_sched_attempt *attempt, const struct dv_sched_node *node,
                                dv_str why);
/* Whether the pod may be on the node, devices aside. If not, the reason is remembered. */
bool dv_sched_attempt_may_be_on(struct dv_sched_attempt *attempt, const struct dv_sched_node *node);
/* Whether the claims of the pod that are allocated already can be used on the node. */
bool dv_sched_attempt_has_claims_at_hand(const struct dv_sched_attempt *attempt,
                                         const struct dv_sched_node *node);
/* Looks at the node, which becomes a candidate or is turned down. */
void dv_sched_attempt_visit(struct dv_sched_attempt *attempt, struct dv_sched_node *node);
/* What it takes to look at a node, by how much the pod asks of it. */
uint64_t dv_sched_attempt_visit_cost(const struct dv_sched_attempt *attempt);

/* ---- decide.c ---- */

void dv_sched_attempt_free(struct dv_sched_attempt *attempt);

/* ---- offer.c ---- */

enum dv_sched_offered {
    DV_SCHED_OFFERED,
    DV_SCHED_REFUSED, /* the reason is remembered by the crowd */
    DV_SCHED_PENDING, /* ask again in the next turn, or when the job has ended */
};

enum dv_sched_offered dv_sched_offer_ask(struct dv_sched_attempt *attempt,
                                         struct dv_sched_candidate *candidate);
/* Adds the claim that the pod would need on this node for its extended resources to what is asked
 * of the allocator. It depends on the node: where the node has the resource itself, no device is
 * needed. */
DV_CHECKED bool dv_sched_offer_add_extended(struct dv_sched_attempt *attempt,
                                            const struct dv_sched_node *at,
                                            struct dv_extended *extended, size_t *n_asked,
                                            struct dv_err *err);
/* What the search for devices on one node may cost for a pod of the crowd. */
uint64_t dv_sched_offer_cost(const struct dv_sched_crowd *crowd);
void dv_sched_offer_cancel(struct dv_sched_attempt *attempt);

/* ---- sched_check.c ---- */

/* Sorts its claims into those that are allocated and `open` ones. False, with the reason in
 * sched->why, when no node can be right. */
bool dv_sched_attempt_check(struct dv_sched_attempt *attempt);
/* Reads what the pod asks for into sched->amounts. */
void dv_sched_attempt_read(struct dv_sched_attempt *attempt);

/* ---- miss.c ---- */

/* What devices lack that were asked for, or else what nodes lack: the nearest miss in one line, the
 * same for all pods of the crowd, and found out once for all of them; empty: nothing can be told.
 * Borrowed from the crowd. */
dv_str dv_sched_attempt_miss(struct dv_sched_attempt *attempt);

/* ---- refuse.c ---- */

void dv_sched_attempt_give_up(struct dv_sched_attempt *attempt, dv_str before);
/* Whether a claim may be deallocated that keeps the pod from nodes: that comes first. */
bool dv_sched_attempt_may_clear(const struct dv_sched_attempt *attempt);
void dv_sched_attempt_fail(struct dv_sched_attempt *attempt);
/* Whether something is being cleared away first: then the attempt is over, and the pod is tried
 * again afterwards. */
bool dv_sched_attempt_clear(struct dv_sched_attempt *attempt);

#endif

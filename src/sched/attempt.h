/* attempt.h - one attempt to find a place for a pod. For decide.c and its neighbours. */
#ifndef DV_SCHED_ATTEMPT_H
#define DV_SCHED_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "base/str.h"
#include "base/vec.h"
#include "sched/fit.h"

struct crowd;
struct dv_api_pod;
struct dv_api_resource_claim;
struct dv_sched;
struct node;
struct pod;
struct pod_claim;

/* Why a node is out when a claim that is allocated already cannot be used there. */
#define UNAVAILABLE "resourceclaim not available on the node"

/* What a node would give the pod. */
struct offer {
    struct dv_alloc_result result;
    struct dv_extended extended;
};

struct candidate {
    struct node *node;
    struct merit merit;
    struct offer *offer; /* NULL: not asked for yet */
};

struct attempt {
    struct dv_sched *sched;
    struct pod *pod;
    const struct dv_api_pod *value;
    struct crowd *crowd;
    uint64_t begin_ns;
    struct pod_claim **open; /* claims that are not allocated */
    size_t n_open;
    const struct dv_api_resource_claim **asked; /* of the allocator; room for one more */
    DV_VEC(struct candidate) candidates;
    bool has_alternatives;
    bool is_nowhere; /* the node that it is on is not there */
    bool is_early;   /* a claim is being allocated for another pod: that is no failure */
    bool is_error;
    bool is_spent; /* what it may cost; to be tried again with more */
    uint64_t cost_left;
};

/* ---- check.c ---- */

/* Sorts its claims into those that are allocated and `open` ones. False, with the reason in
 * sched->why, when no node can be right. */
bool dv_sched_attempt_check(struct attempt *attempt);
/* Its amounts, into sched->amounts. */
void dv_sched_attempt_read(struct attempt *attempt);

/* ---- refuse.c ---- */

void dv_sched_attempt_give_up(struct attempt *attempt, dv_str before);
void dv_sched_attempt_fail(struct attempt *attempt);
/* Whether something has to be cleared away before it can be tried. */
bool dv_sched_attempt_clear(struct attempt *attempt);

#endif

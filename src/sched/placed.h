/* placed.h - the pods on nodes, and which of them make room for a pod of higher priority. For the
 * scheduler's own files.
 *
 *     no node fits -> eligible? -> each node: who would have to go? -> the node where that costs
 *     least -> its victims are told and deleted, the pod is nominated -> they are gone -> it is
 *     tried again
 *
 * Nothing is taken before the victims are gone, and nothing is remembered that the API does not
 * have: after a crash the pod is tried again, with the victims that are left. */
#ifndef DV_SCHED_PLACED_H
#define DV_SCHED_PLACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "affinity/affinity.h"
#include "base/str.h"

struct dv_api_object_meta;
struct dv_object;
struct dv_sched;
struct dv_sched_attempt;
struct dv_sched_node;
struct dv_sched_pod;

/* ---- sched_placed.c ---- */

struct dv_sched_placed {
    struct dv_affinity_pod pod; /* in node->near.pods */
    struct dv_sched_node *node;
    struct dv_object *object; /* kept, maybe packed */
    int64_t priority;
    dv_str key; /* "namespace/name" */
    char text[];
};

/* The pod is on the node from now on, or has changed there. */
void dv_sched_place(struct dv_sched *sched, struct dv_sched_node *node, struct dv_object *object);
/* It is no longer on that node. */
void dv_sched_unplace(struct dv_sched *sched, const struct dv_sched_node *node,
                      const struct dv_object *object);
/* Whether both have the same labels, which the terms of others go by. */
bool dv_sched_are_labels_equal(const struct dv_api_object_meta *a,
                               const struct dv_api_object_meta *b);
/* Pods, nodes or namespaces have changed: who waits because of other pods may be woken. */
void dv_sched_relations_changed(struct dv_sched *sched);
void dv_sched_namespace_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_sched_placed_free(struct dv_sched *sched);

/* ---- sched_preempt.c: which pods make room for others ---- */

/* A pod that could go. */
struct dv_sched_victim {
    struct dv_sched_placed *placed;
    int64_t priority;
    int64_t started_s; /* when it was started; the time of now for one that was not */
    bool is_spared;    /* a PodDisruptionBudget is against it */
};

/* What it costs to free a node. */
struct dv_sched_toll {
    size_t n_spared; /* victims that a PodDisruptionBudget is against */
    int64_t highest; /* the highest priority of its victims */
    int64_t sum;     /* of their priorities, each counted from the lowest that there is */
    size_t n;
    int64_t started_s; /* when the first of those with the highest priority was started */
};

/* For qsort: the most important first, by priority and then by age. */
int dv_sched_compare_victims(const void *a, const void *b);
void dv_sched_toll_add(struct dv_sched_toll *toll, const struct dv_sched_victim *victim);
bool dv_sched_toll_is_less(const struct dv_sched_toll *toll, const struct dv_sched_toll *than);

/* Nobody waits for a budget: they are looked at when somebody is to be sent away. */
void dv_sched_budget_changed(void *ctx, struct dv_object *old, struct dv_object *now);
/* Marks those for whom no PodDisruptionBudget has anything left: each that may go takes one of what
 * its budgets allow, in this order. */
void dv_sched_spare(struct dv_sched *sched, struct dv_sched_victim *victims, size_t n);

/* Whether it is worth a look; if not, the attempt knows the words. */
bool dv_sched_preempt_begin(struct dv_sched_attempt *attempt);
/* Looks at nodes, within the budget. False: it is called again. Afterwards attempt->preempts says
 * whether victims were sent away. */
bool dv_sched_preempt_look(struct dv_sched_attempt *attempt);

/* ---- preempt_trial.c: what would be ---- */

enum dv_sched_trial_result {
    DV_SCHED_TRIAL_UNHELPFUL, /* whoever leaves, the pod cannot be there */
    DV_SCHED_TRIAL_IN_VAIN,   /* nobody may leave, or not enough would */
    DV_SCHED_TRIAL_CANDIDATE,
};

struct dv_sched_victims {
    struct dv_sched_victim *v;
    size_t n;
    size_t size;
};

/* Whether the pod fits on the node also when those are there who are nominated for it and go
 * first; if not, sched->why says so. */
bool dv_sched_fits_beside_nominated(struct dv_sched_attempt *attempt,
                                    const struct dv_sched_node *node);

/* Finds out who would have to leave the node so that the pod fits; in the scratch arena. Everything
 * is as before afterwards. */
enum dv_sched_trial_result dv_sched_trial(struct dv_sched_attempt *attempt,
                                          struct dv_sched_node *node,
                                          struct dv_sched_victims *victims);

/* ---- sched_evict.c: victims are told and deleted ---- */

/* Whether what was begun for the pod is still under way: it must not send others away meanwhile. */
bool dv_sched_is_preempting(const struct dv_sched_pod *pod);
void dv_sched_evict(struct dv_sched_pod *pod, struct dv_sched_node *node,
                    const struct dv_sched_victims *victims);
/* The pod is to be on that node as soon as it can. */
void dv_sched_nominate(struct dv_sched_pod *pod, dv_str node);
void dv_sched_unnominate(struct dv_sched_pod *pod);
/* Pods that wait for victims on the node are tried again; NULL: those on any node. */
void dv_sched_wake_nominated(struct dv_sched *sched, const struct dv_sched_node *node);
/* A pod has left the node: what it held may be on its way back for a moment. */
void dv_sched_victim_is_gone(struct dv_sched *sched, const struct dv_sched_node *node);
/* Whether another pod is nominated for the node that goes before this one. `for_devices`: and waits
 * for devices there. */
bool dv_sched_is_promised(const struct dv_sched_pod *pod, const struct dv_sched_node *node,
                          bool for_devices);
void dv_sched_evictions_cancel(struct dv_sched *sched);

#endif

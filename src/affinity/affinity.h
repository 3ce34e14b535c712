/* affinity.h - how pods stand to each other: whom they want near, whom apart, and how evenly they
 * want to be spread over the values of a label of nodes (zones, hosts).
 *
 * An index knows nodes and the pods on them. Each distinct term that some pod has is a *tally*: how
 * many pods match it, by topology value, and how many pods have it. Both are kept change by change,
 * so that a decision does not look at other pods at all. A tally that is new is counted node by
 * node, in parts as large as the caller wants. Without terms, a pod costs an entry in a list.
 *
 * Pure: no clock, no I/O. All of an index is for one thread. */
#ifndef DV_AFFINITY_H
#define DV_AFFINITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"

struct dv_affinity;
struct dv_affinity_pod;
struct dv_api_node;
struct dv_api_pod;
struct dv_api_pod_spec;
struct dv_arena;
struct dv_object;
struct dv_str_entry;

/* A node, embedded in the caller's record of it. All zero, it is outside of the index, but pods may
 * be on it already. */
struct dv_affinity_node {
    const struct dv_api_node *value; /* while it is in the index; NULL: it is not */
    size_t place;                    /* among those that are */
    DV_VEC(struct dv_affinity_pod *) pods;
};

/* A pod on a node, embedded in the caller's record of it. */
struct dv_affinity_pod {
    struct dv_object *object; /* the caller's: it stays as long as the pod is on the node */
    struct dv_affinity_node *node;
    size_t place; /* in node->pods */
    bool is_terminating;
    bool has_terms;
};

struct dv_affinity *dv_affinity_new(void);
/* No node may be in it any more. */
void dv_affinity_free(struct dv_affinity *index); /* NULL is fine */

/* ---- what is there ---- */

/* The namespace has these labels from now on; `is_there` false: it is gone. */
void dv_affinity_set_namespace(struct dv_affinity *index, dv_str name,
                               const struct dv_str_entry *labels, size_t n_labels, bool is_there);
/* The node comes into the index with the pods that are on it; `value` is borrowed until it
 * leaves. A change of its labels or taints is to leave and to enter. */
void dv_affinity_enter(struct dv_affinity *index, struct dv_affinity_node *node,
                       const struct dv_api_node *value);
void dv_affinity_leave(struct dv_affinity *index, struct dv_affinity_node *node);
/* The object of the pod is on the node. A change of its labels is to remove and to add. */
void dv_affinity_add(struct dv_affinity *index, struct dv_affinity_node *node,
                     struct dv_affinity_pod *pod, struct dv_object *object);
void dv_affinity_remove(struct dv_affinity *index, struct dv_affinity_pod *pod);
void dv_affinity_node_fini(struct dv_affinity_node *node);
/* While it is on, pods are removed and added only to see what would be: nothing counts as a change
 * (dv_affinity_changed). */
void dv_affinity_set_trial(struct dv_affinity *index, bool is_on);

/* ---- what a pod wants ---- */

struct dv_affinity_wants;

/* Whether the pod has terms or constraints of its own. */
bool dv_affinity_has_terms(const struct dv_api_pod_spec *pod);
/* Whether a term of a pod that is on a node means this pod. */
bool dv_affinity_is_meant(struct dv_affinity *index, const struct dv_api_pod *pod);

/* Reads the terms and constraints of the pod; keeps nothing of it. The tallies for them are kept
 * until it is freed. The pods that are like it, in namespace, labels, terms, constraints, node
 * affinity and tolerations, may share it. */
struct dv_affinity_wants *dv_affinity_wants_new(struct dv_affinity *index,
                                                const struct dv_api_pod *pod);
void dv_affinity_wants_free(struct dv_affinity *index, struct dv_affinity_wants *wants);
/* Counts what is not counted yet, at about this cost in units of ten nanoseconds, and adds what it
 * was to *cost. False: there is more; nothing may be asked before it is true. */
bool dv_affinity_count(struct dv_affinity *index, struct dv_affinity_wants *wants,
                       uint64_t cost_max, uint64_t *cost);
/* Looks up which terms of others mean the pod: to be asked for each pod, because others come and
 * go. */
void dv_affinity_look_around(struct dv_affinity *index, struct dv_affinity_wants *wants,
                             const struct dv_api_pod *pod);
/* A number that grows when something changes that the answers for these wants come from. */
uint64_t dv_affinity_changed(const struct dv_affinity_wants *wants);
/* What it costs to ask about a node, in units of ten nanoseconds. */
uint64_t dv_affinity_cost(const struct dv_affinity_wants *wants);

enum dv_affinity_verdict {
    DV_AFFINITY_FITS,
    DV_AFFINITY_NO_KEY,   /* the node does not have the label of a spread constraint */
    DV_AFFINITY_SKEWED,   /* pods would be spread too unevenly */
    DV_AFFINITY_LONELY,   /* a pod that it wants near is not */
    DV_AFFINITY_TOO_NEAR, /* a pod that it wants apart is near */
    DV_AFFINITY_UNWANTED, /* a pod that is near wants it apart */
    DV_AFFINITY_TOO_MUCH, /* the pod has more terms than are looked at */
};

/* Whether the pod may be on the node, which is in the index: the first thing against it, in the
 * order of the reference. */
enum dv_affinity_verdict dv_affinity_check(const struct dv_affinity_wants *wants,
                                           const struct dv_affinity_node *node);
/* The words of the reference for it. */
dv_str dv_affinity_reason(enum dv_affinity_verdict verdict);
/* Whether it could change if pods left the node. */
bool dv_affinity_is_resolvable(enum dv_affinity_verdict verdict);

/* What speaks for the node by preferred terms, more is better; and how many pods are in its
 * domains by constraints that are only wished for, less is better, -1: it lacks a label. */
int64_t dv_affinity_attraction(const struct dv_affinity_wants *wants,
                               const struct dv_affinity_node *node);
int64_t dv_affinity_crowding(const struct dv_affinity_wants *wants,
                             const struct dv_affinity_node *node);

/* ---- nodes by name ---- */

struct dv_affinity_names {
    dv_str *v;
    size_t n;
    size_t size;
};

/* Whether every term of the pod's required node affinity names nodes; `names` are then the only
 * nodes that it can be on, maybe none, in `arena` and borrowed from the pod. */
bool dv_affinity_pinned(const struct dv_api_pod_spec *pod, struct dv_arena *arena,
                        struct dv_affinity_names *names);
/* Whether the pod can only be on one node, and not on this one: costs next to nothing. */
bool dv_affinity_is_pinned_elsewhere(const struct dv_api_pod_spec *pod, dv_str node);

#endif

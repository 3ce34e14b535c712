/* lack.h - what keeps a pod from all nodes, devices aside, in one sentence: the nearest miss. It is
 * said in conditions and events, and by those who explain. Pure. */
#ifndef DV_SCHED_LACK_H
#define DV_SCHED_LACK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_api_pod_spec;
struct dv_arena;
struct dv_object;
struct dv_sched_amounts;
struct dv_sched_resources;
struct dv_sched_room;

/* A node that has refused the pod. */
struct dv_sched_place {
    const struct dv_object *node;
    const struct dv_sched_room *room;
    dv_str why; /* what it said, in the reference's words, a line for each reason */
};

struct dv_sched_places {
    struct dv_sched_place *v;
    size_t n;
    size_t n_barred; /* nodes beside these that are open to the pod, and not to a claim of it that
                        is allocated already */
};

struct dv_sched_lack {
    dv_str text;      /* empty: there is nothing to say beside what the nodes said */
    bool is_amount;   /* it is about an amount of a resource, and not about which nodes are right */
    size_t n_as_near; /* nodes of which the same can be said; 0: the sentence is about all */
    const struct dv_sched_place *nearest; /* NULL: it is about all */
};

/* Finds the sentence about nodes that have all refused the pod: an amount that none of them has
 * ("pod wants cpu: 8, most on a node is 4 (n3)"), or what the one lacks that lacks least. In
 * `arena`. */
void dv_sched_lack_find(const struct dv_api_pod_spec *pod, const struct dv_sched_amounts *amounts,
                        const struct dv_sched_resources *resources,
                        const struct dv_sched_places *places, struct dv_arena *arena,
                        struct dv_sched_lack *lack);

#endif

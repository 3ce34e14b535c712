/* affinity_index.h - the index: topologies and tallies. For the files of this module. */
#ifndef DV_AFFINITY_INDEX_H
#define DV_AFFINITY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "affinity/affinity.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

struct dv_api_pod_affinity_term;
struct dv_api_topology_spread_constraint;
struct dv_arena;
struct dv_label_selector;

/* So many terms of a list are looked at: more would hold up the caller. */
#define N_TERMS_MAX 1000u
/* No domain: the node does not have the label. */
#define DOMAIN_NONE UINT32_MAX

/* A label of nodes, and which of its values each node has. Values are numbered: domains. */
struct dv_affinity_topology {
    dv_str key;
    size_t n_tallies; /* it is there as long as one is */
    /* By the place of the node: its domain plus one, 0: not looked up yet, or DOMAIN_NONE. */
    DV_VEC(uint32_t) of_node;
    struct dv_map domains;   /* of struct dv_affinity_domain, by value */
    DV_VEC(uint32_t) unused; /* numbers of domains that are gone */
    uint32_t n_numbers;
    char text[];
};

struct dv_affinity_domain {
    dv_str value;
    uint32_t number;
    size_t n_nodes; /* that were looked up */
    char text[];
};

/* Which pods a term means. */
struct dv_affinity_condition {
    const struct dv_label_selector *selector; /* NULL: none */
    const dv_str *namespaces;
    size_t n_namespaces;
    const struct dv_label_selector *by_labels; /* also namespaces with such labels; NULL: none */
};

/* Which nodes count for a spread constraint. */
struct dv_affinity_nodes {
    const struct dv_api_pod_spec *pod; /* its node affinity, nodeSelector and tolerations */
    bool honors_affinity;
    bool honors_taints;
    const dv_str *keys; /* labels that they must have */
    size_t n_keys;
};

struct dv_affinity_tally {
    dv_str key;
    struct dv_arena *arena; /* of the tally, and of all that it names */
    struct dv_affinity_topology *topology;
    /* A pod has to meet all of them. */
    const struct dv_affinity_condition *conditions;
    size_t n_conditions;
    bool has_label; /* it is in the bucket of `label`; otherwise in index->loose */
    dv_str label;   /* "key\0value" */
    /* Where it is in the bucket, and in index->counted while it has users: thousands may go in one
     * turn. */
    size_t bucket_place;
    size_t counted_place;
    const struct dv_affinity_nodes *nodes; /* NULL: all nodes and pods count, not only those of a
                                              spread constraint */
    size_t n_users;                        /* wants that need to know how many pods match */
    size_t n_holders;                      /* pods on nodes that have it as a term */
    size_t n_watchers;                     /* wants of pods that it means */
    uint64_t changed;                      /* index->version of the last change */
    /* Matching pods by domain; of the nodes at places below n_counted. */
    size_t n_counted;
    DV_VEC(uint32_t) matching;
    uint64_t total;
    /* Pods that have it as a term, by domain: those that demand distance, and the weights of those
     * that prefer nearness, less those that prefer distance. */
    DV_VEC(uint32_t) repelling;
    DV_VEC(int64_t) attracting;
    /* Of a spread constraint: by domain, how many nodes count; by number of matching pods, how many
     * domains have so many; how many domains there are; and the smallest number. */
    DV_VEC(uint32_t) n_nodes;
    DV_VEC(uint32_t) n_having;
    size_t n_domains;
    size_t least;
};

struct dv_affinity_bucket {
    dv_str label;
    DV_VEC(struct dv_affinity_tally *) tallies;
    char text[];
};

struct dv_affinity {
    DV_VEC(struct dv_affinity_node *) nodes;
    struct dv_map topologies;
    struct dv_map tallies;            /* by key */
    struct dv_map buckets;            /* by a label, "key\0value", that a pod must have to match */
    struct dv_affinity_bucket *loose; /* of which no such label is known */
    DV_VEC(struct dv_affinity_tally *) counted; /* those with users */
    struct dv_map namespaces;
    size_t n_held; /* tallies with holders */
    bool is_trial;
    uint64_t version; /* a number that grows with every change */
    struct dv_buf key;
    struct dv_buf label;
};

/* ---- affinity_tally.c ---- */

/* The tally of the pods that meet all of the terms at once, by this topology; made when there is
 * none. `owner` is the pod that has the terms. */
struct dv_affinity_tally *dv_affinity_tally(struct dv_affinity *index,
                                            const struct dv_api_pod *owner,
                                            const struct dv_api_pod_affinity_term *terms,
                                            size_t n_terms, dv_str topology_key);
struct dv_affinity_tally *
dv_affinity_spread_tally(struct dv_affinity *index, const struct dv_api_pod *owner,
                         const struct dv_api_topology_spread_constraint *constraint);
/* Frees it when nobody needs it any more. */
void dv_affinity_tally_drop(struct dv_affinity *index, struct dv_affinity_tally *tally);
/* Whether it means the pod, which may be packed. */
bool dv_affinity_means(struct dv_affinity *index, const struct dv_affinity_tally *tally,
                       struct dv_object *pod);
/* Like dv_affinity_means, for labels and a namespace. */
bool dv_affinity_means_labels(struct dv_affinity *index, const struct dv_affinity_tally *tally,
                              dv_str namespace, const struct dv_str_entry *labels, size_t n_labels);
/* The tallies of which the pod may meet the conditions: one list after the other; NULL at the
 * end. Start with 0. */
const struct dv_affinity_bucket *dv_affinity_next_bucket(struct dv_affinity *index,
                                                         const struct dv_str_entry *labels,
                                                         size_t n_labels, size_t *at);

/* ---- affinity_topology.c ---- */

struct dv_affinity_topology *dv_affinity_topology_get(struct dv_affinity *index, dv_str key);
void dv_affinity_topology_drop(struct dv_affinity *index, struct dv_affinity_topology *topology);
uint32_t dv_affinity_domain(struct dv_affinity_topology *topology,
                            const struct dv_affinity_node *node);
/* The node leaves; the last one takes its place. */
void dv_affinity_topology_forget(struct dv_affinity_topology *topology, size_t place,
                                 const struct dv_affinity_node *node, size_t n_nodes);

/* ---- affinity_count.c ---- */

/* The tally begins to count, or stops. */
void dv_affinity_use(struct dv_affinity *index, struct dv_affinity_tally *tally);
void dv_affinity_unuse(struct dv_affinity *index, struct dv_affinity_tally *tally);
/* Counts the pods of the next node that is not counted; returns what that cost. */
uint64_t dv_affinity_count_next(struct dv_affinity *index, struct dv_affinity_tally *tally);
/* Forgets what was counted. */
void dv_affinity_uncount(struct dv_affinity_tally *tally);

#endif

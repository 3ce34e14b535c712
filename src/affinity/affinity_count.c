/* affinity_count.c - nodes and pods come and go, and what tallies count goes with them.
 *
 * A tally that has users counts the pods of all nodes at places below its n_counted, which grows
 * until it has all nodes: so it can be counted in parts, while nodes and pods come and go. When a
 * node leaves, the last one takes its place, and with it its state. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "affinity/affinity.h"
#include "affinity/affinity_index.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/select.h"

/* What it costs to count a node, and a pod on it, in units of ten nanoseconds. */
#define COST_NODE 10u
#define COST_POD 10u

static void touch(struct dv_affinity *index, struct dv_affinity_tally *tally)
{
    if (!index->is_trial)
        tally->changed = ++index->version;
}

/* ---- which nodes count for a constraint ---- */

static bool is_affine(const struct dv_api_pod_spec *pod, const struct dv_api_object_meta *meta)
{
    const struct dv_api_node_selector *required =
        pod->affinity
            ? pod->affinity->node_affinity->required_during_scheduling_ignored_during_execution
            : NULL;

    for (size_t i = 0; i < pod->n_node_selector; i++) {
        const struct dv_str_entry *label =
            dv_entry_find(meta->labels, meta->n_labels, pod->node_selector[i].key);

        if (!label || !dv_str_eq(label->value, pod->node_selector[i].value))
            return false;
    }
    return !required ||
           dv_node_selector_matches(required, meta->name, meta->labels, meta->n_labels);
}

static bool is_tolerated(const struct dv_api_pod_spec *pod, const struct dv_api_taint *taint)
{
    for (size_t i = 0; i < pod->n_tolerations; i++)
        if (dv_toleration_matches(&pod->tolerations[i], taint))
            return true;
    return false;
}

static bool counts(const struct dv_affinity_tally *tally, const struct dv_affinity_node *node)
{
    const struct dv_affinity_nodes *which = tally->nodes;
    const struct dv_api_node *value = node->value;

    if (!which)
        return true;
    for (size_t i = 0; i < which->n_keys; i++)
        if (!dv_entry_find(value->metadata.labels, value->metadata.n_labels, which->keys[i]))
            return false;
    if (which->honors_affinity && !is_affine(which->pod, &value->metadata))
        return false;
    for (size_t i = 0; which->honors_taints && i < value->spec.n_taints; i++)
        if (!dv_str_eq(value->spec.taints[i].effect, DV_STR("PreferNoSchedule")) &&
            !is_tolerated(which->pod, &value->spec.taints[i]))
            return false;
    return true;
}

/* ---- how many domains have how many ---- */

static uint32_t *having(struct dv_affinity_tally *tally, size_t n)
{
    while (tally->n_having.n <= n)
        *dv_vec_add(&tally->n_having) = 0;
    return &tally->n_having.v[n];
}

/* A domain that counts has so many matching pods from now on, or is no more. */
static void set_least(struct dv_affinity_tally *tally)
{
    while (tally->n_domains > 0 && tally->least < tally->n_having.n &&
           tally->n_having.v[tally->least] == 0)
        tally->least++;
}

static void add_domain(struct dv_affinity_tally *tally, size_t n)
{
    ++*having(tally, n);
    tally->least = tally->n_domains++ == 0 ? n : dv_size_min(tally->least, n);
}

static void remove_domain(struct dv_affinity_tally *tally, size_t n)
{
    --*having(tally, n);
    tally->n_domains--;
    set_least(tally);
}

/* ---- pods ---- */

static uint32_t *matching(struct dv_affinity_tally *tally, uint32_t domain)
{
    while (tally->matching.n <= domain)
        *dv_vec_add(&tally->matching) = 0;
    return &tally->matching.v[domain];
}

static uint32_t *n_nodes(struct dv_affinity_tally *tally, uint32_t domain)
{
    while (tally->n_nodes.n <= domain)
        *dv_vec_add(&tally->n_nodes) = 0;
    return &tally->n_nodes.v[domain];
}

/* One matching pod more or less in the domain. */
static void step(struct dv_affinity_tally *tally, uint32_t domain, bool is_more)
{
    uint32_t *n = matching(tally, domain);
    uint32_t was = *n;

    *n = is_more ? was + 1 : was - 1;
    if (is_more)
        tally->total++;
    else
        tally->total--;
    if (tally->nodes && *n_nodes(tally, domain) > 0) {
        ++*having(tally, *n);
        --*having(tally, was);
        tally->least = dv_size_min(tally->least, *n);
        set_least(tally);
    }
}

/* Whether the tally counts pods that are on the node. */
static bool is_counted(const struct dv_affinity_tally *tally, const struct dv_affinity_node *node)
{
    return tally->n_users > 0 && node->place < tally->n_counted;
}

static void count_match(struct dv_affinity *index, struct dv_affinity_tally *tally,
                        const struct dv_affinity_pod *pod, bool is_more)
{
    uint32_t domain;

    /* A constraint leaves out pods that are about to go. */
    if (tally->nodes && (pod->is_terminating || !counts(tally, pod->node)))
        return;
    domain = dv_affinity_domain(tally->topology, pod->node);
    if (domain == DOMAIN_NONE)
        return;
    step(tally, domain, is_more);
    touch(index, tally);
}

/* Counts the pod in all tallies that mean it. */
static void count_pod(struct dv_affinity *index, const struct dv_affinity_pod *pod, bool is_more)
{
    const struct dv_api_object_meta *meta;
    const struct dv_affinity_bucket *bucket;

    if (index->counted.n == 0)
        return;
    meta = dv_object_unpack(pod->object)->meta;
    for (size_t at = 0;
         (bucket = dv_affinity_next_bucket(index, meta->labels, meta->n_labels, &at));)
        for (size_t i = 0; i < bucket->tallies.n; i++) {
            struct dv_affinity_tally *tally = bucket->tallies.v[i];

            if (is_counted(tally, pod->node) &&
                dv_affinity_means_labels(index, tally, meta->namespace, meta->labels,
                                         meta->n_labels))
                count_match(index, tally, pod, is_more);
        }
}

/* ---- those who have terms ---- */

static void hold(struct dv_affinity *index, const struct dv_affinity_pod *pod,
                 const struct dv_api_pod_affinity_term *term, bool is_demand, int64_t weight,
                 bool is_more)
{
    const struct dv_api_pod *value = dv_object_unpack(pod->object)->value;
    struct dv_affinity_tally *tally = dv_affinity_tally(index, value, term, 1, term->topology_key);
    uint32_t domain = dv_affinity_domain(tally->topology, pod->node);

    if (is_more && tally->n_holders++ == 0)
        index->n_held++;
    if (domain != DOMAIN_NONE && is_demand) {
        while (tally->repelling.n <= domain)
            *dv_vec_add(&tally->repelling) = 0;
        if (is_more)
            tally->repelling.v[domain]++;
        else
            tally->repelling.v[domain]--;
    } else if (domain != DOMAIN_NONE) {
        while (tally->attracting.n <= domain)
            *dv_vec_add(&tally->attracting) = 0;
        tally->attracting.v[domain] += is_more ? weight : -weight;
    }
    touch(index, tally);
    if (!is_more && --tally->n_holders == 0) {
        index->n_held--;
        dv_affinity_tally_drop(index, tally);
    }
}

static void hold_weighted(struct dv_affinity *index, const struct dv_affinity_pod *pod,
                          const struct dv_api_weighted_pod_affinity_term *terms, size_t n,
                          int64_t sign, bool is_more)
{
    for (size_t i = 0; i < dv_size_min(n, N_TERMS_MAX); i++)
        hold(index, pod, &terms[i].pod_affinity_term, false, sign * terms[i].weight, is_more);
}

/* The terms of a pod on a node are for pods to come. Nearness that it demanded for itself counts
 * for those that it meant as a preference of weight 1, as in the reference. */
static void hold_terms(struct dv_affinity *index, const struct dv_affinity_pod *pod, bool is_more)
{
    const struct dv_api_pod *value = dv_object_unpack(pod->object)->value;
    const struct dv_api_pod_affinity *near = value->spec.affinity->pod_affinity;
    const struct dv_api_pod_anti_affinity *apart = value->spec.affinity->pod_anti_affinity;

    if (near) {
        for (size_t i = 0;
             i <
             dv_size_min(near->n_required_during_scheduling_ignored_during_execution, N_TERMS_MAX);
             i++)
            hold(index, pod, &near->required_during_scheduling_ignored_during_execution[i], false,
                 1, is_more);
        hold_weighted(index, pod, near->preferred_during_scheduling_ignored_during_execution,
                      near->n_preferred_during_scheduling_ignored_during_execution, 1, is_more);
    }
    if (apart) {
        for (size_t i = 0;
             i <
             dv_size_min(apart->n_required_during_scheduling_ignored_during_execution, N_TERMS_MAX);
             i++)
            hold(index, pod, &apart->required_during_scheduling_ignored_during_execution[i], true,
                 0, is_more);
        hold_weighted(index, pod, apart->preferred_during_scheduling_ignored_during_execution,
                      apart->n_preferred_during_scheduling_ignored_during_execution, -1, is_more);
    }
}

static void count_all_of(struct dv_affinity *index, const struct dv_affinity_pod *pod, bool is_more)
{
    count_pod(index, pod, is_more);
    if (pod->has_terms)
        hold_terms(index, pod, is_more);
}

void dv_affinity_add(struct dv_affinity *index, struct dv_affinity_node *node,
                     struct dv_affinity_pod *pod, struct dv_object *object)
{
    const struct dv_api_pod *value = dv_object_unpack(object)->value;
    const struct dv_api_affinity *affinity = value->spec.affinity;

    *pod = (struct dv_affinity_pod){
        .object = object,
        .node = node,
        .place = node->pods.n,
        .is_terminating = value->metadata.deletion_timestamp.is_set,
        .has_terms = affinity && (affinity->pod_affinity || affinity->pod_anti_affinity)};
    *dv_vec_add(&node->pods) = pod;
    if (node->value)
        count_all_of(index, pod, true);
}

void dv_affinity_remove(struct dv_affinity *index, struct dv_affinity_pod *pod)
{
    struct dv_affinity_node *node = pod->node;

    if (node->value)
        count_all_of(index, pod, false);
    node->pods.v[node->pods.n - 1]->place = pod->place;
    dv_vec_remove_swap(&node->pods, pod->place);
    pod->node = NULL;
}

void dv_affinity_set_trial(struct dv_affinity *index, bool is_on)
{
    index->is_trial = is_on;
}

/* ---- counting ---- */

void dv_affinity_use(struct dv_affinity *index, struct dv_affinity_tally *tally)
{
    if (tally->n_users++ > 0)
        return;
    tally->counted_place = index->counted.n;
    *dv_vec_add(&index->counted) = tally;
}

void dv_affinity_unuse(struct dv_affinity *index, struct dv_affinity_tally *tally)
{
    if (--tally->n_users > 0)
        return;
    dv_affinity_uncount(tally);
    index->counted.v[index->counted.n - 1]->counted_place = tally->counted_place;
    dv_vec_remove_swap(&index->counted, tally->counted_place);
    dv_affinity_tally_drop(index, tally);
}

void dv_affinity_uncount(struct dv_affinity_tally *tally)
{
    dv_vec_fini(&tally->matching);
    dv_vec_fini(&tally->n_nodes);
    dv_vec_fini(&tally->n_having);
    tally->n_counted = 0;
    tally->total = 0;
    tally->n_domains = 0;
    tally->least = 0;
}

/* Counts, or leaves out again, the node as one that the constraint looks at. */
static void count_domain(struct dv_affinity_tally *tally, const struct dv_affinity_node *node,
                         bool is_more)
{
    uint32_t domain;
    uint32_t *n;

    if (!tally->nodes || !counts(tally, node))
        return;
    domain = dv_affinity_domain(tally->topology, node);
    if (domain == DOMAIN_NONE)
        return;
    n = n_nodes(tally, domain);
    if (is_more && (*n)++ == 0)
        add_domain(tally, *matching(tally, domain));
    else if (!is_more && --*n == 0)
        remove_domain(tally, *matching(tally, domain));
}

/* Counts the pods of a node for one tally. */
static uint64_t count_node(struct dv_affinity *index, struct dv_affinity_tally *tally,
                           const struct dv_affinity_node *node)
{
    count_domain(tally, node, true);
    for (size_t i = 0; i < node->pods.n; i++)
        if (dv_affinity_means(index, tally, node->pods.v[i]->object))
            count_match(index, tally, node->pods.v[i], true);
    return COST_NODE + node->pods.n * COST_POD;
}

uint64_t dv_affinity_count_next(struct dv_affinity *index, struct dv_affinity_tally *tally)
{
    const struct dv_affinity_node *node = index->nodes.v[tally->n_counted++];

    return count_node(index, tally, node);
}

/* ---- nodes ---- */

void dv_affinity_enter(struct dv_affinity *index, struct dv_affinity_node *node,
                       const struct dv_api_node *value)
{
    node->value = value;
    node->place = index->nodes.n;
    *dv_vec_add(&index->nodes) = node;
    for (size_t i = 0; i < index->counted.n; i++) {
        struct dv_affinity_tally *tally = index->counted.v[i];

        if (tally->n_counted < node->place)
            continue;
        tally->n_counted++; /* it had all nodes, and has them still */
        if (tally->nodes) {
            count_domain(tally, node, true);
            touch(index, tally);
        }
    }
    for (size_t i = 0; i < node->pods.n; i++)
        count_all_of(index, node->pods.v[i], true);
}

void dv_affinity_leave(struct dv_affinity *index, struct dv_affinity_node *node)
{
    struct dv_affinity_node *last = index->nodes.v[index->nodes.n - 1];
    size_t place = node->place;
    size_t last_place = last->place;
    const struct dv_map_entry *entry;

    for (size_t i = 0; i < node->pods.n; i++)
        count_all_of(index, node->pods.v[i], false);
    for (size_t i = 0; i < index->counted.n; i++) {
        struct dv_affinity_tally *tally = index->counted.v[i];

        if (place < tally->n_counted && tally->nodes) {
            count_domain(tally, node, false);
            touch(index, tally);
        }
    }
    for (size_t at = 0; (entry = dv_map_next(&index->topologies, &at));)
        dv_affinity_topology_forget(entry->value, place, node, index->nodes.n);
    dv_vec_remove_swap(&index->nodes, place);
    last->place = place;
    node->value = NULL;
    for (size_t i = 0; i < index->counted.n; i++) {
        struct dv_affinity_tally *tally = index->counted.v[i];

        if (place >= tally->n_counted)
            continue;
        if (last_place < tally->n_counted)
            tally->n_counted--;
        else
            (void)count_node(index, tally, last);
    }
}

void dv_affinity_node_fini(struct dv_affinity_node *node)
{
    dv_vec_fini(&node->pods);
}

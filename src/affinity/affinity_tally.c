/* affinity_tally.c - tallies: a term or constraint in the shape in which two that mean the same are
 * one. What it says is its key; pods are matched with few tallies only, by a label that they must
 * have. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "affinity/affinity.h"
#include "affinity/affinity_index.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/select.h"

/* ---- what a term says ---- */

/* The selector with what the pod's own labels add to it (matchLabelKeys, mismatchLabelKeys), all in
 * `arena`; NULL: it selects nothing. */
static struct dv_api_label_selector *whole_selector(const struct dv_api_pod *owner,
                                                    const struct dv_api_label_selector *selector,
                                                    const dv_str *match, size_t n_match,
                                                    const dv_str *mismatch, size_t n_mismatch,
                                                    struct dv_arena *arena)
{
    struct dv_api_label_selector *whole;
    struct dv_api_label_selector_requirement *all;
    size_t n;

    if (!selector)
        return NULL;
    whole = DV_NEW(arena, struct dv_api_label_selector);
    dv_message_copy(&dv_message_label_selector, selector, arena, whole);
    n = whole->n_match_expressions;
    all = DV_NEW_ARRAY(arena, struct dv_api_label_selector_requirement, n + n_match + n_mismatch);
    for (size_t i = 0; i < n; i++)
        all[i] = whole->match_expressions[i];
    for (size_t i = 0; i < n_match + n_mismatch; i++) {
        dv_str key = i < n_match ? match[i] : mismatch[i - n_match];
        const struct dv_str_entry *label =
            dv_entry_find(owner->metadata.labels, owner->metadata.n_labels, key);
        dv_str *value;

        if (!label)
            continue;
        value = DV_NEW(arena, dv_str);
        *value = dv_str_copy(label->value, arena);
        all[n++] = (struct dv_api_label_selector_requirement){
            .key = dv_str_copy(key, arena),
            .operator= i<n_match ? DV_STR("In") : DV_STR("NotIn"),
            .values = value,
            .n_values = 1};
    }
    whole->match_expressions = all;
    whole->n_match_expressions = n;
    return whole;
}

static void add_part(struct dv_buf *key, const struct dv_message *message, const void *value)
{
    size_t begin = key->n;
    uint32_t n;

    /* One that is not there selects nothing, an empty one everything. */
    dv_buf_add_char(key, value ? 'y' : 'n');
    if (value)
        dv_encode_pb(message, value, key);
    n = (uint32_t)(key->n - begin);
    dv_buf_add(key, (dv_str){(const char *)&n, sizeof(n)});
}

static void add_text(struct dv_buf *key, dv_str text)
{
    dv_buf_add(key, text);
    dv_buf_add_char(key, '\0'); /* which no label, key or namespace has */
}

/* The number of texts before it, so that no two lists can be the same bytes. */
static void add_count(struct dv_buf *key, size_t count)
{
    uint32_t n = (uint32_t)count;

    dv_buf_add(key, (dv_str){(const char *)&n, sizeof(n)});
}

/* A term while its tally is looked for. */
struct reading {
    struct dv_arena *arena;
    struct dv_affinity_condition *conditions;
    size_t n_conditions;
    struct dv_api_label_selector *first; /* of the first condition */
};

static void read_condition(struct dv_affinity *index, struct reading *reading,
                           const struct dv_api_pod *owner,
                           const struct dv_api_pod_affinity_term *term)
{
    struct dv_affinity_condition *condition = &reading->conditions[reading->n_conditions];
    struct dv_api_label_selector *by_labels = NULL;
    struct dv_api_label_selector *selector = whole_selector(
        owner, term->label_selector, term->match_label_keys, term->n_match_label_keys,
        term->mismatch_label_keys, term->n_mismatch_label_keys, reading->arena);
    bool is_own = term->n_namespaces == 0 && !term->namespace_selector;
    dv_str *namespaces = DV_NEW_ARRAY(reading->arena, dv_str, term->n_namespaces + 1);

    for (size_t i = 0; i < term->n_namespaces; i++)
        namespaces[i] = dv_str_copy(term->namespaces[i], reading->arena);
    if (is_own)
        namespaces[0] = dv_str_copy(owner->metadata.namespace, reading->arena);
    *condition = (struct dv_affinity_condition){.namespaces = namespaces,
                                                .n_namespaces = is_own ? 1 : term->n_namespaces};
    if (selector)
        condition->selector = dv_label_selector_of(selector, reading->arena);
    if (term->namespace_selector) {
        by_labels = DV_NEW(reading->arena, struct dv_api_label_selector);
        dv_message_copy(&dv_message_label_selector, term->namespace_selector, reading->arena,
                        by_labels);
        condition->by_labels = dv_label_selector_of(by_labels, reading->arena);
    }
    add_part(&index->key, &dv_message_label_selector, selector);
    for (size_t i = 0; i < condition->n_namespaces; i++)
        add_text(&index->key, namespaces[i]);
    add_count(&index->key, condition->n_namespaces);
    add_part(&index->key, &dv_message_label_selector, by_labels);
    if (reading->n_conditions++ == 0)
        reading->first = selector;
}

/* ---- the label that a pod must have ---- */

static dv_str label_key(struct dv_buf *buf, dv_str key, dv_str value)
{
    dv_buf_clear(buf);
    dv_buf_add(buf, key);
    dv_buf_add_char(buf, '\0');
    dv_buf_add(buf, value);
    return dv_buf_str(buf);
}

static bool find_label(struct dv_affinity *index, const struct dv_api_label_selector *selector,
                       struct dv_arena *arena, dv_str *label)
{
    if (!selector)
        return false;
    if (selector->n_match_labels > 0) {
        *label = dv_str_copy(label_key(&index->label, selector->match_labels[0].key,
                                       selector->match_labels[0].value),
                             arena);
        return true;
    }
    for (size_t i = 0; i < selector->n_match_expressions; i++) {
        const struct dv_api_label_selector_requirement *one = &selector->match_expressions[i];

        if (!dv_str_eq(one->operator, DV_STR("In")) || one->n_values != 1)
            continue;
        *label = dv_str_copy(label_key(&index->label, one->key, one->values[0]), arena);
        return true;
    }
    return false;
}

static struct dv_affinity_bucket *bucket_of(struct dv_affinity *index,
                                            const struct dv_affinity_tally *tally)
{
    return tally->has_label ? dv_map_get(&index->buckets, tally->label) : index->loose;
}

static void put_into_bucket(struct dv_affinity *index, struct dv_affinity_tally *tally)
{
    struct dv_affinity_bucket *bucket = bucket_of(index, tally);
    char *at;

    if (!bucket) {
        bucket = dv_alloc(sizeof(*bucket) + tally->label.n);
        at = bucket->text;
        bucket->label = dv_str_put(tally->label, &at);
        dv_map_set(&index->buckets, bucket->label, bucket);
    }
    tally->bucket_place = bucket->tallies.n;
    *dv_vec_add(&bucket->tallies) = tally;
}

static void take_from_bucket(struct dv_affinity *index, const struct dv_affinity_tally *tally)
{
    struct dv_affinity_bucket *bucket = bucket_of(index, tally);

    bucket->tallies.v[bucket->tallies.n - 1]->bucket_place = tally->bucket_place;
    dv_vec_remove_swap(&bucket->tallies, tally->bucket_place);
    if (bucket->tallies.n > 0 || bucket == index->loose)
        return;
    dv_map_remove(&index->buckets, bucket->label);
    dv_vec_fini(&bucket->tallies);
    free(bucket);
}

const struct dv_affinity_bucket *dv_affinity_next_bucket(struct dv_affinity *index,
                                                         const struct dv_str_entry *labels,
                                                         size_t n_labels, size_t *at)
{
    if ((*at)++ == 0)
        return index->loose;
    while (*at - 2 < n_labels) {
        const struct dv_str_entry *label = &labels[*at - 2];
        const struct dv_affinity_bucket *bucket =
            dv_map_get(&index->buckets, label_key(&index->label, label->key, label->value));

        if (bucket)
            return bucket;
        ++*at;
    }
    return NULL;
}

/* ---- life ---- */

/* Makes the tally of what was read, unless there is one for the same. Takes the arena. */
static struct dv_affinity_tally *make(struct dv_affinity *index, struct reading *reading,
                                      dv_str topology_key, const struct dv_affinity_nodes *nodes)
{
    struct dv_affinity_tally *tally = dv_map_get(&index->tallies, dv_buf_str(&index->key));

    if (tally) {
        dv_arena_free(reading->arena);
        return tally;
    }
    tally = DV_NEW(reading->arena, struct dv_affinity_tally);
    tally->arena = reading->arena;
    tally->key = dv_str_copy(dv_buf_str(&index->key), reading->arena);
    tally->conditions = reading->conditions;
    tally->n_conditions = reading->n_conditions;
    tally->nodes = nodes;
    tally->topology = dv_affinity_topology_get(index, topology_key);
    tally->topology->n_tallies++;
    tally->has_label = find_label(index, reading->first, reading->arena, &tally->label);
    dv_map_set(&index->tallies, tally->key, tally);
    put_into_bucket(index, tally);
    return tally;
}

struct dv_affinity_tally *dv_affinity_tally(struct dv_affinity *index,
                                            const struct dv_api_pod *owner,
                                            const struct dv_api_pod_affinity_term *terms,
                                            size_t n_terms, dv_str topology_key)
{
    struct reading reading = {.arena = dv_arena_new()};

    dv_buf_clear(&index->key);
    add_text(&index->key, topology_key);
    reading.conditions = DV_NEW_ARRAY(reading.arena, struct dv_affinity_condition, n_terms);
    for (size_t i = 0; i < n_terms; i++)
        read_condition(index, &reading, owner, &terms[i]);
    return make(index, &reading, topology_key, NULL);
}

static bool is_policy(dv_str policy, const char *word, bool is_default)
{
    return policy.n == 0 ? is_default : dv_str_eq(policy, dv_str_from_c(word));
}

/* What of the pod says which nodes count, and the labels that all constraints of its kind go by:
 * a node without one of them does not count. */
static struct dv_affinity_nodes *
read_nodes(struct dv_affinity *index, const struct dv_api_pod *owner,
           const struct dv_api_topology_spread_constraint *constraint, struct dv_arena *arena)
{
    struct dv_affinity_nodes *nodes = DV_NEW(arena, struct dv_affinity_nodes);
    const struct dv_api_pod_spec *from = &owner->spec;
    struct dv_api_pod_spec part = {0};
    struct dv_api_affinity affinity = {0};
    struct dv_api_node_affinity required = {0};
    struct dv_api_pod_spec *copy = DV_NEW(arena, struct dv_api_pod_spec);
    dv_str *keys = DV_NEW_ARRAY(arena, dv_str, from->n_topology_spread_constraints);

    nodes->honors_affinity = is_policy(constraint->node_affinity_policy, "Honor", true);
    nodes->honors_taints = is_policy(constraint->node_taints_policy, "Honor", false);
    if (nodes->honors_affinity) {
        part.node_selector = from->node_selector;
        part.n_node_selector = from->n_node_selector;
        if (from->affinity && from->affinity->node_affinity) {
            required.required_during_scheduling_ignored_during_execution =
                from->affinity->node_affinity->required_during_scheduling_ignored_during_execution;
            affinity.node_affinity = &required;
            part.affinity = &affinity;
        }
    }
    if (nodes->honors_taints) {
        part.tolerations = from->tolerations;
        part.n_tolerations = from->n_tolerations;
    }
    dv_message_copy(&dv_message_pod_spec, &part, arena, copy);
    nodes->pod = copy;
    nodes->keys = keys;
    for (size_t i = 0; i < from->n_topology_spread_constraints; i++) {
        const struct dv_api_topology_spread_constraint *other =
            &from->topology_spread_constraints[i];

        if (dv_str_eq(other->when_unsatisfiable, constraint->when_unsatisfiable)) {
            keys[nodes->n_keys++] = dv_str_copy(other->topology_key, arena);
            add_text(&index->key, other->topology_key);
        }
    }
    add_count(&index->key, nodes->n_keys);
    dv_buf_add_char(&index->key, nodes->honors_affinity ? 'a' : '-');
    dv_buf_add_char(&index->key, nodes->honors_taints ? 't' : '-');
    add_part(&index->key, &dv_message_pod_spec, copy);
    return nodes;
}

struct dv_affinity_tally *
dv_affinity_spread_tally(struct dv_affinity *index, const struct dv_api_pod *owner,
                         const struct dv_api_topology_spread_constraint *constraint)
{
    struct reading reading = {.arena = dv_arena_new()};
    /* A constraint is about pods of the own namespace, as a term without namespaces is. */
    const struct dv_api_pod_affinity_term term = {.label_selector = constraint->label_selector,
                                                  .match_label_keys = constraint->match_label_keys,
                                                  .n_match_label_keys =
                                                      constraint->n_match_label_keys};
    const struct dv_affinity_nodes *nodes;

    dv_buf_clear(&index->key);
    add_text(&index->key, DV_STR("")); /* no term has an empty key */
    add_text(&index->key, constraint->topology_key);
    reading.conditions = DV_NEW_ARRAY(reading.arena, struct dv_affinity_condition, 1);
    read_condition(index, &reading, owner, &term);
    nodes = read_nodes(index, owner, constraint, reading.arena);
    return make(index, &reading, constraint->topology_key, nodes);
}

void dv_affinity_tally_drop(struct dv_affinity *index, struct dv_affinity_tally *tally)
{
    if (tally->n_users > 0 || tally->n_holders > 0 || tally->n_watchers > 0)
        return;
    dv_map_remove(&index->tallies, tally->key);
    take_from_bucket(index, tally);
    tally->topology->n_tallies--;
    dv_affinity_topology_drop(index, tally->topology);
    dv_vec_fini(&tally->matching);
    dv_vec_fini(&tally->repelling);
    dv_vec_fini(&tally->attracting);
    dv_vec_fini(&tally->n_nodes);
    dv_vec_fini(&tally->n_having);
    dv_arena_free(tally->arena);
}

/* ---- whom it means ---- */

struct namespace
{
    dv_str name;
    struct dv_arena *arena; /* of it all */
    struct dv_str_entry *labels;
    size_t n_labels;
};

static bool has_namespace(struct dv_affinity *index, const struct dv_affinity_condition *condition,
                          dv_str name)
{
    const struct namespace *namespace;

    for (size_t i = 0; i < condition->n_namespaces; i++)
        if (dv_str_eq(condition->namespaces[i], name))
            return true;
    if (!condition->by_labels)
        return false;
    if (dv_label_selector_is_empty(condition->by_labels))
        return true;
    namespace = dv_map_get(&index->namespaces, name);
    return namespace &&
           dv_label_selector_matches(condition->by_labels, namespace->labels, namespace->n_labels);
}

bool dv_affinity_means(struct dv_affinity *index, const struct dv_affinity_tally *tally,
                       struct dv_object *pod)
{
    dv_str namespace = dv_object_names(pod).namespace;

    for (size_t i = 0; i < tally->n_conditions; i++)
        if (!tally->conditions[i].selector ||
            !has_namespace(index, &tally->conditions[i], namespace) ||
            !dv_object_is_selected(pod, tally->conditions[i].selector, NULL))
            return false;
    return true;
}

bool dv_affinity_means_labels(struct dv_affinity *index, const struct dv_affinity_tally *tally,
                              dv_str namespace, const struct dv_str_entry *labels, size_t n_labels)
{
    for (size_t i = 0; i < tally->n_conditions; i++)
        if (!tally->conditions[i].selector ||
            !dv_label_selector_matches(tally->conditions[i].selector, labels, n_labels) ||
            !has_namespace(index, &tally->conditions[i], namespace))
            return false;
    return true;
}

/* ---- namespaces ---- */

/* A namespace has other labels: tallies that look at them are counted anew. */
static void recount(struct dv_affinity *index)
{
    for (size_t i = 0; i < index->counted.n; i++) {
        struct dv_affinity_tally *tally = index->counted.v[i];
        bool is_by_labels = false;

        for (size_t j = 0; j < tally->n_conditions; j++)
            is_by_labels |= tally->conditions[j].by_labels != NULL;
        if (!is_by_labels)
            continue;
        dv_affinity_uncount(tally);
        tally->changed = index->version;
    }
}

static bool are_labels_equal(const struct namespace *a, const struct dv_str_entry *labels,
                             size_t n_labels)
{
    if (a->n_labels != n_labels)
        return false;
    for (size_t i = 0; i < n_labels; i++)
        if (!dv_str_eq(a->labels[i].key, labels[i].key) ||
            !dv_str_eq(a->labels[i].value, labels[i].value))
            return false;
    return true;
}

void dv_affinity_set_namespace(struct dv_affinity *index, dv_str name,
                               const struct dv_str_entry *labels, size_t n_labels, bool is_there)
{
    struct namespace *old = dv_map_get(&index->namespaces, name);
    struct namespace *now;
    struct dv_arena *arena;

    if (old && is_there && are_labels_equal(old, labels, n_labels))
        return;
    if (old) {
        dv_map_remove(&index->namespaces, name);
        dv_arena_free(old->arena);
    }
    if (is_there) {
        arena = dv_arena_new();
        now = DV_NEW(arena, struct namespace);
        *now = (struct namespace){.name = dv_str_copy(name, arena),
                                  .arena = arena,
                                  .labels = DV_NEW_ARRAY(arena, struct dv_str_entry, n_labels),
                                  .n_labels = n_labels};
        for (size_t i = 0; i < n_labels; i++)
            now->labels[i] = (struct dv_str_entry){dv_str_copy(labels[i].key, arena),
                                                   dv_str_copy(labels[i].value, arena)};
        dv_map_set(&index->namespaces, now->name, now);
    }
    index->version++;
    recount(index);
}

/* ---- the index ---- */

#define KEY_BYTES_MAX ((size_t)16 * 1024 * 1024) /* more than a pod may have */

struct dv_affinity *dv_affinity_new(void)
{
    struct dv_affinity *index = DV_ALLOC(struct dv_affinity);

    dv_map_init(&index->topologies);
    dv_map_init(&index->tallies);
    dv_map_init(&index->buckets);
    dv_map_init(&index->namespaces);
    dv_buf_init(&index->key, KEY_BYTES_MAX);
    dv_buf_init(&index->label, KEY_BYTES_MAX);
    index->loose = DV_ALLOC(struct dv_affinity_bucket);
    return index;
}

void dv_affinity_free(struct dv_affinity *index)
{
    const struct dv_map_entry *entry;

    if (!index)
        return;
    for (size_t at = 0; (entry = dv_map_next(&index->namespaces, &at));)
        dv_arena_free(((struct namespace *)entry->value)->arena);
    dv_map_fini(&index->namespaces);
    dv_map_fini(&index->topologies);
    dv_map_fini(&index->tallies);
    dv_map_fini(&index->buckets);
    dv_vec_fini(&index->nodes);
    dv_vec_fini(&index->counted);
    dv_vec_fini(&index->loose->tallies);
    free(index->loose);
    dv_buf_fini(&index->key);
    dv_buf_fini(&index->label);
    free(index);
}

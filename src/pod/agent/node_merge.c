#include "pod/agent/node_merge.h"

#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "resource/resource.h"

struct amounts {
    struct dv_quantity_entry *v; /* by name */
    size_t n;
};

/* Sets an amount; there is room for one more. */
static void set_amount(struct amounts *amounts, const struct dv_quantity_entry *entry)
{
    size_t at = amounts->n;
    int order = 1;

    while (at > 0 && (order = dv_str_cmp(amounts->v[at - 1].key, entry->key)) > 0)
        at--;
    if (at > 0 && order == 0) {
        amounts->v[at - 1] = *entry;
        return;
    }
    memmove(amounts->v + at + 1, amounts->v + at, (amounts->n - at) * sizeof(amounts->v[0]));
    amounts->v[at] = *entry;
    amounts->n++;
}

static void merge_amounts(const struct dv_quantity_entry *told, size_t n_told,
                          struct dv_arena *arena, struct dv_quantity_entry **stored,
                          size_t *n_stored)
{
    struct amounts all = {DV_NEW_ARRAY(arena, struct dv_quantity_entry, *n_stored + n_told), 0};

    for (size_t i = 0; i < *n_stored; i++)
        set_amount(&all, &(*stored)[i]);
    for (size_t i = 0; i < n_told; i++)
        set_amount(&all, &told[i]);
    *stored = all.v;
    *n_stored = all.n;
}

static void merge_conditions(const struct dv_api_node_status *told, struct dv_arena *arena,
                             struct dv_api_node_status *stored)
{
    size_t n = stored->n_conditions;
    struct dv_api_node_condition *all =
        DV_NEW_ARRAY(arena, struct dv_api_node_condition, n + told->n_conditions);

    if (n > 0)
        memcpy(all, stored->conditions, n * sizeof(all[0]));
    for (size_t i = 0; i < told->n_conditions; i++) {
        size_t at = 0;

        while (at < n && !dv_str_eq(all[at].type, told->conditions[i].type))
            at++;
        all[at] = told->conditions[i];
        if (at == n)
            n++;
    }
    stored->conditions = all;
    stored->n_conditions = n;
}

void dv_node_status_merge(const struct dv_api_node_status *told, struct dv_arena *arena,
                          struct dv_api_node_status *stored)
{
    merge_amounts(told->capacity, told->n_capacity, arena, &stored->capacity, &stored->n_capacity);
    merge_amounts(told->allocatable, told->n_allocatable, arena, &stored->allocatable,
                  &stored->n_allocatable);
    merge_conditions(told, arena, stored);
    stored->daemon_endpoints = told->daemon_endpoints;
    stored->node_info = told->node_info;
    if (told->n_addresses > 0) {
        stored->addresses = told->addresses;
        stored->n_addresses = told->n_addresses;
    }
    if (told->n_runtime_handlers > 0) {
        stored->runtime_handlers = told->runtime_handlers;
        stored->n_runtime_handlers = told->n_runtime_handlers;
    }
    if (told->n_declared_features > 0) {
        stored->declared_features = told->declared_features;
        stored->n_declared_features = told->n_declared_features;
    }
}

void dv_node_annotate(dv_str name, const dv_str *value, struct dv_arena *arena,
                      struct dv_api_object_meta *meta)
{
    struct dv_str_entry *left;
    size_t n = 0;

    if (value) {
        dv_entry_set(&meta->annotations, &meta->n_annotations, name, *value, arena);
        return;
    }
    if (!dv_entry_find(meta->annotations, meta->n_annotations, name))
        return;
    left = DV_NEW_ARRAY(arena, struct dv_str_entry, meta->n_annotations);
    for (size_t i = 0; i < meta->n_annotations; i++)
        if (!dv_str_eq(meta->annotations[i].key, name))
            left[n++] = meta->annotations[i];
    meta->annotations = left;
    meta->n_annotations = n;
}

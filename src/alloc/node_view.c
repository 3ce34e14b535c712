/* node_view.c - what a node sees: which slices are for it, which of them make complete pools of the
 * newest generation, and the devices of these in the order in which the search tries them. A view
 * is kept, and made anew when a slice or label that it depends on has changed. */
#include <stdlib.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/select.h"

/* How many times as much as a device's place in a view its decoding takes. */
#define WAKING 3u

/* A pool while its slices for the node are being gathered. */
struct gathered {
    struct dv_alloc_pool *pool;
    int64_t generation;
    /* The pool's slices of the newest generation so far, in the order in which they were added. */
    DV_VEC(struct dv_inventory_slice *) slices;
};

struct gathering {
    struct dv_inventory *inventory;
    const struct dv_alloc_node *node;
    struct dv_alloc_node_view *view;
    DV_VEC(struct gathered) pools;
    DV_VEC(struct dv_alloc_node_pool) done;
};

/* ---- who is for the node ---- */

static bool is_true(const bool *flag)
{
    return flag && *flag;
}

static bool selection_is_for(dv_str name, const bool *all_nodes,
                             const struct dv_api_node_selector *selector,
                             const struct dv_alloc_node *node, bool *is_for, struct dv_err *err)
{
    *is_for = false;
    if (name.n) {
        *is_for = dv_str_eq(name, node->name);
    } else if (is_true(all_nodes)) {
        *is_for = true;
    } else if (selector) {
        if (!dv_node_selector_check(selector, err))
            return false;
        *is_for = dv_node_selector_matches(selector, node->name, node->labels, node->n_labels);
    }
    return true;
}

bool dv_alloc_device_is_for(const struct dv_alloc_device *device, const struct dv_alloc_node *node,
                            bool *is_for, struct dv_err *err)
{
    const struct dv_api_device *api = device->api;

    if (!is_true(device->slice->spec->per_device_node_selection)) {
        *is_for = true; /* the slice as a whole is for the node, or it would not be looked at */
        return true;
    }
    return selection_is_for(api->node_name, api->all_nodes, api->node_selector, node, is_for, err);
}

static bool slice_is_for(const struct dv_inventory_slice *slice, const struct dv_alloc_node *node,
                         bool *is_for, struct dv_err *err)
{
    const struct dv_api_resource_slice_spec *spec = slice->spec;

    *is_for = false;
    if (spec->n_shared_counters > 0) {
        *is_for = true;
        return true;
    }
    if (spec->node_name.p || spec->all_nodes || spec->node_selector)
        return selection_is_for(spec->node_name, spec->all_nodes, spec->node_selector, node, is_for,
                                err);
    if (!is_true(spec->per_device_node_selection))
        return true; /* a selection that this version does not know: the slice is for no node */
    for (size_t i = 0; i < slice->n_devices && !*is_for; i++)
        if (!dv_alloc_device_is_for(&slice->devices[i], node, is_for, err))
            return false;
    return true;
}

/* ---- gathering ---- */

static struct gathered *gathered_of(struct gathering *gathering, struct dv_alloc_pool *pool)
{
    struct dv_inventory *inventory = gathering->inventory;
    struct gathered *gathered;

    if (pool->seen_mark == inventory->view_mark)
        return &gathering->pools.v[pool->seen_at];
    pool->seen_mark = inventory->view_mark;
    pool->seen_at = gathering->pools.n;
    gathered = dv_vec_add_in(&gathering->pools, gathering->view->arena);
    gathered->pool = pool;
    gathered->generation = INT64_MIN;
    return gathered;
}

static void gather_slice(struct gathering *gathering, struct dv_inventory_slice *slice)
{
    struct gathered *gathered = gathered_of(gathering, slice->pool);
    int64_t generation = slice->generation;

    if (generation < gathered->generation)
        return;
    if (generation > gathered->generation) {
        gathered->generation = generation;
        dv_vec_clear(&gathered->slices);
    }
    *dv_vec_add_in(&gathered->slices, gathering->view->arena) = slice;
}

static bool gather(struct gathering *gathering, const struct dv_list *slices, struct dv_err *err)
{
    for (struct dv_link *link = slices->head.next; link != &slices->head; link = link->next) {
        struct dv_inventory_slice *slice = DV_CONTAINER(link, struct dv_inventory_slice, in_node);
        bool is_for;

        dv_inventory_wake(gathering->inventory, slice);
        if (!gathering->inventory->features.partitionable_devices &&
            (slice->spec->per_device_node_selection || slice->spec->n_shared_counters > 0))
            continue;
        if (!slice_is_for(slice, gathering->node, &is_for, err))
            return dv_wrap(err, "ResourceSlice %.*s", DV_FMT(dv_object_names(slice->object).name));
        if (is_for)
            gather_slice(gathering, slice);
    }
    return true;
}

/* ---- pools ---- */

static bool contains(const struct gathered *gathered, const struct dv_inventory_slice *slice)
{
    for (size_t i = 0; i < gathered->slices.n; i++)
        if (gathered->slices.v[i] == slice)
            return true;
    return false;
}

/* Looks at all slices of the pool, also those of other nodes, because the node's own are fewer than
 * the pool has. Those of others count for completeness and counters. False: one of them is of a
 * newer generation, which makes the node's slices obsolete. */
static bool look_wider(struct gathering *gathering, const struct gathered *gathered,
                       struct dv_alloc_node_pool *pool)
{
    struct dv_list *all = &gathered->pool->slices;
    int64_t n_wanted = gathered->slices.v[0]->spec->pool.resource_slice_count;
    DV_VEC(struct dv_inventory_slice *) others = {0};
    int64_t n = 0;

    pool->looked_wider = true;
    pool->slices_version = gathered->pool->slices_version;
    for (struct dv_link *link = all->head.next; link != &all->head; link = link->next) {
        struct dv_inventory_slice *slice = DV_CONTAINER(link, struct dv_inventory_slice, in_pool);

        if (slice->generation > gathered->generation)
            return false;
        if (slice->generation < gathered->generation)
            continue;
        n++;
        if (!contains(gathered, slice))
            *dv_vec_add_in(&others, gathering->view->arena) = slice;
    }
    pool->others = others.v;
    pool->n_others = others.n;
    if (n != n_wanted)
        pool->state = DV_ALLOC_POOL_INCOMPLETE;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct dv_inventory_slice *left = *(struct dv_inventory_slice *const *)a;
    const struct dv_inventory_slice *right = *(struct dv_inventory_slice *const *)b;
    int order = dv_str_cmp(dv_object_names(left->object).name, dv_object_names(right->object).name);

    if (order != 0)
        return order;
    return left->order < right->order ? -1 : 1;
}

static int by_ident(const void *a, const void *b)
{
    uintptr_t left = (uintptr_t)(*(struct dv_alloc_device *const *)a)->ident;
    uintptr_t right = (uintptr_t)(*(struct dv_alloc_device *const *)b)->ident;

    return left < right ? -1 : left > right;
}

/* The devices of a slice that count: one that publishes counters has no devices. */
static size_t n_devices(const struct dv_inventory_slice *slice)
{
    return slice->spec->n_shared_counters > 0 ? 0 : slice->n_devices;
}

/* Finds a device that two slices of the pool have; NULL: there is none. Sorting by address brings
 * equal idents together. */
static const struct dv_alloc_device *find_twice(const struct dv_alloc_node_pool *pool,
                                                struct dv_arena *arena)
{
    size_t n = 0;
    struct dv_alloc_device **devices;

    for (size_t i = 0; i < pool->n_slices; i++)
        n += n_devices(pool->slices[i]);
    devices = DV_NEW_ARRAY(arena, struct dv_alloc_device *, n);
    n = 0;
    for (size_t i = 0; i < pool->n_slices; i++)
        for (size_t j = 0; j < n_devices(pool->slices[i]); j++)
            devices[n++] = &pool->slices[i]->devices[j];
    qsort(devices, n, sizeof(struct dv_alloc_device *), by_ident);
    for (size_t i = 1; i < n; i++)
        if (devices[i]->ident == devices[i - 1]->ident)
            return devices[i];
    return NULL;
}

static bool has_binding_conditions(const struct dv_alloc_node_pool *pool)
{
    for (size_t i = 0; i < pool->n_slices; i++)
        for (size_t j = 0; j < n_devices(pool->slices[i]); j++)
            if (pool->slices[i]->devices[j].api->binding_conditions)
                return true;
    return false;
}

static void build(struct gathering *gathering, struct dv_alloc_node_pool *pool)
{
    struct dv_arena *arena = gathering->view->arena;
    const struct dv_alloc_device *twice = find_twice(pool, arena);

    if (twice) {
        pool->state = DV_ALLOC_POOL_INVALID;
        pool->problem =
            dv_str_printf(arena, "two slices have a device named %.*s", DV_FMT(twice->api->name));
        return;
    }
    if (!dv_pool_make_counters(gathering->inventory, gathering->view, pool)) {
        pool->state = DV_ALLOC_POOL_INVALID;
        return;
    }
    pool->is_late = has_binding_conditions(pool);
}

static void finish_pool(struct gathering *gathering, struct gathered *gathered)
{
    struct dv_alloc_node_pool pool = {.pool = gathered->pool};
    size_t n = gathered->slices.n;
    bool is_complete = (int64_t)n == gathered->slices.v[0]->spec->pool.resource_slice_count;

    if (!is_complete && !look_wider(gathering, gathered, &pool)) {
        *dv_vec_add_in(&gathering->view->obsolete, gathering->view->arena) =
            (struct dv_alloc_obsolete){gathered->pool, pool.slices_version};
        return;
    }
    pool.slices = gathered->slices.v;
    pool.n_slices = n;
    qsort(pool.slices, n, sizeof(struct dv_inventory_slice *), by_name);
    if (pool.state == DV_ALLOC_POOL_USABLE)
        build(gathering, &pool);
    *dv_vec_add_in(&gathering->done, gathering->view->arena) = pool;
}

static int by_order(const void *a, const void *b)
{
    const struct dv_alloc_node_pool *left = a;
    const struct dv_alloc_node_pool *right = b;
    int order;

    if (left->is_late != right->is_late)
        return left->is_late ? 1 : -1;
    order = dv_str_cmp(left->pool->driver, right->pool->driver);
    return order ? order : dv_str_cmp(left->pool->name, right->pool->name);
}

static void make_places(struct dv_alloc_node_view *view)
{
    size_t n = 0;

    for (size_t i = 0; i < view->n_pools; i++)
        for (size_t j = 0;
             view->pools[i].state == DV_ALLOC_POOL_USABLE && j < view->pools[i].n_slices; j++)
            n += n_devices(view->pools[i].slices[j]);
    view->places = DV_NEW_ARRAY(view->arena, struct dv_alloc_place, n);
    for (size_t i = 0; i < view->n_pools; i++) {
        struct dv_alloc_node_pool *pool = &view->pools[i];

        if (pool->state == DV_ALLOC_POOL_INVALID)
            view->has_invalid = true;
        for (size_t j = 0; pool->state == DV_ALLOC_POOL_USABLE && j < pool->n_slices; j++)
            for (size_t k = 0; k < n_devices(pool->slices[j]); k++) {
                struct dv_alloc_place *place = &view->places[view->n_places++];

                place->device = &pool->slices[j]->devices[k];
                place->pool = pool;
                dv_place_find_counters(view, place);
            }
    }
}

/* ---- views ---- */

void dv_alloc_node_view_free(struct dv_alloc_node_view *view)
{
    if (!view)
        return;
    for (size_t i = 0; i < view->n_pools; i++)
        dv_arena_free(view->pools[i].sums);
    dv_arena_free(view->arena);
    free(view);
}

static bool same_labels(const struct dv_alloc_node_view *view, const struct dv_alloc_node *node)
{
    if (view->n_labels != node->n_labels)
        return false;
    for (size_t i = 0; i < node->n_labels; i++)
        if (!dv_str_eq(view->labels[i].key, node->labels[i].key) ||
            !dv_str_eq(view->labels[i].value, node->labels[i].value))
            return false;
    return true;
}

static bool is_current(const struct dv_inventory *inventory,
                       const struct dv_alloc_inventory_node *own, const struct dv_alloc_node *node)
{
    const struct dv_alloc_node_view *view = own->view;

    if (!view || view->own_version != own->version ||
        view->shared_version != inventory->shared_version || !same_labels(view, node))
        return false;
    for (size_t i = 0; i < view->n_pools; i++)
        if (view->pools[i].looked_wider &&
            view->pools[i].slices_version != view->pools[i].pool->slices_version)
            return false;
    for (size_t i = 0; i < view->obsolete.n; i++)
        if (view->obsolete.v[i].slices_version != view->obsolete.v[i].pool->slices_version)
            return false;
    return true;
}

static struct dv_alloc_node_view *make_view(struct dv_inventory *inventory,
                                            const struct dv_alloc_inventory_node *own,
                                            const struct dv_alloc_node *node)
{
    struct dv_alloc_node_view *view = DV_ALLOC(struct dv_alloc_node_view);
    struct gathering gathering = {.inventory = inventory, .node = node, .view = view};

    view->arena = dv_arena_new();
    view->checks_counters = inventory->features.partitionable_devices;
    view->own_version = own->version;
    view->shared_version = inventory->shared_version;
    view->n_labels = node->n_labels;
    view->labels = DV_NEW_ARRAY(view->arena, struct dv_str_entry, node->n_labels);
    for (size_t i = 0; i < node->n_labels; i++)
        view->labels[i] = (struct dv_str_entry){dv_str_copy(node->labels[i].key, view->arena),
                                                dv_str_copy(node->labels[i].value, view->arena)};
    inventory->view_mark++;
    if (!gather(&gathering, &own->slices, &view->err) ||
        !gather(&gathering, &inventory->shared, &view->err))
        return view;
    for (size_t i = 0; i < gathering.pools.n; i++)
        finish_pool(&gathering, &gathering.pools.v[i]);
    view->pools = gathering.done.v;
    view->n_pools = gathering.done.n;
    if (view->n_pools > 0)
        qsort(view->pools, view->n_pools, sizeof(struct dv_alloc_node_pool), by_order);
    make_places(view);
    dv_alloc_view_find_twins(inventory, view);
    return view;
}

/* All slices of a node that can sleep do so together. */
static bool sleeps(const struct dv_alloc_inventory_node *node)
{
    struct dv_link *link;

    DV_LIST_EACH (&node->slices, link)
        if (!DV_CONTAINER(link, struct dv_inventory_slice, in_node)->spec)
            return true;
    return false;
}

void dv_inventory_view_work(const struct dv_inventory *inventory, const struct dv_alloc_node *node,
                            uint64_t *n_made, uint64_t *n_counted)
{
    const struct dv_alloc_inventory_node *own = dv_map_get(&inventory->nodes, node->name);

    *n_counted = 0;
    *n_made = inventory->n_shared_devices + (own ? own->n_devices : 0) +
              (own && sleeps(own) ? WAKING * own->n_devices : 0);
    if (!own || !is_current(inventory, own, node))
        return;
    *n_made = 0;
    for (size_t i = 0; i < own->view->n_pools; i++) {
        const struct dv_alloc_node_pool *pool = &own->view->pools[i];

        if (pool->n_counters == 0 || pool->usage_version == pool->pool->usage_version)
            continue;
        for (size_t j = 0; j < pool->n_slices; j++)
            *n_counted += pool->slices[j]->n_devices;
        for (size_t j = 0; j < pool->n_others; j++)
            *n_counted += pool->others[j]->n_devices;
    }
}

struct dv_alloc_node_view *dv_inventory_view(struct dv_inventory *inventory,
                                             const struct dv_alloc_node *node, struct dv_err *err)
{
    struct dv_alloc_inventory_node *own = dv_inventory_node(inventory, node->name);

    if (!is_current(inventory, own, node)) {
        dv_alloc_node_view_free(own->view);
        own->view = make_view(inventory, own, node);
        dv_inventory_rest_later(inventory, own);
    }
    if (own->view->err.code != DV_OK) {
        *err = own->view->err;
        return NULL;
    }
    for (size_t i = 0; i < own->view->n_pools; i++)
        dv_pool_refresh_counters(inventory, &own->view->pools[i]);
    return own->view;
}

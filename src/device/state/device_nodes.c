/* device_nodes.c - where devices are, and the order in which free ones are chosen. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "device/state/device_state.h"
#include "topology/topology.h"

struct dv_device_nodes *dv_device_nodes_ensure(struct dv_device_resource *resource, dv_str key)
{
    struct dv_device_nodes *nodes = dv_map_get(&resource->nodes, key);
    int64_t *words;

    if (nodes)
        return nodes;
    nodes = dv_alloc(sizeof(*nodes) + key.n);
    words = (int64_t *)(void *)(nodes + 1);
    memcpy(words, key.p, key.n);
    nodes->key = (dv_str){(const char *)words, key.n};
    nodes->has_topology = words[0] != 0;
    nodes->v = words + 1;
    nodes->n = key.n / sizeof(words[0]) - 1;
    if (nodes->has_topology)
        nodes->place = dv_topology_place_from_ids(nodes->v, nodes->n);
    (void)dv_map_set(&resource->nodes, nodes->key, nodes); /* is not there yet */
    return nodes;
}

void dv_device_nodes_free_all(struct dv_device_resource *resource)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&resource->nodes, &at)) != NULL;)
        free(entry->value);
    dv_map_fini(&resource->nodes);
}

int dv_device_nodes_cmp(const struct dv_device_nodes *a, const struct dv_device_nodes *b)
{
    if (a == b)
        return 0;
    if ((a->n == 0) != (b->n == 0))
        return a->n == 0 ? 1 : -1;
    for (size_t i = 0; i < a->n && i < b->n; i++)
        if (a->v[i] != b->v[i])
            return a->v[i] < b->v[i] ? -1 : 1;
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return dv_str_cmp(a->key, b->key); /* no topology and an empty one differ in their keys only */
}

static int device_cmp(const struct dv_device *a, const struct dv_device *b)
{
    int order = dv_device_nodes_cmp(a->nodes, b->nodes);

    return order != 0 ? order : dv_str_natural_cmp(a->id, b->id);
}

static int device_ptr_cmp(const void *a, const void *b)
{
    return device_cmp(*(struct dv_device *const *)a, *(struct dv_device *const *)b);
}

static bool is_sorted(struct dv_device *const *devices, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (device_cmp(devices[i - 1], devices[i]) > 0)
            return false;
    return true;
}

static void sort_devices(struct dv_device **devices, size_t n)
{
    if (!is_sorted(devices, n)) /* plugins often send them in order */
        qsort(devices, n, sizeof(devices[0]), device_ptr_cmp);
}

/* Keeps the ranked devices that have not moved, and adds `fresh`, which is sorted. */
static void merge_ranked(struct dv_device_resource *resource, struct dv_device **fresh,
                         size_t n_fresh)
{
    struct dv_device **old = resource->ranked.v;
    size_t n_old = resource->ranked.n;
    struct dv_device **merged = dv_alloc((n_old + n_fresh) * sizeof(merged[0]));
    size_t n = 0;
    size_t k = 0;

    for (size_t i = 0; i < n_old; i++) {
        if (old[i]->rank != i)
            continue;
        while (k < n_fresh && device_cmp(fresh[k], old[i]) < 0)
            merged[n++] = fresh[k++];
        merged[n++] = old[i];
    }
    while (k < n_fresh)
        merged[n++] = fresh[k++];
    free(old);
    resource->ranked.v = merged;
    resource->ranked.n = n;
    resource->ranked.size = n_old + n_fresh;
}

static void make_groups(struct dv_device_resource *resource)
{
    struct dv_device_nodes *last = NULL;

    dv_vec_clear(&resource->groups);
    for (size_t i = 0; i < resource->ranked.n; i++) {
        struct dv_device *device = resource->ranked.v[i];

        device->rank = (uint32_t)i;
        if (!last || device->nodes != last) {
            last = device->nodes;
            last->begin = i;
            last->n_free = 0;
            *dv_vec_add(&resource->groups) = last;
        }
        last->end = i + 1;
    }
}

void dv_device_nodes_prune(struct dv_device_resource *resource)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&resource->nodes, &at)) != NULL;) {
        struct dv_device_nodes *nodes = entry->value;

        if (nodes->n_users > 0)
            continue;
        (void)dv_map_remove(&resource->nodes, nodes->key);
        free(nodes);
    }
}

void dv_device_rank(struct dv_device_resource *resource, struct dv_device **fresh, size_t n_fresh)
{
    sort_devices(fresh, n_fresh);
    merge_ranked(resource, fresh, n_fresh);
    make_groups(resource);
    dv_device_bits_fini(&resource->free_ranks);
    dv_device_bits_init(&resource->free_ranks, resource->ranked.n);
    resource->n_free = 0;
    for (size_t i = 0; i < resource->ranked.n; i++) {
        resource->ranked.v[i]->is_free = false;
        dv_device_refresh(resource->ranked.v[i]);
    }
    dv_device_nodes_prune(resource);
}

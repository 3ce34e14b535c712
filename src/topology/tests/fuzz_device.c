/* fuzz_device.c - the hints of a resource are those that the specification's walk through all sets
 * of nodes gives, device by device, however the devices are grouped. */
#include "topology/topology.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

#define NODES_MAX 6u
#define DEVICES_MAX 16u
#define HINTS_MAX 64u /* sets of nodes */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct hints {
    struct dv_numa_hint hints[HINTS_MAX];
    size_t n;
    bool is_any;
};

struct resource {
    struct dv_numa_node nodes[NODES_MAX];
    struct dv_numa_machine machine;
    struct dv_numa_group devices[DEVICES_MAX]; /* one each */
    size_t n_devices;
    uint64_t requested;
};

/* -- From bytes to a resource --------------------------------------------------------------- */

/* Node i has the id i * 9, so that there are gaps; -1 and an id that is too large come too. */
static struct dv_numa_place read_place(unsigned bits)
{
    int64_t ids[8];
    size_t n = 0;

    if (bits == 0)
        return (struct dv_numa_place){0};
    for (unsigned i = 0; i < NODES_MAX; i++)
        if (bits >> i & 1)
            ids[n++] = (int64_t)i * 9;
    if (bits >> 6 == 1)
        ids[n++] = -1;
    if (bits >> 6 == 2)
        ids[n++] = 1000;
    return dv_topology_place_from_ids(ids, n); /* 0xc0: a topology without nodes */
}

static struct dv_numa_group read_device(unsigned place, unsigned state)
{
    struct dv_numa_group device = {.place = read_place(place), .n_listed = 1};

    switch (state % 8) {
    case 0: /* in use elsewhere, or unhealthy */
        break;
    case 1:
        device.n_reusable = 1;
        break;
    case 2:
        device.n_held = state >= 128;
        break;
    case 3: /* no longer listed, so that nobody knows where it is */
        device = (struct dv_numa_group){.n_held = state >= 128, .n_reusable = state < 64};
        break;
    default:
        device.n_available = 1;
        break;
    }
    return device;
}

static void read_resource(const uint8_t *data, size_t size, struct resource *resource)
{
    unsigned bits = size > 0 ? data[0] : 0;

    memset(resource, 0, sizeof(*resource));
    resource->requested = size > 1 ? data[1] % 8 : 0;
    resource->machine.nodes = resource->nodes;
    for (unsigned i = 0; i < NODES_MAX; i++)
        if (bits >> i & 1) {
            resource->nodes[resource->machine.n_nodes++].id = i * 9;
            resource->machine.mask |= UINT64_C(1) << (i * 9);
        }
    for (size_t i = 2; i + 1 < size && resource->n_devices < DEVICES_MAX; i += 2)
        resource->devices[resource->n_devices++] = read_device(data[i], data[i + 1]);
}

/* -- The walk ------------------------------------------------------------------------------- */

struct walk {
    const struct resource *resource;
    bool is_held; /* what counts is held; otherwise what is available */
    unsigned nodes[NODES_MAX];
    size_t n_nodes;
    size_t n_preferred; /* m */
    struct hints *hints;
};

/* Adds a hint for one set of nodes, if there are enough devices on it. */
static void visit(struct walk *walk, dv_numa_mask set, size_t size)
{
    const struct resource *resource = walk->resource;
    uint64_t n_listed = 0;
    uint64_t n = 0;

    for (size_t i = 0; i < resource->n_devices; i++)
        n_listed += resource->devices[i].n_listed && (resource->devices[i].place.mask & set);
    if (n_listed >= resource->requested && size < walk->n_preferred)
        walk->n_preferred = size;
    for (size_t i = 0; i < resource->n_devices; i++) {
        const struct dv_numa_group *device = &resource->devices[i];
        bool is_in = (device->place.mask & set) != 0;

        if (!walk->is_held && device->n_reusable && device->place.kind != DV_NUMA_NOT_TOLD) {
            if (!is_in)
                return;
            n++;
        }
        n += (walk->is_held ? device->n_held : device->n_available) && is_in;
    }
    if (n >= resource->requested)
        walk->hints->hints[walk->hints->n++] = (struct dv_numa_hint){set, true, false};
}

/* All sets of `size` more nodes, from node number `first` on, by their ids. */
static void visit_sets(struct walk *walk, size_t first, size_t size, dv_numa_mask set)
{
    if (size == 0) {
        visit(walk, set, (size_t)__builtin_popcountll(set));
        return;
    }
    for (size_t i = first; i < walk->n_nodes; i++)
        visit_sets(walk, i + 1, size - 1, set | UINT64_C(1) << walk->nodes[i]);
}

static void walk_all(const struct resource *resource, bool is_held, struct hints *hints)
{
    struct walk walk = {.resource = resource, .is_held = is_held, .hints = hints};
    dv_numa_mask nodes = 0;

    for (size_t i = 0; i < resource->n_devices; i++)
        if (resource->devices[i].n_listed)
            nodes |= resource->devices[i].place.mask;
    nodes &= resource->machine.mask;
    for (size_t i = 0; i < resource->machine.n_nodes; i++)
        if (nodes == 0 || nodes >> resource->nodes[i].id & 1)
            walk.nodes[walk.n_nodes++] = resource->nodes[i].id;
    walk.n_preferred = walk.n_nodes;
    for (size_t size = 1; size <= walk.n_nodes; size++)
        visit_sets(&walk, 0, size, 0);
    for (size_t i = 0; i < hints->n; i++)
        hints->hints[i].is_preferred =
            (size_t)__builtin_popcountll(hints->hints[i].mask) == walk.n_preferred;
}

/* The hints of the resource by that walk. */
static void hints_of_walk(const struct resource *resource, struct hints *hints)
{
    uint64_t n_free = 0;
    uint64_t n_held = 0;

    *hints = (struct hints){.is_any = true};
    for (size_t i = 0; i < resource->n_devices; i++) {
        const struct dv_numa_group *device = &resource->devices[i];

        if (device->n_listed && device->place.kind >= DV_NUMA_PSEUDO)
            hints->is_any = false;
        n_held += device->n_held;
        n_free += device->n_available + device->n_reusable;
    }
    if (hints->is_any)
        return;
    if (n_held > 0 && n_held != resource->requested)
        return;
    if (n_held == 0 && n_free < resource->requested)
        return;
    walk_all(resource, n_held > 0, hints);
}

/* ------------------------------------------------------------------------------------------- */

static void check(const struct resource *resource, const struct dv_numa_group *groups,
                  size_t n_groups, const struct hints *want)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_hint_list got;
    struct dv_err err;
    bool is_ok = dv_topology_device_hints(&resource->machine, groups, n_groups, resource->requested,
                                          arena, &got, &err);

    assert(is_ok && got.is_any == want->is_any && got.n_hints == want->n);
    for (size_t i = 0; i < want->n; i++) {
        assert(got.hints[i].has_mask && got.hints[i].mask == want->hints[i].mask);
        assert(got.hints[i].is_preferred == want->hints[i].is_preferred);
    }
}

static size_t group_by_place(const struct resource *resource, struct dv_numa_group *groups)
{
    size_t n = 0;

    for (size_t i = 0; i < resource->n_devices; i++) {
        const struct dv_numa_group *device = &resource->devices[i];
        size_t at = 0;

        while (at < n && (groups[at].place.mask != device->place.mask ||
                          groups[at].place.kind != device->place.kind))
            at++;
        if (at == n)
            groups[n++] = (struct dv_numa_group){.place = device->place};
        groups[at].n_listed += device->n_listed;
        groups[at].n_available += device->n_available;
        groups[at].n_reusable += device->n_reusable;
        groups[at].n_held += device->n_held;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dv_numa_group groups[DEVICES_MAX];
    struct resource resource;
    struct hints want;

    read_resource(data, size, &resource);
    hints_of_walk(&resource, &want);
    check(&resource, resource.devices, resource.n_devices, &want);
    check(&resource, groups, group_by_place(&resource, groups), &want);
    return 0;
}

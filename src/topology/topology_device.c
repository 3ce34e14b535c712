/* topology_device.c - makes hints from the NUMA nodes of devices: which sets of nodes have enough
 * of them. */
#include "topology/topology.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"

/* A set of nodes as an index: the node that comes first has the highest bit. So, of two sets of one
 * size, the one that is first by its ids has the larger index. */

/* How many devices have a place; in `at`, where nodes other than `nodes` do not count. */
struct census {
    uint32_t n;
    uint32_t *at; /* after add_subsets: at all places within the index */
};

/* The numbers from which hints are made. */
struct supply {
    dv_numa_mask nodes;
    unsigned n_nodes;
    struct census listed;
    struct census usable;   /* reusable ones too */
    struct census reusable; /* those with a topology: they must be in the set of nodes */
};

static size_t index_of(dv_numa_mask mask, dv_numa_mask nodes)
{
    size_t index = 0;

    for (; nodes; nodes &= nodes - 1)
        index = index << 1 | ((mask & nodes & -nodes) != 0);
    return index;
}

static dv_numa_mask mask_of(size_t index, const struct supply *supply)
{
    dv_numa_mask mask = 0;

    for (dv_numa_mask nodes = supply->nodes; nodes; nodes &= nodes - 1) {
        if (index >> (supply->n_nodes - 1) & 1)
            mask |= nodes & -nodes;
        index <<= 1;
    }
    return mask;
}

static void census_add(struct census *census, size_t index, uint32_t n)
{
    census->n += n;
    census->at[index] += n;
}

static void add_subsets(struct census *census, size_t n_sets)
{
    for (size_t half = 1; half < n_sets; half *= 2)
        for (size_t base = 0; base < n_sets; base += 2 * half)
            for (size_t i = base; i < base + half; i++)
                census->at[i + half] += census->at[i];
}

/* Devices with a node in the set: all but those that have their nodes elsewhere, or none. */
static uint32_t count_in(const struct census *census, size_t set, size_t n_sets)
{
    return census->n - census->at[n_sets - 1 - set];
}

static bool serves(const struct supply *supply, size_t set, size_t n_sets, uint64_t requested)
{
    return count_in(&supply->reusable, set, n_sets) == supply->reusable.n &&
           count_in(&supply->usable, set, n_sets) >= requested;
}

static void take_census(const struct dv_numa_group *groups, size_t n_groups, bool is_held,
                        size_t n_sets, struct dv_arena *scratch, struct supply *supply)
{
    supply->listed.at = DV_NEW_ARRAY(scratch, uint32_t, n_sets);
    supply->usable.at = DV_NEW_ARRAY(scratch, uint32_t, n_sets);
    supply->reusable.at = DV_NEW_ARRAY(scratch, uint32_t, n_sets);
    for (size_t i = 0; i < n_groups; i++) {
        const struct dv_numa_group *group = &groups[i];
        size_t index = index_of(group->place.mask, supply->nodes);

        if (group->place.kind == DV_NUMA_NOT_TOLD)
            continue;
        census_add(&supply->listed, index, group->n_listed);
        census_add(&supply->usable, index,
                   is_held ? group->n_held : group->n_available + group->n_reusable);
        census_add(&supply->reusable, index, is_held ? 0 : group->n_reusable);
    }
    add_subsets(&supply->listed, n_sets);
    add_subsets(&supply->usable, n_sets);
    add_subsets(&supply->reusable, n_sets);
}

/* Lists hints by size, and in one size from the largest index down. */
static void list_hints(const struct supply *supply, size_t n_sets, uint64_t requested,
                       struct dv_arena *arena, struct dv_hint_list *list)
{
    size_t starts[DV_TOPOLOGY_DEVICE_NODES_MAX + 2] = {0}; /* first counts, of the size before */
    size_t n_preferred = supply->n_nodes;
    struct dv_numa_hint *hints;

    for (size_t set = 1; set < n_sets; set++) {
        size_t size = dv_topology_mask_count(set);

        if (size < n_preferred && count_in(&supply->listed, set, n_sets) >= requested)
            n_preferred = size;
        starts[size + 1] += serves(supply, set, n_sets, requested);
    }
    for (size_t size = 1; size < DV_COUNT(starts); size++)
        starts[size] += starts[size - 1];
    list->n_hints = starts[supply->n_nodes + 1];
    list->hints = hints = DV_NEW_ARRAY(arena, struct dv_numa_hint, list->n_hints);
    for (size_t set = n_sets - 1; set > 0; set--) {
        size_t size = dv_topology_mask_count(set);

        if (serves(supply, set, n_sets, requested))
            hints[starts[size]++] =
                (struct dv_numa_hint){mask_of(set, supply), true, size == n_preferred};
    }
}

/* The nodes of the machine that have devices; all, if none has. */
static dv_numa_mask nodes_of(const struct dv_numa_machine *machine,
                             const struct dv_numa_group *groups, size_t n_groups)
{
    dv_numa_mask nodes = 0;

    for (size_t i = 0; i < n_groups; i++)
        if (groups[i].n_listed > 0)
            nodes |= groups[i].place.mask;
    return nodes & machine->mask ? nodes & machine->mask : machine->mask;
}

static bool add_hints(const struct dv_numa_machine *machine, const struct dv_numa_group *groups,
                      size_t n_groups, bool is_held, uint64_t requested, struct dv_arena *arena,
                      struct dv_hint_list *list, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct supply supply = {.nodes = nodes_of(machine, groups, n_groups)};
    size_t n_sets;

    supply.n_nodes = dv_topology_mask_count(supply.nodes);
    if (supply.n_nodes > DV_TOPOLOGY_DEVICE_NODES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "devices on %u NUMA nodes: no more than %u are supported", supply.n_nodes,
                       DV_TOPOLOGY_DEVICE_NODES_MAX);
    n_sets = (size_t)1 << supply.n_nodes;
    take_census(groups, n_groups, is_held, n_sets, scratch, &supply);
    if (serves(&supply, n_sets - 1, n_sets, requested)) /* otherwise none does */
        list_hints(&supply, n_sets, requested, arena, list);
    return true;
}

bool dv_topology_device_hints(const struct dv_numa_machine *machine,
                              const struct dv_numa_group *groups, size_t n_groups,
                              uint64_t requested, struct dv_arena *arena, struct dv_hint_list *list,
                              struct dv_err *err)
{
    struct dv_hint_list found = {.is_any = true};
    uint64_t n_free = 0;
    uint64_t n_held = 0;

    for (size_t i = 0; i < n_groups; i++) {
        if (groups[i].n_listed > 0 && groups[i].place.kind >= DV_NUMA_PSEUDO)
            found.is_any = false;
        n_free += (uint64_t)groups[i].n_available + groups[i].n_reusable;
        n_held += groups[i].n_held;
    }
    if (!found.is_any && (n_held > 0 ? n_held == requested : n_free >= requested) &&
        !add_hints(machine, groups, n_groups, n_held > 0, requested, arena, &found, err))
        return false;
    *list = found;
    return true;
}

uint64_t dv_topology_pod_request(const struct dv_topology_need *needs, size_t n_needs)
{
    uint64_t peak = 0; /* while the pod starts: one init container, and the sidecars before it */
    uint64_t sidecars = 0;
    uint64_t regular = 0;

    for (size_t i = 0; i < n_needs; i++) {
        uint64_t limit = needs[i].limit;

        switch (needs[i].kind) {
        case DV_TOPOLOGY_NEED_REGULAR:
            regular = dv_u64_add_clamped(regular, limit);
            break;
        case DV_TOPOLOGY_NEED_INIT:
            peak = dv_u64_max(peak, dv_u64_add_clamped(sidecars, limit));
            break;
        case DV_TOPOLOGY_NEED_SIDECAR:
            sidecars = dv_u64_add_clamped(sidecars, limit);
            break;
        }
    }
    return dv_u64_max(peak, dv_u64_add_clamped(regular, sidecars));
}

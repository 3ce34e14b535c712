/* mask.c - sets of NUMA nodes. */
#include "topology/topology.h"

/* The id that stands for "no node" among a device's nodes, as in the kubelet's checkpoint. */
#define PSEUDO_NODE (-1)

unsigned dv_topology_mask_count(dv_numa_mask mask)
{
    return (unsigned)__builtin_popcountll(mask);
}

static bool is_in_range(int64_t id)
{
    return id >= 0 && id <= DV_NUMA_ID_MAX;
}

struct dv_numa_place dv_topology_place_from_ids(const int64_t *ids, size_t n_ids)
{
    struct dv_numa_place place = {0, n_ids > 0 ? DV_NUMA_PSEUDO : DV_NUMA_NO_NODES};

    for (size_t i = 0; i < n_ids; i++) {
        if (is_in_range(ids[i]))
            place.mask |= UINT64_C(1) << ids[i];
        if (ids[i] != PSEUDO_NODE)
            place.kind = DV_NUMA_NODES;
    }
    return place;
}

enum dv_numa_side dv_topology_side(const struct dv_numa_place *place,
                                   const struct dv_numa_hint *affinity)
{
    if (!affinity->has_mask || place->kind != DV_NUMA_NODES)
        return DV_NUMA_NO_SIDE;
    return place->mask & affinity->mask ? DV_NUMA_ALIGNED : DV_NUMA_UNALIGNED;
}

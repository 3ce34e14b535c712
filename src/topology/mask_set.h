/* mask_set.h - a set of masks that are not empty: open addressing, at most half full.
 *
 *     for (size_t i = 0; i < set.n_slots; i++)
 *         if (set.slots[i])
 *             ...                                                                              */
#ifndef DV_TOPOLOGY_MASK_SET_H
#define DV_TOPOLOGY_MASK_SET_H

#include "topology/topology.h"

struct dv_mask_set {
    dv_numa_mask *slots; /* 0: free; in the arena */
    size_t n_slots;      /* a power of two */
    size_t n;
    unsigned shift; /* from a hash to a slot */
};

/* Makes an empty set, in which `room` masks fit without growing. */
void dv_mask_set_init(struct dv_mask_set *set, size_t room, struct dv_arena *arena);
/* Adds a mask; the set grows in `arena`, the one it was made in. */
void dv_mask_set_add(struct dv_mask_set *set, dv_numa_mask mask, struct dv_arena *arena);
/* Returns the slot that has the mask, or a free one. */
size_t dv_mask_set_find(const struct dv_mask_set *set, dv_numa_mask mask);

#endif

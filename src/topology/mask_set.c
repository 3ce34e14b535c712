#include "topology/mask_set.h"

#include <assert.h>

#include "base/arena.h"

#define SLOT_BITS_MIN 3u
/* 2^64 over the golden ratio: spreads neighbours, and the high bits depend on all others. */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)

void dv_mask_set_init(struct dv_mask_set *set, size_t room, struct dv_arena *arena)
{
    unsigned bits = SLOT_BITS_MIN;

    while (room > ((size_t)1 << bits) / 2)
        bits++;
    *set = (struct dv_mask_set){
        .slots = DV_NEW_ARRAY(arena, dv_numa_mask, (size_t)1 << bits),
        .n_slots = (size_t)1 << bits,
        .shift = 64 - bits,
    };
}

size_t dv_mask_set_find(const struct dv_mask_set *set, dv_numa_mask mask)
{
    size_t slot = (size_t)((mask * SPREAD) >> set->shift);

    while (set->slots[slot] && set->slots[slot] != mask)
        slot = (slot + 1) & (set->n_slots - 1);
    return slot;
}

static void grow(struct dv_mask_set *set, struct dv_arena *arena)
{
    struct dv_mask_set larger;

    dv_mask_set_init(&larger, set->n_slots, arena);
    for (size_t i = 0; i < set->n_slots; i++)
        if (set->slots[i])
            larger.slots[dv_mask_set_find(&larger, set->slots[i])] = set->slots[i];
    larger.n = set->n;
    *set = larger;
}

void dv_mask_set_add(struct dv_mask_set *set, dv_numa_mask mask, struct dv_arena *arena)
{
    size_t slot = dv_mask_set_find(set, mask);

    assert(mask != 0);
    if (set->slots[slot])
        return;
    if (set->n == set->n_slots / 2) {
        grow(set, arena);
        slot = dv_mask_set_find(set, mask);
    }
    set->slots[slot] = mask;
    set->n++;
}

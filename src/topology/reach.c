#include "topology/reach.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"

/* One list at a time: from the distinct masks so far and the hints of the list to the next distinct
 * masks. Either pair by pair, or with tables over all subsets of the nodes that are left, which is
 * the better way once there are many pairs:
 *
 *     f(t) = 1 if t is one of the masks   g(t) = 1 if t is one of the hints
 *     F(t) = sum of f over supersets      G(t) likewise
 *     F(t) G(t) counts the pairs whose two sides both contain t, and so does the sum over supersets
 *     of h(t) = how many pairs have the intersection t: h comes back by subtraction. */

/* Two tables of 2^20 numbers take 16 MB for a moment, and some 80 ms. */
#define TABLE_BITS_MAX 20u
/* A pair costs about as much as this many steps in a table. */
#define PAIR_STEPS 4u
/* Where tables are too large; some 50 ms, and 128 MB if no two pairs meet in the same mask. */
#define PAIRS_MAX (4u * 1024u * 1024u)
/* The room that a set of masks gets at first; most never grow. */
#define ROOM_BITS_MAX 8u

/* Whether the nodes begin at 0 and have no gaps, so that a mask is its own index. */
static bool has_no_gaps(dv_numa_mask nodes)
{
    return (nodes & (nodes + 1)) == 0;
}

/* Converts masks to indexes into a table and back: index bit i is the i-th node of `nodes`. */
static size_t index_of(dv_numa_mask mask, dv_numa_mask nodes)
{
    size_t index = 0;

    if (has_no_gaps(nodes))
        return (size_t)(mask & nodes);
    for (size_t bit = 1; nodes; nodes &= nodes - 1, bit <<= 1)
        if (mask & nodes & -nodes)
            index |= bit;
    return index;
}

static dv_numa_mask mask_of(size_t index, dv_numa_mask nodes)
{
    dv_numa_mask mask = 0;

    if (has_no_gaps(nodes))
        return index;
    for (; index; index >>= 1, nodes &= nodes - 1)
        if (index & 1)
            mask |= nodes & -nodes;
    return mask;
}

static void add_supersets(uint64_t *table, size_t n)
{
    for (size_t half = 1; half < n; half *= 2)
        for (size_t base = 0; base < n; base += 2 * half)
            for (size_t i = base; i < base + half; i++)
                table[i] += table[i + half];
}

static void subtract_supersets(uint64_t *table, size_t n)
{
    for (size_t half = 1; half < n; half *= 2)
        for (size_t base = 0; base < n; base += 2 * half)
            for (size_t i = base; i < base + half; i++)
                table[i] -= table[i + half];
}

static dv_numa_mask mask_of_hint(const struct dv_numa_hint *hint)
{
    return hint->has_mask ? hint->mask : UINT64_MAX;
}

static void intersect_by_table(const struct dv_mask_set *from, const struct dv_hint_list *list,
                               dv_numa_mask nodes, struct dv_arena *arena, struct dv_mask_set *to)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    size_t n = (size_t)1 << dv_topology_mask_count(nodes);
    uint64_t *f = DV_NEW_ARRAY(scratch, uint64_t, n);
    uint64_t *g = DV_NEW_ARRAY(scratch, uint64_t, n);

    for (size_t i = 0; i < from->n_slots; i++)
        if (from->slots[i])
            f[index_of(from->slots[i], nodes)] = 1;
    for (size_t i = 0; i < list->n_hints; i++)
        g[index_of(mask_of_hint(&list->hints[i]), nodes)] = 1;
    add_supersets(f, n);
    add_supersets(g, n);
    for (size_t i = 0; i < n; i++)
        f[i] *= g[i]; /* up to 2^40 */
    subtract_supersets(f, n);
    for (size_t i = 1; i < n; i++)
        if (f[i])
            dv_mask_set_add(to, mask_of(i, nodes), arena);
}

static void intersect_by_pair(const struct dv_mask_set *from, const struct dv_hint_list *list,
                              struct dv_arena *arena, struct dv_mask_set *to)
{
    for (size_t k = 0; k < list->n_hints; k++) {
        dv_numa_mask hint = mask_of_hint(&list->hints[k]);

        for (size_t i = 0; i < from->n_slots; i++)
            if (from->slots[i] & hint)
                dv_mask_set_add(to, from->slots[i] & hint, arena);
    }
}

/* Replaces *reached, the masks before the list, by those after it. */
static bool intersect(const struct dv_hint_list *list, struct dv_arena *arena,
                      struct dv_mask_set *reached, struct dv_err *err)
{
    struct dv_mask_set next;
    dv_numa_mask nodes = 0;
    unsigned n_bits;
    size_t n_pairs;

    for (size_t i = 0; i < reached->n_slots; i++)
        nodes |= reached->slots[i];
    n_bits = dv_topology_mask_count(nodes);
    if (!dv_size_mul(reached->n, list->n_hints, &n_pairs))
        n_pairs = SIZE_MAX;
    if (n_bits > TABLE_BITS_MAX && n_pairs > PAIRS_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "hints over %u NUMA nodes: more than %u intersections to try", n_bits,
                       PAIRS_MAX);
    dv_mask_set_init(&next, dv_size_min(n_pairs, (size_t)1 << dv_size_min(n_bits, ROOM_BITS_MAX)),
                     arena);
    if (n_bits <= TABLE_BITS_MAX && n_pairs / n_bits > ((size_t)2 << n_bits) / PAIR_STEPS)
        intersect_by_table(reached, list, nodes, arena, &next);
    else
        intersect_by_pair(reached, list, arena, &next);
    *reached = next;
    return true;
}

bool dv_topology_reach(dv_numa_mask all, const struct dv_hint_list *lists, size_t n_lists,
                       struct dv_arena *arena, struct dv_mask_set *reached, struct dv_err *err)
{
    struct dv_mask_set found;

    dv_mask_set_init(&found, 1, arena);
    if (all)
        dv_mask_set_add(&found, all, arena);
    for (size_t i = 0; i < n_lists && found.n > 0; i++)
        if (lists[i].n_hints > 0 && !intersect(&lists[i], arena, &found, err))
            return false;
    *reached = found;
    return true;
}

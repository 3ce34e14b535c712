#include "topology/choice.h"

#include "base/num.h"

/* The kernel's distance of a node that cannot be reached. It stands in for rows that are too short,
 * which no kernel writes. */
#define UNREACHABLE 255u

/* The number of the machine's nodes that have smaller ids. */
static size_t place_of(const struct dv_numa_machine *machine, unsigned id)
{
    return dv_topology_mask_count(machine->mask & ((UINT64_C(1) << id) - 1));
}

/* The reference looks up column `to` by its id. The kernel writes a column for each node that there
 * is, so where ids have gaps that is another node's or, where the reference crashes, none: then we
 * take the right one. */
static uint32_t distance_to(const struct dv_numa_machine *machine, const struct dv_numa_node *from,
                            unsigned to)
{
    size_t column = to < from->n_distances ? to : place_of(machine, to);

    return column < from->n_distances ? from->distances[column] : UNREACHABLE;
}

uint64_t dv_topology_distance(const struct dv_numa_machine *machine, dv_numa_mask mask)
{
    uint64_t sum = 0;

    for (dv_numa_mask a = mask; a; a &= a - 1) {
        const struct dv_numa_node *from =
            &machine->nodes[place_of(machine, (unsigned)__builtin_ctzll(a))];

        for (dv_numa_mask b = mask; b; b &= b - 1)
            sum += distance_to(machine, from, (unsigned)__builtin_ctzll(b));
    }
    return sum;
}

/* Smaller is better, and no two counts are equally good. */
static unsigned rank(const struct dv_topology_choice *choice, const struct dv_numa_hint *hint)
{
    unsigned n = dv_topology_mask_count(hint->mask);

    if (hint->is_preferred || n > choice->n_nodes_wanted)
        return n;
    return choice->n_nodes_wanted - n;
}

static bool is_better(const struct dv_topology_choice *choice, const struct dv_numa_hint *a,
                      const struct dv_numa_hint *b)
{
    unsigned rank_a = rank(choice, a);
    unsigned rank_b = rank(choice, b);

    if (a->is_preferred != b->is_preferred)
        return a->is_preferred;
    if (rank_a != rank_b)
        return rank_a < rank_b;
    if (choice->prefers_closest) {
        uint64_t distance_a = dv_topology_distance(choice->machine, a->mask);
        uint64_t distance_b = dv_topology_distance(choice->machine, b->mask);

        if (distance_a != distance_b)
            return distance_a < distance_b;
    }
    return a->mask < b->mask;
}

void dv_topology_choice_offer(struct dv_topology_choice *choice, dv_numa_mask mask,
                              bool is_preferred)
{
    struct dv_numa_hint offer = {mask, true, is_preferred};

    if (mask == 0 || (choice->has_best && !is_better(choice, &offer, &choice->best)))
        return;
    choice->best = offer;
    choice->has_best = true;
}

unsigned dv_topology_nodes_wanted(const struct dv_hint_list *lists, size_t n_lists)
{
    size_t wanted = 0;

    for (size_t i = 0; i < n_lists; i++) {
        size_t narrowest = SIZE_MAX;

        for (size_t k = 0; k < lists[i].n_hints; k++)
            if (lists[i].hints[k].has_mask)
                narrowest = dv_size_min(narrowest, dv_topology_mask_count(lists[i].hints[k].mask));
        if (narrowest != SIZE_MAX)
            wanted = dv_size_max(wanted, narrowest);
    }
    return (unsigned)wanted;
}

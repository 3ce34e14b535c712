/* choice.h - the best of all merged hints that are offered.
 *
 * The reference compares each candidate with the best so far. Its rules are a strict order on
 * (mask, preferred), so that candidates may come in any order, and more than once:
 *
 *     preferred before not preferred
 *     preferred:       fewer nodes first
 *     not preferred:   with B as below, sizes in the order B, B-1, .. 1, B+1, B+2, ..
 *     of one size:     the nearer nodes (only with prefer-closest), then the smaller number */
#ifndef DV_TOPOLOGY_CHOICE_H
#define DV_TOPOLOGY_CHOICE_H

#include "topology/topology.h"

struct dv_topology_choice {
    const struct dv_numa_machine *machine;
    bool prefers_closest;
    /* B: no result of fewer nodes serves the list whose narrowest hint is the widest. */
    unsigned n_nodes_wanted;
    bool has_best;
    struct dv_numa_hint best;
};

/* Offers a candidate; an empty mask is none. */
void dv_topology_choice_offer(struct dv_topology_choice *choice, dv_numa_mask mask,
                              bool is_preferred);

/* B: the count of the narrowest mask in each list; of these the largest. 0 without masks. */
unsigned dv_topology_nodes_wanted(const struct dv_hint_list *lists, size_t n_lists);

/* The sum over all ordered pairs of nodes in `mask`, nodes of the machine, each with itself too.
 * For masks of one size it orders as the average does. */
uint64_t dv_topology_distance(const struct dv_numa_machine *machine, dv_numa_mask mask);

#endif

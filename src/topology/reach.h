/* reach.h - the masks that merged hints can have: one hint from each list, intersected. */
#ifndef DV_TOPOLOGY_REACH_H
#define DV_TOPOLOGY_REACH_H

#include "topology/mask_set.h"
#include "topology/topology.h"

/* Finds all intersections with `all` that are not empty, into `arena`; the empty one is left out,
 * as it is no candidate. DV_RESOURCE_EXHAUSTED: too many to try. */
DV_CHECKED bool dv_topology_reach(dv_numa_mask all, const struct dv_hint_list *lists,
                                  size_t n_lists, struct dv_arena *arena,
                                  struct dv_mask_set *reached, struct dv_err *err);

#endif

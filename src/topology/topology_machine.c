/* topology_machine.c - reads the machine's NUMA nodes and their distances. */
#include "topology/topology.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/vec.h"

/* "3" or "3-5". */
static bool parse_range(dv_str text, uint32_t *first, uint32_t *last)
{
    size_t dash = dv_str_find_char(text, '-');

    if (!dv_str_to_u32(dv_str_slice(text, 0, dash), first))
        return false;
    if (dash == text.n) {
        *last = *first;
        return true;
    }
    return dv_str_to_u32(dv_str_slice(text, dash + 1, text.n), last) && *first <= *last;
}

struct found {
    DV_VEC(struct dv_numa_node) nodes;
    dv_numa_mask mask;
};

/* Adds the nodes of one range. They come in ascending order, so that the limit on ids is one on
 * their number too. */
static bool add_range(struct found *found, dv_str text, struct dv_arena *arena, struct dv_err *err)
{
    uint32_t first, last;

    if (!parse_range(text, &first, &last))
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is no range of NUMA nodes",
                       DV_FMT(text));
    if (last >= DV_NUMA_NODES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "NUMA node %u: ids must be below %u", last,
                       DV_NUMA_NODES_MAX);
    if (found->nodes.n > 0 && first <= found->nodes.v[found->nodes.n - 1].id)
        return dv_fail(err, DV_INVALID_ARGUMENT, "NUMA node %u is out of order", first);
    for (uint32_t id = first; id <= last; id++) {
        dv_vec_add_in(&found->nodes, arena)->id = id;
        if (id <= DV_NUMA_ID_MAX)
            found->mask |= UINT64_C(1) << id;
    }
    return true;
}

bool dv_topology_machine_parse(dv_str online, struct dv_arena *arena,
                               struct dv_numa_machine *machine, struct dv_err *err)
{
    struct found found = {0};
    dv_str rest = dv_str_trim(online);
    dv_str range;

    if (rest.n > 0) /* a text without any is a machine without nodes */
        while (dv_str_split(&rest, ',', &range))
            if (!add_range(&found, range, arena, err))
                return false;
    *machine = (struct dv_numa_machine){found.nodes.v, found.nodes.n, found.mask};
    return true;
}

bool dv_topology_distances_parse(struct dv_numa_node *node, dv_str text, struct dv_arena *arena,
                                 struct dv_err *err)
{
    dv_str rest = dv_str_trim(text);
    uint32_t *distances = DV_NEW_ARRAY(arena, uint32_t, dv_size_min(rest.n, DV_NUMA_NODES_MAX));
    size_t n = 0;
    dv_str number;

    while (rest.n > 0 && dv_str_split(&rest, ' ', &number)) {
        if (n == DV_NUMA_NODES_MAX)
            return dv_fail(err, DV_RESOURCE_EXHAUSTED, "NUMA node %u: more than %u distances",
                           node->id, DV_NUMA_NODES_MAX);
        if (!dv_str_to_u32(number, &distances[n]))
            return dv_fail(err, DV_INVALID_ARGUMENT, "NUMA node %u: \"%.*s\" is no distance",
                           node->id, DV_FMT(number));
        n++;
    }
    node->distances = distances;
    node->n_distances = n;
    return true;
}

/* rival.c - pools that two nodes publish. A pool is known by its driver and name alone: a slice
 * that another node publishes under the name of this node's pool takes part in it. It can make the
 * pool look old or incomplete, and whoever holds a device of the one holds that of the other.
 * Nothing can be done about it here but to say which slice it is. */
#include <stddef.h>

#include "alloc/inventory.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

/* Empty for a slice that is not of one node. */
static dv_str node_of(const struct dv_inventory_slice *slice)
{
    return slice->node ? slice->node->name : slice->spec->node_name; /* a shared one never sleeps */
}

static const struct dv_inventory_slice *find_other(struct dv_alloc_pool *pool, dv_str node)
{
    for (struct dv_link *link = pool->slices.head.next; link != &pool->slices.head;
         link = link->next) {
        const struct dv_inventory_slice *slice =
            DV_CONTAINER(link, struct dv_inventory_slice, in_pool);

        if (!dv_str_eq(node_of(slice), node))
            return slice;
    }
    return NULL;
}

size_t dv_inventory_rivals(struct dv_inventory *inventory, dv_str node,
                           struct dv_alloc_rival *rivals, size_t n_max)
{
    struct dv_alloc_inventory_node *own = dv_map_get(&inventory->nodes, node);
    size_t n = 0;

    inventory->rival_mark++;
    for (struct dv_link *link = own ? own->slices.head.next : NULL;
         link && link != &own->slices.head && n < n_max; link = link->next) {
        const struct dv_inventory_slice *slice =
            DV_CONTAINER(link, struct dv_inventory_slice, in_node);
        struct dv_alloc_pool *pool = slice->pool;

        if (pool->rival_mark == inventory->rival_mark)
            continue; /* this pool was looked at: all its slices have the same rivals */
        pool->rival_mark = inventory->rival_mark;
        rivals[n] = (struct dv_alloc_rival){slice, find_other(pool, node)};
        n += rivals[n].other != NULL;
    }
    return n;
}

dv_str dv_rival_print(const struct dv_alloc_rival *rival, struct dv_arena *arena)
{
    dv_str node = node_of(rival->other);
    dv_str name = dv_object_names(rival->other->object).name;
    dv_str path = rival->own->pool->path;

    if (node.n > 0)
        return dv_str_printf(arena, "pool %.*s is also that of slice %.*s of node %.*s",
                             DV_FMT(path), DV_FMT(name), DV_FMT(node));
    return dv_str_printf(arena, "pool %.*s is also that of slice %.*s, which is not of one node",
                         DV_FMT(path), DV_FMT(name));
}

/* alloc_rest.c - gives back what an inventory has made for searches alone: the structs of slices,
 * the views of nodes, devices as CEL sees them. A slice as structs takes eight times the memory of
 * its row, and most slices are of nodes on which nothing is being chosen.
 *
 *     awake:    slice->spec and device->api are there, pinned or decoded
 *     sleeping: they are NULL, and the object is only kept, so that it may be packed
 *
 * A slice for one node is woken when a view of the node is made, or when another node counts what
 * its devices consume of a pool's counters. Slices that are for several nodes, and objects that
 * have no row, do not sleep. */
#include <stdbool.h>
#include <stddef.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

/* So many nodes are put to rest in one go: all together some hundred microseconds. */
#define NODES_AT_ONCE 64u

static void set_value(struct dv_inventory_slice *slice, const struct dv_api_resource_slice *value)
{
    slice->spec = &value->spec;
    for (size_t i = 0; i < slice->n_devices; i++)
        slice->devices[i].api = &value->spec.devices[i];
}

void dv_inventory_wake(struct dv_inventory *inventory, struct dv_inventory_slice *slice)
{
    struct dv_object whole;

    if (slice->spec)
        return;
    slice->woken = dv_arena_new();
    set_value(slice, dv_object_read(slice->object, slice->woken, &whole)->value);
    dv_inventory_rest_later(inventory, slice->node);
}

void dv_inventory_rest_later(struct dv_inventory *inventory, struct dv_alloc_inventory_node *node)
{
    if (!dv_link_is_in(&node->awake))
        dv_list_push(&inventory->awake, &node->awake);
}

void dv_inventory_unpin(struct dv_inventory_slice *slice)
{
    if (slice->is_pinned)
        dv_object_unref(slice->object);
    else
        dv_object_unkeep(slice->object);
    dv_arena_free(slice->woken);
    slice->woken = NULL;
}

static void put_to_sleep(struct dv_inventory_slice *slice)
{
    if (!slice->spec || dv_object_row(slice->object).n == 0)
        return;
    slice->spec = NULL;
    for (size_t i = 0; i < slice->n_devices; i++) {
        slice->devices[i].api = NULL;
        slice->devices[i].cel = NULL; /* it refers to `api` */
        slice->devices[i].cel_version = 0;
    }
    (void)dv_object_keep(slice->object);
    dv_inventory_unpin(slice);
    slice->is_pinned = false;
}

void dv_inventory_rest_node(struct dv_inventory *inventory, struct dv_alloc_inventory_node *node)
{
    struct dv_link *link;

    dv_link_remove(&node->awake);
    dv_alloc_node_view_free(node->view);
    node->view = NULL;
    DV_LIST_EACH (&node->slices, link)
        put_to_sleep(DV_CONTAINER(link, struct dv_inventory_slice, in_node));
    dv_inventory_drop_if_unused(inventory, node);
}

bool dv_inventory_rest(struct dv_inventory *inventory)
{
    struct dv_link *link;

    if (inventory->lent.is_lent)
        return true;
    for (size_t n = 0; n < NODES_AT_ONCE && (link = dv_list_first(&inventory->awake)) != NULL; n++)
        dv_inventory_rest_node(inventory,
                               DV_CONTAINER(link, struct dv_alloc_inventory_node, awake));
    if (!dv_list_is_empty(&inventory->awake))
        return true;
    /* The devices of shared slices are among these, and are made anew when they are looked at. */
    dv_arena_reset(inventory->cel);
    inventory->cel_version++;
    return false;
}

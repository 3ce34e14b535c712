/* lend.c - an inventory that a job searches on another thread, and what changes meanwhile.
 *
 * While it is lent, the owner's changes are put off, in their order; nothing of the inventory
 * itself is touched but what is in `lent`. So the job needs no lock, and sees what there was when
 * it began. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

struct dv_alloc_change *dv_inventory_put_off(struct dv_inventory *inventory, enum change_kind kind)
{
    struct dv_alloc_change *change;

    if (!inventory->lent.is_lent)
        return NULL;
    if (!inventory->lent.arena)
        inventory->lent.arena = dv_arena_new();
    change = dv_vec_add(&inventory->lent.changes);
    *change = (struct dv_alloc_change){.kind = kind};
    return change;
}

void dv_inventory_lend(struct dv_inventory *inventory)
{
    assert(!inventory->lent.is_lent);
    inventory->lent.is_lent = true;
}

static void carry_out(struct dv_inventory *inventory, const struct dv_alloc_change *change)
{
    switch (change->kind) {
    case DV_ALLOC_CHANGE_ADD_SLICE:
        dv_inventory_enter_slice(inventory, change->slice);
        return;
    case DV_ALLOC_CHANGE_REMOVE_SLICE:
        dv_inventory_remove_slice(inventory, change->slice);
        return;
    case DV_ALLOC_CHANGE_FORGET_NODE:
        dv_inventory_forget_node(inventory, change->name);
        return;
    case DV_ALLOC_CHANGE_SET_CLASS:
        dv_inventory_set_class(inventory, change->class);
        dv_object_unref(change->class);
        return;
    case DV_ALLOC_CHANGE_REMOVE_CLASS:
        dv_inventory_remove_class(inventory, change->name);
        return;
    case DV_ALLOC_CHANGE_HOLD:
        dv_inventory_hold(inventory, change->allocation, change->name);
        return;
    case DV_ALLOC_CHANGE_RELEASE:
        dv_inventory_release(inventory, change->allocation);
        return;
    }
}

void dv_inventory_return(struct dv_inventory *inventory)
{
    assert(inventory->lent.is_lent);
    inventory->lent.is_lent = false;
    for (size_t i = 0; i < inventory->lent.changes.n; i++)
        carry_out(inventory, &inventory->lent.changes.v[i]);
    dv_vec_clear(&inventory->lent.changes);
    if (inventory->lent.arena)
        dv_arena_reset(inventory->lent.arena);
}

void dv_inventory_free_lent(struct dv_inventory *inventory)
{
    assert(!inventory->lent.is_lent);
    dv_vec_fini(&inventory->lent.changes);
    dv_arena_free(inventory->lent.arena);
}

bool dv_inventory_is_lent(const struct dv_inventory *inventory)
{
    return inventory->lent.is_lent;
}

/* ---- what has changed ---- */

uint64_t dv_inventory_now(const struct dv_inventory *inventory)
{
    return inventory->version;
}

bool dv_inventory_has_changed(const struct dv_inventory *inventory, dv_str name, uint64_t since)
{
    const struct dv_alloc_inventory_node *node;

    if (inventory->version == since)
        return false;
    node = dv_map_get(&inventory->nodes, name);
    if (!node || !node->view || node->version > since || inventory->shared_version > since ||
        inventory->classes_version > since)
        return true;
    for (size_t i = 0; i < node->view->n_pools; i++) {
        const struct dv_alloc_pool *pool = node->view->pools[i].pool;

        if (pool->slices_version > since || pool->usage_version > since)
            return true;
    }
    for (size_t i = 0; i < node->view->obsolete.n; i++)
        if (node->view->obsolete.v[i].pool->slices_version > since)
            return true;
    return false;
}

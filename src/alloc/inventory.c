/* inventory.c - adds and removes slices and classes. Each change marks the pools and nodes that it
 * concerns with the number of a new version; what was derived from them (node_view.c, the sums of
 * counters.c) compares turns and is made anew when it is asked for. So a change costs what it
 * concerns, and a search on another node costs nothing more. */
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

/* The ceiling of a key, or of a device as text: a request to the API has less than 3 MiB. */
#define TEXT_BYTES_MAX (8u << 20)

struct dv_alloc_features dv_alloc_features_default(void)
{
    return (struct dv_alloc_features){
        .admin_access = true,
        .consumable_capacity = true,
        .binding_conditions = true,
        .device_taints = true,
        .partitionable_devices = true,
        .prioritized_list = true,
    };
}

/* ---- slices ---- */

struct dv_alloc_inventory_node *dv_inventory_node(struct dv_inventory *inventory, dv_str name)
{
    struct dv_alloc_inventory_node *node = dv_map_get(&inventory->nodes, name);
    char *key;

    if (node)
        return node;
    node = dv_alloc(sizeof(*node) + name.n);
    key = (char *)(node + 1);
    if (name.n)
        memcpy(key, name.p, name.n);
    node->name = (dv_str){key, name.n};
    dv_list_init(&node->slices);
    dv_map_set(&inventory->nodes, node->name, node);
    return node;
}

void dv_inventory_drop_if_unused(struct dv_inventory *inventory,
                                 struct dv_alloc_inventory_node *node)
{
    if (node->view || !dv_list_is_empty(&node->slices))
        return;
    dv_map_remove(&inventory->nodes, node->name);
    dv_link_remove(&node->awake);
    free(node);
}

void dv_inventory_forget_node(struct dv_inventory *inventory, dv_str name)
{
    struct dv_alloc_change *later = dv_inventory_put_off(inventory, DV_ALLOC_CHANGE_FORGET_NODE);
    struct dv_alloc_inventory_node *node;

    if (later) {
        later->name = dv_str_copy(name, inventory->lent.arena);
        return;
    }
    node = dv_map_get(&inventory->nodes, name);
    if (!node)
        return;
    /* What was found on it may point into its slices, and depend on its labels. */
    node->version = ++inventory->version;
    dv_inventory_rest_node(inventory, node);
}

static uint32_t take_slot(struct dv_inventory *inventory)
{
    if (inventory->free_slots.n > 0)
        return inventory->free_slots.v[--inventory->free_slots.n];
    return inventory->n_slots++;
}

static void add_device(struct dv_inventory *inventory, struct dv_inventory_slice *slice, size_t i)
{
    struct dv_alloc_device *device = &slice->devices[i];
    const struct dv_api_device *api = &slice->spec->devices[i];

    device->api = api;
    device->slice = slice;
    device->ident = dv_ident_ref(inventory, slice->pool->driver, slice->pool->name, api->name);
    device->slot = take_slot(inventory);
    device->content = dv_alloc_device_content(inventory, device);
    slice->is_consuming |= api->n_consumes_counters > 0;
    device->is_multi = inventory->features.consumable_capacity && api->allow_multiple_allocations &&
                       *api->allow_multiple_allocations;
}

/* Marks all that depends on the slice as changed. */
static void touch(struct dv_inventory *inventory, struct dv_inventory_slice *slice)
{
    slice->pool->slices_version = ++inventory->version;
    slice->pool->usage_version = inventory->version;
    if (slice->node)
        slice->node->version = inventory->version;
    else
        inventory->shared_version = inventory->version;
}

void dv_inventory_enter_slice(struct dv_inventory *inventory, struct dv_inventory_slice *slice)
{
    const struct dv_api_resource_slice *api = slice->object->value;

    slice->spec = &api->spec;
    slice->arena = dv_arena_new();
    slice->order = ++inventory->order;
    slice->pool = dv_pool_ref(inventory, api->spec.driver, api->spec.pool.name);
    dv_list_push(&slice->pool->slices, &slice->in_pool);
    if (api->spec.node_name.p && api->spec.n_shared_counters == 0) {
        slice->node = dv_inventory_node(inventory, api->spec.node_name);
        dv_list_push(&slice->node->slices, &slice->in_node);
        dv_inventory_rest_later(inventory, slice->node);
    } else {
        dv_list_push(&inventory->shared, &slice->in_node);
    }
    slice->n_devices = api->spec.n_devices;
    slice->generation = api->spec.pool.generation;
    *(slice->node ? &slice->node->n_devices : &inventory->n_shared_devices) += slice->n_devices;
    slice->devices = DV_NEW_ARRAY(slice->arena, struct dv_alloc_device, slice->n_devices);
    for (size_t i = 0; i < slice->n_devices; i++)
        add_device(inventory, slice, i);
    touch(inventory, slice);
}

struct dv_inventory_slice *dv_inventory_add_slice(struct dv_inventory *inventory,
                                                  struct dv_object *object)
{
    struct dv_inventory_slice *slice = DV_ALLOC(struct dv_inventory_slice);
    struct dv_alloc_change *later = dv_inventory_put_off(inventory, DV_ALLOC_CHANGE_ADD_SLICE);

    slice->object = dv_object_ref(object);
    slice->is_pinned = true;
    if (later)
        later->slice = slice;
    else
        dv_inventory_enter_slice(inventory, slice);
    return slice;
}

void dv_inventory_remove_slice(struct dv_inventory *inventory, struct dv_inventory_slice *slice)
{
    struct dv_alloc_change *later = dv_inventory_put_off(inventory, DV_ALLOC_CHANGE_REMOVE_SLICE);

    if (later) {
        later->slice = slice;
        return;
    }
    touch(inventory, slice);
    for (size_t i = 0; i < slice->n_devices; i++) {
        struct dv_alloc_device *device = &slice->devices[i];

        dv_inventory_forget_slot(inventory, device->slot);
        *dv_vec_add(&inventory->free_slots) = device->slot;
        dv_ident_unref(inventory, device->ident);
    }
    dv_link_remove(&slice->in_pool);
    dv_link_remove(&slice->in_node);
    *(slice->node ? &slice->node->n_devices : &inventory->n_shared_devices) -= slice->n_devices;
    if (slice->node)
        dv_inventory_drop_if_unused(inventory, slice->node);
    dv_pool_unref(inventory, slice->pool);
    dv_inventory_unpin(slice);
    dv_arena_free(slice->arena);
    free(slice);
}

/* ---- classes ---- */

void dv_inventory_remove_class(struct dv_inventory *inventory, dv_str name)
{
    struct dv_alloc_change *later = dv_inventory_put_off(inventory, DV_ALLOC_CHANGE_REMOVE_CLASS);
    struct dv_object *class;

    if (later) {
        later->name = dv_str_copy(name, inventory->lent.arena);
        return;
    }
    class = dv_map_remove(&inventory->classes, name);
    inventory->classes_version = ++inventory->version;
    inventory->is_extended_current = false;
    dv_map_clear(&inventory->extended);
    dv_object_unref(class);
}

void dv_inventory_set_class(struct dv_inventory *inventory, struct dv_object *class)
{
    struct dv_alloc_change *later = dv_inventory_put_off(inventory, DV_ALLOC_CHANGE_SET_CLASS);

    dv_object_ref(class);
    if (later) {
        later->class = class;
        return;
    }
    dv_inventory_remove_class(inventory, class->meta->name);
    dv_map_set(&inventory->classes, class->meta->name, class);
}

const struct dv_api_device_class *dv_inventory_class(const struct dv_inventory *inventory,
                                                     dv_str name)
{
    const struct dv_object *class = dv_map_get(&inventory->classes, name);

    return class ? class->value : NULL;
}

/* ---- life ---- */

struct dv_inventory *dv_inventory_new(const struct dv_alloc_features *features)
{
    struct dv_inventory *inventory = DV_ALLOC(struct dv_inventory);

    inventory->features = *features;
    dv_idents_init(inventory);
    dv_map_init(&inventory->pools);
    dv_map_init(&inventory->nodes);
    dv_map_init(&inventory->classes);
    dv_map_init(&inventory->extended);
    dv_map_init(&inventory->selectors);
    dv_list_init(&inventory->selectors_by_use);
    dv_list_init(&inventory->shared);
    dv_list_init(&inventory->awake);
    dv_buf_init(&inventory->text, TEXT_BYTES_MAX);
    inventory->scratch = dv_arena_new();
    inventory->cel = dv_arena_new();
    inventory->cel_version = 1;
    return inventory;
}

/* Removes all slices of a list. They are counted first: the node, and with it the list, is freed
 * with its last slice. */
static void free_slices(struct dv_inventory *inventory, struct dv_list *slices)
{
    size_t n = 0;

    for (const struct dv_link *link = slices->head.next; link != &slices->head; link = link->next)
        n++;
    for (; n > 0; n--)
        dv_inventory_remove_slice(
            inventory, DV_CONTAINER(slices->head.next, struct dv_inventory_slice, in_node));
}

void dv_inventory_free(struct dv_inventory *inventory)
{
    const struct dv_map_entry *entry;

    if (!inventory)
        return;
    dv_inventory_free_lent(inventory);
    free_slices(inventory, &inventory->shared);
    for (size_t at = 0; (entry = dv_map_next(&inventory->nodes, &at));) {
        struct dv_alloc_inventory_node *node = entry->value;

        dv_alloc_node_view_free(node->view);
        node->view = NULL;
        if (dv_list_is_empty(&node->slices))
            dv_inventory_drop_if_unused(inventory, node);
        else
            free_slices(inventory, &node->slices);
    }
    dv_idents_fini(inventory);
    for (size_t at = 0; (entry = dv_map_next(&inventory->classes, &at));)
        dv_object_unref(entry->value);
    dv_inventory_free_selectors(inventory);
    dv_map_fini(&inventory->pools);
    dv_map_fini(&inventory->nodes);
    dv_map_fini(&inventory->classes);
    dv_map_fini(&inventory->extended);
    dv_map_fini(&inventory->selectors);
    dv_vec_fini(&inventory->free_slots);
    dv_buf_fini(&inventory->text);
    dv_arena_free(inventory->scratch);
    dv_arena_free(inventory->cel);
    free(inventory);
}

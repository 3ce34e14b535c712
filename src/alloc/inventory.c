/* inventory.c - slices, classes and what is in use, kept current change by change. */
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/inside.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "number/number.h"
#include "resource/resource.h"

/* A device as it is stored is below 1 MiB, the limit of an object. */
#define TWIN_BYTES_MAX (4u << 20)

struct twin {
    uint32_t id;
    uint32_t n_refs;
    dv_str key; /* in the same block */
};

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

/* "a/b/c" behind a struct of `size` bytes, in one block. */
static void *new_with_key(size_t size, const dv_str *parts, size_t n_parts, dv_str *key)
{
    size_t n = n_parts - 1;
    char *block;
    char *at;

    for (size_t i = 0; i < n_parts; i++)
        n += parts[i].n;
    block = dv_alloc(size + n);
    at = block + size;
    for (size_t i = 0; i < n_parts; i++) {
        if (i > 0)
            *at++ = '/';
        if (parts[i].n)
            memcpy(at, parts[i].p, parts[i].n);
        at += parts[i].n;
    }
    *key = (dv_str){block + size, n};
    return block;
}

/* ---- pools and idents ---- */

static struct pool *pool_ref(struct dv_inventory *inventory, dv_str driver, dv_str name)
{
    dv_str parts[] = {driver, name};
    dv_str key;
    struct pool *fresh = new_with_key(sizeof(*fresh), parts, 2, &key);
    struct pool *pool = dv_map_get(&inventory->pools, key);

    if (pool) {
        free(fresh);
    } else {
        pool = fresh;
        pool->key = key;
        pool->driver = (dv_str){key.p, driver.n};
        pool->name = (dv_str){key.p + driver.n + 1, name.n};
        dv_list_init(&pool->slices);
        dv_map_set(&inventory->pools, pool->key, pool);
    }
    pool->n_refs++;
    return pool;
}

static void pool_unref(struct dv_inventory *inventory, struct pool *pool)
{
    if (--pool->n_refs > 0)
        return;
    dv_map_remove(&inventory->pools, pool->key);
    free(pool);
}

struct ident *dv_inventory_ident(struct dv_inventory *inventory, dv_str driver, dv_str pool,
                                 dv_str device)
{
    dv_str parts[] = {driver, pool, device};
    dv_str key;
    struct ident *fresh = new_with_key(sizeof(*fresh), parts, 3, &key);
    struct ident *ident = dv_map_get(&inventory->idents, key);

    if (ident) {
        free(fresh);
    } else {
        ident = fresh;
        ident->key = key;
        ident->pool = pool_ref(inventory, driver, pool);
        dv_map_set(&inventory->idents, ident->key, ident);
    }
    ident->n_refs++;
    return ident;
}

void dv_inventory_ident_unref(struct dv_inventory *inventory, struct ident *ident)
{
    if (--ident->n_refs > 0)
        return;
    dv_map_remove(&inventory->idents, ident->key);
    pool_unref(inventory, ident->pool);
    dv_arena_free(ident->arena);
    free(ident);
}

bool dv_ident_is_in_use(const struct ident *ident)
{
    return ident->n_dedicated > 0 || ident->n_shares > 0;
}

/* ---- twins: devices that only their name tells apart ---- */

/* What decides about a device, but for its name: all that it has, and what it is for. */
static void print_content(const struct dv_inventory_slice *slice, const struct dv_api_device *api,
                          struct dv_buf *buf)
{
    const struct dv_api_resource_slice_spec *spec = slice->spec;
    struct dv_api_device nameless = *api;

    nameless.name = DV_STR_NONE;
    dv_buf_add(buf, slice->pool->key);
    dv_buf_printf(buf, " %zu:%.*s %d%d", spec->node_name.n, DV_FMT(spec->node_name),
                  spec->all_nodes && *spec->all_nodes,
                  spec->per_device_node_selection && *spec->per_device_node_selection);
    if (spec->node_selector)
        dv_encode_pb(&dv_message_node_selector, spec->node_selector, buf);
    dv_buf_add_char(buf, 0);
    dv_encode_pb(&dv_message_device, &nameless, buf);
}

static uint32_t twin_ref(struct dv_inventory *inventory, const struct dv_inventory_slice *slice,
                         const struct dv_api_device *api)
{
    struct dv_buf buf;
    struct twin *twin;

    dv_buf_init(&buf, TWIN_BYTES_MAX);
    print_content(slice, api, &buf);
    twin = dv_map_get(&inventory->twins, dv_buf_str(&buf));
    if (!twin) {
        dv_str content = dv_buf_str(&buf);
        dv_str key;

        twin = new_with_key(sizeof(*twin), &content, 1, &key);
        twin->key = key;
        twin->id = ++inventory->n_twins;
        dv_map_set(&inventory->twins, twin->key, twin);
    }
    twin->n_refs++;
    dv_buf_fini(&buf);
    return twin->id;
}

static void twin_unref(struct dv_inventory *inventory, const struct dv_inventory_slice *slice,
                       const struct dv_api_device *api)
{
    struct dv_buf buf;
    struct twin *twin;

    dv_buf_init(&buf, TWIN_BYTES_MAX);
    print_content(slice, api, &buf);
    twin = dv_map_get(&inventory->twins, dv_buf_str(&buf));
    dv_buf_fini(&buf);
    if (--twin->n_refs > 0)
        return;
    dv_map_remove(&inventory->twins, twin->key);
    free(twin);
}

/* ---- slices ---- */

static struct node *node_of(struct dv_inventory *inventory, dv_str name)
{
    struct node *node = dv_map_get(&inventory->nodes, name);
    dv_str key;

    if (node)
        return node;
    node = new_with_key(sizeof(*node), &name, 1, &key);
    node->name = key;
    dv_list_init(&node->slices);
    dv_map_set(&inventory->nodes, node->name, node);
    return node;
}

struct node *dv_inventory_node(struct dv_inventory *inventory, dv_str name)
{
    return node_of(inventory, name);
}

static uint32_t take_slot(struct dv_inventory *inventory)
{
    if (inventory->free_slots.n > 0)
        return inventory->free_slots.v[--inventory->free_slots.n];
    return inventory->n_slots++;
}

static void add_device(struct dv_inventory *inventory, struct dv_inventory_slice *slice, size_t i)
{
    struct device *device = &slice->devices[i];
    const struct dv_api_device *api = &slice->spec->devices[i];

    device->api = api;
    device->slice = slice;
    device->ident =
        dv_inventory_ident(inventory, slice->pool->driver, slice->pool->name, api->name);
    device->slot = take_slot(inventory);
    device->twin = twin_ref(inventory, slice, api);
    device->is_multi = inventory->features.consumable_capacity && api->allow_multiple_allocations &&
                       *api->allow_multiple_allocations;
}

/* Views that depend on the slice will notice. */
static void touch(struct dv_inventory *inventory, struct dv_inventory_slice *slice)
{
    slice->pool->slices_turn = ++inventory->turn;
    slice->pool->usage_turn = inventory->turn;
    if (slice->node)
        slice->node->turn = inventory->turn;
    else
        inventory->shared_turn = inventory->turn;
}

struct dv_inventory_slice *dv_inventory_add_slice(struct dv_inventory *inventory,
                                                  struct dv_object *object)
{
    struct dv_inventory_slice *slice = DV_ALLOC(struct dv_inventory_slice);
    const struct dv_api_resource_slice *api = object->value;

    slice->object = dv_object_ref(object);
    slice->spec = &api->spec;
    slice->arena = dv_arena_new();
    slice->order = ++inventory->order;
    slice->pool = pool_ref(inventory, api->spec.driver, api->spec.pool.name);
    dv_list_push(&slice->pool->slices, &slice->in_pool);
    if (api->spec.node_name.p && api->spec.n_shared_counters == 0) {
        slice->node = node_of(inventory, api->spec.node_name);
        dv_list_push(&slice->node->slices, &slice->in_node);
    } else {
        dv_list_push(&inventory->shared, &slice->in_node);
    }
    slice->n_devices = api->spec.n_devices;
    slice->devices = DV_NEW_ARRAY(slice->arena, struct device, slice->n_devices);
    for (size_t i = 0; i < slice->n_devices; i++)
        add_device(inventory, slice, i);
    touch(inventory, slice);
    return slice;
}

void dv_inventory_remove_slice(struct dv_inventory *inventory, struct dv_inventory_slice *slice)
{
    touch(inventory, slice);
    for (size_t i = 0; i < slice->n_devices; i++) {
        struct device *device = &slice->devices[i];

        dv_inventory_forget_slot(inventory, device->slot);
        *dv_vec_add(&inventory->free_slots) = device->slot;
        twin_unref(inventory, slice, device->api);
        dv_inventory_ident_unref(inventory, device->ident);
    }
    dv_link_remove(&slice->in_pool);
    dv_link_remove(&slice->in_node);
    pool_unref(inventory, slice->pool);
    dv_object_unref(slice->object);
    dv_arena_free(slice->arena);
    free(slice);
}

/* ---- classes ---- */

void dv_inventory_remove_class(struct dv_inventory *inventory, dv_str name)
{
    struct dv_object *class = dv_map_remove(&inventory->classes, name);

    inventory->is_extended_current = false;
    dv_map_clear(&inventory->extended);
    dv_object_unref(class);
}

void dv_inventory_set_class(struct dv_inventory *inventory, struct dv_object *class)
{
    dv_object_ref(class);
    dv_inventory_remove_class(inventory, class->meta->name);
    dv_map_set(&inventory->classes, class->meta->name, class);
}

const struct dv_api_device_class *dv_inventory_class(const struct dv_inventory *inventory,
                                                     dv_str name)
{
    const struct dv_object *class = dv_map_get(&inventory->classes, name);

    return class ? class->value : NULL;
}

/* ---- what is in use ---- */

/* The sums with `change` added or taken off, in a new arena; sums that are zero stay, others may
 * still hold that share. */
static void change_consumed(struct ident *ident, const struct dv_quantity_entry *change, size_t n,
                            bool adds, dv_str holder)
{
    struct dv_arena *arena = dv_arena_new();
    size_t n_max = ident->n_consumed + n;
    struct dv_quantity_entry *sums = DV_NEW_ARRAY(arena, struct dv_quantity_entry, n_max);
    size_t n_sums = 0;

    for (size_t i = 0; i < ident->n_consumed; i++)
        sums[n_sums++] =
            (struct dv_quantity_entry){dv_str_copy(ident->consumed[i].key, arena),
                                       dv_quantity_copy(&ident->consumed[i].value, arena)};
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;

        while (at < n_sums && !dv_str_eq(sums[at].key, change[i].key))
            at++;
        if (at == n_sums)
            sums[n_sums++].key = dv_str_copy(change[i].key, arena);
        sums[at].value = adds ? dv_quantity_add(&sums[at].value, &change[i].value, arena)
                              : dv_quantity_sub(&sums[at].value, &change[i].value, arena);
    }
    if (ident->n_with_capacity == 0)
        n_sums = 0;
    holder = dv_str_copy(holder, arena);
    dv_arena_free(ident->arena);
    ident->arena = arena;
    ident->holder = holder;
    ident->consumed = sums;
    ident->n_consumed = n_sums;
}

static void hold(struct dv_inventory *inventory,
                 const struct dv_api_device_request_allocation_result *result, bool adds,
                 dv_str holder)
{
    bool is_share = result->share_id.p && inventory->features.consumable_capacity;
    bool has_capacity = is_share && result->consumed_capacity != NULL;
    struct ident *ident;
    uint32_t change = adds ? 1 : UINT32_MAX; /* minus one */

    if (result->admin_access && *result->admin_access)
        return;
    ident = dv_inventory_ident(inventory, result->driver, result->pool, result->device);
    *(is_share ? &ident->n_shares : &ident->n_dedicated) += change;
    if (has_capacity)
        ident->n_with_capacity += change;
    change_consumed(ident, result->consumed_capacity,
                    has_capacity ? result->n_consumed_capacity : 0, adds, holder);
    ident->pool->usage_turn = ++inventory->turn;
    if (adds)
        return; /* keeps the reference */
    ident->n_refs--;
    dv_inventory_ident_unref(inventory, ident);
}

void dv_inventory_hold(struct dv_inventory *inventory,
                       const struct dv_api_allocation_result *allocation, dv_str holder)
{
    for (size_t i = 0; i < allocation->devices.n_results; i++)
        hold(inventory, &allocation->devices.results[i], true, holder);
}

void dv_inventory_release(struct dv_inventory *inventory,
                          const struct dv_api_allocation_result *allocation)
{
    for (size_t i = 0; i < allocation->devices.n_results; i++)
        hold(inventory, &allocation->devices.results[i], false, DV_STR_NONE);
}

/* ---- life ---- */

struct dv_inventory *dv_inventory_new(const struct dv_alloc_features *features)
{
    struct dv_inventory *inventory = DV_ALLOC(struct dv_inventory);

    inventory->features = *features;
    dv_map_init(&inventory->idents);
    dv_map_init(&inventory->pools);
    dv_map_init(&inventory->nodes);
    dv_map_init(&inventory->classes);
    dv_map_init(&inventory->extended);
    dv_map_init(&inventory->selectors);
    dv_map_init(&inventory->twins);
    dv_list_init(&inventory->selectors_by_use);
    dv_list_init(&inventory->shared);
    inventory->scratch = dv_arena_new();
    return inventory;
}

static void free_slices(struct dv_inventory *inventory, struct dv_list *slices)
{
    while (!dv_list_is_empty(slices))
        dv_inventory_remove_slice(
            inventory, DV_CONTAINER(slices->head.next, struct dv_inventory_slice, in_node));
}

void dv_inventory_free(struct dv_inventory *inventory)
{
    const struct dv_map_entry *entry;

    if (!inventory)
        return;
    free_slices(inventory, &inventory->shared);
    for (size_t at = 0; (entry = dv_map_next(&inventory->nodes, &at));) {
        struct node *node = entry->value;

        free_slices(inventory, &node->slices);
        dv_node_view_free(node->view);
        free(node);
    }
    for (size_t at = 0; (entry = dv_map_next(&inventory->idents, &at));) {
        struct ident *ident = entry->value;

        ident->n_refs = 1; /* whoever still held it is gone too */
        dv_inventory_ident_unref(inventory, ident);
    }
    for (size_t at = 0; (entry = dv_map_next(&inventory->classes, &at));)
        dv_object_unref(entry->value);
    dv_inventory_free_selectors(inventory);
    dv_map_fini(&inventory->idents);
    dv_map_fini(&inventory->pools);
    dv_map_fini(&inventory->nodes);
    dv_map_fini(&inventory->classes);
    dv_map_fini(&inventory->extended);
    dv_map_fini(&inventory->selectors);
    dv_map_fini(&inventory->twins);
    dv_vec_fini(&inventory->free_slots);
    dv_arena_free(inventory->scratch);
    free(inventory);
}

#include "lib/inventory/alloc_inventory.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "davit/alloc.h"
#include "lib/inventory/alloc_text.h"
#include "resource/resource.h"
#include "json/json.h"

/* An object that the caller has set. */
struct item {
    dv_str key; /* in the same block */
    struct dv_object *object;
    struct dv_inventory_slice *slice; /* of a ResourceSlice */
};

/* ---- gates ---- */

static bool read_gate(struct dv_alloc_features *features, const struct dv_json *json,
                      struct dv_err *err)
{
    const struct {
        dv_str name;
        bool *flag;
    } gates[] = {
        {DV_STR("DRAAdminAccess"),             &features->admin_access         },
        {DV_STR("DRAConsumableCapacity"),      &features->consumable_capacity  },
        {DV_STR("DRADeviceBindingConditions"), &features->binding_conditions   },
        {DV_STR("DRADeviceTaints"),            &features->device_taints        },
        {DV_STR("DRAListTypeAttributes"),      &features->list_attributes      },
        {DV_STR("DRAPartitionableDevices"),    &features->partitionable_devices},
        {DV_STR("DRAPrioritizedList"),         &features->prioritized_list     },
    };

    for (size_t i = 0; i < DV_COUNT(gates); i++)
        if (dv_str_eq(dv_json_key(json), gates[i].name))
            return dv_json_as_bool(json, gates[i].flag, err);
    return dv_json_fail(json, err, "no gate of this name has a part in allocating devices");
}

struct davit_inventory *davit_inventory_new(const char *gates, struct davit_error *error)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_alloc_features features = dv_alloc_features_default();
    struct davit_inventory *inventory;
    const struct dv_json *json = NULL;
    struct dv_err err;

    if (gates) {
        json = dv_lib_parse(gates, arena, &err);
        if (!json) {
            (void)dv_wrap(&err, "feature gates");
            (void)dv_lib_tell(error, &err);
            return NULL;
        }
    }
    for (const struct dv_json *at = dv_json_first(json); at; at = dv_json_next(at))
        if (!read_gate(&features, at, &err)) {
            (void)dv_wrap(&err, "feature gates");
            (void)dv_lib_tell(error, &err);
            return NULL;
        }
    inventory = DV_ALLOC(struct davit_inventory);
    inventory->inventory = dv_inventory_new(&features);
    dv_map_init(&inventory->items);
    return inventory;
}

/* ---- items ---- */

static const struct dv_api_allocation_result *allocation_of(const struct item *item)
{
    if (item->object->kind->id != DV_KIND_CLAIM)
        return NULL;
    return ((const struct dv_api_resource_claim *)item->object->value)->status.allocation;
}

/* The holder's name "namespace/name", with which a claim's key ends. */
static dv_str holder_of(const struct item *item)
{
    return dv_str_slice(item->key, item->object->kind->name.n + 1, item->key.n);
}

static void take_out(struct davit_inventory *inventory, struct item *item)
{
    const struct dv_api_allocation_result *allocation = allocation_of(item);

    if (allocation)
        dv_inventory_release(inventory->inventory, allocation);
    if (item->slice)
        dv_inventory_remove_slice(inventory->inventory, item->slice);
    if (item->object->kind->id == DV_KIND_CLASS)
        dv_inventory_remove_class(inventory->inventory, item->object->meta->name);
    dv_map_remove(&inventory->items, item->key);
    dv_object_unref(item->object);
    free(item);
}

static void put_in(struct davit_inventory *inventory, struct item *item)
{
    struct item *old = dv_map_get(&inventory->items, item->key);
    const struct dv_api_allocation_result *allocation = allocation_of(item);

    if (old)
        take_out(inventory, old);
    dv_map_set(&inventory->items, item->key, item);
    if (item->object->kind->id == DV_KIND_CLASS)
        dv_inventory_set_class(inventory->inventory, item->object);
    else if (item->object->kind->id == DV_KIND_SLICE)
        item->slice = dv_inventory_add_slice(inventory->inventory, item->object);
    else if (allocation)
        dv_inventory_hold(inventory->inventory, allocation, holder_of(item));
}

static dv_str key_of(dv_str kind, dv_str ns, dv_str name, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s/%.*s/%.*s", DV_FMT(kind), DV_FMT(ns), DV_FMT(name));
}

static struct item *item_new(const struct dv_kind *kind, const void *value, struct dv_arena *arena)
{
    struct dv_object *object = dv_object_new(kind, value);
    dv_str key = key_of(kind->name, object->meta->namespace, object->meta->name, arena);
    struct item *item = dv_alloc(sizeof(*item) + key.n);

    memcpy(item + 1, key.p, key.n);
    item->key = (dv_str){(const char *)(item + 1), key.n};
    item->object = object;
    return item;
}

/* ---- setting ---- */

struct items {
    DV_VEC(struct item *) v;
};

static bool read_object(const struct dv_json *json, struct dv_arena *arena, struct items *items,
                        struct dv_err *err)
{
    const struct dv_kind *kind;
    const struct dv_message *message;
    void *value;

    if (!dv_lib_kind(json, &kind, &message, err))
        return false;
    if (!kind ||
        (kind->id != DV_KIND_SLICE && kind->id != DV_KIND_CLASS && kind->id != DV_KIND_CLAIM))
        return true; /* has no part in this */
    value = dv_lib_read(json, kind, arena, err);
    if (!value)
        return dv_wrap(err, "%.*s", DV_FMT(kind->name));
    *dv_vec_add_in(&items->v, arena) = item_new(kind, value, arena);
    return true;
}

static bool read_objects(const struct dv_json *json, struct dv_arena *arena, struct items *items,
                         struct dv_err *err)
{
    const struct dv_json *list = dv_json_get(json, DV_STR("items"));

    if (!list)
        return read_object(json, arena, items, err);
    if (!dv_json_expect(list, DV_JSON_ARRAY, err))
        return false;
    for (const struct dv_json *at = dv_json_first(list); at; at = dv_json_next(at))
        if (!dv_json_expect(at, DV_JSON_OBJECT, err) || !read_object(at, arena, items, err))
            return false;
    return true;
}

bool davit_inventory_set(struct davit_inventory *inventory, const char *objects,
                         struct davit_error *error)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct items items = {0};
    const struct dv_json *json;
    struct dv_err err;
    bool is_ok;

    json = dv_lib_parse(objects, arena, &err);
    is_ok = json && read_objects(json, arena, &items, &err);
    for (size_t i = 0; i < items.v.n; i++)
        if (is_ok) {
            put_in(inventory, items.v.v[i]);
        } else {
            dv_object_unref(items.v.v[i]->object);
            free(items.v.v[i]);
        }
    return is_ok || dv_lib_tell(error, &err);
}

bool davit_inventory_remove(struct davit_inventory *inventory, const char *kind, const char *ns,
                            const char *name, struct davit_error *error)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    struct item *item = dv_map_get(&inventory->items, key_of(dv_str_from_c(kind), dv_str_from_c(ns),
                                                             dv_str_from_c(name), arena));

    if (!item) {
        (void)dv_fail(&err, DV_NOT_FOUND, "there is no %s %s%s%s", kind, ns ? ns : "",
                      ns && *ns ? "/" : "", name);
        return dv_lib_tell(error, &err);
    }
    take_out(inventory, item);
    return true;
}

void davit_inventory_forget_node(struct davit_inventory *inventory, const char *name)
{
    dv_inventory_forget_node(inventory->inventory, dv_str_from_c(name));
}

void davit_inventory_free(struct davit_inventory *inventory)
{
    const struct dv_map_entry *entry;

    if (!inventory)
        return;
    for (size_t at = 0; (entry = dv_map_next(&inventory->items, &at));)
        take_out(inventory, entry->value);
    dv_map_fini(&inventory->items);
    dv_inventory_free(inventory->inventory);
    free(inventory);
}

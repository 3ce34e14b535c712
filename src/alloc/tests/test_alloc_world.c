#include "alloc/tests/test_alloc_world.h"

#include <stdlib.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (1u << 20)

static bool decode(const struct world *world, const struct dv_message *message,
                   const struct dv_json *json, void **value)
{
    struct dv_err err;

    *value = dv_arena_alloc(world->arena, message->size, message->align);
    return dv_json_is(json, DV_JSON_OBJECT) &&
           dv_decode_json(message, json, DV_UNKNOWN_DROP, world->arena, *value, NULL, &err);
}

static void read_feature(const struct dv_json *features, dv_str name, bool *flag)
{
    const struct dv_json *json = dv_json_get(features, name);
    struct dv_err err;
    bool value;

    if (json && dv_json_as_bool(json, &value, &err))
        *flag = value;
}

static void read_features(struct world *world, const struct dv_json *json)
{
    struct dv_alloc_features *features = &world->features;

    *features = dv_alloc_features_default();
    read_feature(json, DV_STR("adminAccess"), &features->admin_access);
    read_feature(json, DV_STR("consumableCapacity"), &features->consumable_capacity);
    read_feature(json, DV_STR("deviceBindingAndStatus"), &features->binding_conditions);
    read_feature(json, DV_STR("deviceTaints"), &features->device_taints);
    read_feature(json, DV_STR("listTypeAttributes"), &features->list_attributes);
    read_feature(json, DV_STR("partitionableDevices"), &features->partitionable_devices);
    read_feature(json, DV_STR("prioritizedList"), &features->prioritized_list);
}

static bool read_node(struct world *world, const struct dv_json *json)
{
    const struct dv_api_node *node;
    void *value;

    if (!json)
        return true;
    if (!decode(world, &dv_message_node, json, &value))
        return false;
    node = value;
    world->node =
        (struct dv_alloc_node){node->metadata.name, node->metadata.labels, node->metadata.n_labels};
    return true;
}

/* In a pool, as a server has it, so that an inventory may put it to sleep. */
static struct dv_object *new_slice(struct world *world, void *value)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_SLICE);
    const struct dv_object whole = {.kind = kind, .meta = value, .value = value};
    DV_CLEANUP(dv_buf_fini) struct dv_buf row;

    dv_buf_init(&row, TEXT_BYTES_MAX);
    dv_encode_row(&whole, &row);
    return dv_object_pool_add(world->pool, kind, value, dv_buf_str(&row));
}

static bool read_objects(struct world *world, const struct dv_json *json)
{
    const struct dv_json *at;
    void *value;

    for (at = dv_json_first(dv_json_get(json, DV_STR("deviceClasses"))); at; at = dv_json_next(at))
        if (decode(world, &dv_message_device_class, at, &value))
            *dv_vec_add(&world->classes) = dv_object_new(dv_kind(DV_KIND_CLASS), value);
        else
            return false;
    for (at = dv_json_first(dv_json_get(json, DV_STR("resourceSlices"))); at; at = dv_json_next(at))
        if (decode(world, &dv_message_resource_slice, at, &value))
            *dv_vec_add(&world->slices) = new_slice(world, value);
        else
            return false;
    for (at = dv_json_first(dv_json_get(json, DV_STR("claims"))); at; at = dv_json_next(at))
        if (decode(world, &dv_message_resource_claim, at, &value))
            *dv_vec_add(&world->claims) = value;
        else
            return false;
    return true;
}

/* What is in use, from one list of the state; `share`: it is shared, `capacity`: with amounts. */
static bool read_held(struct world *world, const struct dv_json *list, dv_str share)
{
    for (const struct dv_json *at = dv_json_first(list); at; at = dv_json_next(at)) {
        const struct dv_json *amounts = dv_json_get(at, DV_STR("capacity"));
        struct dv_api_device_request_allocation_result *result;
        void *value;

        if (!decode(world, &dv_message_device_request_allocation_result, at, &value))
            return false;
        result = value;
        if (share.n && !result->share_id.p)
            result->share_id = share;
        if (!share.n)
            result->share_id = DV_STR_NONE;
        if (amounts) {
            struct dv_json *wrapped = dv_json_new_object(world->arena);
            const struct dv_api_capacity_requirements *requirements;

            dv_json_set(wrapped, DV_STR("requests"), dv_json_copy(amounts, world->arena),
                        world->arena);
            if (!decode(world, &dv_message_capacity_requirements, wrapped, &value))
                return false;
            requirements = value;
            result->consumed_capacity = requirements->requests;
            result->n_consumed_capacity = requirements->n_requests;
        }
        *dv_vec_add(&world->held) = *result;
    }
    return true;
}

bool world_open(struct world *world, dv_str line)
{
    struct dv_err err;
    const struct dv_json *json;
    const struct dv_json *state;

    *world = (struct world){.arena = dv_arena_new(),
                            .pool = dv_object_pool_new(NULL, NULL),
                            .node.name = DV_STR("node-1")};
    json = dv_json_parse(dv_str_copy(line, world->arena), NULL, world->arena, &err);
    if (!json)
        return false;
    read_features(world, dv_json_get(json, DV_STR("features")));
    state = dv_json_get(json, DV_STR("state"));
    return read_node(world, dv_json_get(json, DV_STR("node"))) && read_objects(world, json) &&
           read_held(world, dv_json_get(state, DV_STR("allocatedDevices")), DV_STR_NONE) &&
           read_held(world, dv_json_get(state, DV_STR("allocatedSharedDevices")),
                     DV_STR("share-without-id")) &&
           read_held(world, dv_json_get(state, DV_STR("consumedCapacity")), DV_STR("sums"));
}

void world_write(struct world *world, const char *text)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (; *text; text++)
        dv_buf_add_char(&buf, *text == '\'' ? '"' : *text == '`' ? '\'' : *text);
    if (!world_open(world, dv_buf_str(&buf)))
        abort();
}

void world_close(struct world *world)
{
    for (size_t i = 0; i < world->classes.n; i++)
        dv_object_unref(world->classes.v[i]);
    for (size_t i = 0; i < world->slices.n; i++)
        dv_object_unref(world->slices.v[i]);
    dv_object_pool_free(world->pool);
    dv_vec_fini(&world->classes);
    dv_vec_fini(&world->slices);
    dv_vec_fini(&world->held);
    dv_vec_fini(&world->claims);
    dv_arena_free(world->arena);
}

void world_hold(struct dv_inventory *inventory,
                const struct dv_api_device_request_allocation_result *result, dv_str holder)
{
    struct dv_api_device_request_allocation_result copy = *result;
    struct dv_api_allocation_result allocation = {
        .devices = {.results = &copy, .n_results = 1}
    };

    dv_inventory_hold(inventory, &allocation, holder);
}

void world_release(struct dv_inventory *inventory,
                   const struct dv_api_device_request_allocation_result *result)
{
    struct dv_api_device_request_allocation_result copy = *result;
    struct dv_api_allocation_result allocation = {
        .devices = {.results = &copy, .n_results = 1}
    };

    dv_inventory_release(inventory, &allocation);
}

struct dv_inventory *world_inventory(const struct world *world)
{
    struct dv_inventory *inventory = dv_inventory_new(&world->features);

    for (size_t i = 0; i < world->classes.n; i++)
        dv_inventory_set_class(inventory, world->classes.v[i]);
    for (size_t i = 0; i < world->slices.n; i++)
        (void)dv_inventory_add_slice(inventory, world->slices.v[i]);
    for (size_t i = 0; i < world->held.n; i++)
        world_hold(inventory, &world->held.v[i], DV_STR("default/holder"));
    return inventory;
}

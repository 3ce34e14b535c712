/* golden_allocator.c - replays golden/allocator: every case is allocated, sequences step by step.
 *
 *     golden_allocator DIR      DIR holds these files */
#include "alloc/alloc.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "jsonl.h"
#include "resource/resource.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (1u << 20)

/* The objects of one case. */
struct world {
    struct jsonl_record *record;
    struct dv_arena *arena;
    struct dv_inventory *inventory;
    DV_VEC(struct dv_object *) objects; /* to be given back */
};

static const char *const outcomes[] = {
    [DV_ALLOC_DONE] = "allocated",  [DV_ALLOC_NONE] = "unallocatable",
    [DV_ALLOC_FAILED] = "error",    [DV_ALLOC_NODE_FAILED] = "error",
    [DV_ALLOC_GAVE_UP] = "gave up",
};

static void *decode(struct world *world, const struct dv_message *message,
                    const struct dv_json *json)
{
    void *value = dv_arena_alloc(world->arena, message->size, message->align);
    struct dv_err err;

    if (!dv_decode_json(message, json, DV_UNKNOWN_DROP, world->arena, value, NULL, &err))
        jsonl_compare_str(world->record, "decoding", dv_str_from_c(err.msg), DV_STR(""));
    return value;
}

static struct dv_object *decode_object(struct world *world, enum dv_kind_id id,
                                       const struct dv_json *json)
{
    const struct dv_kind *kind = dv_kind(id);
    struct dv_object *object = dv_object_new(kind, decode(world, kind->versions[0].message, json));

    *dv_vec_add(&world->objects) = object;
    return object;
}

static bool is_true(const struct dv_json *json)
{
    struct dv_err err;
    bool value;

    return json && dv_json_as_bool(json, &value, &err) && value;
}

static struct dv_alloc_features read_features(const struct dv_json *json)
{
    struct dv_alloc_features features;
    const struct {
        dv_str name;
        bool *flag;
    } flags[] = {
        {DV_STR("adminAccess"),            &features.admin_access         },
        {DV_STR("consumableCapacity"),     &features.consumable_capacity  },
        {DV_STR("deviceBindingAndStatus"), &features.binding_conditions   },
        {DV_STR("deviceTaints"),           &features.device_taints        },
        {DV_STR("listTypeAttributes"),     &features.list_attributes      },
        {DV_STR("partitionableDevices"),   &features.partitionable_devices},
        {DV_STR("prioritizedList"),        &features.prioritized_list     },
    };

    for (size_t i = 0; i < DV_COUNT(flags); i++)
        *flags[i].flag = is_true(dv_json_get(json, flags[i].name));
    return features;
}

/* ---- what is in use ---- */

static void hold(struct world *world, const struct dv_api_device_request_allocation_result *result)
{
    struct dv_api_allocation_result allocation = {0};
    struct dv_api_device_request_allocation_result copy = *result;

    allocation.devices.results = &copy;
    allocation.devices.n_results = 1;
    dv_inventory_hold(world->inventory, &allocation, DV_STR("golden/holder"));
}

/* The state has the capacities of a device summed: its first share stands for all of them. */
static void take_capacity(const struct dv_json *consumed,
                          struct dv_api_device_request_allocation_result *result,
                          struct world *world)
{
    for (const struct dv_json *at = dv_json_first(consumed); at; at = dv_json_next(at)) {
        struct dv_api_device_request_allocation_result *of =
            decode(world, &dv_message_device_request_allocation_result, at);
        struct dv_api_capacity_requirements *sums;
        struct dv_json *wrapped = dv_json_new_object(world->arena);

        if (!dv_str_eq(of->driver, result->driver) || !dv_str_eq(of->pool, result->pool) ||
            !dv_str_eq(of->device, result->device))
            continue;
        dv_json_set(wrapped, DV_STR("requests"),
                    dv_json_copy(dv_json_get(at, DV_STR("capacity")), world->arena), world->arena);
        sums = decode(world, &dv_message_capacity_requirements, wrapped);
        result->consumed_capacity = sums->requests;
        result->n_consumed_capacity = sums->n_requests;
    }
}

/* Capacity that is in use although no share is: a share all the same, for us. */
static bool has_share(const struct dv_json *consumed, const struct dv_json *shares,
                      struct world *world)
{
    const struct dv_api_device_request_allocation_result *of =
        decode(world, &dv_message_device_request_allocation_result, consumed);

    for (const struct dv_json *at = dv_json_first(shares); at; at = dv_json_next(at)) {
        const struct dv_api_device_request_allocation_result *share =
            decode(world, &dv_message_device_request_allocation_result, at);

        if (dv_str_eq(of->driver, share->driver) && dv_str_eq(of->pool, share->pool) &&
            dv_str_eq(of->device, share->device))
            return true;
    }
    return false;
}

static bool was_before(const struct dv_json *at, const struct dv_json *list, struct world *world)
{
    const struct dv_api_device_request_allocation_result *result =
        decode(world, &dv_message_device_request_allocation_result, at);

    for (const struct dv_json *other = dv_json_first(list); other != at;
         other = dv_json_next(other)) {
        const struct dv_api_device_request_allocation_result *of =
            decode(world, &dv_message_device_request_allocation_result, other);

        if (dv_str_eq(of->driver, result->driver) && dv_str_eq(of->pool, result->pool) &&
            dv_str_eq(of->device, result->device))
            return true;
    }
    return false;
}

static void read_state(struct world *world, const struct dv_json *state, bool has_shares)
{
    const struct dv_json *shares = dv_json_get(state, DV_STR("allocatedSharedDevices"));
    const struct dv_json *consumed = dv_json_get(state, DV_STR("consumedCapacity"));

    for (const struct dv_json *at = dv_json_first(dv_json_get(state, DV_STR("allocatedDevices")));
         at; at = dv_json_next(at))
        hold(world, decode(world, &dv_message_device_request_allocation_result, at));
    if (!has_shares)
        return; /* with the gate off nobody looks at these */
    for (const struct dv_json *at = dv_json_first(consumed); at; at = dv_json_next(at)) {
        struct dv_api_device_request_allocation_result *result =
            decode(world, &dv_message_device_request_allocation_result, at);

        if (has_share(at, shares, world))
            continue;
        result->share_id = DV_STR("none");
        take_capacity(consumed, result, world);
        hold(world, result);
    }
    for (const struct dv_json *at = dv_json_first(shares); at; at = dv_json_next(at)) {
        struct dv_api_device_request_allocation_result *result =
            decode(world, &dv_message_device_request_allocation_result, at);

        if (!was_before(at, shares, world))
            take_capacity(consumed, result, world);
        hold(world, result);
    }
}

/* ---- the world ---- */

static struct world world_open(struct jsonl_record *record)
{
    const struct dv_json *json = record->json;
    struct dv_alloc_features features = read_features(dv_json_get(json, DV_STR("features")));
    struct world world = {
        .record = record,
        .arena = record->arena,
        .inventory = dv_inventory_new(&features),
    };

    for (const struct dv_json *at = dv_json_first(dv_json_get(json, DV_STR("deviceClasses"))); at;
         at = dv_json_next(at))
        dv_inventory_set_class(world.inventory, decode_object(&world, DV_KIND_CLASS, at));
    for (const struct dv_json *at = dv_json_first(dv_json_get(json, DV_STR("resourceSlices"))); at;
         at = dv_json_next(at))
        (void)dv_inventory_add_slice(world.inventory, decode_object(&world, DV_KIND_SLICE, at));
    read_state(&world, dv_json_get(json, DV_STR("state")), features.consumable_capacity);
    return world;
}

static void world_close(struct world *world)
{
    dv_inventory_free(world->inventory);
    for (size_t i = 0; i < world->objects.n; i++)
        dv_object_unref(world->objects.v[i]);
    dv_vec_fini(&world->objects);
}

/* ---- comparing ---- */

/* Only whether there is a share counts, not its name. */
static void blur_shares(struct dv_api_allocation_result *allocation)
{
    for (size_t i = 0; i < allocation->devices.n_results; i++)
        if (allocation->devices.results[i].share_id.p)
            allocation->devices.results[i].share_id = DV_STR("share");
}

static dv_str print(const struct dv_api_allocation_result *allocation, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_encode_json_text(&dv_message_allocation_result, allocation, NULL, DV_STR_NONE, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static void compare(struct world *world, const struct dv_json *expect,
                    const struct dv_alloc_result *result, const struct dv_err *err)
{
    const struct dv_json *at = dv_json_first(dv_json_get(expect, DV_STR("allocations")));
    bool on_node = is_true(dv_json_get(expect, DV_STR("errorOnNode")));
    dv_str outcome = {0};
    struct dv_err ignored;

    if (!dv_json_as_str(dv_json_get(expect, DV_STR("outcome")), &outcome, &ignored))
        outcome = DV_STR("missing in the corpus");
    jsonl_compare_str(world->record, err->code == DV_OK ? "outcome" : err->msg,
                      dv_str_from_c(outcomes[result->outcome]), outcome);
    jsonl_compare_bool(world->record, "errorOnNode", result->outcome == DV_ALLOC_NODE_FAILED,
                       on_node);
    if (result->outcome != DV_ALLOC_DONE || world->record->has_failed)
        return;
    for (size_t i = 0; at; at = dv_json_next(at), i++) {
        struct dv_api_allocation_result *wanted = decode(world, &dv_message_allocation_result, at);
        struct dv_api_allocation_result got = result->allocations[i];

        blur_shares(wanted);
        got.devices.results = DV_NEW_ARRAY(
            world->arena, struct dv_api_device_request_allocation_result, got.devices.n_results);
        for (size_t j = 0; j < got.devices.n_results; j++)
            got.devices.results[j] = result->allocations[i].devices.results[j];
        blur_shares(&got);
        if (!dv_message_eq(&dv_message_allocation_result, &got, wanted))
            jsonl_compare_str(world->record, "allocation", print(&got, world->arena),
                              print(wanted, world->arena));
    }
}

static struct dv_alloc_node node_of(struct world *world, const struct dv_json *json)
{
    const struct dv_api_node *node = decode(world, &dv_message_node, json);

    return (struct dv_alloc_node){node->metadata.name, node->metadata.labels,
                                  node->metadata.n_labels};
}

static void allocate(struct world *world, const struct dv_json *node, const struct dv_json *claims,
                     const struct dv_json *expect, struct dv_alloc_result *result)
{
    struct dv_alloc_node of = node_of(world, node);
    size_t n = dv_json_n(claims);
    const struct dv_api_resource_claim **list =
        DV_NEW_ARRAY(world->arena, const struct dv_api_resource_claim *, n);
    struct dv_alloc_options options = {0};
    struct dv_err err = {0};
    const struct dv_json *at = dv_json_first(claims);

    for (size_t i = 0; i < n; i++, at = dv_json_next(at))
        list[i] = decode(world, &dv_message_resource_claim, at);
    dv_allocate(world->inventory, &of, list, n, &options, world->arena, result, &err);
    compare(world, expect, result, &err);
}

static void replay_case(struct jsonl_record *record)
{
    struct world world = world_open(record);
    struct dv_alloc_result result;

    allocate(&world, dv_json_get(record->json, DV_STR("node")),
             dv_json_get(record->json, DV_STR("claims")),
             dv_json_get(record->json, DV_STR("expect")), &result);
    world_close(&world);
}

/* ---- sequences ---- */

static const struct dv_json *find_node(const struct dv_json *nodes, dv_str name)
{
    for (const struct dv_json *at = dv_json_first(nodes); at; at = dv_json_next(at)) {
        struct dv_err err;
        dv_str found;

        if (dv_json_as_str(dv_json_get(dv_json_get(at, DV_STR("metadata")), DV_STR("name")), &found,
                           &err) &&
            dv_str_eq(found, name))
            return at;
    }
    return NULL;
}

static dv_str member(const struct dv_json *json, const char *key)
{
    dv_str text = {0};
    struct dv_err err;

    if (!dv_json_as_str(dv_json_get(json, dv_str_from_c(key)), &text, &err))
        return DV_STR_NONE;
    return text;
}

static void replay_sequence(struct jsonl_record *record)
{
    struct world world = world_open(record);
    struct dv_map held; /* claim name -> its allocation */
    const struct dv_json *steps = dv_json_get(record->json, DV_STR("steps"));

    dv_map_init(&held);
    for (const struct dv_json *at = dv_json_first(steps); at && !record->has_failed;
         at = dv_json_next(at)) {
        const struct dv_json *claims = dv_json_get(at, DV_STR("claims"));
        const struct dv_json *claim = dv_json_first(claims);
        struct dv_alloc_result result;

        if (dv_str_eq(member(at, "op"), DV_STR("release"))) {
            dv_inventory_release(world.inventory, dv_map_remove(&held, member(at, "claim")));
            continue;
        }
        allocate(&world, find_node(dv_json_get(record->json, DV_STR("nodes")), member(at, "node")),
                 claims, dv_json_get(at, DV_STR("expect")), &result);
        for (size_t i = 0; result.outcome == DV_ALLOC_DONE && claim;
             claim = dv_json_next(claim), i++) {
            dv_str name = member(dv_json_get(claim, DV_STR("metadata")), "name");

            dv_inventory_hold(world.inventory, &result.allocations[i], name);
            dv_map_set(&held, name, &result.allocations[i]);
        }
    }
    dv_map_fini(&held);
    world_close(&world);
}

int main(int argc, char **argv)
{
    static const struct jsonl_replay replays[] = {
        {{"sequences.jsonl", {"steps", "finalState"}, {NULL}},            replay_sequence},
        {{"table.jsonl", {"claims", "expect", "resourceSlices"}, {NULL}}, replay_case    },
    };

    return jsonl_main(argc, argv, replays, DV_COUNT(replays));
}

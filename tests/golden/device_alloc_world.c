#include "device_alloc_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "device_alloc_plugin.h"
#include "json/json.h"

#define SECOND_NS UINT64_C(1000000000)

/* -- Reading -------------------------------------------------------------------------------- */

static void must(bool is_ok, const struct dv_err *err)
{
    if (is_ok)
        return;
    printf("%s\n", err->msg);
    exit(2);
}

dv_str text_of(const struct dv_json *object, const char *key)
{
    struct dv_err err;
    const struct dv_json *node = dv_json_require(object, dv_str_from_c(key), &err);
    dv_str text = DV_STR_NONE;

    must(node && dv_json_as_str(node, &text, &err), &err);
    return text;
}

dv_str text_or_none(const struct dv_json *object, const char *key)
{
    return dv_json_get(object, dv_str_from_c(key)) ? text_of(object, key) : DV_STR("");
}

int64_t number_of(const struct dv_json *node)
{
    struct dv_err err = {.code = DV_INVALID_ARGUMENT, .msg = "a number is missing"};
    int64_t number = 0;

    must(node && dv_json_as_i64(node, &number, &err), &err);
    return number;
}

void set_member(struct dv_json *object, const char *key, struct dv_json *value,
                struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), value, arena);
}

/* -- The machine and its policy ------------------------------------------------------------- */

static void read_machine(struct world *world, const struct dv_json *sequence)
{
    const struct dv_json *ids = dv_json_get(sequence, DV_STR("numaNodes"));
    const struct dv_json *rows = dv_json_get(sequence, DV_STR("numaDistances"));
    struct dv_numa_machine *machine = &world->machine;

    machine->nodes = DV_NEW_ARRAY(world->arena, struct dv_numa_node, dv_json_n(ids));
    for (const struct dv_json *id = dv_json_first(ids); id; id = dv_json_next(id)) {
        const struct dv_json *row = dv_json_at(rows, machine->n_nodes);
        struct dv_numa_node *node = &machine->nodes[machine->n_nodes++];
        uint32_t *distances = DV_NEW_ARRAY(world->arena, uint32_t, dv_json_n(row));

        for (const struct dv_json *d = dv_json_first(row); d; d = dv_json_next(d))
            distances[node->n_distances++] = (uint32_t)number_of(d);
        node->id = (uint32_t)number_of(id);
        node->distances = distances;
        machine->mask |= UINT64_C(1) << node->id;
    }
}

static void read_policy(struct world *world, const struct dv_json *sequence)
{
    const struct dv_json *from = dv_json_get(sequence, DV_STR("topologyOptions"));
    struct dv_topology_option *options =
        DV_NEW_ARRAY(world->arena, struct dv_topology_option, dv_json_n(from));
    struct dv_err err;
    size_t n = 0;

    for (const struct dv_json *option = dv_json_first(from); option;
         option = dv_json_next(option)) {
        options[n].name = dv_json_key(option);
        must(dv_json_as_str(option, &options[n++].value, &err), &err);
    }
    must(dv_topology_config_parse(text_of(sequence, "topologyPolicy"),
                                  text_of(sequence, "topologyScope"), options, n, &world->machine,
                                  &world->config, &err),
         &err);
}

static void boot(struct world *world)
{
    static const struct dv_device_opts opts = {.is_strict = true}; /* as the reference */

    dv_device_state_free(world->state);
    world->state = dv_device_state_new(&opts);
    dv_map_clear(&world->stubs);
    dv_map_clear(&world->affinities);
}

void world_init(struct world *world, const struct dv_json *sequence, struct dv_arena *arena)
{
    *world = (struct world){.arena = arena, .now_ns = SECOND_NS};
    read_machine(world, sequence);
    read_policy(world, sequence);
    boot(world);
    dv_device_set_sources_ready(world->state, true);
}

void world_fini(struct world *world)
{
    dv_device_state_free(world->state);
    dv_map_fini(&world->stubs);
    dv_map_fini(&world->pods);
    dv_map_fini(&world->active);
    dv_map_fini(&world->affinities);
}

/* -- The state file ------------------------------------------------------------------------- */

void world_save(struct world *world)
{
    struct dv_device_checkpoint checkpoint;
    struct dv_buf buf;

    dv_buf_init(&buf, SIZE_MAX);
    dv_device_checkpoint_take(world->state, world->arena, &checkpoint);
    dv_device_checkpoint_encode(&checkpoint, &buf);
    world->file = dv_str_copy(dv_buf_str(&buf), world->arena);
    world->is_damaged = false;
    dv_buf_fini(&buf);
}

static void load_file(struct world *world)
{
    struct dv_device_checkpoint checkpoint;
    enum dv_device_verdict verdict;
    size_t n_left_out;
    struct dv_err err;

    if (!world->file.p)
        return;
    verdict = dv_device_checkpoint_decode(world->file, world->arena, &checkpoint, &err);
    if (verdict == DV_DEVICE_CHECKPOINT_OK)
        dv_device_checkpoint_load(world->state, &checkpoint, world->now_ns, &n_left_out);
    else if (!world->is_damaged)
        must(false, &err);
}

/* "pod|container|resource" -> node -> ids. */
static struct dv_json *records_to_json(const struct dv_device_checkpoint *checkpoint,
                                       struct dv_arena *arena)
{
    struct dv_json *all = dv_json_new_object(arena);

    for (size_t i = 0; i < checkpoint->n_records; i++) {
        const struct dv_device_record *record = &checkpoint->records[i];
        struct dv_json *placed = dv_json_new_object(arena);

        for (size_t k = 0; k < record->n_placed; k++)
            dv_json_set(placed, dv_str_printf(arena, "%lld", (long long)record->placed[k].node),
                        sorted_to_json(record->placed[k].ids, record->placed[k].n_ids, arena),
                        arena);
        dv_json_set(all,
                    dv_str_printf(arena, "%.*s|%.*s|%.*s", DV_FMT(record->pod_uid),
                                  DV_FMT(record->container), DV_FMT(record->resource)),
                    placed, arena);
    }
    return all;
}

static struct dv_json *file_to_json(struct world *world)
{
    struct dv_arena *arena = world->arena;
    struct dv_json *file = dv_json_new_object(arena);
    struct dv_json *registered = dv_json_new_object(arena);
    struct dv_device_checkpoint checkpoint;
    struct dv_err err;

    if (!world->file.p)
        return dv_json_new_null(arena);
    if (world->is_damaged)
        return dv_json_new_str(DV_STR("corrupted"), arena);
    must(dv_device_checkpoint_decode(world->file, arena, &checkpoint, &err) ==
             DV_DEVICE_CHECKPOINT_OK,
         &err);
    for (size_t i = 0; i < checkpoint.n_registered; i++)
        dv_json_set(
            registered, checkpoint.registered[i].resource,
            sorted_to_json(checkpoint.registered[i].ids, checkpoint.registered[i].n_ids, arena),
            arena);
    set_member(file, "entries", records_to_json(&checkpoint, arena), arena);
    set_member(file, "registered", registered, arena);
    return file;
}

/* What changed, in the outcome of a step. */
static void tell_changes(struct world *world, struct dv_json *outcome)
{
    struct dv_device_checkpoint taken;
    struct dv_json *held;
    struct dv_json *file = file_to_json(world);

    dv_device_checkpoint_take(world->state, world->arena, &taken);
    held = dv_json_copy(records_to_json(&taken, world->arena), world->arena);
    if (!world->held || !dv_json_eq(world->held, held))
        set_member(outcome, "held", dv_json_copy(held, world->arena), world->arena);
    if (!world->checkpoint || !dv_json_eq(world->checkpoint, file))
        set_member(outcome, "checkpoint", dv_json_copy(file, world->arena), world->arena);
    world->held = held;
    world->checkpoint = file;
}

/* -- Ops on plugins ------------------------------------------------------------------------- */

static void behave(struct world *world, const struct dv_json *op, struct stub *stub)
{
    stub->resource = text_of(op, "resource");
    stub->preferred = text_or_none(op, "preferred");
    stub->pre_start = text_or_none(op, "preStart");
    stub->allocate = text_of(op, "allocate");
    stub->profile = text_of(op, "profile");
    (void)dv_map_set(&world->stubs, stub->resource, stub);
}

/* Each registration has a socket of its own, and takes the place of the one before it. */
static void do_register(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    const struct stub *old = dv_map_get(&world->stubs, text_of(op, "resource"));
    struct stub *stub = DV_NEW(world->arena, struct stub);
    struct dv_device_plugin_options options;
    struct dv_err err;

    (void)result;
    behave(world, op, stub);
    stub->socket = dv_str_printf(world->arena, "/plugins/%u.sock", world->n_sockets++);
    options = (struct dv_device_plugin_options){
        .needs_pre_start = stub->pre_start.n > 0,
        .has_preference = stub->preferred.n > 0,
    };
    must(dv_device_connect(world->state, stub->resource, stub->socket, &options, &err), &err);
    if (old)
        (void)dv_device_disconnect(world->state, old->resource, old->socket, world->now_ns);
}

static void do_behave(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    struct stub *stub = dv_map_get(&world->stubs, text_of(op, "resource"));

    (void)result;
    if (stub)
        behave(world, op, stub);
}

static void do_disconnect(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    dv_str resource = text_of(op, "resource");
    struct dv_device_resource_info info;

    (void)result;
    while (dv_device_find(world->state, resource, &info) && info.n_plugins > 0)
        (void)dv_device_disconnect(world->state, resource, dv_str_copy(info.socket, world->arena),
                                   world->now_ns);
    (void)dv_map_remove(&world->stubs, resource); /* may not be there */
}

static void do_list(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    dv_str bytes = stub_list(dv_json_get(op, DV_STR("devices")), world->arena);
    struct dv_device_diff diff;
    struct dv_err err;

    must(dv_device_apply_list(world->state, text_of(op, "resource"), bytes, world->arena, &diff,
                              &err),
         &err);
    set_member(result, "podsToUpdate", sorted_to_json(diff.pods, diff.n_pods, world->arena),
               world->arena);
    world_save(world);
}

/* -- Ops on the node ------------------------------------------------------------------------ */

static void do_advance(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    (void)result;
    world->now_ns += (uint64_t)number_of(dv_json_get(op, DV_STR("seconds"))) * SECOND_NS;
}

static void do_collect(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    (void)op;
    (void)result;
    (void)dv_device_collect(world->state); /* `held` tells */
}

static void do_capacity(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    struct dv_arena *arena = world->arena;
    struct dv_json *capacity = dv_json_new_object(arena);
    struct dv_json *allocatable = dv_json_new_object(arena);
    struct dv_device_capacities c;

    (void)op;
    dv_device_capacity(world->state, world->now_ns, arena, &c);
    for (size_t i = 0; i < c.n; i++) {
        dv_json_set(capacity, c.v[i].resource, dv_json_new_u64(c.v[i].capacity, arena), arena);
        if (c.v[i].has_allocatable)
            dv_json_set(allocatable, c.v[i].resource, dv_json_new_u64(c.v[i].allocatable, arena),
                        arena);
    }
    set_member(result, "capacity", capacity, arena);
    set_member(result, "allocatable", allocatable, arena);
    set_member(result, "removed", sorted_to_json(c.removed, c.n_removed, arena), arena);
    if (c.n_removed > 0)
        world_save(world);
}

static struct dv_json *nodes_to_json(const struct dv_device_healthy *device, struct dv_arena *arena)
{
    struct dv_json *nodes = dv_json_new_array(arena);

    if (!device->has_topology)
        return dv_json_new_null(arena);
    for (size_t i = 0; i < device->n_nodes; i++)
        dv_json_append(nodes, dv_json_new_i64(device->nodes[i], arena));
    return nodes;
}

static int healthy_cmp(const void *a, const void *b)
{
    const struct dv_device_healthy *x = a;
    const struct dv_device_healthy *y = b;

    return dv_str_cmp(x->id, y->id);
}

static void do_allocatable(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    struct dv_arena *arena = world->arena;
    const struct dv_device_healthy *devices;
    size_t n = dv_device_allocatable(world->state, arena, &devices);
    struct dv_device_healthy *sorted = DV_NEW_ARRAY(arena, struct dv_device_healthy, n);
    struct dv_json *all = dv_json_new_object(arena);

    (void)op;
    for (size_t i = 0; i < n; i++)
        sorted[i] = devices[i];
    qsort(sorted, n, sizeof(sorted[0]), healthy_cmp);
    for (size_t i = 0; i < n; i++) {
        struct dv_json *list = dv_json_get(all, sorted[i].resource);
        struct dv_json *device = dv_json_new_object(arena);

        if (!list) {
            list = dv_json_new_array(arena);
            dv_json_set(all, sorted[i].resource, list, arena);
        }
        set_member(device, "id", dv_json_new_str(sorted[i].id, arena), arena);
        set_member(device, "numa", nodes_to_json(&sorted[i], arena), arena);
        dv_json_append(list, device);
    }
    set_member(result, "devices", all, arena);
}

static void do_sanitize(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    struct dv_arena *arena = world->arena;
    const struct dv_json *from = dv_json_get(op, DV_STR("nodeAllocatable"));
    struct dv_device_amount *amounts =
        DV_NEW_ARRAY(arena, struct dv_device_amount, from ? dv_json_n(from) : 0);
    struct dv_json *all = dv_json_new_object(arena);
    const struct dv_device_amount *raised;
    size_t n = 0;

    for (const struct dv_json *one = from ? dv_json_first(from) : NULL; one;
         one = dv_json_next(one))
        amounts[n++] = (struct dv_device_amount){dv_json_key(one), number_of(one)};
    n = dv_device_raise_amounts(world->state, text_of(op, "podUID"), amounts, n, arena, &raised);
    for (size_t i = 0; i < n; i++)
        dv_json_set(all, raised[i].resource, dv_json_new_i64(raised[i].amount, arena), arena);
    set_member(result, "nodeAllocatable", all, arena);
}

static bool has_text(const struct dv_json *array, dv_str text)
{
    struct dv_err err;
    dv_str one;

    for (const struct dv_json *node = array ? dv_json_first(array) : NULL; node;
         node = dv_json_next(node))
        if (dv_json_as_str(node, &one, &err) && dv_str_eq(one, text))
            return true;
    return false;
}

static void restore_running(struct world *world, const struct dv_json *op)
{
    const struct dv_json *known = dv_json_get(op, DV_STR("knownContainers"));
    const struct dv_json *ids = dv_json_get(op, DV_STR("runningContainerIDs"));

    for (const struct dv_json *one = known ? dv_json_first(known) : NULL; one;
         one = dv_json_next(one)) {
        dv_str texts[3];
        struct dv_err err;

        for (size_t i = 0; i < 3; i++)
            must(dv_json_as_str(dv_json_at(one, i), &texts[i], &err), &err);
        if (has_text(ids, texts[2]))
            dv_device_add_running(world->state, texts[0], texts[1]);
    }
}

static void do_restart(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    static const dv_str name = DV_STR_INIT("kubelet_internal_checkpoint");
    dv_str fate = text_or_none(op, "checkpointFile");
    const struct dv_map_entry *entry;
    struct dv_err err;
    bool is_ready = false;
    bool resets;

    must(dv_json_as_bool(dv_json_get(op, DV_STR("sourcesReady")), &is_ready, &err), &err);
    if (dv_str_eq(fate, DV_STR("deleted")))
        world->file = DV_STR_NONE;
    if (dv_str_eq(fate, DV_STR("corrupted"))) {
        world->file = DV_STR("{\"Data\":");
        world->is_damaged = true;
    }
    boot(world);
    load_file(world);
    restore_running(world, op);
    dv_device_set_sources_ready(world->state, is_ready);
    for (size_t at = 0; (entry = dv_map_next(&world->active, &at)) != NULL;)
        dv_device_activate_pod(world->state, entry->key);
    resets = dv_device_should_reset_capacity(&name, world->file.p ? 1 : 0);
    set_member(result, "resetExtendedResourceCapacity", dv_json_new_bool(resets, world->arena),
               world->arena);
}

static void do_ready(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    (void)op;
    (void)result;
    dv_device_set_sources_ready(world->state, true);
}

/* ------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(struct world *world, const struct dv_json *op, struct dv_json *result);
} ops[] = {
    {"activate",    world_activate},
    {"admit",       world_admit   },
    {"advance",     do_advance    },
    {"allocatable", do_allocatable},
    {"behave",      do_behave     },
    {"capacity",    do_capacity   },
    {"collect",     do_collect    },
    {"disconnect",  do_disconnect },
    {"list",        do_list       },
    {"ready",       do_ready      },
    {"register",    do_register   },
    {"remove",      world_remove  },
    {"restart",     do_restart    },
    {"sanitize",    do_sanitize   },
    {"start",       world_start   },
    {"status",      world_status  },
};

struct dv_json *world_step(struct world *world, const struct dv_json *op)
{
    struct dv_json *outcome = dv_json_new_object(world->arena);
    struct dv_json *result = dv_json_new_object(world->arena);
    dv_str name = text_of(op, "op");

    world->calls = dv_json_new_object(world->arena);
    world->now_ns++; /* no two things happen at the same time */
    for (size_t i = 0; i < DV_COUNT(ops); i++)
        if (dv_str_eq(name, dv_str_from_c(ops[i].name)))
            ops[i].run(world, op, result);
    set_member(outcome, "result", result, world->arena);
    if (dv_json_n(world->calls) > 0)
        set_member(outcome, "calls", world->calls, world->arena);
    tell_changes(world, outcome);
    return outcome;
}

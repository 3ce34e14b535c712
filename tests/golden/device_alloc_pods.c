/* device_alloc_pods.c - admission, start and end of pods, for device_alloc_world.h. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "device/device.h"
#include "device_alloc_json.h"
#include "device_alloc_plugin.h"
#include "device_alloc_world.h"
#include "json/json.h"

/* Containers of a pod: init ones first, in order, then regular ones. */
struct containers {
    struct dv_device_request *v;
    size_t n;
};

/* -- Requests ------------------------------------------------------------------------------- */

static enum dv_device_container_kind kind_of(const struct dv_json *container)
{
    dv_str kind = text_of(container, "kind");

    if (dv_str_eq(kind, DV_STR("init")))
        return DV_DEVICE_INIT;
    return dv_str_eq(kind, DV_STR("sidecar")) ? DV_DEVICE_SIDECAR : DV_DEVICE_REGULAR;
}

static void read_request(struct world *world, const struct dv_json *pod,
                         const struct dv_json *container, struct dv_device_request *request)
{
    const struct dv_json *limits = dv_json_get(container, DV_STR("limits"));
    struct dv_device_limit *v =
        DV_NEW_ARRAY(world->arena, struct dv_device_limit, limits ? dv_json_n(limits) : 0);

    *request = (struct dv_device_request){
        .pod_uid = text_of(pod, "uid"),
        .container = text_of(container, "name"),
        .kind = kind_of(container),
        .limits = v,
    };
    for (const struct dv_json *limit = limits ? dv_json_first(limits) : NULL; limit;
         limit = dv_json_next(limit))
        v[request->n_limits++] =
            (struct dv_device_limit){.resource = dv_json_key(limit), .amount = number_of(limit)};
}

static struct containers read_containers(struct world *world, const struct dv_json *pod)
{
    const struct dv_json *list = dv_json_get(pod, DV_STR("containers"));
    struct containers all = {
        .v = DV_NEW_ARRAY(world->arena, struct dv_device_request, dv_json_n(list))};

    for (int regular = 0; regular < 2; regular++)
        for (const struct dv_json *one = dv_json_first(list); one; one = dv_json_next(one))
            if ((kind_of(one) == DV_DEVICE_REGULAR) == (regular == 1))
                read_request(world, pod, one, &all.v[all.n++]);
    return all;
}

static dv_str affinity_key(struct world *world, dv_str pod_uid, dv_str container)
{
    return dv_str_printf(world->arena, "%.*s|%.*s", DV_FMT(pod_uid), DV_FMT(container));
}

static struct dv_numa_hint affinity_of(struct world *world, const struct dv_device_request *request)
{
    const struct dv_numa_hint *hint =
        dv_map_get(&world->affinities, affinity_key(world, request->pod_uid, request->container));

    return hint ? *hint : (struct dv_numa_hint){0};
}

static void keep_affinity(struct world *world, const struct dv_device_request *request,
                          const struct dv_numa_hint *hint)
{
    struct dv_numa_hint *kept = DV_NEW(world->arena, struct dv_numa_hint);

    *kept = *hint;
    (void)dv_map_set(&world->affinities, affinity_key(world, request->pod_uid, request->container),
                     kept);
}

static struct dv_json *affinities_to_json(struct world *world, const struct containers *all)
{
    struct dv_arena *arena = world->arena;
    struct dv_json *object = dv_json_new_object(arena);

    for (size_t i = 0; i < all->n; i++) {
        struct dv_numa_hint hint = affinity_of(world, &all->v[i]);
        struct dv_json *one = dv_json_new_object(arena);
        struct dv_json *nodes = dv_json_new_array(arena);

        for (int64_t node = 0; node <= DV_NUMA_ID_MAX; node++)
            if (hint.mask >> node & 1)
                dv_json_append(nodes, dv_json_new_i64(node, arena));
        set_member(one, "affinity", hint.has_mask ? nodes : dv_json_new_null(arena), arena);
        set_member(one, "preferred", dv_json_new_bool(hint.is_preferred, arena), arena);
        dv_json_set(object, all->v[i].container, one, arena);
    }
    return object;
}

/* -- Operations ----------------------------------------------------------------------------- */

static void note_call(struct world *world, dv_str resource, struct dv_json *call)
{
    struct dv_json *calls = dv_json_get(world->calls, resource);

    if (!calls) {
        calls = dv_json_new_array(world->arena);
        dv_json_set(world->calls, dv_str_copy(resource, world->arena), calls, world->arena);
    }
    dv_json_append(calls, call);
}

/* Answers as the plugins do until the op ends; saves when something was allocated. */
static bool run(struct world *world, struct dv_device_operation *op, struct dv_device_step *end)
{
    const struct dv_device_step *step;
    bool has_allocated = false;

    while ((step = dv_device_operation_step(op))->kind < DV_DEVICE_DONE) {
        const struct stub *stub = dv_map_get(&world->stubs, step->resource);
        struct dv_json *call;
        struct dv_err status;
        dv_str response;

        if (!stub || !dv_str_eq(stub->socket, step->socket))
            abort(); /* a plugin that is not there */
        has_allocated |= step->kind == DV_DEVICE_ASK_ALLOCATE;
        if (stub_answer(stub, step, world->arena, &response, &call, &status)) {
            note_call(world, step->resource, call);
            dv_device_operation_answer(op, response);
        } else {
            note_call(world, step->resource, call);
            dv_device_operation_refuse(op, &status);
        }
    }
    *end = *step;
    dv_device_operation_free(op);
    if (end->kind == DV_DEVICE_DONE && has_allocated)
        world_save(world);
    return end->kind == DV_DEVICE_DONE;
}

static void tell_rejected(struct world *world, struct dv_json *result, const char *class,
                          const char *reason, dv_str message)
{
    struct dv_arena *arena = world->arena;

    set_member(result, "admit", dv_json_new_bool(false, arena), arena);
    set_member(result, "errorClass", dv_json_new_str(dv_str_from_c(class), arena), arena);
    set_member(result, "reason", dv_json_new_str(dv_str_from_c(reason), arena), arena);
    set_member(result, "message", dv_json_new_str(message, arena), arena);
}

/* The corpus has names for failures. */
static const char *const failures[] = {
    [DV_DEVICE_FAIL_UNAVAILABLE] = "unavailable",
    [DV_DEVICE_FAIL_UNREGISTERED] = "unregistered",
    [DV_DEVICE_FAIL_NO_HEALTHY_DEVICES] = "no-healthy-devices",
    [DV_DEVICE_FAIL_ALLOCATED_UNHEALTHY] = "allocated-unhealthy",
    [DV_DEVICE_FAIL_CHANGED_REQUEST] = "changed-request",
    [DV_DEVICE_FAIL_ENDPOINT_STOPPED] = "endpoint-stopped",
    [DV_DEVICE_FAIL_PLUGIN_ALLOCATE] = "plugin-allocate-error",
    [DV_DEVICE_FAIL_PLUGIN_EMPTY_RESPONSE] = "plugin-empty-response",
    [DV_DEVICE_FAIL_PLUGIN_PREFERRED] = "plugin-preferred-error",
    [DV_DEVICE_FAIL_PLUGIN_PRESTART] = "plugin-prestart-error",
    [DV_DEVICE_FAIL_NO_ENDPOINT] = "no-endpoint",
    [DV_DEVICE_FAIL_NOTHING_ALLOCATED] = "nothing-allocated",
    [DV_DEVICE_FAIL_ALLOCATED_LESS] = "allocated-less",
    [DV_DEVICE_FAIL_UNKNOWN_PLUGIN] = "unknown-plugin",
    [DV_DEVICE_FAIL_BAD_REQUEST] = "bad-request",
};

static bool allocate(struct world *world, struct dv_device_request *request, struct dv_json *result)
{
    struct dv_device_step end;

    request->affinity = affinity_of(world, request);
    if (run(world, dv_device_allocate(world->state, request), &end))
        return true;
    tell_rejected(
        world, result, failures[end.failure], "UnexpectedAdmissionError",
        dv_str_printf(world->arena, "Allocate failed due to %s, which is unexpected", end.err.msg));
    return false;
}

/* Merges the hints of one container, or of all in pod scope. */
static bool align(struct world *world, const struct dv_device_request *requests, size_t n,
                  struct dv_topology_verdict *verdict, struct dv_json *result)
{
    const struct dv_hint_list *lists = NULL;
    size_t n_lists = 0;
    struct dv_err err;
    bool is_good = world->config.scope == DV_TOPOLOGY_SCOPE_POD
                       ? dv_device_pod_hints(world->state, &world->machine, requests, n,
                                             world->arena, &lists, &n_lists, &err)
                       : dv_device_container_hints(world->state, &world->machine, requests,
                                                   world->arena, &lists, &n_lists, &err);

    if (!is_good ||
        !dv_topology_merge(&world->config, &world->machine, lists, n_lists, verdict, &err)) {
        tell_rejected(world, result, "error", err.msg, DV_STR(""));
        return false;
    }
    if (!verdict->is_admitted)
        tell_rejected(world, result, "topology", DV_TOPOLOGY_REJECTED_REASON,
                      DV_STR(DV_TOPOLOGY_REJECTED_MESSAGE));
    return verdict->is_admitted;
}

static bool admit_containers(struct world *world, struct containers *all, struct dv_json *result)
{
    enum dv_topology_scope scope = world->config.scope;
    struct dv_topology_verdict verdict = {0};

    if (scope == DV_TOPOLOGY_SCOPE_POD && !align(world, all->v, all->n, &verdict, result))
        return false;
    for (size_t i = 0; i < all->n; i++) {
        if (scope == DV_TOPOLOGY_SCOPE_CONTAINER && !align(world, &all->v[i], 1, &verdict, result))
            return false;
        if (scope != DV_TOPOLOGY_SCOPE_NONE)
            keep_affinity(world, &all->v[i], &verdict.affinity);
        if (!allocate(world, &all->v[i], result))
            return false;
    }
    return true;
}

/* -- Ops ------------------------------------------------------------------------------------ */

void world_activate(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    struct dv_json *pod = dv_json_get(op, DV_STR("pod"));
    dv_str uid = text_of(pod, "uid");

    (void)result;
    (void)dv_map_set(&world->pods, uid, pod);
    (void)dv_map_set(&world->active, uid, pod);
    dv_device_activate_pod(world->state, uid);
}

static void deactivate(struct world *world, dv_str uid)
{
    (void)dv_map_remove(&world->active, uid); /* may not be there */
    dv_device_deactivate_pod(world->state, uid);
}

void world_admit(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    const struct dv_json *pod = dv_json_get(op, DV_STR("pod"));
    struct containers all = read_containers(world, pod);
    dv_str uid = text_of(pod, "uid");

    world_activate(world, op, result);
    dv_device_begin_admission(world->state, uid);
    if (admit_containers(world, &all, result))
        set_member(result, "admit", dv_json_new_bool(true, world->arena), world->arena);
    else
        deactivate(world, uid);
    dv_device_end_admission(world->state, uid);
    if (world->config.policy != DV_TOPOLOGY_NONE)
        set_member(result, "affinity", affinities_to_json(world, &all), world->arena);
}

void world_remove(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    (void)result;
    deactivate(world, text_of(op, "podUID"));
}

void world_start(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    struct dv_arena *arena = world->arena;
    const struct dv_json *pod = dv_map_get(&world->pods, text_of(op, "podUID"));
    struct containers all = read_containers(world, pod);
    dv_str name = text_of(op, "container");
    struct dv_device_options options;
    struct dv_device_step end;
    size_t i = 0;

    while (!dv_str_eq(all.v[i].container, name))
        i++;
    all.v[i].affinity = affinity_of(world, &all.v[i]);
    if (!run(world, dv_device_start(world->state, &all.v[i]), &end)) {
        set_member(result, "error", dv_json_new_str(dv_str_from_c(end.err.msg), arena), arena);
        set_member(result, "errorClass",
                   dv_json_new_str(dv_str_from_c(failures[end.failure]), arena), arena);
        return;
    }
    if (dv_device_container_options(world->state, all.v[i].pod_uid, name, arena, &options))
        set_member(result, "options", options_to_json(&options, arena), arena);
    else
        set_member(result, "options", dv_json_new_null(arena), arena);
}

void world_status(struct world *world, const struct dv_json *op, struct dv_json *result)
{
    struct dv_arena *arena = world->arena;
    const struct dv_json *pod = dv_map_get(&world->pods, text_of(op, "podUID"));
    struct containers all = read_containers(world, pod);
    struct dv_json *containers = dv_json_new_object(arena);

    for (size_t i = 0; i < all.n; i++) {
        const struct dv_device_status *statuses;
        size_t n =
            dv_device_status(world->state, all.v[i].pod_uid, all.v[i].container, arena, &statuses);
        struct dv_json *list = dv_json_new_array(arena);

        for (size_t k = 0; k < n; k++)
            dv_json_append(list, status_to_json(&statuses[k], arena));
        if (all.v[i].kind == DV_DEVICE_REGULAR)
            dv_json_set(containers, all.v[i].container, list, arena);
    }
    set_member(result, "allocatedResourcesStatus", containers, arena);
}

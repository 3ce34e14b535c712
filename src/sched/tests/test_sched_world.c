#include "sched/tests/test_sched_world.h"

#include "support/dvtest.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "cluster/cluster.h"
#include "support/api_front.h"
#include "support/turns.h"

/* ---- life ---- */

/* A search for devices that a job makes shows in no request. */
static bool is_searching(struct api *api)
{
    const struct world *world = DV_CONTAINER(api, struct world, api);
    struct dv_sched_numbers numbers = {0};

    if (world->sched)
        dv_sched_get_numbers(world->sched, &numbers);
    return numbers.is_searching;
}

int start_world(void **state)
{
    struct world *world = DV_ALLOC(struct world);

    *state = world;
    api_init(&world->api);
    world->api.is_busy = is_searching;
    world->options.cluster = &world->api.front.cluster;
    (void)make(world, DV_KIND_CLASS,
               "{metadata: {name: gpu}, spec: {selectors: [{cel: {expression: "
               "'device.driver == \"gpu.example\"'}}]}}");
    return 0;
}

void close_another(struct world *world, struct dv_sched *sched)
{
    bool is_closed = false;

    dv_sched_close(sched, set_flag, &is_closed);
    loop_wait_flag(world->api.loop, &is_closed);
}

void close_sched(struct world *world)
{
    close_another(world, world->sched);
    world->sched = NULL;
}

int end_world(void **state)
{
    struct world *world = *state;

    if (world->sched)
        close_sched(world);
    api_fini(&world->api);
    free(world);
    return 0;
}

struct dv_sched *open_another(struct world *world)
{
    struct dv_err err;
    struct dv_sched *sched = dv_sched_open(world->api.loop, &world->options, &err);

    if (!sched)
        fail_msg("%s", err.msg);
    if (!world->sched)
        world->sched = sched;
    settle(world);
    return sched;
}

void open_sched(struct world *world)
{
    (void)open_another(world);
}

void release_requests(struct world *world)
{
    world->api.front.is_holding = false;
    release_some(world, SIZE_MAX);
}

void release_some(struct world *world, size_t n)
{
    api_front_send(&world->api.front, n);
    settle(world);
}

void settle(struct world *world)
{
    api_settle(&world->api);
}

void pass(struct world *world, uint64_t ms)
{
    api_pass(&world->api, ms);
}

/* ---- requests ---- */

struct dv_object *make(struct world *world, enum dv_kind_id kind, const char *yaml)
{
    return api_must(api_create(&world->api, kind, NULL, yaml));
}

void change(struct world *world, enum dv_kind_id kind, const char *name, const char *yaml)
{
    (void)api_must(api_patch(&world->api, kind, DV_SUB_NONE, NULL, name, yaml));
}

void change_status(struct world *world, enum dv_kind_id kind, const char *name, const char *yaml)
{
    (void)api_must(api_patch(&world->api, kind, DV_SUB_STATUS, NULL, name, yaml));
}

void destroy(struct world *world, enum dv_kind_id kind, const char *name)
{
    static const int64_t now = 0;
    struct api_reply reply = api_delete(&world->api, kind, NULL, name, &now);

    if (reply.code != 404)
        (void)api_must(reply);
}

/* ---- looking ---- */

struct dv_object *look(struct world *world, enum dv_kind_id kind, const char *name)
{
    return api_get(&world->api, kind, NULL, name);
}

const struct dv_api_pod *look_pod(struct world *world, const char *name)
{
    const struct dv_object *object = look(world, DV_KIND_POD, name);

    return object ? object->value : NULL;
}

const struct dv_api_resource_claim *look_claim(struct world *world, const char *name)
{
    const struct dv_object *object = look(world, DV_KIND_CLAIM, name);

    return object ? object->value : NULL;
}

size_t list(struct world *world, enum dv_kind_id kind, struct dv_object ***objects)
{
    return api_list(&world->api, kind, NULL, objects);
}

const char *node_of(struct world *world, const char *pod)
{
    const struct dv_api_pod *value = look_pod(world, pod);

    return value ? dv_str_to_c(value->spec.node_name, world->api.arena) : "";
}

const char *said_of(struct world *world, const char *pod)
{
    const struct dv_api_pod *value = look_pod(world, pod);

    for (size_t i = 0; value && i < value->status.n_conditions; i++) {
        const struct dv_api_pod_condition *condition = &value->status.conditions[i];

        if (dv_str_eq(condition->type, DV_STR("PodScheduled")) &&
            dv_str_eq(condition->status, DV_STR("False")))
            return dv_str_to_c(condition->message, world->api.arena);
    }
    return "";
}

const char *devices_of(struct world *world, const char *claim)
{
    const struct dv_api_resource_claim *value = look_claim(world, claim);
    const struct dv_api_allocation_result *allocation = value ? value->status.allocation : NULL;
    struct dv_buf buf;
    const char *devices;

    dv_buf_init(&buf, 4096);
    for (size_t i = 0; allocation && i < allocation->devices.n_results; i++)
        dv_buf_printf(&buf, "%s%.*s/%.*s", i > 0 ? " " : "",
                      DV_FMT(allocation->devices.results[i].pool),
                      DV_FMT(allocation->devices.results[i].device));
    devices = dv_str_to_c(dv_buf_str(&buf), world->api.arena);
    dv_buf_fini(&buf);
    return devices;
}

size_t n_events(struct world *world, const char *pod, const char *reason)
{
    struct dv_object **objects;
    size_t n = 0;

    for (size_t i = 0, n_all = list(world, DV_KIND_EVENT, &objects); i < n_all; i++) {
        const struct dv_api_event *event = objects[i]->value;

        n += dv_str_eq(event->involved_object.name, dv_str_from_c(pod)) &&
             dv_str_eq(event->reason, dv_str_from_c(reason));
    }
    return n;
}

struct dv_sched_numbers numbers(struct world *world)
{
    struct dv_sched_numbers now;

    dv_sched_get_numbers(world->sched, &now);
    return now;
}

void assert_at_rest(struct world *world)
{
    struct dv_sched_numbers now = numbers(world);

    assert_int_equal(now.n_in_flight, 0);
    assert_int_equal(now.n_binding, 0);
    assert_int_equal(now.n_unsaid, 0);
    assert_int_equal(now.n_pending[DV_SCHED_ACTIVE], 0);
}

/* ---- what most tests begin with ---- */

void make_slice(struct world *world, const char *node, unsigned n_devices)
{
    struct dv_buf devices;

    dv_buf_init(&devices, 1u << 20);
    for (unsigned i = 0; i < n_devices; i++)
        dv_buf_printf(&devices, "%s{name: gpu-%u, attributes: {index: {int: %u}}}",
                      i > 0 ? ", " : "", i, i);
    (void)make(world, DV_KIND_SLICE,
               text(world,
                    "{metadata: {name: %s}, spec: {driver: gpu.example, nodeName: %s, pool: "
                    "{name: %s, generation: 1, resourceSliceCount: 1}, devices: [%s]}}",
                    node, node, node, dv_buf_c(&devices)));
    dv_buf_fini(&devices);
}

void make_node(struct world *world, const char *name, unsigned n_devices)
{
    (void)make(world, DV_KIND_NODE,
               text(world,
                    "{metadata: {name: %s, labels: {zone: z1}}, status: {allocatable: {cpu: 4, "
                    "memory: 8Gi, pods: 110}}}",
                    name));
    if (n_devices > 0)
        make_slice(world, name, n_devices);
}

void make_claim(struct world *world, const char *name, unsigned n_devices)
{
    (void)make(world, DV_KIND_CLAIM,
               text(world,
                    "{metadata: {name: %s}, spec: {devices: {requests: [{name: r, exactly: "
                    "{deviceClassName: gpu, count: %u}}]}}}",
                    name, n_devices));
}

void make_pod(struct world *world, const char *name, const char *claim, const char *more)
{
    const char *claims =
        claim ? text(world, ", resourceClaims: [{name: e, resourceClaimName: %s}]", claim) : "";

    (void)make(world, DV_KIND_POD,
               text(world,
                    "{metadata: {name: %s}, spec: {containers: [{name: c, image: pause}]%s%s}}",
                    name, claims, more));
}

static bool is_there(struct world *world, const struct dv_api_resource_claim_consumer_reference *by)
{
    const struct dv_object *pod = look(world, DV_KIND_POD, dv_str_to_c(by->name, world->api.arena));

    return pod && dv_str_eq(pod->meta->uid, by->uid);
}

/* Names the version that it was judged by, as the controller does: a pod may have reserved the
 * claim meanwhile. Then it is a conflict, and nothing to do. */
static void deallocate(struct world *world, const struct dv_object *claim)
{
    const char *patch = text(world,
                             "{metadata: {resourceVersion: '%.*s'}, "
                             "status: {allocation: null, reservedFor: null}}",
                             DV_FMT(claim->meta->resource_version));
    struct api_reply reply = api_patch(&world->api, DV_KIND_CLAIM, DV_SUB_STATUS, NULL,
                                       dv_str_to_c(claim->meta->name, world->api.arena), patch);

    if (reply.code != 409)
        (void)api_must(reply);
}

void clean_up(struct world *world)
{
    struct dv_object **claims;

    for (size_t i = 0, n = list(world, DV_KIND_CLAIM, &claims); i < n; i++) {
        const struct dv_api_resource_claim *claim = claims[i]->value;
        size_t n_there = 0;

        if (claim->status.n_reserved_for == 0)
            continue;
        for (size_t j = 0; j < claim->status.n_reserved_for; j++)
            n_there += is_there(world, &claim->status.reserved_for[j]);
        if (n_there == 0)
            deallocate(world, claims[i]);
        list(world, DV_KIND_CLAIM, &claims); /* borrowed until the next turn */
    }
}

#include "sched/tests/test_sched_world.h"

#include "support/dvtest.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "store/store.h"
#include "json/json.h"

#define WAIT_MS 60000u

static const char *const space_names[] = {"objects", "meta"};
static const struct dv_store_schema schema = {.spaces = space_names, .n_spaces = 2};

/* ---- the wrapper ---- */

struct relay {
    struct dv_link link; /* in world->held, while it is not sent */
    struct world *world;
    struct dv_request *outer;
    struct dv_request inner;
    struct dv_task task;
    enum fault fault;
    bool is_cancelled;
};

static void answer(struct relay *relay, const struct dv_api_status *failure)
{
    struct dv_request *outer = relay->outer;

    outer->priv = NULL;
    dv_link_remove(&relay->link);
    if (!failure) {
        outer->object = relay->inner.object;
        outer->is_removed = relay->inner.is_removed;
    }
    free(relay);
    outer->done(outer, failure);
}

static void on_failed(struct dv_task *task)
{
    struct relay *relay = DV_CONTAINER(task, struct relay, task);
    struct dv_api_status failure = {.code = 503, .message = DV_STR("a fault of the test")};

    if (relay->is_cancelled)
        failure.code = 499;
    else if (relay->fault == FAULT_CONFLICT)
        failure.code = 409;
    else if (relay->fault == FAULT_REFUSED)
        failure.code = 422;
    answer(relay, &failure);
}

static void on_inner(struct dv_request *inner, const struct dv_api_status *failure)
{
    struct relay *relay = DV_CONTAINER(inner, struct relay, inner);
    struct dv_api_status lost = {.code = 503, .message = DV_STR("the answer got lost")};

    answer(relay, !failure && relay->fault == FAULT_AFTER ? &lost : failure);
}

static void send(struct relay *relay)
{
    dv_link_remove(&relay->link);
    if (relay->fault == FAULT_NONE || relay->fault == FAULT_AFTER)
        dv_request_start(relay->world->back, &relay->inner);
    else
        dv_task_post(&relay->task, relay->world->loop, on_failed);
}

static void front_start(struct dv_cluster *cluster, struct dv_request *request)
{
    struct world *world = DV_CONTAINER(cluster, struct world, front);
    struct relay *relay = DV_ALLOC(struct relay);

    relay->world = world;
    relay->outer = request;
    relay->inner = *request;
    relay->inner.done = on_inner;
    request->priv = relay;
    if (request->kind->id != DV_KIND_EVENT &&
        (++world->n_requests == world->fault_at || world->fault_at == 0))
        relay->fault = world->fault;
    dv_list_push(&world->held, &relay->link);
    if (!world->is_holding)
        send(relay);
}

static void front_cancel(struct dv_cluster *cluster, struct dv_request *request)
{
    struct world *world = DV_CONTAINER(cluster, struct world, front);
    struct relay *relay = request->priv;

    if (!relay)
        return;
    relay->is_cancelled = true;
    if (dv_link_is_in(&relay->link)) {
        dv_link_remove(&relay->link);
        dv_task_post(&relay->task, world->loop, on_failed);
    } else if (relay->fault == FAULT_NONE || relay->fault == FAULT_AFTER) {
        dv_request_cancel(world->back, &relay->inner);
    }
}

static struct dv_view *front_view_open(struct dv_cluster *cluster,
                                       const struct dv_view_options *options, struct dv_err *err)
{
    return dv_view_open(DV_CONTAINER(cluster, struct world, front)->back, options, err);
}

static const struct dv_cluster_engine front_engine = {
    .view_open = front_view_open,
    .view_close = dv_view_close, /* a view knows its own engine: this is never called */
    .request_start = front_start,
    .request_cancel = front_cancel,
};

void release_requests(struct world *world)
{
    struct dv_link *link;

    world->is_holding = false;
    while ((link = dv_list_first(&world->held)))
        send(DV_CONTAINER(link, struct relay, link));
    settle(world);
}

void release_some(struct world *world, size_t n)
{
    struct dv_link *link;

    for (; n > 0 && (link = dv_list_first(&world->held)); n--)
        send(DV_CONTAINER(link, struct relay, link));
    settle(world);
}

/* ---- life ---- */

static void set_true(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(const bool *)ctx;
}

static void run_until(struct world *world, bool (*is_met)(void *ctx), void *ctx)
{
    assert_true(dv_loop_run_until(world->loop, is_met, ctx, WAIT_MS));
}

static bool has_spaces(void *ctx)
{
    return dv_embedded_n(((struct world *)ctx)->embedded, dv_kind(DV_KIND_NAMESPACE)) >= 4;
}

int start_world(void **state)
{
    static const struct dv_embedded_options how = {.space_objects = 0, .space_meta = 1};
    struct world *world = DV_ALLOC(struct world);
    struct dv_err err;

    *state = world;
    dv_clock_virtual_init(&world->clock);
    world->loop = dv_loop_new(&world->clock.clock, &err);
    world->arena = dv_arena_new();
    dv_list_init(&world->held);
    world->store = dv_store_open_memory(world->loop, &schema, NULL, &err);
    assert_non_null(world->store);
    world->embedded = dv_embedded_open(world->loop, world->store, &how, &err);
    assert_non_null(world->embedded);
    world->back = dv_embedded_cluster(world->embedded);
    world->front = (struct dv_cluster){.engine = &front_engine, .loop = world->loop};
    world->options.cluster = &world->front;
    run_until(world, has_spaces, world);
    (void)make(world, DV_KIND_CLASS,
               "{metadata: {name: gpu}, spec: {selectors: [{cel: {expression: "
               "'device.driver == \"gpu.example\"'}}]}}");
    return 0;
}

void close_another(struct world *world, struct dv_sched *sched)
{
    bool is_closed = false;

    dv_sched_close(sched, set_true, &is_closed);
    run_until(world, is_true, &is_closed);
}

void close_sched(struct world *world)
{
    close_another(world, world->sched);
    world->sched = NULL;
}

int end_world(void **state)
{
    struct world *world = *state;
    bool is_closed = false;

    if (world->sched)
        close_sched(world);
    dv_embedded_close(world->embedded, set_true, &is_closed);
    run_until(world, is_true, &is_closed);
    is_closed = false;
    dv_store_close(world->store, set_true, &is_closed);
    run_until(world, is_true, &is_closed);
    dv_arena_free(world->arena);
    dv_loop_free(world->loop);
    free(world);
    return 0;
}

struct dv_sched *open_another(struct world *world)
{
    struct dv_err err;
    struct dv_sched *sched = dv_sched_open(world->loop, &world->options, &err);

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

/* ---- requests ---- */

struct asking {
    struct world *world;
    int64_t code;
    const char *message;
    struct dv_object *object;
    bool is_done;
};

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct asking *asking = request->ctx;

    asking->is_done = true;
    if (failure) {
        asking->code = failure->code;
        asking->message = dv_str_to_c(failure->message, asking->world->arena);
    }
    asking->object = request->object;
}

static bool is_done(void *ctx)
{
    return ((const struct asking *)ctx)->is_done;
}

static struct asking ask(struct world *world, struct dv_request *request)
{
    struct asking asking = {.world = world};

    request->done = on_done;
    request->ctx = &asking;
    if (request->kind->is_namespaced)
        request->space = DV_STR("default");
    dv_request_start(world->back, request);
    run_until(world, is_done, &asking);
    return asking;
}

static struct dv_json *parse(struct world *world, const char *yaml)
{
    struct dv_err err;
    struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, world->arena, &err);

    if (!doc)
        fail_msg("%s: %s", yaml, err.msg);
    return doc;
}

struct dv_object *make(struct world *world, enum dv_kind_id kind, const char *yaml)
{
    const struct dv_message *message = dv_kind(kind)->versions[0].message;
    void *value = dv_arena_alloc(world->arena, message->size, message->align);
    struct dv_request request = {.verb = DV_VERB_CREATE, .kind = dv_kind(kind), .value = value};
    struct asking asking;
    struct dv_err err;

    if (!dv_decode_json(message, parse(world, yaml), DV_UNKNOWN_DROP, world->arena, value, NULL,
                        &err))
        fail_msg("%s: %s", yaml, err.msg);
    asking = ask(world, &request);
    if (asking.code)
        fail_msg("%s: %s", yaml, asking.message);
    return asking.object;
}

static void merge(struct world *world, enum dv_kind_id kind, const char *name, const char *yaml,
                  enum dv_subresource subresource)
{
    struct dv_request request = {.verb = DV_VERB_PATCH,
                                 .subresource = subresource,
                                 .kind = dv_kind(kind),
                                 .name = dv_str_from_c(name),
                                 .patch_type = DV_PATCH_MERGE,
                                 .patch = parse(world, yaml),
                                 .field_manager = DV_STR("tester")};
    struct asking asking = ask(world, &request);

    if (asking.code)
        fail_msg("%s: %s", yaml, asking.message);
}

void change(struct world *world, enum dv_kind_id kind, const char *name, const char *yaml)
{
    merge(world, kind, name, yaml, DV_SUB_NONE);
}

void change_status(struct world *world, enum dv_kind_id kind, const char *name, const char *yaml)
{
    merge(world, kind, name, yaml, DV_SUB_STATUS);
}

void destroy(struct world *world, enum dv_kind_id kind, const char *name)
{
    static const int64_t now = 0;
    const struct dv_api_delete_options options = {.grace_period_seconds = &now};
    struct dv_request request = {.verb = DV_VERB_DELETE,
                                 .kind = dv_kind(kind),
                                 .name = dv_str_from_c(name),
                                 .delete_options = &options};
    struct asking asking = ask(world, &request);

    if (asking.code && asking.code != 404)
        fail_msg("%s: %s", name, asking.message);
}

/* ---- looking ---- */

struct dv_object *look(struct world *world, enum dv_kind_id kind, const char *name)
{
    return dv_embedded_get(world->embedded, dv_kind(kind),
                           dv_kind(kind)->is_namespaced ? DV_STR("default") : DV_STR_NONE,
                           dv_str_from_c(name));
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
    const struct dv_list_query query = {.kind = dv_kind(kind)};
    struct dv_api_status *failure;
    struct dv_list_page page;

    if (!dv_embedded_list(world->embedded, &query, world->arena, &page, &failure))
        fail_msg("%.*s", DV_FMT(failure->message));
    *objects = page.objects;
    return page.n_objects;
}

const char *node_of(struct world *world, const char *pod)
{
    const struct dv_api_pod *value = look_pod(world, pod);

    return value ? dv_str_to_c(value->spec.node_name, world->arena) : "";
}

const char *said_of(struct world *world, const char *pod)
{
    const struct dv_api_pod *value = look_pod(world, pod);

    for (size_t i = 0; value && i < value->status.n_conditions; i++) {
        const struct dv_api_pod_condition *condition = &value->status.conditions[i];

        if (dv_str_eq(condition->type, DV_STR("PodScheduled")) &&
            dv_str_eq(condition->status, DV_STR("False")))
            return dv_str_to_c(condition->message, world->arena);
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
    devices = dv_str_to_c(dv_buf_str(&buf), world->arena);
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

const char *text(struct world *world, const char *fmt, ...)
{
    struct dv_buf buf;
    const char *result;
    va_list args;

    dv_buf_init(&buf, 1u << 20);
    va_start(args, fmt);
    dv_buf_vprintf(&buf, fmt, args);
    va_end(args);
    result = dv_str_to_c(dv_buf_str(&buf), world->arena);
    dv_buf_fini(&buf);
    return result;
}

/* ---- time ---- */

struct quiet {
    struct world *world;
    uint64_t version;
    uint64_t n_requests;
    size_t n_turns;
};

/* So many turns in which nothing happens: all has come to rest. */
#define N_QUIET_TURNS 20u

static bool is_quiet(void *ctx)
{
    struct quiet *quiet = ctx;
    struct dv_store_stats stats;
    struct dv_sched_numbers numbers = {0};
    uint64_t version = dv_embedded_version(quiet->world->embedded);

    if (quiet->world->sched)
        dv_sched_get_numbers(quiet->world->sched, &numbers);
    dv_store_get_stats(quiet->world->store, &stats);
    quiet->n_turns = stats.n_queued == 0 && !numbers.is_searching && version == quiet->version &&
                             quiet->n_requests == quiet->world->n_requests
                         ? quiet->n_turns + 1
                         : 0;
    quiet->version = version;
    quiet->n_requests = quiet->world->n_requests;
    return quiet->n_turns > N_QUIET_TURNS;
}

static void stay_awake(struct dv_timer *timer)
{
    dv_timer_start(timer, timer->loop, dv_loop_now_ms(timer->loop), stay_awake);
}

void settle(struct world *world)
{
    struct quiet quiet = {.world = world};
    struct dv_timer timer = {0};

    dv_timer_start(&timer, world->loop, dv_loop_now_ms(world->loop), stay_awake);
    run_until(world, is_quiet, &quiet);
    dv_timer_cancel(&timer);
}

void pass(struct world *world, uint64_t ms)
{
    while (ms > 0) {
        uint64_t step = ms < 500 ? ms : 500;

        dv_clock_virtual_advance_ms(&world->clock, step);
        settle(world);
        ms -= step;
    }
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
    const struct dv_object *pod = look(world, DV_KIND_POD, dv_str_to_c(by->name, world->arena));

    return pod && dv_str_eq(pod->meta->uid, by->uid);
}

void clean_up(struct world *world)
{
    struct dv_object **claims;

    for (size_t i = 0, n = list(world, DV_KIND_CLAIM, &claims); i < n; i++) {
        const struct dv_api_resource_claim *claim = claims[i]->value;
        const char *name = dv_str_to_c(claims[i]->meta->name, world->arena);
        size_t n_there = 0;

        if (claim->status.n_reserved_for == 0)
            continue;
        for (size_t j = 0; j < claim->status.n_reserved_for; j++)
            n_there += is_there(world, &claim->status.reserved_for[j]);
        if (n_there == 0)
            change_status(world, DV_KIND_CLAIM, name,
                          "{status: {allocation: null, reservedFor: null}}");
        list(world, DV_KIND_CLAIM, &claims); /* borrowed until the next turn */
    }
}

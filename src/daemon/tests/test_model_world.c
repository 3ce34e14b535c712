#include "daemon/tests/test_model_world.h"

#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cluster/embedded.h"
#include "control/control.h"
#include "loop/loop.h"
#include "sched/sched.h"
#include "store/store.h"
#include "json/json.h"

/* Of real time: the sanitizers on a loaded machine are slow, not broken. */
#define WAIT_MS 60000u
#define N_LATE_TURNS 8u
#define LATE_MS 1500u

unsigned roll(struct dice *dice, unsigned sides)
{
    dice->state = dice->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(dice->state >> 33) % sides;
}

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

/* ---- the front: a request on its way ---- */

enum fault {
    FAULT_NONE,
    FAULT_BEFORE,   /* it does not arrive */
    FAULT_AFTER,    /* its answer does not */
    FAULT_CONFLICT, /* it is refused */
};

struct relay {
    struct dv_link link;
    struct world *world;
    struct dv_request *outer;
    struct dv_request inner;
    struct dv_task task;
    struct dv_timer timer;
    unsigned n_turns; /* that it is late by */
    enum fault fault;
    bool is_sent;
    bool is_cancelled;
};

static void answer(struct relay *relay, const struct dv_api_status *failure)
{
    struct dv_request *outer = relay->outer;

    outer->priv = NULL;
    if (!failure) {
        outer->object = relay->inner.object;
        outer->is_removed = relay->inner.is_removed;
    }
    dv_link_remove(&relay->link);
    dv_timer_cancel(&relay->timer);
    dv_task_cancel(&relay->task);
    free(relay);
    outer->done(outer, failure);
}

static void on_inner(struct dv_request *inner, const struct dv_api_status *failure)
{
    struct relay *relay = DV_CONTAINER(inner, struct relay, inner);
    const struct dv_api_status lost = {.code = 503, .message = DV_STR("the answer got lost")};

    answer(relay, !failure && relay->fault == FAULT_AFTER ? &lost : failure);
}

static void on_turn(struct dv_task *task)
{
    struct relay *relay = DV_CONTAINER(task, struct relay, task);
    struct dv_api_status failure = {.code = 503, .message = DV_STR("the request got lost")};

    if (relay->is_cancelled) {
        failure.code = 499;
        answer(relay, &failure);
    } else if (relay->fault == FAULT_BEFORE || relay->fault == FAULT_CONFLICT) {
        failure.code = relay->fault == FAULT_CONFLICT ? 409 : 503;
        answer(relay, &failure);
    } else {
        relay->is_sent = true;
        dv_request_start(relay->world->back, &relay->inner);
    }
}

static void on_late(struct dv_timer *timer)
{
    struct relay *relay = DV_CONTAINER(timer, struct relay, timer);

    if (relay->n_turns == 0) {
        dv_task_post(&relay->task, relay->world->loop, on_turn);
        return;
    }
    relay->n_turns--;
    dv_timer_start(timer, timer->loop, dv_loop_now_ms(timer->loop), on_late);
}

static enum fault draw_fault(struct world *world)
{
    static const enum fault faults[] = {FAULT_BEFORE, FAULT_AFTER, FAULT_CONFLICT};

    return world->has_faults && roll(&world->luck, 30) == 0 ? faults[roll(&world->luck, 3)]
                                                            : FAULT_NONE;
}

static void front_start(struct dv_cluster *cluster, struct dv_request *request)
{
    struct world *world = DV_CONTAINER(cluster, struct world, front);
    struct relay *relay = DV_ALLOC(struct relay);
    unsigned luck = roll(&world->luck, 10);
    uint64_t now_ms = dv_loop_now_ms(world->loop);

    relay->world = world;
    relay->outer = request;
    relay->inner = *request;
    relay->inner.done = on_inner;
    request->priv = relay;
    dv_list_push(&world->relays, &relay->link);
    if (request->kind->id == DV_KIND_EVENT) {
        dv_task_post(&relay->task, world->loop, on_turn);
        return;
    }
    world->n_requests++;
    relay->fault = draw_fault(world);
    if (luck > 2 || !world->has_faults) {
        dv_task_post(&relay->task, world->loop, on_turn);
    } else {
        relay->n_turns = roll(&world->luck, N_LATE_TURNS);
        dv_timer_start(&relay->timer, world->loop,
                       luck == 0 ? now_ms + roll(&world->luck, LATE_MS) : now_ms, on_late);
    }
}

static void front_cancel(struct dv_cluster *cluster, struct dv_request *request)
{
    struct world *world = DV_CONTAINER(cluster, struct world, front);
    struct relay *relay = request->priv;

    if (!relay)
        return;
    relay->is_cancelled = true;
    if (relay->is_sent) {
        dv_request_cancel(world->back, &relay->inner);
        return;
    }
    dv_timer_cancel(&relay->timer);
    dv_task_post(&relay->task, world->loop, on_turn);
}

static struct dv_view *front_view_open(struct dv_cluster *cluster,
                                       const struct dv_view_options *options, struct dv_err *err)
{
    return dv_view_open(DV_CONTAINER(cluster, struct world, front)->back, options, err);
}

static const struct dv_cluster_engine front_engine = {
    .view_open = front_view_open, .request_start = front_start, .request_cancel = front_cancel};

bool is_at_rest(const struct world *world)
{
    return dv_list_is_empty(&world->relays);
}

/* ---- life ---- */

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    fail_msg("the store is damaged: %s", set_aside);
}

static bool has_spaces(void *ctx)
{
    return dv_embedded_n(((struct world *)ctx)->embedded, dv_kind(DV_KIND_NAMESPACE)) >= 4;
}

static void open_api(struct world *world)
{
    static const char *const names[] = {"objects", "meta"};
    static const struct dv_store_schema schema = {.spaces = names, .n_spaces = 2};
    const struct dv_store_options options = {.schema = &schema, .damaged = on_damaged};
    const struct dv_embedded_options how = {.space_objects = 0, .space_meta = 1};
    struct dv_err err;

    world->store = dv_store_open(world->loop, dv_str_from_c(world->path), &options, &err);
    assert_ok(world->store, &err);
    world->embedded = dv_embedded_open(world->loop, world->store, &how, &err);
    assert_ok(world->embedded, &err);
    world->back = dv_embedded_cluster(world->embedded);
    run_until(world, has_spaces, world);
}

static void close_api(struct world *world)
{
    bool is_closed = false;

    dv_embedded_close(world->embedded, set_true, &is_closed);
    run_until(world, is_true, &is_closed);
    is_closed = false;
    dv_store_close(world->store, set_true, &is_closed);
    run_until(world, is_true, &is_closed);
}

void start_control(struct world *world)
{
    const struct dv_control_options options = {.cluster = &world->front,
                                               .gates = dv_control_gates_default()};
    struct dv_err err;

    if (world->control)
        return;
    world->control = dv_control_open(world->loop, &options, &err);
    assert_ok(world->control, &err);
}

void kill_control(struct world *world)
{
    bool is_closed = false;

    if (!world->control)
        return;
    dv_control_close(world->control, set_true, &is_closed);
    world->control = NULL;
    run_until(world, is_true, &is_closed);
}

void start_sched(struct world *world, size_t i)
{
    const struct dv_sched_options options = {.cluster = &world->front};
    struct dv_err err;

    if (world->scheds[i])
        return;
    world->scheds[i] = dv_sched_open(world->loop, &options, &err);
    assert_ok(world->scheds[i], &err);
}

void kill_sched(struct world *world, size_t i)
{
    bool is_closed = false;

    if (!world->scheds[i])
        return;
    dv_sched_close(world->scheds[i], set_true, &is_closed);
    world->scheds[i] = NULL;
    run_until(world, is_true, &is_closed);
}

static void close_all(struct world *world)
{
    kill_control(world);
    for (size_t i = 0; i < N_SCHEDS; i++)
        kill_sched(world, i);
    assert_true(is_at_rest(world)); /* all were answered, if only with a cancellation */
    close_api(world);
}

void kill_all(struct world *world)
{
    close_all(world);
    open_api(world);
    start_control(world);
    start_sched(world, 0);
}

struct world *world_new(uint64_t seed)
{
    struct world *world = DV_ALLOC(struct world);
    struct dv_err err;

    dv_clock_virtual_init(&world->clock);
    world->loop = dv_loop_new(&world->clock.clock, &err);
    assert_ok(world->loop, &err);
    world->arena = dv_arena_new();
    world->luck.state = seed * UINT64_C(0xd1342543de82ef95) + 1;
    dv_list_init(&world->relays);
    world->front = (struct dv_cluster){.engine = &front_engine, .loop = world->loop};
    /* in memory where there is such a place: what a disk loses is another test's */
    (void)snprintf(world->dir, sizeof(world->dir), "%s/davit-model-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(world->dir));
    (void)snprintf(world->path, sizeof(world->path), "%s/store", world->dir);
    open_api(world);
    return world;
}

void world_free(struct world *world)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".lock", ".mark"};

    close_all(world);
    for (size_t i = 0; i < DV_COUNT(suffixes); i++)
        (void)unlink(text(world, "%s%s", world->path, suffixes[i])); /* not all are there */
    assert_int_equal(rmdir(world->dir), 0);
    dv_arena_free(world->arena);
    dv_loop_free(world->loop);
    free(world);
}

/* ---- requests ---- */

struct asking {
    struct dv_request request;
    struct world *world;
    int code;
    bool is_done;
};

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct asking *asking = DV_CONTAINER(request, struct asking, request);

    asking->is_done = true;
    asking->code = failure ? (int)failure->code : 0;
    /* what is written by hand below is right, whatever the time it comes at */
    if (asking->code == 400 || asking->code == 500)
        fail_msg("%.*s", DV_FMT(failure->message));
}

static int ask(struct world *world, struct asking *asking)
{
    asking->world = world;
    asking->request.done = on_done;
    if (asking->request.kind->is_namespaced)
        asking->request.space = DV_STR("default");
    dv_request_start(world->back, &asking->request);
    run_until(world, is_true, &asking->is_done);
    return asking->code;
}

static struct dv_json *parse(struct world *world, const char *yaml)
{
    struct dv_err err;
    struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, world->arena, &err);

    if (!doc)
        fail_msg("%s: %s", yaml, err.msg);
    return doc;
}

int make(struct world *world, enum dv_kind_id kind, const char *yaml)
{
    const struct dv_message *message = dv_kind(kind)->versions[0].message;
    void *value = dv_arena_alloc(world->arena, message->size, message->align);
    struct asking asking = {
        .request = {.verb = DV_VERB_CREATE, .kind = dv_kind(kind), .value = value}
    };
    struct dv_err err;

    assert_ok(dv_decode_json(message, parse(world, yaml), DV_UNKNOWN_DROP, world->arena, value,
                             NULL, &err),
              &err);
    return ask(world, &asking);
}

int change(struct world *world, enum dv_kind_id kind, enum dv_subresource subresource, dv_str name,
           const char *yaml)
{
    struct asking asking = {
        .request = {.verb = DV_VERB_PATCH,
                    .subresource = subresource,
                    .kind = dv_kind(kind),
                    .name = name,
                    .patch_type = DV_PATCH_MERGE,
                    .patch = parse(world, yaml),
                    .field_manager = DV_STR("tester")}
    };

    return ask(world, &asking);
}

int destroy(struct world *world, enum dv_kind_id kind, dv_str name, int64_t grace_s)
{
    const struct dv_api_delete_options options = {.grace_period_seconds =
                                                      grace_s < 0 ? NULL : &grace_s};
    struct asking asking = {
        .request = {.verb = DV_VERB_DELETE,
                    .kind = dv_kind(kind),
                    .name = name,
                    .delete_options = &options}
    };

    return ask(world, &asking);
}

/* ---- looking ---- */

struct dv_object *look(const struct world *world, enum dv_kind_id kind, dv_str name)
{
    return dv_embedded_get(world->embedded, dv_kind(kind),
                           dv_kind(kind)->is_namespaced ? DV_STR("default") : DV_STR_NONE, name);
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

const char *text(struct world *world, const char *fmt, ...)
{
    struct dv_buf buf;
    const char *result;
    va_list args;

    dv_buf_init(&buf, 1u << 16);
    va_start(args, fmt);
    dv_buf_vprintf(&buf, fmt, args);
    va_end(args);
    result = dv_str_to_c(dv_buf_str(&buf), world->arena);
    dv_buf_fini(&buf);
    return result;
}

/* ---- time ---- */

/* So many turns in which nothing happens: all that can has. */
#define N_QUIET_TURNS (N_LATE_TURNS + 8u)

struct quiet {
    struct world *world;
    uint64_t version;
    uint64_t n_requests;
    unsigned n_turns;
};

static bool is_quiet(void *ctx)
{
    struct quiet *quiet = ctx;
    struct world *world = quiet->world;
    uint64_t version = dv_embedded_version(world->embedded);
    struct dv_store_stats stats;

    dv_store_get_stats(world->store, &stats);
    quiet->n_turns =
        stats.n_queued == 0 && version == quiet->version && world->n_requests == quiet->n_requests
            ? quiet->n_turns + 1
            : 0;
    quiet->version = version;
    quiet->n_requests = world->n_requests;
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
    dv_clock_virtual_advance_ms(&world->clock, ms);
    settle(world);
}

#include "lib/dra/dra_pool.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "lib/common/parts.h"
#include "resource/resource.h"
#include "resource/status.h"

/* The pauses after a failure: long enough for a server to recover, short enough for pods
 * that wait. */
#define BACKOFF_FIRST_MS 1000u
#define BACKOFF_MAX_MS 60000u
#define BACKOFF_JITTER_PER_MILLE 200u
/* After slices were written, the pool is looked at once more, when only the view counts any more:
 * see WRITTEN_MS of dra_publish.c. */
#define LOOK_AGAIN_MS 65000u
#define FEATURES_BYTES_MAX 256u

static void on_timer(struct dv_timer *timer);

void dv_lib_pool_look(struct dv_lib_pool *pool, uint64_t delay_ms)
{
    struct dv_loop *loop = pool->publisher->parts->loop;
    uint64_t at_ms = dv_loop_now_ms(loop) + delay_ms;

    if (!dv_timer_is_set(&pool->timer) || pool->timer.at_ms > at_ms)
        dv_timer_start(&pool->timer, loop, at_ms, on_timer);
}

/* ---- life ---- */

struct dv_lib_pool *dv_lib_pool_new(struct dv_lib_publisher *publisher, dv_str name)
{
    struct dv_lib_pool *pool = DV_ALLOC(struct dv_lib_pool);

    pool->publisher = publisher;
    pool->arena = dv_arena_new();
    pool->name = dv_str_copy(name, pool->arena);
    pool->backoff_ms = BACKOFF_FIRST_MS;
    dv_list_push(&publisher->pools, &pool->link);
    return pool;
}

/* Frees the pool, which must not be running. */
static void pool_free(struct dv_lib_pool *pool)
{
    dv_timer_cancel(&pool->timer);
    dv_link_remove(&pool->link);
    dv_arena_free(pool->wanted.arena);
    dv_arena_free(pool->next.arena);
    dv_arena_free(pool->arena);
    free(pool);
}

void dv_lib_pool_want(struct dv_lib_pool *pool, const struct dv_lib_wanted *wanted)
{
    pool->is_news = true;
    pool->backoff_ms = BACKOFF_FIRST_MS;
    if (pool->is_running) {
        dv_arena_free(pool->next.arena);
        pool->next = *wanted;
        pool->has_next = true;
        return;
    }
    dv_arena_free(pool->wanted.arena);
    pool->wanted = *wanted;
    dv_lib_pool_look(pool, 0);
}

void dv_lib_pool_close(struct dv_lib_pool *pool)
{
    dv_timer_cancel(&pool->timer);
    if (pool->is_running)
        dv_request_cancel(pool->publisher->options.cluster, &pool->request);
    else
        pool_free(pool);
}

/* ---- the end of a run ---- */

static void drop_plan(struct dv_lib_pool *pool)
{
    const struct dv_lib_slice_plan *plan = &pool->plan;

    for (size_t i = 0; i < plan->n_deletes; i++)
        dv_object_unref(plan->deletes[i]);
    for (size_t i = 0; i < plan->n_updates; i++)
        dv_object_unref(plan->updates[i].old);
    dv_arena_free(pool->run_arena);
    pool->run_arena = NULL;
    pool->is_running = false;
}

static void take_next(struct dv_lib_pool *pool)
{
    dv_arena_free(pool->wanted.arena);
    pool->wanted = pool->next;
    pool->next = (struct dv_lib_wanted){0};
    pool->has_next = false;
}

/* Ends the run. False: another one begins at once. */
static bool end_run(struct dv_lib_pool *pool)
{
    bool is_due = pool->is_due || pool->has_next;

    drop_plan(pool);
    pool->is_due = false;
    if (pool->has_next)
        take_next(pool);
    if (is_due)
        dv_lib_pool_look(pool, 0);
    return !is_due;
}

static void fail(struct dv_lib_pool *pool, const struct dv_err *err)
{
    struct dv_lib_publisher *publisher = pool->publisher;
    uint64_t pause_ms = dv_jitter(pool->backoff_ms, BACKOFF_JITTER_PER_MILLE);

    publisher->counts.n_failed++;
    if (end_run(pool)) {
        pool->backoff_ms = dv_u64_min(pool->backoff_ms * 2, BACKOFF_MAX_MS);
        dv_lib_pool_look(pool, pause_ms);
    }
    publisher->options.failed(publisher->options.ctx, pool->name, err, pause_ms);
}

static void succeed(struct dv_lib_pool *pool)
{
    struct dv_lib_publisher *publisher = pool->publisher;
    bool has_created = pool->plan.n_creates > 0;
    bool is_told = pool->is_news || pool->n_steps > 0;

    pool->backoff_ms = BACKOFF_FIRST_MS;
    if (!end_run(pool))
        return;
    pool->is_news = false;
    if (has_created)
        dv_lib_pool_look(pool, LOOK_AGAIN_MS);
    if (!pool->wanted.desired && !dv_timer_is_set(&pool->timer)) {
        pool_free(pool); /* nothing of it is left */
        return;
    }
    if (is_told && pool->wanted.desired)
        publisher->options.published(publisher->options.ctx, pool->name); /* last: may close */
}

/* ---- steps ---- */

static void start_step(struct dv_lib_pool *pool);

/* Takes what the server kept as what is wanted from now on: it cannot store more. */
static bool adopt(struct dv_lib_pool *pool, size_t number, struct dv_err *err)
{
    const struct dv_object *object = pool->request.object;
    const struct dv_api_resource_slice *stored = object->value;
    struct dv_lib_slice *slice = &pool->wanted.desired->slices[number];
    struct dv_api_resource_slice_spec *copy =
        DV_NEW(pool->wanted.arena, struct dv_api_resource_slice_spec);
    bool is_good = true;
    struct dv_buf features;

    dv_buf_init(&features, FEATURES_BYTES_MAX);
    if (dv_lib_slice_differs(&pool->value.spec, &stored->spec, &features)) {
        dv_message_copy(&dv_message_resource_slice_spec, &stored->spec, pool->wanted.arena, copy);
        slice->devices = copy->devices;
        slice->n_devices = copy->n_devices;
        slice->counters = copy->shared_counters;
        slice->n_counters = copy->n_shared_counters;
        if (features.n > 0)
            is_good = dv_fail(err, DV_FAILED_PRECONDITION,
                              "pool %.*s, slice %zu: the API server drops fields; these features "
                              "seem to be off: %s",
                              DV_FMT(pool->name), number, dv_buf_c(&features));
    }
    dv_buf_fini(&features);
    return is_good;
}

/* Finds the number of the slice that the step writes. */
static bool find_number(const struct dv_lib_pool *pool, size_t *number)
{
    const struct dv_lib_slice_plan *plan = &pool->plan;
    size_t at = pool->at;

    if (at < plan->n_deletes)
        return false;
    at -= plan->n_deletes;
    *number = at < plan->n_updates ? plan->updates[at].number : plan->creates[at - plan->n_updates];
    return true;
}

static void count(struct dv_lib_pool *pool)
{
    struct davit_dra_counts *counts = &pool->publisher->counts;

    if (pool->request.verb == DV_VERB_CREATE)
        counts->n_created++;
    else if (pool->request.verb == DV_VERB_UPDATE)
        counts->n_updated++;
    else
        counts->n_deleted++;
}

static void on_written(struct dv_lib_pool *pool)
{
    struct dv_lib_publisher *publisher = pool->publisher;
    bool is_delete = pool->request.verb == DV_VERB_DELETE;
    struct dv_object *object = pool->request.object;
    bool is_good = true;
    struct dv_err err;
    size_t number;

    count(pool);
    dv_lib_publisher_wrote(publisher, is_delete ? pool->request.name : object->meta->name,
                           is_delete ? NULL : object);
    if (find_number(pool, &number))
        is_good = adopt(pool, number, &err);
    pool->at++;
    if (!is_good)
        publisher->options.dropped(publisher->options.ctx, pool->name, &err);
    if (publisher->is_closing) { /* the callback has closed it */
        drop_plan(pool);
        pool_free(pool);
    } else if (pool->has_next || pool->at == pool->n_steps) {
        succeed(pool);
    } else {
        start_step(pool);
    }
}

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_lib_pool *pool = DV_CONTAINER(request, struct dv_lib_pool, request);
    struct dv_lib_parts *parts = pool->publisher->parts;
    struct dv_err err;

    if (pool->publisher->is_closing) {
        drop_plan(pool);
        pool_free(pool);
    } else if (!failure || (request->verb == DV_VERB_DELETE && failure->code == 404)) {
        on_written(pool);
    } else {
        dv_status_to_err(failure, &err);
        (void)dv_wrap(&err, "pool %.*s: %s a slice", DV_FMT(pool->name),
                      request->verb == DV_VERB_CREATE   ? "creating"
                      : request->verb == DV_VERB_UPDATE ? "updating"
                                                        : "deleting");
        fail(pool, &err);
    }
    dv_lib_part_closed(parts);
}

static void print_delete(struct dv_lib_pool *pool)
{
    const struct dv_object *object = pool->plan.deletes[pool->at];

    pool->preconditions = (struct dv_api_preconditions){
        .uid = object->meta->uid, .resource_version = object->meta->resource_version};
    pool->delete_options = (struct dv_api_delete_options){.preconditions = &pool->preconditions};
    pool->request.verb = DV_VERB_DELETE;
    pool->request.name = object->meta->name;
    pool->request.delete_options = &pool->delete_options;
}

static void print_update(struct dv_lib_pool *pool, const struct dv_lib_slice_update *update)
{
    const struct dv_api_resource_slice *old = update->old->value;

    pool->value = (struct dv_api_resource_slice){.metadata = old->metadata};
    dv_lib_slice_fill(pool->wanted.desired, update->number, pool->plan.generation, &old->spec,
                      pool->run_arena, &pool->value.spec);
    pool->request.verb = DV_VERB_UPDATE;
    pool->request.name = old->metadata.name;
    pool->request.value = &pool->value;
}

static void print_create(struct dv_lib_pool *pool, size_t number)
{
    static const bool yes = true;
    const struct dv_lib_publisher_options *options = &pool->publisher->options;
    const struct dv_lib_desired *desired = pool->wanted.desired;
    struct dv_api_object_meta *meta = &pool->value.metadata;

    pool->value = (struct dv_api_resource_slice){.metadata = {.name = DV_STR_NONE}};
    meta->generate_name = dv_lib_slice_prefix(number, desired->n_slices, desired->driver,
                                              options->owner_name, pool->run_arena);
    if (options->owner_api_version.n > 0) {
        meta->owner_references = DV_NEW(pool->run_arena, struct dv_api_owner_reference);
        meta->n_owner_references = 1;
        meta->owner_references[0] = (struct dv_api_owner_reference){
            .api_version = options->owner_api_version,
            .kind = options->owner_kind,
            .name = options->owner_name,
            .uid = options->owner_uid,
            .controller = &yes,
        };
    }
    dv_lib_slice_fill(desired, number, pool->plan.generation, NULL, pool->run_arena,
                      &pool->value.spec);
    pool->request.verb = DV_VERB_CREATE;
    pool->request.value = &pool->value;
}

static void start_step(struct dv_lib_pool *pool)
{
    const struct dv_lib_slice_plan *plan = &pool->plan;
    size_t at = pool->at;

    pool->request = (struct dv_request){.kind = dv_kind(DV_KIND_SLICE), .done = on_done};
    if (at < plan->n_deletes)
        print_delete(pool);
    else if (at - plan->n_deletes < plan->n_updates)
        print_update(pool, &plan->updates[at - plan->n_deletes]);
    else
        print_create(pool, plan->creates[at - plan->n_deletes - plan->n_updates]);
    dv_lib_parts_add(pool->publisher->parts);
    dv_request_start(pool->publisher->options.cluster, &pool->request);
}

/* ---- the beginning of a run ---- */

static void make_plan(struct dv_lib_pool *pool)
{
    struct dv_lib_slice_plan *plan = &pool->plan;
    struct dv_object **existing;
    size_t n;

    pool->run_arena = dv_arena_new();
    existing = dv_lib_publisher_slices(pool->publisher, pool->name, pool->run_arena, &n);
    dv_lib_slices_plan(pool->wanted.desired, existing, n, pool->run_arena, plan);
    for (size_t i = 0; i < plan->n_deletes; i++)
        (void)dv_object_ref(plan->deletes[i]);
    for (size_t i = 0; i < plan->n_updates; i++)
        (void)dv_object_ref(plan->updates[i].old);
    for (size_t i = 0; i < n; i++)
        dv_object_unref(existing[i]);
    pool->n_steps = plan->n_deletes + plan->n_updates + plan->n_creates;
    pool->at = 0;
    pool->is_running = true;
}

static void on_timer(struct dv_timer *timer)
{
    struct dv_lib_pool *pool = DV_CONTAINER(timer, struct dv_lib_pool, timer);

    if (pool->is_running) {
        pool->is_due = true;
        return;
    }
    if (!dv_lib_publisher_is_ready(pool->publisher))
        return; /* it looks at all pools when it is */
    make_plan(pool);
    if (pool->n_steps > 0)
        start_step(pool);
    else
        succeed(pool);
}

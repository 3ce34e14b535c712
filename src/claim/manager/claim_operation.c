/* claim_operation.c - what all operations have in common: they begin, wait, save, call drivers, are
 * cancelled, and end once. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "claim/manager/claims.h"
#include "resource/resource.h"

static void go_on(struct dv_claim_operation *operation)
{
    bool is_first = operation->priv.step == DV_CLAIM_STEP_BEGIN;

    operation->awaited[0] = '\0';
    operation->is_brief = false;
    dv_timer_cancel(&operation->priv.timer);
    if (operation->priv.kind == DV_CLAIM_PREPARE)
        (is_first ? dv_claim_prepare_begin : dv_claim_prepare_look)(operation);
    else
        (is_first ? dv_claim_unprepare_begin : dv_claim_unprepare_look)(operation);
}

static void on_task(struct dv_task *task)
{
    struct dv_claim_operation *operation = DV_CONTAINER(task, struct dv_claim_operation, priv.task);

    if (operation->priv.end.code != DV_OK)
        dv_claim_operation_finish(operation, &operation->priv.end);
    else
        go_on(operation);
}

void dv_claim_operation_begin(struct dv_claims *claims, struct dv_claim_operation *operation,
                              enum dv_claim_operation_kind kind)
{
    assert(operation->done);
    memset(&operation->priv, 0, sizeof(operation->priv));
    operation->awaited[0] = '\0';
    operation->is_brief = operation->has_asked = false;
    operation->priv.claims = claims;
    operation->priv.kind = kind;
    operation->priv.arena = dv_arena_new();
    operation->priv.start_ns = dv_loop_now_ns(claims->loop);
    operation->priv.wait_until_ms =
        dv_loop_now_ms(claims->loop) + (claims->options.is_strict ? 0 : operation->wait_ms);
    if (operation->priv.wait_until_ms < operation->wait_ms && !claims->options.is_strict)
        operation->priv.wait_until_ms = UINT64_MAX;
    dv_list_push(&claims->operations, &operation->priv.link);
    if (claims->is_closing)
        (void)dv_fail(&operation->priv.end, DV_CANCELLED, "davitd is stopping");
}

void dv_claim_operation_set_jobs(struct dv_claim_operation *operation, size_t n_jobs)
{
    operation->priv.jobs = DV_NEW_ARRAY(operation->priv.arena, struct dv_claim_job, n_jobs);
    operation->priv.n_jobs = n_jobs;
    for (size_t i = 0; i < n_jobs; i++)
        operation->priv.jobs[i].operation = operation;
}

void dv_claim_operation_start(struct dv_claim_operation *operation)
{
    dv_task_post(&operation->priv.task, operation->priv.claims->loop, on_task);
}

/* ---- waiting ---- */

bool dv_claim_operation_may_wait(const struct dv_claim_operation *operation)
{
    return dv_loop_now_ms(operation->priv.claims->loop) < operation->priv.wait_until_ms;
}

static void on_timer(struct dv_timer *timer)
{
    struct dv_claim_operation *operation =
        DV_CONTAINER(timer, struct dv_claim_operation, priv.timer);

    dv_link_remove(&operation->priv.waiting);
    dv_claim_operation_start(operation);
}

void dv_claim_operation_wait(struct dv_claim_operation *operation, struct dv_claim *claim)
{
    operation->priv.step = DV_CLAIM_STEP_WAIT;
    operation->priv.has_waited = true;
    operation->is_brief = claim != NULL;
    dv_list_push(claim ? dv_claim_waiters(claim) : &operation->priv.claims->waiting,
                 &operation->priv.waiting);
    if (dv_claim_operation_may_wait(operation) && operation->priv.wait_until_ms != UINT64_MAX)
        dv_timer_start(&operation->priv.timer, operation->priv.claims->loop,
                       operation->priv.wait_until_ms, on_timer);
    dv_claims_tell_changed(operation->priv.claims);
}

static void wake_all(struct dv_list *list)
{
    struct dv_link *link;

    while ((link = dv_list_shift(list)) != NULL)
        dv_claim_operation_start(DV_CONTAINER(link, struct dv_claim_operation, priv.waiting));
}

void dv_claims_wake(struct dv_claims *claims)
{
    wake_all(&claims->waiting);
}

bool dv_claim_operation_need_driver(struct dv_claim_operation *operation, dv_str driver)
{
    struct dv_claims *claims = operation->priv.claims;
    struct dv_err err;
    const struct dv_dra_instance *instance = dv_dra_choose(claims->drivers, driver, &err);

    if (instance && (instance->is_connected || !dv_claim_operation_may_wait(operation)))
        return true;
    if (!dv_claim_operation_may_wait(operation)) {
        dv_claim_operation_finish(operation, &err);
        return false;
    }
    (void)snprintf(operation->awaited, sizeof(operation->awaited),
                   instance ? "driver %.*s to answer on %.*s" : "driver %.*s to register%.*s",
                   DV_FMT(driver), DV_FMT(instance ? instance->endpoint : DV_STR("")));
    dv_claim_operation_wait(operation, NULL);
    return false;
}

/* ---- claims that are ours for a while ---- */

void dv_claim_operation_hold(struct dv_claim_job *job, struct dv_claim *claim)
{
    dv_claim_begin_call(claim);
    job->claim = claim;
}

void dv_claim_operation_let_go(struct dv_claim_job *job)
{
    struct dv_claim *claim = job->claim;

    if (!claim)
        return;
    job->claim = NULL;
    dv_claim_end_call(claim);
    if (claim->n_calls == 0)
        wake_all(dv_claim_waiters(claim));
}

/* ---- saving ---- */

static void on_saved(struct dv_save *save, const struct dv_err *err)
{
    struct dv_claim_operation *operation = DV_CONTAINER(save, struct dv_claim_operation, priv.save);
    bool is_recorded = operation->priv.step == DV_CLAIM_STEP_RECORD;
    struct dv_err reason;

    if (err) {
        reason = *err;
        (void)dv_wrap(&reason, is_recorded ? "checkpoint ResourceClaim cache"
                                           : "checkpoint ResourceClaim state");
        dv_claim_operation_finish(operation, &reason);
    } else if (operation->priv.end.code != DV_OK) {
        dv_claim_operation_finish(operation, &operation->priv.end);
    } else if (!is_recorded) {
        dv_claim_operation_finish(operation, NULL);
    } else if (operation->priv.kind == DV_CLAIM_PREPARE) {
        dv_claim_prepare_recorded(operation);
    } else {
        dv_claim_unprepare_recorded(operation);
    }
}

void dv_claim_operation_save(struct dv_claim_operation *operation, enum dv_claim_step step)
{
    operation->priv.step = step;
    operation->priv.save.done = on_saved;
    dv_claims_save(operation->priv.claims, &operation->priv.save);
    dv_claims_tell_changed(operation->priv.claims);
}

/* ---- calling ---- */

/* Says whom it waits for: the first that has not answered. */
static void on_slow(struct dv_timer *timer)
{
    struct dv_claim_operation *operation =
        DV_CONTAINER(timer, struct dv_claim_operation, priv.timer);
    struct dv_claims *claims = operation->priv.claims;
    struct dv_claim_batch *batch = operation->priv.batches;
    uint64_t asked_ns;
    char since[DV_TIME_BYTES];

    while (batch < operation->priv.batches + operation->priv.n_batches && !batch->is_calling)
        batch++;
    if (batch == operation->priv.batches + operation->priv.n_batches)
        return; /* it is over, and about to be told */
    asked_ns = dv_clock_wall_ns(dv_loop_clock(claims->loop)) -
               (dv_loop_now_ns(claims->loop) - batch->asked_ns);
    dv_time_print(asked_ns, since);
    (void)snprintf(operation->awaited, sizeof(operation->awaited),
                   "driver %.*s to answer %.*s since %s", DV_FMT(batch->driver),
                   DV_FMT(dv_claim_batch_method(batch)), since);
    operation->is_brief = true;
    dv_claims_tell_changed(claims);
}

static void called(struct dv_claim_operation *operation)
{
    dv_timer_cancel(&operation->priv.timer);
    operation->awaited[0] = '\0';
    operation->is_brief = false;
    if (operation->priv.kind == DV_CLAIM_PREPARE)
        dv_claim_prepare_called(operation);
    else
        dv_claim_unprepare_called(operation);
}

void dv_claim_batch_ended(struct dv_claim_batch *batch)
{
    struct dv_claim_operation *operation = batch->operation;

    if (--operation->priv.n_calling == 0)
        called(operation);
}

static struct dv_claim_batch *batch_of(struct dv_claim_operation *operation, dv_str driver)
{
    struct dv_claim_batch *batch;

    for (size_t i = 0; i < operation->priv.n_batches; i++)
        if (dv_str_eq(operation->priv.batches[i].driver, driver))
            return &operation->priv.batches[i];
    batch = &operation->priv.batches[operation->priv.n_batches++];
    batch->operation = operation;
    batch->driver = driver;
    batch->claims = DV_NEW_ARRAY(operation->priv.arena, struct dv_claim *, operation->priv.n_jobs);
    return batch;
}

/* Once, though the pod may have it under two names. */
static void add_claim(struct dv_claim_batch *batch, struct dv_claim *claim)
{
    for (size_t i = 0; i < batch->n_claims; i++)
        if (batch->claims[i] == claim)
            return;
    batch->claims[batch->n_claims++] = claim;
}

void dv_claim_operation_call(struct dv_claim_operation *operation)
{
    size_t n_max = 0;

    for (size_t i = 0; i < operation->priv.n_jobs; i++)
        n_max +=
            operation->priv.jobs[i].claim ? operation->priv.jobs[i].claim->record.n_drivers : 0;
    operation->priv.batches = DV_NEW_ARRAY(operation->priv.arena, struct dv_claim_batch, n_max);
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim *claim = operation->priv.jobs[i].claim;

        for (size_t k = 0; claim && k < claim->record.n_drivers; k++)
            add_claim(batch_of(operation, claim->record.drivers[k].name), claim);
    }
    operation->priv.step = DV_CLAIM_STEP_CALL;
    operation->priv.n_calling = operation->priv.n_batches;
    operation->has_asked = operation->priv.n_batches > 0;
    dv_timer_start(&operation->priv.timer, operation->priv.claims->loop,
                   dv_loop_now_ms(operation->priv.claims->loop) + DV_CLAIM_SLOW_MS, on_slow);
    dv_claims_tell_changed(operation->priv.claims);
    for (size_t i = 0; i < operation->priv.n_batches; i++)
        dv_claim_batch_start(&operation->priv.batches[i]);
    if (operation->priv.n_batches == 0)
        called(operation);
}

/* ---- what can be seen ---- */

void dv_claims_each_call(const struct dv_claims *claims,
                         void (*see)(void *ctx, const struct dv_claim_call *call), void *ctx)
{
    struct dv_link *link;

    DV_LIST_EACH (&claims->operations, link) {
        const struct dv_claim_operation *operation =
            DV_CONTAINER(link, struct dv_claim_operation, priv.link);

        for (size_t i = 0;
             operation->priv.step == DV_CLAIM_STEP_CALL && i < operation->priv.n_batches; i++) {
            const struct dv_claim_batch *batch = &operation->priv.batches[i];
            const struct dv_claim_call call = {
                .driver = batch->driver,
                .endpoint = batch->is_calling ? batch->instance->base.endpoint : DV_STR(""),
                .method = batch->is_calling ? dv_claim_batch_method(batch) : DV_STR(""),
                .pod_uid = operation->priv.pod_uid,
                .claims = batch->claims,
                .n_claims = batch->n_claims,
                .since_ns = batch->asked_ns,
            };

            if (batch->is_calling)
                see(ctx, &call);
        }
    }
}

static void see_waits(const struct dv_claim_operation *operation,
                      void (*see)(void *ctx, const struct dv_claim_wait *wait), void *ctx)
{
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        const struct dv_claim_job *job = &operation->priv.jobs[i];
        const struct dv_claim_wait wait = {
            .space = job->space,
            .name = job->name,
            .uid = job->object ? job->object->meta->uid : job->uid,
            .pod_uid = operation->priv.pod_uid,
            .awaited = dv_str_from_c(operation->awaited),
            .since_ns = operation->priv.start_ns,
        };

        see(ctx, &wait);
    }
}

void dv_claims_each_wait(const struct dv_claims *claims,
                         void (*see)(void *ctx, const struct dv_claim_wait *wait), void *ctx)
{
    struct dv_link *link;

    DV_LIST_EACH (&claims->operations, link) {
        const struct dv_claim_operation *operation =
            DV_CONTAINER(link, struct dv_claim_operation, priv.link);

        if (operation->priv.step == DV_CLAIM_STEP_WAIT && operation->priv.kind == DV_CLAIM_PREPARE)
            see_waits(operation, see, ctx);
    }
}

/* ---- the end ---- */

static void tell_ended(const struct dv_claim_operation *operation, bool is_error)
{
    const struct dv_claims *claims = operation->priv.claims;

    if (claims->options.operation_ended && !operation->priv.is_chore &&
        operation->priv.kind != DV_CLAIM_RELEASE)
        claims->options.operation_ended(
            claims->options.ctx,
            operation->priv.kind == DV_CLAIM_PREPARE ? "PrepareResources" : "UnprepareResources",
            is_error, dv_loop_now_ns(claims->loop) - operation->priv.start_ns);
}

void dv_claim_operation_finish(struct dv_claim_operation *operation, const struct dv_err *err)
{
    static const char *const names[] = {
        [DV_CLAIM_PREPARE] = "prepare dynamic resources",
        [DV_CLAIM_UNPREPARE] = "unprepare dynamic resources",
        [DV_CLAIM_RELEASE] = "release",
    };
    struct dv_claims *claims = operation->priv.claims;
    struct dv_err reason;

    if (err) {
        reason = *err;
        (void)dv_wrap(&reason, "%s", names[operation->priv.kind]);
    }
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        dv_claim_operation_let_go(&operation->priv.jobs[i]);
        dv_object_unref(operation->priv.jobs[i].object);
    }
    for (size_t i = 0; i < operation->priv.n_batches; i++)
        dv_claim_batch_fini(&operation->priv.batches[i]);
    dv_timer_cancel(&operation->priv.timer);
    dv_task_cancel(&operation->priv.task);
    dv_link_remove(&operation->priv.waiting);
    dv_link_remove(&operation->priv.link);
    dv_arena_free(operation->priv.arena);
    operation->priv.arena = NULL;
    operation->priv.step = DV_CLAIM_STEP_OVER;
    tell_ended(operation, err != NULL);
    dv_claims_save_later(claims); /* what changed though it failed */
    dv_claims_tell_changed(claims);
    dv_claims_check_closed(claims);
    operation->done(operation, err ? &reason : NULL); /* last: it may free the operation */
}

void dv_claims_cancel(struct dv_claim_operation *operation)
{
    if (!operation->priv.arena || operation->priv.end.code != DV_OK ||
        operation->priv.step == DV_CLAIM_STEP_STORE)
        return; /* over, or decided */
    (void)dv_fail(&operation->priv.end, DV_CANCELLED, "cancelled");
    switch (operation->priv.step) {
    case DV_CLAIM_STEP_WAIT:
        dv_link_remove(&operation->priv.waiting);
        dv_claim_operation_start(operation);
        break;
    case DV_CLAIM_STEP_FETCH:
        for (size_t i = 0; i < operation->priv.n_jobs; i++)
            if (operation->priv.jobs[i].request.done)
                dv_request_cancel(operation->priv.claims->options.cluster,
                                  &operation->priv.jobs[i].request);
        break;
    case DV_CLAIM_STEP_CALL:
        for (size_t i = 0; i < operation->priv.n_batches; i++)
            dv_claim_batch_cancel(&operation->priv.batches[i]);
        break;
    case DV_CLAIM_STEP_BEGIN:
    case DV_CLAIM_STEP_RECORD:
    case DV_CLAIM_STEP_STORE:
    case DV_CLAIM_STEP_OVER:
        break; /* seen when it goes on */
    }
}

/* claim_operation.c - what all operations have in common: they begin, wait, save, call drivers, are
 * cancelled, and end once. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "claim/manager/claims.h"
#include "resource/resource.h"

static void go_on(struct dv_claim_op *op)
{
    bool is_first = op->priv.step == DV_CLAIM_STEP_BEGIN;

    op->awaited[0] = '\0';
    op->is_brief = false;
    dv_timer_cancel(&op->priv.timer);
    if (op->priv.kind == DV_CLAIM_OP_PREPARE)
        (is_first ? dv_claim_prepare_begin : dv_claim_prepare_look)(op);
    else
        (is_first ? dv_claim_unprepare_begin : dv_claim_unprepare_look)(op);
}

static void on_task(struct dv_task *task)
{
    struct dv_claim_op *op = DV_CONTAINER(task, struct dv_claim_op, priv.task);

    if (op->priv.end.code != DV_OK)
        dv_claim_op_finish(op, &op->priv.end);
    else
        go_on(op);
}

void dv_claim_op_begin(struct dv_claims *claims, struct dv_claim_op *op, enum dv_claim_op_kind kind)
{
    assert(op->done);
    memset(&op->priv, 0, sizeof(op->priv));
    op->awaited[0] = '\0';
    op->is_brief = op->has_asked = false;
    op->priv.claims = claims;
    op->priv.kind = kind;
    op->priv.arena = dv_arena_new();
    op->priv.start_ns = dv_loop_now_ns(claims->loop);
    op->priv.wait_until_ms =
        dv_loop_now_ms(claims->loop) + (claims->options.is_strict ? 0 : op->wait_ms);
    if (op->priv.wait_until_ms < op->wait_ms && !claims->options.is_strict)
        op->priv.wait_until_ms = UINT64_MAX;
    dv_list_push(&claims->ops, &op->priv.link);
    if (claims->is_closing)
        (void)dv_fail(&op->priv.end, DV_CANCELLED, "davitd is stopping");
}

void dv_claim_op_set_jobs(struct dv_claim_op *op, size_t n_jobs)
{
    op->priv.jobs = DV_NEW_ARRAY(op->priv.arena, struct dv_claim_job, n_jobs);
    op->priv.n_jobs = n_jobs;
    for (size_t i = 0; i < n_jobs; i++)
        op->priv.jobs[i].op = op;
}

void dv_claim_op_start(struct dv_claim_op *op)
{
    dv_task_post(&op->priv.task, op->priv.claims->loop, on_task);
}

/* ---- waiting ---- */

bool dv_claim_op_may_wait(const struct dv_claim_op *op)
{
    return dv_loop_now_ms(op->priv.claims->loop) < op->priv.wait_until_ms;
}

static void on_timer(struct dv_timer *timer)
{
    struct dv_claim_op *op = DV_CONTAINER(timer, struct dv_claim_op, priv.timer);

    dv_link_remove(&op->priv.waiting);
    dv_claim_op_start(op);
}

void dv_claim_op_wait(struct dv_claim_op *op, struct dv_claim *claim)
{
    op->priv.step = DV_CLAIM_STEP_WAIT;
    op->priv.has_waited = true;
    op->is_brief = claim != NULL;
    dv_list_push(claim ? dv_claim_waiters(claim) : &op->priv.claims->waiting, &op->priv.waiting);
    if (dv_claim_op_may_wait(op) && op->priv.wait_until_ms != UINT64_MAX)
        dv_timer_start(&op->priv.timer, op->priv.claims->loop, op->priv.wait_until_ms, on_timer);
    dv_claims_tell_changed(op->priv.claims);
}

static void wake_all(struct dv_list *list)
{
    struct dv_link *link;

    while ((link = dv_list_shift(list)) != NULL)
        dv_claim_op_start(DV_CONTAINER(link, struct dv_claim_op, priv.waiting));
}

void dv_claims_wake(struct dv_claims *claims)
{
    wake_all(&claims->waiting);
}

bool dv_claim_op_need_driver(struct dv_claim_op *op, dv_str driver)
{
    struct dv_claims *claims = op->priv.claims;
    struct dv_err err;
    const struct dv_dra_instance *instance = dv_dra_choose(claims->drivers, driver, &err);

    if (instance && (instance->is_connected || !dv_claim_op_may_wait(op)))
        return true;
    if (!dv_claim_op_may_wait(op)) {
        dv_claim_op_finish(op, &err);
        return false;
    }
    (void)snprintf(op->awaited, sizeof(op->awaited),
                   instance ? "driver %.*s to answer on %.*s" : "driver %.*s to register%.*s",
                   DV_FMT(driver), DV_FMT(instance ? instance->endpoint : DV_STR("")));
    dv_claim_op_wait(op, NULL);
    return false;
}

/* ---- claims that are ours for a while ---- */

void dv_claim_op_hold(struct dv_claim_job *job, struct dv_claim *claim)
{
    dv_claim_begin_call(claim);
    job->claim = claim;
}

void dv_claim_op_let_go(struct dv_claim_job *job)
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
    struct dv_claim_op *op = DV_CONTAINER(save, struct dv_claim_op, priv.save);
    bool is_recorded = op->priv.step == DV_CLAIM_STEP_RECORD;
    struct dv_err reason;

    if (err) {
        reason = *err;
        (void)dv_wrap(&reason, is_recorded ? "checkpoint ResourceClaim cache"
                                           : "checkpoint ResourceClaim state");
        dv_claim_op_finish(op, &reason);
    } else if (op->priv.end.code != DV_OK) {
        dv_claim_op_finish(op, &op->priv.end);
    } else if (!is_recorded) {
        dv_claim_op_finish(op, NULL);
    } else if (op->priv.kind == DV_CLAIM_OP_PREPARE) {
        dv_claim_prepare_recorded(op);
    } else {
        dv_claim_unprepare_recorded(op);
    }
}

void dv_claim_op_save(struct dv_claim_op *op, enum dv_claim_step step)
{
    op->priv.step = step;
    op->priv.save.done = on_saved;
    dv_claims_save(op->priv.claims, &op->priv.save);
    dv_claims_tell_changed(op->priv.claims);
}

/* ---- calling ---- */

/* Says whom it waits for: the first that has not answered. */
static void on_slow(struct dv_timer *timer)
{
    struct dv_claim_op *op = DV_CONTAINER(timer, struct dv_claim_op, priv.timer);
    struct dv_claims *claims = op->priv.claims;
    struct dv_claim_batch *batch = op->priv.batches;
    uint64_t asked_ns;
    char since[DV_TIME_BYTES];

    while (batch < op->priv.batches + op->priv.n_batches && !batch->is_calling)
        batch++;
    if (batch == op->priv.batches + op->priv.n_batches)
        return; /* it is over, and about to be told */
    asked_ns = dv_clock_wall_ns(dv_loop_clock(claims->loop)) -
               (dv_loop_now_ns(claims->loop) - batch->asked_ns);
    dv_time_print(asked_ns, since);
    (void)snprintf(op->awaited, sizeof(op->awaited), "driver %.*s to answer %.*s since %s",
                   DV_FMT(batch->driver), DV_FMT(dv_claim_batch_method(batch)), since);
    op->is_brief = true;
    dv_claims_tell_changed(claims);
}

static void called(struct dv_claim_op *op)
{
    dv_timer_cancel(&op->priv.timer);
    op->awaited[0] = '\0';
    op->is_brief = false;
    if (op->priv.kind == DV_CLAIM_OP_PREPARE)
        dv_claim_prepare_called(op);
    else
        dv_claim_unprepare_called(op);
}

void dv_claim_batch_ended(struct dv_claim_batch *batch)
{
    struct dv_claim_op *op = batch->op;

    if (--op->priv.n_calling == 0)
        called(op);
}

static struct dv_claim_batch *batch_of(struct dv_claim_op *op, dv_str driver)
{
    struct dv_claim_batch *batch;

    for (size_t i = 0; i < op->priv.n_batches; i++)
        if (dv_str_eq(op->priv.batches[i].driver, driver))
            return &op->priv.batches[i];
    batch = &op->priv.batches[op->priv.n_batches++];
    batch->op = op;
    batch->driver = driver;
    batch->claims = DV_NEW_ARRAY(op->priv.arena, struct dv_claim *, op->priv.n_jobs);
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

void dv_claim_op_call(struct dv_claim_op *op)
{
    size_t n_max = 0;

    for (size_t i = 0; i < op->priv.n_jobs; i++)
        n_max += op->priv.jobs[i].claim ? op->priv.jobs[i].claim->record.n_drivers : 0;
    op->priv.batches = DV_NEW_ARRAY(op->priv.arena, struct dv_claim_batch, n_max);
    for (size_t i = 0; i < op->priv.n_jobs; i++) {
        struct dv_claim *claim = op->priv.jobs[i].claim;

        for (size_t k = 0; claim && k < claim->record.n_drivers; k++)
            add_claim(batch_of(op, claim->record.drivers[k].name), claim);
    }
    op->priv.step = DV_CLAIM_STEP_CALL;
    op->priv.n_calling = op->priv.n_batches;
    op->has_asked = op->priv.n_batches > 0;
    dv_timer_start(&op->priv.timer, op->priv.claims->loop,
                   dv_loop_now_ms(op->priv.claims->loop) + DV_CLAIM_SLOW_MS, on_slow);
    dv_claims_tell_changed(op->priv.claims);
    for (size_t i = 0; i < op->priv.n_batches; i++)
        dv_claim_batch_start(&op->priv.batches[i]);
    if (op->priv.n_batches == 0)
        called(op);
}

/* ---- what can be seen ---- */

void dv_claims_each_call(const struct dv_claims *claims,
                         void (*see)(void *ctx, const struct dv_claim_call *call), void *ctx)
{
    struct dv_link *link;

    DV_LIST_EACH (&claims->ops, link) {
        const struct dv_claim_op *op = DV_CONTAINER(link, struct dv_claim_op, priv.link);

        for (size_t i = 0; op->priv.step == DV_CLAIM_STEP_CALL && i < op->priv.n_batches; i++) {
            const struct dv_claim_batch *batch = &op->priv.batches[i];
            const struct dv_claim_call call = {
                .driver = batch->driver,
                .endpoint = batch->is_calling ? batch->instance->base.endpoint : DV_STR(""),
                .method = batch->is_calling ? dv_claim_batch_method(batch) : DV_STR(""),
                .pod_uid = op->priv.pod_uid,
                .claims = batch->claims,
                .n_claims = batch->n_claims,
                .since_ns = batch->asked_ns,
            };

            if (batch->is_calling)
                see(ctx, &call);
        }
    }
}

static void see_waits(const struct dv_claim_op *op,
                      void (*see)(void *ctx, const struct dv_claim_wait *wait), void *ctx)
{
    for (size_t i = 0; i < op->priv.n_jobs; i++) {
        const struct dv_claim_job *job = &op->priv.jobs[i];
        const struct dv_claim_wait wait = {
            .space = job->space,
            .name = job->name,
            .uid = job->object ? job->object->meta->uid : job->uid,
            .pod_uid = op->priv.pod_uid,
            .awaited = dv_str_from_c(op->awaited),
            .since_ns = op->priv.start_ns,
        };

        see(ctx, &wait);
    }
}

void dv_claims_each_wait(const struct dv_claims *claims,
                         void (*see)(void *ctx, const struct dv_claim_wait *wait), void *ctx)
{
    struct dv_link *link;

    DV_LIST_EACH (&claims->ops, link) {
        const struct dv_claim_op *op = DV_CONTAINER(link, struct dv_claim_op, priv.link);

        if (op->priv.step == DV_CLAIM_STEP_WAIT && op->priv.kind == DV_CLAIM_OP_PREPARE)
            see_waits(op, see, ctx);
    }
}

/* ---- the end ---- */

static void tell_ended(const struct dv_claim_op *op, bool is_error)
{
    const struct dv_claims *claims = op->priv.claims;

    if (claims->options.operation_ended && !op->priv.is_chore &&
        op->priv.kind != DV_CLAIM_OP_RELEASE)
        claims->options.operation_ended(claims->options.ctx,
                                        op->priv.kind == DV_CLAIM_OP_PREPARE ? "PrepareResources"
                                                                             : "UnprepareResources",
                                        is_error, dv_loop_now_ns(claims->loop) - op->priv.start_ns);
}

void dv_claim_op_finish(struct dv_claim_op *op, const struct dv_err *err)
{
    static const char *const names[] = {
        [DV_CLAIM_OP_PREPARE] = "prepare dynamic resources",
        [DV_CLAIM_OP_UNPREPARE] = "unprepare dynamic resources",
        [DV_CLAIM_OP_RELEASE] = "release",
    };
    struct dv_claims *claims = op->priv.claims;
    struct dv_err reason;

    if (err) {
        reason = *err;
        (void)dv_wrap(&reason, "%s", names[op->priv.kind]);
    }
    for (size_t i = 0; i < op->priv.n_jobs; i++) {
        dv_claim_op_let_go(&op->priv.jobs[i]);
        dv_object_unref(op->priv.jobs[i].object);
    }
    for (size_t i = 0; i < op->priv.n_batches; i++)
        dv_claim_batch_fini(&op->priv.batches[i]);
    dv_timer_cancel(&op->priv.timer);
    dv_task_cancel(&op->priv.task);
    dv_link_remove(&op->priv.waiting);
    dv_link_remove(&op->priv.link);
    dv_arena_free(op->priv.arena);
    op->priv.arena = NULL;
    op->priv.step = DV_CLAIM_STEP_OVER;
    tell_ended(op, err != NULL);
    dv_claims_save_later(claims); /* what changed though it failed */
    dv_claims_tell_changed(claims);
    dv_claims_check_closed(claims);
    op->done(op, err ? &reason : NULL); /* last: it may free the op */
}

void dv_claims_cancel(struct dv_claim_op *op)
{
    if (!op->priv.arena || op->priv.end.code != DV_OK || op->priv.step == DV_CLAIM_STEP_STORE)
        return; /* over, or decided */
    (void)dv_fail(&op->priv.end, DV_CANCELLED, "cancelled");
    switch (op->priv.step) {
    case DV_CLAIM_STEP_WAIT:
        dv_link_remove(&op->priv.waiting);
        dv_claim_op_start(op);
        break;
    case DV_CLAIM_STEP_FETCH:
        for (size_t i = 0; i < op->priv.n_jobs; i++)
            if (op->priv.jobs[i].request.done)
                dv_request_cancel(op->priv.claims->options.cluster, &op->priv.jobs[i].request);
        break;
    case DV_CLAIM_STEP_CALL:
        for (size_t i = 0; i < op->priv.n_batches; i++)
            dv_claim_batch_cancel(&op->priv.batches[i]);
        break;
    case DV_CLAIM_STEP_BEGIN:
    case DV_CLAIM_STEP_RECORD:
    case DV_CLAIM_STEP_STORE:
    case DV_CLAIM_STEP_OVER:
        break; /* seen when it goes on */
    }
}

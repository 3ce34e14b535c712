/* claim_wait.c - operations wait for drivers that are not there, and for each other's claims. */
#include <stdio.h>

#include "claim/manager/claim_manager_state.h"
#include "resource/resource.h"

bool dv_claim_may_wait(const struct dv_claim_operation *operation)
{
    return dv_loop_now_ms(operation->priv.claims->loop) < operation->priv.wait_until_ms;
}

void dv_claim_stop_waiting(struct dv_claim_operation *operation)
{
    dv_link_remove(&operation->priv.waiting);
    dv_claim_operation_start(operation);
}

static void on_timer(struct dv_timer *timer)
{
    dv_claim_stop_waiting(DV_CONTAINER(timer, struct dv_claim_operation, priv.timer));
}

enum dv_claim_progress dv_claim_wait(struct dv_claim_operation *operation, struct dv_claim *claim)
{
    struct dv_claim_manager *claims = operation->priv.claims;

    operation->priv.has_waited = true;
    operation->is_brief = claim != NULL;
    dv_list_push(claim ? dv_claim_waiters(claim) : &claims->waiting, &operation->priv.waiting);
    if (dv_claim_may_wait(operation) && operation->priv.wait_until_ms != UINT64_MAX)
        dv_timer_start(&operation->priv.timer, claims->loop, operation->priv.wait_until_ms,
                       on_timer);
    dv_claim_manager_tell_changed(claims);
    return DV_CLAIM_STEP_GOES_ON;
}

static void wake_all(struct dv_list *list)
{
    struct dv_link *link;

    while ((link = dv_list_shift(list)) != NULL)
        dv_claim_operation_start(DV_CONTAINER(link, struct dv_claim_operation, priv.waiting));
}

void dv_claim_manager_wake(struct dv_claim_manager *claims)
{
    wake_all(&claims->waiting);
}

enum dv_claim_progress dv_claim_await_driver(struct dv_claim_operation *operation, dv_str driver,
                                             struct dv_err *err)
{
    const struct dv_dra_instance *instance =
        dv_dra_choose(operation->priv.claims->drivers, driver, err);
    bool may_wait = dv_claim_may_wait(operation);

    if (instance && (instance->is_connected || !may_wait))
        return DV_CLAIM_STEP_IS_DONE;
    if (!may_wait)
        return DV_CLAIM_STEP_FAILED;
    (void)snprintf(operation->awaited, sizeof(operation->awaited),
                   instance ? "driver %.*s to answer on %.*s" : "driver %.*s to register%.*s",
                   DV_FMT(driver), DV_FMT(instance ? instance->endpoint : DV_STR("")));
    return dv_claim_wait(operation, NULL);
}

/* ---- claims that are ours for a while ---- */

void dv_claim_hold(struct dv_claim_job *job, struct dv_claim *claim)
{
    dv_claim_begin_hold(claim);
    job->claim = claim;
}

void dv_claim_let_go(struct dv_claim_job *job)
{
    struct dv_claim *claim = job->claim;

    if (!claim)
        return;
    job->claim = NULL;
    dv_claim_end_hold(claim);
    if (claim->n_holds == 0)
        wake_all(dv_claim_waiters(claim));
}

/* ---- what can be seen ---- */

static void see_waits(const struct dv_claim_operation *operation,
                      void (*see)(void *ctx, const struct dv_claim_wait *wait), void *ctx)
{
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        const struct dv_claim_job *job = &operation->priv.jobs[i];
        const struct dv_claim_wait wait = {
            .namespace = job->namespace,
            .name = job->name,
            .uid = job->object ? job->object->meta->uid : job->uid,
            .pod_uid = operation->priv.pod_uid,
            .awaited = dv_str_from_c(operation->awaited),
            .since_ns = operation->priv.start_ns,
        };

        see(ctx, &wait);
    }
}

void dv_claim_manager_each_wait(const struct dv_claim_manager *claims,
                                void (*see)(void *ctx, const struct dv_claim_wait *wait), void *ctx)
{
    struct dv_link *link;

    DV_LIST_EACH (&claims->operations, link) {
        const struct dv_claim_operation *operation =
            DV_CONTAINER(link, struct dv_claim_operation, priv.link);

        if (dv_claim_operation_is_waiting(operation) && dv_claim_operation_is_prepare(operation))
            see_waits(operation, see, ctx);
    }
}

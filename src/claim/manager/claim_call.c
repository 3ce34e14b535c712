/* claim_call.c - the drivers of an operation's claims are called at the same time, each once. */
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/vec.h"
#include "claim/manager/claim_manager_state.h"

/* Says whom the operation waits for: the first driver that has not answered. */
static void on_slow(struct dv_timer *timer)
{
    struct dv_claim_operation *operation =
        DV_CONTAINER(timer, struct dv_claim_operation, priv.timer);
    struct dv_claim_manager *claims = operation->priv.claims;
    struct dv_claim_batch *batch = operation->priv.batches;
    struct dv_claim_batch *end = batch + operation->priv.n_batches;
    uint64_t asked_ns;
    char since[DV_TIME_BYTES];

    while (batch < end && !batch->is_calling)
        batch++;
    if (batch == end)
        return; /* all drivers have answered, and the step is about to end */
    asked_ns = dv_clock_wall_ns(dv_loop_clock(claims->loop)) -
               (dv_loop_now_ns(claims->loop) - batch->asked_ns);
    dv_time_print(asked_ns, since);
    (void)snprintf(operation->awaited, sizeof(operation->awaited),
                   "driver %.*s to answer %.*s since %s", DV_FMT(batch->driver),
                   DV_FMT(dv_claim_batch_method(batch)), since);
    operation->is_brief = true;
    dv_claim_manager_tell_changed(claims);
}

void dv_claim_batch_ended(struct dv_claim_batch *batch)
{
    struct dv_claim_operation *operation = batch->operation;

    if (--operation->priv.n_calling == 0)
        dv_claim_step_ended(operation, NULL); /* each batch has its own error */
}

/* Finds the claims that are held, each once though the pod may have it under two names. */
static size_t held_claims(const struct dv_claim_operation *operation, struct dv_claim ***held)
{
    struct dv_claim **v =
        DV_NEW_ARRAY(operation->priv.arena, struct dv_claim *, operation->priv.n_jobs);
    DV_CLEANUP(dv_map_fini) struct dv_map seen = {0};
    size_t n = 0;

    dv_map_init(&seen);
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim *claim = operation->priv.jobs[i].claim;

        if (claim && !dv_map_set(&seen, claim->record.uid, claim))
            v[n++] = claim;
    }
    *held = v;
    return n;
}

/* Makes a batch for each driver of the claims, in the order in which they come. It has a copy of
 * the name, since a claim may be forgotten before the operation ends. */
static void make_batches(struct dv_claim_operation *operation, struct dv_claim *const *claims,
                         size_t n_claims)
{
    struct dv_map *by_driver = &operation->priv.by_driver;
    const struct dv_map_entry *entry;

    for (size_t i = 0; i < n_claims; i++)
        for (size_t k = 0; k < claims[i]->record.n_drivers; k++) {
            dv_str driver = claims[i]->record.drivers[k].name;

            if (!dv_map_get(by_driver, driver))
                (void)dv_map_set(by_driver, dv_str_copy(driver, operation->priv.arena), operation);
        }
    operation->priv.batches =
        DV_NEW_ARRAY(operation->priv.arena, struct dv_claim_batch, by_driver->n);
    for (size_t at = 0; (entry = dv_map_next(by_driver, &at)) != NULL;) {
        struct dv_claim_batch *batch = &operation->priv.batches[operation->priv.n_batches++];

        batch->operation = operation;
        batch->driver = entry->key;
        (void)dv_map_set(by_driver, entry->key, batch);
    }
}

static void fill_batches(struct dv_claim_operation *operation)
{
    struct dv_claim **claims;
    size_t n_claims = held_claims(operation, &claims);

    make_batches(operation, claims, n_claims);
    for (size_t i = 0; i < n_claims; i++)
        for (size_t k = 0; k < claims[i]->record.n_drivers; k++) {
            struct dv_claim_batch *batch =
                dv_map_get(&operation->priv.by_driver, claims[i]->record.drivers[k].name);

            *dv_vec_add_in(&batch->claims, operation->priv.arena) = claims[i];
        }
}

const struct dv_err *dv_claim_call_failure(const struct dv_claim_operation *operation,
                                           const struct dv_claim *claim)
{
    const struct dv_claim_batch *first = NULL;

    for (size_t i = 0; i < claim->record.n_drivers; i++) {
        const struct dv_claim_batch *batch =
            dv_map_get(&operation->priv.by_driver, claim->record.drivers[i].name);

        if (batch && batch->err.code != DV_OK && (!first || batch < first))
            first = batch;
    }
    return first ? &first->err : NULL;
}

enum dv_claim_progress dv_claim_call_drivers(struct dv_claim_operation *operation,
                                             struct dv_err *err)
{
    struct dv_loop *loop = operation->priv.claims->loop;

    (void)err; /* each batch has its own error */
    fill_batches(operation);
    operation->priv.n_calling = operation->priv.n_batches;
    operation->has_asked = operation->priv.n_batches > 0;
    dv_claim_manager_tell_changed(operation->priv.claims);
    if (operation->priv.n_batches == 0)
        return DV_CLAIM_STEP_IS_DONE;
    dv_timer_start(&operation->priv.timer, loop, dv_loop_now_ms(loop) + DV_CLAIM_SLOW_MS, on_slow);
    for (size_t i = 0; i < operation->priv.n_batches; i++)
        dv_claim_batch_start(&operation->priv.batches[i]);
    return DV_CLAIM_STEP_GOES_ON;
}

void dv_claim_cancel_calls(struct dv_claim_operation *operation)
{
    for (size_t i = 0; i < operation->priv.n_batches; i++)
        dv_claim_batch_cancel(&operation->priv.batches[i]);
}

/* ---- what can be seen ---- */

static void see_calls(const struct dv_claim_operation *operation,
                      void (*see)(void *ctx, const struct dv_claim_call *call), void *ctx)
{
    for (size_t i = 0; i < operation->priv.n_batches; i++) {
        const struct dv_claim_batch *batch = &operation->priv.batches[i];
        struct dv_claim_call call;

        if (!batch->is_calling)
            continue;
        call = (struct dv_claim_call){
            .driver = batch->driver,
            .endpoint = batch->instance->base.endpoint,
            .method = dv_claim_batch_method(batch),
            .pod_uid = operation->priv.pod_uid,
            .claims = batch->claims.v,
            .n_claims = batch->claims.n,
            .since_ns = batch->asked_ns,
        };
        see(ctx, &call);
    }
}

void dv_claim_manager_each_call(const struct dv_claim_manager *claims,
                                void (*see)(void *ctx, const struct dv_claim_call *call), void *ctx)
{
    struct dv_link *link;

    DV_LIST_EACH (&claims->operations, link) {
        see_calls(DV_CONTAINER(link, struct dv_claim_operation, priv.link), see, ctx);
    }
}

/* saver.c - what has changed goes to the disk: together, in order, again until it is there. */
#include "base/arena.h"
#include "base/log.h"
#include "base/num.h"
#include "claim/inside.h"

/* A full disk is often emptied within minutes. */
#define RETRY_FIRST_MS 1000u
#define RETRY_MAX_MS 30000u
#define RETRY_JITTER_PER_MILLE 200u

static void on_save_task(struct dv_task *task);

void dv_claim_saver_init(struct dv_claim_saver *saver)
{
    dv_list_init(&saver->waiting);
    dv_list_init(&saver->flying);
    saver->retry_ms = RETRY_FIRST_MS;
}

void dv_claim_saver_fini(struct dv_claim_saver *saver)
{
    dv_timer_cancel(&saver->retry_timer);
    dv_task_cancel(&saver->task);
    dv_arena_free(saver->arena);
}

bool dv_claim_saver_is_idle(const struct dv_claim_saver *saver)
{
    return !saver->is_flying && dv_list_is_empty(&saver->waiting) &&
           !dv_link_is_in(&saver->task.link);
}

/* Calls and lets go of those that waited for a write. */
static void finish(struct dv_list *list, const struct dv_err *err)
{
    struct dv_list all;
    struct dv_link *link;

    dv_list_init(&all);
    dv_list_move_all(&all, list); /* `done` may save again */
    while ((link = dv_list_shift(&all)) != NULL) {
        struct dv_claim_save *save = DV_CONTAINER(link, struct dv_claim_save, link);

        save->done(save, err);
    }
}

static void on_retry(struct dv_timer *timer)
{
    dv_claims_save_later(DV_CONTAINER(timer, struct dv_claims, saver.retry_timer));
}

static void retry_later(struct dv_claims *claims, const struct dv_err *reason)
{
    struct dv_claim_saver *saver = &claims->saver;
    uint64_t pause_ms = dv_jitter(saver->retry_ms, RETRY_JITTER_PER_MILLE);

    if (saver->err.code == DV_OK)
        dv_log(DV_LOG_ERROR, "claim: cannot save; trying again", DV_F_CODE(reason),
               DV_F_ERR(reason), DV_F_U64("retry_ms", pause_ms));
    saver->err = *reason;
    saver->retry_ms = dv_u64_min(saver->retry_ms * 2, RETRY_MAX_MS);
    if (!claims->is_closing)
        dv_timer_start(&saver->retry_timer, claims->loop, dv_loop_now_ms(claims->loop) + pause_ms,
                       on_retry);
}

static void on_written(struct dv_store_write *write, const struct dv_err *err)
{
    struct dv_claims *claims = DV_CONTAINER(write, struct dv_claims, saver.write);
    struct dv_claim_saver *saver = &claims->saver;
    struct dv_err reason;

    saver->is_flying = false;
    if (err) {
        reason = *err;
        retry_later(claims, &reason);
    } else {
        if (saver->err.code != DV_OK)
            dv_log(DV_LOG_INFO, "claim: the state is saved again");
        (void)dv_succeed(&saver->err);
        saver->retry_ms = RETRY_FIRST_MS;
        dv_arena_free(saver->arena);
        saver->arena = NULL;
        saver->n_changes = 0;
    }
    finish(&saver->flying, err ? &reason : NULL);
    if (!dv_list_is_empty(&saver->waiting))
        dv_claims_save_later(claims);
    dv_claims_check_closed(claims);
}

/* The new writes, behind those that failed before and are not overwritten by them. */
static void gather(struct dv_claims *claims)
{
    struct dv_claim_saver *saver = &claims->saver;
    struct dv_arena *old = saver->arena;
    struct dv_arena *arena = dv_arena_new();
    const struct dv_claim_write *writes;
    size_t n_writes = dv_claim_take_writes(claims->state, arena, &writes);
    struct dv_store_change *changes =
        DV_NEW_ARRAY(arena, struct dv_store_change, n_writes + saver->n_changes);
    struct dv_map newer;
    size_t n = 0;

    dv_map_init(&newer);
    if (saver->n_changes > 0)
        for (size_t i = 0; i < n_writes; i++)
            (void)dv_map_set(&newer, writes[i].key, changes);
    for (size_t i = 0; i < saver->n_changes; i++) {
        struct dv_store_change change = saver->changes[i];

        if (change.kind != DV_STORE_DELETE_PREFIX && dv_map_get(&newer, change.key))
            continue;
        change.key = dv_str_copy(change.key, arena);
        change.value = dv_str_copy(change.value, arena);
        changes[n++] = change;
    }
    dv_map_fini(&newer);
    for (size_t i = 0; i < n_writes; i++) {
        enum dv_store_kind gone = writes[i].is_prefix ? DV_STORE_DELETE_PREFIX : DV_STORE_DELETE;

        changes[n++] = (struct dv_store_change){
            .kind = writes[i].value.n > 0 ? DV_STORE_PUT : gone,
            .space = claims->options.space,
            .key = writes[i].key,
            .value = writes[i].value,
        };
    }
    saver->arena = arena;
    saver->changes = changes;
    saver->n_changes = n;
    dv_arena_free(old); /* all that is still needed of it has been copied */
}

static void on_save_task(struct dv_task *task)
{
    struct dv_claims *claims = DV_CONTAINER(task, struct dv_claims, saver.task);
    struct dv_claim_saver *saver = &claims->saver;

    if (saver->is_flying) {
        dv_claims_check_closed(claims);
        return; /* goes on when that is done */
    }
    dv_timer_cancel(&saver->retry_timer);
    gather(claims);
    dv_list_move_all(&saver->flying, &saver->waiting);
    if (saver->n_changes == 0) {
        finish(&saver->flying, NULL);
        dv_claims_check_closed(claims);
        return;
    }
    saver->is_flying = true;
    saver->write.done = on_written;
    dv_store_write(claims->options.store, &saver->write, saver->changes, saver->n_changes);
}

void dv_claims_save_later(struct dv_claims *claims)
{
    dv_task_post(&claims->saver.task, claims->loop, on_save_task);
}

void dv_claims_save(struct dv_claims *claims, struct dv_claim_save *save)
{
    dv_list_push(&claims->saver.waiting, &save->link);
    dv_claims_save_later(claims);
}

void dv_claims_save_all(struct dv_claims *claims)
{
    dv_claim_rewrite(claims->state);
    dv_claims_save_later(claims);
}

const struct dv_err *dv_claims_store_error(const struct dv_claims *claims)
{
    return claims->saver.err.code == DV_OK ? NULL : &claims->saver.err;
}

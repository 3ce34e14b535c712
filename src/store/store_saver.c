#include "store/store_saver.h"

#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "base/row.h"
#include "base/str.h"

/* The first pause is short, because a full disk is often emptied within minutes. */
#define RETRY_FIRST_MS 1000u
#define RETRY_MAX_MS 30000u
#define RETRY_JITTER_PER_MILLE 200u

static void on_task(struct dv_task *task);

struct dv_store_change dv_store_change_of(uint32_t table, const struct dv_row_change *change)
{
    return (struct dv_store_change){
        .kind = change->value.n > 0 ? DV_STORE_PUT
                : change->is_prefix ? DV_STORE_DELETE_PREFIX
                                    : DV_STORE_DELETE,
        .table = table,
        .key = change->key,
        .value = change->value,
    };
}

void dv_saver_init(struct dv_saver *saver, const struct dv_saver_options *options)
{
    *saver = (struct dv_saver){.options = *options, .retry_ms = RETRY_FIRST_MS};
    dv_list_init(&saver->waiting);
    dv_list_init(&saver->flying);
}

void dv_saver_fini(struct dv_saver *saver)
{
    dv_timer_cancel(&saver->retry_timer);
    dv_task_cancel(&saver->task);
    dv_arena_free(saver->arena);
}

bool dv_saver_is_idle(const struct dv_saver *saver)
{
    return !saver->is_flying && dv_list_is_empty(&saver->waiting) &&
           !dv_link_is_in(&saver->task.link);
}

const struct dv_err *dv_saver_error(const struct dv_saver *saver)
{
    return saver->err.code == DV_OK ? NULL : &saver->err;
}

void dv_saver_later(struct dv_saver *saver)
{
    dv_task_post(&saver->task, saver->options.loop, on_task);
}

void dv_saver_start(struct dv_saver *saver, struct dv_save *save)
{
    if (save->comes_first)
        dv_list_push_front(&saver->waiting, &save->link);
    else
        dv_list_push(&saver->waiting, &save->link);
    dv_saver_later(saver);
}

/* Takes those that waited for a write off the list and calls `done` for each. */
static void finish(struct dv_list *list, const struct dv_err *err)
{
    struct dv_list all;
    struct dv_link *link;

    dv_list_init(&all);
    dv_list_move_all(&all, list); /* moved first, because `done` may save again */
    while ((link = dv_list_shift(&all)) != NULL) {
        struct dv_save *save = DV_CONTAINER(link, struct dv_save, link);

        save->done(save, err);
    }
}

static void on_retry(struct dv_timer *timer)
{
    dv_saver_later(DV_CONTAINER(timer, struct dv_saver, retry_timer));
}

static void retry_later(struct dv_saver *saver, const struct dv_err *reason)
{
    struct dv_loop *loop = saver->options.loop;
    uint64_t pause_ms = dv_jitter(saver->retry_ms, RETRY_JITTER_PER_MILLE);

    /* Only the first of several failures in a row is logged: a full disk would fill the log. */
    if (saver->err.code == DV_OK)
        dv_log(DV_LOG_ERROR, "store: cannot save; trying again",
               DV_F_C("state", saver->options.what), DV_F_CODE(reason), DV_F_ERR(reason),
               DV_F_U64("retry_ms", pause_ms));
    saver->err = *reason;
    saver->retry_ms = dv_u64_min(saver->retry_ms * 2, RETRY_MAX_MS);
    if (!saver->is_closing)
        dv_timer_start(&saver->retry_timer, loop, dv_loop_now_ms(loop) + pause_ms, on_retry);
}

static void end_failure(struct dv_saver *saver)
{
    if (saver->err.code != DV_OK)
        dv_log(DV_LOG_INFO, "store: the state is saved again",
               DV_F_C("state", saver->options.what));
    (void)dv_succeed(&saver->err);
    saver->retry_ms = RETRY_FIRST_MS;
}

static void on_written(struct dv_store_write *write, const struct dv_err *err)
{
    struct dv_saver *saver = DV_CONTAINER(write, struct dv_saver, write);
    struct dv_err reason;

    saver->is_flying = false;
    if (err) {
        reason = *err;
        (void)dv_wrap(&reason, "save the state of %s", saver->options.what);
        retry_later(saver, &reason);
    } else {
        end_failure(saver);
        dv_arena_free(saver->arena);
        saver->arena = NULL;
        saver->n_changes = 0;
    }
    finish(&saver->flying, err ? &reason : NULL);
    if (!dv_list_is_empty(&saver->waiting))
        dv_saver_later(saver);
    saver->options.rested(saver->options.ctx); /* comes last, because it may free the saver */
}

/* Gathers the new rows, and before them the rows of a failed write that no new row overwrites. */
static void gather(struct dv_saver *saver)
{
    struct dv_arena *old = saver->arena;
    struct dv_arena *arena = dv_arena_new();
    const struct dv_row_change *fresh;
    size_t n_fresh = saver->options.take(saver->options.ctx, arena, &fresh);
    struct dv_store_change *changes =
        DV_NEW_ARRAY(arena, struct dv_store_change, n_fresh + saver->n_changes);
    struct dv_map newer;
    size_t n = 0;

    dv_map_init(&newer);
    if (saver->n_changes > 0)
        for (size_t i = 0; i < n_fresh; i++)
            (void)dv_map_set(&newer, fresh[i].key, changes);
    for (size_t i = 0; i < saver->n_changes; i++) {
        struct dv_store_change change = saver->changes[i];

        /* A newer change of the same key makes this one needless. The deletion of a prefix is kept,
         * because its key stands for many rows. */
        if (change.kind != DV_STORE_DELETE_PREFIX && dv_map_get(&newer, change.key))
            continue;
        change.key = dv_str_copy(change.key, arena);
        change.value = dv_str_copy(change.value, arena);
        changes[n++] = change;
    }
    dv_map_fini(&newer);
    for (size_t i = 0; i < n_fresh; i++)
        changes[n++] = dv_store_change_of(saver->options.table, &fresh[i]);
    saver->arena = arena;
    saver->changes = changes;
    saver->n_changes = n;
    dv_arena_free(old); /* what is still needed of it has been copied */
}

/* Adds the extra changes of the saves that are written now, after the state's own rows. Returns the
 * number of all changes. */
static size_t add_extra(struct dv_saver *saver)
{
    size_t n = saver->n_changes;
    size_t n_extra = 0;
    struct dv_store_change *all;
    struct dv_link *link;

    DV_LIST_EACH (&saver->flying, link) {
        n_extra += DV_CONTAINER(link, struct dv_save, link)->n_extra;
    }
    if (n_extra == 0)
        return n;
    all = DV_NEW_ARRAY(saver->arena, struct dv_store_change, n + n_extra);
    if (n > 0)
        memcpy(all, saver->changes, n * sizeof(all[0]));
    DV_LIST_EACH (&saver->flying, link) {
        const struct dv_save *save = DV_CONTAINER(link, struct dv_save, link);

        for (size_t i = 0; i < save->n_extra; i++)
            all[n++] = save->extra[i];
    }
    saver->changes = all;
    return n;
}

static void prepare(const struct dv_list *waiting)
{
    struct dv_link *link;

    DV_LIST_EACH (waiting, link) {
        struct dv_save *save = DV_CONTAINER(link, struct dv_save, link);

        if (save->prepare)
            save->prepare(save);
    }
}

static void on_task(struct dv_task *task)
{
    struct dv_saver *saver = DV_CONTAINER(task, struct dv_saver, task);
    size_t n;

    if (saver->is_flying) {
        saver->options.rested(saver->options.ctx);
        return; /* the write that is under way goes on with it */
    }
    dv_timer_cancel(&saver->retry_timer);
    prepare(&saver->waiting);
    gather(saver);
    dv_list_move_all(&saver->flying, &saver->waiting);
    n = add_extra(saver);
    if (n == 0) { /* only extra changes had failed, and those who added them have been told */
        end_failure(saver);
        finish(&saver->flying, NULL);
        saver->options.rested(saver->options.ctx);
        return;
    }
    saver->is_flying = true;
    saver->write.done = on_written;
    dv_store_write(saver->options.store, &saver->write, saver->changes, n);
}

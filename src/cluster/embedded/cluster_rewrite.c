/* cluster_rewrite.c - a store that lost what it had gets everything again.
 *
 * Each object is written while its name is held, so that what is written for a request meanwhile
 * is never overtaken by an older state. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/collection.h"
#include "loop/loop.h"

/* How many objects are written at a time: enough to fill a commit. */
#define N_RUNNING_MAX 512u
/* The pauses after a failure grow from one to 30 seconds: a full disk is often emptied within
 * minutes. */
#define RETRY_FIRST_MS 1000u
#define RETRY_MAX_MS 30000u
#define RETRY_JITTER_PER_MILLE 200u

static void go_on(struct dv_embedded *embedded);

static void begin(struct dv_embedded *embedded)
{
    struct dv_rewrite *rewrite = &embedded->rewrite;

    rewrite->has_failed = false;
    rewrite->kind = 0;
    rewrite->n_after = 0;
    go_on(embedded);
}

static void on_retry(struct dv_timer *timer)
{
    begin(DV_CONTAINER(timer, struct dv_embedded, rewrite.timer));
}

static bool run(struct dv_cluster_operation *operation)
{
    return operation->entry->object ? dv_cluster_operation_rewrite(operation)
                                    : dv_cluster_operation_answer(operation, NULL);
}

static void on_written(struct dv_cluster_operation *operation)
{
    struct dv_rewrite *rewrite = &operation->embedded->rewrite;

    rewrite->n_running--;
    if (operation->failure && !rewrite->has_failed) {
        rewrite->has_failed = true;
        dv_engine_report_retry("cannot write all objects anew", operation->failure);
    }
    go_on(operation->embedded);
}

static void end(struct dv_embedded *embedded)
{
    struct dv_rewrite *rewrite = &embedded->rewrite;

    if (rewrite->has_failed && !embedded->is_closing) {
        uint64_t pause_ms = rewrite->pause_ms > 0 ? rewrite->pause_ms : RETRY_FIRST_MS;

        rewrite->pause_ms = dv_u64_min(pause_ms * 2, RETRY_MAX_MS);
        dv_timer_start(&rewrite->timer, embedded->cluster.loop,
                       dv_loop_now_ms(embedded->cluster.loop) +
                           dv_jitter(pause_ms, RETRY_JITTER_PER_MILLE),
                       on_retry);
        return;
    }
    rewrite->is_running = false;
    rewrite->pause_ms = 0;
    if (rewrite->done && !rewrite->has_failed)
        rewrite->done(rewrite->ctx);
}

static void start_one(struct dv_embedded *embedded, const struct dv_entry *entry)
{
    struct dv_rewrite *rewrite = &embedded->rewrite;
    struct dv_cluster_operation *operation = dv_cluster_operation_new(embedded, NULL);
    dv_str key = dv_entry_key(entry);

    rewrite->after = dv_realloc(rewrite->after, key.n);
    memcpy(rewrite->after, key.p, key.n);
    rewrite->n_after = key.n;
    rewrite->n_running++;
    operation->done = on_written;
    dv_cluster_operation_start(operation, entry->collection->kind, dv_entry_namespace(entry),
                               dv_entry_name(entry), run);
}

/* Goes on behind the last object that was begun. Objects that are made meanwhile are written by
 * their own requests. */
static void go_on(struct dv_embedded *embedded)
{
    struct dv_rewrite *rewrite = &embedded->rewrite;
    const struct dv_collection *collection;

    while ((collection = dv_engine_collection_at(embedded, rewrite->kind)) != NULL &&
           !rewrite->has_failed && !embedded->is_closing) {
        struct dv_collection_range range = dv_collection_range_after(
            collection, DV_STR_NONE, (dv_str){rewrite->after, rewrite->n_after});
        struct dv_entry *entry;

        while (rewrite->n_running < N_RUNNING_MAX &&
               (entry = dv_collection_range_next(&range)) != NULL)
            start_one(embedded, entry);
        if (rewrite->n_running >= N_RUNNING_MAX)
            return;
        rewrite->kind++;
        rewrite->n_after = 0;
    }
    if (rewrite->n_running == 0)
        end(embedded);
}

void dv_embedded_rewrite_all(struct dv_embedded *embedded, void (*done)(void *ctx), void *ctx)
{
    struct dv_rewrite *rewrite = &embedded->rewrite;

    rewrite->done = done;
    rewrite->ctx = ctx;
    /* The new store was damaged, too: what has been written is lost, and it begins again. */
    if (rewrite->is_running) {
        rewrite->has_failed = true;
        return;
    }
    rewrite->is_running = true;
    dv_timer_cancel(&rewrite->timer);
    begin(embedded);
}

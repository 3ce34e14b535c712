/* thread.c - the store's thread: takes all that is queued, commits it in one transaction, and hands
 * it back. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "store/store.h"
#include "store/store_batch.h"
#include "store/store_state.h"
#include "store/store_watch.h"

/* While checkpoints fail, the log grows. At this size (128 MiB) writes fail too, with the
 * reason. */
#define WAL_PAGES_MAX 32768u
/* How often the thread checks, when nobody writes, whether somebody has taken the files away. */
#define LOOK_PAUSE_MS 3000u

/* ---- writing ---- */

/* Returns the first bucket whose bound, first << i, is not less than the value. */
static size_t bucket_of(uint64_t value, uint64_t first)
{
    size_t i = 0;

    while (i < DV_STORE_N_BUCKETS - 1 && value > first << i)
        i++;
    return i;
}

static void count_commit(struct dv_store *store, bool is_ok, size_t n_writes, size_t n_changes,
                         uint64_t took_ns)
{
    struct dv_store_stats *stats = &store->stats;

    (void)pthread_mutex_lock(&store->lock); /* a plain mutex cannot fail */
    if (is_ok) {
        stats->n_commits++;
        stats->n_writes += n_writes;
        stats->n_changes += n_changes;
        stats->commits_by_us[bucket_of((took_ns + 999) / 1000, DV_STORE_BUCKET_US(0))]++;
        stats->commits_by_writes[bucket_of(n_writes, DV_STORE_BUCKET_WRITES(0))]++;
    } else {
        stats->n_failed_commits++;
    }
    stats->commit_ns += took_ns;
    stats->wal_bytes = dv_store_db_wal_bytes(&store->db);
    (void)pthread_mutex_unlock(&store->lock);
}

/* Checks that the files still have their names: what is committed to a file that was removed would
 * be lost at the next start. */
static bool check_files(struct dv_store *store, struct dv_err *err)
{
    if (dv_store_watch_check(&store->watch, &store->files, err))
        return true;
    store->db.is_damaged = true;
    return false;
}

/* Notes the commit in the mark. A commit that changed nothing is not in the log, which may be about
 * to begin anew, so it is not noted. */
static bool note_commit(struct dv_store *store, struct dv_err *err)
{
    if (!store->db.has_logged ||
        dv_store_watch_commit(&store->watch, &store->files, store->db.n_frames, err))
        return true;
    store->db.is_damaged = true;
    return false;
}

static bool checkpoint(struct dv_store *store, struct dv_err *err)
{
    uint64_t begin_ns = dv_clock_now_ns(dv_clock_real());
    /* The files are checked before the checkpoint too: writing behind a cut makes the file as long
     * as it was, and hides the cut. */
    bool is_ok = check_files(store, err) && dv_store_db_checkpoint(&store->db, err) &&
                 check_files(store, err);
    uint64_t took_ns = dv_clock_now_ns(dv_clock_real()) - begin_ns;

    if (is_ok && store->db.n_wal_pages == 0)
        dv_store_watch_home(&store->watch, &store->files);
    if (!is_ok)
        dv_store_meet_trouble(store, err, 0);
    /* A checkpoint that failed is tried again when the log has grown by as much once more. */
    store->checkpoint_at = store->db.n_wal_pages + DV_STORE_CHECKPOINT_PAGES;
    (void)pthread_mutex_lock(&store->lock);
    store->stats.n_checkpoints += is_ok;
    store->stats.n_failed_checkpoints += !is_ok;
    store->stats.checkpoint_ns += took_ns;
    store->stats.wal_bytes = dv_store_db_wal_bytes(&store->db);
    (void)pthread_mutex_unlock(&store->lock);
    return is_ok;
}

static bool apply_all(struct dv_store *store, const struct dv_list *group, struct dv_err *err)
{
    struct dv_link *link;

    if (store->db.n_wal_pages > WAL_PAGES_MAX && !checkpoint(store, err))
        return false;
    if (!dv_store_db_begin(&store->db, err))
        return false;
    if (!dv_store_move_pending(store, err)) {
        dv_store_db_rollback(&store->db);
        return false;
    }
    DV_LIST_EACH (group, link) {
        struct dv_store_batch *batch = DV_CONTAINER(link, struct dv_store_batch, link);

        if (!batch->has_failed && !dv_store_db_apply(&store->db, batch, err)) {
            dv_store_db_rollback(&store->db);
            return false;
        }
    }
    if (!dv_store_db_commit(&store->db, err)) {
        store->is_littered = true;
        return false;
    }
    /* Parts of a failed commit stay in the log where the next commit does not write over them. The
     * next start must not take them for commits that were lost, so a new log is begun. */
    if (store->is_littered)
        store->checkpoint_at = 0;
    store->is_littered = false;
    store->pending.n = 0;
    /* The files are checked before anybody is told that the commit succeeded: it may be in a file
     * that has no name, or behind a hole. A check before the commit would find nothing more,
     * because no commit writes to the places that are compared. */
    return check_files(store, err) && note_commit(store, err);
}

/* Commits every batch of the group that has not failed yet, in one transaction. */
static bool commit_group(struct dv_store *store, const struct dv_list *group, struct dv_err *err)
{
    uint64_t begin_ns = dv_clock_now_ns(dv_clock_real());
    size_t n_writes = 0;
    size_t n_changes = 0;
    size_t n_bytes = 0;
    struct dv_link *link;
    bool is_ok;

    DV_LIST_EACH (group, link) {
        struct dv_store_batch *batch = DV_CONTAINER(link, struct dv_store_batch, link);

        n_writes += batch->has_failed ? 0 : batch->n_writes;
        n_changes += batch->has_failed ? 0 : batch->records.n;
        n_bytes += batch->has_failed ? 0 : batch->bytes.n;
    }
    if (n_changes == 0 && store->pending.n == 0)
        return true;
    is_ok = apply_all(store, group, err);
    count_commit(store, is_ok, n_writes, n_changes, dv_clock_now_ns(dv_clock_real()) - begin_ns);
    if (is_ok) {
        dv_store_end_trouble(store);
        return true;
    }
    /* Files that were cut fail in many ways, so the files are checked for the real reason. */
    if (!store->db.is_damaged)
        (void)check_files(store, err);
    (void)dv_wrap(err, "store %s", store->name);
    dv_store_meet_trouble(store, err, n_bytes);
    return false;
}

/* ---- the thread ---- */

static void fail_batch(struct dv_store_batch *batch, const struct dv_err *err)
{
    batch->has_failed = true;
    batch->err = *err;
}

static void fail_all(const struct dv_list *group, const struct dv_err *err)
{
    struct dv_link *link;

    DV_LIST_EACH (group, link)
        fail_batch(DV_CONTAINER(link, struct dv_store_batch, link), err);
}

/* Fails batches that have not failed for another reason before. */
static void fail_rest(const struct dv_list *group, const struct dv_err *err)
{
    struct dv_link *link;

    DV_LIST_EACH (group, link) {
        struct dv_store_batch *batch = DV_CONTAINER(link, struct dv_store_batch, link);

        if (!batch->has_failed)
            fail_batch(batch, err);
    }
}

/* Fails batches whose writers do not know yet that the file was replaced. */
static void fail_stale(struct dv_store *store, const struct dv_list *group)
{
    struct dv_link *link;
    struct dv_err err;

    (void)dv_fail(&err, DV_DATA_LOSS, "store %s: was found damaged, and set aside", store->name);
    DV_LIST_EACH (group, link) {
        struct dv_store_batch *batch = DV_CONTAINER(link, struct dv_store_batch, link);

        if (batch->epoch != store->thread_epoch)
            fail_batch(batch, &err);
    }
}

/* Replaces the damaged file, and tells the loop with the first batch of the group. All of the group
 * fails: what was committed just now is lost with the file, and nobody has been told yet that it
 * succeeded. */
static void replace(struct dv_store *store, const struct dv_list *group, struct dv_err *err)
{
    struct dv_store_batch *first = DV_CONTAINER(dv_list_first(group), struct dv_store_batch, link);
    char *set_aside;

    dv_store_copy_abort(store, err); /* it reads from what is being replaced */
    /* The rows are dropped, because the owner has all of them in memory and writes them again. */
    if (dv_store_recover(store, DV_STORE_DROP_ROWS, &set_aside, err)) {
        free(first->set_aside);
        first->set_aside = set_aside;
    }
    fail_all(group, err);
    if (first->set_aside)
        first->epoch = store->thread_epoch;
}

static void run_group(struct dv_store *store, const struct dv_list *group)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_DATA_LOSS, "store %s: damaged", store->name);
    /* A checkpoint found the damage, or the file could not be replaced yet. */
    if (store->db.is_damaged || !store->db.sql) {
        replace(store, group, &err);
        return;
    }
    fail_stale(store, group);
    if (!commit_group(store, group, &err))
        fail_rest(group, &err);
    if (store->db.is_damaged)
        replace(store, group, &err);
}

static struct timespec after_ms(uint64_t ms)
{
    uint64_t at_ns = dv_clock_now_ns(dv_clock_real()) + ms * 1000000u;

    return (struct timespec){.tv_sec = (time_t)(at_ns / 1000000000u),
                             .tv_nsec = (long)(at_ns % 1000000000u)};
}

enum taken {
    TAKEN_WORK,
    TAKEN_COPY, /* nobody writes, but a copy is to be made */
    TAKEN_TIME, /* nothing came in time: check the disk and the files */
    TAKEN_END,  /* the store is stopping */
};

static bool is_copying(const struct dv_store *store)
{
    return store->copier.copy || !dv_list_is_empty(&store->copies);
}

static enum taken take(struct dv_store *store, struct dv_list *group)
{
    struct timespec until = after_ms(store->is_troubled ? store->probe_pause_ms : LOOK_PAUSE_MS);
    enum taken taken = TAKEN_WORK;
    int errnum = 0;

    (void)pthread_mutex_lock(&store->lock);
    while (dv_list_is_empty(&store->queued) && !store->is_stopping && !is_copying(store) &&
           errnum != ETIMEDOUT) {
        /* Until something was submitted, the database may be in use by the loop. */
        if (!store->has_worked)
            (void)pthread_cond_wait(&store->more, &store->lock);
        else
            errnum = pthread_cond_clockwait(&store->more, &store->lock, CLOCK_MONOTONIC, &until);
    }
    if (dv_list_is_empty(&store->queued) && store->is_stopping)
        taken = TAKEN_END;
    else if (dv_list_is_empty(&store->queued))
        taken = is_copying(store) ? TAKEN_COPY : TAKEN_TIME;
    dv_list_move_all(group, &store->queued);
    (void)pthread_mutex_unlock(&store->lock);
    return taken;
}

static void give_back(struct dv_store *store, struct dv_list *group, bool is_last)
{
    (void)pthread_mutex_lock(&store->lock);
    dv_list_move_all(&store->finished, group);
    store->is_stopped = is_last;
    (void)pthread_mutex_unlock(&store->lock);
    dv_async_wake(store->wake);
}

/* Checks between writes whether the disk works again and whether the files are still there; and
 * gives back memory that a burst of writes took. */
static void look_around(struct dv_store *store, struct dv_list *group)
{
    struct dv_err err;

    if (store->is_troubled)
        dv_store_probe(store);
    (void)dv_fail(&err, DV_DATA_LOSS, "store %s: damaged", store->name);
    if (!store->db.sql)
        return;
    dv_store_db_rest(&store->db);
    if (!store->db.is_damaged && check_files(store, &err))
        return;
    /* Nobody writes, so an empty batch carries the news to the loop. */
    dv_list_push(group, &dv_store_batch_new()->link);
    replace(store, group, &err);
    give_back(store, group, false);
}

void *dv_store_run(void *ctx)
{
    struct dv_store *store = ctx;
    struct dv_list group;
    struct dv_err err;

    dv_list_init(&group);
    for (;;) {
        enum taken taken = take(store, &group);

        if (taken == TAKEN_END)
            break;
        if (taken == TAKEN_TIME) {
            look_around(store, &group);
            continue;
        }
        store->has_worked = true;
        if (taken == TAKEN_WORK) {
            run_group(store, &group);
            give_back(store, &group, false);
        }
        dv_store_copy_step(store);
        if (store->db.sql && store->db.n_wal_pages >= store->checkpoint_at)
            /* Failures are counted; writes fail when they go on for long. */
            (void)checkpoint(store, &err);
    }
    (void)dv_fail(&err, DV_CANCELLED, "store %s: is being closed", store->name);
    dv_store_copy_abort(store, &err);
    /* This checkpoint lets the mark say that all is in the database before SQLite removes the
     * log. */
    if (store->db.sql && !store->db.is_damaged)
        (void)checkpoint(store, &err); /* the next start reads what is left in the log */
    dv_store_watch_stop(&store->watch);
    dv_store_db_close(&store->db);
    give_back(store, &group, true);
    return NULL;
}

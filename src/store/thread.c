/* thread.c - the store's thread: takes all that is queued, commits it at once, hands it back. */
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "store/batch.h"
#include "store/state.h"
#include "store/store.h"

/* When checkpoints fail for longer than this (128 MiB), writes fail too, with the reason. */
#define WAL_PAGES_MAX 32768u

/* ---- writing ---- */

/* The first bucket whose bound, first << i, is not less than the value. */
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

    (void)pthread_mutex_lock(&store->lock); /* a plain mutex: cannot fail */
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

static bool checkpoint(struct dv_store *store, struct dv_err *err)
{
    uint64_t begin_ns = dv_clock_now_ns(dv_clock_real());
    bool is_ok = dv_store_db_checkpoint(&store->db, err);
    uint64_t took_ns = dv_clock_now_ns(dv_clock_real()) - begin_ns;

    /* One that failed is tried again when the log has grown as much once more. */
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
    if (!dv_store_db_commit(&store->db, err))
        return false;
    store->pending.n = 0;
    return true;
}

/* All that can still succeed, in one transaction. */
static bool commit_group(struct dv_store *store, const struct dv_list *group, struct dv_err *err)
{
    uint64_t begin_ns = dv_clock_now_ns(dv_clock_real());
    size_t n_writes = 0;
    size_t n_changes = 0;
    struct dv_link *link;
    bool is_ok;

    DV_LIST_EACH (group, link) {
        struct dv_store_batch *batch = DV_CONTAINER(link, struct dv_store_batch, link);

        n_writes += batch->has_failed ? 0 : batch->n_writes;
        n_changes += batch->has_failed ? 0 : batch->records.n;
    }
    if (n_changes == 0 && store->pending.n == 0)
        return true;
    is_ok = apply_all(store, group, err);
    count_commit(store, is_ok, n_writes, n_changes, dv_clock_now_ns(dv_clock_real()) - begin_ns);
    return is_ok || dv_wrap(err, "store %s", store->name);
}

/* ---- reading ---- */

static bool is_full(const struct dv_store_read *read, const struct dv_store_row *row,
                    size_t used_bytes)
{
    size_t bytes = row->key.n + row->value.n; /* both have limits: no overflow */

    return read->n_rows == read->n_rows_max ||
           (read->n_rows > 0 && bytes > read->bytes_max - dv_size_min(used_bytes, read->bytes_max));
}

static bool read_rows(struct dv_store *store, struct dv_store_read *read,
                      struct dv_store_cursor *cursor, struct dv_err *err)
{
    DV_VEC(struct dv_store_row) rows = {0};
    size_t used_bytes = 0;

    read->n_rows = 0;
    read->has_more = false;
    for (;;) {
        struct dv_store_row row;
        bool is_end;

        if (!dv_store_cursor_next(cursor, &store->db, &row, &is_end, err))
            return false;
        read->has_more = !is_end && is_full(read, &row, used_bytes);
        if (is_end || read->has_more)
            return true;
        used_bytes += row.key.n + row.value.n;
        *dv_vec_add_in(&rows, read->arena) = (struct dv_store_row){
            dv_str_copy(row.key, read->arena), dv_str_copy(row.value, read->arena)};
        read->rows = rows.v;
        read->n_rows = rows.n;
    }
}

static void run_read(struct dv_store *store, struct dv_store_read *read)
{
    struct dv_store_cursor cursor = {0};
    struct dv_err err;
    bool is_ok =
        dv_store_cursor_init(&cursor, &store->db, read->space, read->prefix, read->after, &err) &&
        read_rows(store, read, &cursor, &err);

    dv_store_cursor_fini(&cursor);
    if (is_ok)
        return;
    (void)dv_wrap(&err, "store %s", store->name);
    dv_store_op_fail(&read->priv, &err);
}

static void run_reads(struct dv_store *store, const struct dv_list *group)
{
    struct dv_link *link;
    struct dv_link *at;

    DV_LIST_EACH (group, link) {
        struct dv_store_batch *batch = DV_CONTAINER(link, struct dv_store_batch, link);

        DV_LIST_EACH (&batch->ops, at) {
            struct dv_store_op *op = DV_CONTAINER(at, struct dv_store_op, link);

            if (op->is_read && !op->err)
                run_read(store, DV_CONTAINER(op, struct dv_store_read, priv));
        }
    }
}

/* ---- the thread ---- */

static void fail_writes(const struct dv_list *group, const struct dv_err *err)
{
    struct dv_link *link;

    DV_LIST_EACH (group, link) {
        struct dv_store_batch *batch = DV_CONTAINER(link, struct dv_store_batch, link);

        if (!batch->has_failed) {
            batch->has_failed = true;
            batch->err = *err;
        }
    }
}

/* Reads with it. */
static void fail_batch(struct dv_store_batch *batch, const struct dv_err *err)
{
    struct dv_link *link;

    batch->has_failed = true;
    batch->err = *err;
    DV_LIST_EACH (&batch->ops, link) {
        struct dv_store_op *op = DV_CONTAINER(link, struct dv_store_op, link);

        if (op->is_read && !op->err)
            dv_store_op_fail(op, err);
    }
}

static void fail_all(const struct dv_list *group, const struct dv_err *err)
{
    struct dv_link *link;

    DV_LIST_EACH (group, link)
        fail_batch(DV_CONTAINER(link, struct dv_store_batch, link), err);
}

/* What was submitted by those who do not know yet that the file was replaced. */
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

/* Replaces the damaged file, and lets the group bring the news. All of it fails: what succeeded
 * just now is lost with the file, and nobody has heard of it yet. */
static void replace(struct dv_store *store, const struct dv_list *group, struct dv_err *err)
{
    struct dv_store_batch *first = DV_CONTAINER(dv_list_first(group), struct dv_store_batch, link);
    char *set_aside;

    /* Memory has all of them. */
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
    if (store->db.is_damaged || !store->db.sql) { /* found by a checkpoint, or not replaced yet */
        replace(store, group, &err);
        return;
    }
    fail_stale(store, group);
    if (!commit_group(store, group, &err))
        fail_writes(group, &err);
    run_reads(store, group);
    if (store->db.is_damaged)
        replace(store, group, &err);
}

/* Waits for work; false when there is none and none will come. */
static bool take(struct dv_store *store, struct dv_list *group)
{
    (void)pthread_mutex_lock(&store->lock);
    while (dv_list_is_empty(&store->queued) && !store->is_stopping)
        (void)pthread_cond_wait(&store->more, &store->lock);
    dv_list_move_all(group, &store->queued);
    (void)pthread_mutex_unlock(&store->lock);
    return !dv_list_is_empty(group);
}

static void give_back(struct dv_store *store, struct dv_list *group, bool is_last)
{
    (void)pthread_mutex_lock(&store->lock);
    dv_list_move_all(&store->finished, group);
    store->is_stopped = is_last;
    (void)pthread_mutex_unlock(&store->lock);
    dv_async_wake(store->wake);
}

void *dv_store_run(void *ctx)
{
    struct dv_store *store = ctx;
    struct dv_list group;
    struct dv_err err;

    dv_list_init(&group);
    while (take(store, &group)) {
        run_group(store, &group);
        give_back(store, &group, false);
        if (store->db.sql && store->db.n_wal_pages >= store->checkpoint_at)
            (void)checkpoint(store, &err); /* counted; writes fail when it goes on for long */
    }
    dv_store_db_close(&store->db);
    give_back(store, &group, true);
    return NULL;
}

/* store.c - the loop's side of a store: takes writes in, hands them to the thread at the end of
 * the turn, and calls `done` when they come back. */
#include "store/store.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "store/store_batch.h"
#include "store/store_state.h"

/* The bounds of what may wait while a disk hangs: enough for seconds of the busiest load, and no
 * more memory than a small machine can spare. */
#define N_QUEUED_MAX 16384u
#define QUEUED_BYTES_MAX (64u * 1024u * 1024u)
/* What a change costs the queue beside its bytes. */
#define CHANGE_OVERHEAD_BYTES (sizeof(struct dv_store_record) + sizeof(uint64_t))
/* One batch each is being filled, queued, under way and coming back; more are not kept. */
#define N_SPARE_MAX 4u

/* ---- refusals ---- */

static void on_end_of_turn(struct dv_task *task);

DV_PRINTF(4, 5)
static void refuse(struct dv_store *store, struct dv_store_write *write, enum dv_code code,
                   const char *fmt, ...)
{
    char what[DV_ERR_MSG_BYTES];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, args); /* dv_fail marks a text that was cut */
    va_end(args);
    write->err = DV_ALLOC(struct dv_err);
    (void)dv_fail(write->err, code, "store %s: %s", store->name, what);
    dv_list_push(&store->refused, &write->link);
    dv_task_post(&store->end_of_turn, store->loop, on_end_of_turn);
}

/* ---- to the thread and back ---- */

static struct dv_store_batch *filling_batch(struct dv_store *store)
{
    if (!store->filling) {
        struct dv_link *link = dv_list_shift(&store->spare);

        store->n_spare -= link != NULL;
        store->filling =
            link ? DV_CONTAINER(link, struct dv_store_batch, link) : dv_store_batch_new();
        store->filling->epoch = store->loop_epoch;
    }
    return store->filling;
}

static void hand_over(struct dv_store *store)
{
    if (!store->filling)
        return;
    (void)pthread_mutex_lock(&store->lock); /* a plain mutex cannot fail */
    dv_list_push(&store->queued, &store->filling->link);
    (void)pthread_cond_signal(&store->more);
    (void)pthread_mutex_unlock(&store->lock);
    store->filling = NULL;
    store->has_begun = true;
}

/* Counts the write into the queue; false when there is no room and it has been refused. */
static bool admit(struct dv_store *store, struct dv_store_write *write)
{
    const struct dv_store_options *options = &store->options;

    if (store->n_queued >= options->n_queued_max) {
        refuse(store, write, DV_RESOURCE_EXHAUSTED, "%zu operations are waiting", store->n_queued);
        return false;
    }
    if (write->size_bytes > options->queued_bytes_max - store->queued_bytes) {
        refuse(store, write, DV_RESOURCE_EXHAUSTED,
               "%zu bytes do not fit: %zu are waiting, %zu are the limit", write->size_bytes,
               store->queued_bytes, options->queued_bytes_max);
        return false;
    }
    store->n_queued++;
    store->queued_bytes += write->size_bytes;
    dv_list_push(&filling_batch(store)->writes, &write->link);
    dv_task_post(&store->end_of_turn, store->loop, on_end_of_turn);
    return true;
}

/* Calls `done`. The write belongs to its owner again from then on, who may free it. */
static void end_write(struct dv_store_write *write, const struct dv_err *err)
{
    struct dv_err own;

    if (write->err) {
        own = *write->err;
        err = &own;
        free(write->err);
        write->err = NULL;
    }
    write->done(write, err);
}

/* Tells the owner that the file was replaced. What is submitted after this call carries the new
 * epoch. */
static void tell_damage(struct dv_store *store, struct dv_store_batch *batch)
{
    /* What was submitted before keeps the old epoch, so that the thread refuses it. */
    hand_over(store);
    store->loop_epoch = batch->epoch;
    free(store->set_aside);
    store->set_aside = batch->set_aside;
    batch->set_aside = NULL;
    store->options.damaged(store->options.ctx, store->set_aside);
}

static void end_batch(struct dv_store *store, struct dv_store_batch *batch)
{
    struct dv_link *link;

    if (batch->set_aside)
        tell_damage(store, batch);
    if (batch->has_rebuilt && !batch->has_failed) {
        free(store->set_aside);
        store->set_aside = NULL;
    }
    while ((link = dv_list_shift(&batch->writes)) != NULL) {
        struct dv_store_write *write = DV_CONTAINER(link, struct dv_store_write, link);

        store->n_queued--;
        store->queued_bytes -= write->size_bytes;
        end_write(write, batch->has_failed ? &batch->err : NULL);
    }
    dv_store_batch_clear(batch);
    if (store->n_spare == N_SPARE_MAX) {
        dv_store_batch_free(batch);
        return;
    }
    dv_list_push_front(&store->spare, &batch->link);
    store->n_spare++;
}

/* ---- closing ---- */

static void free_store(struct dv_store *store)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&store->spare)) != NULL)
        dv_store_batch_free(DV_CONTAINER(link, struct dv_store_batch, link));
    dv_store_watch_stop(&store->watch);
    dv_store_db_close(&store->db);
    dv_store_files_close(&store->files);
    (void)pthread_mutex_destroy(&store->lock); /* an unlocked mutex cannot fail */
    (void)pthread_cond_destroy(&store->more);
    dv_arena_free(store->arena);
    free(store->set_aside);
    free(store);
}

static void on_closed(void *ctx)
{
    struct dv_store *store = ctx;
    dv_closed_fn *closed = store->closed;
    void *closed_ctx = store->closed_ctx;

    free_store(store);
    if (closed)
        closed(closed_ctx);
}

/* Closes the store once the thread has ended and every write was called done. */
static void close_if_over(struct dv_store *store)
{
    bool is_over;

    (void)pthread_mutex_lock(&store->lock);
    is_over = store->is_stopped && dv_list_is_empty(&store->finished);
    (void)pthread_mutex_unlock(&store->lock);
    if (!is_over || store->is_joined || store->n_copies > 0 || !dv_list_is_empty(&store->refused))
        return;
    store->is_joined = true;
    (void)pthread_join(store->thread, NULL); /* the thread is ours and joined once: cannot fail */
    dv_task_cancel(&store->end_of_turn);
    dv_async_close(store->wake, on_closed, store);
}

static void on_woken(void *ctx)
{
    struct dv_store *store = ctx;
    struct dv_list finished;
    struct dv_link *link;
    struct dv_err trouble;
    bool has_changed;

    dv_list_init(&finished);
    (void)pthread_mutex_lock(&store->lock);
    dv_list_move_all(&finished, &store->finished);
    has_changed = store->n_troubles != store->n_troubles_told;
    store->n_troubles_told = store->n_troubles;
    trouble = store->trouble;
    (void)pthread_mutex_unlock(&store->lock);
    /* The owner hears of it before the writers that failed. */
    if (has_changed && store->options.trouble)
        store->options.trouble(store->options.ctx, trouble.code == DV_OK ? NULL : &trouble);
    while ((link = dv_list_shift(&finished)) != NULL)
        end_batch(store, DV_CONTAINER(link, struct dv_store_batch, link));
    dv_store_end_copies(store);
    close_if_over(store);
}

static void on_end_of_turn(struct dv_task *task)
{
    struct dv_store *store = DV_CONTAINER(task, struct dv_store, end_of_turn);
    struct dv_list refused;
    struct dv_link *link;

    hand_over(store);
    dv_list_init(&refused);
    dv_list_move_all(&refused, &store->refused);
    while ((link = dv_list_shift(&refused)) != NULL)
        end_write(DV_CONTAINER(link, struct dv_store_write, link), NULL);
    close_if_over(store);
}

void dv_store_close(struct dv_store *store, dv_closed_fn *closed, void *ctx)
{
    assert(!store->is_closing);
    store->closed = closed;
    store->closed_ctx = ctx;
    store->is_closing = true;
    hand_over(store);
    (void)pthread_mutex_lock(&store->lock);
    store->is_stopping = true;
    (void)pthread_cond_signal(&store->more);
    (void)pthread_mutex_unlock(&store->lock);
}

/* ---- opening ---- */

static struct dv_store *new_store(struct dv_loop *loop, const struct dv_store_options *options)
{
    struct dv_store *store = DV_ALLOC(struct dv_store);

    store->loop = loop;
    store->options = *options;
    if (store->options.n_queued_max == 0)
        store->options.n_queued_max = N_QUEUED_MAX;
    if (store->options.queued_bytes_max == 0)
        store->options.queued_bytes_max = QUEUED_BYTES_MAX;
    store->arena = dv_arena_new();
    dv_list_init(&store->spare);
    dv_list_init(&store->refused);
    dv_list_init(&store->queued);
    dv_list_init(&store->finished);
    dv_list_init(&store->copies);
    dv_list_init(&store->copied);
    (void)pthread_mutex_init(&store->lock, NULL); /* cannot fail with default attributes */
    (void)pthread_cond_init(&store->more, NULL);
    return store;
}

/* Starts the thread with all signals blocked: they are for the loop. SIGXFSZ among them would end
 * the process where a write beyond the file-size limit is meant to fail. */
static int start_thread(struct dv_store *store)
{
    sigset_t all;
    sigset_t before;
    int errnum;

    (void)sigfillset(&all); /* cannot fail with valid arguments */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    errnum = pthread_create(&store->thread, NULL, dv_store_run, store);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum == 0)
        /* The name is only for debuggers and ps. */
        (void)pthread_setname_np(store->thread, "davit-store");
    return errnum;
}

/* Starts the thread of the store, which it owns from here on, also on failure. */
static struct dv_store *start(struct dv_store *store, struct dv_err *err)
{
    int errnum;

    if (!dv_store_attach(store, dv_store_rest_at_start(store), &store->set_aside, err)) {
        free_store(store);
        return NULL;
    }
    store->wake = dv_async_open(store->loop, on_woken, store, err);
    if (!store->wake) {
        free_store(store);
        return NULL;
    }
    errnum = start_thread(store);
    if (errnum != 0) {
        (void)dv_fail_errno(err, errnum, "store %s: thread", store->name);
        dv_async_close(store->wake, NULL, NULL);
        free_store(store);
        return NULL;
    }
    return store;
}

struct dv_store *dv_store_open(struct dv_loop *loop, dv_str path,
                               const struct dv_store_options *options, struct dv_err *err)
{
    struct dv_store *store = new_store(loop, options);

    assert(options->damaged);
    store->name = dv_str_to_c(path, store->arena);
    if (!dv_store_files_open(&store->files, path, store->arena, err)) {
        free_store(store);
        return NULL;
    }
    return start(store, err);
}

const char *dv_store_set_aside(const struct dv_store *store)
{
    return store->set_aside;
}

/* ---- writing ---- */

/* Computes how much of the queue the write takes; false when it has been refused. */
static bool measure(struct dv_store *store, struct dv_store_write *write,
                    const struct dv_store_change *changes, size_t n_changes)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n_changes; i++) {
        const struct dv_store_change *change = &changes[i];
        bool is_row = change->kind == DV_STORE_PUT || change->kind == DV_STORE_DELETE;

        if (change->key.n > DV_STORE_KEY_BYTES_MAX || (is_row && change->key.n == 0)) {
            refuse(store, write, DV_INVALID_ARGUMENT, "a key of %zu bytes; 1 to %u are allowed",
                   change->key.n, DV_STORE_KEY_BYTES_MAX);
            return false;
        }
        if (change->value.n > DV_STORE_VALUE_BYTES_MAX) {
            refuse(store, write, DV_INVALID_ARGUMENT, "key \"%.*s\": %zu bytes; %u are allowed",
                   DV_FMT(change->key), change->value.n, DV_STORE_VALUE_BYTES_MAX);
            return false;
        }
        if (!dv_size_add(bytes, change->key.n + change->value.n + CHANGE_OVERHEAD_BYTES, &bytes))
            bytes = SIZE_MAX; /* so much is refused by the queue's bound */
    }
    write->size_bytes = bytes;
    return true;
}

void dv_store_write(struct dv_store *store, struct dv_store_write *write,
                    const struct dv_store_change *changes, size_t n_changes)
{
    *write = (struct dv_store_write){.done = write->done};
    if (store->is_closing) {
        refuse(store, write, DV_CANCELLED, "is being closed");
        return;
    }
    if (!measure(store, write, changes, n_changes) || !admit(store, write))
        return;
    for (size_t i = 0; i < n_changes; i++) {
        assert(changes[i].table < store->options.schema->n_tables);
        dv_store_batch_add(store->filling, &changes[i]);
    }
    store->filling->n_writes++;
}

void dv_store_get_stats(struct dv_store *store, struct dv_store_stats *stats)
{
    (void)pthread_mutex_lock(&store->lock);
    *stats = store->stats;
    (void)pthread_mutex_unlock(&store->lock);
    stats->n_queued = store->n_queued;
    stats->queued_bytes = store->queued_bytes;
}

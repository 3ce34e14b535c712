/* store_state.h - a store: the loop's side, the thread's side, and the queue between them. */
#ifndef DV_STORE_STATE_H
#define DV_STORE_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "store/db.h"
#include "store/store.h"
#include "store/store_files.h"
#include "store/store_watch.h"

struct dv_arena;
struct dv_store_batch;

/* Every so many pages (4 MiB) the log is brought home, after those who waited for the commit were
 * told; the next ones wait for it. Measured with 250, 1,000 and 4,000 on a disk whose sync takes
 * 4 ms, 64 writers, 100,000 rows: 9,400, 12,100 and 12,500 writes/s; p99 28, 32 and 52 ms. */
#define DV_STORE_CHECKPOINT_PAGES 1000u

/* A row that is still to be moved aside. */
struct dv_store_pending {
    uint32_t table;
    dv_str key;
    dv_str why;
};

struct dv_store {
    /* Set by open; then anybody's to read. */
    struct dv_loop *loop;
    struct dv_store_options options;
    struct dv_arena *arena;
    const char *name; /* for messages */
    bool is_memory;
    pthread_t thread;
    struct dv_async *wake; /* from the thread: something is in `finished`, or it has stopped */

    /* The loop's. A batch is stamped with the epoch its writers live in. When the file has been
     * replaced, the thread moves on to the next epoch and fails what is stamped with the old one,
     * until the loop has told of the loss and moves on too: so nothing that was built on the lost
     * rows gets into the new file before what rebuilds them. */
    struct dv_store_batch *filling; /* NULL: nothing was submitted in this turn */
    struct dv_list spare;           /* batches for the next turns */
    size_t n_spare;
    struct dv_list refused; /* dv_store_op, with their errors */
    struct dv_task end_of_turn;
    size_t n_queued;
    size_t queued_bytes;
    uint64_t loop_epoch;
    uint64_t n_troubles_told;
    char *set_aside; /* NULL: none */
    DV_VEC(struct dv_store_note) notes;
    DV_VEC(struct dv_store_aside) asides;
    size_t n_asides;
    struct dv_store_faults *faults;
    bool has_begun; /* something was submitted: the database is the thread's */
    bool is_closing;
    bool is_joined;
    dv_closed_fn *closed;
    void *closed_ctx;

    /* The thread's, once something was submitted; until then the loop's. */
    struct dv_store_files files;
    struct dv_store_db db;
    struct dv_store_watch watch;
    uint64_t thread_epoch;
    uint64_t checkpoint_at; /* pages in the log */
    DV_VEC(struct dv_store_pending) pending;
    bool is_littered;        /* the log has a part of a commit that failed */
    bool has_worked;         /* something was submitted, and came here */
    bool is_troubled;        /* the disk did not take the last of what was written, */
    bool is_full;            /* because it is full, */
    uint64_t refused_bytes;  /* so much */
    uint64_t probe_pause_ms; /* until it is tried again */

    /* Both sides', under `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t more; /* `queued` or `is_stopping` has changed */
    struct dv_list queued;
    struct dv_list finished;
    bool is_stopping;
    bool is_stopped;
    struct dv_err trouble;       /* code DV_OK: none */
    uint64_t n_troubles;         /* how often that has changed */
    struct dv_store_stats stats; /* without the queue's */
};

/* store.c */

/* Gives the operation an error of its own: a copy. */
void dv_store_op_fail(struct dv_store_op *op, const struct dv_err *err);

/* thread.c */

/* The thread: applies what is queued, until it is to stop and nothing is queued. */
void *dv_store_run(void *store);

/* store_aside.c */

/* Remembers a row that cannot be used, until it is moved. At start-up. */
void dv_store_note_aside(struct dv_store *store, uint32_t table, const struct dv_store_row *row,
                         const struct dv_err *why);
/* Reads what was set aside by earlier starts. */
void dv_store_load_asides(struct dv_store *store);
/* Within a transaction: moves what is noted. When that is committed, the notes may go. */
DV_CHECKED bool dv_store_move_pending(struct dv_store *store, struct dv_err *err);

/* trouble.c: on the thread. */

/* A write of so many bytes failed. */
void dv_store_meet_trouble(struct dv_store *store, const struct dv_err *err, uint64_t n_bytes);
/* A write succeeded. */
void dv_store_end_trouble(struct dv_store *store);
/* Tries whether the disk takes something again. */
void dv_store_probe(struct dv_store *store);

/* attach.c */

/* What becomes of the rows of a file that is found damaged before anything was submitted. */
enum dv_store_rest dv_store_rest_at_start(const struct dv_store *store);

/* Opens the database; a damaged one is replaced, and *set_aside is where such a one is, now or
 * since an earlier time: on the heap, or NULL. */
DV_CHECKED bool dv_store_attach(struct dv_store *store, enum dv_store_rest rest, char **set_aside,
                                struct dv_err *err);
/* Like dv_store_attach, after damage was found in use: `err` says what was found, and comes back
 * with where the file was set aside. The epoch is the next one then. False: not even that
 * succeeded, `err` is why, and the next attempt is for later. */
bool dv_store_recover(struct dv_store *store, enum dv_store_rest rest, char **set_aside,
                      struct dv_err *err);

#endif

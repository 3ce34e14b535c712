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
struct sqlite3_backup;

/* After so many pages (4 MiB) the log is copied into the database (a checkpoint). That happens
 * after those who waited for the commit were told, and the next commits wait for it. Measured with
 * 250, 1,000 and 4,000 on a disk whose sync takes 4 ms, 64 writers, 100,000 rows: 9,400, 12,100 and
 * 12,500 writes/s; p99 28, 32 and 52 ms. */
#define DV_STORE_CHECKPOINT_PAGES 1000u

/* A row that cannot be used and is still to be moved to the table `_set_aside`. */
struct dv_store_pending {
    uint32_t table;
    dv_str key;
    dv_str why;
};

/* The copy that the thread is making. */
struct dv_store_copier {
    struct dv_store_copy *copy; /* NULL: none */
    struct dv_store_db to;
    struct sqlite3_backup *backup;
};

struct dv_store {
    /* Set when the store is opened; both threads may read it from then on. */
    struct dv_loop *loop;
    struct dv_store_options options;
    struct dv_arena *arena;
    const char *name; /* names the store in messages */
    pthread_t thread;
    /* The thread wakes the loop by it: `finished` has something, or the thread has stopped. */
    struct dv_async *wake;

    /* Only the loop uses these. A batch is stamped with the epoch that its writers know. When the
     * file has been replaced, the thread moves on to the next epoch and fails batches with the old
     * one, until the loop has told of the loss and moves on too: so nothing that was built on the
     * lost rows gets into the new file before what rebuilds them. */
    struct dv_store_batch *filling; /* NULL: nothing was submitted in this turn */
    struct dv_list spare;           /* batches for the next turns */
    size_t n_spare;
    struct dv_list refused; /* dv_store_write, with their errors */
    struct dv_task end_of_turn;
    size_t n_queued;
    size_t queued_bytes;
    size_t n_copies; /* that have not ended */
    uint64_t loop_epoch;
    uint64_t n_troubles_told;
    char *set_aside; /* NULL: none */
    DV_VEC(struct dv_store_note) notes;
    DV_VEC(struct dv_store_aside) asides;
    size_t n_asides;
    bool has_begun; /* something was submitted: the database belongs to the thread */
    bool is_closing;
    bool is_joined;
    dv_closed_fn *closed;
    void *closed_ctx;

    /* Used by the thread once something was submitted, and by the loop until then. */
    struct dv_store_files files;
    struct dv_store_db db;
    struct dv_store_watch watch;
    uint64_t thread_epoch;
    uint64_t checkpoint_at; /* the number of pages in the log at which the next checkpoint is due */
    DV_VEC(struct dv_store_pending) pending;
    struct dv_store_copier copier;
    bool is_littered;        /* the log holds a part of a commit that failed */
    bool has_worked;         /* the thread has received something */
    bool is_troubled;        /* the disk did not take the last write */
    bool is_full;            /* the disk did not take it because it is full */
    uint64_t refused_bytes;  /* the size of that write */
    uint64_t probe_pause_ms; /* the pause until the disk is tried again */

    /* Used by both threads, under `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t more; /* `queued` or `is_stopping` has changed */
    struct dv_list queued;
    struct dv_list finished;
    struct dv_list copies; /* dv_store_copy that wait for the thread */
    struct dv_list copied; /* those that it has ended */
    bool is_stopping;
    bool is_stopped;
    struct dv_err trouble;       /* code DV_OK: none */
    uint64_t n_troubles;         /* how often `trouble` has changed */
    struct dv_store_stats stats; /* all but the queue's numbers */
};

/* thread.c */

/* The thread's function: applies what is queued, until it is told to stop and nothing is queued. */
void *dv_store_run(void *store);

/* store_copy.c: the first two run on the thread. */

/* Begins the next copy that waits, or goes on with the one under way. */
void dv_store_copy_step(struct dv_store *store);
/* Ends all copies, because the file is about to be closed. */
void dv_store_copy_abort(struct dv_store *store, const struct dv_err *err);
/* Calls `done` of those that have ended. */
void dv_store_end_copies(struct dv_store *store);

/* store_aside.c */

/* Remembers a row that cannot be used until it is moved. For start-up. */
void dv_store_note_aside(struct dv_store *store, uint32_t table, const struct dv_store_row *row,
                         const struct dv_err *why);
/* Reads which rows earlier starts have set aside. */
void dv_store_load_asides(struct dv_store *store);
/* Moves the rows that were noted; needs an open transaction. The notes may go when it is
 * committed. */
DV_CHECKED bool dv_store_move_pending(struct dv_store *store, struct dv_err *err);

/* trouble.c: these run on the thread. */

/* Notes that a write of so many bytes failed. */
void dv_store_meet_trouble(struct dv_store *store, const struct dv_err *err, uint64_t n_bytes);
/* Notes that a write succeeded. */
void dv_store_end_trouble(struct dv_store *store);
/* Tries whether the disk takes writes again. */
void dv_store_probe(struct dv_store *store);

/* attach.c */

/* What happens to the rows of a file that is found damaged before anything was submitted. */
enum dv_store_rest dv_store_rest_at_start(const struct dv_store *store);

/* Opens the database and replaces a damaged one. *set_aside is where a damaged file is, of now or
 * of an earlier start, on the heap, or NULL. */
DV_CHECKED bool dv_store_attach(struct dv_store *store, enum dv_store_rest rest, char **set_aside,
                                struct dv_err *err);
/* Like dv_store_attach, after damage was found in use: `err` says what was found, and is completed
 * with where the file was set aside. The epoch is the next one then. False: the file could not be
 * replaced, `err` is why, and the caller tries again later. */
bool dv_store_recover(struct dv_store *store, enum dv_store_rest rest, char **set_aside,
                      struct dv_err *err);

#endif

/* store_saver.h - what has changed in a state in memory goes to the disk: together, in order, and
 * again until it is there.
 *
 * What changes in one turn of the loop, or while a commit is under way, is one write. After a
 * failure the same rows are tried again, with growing pauses, under what has changed since; the
 * log tells the first failure, and the write that works again. */
#ifndef DV_STORE_SAVER_H
#define DV_STORE_SAVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"
#include "store/store.h"

struct dv_arena;
struct dv_row_change;

/* Waits until all that the state has to write is on the disk; embedded in what waits, zeroed, then
 * `done` is set; lent until that has run. */
struct dv_save {
    /* err: NULL when it is on the disk. Else it is not, and is tried again by itself. */
    void (*done)(struct dv_save *save, const struct dv_err *err);
    /* Written in the same transaction, or not at all: after a failure these are not tried again. In
     * other tables of the store. They live until `done`. */
    const struct dv_store_change *extra;
    size_t n_extra;
    /* Runs when the write is put together, to set `extra` to what is true then. May be NULL. */
    void (*prepare)(struct dv_save *save);
    bool comes_first; /* its extra changes go before those of others in the write */
    struct dv_link link;
};

struct dv_saver_options {
    struct dv_loop *loop;
    struct dv_store *store;
    uint32_t table;   /* where the state's rows are */
    const char *what; /* in errors and in the log: "devices" */
    /* Takes what has changed since the last time, in `arena`. */
    size_t (*take)(void *ctx, struct dv_arena *arena, const struct dv_row_change **changes);
    /* Whenever it may have become idle. */
    void (*rested)(void *ctx);
    void *ctx;
};

/* Embedded in what has the state. */
struct dv_saver {
    struct dv_saver_options options;
    struct dv_store_write write;
    struct dv_task task;
    struct dv_timer retry_timer;
    uint64_t retry_ms;      /* the next pause */
    struct dv_list waiting; /* dv_save, for the next write */
    struct dv_list flying;  /* for the one that is under way */
    bool is_flying;
    bool is_closing;                 /* what fails is not tried again */
    struct dv_arena *arena;          /* of `changes` */
    struct dv_store_change *changes; /* under way; after a failure, still to be written */
    size_t n_changes;                /* of the state; those that the saves added come behind them */
    struct dv_err err;               /* of the last write; code DV_OK: it succeeded */
};

/* A state's change as a change of the store. */
struct dv_store_change dv_store_change_of(uint32_t table, const struct dv_row_change *change);

/* `options` is copied. */
void dv_saver_init(struct dv_saver *saver, const struct dv_saver_options *options);
void dv_saver_fini(struct dv_saver *saver); /* it is idle */
/* Something changed that nobody waits for: it is written with the next. */
void dv_saver_later(struct dv_saver *saver);
void dv_saver_start(struct dv_saver *saver, struct dv_save *save);
/* Nothing is under way or waited for. */
bool dv_saver_is_idle(const struct dv_saver *saver);
/* Why what has changed could not be written; NULL: all is written. */
const struct dv_err *dv_saver_error(const struct dv_saver *saver);

#endif

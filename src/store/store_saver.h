/* store_saver.h - writes what has changed in a state in memory to the store: together, in order,
 * and again until it is there. What changes in one turn of the loop, or while a commit is under
 * way, is one write. After a failure the same rows are tried again, with growing pauses, followed
 * by what has changed since; the log tells of the first failure, and of the write that works
 * again. */
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

/* Waits until all that the state has to write is on the disk. It is embedded in what waits, zeroed,
 * then `done` is set; it is lent to the saver until `done` has run. */
struct dv_save {
    /* err is NULL when the state is on the disk. Otherwise it is not, and the saver tries again by
     * itself. */
    void (*done)(struct dv_save *save, const struct dv_err *err);
    /* Changes of other tables that are written in the same transaction. After a failure they are
     * not tried again. They must live until `done`. */
    const struct dv_store_change *extra;
    size_t n_extra;
    /* Runs when the write is put together, and sets `extra` to what is true at that time. May be
     * NULL. */
    void (*prepare)(struct dv_save *save);
    bool comes_first; /* its extra changes are written before those of other saves */
    struct dv_link link;
};

struct dv_saver_options {
    struct dv_loop *loop;
    struct dv_store *store;
    uint32_t table;   /* the table of the state's rows */
    const char *what; /* names the state in errors and in the log: "devices" */
    /* Returns what has changed since the last call, in `arena`. */
    size_t (*take)(void *ctx, struct dv_arena *arena, const struct dv_row_change **changes);
    /* Runs whenever the saver may have become idle. */
    void (*rested)(void *ctx);
    void *ctx;
};

/* The saver of one state, embedded in what owns that state. */
struct dv_saver {
    struct dv_saver_options options;
    struct dv_store_write write;
    struct dv_task task;
    struct dv_timer retry_timer;
    uint64_t retry_ms;      /* the length of the next pause */
    struct dv_list waiting; /* dv_save that wait for the next write */
    struct dv_list flying;  /* dv_save that wait for the write that is under way */
    bool is_flying;
    bool is_closing;                 /* a write that fails is not tried again */
    struct dv_arena *arena;          /* holds `changes` */
    struct dv_store_change *changes; /* are being written or, after a failure, still have to be */
    /* The state's changes; the extra ones of the saves follow them. */
    size_t n_changes;
    struct dv_err err; /* error of the last write; code DV_OK: it succeeded */
};

/* Turns a change of a state into a change of the store. */
struct dv_store_change dv_store_change_of(uint32_t table, const struct dv_row_change *change);

/* Copies `options`. */
void dv_saver_init(struct dv_saver *saver, const struct dv_saver_options *options);
void dv_saver_fini(struct dv_saver *saver); /* the saver must be idle */
/* Notes that something changed that nobody waits for: it is written soon, with whatever else there
 * is. */
void dv_saver_later(struct dv_saver *saver);
void dv_saver_start(struct dv_saver *saver, struct dv_save *save);
/* Whether nothing is under way and nobody waits. */
bool dv_saver_is_idle(const struct dv_saver *saver);
/* Why the last changes could not be written; NULL: everything is written. */
const struct dv_err *dv_saver_error(const struct dv_saver *saver);

#endif

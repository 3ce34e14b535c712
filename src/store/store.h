/* store.h - durable state: tables of rows, changed in atomic sets, on a thread of its own.
 *
 * A table maps keys to values, both bytes, in the order of the keys. Changes are
 * submitted on the loop's thread and applied in the order of submission, each set whole or not at
 * all; `done` runs when the set is on the disk. All sets submitted in one turn of the loop, and
 * all that arrive while a commit is under way, share the next commit.
 *
 * A store is one SQLite file that one process holds: `<path>`, `<path>-wal`, `<path>.lock`. The
 * caller keeps its state in memory and loads it once; the file is for the next start.
 *
 * No write has a deadline and none can be cancelled: once submitted, only the disk's answer tells
 * whether it will be there after a crash. A disk that hangs fills the queue, which pushes back. */
#ifndef DV_STORE_H
#define DV_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_arena;
struct dv_store;

/* The limits of a row: an API object has at most 3 MiB, a key is a few names. */
#define DV_STORE_KEY_BYTES_MAX 2048u
#define DV_STORE_VALUE_BYTES_MAX (16u * 1024u * 1024u)

/* ---- schema ---- */

struct dv_store_schema {
    /* The names of the tables ([a-z][a-z0-9_]*); elsewhere a table is known by its place in this
     * list. Tables that the file does not have yet are made. */
    const char *const *tables;
    size_t n_tables;
};

/* ---- life ---- */

struct dv_store_options {
    const struct dv_store_schema *schema; /* kept */
    /* Bounds of the writes that wait or are under way; 0: the default. Beyond them writes fail with
     * DV_RESOURCE_EXHAUSTED. */
    size_t n_queued_max;
    size_t queued_bytes_max;
    /* The file was found damaged while in use, and has been moved to `set_aside`. The store is
     * empty: write what you hold in memory, ending with DV_STORE_REBUILT. All that was submitted
     * before this call fails with DV_DATA_LOSS after it. */
    void (*damaged)(void *ctx, const char *set_aside);
    /* Runs when the disk takes no writes (it is full, read-only or broken), and with err NULL when
     * it takes them again, whoever wrote. The store tries again by itself. May be NULL. */
    void (*trouble)(void *ctx, const struct dv_err *err);
    void *ctx;
    /* At start-up the rows of a damaged file that can still be read are copied into the new one. A
     * set of changes may then be there in part: set this only if you can work with a part of your
     * rows. */
    bool keeps_readable;
};

/* Opens the file, or makes it (mode 0600) where there is none; the directory must exist. Blocks:
 * for start-up. A damaged file is set aside as `<path>.damaged-<utc time>` with what belongs to it,
 * and an empty one (but see keeps_readable) takes its place: see dv_store_set_aside.
 * DV_ALREADY_EXISTS: another process has it open. DV_FAILED_PRECONDITION: made by a newer davit, or
 * not by davit. Whatever else keeps it from being opened (permissions, a full disk, a disk that
 * cannot be read) is told, and the file is left as it is. */
struct dv_store *dv_store_open(struct dv_loop *loop, dv_str path,
                               const struct dv_store_options *options, struct dv_err *err);

/* Finishes all that is queued and calls `done` for it; then closes the file and calls `closed` (may
 * be NULL). Writes that those callbacks submit fail with DV_CANCELLED. */
void dv_store_close(struct dv_store *store, dv_closed_fn *closed, void *ctx);

/* Returns where a damaged file was set aside, at this open or an earlier one, whose content has not
 * been rebuilt yet; NULL: there is none. The text lives until the next turn of the loop. */
const char *dv_store_set_aside(const struct dv_store *store);

/* Something that was found out about the files when they were opened, for the log. */
struct dv_store_note {
    bool is_loss; /* writes that had been acknowledged are not there any more, or may not be */
    bool is_mode; /* true: others could read or write a file; false: a file was damaged */
    dv_str text;
};

/* Returns the number of notes; *notes lives as long as the store is open. */
size_t dv_store_notes(const struct dv_store *store, const struct dv_store_note **notes);

/* ---- reading at start-up ---- */

struct dv_store_row {
    dv_str key;
    dv_str value;
};

/* Hands all rows of a table to `each`, in key order; a row is borrowed for the call. Blocks, and is
 * for start-up: before the first write. A row that `each` refuses is set aside, with the error as
 * the reason: the next write of any kind moves it out of its table, and its key is as good as new
 * from here on. DV_DATA_LOSS: found damaged only now, set aside; the store is empty: start over.
 * With keeps_readable it goes on with the next row that can be read instead: dv_store_set_aside
 * tells. */
DV_CHECKED bool dv_store_load(struct dv_store *store, uint32_t table,
                              bool (*each)(void *ctx, const struct dv_store_row *row,
                                           struct dv_err *err),
                              void *ctx, struct dv_err *err);

/* A row that was set aside. All of it is kept in the file, in the table `_set_aside`. */
struct dv_store_aside {
    const char *table;
    dv_str key;
    dv_str why;
    dv_str held; /* the first bytes of its value; empty for rows of earlier starts */
    bool is_new; /* set aside at this start, not at an earlier one */
};

/* Returns the first thousand rows that are set aside, in order of time; they live as long as the
 * store is open. */
size_t dv_store_asides(const struct dv_store *store, const struct dv_store_aside **asides);
size_t dv_store_n_asides(const struct dv_store *store); /* the number of all of them */

/* ---- writing ---- */

enum dv_store_kind {
    DV_STORE_PUT,           /* a new row, or a new value for the key */
    DV_STORE_DELETE,        /* an absent row is fine */
    DV_STORE_DELETE_PREFIX, /* all rows whose key begins with `key`; "": all */
    /* Changes no row: with this set, everything that was set aside has been rebuilt. */
    DV_STORE_REBUILT,
};

struct dv_store_change {
    enum dv_store_kind kind;
    uint32_t table;
    dv_str key;
    dv_str value;
};

/* One set of changes, embedded in what waits for it; lent to the store until `done` has run. */
struct dv_store_write {
    /* err: NULL when the set is on the disk. Else nothing of it was applied:
     * DV_RESOURCE_EXHAUSTED: the queue or the disk is full; later writes may succeed.
     * DV_INVALID_ARGUMENT: a key or value that is empty (keys) or too large.
     * DV_DATA_LOSS: the disk failed, or the file was damaged. After a disk failure that is
     * followed by a crash, before another write succeeded, the set may be found applied, whole. */
    void (*done)(struct dv_store_write *write, const struct dv_err *err);
    /* The store's own. */
    struct dv_link link;
    struct dv_err *err; /* why it was refused, on the heap; NULL: its commit's error counts */
    size_t size_bytes;  /* what it takes of the queue */
};

/* Copies the changes; without any, `done` tells that all writes before it are done. `done` runs
 * once, on the loop's thread, never before this has returned, and in the order of submission
 * (refusals by the queue's bounds excepted: they come at once). */
void dv_store_write(struct dv_store *store, struct dv_store_write *write,
                    const struct dv_store_change *changes, size_t n_changes);

/* ---- copies ---- */

/* One copy of the whole file, embedded in what waits for it; lent to the store until `done` has
 * run. */
struct dv_store_copy {
    /* err: NULL when the copy is complete; it is not synced. DV_CANCELLED: the store was closed
     * before. */
    void (*done)(struct dv_store_copy *copy, const struct dv_err *err);
    const char *path; /* an empty file that only the caller knows; lives until `done` */
    /* The store's own. */
    struct dv_link link;
    bool has_failed;
    struct dv_err err;
};

/* Copies what the file is at one moment between now and `done`, with all writes that are done now.
 * Writes go on meanwhile. Not for a store that is being closed. */
void dv_store_copy(struct dv_store *store, struct dv_store_copy *copy);

/* Checks that a file that nobody uses is a whole store of this or an older version. Blocks, for as
 * long as reading it takes. */
DV_CHECKED bool dv_store_check_file(const char *path, struct dv_err *err);
/* Whether the file begins as a copy does, which can be asked before anything is made. Blocks. */
DV_CHECKED bool dv_store_is_copy(const char *path, struct dv_err *err);

/* Lets a copy of the file `from` take the place of the store at `path`, whole or not at all. Files
 * that are there are kept, under the name *former, in `arena`; empty: there were none. Blocks.
 * DV_ALREADY_EXISTS: a process has the store open. */
DV_CHECKED bool dv_store_restore(dv_str path, const char *from, struct dv_arena *arena,
                                 dv_str *former, struct dv_err *err);

/* ---- numbers for metrics ---- */

/* Bucket i counts values up to its bound; the last one counts everything beyond. */
#define DV_STORE_N_BUCKETS 20u
#define DV_STORE_BUCKET_US(i) (UINT64_C(10) << (i)) /* 10 us to 2.6 s */
#define DV_STORE_BUCKET_WRITES(i) (UINT64_C(1) << (i))

struct dv_store_stats {
    uint64_t n_commits; /* that succeeded, with their writes and changes */
    uint64_t n_writes;
    uint64_t n_changes;
    uint64_t n_failed_commits;
    uint64_t commit_ns; /* time of all commits together */
    uint64_t commits_by_us[DV_STORE_N_BUCKETS];
    uint64_t commits_by_writes[DV_STORE_N_BUCKETS];
    uint64_t n_checkpoints;
    uint64_t n_failed_checkpoints;
    uint64_t checkpoint_ns;
    uint64_t wal_bytes; /* size of the log now */
    uint64_t n_queued;  /* writes that wait or are under way now */
    uint64_t queued_bytes;
};

void dv_store_get_stats(struct dv_store *store, struct dv_store_stats *stats);

#endif

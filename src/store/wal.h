/* wal.h - a write-ahead log, looked at before SQLite opens it.
 *
 * SQLite takes a log up to its first frame that is not as it was written, and passes over the rest
 * without a word. Here the rest is looked at. A frame's checksum goes on from the one that is
 * stored in the frame before it: so frames behind a damaged one can still be told from garbage.
 *
 * And there is the mark, a small file that says how far the log had been acknowledged. It is not
 * synced, so that it costs nothing: it survives a process, and after a loss of power it is older
 * than the log, which does no harm. */
#ifndef DV_STORE_WAL_H
#define DV_STORE_WAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"

struct dv_err;

/* Identifies a log: SQLite begins a new one with the next number in the first salt. */
struct dv_wal_salts {
    uint32_t count;
    uint32_t random;
};

/* Identifies the database's file as it is; that is written only when the log is copied into it. */
struct dv_wal_base {
    uint64_t file; /* inode of the file */
    uint64_t size_bytes;
    uint64_t changed_ns;
};

struct dv_wal_mark {
    struct dv_wal_salts salts;
    uint64_t n_frames; /* frames that were acknowledged */
    bool is_home;      /* they are all in the database too */
    struct dv_wal_base base;
};

struct dv_wal_report {
    bool is_there;   /* the file exists and is not empty */
    bool has_header; /* its header is good */
    struct dv_wal_salts salts;
    uint64_t n_frames; /* frames that SQLite takes: up to the last commit before the damage */
    uint64_t n_behind; /* undamaged commits after those */
    bool has_tail;     /* a damaged frame of this log comes next */
};

/* Reads the log and reports what it holds. DV_FAILED_PRECONDITION: it is not a regular file. Takes
 * bounded time and memory for a file of any size. */
DV_CHECKED bool dv_wal_inspect(const char *path, struct dv_wal_report *report, struct dv_err *err);

enum dv_wal_verdict {
    DV_WAL_GOOD,
    DV_WAL_CUT,   /* its last write is cut off: it may have been acknowledged, or not */
    DV_WAL_LOST,  /* writes that had been acknowledged are lost; the first part can be used */
    DV_WAL_WRONG, /* it must not be used with this database: it is older, or a part of what is home;
                     with the mark not home, writes are lost too */
};

/* Judges the log. `mark` is NULL when there is none. `base` is the database as it is now: where the
 * mark is of another one (a backup was restored, or a crash came during a checkpoint), the log is
 * judged without the mark. */
enum dv_wal_verdict dv_wal_judge(const struct dv_wal_report *report, const struct dv_wal_mark *mark,
                                 const struct dv_wal_base *base);
/* Describes the file at `path`; all 0: it is not there. */
struct dv_wal_base dv_wal_base_of(const char *path);

/* Opens the mark's file, and makes it when it is not there (mode 0600); negative with errno when
 * that fails. */
int dv_wal_mark_open(const char *path);
void dv_wal_mark_write(int fd, const struct dv_wal_mark *mark);
/* Reads the mark; false when there is none that can be trusted. */
bool dv_wal_mark_read(const char *path, struct dv_wal_mark *mark);

/* Reads the salts in the header of an open log; false: it has no header. */
bool dv_wal_read_salts(int fd, struct dv_wal_salts *salts);

#endif

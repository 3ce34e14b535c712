/* store_watch.h - watches whether the files that a store writes are still the ones at their paths,
 * and keeps the mark of how far its log was acknowledged. */
#ifndef DV_STORE_WATCH_H
#define DV_STORE_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/defs.h"
#include "store/db.h"
#include "store/wal.h"

struct dv_err;
struct dv_store_files;

#define DV_WATCH_HEADER_BYTES 32u
#define DV_WATCH_FRAME_BYTES (24u + DV_STORE_PAGE_BYTES)

struct dv_store_watch {
    dev_t device; /* the device that holds the database */
    ino_t file;
    off_t size_bytes; /* the database's file only grows */
    int wal_fd;       /* negative: not open */
    int mark_fd;
    struct dv_wal_mark mark;
    /* The two places of the log that tell whether all of it is still there: a cut takes the last
     * frame with it, and another log, or an older copy of this one, has another last frame (its
     * checksum covers all frames before it). SQLite itself writes to neither of them again, until
     * the log is home. */
    unsigned char header[DV_WATCH_HEADER_BYTES];
    unsigned char frame[DV_WATCH_FRAME_BYTES]; /* the last one that was acknowledged */
    bool is_started;
};

/* Starts to watch files that are open now; `mark` describes the log as it was found. */
void dv_store_watch_start(struct dv_store_watch *watch, const struct dv_store_files *files,
                          const struct dv_wal_mark *mark);
void dv_store_watch_stop(struct dv_store_watch *watch); /* a second call does nothing */

/* Fails with DV_DATA_LOSS when writes go nowhere, because somebody else has removed, replaced or
 * cut a file, or has written over the log. It makes a few system calls, none of which waits for the
 * disk. */
DV_CHECKED bool dv_store_watch_check(struct dv_store_watch *watch,
                                     const struct dv_store_files *files, struct dv_err *err);
/* Notes that a commit is durable and that the log now has `n_frames`. Call it after
 * dv_store_watch_check has found nothing. It fails in the same way when the commit is not in the
 * log, and the mark stays as it was. */
DV_CHECKED bool dv_store_watch_commit(struct dv_store_watch *watch,
                                      const struct dv_store_files *files, uint64_t n_frames,
                                      struct dv_err *err);
/* Notes that all of the log is in the database. The last one, before the database is closed, is
 * synced. */
void dv_store_watch_home(struct dv_store_watch *watch, const struct dv_store_files *files);

#endif

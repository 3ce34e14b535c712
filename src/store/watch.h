/* watch.h - whether the files that a store writes are still those that have their names, and the
 * mark of how far its log was acknowledged. */
#ifndef DV_STORE_WATCH_H
#define DV_STORE_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/defs.h"
#include "store/wal.h"

struct dv_err;
struct dv_store_files;

struct dv_store_watch {
    dev_t device; /* of the database */
    ino_t file;
    off_t size_bytes; /* it only grows */
    int wal_fd;       /* negative: not open */
    int mark_fd;
    struct dv_wal_mark mark;
    bool is_started;
};

/* Of files that are open now; `mark` is of the log as it was found. */
void dv_store_watch_start(struct dv_store_watch *watch, const struct dv_store_files *files,
                          const struct dv_wal_mark *mark);
void dv_store_watch_stop(struct dv_store_watch *watch); /* twice is once */

/* DV_DATA_LOSS: what is written goes nowhere, because a file was removed, replaced or cut short by
 * somebody else. Two calls of the system. */
DV_CHECKED bool dv_store_watch_check(struct dv_store_watch *watch,
                                     const struct dv_store_files *files, struct dv_err *err);
/* A commit is durable: the log has so many frames. */
void dv_store_watch_commit(struct dv_store_watch *watch, const struct dv_store_files *files,
                           uint64_t n_frames);
/* All of the log is in the database. For the last time before it is closed: durably. */
void dv_store_watch_home(struct dv_store_watch *watch, const struct dv_store_files *files);

#endif

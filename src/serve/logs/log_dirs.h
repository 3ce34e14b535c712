/* log_dirs.h - who waits for a directory of logs to change. A directory is watched while somebody
 * waits, and not while all who follow its files are reading: writes come by the thousand. */
#ifndef DV_SERVE_LOG_DIRS_H
#define DV_SERVE_LOG_DIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

struct dv_loop;
struct dv_watch;

struct dv_log_dir {
    dv_str path;
    struct dv_list waiting; /* links of those who wait */
    size_t n_users;
    bool is_watched;
    uint64_t n_watches; /* how often it began to be watched */
    char text[];
};

struct dv_log_dirs {
    struct dv_loop *loop;
    /* Runs for each that waits in a directory which has changed; it does not wait any more. */
    void (*changed)(struct dv_link *waiting);
    struct dv_watch *watch; /* NULL: nothing was watched yet, or it cannot be */
    struct dv_map dirs;     /* dv_log_dir, by path */
};

void dv_log_dirs_init(struct dv_log_dirs *dirs, struct dv_loop *loop,
                      void (*changed)(struct dv_link *waiting));
void dv_log_dirs_fini(struct dv_log_dirs *dirs); /* all have left */

/* Joins those who follow files of the directory that this file is in. */
struct dv_log_dir *dv_log_dirs_join(struct dv_log_dirs *dirs, dv_str file);
void dv_log_dirs_leave(struct dv_log_dirs *dirs, struct dv_log_dir *dir);
/* Watches the directory if it can be. Who wants to wait then looks once more, unless the watch, by
 * its number, is older than the last look. */
void dv_log_dirs_watch(struct dv_log_dirs *dirs, struct dv_log_dir *dir);

#endif

/* dir.h - what happens in a directory: by inotify, and by looking now and then for what that
 * misses, such as a directory that is made anew. */
#ifndef DV_LIB_DIR_H
#define DV_LIB_DIR_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "base/str.h"
#include "loop/loop.h"

struct dv_lib_parts;

struct dv_lib_dir {
    struct dv_lib_parts *parts;
    dv_str path;
    struct dv_watch *watch; /* NULL: the system has no more of them */
    bool is_watched;
    struct dv_timer look_timer;
    /* Called when a file has come or gone. An empty name: perhaps something has, so the callee
     * looks. */
    void (*changed)(void *ctx, dv_str name);
    void *ctx;
};

/* Keeps `path`. Watching begins before this returns, so what is looked at afterwards is not
 * missed when it changes. */
void dv_lib_dir_open(struct dv_lib_dir *dir, struct dv_lib_parts *parts, dv_str path,
                     void (*changed)(void *ctx, dv_str name), void *ctx);
void dv_lib_dir_close(struct dv_lib_dir *dir);

/* Identifies the file that a path leads to, to see later whether it was replaced. All zero: there
 * is none. */
struct dv_lib_file {
    dev_t dev;
    ino_t ino;
    struct timespec changed; /* inodes are used again soon; this tells their files apart */
};

/* Looks up the file. False, with all zero: there is none. `path` fits a socket address. */
bool dv_lib_file_look(dv_str path, struct dv_lib_file *file);
/* Compare files by inode alone, or also by the time: for when an event says that something happened
 * to the file. */
bool dv_lib_file_is_same(const struct dv_lib_file *a, const struct dv_lib_file *b);
bool dv_lib_file_is_untouched(const struct dv_lib_file *a, const struct dv_lib_file *b);

#endif

/* watcher_state.h - struct dv_plugin_watcher, which watcher.c, watcher_looks.c and watcher_known.c
 * share. */
#ifndef DV_PLUGIN_WATCHER_STATE_H
#define DV_PLUGIN_WATCHER_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "loop/loop.h"
#include "plugin/plugin_scan.h"
#include "plugin/watcher.h" /* IWYU pragma: export */

struct dv_arena;

/* The limit of paths that wait to be looked at; when more change at once, a scan of everything is
 * cheaper. */
#define DV_PLUGIN_LOOKS_MAX 4096u

enum dv_plugin_look_kind {
    DV_PLUGIN_LOOK_MAKE_ROOT,
    DV_PLUGIN_LOOK_LIST_DIR,  /* watch the directory, then list it */
    DV_PLUGIN_LOOK_LIST_LINK, /* watch and list a directory that a link leads to */
    DV_PLUGIN_LOOK_WATCH_LINK,
    DV_PLUGIN_LOOK_AT, /* look at a path that an event told of */
};

struct dv_plugin_known_dir {
    dv_str path;
    bool is_link;
    char text[];
};

struct dv_plugin_known_socket {
    dv_str path;
    struct dv_plugin_file_id file_id;
    uint64_t scan; /* the latest scan that saw it */
    uint64_t job;  /* the latest job that saw it */
    char text[];
};

struct dv_plugin_watcher {
    struct dv_loop *loop;
    struct dv_plugin_watcher_owner *owner;
    struct dv_watch *watch;
    dv_str root;
    /* Is watched too: a root that is removed while somebody holds it open sends no event. */
    dv_str parent;
    struct dv_map dirs;    /* dv_plugin_known_dir by path */
    struct dv_map sockets; /* dv_plugin_known_socket by path */

    struct dv_list queue; /* of looks, for watcher_looks.c */
    /* Looks of kind DV_PLUGIN_LOOK_LIST_LINK, which come after all others. */
    struct dv_list links;
    struct dv_map looks;        /* looks of kind DV_PLUGIN_LOOK_AT by path */
    struct dv_plugin_scan *job; /* NULL: none runs */
    uint64_t n_jobs;            /* jobs that were started so far */
    bool is_job_stale;
    struct dv_map removed; /* paths that went away while the job runs; the values are not used */
    struct dv_arena *removed_arena;

    uint64_t scan; /* counts scans of everything */
    bool is_scanning;
    bool is_scan_clean;
    bool has_scanned;
    struct dv_err err;
    struct dv_timer retry_timer;
    uint64_t retry_ms;

    bool is_closing;
    unsigned n_open; /* what must end before `closed` runs */
    dv_closed_fn *closed;
    void *closed_ctx;
    char text[]; /* the text of root */
};

/* watcher_looks.c: adds a path to those that wait to be looked at. */
void dv_plugin_looks_add(struct dv_plugin_watcher *watcher, enum dv_plugin_look_kind kind,
                         dv_str path);
void dv_plugin_looks_clear(struct dv_plugin_watcher *watcher);
/* Starts the next job, unless one runs; calls dv_plugin_watcher_scanned when nothing is left. */
void dv_plugin_looks_run(struct dv_plugin_watcher *watcher);

/* watcher_known.c: notes what was found at a path. */
void dv_plugin_known_see(struct dv_plugin_watcher *watcher, const struct dv_plugin_found *found,
                         bool by_event);
void dv_plugin_known_add_dir(struct dv_plugin_watcher *watcher, dv_str path, bool is_link);
/* Notes that whatever was at this path is gone. */
void dv_plugin_known_lose(struct dv_plugin_watcher *watcher, dv_str path);
/* Like dv_plugin_known_lose, for a directory and all that is below it. */
void dv_plugin_known_lose_dir(struct dv_plugin_watcher *watcher, dv_str path);
void dv_plugin_known_lose_unseen(struct dv_plugin_watcher *watcher); /* by the latest scan */
/* Forgets what is known in the directory and was not found by the job that has just listed it. */
void dv_plugin_known_lose_unlisted(struct dv_plugin_watcher *watcher,
                                   const struct dv_plugin_scan *job);
/* Forgets and frees the directory, but not what is in it. */
void dv_plugin_known_forget_dir(struct dv_plugin_watcher *watcher, struct dv_plugin_known_dir *dir);
void dv_plugin_known_fini(struct dv_plugin_watcher *watcher);
bool dv_plugin_is_dot_name(dv_str path); /* its last part begins with "." */

/* watcher.c */
/* Notes that something could not be watched or looked at: everything is scanned again later. */
void dv_plugin_watcher_meet_trouble(struct dv_plugin_watcher *watcher, const struct dv_err *err);
void dv_plugin_watcher_scanned(struct dv_plugin_watcher *watcher);
void dv_plugin_watcher_check_closed(struct dv_plugin_watcher *watcher); /* may free it */

#endif

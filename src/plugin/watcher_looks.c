/* watcher_looks.c - the queue of paths that wait to be looked at, and the jobs that look at them,
 * one at a time. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "plugin/watcher_state.h"

/* How many paths one job looks at: that takes a fraction of a millisecond. */
#define LOOKS_A_JOB 128u
/* The limit of directories below the root; plugins use none or one each. */
#define DIRS_MAX 1024u

struct look {
    struct dv_link link;
    enum dv_plugin_look_kind kind;
    dv_str path;
    char text[];
};

/* ---- the queue ---- */

void dv_plugin_looks_add(struct dv_plugin_watcher *watcher, enum dv_plugin_look_kind kind,
                         dv_str path)
{
    struct look *look;

    if (kind == DV_PLUGIN_LOOK_AT && dv_map_get(&watcher->looks, path))
        return;
    look = dv_alloc(sizeof(*look) + path.n);
    memcpy(look->text, path.p, path.n);
    look->path = (dv_str){look->text, path.n};
    look->kind = kind;
    dv_list_push(kind == DV_PLUGIN_LOOK_LIST_LINK ? &watcher->links : &watcher->queue, &look->link);
    if (kind == DV_PLUGIN_LOOK_AT)
        (void)dv_map_set(&watcher->looks, look->path, look); /* it was not in the map */
}

static void free_look(struct dv_plugin_watcher *watcher, struct look *look)
{
    dv_link_remove(&look->link);
    if (look->kind == DV_PLUGIN_LOOK_AT)
        (void)dv_map_remove(&watcher->looks, look->path); /* it is in the map */
    free(look);
}

void dv_plugin_looks_clear(struct dv_plugin_watcher *watcher)
{
    struct dv_link *link;

    dv_list_move_all(&watcher->queue, &watcher->links);
    while ((link = dv_list_first(&watcher->queue)) != NULL)
        free_look(watcher, DV_CONTAINER(link, struct look, link));
}

/* ---- what a job brings ---- */

/* Whether the path, or a directory that holds it, went away while the job ran: then the job's
 * answer is out of date. */
static bool was_removed(const struct dv_plugin_watcher *watcher, dv_str path)
{
    while (path.n > watcher->root.n) {
        if (dv_map_get(&watcher->removed, path))
            return true;
        while (path.n > 0 && path.p[--path.n] != '/')
            ;
    }
    return false;
}

static void judge_err(struct dv_plugin_watcher *watcher, const struct dv_plugin_scan *job)
{
    if (job->err.code == DV_OK)
        return;
    if (job->kind == DV_PLUGIN_SCAN_LIST && job->err.code == DV_NOT_FOUND &&
        !dv_str_eq(job->paths.v[0], watcher->root))
        dv_plugin_known_lose(watcher, job->paths.v[0]);
    else
        dv_plugin_watcher_meet_trouble(watcher, &job->err);
}

static void on_job(struct dv_work *work, const struct dv_err *err)
{
    struct dv_plugin_scan *job = DV_CONTAINER(work, struct dv_plugin_scan, work);
    struct dv_plugin_watcher *watcher = job->owner;

    assert(!err || watcher->is_closing); /* a job is cancelled only by closing */
    watcher->job = NULL;
    watcher->n_open--;
    if (!watcher->is_closing && !watcher->is_job_stale) {
        judge_err(watcher, job);
        for (size_t i = 0; i < job->found.n; i++)
            if (!was_removed(watcher, job->found.v[i].path))
                dv_plugin_known_see(watcher, &job->found.v[i], job->kind == DV_PLUGIN_SCAN_LOOK);
        if (job->kind == DV_PLUGIN_SCAN_LIST && job->err.code == DV_OK)
            dv_plugin_known_lose_unlisted(watcher, job);
    }
    dv_map_clear(&watcher->removed);
    dv_plugin_scan_free(job);
    if (watcher->is_closing)
        dv_plugin_watcher_check_closed(watcher);
    else
        dv_plugin_looks_run(watcher);
}

/* ---- jobs ---- */

static void start_job(struct dv_plugin_watcher *watcher, struct dv_plugin_scan *job)
{
    job->owner = watcher;
    job->work.done = on_job;
    watcher->job = job;
    watcher->n_jobs++;
    watcher->is_job_stale = false;
    watcher->n_open++;
    dv_arena_reset(watcher->removed_arena);
    dv_work_start(&job->work, watcher->loop);
}

/* Judges why a directory cannot be watched. It is still listed then, from time to time. A directory
 * that is watched by another name was moved, and the event that says so was dropped or is still to
 * come. */
static bool judge_watch_err(struct dv_plugin_watcher *watcher, dv_str path, bool is_link,
                            const struct dv_err *err)
{
    dv_log(DV_LOG_DEBUG, "plugin: directory not watched", DV_F_STR("dir", path), DV_F_ERR(err));
    if (err->code == DV_ALREADY_EXISTS && is_link)
        return false; /* the link leads back to a directory that is watched by another name */
    if (err->code == DV_NOT_FOUND && !dv_str_eq(path, watcher->root))
        return false; /* it is gone, and an event will say so */
    dv_plugin_watcher_meet_trouble(watcher, err);
    return true;
}

/* Watches a directory before it is listed, so that no change falls between. False: it is not to be
 * listed. */
static bool watch_dir(struct dv_plugin_watcher *watcher, dv_str path, bool is_link)
{
    struct dv_err err;

    if (watcher->dirs.n >= DIRS_MAX && !dv_map_get(&watcher->dirs, path)) {
        (void)dv_fail(&err, DV_RESOURCE_EXHAUSTED, "%.*s: %u directories are watched already",
                      DV_FMT(path), DIRS_MAX);
        dv_plugin_watcher_meet_trouble(watcher, &err);
        return false;
    }
    if (dv_str_eq(path, watcher->root) &&
        /* The root's own watch is mostly enough. */
        !dv_watch_add(watcher->watch, watcher->parent, &err))
        dv_log(DV_LOG_DEBUG, "plugin: directory not watched", DV_F_STR("dir", watcher->parent),
               DV_F_ERR(&err));
    if (!dv_watch_add(watcher->watch, path, &err) && !judge_watch_err(watcher, path, is_link, &err))
        return false;
    dv_plugin_known_add_dir(watcher, path, is_link);
    return true;
}

static struct dv_plugin_scan *take_looks(struct dv_plugin_watcher *watcher,
                                         const struct look *first)
{
    struct dv_plugin_scan *job = dv_plugin_scan_new(DV_PLUGIN_SCAN_LOOK, first->path);

    for (size_t n = 1; n < LOOKS_A_JOB; n++) {
        struct dv_link *link = first->link.next;
        struct look *next = DV_CONTAINER(link, struct look, link);

        if (link == &watcher->queue.head || next->kind != DV_PLUGIN_LOOK_AT)
            break;
        dv_plugin_scan_add(job, next->path);
        free_look(watcher, next);
    }
    return job;
}

static void run_look(struct dv_plugin_watcher *watcher, const struct look *look)
{
    switch (look->kind) {
    case DV_PLUGIN_LOOK_MAKE_ROOT:
        start_job(watcher, dv_plugin_scan_new(DV_PLUGIN_SCAN_MAKE, look->path));
        break;
    case DV_PLUGIN_LOOK_LIST_DIR:
    case DV_PLUGIN_LOOK_LIST_LINK:
        if (watch_dir(watcher, look->path, look->kind == DV_PLUGIN_LOOK_LIST_LINK))
            start_job(watcher, dv_plugin_scan_new(DV_PLUGIN_SCAN_LIST, look->path));
        break;
    case DV_PLUGIN_LOOK_WATCH_LINK:
        /* The link is only watched here: its content is not listed. */
        (void)watch_dir(watcher, look->path, true);
        break;
    case DV_PLUGIN_LOOK_AT:
        start_job(watcher, take_looks(watcher, look));
        break;
    }
}

void dv_plugin_looks_run(struct dv_plugin_watcher *watcher)
{
    struct dv_link *link;

    while (!watcher->job && ((link = dv_list_first(&watcher->queue)) != NULL ||
                             (link = dv_list_first(&watcher->links)) != NULL)) {
        struct look *look = DV_CONTAINER(link, struct look, link);

        run_look(watcher, look);
        free_look(watcher, look);
    }
    if (!watcher->job && watcher->is_scanning)
        dv_plugin_watcher_scanned(watcher);
}

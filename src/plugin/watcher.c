#include "plugin/watcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "base/path.h"
#include "plugin/watcher_state.h"

/* The pause after a scan that failed in part; it doubles each time. */
#define RETRY_FIRST_MS 1000u
#define RETRY_MAX_MS 60000u
#define RETRY_JITTER_PER_MILLE 100u

static void rescan(struct dv_plugin_watcher *watcher);

static void on_retry(struct dv_timer *timer)
{
    rescan(DV_CONTAINER(timer, struct dv_plugin_watcher, retry_timer));
}

void dv_plugin_watcher_meet_trouble(struct dv_plugin_watcher *watcher, const struct dv_err *err)
{
    uint64_t delay_ms = dv_jitter(watcher->retry_ms, RETRY_JITTER_PER_MILLE);

    if (!watcher->is_scanning || watcher->is_scan_clean)
        watcher->err = *err; /* the first error of a scan counts */
    watcher->is_scan_clean = false;
    if (dv_timer_is_set(&watcher->retry_timer))
        return;
    dv_timer_start(&watcher->retry_timer, watcher->loop, dv_loop_now_ms(watcher->loop) + delay_ms,
                   on_retry);
    dv_log(DV_LOG_WARN, "plugin: registry not watched wholly; scanning again",
           DV_F_STR("dir", watcher->root), DV_F_CODE(err), DV_F_ERR(err),
           DV_F_U64("retry_ms", delay_ms));
    watcher->retry_ms = dv_u64_min(watcher->retry_ms * 2, RETRY_MAX_MS);
}

/* Everything has been looked at, so what was not seen is not there. */
void dv_plugin_watcher_scanned(struct dv_plugin_watcher *watcher)
{
    watcher->is_scanning = false;
    if (!watcher->is_scan_clean)
        return;
    dv_plugin_known_lose_unseen(watcher);
    watcher->has_scanned = true;
    watcher->retry_ms = RETRY_FIRST_MS;
    (void)dv_succeed(&watcher->err); /* the trouble is over */
    dv_log(DV_LOG_DEBUG, "plugin: registry scanned", DV_F_STR("dir", watcher->root),
           DV_F_U64("sockets", watcher->sockets.n), DV_F_U64("dirs", watcher->dirs.n));
}

/* Scans everything from the beginning, whatever is known of directories; known sockets stay known.
 * Links to directories are listed too, since there is no other way to find what changed in them. */
static void rescan(struct dv_plugin_watcher *watcher)
{
    const struct dv_map_entry *entry;

    dv_timer_cancel(&watcher->retry_timer);
    watcher->scan++;
    watcher->is_scanning = true;
    watcher->is_scan_clean = true;
    watcher->is_job_stale = true;
    dv_map_clear(&watcher->removed);
    dv_plugin_looks_clear(watcher);
    dv_plugin_looks_add(watcher, DV_PLUGIN_LOOK_MAKE_ROOT, watcher->root);
    dv_plugin_looks_add(watcher, DV_PLUGIN_LOOK_LIST_DIR, watcher->root);
    dv_watch_remove(watcher->watch, watcher->parent);
    for (size_t at = 0; (entry = dv_map_next(&watcher->dirs, &at)) != NULL;) {
        struct dv_plugin_known_dir *dir = entry->value;

        if (dir->is_link)
            dv_plugin_looks_add(watcher, DV_PLUGIN_LOOK_LIST_LINK, dir->path);
        dv_plugin_known_forget_dir(watcher, dir);
    }
    dv_plugin_looks_run(watcher);
}

/* ---- events ---- */

static void on_root_gone(struct dv_plugin_watcher *watcher)
{
    dv_log(DV_LOG_WARN, "plugin: registry directory gone; making it again",
           DV_F_STR("dir", watcher->root));
    dv_plugin_known_lose_dir(watcher, watcher->root);
    rescan(watcher);
}

static void on_parent_event(struct dv_plugin_watcher *watcher, const struct dv_watch_event *event)
{
    bool is_ours = dv_str_ends_with(watcher->root, event->name) &&
                   event->name.n + 1 + watcher->parent.n == watcher->root.n;

    if (event->kind == DV_WATCH_DIR_GONE || (event->kind == DV_WATCH_REMOVED && is_ours))
        on_root_gone(watcher);
    else if (event->kind == DV_WATCH_ADDED && is_ours)
        rescan(watcher);
}

static void on_dir_event(struct dv_plugin_watcher *watcher, enum dv_watch_kind kind, dv_str path)
{
    if (kind == DV_WATCH_DIR_GONE && dv_str_eq(path, watcher->root)) {
        on_root_gone(watcher);
        return;
    }
    if (kind == DV_WATCH_DIR_GONE || kind == DV_WATCH_REMOVED)
        dv_plugin_known_lose(watcher, path);
    /* Another directory may have taken the place of one that is gone, and its event may have come
     * before this one. */
    if ((kind == DV_WATCH_DIR_GONE || kind == DV_WATCH_ADDED) && !dv_plugin_is_dot_name(path))
        dv_plugin_looks_add(watcher, DV_PLUGIN_LOOK_AT, path);
    if (watcher->looks.n > DV_PLUGIN_LOOKS_MAX || watcher->removed.n > DV_PLUGIN_LOOKS_MAX)
        rescan(watcher);
    else
        dv_plugin_looks_run(watcher);
}

static void on_event(void *ctx, const struct dv_watch_event *event)
{
    struct dv_plugin_watcher *watcher = ctx;
    struct dv_arena *arena;

    if (event->kind == DV_WATCH_OVERFLOW) {
        dv_log(DV_LOG_WARN, "plugin: inotify events were lost; scanning again",
               DV_F_STR("dir", watcher->root));
        rescan(watcher);
        return;
    }
    if (dv_str_eq(event->dir, watcher->parent)) {
        on_parent_event(watcher, event);
        return;
    }
    arena = dv_arena_new(); /* the event's texts are freed with the watch on its directory */
    if (event->kind == DV_WATCH_DIR_GONE)
        on_dir_event(watcher, event->kind, dv_str_copy(event->dir, arena));
    else
        on_dir_event(watcher, event->kind,
                     dv_str_printf(arena, "%.*s/%.*s", DV_FMT(event->dir), DV_FMT(event->name)));
    dv_arena_free(arena);
}

/* ---- life ---- */

struct dv_plugin_watcher *dv_plugin_watcher_open(struct dv_loop *loop, dv_str root,
                                                 struct dv_plugin_watcher_owner *owner,
                                                 struct dv_err *err)
{
    struct dv_plugin_watcher *watcher = dv_alloc(sizeof(*watcher) + root.n);

    watcher->watch = dv_watch_open(loop, on_event, watcher, err);
    if (!watcher->watch) {
        free(watcher);
        return NULL;
    }
    watcher->n_open = 1;
    memcpy(watcher->text, root.p, root.n);
    watcher->root = (dv_str){watcher->text, root.n};
    watcher->parent = dv_path_dir(watcher->root);
    watcher->loop = loop;
    watcher->owner = owner;
    watcher->retry_ms = RETRY_FIRST_MS;
    dv_map_init(&watcher->dirs);
    dv_map_init(&watcher->sockets);
    dv_map_init(&watcher->looks);
    dv_map_init(&watcher->removed);
    watcher->removed_arena = dv_arena_new();
    dv_list_init(&watcher->queue);
    dv_list_init(&watcher->links);
    rescan(watcher);
    return watcher;
}

void dv_plugin_watcher_check_closed(struct dv_plugin_watcher *watcher)
{
    dv_closed_fn *closed = watcher->closed;
    void *ctx = watcher->closed_ctx;

    if (!watcher->is_closing || watcher->n_open > 0)
        return;
    dv_map_fini(&watcher->removed);
    dv_arena_free(watcher->removed_arena);
    free(watcher);
    if (closed)
        closed(ctx);
}

static void on_watch_closed(void *ctx)
{
    struct dv_plugin_watcher *watcher = ctx;

    watcher->n_open--;
    dv_plugin_watcher_check_closed(watcher);
}

void dv_plugin_watcher_close(struct dv_plugin_watcher *watcher, dv_closed_fn *closed, void *ctx)
{
    watcher->is_closing = true;
    watcher->closed = closed;
    watcher->closed_ctx = ctx;
    dv_timer_cancel(&watcher->retry_timer);
    dv_plugin_looks_clear(watcher);
    dv_plugin_known_fini(watcher);
    dv_map_fini(&watcher->looks);
    if (watcher->job)
        dv_work_cancel(&watcher->job->work);
    dv_watch_close(watcher->watch, on_watch_closed, watcher);
}

bool dv_plugin_watcher_has_scanned(const struct dv_plugin_watcher *watcher)
{
    return watcher->has_scanned;
}

const struct dv_err *dv_plugin_watcher_err(const struct dv_plugin_watcher *watcher)
{
    return &watcher->err;
}

bool dv_plugin_watcher_is_idle(const struct dv_plugin_watcher *watcher)
{
    return !watcher->job && dv_list_is_empty(&watcher->queue) && dv_list_is_empty(&watcher->links);
}

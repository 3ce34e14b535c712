/* watcher_known.c - keeps which sockets and directories are there, as far as scans and events have
 * told. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/path.h"
#include "plugin/info.h"
#include "plugin/watcher_state.h"

bool dv_plugin_is_dot_name(dv_str path)
{
    size_t at = dv_path_dir(path).n + 1;

    return at < path.n && path.p[at] == '.';
}

/* ---- what goes ---- */

static void lose_socket(struct dv_plugin_watcher *watcher, struct dv_plugin_known_socket *socket)
{
    (void)dv_map_remove(&watcher->sockets, socket->path); /* it is in the map */
    watcher->owner->lost(watcher->owner, socket->path);
    free(socket);
}

void dv_plugin_known_forget_dir(struct dv_plugin_watcher *watcher, struct dv_plugin_known_dir *dir)
{
    dv_watch_remove(watcher->watch, dir->path);
    (void)dv_map_remove(&watcher->dirs, dir->path); /* it is in the map */
    free(dir);
}

void dv_plugin_known_lose_dir(struct dv_plugin_watcher *watcher, dv_str path)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&watcher->sockets, &at)) != NULL;)
        if (dv_plugin_is_inside(path, entry->key))
            lose_socket(watcher, entry->value);
    for (size_t at = 0; (entry = dv_map_next(&watcher->dirs, &at)) != NULL;)
        if (dv_str_eq(path, entry->key) || dv_plugin_is_inside(path, entry->key))
            dv_plugin_known_forget_dir(watcher, entry->value);
}

void dv_plugin_known_lose(struct dv_plugin_watcher *watcher, dv_str path)
{
    struct dv_plugin_known_socket *socket = dv_map_get(&watcher->sockets, path);

    if (watcher->job && !watcher->is_job_stale)
        (void)dv_map_set(&watcher->removed, dv_str_copy(path, watcher->removed_arena), watcher);
    if (socket)
        lose_socket(watcher, socket);
    if (dv_map_get(&watcher->dirs, path))
        dv_plugin_known_lose_dir(watcher, path);
}

void dv_plugin_known_lose_unseen(struct dv_plugin_watcher *watcher)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&watcher->sockets, &at)) != NULL;) {
        struct dv_plugin_known_socket *socket = entry->value;

        if (socket->scan != watcher->scan)
            lose_socket(watcher, socket);
    }
}

static bool is_found(const struct dv_plugin_scan *job, dv_str path)
{
    for (size_t i = 0; i < job->found.n; i++)
        if (dv_str_eq(job->found.v[i].path, path))
            return true;
    return false;
}

/* Forgets what a listing did not find. Events of a directory are lost while its watch is renewed,
 * so a listing is the only way to notice what went in that time. */
void dv_plugin_known_lose_unlisted(struct dv_plugin_watcher *watcher,
                                   const struct dv_plugin_scan *job)
{
    const struct dv_map_entry *entry;
    dv_str dir = job->paths.v[0];

    for (size_t at = 0; (entry = dv_map_next(&watcher->sockets, &at)) != NULL;) {
        struct dv_plugin_known_socket *socket = entry->value;

        if (socket->job != watcher->n_jobs && dv_str_eq(dv_path_dir(socket->path), dir))
            lose_socket(watcher, socket);
    }
    for (size_t at = 0; (entry = dv_map_next(&watcher->dirs, &at)) != NULL;) {
        const struct dv_plugin_known_dir *known = entry->value;

        if (!known->is_link && dv_str_eq(dv_path_dir(known->path), dir) &&
            !is_found(job, known->path)) {
            struct dv_arena *arena = dv_arena_new();

            dv_plugin_known_lose_dir(watcher, dv_str_copy(known->path, arena));
            dv_arena_free(arena);
            at = 0; /* begin again: other entries may have gone with it */
        }
    }
}

void dv_plugin_known_fini(struct dv_plugin_watcher *watcher)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&watcher->sockets, &at)) != NULL;)
        free(entry->value);
    for (size_t at = 0; (entry = dv_map_next(&watcher->dirs, &at)) != NULL;)
        free(entry->value);
    dv_map_fini(&watcher->sockets);
    dv_map_fini(&watcher->dirs);
}

/* ---- what comes ---- */

void dv_plugin_known_add_dir(struct dv_plugin_watcher *watcher, dv_str path, bool is_link)
{
    struct dv_plugin_known_dir *dir = dv_map_get(&watcher->dirs, path);

    if (!dir) {
        dir = dv_alloc(sizeof(*dir) + path.n);
        memcpy(dir->text, path.p, path.n);
        dir->path = (dv_str){dir->text, path.n};
        (void)dv_map_set(&watcher->dirs, dir->path, dir); /* it was not in the map */
    }
    dir->is_link = is_link;
}

static bool is_same(const struct dv_plugin_file_id *a, const struct dv_plugin_file_id *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->born_ns == b->born_ns;
}

static struct dv_plugin_known_socket *add_socket(struct dv_plugin_watcher *watcher, dv_str path)
{
    struct dv_plugin_known_socket *socket = dv_alloc(sizeof(*socket) + path.n);

    memcpy(socket->text, path.p, path.n);
    socket->path = (dv_str){socket->text, path.n};
    (void)dv_map_set(&watcher->sockets, socket->path, socket); /* it was not in the map */
    return socket;
}

static void see_socket(struct dv_plugin_watcher *watcher, const struct dv_plugin_found *found)
{
    struct dv_plugin_known_socket *socket = dv_map_get(&watcher->sockets, found->path);
    struct dv_err err;

    if (dv_plugin_is_dot_name(found->path) || !dv_map_get(&watcher->dirs, dv_path_dir(found->path)))
        return; /* a directory that is not known yet is new, and will be listed */
    if (socket && is_same(&socket->file_id, &found->file_id)) {
        socket->scan = watcher->scan;
        socket->job = watcher->n_jobs;
        return;
    }
    if (!watcher->owner->found(watcher->owner, found->path)) {
        (void)dv_fail(&err, DV_RESOURCE_EXHAUSTED, "no room for socket %.*s", DV_FMT(found->path));
        dv_plugin_watcher_meet_trouble(watcher, &err);
        return;
    }
    if (!socket)
        socket = add_socket(watcher, found->path);
    socket->file_id = found->file_id;
    socket->scan = watcher->scan;
    socket->job = watcher->n_jobs;
}

/* Notes a directory that an event told of. One that is known already may have been replaced, and
 * the watch may be on the old one, so it is listed again: its content is then found to be the same,
 * or new. Only an empty directory can be replaced; a link may now lead anywhere. */
static void see_dir(struct dv_plugin_watcher *watcher, const struct dv_plugin_found *found,
                    bool by_event)
{
    const struct dv_plugin_known_dir *dir = dv_map_get(&watcher->dirs, found->path);

    if (dir && !by_event)
        return;
    if (dir && dir->is_link)
        dv_plugin_known_lose_dir(watcher, found->path);
    else if (dir)
        dv_watch_remove(watcher->watch, found->path);
    dv_plugin_looks_add(watcher,
                        found->kind == DV_PLUGIN_FOUND_DIR ? DV_PLUGIN_LOOK_LIST_DIR
                                                           : DV_PLUGIN_LOOK_WATCH_LINK,
                        found->path);
}

void dv_plugin_known_see(struct dv_plugin_watcher *watcher, const struct dv_plugin_found *found,
                         bool by_event)
{
    struct dv_plugin_known_socket *socket;

    if (found->kind == DV_PLUGIN_FOUND_SOCKET) {
        see_socket(watcher, found);
        return;
    }
    if (found->kind == DV_PLUGIN_FOUND_DIR || found->kind == DV_PLUGIN_FOUND_DIR_LINK)
        see_dir(watcher, found, by_event);
    socket = dv_map_get(&watcher->sockets, found->path);
    if (socket) /* something else took the socket's place */
        lose_socket(watcher, socket);
}

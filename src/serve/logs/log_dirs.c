#include "serve/logs/log_dirs.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "loop/loop.h"

void dv_log_dirs_init(struct dv_log_dirs *dirs, struct dv_loop *loop,
                      void (*changed)(struct dv_link *waiting))
{
    *dirs = (struct dv_log_dirs){.loop = loop, .changed = changed};
    dv_map_init(&dirs->dirs);
}

void dv_log_dirs_fini(struct dv_log_dirs *dirs)
{
    if (dirs->watch)
        dv_watch_close(dirs->watch, NULL, NULL);
    dirs->watch = NULL;
    dv_map_fini(&dirs->dirs);
}

static void wake(struct dv_log_dirs *dirs, struct dv_log_dir *dir)
{
    struct dv_link *link;

    while ((link = dv_list_first(&dir->waiting)) != NULL) {
        dv_link_remove(link);
        dirs->changed(link);
    }
}

static void wake_all(struct dv_log_dirs *dirs)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&dirs->dirs, &at)) != NULL;)
        wake(dirs, entry->value);
}

static void on_event(void *ctx, const struct dv_watch_event *event)
{
    struct dv_log_dirs *dirs = ctx;
    struct dv_log_dir *dir;

    if (event->kind == DV_WATCH_OVERFLOW) {
        wake_all(dirs);
        return;
    }
    dir = dv_map_get(&dirs->dirs, event->dir);
    if (!dir)
        return;
    dir->is_watched = false;
    dv_watch_remove(dirs->watch, dir->path);
    wake(dirs, dir);
}

struct dv_log_dir *dv_log_dirs_join(struct dv_log_dirs *dirs, dv_str file)
{
    struct dv_log_dir *dir;
    dv_str path = file;

    while (path.n > 1 && path.p[path.n - 1] != '/')
        path.n--;
    dir = dv_map_get(&dirs->dirs, path);
    if (!dir) {
        dir = dv_alloc(sizeof(*dir) + path.n + 1);
        memcpy(dir->text, path.p, path.n);
        dir->path = (dv_str){dir->text, path.n};
        dv_list_init(&dir->waiting);
        (void)dv_map_set(&dirs->dirs, dir->path, dir); /* there was none */
    }
    dir->n_users++;
    return dir;
}

void dv_log_dirs_leave(struct dv_log_dirs *dirs, struct dv_log_dir *dir)
{
    if (--dir->n_users > 0)
        return;
    if (dir->is_watched)
        dv_watch_remove(dirs->watch, dir->path);
    (void)dv_map_remove(&dirs->dirs, dir->path);
    free(dir);
}

void dv_log_dirs_watch(struct dv_log_dirs *dirs, struct dv_log_dir *dir)
{
    struct dv_err err; /* without a watch there is still the look that comes every second */

    if (dir->is_watched)
        return;
    if (!dirs->watch)
        dirs->watch = dv_watch_open(dirs->loop, on_event, dirs, &err);
    dir->is_watched = dirs->watch && dv_watch_add_writes(dirs->watch, dir->path, &err);
    dir->n_watches += dir->is_watched;
}

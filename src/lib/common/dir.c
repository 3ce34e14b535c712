#include "lib/common/dir.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/log.h"
#include "lib/common/parts.h"

/* How often the directory is looked at, for changes that inotify does not tell. */
#define LOOK_MS 5000u

static void watch_it(struct dv_lib_dir *dir)
{
    struct dv_err err;

    if (!dir->watch || dir->is_watched)
        return;
    dir->is_watched = dv_watch_add(dir->watch, dir->path, &err);
    if (!dir->is_watched)
        dv_log(DV_LOG_DEBUG, "driver: directory cannot be watched yet", DV_F_STR("dir", dir->path),
               DV_F_ERR(&err));
}

static void on_look(struct dv_timer *timer);

static void look_later(struct dv_lib_dir *dir)
{
    struct dv_loop *loop = dir->parts->loop;

    dv_timer_start(&dir->look_timer, loop, dv_loop_now_ms(loop) + LOOK_MS, on_look);
}

static void on_look(struct dv_timer *timer)
{
    struct dv_lib_dir *dir = DV_CONTAINER(timer, struct dv_lib_dir, look_timer);

    watch_it(dir);
    look_later(dir);
    dir->changed(dir->ctx, DV_STR(""));
}

static void on_event(void *ctx, const struct dv_watch_event *event)
{
    struct dv_lib_dir *dir = ctx;

    switch (event->kind) {
    case DV_WATCH_ADDED:
    case DV_WATCH_REMOVED:
        dir->changed(dir->ctx, event->name);
        break;
    case DV_WATCH_DIR_GONE:
        dir->is_watched = false;
        watch_it(dir); /* it may have been replaced already */
        dir->changed(dir->ctx, DV_STR(""));
        break;
    case DV_WATCH_OVERFLOW:
        dir->changed(dir->ctx, DV_STR(""));
        break;
    case DV_WATCH_CHANGED:
        break;
    }
}

void dv_lib_dir_open(struct dv_lib_dir *dir, struct dv_lib_parts *parts, dv_str path,
                     void (*changed)(void *ctx, dv_str name), void *ctx)
{
    struct dv_err err;

    *dir = (struct dv_lib_dir){.parts = parts, .path = path, .changed = changed, .ctx = ctx};
    dir->watch = dv_watch_open(parts->loop, on_event, dir, &err);
    if (dir->watch)
        dv_lib_parts_add(parts);
    else
        dv_log(DV_LOG_WARN, "driver: no watch on the directory; looking now and then",
               DV_F_STR("dir", path), DV_F_U64("look_ms", LOOK_MS), DV_F_ERR(&err));
    watch_it(dir);
    look_later(dir);
}

void dv_lib_dir_close(struct dv_lib_dir *dir)
{
    dv_timer_cancel(&dir->look_timer);
    if (dir->watch)
        dv_watch_close(dir->watch, dv_lib_part_closed, dir->parts);
}

bool dv_lib_file_look(dv_str path, struct dv_lib_file *file)
{
    char text[DV_SOCKET_PATH_MAX + 1];
    struct stat info;

    assert(path.n <= DV_SOCKET_PATH_MAX);
    memcpy(text, path.p, path.n);
    text[path.n] = '\0';
    *file = (struct dv_lib_file){0};
    if (lstat(text, &info) != 0)
        return false;
    *file = (struct dv_lib_file){info.st_dev, info.st_ino, info.st_ctim};
    return true;
}

bool dv_lib_file_is_same(const struct dv_lib_file *a, const struct dv_lib_file *b)
{
    return a->dev == b->dev && a->ino == b->ino;
}

bool dv_lib_file_is_untouched(const struct dv_lib_file *a, const struct dv_lib_file *b)
{
    return dv_lib_file_is_same(a, b) && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

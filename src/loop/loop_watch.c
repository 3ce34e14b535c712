/* loop_watch.c - readiness of descriptors that others own, and watches on directories by inotify. A
 * queue of events that overflowed is told, so that the owner looks at everything once. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <uv.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "loop/loop.h"
#include "loop/uvloop.h"

/* ---- readiness ---- */

struct dv_poll {
    uv_poll_t poll;
    void (*ready)(void *ctx, unsigned events);
    void *ctx;
    dv_closed_fn *closed;
    void *closed_ctx;
};

static void on_poll_closed(uv_handle_t *handle)
{
    struct dv_poll *poll = handle->data;
    dv_closed_fn *closed = poll->closed;
    void *ctx = poll->closed_ctx;

    free(poll);
    if (closed)
        closed(ctx);
}

struct dv_poll *dv_poll_open(struct dv_loop *loop, int fd,
                             void (*ready)(void *ctx, unsigned events), void *ctx,
                             struct dv_err *err)
{
    struct dv_poll *poll = DV_ALLOC(struct dv_poll);
    int status = uv_poll_init(&loop->uv, &poll->poll, fd);

    if (status < 0) { /* libuv has not taken the handle: nothing to close */
        (void)dv_loop_fail_uv(err, status, "watch descriptor %d", fd);
        free(poll);
        return NULL;
    }
    poll->poll.data = poll;
    poll->ready = ready;
    poll->ctx = ctx;
    return poll;
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct dv_poll *poll = handle->data;
    unsigned ready = 0;

    /* libuv reports an error or a hang-up as both: the owner's next read or write tells which. */
    if (status < 0)
        ready = DV_POLL_READ | DV_POLL_WRITE;
    if (events & (UV_READABLE | UV_DISCONNECT))
        ready |= DV_POLL_READ;
    if (events & UV_WRITABLE)
        ready |= DV_POLL_WRITE;
    poll->ready(poll->ctx, ready);
}

void dv_poll_set(struct dv_poll *poll, unsigned events)
{
    int wanted = 0;
    int status;

    if (events & DV_POLL_READ)
        wanted |= UV_READABLE;
    if (events & DV_POLL_WRITE)
        wanted |= UV_WRITABLE;
    status = wanted ? uv_poll_start(&poll->poll, wanted, on_poll) : uv_poll_stop(&poll->poll);
    assert(status == 0); /* fails only when closing */
}

void dv_poll_close(struct dv_poll *poll, dv_closed_fn *closed, void *ctx)
{
    poll->closed = closed;
    poll->closed_ctx = ctx;
    uv_close((uv_handle_t *)&poll->poll, on_poll_closed);
}

/* ---- directories ---- */

struct watched_dir {
    int wd;
    dv_str path;
    char text[];
};

struct dv_watch {
    int fd;
    struct dv_poll *poll;
    void (*event)(void *ctx, const struct dv_watch_event *event);
    void *ctx;
    struct dv_map by_path; /* watched_dir */
    bool is_closing;       /* perhaps by its own callback, while events are handed out */
    dv_closed_fn *closed;
    void *closed_ctx;
};

#define DIR_EVENTS                                                                                 \
    (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_DELETE_SELF |       \
     IN_MOVE_SELF | IN_ONLYDIR)

static const struct {
    uint32_t mask;
    enum dv_watch_kind kind;
} kinds[] = {
    {IN_Q_OVERFLOW,                              DV_WATCH_OVERFLOW},
    {IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT, DV_WATCH_DIR_GONE},
    {IN_CREATE | IN_MOVED_TO,                    DV_WATCH_ADDED   },
    {IN_DELETE | IN_MOVED_FROM,                  DV_WATCH_REMOVED },
    {IN_CLOSE_WRITE | IN_MODIFY,                 DV_WATCH_CHANGED },
};

/* A handful of directories are watched: a walk is shorter than a second index. */
static struct watched_dir *find_wd(struct dv_watch *watch, int wd)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(&watch->by_path, &at)) != NULL) {
        struct watched_dir *dir = entry->value;

        if (dir->wd == wd)
            return dir;
    }
    return NULL;
}

static void forget_dir(struct dv_watch *watch, struct watched_dir *dir)
{
    (void)dv_map_remove(&watch->by_path, dir->path);
    (void)inotify_rm_watch(watch->fd, dir->wd); /* the kernel may have dropped it already */
}

static void hand_out(struct dv_watch *watch, const struct inotify_event *raw)
{
    struct watched_dir *dir = find_wd(watch, raw->wd);
    struct dv_watch_event event = {.is_dir = (raw->mask & IN_ISDIR) != 0};
    size_t kind = 0;

    while (kind < DV_COUNT(kinds) && !(raw->mask & kinds[kind].mask))
        kind++;
    if (kind == DV_COUNT(kinds))
        return; /* IN_IGNORED: the kernel confirms a removal */
    event.kind = kinds[kind].kind;
    if (event.kind != DV_WATCH_OVERFLOW) {
        if (!dir)
            return; /* of a directory that was removed from the watch meanwhile */
        event.dir = dir->path;
        event.name = raw->len ? dv_str_from_c(raw->name) : DV_STR("");
    }
    if (event.kind == DV_WATCH_DIR_GONE)
        forget_dir(watch, dir);
    watch->event(watch->ctx, &event);
    if (event.kind == DV_WATCH_DIR_GONE)
        free(dir);
}

/* Hands out the events of one read. Returns its bytes; 0 when there was nothing. */
static size_t hand_out_some(struct dv_watch *watch)
{
    _Alignas(struct inotify_event) char buf[16384];
    ssize_t got = read(watch->fd, buf, sizeof(buf));

    for (ssize_t at = 0; at < got && !watch->is_closing;) {
        struct inotify_event raw;

        memcpy(&raw, buf + at, sizeof(raw));
        hand_out(watch, (const struct inotify_event *)(void *)(buf + at));
        at += (ssize_t)(sizeof(raw) + raw.len);
    }
    return got > 0 ? (size_t)got : 0;
}

static void on_events(void *ctx, unsigned ready)
{
    (void)ready;
    (void)hand_out_some(ctx); /* the loop comes back for more, so that others get their turn */
}

void dv_watch_drain(struct dv_watch *watch)
{
    int queued = 0;
    size_t got;

    if (ioctl(watch->fd, FIONREAD, &queued) < 0)
        return; /* an inotify descriptor can always tell */
    for (size_t left = (size_t)queued; left > 0 && !watch->is_closing;) {
        got = hand_out_some(watch);
        left = got > 0 && got < left ? left - got : 0;
    }
}

struct dv_watch *dv_watch_open(struct dv_loop *loop,
                               void (*event)(void *ctx, const struct dv_watch_event *event),
                               void *ctx, struct dv_err *err)
{
    struct dv_watch *watch;
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    if (fd < 0) {
        (void)dv_fail_errno(err, errno, "inotify (see fs.inotify.max_user_instances)");
        return NULL;
    }
    watch = DV_ALLOC(struct dv_watch);
    watch->poll = dv_poll_open(loop, fd, on_events, watch, err);
    if (!watch->poll) {
        (void)close(fd); /* nothing was watched */
        free(watch);
        return NULL;
    }
    watch->fd = fd;
    watch->event = event;
    watch->ctx = ctx;
    dv_map_init(&watch->by_path);
    dv_poll_set(watch->poll, DV_POLL_READ);
    return watch;
}

static bool add(struct dv_watch *watch, dv_str path, uint32_t events, struct dv_err *err)
{
    struct watched_dir *dir = dv_map_get(&watch->by_path, path);
    struct watched_dir *same;

    if (dir)
        return true;
    if (path.n >= PATH_MAX || dv_str_find_char(path, '\0') < path.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "watch a directory: bad path of %zu bytes",
                       path.n);
    dir = dv_alloc(sizeof(*dir) + path.n + 1);
    memcpy(dir->text, path.p, path.n);
    dir->path = (dv_str){dir->text, path.n};
    dir->wd = inotify_add_watch(watch->fd, dir->text, events);
    if (dir->wd < 0) {
        (void)dv_fail_errno(err, errno, "watch %s", dir->text);
        free(dir);
        return false;
    }
    same = find_wd(watch, dir->wd);
    if (same) { /* the same directory under another name: the kernel knows it once */
        (void)dv_fail(err, DV_ALREADY_EXISTS, "watch %s: watched already as %s", dir->text,
                      same->text);
        free(dir);
        return false;
    }
    (void)dv_map_set(&watch->by_path, dir->path, dir);
    return true;
}

bool dv_watch_add(struct dv_watch *watch, dv_str path, struct dv_err *err)
{
    return add(watch, path, DIR_EVENTS, err);
}

bool dv_watch_add_writes(struct dv_watch *watch, dv_str path, struct dv_err *err)
{
    return add(watch, path, DIR_EVENTS | IN_MODIFY, err);
}

void dv_watch_remove(struct dv_watch *watch, dv_str path)
{
    struct watched_dir *dir = dv_map_get(&watch->by_path, path);

    if (!dir)
        return;
    forget_dir(watch, dir);
    free(dir);
}

static void on_watch_closed(void *ctx)
{
    struct dv_watch *watch = ctx;
    dv_closed_fn *closed = watch->closed;
    void *closed_ctx = watch->closed_ctx;

    free(watch);
    if (closed)
        closed(closed_ctx);
}

void dv_watch_close(struct dv_watch *watch, dv_closed_fn *closed, void *ctx)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    watch->is_closing = true;
    watch->closed = closed;
    watch->closed_ctx = ctx;
    while ((entry = dv_map_next(&watch->by_path, &at)) != NULL)
        free(entry->value);
    dv_map_fini(&watch->by_path);
    dv_poll_close(watch->poll, on_watch_closed, watch);
    (void)close(watch->fd); /* was only read from */
}

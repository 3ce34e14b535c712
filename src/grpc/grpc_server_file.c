/* grpc_server_file.c - keeps the file of a server's socket in its place. Somebody may remove it, or
 * its directory, while the server runs (a clean-up, a volume that is mounted anew): nobody could
 * connect any more, and the server alone would not notice.
 *
 *     there -- gone, or another file --> made anew: there
 *                                    \-> cannot be made: again after a pause, and at each event
 *
 * Those who are connected stay connected all the while. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/path.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "grpc/grpc_server.h"
#include "loop/loop.h"

/* The pause after the first attempt that failed; it doubles each time. */
#define RETRY_FIRST_MS 500u
#define RETRY_MAX_MS 30000u
#define RETRY_JITTER_PER_MILLE 100u
/* Who removes it again and again gets it back no more often than that. */
#define REMADE_MS 500u
/* How often the file is looked at where its directory cannot be watched. */
#define LOOK_MS 5000u

static void look(struct dv_server *server);

static dv_str dir_of(const struct dv_server *server)
{
    dv_str dir = dv_path_dir(server->path);

    return dir.n > 0                                       ? dir
           : dv_str_starts_with(server->path, DV_STR("/")) ? DV_STR("/")
                                                           : DV_STR(".");
}

static bool is_about(const struct dv_server *server, const struct dv_watch_event *event)
{
    dv_str dir = dv_path_dir(server->path);
    size_t at = dir.n < server->path.n && server->path.p[dir.n] == '/' ? dir.n + 1 : 0;

    return event->kind == DV_WATCH_OVERFLOW || event->kind == DV_WATCH_DIR_GONE ||
           dv_str_eq(event->name, dv_str_slice(server->path, at, server->path.n));
}

static void on_timer(struct dv_timer *timer)
{
    look(DV_CONTAINER(timer, struct dv_server, file.timer));
}

static void look_after(struct dv_server *server, uint64_t pause_ms)
{
    dv_timer_start(&server->file.timer, server->loop, dv_loop_now_ms(server->loop) + pause_ms,
                   on_timer);
}

/* Makes the directory if it was removed, with the mode that it had. Those above it are not ours. */
static bool make_dir(const struct dv_server *server, struct dv_err *err)
{
    char path[DV_SOCKET_PATH_MAX + 1] = "";
    dv_str dir = dir_of(server);

    memcpy(path, dir.p, dir.n); /* shorter than the socket's path, which fits */
    if (mkdir(path, server->file.dir_mode) == 0 || errno == EEXIST)
        return true;
    return dv_fail_errno(err, errno, "make %s", path);
}

static bool make_anew(struct dv_server *server, struct dv_err *err)
{
    struct dv_listener *listener;

    if (!make_dir(server, err))
        return false;
    listener = dv_listener_open(server->loop, server->path, server->options.mode,
                                &server->listener_handler, err);
    if (!listener)
        return false;
    /* The old one is closed only now: its file would otherwise give its number to the new one. */
    dv_listener_close(server->listener, NULL, NULL);
    server->listener = listener;
    return true;
}

/* Watches the directory, again if it is a new one. Without a watch the file is looked at now and
 * then. */
static void watch_dir(struct dv_server *server)
{
    struct dv_err err;

    if (!server->file.watch || !dv_watch_add(server->file.watch, dir_of(server), &err))
        look_after(server, LOOK_MS);
}

static void look(struct dv_server *server)
{
    struct dv_server_file *file = &server->file;
    uint64_t now_ms = dv_loop_now_ms(server->loop);
    struct dv_err err;

    if (dv_listener_is_there(server->listener)) {
        watch_dir(server);
        return;
    }
    if (file->remade_ms > 0 && now_ms - file->remade_ms < REMADE_MS) {
        look_after(server, REMADE_MS);
        return;
    }
    if (!make_anew(server, &err)) {
        look_after(server, dv_jitter(file->retry_ms, RETRY_JITTER_PER_MILLE));
        file->retry_ms = dv_u64_min(file->retry_ms * 2, RETRY_MAX_MS);
        server->options.remade(server->options.ctx, &err);
        return;
    }
    dv_timer_cancel(&file->timer);
    file->retry_ms = RETRY_FIRST_MS;
    file->remade_ms = now_ms;
    watch_dir(server);
    server->options.remade(server->options.ctx, NULL);
}

static void on_event(void *ctx, const struct dv_watch_event *event)
{
    struct dv_server *server = ctx;

    if (is_about(server, event))
        look(server);
}

void dv_server_watch_file(struct dv_server *server)
{
    char path[DV_SOCKET_PATH_MAX + 1] = "";
    dv_str dir = dir_of(server);
    struct dv_err err;
    struct stat info;

    memcpy(path, dir.p, dir.n);
    server->file.dir_mode = stat(path, &info) == 0 ? info.st_mode & 07777u : 0700;
    server->file.retry_ms = RETRY_FIRST_MS;
    server->file.watch = dv_watch_open(server->loop, on_event, server, &err);
    watch_dir(server);
}

void dv_server_unwatch_file(struct dv_server *server)
{
    dv_timer_cancel(&server->file.timer);
    if (server->file.watch)
        dv_watch_close(server->file.watch, NULL, NULL);
    server->file.watch = NULL;
}

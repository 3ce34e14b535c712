/* pod_log.c - answers with a log: parts are read by jobs and sent, as fast as the client takes
 * them; at the end of a log that is followed, until there is more.
 *
 *     READ: a job -> sent -> more? and the client reads? -> READ
 *                         -> at the end -> not followed, or the container has ended -> the end
 *                                       -> another file is there -> READ that
 *                                       -> WAIT: for the directory to change, or a second -> READ
 */
#include "serve/logs/pod_log.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "pod/runner.h"
#include "serve/logs/log_dirs.h"
#include "serve/logs/pod_logs.h"
#include "serve/serve.h"

/* A client that has more than this unread gets no more. */
#define UNSENT_BYTES_MAX (64u * 1024u)
/* How often a log is looked at when nothing tells of a change: its container may have ended. */
#define LOOK_MS 1000u
/* A log is not looked at more often than this, so that what is written a line at a time is read
 * many lines at a time. */
#define PAUSE_MS 20u

static void read_next(struct dv_pod_log *log);

/* ---- the end ---- */

/* Gives everything back when neither the stream nor a job needs it. */
static void check_ended(struct dv_pod_log *log)
{
    struct dv_pod_logs *logs = log->logs;

    if (!log->has_ended || log->is_reading)
        return;
    dv_voldir_log_free(log->read.log);
    if (log->dir)
        dv_log_dirs_leave(&logs->dirs, log->dir);
    dv_arena_free(log->arena);
    dv_link_remove(&log->link);
    logs->n--;
    log->ended(log);
}

static void stop(struct dv_pod_log *log)
{
    log->is_over = true;
    dv_link_remove(&log->wait_link);
    dv_timer_cancel(&log->timer);
}

static void finish(struct dv_pod_log *log)
{
    if (log->is_over)
        return;
    stop(log);
    dv_rest_stream_finish(&log->stream);
}

void dv_pod_log_cancel(struct dv_pod_log *log)
{
    stop(log);
    if (!log->has_ended)
        dv_rest_stream_cancel(&log->stream);
}

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    struct dv_pod_log *log = DV_CONTAINER(stream, struct dv_pod_log, stream);

    (void)err; /* a client that is gone is not worth a log line */
    stop(log);
    log->has_ended = true;
    check_ended(log);
}

/* ---- reading and sending ---- */

/* False: the client is gone, and perhaps the log with it. */
static bool send(struct dv_pod_log *log, dv_str text)
{
    struct dv_err err;

    if (text.n == 0 || dv_rest_stream_send(&log->stream, text, &err))
        return true;
    dv_pod_log_cancel(log);
    return false;
}

static void on_time(struct dv_timer *timer)
{
    read_next(DV_CONTAINER(timer, struct dv_pod_log, timer));
}

static void look_in(struct dv_pod_log *log, uint64_t ms)
{
    struct dv_loop *loop = log->logs->loop;

    dv_timer_start(&log->timer, loop, dv_loop_now_ms(loop) + ms, on_time);
}

static void on_changed(struct dv_link *waiting)
{
    look_in(DV_CONTAINER(waiting, struct dv_pod_log, wait_link), PAUSE_MS);
}

/* Waits for more at the end of the file. What came before the directory was watched is looked for
 * once more. */
static void wait(struct dv_pod_log *log)
{
    dv_log_dirs_watch(&log->logs->dirs, log->dir);
    if (log->dir->is_watched && log->watch != log->dir->n_watches) {
        look_in(log, PAUSE_MS);
        return;
    }
    dv_list_push(&log->dir->waiting, &log->wait_link);
    look_in(log, LOOK_MS);
}

static void on_end_of_file(struct dv_pod_log *log)
{
    if (!log->dir) {
        finish(log);
        return;
    }
    switch (
        dv_podlog_follow_step(&log->follow, dv_pod_log_is_written(log), log->read.is_replaced)) {
    case DV_PODLOG_READ:
        read_next(log);
        return;
    case DV_PODLOG_REOPEN:
        dv_voldir_log_reopen(log->read.log);
        read_next(log);
        return;
    case DV_PODLOG_WAIT:
        wait(log);
        return;
    case DV_PODLOG_STOP:
        finish(log);
        return;
    }
}

static void on_read(struct dv_voldir_read_log *read, const struct dv_err *err)
{
    struct dv_pod_log *log = DV_CONTAINER(read, struct dv_pod_log, read);

    log->is_reading = false;
    if (log->is_over) {
        check_ended(log);
        return;
    }
    if (!send(log, err ? dv_str_from_c(err->msg) : read->text))
        return;
    if (err || read->is_done)
        finish(log);
    else if (read->is_at_end)
        on_end_of_file(log);
    else
        read_next(log);
}

/* Begins to read the next part, now or when the client has read. */
static void read_next(struct dv_pod_log *log)
{
    dv_link_remove(&log->wait_link);
    dv_timer_cancel(&log->timer);
    log->is_held = dv_rest_stream_unsent_bytes(&log->stream) > UNSENT_BYTES_MAX;
    if (log->is_over || log->is_reading || log->is_held)
        return;
    log->is_reading = true;
    log->watch = log->dir && log->dir->is_watched ? log->dir->n_watches : 0;
    dv_voldir_read_log(&log->read, log->logs->loop);
}

static void on_room(struct dv_rest_stream *stream)
{
    struct dv_pod_log *log = DV_CONTAINER(stream, struct dv_pod_log, stream);

    if (log->is_held)
        read_next(log);
}

void dv_pod_log_start(struct dv_pod_logs *logs, struct dv_pod_log *log,
                      const struct dv_pod_log_target *target,
                      const struct dv_pod_log_options *options, struct dv_rest_call *call)
{
    const struct dv_runner *runner = logs->node->runner;

    log->logs = logs;
    log->arena = dv_arena_new();
    log->uid = dv_str_copy(target->uid, log->arena);
    log->id = dv_str_copy(target->id, log->arena);
    log->read = (struct dv_voldir_read_log){
        .done = on_read,
        .log = dv_voldir_log_new(runner ? dv_runner_log_dir(runner) : DV_STR_NONE, target->path,
                                 &options->show),
    };
    if (options->show.is_followed)
        log->dir = dv_log_dirs_join(&logs->dirs, target->path);
    dv_list_push(&logs->all, &log->link);
    logs->n++;
    log->stream.room = on_room;
    log->stream.ended = on_ended;
    dv_rest_stream_start(&log->stream, call, 200);
    if (logs->is_stopped)
        finish(log);
    else
        read_next(log);
}

/* ---- all ---- */

struct dv_pod_logs *dv_pod_logs_new(struct dv_loop *loop, const struct dv_node *node)
{
    struct dv_pod_logs *logs = DV_ALLOC(struct dv_pod_logs);

    logs->loop = loop;
    logs->node = node;
    dv_list_init(&logs->all);
    dv_log_dirs_init(&logs->dirs, loop, on_changed);
    return logs;
}

void dv_pod_logs_stop(struct dv_pod_logs *logs)
{
    struct dv_link *link;

    logs->is_stopped = true;
    DV_LIST_EACH (&logs->all, link)
        finish(DV_CONTAINER(link, struct dv_pod_log, link));
}

void dv_pod_logs_free(struct dv_pod_logs *logs)
{
    if (!logs)
        return;
    dv_log_dirs_fini(&logs->dirs);
    free(logs);
}

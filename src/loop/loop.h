/* loop.h - the event loop: time, deferred work, Unix sockets, worker threads, watches, signals.
 *
 * One loop, one thread. Every function here is called on the loop's thread (dv_async_wake
 * excepted), every callback runs on it (a work job's `run` excepted), and never before the function
 * that started it has returned.
 *
 * A handle is opened and closed; close takes a callback, and the handle's memory is given back
 * just before that runs: touch it no more after calling close. After close no other callback of
 * the handle runs. A callback may close the handle that called it. */
#ifndef DV_LOOP_H
#define DV_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/defs.h"
#include "base/list.h"
#include "base/str.h"

struct dv_arena;
struct dv_clock;
struct dv_err;
struct dv_loop;

/* ---- the loop ---- */

/* `clock` is borrowed for the loop's life; with a virtual one, timers fire when the clock has been
 * turned past them and the loop runs. Sets SIGPIPE to be ignored where it still kills. */
struct dv_loop *dv_loop_new(struct dv_clock *clock, struct dv_err *err);
/* Every handle must have been closed; runs their callbacks that are still due. */
void dv_loop_free(struct dv_loop *loop); /* NULL is fine */

void dv_loop_run(struct dv_loop *loop); /* until dv_loop_stop */
void dv_loop_stop(struct dv_loop *loop);
/* Runs until `is_met(ctx)`, asked after every turn; false when timeout_ms of real time passed
 * first. */
DV_CHECKED bool dv_loop_run_until(struct dv_loop *loop, bool (*is_met)(void *ctx), void *ctx,
                                  uint64_t timeout_ms);

struct dv_clock *dv_loop_clock(struct dv_loop *loop);
uint64_t dv_loop_now_ms(struct dv_loop *loop);
uint64_t dv_loop_now_ns(struct dv_loop *loop);

/* One turn of the loop, without the time it slept: nobody else was served meanwhile. */
struct dv_loop_hold {
    uint64_t wall_ns;
    uint64_t cpu_ns; /* of the loop's thread: less than wall_ns when other processes ran instead */
};

/* Runs after every turn, on the real clock; must return at once. */
typedef void dv_loop_held_fn(void *ctx, const struct dv_loop_hold *hold);
/* Sets the one watcher of holds; NULL: there is none any more. */
void dv_loop_watch_holds(struct dv_loop *loop, dv_loop_held_fn *held, void *ctx);

typedef void dv_closed_fn(void *ctx);

/* ---- timers: zeroed memory is a timer that is not set ---- */

struct dv_timer {
    void (*fire)(struct dv_timer *timer);
    struct dv_loop *loop;
    uint64_t at_ms;
    size_t place; /* in the loop's heap, from 1; 0: not set */
};

/* Fires once, when the loop's clock reaches at_ms; a timer that is set is moved. A timer is not an
 * operation that ends: once cancelled it does not fire, and its memory is the owner's again. */
void dv_timer_start(struct dv_timer *timer, struct dv_loop *loop, uint64_t at_ms,
                    void (*fire)(struct dv_timer *timer));
void dv_timer_cancel(struct dv_timer *timer);
bool dv_timer_is_set(const struct dv_timer *timer);

/* ---- tasks: a callback later in this turn of the loop, or in the next one; zeroed memory is one
 * not posted ---- */

struct dv_task {
    void (*run)(struct dv_task *task);
    struct dv_link link;
};

/* Runs once, after what runs now has returned and before the loop sleeps. Posting a posted task
 * changes nothing. */
void dv_task_post(struct dv_task *task, struct dv_loop *loop, void (*run)(struct dv_task *task));
/* Like dv_task_post, but in the next turn: whoever else has something to do comes first. For work
 * that is done in parts, each of them milliseconds long: when a turn has become long, those that
 * are left wait for the one after it. */
void dv_task_post_next_turn(struct dv_task *task, struct dv_loop *loop,
                            void (*run)(struct dv_task *task));
void dv_task_cancel(struct dv_task *task);

/* ---- work: a job on a worker thread ---- */

struct dv_work {
    void (*run)(struct dv_work *work);                            /* on a worker thread */
    void (*done)(struct dv_work *work, const struct dv_err *err); /* err: NULL, or DV_CANCELLED */
    void *priv;
};

/* `work` is lent until `done` has run. */
void dv_work_start(struct dv_work *work, struct dv_loop *loop);
/* Cancels a job. One that has begun runs to its end, and `done` gets NULL; one that has not is
 * dropped. */
void dv_work_cancel(struct dv_work *work);

/* Frees the arena; a large one on a worker, because giving its memory back to the kernel takes
 * milliseconds. NULL is fine. */
void dv_loop_free_arena(struct dv_loop *loop, struct dv_arena *arena);

/* ---- waking the loop from a thread of one's own ---- */

struct dv_async;

/* `woken` runs on the loop's thread after dv_async_wake; both are kept. */
struct dv_async *dv_async_open(struct dv_loop *loop, void (*woken)(void *ctx), void *ctx,
                               struct dv_err *err);
/* Wakes the loop; the only function here that any thread may call. `woken` sees what the waker did
 * before. Several calls may end in one run of `woken`, never in none. */
void dv_async_wake(struct dv_async *async);
/* No thread may wake it any more. `closed` may be NULL. */
void dv_async_close(struct dv_async *async, dv_closed_fn *closed, void *ctx);

/* ---- streams: connected Unix sockets ---- */

struct dv_stream;

struct dv_stream_handler {
    /* Bytes arrived; borrowed for the call. */
    void (*read)(struct dv_stream_handler *handler, dv_str bytes);
    /* The peer closed (err NULL) or the connection broke. Once; close the stream then. */
    void (*end)(struct dv_stream_handler *handler, const struct dv_err *err);
    /* Called when all that was queued has been given to the kernel. */
    void (*drained)(struct dv_stream_handler *handler);
};

struct dv_peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

/* The longest path that a socket address holds. */
#define DV_SOCKET_PATH_MAX 107u
/* DV_INVALID_ARGUMENT: empty, over-long, or with a NUL byte. */
DV_CHECKED bool dv_socket_path_check(dv_str path, struct dv_err *err);

/* Connects now: Unix sockets do not make one wait. Nothing is read before
 * dv_stream_start. DV_UNAVAILABLE: nobody listens, or the listener's queue is full.
 * DV_NOT_FOUND: no such path. */
struct dv_stream *dv_stream_connect(struct dv_loop *loop, dv_str path, struct dv_err *err);
/* Begins to read; `handler` is kept until close. */
void dv_stream_start(struct dv_stream *stream, struct dv_stream_handler *handler);
/* Hands the bytes to the kernel, as many as it takes now; the rest is copied and queued. A failure
 * arrives as `end`. */
void dv_stream_write(struct dv_stream *stream, dv_str bytes);
size_t dv_stream_queued_bytes(const struct dv_stream *stream);
/* The process at the other end, as the kernel recorded it when it connected. */
struct dv_peer dv_stream_peer(const struct dv_stream *stream);
/* A descriptor of the process at the other end, for the caller to close; -1 where the kernel has
 * none to give (before Linux 6.5), or the process is gone. */
int dv_stream_pidfd(const struct dv_stream *stream);
/* The supplementary groups of the peer, at most `max`; 0 when they are more, or not known. */
size_t dv_stream_groups(const struct dv_stream *stream, gid_t *gids, size_t max);
/* Closes the stream and drops what is queued. `closed` may be NULL. */
void dv_stream_close(struct dv_stream *stream, dv_closed_fn *closed, void *ctx);

/* ---- listeners ---- */

struct dv_listener;

struct dv_listener_handler {
    /* Called with a new stream, which the callee owns and which is not reading yet. */
    void (*accept)(struct dv_listener_handler *handler, struct dv_stream *stream);
    /* Called when a connection could not be accepted; the listener goes on. May be NULL. */
    void (*failed)(struct dv_listener_handler *handler, const struct dv_err *err);
};

/* Listens at `path` with file mode `mode`; `handler` is kept until close. A socket file that
 * nobody answers on is replaced. DV_ALREADY_EXISTS: another process answers there.
 * DV_FAILED_PRECONDITION: something other than a socket is there. */
struct dv_listener *dv_listener_open(struct dv_loop *loop, dv_str path, mode_t mode,
                                     struct dv_listener_handler *handler, struct dv_err *err);
/* Whether dv_listener_open could listen at `path`; fails as it does, and changes nothing. For those
 * who have to do something before anybody can see that they listen. */
DV_CHECKED bool dv_socket_is_free(dv_str path, struct dv_err *err);
/* Finds out who listens at `path`, by a connection that sends nothing. Fails as
 * dv_stream_connect. */
DV_CHECKED bool dv_socket_listener(dv_str path, struct dv_peer *peer, struct dv_err *err);
/* Removes the socket file if it is still the one made by open. `closed` may be NULL. */
/* Whether the socket's file is still the one that dv_listener_open made: not removed, and no other
 * one in its place. */
bool dv_listener_is_there(const struct dv_listener *listener);
void dv_listener_close(struct dv_listener *listener, dv_closed_fn *closed, void *ctx);

/* ---- readiness of a file descriptor that another library owns ---- */

#define DV_POLL_READ 1u
#define DV_POLL_WRITE 2u

struct dv_poll;

/* `ready` runs with the events that hold, again and again while they do; both are kept. */
struct dv_poll *dv_poll_open(struct dv_loop *loop, int fd,
                             void (*ready)(void *ctx, unsigned events), void *ctx,
                             struct dv_err *err);
void dv_poll_set(struct dv_poll *poll, unsigned events); /* 0: none for now */
/* The descriptor may be closed by its owner as soon as this returns. `closed` may be NULL. */
void dv_poll_close(struct dv_poll *poll, dv_closed_fn *closed, void *ctx);

/* ---- watches on directories (inotify) ---- */

enum dv_watch_kind {
    DV_WATCH_ADDED,    /* created or moved in */
    DV_WATCH_REMOVED,  /* removed or moved out */
    DV_WATCH_CHANGED,  /* written and closed */
    DV_WATCH_DIR_GONE, /* the directory itself was removed or moved; it is watched no more */
    DV_WATCH_OVERFLOW, /* events were lost: scan again; no directory, no name */
};

struct dv_watch_event {
    enum dv_watch_kind kind;
    dv_str dir;  /* as given to dv_watch_add */
    dv_str name; /* within it */
    bool is_dir;
};

struct dv_watch;

struct dv_watch *dv_watch_open(struct dv_loop *loop,
                               void (*event)(void *ctx, const struct dv_watch_event *event),
                               void *ctx, struct dv_err *err);
/* Watches one directory, not what is below it. Twice is once. Add first, then scan, so that
 * nothing is missed. */
DV_CHECKED bool dv_watch_add(struct dv_watch *watch, dv_str dir, struct dv_err *err);
/* Like dv_watch_add; every write to a file in the directory is DV_WATCH_CHANGED, too, not only the
 * end of writing. Writes can come by the thousand: remove the directory while nobody waits. */
DV_CHECKED bool dv_watch_add_writes(struct dv_watch *watch, dv_str dir, struct dv_err *err);
void dv_watch_remove(struct dv_watch *watch, dv_str dir);
/* Hands out, before it returns, what the kernel has queued by now: what another process did before
 * it answered us is known then. Not from within `event`. */
void dv_watch_drain(struct dv_watch *watch);
void dv_watch_close(struct dv_watch *watch, dv_closed_fn *closed, void *ctx);

/* ---- signals ---- */

struct dv_signal;

struct dv_signal *dv_signal_open(struct dv_loop *loop, int signum,
                                 void (*raised)(void *ctx, int signum), void *ctx,
                                 struct dv_err *err);
void dv_signal_close(struct dv_signal *signal, dv_closed_fn *closed, void *ctx);

#endif

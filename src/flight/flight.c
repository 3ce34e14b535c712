/* flight.c - the loop's side of the recorder: events become frames in a queue. */
#include "flight/flight.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "flight/flight_files.h"
#include "flight/flight_state.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "record/record.h"

/* What may wait while a disk hangs. */
#define QUEUE_BYTES_MAX (16u * 1024u * 1024u)
/* The beginning of a longer message is kept: ten thousand devices have a tenth of this. */
#define MESSAGE_BYTES_MAX (4u * 1024u * 1024u)

/* How long records are gathered before they are written: a kill loses no more than this. Each write
 * wakes a thread, which costs more than ten records do: a daemon that admits twenty pods a second
 * writes for five at a time. */
#define GATHER_MS 250u
/* The same from a record on that tells of a failure: a kill may be what it is followed by. */
#define GATHER_FAILURE_MS 25u
/* So much is written at once: a busy daemon fills no queue. */
#define GATHER_BYTES (1024u * 1024u)

/* Has the thread write what there is. */
static void rouse(struct dv_flight *flight)
{
    dv_timer_cancel(&flight->gathering);
    (void)pthread_mutex_lock(&flight->lock); /* a plain mutex cannot fail */
    flight->is_due = true;
    (void)pthread_mutex_unlock(&flight->lock);
    (void)pthread_cond_signal(&flight->more);
}

/* By a timer of the loop and not in the thread, which would be woken twice for each write. */
static void on_gathered(struct dv_timer *timer)
{
    rouse(DV_CONTAINER(timer, struct dv_flight, gathering));
}

static bool is_failure(const struct dv_record *record)
{
    return record->status != DV_OK || record->kind == DV_RECORD_CONNECT_FAILED ||
           record->kind == DV_RECORD_DISCONNECTED || record->kind == DV_RECORD_REFUSED;
}

/* Sees to it that what is in the queue is written in time. */
static void schedule(struct dv_flight *flight, const struct dv_record *record, size_t n_queued)
{
    uint64_t at_ms =
        dv_loop_now_ms(flight->loop) + (is_failure(record) ? GATHER_FAILURE_MS : GATHER_MS);

    if (n_queued > GATHER_BYTES)
        rouse(flight);
    else if (!dv_timer_is_set(&flight->gathering) || flight->gathering.at_ms > at_ms)
        dv_timer_start(&flight->gathering, flight->loop, at_ms, on_gathered);
}

/* Adds the record to the queue, or counts it as lost. */
static void put(struct dv_flight *flight, struct dv_record *record)
{
    size_t before;
    size_t n_queued;

    record->wall_ns = dv_clock_wall_ns(dv_loop_clock(flight->loop));
    record->clock_ns = dv_loop_now_ns(flight->loop);
    (void)pthread_mutex_lock(&flight->lock); /* a plain mutex cannot fail */
    before = flight->queue.n;
    dv_record_add(&flight->queue, record);
    if (flight->queue.is_over) {
        dv_buf_cut(&flight->queue, before);
        flight->queue.is_over = false;
        flight->n_lost++;
        flight->lost_bytes += record->message.n;
        flight->stats.n_lost_queue++;
    } else {
        flight->n_queued++;
    }
    n_queued = flight->queue.n;
    (void)pthread_mutex_unlock(&flight->lock);
    schedule(flight, record, n_queued);
}

static enum dv_record_kind kind_of(enum dv_grpc_event_kind kind)
{
    static const enum dv_record_kind kinds[] = {
        [DV_GRPC_CONNECTED] = DV_RECORD_CONNECTED,
        [DV_GRPC_CONNECT_FAILED] = DV_RECORD_CONNECT_FAILED,
        [DV_GRPC_DISCONNECTED] = DV_RECORD_DISCONNECTED,
        [DV_GRPC_CALL] = DV_RECORD_CALL,
        [DV_GRPC_MESSAGE] = DV_RECORD_MESSAGE,
        [DV_GRPC_END] = DV_RECORD_END,
        [DV_GRPC_REFUSED] = DV_RECORD_REFUSED,
    };

    return kinds[kind];
}

static void on_event(struct dv_grpc_observer *observer, const struct dv_grpc_event *event)
{
    struct dv_flight *flight = DV_CONTAINER(observer, struct dv_flight, observer);
    struct dv_record record = {
        .kind = kind_of(event->kind),
        .connection = event->connection,
        .call = event->call,
        .is_served = event->is_served,
        .is_sent = event->is_sent,
        .has_peer = event->peer.pid != 0,
        .pid = event->peer.pid,
        .uid = event->peer.uid,
        .gid = event->peer.gid,
        .has_timeout = event->kind == DV_GRPC_CALL && event->timeout_ms != DV_NO_DEADLINE,
        .timeout_ms = event->timeout_ms,
        .n_tries = event->n_tries,
        .pod_uid = event->pod_uid,
        .container = event->container,
        .name = event->name,
        .socket = event->path,
        .method = event->method,
        .message = event->message,
    };

    if (event->message.n > MESSAGE_BYTES_MAX) {
        record.message.n = MESSAGE_BYTES_MAX;
        record.message_bytes = event->message.n;
    }
    if (event->status) {
        record.status = event->status->code;
        record.text = dv_str_from_c(event->status->msg);
    }
    put(flight, &record);
}

struct dv_grpc_observer *dv_flight_observer(struct dv_flight *flight)
{
    return &flight->observer;
}

void dv_flight_note(struct dv_flight *flight, dv_str text)
{
    struct dv_record record = {.kind = DV_RECORD_NOTE, .text = text};

    put(flight, &record);
}

struct dv_flight_stats dv_flight_stats(struct dv_flight *flight)
{
    struct dv_flight_stats stats;

    (void)pthread_mutex_lock(&flight->lock);
    stats = flight->stats;
    (void)pthread_mutex_unlock(&flight->lock);
    return stats;
}

/* ---- opening and closing ---- */

static void free_flight(struct dv_flight *flight)
{
    dv_flight_files_fini(&flight->files);
    dv_buf_fini(&flight->queue);
    (void)pthread_mutex_destroy(&flight->lock);
    (void)pthread_cond_destroy(&flight->more);
    free(flight);
}

static void on_closed(void *ctx)
{
    struct dv_flight *flight = ctx;
    dv_closed_fn *closed = flight->closed;
    void *closed_ctx = flight->closed_ctx;

    free_flight(flight);
    if (closed)
        closed(closed_ctx);
}

/* The thread has ended: only then it wakes the loop. */
static void on_woken(void *ctx)
{
    struct dv_flight *flight = ctx;

    (void)pthread_join(flight->thread, NULL); /* the thread is ours and joined once */
    dv_async_close(flight->wake, on_closed, flight);
}

/* Starts the thread with all signals blocked: they are the loop's. */
static int start_thread(struct dv_flight *flight)
{
    sigset_t all, old;
    int status;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    status = pthread_create(&flight->thread, NULL, dv_flight_write, flight);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return status;
}

static void init_locks(struct dv_flight *flight)
{
    pthread_condattr_t attributes;

    /* None of these can fail here: the attributes are ours, and glibc takes no memory for them. */
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&flight->more, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&flight->lock, NULL);
}

struct dv_flight *dv_flight_open(struct dv_loop *loop, const struct dv_flight_options *options,
                                 struct dv_err *err)
{
    struct dv_flight *flight = DV_ALLOC(struct dv_flight);
    int status;

    flight->observer.event = on_event;
    flight->loop = loop;
    init_locks(flight);
    dv_buf_init(&flight->queue, QUEUE_BYTES_MAX);
    dv_flight_files_init(&flight->files, options);
    flight->wake = dv_async_open(loop, on_woken, flight, err);
    if (!flight->wake) {
        free_flight(flight);
        return NULL;
    }
    status = start_thread(flight);
    if (status != 0) {
        (void)dv_fail_errno(err, status, "a thread for recordings");
        dv_async_close(flight->wake, on_closed, flight);
        return NULL;
    }
    return flight;
}

void dv_flight_close(struct dv_flight *flight, dv_closed_fn *closed, void *ctx)
{
    flight->closed = closed;
    flight->closed_ctx = ctx;
    dv_timer_cancel(&flight->gathering);
    (void)pthread_mutex_lock(&flight->lock);
    flight->is_closing = true;
    (void)pthread_mutex_unlock(&flight->lock);
    (void)pthread_cond_signal(&flight->more);
}

/* channel.c - calls to a peer: connecting, reconnecting, and the life of a call. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/num.h"
#include "grpc/grpc.h"
#include "grpc/grpc_channel.h"
#include "grpc/grpc_conn.h"
#include "grpc/ids.h"
#include "http2/http2.h"

/* As gRPC's connection back-off has it: 1 s, times 1.6, at most 120 s, a fifth of jitter. */
#define BACKOFF_FIRST_MS 1000u
#define BACKOFF_MAX_MS 120000u
#define BACKOFF_JITTER_PER_MILLE 200u
/* How long the peer may take to send its settings after it accepted the connection. */
#define CONNECT_TIMEOUT_MS 20000u
/* A connection that lasted this long was good, so the next attempt after it comes at once. */
#define GOOD_CONNECTION_MS 1000u
/* More calls than this that wait on one connection are a fault of ours. */
#define WAITING_CALLS_MAX 100000u
/* A call that no peer has begun to serve is tried elsewhere this many times. */
#define TRIES_MAX 4u

static void place(struct dv_call *call);

/* ---- the end of a channel ---- */

static void on_close_task(struct dv_task *task)
{
    struct dv_channel *channel = DV_CONTAINER(task, struct dv_channel, close_task);
    dv_closed_fn *closed = channel->closed;
    void *ctx = channel->closed_ctx;

    if (channel->n_calls > 0 || !dv_list_is_empty(&channel->conns))
        return;
    free(channel);
    if (closed)
        closed(ctx);
}

/* Called whenever something is gone that a closing channel may wait for. */
static void check_closed(struct dv_channel *channel)
{
    if (channel->is_closing)
        dv_task_post(&channel->close_task, channel->loop, on_close_task);
}

/* ---- the end of a call ---- */

static void end_call(struct dv_call *call, const struct dv_err *err)
{
    struct dv_channel *channel = call->priv.channel;

    if (channel->options.observer)
        dv_channel_observe_end(call, err);
    dv_timer_cancel(&call->priv.deadline);
    dv_task_cancel(&call->priv.task);
    dv_link_remove(&call->priv.link);
    dv_h2_msg_unref(call->priv.request);
    call->priv.request = NULL;
    call->priv.is_running = false;
    channel->n_calls--;
    check_closed(channel);
    dv_log(DV_LOG_DEBUG, "grpc: call ended", DV_F_REQUEST(call->priv.id),
           DV_F_STR("peer", channel->options.name), DV_F_C("method", call->method), DV_F_CODE(err),
           DV_F_ERR(err),
           DV_F_U64("us", (dv_loop_now_ns(channel->loop) - call->priv.start_ns) / 1000));
    /* Comes last, because it may free the call. */
    call->done(call, err->code == DV_OK ? NULL : err);
}

static void on_end_task(struct dv_task *task)
{
    struct dv_call *call = DV_CONTAINER(task, struct dv_call, priv.task);
    struct dv_err err = call->priv.end;

    end_call(call, &err);
}

/* Ends the call for a reason of ours; what the peer says from now on does not count. */
static void decide(struct dv_call *call, enum dv_code code, const char *text)
{
    if (!call->priv.is_running || call->priv.end.code != DV_OK)
        return;
    (void)dv_fail(&call->priv.end, code, "%s", text);
    if (call->priv.h2_call) {
        dv_h2_cancel(call->priv.h2_call);
        dv_conn_flush_later(call->priv.conn);
    } else {
        dv_link_remove(&call->priv.link);
        dv_task_post(&call->priv.task, call->priv.channel->loop, on_end_task);
    }
}

static void on_deadline(struct dv_timer *timer)
{
    struct dv_call *call = DV_CONTAINER(timer, struct dv_call, priv.deadline);

    decide(call, DV_DEADLINE_EXCEEDED, "no answer within the deadline");
}

/* ---- what a session tells ---- */

static void on_message(struct dv_h2_handler *handler, struct dv_h2_call *h2_call, dv_str message)
{
    struct dv_call *call = dv_h2_call_ctx(h2_call);

    (void)handler;
    if (call->priv.channel->options.observer)
        dv_channel_observe_message(call, message);
    if (!call->is_stream && dv_h2_call_n_received(h2_call) > 1)
        decide(call, DV_INTERNAL, "the peer sent more than one message");
    else if (call->message)
        call->message(call, message);
}

/* Returns the status that counts, after the checks that a session cannot make. */
static struct dv_err judge_end(struct dv_call *call, struct dv_h2_call *h2_call,
                               const struct dv_h2_end *end)
{
    struct dv_err err = end->status;

    if (call->priv.end.code != DV_OK)
        return call->priv.end;
    if (err.code == DV_OK && !call->is_stream && dv_h2_call_n_received(h2_call) == 0)
        (void)dv_fail(&err, DV_INTERNAL, "the peer said OK without sending a message");
    /* A server may notice the deadline before we do and reset the call: that is reported as the
     * deadline, not as a cancellation. */
    if (err.code == DV_CANCELLED && call->deadline_ms != DV_NO_DEADLINE &&
        dv_loop_now_ms(call->priv.channel->loop) >= call->deadline_ms)
        (void)dv_fail(&err, DV_DEADLINE_EXCEEDED, "no answer within the deadline");
    return err;
}

static void on_ended(struct dv_h2_handler *handler, struct dv_h2_call *h2_call,
                     const struct dv_h2_end *end)
{
    struct dv_call *call = dv_h2_call_ctx(h2_call);
    struct dv_err err = judge_end(call, h2_call, end);

    (void)handler;
    call->priv.h2_call = NULL;
    call->priv.conn = NULL;
    if (end->is_unprocessed && err.code == DV_UNAVAILABLE && call->priv.end.code == DV_OK &&
        call->priv.n_tries < TRIES_MAX)
        place(call);
    else
        end_call(call, &err);
}

/* ---- connecting ---- */

static void on_changed_task(struct dv_task *task)
{
    struct dv_channel *channel = DV_CONTAINER(task, struct dv_channel, changed_task);
    struct dv_err err = channel->err;

    channel->options.changed(channel->options.ctx, channel->state, err.code == DV_OK ? NULL : &err);
}

static void set_state(struct dv_channel *channel, enum dv_channel_state state)
{
    channel->state = state;
    /* A task tells it, because no callback may run within a function of grpc.h. */
    if (channel->options.changed && !channel->is_closing)
        dv_task_post(&channel->changed_task, channel->loop, on_changed_task);
}

static void on_connect_task(struct dv_task *task);

static void on_retry(struct dv_timer *timer)
{
    struct dv_channel *channel = DV_CONTAINER(timer, struct dv_channel, retry_timer);

    set_state(channel, DV_CHANNEL_CONNECTING);
    dv_task_post(&channel->connect_task, channel->loop, on_connect_task);
}

static void fail_waiting(struct dv_channel *channel, bool those_that_wait_too)
{
    struct dv_list all;
    struct dv_link *link;

    dv_list_init(&all);
    /* The list is taken whole, because calls that go on waiting are put back into it. */
    dv_list_move_all(&all, &channel->waiting);
    while ((link = dv_list_shift(&all)) != NULL) {
        struct dv_call *call = DV_CONTAINER(link, struct dv_call, priv.link);

        if (call->waits_for_ready && !those_that_wait_too)
            dv_list_push(&channel->waiting, link);
        else
            decide(call, channel->err.code, channel->err.msg);
    }
}

/* An attempt has failed, or a connection was lost that had hardly begun: the next attempt waits. */
static void fail_attempt(struct dv_channel *channel, const struct dv_err *err)
{
    uint64_t delay_ms = dv_jitter(channel->backoff_ms, BACKOFF_JITTER_PER_MILLE);

    if (channel->options.observer)
        dv_channel_observe(channel, NULL, DV_GRPC_CONNECT_FAILED, err);
    (void)dv_fail(&channel->err, DV_UNAVAILABLE, "%s", err->msg);
    if (channel->options.connects_once) {
        set_state(channel, DV_CHANNEL_LOST);
        fail_waiting(channel, true);
        return;
    }
    channel->backoff_ms =
        dv_u64_min(channel->backoff_ms * 16 / 10, channel->options.backoff_max_ms);
    dv_timer_start(&channel->retry_timer, channel->loop, dv_loop_now_ms(channel->loop) + delay_ms,
                   on_retry);
    set_state(channel, DV_CHANNEL_FAILING);
    dv_log(DV_LOG_DEBUG, "grpc: cannot connect; trying again",
           DV_F_STR("peer", channel->options.name), DV_F_ERR(&channel->err),
           DV_F_U64("retry_ms", delay_ms));
    fail_waiting(channel, false);
}

/* Gives up the current connection for new calls, and makes the next one at once. */
static void reconnect(struct dv_channel *channel)
{
    channel->current = NULL;
    channel->backoff_ms = channel->options.backoff_first_ms;
    set_state(channel, DV_CHANNEL_CONNECTING);
    dv_task_post(&channel->connect_task, channel->loop, on_connect_task);
}

static void begin(struct dv_call *call, struct dv_channel_conn *up)
{
    struct dv_channel *channel = call->priv.channel;
    uint64_t now_ms = dv_loop_now_ms(channel->loop);
    struct dv_h2_start start = {
        .path = dv_str_from_c(call->method),
        .has_timeout = call->deadline_ms != DV_NO_DEADLINE,
    };
    struct dv_err err;

    if (start.has_timeout && now_ms >= call->deadline_ms)
        return; /* its timer is due in this turn */
    if (start.has_timeout)
        start.timeout_ns = dv_u64_min(call->deadline_ms - now_ms, UINT64_MAX / 1000000) * 1000000;
    call->priv.n_tries++;
    call->priv.h2_call = dv_h2_start(up->conn.h2, &start, call->priv.request, call, &err);
    if (!call->priv.h2_call) {
        decide(call, err.code, err.msg);
        return;
    }
    call->priv.conn = &up->conn;
    call->priv.connection = up->id;
    dv_conn_flush_later(&up->conn);
}

static void on_ready(struct dv_h2_handler *handler)
{
    struct dv_channel_conn *up = DV_CONTAINER(handler, struct dv_channel_conn, handler);
    struct dv_channel *channel = up->channel;
    struct dv_link *link;

    dv_timer_cancel(&up->settings_timer);
    up->is_ready = true;
    up->ready_ms = dv_loop_now_ms(channel->loop);
    if (up != channel->current)
        return;
    channel->err.code = DV_OK;
    set_state(channel, DV_CHANNEL_READY);
    while ((link = dv_list_shift(&channel->waiting)) != NULL)
        begin(DV_CONTAINER(link, struct dv_call, priv.link), up);
}

static void on_going_away(struct dv_h2_handler *handler)
{
    struct dv_channel_conn *up = DV_CONTAINER(handler, struct dv_channel_conn, handler);

    if (up == up->channel->current && !up->channel->is_closing &&
        !up->channel->options.connects_once)
        reconnect(up->channel);
}

static void on_gone(struct dv_conn *conn, const struct dv_err *reason)
{
    struct dv_channel_conn *up = DV_CONTAINER(conn, struct dv_channel_conn, conn);
    struct dv_channel *channel = up->channel;

    dv_timer_cancel(&up->settings_timer);
    if (channel->options.observer)
        dv_channel_observe(channel, up, DV_GRPC_DISCONNECTED, reason);
    if (up != channel->current || channel->is_closing)
        return;
    channel->current = NULL;
    if (up->is_ready && !channel->options.connects_once &&
        dv_loop_now_ms(channel->loop) - up->ready_ms >= GOOD_CONNECTION_MS) {
        (void)dv_fail(&channel->err, DV_UNAVAILABLE, "%s", reason->msg);
        reconnect(channel);
    } else {
        fail_attempt(channel, reason);
    }
}

static void on_conn_closed(struct dv_conn *conn)
{
    struct dv_channel_conn *up = DV_CONTAINER(conn, struct dv_channel_conn, conn);
    struct dv_channel *channel = up->channel;

    dv_link_remove(&up->link);
    free(up);
    check_closed(channel);
}

static void on_settings_timeout(struct dv_timer *timer)
{
    struct dv_channel_conn *up = DV_CONTAINER(timer, struct dv_channel_conn, settings_timer);

    dv_conn_break(&up->conn, DV_UNAVAILABLE, "the peer sent no HTTP/2 settings within 20 s");
}

static void on_connect_task(struct dv_task *task)
{
    struct dv_channel *channel = DV_CONTAINER(task, struct dv_channel, connect_task);
    struct dv_h2_options options = dv_h2_default_options(false);
    struct dv_stream *stream;
    struct dv_channel_conn *up;
    struct dv_err err;

    stream = dv_stream_connect(channel->loop, channel->path, &err);
    if (stream && channel->options.allows &&
        !channel->options.allows(channel->options.ctx, stream, &err)) {
        dv_stream_close(stream, NULL, NULL);
        stream = NULL;
    }
    if (!stream) {
        fail_attempt(channel, &err);
        return;
    }
    options.message_bytes_max = channel->options.message_bytes_max;
    options.partial_bytes_max =
        dv_size_max(options.partial_bytes_max, options.message_bytes_max * 2);
    options.calls_max = WAITING_CALLS_MAX;
    up = DV_ALLOC(struct dv_channel_conn);
    up->channel = channel;
    up->conn.gone = on_gone;
    up->conn.closed = on_conn_closed;
    up->handler = (struct dv_h2_handler){
        .message = on_message,
        .ended = on_ended,
        .ready = on_ready,
        .going_away = on_going_away,
    };
    channel->current = up;
    dv_list_push(&channel->conns, &up->link);
    dv_timer_start(&up->settings_timer, channel->loop,
                   dv_loop_now_ms(channel->loop) + CONNECT_TIMEOUT_MS, on_settings_timeout);
    if (channel->options.observer) {
        up->peer = dv_stream_peer(stream);
        up->id = dv_grpc_next_id();
        dv_channel_observe(channel, up, DV_GRPC_CONNECTED, NULL);
    }
    dv_conn_start(&up->conn, channel->loop, stream, &options, &up->handler);
}

/* ---- calls ---- */

/* Puts the call on a connection or into the queue for one, or ends it. */
static void place(struct dv_call *call)
{
    struct dv_channel *channel = call->priv.channel;

    if (channel->is_closing)
        decide(call, DV_CANCELLED, "the channel was closed");
    else if (channel->state == DV_CHANNEL_READY && !dv_conn_is_breaking(&channel->current->conn))
        begin(call, channel->current);
    else if (channel->state == DV_CHANNEL_CONNECTING || channel->state == DV_CHANNEL_READY ||
             (channel->state == DV_CHANNEL_FAILING && call->waits_for_ready))
        dv_list_push(&channel->waiting, &call->priv.link);
    else
        decide(call, DV_UNAVAILABLE, channel->err.msg);
}

void dv_call_start(struct dv_channel *channel, struct dv_call *call, struct dv_h2_msg *request)
{
    assert(!call->priv.is_running && call->done && call->deadline_ms > 0);
    memset(&call->priv, 0, sizeof(call->priv));
    call->priv.channel = channel;
    call->priv.request = request;
    call->priv.id = dv_grpc_next_id();
    call->priv.start_ns = dv_loop_now_ns(channel->loop);
    call->priv.is_running = true;
    channel->n_calls++;
    dv_log(DV_LOG_DEBUG, "grpc: call started", DV_F_REQUEST(call->priv.id),
           DV_F_STR("peer", channel->options.name), DV_F_C("method", call->method),
           DV_F_BOOL("stream", call->is_stream), DV_F_U64("bytes", dv_h2_msg_size(request)));
    if (call->deadline_ms != DV_NO_DEADLINE)
        dv_timer_start(&call->priv.deadline, channel->loop, call->deadline_ms, on_deadline);
    place(call);
    if (channel->options.observer) /* the connection is known now, and nothing has gone out yet */
        dv_channel_observe_start(call);
}

void dv_call_cancel(struct dv_call *call)
{
    decide(call, DV_CANCELLED, "cancelled");
}

/* ---- channels ---- */

struct dv_channel *dv_channel_open(struct dv_loop *loop, dv_str path,
                                   const struct dv_channel_options *options, struct dv_err *err)
{
    struct dv_channel *channel;

    if (!dv_socket_path_check(path, err))
        return NULL;
    channel = dv_alloc(sizeof(*channel) + path.n + options->name.n);
    memcpy(channel->text, path.p, path.n);
    if (options->name.n > 0)
        memcpy(channel->text + path.n, options->name.p, options->name.n);
    channel->loop = loop;
    channel->path = (dv_str){channel->text, path.n};
    channel->options = *options;
    channel->options.name = (dv_str){channel->text + path.n, options->name.n};
    if (channel->options.message_bytes_max == 0)
        channel->options.message_bytes_max = dv_h2_default_options(false).message_bytes_max;
    if (channel->options.backoff_first_ms == 0)
        channel->options.backoff_first_ms = BACKOFF_FIRST_MS;
    if (channel->options.backoff_max_ms == 0)
        channel->options.backoff_max_ms = BACKOFF_MAX_MS;
    dv_list_init(&channel->conns);
    dv_list_init(&channel->waiting);
    reconnect(channel);
    return channel;
}

void dv_channel_close(struct dv_channel *channel, dv_closed_fn *closed, void *ctx)
{
    struct dv_link *link;

    assert(!channel->is_closing);
    channel->is_closing = true;
    channel->closed = closed;
    channel->closed_ctx = ctx;
    dv_timer_cancel(&channel->retry_timer);
    dv_task_cancel(&channel->connect_task);
    dv_task_cancel(&channel->changed_task);
    (void)dv_fail(&channel->err, DV_CANCELLED, "the channel was closed");
    fail_waiting(channel, true);
    DV_LIST_EACH (&channel->conns, link) {
        struct dv_channel_conn *up = DV_CONTAINER(link, struct dv_channel_conn, link);

        dv_timer_cancel(&up->settings_timer);
        dv_conn_break(&up->conn, DV_CANCELLED, "the channel was closed");
    }
    check_closed(channel);
}

enum dv_channel_state dv_channel_state(const struct dv_channel *channel)
{
    return channel->state;
}

void dv_channel_retry_now(struct dv_channel *channel)
{
    if (!dv_timer_is_set(&channel->retry_timer))
        return;
    dv_timer_cancel(&channel->retry_timer);
    on_retry(&channel->retry_timer);
}

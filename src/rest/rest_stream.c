/* rest_stream.c - answers in pieces: what is sent waits here until the connection asks for it. */
#include <assert.h>
#include <string.h>

#include "base/num.h"
#include "rest/rest_server.h"

/* So much is given to the connection at once: a few TLS records. */
#define PIECE_BYTES (64u * 1024u)
/* With less than this left to send, the producer is asked for more, so that a chunk can be filled
 * without a pause. */
#define ROOM_BYTES (16u * 1024u)
/* How much memory a quiet stream keeps for its next piece; a larger buffer is given back. */
#define KEPT_BYTES (16u * 1024u)

size_t dv_rest_call_unsent_bytes(const struct dv_rest_call *call)
{
    return call->unsent.n - call->unsent_at;
}

void dv_rest_stream_end(struct dv_rest_call *call, const struct dv_err *err)
{
    struct dv_rest_stream *stream = call->stream;

    dv_rest_call_log_end(call, call->sent_bytes, err);
    stream->priv = NULL;
    stream->ended(stream, err); /* it may free what holds the stream */
    /* Comes last, because the stream may have been in the call's arena. */
    dv_rest_call_free(call);
}

/* ---- towards the client ---- */

void dv_rest_stream_ask(struct dv_rest_call *call)
{
    if (!call->wants_room || dv_rest_call_unsent_bytes(call) >= ROOM_BYTES || call->is_finished)
        return;
    call->wants_room = false;
    if (call->tunnel && call->tunnel->room)
        call->tunnel->room(call->tunnel);
    else if (call->stream && call->stream->room)
        call->stream->room(call->stream); /* it may send, finish, or cancel */
}

dv_str dv_rest_stream_take(struct dv_rest_call *call)
{
    dv_str bytes = {call->unsent.p + call->unsent_at,
                    dv_size_min(dv_rest_call_unsent_bytes(call), PIECE_BYTES)};

    call->unsent_at += bytes.n;
    call->sent_bytes += bytes.n;
    if (bytes.n > 0 || !call->unsent.p)
        return bytes.n > 0 ? bytes : DV_STR("");
    call->unsent_at = 0;
    if (call->unsent.size > KEPT_BYTES)
        dv_buf_fini(&call->unsent);
    else
        dv_buf_clear(&call->unsent);
    return DV_STR("");
}

/* ---- towards the producer ---- */

static void on_end_task(struct dv_task *task)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_CANCELLED, "the client is gone");
    dv_rest_stream_end(DV_CONTAINER(task, struct dv_rest_call, task), &err);
}

void dv_rest_stream_start(struct dv_rest_stream *stream, struct dv_rest_call *call, unsigned status)
{
    struct dv_buf none;

    assert(call->is_handed && !call->stream);
    call->stream = stream;
    stream->priv = call;
    dv_task_cancel(&call->task); /* from now on `ended` tells everything */
    /* The buffer may grow to twice the limit: what was sent is removed only when it is as much as
     * what was not. */
    dv_buf_init(&call->unsent, call->server->options.unsent_bytes_max * 2);
    dv_buf_init(&none, 0);
    dv_rest_call_answer(call, status, &none);
    if (!call->conn)
        dv_task_post(&call->task, call->server->loop, on_end_task);
}

static void make_room(struct dv_rest_call *call)
{
    if (call->unsent_at == 0 || call->unsent_at < dv_rest_call_unsent_bytes(call))
        return;
    memmove(call->unsent.p, call->unsent.p + call->unsent_at, dv_rest_call_unsent_bytes(call));
    call->unsent.n = dv_rest_call_unsent_bytes(call);
    call->unsent_at = 0;
}

bool dv_rest_call_send(struct dv_rest_call *call, dv_str bytes, struct dv_err *err)
{
    if (!call || dv_rest_call_is_lost(call))
        return dv_fail(err, DV_CANCELLED, "the client is gone");
    assert(!call->is_finished);
    if (bytes.n > call->server->options.unsent_bytes_max - dv_rest_call_unsent_bytes(call))
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "the client has not read the last %zu bytes",
                       dv_rest_call_unsent_bytes(call));
    if (bytes.n == 0)
        return true; /* an empty chunk would mean the end */
    make_room(call);
    dv_buf_add(&call->unsent, bytes);
    call->wants_room = true;
    dv_rest_call_run_later(call);
    return true;
}

bool dv_rest_stream_send(struct dv_rest_stream *stream, dv_str bytes, struct dv_err *err)
{
    return dv_rest_call_send(stream->priv, bytes, err);
}

size_t dv_rest_stream_unsent_bytes(const struct dv_rest_stream *stream)
{
    return stream->priv ? dv_rest_call_unsent_bytes(stream->priv) : 0;
}

void dv_rest_stream_finish(struct dv_rest_stream *stream)
{
    struct dv_rest_call *call = stream->priv;

    if (!call)
        return;
    call->is_finished = true;
    dv_rest_call_run_later(call);
}

void dv_rest_stream_cancel(struct dv_rest_stream *stream)
{
    struct dv_rest_call *call = stream->priv;

    static const char why[] = "the answer was broken off";

    if (call && call->exchange)
        dv_rest_exchange_reset(call->exchange, DV_CANCELLED, why);
    else if (call && call->conn)
        dv_rest_conn_break(call->conn, DV_CANCELLED, why);
}

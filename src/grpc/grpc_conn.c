#include "grpc/grpc_conn.h"

#include <stdatomic.h>
#include <string.h>

#include "base/str.h"
#include "grpc/grpc.h"
#include "grpc/ids.h"
#include "pb/pb.h"

/* Frames are mostly small, so up to this much output of a turn goes out in one write. */
#define CHUNK_BYTES (64u * 1024u)
/* A peer that takes nothing for so long is stuck; what waits for it would wait for ever. */
#define STALL_TIMEOUT_MS 60000u

static void on_broken(struct dv_task *task);

bool dv_conn_is_breaking(const struct dv_conn *conn)
{
    return conn->reason.code != DV_OK;
}

void dv_conn_break(struct dv_conn *conn, enum dv_code code, const char *text)
{
    if (dv_conn_is_breaking(conn))
        return;
    (void)dv_fail(&conn->reason, code == DV_OK ? DV_UNAVAILABLE : code, "%s", text);
    dv_task_post(&conn->break_task, conn->loop, on_broken);
}

static void on_stall(struct dv_timer *timer)
{
    struct dv_conn *conn = DV_CONTAINER(timer, struct dv_conn, stall_timer);

    dv_conn_break(conn, DV_UNAVAILABLE, "the peer has read nothing for 60 s");
}

/* Writes the bytes; false when the kernel did not take them all, and the caller must stop
 * pulling. */
static bool write_out(struct dv_conn *conn, dv_str bytes)
{
    dv_stream_write(conn->stream, bytes);
    if (dv_stream_queued_bytes(conn->stream) == 0)
        return true;
    if (!dv_timer_is_set(&conn->stall_timer))
        dv_timer_start(&conn->stall_timer, conn->loop,
                       dv_loop_now_ms(conn->loop) + STALL_TIMEOUT_MS, on_stall);
    return false;
}

static void break_if_over(struct dv_conn *conn)
{
    const struct dv_err *complaint = dv_h2_complaint(conn->h2);

    if (!dv_h2_is_over(conn->h2))
        return;
    if (complaint)
        dv_conn_break(conn, complaint->code, complaint->msg);
    else
        dv_conn_break(conn, DV_UNAVAILABLE, "the connection was ended");
}

static void flush(struct dv_conn *conn)
{
    char chunk[CHUNK_BYTES];
    size_t n = 0;
    dv_str bytes;

    dv_h2_settle(conn->h2); /* so that a cancelled call ends even when the peer reads nothing */
    if (dv_stream_queued_bytes(conn->stream) > 0)
        return; /* the rest goes out when the stream has drained */
    while (dv_h2_pull(conn->h2, &bytes)) {
        if (n + bytes.n > sizeof(chunk)) {
            dv_stream_write(conn->stream, (dv_str){chunk, n});
            n = 0;
            if (bytes.n > sizeof(chunk) || dv_stream_queued_bytes(conn->stream) > 0) {
                if (!write_out(conn, bytes))
                    return;
                continue;
            }
        }
        memcpy(chunk + n, bytes.p, bytes.n);
        n += bytes.n;
    }
    if (n > 0 && !write_out(conn, (dv_str){chunk, n}))
        return;
    break_if_over(conn);
}

void dv_conn_dismiss(struct dv_conn *conn, enum dv_code code, const char *text)
{
    if (dv_conn_is_breaking(conn))
        return;
    dv_h2_shut_down(conn->h2);
    flush(conn);
    dv_conn_break(conn, code, text);
}

static void on_flush(struct dv_task *task)
{
    struct dv_conn *conn = DV_CONTAINER(task, struct dv_conn, flush_task);

    if (!dv_conn_is_breaking(conn))
        flush(conn);
}

void dv_conn_flush_later(struct dv_conn *conn)
{
    if (!dv_conn_is_breaking(conn))
        dv_task_post(&conn->flush_task, conn->loop, on_flush);
}

static void on_read(struct dv_stream_handler *handler, dv_str bytes)
{
    struct dv_conn *conn = DV_CONTAINER(handler, struct dv_conn, stream_handler);
    struct dv_err err;

    if (dv_conn_is_breaking(conn))
        return;
    if (!dv_h2_receive(conn->h2, bytes, &err)) {
        flush(conn); /* sends a GOAWAY, which may say why */
        dv_conn_break(conn, err.code, err.msg);
        return;
    }
    flush(conn);
}

static void on_end(struct dv_stream_handler *handler, const struct dv_err *err)
{
    struct dv_conn *conn = DV_CONTAINER(handler, struct dv_conn, stream_handler);

    if (err)
        dv_conn_break(conn, DV_UNAVAILABLE, err->msg);
    else
        dv_conn_break(conn, DV_UNAVAILABLE, "the peer closed the connection");
}

static void on_drained(struct dv_stream_handler *handler)
{
    struct dv_conn *conn = DV_CONTAINER(handler, struct dv_conn, stream_handler);

    dv_timer_cancel(&conn->stall_timer);
    dv_conn_flush_later(conn);
}

static void on_closed(void *ctx)
{
    struct dv_conn *conn = ctx;

    conn->closed(conn);
}

static void on_broken(struct dv_task *task)
{
    struct dv_conn *conn = DV_CONTAINER(task, struct dv_conn, break_task);
    struct dv_stream *stream = conn->stream;

    dv_timer_cancel(&conn->stall_timer);
    dv_task_cancel(&conn->flush_task);
    conn->stream = NULL;
    dv_h2_lose(conn->h2, &conn->reason);
    dv_h2_free(conn->h2);
    conn->h2 = NULL;
    dv_stream_close(stream, on_closed, conn);
    conn->gone(conn, &conn->reason);
}

void dv_conn_start(struct dv_conn *conn, struct dv_loop *loop, struct dv_stream *stream,
                   const struct dv_h2_options *options, struct dv_h2_handler *handler)
{
    conn->loop = loop;
    conn->stream = stream;
    conn->stream_handler = (struct dv_stream_handler){on_read, on_end, on_drained};
    conn->h2 = dv_h2_new(options, handler);
    dv_stream_start(stream, &conn->stream_handler);
    dv_conn_flush_later(conn); /* our settings go out before anything has been read */
}

/* ---- for both sides of a call ---- */

uint64_t dv_grpc_next_id(void)
{
    static atomic_uint_fast64_t last;

    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

struct dv_h2_msg *dv_grpc_encode(const struct ProtobufCMessage *message)
{
    size_t n = dv_pb_size(message);
    struct dv_h2_msg *msg = dv_h2_msg_new(n);

    dv_pb_encode(message, dv_h2_msg_data(msg), n);
    return msg;
}

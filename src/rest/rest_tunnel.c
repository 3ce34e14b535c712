/* rest_tunnel.c - connections that have left HTTP: bytes both ways, as they come. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "http1/http1.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "rest/rest_server.h"

/* ---- on the connection ---- */

void dv_rest_tunnel_end(struct dv_rest_call *call, const struct dv_err *err)
{
    struct dv_rest_tunnel *tunnel = call->tunnel;

    dv_rest_call_log_end(call, call->sent_bytes, err);
    tunnel->priv = NULL;
    tunnel->ended(tunnel, err); /* it may free what holds the tunnel */
    /* Comes last, because the tunnel may have been in the call's arena. */
    dv_rest_call_free(call);
}

/* Waits for the client: for as long as it may be silent, or not listen. */
static void expect(struct dv_rest_conn *conn)
{
    uint64_t idle_ms = conn->call->tunnel->idle_ms;
    uint64_t timeout_ms = conn->server->options.timeout_ms;

    if (idle_ms > 0)
        dv_rest_conn_expect(conn, idle_ms);
    else if (dv_rest_io_has_output(conn))
        dv_rest_conn_expect(conn, timeout_ms);
    else
        dv_timer_cancel(&conn->timer);
}

/* Takes what waits to be sent. False: there is nothing. */
static bool send_part(struct dv_rest_conn *conn)
{
    struct dv_rest_call *call = conn->call;
    struct dv_rest_piece *piece;
    dv_str bytes;

    dv_rest_stream_ask(call);
    if (dv_rest_conn_is_breaking(conn))
        return false;
    bytes = dv_rest_stream_take(call);
    if (bytes.n == 0)
        return false;
    piece = dv_rest_piece_new();
    dv_buf_add(&piece->bytes, bytes);
    dv_rest_io_send(conn, piece);
    return true;
}

/* Gives the tunnel what has come. False: there is nothing for now. */
static bool receive(struct dv_rest_conn *conn)
{
    struct dv_rest_tunnel *tunnel = conn->call->tunnel;
    dv_str bytes = dv_str_slice(dv_buf_str(&conn->in), conn->in_at, conn->in.n);
    bool was_kept = bytes.n > 0;
    char *buffer = conn->server->read_buffer;

    if (conn->call->is_paused && conn->is_hung_up)
        dv_rest_conn_break(conn, DV_CANCELLED, "the client is gone");
    if (conn->call->is_paused || conn->call->is_finished)
        return false;
    if (!was_kept)
        bytes = (dv_str){buffer, dv_rest_io_read(conn, buffer, DV_REST_READ_BYTES)};
    if (bytes.n > 0)
        tunnel->received(tunnel, bytes);
    else if (conn->has_ended)
        dv_rest_conn_break(conn, DV_CANCELLED, "the client is gone");
    if (was_kept) { /* they came right behind the request */
        dv_buf_fini(&conn->in);
        conn->in_at = 0;
    }
    return bytes.n > 0;
}

bool dv_rest_tunnel_step(struct dv_rest_conn *conn)
{
    bool had_output = dv_rest_io_has_output(conn);
    bool has_put = dv_rest_io_flush(conn) > 0;
    bool has_got;

    if (!dv_rest_conn_is_breaking(conn) && !dv_rest_io_has_output(conn)) {
        if (send_part(conn))
            return true;
        if (!dv_rest_conn_is_breaking(conn) && conn->call->is_finished) {
            conn->is_cut_off = true; /* the client may still be sending */
            dv_rest_http1_complete(conn);
            return true;
        }
    }
    has_got = !dv_rest_conn_is_breaking(conn) && receive(conn);
    /* A client that sends and does not listen is stuck all the same. */
    if (has_put || (has_got && !had_output))
        expect(conn);
    return has_got;
}

/* ---- towards its owner ---- */

static void add_field(struct dv_rest_call *call, const char *name, dv_str value)
{
    dv_rest_call_add_field(call, dv_str_from_c(name), value);
}

bool dv_rest_call_upgrade(struct dv_rest_call *call, dv_str protocol, struct dv_rest_tunnel *tunnel,
                          struct dv_err *err)
{
    struct dv_rest_conn *conn = call->conn;
    struct dv_h1_answer answer = {.status = 101};
    struct dv_rest_piece *piece;

    assert(call->is_handed && !call->stream && !call->tunnel);
    if (dv_rest_call_is_lost(call))
        return dv_fail(err, DV_CANCELLED, "the client is gone");
    if (!call->may_upgrade)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "unable to upgrade: the request must be HTTP/1.1 and name Upgrade in its "
                       "field Connection");
    add_field(call, "Connection", DV_STR("Upgrade"));
    add_field(call, "Upgrade", protocol);
    answer.fields = call->fields.v;
    answer.n_fields = call->fields.n;
    piece = dv_rest_piece_new();
    (void)dv_h1_print_head(&conn->h1, &answer, &piece->bytes); /* nothing of HTTP follows */
    dv_h1_leave(&conn->h1);
    dv_rest_io_send(conn, piece);
    call->status = answer.status;
    call->tunnel = tunnel;
    tunnel->priv = call;
    dv_buf_init(&call->unsent, call->server->options.unsent_bytes_max * 2);
    conn->phase = DV_REST_TUNNELLED;
    expect(conn);
    dv_rest_conn_run_later(conn);
    return true;
}

bool dv_rest_tunnel_send(struct dv_rest_tunnel *tunnel, dv_str bytes, struct dv_err *err)
{
    return dv_rest_call_send(tunnel->priv, bytes, err);
}

size_t dv_rest_tunnel_unsent_bytes(const struct dv_rest_tunnel *tunnel)
{
    return tunnel->priv ? dv_rest_call_unsent_bytes(tunnel->priv) : 0;
}

void dv_rest_tunnel_pause(struct dv_rest_tunnel *tunnel, bool is_paused)
{
    struct dv_rest_call *call = tunnel->priv;

    if (!call)
        return;
    call->is_paused = is_paused;
    if (!is_paused)
        dv_rest_call_run_later(call);
}

void dv_rest_tunnel_finish(struct dv_rest_tunnel *tunnel)
{
    struct dv_rest_call *call = tunnel->priv;

    if (!call)
        return;
    call->is_finished = true;
    dv_rest_call_run_later(call);
}

void dv_rest_tunnel_cancel(struct dv_rest_tunnel *tunnel)
{
    struct dv_rest_call *call = tunnel->priv;

    if (call && call->conn)
        dv_rest_conn_break(call->conn, DV_CANCELLED, "the connection was broken off");
}

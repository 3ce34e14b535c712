/* rest_http2.c - a connection that speaks HTTP/2: many requests at once, each in an exchange.
 *
 * A connection is IDLE while there is no exchange, HANDED while a handler has a call of one, and
 * ANSWERING otherwise. Its own timer runs while it is idle; each exchange has one for its request
 * and its answer, so that a client which is stuck with one of them loses that one. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "http1/http1.h"
#include "http2/http2_server.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "rest/rest_server.h"

/* So much is gathered from the session for one write: a few TLS records. */
#define PIECE_BYTES (64u * 1024u)
/* So often something is read or written before other connections have their turn. */
#define STEPS_MAX 32

/* One request with its answer. */
struct dv_rest_exchange {
    struct dv_rest_conn *conn;
    struct dv_h2_stream *stream;
    struct dv_rest_call *call; /* NULL: it was refused, or answered in one piece */
    struct dv_link ready_link; /* its stream has something to send */
    struct dv_timer timer;     /* what the client has to do */
    struct dv_err reason;      /* why we have reset it; code DV_OK: we have not */
    bool is_waiting;           /* a handler has the call */
    bool is_answered;
};

static struct dv_rest_conn *conn_of(struct dv_h2_server_handler *handler)
{
    return DV_CONTAINER(handler, struct dv_rest_conn, h2_handler);
}

static void update_phase(struct dv_rest_conn *conn)
{
    if (conn->n_waiting > 0)
        conn->phase = DV_REST_HANDED;
    else
        conn->phase = conn->n_exchanges > 0 ? DV_REST_ANSWERING : DV_REST_IDLE;
}

static void set_waiting(struct dv_rest_exchange *exchange, bool is_waiting)
{
    struct dv_rest_conn *conn = exchange->conn;

    if (exchange->is_waiting == is_waiting)
        return;
    exchange->is_waiting = is_waiting;
    conn->n_waiting = is_waiting ? conn->n_waiting + 1 : conn->n_waiting - 1;
    update_phase(conn);
}

/* ---- what the client has to do ---- */

bool dv_rest_exchange_is_reset(const struct dv_rest_exchange *exchange)
{
    return exchange->reason.code != DV_OK;
}

void dv_rest_exchange_reset(struct dv_rest_exchange *exchange, enum dv_code code, const char *text)
{
    if (dv_rest_exchange_is_reset(exchange))
        return;
    (void)dv_fail(&exchange->reason, code, "%s", text);
    dv_timer_cancel(&exchange->timer);
    dv_h2_stream_reset(exchange->stream);
    dv_rest_conn_run_later(exchange->conn);
}

static void on_timeout(struct dv_timer *timer)
{
    struct dv_rest_exchange *exchange = DV_CONTAINER(timer, struct dv_rest_exchange, timer);
    struct dv_rest_server *server = exchange->conn->server;

    dv_rest_exchange_reset(exchange, DV_DEADLINE_EXCEEDED,
                           exchange->is_answered ? "the client did not take the answer in time"
                                                 : "the request did not arrive in time");
    dv_rest_server_count(server, DV_REST_DROP_SLOW);
    dv_rest_server_complain(server, exchange->conn->peer, &exchange->reason);
}

static void expect(struct dv_rest_exchange *exchange, uint64_t within_ms)
{
    struct dv_loop *loop = exchange->conn->server->loop;

    if (!dv_rest_exchange_is_reset(exchange))
        dv_timer_start(&exchange->timer, loop, dv_u64_add_clamped(dv_loop_now_ms(loop), within_ms),
                       on_timeout);
}

/* ---- answers ---- */

static struct dv_h2_bytes give(struct dv_buf *body)
{
    struct dv_h2_bytes given = {dv_buf_str(body), free, body->p};

    if (body->n == 0)
        return (struct dv_h2_bytes){.bytes = DV_STR("")};
    dv_buf_init(body, body->max); /* the bytes belong to the session now */
    return given;
}

static bool is_close(const struct dv_h1_field *field)
{
    return dv_str_eq_nocase(field->name, DV_STR("Connection")) &&
           dv_str_eq_nocase(field->value, DV_STR("close"));
}

static void answer(struct dv_rest_exchange *exchange, unsigned status,
                   const struct dv_h1_field *fields, size_t n_fields, struct dv_buf *body)
{
    struct dv_rest_conn *conn = exchange->conn;
    bool is_stream = exchange->call && exchange->call->stream;
    uint64_t takes_ms =
        dv_u64_add_clamped(conn->server->options.timeout_ms, body->n / DV_REST_ANSWER_BYTES_PER_MS);
    DV_VEC(struct dv_h2_field) all = {0};
    struct dv_h2_answer answer = {.status = status, .has_more = is_stream};

    *dv_vec_add(&all) = (struct dv_h2_field){DV_STR("date"), dv_rest_server_date(conn->server)};
    for (size_t i = 0; i < n_fields; i++) {
        if (is_close(&fields[i]))
            dv_h2_server_shut_down(conn->h2);
        *dv_vec_add(&all) = (struct dv_h2_field){fields[i].name, fields[i].value};
    }
    answer.fields = all.v;
    answer.n_fields = all.n;
    answer.body = give(body);
    exchange->is_answered = true;
    expect(exchange, takes_ms);
    dv_h2_stream_answer(exchange->stream, &answer);
    dv_vec_fini(&all);
    dv_rest_conn_run_later(conn);
}

void dv_rest_http2_answer(struct dv_rest_call *call, struct dv_buf *body)
{
    struct dv_rest_exchange *exchange = call->exchange;

    if (dv_rest_exchange_is_reset(exchange))
        return;
    answer(exchange, call->status, call->fields.v, call->fields.n, body);
    if (call->stream && dv_str_eq(call->request.method, DV_STR("HEAD"))) {
        call->framing = DV_H1_NO_BODY;
        dv_h2_stream_finish(exchange->stream);
    } else if (call->stream) {
        call->framing = DV_H1_CHUNKS; /* of another kind */
        dv_rest_exchange_run_later(exchange);
    }
}

void dv_rest_exchange_lose_call(struct dv_rest_exchange *exchange)
{
    exchange->call = NULL;
    set_waiting(exchange, false);
}

/* Answers a request without showing it to the handler. A client that still sends it is told to
 * stop. */
static void refuse(struct dv_rest_exchange *exchange, const struct dv_rest_refusal *refusal)
{
    struct dv_rest_server *server = exchange->conn->server;
    struct dv_rest_call *call = exchange->call;
    struct dv_h1_field fields[2] = {{.name = DV_STR("Content-Type")}};
    size_t n_fields = 1;
    struct dv_buf body;

    if (call) {
        call->status = refusal->status;
        dv_rest_call_log_end(call, 0, &refusal->err);
        dv_rest_call_free(call);
    }
    fields[0].value = dv_str_from_c(dv_rest_refusal_print(server, refusal, &body));
    if (refusal->status == 503)
        fields[n_fields++] = (struct dv_h1_field){DV_STR("Retry-After"), DV_STR("1")};
    answer(exchange, refusal->status, fields, n_fields, &body);
    dv_buf_fini(&body);
    if (refusal->closes)
        dv_rest_server_count(server, DV_REST_DROP_BAD_REQUEST);
    dv_rest_server_complain(server, exchange->conn->peer, &refusal->err);
}

/* ---- streamed answers ---- */

void dv_rest_exchange_run_later(struct dv_rest_exchange *exchange)
{
    if (!dv_link_is_in(&exchange->ready_link))
        dv_list_push(&exchange->conn->ready_exchanges, &exchange->ready_link);
    dv_rest_conn_run_later(exchange->conn);
}

/* Gives the session the next part of a stream, once it has sent the one before. */
static void send_part(struct dv_rest_exchange *exchange)
{
    struct dv_rest_call *call = exchange->call;
    struct dv_buf copy;
    struct dv_h2_bytes piece;
    struct dv_err err;
    dv_str bytes;

    if (!call || call->framing == DV_H1_NO_BODY || dv_rest_exchange_is_reset(exchange) ||
        dv_h2_stream_unsent_bytes(exchange->stream) > 0)
        return;
    dv_rest_stream_ask(call);
    if (dv_rest_exchange_is_reset(exchange) || dv_rest_conn_is_breaking(exchange->conn))
        return;
    bytes = dv_rest_stream_take(call);
    if (bytes.n == 0 && !call->is_finished) {
        dv_timer_cancel(&exchange->timer); /* it waits for its producer, not for the client */
        return;
    }
    expect(exchange, exchange->conn->server->options.timeout_ms);
    if (bytes.n == 0) {
        call->framing = DV_H1_NO_BODY; /* all is on its way */
        dv_h2_stream_finish(exchange->stream);
        return;
    }
    dv_buf_init(&copy, bytes.n);
    dv_buf_add(&copy, bytes);
    piece = give(&copy);
    if (!dv_h2_stream_send(exchange->stream, &piece, &err))
        dv_rest_exchange_reset(exchange, DV_CANCELLED, err.msg);
}

static void on_drained(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream)
{
    (void)handler;
    send_part(dv_h2_stream_ctx(stream));
}

/* ---- requests ---- */

static struct dv_rest_exchange *new_exchange(struct dv_rest_conn *conn, struct dv_h2_stream *stream)
{
    struct dv_rest_exchange *exchange = DV_ALLOC(struct dv_rest_exchange);

    exchange->conn = conn;
    exchange->stream = stream;
    dv_h2_stream_set_ctx(stream, exchange);
    conn->n_exchanges++;
    update_phase(conn);
    dv_timer_cancel(&conn->timer); /* the exchange has its own */
    return exchange;
}

static void on_request(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                       const struct dv_h2_http_request *request)
{
    struct dv_rest_conn *conn = conn_of(handler);
    struct dv_rest_exchange *exchange = new_exchange(conn, stream);
    struct dv_rest_call *call = dv_rest_call_new(conn);
    struct dv_rest_refusal refusal = {0};

    exchange->call = call;
    call->exchange = exchange;
    dv_rest_header_take_http2(call, request, &refusal);
    expect(exchange, conn->server->options.timeout_ms); /* for the body */
    if (refusal.status != 0)
        refuse(exchange, &refusal);
    else
        dv_rest_call_begin(call, request->has_body);
}

static void on_body(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream, dv_str part)
{
    struct dv_rest_exchange *exchange = dv_h2_stream_ctx(stream);
    struct dv_rest_refusal refusal = {0};

    (void)handler;
    if (exchange->call && !dv_rest_call_add_body(exchange->call, part, &refusal))
        refuse(exchange, &refusal);
}

static void on_complete(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream)
{
    struct dv_rest_exchange *exchange = dv_h2_stream_ctx(stream);

    (void)handler;
    if (!exchange->call || dv_rest_conn_is_breaking(exchange->conn))
        return;
    dv_timer_cancel(&exchange->timer); /* the client has sent everything */
    set_waiting(exchange, true);
    dv_rest_call_hand_over(exchange->call);
}

static void on_refused(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                       unsigned status, const struct dv_err *err)
{
    struct dv_rest_refusal refusal = {.status = status, .err = *err};

    refuse(new_exchange(conn_of(handler), stream), &refusal);
}

static void on_ended(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                     const struct dv_err *err)
{
    struct dv_rest_exchange *exchange = dv_h2_stream_ctx(stream);
    struct dv_rest_conn *conn = conn_of(handler);
    struct dv_rest_call *call = exchange->call;
    struct dv_err reason;

    if (err)
        reason = dv_rest_exchange_is_reset(exchange) ? exchange->reason
                 : dv_rest_conn_is_breaking(conn)    ? conn->reason
                                                     : *err;
    if (err && err->code == DV_INVALID_ARGUMENT) {
        dv_rest_server_count(conn->server, DV_REST_DROP_BAD_REQUEST);
        dv_rest_server_complain(conn->server, conn->peer, err);
    }
    dv_timer_cancel(&exchange->timer);
    dv_link_remove(&exchange->ready_link);
    dv_rest_exchange_lose_call(exchange);
    conn->n_exchanges--;
    update_phase(conn);
    free(exchange);
    if (call) { /* tells the handler */
        call->exchange = NULL;
        dv_rest_call_detach(call, err ? &reason : NULL);
    }
}

static void on_complaint(struct dv_h2_server_handler *handler, const struct dv_err *err)
{
    struct dv_rest_conn *conn = conn_of(handler);

    dv_rest_server_count(conn->server, DV_REST_DROP_BAD_REQUEST);
    dv_rest_server_complain(conn->server, conn->peer, err);
}

/* ---- the connection ---- */

void dv_rest_http2_begin(struct dv_rest_conn *conn)
{
    const struct dv_h2_server_options options = {
        .header_bytes_max = DV_H1_HEAD_BYTES_MAX,
        .unsent_bytes_max = 2 * (size_t)PIECE_BYTES, /* more waits in the call */
    };

    conn->h2_handler = (struct dv_h2_server_handler){
        .request = on_request,
        .body = on_body,
        .complete = on_complete,
        .refused = on_refused,
        .drained = on_drained,
        .ended = on_ended,
        .complaint = on_complaint,
    };
    dv_list_init(&conn->ready_exchanges);
    conn->h2 = dv_h2_server_new(&options, &conn->h2_handler);
}

/* Takes what the session wants to send. False: nothing for now. */
static bool pull(struct dv_rest_conn *conn)
{
    struct dv_rest_piece *piece = dv_rest_piece_new();
    dv_str bytes;

    while (piece->bytes.n < PIECE_BYTES && dv_h2_server_pull(conn->h2, &bytes))
        dv_buf_add(&piece->bytes, bytes);
    if (piece->bytes.n == 0) {
        dv_rest_piece_free(piece);
        return false;
    }
    dv_rest_io_send(conn, piece);
    return true;
}

/* The client does not speak HTTP/2, or does not behave: it is told why, as far as it listens. */
static void give_up(struct dv_rest_conn *conn, const struct dv_err *err)
{
    if (pull(conn))
        (void)dv_rest_io_flush(conn);
    if (dv_rest_conn_is_breaking(conn))
        return;
    dv_rest_conn_break(conn, err->code, err->msg);
    dv_rest_server_count(conn->server, DV_REST_DROP_BAD_REQUEST);
    dv_rest_server_complain(conn->server, conn->peer, err);
}

static void leave(struct dv_rest_conn *conn)
{
    const struct dv_err *err = dv_h2_server_complaint(conn->h2);

    if (err) {
        give_up(conn, err);
        return;
    }
    dv_rest_io_shut_down(conn);
    dv_rest_conn_break(conn, DV_CANCELLED, "the client has left");
}

static bool receive(struct dv_rest_conn *conn)
{
    char *buffer = conn->server->read_buffer;
    size_t n = dv_rest_io_read(conn, buffer, DV_REST_READ_BYTES);
    uint64_t now_ms = dv_loop_now_ms(conn->server->loop);
    struct dv_err err;

    if (n == 0) {
        if (conn->has_ended)
            dv_rest_conn_break(conn, DV_CANCELLED, "the client is gone");
        return false;
    }
    if (!dv_h2_server_receive(conn->h2, (dv_str){buffer, n}, now_ms, &err))
        give_up(conn, &err);
    return true;
}

/* Does the next thing. False: there is nothing to do for now. */
static bool step(struct dv_rest_conn *conn)
{
    struct dv_link *link;

    (void)dv_rest_io_flush(conn);
    /* A client that does not take what it is sent is not listened to either. */
    if (dv_rest_conn_is_breaking(conn) || dv_rest_io_has_output(conn))
        return false;
    while ((link = dv_list_shift(&conn->ready_exchanges)) != NULL)
        send_part(DV_CONTAINER(link, struct dv_rest_exchange, ready_link));
    if (pull(conn))
        return true;
    if (dv_h2_server_is_over(conn->h2) || (conn->server->is_closing && conn->n_exchanges == 0)) {
        leave(conn);
        return false;
    }
    return receive(conn);
}

void dv_rest_http2_run(struct dv_rest_conn *conn)
{
    int n_steps = 0;

    while (n_steps < STEPS_MAX && !dv_rest_conn_is_breaking(conn) && step(conn))
        n_steps++;
    if (dv_rest_conn_is_breaking(conn))
        return;
    if (conn->n_exchanges == 0 && !dv_timer_is_set(&conn->timer))
        dv_rest_conn_expect_request(conn);
    if (n_steps == STEPS_MAX)
        dv_rest_conn_run_next_turn(conn);
}

void dv_rest_http2_close(struct dv_rest_conn *conn)
{
    dv_h2_server_shut_down(conn->h2);
    dv_rest_conn_run_later(conn);
}

void dv_rest_http2_end(struct dv_rest_conn *conn)
{
    assert(dv_rest_conn_is_breaking(conn));
    dv_h2_server_lose(conn->h2, &conn->reason);
    dv_h2_server_free(conn->h2);
}

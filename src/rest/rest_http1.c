/* rest_http1.c - a connection that speaks HTTP/1.1: one request after the other. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "http1/http1.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "rest/rest_server.h"

/* A body up to this size goes out together with its header, in one write. */
#define SMALL_BYTES (16u * 1024u)
/* So often something is read or written before other connections have their turn. */
#define STEPS_MAX 32
/* A client that was answered before it had sent everything is listened to for so long. */
#define LEAVE_MS 1000u

/* ---- answers ---- */

/* Prints the header of an answer. The body is added when it is small, and is otherwise a piece of
 * its own in *large. */
static struct dv_rest_piece *print_answer(struct dv_rest_conn *conn,
                                          const struct dv_h1_answer *answer, struct dv_buf *body,
                                          enum dv_h1_framing *framing, struct dv_rest_piece **large)
{
    struct dv_rest_piece *piece = dv_rest_piece_new();

    *large = NULL;
    *framing = dv_h1_print_head(&conn->h1, answer, &piece->bytes);
    if (*framing != DV_H1_LENGTH)
        return piece;
    if (body->n <= SMALL_BYTES) {
        dv_buf_add(&piece->bytes, dv_buf_str(body));
        return piece;
    }
    *large = dv_rest_piece_new();
    (*large)->bytes = *body;
    dv_buf_init(body, body->max);
    return piece;
}

void dv_rest_http1_answer(struct dv_rest_call *call, struct dv_buf *body)
{
    struct dv_rest_conn *conn = call->conn;
    struct dv_rest_server *server = call->server;
    struct dv_h1_answer answer = {
        .status = call->status,
        .fields = call->fields.v,
        .n_fields = call->fields.n,
        .date = dv_rest_server_date(server),
        .length = body->n,
        .is_stream = call->stream != NULL,
        .closes = server->is_closing,
    };
    uint64_t takes_ms =
        dv_u64_add_clamped(server->options.timeout_ms, body->n / DV_REST_ANSWER_BYTES_PER_MS);
    struct dv_rest_piece *large;

    dv_rest_io_send(conn, print_answer(conn, &answer, body, &call->framing, &large));
    if (large)
        dv_rest_io_send(conn, large);
    conn->phase = call->stream ? DV_REST_STREAMING : DV_REST_ANSWERING;
    dv_rest_conn_expect(conn, takes_ms);
    dv_rest_conn_run_later(conn);
}

/* Answers a request without showing it to the handler, now or when the rest of it has come. */
static void refuse(struct dv_rest_conn *conn, const struct dv_rest_refusal *refusal)
{
    struct dv_rest_server *server = conn->server;
    bool is_now = refusal->closes || refusal->is_body_unwanted;
    struct dv_h1_field fields[2] = {{.name = DV_STR("Content-Type")}};
    struct dv_h1_answer answer = {
        .status = refusal->status,
        .fields = fields,
        .n_fields = 1,
        .date = dv_rest_server_date(server),
        .closes = is_now || server->is_closing,
    };
    enum dv_h1_framing framing;
    struct dv_rest_piece *large;
    struct dv_buf body;

    fields[0].value = dv_str_from_c(dv_rest_refusal_print(server, refusal, &body));
    if (refusal->status == 503)
        fields[answer.n_fields++] = (struct dv_h1_field){DV_STR("Retry-After"), DV_STR("1")};
    answer.length = body.n;
    conn->refusal = print_answer(conn, &answer, &body, &framing, &large);
    assert(!large);
    dv_buf_fini(&body);
    conn->phase = DV_REST_REFUSED;
    conn->discarded_bytes = 0;
    conn->is_cut_off = is_now;
    if (refusal->closes)
        dv_rest_server_count(server, DV_REST_DROP_BAD_REQUEST);
    dv_rest_server_complain(server, conn->peer, &refusal->err);
}

static void send_refusal(struct dv_rest_conn *conn)
{
    if (dv_rest_conn_is_breaking(conn)) /* by the complaint */
        return;
    dv_rest_io_send(conn, conn->refusal);
    conn->refusal = NULL;
    conn->phase = DV_REST_ANSWERING;
    dv_rest_conn_expect(conn, conn->server->options.timeout_ms);
}

/* Like `refuse`, for a request that has a call, which is freed. */
static void refuse_call(struct dv_rest_conn *conn, const struct dv_rest_refusal *refusal)
{
    struct dv_rest_call *call = conn->call;

    call->status = refusal->status;
    dv_rest_call_log_end(call, 0, &refusal->err);
    dv_rest_call_free(call);
    refuse(conn, refusal);
    if (conn->is_cut_off)
        send_refusal(conn);
}

/* ---- what arrives ---- */

static bool has_body(const struct dv_rest_request *request)
{
    return dv_rest_request_field(request, DV_STR("Content-Length")).n > 0 ||
           dv_rest_request_field(request, DV_STR("Transfer-Encoding")).n > 0;
}

static void take_head(struct dv_rest_conn *conn)
{
    const struct dv_h1_head *head = dv_h1_head(&conn->h1);
    struct dv_rest_call *call = dv_rest_call_new(conn);
    struct dv_rest_refusal refusal = {0};
    struct dv_rest_piece *piece;

    conn->call = call;
    call->may_upgrade = head->wants_to_change;
    dv_rest_header_take(call, head, &refusal);
    dv_rest_conn_expect(conn, conn->server->options.timeout_ms); /* for the body */
    if (refusal.status != 0) {
        refusal.is_body_unwanted = head->expects_a_word || head->length > DV_REST_DISCARD_BYTES_MAX;
        refuse_call(conn, &refusal);
        return;
    }
    if (head->expects_a_word && (head->length > 0 || head->is_chunked)) {
        piece = dv_rest_piece_new();
        dv_h1_print_continue(&piece->bytes);
        dv_rest_io_send(conn, piece);
    }
    dv_rest_call_begin(call, has_body(&call->request));
}

static void take_body(struct dv_rest_conn *conn, dv_str part)
{
    struct dv_rest_refusal refusal = {0};

    if (conn->phase == DV_REST_REFUSED) {
        conn->discarded_bytes += part.n;
        if (conn->discarded_bytes > DV_REST_DISCARD_BYTES_MAX)
            dv_rest_conn_break(conn, DV_CANCELLED, "the client has sent too much");
        return;
    }
    if (!dv_rest_call_add_body(conn->call, part, &refusal))
        refuse_call(conn, &refusal);
}

static void take_end(struct dv_rest_conn *conn)
{
    if (conn->phase == DV_REST_REFUSED) {
        send_refusal(conn);
        return;
    }
    conn->phase = DV_REST_HANDED;
    dv_timer_cancel(&conn->timer); /* the client has sent everything */
    dv_rest_call_hand_over(conn->call);
}

static void take_bad(struct dv_rest_conn *conn)
{
    struct dv_rest_refusal refusal = {.closes = true};
    const struct dv_err *err;

    conn->is_cut_off = true;
    if (conn->phase == DV_REST_REFUSED) { /* it was told what is wrong already */
        send_refusal(conn);
        return;
    }
    refusal.status = dv_h1_refusal(&conn->h1, &err);
    refusal.err = *err;
    if (refusal.status == 0) {
        dv_rest_server_count(conn->server, DV_REST_DROP_BAD_REQUEST);
        dv_rest_conn_break(conn, err->code, err->msg);
        dv_rest_server_complain(conn->server, conn->peer, &conn->reason);
    } else if (conn->call) {
        refuse_call(conn, &refusal);
    } else {
        refuse(conn, &refusal);
        send_refusal(conn);
    }
}

static bool is_sending(const struct dv_rest_conn *conn)
{
    return conn->phase <= DV_REST_REFUSED;
}

/* Takes bytes off the front of *bytes, until they are used up or the client has to wait. */
static void take_bytes(struct dv_rest_conn *conn, dv_str *bytes)
{
    dv_str part;

    while (is_sending(conn) && !dv_rest_conn_is_breaking(conn)) {
        switch (dv_h1_next(&conn->h1, bytes, &part)) {
        case DV_H1_MORE:
            return;
        case DV_H1_LINE:
            conn->phase = DV_REST_ARRIVING;
            dv_rest_conn_expect_header(conn);
            break;
        case DV_H1_HEAD:
            take_head(conn);
            break;
        case DV_H1_BODY:
            take_body(conn, part);
            break;
        case DV_H1_END:
            take_end(conn);
            break;
        case DV_H1_BAD:
            take_bad(conn);
            break;
        }
    }
}

/* Reads on, or goes on with what was read. False: there is nothing to do for now. */
static bool receive(struct dv_rest_conn *conn)
{
    dv_str bytes = dv_str_slice(dv_buf_str(&conn->in), conn->in_at, conn->in.n);
    bool was_kept = bytes.n > 0;

    if (!was_kept) {
        char *buffer = conn->server->read_buffer;

        bytes = (dv_str){buffer, dv_rest_io_read(conn, buffer, DV_REST_READ_BYTES)};
        if (bytes.n == 0) {
            if (conn->has_ended)
                dv_rest_conn_break(conn, DV_CANCELLED, "the client is gone");
            return false;
        }
    }
    take_bytes(conn, &bytes);
    if (was_kept) {
        conn->in_at = conn->in.n - bytes.n;
    } else if (bytes.n > 0) { /* of requests behind this one */
        dv_buf_clear(&conn->in);
        dv_buf_add(&conn->in, bytes);
        conn->in_at = 0;
    }
    if (conn->in_at == conn->in.n && conn->in.p)
        dv_buf_fini(&conn->in);
    return true;
}

/* ---- what goes out ---- */

static void leave(struct dv_rest_conn *conn)
{
    dv_rest_io_shut_down(conn);
    conn->phase = DV_REST_LEAVING;
    conn->discarded_bytes = 0;
    if (!conn->is_cut_off || conn->server->is_closing || conn->has_ended)
        dv_rest_conn_break(conn, DV_CANCELLED, "the answer was the last one");
    else
        dv_rest_conn_expect(conn, LEAVE_MS);
}

void dv_rest_http1_complete(struct dv_rest_conn *conn)
{
    struct dv_rest_call *call = conn->call;

    conn->phase = DV_REST_IDLE;
    conn->call = NULL;
    if (call) /* tells the handler */
        dv_rest_call_detach(call, NULL);
    if (dv_rest_conn_is_breaking(conn))
        return;
    if (dv_h1_closes(&conn->h1) || conn->server->is_closing)
        leave(conn);
    else
        dv_rest_conn_expect_request(conn);
}

/* Sends the next part of a stream. False: it waits for its producer. */
static bool send_part(struct dv_rest_conn *conn)
{
    struct dv_rest_call *call = conn->call;
    struct dv_rest_piece *piece;
    dv_str bytes;

    if (call->framing == DV_H1_NO_BODY) {
        dv_rest_http1_complete(conn);
        return true;
    }
    dv_rest_stream_ask(call);
    if (dv_rest_conn_is_breaking(conn))
        return false;
    bytes = dv_rest_stream_take(call);
    if (bytes.n == 0 && !call->is_finished) {
        dv_timer_cancel(&conn->timer); /* it waits for its producer now, not for the client */
        if (conn->is_hung_up)
            dv_rest_conn_break(conn, DV_CANCELLED, "the client is gone");
        return false;
    }
    piece = dv_rest_piece_new();
    if (call->framing == DV_H1_CHUNKS)
        dv_h1_print_chunk(bytes, &piece->bytes);
    else
        dv_buf_add(&piece->bytes, bytes);
    if (bytes.n == 0) {
        if (call->framing == DV_H1_CHUNKS)
            dv_h1_print_last_chunk(&piece->bytes);
        call->framing = DV_H1_NO_BODY; /* all is on its way */
    }
    dv_rest_io_send(conn, piece);
    dv_rest_conn_expect(conn, conn->server->options.timeout_ms);
    return true;
}

/* Drops what comes from a client that has been answered for the last time. */
static bool discard(struct dv_rest_conn *conn)
{
    size_t n = dv_rest_io_read(conn, conn->server->read_buffer, DV_REST_READ_BYTES);

    conn->discarded_bytes += n;
    if (conn->has_ended || conn->discarded_bytes > DV_REST_DISCARD_BYTES_MAX)
        dv_rest_conn_break(conn, DV_CANCELLED, "the answer was the last one");
    return n > 0;
}

/* Does the next thing. False: there is nothing to do for now. */
static bool step(struct dv_rest_conn *conn)
{
    if (conn->phase == DV_REST_TUNNELLED)
        return dv_rest_tunnel_step(conn);
    if (dv_rest_io_flush(conn) > 0 && conn->phase == DV_REST_STREAMING)
        dv_rest_conn_expect(conn, conn->server->options.timeout_ms);
    if (dv_rest_conn_is_breaking(conn) || dv_rest_io_has_output(conn))
        return false;
    switch (conn->phase) {
    case DV_REST_IDLE:
    case DV_REST_ARRIVING:
    case DV_REST_REFUSED:
        return receive(conn);
    case DV_REST_LEAVING:
        return discard(conn);
    case DV_REST_HANDED: /* who is watched does not get an answer any more, like one of a stream */
        if (conn->is_hung_up && conn->call->gone)
            dv_rest_conn_break(conn, DV_CANCELLED, "the client is gone");
        return false;
    case DV_REST_TUNNELLED:
        return false;
    case DV_REST_ANSWERING:
        dv_rest_http1_complete(conn);
        return true;
    case DV_REST_STREAMING:
        return send_part(conn);
    }
    return false;
}

void dv_rest_http1_run(struct dv_rest_conn *conn)
{
    for (int i = 0; i < STEPS_MAX; i++)
        if (!step(conn) || dv_rest_conn_is_breaking(conn))
            return;
    dv_rest_conn_run_next_turn(conn);
}

void dv_rest_http1_end(struct dv_rest_conn *conn)
{
    struct dv_rest_call *call = conn->call;

    if (conn->phase == DV_REST_ANSWERING)
        dv_log(DV_LOG_DEBUG, "rest: an answer was not taken",
               DV_F_STR("server", conn->server->options.name), DV_F_C("peer", conn->peer),
               DV_F_CODE(&conn->reason), DV_F_ERR(&conn->reason));
    conn->call = NULL;
    dv_rest_piece_free(conn->refusal);
    dv_h1_fini(&conn->h1);
    if (call) /* tells the handler */
        dv_rest_call_detach(call, &conn->reason);
}

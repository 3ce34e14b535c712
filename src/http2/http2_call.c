/* http2_call.c - what calls of clients and servers have in common, which is their life and sending
 * messages; and the answers of servers. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "http2/http2.h"
#include "http2/http2_fields.h"
#include "http2/nv.h"
#include "http2/session.h"

/* The limit of a status text before it is encoded, which may treble it. C-core announces header
 * lists of 8 KiB and turns a longer status into another error. */
#define STATUS_TEXT_BYTES_MAX 1024u

/* ---- life ---- */

struct dv_h2_call *dv_h2_call_new(struct dv_h2 *h2, enum dv_h2_call_state state)
{
    struct dv_h2_call *call = DV_ALLOC(struct dv_h2_call);

    call->h2 = h2;
    call->state = state;
    dv_list_init(&call->queue);
    h2->n_calls++;
    return call;
}

static void drop_queue(struct dv_h2_call *call)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&call->queue)) != NULL) {
        struct dv_h2_outgoing *out = DV_CONTAINER(link, struct dv_h2_outgoing, link);

        dv_h2_msg_unref(out->msg);
        free(out);
    }
    call->h2->unsent_bytes -= call->unsent_bytes;
    call->unsent_bytes = 0;
}

/* Whether the call was cancelled or has ended: `ended` may still ask about it, but nothing more is
 * done with it. */
static bool is_gone(const struct dv_h2_call *call)
{
    return call->state == CALL_ENDING || !dv_link_is_in(&call->link);
}

/* Takes the call out of its list and off its stream. */
static void detach(struct dv_h2_call *call)
{
    struct dv_h2 *h2 = call->h2;

    if (call->stream) {
        /* This fails when the stream is gone already, which is as good. */
        (void)nghttp2_session_set_stream_user_data(h2->ng, call->stream, NULL);
        call->stream = 0;
        h2->n_open--;
    } else if (call->state == CALL_WAITING) {
        h2->n_waiting--;
    }
    dv_link_remove(&call->link);
}

void dv_h2_call_end(struct dv_h2_call *call, const struct dv_h2_end *end)
{
    struct dv_h2 *h2 = call->h2;
    bool is_known = call->state != CALL_BEGUN;

    detach(call);
    drop_queue(call);
    h2->partial_bytes -= call->partial_size;
    h2->n_calls--;
    if (is_known)
        h2->handler->ended(h2->handler, call, end);
    free(call->partial);
    free(call->status_text);
    free(call->saved);
    free(call->end);
    free(call);
    dv_h2_start_waiting(h2);
    dv_h2_leave_if_idle(h2);
}

void dv_h2_call_fail(struct dv_h2_call *call, enum dv_code code, const char *fmt, ...)
{
    struct dv_h2 *h2 = call->h2;
    va_list args;

    if (is_gone(call))
        return;
    call->end = DV_ALLOC(struct dv_h2_end);
    va_start(args, fmt);
    (void)dv_vfail(&call->end->status, code, fmt, args);
    va_end(args);
    call->end->is_unprocessed = call->state == CALL_WAITING;
    if (call->stream) /* fails only when out of memory, which ends nghttp2's session by itself */
        (void)nghttp2_submit_rst_stream(h2->ng, NGHTTP2_FLAG_NONE, call->stream,
                                        code == DV_INTERNAL ? NGHTTP2_PROTOCOL_ERROR
                                                            : NGHTTP2_CANCEL);
    detach(call);
    drop_queue(call);
    call->is_deaf = true;
    call->state = call->state == CALL_BEGUN ? CALL_BEGUN : CALL_ENDING;
    dv_list_push(&h2->ending, &call->link);
}

void dv_h2_settle(struct dv_h2 *h2)
{
    struct dv_link *link;

    if (h2->owes_going_away) {
        h2->owes_going_away = false;
        if (h2->handler->going_away)
            h2->handler->going_away(h2->handler);
    }
    while ((link = dv_list_first(&h2->ending)) != NULL) {
        struct dv_h2_call *call = DV_CONTAINER(link, struct dv_h2_call, link);
        struct dv_h2_end end = *call->end;

        dv_h2_call_end(call, &end);
    }
}

void dv_h2_cancel(struct dv_h2_call *call)
{
    dv_h2_call_fail(call, DV_CANCELLED, "cancelled");
}

/* ---- sending ---- */

/* Copies as much of the queue as fits. */
static size_t copy_queue(struct dv_h2_call *call, uint8_t *buf, size_t size)
{
    struct dv_link *link;
    size_t n = 0;

    while (n < size && (link = dv_list_first(&call->queue)) != NULL) {
        struct dv_h2_outgoing *out = DV_CONTAINER(link, struct dv_h2_outgoing, link);
        size_t part = dv_size_min(size - n, out->msg->n - call->sent_of_first);

        memcpy(buf + n, out->msg->bytes + call->sent_of_first, part);
        n += part;
        call->sent_of_first += part;
        if (call->sent_of_first < out->msg->n)
            break;
        dv_link_remove(link);
        dv_h2_msg_unref(out->msg);
        free(out);
        call->sent_of_first = 0;
    }
    call->unsent_bytes -= n;
    call->h2->unsent_bytes -= n;
    return n;
}

static void submit_trailers(struct dv_h2_call *call)
{
    char code[12];
    int n_code = snprintf(code, sizeof(code), "%u", (unsigned)call->code);
    nghttp2_nv fields[2];
    size_t n = 0;

    fields[n++] = variable(DV_STR("grpc-status"), (dv_str){code, (size_t)n_code});
    if (call->status_text)
        fields[n++] = variable(DV_STR("grpc-message"), dv_str_from_c(call->status_text));
    /* Fails only when out of memory or when the stream is gone. */
    (void)nghttp2_submit_trailer(call->h2->ng, call->stream, fields, n);
}

ssize_t dv_h2_read_data(nghttp2_session *ng, int32_t stream, uint8_t *buf, size_t size,
                        uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct dv_h2_call *call = nghttp2_session_get_stream_user_data(ng, stream);
    struct dv_h2 *h2 = ctx;
    size_t n;

    (void)source;
    if (!call)
        /* The call was cancelled: its reset is on its way. */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    n = copy_queue(call, buf, size);
    if (n == 0 && call->state == CALL_OPEN && h2->options.is_server && h2->handler->drained) {
        h2->handler->drained(h2->handler, call); /* it may send more, finish or cancel */
        if (call->state == CALL_ENDING)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        n = copy_queue(call, buf, size);
    }
    if (!dv_list_is_empty(&call->queue))
        return (ssize_t)n;
    if (!h2->options.is_server) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (call->state == CALL_FINISHED) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        submit_trailers(call);
    } else if (n == 0) {
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)n;
}

/* Whether so much more may wait to be sent. */
bool dv_h2_check_unsent(const struct dv_h2 *h2, const struct dv_h2_msg *msg, struct dv_err *err)
{
    size_t max = h2->options.unsent_bytes_max;

    if (h2->unsent_bytes > 0 && (msg->n > max || h2->unsent_bytes > max - msg->n))
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "the peer does not read: %zu bytes wait, %zu more are over the limit of %zu",
                       h2->unsent_bytes, msg->n, max);
    return true;
}

void dv_h2_enqueue(struct dv_h2_call *call, struct dv_h2_msg *msg)
{
    struct dv_h2_outgoing *out = DV_ALLOC(struct dv_h2_outgoing);

    out->msg = dv_h2_msg_ref(msg);
    dv_list_push(&call->queue, &out->link);
    call->unsent_bytes += msg->n;
    call->h2->unsent_bytes += msg->n;
}

/* ---- server: answering ---- */

/* Encodes the status text; a long one is cut between two characters. */
static void encode_status(dv_str message, struct dv_buf *text)
{
    size_t n = dv_size_min(message.n, STATUS_TEXT_BYTES_MAX);

    /* A UTF-8 character has at most three continuation bytes. */
    for (int i = 0; i < 3 && n < message.n && ((unsigned char)message.p[n] & 0xc0) == 0x80; i++)
        n--;
    dv_buf_init(text, n * 3);
    dv_h2_percent_encode(dv_str_slice(message, 0, n), text);
}

void dv_h2_answer_error(struct dv_h2_call *call, const char *http_status, enum dv_code code,
                        dv_str message)
{
    struct dv_buf text;
    char number[12];
    int n = snprintf(number, sizeof(number), "%u", (unsigned)code);
    nghttp2_nv fields[5];
    size_t n_fields = 3;

    encode_status(message, &text);
    fields[0] = variable(DV_STR(":status"), dv_str_from_c(http_status));
    fields[1] = constant(DV_STR("content-type"), DV_STR("application/grpc"));
    fields[2] = variable(DV_STR("grpc-status"), (dv_str){number, (size_t)n});
    if (code == DV_UNIMPLEMENTED && call->is_encoded)
        fields[n_fields++] = constant(DV_STR("grpc-accept-encoding"), DV_STR("identity"));
    if (message.n > 0)
        fields[n_fields++] = variable(DV_STR("grpc-message"), dv_buf_str(&text));
    call->has_answered = true;
    if (call->state != CALL_BEGUN)
        call->state = CALL_FINISHED;
    call->is_deaf = true;
    /* Fails only when out of memory, which ends nghttp2's session by itself. */
    (void)nghttp2_submit_response(call->h2->ng, call->stream, fields, n_fields, NULL);
    dv_buf_fini(&text);
}

static void begin_answer(struct dv_h2_call *call)
{
    static const nghttp2_data_provider body = {.read_callback = dv_h2_read_data};
    const nghttp2_nv fields[] = {
        constant(DV_STR(":status"), DV_STR("200")),
        constant(DV_STR("content-type"), DV_STR("application/grpc")),
    };

    call->has_answered = true;
    /* Fails only when out of memory, which ends nghttp2's session by itself. */
    (void)nghttp2_submit_response(call->h2->ng, call->stream, fields, DV_COUNT(fields), &body);
}

/* Lets the data callback run again; nghttp2's error when it was not waiting is ignored. */
static void resume(struct dv_h2_call *call)
{
    (void)nghttp2_session_resume_data(call->h2->ng, call->stream);
}

bool dv_h2_send(struct dv_h2_call *call, struct dv_h2_msg *msg, struct dv_err *err)
{
    if (call->state != CALL_OPEN || is_gone(call))
        return dv_fail(err, DV_CANCELLED, "the call is over");
    if (!dv_h2_check_unsent(call->h2, msg, err))
        return false;
    dv_h2_enqueue(call, msg);
    if (!call->has_answered)
        begin_answer(call);
    else
        resume(call);
    return true;
}

void dv_h2_finish(struct dv_h2_call *call, enum dv_code code, dv_str message)
{
    struct dv_buf text;

    if (call->state != CALL_OPEN || is_gone(call))
        return;
    if (!call->has_answered) {
        dv_h2_answer_error(call, "200", code, message);
        return;
    }
    call->state = CALL_FINISHED;
    call->is_deaf = true; /* nobody needs the rest of the request any more */
    call->code = code;
    if (message.n > 0) {
        encode_status(message, &text);
        call->status_text = text.p; /* freed with the call */
    }
    resume(call);
}

void *dv_h2_call_ctx(const struct dv_h2_call *call)
{
    return call->ctx;
}

void dv_h2_call_set_ctx(struct dv_h2_call *call, void *ctx)
{
    call->ctx = ctx;
}

size_t dv_h2_call_unsent_bytes(const struct dv_h2_call *call)
{
    return call->unsent_bytes;
}

uint64_t dv_h2_call_n_received(const struct dv_h2_call *call)
{
    return call->n_received;
}

/* session.c - one connection: nghttp2's callbacks, and how a session begins and ends. */
#include <assert.h>
#include <stdlib.h>

#include <nghttp2/nghttp2.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "http2/connection.h"
#include "http2/header_list.h"
#include "http2/http2.h"
#include "http2/http2_fields.h"
#include "http2/session.h"

/* The windows of flow control: an ordinary message fits a stream's window, and so does a list of
 * ten thousand devices. */
#define SERVER_WINDOW_BYTES (1 << 20)
#define CLIENT_WINDOW_BYTES (4 << 20)
#define CONNECTION_WINDOW_BYTES (8 << 20)
struct dv_h2_options dv_h2_default_options(bool is_server)
{
    return (struct dv_h2_options){
        .is_server = is_server,
        .message_bytes_max = 16u << 20,
        .partial_bytes_max = 64u << 20,
        .unsent_bytes_max = 64u << 20,
        .calls_max = 1024,
        .header_bytes_max = 16u << 10,
    };
}

/* ---- what arrives ---- */

static struct dv_h2_call *call_of(nghttp2_session *ng, int32_t stream)
{
    return stream ? nghttp2_session_get_stream_user_data(ng, stream) : NULL;
}

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *ctx)
{
    struct dv_h2 *h2 = ctx;
    struct dv_h2_call *call;

    dv_h2_headers_reset(&h2->headers);
    if (!h2->options.is_server || frame->hd.type != NGHTTP2_HEADERS ||
        frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    call = dv_h2_call_new(h2, CALL_BEGUN);
    call->stream = frame->hd.stream_id;
    h2->n_open++;
    dv_list_push(&h2->open, &call->link);
    /* Fails only for a stream that does not exist. */
    return nghttp2_session_set_stream_user_data(ng, call->stream, call);
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
    struct dv_h2 *h2 = ctx;

    (void)ng;
    (void)frame;
    (void)flags;
    dv_h2_headers_add(&h2->headers, (dv_str){(const char *)name, name_n},
                      (dv_str){(const char *)value, value_n});
    return 0;
}

static int on_data_chunk(nghttp2_session *ng, uint8_t flags, int32_t stream, const uint8_t *data,
                         size_t n, void *ctx)
{
    struct dv_h2_call *call = call_of(ng, stream);

    (void)flags;
    (void)ctx;
    if (call && call->state != CALL_BEGUN)
        dv_h2_on_data(call, (dv_str){(const char *)data, n});
    return 0;
}

/* Handles header lists of a server's calls: the request's, and perhaps trailers, which mean
 * nothing. */
static void on_headers_at_server(struct dv_h2_call *call, const nghttp2_frame *frame)
{
    bool is_end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        if (is_end)
            call->peer_is_done = true;
        dv_h2_on_request_headers(call, is_end);
    } else if (is_end) {
        dv_h2_on_peer_done(call);
    } else {
        dv_h2_refuse(call->h2, DV_INTERNAL, "request with a second header list");
        dv_h2_call_fail(call, DV_INTERNAL, "a second header list");
    }
}

static void on_goaway(struct dv_h2 *h2, const nghttp2_goaway *goaway)
{
    /* Servers announce it before they mean it, so it may come twice. */
    bool is_first = !h2->peer_is_leaving;

    if (goaway->error_code != NGHTTP2_NO_ERROR)
        dv_h2_fail_goaway(goaway, DV_UNAVAILABLE, "the peer ended the connection", &h2->err);
    h2->peer_is_leaving = true;
    dv_h2_close_to_calls(h2, "the peer is going away");
    if (is_first && h2->handler->going_away)
        h2->handler->going_away(h2->handler);
}

static void on_settings(struct dv_h2 *h2)
{
    if (!h2->is_ready) {
        h2->is_ready = true;
        if (h2->handler->ready)
            h2->handler->ready(h2->handler);
    }
    dv_h2_start_waiting(h2); /* the settings may allow more streams than before */
}

static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *ctx)
{
    struct dv_h2 *h2 = ctx;
    struct dv_h2_call *call = call_of(ng, frame->hd.stream_id);
    bool is_end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

    if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK))
        on_settings(h2);
    else if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK)
        dv_h2_goodbye_on_ping_ack(ng, &h2->goodbye);
    else if (frame->hd.type == NGHTTP2_GOAWAY)
        on_goaway(h2, &frame->goaway);
    else if (frame->hd.type == NGHTTP2_HEADERS && call && h2->options.is_server)
        on_headers_at_server(call, frame);
    else if (frame->hd.type == NGHTTP2_HEADERS && call)
        dv_h2_on_response_headers(call, is_end);
    else if (frame->hd.type == NGHTTP2_DATA && call && is_end)
        dv_h2_on_peer_done(call);
    return 0;
}

static int on_stream_close(nghttp2_session *ng, int32_t stream, uint32_t error_code, void *ctx)
{
    struct dv_h2_call *call = call_of(ng, stream);
    struct dv_h2 *h2 = ctx;
    struct dv_h2_end end;

    if (!call)
        return 0;
    end.is_unprocessed = false;
    if (h2->options.is_server) {
        if (call->answer_is_out)
            (void)dv_succeed(&end.status);
        else
            (void)dv_fail(&end.status, DV_CANCELLED, "the client gave up");
    } else {
        (void)dv_fail(&end.status, dv_h2_code_from_reset(error_code), "the peer reset the call: %s",
                      nghttp2_http2_strerror(error_code));
        end.is_unprocessed = error_code == NGHTTP2_REFUSED_STREAM && !call->has_headers;
    }
    dv_h2_call_end(call, &end);
    return 0;
}

/* Tells the client that the rest of its request is not needed, when a server has answered before
 * the client was done. */
static void on_answer_sent(struct dv_h2_call *call)
{
    call->answer_is_out = true;
    if (!call->peer_is_done) /* fails only when out of memory */
        (void)nghttp2_submit_rst_stream(call->h2->ng, NGHTTP2_FLAG_NONE, call->stream,
                                        NGHTTP2_NO_ERROR);
}

static void on_goaway_sent(struct dv_h2 *h2, const nghttp2_goaway *goaway)
{
    if (goaway->error_code != NGHTTP2_NO_ERROR && h2->err.code == DV_OK && !h2->is_forgiving)
        dv_h2_fail_goaway(goaway, DV_INTERNAL, "HTTP/2", &h2->err);
    if (h2->options.is_server)
        dv_h2_goodbye_on_goaway_sent(h2->ng, &h2->goodbye);
}

static int on_frame_sent(nghttp2_session *ng, const nghttp2_frame *frame, void *ctx)
{
    struct dv_h2 *h2 = ctx;
    struct dv_h2_call *call = call_of(ng, frame->hd.stream_id);

    if (frame->hd.type == NGHTTP2_GOAWAY)
        on_goaway_sent(h2, &frame->goaway);
    else if (h2->options.is_server && call && frame->hd.type == NGHTTP2_HEADERS &&
             frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        on_answer_sent(call);
    return 0;
}

/* Keeps nghttp2's own text about a fault of the peer's, for the log. */
static int on_complaint(nghttp2_session *ng, int lib_error_code, const char *text, size_t n,
                        void *ctx)
{
    struct dv_h2 *h2 = ctx;

    (void)ng;
    dv_h2_fail_complaint(lib_error_code, text, n, &h2->err);
    return 0;
}

static int on_invalid_frame(nghttp2_session *ng, const nghttp2_frame *frame, int lib_error_code,
                            void *ctx)
{
    struct dv_h2 *h2 = ctx;

    (void)ng;
    /* A client of grpc-go that closes names its own last call in the GOAWAY, where the server's
     * belongs. That is harmless: nghttp2 ends the connection, which the client has done anyhow. */
    if (h2->options.is_server && frame->hd.type == NGHTTP2_GOAWAY && frame->hd.stream_id == 0) {
        h2->is_forgiving = true;
        on_goaway(h2, &frame->goaway);
        return 0;
    }
    dv_h2_refuse(h2, DV_INTERNAL, "HTTP/2: invalid frame of type %u on stream %d: %s",
                 frame->hd.type, frame->hd.stream_id, nghttp2_strerror(lib_error_code));
    return 0;
}

/* ---- life ---- */

static const struct dv_h2_callbacks told = {
    .begin_headers = on_begin_headers,
    .header = on_header,
    .data_chunk = on_data_chunk,
    .frame = on_frame,
    .invalid_frame = on_invalid_frame,
    .stream_close = on_stream_close,
    .frame_sent = on_frame_sent,
    .complaint = on_complaint,
};

static nghttp2_option *new_options(void)
{
    nghttp2_option *option = dv_h2_option_new();

    /* nghttp2's checks refuse what real clients send (a socket path as :authority); ours are
     * gRPC's. */
    nghttp2_option_set_no_http_messaging(option, 1);
    return option;
}

static void submit_settings(struct dv_h2 *h2)
{
    const struct dv_h2_options *options = &h2->options;
    nghttp2_settings_entry entries[] = {
        {options->is_server ? NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS
                            : NGHTTP2_SETTINGS_ENABLE_PUSH,
         options->is_server ? options->calls_max : 0                                                    },
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
         options->is_server ? SERVER_WINDOW_BYTES : CLIENT_WINDOW_BYTES                                 },
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE,                            DV_H2_FRAME_BYTES                  },
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,                      (uint32_t)options->header_bytes_max},
    };
    int status = nghttp2_submit_settings(h2->ng, NGHTTP2_FLAG_NONE, entries, DV_COUNT(entries));

    if (status == 0)
        status = nghttp2_session_set_local_window_size(h2->ng, NGHTTP2_FLAG_NONE, 0,
                                                       CONNECTION_WINDOW_BYTES);
    if (status != 0)
        abort(); /* out of memory: the values are valid */
}

struct dv_h2 *dv_h2_new(const struct dv_h2_options *options, struct dv_h2_handler *handler)
{
    struct dv_h2 *h2 = DV_ALLOC(struct dv_h2);
    nghttp2_session_callbacks *callbacks = dv_h2_callbacks_new(&told);
    nghttp2_option *option = new_options();
    int status = options->is_server ? nghttp2_session_server_new2(&h2->ng, callbacks, h2, option)
                                    : nghttp2_session_client_new2(&h2->ng, callbacks, h2, option);

    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    if (status != 0)
        abort(); /* out of memory */
    h2->options = *options;
    h2->handler = handler;
    dv_list_init(&h2->open);
    dv_list_init(&h2->waiting);
    dv_list_init(&h2->ending);
    dv_h2_headers_init(&h2->headers, options->header_bytes_max, DV_H2_HEADERS_MAX);
    submit_settings(h2);
    return h2;
}

void dv_h2_free(struct dv_h2 *h2)
{
    if (!h2)
        return;
    assert(h2->n_calls == 0);
    nghttp2_session_del(h2->ng);
    dv_h2_headers_fini(&h2->headers);
    free(h2);
}

bool dv_h2_receive(struct dv_h2 *h2, dv_str bytes, struct dv_err *err)
{
    if (!h2->is_broken && bytes.n > 0) {
        ssize_t got = nghttp2_session_mem_recv(h2->ng, (const uint8_t *)bytes.p, bytes.n);

        h2->is_broken = !dv_h2_check_received(h2->ng, got, &h2->err);
    }
    if (h2->is_broken)
        *err = h2->err;
    return !h2->is_broken;
}

bool dv_h2_pull(struct dv_h2 *h2, dv_str *bytes)
{
    const uint8_t *data = NULL;
    ssize_t n;

    dv_h2_settle(h2);
    n = nghttp2_session_mem_send(h2->ng, &data);
    dv_h2_settle(h2); /* handlers that ran in it may have cancelled calls */
    if (n <= 0)
        return false;
    *bytes = (dv_str){(const char *)data, (size_t)n};
    return true;
}

/* Whether no byte of the call's request has been sent. */
static bool is_unsent(const struct dv_h2_call *call)
{
    return !call->h2->options.is_server &&
           (!call->stream || !nghttp2_session_get_stream_user_data(call->h2->ng, call->stream));
}

static void lose_list(struct dv_list *list, const struct dv_err *why)
{
    struct dv_link *link;

    while ((link = dv_list_first(list)) != NULL) {
        struct dv_h2_call *call = DV_CONTAINER(link, struct dv_h2_call, link);
        struct dv_h2_end end = {.status = *why, .is_unprocessed = is_unsent(call)};

        dv_h2_call_end(call, &end);
    }
}

void dv_h2_lose(struct dv_h2 *h2, const struct dv_err *err)
{
    struct dv_err why = *err;

    h2->is_shut = true;
    if (h2->options.is_server)
        (void)dv_fail(&why, DV_CANCELLED, "the client is gone: %s", err->msg);
    dv_h2_settle(h2);
    lose_list(&h2->open, &why);
    lose_list(&h2->waiting, &why);
    dv_h2_settle(h2);
}

bool dv_h2_is_over(const struct dv_h2 *h2)
{
    return !nghttp2_session_want_read(h2->ng) && !nghttp2_session_want_write(h2->ng);
}

const struct dv_err *dv_h2_complaint(const struct dv_h2 *h2)
{
    return h2->err.code == DV_OK ? NULL : &h2->err;
}

void dv_h2_shut_down(struct dv_h2 *h2)
{
    if (h2->goodbye != GOODBYE_NONE)
        return;
    h2->goodbye = GOODBYE_DUE;
    dv_h2_close_to_calls(h2, "it is being shut down");
    if (!h2->options.is_server)
        dv_h2_leave_if_idle(h2);
    else if (h2->peer_is_leaving) /* no new calls of it are under way */
        dv_h2_goodbye_say(h2->ng, &h2->goodbye);
    else
        dv_h2_goodbye_announce(h2->ng, &h2->goodbye);
}

void dv_h2_leave_if_idle(struct dv_h2 *h2)
{
    if (h2->goodbye == GOODBYE_DUE && !h2->options.is_server && h2->n_open == 0)
        dv_h2_goodbye_say(h2->ng, &h2->goodbye);
}

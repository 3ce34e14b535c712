/* http2_server.c - a server's session: nghttp2's callbacks, and how a session begins and ends. */
#include "http2/http2_server.h"

#include <assert.h>
#include <stdlib.h>

#include <nghttp2/nghttp2.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "http2/connection.h"
#include "http2/flood.h"
#include "http2/header_list.h"
#include "http2/http2_server_state.h"

#define STREAMS_MAX 100u
#define HEADER_BYTES_MAX (32u * 1024u)
#define UNSENT_BYTES_MAX (4u << 20)
/* The windows of flow control, for bodies of requests: an ordinary object fits a stream's. */
#define STREAM_WINDOW_BYTES (256 * 1024)
#define CONNECTION_WINDOW_BYTES (1 << 20)
/* A header list that is so many times larger than allowed is not even answered. */
#define HOPELESS_LISTS 8u

/* ---- what arrives ---- */

static struct dv_h2_stream *stream_of(nghttp2_session *ng, int32_t id)
{
    return id ? nghttp2_session_get_stream_user_data(ng, id) : NULL;
}

/* Ends the connection of a client that only keeps us busy: nghttp2 hears nothing more of it. */
static void calm(struct dv_h2_server *server, const char *what)
{
    if (server->is_flooded)
        return;
    server->is_flooded = true;
    (void)dv_fail(&server->err, DV_RESOURCE_EXHAUSTED, "HTTP/2: %s", what);
    /* Fails only when out of memory. */
    (void)nghttp2_session_terminate_session(server->ng, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void on_idle_frame(struct dv_h2_server *server)
{
    if (!dv_h2_flood_on_idle_frame(&server->flood))
        calm(server, "the client sends too many frames that carry nothing");
}

static int on_begin_frame(nghttp2_session *ng, const nghttp2_frame_hd *head, void *ctx)
{
    bool is_useful =
        head->type == NGHTTP2_HEADERS || head->type == NGHTTP2_GOAWAY ||
        (head->type == NGHTTP2_DATA && (head->length > 0 || head->flags & NGHTTP2_FLAG_END_STREAM));

    (void)ng;
    if (!is_useful)
        on_idle_frame(ctx);
    return 0;
}

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *ctx)
{
    struct dv_h2_server *server = ctx;
    struct dv_h2_stream *stream;

    dv_h2_headers_reset(&server->headers);
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    stream = dv_h2_stream_new(server, frame->hd.stream_id);
    /* Fails only for a stream that does not exist. */
    return nghttp2_session_set_stream_user_data(ng, stream->id, stream);
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
    struct dv_h2_server *server = ctx;
    struct dv_h2_header_list *list = &server->headers;

    (void)ng;
    (void)frame;
    (void)flags;
    dv_h2_headers_add(list, (dv_str){(const char *)name, name_n},
                      (dv_str){(const char *)value, value_n});
    return list->bytes / HOPELESS_LISTS > list->bytes_max ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
                                                          : 0;
}

/* A field that nghttp2 would leave out, because a character of it is not allowed: who passes such
 * requests on leaves it to the next one what they mean. */
static int on_invalid_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                             size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags,
                             void *ctx)
{
    (void)ng;
    (void)frame;
    (void)name;
    (void)name_n;
    (void)value;
    (void)value_n;
    (void)flags;
    (void)ctx;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_data_chunk(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t n, void *ctx)
{
    struct dv_h2_stream *stream = stream_of(ng, id);
    struct dv_h2_server *server = ctx;

    (void)flags;
    if (!stream) { /* it was reset, and its window is of no more use */
        (void)nghttp2_session_consume_connection(ng, n);
        return 0;
    }
    if (!dv_h2_stream_is_deaf(stream))
        server->handler->body(server->handler, stream, (dv_str){(const char *)data, n});
    stream = stream_of(ng, id); /* the handler may have reset it */
    if (stream)
        dv_h2_stream_return_window(stream, n);
    else
        (void)nghttp2_session_consume_connection(ng, n);
    return 0;
}

static void on_request_complete(struct dv_h2_stream *stream)
{
    struct dv_h2_server_handler *handler = stream->server->handler;

    stream->is_complete = true;
    if (!dv_h2_stream_is_deaf(stream))
        handler->complete(handler, stream);
}

static void on_goaway(struct dv_h2_server *server, const nghttp2_goaway *goaway)
{
    server->client_is_leaving = true;
    if (goaway->error_code != NGHTTP2_NO_ERROR)
        dv_h2_fail_goaway(goaway, DV_UNAVAILABLE, "the client ended the connection", &server->err);
}

static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *ctx)
{
    struct dv_h2_server *server = ctx;
    struct dv_h2_stream *stream = stream_of(ng, frame->hd.stream_id);
    bool is_end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

    if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK)
        dv_h2_goodbye_on_ping_ack(ng, &server->goodbye);
    else if (frame->hd.type == NGHTTP2_GOAWAY)
        on_goaway(server, &frame->goaway);
    else if (frame->hd.type == NGHTTP2_RST_STREAM && stream)
        stream->is_reset_by_client = true;
    else if (frame->hd.type == NGHTTP2_HEADERS && stream && stream->state == STREAM_BEGUN)
        dv_h2_stream_on_header(stream, is_end);
    else if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) && stream &&
             is_end) /* trailers mean nothing to us */
        on_request_complete(stream);
    return 0;
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t error_code, void *ctx)
{
    struct dv_h2_stream *stream = stream_of(ng, id);
    struct dv_h2_server *server = ctx;
    struct dv_err why;

    if (!stream)
        return 0; /* we have reset it */
    if (stream->answer_is_out) {
        dv_h2_flood_on_answer(&server->flood);
        dv_h2_stream_end(stream, NULL);
        return 0;
    }
    if (!dv_h2_flood_on_broken_stream(&server->flood))
        calm(server, "the client breaks too many requests off");
    if (stream->is_reset_by_client)
        (void)dv_fail(&why, DV_CANCELLED, "the client has reset the stream: %s",
                      nghttp2_http2_strerror(error_code));
    else
        (void)dv_fail(&why, DV_INVALID_ARGUMENT, "the request is malformed: %s",
                      nghttp2_http2_strerror(error_code));
    if (stream->state == STREAM_BEGUN && server->handler->complaint)
        server->handler->complaint(server->handler, &why);
    dv_h2_stream_end(stream, &why);
    return 0;
}

static void on_goaway_sent(struct dv_h2_server *server, const nghttp2_goaway *goaway)
{
    if (goaway->error_code != NGHTTP2_NO_ERROR && server->err.code == DV_OK &&
        !server->is_forgiving)
        dv_h2_fail_goaway(goaway, DV_INTERNAL, "HTTP/2", &server->err);
    dv_h2_goodbye_on_goaway_sent(server->ng, &server->goodbye);
}

static int on_frame_sent(nghttp2_session *ng, const nghttp2_frame *frame, void *ctx)
{
    struct dv_h2_stream *stream = stream_of(ng, frame->hd.stream_id);
    bool has_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;

    if (frame->hd.type == NGHTTP2_GOAWAY)
        on_goaway_sent(ctx, &frame->goaway);
    if (!stream || !has_end || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    stream->answer_is_out = true;
    if (!stream->is_complete) /* RFC 9113, 8.1: the rest of the request is not needed */
        (void)nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_complaint(nghttp2_session *ng, int lib_error_code, const char *text, size_t n,
                        void *ctx)
{
    struct dv_h2_server *server = ctx;

    (void)ng;
    dv_h2_fail_complaint(lib_error_code, text, n, &server->err);
    return 0;
}

static int on_invalid_frame(nghttp2_session *ng, const nghttp2_frame *frame, int lib_error_code,
                            void *ctx)
{
    struct dv_h2_server *server = ctx;

    (void)ng;
    (void)lib_error_code;
    /* Go's client names its own last stream in its GOAWAY, where the server's belongs. That is
     * harmless: nghttp2 ends the connection, which the client has done anyhow. */
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->hd.stream_id == 0) {
        server->is_forgiving = true;
        on_goaway(server, &frame->goaway);
    } else {
        on_idle_frame(server); /* it will be answered with a reset, if at all */
    }
    return 0;
}

/* ---- life ---- */

static const struct dv_h2_callbacks told = {
    .begin_frame = on_begin_frame,
    .frame = on_frame,
    .invalid_frame = on_invalid_frame,
    .frame_sent = on_frame_sent,
    .begin_headers = on_begin_headers,
    .header = on_header,
    .invalid_header = on_invalid_header,
    .data_chunk = on_data_chunk,
    .stream_close = on_stream_close,
    .complaint = on_complaint,
};

static nghttp2_option *new_options(void)
{
    nghttp2_option *option = dv_h2_option_new();

    nghttp2_option_set_no_auto_window_update(option, 1); /* paused bodies keep their windows */
    return option;
}

static void submit_settings(struct dv_h2_server *server)
{
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, server->options.streams_max               },
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,    STREAM_WINDOW_BYTES                       },
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,   (uint32_t)server->options.header_bytes_max},
    };
    int status = nghttp2_submit_settings(server->ng, NGHTTP2_FLAG_NONE, entries, DV_COUNT(entries));

    if (status == 0)
        status = nghttp2_session_set_local_window_size(server->ng, NGHTTP2_FLAG_NONE, 0,
                                                       CONNECTION_WINDOW_BYTES);
    if (status != 0)
        abort(); /* out of memory: the values are valid */
}

struct dv_h2_server *dv_h2_server_new(const struct dv_h2_server_options *options,
                                      struct dv_h2_server_handler *handler)
{
    struct dv_h2_server *server = DV_ALLOC(struct dv_h2_server);
    nghttp2_session_callbacks *callbacks = dv_h2_callbacks_new(&told);
    nghttp2_option *option = new_options();
    int status = nghttp2_session_server_new2(&server->ng, callbacks, server, option);

    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    if (status != 0)
        abort(); /* out of memory */
    server->options = *options;
    if (options->streams_max == 0)
        server->options.streams_max = STREAMS_MAX;
    if (options->header_bytes_max == 0)
        server->options.header_bytes_max = HEADER_BYTES_MAX;
    if (options->unsent_bytes_max == 0)
        server->options.unsent_bytes_max = UNSENT_BYTES_MAX;
    server->handler = handler;
    dv_list_init(&server->open);
    dv_list_init(&server->ending);
    dv_h2_headers_init(&server->headers, server->options.header_bytes_max, DV_H2_SERVER_FIELDS_MAX);
    server->fields = dv_alloc(DV_H2_SERVER_FIELDS_MAX * sizeof(*server->fields));
    submit_settings(server);
    return server;
}

void dv_h2_server_free(struct dv_h2_server *server)
{
    if (!server)
        return;
    assert(server->n_streams == 0);
    nghttp2_session_del(server->ng);
    dv_h2_headers_fini(&server->headers);
    free(server->fields);
    free(server);
}

bool dv_h2_server_receive(struct dv_h2_server *server, dv_str bytes, uint64_t now_ms,
                          struct dv_err *err)
{
    dv_h2_flood_tick(&server->flood, now_ms);
    if (!server->is_broken && bytes.n > 0) {
        ssize_t got = nghttp2_session_mem_recv(server->ng, (const uint8_t *)bytes.p, bytes.n);

        /* A flood has said already what is wrong. */
        server->is_broken =
            server->is_flooded || !dv_h2_check_received(server->ng, got, &server->err);
    }
    if (server->is_broken)
        *err = server->err;
    return !server->is_broken;
}

bool dv_h2_server_pull(struct dv_h2_server *server, dv_str *bytes)
{
    const uint8_t *data = NULL;
    ssize_t n;

    dv_h2_server_settle(server);
    n = nghttp2_session_mem_send(server->ng, &data);
    dv_h2_server_settle(server); /* handlers that ran in it may have reset streams */
    if (n <= 0)
        return false;
    *bytes = (dv_str){(const char *)data, (size_t)n};
    return true;
}

void dv_h2_server_lose(struct dv_h2_server *server, const struct dv_err *err)
{
    struct dv_link *link;
    struct dv_err why;

    (void)dv_fail(&why, DV_CANCELLED, "the client is gone: %s", err->msg);
    dv_h2_server_settle(server);
    while ((link = dv_list_first(&server->open)) != NULL)
        dv_h2_stream_end(DV_CONTAINER(link, struct dv_h2_stream, link), &why);
    dv_h2_server_settle(server);
}

bool dv_h2_server_is_over(const struct dv_h2_server *server)
{
    return !nghttp2_session_want_read(server->ng) && !nghttp2_session_want_write(server->ng);
}

const struct dv_err *dv_h2_server_complaint(const struct dv_h2_server *server)
{
    return server->err.code == DV_OK ? NULL : &server->err;
}

void dv_h2_server_shut_down(struct dv_h2_server *server)
{
    if (server->goodbye != GOODBYE_NONE)
        return;
    if (server->client_is_leaving) /* no new requests of it are under way */
        dv_h2_goodbye_say(server->ng, &server->goodbye);
    else
        dv_h2_goodbye_announce(server->ng, &server->goodbye);
}

size_t dv_h2_server_n_streams(const struct dv_h2_server *server)
{
    return server->n_streams;
}

size_t dv_h2_server_unsent_bytes(const struct dv_h2_server *server)
{
    return server->unsent_bytes;
}

/* http2_stream.c - streams of a server: their life, and sending answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "http2/flood.h"
#include "http2/http2_server.h"
#include "http2/http2_server_state.h"
#include "http2/nv.h"

/* ---- life ---- */

struct dv_h2_stream *dv_h2_stream_new(struct dv_h2_server *server, int32_t id)
{
    struct dv_h2_stream *stream = DV_ALLOC(struct dv_h2_stream);

    stream->server = server;
    stream->id = id;
    dv_list_init(&stream->pieces);
    dv_list_push(&server->open, &stream->link);
    server->n_streams++;
    return stream;
}

static void release(const struct dv_h2_bytes *bytes)
{
    if (bytes->release)
        bytes->release(bytes->ctx);
}

static void drop_pieces(struct dv_h2_stream *stream)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&stream->pieces)) != NULL) {
        struct dv_h2_piece *piece = DV_CONTAINER(link, struct dv_h2_piece, link);

        release(&piece->bytes);
        free(piece);
    }
    stream->server->unsent_bytes -= stream->unsent_bytes;
    stream->unsent_bytes = 0;
}

/* Takes the stream out of its list and away from nghttp2. */
static void detach(struct dv_h2_stream *stream)
{
    if (stream->id)
        /* This fails when nghttp2 has forgotten it already, which is as good. */
        (void)nghttp2_session_set_stream_user_data(stream->server->ng, stream->id, NULL);
    stream->id = 0;
    dv_link_remove(&stream->link);
}

/* Whether it was reset or has ended: `ended` may still ask about it, but nothing more is done. */
static bool is_gone(const struct dv_h2_stream *stream)
{
    return stream->state == STREAM_ENDING || !dv_link_is_in(&stream->link);
}

void dv_h2_stream_end(struct dv_h2_stream *stream, const struct dv_err *err)
{
    struct dv_h2_server *server = stream->server;
    bool is_known = stream->state != STREAM_BEGUN;

    detach(stream);
    drop_pieces(stream);
    server->n_streams--;
    if (is_known)
        server->handler->ended(server->handler, stream, err);
    free(stream->end);
    free(stream);
}

void dv_h2_stream_reset(struct dv_h2_stream *stream)
{
    struct dv_h2_server *server = stream->server;

    if (is_gone(stream))
        return;
    stream->end = DV_ALLOC(struct dv_err);
    (void)dv_fail(stream->end, DV_CANCELLED, "the stream was reset");
    /* Fails only when out of memory, which ends nghttp2's session by itself. */
    (void)nghttp2_submit_rst_stream(server->ng, NGHTTP2_FLAG_NONE, stream->id,
                                    NGHTTP2_INTERNAL_ERROR);
    detach(stream);
    drop_pieces(stream);
    stream->state = STREAM_ENDING;
    dv_list_push(&server->ending, &stream->link);
}

void dv_h2_server_settle(struct dv_h2_server *server)
{
    struct dv_link *link;

    while ((link = dv_list_first(&server->ending)) != NULL) {
        struct dv_h2_stream *stream = DV_CONTAINER(link, struct dv_h2_stream, link);
        struct dv_err why = *stream->end;

        dv_h2_stream_end(stream, &why);
    }
}

/* ---- the request's window ---- */

bool dv_h2_stream_is_deaf(const struct dv_h2_stream *stream)
{
    return stream->is_refused || stream->state >= STREAM_FINISHED;
}

void dv_h2_stream_return_window(struct dv_h2_stream *stream, size_t n)
{
    nghttp2_session *ng = stream->server->ng;

    stream->n_unreturned += n;
    /* These fail only when out of memory, or for a stream that is gone. What is not read of a
     * stream does not take the window of the others. */
    (void)nghttp2_session_consume_connection(ng, n);
    if (stream->is_paused || dv_h2_stream_is_deaf(stream))
        return;
    (void)nghttp2_session_consume_stream(ng, stream->id, stream->n_unreturned);
    stream->n_unreturned = 0;
}

void dv_h2_stream_pause(struct dv_h2_stream *stream, bool is_paused)
{
    stream->is_paused = is_paused;
    if (!is_paused && !is_gone(stream))
        dv_h2_stream_return_window(stream, 0);
}

/* ---- sending ---- */

/* Copies as much of the pieces as fits. */
static size_t copy_pieces(struct dv_h2_stream *stream, uint8_t *buf, size_t size)
{
    struct dv_link *link;
    size_t n = 0;

    while (n < size && (link = dv_list_first(&stream->pieces)) != NULL) {
        struct dv_h2_piece *piece = DV_CONTAINER(link, struct dv_h2_piece, link);
        dv_str rest = dv_str_slice(piece->bytes.bytes, stream->sent_of_first, SIZE_MAX);
        size_t part = dv_size_min(size - n, rest.n);

        if (part > 0)
            memcpy(buf + n, rest.p, part);
        n += part;
        stream->sent_of_first += part;
        if (part < rest.n)
            break;
        dv_link_remove(link);
        release(&piece->bytes);
        free(piece);
        stream->sent_of_first = 0;
    }
    stream->unsent_bytes -= n;
    stream->server->unsent_bytes -= n;
    return n;
}

/* Gives nghttp2 the next bytes of the answer. */
static ssize_t read_answer(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t size,
                           uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct dv_h2_stream *stream = nghttp2_session_get_stream_user_data(ng, id);
    struct dv_h2_server *server = ctx;
    size_t n;

    (void)source;
    if (!stream) /* it was reset, which the client is about to learn */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    n = copy_pieces(stream, buf, size);
    if (n == 0 && stream->state == STREAM_STREAMED && server->handler->drained) {
        server->handler->drained(server->handler, stream); /* it may send, finish or reset */
        if (stream->state == STREAM_ENDING)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        n = copy_pieces(stream, buf, size);
    }
    dv_h2_flood_on_data(&server->flood, n, stream->unsent_bytes == 0);
    if (!dv_list_is_empty(&stream->pieces))
        return (ssize_t)n;
    if (stream->state == STREAM_FINISHED)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    else if (n == 0)
        return NGHTTP2_ERR_DEFERRED;
    return (ssize_t)n;
}

static void add_piece(struct dv_h2_stream *stream, const struct dv_h2_bytes *bytes)
{
    struct dv_h2_piece *piece;

    if (bytes->bytes.n == 0) {
        release(bytes);
        return;
    }
    piece = DV_ALLOC(struct dv_h2_piece);
    piece->bytes = *bytes;
    dv_list_push(&stream->pieces, &piece->link);
    stream->unsent_bytes += bytes->bytes.n;
    stream->server->unsent_bytes += bytes->bytes.n;
}

/* Lets read_answer run again; nghttp2's error when it was not waiting is ignored. */
static void resume(struct dv_h2_stream *stream)
{
    (void)nghttp2_session_resume_data(stream->server->ng, stream->id);
}

/* ---- answers ---- */

/* Whether HTTP/2 has no such field (RFC 9113, 8.2.2), or the session says it itself. */
static bool is_ours(dv_str name)
{
    static const dv_str names[] = {
        DV_STR_INIT("connection"),       DV_STR_INIT("keep-alive"),
        DV_STR_INIT("proxy-connection"), DV_STR_INIT("transfer-encoding"),
        DV_STR_INIT("upgrade"),          DV_STR_INIT("content-length"),
    };

    for (size_t i = 0; i < DV_COUNT(names); i++) {
        if (dv_str_eq_nocase(name, names[i]))
            return true;
    }
    return false;
}

/* Whether the field's name is a token and its value has no control characters. */
static bool is_sendable(const struct dv_h2_field *field)
{
    for (size_t i = 0; i < field->name.n; i++) {
        char c = field->name.p[i];

        if (c == '\0' || (!dv_is_alphanumeric(c) && !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return field->name.n > 0 &&
           nghttp2_check_header_value((const uint8_t *)field->value.p, field->value.n);
}

/* Whether the answer never has a body: RFC 9110, 6.4.1. */
static bool is_bodiless(const struct dv_h2_stream *stream, unsigned status)
{
    return stream->is_head || status == 204 || status == 304;
}

/* Submits the answer's header. nghttp2 copies the texts, and puts names into lower case. */
static void submit(struct dv_h2_stream *stream, const struct dv_h2_answer *answer, bool has_body)
{
    static const nghttp2_data_provider body = {.read_callback = read_answer};
    nghttp2_nv *fields = dv_alloc((answer->n_fields + 2) * sizeof(*fields));
    char status[12];
    char length[24];
    size_t n = 0;

    (void)snprintf(status, sizeof(status), "%03u", answer->status % 1000);
    fields[n++] = variable(DV_STR(":status"), dv_str_from_c(status));
    for (size_t i = 0; i < answer->n_fields; i++) {
        if (!is_ours(answer->fields[i].name) && is_sendable(&answer->fields[i]))
            fields[n++] = field(answer->fields[i].name, answer->fields[i].value, 0);
    }
    if (!answer->has_more && answer->status != 204 && answer->status != 304) {
        (void)snprintf(length, sizeof(length), "%zu", answer->body.bytes.n);
        fields[n++] = variable(DV_STR("content-length"), dv_str_from_c(length));
    }
    /* Fails only when out of memory, which ends nghttp2's session by itself. */
    (void)nghttp2_submit_response(stream->server->ng, stream->id, fields, n,
                                  has_body ? &body : NULL);
    free(fields);
}

void dv_h2_stream_answer(struct dv_h2_stream *stream, const struct dv_h2_answer *answer)
{
    bool is_empty = is_bodiless(stream, answer->status);

    if (stream->state != STREAM_OPEN || is_gone(stream)) {
        release(&answer->body);
        return;
    }
    stream->state = answer->has_more && !is_empty ? STREAM_STREAMED : STREAM_FINISHED;
    submit(stream, answer, stream->state == STREAM_STREAMED || (!is_empty && answer->body.bytes.n));
    if (is_empty)
        release(&answer->body);
    else
        add_piece(stream, &answer->body);
}

bool dv_h2_stream_send(struct dv_h2_stream *stream, const struct dv_h2_bytes *piece,
                       struct dv_err *err)
{
    size_t max = stream->server->options.unsent_bytes_max;

    if (stream->state != STREAM_STREAMED || is_gone(stream)) {
        release(piece);
        return dv_fail(err, DV_CANCELLED, "the stream takes no more");
    }
    if (stream->unsent_bytes > 0 &&
        (piece->bytes.n > max || stream->unsent_bytes > max - piece->bytes.n)) {
        release(piece);
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "the client does not read: %zu bytes wait, %zu more pass the limit of %zu",
                       stream->unsent_bytes, piece->bytes.n, max);
    }
    add_piece(stream, piece);
    resume(stream);
    return true;
}

void dv_h2_stream_finish(struct dv_h2_stream *stream)
{
    if (stream->state != STREAM_STREAMED || is_gone(stream))
        return;
    stream->state = STREAM_FINISHED;
    resume(stream);
}

void *dv_h2_stream_ctx(const struct dv_h2_stream *stream)
{
    return stream->ctx;
}

void dv_h2_stream_set_ctx(struct dv_h2_stream *stream, void *ctx)
{
    stream->ctx = ctx;
}

size_t dv_h2_stream_unsent_bytes(const struct dv_h2_stream *stream)
{
    return stream->unsent_bytes;
}

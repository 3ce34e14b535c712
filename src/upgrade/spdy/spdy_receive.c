/* spdy_receive.c - frames that arrive. */
#include <stdarg.h>
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "upgrade/spdy.h"
#include "upgrade/spdy/spdy_header.h"
#include "upgrade/spdy/spdy_state.h"

#define VERSION 3u
#define GOAWAY_PROTOCOL_ERROR 1u
/* A control frame beyond this is refused at its head: unpacked, a block is smaller still. */
#define CONTROL_BYTES_MAX (64u * 1024u)
/* What a peer may make us say beside data (pings, resets) while it does not read. */
#define ANSWER_BYTES_MAX (64u * 1024u)
#define SETTING_MAX_STREAMS 4u

/* Breaks the session off for a fault of the peer's. */
static void fail(struct dv_spdy *spdy, enum dv_code code, const char *fmt, ...) DV_PRINTF(3, 4);

static void fail(struct dv_spdy *spdy, enum dv_code code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)dv_vfail(&spdy->err, code, fmt, args);
    va_end(args);
    spdy->is_broken = true;
    dv_spdy_add_goaway(spdy, GOAWAY_PROTOCOL_ERROR);
}

/* ---- the frame at hand ---- */

static uint32_t u32_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static bool is_control(const struct dv_spdy *spdy)
{
    return spdy->head[0] & 0x80;
}

static uint32_t type_of(const struct dv_spdy *spdy)
{
    return u32_at(spdy->head) & 0xffff;
}

static uint8_t flags_of(const struct dv_spdy *spdy)
{
    return spdy->head[4];
}

static size_t length_of(const struct dv_spdy *spdy)
{
    return u32_at(spdy->head + 4) & 0xffffff;
}

/* The stream of a control frame: the first of its numbers. */
static uint32_t id_of(const struct dv_spdy *spdy)
{
    return u32_at(spdy->fixed) & 0x7fffffff;
}

/* What a type of control frame is made of: numbers first, and perhaps a header block. */
static const struct shape {
    uint32_t type;
    size_t n_fixed; /* bytes of the numbers */
    bool has_block;
} shapes[] = {
    {SPDY_SYN_STREAM,    10, true },
    {SPDY_SYN_REPLY,     4,  true },
    {SPDY_HEADERS,       4,  true },
    {SPDY_RST_STREAM,    8,  false},
    {SPDY_PING,          4,  false},
    {SPDY_GOAWAY,        8,  false},
    {SPDY_WINDOW_UPDATE, 8,  false},
};

static const struct shape *shape_of(uint32_t type)
{
    for (size_t i = 0; i < DV_COUNT(shapes); i++) {
        if (shapes[i].type == type)
            return &shapes[i];
    }
    return NULL;
}

/* ---- streams ---- */

/* Whether a stream of this id was ever open. */
static bool was_open(const struct dv_spdy *spdy, uint32_t id)
{
    bool is_ours = (id % 2 == 1) == spdy->options.is_client;

    return id > 0 && (is_ours ? id < spdy->next_id : id <= spdy->last_id);
}

static void on_fin(struct dv_spdy_stream *stream)
{
    struct dv_spdy_handler *handler = stream->spdy->handler;

    if (stream->is_ending || stream->peer_is_done)
        return;
    stream->peer_is_done = true;
    handler->finished(handler, stream);
    dv_spdy_stream_end_if_done(stream);
}

static void on_syn_stream(struct dv_spdy *spdy)
{
    uint32_t id = id_of(spdy);
    struct dv_spdy_stream *stream;

    if (id == 0 || (id % 2 == 1) == spdy->options.is_client) {
        fail(spdy, DV_INVALID_ARGUMENT, "SPDY: the peer cannot open stream %u", id);
        return;
    }
    if (id <= spdy->last_id) {
        fail(spdy, DV_INVALID_ARGUMENT, "SPDY: stream %u comes after %u", id, spdy->last_id);
        return;
    }
    spdy->last_id = id;
    if (spdy->has_gone)
        return; /* it crossed our GOAWAY, which says that it is not taken */
    if (!spdy->handler->opened || spdy->n_theirs >= spdy->options.streams_max) {
        dv_spdy_add_reset(spdy, id, DV_SPDY_REFUSED_STREAM);
        return;
    }
    stream = dv_spdy_stream_new(spdy, id, true);
    stream->is_done = flags_of(spdy) & SPDY_FLAG_UNIDIRECTIONAL;
    spdy->handler->opened(spdy->handler, stream, spdy->headers.fields, spdy->headers.n_fields);
    if (flags_of(spdy) & SPDY_FLAG_FIN)
        on_fin(stream);
}

static void on_syn_reply(struct dv_spdy *spdy)
{
    uint32_t id = id_of(spdy);
    struct dv_spdy_stream *stream = dv_spdy_stream_find(spdy, id);

    if (!stream) {
        if (!was_open(spdy, id))
            dv_spdy_add_reset(spdy, id, DV_SPDY_INVALID_STREAM);
        return;
    }
    if (stream->is_theirs || stream->has_replied) {
        dv_spdy_reset(stream, DV_SPDY_PROTOCOL_ERROR);
        return;
    }
    stream->has_replied = true;
    if (spdy->handler->replied)
        spdy->handler->replied(spdy->handler, stream);
    if (flags_of(spdy) & SPDY_FLAG_FIN)
        on_fin(stream);
}

/* Later headers mean nothing to us. */
static void on_headers(struct dv_spdy *spdy)
{
    struct dv_spdy_stream *stream = dv_spdy_stream_find(spdy, id_of(spdy));

    if (stream && flags_of(spdy) & SPDY_FLAG_FIN)
        on_fin(stream);
}

static void on_reset(struct dv_spdy *spdy)
{
    struct dv_spdy_stream *stream = dv_spdy_stream_find(spdy, id_of(spdy));

    if (stream)
        dv_spdy_stream_end(stream, DV_CANCELLED, "the peer has reset the stream");
}

/* ---- data ---- */

/* Handles some of a DATA frame, or all of an empty one. */
static void on_data(struct dv_spdy *spdy, dv_str bytes)
{
    uint32_t id = u32_at(spdy->head);
    struct dv_spdy_stream *stream = dv_spdy_stream_find(spdy, id);

    if (!stream || stream->peer_is_done) {
        if (stream)
            dv_spdy_reset(stream, DV_SPDY_STREAM_ALREADY_CLOSED);
        else if (!was_open(spdy, id) && spdy->left == 0)
            dv_spdy_add_reset(spdy, id, DV_SPDY_INVALID_STREAM);
        return; /* what comes for a stream that is over is on its way since before */
    }
    if (bytes.n > 0)
        spdy->handler->data(spdy->handler, stream, bytes);
    if (spdy->left == 0 && flags_of(spdy) & SPDY_FLAG_FIN)
        on_fin(stream);
}

/* ---- the connection ---- */

static void on_ping(struct dv_spdy *spdy)
{
    uint32_t id = u32_at(spdy->fixed);

    if ((id % 2 == 1) != spdy->options.is_client)
        dv_spdy_add_control(spdy, SPDY_PING, &id, 1);
    else if (spdy->handler->pong)
        spdy->handler->pong(spdy->handler);
}

/* Streams of ours that the peer has not begun with end. */
static void on_goaway(struct dv_spdy *spdy)
{
    uint32_t last_good = id_of(spdy);
    struct dv_link *link = spdy->open.head.next;
    bool is_first = !spdy->peer_is_going;

    spdy->peer_is_going = true;
    while (link != &spdy->open.head) {
        struct dv_spdy_stream *stream = DV_CONTAINER(link, struct dv_spdy_stream, link);

        link = link->next;
        if (!stream->is_theirs && !stream->has_replied && stream->id > last_good)
            dv_spdy_stream_end(stream, DV_UNAVAILABLE, "the peer is going away");
    }
    if (is_first && spdy->handler->going_away)
        spdy->handler->going_away(spdy->handler);
}

static void on_settings(struct dv_spdy *spdy)
{
    uint32_t n = u32_at(spdy->fixed);

    if (n > DV_SPDY_SETTINGS_MAX || spdy->n_fixed != 4 + 8 * (size_t)n) {
        fail(spdy, DV_INVALID_ARGUMENT, "SPDY: SETTINGS of %zu bytes have %u entries",
             spdy->n_fixed, n);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *entry = spdy->fixed + 4 + 8 * (size_t)i;
        uint32_t id = u32_at(entry) & 0xffffff;
        uint32_t value = u32_at(entry + 4);

        if (id == SETTING_MAX_STREAMS)
            spdy->allowed = value;
    }
}

/* ---- frames ---- */

static void on_control(struct dv_spdy *spdy)
{
    const struct shape *shape = shape_of(type_of(spdy));
    struct dv_err err;

    if (shape && shape->has_block && !dv_spdy_headers_end(&spdy->headers, &err)) {
        fail(spdy, err.code, "%s", err.msg);
        return;
    }
    switch (type_of(spdy)) {
    case SPDY_SYN_STREAM:
        on_syn_stream(spdy);
        break;
    case SPDY_SYN_REPLY:
        on_syn_reply(spdy);
        break;
    case SPDY_HEADERS:
        on_headers(spdy);
        break;
    case SPDY_RST_STREAM:
        on_reset(spdy);
        break;
    case SPDY_PING:
        on_ping(spdy);
        break;
    case SPDY_GOAWAY:
        on_goaway(spdy);
        break;
    case SPDY_SETTINGS:
        on_settings(spdy);
        break;
    case SPDY_WINDOW_UPDATE: /* Kubernetes has no windows */
    default:
        break; /* the draft wants unknown frames to be ignored */
    }
}

/* Checks the head of a control frame, before anything of it is kept. */
static void judge_control(struct dv_spdy *spdy)
{
    const struct shape *shape = shape_of(type_of(spdy));
    size_t n = length_of(spdy);
    bool is_fine = true;

    if ((u32_at(spdy->head) >> 16 & 0x7fff) != VERSION) {
        fail(spdy, DV_INVALID_ARGUMENT, "SPDY: a frame of another version");
        return;
    }
    if (type_of(spdy) == SPDY_SETTINGS)
        is_fine = n >= 4 && n <= DV_SPDY_FIXED_BYTES_MAX;
    else if (shape)
        is_fine = shape->has_block ? n >= shape->n_fixed : n == shape->n_fixed;
    if (!is_fine || n > CONTROL_BYTES_MAX)
        fail(spdy, DV_INVALID_ARGUMENT, "SPDY: a frame of type %u has %zu bytes", type_of(spdy), n);
}

/* Takes the bytes of a control frame that are there; returns how many. */
static size_t take_control(struct dv_spdy *spdy, dv_str bytes)
{
    const struct shape *shape = shape_of(type_of(spdy));
    bool has_settings = type_of(spdy) == SPDY_SETTINGS;
    size_t n_fixed = has_settings ? length_of(spdy) : shape ? shape->n_fixed : 0;
    size_t n = dv_size_min(bytes.n, spdy->left);
    struct dv_err err;

    if (spdy->n_fixed < n_fixed) {
        n = dv_size_min(n, n_fixed - spdy->n_fixed);
        memcpy(spdy->fixed + spdy->n_fixed, bytes.p, n);
        spdy->n_fixed += n;
        return n;
    }
    if (shape && !dv_spdy_headers_add(&spdy->headers, dv_str_slice(bytes, 0, n), &err))
        fail(spdy, err.code, "%s", err.msg);
    return n;
}

/* Takes the bytes of a frame's head that are there; returns how many. */
static size_t take_head(struct dv_spdy *spdy, dv_str bytes)
{
    size_t n = dv_size_min(bytes.n, DV_SPDY_HEAD_BYTES - spdy->n_head);

    memcpy(spdy->head + spdy->n_head, bytes.p, n);
    spdy->n_head += n;
    if (spdy->n_head < DV_SPDY_HEAD_BYTES)
        return n;
    spdy->left = length_of(spdy);
    spdy->n_fixed = 0;
    dv_spdy_headers_begin(&spdy->headers);
    if (is_control(spdy))
        judge_control(spdy);
    else if (spdy->left == 0)
        on_data(spdy, DV_STR_NONE);
    return n;
}

static size_t take_payload(struct dv_spdy *spdy, dv_str bytes)
{
    size_t n;

    if (is_control(spdy)) {
        n = take_control(spdy, bytes);
        spdy->left -= n;
    } else {
        n = dv_size_min(bytes.n, spdy->left);
        spdy->left -= n;
        on_data(spdy, dv_str_slice(bytes, 0, n));
    }
    return n;
}

bool dv_spdy_receive(struct dv_spdy *spdy, dv_str bytes, struct dv_err *err)
{
    while (bytes.n > 0 && !spdy->is_broken) {
        size_t n =
            spdy->n_head < DV_SPDY_HEAD_BYTES ? take_head(spdy, bytes) : take_payload(spdy, bytes);

        bytes = dv_str_slice(bytes, n, bytes.n);
        if (spdy->n_head == DV_SPDY_HEAD_BYTES && spdy->left == 0 && !spdy->is_broken) {
            spdy->n_head = 0; /* the next frame */
            if (is_control(spdy))
                on_control(spdy);
        }
        if (!spdy->is_broken &&
            spdy->outbox.filled.n > spdy->options.unsent_bytes_max + ANSWER_BYTES_MAX)
            fail(spdy, DV_RESOURCE_EXHAUSTED, "SPDY: the peer does not read its answers");
    }
    dv_spdy_settle(spdy);
    if (spdy->is_broken)
        *err = spdy->err;
    return !spdy->is_broken;
}

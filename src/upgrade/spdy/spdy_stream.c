/* spdy_stream.c - the life of a session and its streams. */
#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "upgrade/spdy.h"
#include "upgrade/spdy/spdy_header.h"
#include "upgrade/spdy/spdy_state.h"
#include "upgrade/wire/outbox.h"

#define STREAMS_MAX 512u
#define HEADER_BYTES_MAX (16u * 1024u)
#define UNSENT_BYTES_MAX (256u * 1024u)
/* What a DATA frame carries at most; the reference copies in pieces of this size. */
#define DATA_BYTES_MAX (32u * 1024u)
/* A connection has so many ids for each side; the next one would not fit. */
#define ID_MAX 0x7fffffffu

/* ---- sessions ---- */

static void tell_room(struct dv_spdy *spdy);

struct dv_spdy *dv_spdy_new(const struct dv_spdy_options *options, struct dv_spdy_handler *handler)
{
    struct dv_spdy *spdy = DV_ALLOC(struct dv_spdy);

    spdy->options = *options;
    if (options->streams_max == 0)
        spdy->options.streams_max = STREAMS_MAX;
    if (options->header_bytes_max == 0)
        spdy->options.header_bytes_max = HEADER_BYTES_MAX;
    if (options->unsent_bytes_max == 0)
        spdy->options.unsent_bytes_max = UNSENT_BYTES_MAX;
    spdy->handler = handler;
    spdy->next_id = spdy->next_ping = options->is_client ? 1 : 2;
    spdy->allowed = UINT32_MAX;
    dv_list_init(&spdy->open);
    dv_list_init(&spdy->ending);
    dv_outbox_init(&spdy->outbox);
    dv_spdy_headers_init(&spdy->headers, spdy->options.header_bytes_max);
    return spdy;
}

void dv_spdy_free(struct dv_spdy *spdy)
{
    if (!spdy)
        return;
    assert(spdy->n_streams == 0);
    dv_spdy_headers_fini(&spdy->headers);
    dv_outbox_fini(&spdy->outbox);
    free(spdy);
}

bool dv_spdy_pull(struct dv_spdy *spdy, dv_str *bytes)
{
    bool has_any;

    dv_spdy_settle(spdy);
    has_any = dv_outbox_pull(&spdy->outbox, bytes);
    if (has_any)
        tell_room(spdy); /* what they send now is for the next pull */
    return has_any;
}

void dv_spdy_lose(struct dv_spdy *spdy, const struct dv_err *err)
{
    struct dv_link *link;

    spdy->is_broken = true;
    spdy->err = *err;
    while ((link = dv_list_first(&spdy->open)) != NULL)
        dv_spdy_stream_end(DV_CONTAINER(link, struct dv_spdy_stream, link), DV_CANCELLED,
                           "the connection is gone");
    dv_spdy_settle(spdy);
}

bool dv_spdy_is_over(const struct dv_spdy *spdy)
{
    return spdy->is_broken || ((spdy->has_gone || spdy->peer_is_going) && spdy->n_streams == 0);
}

void dv_spdy_go_away(struct dv_spdy *spdy)
{
    dv_spdy_add_goaway(spdy, 0);
}

void dv_spdy_ping(struct dv_spdy *spdy)
{
    dv_spdy_add_control(spdy, SPDY_PING, &spdy->next_ping, 1);
    spdy->next_ping += 2;
}

size_t dv_spdy_n_streams(const struct dv_spdy *spdy)
{
    return spdy->n_streams;
}

size_t dv_spdy_unsent_bytes(const struct dv_spdy *spdy)
{
    return spdy->outbox.filled.n;
}

/* ---- streams ---- */

struct dv_spdy_stream *dv_spdy_stream_new(struct dv_spdy *spdy, uint32_t id, bool is_theirs)
{
    struct dv_spdy_stream *stream = DV_ALLOC(struct dv_spdy_stream);

    stream->spdy = spdy;
    stream->id = id;
    stream->is_theirs = is_theirs;
    dv_list_push(&spdy->open, &stream->link);
    spdy->n_streams++;
    spdy->n_theirs += is_theirs;
    return stream;
}

struct dv_spdy_stream *dv_spdy_stream_find(struct dv_spdy *spdy, uint32_t id)
{
    struct dv_link *link;

    if (spdy->recent && spdy->recent->id == id)
        return spdy->recent;
    DV_LIST_EACH (&spdy->open, link) {
        struct dv_spdy_stream *stream = DV_CONTAINER(link, struct dv_spdy_stream, link);

        if (stream->id == id) {
            spdy->recent = stream;
            return stream;
        }
    }
    return NULL;
}

static void set_wants_room(struct dv_spdy_stream *stream, bool wants_room)
{
    stream->spdy->n_waiting -= stream->wants_room;
    stream->spdy->n_waiting += wants_room;
    stream->wants_room = wants_room;
}

void dv_spdy_stream_end(struct dv_spdy_stream *stream, enum dv_code code, const char *why)
{
    struct dv_spdy *spdy = stream->spdy;

    if (stream->is_ending)
        return;
    stream->is_ending = true;
    set_wants_room(stream, false);
    if (code != DV_OK) {
        stream->end = DV_ALLOC(struct dv_err);
        (void)dv_fail(stream->end, code, "%s", why);
    }
    if (spdy->recent == stream)
        spdy->recent = NULL;
    spdy->n_theirs -= stream->is_theirs;
    dv_link_remove(&stream->link);
    dv_list_push(&spdy->ending, &stream->link);
}

void dv_spdy_stream_end_if_done(struct dv_spdy_stream *stream)
{
    if (stream->is_done && stream->peer_is_done)
        dv_spdy_stream_end(stream, DV_OK, "");
}

void dv_spdy_settle(struct dv_spdy *spdy)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&spdy->ending)) != NULL) {
        struct dv_spdy_stream *stream = DV_CONTAINER(link, struct dv_spdy_stream, link);

        spdy->n_streams--;
        spdy->handler->ended(spdy->handler, stream, stream->end);
        free(stream->end);
        free(stream);
    }
}

/* How many bytes of data can go out now. There are no windows as in the draft: the library of
 * Kubernetes neither looks at them nor opens them, so nobody may wait for that. */
static size_t room_of(const struct dv_spdy *spdy)
{
    size_t n_unsent = spdy->outbox.filled.n;

    return n_unsent < spdy->options.unsent_bytes_max ? spdy->options.unsent_bytes_max - n_unsent
                                                     : 0;
}

/* Tells streams that wait for it that they can send. They take turns: each is told once, and stands
 * behind the others if it still waits. */
static void tell_room(struct dv_spdy *spdy)
{
    for (size_t n = spdy->n_waiting; n > 0 && spdy->n_waiting > 0 && spdy->handler->room; n--) {
        struct dv_spdy_stream *stream = NULL;
        struct dv_link *link;

        DV_LIST_EACH (&spdy->open, link) {
            stream = DV_CONTAINER(link, struct dv_spdy_stream, link);
            if (stream->wants_room && room_of(spdy) > 0)
                break;
            stream = NULL;
        }
        if (!stream)
            return;
        set_wants_room(stream, false);
        dv_link_remove(&stream->link);
        dv_list_push(&spdy->open, &stream->link);
        spdy->handler->room(spdy->handler, stream);
    }
}

struct dv_spdy_stream *dv_spdy_open(struct dv_spdy *spdy, const struct dv_spdy_field *fields,
                                    size_t n_fields, void *ctx, struct dv_err *err)
{
    struct dv_spdy_stream *stream = NULL;

    if (spdy->is_broken || spdy->has_gone || spdy->peer_is_going || spdy->next_id > ID_MAX)
        (void)dv_fail(err, DV_UNAVAILABLE, "SPDY: no more streams can be opened");
    else if (spdy->n_streams - spdy->n_theirs >= spdy->allowed)
        (void)dv_fail(err, DV_RESOURCE_EXHAUSTED, "SPDY: the peer takes no more than %u streams",
                      spdy->allowed);
    else if (spdy->outbox.filled.n >= spdy->options.unsent_bytes_max)
        (void)dv_fail(err, DV_RESOURCE_EXHAUSTED, "SPDY: the peer does not read");
    else
        stream = dv_spdy_stream_new(spdy, spdy->next_id, false);
    if (!stream)
        return NULL;
    spdy->next_id += 2;
    stream->ctx = ctx;
    dv_spdy_add_syn(stream, fields, n_fields);
    return stream;
}

void dv_spdy_reply(struct dv_spdy_stream *stream)
{
    if (stream->is_ending || stream->has_replied || !stream->is_theirs)
        return;
    stream->has_replied = true;
    dv_spdy_add_reply(stream);
}

size_t dv_spdy_send(struct dv_spdy_stream *stream, dv_str bytes)
{
    size_t n_sent = 0;
    size_t room;

    if (stream->is_ending || stream->is_done)
        return 0;
    while (n_sent < bytes.n && (room = room_of(stream->spdy)) > 0) {
        size_t n = dv_size_min(dv_size_min(bytes.n - n_sent, room), DATA_BYTES_MAX);

        dv_spdy_add_data(stream, dv_str_slice(bytes, n_sent, n_sent + n), false);
        n_sent += n;
    }
    set_wants_room(stream, n_sent < bytes.n);
    return n_sent;
}

void dv_spdy_finish(struct dv_spdy_stream *stream)
{
    if (stream->is_ending || stream->is_done)
        return;
    stream->is_done = true;
    set_wants_room(stream, false);
    dv_spdy_add_data(stream, DV_STR_NONE, true);
    dv_spdy_stream_end_if_done(stream);
}

void dv_spdy_reset(struct dv_spdy_stream *stream, enum dv_spdy_status status)
{
    if (stream->is_ending)
        return;
    dv_spdy_add_reset(stream->spdy, stream->id, status);
    dv_spdy_stream_end(stream, DV_CANCELLED, "the stream was reset");
}

uint32_t dv_spdy_stream_id(const struct dv_spdy_stream *stream)
{
    return stream->id;
}

void *dv_spdy_stream_ctx(const struct dv_spdy_stream *stream)
{
    return stream->ctx;
}

void dv_spdy_stream_set_ctx(struct dv_spdy_stream *stream, void *ctx)
{
    stream->ctx = ctx;
}

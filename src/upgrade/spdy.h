/* spdy.h - SPDY/3.1 over a connection that has left HTTP, of either side: bytes in, bytes out; no
 * sockets, no clock.
 *
 *     bytes from the peer --> dv_spdy_receive --> handler: opened, replied, data, finished, ended
 *     bytes to the peer   <-- dv_spdy_pull    <-- dv_spdy_open, _reply, _send, _finish, _reset
 *
 * A stream is owned by its session and gone once `ended` has run for it: exactly once, for every
 * stream that was opened by either side. Header blocks are unpacked as they arrive, up to a limit;
 * data is handed on and never kept.
 *
 * Handlers run inside dv_spdy_receive, _pull, _settle and _lose. They may open, send on, finish and
 * reset streams; they must not receive, pull, settle, lose or free the session that called. */
#ifndef DV_UPGRADE_SPDY_H
#define DV_UPGRADE_SPDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;
struct dv_spdy;
struct dv_spdy_stream;

struct dv_spdy_field {
    dv_str name;  /* lower case */
    dv_str value; /* several values of one name are joined by NUL */
};

/* The statuses of a reset in the draft that we send. */
enum dv_spdy_status {
    DV_SPDY_PROTOCOL_ERROR = 1,
    DV_SPDY_INVALID_STREAM = 2,
    DV_SPDY_REFUSED_STREAM = 3,
    DV_SPDY_CANCEL = 5,
    DV_SPDY_STREAM_ALREADY_CLOSED = 9,
};

struct dv_spdy_handler {
    /* The peer has opened a stream; reply to it, or reset it, now or later. NULL: it is refused. */
    void (*opened)(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                   const struct dv_spdy_field *fields, size_t n_fields);
    /* The peer has accepted a stream of ours. May be NULL. */
    void (*replied)(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream);
    /* Bytes of a stream, never none; borrowed. */
    void (*data)(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream, dv_str bytes);
    /* Nothing more comes on this stream; what is sent on it goes on. */
    void (*finished)(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream);
    /* More can be sent on a stream whose last dv_spdy_send took less than it was given. May be
     * NULL. */
    void (*room)(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream);
    /* The stream is over, and is freed after this. err is NULL when both sides have finished.
     * DV_CANCELLED: one side has reset it, or the connection is gone. DV_UNAVAILABLE: the peer is
     * going away, and has done nothing for it. */
    void (*ended)(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                  const struct dv_err *err);
    /* The peer opens and takes no more streams; runs once. May be NULL. */
    void (*going_away)(struct dv_spdy_handler *handler);
    /* The peer has answered a ping. May be NULL. */
    void (*pong)(struct dv_spdy_handler *handler);
};

struct dv_spdy_options {
    bool is_client;
    size_t streams_max;      /* of the peer at once, beyond which they are refused; 0: 512 */
    size_t header_bytes_max; /* of a header block when unpacked; 0: 16 KiB */
    size_t unsent_bytes_max; /* that wait to go out, beyond which nothing is taken; 0: 256 KiB */
};

/* A header block with more fields than this breaks the protocol. */
#define DV_SPDY_FIELDS_MAX 64u

/* Makes a session. `handler` is kept for its life. */
struct dv_spdy *dv_spdy_new(const struct dv_spdy_options *options, struct dv_spdy_handler *handler);
/* Frees the session. Every stream must have ended: dv_spdy_lose sees to that. NULL is fine. */
void dv_spdy_free(struct dv_spdy *spdy);

/* Handles bytes from the peer. False: it broke the protocol, and what still comes is ignored. Pull
 * once more (a GOAWAY tells it why), then lose and free the session. */
DV_CHECKED bool dv_spdy_receive(struct dv_spdy *spdy, dv_str bytes, struct dv_err *err);
/* Returns all bytes that wait to go out, borrowed until the next pull; false when there are none.
 * Do not pull while the connection takes nothing: that is the back-pressure. */
bool dv_spdy_pull(struct dv_spdy *spdy, dv_str *bytes);
/* Runs `ended` for streams that are over, without sending anything; dv_spdy_pull does so too. */
void dv_spdy_settle(struct dv_spdy *spdy);
/* Ends every stream, because the connection is gone for the reason `err`. */
void dv_spdy_lose(struct dv_spdy *spdy, const struct dv_err *err);
/* Whether the peer broke the protocol, or one side is going away and no stream is left: close the
 * connection once all has been pulled. */
bool dv_spdy_is_over(const struct dv_spdy *spdy);
/* Tells the peer that we open and take no more streams; those that are there go on. */
void dv_spdy_go_away(struct dv_spdy *spdy);
void dv_spdy_ping(struct dv_spdy *spdy);

size_t dv_spdy_n_streams(const struct dv_spdy *spdy);
size_t dv_spdy_unsent_bytes(const struct dv_spdy *spdy);

/* ---- streams ---- */

/* Opens a stream with these fields. DV_UNAVAILABLE: one side is going away, or there are no more
 * ids. DV_RESOURCE_EXHAUSTED: the peer takes no more at once, or too much waits to go out. */
struct dv_spdy_stream *dv_spdy_open(struct dv_spdy *spdy, const struct dv_spdy_field *fields,
                                    size_t n_fields, void *ctx, struct dv_err *err);
/* Accepts a stream of the peer's, without fields. Only the first call counts. */
void dv_spdy_reply(struct dv_spdy_stream *stream);
/* Sends as much of the bytes as there is room for, and returns how much that is; 0 once the stream
 * is finished or over. When it is less than all, `room` runs later. */
size_t dv_spdy_send(struct dv_spdy_stream *stream, dv_str bytes);
/* Says that nothing more comes from us on this stream. Only the first call counts. */
void dv_spdy_finish(struct dv_spdy_stream *stream);
/* Breaks the stream off: `ended` runs with DV_CANCELLED when next pulled or settled. Nothing
 * happens to a stream that is over already. */
void dv_spdy_reset(struct dv_spdy_stream *stream, enum dv_spdy_status status);

uint32_t dv_spdy_stream_id(const struct dv_spdy_stream *stream);
void *dv_spdy_stream_ctx(const struct dv_spdy_stream *stream);
void dv_spdy_stream_set_ctx(struct dv_spdy_stream *stream, void *ctx);

#endif

/* http2_server.h - a server of ordinary HTTP requests over one HTTP/2 connection: bytes in, bytes
 * out; no sockets, no clock.
 *
 *     bytes from the client --> dv_h2_server_receive --> handler: request, body, complete, ended
 *     bytes to the client   <-- dv_h2_server_pull    <-- dv_h2_stream_answer, _send, _finish
 *
 * A stream is one request with its answer. It is owned by its session and gone once `ended` has run
 * for it: exactly once, for every stream that `request` or `refused` has told of. What a client may
 * make us keep is bounded: header lists, streams at once, frames that wait to go out. Bodies of
 * requests are handed on as they arrive and never kept; those of answers are the handler's.
 *
 * Handlers run inside dv_h2_server_receive, _pull, _settle and _lose. They may answer, send on,
 * finish and reset streams; they must not receive, pull, settle, lose or free the session that
 * called. */
#ifndef DV_HTTP2_SERVER_H
#define DV_HTTP2_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;
struct dv_h2_server;
struct dv_h2_stream;

/* ---- requests ---- */

struct dv_h2_field {
    dv_str name; /* lower case */
    dv_str value;
};

/* A request that is well-formed by RFC 9113, section 8; borrowed while the handler runs. */
struct dv_h2_http_request {
    dv_str method;
    dv_str scheme;
    dv_str authority; /* from :authority, or from the host field when that is missing */
    dv_str target;    /* :path as sent: "/a%20b?c=d" */
    /* The other fields in the order of arrival; no connection-specific ones, and not `host`.
     * Cookies may come in several fields. */
    const struct dv_h2_field *fields;
    size_t n_fields;
    bool has_length; /* the length of the body was announced; the session holds the client to it */
    uint64_t length;
    bool has_body; /* false: the request is complete with its header */
};

/* ---- answers ---- */

/* Bytes of an answer. The session keeps them as they are, and runs `release` once when it needs
 * them no more: they have been pulled, or the stream has ended. */
struct dv_h2_bytes {
    dv_str bytes;
    /* It must not use the session. NULL: the bytes live longer than the session. */
    void (*release)(void *ctx);
    void *ctx;
};

struct dv_h2_answer {
    unsigned status; /* 200 to 599 */
    /* The header's fields, copied. Names may be of any case. What HTTP/2 does not have
     * (connection, transfer-encoding, ...) is left out, and so is what cannot be sent. */
    const struct dv_h2_field *fields;
    size_t n_fields;
    struct dv_h2_bytes body; /* not sent to HEAD, and with status 204 and 304 */
    /* The body goes on with dv_h2_stream_send and ends with dv_h2_stream_finish. False: this is all
     * of it, and the session adds its content-length. */
    bool has_more;
};

/* ---- sessions ---- */

struct dv_h2_server_handler {
    /* A request's header is complete. Answer it now or later. */
    void (*request)(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                    const struct dv_h2_http_request *request);
    /* The next part of the request's body; borrowed. */
    void (*body)(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream, dv_str part);
    /* The request is complete; follows `request` at once when there is no body. `body` and
     * `complete` do not run for a stream that has been finished or reset. */
    void (*complete)(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream);
    /* A request that the session refuses with this status. The handler may answer it in its own
     * words before it returns; otherwise the session does. Neither `body` nor `complete` follows.
     * May be NULL. */
    void (*refused)(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                    unsigned status, const struct dv_err *err);
    /* All that was sent so far has been pulled, and the answer is not finished: more can be sent,
     * now or later. May be NULL. */
    void (*drained)(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream);
    /* The stream is over, and is freed after this. err is NULL when the whole answer has been
     * pulled. DV_CANCELLED: the client has reset the stream or is gone, or we have reset it.
     * DV_INVALID_ARGUMENT: the request broke HTTP's rules after its header. */
    void (*ended)(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                  const struct dv_err *err);
    /* The session has reset a stream that no handler was told of, because its header breaks HTTP's
     * rules: for the log. May be NULL. */
    void (*complaint)(struct dv_h2_server_handler *handler, const struct dv_err *err);
};

struct dv_h2_server_options {
    uint32_t streams_max;    /* requests at once; 0: 100 */
    size_t header_bytes_max; /* of a request, counted as HTTP/2 does; 431 beyond it; 0: 32 KiB */
    size_t unsent_bytes_max; /* of the pieces of one streamed answer; 0: 4 MiB */
};

/* A request with more header fields than this is refused. */
#define DV_H2_SERVER_FIELDS_MAX 128u

/* Makes a session. `handler` is kept for its life, `options` is copied. The first bytes to send are
 * there at once. */
struct dv_h2_server *dv_h2_server_new(const struct dv_h2_server_options *options,
                                      struct dv_h2_server_handler *handler);
/* Frees the session. Every stream must have ended: dv_h2_server_lose sees to that. NULL is fine. */
void dv_h2_server_free(struct dv_h2_server *server);

/* Handles bytes from the client. `now_ms` is on any clock that never goes back: floods of frames
 * that are cheap to send (resets, pings, settings, empty ones) are told by their rate. False: the
 * connection is of no more use, and what still comes is ignored. Pull once more (a GOAWAY tells the
 * client why), then lose and free the session. A fault that has yet to be told to the client is no
 * failure here: pull, and then ask dv_h2_server_is_over. */
DV_CHECKED bool dv_h2_server_receive(struct dv_h2_server *server, dv_str bytes, uint64_t now_ms,
                                     struct dv_err *err);
/* Returns the next bytes to send, borrowed until the session is next used, about a frame at a time;
 * false when there are none for now. Do not pull while the connection takes nothing: that is the
 * back-pressure. */
bool dv_h2_server_pull(struct dv_h2_server *server, dv_str *bytes);
/* Runs `ended` for streams that were reset, without sending anything; dv_h2_server_pull does so
 * too. */
void dv_h2_server_settle(struct dv_h2_server *server);
/* Ends every stream with DV_CANCELLED, because the connection is gone for the reason `err`. */
void dv_h2_server_lose(struct dv_h2_server *server, const struct dv_err *err);
/* Whether neither side has anything more to say: after a GOAWAY and the last stream, or after a
 * fault that the client has been told of. Lose and free the session then. */
bool dv_h2_server_is_over(const struct dv_h2_server *server);
/* Returns what was last found wrong with the client's HTTP/2; NULL: nothing. */
const struct dv_err *dv_h2_server_complaint(const struct dv_h2_server *server);

/* Starts to leave: the client is asked to begin no more streams, those that are there may be
 * answered. The session is over when the last one is and the client has answered, which may take
 * too long to wait for. A second call does nothing. */
void dv_h2_server_shut_down(struct dv_h2_server *server);

size_t dv_h2_server_n_streams(const struct dv_h2_server *server);
size_t dv_h2_server_unsent_bytes(const struct dv_h2_server *server); /* of all streams */

/* ---- streams ---- */

/* Begins the answer, and takes the bytes. Nothing but the release happens when the stream has been
 * answered, reset or ended. A client that is still sending its request when the answer is complete
 * is told to stop. */
void dv_h2_stream_answer(struct dv_h2_stream *stream, const struct dv_h2_answer *answer);
/* Adds a piece to an answer that has more, and takes the bytes, also on failure.
 * DV_RESOURCE_EXHAUSTED: the client does not read, and so much waits that nothing was added.
 * DV_CANCELLED: the stream is over, or its answer is complete. */
DV_CHECKED bool dv_h2_stream_send(struct dv_h2_stream *stream, const struct dv_h2_bytes *piece,
                                  struct dv_err *err);
/* Ends an answer that has more, after what was sent. */
void dv_h2_stream_finish(struct dv_h2_stream *stream);
/* Breaks the stream off, so that the client sees that something is missing: `ended` runs with
 * DV_CANCELLED when next pulled or settled. Nothing happens to a stream that was reset or has ended
 * already. */
void dv_h2_stream_reset(struct dv_h2_stream *stream);
/* While it is paused, a request's body goes on only as far as the client was allowed to send
 * already, at most 256 KiB; other streams are not concerned. */
void dv_h2_stream_pause(struct dv_h2_stream *stream, bool is_paused);

void *dv_h2_stream_ctx(const struct dv_h2_stream *stream);
void dv_h2_stream_set_ctx(struct dv_h2_stream *stream, void *ctx);
size_t dv_h2_stream_unsent_bytes(const struct dv_h2_stream *stream);

#endif

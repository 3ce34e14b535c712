/* rest.h - HTTP/1.1 on the loop: a server, its calls, and answers in one piece or in many.
 *
 * Every call has an id that stands in the log at its start and at its end. What a client may send
 * or leave unread is bounded: header fields, bodies, the time for either, connections. */
#ifndef DV_REST_H
#define DV_REST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_rest_server;
struct dv_rest_call;

/* ---- requests ---- */

struct dv_rest_field {
    dv_str name;
    dv_str value;
};

struct dv_rest_request {
    dv_str method;                      /* "GET" */
    dv_str path;                        /* as sent: "/a%20b"; begins with '/' */
    dv_str query;                       /* as sent, without the '?' */
    const struct dv_rest_field *fields; /* of the header, in the order of arrival */
    size_t n_fields;
    dv_str body;
};

/* The first field of that name, in any case of letters; empty when absent. */
dv_str dv_rest_request_field(const struct dv_rest_request *request, dv_str name);

/* Takes the next segment off *rest, which begins as a request's path, and decodes it: "/a/b%2Fc"
 * gives "a" and "b/c". False at the end. Empty segments count: "/" gives one. A request with
 * broken encodings, or with what is not UTF-8 when decoded, never reaches a handler. */
bool dv_rest_path_next(dv_str *rest, struct dv_arena *arena, dv_str *segment);
/* The same for a query: "a=b+c&d" gives "a", "b c" and "d", "". */
bool dv_rest_query_next(dv_str *rest, struct dv_arena *arena, dv_str *name, dv_str *value);
/* The first value of that name; false when absent. */
bool dv_rest_query_get(dv_str query, dv_str name, struct dv_arena *arena, dv_str *value);

/* ---- servers ---- */

struct dv_rest_server_options {
    dv_str name; /* for the log */
    /* A request has arrived whole; it lives as long as the call. The call must be answered, now or
     * later, also after it was cancelled. */
    void (*handle)(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request);
    /* A client did something that was refused, or broke the protocol: for the log. `peer` is its
     * address. May be NULL. */
    void (*complaint)(void *ctx, dv_str peer, const struct dv_err *err);
    void *ctx;
    size_t body_bytes_max;   /* of one request: 413 beyond it; 0: the default of 3 MiB */
    size_t bodies_bytes_max; /* of all unanswered requests: 503 beyond it; 0: 64 MiB */
    size_t unsent_bytes_max; /* of one streamed answer; 0: 4 MiB */
    size_t connections_max;  /* 503 beyond it; 0: 1024 */
    /* For a request to arrive, from its first line; for a client to send the next one; for it to
     * take an answer, with 1 s more for every 16,000 bytes, or the next part of a streamed one.
     * A handler may take as long as it likes. 0: 60 s. */
    uint64_t timeout_ms;
};

/* Listens on "ADDRESS:PORT": "127.0.0.1:6443", "[::1]:6443", "localhost:0". Without an address
 * (":6443") it is the loopback's; port 0 lets the kernel choose. `options` is copied.
 * DV_INVALID_ARGUMENT: no such address can be. DV_ALREADY_EXISTS: it is in use. */
struct dv_rest_server *dv_rest_server_open(struct dv_loop *loop, dv_str address,
                                           const struct dv_rest_server_options *options,
                                           struct dv_err *err);
/* Takes the listening socket `fd` (socket activation, Unix sockets), also on failure. */
struct dv_rest_server *dv_rest_server_open_fd(struct dv_loop *loop, int fd,
                                              const struct dv_rest_server_options *options,
                                              struct dv_err *err);
/* Takes no more connections and requests at once, lets running calls be answered for grace_ms, then
 * cancels them. `closed` runs when the last call has been answered by its handler; may be NULL. */
void dv_rest_server_close(struct dv_rest_server *server, uint64_t grace_ms, dv_closed_fn *closed,
                          void *ctx);
uint16_t dv_rest_server_port(const struct dv_rest_server *server); /* 0: not on TCP */
size_t dv_rest_server_n_connections(const struct dv_rest_server *server);

/* ---- calls: a request waiting for its answer ---- */

/* A field of the answer's header. One that cannot be sent (control characters) is left out. */
void dv_rest_call_add_field(struct dv_rest_call *call, dv_str name, dv_str value);
/* The answer in one piece; the call is gone. */
void dv_rest_call_reply(struct dv_rest_call *call, unsigned status, dv_str body);
/* The same with a body that is not copied: takes the bytes and leaves `body` empty. */
void dv_rest_call_reply_buf(struct dv_rest_call *call, unsigned status, struct dv_buf *body);

/* `cancelled` runs once if the client goes away or the server closes before the call is answered.
 * The handler still answers it. */
void dv_rest_call_on_cancel(struct dv_rest_call *call,
                            void (*cancelled)(void *ctx, struct dv_rest_call *call), void *ctx);
bool dv_rest_call_is_cancelled(const struct dv_rest_call *call);

/* Memory that lives as long as the call. */
struct dv_arena *dv_rest_call_arena(struct dv_rest_call *call);
uint64_t dv_rest_call_id(const struct dv_rest_call *call);
dv_str dv_rest_call_peer(const struct dv_rest_call *call); /* "127.0.0.1:4711", "unix" */

/* ---- streams: an answer in pieces, for as long as it takes ---- */

/* Embedded in what produces the answer; zeroed, then filled in; lent until `ended` has run. */
struct dv_rest_stream {
    /* Nearly all that was sent has gone out: the moment to send more. May be NULL. */
    void (*room)(struct dv_rest_stream *stream);
    /* The end, exactly once. err: NULL when all was handed to the kernel; DV_CANCELLED: the client
     * is gone, the server closes, or it was cancelled; DV_DEADLINE_EXCEEDED: the client took
     * nothing for too long. */
    void (*ended)(struct dv_rest_stream *stream, const struct dv_err *err);
    struct dv_rest_call *priv;
};

/* Begins the answer. The call lives on, with its request and arena, until `ended` has run. */
void dv_rest_stream_start(struct dv_rest_stream *stream, struct dv_rest_call *call,
                          unsigned status);
/* Queues a copy. DV_RESOURCE_EXHAUSTED: the client does not read; nothing was queued.
 * DV_CANCELLED: it is gone, `ended` will tell. */
DV_CHECKED bool dv_rest_stream_send(struct dv_rest_stream *stream, dv_str bytes,
                                    struct dv_err *err);
size_t dv_rest_stream_unsent_bytes(const struct dv_rest_stream *stream);
/* No more will be sent; `ended` runs when the client has got it all. */
void dv_rest_stream_finish(struct dv_rest_stream *stream);
/* Breaks off, so that the client sees that it has not got it all. Nothing happens once `ended` has
 * run. */
void dv_rest_stream_cancel(struct dv_rest_stream *stream);

#endif

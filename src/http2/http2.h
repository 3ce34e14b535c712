/* http2.h - gRPC calls over one HTTP/2 connection: bytes in, bytes out; no sockets, no clock.
 *
 *     bytes from the peer --> dv_h2_receive --> handler: request, message, ended ...
 *     bytes to the peer   <-- dv_h2_pull    <-- dv_h2_start, dv_h2_send, dv_h2_finish ...
 *
 * Every call takes one request message and gets any number of responses: what unary and
 * server-streaming methods need, which is all that the node protocols have. A call is owned by its
 * session and gone once `ended` has run for it: exactly once, for every call that was started or
 * announced by `request`.
 *
 * Handlers run inside dv_h2_receive, dv_h2_pull, dv_h2_settle and dv_h2_lose. They may start,
 * answer and cancel calls; they must not receive, pull, settle, lose or free the session that
 * called. */
#ifndef DV_HTTP2_H
#define DV_HTTP2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"

struct dv_h2;
struct dv_h2_call;

/* ---- messages ---- */

/* An encoded message, shared by all who send it; room for the gRPC prefix is part of it. */
struct dv_h2_msg;

/* Makes a message with a payload of n bytes for the caller to fill, and one reference. */
struct dv_h2_msg *dv_h2_msg_new(size_t n);
struct dv_h2_msg *dv_h2_msg_copy(dv_str payload);
void *dv_h2_msg_data(struct dv_h2_msg *msg);
size_t dv_h2_msg_size(const struct dv_h2_msg *msg); /* size of the payload */
struct dv_h2_msg *dv_h2_msg_ref(struct dv_h2_msg *msg);
void dv_h2_msg_unref(struct dv_h2_msg *msg); /* NULL is fine */

/* ---- sessions ---- */

/* What a client asks for; borrowed while the handler runs. */
struct dv_h2_request {
    dv_str path; /* "/package.Service/Method" */
    bool has_timeout;
    uint64_t timeout_ns;
};

/* How a call ended. On a server `status` is DV_OK when our answer went out whole, DV_CANCELLED
 * when the client gave up or went away or we cancelled, DV_INTERNAL when its request broke off in
 * a way that leaves nothing to answer. */
struct dv_h2_end {
    struct dv_err status;
    bool is_unprocessed; /* client: the peer did nothing for it, so it is safe to try elsewhere */
};

struct dv_h2_handler {
    /* Server: a well-formed request has begun; answer it now, or at `message`. If its message turns
     * out wrong, the session answers it, and only `ended` follows. */
    void (*request)(struct dv_h2_handler *handler, struct dv_h2_call *call,
                    const struct dv_h2_request *request);
    /* A whole message has arrived; borrowed. A server gets at most one for each call, and none once
     * it has finished the call. */
    void (*message)(struct dv_h2_handler *handler, struct dv_h2_call *call, dv_str message);
    /* The call is over, and is freed after this. It can still be asked about, but not sent on,
     * finished or cancelled. */
    void (*ended)(struct dv_h2_handler *handler, struct dv_h2_call *call,
                  const struct dv_h2_end *end);
    /* Server: all messages of the call have gone out. May be NULL. */
    void (*drained)(struct dv_h2_handler *handler, struct dv_h2_call *call);
    /* The peer's settings have arrived, so it speaks HTTP/2. May be NULL. */
    void (*ready)(struct dv_h2_handler *handler);
    /* The peer takes no new calls on this connection; runs once. May be NULL. */
    void (*going_away)(struct dv_h2_handler *handler);
    /* The session itself refused something that the peer sent: for the log. May be NULL. */
    void (*refused)(struct dv_h2_handler *handler, const struct dv_err *err);
};

struct dv_h2_options {
    bool is_server;
    size_t message_bytes_max; /* a longer one is refused at its length prefix */
    /* Limit of all messages that have arrived in part; room for one at least. */
    size_t partial_bytes_max;
    /* Limit of all messages that wait to go out; one message always may. */
    size_t unsent_bytes_max;
    uint32_t calls_max;      /* server: open at once; client: waiting for a free stream */
    size_t header_bytes_max; /* limit of one header list, either way, counted as HTTP/2 does */
};

/* A header list with more fields than this is refused. */
#define DV_H2_HEADERS_MAX 64u

/* Returns the defaults: 16 MiB messages, 1024 calls, 16 KiB of headers. */
struct dv_h2_options dv_h2_default_options(bool is_server);

/* Makes a session. `handler` is kept for its life. The first bytes to send are there at once. */
struct dv_h2 *dv_h2_new(const struct dv_h2_options *options, struct dv_h2_handler *handler);
/* Frees the session. Every call must have ended: dv_h2_lose sees to that. NULL is fine. */
void dv_h2_free(struct dv_h2 *h2);

/* Handles bytes from the peer. False: the connection is of no more use, and what still comes is
 * ignored. Pull once more (a GOAWAY may tell the peer why), then lose and free the session. A fault
 * that has yet to be told to the peer is no failure here: pull, and then ask dv_h2_is_over. */
DV_CHECKED bool dv_h2_receive(struct dv_h2 *h2, dv_str bytes, struct dv_err *err);
/* Returns the next bytes to send, borrowed until the session is next used; false when there are
 * none for now. */
bool dv_h2_pull(struct dv_h2 *h2, dv_str *bytes);
/* Runs `ended` for calls that were cancelled, without sending anything; dv_h2_pull does so too. */
void dv_h2_settle(struct dv_h2 *h2);
/* Ends every call, because the connection is gone for the reason `err`. */
void dv_h2_lose(struct dv_h2 *h2, const struct dv_err *err);
/* Whether neither side has anything more to say: after a GOAWAY and the last call, or after a fault
 * that the peer has been told of. Lose and free the session then. */
bool dv_h2_is_over(const struct dv_h2 *h2);
/* Returns what was last found wrong with the peer's HTTP/2; NULL: nothing. */
const struct dv_err *dv_h2_complaint(const struct dv_h2 *h2);

/* Starts to leave: no call is started any more, calls that run may finish, and calls that wait for
 * a stream end as unprocessed. The session is over when the last call is and, at a server, when the
 * peer has answered, which may take too long to wait for. A second call does nothing. */
void dv_h2_shut_down(struct dv_h2 *h2);

/* ---- calls ---- */

struct dv_h2_start {
    dv_str path;
    bool has_timeout;
    uint64_t timeout_ns;
};

/* Client: begins a call with its one message; keeps a reference to it. DV_RESOURCE_EXHAUSTED: too
 * many calls or bytes wait. DV_UNAVAILABLE: the peer takes no more calls here. DV_INVALID_ARGUMENT:
 * no peer would take this path. */
struct dv_h2_call *dv_h2_start(struct dv_h2 *h2, const struct dv_h2_start *start,
                               struct dv_h2_msg *msg, void *ctx, struct dv_err *err);
/* Cancels a call, on either side: `ended` runs with DV_CANCELLED when next pulled or settled, and
 * the peer is told. Nothing happens to a call that was cancelled or has ended already. */
void dv_h2_cancel(struct dv_h2_call *call);

/* Server: adds a message to the answer; keeps a reference to it. DV_RESOURCE_EXHAUSTED: the peer
 * does not read, and too much waits already. */
DV_CHECKED bool dv_h2_send(struct dv_h2_call *call, struct dv_h2_msg *msg, struct dv_err *err);
/* Server: ends the answer after what was sent. `message` is empty for DV_OK. Nothing may be sent
 * after it; finishing twice changes nothing. */
void dv_h2_finish(struct dv_h2_call *call, enum dv_code code, dv_str message);

void *dv_h2_call_ctx(const struct dv_h2_call *call);
void dv_h2_call_set_ctx(struct dv_h2_call *call, void *ctx);
size_t dv_h2_call_unsent_bytes(const struct dv_h2_call *call);
uint64_t dv_h2_call_n_received(const struct dv_h2_call *call); /* messages so far */

#endif

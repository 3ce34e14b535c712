/* session.h - the structs of a session and its calls, shared by the files of this module. */
#ifndef DV_HTTP2_SESSION_H
#define DV_HTTP2_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "http2/connection.h"
#include "http2/header_list.h"
#include "http2/http2.h"

#define PREFIX_BYTES 5u
struct dv_h2_msg {
    uint32_t n_refs;
    size_t n; /* prefix included */
    uint8_t bytes[];
};

struct dv_h2 {
    nghttp2_session *ng;
    struct dv_h2_options options;
    struct dv_h2_handler *handler;
    struct dv_list open;    /* calls that have a stream */
    struct dv_list waiting; /* client: calls that wait for one */
    struct dv_list ending;  /* calls that were cancelled, for which `ended` is due */
    size_t n_calls;         /* calls in all three lists */
    size_t n_open;
    size_t n_waiting;
    size_t partial_bytes;
    size_t unsent_bytes;
    struct dv_h2_header_list headers;
    struct dv_err err; /* the latest complaint about the peer; code DV_OK: none */
    enum dv_h2_goodbye goodbye;
    bool is_ready;
    bool is_broken;       /* what still arrives is ignored */
    bool is_shut;         /* no new calls may begin, whichever side said so */
    bool peer_is_leaving; /* its GOAWAY has arrived */
    /* Nghttp2 ends the session for a fault of the peer's that does not matter to us. */
    bool is_forgiving;
    bool owes_going_away; /* out of stream ids: the handler is told at the next pull */
};

/* The state of a call. A client's begins WAITING, a server's BEGUN. */
enum dv_h2_call_state {
    CALL_WAITING, /* client: waits for a stream */
    CALL_BEGUN,   /* server: headers are arriving, the handler does not know it yet */
    CALL_OPEN,
    CALL_FINISHED, /* server: dv_h2_finish has been called */
    CALL_ENDING,   /* cancelled by us: only `ended` is missing */
};

struct saved_start;

struct dv_h2_outgoing {
    struct dv_link link;
    struct dv_h2_msg *msg;
};

struct dv_h2_call {
    struct dv_h2 *h2;
    void *ctx;
    enum dv_h2_call_state state;
    int32_t stream; /* id; 0: none */
    struct dv_link link;

    /* incoming */
    bool has_headers;  /* client: the response's headers are through */
    bool is_encoded;   /* the peer named an encoding that we lack */
    bool is_deaf;      /* what still arrives is dropped */
    bool peer_is_done; /* END_STREAM has arrived */
    uint32_t http_status;
    uint64_t n_received;
    uint8_t prefix[PREFIX_BYTES];
    size_t n_prefix;
    size_t message_n; /* size of the message, once the prefix is complete */
    char *partial;    /* what has arrived of it; NULL while nothing was kept */
    size_t partial_n;
    size_t partial_size;

    /* outgoing */
    struct dv_list queue; /* struct dv_h2_outgoing */
    size_t sent_of_first;
    size_t unsent_bytes;
    bool has_answered;         /* server: response headers are submitted */
    bool answer_is_out;        /* server: the whole answer was sent */
    enum dv_code code;         /* server: the status to finish with */
    char *status_text;         /* percent-encoded, or NULL */
    struct saved_start *saved; /* client: what a waiting call begins with */
    struct dv_h2_end *end;     /* CALL_ENDING: how it ends */
};

/* http2_call.c */
struct dv_h2_call *dv_h2_call_new(struct dv_h2 *h2, enum dv_h2_call_state state);
/* Removes the call, tells the handler if that knows of it, and frees the call. */
void dv_h2_call_end(struct dv_h2_call *call, const struct dv_h2_end *end);
/* Fails the call: its stream is reset, and `ended` runs at the next pull. This is safe within the
 * call's own callbacks. */
void dv_h2_call_fail(struct dv_h2_call *call, enum dv_code code, const char *fmt, ...)
    DV_PRINTF(3, 4);
/* Server: answers with an HTTP status and a gRPC status in one HEADERS frame. */
void dv_h2_answer_error(struct dv_h2_call *call, const char *http_status, enum dv_code code,
                        dv_str message);
/* Whether a message may wait to go out beside what waits already. DV_RESOURCE_EXHAUSTED: no. */
DV_CHECKED bool dv_h2_check_unsent(const struct dv_h2 *h2, const struct dv_h2_msg *msg,
                                   struct dv_err *err);
void dv_h2_enqueue(struct dv_h2_call *call, struct dv_h2_msg *msg);
/* Gives nghttp2 the next bytes of what was enqueued. */
ssize_t dv_h2_read_data(nghttp2_session *ng, int32_t stream, uint8_t *buf, size_t size,
                        uint32_t *flags, nghttp2_data_source *source, void *ctx);

/* session.c */
/* Ends the session of a client that wants to leave, once no call runs. */
void dv_h2_leave_if_idle(struct dv_h2 *h2);

/* http2_start.c */
/* Starts waiting calls, as far as the peer allows streams. */
void dv_h2_start_waiting(struct dv_h2 *h2);
/* Lets no call begin on this session any more: those that wait may try elsewhere. */
void dv_h2_close_to_calls(struct dv_h2 *h2, const char *why);

/* receive.c */
void dv_h2_on_request_headers(struct dv_h2_call *call, bool is_end);
/* Handles a response's headers or trailers; the call may be freed afterwards. */
void dv_h2_on_response_headers(struct dv_h2_call *call, bool is_end);
void dv_h2_on_data(struct dv_h2_call *call, dv_str bytes);
/* Handles END_STREAM on anything but a client's response headers. */
void dv_h2_on_peer_done(struct dv_h2_call *call);
/* Tells the handler that something that the peer sent was refused. */
void dv_h2_refuse(struct dv_h2 *h2, enum dv_code code, const char *fmt, ...) DV_PRINTF(3, 4);

#endif

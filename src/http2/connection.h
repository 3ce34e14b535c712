/* connection.h - what a connection needs whatever is spoken on it: bounds on what waits for a peer
 * that does not read, and a way to leave that loses no request. */
#ifndef DV_HTTP2_CONNECTION_H
#define DV_HTTP2_CONNECTION_H

#include <stdbool.h>
#include <sys/types.h>

#include <nghttp2/nghttp2.h>

#include "base/defs.h"
#include "base/err.h"

/* The largest frame that we send when the peer allows it. */
#define DV_H2_FRAME_BYTES (256u * 1024u)

/* How far we are with leaving. A client sends its GOAWAY when its last call is over, because
 * nghttp2 may ignore what comes after it. A server's first GOAWAY only announces the second, which
 * names the last call that it takes: in between it waits for the answer to a PING, so that no call
 * is under way that it has not seen. */
enum dv_h2_goodbye {
    GOODBYE_NONE,
    GOODBYE_DUE, /* client: calls run; server: the first GOAWAY is on its way */
    GOODBYE_PINGED,
    GOODBYE_SAID,
};

/* Server: announces that it will leave. */
void dv_h2_goodbye_announce(nghttp2_session *ng, enum dv_h2_goodbye *goodbye);
/* Server: goes on after a GOAWAY of ours was sent, and after the PING behind it was answered. */
void dv_h2_goodbye_on_goaway_sent(nghttp2_session *ng, enum dv_h2_goodbye *goodbye);
void dv_h2_goodbye_on_ping_ack(nghttp2_session *ng, enum dv_h2_goodbye *goodbye);
/* Sends the GOAWAY that is meant. */
void dv_h2_goodbye_say(nghttp2_session *ng, enum dv_h2_goodbye *goodbye);

/* What a session is told by nghttp2; NULL: it does not want to know. */
struct dv_h2_callbacks {
    nghttp2_on_begin_frame_callback begin_frame;
    nghttp2_on_begin_headers_callback begin_headers;
    nghttp2_on_header_callback header;
    nghttp2_on_invalid_header_callback invalid_header;
    nghttp2_on_data_chunk_recv_callback data_chunk;
    nghttp2_on_frame_recv_callback frame;
    nghttp2_on_invalid_frame_recv_callback invalid_frame;
    nghttp2_on_stream_close_callback stream_close;
    nghttp2_on_frame_send_callback frame_sent;
    nghttp2_error_callback2 complaint;
};
/* Makes nghttp2's own kind of them; the caller deletes it. */
nghttp2_session_callbacks *dv_h2_callbacks_new(const struct dv_h2_callbacks *callbacks);

/* Makes options that keep no streams that are over; the caller deletes them. */
nghttp2_option *dv_h2_option_new(void);

/* Checks what nghttp2 said to bytes that it was given, and that not too many frames wait for a peer
 * that does not read. */
DV_CHECKED bool dv_h2_check_received(nghttp2_session *ng, ssize_t got, struct dv_err *err);
/* Sets the error of a GOAWAY, sent or received: "what: PROTOCOL_ERROR reason". */
void dv_h2_fail_goaway(const nghttp2_goaway *goaway, enum dv_code code, const char *what,
                       struct dv_err *err);
/* Sets nghttp2's own text about a fault of the peer's, for the log. */
void dv_h2_fail_complaint(int lib_error_code, const char *text, size_t n, struct dv_err *err);

#endif

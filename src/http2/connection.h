/* connection.h - what a connection needs whatever is spoken on it: bounds on what waits for a peer
 * that does not read, and a way to leave that loses no request. */
#ifndef DV_HTTP2_CONNECTION_H
#define DV_HTTP2_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
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

/* Checks what nghttp2 said to bytes that it was given, and that not too many frames wait for a peer
 * that does not read. */
DV_CHECKED bool dv_h2_check_received(nghttp2_session *ng, ssize_t got, struct dv_err *err);
/* Sets the error of a GOAWAY, sent or received: "what: PROTOCOL_ERROR reason". */
void dv_h2_fail_goaway(const nghttp2_goaway *goaway, enum dv_code code, const char *what,
                       struct dv_err *err);
/* Sets nghttp2's own text about a fault of the peer's, for the log. */
void dv_h2_fail_complaint(int lib_error_code, const char *text, size_t n, struct dv_err *err);

/* How many bytes of DATA nghttp2 should put into a frame: its callback. */
ssize_t dv_h2_data_length(nghttp2_session *ng, uint8_t type, int32_t stream, int32_t session_window,
                          int32_t stream_window, uint32_t frame_max, void *ctx);

#endif

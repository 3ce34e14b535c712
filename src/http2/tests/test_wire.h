/* test_wire.h - HTTP/2 frames as text, for peers that no library would play.
 *
 * One frame a line, the stream's id after the kind, and then what it carries:
 *
 *     preface
 *     settings 3=100 4=65535        settings+ack
 *     headers+end 1 :method=POST|:path=/a.B/C
 *     message+end 1 hi              a DATA frame with the five bytes before "hi"
 *     data 1 00000000026869         reset 1 8
 *     ping 0102030405060708         goaway 0 1 0
 *     window 1 65535                frame 0 20 0 deadbeef (stream, type, flags, payload)
 *
 * Kinds take +end, +pad (seven bytes), +part (the header list goes on in a "continuation"),
 * +ack. */
#ifndef DV_HTTP2_TEST_WIRE_H
#define DV_HTTP2_TEST_WIRE_H

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "base/str.h"
#include "http2/tests/test_side.h"

/* The peer of a session: header compression has a state in each direction. */
struct wire {
    nghttp2_hd_deflater *deflater;
    nghttp2_hd_inflater *inflater;
    struct dv_buf bytes;
    struct dv_buf heard;
};

void wire_init(struct wire *wire);
void wire_fini(struct wire *wire);
/* The bytes of these frames, borrowed until the next use. */
dv_str wire_bytes(struct wire *wire, const char *frames);
/* The frames of these bytes, without what every connection has: SETTINGS, their ACK, windows. The
 * fields of a header list are in order. Bytes begin and end with a frame. */
void wire_print(struct wire *wire, dv_str bytes, struct dv_buf *frames);

/* A session and a peer that have greeted each other. NULL: the default options. */
void wire_meet_server(struct wire *wire, struct side *server, const struct dv_h2_options *options);
void wire_meet_client(struct wire *wire, struct side *client, const struct dv_h2_options *options);
/* The session receives these frames; the test fails when it does not want to. */
void wire_say(struct wire *wire, struct side *side, const char *frames);
/* All that the session has to send, as frames. */
const char *wire_hear(struct wire *wire, struct side *side);
/* Both are over. */
void wire_part(struct wire *wire, struct side *side);

#endif

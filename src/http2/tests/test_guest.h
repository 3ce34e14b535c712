/* test_guest.h - a server's session whose handler writes down what it is told, with a client that
 * speaks in frames as text (test_wire.h). */
#ifndef DV_HTTP2_TEST_GUEST_H
#define DV_HTTP2_TEST_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "http2/http2_server.h"
#include "http2/tests/test_wire.h"

/* Streams are numbered as they begin. Events are lines: "#1 GET /a x=y", "#1 body hi",
 * "#1 complete", "#1 refused 431", "#1 ended OK". */
struct guest {
    struct dv_h2_server_handler handler;
    struct dv_h2_server *server;
    struct wire wire;
    struct dv_buf events;
    uint64_t now_ms;
    struct dv_err last_err; /* of a stream that ended badly, a refusal or a complaint */
    size_t n_begun;
    size_t n_ended;
    size_t n_complete;
    size_t n_drained;
    size_t n_body_bytes;
    size_t n_released;
    bool *is_over; /* by number - 1 */
    bool is_quiet; /* events are counted only */

    /* What the test does in a callback, once it is written down; NULL: nothing. */
    void (*on_request)(struct guest *guest, struct dv_h2_stream *stream,
                       const struct dv_h2_http_request *request);
    void (*on_body)(struct guest *guest, struct dv_h2_stream *stream);
    void (*on_complete)(struct guest *guest, struct dv_h2_stream *stream);
    void (*on_refused)(struct guest *guest, struct dv_h2_stream *stream);
    void (*on_drained)(struct guest *guest, struct dv_h2_stream *stream);
    void (*on_ended)(struct guest *guest, struct dv_h2_stream *stream);
    struct dv_h2_stream *stream; /* the latest that began */
    size_t left;                 /* the test's own */
};

#define GET ":method=GET|:scheme=https|:authority=h|:path=/a"
#define POST ":method=POST|:scheme=https|:authority=h|:path=/a"

/* The lines since this was last asked. */
#define assert_seen(guest, want)                                                                   \
    do {                                                                                           \
        assert_string_equal(dv_buf_c(&(guest)->events), (want));                                   \
        dv_buf_clear(&(guest)->events);                                                            \
    } while (0)

/* A session and a client that have greeted each other; NULL: the default options. Complete requests
 * are answered with 200 and "hi" unless the test does something else. */
void guest_meet(struct guest *guest, const struct dv_h2_server_options *options);
/* Loses the session, and fails unless every stream has ended once. */
void guest_part(struct guest *guest);
/* The session receives these frames; the test fails when it does not want to. */
void guest_say(struct guest *guest, const char *frames);
/* Like guest_say; false when the session does not want to, with its error. */
bool guest_try(struct guest *guest, const char *frames, struct dv_err *err);
/* All that the session has to send, as frames. */
const char *guest_hear(struct guest *guest);

/* For on_complete: answers with 200 and "hi". */
void guest_answer(struct guest *guest, struct dv_h2_stream *stream);
/* Begins an answer of 200 that has more. */
void guest_begin(struct guest *guest, struct dv_h2_stream *stream);
/* n bytes of an answer, whose release is counted in n_released. */
struct dv_h2_bytes guest_bytes(struct guest *guest, size_t n);

#endif

/* test_guest2.h - a client of the fixture's server that speaks HTTP/2 under TLS, on nghttp2. */
#ifndef DV_REST_TEST_GUEST2_H
#define DV_REST_TEST_GUEST2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gnutls/gnutls.h>
#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "base/str.h"
#include "rest/tests/test_rest_fixture.h"

/* One request with its answer. */
struct reply {
    int32_t id;
    char status[4];       /* empty: there is no header yet */
    struct dv_buf fields; /* "name=value;" each */
    struct dv_buf body;
    dv_str to_send;
    bool holds_back; /* the body of the request does not end */
    bool is_over;
    uint32_t error_code; /* of its end */
};

struct guest {
    struct fixture *fixture;
    int fd;
    struct dv_poll *poll;
    gnutls_session_t tls;
    gnutls_certificate_credentials_t creds;
    bool is_shaken;
    nghttp2_session *ng;
    struct reply replies[128];
    size_t n_replies;
    bool was_told_to_go; /* a GOAWAY has come */
    bool is_closed;
};

/* Connects, and runs the loop until the handshake is done. Without windows, the client gives the
 * server none of those back that it has used up. */
void guest_open(struct guest *guest, struct fixture *fixture, bool gives_windows);
void guest_close(struct guest *guest); /* once is enough, twice is fine */
/* Sends a request; the body is borrowed until it has gone out. */
struct reply *guest_ask(struct guest *guest, const char *method, const char *path, dv_str body);
/* Like guest_ask, with a body that never ends and a field more. */
struct reply *guest_begin(struct guest *guest, const char *path, dv_str body);
struct reply *guest_ask_with(struct guest *guest, const char *path, const char *name,
                             const char *value);
/* Sends what the session has to send. */
void guest_flush(struct guest *guest);
/* Runs the loop until the answer is complete, or fails the test. */
void guest_expect(struct guest *guest, struct reply *reply, const char *status, const char *body);
void guest_expect_over(struct guest *guest, struct reply *reply);
void guest_expect_closed(struct guest *guest);

#endif

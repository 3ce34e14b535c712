/* test_rest_fixture.h - a server on a loop with a virtual clock, and bare sockets as its clients.
 */
#ifndef DV_REST_TEST_REST_FIXTURE_H
#define DV_REST_TEST_REST_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "rest/rest.h"
#include "support/turns.h"

/* What the server does with a request depends on its path:
 *   /echo    answers with the body
 *   /show    answers with all it has got, as text
 *   /hold    keeps the call: the test answers
 *   /stream  begins a streamed answer; the test goes on with it
 *   /who     answers with whom the client's certificate names
 *   others   404 */

struct watched {
    int fd;
    struct dv_poll *poll;
};

struct fixture {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    struct dv_rest_server_options options; /* for fixture_serve; zeros: the defaults */
    struct dv_rest_server *server;
    uint16_t port;
    int n_closed; /* servers */

    struct dv_rest_call *held; /* the latest call of /hold */
    int n_held;
    bool closes_server;           /* in the handler of /hold */
    struct dv_rest_stream stream; /* the latest of /stream */
    int n_streams;
    int n_rooms;
    int n_ended;
    struct dv_err ended; /* code DV_OK: success */
    void (*on_room)(struct fixture *fixture);
    struct dv_buf complaints; /* "CODE text;" each */
    struct dv_arena *arena;
    struct dv_rest_cert ca; /* of fixture_certify */
    struct dv_rest_tls tls;
    struct dv_buf log;
    /* What is watched for tests. A test that failed closes nothing: the end of the fixture does. */
    DV_VEC(struct watched) watched;
};

struct client {
    struct fixture *fixture;
    int fd;
    struct dv_poll *poll;
    struct dv_buf got;
    bool is_closed; /* by the server */
};

int fixture_start(void **state);
int fixture_end(void **state);
void fixture_serve(struct fixture *fixture);
void fixture_close(struct fixture *fixture, uint64_t grace_ms);
/* Makes a CA and a certificate for "localhost" and 127.0.0.1; fixture_serve uses them. */
void fixture_certify(struct fixture *fixture);
/* A certificate of `ca` for a server or, with groups, for a client, valid for some days from
 * `start_days` days ago. */
struct dv_rest_cert fixture_cert(struct fixture *fixture, const struct dv_rest_cert *ca,
                                 const char *name, const dv_str *groups, uint64_t start_days);
/* Answers with fixture->stream. */
void fixture_stream(struct fixture *fixture, struct dv_rest_call *call);

/* Watches the descriptor for something to read. */
struct dv_poll *fixture_watch(struct fixture *fixture, int fd,
                              void (*ready)(void *ctx, unsigned events), void *ctx);
/* Closes the descriptor, which is watched. */
void fixture_unwatch(struct fixture *fixture, int fd);

void client_open(struct client *client, struct fixture *fixture);
void client_close(struct client *client); /* once is enough, twice is fine */
void client_reads(struct client *client, bool reads);
void client_send(struct client *client, const char *text);
void client_send_n(struct client *client, dv_str bytes);
/* Runs the loop until the text has come, or fails the test; then takes it and all before it out of
 * `got`. */
void client_expect(struct client *client, const char *text);
/* The same for an answer: its status, its header, and this body, under its own length. */
void client_expect_answer(struct client *client, unsigned status, const char *body);
void client_expect_closed(struct client *client);

/* Runs the loop until *number is at least that, or fails the test. */
void wait_count(struct fixture *fixture, const int *number, int at_least);
void wait_connections(struct fixture *fixture, size_t n);
void wait_complaint(struct fixture *fixture, const char *text);
/* Runs what is due, and what that makes due: a call goes back and forth a few times. */
#define settle(fixture) loop_turns((fixture)->loop, 10)
void advance(struct fixture *fixture, uint64_t ms);
/* Whether the loop, left alone for a while, leaves the processor alone. */
bool is_asleep(struct fixture *fixture);

#endif

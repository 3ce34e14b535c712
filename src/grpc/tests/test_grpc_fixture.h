/* test_grpc_fixture.h - a server and a channel on one loop with a virtual clock, for this module's
 * tests. */
#ifndef DV_GRPC_TEST_GRPC_FIXTURE_H
#define DV_GRPC_TEST_GRPC_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "support/turns.h"

#define TEST_ECHO "/test.Service/Echo"   /* answers what it was asked */
#define TEST_HOLD "/test.Service/Hold"   /* keeps the call: the test answers */
#define TEST_WATCH "/test.Service/Watch" /* sends three messages, then ends OK */
#define TEST_FAIL "/test.Service/Fail"   /* ends with DV_NOT_FOUND and the request as its text */

struct fixture {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    char dir[64];
    char path[96];
    struct dv_server *server;
    size_t connections_max;            /* for fixture_serve; 0: the default */
    struct dv_grpc_observer *observer; /* of the server and the channel; may be NULL */
    int n_servers_closed;
    bool keeps_file;      /* for fixture_serve: the socket's file is looked after */
    int n_remade;         /* how often it was made anew */
    int n_remade_in_vain; /* how often it could not be */
    struct dv_err remade; /* why, the last time */

    struct dv_server_call *held; /* the latest call of TEST_HOLD */
    int n_held;
    int n_cancelled;
    bool finishes_on_cancel;
    struct dv_peer peer; /* of the latest call */
    uint64_t server_deadline_ms;
    struct dv_buf complaints; /* "CODE text;" each */

    struct dv_channel *channel;
    struct dv_buf states; /* "name " each */
    int n_channels_closed;
    struct dv_buf log;
};

/* A call and what came of it. */
struct probe {
    struct dv_call call;
    struct dv_buf got; /* all messages, each followed by ';' */
    int n_done;
    struct dv_err err; /* code DV_OK: success */
    struct fixture *fixture;
    bool closes_channel;   /* in `done` */
    struct probe *cancels; /* in `done` */
    struct probe *starts;  /* in `done`: an echo */
};

int fixture_start(void **state);
int fixture_end(void **state);

void fixture_serve(struct fixture *fixture);
void fixture_stop_serving(struct fixture *fixture, uint64_t grace_ms);
void fixture_connect(struct fixture *fixture, bool connects_once);
void fixture_close_channel(struct fixture *fixture);

/* Starts a call with the text as its request; deadline after timeout_ms of virtual time. */
void probe_start(struct probe *probe, struct fixture *fixture, const char *method, const char *text,
                 uint64_t timeout_ms);
void probe_fini(struct probe *probe);

/* Runs the loop until it holds, or fails the test. */
void wait_done(struct fixture *fixture, struct probe *probe);
void wait_state(struct fixture *fixture, enum dv_channel_state state);
void wait_held(struct fixture *fixture, int n_held);
void wait_cancelled(struct fixture *fixture, int n_cancelled);
void wait_complaint(struct fixture *fixture, const char *text);
void wait_connections(struct fixture *fixture, size_t n);
/* Runs what is due, and what that makes due: a call goes back and forth a few times. */
#define settle(fixture) loop_turns((fixture)->loop, 10)
/* Turns the clock and lets what is due happen. */
void advance(struct fixture *fixture, uint64_t ms);

#endif

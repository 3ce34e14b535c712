#include "support/dvtest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <nghttp2/nghttp2.h>

#include "loop/loop.h"
#include "rest/tests/test_guest2.h"
#include "rest/tests/test_rest_fixture.h"

/* Clients that do anything in any order, and a handler that answers in any way at any time, from a
 * seed: whatever they do, every call ends once, and nothing is left. */

#define SLOTS 40
#define GUESTS 6
#define JOBS 400
#define STEPS 6000

/* A call that the handler has. */
struct job {
    struct storm *storm;
    struct dv_rest_call *call; /* NULL: free, or answered with the stream */
    struct dv_rest_stream stream;
    bool is_streaming;
    bool is_finished;
    bool is_head; /* has no body: its stream ends at once */
};

struct storm {
    struct fixture *fixture;
    uint64_t random;
    struct client clients[SLOTS]; /* fd negative: not connected */
    struct guest guests[GUESTS];  /* the same, for HTTP/2 */
    void (*act)(struct storm *storm);
    struct job jobs[JOBS];
    int n_calls;
    int n_answered;
    int n_started;
    int n_ended;
};

static unsigned pick(struct storm *storm, unsigned below)
{
    storm->random = storm->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(storm->random >> 33) % below;
}

/* ---- the handler ---- */

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    struct job *job = DV_CONTAINER(stream, struct job, stream);

    if (!err)
        assert_true(job->is_finished || job->is_head);
    job->is_streaming = false;
    job->storm->n_ended++;
}

static void send_some(struct job *job)
{
    static const char bytes[30000];
    struct dv_err err;

    if (!dv_rest_stream_send(&job->stream, (dv_str){bytes, pick(job->storm, sizeof(bytes))}, &err))
        assert_true(err.code == DV_CANCELLED || err.code == DV_RESOURCE_EXHAUSTED);
}

static void on_room(struct dv_rest_stream *stream)
{
    struct job *job = DV_CONTAINER(stream, struct job, stream);

    if (pick(job->storm, 3) && !job->is_finished)
        send_some(job);
}

static void start_stream(struct job *job)
{
    job->stream = (struct dv_rest_stream){.room = on_room, .ended = on_ended};
    job->is_streaming = true;
    job->is_finished = false;
    job->storm->n_started++;
    dv_rest_stream_start(&job->stream, job->call, 200);
    job->call = NULL;
}

static void answer(struct job *job)
{
    struct dv_buf body;

    dv_buf_init(&body, SIZE_MAX);
    memset(dv_buf_extend(&body, 1000), 'x', 1000);
    if (pick(job->storm, 2))
        dv_rest_call_reply_buf(job->call, 200, &body);
    else
        dv_rest_call_reply(job->call, 404, DV_STR("no"));
    dv_buf_fini(&body);
    job->call = NULL;
    job->storm->n_answered++;
}

static void on_request(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct storm *storm = ctx;
    struct job *job = storm->jobs;

    assert_true(request->path.n > 0);
    storm->n_calls++;
    while (job->call || job->is_streaming)
        assert_true(++job < storm->jobs + JOBS);
    job->storm = storm;
    job->call = call;
    job->is_head = dv_str_eq(request->method, DV_STR("HEAD"));
    switch (pick(storm, 4)) {
    case 0:
        answer(job);
        break;
    case 1:
        start_stream(job);
        if (pick(storm, 2))
            send_some(job);
        break;
    default: /* later */
        break;
    }
}

static void work_on(struct job *job)
{
    if (job->call) {
        if (pick(job->storm, 2))
            answer(job);
        else
            start_stream(job);
    } else if (job->is_streaming && !job->is_finished) {
        switch (pick(job->storm, 8)) {
        case 0:
            job->is_finished = true;
            dv_rest_stream_finish(&job->stream);
            break;
        case 1:
            dv_rest_stream_cancel(&job->stream);
            break;
        default:
            send_some(job);
            break;
        }
    }
}

/* ---- the clients ---- */

static void send_part(struct client *client, unsigned which)
{
    static const char *const parts[] = {
        "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a?b=c HTTP/1.0\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        "HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhel",
        "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 6000\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
        "GET /a HTTP/1.1\r\nHo",
        "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n",
        "GARBAGE\r\n",
        "\r\n",
        "lo",
    };
    const char *part = parts[which % DV_COUNT(parts)];

    if (send(client->fd, part, strlen(part), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        assert_true(errno == EPIPE || errno == ECONNRESET || errno == EAGAIN);
}

static void act(struct storm *storm)
{
    struct client *client = &storm->clients[pick(storm, SLOTS)];
    struct linger reset = {.l_onoff = 1, .l_linger = 0};

    if (client->fd < 0) {
        client_open(client, storm->fixture);
        client_reads(client, pick(storm, 8) > 0);
        return;
    }
    switch (pick(storm, 12)) {
    case 0:
        (void)setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        client_close(client);
        break;
    case 1:
        client_close(client);
        break;
    case 2:
        (void)shutdown(client->fd, SHUT_WR); /* fails when the server was first */
        break;
    default:
        send_part(client, pick(storm, 1000));
        break;
    }
    if (client->fd >= 0 && client->is_closed)
        client_close(client);
    else if (client->fd >= 0)
        dv_buf_clear(&client->got);
}

static void ask(struct storm *storm, struct guest *guest)
{
    static const char body[6000];

    switch (pick(storm, 8)) {
    case 0:
        (void)guest_begin(guest, "/a", (dv_str){body, pick(storm, sizeof(body))});
        break;
    case 1:
        (void)guest_ask(guest, "POST", "/a", (dv_str){body, pick(storm, sizeof(body))});
        break;
    case 2:
        (void)guest_ask(guest, "HEAD", "/a", DV_STR(""));
        break;
    case 3:
        (void)guest_ask(guest, "GET", "/%zz", DV_STR(""));
        break;
    default:
        (void)guest_ask(guest, "GET", "/a?b=c", DV_STR(""));
        break;
    }
}

static void act_as_guest(struct storm *storm)
{
    struct guest *guest = &storm->guests[pick(storm, GUESTS)];
    struct reply *reply;

    if (guest->fd < 0) {
        guest_open(guest, storm->fixture, pick(storm, 4) > 0);
        return;
    }
    if (guest->is_closed || guest->n_replies == DV_COUNT(guest->replies) || pick(storm, 40) == 0) {
        guest_close(guest);
        return;
    }
    if (guest->n_replies == 0 || pick(storm, 3) > 0) {
        ask(storm, guest);
        return;
    }
    reply = &guest->replies[pick(storm, (unsigned)guest->n_replies)];
    assert_int_equal(
        nghttp2_submit_rst_stream(guest->ng, NGHTTP2_FLAG_NONE, reply->id, NGHTTP2_CANCEL), 0);
    guest_flush(guest);
}

static bool is_quiet(void *ctx)
{
    struct storm *storm = ctx;

    return dv_rest_server_n_connections(storm->fixture->server) == 0;
}

static void blow(struct storm *storm, struct fixture *fixture)
{
    for (int step = 0; step < STEPS; step++) {
        storm->act(storm);
        work_on(&storm->jobs[pick(storm, 30)]);
        if (pick(storm, 4) == 0)
            advance(fixture, pick(storm, 200));
    }
    for (size_t i = 0; i < SLOTS; i++)
        if (pick(storm, 2))
            client_close(&storm->clients[i]); /* the others stay, until they are timed out */
    for (size_t i = 0; i < GUESTS; i++)
        if (pick(storm, 2))
            guest_close(&storm->guests[i]);
    for (size_t i = 0; i < JOBS; i++) {
        if (storm->jobs[i].call)
            answer(&storm->jobs[i]);
        if (storm->jobs[i].is_streaming && !storm->jobs[i].is_finished)
            dv_rest_stream_cancel(&storm->jobs[i].stream);
    }
}

static void blow_often(struct fixture *fixture, void (*act_once)(struct storm *storm),
                       uint64_t n_seeds)
{
    struct storm *storm = calloc(1, sizeof(*storm));

    storm->fixture = fixture;
    storm->act = act_once;
    for (uint64_t seed = 1; seed <= n_seeds; seed++) {
        storm->random = seed;
        storm->n_calls = storm->n_answered = storm->n_started = storm->n_ended = 0;
        for (size_t i = 0; i < SLOTS; i++)
            storm->clients[i].fd = -1;
        for (size_t i = 0; i < GUESTS; i++)
            storm->guests[i].fd = -1;
        fixture->options.handle = on_request;
        fixture->options.ctx = storm;
        fixture->options.body_bytes_max = 5000;
        fixture->options.unsent_bytes_max = 100000;
        fixture->server = dv_rest_server_open(fixture->loop, DV_STR(":0"), &fixture->options,
                                              &(struct dv_err){.code = DV_OK});
        assert_non_null(fixture->server);
        fixture->port = dv_rest_server_port(fixture->server);
        blow(storm, fixture);
        for (int i = 0; i < 10; i++) { /* what is behind the answered ones comes up, and is held */
            advance(fixture, 70000);
            for (size_t k = 0; k < JOBS; k++)
                if (storm->jobs[k].call)
                    answer(&storm->jobs[k]);
                else if (storm->jobs[k].is_streaming && !storm->jobs[k].is_finished)
                    dv_rest_stream_cancel(&storm->jobs[k].stream);
        }
        if (!dv_loop_run_until(fixture->loop, is_quiet, storm, 5000))
            fail_msg("seed %d: %zu connections are left", (int)seed,
                     dv_rest_server_n_connections(fixture->server));
        assert_int_equal(storm->n_ended, storm->n_started);
        assert_int_equal(storm->n_answered + storm->n_started, storm->n_calls);
        assert_in_range(storm->n_calls, 500, STEPS);
        for (size_t i = 0; i < SLOTS; i++)
            client_close(&storm->clients[i]);
        for (size_t i = 0; i < GUESTS; i++)
            guest_close(&storm->guests[i]);
        fixture_close(fixture, 0);
        wait_count(fixture, &fixture->n_closed, (int)seed);
        dv_buf_clear(&fixture->log);
    }
    free(storm);
}

static void whatever_happens_every_call_ends_and_nothing_is_left(void **state)
{
    blow_often(*state, act, 6);
}

static void the_same_holds_for_http2(void **state)
{
    struct fixture *fixture = *state;

    fixture_certify(fixture);
    blow_often(fixture, act_as_guest, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whatever_happens_every_call_ends_and_nothing_is_left,
                                        fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(the_same_holds_for_http2, fixture_start, fixture_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

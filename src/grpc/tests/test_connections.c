#include "support/dvtest.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "grpc/tests/test_grpc_fixture.h"
#include "http2/http2.h"

/* A bare socket connected to the fixture's server, or listening in its place. */
static int raw_socket(const struct fixture *fixture, bool listens)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    memcpy(address.sun_path, fixture->path, strlen(fixture->path));
    if (listens) {
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(fd, 16), 0);
    } else {
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    }
    return fd;
}

static void connecting_backs_off_as_specified(void **state)
{
    struct fixture *fixture = *state;
    uint64_t want_ms = 1000;

    fixture_connect(fixture, false);
    wait_state(fixture, DV_CHANNEL_FAILING);
    for (int i = 0; i < 14; i++) {
        size_t n_before;

        settle(fixture);
        n_before = fixture->states.n;
        advance(fixture, want_ms * 8 / 10 - 1);
        assert_int_equal(fixture->states.n, n_before); /* not before 80 % of the pause */
        advance(fixture, want_ms * 4 / 10 + 2);
        assert_true(fixture->states.n > n_before); /* tried by 120 % of it */
        want_ms = want_ms * 16 / 10 > 120000 ? 120000 : want_ms * 16 / 10;
    }
}

static void a_peer_that_appears_is_found_and_waiting_calls_go_on(void **state)
{
    struct fixture *fixture = *state;
    struct probe waits = {.call = {.waits_for_ready = true}};
    struct probe fails = {0};

    fixture_connect(fixture, false);
    wait_state(fixture, DV_CHANNEL_FAILING);
    probe_start(&waits, fixture, TEST_ECHO, "w", 100000);
    probe_start(&fails, fixture, TEST_ECHO, "f", 100000);
    wait_done(fixture, &fails);
    assert_err(&fails.err, DV_UNAVAILABLE, fixture->path);
    assert_int_equal(waits.n_done, 0);
    fixture_serve(fixture);
    dv_channel_retry_now(fixture->channel);
    wait_done(fixture, &waits);
    assert_int_equal(waits.err.code, DV_OK);
    wait_state(fixture, DV_CHANNEL_READY);
    settle(fixture);
    assert_str(dv_buf_str(&fixture->states), "connecting failing connecting ready ");
    probe_fini(&waits);
    probe_fini(&fails);
}

static void a_lost_peer_ends_calls_and_is_sought_again(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {0};
    struct probe again = {.call = {.waits_for_ready = true}};

    fixture->finishes_on_cancel = true;
    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&probe, fixture, TEST_HOLD, "", 1000000);
    wait_held(fixture, 1);
    advance(fixture, 5000); /* the connection was good */
    fixture_stop_serving(fixture, 0);
    wait_done(fixture, &probe);
    assert_int_equal(probe.err.code, DV_UNAVAILABLE);
    wait_state(fixture, DV_CHANNEL_FAILING); /* tried at once, in vain */
    fixture_serve(fixture);
    probe_start(&again, fixture, TEST_ECHO, "again", 1000000);
    advance(fixture, 1200);
    wait_done(fixture, &again);
    assert_int_equal(again.err.code, DV_OK);
    probe_fini(&probe);
    probe_fini(&again);
}

static void a_call_started_while_its_connection_breaks_waits_for_the_next(void **state)
{
    struct fixture *fixture = *state;
    struct probe next = {.call = {.waits_for_ready = true}};
    struct probe probe = {.starts = &next};

    fixture->finishes_on_cancel = true;
    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&probe, fixture, TEST_HOLD, "", 1000000);
    wait_held(fixture, 1);
    fixture_stop_serving(fixture, 0);
    wait_done(fixture, &probe); /* the connection is just being taken down */
    assert_int_equal(next.n_done, 0);
    fixture_serve(fixture);
    advance(fixture, 1200);
    wait_done(fixture, &next);
    assert_int_equal(next.err.code, DV_OK);
    probe_fini(&probe);
    probe_fini(&next);
}

static void a_channel_that_connects_once_is_lost_for_good(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {.call = {.waits_for_ready = true}};
    struct probe late = {.call = {.waits_for_ready = true}};

    fixture->finishes_on_cancel = true;
    fixture_serve(fixture);
    fixture_connect(fixture, true);
    probe_start(&probe, fixture, TEST_HOLD, "", 1000000);
    wait_held(fixture, 1);
    fixture_stop_serving(fixture, 0);
    wait_done(fixture, &probe);
    wait_state(fixture, DV_CHANNEL_LOST);
    fixture_serve(fixture);
    advance(fixture, 1000000);
    assert_int_equal(dv_channel_state(fixture->channel), DV_CHANNEL_LOST);
    probe_start(&late, fixture, TEST_ECHO, "", 1000);
    wait_done(fixture, &late);
    assert_int_equal(late.err.code, DV_UNAVAILABLE);
    probe_fini(&probe);
    probe_fini(&late);
}

static void a_peer_that_never_speaks_is_given_up(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {0};
    int fd = raw_socket(fixture, true); /* the kernel accepts, nobody reads */

    fixture_connect(fixture, false);
    settle(fixture);
    probe_start(&probe, fixture, TEST_ECHO, "", 60000);
    advance(fixture, 19999);
    assert_int_equal(probe.n_done, 0);
    advance(fixture, 1);
    wait_done(fixture, &probe);
    assert_err(&probe.err, DV_UNAVAILABLE, "no HTTP/2 settings");
    wait_state(fixture, DV_CHANNEL_FAILING);
    (void)close(fd);
    probe_fini(&probe);
}

static void closing_a_channel_ends_its_calls_first(void **state)
{
    struct fixture *fixture = *state;
    struct probe held = {0};
    struct probe echo = {.closes_channel = true};

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&held, fixture, TEST_HOLD, "", 1000);
    wait_held(fixture, 1);
    probe_start(&echo, fixture, TEST_ECHO, "", 1000); /* closes the channel when it is done */
    wait_done(fixture, &echo);
    wait_done(fixture, &held);
    assert_int_equal(held.err.code, DV_CANCELLED);
    settle(fixture);
    assert_int_equal(fixture->n_channels_closed, 1);
    wait_cancelled(fixture, 1);
    probe_fini(&held);
    probe_fini(&echo);
}

static void closing_a_channel_works_in_every_state(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {.call = {.waits_for_ready = true}};

    fixture_connect(fixture, false);
    fixture_close_channel(fixture); /* at once */
    assert_int_equal(fixture->n_channels_closed, 0);
    settle(fixture);
    assert_int_equal(fixture->n_channels_closed, 1);
    fixture_connect(fixture, false);
    wait_state(fixture, DV_CHANNEL_FAILING);
    probe_start(&probe, fixture, TEST_ECHO, "", 1000);
    fixture_close_channel(fixture); /* while failing, with a call that waits */
    assert_int_equal(probe.n_done, 0);
    settle(fixture);
    assert_int_equal(fixture->n_channels_closed, 2);
    assert_int_equal(probe.err.code, DV_CANCELLED);
    probe_fini(&probe);
}

static void a_closing_server_lets_calls_finish(void **state)
{
    struct fixture *fixture = *state;
    struct probe held = {0};
    struct probe refused = {0};

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&held, fixture, TEST_HOLD, "", 100000);
    wait_held(fixture, 1);
    fixture_stop_serving(fixture, 10000);
    wait_state(fixture, DV_CHANNEL_FAILING); /* sought elsewhere, where nobody is */
    probe_start(&refused, fixture, TEST_ECHO, "", 1000);
    wait_done(fixture, &refused);
    assert_int_equal(refused.err.code, DV_UNAVAILABLE);
    assert_int_equal(held.n_done, 0);
    dv_server_call_reply(fixture->held, dv_h2_msg_copy(DV_STR("done")));
    fixture->held = NULL;
    wait_done(fixture, &held);
    assert_int_equal(held.err.code, DV_OK);
    settle(fixture);
    assert_int_equal(fixture->n_servers_closed, 1);
    probe_fini(&held);
    probe_fini(&refused);
}

static void a_closing_server_cancels_after_its_grace(void **state)
{
    struct fixture *fixture = *state;
    struct probe held = {0};

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&held, fixture, TEST_HOLD, "", 100000);
    wait_held(fixture, 1);
    fixture_stop_serving(fixture, 10000);
    advance(fixture, 9999);
    assert_int_equal(fixture->n_cancelled, 0);
    advance(fixture, 1);
    wait_cancelled(fixture, 1);
    wait_done(fixture, &held);
    assert_int_equal(held.err.code, DV_UNAVAILABLE);
    assert_int_equal(fixture->n_servers_closed, 0); /* the handler has not let go */
    dv_server_call_finish(fixture->held, NULL);
    fixture->held = NULL;
    settle(fixture);
    assert_int_equal(fixture->n_servers_closed, 1);
    probe_fini(&held);
}

/* The client's preface and an empty SETTINGS frame. */
static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
/* HEADERS on stream 1, ended: :method POST, :scheme http, :path /test.Service/Hold,
 * content-type application/grpc; literals without indexing. */
static const char headers[] = "\0\0\x4b\1\4\0\0\0\1"
                              "\x83\x86"
                              "\x04\x12/test.Service/Hold"
                              "\x0f\x10\x10"
                              "application/grpc"
                              "\x00\x0bx-metadata1\x14"
                              "value-value-value-va";
static const char whole[] = "\0\0\5\0\1\0\0\0\1\0\0\0\0\0"; /* an empty message, the end */

static void say(int fd, const char *bytes, size_t n)
{
    assert_int_equal(write(fd, bytes, n), n);
}

/* What the server has said on it; whether it has closed it, too. */
static bool is_closed(int fd, struct dv_buf *said)
{
    char bytes[512];
    ssize_t n;

    while ((n = read(fd, bytes, sizeof(bytes))) > 0)
        dv_buf_add(said, (dv_str){bytes, (size_t)n});
    return n == 0;
}

static void idle_connections_over_the_share_make_room(void **state)
{
    struct fixture *fixture = *state;
    static const char goaway[] = "\7\0\0\0\0\0"; /* its type, flags and stream */
    struct dv_buf said;
    struct probe probe = {0};
    int fds[6];

    dv_buf_init(&said, 4096);
    fixture->connections_max = 16; /* this process may have 4 */
    fixture->finishes_on_cancel = true;
    fixture_serve(fixture);
    for (size_t i = 0; i < DV_COUNT(fds); i++) {
        fds[i] = raw_socket(fixture, false);
        if (i != 1)
            say(fds[i], hello, sizeof(hello) - 1);
        if (i == 0) { /* a call that runs: it stays */
            say(fds[i], headers, sizeof(headers) - 1);
            say(fds[i], whole, sizeof(whole) - 1);
            wait_held(fixture, 1);
        }
        if (i == 2) /* half a request: that is idle */
            say(fds[i], headers, sizeof(headers) - 1);
        settle(fixture);
    }
    wait_complaint(fixture, "RESOURCE_EXHAUSTED an idle connection was closed");
    wait_connections(fixture, 4);
    for (size_t i = 0; i < DV_COUNT(fds); i++) {
        dv_buf_clear(&said);
        assert_int_equal(is_closed(fds[i], &said), i == 1 || i == 2);
        if (i == 1 || i == 2)
            assert_true(dv_str_find(dv_buf_str(&said), (dv_str){goaway, sizeof(goaway) - 1}) <
                        said.n);
    }
    assert_int_equal(fixture->n_cancelled, 0);
    fixture_connect(fixture, false); /* it is served */
    probe_start(&probe, fixture, TEST_ECHO, "", 1000);
    wait_done(fixture, &probe);
    assert_int_equal(probe.err.code, DV_OK);
    for (size_t i = 0; i < DV_COUNT(fds); i++)
        (void)close(fds[i]);
    wait_connections(fixture, 1);
    probe_fini(&probe);
    dv_buf_fini(&said);
}

static void connections_with_calls_are_refused_over_the_share(void **state)
{
    struct fixture *fixture = *state;
    struct dv_buf said;
    int fds[2];

    dv_buf_init(&said, 4096);
    fixture->connections_max = 4; /* this process may have one */
    fixture_serve(fixture);
    fds[0] = raw_socket(fixture, false);
    say(fds[0], hello, sizeof(hello) - 1);
    say(fds[0], headers, sizeof(headers) - 1);
    say(fds[0], whole, sizeof(whole) - 1);
    wait_held(fixture, 1);
    fds[1] = raw_socket(fixture, false);
    wait_complaint(fixture, "RESOURCE_EXHAUSTED connection refused: this process has calls on 1");
    settle(fixture);
    assert_int_equal(dv_server_n_connections(fixture->server), 1);
    assert_true(is_closed(fds[1], &said));
    (void)close(fds[1]);
    dv_server_call_reply(fixture->held, dv_h2_msg_copy(DV_STR(""))); /* it is idle from now on */
    fixture->held = NULL;
    settle(fixture);
    fds[1] = raw_socket(fixture, false);
    wait_complaint(fixture, "an idle connection was closed");
    wait_connections(fixture, 1);
    assert_true(is_closed(fds[0], &said));
    assert_false(is_closed(fds[1], &said));
    (void)close(fds[0]);
    (void)close(fds[1]);
    wait_connections(fixture, 0);
    dv_buf_fini(&said);
}

static void a_client_that_says_nothing_is_closed_in_time(void **state)
{
    struct fixture *fixture = *state;
    int fd;

    fixture_serve(fixture);
    fd = raw_socket(fixture, false);
    wait_connections(fixture, 1);
    advance(fixture, 19999);
    assert_int_equal(dv_server_n_connections(fixture->server), 1);
    advance(fixture, 1);
    wait_connections(fixture, 0);
    wait_complaint(fixture, "said nothing in HTTP/2");
    (void)close(fd);
}

static void a_client_that_speaks_http_1_is_named_and_closed(void **state)
{
    struct fixture *fixture = *state;
    static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    struct probe probe = {0};
    int fd;

    fixture_serve(fixture);
    fd = raw_socket(fixture, false);
    assert_int_equal(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
    wait_complaint(fixture, "does not speak HTTP/2");
    wait_connections(fixture, 0);
    fixture_connect(fixture, false); /* others do not notice */
    probe_start(&probe, fixture, TEST_ECHO, "", 1000);
    wait_done(fixture, &probe);
    assert_int_equal(probe.err.code, DV_OK);
    (void)close(fd);
    probe_fini(&probe);
}

static void half_a_request_is_not_waited_for_for_ever(void **state)
{
    struct fixture *fixture = *state;
    static const char half[] = "\0\0\6\0\0\0\0\0\1\0\0\0\x10\0x"; /* 6 of 4101 bytes */
    int fd;

    fixture_serve(fixture);
    fd = raw_socket(fixture, false);
    assert_int_equal(write(fd, hello, sizeof(hello) - 1), sizeof(hello) - 1);
    assert_int_equal(write(fd, headers, sizeof(headers) - 1), sizeof(headers) - 1);
    assert_int_equal(write(fd, half, sizeof(half) - 1), sizeof(half) - 1);
    wait_connections(fixture, 1);
    settle(fixture);
    assert_string_equal(dv_buf_c(&fixture->complaints), "");
    advance(fixture, 60000);
    assert_true(dv_str_find(dv_buf_str(&fixture->log), DV_STR("did not arrive in time")) <
                fixture->log.n);
    assert_int_equal(fixture->n_held, 0);
    (void)close(fd);
    wait_connections(fixture, 0);
}

static void a_peer_that_does_not_read_is_dropped_in_time(void **state)
{
    struct fixture *fixture = *state;
    /* SETTINGS with a window of 2 GiB, and the same for the connection. */
    static const char open[] = "\0\0\6\4\0\0\0\0\0\0\4\x7f\xff\xff\xff"
                               "\0\0\4\x8\0\0\0\0\0\x7f\xff\0\0";
    struct dv_h2_msg *msg = dv_h2_msg_new(8u << 20);
    struct dv_err err;
    int fd;

    memset(dv_h2_msg_data(msg), 'x', 8u << 20);
    fixture->finishes_on_cancel = true;
    fixture_serve(fixture);
    fd = raw_socket(fixture, false);
    assert_int_equal(write(fd, hello, sizeof(hello) - 1), sizeof(hello) - 1);
    assert_int_equal(write(fd, open, sizeof(open) - 1), sizeof(open) - 1);
    assert_int_equal(write(fd, headers, sizeof(headers) - 1), sizeof(headers) - 1);
    assert_int_equal(write(fd, whole, sizeof(whole) - 1), sizeof(whole) - 1);
    wait_held(fixture, 1);
    for (int i = 0; i < 7; i++)
        assert_ok(dv_server_call_send(fixture->held, msg, &err), &err);
    assert_false(dv_server_call_send(fixture->held, msg, &err)); /* over the bound */
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "the peer does not read");
    settle(fixture);
    assert_true(dv_server_call_unsent_bytes(fixture->held) > 50u << 20);
    advance(fixture, 59999);
    assert_int_equal(fixture->n_cancelled, 0);
    advance(fixture, 1);
    wait_cancelled(fixture, 1);
    wait_connections(fixture, 0);
    dv_h2_msg_unref(msg);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connecting_backs_off_as_specified),
        cmocka_unit_test(a_peer_that_appears_is_found_and_waiting_calls_go_on),
        cmocka_unit_test(a_lost_peer_ends_calls_and_is_sought_again),
        cmocka_unit_test(a_call_started_while_its_connection_breaks_waits_for_the_next),
        cmocka_unit_test(a_channel_that_connects_once_is_lost_for_good),
        cmocka_unit_test(a_peer_that_never_speaks_is_given_up),
        cmocka_unit_test(closing_a_channel_ends_its_calls_first),
        cmocka_unit_test(closing_a_channel_works_in_every_state),
        cmocka_unit_test(a_closing_server_lets_calls_finish),
        cmocka_unit_test(a_closing_server_cancels_after_its_grace),
        cmocka_unit_test(idle_connections_over_the_share_make_room),
        cmocka_unit_test(connections_with_calls_are_refused_over_the_share),
        cmocka_unit_test(a_client_that_says_nothing_is_closed_in_time),
        cmocka_unit_test(a_client_that_speaks_http_1_is_named_and_closed),
        cmocka_unit_test(half_a_request_is_not_waited_for_for_ever),
        cmocka_unit_test(a_peer_that_does_not_read_is_dropped_in_time),
    };
    struct CMUnitTest with_fixture[DV_COUNT(tests)];

    for (size_t i = 0; i < DV_COUNT(tests); i++) {
        with_fixture[i] = tests[i];
        with_fixture[i].setup_func = fixture_start;
        with_fixture[i].teardown_func = fixture_end;
    }
    return cmocka_run_group_tests(with_fixture, NULL, NULL);
}

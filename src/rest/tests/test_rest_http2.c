#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "rest/tests/test_guest2.h"
#include "rest/tests/test_rest_fixture.h"

static void serve(struct fixture *fixture)
{
    fixture_certify(fixture);
    fixture_serve(fixture);
}

static void answer(struct dv_rest_call *call, const char *body)
{
    dv_rest_call_reply(call, 200, dv_str_from_c(body));
}

static void requests_are_answered(void **state)
{
    struct fixture *fixture = *state;
    struct guest guest;
    struct reply *reply;

    serve(fixture);
    guest_open(&guest, fixture, true);
    reply = guest_ask_with(&guest, "/show/a%20b?x=1", "accept", "a,b");
    guest_expect(&guest, reply, "200", "GET [show] [a b] x=1 Host:host:1 accept:a,b 0");
    assert_non_null(strstr(dv_buf_c(&reply->fields), "x-id=7;"));
    assert_non_null(strstr(dv_buf_c(&reply->fields), "date="));
    assert_non_null(strstr(dv_buf_c(&reply->fields), "content-length=45;"));
    assert_null(strstr(dv_buf_c(&reply->fields), "forged"));
    guest_expect(&guest, guest_ask(&guest, "PUT", "/echo", DV_STR("hello")), "200", "hello");
    guest_expect(&guest, guest_ask(&guest, "GET", "/nowhere", DV_STR("")), "404", "nothing here");
    reply = guest_ask(&guest, "HEAD", "/nowhere", DV_STR(""));
    guest_expect(&guest, reply, "404", "");
    assert_non_null(strstr(dv_buf_c(&reply->fields), "content-length=12;"));
    assert_int_equal(dv_rest_server_n_connections(fixture->server), 1);
    assert_int_equal(fixture->complaints.n, 0);
    guest_close(&guest);
    wait_connections(fixture, 0);
}

/* One that is held holds no other. */
static void many_requests_share_a_connection(void **state)
{
    enum { N = 60 };
    struct fixture *fixture = *state;
    struct dv_rest_call *held[N];
    struct reply *replies[N];
    struct guest guest;

    serve(fixture);
    guest_open(&guest, fixture, true);
    for (int i = 0; i < N; i++) {
        replies[i] = guest_ask(&guest, "GET", "/hold", DV_STR(""));
        wait_count(fixture, &fixture->n_held, i + 1);
        held[i] = fixture->held;
    }
    fixture->held = NULL;
    guest_expect(&guest, guest_ask(&guest, "GET", "/nowhere", DV_STR("")), "404", "nothing here");
    advance(fixture, 3600 * 1000); /* a handler may take its time */
    for (int i = N - 1; i >= 0; i--) {
        char body[16];

        (void)snprintf(body, sizeof(body), "answer %d", i);
        answer(held[i], body);
        guest_expect(&guest, replies[i], "200", body);
    }
    assert_int_equal(dv_rest_server_n_connections(fixture->server), 1);
    guest_close(&guest);
}

static void large_bodies_go_both_ways(void **state)
{
    enum { BYTES = 3 << 20 };
    struct fixture *fixture = *state;
    char *bytes = malloc(BYTES + 1);
    struct guest guest;
    struct reply *reply;

    serve(fixture);
    memset(bytes, 'x', BYTES);
    bytes[BYTES] = '\0';
    guest_open(&guest, fixture, true);
    guest_expect(&guest, guest_ask(&guest, "POST", "/echo", (dv_str){bytes, BYTES}), "200", bytes);
    reply = guest_ask(&guest, "POST", "/echo", (dv_str){bytes, BYTES + 1});
    guest_expect_over(&guest, reply);
    assert_string_equal(reply->status, "413");
    wait_complaint(fixture, "RESOURCE_EXHAUSTED the body is larger than 3145728 bytes;");
    guest_expect(&guest, guest_ask(&guest, "PUT", "/echo", DV_STR("hi")), "200", "hi");
    guest_close(&guest);
    free(bytes);
}

static void bad_requests_get_an_error(void **state)
{
    static const struct {
        const char *path;
        const char *name;
        const char *value;
        const char *status;
    } cases[] = {
        {"/%zz", "a",                "b",    "400"},
        {"/%00", "a",                "b",    "400"},
        {"*",    "a",                "b",    ""   },
        {"/",    "content-encoding", "gzip", "415"},
        {"/",    "content-length",   "1",    ""   }, /* there is no body: the stream is reset */
        {"/",    "connection",       "x",    ""   },
    };
    struct fixture *fixture = *state;
    struct guest guest;
    struct reply *reply;
    char *value = calloc(1, 20001);

    serve(fixture);
    guest_open(&guest, fixture, true);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        reply = guest_ask_with(&guest, cases[i].path, cases[i].name, cases[i].value);
        guest_expect_over(&guest, reply);
        assert_string_equal(reply->status, cases[i].status);
    }
    memset(value, 'x', 20000);
    reply = guest_ask_with(&guest, "/", "a", value);
    guest_expect_over(&guest, reply);
    assert_string_equal(reply->status, "431");
    guest_expect(&guest, guest_ask(&guest, "PUT", "/echo", DV_STR("hi")), "200", "hi");
    assert_int_equal(fixture->n_held, 0);
    guest_close(&guest);
    free(value);
}

/* ---- streams ---- */

static bool has_body(void *ctx)
{
    return ((struct reply *)ctx)->body.n >= 5;
}

static void a_stream_goes_out_as_it_is_sent(void **state)
{
    struct fixture *fixture = *state;
    struct guest guest;
    struct reply *reply;
    struct dv_err err;

    serve(fixture);
    guest_open(&guest, fixture, true);
    reply = guest_ask(&guest, "GET", "/stream", DV_STR(""));
    wait_count(fixture, &fixture->n_streams, 1);
    assert_ok(dv_rest_stream_send(&fixture->stream, DV_STR("one, "), &err), &err);
    assert_true(dv_loop_run_until(fixture->loop, has_body, reply, 60000));
    advance(fixture, 3600 * 1000); /* a watch may be quiet */
    guest_expect(&guest, guest_ask(&guest, "GET", "/nowhere", DV_STR("")), "404", "nothing here");
    assert_ok(dv_rest_stream_send(&fixture->stream, DV_STR("two"), &err), &err);
    dv_rest_stream_finish(&fixture->stream);
    guest_expect(&guest, reply, "200", "one, two");
    wait_count(fixture, &fixture->n_ended, 1);
    assert_int_equal(fixture->ended.code, DV_OK);
    reply = guest_ask(&guest, "HEAD", "/stream", DV_STR(""));
    wait_count(fixture, &fixture->n_ended, 2);
    assert_int_equal(fixture->ended.code, DV_OK);
    guest_expect(&guest, reply, "200", "");
    guest_close(&guest);
}

static void a_stream_may_be_broken_off_by_either_side(void **state)
{
    struct fixture *fixture = *state;
    struct guest guest;
    struct reply *reply;

    serve(fixture);
    guest_open(&guest, fixture, true);
    reply = guest_ask(&guest, "GET", "/stream", DV_STR(""));
    wait_count(fixture, &fixture->n_streams, 1);
    dv_rest_stream_cancel(&fixture->stream);
    dv_rest_stream_cancel(&fixture->stream); /* idempotent */
    assert_int_equal(fixture->n_ended, 0);
    wait_count(fixture, &fixture->n_ended, 1);
    assert_err(&fixture->ended, DV_CANCELLED, "broken off");
    guest_expect_over(&guest, reply);
    assert_int_not_equal(reply->error_code, NGHTTP2_NO_ERROR);
    reply = guest_ask(&guest, "GET", "/stream", DV_STR(""));
    wait_count(fixture, &fixture->n_streams, 2);
    assert_int_equal(
        nghttp2_submit_rst_stream(guest.ng, NGHTTP2_FLAG_NONE, reply->id, NGHTTP2_CANCEL), 0);
    guest_flush(&guest);
    wait_count(fixture, &fixture->n_ended, 2);
    assert_int_equal(fixture->ended.code, DV_CANCELLED);
    guest_expect(&guest, guest_ask(&guest, "GET", "/nowhere", DV_STR("")), "404", "nothing here");
    guest_close(&guest);
}

static char block[10000];

static void fill(struct fixture *fixture)
{
    struct dv_err err;

    for (int i = 0; i < 20; i++) {
        while (dv_rest_stream_send(&fixture->stream, (dv_str){block, sizeof(block)}, &err))
            ;
        assert_err(&err, DV_RESOURCE_EXHAUSTED, "has not read");
        settle(fixture);
    }
}

/* Others on the same connection notice nothing, as long as it has a window. */
static void a_stuck_stream_is_reset_alone(void **state)
{
    struct fixture *fixture = *state;
    struct guest guest;
    struct reply *reply;

    fixture->options.timeout_ms = 5000;
    fixture->options.unsent_bytes_max = 1000000;
    serve(fixture);
    guest_open(&guest, fixture, false);
    /* The connection's window is much larger than the stream's. */
    assert_int_equal(
        nghttp2_session_set_local_window_size(guest.ng, NGHTTP2_FLAG_NONE, 0, 10 << 20), 0);
    guest_flush(&guest);
    reply = guest_ask(&guest, "GET", "/stream", DV_STR(""));
    wait_count(fixture, &fixture->n_streams, 1);
    fill(fixture);
    assert_in_range(dv_rest_stream_unsent_bytes(&fixture->stream), 900000, 1000000);
    assert_in_range(reply->body.n, 65535, 65535);
    advance(fixture, 4999);
    assert_int_equal(fixture->n_ended, 0);
    guest_expect(&guest, guest_ask(&guest, "GET", "/nowhere", DV_STR("")), "404", "nothing here");
    advance(fixture, 1);
    wait_count(fixture, &fixture->n_ended, 1);
    assert_err(&fixture->ended, DV_DEADLINE_EXCEEDED, "did not take");
    wait_complaint(fixture, "DEADLINE_EXCEEDED the client did not take the answer in time;");
    guest_expect_over(&guest, reply);
    guest_expect(&guest, guest_ask(&guest, "GET", "/nowhere", DV_STR("")), "404", "nothing here");
    guest_close(&guest);
}

static void an_answer_that_is_not_taken_is_given_up(void **state)
{
    struct fixture *fixture = *state;
    struct dv_buf body;
    struct guest guest;
    struct reply *reply;

    fixture->options.timeout_ms = 5000;
    serve(fixture);
    guest_open(&guest, fixture, false);
    reply = guest_ask(&guest, "GET", "/hold", DV_STR(""));
    wait_count(fixture, &fixture->n_held, 1);
    dv_buf_init(&body, SIZE_MAX);
    memset(dv_buf_extend(&body, 160000), 'x', 160000);
    dv_rest_call_reply_buf(fixture->held, 200, &body);
    fixture->held = NULL;
    settle(fixture);
    advance(fixture, 14999); /* 160,000 bytes, at 16 bytes a ms */
    assert_false(reply->is_over);
    advance(fixture, 1);
    guest_expect_over(&guest, reply);
    wait_complaint(fixture, "DEADLINE_EXCEEDED the client did not take the answer in time;");
    guest_close(&guest);
    wait_connections(fixture, 0);
}

static void a_request_must_arrive_in_time(void **state)
{
    struct fixture *fixture = *state;
    struct guest guest;
    struct reply *reply;

    fixture->options.timeout_ms = 5000;
    serve(fixture);
    guest_open(&guest, fixture, true);
    /* The handshake is over when it is answered. */
    guest_expect(&guest, guest_ask(&guest, "GET", "/nowhere", DV_STR("")), "404", "nothing here");
    reply = guest_begin(&guest, "/hold", DV_STR("the beginning"));
    settle(fixture);
    advance(fixture, 4999);
    assert_false(reply->is_over);
    advance(fixture, 1);
    guest_expect_over(&guest, reply);
    wait_complaint(fixture, "DEADLINE_EXCEEDED the request did not arrive in time;");
    assert_int_equal(fixture->n_held, 0);
    advance(fixture, 4999);
    assert_int_equal(dv_rest_server_n_connections(fixture->server), 1);
    advance(fixture, 1); /* now it is idle */
    wait_connections(fixture, 0);
    guest_expect_closed(&guest);
    guest_close(&guest);
}

/* ---- the end ---- */

static void all_calls_end_with_the_client(void **state)
{
    struct fixture *fixture = *state;
    struct guest guest;

    serve(fixture);
    guest_open(&guest, fixture, true);
    (void)guest_ask(&guest, "GET", "/hold", DV_STR(""));
    (void)guest_ask(&guest, "GET", "/stream", DV_STR(""));
    (void)guest_begin(&guest, "/echo", DV_STR("abc"));
    wait_count(fixture, &fixture->n_held, 1);
    wait_count(fixture, &fixture->n_streams, 1);
    settle(fixture);
    guest_close(&guest);
    wait_count(fixture, &fixture->n_ended, 1);
    assert_int_equal(fixture->ended.code, DV_CANCELLED);
    wait_connections(fixture, 0);
    answer(fixture->held, "to nobody");
    fixture->held = NULL;
    assert_int_equal(fixture->complaints.n, 0);
}

static void running_calls_may_be_answered_while_it_closes(void **state)
{
    struct fixture *fixture = *state;
    struct guest guest;
    struct guest idle;
    struct reply *reply;

    serve(fixture);
    guest_open(&idle, fixture, true);
    guest_open(&guest, fixture, true);
    reply = guest_ask(&guest, "GET", "/hold", DV_STR(""));
    wait_count(fixture, &fixture->n_held, 1);
    fixture_close(fixture, 5000);
    guest_expect_closed(&idle);
    advance(fixture, 4999);
    assert_true(guest.was_told_to_go);
    assert_int_equal(fixture->n_closed, 0);
    answer(fixture->held, "just in time");
    fixture->held = NULL;
    guest_expect(&guest, reply, "200", "just in time");
    guest_expect_closed(&guest);
    wait_count(fixture, &fixture->n_closed, 1);
    guest_close(&guest);
    guest_close(&idle);
}

static void calls_are_cancelled_when_the_grace_is_over(void **state)
{
    struct fixture *fixture = *state;
    struct guest guest;

    serve(fixture);
    guest_open(&guest, fixture, true);
    (void)guest_ask(&guest, "GET", "/hold", DV_STR(""));
    (void)guest_ask(&guest, "GET", "/stream", DV_STR(""));
    wait_count(fixture, &fixture->n_held, 1);
    wait_count(fixture, &fixture->n_streams, 1);
    fixture_close(fixture, 5000);
    advance(fixture, 5000);
    wait_count(fixture, &fixture->n_ended, 1);
    assert_err(&fixture->ended, DV_CANCELLED, "closed");
    guest_expect_closed(&guest);
    assert_int_equal(fixture->n_closed, 0); /* the handler has not let go */
    answer(fixture->held, "too late");
    fixture->held = NULL;
    wait_count(fixture, &fixture->n_closed, 1);
    guest_close(&guest);
}

static void a_flood_ends_the_connection(void **state)
{
    struct fixture *fixture = *state;
    struct guest guest;

    serve(fixture);
    guest_open(&guest, fixture, true);
    for (int i = 0; i < 100000 && !guest.is_closed; i++) {
        assert_int_equal(nghttp2_submit_ping(guest.ng, NGHTTP2_FLAG_NONE, NULL), 0);
        if (i % 100 == 0) {
            guest_flush(&guest);
            settle(fixture);
        }
    }
    guest_expect_closed(&guest);
    wait_complaint(fixture, "RESOURCE_EXHAUSTED HTTP/2: ");
    guest_close(&guest);
    wait_connections(fixture, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_are_answered),
        TEST(many_requests_share_a_connection),
        TEST(large_bodies_go_both_ways),
        TEST(bad_requests_get_an_error),
        TEST(a_stream_goes_out_as_it_is_sent),
        TEST(a_stream_may_be_broken_off_by_either_side),
        TEST(a_stuck_stream_is_reset_alone),
        TEST(an_answer_that_is_not_taken_is_given_up),
        TEST(a_request_must_arrive_in_time),
        TEST(all_calls_end_with_the_client),
        TEST(running_calls_may_be_answered_while_it_closes),
        TEST(calls_are_cancelled_when_the_grace_is_over),
        TEST(a_flood_ends_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

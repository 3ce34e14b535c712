#include "support/dvtest.h"

#include <string.h>
#include <sys/socket.h>

#include "rest/tests/test_rest_fixture.h"

#define STREAM "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"

static void begin(struct client *client, struct fixture *fixture, const char *request)
{
    int n_before = fixture->n_streams;

    client_send(client, request);
    wait_count(fixture, &fixture->n_streams, n_before + 1);
}

static void send_text(struct fixture *fixture, const char *text)
{
    struct dv_err err;

    assert_ok(dv_rest_stream_send(&fixture->stream, dv_str_from_c(text), &err), &err);
}

/* Opens connections that are never alone. */
static void open_two(struct client clients[2], struct fixture *fixture)
{
    client_open(&clients[0], fixture);
    wait_connections(fixture, 1);
    client_open(&clients[1], fixture);
}

static void a_stream_goes_out_as_it_is_sent(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    for (int i = 0; i < 3; i++) {
        begin(&client, fixture, STREAM);
        client_expect(&client, "HTTP/1.1 200 OK\r\n");
        client_expect(&client, "Content-Type: application/json\r\n");
        client_expect(&client, "Transfer-Encoding: chunked\r\n");
        client_expect(&client, "\r\n");
        send_text(fixture, "");
        send_text(fixture, "one\n");
        client_expect(&client, "4\r\none\n\r\n");
        advance(fixture, 3600 * 1000); /* a watch may be quiet */
        send_text(fixture, "two\n");
        send_text(fixture, "three\n");
        client_expect(&client, "A\r\ntwo\nthree\n\r\n"); /* of one turn: one chunk */
        assert_int_equal(dv_rest_stream_unsent_bytes(&fixture->stream), 0);
        send_text(fixture, "last");
        dv_rest_stream_finish(&fixture->stream);
        assert_int_equal(fixture->n_ended, i);
        wait_count(fixture, &fixture->n_ended, i + 1);
        assert_int_equal(fixture->ended.code, DV_OK);
        client_expect(&client, "4\r\nlast\r\n0\r\n\r\n");
        assert_int_equal(client.got.n, 0);
    }
    client_send(&client, "GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n");
    client_expect_answer(&client, 404, "nothing here");
    client_close(&client);
}

static void a_stream_may_end_before_it_begins(void **state)
{
    struct fixture *fixture = *state;
    struct client clients[2];
    struct client *client = &clients[1];

    fixture_serve(fixture);
    open_two(clients, fixture);
    begin(client, fixture, STREAM);
    dv_rest_stream_finish(&fixture->stream);
    client_expect(client, "\r\n\r\n0\r\n\r\n");
    wait_count(fixture, &fixture->n_ended, 1);
    assert_int_equal(fixture->ended.code, DV_OK);
    begin(client, fixture, "HEAD /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    wait_count(fixture, &fixture->n_ended, 2); /* nothing may be sent */
    assert_int_equal(fixture->ended.code, DV_OK);
    begin(client, fixture, "GET /stream HTTP/1.0\r\n\r\n");
    send_text(fixture, "until the end");
    dv_rest_stream_finish(&fixture->stream);
    client_expect(client, "Connection: close\r\n");
    client_expect(client, "\r\n\r\nuntil the end");
    client_expect_closed(client);
    wait_connections(fixture, 1);
    wait_count(fixture, &fixture->n_ended, 3);
    assert_int_equal(fixture->ended.code, DV_OK);
    client_close(&clients[0]);
    client_close(client);
}

static char block[10000];

static bool fill(struct fixture *fixture)
{
    struct dv_err err;

    while (dv_rest_stream_send(&fixture->stream, (dv_str){block, sizeof(block)}, &err))
        ;
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "has not read");
    return true;
}

static void a_client_that_does_not_read_pushes_back(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    int n_rooms;

    fixture->options.unsent_bytes_max = 1000000;
    fixture_serve(fixture);
    memset(block, 'x', sizeof(block));
    client_open(&client, fixture);
    client_reads(&client, false);
    begin(&client, fixture, STREAM);
    for (int i = 0; i < 100; i++) { /* until the kernel's buffers are full too */
        fill(fixture);
        settle(fixture);
    }
    n_rooms = fixture->n_rooms;
    assert_in_range(dv_rest_stream_unsent_bytes(&fixture->stream), 900000, 1000000);
    settle(fixture);
    assert_int_equal(fixture->n_rooms, n_rooms);
    client_reads(&client, true);
    wait_count(fixture, &fixture->n_rooms, n_rooms + 1);
    assert_in_range(dv_rest_stream_unsent_bytes(&fixture->stream), 0, 16384);
    send_text(fixture, "the end");
    dv_rest_stream_finish(&fixture->stream);
    client_expect(&client, "the end\r\n0\r\n\r\n");
    wait_count(fixture, &fixture->n_ended, 1);
    assert_int_equal(fixture->ended.code, DV_OK);
    client_close(&client);
}

static void send_another(struct fixture *fixture)
{
    struct dv_err err;

    if (fixture->n_rooms < 2000)
        assert_ok(dv_rest_stream_send(&fixture->stream, (dv_str){block, sizeof(block)}, &err),
                  &err);
    else
        dv_rest_stream_finish(&fixture->stream);
}

static void who_sends_when_there_is_room_needs_little(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture->options.unsent_bytes_max = 30000; /* room is below 16 KiB: never two blocks too many */
    fixture->on_room = send_another;
    fixture_serve(fixture);
    memset(block, 'y', sizeof(block));
    client_open(&client, fixture);
    begin(&client, fixture, STREAM);
    send_text(fixture, "!");
    wait_count(fixture, &fixture->n_ended, 1);
    assert_int_equal(fixture->n_rooms, 2000);
    client_expect(&client, "\r\n0\r\n\r\n");
    client_close(&client);
}

static void the_end_of_the_client_ends_a_stream(void **state)
{
    struct fixture *fixture = *state;
    struct client other;

    fixture_serve(fixture);
    client_open(&other, fixture);
    for (int i = 0; i < 8; i++) {
        struct linger reset = {.l_onoff = 1, .l_linger = 0};
        struct client client;
        struct dv_err err;

        client_open(&client, fixture);
        client_reads(&client, i % 4 < 2);
        begin(&client, fixture, STREAM);
        if (i % 4 < 2) {
            send_text(fixture, "hello");
            client_expect(&client, "hello"); /* it is quiet then */
        } else {
            for (int k = 0; k < 20; k++) { /* it has much to say */
                fill(fixture);
                settle(fixture);
            }
        }
        if (i % 2)
            (void)setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        client_close(&client);
        wait_count(fixture, &fixture->n_ended, i + 1);
        assert_int_equal(fixture->ended.code, DV_CANCELLED);
        assert_false(dv_rest_stream_send(&fixture->stream, DV_STR("late"), &err));
        assert_err(&err, DV_CANCELLED, "gone");
        dv_rest_stream_finish(&fixture->stream); /* nothing happens */
        settle(fixture);
        assert_int_equal(fixture->n_ended, i + 1);
        wait_connections(fixture, 1);
    }
    client_close(&other);
    assert_int_equal(fixture->complaints.n, 0);
}

static void a_client_that_has_sent_all_is_streamed_what_is_there(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    client_send(&client, "POST /hold HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(shutdown(client.fd, SHUT_WR), 0);
    wait_count(fixture, &fixture->n_held, 1);
    dv_rest_call_reply(fixture->held, 200, DV_STR("held"));
    fixture->held = NULL;
    client_expect_answer(&client, 200, "held");
    client_close(&client);
    client_open(&client, fixture);
    client_send(&client, STREAM);
    assert_int_equal(shutdown(client.fd, SHUT_WR), 0);
    wait_count(fixture, &fixture->n_ended, 1); /* nothing was there */
    assert_int_equal(fixture->ended.code, DV_CANCELLED);
    client_expect_closed(&client);
    client_close(&client);
}

static void a_stream_may_be_broken_off(void **state)
{
    struct fixture *fixture = *state;
    struct client other;

    fixture_serve(fixture);
    client_open(&other, fixture);
    for (int i = 0; i < 3; i++) {
        struct client client;

        client_open(&client, fixture);
        client_reads(&client, i < 2);
        begin(&client, fixture, STREAM);
        if (i == 1) {
            send_text(fixture, "some");
            client_expect(&client, "some");
        }
        for (int k = 0; i == 2 && k < 20; k++) {
            fill(fixture);
            settle(fixture);
        }
        dv_rest_stream_cancel(&fixture->stream);
        dv_rest_stream_cancel(&fixture->stream); /* idempotent */
        assert_int_equal(fixture->n_ended, i);
        wait_count(fixture, &fixture->n_ended, i + 1);
        assert_err(&fixture->ended, DV_CANCELLED, "broken off");
        client_reads(&client, true);
        client_expect_closed(&client);
        assert_true(client.got.n < 5 ||
                    memcmp(client.got.p + client.got.n - 5, "0\r\n\r\n", 5) != 0);
        client_close(&client);
        wait_connections(fixture, 1);
    }
    client_close(&other);
}

static void a_reader_that_is_stuck_is_cut_off(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture->options.timeout_ms = 5000;
    fixture_serve(fixture);
    client_open(&client, fixture);
    client_reads(&client, false);
    begin(&client, fixture, STREAM);
    for (int k = 0; k < 20; k++) {
        fill(fixture);
        settle(fixture);
    }
    advance(fixture, 4999);
    assert_int_equal(fixture->n_ended, 0);
    advance(fixture, 1);
    wait_count(fixture, &fixture->n_ended, 1);
    assert_err(&fixture->ended, DV_DEADLINE_EXCEEDED, "did not take");
    wait_connections(fixture, 0);
    wait_complaint(fixture, "DEADLINE_EXCEEDED");
    client_close(&client);
}

static void a_stream_for_a_client_that_is_gone_ends_too(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    client_send(&client, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
    wait_count(fixture, &fixture->n_held, 1);
    fixture_close(fixture, 0);
    advance(fixture, 1);
    client_expect_closed(&client);
    fixture_stream(fixture, fixture->held);
    fixture->held = NULL;
    assert_int_equal(fixture->n_ended, 0); /* not before the start has returned */
    wait_count(fixture, &fixture->n_ended, 1);
    assert_int_equal(fixture->ended.code, DV_CANCELLED);
    wait_count(fixture, &fixture->n_closed, 1);
    client_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stream_goes_out_as_it_is_sent, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(a_stream_may_end_before_it_begins, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(a_client_that_does_not_read_pushes_back, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(who_sends_when_there_is_room_needs_little, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(the_end_of_the_client_ends_a_stream, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(a_client_that_has_sent_all_is_streamed_what_is_there,
                                        fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_stream_may_be_broken_off, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_reader_that_is_stuck_is_cut_off, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(a_stream_for_a_client_that_is_gone_ends_too, fixture_start,
                                        fixture_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

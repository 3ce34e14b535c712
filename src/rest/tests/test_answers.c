#include "support/dvtest.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "loop/loop.h"
#include "rest/tests/test_rest_fixture.h"

#define HOLD "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n"

static void hold(struct client *client, struct fixture *fixture)
{
    int n_before = fixture->n_held;

    client_send(client, HOLD);
    wait_count(fixture, &fixture->n_held, n_before + 1);
}

static void answer(struct fixture *fixture, unsigned status, const char *body)
{
    dv_rest_call_reply(fixture->held, status, dv_str_from_c(body));
    fixture->held = NULL;
}

static void an_answer_may_come_later(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    for (int i = 0; i < 20; i++) {
        hold(&client, fixture);
        advance(fixture, 3600 * 1000); /* a handler may take its time */
        assert_int_equal(client.got.n, 0);
        dv_rest_call_add_field(fixture->held, DV_STR("X-Late"), DV_STR("yes"));
        answer(fixture, 202, "at last");
        client_expect(&client, "HTTP/1.1 202 ");
        client_expect(&client, "X-Late: yes\r\n");
        client_expect(&client, "at last");
    }
    assert_int_equal(dv_rest_server_n_connections(fixture->server), 1);
    client_close(&client);
}

static void answers_need_no_body(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    struct dv_buf empty;

    fixture_serve(fixture);
    client_open(&client, fixture);
    hold(&client, fixture);
    answer(fixture, 204, "");
    client_expect(&client, "HTTP/1.1 204 ");
    client_expect(&client, "\r\n\r\n");
    hold(&client, fixture);
    dv_buf_init(&empty, 10);
    dv_rest_call_reply_buf(fixture->held, 200, &empty);
    fixture->held = NULL;
    client_expect_answer(&client, 200, "");
    client_close(&client);
}

static void large_answers_go_out_as_they_are_read(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    struct dv_buf body;
    char *bytes;

    fixture_serve(fixture);
    client_open(&client, fixture);
    client_reads(&client, false);
    hold(&client, fixture);
    dv_buf_init(&body, SIZE_MAX);
    bytes = dv_buf_extend(&body, 30u << 20);
    memset(bytes, 'x', body.n);
    bytes[body.n - 1] = '!';
    dv_rest_call_reply_buf(fixture->held, 200, &body);
    fixture->held = NULL;
    settle(fixture);
    client_reads(&client, true);
    client_expect(&client, "Content-Length: 31457280\r\n\r\n");
    client_expect(&client, "xxx!");
    assert_int_equal(client.got.n, 0);
    client_send(&client, "GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n");
    client_expect_answer(&client, 404, "nothing here");
    client_close(&client);
}

static void a_client_that_takes_no_answer_is_cut_off(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    struct dv_buf body;

    fixture_serve(fixture);
    client_open(&client, fixture);
    client_reads(&client, false);
    hold(&client, fixture);
    dv_buf_init(&body, SIZE_MAX);
    memset(dv_buf_extend(&body, 16u << 20), 'x', 16u << 20);
    dv_rest_call_reply_buf(fixture->held, 200, &body);
    fixture->held = NULL;
    settle(fixture);
    advance(fixture, 60000 + 1000 * 1000); /* 16 MiB, at 16 bytes a ms */
    assert_int_equal(dv_rest_server_n_connections(fixture->server), 1);
    advance(fixture, 49000);
    wait_connections(fixture, 0);
    wait_complaint(fixture, "DEADLINE_EXCEEDED the client did not take the answer in time;");
    client_close(&client);
}

static void an_answer_to_a_client_that_is_gone_is_dropped(void **state)
{
    struct fixture *fixture = *state;

    fixture_serve(fixture);
    for (int i = 0; i < 4; i++) {
        struct linger reset = {.l_onoff = 1, .l_linger = 0};
        struct client client;

        client_open(&client, fixture);
        hold(&client, fixture);
        if (i % 2)
            (void)setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        client_close(&client);
        settle(fixture);
        answer(fixture, 200, "to nobody");
        wait_connections(fixture, 0);
    }
    assert_int_equal(fixture->complaints.n, 0); /* clients may go */
}

static void who_has_sent_all_may_still_listen(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    client_send(&client, HOLD HOLD);
    assert_int_equal(shutdown(client.fd, SHUT_WR), 0);
    for (int i = 0; i < 2; i++) {
        wait_count(fixture, &fixture->n_held, i + 1);
        settle(fixture);
        answer(fixture, 200, "both ways");
        client_expect_answer(&client, 200, "both ways");
    }
    advance(fixture, 1000);
    client_expect_closed(&client);
    client_close(&client);
}

static bool is_never(void *ctx)
{
    (void)ctx;
    return false;
}

/* What it costs when nothing happens: a held call, also one with more requests behind it and one
 * whose client has sent its end, must not keep the loop busy. */
static void waiting_takes_no_time(void **state)
{
    struct fixture *fixture = *state;
    struct client clients[3];
    clock_t before;
    struct dv_rest_call *calls[3];

    fixture_serve(fixture);
    for (int i = 0; i < 3; i++) {
        client_open(&clients[i], fixture);
        client_send(&clients[i], i == 1 ? HOLD HOLD HOLD : HOLD);
        if (i == 2)
            assert_int_equal(shutdown(clients[i].fd, SHUT_WR), 0);
        wait_count(fixture, &fixture->n_held, i + 1);
        settle(fixture);
        calls[i] = fixture->held;
    }
    before = clock();
    assert_false(dv_loop_run_until(fixture->loop, is_never, NULL, 300));
    assert_in_range(clock() - before, 0, CLOCKS_PER_SEC / 10);
    for (int i = 0; i < 3; i++) {
        dv_rest_call_reply(calls[i], 200, DV_STR("ok"));
        client_expect_answer(&clients[i], 200, "ok");
        if (i != 1)
            client_close(&clients[i]);
    }
    wait_count(fixture, &fixture->n_held, 4);
    answer(fixture, 200, "2");
    wait_count(fixture, &fixture->n_held, 5);
    answer(fixture, 200, "3");
    client_expect_answer(&clients[1], 200, "2");
    client_expect_answer(&clients[1], 200, "3");
    client_close(&clients[1]);
}

static void idle_connections_are_closed(void **state)
{
    static const char *const beginnings[] = {"", "GET /echo", "\r\n"};
    struct fixture *fixture = *state;

    fixture->options.timeout_ms = 5000;
    fixture_serve(fixture);
    for (size_t i = 0; i < DV_COUNT(beginnings); i++) {
        struct client client;

        client_open(&client, fixture);
        client_send(&client, beginnings[i]);
        wait_connections(fixture, 1);
        advance(fixture, 4999);
        assert_int_equal(dv_rest_server_n_connections(fixture->server), 1);
        advance(fixture, 1);
        client_expect_closed(&client);
        wait_connections(fixture, 0);
        client_close(&client);
    }
    assert_int_equal(fixture->complaints.n, 0);
}

static void a_request_must_arrive_in_time(void **state)
{
    static const char *const beginnings[] = {
        "GET /echo HTTP/1.1\r\n",
        "GET /echo HTTP/1.1\r\nHost: h\r\n",
        "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n50\r\nabc",
    };
    struct fixture *fixture = *state;

    fixture->options.timeout_ms = 5000;
    fixture_serve(fixture);
    for (size_t i = 0; i < DV_COUNT(beginnings); i++) {
        struct client client;

        client_open(&client, fixture);
        client_send(&client, beginnings[i]);
        wait_connections(fixture, 1);
        settle(fixture);
        for (int k = 0; k < 4; k++) { /* one byte from time to time does not help */
            advance(fixture, 1200);
            client_send(&client, "x");
            settle(fixture);
            assert_int_equal(dv_rest_server_n_connections(fixture->server), 1);
        }
        advance(fixture, 200);
        client_expect_closed(&client);
        wait_complaint(fixture, "DEADLINE_EXCEEDED the request did not arrive in time;");
        dv_buf_clear(&fixture->complaints);
        client_close(&client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_answer_may_come_later, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(answers_need_no_body, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(large_answers_go_out_as_they_are_read, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(a_client_that_takes_no_answer_is_cut_off, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(an_answer_to_a_client_that_is_gone_is_dropped,
                                        fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(who_has_sent_all_may_still_listen, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(waiting_takes_no_time, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(idle_connections_are_closed, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_request_must_arrive_in_time, fixture_start, fixture_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

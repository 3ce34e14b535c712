#include "support/dvtest.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "rest/tests/test_rest_fixture.h"

static void a_request_is_answered(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    client_send(&client, "GET /show/a%20b/%2F//?x=1&y=%26+%3d&z HTTP/1.1\r\n"
                         "Host: h\r\nAccept: a,b\r\nX-empty:\r\naccept: c\r\n\r\n");
    client_expect_answer(&client, 200,
                         "GET [show] [a b] [/] [] [] x=1 y=& = z= "
                         "Host:h Accept:a,b X-empty: accept:c 0");
    client_send(&client, "DELETE http://h:80/show?q HTTP/1.1\r\nHost: h\r\n\r\n");
    client_expect(&client, "X-Id: 7\r\n");
    client_expect(&client, "DELETE [show] q= Host:h 0");
    assert_int_equal(client.got.n, 0);
    assert_int_equal(fixture->complaints.n, 0);
    client_close(&client);
    wait_connections(fixture, 0);
    assert_non_null(strstr(dv_buf_c(&fixture->log), "rest: call started request="));
    assert_non_null(strstr(dv_buf_c(&fixture->log), " server=test status=200 bytes="));
    assert_null(strstr(dv_buf_c(&fixture->log), "Forged"));
}

static void a_connection_serves_many_requests(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    for (int i = 0; i < 50; i++) {
        client_send(&client, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n");
        client_send(&client, "he");
        settle(fixture);
        client_send(&client, "llo");
        client_expect_answer(&client, 200, "hello");
        client_send(&client, "GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n");
        client_expect_answer(&client, 404, "nothing here");
    }
    assert_int_equal(dv_rest_server_n_connections(fixture->server), 1);
    client_send(&client, "GET /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    client_expect_answer(&client, 200, "");
    client_expect_closed(&client);
    client_close(&client);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    struct dv_buf text;

    fixture_serve(fixture);
    client_open(&client, fixture);
    dv_buf_init(&text, 1u << 20);
    for (int i = 0; i < 300; i++)
        dv_buf_printf(&text, "PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n%03d", i);
    client_send_n(&client, dv_buf_str(&text));
    for (int i = 0; i < 300; i++) {
        char body[8];

        (void)snprintf(body, sizeof(body), "%03d", i);
        client_expect_answer(&client, 200, body);
    }
    dv_buf_fini(&text);
    /* One that is held holds those behind it. */
    client_send(&client, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n"
                         "GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n");
    wait_count(fixture, &fixture->n_held, 1);
    settle(fixture);
    assert_int_equal(client.got.n, 0);
    dv_rest_call_reply(fixture->held, 201, DV_STR("made"));
    fixture->held = NULL;
    client_expect_answer(&client, 201, "made");
    client_expect_answer(&client, 404, "nothing here");
    client_close(&client);
}

static void bodies_may_come_in_chunks(void **state)
{
    static const char *const pieces[] = {
        "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
        "5\r\nhel",
        "lo\r\n",
        "1",
        "\r\n \r\n",
        "00005\r\nworld\r\n",
        "0\r\n",
        "X-T: r\r\n\r\n",
    };
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < DV_COUNT(pieces); i++) {
            client_send(&client, pieces[i]);
            settle(fixture);
        }
        client_expect_answer(&client, 200, "hello world");
    }
    client_close(&client);
}

static void extensions_of_chunks_are_skipped(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    client_send(&client, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "5;x=y\r\nhello\r\n0\r\n\r\n");
    client_expect_answer(&client, 200, "hello");
    client_close(&client);
}

static void compressed_bodies_are_refused(void **state)
{
    static const struct {
        const char *encoding;
        bool is_refused;
    } cases[] = {
        {"gzip",           true },
        {"deflate",        true },
        {"gzip, identity", true },
        {"x-unknown",      true },
        {"identity",       false},
        {"Identity",       false},
        {"",               false},
    };
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        char text[200];

        (void)snprintf(text, sizeof(text),
                       "PATCH /echo HTTP/1.1\r\nHost: h\r\nContent-Encoding: %s\r\n"
                       "Content-Length: 4\r\n\r\nbody",
                       cases[i].encoding);
        client_send(&client, text); /* on one connection: it is kept */
        if (cases[i].is_refused)
            client_expect_answer(&client, 415, "want a body without Content-Encoding\n");
        else
            client_expect_answer(&client, 200, "body");
    }
    wait_complaint(fixture, "INVALID_ARGUMENT want a body without Content-Encoding");
    client_close(&client);
}

static void every_method_reaches_the_handler_with_its_body(void **state)
{
    static const char *const methods[] = {"GET",    "POST",    "PUT",  "PATCH",
                                          "DELETE", "OPTIONS", "VERB", "TRACE"};
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    for (size_t i = 0; i < DV_COUNT(methods); i++) {
        char text[200];

        (void)snprintf(text, sizeof(text),
                       "%s /show HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody", methods[i]);
        client_send(&client, text);
        (void)snprintf(text, sizeof(text), "%s [show] Host:h Content-Length:4 4", methods[i]);
        client_expect_answer(&client, 200, text);
    }
    /* The header of an answer that would have a body, and none. */
    client_send(&client, "HEAD /nowhere HTTP/1.1\r\nHost: h\r\n\r\n");
    client_expect(&client, "HTTP/1.1 404 Not Found\r\n");
    client_expect(&client, "Content-Length: 12\r\n");
    client_expect(&client, "\r\n");
    client_send(&client, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    client_expect(&client, "HTTP/1.1 400 ");
    client_close(&client);
}

static void a_client_may_wait_for_leave_to_send_its_body(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture->options.body_bytes_max = 10;
    fixture_serve(fixture);
    client_open(&client, fixture);
    client_send(&client, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n"
                         "Expect: 100-continue\r\n\r\n");
    client_expect(&client, "HTTP/1.1 100 Continue\r\n\r\n");
    client_send(&client, "0123456789");
    client_expect_answer(&client, 200, "0123456789");
    client_send(&client, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n"
                         "Expect: 100-continue\r\n\r\n");
    client_expect_answer(&client, 413, "the body is larger than 10 bytes\n");
    client_expect_closed(&client);
    client_close(&client);
}

static void bad_requests_get_an_error(void **state)
{
    static const struct {
        const char *text;
        const char *answer; /* NULL: the connection is closed without one */
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n",                                                "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",                          "HTTP/1.1 400 "},
        {"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n",                                  "HTTP/1.1 400 "},
        {"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n",                                  "HTTP/1.1 400 "},
        {"GET /?a=%ff HTTP/1.1\r\nHost: h\r\n\r\n",                               "HTTP/1.1 400 "},
        {"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",                                  "HTTP/1.1 400 "},
        {"GET a HTTP/1.1\r\nHost: h\r\n\r\n",                                     "HTTP/1.1 400 "},
        {"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",                                 "HTTP/1.1 400 "},
        {"CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n",                              "HTTP/1.1 400 "},
        {"GET / HTTP/2.0\r\nHost: h\r\n\r\n",                                     "HTTP/1.1 505 "},
        {"GET / HTTP/1.x\r\nHost: h\r\n\r\n",                                     "HTTP/1.1 400 "},
        {"GET /\r\nHost: h\r\n\r\n",                                              "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n",                         "HTTP/1.1 400 "},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n",               "HTTP/1.1 400 "},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",              "HTTP/1.1 400 "},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n"
         "Content-Length: 2\r\n\r\nx",                                   "HTTP/1.1 400 "},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n"
         "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",                  "HTTP/1.1 400 "},
        {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",         "HTTP/1.1 501 "},
        {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\nHost: h\n\n",                                       "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\nHost: h\n\r\n",                                   "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\nHost: h\r\n\n",                                   "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\nHost: h\r\nA: b\r\r\n\r\n",                       "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n",                      "HTTP/1.1 400 "},
        {"GET  /show HTTP/1.1\r\nHost: h\r\n\r\n",                                "HTTP/1.1 400 "},
        {"GET /show  HTTP/1.1\r\nHost: h\r\n\r\n",                                "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\nHost: h\r\nA:\r\n b\r\n\r\n",                     "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\nHost: h\r\nA: b\r\n\tc\r\nD: e\r\n\r\n",          "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\nHost:\r\n h\r\n\r\n",                             "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\nHost: h\r\n A: b\r\n\r\n",                        "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\n A: b\r\nHost: h\r\n\r\n",                        "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n",                        "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n",                          "HTTP/1.1 400 "},
        {"G@T /show HTTP/1.1\r\nHost: h\r\n\r\n",                                 "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\n"
         "authorization: b\r\n\r\n",                                     "HTTP/1.1 400 "},
        {"GET /show HTTP/1.1\r\nHost: h\r\nImpersonate-User: a\r\n"
         "Impersonate-User: a\r\n\r\n",                                  "HTTP/1.1 400 "},
        {"POST /show HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",    "HTTP/1.1 400 "},
        {"\x16\x03\x01\x02\r\n",                                                  NULL           },
    };
    struct fixture *fixture = *state;

    fixture_serve(fixture);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct client client;

        client_open(&client, fixture);
        client_send(&client, cases[i].text);
        (void)shutdown(client.fd, SHUT_WR); /* fails when the server was first */
        if (cases[i].answer)
            client_expect(&client, cases[i].answer);
        advance(fixture, 1000);
        client_expect_closed(&client);
        if (!cases[i].answer)
            assert_int_equal(client.got.n, 0);
        client_close(&client);
    }
    wait_connections(fixture, 0);
    wait_complaint(fixture, "INVALID_ARGUMENT want one Host field;");
    wait_complaint(fixture, "INVALID_ARGUMENT bad request: ");
    assert_int_equal(fixture->n_held, 0);
}

/* At every place of a good request, with what follows it in the same piece and in the next one. */
static void a_zero_byte_in_a_header_is_refused(void **state)
{
    static const char good[] = "DELETE /show/x?y HTTP/1.1\r\nHost: h\r\nA: b\r\nC: \r\n\r\n";
    struct fixture *fixture = *state;
    size_t n = sizeof(good) - 1;

    fixture_serve(fixture);
    for (size_t i = 0; i < 2 * n; i++) {
        size_t at = i / 2;
        struct client client;
        char text[sizeof(good)];

        memcpy(text, good, at);
        text[at] = '\0';
        memcpy(text + at + 1, good + at, n - at);
        client_open(&client, fixture);
        if (i % 2) {
            client_send_n(&client, (dv_str){text, at + 1});
            settle(fixture);
            client_send_n(&client, (dv_str){text + at + 1, n - at});
        } else {
            client_send_n(&client, (dv_str){text, n + 1});
        }
        (void)shutdown(client.fd, SHUT_WR); /* fails when the server was first */
        advance(fixture, 1000);
        client_expect_closed(&client);
        if (strstr(dv_buf_c(&client.got), " 200 "))
            fail_msg("a zero byte at %zu is taken: %s", at, dv_buf_c(&client.got));
        client_close(&client);
    }
}

/* Nobody knows where the next request begins, so there is none. */
static void after_a_bad_length_the_connection_is_closed(void **state)
{
    static const char *const fields[] = {
        "Content-Length: x",
        "Content-Length: -1",
        "Content-Length: +1",
        "Content-Length: 0x1",
        "Content-Length: 1, 1",
        "Content-Length:",
        "Content-Length: 0\r\nContent-Length: 0",
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: 0\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Content-Length: 99999999999999999999999999",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: identity",
    };
    struct fixture *fixture = *state;

    fixture_serve(fixture);
    for (size_t i = 0; i < DV_COUNT(fields); i++) {
        struct client client;
        char text[400];

        (void)snprintf(text, sizeof(text),
                       "POST /show HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n"
                       "0\r\n\r\nGET /show/smuggled HTTP/1.1\r\nHost: h\r\n\r\n",
                       fields[i]);
        client_open(&client, fixture);
        client_send(&client, text);
        client_expect_closed(&client);
        if (strncmp(dv_buf_c(&client.got), "HTTP/1.1 4", 10) != 0 &&
            strncmp(dv_buf_c(&client.got), "HTTP/1.1 501 ", 13) != 0)
            fail_msg("%s: %s", fields[i], dv_buf_c(&client.got));
        if (strstr(dv_buf_c(&client.got), " 200 ") || strstr(dv_buf_c(&client.got), "smuggled"))
            fail_msg("%s: %s", fields[i], dv_buf_c(&client.got));
        client_close(&client);
    }
}

static void heads_and_old_clients_are_served(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    client_send(&client, "HEAD /nowhere HTTP/1.1\r\nHost: h\r\n\r\n");
    client_expect(&client, "\r\nContent-Length: 12\r\n");
    client_expect(&client, "\r\n");
    client_send(&client, "GET /nowhere HTTP/1.0\r\n\r\n");
    client_expect(&client, "HTTP/1.1 404 ");
    client_expect(&client, "nothing here");
    client_expect_closed(&client);
    client_close(&client);
}

static void a_client_that_goes_while_it_sends_is_forgotten(void **state)
{
    static const char *const beginnings[] = {
        "",
        "GE",
        "GET /echo HTTP/1.1\r\n",
        "GET /echo HTTP/1.1\r\nHost: h\r\n",
        "POST /hold HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc",
        "POST /hold HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
    };
    struct fixture *fixture = *state;

    fixture_serve(fixture);
    for (size_t i = 0; i < DV_COUNT(beginnings) * 2; i++) {
        struct client client;
        struct linger reset = {.l_onoff = 1, .l_linger = 0};

        client_open(&client, fixture);
        client_send(&client, beginnings[i / 2]);
        wait_connections(fixture, 1);
        settle(fixture);
        if (i % 2)
            (void)setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        client_close(&client);
        wait_connections(fixture, 0);
    }
    assert_int_equal(fixture->n_held, 0);
}

/* ---- clients that leave ---- */

static void on_gone(void *ctx)
{
    ++*(int *)ctx;
}

static void who_waits_for_a_call_is_told_that_its_client_leaves(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    int n_gone = 0;

    fixture_serve(fixture);
    client_open(&client, fixture);
    client_send(&client, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
    wait_count(fixture, &fixture->n_held, 1);
    assert_true(dv_rest_call_watch(fixture->held, on_gone, &n_gone));
    settle(fixture);
    assert_int_equal(n_gone, 0);
    client_close(&client);
    wait_count(fixture, &n_gone, 1);
    assert_false(dv_rest_call_watch(fixture->held, on_gone, &n_gone)); /* it has left already */
    dv_rest_call_reply(fixture->held, 200, DV_STR("to nobody"));
    fixture->held = NULL;
    settle(fixture);
    assert_int_equal(n_gone, 1);
    /* One that stays until it is answered is no news. */
    client_open(&client, fixture);
    client_send(&client, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
    wait_count(fixture, &fixture->n_held, 2);
    assert_true(dv_rest_call_watch(fixture->held, on_gone, &n_gone));
    dv_rest_call_reply(fixture->held, 200, DV_STR("here"));
    fixture->held = NULL;
    client_expect_answer(&client, 200, "here");
    client_close(&client);
    wait_connections(fixture, 0);
    assert_int_equal(n_gone, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_is_answered, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(who_waits_for_a_call_is_told_that_its_client_leaves,
                                        fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_connection_serves_many_requests, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(pipelined_requests_are_answered_in_order, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(bodies_may_come_in_chunks, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(extensions_of_chunks_are_skipped, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(compressed_bodies_are_refused, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(every_method_reaches_the_handler_with_its_body,
                                        fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_client_may_wait_for_leave_to_send_its_body, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(bad_requests_get_an_error, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_zero_byte_in_a_header_is_refused, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(after_a_bad_length_the_connection_is_closed, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(heads_and_old_clients_are_served, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(a_client_that_goes_while_it_sends_is_forgotten,
                                        fixture_start, fixture_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rest/tests/test_rest_fixture.h"

#define HOLD "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n"
#define NOWHERE "GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n"

static void on_request(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct fixture *fixture = ctx;

    (void)request;
    fixture->n_held++;
    dv_rest_call_reply(call, 200, DV_STR("here"));
}

static void servers_listen_where_they_are_told(void **state)
{
    static const struct {
        const char *address;
        enum dv_code code;
    } cases[] = {
        {"127.0.0.1:0",                                          DV_OK              },
        {"localhost:0",                                          DV_OK              },
        {":0",                                                   DV_OK              },
        {"[::1]:0",                                              DV_OK              },
        {"0.0.0.0:0",                                            DV_OK              },
        {"",                                                     DV_INVALID_ARGUMENT},
        {"127.0.0.1",                                            DV_INVALID_ARGUMENT},
        {"127.0.0.1:",                                           DV_INVALID_ARGUMENT},
        {"127.0.0.1:65536",                                      DV_INVALID_ARGUMENT},
        {"127.0.0.1:-1",                                         DV_INVALID_ARGUMENT},
        {"127.0.0.1:http",                                       DV_INVALID_ARGUMENT},
        {"example.com:80",                                       DV_INVALID_ARGUMENT},
        {"[127.0.0.1]:80",                                       DV_INVALID_ARGUMENT},
        {"::1:80",                                               DV_INVALID_ARGUMENT},
        {"127.0.0.1.127.0.0.1.127.0.0.1.127.0.0.1.127.0.0.1:80", DV_INVALID_ARGUMENT},
    };
    struct fixture *fixture = *state;
    struct dv_rest_server_options options = {.handle = on_request, .ctx = fixture};

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err = {.code = DV_OK};
        struct dv_rest_server *server =
            dv_rest_server_open(fixture->loop, dv_str_from_c(cases[i].address), &options, &err);

        if (err.code != cases[i].code)
            fail_msg("%s: %s", cases[i].address, err.msg);
        if (!server)
            continue;
        assert_true(dv_rest_server_port(server) > 0);
        dv_rest_server_close(server, 0, NULL, NULL);
        settle(fixture);
    }
}

static void an_address_in_use_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct dv_rest_server_options options = {.handle = on_request};
    char address[32];
    struct dv_err err;

    fixture_serve(fixture);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", fixture->port);
    assert_null(dv_rest_server_open(fixture->loop, dv_str_from_c(address), &options, &err));
    assert_err(&err, DV_ALREADY_EXISTS, address);
}

static void a_listening_socket_may_be_given(void **state)
{
    struct fixture *fixture = *state;
    struct dv_rest_server_options options = {.handle = on_request, .ctx = fixture};
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "\0dv-rest-test"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct dv_rest_server *server;
    char got[300] = {0};
    struct dv_err err;

    (void)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "dv-rest-%d", getpid());
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_null(dv_rest_server_open_fd(fixture->loop, dup(fd), &options, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "not a listening socket");
    assert_int_equal(listen(fd, 10), 0);
    server = dv_rest_server_open_fd(fixture->loop, fd, &options, &err);
    assert_non_null(server);
    assert_int_equal(dv_rest_server_port(server), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(client, NOWHERE, strlen(NOWHERE), 0), strlen(NOWHERE));
    wait_count(fixture, &fixture->n_held, 1);
    settle(fixture);
    assert_true(recv(client, got, sizeof(got) - 1, MSG_DONTWAIT) > 0);
    assert_non_null(strstr(got, "\r\n\r\nhere"));
    (void)close(client);
    dv_rest_server_close(server, 0, NULL, NULL);
    settle(fixture);
    assert_null(dv_rest_server_open_fd(fixture->loop, -1, &options, &err));
}

/* Calls that wait for us keep their places; the client is told that there is none left. */
static void connections_have_a_limit(void **state)
{
    struct fixture *fixture = *state;
    struct dv_rest_call *held[3];
    struct client clients[4];

    fixture->options.connections_max = 3;
    fixture_serve(fixture);
    for (int i = 0; i < 3; i++) {
        client_open(&clients[i], fixture);
        client_send(&clients[i], HOLD);
        wait_count(fixture, &fixture->n_held, i + 1);
        held[i] = fixture->held;
    }
    for (int i = 0; i < 5; i++) {
        client_open(&clients[3], fixture);
        client_send(&clients[3], NOWHERE);
        client_expect(&clients[3], "HTTP/1.1 503 ");
        client_expect_closed(&clients[3]);
        client_close(&clients[3]);
    }
    wait_complaint(fixture, "RESOURCE_EXHAUSTED connection refused: 3 are open already;");
    fixture->held = NULL;
    for (int i = 0; i < 3; i++) {
        dv_rest_call_reply(held[i], 200, DV_STR("held"));
        client_expect_answer(&clients[i], 200, "held");
    }
    client_close(&clients[0]);
    wait_connections(fixture, 2);
    client_open(&clients[3], fixture);
    for (int i = 1; i < 4; i++) {
        client_send(&clients[i], NOWHERE);
        client_expect_answer(&clients[i], 404, "nothing here");
        client_close(&clients[i]);
    }
}

static void many_connections_are_served_together(void **state)
{
    enum { N = 300 };
    struct fixture *fixture = *state;
    struct client *clients = calloc(N, sizeof(*clients));

    fixture_serve(fixture);
    for (int i = 0; i < N; i++) {
        client_open(&clients[i], fixture);
        client_send(&clients[i], i % 3 ? NOWHERE NOWHERE : "GET /echo HTTP/1.1\r\nHost:");
    }
    wait_connections(fixture, N);
    for (int i = 0; i < N; i++) {
        if (i % 3) {
            client_expect_answer(&clients[i], 404, "nothing here");
        } else {
            client_send(&clients[i], " h\r\n\r\n");
            client_expect_answer(&clients[i], 200, "");
        }
    }
    for (int i = 0; i < N; i += 2)
        client_close(&clients[i]);
    wait_connections(fixture, N / 2);
    for (int i = 1; i < N; i += 2) {
        if (i % 3)
            client_expect_answer(&clients[i], 404, "nothing here");
        client_close(&clients[i]);
    }
    wait_connections(fixture, 0);
    free(clients);
}

/* ---- closing ---- */

static void an_idle_server_closes_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct client idle;
    struct client sending;

    fixture_serve(fixture);
    fixture_close(fixture, 5000);
    assert_int_equal(fixture->n_closed, 0); /* not before close has returned */
    wait_count(fixture, &fixture->n_closed, 1);

    fixture_serve(fixture);
    client_open(&idle, fixture);
    client_open(&sending, fixture);
    client_send(&idle, NOWHERE);
    client_expect_answer(&idle, 404, "nothing here");
    client_send(&sending, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc");
    wait_connections(fixture, 2);
    settle(fixture);
    fixture_close(fixture, 5000);
    wait_count(fixture, &fixture->n_closed, 2);
    client_expect_closed(&idle);
    client_expect_closed(&sending);
    client_close(&idle);
    client_close(&sending);
}

static void running_calls_may_be_answered_while_it_closes(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture);
    client_send(&client, HOLD NOWHERE); /* the second is not taken any more */
    wait_count(fixture, &fixture->n_held, 1);
    fixture_close(fixture, 5000);
    advance(fixture, 4999);
    assert_int_equal(fixture->n_closed, 0);
    dv_rest_call_reply(fixture->held, 200, DV_STR("just in time"));
    fixture->held = NULL;
    client_expect(&client, "Connection: close\r\n");
    client_expect(&client, "just in time");
    client_expect_closed(&client);
    assert_int_equal(client.got.n, 0);
    wait_count(fixture, &fixture->n_closed, 1);
    client_close(&client);
}

static void calls_are_cancelled_when_the_grace_is_over(void **state)
{
    struct fixture *fixture = *state;
    struct client holding;
    struct client streaming;
    struct client slow;

    fixture_serve(fixture);
    client_open(&holding, fixture);
    client_open(&streaming, fixture);
    client_open(&slow, fixture);
    client_reads(&slow, false);
    client_send(&slow, HOLD);
    wait_count(fixture, &fixture->n_held, 1);
    {
        struct dv_buf body;

        dv_buf_init(&body, SIZE_MAX);
        memset(dv_buf_extend(&body, 16u << 20), 'x', 16u << 20);
        dv_rest_call_reply_buf(fixture->held, 200, &body);
    }
    client_send(&holding, HOLD);
    client_send(&streaming, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    wait_count(fixture, &fixture->n_held, 2);
    wait_count(fixture, &fixture->n_streams, 1);
    settle(fixture);
    fixture_close(fixture, 5000);
    advance(fixture, 4999);
    assert_int_equal(fixture->n_ended, 0);
    advance(fixture, 1);
    wait_count(fixture, &fixture->n_ended, 1);
    assert_err(&fixture->ended, DV_CANCELLED, "closed");
    client_expect_closed(&holding);
    client_expect_closed(&streaming);
    settle(fixture);
    assert_int_equal(fixture->n_closed, 0); /* the handler has not let go */
    dv_rest_call_reply(fixture->held, 200, DV_STR("too late"));
    fixture->held = NULL;
    assert_int_equal(fixture->n_closed, 0);
    wait_count(fixture, &fixture->n_closed, 1);
    client_close(&holding);
    client_close(&streaming);
    client_close(&slow);
}

static void a_handler_may_close_its_server(void **state)
{
    struct fixture *fixture = *state;
    struct client client;

    fixture->closes_server = true;
    fixture_serve(fixture);
    client_open(&client, fixture);
    client_send(&client, HOLD);
    wait_count(fixture, &fixture->n_held, 1);
    settle(fixture);
    assert_int_equal(fixture->n_closed, 0);
    dv_rest_call_reply(fixture->held, 200, DV_STR("bye"));
    fixture->held = NULL;
    client_expect(&client, "bye");
    client_expect_closed(&client);
    wait_count(fixture, &fixture->n_closed, 1);
    client_close(&client);
}

static void without_descriptors_accepting_makes_a_pause(void **state)
{
    struct fixture *fixture = *state;
    struct rlimit before;
    struct rlimit none;
    struct client client;

    fixture_serve(fixture);
    client_open(&client, fixture); /* in the kernel's queue */
    client_send(&client, NOWHERE);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    wait_complaint(fixture, "accept a connection: ");
    dv_buf_clear(&fixture->complaints);
    settle(fixture);
    assert_int_equal(fixture->complaints.n, 0); /* not again and again */
    advance(fixture, 100);
    wait_complaint(fixture, "accept a connection: ");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    advance(fixture, 100);
    client_expect_answer(&client, 404, "nothing here");
    client_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(servers_listen_where_they_are_told, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(an_address_in_use_is_refused, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(a_listening_socket_may_be_given, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(connections_have_a_limit, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(many_connections_are_served_together, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(an_idle_server_closes_at_once, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(running_calls_may_be_answered_while_it_closes,
                                        fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(calls_are_cancelled_when_the_grace_is_over, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(a_handler_may_close_its_server, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(without_descriptors_accepting_makes_a_pause, fixture_start,
                                        fixture_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

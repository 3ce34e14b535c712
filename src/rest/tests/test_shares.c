#include "support/dvtest.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rest/rest_server.h"
#include "rest/tests/test_rest_fixture.h"

/* All of them may be a quarter, of one origin a sixteenth. */
#define CONNECTIONS 64u
#define ORIGIN_MAX 4u
#define USER_MAX 16u
/* Three quarters, but for what is reserved. */
#define KNOWN_MAX 44u
#define RESERVED 4u

static unsigned n_drops[DV_REST_N_DROPS];

static void on_dropped(void *ctx, enum dv_rest_drop drop)
{
    (void)ctx;
    n_drops[drop]++;
}

/* "/NAME" is asked by that user; "/admin..." by an administrator; "/" by nobody. */
static void on_request(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    dv_str user = dv_str_slice(request->path, 1, request->path.n);
    struct dv_err err;

    (void)ctx;
    if (user.n == 0) {
        dv_rest_call_disown(call);
        dv_rest_call_reply(call, 200, DV_STR("known"));
    } else if (dv_rest_call_vouch(call, user, dv_str_starts_with(user, DV_STR("admin")), &err)) {
        dv_rest_call_reply(call, 200, DV_STR("known"));
    } else {
        dv_rest_call_reply(call, 429, dv_str_from_c(err.msg));
    }
}

static void serve(struct fixture *fixture)
{
    memset(n_drops, 0, sizeof(n_drops));
    fixture->options.handle = on_request;
    fixture->options.dropped = on_dropped;
    fixture->options.has_users = true;
    fixture->options.connections_max = CONNECTIONS;
    fixture_serve(fixture);
}

static void ask_as(struct client *client, const char *user)
{
    char text[200];

    (void)snprintf(text, sizeof(text), "GET /%s HTTP/1.1\r\nHost: h\r\n\r\n", user);
    client_send(client, text);
}

static void open_as(struct client *client, struct fixture *fixture, const char *user,
                    unsigned status)
{
    client_open(client, fixture);
    ask_as(client, user);
    client_expect(client, status == 200 ? "HTTP/1.1 200 " : "HTTP/1.1 429 ");
    client_expect(client, status == 200 ? "known" : "try again later");
}

static void close_all(struct client *clients, size_t n)
{
    for (size_t i = 0; i < n; i++)
        client_close(&clients[i]);
}

static void silent_connections_make_room_for_newcomers(void **state)
{
    enum { N = 200 };
    struct fixture *fixture = *state;
    struct client *silent = calloc(N, sizeof(*silent));
    struct client known;
    struct client newcomer;

    serve(fixture);
    open_as(&known, fixture, "somebody", 200);
    for (size_t i = 0; i < N; i++)
        client_open(&silent[i], fixture);
    client_expect_closed(&silent[N - ORIGIN_MAX - 1]);
    open_as(&newcomer, fixture, "other", 200);
    for (size_t i = 0; i < N - ORIGIN_MAX; i++)
        client_expect_closed(&silent[i]);
    ask_as(&known, "somebody"); /* whoever is known has kept its place */
    client_expect_answer(&known, 200, "known");
    assert_in_range(n_drops[DV_REST_DROP_PEER], N - ORIGIN_MAX, N);
    close_all(silent, N);
    client_close(&known);
    client_close(&newcomer);
    free(silent);
}

/* Who has begun to speak is not dropped while others say nothing. */
static void silent_connections_go_before_those_that_speak(void **state)
{
    struct fixture *fixture = *state;
    struct client speaking;
    struct client silent[10];

    serve(fixture);
    client_open(&speaking, fixture);
    client_send(&speaking, "GET /somebody HTTP/1.1\r\nHost:");
    wait_connections(fixture, 1);
    settle(fixture);
    for (size_t i = 0; i < DV_COUNT(silent); i++)
        client_open(&silent[i], fixture);
    client_expect_closed(&silent[DV_COUNT(silent) - ORIGIN_MAX]);
    client_send(&speaking, " h\r\n\r\n");
    client_expect_answer(&speaking, 200, "known");
    client_close(&speaking);
    close_all(silent, DV_COUNT(silent));
}

static void a_user_has_a_share(void **state)
{
    struct fixture *fixture = *state;
    struct client greedy[USER_MAX];
    struct client other;

    serve(fixture);
    for (size_t i = 0; i < USER_MAX; i++)
        open_as(&greedy[i], fixture, "greedy", 200);
    client_open(&other, fixture);
    ask_as(&other, "greedy");
    client_expect(&other, "HTTP/1.1 429 ");
    client_expect(&other,
                  "user \"greedy\" has 16 connections open, which is all it may have: close "
                  "some of them");
    assert_int_equal(n_drops[DV_REST_DROP_USER], 1);
    ask_as(&other, "modest"); /* on the same connection */
    client_expect_answer(&other, 200, "known");
    client_close(&greedy[0]);
    wait_connections(fixture, USER_MAX);
    ask_as(&other, "greedy");
    client_expect_answer(&other, 200, "known");
    client_close(&other);
    close_all(greedy, USER_MAX);
}

/* "/NAME": says so when the header is there. */
static void on_arriving(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    dv_str user = dv_str_slice(request->path, 1, request->path.n);
    struct dv_err err;

    (void)ctx;
    if (user.n > 0)
        assert_true(dv_rest_call_vouch(call, user, false, &err));
}

/* Begins a request with a body of 1,000 bytes, and sends all but the last. */
static void begin_body(struct client *client, struct fixture *fixture, const char *user)
{
    char text[100];

    client_open(client, fixture);
    (void)snprintf(text, sizeof(text),
                   "POST /%s HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n", user);
    client_send(client, text);
    client_send_n(client, (dv_str){(const char[999]){0}, 999});
    settle(fixture);
}

static void end_body(struct client *client, const char *answer)
{
    client_send(client, "x");
    client_expect(client, answer);
    client_close(client);
}

/* Who is not known cannot keep others from sending, nor can one user. */
static void bodies_have_shares(void **state)
{
    struct fixture *fixture = *state;
    struct client unknown[3];
    struct client greedy[5];
    struct client other;

    fixture->options.bodies_bytes_max = 8000;
    fixture->options.arriving = on_arriving;
    serve(fixture);
    for (size_t i = 0; i < DV_COUNT(unknown); i++)
        begin_body(&unknown[i], fixture, "");
    for (size_t i = 0; i < DV_COUNT(greedy); i++)
        begin_body(&greedy[i], fixture, "greedy");
    begin_body(&other, fixture, "other");
    end_body(&other, "HTTP/1.1 200 ");
    end_body(&greedy[4], "HTTP/1.1 503 ");
    end_body(&unknown[2], "HTTP/1.1 503 ");
    end_body(&greedy[0], "HTTP/1.1 200 ");
    begin_body(&greedy[0], fixture, "greedy"); /* what was answered gives room */
    end_body(&greedy[0], "HTTP/1.1 200 ");
    end_body(&unknown[0], "HTTP/1.1 200 ");
    client_close(&unknown[1]);
    close_all(greedy + 1, 3);
    wait_connections(fixture, 0);
}

static void room_is_kept_for_admins_on_the_loopback(void **state)
{
    struct fixture *fixture = *state;
    struct client users[KNOWN_MAX];
    struct client admins[RESERVED];
    struct client late;

    serve(fixture);
    for (size_t i = 0; i < KNOWN_MAX; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "user-%zu", i / USER_MAX);
        open_as(&users[i], fixture, name, 200);
    }
    open_as(&late, fixture, "late", 429);
    client_close(&late);
    for (size_t i = 0; i < RESERVED; i++)
        open_as(&admins[i], fixture, "admin", 200);
    open_as(&late, fixture, "admin", 429);
    assert_int_equal(n_drops[DV_REST_DROP_FULL], 2);
    client_close(&late);
    close_all(users, KNOWN_MAX);
    close_all(admins, RESERVED);
}

/* A token that is no longer good makes its connection one of nobody. */
static void who_is_known_no_more_loses_the_place(void **state)
{
    struct fixture *fixture = *state;
    struct client clients[ORIGIN_MAX + 1];
    struct client newcomer;

    serve(fixture);
    for (size_t i = 0; i < DV_COUNT(clients); i++)
        open_as(&clients[i], fixture, "somebody", 200);
    for (size_t i = 0; i < DV_COUNT(clients); i++) {
        ask_as(&clients[i], "");
        client_expect_answer(&clients[i], 200, "known");
    }
    open_as(&newcomer, fixture, "other", 200);
    assert_int_equal(n_drops[DV_REST_DROP_PEER], 1);
    client_close(&newcomer);
    close_all(clients, DV_COUNT(clients));
}

static void who_sends_no_request_is_given_up_early(void **state)
{
    static const char *const beginnings[] = {"", "GET", "GET / HTTP/1.1\r\n",
                                             "GET / HTTP/1.1\r\nHost: h\r\nA: b"};
    struct fixture *fixture = *state;

    serve(fixture);
    for (size_t i = 0; i < DV_COUNT(beginnings); i++) {
        struct client client;

        client_open(&client, fixture);
        client_send(&client, beginnings[i]);
        wait_connections(fixture, 1);
        settle(fixture);
        advance(fixture, DV_REST_HEADER_MS - 1);
        settle(fixture);
        assert_false(client.is_closed);
        advance(fixture, 1);
        client_expect_closed(&client);
        client_close(&client);
        wait_connections(fixture, 0);
    }
    assert_int_equal(n_drops[DV_REST_DROP_SILENT], 2);
    assert_int_equal(n_drops[DV_REST_DROP_SLOW], 2);
}

/* ---- origins ---- */

static void origin_of(const char *text, struct dv_rest_origin *origin)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    int diag_fd = -1;

    memset(origin, 0, sizeof(*origin));
    if (strchr(text, ':')) {
        assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
        dv_rest_origin_find(&diag_fd, -1, (const struct sockaddr *)&v6, origin);
    } else {
        assert_int_equal(inet_pton(AF_INET, text, &v4.sin_addr), 1);
        dv_rest_origin_find(&diag_fd, -1, (const struct sockaddr *)&v4, origin);
    }
    if (diag_fd >= 0)
        (void)close(diag_fd);
}

static void origins_are_addresses_networks_or_users(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        bool are_same;
    } cases[] = {
        {"192.0.2.1",       "192.0.2.1",            true },
        {"192.0.2.1",       "192.0.2.2",            false},
        {"2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true },
        {"2001:db8:0:1::1", "2001:db8:0:2::1",      false},
        {"32.1.13.184",     "2001:db8::",           false},
        {"127.0.0.1",       "192.0.2.1",            false},
        {"127.0.0.1",       "127.1.2.3",            true }, /* of nobody who is there */
        {"::1",             "127.0.0.1",            true },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_rest_origin a;
        struct dv_rest_origin b;

        origin_of(cases[i].a, &a);
        origin_of(cases[i].b, &b);
        if ((a.n_key == b.n_key && memcmp(a.key, b.key, a.n_key) == 0) != cases[i].are_same)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
    }
}

/* The kernel may not tell in a sandbox; then there is no user, but an origin all the same. */
static void on_the_loopback_the_origin_is_a_user(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(address);
    struct dv_rest_origin origin = {0};
    uid_t uid = getuid();
    int diag_fd = -1;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    int accepted;

    (void)state;
    assert_int_equal(bind(listening, (struct sockaddr *)&address, n), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &n), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, n), 0);
    accepted = accept(listening, (struct sockaddr *)&address, &n);
    assert_true(accepted >= 0);
    dv_rest_origin_find(&diag_fd, accepted, (struct sockaddr *)&address, &origin);
    assert_true(origin.is_local);
    if (diag_fd >= 0) {
        assert_int_equal(origin.key[0], 'u');
        assert_int_equal(origin.n_key, 1 + sizeof(uid));
        assert_memory_equal(origin.key + 1, &uid, sizeof(uid));
        (void)close(diag_fd);
    }
    (void)close(listening);
    (void)close(client);
    (void)close(accepted);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(silent_connections_make_room_for_newcomers),
        TEST(silent_connections_go_before_those_that_speak),
        TEST(a_user_has_a_share),
        TEST(bodies_have_shares),
        TEST(room_is_kept_for_admins_on_the_loopback),
        TEST(who_is_known_no_more_loses_the_place),
        TEST(who_sends_no_request_is_given_up_early),
        cmocka_unit_test(origins_are_addresses_networks_or_users),
        cmocka_unit_test(on_the_loopback_the_origin_is_a_user),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

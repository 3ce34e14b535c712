#include "support/dvtest.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/loop.h"
#include "rest/tests/test_fetch.h"
#include "rest/tests/test_rest_fixture.h"

static int start_tls(void **state)
{
    int status = fixture_start(state);

    fixture_certify(*state);
    return status;
}

static void serve(struct fixture *fixture, struct asker *asker)
{
    fixture_serve(fixture);
    asker_open(asker, fixture);
}

/* A socket that the kernel connects to and nobody reads from. */
static int listen_deaf(struct fixture *fixture, struct asker *asker, const char *scheme)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t n = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 10), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    asker->options.base_url =
        dv_str_printf(fixture->arena, "%s://127.0.0.1:%u", scheme, ntohs(address.sin_port));
    asker_open(asker, fixture);
    return fd;
}

/* ---- what is wrong from the start ---- */

static void bad_options_do_not_open(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_rest_cert cert = {fixture->tls.cert, fixture->tls.key};
    const struct {
        struct dv_rest_client_options options;
        const char *text;
    } cases[] = {
        {{.base_url = DV_STR("")},                                                     "URL \"\""      },
        {{.base_url = DV_STR("127.0.0.1:6443")},                                       "URL"           },
        {{.base_url = DV_STR("ftp://h")},                                              "URL"           },
        {{.base_url = DV_STR("https://")},                                             "URL"           },
        {{.base_url = DV_STR("https://h:99999")},                                      "URL"           },
        {{.base_url = DV_STR("https://h/a b")},                                        "URL"           },
        {{.base_url = DV_STR("https://h/?a")},                                         "URL"           },
        {{.base_url = DV_STR("https://u:p@h/")},                                       "URL"           },
        {{.base_url = DV_STR("https://h\0x")},                                         "URL"           },
        {{.base_url = DV_STR("https://h"), .ca = DV_STR("x")},                         "CA certificate"},
        {{.base_url = DV_STR("https://h"), .cert = cert.cert},                         "missing"       },
        {{.base_url = DV_STR("https://h"), .key = cert.key},                           "missing"       },
        {{.base_url = DV_STR("https://h"), .cert = cert.cert, .key = cert.cert},
         "certificate and key"                                                                         },
        {{.base_url = DV_STR("https://h"), .cert = cert.cert, .key = fixture->ca.key},
         "do not match"                                                                                },
        {{.base_url = DV_STR("http://h"), .user_agent = DV_STR("a\r\nb")},             "user agent"    },
        {{.base_url = DV_STR("http://h"), .socket_path = DV_STR("a\0b")},              ""              },
    };

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;

        if (dv_rest_client_open(fixture->loop, &cases[i].options, &err))
            fail_msg("case %zu: it opens", i);
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].text[0] ? cases[i].text : "HTTP client: ");
    }
}

static void what_cannot_be_sent_is_refused(void **state)
{
    static const struct {
        const char *method;
        const char *target;
        struct dv_rest_field field;
        const char *token;
        const char *text;
    } cases[] = {
        {"",      "/",          {DV_STR_INIT("A"), DV_STR_INIT("b")},      "t",    "method"      },
        {"GE T",  "/",          {DV_STR_INIT("A"), DV_STR_INIT("b")},      "t",    "method"      },
        {"G\r\n", "/",          {DV_STR_INIT("A"), DV_STR_INIT("b")},      "t",    "method"      },
        {"GET",   "",           {DV_STR_INIT("A"), DV_STR_INIT("b")},      "t",    "target"      },
        {"GET",   "@evil/",     {DV_STR_INIT("A"), DV_STR_INIT("b")},      "t",    "target"      },
        {"GET",   "/a b",       {DV_STR_INIT("A"), DV_STR_INIT("b")},      "t",    "target"      },
        {"GET",   "/a\r\nB: c", {DV_STR_INIT("A"), DV_STR_INIT("b")},      "t",    "target"      },
        {"GET",   "/\xc3\xa4",  {DV_STR_INIT("A"), DV_STR_INIT("b")},      "t",    "target"      },
        {"GET",   "/#a",        {DV_STR_INIT("A"), DV_STR_INIT("b")},      "t",    "target"      },
        {"GET",   "/",          {DV_STR_INIT(""), DV_STR_INIT("b")},       "t",    "field \"\""  },
        {"GET",   "/",          {DV_STR_INIT("A:"), DV_STR_INIT("b")},     "t",    "field \"A:\""},
        {"GET",   "/",          {DV_STR_INIT("A"), DV_STR_INIT("b\r\nc")}, "t",    "field \"A\"" },
        {"GET",   "/",          {DV_STR_INIT("A"), DV_STR_INIT("b\0c")},   "t",    "field \"A\"" },
        {"GET",   "/",          {DV_STR_INIT("A"), DV_STR_INIT("b")},      "t\nu", "bearer token"},
    };
    struct fixture *fixture = *state;
    struct asker asker = {0};

    serve(fixture, &asker);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct ask ask;

        dv_rest_client_set_token(asker.client, dv_str_from_c(cases[i].token));
        ask_init(&ask, &asker, cases[i].method, cases[i].target);
        ask.fetch.fields = &cases[i].field;
        ask.fetch.n_fields = 1;
        ask_start(&ask);
        ask_wait(&ask);
        assert_err(&ask.err, DV_INVALID_ARGUMENT, cases[i].text);
        ask_fini(&ask);
    }
    asker_close(&asker);
    wait_connections(fixture, 0);
    assert_null(strstr(dv_buf_c(&fixture->log), "call started"));
}

/* ---- no connection ---- */

static void nobody_there_is_said_with_the_url(void **state)
{
    static const struct {
        const char *url;
        const char *text;
    } cases[] = {
        {"http://127.0.0.1:1",          "GET http://127.0.0.1:1/x: Failed to connect"      },
        {"https://127.0.0.1:1/base/",   "GET https://127.0.0.1:1/base/x: Failed to connect"},
        {"http://[::1]:1",              "GET http://[::1]:1/x: "                           },
        {"http://no.such.host.invalid", "Could not resolve host: no.such.host.invalid"     },
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct asker asker = {.options.base_url = dv_str_from_c(cases[i].url)};
        struct ask ask;

        asker_open(&asker, fixture);
        ask_init(&ask, &asker, "GET", "/x?y");
        ask_start(&ask);
        ask_wait(&ask);
        assert_err(&ask.err, DV_UNAVAILABLE, cases[i].text);
        ask_fini(&ask);
        asker_close(&asker);
    }
}

static void a_missing_unix_socket_is_nobody_there(void **state)
{
    struct fixture *fixture = *state;
    struct asker asker = {.options.base_url = DV_STR("http://localhost"),
                          .options.socket_path = DV_STR("/nonexistent/socket")};
    struct ask ask;

    asker_open(&asker, fixture);
    ask_init(&ask, &asker, "GET", "/x");
    ask_start(&ask);
    ask_wait(&ask);
    assert_int_equal(ask.err.code, DV_UNAVAILABLE);
    ask_fini(&ask);
    asker_close(&asker);
}

static void a_handshake_that_does_not_end_has_its_time(void **state)
{
    static const struct {
        uint64_t connect_ms;
        uint64_t deadline_ms;
        uint64_t idle_ms;
        enum dv_code code;
        const char *text;
    } cases[] = {
        {0,    0,     60000, DV_UNAVAILABLE,       "not connected in 10000 ms"        },
        {3000, 60000, 0,     DV_UNAVAILABLE,       "not connected in 3000 ms"         },
        {3000, 2000,  0,     DV_DEADLINE_EXCEEDED, "not connected before the deadline"},
        {3000, 0,     2000,  DV_DEADLINE_EXCEEDED, "nothing has come for 2000 ms"     },
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct asker asker = {.options.connect_timeout_ms = cases[i].connect_ms};
        int fd = listen_deaf(fixture, &asker, "https");
        uint64_t now_ms = dv_loop_now_ms(fixture->loop);
        struct ask ask;

        ask_init(&ask, &asker, "GET", "/x");
        ask.fetch.deadline_ms = cases[i].deadline_ms ? now_ms + cases[i].deadline_ms : 0;
        ask.fetch.idle_ms = cases[i].idle_ms;
        ask_start(&ask);
        settle(fixture);
        advance(fixture, 1999);
        assert_int_equal(ask.n_done, 0);
        advance(fixture, 8001);
        ask_wait(&ask);
        assert_err(&ask.err, cases[i].code, cases[i].text);
        ask_fini(&ask);
        asker_close(&asker);
        (void)close(fd);
    }
}

static void who_waits_for_a_connection_may_stop_waiting(void **state)
{
    struct fixture *fixture = *state;
    struct asker asker = {.options.connections_max = 1};
    struct ask holder;
    struct ask asks[4];

    serve(fixture, &asker);
    ask_init(&holder, &asker, "GET", "/hold");
    ask_start(&holder);
    wait_count(fixture, &fixture->n_held, 1);
    for (size_t i = 0; i < DV_COUNT(asks); i++) {
        ask_init(&asks[i], &asker, "GET", "/nowhere");
        asks[i].fetch.deadline_ms = dv_loop_now_ms(fixture->loop) + 1000 * (i + 1);
        ask_start(&asks[i]);
    }
    settle(fixture);
    advance(fixture, 1000);
    ask_wait(&asks[0]);
    assert_err(&asks[0].err, DV_DEADLINE_EXCEEDED, "no connection was free before the deadline");
    dv_rest_fetch_cancel(&asks[1].fetch);
    ask_wait(&asks[1]);
    assert_int_equal(asks[1].err.code, DV_CANCELLED);
    assert_int_equal(asks[2].n_done, 0);
    dv_rest_fetch_cancel(&holder.fetch); /* makes room */
    ask_wait(&holder);
    for (size_t i = 2; i < DV_COUNT(asks); i++) {
        ask_wait(&asks[i]);
        assert_int_equal(asks[i].err.code, DV_OK);
        assert_int_equal(asks[i].status, 404);
    }
    dv_rest_call_reply(fixture->held, 200, DV_STR("too late"));
    fixture->held = NULL;
    ask_fini(&holder);
    for (size_t i = 0; i < DV_COUNT(asks); i++)
        ask_fini(&asks[i]);
    asker_close(&asker);
}

/* ---- cancelled, at every stage ---- */

static void cancel_it(struct ask *ask)
{
    dv_rest_fetch_cancel(&ask->fetch);
    dv_rest_fetch_cancel(&ask->fetch); /* idempotent */
    assert_int_equal(ask->n_done, 0);
}

static void close_client(struct ask *ask)
{
    dv_rest_client_close(ask->asker->client, NULL, NULL);
    ask->asker->client = NULL;
    assert_int_equal(ask->n_done, 0);
}

static void do_nothing(struct ask *ask)
{
    (void)ask;
}

enum stage {
    STARTED,   /* libcurl has not seen it */
    SHAKING,   /* of TLS only */
    HELD,      /* the request is there, no answer */
    STREAMING, /* between two parts */
    IN_PART,
    N_STAGES,
};

static void bring_to(struct ask *ask, enum stage stage, void (*end)(struct ask *ask))
{
    struct fixture *fixture = ask->asker->fixture;
    int n_held = fixture->n_held;
    int n_streams = fixture->n_streams;
    struct dv_err err;

    ask_stream(ask);
    ask->fetch.target = stage == HELD ? DV_STR("/hold") : DV_STR("/stream");
    if (stage == IN_PART)
        ask->on_part = end;
    ask_start(ask);
    if (stage == SHAKING) /* somewhere in it */
        wait_connections(fixture, 1);
    if (stage <= SHAKING)
        return;
    if (stage == HELD) {
        wait_count(fixture, &fixture->n_held, n_held + 1);
        return;
    }
    wait_count(fixture, &fixture->n_streams, n_streams + 1);
    assert_ok(dv_rest_stream_send(&fixture->stream, DV_STR("part"), &err), &err);
    wait_count(fixture, &ask->n_parts, 1);
    settle(fixture);
}

/* Lets the server forget what the client has broken off. */
static void clean_up(struct fixture *fixture)
{
    settle(fixture);
    if (fixture->held)
        dv_rest_call_reply(fixture->held, 200, DV_STR(""));
    fixture->held = NULL;
    wait_connections(fixture, 0);
    wait_count(fixture, &fixture->n_ended, fixture->n_streams);
}

static void a_fetch_may_end_at_every_stage(void **state, void (*end)(struct ask *ask),
                                           const char *text)
{
    struct fixture *fixture = *state;

    fixture_serve(fixture);
    for (int stage = 0; stage < N_STAGES; stage++) {
        struct asker asker = {0};
        struct ask ask;

        asker_open(&asker, fixture);
        ask_init(&ask, &asker, "GET", "");
        bring_to(&ask, (enum stage)stage, end);
        if (stage != IN_PART)
            end(&ask);
        ask_wait(&ask);
        assert_err(&ask.err, DV_CANCELLED, text);
        assert_int_equal(ask.n_parts, stage == STREAMING || stage == IN_PART);
        if (asker.client)
            asker_close(&asker);
        ask_fini(&ask);
        clean_up(fixture);
    }
}

static void a_fetch_may_be_cancelled_at_every_stage(void **state)
{
    a_fetch_may_end_at_every_stage(state, cancel_it, ": cancelled");
}

static void a_client_may_be_closed_at_every_stage(void **state)
{
    a_fetch_may_end_at_every_stage(state, close_client, ": the client was closed");
}

static struct ask second;

static void start_second(struct ask *ask)
{
    ask->on_part = do_nothing;
    ask_start(&second);
}

static void a_fetch_may_be_started_from_within_another(void **state)
{
    struct fixture *fixture = *state;

    for (int is_part = 0; is_part < 2; is_part++) {
        struct asker asker = {0};
        struct ask ask;

        serve(fixture, &asker);
        ask_init(&second, &asker, "GET", "/nowhere");
        ask_init(&ask, &asker, "POST", "/echo");
        ask_stream(&ask);
        ask.fetch.body = DV_STR("x");
        if (is_part)
            ask.on_part = start_second;
        else
            ask.on_done = start_second;
        ask_start(&ask);
        ask_wait(&ask);
        ask_wait(&second);
        assert_int_equal(second.status, 404);
        ask_fini(&ask);
        ask_fini(&second);
        asker_close(&asker);
        fixture_close(fixture, 0);
        wait_count(fixture, &fixture->n_closed, is_part + 1);
    }
}

static void close_in_done(struct ask *ask)
{
    dv_rest_client_close(ask->asker->client, NULL, NULL);
}

static void a_client_may_be_closed_from_within_an_end(void **state)
{
    struct fixture *fixture = *state;
    struct asker asker = {0};
    struct ask asks[3];

    serve(fixture, &asker);
    for (size_t i = 0; i < DV_COUNT(asks); i++) {
        static const char *const targets[] = {"/nowhere", "/hold", "/stream"};

        ask_init(&asks[i], &asker, "GET", targets[i]);
        ask_start(&asks[i]);
    }
    asks[0].on_done = close_in_done;
    for (size_t i = 0; i < DV_COUNT(asks); i++) {
        ask_wait(&asks[i]);
        assert_int_equal(asks[i].err.code, i == 0 ? DV_OK : DV_CANCELLED);
        ask_fini(&asks[i]);
    }
    clean_up(fixture);
}

static void a_stream_that_the_server_breaks_off_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct asker asker = {0};
    struct ask ask;

    serve(fixture, &asker);
    ask_init(&ask, &asker, "GET", "");
    bring_to(&ask, STREAMING, do_nothing);
    dv_rest_stream_cancel(&fixture->stream);
    ask_wait(&ask);
    assert_int_equal(ask.err.code, DV_UNAVAILABLE);
    assert_int_equal(ask.status, 200);
    ask_fini(&ask);
    asker_close(&asker);
}

#define TLS_TEST(name)                                                                             \
    {                                                                                              \
#name "_under_tls", name, start_tls, fixture_end, NULL                                     \
    }
#define PLAIN_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS_TEST(bad_options_do_not_open),
        PLAIN_TEST(what_cannot_be_sent_is_refused),
        PLAIN_TEST(nobody_there_is_said_with_the_url),
        PLAIN_TEST(a_missing_unix_socket_is_nobody_there),
        TLS_TEST(a_handshake_that_does_not_end_has_its_time),
        PLAIN_TEST(who_waits_for_a_connection_may_stop_waiting),
        PLAIN_TEST(a_fetch_may_be_cancelled_at_every_stage),
        TLS_TEST(a_fetch_may_be_cancelled_at_every_stage),
        PLAIN_TEST(a_client_may_be_closed_at_every_stage),
        TLS_TEST(a_client_may_be_closed_at_every_stage),
        PLAIN_TEST(a_fetch_may_be_started_from_within_another),
        PLAIN_TEST(a_client_may_be_closed_from_within_an_end),
        PLAIN_TEST(a_stream_that_the_server_breaks_off_is_an_error),
        TLS_TEST(a_stream_that_the_server_breaks_off_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rest/tests/test_fetch.h"
#include "rest/tests/test_rest_fixture.h"

/* Every test runs twice: plain, and under TLS. */
static void serve(struct fixture *fixture, struct asker *asker)
{
    *asker = (struct asker){0};
    fixture_serve(fixture);
    asker_open(asker, fixture);
}

static int start_tls(void **state)
{
    int status = fixture_start(state);

    fixture_certify(*state);
    return status;
}

static void requests_are_answered(void **state)
{
    static const struct {
        const char *method;
        const char *target;
        const char *body;
        unsigned status;
        const char *answer;
    } cases[] = {
        {"POST",    "/echo",        "hello", 200, "hello"       },
        {"PUT",     "/echo",        "hello", 200, "hello"       },
        {"PATCH",   "/echo",        "",      200, ""            },
        {"DELETE",  "/echo",        "why",   200, "why"         },
        {"GET",     "/echo",        "",      200, ""            },
        {"GET",     "/nowhere",     "",      404, "nothing here"},
        {"HEAD",    "/nowhere",     "",      404, ""            },
        {"OPTIONS", "/nowhere",     "",      404, "nothing here"},
        {"DELETE",  "/nowhere?a=b", "",      404, "nothing here"},
        {"GET",     "/a/../echo",   "",      404, "nothing here"},
    };
    struct fixture *fixture = *state;
    struct asker asker;

    serve(fixture, &asker);
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < DV_COUNT(cases); i++)
            ask_expect(&asker, cases[i].method, cases[i].target, cases[i].body, cases[i].status,
                       cases[i].answer);
    assert_int_equal(dv_rest_server_n_connections(fixture->server), 1); /* kept, used again */
    asker_close(&asker);
    wait_connections(fixture, 0);
    assert_int_equal(fixture->complaints.n, 0);
    assert_non_null(strstr(dv_buf_c(&fixture->log), "rest: fetch started request="));
    assert_non_null(strstr(dv_buf_c(&fixture->log), "rest: fetch ended request="));
}

static void fields_go_both_ways(void **state)
{
    static const struct dv_rest_field fields[] = {
        {DV_STR_INIT("Accept"),       DV_STR_INIT("application/json;as=Table")},
        {DV_STR_INIT("X-Empty"),      DV_STR_INIT("")                         },
        {DV_STR_INIT("Content-Type"), DV_STR_INIT("application/json")         },
    };
    struct fixture *fixture = *state;
    struct asker asker = {0};
    struct ask ask;

    asker.options.user_agent = DV_STR("test/1");
    fixture_serve(fixture);
    asker_open(&asker, fixture);
    ask_init(&ask, &asker, "POST", "/show/a%20b?x=%26");
    ask.fetch.fields = fields;
    ask.fetch.n_fields = DV_COUNT(fields);
    ask.fetch.body = DV_STR("12345");
    ask_start(&ask);
    ask_wait(&ask);
    assert_int_equal(ask.status, 200);
    assert_non_null(strstr(dv_buf_c(&ask.body), "POST [show] [a b] x=& Host:127.0.0.1:"));
    assert_non_null(strstr(dv_buf_c(&ask.body), " User-Agent:test/1 "));
    assert_non_null(strstr(dv_buf_c(&ask.body), " Accept:application/json;as=Table "));
    assert_non_null(strstr(dv_buf_c(&ask.body), " X-Empty: "));
    assert_non_null(strstr(dv_buf_c(&ask.body), " Content-Type:application/json "));
    assert_null(strstr(dv_buf_c(&ask.body), "Expect"));
    assert_null(strstr(dv_buf_c(&ask.body), "Authorization"));
    assert_null(strstr(dv_buf_c(&ask.body), "Accept-Encoding"));
    assert_non_null(strstr(dv_buf_c(&ask.fields), "X-Id: 7\n"));
    ask_fini(&ask);
    asker_close(&asker);
}

static void check_field(struct ask *ask)
{
    assert_str(dv_rest_fetch_field(&ask->fetch, DV_STR("x-ID")), "7");
    assert_str(dv_rest_fetch_field(&ask->fetch, DV_STR("absent")), "");
}

static void a_token_is_set_and_taken_back(void **state)
{
    static const struct dv_rest_field own = {DV_STR_INIT("authorization"), DV_STR_INIT("Basic x")};
    struct fixture *fixture = *state;
    struct asker asker;

    serve(fixture, &asker);
    for (int i = 0; i < 4; i++) {
        static const char *const expected[] = {" Authorization:Bearer one ",
                                               " Authorization:Bearer two ",
                                               " authorization:Basic x ", NULL};
        static const char *const tokens[] = {"one", "two", "two", ""};
        struct ask ask;

        dv_rest_client_set_token(asker.client, dv_str_from_c(tokens[i]));
        ask_init(&ask, &asker, "GET", "/show");
        ask.fetch.fields = &own;
        ask.fetch.n_fields = i == 2;
        ask.on_done = check_field;
        ask_start(&ask);
        ask_wait(&ask);
        if (expected[i])
            assert_non_null(strstr(dv_buf_c(&ask.body), expected[i]));
        else
            assert_null(strstr(dv_buf_c(&ask.body), "uthorization"));
        assert_null(strstr(dv_buf_c(&ask.body), i == 1 ? "one" : "two one"));
        ask_fini(&ask);
    }
    assert_int_equal(dv_rest_server_n_connections(fixture->server), 1);
    assert_null(strstr(dv_buf_c(&fixture->log), "Bearer"));
    asker_close(&asker);
}

static void many_fetches_share_a_few_connections(void **state)
{
    struct fixture *fixture = *state;
    struct asker asker = {0};
    struct ask asks[100];

    asker.options.connections_max = 4;
    fixture_serve(fixture);
    asker_open(&asker, fixture);
    for (size_t i = 0; i < DV_COUNT(asks); i++) {
        ask_init(&asks[i], &asker, "POST", "/echo");
        asks[i].fetch.body = dv_str_printf(fixture->arena, "body %zu", i);
        ask_start(&asks[i]);
    }
    for (size_t i = 0; i < DV_COUNT(asks); i++) {
        ask_wait(&asks[i]);
        assert_int_equal(asks[i].err.code, DV_OK);
        assert_true(dv_str_eq(dv_buf_str(&asks[i].body), asks[i].fetch.body));
        ask_fini(&asks[i]);
    }
    assert_true(dv_rest_server_n_connections(fixture->server) <= 4);
    asker_close(&asker);
}

static void large_bodies_go_both_ways(void **state)
{
    struct fixture *fixture = *state;
    struct asker asker;
    struct ask ask;
    struct dv_buf body;

    fixture->options.body_bytes_max = 20u << 20;
    serve(fixture, &asker);
    dv_buf_init(&body, 32u << 20);
    for (size_t i = 0; i < 20u << 20; i++)
        dv_buf_add_char(&body, (char)('a' + i % 23));
    ask_init(&ask, &asker, "PUT", "/echo");
    ask.fetch.body = dv_buf_str(&body);
    ask_start(&ask);
    ask_wait(&ask);
    assert_int_equal(ask.err.code, DV_OK);
    assert_int_equal(ask.status, 200);
    assert_true(dv_str_eq(dv_buf_str(&ask.body), dv_buf_str(&body)));
    ask_fini(&ask);
    /* Refused while it is on its way: it hears why. */
    dv_buf_add_char(&body, 'x');
    ask_init(&ask, &asker, "PUT", "/echo");
    ask.fetch.body = dv_buf_str(&body);
    ask_start(&ask);
    ask_wait(&ask);
    if (ask.err.code == DV_OK) /* else it was cut off first, being larger than is still read */
        assert_int_equal(ask.status, 413);
    else
        assert_int_equal(ask.err.code, DV_UNAVAILABLE);
    ask_fini(&ask);
    dv_buf_fini(&body);
    asker_close(&asker);
}

static void begin_stream(struct ask *ask, struct asker *asker)
{
    struct fixture *fixture = asker->fixture;
    int n_before = fixture->n_streams;

    ask_init(ask, asker, "GET", "/stream");
    ask_stream(ask);
    ask_start(ask);
    wait_count(fixture, &fixture->n_streams, n_before + 1);
}

static void send_text(struct fixture *fixture, const char *text)
{
    struct dv_err err;

    assert_ok(dv_rest_stream_send(&fixture->stream, dv_str_from_c(text), &err), &err);
}

static void a_stream_comes_as_it_is_sent(void **state)
{
    struct fixture *fixture = *state;
    struct asker asker;
    struct ask ask;

    serve(fixture, &asker);
    begin_stream(&ask, &asker);
    assert_true(is_asleep(fixture));
    for (int i = 0; i < 20; i++) {
        char text[32];

        (void)snprintf(text, sizeof(text), "event %d\n", i);
        send_text(fixture, text);
        ask_wait_for(&ask, text);
        assert_int_equal(ask.fetch.status, 200);
        advance(fixture, 59999); /* it may be quiet for a while */
        assert_int_equal(ask.n_done, 0);
    }
    dv_rest_stream_finish(&fixture->stream);
    ask_wait(&ask);
    assert_int_equal(ask.err.code, DV_OK);
    assert_int_equal(ask.n_parts, 20);
    ask_fini(&ask);
    asker_close(&asker);
}

static int n_heads;

static void on_head(struct dv_rest_fetch *fetch)
{
    assert_int_equal(fetch->status, 200);
    n_heads++;
}

static void the_header_is_told_before_a_body_comes(void **state)
{
    struct fixture *fixture = *state;
    struct asker asker;
    struct ask ask;

    serve(fixture, &asker);
    n_heads = 0;
    ask_init(&ask, &asker, "GET", "/stream");
    ask_stream(&ask);
    ask.fetch.on_head = on_head;
    ask_start(&ask);
    wait_count(fixture, &n_heads, 1);
    assert_int_equal(ask.n_parts, 0);
    send_text(fixture, "now");
    dv_rest_stream_finish(&fixture->stream);
    ask_wait(&ask);
    assert_str(dv_buf_str(&ask.body), "now");
    assert_int_equal(n_heads, 1);
    ask_fini(&ask);
    asker_close(&asker);
}

static void pause_now(struct ask *ask)
{
    dv_rest_fetch_pause(&ask->fetch, true);
}

/* What the kernel and libcurl hold for one that does not read is far less. */
#define LONG_BYTES (16u << 20)

static void send_more(struct fixture *fixture)
{
    static char bytes[65536];
    struct dv_err err;

    memset(bytes, 'x', sizeof(bytes));
    if (fixture->n_rooms > (int)(LONG_BYTES / sizeof(bytes)))
        dv_rest_stream_finish(&fixture->stream);
    else
        assert_ok(dv_rest_stream_send(&fixture->stream, (dv_str){bytes, sizeof(bytes)}, &err),
                  &err);
}

static void who_is_paused_gets_nothing_and_the_server_is_held_up(void **state)
{
    struct fixture *fixture = *state;
    struct asker asker;
    struct ask ask;
    int n_parts;

    serve(fixture, &asker);
    fixture->on_room = send_more;
    begin_stream(&ask, &asker);
    ask.on_part = pause_now;
    send_text(fixture, "x");
    wait_count(fixture, &ask.n_parts, 1);
    assert_true(is_asleep(fixture));
    assert_int_equal(ask.n_parts, 1);
    assert_true(fixture->n_rooms < (int)(LONG_BYTES / 65536));
    n_parts = ask.n_parts;
    dv_rest_fetch_pause(&ask.fetch, false);
    assert_int_equal(ask.n_parts, n_parts); /* not from within */
    wait_count(fixture, &ask.n_parts, n_parts + 1);
    ask.on_part = NULL;
    dv_rest_fetch_pause(&ask.fetch, false);
    ask_wait(&ask);
    assert_int_equal(ask.err.code, DV_OK);
    assert_true(ask.body.n > LONG_BYTES);
    ask_fini(&ask);
    asker_close(&asker);
}

static void one_that_is_paused_can_be_cancelled(void **state)
{
    struct fixture *fixture = *state;
    struct asker asker;
    struct ask ask;

    serve(fixture, &asker);
    fixture->on_room = send_more;
    begin_stream(&ask, &asker);
    ask.on_part = pause_now;
    send_text(fixture, "x");
    wait_count(fixture, &ask.n_parts, 1);
    assert_true(is_asleep(fixture));
    dv_rest_fetch_pause(&ask.fetch, false);
    dv_rest_fetch_cancel(&ask.fetch);
    ask_wait(&ask);
    assert_int_equal(ask.err.code, DV_CANCELLED);
    assert_int_equal(ask.n_parts, 1);
    ask_fini(&ask);
    asker_close(&asker);
}

/* ---- places ---- */

/* The server is who the URL says, wherever it is. */
static void a_fetch_goes_where_it_is_told(void **state)
{
    static const struct {
        const char *host; /* of the URL */
        const char *fault;
    } rows[] = {
        {"localhost:1",          NULL            },
        {"elsewhere.example:99", "does not match"},
    };
    struct fixture *fixture = *state;

    fixture_serve(fixture);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const char *scheme = fixture->options.tls ? "https" : "http";
        bool is_refused = fixture->options.tls && rows[i].fault;
        struct asker asker = {.options.ca = fixture->ca.cert};
        struct ask ask;

        asker.options.base_url = dv_str_printf(fixture->arena, "%s://%s", scheme, rows[i].host);
        asker_open(&asker, fixture);
        for (int round = 0; round < 2; round++) {
            ask_init(&ask, &asker, "POST", "/echo");
            ask.fetch.body = DV_STR("to it");
            ask.fetch.connect_to =
                dv_str_printf(fixture->arena, "127.0.0.1:%u", (unsigned)fixture->port);
            ask_start(&ask);
            ask_wait(&ask);
            if (is_refused)
                assert_err(&ask.err, DV_UNAUTHENTICATED, rows[i].fault);
            else
                assert_ok(ask.err.code == DV_OK, &ask.err);
            if (!is_refused)
                assert_str(dv_buf_str(&ask.body), "to it");
            ask_fini(&ask);
        }
        asker_close(&asker);
    }
}

/* ---- pins ---- */

static void a_server_is_known_by_its_key(void **state)
{
    struct fixture *fixture = *state;
    struct dv_rest_cert other = fixture_cert(fixture, NULL, "ca", NULL, 0);
    struct asker asker = {.options.ca = other.cert}; /* which does not matter */
    struct dv_err err;
    struct ask ask;

    fixture_serve(fixture);
    assert_ok(dv_rest_cert_pin(fixture->tls.cert, fixture->arena, &asker.options.key_pin, &err),
              &err);
    asker_open(&asker, fixture);
    ask_expect(&asker, "POST", "/echo", "to it", 200, "to it");
    asker_close(&asker);
    asker = (struct asker){.options.ca = fixture->ca.cert};
    assert_ok(dv_rest_cert_pin(other.cert, fixture->arena, &asker.options.key_pin, &err), &err);
    asker_open(&asker, fixture);
    ask_init(&ask, &asker, "GET", "/echo");
    ask_start(&ask);
    ask_wait(&ask);
    assert_err(&ask.err, DV_UNAUTHENTICATED, "another key");
    ask_fini(&ask);
    asker_close(&asker);
}

static void what_is_no_pin_is_refused(void **state)
{
    static const char *const pins[] = {
        "x",
        "sha256//",
        "sha256//AAAA",
        "sha1//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=;sha256//AAAAAAAAAAAAAAAAAAAAAAA=",
        "/etc/passwd",
    };
    struct fixture *fixture = *state;
    struct dv_err err;

    for (size_t i = 0; i < DV_COUNT(pins); i++) {
        const struct dv_rest_client_options options = {.base_url = DV_STR("https://127.0.0.1:1"),
                                                       .key_pin = dv_str_from_c(pins[i])};

        assert_null(dv_rest_client_open(fixture->loop, &options, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, "is no pin of a key");
    }
}

static void the_body_of_a_refusal_is_not_taken_for_the_stream(void **state)
{
    struct fixture *fixture = *state;
    struct asker asker;
    struct ask ask;

    serve(fixture, &asker);
    ask_init(&ask, &asker, "GET", "/nowhere");
    ask_stream(&ask);
    ask_start(&ask);
    ask_wait(&ask);
    assert_int_equal(ask.err.code, DV_OK);
    assert_int_equal(ask.status, 404);
    assert_int_equal(ask.n_parts, 0);
    assert_str(dv_buf_str(&ask.body), "nothing here");
    ask_fini(&ask);
    asker_close(&asker);
}

static void a_unix_socket_is_asked_as_well(void **state)
{
    struct fixture *fixture = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char dir[] = "/tmp/dv_rest_XXXXXX";
    struct asker asker = {0};
    struct dv_err err;
    int fd;

    assert_non_null(mkdtemp(dir));
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", dir);
    fixture_serve(fixture); /* sets the options */
    fixture_close(fixture, 0);
    wait_count(fixture, &fixture->n_closed, 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 10), 0);
    fixture->server = dv_rest_server_open_fd(fixture->loop, fd, &fixture->options, &err);
    assert_non_null(fixture->server);
    asker.options.base_url =
        fixture->options.tls ? DV_STR("https://localhost/echo") : DV_STR("http://localhost//");
    asker.options.socket_path = dv_str_from_c(address.sun_path);
    asker_open(&asker, fixture);
    if (fixture->options.tls) /* the base may have a path */
        ask_expect(&asker, "GET", "/x", "", 404, "nothing here");
    else
        ask_expect(&asker, "POST", "/echo", "over a file", 200, "over a file");
    asker_close(&asker);
    (void)unlink(address.sun_path);
    (void)rmdir(dir);
}

static void a_client_shows_its_certificate(void **state)
{
    static const dv_str groups[] = {DV_STR_INIT("system:nodes"), DV_STR_INIT("others")};
    struct fixture *fixture = *state;
    struct dv_rest_cert cert;
    struct asker asker = {0};

    cert = fixture_cert(fixture, &fixture->ca, "system:node:n1", groups, 0);
    asker.options.cert = cert.cert;
    asker.options.key = cert.key;
    fixture_serve(fixture);
    asker_open(&asker, fixture);
    for (int i = 0; i < 3; i++)
        ask_expect(&asker, "GET", "/who", "", 200, "system:node:n1 [system:nodes] [others]\n");
    asker_close(&asker);
}

#define TLS_TEST(name)                                                                             \
    {                                                                                              \
#name "_under_tls", name, start_tls, fixture_end, NULL                                     \
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_end), TLS_TEST(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_fetch_goes_where_it_is_told),
        TEST(requests_are_answered),
        TEST(fields_go_both_ways),
        TEST(a_token_is_set_and_taken_back),
        TEST(many_fetches_share_a_few_connections),
        TEST(large_bodies_go_both_ways),
        TEST(a_stream_comes_as_it_is_sent),
        TEST(the_header_is_told_before_a_body_comes),
        TEST(who_is_paused_gets_nothing_and_the_server_is_held_up),
        TEST(one_that_is_paused_can_be_cancelled),
        TLS_TEST(a_server_is_known_by_its_key),
        cmocka_unit_test_setup_teardown(what_is_no_pin_is_refused, fixture_start, fixture_end),
        TEST(the_body_of_a_refusal_is_not_taken_for_the_stream),
        TEST(a_unix_socket_is_asked_as_well),
        TLS_TEST(a_client_shows_its_certificate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

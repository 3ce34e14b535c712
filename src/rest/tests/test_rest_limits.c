#include "support/dvtest.h"

#include <stdlib.h>
#include <string.h>

#include "loop/loop.h"
#include "rest/tests/test_rest_fixture.h"

static void large_bodies_are_refused_and_not_kept(void **state)
{
    static const struct {
        const char *header;
        size_t n_bytes; /* that are sent after it */
        bool stays_open;
    } cases[] = {
        {"Content-Length: 1001\r\n",                1001,    true },
        {"Content-Length: 9000000\r\n",             9000000, true },
        {"Content-Length: 99000000\r\n",            0,       false},
        {"Content-Length: 9223372036854775807\r\n", 0,       false},
    };
    struct fixture *fixture = *state;
    struct client client;
    char *bytes = calloc(1, 9000000);

    fixture->options.body_bytes_max = 1000;
    fixture_serve(fixture);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        client_open(&client, fixture);
        client_send(&client, "POST /echo HTTP/1.1\r\nHost: h\r\n");
        client_send(&client, cases[i].header);
        client_send(&client, "\r\n");
        client_send_n(&client, (dv_str){bytes, cases[i].n_bytes});
        client_expect_answer(&client, 413, "the body is larger than 1000 bytes\n");
        if (cases[i].stays_open) {
            client_send(&client, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
            client_expect_answer(&client, 200, "hi");
        } else {
            client_expect_closed(&client);
        }
        client_close(&client);
    }
    wait_complaint(fixture, "RESOURCE_EXHAUSTED the body is larger than 1000 bytes;");
    client_open(&client, fixture);
    client_send(&client, "POST /echo HTTP/1.1\r\nHost: h\r\n"
                         "Content-Length: 18446744073709551615\r\n\r\n");
    client_expect(&client, "HTTP/1.1 413 ");
    client_expect_closed(&client);
    client_close(&client);
    free(bytes);
}

static void large_chunked_bodies_are_refused_and_cut_off(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    struct dv_buf chunk;

    fixture->options.body_bytes_max = 1000;
    fixture_serve(fixture);
    client_open(&client, fixture);
    dv_buf_init(&chunk, 1u << 20);
    dv_buf_printf(&chunk, "10000\r\n%065536d\r\n", 0);
    client_send(&client, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    client_send_n(&client, dv_buf_str(&chunk));
    client_send(&client, "0\r\n\r\n");
    client_expect_answer(&client, 413, "the body is larger than 1000 bytes\n");
    client_send(&client, "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 400 && !client.is_closed; i++) /* 25 MiB: nobody listens so long */
        client_send_n(&client, dv_buf_str(&chunk));
    client_expect_closed(&client);
    dv_buf_fini(&chunk);
    client_close(&client);
}

static void all_bodies_together_have_a_limit(void **state)
{
    struct fixture *fixture = *state;
    struct client holder;
    struct client client;

    fixture->options.bodies_bytes_max = 1000;
    fixture_serve(fixture);
    client_open(&holder, fixture);
    client_open(&client, fixture);
    client_send(&holder, "POST /hold HTTP/1.1\r\nHost: h\r\nContent-Length: 600\r\n\r\n");
    client_send_n(&holder, (dv_str){(const char[600]){0}, 600});
    wait_count(fixture, &fixture->n_held, 1);
    client_send(&client, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 401\r\n\r\n");
    client_send_n(&client, (dv_str){(const char[401]){0}, 401});
    client_expect(&client, "HTTP/1.1 503 ");
    client_expect(&client, "Retry-After: 1\r\n");
    client_expect(&client, "too many large requests at once\n");
    dv_rest_call_reply(fixture->held, 200, DV_STR("ok"));
    fixture->held = NULL;
    client_expect_answer(&holder, 200, "ok");
    client_send(&client, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
    client_send_n(&client, (dv_str){(const char[1000]){0}, 1000});
    client_expect(&client, "HTTP/1.1 200 ");
    client_close(&holder);
    client_close(&client);
}

/* ---- headers ---- */

static void add_long_field(struct dv_buf *text, int n)
{
    dv_buf_printf(text, "GET /nowhere HTTP/1.1\r\nHost: h\r\nX-Long: %0*d\r\n\r\n", n, 0);
}

static void add_many_fields(struct dv_buf *text, int n)
{
    dv_buf_add(text, DV_STR("GET /nowhere HTTP/1.1\r\nHost: h\r\n"));
    for (int i = 0; i < n / 6; i++)
        dv_buf_add(text, DV_STR("a: b\r\n"));
    dv_buf_add(text, DV_STR("\r\n"));
}

static void add_long_field_and_more_requests(struct dv_buf *text, int n)
{
    add_long_field(text, n);
    for (int i = 0; i < 400; i++)
        dv_buf_add(text, DV_STR("GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n"));
}

static void add_long_query(struct dv_buf *text, int n)
{
    dv_buf_printf(text, "GET /nowhere?%0*d HTTP/1.1\r\nHost: h\r\n\r\n", n, 0);
}

static void add_many_arguments(struct dv_buf *text, int n)
{
    dv_buf_add(text, DV_STR("GET /nowhere?a=b"));
    for (int i = 0; i < n / 2; i++)
        dv_buf_add(text, DV_STR("&a"));
    dv_buf_add(text, DV_STR(" HTTP/1.1\r\nHost: h\r\n\r\n"));
}

static bool is_over(void *ctx)
{
    const struct client *client = ctx;

    return client->is_closed || client->got.n > 12;
}

/* Whatever the size of a header, there is an answer: its own, or that it is too large. */
static void headers_have_a_limit(void **state)
{
    static const struct {
        void (*add)(struct dv_buf *text, int n);
        const char *too_large;
        int good_max; /* bytes */
    } kinds[] = {
        {add_long_field,                   "431", 12200},
        {add_many_fields,                  "431", 1200 },
        {add_long_field_and_more_requests, "431", 12200},
        {add_long_query,                   "414", 12200},
        {add_many_arguments,               "414", 12200},
    };
    struct fixture *fixture = *state;
    struct dv_buf text;

    fixture_serve(fixture);
    dv_buf_init(&text, 1u << 20);
    for (size_t kind = 0; kind < DV_COUNT(kinds); kind++) {
        for (int n = 1000; n < 40000; n += 97 * (1 + n / 20000)) {
            struct client client;
            const char *want = n < kinds[kind].good_max - 300    ? "404"
                               : n > kinds[kind].good_max + 5000 ? kinds[kind].too_large
                                                                 : "4"; /* one of them */

            client_open(&client, fixture);
            dv_buf_clear(&text);
            kinds[kind].add(&text, n);
            client_send_n(&client, dv_buf_str(&text));
            assert_true(dv_loop_run_until(fixture->loop, is_over, &client, 10000));
            if (strncmp(dv_buf_c(&client.got) + 9, want, strlen(want)) != 0)
                fail_msg("kind %zu, %d bytes: %.40s", kind, n, dv_buf_c(&client.got));
            client_close(&client);
        }
    }
    dv_buf_fini(&text);
    wait_connections(fixture, 0);
    wait_complaint(fixture, "RESOURCE_EXHAUSTED the header is larger than 12288 bytes;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_bodies_are_refused_and_not_kept, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(large_chunked_bodies_are_refused_and_cut_off, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(all_bodies_together_have_a_limit, fixture_start,
                                        fixture_end),
        cmocka_unit_test_setup_teardown(headers_have_a_limit, fixture_start, fixture_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Calls that wait for a free stream. */
#include "support/dvtest.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>

#include "http2/http2.h"
#include "http2/session.h"
#include "http2/tests/test_side.h"
#include "http2/tests/test_wire.h"

#define RESPONSE ":status=200|content-type=application/grpc"
#define N_CALLS 1000u

static size_t n_live(const struct side *side)
{
    return side->n_begun - side->n_ended;
}

/* Messages are the calls' numbers: they come in the order of their start, a few at a time. */
static void check_order(struct side *side, struct dv_h2_call *call, dv_str message)
{
    char number[16];

    (void)snprintf(number, sizeof(number), "%zu", side->n_messages);
    assert_str(message, number);
    assert_true(n_live(side) <= *(const size_t *)side->test);
    side_echo(side, call, message);
}

static void a_thousand_calls_pass_through_few_streams_in_order(void **state)
{
    static const size_t limits[] = {1, 2, 10, 100, 5000};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(limits); i++) {
        struct dv_h2_options server = dv_h2_default_options(true);
        size_t limit = limits[i];
        struct pair pair;

        server.calls_max = (uint32_t)limit;
        pair_init(&pair, NULL, &server);
        pair.server.test = &limit;
        pair.server.on_message = check_order;
        for (unsigned n = 1; n <= N_CALLS; n++) {
            char number[16];

            (void)snprintf(number, sizeof(number), "%u", n);
            (void)side_start(&pair.client, "/a.B/C", dv_str_from_c(number));
        }
        assert_int_equal(pair.client.h2->n_calls, N_CALLS);
        pair_talk(&pair);
        assert_int_equal(pair.client.n_messages, N_CALLS);
        assert_int_equal(pair.client.n_ended, N_CALLS);
        assert_int_equal(pair.client.last_end.status.code, DV_OK);
        assert_int_equal(pair.client.h2->unsent_bytes, 0);
        pair_fini(&pair);
    }
}

static void only_so_many_calls_may_wait(void **state)
{
    struct dv_h2_options options = dv_h2_default_options(false);
    struct dv_h2_start start = {.path = DV_STR("/a.B/C")};
    struct wire wire;
    struct side client;
    struct dv_err err;

    (void)state;
    options.calls_max = 3;
    wire_meet_client(&wire, &client, &options);
    wire_say(&wire, &client, "settings 3=2");
    for (int i = 0; i < 2 + 3; i++)
        (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    assert_null(side_try(&client, &start, DV_STR("hi"), &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "3 calls wait");
    assert_int_equal(client.h2->n_calls, 5);
    (void)wire_hear(&wire, &client);
    wire_say(&wire, &client, "headers+end 1 :status=200|grpc-status=0");
    (void)side_start(&client, "/a.B/C", DV_STR("hi")); /* one has moved up */
    wire_part(&wire, &client);
}

static void no_call_need_be_allowed_to_wait(void **state)
{
    struct dv_h2_options options = dv_h2_default_options(false);
    struct dv_h2_start start = {.path = DV_STR("/a.B/C")};
    struct wire wire;
    struct side client;
    struct dv_err err;

    (void)state;
    options.calls_max = 0;
    wire_meet_client(&wire, &client, &options);
    wire_say(&wire, &client, "settings 3=1");
    (void)side_start(&client, "/a.B/C", DV_STR("hi")); /* has a stream at once */
    assert_null(side_try(&client, &start, DV_STR("hi"), &err));
    assert_int_equal(err.code, DV_RESOURCE_EXHAUSTED);
    wire_part(&wire, &client);
}

static void one_call_goes_out_before_the_peer_has_said_how_many_it_takes(void **state)
{
    struct dv_h2_options options = dv_h2_default_options(false);
    struct wire wire;
    struct side client;

    (void)state;
    wire_init(&wire);
    side_init(&client, &options);
    for (int i = 0; i < 5; i++)
        (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    assert_non_null(strstr(wire_hear(&wire, &client), "headers 1 "));
    assert_int_equal(client.h2->n_open, 1);
    wire_say(&wire, &client, "settings 3=3");
    assert_non_null(strstr(wire_hear(&wire, &client), "headers 5 "));
    assert_int_equal(client.h2->n_open, 3);
    wire_part(&wire, &client);
}

static void a_peer_without_a_limit_has_none(void **state)
{
    struct wire wire;
    struct side client;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    for (int i = 0; i < 500; i++)
        (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    assert_int_equal(client.h2->n_open, 500);
    wire_part(&wire, &client);
}

static void the_peer_may_change_its_limit(void **state)
{
    struct wire wire;
    struct side client;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    wire_say(&wire, &client, "settings 3=0");
    for (int i = 0; i < 5; i++)
        (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    assert_string_equal(wire_hear(&wire, &client), "");
    wire_say(&wire, &client, "settings 3=1");
    (void)wire_hear(&wire, &client);
    assert_int_equal(client.h2->n_open, 1);
    wire_say(&wire, &client, "settings 3=4");
    (void)wire_hear(&wire, &client);
    assert_int_equal(client.h2->n_open, 4);
    wire_say(&wire, &client, "settings 3=1\nheaders+end 1 :status=200|grpc-status=0");
    assert_string_equal(wire_hear(&wire, &client), "");
    assert_int_equal(client.h2->n_open, 3);
    wire_say(&wire, &client,
             "headers+end 3 :status=200|grpc-status=0\n"
             "headers+end 5 :status=200|grpc-status=0\n"
             "headers+end 7 :status=200|grpc-status=0");
    assert_non_null(strstr(wire_hear(&wire, &client), "headers 9 "));
    wire_part(&wire, &client);
}

/* It was given to nghttp2 when there was room; then the room was taken away. */
static void a_call_that_is_on_its_way_can_be_cancelled(void **state)
{
    struct wire wire;
    struct side client;
    struct dv_h2_call *first;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    first = side_start(&client, "/a.B/C", DV_STR("hi"));
    (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    wire_say(&wire, &client, "settings 3=0");
    assert_string_equal(wire_hear(&wire, &client), "");
    dv_h2_cancel(first);
    assert_string_equal(wire_hear(&wire, &client), "");
    assert_events(&client, "#1 ended CANCELLED\n");
    wire_say(&wire, &client, "settings 3=5");
    assert_int_equal(strncmp(wire_hear(&wire, &client), "headers 3 ", 10), 0);
    wire_part(&wire, &client);
}

static void cancel_next(struct side *side, struct dv_h2_call *call, const struct dv_h2_end *end)
{
    struct dv_h2_call **calls = side->test;

    (void)end;
    if (side_number(call) != 2 && side_number(call) < 5)
        dv_h2_cancel(calls[side_number(call)]);
}

static void waiting_calls_can_be_cancelled_one_from_the_end_of_another(void **state)
{
    struct wire wire;
    struct side client;
    struct dv_h2_call *calls[5];

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    wire_say(&wire, &client, "settings 3=1");
    for (size_t i = 0; i < DV_COUNT(calls); i++)
        calls[i] = side_start(&client, "/a.B/C", DV_STR("hi"));
    client.test = calls;
    client.on_ended = cancel_next;
    (void)wire_hear(&wire, &client);
    dv_h2_cancel(calls[2]);
    assert_string_equal(wire_hear(&wire, &client), "");
    assert_events(&client, "#3 ended unprocessed CANCELLED\n#4 ended unprocessed CANCELLED\n"
                           "#5 ended unprocessed CANCELLED\n");
    dv_h2_cancel(calls[0]); /* the second would get its stream now */
    assert_string_equal(wire_hear(&wire, &client), "reset 1 CANCEL\n");
    assert_events(&client, "#1 ended CANCELLED\n#2 ended unprocessed CANCELLED\n");
    assert_int_equal(client.h2->n_waiting, 0);
    assert_int_equal(client.h2->n_open, 0);
    wire_part(&wire, &client);
}

static void a_connection_out_of_stream_ids_takes_no_more_calls(void **state)
{
    struct dv_h2_start start = {.path = DV_STR("/a.B/C")};
    struct wire wire;
    struct side client;
    struct dv_err err;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    assert_int_equal(nghttp2_session_set_next_stream_id(client.h2->ng, 0x7fffffff), 0);
    wire_say(&wire, &client, "settings 3=1");
    for (int i = 0; i < 4; i++)
        (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    (void)wire_hear(&wire, &client);
    assert_events(&client, "");
    wire_say(&wire, &client, "headers+end 2147483647 :status=200|grpc-status=0");
    (void)wire_hear(&wire, &client);
    assert_events(&client, "#1 ended OK\ngoing away\n#2 ended unprocessed UNAVAILABLE\n"
                           "#3 ended unprocessed UNAVAILABLE\n#4 ended unprocessed UNAVAILABLE\n");
    assert_null(side_try(&client, &start, DV_STR("hi"), &err));
    assert_int_equal(err.code, DV_UNAVAILABLE);
    assert_int_equal(client.h2->n_calls, 0);
    wire_part(&wire, &client);
}

static void the_call_that_finds_no_stream_id_ends_later(void **state)
{
    struct wire wire;
    struct side client;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    assert_int_equal(nghttp2_session_set_next_stream_id(client.h2->ng, 0x7fffffff), 0);
    (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    assert_events(&client, ""); /* a start never calls back */
    (void)wire_hear(&wire, &client);
    assert_events(&client, "going away\n#2 ended unprocessed UNAVAILABLE\n");
    assert_int_equal(client.h2->n_waiting, 0);
    wire_part(&wire, &client);
}

static void a_path_that_no_peer_takes_is_refused_at_once(void **state)
{
    static char path[20000];
    struct dv_h2_start start = {
        .path = {path, sizeof(path)}
    };
    struct wire wire;
    struct side client;
    struct dv_err err;

    (void)state;
    memset(path, 'p', sizeof(path));
    wire_meet_client(&wire, &client, NULL);
    assert_null(side_try(&client, &start, DV_STR("hi"), &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "bytes of header fields");
    wire_part(&wire, &client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_calls_pass_through_few_streams_in_order),
        cmocka_unit_test(only_so_many_calls_may_wait),
        cmocka_unit_test(no_call_need_be_allowed_to_wait),
        cmocka_unit_test(one_call_goes_out_before_the_peer_has_said_how_many_it_takes),
        cmocka_unit_test(a_peer_without_a_limit_has_none),
        cmocka_unit_test(the_peer_may_change_its_limit),
        cmocka_unit_test(a_call_that_is_on_its_way_can_be_cancelled),
        cmocka_unit_test(waiting_calls_can_be_cancelled_one_from_the_end_of_another),
        cmocka_unit_test(a_connection_out_of_stream_ids_takes_no_more_calls),
        cmocka_unit_test(the_call_that_finds_no_stream_id_ends_later),
        cmocka_unit_test(a_path_that_no_peer_takes_is_refused_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

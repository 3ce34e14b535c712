/* GOAWAY, and how sessions come to their end. */
#include "support/dvtest.h"

#include "http2/http2.h"
#include "http2/session.h"
#include "http2/tests/test_side.h"
#include "http2/tests/test_wire.h"

#define REQUEST                                                                                    \
    ":method=POST|:scheme=http|:path=/a.B/C|:authority=localhost|content-type=application/grpc|"   \
    "te=trailers"
#define RESPONSE ":status=200|content-type=application/grpc"
#define NOTICE "goaway 2147483647 NO_ERROR\nping 0000000000000000\n"

static void hold(struct side *side, struct dv_h2_call *call, dv_str message)
{
    (void)message;
    side->call = call;
}

static void a_server_that_shuts_down_lets_calls_finish(void **state)
{
    static const size_t chunks[] = {0, 1};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(chunks); i++) {
        struct dv_h2_start start = {.path = DV_STR("/a.B/C")};
        struct pair pair;
        struct dv_err err;

        pair_init(&pair, NULL, NULL);
        pair.chunk_bytes = chunks[i];
        pair.server.on_message = hold;
        (void)side_start(&pair.client, "/a.B/C", DV_STR("hi"));
        pair_talk(&pair);
        dv_h2_shut_down(pair.server.h2);
        dv_h2_shut_down(pair.server.h2);
        pair_talk(&pair);
        assert_events(&pair.client, "ready\ngoing away\n"); /* once, though it is said twice */
        assert_false(dv_h2_is_over(pair.client.h2));
        assert_false(dv_h2_is_over(pair.server.h2));
        assert_null(side_try(&pair.client, &start, DV_STR("hi"), &err));
        assert_int_equal(err.code, DV_UNAVAILABLE);
        side_echo(&pair.server, pair.server.call, DV_STR("the last"));
        pair_talk(&pair);
        assert_events(&pair.client, "#1 message the last\n#1 ended OK\n");
        assert_true(dv_h2_is_over(pair.client.h2));
        assert_true(dv_h2_is_over(pair.server.h2));
        assert_null(dv_h2_complaint(pair.client.h2));
        assert_null(dv_h2_complaint(pair.server.h2));
        pair_fini(&pair);
    }
}

static void an_idle_server_that_shuts_down_is_over_after_a_round_trip(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    dv_h2_shut_down(server.h2);
    assert_string_equal(wire_hear(&wire, &server), NOTICE);
    assert_false(dv_h2_is_over(server.h2));
    wire_say(&wire, &server, "ping+ack 0000000000000000");
    assert_string_equal(wire_hear(&wire, &server), "goaway 0 NO_ERROR\n");
    assert_true(dv_h2_is_over(server.h2));
    wire_part(&wire, &server);
}

static void an_idle_client_is_over_when_its_server_goes_away(void **state)
{
    struct wire wire;
    struct side client;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    wire_say(&wire, &client, "goaway 0 2147483647 0");
    assert_events(&client, "going away\n");
    assert_true(dv_h2_is_over(client.h2));
    wire_part(&wire, &client);
}

static void a_server_announces_its_end_before_it_names_the_last_call(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    dv_h2_shut_down(server.h2);
    assert_string_equal(wire_hear(&wire, &server), NOTICE);
    wire_say(&wire, &server,
             "headers 1 " REQUEST "\nmessage+end 1 was under way\n"
             "ping+ack 0000000000000000");
    assert_string_equal(wire_hear(&wire, &server),
                        "headers 1 " RESPONSE "\ngoaway 1 NO_ERROR\ndata 1 of 18 bytes\n"
                        "headers+end 1 grpc-status=0\n");
    assert_events(&server, "#1 request /a.B/C\n#1 message was under way\n#1 ended OK\n");
    assert_true(dv_h2_is_over(server.h2));
    wire_part(&wire, &server);
}

static void calls_after_the_last_one_are_not_looked_at(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    server.on_message = hold;
    wire_say(&wire, &server, "headers 1 " REQUEST "\nmessage+end 1 hi");
    dv_h2_shut_down(server.h2);
    (void)wire_hear(&wire, &server);
    wire_say(&wire, &server, "ping+ack 0000000000000000");
    assert_string_equal(wire_hear(&wire, &server), "goaway 1 NO_ERROR\n");
    wire_say(&wire, &server, "headers 3 " REQUEST "\nmessage+end 3 too late");
    assert_string_equal(wire_hear(&wire, &server), "");
    assert_events(&server, "#1 request /a.B/C\n#1 message hi\n");
    assert_false(dv_h2_is_over(server.h2));
    wire_part(&wire, &server);
}

static void a_server_says_goodbye_once(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    server.on_message = hold;
    wire_say(&wire, &server, "ping+ack 0000000000000000\nheaders 1 " REQUEST);
    assert_string_equal(wire_hear(&wire, &server), ""); /* nobody had asked */
    dv_h2_shut_down(server.h2);
    wire_say(&wire, &server, "ping+ack 0000000000000000");
    assert_string_equal(wire_hear(&wire, &server), NOTICE);
    wire_say(&wire, &server, "ping+ack 0000000000000000\nping+ack 0000000000000000");
    assert_string_equal(wire_hear(&wire, &server), "goaway 1 NO_ERROR\n");
    wire_say(&wire, &server, "ping+ack 0000000000000000");
    assert_string_equal(wire_hear(&wire, &server), "");
    wire_part(&wire, &server);
}

static void a_server_may_shut_down_after_its_client_said_so_too(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    server.on_message = hold;
    wire_say(&wire, &server, "headers 1 " REQUEST "\nmessage+end 1 hi\ngoaway 0 0 0");
    assert_events(&server, "#1 request /a.B/C\n#1 message hi\ngoing away\n");
    dv_h2_shut_down(server.h2);
    assert_string_equal(wire_hear(&wire, &server), "goaway 1 NO_ERROR\n");
    assert_false(dv_h2_is_over(server.h2));
    dv_h2_finish(server.call, DV_NOT_FOUND, DV_STR_NONE);
    (void)wire_hear(&wire, &server);
    assert_true(dv_h2_is_over(server.h2));
    wire_part(&wire, &server);
}

static void a_client_that_shuts_down_lets_calls_finish(void **state)
{
    struct dv_h2_options options = dv_h2_default_options(true);
    struct dv_h2_start start = {.path = DV_STR("/a.B/C")};
    struct pair pair;
    struct dv_err err;

    (void)state;
    options.calls_max = 1;
    pair_init(&pair, NULL, &options);
    pair.server.on_message = hold;
    (void)side_start(&pair.client, "/a.B/C", DV_STR("hi"));
    (void)side_start(&pair.client, "/a.B/C", DV_STR("waits"));
    pair_talk(&pair);
    dv_h2_shut_down(pair.client.h2);
    assert_null(side_try(&pair.client, &start, DV_STR("hi"), &err));
    assert_int_equal(err.code, DV_UNAVAILABLE);
    pair_talk(&pair);
    assert_events(&pair.client, "ready\n#2 ended unprocessed UNAVAILABLE\n");
    assert_false(dv_h2_is_over(pair.client.h2));
    side_echo(&pair.server, pair.server.call, DV_STR("the last"));
    pair_talk(&pair);
    assert_events(&pair.client, "#1 message the last\n#1 ended OK\n");
    assert_true(dv_h2_is_over(pair.client.h2));
    assert_true(dv_h2_is_over(pair.server.h2));
    assert_events(&pair.server,
                  "ready\n#1 request /a.B/C\n#1 message hi\n#1 ended OK\ngoing away\n");
    pair_fini(&pair);
}

/* A goodbye would overtake the call, and the server would not listen any more. */
static void a_client_may_shut_down_right_after_it_has_started_a_call(void **state)
{
    static const size_t chunks[] = {0, 1, 7};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(chunks); i++) {
        struct pair pair;

        pair_init(&pair, NULL, NULL);
        pair_talk(&pair);
        pair.chunk_bytes = chunks[i];
        (void)side_start(&pair.client, "/a.B/C", DV_STR("hi"));
        dv_h2_shut_down(pair.client.h2);
        pair_talk(&pair);
        assert_events(&pair.client, "ready\n#1 message hi\n#1 ended OK\n");
        assert_true(dv_h2_is_over(pair.client.h2));
        pair_fini(&pair);
    }
}

static void both_may_shut_down_at_once(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, NULL, NULL);
    (void)side_start(&pair.client, "/a.B/C", DV_STR("hi"));
    (void)pair_carry(&pair, &pair.client, &pair.server);
    dv_h2_shut_down(pair.client.h2);
    dv_h2_shut_down(pair.server.h2);
    pair_talk(&pair);
    assert_events(&pair.client, "ready\ngoing away\n#1 message hi\n#1 ended OK\n");
    assert_true(dv_h2_is_over(pair.client.h2));
    assert_true(dv_h2_is_over(pair.server.h2));
    pair_fini(&pair);
}

static void calls_that_the_server_did_not_take_are_unprocessed(void **state)
{
    struct wire wire;
    struct side client;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    wire_say(&wire, &client, "settings 3=4");
    for (int i = 0; i < 3; i++)
        (void)side_start(&client, "/a.B/C", DV_STR("sent"));
    (void)wire_hear(&wire, &client);
    (void)side_start(&client, "/a.B/C", DV_STR("not sent yet"));
    (void)side_start(&client, "/a.B/C", DV_STR("waits"));
    wire_say(&wire, &client, "goaway 0 2147483647 0");
    (void)wire_hear(&wire, &client);
    assert_events(&client, "going away\n#5 ended unprocessed UNAVAILABLE\n"
                           "#4 ended unprocessed UNAVAILABLE\n");
    wire_say(&wire, &client, "goaway 0 1 0");
    assert_int_equal(client.n_ended, 4);
    assert_true(client.last_end.is_unprocessed);
    dv_buf_clear(&client.events); /* the two are in no order */
    assert_false(dv_h2_is_over(client.h2));
    wire_say(&wire, &client, "headers+end 1 :status=200|grpc-status=0");
    assert_events(&client, "#1 ended OK\n");
    (void)wire_hear(&wire, &client);
    assert_true(dv_h2_is_over(client.h2));
    wire_part(&wire, &client);
}

/* Seen whenever a kubelet closes a connection: it should be 0, or a call that the server began. */
static void a_client_may_name_its_own_call_when_it_goes(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    wire_say(&wire, &server, "headers 1 " REQUEST "\nmessage+end 1 hi");
    (void)wire_hear(&wire, &server);
    assert_events(&server, "#1 request /a.B/C\n#1 message hi\n#1 ended OK\n");
    wire_say(&wire, &server, "goaway 0 1 0");
    assert_events(&server, "going away\n");
    (void)wire_hear(&wire, &server);
    assert_true(dv_h2_is_over(server.h2));
    assert_null(dv_h2_complaint(server.h2));
    wire_part(&wire, &server);
}

static void the_reason_of_a_goaway_is_kept(void **state)
{
    struct wire wire;
    struct side client;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    (void)wire_hear(&wire, &client);
    wire_say(&wire, &client, "frame 0 7 0 000000010000000b746f6f5f6d616e795f70696e6773");
    assert_err(dv_h2_complaint(client.h2), DV_UNAVAILABLE, "ENHANCE_YOUR_CALM too_many_pings");
    wire_part(&wire, &client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_shuts_down_lets_calls_finish),
        cmocka_unit_test(an_idle_server_that_shuts_down_is_over_after_a_round_trip),
        cmocka_unit_test(an_idle_client_is_over_when_its_server_goes_away),
        cmocka_unit_test(a_server_announces_its_end_before_it_names_the_last_call),
        cmocka_unit_test(calls_after_the_last_one_are_not_looked_at),
        cmocka_unit_test(a_server_says_goodbye_once),
        cmocka_unit_test(a_server_may_shut_down_after_its_client_said_so_too),
        cmocka_unit_test(a_client_that_shuts_down_lets_calls_finish),
        cmocka_unit_test(a_client_may_shut_down_right_after_it_has_started_a_call),
        cmocka_unit_test(both_may_shut_down_at_once),
        cmocka_unit_test(calls_that_the_server_did_not_take_are_unprocessed),
        cmocka_unit_test(a_client_may_name_its_own_call_when_it_goes),
        cmocka_unit_test(the_reason_of_a_goaway_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

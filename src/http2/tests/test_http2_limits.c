/* Windows, and what bounds memory: large messages, half messages, peers that do not read. */
#include "support/dvtest.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "http2/http2.h"
#include "http2/session.h"
#include "http2/tests/test_side.h"
#include "http2/tests/test_wire.h"

#define REQUEST                                                                                    \
    ":method=POST|:scheme=http|:path=/a.B/C|:authority=localhost|content-type=application/grpc|"   \
    "te=trailers"
#define RESPONSE ":status=200|content-type=application/grpc"
#define LARGE_BYTES (20u << 20)

static char pattern_at(size_t i)
{
    return (char)(i * 131 + (i >> 8) * 17 + (i >> 16));
}

static char *new_large(size_t n)
{
    char *bytes = dv_alloc(n);

    for (size_t i = 0; i < n; i++)
        bytes[i] = pattern_at(i);
    return bytes;
}

static void check_large(struct side *side, struct dv_h2_call *call, dv_str message)
{
    (void)side;
    (void)call;
    for (size_t i = 0; i < message.n; i++) {
        if (message.p[i] != pattern_at(i))
            fail_msg("byte %zu of %zu is wrong", i, message.n);
    }
}

static void check_and_echo(struct side *side, struct dv_h2_call *call, dv_str message)
{
    check_large(side, call, message);
    side_echo(side, call, message);
}

static void a_message_larger_than_every_window_gets_through(void **state)
{
    static const size_t chunks[] = {0, 65536, 9999};
    struct dv_h2_options client = dv_h2_default_options(false);
    struct dv_h2_options server = dv_h2_default_options(true);
    char *bytes = new_large(LARGE_BYTES);

    (void)state;
    client.message_bytes_max = server.message_bytes_max = LARGE_BYTES;
    for (size_t i = 0; i < DV_COUNT(chunks); i++) {
        struct pair pair;

        pair_init(&pair, &client, &server);
        pair.chunk_bytes = chunks[i];
        pair.server.on_message = check_and_echo;
        pair.client.on_message = check_large;
        for (int n = 0; n < 2; n++)
            (void)side_start(&pair.client, "/a.B/C", (dv_str){bytes, LARGE_BYTES});
        pair_talk(&pair);
        assert_int_equal(pair.server.n_messages, 2);
        assert_int_equal(pair.client.n_messages, 2);
        assert_int_equal(pair.client.n_ended, 2);
        assert_int_equal(pair.client.last_end.status.code, DV_OK);
        assert_int_equal(pair.client.h2->partial_bytes, 0);
        assert_int_equal(pair.server.h2->partial_bytes, 0);
        assert_int_equal(pair.client.h2->unsent_bytes, 0);
        assert_int_equal(pair.server.h2->unsent_bytes, 0);
        pair_fini(&pair);
    }
    free(bytes);
}

static void a_message_of_the_limit_passes_and_one_byte_more_is_refused(void **state)
{
    struct dv_h2_options client = dv_h2_default_options(false);
    struct dv_h2_options server = dv_h2_default_options(true);
    struct pair pair;
    char bytes[1001] = {0};

    (void)state;
    client.message_bytes_max = 1000;
    server.message_bytes_max = 1000;
    pair_init(&pair, &client, &server);
    (void)side_start(&pair.client, "/a.B/C", (dv_str){bytes, 1000});
    pair_talk(&pair);
    assert_events(&pair.client, "ready\n#1 message of 1000 bytes\n#1 ended OK\n");
    (void)side_start(&pair.client, "/a.B/C", (dv_str){bytes, 1001});
    pair_talk(&pair);
    assert_err(&pair.client.last_end.status, DV_RESOURCE_EXHAUSTED,
               "a message of 1001 bytes is larger than the limit of 1000");
    assert_int_equal(pair.server.n_messages, 1);
    assert_err(&pair.server.last_refusal, DV_RESOURCE_EXHAUSTED, "1001 bytes");
    pair_fini(&pair);
}

static void a_request_over_the_limit_is_refused_at_its_prefix(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    wire_say(&wire, &server, "headers 1 " REQUEST "\ndata 1 00ffffffff");
    assert_string_equal(
        wire_hear(&wire, &server),
        "headers+end 1 :status=200|content-type=application/grpc|grpc-status=8|"
        "grpc-message=a message of 4294967295 bytes is larger than the limit of 16777216\n"
        "reset 1 NO_ERROR\n");
    assert_events(&server, "#1 request /a.B/C\nrefused RESOURCE_EXHAUSTED\n#1 ended OK\n");
    assert_int_equal(server.h2->partial_bytes, 0);
    wire_say(&wire, &server, "data 1 0000000000000000000000"); /* was under way */
    assert_string_equal(wire_hear(&wire, &server), "");
    wire_part(&wire, &server);
}

static void an_answer_over_the_limit_is_refused_at_its_prefix(void **state)
{
    struct wire wire;
    struct side client;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    assert_non_null(wire_hear(&wire, &client));
    wire_say(&wire, &client, "headers 1 " RESPONSE "\ndata 1 0001000001\ndata 1 ffff");
    assert_int_equal(client.h2->partial_bytes, 0);
    assert_string_equal(wire_hear(&wire, &client), "reset 1 CANCEL\n");
    assert_err(&client.last_end.status, DV_RESOURCE_EXHAUSTED, "16777217 bytes");
    wire_part(&wire, &client);
}

static void half_a_message_costs_what_has_arrived_of_it(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    wire_say(&wire, &server, "headers 1 " REQUEST "\ndata 1 0001000000");
    assert_int_equal(server.h2->partial_bytes, 0); /* 16 MiB are only promised */
    wire_say(&wire, &server, "data 1 00");
    assert_in_range(server.h2->partial_bytes, 1, 65536);
    wire_say(&wire, &server, "reset 1 8");
    assert_int_equal(server.h2->partial_bytes, 0);
    assert_events(&server, "#1 request /a.B/C\n#1 ended CANCELLED\n");
    wire_part(&wire, &server);
}

#define HELLO_IN_PARTS "data 1 000000000568\ndata 1 656c6c6f"

static void a_stream_keeps_the_memory_of_a_message_for_the_next(void **state)
{
    struct wire wire;
    struct side client;
    size_t kept;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    assert_non_null(wire_hear(&wire, &client));
    wire_say(&wire, &client, "headers 1 " RESPONSE "\n" HELLO_IN_PARTS);
    assert_int_equal(client.h2->partial_bytes, 0); /* it may be the only one */
    wire_say(&wire, &client, HELLO_IN_PARTS);
    kept = client.h2->partial_bytes;
    assert_in_range(kept, 5, 65536);
    wire_say(&wire, &client, HELLO_IN_PARTS "\nmessage 1 hello\n" HELLO_IN_PARTS);
    assert_int_equal(client.h2->partial_bytes, kept);
    wire_say(&wire, &client, "headers+end 1 grpc-status=0");
    assert_int_equal(client.h2->partial_bytes, 0);
    assert_events(&client, "#1 message hello\n#1 message hello\n#1 message hello\n"
                           "#1 message hello\n#1 message hello\n#1 ended OK\n");
    wire_part(&wire, &client);
}

static void all_half_messages_together_are_bounded(void **state)
{
    struct dv_h2_options options = dv_h2_default_options(true);
    struct dv_buf frames;
    struct wire wire;
    struct side server;

    (void)state;
    options.partial_bytes_max = 1u << 20; /* sixteen of the first pieces */
    wire_meet_server(&wire, &server, &options);
    dv_buf_init(&frames, 65536);
    for (unsigned i = 0; i < 100; i++) {
        dv_buf_clear(&frames);
        dv_buf_printf(&frames, "headers %u " REQUEST "\ndata %u 0000ffffff00", 2 * i + 1,
                      2 * i + 1);
        wire_say(&wire, &server, dv_buf_c(&frames));
        assert_true(server.h2->partial_bytes <= options.partial_bytes_max);
        assert_int_equal(server.last_refusal.code, i < 16 ? DV_OK : DV_RESOURCE_EXHAUSTED);
    }
    (void)wire_hear(&wire, &server);
    assert_int_equal(server.h2->n_calls, 16); /* the others were answered */
    wire_say(&wire, &server, "reset 1 8");
    wire_say(&wire, &server, "headers 201 " REQUEST "\nmessage+end 201 there is room again");
    assert_int_equal(server.n_messages, 1);
    dv_buf_fini(&frames);
    wire_part(&wire, &server);
    assert_int_equal(server.n_begun, 101);
}

static void a_message_refused_half_way_gives_its_memory_back(void **state)
{
    struct dv_h2_options options = dv_h2_default_options(true);
    struct wire wire;
    struct side server;
    struct dv_buf frames;

    (void)state;
    options.partial_bytes_max = 100000;
    wire_meet_server(&wire, &server, &options);
    dv_buf_init(&frames, 1u << 20);
    dv_buf_add_c(&frames, "headers 1 " REQUEST "\ndata 1 0000ffffff");
    for (int i = 0; i < 70000; i++)
        dv_buf_add_c(&frames, i % 10000 ? "00" : "\ndata 1 00");
    wire_say(&wire, &server, dv_buf_c(&frames)); /* and is not pulled from: it cannot answer */
    assert_int_equal(server.last_refusal.code, DV_RESOURCE_EXHAUSTED);
    assert_int_equal(server.h2->partial_bytes, 0);
    dv_buf_fini(&frames);
    wire_part(&wire, &server);
}

static void hold(struct side *side, struct dv_h2_call *call, dv_str message)
{
    (void)message;
    side->call = call;
}

static void a_peer_that_does_not_read_is_not_sent_without_end(void **state)
{
    struct dv_h2_options options = dv_h2_default_options(true);
    struct dv_h2_msg *msg = dv_h2_msg_new(1000);
    struct wire wire;
    struct side server;
    struct dv_err err;
    size_t n = 0;

    (void)state;
    memset(dv_h2_msg_data(msg), 0, 1000);
    options.unsent_bytes_max = 100000;
    wire_meet_server(&wire, &server, &options);
    server.on_message = hold;
    wire_say(&wire, &server, "headers 1 " REQUEST "\nmessage+end 1 hi");
    while (dv_h2_send(server.call, msg, &err))
        n++;
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "the peer does not read");
    assert_int_equal(n, 100000 / 1005);
    assert_int_equal(dv_h2_call_unsent_bytes(server.call), n * 1005);
    (void)wire_hear(&wire, &server); /* 65,535 bytes of window */
    assert_int_equal(dv_h2_call_unsent_bytes(server.call), n * 1005 - 65535);
    assert_ok(dv_h2_send(server.call, msg, &err), &err);
    wire_say(&wire, &server, "reset 1 8");
    assert_int_equal(server.h2->unsent_bytes, 0);
    dv_h2_msg_unref(msg);
    wire_part(&wire, &server);
}

static void one_message_may_always_be_sent(void **state)
{
    struct dv_h2_options options = dv_h2_default_options(true);
    struct pair pair;
    struct dv_h2_msg *msg = dv_h2_msg_new(5000);
    struct dv_err err;

    (void)state;
    memset(dv_h2_msg_data(msg), 0, 5000);
    options.unsent_bytes_max = 100;
    pair_init(&pair, NULL, &options);
    pair.server.on_message = hold;
    (void)side_start(&pair.client, "/a.B/C", DV_STR("hi"));
    pair_talk(&pair);
    for (int i = 0; i < 3; i++) {
        assert_ok(dv_h2_send(pair.server.call, msg, &err), &err);
        assert_false(dv_h2_send(pair.server.call, msg, &err));
        assert_int_equal(err.code, DV_RESOURCE_EXHAUSTED);
        pair_talk(&pair);
    }
    assert_int_equal(pair.client.n_messages, 3);
    dv_h2_msg_unref(msg);
    pair_fini(&pair);
}

static void calls_that_wait_are_bounded_by_their_bytes_too(void **state)
{
    struct dv_h2_options options = dv_h2_default_options(false);
    struct dv_h2_start start = {.path = DV_STR("/a.B/C")};
    struct side client;
    struct dv_err err;
    char bytes[1000] = {0};
    size_t n = 0;

    (void)state;
    options.unsent_bytes_max = 10000;
    side_init(&client, &options);
    while (n < 100 && side_try(&client, &start, (dv_str){bytes, sizeof(bytes)}, &err))
        n++;
    assert_int_equal(n, 9);
    assert_int_equal(err.code, DV_RESOURCE_EXHAUSTED);
    side_fini(&client);
}

static void windows_of_the_peer_are_respected_and_may_change(void **state)
{
    struct wire wire;
    struct side server;
    struct dv_buf big;

    (void)state;
    dv_buf_init(&big, 200000);
    while (big.n < 100000)
        dv_buf_add_c(&big, "0123456789");
    wire_meet_server(&wire, &server, NULL);
    server.on_message = hold;
    wire_say(&wire, &server, "settings 4=10 5=20000");
    wire_say(&wire, &server, "headers 1 " REQUEST "\nmessage+end 1 hi");
    side_send(server.call, dv_buf_str(&big));
    assert_string_equal(wire_hear(&wire, &server), "headers 1 " RESPONSE "\ndata 1 of 10 bytes\n");
    wire_say(&wire, &server, "window 1 5");
    assert_string_equal(wire_hear(&wire, &server), "data 1 of 5 bytes\n");
    wire_say(&wire, &server, "settings 4=0"); /* ten fewer: the window is negative now */
    wire_say(&wire, &server, "window 1 10");
    assert_string_equal(wire_hear(&wire, &server), "");
    wire_say(&wire, &server, "settings 4=30000");
    assert_string_equal(wire_hear(&wire, &server),
                        "data 1 of 20000 bytes\ndata 1 of 10000 bytes\n");
    wire_say(&wire, &server, "window 1 1000000");
    assert_string_equal(wire_hear(&wire, &server), /* the connection's: 65,535 in all */
                        "data 1 of 20000 bytes\ndata 1 of 15520 bytes\n");
    wire_say(&wire, &server, "settings 5=100000\nwindow 0 1000000");
    dv_h2_finish(server.call, DV_OK, DV_STR_NONE);
    assert_string_equal(wire_hear(&wire, &server),
                        "data 1 of 34470 bytes\nheaders+end 1 grpc-status=0\n");
    dv_buf_fini(&big);
    wire_part(&wire, &server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_larger_than_every_window_gets_through),
        cmocka_unit_test(a_message_of_the_limit_passes_and_one_byte_more_is_refused),
        cmocka_unit_test(a_request_over_the_limit_is_refused_at_its_prefix),
        cmocka_unit_test(an_answer_over_the_limit_is_refused_at_its_prefix),
        cmocka_unit_test(half_a_message_costs_what_has_arrived_of_it),
        cmocka_unit_test(a_stream_keeps_the_memory_of_a_message_for_the_next),
        cmocka_unit_test(all_half_messages_together_are_bounded),
        cmocka_unit_test(a_message_refused_half_way_gives_its_memory_back),
        cmocka_unit_test(a_peer_that_does_not_read_is_not_sent_without_end),
        cmocka_unit_test(one_message_may_always_be_sent),
        cmocka_unit_test(calls_that_wait_are_bounded_by_their_bytes_too),
        cmocka_unit_test(windows_of_the_peer_are_respected_and_may_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

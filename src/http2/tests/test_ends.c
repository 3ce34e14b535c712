/* However a call ends, its handler is told so once, and nothing of it afterwards. */
#include "support/dvtest.h"

#include <string.h>

#include "http2/http2.h"
#include "http2/session.h"
#include "http2/tests/test_side.h"
#include "http2/tests/test_wire.h"

#define REQUEST                                                                                    \
    ":method=POST|:scheme=http|:path=/a.B/C|:authority=localhost|content-type=application/grpc|"   \
    "te=trailers"
#define RESPONSE ":status=200|content-type=application/grpc"

static void hold(struct side *side, struct dv_h2_call *call, dv_str message)
{
    (void)message;
    side->call = call;
}

static void a_client_may_cancel_whenever_it_likes(void **state)
{
    (void)state;
    for (int after = 0; after < 4; after++) {
        struct dv_h2_call *call;
        struct pair pair;

        pair_init(&pair, NULL, NULL);
        pair.server.on_message = hold;
        pair_talk(&pair);
        call = side_start(&pair.client, "/a.B/C", DV_STR("hi"));
        if (after >= 1)
            (void)pair_carry(&pair, &pair.client, &pair.server);
        if (after >= 2) {
            side_send(pair.server.call, DV_STR("one"));
            (void)pair_carry(&pair, &pair.server, &pair.client);
        }
        if (after >= 3) {
            side_send(pair.server.call, DV_STR("two"));
            dv_h2_finish(pair.server.call, DV_OK, DV_STR_NONE);
        }
        dv_h2_cancel(call);
        dv_h2_cancel(call); /* twice is once */
        assert_int_equal(pair.client.n_ended, 0);
        pair_talk(&pair);
        assert_int_equal(pair.client.n_ended, 1);
        assert_err(&pair.client.last_end.status, DV_CANCELLED, "cancelled");
        assert_int_equal(pair.server.n_begun, after ? 1 : 0);
        assert_int_equal(pair.server.n_ended, pair.server.n_begun);
        assert_int_equal(pair.client.h2->n_open, 0);
        assert_int_equal(pair.server.h2->n_open, 0);
        assert_int_equal(pair.server.h2->unsent_bytes, 0);
        pair_fini(&pair);
    }
}

static void a_server_may_cancel_whenever_it_likes(void **state)
{
    (void)state;
    for (int after = 0; after < 3; after++) {
        struct pair pair;

        pair_init(&pair, NULL, NULL);
        pair.server.on_message = hold;
        (void)side_start(&pair.client, "/a.B/C", DV_STR("hi"));
        pair_talk(&pair);
        if (after >= 1)
            side_send(pair.server.call, DV_STR("one"));
        if (after >= 2)
            dv_h2_finish(pair.server.call, DV_OK, DV_STR_NONE);
        dv_h2_cancel(pair.server.call);
        dv_h2_cancel(pair.server.call);
        dv_h2_finish(pair.server.call, DV_OK, DV_STR_NONE);
        pair_talk(&pair);
        assert_int_equal(pair.server.n_ended, 1);
        assert_int_equal(pair.server.last_end.status.code, DV_CANCELLED);
        assert_int_equal(pair.client.n_messages, 0);
        assert_int_equal(pair.client.n_ended, 1);
        assert_int_equal(pair.client.last_end.status.code, DV_CANCELLED);
        pair_fini(&pair);
    }
}

static void finishing_twice_is_finishing_once(void **state)
{
    struct dv_h2_msg *msg = dv_h2_msg_copy(DV_STR("too late"));
    struct pair pair;
    struct dv_err err;

    (void)state;
    pair_init(&pair, NULL, NULL);
    pair.server.on_message = hold;
    (void)side_start(&pair.client, "/a.B/C", DV_STR("hi"));
    pair_talk(&pair);
    dv_h2_finish(pair.server.call, DV_ABORTED, DV_STR("first"));
    dv_h2_finish(pair.server.call, DV_OK, DV_STR("second"));
    assert_false(dv_h2_send(pair.server.call, msg, &err));
    assert_err(&err, DV_CANCELLED, "the call is over");
    pair_talk(&pair);
    assert_events(&pair.client, "ready\n#1 ended ABORTED\n");
    assert_string_equal(pair.client.last_end.status.msg, "first");
    dv_h2_msg_unref(msg);
    pair_fini(&pair);
}

static void a_cancelled_call_ends_without_a_pull_when_settled(void **state)
{
    struct wire wire;
    struct side client;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    dv_h2_cancel(side_start(&client, "/a.B/C", DV_STR("hi")));
    dv_h2_settle(client.h2);
    assert_events(&client, "#1 ended CANCELLED\n");
    dv_h2_settle(client.h2);
    assert_events(&client, "");
    wire_part(&wire, &client);
}

static void losing_the_connection_ends_all_calls_of_a_client(void **state)
{
    struct dv_err gone;
    struct wire wire;
    struct side client;
    struct dv_h2_start start = {.path = DV_STR("/a.B/C")};

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    wire_say(&wire, &client, "settings 3=3");
    (void)side_start(&client, "/a.B/C", DV_STR("sent"));
    dv_h2_cancel(side_start(&client, "/a.B/C", DV_STR("cancelled")));
    (void)wire_hear(&wire, &client);
    (void)side_start(&client, "/a.B/C", DV_STR("not sent yet"));
    dv_h2_cancel(side_start(&client, "/a.B/C", DV_STR("just cancelled")));
    (void)side_start(&client, "/a.B/C", DV_STR("not sent yet"));
    (void)side_start(&client, "/a.B/C", DV_STR("waiting"));
    assert_events(&client, "#2 ended CANCELLED\n");
    (void)dv_fail(&gone, DV_UNAVAILABLE, "connection reset");
    dv_h2_lose(client.h2, &gone);
    assert_events(&client, "#4 ended CANCELLED\n#1 ended UNAVAILABLE\n"
                           "#3 ended unprocessed UNAVAILABLE\n#5 ended unprocessed UNAVAILABLE\n"
                           "#6 ended unprocessed UNAVAILABLE\n");
    assert_string_equal(client.last_end.status.msg, "connection reset");
    assert_null(side_try(&client, &start, DV_STR("hi"), &gone));
    assert_int_equal(gone.code, DV_UNAVAILABLE);
    dv_h2_lose(client.h2, &gone);
    assert_events(&client, "");
    assert_int_equal(client.h2->unsent_bytes, 0);
    wire_part(&wire, &client);
}

static void losing_the_connection_cancels_all_calls_of_a_server(void **state)
{
    struct dv_err gone;
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    server.on_message = hold;
    wire_say(&wire, &server,
             "headers 1 " REQUEST "\nheaders 3 " REQUEST "\nmessage+end 3 hi\n"
             "headers 5 " REQUEST "\nmessage+end 5 hi\n"
             "headers 7 :method=GET\nheaders 9 " REQUEST "\ndata 9 0000000005aa");
    side_send(server.call, DV_STR("on its way"));
    dv_h2_finish(server.call, DV_OK, DV_STR_NONE);
    (void)dv_fail(&gone, DV_UNAVAILABLE, "connection reset");
    dv_h2_lose(server.h2, &gone);
    assert_events(&server,
                  "#1 request /a.B/C\n#2 request /a.B/C\n#2 message hi\n#3 request /a.B/C\n"
                  "#3 message hi\nrefused INTERNAL\n#4 request /a.B/C\n#1 ended CANCELLED\n"
                  "#2 ended CANCELLED\n#3 ended CANCELLED\n#4 ended CANCELLED\n");
    assert_err(&server.last_end.status, DV_CANCELLED, "the client is gone: connection reset");
    assert_int_equal(server.h2->partial_bytes, 0);
    assert_int_equal(server.h2->unsent_bytes, 0);
    wire_part(&wire, &server);
}

/* The client has not ended its request: the server has yet to say that it needs no more. */
static void an_answer_that_is_out_whole_is_a_success(void **state)
{
    struct wire wire;
    struct side server;
    dv_str bytes;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    wire_say(&wire, &server, "headers 1 " REQUEST "\nmessage 1 hi");
    for (int i = 0; i < 3; i++) /* headers, message, trailers */
        assert_true(dv_h2_pull(server.h2, &bytes));
    wire_say(&wire, &server, "reset 1 8");
    assert_events(&server, "#1 request /a.B/C\n#1 message hi\n#1 ended OK\n");
    wire_part(&wire, &server);
}

/* ---- from inside callbacks ---- */

static void cancel_at_request(struct side *side, struct dv_h2_call *call,
                              const struct dv_h2_request *request)
{
    (void)side;
    (void)request;
    dv_h2_cancel(call);
}

static void cancel_at_message(struct side *side, struct dv_h2_call *call, dv_str message)
{
    (void)side;
    (void)message;
    dv_h2_cancel(call);
}

static void cancel_it(struct side *side, struct dv_h2_call *call)
{
    (void)side;
    dv_h2_cancel(call);
}

static void assert_server_cancels(struct side *server, struct wire *wire, const char *events)
{
    wire_say(wire, server, "headers 1 " REQUEST "\nmessage 1 hi\nmessage+end 1 more");
    if (server->on_drained)
        side_send(server->call, DV_STR("answer"));
    assert_non_null(strstr(wire_hear(wire, server), "reset 1 CANCEL\n"));
    assert_string_equal(wire_hear(wire, server), ""); /* said once */
    assert_events(server, events);
    wire_part(wire, server);
}

static void a_server_may_cancel_in_every_callback(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    server.on_request = cancel_at_request;
    assert_server_cancels(&server, &wire, "#1 request /a.B/C\n#1 ended CANCELLED\n");
    wire_meet_server(&wire, &server, NULL);
    server.on_message = cancel_at_message;
    assert_server_cancels(&server, &wire, "#1 request /a.B/C\n#1 message hi\n#1 ended CANCELLED\n");
    wire_meet_server(&wire, &server, NULL);
    server.on_message = hold;
    server.on_drained = cancel_it;
    assert_server_cancels(&server, &wire, "#1 request /a.B/C\n#1 message hi\n#1 ended CANCELLED\n");
}

static void assert_client_cancels(const char *frames, const char *events)
{
    struct wire wire;
    struct side client;

    wire_meet_client(&wire, &client, NULL);
    client.on_message = cancel_at_message;
    (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    (void)wire_hear(&wire, &client);
    wire_say(&wire, &client, frames);
    (void)wire_hear(&wire, &client);
    assert_events(&client, events);
    wire_part(&wire, &client);
}

static void a_client_may_cancel_in_every_callback(void **state)
{
    (void)state;
    assert_client_cancels("headers 1 " RESPONSE
                          "\nmessage 1 one\nmessage 1 two\nheaders+end 1 grpc-status=0",
                          "#1 message one\n#1 ended CANCELLED\n");
    assert_client_cancels("headers 1 " RESPONSE "\ndata 1 000000000161000000000162",
                          "#1 message a\n#1 ended CANCELLED\n");
}

/* All that a call can be told, when it is too late for it. */
static void touch_ended(struct side *side, struct dv_h2_call *call, const struct dv_h2_end *end)
{
    struct dv_h2_msg *msg = dv_h2_msg_copy(DV_STR("too late"));
    struct dv_err err;

    (void)end;
    dv_h2_cancel(call);
    if (side->test) { /* a server */
        assert_false(dv_h2_send(call, msg, &err));
        dv_h2_finish(call, DV_OK, DV_STR("text"));
    }
    assert_int_equal(dv_h2_call_unsent_bytes(call), 0);
    dv_h2_msg_unref(msg);
}

static void an_ended_call_takes_no_orders(void **state)
{
    static const char *const last[] = {"", "reset 1 8", "message+end 1 hi"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(last); i++) {
        struct wire wire;
        struct side server;
        int is_server;

        wire_meet_server(&wire, &server, NULL);
        server.on_ended = touch_ended;
        server.test = &is_server;
        wire_say(&wire, &server, "headers 1 " REQUEST);
        wire_say(&wire, &server, last[i]);
        (void)wire_hear(&wire, &server);
        wire_part(&wire, &server);
        assert_int_equal(server.n_ended, 1);
    }
    for (size_t i = 0; i < DV_COUNT(last); i++) {
        struct wire wire;
        struct side client;

        wire_meet_client(&wire, &client, NULL);
        client.on_ended = touch_ended;
        (void)side_start(&client, "/a.B/C", DV_STR("hi"));
        (void)wire_hear(&wire, &client);
        wire_say(&wire, &client, i == 2 ? "headers+end 1 :status=200|grpc-status=0" : last[i]);
        (void)wire_hear(&wire, &client);
        wire_part(&wire, &client);
        assert_int_equal(client.n_ended, 1);
    }
}

static void start_again(struct side *side, struct dv_h2_call *call, const struct dv_h2_end *end)
{
    struct dv_h2_start start = {.path = DV_STR("/a.B/Again")};
    struct dv_err err;

    (void)call;
    (void)end;
    if (side->n_begun < 10)
        assert_non_null(side_try(side, &start, DV_STR("hi"), &err));
}

static void a_call_may_be_started_at_the_end_of_another(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, NULL, NULL);
    pair.client.on_ended = start_again;
    (void)side_start(&pair.client, "/a.B/C", DV_STR("hi"));
    pair_talk(&pair);
    assert_int_equal(pair.client.n_ended, 10);
    assert_int_equal(pair.client.n_messages, 10);
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_may_cancel_whenever_it_likes),
        cmocka_unit_test(a_server_may_cancel_whenever_it_likes),
        cmocka_unit_test(finishing_twice_is_finishing_once),
        cmocka_unit_test(a_cancelled_call_ends_without_a_pull_when_settled),
        cmocka_unit_test(losing_the_connection_ends_all_calls_of_a_client),
        cmocka_unit_test(losing_the_connection_cancels_all_calls_of_a_server),
        cmocka_unit_test(an_answer_that_is_out_whole_is_a_success),
        cmocka_unit_test(a_server_may_cancel_in_every_callback),
        cmocka_unit_test(a_client_may_cancel_in_every_callback),
        cmocka_unit_test(an_ended_call_takes_no_orders),
        cmocka_unit_test(a_call_may_be_started_at_the_end_of_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

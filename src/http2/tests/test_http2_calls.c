/* Calls that go well, and those that the server answers with an error. */
#include "support/dvtest.h"

#include <string.h>

#include "http2/http2.h"
#include "http2/session.h"
#include "http2/tests/test_side.h"

static void a_unary_call_is_answered_however_its_bytes_arrive(void **state)
{
    static const size_t chunks[] = {0, 1, 2, 7, 9, 64};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(chunks); i++) {
        struct pair pair;

        pair_init(&pair, NULL, NULL);
        pair.chunk_bytes = chunks[i];
        (void)side_start(&pair.client, "/a.B/C", DV_STR("hi"));
        pair_talk(&pair);
        assert_events(&pair.server, "ready\n#1 request /a.B/C\n#1 message hi\n#1 ended OK\n");
        assert_events(&pair.client, "ready\n#1 message hi\n#1 ended OK\n");
        assert_string_equal(pair.client.last_end.status.msg, "");
        assert_int_equal(pair.client.h2->n_calls, 0);
        assert_int_equal(pair.server.h2->n_calls, 0);
        pair_fini(&pair);
    }
}

static void empty_messages_are_messages(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, NULL, NULL);
    (void)side_start(&pair.client, "/a.B/C", DV_STR_NONE);
    pair_talk(&pair);
    assert_events(&pair.server, "ready\n#1 request /a.B/C\n#1 message\n#1 ended OK\n");
    assert_events(&pair.client, "ready\n#1 message\n#1 ended OK\n");
    pair_fini(&pair);
}

static void calls_follow_each_other_on_a_connection(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, NULL, NULL);
    for (int i = 0; i < 3000; i++) {
        (void)side_start(&pair.client, "/a.B/C", DV_STR("hi"));
        pair_talk(&pair);
    }
    assert_int_equal(pair.client.n_messages, 3000);
    assert_int_equal(pair.client.n_ended, 3000);
    assert_int_equal(pair.client.last_end.status.code, DV_OK);
    pair_fini(&pair);
}

static void keep_call(struct side *side, struct dv_h2_call *call, dv_str message)
{
    (void)message;
    side->call = call;
}

static void a_stream_has_many_messages_and_goes_on_for_long(void **state)
{
    static const size_t chunks[] = {0, 1, 7};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(chunks); i++) {
        struct pair pair;

        pair_init(&pair, NULL, NULL);
        pair.chunk_bytes = chunks[i];
        pair.server.on_message = keep_call;
        (void)side_start(&pair.client, "/a.B/Watch", DV_STR("all"));
        pair_talk(&pair);
        assert_events(&pair.client, "ready\n");
        side_send(pair.server.call, DV_STR("one"));
        side_send(pair.server.call, DV_STR(""));
        side_send(pair.server.call, DV_STR("three"));
        assert_int_equal(dv_h2_call_unsent_bytes(pair.server.call), 3 * 5 + 8);
        pair_talk(&pair);
        assert_int_equal(dv_h2_call_unsent_bytes(pair.server.call), 0);
        assert_events(&pair.client, "#1 message one\n#1 message\n#1 message three\n");
        side_send(pair.server.call, DV_STR("later"));
        pair_talk(&pair);
        assert_events(&pair.client, "#1 message later\n");
        assert_int_equal(dv_h2_call_n_received(pair.client.call), 4);
        side_send(pair.server.call, DV_STR("last"));
        dv_h2_finish(pair.server.call, DV_OK, DV_STR_NONE);
        pair_talk(&pair);
        assert_events(&pair.client, "#1 message last\n#1 ended OK\n");
        assert_events(&pair.server, "ready\n#1 request /a.B/Watch\n#1 message all\n#1 ended OK\n");
        pair_fini(&pair);
    }
}

static void finish_later(struct side *side, struct dv_h2_call *call)
{
    (void)side;
    dv_h2_finish(call, DV_OUT_OF_RANGE, DV_STR("no more"));
}

static void a_stream_that_has_drained_can_be_finished(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, NULL, NULL);
    pair.server.on_message = keep_call;
    (void)side_start(&pair.client, "/a.B/Watch", DV_STR("all"));
    pair_talk(&pair);
    pair.server.on_drained = finish_later;
    side_send(pair.server.call, DV_STR("one"));
    pair_talk(&pair);
    assert_events(&pair.client, "ready\n#1 message one\n#1 ended OUT_OF_RANGE\n");
    assert_string_equal(pair.client.last_end.status.msg, "no more");
    assert_int_equal(pair.server.last_end.status.code, DV_OK); /* our answer went out */
    pair_fini(&pair);
}

#define N_PRODUCED 1000u

static void produce(struct side *side, struct dv_h2_call *call)
{
    assert_int_equal(dv_h2_call_unsent_bytes(call), 0);
    if (side->n_drained <= N_PRODUCED)
        side_send(call, DV_STR("another one"));
    else
        dv_h2_finish(call, DV_OK, DV_STR_NONE);
}

static void start_producing(struct side *side, struct dv_h2_call *call, dv_str message)
{
    (void)side;
    side_send(call, message);
}

static void messages_can_be_made_one_at_a_time_as_they_go_out(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, NULL, NULL);
    pair.server.on_message = start_producing;
    pair.server.on_drained = produce;
    (void)side_start(&pair.client, "/a.B/Watch", DV_STR("begin"));
    pair_talk(&pair);
    assert_int_equal(pair.client.n_messages, N_PRODUCED + 1);
    assert_int_equal(pair.client.last_end.status.code, DV_OK);
    assert_int_equal(pair.client.n_ended, 1);
    pair_fini(&pair);
}

static void fail_with(struct side *side, struct dv_h2_call *call, dv_str message)
{
    const struct dv_err *err = side->test;

    if (dv_str_eq(message, DV_STR("late")))
        side_send(call, DV_STR("half"));
    dv_h2_finish(call, err->code, dv_str_from_c(err->msg));
}

static void an_error_arrives_with_its_text(void **state)
{
    static const struct {
        struct dv_err sent;
        const char *shown; /* NULL: as it was sent; what cannot be seen is escaped */
    } errors[] = {
        {{.code = DV_NOT_FOUND, .msg = "no device gpu-0"},                                 NULL                  },
        {{.code = DV_INTERNAL, .msg = "Ger\xc3\xa4t \xe2\x82\xac 100 % \xf0\x9f\x94\xa5"}, NULL                  },
        {{.code = DV_RESOURCE_EXHAUSTED, .msg = "line\nline\ttab\x7f"},                    "line\nline\ttab\\x7f"},
        {{.code = DV_UNAUTHENTICATED, .msg = ""},                                          NULL                  },
        {{.code = DV_UNKNOWN, .msg = "\xff not UTF-8"},                                    "\\xff not UTF-8"     },
        {{.code = (enum dv_code)77, .msg = "a code of tomorrow"},                          NULL                  },
    };
    static const char *const when[] = {"at once", "late"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(errors) * 2; i++) {
        struct dv_err err = errors[i / 2].sent;
        const char *shown = errors[i / 2].shown ? errors[i / 2].shown : err.msg;
        struct pair pair;

        pair_init(&pair, NULL, NULL);
        pair.server.on_message = fail_with;
        pair.server.test = &err;
        (void)side_start(&pair.client, "/a.B/C", dv_str_from_c(when[i % 2]));
        pair_talk(&pair);
        assert_int_equal(pair.client.last_end.status.code, err.code);
        assert_string_equal(pair.client.last_end.status.msg, shown);
        assert_int_equal(pair.client.n_messages, i % 2);
        assert_int_equal(pair.server.last_end.status.code, DV_OK);
        pair_fini(&pair);
    }
}

static void fail_at_length(struct side *side, struct dv_h2_call *call, dv_str message)
{
    static char text[20000];

    (void)side;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(i % 2 ? 0xa4 : 0xc3); /* an umlaut */
    if (message.n > 0)
        side_send(call, message);
    dv_h2_finish(call, DV_ABORTED, (dv_str){text, sizeof(text)});
}

static void a_long_error_text_is_cut_and_arrives(void **state)
{
    static const char *const messages[] = {"", "one"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(messages); i++) {
        struct pair pair;

        pair_init(&pair, NULL, NULL);
        pair.server.on_message = fail_at_length;
        (void)side_start(&pair.client, "/a.B/C", dv_str_from_c(messages[i]));
        pair_talk(&pair);
        assert_int_equal(pair.client.last_end.status.code, DV_ABORTED);
        assert_int_equal(strlen(pair.client.last_end.status.msg) > 200, true);
        assert_true(dv_str_is_utf8(dv_str_from_c(pair.client.last_end.status.msg)));
        pair_fini(&pair);
    }
}

static void check_request(struct side *side, struct dv_h2_call *call,
                          const struct dv_h2_request *request)
{
    (void)side;
    (void)call;
    assert_str(request->path, "/a.B/C");
    assert_true(request->has_timeout);
    assert_int_equal(request->timeout_ns, 45000000000);
}

static void a_request_carries_its_timeout_also_after_waiting(void **state)
{
    struct dv_h2_options server = dv_h2_default_options(true);
    struct dv_h2_start start = {
        .path = DV_STR("/a.B/C"),
        .has_timeout = true,
        .timeout_ns = 45000000000,
    };
    struct pair pair;
    struct dv_err err;

    (void)state;
    server.calls_max = 1;
    pair_init(&pair, NULL, &server);
    pair.server.on_request = check_request;
    for (int i = 0; i < 3; i++) /* the first begins at once, the others wait for it */
        assert_non_null(side_try(&pair.client, &start, DV_STR("hi"), &err));
    pair_talk(&pair);
    assert_int_equal(pair.server.n_begun, 3);
    assert_int_equal(pair.client.n_messages, 3);
    assert_int_equal(pair.client.last_end.status.code, DV_OK);
    pair_fini(&pair);
}

static void check_plain_request(struct side *side, struct dv_h2_call *call,
                                const struct dv_h2_request *request)
{
    (void)side;
    (void)call;
    assert_false(request->has_timeout);
}

static void a_request_has_no_timeout_of_its_own(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, NULL, NULL);
    pair.server.on_request = check_plain_request;
    (void)side_start(&pair.client, "/a.B/C", DV_STR("hi"));
    pair_talk(&pair);
    assert_int_equal(pair.server.n_begun, 1);
    pair_fini(&pair);
}

static void one_message_can_be_shared_by_many_answers(void **state)
{
    struct dv_h2_msg *msg = dv_h2_msg_new(5);
    struct dv_h2_call *calls[3];
    struct dv_err err;
    struct pair pair;

    (void)state;
    memcpy(dv_h2_msg_data(msg), "hello", 5);
    assert_int_equal(dv_h2_msg_size(msg), 5);
    pair_init(&pair, NULL, NULL);
    pair.server.on_message = keep_call;
    for (size_t i = 0; i < DV_COUNT(calls); i++) {
        (void)side_start(&pair.client, "/a.B/Watch", DV_STR("all"));
        pair_talk(&pair);
        calls[i] = pair.server.call;
    }
    for (size_t i = 0; i < DV_COUNT(calls); i++)
        assert_ok(dv_h2_send(calls[i], msg, &err), &err);
    dv_h2_msg_unref(msg);
    dv_h2_cancel(calls[1]);
    pair_talk(&pair);
    assert_events(&pair.client, "ready\n#2 ended CANCELLED\n#1 message hello\n#3 message hello\n");
    pair_fini(&pair);
}

static void refuse_at_once(struct side *side, struct dv_h2_call *call,
                           const struct dv_h2_request *request)
{
    (void)side;
    if (dv_str_eq(request->path, DV_STR("/a.B/Send")))
        side_send(call, DV_STR("an answer"));
    dv_h2_finish(call, DV_UNIMPLEMENTED, DV_STR("no such method"));
}

static void an_answer_before_the_message_is_the_end(void **state)
{
    static const char *const paths[] = {"/a.B/None", "/a.B/Send"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(paths); i++) {
        struct pair pair;

        pair_init(&pair, NULL, NULL);
        pair.server.on_request = refuse_at_once;
        (void)side_start(&pair.client, paths[i], DV_STR("hi"));
        pair_talk(&pair);
        assert_int_equal(pair.server.n_messages, 0); /* nobody waits for it */
        assert_int_equal(pair.server.last_end.status.code, DV_OK);
        assert_err(&pair.client.last_end.status, DV_UNIMPLEMENTED, "no such method");
        assert_int_equal(pair.client.n_messages, i);
        assert_int_equal(pair.server.h2->n_calls, 0);
        pair_fini(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unary_call_is_answered_however_its_bytes_arrive),
        cmocka_unit_test(empty_messages_are_messages),
        cmocka_unit_test(calls_follow_each_other_on_a_connection),
        cmocka_unit_test(a_stream_has_many_messages_and_goes_on_for_long),
        cmocka_unit_test(a_stream_that_has_drained_can_be_finished),
        cmocka_unit_test(messages_can_be_made_one_at_a_time_as_they_go_out),
        cmocka_unit_test(an_error_arrives_with_its_text),
        cmocka_unit_test(a_long_error_text_is_cut_and_arrives),
        cmocka_unit_test(a_request_carries_its_timeout_also_after_waiting),
        cmocka_unit_test(a_request_has_no_timeout_of_its_own),
        cmocka_unit_test(one_message_can_be_shared_by_many_answers),
        cmocka_unit_test(an_answer_before_the_message_is_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

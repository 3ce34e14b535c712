#include "support/dvtest.h"

#include <string.h>
#include <unistd.h>

#include "grpc/tests/test_grpc_fixture.h"
#include "http2/http2.h"

static void unary_calls_are_answered_and_the_peer_is_known(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {0};

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&probe, fixture, TEST_ECHO, "hello", 1000);
    wait_done(fixture, &probe);
    assert_int_equal(probe.err.code, DV_OK);
    assert_str(dv_buf_str(&probe.got), "hello;");
    assert_int_equal(fixture->peer.pid, getpid());
    assert_int_equal(fixture->peer.uid, getuid());
    assert_int_equal(fixture->server_deadline_ms, dv_loop_now_ms(fixture->loop) + 1000);
    probe_fini(&probe);
}

static void a_stream_is_delivered_in_order_and_ends(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {.call = {.is_stream = true}};

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&probe, fixture, TEST_WATCH, "x", DV_NO_DEADLINE);
    wait_done(fixture, &probe);
    assert_int_equal(probe.err.code, DV_OK);
    assert_str(dv_buf_str(&probe.got), "x;x;x;");
    assert_true(fixture->server_deadline_ms == DV_NO_DEADLINE);
    probe_fini(&probe);
}

static void a_unary_call_with_several_answers_fails(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {0};

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&probe, fixture, TEST_WATCH, "x", 1000);
    wait_done(fixture, &probe);
    assert_err(&probe.err, DV_INTERNAL, "more than one message");
    probe_fini(&probe);
}

static void a_unary_call_without_an_answer_fails(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {0};

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&probe, fixture, TEST_HOLD, "", 1000);
    wait_held(fixture, 1);
    dv_server_call_finish(fixture->held, NULL);
    fixture->held = NULL;
    wait_done(fixture, &probe);
    assert_err(&probe.err, DV_INTERNAL, "without sending a message");
    probe_fini(&probe);
}

static void errors_carry_code_and_text(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {0};

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&probe, fixture, TEST_FAIL, "kein Ger\xc3\xa4t, 100%", 1000);
    wait_done(fixture, &probe);
    assert_int_equal(probe.err.code, DV_NOT_FOUND);
    assert_string_equal(probe.err.msg, "kein Ger\xc3\xa4t, 100%");
    probe_fini(&probe);
}

static void unknown_services_and_methods_are_told_apart(void **state)
{
    struct fixture *fixture = *state;
    struct probe service = {0};
    struct probe method = {0};

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&service, fixture, "/test.Other/Echo", "", 1000);
    probe_start(&method, fixture, "/test.Service/Nothing", "", 1000);
    wait_done(fixture, &service);
    wait_done(fixture, &method);
    assert_int_equal(service.err.code, DV_UNIMPLEMENTED);
    assert_string_equal(service.err.msg, "unknown service test.Other");
    assert_string_equal(method.err.msg, "unknown method Nothing for service test.Service");
    wait_complaint(fixture, "unknown service test.Other");
    probe_fini(&service);
    probe_fini(&method);
}

static void a_deadline_ends_both_sides(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {0};

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&probe, fixture, TEST_HOLD, "", 500);
    wait_held(fixture, 1);
    advance(fixture, 499);
    assert_int_equal(probe.n_done, 0);
    advance(fixture, 1);
    wait_done(fixture, &probe);
    wait_cancelled(fixture, 1);
    assert_int_equal(probe.err.code, DV_DEADLINE_EXCEEDED);
    probe_fini(&probe);
}

static void a_deadline_holds_while_nobody_can_be_reached(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {.call = {.waits_for_ready = true}};

    fixture_connect(fixture, false);
    wait_state(fixture, DV_CHANNEL_FAILING);
    probe_start(&probe, fixture, TEST_ECHO, "", 300);
    advance(fixture, 299);
    assert_int_equal(probe.n_done, 0);
    advance(fixture, 1);
    assert_int_equal(probe.n_done, 1);
    assert_int_equal(probe.err.code, DV_DEADLINE_EXCEEDED);
    probe_fini(&probe);
}

static void cancelling_ends_both_sides_once(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {0};

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&probe, fixture, TEST_HOLD, "", 1000);
    wait_held(fixture, 1);
    dv_call_cancel(&probe.call);
    dv_call_cancel(&probe.call);
    assert_int_equal(probe.n_done, 0);
    wait_done(fixture, &probe);
    assert_int_equal(probe.err.code, DV_CANCELLED);
    wait_cancelled(fixture, 1);
    dv_call_cancel(&probe.call); /* after the end it does nothing */
    advance(fixture, 2000);
    assert_int_equal(probe.n_done, 1);
    probe_fini(&probe);
}

static void cancelling_works_before_there_is_a_connection(void **state)
{
    struct fixture *fixture = *state;
    struct probe probes[2] = {0};

    fixture_connect(fixture, false);
    probe_start(&probes[0], fixture, TEST_ECHO, "", 1000);
    dv_call_cancel(&probes[0].call); /* the channel has not even tried */
    wait_done(fixture, &probes[0]);
    assert_int_equal(probes[0].err.code, DV_CANCELLED);
    probes[1].call.waits_for_ready = true;
    probe_start(&probes[1], fixture, TEST_ECHO, "", 1000);
    wait_state(fixture, DV_CHANNEL_FAILING);
    dv_call_cancel(&probes[1].call);
    wait_done(fixture, &probes[1]);
    assert_int_equal(probes[1].err.code, DV_CANCELLED);
    probe_fini(&probes[0]);
    probe_fini(&probes[1]);
}

static void the_end_of_one_call_may_cancel_another(void **state)
{
    struct fixture *fixture = *state;
    struct probe other = {0};
    struct probe probe = {.cancels = &other};

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&other, fixture, TEST_HOLD, "", 1000);
    wait_held(fixture, 1);
    probe_start(&probe, fixture, TEST_ECHO, "", 1000);
    wait_done(fixture, &probe);
    wait_done(fixture, &other);
    assert_int_equal(other.err.code, DV_CANCELLED);
    probe_fini(&probe);
    probe_fini(&other);
}

static void a_handler_may_answer_long_after_the_client_left(void **state)
{
    struct fixture *fixture = *state;
    struct probe probe = {0};
    struct dv_h2_msg *msg = dv_h2_msg_copy(DV_STR("late"));
    struct dv_err err;

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&probe, fixture, TEST_HOLD, "", 1000);
    wait_held(fixture, 1);
    dv_call_cancel(&probe.call);
    wait_cancelled(fixture, 1);
    assert_false(dv_server_call_send(fixture->held, msg, &err));
    assert_int_equal(err.code, DV_CANCELLED);
    dv_server_call_reply(fixture->held, msg);
    fixture->held = NULL;
    probe_fini(&probe);
}

static void many_calls_share_a_connection(void **state)
{
    struct fixture *fixture = *state;
    static struct probe probes[2000]; /* more than the server takes at once */

    memset(probes, 0, sizeof(probes));
    fixture_serve(fixture);
    fixture_connect(fixture, false);
    for (size_t i = 0; i < DV_COUNT(probes); i++)
        probe_start(&probes[i], fixture, TEST_ECHO, "m", 1000);
    for (size_t i = 0; i < DV_COUNT(probes); i++) {
        wait_done(fixture, &probes[i]);
        assert_int_equal(probes[i].err.code, DV_OK);
        probe_fini(&probes[i]);
    }
    assert_int_equal(dv_server_n_connections(fixture->server), 1);
}

static bool has_line(const struct fixture *fixture, const char *text, uint64_t id)
{
    dv_str rest = dv_buf_str(&fixture->log);
    struct dv_buf field;
    dv_str line;
    bool found = false;

    dv_buf_init(&field, 100);
    dv_buf_printf(&field, " request=%llu ", (unsigned long long)id);
    while (!found && dv_str_split(&rest, '\n', &line))
        found = dv_str_find(line, dv_str_from_c(text)) < line.n &&
                dv_str_find(line, dv_buf_str(&field)) < line.n;
    dv_buf_fini(&field);
    return found;
}

static void every_call_is_logged_with_its_id_at_both_ends(void **state)
{
    struct fixture *fixture = *state;
    struct probe unary = {0};
    struct probe stream = {.call = {.is_stream = true}};
    uint64_t id;

    fixture_serve(fixture);
    fixture_connect(fixture, false);
    probe_start(&unary, fixture, TEST_ECHO, "", 1000);
    probe_start(&stream, fixture, TEST_WATCH, "", DV_NO_DEADLINE);
    wait_done(fixture, &unary);
    wait_done(fixture, &stream);
    id = unary.call.priv.id;
    assert_true(id != stream.call.priv.id);
    assert_true(has_line(fixture, "grpc: call started", id));
    assert_true(has_line(fixture, "grpc: call ended", id));
    assert_true(has_line(fixture, "grpc: call started", stream.call.priv.id));
    assert_true(has_line(fixture, "grpc: call ended", stream.call.priv.id));
    /* The server's side of the first call is the third id that was given out. */
    assert_true(has_line(fixture, "grpc: served call started", id + 2));
    assert_true(has_line(fixture, "grpc: served call ended", id + 2));
    probe_fini(&unary);
    probe_fini(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary_calls_are_answered_and_the_peer_is_known),
        cmocka_unit_test(a_stream_is_delivered_in_order_and_ends),
        cmocka_unit_test(a_unary_call_with_several_answers_fails),
        cmocka_unit_test(a_unary_call_without_an_answer_fails),
        cmocka_unit_test(errors_carry_code_and_text),
        cmocka_unit_test(unknown_services_and_methods_are_told_apart),
        cmocka_unit_test(a_deadline_ends_both_sides),
        cmocka_unit_test(a_deadline_holds_while_nobody_can_be_reached),
        cmocka_unit_test(cancelling_ends_both_sides_once),
        cmocka_unit_test(cancelling_works_before_there_is_a_connection),
        cmocka_unit_test(the_end_of_one_call_may_cancel_another),
        cmocka_unit_test(a_handler_may_answer_long_after_the_client_left),
        cmocka_unit_test(many_calls_share_a_connection),
        cmocka_unit_test(every_call_is_logged_with_its_id_at_both_ends),
    };
    struct CMUnitTest with_fixture[DV_COUNT(tests)];

    for (size_t i = 0; i < DV_COUNT(tests); i++) {
        with_fixture[i] = tests[i];
        with_fixture[i].setup_func = fixture_start;
        with_fixture[i].teardown_func = fixture_end;
    }
    return cmocka_run_group_tests(with_fixture, NULL, NULL);
}

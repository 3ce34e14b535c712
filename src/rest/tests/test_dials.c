#include "support/dvtest.h"

#include <string.h>

#include "base/buf.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "rest/tests/test_fetch.h"
#include "rest/tests/test_rest_fixture.h"

#define GOT_BYTES_MAX (64u << 20)

/* Both ends of a connection that has left HTTP. */
struct line {
    struct fixture *fixture;
    struct asker asker;
    struct dv_rest_dial dial;
    struct dv_buf got; /* by us */
    int n_opened;
    int n_rooms;
    int n_ended;
    bool cancels;        /* when something comes */
    struct dv_err ended; /* code DV_OK: success */
    struct dv_buf answer;

    struct dv_rest_tunnel tunnel; /* the server's end */
    unsigned status;              /* that it answers with instead of 101; 0: 101 */
    bool echoes;
    struct dv_buf heard; /* by the server */
    int n_tunnels_ended;
};

static struct line line;

/* ---- the server ---- */

static void on_tunnel_bytes(struct dv_rest_tunnel *tunnel, dv_str bytes)
{
    struct dv_err err;

    dv_buf_add(&line.heard, bytes);
    if (line.echoes)
        assert_ok(dv_rest_tunnel_send(tunnel, bytes, &err), &err);
}

static void on_tunnel_ended(struct dv_rest_tunnel *tunnel, const struct dv_err *err)
{
    (void)tunnel;
    (void)err;
    line.n_tunnels_ended++;
}

static void on_request(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct dv_err err;

    (void)ctx;
    assert_str(request->method, "POST");
    assert_str(request->path, "/exec");
    assert_str(request->query, "a=b");
    assert_str(dv_rest_request_field(request, DV_STR("Authorization")), "Bearer secret");
    if (line.status > 0) {
        dv_rest_call_reply(call, line.status, DV_STR("not for you"));
        return;
    }
    line.tunnel = (struct dv_rest_tunnel){.received = on_tunnel_bytes, .ended = on_tunnel_ended};
    dv_rest_call_add_field(call, DV_STR("X-Stream-Protocol-Version"), DV_STR("v4"));
    assert_ok(dv_rest_call_upgrade(call, DV_STR("SPDY/3.1"), &line.tunnel, &err), &err);
    assert_ok(dv_rest_tunnel_send(&line.tunnel, DV_STR("hello;"), &err), &err);
}

/* ---- our end ---- */

static void on_opened(struct dv_rest_dial *dial)
{
    line.n_opened++;
    assert_str(dv_rest_dial_field(dial, DV_STR("x-stream-protocol-version")), "v4");
    assert_str(dv_rest_dial_field(dial, DV_STR("absent")), "");
}

static void on_received(struct dv_rest_dial *dial, dv_str bytes)
{
    dv_buf_add(&line.got, bytes);
    if (line.cancels)
        dv_rest_dial_cancel(dial);
}

static void on_room(struct dv_rest_dial *dial)
{
    (void)dial;
    line.n_rooms++;
}

static void on_ended(struct dv_rest_dial *dial, const struct dv_err *err)
{
    struct dv_err late;

    line.n_ended++;
    line.ended.code = DV_OK;
    if (err)
        line.ended = *err;
    dv_buf_add(&line.answer, dial->answer);
    dv_rest_dial_cancel(dial); /* too late: nothing happens */
    dv_rest_dial_finish(dial);
    dv_rest_dial_pause(dial, true);
    assert_false(dv_rest_dial_send(dial, DV_STR("x"), &late));
    assert_int_equal(dv_rest_dial_unsent_bytes(dial), 0);
}

static int start(void **state)
{
    if (fixture_start(state) != 0)
        return -1;
    memset(&line, 0, sizeof(line));
    line.fixture = *state;
    line.fixture->options.handle = on_request;
    dv_buf_init(&line.got, GOT_BYTES_MAX);
    dv_buf_init(&line.heard, GOT_BYTES_MAX);
    dv_buf_init(&line.answer, GOT_BYTES_MAX);
    return 0;
}

static int end(void **state)
{
    int result = fixture_end(state);

    dv_buf_fini(&line.got);
    dv_buf_fini(&line.heard);
    dv_buf_fini(&line.answer);
    return result;
}

static void dial_now(void)
{
    static const struct dv_rest_field fields[] = {
        {DV_STR_INIT("Connection"), DV_STR_INIT("Upgrade") },
        {DV_STR_INIT("Upgrade"),    DV_STR_INIT("SPDY/3.1")},
    };

    line.dial = (struct dv_rest_dial){.method = DV_STR("POST"),
                                      .target = DV_STR("/exec?a=b"),
                                      .fields = fields,
                                      .n_fields = DV_COUNT(fields),
                                      .opened = on_opened,
                                      .received = on_received,
                                      .room = on_room,
                                      .ended = on_ended};
    dv_rest_client_set_token(line.asker.client, DV_STR("secret"));
    dv_rest_dial_start(line.asker.client, &line.dial);
    assert_int_equal(line.n_ended, 0);
}

static bool is_text(const struct dv_buf *buf, const char *text)
{
    return dv_str_eq(dv_buf_str(buf), dv_str_from_c(text));
}

static bool has_hello(void *ctx)
{
    (void)ctx;
    return is_text(&line.got, "hello;");
}

static bool has_both(void *ctx)
{
    (void)ctx;
    return is_text(&line.heard, "to you") && is_text(&line.got, "hello;to you");
}

static void wait_for(bool (*is_met)(void *ctx))
{
    assert_true(dv_loop_run_until(line.fixture->loop, is_met, NULL, 60000));
}

/* Opens it, with what is said at first. */
static void open_line(struct fixture *fixture)
{
    fixture_serve(fixture);
    asker_open(&line.asker, fixture);
    dial_now();
    wait_for(has_hello);
    assert_int_equal(line.n_opened, 1);
}

static void say(dv_str text)
{
    struct dv_err err;

    assert_ok(dv_rest_dial_send(&line.dial, text, &err), &err);
}

static void bytes_go_both_ways(void **state)
{
    line.echoes = true;
    open_line(*state);
    say(DV_STR("to "));
    say(DV_STR("you"));
    wait_for(has_both);
    wait_count(*state, &line.n_rooms, 1);
    dv_rest_dial_finish(&line.dial);
    wait_count(*state, &line.n_ended, 1);
    assert_int_equal(line.ended.code, DV_OK);
    wait_count(*state, &line.n_tunnels_ended, 1);
    asker_close(&line.asker);
}

static void they_do_under_tls(void **state)
{
    fixture_certify(*state);
    line.asker.options.ca = line.fixture->ca.cert;
    bytes_go_both_ways(state);
}

static void the_server_may_end_it(void **state)
{
    open_line(*state);
    dv_rest_tunnel_finish(&line.tunnel);
    wait_count(*state, &line.n_ended, 1);
    assert_int_equal(line.ended.code, DV_OK);
    asker_close(&line.asker);
}

static void it_may_be_broken_off_from_within(void **state)
{
    line.cancels = true;
    open_line(*state);
    wait_count(*state, &line.n_ended, 1);
    assert_int_equal(line.ended.code, DV_CANCELLED);
    wait_count(*state, &line.n_tunnels_ended, 1);
    asker_close(&line.asker);
}

static void the_client_takes_its_dials_along(void **state)
{
    open_line(*state);
    asker_close(&line.asker);
    assert_int_equal(line.n_ended, 1);
    assert_err(&line.ended, DV_CANCELLED, "the client was closed");
    wait_count(*state, &line.n_tunnels_ended, 1);
}

static void another_answer_is_handed_on(void **state)
{
    line.status = 403;
    fixture_serve(*state);
    asker_open(&line.asker, *state);
    dial_now();
    wait_count(*state, &line.n_ended, 1);
    assert_err(&line.ended, DV_FAILED_PRECONDITION, "answered 403");
    assert_int_equal(line.dial.status, 403);
    assert_true(is_text(&line.answer, "not for you"));
    assert_int_equal(line.n_opened, 0);
    asker_close(&line.asker);
}

static void a_server_that_is_not_there_is_told(void **state)
{
    line.asker.options.base_url = DV_STR("http://127.0.0.1:1");
    asker_open(&line.asker, *state);
    dial_now();
    wait_count(*state, &line.n_ended, 1);
    assert_err(&line.ended, DV_UNAVAILABLE, "Failed to connect");
    asker_close(&line.asker);
}

static void a_request_that_cannot_be_sent_is_not(void **state)
{
    static const struct dv_rest_field field = {DV_STR_INIT("A"), DV_STR_INIT("b\r\nC: d")};

    fixture_serve(*state);
    asker_open(&line.asker, *state);
    line.dial = (struct dv_rest_dial){.method = DV_STR("GET"),
                                      .target = DV_STR("/"),
                                      .fields = &field,
                                      .n_fields = 1,
                                      .opened = on_opened,
                                      .received = on_received,
                                      .ended = on_ended};
    dv_rest_dial_start(line.asker.client, &line.dial);
    wait_count(*state, &line.n_ended, 1);
    assert_err(&line.ended, DV_INVALID_ARGUMENT, "bad header field");
    asker_close(&line.asker);
}

static char block[64u * 1024u];

static void a_server_that_does_not_read_pushes_back(void **state)
{
    struct dv_err err;
    size_t n_sent = 0;
    int n_rooms;

    open_line(*state);
    memset(block, 'x', sizeof(block));
    dv_rest_tunnel_pause(&line.tunnel, true);
    for (int i = 0; i < 100; i++) {
        while (dv_rest_dial_send(&line.dial, (dv_str){block, sizeof(block)}, &err))
            n_sent += sizeof(block);
        assert_err(&err, DV_RESOURCE_EXHAUSTED, "has not read");
        settle(line.fixture);
    }
    assert_true(dv_rest_dial_unsent_bytes(&line.dial) <= DV_REST_DIAL_UNSENT_BYTES_MAX);
    n_rooms = line.n_rooms;
    dv_rest_tunnel_pause(&line.tunnel, false);
    wait_count(*state, &line.n_rooms, n_rooms + 1);
    dv_rest_dial_finish(&line.dial);
    wait_count(*state, &line.n_tunnels_ended, 1);
    assert_int_equal(line.heard.n, n_sent);
    asker_close(&line.asker);
}

static void who_is_paused_gets_nothing(void **state)
{
    struct dv_err err;

    open_line(*state);
    dv_rest_dial_pause(&line.dial, true);
    assert_ok(dv_rest_tunnel_send(&line.tunnel, DV_STR("to you"), &err), &err);
    settle(line.fixture);
    assert_true(is_text(&line.got, "hello;"));
    dv_rest_dial_pause(&line.dial, false);
    dv_buf_add_c(&line.heard, "to you");
    wait_for(has_both);
    asker_close(&line.asker);
    wait_count(*state, &line.n_tunnels_ended, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_go_both_ways, start, end),
        cmocka_unit_test_setup_teardown(they_do_under_tls, start, end),
        cmocka_unit_test_setup_teardown(the_server_may_end_it, start, end),
        cmocka_unit_test_setup_teardown(it_may_be_broken_off_from_within, start, end),
        cmocka_unit_test_setup_teardown(the_client_takes_its_dials_along, start, end),
        cmocka_unit_test_setup_teardown(another_answer_is_handed_on, start, end),
        cmocka_unit_test_setup_teardown(a_server_that_is_not_there_is_told, start, end),
        cmocka_unit_test_setup_teardown(a_request_that_cannot_be_sent_is_not, start, end),
        cmocka_unit_test_setup_teardown(a_server_that_does_not_read_pushes_back, start, end),
        cmocka_unit_test_setup_teardown(who_is_paused_gets_nothing, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

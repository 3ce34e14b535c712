/* Peers that break HTTP/2, or use it to do harm: the connection ends, and costs little until then.
 */
#include "support/dvtest.h"

#include <malloc.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "http2/http2.h"
#include "http2/session.h"
#include "http2/tests/test_side.h"
#include "http2/tests/test_wire.h"

#define REQUEST ":method=POST|:path=/a.B/C|content-type=application/grpc"
#define RESPONSE ":status=200|content-type=application/grpc"
/* What a peer may make us hold that keeps to no rule: frames to answer it, a header list. */
#define MEMORY_BYTES_MAX (16u << 20)

static void whoever_does_not_speak_http2_is_told_off(void **state)
{
    static const char *const texts[] = {
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\rx",
        "\x16\x03\x01\x02\x01\x01",
        "hello\n",
        "P",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    };
    struct dv_h2_options options = dv_h2_default_options(true);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        struct side server;
        struct dv_err err = {0};
        bool is_fine = true;

        side_init(&server, &options);
        for (size_t n = 0; is_fine && n < strlen(texts[i]); n++)
            is_fine = dv_h2_receive(server.h2, (dv_str){texts[i] + n, 1}, &err);
        (void)side_pull_all(&server);
        if (i == 4) /* so far it is right */
            assert_true(is_fine);
        else if (i == 5)
            assert_err(dv_h2_complaint(server.h2), DV_INTERNAL, "expected SETTINGS");
        else
            assert_err(&err, DV_INTERNAL, "the peer does not speak HTTP/2");
        assert_events(&server, "");
        side_fini(&server);
    }
}

static void nothing_is_heard_after_a_failure(void **state)
{
    struct dv_h2_options options = dv_h2_default_options(true);
    struct wire wire;
    struct side server;
    struct dv_err err;

    (void)state;
    wire_init(&wire);
    side_init(&server, &options);
    assert_false(dv_h2_receive(server.h2, DV_STR("GET / HTTP/1.1\r\n"), &err));
    for (int i = 0; i < 2; i++) {
        err = (struct dv_err){0};
        assert_false(dv_h2_receive(
            server.h2, wire_bytes(&wire, "preface\nsettings\nheaders 1 " REQUEST), &err));
        assert_err(&err, DV_INTERNAL, "the peer does not speak HTTP/2");
    }
    assert_events(&server, "");
    wire_part(&wire, &server);
}

static void bad_frames_end_the_connection(void **state)
{
    static const char *const frames[] = {
        "data 0 00",
        "data 9 00",
        "headers 0 " REQUEST,
        "headers 2 " REQUEST,
        "reset 0 8",
        "reset 9 8",
        "frame 1 3 0 00",
        "frame 0 4 0 00",
        "frame 0 4 1 000000000000",
        "frame 1 4 0 ",
        "settings 2=7",
        "settings 4=2147483648",
        "settings 5=1",
        "settings 5=16777216",
        "frame 0 6 0 00",
        "frame 1 6 0 0000000000000000",
        "frame 0 7 0 00",
        "goaway 1 0 0",
        "window 0 0",
        "window 0 2147483647",
        "frame 0 8 0 00",
        "continuation 1 ",
        "headers+part 1 " REQUEST "\nping 0000000000000000",
        "headers+part 1 " REQUEST "\ncontinuation 3 ",
        "frame 1 1 4 ffffffffffffffff",
        "frame 1 1 4 80",
        "frame 1 1 12 ff",
        "headers 1 " REQUEST "\nwindow 1 0",
        "headers 1 " REQUEST "\nframe 1 0 8 ff",
        "headers 1 " REQUEST "\nmessage+end 1 hi\nmessage+end 1 more",
        "headers 1 " REQUEST "\nmessage+end 1 hi\nheaders+end 1 a=b",
        "push 1 2 " REQUEST,
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(frames); i++) {
        struct wire wire;
        struct side server;
        const struct dv_err *complaint;
        size_t n_events;

        wire_meet_server(&wire, &server, NULL);
        server.on_message = NULL;
        wire_say(&wire, &server, frames[i]);
        n_events = server.n_begun + server.n_messages;
        wire_say(&wire, &server, "headers 5 " REQUEST "\nmessage+end 5 unheard");
        if (!strstr(wire_hear(&wire, &server), "goaway "))
            fail_msg("%s: heard %s", frames[i], dv_buf_c(&wire.heard));
        assert_true(dv_h2_is_over(server.h2));
        complaint = dv_h2_complaint(server.h2);
        assert_non_null(complaint);
        assert_err(complaint, DV_INTERNAL, "HTTP/2: ");
        assert_int_equal(server.n_begun + server.n_messages, n_events);
        wire_part(&wire, &server);
    }
}

static void bad_frames_of_a_server_end_the_connection(void **state)
{
    static const char *const frames[] = {
        "message 1 data before headers",
        "headers 3 " RESPONSE,
        "headers 2 " RESPONSE,
        "push 1 2 " REQUEST,
        "settings 2=1",
        "goaway 0 2 0",
        "headers+end 1 " RESPONSE "|grpc-status=0\nframe 0 0 0 00",
        "reset 3 8",
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(frames); i++) {
        struct dv_err gone;
        struct wire wire;
        struct side client;

        wire_meet_client(&wire, &client, NULL);
        (void)side_start(&client, "/a.B/C", DV_STR("hi"));
        (void)wire_hear(&wire, &client);
        wire_say(&wire, &client, frames[i]);
        (void)side_start(&client, "/a.B/C", DV_STR("not out yet"));
        if (!strstr(wire_hear(&wire, &client), "goaway "))
            fail_msg("%s: heard %s", frames[i], dv_buf_c(&wire.heard));
        assert_true(dv_h2_is_over(client.h2));
        gone = *dv_h2_complaint(client.h2);
        dv_h2_lose(client.h2, &gone);
        assert_int_equal(client.n_ended, 2);
        wire_part(&wire, &client);
    }
}

static void a_frame_longer_than_we_allow_is_refused_at_its_head(void **state)
{
    struct wire wire;
    struct side server;
    struct dv_err err;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    assert_ok(dv_h2_receive(server.h2, DV_STR("\xff\xff\xff\0\0\0\0\0\1"), &err), &err);
    assert_string_equal(wire_hear(&wire, &server), "goaway 0 FRAME_SIZE_ERROR\n");
    assert_true(dv_h2_is_over(server.h2));
    wire_part(&wire, &server);
}

static void more_calls_than_allowed_end_the_connection(void **state)
{
    struct dv_h2_options options = dv_h2_default_options(true);
    struct wire wire;
    struct side server;

    (void)state;
    options.calls_max = 2;
    wire_meet_server(&wire, &server, &options);
    wire_say(&wire, &server, "headers 1 " REQUEST "\nheaders 3 " REQUEST);
    wire_say(&wire, &server, "headers 5 " REQUEST);
    assert_int_equal(server.n_begun, 2);
    assert_non_null(strstr(wire_hear(&wire, &server), "goaway 3 PROTOCOL_ERROR\n"));
    wire_part(&wire, &server);
}

static void calls_beyond_a_limit_not_yet_known_are_refused(void **state)
{
    struct dv_h2_options options = dv_h2_default_options(true);
    struct wire wire;
    struct side server;

    (void)state;
    options.calls_max = 1;
    wire_init(&wire);
    side_init(&server, &options);
    wire_say(&wire, &server,
             "preface\nsettings\nheaders 1 " REQUEST "\nheaders 3 " REQUEST "\nmessage+end 3 hi");
    assert_events(&server, "ready\n#1 request /a.B/C\nrefused INTERNAL\n");
    assert_string_equal(wire_hear(&wire, &server), "reset 3 REFUSED_STREAM\n");
    wire_part(&wire, &server);
}

/* ---- floods, of peers that do not read ---- */

/* Again and again, on streams 1, 3, 5 ... where the text has a %u; true when that was too much. */
static bool is_flooded(struct wire *wire, struct side *server, const char *frames, size_t n_times)
{
    size_t before = mallinfo2().uordblks;
    struct dv_buf text;
    struct dv_err err;
    bool is_fine = true;

    server->is_quiet = true;
    dv_buf_init(&text, 4096);
    for (size_t i = 0; is_fine && i < n_times; i++) {
        dv_str rest = dv_str_from_c(frames);
        dv_str piece;

        dv_buf_clear(&text);
        while (rest.n > 0 && dv_str_split(&rest, '%', &piece)) {
            dv_buf_add(&text, piece);
            if (rest.n > 0)
                dv_buf_add_u64(&text, 2 * i + 1);
        }
        is_fine = dv_h2_receive(server->h2, wire_bytes(wire, dv_buf_c(&text)), &err);
        assert_true(nghttp2_session_get_outbound_queue_size(server->h2->ng) < 20000);
    }
    dv_buf_fini(&text);
    assert_true(mallinfo2().uordblks < before + MEMORY_BYTES_MAX);
    return !is_fine;
}

static void floods_cost_little_and_end_the_connection(void **state)
{
    static const struct {
        const char *frames;
        bool is_acked; /* the limit on calls is known to the peer */
    } cases[] = {
        {"ping 0000000000000000",                              true },
        {"settings",                                           true },
        {"settings 3=1 4=1",                                   true },
        {"headers %  " REQUEST,                                false},
        {"headers % :method=GET\nreset % 8",                   true },
        {"headers % " REQUEST "\nheaders % a=b\nreset % 8",    true },
        {"headers % " REQUEST "\nmessage+end % hi\nreset % 8", true },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_h2_options options = dv_h2_default_options(true);
        struct wire wire;
        struct side server;

        if (cases[i].is_acked) {
            wire_meet_server(&wire, &server, NULL);
        } else {
            wire_init(&wire);
            side_init(&server, &options);
            wire_say(&wire, &server, "preface\nsettings");
        }
        if (!is_flooded(&wire, &server, cases[i].frames, 200000))
            fail_msg("%s", cases[i].frames);
        wire_part(&wire, &server);
    }
}

static void harmless_floods_cost_little(void **state)
{
    static const char *const frames[] = {
        "ping+ack 0000000000000000",
        "priority % 0000000010",
        "frame 0 99 0 00000000",
        "window 0 1",
        "settings+ack",
        "goaway 0 0 0",
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(frames); i++) {
        struct wire wire;
        struct side server;

        wire_meet_server(&wire, &server, NULL);
        wire_say(&wire, &server, "headers 1 " REQUEST); /* else a GOAWAY were the end */
        dv_h2_shut_down(server.h2);
        (void)is_flooded(&wire, &server, frames[i], 100000);
        wire_part(&wire, &server);
    }
}

static void a_call_flooded_with_nothing_costs_little(void **state)
{
    static const char *const frames[] = {"data 1 ", "data+pad 1 ", "window 1 1", "headers 1 a=b"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(frames); i++) {
        struct wire wire;
        struct side server;

        wire_meet_server(&wire, &server, NULL);
        wire_say(&wire, &server, "headers 1 " REQUEST);
        (void)is_flooded(&wire, &server, frames[i], 100000);
        wire_part(&wire, &server);
    }
}

static void a_client_flooded_with_informational_headers_costs_little(void **state)
{
    struct wire wire;
    struct side client;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    (void)wire_hear(&wire, &client);
    assert_false(is_flooded(&wire, &client, "headers 1 :status=103|link=a", 100000));
    wire_part(&wire, &client);
}

static void calls_begun_and_given_up_too_fast_end_the_connection(void **state)
{
    struct wire wire;
    struct side server;
    struct dv_buf text;
    unsigned i = 0;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    server.is_quiet = true;
    dv_buf_init(&text, 4096);
    while (!dv_h2_is_over(server.h2)) { /* this one reads */
        dv_buf_clear(&text);
        dv_buf_printf(&text, "headers %u " REQUEST "\nreset %u 8", 2 * i + 1, 2 * i + 1);
        wire_say(&wire, &server, dv_buf_c(&text));
        (void)wire_hear(&wire, &server);
        i++;
        assert_true(i < 10000);
    }
    assert_err(dv_h2_complaint(server.h2), DV_INTERNAL, "INTERNAL_ERROR");
    dv_buf_fini(&text);
    wire_part(&wire, &server);
}

static void a_header_list_that_goes_on_and_on_ends_the_connection(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    wire_say(&wire, &server, "headers+part 1 " REQUEST);
    assert_true(is_flooded(&wire, &server, "continuation+part 1 ", 1000));
    assert_int_equal(server.n_begun, 0);
    wire_part(&wire, &server);
}

/* A field that the table has is one byte on the wire and four thousand to us. */
static void a_header_bomb_is_refused_and_costs_little(void **state)
{
    struct wire wire;
    struct side server;
    struct dv_buf text;
    size_t before;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    dv_buf_init(&text, 1u << 20);
    dv_buf_add_c(&text, "headers 1 " REQUEST "|x-bomb=");
    for (int i = 0; i < 3900; i++)
        dv_buf_add_char(&text, 'b');
    dv_buf_add_c(&text, "\nmessage+end 1 hi\nframe 3 1 5 ");
    for (int i = 0; i < 200000; i++)
        dv_buf_add_c(&text, "be"); /* the newest entry of the table */
    before = mallinfo2().uordblks;
    wire_say(&wire, &server, dv_buf_c(&text));
    assert_true(mallinfo2().uordblks < before + MEMORY_BYTES_MAX);
    assert_err(&server.last_refusal, DV_RESOURCE_EXHAUSTED, "header list");
    assert_int_equal(server.n_messages, 1);
    dv_buf_fini(&text);
    wire_part(&wire, &server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_does_not_speak_http2_is_told_off),
        cmocka_unit_test(nothing_is_heard_after_a_failure),
        cmocka_unit_test(bad_frames_end_the_connection),
        cmocka_unit_test(bad_frames_of_a_server_end_the_connection),
        cmocka_unit_test(a_frame_longer_than_we_allow_is_refused_at_its_head),
        cmocka_unit_test(more_calls_than_allowed_end_the_connection),
        cmocka_unit_test(calls_beyond_a_limit_not_yet_known_are_refused),
        cmocka_unit_test(floods_cost_little_and_end_the_connection),
        cmocka_unit_test(harmless_floods_cost_little),
        cmocka_unit_test(a_call_flooded_with_nothing_costs_little),
        cmocka_unit_test(a_client_flooded_with_informational_headers_costs_little),
        cmocka_unit_test(calls_begun_and_given_up_too_fast_end_the_connection),
        cmocka_unit_test(a_header_list_that_goes_on_and_on_ends_the_connection),
        cmocka_unit_test(a_header_bomb_is_refused_and_costs_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

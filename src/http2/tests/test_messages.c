/* Messages and frames have nothing to do with each other; and what the first bytes are. */
#include "support/dvtest.h"

#include <string.h>

#include "base/buf.h"
#include "http2/http2.h"
#include "http2/tests/test_side.h"
#include "http2/tests/test_wire.h"

#define REQUEST                                                                                    \
    ":method=POST|:scheme=http|:path=/a.B/C|:authority=localhost|content-type=application/grpc|"   \
    "te=trailers"
#define RESPONSE ":status=200|content-type=application/grpc"
#define FRAMES_BYTES_MAX 65536u

/* bytes[from, to) as a DATA frame on stream 1. */
static void put_data(struct dv_buf *frames, dv_str bytes, size_t from, size_t to)
{
    dv_buf_add_c(frames, "data 1 ");
    for (size_t i = from; i < to; i++)
        dv_buf_printf(frames, "%02x", (unsigned)(unsigned char)bytes.p[i]);
    dv_buf_add_char(frames, '\n');
}

static void assert_request_arrives(const char *frames)
{
    struct wire wire;
    struct side server;

    wire_meet_server(&wire, &server, NULL);
    wire_say(&wire, &server, "headers 1 " REQUEST);
    wire_say(&wire, &server, frames);
    assert_string_equal(wire_hear(&wire, &server), "headers 1 " RESPONSE "\ndata 1 of 16 bytes\n"
                                                   "headers+end 1 grpc-status=0\n");
    assert_events(&server, "#1 request /a.B/C\n#1 message hello world\n#1 ended OK\n");
    wire_part(&wire, &server);
}

static void a_request_may_be_cut_anywhere(void **state)
{
    dv_str bytes = DV_STR("\0\0\0\0\x0bhello world");
    struct dv_buf frames;

    (void)state;
    dv_buf_init(&frames, FRAMES_BYTES_MAX);
    for (size_t first = 0; first <= bytes.n; first++) {
        for (size_t second = first; second <= bytes.n; second++) {
            dv_buf_clear(&frames);
            put_data(&frames, bytes, 0, first);
            put_data(&frames, bytes, first, second);
            put_data(&frames, bytes, second, bytes.n);
            dv_buf_add_c(&frames, "data+end 1 ");
            assert_request_arrives(dv_buf_c(&frames));
        }
    }
    dv_buf_fini(&frames);
}

static void the_end_of_a_request_may_come_in_many_ways(void **state)
{
    static const char *const frames[] = {
        "message+end 1 hello world",
        "message+end+pad 1 hello world",
        "message+pad 1 hello world\ndata+end+pad 1 ",
        "message 1 hello world\ndata+end 1 ",
        "data 1 \ndata 1 \nmessage 1 hello world\ndata 1 \ndata+end 1 ",
        "message 1 hello world\nheaders+end 1 x-trailer=ignored",
        "message 1 hello world\nmessage+end 1 a second one is dropped",
        "message 1 hello world\ndata+end 1 0000",
        "message 1 hello world\ndata+end 1 ff00000000",
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(frames); i++)
        assert_request_arrives(frames[i]);
}

static void frames_of_other_kinds_may_come_in_between(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    wire_say(&wire, &server,
             "headers+pad 1 " REQUEST "\ndata 1 000000\nping 0102030405060708\n"
             "settings 4=1000 61443=7\ndata 1 0005\npriority 1 0000000010\nwindow 1 10\n"
             "frame 1 99 255 0011\nframe 0 10 0 00000000\ndata+end 1 68656c6c6f");
    assert_string_equal(wire_hear(&wire, &server),
                        "ping+ack 0102030405060708\nheaders 1 " RESPONSE
                        "\ndata 1 of 10 bytes\nheaders+end 1 grpc-status=0\n");
    assert_events(&server, "#1 request /a.B/C\n#1 message hello\n#1 ended OK\n");
    wire_part(&wire, &server);
}

static void a_header_list_may_go_on_in_further_frames(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    wire_say(&wire, &server,
             "headers+part 1 " REQUEST "\ncontinuation+part 1 \ncontinuation 1 \n"
             "message+end 1 hi");
    assert_events(&server, "#1 request /a.B/C\n#1 message hi\n");
    wire_part(&wire, &server);
}

static void assert_answer_arrives(const char *frames)
{
    struct wire wire;
    struct side client;

    wire_meet_client(&wire, &client, NULL);
    (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    assert_non_null(wire_hear(&wire, &client));
    wire_say(&wire, &client, "headers 1 " RESPONSE);
    wire_say(&wire, &client, frames);
    wire_say(&wire, &client, "headers+end 1 grpc-status=0|grpc-message=");
    assert_events(&client, "#1 message one\n#1 message\n#1 message three\n#1 ended OK\n");
    wire_part(&wire, &client);
}

static void an_answer_may_be_cut_anywhere(void **state)
{
    dv_str bytes = DV_STR("\0\0\0\0\x03one\0\0\0\0\0\0\0\0\0\x05three");
    struct dv_buf frames;

    (void)state;
    dv_buf_init(&frames, FRAMES_BYTES_MAX);
    for (size_t at = 0; at <= bytes.n; at++) { /* at the ends: all of it in one frame */
        dv_buf_clear(&frames);
        put_data(&frames, bytes, 0, at);
        put_data(&frames, bytes, at, bytes.n);
        assert_answer_arrives(dv_buf_c(&frames));
    }
    dv_buf_clear(&frames);
    for (size_t at = 0; at < bytes.n; at++)
        put_data(&frames, bytes, at, at + 1);
    assert_answer_arrives(dv_buf_c(&frames));
    dv_buf_fini(&frames);
}

static void an_answer_may_be_padded_and_interleaved(void **state)
{
    struct wire wire;
    struct side client;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    (void)side_start(&client, "/a.B/C", DV_STR("hi"));
    (void)side_start(&client, "/a.B/D", DV_STR("ho"));
    assert_non_null(wire_hear(&wire, &client));
    wire_say(&wire, &client,
             "headers+pad 3 " RESPONSE "\nheaders 1 " RESPONSE "\ndata 1 00000000\n"
             "data+pad 3 000000\nping 0000000000000001\ndata 1 036f6e\ndata 3 000374776f\n"
             "data 1 65\nheaders+end 3 grpc-status=5\nheaders+end+pad 1 grpc-status=0");
    assert_events(&client, "#2 message two\n#1 message one\n#2 ended NOT_FOUND\n#1 ended OK\n");
    assert_string_equal(wire_hear(&wire, &client), "ping+ack 0000000000000001\n");
    wire_part(&wire, &client);
}

static void a_request_looks_as_peers_expect_it(void **state)
{
    struct dv_h2_start start = {
        .path = DV_STR("/a.B/C"),
        .has_timeout = true,
        .timeout_ns = 45000000000,
    };
    struct wire wire;
    struct side client;
    struct dv_err err;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    assert_non_null(side_try(&client, &start, DV_STR("hi"), &err));
    assert_string_equal(wire_hear(&wire, &client),
                        "headers 1 :method=POST|:scheme=http|:path=/a.B/C|:authority=localhost|"
                        "content-type=application/grpc|user-agent=davit/" DV_VERSION "|te=trailers|"
                        "grpc-timeout=45000000u\ndata+end 1 of 7 bytes\n");
    wire_part(&wire, &client);
}

static void an_answer_looks_as_peers_expect_it(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    wire_say(&wire, &server, "headers 1 " REQUEST "\nmessage+end 1 hi");
    assert_string_equal(wire_hear(&wire, &server),
                        "headers 1 :status=200|content-type=application/grpc\n"
                        "data 1 of 7 bytes\nheaders+end 1 grpc-status=0\n");
    server.on_message = NULL;
    wire_say(&wire, &server, "headers 3 " REQUEST "\nmessage+end 3 hi");
    assert_string_equal(wire_hear(&wire, &server), "");
    dv_h2_finish(server.call, DV_NOT_FOUND, DV_STR("no Ger\xc3\xa4t, 5 %\n"));
    assert_string_equal(wire_hear(&wire, &server),
                        "headers+end 3 :status=200|content-type=application/grpc|grpc-status=5|"
                        "grpc-message=no Ger%C3%A4t, 5 %25%0A\n");
    wire_part(&wire, &server);
}

static void a_long_error_text_is_cut_at_a_character(void **state)
{
    struct wire wire;
    struct side server;
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, FRAMES_BYTES_MAX);
    for (int i = 0; i < 3; i++) { /* whichever byte of a character the limit falls on */
        dv_buf_add_char(&text, 'x');
        for (int n = 0; n < 5000; n++)
            dv_buf_add_c(&text, "\xe2\x82\xac");
        for (int is_late = 0; is_late < 2; is_late++) {
            dv_str heard;

            wire_meet_server(&wire, &server, NULL);
            server.on_message = NULL;
            wire_say(&wire, &server, "headers 1 " REQUEST "\nmessage+end 1 hi");
            if (is_late)
                side_send(server.call, DV_STR("one"));
            dv_h2_finish(server.call, DV_ABORTED, dv_buf_str(&text));
            heard = dv_str_from_c(wire_hear(&wire, &server));
            assert_true(dv_str_ends_with(heard, DV_STR("%E2%82%AC\n")));
            assert_in_range(heard.n, 3000, 4000);
            wire_part(&wire, &server);
        }
        dv_buf_clear(&text);
        for (int n = 0; n < i; n++)
            dv_buf_add_char(&text, 'x');
    }
    dv_buf_fini(&text);
}

static void a_long_error_text_need_not_be_text(void **state)
{
    char text[2000];
    struct wire wire;
    struct side server;

    (void)state;
    memset(text, 0x80, sizeof(text)); /* the middle of a character, for ever */
    wire_meet_server(&wire, &server, NULL);
    server.on_message = NULL;
    wire_say(&wire, &server, "headers 1 " REQUEST "\nmessage+end 1 hi");
    dv_h2_finish(server.call, DV_ABORTED, (dv_str){text, sizeof(text)});
    assert_in_range(strlen(wire_hear(&wire, &server)), 3000, 4000);
    wire_part(&wire, &server);
}

/* All there is to send. */
static void hear_bytes(struct side *side, struct dv_buf *out)
{
    dv_str bytes;

    dv_buf_clear(out);
    while (dv_h2_pull(side->h2, &bytes))
        dv_buf_add(out, bytes);
}

static void each_side_greets_before_it_has_heard_anything(void **state)
{
    struct dv_buf out;
    struct pair pair;
    struct wire wire;

    (void)state;
    dv_buf_init(&out, FRAMES_BYTES_MAX);
    wire_init(&wire);
    pair_init(&pair, NULL, NULL);
    hear_bytes(&pair.server, &out);
    assert_true(dv_str_eq(
        dv_buf_str(&out),
        wire_bytes(&wire, "settings 3=1024 4=1048576 5=262144 6=16384\nwindow 0 8323073")));
    hear_bytes(&pair.client, &out);
    assert_true(dv_str_eq(
        dv_buf_str(&out),
        wire_bytes(&wire, "preface\nsettings 2=0 4=4194304 5=262144 6=16384\nwindow 0 8323073")));
    pair_fini(&pair);
    wire_fini(&wire);
    dv_buf_fini(&out);
}

static void settings_are_acknowledged(void **state)
{
    struct wire wire;
    struct side server;
    struct dv_buf out;

    (void)state;
    dv_buf_init(&out, FRAMES_BYTES_MAX);
    wire_meet_server(&wire, &server, NULL);
    wire_say(&wire, &server, "settings 4=1000 5=20000 65027=1\nsettings");
    hear_bytes(&server, &out);
    assert_true(dv_str_eq(dv_buf_str(&out), wire_bytes(&wire, "settings+ack\nsettings+ack")));
    dv_buf_fini(&out);
    wire_part(&wire, &server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_may_be_cut_anywhere),
        cmocka_unit_test(the_end_of_a_request_may_come_in_many_ways),
        cmocka_unit_test(frames_of_other_kinds_may_come_in_between),
        cmocka_unit_test(a_header_list_may_go_on_in_further_frames),
        cmocka_unit_test(an_answer_may_be_cut_anywhere),
        cmocka_unit_test(an_answer_may_be_padded_and_interleaved),
        cmocka_unit_test(a_request_looks_as_peers_expect_it),
        cmocka_unit_test(an_answer_looks_as_peers_expect_it),
        cmocka_unit_test(a_long_error_text_is_cut_at_a_character),
        cmocka_unit_test(a_long_error_text_need_not_be_text),
        cmocka_unit_test(each_side_greets_before_it_has_heard_anything),
        cmocka_unit_test(settings_are_acknowledged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

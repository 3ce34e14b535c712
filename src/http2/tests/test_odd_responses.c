/* What a client makes of answers that a careful server would not send. */
#include "support/dvtest.h"

#include <stdio.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "http2/http2.h"
#include "http2/session.h"
#include "http2/tests/test_side.h"
#include "http2/tests/test_wire.h"

#define HEAD "headers 1 :status=200|content-type=application/grpc"
#define TAIL "\nheaders+end 1 grpc-status=0"
#define ONE "#1 message one\n"

/* A client with one call that has gone out. */
static void meet(struct wire *wire, struct side *client)
{
    wire_meet_client(wire, client, NULL);
    (void)side_start(client, "/a.B/C", DV_STR("hi"));
    assert_non_null(wire_hear(wire, client));
}

static void receive_in_chunks(struct side *side, dv_str bytes, size_t chunk)
{
    struct dv_err err;

    for (size_t at = 0; at < bytes.n; at += chunk)
        assert_ok(dv_h2_receive(side->h2, dv_str_slice(bytes, at, at + chunk), &err), &err);
}

static void assert_case(const char *frames, const char *events, const char *heard, size_t chunk)
{
    struct wire wire;
    struct side client;
    dv_str bytes;

    meet(&wire, &client);
    bytes = wire_bytes(&wire, frames);
    receive_in_chunks(&client, bytes, chunk ? chunk : bytes.n);
    if (strcmp(wire_hear(&wire, &client), heard) != 0)
        fail_msg("%s\ngot  %s\nwant %s", frames, dv_buf_c(&wire.heard), heard);
    if (strcmp(dv_buf_c(&client.events), events) != 0)
        fail_msg("%s\ngot  %s\nwant %s", frames, dv_buf_c(&client.events), events);
    assert_int_equal(client.h2->n_calls, 0);
    assert_int_equal(client.h2->partial_bytes, 0);
    (void)side_start(&client, "/a.B/C", DV_STR("next"));
    (void)wire_hear(&wire, &client);
    wire_say(&wire, &client, "headers+end 3 :status=200|grpc-status=0");
    assert_int_equal(client.last_end.status.code, DV_OK); /* the connection is as good as before */
    wire_part(&wire, &client);
}

static void assert_answer(const char *frames, const char *events, const char *heard)
{
    assert_case(frames, events, heard, 0);
    assert_case(frames, events, heard, 1);
}

static void an_answer_may_be_only_trailers(void **state)
{
    (void)state;
    assert_answer("headers+end 1 :status=200|content-type=application/grpc|grpc-status=5",
                  "#1 ended NOT_FOUND\n", "");
    assert_answer("headers+end 1 :status=200|grpc-status=0|grpc-message=", "#1 ended OK\n", "");
    assert_answer("headers+end 1 grpc-status=14", "#1 ended UNAVAILABLE\n", "");
    assert_answer("headers+end 1 :status=503|grpc-status=7", "#1 ended PERMISSION_DENIED\n", "");
}

static void an_answer_without_a_status_has_that_of_http(void **state)
{
    static const struct {
        unsigned http;
        const char *code;
    } cases[] = {
        {200, "UNKNOWN"          },
        {400, "INTERNAL"         },
        {401, "UNAUTHENTICATED"  },
        {403, "PERMISSION_DENIED"},
        {404, "UNIMPLEMENTED"    },
        {429, "UNAVAILABLE"      },
        {500, "UNKNOWN"          },
        {502, "UNAVAILABLE"      },
        {503, "UNAVAILABLE"      },
        {504, "UNAVAILABLE"      },
        {600, "UNKNOWN"          },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        char frames[128];
        char events[64];

        (void)snprintf(events, sizeof(events), "#1 ended %s\n", cases[i].code);
        (void)snprintf(frames, sizeof(frames), "headers+end 1 :status=%u", cases[i].http);
        assert_answer(frames, events, "");
        if (cases[i].http == 200)
            continue;
        (void)snprintf(frames, sizeof(frames),
                       "headers 1 :status=%u|content-type=text/html\ndata+end 1 3c68746d6c3e",
                       cases[i].http);
        assert_answer(frames, events,
                      cases[i].http == 400 ? "reset 1 PROTOCOL_ERROR\n" : "reset 1 CANCEL\n");
    }
}

static void a_status_that_is_no_number_is_unknown(void **state)
{
    (void)state;
    assert_answer(HEAD "\nheaders+end 1 grpc-status=", "#1 ended UNKNOWN\n", "");
    assert_answer(HEAD "\nheaders+end 1 grpc-status=OK", "#1 ended UNKNOWN\n", "");
    assert_answer(HEAD "\nheaders+end 1 grpc-status=-1", "#1 ended UNKNOWN\n", "");
    assert_answer(HEAD "\nheaders+end 1 grpc-status=99999999999", "#1 ended UNKNOWN\n", "");
    assert_answer(HEAD "\nheaders+end 1 grpc-status=17", "#1 ended CODE\n", "");
}

static void a_status_counts_only_at_the_end(void **state)
{
    (void)state;
    assert_answer(HEAD "|grpc-status=5\nheaders+end 1 a=b", "#1 ended UNKNOWN\n", "");
    assert_answer(HEAD "|grpc-status=5\nmessage 1 one" TAIL, ONE "#1 ended OK\n", "");
}

static void the_content_type_must_be_that_of_grpc(void **state)
{
    (void)state;
    assert_answer("headers 1 :status=200\nmessage 1 one" TAIL, "#1 ended UNKNOWN\n",
                  "reset 1 CANCEL\n");
    assert_answer("headers 1 :status=200|content-type=text/html\nmessage 1 one" TAIL,
                  "#1 ended UNKNOWN\n", "reset 1 CANCEL\n");
    assert_answer("headers 1 :status=200|content-type=application/grpc+proto\nmessage 1 one" TAIL,
                  ONE "#1 ended OK\n", "");
}

static void the_http_status_must_be_one(void **state)
{
    (void)state;
    assert_answer("headers 1 content-type=application/grpc\nmessage 1 one" TAIL,
                  "#1 ended UNKNOWN\n", "reset 1 CANCEL\n");
    assert_answer("headers 1 :status=ok|content-type=application/grpc\nmessage 1 one" TAIL,
                  "#1 ended UNKNOWN\n", "reset 1 CANCEL\n");
    assert_answer("headers 1 :status=99999999999|content-type=application/grpc" TAIL,
                  "#1 ended UNKNOWN\n", "reset 1 CANCEL\n");
}

static void informational_headers_are_skipped(void **state)
{
    (void)state;
    assert_answer("headers 1 :status=100\n" HEAD "\nmessage 1 one" TAIL, ONE "#1 ended OK\n", "");
    assert_answer("headers 1 :status=103|link=a\nheaders 1 :status=103|link=b\n" HEAD
                  "\nmessage 1 one" TAIL,
                  ONE "#1 ended OK\n", "");
    assert_answer("headers+end 1 :status=100", "#1 ended UNKNOWN\n", ""); /* there is no more */
    assert_answer("headers 1 :status=100\nmessage 1 one" TAIL, "#1 ended INTERNAL\n",
                  "reset 1 PROTOCOL_ERROR\n");
}

static void an_answer_must_end_with_trailers(void **state)
{
    (void)state;
    assert_answer(HEAD "\nmessage+end 1 one", ONE "#1 ended INTERNAL\n",
                  "reset 1 PROTOCOL_ERROR\n");
    assert_answer(HEAD "\nmessage 1 one\ndata+end 1 ", ONE "#1 ended INTERNAL\n",
                  "reset 1 PROTOCOL_ERROR\n");
    assert_answer(HEAD "\nmessage 1 one\nheaders 1 grpc-status=0" TAIL, ONE "#1 ended INTERNAL\n",
                  "reset 1 PROTOCOL_ERROR\n");
    assert_answer(HEAD "\n" HEAD "\nmessage 1 one" TAIL, "#1 ended INTERNAL\n",
                  "reset 1 PROTOCOL_ERROR\n");
}

static void a_message_must_not_end_too_early(void **state)
{
    (void)state;
    assert_answer(HEAD "\ndata 1 00" TAIL, "#1 ended INTERNAL\n", "");
    assert_answer(HEAD "\ndata 1 0000000005" TAIL, "#1 ended INTERNAL\n", "");
    assert_answer(HEAD "\nmessage 1 one\ndata 1 0000000005aa" TAIL, ONE "#1 ended INTERNAL\n", "");
    assert_answer(HEAD "\ndata 1 0000000005aa\nheaders+end 1 grpc-status=10", "#1 ended ABORTED\n",
                  "");
}

static void compression_and_unknown_flags_are_refused(void **state)
{
    static const char *const frames[] = {
        HEAD "\ndata 1 010000000161" TAIL,
        HEAD "|grpc-encoding=gzip\ndata 1 010000000161" TAIL,
        HEAD "\ndata 1 020000000161" TAIL,
        HEAD "\ndata 1 ff" TAIL,
    };

    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_answer(frames[i], "#1 ended INTERNAL\n", "reset 1 PROTOCOL_ERROR\n");
    assert_answer(frames[3], "#1 ended INTERNAL\n", ""); /* over before its prefix is whole */
    assert_answer(HEAD "|grpc-encoding=gzip\nmessage 1 one" TAIL, ONE "#1 ended OK\n", "");
}

static void a_reset_ends_the_call(void **state)
{
    static const char *const codes[] = {
        [NGHTTP2_NO_ERROR] = "INTERNAL",
        [NGHTTP2_PROTOCOL_ERROR] = "INTERNAL",
        [NGHTTP2_INTERNAL_ERROR] = "INTERNAL",
        [NGHTTP2_FLOW_CONTROL_ERROR] = "RESOURCE_EXHAUSTED",
        [NGHTTP2_SETTINGS_TIMEOUT] = "INTERNAL",
        [NGHTTP2_STREAM_CLOSED] = "INTERNAL",
        [NGHTTP2_FRAME_SIZE_ERROR] = "INTERNAL",
        [NGHTTP2_REFUSED_STREAM] = "unprocessed UNAVAILABLE",
        [NGHTTP2_CANCEL] = "CANCELLED",
        [NGHTTP2_COMPRESSION_ERROR] = "INTERNAL",
        [NGHTTP2_CONNECT_ERROR] = "INTERNAL",
        [NGHTTP2_ENHANCE_YOUR_CALM] = "RESOURCE_EXHAUSTED",
        [NGHTTP2_INADEQUATE_SECURITY] = "PERMISSION_DENIED",
        [NGHTTP2_HTTP_1_1_REQUIRED] = "INTERNAL",
        "INTERNAL",
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(codes); i++) {
        char frames[64];
        char events[64];

        (void)snprintf(frames, sizeof(frames), "reset 1 %zu", i);
        (void)snprintf(events, sizeof(events), "#1 ended %s\n", codes[i]);
        assert_answer(frames, events, "");
    }
    assert_answer(HEAD "\nreset 1 7", "#1 ended UNAVAILABLE\n", ""); /* it has begun */
    assert_answer(HEAD "\nmessage 1 one\nreset 1 7", ONE "#1 ended UNAVAILABLE\n", "");
    assert_answer(HEAD "\nmessage 1 one" TAIL "\nreset 1 0", ONE "#1 ended OK\n", "");
    assert_answer(HEAD "\nmessage 1 one" TAIL "\nreset 1 8", ONE "#1 ended OK\n", "");
}

static void what_comes_for_an_ended_call_is_dropped(void **state)
{
    (void)state;
    assert_answer("reset 1 8\n" HEAD "\nmessage 1 one" TAIL, "#1 ended CANCELLED\n", "");
    assert_answer("headers 1 :status=404\nmessage 1 one\n" HEAD TAIL, "#1 ended UNIMPLEMENTED\n",
                  "reset 1 CANCEL\n");
}

static void the_text_of_a_status_is_decoded(void **state)
{
    static const struct {
        const char *sent;
        const char *text;
    } cases[] = {
        {"no%20device%C3%A4", "no device\xc3\xa4"},
        {"100%",              "100%"             },
        {"100%2",             "100%2"            },
        {"%zz%41",            "%zzA"             },
        {"raw \xc3\xa4",      "raw \xc3\xa4"     },
        {"nul%00byte",        "nul%00byte"       },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct wire wire;
        struct side client;
        char frames[128];

        meet(&wire, &client);
        (void)snprintf(frames, sizeof(frames), "headers+end 1 grpc-status=3|grpc-message=%s",
                       cases[i].sent);
        wire_say(&wire, &client, frames);
        assert_int_equal(client.last_end.status.code, DV_INVALID_ARGUMENT);
        assert_string_equal(client.last_end.status.msg, cases[i].text);
        wire_part(&wire, &client);
    }
}

static void a_header_list_has_a_size(void **state)
{
    static const struct {
        size_t n_fields;
        size_t value_bytes;
        const char *events;
    } cases[] = {
        {61,  1,     "#1 ended OK\n"                },
        {64,  1,     "#1 ended RESOURCE_EXHAUSTED\n"},
        {200, 1,     "#1 ended RESOURCE_EXHAUSTED\n"},
        {1,   17000, "#1 ended RESOURCE_EXHAUSTED\n"},
        {1,   60000, "#1 ended RESOURCE_EXHAUSTED\n"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases) * 2; i++) {
        struct wire wire;
        struct side client;
        struct dv_buf frames;

        dv_buf_init(&frames, 1u << 20);
        dv_buf_add_c(&frames, i % 2 ? HEAD "\nheaders+end 1 grpc-status=0"
                                    : "headers+end 1 :status=200|grpc-status=0");
        for (size_t field = 0; field < cases[i / 2].n_fields; field++) {
            dv_buf_printf(&frames, "|x%zu=", field);
            for (size_t n = 0; n < cases[i / 2].value_bytes; n++)
                dv_buf_add_char(&frames, 'v');
        }
        meet(&wire, &client);
        wire_say(&wire, &client, dv_buf_c(&frames));
        (void)wire_hear(&wire, &client);
        assert_events(&client, cases[i / 2].events);
        wire_part(&wire, &client);
        dv_buf_fini(&frames);
    }
}

/* The window is closed, so that the request cannot get out whole. */
static void an_answer_may_come_before_the_request_is_out(void **state)
{
    struct wire wire;
    struct side client;

    (void)state;
    wire_meet_client(&wire, &client, NULL);
    wire_say(&wire, &client, "settings 4=3");
    (void)side_start(&client, "/a.B/C", DV_STR("hello"));
    assert_non_null(strstr(wire_hear(&wire, &client), "data 1 of 3 bytes\n"));
    wire_say(&wire, &client, "headers+end 1 :status=200|grpc-status=8");
    assert_events(&client, "#1 ended RESOURCE_EXHAUSTED\n");
    assert_int_equal(client.h2->unsent_bytes, 0);
    assert_string_equal(wire_hear(&wire, &client), "reset 1 CANCEL\n");
    wire_say(&wire, &client, "reset 1 0\nwindow 1 100");
    assert_string_equal(wire_hear(&wire, &client), "");
    wire_part(&wire, &client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_may_be_only_trailers),
        cmocka_unit_test(an_answer_without_a_status_has_that_of_http),
        cmocka_unit_test(a_status_that_is_no_number_is_unknown),
        cmocka_unit_test(a_status_counts_only_at_the_end),
        cmocka_unit_test(the_content_type_must_be_that_of_grpc),
        cmocka_unit_test(the_http_status_must_be_one),
        cmocka_unit_test(informational_headers_are_skipped),
        cmocka_unit_test(an_answer_must_end_with_trailers),
        cmocka_unit_test(a_message_must_not_end_too_early),
        cmocka_unit_test(compression_and_unknown_flags_are_refused),
        cmocka_unit_test(a_reset_ends_the_call),
        cmocka_unit_test(what_comes_for_an_ended_call_is_dropped),
        cmocka_unit_test(the_text_of_a_status_is_decoded),
        cmocka_unit_test(a_header_list_has_a_size),
        cmocka_unit_test(an_answer_may_come_before_the_request_is_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

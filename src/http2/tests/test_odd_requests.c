/* What a server makes of requests that a careful client would not send. */
#include "support/dvtest.h"

#include <string.h>

#include "base/buf.h"
#include "http2/http2.h"
#include "http2/session.h"
#include "http2/tests/test_side.h"
#include "http2/tests/test_wire.h"

#define POST ":method=POST"
#define PATH "|:path=/a.B/C"
#define TYPE "|content-type=application/grpc"
#define MESSAGE "\nmessage+end 1 hi"

/* What is heard. */
#define ECHO                                                                                       \
    "headers 1 :status=200|content-type=application/grpc\ndata 1 of 7 bytes\n"                     \
    "headers+end 1 grpc-status=0\n"
#define STATUS(http, code, text)                                                                   \
    "headers+end 1 :status=" http "|content-type=application/grpc|grpc-status=" code               \
    "|grpc-message=" text "\n"

#define LACKING                                                                                    \
    "headers+end 1 :status=200|content-type=application/grpc|grpc-status=12|"                      \
    "grpc-accept-encoding=identity|"                                                               \
    "grpc-message=a compressed message; only identity is supported\n"

/* What the handler is told. */
#define OK "#1 request /a.B/C\n#1 message hi\n#1 ended OK\n"
#define REFUSED(code) "#1 request /a.B/C\nrefused " code "\n#1 ended OK\n"

/* Requests that differ only in what is wrong with them. */
static const char *const bad_methods[] = {
    "headers 1 :method=GET" PATH TYPE MESSAGE,
    "headers 1 :method=" PATH TYPE MESSAGE,
    "headers 1 :method=post" PATH TYPE MESSAGE,
    "headers 1 :path=/a.B/C" TYPE MESSAGE,
    "headers 1 " POST "|" POST PATH TYPE MESSAGE,
    "headers+end 1 :method=GET|:path=/index.html|accept=*/*",
    "headers+end 1 ",
};

static const char *const bad_types[] = {
    "headers 1 " POST PATH MESSAGE,
    "headers 1 " POST PATH "|content-type=" MESSAGE,
    "headers 1 " POST PATH "|content-type=application/grpcx" MESSAGE,
    "headers 1 " POST PATH "|content-type=application/json" MESSAGE,
    "headers 1 " POST PATH "|Content-Type=application/grpc" MESSAGE,
};

static const char *const bad_paths[] = {
    "headers 1 " POST TYPE MESSAGE,
    "headers 1 " POST "|:path=" TYPE MESSAGE,
    "headers 1 " POST "|:path=/" TYPE MESSAGE,
    "headers 1 " POST "|:path=*" TYPE MESSAGE,
    "headers 1 " POST "|:path=a.B/C" TYPE MESSAGE,
    "headers 1 " POST "|:path=/a.B" TYPE MESSAGE,
    "headers 1 " POST "|:path=/a.B/" TYPE MESSAGE,
    "headers 1 " POST "|:path=//C" TYPE MESSAGE,
    "headers 1 " POST "|:path=//" TYPE MESSAGE,
    "headers 1 " POST PATH PATH TYPE MESSAGE,
};

static const char *const bad_timeouts[] = {
    "headers 1 " POST PATH TYPE "|grpc-timeout=" MESSAGE,
    "headers 1 " POST PATH TYPE "|grpc-timeout=1" MESSAGE,
    "headers 1 " POST PATH TYPE "|grpc-timeout=S" MESSAGE,
    "headers 1 " POST PATH TYPE "|grpc-timeout=123456789n" MESSAGE,
    "headers 1 " POST PATH TYPE "|grpc-timeout=-1S" MESSAGE,
};

/* Real clients differ in these, and none of them matters. */
static const char *const harmless[] = {
    "headers 1 " POST PATH "|content-type=application/grpc+proto" MESSAGE,
    "headers 1 " POST PATH "|content-type=application/grpc;a=b" MESSAGE,
    "headers 1 " POST PATH "|content-type=Application/gRPC" MESSAGE,
    "headers 1 " POST PATH TYPE "|:authority=" MESSAGE,
    "headers 1 " POST PATH TYPE "|:authority=/var/run/a plugin.sock" MESSAGE,
    "headers 1 " POST PATH TYPE "|:authority=%2Fvar%2Frun%2Fa.sock" MESSAGE,
    "headers 1 " POST PATH TYPE "|:authority=unix:///run/a.sock" MESSAGE,
    "headers 1 " POST PATH TYPE "|:authority=a|:authority=b|host=c" MESSAGE,
    "headers 1 " POST PATH TYPE "|:scheme=https|te=gzip|:unknown=pseudo" MESSAGE,
    "headers 1 te=trailers|user-agent=|x-up=1" TYPE "|" POST PATH MESSAGE,
    "headers 1 " POST PATH TYPE "|grpc-accept-encoding=gzip|content-length=1" MESSAGE,
    "headers 1 " POST PATH TYPE "|grpc-encoding=identity" MESSAGE,
    "headers 1 " POST PATH TYPE "|grpc-encoding=gzip" MESSAGE,
    "headers 1 " POST PATH TYPE "|grpc-timeout=0n" MESSAGE,
    "headers 1 " POST PATH TYPE "|X-Upper=Case|x-bad=\x01\x7f|=" MESSAGE,
};

static const char *const without_message[] = {
    "headers 1 " POST PATH TYPE "\ndata+end 1 ",
    "headers 1 " POST PATH TYPE "\ndata+end+pad 1 ",
    "headers 1 " POST PATH TYPE "\nheaders+end 1 a=b",
};

static const char *const half_messages[] = {
    "headers 1 " POST PATH TYPE "\ndata+end 1 00",
    "headers 1 " POST PATH TYPE "\ndata+end 1 00000000",
    "headers 1 " POST PATH TYPE "\ndata+end 1 0000000003",
    "headers 1 " POST PATH TYPE "\ndata 1 0000000003\ndata+end 1 6868",
    "headers 1 " POST PATH TYPE "\ndata 1 000000000368\nheaders+end 1 a=b",
};

static const char *const unknown_flags[] = {
    "headers 1 " POST PATH TYPE "\ndata+end 1 020000000161",
    "headers 1 " POST PATH TYPE "\ndata+end 1 ff00000000",
};

static const char *const compressed_as_nothing[] = {
    "headers 1 " POST PATH TYPE "\ndata+end 1 010000000161",
    "headers 1 " POST PATH TYPE "|grpc-encoding=identity\ndata+end 1 010000000161",
    "headers 1 " POST PATH TYPE "|grpc-encoding=\ndata+end 1 010000000161",
};

static const char *const compressed[] = {
    "headers 1 " POST PATH TYPE "|grpc-encoding=gzip\ndata+end 1 010000000161",
    "headers 1 " POST PATH TYPE "|grpc-encoding=snappy\ndata+end 1 0100000000",
};

static const char *const second_lists[] = {
    "headers 1 " POST PATH TYPE "\nheaders 1 a=b" MESSAGE,
    "headers 1 " POST PATH TYPE "\ndata 1 0000\nheaders 1 " POST PATH TYPE MESSAGE,
};

static const char *const given_up[] = {
    "headers 1 " POST PATH TYPE "\nreset 1 8",
    "headers 1 " POST PATH TYPE "\nreset 1 0",
    "headers 1 " POST PATH TYPE "\ndata 1 00000000ff00\nreset 1 2",
    "headers 1 " POST PATH TYPE "\nreset 1 8\nmessage+end 1 late\nheaders+end 1 late=1",
};

static void receive_in_chunks(struct side *side, dv_str bytes, size_t chunk)
{
    struct dv_err err;

    for (size_t at = 0; at < bytes.n; at += chunk)
        assert_ok(dv_h2_receive(side->h2, dv_str_slice(bytes, at, at + chunk), &err), &err);
}

static void assert_case(const char *frames, const char *heard, const char *events, size_t chunk)
{
    struct wire wire;
    struct side server;
    dv_str bytes;

    wire_meet_server(&wire, &server, NULL);
    bytes = wire_bytes(&wire, frames);
    receive_in_chunks(&server, bytes, chunk ? chunk : bytes.n);
    if (strcmp(wire_hear(&wire, &server), heard) != 0)
        fail_msg("%s\ngot  %s\nwant %s", frames, dv_buf_c(&wire.heard), heard);
    if (strcmp(dv_buf_c(&server.events), events) != 0)
        fail_msg("%s\ngot  %s\nwant %s", frames, dv_buf_c(&server.events), events);
    assert_int_equal(server.h2->n_calls, 0);
    assert_int_equal(server.h2->partial_bytes, 0);
    assert_int_equal(server.h2->unsent_bytes, 0);
    wire_say(&wire, &server, "headers 3 " POST PATH TYPE "\nmessage+end 3 next");
    assert_true(server.n_messages > 0); /* the connection is as good as before */
    wire_part(&wire, &server);
}

static void assert_each(const char *const *frames, size_t n, const char *heard, const char *events)
{
    for (size_t i = 0; i < n; i++) {
        assert_case(frames[i], heard, events, 0);
        assert_case(frames[i], heard, events, 1);
    }
}

static void the_method_must_be_post(void **state)
{
    (void)state;
    assert_each(bad_methods, DV_COUNT(bad_methods),
                STATUS("405", "13", "the HTTP method is not POST"), "refused INTERNAL\n");
}

static void the_content_type_must_be_that_of_grpc(void **state)
{
    (void)state;
    assert_each(bad_types, DV_COUNT(bad_types),
                STATUS("415", "13", "the content-type is not application/grpc"),
                "refused INTERNAL\n");
}

static void the_path_must_name_a_service_and_a_method(void **state)
{
    (void)state;
    assert_each(bad_paths, DV_COUNT(bad_paths),
                STATUS("200", "12", "the path is not /service/method"), "refused UNIMPLEMENTED\n");
}

static void a_malformed_timeout_is_a_bad_request(void **state)
{
    (void)state;
    assert_each(bad_timeouts, DV_COUNT(bad_timeouts), STATUS("400", "13", "malformed grpc-timeout"),
                "refused INTERNAL\n");
}

static void what_real_clients_differ_in_is_accepted(void **state)
{
    (void)state;
    assert_each(harmless, DV_COUNT(harmless), ECHO, OK);
}

static void a_request_without_a_message_is_refused(void **state)
{
    (void)state;
    assert_each(without_message, DV_COUNT(without_message),
                STATUS("200", "13", "the request has no message"), REFUSED("INTERNAL"));
}

static void a_request_that_ends_too_early_is_refused(void **state)
{
    (void)state;
    assert_each(half_messages, DV_COUNT(half_messages),
                STATUS("200", "13", "the request ends in the middle of a message"),
                REFUSED("INTERNAL"));
}

static void unknown_flags_of_messages_are_refused(void **state)
{
    (void)state;
    assert_each(unknown_flags, DV_COUNT(unknown_flags),
                STATUS("200", "13", "a message with an unknown flag"), REFUSED("INTERNAL"));
}

static void a_compressed_message_needs_an_encoding(void **state)
{
    (void)state;
    assert_each(compressed_as_nothing, DV_COUNT(compressed_as_nothing),
                STATUS("200", "13", "a compressed message without grpc-encoding"),
                REFUSED("INTERNAL"));
}

static void a_compressed_message_is_answered_with_what_we_have(void **state)
{
    (void)state;
    assert_each(compressed, DV_COUNT(compressed), LACKING, REFUSED("UNIMPLEMENTED"));
}

static void a_second_header_list_resets_the_call(void **state)
{
    (void)state;
    assert_each(second_lists, DV_COUNT(second_lists), "reset 1 PROTOCOL_ERROR\n",
                "#1 request /a.B/C\nrefused INTERNAL\n#1 ended INTERNAL\n");
}

static void a_client_may_give_up_at_any_time(void **state)
{
    (void)state;
    assert_each(given_up, DV_COUNT(given_up), "", "#1 request /a.B/C\n#1 ended CANCELLED\n");
}

static void headers_alone_are_no_request(void **state)
{
    static const char *const frames[] = {"headers+end 1 " POST PATH TYPE};

    (void)state;
    assert_each(frames, 1, STATUS("200", "13", "the request has no message"), "refused INTERNAL\n");
}

static void the_rest_of_a_refused_request_is_not_waited_for(void **state)
{
    static const char *const frames[] = {"headers 1 :method=GET"};

    (void)state;
    assert_each(frames, 1, STATUS("405", "13", "the HTTP method is not POST") "reset 1 NO_ERROR\n",
                "refused INTERNAL\n");
}

static void a_refused_request_may_be_reset(void **state)
{
    static const char *const frames[] = {"headers 1 :method=GET\nreset 1 0"};

    (void)state;
    assert_each(frames, 1, "", "refused INTERNAL\n");
}

static void an_answered_request_may_be_reset(void **state)
{
    static const char *const frames[] = {"headers 1 " POST PATH TYPE "\nmessage 1 hi\nreset 1 0"};

    (void)state;
    assert_each(frames, 1, "", "#1 request /a.B/C\n#1 message hi\n#1 ended CANCELLED\n");
}

static void a_connection_header_resets_the_call(void **state)
{
    static const char *const frames[] = {"headers 1 " POST PATH TYPE "|connection=close" MESSAGE};

    (void)state;
    assert_each(frames, 1, "reset 1 PROTOCOL_ERROR\n", "refused INTERNAL\n");
}

static void a_window_too_large_resets_the_call(void **state)
{
    static const char *const frames[] = {"headers 1 " POST PATH TYPE
                                         "\nwindow 1 2147483647" MESSAGE};

    (void)state;
    assert_each(frames, 1, "reset 1 FLOW_CONTROL_ERROR\n",
                "#1 request /a.B/C\nrefused INTERNAL\n#1 ended CANCELLED\n");
}

#define TOO_LARGE STATUS("431", "8", "the header list is too large")

static void a_header_list_has_a_size(void **state)
{
    static const struct {
        size_t n_fields;
        size_t value_bytes;
        bool is_fine;
    } cases[] = {
        {61,  10,    true }, /* with the three that must be there 64 */
        {62,  10,    false},
        {200, 10,    false},
        {1,   16000, true },
        {1,   16384, false},
        {1,   60000, false},
        {40,  350,   true },
        {40,  400,   false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const char *heard = cases[i].is_fine ? ECHO : TOO_LARGE;
        const char *events = cases[i].is_fine ? OK : "refused RESOURCE_EXHAUSTED\n";
        struct dv_buf frames;

        dv_buf_init(&frames, 1u << 20);
        dv_buf_add_c(&frames, "headers 1 " POST PATH TYPE);
        for (size_t field = 0; field < cases[i].n_fields; field++) {
            dv_buf_printf(&frames, "|x%zu=", field);
            for (size_t n = 0; n < cases[i].value_bytes; n++)
                dv_buf_add_char(&frames, 'v');
        }
        dv_buf_add_c(&frames, MESSAGE);
        assert_case(dv_buf_c(&frames), heard, events, 0);
        assert_case(dv_buf_c(&frames), heard, events, 1);
        dv_buf_fini(&frames);
    }
}

static void check_zero_timeout(struct side *side, struct dv_h2_call *call,
                               const struct dv_h2_request *request)
{
    (void)side;
    (void)call;
    assert_true(request->has_timeout);
    assert_int_equal(request->timeout_ns, 0);
}

static void a_request_shows_what_was_sent(void **state)
{
    struct wire wire;
    struct side server;

    (void)state;
    wire_meet_server(&wire, &server, NULL);
    server.on_request = check_zero_timeout;
    wire_say(&wire, &server,
             "headers 1 x-one=1|" POST PATH TYPE "|:authority=/run/a.sock|user-agent=grpc-go/1.79|"
             "te=trailers|grpc-timeout=0S|grpc-accept-encoding=gzip" MESSAGE);
    assert_int_equal(server.n_begun, 1);
    wire_part(&wire, &server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_method_must_be_post),
        cmocka_unit_test(the_content_type_must_be_that_of_grpc),
        cmocka_unit_test(the_path_must_name_a_service_and_a_method),
        cmocka_unit_test(a_malformed_timeout_is_a_bad_request),
        cmocka_unit_test(what_real_clients_differ_in_is_accepted),
        cmocka_unit_test(a_request_without_a_message_is_refused),
        cmocka_unit_test(a_request_that_ends_too_early_is_refused),
        cmocka_unit_test(unknown_flags_of_messages_are_refused),
        cmocka_unit_test(a_compressed_message_needs_an_encoding),
        cmocka_unit_test(a_compressed_message_is_answered_with_what_we_have),
        cmocka_unit_test(a_second_header_list_resets_the_call),
        cmocka_unit_test(a_client_may_give_up_at_any_time),
        cmocka_unit_test(headers_alone_are_no_request),
        cmocka_unit_test(the_rest_of_a_refused_request_is_not_waited_for),
        cmocka_unit_test(a_refused_request_may_be_reset),
        cmocka_unit_test(an_answered_request_may_be_reset),
        cmocka_unit_test(a_connection_header_resets_the_call),
        cmocka_unit_test(a_window_too_large_resets_the_call),
        cmocka_unit_test(a_header_list_has_a_size),
        cmocka_unit_test(a_request_shows_what_was_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

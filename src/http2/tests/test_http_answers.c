/* The answers of a server's session: whole and streamed, their ends, and clients that do not read.
 */
#include "support/dvtest.h"

#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "http2/http2_server.h"
#include "http2/tests/test_guest.h"

/* The window that HTTP/2 begins with. */
#define FIRST_WINDOW 65535u

static void whole_answers_carry_their_length(void **state)
{
    static const struct {
        const char *method;
        struct dv_h2_answer answer;
        const char *heard;
    } rows[] = {
        {"GET",
         {.status = 200, .body = {DV_STR_INIT("hello"), NULL, NULL}},
         "headers 1 :status=200|content-length=5\ndata+end 1 of 5 bytes\n"                                          },
        {"GET",  {.status = 404},                                     "headers+end 1 :status=404|content-length=0\n"},
 /* answers that have no body */
        {"HEAD",
         {.status = 200, .body = {DV_STR_INIT("hello"), NULL, NULL}},
         "headers+end 1 :status=200|content-length=5\n"                                                             },
        {"HEAD", {.status = 200, .has_more = true},                   "headers+end 1 :status=200\n"                 },
        {"GET",  {.status = 204},                                     "headers+end 1 :status=204\n"                 },
        {"GET",
         {.status = 304, .body = {DV_STR_INIT("hello"), NULL, NULL}},
         "headers+end 1 :status=304\n"                                                                              },
    };
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, 4096);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct guest guest;

        guest_meet(&guest, NULL);
        guest.on_complete = NULL;
        dv_buf_clear(&text);
        dv_buf_printf(&text, "headers+end 1 :method=%s|:scheme=http|:authority=h|:path=/",
                      rows[i].method);
        guest_say(&guest, dv_buf_c(&text));
        dv_h2_stream_answer(guest.stream, &rows[i].answer);
        dv_h2_stream_answer(guest.stream, &rows[i].answer); /* a second one is none */
        assert_string_equal(guest_hear(&guest), rows[i].heard);
        assert_int_equal(guest.n_ended, 1);
        guest_part(&guest);
    }
    dv_buf_fini(&text);
}

static void fields_that_cannot_be_sent_are_left_out(void **state)
{
    static const struct dv_h2_field fields[] = {
        {DV_STR_INIT("Content-Type"),      DV_STR_INIT("text/plain")},
        {DV_STR_INIT("Connection"),        DV_STR_INIT("close")     },
        {DV_STR_INIT("transfer-encoding"), DV_STR_INIT("chunked")   },
        {DV_STR_INIT("Content-Length"),    DV_STR_INIT("99")        },
        {DV_STR_INIT("Keep-Alive"),        DV_STR_INIT("5")         },
        {DV_STR_INIT("Upgrade"),           DV_STR_INIT("h2c")       },
        {DV_STR_INIT("x-bad"),             DV_STR_INIT("a\r\nb: c") },
        {DV_STR_INIT("x bad"),             DV_STR_INIT("a")         },
        {DV_STR_INIT(":status"),           DV_STR_INIT("500")       },
        {DV_STR_INIT(""),                  DV_STR_INIT("a")         },
        {DV_STR_INIT("Warning"),           DV_STR_INIT("")          },
    };
    struct dv_h2_answer answer = {.status = 200, .fields = fields, .n_fields = DV_COUNT(fields)};
    struct guest guest;

    (void)state;
    guest_meet(&guest, NULL);
    guest.on_complete = NULL;
    guest_say(&guest, "headers+end 1 " GET);
    dv_h2_stream_answer(guest.stream, &answer);
    assert_string_equal(
        guest_hear(&guest),
        "headers+end 1 :status=200|content-type=text/plain|warning=|content-length=0\n");
    guest_part(&guest);
}

static void send(struct guest *guest, size_t n)
{
    struct dv_h2_bytes piece = guest_bytes(guest, n);
    struct dv_err err;

    assert_ok(dv_h2_stream_send(guest->stream, &piece, &err), &err);
}

static void an_answer_may_come_in_pieces(void **state)
{
    struct guest guest;
    struct dv_h2_bytes late;
    struct dv_err err;

    (void)state;
    guest_meet(&guest, NULL);
    guest.on_complete = guest_begin;
    guest_say(&guest, "headers+end 1 " GET);
    assert_string_equal(guest_hear(&guest), "headers 1 :status=200\n");
    assert_int_equal(guest.n_drained, 1);
    send(&guest, 3);
    send(&guest, 0);
    send(&guest, 4);
    assert_int_equal(dv_h2_stream_unsent_bytes(guest.stream), 7);
    assert_int_equal(dv_h2_server_unsent_bytes(guest.server), 7);
    assert_int_equal(guest.n_released, 1); /* of the empty one */
    assert_string_equal(guest_hear(&guest), "data 1 of 7 bytes\n");
    assert_int_equal(guest.n_released, 3);
    send(&guest, 5);
    dv_h2_stream_finish(guest.stream);
    late = guest_bytes(&guest, 1);
    assert_false(dv_h2_stream_send(guest.stream, &late, &err));
    assert_err(&err, DV_CANCELLED, "takes no more");
    assert_int_equal(guest.n_released, 4);
    assert_string_equal(guest_hear(&guest), "data+end 1 of 5 bytes\n");
    assert_seen(&guest, "#1 GET https://h/a\n#1 complete\n#1 ended OK\n");
    guest_part(&guest);
}

static void send_when_drained(struct guest *guest, struct dv_h2_stream *stream)
{
    if (guest->left == 0) {
        dv_h2_stream_finish(stream);
        return;
    }
    guest->left--;
    send(guest, 100);
}

static void a_producer_may_wait_until_all_is_drained(void **state)
{
    struct guest guest;

    (void)state;
    guest_meet(&guest, NULL);
    guest.on_complete = guest_begin;
    guest.on_drained = send_when_drained;
    guest.left = 3;
    guest_say(&guest, "headers+end 1 " GET);
    assert_string_equal(guest_hear(&guest), "headers 1 :status=200\ndata 1 of 100 bytes\n"
                                            "data 1 of 100 bytes\ndata 1 of 100 bytes\n"
                                            "data+end 1 of 0 bytes\n");
    assert_int_equal(guest.n_ended, 1);
    guest_part(&guest);
}

static void a_client_that_does_not_read_costs_no_more_than_the_limit(void **state)
{
    struct dv_h2_server_options options = {.unsent_bytes_max = 100000};
    struct guest guest;
    struct dv_h2_bytes piece;
    struct dv_err err;

    (void)state;
    guest_meet(&guest, &options);
    guest.on_complete = guest_begin;
    guest_say(&guest, "headers+end 1 " GET);
    (void)guest_hear(&guest);
    send(&guest, 1u << 20); /* one piece always may */
    piece = guest_bytes(&guest, 1);
    assert_false(dv_h2_stream_send(guest.stream, &piece, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "the client does not read");
    assert_int_equal(guest.n_released, 1);
    (void)guest_hear(&guest);
    assert_int_equal(dv_h2_stream_unsent_bytes(guest.stream), (1u << 20) - FIRST_WINDOW);
    guest_say(&guest, "window 0 1000000\nwindow 1 1000000");
    (void)guest_hear(&guest);
    assert_int_equal(dv_h2_stream_unsent_bytes(guest.stream), 0);
    assert_int_equal(guest.n_released, 2);
    guest_say(&guest, "reset 1 8");
    assert_err(&guest.last_err, DV_CANCELLED, "the client has reset the stream: CANCEL");
    guest_part(&guest);
}

static void a_long_answer_leaves_room_for_short_ones(void **state)
{
    struct guest guest;

    (void)state;
    guest_meet(&guest, NULL);
    guest.on_complete = guest_begin;
    guest_say(&guest, "window 0 10000000\nheaders+end 1 " GET);
    (void)guest_hear(&guest);
    send(&guest, 60000);
    guest.on_complete = guest_answer;
    guest_say(&guest, "headers+end 3 " GET);
    /* frames of 16 KiB take turns */
    assert_string_equal(guest_hear(&guest), "headers 3 :status=200|content-length=2\n"
                                            "data 1 of 16384 bytes\ndata+end 3 of 2 bytes\n"
                                            "data 1 of 16384 bytes\ndata 1 of 16384 bytes\n"
                                            "data 1 of 10848 bytes\n");
    guest_part(&guest);
}

static void a_reset_breaks_an_answer_off(void **state)
{
    struct guest guest;

    (void)state;
    guest_meet(&guest, NULL);
    guest.on_complete = guest_begin;
    guest_say(&guest, "headers+end 1 " GET);
    send(&guest, 100);
    dv_h2_stream_reset(guest.stream);
    dv_h2_stream_reset(guest.stream);
    dv_h2_stream_finish(guest.stream);
    assert_int_equal(guest.n_released, 1);
    assert_seen(&guest, "#1 GET https://h/a\n#1 complete\n"); /* told later */
    dv_h2_server_settle(guest.server);
    assert_seen(&guest, "#1 ended CANCELLED\n");
    assert_string_equal(guest_hear(&guest), "reset 1 INTERNAL_ERROR\n");
    guest_part(&guest);
}

static void reset_it(struct guest *guest, struct dv_h2_stream *stream)
{
    (void)guest;
    dv_h2_stream_reset(stream);
}

static void reset_request(struct guest *guest, struct dv_h2_stream *stream,
                          const struct dv_h2_http_request *request)
{
    (void)request;
    reset_it(guest, stream);
}

static void streams_may_be_reset_in_every_callback(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct guest guest;

        guest_meet(&guest, NULL);
        guest.on_request = i == 0 ? reset_request : NULL;
        guest.on_body = i == 1 ? reset_it : NULL;
        guest.on_complete = i == 2 ? reset_it : guest_begin;
        guest.on_drained = i == 3 ? reset_it : NULL;
        guest.on_ended = reset_it;
        guest.on_refused = i == 4 ? reset_it : NULL;
        guest_say(&guest, i == 4 ? "headers 1 " POST "|host=x\ndata 1 6869\ndata+end 1 6869"
                                 : "headers 1 " POST "\ndata 1 6869\ndata+end 1 6869");
        (void)guest_hear(&guest);
        guest_say(&guest, "headers 3 " POST "\ndata 3 6869\nreset 3 8");
        (void)guest_hear(&guest);
        guest_part(&guest);
    }
}

static void a_paused_body_is_held_back_and_concerns_no_other(void **state)
{
    struct guest guest;
    struct dv_buf text;
    char zeros[2 * 16384 + 1];

    (void)state;
    guest_meet(&guest, NULL);
    guest.is_quiet = true;
    dv_buf_init(&text, 1u << 20);
    memset(zeros, '0', sizeof(zeros) - 1);
    zeros[sizeof(zeros) - 1] = '\0';
    guest_say(&guest, "headers 1 " POST);
    dv_h2_stream_pause(guest.stream, true);
    dv_buf_printf(&text, "data 1 %s", zeros);
    for (int i = 0; i < 16; i++) /* all that the window of 256 KiB allows */
        guest_say(&guest, dv_buf_c(&text));
    assert_int_equal(guest.n_body_bytes, 16 * 16384);
    dv_buf_clear(&text);
    dv_buf_printf(&text, "headers 3 " POST "\ndata+end 3 %s", zeros);
    guest_say(&guest, dv_buf_c(&text)); /* the connection's window is open */
    assert_int_equal(guest.n_complete, 1);
    (void)guest_hear(&guest);
    assert_null(dv_h2_server_complaint(guest.server));
    guest_say(&guest, "data 1 00"); /* one more than was allowed */
    assert_string_equal(guest_hear(&guest), "reset 1 FLOW_CONTROL_ERROR\n");
    dv_buf_fini(&text);
    guest_part(&guest);
}

static void a_body_goes_on_after_a_pause(void **state)
{
    struct guest guest;
    struct dv_buf text;
    char zeros[2 * 16384 + 1];

    (void)state;
    guest_meet(&guest, NULL);
    guest.is_quiet = true;
    dv_buf_init(&text, 1u << 20);
    memset(zeros, '0', sizeof(zeros) - 1);
    zeros[sizeof(zeros) - 1] = '\0';
    guest_say(&guest, "headers 1 " POST);
    dv_buf_printf(&text, "data 1 %s", zeros);
    for (int i = 0; i < 200; i++) {
        dv_h2_stream_pause(guest.stream, i % 16 < 15);
        guest_say(&guest, dv_buf_c(&text));
        (void)guest_hear(&guest);
        assert_null(dv_h2_server_complaint(guest.server));
    }
    assert_int_equal(guest.n_body_bytes, 200 * 16384);
    dv_buf_fini(&text);
    guest_part(&guest);
}

static void a_client_that_leaves_is_answered_to_the_end(void **state)
{
    struct guest guest;

    (void)state;
    guest_meet(&guest, NULL);
    guest.on_complete = NULL;
    guest_say(&guest, "headers+end 1 " GET "\ngoaway 0 0 0");
    (void)guest_hear(&guest);
    assert_false(dv_h2_server_is_over(guest.server));
    guest_answer(&guest, guest.stream);
    assert_non_null(strstr(guest_hear(&guest), "data+end 1 of 2 bytes"));
    guest_part(&guest);
}

static void a_server_that_leaves_takes_what_is_under_way(void **state)
{
    struct guest guest;

    (void)state;
    guest_meet(&guest, NULL);
    guest.on_complete = NULL;
    guest_say(&guest, "headers+end 1 " GET);
    dv_h2_server_shut_down(guest.server);
    dv_h2_server_shut_down(guest.server);
    assert_string_equal(guest_hear(&guest), "goaway 2147483647 NO_ERROR\nping 0000000000000000\n");
    guest_say(&guest, "headers+end 3 " GET); /* it crossed the GOAWAY */
    guest_answer(&guest, guest.stream);
    guest_say(&guest, "ping+ack 0000000000000000");
    assert_string_equal(guest_hear(&guest), "headers 3 :status=200|content-length=2\n"
                                            "goaway 3 NO_ERROR\n"
                                            "data+end 3 of 2 bytes\n");
    assert_false(dv_h2_server_is_over(guest.server));
    guest_say(&guest, "reset 1 8");
    (void)guest_hear(&guest);
    assert_true(dv_h2_server_is_over(guest.server));
    guest_part(&guest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_answers_carry_their_length),
        cmocka_unit_test(fields_that_cannot_be_sent_are_left_out),
        cmocka_unit_test(an_answer_may_come_in_pieces),
        cmocka_unit_test(a_producer_may_wait_until_all_is_drained),
        cmocka_unit_test(a_client_that_does_not_read_costs_no_more_than_the_limit),
        cmocka_unit_test(a_long_answer_leaves_room_for_short_ones),
        cmocka_unit_test(a_reset_breaks_an_answer_off),
        cmocka_unit_test(streams_may_be_reset_in_every_callback),
        cmocka_unit_test(a_paused_body_is_held_back_and_concerns_no_other),
        cmocka_unit_test(a_body_goes_on_after_a_pause),
        cmocka_unit_test(a_client_that_leaves_is_answered_to_the_end),
        cmocka_unit_test(a_server_that_leaves_takes_what_is_under_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a server's session makes of requests: those of real clients, odd ones, and malformed ones.
 */
#include "support/dvtest.h"

#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "http2/http2_server.h"
#include "http2/tests/test_guest.h"

static void requests_are_handed_on_and_answered(void **state)
{
    static const struct {
        const char *says;
        const char *seen;
    } rows[] = {
        {"headers+end 1 " GET "?b=c|accept=*/*",
         "#1 GET https://h/a?b=c accept=*/*\n#1 complete\n"                                                                 },
        {"headers 1 " POST "|content-length=2\ndata+end 1 6869",
         "#1 POST https://h/a content-length=2 of 2 with body\n#1 body hi\n#1 complete\n"                                   },
        {"headers 1 " POST "\ndata 1 68\ndata 1 69\ndata+end 1 ",
         "#1 POST https://h/a with body\n#1 body h\n#1 body i\n#1 complete\n"                                               },
 /* trailers mean nothing */
        {"headers 1 " POST "\ndata 1 68\nheaders+end 1 x-sum=1",
         "#1 POST https://h/a with body\n#1 body h\n#1 complete\n"                                                          },
 /* fields in their order, a name more than once, an empty value */
        {"headers+end 1 " GET "|b=1|a=2|b=3|c=",
         "#1 GET https://h/a b=1 a=2 b=3 c=\n#1 complete\n"                                                                 },
 /* a host field instead of :authority, or the same as that */
        {"headers+end 1 :method=GET|:scheme=http|:path=/|host=h:80",
         "#1 GET http://h:80/\n#1 complete\n"                                                                               },
        {"headers+end 1 " GET "|host=H",                                     "#1 GET https://h/a\n#1 complete\n"            },
        {"headers+end 1 :method=OPTIONS|:scheme=https|:authority=h|:path=*",
         "#1 OPTIONS https://h*\n#1 complete\n"                                                                             },
        {"headers+end 1 " GET "|te=trailers",                                "#1 GET https://h/a te=trailers\n#1 complete\n"},
 /* in pieces, padded */
        {"headers+part+end+pad 1 " GET "\ncontinuation 1 ",                  "#1 GET https://h/a\n#1 complete\n"            },
        {"headers 1 " POST "\ndata+pad+end 1 6869",
         "#1 POST https://h/a with body\n#1 body hi\n#1 complete\n"                                                         },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct guest guest;

        guest_meet(&guest, NULL);
        guest_say(&guest, rows[i].says);
        assert_seen(&guest, rows[i].seen);
        assert_string_equal(guest_hear(&guest),
                            "headers 1 :status=200|content-length=2\ndata+end 1 of 2 bytes\n");
        assert_seen(&guest, "#1 ended OK\n");
        assert_int_equal(guest.n_released, 1);
        guest_part(&guest);
    }
}

/* RFC 9113, 8.1.1: a malformed request is a stream error, and the connection goes on. */
static void malformed_headers_are_reset(void **state)
{
    static const char *const headers[] = {
        ":scheme=https|:authority=h|:path=/a",                /* no :method */
        ":method=GET|:authority=h|:path=/a",                  /* no :scheme */
        ":method=GET|:scheme=https|:authority=h",             /* no :path */
        ":method=GET|:scheme=https|:path=/a",                 /* no :authority, no host */
        ":method=GET|:scheme=https|:authority=h|:path=",      /* an empty path */
        ":method=GET|:scheme=https|:authority=h|:path=a",     /* not from the root */
        ":method=GET|:scheme=https|:authority=h|:path=*",     /* only for OPTIONS */
        GET "|:method=GET",                                   /* twice */
        GET "|:path=/b",                                      /* twice */
        GET "|:status=200",                                   /* not of requests */
        GET "|:foo=bar",                                      /* unknown */
        ":method=GET|:scheme=https|x=y|:authority=h|:path=/", /* behind a field */
        GET "|connection=close",
        GET "|connection=keep-alive",
        GET "|keep-alive=5",
        GET "|proxy-connection=close",
        GET "|transfer-encoding=chunked",
        GET "|upgrade=websocket",
        GET "|te=gzip",
        GET "|X-Upper=1",
        GET "|x\x01y=1",
        GET "|x y=1",
        GET "|=1",
        GET "|x=a\x01"
            "b",
        GET "|x=a\nb",
        GET "|x=a\rb",
        GET "|host=h|host=h",
        ":method=GET|:scheme=https|:path=/|host=",
        ":method=GET|:scheme=https|:authority=|:path=/",
        ":method=GET|:scheme=https|:path=/|host=h|host=i",
        GET "|content-length=-1",
        GET "|content-length=1x",
        GET "|content-length=",
        GET "|content-length=1|content-length=1",
        GET "|content-length=99999999999999999999",
        GET "|content-length=1", /* and nothing follows */
    };
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, 4096);
    for (size_t i = 0; i < DV_COUNT(headers); i++) {
        struct guest guest;

        guest_meet(&guest, NULL);
        dv_buf_clear(&text);
        dv_buf_printf(&text, "headers+end 1 %s", headers[i]);
        /* A newline would end the frame's text; another one is as good here. */
        for (char *c = text.p; *c; c++)
            if (*c == '\n')
                *c = '\x0b';
        guest_say(&guest, dv_buf_c(&text));
        if (strcmp(guest_hear(&guest), "reset 1 PROTOCOL_ERROR\n") != 0 &&
            strcmp(dv_buf_c(&guest.wire.heard), "reset 1 INTERNAL_ERROR\n") != 0)
            fail_msg("%s: %s", headers[i], dv_buf_c(&guest.wire.heard));
        assert_seen(&guest, "complaint INVALID_ARGUMENT\n");
        guest_say(&guest, "headers+end 3 " GET);
        assert_string_equal(guest_hear(&guest),
                            "headers 3 :status=200|content-length=2\ndata+end 3 of 2 bytes\n");
        guest_part(&guest);
    }
    dv_buf_fini(&text);
}

static void refused_requests_are_answered_by_the_session(void **state)
{
    static const struct {
        const char *fields;
        const char *status;
        const char *why;
    } rows[] = {
        {GET "|host=other",                 "400", "differs from"},
        {":method=CONNECT|:authority=h:80", "501", "CONNECT"     },
    };
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, 4096);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct guest guest;

        guest_meet(&guest, NULL);
        dv_buf_clear(&text);
        dv_buf_printf(&text, "headers+end 1 %s", rows[i].fields);
        guest_say(&guest, dv_buf_c(&text));
        assert_err(&guest.last_err,
                   strcmp(rows[i].status, "501") == 0 ? DV_UNIMPLEMENTED : DV_INVALID_ARGUMENT,
                   rows[i].why);
        dv_buf_clear(&text);
        dv_buf_printf(&text,
                      "headers 1 :status=%s|content-type=text/plain|content-length=24\n"
                      "data+end 1 of 24 bytes\n",
                      rows[i].status);
        assert_string_equal(guest_hear(&guest), dv_buf_c(&text));
        dv_buf_clear(&text);
        dv_buf_printf(&text, "#1 refused %s\n#1 ended OK\n", rows[i].status);
        assert_seen(&guest, dv_buf_c(&text));
        guest_part(&guest);
    }
    dv_buf_fini(&text);
}

/* Older releases of nghttp2 leave it to the session, newer ones reset the stream themselves. */
static void a_user_in_the_authority_is_refused(void **state)
{
    struct guest guest;
    const char *heard;

    (void)state;
    guest_meet(&guest, NULL);
    guest_say(&guest, "headers+end 1 :method=GET|:scheme=https|:authority=u@h|:path=/");
    heard = guest_hear(&guest);
    if (!strstr(heard, ":status=400") && !strstr(heard, "reset 1"))
        fail_msg("it heard: %s", heard);
    if (strstr(dv_buf_c(&guest.events), "#1 GET"))
        fail_msg("it was taken: %s", dv_buf_c(&guest.events));
    guest_part(&guest);
}

static void answer_in_own_words(struct guest *guest, struct dv_h2_stream *stream)
{
    struct dv_h2_answer answer = {.status = 418};

    (void)guest;
    dv_h2_stream_answer(stream, &answer);
}

static void a_handler_may_refuse_in_its_own_words(void **state)
{
    struct guest guest;

    (void)state;
    guest_meet(&guest, NULL);
    guest.on_refused = answer_in_own_words;
    guest_say(&guest, "headers 1 " POST "|host=other\ndata 1 6869");
    assert_string_equal(guest_hear(&guest), "headers+end 1 :status=418|content-length=0\n"
                                            "reset 1 NO_ERROR\n");
    assert_seen(&guest, "#1 refused 400\n#1 ended OK\n");
    guest_part(&guest);
}

/* Frames hold 16 KiB, so that a long list has to come in several; the wire splits none. */
static void header_lists_over_the_limits_get_431(void **state)
{
    static const struct {
        size_t header_bytes_max;
        int n_fields;
        bool is_fine;
    } rows[] = {
        {0,    100, true },
        {0,    123, true }, /* and four pseudo-fields */
        {0,    125, false},
        {1000, 15,  true },
        {1000, 30,  false},
    };
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, 1u << 20);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_h2_server_options options = {.header_bytes_max = rows[i].header_bytes_max};
        struct guest guest;

        guest_meet(&guest, &options);
        dv_buf_clear(&text);
        dv_buf_add_c(&text, "headers+end 1 " GET);
        for (int f = 0; f < rows[i].n_fields; f++)
            dv_buf_printf(&text, "|x%d=0123456789", f);
        guest_say(&guest, dv_buf_c(&text));
        assert_int_equal(guest.n_complete, rows[i].is_fine);
        if (!rows[i].is_fine) {
            assert_err(&guest.last_err, DV_RESOURCE_EXHAUSTED, "the request's header is larger");
            assert_non_null(strstr(guest_hear(&guest), "headers 1 :status=431"));
        }
        guest_part(&guest);
    }
    dv_buf_fini(&text);
}

static void bodies_that_lie_about_their_length_are_reset(void **state)
{
    static const char *const says[] = {
        "headers 1 " POST "|content-length=3\ndata+end 1 6869",
        "headers 1 " POST "|content-length=1\ndata+end 1 6869",
        "headers 1 " POST "|content-length=1\ndata 1 6869",
        "headers 1 " POST "|content-length=3\nheaders+end 1 x=y",
        "headers 1 " POST "\nheaders 1 x=y",         /* a second list that is not the last */
        "headers 1 " POST "\nheaders+end 1 :path=/", /* pseudo-fields in trailers */
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(says); i++) {
        struct guest guest;

        guest_meet(&guest, NULL);
        guest_say(&guest, says[i]);
        if (!strstr(guest_hear(&guest), "PROTOCOL_ERROR"))
            fail_msg("%s: %s", says[i], dv_buf_c(&guest.wire.heard));
        assert_int_equal(guest.n_complete, 0);
        assert_int_equal(guest.n_ended, guest.n_begun);
        if (guest.n_ended)
            assert_err(&guest.last_err, DV_INVALID_ARGUMENT, "malformed");
        guest_part(&guest);
    }
}

static void whoever_waits_for_100_is_told_to_go_on(void **state)
{
    struct guest guest;

    (void)state;
    guest_meet(&guest, NULL);
    guest_say(&guest, "headers 1 " POST "|expect=100-continue");
    assert_string_equal(guest_hear(&guest), "headers 1 :status=100\n");
    guest_say(&guest, "data+end 1 6869");
    assert_string_equal(guest_hear(&guest),
                        "headers 1 :status=200|content-length=2\ndata+end 1 of 2 bytes\n");
    guest_part(&guest);
}

static void answer_at_once(struct guest *guest, struct dv_h2_stream *stream,
                           const struct dv_h2_http_request *request)
{
    (void)request;
    guest_answer(guest, stream);
}

static void whoever_waits_for_100_may_get_the_answer_instead(void **state)
{
    struct guest guest;

    (void)state;
    guest_meet(&guest, NULL);
    guest.on_request = answer_at_once;
    guest_say(&guest, "headers 1 " POST "|expect=100-continue");
    assert_string_equal(guest_hear(&guest),
                        "headers 1 :status=200|content-length=2\ndata+end 1 of 2 bytes\n"
                        "reset 1 NO_ERROR\n");
    assert_seen(&guest, "#1 POST https://h/a expect=100-continue with body\n#1 ended OK\n");
    guest_part(&guest);
}

static void it_is_the_same_however_the_bytes_are_cut(void **state)
{
    struct guest guest;
    struct dv_err err;
    dv_str bytes;

    (void)state;
    guest_meet(&guest, NULL);
    bytes = wire_bytes(&guest.wire, "headers 1 " POST "\ndata+pad 1 6869\n"
                                    "data+end 1 ");
    for (size_t i = 0; i < bytes.n; i++)
        assert_ok(dv_h2_server_receive(guest.server, dv_str_slice(bytes, i, i + 1), 0, &err), &err);
    assert_seen(&guest, "#1 POST https://h/a with body\n#1 body h\n#1 body i\n#1 complete\n");
    assert_string_equal(guest_hear(&guest),
                        "headers 1 :status=200|content-length=2\ndata+end 1 of 2 bytes\n");
    guest_part(&guest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_handed_on_and_answered),
        cmocka_unit_test(malformed_headers_are_reset),
        cmocka_unit_test(refused_requests_are_answered_by_the_session),
        cmocka_unit_test(a_user_in_the_authority_is_refused),
        cmocka_unit_test(a_handler_may_refuse_in_its_own_words),
        cmocka_unit_test(header_lists_over_the_limits_get_431),
        cmocka_unit_test(bodies_that_lie_about_their_length_are_reset),
        cmocka_unit_test(whoever_waits_for_100_is_told_to_go_on),
        cmocka_unit_test(whoever_waits_for_100_may_get_the_answer_instead),
        cmocka_unit_test(it_is_the_same_however_the_bytes_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

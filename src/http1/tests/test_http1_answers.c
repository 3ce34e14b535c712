#include "support/dvtest.h"

#include "base/buf.h"
#include "http1/http1.h"

#define TEXT_BYTES_MAX (1024u * 1024u)
#define GET "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

/* Takes a request to its end. */
static void take(struct dv_h1 *h1, const char *request)
{
    dv_str bytes = dv_str_from_c(request);
    dv_str part;

    for (;;) {
        enum dv_h1_event event = dv_h1_next(h1, &bytes, &part);

        if (event == DV_H1_END)
            return;
        assert_true(event == DV_H1_LINE || event == DV_H1_HEAD || event == DV_H1_BODY);
    }
}

static void headers_say_what_follows(void **state)
{
    static const struct dv_h1_field fields[] = {
        {DV_STR_INIT("A"), DV_STR_INIT("b")},
        {DV_STR_INIT("C"), DV_STR_INIT("") }
    };
    static const struct dv_h1_field close_field[] = {
        {DV_STR_INIT("connection"), DV_STR_INIT("Close")}
    };
    static const struct {
        const char *request;
        struct dv_h1_answer answer;
        const char *text;
        enum dv_h1_framing framing;
        bool closes;
    } cases[] = {
        {GET,
         {.status = 200, .length = 12, .fields = fields, .n_fields = 2, .date = DV_STR_INIT("D")},
         "HTTP/1.1 200 OK\r\nDate: D\r\nA: b\r\nC: \r\nContent-Length: 12\r\n\r\n",                                                              DV_H1_LENGTH,
         false                                                                                                                                                            },
        {GET,
         {.status = 404},
         "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",                                                                                  DV_H1_LENGTH,
         false                                                                                                                                                            },
        {GET,                                                      {.status = 599},                "HTTP/1.1 599 \r\nContent-Length: 0\r\n\r\n", DV_H1_LENGTH,       false},
        {GET,                                                      {.status = 204},                "HTTP/1.1 204 No Content\r\n\r\n",            DV_H1_NO_BODY,      false},
        {GET,                                                      {.status = 304},                "HTTP/1.1 304 Not Modified\r\n\r\n",          DV_H1_NO_BODY,      false},
        {GET,
         {.status = 200, .is_stream = true},
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",                                                                                DV_H1_CHUNKS,
         false                                                                                                                                                            },
        {GET,
         {.status = 200, .closes = true},
         "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",                                                                    DV_H1_LENGTH,
         true                                                                                                                                                             },
        {GET,
         {.status = 200, .fields = close_field, .n_fields = 1},
         "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",                                                                    DV_H1_LENGTH,
         true                                                                                                                                                             },
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
         {.status = 200},
         "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",                                                                    DV_H1_LENGTH,
         true                                                                                                                                                             },
        {"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n",
         {.status = 200, .length = 12},
         "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n",                                                                                        DV_H1_NO_BODY,
         false                                                                                                                                                            },
        {"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n",
         {.status = 200, .is_stream = true},
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",                                                                                DV_H1_NO_BODY,
         false                                                                                                                                                            },
        {"GET / HTTP/1.0\r\n\r\n",
         {.status = 200, .is_stream = true},
         "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",                                                                                         DV_H1_UNTIL_CLOSED,
         true                                                                                                                                                             },
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
         {.status = 200, .length = 1},
         "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n",                                                               DV_H1_LENGTH,
         false                                                                                                                                                            },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_h1 h1 = {0};
        struct dv_buf text;

        dv_buf_init(&text, TEXT_BYTES_MAX);
        take(&h1, cases[i].request);
        assert_int_equal(dv_h1_print_head(&h1, &cases[i].answer, &text), cases[i].framing);
        assert_string_equal(dv_buf_c(&text), cases[i].text);
        assert_int_equal(dv_h1_closes(&h1), cases[i].closes);
        dv_buf_fini(&text);
        dv_h1_fini(&h1);
    }
}

static void what_is_no_request_is_answered_and_closed(void **state)
{
    struct dv_h1 h1 = {0};
    dv_str bytes = DV_STR("x\r\n");
    struct dv_buf text;
    dv_str part;

    (void)state;
    dv_buf_init(&text, TEXT_BYTES_MAX);
    assert_int_equal(dv_h1_next(&h1, &bytes, &part), DV_H1_BAD);
    (void)dv_h1_print_head(&h1, &(struct dv_h1_answer){.status = 400}, &text);
    assert_string_equal(
        dv_buf_c(&text),
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    assert_true(dv_h1_closes(&h1));
    dv_buf_fini(&text);
    dv_h1_fini(&h1);
}

static void after_leaving_there_is_no_request(void **state)
{
    struct dv_h1 h1 = {0};
    dv_str bytes = DV_STR(GET);
    struct dv_buf text;
    dv_str part;

    (void)state;
    dv_buf_init(&text, TEXT_BYTES_MAX);
    take(&h1, GET);
    assert_int_equal(dv_h1_print_head(&h1, &(struct dv_h1_answer){.status = 101}, &text),
                     DV_H1_NO_BODY);
    assert_string_equal(dv_buf_c(&text), "HTTP/1.1 101 Switching Protocols\r\n\r\n");
    dv_h1_leave(&h1);
    assert_int_equal(dv_h1_next(&h1, &bytes, &part), DV_H1_BAD);
    assert_true(dv_h1_closes(&h1));
    dv_buf_fini(&text);
    dv_h1_fini(&h1);
}

static void chunks_are_printed(void **state)
{
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, TEXT_BYTES_MAX);
    dv_h1_print_continue(&text);
    dv_h1_print_chunk(DV_STR(""), &text);
    dv_h1_print_chunk(DV_STR("abc"), &text);
    dv_h1_print_chunk(DV_STR("0123456789abcdefghijklmnopq"), &text);
    dv_h1_print_last_chunk(&text);
    assert_string_equal(dv_buf_c(&text), "HTTP/1.1 100 Continue\r\n\r\n3\r\nabc\r\n"
                                         "1B\r\n0123456789abcdefghijklmnopq\r\n0\r\n\r\n");
    dv_buf_fini(&text);
}

static void dates_are_printed(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {0,         "Thu, 01 Jan 1970 00:00:00 GMT"},
        {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
        {951827696, "Tue, 29 Feb 2000 12:34:56 GMT"},
        {-5,        "Thu, 01 Jan 1970 00:00:00 GMT"},
        {INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        char text[DV_H1_DATE_BYTES];

        assert_int_equal(dv_h1_print_date(cases[i].seconds, text).n, sizeof(text) - 1);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_say_what_follows),
        cmocka_unit_test(what_is_no_request_is_answered_and_closed),
        cmocka_unit_test(after_leaving_there_is_no_request),
        cmocka_unit_test(chunks_are_printed),
        cmocka_unit_test(dates_are_printed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

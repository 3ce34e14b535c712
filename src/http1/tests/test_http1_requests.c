#include "support/dvtest.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http1/http1.h"
#include "http1/tests/http1_events.h"

#define TEXT_BYTES_MAX (64u * 1024u * 1024u)
#define GET "GET / HTTP/1.1\r\nHost: h\r\n"
#define POST "POST / HTTP/1.1\r\nHost: h\r\n"
#define GET_EVENTS "line\nGET / [Host=h]\nend \"\"\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define CHUNKED_EVENTS "line\nPOST / [Host=h] [Transfer-Encoding=chunked] chunked\n"

/* Holds the events against the text, for pieces of any size. */
static void expect(dv_str bytes, const char *events)
{
    struct dv_buf text;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    for (size_t piece = 1; piece <= bytes.n; piece++) {
        dv_buf_clear(&text);
        add_events(&text, bytes, piece);
        if (strcmp(dv_buf_c(&text), events) != 0)
            fail_msg("\"%.*s\" in pieces of %zu:\n%s\nwant:\n%s", DV_FMT(bytes), piece,
                     dv_buf_c(&text), events);
    }
    dv_buf_fini(&text);
}

static void good_requests_are_told(void **state)
{
    static const struct {
        const char *bytes;
        const char *events;
    } cases[] = {
        {GET "\r\n",                                               GET_EVENTS "rest \"\"\n"                                       },
        {GET "\r\n" GET "\r\n",                                    GET_EVENTS GET_EVENTS "rest \"\"\n"                            },
        {"\r\n\r\n" GET "\r\n",                                    GET_EVENTS "rest \"\"\n"                                       },
        {"",                                                       "rest \"\"\n"                                                  },
        {"GE",                                                     "rest \"\"\n"                                                  },
        {GET,                                                      "line\nrest \"\"\n"                                            },
        {"GET /?a=b HTTP/1.9\r\nhOST:h\r\n\r\n",                   "line\nGET /?a=b [hOST=h]\nend \"\"\nrest \"\"\n"              },
        {"GET / HTTP/1.1\r\nHost:\r\n\r\n",                        "line\nGET / [Host=]\nend \"\"\nrest \"\"\n"                   },
        {GET "A: \t b\t c \t\r\nB:\r\nC::\r\n\r\n",
         "line\nGET / [Host=h] [A=b\t c] [B=] [C=:]\nend \"\"\nrest \"\"\n"                                                       },
        {GET "A: \xc3\xa4\xff\r\n\r\n",
         "line\nGET / [Host=h] [A=\xc3\xa4\xff]\nend \"\"\nrest \"\"\n"                                                           },
        {GET "Connection: a , Close\r\n\r\n",
         "line\nGET / [Host=h] [Connection=a , Close]\nend \"\" closes\nrest \"\"\n"                                              },
        {"GET / HTTP/1.0\r\n\r\n",                                 "line\nGET / old\nend \"\" closes\nrest \"\"\n"                },
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
         "line\nGET / [Connection=keep-alive] old\nend \"\"\nrest \"\"\n"                                                         },
        {POST "Content-Length: 3\r\n\r\nabc",
         "line\nPOST / [Host=h] [Content-Length=3] 3\nend \"abc\"\nrest \"\"\n"                                                   },
        {POST "Content-Length: 0\r\n\r\n" GET "\r\n",
         "line\nPOST / [Host=h] [Content-Length=0]\nend \"\"\n" GET_EVENTS "rest \"\"\n"                                          },
        {POST "Content-Length: 3\r\n\r\nab",
         "line\nPOST / [Host=h] [Content-Length=3] 3\nrest \"ab\"\n"                                                              },
        {POST "Content-Length: 18446744073709551616\r\n\r\n",
         "line\nPOST / [Host=h] [Content-Length=18446744073709551616] 18446744073709551615\n"
         "rest \"\"\n"                                                                                                            },
        {POST "Content-Length: 1\r\nExpect: 100-Continue\r\n\r\n",
         "line\nPOST / [Host=h] [Content-Length=1] [Expect=100-Continue] 1 expects\nrest \"\"\n"                                  },
        {CHUNKED "5\r\nhello\r\n1;a=b;c\r\n \r\n00000000005\r\nworld\r\n0;last\r\nA: b\r\n\r\n" GET
                 "\r\n",                                  CHUNKED_EVENTS "end \"hello world\"\n" GET_EVENTS "rest \"\"\n"},
        {CHUNKED "0\r\n\r\n",                                      CHUNKED_EVENTS "end \"\"\nrest \"\"\n"                         },
        {CHUNKED "A\r\n0123456789\r\n",                            CHUNKED_EVENTS "rest \"0123456789\"\n"                         },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        expect(dv_str_from_c(cases[i].bytes), cases[i].events);
        if (cases[i].bytes[0] == '\0') {
            struct dv_buf text;

            dv_buf_init(&text, TEXT_BYTES_MAX);
            add_events(&text, DV_STR(""), 1);
            assert_string_equal(dv_buf_c(&text), cases[i].events);
            dv_buf_fini(&text);
        }
    }
}

/* Returns the last event of the bytes in pieces of any size, which must be the same one. */
static unsigned refusal_of(dv_str bytes)
{
    struct dv_buf text;
    const char *bad;
    unsigned status = 1;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    for (size_t piece = bytes.n; piece > 0; piece--) {
        unsigned found = 1;

        dv_buf_clear(&text);
        add_events(&text, bytes, piece);
        bad = strstr(dv_buf_c(&text), "bad ");
        if (bad)
            found = (unsigned)strtoul(bad + 4, NULL, 10);
        if (piece < bytes.n && found != status)
            fail_msg("\"%.*s\" in pieces of %zu: %u, not %u", DV_FMT(bytes), piece, found, status);
        status = found;
    }
    dv_buf_fini(&text);
    return status;
}

static void bad_requests_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        unsigned status;
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n",                                       400},
        {GET "Host: h\r\n\r\n",                                          400},
        {"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",                 400},
        {"GET / HTTP/1.1\n",                                             400},
        {"\n",                                                           400},
        {"GET / HTTP/1.1\r\nHost: h\n\r\n",                              400},
        {GET "\n",                                                       400},
        {GET "A: b\r\r\n\r\n",                                           400},
        {GET "A: b\rc\r\n\r\n",                                          400},
        {GET "A: b\x7f\r\n\r\n",                                         400},
        {GET "A:\r\n b\r\n\r\n",                                         400},
        {GET "A: b\r\n\tc\r\n\r\n",                                      400},
        {"GET / HTTP/1.1\r\n A: b\r\nHost: h\r\n\r\n",                   400},
        {GET "A : b\r\n\r\n",                                            400},
        {GET ": b\r\n\r\n",                                              400},
        {GET "A\r\n\r\n",                                                400},
        {GET "A\xc3\xa4: b\r\n\r\n",                                     400},
        {"GET  / HTTP/1.1\r\n",                                          400},
        {"GET /  HTTP/1.1\r\n",                                          400},
        {"GET / HTTP/1.1 \r\n",                                          400},
        {" GET / HTTP/1.1\r\n",                                          0  },
        {"GET / http/1.1\r\n",                                           400},
        {"GET / HTTP/1.x\r\n",                                           400},
        {"GET / HTTP/11\r\n",                                            400},
        {"GET /\r\n",                                                    400},
        {"GET\r\n",                                                      400},
        {"GET /\xc3\xa4 HTTP/1.1\r\n",                                   400},
        {"GET /\t HTTP/1.1\r\n",                                         400},
        {"G@T / HTTP/1.1\r\n",                                           400},
        {"GET / HTTP/2.0\r\n",                                           505},
        {"PRI * HTTP/2.0\r\n",                                           505},
        {"\x16\x03\x01\x02\r\n",                                         0  },
        {POST "Content-Length: x\r\n\r\n",                               400},
        {POST "Content-Length: -1\r\n\r\n",                              400},
        {POST "Content-Length: +1\r\n\r\n",                              400},
        {POST "Content-Length: 0x1\r\n\r\n",                             400},
        {POST "Content-Length: 1, 1\r\n\r\n",                            400},
        {POST "Content-Length: 1 1\r\n\r\n",                             400},
        {POST "Content-Length:\r\n\r\n",                                 400},
        {POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",          400},
        {POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {POST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400},
        {POST "Transfer-Encoding: chunked\r\n"
              "Transfer-Encoding: chunked\r\n\r\n",             400},
        {POST "Transfer-Encoding: chunked, chunked\r\n\r\n",             501},
        {POST "Transfer-Encoding: identity\r\n\r\n",                     501},
        {POST "Transfer-Encoding: xchunked\r\n\r\n",                     501},
        {POST "Transfer-Encoding:\r\n\r\n",                              501},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",        400},
        {CHUNKED "x\r\n",                                                400},
        {CHUNKED "-1\r\n",                                               400},
        {CHUNKED "\r\n",                                                 400},
        {CHUNKED ";a\r\n",                                               400},
        {CHUNKED "0x1\r\n",                                              400},
        {CHUNKED "1 \r\na\r\n",                                          400},
        {CHUNKED " 1\r\na\r\n",                                          400},
        {CHUNKED "1\na\r\n",                                             400},
        {CHUNKED "1\r\nab\r\n",                                          400},
        {CHUNKED "1\r\na\n0\r\n",                                        400},
        {CHUNKED "1;a\rb\r\na\r\n",                                      400},
        {CHUNKED "fffffffffffffffff\r\n",                                400},
        {CHUNKED "10000000000000000\r\n",                                400},
        {CHUNKED "0\r\nA\r\n\r\n",                                       400},
        {CHUNKED "0\r\nA: b\n\r\n",                                      400},
        {CHUNKED "0\r\n A: b\r\n\r\n",                                   400},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        unsigned status = refusal_of(dv_str_from_c(cases[i].bytes));

        if (status != cases[i].status)
            fail_msg("%s: %u, not %u", cases[i].bytes, status, cases[i].status);
    }
}

static void a_zero_byte_is_refused_everywhere(void **state)
{
    static const char good[] = "DELETE /a?b HTTP/1.1\r\nHost: h\r\nA: b\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n1;a\r\n";

    (void)state;
    for (size_t at = 0; at < sizeof(good) - 1; at++) {
        struct dv_buf text;

        dv_buf_init(&text, TEXT_BYTES_MAX);
        dv_buf_add(&text, (dv_str){good, at});
        dv_buf_add_char(&text, '\0');
        dv_buf_add_c(&text, good + at);
        assert_int_not_equal(refusal_of(dv_buf_str(&text)), 1);
        dv_buf_fini(&text);
    }
}

static void headers_and_trailers_have_a_limit(void **state)
{
    static const struct {
        const char *before;
        const char *repeated;
        const char *after;
        unsigned status;
    } cases[] = {
        {"GET /",         "a",                 " HTTP/1.1\r\n", 414},
        {"GET /",         "a",                 "",              414},
        {"",              "\r\n",              "",              414},
        {GET "A: ",       "a",                 "\r\n\r\n",      431},
        {GET,             "a",                 ": b\r\n\r\n",   431},
        {GET,             "a: b\r\n",          "\r\n",          431},
        {CHUNKED "0\r\n", "a: b\r\n",          "\r\n",          431},
        {CHUNKED,         "0",                 "1\r\na\r\n",    400},
        {CHUNKED "1;",    "a",                 "\r\na\r\n",     400},
        {CHUNKED,         "1;abcdef\r\na\r\n", "0\r\n\r\n",     400},
    };
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, TEXT_BYTES_MAX);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        static const size_t pieces[] = {1, 100, 4096, TEXT_BYTES_MAX};

        for (size_t k = 0; k < DV_COUNT(pieces); k++) {
            struct dv_buf events;
            const char *bad;

            dv_buf_init(&events, TEXT_BYTES_MAX);
            dv_buf_clear(&text);
            dv_buf_add_c(&text, cases[i].before);
            while (text.n < 40000)
                dv_buf_add_c(&text, cases[i].repeated);
            dv_buf_add_c(&text, cases[i].after);
            add_events(&events, dv_buf_str(&text), pieces[k]);
            bad = strstr(dv_buf_c(&events), "bad ");
            if (!bad || strtoul(bad + 4, NULL, 10) != cases[i].status)
                fail_msg("%s: %.200s", cases[i].before, bad ? bad : "not refused");
            dv_buf_fini(&events);
        }
    }
    dv_buf_fini(&text);
}

static void an_idle_session_holds_no_memory(void **state)
{
    struct dv_h1 h1 = {0};
    dv_str bytes = DV_STR(GET "\r\n");
    dv_str part;

    (void)state;
    assert_int_equal(dv_h1_next(&h1, &bytes, &part), DV_H1_LINE);
    assert_int_equal(dv_h1_next(&h1, &bytes, &part), DV_H1_HEAD);
    assert_int_equal(dv_h1_next(&h1, &bytes, &part), DV_H1_END);
    assert_null(h1.text.p);
    assert_null(h1.fields.v);
    assert_null(h1.places.v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_requests_are_told),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(a_zero_byte_is_refused_everywhere),
        cmocka_unit_test(headers_and_trailers_have_a_limit),
        cmocka_unit_test(an_idle_session_holds_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

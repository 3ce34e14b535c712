#include "support/dvtest.h"

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "base/clock.h"
#include "http2/http2_fields.h"

#define TEXT_BYTES_MAX 4096u

static void a_timeout_is_printed_rounded_up_in_eight_digits(void **state)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {
        {0,                               "1n"       },
        {1,                               "1n"       },
        {250,                             "250n"     },
        {99999999,                        "99999999n"},
        {100000000,                       "100000u"  },
        {100000001,                       "100001u"  },
        {DV_NS_PER_S,                     "1000000u" },
        {45 * DV_NS_PER_S,                "45000000u"},
        {99999999000,                     "99999999u"},
        {99999999001,                     "100000m"  },
        {3600 * DV_NS_PER_S,              "3600000m" },
        {99999999 * (DV_NS_PER_S / 1000), "99999999m"},
        {100000 * DV_NS_PER_S,            "100000S"  },
        {99999999 * DV_NS_PER_S,          "99999999S"},
        {99999999 * DV_NS_PER_S + 1,      "1666667M" },
        {60 * DV_NS_PER_S * 99999999,     "99999999M"},
        {60 * DV_NS_PER_S * 99999999 + 1, "1666667H" },
        {UINT64_MAX,                      "5124096H" },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        char text[DV_H2_TIMEOUT_BYTES];
        size_t n = dv_h2_timeout_print(cases[i].ns, text);

        assert_str(((dv_str){text, n}), cases[i].text);
        assert_int_equal(text[n], '\0');
    }
}

static void a_printed_timeout_is_never_read_as_shorter(void **state)
{
    (void)state;
    for (uint64_t ns = 1; ns < UINT64_MAX / 3; ns = ns * 3 + 1) {
        char text[DV_H2_TIMEOUT_BYTES];
        uint64_t got = 0;

        assert_true(dv_h2_timeout_parse((dv_str){text, dv_h2_timeout_print(ns, text)}, &got));
        assert_true(got >= ns);
        assert_true(got - ns <= ns / 100000); /* at least six of its digits are there */
    }
}

static void a_timeout_is_read(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {
        {"1n",        1                             },
        {"0n",        0                             },
        {"0H",        0                             },
        {"7u",        7000                          },
        {"7m",        7000000                       },
        {"7S",        7 * DV_NS_PER_S               },
        {"7M",        420 * DV_NS_PER_S             },
        {"7H",        25200 * DV_NS_PER_S           },
        {"00000001S", DV_NS_PER_S                   },
        {"44999976u", UINT64_C(44999976000)         },
        {"5124095H",  UINT64_C(18446742000000000000)},
        {"5124096H",  UINT64_MAX                    }, /* does not fit: as good as for ever */
        {"99999999H", UINT64_MAX                    },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        uint64_t ns = 1234;

        if (!dv_h2_timeout_parse(dv_str_from_c(cases[i].text), &ns) || ns != cases[i].ns)
            fail_msg("%s", cases[i].text);
    }
}

static void a_malformed_timeout_is_refused(void **state)
{
    static const char *const cases[] = {
        "",   "S",  "1",  "10", "123456789S", "000000001S", "-1S",  "+1S", " 1S",  "1S ",   "1 S",
        "1s", "1h", "1N", "1U", "1x",         "1.5S",       "0x1S", "1SS", "1e3m", "\xffS",
    };
    uint64_t ns = 1234;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        if (dv_h2_timeout_parse(dv_str_from_c(cases[i]), &ns))
            fail_msg("took \"%s\"", cases[i]);
    }
    assert_false(dv_h2_timeout_parse(DV_STR("1\0S"), &ns));
    assert_int_equal(ns, 1234); /* outputs are written on success only */
}

static void a_message_is_percent_encoded(void **state)
{
    static const struct {
        dv_str plain;
        const char *encoded;
    } cases[] = {
        {DV_STR_INIT(""),                      ""                     },
        {DV_STR_INIT("no such device"),        "no such device"       },
        {DV_STR_INIT("100%"),                  "100%25"               },
        {DV_STR_INIT("~!\"#$&'()*+,/:;=?@[]"), "~!\"#$&'()*+,/:;=?@[]"},
        {DV_STR_INIT("ger\xc3\xa4t"),          "ger%C3%A4t"           },
        {DV_STR_INIT("\xe2\x82\xac"),          "%E2%82%AC"            },
        {DV_STR_INIT("a\nb\r\tc"),             "a%0Ab%0D%09c"         },
        {DV_STR_INIT("\x1f \x7e\x7f\x80\xff"), "%1F ~%7F%80%FF"       },
        {DV_STR_INIT("nul\0inside"),           "nul%00inside"         },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_buf encoded;

        dv_buf_init(&encoded, TEXT_BYTES_MAX);
        dv_h2_percent_encode(cases[i].plain, &encoded);
        assert_str(dv_buf_str(&encoded), cases[i].encoded);
        dv_buf_fini(&encoded);
    }
}

static void all_bytes_but_nul_come_back_from_percent_encoding(void **state)
{
    char all[255];
    struct dv_buf encoded;
    struct dv_buf back;

    (void)state;
    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)(i + 1);
    dv_buf_init(&encoded, TEXT_BYTES_MAX);
    dv_buf_init(&back, TEXT_BYTES_MAX);
    dv_h2_percent_encode((dv_str){all, sizeof(all)}, &encoded);
    for (size_t i = 0; i < encoded.n; i++)
        assert_in_range((unsigned char)encoded.p[i], 0x20, 0x7e);
    dv_h2_percent_decode(dv_buf_str(&encoded), &back);
    assert_int_equal(back.n, sizeof(all));
    assert_memory_equal(back.p, all, sizeof(all));
    dv_buf_fini(&encoded);
    dv_buf_fini(&back);
}

static void broken_escapes_stay_as_they_are(void **state)
{
    static const struct {
        const char *encoded;
        dv_str plain;
    } cases[] = {
        {"%",            DV_STR_INIT("%")           },
        {"%4",           DV_STR_INIT("%4")          },
        {"a%",           DV_STR_INIT("a%")          },
        {"a%4",          DV_STR_INIT("a%4")         },
        {"%zz",          DV_STR_INIT("%zz")         },
        {"%4z",          DV_STR_INIT("%4z")         },
        {"%z4",          DV_STR_INIT("%z4")         },
        {"%%41",         DV_STR_INIT("%A")          },
        {"%%%41",        DV_STR_INIT("%%A")         },
        {"%41%4%42",     DV_STR_INIT("A%4B")        },
        {"%2541",        DV_STR_INIT("%41")         },
        {"%c3%A4",       DV_STR_INIT("\xc3\xa4")    },
        {"%00x",         DV_STR_INIT("%00x")        }, /* messages are C strings */
        {"raw \xc3\xa4", DV_STR_INIT("raw \xc3\xa4")},
        {"raw \xff\x01", DV_STR_INIT("raw \xff\x01")},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_buf plain;

        dv_buf_init(&plain, TEXT_BYTES_MAX);
        dv_h2_percent_decode(dv_str_from_c(cases[i].encoded), &plain);
        if (!dv_str_eq(dv_buf_str(&plain), cases[i].plain))
            fail_msg("%s: got %s", cases[i].encoded, dv_buf_c(&plain));
        dv_buf_fini(&plain);
    }
}

static void content_types_of_grpc_are_known(void **state)
{
    static const struct {
        const char *value;
        bool is_grpc;
    } cases[] = {
        {"application/grpc",               true },
        {"application/grpc+proto",         true },
        {"application/grpc+json",          true },
        {"application/grpc;charset=utf-8", true },
        {"application/grpc;",              true },
        {"Application/GRPC",               true },
        {"",                               false},
        {"application/grp",                false},
        {"application/grpcweb",            false},
        {"application/grpc-web",           false},
        {"application/grpc proto",         false},
        {" application/grpc",              false},
        {"application/json",               false},
        {"text/html",                      false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        if (dv_h2_is_grpc_content_type(dv_str_from_c(cases[i].value)) != cases[i].is_grpc)
            fail_msg("%s", cases[i].value);
    }
    assert_false(dv_h2_is_grpc_content_type(DV_STR_NONE));
}

static void an_http_status_becomes_a_code(void **state)
{
    static const struct {
        uint32_t http;
        enum dv_code code;
    } cases[] = {
        {400,        DV_INTERNAL         },
        {401,        DV_UNAUTHENTICATED  },
        {403,        DV_PERMISSION_DENIED},
        {404,        DV_UNIMPLEMENTED    },
        {429,        DV_UNAVAILABLE      },
        {502,        DV_UNAVAILABLE      },
        {503,        DV_UNAVAILABLE      },
        {504,        DV_UNAVAILABLE      },
        {0,          DV_UNKNOWN          },
        {100,        DV_UNKNOWN          },
        {200,        DV_UNKNOWN          },
        {301,        DV_UNKNOWN          },
        {405,        DV_UNKNOWN          },
        {415,        DV_UNKNOWN          },
        {500,        DV_UNKNOWN          },
        {UINT32_MAX, DV_UNKNOWN          },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_int_equal(dv_h2_code_from_http(cases[i].http), cases[i].code);
}

static void a_reset_becomes_a_code(void **state)
{
    static const struct {
        uint32_t reset;
        enum dv_code code;
    } cases[] = {
        {NGHTTP2_NO_ERROR,            DV_INTERNAL          },
        {NGHTTP2_PROTOCOL_ERROR,      DV_INTERNAL          },
        {NGHTTP2_INTERNAL_ERROR,      DV_INTERNAL          },
        {NGHTTP2_FLOW_CONTROL_ERROR,  DV_RESOURCE_EXHAUSTED},
        {NGHTTP2_SETTINGS_TIMEOUT,    DV_INTERNAL          },
        {NGHTTP2_STREAM_CLOSED,       DV_INTERNAL          },
        {NGHTTP2_FRAME_SIZE_ERROR,    DV_INTERNAL          },
        {NGHTTP2_REFUSED_STREAM,      DV_UNAVAILABLE       },
        {NGHTTP2_CANCEL,              DV_CANCELLED         },
        {NGHTTP2_COMPRESSION_ERROR,   DV_INTERNAL          },
        {NGHTTP2_CONNECT_ERROR,       DV_INTERNAL          },
        {NGHTTP2_ENHANCE_YOUR_CALM,   DV_RESOURCE_EXHAUSTED},
        {NGHTTP2_INADEQUATE_SECURITY, DV_PERMISSION_DENIED },
        {NGHTTP2_HTTP_1_1_REQUIRED,   DV_INTERNAL          },
        {14,                          DV_INTERNAL          },
        {UINT32_MAX,                  DV_INTERNAL          },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_int_equal(dv_h2_code_from_reset(cases[i].reset), cases[i].code);
}

static void a_status_is_read(void **state)
{
    static const struct {
        const char *text;
        unsigned code;
    } cases[] = {
        {"0",           DV_OK             },
        {"00",          DV_OK             },
        {"5",           DV_NOT_FOUND      },
        {"16",          DV_UNAUTHENTICATED},
        {"17",          17                },
        {"2147483647",  2147483647        },
        {"2147483648",  DV_UNKNOWN        },
        {"4294967296",  DV_UNKNOWN        },
        {"99999999999", DV_UNKNOWN        },
        {"",            DV_UNKNOWN        },
        {"-1",          DV_UNKNOWN        },
        {"+1",          DV_UNKNOWN        },
        {" 1",          DV_UNKNOWN        },
        {"1 ",          DV_UNKNOWN        },
        {"OK",          DV_UNKNOWN        },
        {"0x0",         DV_UNKNOWN        },
        {"0.0",         DV_UNKNOWN        },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_int_equal((unsigned)dv_h2_code_parse(dv_str_from_c(cases[i].text)), cases[i].code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timeout_is_printed_rounded_up_in_eight_digits),
        cmocka_unit_test(a_printed_timeout_is_never_read_as_shorter),
        cmocka_unit_test(a_timeout_is_read),
        cmocka_unit_test(a_malformed_timeout_is_refused),
        cmocka_unit_test(a_message_is_percent_encoded),
        cmocka_unit_test(all_bytes_but_nul_come_back_from_percent_encoding),
        cmocka_unit_test(broken_escapes_stay_as_they_are),
        cmocka_unit_test(content_types_of_grpc_are_known),
        cmocka_unit_test(an_http_status_becomes_a_code),
        cmocka_unit_test(a_reset_becomes_a_code),
        cmocka_unit_test(a_status_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "test_quantity.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"

#define TEXT_BYTES_MAX 30000u

static void assert_prints(const struct dv_quantity *quantity, const char *text, const char *from)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_quantity_print(quantity, &buf);
    if (!dv_str_eq(dv_buf_str(&buf), dv_str_from_c(text)))
        fail_msg("%s: got %s, want %s", from, dv_buf_c(&buf), text);
}

static void prints_the_canonical_form(void **state)
{
    static const struct {
        const char *text;
        const char *canonical;
        enum dv_quantity_format format;
    } cases[] = {
        {"0",                     "0",                     DV_QUANTITY_DECIMAL_SI      },
        {"-",                     "0",                     DV_QUANTITY_DECIMAL_SI      },
        {"+.",                    "0",                     DV_QUANTITY_DECIMAL_SI      },
        {"-0.000Gi",              "0",                     DV_QUANTITY_BINARY_SI       },
        {"1",                     "1",                     DV_QUANTITY_DECIMAL_SI      },
        {"+007",                  "7",                     DV_QUANTITY_DECIMAL_SI      },
        {"1000",                  "1k",                    DV_QUANTITY_DECIMAL_SI      },
        {"-12345600",             "-12345600",             DV_QUANTITY_DECIMAL_SI      },
        {"1.5",                   "1500m",                 DV_QUANTITY_DECIMAL_SI      },
        {"0.1k",                  "100",                   DV_QUANTITY_DECIMAL_SI      },
        {"1000000000n",           "1",                     DV_QUANTITY_DECIMAL_SI      },
        {"1E",                    "1E",                    DV_QUANTITY_DECIMAL_SI      },
        {"1E3",                   "1e3",                   DV_QUANTITY_DECIMAL_EXPONENT},
        {"1e+4",                  "10e3",                  DV_QUANTITY_DECIMAL_EXPONENT},
        {"5e-1",                  "500e-3",                DV_QUANTITY_DECIMAL_EXPONENT},
        {"1e100",                 "10e99",                 DV_QUANTITY_DECIMAL_EXPONENT},
        {"1Ki",                   "1Ki",                   DV_QUANTITY_BINARY_SI       },
        {"1024Mi",                "1Gi",                   DV_QUANTITY_BINARY_SI       },
        {"1.5Gi",                 "1536Mi",                DV_QUANTITY_BINARY_SI       },
        {"0.5Ki",                 "512",                   DV_QUANTITY_BINARY_SI       },
        {"-1.1Ki",                "-1126400m",             DV_QUANTITY_BINARY_SI       },
        {"0.0009Ki",              "921600u",               DV_QUANTITY_DECIMAL_SI      },
        {"-7Ei",                  "-7Ei",                  DV_QUANTITY_BINARY_SI       },
        {"100000000000000000000", "100E",                  DV_QUANTITY_DECIMAL_SI      },
        {"99999999999999999999m", "99999999999999999999m", DV_QUANTITY_DECIMAL_SI      },
        {"123456789012345678901", "123456789012345678901", DV_QUANTITY_DECIMAL_SI      },
 /* The reference has no suffix here, and loses the zeros. */
        {"1000E",                 "1000E",                 DV_QUANTITY_DECIMAL_SI      },
        {"-1000000E",             "-1000000E",             DV_QUANTITY_DECIMAL_SI      },
        {"1.000000000000001e30",  "1000000000000001e15",   DV_QUANTITY_DECIMAL_EXPONENT},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_quantity quantity = parsed(cases[i].text, arena);

        assert_prints(&quantity, cases[i].canonical, cases[i].text);
        assert_int_equal(quantity.format, cases[i].format);
    }
}

static void rounds_what_is_finer_than_a_nano_away_from_zero(void **state)
{
    static const struct {
        const char *text;
        const char *canonical;
    } cases[] = {
        {"0.1n",                                     "1n"            },
        {"-0.1n",                                    "-1n"           },
        {"1.5n",                                     "2n"            },
        {"1e-1000",                                  "1e-9"          },
        {"-1e-20000",                                "-1e-9"         },
        {"0e-20000",                                 "0"             },
        {"0.0000000019",                             "2n"            },
        {"999999999.9999999999999999999999",         "1G"            },
        {"-999999999999999999999999.9999999999999k", "-1000000000E"  },
        {"0.00000000000000000000001Ei",              "11530n"        },
        {"0.0000000001Ki",                           "103n"          },
        {"1.000000000000000000000000000000001Ki",    "1024000000001n"},
        {"0.99999999999999999999999999999999Ki",     "1Ki"           },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_quantity quantity = parsed(cases[i].text, arena);

        assert_prints(&quantity, cases[i].canonical, cases[i].text);
    }
}

static void caps_what_has_a_binary_suffix(void **state)
{
    static const struct {
        const char *text;
        const char *canonical;
    } cases[] = {
        {"8Ei",                            "9223372036854775807"       },
        {"-8Ei",                           "-9223372036854775807"      },
        {"7.99999Ei",                      "9223360507639729739530240u"},
        {"99999999999999999999999999Ki",   "9223372036854775807"       },
        {"9007199254740991Ki",             "9007199254740991Ki"        },
        {"9007199254740991.9999999999Ki",  "9223372036854775807"       },
        {"-123456789012345678901234567Ei", "-9223372036854775807"      },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_quantity quantity = parsed(cases[i].text, arena);

        assert_prints(&quantity, cases[i].canonical, cases[i].text);
    }
}

static void refuses_what_is_no_quantity(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "1 ",
        " 1",
        "1 Gi",
        "a",
        "0x10",
        "1,0",
        "1_0",
        "1..2",
        "1.2.3",
        "--1",
        "+-1",
        "1-",
        "1e",
        "1e+",
        "1e-",
        "e",
        "1ee3",
        "1e1e1",
        "1e+-1",
        "1e1.5",
        "1K",
        "1ki",
        "1mi",
        "1KiB",
        "1GiGi",
        "1Gi1",
        "Gi1",
        "1i",
        "1e9223372036854775808",
        "1\n",
        "1.5 m",
        "NaN",
        "Inf",
        "1\xc2\xb5",
        "1B",
        "1g",
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_quantity quantity;
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        if (dv_quantity_parse(dv_str_from_c(texts[i]), arena, &quantity, &err))
            fail_msg("\"%s\"", texts[i]);
        assert_err(&err, DV_INVALID_ARGUMENT, "quantity: ");
        assert_true(
            dv_str_ends_with(dv_str_from_c(err.msg), dv_str_printf(arena, "\"%s\"", texts[i])));
    }
    assert_false(dv_quantity_parse((dv_str){"1\0", 2}, arena, &quantity, &err));
    assert_false(dv_quantity_parse((dv_str){"1\0i", 3}, arena, &quantity, &err));
}

static void refuses_what_is_too_large(void **state)
{
    static const char *const texts[] = {"1e10000", "-1e10000", "1000e9997", "0.1e10001",
                                        "1e20001", "1e-20001", "0e20001",   "1e9223372036854775807",
                                        "10e9999"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_quantity quantity;
    char nines[DV_QUANTITY_DIGITS_MAX + 20];
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        if (dv_quantity_parse(dv_str_from_c(texts[i]), arena, &quantity, &err))
            fail_msg("\"%s\"", texts[i]);
        assert_err(&err, DV_OUT_OF_RANGE, texts[i]);
    }
    memset(nines, '9', sizeof(nines));
    nines[DV_QUANTITY_DIGITS_MAX] = '.';
    quantity = parsed("1e9999", arena);
    assert_ok(
        dv_quantity_parse((dv_str){nines, DV_QUANTITY_DIGITS_MAX + 10}, arena, &quantity, &err),
        &err);
    assert_false(dv_quantity_parse((dv_str){nines, DV_QUANTITY_DIGITS_MAX + 11}, arena, &quantity,
                                   &err)); /* it rounds up */
    assert_err(&err, DV_OUT_OF_RANGE, "too large");
}

static void a_text_may_be_long_but_not_too_long(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_quantity quantity;
    char text[2 * DV_QUANTITY_DIGITS_MAX + 1];
    struct dv_err err;

    (void)state;
    memset(text, '0', sizeof(text));
    text[sizeof(text) - 2] = '7';
    text[sizeof(text) - 1] = 'k';
    assert_ok(dv_quantity_parse((dv_str){text + 1, sizeof(text) - 1}, arena, &quantity, &err),
              &err);
    assert_prints(&quantity, "7k", "zeros");
    assert_false(dv_quantity_parse((dv_str){text, sizeof(text)}, arena, &quantity, &err));
    assert_err(&err, DV_OUT_OF_RANGE, "too long");
}

static void json_has_blanks_around_a_quantity(void **state)
{
    static const struct {
        const char *text;
        const char *canonical; /* NULL: refused */
    } cases[] = {
        {" 1Gi ",                  "1Gi"},
        {"  1",                    "1"  },
        {"\xc2\xa0 2\xe3\x80\x80", "2"  },
        {"\xe2\x80\x83"
         "3m\xc2\x85",    "3m" },
        {"1 Gi",                   NULL },
        {"\t1",                    NULL },
        {"1\n",                    NULL },
        {"  ",                     NULL },
        {"\xe2\x80\xa8"
         "1",             NULL },
        {"",                       NULL },
        {"1\xff",                  NULL },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_quantity quantity;
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        bool is_ok = dv_quantity_parse_json(dv_str_from_c(cases[i].text), arena, &quantity, &err);

        if (is_ok != (cases[i].canonical != NULL))
            fail_msg("case %zu", i);
        if (is_ok)
            assert_prints(&quantity, cases[i].canonical, cases[i].text);
    }
}

static void compares_by_value(void **state)
{
    /* Ascending; what is in one row is equal. */
    static const char *const rows[][3] = {
        {"-1e9999",                            "-10e9998",                            "-0.1e10000"              },
        {"-1e1000",                            "-1000e997",                           "-1e1000"                 },
        {"-10E",                               "-10000000000000000k",                 "-10000000000000000000"   },
        {"-8Ei",                               "-9223372036854775807",                "-9223372036854775807000m"},
        {"-1Ki",                               "-1024",                               "-1.024k"                 },
        {"-1n",                                "-0.1n",                               "-1e-9"                   },
        {"0",                                  "-0Gi",                                "0e9999"                  },
        {"1n",                                 "0.000001m",                           "1e-100"                  },
        {"999999999n",                         "0.999999999",                         "999999.999u"             },
        {"1",                                  "1000m",                               "1e0"                     },
        {"1Gi",                                "1024Mi",                              "1073741824"              },
        {"9223372036854775807",                "99Ei",                                "9223372036854775807000m" },
        {"9223372036854775808",                "9223372036854775.808k",               "9223372036854775808e0"   },
        {"92233720368547758.08k",              "92233720368547758080",                "9223372036854775808e1"   },
        {"1e400",                              "10e399",                              "0.001e403"               },
        {"123456789012345678901234567890e400", "1234567890123456789012345678900e399",
         "0.12345678901234567890123456789e430"                                                                  },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows) * 3; i++)
        for (size_t k = 0; k < DV_COUNT(rows) * 3; k++) {
            struct dv_quantity a = parsed(rows[i / 3][i % 3], arena);
            struct dv_quantity b = parsed(rows[k / 3][k % 3], arena);
            int want = (i / 3 > k / 3) - (i / 3 < k / 3);

            if (dv_quantity_cmp(&a, &b) != want)
                fail_msg("%s and %s: got %d", rows[i / 3][i % 3], rows[k / 3][k % 3],
                         dv_quantity_cmp(&a, &b));
        }
}

static void adds_and_subtracts_exactly(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        const char *sum;
        const char *diff;
    } cases[] = {
        {"1",                    "1",                      "2",                               "0"                              },
        {"1Ki",                  "1024000m",               "2Ki",                             "0"                              },
        {"0",                    "1Gi",                    "1Gi",                             "-1Gi"                           },
        {"1Gi",                  "0",                      "1Gi",                             "1Gi"                            },
        {"0Ki",                  "1e3",                    "1e3",                             "-1e3"                           },
        {"1.5Gi",                "512Mi",                  "2Gi",                             "1Gi"                            },
        {"100m",                 "1n",                     "100000001n",                      "99999999n"                      },
        {"2e+1",                 "1.0000000001Ei",         "1152921504722139146460684698e-9",
         "-1152921504722139106460684698e-9"                                                                                    },
        {"9223372036854775807",  "1",                      "9223372036854775808",             "9223372036854775806"            },
        {"-9223372036854775807", "2",                      "-9223372036854775805",            "-9223372036854775809"           },
        {"8Ei",                  "8Ei",                    "18446744073709551614",            "0"                              },
        {"4Ei",                  "4096Pi",                 "8Ei",                             "0"                              },
        {"1Ki",                  "1180591620717411302400", "1024Ei",                          "-1152921504606846974Ki"         },
        {"1e30",                 "-1",                     "999999999999999999999999999999",  "1000000000000000000000000000001"},
        {"1e30",                 "1e30",                   "2e30",                            "0"                              },
        {"999999999E",           "1E",                     "1000000000E",                     "999999998E"                     },
        {"123456789e300",        "-123456789e300",         "0",                               "246913578e300"                  },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_quantity a = parsed(cases[i].a, arena);
        struct dv_quantity b = parsed(cases[i].b, arena);
        struct dv_quantity sum = dv_quantity_add(&a, &b, arena);
        struct dv_quantity diff = dv_quantity_sub(&a, &b, arena);

        assert_prints(&sum, cases[i].sum, cases[i].a);
        assert_prints(&diff, cases[i].diff, cases[i].a);
    }
}

/* It has no opposite, and the reference does not look. Where a decimal takes part it is exact. */
static void the_least_integer_can_be_subtracted(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_quantity least = dv_quantity_from_i64(INT64_MIN, DV_QUANTITY_DECIMAL_EXPONENT);
    struct dv_quantity zero = {0};
    struct dv_quantity diff = dv_quantity_sub(&zero, &least, arena);
    int64_t value;

    (void)state;
    assert_prints(&least, "-9223372036854775808", "least");
    assert_prints(&diff, "-9223372036854775808", "0 - least");
    assert_true(dv_quantity_to_i64(&least, &value) && value == INT64_MIN);
    assert_true(dv_quantity_to_i64_ceil(&least, &value) && value == INT64_MIN);
    least.is_decimal = true;
    diff = dv_quantity_sub(&zero, &least, arena);
    assert_prints(&diff, "9223372036854775808", "0 - least, as decimals");
    assert_false(dv_quantity_to_i64_ceil(&diff, &value));
}

static void a_copy_needs_nothing_of_the_first(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_arena *first = dv_arena_new();
    struct dv_quantity quantity = parsed("123456789012345678901234567890", first);
    struct dv_quantity copy = dv_quantity_copy(&quantity, arena);
    void *room = dv_arena_alloc(arena, dv_quantity_room(&quantity), 8);
    struct dv_quantity other = dv_quantity_copy_to(&quantity, room);

    (void)state;
    dv_arena_free(first);
    assert_prints(&copy, "123456789012345678901234567890", "copy");
    assert_prints(&other, "123456789012345678901234567890", "copy in a room");
}

static void usual_quantities_use_no_memory(void **state)
{
    static const char *const texts[] = {"1",     "100m",  "1500m", "80Gi",   "1.5Gi", "100Ti",
                                        "0.5",   "1e9",   "12E",   "2.25Ti", "7Ei",   "1024Pi",
                                        "1.1Ki", "250Mi", "3n",    "1000E"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    size_t size_bytes = dv_arena_size_bytes(arena);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        struct dv_quantity quantity = parsed(texts[i], arena);

        assert_null(quantity.big);
    }
    assert_int_equal(dv_arena_size_bytes(arena), size_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_the_canonical_form),
        cmocka_unit_test(rounds_what_is_finer_than_a_nano_away_from_zero),
        cmocka_unit_test(caps_what_has_a_binary_suffix),
        cmocka_unit_test(refuses_what_is_no_quantity),
        cmocka_unit_test(refuses_what_is_too_large),
        cmocka_unit_test(a_text_may_be_long_but_not_too_long),
        cmocka_unit_test(json_has_blanks_around_a_quantity),
        cmocka_unit_test(compares_by_value),
        cmocka_unit_test(adds_and_subtracts_exactly),
        cmocka_unit_test(the_least_integer_can_be_subtracted),
        cmocka_unit_test(a_copy_needs_nothing_of_the_first),
        cmocka_unit_test(usual_quantities_use_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

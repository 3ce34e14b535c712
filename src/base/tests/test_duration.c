#include "support/dvtest.h"

#include "base/calendar.h"

#define SECOND INT64_C(1000000000)

static void reads_what_go_writes(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"0",                      0                      },
        {"-0",                     0                      },
        {"5s",                     5 * SECOND             },
        {"+5s",                    5 * SECOND             },
        {"-1.5h",                  -5400 * SECOND         },
        {"1h1m1s1ms1us1ns",        3661 * SECOND + 1001001},
        {"3\xc2\xb5s",             3000                   },
        {"3\xce\xbcs",             3000                   },
        {".5s",                    SECOND / 2             },
        {"1.s",                    SECOND                 },
        {"0.3333333333333333333h", 1200 * SECOND          },
        {"9223372036854775807ns",  INT64_MAX              },
        {"-9223372036854775808ns", INT64_MIN              },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;
        int64_t ns;

        assert_ok(dv_duration_parse(dv_str_from_c(cases[i].text), &ns, &err), &err);
        assert_int_equal(ns, cases[i].ns);
    }
}

static void says_what_is_wrong_in_gos_words(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"",                       "time: invalid duration \"\""                      },
        {"invalid",                "time: invalid duration \"invalid\""               },
        {"-",                      "time: invalid duration \"-\""                     },
        {".s",                     "time: invalid duration \".s\""                    },
        {"1..s",                   "time: missing unit in duration \"1..s\""          },
        {"5",                      "time: missing unit in duration \"5\""             },
        {"1s5",                    "time: missing unit in duration \"1s5\""           },
        {"5d",                     "time: unknown unit \"d\" in duration \"5d\""      },
        {"9223372036854775808ns",  "time: invalid duration \"9223372036854775808ns\"" },
        {"99999999999999999999s",  "time: invalid duration \"99999999999999999999s\"" },
        {"-9223372036854775809ns", "time: invalid duration \"-9223372036854775809ns\""},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;
        int64_t ns;

        assert_false(dv_duration_parse(dv_str_from_c(cases[i].text), &ns, &err));
        assert_string_equal(err.msg, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_go_writes),
        cmocka_unit_test(says_what_is_wrong_in_gos_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "test_quantity.h"

#include <math.h>

#include "base/arena.h"

#define NO_NUMBER INT64_MIN

static void gives_whole_numbers_away_from_zero(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
        int64_t milli;
    } cases[] = {
        {"0",                      0,                   0                  },
        {"1",                      1,                   1000               },
        {"1m",                     1,                   1                  },
        {"1n",                     1,                   1                  },
        {"-1n",                    -1,                  -1                 },
        {"1500m",                  2,                   1500               },
        {"-1500m",                 -2,                  -1500              },
        {"1.0001",                 2,                   1001               },
        {"-2.0000001",             -3,                  -2001              },
        {"1Ki",                    1024,                1024000            },
        {"9223372036854775807",    INT64_MAX,           NO_NUMBER          },
        {"9223372036854775806.1",  INT64_MAX,           NO_NUMBER          },
        {"9223372036854775807.1",  NO_NUMBER,           NO_NUMBER          },
        {"-9223372036854775807",   -INT64_MAX,          NO_NUMBER          },
        {"-9223372036854775809",   NO_NUMBER,           NO_NUMBER          },
        {"9223372036854775807m",   9223372036854776,    INT64_MAX          },
        {"9223372036854775808m",   9223372036854776,    NO_NUMBER          },
        {"18446744073709551615",   NO_NUMBER,           NO_NUMBER          },
        {"18446744073709551615.1", NO_NUMBER,           NO_NUMBER          },
        {"18446744073709551616",   NO_NUMBER,           NO_NUMBER          },
        {"10E",                    NO_NUMBER,           NO_NUMBER          },
        {"9E",                     9000000000000000000, NO_NUMBER          },
        {"9e15",                   9000000000000000,    9000000000000000000},
        {"1e9999",                 NO_NUMBER,           NO_NUMBER          },
        {"0e9999",                 0,                   0                  },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_quantity quantity = parsed(cases[i].text, arena);
        int64_t value;
        int64_t milli;

        if (!dv_quantity_to_i64_ceil(&quantity, &value))
            value = NO_NUMBER;
        if (!dv_quantity_to_milli_ceil(&quantity, &milli))
            milli = NO_NUMBER;
        if (value != cases[i].value || milli != cases[i].milli)
            fail_msg("%s: got %lld and %lld", cases[i].text, (long long)value, (long long)milli);
    }
}

static void is_an_integer_where_the_reference_says_so(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"0",                   0                  },
        {"0e9999",              0                  },
        {"0m",                  NO_NUMBER          },
        {"0.0",                 NO_NUMBER          },
        {"-3",                  -3                 },
        {"12k",                 12000              },
        {"9E",                  9000000000000000000},
        {"10E",                 NO_NUMBER          },
        {"1e18",                1000000000000000000},
        {"1000m",               NO_NUMBER          },
        {"1.0",                 NO_NUMBER          },
        {"1.5k",                1500               },
        {"999999999999999999",  999999999999999999 },
        {"1000000000000000000", NO_NUMBER          }, /* 19 digits are a big decimal */
        {"99Ti",                108851651149824    },
        {"100Ti",               NO_NUMBER          }, /* so is this */
        {"1.5Gi",               NO_NUMBER          },
        {"1.Gi",                1073741824         },
        {"1Pi",                 NO_NUMBER          },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_quantity quantity = parsed(cases[i].text, arena);
        int64_t value;

        if (!dv_quantity_to_i64(&quantity, &value))
            value = NO_NUMBER;
        if (value != cases[i].value)
            fail_msg("%s: got %lld", cases[i].text, (long long)value);
        assert_int_equal(dv_quantity_is_integer(&quantity), value != NO_NUMBER);
    }
}

static void a_sum_is_an_integer_when_both_are(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        bool is_integer;
    } cases[] = {
        {"1",     "2",     true },
        {"1k",    "2Ki",   true },
        {"0m",    "2",     true }, /* 0 takes the other's scale */
        {"2",     "0m",    true },
        {"500m",  "500m",  false},
        {"1Gi",   "1.5Gi", false},
        {"0.0Gi", "1",     false},
        {"9E",    "1E",    false},
        {"9E",    "9E",    false},
        {"1e30",  "1",     false},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_quantity a = parsed(cases[i].a, arena);
        struct dv_quantity b = parsed(cases[i].b, arena);
        struct dv_quantity sum = dv_quantity_add(&a, &b, arena);

        if (dv_quantity_is_integer(&sum) != cases[i].is_integer)
            fail_msg("%s + %s", cases[i].a, cases[i].b);
    }
}

static void doubles_are_the_references(void **state)
{
    static const struct {
        const char *text;
        double number;
    } cases[] = {
        {"0",                        0                     },
        {"1",                        1                     },
        {"-1500m",                   -1.5                  },
        {"1n",                       1e-9                  },
        {"1Gi",                      1073741824            },
        {"1e22",                     1e22                  },
        {"1e31",                     1e31                  },
        {"1e1000",                   HUGE_VAL              },
        {"-9223372036854775808e300", -HUGE_VAL             },
 /* Not the closest ones. */
        {"1.25e300",                 1.2499999999999999e300},
        {"123456Gi",                 132559870623744.02    },
        {"9.223372036854775807T",    9223372036854.7773    },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_quantity quantity = parsed(cases[i].text, arena);
        double number = dv_quantity_to_double(&quantity);

        if (number < cases[i].number || number > cases[i].number)
            fail_msg("%s: got %.17g, want %.17g", cases[i].text, number, cases[i].number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_whole_numbers_away_from_zero),
        cmocka_unit_test(is_an_integer_where_the_reference_says_so),
        cmocka_unit_test(a_sum_is_an_integer_when_both_are),
        cmocka_unit_test(doubles_are_the_references),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

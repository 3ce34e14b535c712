#include <string.h>

#include "support/dvtest.h"

#include "base/calendar.h"

static void days_and_dates_are_each_others_reverse(void **state)
{
    int64_t days = dv_date_to_days(-400, 1, 1);

    (void)state;
    assert_int_equal(dv_date_to_days(1970, 1, 1), 0);
    assert_int_equal(dv_date_to_days(2000, 2, 29), 11016);
    for (int64_t year = -400; year <= 2400; year++) {
        for (int month = 1; month <= 12; month++) {
            for (int day = 1; day <= dv_date_days_in_month(year, month); day++, days++) {
                struct dv_date date = dv_date_from_days(days);

                assert_int_equal(dv_date_to_days(year, month, day), days);
                assert_true(date.year == year && date.month == month && date.day == day);
            }
        }
    }
}

static void a_second_before_1970_is_in_the_day_before(void **state)
{
    (void)state;
    assert_int_equal(dv_days_of_seconds(0), 0);
    assert_int_equal(dv_days_of_seconds(-1), -1);
    assert_int_equal(dv_days_of_seconds(-DV_DAY_SECONDS), -1);
    assert_int_equal(dv_days_of_seconds(-DV_DAY_SECONDS - 1), -2);
}

static void reads_times_as_go_does(void **state)
{
    static const struct {
        const char *text;
        bool is_strict;
        bool is_lax;
    } rows[] = {
        {"2024-05-01T12:00:00Z",      true,  true },
        {"2024-05-01T12:00:00.5Z",    true,  true },
        {"2024-05-01T12:00:00+23:59", true,  true },
        {"2024-02-29T00:00:00Z",      true,  true },
        {"0000-01-01T00:00:00Z",      true,  true },
        {"2024-05-01T1:00:00Z",       false, true },
        {"2024-05-01T12:00:00,5Z",    false, true },
        {"2024-05-01T12:00:00+24:00", false, true },
        {"2024-05-01T12:00:00-01:60", false, true },
        {"2024-05-01T12:00:00+25:00", false, false},
        {"2023-02-29T00:00:00Z",      false, false},
        {"2024-00-01T00:00:00Z",      false, false},
        {"2024-13-01T00:00:00Z",      false, false},
        {"2024-05-00T00:00:00Z",      false, false},
        {"2024-05-01T24:00:00Z",      false, false},
        {"2024-05-01T12:00:60Z",      false, false},
        {"2024-05-01T12:00:00.Z",     false, false},
        {"2024-05-01T12:00:00z",      false, false},
        {"2024-05-01t12:00:00Z",      false, false},
        {"2024-05-01 12:00:00Z",      false, false},
        {"2024-05-01T12:00:00",       false, false},
        {"2024-05-01T12:00:00Z ",     false, false},
        {"24-05-01T12:00:00Z",        false, false},
        {"",                          false, false},
    };
    struct dv_rfc3339 time;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        dv_str text = dv_str_from_c(rows[i].text);

        if (dv_rfc3339_parse(text, DV_RFC3339_STRICT, &time) != rows[i].is_strict ||
            dv_rfc3339_parse(text, DV_RFC3339_LAX, &time) != rows[i].is_lax)
            fail_msg("%s", rows[i].text);
    }
}

static void prints_what_it_read(void **state)
{
    static const struct {
        const char *text;
        struct dv_rfc3339 time;
    } rows[] = {
        {"1970-01-01T00:00:00Z",           {0, 0, 0}                     },
        {"1969-12-31T23:59:59.999999999Z", {-1, 999999999, 0}            },
        {"2024-05-01T12:00:00.05+05:30",   {1714545000, 50000000, 330}   },
        {"0000-01-01T00:00:00Z",           {DV_RFC3339_SECONDS_MIN, 0, 0}},
        {"9999-12-31T23:59:59-23:59",      {253402387139, 0, -1439}      },
    };
    char text[DV_RFC3339_BYTES];
    struct dv_rfc3339 time;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        assert_true(dv_rfc3339_parse(dv_str_from_c(rows[i].text), DV_RFC3339_STRICT, &time));
        assert_int_equal(time.seconds, rows[i].time.seconds);
        assert_int_equal(time.nanos, rows[i].time.nanos);
        assert_int_equal(time.offset_minutes, rows[i].time.offset_minutes);
        assert_int_equal(dv_rfc3339_print(time, DV_RFC3339_TRIMMED, text), strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
    }
}

static void prints_as_many_digits_as_asked_for(void **state)
{
    const struct dv_rfc3339 time = {.seconds = 1, .nanos = 1234567};
    char text[DV_RFC3339_BYTES];

    (void)state;
    (void)dv_rfc3339_print(time, 0, text);
    assert_string_equal(text, "1970-01-01T00:00:01Z");
    (void)dv_rfc3339_print(time, 6, text);
    assert_string_equal(text, "1970-01-01T00:00:01.001234Z");
    (void)dv_rfc3339_print(time, 9, text);
    assert_string_equal(text, "1970-01-01T00:00:01.001234567Z");
}

static void shows_the_limit_for_what_is_beyond_it(void **state)
{
    char text[DV_RFC3339_BYTES];

    (void)state;
    (void)dv_rfc3339_print((struct dv_rfc3339){.seconds = INT64_MAX, .offset_minutes = 1}, 0, text);
    assert_string_equal(text, "9999-12-31T23:59:59+00:01");
    (void)dv_rfc3339_print((struct dv_rfc3339){.seconds = INT64_MIN, .offset_minutes = -1}, 0,
                           text);
    assert_string_equal(text, "0000-01-01T00:00:00-00:01");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_and_dates_are_each_others_reverse),
        cmocka_unit_test(a_second_before_1970_is_in_the_day_before),
        cmocka_unit_test(reads_times_as_go_does),
        cmocka_unit_test(prints_what_it_read),
        cmocka_unit_test(prints_as_many_digits_as_asked_for),
        cmocka_unit_test(shows_the_limit_for_what_is_beyond_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "support/dvtest.h"

#include "base/buf.h"
#include "resource/resource.h"

static const struct {
    const char *text;
    const char *printed; /* with microseconds */
} times[] = {
    {"1970-01-01T00:00:00Z",               "1970-01-01T00:00:00.000000Z"},
    {"2024-02-29T12:34:56Z",               "2024-02-29T12:34:56.000000Z"},
    {"2000-02-29T00:00:00+14:00",          "2000-02-28T10:00:00.000000Z"},
    {"1969-12-31T23:59:59.9Z",             "1969-12-31T23:59:59.900000Z"},
    {"2024-12-31T23:30:00-01:45",          "2025-01-01T01:15:00.000000Z"},
    {"2024-01-01T00:00:00.123456789Z",     "2024-01-01T00:00:00.123456Z"},
    {"2024-01-01T00:00:00.1234567891234Z", "2024-01-01T00:00:00.123456Z"},
    {"2024-01-01T00:00:00,5Z",             "2024-01-01T00:00:00.500000Z"},
    {"2024-01-01T7:00:00Z",                "2024-01-01T07:00:00.000000Z"},
    {"0000-01-01T00:00:00Z",               "0000-01-01T00:00:00.000000Z"},
    {"9999-12-31T23:59:59Z",               "9999-12-31T23:59:59.000000Z"},
};

static void reads_times_as_go_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(times); i++) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
        struct dv_time time;
        struct dv_err err;

        dv_buf_init(&buf, 100);
        assert_ok(dv_api_time_parse(dv_str_from_c(times[i].text), &time, &err), &err);
        dv_api_time_print(time, true, &buf);
        assert_str(dv_buf_str(&buf), times[i].printed);
    }
}

static void adds_up_to_the_ends_of_the_calendar(void **state)
{
    static const struct {
        int64_t from;
        int64_t add;
        int64_t sum;
    } rows[] = {
        {0,                     30,        30                   },
        {1700000000,            INT64_MAX, INT64_C(253402300799)},
        {1700000000,            INT64_MIN, INT64_C(-62167219200)},
        {INT64_C(253402300799), 1,         INT64_C(253402300799)},
        {INT64_C(253402300799), -1,        INT64_C(253402300798)},
        {INT64_C(-62167219200), -1,        INT64_C(-62167219200)},
        {INT64_MAX,             0,         INT64_C(253402300799)},
        {INT64_MIN,             0,         INT64_C(-62167219200)},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_time from = {.seconds = rows[i].from, .is_set = true};

        assert_int_equal(dv_api_time_add(from, rows[i].add).seconds, rows[i].sum);
    }
}

/* Or it would be there until it is printed and read again. */
static void the_first_second_of_all_is_no_time_whatever_its_fraction(void **state)
{
    struct dv_time time;
    struct dv_err err;

    (void)state;
    assert_ok(dv_api_time_parse(DV_STR("0001-01-01T00:00:00.0000005Z"), &time, &err), &err);
    assert_true(time.is_set);
    assert_false(dv_api_time_round(time, false).is_set);
    assert_false(dv_api_time_round(time, true).is_set);
    time.nanos = 1000;
    assert_true(dv_api_time_round(time, true).is_set);
}

static void refuses_what_is_no_time(void **state)
{
    static const char *const texts[] = {
        "",
        "2024",
        "2024-01-01",
        "2024-01-01T00:00:00",
        "2024-01-01t00:00:00Z",
        "2024-01-01T00:00:00z",
        "2024-01-01 00:00:00Z",
        "2024-13-01T00:00:00Z",
        "2024-00-01T00:00:00Z",
        "2024-01-00T00:00:00Z",
        "2024-04-31T00:00:00Z",
        "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2024-01-01T24:00:00Z",
        "2024-01-01T00:60:00Z",
        "2024-01-01T00:00:60Z",
        "2024-01-01T00:00:00.Z",
        "2024-01-01T00:00:00+01",
        "2024-01-01T00:00:00+0100",
        "2024-01-01T00:00:00+25:00",
        "2024-01-01T00:00:00Z ",
        "24-01-01T00:00:00Z",
        "0000-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        struct dv_time time;
        struct dv_err err;

        if (dv_api_time_parse(dv_str_from_c(texts[i]), &time, &err))
            fail_msg("accepted: %s", texts[i]);
        assert_int_equal(err.code, DV_INVALID_ARGUMENT);
    }
}

static void the_first_day_of_all_is_no_time(void **state)
{
    struct dv_time time = {.is_set = true};
    struct dv_err err;

    (void)state;
    assert_ok(dv_api_time_parse(DV_STR("0001-01-01T01:00:00+01:00"), &time, &err), &err);
    assert_false(time.is_set);
}

static void every_day_is_printed_as_it_was_read(void **state)
{
    (void)state;
    for (int64_t day = -719528; day <= 2932896; day += 13) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
        struct dv_time time = {.seconds = day * 86400 + 86399, .is_set = true};
        struct dv_time again;
        struct dv_err err;

        dv_buf_init(&buf, 100);
        dv_api_time_print(time, false, &buf);
        assert_ok(dv_api_time_parse(dv_buf_str(&buf), &again, &err), &err);
        assert_int_equal(again.seconds, time.seconds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_times_as_go_does),
        cmocka_unit_test(adds_up_to_the_ends_of_the_calendar),
        cmocka_unit_test(the_first_second_of_all_is_no_time_whatever_its_fraction),
        cmocka_unit_test(refuses_what_is_no_time),
        cmocka_unit_test(the_first_day_of_all_is_no_time),
        cmocka_unit_test(every_day_is_printed_as_it_was_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

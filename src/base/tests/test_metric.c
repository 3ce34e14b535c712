#include "support/dvtest.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/metric.h"

#define PAGE_BYTES_MAX (1u << 20)

struct fixture {
    struct dv_metrics *metrics;
    struct dv_buf page;
};

static struct fixture fixture;

static int start(void **state)
{
    fixture.metrics = dv_metrics_new();
    dv_buf_init(&fixture.page, PAGE_BYTES_MAX);
    *state = &fixture;
    return 0;
}

static int end(void **state)
{
    (void)state;
    dv_metrics_free(fixture.metrics);
    dv_buf_fini(&fixture.page);
    return 0;
}

static const char *print(void)
{
    struct dv_err err;

    dv_buf_clear(&fixture.page);
    assert_ok(dv_metrics_print(fixture.metrics, &fixture.page, &err), &err);
    return dv_buf_c(&fixture.page);
}

static const char *const resource_and_code[] = {"resource", "code"};
static const char *const resource_only[] = {"resource"};

static void an_empty_registry_prints_nothing(void **state)
{
    const struct dv_family_spec spec = {
        .name = "a_total", .help = "h", .labels = resource_only, .n_labels = 1};

    (void)state;
    assert_string_equal(print(), "");
    (void)dv_metrics_add_counter(fixture.metrics, &spec);
    assert_string_equal(print(), ""); /* no series yet: nothing is known */
    dv_metrics_free(NULL);
}

static void counters_count(void **state)
{
    const struct dv_family_spec spec = {.name = "calls_total", .help = "Calls served."};
    struct dv_family *family;
    struct dv_counter *counter;

    (void)state;
    family = dv_metrics_add_counter(fixture.metrics, &spec);
    counter = dv_family_counter(family, NULL);
    dv_counter_add(counter, 0);
    assert_string_equal(print(), "# HELP calls_total Calls served.\n"
                                 "# TYPE calls_total counter\n"
                                 "calls_total 0\n");
    dv_counter_add(counter, UINT64_MAX - 1);
    assert_ptr_equal(dv_family_counter(family, NULL), counter);
    dv_counter_add(dv_family_counter(family, NULL), 1);
    assert_string_equal(print(), "# HELP calls_total Calls served.\n"
                                 "# TYPE calls_total counter\n"
                                 "calls_total 18446744073709551615\n");
}

static void everything_is_sorted(void **state)
{
    const struct dv_family_spec names[] = {
        {.name = "m_c_total", .help = "c", .labels = resource_and_code, .n_labels = 2},
        {.name = "m_a_total",      .help = "a"                },
        {.name = "m_b_total",   .help = "b"},
    };
    const dv_str values[][2] = {
        {DV_STR_INIT("b"), DV_STR_INIT("2")},
        {DV_STR_INIT("a"), DV_STR_INIT("2")},
        {DV_STR_INIT("b"), DV_STR_INIT("1")},
        {DV_STR_INIT(""),  DV_STR_INIT("9")},
    };
    struct dv_family *families[DV_COUNT(names)];

    (void)state;
    for (size_t i = 0; i < DV_COUNT(names); i++)
        families[i] = dv_metrics_add_counter(fixture.metrics, &names[i]);
    for (size_t i = 0; i < DV_COUNT(values); i++)
        dv_counter_add(dv_family_counter(families[0], values[i]), i);
    dv_counter_add(dv_family_counter(families[2], NULL), 5);
    dv_counter_add(dv_family_counter(families[1], NULL), 6);
    assert_string_equal(print(), "# HELP m_a_total a\n# TYPE m_a_total counter\nm_a_total 6\n"
                                 "# HELP m_b_total b\n# TYPE m_b_total counter\nm_b_total 5\n"
                                 "# HELP m_c_total c\n# TYPE m_c_total counter\n"
                                 "m_c_total{resource=\"\",code=\"9\"} 3\n"
                                 "m_c_total{resource=\"a\",code=\"2\"} 1\n"
                                 "m_c_total{resource=\"b\",code=\"1\"} 2\n"
                                 "m_c_total{resource=\"b\",code=\"2\"} 0\n");
}

static void gauges_print_the_shortest_number_that_reads_back(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0,                      "0"                      },
        {-0.5,                   "-0.5"                   },
        {0.1,                    "0.1"                    },
        {1.0 / 3,                "0.3333333333333333"     },
        {0.1 + 0.2,              "0.30000000000000004"    },
        {123456789012.0,         "123456789012"           },
        {1e-5,                   "1e-05"                  },
        {1e21,                   "1e+21"                  },
        {9007199254740992.0,     "9007199254740992"       },
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {5e-324,                 "4.94065645841247e-324"  },
        {INFINITY,               "+Inf"                   },
        {-INFINITY,              "-Inf"                   },
        {NAN,                    "NaN"                    },
    };
    const struct dv_family_spec spec = {.name = "g", .help = "h"};
    struct dv_gauge *gauge = dv_family_gauge(dv_metrics_add_gauge(fixture.metrics, &spec), NULL);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        char want[100];

        (void)snprintf(want, sizeof(want), "# HELP g h\n# TYPE g gauge\ng %s\n", cases[i].text);
        dv_gauge_set(gauge, cases[i].value);
        assert_string_equal(print(), want);
    }
    dv_gauge_set(gauge, 2);
    dv_gauge_add(gauge, -3.5);
    assert_string_equal(print(), "# HELP g h\n# TYPE g gauge\ng -1.5\n");
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    /* Which of them exist depends on the machine; C.UTF-8 always does, and has a point. */
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"};
    static const double bounds[] = {0.25};
    const struct dv_family_spec spec = {.name = "g", .help = "h"};
    const struct dv_family_spec times = {.name = "h", .help = "h"};
    size_t i = 0;

    (void)state;
    while (i < DV_COUNT(names) && !setlocale(LC_ALL, names[i]))
        i++;
    dv_gauge_set(dv_family_gauge(dv_metrics_add_gauge(fixture.metrics, &spec), NULL), 1.5);
    dv_histogram_observe(
        dv_family_histogram(dv_metrics_add_histogram(fixture.metrics, &times, bounds, 1), NULL),
        0.75);
    assert_string_equal(print(), "# HELP g h\n# TYPE g gauge\ng 1.5\n"
                                 "# HELP h h\n# TYPE h histogram\n"
                                 "h_bucket{le=\"0.25\"} 0\nh_bucket{le=\"+Inf\"} 1\n"
                                 "h_sum 0.75\nh_count 1\n");
    assert_non_null(setlocale(LC_ALL, "C"));
}

static void histograms_are_cumulative(void **state)
{
    static const double bounds[] = {-1, 0.5, 10};
    const struct dv_family_spec spec = {
        .name = "h_seconds", .help = "h", .labels = resource_only, .n_labels = 1};
    const dv_str value[] = {DV_STR_INIT("r")};
    struct dv_histogram *histogram = dv_family_histogram(
        dv_metrics_add_histogram(fixture.metrics, &spec, bounds, DV_COUNT(bounds)), value);

    (void)state;
    dv_histogram_observe(histogram, 0.5); /* a bound belongs to its bucket */
    dv_histogram_observe(histogram, 0.25);
    dv_histogram_observe(histogram, -1);
    dv_histogram_observe(histogram, 10.25);
    dv_histogram_observe(histogram, NAN);
    dv_histogram_observe_ns(histogram, 2500000000u);
    assert_string_equal(print(), "# HELP h_seconds h\n# TYPE h_seconds histogram\n"
                                 "h_seconds_bucket{resource=\"r\",le=\"-1\"} 1\n"
                                 "h_seconds_bucket{resource=\"r\",le=\"0.5\"} 3\n"
                                 "h_seconds_bucket{resource=\"r\",le=\"10\"} 4\n"
                                 "h_seconds_bucket{resource=\"r\",le=\"+Inf\"} 5\n"
                                 "h_seconds_sum{resource=\"r\"} 12.5\n"
                                 "h_seconds_count{resource=\"r\"} 5\n");
}

static void our_bounds_resolve_from_ten_microseconds(void **state)
{
    const struct dv_family_spec spec = {.name = "h", .help = "h"};
    struct dv_histogram *histogram = dv_family_histogram(
        dv_metrics_add_histogram(fixture.metrics, &spec, dv_seconds_bounds, DV_SECONDS_BOUNDS),
        NULL);

    (void)state;
    dv_histogram_observe_ns(histogram, 10000);
    dv_histogram_observe_ns(histogram, 10001);
    dv_histogram_observe_ns(histogram, 60000000000u);
    assert_non_null(strstr(print(), "h_bucket{le=\"1e-05\"} 1\nh_bucket{le=\"2.5e-05\"} 2\n"));
    assert_non_null(strstr(print(), "h_bucket{le=\"30\"} 2\nh_bucket{le=\"60\"} 3\n"));
}

static void texts_are_escaped_and_cut(void **state)
{
    static const struct {
        dv_str value;
        const char *text;
    } cases[] = {
        {DV_STR_INIT("a\\b\"c\nd"),         "a\\\\b\\\"c\\nd"          },
        {DV_STR_INIT("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f"       },
        {DV_STR_INIT("x\xff\xc3"),          "x\xef\xbf\xbd\xef\xbf\xbd"},
        {DV_STR_INIT("x\0y"),               "x\xef\xbf\xbdy"           },
    };
    const struct dv_family_spec spec = {.name = "a_total",
                                        .help = "back\\slash, \"quotes\"\nand a new line",
                                        .labels = resource_only,
                                        .n_labels = 1};
    struct dv_family *family = dv_metrics_add_counter(fixture.metrics, &spec);
    char longest[400];
    dv_str value = {longest, sizeof(longest)};
    char want[400];

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_counter_add(dv_family_counter(family, &cases[i].value), 1);
        (void)snprintf(want, sizeof(want), "a_total{resource=\"%s\"} 1\n", cases[i].text);
        assert_non_null(strstr(print(), want));
    }
    memset(longest, 'x', sizeof(longest));
    longest[255] = (char)0xc3; /* a character where it would be cut */
    longest[256] = (char)0xbc;
    dv_counter_add(dv_family_counter(family, &value), 1);
    (void)snprintf(want, sizeof(want), "a_total{resource=\"%.255s\"} 1\n", longest);
    assert_non_null(strstr(print(), want));
    assert_non_null(strstr(print(), "# HELP a_total back\\\\slash, \"quotes\"\\nand a new line\n"));
}

static void what_is_over_the_limit_goes_to_one_series(void **state)
{
    const struct dv_family_spec spec = {.name = "a_total",
                                        .help = "h",
                                        .series_max = 3,
                                        .labels = resource_and_code,
                                        .n_labels = 2};
    struct dv_family *family = dv_metrics_add_counter(fixture.metrics, &spec);
    char text[2] = "a";
    dv_str values[2] = {
        {text, 1},
        DV_STR_INIT("0")
    };

    (void)state;
    for (; text[0] <= 'z'; text[0]++)
        dv_counter_add(dv_family_counter(family, values), 1);
    assert_string_equal(print(), "# HELP a_total h\n# TYPE a_total counter\n"
                                 "a_total{resource=\"a\",code=\"0\"} 1\n"
                                 "a_total{resource=\"b\",code=\"0\"} 1\n"
                                 "a_total{resource=\"c\",code=\"0\"} 1\n"
                                 "a_total{resource=\"over_limit_3\",code=\"over_limit_3\"} 23\n");
}

struct collected {
    struct dv_family *family;
    int n_devices;
};

static void collect_devices(void *ctx)
{
    struct collected *collected = ctx;

    for (int i = 0; i < collected->n_devices; i++) {
        char name = (char)('a' + i);

        dv_gauge_set(dv_family_gauge(collected->family, &(dv_str){&name, 1}), i);
    }
}

static void collectors_fill_in_at_print_time(void **state)
{
    const struct dv_family_spec spec = {.name = "devices",
                                        .help = "h",
                                        .labels = resource_only,
                                        .n_labels = 1,
                                        .is_collected = true};
    struct collected collected = {.n_devices = 2};

    (void)state;
    collected.family = dv_metrics_add_gauge(fixture.metrics, &spec);
    dv_metrics_add_collector(fixture.metrics, collect_devices, &collected);
    assert_string_equal(print(), "# HELP devices h\n# TYPE devices gauge\n"
                                 "devices{resource=\"a\"} 0\ndevices{resource=\"b\"} 1\n");
    collected.n_devices = 1; /* what is gone is not shown any more */
    assert_string_equal(print(), "# HELP devices h\n# TYPE devices gauge\n"
                                 "devices{resource=\"a\"} 0\n");
    dv_metrics_remove_collector(fixture.metrics, collect_devices, fixture.metrics);
    assert_non_null(strstr(print(), "devices{resource=\"a\"} 0\n")); /* another's: still there */
    dv_metrics_remove_collector(fixture.metrics, collect_devices, &collected);
    assert_string_equal(print(), "");
}

static void what_does_not_fit_is_left_out_by_whole_families(void **state)
{
    static const char page[] = "# HELP a_total h\n# TYPE a_total counter\na_total 1\n"
                               "# HELP c_total h\n# TYPE c_total counter\nc_total 3\n";
    const struct dv_family_spec small = {.name = "a_total", .help = "h"};
    const struct dv_family_spec large = {.name = "b", .help = "h"};
    const struct dv_family_spec last = {.name = "c_total", .help = "h"};
    struct dv_buf out;
    struct dv_err err;

    (void)state;
    dv_counter_add(dv_family_counter(dv_metrics_add_counter(fixture.metrics, &small), NULL), 1);
    (void)dv_family_histogram(
        dv_metrics_add_histogram(fixture.metrics, &large, dv_seconds_bounds, DV_SECONDS_BOUNDS),
        NULL);
    dv_counter_add(dv_family_counter(dv_metrics_add_counter(fixture.metrics, &last), NULL), 3);
    dv_buf_init(&out, sizeof(page) - 1);
    assert_false(dv_metrics_print(fixture.metrics, &out, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "1 of 3 families");
    assert_str(dv_buf_str(&out), page);
    dv_buf_fini(&out);
    dv_buf_init(&out, 0);
    assert_false(dv_metrics_print(fixture.metrics, &out, &err));
    assert_str(dv_buf_str(&out), "");
    dv_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_empty_registry_prints_nothing, start, end),
        cmocka_unit_test_setup_teardown(counters_count, start, end),
        cmocka_unit_test_setup_teardown(everything_is_sorted, start, end),
        cmocka_unit_test_setup_teardown(gauges_print_the_shortest_number_that_reads_back, start,
                                        end),
        cmocka_unit_test_setup_teardown(numbers_do_not_depend_on_the_locale, start, end),
        cmocka_unit_test_setup_teardown(histograms_are_cumulative, start, end),
        cmocka_unit_test_setup_teardown(our_bounds_resolve_from_ten_microseconds, start, end),
        cmocka_unit_test_setup_teardown(texts_are_escaped_and_cut, start, end),
        cmocka_unit_test_setup_teardown(what_is_over_the_limit_goes_to_one_series, start, end),
        cmocka_unit_test_setup_teardown(collectors_fill_in_at_print_time, start, end),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_left_out_by_whole_families, start,
                                        end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

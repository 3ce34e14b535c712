/* Where to begin to read a log file, since when, and what to do at its end. */
#include "support/dvtest.h"

#include "base/buf.h"
#include "base/calendar.h"
#include "base/defs.h"
#include "podlog/podlog.h"

static uint64_t start_of(dv_str text, uint64_t n_lines)
{
    struct dv_podlog_tail tail;
    uint64_t offset;
    size_t n;

    dv_podlog_tail_init(&tail, text.n, n_lines);
    while (dv_podlog_tail_wants(&tail, &offset, &n)) {
        assert_true(n > 0 && offset + n <= text.n);
        dv_podlog_tail_add(&tail, dv_str_slice(text, offset, offset + n));
    }
    return tail.start;
}

static void the_last_lines_are_found(void **state)
{
    static const struct {
        const char *text;
        uint64_t n_lines;
        uint64_t start;
    } rows[] = {
        {"",          0,          0},
        {"",          5,          0},
        {"a\nb\nc\n", 0,          6},
        {"a\nb\nc\n", 1,          4},
        {"a\nb\nc\n", 2,          2},
        {"a\nb\nc\n", 3,          0},
        {"a\nb\nc\n", 4,          0},
        {"a\nb\nc\n", UINT64_MAX, 0},
 /* what follows the last newline stands beside those that are counted */
        {"a\nb\nc",   0,          4},
        {"a\nb\nc",   1,          2},
        {"a",         1,          0},
        {"a",         0,          0},
        {"\n\n\n",    1,          2},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_int_equal(start_of(dv_str_from_c(rows[i].text), rows[i].n_lines), rows[i].start);
}

static void the_last_lines_are_found_over_blocks(void **state)
{
    struct dv_buf text;

    (void)state;
    dv_buf_init(&text, 4u << 20);
    for (int i = 0; i < 100000; i++)
        dv_buf_printf(&text, "line %05d\n", i); /* eleven bytes each */
    for (uint64_t n = 0; n <= 100000; n += 997)
        assert_int_equal(start_of(dv_buf_str(&text), n), (100000 - n) * 11);
    dv_buf_fini(&text);
}

static void a_file_that_was_cut_off_is_read_from_its_beginning(void **state)
{
    struct dv_podlog_tail tail;
    uint64_t offset;
    size_t n;

    (void)state;
    dv_podlog_tail_init(&tail, 100000, 1);
    assert_true(dv_podlog_tail_wants(&tail, &offset, &n));
    dv_podlog_tail_add(&tail, DV_STR("short\n"));
    assert_false(dv_podlog_tail_wants(&tail, &offset, &n));
    assert_int_equal(tail.start, 0);
}

static void the_later_of_both_times_counts(void **state)
{
    static const int64_t minute = 60;
    static const int64_t ages = INT64_MIN;
    static const struct dv_rfc3339 now = {.seconds = 1000, .nanos = 5};
    static const struct dv_rfc3339 early = {.seconds = 900};
    static const struct dv_rfc3339 late = {.seconds = 940, .nanos = 6};
    static const struct {
        const int64_t *seconds;
        const struct dv_rfc3339 *time;
        bool has_since;
        int64_t since;
        int32_t nanos;
    } rows[] = {
        {NULL,    NULL,   false, 0,                      0},
        {&minute, NULL,   true,  940,                    5},
        {NULL,    &early, true,  900,                    0},
        {&minute, &early, true,  940,                    5},
        {&minute, &late,  true,  940,                    6},
        {&ages,   NULL,   true,  DV_RFC3339_SECONDS_MIN, 5},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_podlog_options options = {0};

        dv_podlog_set_since(&options, now, rows[i].seconds, rows[i].time);
        assert_int_equal(options.has_since, rows[i].has_since);
        assert_int_equal(options.since.seconds, rows[i].since);
        assert_int_equal(options.since.nanos, rows[i].nanos);
    }
}

/* Each row is what is true at the end of the file, one time after the other. */
static void what_follows_the_end_of_a_file(void **state)
{
    static const struct {
        bool is_running;
        bool is_replaced;
        enum dv_podlog_step step;
    } rows[] = {
        {true,  false, DV_PODLOG_WAIT  },
        {true,  false, DV_PODLOG_WAIT  },
 /* replaced: the old one is read to its end once more */
        {true,  true,  DV_PODLOG_READ  },
        {true,  true,  DV_PODLOG_REOPEN},
        {true,  false, DV_PODLOG_WAIT  },
 /* ended: read once more, then stop; a restart of the container goes on */
        {false, false, DV_PODLOG_READ  },
        {true,  false, DV_PODLOG_WAIT  },
        {false, false, DV_PODLOG_READ  },
 /* replaced and ended: what was written last is in the new file */
        {false, true,  DV_PODLOG_READ  },
        {false, true,  DV_PODLOG_REOPEN},
        {false, false, DV_PODLOG_READ  },
        {false, false, DV_PODLOG_STOP  },
        {false, false, DV_PODLOG_STOP  },
    };
    struct dv_podlog_follow follow = {0};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_int_equal(dv_podlog_follow_step(&follow, rows[i].is_running, rows[i].is_replaced),
                         rows[i].step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_lines_are_found),
        cmocka_unit_test(the_last_lines_are_found_over_blocks),
        cmocka_unit_test(a_file_that_was_cut_off_is_read_from_its_beginning),
        cmocka_unit_test(the_later_of_both_times_counts),
        cmocka_unit_test(what_follows_the_end_of_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

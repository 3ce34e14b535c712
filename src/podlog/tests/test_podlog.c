/* The lines of log files, and what is shown of them. */
#include "support/dvtest.h"

#include <string.h>

#include "base/buf.h"
#include "base/calendar.h"
#include "base/defs.h"
#include "podlog/podlog.h"

#define T1 "2016-10-06T00:17:09.669794202Z"
#define T2 "2016-10-06T00:17:10.1Z"
#define T3 "2016-10-06T02:17:11+02:00"

static const char file[] = T1 " stdout F one\n" T2 " stderr F two\n" T3 " stdout F three\n";
static const char parts[] =
    T1 " stdout P a\n" T2 " stdout P b\n" T2 " stdout F c\n" T3 " stdout F d\n";
static const char docker[] =
    "{\"log\":\"one\\n\",\"stream\":\"stdout\",\"time\":\"2016-10-06T00:17:09.669794202Z\"}\n"
    "{\"log\":\"t\\u0077o\",\"stream\":\"stderr\",\"time\":\"2016-10-06T00:17:10.1Z\"}\n";

static struct dv_rfc3339 time_of(const char *text)
{
    struct dv_rfc3339 time;

    assert_true(dv_rfc3339_parse(dv_str_from_c(text), DV_RFC3339_LAX, &time));
    return time;
}

/* Reads a whole file in pieces of this size; false when its format is unknown. */
static bool read_file(const struct dv_podlog_options *options, dv_str text, size_t step,
                      struct dv_buf *out)
{
    struct dv_podlog *log = dv_podlog_new(options);
    struct dv_err err;
    bool is_fine = true;

    for (; is_fine && text.n > 0; text = dv_str_slice(text, step, text.n))
        is_fine = dv_podlog_add(log, dv_str_slice(text, 0, step), out, &err);
    if (is_fine)
        is_fine = dv_podlog_end(log, out, &err);
    if (!is_fine)
        assert_err(&err, DV_INVALID_ARGUMENT, "unsupported log format: \"");
    dv_podlog_free(log);
    return is_fine;
}

struct row {
    const char *text;
    struct dv_podlog_options options;
    const char *since;
    const char *shown; /* NULL: the format is unknown */
};

static void check(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t step = 1; step < 500; step = step * 3 + 5) {
            struct dv_podlog_options options = rows[i].options;
            struct dv_buf out;

            dv_buf_init(&out, 4096);
            if (rows[i].since) {
                options.has_since = true;
                options.since = time_of(rows[i].since);
            }
            if (read_file(&options, dv_str_from_c(rows[i].text), step, &out)) {
                if (!rows[i].shown || strcmp(dv_buf_c(&out), rows[i].shown) != 0)
                    fail_msg("row %zu, step %zu: %s", i, step, dv_buf_c(&out));
            } else if (rows[i].shown) {
                fail_msg("row %zu, step %zu: unknown format", i, step);
            }
            dv_buf_fini(&out);
        }
    }
}

static void lines_are_shown(void **state)
{
    static const struct row rows[] = {
        {file,                                   {0}, NULL, "one\ntwo\nthree\n"},
        {parts,                                  {0}, NULL, "abc\nd\n"         },
        {docker,                                 {0}, NULL, "one\ntwo"         },
        {"",                                     {0}, NULL, ""                 },
        {T1 " stdout F \n",                      {0}, NULL, "\n"               },
        {T1 " stdout P \n" T1 " stdout F \n",    {0}, NULL, "\n"               },
        {T1 " stdout F:x:y tagged\n",            {0}, NULL, "tagged\n"         },
        {T1 " stdout P:x tagged\n",              {0}, NULL, "tagged"           },
        {T1 " stdout X other tag\n",             {0}, NULL, "other tag\n"      },
        {T1 " stdout F  two  blanks \n",         {0}, NULL, " two  blanks \n"  },
        {T1 " stdout F carriage\r\n",            {0}, NULL, "carriage\r\n"     },
 /* a last line without its end */
        {T1 " stdout F one\n" T2 " stdout F tw", {0}, NULL, "one\ntw"          },
        {T1 " stdout F one\n" T2 " std",         {0}, NULL, "one\n"            },
        {T1 " stdout P par",                     {0}, NULL, "par"              },
    };

    (void)state;
    check(rows, DV_COUNT(rows));
}

static void lines_that_are_none_are_left_out(void **state)
{
    static const struct row rows[] = {
        {T1 " stdout F one\nnonsense\n\n" T2 " stdin F two\n" T2 " stdout\n" T3 " stdout F three\n",
         {0},
         NULL,                                                                                                  "one\nthree\n"},
        {T1 " stdout F one\n2016-13-06T00:17:09Z stdout F two\n",                                    {0}, NULL, "one\n"       },
 /* the first one says what all are */
        {"nonsense\n" T1 " stdout F one\n",                                                          {0}, NULL, NULL          },
        {"\n",                                                                                       {0}, NULL, NULL          },
        {T1 " stdout",                                                                               {0}, NULL, NULL          },
        {"[1]\n",                                                                                    {0}, NULL, NULL          },
        {"{\"log\":\"x\"}\n",                                                                        {0}, NULL, NULL          },
        {"{\"log\":1,\"stream\":\"stdout\",\"time\":\"" T2 "\"}\n",                                  {0}, NULL, NULL          },
        {"{\"stream\":\"stdout\",\"time\":\"" T2 "\"}\n" T1 " stdout F one\n",                       {0}, NULL, ""            },
    };

    (void)state;
    check(rows, DV_COUNT(rows));
}

static void times_are_shown_where_a_line_begins(void **state)
{
    static const struct row rows[] = {
        {file,
         {.has_timestamps = true},
         NULL, "2016-10-06T00:17:09.669794202Z one\n2016-10-06T00:17:10.100000000Z two\n"
         "2016-10-06T02:17:11.000000000+02:00 three\n"                        },
        {parts,
         {.has_timestamps = true},
         NULL, "2016-10-06T00:17:09.669794202Z abc\n2016-10-06T02:17:11.000000000+02:00 d\n"},
        {docker,
         {.has_timestamps = true},
         NULL, "2016-10-06T00:17:09.669794202Z one\n2016-10-06T00:17:10.100000000Z two"     },
 /* an empty part is the beginning of a line once more, as for the reference */
        {T1 " stdout P \n" T1 " stdout F x\n",
         {.has_timestamps = true},
         NULL, "2016-10-06T00:17:09.669794202Z 2016-10-06T00:17:09.669794202Z x\n"          },
    };

    (void)state;
    check(rows, DV_COUNT(rows));
}

static void limits_hold(void **state)
{
    static const struct row rows[] = {
        {file,                                                                       {.has_limit = true, .limit_bytes = 5},                          NULL,                     "one\nt"           },
        {file,                                                                       {.has_limit = true, .limit_bytes = 4},                          NULL,                     "one\n"            },
        {file,                                                                       {.has_limit = true, .limit_bytes = 0},                          NULL,                     ""                 },
        {file,                                                                       {.has_limit = true, .limit_bytes = 100},                        NULL,                     "one\ntwo\nthree\n"},
        {file,                                                                       {.has_limit = true, .limit_bytes = 10, .has_timestamps = true}, NULL,                     "2016-10-06"       },
 /* tailLines counts lines of the file; the caller begins to read where they begin */
        {file,                                                                       {.has_tail = true, .tail_lines = 0},                            NULL,                     ""                 },
        {file,                                                                       {.has_tail = true, .tail_lines = 2},                            NULL,                     "one\ntwo\n"       },
        {parts,                                                                      {.has_tail = true, .tail_lines = 2},                            NULL,                     "ab"               },
        {file,                                                                       {.has_tail = true, .tail_lines = 9},                            NULL,                     "one\ntwo\nthree\n"},
        {T1 " stdout F one\nnonsense\n" T2 " stdout F two\n" T3 " stdout F three\n",
         {.has_tail = true, .tail_lines = 2},
         NULL,                                                                                                                                                                 "one\ntwo\n"       },
        {file,                                                                       {.has_tail = true, .tail_lines = 1, .is_followed = true},       NULL,                     "one\ntwo\nthree\n"},
        {file,                                                                       {0},                                                            T2,                       "two\nthree\n"     },
        {file,                                                                       {0},                                                            "2016-10-06T00:17:11Z",   "three\n"          },
        {file,                                                                       {0},                                                            "2016-10-06T00:17:11.1Z", ""                 },
        {parts,                                                                      {0},                                                            T2,                       "bc\nd\n"          },
        {file,                                                                       {.has_tail = true, .tail_lines = 2},                            T2,                       "two\n"            },
    };

    (void)state;
    check(rows, DV_COUNT(rows));
}

/* A line of a megabyte is put out as it comes. */
static void long_lines_are_shown_without_being_kept(void **state)
{
    static const struct {
        const char *head;
        const char *since;
        struct dv_podlog_options options;
        size_t n_shown;   /* of a line of a million bytes, and another one */
        const char *last; /* what is shown ends with this */
    } rows[] = {
        {T1 " stdout F ", NULL, {0},                                       1000005,          "x\nend\n"},
        {T1 " stdout P ", NULL, {0},                                       1000004,          "xend\n"  },
        {T1 " stdout F ", T2,   {0},                                       4,                "end\n"   },
        {T1 " stdin F ",  NULL, {0},                                       4,                "end\n"   },
        {T1 " stdout F ", NULL, {.has_limit = true, .limit_bytes = 70000}, 70000,            "x"       },
        {T1 " stdout F ", NULL, {.has_limit = true, .limit_bytes = 9},     9,                "x"       },
        {T1 " stdout F ", NULL, {.has_tail = true, .tail_lines = 1},       4,                "one\n"   },
        {T1 " stdout P ", NULL, {.has_timestamps = true},                  1000004 + 2 * 31, "xend\n"  },
        {T1 " stdout F ", NULL, {.has_timestamps = true},                  1000005 + 3 * 31, "Z end\n" },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        for (size_t step = 1000; step < 10000000; step *= 300) {
            struct dv_podlog_options options = rows[i].options;
            struct dv_buf text;
            struct dv_buf out;

            dv_buf_init(&text, 2u << 20);
            dv_buf_init(&out, 2u << 20);
            dv_buf_add_c(&text, T1 " stdout F one\n"); /* which says what the format is */
            dv_buf_add_c(&text, rows[i].head);
            for (int k = 0; k < 1000000; k++)
                dv_buf_add_char(&text, 'x');
            dv_buf_add_c(&text, "\n" T2 " stdout F end\n");
            if (rows[i].since) {
                options.has_since = true;
                options.since = time_of(rows[i].since);
            }
            assert_true(read_file(&options, dv_buf_str(&text), step, &out));
            if (out.n != rows[i].n_shown +
                             (rows[i].since || rows[i].options.has_limit || rows[i].options.has_tail
                                  ? 0
                                  : 4))
                fail_msg("row %zu, step %zu: %zu bytes", i, step, out.n);
            assert_true(dv_str_ends_with(dv_buf_str(&out), dv_str_from_c(rows[i].last)));
            dv_buf_fini(&text);
            dv_buf_fini(&out);
        }
    }
}

static void a_followed_file_may_be_replaced(void **state)
{
    struct dv_podlog_options options = {.is_followed = true, .has_timestamps = true};
    struct dv_podlog *log = dv_podlog_new(&options);
    struct dv_buf out;
    struct dv_err err;

    (void)state;
    dv_buf_init(&out, 4096);
    assert_ok(dv_podlog_add(log, DV_STR(T1 " stdout F one\n" T1 " stdout F t"), &out, &err), &err);
    assert_ok(dv_podlog_end(log, &out, &err), &err); /* a part of a line is not shown */
    assert_string_equal(dv_buf_c(&out), "2016-10-06T00:17:09.669794202Z one\n");
    dv_buf_clear(&out);
    dv_podlog_restart(log);
    assert_ok(dv_podlog_add(log, DV_STR(T1 " stdout F new\n"), &out, &err), &err);
    assert_string_equal(dv_buf_c(&out), "2016-10-06T00:17:09.669794202Z new\n");
    assert_false(dv_podlog_is_done(log));
    dv_podlog_free(log);
    dv_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_shown),
        cmocka_unit_test(lines_that_are_none_are_left_out),
        cmocka_unit_test(times_are_shown_where_a_line_begins),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(long_lines_are_shown_without_being_kept),
        cmocka_unit_test(a_followed_file_may_be_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

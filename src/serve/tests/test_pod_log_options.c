#include "support/dvtest.h"

#include "base/arena.h"
#include "base/calendar.h"
#include "base/defs.h"
#include "podlog/podlog.h"
#include "resource/resource.h"
#include "serve/logs/pod_log.h"

static const struct dv_rfc3339 now = {.seconds = 1000000000};

static const char *parse(const char *query, struct dv_arena *arena,
                         struct dv_pod_log_options *options)
{
    struct dv_api_status *failure;

    return dv_pod_log_options_parse(dv_str_from_c(query), DV_STR("p"), now, arena, options,
                                    &failure)
               ? ""
               : dv_str_printf(arena, "%lld %.*s", (long long)failure->code,
                               DV_FMT(failure->message))
                     .p;
}

static void options_are_read_as_the_api_reads_them(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_pod_log_options options;

    (void)state;
    assert_string_equal(parse("", arena, &options), "");
    assert_int_equal(options.container.n, 0);
    assert_false(options.is_previous || options.show.is_followed || options.show.has_timestamps ||
                 options.show.has_tail || options.show.has_limit || options.show.has_since);
    assert_string_equal(parse("container=c&follow=true&previous=1&timestamps&tailLines=3&"
                              "limitBytes=%2B7&sinceSeconds=10&insecureSkipTLSVerifyBackend=true&"
                              "container=d&pretty=true",
                              arena, &options),
                        "");
    assert_str(options.container, "c"); /* the first one counts */
    assert_true(options.is_previous && options.show.is_followed && options.show.has_timestamps);
    assert_true(options.show.has_tail && options.show.tail_lines == 3);
    assert_true(options.show.has_limit && options.show.limit_bytes == 7);
    assert_true(options.show.has_since && options.show.since.seconds == now.seconds - 10);
    assert_string_equal(parse("follow=false&previous=0&tailLines=0", arena, &options), "");
    assert_false(options.show.is_followed || options.is_previous);
    assert_true(options.show.has_tail && options.show.tail_lines == 0);
    assert_string_equal(parse("sinceTime=2001-09-09T03:46:40%2B02:00", arena, &options), "");
    assert_true(options.show.has_since && options.show.since.seconds == now.seconds);
    assert_string_equal(parse("sinceTime=", arena, &options), "");
    assert_true(options.show.has_since && options.show.since.seconds < -62000000000);
}

static void options_that_cannot_be_are_refused(void **state)
{
#define INVALID "422 PodLogOptions \"p\" is invalid: "
    static const struct {
        const char *query;
        const char *want;
    } cases[] = {
        {"tailLines=-1",
         INVALID "tailLines: Invalid value: -1: must be greater than or equal to 0"                        },
        {"limitBytes=0",                   INVALID "limitBytes: Invalid value: 0: must be greater than 0"  },
        {"sinceSeconds=0",                 INVALID "sinceSeconds: Invalid value: 0: must be greater than 0"},
        {"sinceSeconds=0&sinceTime=null",
         INVALID ": Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"              },
        {"stream=All",                     INVALID "stream: Forbidden: may not be specified"               },
        {"tailLines=-2&limitBytes=-3",
         INVALID "[tailLines: Invalid value: -2: must be greater than or equal to 0, limitBytes: "
                 "Invalid value: -3: must be greater than 0]"                                              },
        {"tailLines=",                     "400 strconv.ParseInt: parsing \"\": invalid syntax"            },
        {"tailLines=1e3",                  "400 strconv.ParseInt: parsing \"1e3\": invalid syntax"         },
        {"limitBytes=9223372036854775808",
         "400 strconv.ParseInt: parsing \"9223372036854775808\": value out of range"                       },
        {"sinceSeconds=now",               "400 strconv.ParseInt: parsing \"now\": invalid syntax"         },
        {"sinceTime=now",                  "400 parsing time \"now\" as \"2006-01-02T15:04:05Z07:00\": cannot parse "
                          "\"now\" as \"2006\""                                   },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_pod_log_options options;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_string_equal(parse(cases[i].query, arena, &options), cases[i].want);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_read_as_the_api_reads_them),
        cmocka_unit_test(options_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests_name("pod_log_options", tests, NULL, NULL);
}

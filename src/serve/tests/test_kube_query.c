#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "serve/wire/kube_query.h"

static const char *list_failure(const char *text, bool is_watch, struct dv_arena *arena)
{
    struct dv_query query;
    struct dv_list_options options;
    struct dv_api_status *failure;

    dv_query_parse(dv_str_from_c(text), arena, &query);
    return dv_query_list_options(&query, is_watch, arena, &options, &failure)
               ? ""
               : dv_str_to_c(failure->message, arena);
}

static void flags_are_true_unless_they_say_no(void **state)
{
    static const struct {
        const char *query;
        bool want;
    } cases[] = {
        {"",            false},
        {"watch",       true },
        {"watch=",      true },
        {"watch=1",     true },
        {"watch=maybe", true },
        {"watch=0",     false},
        {"watch=FALSE", false},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_query query;

        dv_query_parse(dv_str_from_c(cases[i].query), arena, &query);
        assert_int_equal(dv_query_is_true(query.watch), cases[i].want);
    }
}

static void lists_and_watches_refuse_what_does_not_go_together(void **state)
{
#define INVALID "ListOptions.meta.k8s.io \"\" is invalid: "
    static const struct {
        const char *query;
        bool is_watch;
        const char *want;
    } cases[] = {
        {"limit=2&continue=x",                                       false, ""                                               },
        {"limit=-1",                                                 false, ""                                               },
        {"limit=x",                                                  false, "strconv.ParseInt: parsing \"x\": invalid syntax"},
        {"limit=99999999999999999999",                               false,
         "strconv.ParseInt: parsing \"99999999999999999999\": value out of range"                                            },
        {"timeoutSeconds=x",                                         true,  "strconv.ParseInt: parsing \"x\": invalid syntax"},
        {"resourceVersionMatch=Exact",                               false,
         INVALID "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
                 "resourceVersion is provided"                                                                               },
        {"resourceVersion=0&resourceVersionMatch=Exact",             false,
         INVALID "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for "
                 "resourceVersion \"0\""                                                                                     },
        {"resourceVersion=1&resourceVersionMatch=x",                 false,
         INVALID "resourceVersionMatch: Unsupported value: \"x\": supported values: \"Exact\", "
                 "\"NotOlderThan\", \"\""                                                                                    },
        {"sendInitialEvents=true",                                   false,
         INVALID "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"                                     },
        {"sendInitialEvents=true",                                   true,
         INVALID "resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
                 "resourceVersionMatch to NotOlderThan"                                                                      },
        {"sendInitialEvents=true&resourceVersionMatch=NotOlderThan", true,  ""                                               },
        {"resourceVersionMatch=NotOlderThan&resourceVersion=0",      true,
         INVALID "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
                 "unless sendInitialEvents is provided"                                                                      },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_string_equal(list_failure(cases[i].query, cases[i].is_watch, arena), cases[i].want);
}

static void writes_refuse_options_that_cannot_be(void **state)
{
    static const struct {
        const char *query;
        const char *kind;
        bool is_apply;
        const char *want;
    } cases[] = {
        {"dryRun=All&fieldManager=m",   "CreateOptions", false, "" },
        {"dryRun=",                     "CreateOptions", false,
         "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"\"]: supported "
         "values: \"All\""                                         },
        {"fieldValidation=x",           "UpdateOptions", false,
         "UpdateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"x\": "
         "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""},
        {"",                            "PatchOptions",  true,
         "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for "
         "apply patch"                                             },
        {"force=true",                  "PatchOptions",  false,
         "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for "
         "non-apply patch"                                         },
        {"fieldManager=a%01b&dryRun=x", "CreateOptions", false,
         "CreateOptions.meta.k8s.io \"\" is invalid: [fieldManager: Invalid value: \"a\\u0001b\": "
         "should only contain printable characters, dryRun: Unsupported value: [\"x\"]: supported "
         "values: \"All\"]"                                        },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_query query;
        struct dv_write_options options;
        struct dv_api_status *failure = NULL;
        bool is_fine;

        dv_query_parse(dv_str_from_c(cases[i].query), arena, &query);
        is_fine = dv_query_write_options(&query, cases[i].kind, cases[i].is_apply,
                                         DV_STR("kubectl/v1"), arena, &options, &failure);
        assert_int_equal(is_fine, cases[i].want[0] == '\0');
        if (failure)
            assert_str(failure->message, cases[i].want);
    }
}

static void a_manager_is_named_by_its_program(void **state)
{
#define X60 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    static const struct {
        const char *agent, *manager;
    } agents[] = {
        {"kubectl/v1 (x)",          "kubectl"                  },
        {"",                        "unknown"                  },
        {"/",                       "unknown"                  },
        {"a\tb\x7f\xc2\x85",        "ab"                       },
        {"a\xff\xc3",               "a\xef\xbf\xbd\xef\xbf\xbd"},
        {X60 X60 "1234567\xc3\xa9", X60 X60 "1234567"          },
        {X60 X60 "12345678901",     X60 X60 "12345678"         },
    };
#undef X60
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_query query;
    struct dv_write_options options;
    struct dv_api_status *failure;

    (void)state;
    dv_query_parse(DV_STR(""), arena, &query);
    for (size_t i = 0; i < DV_COUNT(agents); i++) {
        assert_true(dv_query_write_options(&query, "CreateOptions", false,
                                           dv_str_from_c(agents[i].agent), arena, &options,
                                           &failure));
        assert_str(options.field_manager, agents[i].manager);
    }
    dv_query_parse(DV_STR("fieldManager=me"), arena, &query);
    assert_true(dv_query_write_options(&query, "CreateOptions", false, DV_STR("kubectl"), arena,
                                       &options, &failure));
    assert_str(options.field_manager, "me");
}

static void deletes_have_their_options_from_the_query(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_query query;
    struct dv_api_delete_options options;
    struct dv_api_status *failure;

    (void)state;
    dv_query_parse(DV_STR("gracePeriodSeconds=5&propagationPolicy=Foreground"), arena, &query);
    assert_true(dv_query_delete_options(&query, arena, &options, &failure));
    assert_int_equal(*options.grace_period_seconds, 5);
    assert_str(options.propagation_policy, "Foreground");
    dv_query_parse(DV_STR("gracePeriodSeconds=soon"), arena, &query);
    assert_false(dv_query_delete_options(&query, arena, &options, &failure));
    assert_int_equal(failure->code, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_are_true_unless_they_say_no),
        cmocka_unit_test(lists_and_watches_refuse_what_does_not_go_together),
        cmocka_unit_test(writes_refuse_options_that_cannot_be),
        cmocka_unit_test(a_manager_is_named_by_its_program),
        cmocka_unit_test(deletes_have_their_options_from_the_query),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

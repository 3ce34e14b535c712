/* test_config.c - policies, scopes, options and machines: what is taken and what refused. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "topology/tests/test_topology_hints.h"
#include "topology/topology.h"

#define CLOSEST "prefer-closest-numa-nodes"
#define MAX "max-allowable-numa-nodes"

/* "name=value name=value" */
static size_t read_options(const char *text, struct dv_topology_option options[4])
{
    dv_str rest = dv_str_from_c(text);
    dv_str piece;
    size_t n = 0;

    while (rest.n > 0 && dv_str_split(&rest, ' ', &piece)) {
        size_t equals = dv_str_find_char(piece, '=');

        options[n++] = (struct dv_topology_option){dv_str_slice(piece, 0, equals),
                                                   dv_str_slice(piece, equals + 1, piece.n)};
    }
    return n;
}

static bool parse(const char *policy, const char *scope, const char *text, const char *online,
                  const char *distances, struct dv_topology_config *config, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_machine machine = make_machine(online, distances, arena);
    struct dv_topology_option options[4];
    size_t n_options = read_options(text, options);

    return dv_topology_config_parse(dv_str_from_c(policy), dv_str_from_c(scope), options, n_options,
                                    &machine, config, err);
}

static void every_policy_and_scope_is_known(void **state)
{
    static const struct {
        const char *policy;
        const char *scope;
        enum dv_topology_policy want_policy;
        enum dv_topology_scope want_scope;
    } cases[] = {
        {"none",             "container", DV_TOPOLOGY_NONE,             DV_TOPOLOGY_SCOPE_NONE     },
        {"best-effort",      "container", DV_TOPOLOGY_BEST_EFFORT,      DV_TOPOLOGY_SCOPE_CONTAINER},
        {"restricted",       "pod",       DV_TOPOLOGY_RESTRICTED,       DV_TOPOLOGY_SCOPE_POD      },
        {"single-numa-node", "pod",       DV_TOPOLOGY_SINGLE_NUMA_NODE, DV_TOPOLOGY_SCOPE_POD      },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_topology_config config;
        struct dv_err err;

        assert_ok(parse(cases[i].policy, cases[i].scope, "", "0-1", NULL, &config, &err), &err);
        assert_int_equal(config.policy, cases[i].want_policy);
        assert_int_equal(config.scope, cases[i].want_scope);
        assert_false(config.prefers_closest);
        assert_int_equal(config.max_nodes, 8);
    }
}

static void none_looks_at_nothing_else(void **state)
{
    struct dv_topology_config config;
    struct dv_err err;

    (void)state;
    assert_ok(parse("none", "bogus", "no-such=1 " MAX "=x", "0-99", NULL, &config, &err), &err);
    assert_int_equal(config.policy, DV_TOPOLOGY_NONE);
    assert_int_equal(config.scope, DV_TOPOLOGY_SCOPE_NONE);
}

static void options_are_read_as_the_reference_does(void **state)
{
    static const struct {
        const char *options;
        bool prefers_closest;
        int64_t max_nodes;
    } cases[] = {
        {MAX "=12",                  false, 12       },
        {MAX "=8 " CLOSEST "=true",  true,  8        },
        {MAX "=+10",                 false, 10       },
        {MAX "=0009",                false, 9        },
        {MAX "=9223372036854775807", false, INT64_MAX},
        {CLOSEST "=1",               true,  8        },
        {CLOSEST "=t",               true,  8        },
        {CLOSEST "=T",               true,  8        },
        {CLOSEST "=TRUE",            true,  8        },
        {CLOSEST "=True",            true,  8        },
        {CLOSEST "=0",               false, 8        },
        {CLOSEST "=f",               false, 8        },
        {CLOSEST "=F",               false, 8        },
        {CLOSEST "=FALSE",           false, 8        },
        {CLOSEST "=false",           false, 8        },
        {CLOSEST "=False",           false, 8        },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_topology_config config;
        struct dv_err err;

        assert_ok(
            parse("restricted", "pod", cases[i].options, "0-1", "10 20\n20 10", &config, &err),
            &err);
        if (config.prefers_closest != cases[i].prefers_closest ||
            config.max_nodes != cases[i].max_nodes)
            fail_msg("%s", cases[i].options);
    }
}

static void what_is_wrong_is_said_in_the_words_of_the_reference(void **state)
{
    static const struct {
        const char *policy;
        const char *scope;
        const char *options;
        const char *online;
        enum dv_code code;
        const char *want;
    } cases[] = {
        {"bogus",       "pod",   "",                         "0-1",  DV_INVALID_ARGUMENT,    "unknown policy: \"bogus\""},
        {"",            "pod",   "",                         "0-1",  DV_INVALID_ARGUMENT,    "unknown policy: \"\""     },
        {"None",        "pod",   "",                         "0-1",  DV_INVALID_ARGUMENT,    "unknown policy: \"None\"" },
        {"restricted",  "bogus", "",                         "0-1",  DV_INVALID_ARGUMENT,    "unknown scope: \"bogus\"" },
        {"restricted",  "none",  "",                         "0-1",  DV_INVALID_ARGUMENT,    "unknown scope: \"none\""  },
        {"best-effort", "pod",   "no-such=1",                "0-1",  DV_INVALID_ARGUMENT,
         "unknown Topology Manager Policy option: \"no-such\""                                                          },
        {"restricted",  "pod",   "no-such=1",                "0-1",  DV_INVALID_ARGUMENT,
         "unknown Topology Manager Policy option: \"no-such\""                                                          },
        {"restricted",  "pod",   CLOSEST "=yes",             "0-1",  DV_INVALID_ARGUMENT,
         "bad value for option \"" CLOSEST
         "\": strconv.ParseBool: parsing \"yes\": invalid syntax"                                                       },
        {"restricted",  "pod",   CLOSEST "=tRUE",            "0-1",  DV_INVALID_ARGUMENT,
         "bad value for option \"" CLOSEST
         "\": strconv.ParseBool: parsing \"tRUE\": invalid syntax"                                                      },
        {"restricted",  "pod",   MAX "=1e1",                 "0-1",  DV_INVALID_ARGUMENT,
         "unable to convert policy option to integer \"" MAX
         "\": strconv.Atoi: parsing \"1e1\": invalid syntax"                                                            },
        {"restricted",  "pod",   MAX "=",                    "0-1",  DV_INVALID_ARGUMENT,
         "unable to convert policy option to integer \"" MAX
         "\": strconv.Atoi: parsing \"\": invalid syntax"                                                               },
        {"restricted",  "pod",   MAX "=+-9",                 "0-1",  DV_INVALID_ARGUMENT,
         "unable to convert policy option to integer \"" MAX
         "\": strconv.Atoi: parsing \"+-9\": invalid syntax"                                                            },
        {"restricted",  "pod",   MAX "=9223372036854775808", "0-1",  DV_INVALID_ARGUMENT,
         "unable to convert policy option to integer \"" MAX
         "\": strconv.Atoi: parsing \"9223372036854775808\": value out of range"                                        },
        {"restricted",  "pod",   MAX "=7",                   "0-1",  DV_INVALID_ARGUMENT,
         "the minimum value of \"" MAX "\" should not be less than 8"                                                   },
        {"restricted",  "pod",   MAX "=-1",                  "0-1",  DV_INVALID_ARGUMENT,
         "the minimum value of \"" MAX "\" should not be less than 8"                                                   },
        {"restricted",  "pod",   CLOSEST "=true",            "0-1",  DV_FAILED_PRECONDITION,
         "cannot discover NUMA topology: error getting NUMA distances from cadvisor"                                    },
        {"restricted",  "pod",   "",                         "0-8",  DV_FAILED_PRECONDITION,
         "unsupported on machines with more than 8 NUMA Nodes"                                                          },
        {"restricted",  "pod",   MAX "=12",                  "0-12", DV_FAILED_PRECONDITION,
         "unsupported on machines with more than 12 NUMA Nodes"                                                         },
        {"restricted",  "pod",   "",                         "0,64", DV_FAILED_PRECONDITION,
         "NUMA node 64: bit number must be in range 0-63"                                                               },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_topology_config config;
        struct dv_err err;

        if (parse(cases[i].policy, cases[i].scope, cases[i].options, cases[i].online, NULL, &config,
                  &err))
            fail_msg("case %zu is accepted", i);
        assert_string_equal(err.msg, cases[i].want);
        assert_int_equal(err.code, cases[i].code);
    }
}

static void checks_come_in_the_order_of_the_reference(void **state)
{
    static const struct {
        const char *policy;
        const char *scope;
        const char *options;
        const char *online;
        const char *want;
    } cases[] = {
        {"bogus",      "bogus", CLOSEST "=true no-such=1", "0-8",    "unknown Topology Manager"},
        {"bogus",      "bogus", CLOSEST "=true",           "0-8",    "cannot discover"         },
        {"bogus",      "bogus", "",                        "0-8",    "unsupported"             },
        {"bogus",      "bogus", "",                        "0-3,64", "unknown policy"          },
        {"restricted", "bogus", "",                        "0-3,64", "unknown scope"           },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_topology_config config;
        struct dv_err err;

        assert_false(parse(cases[i].policy, cases[i].scope, cases[i].options, cases[i].online, NULL,
                           &config, &err));
        assert_true(dv_str_starts_with(dv_str_from_c(err.msg), dv_str_from_c(cases[i].want)));
    }
}

static void a_bad_value_is_quoted_as_go_does(void **state)
{
    static const struct {
        const char *value;
        const char *want;
    } cases[] = {
        {"a\"b\\c",          "\"a\\\"b\\\\c\""          },
        {"\a\b\t\n\v\f\r",   "\"\\a\\b\\t\\n\\v\\f\\r\""},
        {"\x01\x1b\x7f",     "\"\\x01\\x1b\\x7f\""      },
        {"\xc3\xa4\xff",     "\"\xc3\xa4\\xff\""        },
        {"\xc2\x85\xc2\xa0", "\"\\u0085\\u00a0\""       },
        {"\xe2\x82\xac",     "\"\xe2\x82\xac\""         },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_topology_option option = {dv_str_from_c(cases[i].value), DV_STR("1")};
        struct dv_numa_machine machine = {0};
        struct dv_topology_config config;
        struct dv_err err;

        assert_false(dv_topology_config_parse(DV_STR("restricted"), DV_STR("pod"), &option, 1,
                                              &machine, &config, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].want);
    }
}

static void a_value_of_any_length_makes_a_message(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_topology_option option = {
        DV_STR(MAX), {NULL, 0}
    };
    struct dv_numa_machine machine = {0};
    struct dv_topology_config config;
    struct dv_err err;

    (void)state;
    option.value = (dv_str){dv_arena_alloc(arena, 5000, 1), 5000}; /* NULs: four bytes each */
    assert_false(dv_topology_config_parse(DV_STR("restricted"), DV_STR("pod"), &option, 1, &machine,
                                          &config, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "parsing \"\\x00\\x00");
}

static void nodes_may_begin_above_zero_and_have_gaps(void **state)
{
    static const char *const machines[] = {"1-2", "1,3,9", "", "0-7"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(machines); i++) {
        struct dv_topology_config config;
        struct dv_err err;

        assert_ok(parse("best-effort", "pod", "", machines[i], NULL, &config, &err), &err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_and_scope_is_known),
        cmocka_unit_test(none_looks_at_nothing_else),
        cmocka_unit_test(options_are_read_as_the_reference_does),
        cmocka_unit_test(what_is_wrong_is_said_in_the_words_of_the_reference),
        cmocka_unit_test(checks_come_in_the_order_of_the_reference),
        cmocka_unit_test(a_bad_value_is_quoted_as_go_does),
        cmocka_unit_test(a_value_of_any_length_makes_a_message),
        cmocka_unit_test(nodes_may_begin_above_zero_and_have_gaps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

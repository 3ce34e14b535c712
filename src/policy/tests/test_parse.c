/* The policy file: what is taken, and which line is at fault. */
#include <sys/types.h>

#include "base/arena.h"
#include "policy/policy.h"
#include "support/dvtest.h"

static bool find_group(void *ctx, dv_str name, gid_t *gid)
{
    (void)ctx;
    *gid = 50;
    return dv_str_eq(name, DV_STR("wheel"));
}

static void good_files_are_taken(void **state)
{
    static const struct {
        const char *text;
        enum dv_policy_mode mode;
        size_t n_rules;
    } cases[] = {
        {"mode: off\n",                                                      DV_POLICY_OFF,     0},
        {"mode: 'off'\nrules: []\n",                                         DV_POLICY_OFF,     0},
        {"mode: warn\n",                                                     DV_POLICY_WARN,    0},
        {"{\"mode\": \"enforce\"}",                                          DV_POLICY_ENFORCE, 0},
        {"mode: enforce\nrules:\n- calls: ['*']\n  by: [{uid: 0}]\n",        DV_POLICY_ENFORCE, 1},
        {"mode: enforce\nrules:\n- sockets: [/run/*]\n  by: [{group: 7}]\n", DV_POLICY_ENFORCE, 1},
    };
    struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;
        const struct dv_policy *policy =
            dv_policy_parse(dv_str_from_c(cases[i].text), find_group, NULL, arena, &err);

        if (!policy)
            fail_msg("case %zu: %s", i, err.msg);
        assert_int_equal(dv_policy_mode(policy), cases[i].mode);
        assert_int_equal(dv_policy_n_rules(policy), cases[i].n_rules);
    }
    dv_arena_free(arena);
}

#define RULE "mode: warn\nrules:\n- name: a\n"

static void bad_files_are_refused_with_their_line(void **state)
{
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        {"",                                                 "expected an object"          },
        {"[]",                                               "expected an object"          },
        {"rules: []\n",                                      "\"mode\" is missing"         },
        {"mode: on\n",                                       "off, warn, enforce"          },
        {"mode: Enforce\n",                                  "line 1"                      },
        {"mode: warn\nmode: off\n",                          "mode"                        },
        {"mode: warn\nrule: []\n",                           "line 2"                      },
        {"mode: warn\nrules: {}\n",                          "line 2"                      },
        {RULE "  by: [{uid: 0}]\n",                          "allows nothing"              },
        {RULE "  drivers: [x]\n",                            "allows nobody"               },
        {RULE "  drivers: x\n  by: [{uid: 0}]\n",            "line 4"                      },
        {RULE "  drivers: []\n  by: [{uid: 0}]\n",           "is empty"                    },
        {RULE "  drivers: ['']\n  by: [{uid: 0}]\n",         "is empty"                    },
        {RULE "  drivers: [x]\n  by: []\n",                  "line 5"                      },
        {RULE "  drivers: [x]\n  by: [{}]\n",                "says nothing"                },
        {RULE "  drivers: [x]\n  by:\n  - user: root\n",     "line 6"                      },
        {RULE "  drivers: [x]\n  by: [{uid: root}]\n",       "line 5"                      },
        {RULE "  drivers: [x]\n  by: [{uid: -1}]\n",         "line 5"                      },
        {RULE "  drivers: [x]\n  by: [{uid: 4294967295}]\n", "not the number"              },
        {RULE "  drivers: [x]\n  by: [{group: nobody}]\n",   "there is no group \"nobody\""},
        {RULE "  drivers: [x]\n  by: [{executable: sh}]\n",  "not an absolute path"        },
        {RULE "  sockets: [x.sock]\n  by: [{uid: 0}]\n",     "not an absolute path"        },
        {RULE "  calls: [davit]\n  by: [{uid: 0}]\n",        "none of kubelet.sock"        },
        {RULE "  driver: [x]\n  by: [{uid: 0}]\n",           "no such key"                 },
        {RULE "  drivers: [\"a\\x1b\"]\n  by: [{uid: 0}]\n", "cannot be seen"              },
    };
    struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;

        if (dv_policy_parse(dv_str_from_c(cases[i].text), find_group, NULL, arena, &err))
            fail_msg("case %zu was taken", i);
        if (!dv_str_eq(DV_STR(""), dv_str_from_c(cases[i].part)) &&
            dv_str_find(dv_str_from_c(err.msg), dv_str_from_c(cases[i].part)) ==
                dv_str_from_c(err.msg).n)
            fail_msg("case %zu: %s", i, err.msg);
        assert_true(err.code == DV_INVALID_ARGUMENT || err.code == DV_OUT_OF_RANGE);
    }
    dv_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files_are_taken),
        cmocka_unit_test(bad_files_are_refused_with_their_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Verdicts, as tables. */
#include <sys/types.h>

#include "policy/policy.h"

#include "base/arena.h"
#include "support/dvtest.h"

static bool find_group(void *ctx, dv_str name, gid_t *gid)
{
    (void)ctx;
    *gid = 50;
    return dv_str_eq(name, DV_STR("wheel"));
}

static void texts_match_patterns(void **state)
{
    static const struct {
        const char *pattern;
        const char *text;
        bool matches;
    } cases[] = {
        {"a",            "a",                                    true },
        {"a",            "b",                                    false},
        {"a",            "ab",                                   false},
        {"ab",           "a",                                    false},
        {"*",            "",                                     true },
        {"*",            "anything/at all",                      true },
        {"nvidia.com/*", "nvidia.com/gpu",                       true },
        {"nvidia.com/*", "nvidia.com/",                          true },
        {"nvidia.com/*", "nvidia.comx/gpu",                      false},
        {"*/gpu",        "a/b/gpu",                              true },
        {"*/gpu",        "a/b/gpus",                             false},
        {"a*b*c",        "aXbYbZc",                              true },
        {"a*b*c",        "aXcYb",                                false},
        {"**",           "x",                                    true },
        {"?",            "x",                                    false},
        {"[a]",          "a",                                    false},
        {"*aaaaaaab",    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        if (dv_policy_matches(dv_str_from_c(cases[i].pattern), dv_str_from_c(cases[i].text)) !=
            cases[i].matches)
            fail_msg("case %zu: %s and %s", i, cases[i].pattern, cases[i].text);
}

static void units_are_found_in_control_groups(void **state)
{
    static const struct {
        const char *cgroup;
        const char *unit;
    } cases[] = {
        {"",                                                                      ""                       },
        {"0::/\n",                                                                ""                       },
        {"0::/system.slice/gpu.service\n",                                        "gpu.service"            },
        {"0::/system.slice/gpu.service/payload\n",                                "gpu.service"            },
        {"0::/system.slice/a.service/b.service\n",                                "b.service"              },
        {"0::/user.slice/user-0.slice/session-1.scope\n",                         "session-1.scope"        },
        {"0::/kubepods.slice/x/cri-containerd-12.scope\n",                        "cri-containerd-12.scope"},
        {"12:cpu:/fake.service\n0::/system.slice/gpu.service\n",                  "gpu.service"            },
        {"0::/system.slice/gpu.service\n1:name=systemd:/fake.service\n",          "gpu.service"            },
        {"12:cpu:/fake.service\n1:name=systemd:/system.slice/v1.service\n0::/\n", "v1.service"             },
        {"0::/.service\n",                                                        ""                       },
        {"0::/x.slice\n",                                                         ""                       },
        {"nonsense",                                                              ""                       },
        {"0::relative.service",                                                   ""                       },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        if (!dv_str_eq(dv_policy_unit_of(dv_str_from_c(cases[i].cgroup)),
                       dv_str_from_c(cases[i].unit)))
            fail_msg("case %zu: %s", i, cases[i].cgroup);
}

#define RULES                                                                                      \
    "mode: enforce\n"                                                                              \
    "rules:\n"                                                                                     \
    "- name: gpu\n"                                                                                \
    "  drivers: [gpu.example.com]\n"                                                               \
    "  resources: [example.com/gpu*]\n"                                                            \
    "  by:\n"                                                                                      \
    "  - unit: gpu.service\n"                                                                      \
    "    uid: 0\n"                                                                                 \
    "  - executable: /usr/bin/gpu-plugin\n"                                                        \
    "- name: nic\n"                                                                                \
    "  drivers: ['nic.*']\n"                                                                       \
    "  by: [{group: wheel}]\n"                                                                     \
    "- name: any-unit\n"                                                                           \
    "  drivers: [unit.example.com]\n"                                                              \
    "  by: [{unit: '*'}]\n"

static void peers_get_what_a_rule_allows(void **state)
{
    static const gid_t wheel[] = {7, 50};
    static const struct dv_policy_peer peers[] = {
        {.pid = 1,                            .has_ids = true, .uid = 0, .unit = DV_STR_INIT("gpu.service")},
        {.pid = 2,                           .has_ids = true, .uid = 5, .unit = DV_STR_INIT("gpu.service")},
        {.pid = 3,                                   .has_ids = true, .uid = 5, .executable = DV_STR_INIT("/usr/bin/gpu-plugin")},
        {.pid = 4,.has_ids = true, .uid = 5, .gids = wheel, .n_gids = 2},
        {.pid = 0}, /* nothing is known */
    };
    static const struct {
        size_t peer;
        enum dv_policy_action action;
        const char *name;
        bool is_allowed;
        const char *rule;
    } cases[] = {
        {0, DV_POLICY_DRIVER,   "gpu.example.com",   true,  "gpu"     },
        {0, DV_POLICY_RESOURCE, "example.com/gpu",   true,  "gpu"     },
        {0, DV_POLICY_RESOURCE, "example.com/gpu-m", true,  "gpu"     },
        {0, DV_POLICY_RESOURCE, "example.com/nic",   false, ""        },
        {0, DV_POLICY_DRIVER,   "nic.example.com",   false, "nic"     },
        {0, DV_POLICY_DRIVER,   "unit.example.com",  true,  "any-unit"},
        {1, DV_POLICY_DRIVER,   "gpu.example.com",   false, "gpu"     }, /* not uid 0 */
        {2, DV_POLICY_DRIVER,   "gpu.example.com",   true,  "gpu"     },
        {2, DV_POLICY_DRIVER,   "unit.example.com",  false, "any-unit"}, /* no unit is no `*` */
        {3, DV_POLICY_DRIVER,   "nic.example.com",   true,  "nic"     },
        {3, DV_POLICY_DRIVER,   "gpu.example.com",   false, "gpu"     },
        {3, DV_POLICY_DRIVER,   "other.example.com", false, ""        },
        {4, DV_POLICY_DRIVER,   "gpu.example.com",   false, "gpu"     },
        {4, DV_POLICY_CALL,     "davit.sock",        true,  ""        }, /* no rule speaks of it */
        {4, DV_POLICY_CONNECT,  "/x.sock",           true,  ""        },
    };
    struct dv_arena *arena = dv_arena_new();
    const struct dv_policy *policy;
    struct dv_err err;

    (void)state;
    policy = dv_policy_parse(DV_STR(RULES), find_group, NULL, arena, &err);
    assert_ok(policy, &err);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_policy_verdict verdict = dv_policy_judge(
            policy, &peers[cases[i].peer], cases[i].action, dv_str_from_c(cases[i].name));

        if (verdict.is_allowed != cases[i].is_allowed ||
            !dv_str_eq(verdict.rule, dv_str_from_c(cases[i].rule)))
            fail_msg("case %zu: allowed %d by %.*s", i, verdict.is_allowed, DV_FMT(verdict.rule));
    }
    dv_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_match_patterns),
        cmocka_unit_test(units_are_found_in_control_groups),
        cmocka_unit_test(peers_get_what_a_rule_allows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The rules about leases: what is read, which line is at fault, and who may have what. */
#include <sys/types.h>

#include "base/arena.h"
#include "policy/policy.h"
#include "support/dvtest.h"

#define NO DV_POLICY_NO_LIMIT

static bool find_group(void *ctx, dv_str name, gid_t *gid)
{
    (void)ctx;
    *gid = 50;
    return dv_str_eq(name, DV_STR("wheel"));
}

static const struct dv_policy *parse(const char *text, struct dv_arena *arena)
{
    struct dv_err err;
    const struct dv_policy *policy =
        dv_policy_parse(dv_str_from_c(text), find_group, NULL, arena, &err);

    if (!policy)
        fail_msg("%s", err.msg);
    return policy;
}

#define LEASES "mode: warn\nleases:\n- name: a\n"

static void mistakes_are_named_with_their_line(void **state)
{
    static const struct {
        const char *text;
        const char *line;
        const char *reason;
    } cases[] = {
        {"mode: warn\nleases: {}\n",                                                               "line 2", "expected"                },
        {LEASES "  by: [{uid: 1}]\n",                                                              "line 3", "allows nothing"          },
        {LEASES "  resources: [x/y]\n",                                                            "line 3", "allows nobody"           },
        {LEASES "  by: [{uid: 1}]\n  resources: []\n",                                             "line 5", "is empty"                },
        {LEASES "  by: [{uid: 1}]\n  resources: x/y\n",                                            "line 5", "expected"                },
        {LEASES "  by: [{group: none}]\n  resources: [x/y]\n",                                     "line 4", "there is no group"       },
        {LEASES "  by: [{uid: 1}]\n  classes: [c]\n  devices: 0\n",                                "line 6", "is 0"                    },
        {LEASES "  by: [{uid: 1}]\n  classes: [c]\n  devices: -1\n",                               "line 6", ""                        },
        {LEASES "  by: [{uid: 1}]\n  classes: [c]\n  devices: many\n",                             "line 6", ""                        },
        {LEASES "  by: [{uid: 1}]\n  classes: [c]\n  maxTime: soon\n",                             "line 6", "is no time"              },
        {LEASES "  by: [{uid: 1}]\n  classes: [c]\n  maxTime: 0\n",                                "line 6",
         "between a second and"                                                                                                        },
        {LEASES "  by: [{uid: 1}]\n  classes: [c]\n  maxTime: 99999999h\n",                        "line 6", ""                        },
        {LEASES "  by: [{uid: 1}]\n  classes: [c]\n  priority: 9999999\n",                         "line 6",
         "is not between"                                                                                                              },
        {LEASES "  by: [{uid: 1}]\n  classes: [c]\n  priority: high\n",                            "line 6", ""                        },
        {LEASES "  by: [{uid: 1}]\n  admin: perhaps\n",                                            "line 5", ""                        },
        {LEASES "  by: [{uid: 1}]\n  classes: [c]\n  device: 1\n",                                 "line 6", "no such key"             },
        {LEASES "  by: [{uid: 1}]\n  classes: [c]\n- name: a\n  by: [{uid: 2}]\n  classes: [c]\n",
         "line 6",                                                                                           "the name of another rule"},
    };
    struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;
        dv_str said;

        if (dv_policy_parse(dv_str_from_c(cases[i].text), find_group, NULL, arena, &err))
            fail_msg("case %zu was taken", i);
        said = dv_str_from_c(err.msg);
        if (dv_str_find(said, dv_str_from_c(cases[i].line)) == said.n ||
            (cases[i].reason[0] && dv_str_find(said, dv_str_from_c(cases[i].reason)) == said.n))
            fail_msg("case %zu: %s", i, err.msg);
    }
    dv_arena_free(arena);
}

#define RULES                                                                                      \
    "mode: enforce\n"                                                                              \
    "leases:\n"                                                                                    \
    "- name: ada\n"                                                                                \
    "  by: [{uid: 1001}]\n"                                                                        \
    "  resources: [example.com/gpu]\n"                                                             \
    "  priority: 5\n"                                                                              \
    "- name: everybody\n"                                                                          \
    "  by: [{uid: 1001}, {uid: 1002}]\n"                                                           \
    "  resources: ['example.com/*']\n"                                                             \
    "  classes: [gpu.example.com]\n"                                                               \
    "  devices: 2\n"                                                                               \
    "  maxTime: 90m\n"                                                                             \
    "- name: operators\n"                                                                          \
    "  by: [{group: wheel}]\n"                                                                     \
    "  admin: true\n"

static void users_get_what_the_first_rule_gives(void **state)
{
    static const struct {
        uid_t uid;
        bool is_class;
        const char *name;
        const char *rule; /* empty: it is refused */
        uint64_t devices_max;
        uint64_t seconds_max;
        int32_t priority_max;
        bool has_priority;
    } cases[] = {
        {1001, false, "example.com/gpu", "ada",       NO, NO,   5, true },
        {1001, false, "example.com/nic", "everybody", 2,  5400, 0, false},
        {1002, false, "example.com/gpu", "everybody", 2,  5400, 0, false},
        {1002, true,  "gpu.example.com", "everybody", 2,  5400, 0, false},
        {1002, true,  "example.com/gpu", "",          0,  0,    0, false}, /* no class's name */
        {1002, false, "gpu.example.com", "",          0,  0,    0, false}, /* no resource's */
        {1002, false, "example.com",     "",          0,  0,    0, false},
        {1003, false, "example.com/gpu", "",          0,  0,    0, false},
        {1004, false, "example.com/gpu", "",          0,  0,    0, false}, /* an admin leases nothing by that */
    };
    static const gid_t wheel[] = {7, 50};
    struct dv_arena *arena = dv_arena_new();
    const struct dv_policy *policy = parse(RULES, arena);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_policy_peer peer = {.pid = 9,
                                            .has_ids = true,
                                            .uid = cases[i].uid,
                                            .gids = wheel,
                                            .n_gids = cases[i].uid == 1004 ? 2 : 1};
        struct dv_policy_grant grant =
            dv_policy_judge_lease(policy, &peer, cases[i].is_class, dv_str_from_c(cases[i].name));

        assert_true(grant.is_ruled);
        if (grant.is_allowed != (cases[i].rule[0] != '\0'))
            fail_msg("case %zu: allowed %d by %.*s", i, grant.is_allowed, DV_FMT(grant.rule));
        assert_int_equal(dv_policy_is_admin(policy, &peer), cases[i].uid == 1004);
        if (!grant.is_allowed)
            continue;
        assert_str(grant.rule, cases[i].rule);
        assert_int_equal(grant.devices_max, cases[i].devices_max);
        assert_int_equal(grant.seconds_max, cases[i].seconds_max);
        assert_int_equal(grant.priority_max, cases[i].priority_max);
        assert_int_equal(grant.has_priority, cases[i].has_priority);
    }
    dv_arena_free(arena);
}

/* What counts together for a rule's `devices`. */
static void a_rule_has_what_it_names(void **state)
{
    struct dv_arena *arena = dv_arena_new();
    const struct dv_policy *policy = parse(RULES, arena);
    const dv_str rule = DV_STR("everybody");

    (void)state;
    assert_true(dv_policy_rule_has(policy, rule, false, DV_STR("example.com/nic")));
    assert_true(dv_policy_rule_has(policy, rule, true, DV_STR("gpu.example.com")));
    assert_false(dv_policy_rule_has(policy, rule, true, DV_STR("example.com/nic")));
    assert_false(dv_policy_rule_has(policy, rule, false, DV_STR("other.com/nic")));
    assert_false(dv_policy_rule_has(policy, DV_STR("ada"), false, DV_STR("example.com/nic")));
    assert_false(dv_policy_rule_has(policy, DV_STR("nobody"), false, DV_STR("example.com/nic")));
    dv_arena_free(arena);
}

static void without_rules_everybody_may(void **state)
{
    const struct dv_policy_peer peer = {.pid = 9, .has_ids = true, .uid = 1001};
    const struct dv_policy_peer unknown = {.pid = 0};
    struct dv_arena *arena = dv_arena_new();
    struct dv_policy_grant grant = dv_policy_judge_lease(parse("mode: enforce\n", arena), &peer,
                                                         false, DV_STR("example.com/gpu"));

    (void)state;
    assert_true(grant.is_allowed);
    assert_false(grant.is_ruled);
    assert_int_equal(grant.devices_max, NO);
    assert_int_equal(grant.priority_max, 0);
    grant = dv_policy_judge_lease(parse("mode: enforce\nleases: []\n", arena), &peer, false,
                                  DV_STR("example.com/gpu"));
    assert_false(grant.is_allowed); /* rules that name nobody */
    grant = dv_policy_judge_lease(parse(RULES, arena), &unknown, false, DV_STR("example.com/gpu"));
    assert_false(grant.is_allowed);
    assert_false(dv_policy_is_admin(parse(RULES, arena), &unknown));
    dv_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_named_with_their_line),
        cmocka_unit_test(users_get_what_the_first_rule_gives),
        cmocka_unit_test(a_rule_has_what_it_names),
        cmocka_unit_test(without_rules_everybody_may),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

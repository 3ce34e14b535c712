/* test_access_decide.c - what roles and bindings allow. */
#include "access/tests/test_access_world.h"
#include "base/defs.h"
#include "support/dvtest.h"

#define BIND(role)                                                                                 \
    "{metadata: {name: b}, roleRef: {kind: ClusterRole, name: " role "}, subjects: [{kind: User, " \
    "name: u}]}"

struct row {
    const char *request;
    bool is_allowed;
};

static void check(struct world *world, const char *user, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (world_may(world, user, rows[i].request) != rows[i].is_allowed)
            fail_msg("%s: %s: %s", user, rows[i].request,
                     rows[i].is_allowed ? "refused" : "allowed");
}

static void give(struct world *world, const char *rules)
{
    dv_str text = dv_str_printf(world->arena, "{metadata: {name: r}, rules: %s}", rules);

    world_set(world, DV_KIND_CLUSTER_ROLE, text.p);
    world_set(world, DV_KIND_CLUSTER_ROLE_BINDING, BIND("r"));
}

static void a_resource_is_not_its_subresources(void **state)
{
    static const struct row plain[] = {
        {"get pods x in ns",      true },
        {"get pods x",            true },
        {"get pods/log x in ns",  false},
        {"get pods.apps x in ns", false},
        {"list pods in ns",       false},
        {"get nodes x",           false},
    };
    static const struct row logs[] = {
        {"get pods/log x in ns", true },
        {"get jobs.batch/log x", true },
        {"get pods x in ns",     false},
        {"get pods/status x",    false},
    };
    static const struct row all[] = {
        {"get pods/log x in ns", true},
        {"get nodes x",          true},
    };

    give(*state, "[{verbs: [get], apiGroups: [''], resources: [pods]}]");
    check(*state, "u", plain, DV_COUNT(plain));
    assert_false(world_may(*state, "other", "get pods x"));
    give(*state, "[{verbs: [get], apiGroups: ['*'], resources: ['*/log', 'pods/*']}]");
    check(*state, "u", logs, DV_COUNT(logs));
    give(*state, "[{verbs: ['*'], apiGroups: [''], resources: ['*']}]");
    check(*state, "u", all, DV_COUNT(all));
}

static void names_are_literal(void **state)
{
    static const struct row rows[] = {
        {"get pods a in ns",            true },
        {"get pods b in ns",            false},
        {"list pods in ns",             false},
        {"list pods a in ns",           true },
        {"create pods in ns",           false},
        {"delete pods a in ns",         true },
        {"deletecollection pods in ns", false},
    };

    give(*state, "[{verbs: ['*'], apiGroups: [''], resources: [pods], resourceNames: [a]}]");
    check(*state, "u", rows, DV_COUNT(rows));
}

static void paths_have_prefixes(void **state)
{
    static const struct row rows[] = {
        {"get /healthz/ping", true },
        {"get /healthz",      false},
        {"get /version",      true },
        {"get /versions",     false},
        {"post /version",     false},
    };

    give(*state, "[{verbs: [get], nonResourceURLs: ['/healthz/**', /version]}]");
    check(*state, "u", rows, DV_COUNT(rows));
    give(*state, "[{verbs: [get], nonResourceURLs: ['*']}]");
    assert_true(world_may(*state, "u", "get /anything"));
}

static void words_of_nobodys_api_are_matched_as_they_are(void **state)
{
    give(*state, "[{verbs: ['associated-node:update'], apiGroups: [resource.k8s.io], resources: "
                 "[resourceclaims/driver]}]");
    assert_true(world_may(*state, "u",
                          "associated-node:update "
                          "resourceclaims.resource.k8s.io/driver x in ns"));
    assert_false(world_may(*state, "u", "update resourceclaims.resource.k8s.io/driver x in ns"));
}

static void a_binding_of_a_namespace_gives_nothing_elsewhere(void **state)
{
    static const struct row rows[] = {
        {"get pods x in a", true },
        {"get pods x in b", false},
        {"get pods x",      false},
        {"get nodes x",     false},
        {"get /version",    false},
    };

    world_set(*state, DV_KIND_CLUSTER_ROLE,
              "{metadata: {name: r}, rules: [{verbs: [get], apiGroups: [''], resources: [pods, "
              "nodes]}, {verbs: [get], nonResourceURLs: [/version]}]}");
    world_set(*state, DV_KIND_ROLE_BINDING,
              "{metadata: {name: b, namespace: a}, roleRef: {kind: ClusterRole, name: r}, "
              "subjects: [{kind: Group, name: g}]}");
    check(*state, "someone g", rows, DV_COUNT(rows));
    assert_false(world_may(*state, "g", "get pods x in a"));
}

static void accounts_are_of_a_namespace(void **state)
{
    world_set(*state, DV_KIND_ROLE,
              "{metadata: {name: r, namespace: a}, rules: [{verbs: [get], apiGroups: [''], "
              "resources: [pods]}]}");
    world_set(
        *state, DV_KIND_ROLE_BINDING,
        "{metadata: {name: b, namespace: a}, roleRef: {kind: Role, name: r}, subjects: "
        "[{kind: ServiceAccount, name: own}, {kind: ServiceAccount, name: s, namespace: z}]}");
    assert_true(world_may(*state, "system:serviceaccount:a:own", "get pods x in a"));
    assert_true(world_may(*state, "system:serviceaccount:z:s", "get pods x in a"));
    assert_false(world_may(*state, "system:serviceaccount:a:s", "get pods x in a"));
    /* validation refuses it, and it is nobody */
    world_set(*state, DV_KIND_CLUSTER_ROLE_BINDING,
              "{metadata: {name: b}, roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: "
              "ServiceAccount, name: own}]}");
    assert_false(world_may(*state, "system:serviceaccount::own", "get pods x in b"));
}

static void what_changes_counts_at_once(void **state)
{
    give(*state, "[{verbs: [get], apiGroups: [''], resources: [pods]}]");
    assert_true(world_may(*state, "u", "get pods x"));
    world_set(
        *state, DV_KIND_CLUSTER_ROLE_BINDING,
        "{metadata: {name: b}, roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: User, "
        "name: v}, {kind: User, name: v}]}");
    assert_false(world_may(*state, "u", "get pods x"));
    assert_true(world_may(*state, "v", "get pods x"));
    world_remove(*state, DV_KIND_CLUSTER_ROLE, "{metadata: {name: r}}");
    assert_false(world_may(*state, "v", "get pods x"));
    give(*state, "[{verbs: [get], apiGroups: [''], resources: [nodes]}]");
    assert_true(world_may(*state, "u", "get nodes x"));
    world_remove(*state, DV_KIND_CLUSTER_ROLE_BINDING, "{metadata: {name: b}}");
    assert_false(world_may(*state, "u", "get nodes x"));
}

/* Beyond a few rules a role has an index, and beyond very many none again. */
static void large_roles_are_as_exact_as_small_ones(void **state)
{
    struct world *world = *state;
    dv_str few = DV_STR("[");
    dv_str many = DV_STR("[{verbs: [get], apiGroups: [");

    for (int i = 0; i < 50; i++)
        few = dv_str_printf(world->arena,
                            "%.*s{verbs: [get], apiGroups: [g%d], resources: [r%d, '*/s%d'], "
                            "resourceNames: [n%d]},",
                            DV_FMT(few), i, i, i, i);
    give(world, dv_str_printf(world->arena, "%.*s]", DV_FMT(few)).p);
    assert_true(world_may(world, "u", "get r7.g7 n7"));
    assert_true(world_may(world, "u", "get other.g7/s7 n7"));
    assert_false(world_may(world, "u", "get r7.g8 n7"));
    assert_false(world_may(world, "u", "get r7.g7 n8"));
    assert_false(world_may(world, "u", "get r7.g7/status n7"));
    for (int i = 0; i < 200; i++)
        many = dv_str_printf(world->arena, "%.*sg%d,", DV_FMT(many), i);
    many = dv_str_printf(world->arena, "%.*s], resources: [", DV_FMT(many));
    for (int i = 0; i < 200; i++)
        many = dv_str_printf(world->arena, "%.*sr%d,", DV_FMT(many), i);
    many =
        dv_str_printf(world->arena, "%.*s]},{verbs: [a]},{verbs: [b]},{verbs: [c]}]", DV_FMT(many));
    give(world, many.p);
    assert_true(world_may(world, "u", "get r7.g199"));
    assert_false(world_may(world, "u", "get r7.g200"));
}

static void says_why(void **state)
{
    static const struct {
        const char *user;
        const char *request;
        const char *reason;
    } rows[] = {
        {"u",                          "get pods x",
         "RBAC: allowed by ClusterRoleBinding \"b\" of ClusterRole \"r\" to User \"u\""                                     },
        {"system:serviceaccount:ns:s", "get pods x in ns",
         "RBAC: allowed by RoleBinding \"c/ns\" of ClusterRole \"r\" to ServiceAccount \"s/ns\""                            },
        {"system:serviceaccount:ns:s", "get nodes x",       ""                                                              },
        {"v g",                        "get nodes x in ns",
         "RBAC: [clusterrole.rbac.authorization.k8s.io \"gone\" not found, "
         "role.rbac.authorization.k8s.io \"gone\" not found]"                                                               },
        {"v g",                        "get nodes x",       "RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found"},
    };
    struct world *world = *state;

    give(world, "[{verbs: [get], apiGroups: [''], resources: [pods]}]");
    world_set(world, DV_KIND_ROLE_BINDING,
              "{metadata: {name: c, namespace: ns}, roleRef: {kind: ClusterRole, name: r}, "
              "subjects: [{kind: ServiceAccount, name: s}]}");
    world_set(world, DV_KIND_CLUSTER_ROLE_BINDING,
              "{metadata: {name: d}, roleRef: {kind: ClusterRole, name: gone}, subjects: [{kind: "
              "User, name: v}, {kind: Group, name: g}]}");
    world_set(world, DV_KIND_ROLE_BINDING,
              "{metadata: {name: d, namespace: ns}, roleRef: {kind: Role, name: gone}, subjects: "
              "[{kind: User, name: v}]}");
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_api_user_info user = world_user(world, rows[i].user);
        struct dv_access_request request = world_request(world, rows[i].request);

        assert_str(dv_access_reason(world->access, &user, &request, world->arena), rows[i].reason);
    }
}

static void lists_the_rules_of_a_user(void **state)
{
    struct world *world = *state;
    struct dv_api_user_info user = world_user(world, "u");
    struct dv_api_policy_rule *rules;
    size_t n;

    give(world, "[{verbs: [get], apiGroups: [''], resources: [pods]}, {verbs: [get], "
                "nonResourceURLs: [/x]}]");
    world_set(world, DV_KIND_ROLE_BINDING,
              "{metadata: {name: c, namespace: ns}, roleRef: {kind: ClusterRole, name: r}, "
              "subjects: [{kind: User, name: u}]}");
    rules = dv_access_rules(world->access, &user, DV_STR("other"), world->arena, &n);
    assert_int_equal(n, 2);
    assert_str(rules[0].resources[0], "pods");
    (void)dv_access_rules(world->access, &user, DV_STR("ns"), world->arena, &n);
    assert_int_equal(n, 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_resource_is_not_its_subresources),
        TEST(names_are_literal),
        TEST(paths_have_prefixes),
        TEST(words_of_nobodys_api_are_matched_as_they_are),
        TEST(a_binding_of_a_namespace_gives_nothing_elsewhere),
        TEST(accounts_are_of_a_namespace),
        TEST(what_changes_counts_at_once),
        TEST(large_roles_are_as_exact_as_small_ones),
        TEST(says_why),
        TEST(lists_the_rules_of_a_user),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

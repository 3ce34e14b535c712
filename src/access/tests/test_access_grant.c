/* test_access_grant.c - nobody gives rights that it does not have. */
#include "access/tests/test_access_world.h"
#include "base/defs.h"
#include "support/dvtest.h"

/* u has this in all namespaces, and pods in "own". */
#define HAS                                                                                        \
    "{metadata: {name: has}, rules: [{verbs: [get, list], apiGroups: [''], resources: [nodes, "    \
    "'*/status']}, {verbs: ['*'], apiGroups: [''], resources: [secrets], resourceNames: [a, b]}, " \
    "{verbs: [get], nonResourceURLs: ['/logs/*']}]}"

static int setup(void **state)
{
    (void)world_setup(state);
    world_set(*state, DV_KIND_CLUSTER_ROLE, HAS);
    world_set(*state, DV_KIND_CLUSTER_ROLE_BINDING,
              "{metadata: {name: b}, roleRef: {kind: ClusterRole, name: has}, subjects: [{kind: "
              "User, name: u}]}");
    world_set(*state, DV_KIND_CLUSTER_ROLE,
              "{metadata: {name: pods}, rules: [{verbs: [get], apiGroups: [''], resources: "
              "[pods]}]}");
    world_set(*state, DV_KIND_ROLE_BINDING,
              "{metadata: {name: b, namespace: own}, roleRef: {kind: ClusterRole, name: pods}, "
              "subjects: [{kind: User, name: u}]}");
    return 0;
}

/* What the denial says; "" when it may, "missing X" when the role is not there. */
static dv_str try_write(struct world *world, const char *who, enum dv_kind_id kind,
                        const char *namespace, const char *text, const char *old)
{
    struct dv_api_user_info user = world_user(world, who);
    const struct dv_access_write write = {.kind = dv_kind(kind),
                                          .namespace = dv_str_from_c(namespace),
                                          .name = old ? DV_STR("x") : DV_STR_NONE,
                                          .value = world_read(world, kind, text),
                                          .old = old ? world_read(world, kind, old) : NULL};
    struct dv_access_denial denial;

    if (dv_access_check_write(world->access, &user, &write, world->arena, &denial))
        return DV_STR("");
    if (denial.missing_role.n)
        return dv_str_printf(world->arena, "missing %.*s", DV_FMT(denial.missing_role));
    return denial.reason;
}

#define DENIED(lines)                                                                              \
    "user \"u\" (groups=[\"g\" \"h\"]) is attempting to grant RBAC permissions not currently "     \
    "held:" lines

static void a_role_may_give_what_its_maker_has(void **state)
{
    static const struct {
        const char *rules;
        const char *denial;
    } rows[] = {
        {"[{verbs: [get], apiGroups: [''], resources: [nodes, pods, nodes/status]}]",            ""},
        {"[{verbs: [get, watch, list], apiGroups: [''], resources: [pods]}]",
         DENIED("\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\" \"list\"]}")          },
        {"[{verbs: [get], apiGroups: [''], resources: ['*']}]",
         DENIED("\n{APIGroups:[\"\"], Resources:[\"*\"], Verbs:[\"get\"]}")                        },
        {"[{verbs: ['*'], apiGroups: [''], resources: [secrets], resourceNames: [a]}]",          ""},
        {"[{verbs: [get], apiGroups: [''], resources: [secrets]}]",
         DENIED("\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}")                  },
        {"[{verbs: [get], apiGroups: [apps, ''], resources: [secrets], resourceNames: [b, c]}]",
         DENIED("\n{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"c\"], "
                "Verbs:[\"get\"]}\n{APIGroups:[\"apps\"], Resources:[\"secrets\"], "
                "ResourceNames:[\"b\"], Verbs:[\"get\"]}\n{APIGroups:[\"apps\"], "
                "Resources:[\"secrets\"], ResourceNames:[\"c\"], Verbs:[\"get\"]}")                },
    };
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_str(try_write(world, "u g h", DV_KIND_ROLE, "own",
                             dv_str_printf(world->arena,
                                           "{metadata: {name: x, namespace: own}, "
                                           "rules: %s}",
                                           rows[i].rules)
                                 .p,
                             NULL),
                   rows[i].denial);
}

static void a_cluster_role_needs_rights_everywhere(void **state)
{
    assert_str(try_write(*state, "u g h", DV_KIND_CLUSTER_ROLE, "",
                         "{metadata: {name: x}, rules: [{verbs: [get], apiGroups: [''], resources: "
                         "[pods]}, {verbs: [get, post], nonResourceURLs: [/logs/x, /logs]}]}",
                         NULL),
               DENIED("\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}"
                      "\n{NonResourceURLs:[\"/logs\"], Verbs:[\"get\"]}"
                      "\n{NonResourceURLs:[\"/logs\"], Verbs:[\"post\"]}"
                      "\n{NonResourceURLs:[\"/logs/x\"], Verbs:[\"post\"]}"));
    assert_str(try_write(*state, "u", DV_KIND_CLUSTER_ROLE, "",
                         "{metadata: {name: x}, aggregationRule: {clusterRoleSelectors: [{}]}}",
                         NULL),
               "must have cluster-admin privileges to use the aggregationRule");
    assert_str(try_write(*state, "root system:masters", DV_KIND_CLUSTER_ROLE, "",
                         "{metadata: {name: x}, aggregationRule: {clusterRoleSelectors: [{}]}}",
                         NULL),
               "");
}

static void what_the_collector_changes_gives_nothing(void **state)
{
    static const char old[] = "{metadata: {name: x, finalizers: [a/b]}, rules: [{verbs: ['*'], "
                              "apiGroups: ['*'], resources: ['*']}]}";

    assert_str(try_write(*state, "u", DV_KIND_CLUSTER_ROLE, "",
                         "{metadata: {name: x, ownerReferences: [{uid: u}]}, rules: [{verbs: "
                         "['*'], apiGroups: ['*'], resources: ['*']}]}",
                         old),
               "");
    assert_int_not_equal(try_write(*state, "u", DV_KIND_CLUSTER_ROLE, "",
                                   "{metadata: {name: x, labels: {a: b}}, rules: [{verbs: ['*'], "
                                   "apiGroups: ['*'], resources: ['*']}]}",
                                   old)
                             .n,
                         0);
}

static void bindings_need_the_rights_of_their_role(void **state)
{
#define BINDING(role)                                                                              \
    "{metadata: {name: x, namespace: own}, roleRef: {kind: ClusterRole, name: " role "}}"
    assert_str(try_write(*state, "u", DV_KIND_ROLE_BINDING, "own", BINDING("pods"), NULL), "");
    assert_str(try_write(*state, "u", DV_KIND_ROLE_BINDING, "own", BINDING("gone"), NULL),
               "missing gone");
    assert_str(try_write(*state, "u g h", DV_KIND_CLUSTER_ROLE_BINDING, "",
                         "{metadata: {name: x}, roleRef: {kind: ClusterRole, name: pods}}", NULL),
               DENIED("\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}"));
}

static void escalate_and_bind_lift_it(void **state)
{
    static const char all[] = "{metadata: {name: x, namespace: own}, rules: [{verbs: ['*'], "
                              "apiGroups: ['*'], resources: ['*']}]}";

    world_set(*state, DV_KIND_CLUSTER_ROLE,
              "{metadata: {name: may}, rules: [{verbs: [escalate], apiGroups: "
              "[rbac.authorization.k8s.io], resources: [roles]}, {verbs: [bind], apiGroups: "
              "[rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [pods]}]}");
    world_set(*state, DV_KIND_ROLE_BINDING,
              "{metadata: {name: may, namespace: own}, roleRef: {kind: ClusterRole, name: may}, "
              "subjects: [{kind: User, name: w}]}");
    assert_str(try_write(*state, "w", DV_KIND_ROLE, "own", all, NULL), "");
    assert_int_not_equal(try_write(*state, "w", DV_KIND_ROLE, "other", all, NULL).n, 0);
    assert_str(try_write(*state, "w", DV_KIND_ROLE_BINDING, "own", BINDING("pods"), NULL), "");
    assert_int_not_equal(
        try_write(*state, "w", DV_KIND_ROLE_BINDING, "own", BINDING("has"), NULL).n, 0);
}

/* A rule of a few lines can stand for more atoms than there is time to look at. */
static void too_many_atoms_are_refused(void **state)
{
    struct world *world = *state;
    dv_str list = DV_STR("");

    for (int i = 0; i < 200; i++)
        list = dv_str_printf(world->arena, "%.*sx%d,", DV_FMT(list), i);
    list = dv_str_printf(world->arena,
                         "{metadata: {name: x}, rules: [{verbs: [%.*s], apiGroups: [%.*s], "
                         "resources: [%.*s], resourceNames: [%.*s]}]}",
                         DV_FMT(list), DV_FMT(list), DV_FMT(list), DV_FMT(list));
    assert_str(try_write(world, "u", DV_KIND_CLUSTER_ROLE, "", list.p, NULL),
               "the rules stand for more than 20000 combinations of group, resource, verb and "
               "name, which only who may escalate can give");
}

static void what_is_missing_is_not_told_for_ever(void **state)
{
    struct world *world = *state;
    dv_str list = DV_STR("");
    dv_str denial;
    size_t n = 0;

    for (int i = 0; i < 2000; i++)
        list = dv_str_printf(world->arena, "%.*sx%d,", DV_FMT(list), i);
    list = dv_str_printf(world->arena,
                         "{metadata: {name: x}, rules: [{verbs: [get], apiGroups: [''], resources: "
                         "[%.*s]}]}",
                         DV_FMT(list));
    denial = try_write(world, "u", DV_KIND_CLUSTER_ROLE, "", list.p, NULL);
    for (size_t i = 0; i < denial.n; i++)
        n += denial.p[i] == '\n';
    assert_int_equal(n, 501);
    assert_true(dv_str_find(denial, DV_STR("\nand more")) < denial.n);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_role_may_give_what_its_maker_has),
        TEST(a_cluster_role_needs_rights_everywhere),
        TEST(what_the_collector_changes_gives_nothing),
        TEST(bindings_need_the_rights_of_their_role),
        TEST(escalate_and_bind_lift_it),
        TEST(too_many_atoms_are_refused),
        TEST(what_is_missing_is_not_told_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

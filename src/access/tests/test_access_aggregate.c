/* test_access_aggregate.c - roles that are made of others. */
#include "access/tests/test_access_world.h"
#include "base/defs.h"
#include "support/dvtest.h"

#define RULE(resource) "{verbs: [get], apiGroups: [''], resources: [" resource "]}"

static void rules_come_by_selector_and_name_each_once(void **state)
{
    struct world *world = *state;
    const struct dv_api_cluster_role *roles[] = {
        world_read(
            world, DV_KIND_CLUSTER_ROLE,
            "{metadata: {name: z, labels: {a: '1'}}, rules: [" RULE("z1") ", " RULE("same") "]}"),
        world_read(world, DV_KIND_CLUSTER_ROLE,
                   "{metadata: {name: b, labels: {a: '1', c: x}}, rules: [" RULE("same") ", " RULE(
                       "b1") "]}"),
        world_read(world, DV_KIND_CLUSTER_ROLE,
                   "{metadata: {name: c, labels: {c: yes-c}}, rules: [" RULE("c1") "]}"),
        world_read(world, DV_KIND_CLUSTER_ROLE,
                   "{metadata: {name: own, labels: {a: '1'}}, rules: [" RULE(
                       "own") "], "
                              "aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: "
                              "c, operator: "
                              "In, values: [yes-c]}]}, {matchLabels: {a: '1'}}, {matchExpressions: "
                              "[{key: c, "
                              "operator: Strange}]}]}}"),
    };
    static const char *const wanted[] = {"c1", "same", "b1", "z1"};
    struct dv_api_policy_rule *rules;
    size_t n;

    rules = dv_access_aggregate(roles[3], roles, DV_COUNT(roles), world->arena, &n);
    assert_int_equal(n, DV_COUNT(wanted));
    for (size_t i = 0; i < n; i++)
        assert_str(rules[i].resources[0], wanted[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rules_come_by_selector_and_name_each_once, world_setup,
                                        world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

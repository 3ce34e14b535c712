/* test_control_accounts.c - what namespaces get, so that their pods can use the API. */
#include "support/dvtest.h"

#include "control/control.h"
#include "control/tests/test_control_world.h"
#include "resource/resource.h"

#define MAP "kube-root-ca.crt"

static void check_namespace(struct world *world, const char *namespace)
{
    const struct dv_object *map = look(world, DV_KIND_CONFIG_MAP, namespace, MAP);
    const struct dv_api_config_map *value;

    assert_non_null(look(world, DV_KIND_SERVICE_ACCOUNT, namespace, "default"));
    assert_non_null(map);
    value = map->value;
    assert_int_equal(value->n_data, 1);
    assert_str(value->data[0].key, "ca.crt");
    assert_str(value->data[0].value, "PEM");
    assert_int_equal(value->metadata.n_annotations, 1);
}

static void start(struct world *world)
{
    world->options.serves_cluster_defaults = true;
    world->options.root_ca = DV_STR("PEM");
    open_control(world);
}

static void each_namespace_has_an_account_and_a_certificate(void **state)
{
    struct world *world = *state;

    start(world);
    check_namespace(world, "default");
    check_namespace(world, "kube-system");
    (void)make(world, DV_KIND_NAMESPACE, "", "{metadata: {name: new}}");
    check_namespace(world, "new");
}

static void what_is_deleted_or_changed_is_put_right(void **state)
{
    struct world *world = *state;

    start(world);
    destroy(world, DV_KIND_SERVICE_ACCOUNT, "default", "default");
    destroy(world, DV_KIND_CONFIG_MAP, "default", MAP);
    check_namespace(world, "default");
    change(world, DV_KIND_CONFIG_MAP, "default", MAP, "{data: {ca.crt: x, more: z}}");
    check_namespace(world, "default");
    /* an account belongs to who changes it */
    change(world, DV_KIND_SERVICE_ACCOUNT, "default", "default",
           "{automountServiceAccountToken: false}");
    assert_non_null(((const struct dv_api_service_account *)look(world, DV_KIND_SERVICE_ACCOUNT,
                                                                 "default", "default")
                         ->value)
                        ->automount_service_account_token);
}

static void another_certificate_replaces_the_old_one(void **state)
{
    struct world *world = *state;

    world->options.serves_cluster_defaults = true;
    world->options.root_ca = DV_STR("OLD");
    open_control(world);
    close_control(world);
    start(world);
    check_namespace(world, "default");
}

static void a_namespace_that_goes_gets_nothing(void **state)
{
    struct world *world = *state;

    start(world);
    (void)make(world, DV_KIND_NAMESPACE, "", "{metadata: {name: gone}}");
    delete_gently(world, DV_KIND_NAMESPACE, "", "gone");
    pass(world, 60000);
    assert_null(look(world, DV_KIND_NAMESPACE, "", "gone"));
    assert_null(look(world, DV_KIND_SERVICE_ACCOUNT, "gone", "default"));
    assert_null(look(world, DV_KIND_CONFIG_MAP, "gone", MAP));
}

static void without_a_certificate_nothing_is_made(void **state)
{
    struct world *world = *state;

    open_control(world);
    assert_null(look(world, DV_KIND_SERVICE_ACCOUNT, "default", "default"));
    assert_null(look(world, DV_KIND_CONFIG_MAP, "default", MAP));
}

/* ---- ClusterRoles that are made of others ---- */

static const struct dv_api_cluster_role *role_of(struct world *world, const char *name)
{
    const struct dv_object *object = look(world, DV_KIND_CLUSTER_ROLE, "", name);

    return object ? object->value : NULL;
}

static void roles_have_the_rules_of_those_they_select(void **state)
{
    struct world *world = *state;

    start(world);
    (void)make(
        world, DV_KIND_CLUSTER_ROLE, "",
        "{metadata: {name: all}, rules: [{verbs: [own], apiGroups: [''], resources: [own]}], "
        "aggregationRule: {clusterRoleSelectors: [{matchLabels: {part: '1'}}]}}");
    assert_str(role_of(world, "all")->rules[0].verbs[0], "own"); /* nothing is selected yet */
    (void)make(world, DV_KIND_CLUSTER_ROLE, "",
               "{metadata: {name: a, labels: {part: '1'}}, rules: [{verbs: [get], apiGroups: [''], "
               "resources: [pods]}]}");
    assert_int_equal(role_of(world, "all")->n_rules, 1);
    assert_str(role_of(world, "all")->rules[0].verbs[0], "get");
    change(world, DV_KIND_CLUSTER_ROLE, "", "a",
           "{rules: [{verbs: [list], apiGroups: [''], resources: [pods]}]}");
    assert_str(role_of(world, "all")->rules[0].verbs[0], "list");
    change(world, DV_KIND_CLUSTER_ROLE, "", "a", "{metadata: {labels: {part: '2'}}}");
    assert_int_equal(role_of(world, "all")->n_rules, 0);
    destroy(world, DV_KIND_CLUSTER_ROLE, "", "a");
    destroy(world, DV_KIND_CLUSTER_ROLE, "", "all");
    assert_null(role_of(world, "all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_namespace_has_an_account_and_a_certificate,
                                        start_world, end_world),
        cmocka_unit_test_setup_teardown(what_is_deleted_or_changed_is_put_right, start_world,
                                        end_world),
        cmocka_unit_test_setup_teardown(another_certificate_replaces_the_old_one, start_world,
                                        end_world),
        cmocka_unit_test_setup_teardown(roles_have_the_rules_of_those_they_select, start_world,
                                        end_world),
        cmocka_unit_test_setup_teardown(a_namespace_that_goes_gets_nothing, start_world, end_world),
        cmocka_unit_test_setup_teardown(without_a_certificate_nothing_is_made, start_world,
                                        end_world),
    };

    return cmocka_run_group_tests_name("control_accounts", tests, NULL, NULL);
}

/* test_access_default.c - the roles that always exist, and what is added to those that lack
 * something. */
#include "access/access.h"
#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "resource/validate.h"
#include "support/dvtest.h"

static struct dv_access_default *find(enum dv_kind_id kind, const char *name,
                                      struct dv_arena *arena)
{
    size_t n;
    struct dv_access_default *all = dv_access_defaults(arena, &n);

    for (size_t i = 0; i < n; i++)
        if (all[i].kind->id == kind &&
            dv_str_eq(((struct dv_api_object_meta *)all[i].value)->name, dv_str_from_c(name)))
            return &all[i];
    fail_msg("no %s", name);
    return NULL;
}

static void all_of_them_are_valid(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_problems problems = {.arena = arena};
    size_t n;
    struct dv_access_default *all = dv_access_defaults(arena, &n);

    (void)state;
    assert_int_equal(n, 135);
    for (size_t i = 0; i < n; i++) {
        const struct dv_validation what = {
            .kind = all[i].kind, .operation = DV_CREATE, .value = all[i].value};

        dv_validate(&what, &problems);
    }
    if (problems.n > 0)
        fail_msg("%.*s: %.*s", DV_FMT(problems.v[0].field), DV_FMT(problems.v[0].detail));
}

static void what_is_as_it_should_be_is_left_alone(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_access_default *view = find(DV_KIND_CLUSTER_ROLE, "view", arena);
    struct dv_api_cluster_role stored = *(struct dv_api_cluster_role *)view->value;
    struct dv_api_cluster_role merged;

    (void)state;
    assert_int_equal(dv_access_repair(view, &stored, arena, &merged), DV_ACCESS_FINE);
    stored.n_rules = 0; /* the controller's */
    assert_int_equal(dv_access_repair(view, &stored, arena, &merged), DV_ACCESS_FINE);
}

static void missing_rules_come_back_and_others_stay(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_access_default *wanted = find(DV_KIND_CLUSTER_ROLE, "system:basic-user", arena);
    const struct dv_access_default *all = find(DV_KIND_CLUSTER_ROLE, "cluster-admin", arena);
    struct dv_api_cluster_role stored = *(struct dv_api_cluster_role *)wanted->value;
    const struct dv_api_cluster_role *other = all->value;
    struct dv_api_policy_rule own = other->rules[1];
    struct dv_api_cluster_role merged;

    (void)state;
    stored.rules = &own;
    stored.n_rules = 1;
    stored.metadata.labels = NULL;
    stored.metadata.n_labels = 0;
    assert_int_equal(dv_access_repair(wanted, &stored, arena, &merged), DV_ACCESS_CHANGED);
    assert_int_equal(merged.n_rules, 3);
    assert_true(dv_message_eq(&dv_message_policy_rule, &merged.rules[0], &own));
    assert_str(merged.metadata.labels[0].value, "rbac-defaults");
    /* rules that cover the missing ones are as good */
    stored = *(struct dv_api_cluster_role *)wanted->value;
    stored.rules = other->rules;
    stored.n_rules = other->n_rules;
    assert_int_equal(dv_access_repair(wanted, &stored, arena, &merged), DV_ACCESS_FINE);
}

static void an_annotation_keeps_an_object_as_it_is(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_access_default *wanted =
        find(DV_KIND_CLUSTER_ROLE_BINDING, "system:discovery", arena);
    struct dv_api_role_binding stored = *(struct dv_api_role_binding *)wanted->value;
    struct dv_api_role_binding merged;

    (void)state;
    stored.n_subjects = 0;
    assert_int_equal(dv_access_repair(wanted, &stored, arena, &merged), DV_ACCESS_CHANGED);
    assert_int_equal(merged.n_subjects, 1);
    stored.role_ref.name = DV_STR("other");
    assert_int_equal(dv_access_repair(wanted, &stored, arena, &merged), DV_ACCESS_OTHER);
    dv_entry_set(&stored.metadata.annotations, &stored.metadata.n_annotations,
                 DV_STR("rbac.authorization.kubernetes.io/autoupdate"), DV_STR("false"), arena);
    assert_int_equal(dv_access_repair(wanted, &stored, arena, &merged), DV_ACCESS_FINE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_them_are_valid),
        cmocka_unit_test(what_is_as_it_should_be_is_left_alone),
        cmocka_unit_test(missing_rules_come_back_and_others_stay),
        cmocka_unit_test(an_annotation_keeps_an_object_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

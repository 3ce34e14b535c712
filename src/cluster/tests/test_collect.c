#include "support/dvtest.h"

#include <stdbool.h>

#include "base/clock.h"
#include "cluster/cluster.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "resource/resource.h"
#include "support/embedded_count.h"

#define POD "{\"metadata\":{\"name\":\"p1\"}," POD_SPEC "}"

static struct dv_object *make_pod(struct fixture *fixture)
{
    return must(create(fixture, DV_KIND_POD, "default", POD));
}

/* A claim that is owned by what has that uid; more owners as JSON, or "". */
static void make_claim(struct fixture *fixture, const char *name, dv_str owner_uid,
                       const char *more)
{
    dv_str json = dv_str_printf(
        fixture->arena,
        "{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
        "\"Pod\",\"name\":\"p1\",\"uid\":\"%.*s\",\"blockOwnerDeletion\":true}%s]}," CLAIM_SPEC "}",
        name, DV_FMT(owner_uid), more);

    (void)must(create(fixture, DV_KIND_CLAIM, "default", dv_str_to_c(json, fixture->arena)));
}

static bool has_claim(struct fixture *fixture, const char *name)
{
    return exists(fixture, DV_KIND_CLAIM, "default", name);
}

static const struct dv_api_object_meta *meta_of(struct fixture *fixture, const char *claim)
{
    return must(get(fixture, DV_KIND_CLAIM, "default", claim))->meta;
}

static void delete_pod(struct fixture *fixture, const char *options)
{
    (void)must(del(fixture, DV_KIND_POD, "default", "p1", options));
}

static void what_a_deleted_owner_leaves_behind_is_collected(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *pod = make_pod(fixture);

    for (size_t i = 0; i < 300; i++)
        make_claim(fixture, numbered(fixture, "c%zu", i), pod->meta->uid, "");
    pass(fixture, 10000);
    assert_true(has_claim(fixture, "c0")); /* the owner is there */
    delete_pod(fixture, NULL);
    (void)make_pod(fixture); /* one of the same name is not the owner */
    settle(fixture);
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CLAIM)), 0);
}

static void an_owner_that_never_was_counts_as_gone(void **state)
{
    struct fixture *fixture = *state;

    make_claim(fixture, "c1", DV_STR("11111111-2222-3333-4444-555555555555"), "");
    settle(fixture);
    assert_true(has_claim(fixture, "c1")); /* not at once */
    pass(fixture, 2000);
    assert_false(has_claim(fixture, "c1"));
}

static void one_owner_that_stays_is_enough(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *pod = make_pod(fixture);
    struct dv_object *other = must(
        create(fixture, DV_KIND_POD, "default", "{\"metadata\":{\"name\":\"p2\"}," POD_SPEC "}"));
    const char *more = dv_str_to_c(
        dv_str_printf(fixture->arena,
                      ",{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p2\",\"uid\":\"%.*s\"}",
                      DV_FMT(other->meta->uid)),
        fixture->arena);

    make_claim(fixture, "c1", pod->meta->uid, more);
    delete_pod(fixture, NULL);
    pass(fixture, 2000);
    assert_int_equal(meta_of(fixture, "c1")->n_owner_references, 1);
    assert_true(dv_str_eq(meta_of(fixture, "c1")->owner_references[0].uid, other->meta->uid));
}

static void owners_of_kinds_that_are_not_served_are_left_alone(void **state)
{
    struct fixture *fixture = *state;

    (void)must(create(fixture, DV_KIND_CLAIM, "default",
                      "{\"metadata\":{\"name\":\"c1\",\"ownerReferences\":[{\"apiVersion\":"
                      "\"apps/v1\",\"kind\":\"StatefulSet\",\"name\":\"d\",\"uid\":\"u\"}]"
                      "}," CLAIM_SPEC "}"));
    pass(fixture, 5000);
    assert_true(has_claim(fixture, "c1"));
}

static void a_foreground_deletion_waits_for_the_dependents(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *pod = make_pod(fixture);

    make_claim(fixture, "c1", pod->meta->uid, "");
    make_claim(fixture, "c2", pod->meta->uid, "");
    (void)must(patch(fixture, DV_KIND_CLAIM, "default", "c1", DV_PATCH_MERGE,
                     "{\"metadata\":{\"finalizers\":[\"example.com/f\"]}}"));
    delete_pod(fixture, "{\"propagationPolicy\":\"Foreground\"}");
    assert_str(must(get(fixture, DV_KIND_POD, "default", "p1"))->meta->finalizers[0],
               "foregroundDeletion");
    pass(fixture, 3000);
    assert_true(exists(fixture, DV_KIND_POD, "default", "p1"));
    assert_true(meta_of(fixture, "c1")->deletion_timestamp.is_set);
    assert_false(has_claim(fixture, "c2"));
    (void)must(patch(fixture, DV_KIND_CLAIM, "default", "c1", DV_PATCH_MERGE,
                     "{\"metadata\":{\"finalizers\":null}}"));
    settle(fixture);
    assert_false(exists(fixture, DV_KIND_POD, "default", "p1"));
    assert_false(has_claim(fixture, "c1"));
}

static void an_orphaning_deletion_frees_the_dependents(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *pod = make_pod(fixture);

    for (size_t i = 0; i < 150; i++)
        make_claim(fixture, numbered(fixture, "c%zu", i), pod->meta->uid, "");
    delete_pod(fixture, "{\"propagationPolicy\":\"Orphan\"}");
    settle(fixture);
    assert_true(exists(fixture, DV_KIND_POD, "default", "p1"));
    pass(fixture, 3000);
    assert_false(exists(fixture, DV_KIND_POD, "default", "p1"));
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CLAIM)), 150);
    assert_int_equal(meta_of(fixture, "c0")->n_owner_references, 0);
    pass(fixture, 3000);
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CLAIM)), 150);
}

static void collecting_goes_on_after_a_restart(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *pod = make_pod(fixture);

    make_claim(fixture, "c1", pod->meta->uid, "");
    make_claim(fixture, "c2", DV_STR("gone"), "");
    delete_pod(fixture, "{\"propagationPolicy\":\"Foreground\"}");
    reopen(fixture);
    pass(fixture, 5000);
    assert_false(exists(fixture, DV_KIND_POD, "default", "p1"));
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CLAIM)), 0);
}

/* ---- namespaces ---- */

static void fill_namespace(struct fixture *fixture)
{
    (void)must(create(fixture, DV_KIND_NAMESPACE, "", "{\"metadata\":{\"name\":\"s\"}}"));
    for (size_t i = 0; i < 300; i++)
        (void)must(create(fixture, DV_KIND_CONFIG_MAP, "s",
                          numbered(fixture, "{\"metadata\":{\"name\":\"m%zu\"}}", i)));
    (void)must(create(fixture, DV_KIND_POD, "s", POD));
}

static void a_deleted_namespace_is_emptied_and_goes(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *namespace;
    const struct dv_api_namespace *value;

    fill_namespace(fixture);
    namespace = must(del(fixture, DV_KIND_NAMESPACE, "", "s", NULL));
    value = namespace->value;
    assert_true(namespace->meta->deletion_timestamp.is_set);
    assert_null(namespace->meta->deletion_grace_period_seconds);
    assert_str(value->status.phase, "Terminating");
    assert_int_equal(must(del(fixture, DV_KIND_NAMESPACE, "", "s", NULL))->version,
                     namespace->version);
    must_fail(create(fixture, DV_KIND_POD, "s", "{\"metadata\":{\"name\":\"p2\"}," POD_SPEC "}"),
              403, "Forbidden",
              "pods \"p2\" is forbidden: unable to create new content in namespace s because it is "
              "being terminated");
    settle(fixture);
    assert_true(exists(fixture, DV_KIND_CONFIG_MAP, "s", "m0")); /* not yet */
    pass(fixture, 6000);
    assert_false(exists(fixture, DV_KIND_NAMESPACE, "", "s"));
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CONFIG_MAP)), 0);
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_POD)), 0);
}

/* What pods use stays until they have ended. */
static void a_namespace_loses_its_pods_first(void **state)
{
    struct fixture *fixture = *state;

    fill_namespace(fixture);
    (void)must(patch(fixture, DV_KIND_POD, "s", "p1", DV_PATCH_MERGE,
                     "{\"metadata\":{\"finalizers\":[\"example.com/f\"]}}"));
    (void)must(del(fixture, DV_KIND_NAMESPACE, "", "s", NULL));
    pass(fixture, 10000);
    assert_true(must(get(fixture, DV_KIND_POD, "s", "p1"))->meta->deletion_timestamp.is_set);
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CONFIG_MAP)), 300);
    (void)must(patch(fixture, DV_KIND_POD, "s", "p1", DV_PATCH_MERGE,
                     "{\"metadata\":{\"finalizers\":null}}"));
    pass(fixture, 10000);
    assert_false(exists(fixture, DV_KIND_NAMESPACE, "", "s"));
}

static void a_namespace_waits_for_what_is_held(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_api_namespace *namespace;

    fill_namespace(fixture);
    (void)must(patch(fixture, DV_KIND_CONFIG_MAP, "s", "m7", DV_PATCH_MERGE,
                     "{\"metadata\":{\"finalizers\":[\"example.com/f\"]}}"));
    (void)must(del(fixture, DV_KIND_NAMESPACE, "", "s", NULL));
    pass(fixture, 10000);
    assert_true(exists(fixture, DV_KIND_NAMESPACE, "", "s"));
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CONFIG_MAP)), 1);
    namespace = must(get(fixture, DV_KIND_NAMESPACE, "", "s"))->value;
    assert_int_equal(namespace->status.n_conditions, 5);
    assert_str(namespace->status.conditions[3].type, "NamespaceContentRemaining");
    assert_str(namespace->status.conditions[3].status, "True");
    assert_str(namespace->status.conditions[3].message,
               "Some resources are remaining: configmaps. has 1 resource instances");
    assert_str(namespace->status.conditions[4].reason, "SomeFinalizersRemain");
    assert_str(namespace->status.conditions[4].message,
               "Some content in the namespace has finalizers remaining: example.com/f in 1 "
               "resource instances");
    (void)must(patch(fixture, DV_KIND_CONFIG_MAP, "s", "m7", DV_PATCH_MERGE,
                     "{\"metadata\":{\"finalizers\":null}}"));
    settle(fixture);
    assert_false(exists(fixture, DV_KIND_NAMESPACE, "", "s"));
}

/* Objects that own each other in a circle of `n`, each blocking the deletion of its owner. */
static void make_circle(struct fixture *fixture, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)must(
            create(fixture, DV_KIND_CLAIM, "default",
                   numbered(fixture, "{\"metadata\":{\"name\":\"c%zu\"}," CLAIM_SPEC "}", i)));
    for (size_t i = 0; i < n; i++) {
        const char *owner = numbered(fixture, "c%zu", (i + 1) % n);
        dv_str text = dv_str_printf(
            fixture->arena,
            "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":"
            "\"ResourceClaim\",\"name\":\"%s\",\"uid\":\"%.*s\",\"blockOwnerDeletion\":true}]}}",
            owner, DV_FMT(meta_of(fixture, owner)->uid));

        (void)must(patch(fixture, DV_KIND_CLAIM, "default", numbered(fixture, "c%zu", i),
                         DV_PATCH_MERGE, dv_str_to_c(text, fixture->arena)));
    }
}

static void a_circle_of_owners_goes_in_the_foreground(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 50};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < DV_COUNT(sizes); i++) {
        make_circle(fixture, sizes[i]);
        (void)must(
            del(fixture, DV_KIND_CLAIM, "default", "c0", "{\"propagationPolicy\":\"Foreground\"}"));
        pass(fixture, 10000);
        assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CLAIM)), 0);
    }
}

/* From both sides at once, while something else still holds one of them. */
static void a_circle_waits_for_what_holds_one_of_it(void **state)
{
    struct fixture *fixture = *state;

    make_circle(fixture, 2);
    (void)must(patch(fixture, DV_KIND_CLAIM, "default", "c1", DV_PATCH_MERGE,
                     "{\"metadata\":{\"finalizers\":[\"example.com/held\"]}}"));
    for (size_t i = 0; i < 2; i++)
        (void)must(del(fixture, DV_KIND_CLAIM, "default", numbered(fixture, "c%zu", i),
                       "{\"propagationPolicy\":\"Foreground\"}"));
    pass(fixture, 10000);
    assert_true(has_claim(fixture, "c1"));
    (void)must(patch(fixture, DV_KIND_CLAIM, "default", "c1", DV_PATCH_MERGE,
                     "{\"metadata\":{\"finalizers\":null}}"));
    pass(fixture, 10000);
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CLAIM)), 0);
}

static void a_namespace_goes_in_the_foreground_too(void **state)
{
    struct fixture *fixture = *state;

    fill_namespace(fixture);
    (void)must(del(fixture, DV_KIND_NAMESPACE, "", "s", "{\"propagationPolicy\":\"Foreground\"}"));
    pass(fixture, 15000);
    assert_false(exists(fixture, DV_KIND_NAMESPACE, "", "s"));
}

static void a_namespace_goes_after_a_restart(void **state)
{
    struct fixture *fixture = *state;

    fill_namespace(fixture);
    (void)must(del(fixture, DV_KIND_NAMESPACE, "", "s", NULL));
    reopen(fixture);
    pass(fixture, 10000);
    assert_false(exists(fixture, DV_KIND_NAMESPACE, "", "s"));
}

static void some_namespaces_may_not_be_deleted(void **state)
{
    struct fixture *fixture = *state;

    must_fail(del(fixture, DV_KIND_NAMESPACE, "", "default", NULL), 403, "Forbidden",
              "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

static void finalize_lets_a_namespace_go(void **state)
{
    struct fixture *fixture = *state;
    struct dv_request request = {.verb = DV_VERB_UPDATE,
                                 .subresource = DV_SUB_FINALIZE,
                                 .kind = dv_kind(DV_KIND_NAMESPACE),
                                 .name = DV_STR("s"),
                                 .value = value_of(fixture, DV_KIND_NAMESPACE,
                                                   "{\"metadata\":{\"name\":\"s\"},\"spec\":{}}")};
    struct dv_object *namespace;
    struct reply reply;

    (void)must(create(fixture, DV_KIND_NAMESPACE, "", "{\"metadata\":{\"name\":\"s\"}}"));
    namespace = must(del(fixture, DV_KIND_NAMESPACE, "", "s", NULL));
    reply = ask(fixture, &request);
    assert_true(reply.is_removed);
    assert_int_equal(must(reply)->version, namespace->version);
    assert_false(exists(fixture, DV_KIND_NAMESPACE, "", "s"));
}

/* ---- events ---- */

#define HOUR_MS (UINT64_C(3600) * 1000u)

static void events_go_an_hour_after_their_last_change(void **state)
{
    struct fixture *fixture = *state;
    const char *json = "{\"metadata\":{\"name\":\"e%zu\"},\"involvedObject\":{\"kind\":\"Pod\","
                       "\"namespace\":\"default\",\"name\":\"p\"},\"reason\":\"r\",\"type\":"
                       "\"Normal\",\"count\":1}";

    for (size_t i = 0; i < 2; i++)
        (void)must(create(fixture, DV_KIND_EVENT, "default", numbered(fixture, json, i)));
    dv_clock_virtual_advance_ms(&fixture->clock, HOUR_MS / 2);
    (void)must(patch(fixture, DV_KIND_EVENT, "default", "e1", DV_PATCH_STRATEGIC, "{\"count\":2}"));
    dv_clock_virtual_advance_ms(&fixture->clock, HOUR_MS / 2 + 1000);
    pass(fixture, 120000);
    assert_false(exists(fixture, DV_KIND_EVENT, "default", "e0"));
    assert_true(exists(fixture, DV_KIND_EVENT, "default", "e1"));
    dv_clock_virtual_advance_ms(&fixture->clock, HOUR_MS / 2);
    pass(fixture, 120000);
    assert_false(exists(fixture, DV_KIND_EVENT, "default", "e1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_deleted_owner_leaves_behind_is_collected, start,
                                        end),
        cmocka_unit_test_setup_teardown(an_owner_that_never_was_counts_as_gone, start, end),
        cmocka_unit_test_setup_teardown(one_owner_that_stays_is_enough, start, end),
        cmocka_unit_test_setup_teardown(owners_of_kinds_that_are_not_served_are_left_alone, start,
                                        end),
        cmocka_unit_test_setup_teardown(a_foreground_deletion_waits_for_the_dependents, start, end),
        cmocka_unit_test_setup_teardown(a_circle_of_owners_goes_in_the_foreground, start, end),
        cmocka_unit_test_setup_teardown(a_circle_waits_for_what_holds_one_of_it, start, end),
        cmocka_unit_test_setup_teardown(an_orphaning_deletion_frees_the_dependents, start, end),
        cmocka_unit_test_setup_teardown(collecting_goes_on_after_a_restart, start_on_disk, end),
        cmocka_unit_test_setup_teardown(a_deleted_namespace_is_emptied_and_goes, start, end),
        cmocka_unit_test_setup_teardown(a_namespace_loses_its_pods_first, start, end),
        cmocka_unit_test_setup_teardown(a_namespace_waits_for_what_is_held, start, end),
        cmocka_unit_test_setup_teardown(a_namespace_goes_in_the_foreground_too, start, end),
        cmocka_unit_test_setup_teardown(a_namespace_goes_after_a_restart, start_on_disk, end),
        cmocka_unit_test_setup_teardown(some_namespaces_may_not_be_deleted, start, end),
        cmocka_unit_test_setup_teardown(finalize_lets_a_namespace_go, start, end),
        cmocka_unit_test_setup_teardown(events_go_an_hour_after_their_last_change, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

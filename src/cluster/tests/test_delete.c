#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "resource/resource.h"
#include "support/embedded_count.h"

#define CLAIM "{\"metadata\":{\"name\":\"c1\"}," CLAIM_SPEC "}"
#define HELD "{\"metadata\":{\"name\":\"c1\",\"finalizers\":[\"example.com/f\"]}," CLAIM_SPEC "}"
#define POD "{\"metadata\":{\"name\":\"p1\"}," POD_SPEC "}"
#define BOUND                                                                                      \
    "{\"metadata\":{\"name\":\"p1\"},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":"      \
    "\"c\",\"image\":\"i\"}]}}"

static struct reply delete_claim(struct fixture *fixture, const char *options)
{
    return del(fixture, DV_KIND_CLAIM, "default", "c1", options);
}

static struct reply delete_pod(struct fixture *fixture, const char *options)
{
    return del(fixture, DV_KIND_POD, "default", "p1", options);
}

static void removes_what_nothing_holds(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *claim = must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));
    struct reply reply = delete_claim(fixture, NULL);

    assert_true(reply.is_removed);
    assert_int_equal(must(reply)->version, claim->version + 1);
    assert_int_equal(dv_embedded_version(fixture->embedded), claim->version + 1);
    assert_false(reply.object->meta->deletion_timestamp.is_set);
    must_fail(get(fixture, DV_KIND_CLAIM, "default", "c1"), 404, "NotFound",
              "resourceclaims.resource.k8s.io \"c1\" not found");
    must_fail(delete_claim(fixture, NULL), 404, "NotFound", NULL);
    (void)must(create(fixture, DV_KIND_CLAIM, "default", CLAIM)); /* the name is free */
}

static void waits_for_the_last_finalizer(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *deleted;
    struct reply reply;

    (void)must(create(fixture, DV_KIND_CLAIM, "default", HELD));
    reply = delete_claim(fixture, NULL);
    deleted = must(reply);
    assert_false(reply.is_removed);
    assert_true(deleted->meta->deletion_timestamp.is_set);
    assert_int_equal(*deleted->meta->deletion_grace_period_seconds, 0);
    assert_int_equal(must(delete_claim(fixture, NULL))->version, deleted->version); /* again */
    must_fail(create(fixture, DV_KIND_CLAIM, "default", CLAIM), 409, "AlreadyExists",
              "object is being deleted: resourceclaims.resource.k8s.io \"c1\" already exists");
    must_fail(patch(fixture, DV_KIND_CLAIM, "default", "c1", DV_PATCH_MERGE,
                    "{\"metadata\":{\"finalizers\":[\"example.com/f\",\"example.com/new\"]}}"),
              422, "Invalid",
              "ResourceClaim.resource.k8s.io \"c1\" is invalid: metadata.finalizers: Forbidden: no "
              "new finalizers can be added if the object is being deleted, found new finalizers "
              "[]string{\"example.com/new\"}");
    assert_int_equal(must(patch(fixture, DV_KIND_CLAIM, "default", "c1", DV_PATCH_MERGE,
                                "{\"metadata\":{\"deletionTimestamp\":null}}"))
                         ->version,
                     deleted->version);
    reply = patch(fixture, DV_KIND_CLAIM, "default", "c1", DV_PATCH_MERGE,
                  "{\"metadata\":{\"finalizers\":null}}");
    assert_true(reply.is_removed);
    assert_int_equal(must(reply)->version, deleted->version);
    assert_int_equal(reply.object->meta->n_finalizers, 0);
    assert_false(exists(fixture, DV_KIND_CLAIM, "default", "c1"));
}

static void refuses_bad_options(void **state)
{
    static const struct {
        const char *options;
        int code;
        const char *message;
    } cases[] = {
        {"{\"propagationPolicy\":\"Bogus\"}",                                      422,
         "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: "
         "\"Bogus\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"" },
        {"{\"propagationPolicy\":\"Background\",\"orphanDependents\":true}",       422,
         "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: "
         "\"Background\": orphanDependents and deletionPropagation cannot be both set"      },
        {"{\"dryRun\":[\"Some\"]}",                                                422,
         "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: "
         "[\"Some\"]: supported values: \"All\""                                            },
        {"{\"preconditions\":{\"resourceVersion\":\"1\"}}",                        409, NULL},
        {"{\"preconditions\":{\"uid\":\"00000000-0000-0000-0000-000000000000\"}}", 409, NULL},
    };
    struct fixture *fixture = *state;
    struct dv_object *claim = must(create(fixture, DV_KIND_CLAIM, "default", CLAIM));
    struct reply reply = {0};

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        reply = delete_claim(fixture, cases[i].options);
        must_fail(reply, cases[i].code, NULL, cases[i].message);
    }
    assert_string_equal(
        reply.message,
        dv_str_to_c(
            dv_str_printf(fixture->arena,
                          "Operation cannot be fulfilled on ResourceClaim.resource.k8s.io "
                          "\"c1\": the UID in the precondition "
                          "(00000000-0000-0000-0000-000000000000) does not match the UID in "
                          "record (%.*s). The object might have been deleted and then "
                          "recreated",
                          DV_FMT(claim->meta->uid)),
            fixture->arena));
    assert_true(exists(fixture, DV_KIND_CLAIM, "default", "c1"));
}

/* ---- pods ---- */

static void an_unbound_pod_goes_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *pod = must(create(fixture, DV_KIND_POD, "default", POD));
    struct reply reply = delete_pod(fixture, "{\"gracePeriodSeconds\":5}");

    assert_true(reply.is_removed);
    assert_int_equal(must(reply)->version, pod->version + 2); /* told first, then gone */
    assert_int_equal(*reply.object->meta->deletion_grace_period_seconds, 0);
    assert_int_equal(reply.object->meta->generation, 2);
    assert_false(exists(fixture, DV_KIND_POD, "default", "p1"));
}

/* Without the arithmetic that would leave the calendar: what is stored is read again. */
static void a_grace_beyond_all_time_ends_with_the_calendar(void **state)
{
    static const char *const graces[] = {"9223372036854775807", "253402300800",
                                         "4611686018427387904"};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < DV_COUNT(graces); i++) {
        const char *options =
            dv_str_to_c(dv_str_printf(fixture->arena, "{\"gracePeriodSeconds\":%s}", graces[i]),
                        fixture->arena);
        struct dv_object *pod;
        struct dv_object *again;
        int64_t deleted_s;

        (void)must(create(fixture, DV_KIND_POD, "default", BOUND));
        pod = must(delete_pod(fixture, options));
        assert_int_equal(pod->meta->deletion_timestamp.seconds, INT64_C(253402300799));
        deleted_s =
            pod->meta->deletion_timestamp.seconds - *pod->meta->deletion_grace_period_seconds;
        reopen(fixture);
        again = must(get(fixture, DV_KIND_POD, "default", "p1"));
        assert_int_equal(again->version, pod->version);
        again = must(delete_pod(fixture, "{\"gracePeriodSeconds\":30}"));
        assert_int_equal(again->meta->deletion_timestamp.seconds, deleted_s + 30);
        again = must(delete_pod(fixture, "{\"gracePeriodSeconds\":-9223372036854775808}"));
        assert_int_equal(*again->meta->deletion_grace_period_seconds, 1);
        assert_true(delete_pod(fixture, "{\"gracePeriodSeconds\":0}").is_removed);
    }
}

static void a_bound_pod_has_its_grace_which_only_becomes_shorter(void **state)
{
    struct fixture *fixture = *state;
    struct dv_object *pod;
    struct dv_object *again;

    (void)must(create(fixture, DV_KIND_POD, "default", BOUND));
    pod = must(delete_pod(fixture, NULL));
    assert_int_equal(*pod->meta->deletion_grace_period_seconds, 30);
    assert_int_equal(pod->meta->generation, 2);
    again = must(delete_pod(fixture, NULL));
    assert_int_equal(again->version, pod->version);
    again = must(delete_pod(fixture, "{\"gracePeriodSeconds\":60}"));
    assert_int_equal(again->version, pod->version);
    again = must(delete_pod(fixture, "{\"gracePeriodSeconds\":10}"));
    assert_int_equal(*again->meta->deletion_grace_period_seconds, 10);
    assert_int_equal(again->meta->deletion_timestamp.seconds,
                     pod->meta->deletion_timestamp.seconds - 20);
    assert_int_equal(again->meta->generation, 2);
    assert_true(delete_pod(fixture, "{\"gracePeriodSeconds\":0}").is_removed);
}

static struct reply subresource_of(struct fixture *fixture, const char *name,
                                   enum dv_subresource which, const struct dv_message *message,
                                   const char *json)
{
    void *value = dv_arena_alloc(fixture->arena, message->size, message->align);
    struct dv_request request = {.verb = DV_VERB_CREATE,
                                 .subresource = which,
                                 .kind = dv_kind(DV_KIND_POD),
                                 .namespace = DV_STR("default"),
                                 .name = dv_str_from_c(name),
                                 .value = value};
    struct dv_err err;

    assert_ok(dv_decode_json(message, json_of(fixture, json), DV_UNKNOWN_DROP, fixture->arena,
                             value, NULL, &err),
              &err);
    return ask(fixture, &request);
}

static struct reply subresource(struct fixture *fixture, enum dv_subresource which,
                                const struct dv_message *message, const char *json)
{
    return subresource_of(fixture, "p1", which, message, json);
}

static struct reply bind_pod(struct fixture *fixture, const char *json)
{
    return subresource(fixture, DV_SUB_BINDING, &dv_message_binding, json);
}

static void binds_a_pod_once(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_api_pod *pod;

    must_fail(bind_pod(fixture, "{\"target\":{\"name\":\"n\"}}"), 404, "NotFound", NULL);
    (void)must(create(fixture, DV_KIND_POD, "default", POD));
    must_fail(bind_pod(fixture, "{\"target\":{\"name\":\"\"}}"), 500, "",
              "target.name: Required value");
    must_fail(bind_pod(fixture, "{\"target\":{\"kind\":\"Pod\",\"name\":\"n\"}}"), 500, "", NULL);
    must_fail(bind_pod(fixture, "{\"metadata\":{\"uid\":\"u\"},\"target\":{\"name\":\"n\"}}"), 409,
              "Conflict", NULL);
    (void)must(update_status(fixture, DV_KIND_POD, "default", "p1",
                             "{\"metadata\":{\"name\":\"p1\"}," POD_SPEC
                             ",\"status\":{\"nominatedNodeName\":\"m\"}}"));
    pod =
        must(bind_pod(fixture, "{\"metadata\":{\"name\":\"p1\",\"annotations\":{\"from\":\"us\"}},"
                               "\"target\":{\"kind\":\"Node\",\"name\":\"n\"}}"))
            ->value;
    assert_str(pod->spec.node_name, "n");
    assert_str(pod->status.nominated_node_name, "");
    assert_str(pod->metadata.annotations[0].value, "us");
    assert_str(pod->status.conditions[0].type, "PodScheduled");
    assert_str(pod->status.conditions[0].status, "True");
    must_fail(bind_pod(fixture, "{\"target\":{\"name\":\"m\"}}"), 409, "Conflict",
              "Operation cannot be fulfilled on pods/binding \"p1\": pod p1 is already assigned to "
              "node \"n\"");
}

static void evicts_a_pod(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_api_pod *pod;

    (void)must(create(fixture, DV_KIND_POD, "default", BOUND));
    must_fail(subresource(fixture, DV_SUB_EVICTION, &dv_message_eviction,
                          "{\"metadata\":{\"name\":\"other\"}}"),
              400, "BadRequest", "name in URL does not match name in Eviction object");
    pod = must(subresource(fixture, DV_SUB_EVICTION, &dv_message_eviction,
                           "{\"metadata\":{\"name\":\"p1\"}}"))
              ->value;
    assert_true(pod->metadata.deletion_timestamp.is_set);
    assert_str(pod->status.conditions[0].type, "DisruptionTarget");
    assert_str(pod->status.conditions[0].reason, "EvictionByEvictionAPI");
}

static struct reply evict(struct fixture *fixture, const char *name)
{
    return subresource_of(
        fixture, name, DV_SUB_EVICTION, &dv_message_eviction,
        dv_str_printf(fixture->arena, "{\"metadata\":{\"name\":\"%s\"}}", name).p);
}

static void make_ready(struct fixture *fixture, const char *name, const char *phase)
{
    const char *text =
        dv_str_printf(fixture->arena,
                      "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":\"a\"},"
                      "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\","
                      "\"name\":\"r\",\"uid\":\"%.*s\",\"controller\":true}]},"
                      "\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\",\"image\":"
                      "\"i\"}]},\"status\":{\"phase\":\"%s\",\"conditions\":[{\"type\":"
                      "\"Ready\",\"status\":\"True\"}]}}",
                      name,
                      DV_FMT(get(fixture, DV_KIND_REPLICA_SET, "default", "r").object->meta->uid),
                      phase)
            .p;

    (void)must(create(fixture, DV_KIND_POD, "default", text));
    (void)must(update_status(fixture, DV_KIND_POD, "default", name, text));
}

static void a_budget_keeps_pods_from_eviction(void **state)
{
    struct fixture *fixture = *state;

    (void)must(create(fixture, DV_KIND_REPLICA_SET, "default",
                      "{\"metadata\":{\"name\":\"r\"},\"spec\":{\"replicas\":3,\"selector\":"
                      "{\"matchLabels\":{\"app\":\"a\"}},\"template\":{\"metadata\":{\"labels\":"
                      "{\"app\":\"a\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
                      "\"i\"}]}}}}"));
    make_ready(fixture, "p1", "Running");
    make_ready(fixture, "p2", "Running");
    make_ready(fixture, "p3", "Running");
    (void)must(create(fixture, DV_KIND_DISRUPTION_BUDGET, "default",
                      "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"maxUnavailable\":\"30%\","
                      "\"selector\":{\"matchLabels\":{\"app\":\"a\"}}}}"));
    (void)must(evict(fixture, "p1"));
    must_fail(evict(fixture, "p2"), 429, "TooManyRequests",
              "Cannot evict pod as it would violate the pod's disruption budget.");
    (void)must(evict(fixture, "p1")); /* it goes already */
    make_ready(fixture, "p4", "Pending");
    (void)must(evict(fixture, "p4")); /* it does not run yet */
    (void)must(create(fixture, DV_KIND_DISRUPTION_BUDGET, "default",
                      "{\"metadata\":{\"name\":\"other\"},\"spec\":{\"selector\":{}}}"));
    must_fail(evict(fixture, "p2"), 500, "",
              "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
              "not support.");
}

/* ---- collections ---- */

static struct reply delete_all(struct fixture *fixture, const char *labels)
{
    struct dv_request request = {.verb = DV_VERB_DELETE_COLLECTION,
                                 .kind = dv_kind(DV_KIND_CLAIM),
                                 .namespace = DV_STR("default"),
                                 .label_selector = dv_str_from_c(labels)};

    return ask(fixture, &request);
}

static void deletes_what_a_selector_matches(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < 1000; i++)
        (void)must(create(fixture, DV_KIND_CLAIM, "default",
                          numbered(fixture,
                                   i % 2 ? "{\"metadata\":{\"name\":\"c%zu\",\"labels\":{"
                                           "\"g\":\"a\"}}," CLAIM_SPEC "}"
                                         : "{\"metadata\":{\"name\":\"c%zu\"}," CLAIM_SPEC "}",
                                   i)));
    must_fail(delete_all(fixture, "g in ("), 400, "BadRequest",
              "unable to parse requirement: found '', expected: ',', ')' or identifier");
    assert_int_equal(delete_all(fixture, "g=zzz").n_objects, 0);
    assert_int_equal(delete_all(fixture, "g=a").n_objects, 500);
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CLAIM)), 500);
    assert_int_equal(delete_all(fixture, "").n_objects, 500);
    assert_int_equal(embedded_count(fixture->embedded, dv_kind(DV_KIND_CLAIM)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(removes_what_nothing_holds, start, end),
        cmocka_unit_test_setup_teardown(waits_for_the_last_finalizer, start, end),
        cmocka_unit_test_setup_teardown(refuses_bad_options, start, end),
        cmocka_unit_test_setup_teardown(an_unbound_pod_goes_at_once, start, end),
        cmocka_unit_test_setup_teardown(a_bound_pod_has_its_grace_which_only_becomes_shorter, start,
                                        end),
        cmocka_unit_test_setup_teardown(a_grace_beyond_all_time_ends_with_the_calendar,
                                        start_on_disk, end),
        cmocka_unit_test_setup_teardown(binds_a_pod_once, start, end),
        cmocka_unit_test_setup_teardown(evicts_a_pod, start, end),
        cmocka_unit_test_setup_teardown(a_budget_keeps_pods_from_eviction, start, end),
        cmocka_unit_test_setup_teardown(deletes_what_a_selector_matches, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

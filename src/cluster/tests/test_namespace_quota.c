/* Quotas of namespaces: what is counted, when, and that no two creations take the same room; and
 * what pods have from their PriorityClass. */
#include "support/dvtest.h"

#include "cluster/cluster.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "number/number.h"
#include "resource/quota_use.h"
#include "resource/resource.h"

#define QUOTA(hard) "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"hard\":{" hard "}}}"
#define CONFIG "{\"metadata\":{\"name\":\"c%zu\"}}"

static const char *used_of(struct fixture *fixture, const char *name)
{
    const struct dv_api_resource_quota *quota =
        must(get(fixture, DV_KIND_RESOURCE_QUOTA, "default", name))->value;
    const char *text = "";

    for (size_t i = 0; i < quota->status.n_used; i++)
        text = dv_str_printf(fixture->arena, "%s%s%.*s=%.*s", text, i > 0 ? " " : "",
                             DV_FMT(quota->status.used[i].key),
                             DV_FMT(dv_quantity_text(&quota->status.used[i].value, fixture->arena)))
                   .p;
    return text;
}

static const char *used(struct fixture *fixture)
{
    return used_of(fixture, "q");
}

static void make(struct fixture *fixture, const char *hard_of_quota)
{
    (void)must(create(fixture, DV_KIND_RESOURCE_QUOTA, "default", hard_of_quota));
    settle(fixture);
}

/* More than a walk looks at in one turn. */
static void objects_that_were_there_are_counted(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < 450; i++)
        (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default", numbered(fixture, CONFIG, i)));
    make(fixture, QUOTA("\"count/configmaps\":\"451\",\"configmaps\":\"1k\",\"pods\":\"1\","
                        "\"count/nothing\":\"1\""));
    assert_string_equal(used(fixture), "configmaps=450 count/configmaps=450 pods=0");
    (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default", numbered(fixture, CONFIG, 450)));
    must_fail(create(fixture, DV_KIND_CONFIG_MAP, "default", "{\"metadata\":{\"name\":\"x\"}}"),
              403, "Forbidden",
              "configmaps \"x\" is forbidden: exceeded quota: q, requested: count/configmaps=1, "
              "used: count/configmaps=451, limited: count/configmaps=451");
    (void)must(del(fixture, DV_KIND_CONFIG_MAP, "default", "c0", NULL));
    settle(fixture);
    assert_string_equal(used(fixture), "configmaps=450 count/configmaps=450 pods=0");
    /* a resource that is added later is counted by itself */
    (void)must(patch(fixture, DV_KIND_RESOURCE_QUOTA, "default", "q", DV_PATCH_MERGE,
                     "{\"spec\":{\"hard\":{\"count/nothing\":null,\"secrets\":\"1\"}}}"));
    settle(fixture);
    assert_string_equal(used(fixture), "configmaps=450 count/configmaps=450 pods=0 secrets=0");
    /* other namespaces have none */
    (void)must(create(fixture, DV_KIND_CONFIG_MAP, "kube-system", numbered(fixture, CONFIG, 1)));
}

struct racer {
    struct dv_request request;
    bool is_done;
    bool is_refused;
};

static void on_raced(struct dv_request *request, const struct dv_api_status *failure)
{
    struct racer *racer = request->ctx;

    racer->is_done = true;
    racer->is_refused = failure && failure->code == 403;
    assert_true(!failure || racer->is_refused);
}

static void creations_at_once_never_exceed(void **state)
{
    struct fixture *fixture = *state;
    struct racer racers[50] = {0};
    size_t n_made = 0;

    make(fixture, QUOTA("\"gpu.deviceclass.resource.k8s.io/devices\":\"7\""));
    for (size_t i = 0; i < DV_COUNT(racers); i++) {
        racers[i].request = (struct dv_request){
            .verb = DV_VERB_CREATE,
            .kind = dv_kind(DV_KIND_CLAIM),
            .namespace = DV_STR("default"),
            .value =
                value_of(fixture, DV_KIND_CLAIM,
                         numbered(fixture, "{\"metadata\":{\"name\":\"c%zu\"}," CLAIM_SPEC "}", i)),
            .done = on_raced,
            .ctx = &racers[i]};
        dv_request_start(fixture->cluster, &racers[i].request);
    }
    settle(fixture);
    for (size_t i = 0; i < DV_COUNT(racers); i++) {
        assert_true(racers[i].is_done);
        n_made += !racers[i].is_refused;
    }
    assert_int_equal(n_made, 7);
    assert_string_equal(used(fixture), "gpu.deviceclass.resource.k8s.io/devices=7");
}

/* What could not be stored gives its room back. */
static void a_failed_creation_gives_its_room_back(void **state)
{
    struct fixture *fixture = *state;

    make(fixture, QUOTA("\"count/configmaps\":\"1\""));
    must_fail(create(fixture, DV_KIND_CONFIG_MAP, "default",
                     "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"5\"}}"),
              500, "", NULL);
    (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default", numbered(fixture, CONFIG, 1)));
    must_fail(create(fixture, DV_KIND_CONFIG_MAP, "default", numbered(fixture, CONFIG, 1)), 409,
              "AlreadyExists", NULL);
    settle(fixture);
    assert_string_equal(used(fixture), "count/configmaps=1");
    (void)must(del(fixture, DV_KIND_CONFIG_MAP, "default", "c1", NULL));
    (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default", numbered(fixture, CONFIG, 2)));
}

static void a_quota_counts_again_after_a_restart(void **state)
{
    struct fixture *fixture = *state;

    (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default", numbered(fixture, CONFIG, 1)));
    make(fixture, QUOTA("\"count/configmaps\":\"2\""));
    reopen(fixture);
    settle(fixture);
    assert_string_equal(used(fixture), "count/configmaps=1");
    (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default", numbered(fixture, CONFIG, 2)));
    must_fail(create(fixture, DV_KIND_CONFIG_MAP, "default", numbered(fixture, CONFIG, 3)), 403,
              "Forbidden", NULL);
}

#define POD(name, spec)                                                                            \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec                                        \
    "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{"                \
    "\"example.com/gpu\":\"2\"},\"limits\":{\"example.com/gpu\":\"2\"}}}]}}"

static void pods_count_by_class_and_resource(void **state)
{
    struct fixture *fixture = *state;

    (void)must(create(fixture, DV_KIND_RESOURCE_QUOTA, "default",
                      "{\"metadata\":{\"name\":\"critical\"},\"spec\":{\"hard\":{\"pods\":\"1\"},"
                      "\"scopeSelector\":{\"matchExpressions\":[{\"scopeName\":\"PriorityClass\","
                      "\"operator\":\"In\",\"values\":[\"system-node-critical\"]}]}}}"));
    make(fixture, QUOTA("\"requests.example.com/gpu\":\"5\""));
    (void)must(create(fixture, DV_KIND_POD, "default",
                      POD("a", "\"priorityClassName\":\"system-node-critical\",")));
    must_fail(create(fixture, DV_KIND_POD, "default",
                     POD("b", "\"priorityClassName\":\"system-node-critical\",")),
              403, "Forbidden",
              "pods \"b\" is forbidden: exceeded quota: critical, requested: pods=1, used: pods=1, "
              "limited: pods=1");
    (void)must(create(fixture, DV_KIND_POD, "default", POD("b", "")));
    must_fail(create(fixture, DV_KIND_POD, "default", POD("c", "")), 403, "Forbidden",
              "pods \"c\" is forbidden: exceeded quota: q, requested: requests.example.com/gpu=2, "
              "used: requests.example.com/gpu=4, limited: requests.example.com/gpu=5");
    (void)must(update_status(fixture, DV_KIND_POD, "default", "a",
                             "{\"metadata\":{\"name\":\"a\"},\"status\":{\"phase\":\"Failed\"}}"));
    (void)must(create(fixture, DV_KIND_POD, "default", POD("c", "")));
}

#define SCOPED(name, scope)                                                                        \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"hard\":{\"pods\":\"1\"},"                   \
    "\"scopes\":[\"" scope "\"]}}"
#define ENDS "{\"spec\":{\"activeDeadlineSeconds\":60}}"

/* Who sets a deadline moves its pod from one scope into another: into one that is full it cannot.
 */
static void a_pod_moves_only_where_there_is_room(void **state)
{
    struct fixture *fixture = *state;

    (void)must(create(fixture, DV_KIND_RESOURCE_QUOTA, "default", SCOPED("short", "Terminating")));
    (void)must(
        create(fixture, DV_KIND_RESOURCE_QUOTA, "default", SCOPED("long", "NotTerminating")));
    settle(fixture);
    (void)must(create(fixture, DV_KIND_POD, "default", POD("a", "")));
    (void)must(patch(fixture, DV_KIND_POD, "default", "a", DV_PATCH_MERGE, ENDS));
    (void)must(create(fixture, DV_KIND_POD, "default", POD("b", "")));
    must_fail(patch(fixture, DV_KIND_POD, "default", "b", DV_PATCH_MERGE, ENDS), 403, "Forbidden",
              "pods \"b\" is forbidden: exceeded quota: short, requested: pods=1, used: pods=1, "
              "limited: pods=1");
    must_fail(create(fixture, DV_KIND_POD, "default", POD("c", "")), 403, "Forbidden",
              "pods \"c\" is forbidden: exceeded quota: long, requested: pods=1, used: pods=1, "
              "limited: pods=1");
    settle(fixture);
    assert_string_equal(used_of(fixture, "short"), "pods=1");
    assert_string_equal(used_of(fixture, "long"), "pods=1");
}

static void pods_get_the_priority_of_their_class(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_api_pod *pod;

    pod = must(create(fixture, DV_KIND_POD, "default",
                      POD("a", "\"priorityClassName\":\"system-cluster-critical\",")))
              ->value;
    assert_int_equal(*pod->spec.priority, 2000000000);
    pod = must(create(fixture, DV_KIND_POD, "default", POD("b", "")))->value;
    assert_int_equal(*pod->spec.priority, 0);
    assert_str(pod->spec.preemption_policy, "PreemptLowerPriority");
    must_fail(create(fixture, DV_KIND_POD, "default", POD("c", "\"priorityClassName\":\"x\",")),
              403, "Forbidden", "pods \"c\" is forbidden: no PriorityClass with name x was found");
    must_fail(create(fixture, DV_KIND_POD, "default", POD("c", "\"priority\":1,")), 403,
              "Forbidden",
              "pods \"c\" is forbidden: the integer value of priority (1) must not be provided in "
              "pod spec; priority admission controller computed 0 from the given PriorityClass "
              "name");
    (void)must(create(fixture, DV_KIND_PRIORITY_CLASS, "",
                      "{\"metadata\":{\"name\":\"low\"},\"value\":-5,\"globalDefault\":true,"
                      "\"preemptionPolicy\":\"Never\"}"));
    must_fail(create(fixture, DV_KIND_PRIORITY_CLASS, "",
                     "{\"metadata\":{\"name\":\"more\"},\"value\":5,\"globalDefault\":true}"),
              403, "Forbidden",
              "priorityclasses.scheduling.k8s.io \"more\" is forbidden: PriorityClass low is "
              "already marked as default. Only one default can exist");
    pod = must(create(fixture, DV_KIND_POD, "default", POD("c", "")))->value;
    assert_str(pod->spec.priority_class_name, "low");
    assert_int_equal(*pod->spec.priority, -5);
    assert_str(pod->spec.preemption_policy, "Never");
}

/* What is created is held against all of them, on the loop. */
static void a_namespace_has_a_limited_number_of_quotas(void **state)
{
    struct fixture *fixture = *state;
    const char *text = "{\"metadata\":{\"name\":\"q%zu\"},\"spec\":{\"hard\":{\"pods\":\"1\"}}}";

    for (size_t i = 0; i < DV_QUOTAS_MAX; i++)
        (void)must(create(fixture, DV_KIND_RESOURCE_QUOTA, "default", numbered(fixture, text, i)));
    must_fail(create(fixture, DV_KIND_RESOURCE_QUOTA, "default", QUOTA("\"pods\":\"1\"")), 403,
              "Forbidden",
              "resourcequotas \"q\" is forbidden: the namespace has 32 quotas, and 32 is the most; "
              "one quota can limit many resources");
    settle(fixture);
}

static int start_with_plugins(void **state)
{
    struct fixture *fixture;

    (void)start_without_api(state);
    fixture = *state;
    fixture->options.has_accounts = true;
    open_api(fixture);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(objects_that_were_there_are_counted, start, end),
        cmocka_unit_test_setup_teardown(creations_at_once_never_exceed, start, end),
        cmocka_unit_test_setup_teardown(a_namespace_has_a_limited_number_of_quotas, start, end),
        cmocka_unit_test_setup_teardown(a_failed_creation_gives_its_room_back, start, end),
        cmocka_unit_test_setup_teardown(a_quota_counts_again_after_a_restart, start_on_disk, end),
        cmocka_unit_test_setup_teardown(pods_count_by_class_and_resource, start_with_plugins, end),
        cmocka_unit_test_setup_teardown(a_pod_moves_only_where_there_is_room, start_with_plugins,
                                        end),
        cmocka_unit_test_setup_teardown(pods_get_the_priority_of_their_class, start_with_plugins,
                                        end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

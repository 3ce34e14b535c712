/* Pods that are created get their service accounts, where the API is told to see to that, and what
 * their RuntimeClass says. */
#include "support/dvtest.h"

#include "cluster/tests/test_cluster_fixture.h"
#include "resource/resource.h"

#define POD(name, spec)                                                                            \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec                                        \
    "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"

static int start_with_accounts(void **state)
{
    struct fixture *fixture;

    (void)start_without_api(state);
    fixture = *state;
    fixture->options.has_accounts = true;
    open_api(fixture);
    return 0;
}

static int start_with_workers(void **state)
{
    struct fixture *fixture;

    (void)start_without_api(state);
    fixture = *state;
    fixture->options.has_accounts = true;
    fixture->options.worker_bytes = 1;
    open_api(fixture);
    return 0;
}

static const struct dv_api_pod *pod_of(struct reply reply)
{
    return must(reply)->value;
}

static void pods_get_the_account_that_they_name(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_api_pod *pod;

    (void)must(create(fixture, DV_KIND_SERVICE_ACCOUNT, "default",
                      "{\"metadata\":{\"name\":\"quiet\"},\"automountServiceAccountToken\":false,"
                      "\"imagePullSecrets\":[{\"name\":\"reg\"}]}"));
    pod = pod_of(
        create(fixture, DV_KIND_POD, "default", POD("p1", "\"serviceAccountName\":\"quiet\",")));
    assert_int_equal(pod->spec.n_volumes, 0);
    assert_str(pod->spec.image_pull_secrets[0].name, "reg");
    /* the default one is about to be made */
    pod = pod_of(create(fixture, DV_KIND_POD, "default", POD("p2", "")));
    assert_str(pod->spec.service_account_name, "default");
    assert_int_equal(pod->spec.n_volumes, 1);
    assert_true(dv_str_starts_with(pod->spec.volumes[0].name, DV_STR("kube-api-access-")));
    assert_str(pod->spec.containers[0].volume_mounts[0].name,
               dv_str_to_c(pod->spec.volumes[0].name, fixture->arena));
    must_fail(
        create(fixture, DV_KIND_POD, "default", POD("p3", "\"serviceAccountName\":\"nope\",")), 403,
        "Forbidden",
        "pods \"p3\" is forbidden: error looking up service account default/nope: "
        "serviceaccount \"nope\" not found");
}

/* What the server adds belongs to no manager: who applies the same again takes nothing away. */
static void the_volume_is_nobodys(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_api_pod *pod;

    (void)must(patch(fixture, DV_KIND_POD, "default", "p", DV_PATCH_APPLY,
                     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},"
                     "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"));
    pod = pod_of(patch(fixture, DV_KIND_POD, "default", "p", DV_PATCH_APPLY,
                       "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},"
                       "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"));
    assert_int_equal(pod->spec.n_volumes, 1);
    assert_int_equal(pod->spec.containers[0].n_volume_mounts, 1);
}

static void mirror_pods_get_nothing(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_api_pod *pod = pod_of(
        create(fixture, DV_KIND_POD, "default",
               "{\"metadata\":{\"name\":\"m\",\"annotations\":{\"kubernetes.io/config.mirror\":"
               "\"x\"}},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\",\"image\":"
               "\"i\"}]}}"));

    assert_int_equal(pod->spec.n_volumes, 0);
    assert_str(pod->spec.service_account_name, "");
    must_fail(create(fixture, DV_KIND_POD, "default",
                     "{\"metadata\":{\"name\":\"m2\",\"annotations\":{"
                     "\"kubernetes.io/config.mirror\":\"x\"}},\"spec\":{\"nodeName\":\"n\","
                     "\"serviceAccountName\":\"default\",\"containers\":[{\"name\":\"c\","
                     "\"image\":\"i\"}]}}"),
              403, "Forbidden",
              "pods \"m2\" is forbidden: a mirror pod may not reference service accounts");
}

/* A large pod is computed on a worker. */
static void large_pods_get_them_too(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_api_pod *pod = pod_of(create(fixture, DV_KIND_POD, "default", POD("p", "")));

    assert_int_equal(pod->spec.n_volumes, 1);
}

/* A class is looked up when a pod is made, also by a worker for a large one. */
static void pods_get_what_their_class_says(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_api_pod *pod;

    must_fail(create(fixture, DV_KIND_POD, "default", POD("p", "\"runtimeClassName\":\"kata\",")),
              403, "Forbidden",
              "pods \"p\" is forbidden: pod rejected: RuntimeClass \"kata\" not found");
    must_fail(create(fixture, DV_KIND_POD, "default", POD("p", "\"runtimeClassName\":\"\",")), 403,
              "Forbidden", "pods \"p\" is forbidden: pod rejected: RuntimeClass \"\" not found");
    (void)must(create(fixture, DV_KIND_RUNTIME_CLASS, "",
                      "{\"metadata\":{\"name\":\"kata\"},\"handler\":\"qemu\",\"overhead\":{"
                      "\"podFixed\":{\"cpu\":\"250m\"}},\"scheduling\":{\"nodeSelector\":{"
                      "\"a\":\"b\"}}}"));
    pod =
        pod_of(create(fixture, DV_KIND_POD, "default", POD("p", "\"runtimeClassName\":\"kata\",")));
    assert_int_equal(pod->spec.n_overhead, 1);
    assert_str(pod->spec.node_selector[0].value, "b");
    must_fail(create(fixture, DV_KIND_POD, "default",
                     POD("q", "\"runtimeClassName\":\"kata\",\"nodeSelector\":{\"a\":\"c\"},")),
              403, "Forbidden",
              "pods \"q\" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[a] = b; "
              "pod.spec.nodeSelector[a] = c");
    must_fail(create(fixture, DV_KIND_POD, "default", POD("q", "\"overhead\":{\"cpu\":\"1\"},")),
              403, "Forbidden",
              "pods \"q\" is forbidden: pod rejected: Pod Overhead set without corresponding "
              "RuntimeClass defined Overhead");
    /* one that is there already is told as such */
    must_fail(create(fixture, DV_KIND_POD, "default", POD("p", "\"runtimeClassName\":\"none\",")),
              409, "AlreadyExists", NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pods_get_the_account_that_they_name, start_with_accounts,
                                        end),
        cmocka_unit_test_setup_teardown(the_volume_is_nobodys, start_with_accounts, end),
        cmocka_unit_test_setup_teardown(mirror_pods_get_nothing, start_with_accounts, end),
        cmocka_unit_test_setup_teardown(large_pods_get_them_too, start_with_workers, end),
        cmocka_unit_test_setup_teardown(pods_get_what_their_class_says, start, end),
        cmocka_unit_test_setup_teardown(pods_get_what_their_class_says, start_with_workers, end),
    };

    return cmocka_run_group_tests_name("cluster_accounts", tests, NULL, NULL);
}

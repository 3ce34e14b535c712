#include "proto/cri_v1.pb-c.h"
#include "test_workload.h"
#include "workload/life.h"
#include "workload/life/life_state.h"

static char *text(const char *c)
{
    return (char *)(uintptr_t)dv_str_to_c(dv_str_from_c(c), arena); /* protobuf's are not const */
}

static void a_containers_status_is_read(void **state)
{
    CriV1__ContainerMetadata metadata = CRI_V1__CONTAINER_METADATA__INIT;
    CriV1__ImageSpec image = CRI_V1__IMAGE_SPEC__INIT;
    CriV1__ContainerStatus__AnnotationsEntry count =
        CRI_V1__CONTAINER_STATUS__ANNOTATIONS_ENTRY__INIT;
    CriV1__ContainerStatus__AnnotationsEntry hash =
        CRI_V1__CONTAINER_STATUS__ANNOTATIONS_ENTRY__INIT;
    CriV1__ContainerStatus__AnnotationsEntry *annotations[] = {&count, &hash};
    CriV1__LinuxContainerUser linux_user = CRI_V1__LINUX_CONTAINER_USER__INIT;
    CriV1__ContainerUser user = CRI_V1__CONTAINER_USER__INIT;
    CriV1__ContainerStatus status = CRI_V1__CONTAINER_STATUS__INIT;
    struct dv_life_container read;

    (void)state;
    metadata.name = text("c");
    image.image = text("docker.io/library/busybox:1");
    count.key = text("io.kubernetes.container.restartCount");
    count.value = text("3");
    hash.key = text("io.kubernetes.container.hash");
    hash.value = text("8e45cbd0");
    linux_user.uid = 7;
    user.linux = &linux_user;
    status.id = text("abc");
    status.metadata = &metadata;
    status.state = CRI_V1__CONTAINER_STATE__CONTAINER_EXITED;
    status.created_at = 1;
    status.started_at = 2;
    status.finished_at = 3;
    status.exit_code = 137;
    status.image = &image;
    status.image_id = text("sha256:1");
    status.reason = text("OOMKilled");
    status.annotations = annotations;
    status.n_annotations = 2;
    status.user = &user;
    dv_life_read_container(&status, arena, &read);
    assert_str(read.name, "c");
    assert_str(read.id, "abc");
    assert_int_equal(read.state, DV_LIFE_EXITED);
    assert_int_equal(read.restart_count, 3);
    assert_true(read.has_hash);
    assert_int_equal(read.hash, 0x8e45cbd0);
    assert_int_equal(read.exit_code, 137);
    assert_str(read.reason, "OOMKilled");
    assert_str(read.image_id, "sha256:1");
    assert_int_equal(read.user->linux_->uid, 7);
    status.image_ref = text("docker.io/library/busybox@sha256:2");
    status.state = (CriV1__ContainerState)77;
    status.n_annotations = 0;
    status.metadata = NULL;
    status.user = NULL;
    dv_life_read_container(&status, arena, &read);
    assert_str(read.image_id, "docker.io/library/busybox@sha256:2");
    assert_int_equal(read.state, DV_LIFE_UNKNOWN);
    assert_false(read.has_hash);
    assert_str(read.name, "");
    assert_null(read.user);
}

static void a_sandboxs_status_is_read(void **state)
{
    CriV1__PodSandboxMetadata metadata = CRI_V1__POD_SANDBOX_METADATA__INIT;
    CriV1__PodIP second = CRI_V1__POD_IP__INIT;
    CriV1__PodIP *more[] = {&second};
    CriV1__PodSandboxNetworkStatus network = CRI_V1__POD_SANDBOX_NETWORK_STATUS__INIT;
    CriV1__NamespaceOption options = CRI_V1__NAMESPACE_OPTION__INIT;
    CriV1__Namespace namespaces = CRI_V1__NAMESPACE__INIT;
    CriV1__LinuxPodSandboxStatus own = CRI_V1__LINUX_POD_SANDBOX_STATUS__INIT;
    CriV1__PodSandboxStatus status = CRI_V1__POD_SANDBOX_STATUS__INIT;
    struct dv_life_sandbox read;

    (void)state;
    metadata.attempt = 2;
    second.ip = text("fd00::5");
    network.ip = text("10.1.0.5");
    network.additional_ips = more;
    network.n_additional_ips = 1;
    options.network = CRI_V1__NAMESPACE_MODE__NODE;
    namespaces.options = &options;
    own.namespaces = &namespaces;
    status.id = text("s");
    status.metadata = &metadata;
    status.network = &network;
    status.linux = &own;
    dv_life_read_sandbox(&status, arena, &read);
    assert_int_equal(read.attempt, 2);
    assert_true(read.is_ready);
    assert_true(read.has_host_network);
    assert_true(read.has_status);
    assert_int_equal(read.ips.n, 2);
    assert_str(read.ips.v[1], "fd00::5");
    status.network = NULL;
    status.linux = NULL;
    status.state = CRI_V1__POD_SANDBOX_STATE__SANDBOX_NOTREADY;
    dv_life_read_sandbox(&status, arena, &read);
    assert_false(read.is_ready);
    assert_false(read.has_status);
    assert_int_equal(read.ips.n, 0);
}

static void times_tell_which_sandbox_a_container_is_in(void **state)
{
    static const struct dv_life_sandbox sandboxes[] = {
        {.id = DV_STR_INIT("old"), .created_ns = 10},
        { .id = DV_STR_INIT("new"), .attempt = 1,        .created_ns = 50, .is_ready = true},
    };
    static const struct dv_life_container containers[] = {
        {.name = DV_STR_INIT("c"), .id = DV_STR_INIT("1"), .created_ns = 20},
        {                        .name = DV_STR_INIT("c"),  .id = DV_STR_INIT("2"),       .created_ns = 60                },
        { .name = DV_STR_INIT("c"),
         .id = DV_STR_INIT("3"),
         .created_ns = 70,
         .sandbox_id = DV_STR_INIT("old")},
    };
    struct dv_life_view view = {sandboxes, 2, containers, 3};

    (void)state;
    assert_true(dv_life_is_in_sandbox(&view, &containers[0], &sandboxes[0]));
    assert_false(dv_life_is_in_sandbox(&view, &containers[0], &sandboxes[1]));
    assert_true(dv_life_is_in_sandbox(&view, &containers[1], &sandboxes[1]));
    assert_true(dv_life_is_in_sandbox(&view, &containers[2], &sandboxes[0]));
    assert_ptr_equal(dv_life_newest_sandbox(&view), &sandboxes[1]);
    assert_ptr_equal(dv_life_newest(&view, DV_STR("c")), &containers[2]);
    assert_ptr_equal(dv_life_older(&view, &containers[2]), &containers[1]);
    assert_null(dv_life_older(&view, &containers[0]));
}

static void a_new_sandbox_is_needed_when_the_newest_cannot_be_used(void **state)
{
    static dv_str ips[] = {DV_STR_INIT("10.1.0.5")};
    static const struct {
        struct dv_life_sandbox sandboxes[2];
        size_t n;
        bool is_needed;
        uint32_t attempt;
    } cases[] = {
        {{{.id = DV_STR_INIT("")}},                                                            0, true,  0},
        {{{.id = DV_STR_INIT("a"), .is_ready = true, .has_status = true, .ips = {ips, 1}}},
         1,                                                                                       false,
         0                                                                                                },
        {{{.id = DV_STR_INIT("a"), .is_ready = true}},                                         1, false, 0}, /* only listed so far */
        {{{.id = DV_STR_INIT("a"), .attempt = 4}},                                             1, true,  5},
        {{{.id = DV_STR_INIT("a"), .is_ready = true, .has_status = true}},                     1, true,  1},
        {{{.id = DV_STR_INIT("a"),
           .is_ready = true,
           .has_status = true,
           .has_host_network = true,
           .ips = {ips, 1}}},
         1,                                                                                       true,
         1                                                                                                },
        {{{.id = DV_STR_INIT("a"), .is_ready = true, .ips = {ips, 1}},
          {.id = DV_STR_INIT("b"), .attempt = 1, .is_ready = true, .ips = {ips, 1}}},
         2,                                                                                       true,
         2                                                                                                },
        {{{.id = DV_STR_INIT("a"), .is_ready = true, .ips = {ips, 1}},
          {.id = DV_STR_INIT("b"), .attempt = 1}},
         2,                                                                                       true,
         2                                                                                                },
    };
    struct dv_api_pod pod = {0};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_life_view view = {cases[i].sandboxes, cases[i].n, NULL, 0};
        uint32_t attempt;
        dv_str id;

        assert_int_equal(dv_life_needs_sandbox(&pod, &view, &attempt, &id), cases[i].is_needed);
        assert_int_equal(attempt, cases[i].attempt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(a_containers_status_is_read),
        doc_test(a_sandboxs_status_is_read),
        doc_test(times_tell_which_sandbox_a_container_is_in),
        doc_test(a_new_sandbox_is_needed_when_the_newest_cannot_be_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

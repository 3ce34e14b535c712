/* test_config_container.c - what a runtime is told of one container. */
#include "workload/tests/test_config.h"

#define RESOURCES(text) "containers: [{name: c, image: x, resources: {" text "}}]"

static void a_plain_container_has_its_names(void **state)
{
    struct test_setting *setting =
        test_setting("containers: [{name: c, image: 'busybox:1', workingDir: /w, stdin: true, "
                     "stdinOnce: true, tty: true, command: [a], args: [b, c]}]");
    CriV1__ContainerConfig *config;

    (void)state;
    setting->input.attempt = 2;
    config = test_make(setting);
    assert_string_equal(config->metadata->name, "c");
    assert_int_equal(config->metadata->attempt, 2);
    assert_string_equal(config->image->image, "sha256:1");
    assert_string_equal(config->image->user_specified_image, "busybox:1");
    assert_string_equal(config->working_dir, "/w");
    assert_string_equal(config->log_path, "c/2.log");
    assert_string_equal(test_join(config->command, config->n_command), "a");
    assert_string_equal(test_join(config->args, config->n_args), "b c");
    assert_true(config->stdin && config->stdin_once && config->tty);
    assert_int_equal(config->n_labels, 4);
    assert_string_equal(config->labels[0]->key, "io.kubernetes.container.name");
    assert_string_equal(config->labels[0]->value, "c");
}

static void cpus_are_shares_and_a_quota(void **state)
{
    static const struct {
        const char *spec;
        int64_t shares;
        int64_t quota;
        int64_t memory;
    } cases[] = {
        {RESOURCES("requests: {cpu: 100m}, limits: {cpu: 200m}"),                      102,    20000,     0         },
        {RESOURCES(""),                                                                2,      0,         0         },
        {RESOURCES("requests: {cpu: 0}, limits: {cpu: 2}"),                            2,      200000,    0         },
        {RESOURCES("requests: {cpu: 1m}"),                                             2,      0,         0         },
        {RESOURCES("limits: {cpu: 5m}"),                                               5,      1000,      0         },
        {RESOURCES("requests: {cpu: 300}"),                                            262144, 0,         0         },
        {RESOURCES("requests: {cpu: 9E}, limits: {cpu: 9E}"),                          262144, INT64_MAX, 0         },
        {RESOURCES("limits: {memory: 1.5Gi}"),                                         2,      0,         1610612736},
        {"resources: {limits: {cpu: 3, memory: 1Gi}}, " RESOURCES(""),                 3072,   300000,    1 << 30   },
        {"resources: {limits: {cpu: 3, memory: 1Gi}}, " RESOURCES("limits: {cpu: 1}"), 1024,   100000,
         1 << 30                                                                                                    },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const CriV1__LinuxContainerResources *resources =
            test_make(test_setting(cases[i].spec))->linux->resources;

        assert_int_equal(resources->cpu_shares, cases[i].shares);
        assert_int_equal(resources->cpu_quota, cases[i].quota);
        assert_int_equal(resources->cpu_period, 100000);
        assert_int_equal(resources->memory_limit_in_bytes, cases[i].memory);
        assert_int_equal(resources->memory_swap_limit_in_bytes, 0);
    }
}

#define SIDECAR                                                                                    \
    "initContainers: [{name: s, image: x, restartPolicy: Always, resources: {requests: {memory: "  \
    "1Gi}}}, {name: i, image: x, resources: {requests: {memory: 1Gi}}}], containers: [{name: c, "  \
    "image: x, resources: {requests: {memory: 4Gi}}}, {name: d, image: x, resources: {requests: "  \
    "{memory: 2Gi}}}]"

static void the_kernel_kills_by_what_was_asked_for(void **state)
{
    static const struct {
        const char *spec;
        const char *container;
        int64_t want; /* of 8 GiB */
    } cases[] = {
        {RESOURCES("limits: {cpu: 1, memory: 1Gi}"),                   "c", -997},
        {RESOURCES(""),                                                "c", 1000},
        {RESOURCES("requests: {memory: 4Gi}"),                         "c", 500 },
        {RESOURCES("requests: {memory: 1}"),                           "c", 999 },
        {RESOURCES("requests: {cpu: 1}"),                              "c", 999 },
        {RESOURCES("requests: {memory: 8Gi}"),                         "c", 3   },
        {RESOURCES("requests: {memory: 99999Pi}"),                     "c", 3   },
        {"priorityClassName: system-node-critical, " RESOURCES(""),    "c", -997},
        {"priorityClassName: system-cluster-critical, " RESOURCES(""), "c", 1000},
        {SIDECAR,                                                      "s", 750 },
        {SIDECAR,                                                      "i", 875 },
        {SIDECAR,                                                      "d", 750 },
 /* 2 GiB of the pod's own, for two containers. */
        {"resources: {requests: {memory: 4Gi}}, initContainers: [{name: i, image: x}], " RESOURCES(
             "requests: {memory: 2Gi}"),
         "c",                                                               625 },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct test_setting *setting = test_setting(cases[i].spec);

        test_use(setting, cases[i].container);
        assert_int_equal(test_make(setting)->linux->resources->oom_score_adj, cases[i].want);
    }
}

static void huge_pages_are_limited(void **state)
{
    static const struct {
        const char *spec;
        uint64_t limits[2]; /* of 2MB, 1GB */
    } cases[] = {
        {RESOURCES(""),                                                               {0, 0}      },
        {RESOURCES("limits: {hugepages-2Mi: 4Mi, cpu: 1, memory: 1Gi}"),              {4 << 20, 0}},
        {RESOURCES("limits: {hugepages-1Gi: 2Gi, hugepages-64Ki: 1Mi, memory: 1Gi}"),
         {0, 1ull << 31}                                                                          },
        {"resources: {limits: {hugepages-2Mi: 8Mi, memory: 1Gi}}, " RESOURCES(""),    {8 << 20, 0}},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const CriV1__LinuxContainerResources *resources =
            test_make(test_setting(cases[i].spec))->linux->resources;

        assert_int_equal(resources->n_hugepage_limits, 2);
        assert_string_equal(resources->hugepage_limits[0]->page_size, "2MB");
        assert_int_equal(resources->hugepage_limits[0]->limit, cases[i].limits[0]);
        assert_int_equal(resources->hugepage_limits[1]->limit, cases[i].limits[1]);
    }
}

static void no_container_swaps(void **state)
{
    struct test_setting *setting = test_setting(RESOURCES("limits: {memory: 1Gi}"));
    const CriV1__LinuxContainerResources *resources = test_make(setting)->linux->resources;

    (void)state;
    assert_int_equal(resources->n_unified, 1);
    assert_string_equal(resources->unified[0]->key, "memory.oom.group");
    assert_string_equal(resources->unified[0]->value, "1");
    setting->node.has_swap_controller = true;
    resources = test_make(setting)->linux->resources;
    assert_int_equal(resources->n_unified, 2);
    assert_string_equal(resources->unified[1]->key, "memory.swap.max");
    setting->node.cgroup_version = 1;
    resources = test_make(setting)->linux->resources;
    assert_int_equal(resources->n_unified, 0);
    assert_int_equal(resources->memory_swap_limit_in_bytes, 1 << 30);
}

static void what_plugins_and_claims_gave_is_in_its_place(void **state)
{
    static const struct dv_workload_given_mount mounts[] = {
        {DV_STR_INIT("/opt/a"), DV_STR_INIT("/h/a"), true},
    };
    static const struct dv_workload_device devices[] = {
        {DV_STR_INIT("/dev/a"), DV_STR_INIT("/dev/null"), DV_STR_INIT("mrw")},
    };
    static const struct dv_str_entry annotations[] = {
        {DV_STR_INIT("io.kubernetes.container.restartCount"), DV_STR_INIT("77")},
        {DV_STR_INIT("vendor/a"),                             DV_STR_INIT("x") },
    };
    static const dv_str names[] = {DV_STR_INIT("claim.example/c=0"), DV_STR_INIT("v.example/d=1")};
    static const struct dv_workload_given given = {
        .mounts = mounts,
        .n_mounts = 1,
        .devices = devices,
        .n_devices = 1,
        .annotations = annotations,
        .n_annotations = 2,
        .cdi_names = names,
        .n_cdi_names = 2,
    };
    struct test_setting *setting =
        test_setting("volumes: [{name: e, emptyDir: {}}], containers: [{name: c, image: x, "
                     "volumeMounts: [{name: e, mountPath: /data}]}]");
    CriV1__ContainerConfig *config;

    (void)state;
    setting->input.given = &given;
    config = test_make(setting);
    assert_int_equal(config->n_mounts, 4);
    assert_string_equal(config->mounts[0]->container_path, "/opt/a");
    assert_true(config->mounts[0]->readonly);
    assert_string_equal(config->mounts[1]->container_path, "/data");
    assert_string_equal(config->mounts[2]->container_path, "/etc/hosts");
    assert_string_equal(config->mounts[2]->host_path,
                        "/var/lib/kubelet/pods/" TEST_UID "/etc-hosts");
    assert_string_equal(config->mounts[3]->container_path, "/dev/termination-log");
    assert_string_equal(config->mounts[3]->host_path, "/log");
    assert_int_equal(config->n_devices, 1);
    assert_string_equal(config->devices[0]->host_path, "/dev/null");
    assert_string_equal(config->devices[0]->permissions, "mrw");
    assert_int_equal(config->n_cdi_devices, 2);
    assert_string_equal(config->cdi_devices[0]->name, "claim.example/c=0");
    assert_string_equal(config->cdi_devices[1]->name, "v.example/d=1");
    assert_string_equal(test_annotation(config, "vendor/a"), "x");
    assert_string_equal(test_annotation(config, "io.kubernetes.container.restartCount"), "0");
}

static void mounts_are_as_the_pod_says(void **state)
{
    struct test_setting *setting = test_setting(
        "volumes: [{name: a, emptyDir: {}}, {name: b, image: {reference: 'r:1'}}], containers: "
        "[{name: c, image: x, terminationMessagePath: end/../last, volumeMounts: [{name: a, "
        "mountPath: rel/x, readOnly: true, recursiveReadOnly: IfPossible}, {name: a, mountPath: "
        "/etc/hosts, mountPropagation: HostToContainer}, {name: b, mountPath: /img, subPath: "
        "d}]}]");
    static const struct dv_workload_handler handlers[] = {{.has_recursive_read_only = true}};
    CriV1__ContainerConfig *config;

    (void)state;
    setting->mounts[1].is_relabeled = true;
    setting->mounts[2] = (struct dv_workload_mount){
        .is_read_only = true, .image = DV_STR("sha256:9"), .image_reference = DV_STR("r:1")};
    setting->node.has_selinux = true;
    setting->node.handlers = handlers;
    setting->node.n_handlers = 1;
    config = test_make(setting);
    assert_int_equal(config->n_mounts, 4); /* the pod's own hosts file is not there */
    assert_string_equal(config->mounts[0]->container_path, "/rel/x");
    assert_string_equal(config->mounts[0]->host_path, "/host/0");
    assert_true(config->mounts[0]->readonly && config->mounts[0]->recursive_read_only);
    assert_false(config->mounts[0]->selinux_relabel);
    assert_string_equal(config->mounts[1]->container_path, "/etc/hosts");
    assert_true(config->mounts[1]->selinux_relabel);
    assert_int_equal(config->mounts[1]->propagation,
                     CRI_V1__MOUNT_PROPAGATION__PROPAGATION_HOST_TO_CONTAINER);
    assert_string_equal(config->mounts[2]->host_path, "");
    assert_string_equal(config->mounts[2]->image->image, "sha256:9");
    assert_string_equal(config->mounts[2]->image->user_specified_image, "r:1");
    assert_string_equal(config->mounts[2]->image_sub_path, "d");
    assert_true(config->mounts[2]->readonly);
    assert_string_equal(config->mounts[3]->container_path, "/last");
    setting->pod.ips.n = 0;
    assert_int_equal(test_make(setting)->n_mounts, 4);
}

static void annotations_tell_how_to_stop_a_container(void **state)
{
    struct test_setting *setting = test_setting(
        "terminationGracePeriodSeconds: 7, containers: [{name: c, image: x, ports: "
        "[{containerPort: "
        "80, name: web}], lifecycle: {preStop: {exec: {command: [sh, -c, 'a < b']}}}}]");
    struct dv_api_pod copy = *setting->pod.pod;
    const int64_t deletion_s = 3;
    struct dv_str_entry entries[10];
    struct dv_config_memo memo;
    CriV1__ContainerConfig *config;

    (void)state;
    copy.metadata.deletion_grace_period_seconds = &deletion_s;
    setting->pod.pod = &copy;
    setting->input.attempt = 5;
    config = test_make(setting);
    assert_int_equal(config->n_annotations, 8);
    assert_string_equal(test_annotation(config, "io.kubernetes.container.terminationMessagePath"),
                        "/dev/termination-log");
    assert_string_equal(test_annotation(config, "io.kubernetes.container.terminationMessagePolicy"),
                        "File");
    assert_string_equal(test_annotation(config, "io.kubernetes.pod.terminationGracePeriod"), "7");
    assert_string_equal(test_annotation(config, "io.kubernetes.pod.deletionGracePeriod"), "3");
    assert_string_equal(test_annotation(config, "io.kubernetes.container.preStopHandler"),
                        "{\"exec\":{\"command\":[\"sh\",\"-c\",\"a \\u003c b\"]}}");
    assert_string_equal(test_annotation(config, "io.kubernetes.container.ports"),
                        "[{\"name\":\"web\",\"containerPort\":80,\"protocol\":\"TCP\"}]");

    for (size_t i = 0; i < config->n_annotations; i++)
        entries[i] = (struct dv_str_entry){dv_str_from_c(config->annotations[i]->key),
                                           dv_str_from_c(config->annotations[i]->value)};
    dv_config_read_annotations(entries, config->n_annotations, arena, &memo);
    assert_true(memo.has_hash);
    assert_int_equal(memo.hash, dv_config_hash(setting->input.container));
    assert_int_equal(memo.restart_count, 5);
    assert_int_equal(memo.grace_period_s, 3);
    assert_str(memo.termination_message_path, "/dev/termination-log");
    assert_non_null(memo.pre_stop);
    assert_str(memo.pre_stop->exec->command[2], "a < b");
    assert_int_equal(memo.n_ports, 1);
    assert_int_equal(memo.ports[0].container_port, 80);
}

static void what_cannot_be_read_back_is_absent(void **state)
{
    static const struct dv_str_entry entries[] = {
        {DV_STR_INIT("io.kubernetes.container.hash"),             DV_STR_INIT("xyz") },
        {DV_STR_INIT("io.kubernetes.container.restartCount"),     DV_STR_INIT("-1")  },
        {DV_STR_INIT("io.kubernetes.container.preStopHandler"),   DV_STR_INIT("{")   },
        {DV_STR_INIT("io.kubernetes.container.ports"),            DV_STR_INIT("[1]") },
        {DV_STR_INIT("io.kubernetes.pod.deletionGracePeriod"),    DV_STR_INIT("soon")},
        {DV_STR_INIT("io.kubernetes.pod.terminationGracePeriod"), DV_STR_INIT("9")   },
    };
    struct dv_config_memo memo;

    (void)state;
    dv_config_read_annotations(entries, DV_COUNT(entries), arena, &memo);
    assert_false(memo.has_hash);
    assert_int_equal(memo.restart_count, 0);
    assert_int_equal(memo.grace_period_s, 9);
    assert_null(memo.pre_stop);
    assert_int_equal(memo.n_ports, 0);
}

static void the_hash_is_the_kubelets(void **state)
{
    static const struct {
        const char *name;
        const char *image;
        uint32_t want;
    } cases[] = {
        {"test_container", "foo/image:v1",              0x8e45cbd0},
        {"c",              "docker.io/local/busybox:1", 0x66425934},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_api_container container = {.name = dv_str_from_c(cases[i].name),
                                             .image = dv_str_from_c(cases[i].image)};

        assert_int_equal(dv_config_hash(&container), cases[i].want);
    }
}

static void images_are_asked_for_with_a_tag(void **state)
{
    static const struct {
        const char *image;
        const char *want; /* NULL: it is refused */
    } cases[] = {
        {"busybox",                                                                         "busybox:latest"           },
        {"r.example:5000/a/b",                                                              "r.example:5000/a/b:latest"},
        {"busybox:1",                                                                       "busybox:1"                },
        {"busybox@sha256:0123456789012345678901234567890123456789012345678901234567890123",
         "busybox@sha256:0123456789012345678901234567890123456789012345678901234567890123"                             },
        {"a b",                                                                             NULL                       },
    };
    struct dv_err err;
    dv_str image;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str reference = dv_str_from_c(cases[i].image);

        if (cases[i].want) {
            assert_ok(dv_config_image(reference, arena, &image, &err), &err);
            assert_str(image, cases[i].want);
        } else {
            assert_false(dv_config_image(reference, arena, &image, &err));
            assert_string_equal(err.msg,
                                "Failed to apply default image tag \"a b\": couldn't parse "
                                "image name \"a b\": invalid reference format");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(a_plain_container_has_its_names),
        doc_test(cpus_are_shares_and_a_quota),
        doc_test(the_kernel_kills_by_what_was_asked_for),
        doc_test(huge_pages_are_limited),
        doc_test(no_container_swaps),
        doc_test(what_plugins_and_claims_gave_is_in_its_place),
        doc_test(mounts_are_as_the_pod_says),
        doc_test(annotations_tell_how_to_stop_a_container),
        doc_test(what_cannot_be_read_back_is_absent),
        doc_test(the_hash_is_the_kubelets),
        doc_test(images_are_asked_for_with_a_tag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

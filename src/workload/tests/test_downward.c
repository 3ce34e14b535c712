#include "workload/downward.h"

#include "workload/tests/test_workload.h"

#define TWO_CONTAINERS                                                                             \
    "initContainers: [{name: i, image: x, resources: {limits: {cpu: 100m}}}],"                     \
    "containers: [{name: a, image: x, resources: {requests: {cpu: 250m, memory: 10M,"              \
    " hugepages-2Mi: 4Mi}, limits: {cpu: 1500m, memory: 100Mi, hugepages-2Mi: 4Mi}}},"             \
    " {name: b, image: x}]"

static void a_variable_has_the_value_of_a_field(void **state)
{
    static const struct {
        const char *path;
        const char *want;
    } cases[] = {
        {"metadata.name",                                       "p"                  },
        {"metadata.namespace",                                  "ns"                 },
        {"metadata.uid",                                        TEST_UID             },
        {"metadata.labels['app']",                              "web"                },
        {"metadata.labels['none']",                             ""                   },
        {"metadata.annotations['note']",                        "hello"              },
        {"metadata.annotations['kubernetes.io/config.source']", "api"                },
        {"metadata.labels",                                     "app=\"web\""        },
        {"spec.nodeName",                                       "node-1"             },
        {"spec.host",                                           "node-1"             },
        {"spec.serviceAccountName",                             "robot"              },
        {"status.hostIP",                                       "192.168.7.1"        },
        {"status.hostIPs",                                      "192.168.7.1,fd00::7"},
        {"status.podIP",                                        "10.1.0.5"           },
        {"status.podIPs",                                       "10.1.0.5"           },
    };
    struct dv_workload_node node = test_node();
    struct dv_workload_pod pod = test_pod("serviceAccountName: robot, " TWO_CONTAINERS);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_api_object_field_selector field = {.api_version = DV_STR("v1"),
                                                     .field_path = dv_str_from_c(cases[i].path)};
        struct dv_err err;
        dv_str value;

        assert_ok(dv_downward_env(&node, &pod, &field, arena, &value, &err), &err);
        assert_str(value, cases[i].want);
    }
}

static void the_nodes_family_of_addresses_comes_first(void **state)
{
    static dv_str node_v6[] = {DV_STR_INIT("fd00::7")};
    static dv_str ips[] = {DV_STR_INIT("10.1.0.5"), DV_STR_INIT("10.1.0.6"),
                           DV_STR_INIT("fd00::5")};
    struct dv_workload_node node = test_node();
    struct dv_workload_pod pod = test_pod(TWO_CONTAINERS);
    struct dv_api_object_field_selector field = {.field_path = DV_STR("status.podIPs")};
    struct dv_err err;
    dv_str value;

    (void)state;
    pod.ips = (struct dv_strs){ips, 3};
    assert_ok(dv_downward_env(&node, &pod, &field, arena, &value, &err), &err);
    assert_str(value, "10.1.0.5,fd00::5");
    node.host_ips = (struct dv_strs){node_v6, 1};
    assert_ok(dv_downward_env(&node, &pod, &field, arena, &value, &err), &err);
    assert_str(value, "fd00::5,10.1.0.5");
}

static void refuses_fields_that_there_are_not(void **state)
{
    static const struct {
        const char *version;
        const char *path;
        const char *want;
    } cases[] = {
        {"v2", "metadata.name",             "unsupported pod version: v2"                       },
        {"v1", "metadata.color",            "field label not supported: metadata.color"         },
        {"v1", "status.phase",              "unsupported fieldPath: status.phase"               },
        {"v1", "spec.nodeName['a']",        "field label does not support subscript"            },
        {"v1", "metadata.labels['a b']",    "invalid key subscript in metadata.labels['a b']"   },
        {"v1", "metadata.annotations['-']", "invalid key subscript in metadata.annotations['-']"},
        {"v1", "",                          "field label not supported: "                       },
        {"v1", "']",                        "field label not supported: "                       },
        {"v1", "['']",                      "field label not supported: "                       },
        {"v1", "a['",                       "field label not supported: "                       },
    };
    struct dv_workload_node node = test_node();
    struct dv_workload_pod pod = test_pod(TWO_CONTAINERS);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_api_object_field_selector field = {.api_version = dv_str_from_c(cases[i].version),
                                                     .field_path = dv_str_from_c(cases[i].path)};
        struct dv_err err;
        dv_str value;

        assert_false(dv_downward_env(&node, &pod, &field, arena, &value, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, cases[i].want);
    }
}

static void a_file_has_whole_maps_in_lines(void **state)
{
    struct dv_workload_pod pod = test_pod(TWO_CONTAINERS);
    struct dv_api_object_field_selector labels = {.field_path = DV_STR("metadata.labels")};
    struct dv_api_object_field_selector annotations = {.field_path =
                                                           DV_STR("metadata.annotations")};
    struct dv_api_object_field_selector node_name = {.field_path = DV_STR("spec.nodeName")};
    struct dv_api_pod copy = *pod.pod;
    struct dv_str_entry entries[] = {
        {DV_STR("a"), DV_STR("multi\nline")  },
        {DV_STR("b"), DV_STR("quote\"d\ttab")},
    };
    struct dv_err err;
    dv_str value;

    (void)state;
    copy.metadata.labels = entries;
    copy.metadata.n_labels = DV_COUNT(entries);
    pod.pod = &copy;
    assert_ok(dv_downward_file(&pod, &labels, arena, &value, &err), &err);
    assert_str(value, "a=\"multi\\nline\"\nb=\"quote\\\"d\\ttab\"");
    assert_ok(dv_downward_file(&pod, &annotations, arena, &value, &err), &err);
    assert_str(value, "kubernetes.io/config.seen=\"2026-01-02T03:04:05Z\"\n"
                      "kubernetes.io/config.source=\"api\"\nnote=\"hello\"");
    assert_false(dv_downward_file(&pod, &node_name, arena, &value, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "unsupported fieldPath: spec.nodeName");
}

static void amounts_are_divided_and_rounded_up(void **state)
{
    static const struct {
        const char *container; /* "": the own one, which is a */
        const char *resource;
        const char *divisor;
        const char *want;
    } cases[] = {
        {"",  "limits.cpu",                 "0",    "2"        },
        {"",  "limits.cpu",                 "1m",   "1500"     },
        {"",  "limits.cpu",                 "1",    "2"        },
        {"",  "requests.cpu",               "1m",   "250"      },
        {"",  "requests.cpu",               "100m", "3"        },
        {"",  "limits.memory",              "0",    "104857600"},
        {"",  "limits.memory",              "1Mi",  "100"      },
        {"",  "requests.memory",            "1Mi",  "10"       },
        {"",  "limits.memory",              "1Gi",  "1"        },
        {"",  "requests.hugepages-2Mi",     "1Mi",  "4"        },
        {"",  "limits.ephemeral-storage",   "1Gi",  "100"      },
        {"",  "requests.ephemeral-storage", "1Gi",  "0"        },
        {"b", "limits.cpu",                 "0",    "4"        },
        {"b", "limits.memory",              "1Gi",  "8"        },
        {"b", "requests.memory",            "1Gi",  "0"        },
        {"b", "limits.hugepages-2Mi",       "1Mi",  "0"        },
 /* An init container by name has no defaults. */
        {"i", "limits.cpu",                 "1m",   "100"      },
        {"i", "limits.memory",              "1Gi",  "0"        },
    };
    struct dv_workload_node node = test_node();
    struct dv_workload_pod pod = test_pod(TWO_CONTAINERS);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_api_resource_field_selector field = {
            .container_name = dv_str_from_c(cases[i].container),
            .resource = dv_str_from_c(cases[i].resource),
            .divisor = test_amount("", cases[i].divisor).value,
        };
        struct dv_err err;
        dv_str value;

        assert_ok(dv_downward_env_resource(&node, &pod, &pod.pod->spec.containers[0], &field, arena,
                                           &value, &err),
                  &err);
        assert_str(value, cases[i].want);
    }
}

static void absent_limits_are_the_pods_for_a_variable_only(void **state)
{
    struct dv_workload_node node = test_node();
    struct dv_workload_pod pod =
        test_pod("resources: {limits: {cpu: 2, memory: 1Gi}}, containers: [{name: a, image: x}]");
    struct dv_api_resource_field_selector field = {.container_name = DV_STR("a"),
                                                   .resource = DV_STR("limits.memory")};
    struct dv_err err;
    dv_str value;

    (void)state;
    assert_ok(dv_downward_env_resource(&node, &pod, &pod.pod->spec.containers[0], &field, arena,
                                       &value, &err),
              &err);
    assert_str(value, "1073741824");
    assert_ok(dv_downward_file_resource(&node, &pod, &field, arena, &value, &err), &err);
    assert_str(value, "8589934592");
}

static void refuses_amounts_that_there_are_not(void **state)
{
    struct dv_workload_node node = test_node();
    struct dv_workload_pod pod = test_pod(TWO_CONTAINERS);
    struct dv_api_resource_field_selector pods = {.container_name = DV_STR("a"),
                                                  .resource = DV_STR("limits.pods")};
    struct dv_api_resource_field_selector other = {.container_name = DV_STR("z"),
                                                   .resource = DV_STR("limits.cpu")};
    struct dv_err err;
    dv_str value;

    (void)state;
    assert_false(dv_downward_file_resource(&node, &pod, &pods, arena, &value, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "unsupported container resource : limits.pods");
    assert_false(dv_downward_file_resource(&node, &pod, &other, arena, &value, &err));
    assert_err(&err, DV_NOT_FOUND, "container z not found");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(a_variable_has_the_value_of_a_field),
        doc_test(the_nodes_family_of_addresses_comes_first),
        doc_test(refuses_fields_that_there_are_not),
        doc_test(a_file_has_whole_maps_in_lines),
        doc_test(amounts_are_divided_and_rounded_up),
        doc_test(absent_limits_are_the_pods_for_a_variable_only),
        doc_test(refuses_amounts_that_there_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

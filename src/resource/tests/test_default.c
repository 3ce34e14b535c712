#include "test_values.h"

#include "resource/image.h"

static const struct dv_time now = {.seconds = 1700000000, .nanos = 5, .is_set = true};

#define POD_REST                                                                                   \
    "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"             \
    "\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\","             \
    "\"enableServiceLinks\":true},\"status\":{}}"
#define CONTAINER_REST                                                                             \
    "\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\","   \
    "\"imagePullPolicy\":\"IfNotPresent\"}"

static const struct {
    const char *what;
    enum dv_kind_id kind;
    size_t version;
    const char *text;
    const char *printed;
} defaults[] = {
    {"a pod",                                                          DV_KIND_POD,                 0, "{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i:1\"}]}}",
     "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i:1\",\"resources\":{}"
     "," CONTAINER_REST "]," POD_REST                                                                                                                                                                                                                        },
    {"a webhook that validates",                                       DV_KIND_VALIDATING_WEBHOOKS, 0,
     "{\"webhooks\":[{\"name\":\"a\",\"clientConfig\":{\"service\":{\"name\":\"s\"}},\"rules\":[{}]"
     "}]}",                                                                                                                                                                "{\"metadata\":{},\"webhooks\":[{\"name\":\"a\",\"clientConfig\":{\"service\":{\"namespace\":"
     "\"\",\"name\":\"s\",\"port\":443}},\"rules\":[{\"scope\":\"*\"}],\"failurePolicy\":\"Fail\","
     "\"matchPolicy\":\"Equivalent\",\"namespaceSelector\":{},\"objectSelector\":{},"
     "\"timeoutSeconds\":10,\"admissionReviewVersions\":null}]}"                                                                                                                                                                                  },
    {"a webhook that mutates",                                         DV_KIND_MUTATING_WEBHOOKS,   0,
     "{\"webhooks\":[{\"name\":\"a\",\"clientConfig\":{\"url\":\"u\"}}]}",                                                                                                 "{\"metadata\":{},\"webhooks\":[{\"name\":\"a\",\"clientConfig\":{\"url\":\"u\"},"
     "\"failurePolicy\":\"Fail\",\"matchPolicy\":\"Equivalent\",\"namespaceSelector\":{},"
     "\"objectSelector\":{},\"timeoutSeconds\":10,\"admissionReviewVersions\":null,"
     "\"reinvocationPolicy\":\"Never\"}]}"                                                                                                                                         },
    {"a grace period below zero",                                      DV_KIND_POD,                 0,
     "{\"spec\":{\"containers\":[],\"terminationGracePeriodSeconds\":-1}}",                                                                                                "{\"metadata\":{},\"spec\":{\"containers\":[],\"restartPolicy\":\"Always\","
     "\"terminationGracePeriodSeconds\":1,\"dnsPolicy\":\"ClusterFirst\",\"securityContext\":{},"
     "\"schedulerName\":\"default-scheduler\",\"enableServiceLinks\":true},\"status\":{}}"                                                                                        },
    {"limits become requests, and nothing is finer than a thousandth", DV_KIND_POD,                 0,
     "{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i:1\",\"resources\":{\"limits\":"
     "{\"a\":\"1\",\"c\":\"2\",\"d\":\"100u\"},\"requests\":{\"b\":\"5\",\"c\":\"1\"}}}]}}",                                                                               "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i:1\",\"resources\":"
     "{\"limits\":{\"a\":\"1\",\"c\":\"2\",\"d\":\"1m\"},\"requests\":{\"a\":\"1\",\"b\":\"5\","
     "\"c\":\"1\",\"d\":\"1m\"}}," CONTAINER_REST "]," POD_REST                                                                                                  },
    {"ports on the node's network, probes and what they ask",          DV_KIND_POD,                 0,
     "{\"spec\":{\"hostNetwork\":true,\"serviceAccount\":\"s\",\"containers\":[{\"name\":\"c\","
     "\"image\":\"i:1\",\"ports\":[{\"containerPort\":80}],\"livenessProbe\":{\"httpGet\":"
     "{\"port\":80}},\"readinessProbe\":{\"grpc\":{\"port\":1},\"periodSeconds\":2},"
     "\"lifecycle\":{\"preStop\":{\"httpGet\":{\"port\":1}}},\"env\":[{\"name\":\"e\","
     "\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"f\"}}}]}]}}",                                                                                                           "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i:1\",\"ports\":"
     "[{\"hostPort\":80,\"containerPort\":80,\"protocol\":\"TCP\"}],\"env\":[{\"name\":\"e\","
     "\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"f\"}}}],\"resources\":{},"
     "\"livenessProbe\":{\"httpGet\":{\"path\":\"/\",\"port\":80,\"scheme\":\"HTTP\"},"
     "\"timeoutSeconds\":1,\"periodSeconds\":10,\"successThreshold\":1,\"failureThreshold\":3},"
     "\"readinessProbe\":{\"grpc\":{\"port\":1,\"service\":\"\"},\"timeoutSeconds\":1,"
     "\"periodSeconds\":2,\"successThreshold\":1,\"failureThreshold\":3},\"lifecycle\":"
     "{\"preStop\":{\"httpGet\":{\"path\":\"/\",\"port\":1,\"scheme\":\"HTTP\"}}}," CONTAINER_REST
     "],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
     "\"ClusterFirst\",\"serviceAccountName\":\"s\",\"serviceAccount\":\"s\",\"hostNetwork\":true,"
     "\"securityContext\":{},\"schedulerName\":\"default-scheduler\",\"enableServiceLinks\":true},"
     "\"status\":{}}"                                                                                                                                                                        },
    {"volumes",                                                        DV_KIND_POD,                 0,
     "{\"spec\":{\"containers\":[],\"volumes\":[{\"name\":\"a\"},{\"name\":\"b\",\"hostPath\":"
     "{\"path\":\"/\"}},{\"name\":\"c\",\"secret\":{}},{\"name\":\"d\",\"projected\":{\"sources\":"
     "[{\"serviceAccountToken\":{\"path\":\"p\"}},{\"downwardAPI\":{\"items\":[{\"path\":\"q\","
     "\"fieldRef\":{\"fieldPath\":\"f\"}}]}}]}},{\"name\":\"e\",\"image\":{\"reference\":\"r\"}},"
     "{\"name\":\"f\",\"azureDisk\":{\"diskName\":\"n\",\"diskURI\":\"u\"}}]}}",                                                                                           "{\"metadata\":{},\"spec\":{\"volumes\":[{\"name\":\"a\",\"emptyDir\":{}},{\"name\":\"b\","
     "\"hostPath\":{\"path\":\"/\",\"type\":\"\"}},{\"name\":\"c\",\"secret\":{\"defaultMode\":420}"
     "},{\"name\":\"d\",\"projected\":{\"sources\":[{\"serviceAccountToken\":"
     "{\"expirationSeconds\":3600,\"path\":\"p\"}},{\"downwardAPI\":{\"items\":[{\"path\":\"q\","
     "\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"f\"}}]}}],\"defaultMode\":420}},"
     "{\"name\":\"e\",\"image\":{\"reference\":\"r\",\"pullPolicy\":\"Always\"}},{\"name\":\"f\","
     "\"azureDisk\":{\"diskName\":\"n\",\"diskURI\":\"u\",\"cachingMode\":\"ReadWrite\","
     "\"fsType\":\"ext4\",\"readOnly\":false,\"kind\":\"Shared\"}}],\"containers\":[]," POD_REST                                                                             },
    {"a namespace",                                                    DV_KIND_NAMESPACE,           0,
     "{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"b\",\"kubernetes.io/metadata.name\":\"x\"}}"
     "}",                                                                                                                                                                  "{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"b\",\"kubernetes.io/metadata.name\":\"n\"}}"
     ",\"spec\":{},\"status\":{\"phase\":\"Active\"}}"                                                                                                                                                                                              },
    {"a secret",                                                       DV_KIND_SECRET,              0,
     "{\"data\":{\"a\":\"AA==\",\"b\":\"AA==\",\"d\":\"AA==\"},\"stringData\":{\"b\":\"x\","
     "\"c\":null}}",                                                                                                                                                       "{\"metadata\":{},\"data\":{\"a\":\"AA==\",\"b\":\"eA==\",\"c\":\"\",\"d\":\"AA==\"},"
     "\"type\":\"Opaque\"}"                                                                                                                                                                                                              },
    {"a binding",                                                      DV_KIND_ROLE_BINDING,        0,
     "{\"subjects\":[{\"kind\":\"User\",\"name\":\"u\"},{\"kind\":\"ServiceAccount\",\"name\":"
     "\"s\"}],"
     "\"roleRef\":{\"kind\":\"Role\",\"name\":\"r\"}}",                                                                                                                    "{\"metadata\":{},\"subjects\":[{\"kind\":\"User\",\"apiGroup\":\"rbac.authorization.k8s.io\","
     "\"name\":\"u\"},{\"kind\":\"ServiceAccount\",\"name\":\"s\"}],\"roleRef\":{\"apiGroup\":"
     "\"rbac.authorization.k8s.io\",\"kind\":\"Role\",\"name\":\"r\"}}"                                                                                                                               },
    {"a runtime class",                                                DV_KIND_RUNTIME_CLASS,       0,
     "{\"handler\":\"h\",\"overhead\":{\"podFixed\":{\"cpu\":\"100u\"}}}",                                                                                                 "{\"metadata\":{},\"handler\":\"h\",\"overhead\":{\"podFixed\":{\"cpu\":\"1m\"}}}"},
    {"requests of a claim",                                            DV_KIND_CLAIM,               0,
     "{\"spec\":{\"devices\":{\"requests\":[{\"name\":\"a\",\"exactly\":{\"tolerations\":[{}]}},"
     "{\"name\":\"b\",\"exactly\":{\"allocationMode\":\"All\"}},{\"name\":\"c\","
     "\"firstAvailable\":[{\"name\":\"d\"}]},{\"name\":\"e\"}]}}}",                                                                                                        "{\"metadata\":{},\"spec\":{\"devices\":{\"requests\":[{\"name\":\"a\",\"exactly\":"
     "{\"deviceClassName\":\"\",\"allocationMode\":\"ExactCount\",\"count\":1,\"tolerations\":"
     "[{\"operator\":\"Equal\"}]}},{\"name\":\"b\",\"exactly\":{\"deviceClassName\":\"\","
     "\"allocationMode\":\"All\"}},{\"name\":\"c\",\"firstAvailable\":[{\"name\":\"d\","
     "\"deviceClassName\":\"\",\"allocationMode\":\"ExactCount\",\"count\":1}]},{\"name\":\"e\"}]}}"
     ",\"status\":{}}"                                                                                                                                                                    },
    {"of v1beta1 only those with a class",                             DV_KIND_CLAIM,               2,
     "{\"spec\":{\"devices\":{\"requests\":[{\"name\":\"a\",\"tolerations\":[{}]},{\"name\":\"b\","
     "\"deviceClassName\":\"c\"}]}}}",                                                                                                                                     "{\"metadata\":{},\"spec\":{\"devices\":{\"requests\":[{\"name\":\"a\",\"deviceClassName\":"
     "\"\",\"tolerations\":[{\"operator\":\"Equal\"}]},{\"name\":\"b\",\"deviceClassName\":\"c\","
     "\"allocationMode\":\"ExactCount\",\"count\":1}]}},\"status\":{}}"                                                                                                                                                },
    {"taints and shares of a slice",                                   DV_KIND_SLICE,               0,
     "{\"spec\":{\"devices\":[{\"name\":\"a\",\"taints\":[{\"key\":\"k\",\"effect\":\"None\"}],"
     "\"nodeAllocatableResourceMappings\":{\"cpu\":{}}}]}}",                                                                                                               "{\"metadata\":{},\"spec\":{\"driver\":\"\",\"pool\":{\"name\":\"\",\"generation\":0,"
     "\"resourceSliceCount\":0},\"devices\":[{\"name\":\"a\",\"taints\":[{\"key\":\"k\",\"effect\":"
     "\"None\",\"timeAdded\":\"2023-11-14T22:13:20Z\"}],\"nodeAllocatableResourceMappings\":"
     "{\"cpu\":{\"allocationMultiplier\":\"1\"}}}]}}"                                                                                                                                            },
    {"a node's allocatable and its address ranges",                    DV_KIND_NODE,                0,
     "{\"spec\":{\"podCIDR\":\"a\",\"podCIDRs\":[\"b\",\"c\"]},\"status\":{\"capacity\":{\"cpu\":"
     "\"2\"},\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":1}}}}",                                                                                                    "{\"metadata\":{},\"spec\":{\"podCIDR\":\"a\",\"podCIDRs\":[\"a\"]},\"status\":{\"capacity\":"
     "{\"cpu\":\"2\"},\"allocatable\":{\"cpu\":\"2\"},\"daemonEndpoints\":{\"kubeletEndpoint\":"
     "{\"Port\":1}},\"nodeInfo\":{\"machineID\":\"\",\"systemUUID\":\"\",\"bootID\":\"\","
     "\"kernelVersion\":\"\",\"osImage\":\"\",\"containerRuntimeVersion\":\"\","
     "\"kubeletVersion\":\"\",\"kubeProxyVersion\":\"\",\"operatingSystem\":\"\","
     "\"architecture\":\"\"}}}"                                                                                                                                                       },
};

static void fills_in_what_was_left_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(defaults); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        const struct dv_kind *kind = dv_kind(defaults[i].kind);
        const struct dv_api_version *version = &kind->versions[defaults[i].version];
        void *value = decoded(version->message, defaults[i].text, arena);
        dv_str printed;

        dv_default(kind, version, value, now, arena);
        printed = as_json(version->message, value, arena);
        if (!dv_str_eq(printed, dv_str_from_c(defaults[i].printed)))
            fail_msg("%s: got %.*s", defaults[i].what, DV_FMT(printed));
        dv_default(kind, version, value, now, arena); /* and nothing more the second time */
        assert_true(dv_str_eq(as_json(version->message, value, arena), printed));
    }
}

#define DIGEST "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
    const char *image;
    bool is_latest;
} images[] = {
    {"i",                                                                true },
    {"i:latest",                                                         true },
    {"i:1",                                                              false},
    {"i:latest" DIGEST,                                                  true },
    {"i" DIGEST,                                                         false},
    {"a/b_c/d__e/f-g--h.i",                                              true },
    {"host.example:5000/i",                                              true },
    {"host.example:5000/i:latest",                                       true },
    {"host.example:5000/i:1",                                            false},
    {"localhost/i",                                                      true },
    {"[::1]:5000/i",                                                     true },
    {"HOST/i",                                                           true },
    {"host.example/",                                                    false},
    {"I",                                                                false},
    {"a/B:latest",                                                       false},
    {"a___b",                                                            false},
    {"a..b",                                                             false},
    {"a-",                                                               false},
    {"",                                                                 false},
    {" ",                                                                false},
    {"i:",                                                               false},
    {"i:.x",                                                             false},
    {"i@sha256:12",                                                      false},
    {"host.example:x/i",                                                 false},
    {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", false},
};

static void images_without_a_tag_are_the_latest(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(images); i++)
        if (dv_image_is_latest(dv_str_from_c(images[i].image)) != images[i].is_latest)
            fail_msg("%s", images[i].image);
}

static void says_what_is_wrong_with_an_images_name(void **state)
{
    static const struct {
        const char *image;
        const char *want; /* NULL: it is good */
        bool is_bare;
    } cases[] = {
        {"busybox",             NULL,                                                  true },
        {"localhost:5000/a/b",  NULL,                                                  true },
        {"busybox:1",           NULL,                                                  false},
        {"a b",                 "invalid reference format",                            false},
        {"",                    "invalid reference format",                            false},
        {"a:",                  "invalid reference format",                            false},
        {"a@sha256:12",         "invalid reference format",                            false},
        {"Busybox",             "repository name (library/Busybox) must be lowercase", false},
        {"docker.io/Busybox:1", "repository name (library/Busybox) must be lowercase", false},
        {"r.example/team/App",  "repository name (team/App) must be lowercase",        false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str image = dv_str_from_c(cases[i].image);
        struct dv_err err;

        assert_int_equal(dv_image_is_bare(image), cases[i].is_bare);
        if (cases[i].want) {
            assert_false(dv_image_check(image, &err));
            assert_err(&err, DV_INVALID_ARGUMENT, cases[i].want);
        } else {
            assert_ok(dv_image_check(image, &err), &err);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_in_what_was_left_out),
        cmocka_unit_test(images_without_a_tag_are_the_latest),
        cmocka_unit_test(says_what_is_wrong_with_an_images_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

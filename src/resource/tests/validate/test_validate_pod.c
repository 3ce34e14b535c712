/* test_validate_pod.c - what pods may say about claims: the cases of the reference's own tests, and
 * more. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "resource/tests/validate/test_validation.h"
#include "resource/validate/pod_checks.h"

#define BASE                                                                                       \
    "{metadata: {name: p, namespace: ns, uid: u, resourceVersion: '1'}, spec: {containers: "       \
    "[{name: c, image: i}], tolerations: [{key: a, operator: Exists}]}}"
#define CLAIMS(claims) "{spec: {resourceClaims: [" claims "]}}"
#define CONTAINER(container)                                                                       \
    "{spec: {resourceClaims: [{name: a, resourceClaimName: x}, {name: b, resourceClaimName: z}], " \
    "containers: [{name: c, image: i, resources: {" container "}}]}}"
#define RESOURCES "spec.containers[0].resources"

static const struct subject created = {DV_KIND_POD, DV_CREATE, BASE};
static const struct subject updated = {DV_KIND_POD, DV_UPDATE, BASE};
static const struct subject reported = {DV_KIND_POD, DV_UPDATE_STATUS, BASE};

static void checks_claims(void **state)
{
    static const struct refusal rows[] = {
        {"",                                                                                 ""                                    },
        {CLAIMS("{name: a, resourceClaimName: x}, {name: b, resourceClaimTemplateName: x}"), ""                                    },
        {CLAIMS("{name: a}"),                                                                "spec.resourceClaims[0]:Invalid"      },
        {CLAIMS("{name: a, resourceClaimName: x, resourceClaimTemplateName: z}"),
         "spec.resourceClaims[0]:Invalid"                                                                                          },
        {CLAIMS("{name: a, resourceClaimName: x}, {name: a, resourceClaimName: x}"),
         "spec.resourceClaims[1].name:Duplicate"                                                                                   },
        {CLAIMS("{name: A, resourceClaimName: X}, {resourceClaimTemplateName: X}"),
         "spec.resourceClaims[0].name:Invalid spec.resourceClaims[0].resourceClaimName:Invalid "
         "spec.resourceClaims[1].name:Required "
         "spec.resourceClaims[1].resourceClaimTemplateName:Invalid"                                                                },
        {"{metadata: {annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: n1, "
         "resourceClaims: "
         "[{name: "
         "a, resourceClaimName: x}]}}",                                             "spec.resourceClaims:Forbidden"       },
        {CONTAINER("claims: [{name: a}, {name: b, request: r}, {name: b, request: s}]"),     ""                                    },
        {CONTAINER("claims: [{name: x}, {}]"),
         RESOURCES ".claims[0]:NotFound " RESOURCES ".claims[1]:Required"                                                          },
        {CONTAINER("claims: [{name: a}, {name: a}]"),                                        RESOURCES ".claims[1]:Duplicate"      },
        {CONTAINER("claims: [{name: a}, {name: a, request: r}]"),                            RESOURCES ".claims[1]:Duplicate"      },
        {CONTAINER("claims: [{name: a, request: r}, {name: a, request: r}]"),
         RESOURCES ".claims[1]:Duplicate"                                                                                          },
        {CONTAINER("claims: [{name: a, request: R}]"),                                       RESOURCES ".claims[0].request:Invalid"},
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

/* What was listed before is named: the claim, or its request. */
static void a_claim_listed_twice_is_named_as_it_was_before(void **state)
{
    static const struct {
        const char *claims;
        const char *wanted;
    } rows[] = {
        {"{name: a}, {name: a}",                         "\"a\""  },
        {"{name: a}, {name: a, request: r}",             "\"a\""  },
        {"{name: a, request: r}, {name: a}",             "\"a\""  },
        {"{name: a, request: r}, {name: a, request: r}", "\"a/r\""},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        dv_str change =
            dv_str_printf(arena,
                          "{spec: {resourceClaims: [{name: a, resourceClaimName: x}], containers: "
                          "[{name: c, image: i, resources: {claims: [%s]}}]}}",
                          rows[i].claims);

        assert_string_equal(
            dv_str_to_c(problem_texts(&created, dv_str_to_c(change, arena), "", arena), arena),
            dv_str_to_c(
                dv_str_printf(arena, RESOURCES ".claims[1]: Duplicate value: %s", rows[i].wanted),
                arena));
    }
}

static void checks_resources(void **state)
{
    static const struct refusal rows[] = {
        {CONTAINER("limits: {cpu: 1, example.com/x: 2}, requests: {cpu: 500m, example.com/x: 2}"),
         ""                                                                                                                     },
        {CONTAINER("limits: {cpu: 1}, requests: {cpu: 2}"),                                        RESOURCES ".requests:Invalid"},
        {CONTAINER("limits: {e.x/y: 2}, requests: {e.x/y: 1}"),                                    RESOURCES ".requests:Invalid"},
        {CONTAINER("requests: {e.x/y: 1}"),                                                        RESOURCES ".limits:Required" },
        {CONTAINER("limits: {e.x/y: 1500m}"),
         RESOURCES ".limits[e.x/y]:Invalid " RESOURCES ".requests[e.x/y]:Invalid"                                               },
        {CONTAINER("requests: {cpu: -1, gpu: 1, 'a b/c': 1}"),
         RESOURCES ".requests[a b/c]:Invalid " RESOURCES ".requests[a b/c]:Invalid " RESOURCES
                   ".limits:Required " RESOURCES ".requests[cpu]:Invalid " RESOURCES
                   ".requests[gpu]:Invalid " RESOURCES ".requests[gpu]:Invalid"                                                 },
        {CONTAINER("limits: {hugepages-2Mi: 2Mi}"),                                                RESOURCES ":Forbidden"       },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void checks_containers_and_places(void **state)
{
    static const struct refusal rows[] = {
        {"{spec: {containers: []}}",                                                         "spec.containers:Required"                                               },
        {"{spec: {containers: [{name: c, image: i}, {name: c, image: i}], initContainers: [{name: "
         "c, "
         "image: i}]}}",                                                            "spec.containers[1].name:Duplicate spec.initContainers[0].name:Duplicate"},
        {"{spec: {containers: [{name: C}, {image: ' i'}]}}",
         "spec.containers[0].name:Invalid spec.containers[0].image:Required "
         "spec.containers[1].name:Required spec.containers[1].image:Invalid"                                                                                          },
        {"{spec: {restartPolicy: x, dnsPolicy: z, nodeName: A, hostname: a.b, nodeSelector: {'!': "
         "x}, activeDeadlineSeconds: 0, schedulingGates: [{name: g}, {name: g}]}}", "spec.restartPolicy:NotSupported spec.dnsPolicy:NotSupported spec.nodeSelector:Invalid "
         "spec.schedulingGates[1]:Duplicate spec.nodeName:Invalid spec.hostname:Invalid "
         "spec.activeDeadlineSeconds:Invalid"                             },
        {"{spec: {tolerations: [{operator: Equal}, {key: a, operator: X}, {key: a, effect: Z, "
         "tolerationSeconds: 1}]}}",                                                "spec.tolerations[0].operator:Invalid spec.tolerations[1].operator:NotSupported "
         "spec.tolerations[2].effect:Invalid spec.tolerations[2].effect:NotSupported"                                    },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

#define RULES "IgnoredDuringExecution: ["
#define NEAR(more)                                                                                 \
    "{spec: {affinity: {podAffinity: {requiredDuringScheduling" RULES "{" more "}]}}}}"
#define AT_NEAR "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
#define SPREAD(more) "{spec: {topologySpreadConstraints: [" more "]}}"
#define EVEN "maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule"
#define AT_SPREAD "spec.topologySpreadConstraints[0]"

static void checks_affinity_and_spread(void **state)
{
    static const struct refusal rows[] = {
        {NEAR("topologyKey: zone, labelSelector: {matchLabels: {a: b}}, namespaces: [ns], "
              "matchLabelKeys: [c]"),
         ""                                                                                                                                                                                           },
        {NEAR("labelSelector: {}"),                                                                         AT_NEAR ".topologyKey:Required"                                                           },
        {NEAR("topologyKey: '!'"),                                                                          AT_NEAR ".topologyKey:Invalid"                                                            },
        {NEAR("topologyKey: zone, namespaces: [A]"),                                                        AT_NEAR ".namespace:Invalid"                                                              },
        {NEAR("topologyKey: zone, labelSelector: {matchExpressions: [{key: a, operator: X}]}"),
         AT_NEAR ".labelSelector.matchExpressions[0].operator:Invalid"                                                                                                                                },
        {NEAR("topologyKey: zone, namespaceSelector: {matchLabels: {'!': x}}"),
         AT_NEAR ".namespaceSelector.matchLabels:Invalid"                                                                                                                                             },
        {NEAR("topologyKey: zone, matchLabelKeys: [c]"),                                                    AT_NEAR ".matchLabelKeys:Forbidden"                                                       },
        {NEAR("topologyKey: zone, labelSelector: {}, matchLabelKeys: ['!', c], mismatchLabelKeys: "
              "[c]"),
         AT_NEAR ".matchLabelKeys[0]:Invalid " AT_NEAR ".matchLabelKeys[1]:Invalid"                                                                                                                   },
        {"{spec: {affinity: {podAntiAffinity: {preferredDuringScheduling" RULES
         "{weight: 101, podAffinityTerm: {topologyKey: zone}}, {podAffinityTerm: {}}]}}}}",        "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight:"
         "Invalid spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[1]."
         "weight:Invalid spec.affinity.podAntiAffinity."
         "preferredDuringSchedulingIgnoredDuringExecution[1].podAffinityTerm.topologyKey:Required"},
        {"{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}, "
         "preferredDuringScheduling" RULES "{weight: 0, preference: {matchExpressions: [{key: a, "
         "operator: In}]}}]}}}}",                                                                  "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
         "nodeSelectorTerms:Required spec.affinity.nodeAffinity."
         "preferredDuringSchedulingIgnoredDuringExecution[0].weight:Invalid "
         "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference."
         "matchExpressions[0].values:Required"                                                                                                              },
        {SPREAD("{" EVEN ", minDomains: 2, nodeAffinityPolicy: Honor, nodeTaintsPolicy: Ignore}"),
         ""                                                                                                                                                                                           },
        {SPREAD("{maxSkew: 0, whenUnsatisfiable: X}"),
         AT_SPREAD ".maxSkew:Invalid " AT_SPREAD ".topologyKey:Required " AT_SPREAD
                   ".whenUnsatisfiable:NotSupported"                                                                                                                                                  },
        {SPREAD("{" EVEN "}, {" EVEN "}"),
         "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}:Duplicate"                                                                                                               },
        {SPREAD(
             "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, minDomains: 0}"),
         AT_SPREAD ".minDomains:Invalid " AT_SPREAD ".minDomains:Invalid"                                                                                                                             },
        {SPREAD("{" EVEN ", nodeAffinityPolicy: X, nodeTaintsPolicy: Z}"),
         AT_SPREAD ".nodeAffinityPolicy:NotSupported " AT_SPREAD ".nodeTaintsPolicy:NotSupported"                                                                                                     },
        {SPREAD("{" EVEN ", matchLabelKeys: [a]}"),                                                         AT_SPREAD ".matchLabelKeys:Forbidden"                                                     },
        {SPREAD("{" EVEN ", labelSelector: {matchLabels: {a: b}}, matchLabelKeys: [a]}"),
         AT_SPREAD ".matchLabelKeys[0]:Invalid"                                                                                                                                                       },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

#define MOUNTS(mounts)                                                                             \
    "{spec: {volumes: [{name: v, emptyDir: {}}], containers: [{name: c, image: i, volumeMounts: "  \
    "[" mounts "]}]}}"
#define AT_MOUNTS "spec.containers[0].volumeMounts"

static void checks_volumes_and_mounts(void **state)
{
    static const struct refusal rows[] = {
        {MOUNTS("{name: v, mountPath: /a}, {name: v, mountPath: /b, subPath: a/b..c/...}"),                   ""                                                          },
        {MOUNTS("{name: w, mountPath: /a}"),                                                                  AT_MOUNTS "[0].name:NotFound"                               },
        {MOUNTS("{mountPath: /a}"),                                                                           AT_MOUNTS "[0].name:Required " AT_MOUNTS "[0].name:NotFound"},
        {MOUNTS("{name: v}"),                                                                                 AT_MOUNTS "[0].mountPath:Required"                          },
        {MOUNTS("{name: v, mountPath: /a}, {name: v, mountPath: /a}"),
         AT_MOUNTS "[1].mountPath:Invalid"                                                                                                                                },
        {MOUNTS("{name: v, mountPath: /a, subPath: /b}"),                                                     AT_MOUNTS ".subPath:Invalid"                                },
        {MOUNTS("{name: v, mountPath: /a, subPath: ..}"),                                                     AT_MOUNTS ".subPath:Invalid"                                },
        {MOUNTS("{name: v, mountPath: /a, subPath: b/../../c}"),                                              AT_MOUNTS ".subPath:Invalid"                                },
        {MOUNTS("{name: v, mountPath: /a, subPathExpr: /$(A)/..}"),
         AT_MOUNTS ".subPathExpr:Invalid " AT_MOUNTS ".subPathExpr:Invalid"                                                                                               },
        {MOUNTS("{name: v, mountPath: /a, subPath: b, subPathExpr: $(A)}"),
         AT_MOUNTS "[0].subPathExpr:Invalid"                                                                                                                              },
        {MOUNTS("{name: v, mountPath: /a, mountPropagation: HostToContainer}"),                               ""                                                          },
        {MOUNTS("{name: v, mountPath: /a, mountPropagation: Bidirectional}"),
         AT_MOUNTS ".mountPropagation:Forbidden"                                                                                                                          },
        {MOUNTS("{name: v, mountPath: /a, mountPropagation: x}"),
         AT_MOUNTS ".mountPropagation:NotSupported"                                                                                                                       },
        {"{spec: {volumes: [{name: v}, {name: v}, {name: A}, {}]}}",
         "spec.volumes[1].name:Duplicate spec.volumes[2].name:Invalid "
         "spec.volumes[3].name:Required"                                                                                                                                  },
        {"{spec: {volumes: [{name: a, hostPath: {path: /a/../b}}, {name: b, hostPath: {path: ''}}, "
         "{name: c, hostPath: {path: /c, type: Dir}}, {name: d, hostPath: {path: /d, type: ''}}]}}", "spec.volumes[0].hostPath.path:Invalid spec.volumes[1].hostPath.path:Required "
         "spec.volumes[2].hostPath.type:NotSupported"        },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    assert_str(
        problem_texts(&created, MOUNTS("{name: v, mountPath: /a, subPath: /b/..}"), NULL, arena),
        AT_MOUNTS ".subPath: Invalid value: \"/b/..\": must be a relative path\n" AT_MOUNTS
                  ".subPath: Invalid value: \"/b/..\": must not contain '..'");
}

static void changes_little_of_a_pod(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    static const struct refusal rows[] = {
        {"",                                                                                               ""                                      },
        {"{spec: {containers: [{name: c, image: j}], activeDeadlineSeconds: 5, tolerations: [{key: "
         "b, "
         "operator: Exists}, {key: a, operator: Exists, effect: '', tolerationSeconds: null}]}}", ""                                      },
        {"{spec: {containers: [{name: c, image: i}, {name: d, image: i}]}}",
         "spec.containers:Forbidden"                                                                                                               },
        {"{spec: {initContainers: [{name: d, image: i}]}}",                                                "spec.initContainers:Forbidden"         },
        {"{spec: {tolerations: []}}",                                                                      "spec.tolerations:Forbidden"            },
        {"{spec: {schedulingGates: [{name: g}]}}",                                                         "spec.schedulingGates[0].name:Forbidden"},
        {"{spec: {hostNetwork: true}}",                                                                    "spec:Forbidden"                        },
        {CLAIMS("{name: a, resourceClaimName: x}"),                                                        "spec:Forbidden"                        },
    };

    (void)state;
    check_refusals(&updated, rows, DV_COUNT(rows));
    assert_str(
        problem_texts(&updated, "{spec: {activeDeadlineSeconds: 6}}",
                      "{spec: {activeDeadlineSeconds: 5}}", arena),
        "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous "
        "value");
    assert_str(problem_texts(&updated,
                             "{spec: {schedulingGates: [{name: g}], nodeSelector: {a: b}}}",
                             "{spec: {schedulingGates: [{name: g}, {name: h}]}}", arena),
               "");
}

#define ANNOTATED(value) "{metadata: {annotations: {kubernetes.io/config.mirror: " value "}}}"

static void keeps_the_mirror_annotation(void **state)
{
    static const char key[] = "metadata.annotations[kubernetes.io/config.mirror]:Forbidden";
    static const struct refusal ordinary[] = {
        {"{metadata: {annotations: {a: b}}}", "" },
        {ANNOTATED("x"),                      key},
    };
    static const struct refusal mirrors[] = {
        {"",                                "" },
        {ANNOTATED("z"),                    key},
        {ANNOTATED("null"),                 key},
        {"{metadata: {annotations: null}}", key},
    };
    static const enum dv_operation operations[] = {DV_UPDATE, DV_UPDATE_STATUS};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(operations); i++) {
        const struct subject pod = {DV_KIND_POD, operations[i],
                                    "{metadata: {name: p, namespace: ns, uid: u, resourceVersion: "
                                    "'1'}, spec: {nodeName: n1, "
                                    "containers: [{name: c, image: i}]}}"};
        const struct subject mirror = {
            DV_KIND_POD, operations[i],
            "{metadata: {name: p, namespace: ns, uid: u, resourceVersion: '1', annotations: "
            "{kubernetes.io/config.mirror: x}}, spec: {nodeName: n1, containers: [{name: c, image: "
            "i}]}}"};

        check_refusals(&pod, ordinary, DV_COUNT(ordinary));
        check_refusals(&mirror, mirrors, DV_COUNT(mirrors));
    }
}

static void checks_what_is_told_about_claims(void **state)
{
    static const struct refusal rows[] = {
        {"{spec: {resourceClaims: [{name: a, resourceClaimName: x}]}, status: "
         "{resourceClaimStatuses: [{name: a, resourceClaimName: x}]}}",                         ""                                                                                  },
        {"{status: {resourceClaimStatuses: [{name: a, resourceClaimName: x}]}}",
         "status.resourceClaimStatuses[0].name:Invalid"                                                                                                                                      },
        {"{status: {extendedResourceClaimStatus: {}}}",
         "status.extendedResourceClaimStatus.resourceClaimName:Required "
         "status.extendedResourceClaimStatus.requestMappings:Required"                                                                                                                       },
        {"{spec: {containers: [{name: c, image: i, resources: {limits: {e.x/y: 1}}}]}, status: "
         "{extendedResourceClaimStatus: {resourceClaimName: x, requestMappings: [{containerName: "
         "c, "
         "resourceName: e.x/y, requestName: r}, {containerName: c, resourceName: e.x/y, "
         "requestName: "
         "r}, {containerName: c, resourceName: e.x/z, requestName: r}, {containerName: d}]}}}", "status.extendedResourceClaimStatus.requestMappings[1]:Duplicate "
         "status.extendedResourceClaimStatus.requestMappings[2].resourceName:Invalid "
         "status.extendedResourceClaimStatus.requestMappings[3].containerName:Invalid "
         "status.extendedResourceClaimStatus.requestMappings[3].requestName:Required"},
        {"{status: {nodeAllocatableResourceClaimStatuses: [{resourceClaimName: x, containers: [c], "
         "resources: {e.x/y: 1, cpu: -1}}, {}]}}",                                              "status.nodeAllocatableResourceClaimStatuses[0].resourceClaimName:Invalid "
         "status.nodeAllocatableResourceClaimStatuses[0].resources[cpu]:Invalid "
         "status.nodeAllocatableResourceClaimStatuses[0].resources:Invalid "
         "status.nodeAllocatableResourceClaimStatuses[1].resourceClaimName:Required "
         "status.nodeAllocatableResourceClaimStatuses[1].containers:Required "
         "status.nodeAllocatableResourceClaimStatuses[1].resources:Required"                                                      },
        {"{status: {containerStatuses: [{name: c, allocatedResourcesStatus: [{name: 'claim:a', "
         "resources: [{resourceID: x, health: Fine}, {resourceID: x}]}]}]}}",                   "status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health:NotSupported "
         "status.containerStatuses[0].allocatedResourcesStatus[0].resources[1].resourceID:"
         "Duplicate"                                                                                   },
    };

    (void)state;
    check_refusals(&reported, rows, DV_COUNT(rows));
}

static void shows_differences_line_by_line(void **state)
{
    static const struct {
        const char *from;
        const char *to;
        const char *want;
    } rows[] = {
        {"a\nb\nc",                   "a\nb\nc",                   ""                     },
        {"a",                         "b",                         "@@ -1 +1 @@\n-a\n+b\n"},
        {"1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\nx\n6\n7\n8\n9",
         "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"                              },
        {"1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\n5\n6\n7\n8",
         "@@ -6,4 +6,3 @@\n 6\n 7\n 8\n-9\n"                                              },
        {"0\n1\n2\n3\n4\n5\n6\n7\n8", "x\n1\n2\n3\n4\n5\n6\n7\ny",
         "@@ -1,4 +1,4 @@\n-0\n+x\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-8\n+y\n"     },
        {"0\n1\n2\n3\n4\n5\n6\n7",    "x\n1\n2\n3\n4\n5\n6\ny",
         "@@ -1,8 +1,8 @@\n-0\n+x\n 1\n 2\n 3\n 4\n 5\n 6\n-7\n+y\n"                      },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

        dv_buf_init(&buf, 10000);
        dv_diff_lines(dv_str_from_c(rows[i].from), dv_str_from_c(rows[i].to), &buf);
        assert_str(dv_buf_str(&buf), rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_claims),
        cmocka_unit_test(a_claim_listed_twice_is_named_as_it_was_before),
        cmocka_unit_test(checks_resources),
        cmocka_unit_test(checks_containers_and_places),
        cmocka_unit_test(checks_affinity_and_spread),
        cmocka_unit_test(checks_volumes_and_mounts),
        cmocka_unit_test(changes_little_of_a_pod),
        cmocka_unit_test(keeps_the_mirror_annotation),
        cmocka_unit_test(checks_what_is_told_about_claims),
        cmocka_unit_test(shows_differences_line_by_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_validate_kinds.c - classes, rules, templates, and the kinds that are only carried along. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "base/name.h"
#include "resource/tests/validate/test_validation.h"

#define META "metadata: {name: x, resourceVersion: '1'}"
#define IN_NAMESPACE "metadata: {name: x, namespace: ns, resourceVersion: '1'}"

static void checks_classes(void **state)
{
    static const struct subject created = {DV_KIND_CLASS, DV_CREATE, "{" META ", spec: {}}"};
    static const struct subject updated = {DV_KIND_CLASS, DV_UPDATE, "{" META ", spec: {}}"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    static const struct refusal rows[] = {
        {"",                                                ""                                 },
        {"{metadata: {namespace: ns}}",                     "metadata.namespace:Forbidden"     },
        {"{spec: {extendedResourceName: example.com/gpu}}", ""                                 },
        {"{spec: {extendedResourceName: cpu}}",             "spec.extendedResourceName:Invalid"},
        {"{spec: {extendedResourceName: ''}}",              "spec.extendedResourceName:Invalid"},
        {"{spec: {selectors: [{}], config: [{}]}}",
         "spec.selectors[0].cel:Required spec.config[0].opaque:Required"                       },
    };
    const char *big = repeated("{spec: {config: [{opaque: {driver: d, parameters: {", "a#: 0", 1500,
                               "}}}]}}", arena);

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    check_refusal(&created, big, "spec.config[0].opaque.parameters:TooLong");
    check_refusal(&updated, big, "spec.config[0].opaque.parameters:TooLong");
    assert_str(problem_texts(&updated, big, big, arena), "");
    check_refusal(&created,
                  repeated("{spec: {selectors: [", "{cel: {expression: 'true'}}", 33, "]}}", arena),
                  "spec.selectors:TooMany");
}

static void checks_taint_rules(void **state)
{
    static const char base[] = "{" META ", spec: {taint: {key: k, effect: NoExecute}}}";
    static const struct subject created = {DV_KIND_TAINT_RULE, DV_CREATE, base};
    static const struct subject updated = {DV_KIND_TAINT_RULE, DV_UPDATE, base};
    static const struct subject reported = {DV_KIND_TAINT_RULE, DV_UPDATE_STATUS, base};
    static const struct refusal rows[] = {
        {"",                                                                 ""                              },
        {"{spec: {deviceSelector: {}}}",                                     ""                              },
        {"{spec: {deviceSelector: {driver: 'a b', pool: a//b, device: A}}}",
         "spec.deviceSelector.driver:Invalid spec.deviceSelector.pool:Invalid "
         "spec.deviceSelector.device:Invalid"                                                                },
        {"{spec: {taint: {effect: Newer}}}",                                 "spec.taint.effect:NotSupported"},
        {"{spec: {taint: {effect: null}}}",                                  "spec.taint.effect:Required"    },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    assert_str(problem_texts(&updated, "{spec: {taint: {key: l, effect: Newer}}}",
                             "{spec: {taint: {effect: Newer}}}", arena),
               "");
    check_refusal(&reported, "{status: {conditions: [{type: A, status: Maybe}]}}",
                  "status.conditions[0].status:NotSupported "
                  "status.conditions[0].lastTransitionTime:Required "
                  "status.conditions[0].reason:Required");
    check_refusal(&reported,
                  repeated("{status: {conditions: [",
                           "{type: A#, status: 'True', reason: R, lastTransitionTime: "
                           "'2026-01-01T00:00:00Z'}",
                           9, "]}}", arena),
                  "status.conditions:TooMany");
}

static void checks_templates(void **state)
{
    static const char base[] =
        "{" IN_NAMESPACE ", spec: {metadata: {labels: {a: b}}, spec: {devices: "
        "{requests: [{name: r, exactly: {deviceClassName: c}}]}}}}";
    static const struct subject created = {DV_KIND_TEMPLATE, DV_CREATE, base};
    static const struct subject updated = {DV_KIND_TEMPLATE, DV_UPDATE, base};
    static const struct refusal rows[] = {
        {"",                                                              ""                },
        {"{spec: {metadata: {name: x, uid: u, finalizers: [a.b/c]}}}",
         "spec.metadata.name:Forbidden spec.metadata.uid:Forbidden "
         "spec.metadata.finalizers:Forbidden"                                               },
        {"{spec: {metadata: {labels: {'!': b}, annotations: {'!': b}}}}",
         "spec.metadata.annotations:Invalid spec.metadata.labels:Invalid"                   },
        {"{spec: {spec: {devices: {requests: [{name: R}]}}}}",
         "spec.spec.devices.requests[0].name:Invalid spec.spec.devices.requests[0]:Required"},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    check_refusal(&updated, "{metadata: {labels: {a: b}}}", "");
    check_refusal(&updated, "{spec: {spec: {devices: {requests: []}}}}", "spec:Invalid");
    assert_str(
        problem_texts(&updated, "{spec: {spec: {devices: {requests: []}}}}", NULL, arena),
        "spec: Invalid value: {\"labels\":{\"a\":\"b\"},\"Spec\":{\"Devices\":{\"Requests\":[],"
        "\"Constraints\":null,\"Config\":null}}}: field is immutable");
}

static void checks_runtime_classes(void **state)
{
    static const char base[] = "{" META ", handler: runc}";
    static const struct subject created = {DV_KIND_RUNTIME_CLASS, DV_CREATE, base};
    static const struct subject updated = {DV_KIND_RUNTIME_CLASS, DV_UPDATE, base};
    static const struct refusal rows[] = {
        {"",                                                      ""                                                                              },
        {"{metadata: {name: A_b, namespace: ns}}",
         "metadata.name:Invalid metadata.namespace:Forbidden"                                                                                     },
        {"{handler: null}",                                       "handler:Required"                                                              },
        {"{handler: a.b}",                                        "handler:Invalid"                                                               },
        {"{overhead: {podFixed: {cpu: 250m, memory: 1Mi}}}",      ""                                                                              },
        {"{overhead: {podFixed: {cpu: -1, x: 1, e.x/y: 1500m}}}",
         "overhead.limits[cpu]:Invalid overhead.limits[e.x/y]:Invalid overhead.limits[x]:Invalid "
         "overhead.limits[x]:Invalid"                                                                                                             },
        {"{scheduling: {nodeSelector: {a.b/c: d, '!': '!'}}}",
         "scheduling.nodeSelector:Invalid scheduling.nodeSelector:Invalid"                                                                        },
        {"{scheduling: {tolerations: [{key: a, operator: Exists, effect: NoExecute}, {key: b}, "
         "{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 3}, {operator: "
         "Equal}]}}",                                    "scheduling.tolerations[3].operator:Invalid scheduling.tolerations[2]:Duplicate"},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    check_refusal(&updated, "{overhead: {podFixed: {cpu: 1}}}", "");
    check_refusal(&updated, "{metadata: {labels: {'!': a}}}",
                  "metadata.labels:Invalid metadata.labels:Invalid");
    assert_str(problem_texts(&updated, "{handler: kata}", NULL, arena),
               "handler: Invalid value: \"kata\": field is immutable");
    assert_str(problem_texts(&created, "{handler: null}", NULL, arena), "handler: Required value");
}

static void checks_kinds_that_are_carried_along(void **state)
{
    static const struct {
        struct subject subject;
        struct refusal row;
    } rows[] = {
        {{DV_KIND_NAMESPACE, DV_CREATE, "{" META "}"},
         {"{metadata: {name: a.b}}", "metadata.name:Invalid"}                                   },
        {{DV_KIND_SERVICE_ACCOUNT, DV_CREATE, "{" IN_NAMESPACE "}"},
         {"{metadata: {name: a.b}}", ""}                                                        },
        {{DV_KIND_CONFIG_MAP, DV_CREATE, "{" IN_NAMESPACE "}"},
         {"{data: {'a b': x, '..': x}, binaryData: {c: AAAA}}",
          "data[..]:Invalid data[a b]:Invalid"}                                                 },
        {{DV_KIND_CONFIG_MAP, DV_CREATE, "{" IN_NAMESPACE "}"},
         {"{data: {c: x}, binaryData: {c: AAAA}}", "data[c]:Invalid"}                           },
        {{DV_KIND_CONFIG_MAP, DV_UPDATE, "{" IN_NAMESPACE ", immutable: true, data: {a: b}}"},
         {"{immutable: false, data: {a: c}}", "immutable:Forbidden data:Forbidden"}             },
        {{DV_KIND_SECRET, DV_UPDATE, "{" IN_NAMESPACE ", type: Opaque}"},
         {"{type: other, data: {'!': ''}}", "type:Invalid data[!]:Invalid"}                     },
        {{DV_KIND_SECRET, DV_CREATE, "{" IN_NAMESPACE "}"},
         {"{type: kubernetes.io/tls}", "data[tls.crt]:Required data[tls.key]:Required"}         },
        {{DV_KIND_SECRET, DV_CREATE, "{" IN_NAMESPACE "}"},
         {"{type: kubernetes.io/basic-auth}", "data[username]:Required data[password]:Required"}},
        {{DV_KIND_SECRET, DV_CREATE, "{" IN_NAMESPACE "}"},
         {"{type: kubernetes.io/basic-auth, data: {password: ''}}", ""}                         },
        {{DV_KIND_SECRET, DV_CREATE, "{" IN_NAMESPACE "}"},
         {"{type: kubernetes.io/dockerconfigjson, data: {x: ''}}",
          "data[.dockerconfigjson]:Required"}                                                   },
        {{DV_KIND_SECRET, DV_CREATE, "{" IN_NAMESPACE "}"},
         {"{type: kubernetes.io/service-account-token}",
          "metadata.annotations[kubernetes.io/service-account.name]:Required"}                  },
        {{DV_KIND_LEASE, DV_CREATE, "{" IN_NAMESPACE "}"},
         {"{spec: {leaseDurationSeconds: 0, leaseTransitions: -1, preferredHolder: x}}",
          "spec.leaseDurationSeconds:Invalid spec.leaseTransitions:Invalid "
          "spec.preferredHolder:Forbidden"}                                                     },
        {{DV_KIND_EVENT, DV_CREATE, "{" IN_NAMESPACE ", involvedObject: {namespace: ns}}"},
         {"{involvedObject: {namespace: null}}", "involvedObject.namespace:Invalid"}            },
        {{DV_KIND_EVENT, DV_CREATE, "{" IN_NAMESPACE ", involvedObject: {namespace: ns}}"},
         {"{eventTime: '2026-01-01T00:00:00.000000Z', reportingComponent: a, reportingInstance: b}",
          "action:Required reason:Required"}                                                    },
        {{DV_KIND_NODE, DV_CREATE, "{" META "}"},
         {"{spec: {taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}, {key: "
          "a}]}}",
          "metadata.taints[1]:Duplicate metadata.taints[2].effect:Required"}                    },
        {{DV_KIND_NODE, DV_UPDATE,
          "{" META ", spec: {podCIDR: 10.0.0.0/24, podCIDRs: [10.0.0.0/24], "
          "providerID: a}}"},
         {"{spec: {podCIDR: 10.1.0.0/24, providerID: b}, status: {capacity: {e.x/y: 1500m}, "
          "allocatable: {}}}",
          "status.capacity.e.x/y:Invalid status.allocatable.e.x/y:Invalid spec.podCIDRs:Forbidden "
          "spec.providerID:Forbidden"}                                                          },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        check_refusal(&rows[i].subject, "", "");
        check_refusal(&rows[i].subject, rows[i].row.change, rows[i].row.want);
    }
}

static void answers_questions_about_names(void **state)
{
    static const struct {
        bool (*is)(dv_str name);
        const char *good;
        const char *bad;
    } rows[] = {
        {dv_is_dns_label,              "a-1",               "a.b"              },
        {dv_is_dns_label,              "1",                 "-a"               },
        {dv_is_dns_subdomain,          "a.b-c",             "a..b"             },
        {dv_is_dns_subdomain,          "a",                 ""                 },
        {dv_is_label_name,             "a.b/C_d",           "a/b/c"            },
        {dv_is_label_name,             "A",                 "/a"               },
        {dv_is_label_value,            "",                  "a "               },
        {dv_is_driver_name,            "GPU.example.com",   "a_b"              },
        {dv_is_pool_name,              "a/b.c",             "a//b"             },
        {dv_is_pool_name,              "a",                 ""                 },
        {dv_is_extended_resource_name, "a.b/c",             "kubernetes.io/c"  },
        {dv_is_extended_resource_name, "a/c",               "requests.a/c"     },
        {dv_is_native_resource_name,   "cpu",               "a.b/c"            },
        {dv_is_native_resource_name,   "x.kubernetes.io/c", "kubernetes.io.a/c"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        if (!rows[i].is(dv_str_from_c(rows[i].good)) || rows[i].is(dv_str_from_c(rows[i].bad)))
            fail_msg("row %zu: %s is good, %s is not", i, rows[i].good, rows[i].bad);
}

/* -- Roles and bindings --------------------------------------------------------------------- */

#define GROUP "rbac.authorization.k8s.io"
#define RULE "{verbs: [get], apiGroups: [''], resources: [pods]}"

static void checks_rules_of_roles(void **state)
{
    static const char base[] =
        "{metadata: {name: 'a:B c', namespace: ns, resourceVersion: '1'}, rules: [" RULE "]}";
    static const struct subject created = {DV_KIND_ROLE, DV_CREATE, base};
    static const struct refusal rows[] = {
        {"",                                                                     ""                                           },
        {"{rules: null}",                                                        ""                                           },
        {"{metadata: {name: ..}}",                                               "metadata.name:Invalid"                      },
        {"{metadata: {name: a/b%c}}",                                            "metadata.name:Invalid metadata.name:Invalid"},
        {"{metadata: {namespace: null}}",                                        "metadata.namespace:Required"                },
        {"{rules: [" RULE ", {}]}",
         "rules[1].verbs:Required rules[1].apiGroups:Required rules[1].resources:Required"                                    },
        {"{rules: [{verbs: [get], nonResourceURLs: [/x]}]}",                     "rules[0].nonResourceURLs:Invalid"           },
        {"{rules: [{verbs: [get], nonResourceURLs: [/x], resourceNames: [a]}]}",
         "rules[0].nonResourceURLs:Invalid rules[0].nonResourceURLs:Invalid"                                                  },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    assert_str(
        problem_texts(&created, "{rules: [{verbs: [], nonResourceURLs: [/x, z]}]}", NULL, arena),
        "rules[0].verbs: Required value: verbs must contain at least one value\n"
        "rules[0].nonResourceURLs: Invalid value: [\"/x\",\"z\"]: namespaced rules cannot "
        "apply to non-resource URLs");
}

static void checks_cluster_roles(void **state)
{
    static const char base[] = "{metadata: {name: r, resourceVersion: '1'}, rules: [" RULE "]}";
    static const struct subject created = {DV_KIND_CLUSTER_ROLE, DV_CREATE, base};
    static const struct subject updated = {DV_KIND_CLUSTER_ROLE, DV_UPDATE, base};
    static const struct refusal rows[] = {
        {"{metadata: {namespace: ns}}",                                                                       "metadata.namespace:Forbidden"                           },
        {"{rules: [{verbs: [get], nonResourceURLs: ['*']}]}",                                                 ""                                                       },
        {"{aggregationRule: {}}",                                                                             "aggregationRule.clusterRoleSelectors:Required"          },
        {"{aggregationRule: {clusterRoleSelectors: [{}]}}",                                                   ""                                                       },
        {"{aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: '!'}}]}}",
         "aggregationRule.clusterRoleSelectors[0].matchLabels:Invalid "
         "aggregationRule.clusterRoleSelectors[0]:Invalid"                                                                                                             },
        {"{aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: a, operator: In}, "
         "{key: '!', operator: Exists, values: [a]}, {key: a, operator: NotIn, values: ['!']}]}]}}", "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values:Required "
         "aggregationRule.clusterRoleSelectors[0].matchExpressions[1].values:Forbidden "
         "aggregationRule.clusterRoleSelectors[0].matchExpressions[1].key:Invalid "
         "aggregationRule.clusterRoleSelectors[0].matchExpressions[2].values[0]:Invalid "
         "aggregationRule.clusterRoleSelectors[0]:Invalid"},
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    check_refusal(
        &updated, "{rules: [{}]}",
        "rules[0].verbs:Required rules[0].apiGroups:Required rules[0].resources:Required");
    check_refusal(&updated, "{metadata: {uid: v}}", "metadata.uid:Invalid");
}

static void checks_bindings(void **state)
{
    static const char base[] = "{metadata: {name: b, namespace: ns, resourceVersion: '1'}, "
                               "roleRef: {kind: Role, name: r}, subjects: "
                               "[{kind: User, name: u}]}";
    static const struct subject created = {DV_KIND_ROLE_BINDING, DV_CREATE, base};
    static const struct subject updated = {DV_KIND_ROLE_BINDING, DV_UPDATE, base};
    static const struct refusal rows[] = {
        {"",                                                                 ""                     },
        {"{roleRef: {kind: ClusterRole}, subjects: null}",                   ""                     },
        {"{roleRef: {apiGroup: x, kind: Pod, name: a/b}}",
         "roleRef.apiGroup:NotSupported roleRef.kind:NotSupported roleRef.name:Invalid"             },
        {"{roleRef: {name: null}}",                                          "roleRef.name:Required"},
        {"{subjects: [{kind: ServiceAccount, name: s}]}",                    ""                     },
        {"{subjects: [{kind: ServiceAccount, name: S, apiGroup: x}]}",
         "subjects[0].name:Invalid subjects[0].apiGroup:NotSupported"                               },
        {"{subjects: [{kind: Group, apiGroup: x}, {kind: Thing, name: t}]}",
         "subjects[0].name:Required subjects[0].apiGroup:NotSupported "
         "subjects[1].kind:NotSupported"                                                            },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    assert_str(problem_texts(&updated, "{roleRef: {name: other}}", NULL, arena),
               "roleRef: Invalid value: {\"APIGroup\":\"" GROUP
               "\",\"Kind\":\"Role\",\"Name\":\"other\"}: cannot change roleRef");
    assert_str(problem_texts(&updated, "{subjects: null}", NULL, arena), "");
}

static void checks_cluster_bindings(void **state)
{
    static const char base[] = "{metadata: {name: b, resourceVersion: '1'}, roleRef: {kind: "
                               "ClusterRole, name: r}, subjects: "
                               "[{kind: ServiceAccount, name: s, namespace: ns}]}";
    static const struct subject created = {DV_KIND_CLUSTER_ROLE_BINDING, DV_CREATE, base};
    static const struct refusal rows[] = {
        {"",                                              ""                              },
        {"{roleRef: {kind: Role}}",                       "roleRef.kind:NotSupported"     },
        {"{subjects: [{kind: ServiceAccount, name: s}]}", "subjects[0].namespace:Required"},
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

/* -- Quotas and priorities ------------------------------------------------------------------ */

static void checks_services(void **state)
{
    static const char base[] =
        "{metadata: {name: s, namespace: ns, resourceVersion: '1'}, spec: {type: ClusterIP, "
        "sessionAffinity: None, clusterIP: 10.96.0.2, clusterIPs: [10.96.0.2], ports: [{port: 80, "
        "protocol: TCP, targetPort: 80}]}}";
    static const struct subject created = {DV_KIND_SERVICE, DV_CREATE, base};
    static const struct refusal rows[] = {
        {"",                                                             ""                                                                     },
        {"{metadata: {name: 1s}}",                                       "metadata.name:Invalid"                                                },
        {"{spec: {ports: []}}",                                          "spec.ports:Required"                                                  },
        {"{spec: {ports: [], clusterIP: None, clusterIPs: [None]}}",     ""                                                                     },
        {"{spec: {ports: [{port: 0, protocol: X, targetPort: 70000}]}}",
         "spec.ports[0].port:Invalid spec.ports[0].protocol:NotSupported "
         "spec.ports[0].targetPort:Invalid"                                                                                                     },
        {"{spec: {ports: [{port: 1, protocol: TCP, targetPort: web}, {port: 1, protocol: TCP, "
         "targetPort: 1, name: b}]}}",                          "spec.ports[0].name:Required spec.ports[1]:Duplicate"                  },
        {"{spec: {ports: [{port: 1, protocol: TCP, targetPort: a--b, name: a}, {port: 1, protocol: "
         "UDP, targetPort: '99', name: a, nodePort: 5}]}}",     "spec.ports[0].targetPort:Invalid spec.ports[1].name:Duplicate "
         "spec.ports[1].targetPort:Invalid spec.ports[1].nodePort:Forbidden"},
        {"{spec: {type: X, sessionAffinity: Z}}",
         "spec.sessionAffinity:NotSupported spec.type:NotSupported"                                                                             },
        {"{spec: {clusterIP: a, clusterIPs: [a]}}",                      "spec.clusterIPs[0]:Invalid"                                           },
        {"{spec: {clusterIP: 10.96.0.3}}",                               "spec.clusterIPs:Invalid"                                              },
        {"{spec: {type: ExternalName}}",                                 "spec.clusterIPs:Forbidden spec.externalName:Required"                 },
        {"{spec: {selector: {'a b': c}}}",                               "spec.selector:Invalid"                                                },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void a_service_keeps_its_address(void **state)
{
    static const char base[] =
        "{metadata: {name: s, namespace: ns, resourceVersion: '1'}, spec: {type: ClusterIP, "
        "sessionAffinity: None, clusterIP: 10.96.0.2, clusterIPs: [10.96.0.2], ports: [{port: 80, "
        "protocol: TCP, targetPort: 80}]}}";
    static const struct subject updated = {DV_KIND_SERVICE, DV_UPDATE, base};
    static const struct refusal rows[] = {
        {"",                                                        ""                          },
        {"{spec: {clusterIP: 10.96.0.3, clusterIPs: [10.96.0.3]}}", "spec.clusterIPs[0]:Invalid"},
    };

    (void)state;
    check_refusals(&updated, rows, DV_COUNT(rows));
}

static void checks_endpoints(void **state)
{
    static const char base[] =
        "{metadata: {name: s, namespace: ns, resourceVersion: '1'}, subsets: [{addresses: [{ip: "
        "127.0.0.1}], ports: [{port: 80, protocol: TCP}]}]}";
    static const struct subject created = {DV_KIND_ENDPOINTS, DV_CREATE, base};
    static const struct refusal rows[] = {
        {"",                                      ""                                                                                  },
        {"{subsets: [{}]}",                       "subsets[0]:Required"                                                               },
        {"{subsets: [{addresses: [{ip: x, hostname: A}], ports: [{port: 0, protocol: TCP}, {port: "
         "1, protocol: X, name: A}]}]}", "subsets[0].addresses[0].ip:Invalid subsets[0].addresses[0].hostname:Invalid "
         "subsets[0].ports[0].name:Required subsets[0].ports[0].port:Invalid "
         "subsets[0].ports[1].name:Invalid subsets[0].ports[1].protocol:NotSupported"},
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void checks_slices_of_endpoints(void **state)
{
    static const char base[] =
        "{metadata: {name: s, namespace: ns, resourceVersion: '1'}, addressType: IPv4, endpoints: "
        "[{addresses: [10.0.0.1]}], ports: [{name: '', port: 80, protocol: TCP}]}";
    static const struct subject created = {DV_KIND_ENDPOINT_SLICE, DV_CREATE, base};
    static const struct refusal rows[] = {
        {"",                                                            ""                                 },
        {"{addressType: ''}",                                           "addressType:Required"             },
        {"{addressType: IPv6}",                                         "endpoints[0].addresses[0]:Invalid"},
        {"{addressType: FQDN, endpoints: [{addresses: [a.b]}]}",        ""                                 },
        {"{endpoints: [{}]}",                                           "endpoints[0].addresses:Required"  },
        {"{ports: [{name: a, protocol: TCP}, {name: a, protocol: X}]}",
         "ports[1].name:Duplicate ports[1].protocol:NotSupported"                                          },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void checks_quotas(void **state)
{
    static const char base[] =
        "{metadata: {name: q, namespace: ns, resourceVersion: '1'}, spec: {hard: {pods: 1}}}";
    static const struct subject created = {DV_KIND_RESOURCE_QUOTA, DV_CREATE, base};
    static const struct refusal rows[] = {
        {"",                                                                                        ""                             },
        {"{spec: {hard: {cpu: 1, requests.hugepages-2Mi: 1Gi, limits.ephemeral-storage: 1}}}",      ""                             },
        {"{spec: {hard: {storage: 1}}}",                                                            "spec.hard[storage]:Invalid"   },
        {"{spec: {hard: {count/pods: 500m}}}",                                                      "spec.hard[count/pods]:Invalid"},
        {"{spec: {scopes: [BestEffort, NotBestEffort]}}",                                           "spec.scopes:Invalid"          },
        {"{spec: {scopes: [Terminating], hard: {secrets: 1, a.b/c: 1}}}",                           "spec.scopes:Invalid"          },
        {"{spec: {scopes: [A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A]}}",
         "spec.scopes:TooMany"                                                                                                     },
        {"{spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In}]}}}",
         "spec.scopeSelector.matchExpressions.values:Required"                                                                     },
        {"{spec: {scopeSelector: {matchExpressions: [{scopeName: BestEffort, operator: In, values: "
         "[a]}, {scopeName: X, operator: Z}, {scopeName: PriorityClass, operator: Exists, values: "
         "[a]}]}}}",                                                                       "spec.scopeSelector.matchExpressions.operator:Invalid "
         "spec.scopeSelector.matchExpressions.scopeName:Invalid "
         "spec.scopeSelector.matchExpressions.operator:Invalid "
         "spec.scopeSelector.matchExpressions.values:Invalid"                                         },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void checks_priority_classes(void **state)
{
    static const char base[] = "{metadata: {name: p, resourceVersion: '1'}, value: 5}";
    static const struct subject created = {DV_KIND_PRIORITY_CLASS, DV_CREATE, base};
    static const struct subject updated = {DV_KIND_PRIORITY_CLASS, DV_UPDATE, base};
    static const struct refusal rows[] = {
        {"",                                                            ""                             },
        {"{value: 1000000001}",                                         "value:Forbidden"              },
        {"{preemptionPolicy: Sometimes}",                               "preemptionPolicy:NotSupported"},
        {"{metadata: {name: system-node-critical}, value: 2000001000}", ""                             },
        {"{metadata: {name: system-mine}}",                             "metadata.name:Forbidden"      },
        {"{metadata: {name: system-node-critical}}",                    "metadata.name:Forbidden"      },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    assert_str(problem_texts(&updated, "{value: 6, preemptionPolicy: Never}", NULL, arena),
               "value: Forbidden: may not be changed in an update.\n"
               "preemptionPolicy: Invalid value: \"Never\": field is immutable");
}

/* -- What makes pods ------------------------------------------------------------------------ */

static void checks_daemon_sets(void **state)
{
    static const char base[] =
        "{metadata: {name: d, namespace: ns, resourceVersion: '1'}, spec: {selector: {matchLabels: "
        "{a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "
        "i}]}}}}";
    static const struct subject created = {DV_KIND_DAEMON_SET, DV_CREATE, base};
    static const struct subject updated = {DV_KIND_DAEMON_SET, DV_UPDATE, base};
    static const struct refusal rows[] = {
        {"",                                                                                     ""                                 },
        {"{spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 100%}}}}",                    ""                                 },
        {"{spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 10%}}}}",        ""                                 },
        {"{spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 101%}}}}",
         "spec.updateStrategy.rollingUpdate.maxUnavailable:Invalid"                                                                 },
        {"{spec: {updateStrategy: {rollingUpdate: {maxUnavailable: x}}}}",
         "spec.updateStrategy.rollingUpdate.maxUnavailable:Invalid "
         "spec.updateStrategy.rollingUpdate.maxUnavailable:Required"                                                                },
        {"{spec: {updateStrategy: {rollingUpdate: {maxUnavailable: -1}}}}",
         "spec.updateStrategy.rollingUpdate.maxUnavailable:Invalid"                                                                 },
        {"{spec: {updateStrategy: {type: Recreate}}}",                                           "spec.updateStrategy:NotSupported" },
        {"{spec: {selector: {matchExpressions: [{key: a, operator: Is}]}}}",
         "spec.selector.matchExpressions[0].operator:Invalid "
         "spec.template.metadata.labels:Invalid"                                                                                    },
        {"{spec: {template: {metadata: {labels: {'a b': c}}}}}",                                 "spec.template.labels:Invalid"     },
        {"{spec: {template: {spec: {containers: [{name: c, image: i}, {name: c, image: i}]}}}}",
         "spec.template.spec.containers[1].name:Duplicate"                                                                          },
        {"{spec: {template: {spec: {ephemeralContainers: [{name: e, image: i}]}}}}",
         "spec.template.spec.ephemeralContainers:Forbidden"                                                                         },
        {"{spec: {revisionHistoryLimit: -1}}",                                                   "spec.revisionHistoryLimit:Invalid"},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    assert_str(problem_texts(&updated,
                             "{spec: {selector: {matchLabels: {c: d}}, template: {metadata: "
                             "{labels: {c: d}}}}}",
                             NULL, arena),
               "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\",\"c\":\"d\"}}: "
               "field is immutable");
}

static void checks_deployments(void **state)
{
    static const char base[] =
        "{metadata: {name: d, namespace: ns, resourceVersion: '1'}, spec: {selector: {matchLabels: "
        "{a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "
        "i}]}}}}";
    static const struct subject created = {DV_KIND_DEPLOYMENT, DV_CREATE, base};
    static const struct subject told = {DV_KIND_DEPLOYMENT, DV_UPDATE_STATUS, base};
    static const struct subject set = {DV_KIND_REPLICA_SET, DV_CREATE, base};
    static const struct refusal rows[] = {
        {"",                                                                       ""                          },
        {"{spec: {replicas: -1}}",                                                 "spec.replicas:Invalid"     },
        {"{spec: {strategy: {type: Recreate}}}",                                   ""                          },
        {"{spec: {strategy: {type: Other}}}",                                      "spec.strategy:NotSupported"},
        {"{spec: {strategy: {rollingUpdate: {maxSurge: 0%, maxUnavailable: 0}}}}",
         "spec.strategy.rollingUpdate.maxUnavailable:Invalid"                                                  },
        {"{spec: {strategy: {rollingUpdate: {maxSurge: 500%}}}}",                  ""                          },
        {"{spec: {progressDeadlineSeconds: 3, minReadySeconds: 3}}",
         "spec.progressDeadlineSeconds:Invalid"                                                                },
        {"{spec: {template: {spec: {restartPolicy: Never}}}}",
         "spec.template.spec.restartPolicy:NotSupported"                                                       },
    };
    static const struct refusal statuses[] = {
        {"{status: {replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}}", ""},
        {"{status: {replicas: 1, readyReplicas: 1, availableReplicas: 2}}",
         "status.availableReplicas:Invalid status.availableReplicas:Invalid"                      },
    };
    static const struct refusal of_sets[] = {
        {"",                                                       ""                     },
        {"{spec: {replicas: -1}}",                                 "spec.replicas:Invalid"},
        {"{spec: {template: {spec: {activeDeadlineSeconds: 5}}}}",
         "spec.template.spec.activeDeadlineSeconds:Forbidden"                             },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    check_refusals(&told, statuses, DV_COUNT(statuses));
    check_refusals(&set, of_sets, DV_COUNT(of_sets));
}

static void checks_controller_revisions(void **state)
{
    static const char base[] = "{metadata: {name: r, namespace: ns, resourceVersion: '1'}, data: "
                               "{a: 1}, revision: 1}";
    static const struct subject created = {DV_KIND_CONTROLLER_REVISION, DV_CREATE, base};
    static const struct subject updated = {DV_KIND_CONTROLLER_REVISION, DV_UPDATE, base};
    static const struct refusal rows[] = {
        {"",               ""                },
        {"{revision: -1}", "revision:Invalid"},
        {"{data: null}",   "data:Required"   },
    };
    static const struct refusal changes[] = {
        {"{revision: 2}",  ""            },
        {"{data: {a: 2}}", "data:Invalid"},
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    check_refusals(&updated, changes, DV_COUNT(changes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_classes),
        cmocka_unit_test(checks_taint_rules),
        cmocka_unit_test(checks_templates),
        cmocka_unit_test(checks_runtime_classes),
        cmocka_unit_test(checks_kinds_that_are_carried_along),
        cmocka_unit_test(checks_rules_of_roles),
        cmocka_unit_test(checks_cluster_roles),
        cmocka_unit_test(checks_bindings),
        cmocka_unit_test(checks_cluster_bindings),
        cmocka_unit_test(checks_quotas),
        cmocka_unit_test(checks_services),
        cmocka_unit_test(a_service_keeps_its_address),
        cmocka_unit_test(checks_endpoints),
        cmocka_unit_test(checks_slices_of_endpoints),
        cmocka_unit_test(checks_priority_classes),
        cmocka_unit_test(checks_daemon_sets),
        cmocka_unit_test(checks_deployments),
        cmocka_unit_test(checks_controller_revisions),
        cmocka_unit_test(answers_questions_about_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "test_resource_patch.h"

#include "base/arena.h"
#include "resource/resource.h"
#include "resource/table.h"
#include "support/docs.h"
#include "support/dvtest.h"
#include "json/json.h"

#define NOW 1767225600 /* 2026-01-01T00:00:00Z */

static const struct {
    int64_t seconds;
    const char *text;
} ages[] = {
    {-2,                    "<invalid>"},
    {-1,                    "0s"       },
    {0,                     "0s"       },
    {119,                   "119s"     },
    {120,                   "2m"       },
    {200,                   "3m20s"    },
    {599,                   "9m59s"    },
    {600,                   "10m"      },
    {10799,                 "179m"     },
    {10800,                 "3h"       },
    {12000,                 "3h20m"    },
    {28800,                 "8h"       },
    {72000,                 "20h"      },
    {172799,                "47h"      },
    {172800,                "2d"       },
    {273600,                "3d4h"     },
    {691200,                "8d"       },
    {2592000,               "30d"      },
    {63071999,              "729d"     },
    {63072000,              "2y"       },
    {63072000 + 30 * 86400, "2y30d"    },
    {252288000,             "8y"       },
    {400000000,             "12y"      },
};

static void ages_are_printed_in_one_or_two_units(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(ages); i++)
        assert_str(dv_age_print(ages[i].seconds, arena), ages[i].text);
}

static struct dv_object *new_object(enum dv_kind_id id, const char *yaml)
{
    const struct dv_kind *kind = dv_kind(id);
    const struct dv_message *message = kind->versions[0].message;
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;

    assert_ok(dv_decode_json(message, parse_yaml(yaml), DV_UNKNOWN_DROP, arena, value, NULL, &err),
              &err);
    return dv_object_new(kind, value);
}

#define META "metadata: {name: x, creationTimestamp: '2025-12-31T23:59:00Z'}"

static const struct {
    enum dv_kind_id kind;
    const char *object;
    const char *cells;
} rows[] = {
    {DV_KIND_NODE,                      "{" META "}",
     "[x, Unknown, <none>, 60s, '', <none>, <none>, <unknown>, <unknown>, <unknown>]"                                                                                                                     },
    {DV_KIND_NODE,
     "{metadata: {name: x, labels: {node-role.kubernetes.io/b: '', node-role.kubernetes.io/a: '', "
     "kubernetes.io/role: c, node-role.kubernetes.io/: ''}}, spec: {unschedulable: true}, status: "
     "{conditions: [{type: Ready, status: 'False'}], addresses: [{type: Hostname, address: h}, "
     "{type: InternalIP, address: 10.0.0.1}, {type: ExternalIP, address: 1.2.3.4}], nodeInfo: "
     "{kubeletVersion: v1, osImage: o, kernelVersion: q, containerRuntimeVersion: r}}}",                          "[x, 'NotReady,SchedulingDisabled', 'a,b,c', <unknown>, v1, 10.0.0.1, 1.2.3.4, o, q, r]"},
    {DV_KIND_NAMESPACE,                 "{" META ", status: {phase: Active}}",                                    "[x, Active, 60s]"                                                                      },
    {DV_KIND_EVENT,
     "{metadata: {name: x}, involvedObject: {kind: Pod, name: p, fieldPath: f}, type: Normal, "
     "reason: R, message: ' m\n', source: {component: c, host: h}, firstTimestamp: "
     "'2025-12-31T23:50:00Z', lastTimestamp: '2025-12-31T23:59:50Z', count: 3}",                                  "[10s, Normal, R, pod/p, f, 'c, h', m, 10m, 3, x]"                                      },
    {DV_KIND_EVENT,
     "{metadata: {name: x}, involvedObject: {kind: Node}, eventTime: "
     "'2025-12-31T23:59:00.000000Z', reportingComponent: rc, series: {count: 7, lastObservedTime: "
     "'2025-12-31T23:59:59.000000Z'}}",                                                                           "[1s, '', '', node, '', rc, '', 60s, 7, x]"                                             },
    {DV_KIND_EVENT,                     "{metadata: {name: x}}",
     "[<unknown>, '', '', '', '', '', '', <unknown>, 1, x]"                                                                                                                                               },
    {DV_KIND_SERVICE_ACCOUNT,           "{" META ", secrets: [{name: s}]}",                                       "[x, 1, 60s]"                                                                           },
    {DV_KIND_SECRET,                    "{" META ", type: Opaque, data: {a: YQ==, b: YQ==}}",                     "[x, Opaque, 2, 60s]"                                                                   },
    {DV_KIND_CONFIG_MAP,                "{" META ", data: {a: b}, binaryData: {c: YQ==}}",                        "[x, 2, 60s]"                                                                           },
    {DV_KIND_LEASE,                     "{" META ", spec: {holderIdentity: h}}",                                  "[x, h, 60s]"                                                                           },
    {DV_KIND_LEASE,                     "{" META "}",                                                             "[x, '', 60s]"                                                                          },
    {DV_KIND_CLAIM,                     "{" META "}",                                                             "[x, pending, 60s]"                                                                     },
    {DV_KIND_CLAIM,                     "{" META ", status: {allocation: {}}}",                                   "[x, allocated, 60s]"                                                                   },
    {DV_KIND_CLAIM,                     "{" META ", status: {allocation: {}, reservedFor: [{name: p, uid: u}]}}",
     "[x, 'allocated,reserved', 60s]"                                                                                                                                                                     },
    {DV_KIND_CLAIM,                     "{metadata: {name: x, deletionTimestamp: '2026-01-01T00:00:00Z'}}",
     "[x, deleted, <unknown>]"                                                                                                                                                                            },
    {DV_KIND_CLAIM,
     "{metadata: {name: x, deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {allocation: {}, "
     "reservedFor: [{uid: u}]}}",                                                                                 "[x, 'deleted,allocated,reserved', <unknown>]"                                          },
    {DV_KIND_TEMPLATE,                  "{" META "}",                                                             "[x, 60s]"                                                                              },
    {DV_KIND_CLASS,                     "{" META "}",                                                             "[x, 60s]"                                                                              },
    {DV_KIND_SLICE,                     "{" META ", spec: {driver: d, nodeName: k, pool: {name: p}}}",
     "[x, k, d, p, 60s]"                                                                                                                                                                                  },
    {DV_KIND_SLICE,                     "{" META ", spec: {driver: d, allNodes: true, pool: {name: p}}}",
     "[x, '', d, p, 60s]"                                                                                                                                                                                 },
    {DV_KIND_TAINT_RULE,
     "{" META ", spec: {taint: {key: q, value: v, effect: NoExecute, timeAdded: "
     "'2025-12-31T23:59:30Z'}}}",                                                                                 "[x, q, v, NoExecute, 30s, 60s]"                                                        },
    {DV_KIND_ROLE,                      "{" META ", rules: []}",                                                  "[x, '2025-12-31T23:59:00Z']"                                                           },
    {DV_KIND_CLUSTER_ROLE,              "{" META ", rules: []}",                                                  "[x, '2025-12-31T23:59:00Z']"                                                           },
    {DV_KIND_ROLE_BINDING,
     "{" META
     ", roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: a}, {kind: User, name: "
     "b}, {kind: Group, name: g}, {kind: ServiceAccount, name: s, namespace: ns}]}",                              "[x, Role/r, 60s, 'a, b', g, ns/s]"                                                     },
    {DV_KIND_CLUSTER_ROLE_BINDING,      "{" META ", roleRef: {kind: ClusterRole, name: r}}",
     "[x, ClusterRole/r, 60s, '', '', '']"                                                                                                                                                                },
    {DV_KIND_DAEMON_SET,
     "{" META
     ", spec: {selector: {matchLabels: {z: w, a: b}, matchExpressions: [{key: k, operator: "
     "In, values: [w, v]}, {key: l, operator: DoesNotExist}]}, template: {spec: {nodeSelector: {m: "
     "o}, containers: [{name: c, image: i}, {name: d, image: j}]}}}, status: "
     "{desiredNumberScheduled: 5, currentNumberScheduled: 4, numberReady: 3, "
     "updatedNumberScheduled: 2, numberAvailable: 1}}",                                                           "[x, 5, 4, 3, 2, 1, m=o, 60s, 'c,d', 'i,j', 'a=b,k in (v,w),!l,z=w']"                   },
    {DV_KIND_DEPLOYMENT,
     "{" META
     ", spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {spec: {containers: "
     "[{name: c, image: i}]}}}, status: {readyReplicas: 2, updatedReplicas: 1}}",                                 "[x, 2/3, 1, 0, 60s, c, i, a=b]"                                                        },
    {DV_KIND_REPLICA_SET,
     "{" META
     ", spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {spec: {containers: "
     "[{name: c, image: i}]}}}, status: {replicas: 2, readyReplicas: 1}}",                                        "[x, 3, 2, 1, 60s, c, i, a=b]"                                                          },
    {DV_KIND_JOB,
     "{" META ", spec: {completions: 3, selector: {matchLabels: {a: b}}, template: {spec: "
     "{containers: [{name: c, image: i}]}}}, status: {succeeded: 1, startTime: "
     "'2025-12-31T23:59:30Z'}}",                                                                                  "[x, Running, 1/3, 30s, 60s, c, i, a=b]"                                                },
    {DV_KIND_JOB,
     "{" META ", spec: {parallelism: 2, template: {spec: {containers: []}}}, status: {startTime: "
     "'2025-12-31T23:59:30Z', completionTime: '2025-12-31T23:59:40Z', conditions: [{type: "
     "Complete, status: 'True'}]}}",                                                                              "[x, Complete, 0/1 of 2, 10s, 60s, '', '', <none>]"                                     },
    {DV_KIND_CONTROLLER_REVISION,
     "{metadata: {name: x, creationTimestamp: '2025-12-31T23:59:00Z', ownerReferences: "
     "[{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u, controller: true}]}, data: {}, "
     "revision: 3}",                                                                                              "[x, daemonset.apps/d, 3, 60s]"                                                         },
    {DV_KIND_CONTROLLER_REVISION,       "{" META ", revision: 1}",                                                "[x, <none>, 1, 60s]"                                                                   },
    {DV_KIND_PRIORITY_CLASS,            "{" META ", value: 5, preemptionPolicy: Never}",
     "[x, 5, false, 60s, Never]"                                                                                                                                                                          },
    {DV_KIND_RESOURCE_QUOTA,
     "{" META ", status: {hard: {pods: 4, limits.cpu: 2, secrets: 1}, used: {pods: 1}}}",
     "[x, 'pods: 1/4, secrets: 0/1', 'limits.cpu: 0/2', 60s]"                                                                                                                                             },
    {DV_KIND_SERVICE,
     "{" META
     ", spec: {type: NodePort, clusterIP: 10.96.0.2, selector: {a: b, c: d}, ports: [{port: "
     "80, nodePort: 30000, protocol: TCP}, {port: 53, protocol: UDP}]}}",                                         "[x, NodePort, 10.96.0.2, <none>, '80:30000/TCP,53/UDP', 60s, 'a=b,c=d']"               },
    {DV_KIND_SERVICE,                   "{" META ", spec: {type: ExternalName, externalName: a.b}}",
     "[x, ExternalName, <none>, a.b, <none>, 60s, <none>]"                                                                                                                                                },
    {DV_KIND_SERVICE,
     "{" META ", spec: {type: LoadBalancer, externalIPs: [192.0.2.1]}, status: {loadBalancer: "
     "{ingress: [{hostname: h}]}}}",                                                                              "[x, LoadBalancer, <none>, 'h,192.0.2.1', <none>, 60s, <none>]"                         },
    {DV_KIND_ENDPOINTS,
     "{" META
     ", subsets: [{addresses: [{ip: 10.0.0.1}, {ip: 'fd00::1'}], ports: [{port: 80}, {port: "
     "81}]}]}",                                                                                                   "[x, '10.0.0.1:80,[fd00::1]:80,10.0.0.1:81 + 1 more...', 60s]"                          },
    {DV_KIND_ENDPOINT_SLICE,
     "{" META ", addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}], ports: [{port: 80}, {}]}",
     "[x, IPv4, '80,*', 10.0.0.1, 60s]"                                                                                                                                                                   },
    {DV_KIND_ENDPOINT_SLICE,            "{" META ", addressType: FQDN}",                                          "[x, FQDN, <unset>, <unset>, 60s]"                                                      },
    {DV_KIND_RUNTIME_CLASS,             "{" META ", handler: runc}",                                              "[x, runc, 60s]"                                                                        },
    {DV_KIND_VALIDATING_POLICY,
     "{" META ", spec: {paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "
     "'true'}]}}",                                                                                                "[x, 1, v1/ConfigMap, 60s]"                                                             },
    {DV_KIND_VALIDATING_POLICY_BINDING,
     "{" META ", spec: {policyName: p, paramRef: {name: a, namespace: ns}}}",                                     "[x, p, ns/a, 60s]"                                                                     },
    {DV_KIND_VALIDATING_WEBHOOKS,       "{" META ", webhooks: [{name: a}, {name: b}]}",                           "[x, 2, 60s]"                                                                           },
    {DV_KIND_MUTATING_WEBHOOKS,         "{" META "}",                                                             "[x, 0, 60s]"                                                                           },
    {DV_KIND_VALIDATING_POLICY_BINDING, "{" META ", spec: {policyName: p}}",
     "[x, p, <unset>, 60s]"                                                                                                                                                                               },
};

static void every_kind_has_its_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_object *object = new_object(rows[i].kind, rows[i].object);
        const struct dv_api_version *version = &object->kind->versions[0];
        struct dv_time now = {.seconds = NOW, .is_set = true};
        struct dv_json *cells = dv_table_cells(object, version, now, arena);
        size_t n;

        assert_doc(cells, rows[i].cells);
        assert_non_null(dv_table_columns(object->kind, version, &n));
        assert_int_equal(n, dv_json_n(cells));
        dv_object_unref(object);
    }
}

#define RUNNING "state: {running: {}}, ready: true"
#define C2 "spec: {containers: [{name: a}, {name: b}]}, "
#define I2 "spec: {containers: [{name: a}], initContainers: [{name: i}, {name: j}]}, "
#define SIDE                                                                                       \
    "spec: {containers: [{name: a}], initContainers: [{name: s, restartPolicy: Always}, {name: "   \
    "j}]}, "
#define DELETED "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, "

/* Ready, status, restarts. */
static const struct {
    const char *pod;
    const char *ready;
    const char *status;
    const char *restarts;
} pods[] = {
    {"{" C2 "status: {phase: Pending}}",                                      "0/2", "Pending",               "0"         },
    {"{" C2 "status: {phase: Failed, reason: Evicted}}",                      "0/2", "Evicted",               "0"         },
    {"{" C2 "status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: "
     "SchedulingGated}]}}",                                              "0/2", "SchedulingGated",       "0"         },
    {"{" C2 "status: {phase: Running, containerStatuses: [{name: a, " RUNNING "}, {name: b, "
     "state: {waiting: {reason: CrashLoopBackOff}}, restartCount: 3, lastState: {terminated: "
     "{finishedAt: '2025-12-31T23:55:00Z'}}}]}}",                        "1/2", "CrashLoopBackOff",      "3 (5m ago)"},
    {"{" C2 "status: {phase: Running, containerStatuses: [{name: a, state: {terminated: {exitCode: "
     "3}}}, {name: b, " RUNNING "}]}}",
     "1/2",                                                                          "ExitCode:3",            "0"         },
    {"{" C2 "status: {phase: Running, containerStatuses: [{name: a, state: {terminated: {signal: "
     "9}}}]}}",                                                          "0/2", "Signal:9",              "0"         },
    {"{" C2 "status: {phase: Running, conditions: [{type: Ready, status: 'True'}], "
     "containerStatuses: [{name: a, state: {terminated: {reason: Completed}}}, {name: b, " RUNNING
     "}]}}",                                                             "1/2", "Running",               "0"         },
    {"{" C2 "status: {phase: Running, containerStatuses: [{name: a, state: {terminated: {reason: "
     "Completed}}}, {name: b, " RUNNING "}]}}",
     "1/2",                                                                          "NotReady",              "0"         },
    {"{" I2 "status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {}}, "
     "restartCount: 2}, {name: j, state: {running: {}}}]}}",             "0/1", "Init:1/2",              "2"         },
    {"{" I2 "status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: "
     "{exitCode: 1, reason: Error}}}]}}",                                "0/1", "Init:Error",            "0"         },
    {"{" I2 "status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: "
     "{exitCode: 1}}}]}}",                                               "0/1", "Init:ExitCode:1",       "0"         },
    {"{" I2 "status: {phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {reason: "
     "ImagePullBackOff}}}]}}",                                           "0/1", "Init:ImagePullBackOff", "0"         },
    {"{" I2 "status: {phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {reason: "
     "PodInitializing}}}]}}",                                            "0/1", "Init:0/2",              "0"         },
    {"{" I2 "status: {phase: Running, initContainerStatuses: [{name: i, state: {terminated: {}}, "
     "restartCount: 2}, {name: j, state: {terminated: {}}}], containerStatuses: [{name: a, " RUNNING
     ", restartCount: 1}]}}",                                            "1/1", "Running",               "1"         },
    {"{" SIDE "status: {phase: Running, initContainerStatuses: [{name: s, started: true, ready: "
     "true, state: {running: {}}, restartCount: 4}, {name: j, state: {terminated: {}}, "
     "restartCount: 1}], containerStatuses: [{name: a, " RUNNING "}]}}",
     "2/2",                                                                          "Running",               "4"         },
    {"{" SIDE "status: {phase: Pending, initContainerStatuses: [{name: s, started: false, state: "
     "{running: {}}}]}}",                                                "0/2", "Init:0/2",              "0"         },
    {"{" DELETED C2 "status: {phase: Running}}",                              "0/2", "Terminating",           "0"         },
    {"{" DELETED C2 "status: {phase: Failed}}",                               "0/2", "Failed",                "0"         },
    {"{" DELETED C2 "status: {phase: Running, reason: NodeLost}}",            "0/2", "Unknown",               "0"         },
};

static void a_pod_is_told_in_one_word(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(pods); i++) {
        struct dv_object *object = new_object(DV_KIND_POD, pods[i].pod);
        struct dv_time now = {.seconds = NOW, .is_set = true};
        struct dv_json *cells = dv_table_cells(object, &object->kind->versions[0], now, arena);
        const char *wanted[] = {"", pods[i].ready, pods[i].status, pods[i].restarts};

        for (size_t j = 1; j < DV_COUNT(wanted); j++) {
            struct dv_err err;
            dv_str text;

            assert_ok(dv_json_as_str(dv_json_at(cells, j), &text, &err), &err);
            if (!dv_str_eq(text, dv_str_from_c(wanted[j])))
                fail_msg("%s: got %.*s, want %s", pods[i].pod, DV_FMT(text), wanted[j]);
        }
        dv_object_unref(object);
    }
}

static void the_wide_columns_of_a_pod_are_its_places(void **state)
{
    struct dv_object *object = new_object(
        DV_KIND_POD,
        "{" META ", spec: {nodeName: k, readinessGates: [{conditionType: A}, {conditionType: B}]}, "
        "status: {podIPs: [{ip: 10.0.0.1}], nominatedNodeName: m, phase: Succeeded, conditions: "
        "[{type: A, status: 'True'}]}}");
    struct dv_time now = {.seconds = NOW, .is_set = true};

    (void)state;
    assert_doc(dv_table_cells(object, &object->kind->versions[0], now, arena),
               "[x, 0/0, Succeeded, '0', 60s, 10.0.0.1, k, m, 1/2]");
    dv_object_unref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(ages_are_printed_in_one_or_two_units),
        doc_test(every_kind_has_its_row),
        doc_test(a_pod_is_told_in_one_word),
        doc_test(the_wide_columns_of_a_pod_are_its_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_validate_claim.c - what claims may say: the cases of the reference's own tests, and more. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "resource/tests/validate/test_validation.h"

#define BASE                                                                                       \
    "{metadata: {name: c, namespace: ns, uid: u, resourceVersion: '1'}, spec: {devices: "          \
    "{requests: [{name: r, exactly: {deviceClassName: c}}, {name: f, firstAvailable: [{name: s, "  \
    "deviceClassName: c}]}]}}}"
#define REQUEST(request) "{spec: {devices: {requests: [{name: r, exactly: {" request "}}]}}}"
#define SELECTOR(expression)                                                                       \
    REQUEST("deviceClassName: c, selectors: [{cel: {expression: \"" expression "\"}}]")
#define CONSTRAINT(constraint) "{spec: {devices: {constraints: [{" constraint "}]}}}"
#define CONFIG(config) "{spec: {devices: {config: [{" config "}]}}}"
#define RESULT "{request: r, driver: d, pool: p, device: x}"
#define ALLOCATED "allocation: {devices: {results: [" RESULT "]}}"
#define R0 "spec.devices.requests[0]"

static const struct subject created = {DV_KIND_CLAIM, DV_CREATE, BASE};
static const struct subject updated = {DV_KIND_CLAIM, DV_UPDATE, BASE};
static const struct subject reported = {DV_KIND_CLAIM, DV_UPDATE_STATUS, BASE};

static void checks_metadata(void **state)
{
    static const struct refusal rows[] = {
        {"",                                                                              ""                              },
        {"{metadata: {name: ''}}",                                                        "metadata.name:Required"        },
        {"{metadata: {name: A}}",                                                         "metadata.name:Invalid"         },
        {"{metadata: {namespace: null}}",                                                 "metadata.namespace:Required"   },
        {"{metadata: {namespace: a.b}}",                                                  "metadata.namespace:Invalid"    },
        {"{metadata: {generateName: a-b-}}",                                              ""                              },
        {"{metadata: {generateName: Ab-}}",                                               "metadata.generateName:Invalid" },
        {"{metadata: {labels: {'a b': x}}}",                                              "metadata.labels:Invalid"       },
        {"{metadata: {labels: {a: 'x y'}}}",                                              "metadata.labels:Invalid"       },
        {"{metadata: {annotations: {Example.com/a: 'x y'}}}",                             ""                              },
        {"{metadata: {annotations: {a/b/c: x}}}",                                         "metadata.annotations:Invalid"  },
        {"{metadata: {finalizers: [orphan, a.b/c]}}",                                     ""                              },
        {"{metadata: {finalizers: [mine]}}",                                              "metadata.finalizers[0]:Invalid"},
        {"{metadata: {finalizers: [orphan, foregroundDeletion]}}",                        "metadata.finalizers:Invalid"   },
        {"{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u}]}}", ""                              },
        {"{metadata: {ownerReferences: [{}]}}",
         "metadata.ownerReferences.apiVersion:Invalid metadata.ownerReferences.kind:Invalid "
         "metadata.ownerReferences.name:Invalid metadata.ownerReferences.uid:Invalid"                                     },
        {"{metadata: {managedFields: [{operation: Fly, fieldsType: X}]}}",
         "metadata.managedFields[0].operation:Invalid "
         "metadata.managedFields[0].fieldsType:Invalid"                                                                   },
        {"{metadata: {generation: -1}}",                                                  "metadata.generation:Invalid"   },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void checks_requests(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct refusal rows[] = {
        {"{spec: {devices: {requests: null}}}",                            ""                                     },
        {REQUEST(""),                                                      R0 ".exactly.deviceClassName:Required" },
        {REQUEST("deviceClassName: A"),                                    R0 ".exactly.deviceClassName:Invalid"  },
        {REQUEST("deviceClassName: c, count: -1"),                         R0 ".exactly.count:Invalid"            },
        {REQUEST("deviceClassName: c, allocationMode: All, count: 1"),     R0 ".exactly.count:Invalid"            },
        {REQUEST("deviceClassName: c, allocationMode: Some"),
         R0 ".exactly.allocationMode:NotSupported"                                                                },
        {REQUEST("deviceClassName: c, selectors: [{}]"),                   R0 ".exactly.selectors[0].cel:Required"},
        {"{spec: {devices: {requests: [{name: r}]}}}",                     R0 ":Required"                         },
        {"{spec: {devices: {requests: [{name: r, firstAvailable: []}]}}}", R0 ":Required"                         },
        {"{spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}, firstAvailable: "
         "[{name: s, deviceClassName: c}]}]}}}",                  R0 ":Invalid"                          },
        {REQUEST("deviceClassName: c, tolerations: [{key: '!', operator: X, effect: Z}, {operator: "
                 "Exists, value: v}, {value: '!'}, {}]"),
         R0 ".exactly.tolerations[0].key:Invalid " R0
            ".exactly.tolerations[0].operator:NotSupported " R0
            ".exactly.tolerations[0].effect:NotSupported " R0
            ".exactly.tolerations[1].value:Invalid " R0 ".exactly.tolerations[2].value:Invalid"                   },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    check_refusal(&created,
                  repeated("{spec: {devices: {requests: [{name: r, firstAvailable: [",
                           "{name: s#, deviceClassName: c}", 9, "]}]}}}", arena),
                  R0 ".firstAvailable:TooMany");
    check_refusal(&created,
                  repeated("{spec: {devices: {requests: [{name: r, firstAvailable: [",
                           "{name: s, deviceClassName: c}", 2, "]}]}}}", arena),
                  R0 ".firstAvailable[1]:Duplicate");
    check_refusal(&created,
                  repeated("{spec: {devices: {requests: [", "{name: R#}", 33, "]}}}", arena),
                  "spec.devices.requests:TooMany");
}

static void checks_references_to_requests(void **state)
{
    static const struct refusal rows[] = {
        {CONSTRAINT("requests: [r, f, f/s], matchAttribute: a.b/c"),       ""                                                            },
        {CONSTRAINT("requests: [x], matchAttribute: a.b/c"),
         "spec.devices.constraints[0].requests[0]:Invalid"                                                                               },
        {CONSTRAINT("requests: [r/s, f/x, a/b/c], matchAttribute: a.b/c"),
         "spec.devices.constraints[0].requests[0]:Invalid "
         "spec.devices.constraints[0].requests[1]:Invalid "
         "spec.devices.constraints[0].requests[2]:Invalid"                                                                               },
        {CONSTRAINT("requests: [r, r], matchAttribute: a.b/c"),
         "spec.devices.constraints[0].requests[1]:Duplicate"                                                                             },
        {CONSTRAINT("matchAttribute: c"),                                  "spec.devices.constraints[0].matchAttribute:Invalid"          },
        {CONSTRAINT("matchAttribute: 1c"),                                 "spec.devices.constraints[0].matchAttribute:Invalid "
                                           "spec.devices.constraints[0].matchAttribute:Invalid"},
        {CONSTRAINT("matchAttribute: ''"),                                 "spec.devices.constraints[0].matchAttribute:Invalid "
                                           "spec.devices.constraints[0].matchAttribute:Invalid"},
        {CONSTRAINT("distinctAttribute: a.b/1"),
         "spec.devices.constraints[0].distinctAttribute:Invalid"                                                                         },
        {CONSTRAINT("matchAttribute: a.b/c, distinctAttribute: '!'"),      ""                                                            },
        {CONSTRAINT(""),                                                   "spec.devices.constraints[0]:Required"                        },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void checks_parameters(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const char *big = repeated("{spec: {devices: {config: [{opaque: {driver: d, parameters: {",
                               "a#: 0", 1500, "}}}]}}}", arena);
    const struct refusal rows[] = {
        {CONFIG("requests: [r], opaque: {driver: d, parameters: {}}"), ""                                                },
        {CONFIG("requests: [r]"),                                      "spec.devices.config[0].opaque:Required"          },
        {CONFIG("opaque: {}"),                                         "spec.devices.config[0].opaque.driver:Required "
                               "spec.devices.config[0].opaque.parameters:Required"         },
        {CONFIG("opaque: {driver: d, parameters: null}"),
         "spec.devices.config[0].opaque.parameters:Required"                                                             },
        {CONFIG("opaque: {driver: d, parameters: [1]}"),
         "spec.devices.config[0].opaque.parameters:Invalid"                                                              },
        {CONFIG("opaque: {driver: d, parameters: 1}"),
         "spec.devices.config[0].opaque.parameters:Invalid"                                                              },
        {big,                                                          "spec.devices.config[0].opaque.parameters:TooLong"},
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void checks_selectors(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    static const struct refusal rows[] = {
        {SELECTOR("device.driver == \\\"d\\\""),                                                          ""},
        {SELECTOR("1 + 1"),
         R0 ".exactly.selectors[0].cel.expression: Invalid value: \"1 + 1\": must "
            "evaluate to bool or the unknown type, not int"                                                 },
        {SELECTOR("device.nope"),
         R0 ".exactly.selectors[0].cel.expression: Invalid value: \"device.nope\": compilation "
            "failed: ERROR: <input>:1:7: undefined field 'nope'\n | device.nope\n | ......^"                },
        {SELECTOR(
             "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, "
             "[0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, "
             "[0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f > 0))))))"),
         R0 ".exactly.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit"              },
    };
    const char *before =
        "{spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c, selectors: [{cel: "
        "{expression: \"true ";
    const char *after = "\"}}]}}]}}}";

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_str(problem_texts(&created, rows[i].change, NULL, arena), rows[i].want);
    check_refusal(&created, repeated(before, "// ", 2000, after, arena), "");
    check_refusal(&created, repeated(before, "// ", 3000, after, arena),
                  R0 ".exactly.selectors[0].cel.expression:TooLong");
}

static void keeps_the_spec_of_a_claim(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    static const struct refusal rows[] = {
        {"{metadata: {labels: {a: b}}}",           ""                          },
        {"{spec: {devices: {requests: []}}}",      "spec:Invalid"              },
        {"{metadata: {uid: v, labels: {a: '!'}}}",
         "metadata.labels:Invalid metadata.uid:Invalid metadata.labels:Invalid"},
        {"{spec: {devices: {constraints: []}}}",   ""                          },
    };

    (void)state;
    check_refusals(&updated, rows, DV_COUNT(rows));
    assert_str(
        problem_texts(&updated, REQUEST("deviceClassName: '<c>', count: 2"), NULL, arena),
        "spec: Invalid value: "
        "{\"Devices\":{\"Requests\":[{\"Name\":\"r\",\"Exactly\":{\"DeviceClassName\":"
        "\"\\u003cc\\u003e\",\"Selectors\":null,\"AllocationMode\":\"ExactCount\",\"Count\":2,"
        "\"AdminAccess\":null,\"Tolerations\":null,\"Capacity\":null},\"FirstAvailable\":null}]"
        ",\"Constraints\":null,\"Config\":null}}: field is immutable");
}

static void refuses_finalizers_while_deleting(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const char *dying =
        "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [a.b/c]}}";

    (void)state;
    assert_str(
        problem_texts(&updated,
                      "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: "
                      "[a.b/z, a.b/c, a.b/d]}}",
                      dying, arena),
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
        "deleted, found new finalizers []string{\"a.b/d\", \"a.b/z\"}");
    assert_str(problem_texts(&updated, "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}}",
                             dying, arena),
               "");
    assert_str(problem_texts(&updated, "", dying, arena),
               "metadata.deletionTimestamp: Invalid value: null: field is immutable");
}

static void checks_reservations(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct refusal rows[] = {
        {"{status: {allocation: {}}}",                                   ""                                              },
        {"{status: {reservedFor: [{resource: pods, name: p, uid: u}]}}",
         "status.reservedFor:Forbidden"                                                                                  },
        {"{status: {" ALLOCATED
         ", reservedFor: [{resource: pods, name: p, uid: u}, {resource: pods, "
         "name: p, uid: u}, {}]}}",                             "status.reservedFor[2].resource:Required status.reservedFor[2].name:Required "
         "status.reservedFor[2].uid:Required status.reservedFor[1]:Duplicate"},
    };
    const char *used = "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {" ALLOCATED
                       ", reservedFor: [{resource: pods, name: p, uid: u}]}}";
    const char *more = "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {" ALLOCATED
                       ", reservedFor: [{resource: pods, name: q, uid: v}]}}";
    const char *less =
        "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {" ALLOCATED "}}";

    (void)state;
    check_refusals(&reported, rows, DV_COUNT(rows));
    check_refusal(&reported,
                  repeated("{status: {" ALLOCATED ", reservedFor: [",
                           "{resource: pods, name: p, uid: u#}", 256, "]}}", arena),
                  "");
    check_refusal(&reported,
                  repeated("{status: {" ALLOCATED ", reservedFor: [",
                           "{resource: pods, name: p, uid: u#}", 257, "]}}", arena),
                  "status.reservedFor:TooMany");
    assert_str(problem_texts(&reported, more, used, arena),
               "status.reservedFor: Forbidden: new entries may not be added while "
               "`deallocationRequested` or `deletionTimestamp` are set");
    assert_str(problem_texts(&reported, less, used, arena), "");
}

static void keeps_an_allocation(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    static const struct refusal rows[] = {
        {"{status: {" ALLOCATED "}}",                                   ""                                                     },
        {"{status: {allocation: {devices: {results: [{request: f, driver: d, pool: p, device: x}, "
         "{request: f/s, driver: d, pool: p, device: x}]}}}}", ""                                                     },
        {"{status: {allocation: {devices: {results: [{request: x}, {request: f/x, driver: d, pool: "
         "p, "
         "device: x, shareID: z}], config: [{source: X, opaque: {driver: d, parameters: {}}}, "
         "{requests: [x]}]}, nodeSelector: {}}}}",             "status.allocation.devices.results[0].request:Invalid "
         "status.allocation.devices.results[0].driver:Required "
         "status.allocation.devices.results[0].pool:Required "
         "status.allocation.devices.results[0].device:Invalid "
         "status.allocation.devices.results[1].request:Invalid "
         "status.allocation.devices.results[1].shareID:Invalid "
         "status.allocation.devices.config[0].source:NotSupported "
         "status.allocation.devices.config[1].source:Required "
         "status.allocation.devices.config[1].requests[0]:Invalid "
         "status.allocation.devices.config[1].opaque:Required "
         "status.allocation.nodeSelector.nodeSelectorTerms:Required"},
    };

    (void)state;
    check_refusals(&reported, rows, DV_COUNT(rows));
    assert_str(problem_texts(&reported, "", "{status: {" ALLOCATED "}}", arena), "");
    assert_str(
        problem_texts(&reported, "{status: {" ALLOCATED "}}", "{status: {" ALLOCATED "}}", arena),
        "");
    assert_str(
        problem_texts(&reported, "{status: {allocation: {}}}", "{status: {" ALLOCATED "}}", arena),
        "status.allocation: Invalid value: "
        "{\"Devices\":{\"Results\":null,\"Config\":null},\"NodeSelector\":null,"
        "\"AllocationTimestamp\":null}: field is immutable");
}

static void checks_the_status_of_devices(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    static const struct refusal rows[] = {
        {"{status: {" ALLOCATED ", devices: [{driver: d, pool: p, device: x, data: {a: 1}, "
         "networkData: {ips: [192.0.2.5/24, '2001:db8::5/64', '::/0']}}]}}", ""                                                     },
        {"{status: {" ALLOCATED ", devices: [{driver: d, pool: p, device: z}, {driver: d, pool: p, "
         "device: x}, {driver: d, pool: p, device: x}]}}",                   "status.devices[0]:Invalid status.devices[2]:Duplicate"},
        {"{status: {" ALLOCATED ", devices: [{driver: d, pool: p, device: x, shareID: "
         "3f2504e0-4f89-11d3-9a0c-0305e82c3301}]}}",                         "status.devices[0]:Invalid"                            },
        {"{status: {" ALLOCATED
         ", devices: [{driver: d, pool: p, device: x, data: [1], networkData: "
         "{ips: [10.0.0.1, 10.0.0.01/8, 10.0.0.1/8, 10.0.0.1/8, '1::/129', "
         "'::ffff:1.2.3.4/128']}}]}}",                                       "status.devices[0].data:Invalid status.devices[0].networkData.ips[0]:Invalid "
         "status.devices[0].networkData.ips[1]:Invalid "
         "status.devices[0].networkData.ips[4]:Invalid "
         "status.devices[0].networkData.ips[5]:Invalid "
         "status.devices[0].networkData.ips[3]:Duplicate"                                     },
        {"{status: {" ALLOCATED
         ", devices: [{driver: d, pool: p, device: x, conditions: [{type: A, "
         "status: 'True', reason: R, lastTransitionTime: '2026-01-01T00:00:00Z'}, {type: A, "
         "status: "
         "Maybe, reason: '!', observedGeneration: -1}]}]}}",                 "status.devices[0].conditions[1].type:Duplicate "
         "status.devices[0].conditions[1].status:NotSupported "
         "status.devices[0].conditions[1].observedGeneration:Invalid "
         "status.devices[0].conditions[1].lastTransitionTime:Required "
         "status.devices[0].conditions[1].reason:Invalid"               },
    };

    (void)state;
    check_refusals(&reported, rows, DV_COUNT(rows));
    check_refusal(
        &reported,
        repeated(
            "{status: {" ALLOCATED ", devices: [{driver: d, pool: p, device: x, conditions: [",
            "{type: A#, status: 'True', reason: R, lastTransitionTime: '2026-01-01T00:00:00Z'}", 9,
            "]}]}}", arena),
        "status.devices[0].conditions:TooMany");
    check_refusal(&reported,
                  repeated("{status: {" ALLOCATED
                           ", devices: [{driver: d, pool: p, device: x, networkData: "
                           "{interfaceName: '",
                           "\xc3\xa9", 129, "', hardwareAddress: x}}]}}", arena),
                  "status.devices[0].networkData.interfaceName:TooLong");
    assert_str(
        problem_texts(&reported,
                      "{status: {" ALLOCATED ", devices: [{driver: d, pool: p, device: x, "
                      "networkData: {ips: ['2001:DB8:0:0:0::1/064']}}]}}",
                      NULL, arena),
        "status.devices[0].networkData.ips[0]: Invalid value: \"2001:DB8:0:0:0::1/064\": must "
        "be in canonical form (\"2001:db8::1/64\")");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_metadata),
        cmocka_unit_test(checks_requests),
        cmocka_unit_test(checks_references_to_requests),
        cmocka_unit_test(checks_parameters),
        cmocka_unit_test(checks_selectors),
        cmocka_unit_test(keeps_the_spec_of_a_claim),
        cmocka_unit_test(refuses_finalizers_while_deleting),
        cmocka_unit_test(checks_reservations),
        cmocka_unit_test(keeps_an_allocation),
        cmocka_unit_test(checks_the_status_of_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

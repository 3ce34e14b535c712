/* test_validate_slice.c - what slices may say: the cases of the reference's own tests, and more. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "resource/tests/validate/test_validation.h"

#define BASE                                                                                       \
    "{metadata: {name: s, resourceVersion: '1'}, spec: {driver: d.example.com, nodeName: node-a, " \
    "pool: {name: p, generation: 1, resourceSliceCount: 1}}}"
#define DEVICE(device) "{spec: {devices: [{name: d, " device "}]}}"
#define SHARED(capacity)                                                                           \
    DEVICE("allowMultipleAllocations: true, capacity: {m: {value: '10', " capacity "}}")
#define POLICY "spec.devices[0].capacity[m].requestPolicy"

static const struct subject created = {DV_KIND_SLICE, DV_CREATE, BASE};
static const struct subject updated = {DV_KIND_SLICE, DV_UPDATE, BASE};

static void accepts_a_good_slice(void **state)
{
    static const struct refusal rows[] = {
        {"",                                                                                ""                      },
        {"{metadata: {name: null, generateName: g-}}",                                      "metadata.name:Required"},
        {"{metadata: {uid: u, generation: 3, finalizers: [a.b/c], managedFields: []}}",     ""                      },
        {"{spec: {driver: D.Example.com}}",                                                 ""                      },
        {"{spec: {pool: {name: a/b.c/d}}}",                                                 ""                      },
        {DEVICE("attributes: {a: {int: 1}, x.y/b: {version: 1.2.3}, a/b/c: {bool: true}}"), ""                      },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void limits_the_number_of_devices(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    static const char *const rich[] = {
        "{name: d#, taints: [{key: k, effect: None}]}",
        "{name: d#, consumesCounters: [{counterSet: s, counters: {c: {value: '1'}}}]}",
        "{name: d#, attributes: {a: {ints: [1]}}}",
    };

    (void)state;
    check_refusal(&created, repeated("{spec: {devices: [", "{name: d#}", 128, "]}}", arena), "");
    check_refusal(&created, repeated("{spec: {devices: [", "{name: d#}", 129, "]}}", arena),
                  "spec.devices:TooMany");
    for (size_t i = 0; i < DV_COUNT(rich); i++) {
        check_refusal(&created, repeated("{spec: {devices: [", rich[i], 64, "]}}", arena), "");
        check_refusal(&created, repeated("{spec: {devices: [", rich[i], 65, "]}}", arena),
                      "spec.devices:TooMany");
    }
}

static void limits_attributes_and_their_values(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct refusal rows[] = {
        {DEVICE("attributes: {a: {}}"),                                                            "spec.devices[0].attributes[a]:Invalid"        },
        {DEVICE("attributes: {a: {int: 1, bool: true}}"),                                          "spec.devices[0].attributes[a]:Invalid"        },
        {DEVICE("attributes: {a: {ints: []}}"),                                                    "spec.devices[0].attributes[a].ints:Invalid"   },
        {DEVICE("attributes: {a: {version: v1}}"),                                                 "spec.devices[0].attributes[a].version:Invalid"},
        {DEVICE("attributes: {a: {version: "
                "v123456789012345678901234567890123456789012345678901234567890123456}}"),
         "spec.devices[0].attributes[a].version:Invalid "
         "spec.devices[0].attributes[a].version:TooLong"                                                                                          },
        {DEVICE("attributes: {a.b: {int: 1}}"),                                                    "spec.devices[0].attributes:Invalid"           },
        {DEVICE("attributes: {/b: {int: 1}}"),                                                     "spec.devices[0].attributes:Invalid"           },
        {DEVICE("attributes: {a/: {int: 1}}"),                                                     "spec.devices[0].attributes:Invalid"           },
        {DEVICE("capacity: {a23456789012345678901234567890123: {value: '1'}}"),
         "spec.devices[0].capacity:TooLong"                                                                                                       },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    check_refusal(
        &created,
        repeated("{spec: {devices: [{name: d, attributes: {", "a#: {int: 1}", 33, "}}]}}", arena),
        "spec.devices[0]:Invalid");
    check_refusal(
        &created,
        repeated("{spec: {devices: [{name: d, attributes: {a: {ints: [", "#", 49, "]}}}]}}", arena),
        "spec.devices[0]:Invalid");
}

static void shortens_long_keys_in_paths(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str text = problem_texts(
        &created,
        DEVICE("attributes: "
               "{x/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
               "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx/y: {}}"),
        NULL, arena);

    (void)state;
    assert_str(text,
               "spec.devices[0].attributes[x/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
               "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx/y]: Invalid value: \"\": exactly "
               "one value must be specified");
}

static void checks_how_capacity_is_shared(void **state)
{
    static const struct refusal rows[] = {
        {DEVICE("capacity: {m: {value: '1', requestPolicy: {}}}"),                             POLICY ":Forbidden"       },
        {SHARED("requestPolicy: {}"),                                                          ""                        },
        {SHARED("requestPolicy: {default: '1'}"),                                              ""                        },
        {SHARED("requestPolicy: {validValues: ['1']}"),                                        POLICY ".default:Required"},
        {SHARED("requestPolicy: {validRange: {min: '1'}}"),                                    POLICY ".default:Required"},
        {SHARED("requestPolicy: {default: '1', validRange: {}}"),
         POLICY ".validRange.min:Required"                                                                               },
        {SHARED("requestPolicy: {default: '1', validRange: {min: '1', max: '9', step: '2'}}"), ""                        },
        {SHARED("requestPolicy: {default: '2', validRange: {min: '1', max: '4', step: '2'}}"),
         POLICY ".validRange.step:Invalid " POLICY ".validRange.step:Invalid"                                            },
        {SHARED("requestPolicy: {default: '5', validRange: {min: '5', max: '4'}}"),
         POLICY ".validRange.max:Invalid " POLICY ".validRange.max:Invalid"                                              },
        {SHARED("requestPolicy: {default: '5', validRange: {min: '5', max: '11'}}"),
         POLICY ".validRange.max:Invalid"                                                                                },
        {SHARED("requestPolicy: {default: '9', validRange: {min: '9', step: '2'}}"),
         POLICY ".validRange.step:Invalid"                                                                               },
        {SHARED("requestPolicy: {default: '9', validRange: {min: '9', step: '0'}}"),           ""                        },
        {SHARED("requestPolicy: {default: '2', validValues: ['1', '2']}"),                     ""                        },
        {SHARED("requestPolicy: {default: '3', validValues: ['1', '2']}"),
         POLICY ".validValues:Invalid"                                                                                   },
        {SHARED("requestPolicy: {default: '1', validValues: ['1', '1000m']}"),
         POLICY ".validValues[1]:Duplicate"                                                                              },
        {SHARED("requestPolicy: {default: '1', validValues: ['2', '1']}"),
         POLICY ".validValues[1]:Invalid"                                                                                },
        {SHARED("requestPolicy: {default: '1', validValues: ['1', '11']}"),
         POLICY ".validValues[1]:Invalid"                                                                                },
        {SHARED("requestPolicy: {default: '1', validValues: ['1'], validRange: {min: '1'}}"),
         POLICY ":Forbidden"                                                                                             },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void wants_one_choice_of_nodes(void **state)
{
    static const struct refusal rows[] = {
        {"{spec: {nodeName: null}}",                                                                          "spec:Required"                           },
        {"{spec: {nodeName: ''}}",                                                                            "spec.nodeName:Invalid spec:Required"     },
        {"{spec: {allNodes: true}}",                                                                          "spec:Invalid"                            },
        {"{spec: {nodeName: null, allNodes: false}}",                                                         "spec.allNodes:Invalid spec:Required"     },
        {"{spec: {nodeName: null, perDeviceNodeSelection: false}}",
         "spec.perDeviceNodeSelection:Invalid spec:Required"                                                                                            },
        {"{spec: {nodeName: null, nodeSelector: {}}}",
         "spec.nodeSelector.nodeSelectorTerms:Required "
         "spec.nodeSelector.nodeSelectorTerms:Invalid"                                                                                                  },
        {"{spec: {nodeName: null, nodeSelector: {nodeSelectorTerms: [{}, {}]}}}",
         "spec.nodeSelector.nodeSelectorTerms:Invalid"                                                                                                  },
        {"{spec: {nodeName: null, nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, "
         "operator: In}, {key: a, operator: Exists, values: [b]}, {key: a, operator: Gt}, {key: "
         "a}], "
         "matchFields: [{key: x, operator: In, values: [b]}]}]}}}",                                  "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values:Required "
         "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[1].values:Forbidden "
         "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[2].values:Required "
         "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[3].operator:Invalid "
         "spec.nodeSelector.nodeSelectorTerms[0].matchFields[0].key:Invalid"},
        {DEVICE("allNodes: true"),                                                                            "spec.devices[0]:Invalid"                 },
        {"{spec: {nodeName: null, perDeviceNodeSelection: true, devices: [{name: a}, {name: b, "
         "allNodes: true}, {name: c, nodeName: node-a, allNodes: true}, {name: d, nodeName: ''}]}}", "spec.devices[0]:Required spec.devices[2]:Invalid spec.devices[3].nodeName:Invalid "
         "spec.devices[3]:Required"        },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void checks_counters(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct refusal rows[] = {
        {"{spec: {sharedCounters: [{name: s, counters: {c: {value: '1'}}}], devices: []}}",
         "spec:Invalid"                                                                                                       },
        {"{spec: {sharedCounters: [{name: s, counters: {c: {value: '1'}}}, {name: s, counters: {c: "
         "{value: '1'}}}]}}",                                                      "spec.sharedCounters[1]:Duplicate"},
        {"{spec: {sharedCounters: [{}]}}",
         "spec.sharedCounters[0].name:Required spec.sharedCounters[0].counters:Required"                                      },
        {"{spec: {sharedCounters: [{name: S, counters: {C: {value: '1'}}}]}}",
         "spec.sharedCounters[0].name:Invalid spec.sharedCounters[0].counters:Invalid"                                        },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    check_refusal(&created,
                  repeated("{spec: {sharedCounters: [", "{name: s#, counters: {c: {value: '1'}}}",
                           8, "]}}", arena),
                  "");
    check_refusal(&created,
                  repeated("{spec: {sharedCounters: [", "{name: s#, counters: {c: {value: '1'}}}",
                           9, "]}}", arena),
                  "spec.sharedCounters:TooMany");
    check_refusal(&created,
                  repeated("{spec: {sharedCounters: [{name: s, counters: {", "c#: {value: '1'}", 33,
                           "}}]}}", arena),
                  "spec.sharedCounters[0].counters:TooMany");
    check_refusal(&created,
                  repeated("{spec: {devices: [{name: d, consumesCounters: [",
                           "{counterSet: s#, counters: {c: {value: '1'}}}", 3, "]}]}}", arena),
                  "spec.devices[0].consumesCounters:TooMany");
    check_refusal(&created,
                  repeated("{spec: {devices: [{name: d, consumesCounters: [",
                           "{counterSet: s, counters: {c: {value: '1'}}}", 2, "]}]}}", arena),
                  "spec.devices[0].consumesCounters[1]:Duplicate");
}

static void checks_binding_conditions(void **state)
{
    static const struct refusal rows[] = {
        {DEVICE("bindingConditions: [a, b, c, d], bindingFailureConditions: [e]"),    ""                                                },
        {DEVICE("bindingConditions: [a, b, c, d, e], bindingFailureConditions: [f]"),
         "spec.devices[0].bindingConditions:TooMany"                                                                                    },
        {DEVICE("bindingConditions: ['!'], bindingFailureConditions: [f]"),
         "spec.devices[0].bindingConditions[0]:Invalid"                                                                                 },
        {DEVICE("bindingConditions: [a, a], bindingFailureConditions: [f, f]"),
         "spec.devices[0].bindingConditions[1]:Duplicate "
         "spec.devices[0].bindingFailureConditions[1]:Duplicate"                                                                        },
        {DEVICE("bindingConditions: [a], bindingFailureConditions: [a]"),
         "spec.devices[0].bindingFailureConditions[0]:Invalid"                                                                          },
        {DEVICE("bindingConditions: [a]"),                                            "spec.devices[0].bindingFailureConditions:Invalid"},
        {DEVICE("bindingFailureConditions: [a]"),                                     "spec.devices[0].bindingConditions:Invalid"       },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void checks_taints(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct refusal rows[] = {
        {DEVICE("taints: [{key: k, value: v, effect: None}]"),     ""                                       },
        {DEVICE("taints: [{key: '!', value: '!', effect: Nope}]"),
         "spec.devices[0].taints[0].key:Invalid spec.devices[0].taints[0].value:Invalid "
         "spec.devices[0].taints[0].effect:NotSupported"                                                    },
        {DEVICE("taints: [{}]"),                                   "spec.devices[0].taints[0].key:Invalid "
                                 "spec.devices[0].taints[0].key:Invalid "
                                 "spec.devices[0].taints[0].effect:Required"},
    };
    const char *stored = DEVICE("taints: [{key: k, effect: Newer}]");

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    check_refusal(&created,
                  repeated("{spec: {devices: [{name: d, taints: [", "{key: k#, effect: None}", 17,
                           "]}]}}", arena),
                  "spec.devices[0].taints:TooMany");
    assert_str(problem_texts(&updated, stored, stored, arena), "");
    assert_int_not_equal(
        problem_texts(&updated, DEVICE("taints: [{key: l, effect: Newer}]"), stored, arena).n, 0);
    assert_int_not_equal(problem_texts(&updated,
                                       "{spec: {devices: [{name: e, taints: [{key: k, effect: "
                                       "Newer}]}]}}",
                                       stored, arena)
                             .n,
                         0);
}

static void keeps_what_identifies_a_slice(void **state)
{
    static const struct refusal rows[] = {
        {"",                                                              ""                                },
        {"{spec: {driver: e.example.com, nodeName: m, pool: {name: q}}}",
         "spec.pool.name:Invalid spec.driver:Invalid spec.nodeName:Invalid"                                 },
        {"{spec: {nodeName: null, allNodes: true}}",                      "spec.nodeName:Invalid"           },
        {"{metadata: {resourceVersion: null}}",                           "metadata.resourceVersion:Invalid"},
        {"{metadata: {name: t}}",                                         "metadata.name:Invalid"           },
        {"{spec: {pool: {generation: 7, resourceSliceCount: 2}}}",        ""                                },
    };

    (void)state;
    check_refusals(&updated, rows, DV_COUNT(rows));
}

static void keeps_devices_apart(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct refusal rows[] = {
        {"{spec: {devices: [{name: a}, {name: b}, {name: a}]}}", "spec.devices[2]:Duplicate"                                                         },
        {"{spec: {devices: [{name: A}, {}]}}",
         "spec.devices[0].name:Invalid spec.devices[1].name:Invalid"                                                                                 },
        {"{spec: {devices: [{name: d, nodeAllocatableResourceMappings: {cpu: "
         "{allocationMultiplier: '2'}, example.com/x: {capacityKey: m}, memory: "
         "{allocationMultiplier: '-1'}}}]}}",           "spec.devices[0].nodeAllocatableResourceMappings:Invalid "
         "spec.devices[0].nodeAllocatableResourceMappings[example.com/x].capacityKey:Invalid "
         "spec.devices[0].nodeAllocatableResourceMappings[memory].allocationMultiplier:Invalid"},
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    check_refusal(&created,
                  repeated("{spec: {devices: [{name: d7}, ", "{name: d#}", 20, "]}}", arena),
                  "spec.devices[8]:Duplicate");
}

static void says_what_the_reference_says(void **state)
{
    static const struct refusal rows[] = {
        {"{spec: {allNodes: true}}",
         "spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, "
         "`nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields "
         "are "
         "set"                                                                                                          },
        {DEVICE("attributes: {x: {int: 1, string: z}}"),
         "spec.devices[0].attributes[x]: Invalid value: {\"IntValue\":1,\"BoolValue\":null,"
         "\"StringValue\":\"z\",\"VersionValue\":null,\"IntValues\":null,\"BoolValues\":null,"
         "\"StringValues\":null,\"VersionValues\":null}: exactly one value must be specified"                           },
        {"{spec: {pool: {generation: -1}}}",             "spec.pool.generation: Invalid value: -1: must be "
                                             "greater than or equal to zero"},
        {"{spec: {driver: \"a\\u0001\\u00e9\\u00a0\"}}",
         "spec.driver: Invalid value: \"a\\x01\xc3\xa9\\u00a0\": a lowercase RFC 1123 subdomain "
         "must "
         "consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
         "an "
         "alphanumeric character (e.g. 'example.com', regex used for validation is "
         "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"                                          },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

        assert_str(problem_texts(&created, rows[i].change, NULL, arena), rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_a_good_slice),
        cmocka_unit_test(limits_the_number_of_devices),
        cmocka_unit_test(limits_attributes_and_their_values),
        cmocka_unit_test(shortens_long_keys_in_paths),
        cmocka_unit_test(checks_how_capacity_is_shared),
        cmocka_unit_test(wants_one_choice_of_nodes),
        cmocka_unit_test(checks_counters),
        cmocka_unit_test(checks_binding_conditions),
        cmocka_unit_test(checks_taints),
        cmocka_unit_test(keeps_what_identifies_a_slice),
        cmocka_unit_test(keeps_devices_apart),
        cmocka_unit_test(says_what_the_reference_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "test_resource_patch.h"

#include "resource/patch.h"
#include "resource/resource.h"
#include "support/docs.h"
#include "support/dvtest.h"

/* All on pods: {metadata: {finalizers}}, {spec: {containers by name, volumes that retain keys}}. */
static const struct {
    const char *doc;
    const char *patch;
    const char *wanted;
} good[] = {
  /* maps */
    {"{metadata: {labels: {a: '1', b: '2'}}}",                                               "{metadata: {labels: {a: null, c: '3'}}}",
     "{metadata: {labels: {b: '2', c: '3'}}}"                                                                                                                                                                                          },
    {"{metadata: {labels: {a: '1'}}}",                                                       "{metadata: {labels: {$patch: replace, z: '1'}}}",
     "{metadata: {labels: {z: '1'}}}"                                                                                                                                                                                                  },
    {"{metadata: {labels: {a: '1'}}}",                                                       "{metadata: {labels: {$patch: delete}}}",
     "{metadata: {labels: {}}}"                                                                                                                                                                                                        },
    {"{spec: {nodeName: a}}",                                                                "{spec: null}",                                                 "{}"                                                                      },
    {"{spec: {nodeName: a}}",                                                                "{spec: {hostname: h, x: {y: null, z: 1}}}",
     "{spec: {nodeName: a, hostname: h, x: {z: 1}}}"                                                                                                                                                                                   },
    {"{spec: {nodeName: a}}",                                                                "null",                                                         "{spec: {nodeName: a}}"                                                   },
 /* lists by key */
    {"{spec: {containers: [{name: a, image: i}, {name: b, image: i}]}}",
     "{spec: {containers: [{name: b, image: j}]}}",                                                                                                          "{spec: {containers: [{name: a, image: i}, {name: b, image: j}]}}"        },
    {"{spec: {containers: [{name: a, image: i}]}}",
     "{spec: {containers: [{name: b, env: [{name: x, value: null}]}]}}",                                                                                     "{spec: {containers: [{name: b, env: [{name: x}]}, {name: a, image: i}]}}"},
    {"{spec: {containers: [{name: a}, {name: b}, {name: c}]}}",
     "{spec: {containers: [{name: c}, {name: b}]}}",                                                                                                         "{spec: {containers: [{name: a}, {name: c}, {name: b}]}}"                 },
    {"{spec: {containers: [{name: a, ports: [{containerPort: 80}, {containerPort: 81}]}]}}",
     "{spec: {containers: [{name: a, ports: [{containerPort: 80, name: x}]}]}}",                                                                             "{spec: {containers: [{name: a, ports: [{containerPort: 80, name: x}, {containerPort: "
     "81}]}]}}"                                                                                                                                        },
    {"{spec: {containers: [{name: a}, {name: b}]}}",
     "{spec: {containers: [{name: a, $patch: delete}]}}",                                                                                                    "{spec: {containers: [{name: b}]}}"                                       },
    {"{spec: {containers: [{name: a}]}}",                                                    "{spec: {containers: [{name: x, $patch: delete}]}}",
     "{spec: {containers: [{name: a}]}}"                                                                                                                                                                                               },
    {"{spec: {containers: [{name: a}, {name: b}]}}",
     "{spec: {containers: [{$patch: replace}, {name: c}]}}",                                                                                                 "{spec: {containers: [{name: c}]}}"                                       },
    {"{spec: {containers: [{name: a}, {name: b}]}}",
     "{spec: {containers: [{$patch: replace}, {name: c}, {name: c, image: x}]}}",                                                                            "{spec: {containers: [{name: c}, {name: c, image: x}]}}"                  },
    {"{spec: {}}",                                                                           "{spec: {containers: [{name: a, $patch: delete}, {name: b}]}}",
     "{spec: {containers: [{name: b}]}}"                                                                                                                                                                                               },
 /* the order that is asked for */
    {"{spec: {containers: [{name: a}, {name: b}, {name: z}]}}",
     "{spec: {$setElementOrder/containers: [{name: c}, {name: b}, {name: a}], containers: [{name: "
     "c}]}}",                                                                                                                                                "{spec: {containers: [{name: c}, {name: b}, {name: a}, {name: z}]}}"      },
    {"{spec: {containers: [{name: a}, {name: b}]}}",
     "{spec: {$setElementOrder/containers: [{name: b}, {name: a}]}}",                                                                                        "{spec: {containers: [{name: b}, {name: a}]}}"                            },
    {"{spec: {}}",                                                                           "{spec: {$setElementOrder/containers: [{name: b}]}}",           "{spec: {}}"                                                              },
 /* sets */
    {"{metadata: {finalizers: [a, b]}}",                                                     "{metadata: {finalizers: [c, a]}}",
     "{metadata: {finalizers: [c, a, b]}}"                                                                                                                                                                                             },
    {"{metadata: {finalizers: [a, b, c]}}",
     "{metadata: {$deleteFromPrimitiveList/finalizers: [b, x]}}",                                                                                            "{metadata: {finalizers: [a, c]}}"                                        },
    {"{metadata: {finalizers: [a, b]}}",
     "{metadata: {$deleteFromPrimitiveList/finalizers: [a], $setElementOrder/finalizers: [c, b], "
     "finalizers: [c]}}",                                                                                                                                    "{metadata: {finalizers: [c, b]}}"                                        },
    {"{metadata: {}}",                                                                       "{metadata: {$deleteFromPrimitiveList/finalizers: [a]}}",       "{metadata: {}}"                                                          },
 /* lists that are replaced */
    {"{spec: {tolerations: [{key: a}]}}",                                                    "{spec: {tolerations: [{key: b}]}}",
     "{spec: {tolerations: [{key: b}]}}"                                                                                                                                                                                               },
 /* one of several */
    {"{spec: {volumes: [{name: v, emptyDir: {}}]}}",
     "{spec: {volumes: [{name: v, $retainKeys: [name, hostPath], hostPath: {path: /x}}]}}",                                                                  "{spec: {volumes: [{name: v, hostPath: {path: /x}}]}}"                    },
};

static void patches_follow_the_tables(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(good); i++) {
        struct dv_json *got;
        struct dv_err err;

        got = dv_patch_strategic(&dv_message_pod, parse_yaml(good[i].doc),
                                 parse_yaml(good[i].patch), arena, &err);
        assert_ok(got, &err);
        assert_doc(got, good[i].wanted);
    }
}

static const struct {
    const char *patch;
    enum dv_code code;
    const char *message;
} bad[] = {
    {"[]",                                                                          DV_INVALID_ARGUMENT,
     "json: cannot unmarshal array into Go value of type map[string]interface {}"                                                               },
    {"{spec: {containers: [{image: x}]}}",                                          DV_INTERNAL,
     "map: map[image:x] does not contain declared merge key: name"                                                                              },
    {"{spec: {containers: [{$patch: delete}]}}",                                    DV_INTERNAL,
     "map: map[$patch:delete] does not contain declared merge key: name"                                                                        },
    {"{spec: {containers: [{name: a, $patch: merge}]}}",                            DV_INTERNAL,
     "merging lists cannot yet be specified in the patch"                                                                                       },
    {"{metadata: {labels: {$patch: frob}}}",                                        DV_INTERNAL,
     "unknown patch type: frob in map: map[$patch:frob]"                                                                                        },
    {"{spec: {$retainKeys: x}}",                                                    DV_INVALID_ARGUMENT,    "invalid patch format of retainKeys"},
    {"{spec: {$retainKeys: [a], b: 1}}",                                            DV_INVALID_ARGUMENT,    "invalid patch format of retainKeys"},
    {"{metadata: {$deleteFromPrimitiveList/finalizers: x}}",                        DV_INVALID_ARGUMENT,
     "invalid patch format of primitive list"                                                                                                   },
    {"{spec: {$setElementOrder/containers: x}}",                                    DV_INTERNAL,
     "expected a []interface {}, but received a string"                                                                                         },
    {"{spec: {$setElementOrder/containers: [{name: a}], containers: [{name: b}]}}", DV_INTERNAL,
     "doesn't match $setElementOrder list"                                                                                                      },
    {"{spec: {containers: [[]]}}",                                                  DV_FAILED_PRECONDITION, "the server rejected our request"   },
    {"{x: {y: {}}}",                                                                DV_INTERNAL,
     "unable to find api field in struct Pod for the json field \"x\""                                                                          },
};

static void wrong_patches_are_told_as_the_reference_does(void **state)
{
    static const char doc[] =
        "{metadata: {labels: {a: '1'}, finalizers: [f]}, spec: {containers: [{name: a}]}, x: {}}";

    (void)state;
    for (size_t i = 0; i < DV_COUNT(bad); i++) {
        struct dv_err err;

        assert_null(dv_patch_strategic(&dv_message_pod, parse_yaml(doc), parse_yaml(bad[i].patch),
                                       arena, &err));
        assert_err(&err, bad[i].code, bad[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(patches_follow_the_tables),
        doc_test(wrong_patches_are_told_as_the_reference_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

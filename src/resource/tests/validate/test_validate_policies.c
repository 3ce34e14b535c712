/* test_validate_policies.c - what holds writes and pods to rules: admission policies, webhooks and
 * disruption budgets. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "resource/tests/validate/test_validation.h"

static void checks_policies(void **state)
{
    static const char base[] =
        "{metadata: {name: p, resourceVersion: '1'}, spec: {failurePolicy: Fail, matchConstraints: "
        "{matchPolicy: Exact, resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: "
        "[v1], resources: [pods]}]}, validations: [{expression: 'true'}]}}";
    static const struct subject created = {DV_KIND_VALIDATING_POLICY, DV_CREATE, base};
#define EXPRESSION "spec.validations[0].expression:"
#define MATCH "spec.matchConstraints.resourceRules[0]."
    static const struct refusal rows[] = {
        {"",                                                                                                 ""                                                                                       },
        {"{spec: {validations: [{expression: ' '}]}}",                                                       EXPRESSION "Required"                                                                    },
        {"{spec: {validations: [{expression: '1'}]}}",                                                       EXPRESSION "Invalid"                                                                     },
        {"{spec: {validations: [{expression: 'params == 1'}]}}",                                             EXPRESSION "Invalid"                                                                     },
        {"{spec: {paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: 'params "
         "== 1'}]}}",                                                                               ""                                                                                       },
        {"{spec: {validations: [{expression: 'variables.x == 1'}]}}",                                        EXPRESSION "Invalid"                                                                     },
        {"{spec: {variables: [{name: x, expression: '1'}], validations: [{expression: 'variables.x "
         "== 1'}]}}",                                                                               ""                                                                                       },
        {"{spec: {variables: [{name: x, expression: '1'}, {name: x, expression: '1'}]}}",
         "spec.variables[1].name:Duplicate"                                                                                                                                                           },
        {"{spec: {variables: [{name: 'a.b', expression: ''}]}}",
         "spec.variables[0].name:Invalid spec.variables[0].expression:Required"                                                                                                                       },
        {"{spec: {validations: [{expression: \"true &&\\ntrue\"}]}}",
         "spec.validations[0].message:Required"                                                                                                                                                       },
        {"{spec: {validations: [{expression: 'true', message: ' ', messageExpression: ' ', reason: "
         "Unauthorized}]}}",                                                                        "spec.validations[0].messageExpression:Invalid spec.validations[0].message:Invalid "
         "spec.validations[0].reason:NotSupported"                                                                                                               },
        {"{spec: {validations: [{expression: 'true', messageExpression: "
         "'string(authorizer.path(\"/\").check(\"get\").allowed())'}]}}",                           "spec.validations[0].messageExpression:Invalid"                                          },
        {"{spec: {validations: null}}",                                                                      "spec.validations:Required spec.auditAnnotations:Required"                               },
        {"{spec: {validations: null, auditAnnotations: [{key: a, valueExpression: 'null'}]}}",               ""                                                                                       },
        {"{spec: {auditAnnotations: [{key: a, valueExpression: '1'}, {key: a, valueExpression: "
         "''}]}}",                                                                                  "spec.auditAnnotations[0].valueExpression:Invalid "
         "spec.auditAnnotations[1].valueExpression:Required "
         "spec.auditAnnotations[1].key:Duplicate"                                                                                                                          },
        {"{spec: {matchConditions: [{name: '', expression: ''}, {name: a, expression: '1'}]}}",
         "spec.matchConditions[0].expression:Required spec.matchConditions[0].name:Required "
         "spec.matchConditions[1].expression:Invalid"                                                                                                                                                 },
        {"{spec: {variables: [{name: x, expression: '1'}], matchConditions: [{name: a, expression: "
         "'variables.x == 1'}]}}",                                                                  "spec.matchConditions[0].expression:Invalid"                                             },
        {"{spec: {failurePolicy: Maybe}}",                                                                   "spec.failurePolicy:NotSupported"                                                        },
        {"{spec: {paramKind: {apiVersion: '', kind: ''}}}",
         "spec.paramKind.apiVersion:Required spec.paramKind.kind:Required"                                                                                                                            },
        {"{spec: {paramKind: {apiVersion: a/b/c, kind: 1_x}}}",
         "spec.paramKind.apiVersion:Invalid spec.paramKind.kind:Invalid"                                                                                                                              },
        {"{spec: {matchConstraints: null}}",                                                                 "spec.matchConstraints:Required"                                                         },
        {"{spec: {matchConstraints: {matchPolicy: Any, resourceRules: null}}}",
         "spec.matchConstraints.matchPolicy:NotSupported "
         "spec.matchConstraints.resourceRules:Required"                                                                                                                                               },
        {"{spec: {matchConstraints: {resourceRules: [{}]}}}",
         MATCH "operations:Required " MATCH "apiGroups:Required " MATCH
               "apiVersions:Required " MATCH "resources:Required"                                                                                                                                     },
        {"{spec: {matchConstraints: {resourceRules: [{operations: ['*', GET], apiGroups: ['*', a], "
         "apiVersions: ['*', ''], resources: ['*', pods], scope: None, resourceNames: [a, a]}]}}}", MATCH "resourceNames[1]:Duplicate " MATCH "operations:Invalid " MATCH
               "operations[1]:NotSupported " MATCH "apiGroups:Invalid " MATCH
               "apiVersions:Invalid " MATCH "apiVersions[1]:Required " MATCH
               "resources:Invalid " MATCH "scope:NotSupported"                            },
        {"{spec: {matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [''], "
         "apiVersions: [v1], resources: [pods/*, pods/log, '*/status', nodes/status, '']}]}}}",     MATCH "resources[1]:Invalid " MATCH "resources[3]:Invalid " MATCH "resources[4]:Required"},
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void checks_policy_bindings(void **state)
{
    static const char base[] = "{metadata: {name: b, resourceVersion: '1'}, spec: {policyName: p, "
                               "validationActions: [Deny]}}";
    static const struct subject created = {DV_KIND_VALIDATING_POLICY_BINDING, DV_CREATE, base};
    static const struct refusal rows[] = {
        {"",                                                                              ""                                                                     },
        {"{spec: {policyName: ''}}",                                                      "spec.policyName:Required"                                             },
        {"{spec: {policyName: Bad_}}",                                                    "spec.policyName:Invalid"                                              },
        {"{spec: {validationActions: null}}",                                             "spec.validationActions:Required"                                      },
        {"{spec: {validationActions: [Deny, Warn, X]}}",
         "spec.validationActions[2]:NotSupported spec.validationActions:Invalid"                                                                                 },
        {"{spec: {paramRef: {}}}",
         "spec.paramRef:Required spec.paramRef.parameterNotFoundAction:Required"                                                                                 },
        {"{spec: {paramRef: {name: a/b, selector: {}, parameterNotFoundAction: Maybe}}}",
         "spec.paramRef.name:Invalid spec.paramRef.name:Forbidden spec.paramRef.selector:Forbidden "
         "spec.paramRef.parameterNotFoundAction:NotSupported"                                                                                                    },
        {"{spec: {matchResources: {matchPolicy: Exact, objectSelector: {matchExpressions: [{key: "
         "a, "
         "operator: In}]}}}}",                                                   "spec.matchResouces.objectSelector.matchExpressions[0].values:Required"},
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

/* -- Webhooks ------------------------------------------------------------------------------- */

#define HOOK                                                                                       \
    "name: a.b.c, failurePolicy: Fail, matchPolicy: Exact, sideEffects: None, "                    \
    "admissionReviewVersions: [v1]"
#define URL_HOOK "{" HOOK ", clientConfig: {url: 'https://h:8443/p'}}"

static void checks_webhooks(void **state)
{
    static const char base[] =
        "{metadata: {name: w, resourceVersion: '1'}, webhooks: [" URL_HOOK "]}";
    static const struct subject created = {DV_KIND_VALIDATING_WEBHOOKS, DV_CREATE, base};
    static const struct subject updated = {DV_KIND_VALIDATING_WEBHOOKS, DV_UPDATE, base};
#define AT "webhooks[0]."
#define SERVICE(fields) "{webhooks: [{" HOOK ", clientConfig: {service: {" fields "}}}]}"
#define URL(text) "{webhooks: [{" HOOK ", clientConfig: {url: '" text "'}}]}"
    static const struct refusal rows[] = {
        {"",                                                         ""                                                              },
        {"{webhooks: null}",                                         ""                                                              },
        {"{webhooks: [{}]}",                                         AT "name:Required " AT "sideEffects:Required " AT
                                "clientConfig:Required " AT "admissionReviewVersions:Required"           },
        {"{webhooks: [" URL_HOOK ", " URL_HOOK "]}",                 "webhooks[1].name:Duplicate"                                    },
        {"{webhooks: [{" HOOK "}]}",                                 AT "clientConfig:Required"                                      },
        {"{webhooks: [{" HOOK ", clientConfig: {url: 'https://h', service: {name: a, namespace: "
         "b}}}]}",                                          AT "clientConfig:Required"                                      },
        {URL("http://h"),                                            AT "clientConfig.url:Invalid"                                   },
        {URL("https://"),                                            AT "clientConfig.url:Invalid"                                   },
        {URL("h/p"),                                                 AT "clientConfig.url:Invalid " AT "clientConfig.url:Invalid"    },
        {URL("https://u:p@h/p?q#f"),                                 AT "clientConfig.url:Invalid " AT
                                        "clientConfig.url:Invalid " AT "clientConfig.url:Invalid"},
        {URL("https://h/a b"),                                       AT "clientConfig.url:Required"                                  },
        {SERVICE("name: a, namespace: b, port: 443, path: /x/y.z/"), ""                                                              },
        {SERVICE("name: a, namespace: b, path: /"),                  ""                                                              },
        {SERVICE("port: 0"),
         AT "clientConfig.service.name:Required " AT "clientConfig.service.namespace:Required " AT
            "clientConfig.service.port:Invalid"                                                                                      },
        {SERVICE("name: a, namespace: b, path: x"),
         AT "clientConfig.service.path:Invalid " AT "clientConfig.service.path:Invalid"                                              },
        {SERVICE("name: a, namespace: b, path: /a//B"),
         AT "clientConfig.service.path:Invalid " AT "clientConfig.service.path:Invalid"                                              },
    };
    static const char *const good[] = {
        "name: a.b.c",       "failurePolicy: Fail",           "matchPolicy: Exact",
        "sideEffects: None", "admissionReviewVersions: [v1]", "clientConfig: {url: 'https://h'}"};
    static const struct {
        const char *fields; /* instead of one of those above, or beside them */
        const char *want;
    } hooks[] = {
        {"name: a.b",                                                                          AT "name:Invalid"                   },
        {"name: A.b.c",                                                                        AT "name:Invalid"                   },
        {"failurePolicy: Maybe",                                                               AT "failurePolicy:NotSupported"     },
        {"matchPolicy: Any",                                                                   AT "matchPolicy:NotSupported"       },
        {"sideEffects: Some",                                                                  AT "sideEffects:NotSupported"       },
        {"timeoutSeconds: 0",                                                                  AT "timeoutSeconds:Invalid"         },
        {"timeoutSeconds: 31",                                                                 AT "timeoutSeconds:Invalid"         },
        {"timeoutSeconds: 30",                                                                 ""                                  },
        {"admissionReviewVersions: [v2]",                                                      AT "admissionReviewVersions:Invalid"},
        {"admissionReviewVersions: [v2, v1beta1]",                                             ""                                  },
        {"admissionReviewVersions: [v1, v1, '1']",
         AT "admissionReviewVersions[1]:Invalid " AT "admissionReviewVersions[2]:Invalid"                                          },
        {"rules: [{}]",                                                                        AT "rules[0].operations:Required " AT "rules[0].apiGroups:Required " AT
                           "rules[0].apiVersions:Required " AT "rules[0].resources:Required"                },
        {"namespaceSelector: {matchExpressions: [{key: a, operator: In}]}",
         AT "namespaceSelector.matchExpressions[0].values:Required"                                                                },
        {"matchConditions: [{name: a, expression: 'request.name == \"x\"'}]",                  ""                                  },
        {"matchConditions: [{name: a, expression: 'params == 1'}, {name: a, expression: ''}]",
         AT "matchConditions[0].expression:Invalid " AT "matchConditions[1].expression:Required " AT
            "matchConditions[1].name:Duplicate"                                                                                    },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
    check_refusals(&updated, rows, DV_COUNT(rows));
    for (size_t i = 0; i < DV_COUNT(hooks); i++) {
        dv_str text = dv_str_from_c(hooks[i].fields);

        for (size_t k = 0; k < DV_COUNT(good); k++)
            if (!dv_str_starts_with(text, dv_str_slice(dv_str_from_c(good[k]), 0, 5)))
                text = dv_str_printf(arena, "%.*s, %s", DV_FMT(text), good[k]);
        text = dv_str_printf(arena, "{webhooks: [{%.*s}]}", DV_FMT(text));
        check_refusal(&created, text.p, hooks[i].want);
    }
}

static void checks_webhooks_that_mutate(void **state)
{
    static const char base[] = "{metadata: {name: w, resourceVersion: '1'}, webhooks: [{" HOOK
                               ", clientConfig: {url: 'https://h'}, reinvocationPolicy: Never}]}";
    static const struct subject created = {DV_KIND_MUTATING_WEBHOOKS, DV_CREATE, base};
    static const struct refusal rows[] = {
        {"",                                                                                       ""},
        {"{webhooks: [{" HOOK ", clientConfig: {url: 'https://h'}, reinvocationPolicy: Always}]}",
         "webhooks[0].reinvocationPolicy:NotSupported"                                               },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

/* ---- what is kept for others ---- */

static const struct subject budget = {
    DV_KIND_DISRUPTION_BUDGET, DV_CREATE,
    "{metadata: {name: b, namespace: ns}, spec: {minAvailable: 1, selector: {}}}"};

static void checks_disruption_budgets(void **state)
{
    static const struct refusal rows[] = {
        {"",                                                                     ""                                 },
        {"{spec: {minAvailable: 50%, unhealthyPodEvictionPolicy: AlwaysAllow}}", ""                                 },
        {"{spec: {minAvailable: -1}}",                                           "spec.minAvailable:Invalid"        },
        {"{spec: {minAvailable: 101%}}",                                         "spec.minAvailable:Invalid"        },
        {"{spec: {minAvailable: half}}",                                         "spec.minAvailable:Invalid"        },
        {"{spec: {maxUnavailable: 1}}",                                          "spec:Invalid"                     },
        {"{spec: {unhealthyPodEvictionPolicy: Never}}",
         "spec.unhealthyPodEvictionPolicy:NotSupported"                                                             },
        {"{spec: {selector: {matchLabels: {a: '-'}}}}",                          "spec.selector.matchLabels:Invalid"},
    };

    (void)state;
    check_refusals(&budget, rows, DV_COUNT(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_policies),           cmocka_unit_test(checks_policy_bindings),
        cmocka_unit_test(checks_webhooks),           cmocka_unit_test(checks_webhooks_that_mutate),
        cmocka_unit_test(checks_disruption_budgets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

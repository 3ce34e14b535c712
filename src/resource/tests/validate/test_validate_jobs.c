/* test_validate_jobs.c - what is refused in Jobs, and sets of indexes. */
#include "resource/tests/validate/test_validation.h"

#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "resource/job_indexes.h"

#define LABELS                                                                                     \
    "{batch.kubernetes.io/controller-uid: u, batch.kubernetes.io/job-name: j, controller-uid: u, " \
    "job-name: j, a: b}"
#define BASE                                                                                       \
    "{metadata: {name: j, namespace: ns, uid: u, resourceVersion: '1'}, spec: {selector: "         \
    "{matchLabels: {batch.kubernetes.io/controller-uid: u}}, template: {metadata: {labels: "       \
    "" LABELS "}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}"
#define RULE(rule) "{spec: {podFailurePolicy: {rules: [" rule "]}}}"
#define INDEXED(more) "{spec: {completionMode: Indexed, completions: 10, " more "}}"

static const struct subject created = {DV_KIND_JOB, DV_CREATE, BASE "}"};
static const struct subject updated = {DV_KIND_JOB, DV_UPDATE, BASE "}"};
static const struct subject told = {DV_KIND_JOB, DV_UPDATE_STATUS,
                                    BASE
                                    ", status: {startTime: '2026-01-01T00:00:00Z', failed: 2}}"};

static void checks_the_spec(void **state)
{
    static const struct refusal rows[] = {
        {"",                                                                                      ""                                                       },
        {"{spec: {parallelism: -1}}",                                                             "spec.parallelism:Invalid"                               },
        {"{spec: {maxFailedIndexes: 1}}",
         "spec.backoffLimitPerIndex:Required spec.maxFailedIndexes:Invalid"                                                                                },
        {"{spec: {completionMode: Indexed, parallelism: 1}}",                                     "spec.completions:Required"                              },
        {INDEXED("parallelism: 100001"),                                                          "spec.parallelism:Invalid"                               },
        {INDEXED("backoffLimitPerIndex: 1, maxFailedIndexes: 11"),                                "spec.maxFailedIndexes:Invalid"                          },
        {"{spec: {completionMode: Indexed, completions: 100001, backoffLimitPerIndex: 1, "
         "parallelism: 10001}}",                                                         "spec.maxFailedIndexes:Required spec.parallelism:Invalid"},
        {"{spec: {managedBy: ''}}",                                                               "spec.managedBy:Required"                                },
        {"{spec: {managedBy: example.com/x}}",                                                    ""                                                       },
        {"{spec: {managedBy: Example.com/x}}",                                                    "spec.managedBy:Invalid"                                 },
        {"{spec: {managedBy: 'example.com/x y'}}",                                                "spec.managedBy:Invalid"                                 },
        {"{metadata: {uid: v}}",
         "spec.template.metadata.labels[controller-uid]:Invalid "
         "spec.template.metadata.labels[batch.kubernetes.io/controller-uid]:Invalid "
         "spec.selector:Invalid"                                                                                                                           },
        {"{spec: {manualSelector: true, selector: {matchLabels: "
         "{batch.kubernetes.io/controller-uid: "
         "null, a: b}}}}",                                                               ""                                                       },
        {"{spec: {selector: {matchLabels: {a: c}}}}",
         "spec.selector:Invalid spec.template.metadata.labels:Invalid"                                                                                     },
        {"{spec: {template: {spec: {restartPolicy: Sometimes}}}}",
         "spec.template.spec.restartPolicy:NotSupported "
         "spec.template.spec.restartPolicy:NotSupported"                                                                                                   },
        {"{spec: {podFailurePolicy: {rules: []}, template: {spec: {restartPolicy: OnFailure}}}}",
         "spec.template.spec.restartPolicy:Invalid"                                                                                                        },
        {"{metadata: {name: j.k}, spec: {completionMode: Indexed, completions: 2, template: "
         "{metadata: {labels: {job-name: j.k, batch.kubernetes.io/job-name: j.k}}}}}",   "metadata.name:Invalid"                                  },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void checks_policies(void **state)
{
    static const struct refusal rows[] = {
        {RULE("{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}"),                ""                                    },
        {RULE("{onExitCodes: {operator: In, values: [1]}}"),
         "spec.podFailurePolicy.rules[0].action:Required"                                                                            },
        {RULE("{action: FailIndex, onExitCodes: {operator: In, values: [1]}}"),
         "spec.podFailurePolicy.rules[0].action:Invalid"                                                                             },
        {RULE("{action: Count, onExitCodes: {operator: Is, values: [1, 1, 3, 2]}}"),
         "spec.podFailurePolicy.rules[0].onExitCodes.operator:NotSupported "
         "spec.podFailurePolicy.rules[0].onExitCodes.values[1]:Duplicate "
         "spec.podFailurePolicy.rules[0].onExitCodes.values:Invalid"                                                                 },
        {RULE("{action: Count, onExitCodes: {operator: In, values: [0], containerName: x}}"),
         "spec.podFailurePolicy.rules[0].onExitCodes.containerName:Invalid "
         "spec.podFailurePolicy.rules[0].onExitCodes.values[0]:Invalid"                                                              },
        {RULE("{action: Count, onExitCodes: {operator: In, values: []}}"),
         "spec.podFailurePolicy.rules[0].onExitCodes.values:Invalid"                                                                 },
        {RULE("{action: Count, onPodConditions: [{type: 'a b', status: Maybe}]}"),
         "spec.podFailurePolicy.rules[0].onPodConditions[0].type:Invalid "
         "spec.podFailurePolicy.rules[0].onPodConditions[0].status:NotSupported"                                                     },
        {RULE("{action: Count, onPodConditions: [{type: a}], onExitCodes: {operator: In, values: "
              "[1]}}"),
         "spec.podFailurePolicy.rules[0]:Invalid"                                                                                    },
        {"{spec: {podReplacementPolicy: TerminatingOrFailed, podFailurePolicy: {rules: []}}}",
         "spec.podReplacementPolicy:NotSupported"                                                                                    },
        {INDEXED("successPolicy: {rules: []}"),                                                "spec.successPolicy.rules:Required"   },
        {INDEXED("successPolicy: {rules: [{}]}"),                                              "spec.successPolicy.rules[0]:Required"},
        {INDEXED("successPolicy: {rules: [{succeededIndexes: '0-2', succeededCount: 3}]}"),    ""                                    },
        {INDEXED("successPolicy: {rules: [{succeededIndexes: '0-2', succeededCount: 4}]}"),
         "spec.successPolicy.rules[0].succeededCount:Invalid"                                                                        },
        {INDEXED("successPolicy: {rules: [{succeededIndexes: '0-10'}]}"),
         "spec.successPolicy.rules[0].succeededIndexes:Invalid"                                                                      },
    };

    (void)state;
    check_refusals(&created, rows, DV_COUNT(rows));
}

static void keeps_what_may_not_change(void **state)
{
    static const struct {
        const char *change;
        const char *old;
        const char *want;
    } rows[] = {
        {"{spec: {completions: 1, parallelism: 7, suspend: true, backoffLimit: 1}}",   "",                                                  ""                                                               },
        {"{spec: {completions: 2}}",                                                   "",                                                  "spec.completions: Invalid value: 2: field is immutable"         },
        {INDEXED("parallelism: 10"),                                                   "{spec: {completionMode: Indexed, completions: 5}}", ""                                                               },
        {INDEXED("parallelism: 9"),                                                    "{spec: {completionMode: Indexed, completions: 5}}",
         "spec.completions: Invalid value: 10: can only be modified in tandem with "
         "spec.parallelism"                                                                                                                                                                                  },
        {"{spec: {managedBy: a.b/c}}",                                                 "",
         "spec.managedBy: Invalid value: \"a.b/c\": field is immutable"                                                                                                                                      },
        {"{spec: {completionMode: Indexed, completions: 1, backoffLimitPerIndex: 1}}",
         "{spec: {completionMode: Indexed, completions: 1}}",                                                                               "spec.backoffLimitPerIndex: Invalid value: 1: field is immutable"},
 /* One that does not run may be changed in where and with what it runs. */
        {"{spec: {suspend: true, template: {spec: {nodeSelector: {a: b}, containers: [{name: c, "
         "image: i, resources: {requests: {cpu: 1}}}]}}}}",                   "{spec: {suspend: true}}",                           ""                                                               },
        {"{spec: {suspend: false, template: {spec: {affinity: {nodeAffinity: {}}}}}}",
         "{spec: {suspend: true}}",                                                                                                         ""                                                               },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_str(problem_texts(&updated, rows[i].change, rows[i].old, arena), rows[i].want);
    assert_true(dv_str_starts_with(
        problem_texts(&updated, "{spec: {template: {spec: {nodeSelector: {a: b}}}}}", "", arena),
        DV_STR("spec.template: Invalid value: {")));
    assert_true(dv_str_starts_with(
        problem_texts(&updated,
                      "{spec: {suspend: true, template: {spec: {containers: [{name: c, image: "
                      "other}]}}}}",
                      "{spec: {suspend: true}}", arena),
        DV_STR("spec.template.spec: Invalid value: {")));
}

#define TRUE(name) "{type: " name ", status: 'True'}"
#define CONDITIONS(list) "{status: {conditions: [" list "]}}"

static void checks_the_status(void **state)
{
    static const struct refusal rows[] = {
        {"",                                                                                        ""                               },
        {"{status: {active: 1, ready: 2}}",                                                         "status.ready:Invalid"           },
        {"{status: {failed: 1}}",                                                                   "status.failed:Invalid"          },
        {"{status: {startTime: '2026-01-02T00:00:00Z'}}",                                           "status.startTime:Invalid"       },
        {"{status: {completionTime: '2026-01-02T00:00:00Z'}}",                                      "status.completionTime:Invalid"  },
        {CONDITIONS(TRUE("Failed")),                                                                "status.conditions:Invalid"      },
        {CONDITIONS(TRUE("FailureTarget") ", " TRUE("Failed")),                                     ""                               },
        {"{status: {terminating: 1, conditions: [" TRUE("FailureTarget") ", " TRUE("Failed") "]}}",
         "status.terminating:Invalid"                                                                                                },
        {CONDITIONS(TRUE("SuccessCriteriaMet") ", " TRUE("FailureTarget")),
         "status.conditions:Invalid"                                                                                                 },
        {"{status: {completedIndexes: '0'}}",                                                       "status.completedIndexes:Invalid"},
        {"{status: {failedIndexes: '0'}}",                                                          "status.failedIndexes:Invalid"   },
        {"{spec: {completionMode: Indexed, completions: 9, backoffLimitPerIndex: 1}, status: "
         "{completedIndexes: '0,3-5', failedIndexes: '2,5-6'}}",                           "status.failedIndexes:Invalid"   },
        {"{status: {uncountedTerminatedPods: {succeeded: [a, a], failed: ['']}}}",
         "status.uncountedTerminatedPods.failed[0]:Invalid "
         "status.uncountedTerminatedPods.succeeded[1]:Duplicate"                                                                     },
    };

    (void)state;
    check_refusals(&told, rows, DV_COUNT(rows));
}

/* ---- sets of indexes ---- */

static dv_str read_again(const char *text, int64_t completions, struct dv_arena *arena)
{
    struct dv_job_indexes indexes = dv_job_indexes_parse(dv_str_from_c(text), completions, arena);

    return dv_job_indexes_print(&indexes, arena);
}

static void indexes_are_read_and_written(void **state)
{
    static const struct {
        const char *text;
        int64_t completions;
        const char *read;
        const char *fault;
    } rows[] = {
        {"",                     9, "",        NULL                                               },
        {"1,3-5,7",              9, "1,3-5,7", NULL                                               },
        {"0,1",                  9, "0,1",     NULL                                               },
        {"0,1,2",                9, "0-2",     NULL                                               },
        {"0-3",                  2, "0,1",     "too large index: \"3\""                           },
        {"3,1",                  9, "3",       "non-increasing order, previous: 3, current: 1"    },
        {"1-1",                  9, "1",       "non-increasing order, previous: 1, current: 1"    },
        {"a,2",                  9, "2",       "cannot convert string to integer for index: \"a\""},
        {"2,",                   9, "2",       "cannot convert string to integer for index: \"\"" },
        {"1-2-3",                9, "",
         "the fragment \"1-2-3\" violates the requirement that an index interval can have at most "
         "two parts separated by '-'"                                                             },
        {"-1",                   9, "",        "cannot convert string to integer for index: \"\"" },
        {"99999999999999999999", 9, "",
         "cannot convert string to integer for index: \"99999999999999999999\""                   },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        int64_t n;
        const char *fault =
            dv_job_indexes_fault(dv_str_from_c(rows[i].text), rows[i].completions, arena, &n);

        assert_str(read_again(rows[i].text, rows[i].completions, arena), rows[i].read);
        assert_true((fault == NULL) == (rows[i].fault == NULL));
        if (fault)
            assert_string_equal(fault, rows[i].fault);
    }
}

/* Against sets of single numbers. */
static void indexes_are_sets(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b += 7) {
            struct dv_job_indexes x = {0};
            struct dv_job_indexes y = {0};
            struct dv_job_indexes both;

            for (int i = 0; i < 8; i++) {
                if (a >> i & 1)
                    dv_job_indexes_append(&x, i, arena);
                if (b >> i & 1)
                    dv_job_indexes_append(&y, i, arena);
            }
            both = dv_job_indexes_union(&x, &y, arena);
            assert_int_equal(dv_job_indexes_n(&both), __builtin_popcount(a | b));
            assert_int_equal(dv_job_indexes_n_shared(&x, &y), __builtin_popcount(a & b));
            for (int i = 0; i < 8; i++)
                assert_int_equal(dv_job_indexes_has(&both, i), ((a | b) >> i & 1) != 0);
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_the_spec),
        cmocka_unit_test(checks_policies),
        cmocka_unit_test(keeps_what_may_not_change),
        cmocka_unit_test(checks_the_status),
        cmocka_unit_test(indexes_are_read_and_written),
        cmocka_unit_test(indexes_are_sets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

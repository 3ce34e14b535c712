/* test_job_plan.c - what is decided about Jobs, as tables.
 *
 * Pods are words: a letter for what they are (P pending, R running and ready, S succeeded, F
 * failed, D being deleted), behind it the index where the Job has such, then marks: `-` for one
 * that has been let go, `n` for one that the status has noted. Actions are `+` for a pod, with its
 * index;
 * `~` for one that is let go, `x` for one that is deleted, and `status`, behind which stands what
 * the status would then say. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <string.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/job_plan.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "json/json.h"

#define NOW 1000000

static int set_up(void **state)
{
    *state = dv_arena_new();
    return 0;
}

static int tear_down(void **state)
{
    dv_arena_free(*state);
    return 0;
}

static void *read_as(const struct dv_message *message, dv_str yaml, struct dv_arena *arena)
{
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(yaml, NULL, arena, &err);

    assert_ok(doc, &err);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err), &err);
    return value;
}

/* ---- a Job with a few pods ---- */

struct world {
    struct dv_arena *arena;
    struct dv_api_job *job;
    DV_VEC(const struct dv_api_pod *) pods;
    DV_VEC(dv_str) succeeded; /* that are noted */
    DV_VEC(dv_str) failed;
    bool has_failed;
    struct dv_plan plan;
};

static struct dv_api_job *job_of(const char *spec, const char *status, struct dv_arena *arena)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_JOB);
    struct dv_api_job *job = read_as(
        &dv_message_job,
        dv_str_printf(arena,
                      "{metadata: {name: j, namespace: ns, uid: u, generation: 1}, spec: "
                      "{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, "
                      "spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}%s}, "
                      "status: {%s}}",
                      spec, status),
        arena);

    dv_default(kind, &kind->versions[0], job, (struct dv_time){0}, arena);
    return job;
}

static struct dv_time at(int64_t seconds)
{
    return (struct dv_time){.seconds = seconds, .is_set = true};
}

/* Adds the pod of a word, and returns what is behind it. */
static const char *add_pod(struct world *world, const char *word)
{
    size_t i = world->pods.n;
    struct dv_arena *arena = world->arena;
    struct dv_api_pod *pod =
        read_as(&dv_message_pod,
                dv_str_printf(arena,
                              "{metadata: {name: p%zu, namespace: ns, uid: p%zu, labels: {a: b}, "
                              "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: "
                              "u, controller: true}]}, spec: {containers: [{name: c}]}}",
                              i, i),
                arena);
    char kind = *word++;
    const char *digits = word;

    pod->metadata.creation_timestamp = at(NOW - 1000);
    pod->metadata.finalizers = DV_NEW(arena, dv_str);
    pod->metadata.finalizers[0] = DV_STR(DV_JOB_FINALIZER);
    pod->metadata.n_finalizers = 1;
    pod->status.phase = kind == 'S'   ? DV_STR("Succeeded")
                        : kind == 'F' ? DV_STR("Failed")
                        : kind == 'P' ? DV_STR("Pending")
                                      : DV_STR("Running");
    if (kind == 'D')
        pod->metadata.deletion_timestamp = at(NOW - 500);
    while (*word >= '0' && *word <= '9')
        word++;
    if (word > digits)
        dv_entry_set(&pod->metadata.annotations, &pod->metadata.n_annotations,
                     DV_STR("batch.kubernetes.io/job-completion-index"),
                     (dv_str){digits, (size_t)(word - digits)}, arena);
    for (; *word && *word != ' '; word++)
        if (*word == '-')
            pod->metadata.n_finalizers = 0;
        else if (kind == 'S')
            *dv_vec_add_in(&world->succeeded, arena) = pod->metadata.uid;
        else
            *dv_vec_add_in(&world->failed, arena) = pod->metadata.uid;
    *dv_vec_add_in(&world->pods, arena) = pod;
    return *word ? word + 1 : word;
}

static struct world world_of(const char *spec, const char *status, const char *pods,
                             struct dv_arena *arena)
{
    struct world world = {.arena = arena, .job = job_of(spec, status, arena)};
    struct dv_api_uncounted_terminated_pods *notes =
        DV_NEW(arena, struct dv_api_uncounted_terminated_pods);

    while (*pods)
        pods = add_pod(&world, pods);
    notes->succeeded = world.succeeded.v;
    notes->n_succeeded = world.succeeded.n;
    notes->failed = world.failed.v;
    notes->n_failed = world.failed.n;
    world.job->status.uncounted_terminated_pods = notes;
    return world;
}

/* "succeeded/failed noted:conditions" */
static void print_status(const struct world *world, const struct dv_action *action,
                         struct dv_buf *buf)
{
    struct dv_api_job job = *world->job;

    assert_true(action->change(action, &job, world->arena));
    dv_buf_printf(buf, "status %lld/%lld+%zu/%zu", (long long)job.status.succeeded,
                  (long long)job.status.failed, job.status.uncounted_terminated_pods->n_succeeded,
                  job.status.uncounted_terminated_pods->n_failed);
    if (job.status.completed_indexes.n > 0)
        dv_buf_printf(buf, " [%.*s]", DV_FMT(job.status.completed_indexes));
    for (size_t i = 0; i < job.status.n_conditions; i++)
        dv_buf_printf(buf, " %.*s", DV_FMT(job.status.conditions[i].reason));
}

static const char *plan(struct world *world)
{
    const struct dv_job_input input = {.job = world->job,
                                       .pods = world->pods.v,
                                       .n_pods = world->pods.n,
                                       .has_failed = world->has_failed,
                                       .now = at(NOW)};
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 4096);
    dv_plan_init(&world->plan, world->arena);
    dv_job_plan(&input, &world->plan);
    for (size_t i = 0; i < world->plan.actions.n; i++) {
        const struct dv_action *action = &world->plan.actions.v[i];
        const struct dv_api_pod *pod = action->value;

        dv_buf_add_c(&buf, buf.n > 0 ? " " : "");
        if (action->type == DV_ACTION_CREATE)
            dv_buf_printf(&buf, "+%.*s", DV_FMT(dv_str_slice(pod->spec.hostname, 2, 99)));
        else if (action->type == DV_ACTION_CHANGE_STATUS)
            print_status(world, action, &buf);
        else
            dv_buf_printf(&buf, "%s%.*s", action->type == DV_ACTION_DELETE ? "x" : "~",
                          DV_FMT(action->name));
    }
    dv_buf_add_char(&buf, 0);
    return dv_str_copy(dv_buf_str(&buf), world->arena).p;
}

struct row {
    const char *spec;
    const char *status;
    const char *pods;
    const char *actions;
};

static void check(const struct row *rows, size_t n, struct dv_arena *arena)
{
    for (size_t i = 0; i < n; i++) {
        struct world world = world_of(rows[i].spec, rows[i].status, rows[i].pods, arena);
        const char *got = plan(&world);

        if (strcmp(got, rows[i].actions) != 0)
            fail_msg("{%s} {%s} %s: got \"%s\", want \"%s\"", rows[i].spec, rows[i].status,
                     rows[i].pods, got, rows[i].actions);
    }
}

#define STARTED "startTime: '1970-01-12T13:00:00Z', active: 1, ready: 0, terminating: 0"
#define THREE ", completions: 3, parallelism: 2"
#define INDEXED ", completions: 3, parallelism: 3, completionMode: Indexed"

static void counts_in_steps(void **state)
{
    static const struct row rows[] = {
  /* no pod -> pods -> what it says of them */
        {THREE,                              "",                                    "",            "+ +"                              },
        {THREE,                              "",                                    "R R",         "status 0/0+0/0"                   },
 /* one has ended: noted, let go, counted; another one comes */
        {THREE,                              "",                                    "S R",         "status 0/0+1/0"                   },
        {THREE,                              "",                                    "Sn R",        "~p0"                              },
        {THREE,                              "",                                    "Sn- R",       "status 1/0+0/0"                   },
        {THREE,                              "succeeded: 1",                        "S- R",        "+"                                },
 /* what has vanished after it was noted is counted as well */
        {THREE,                              "failed: 2",                           "Fn- Fn- R R", "status 0/4+0/0"                   },
 /* one that is deleted has failed */
        {THREE,                              "",                                    "D R",         "status 0/0+0/1"                   },
        {THREE,                              "",                                    "Dn R",        "~p0"                              },
 /* too many: let go, then deleted */
        {", completions: 3, parallelism: 1", "",                                    "R P",         "~p1"                              },
        {", completions: 3, parallelism: 1", "",                                    "R P-",        "xp1"                              },
 /* the last one */
        {"",                                 STARTED,                               "S",           "status 0/0+1/0 CompletionsReached"},
        {"",                                 "succeeded: 1, " STARTED,              "S-",          "status 1/0+0/0 CompletionsReached"},
        {INDEXED,                            "",                                    "R0 S1 R2",    "status 1/0+0/0 [1]"               },
        {INDEXED,                            "succeeded: 1, completedIndexes: '1'", "R0 S1 R2",    "~p1"                              },
        {INDEXED,                            "succeeded: 1, completedIndexes: '1'", "R0 S1-",      "+2"                               },
 /* two of one index, and one beyond */
        {INDEXED,                            "",                                    "R0 P0 R1 R7", "~p1 ~p3"                          },
    };

    check(rows, DV_COUNT(rows), *state);
}

static void ends_in_steps(void **state)
{
    static const struct row rows[] = {
        {", backoffLimit: 0" THREE,                                       "",                                  "F R",    "xp1"                                },
        {", backoffLimit: 0" THREE,                                       "",                                  "F D",    "status 0/0+0/2 BackoffLimitExceeded"},
        {", backoffLimit: 0",
         "failed: 1, conditions: [{type: FailureTarget, status: 'True', "
         "reason: BackoffLimitExceeded}], " STARTED,
         "F-",                                                                                                           "status 0/1+0/0 BackoffLimitExceeded "
         "BackoffLimitExceeded"                                                                                                                 },
 /* not before the last pod is gone */
        {", backoffLimit: 0",
         "failed: 1, active: 0, ready: 0, terminating: 1, startTime: "
         "'1970-01-12T13:00:00Z', conditions: [{type: FailureTarget, "
         "status: 'True', reason: BackoffLimitExceeded}]",                                                     "D-",     ""                                   },
        {", activeDeadlineSeconds: 5",                                    "startTime: '1970-01-12T13:46:30Z'", "R",      "xp0"                                },
        {", activeDeadlineSeconds: 5",                                    "startTime: '1970-01-12T13:46:38Z'", "R",      "status 0/0+0/0"                     },
        {", suspend: true",                                               "",                                  "R",      "~p0"                                },
        {", suspend: true",                                               "",                                  "R-",     "xp0"                                },
        {", suspend: true",                                               "",                                  "",       "status 0/0+0/0 JobSuspended"        },
        {INDEXED ", successPolicy: {rules: [{succeededIndexes: '0,2'}]}",
         "succeeded: 1, completedIndexes: '0'",                                                                "R1 S2-", "+2"                                 },
        {INDEXED ", successPolicy: {rules: [{succeededIndexes: '0,2'}]}",
         "succeeded: 2, completedIndexes: '0,2'",                                                              "R1",     "xp0"                                },
        {INDEXED ", successPolicy: {rules: [{succeededIndexes: '0,2'}]}",
         "succeeded: 2, completedIndexes: '0,2'",                                                              "",       "status 2/0+0/0 [0,2] SuccessPolicy" },
        {", ttlSecondsAfterFinished: 5",
         "conditions: [{type: Complete, status: 'True', lastTransitionTime: "
         "'1970-01-12T13:46:30Z'}]",                                                                           "S",      "xj"                                 },
        {", managedBy: a.b/c",                                            "",                                  "R S",    ""                                   },
        {", activeDeadlineSeconds: 9223372036854775807",                  "startTime: '2999-01-01T00:00:00Z'", "R",
         "status 0/0+0/0"                                                                                                                                     },
    };

    check(rows, DV_COUNT(rows), *state);
}

static void the_status_goes_on_where_pods_are_refused(void **state)
{
    struct world world = world_of(THREE, "", "S R", *state);

    world.has_failed = true;
    assert_string_equal(plan(&world), "status 0/0+1/0");
    world = world_of(THREE, "succeeded: 1", "S- R", *state);
    world.has_failed = true;
    assert_string_equal(plan(&world), "status 1/0+0/0");
}

static void a_status_that_another_has_written_is_not_overwritten(void **state)
{
    struct world world = world_of(THREE, "", "S R", *state);
    struct dv_api_job other = *world.job;

    (void)plan(&world);
    other.status.succeeded = 5;
    assert_false(world.plan.actions.v[0].change(&world.plan.actions.v[0], &other, *state));
}

/* ---- single decisions ---- */

static void pauses_double_up_to_ten_minutes(void **state)
{
    static const struct {
        int64_t n;
        int64_t ago_s;
        uint64_t pause_s;
    } rows[] = {
        {0,    0,  0  },
        {1,    0,  10 },
        {1,    4,  6  },
        {1,    10, 0  },
        {2,    0,  20 },
        {6,    20, 300},
        {7,    0,  600},
        {1000, 0,  600},
        {1,    -9, 10 },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_job_failures failures = {.n = rows[i].n, .last = at(NOW - rows[i].ago_s)};

        assert_int_equal(dv_job_backoff_ms(&failures, at(NOW)), rows[i].pause_s * 1000);
    }
}

static void a_success_ends_the_row_of_failures(void **state)
{
    struct dv_job_failures failures = {0};

    (void)state;
    dv_job_failures_note(&failures, false, at(10));
    dv_job_failures_note(&failures, false, at(12));
    assert_int_equal(failures.n, 2);
    assert_int_equal(failures.last.seconds, 12);
    dv_job_failures_note(&failures, true, at(20));
    assert_int_equal(failures.n, 0);
    dv_job_failures_note(&failures, false, at(15)); /* it is told late */
    assert_int_equal(failures.n, 0);
    dv_job_failures_note(&failures, false, at(25));
    assert_int_equal(failures.n, 1);
}

static void policies_judge_by_the_first_rule_that_matches(void **state)
{
    static const char policy[] =
        "{rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]}, "
        "{action: FailJob, onExitCodes: {containerName: a, operator: In, values: [3, 4]}}, "
        "{action: FailIndex, onExitCodes: {operator: NotIn, values: [7]}}]}";
    static const struct {
        const char *status;
        enum dv_job_verdict verdict;
        const char *message;
    } rows[] = {
        {"conditions: [{type: DisruptionTarget, status: 'True'}], containerStatuses: [{name: a, "
         "state: {terminated: {exitCode: 3}}}]",                          DV_JOB_IGNORE,     NULL},
        {"containerStatuses: [{name: a, state: {terminated: {exitCode: 3}}}]",     DV_JOB_FAIL,
         "Container a for pod ns/p failed with exit code 3 matching FailJob rule at index 1"              },
        {"containerStatuses: [{name: b, state: {terminated: {exitCode: 3}}}]",     DV_JOB_FAIL_INDEX,
         NULL                                                                                             },
        {"containerStatuses: [{name: a, state: {terminated: {exitCode: 0}}}]",     DV_JOB_COUNT,      NULL},
        {"containerStatuses: [{name: a, state: {terminated: {exitCode: 7}}}]",     DV_JOB_COUNT,      NULL},
        {"initContainerStatuses: [{name: a, state: {terminated: {exitCode: 4}}}]", DV_JOB_FAIL,
         "Container a for pod ns/p failed with exit code 4 matching FailJob rule at index 1"              },
        {"",                                                                       DV_JOB_COUNT,      NULL},
    };
    struct dv_arena *arena = *state;
    const struct dv_api_pod_failure_policy *read =
        read_as(&dv_message_pod_failure_policy, dv_str_from_c(policy), arena);

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_api_pod *pod =
            read_as(&dv_message_pod,
                    dv_str_printf(arena, "{metadata: {name: p, namespace: ns}, status: {%s}}",
                                  rows[i].status),
                    arena);
        dv_str message = {0};

        assert_int_equal(dv_job_judge(read, pod, arena, &message), rows[i].verdict);
        if (rows[i].message)
            assert_str(message, rows[i].message);
    }
}

static void only_what_nobody_counts_is_let_go(void **state)
{
    struct world world = world_of("", "", "R", *state);
    struct dv_tracked_input input = {.pod = world.pods.v[0], .job = world.job};
    struct dv_api_job *other = job_of("", "", *state);

    dv_plan_init(&world.plan, *state);
    dv_tracked_plan(&input, &world.plan);
    assert_int_equal(world.plan.actions.n, 0);
    other->metadata.uid = DV_STR("another of that name");
    input.job = other;
    dv_tracked_plan(&input, &world.plan);
    assert_int_equal(world.plan.actions.n, 1);
    input.job = NULL;
    dv_tracked_plan(&input, &world.plan);
    assert_int_equal(world.plan.actions.n, 2);
}

static void no_more_are_made_than_may_wait(void **state)
{
    enum { N = 19999 };
    struct world world = {.arena = *state};
    const struct dv_api_pod **pods = DV_NEW_ARRAY(world.arena, const struct dv_api_pod *, N);
    const struct dv_job_input input = {.job =
                                           job_of(", parallelism: 1000000000, completions: "
                                                  "1000000000",
                                                  "startTime: '1970-01-12T13:46:40Z'", world.arena),
                                       .pods = pods,
                                       .n_pods = N,
                                       .now = at(NOW)};
    size_t n_created = 0;

    (void)add_pod(&world, "P");
    for (size_t i = 0; i < N; i++)
        pods[i] = world.pods.v[0];
    dv_plan_init(&world.plan, world.arena);
    dv_job_plan(&input, &world.plan);
    for (size_t i = 0; i < world.plan.actions.n; i++)
        n_created += world.plan.actions.v[i].type == DV_ACTION_CREATE;
    assert_int_equal(n_created, 1);
}

#define a_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        a_test(counts_in_steps),
        a_test(no_more_are_made_than_may_wait),
        a_test(ends_in_steps),
        a_test(the_status_goes_on_where_pods_are_refused),
        a_test(a_status_that_another_has_written_is_not_overwritten),
        a_test(pauses_double_up_to_ten_minutes),
        a_test(a_success_ends_the_row_of_failures),
        a_test(policies_judge_by_the_first_rule_that_matches),
        a_test(only_what_nobody_counts_is_let_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

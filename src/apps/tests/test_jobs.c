/* test_jobs.c - Jobs over the embedded API in memory, with requests that can fail. No node runs:
 * tests say how pods end. Against a model: each pod that ended is counted once, whatever fails. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <stdlib.h>

#include "apps/apps.h"
#include "base/arena.h"
#include "base/defs.h"
#include "cluster/cluster.h"
#include "resource/resource.h"
#include "support/api.h"
#include "support/api_front.h"
#include "support/dice.h"
#include "support/turns.h"

struct world {
    struct api api;
    struct dv_apps *apps; /* NULL: closed */
};

static void open_apps(struct world *world)
{
    struct dv_err err;

    world->apps = dv_apps_open(world->api.loop, &world->api.front.cluster, &err);
    assert_ok(world->apps, &err);
    api_settle(&world->api);
}

static void close_apps(struct world *world)
{
    bool is_closed = false;

    dv_apps_close(world->apps, set_flag, &is_closed);
    world->apps = NULL;
    loop_wait_flag(world->api.loop, &is_closed);
}

static int set_up(void **state)
{
    struct world *world = DV_ALLOC(struct world);

    *state = world;
    api_init(&world->api);
    open_apps(world);
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    if (world->apps)
        close_apps(world);
    api_fini(&world->api);
    free(world);
    return 0;
}

/* ---- what tests do ---- */

#define JOB(spec)                                                                                  \
    "{metadata: {name: j}, spec: {template: {spec: {restartPolicy: Never, containers: "            \
    "[{name: c, image: 'i:1'}]}}, " spec "}}"

static void make_job(struct world *world, const char *yaml)
{
    (void)api_must(api_create(&world->api, DV_KIND_JOB, NULL, yaml));
    api_settle(&world->api);
}

static void change_job(struct world *world, const char *yaml)
{
    (void)api_must(api_patch(&world->api, DV_KIND_JOB, DV_SUB_NONE, NULL, "j", yaml));
    api_settle(&world->api);
}

static const struct dv_api_job *job_of(struct world *world)
{
    const struct dv_object *object = api_get(&world->api, DV_KIND_JOB, NULL, "j");

    return object ? object->value : NULL;
}

static void end_pod(struct world *world, const struct dv_api_pod *pod, const char *phase)
{
    (void)api_must(
        api_patch(&world->api, DV_KIND_POD, DV_SUB_STATUS, NULL,
                  api_text(&world->api, "%.*s", DV_FMT(pod->metadata.name)),
                  api_text(&world->api,
                           "{status: {phase: %s, containerStatuses: [{name: c, ready: false, "
                           "restartCount: 0, image: i, imageID: i, state: {terminated: "
                           "{exitCode: %d, finishedAt: '2030-01-01T00:00:00Z'}}}]}}",
                           phase, phase[0] == 'F')));
    api_settle(&world->api);
}

static bool is_active(const struct dv_api_pod *pod)
{
    return !dv_pod_is_terminal(pod) && !pod->metadata.deletion_timestamp.is_set;
}

/* The pods that run. */
static size_t list_active(struct world *world, const struct dv_api_pod **active, size_t max)
{
    struct dv_object **pods;
    size_t n_pods = api_list(&world->api, DV_KIND_POD, NULL, &pods);
    size_t n = 0;

    for (size_t i = 0; i < n_pods && n < max; i++)
        if (is_active(pods[i]->value))
            active[n++] = pods[i]->value;
    return n;
}

static size_t n_active(struct world *world)
{
    const struct dv_api_pod *active[64];

    return list_active(world, active, DV_COUNT(active));
}

static size_t n_tracked(struct world *world)
{
    struct dv_object **pods;
    size_t n_pods = api_list(&world->api, DV_KIND_POD, NULL, &pods);
    size_t n = 0;

    for (size_t i = 0; i < n_pods; i++)
        n += dv_meta_has_finalizer(pods[i]->meta, DV_STR(DV_JOB_FINALIZER));
    return n;
}

static void end_all(struct world *world, const char *phase)
{
    const struct dv_api_pod *active[64];

    while (list_active(world, active, DV_COUNT(active)) > 0)
        end_pod(world, active[0], phase);
}

/* "SuccessCriteriaMet Complete": the conditions that are true, in their order. */
static const char *conditions_of(struct world *world)
{
    const struct dv_api_job_status *status = &job_of(world)->status;
    const char *text = "";

    for (size_t i = 0; i < status->n_conditions; i++)
        if (dv_str_eq(status->conditions[i].status, DV_STR("True")))
            text = api_text(&world->api, "%s%s%.*s", text, text[0] ? " " : "",
                            DV_FMT(status->conditions[i].type));
    return text;
}

static const char *reason_of(struct world *world)
{
    const struct dv_api_job_status *status = &job_of(world)->status;

    assert_true(status->n_conditions > 0);
    return api_text(&world->api, "%.*s",
                    DV_FMT(status->conditions[status->n_conditions - 1].reason));
}

static void assert_counts(struct world *world, int64_t succeeded, int64_t failed)
{
    assert_int_equal(job_of(world)->status.succeeded, succeeded);
    assert_int_equal(job_of(world)->status.failed, failed);
}

/* ---- ends ---- */

static void a_job_is_complete_when_its_pod_has_succeeded(void **state)
{
    struct world *world = *state;

    make_job(world, JOB(""));
    assert_int_equal(n_active(world), 1);
    assert_int_equal(n_tracked(world), 1);
    assert_int_equal(job_of(world)->status.active, 1);
    end_all(world, "Succeeded");
    assert_string_equal(conditions_of(world), "SuccessCriteriaMet Complete");
    assert_true(job_of(world)->status.completion_time.is_set);
    assert_counts(world, 1, 0);
    assert_int_equal(job_of(world)->status.active, 0);
    assert_int_equal(n_tracked(world), 0);
}

static void pods_come_as_many_at_a_time_as_are_wanted(void **state)
{
    struct world *world = *state;
    const struct dv_api_pod *active[4];

    make_job(world, JOB("completions: 3, parallelism: 2"));
    assert_int_equal(n_active(world), 2);
    assert_int_equal(list_active(world, active, 4), 2);
    end_pod(world, active[0], "Succeeded");
    assert_int_equal(n_active(world), 2);
    assert_int_equal(list_active(world, active, 4), 2);
    end_pod(world, active[0], "Succeeded");
    assert_int_equal(n_active(world), 1);
    change_job(world, "{spec: {parallelism: 0}}");
    assert_int_equal(n_active(world), 0);
    api_pass(&world->api, 1000);
    assert_counts(world, 2, 0); /* one that was too many has not failed */
    change_job(world, "{spec: {parallelism: 1}}");
    end_all(world, "Succeeded");
    assert_counts(world, 3, 0);
    assert_string_equal(conditions_of(world), "SuccessCriteriaMet Complete");
}

static void without_completions_the_first_success_is_enough(void **state)
{
    struct world *world = *state;
    const struct dv_api_pod *active[4];

    make_job(world, JOB("parallelism: 3"));
    assert_int_equal(list_active(world, active, 4), 3);
    end_pod(world, active[0], "Succeeded");
    assert_int_equal(list_active(world, active, 4), 2);
    assert_string_equal(conditions_of(world), "");
    end_pod(world, active[0], "Failed");
    assert_int_equal(n_active(world), 1);
    end_all(world, "Succeeded");
    assert_string_equal(conditions_of(world), "SuccessCriteriaMet Complete");
    assert_counts(world, 2, 1);
}

static void failures_wait_longer_each_time_and_end_the_job(void **state)
{
    struct world *world = *state;

    make_job(world, JOB("backoffLimit: 1"));
    end_all(world, "Failed");
    api_pass(&world->api, 1000);
    assert_counts(world, 0, 1);
    /* The pods of tests end in the year 2030; an end in the future is one of now. */
    assert_int_equal(n_active(world), 0);
    assert_string_equal(conditions_of(world), "");
    change_job(world, "{spec: {backoffLimit: 0}}");
    api_pass(&world->api, 1000);
    assert_string_equal(conditions_of(world), "FailureTarget Failed");
    assert_string_equal(reason_of(world), "BackoffLimitExceeded");
    assert_int_equal(n_tracked(world), 0);
}

static void a_deadline_ends_the_job_and_its_pods(void **state)
{
    struct world *world = *state;

    make_job(world, JOB("completions: 5, parallelism: 5, activeDeadlineSeconds: 60"));
    api_pass(&world->api, 50000);
    assert_int_equal(n_active(world), 5);
    api_pass(&world->api, 15000);
    assert_int_equal(n_active(world), 0);
    assert_string_equal(conditions_of(world), "FailureTarget Failed");
    assert_string_equal(reason_of(world), "DeadlineExceeded");
    assert_counts(world, 0, 5);
    assert_false(job_of(world)->status.completion_time.is_set);
}

static void a_suspended_job_has_no_pods(void **state)
{
    struct world *world = *state;

    make_job(world, JOB("completions: 2, parallelism: 2, suspend: true"));
    assert_int_equal(n_active(world), 0);
    assert_string_equal(conditions_of(world), "Suspended");
    assert_false(job_of(world)->status.start_time.is_set);
    change_job(world, "{spec: {suspend: false}}");
    assert_int_equal(n_active(world), 2);
    assert_true(job_of(world)->status.start_time.is_set);
    change_job(world, "{spec: {suspend: true}}");
    assert_int_equal(n_active(world), 0);
    assert_string_equal(conditions_of(world), "Suspended");
    assert_counts(world, 0, 0);
    change_job(world, "{spec: {suspend: false}}");
    end_all(world, "Succeeded");
    assert_string_equal(conditions_of(world), "SuccessCriteriaMet Complete");
}

static void indexes_are_done_each_once(void **state)
{
    struct world *world = *state;
    const struct dv_api_pod *active[8];

    make_job(world, JOB("completions: 5, parallelism: 3, completionMode: Indexed"));
    assert_int_equal(list_active(world, active, 8), 3);
    assert_str(active[1]->spec.hostname, "j-1");
    assert_str(dv_entry_find(active[1]->metadata.labels, active[1]->metadata.n_labels,
                             DV_STR("batch.kubernetes.io/job-completion-index"))
                   ->value,
               "1");
    assert_str(active[1]->spec.containers[0].env[0].name, "JOB_COMPLETION_INDEX");
    end_pod(world, active[1], "Succeeded");
    assert_str(job_of(world)->status.completed_indexes, "1");
    end_all(world, "Succeeded");
    assert_str(job_of(world)->status.completed_indexes, "0-4");
    assert_counts(world, 5, 0);
    assert_string_equal(conditions_of(world), "SuccessCriteriaMet Complete");
}

static void indexes_fail_by_themselves(void **state)
{
    struct world *world = *state;
    const struct dv_api_pod *active[8];

    make_job(world, JOB("completions: 2, parallelism: 2, completionMode: Indexed, "
                        "backoffLimitPerIndex: 0"));
    assert_int_equal(list_active(world, active, 8), 2);
    end_pod(world, active[0], "Failed");
    assert_str(job_of(world)->status.failed_indexes, "0");
    assert_int_equal(n_active(world), 1);
    end_all(world, "Succeeded");
    assert_string_equal(conditions_of(world), "FailureTarget Failed");
    assert_string_equal(reason_of(world), "FailedIndexes");
    assert_str(job_of(world)->status.completed_indexes, "1");
}

static void a_policy_may_fail_the_job_at_once(void **state)
{
    struct world *world = *state;

    make_job(world, JOB("completions: 3, parallelism: 3, podFailurePolicy: {rules: [{action: "
                        "FailJob, onExitCodes: {operator: In, values: [1]}}]}"));
    (void)n_active(world);
    {
        const struct dv_api_pod *active[4];

        assert_int_equal(list_active(world, active, 4), 3);
        end_pod(world, active[0], "Failed");
    }
    api_pass(&world->api, 1000);
    assert_int_equal(n_active(world), 0);
    assert_string_equal(reason_of(world), "PodFailurePolicy");
    assert_int_equal(n_tracked(world), 0);
}

static void a_finished_job_goes_when_its_time_is_over(void **state)
{
    struct world *world = *state;
    struct dv_object **pods;

    make_job(world, JOB("ttlSecondsAfterFinished: 30"));
    end_all(world, "Succeeded");
    api_pass(&world->api, 20000);
    assert_non_null(job_of(world));
    api_pass(&world->api, 20000);
    assert_null(job_of(world));
    assert_int_equal(api_list(&world->api, DV_KIND_POD, NULL, &pods), 0);
}

static void pods_that_are_left_lose_the_finalizer(void **state)
{
    struct world *world = *state;
    struct dv_object **pods;

    make_job(world, JOB("completions: 2, parallelism: 2"));
    (void)api_must(api_delete(&world->api, DV_KIND_JOB, NULL, "j", NULL)); /* orphans its pods */
    api_pass(&world->api, 1000);
    assert_null(job_of(world));
    assert_int_equal(api_list(&world->api, DV_KIND_POD, NULL, &pods), 2);
    assert_int_equal(n_tracked(world), 0);
}

static void another_manager_is_left_alone(void **state)
{
    struct world *world = *state;

    make_job(world, JOB("managedBy: example.com/other"));
    api_pass(&world->api, 1000);
    assert_int_equal(n_active(world), 0);
    assert_int_equal(job_of(world)->status.n_conditions, 0);
}

/* ---- against a model ---- */

struct model {
    struct dice dice;
    int64_t n_succeeded;
    int64_t n_failed;
};

/* One of the pods that run ends somehow, or several do before the controller can look. */
static void end_some(struct world *world, struct model *model)
{
    const struct dv_api_pod *active[64];
    size_t n = list_active(world, active, DV_COUNT(active));
    unsigned how = roll(&model->dice, 10);
    const struct dv_api_pod *pod;

    if (n == 0)
        return;
    pod = active[roll(&model->dice, (unsigned)n)];
    if (how < 5) {
        model->n_succeeded++;
        end_pod(world, pod, "Succeeded");
    } else if (how < 8) {
        model->n_failed++;
        end_pod(world, pod, "Failed");
    } else {
        model->n_failed++; /* deleted before it has ended */
        (void)api_must(api_delete(&world->api, DV_KIND_POD, NULL,
                                  api_text(&world->api, "%.*s", DV_FMT(pod->metadata.name)), NULL));
    }
}

static void disturb(struct world *world, struct model *model)
{
    struct api_front *front = &world->api.front;

    switch (roll(&model->dice, 6)) {
    case 0:
        close_apps(world);
        end_some(world, model);
        open_apps(world);
        break;
    case 1:
        front->fault_odds = front->fault_odds ? 0 : 4;
        break;
    case 2:
        front->is_late = !front->is_late;
        break;
    default:
        break;
    }
}

static void count_at_random(struct world *world, uint64_t seed, const char *yaml, bool is_indexed)
{
    struct model model = {.dice = {seed}};

    world->api.front.luck = (struct dice){seed + 1};
    make_job(world, yaml);
    for (unsigned step = 0; step < 400 && !conditions_of(world)[0]; step++) {
        disturb(world, &model);
        end_some(world, &model);
        api_pass(&world->api, 1000 * roll(&model.dice, 3));
        if (roll(&model.dice, 4) == 0)
            api_leap(&world->api, 700000);
    }
    world->api.front.fault_odds = 0;
    world->api.front.is_late = false;
    api_pass(&world->api, 20000);
    api_leap(&world->api, 2000000);
    api_pass(&world->api, 5000);
    assert_string_equal(conditions_of(world), "SuccessCriteriaMet Complete");
    assert_int_equal(n_tracked(world), 0);
    assert_int_equal(job_of(world)->status.failed, model.n_failed);
    assert_int_equal(job_of(world)->status.succeeded, model.n_succeeded);
    if (is_indexed)
        assert_str(job_of(world)->status.completed_indexes, "0-11");
}

static void each_end_is_counted_once(void **state)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        void *world;

        (void)state;
        assert_int_equal(set_up(&world), 0);
        count_at_random(world, seed, JOB("completions: 12, parallelism: 4, backoffLimit: 1000"),
                        false);
        assert_int_equal(tear_down(&world), 0);
        assert_int_equal(set_up(&world), 0);
        count_at_random(world, seed,
                        JOB("completions: 12, parallelism: 4, backoffLimit: 1000, "
                            "completionMode: Indexed"),
                        true);
        assert_int_equal(tear_down(&world), 0);
    }
}

#define a_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        a_test(a_job_is_complete_when_its_pod_has_succeeded),
        a_test(pods_come_as_many_at_a_time_as_are_wanted),
        a_test(without_completions_the_first_success_is_enough),
        a_test(failures_wait_longer_each_time_and_end_the_job),
        a_test(a_deadline_ends_the_job_and_its_pods),
        a_test(a_suspended_job_has_no_pods),
        a_test(indexes_are_done_each_once),
        a_test(indexes_fail_by_themselves),
        a_test(a_policy_may_fail_the_job_at_once),
        a_test(a_finished_job_goes_when_its_time_is_over),
        a_test(pods_that_are_left_lose_the_finalizer),
        a_test(another_manager_is_left_alone),
        cmocka_unit_test(each_end_is_counted_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

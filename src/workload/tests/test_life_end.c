#include "test_life.h"

static enum dv_probe_outcome never_alive(struct life_world *world,
                                         const struct dv_life_action *action)
{
    (void)world;
    return action->probe_kind == DV_PROBE_LIVENESS ? DV_PROBE_FAILURE : DV_PROBE_SUCCESS;
}

static void a_deleted_pod_ends_in_order(void **state)
{
    struct life_world *world = life_test(ONE);

    (void)state;
    life_world_run(world, 3000);
    life_world_delete(world, 30);
    life_world_run(world, 10000);
    assert_before(world, "event Normal Killing spec.containers{c} Stopping container c",
                  "call stop c 30s");
    assert_before(world, "call stop c", "call stop sandbox");
    assert_before(world, "call stop sandbox", "call release");
    assert_before(world, "call release", "call clean up");
    assert_before(world, "call clean up", "call remove");
    assert_str(world->pod.status.phase, "Succeeded");
    assert_int_equal(world->stage, DV_LIFE_GONE);
    assert_int_equal(world->containers.n + world->sandboxes.n, 0);
    life_world_fini(world);
}

static enum life_chance no_removal_works(struct life_world *world,
                                         const struct dv_life_action *action)
{
    (void)world;
    return action->kind == DV_LIFE_REMOVE_CONTAINER || action->kind == DV_LIFE_REMOVE_SANDBOX
               ? LIFE_FAILS
               : LIFE_GOES_WELL;
}

/* The view that a removal was decided on shows what was removed until there is a new one. */
static void what_was_removed_is_not_removed_again(void **state)
{
    struct life_world *world = life_test(ONE);

    (void)state;
    life_world_run(world, 3000);
    life_world_delete(world, 1);
    life_world_run(world, 10000);
    assert_int_equal(life_world_count(world, "call remove\n"), 1);
    assert_int_equal(life_world_count(world, "call remove sandbox"), 1);
    assert_int_equal(world->stage, DV_LIFE_GONE);
    life_world_fini(world);
}

static void what_cannot_be_removed_is_tried_after_a_pause(void **state)
{
    struct life_world *world = life_test(ONE);

    (void)state;
    world->chance = no_removal_works;
    life_world_run(world, 3000);
    life_world_delete(world, 1);
    life_world_run(world, 40000);
    assert_in_range(life_world_count(world, "call remove\n"), 2, 5);
    assert_int_equal(world->stage, DV_LIFE_FINISHED);
    world->chance = NULL;
    life_world_run(world, 70000);
    assert_int_equal(world->stage, DV_LIFE_GONE);
    life_world_fini(world);
}

/* What StopContainer gets. */
static void grace_is_what_who_ends_the_pod_says(void **state)
{
    static const struct {
        const char *spec;
        int64_t deleted_s; /* 0: by force; -1: not */
        bool is_evicted;
        bool is_static;
        const char *want;
    } cases[] = {
        {"terminationGracePeriodSeconds: 30, " ONE, 30, false, false, "call stop c 30s"},
        {"terminationGracePeriodSeconds: 30, " ONE, 7,  false, false, "call stop c 7s" },
        {"terminationGracePeriodSeconds: 30, " ONE, 1,  false, false, "call stop c 2s" },
        {"terminationGracePeriodSeconds: 30, " ONE, 0,  false, false, "call stop c 2s" },
        {"terminationGracePeriodSeconds: 9, " ONE,  -1, true,  false, "call stop c 9s" },
        {"terminationGracePeriodSeconds: 9, " ONE,  0,  false, true,  "call stop c 9s" },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct life_world *world = life_test(cases[i].spec);

        world->facts.is_static = cases[i].is_static;
        life_world_run(world, 3000);
        if (cases[i].deleted_s >= 0)
            life_world_delete(world, cases[i].deleted_s);
        if (cases[i].is_evicted)
            world->facts.eviction_reason = DV_STR("Evicted");
        life_world_run(world, 6000);
        assert_line(world, cases[i].want);
        life_world_fini(world);
    }
}

/* While a hook runs, or a container does not end. A second deletion that only says less time
 * changes nothing, as recorded. */
static void force_cuts_a_long_grace(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .hook_ms = 3600 * 1000},
        {.name = "c", .stop_ms = 3600 * 1000},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(habits); i++) {
        struct life_world *world = life_test_with(
            "containers: [{name: c, image: i, lifecycle: {preStop: {exec: {command: [x]}}}}]",
            &habits[i], 1);

        life_world_run(world, 3000);
        life_world_delete(world, 100000);
        life_world_run(world, 8000);
        life_world_delete(world, 5);
        life_world_run(world, 16000);
        assert_int_equal(life_world_n_running(world), 1);
        life_world_delete(world, 0);
        life_world_run(world, 25000);
        assert_line(world, "call stop c 2s");
        assert_int_equal(world->stage, DV_LIFE_GONE);
        assert_int_equal(world->containers.n, 0);
        life_world_fini(world);
    }
}

/* The container is being stopped with a grace of ages, since it is to be restarted. */
static void force_cuts_a_restart(void **state)
{
    static const struct life_habit habit = {.name = "c", .hook_ms = 3600 * 1000};
    struct life_world *world = life_test_with(
        "terminationGracePeriodSeconds: 9223372036854775807, containers: [{name: c, image: i, "
        "lifecycle: {preStop: {exec: {command: [x]}}}, "
        "livenessProbe: {periodSeconds: 1, failureThreshold: 1, exec: {command: [x]}}}]",
        &habit, 1);

    (void)state;
    world->probe = never_alive;
    life_world_run(world, 6000);
    assert_line(world, "call pre stop c");
    assert_true(world->n_looks < 1000);
    life_world_delete(world, 0);
    life_world_run(world, 16000);
    assert_line(world, "call stop c 2s");
    assert_int_equal(world->stage, DV_LIFE_GONE);
    life_world_fini(world);
}

static void an_evicted_pod_has_failed(void **state)
{
    struct life_world *world = life_test(ONE);

    (void)state;
    life_world_run(world, 3000);
    world->facts.eviction_reason = DV_STR("Evicted");
    world->facts.eviction_message = DV_STR("The node was low on resource: memory.");
    life_world_run(world, 8000);
    assert_line(world, "call stop c 30s");
    assert_phase(world, "Failed");
    assert_str(dv_life_status(world->life)->reason, "Evicted");
    assert_int_equal(world->stage, DV_LIFE_FINISHED);
    assert_int_equal(world->containers.n, 1); /* its logs can be read until it is deleted */
    life_world_fini(world);
}

static void a_pod_past_its_deadline_fails(void **state)
{
    struct life_world *world = life_test("activeDeadlineSeconds: 5, " ONE);

    (void)state;
    life_world_run(world, 4900);
    assert_phase(world, "Running");
    life_world_run(world, 9000);
    assert_phase(world, "Failed");
    assert_str(dv_life_status(world->life)->reason, "DeadlineExceeded");
    assert_str(dv_life_status(world->life)->message,
               "Pod was active on the node longer than the specified deadline");
    assert_line(world, "event Normal DeadlineExceeded  Pod was active on the node longer");
    assert_line(world, "call release");
    life_world_fini(world);
}

static void a_hook_uses_up_the_grace(void **state)
{
    static const struct {
        uint64_t hook_ms;
        const char *error;
        const char *stop;
        bool is_told;
    } cases[] = {
        {0,     NULL,          "call stop c 10s", false},
        {4500,  NULL,          "call stop c 6s",  false},
        {60000, NULL,          "call stop c 2s",  true }, /* cut */
        {0,     "exit code 9", "call stop c 10s", true },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct life_habit habit = {
            .name = "c", .hook_ms = cases[i].hook_ms, .hook_error = cases[i].error};
        struct life_world *world = life_test_with(
            "containers: [{name: c, image: i, lifecycle: {preStop: {exec: {command: [x]}}}}]",
            &habit, 1);

        life_world_run(world, 3000);
        life_world_delete(world, 10);
        life_world_run(world, 16000);
        assert_before(world, "call pre stop c", "call stop c");
        assert_line(world, cases[i].stop);
        assert_int_equal(life_world_has(world, "event Warning FailedPreStopHook spec.containers{c} "
                                               "PreStopHook failed"),
                         cases[i].is_told);
        life_world_fini(world);
    }
}

static void a_failing_post_start_hook_kills(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .hook_error = "exited with 1"}
    };
    struct life_world *world = life_test_with(
        "containers: [{name: c, image: i, lifecycle: {postStart: {exec: {command: [sh, -c, x]}}}}]",
        habits, 1);

    (void)state;
    life_world_run(world, 900);
    assert_line(world, "event Warning FailedPostStartHook spec.containers{c} PostStartHook failed");
    assert_line(world, "event Normal Killing spec.containers{c} FailedPostStartHook");
    assert_state(world, "c", "waiting PostStartHookError");
    assert_str(
        life_world_status(world, "c")->state.waiting->message,
        "Exec lifecycle hook ([sh -c x]) for Container \"c\" in Pod \"p_ns(uid-1)\" failed - "
        "error: exited with 1, message: \"\"");
    life_world_fini(world);
}

#define TWO_SIDECARS                                                                               \
    "initContainers: [{name: s1, image: i, restartPolicy: Always}, {name: s2, image: i, "          \
    "restartPolicy: Always}], " ONE

static void sidecars_end_last_and_the_last_first(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .stop_ms = 2000}
    };
    struct life_world *world = life_test_with(TWO_SIDECARS, habits, 1);

    (void)state;
    life_world_run(world, 5000);
    assert_phase(world, "Running");
    life_world_delete(world, 20);
    life_world_run(world, 15000);
    assert_before(world, "call stop c 20s", "call stop s2 18s");
    assert_before(world, "call stop s2", "call stop s1 18s");
    assert_before(world, "call stop s1", "call stop sandbox");
    life_world_fini(world);
}

static void sidecars_do_not_wait_longer_than_the_grace(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .stop_ms = 60000}
    };
    struct life_world *world = life_test_with(TWO_SIDECARS, habits, 1);

    (void)state;
    life_world_run(world, 5000);
    life_world_delete(world, 4);
    life_world_run(world, 15000);
    assert_line(world, "call stop s1 2s");
    assert_int_equal(world->stage, DV_LIFE_GONE);
    life_world_fini(world);
}

static void a_pod_is_done_when_only_sidecars_run(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .runs_ms = 1000}
    };
    struct life_world *world = life_test_with("restartPolicy: Never, " TWO_SIDECARS, habits, 1);

    (void)state;
    life_world_run(world, 12000);
    assert_line(world, "event Normal Killing spec.initContainers{s1} Stopping container s1");
    assert_phase(world, "Succeeded");
    life_world_fini(world);
}

static void what_cannot_be_stopped_is_tried_again(void **state)
{
    struct life_world *world = life_test(ONE);

    (void)state;
    life_world_run(world, 3000);
    world->stop_error = "runtime is busy";
    life_world_delete(world, 5);
    life_world_run(world, 20000);
    assert_line(world, "event Warning FailedKillPod  error killing pod: ");
    assert_in_range(life_world_count(world, "call stop c"), 2, 3);
    assert_no_line(world, "call release");
    world->stop_error = NULL;
    life_world_run(world, 60000);
    assert_int_equal(world->stage, DV_LIFE_GONE);
    life_world_fini(world);
}

static void the_phase_is_told_after_the_release(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .runs_ms = 1000}
    };
    struct life_world *world = life_test_with("restartPolicy: Never, " ONE, habits, 1);

    (void)state;
    world->release_error = "driver is gone";
    life_world_run(world, 30000);
    assert_phase(world, "Running");
    assert_state(world, "c", "terminated Completed 0");
    assert_condition(world, "Ready", "False PodCompleted");
    assert_true(life_world_count(world, "call release") >= 2);
    life_world_restart(world);
    life_world_run(world, 32000);
    assert_phase(world, "Running");
    world->release_error = NULL;
    life_world_run(world, 60000);
    assert_phase(world, "Succeeded");
    assert_condition(world, "Initialized", "True PodCompleted");
    assert_condition(world, "PodReadyToStartContainers", "False");
    assert_int_equal(life_world_count(world, "call start c"), 1);
    assert_str(dv_life_status(world->life)->pod_ip, "10.1.0.5");
    life_world_fini(world);
}

static void a_finished_pod_stays_so_after_a_restart(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .runs_ms = 1000, .exit_code = 4}
    };
    struct life_world *world = life_test_with("restartPolicy: Never, " ONE, habits, 1);

    (void)state;
    life_world_run(world, 8000);
    assert_phase(world, "Failed");
    life_world_restart(world);
    life_world_run(world, 12000);
    assert_phase(world, "Failed");
    assert_state(world, "c", "terminated Error 4");
    assert_int_equal(life_world_count(world, "call start c"), 1);
    life_world_fini(world);
}

static void a_pod_without_an_object_is_ended(void **state)
{
    struct life_world *world = life_test(ONE);

    (void)state;
    life_world_run(world, 3000);
    world->facts.has_vanished = true;
    life_world_restart(world); /* it never sees the object */
    dv_buf_clear(&world->lines);
    life_world_run(world, 8000);
    assert_line(world, "event Normal Killing spec.containers{c} Stopping container c");
    assert_line(world, "call stop c 2s");
    assert_before(world, "call stop sandbox", "call release");
    assert_int_equal(world->stage, DV_LIFE_GONE);
    assert_int_equal(world->containers.n + world->sandboxes.n, 0);
    assert_null(dv_life_status(world->life));
    life_world_fini(world);
}

static void a_new_agent_ends_what_was_ending(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .stop_ms = 5000}
    };
    struct life_world *world = life_test_with(ONE, habits, 1);

    (void)state;
    life_world_run(world, 3000);
    life_world_delete(world, 20);
    life_world_run(world, 4000);
    assert_line(world, "call stop c");
    life_world_restart(world);
    life_world_run(world, 12000);
    assert_int_equal(world->stage, DV_LIFE_GONE);
    assert_int_equal(life_world_count(world, "call start c"), 1);
    life_world_fini(world);
}

static uint64_t slow_pull(struct life_world *world, const struct dv_life_action *action)
{
    (void)world;
    return action->kind == DV_LIFE_PULL_IMAGE ? 600000 : 10;
}

static void a_pull_is_cut_short_by_the_deletion(void **state)
{
    struct life_world *world =
        life_test("containers: [{name: c, image: 'i:1', imagePullPolicy: Always}]");

    (void)state;
    world->takes_ms = slow_pull;
    life_world_run(world, 3000);
    assert_line(world, "call pull c");
    life_world_delete(world, 30);
    life_world_run(world, 8000);
    assert_int_equal(world->stage, DV_LIFE_GONE);
    assert_no_line(world, "call create");
    assert_str(world->pod.status.phase, "Failed");
    life_world_fini(world);
}

static void a_container_that_was_never_made_ends_as_unknown(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .create_error = "no", .is_config_error = true}
    };
    struct life_world *world = life_test_with(ONE, habits, 1);

    (void)state;
    life_world_run(world, 3000);
    life_world_delete(world, 2);
    life_world_run(world, 8000);
    assert_state(world, "c", "terminated ContainerStatusUnknown 137");
    assert_str(world->pod.status.phase, "Failed");
    life_world_fini(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(a_deleted_pod_ends_in_order),
        doc_test(what_was_removed_is_not_removed_again),
        doc_test(what_cannot_be_removed_is_tried_after_a_pause),
        doc_test(grace_is_what_who_ends_the_pod_says),
        doc_test(force_cuts_a_long_grace),
        doc_test(force_cuts_a_restart),
        doc_test(an_evicted_pod_has_failed),
        doc_test(a_pod_past_its_deadline_fails),
        doc_test(a_hook_uses_up_the_grace),
        doc_test(a_failing_post_start_hook_kills),
        doc_test(sidecars_end_last_and_the_last_first),
        doc_test(sidecars_do_not_wait_longer_than_the_grace),
        doc_test(a_pod_is_done_when_only_sidecars_run),
        doc_test(what_cannot_be_stopped_is_tried_again),
        doc_test(the_phase_is_told_after_the_release),
        doc_test(a_finished_pod_stays_so_after_a_restart),
        doc_test(a_pod_without_an_object_is_ended),
        doc_test(a_new_agent_ends_what_was_ending),
        doc_test(a_pull_is_cut_short_by_the_deletion),
        doc_test(a_container_that_was_never_made_ends_as_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

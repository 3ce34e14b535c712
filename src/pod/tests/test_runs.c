/* test_runs.c - whoever starts containers tells davitd, and the pod's status follows. */
#include "support/dvtest.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/defs.h"
#include "pod/pod.h"
#include "pod/tests/test_agent_host.h"
#include "resource/resource.h"

/* Longer than a code may be told after the end of a process. */
#define LATE_MS 6000u

static pid_t start_child(void)
{
    char name[] = "sleep";
    char seconds[] = "100"; /* a test that fails leaves nobody behind for long */
    char *argv[] = {name, seconds, NULL};
    pid_t pid;

    assert_int_equal(posix_spawnp(&pid, name, NULL, NULL, argv, environ), 0);
    return pid;
}

static void end_child(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    while (waitpid(pid, NULL, 0) < 0)
        assert_int_equal(errno, EINTR);
}

static void create_of_policy(struct world *world, const char *name, const char *policy)
{
    (void)create(world, DV_KIND_POD,
                 text(world,
                      "{metadata: {name: %s}, spec: {nodeName: " NODE ", restartPolicy: %s, "
                      "containers: [{name: c, image: x, resources: {limits: {" GPU ": \"1\"}}}]}}",
                      name, policy));
    expect(world, name, READY);
}

static const struct dv_api_container_status *container_of(const struct world *world,
                                                          const char *pod)
{
    return &pod_of(world, pod)->status.container_statuses[0];
}

static void a_started_pod_runs_and_ends_as_its_policy_says(void **state)
{
    static const struct {
        const char *policy;
        int32_t code;
        const char *phase;
    } cases[] = {
        {"Never",     0, "Succeeded PodCompleted"    },
        {"Never",     1, "Failed PodFailed"          },
        {"OnFailure", 0, "Succeeded PodCompleted"    },
        {"OnFailure", 2, "Running ContainersNotReady"},
        {"Always",    0, "Running ContainersNotReady"},
    };
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const char *name = text(world, "p%zu", i);
        pid_t pid = start_child();

        create_of_policy(world, name, cases[i].policy);
        assert_null(tell_started(world, name, "c", pid));
        expect(world, name, "Running");
        assert_true(container_of(world, name)->ready);
        assert_null(tell_ended(world, name, "c", cases[i].code));
        expect(world, name, cases[i].phase);
        end_child(pid);
        delete_pod(world, name, -1);
        expect(world, name, "-");
        expect_held(world, "");
    }
}

static void a_restart_counts(void **state)
{
    struct world *world = *state;
    pid_t first = start_child();
    pid_t second = start_child();

    create_of_policy(world, "p1", "Always");
    assert_null(tell_started(world, "p1", "c", first));
    assert_null(tell_started(world, "p1", "c", first)); /* the same again */
    assert_non_null(strstr(tell_started(world, "p1", "c", second), "runs as process"));
    assert_null(tell_ended(world, "p1", "c", 3));
    assert_null(tell_ended(world, "p1", "c", 3));
    assert_non_null(strstr(tell_ended(world, "p1", "c", 4), "exit code 3 already"));
    assert_null(tell_started(world, "p1", "c", second));
    expect(world, "p1", "Running");
    settle(world);
    assert_int_equal(container_of(world, "p1")->restart_count, 1);
    assert_int_equal(container_of(world, "p1")->last_state.terminated->exit_code, 3);
    assert_str(container_of(world, "p1")->last_state.terminated->message, "bye");
    end_child(first);
    end_child(second);
}

static void what_is_wrong_is_said(void **state)
{
    struct world *world = *state;

    create_of_policy(world, "p1", "Always");
    assert_non_null(strstr(tell_started(world, "p1", "c", 4194305), "no process 4194305"));
    assert_non_null(strstr(tell_started(world, "p1", "d", 0), "no container \"d\""));
    assert_non_null(strstr(tell_started(world, "p2", "c", 0), "no pod default/p2"));
    assert_non_null(strstr(tell_ended(world, "p2", "c", 0), "no pod default/p2"));
    assert_string_equal(phase_of(world, "p1"), READY);
}

static void a_process_whose_code_nobody_tells_has_an_unknown_end(void **state)
{
    struct world *world = *state;
    pid_t pid = start_child();

    create_of_policy(world, "p1", "Never");
    assert_null(tell_started(world, "p1", "c", pid));
    expect(world, "p1", "Running");
    end_child(pid);
    pass(world, LATE_MS);
    expect(world, "p1", "Failed PodFailed");
    assert_int_equal(container_of(world, "p1")->state.terminated->exit_code, 137);
    assert_str(container_of(world, "p1")->state.terminated->reason, "ContainerStatusUnknown");
    expect_held(world, "");
}

static void what_was_told_outlives_davitd(void **state)
{
    struct world *world = *state;
    pid_t pid = start_child();

    create_of_policy(world, "p1", "Never");
    assert_null(tell_started(world, "p1", "c", pid));
    expect(world, "p1", "Running");
    world_close_node(world);
    world_open_node(world);
    pass(world, LATE_MS);
    assert_string_equal(phase_of(world, "p1"), "Running");
    world_close_node(world);
    end_child(pid); /* while nobody looks */
    world_open_node(world);
    assert_null(tell_ended(world, "p1", "c", 0));
    expect(world, "p1", "Succeeded PodCompleted");
    assert_int_equal(container_of(world, "p1")->state.terminated->exit_code, 0);
}

static void an_end_that_the_api_does_not_know_outlives_davitd(void **state)
{
    struct world *world = *state;

    create_of_policy(world, "p1", "Never");
    assert_null(tell_started(world, "p1", "c", 0));
    expect(world, "p1", "Running");
    world->shaky.is_down = true;
    assert_null(tell_ended(world, "p1", "c", 7));
    expect_held(world, "");
    assert_string_equal(phase_of(world, "p1"), "Running");
    world_close_node(world);
    world->shaky.is_down = false;
    world_open_node(world);
    expect(world, "p1", "Failed PodFailed");
    assert_int_equal(container_of(world, "p1")->state.terminated->exit_code, 7);
}

static void a_deleted_pod_keeps_its_devices_while_its_process_is_there(void **state)
{
    struct world *world = *state;
    pid_t pid = start_child();

    create_of_policy(world, "p1", "Always");
    assert_null(tell_started(world, "p1", "c", pid));
    delete_pod(world, "p1", 2);
    pass(world, 10000);
    assert_string_equal(held(world), "p1=g0 ");
    delete_pod(world, "p1", 0);
    pass(world, 10000);
    assert_string_equal(phase_of(world, "p1"), "-");
    assert_string_equal(held(world), "p1=g0 ");
    end_child(pid);
    expect_held(world, "");
}

static void a_deleted_pod_whose_containers_have_ended_goes_at_once(void **state)
{
    struct world *world = *state;

    create_of_policy(world, "p1", "Always");
    assert_null(start_by_hand(world, "p1"));
    assert_null(tell_started(world, "p1", "c", 0));
    assert_null(tell_ended(world, "p1", "c", 0));
    expect(world, "p1", "Running ContainersNotReady");
    delete_pod(world, "p1", -1);
    settle(world);
    assert_string_equal(phase_of(world, "p1"), "-");
    assert_string_equal(held(world), "");
}

static void a_pod_of_the_node_is_released_by_who_admitted_it(void **state)
{
    struct world *world = *state;
    struct dv_pod_told told;

    assert_null(admit_by_hand(
        world, "{\"metadata\":{\"name\":\"p1\",\"uid\":\"u1\"},\"spec\":{\"containers\":[{\"name\":"
               "\"c\",\"resources\":{\"limits\":{\"" GPU "\":1}}}]}}"));
    assert_null(tell_started(world, "p1", "c", 0));
    assert_null(tell_ended(world, "p1", "c", 1));
    pass(world, 5000);
    assert_string_equal(held(world), "p1=g0 ");
    told = dv_pods_told(world->pods, DV_STR("u1"));
    assert_int_equal(told.n_statuses, 1);
    assert_int_equal(told.statuses[0].state.terminated->exit_code, 1);
    assert_null(release_by_hand(world, "p1"));
    assert_int_equal(dv_pods_told(world->pods, DV_STR("u1")).n_statuses, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_started_pod_runs_and_ends_as_its_policy_says),
        world_test(a_restart_counts),
        world_test(what_is_wrong_is_said),
        world_test(a_process_whose_code_nobody_tells_has_an_unknown_end),
        world_test(what_was_told_outlives_davitd),
        world_test(an_end_that_the_api_does_not_know_outlives_davitd),
        world_test(a_deleted_pod_keeps_its_devices_while_its_process_is_there),
        world_test(a_deleted_pod_whose_containers_have_ended_goes_at_once),
        world_test(a_pod_of_the_node_is_released_by_who_admitted_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

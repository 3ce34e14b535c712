#include "test_life.h"
#include "workload/probe.h"

static void a_pod_starts_step_by_step(void **state)
{
    struct life_world *world = life_test(ONE);

    (void)state;
    life_world_run(world, 3000);
    assert_before(world, "call set up", "call prepare");
    assert_before(world, "call prepare", "call run sandbox #0");
    assert_before(world, "call run sandbox #0", "call create c #0");
    assert_before(world, "call create c #0", "call start c");
    assert_line(world, "event Normal Pulling spec.containers{c} Pulling image \"i:latest\"");
    assert_line(world, "event Normal Created spec.containers{c} Container created");
    assert_line(world, "event Normal Started spec.containers{c} Container started");
    assert_phase(world, "Running");
    assert_condition(world, "Ready", "True");
    assert_str(dv_life_status(world->life)->pod_ip, "10.1.0.5");
    assert_str(dv_life_status(world->life)->host_ip, "192.168.7.1");
    assert_str(life_world_status(world, "c")->container_id, "containerd://c-0-1");
    life_world_fini(world);
}

static void claims_that_cannot_be_prepared_keep_it_pending(void **state)
{
    struct life_world *world = life_test(ONE);

    (void)state;
    world->prepare_error = "driver gpu.example.com: no such device";
    life_world_run(world, 5000);
    assert_line(world, "event Warning FailedPrepareDynamicResources  Failed to prepare dynamic "
                       "resources: driver gpu.example.com: no such device");
    assert_no_line(world, "run sandbox");
    assert_phase(world, "Pending");
    world->prepare_error = NULL;
    life_world_run(world, 100000); /* the next sync comes after 60 to 90 s */
    assert_phase(world, "Running");
    life_world_fini(world);
}

static void volumes_are_tried_again_soon(void **state)
{
    struct life_world *world = life_test(ONE);

    (void)state;
    world->set_up_error = "MountVolume.SetUp failed for volume \"v\" : secret \"s\" not found";
    life_world_run(world, 9000);
    assert_line(world, "event Warning FailedMount  MountVolume.SetUp failed for volume");
    assert_in_range(life_world_count(world, "call set up"), 4, 6); /* 0, 0.5, 1.5, 3.5, 7.5 s */
    assert_phase(world, "Pending");
    world->set_up_error = NULL;
    life_world_run(world, 20000);
    assert_phase(world, "Running");
    life_world_fini(world);
}

static void a_sandbox_that_fails_is_tried_again(void **state)
{
    struct life_world *world = life_test(ONE);

    (void)state;
    world->sandbox_error = "no network";
    life_world_run(world, 9000);
    assert_line(world,
                "event Warning FailedCreatePodSandBox  Failed to create pod sandbox: no network");
    assert_int_equal(life_world_count(world, "call run sandbox"), 1);
    life_world_run(world, 16000);
    assert_int_equal(life_world_count(world, "call run sandbox"), 2);
    assert_phase(world, "Pending");
    life_world_fini(world);
}

static void the_network_is_waited_for(void **state)
{
    struct life_world *world = life_test(ONE);
    struct life_world *host = life_test("hostNetwork: true, " ONE);

    (void)state;
    world->facts.network_problem = DV_STR("cni plugin not initialized");
    host->facts.network_problem = DV_STR("cni plugin not initialized");
    life_world_run(world, 3000);
    assert_line(world,
                "event Warning NetworkNotReady  network is not ready: cni plugin not initialized");
    assert_no_line(world, "run sandbox");
    world->facts.network_problem = DV_STR_NONE;
    life_world_run(world, 6000);
    assert_phase(world, "Running");
    life_world_run(host, 3000);
    assert_phase(host, "Running");
    assert_str(dv_life_status(host->life)->pod_ip, "192.168.7.1");
    life_world_fini(world);
    life_world_fini(host);
}

static void init_containers_run_one_after_the_other(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "a", .runs_ms = 2000},
        {.name = "b", .runs_ms = 2000}
    };
    struct life_world *world = life_test_with(
        "initContainers: [{name: a, image: i}, {name: b, image: i}], " ONE, habits, 2);

    (void)state;
    life_world_run(world, 1500);
    assert_state(world, "a", "running");
    assert_state(world, "c", "waiting PodInitializing");
    assert_condition(world, "Initialized", "False ContainersNotInitialized");
    assert_str(life_world_condition(world, "Initialized")->message,
               "containers with incomplete status: [a b]");
    life_world_run(world, 10000);
    assert_before(world, "start a", "start b");
    assert_before(world, "start b", "start c");
    assert_state(world, "a", "terminated Completed 0");
    assert_condition(world, "Initialized", "True");
    assert_phase(world, "Running");
    life_world_fini(world);
}

static void a_failed_init_container_ends_a_pod_that_never_restarts(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "a", .runs_ms = 500, .exit_code = 5}
    };
    struct life_world *world = life_test_with(
        "restartPolicy: Never, initContainers: [{name: a, image: i}], " ONE, habits, 1);

    (void)state;
    life_world_run(world, 10000);
    assert_phase(world, "Failed");
    assert_no_line(world, "start c");
    assert_state(world, "a", "terminated Error 5");
    assert_state(world, "c", "waiting PodInitializing");
    life_world_fini(world);
}

static bool is_up;
static enum dv_probe_outcome when_up(struct life_world *world, const struct dv_life_action *action)
{
    (void)world;
    (void)action;
    return is_up ? DV_PROBE_SUCCESS : DV_PROBE_FAILURE;
}

static void a_sidecar_must_have_started_first(void **state)
{
    struct life_world *world =
        life_test("initContainers: [{name: s, image: i, restartPolicy: Always, startupProbe: {exec:"
                  " {command: [x]}, periodSeconds: 1, failureThreshold: 3}}], " ONE);

    (void)state;
    is_up = false;
    world->probe = when_up;
    life_world_run(world, 2500);
    assert_state(world, "s", "running");
    assert_false(*life_world_status(world, "s")->started);
    assert_no_line(world, "start c");
    is_up = true;
    life_world_run(world, 6000);
    assert_state(world, "c", "running");
    assert_phase(world, "Running");
    assert_condition(world, "Ready", "True");
    life_world_fini(world);
}

static void a_sidecar_that_does_not_start_is_restarted(void **state)
{
    struct life_world *world =
        life_test("initContainers: [{name: s, image: i, restartPolicy: Always, startupProbe: {exec:"
                  " {command: [x]}, periodSeconds: 1, failureThreshold: 2}}], " ONE);

    (void)state;
    is_up = false;
    world->probe = when_up;
    life_world_run(world, 6000);
    assert_line(world, "event Warning Unhealthy spec.initContainers{s} Startup probe failed: out");
    assert_line(
        world, "event Normal Killing spec.initContainers{s} Init container s failed startup probe");
    assert_line(world, "create s #1");
    assert_no_line(world, "start c");
    life_world_fini(world);
}

/* Each reason for which a container waits, with its texts. */
static void a_container_that_cannot_start_says_why(void **state)
{
    static const struct {
        const char *policy;
        bool is_absent;
        const char *pull_error;
        struct life_habit habit;
        const char *want;
        const char *message;
        const char *event;
    } cases[] = {
        {"Never",
         true,  NULL,
         {.name = "c"},
         "waiting ErrImageNeverPull",          "Container image \"i:latest\" is not present with pull policy of Never",
         "event Warning ErrImageNeverPull spec.containers{c} Container image \"i:latest\" is not "
         "present with pull policy of Never"                                                },
        {"Always",
         false, "denied",
         {.name = "c"},
         "waiting ErrImagePull",               "denied",
         "event Warning Failed spec.containers{c} Failed to pull image \"i:latest\": denied"},
        {"IfNotPresent",
         true,  "RegistryUnavailable: down",
         {.name = "c"},
         "waiting RegistryUnavailable",        "image pull failed for i:latest because the registry is unavailable: down",
         "event Warning Failed spec.containers{c} Error: RegistryUnavailable"               },
        {"IfNotPresent",
         false, NULL,
         {.name = "c", .create_error = "configmap \"m\" not found", .is_config_error = true},
         "waiting CreateContainerConfigError", "configmap \"m\" not found",
         "event Warning Failed spec.containers{c} Error: configmap \"m\" not found"         },
        {"IfNotPresent",
         false, NULL,
         {.name = "c", .create_error = "unresolvable CDI devices x"},
         "waiting CreateContainerError",       "unresolvable CDI devices x",
         "event Warning Failed spec.containers{c} Error: unresolvable CDI devices x"        },
        {"IfNotPresent",
         false, NULL,
         {.name = "c", .start_error = "no such file"},
         "waiting RunContainerError",          "no such file",
         "event Warning Failed spec.containers{c} Error: no such file"                      },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct life_world *world = life_test_with(
            dv_str_to_c(dv_str_printf(arena,
                                      "containers: [{name: c, image: i, imagePullPolicy: %s}]",
                                      cases[i].policy),
                        arena),
            &cases[i].habit, 1);

        world->absent_image = cases[i].is_absent ? "i" : NULL;
        world->pull_error = cases[i].pull_error;
        life_world_run(world, 900);
        assert_state(world, "c", cases[i].want);
        assert_str(life_world_status(world, "c")->state.waiting->message, cases[i].message);
        assert_line(world, cases[i].event);
        life_world_fini(world);
    }
}

static void a_name_that_is_none_is_not_asked_for(void **state)
{
    struct life_world *world = life_test("containers: [{name: c, image: 'UPPER/Case:1'}]");

    (void)state;
    life_world_run(world, 900);
    assert_state(world, "c", "waiting InvalidImageName");
    assert_line(world, "event Warning InspectFailed spec.containers{c} Failed to apply default");
    assert_no_line(world, "call inspect");
    life_world_fini(world);
}

static void pulls_come_after_10_20_and_40_seconds(void **state)
{
    struct life_world *world =
        life_test("containers: [{name: c, image: 'i:1', imagePullPolicy: IfNotPresent}]");
    dv_str message;

    (void)state;
    world->absent_image = "i";
    world->pull_error = "no such host";
    life_world_run(world, 9900);
    assert_int_equal(life_world_count(world, "call pull"), 1);
    life_world_run(world, 19000); /* at 10: one pull, then it waits for 20 s */
    assert_int_equal(life_world_count(world, "call pull"), 2);
    life_world_run(world, 29000);
    message = life_world_status(world, "c")->state.waiting->message;
    assert_int_equal(life_world_count(world, "call pull"), 2);
    life_world_run(world, 41000);
    assert_int_equal(life_world_count(world, "call pull"), 3);
    assert_line(world, "event Normal BackOff spec.containers{c} Back-off pulling image \"i:1\"");
    assert_line(world, "event Warning Failed spec.containers{c} Error: ImagePullBackOff");
    (void)message;
    world->pull_error = NULL;
    life_world_run(world, 120000);
    assert_state(world, "c", "running");
    assert_line(world,
                "event Normal Pulled spec.containers{c} Successfully pulled image \"i:1\" in "
                "10ms (10ms including waiting). Image size: 1234 bytes.");
    life_world_fini(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(a_pod_starts_step_by_step),
        doc_test(claims_that_cannot_be_prepared_keep_it_pending),
        doc_test(volumes_are_tried_again_soon),
        doc_test(a_sandbox_that_fails_is_tried_again),
        doc_test(the_network_is_waited_for),
        doc_test(init_containers_run_one_after_the_other),
        doc_test(a_failed_init_container_ends_a_pod_that_never_restarts),
        doc_test(a_sidecar_must_have_started_first),
        doc_test(a_sidecar_that_does_not_start_is_restarted),
        doc_test(a_container_that_cannot_start_says_why),
        doc_test(a_name_that_is_none_is_not_asked_for),
        doc_test(pulls_come_after_10_20_and_40_seconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

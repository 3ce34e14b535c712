#include "test_life.h"

/* When a container is restarted, by policy and code. */
static void policies_say_who_is_started_again(void **state)
{
    static const struct {
        const char *spec;
        int32_t exit_code;
        const char *phase;
        uint32_t n_starts;
    } cases[] = {
        {"restartPolicy: Always, " ONE,                                                                   0,  "Running",   2},
        {"restartPolicy: Always, " ONE,                                                                   1,  "Running",   2},
        {"restartPolicy: OnFailure, " ONE,                                                                0,  "Succeeded", 1},
        {"restartPolicy: OnFailure, " ONE,                                                                1,  "Running",   2},
        {"restartPolicy: Never, " ONE,                                                                    0,  "Succeeded", 1},
        {"restartPolicy: Never, " ONE,                                                                    1,  "Failed",    1},
        {"restartPolicy: Never, containers: [{name: c, image: i, restartPolicy: OnFailure}]",             1,
         "Running",                                                                                                        2},
        {"restartPolicy: Always, containers: [{name: c, image: i, restartPolicy: Never}]",                1,
         "Failed",                                                                                                         1},
        {"restartPolicy: Never, containers: [{name: c, image: i, restartPolicy: Never, "
         "restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]}]",   42, "Running",   2},
        {"restartPolicy: Never, containers: [{name: c, image: i, restartPolicy: Never, "
         "restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]}]",   7,  "Failed",    1},
        {"restartPolicy: Never, containers: [{name: c, image: i, restartPolicy: Never, "
         "restartPolicyRules: [{action: Restart, exitCodes: {operator: NotIn, values: [0]}}]}]", 7,  "Running",   2},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct life_habit habits[] = {
            {.name = "c",                      .runs_ms = 1500, .exit_code = cases[i].exit_code},
            {.name = "c"},
        };
        struct life_world *world = life_test_with(cases[i].spec, habits, 2);

        life_world_run(world, 8000);
        assert_phase(world, cases[i].phase);
        assert_int_equal(life_world_count(world, "call start c"), cases[i].n_starts);
        life_world_fini(world);
    }
}

static void restarts_come_after_0_10_20_and_40_seconds(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .runs_ms = 100, .exit_code = 1}
    };
    static const uint64_t until_ms[] = {900, 9000, 12500, 33000, 76000};
    struct life_world *world = life_test_with(ONE, habits, 1);

    (void)state;
    /* The ends of 300 ms are seen at the next second. */
    for (size_t i = 0; i < DV_COUNT(until_ms); i++) {
        life_world_run(world, until_ms[i]);
        assert_int_equal(life_world_count(world, "call start c"), i + 1);
    }
    assert_line(world, "event Warning BackOff spec.containers{c} Back-off restarting failed "
                       "container c in pod p_ns(uid-1)");
    life_world_run(world, 80000);
    assert_state(world, "c", "terminated Error 1");
    world->pod.metadata.generation++; /* anything that makes a sync due shows the wait */
    life_world_run(world, 82000);
    assert_state(world, "c", "waiting CrashLoopBackOff");
    assert_str(life_world_status(world, "c")->state.waiting->message,
               "back-off 1m20s restarting failed container=c pod=p_ns(uid-1)");
    assert_int_equal(life_world_status(world, "c")->last_state.terminated->exit_code, 1);
    life_world_fini(world);
}

static void a_delay_begins_anew_after_ten_minutes(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .runs_ms = 100       },
        {.name = "c", .runs_ms = 100       },
        {.name = "c", .runs_ms = 700 * 1000},
        {.name = "c", .runs_ms = 100       },
    };
    struct life_world *world = life_test_with(ONE, habits, 4);

    (void)state;
    life_world_run(world, 12000);
    assert_int_equal(life_world_count(world, "call start c"), 3);
    life_world_run(world, 716000); /* at once, as the first time */
    assert_int_equal(life_world_count(world, "call start c"), 4);
    life_world_fini(world);
}

static void one_dead_instance_is_kept(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .runs_ms = 100, .exit_code = 1}
    };
    struct life_world *world = life_test_with(ONE, habits, 1);

    (void)state;
    life_world_run(world, 76000);
    assert_in_range(world->containers.n, 1, 2);
    assert_int_equal(life_world_newest(world, "c")->restart_count, 4);
    life_world_fini(world);
}

static void another_image_restarts_a_container(void **state)
{
    struct life_world *world = life_test("restartPolicy: Never, " ONE);

    (void)state;
    life_world_run(world, 3000);
    world->pod.spec.containers[0].image = DV_STR("i:2");
    world->pod.metadata.generation++;
    life_world_run(world, 6000);
    assert_line(world, "event Normal Killing spec.containers{c} Container c definition changed, "
                       "will be restarted");
    assert_state(world, "c", "running");
    assert_int_equal(life_world_status(world, "c")->restart_count, 1);
    life_world_fini(world);
}

static void a_rule_restarts_all_containers(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "i",      .runs_ms = 100},
        {.name = "a",                .runs_ms = 2000, .exit_code = 7},
        {.name = "a"}
    };
    struct life_world *world = life_test_with(
        "restartPolicy: Never, initContainers: [{name: i, image: i}], containers: [{name: a, image:"
        " i, restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: "
        "{operator: In, values: [7]}}]}, {name: b, image: i}]",
        habits, 3);

    (void)state;
    life_world_run(world, 2500);
    assert_condition(world, "AllContainersRestarting", "False");
    assert_phase(world, "Running");
    life_world_run(world, 10000);
    assert_line(world, "event Normal Killing spec.containers{b} killing");
    assert_line(world, "call stop b 2s");
    assert_int_equal(life_world_count(world, "call start i"), 2);
    assert_int_equal(life_world_count(world, "call start b"), 2);
    assert_int_equal(life_world_count(world, "call run sandbox"), 1);
    assert_phase(world, "Running");
    assert_int_equal(life_world_status(world, "b")->restart_count, 1);
    assert_str(life_world_status(world, "b")->last_state.terminated->reason,
               "RestartingAllContainers");
    life_world_fini(world);
}

static void a_lost_sandbox_is_made_anew(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "a", .runs_ms = 100}
    };
    struct life_world *world =
        life_test_with("initContainers: [{name: a, image: i}], " ONE, habits, 1);
    struct life_world *never = life_test("restartPolicy: Never, " ONE);

    (void)state;
    life_world_run(world, 3500);
    world->sandboxes.v[0].is_ready = false;
    life_world_run(world, 9000);
    assert_line(world, "event Normal SandboxChanged  Pod sandbox changed, it will be killed and "
                       "re-created.");
    assert_line(world, "run sandbox #1");
    assert_int_equal(life_world_count(world, "call start a"), 2);
    assert_state(world, "c", "running");
    assert_int_equal(life_world_status(world, "c")->restart_count, 1);
    assert_no_line(world, "release");

    life_world_run(never, 3500);
    never->sandboxes.v[0].is_ready = false;
    life_world_run(never, 9000);
    assert_no_line(never, "run sandbox #1");
    assert_phase(never, "Succeeded"); /* it was told to end, and did with 0 */
    life_world_fini(world);
    life_world_fini(never);
}

static void an_instance_that_was_never_started_does_not_block(void **state)
{
    struct life_world *world = life_test(ONE);

    (void)state;
    life_world_run(world, 49); /* it is made, and not started yet */
    assert_line(world, "create c");
    life_world_restart(world);
    life_world_run(world, 5000);
    assert_state(world, "c", "running");
    assert_int_equal(life_world_n_running(world), 1);
    life_world_run(world, 100000); /* it goes at the next sync */
    assert_int_equal(world->containers.n, 1);
    assert_state(world, "c", "running");
    life_world_fini(world);
}

static void a_new_agent_touches_nothing(void **state)
{
    struct life_world *world = life_test("containers: [{name: c, image: i, readinessProbe: {exec: "
                                         "{command: [x]}, periodSeconds: 3}}]");
    dv_str id;

    (void)state;
    life_world_run(world, 5000);
    assert_condition(world, "Ready", "True");
    id = life_world_newest(world, "c")->id;
    dv_buf_clear(&world->lines);
    life_world_restart(world);
    life_world_run(world, 5100);
    assert_condition(world, "Ready", "True"); /* before its first probe */
    life_world_run(world, 20000);
    assert_condition(world, "Ready", "True");
    assert_no_line(world, "start");
    assert_no_line(world, "stop");
    assert_no_line(world, "event");
    assert_true(dv_str_eq(life_world_newest(world, "c")->id, id));
    life_world_fini(world);
}

static void a_container_that_vanished_has_ended(void **state)
{
    struct life_world *world = life_test(ONE);

    (void)state;
    life_world_run(world, 3500);
    dv_vec_remove(&world->containers, 0);
    dv_vec_remove(&world->ends_ms, 0);
    life_world_run(world, 6000);
    assert_state(world, "c", "running");
    assert_int_equal(life_world_status(world, "c")->last_state.terminated->exit_code, 137);
    assert_str(life_world_status(world, "c")->last_state.terminated->reason,
               "ContainerStatusUnknown");
    life_world_fini(world);
}

static void the_health_of_devices_is_told_at_once(void **state)
{
    struct dv_api_resource_health health = {.resource_id = DV_STR("gpu-0"),
                                            .health = DV_STR("Healthy")};
    const struct dv_api_resource_status status = {
        .name = DV_STR("example.com/gpu"), .resources = &health, .n_resources = 1};
    const struct dv_life_devices devices = {DV_STR("c"), &status, 1};
    struct life_world *world = life_test(ONE);

    (void)state;
    world->absent_image = "i"; /* also of a pod that cannot start */
    world->pull_error = "no";
    world->facts.devices = &devices;
    world->facts.n_devices = 1;
    life_world_run(world, 3000);
    assert_str(life_world_status(world, "c")->allocated_resources_status[0].resources[0].health,
               "Healthy");
    health.health = DV_STR("Unhealthy");
    life_world_run(world, 5000);
    assert_str(life_world_status(world, "c")->allocated_resources_status[0].resources[0].health,
               "Unhealthy");
    life_world_fini(world);
}

static void last_words_are_cut_at_a_character(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "c", .runs_ms = 1000, .exit_code = 1}
    };
    struct life_world *world = life_test_with("restartPolicy: Never, " ONE, habits, 1);
    struct dv_buf words;
    dv_str message;

    (void)state;
    dv_buf_init(&words, 64 * 1024);
    dv_buf_add_char(&words, 'x');
    while (words.n < 20000)
        dv_buf_add_c(&words, "\xc3\xa4");
    life_world_run(world, 500);
    life_world_newest(world, "c")->message = DV_STR("runtime");
    life_world_newest(world, "c")->end_message = dv_buf_str(&words);
    life_world_run(world, 9000);
    message = life_world_status(world, "c")->state.terminated->message;
    assert_true(dv_str_starts_with(message, DV_STR("runtime: x")));
    assert_in_range(message.n, 12 * 1024 - 3, 12 * 1024);
    assert_true(dv_str_is_utf8(message));
    dv_buf_fini(&words);
    life_world_fini(world);
}

static void an_ephemeral_container_runs_once(void **state)
{
    static const struct life_habit habits[] = {
        {.name = "d", .runs_ms = 1000, .exit_code = 3}
    };
    struct life_world *world = life_test_with(ONE, habits, 1);
    struct dv_api_ephemeral_container *ephemeral = DV_NEW(arena, struct dv_api_ephemeral_container);

    (void)state;
    life_world_run(world, 3000);
    ephemeral->ephemeral_container_common = world->pod.spec.containers[0];
    ephemeral->ephemeral_container_common.name = DV_STR("d");
    world->pod.spec.ephemeral_containers = ephemeral;
    world->pod.spec.n_ephemeral_containers = 1;
    world->pod.metadata.generation++;
    life_world_run(world, 20000);
    assert_line(world, "event Normal Started spec.ephemeralContainers{d} Container started");
    assert_int_equal(life_world_count(world, "call start d"), 1);
    assert_int_equal(
        dv_life_status(world->life)->ephemeral_container_statuses[0].state.terminated->exit_code,
        3);
    assert_phase(world, "Running");
    life_world_fini(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(policies_say_who_is_started_again),
        doc_test(restarts_come_after_0_10_20_and_40_seconds),
        doc_test(a_delay_begins_anew_after_ten_minutes),
        doc_test(one_dead_instance_is_kept),
        doc_test(another_image_restarts_a_container),
        doc_test(a_rule_restarts_all_containers),
        doc_test(a_lost_sandbox_is_made_anew),
        doc_test(an_instance_that_was_never_started_does_not_block),
        doc_test(a_new_agent_touches_nothing),
        doc_test(a_container_that_vanished_has_ended),
        doc_test(the_health_of_devices_is_told_at_once),
        doc_test(last_words_are_cut_at_a_character),
        doc_test(an_ephemeral_container_runs_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "test_life.h"
#include "workload/probe.h"

/* ---- what is asked ---- */

static const struct dv_api_container *container_of(const char *probe)
{
    dv_str yaml =
        dv_str_printf(arena,
                      "containers: [{name: c, image: i, env: [{name: V, value: w}], ports:"
                      " [{name: web, containerPort: 8080}], livenessProbe: {%s}}]",
                      probe);

    return &test_pod(dv_str_to_c(yaml, arena)).pod->spec.containers[0];
}

static const char *header(const struct dv_probe_target *target, const char *name)
{
    for (size_t i = 0; i < target->n_headers; i++)
        if (dv_str_eq(target->headers[i].key, dv_str_from_c(name)))
            return dv_str_to_c(target->headers[i].value, arena);
    return NULL;
}

static struct dv_probe_target target_of(const char *probe)
{
    const struct dv_api_container *container = container_of(probe);
    struct dv_probe_target target = {0};
    struct dv_err err;

    assert_ok(dv_probe_read(&container->liveness_probe->probe_handler, container,
                            DV_STR("10.1.0.5"), arena, &target, &err),
              &err);
    return target;
}

static void a_probe_says_what_to_ask(void **state)
{
    struct dv_probe_target target = target_of("exec: {command: [cat, '$(V)']}");

    (void)state;
    assert_int_equal(target.means, DV_PROBE_EXEC);
    assert_str(target.command.v[1], "w");
    target = target_of("httpGet: {port: web, path: health}");
    assert_int_equal(target.means, DV_PROBE_HTTP);
    assert_int_equal(target.port, 8080);
    assert_str(target.host, "10.1.0.5");
    assert_str(target.path, "/health");
    assert_string_equal(header(&target, "User-Agent"), "kube-probe/1.36");
    assert_string_equal(header(&target, "Accept"), "*/*");
    target = target_of("httpGet: {port: 1, host: example.com, scheme: HTTPS, httpHeaders: [{name: "
                       "User-Agent, value: mine}, {name: Accept, value: ''}]}");
    assert_true(target.is_https);
    assert_str(target.host, "example.com");
    assert_string_equal(header(&target, "User-Agent"), "mine");
    assert_null(header(&target, "Accept"));
    target = target_of("tcpSocket: {port: 22}");
    assert_int_equal(target.means, DV_PROBE_TCP);
    target = target_of("grpc: {port: 50051, service: s}");
    assert_int_equal(target.means, DV_PROBE_GRPC);
    assert_int_equal(target.port, 50051);
    assert_str(target.service, "s");
}

static void a_port_that_there_is_not_is_refused(void **state)
{
    static const char *const probes[] = {"httpGet: {port: none}", "tcpSocket: {port: 0}",
                                         "tcpSocket: {port: 70000}", "grpc: {port: -1}"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(probes); i++) {
        const struct dv_api_container *container = container_of(probes[i]);
        struct dv_probe_target target;
        struct dv_err err;

        assert_false(dv_probe_read(&container->liveness_probe->probe_handler, container,
                                   DV_STR("10.1.0.5"), arena, &target, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, "port");
    }
}

static void an_answer_is_judged_by_its_status(void **state)
{
    static const struct {
        int status;
        const char *location;
        enum dv_probe_outcome want;
        const char *output;
    } cases[] = {
        {200, "",                            DV_PROBE_SUCCESS, "hello"                                 },
        {399, "",                            DV_PROBE_SUCCESS, "hello"                                 },
        {302, "/other",                      DV_PROBE_SUCCESS, "hello"                                 },
        {302, "http://10.1.0.5:80/x",        DV_PROBE_SUCCESS, "hello"                                 },
        {302, "https://elsewhere.example/x", DV_PROBE_WARNING,
         "Probe terminated redirects, Response body: hello"                                            },
        {199, "",                            DV_PROBE_FAILURE, "HTTP probe failed with statuscode: 199"},
        {404, "",                            DV_PROBE_FAILURE, "HTTP probe failed with statuscode: 404"},
    };
    struct dv_probe_target target = {.host = DV_STR("10.1.0.5")};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str output;

        assert_int_equal(dv_probe_judge_http(&target, cases[i].status,
                                             dv_str_from_c(cases[i].location), DV_STR("hello"),
                                             arena, &output),
                         cases[i].want);
        assert_str(output, cases[i].output);
    }
    assert_int_equal(dv_probe_judge_exec(0), DV_PROBE_SUCCESS);
    assert_int_equal(dv_probe_judge_exec(1), DV_PROBE_FAILURE);
}

/* ---- when it runs ---- */

static struct dv_probe_sight sight_of(const struct dv_api_probe *probe, enum dv_probe_kind kind)
{
    return (struct dv_probe_sight){.probe = probe,
                                   .kind = kind,
                                   .instance = 1,
                                   .is_running = true,
                                   .has_started = kind != DV_PROBE_STARTUP,
                                   .started_s = 100,
                                   .now_s = 100,
                                   .now_ms = 1000,
                                   .agent_age_ms = 1000000};
}

static void pass(struct dv_probe_sight *sight, int64_t seconds)
{
    sight->now_s += seconds;
    sight->now_ms += (uint64_t)seconds * 1000;
}

static void a_probe_counts_in_a_row(void **state)
{
    const struct dv_api_probe probe = {.period_seconds = 2, .failure_threshold = 3};
    struct dv_probe_sight sight = sight_of(&probe, DV_PROBE_READINESS);
    struct dv_probe_worker worker = {0};

    (void)state;
    assert_true(dv_probe_look(&worker, &sight));
    assert_int_equal(worker.result, DV_PROBE_HAS_FAILED); /* until it is known better */
    assert_true(dv_probe_done(&worker, &sight, DV_PROBE_SUCCESS).has_changed);
    assert_int_equal(worker.result, DV_PROBE_HAS_SUCCEEDED);
    assert_false(dv_probe_look(&worker, &sight)); /* not before its period */
    for (int i = 0; i < 2; i++) {
        pass(&sight, 2);
        assert_true(dv_probe_look(&worker, &sight));
        assert_false(dv_probe_done(&worker, &sight, DV_PROBE_FAILURE).has_changed);
    }
    pass(&sight, 2);
    assert_true(dv_probe_look(&worker, &sight));
    assert_true(dv_probe_done(&worker, &sight, DV_PROBE_FAILURE).has_changed);
    assert_int_equal(worker.result, DV_PROBE_HAS_FAILED);
}

static void a_failed_liveness_probe_holds_until_a_new_instance(void **state)
{
    const struct dv_api_probe probe = {.period_seconds = 1, .failure_threshold = 1};
    struct dv_probe_sight sight = sight_of(&probe, DV_PROBE_LIVENESS);
    struct dv_probe_worker worker = {0};

    (void)state;
    assert_true(dv_probe_look(&worker, &sight));
    assert_true(dv_probe_done(&worker, &sight, DV_PROBE_FAILURE).has_changed);
    pass(&sight, 1);
    assert_false(dv_probe_look(&worker, &sight));
    sight.instance = 2;
    pass(&sight, 1);
    assert_true(dv_probe_look(&worker, &sight));
    assert_int_equal(worker.result, DV_PROBE_HAS_SUCCEEDED);
}

static void a_probe_waits_for_its_time(void **state)
{
    const struct dv_api_probe probe = {.initial_delay_seconds = 5};
    struct dv_probe_sight sight = sight_of(&probe, DV_PROBE_LIVENESS);
    struct dv_probe_worker worker = {0};

    (void)state;
    assert_false(dv_probe_look(&worker, &sight)); /* the delay after its start */
    pass(&sight, 10);                             /* the default period */
    sight.has_started = false;
    assert_false(dv_probe_look(&worker, &sight)); /* the startup probe comes first */
    pass(&sight, 10);
    sight.has_started = true;
    assert_true(dv_probe_look(&worker, &sight));
    assert_false(dv_probe_done(&worker, &sight, DV_PROBE_SUCCESS).is_told);
    sight.is_ending = true;
    pass(&sight, 10);
    assert_false(dv_probe_look(&worker, &sight)); /* a pod that ends is not killed once more */
}

static void probes_spread_after_the_agents_start(void **state)
{
    const struct dv_api_probe probe = {.period_seconds = 10};
    struct dv_probe_sight sight = sight_of(&probe, DV_PROBE_LIVENESS);
    struct dv_probe_worker worker = {0};

    (void)state;
    sight.agent_age_ms = 500;
    sight.random = UINT32_MAX / 2;
    assert_false(dv_probe_look(&worker, &sight));
    assert_in_range(worker.next_ms, sight.now_ms + 4990, sight.now_ms + 5010);
}

static void an_error_is_tried_three_times_and_thrown_away(void **state)
{
    const struct dv_api_probe probe = {.failure_threshold = 1};
    struct dv_probe_sight sight = sight_of(&probe, DV_PROBE_LIVENESS);
    struct dv_probe_worker worker = {0};

    (void)state;
    assert_true(dv_probe_look(&worker, &sight));
    assert_false(dv_probe_done(&worker, &sight, DV_PROBE_ERROR).is_told);
    assert_false(dv_probe_done(&worker, &sight, DV_PROBE_ERROR).is_told);
    assert_true(worker.is_under_way);
    assert_true(dv_probe_done(&worker, &sight, DV_PROBE_ERROR).is_told);
    assert_false(worker.is_under_way);
    assert_int_equal(worker.result, DV_PROBE_HAS_SUCCEEDED);
}

/* ---- what becomes of it ---- */

static enum dv_probe_outcome outcome;
static enum dv_probe_outcome as_set(struct life_world *world, const struct dv_life_action *action)
{
    (void)world;
    (void)action;
    return outcome;
}

static void an_unhealthy_container_is_killed_and_restarted(void **state)
{
    struct life_world *world =
        life_test("terminationGracePeriodSeconds: 30, containers: [{name: c, image: i, "
                  "livenessProbe: {exec: {command: [x]}, periodSeconds: 1, failureThreshold: 2, "
                  "terminationGracePeriodSeconds: 4}}]");

    (void)state;
    world->probe = as_set;
    outcome = DV_PROBE_FAILURE;
    life_world_run(world, 3900);
    assert_line(world, "event Warning Unhealthy spec.containers{c} Liveness probe failed: out");
    assert_line(world, "event Normal Killing spec.containers{c} Container c failed liveness probe, "
                       "will be restarted");
    assert_line(world, "call stop c 4s");
    assert_line(world, "create c #1");
    life_world_run(world, 9000); /* two restarts at once, the third waits */
    assert_int_equal(life_world_count(world, "call start c"), 3);
    assert_line(world, "event Warning BackOff spec.containers{c}");
    life_world_fini(world);
}

static void an_unready_container_is_left_alone(void **state)
{
    struct life_world *world =
        life_test("containers: [{name: c, image: i, readinessProbe: {exec: {command: [x]}, "
                  "periodSeconds: 1, failureThreshold: 1}}]");

    (void)state;
    world->probe = as_set;
    outcome = DV_PROBE_SUCCESS;
    life_world_run(world, 3000);
    assert_condition(world, "Ready", "True");
    outcome = DV_PROBE_FAILURE;
    life_world_run(world, 6000);
    assert_condition(world, "Ready", "False ContainersNotReady");
    assert_str(life_world_condition(world, "Ready")->message,
               "containers with unready status: [c]");
    assert_phase(world, "Running");
    assert_no_line(world, "stop");
    life_world_fini(world);
}

static void a_gate_keeps_a_pod_from_being_ready(void **state)
{
    struct life_world *world =
        life_test("readinessGates: [{conditionType: example.com/gate}], " ONE);
    struct dv_api_pod_condition *conditions = DV_NEW_ARRAY(arena, struct dv_api_pod_condition, 16);
    size_t n;

    (void)state;
    life_world_run(world, 3000);
    assert_condition(world, "ContainersReady", "True");
    assert_condition(world, "Ready", "False ReadinessGatesNotReady");
    assert_str(life_world_condition(world, "Ready")->message,
               "corresponding condition of pod readiness gate \"example.com/gate\" does not "
               "exist.");
    n = world->pod.status.n_conditions;
    for (size_t i = 0; i < n; i++)
        conditions[i] = world->pod.status.conditions[i];
    conditions[n] = (struct dv_api_pod_condition){.type = DV_STR("example.com/gate"),
                                                  .status = DV_STR("False")};
    world->pod.status.conditions = conditions;
    world->pod.status.n_conditions = n + 1;
    life_world_run(world, 5000);
    assert_str(life_world_condition(world, "Ready")->message,
               "the status of pod readiness gate \"example.com/gate\" is not \"True\", but False");
    for (size_t i = 0; i < world->pod.status.n_conditions; i++)
        if (dv_str_eq(world->pod.status.conditions[i].type, DV_STR("example.com/gate")))
            world->pod.status.conditions[i].status = DV_STR("True");
    life_world_run(world, 7000);
    assert_condition(world, "Ready", "True");
    assert_str(dv_life_status(world->life)->conditions[0].type, "example.com/gate");
    life_world_fini(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(a_probe_says_what_to_ask),
        doc_test(a_port_that_there_is_not_is_refused),
        doc_test(an_answer_is_judged_by_its_status),
        doc_test(a_probe_counts_in_a_row),
        doc_test(a_failed_liveness_probe_holds_until_a_new_instance),
        doc_test(a_probe_waits_for_its_time),
        doc_test(probes_spread_after_the_agents_start),
        doc_test(an_error_is_tried_three_times_and_thrown_away),
        doc_test(an_unhealthy_container_is_killed_and_restarted),
        doc_test(an_unready_container_is_left_alone),
        doc_test(a_gate_keeps_a_pod_from_being_ready),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

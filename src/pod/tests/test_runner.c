/* The runner over a runtime that runs nothing: pods start, end, are adopted; each call may fail. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "cri/cri.h"
#include "pod/tests/test_agent_host.h"
#include "resource/resource.h"
#include "support/cri_runtime.h"
#include "support/dra_driver.h"

/* A pod of this node; `spec` is what is added to its spec, `command` JSON texts. */
static void run_pod(struct world *world, const char *name, const char *command, const char *spec)
{
    (void)create(world, DV_KIND_POD,
                 text(world,
                      "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"},\"spec\":{"
                      "\"nodeName\":\"" NODE "\",\"containers\":[{\"name\":\"c\",\"image\":"
                      "\"busybox\",\"imagePullPolicy\":\"IfNotPresent\",\"command\":[%s],"
                      "\"resources\":{\"limits\":{\"" GPU "\":\"1\"}}}]%s}}",
                      name, command, spec));
}

/* Passes time until it is so, at most 15 minutes. */
static bool is_within(struct world *world, bool (*is_met)(struct world *world))
{
    for (int i = 0; i < 9000; i++) {
        if (is_met(world))
            return true;
        pass(world, 100);
    }
    return false;
}

static bool is_running(struct world *world)
{
    return strcmp(phase_of(world, "p"), "Running") == 0;
}

static bool is_gone(struct world *world)
{
    return !pod_of(world, "p");
}

static bool is_empty(struct world *world)
{
    return cri_runtime_n_containers(world->runtime) == 0 &&
           cri_runtime_n_sandboxes(world->runtime) == 0;
}

static bool is_running_anew(struct world *world)
{
    const struct cri_sandbox *sandbox = cri_runtime_sandbox(world->runtime, "p");

    return is_running(world) && sandbox && sandbox->is_ready &&
           pod_of(world, "p")->status.container_statuses[0].restart_count == 1;
}

static void must(struct world *world, const char *what, bool (*is_met)(struct world *world))
{
    if (!is_within(world, is_met))
        fail_msg("not %s: %s; calls: %s", what, phase_of(world, "p"),
                 dv_buf_c(&world->runtime->said));
}

/* What is done to a pod is done a few times: nothing is begun anew as soon as it has ended. */
static void expect_acts(struct world *world, int most)
{
    static const enum dv_cri_method acts[] = {
        DV_CRI_RUN_POD_SANDBOX, DV_CRI_CREATE_CONTAINER,   DV_CRI_START_CONTAINER,
        DV_CRI_STOP_CONTAINER,  DV_CRI_STOP_POD_SANDBOX,   DV_CRI_REMOVE_CONTAINER,
        DV_CRI_IMAGE_STATUS,    DV_CRI_REMOVE_POD_SANDBOX, DV_CRI_PULL_IMAGE,
    };

    for (size_t i = 0; i < DV_COUNT(acts); i++)
        if (world->runtime->n_calls[acts[i]] > most)
            fail_msg("%d times %s", world->runtime->n_calls[acts[i]], dv_cri_method_name(acts[i]));
}

/* ---- a whole life ---- */

static void runs_a_pod_and_ends_it(void **state)
{
    struct world *world = *state;

    run_pod(world, "p", "\"sleep\"", "");
    must(world, "running", is_running);
    assert_int_equal(cri_runtime_n_containers(world->runtime), 1);
    expect_held(world, "p=g0 ");
    delete_pod(world, "p", -1);
    must(world, "gone", is_gone);
    must(world, "removed", is_empty);
    expect_held(world, "");
    pass(world, 5000);
    expect_acts(world, 2);
}

static bool has_succeeded(struct world *world)
{
    return strncmp(phase_of(world, "p"), "Succeeded", 9) == 0;
}

static void tells_that_a_pod_has_succeeded(void **state)
{
    struct world *world = *state;

    run_pod(world, "p", "\"exit\",\"0\"", ",\"restartPolicy\":\"Never\"");
    must(world, "succeeded", has_succeeded);
    expect_held(world, "");
    delete_pod(world, "p", -1);
    must(world, "gone", is_gone);
    must(world, "removed", is_empty);
}

static bool has_failed(struct world *world)
{
    return strncmp(phase_of(world, "p"), "Failed", 6) == 0;
}

static void tells_that_a_pod_has_failed(void **state)
{
    struct world *world = *state;
    const struct dv_api_pod_status *status;

    run_pod(world, "p", "\"exit\",\"3\"", ",\"restartPolicy\":\"Never\"");
    must(world, "failed", has_failed);
    status = &pod_of(world, "p")->status;
    assert_int_equal(status->container_statuses[0].state.terminated->exit_code, 3);
}

/* ---- the order of the end ---- */

static bool is_stopped(struct world *world)
{
    const struct cri_container *container = cri_runtime_container(world->runtime, "c");

    return container && container->n_stops > 0;
}

static void releases_only_what_has_stopped(void **state)
{
    struct world *world = *state;

    run_pod(world, "p", "\"stubborn\"", "");
    must(world, "running", is_running);
    delete_pod(world, "p", 10);
    must(world, "told to stop", is_stopped);
    pass(world, 5000);
    expect_held(world, "p=g0 "); /* it still runs */
    assert_non_null(pod_of(world, "p"));
    must(world, "gone", is_gone);
    expect_held(world, "");
}

/* ---- restarts ---- */

static void adopts_what_runs(void **state)
{
    struct world *world = *state;
    const char *id;

    run_pod(world, "p", "\"sleep\"", "");
    must(world, "running", is_running);
    id = cri_runtime_container(world->runtime, "c")->id;
    world_close_node(world);
    world_open_node(world);
    pass(world, 120000);
    assert_true(is_running(world));
    assert_int_equal(cri_runtime_n_containers(world->runtime), 1);
    assert_string_equal(cri_runtime_container(world->runtime, "c")->id, id);
    expect_held(world, "p=g0 ");
}

static void ends_what_nobody_wants_any_more(void **state)
{
    struct world *world = *state;

    run_pod(world, "p", "\"sleep\"", "");
    must(world, "running", is_running);
    world_close_node(world);
    delete_pod(world, "p", 0);
    assert_null(pod_of(world, "p"));
    world_open_node(world);
    must(world, "removed", is_empty);
    expect_held(world, "");
}

/* It had ended before davitd was started again, so that nobody took it. */
static void removes_what_ended_before_a_restart(void **state)
{
    struct world *world = *state;

    run_pod(world, "p", "\"exit\",\"3\"", ",\"restartPolicy\":\"Never\"");
    must(world, "failed", has_failed);
    world_close_node(world);
    world_open_node(world);
    pass(world, 10000);
    assert_false(is_empty(world)); /* its logs can still be read */
    delete_pod(world, "p", 0);
    /* in small steps, for workers need time, too; before the next sweep, which would do it */
    for (int i = 0; i < 40000 && !is_empty(world); i++)
        pass(world, 1);
    assert_true(is_gone(world));
    assert_true(is_empty(world));
}

static void waits_for_a_runtime_that_restarts(void **state)
{
    struct world *world = *state;

    run_pod(world, "p", "\"sleep\"", "");
    must(world, "running", is_running);
    cri_runtime_stop(world->runtime);
    pass(world, 60000);
    assert_true(is_running(world));
    delete_pod(world, "p", 1);
    pass(world, 60000);
    assert_non_null(pod_of(world, "p")); /* who knows what runs */
    expect_held(world, "p=g0 ");
    cri_runtime_start(world->runtime);
    must(world, "gone", is_gone);
    must(world, "removed", is_empty);
}

/* Nothing runs after a boot, the driver has forgotten everything, and the runtime still lists the
 * old sandbox. */
static void starts_again_after_a_boot(void **state)
{
    struct world *world = *state;
    int n_before;

    create_claim(world, "k");
    (void)create(world, DV_KIND_POD,
                 "{metadata: {name: p}, spec: {nodeName: " NODE
                 ", resourceClaims: [{name: g, resourceClaimName: k}], containers: [{name: c, "
                 "image: busybox, imagePullPolicy: IfNotPresent, command: [sleep], resources: "
                 "{claims: [{name: g}]}}]}}");
    allocate_claim(world, "k", "p");
    must(world, "running", is_running);
    n_before = world->driver.n_prepare;
    world_close_node(world);
    cri_runtime_end_sandbox(world->runtime, cri_runtime_sandbox(world->runtime, "p"));
    world->boot_id = "boot-2";
    world_open_node(world);
    pass(world, 1000);
    must(world, "running again", is_running_anew);
    assert_true(world->driver.n_prepare > n_before);
    expect_held(world, "p=+k ");
}

/* ---- images ---- */

static bool is_q_running(struct world *world)
{
    return strcmp(phase_of(world, "q"), "Running") == 0;
}

static void expect_doing(struct world *world, const char *name, const char *want, const char *image)
{
    struct dv_runner_doing doing =
        dv_runner_doing(world->runner, dv_str_from_c(uid_of(world, name)));

    assert_string_equal(doing.word, want);
    assert_str(doing.image, image);
}

static bool is_p_pulling(struct world *world)
{
    struct dv_runner_doing doing =
        dv_runner_doing(world->runner, dv_str_from_c(uid_of(world, "p")));

    return doing.word && strcmp(doing.word, "pulling") == 0;
}

/* A registry that hangs holds up its own pod, and others only for a moment. */
static void pulls_beside_one_that_hangs(void **state)
{
    static const char *const names[] = {"p", "q"};
    struct world *world = *state;

    world->runtime->pullable[0] = "busybox:latest";
    world->runtime->faults[DV_CRI_PULL_IMAGE] = (struct cri_fault){.kind = CRI_HANGS, .n = 1};
    for (size_t i = 0; i < DV_COUNT(names); i++) {
        (void)create(world, DV_KIND_POD,
                     text(world,
                          "{metadata: {name: %s, namespace: default}, spec: {nodeName: " NODE
                          ", containers: [{name: c, image: busybox, imagePullPolicy: Always, "
                          "command: [sleep]}]}}",
                          names[i]));
        must(world, "pulling", is_p_pulling); /* behind jobs of workers, whenever these run */
        pass(world, 1000);
    }
    assert_false(is_q_running(world)); /* one at a time, as long as that is short */
    expect_doing(world, "p", "pulling", "busybox:latest");
    must(world, "the other one running", is_q_running);
    assert_false(is_running(world));
    expect_doing(world, "p", "pulling", "busybox:latest");
    expect_doing(world, "q", "running", "");
    delete_pod(world, "p", 1);
    must(world, "gone", is_gone);
}

/* Many registries that hang do not hold up one that answers. */
static void pulls_beside_registries_that_hang(void **state)
{
    struct world *world = *state;

    world->runtime->pullable[0] = "good.example/q:1";
    world->runtime->faults[DV_CRI_PULL_IMAGE] = (struct cri_fault){.kind = CRI_HANGS, .n = 4};
    for (int i = 0; i < 5; i++) {
        bool is_last = i == 4;

        (void)create(world, DV_KIND_POD,
                     text(world,
                          "{metadata: {name: %s, namespace: default}, spec: {nodeName: " NODE
                          ", containers: [{name: c, image: '%s.example/q:1', imagePullPolicy: "
                          "Always, command: [sleep]}]}}",
                          is_last ? "q" : text(world, "p%d", i),
                          is_last ? "good" : text(world, "bad%d", i)));
        pass(world, 1000);
    }
    must(world, "the good one running", is_q_running);
    /* nobody's turn was over yet */
    assert_int_equal(world->runtime->n_calls[DV_CRI_PULL_IMAGE], 5);
}

static const char *why_p_pulls(struct world *world)
{
    struct dv_runner_doing doing =
        dv_runner_doing(world->runner, dv_str_from_c(uid_of(world, "p")));

    return text(world, "%.*s", DV_FMT(doing.why));
}

static bool is_told_why(struct world *world)
{
    return strcmp(why_p_pulls(world), "") != 0;
}

/* "Waits for image X" alone would send its reader to the events. */
static void tells_why_an_image_does_not_come(void **state)
{
    struct world *world = *state;

    world->runtime->faults[DV_CRI_PULL_IMAGE] =
        (struct cri_fault){.kind = CRI_FAILS, .code = DV_UNKNOWN, .text = "no luck"};
    (void)create(world, DV_KIND_POD,
                 "{metadata: {name: p, namespace: default}, spec: {nodeName: " NODE
                 ", containers: [{name: c, image: busybox, imagePullPolicy: Always, "
                 "command: [sleep]}]}}");
    must(world, "told", is_told_why);
    expect_doing(world, "p", "pulling", "busybox");
    assert_non_null(strstr(why_p_pulls(world), "no luck"));
    delete_pod(world, "p", 1);
    must(world, "gone", is_gone);
}

/* ---- faults ---- */

static const enum dv_cri_method methods[] = {
    DV_CRI_RUN_POD_SANDBOX,  DV_CRI_POD_SANDBOX_STATUS,
    DV_CRI_IMAGE_STATUS,     DV_CRI_CREATE_CONTAINER,
    DV_CRI_START_CONTAINER,  DV_CRI_CONTAINER_STATUS,
    DV_CRI_STOP_CONTAINER,   DV_CRI_STOP_POD_SANDBOX,
    DV_CRI_REMOVE_CONTAINER, DV_CRI_REMOVE_POD_SANDBOX,
    DV_CRI_LIST_POD_SANDBOX, DV_CRI_LIST_CONTAINERS,
    DV_CRI_STATUS,
};

/* Whatever goes wrong with one call, the pod runs in the end, ends when it is to, and nothing is
 * left of it. */
static void survive(struct world *world, enum cri_fault_kind kind)
{
    for (size_t i = 0; i < DV_COUNT(methods); i++) {
        const struct cri_fault fault = {
            .kind = kind, .n = 1, .code = DV_UNKNOWN, .text = "no luck", .ms = 3000};

        dv_buf_clear(&world->runtime->said);
        world->runtime->faults[methods[i]] = fault;
        run_pod(world, "p", "\"sleep\"", "");
        must(world, dv_cri_method_name(methods[i]), is_running);
        world->runtime->faults[methods[i]] = fault;
        delete_pod(world, "p", 2);
        must(world, dv_cri_method_name(methods[i]), is_gone);
        must(world, dv_cri_method_name(methods[i]), is_empty);
        expect_held(world, "");
    }
}

static bool has_start_error(struct world *world)
{
    const struct dv_api_pod *pod = pod_of(world, "p");
    const struct dv_api_container_status *status =
        pod && pod->status.n_container_statuses > 0 ? &pod->status.container_statuses[0] : NULL;

    return status && status->last_state.terminated &&
           dv_str_eq(status->last_state.terminated->reason, DV_STR("StartError"));
}

/* containerd 2.1 tells no event of a container that cannot be started; where there are events,
 * everything is listed once in five minutes only. */
static void sees_what_no_event_tells(void **state)
{
    struct world *world = *state;

    cri_runtime_stop(world->runtime);
    world->runtime->has_events = world->runtime->loses_events = true;
    cri_runtime_start(world->runtime);
    run_pod(world, "p", "\"broken\"", "");
    for (int i = 0; i < 29000 && !has_start_error(world); i++)
        pass(world, 10);
    assert_true(has_start_error(world));
    delete_pod(world, "p", 1);
    must(world, "gone", is_gone);
    must(world, "removed", is_empty);
}

/* A runtime in trouble is not asked more often for it; when it is well again, all ends well. */
static void tries_again_with_pauses(void **state)
{
    struct world *world = *state;
    const struct cri_fault fault = {.kind = CRI_FAILS, .code = DV_UNKNOWN, .text = "no luck"};

    for (size_t i = 0; i < DV_COUNT(methods); i++) {
        memset(world->runtime->n_calls, 0, sizeof(world->runtime->n_calls));
        world->runtime->faults[methods[i]] = fault;
        run_pod(world, "p", "\"sleep\"", "");
        pass(world, 60000);
        delete_pod(world, "p", 2);
        pass(world, 60000);
        expect_acts(world, 40);
        world->runtime->faults[methods[i]] = (struct cri_fault){0};
        must(world, dv_cri_method_name(methods[i]), is_gone);
        must(world, dv_cri_method_name(methods[i]), is_empty);
    }
}

static void survives_calls_that_fail(void **state)
{
    survive(*state, CRI_FAILS);
}

static void survives_calls_that_hang(void **state)
{
    survive(*state, CRI_HANGS);
}

static void survives_late_answers(void **state)
{
    survive(*state, CRI_LATE);
}

static void survives_lost_answers(void **state)
{
    survive(*state, CRI_LOST);
}

static void survives_garbage(void **state)
{
    survive(*state, CRI_GARBAGE);
}

static void survives_halves_of_answers(void **state)
{
    survive(*state, CRI_TRUNCATED);
}

static void survives_empty_answers(void **state)
{
    survive(*state, CRI_EMPTY);
}

static void survives_states_that_do_not_exist(void **state)
{
    survive(*state, CRI_ODD_STATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        runtime_test(runs_a_pod_and_ends_it),
        runtime_test(tells_that_a_pod_has_succeeded),
        runtime_test(tells_that_a_pod_has_failed),
        runtime_test(releases_only_what_has_stopped),
        runtime_test(adopts_what_runs),
        runtime_test(ends_what_nobody_wants_any_more),
        runtime_test(removes_what_ended_before_a_restart),
        runtime_test(waits_for_a_runtime_that_restarts),
        runtime_test(starts_again_after_a_boot),
        runtime_test(pulls_beside_one_that_hangs),
        runtime_test(pulls_beside_registries_that_hang),
        runtime_test(tells_why_an_image_does_not_come),
        runtime_test(sees_what_no_event_tells),
        runtime_test(tries_again_with_pauses),
        runtime_test(survives_calls_that_fail),
        runtime_test(survives_calls_that_hang),
        runtime_test(survives_late_answers),
        runtime_test(survives_lost_answers),
        runtime_test(survives_garbage),
        runtime_test(survives_halves_of_answers),
        runtime_test(survives_empty_answers),
        runtime_test(survives_states_that_do_not_exist),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

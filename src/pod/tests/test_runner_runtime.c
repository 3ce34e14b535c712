/* Which runtime the runner uses, and what the node says of it. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <string.h>

#include "base/file.h"
#include "cluster/embedded.h"
#include "pod/runner.h"
#include "pod/tests/test_agent_host.h"
#include "resource/resource.h"
#include "support/cri_runtime.h"
#include "support/turns.h"

static void on_runner_closed(void *ctx)
{
    *(bool *)ctx = true;
}

/* Its socket is not there now, but containers of pods may be. */
static void waits_for_the_runtime_that_was_found_before(void **state)
{
    struct world *world = *state;
    struct dv_runner_options options = {
        .cluster = &world->shaky.cluster,
        .pods = world->pods,
        .devices = world->devices,
        .claims = world->claims,
        .recorder = world->recorder,
        .cri = DV_STR("auto"),
        .memory_file = dv_str_from_c(text(world, "%s/runtime", world->dir)),
        .node_name = DV_STR(NODE),
        .root_dir = dv_str_from_c(world->dir),
        .log_dir = dv_str_from_c(world->dir),
    };
    struct dv_runner *runner;
    bool is_closed = false;
    struct dv_err err;

    assert_ok(dv_file_replace(options.memory_file,
                              dv_str_from_c(text(world, "%s/none.sock\n", world->dir)), 0600, &err),
              &err);
    runner = dv_runner_open(world->loop, &options, &err);
    assert_ok(runner, &err);
    assert_true(dv_runner_is_active(runner));
    assert_false(dv_runner_check(runner, &err));
    assert_int_equal(dv_runner_state(runner, DV_STR("u")), DV_RUNNER_UNSEEN);
    dv_runner_close(runner, on_runner_closed, &is_closed);
    loop_wait_flag(world->loop, &is_closed);
    options.cri = DV_STR("none");
    runner = dv_runner_open(world->loop, &options, &err);
    assert_ok(runner, &err);
    assert_false(dv_runner_is_active(runner));
    is_closed = false;
    dv_runner_close(runner, on_runner_closed, &is_closed);
    loop_wait_flag(world->loop, &is_closed);
    options.cri = DV_STR("tcp://1.2.3.4:5");
    assert_null(dv_runner_open(world->loop, &options, &err));
}

/* ---- the node ---- */

static const struct dv_api_node_condition *ready_of(struct world *world)
{
    const struct dv_object *object =
        dv_embedded_get(world->api, dv_kind(DV_KIND_NODE), DV_STR(""), DV_STR(NODE));
    const struct dv_api_node *node = object->value;

    for (size_t i = 0; i < node->status.n_conditions; i++)
        if (dv_str_eq(node->status.conditions[i].type, DV_STR("Ready")))
            return &node->status.conditions[i];
    fail_msg("the node has no condition Ready");
    return NULL;
}

static bool is_node_ready(struct world *world)
{
    const struct dv_object *object =
        dv_embedded_get(world->api, dv_kind(DV_KIND_NODE), DV_STR(""), DV_STR(NODE));

    /* It is made first, and says a moment later how it is. */
    return object && ((const struct dv_api_node *)object->value)->status.n_conditions > 0 &&
           dv_str_eq(ready_of(world)->status, DV_STR("True"));
}

static bool is_node_lost(struct world *world)
{
    return dv_str_eq(ready_of(world)->status, DV_STR("False"));
}

/* Passes time until it is so, at most two minutes. */
static void wait_for(struct world *world, bool (*is_met)(struct world *world))
{
    for (int i = 0; i < 1200 && !is_met(world); i++)
        pass(world, 100);
    assert_true(is_met(world));
}

static void tells_whether_the_runtime_is_ready(void **state)
{
    struct world *world = *state;

    wait_for(world, is_node_ready);
    assert_str(ready_of(world)->reason, "KubeletReady");
    cri_runtime_stop(world->runtime);
    wait_for(world, is_node_lost);
    assert_str(ready_of(world)->reason, "KubeletNotReady");
    cri_runtime_start(world->runtime);
    wait_for(world, is_node_ready);
}

/* ---- classes of runtimes ---- */

#define CLASS "{metadata: {name: strict}, handler: kata}"

static bool is_running(struct world *world)
{
    const struct cri_sandbox *sandbox = cri_runtime_sandbox(world->runtime, "p");

    return strcmp(phase_of(world, "p"), "Running") == 0 && sandbox && sandbox->is_ready;
}

static bool has_said_why(struct world *world)
{
    const char *message;

    return n_events(world, "FailedCreatePodSandBox", &message) > 0;
}

/* The class may be gone when a sandbox has to be made anew, and come back. */
static void runs_pods_with_the_handler_of_their_class(void **state)
{
    struct world *world = *state;
    const char *message;

    (void)create(world, DV_KIND_RUNTIME_CLASS, CLASS);
    (void)create(world, DV_KIND_POD,
                 "{metadata: {name: p, namespace: default}, spec: {nodeName: " NODE
                 ", runtimeClassName: strict, containers: [{name: c, image: busybox, "
                 "imagePullPolicy: IfNotPresent, command: [sleep]}]}}");
    wait_for(world, is_running);
    assert_string_equal(cri_runtime_sandbox(world->runtime, "p")->handler, "kata");
    delete_object(world, DV_KIND_RUNTIME_CLASS, "strict", -1);
    cri_runtime_end_sandbox(world->runtime, cri_runtime_sandbox(world->runtime, "p"));
    wait_for(world, has_said_why);
    (void)n_events(world, "FailedCreatePodSandBox", &message);
    assert_non_null(strstr(message, "Failed to create pod sandbox: runtimeclass.node.k8s.io "
                                    "\"strict\" not found"));
    pass(world, 5000);
    assert_false(is_running(world));
    (void)create(world, DV_KIND_RUNTIME_CLASS, CLASS);
    wait_for(world, is_running);
    assert_string_equal(cri_runtime_sandbox(world->runtime, "p")->handler, "kata");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        runtime_test(waits_for_the_runtime_that_was_found_before),
        runtime_test(tells_whether_the_runtime_is_ready),
        runtime_test(runs_pods_with_the_handler_of_their_class),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

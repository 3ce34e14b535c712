/* Pods that only the runtime knows any more: how they are ended. */
#include "support/dvtest.h"

#include "base/buf.h"
#include "pod/tests/test_agent_host.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "support/cri_runtime.h"

static int on_exec(void *ctx, const struct cri_container *container,
                   const struct CriV1__ExecSyncRequest *request)
{
    struct dv_buf *said = ctx;

    (void)container;
    dv_buf_printf(said, "%s %s;", request->cmd[0], request->cmd[1]);
    return 0;
}

/* Runs a pod, and deletes its object while nobody looks. */
static void orphan(struct world *world, const char *lifecycle)
{
    (void)create(world, DV_KIND_POD,
                 text(world,
                      "{metadata: {name: p, namespace: default}, spec: {nodeName: " NODE
                      ", containers: [{name: c, image: busybox, imagePullPolicy: IfNotPresent, "
                      "command: [sleep], lifecycle: %s}]}}",
                      lifecycle));
    expect(world, "p", "Running");
    world_close_node(world);
    delete_pod(world, "p", 0);
    world_open_node(world);
}

static void await_end(struct world *world)
{
    for (int i = 0; i < 6000 && cri_runtime_n_sandboxes(world->runtime) > 0; i++)
        pass(world, 100);
    assert_int_equal(cri_runtime_n_containers(world->runtime), 0);
    assert_int_equal(cri_runtime_n_sandboxes(world->runtime), 0);
}

/* What the container's annotations keep of its spec counts. */
static void their_hooks_run(void **state)
{
    struct world *world = *state;
    struct dv_buf said;

    dv_buf_init(&said, 4096);
    world->runtime->exec = on_exec;
    world->runtime->ctx = &said;
    orphan(world, "{preStop: {exec: {command: [say, goodbye]}}}");
    await_end(world);
    assert_string_equal(dv_buf_c(&said), "say goodbye;");
    dv_buf_fini(&said);
}

/* There is one second for it. */
static void hooks_that_take_long_are_cut(void **state)
{
    struct world *world = *state;

    orphan(world, "{preStop: {sleep: {seconds: 20}}}");
    pass(world, 10000);
    await_end(world);
}

/* A hook that needs what is not known any more does no harm. */
static void hooks_that_cannot_be_asked_are_passed_over(void **state)
{
    struct world *world = *state;

    orphan(world, "{preStop: {httpGet: {port: nameless}}}");
    await_end(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        runtime_test(their_hooks_run),
        runtime_test(hooks_that_take_long_are_cut),
        runtime_test(hooks_that_cannot_be_asked_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

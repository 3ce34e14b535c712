/* Links to the logs of containers, over a runtime that runs nothing and writes no logs. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "pod/tests/test_agent_host.h"
#include "resource/resource.h"
#include "support/cri_runtime.h"

static void run_pod(struct world *world)
{
    (void)create(world, DV_KIND_POD,
                 "{metadata: {name: p, namespace: default}, spec: {nodeName: " NODE
                 ", containers: [{name: c, image: busybox, imagePullPolicy: IfNotPresent, "
                 "command: [sleep]}]}}");
    expect(world, "p", "Running");
}

/* The path of the link to the newest container's log. */
static const char *link_of(struct world *world)
{
    return text(world, "%s/containers/p_default_c-%s.log", world->dir,
                cri_runtime_container(world->runtime, "c")->id);
}

static bool leads_to(const char *link, const char *end)
{
    char target[512] = "";

    return readlink(link, target, sizeof(target) - 1) > 0 && strstr(target, end);
}

/* Links are made by a worker, whose time is not ours. */
static void await(struct world *world, const char *link, const char *end)
{
    for (int i = 0; i < 6000 && !leads_to(link, end); i++)
        pass(world, 100);
    assert_true(leads_to(link, end));
}

static void await_removal(struct world *world, const char *link)
{
    for (int i = 0; i < 6000 && leads_to(link, ""); i++)
        pass(world, 100);
    assert_false(leads_to(link, ""));
}

static void each_instance_has_a_link(void **state)
{
    struct world *world = *state;
    const char *first;
    const char *second;

    run_pod(world);
    first = link_of(world);
    await(world, first, "/c/0.log");
    cri_runtime_end(world->runtime, cri_runtime_container(world->runtime, "c"), 1, "Error");
    for (int i = 0; i < 6000 && strcmp(first, link_of(world)) == 0; i++)
        pass(world, 100);
    second = link_of(world);
    await(world, second, "/c/1.log");
    assert_true(leads_to(first, "/c/0.log")); /* it has ended, and is kept */
    delete_pod(world, "p", 1);
    await_removal(world, first);
    await_removal(world, second);
}

/* The link was lost while nobody looked. */
static void what_runs_already_has_a_link(void **state)
{
    struct world *world = *state;

    run_pod(world);
    await(world, link_of(world), "/c/0.log");
    world_close_node(world);
    assert_int_equal(unlink(link_of(world)), 0);
    world_open_node(world);
    await(world, link_of(world), "/c/0.log");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        runtime_test(each_instance_has_a_link),
        runtime_test(what_runs_already_has_a_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

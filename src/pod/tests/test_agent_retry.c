/* test_agent_retry.c - what fails is tried ever less often, says so once, and is tried at once when
 * something may help. The clock is turned; calls and writes are counted. */
#include "support/dvtest.h"

#include <string.h>

#include "base/buf.h"
#include "cluster/embedded.h"
#include "number/number.h"
#include "pod/tests/test_agent_host.h"
#include "resource/resource.h"
#include "support/device_plugin.h"
#include "support/dra_driver.h"

/* 0.25, 0.5, ... 32 s, then every minute, with a fifth of jitter: 8 tries end after 64 s. */
#define TEN_MINUTES_MS 600000u
#define CALLS_MIN 13
#define CALLS_MAX 22

static void fail_to_prepare(struct world *world)
{
    world->driver.refuses = true;
    create_claim(world, "c1");
    create_pod(world, "p1", 0, "c1");
    allocate_claim(world, "c1", "p1");
    expect(world, "p1", "Pending FailedPrepareDynamicResources");
}

static struct dv_time since_of(struct world *world, const char *pod)
{
    const struct dv_api_pod_status *status = &pod_of(world, pod)->status;

    for (size_t i = 0; i < status->n_conditions; i++)
        if (dv_str_eq(status->conditions[i].type, DV_STR("Ready")))
            return status->conditions[i].last_transition_time;
    fail_msg("%s is not said to be ready or not", pod);
    return (struct dv_time){0};
}

/* Each refusal has another number in it. */
static void a_driver_that_refuses_is_asked_ever_less(void **state)
{
    struct world *world = *state;
    struct dv_time since;
    int n_writes;

    fail_to_prepare(world);
    pass(world, 5000);
    since = since_of(world, "p1");
    n_writes = world->shaky.n_pod_requests;
    world->driver.n_prepare = 0;
    pass(world, TEN_MINUTES_MS);
    assert_in_range(world->driver.n_prepare, CALLS_MIN - 5, CALLS_MAX - 5);
    assert_int_equal(world->shaky.n_pod_requests, n_writes); /* it is said already */
    assert_int_equal(since_of(world, "p1").seconds, since.seconds);
    assert_int_equal(n_events(world, "FailedPrepareDynamicResources", NULL) > 5, true);
    world->driver.refuses = false;
    expect(world, "p1", READY);
}

static void register_again(struct world *world)
{
    dra_driver_kill(&world->driver);
    settle(world);
    dra_driver_start(&world->driver, world->loop, world->dir, DRIVER);
    pass(world, 3000); /* the connection is made anew */
}

static void a_driver_that_is_back_is_asked_at_once(void **state)
{
    struct world *world = *state;

    fail_to_prepare(world);
    pass(world, TEN_MINUTES_MS);
    world->driver.refuses = false;
    register_again(world);
    assert_string_equal(phase_of(world, "p1"), READY);
}

/* It comes back every few seconds, and never works. */
static void a_driver_that_comes_back_to_fail_is_asked_ever_less(void **state)
{
    struct world *world = *state;

    fail_to_prepare(world);
    pass(world, 100000);
    world->driver.n_prepare = 0;
    for (int i = 0; i < 60; i++)
        register_again(world);
    assert_in_range(world->driver.n_prepare, 2, 16);
}

static void a_claim_that_changes_is_tried_at_once(void **state)
{
    struct world *world = *state;

    create_claim(world, "c1");
    create_pod(world, "p1", 0, "c1");
    expect(world, "p1", "Pending FailedPrepareDynamicResources");
    pass(world, TEN_MINUTES_MS);
    allocate_claim(world, "c1", "p1");
    pass(world, 300);
    assert_string_equal(phase_of(world, "p1"), READY);
}

/* What a driver writes into a claim says nothing to us: it may do so with each failure. */
static void what_drivers_write_does_not_hurry_us(void **state)
{
    struct world *world = *state;

    fail_to_prepare(world);
    pass(world, 100000);
    world->driver.n_prepare = 0;
    for (int i = 0; i < 50; i++) {
        patch(world, DV_KIND_CLAIM, "c1", DV_SUB_NONE,
              text(world, "{metadata: {annotations: {attempt: \"%d\"}}}", i));
        patch(world, DV_KIND_POD, "p1", DV_SUB_NONE,
              text(world, "{metadata: {annotations: {attempt: \"%d\"}}}", i));
        pass(world, 100);
    }
    assert_in_range(world->driver.n_prepare, 0, 1);
}

static void a_plugin_that_refuses_is_asked_ever_less(void **state)
{
    struct world *world = *state;
    int n_writes;

    world->plugin.fails = DV_INTERNAL;
    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", "Pending UnexpectedAdmissionError");
    n_writes = world->shaky.n_pod_requests;
    world->plugin.n_allocate = 0;
    pass(world, TEN_MINUTES_MS);
    assert_in_range(world->plugin.n_allocate, CALLS_MIN, CALLS_MAX);
    assert_int_equal(world->shaky.n_pod_requests, n_writes);
    world->plugin.fails = DV_OK;
    device_plugin_register(&world->plugin, world->plugins); /* it is back */
    pass(world, 300);
    assert_string_equal(phase_of(world, "p1"), READY);
}

static void a_release_that_fails_is_tried_ever_less(void **state)
{
    struct world *world = *state;

    create_claim(world, "c1");
    create_pod(world, "p1", 1, "c1");
    allocate_claim(world, "c1", "p1");
    expect(world, "p1", READY);
    world->driver.keeps = true;
    delete_pod(world, "p1", -1);
    pass(world, TEN_MINUTES_MS);
    assert_in_range(world->driver.n_unprepare, CALLS_MIN, CALLS_MAX + 10); /* and chores of ours */
    world->driver.keeps = false;
    register_again(world);
    assert_string_equal(phase_of(world, "p1"), "-");
}

/* Others change the pod all the time. */
static void a_status_that_is_refused_is_written_ever_less(void **state)
{
    struct world *world = *state;
    int n_writes;

    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", READY);
    world->shaky.is_down = true;
    device_plugin_list(&world->plugin, "g0! g1 g2 g3");
    pass(world, 500);
    n_writes = world->shaky.n_pod_requests;
    for (int i = 0; i < 600; i++) {
        patch(world, DV_KIND_POD, "p1", DV_SUB_NONE,
              text(world, "{metadata: {labels: {n: \"%d\"}}}", i));
        pass(world, 100);
    }
    assert_in_range(world->shaky.n_pod_requests - n_writes, 4, 9);
    world->shaky.is_down = false;
    pass(world, 80000);
    assert_str(pod_of(world, "p1")
                   ->status.container_statuses[0]
                   .allocated_resources_status[0]
                   .resources[0]
                   .health,
               "Unhealthy");
}

/* ---- what others hold ---- */

#define BY_HAND(name, n)                                                                           \
    "{\"metadata\": {\"name\": \"" name "\", \"namespace\": \"default\"}, \"spec\": "              \
    "{\"containers\": [{\"name\": \"c\", \"resources\": {\"limits\": {\"" GPU "\": \"" n           \
    "\"}}}]}}"

static void devices_that_are_held_outside_the_api_are_waited_for(void **state)
{
    struct world *world = *state;
    int n_writes;

    assert_null(admit_by_hand(world, BY_HAND("hand", "3")));
    create_pod(world, "p1", 2, NULL);
    expect(world, "p1", "Pending WaitingForDevices");
    n_writes = world->shaky.n_pod_requests;
    pass(world, TEN_MINUTES_MS);
    assert_string_equal(phase_of(world, "p1"), "Pending WaitingForDevices");
    assert_int_equal(world->shaky.n_pod_requests, n_writes);
    assert_int_equal(world->plugin.n_allocate, 1); /* that of the other pod */
    assert_int_equal(n_events(world, "WaitingForDevices", NULL), 1);
    assert_null(release_by_hand(world, "hand"));
    pass(world, 300);
    assert_string_equal(phase_of(world, "p1"), READY);
    assert_string_equal(held(world), "p1=g0,g1 ");
}

static const char *allocatable_of(struct world *world)
{
    const struct dv_object *node =
        dv_embedded_get(world->api, dv_kind(DV_KIND_NODE), DV_STR(""), DV_STR(NODE));
    const struct dv_api_node_status *status = &((const struct dv_api_node *)node->value)->status;

    for (size_t i = 0; i < status->n_allocatable; i++)
        if (dv_str_eq(status->allocatable[i].key, DV_STR(GPU))) {
            struct dv_buf buf;
            const char *printed;

            dv_buf_init(&buf, 64);
            dv_quantity_print(&status->allocatable[i].value, &buf);
            printed = text(world, "%s", dv_buf_c(&buf));
            dv_buf_fini(&buf);
            return printed;
        }
    return "";
}

/* The Node object is what all schedulers look at. */
static void devices_that_are_held_outside_the_api_cannot_be_allocated(void **state)
{
    struct world *world = *state;

    pass(world, 1000);
    assert_string_equal(allocatable_of(world), "4");
    assert_null(admit_by_hand(world, BY_HAND("hand", "3")));
    pass(world, 1000);
    assert_string_equal(allocatable_of(world), "1");
    create_pod(world, "p1", 1, NULL); /* pods of the API are the scheduler's to count */
    expect(world, "p1", READY);
    pass(world, 1000);
    assert_string_equal(allocatable_of(world), "1");
    world_close_node(world);
    world_open_node(world);
    pass(world, 3000);
    assert_string_equal(allocatable_of(world), "1");
    assert_null(release_by_hand(world, "hand"));
    pass(world, 1000);
    assert_string_equal(allocatable_of(world), "4");
    assert_null(release_by_hand(world, "p1"));
    expect(world, "p1", "Succeeded PodCompleted");
    assert_string_equal(allocatable_of(world), "4");
}

/* It has ended for the API, and its driver does not let go. */
static void what_an_ended_pod_still_holds_cannot_be_allocated(void **state)
{
    struct world *world = *state;

    create_claim(world, "c1");
    create_pod(world, "p1", 2, "c1");
    allocate_claim(world, "c1", "p1");
    expect(world, "p1", READY);
    world->driver.keeps = true;
    patch(world, DV_KIND_POD, "p1", DV_SUB_STATUS, "{status: {phase: Failed}}");
    pass(world, 3000);
    assert_string_equal(allocatable_of(world), "2");
    world->driver.keeps = false;
    pass(world, 70000);
    assert_string_equal(allocatable_of(world), "4");
}

static void a_plugin_that_is_gone_for_long_is_waited_for(void **state)
{
    struct world *world = *state;

    device_plugin_kill(&world->plugin);
    settle(world);
    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", "Pending WaitingForDevices");
    pass(world, TEN_MINUTES_MS);
    assert_string_equal(phase_of(world, "p1"), "Pending WaitingForDevices");
    device_plugin_start(&world->plugin, world->loop, world->plugins, "a.sock", GPU,
                        world->device_ids);
    device_plugin_register(&world->plugin, world->plugins);
    pass(world, 2000);
    assert_string_equal(phase_of(world, "p1"), READY);
}

static void a_driver_that_is_gone_is_waited_for_and_named(void **state)
{
    struct world *world = *state;
    const char *message;

    create_claim(world, "c1");
    dra_driver_kill(&world->driver);
    settle(world);
    create_pod(world, "p1", 0, "c1");
    allocate_claim(world, "c1", "p1");
    expect(world, "p1", "Pending WaitingForDevices");
    pass(world, TEN_MINUTES_MS);
    assert_string_equal(phase_of(world, "p1"), "Pending WaitingForDevices");
    assert_int_equal(n_events(world, "WaitingForDevices", &message), 1);
    assert_non_null(strstr(message, "waits for driver " DRIVER));
    dra_driver_start(&world->driver, world->loop, world->dir, DRIVER);
    pass(world, 130000);        /* the longest pause of the connection */
    expect(world, "p1", READY); /* with what real sockets take on a busy machine */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_driver_that_refuses_is_asked_ever_less),
        world_test(a_driver_that_is_back_is_asked_at_once),
        world_test(a_driver_that_comes_back_to_fail_is_asked_ever_less),
        world_test(a_claim_that_changes_is_tried_at_once),
        world_test(what_drivers_write_does_not_hurry_us),
        world_test(a_plugin_that_refuses_is_asked_ever_less),
        world_test(a_release_that_fails_is_tried_ever_less),
        world_test(a_status_that_is_refused_is_written_ever_less),
        world_test(devices_that_are_held_outside_the_api_are_waited_for),
        world_test(devices_that_are_held_outside_the_api_cannot_be_allocated),
        world_test(what_an_ended_pod_still_holds_cannot_be_allocated),
        world_test(a_plugin_that_is_gone_for_long_is_waited_for),
        world_test(a_driver_that_is_gone_is_waited_for_and_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

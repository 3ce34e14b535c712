/* test_holdings.c - what a pod gets is what is there, and nobody else's. */
#include "support/dvtest.h"

#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "cluster/embedded.h"
#include "pod/pod.h"
#include "pod/tests/test_agent_host.h"
#include "resource/resource.h"

static void claim_for(struct world *world, const char *claim, const char *pod)
{
    create_claim(world, claim);
    create_pod(world, pod, 0, claim);
    allocate_claim(world, claim, pod);
}

static void check_message(struct world *world, const char *reason, const char *const *words,
                          size_t n_words)
{
    const char *message;

    assert_in_range(n_events(world, reason, &message), 1, 1000);
    for (size_t i = 0; i < n_words; i++)
        if (!strstr(message, words[i]))
            fail_msg("no \"%s\" in \"%s\"", words[i], message);
}

/* ---- CDI names ---- */

static void a_name_without_a_spec_is_waited_for(void **state)
{
    struct world *world = *state;
    const char *words[] = {"driver dra.example.com", "\"dra.example.com/dev=d9\"",
                           "device pool/dev", "ResourceClaim default/c1", world->specs};
    struct dv_err err;

    world->driver.cdi_id = "dra.example.com/dev=d9";
    claim_for(world, "c1", "p1");
    expect(world, "p1", "Pending FailedPrepareDynamicResources");
    pass(world, 2000);
    check_message(world, "FailedPrepareDynamicResources", words, DV_COUNT(words));
    assert_ok(dv_file_replace(dv_str_from_c(text(world, "%s/late.json", world->specs)),
                              DV_STR("{\"cdiVersion\":\"0.6.0\",\"kind\":\"dra.example.com/dev\","
                                     "\"devices\":[{\"name\":\"d9\",\"containerEdits\":{\"env\":["
                                     "\"D=9\"]}}]}"),
                              0600, &err),
              &err);
    expect(world, "p1", READY);
    assert_null(start_by_hand(world, "p1"));
}

static void strictly_names_are_taken_as_they_are(void **state)
{
    struct world *world = *state;

    world_close(world);
    world->is_strict = true;
    world->driver.cdi_id = "dra.example.com/dev=d9";
    world_open(world);
    claim_for(world, "c1", "p1");
    expect(world, "p1", READY);
}

/* After a boot drivers prepare anew; their specs were in memory, and are gone until they do. */
static void a_container_is_not_started_without_its_spec(void **state)
{
    struct world *world = *state;
    const char *error;

    claim_for(world, "c1", "p1");
    expect(world, "p1", READY);
    world_close(world);
    world->boot_id = "boot-2";
    world->driver.cdi_id = "dra.example.com/dev=d9";
    world_open(world);
    expect(world, "p1", READY);
    error = start_by_hand(world, "p1");
    assert_non_null(error);
    if (!strstr(error, "dra.example.com/dev=d9"))
        fail_msg("%s", error);
    world->driver.cdi_id = SPEC;
    world_close(world);
    world->boot_id = "boot-3";
    world_open(world);
    assert_null(start_by_hand(world, "p1"));
}

/* ---- the ledger ---- */

#define PCI "0000:3b:00.0"

/* As drivers do when they are connected; what is there is as they would have it. */
static void publish(struct world *world)
{
    pass(world, 1000);
    if (dv_embedded_get(world->api, dv_kind(DV_KIND_SLICE), DV_STR(""), DV_STR("s1")))
        return;
    (void)create(world, DV_KIND_SLICE,
                 "{metadata: {name: s1}, spec: {driver: " DRIVER ", nodeName: " NODE
                 ", pool: {name: pool, generation: 1, resourceSliceCount: 1}, devices: [{name: "
                 "dev, attributes: {resource.kubernetes.io/pciBusID: {string: \"" PCI "\"}}}]}}");
    settle(world);
}

/* The plugin and the driver have the same device. */
static void share_a_device(struct world *world, enum dv_ledger_mode ledger)
{
    world_close(world);
    world->device_ids = PCI " x1 x2 x3";
    world->ledger = ledger;
    world_open(world);
    publish(world);
}

static void a_device_of_a_plugin_is_not_given_by_a_driver(void **state)
{
    struct world *world = *state;
    static const char *const words[] = {PCI, "default/p1", "resource " GPU, "default/p2",
                                        "driver " DRIVER};

    share_a_device(world, DV_LEDGER_REFUSES);
    create_pod(world, "p1", 4, NULL);
    expect(world, "p1", READY);
    claim_for(world, "c1", "p2");
    expect(world, "p2", "Pending DeviceInUse");
    check_message(world, "DeviceInUse", words, DV_COUNT(words));
    pass(world, 5000);
    assert_int_equal(world->driver.n_prepare, 0); /* slices tell, so nobody is asked */
    delete_pod(world, "p2", 0);
    world_close(world); /* what is held is found again */
    world_open(world);
    publish(world);
    claim_for(world, "c2", "p2");
    expect(world, "p2", "Pending DeviceInUse");
    delete_pod(world, "p1", 0);
    expect(world, "p2", READY);
    delete_pod(world, "p2", 0);
    create_pod(world, "p3", 4, NULL); /* and the other way */
    expect(world, "p3", READY);
    assert_int_equal(world->driver.prepared.n, 0);
}

static void a_device_of_a_driver_is_not_given_by_a_plugin(void **state)
{
    struct world *world = *state;

    share_a_device(world, DV_LEDGER_REFUSES);
    claim_for(world, "c1", "p1");
    expect(world, "p1", READY);
    create_pod(world, "p2", 4, NULL);
    expect(world, "p2", "Pending DeviceInUse");
    pass(world, 5000);
    assert_int_equal(world->plugin.n_allocate, 0); /* ids tell, so nobody is asked */
    delete_pod(world, "p2", 0);
    world_close(world);
    world_open(world);
    publish(world); /* what p1 holds is known again only now */
    create_pod(world, "p2", 4, NULL);
    expect(world, "p2", "Pending DeviceInUse");
    assert_null(release_by_hand(world, "p1"));
    expect(world, "p1", "Succeeded PodCompleted");
    expect(world, "p2", READY);
}

/* The one that a driver has given away is passed over, whatever the order; what is left is not kept
 * back for longer than the admission. */
static void other_devices_are_chosen_where_there_are_any(void **state)
{
    struct world *world = *state;

    share_a_device(world, DV_LEDGER_REFUSES);
    claim_for(world, "c1", "p1");
    expect(world, "p1", READY);
    create_pod(world, "p2", 2, NULL);
    expect(world, "p2", READY);
    create_pod(world, "p3", 1, NULL);
    expect(world, "p3", READY);
    create_pod(world, "p4", 1, NULL); /* only that one is left */
    expect(world, "p4", "Pending DeviceInUse");
    delete_pod(world, "p1", 0);
    expect(world, "p4", READY);
}

/* Both are under way at the same time: who came first has it, and the other waits for its end. */
static void what_is_being_prepared_is_taken(void **state)
{
    struct world *world = *state;

    share_a_device(world, DV_LEDGER_REFUSES);
    world->driver.holds = true;
    claim_for(world, "c1", "p1");
    pass(world, 1000);
    assert_int_equal(world->driver.n_prepare, 1);
    create_pod(world, "p2", 4, NULL);
    expect(world, "p2", "Pending DeviceInUse");
    assert_int_equal(world->plugin.n_allocate, 0);
    delete_pod(world, "p1", 0); /* what was reserved is free with it */
    expect(world, "p2", READY);
}

/* The other way: a plugin takes its time. */
static void what_is_being_allocated_is_taken(void **state)
{
    struct world *world = *state;

    share_a_device(world, DV_LEDGER_REFUSES);
    world->plugin.holds_allocate = true;
    create_pod(world, "p1", 4, NULL);
    pass(world, 1000);
    assert_int_equal(world->plugin.n_allocate, 1);
    claim_for(world, "c1", "p2");
    expect(world, "p2", "Pending DeviceInUse");
    assert_int_equal(world->driver.n_prepare, 0);
    world->plugin.holds_allocate = false;
    world->plugin.fails = DV_INTERNAL;
    delete_pod(world, "p1", 0);
    expect(world, "p2", READY);
}

static void a_pod_may_have_a_device_in_two_ways(void **state)
{
    struct world *world = *state;

    share_a_device(world, DV_LEDGER_REFUSES);
    create_claim(world, "c1");
    create_pod(world, "p1", 4, "c1");
    allocate_claim(world, "c1", "p1");
    expect(world, "p1", READY);
}

static void unless_told_otherwise(void **state)
{
    static const struct {
        enum dv_ledger_mode mode;
        bool is_told;
    } cases[] = {
        {DV_LEDGER_WARNS, true },
        {DV_LEDGER_OFF,   false},
    };
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        share_a_device(world, cases[i].mode);
        create_pod(world, "p1", 4, NULL);
        expect(world, "p1", READY);
        claim_for(world, "c1", "p2");
        expect(world, "p2", READY);
        assert_int_equal(strstr(dv_buf_c(&world->log), "given twice") != NULL, cases[i].is_told);
        world_renew(world);
        dv_buf_clear(&world->log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_name_without_a_spec_is_waited_for),
        world_test(strictly_names_are_taken_as_they_are),
        world_test(a_container_is_not_started_without_its_spec),
        world_test(a_device_of_a_plugin_is_not_given_by_a_driver),
        world_test(a_device_of_a_driver_is_not_given_by_a_plugin),
        world_test(other_devices_are_chosen_where_there_are_any),
        world_test(what_is_being_prepared_is_taken),
        world_test(what_is_being_allocated_is_taken),
        world_test(a_pod_may_have_a_device_in_two_ways),
        world_test(unless_told_otherwise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

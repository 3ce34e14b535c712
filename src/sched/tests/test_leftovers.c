/* test_leftovers.c - what others left behind, or said twice, keeps no pod from its devices. */
#include "support/dvtest.h"

#include <string.h>

#include "base/defs.h"
#include "resource/resource.h"
#include "sched/tests/test_sched_world.h"
#include "support/api_front.h"

#define FINALIZERS "finalizers: [resource.kubernetes.io/delete-protection]"

static const char *uid_of(struct world *world, const char *pod)
{
    return text(world, "%.*s", DV_FMT(look_pod(world, pod)->metadata.uid));
}

/* As a scheduler would: the device of n0, for the pod. */
static void give(struct world *world, const char *claim, const char *device, const char *pod)
{
    change(world, DV_KIND_CLAIM, claim, "{metadata: {" FINALIZERS "}}");
    change_status(world, DV_KIND_CLAIM, claim,
                  text(world,
                       "{status: {allocation: {devices: {results: [{request: r, driver: "
                       "gpu.example, pool: n0, device: %s}]}}, reservedFor: [{resource: pods, "
                       "name: %s, uid: %s}]}}",
                       device, pod, uid_of(world, pod)));
}

static void a_class_that_comes_back_is_seen_by_those_who_waited_for_devices(void **state)
{
    struct world *world = *state;

    make_node(world, "n0", 1);
    make_claim(world, "c1", 1);
    make_claim(world, "c2", 1);
    open_sched(world);
    make_pod(world, "p1", "c1", "");
    settle(world);
    make_pod(world, "p2", "c2", "");
    settle(world);
    assert_string_equal(node_of(world, "p1"), "n0");
    assert_string_equal(node_of(world, "p2"), "");
    destroy(world, DV_KIND_CLASS, "gpu");
    pass(world, 15000);
    assert_non_null(strstr(said_of(world, "p2"), "device class gpu does not exist"));
    destroy(world, DV_KIND_POD, "p1");
    clean_up(world);
    (void)make(world, DV_KIND_CLASS,
               "{metadata: {name: gpu}, spec: {selectors: [{cel: {expression: "
               "'device.driver == \"gpu.example\"'}}]}}");
    pass(world, 15000);
    assert_string_equal(node_of(world, "p2"), "n0");
    assert_at_rest(world);
}

static void a_claim_that_a_pod_names_twice_is_allocated_once(void **state)
{
    struct world *world = *state;

    make_node(world, "n0", 1);
    make_claim(world, "c1", 1);
    open_sched(world);
    make_pod(world, "p1", NULL,
             ", resourceClaims: [{name: e, resourceClaimName: c1}, {name: f, resourceClaimName: "
             "c1}]");
    settle(world);
    assert_string_equal(node_of(world, "p1"), "n0");
    assert_string_equal(devices_of(world, "c1"), "n0/gpu-0");
    assert_int_equal(look_claim(world, "c1")->status.n_reserved_for, 1);
    assert_at_rest(world);
}

/* The first scheduler to be killed left one, the second another. */
static void all_claims_that_were_made_for_extended_resources_are_cleared_away(void **state)
{
    struct world *world = *state;
    static const char *const names[] = {"x1", "x2"};

    make_node(world, "n0", 2);
    change(world, DV_KIND_CLASS, "gpu", "{spec: {extendedResourceName: e.example/gpu}}");
    (void)make(world, DV_KIND_POD,
               "{metadata: {name: p1}, spec: {containers: [{name: c, image: pause, resources: "
               "{requests: {e.example/gpu: 2}, limits: {e.example/gpu: 2}}}]}}");
    for (size_t i = 0; i < DV_COUNT(names); i++) {
        (void)make(world, DV_KIND_CLAIM,
                   text(world,
                        "{metadata: {name: %s, annotations: "
                        "{resource.kubernetes.io/extended-resource-claim: 'true'}, "
                        "ownerReferences: [{apiVersion: v1, kind: Pod, name: p1, uid: %s, "
                        "controller: true}]}, spec: {devices: {requests: [{name: r, exactly: "
                        "{deviceClassName: gpu}}]}}}",
                        names[i], uid_of(world, "p1")));
        give(world, names[i], text(world, "gpu-%zu", i), "p1");
    }
    open_sched(world);
    pass(world, 30000);
    assert_string_equal(node_of(world, "p1"), "n0");
    for (size_t i = 0; i < DV_COUNT(names); i++)
        assert_null(look_claim(world, names[i]));
    assert_at_rest(world);
}

/* An answer gets lost, and what is asked then is refused: also when the pod is bound by then. */
static void a_pod_that_is_bound_keeps_the_claim_that_its_status_names(void **state)
{
    struct world *world = *state;

    make_node(world, "n0", 1);
    change(world, DV_KIND_CLASS, "gpu", "{spec: {extendedResourceName: e.example/gpu}}");
    open_sched(world);
    for (unsigned i = 1; i <= 6; i++) {
        const struct dv_api_pod_extended_resource_claim_status *status;

        world->api.front.fault = FAULT_AFTER;
        world->api.front.fault_at = world->api.front.n_requests + i;
        (void)make(world, DV_KIND_POD,
                   "{metadata: {name: p1}, spec: {containers: [{name: c, image: pause, resources: "
                   "{requests: {e.example/gpu: 1}, limits: {e.example/gpu: 1}}}]}}");
        settle(world);
        world->api.front.fault = FAULT_REFUSED;
        world->api.front.fault_at = world->api.front.n_requests + 1;
        pass(world, 15000);
        assert_string_equal(node_of(world, "p1"), "n0");
        status = look_pod(world, "p1")->status.extended_resource_claim_status;
        assert_non_null(status);
        assert_string_equal(
            devices_of(world, text(world, "%.*s", DV_FMT(status->resource_claim_name))),
            "n0/gpu-0");
        destroy(world, DV_KIND_CLAIM, text(world, "%.*s", DV_FMT(status->resource_claim_name)));
        destroy(world, DV_KIND_POD, "p1");
        clean_up(world);
        pass(world, 1000);
    }
    world->api.front.fault = FAULT_NONE;
    assert_at_rest(world);
}

static void a_device_that_another_claim_was_given_first_is_not_used(void **state)
{
    struct world *world = *state;

    make_node(world, "n0", 2);
    make_claim(world, "c1", 1);
    make_claim(world, "c2", 1);
    make_pod(world, "p1", "c1", ", nodeName: n0");
    make_pod(world, "p2", "c2", "");
    give(world, "c1", "gpu-0", "p1");
    give(world, "c2", "gpu-0", "p2"); /* by a scheduler that was killed before it saw that */
    open_sched(world);
    pass(world, 15000);
    assert_string_equal(node_of(world, "p2"), "n0");
    assert_string_equal(devices_of(world, "c1"), "n0/gpu-0");
    assert_string_equal(devices_of(world, "c2"), "n0/gpu-1");
    assert_at_rest(world);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start_world, end_world)
    const struct CMUnitTest tests[] = {
        TEST(a_class_that_comes_back_is_seen_by_those_who_waited_for_devices),
        TEST(a_claim_that_a_pod_names_twice_is_allocated_once),
        TEST(all_claims_that_were_made_for_extended_resources_are_cleared_away),
        TEST(a_pod_that_is_bound_keeps_the_claim_that_its_status_names),
        TEST(a_device_that_another_claim_was_given_first_is_not_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What becomes of a decision: conflicts, changes in between, other schedulers, conditions. */
#include "sched/tests/test_sched_world.h"

#include "support/dvtest.h"

#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "sched/sched.h"
#include "support/api_front.h"

/* ---- changes in between ---- */

/* A pod that is decided on, and of which nothing is written yet. */
static void decide(struct world *world)
{
    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    open_sched(world);
    world->api.front.is_holding = true;
    make_pod(world, "p1", "c1", "");
    settle(world);
    assert_int_equal(numbers(world).n_in_flight, 1);
}

static void a_pod_that_is_deleted_meanwhile_leaves_nothing(void **state)
{
    struct world *world = *state;

    decide(world);
    destroy(world, DV_KIND_POD, "p1");
    release_requests(world);
    assert_string_equal(devices_of(world, "c1"), "");
    assert_int_equal(look_claim(world, "c1")->status.n_reserved_for, 0);
    assert_at_rest(world);
}

static void a_pod_that_is_replaced_meanwhile_is_another(void **state)
{
    struct world *world = *state;

    decide(world);
    destroy(world, DV_KIND_POD, "p1");
    make_pod(world, "p1", "c1", "");
    release_requests(world);
    pass(world, 12000);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_int_equal(look_claim(world, "c1")->status.n_reserved_for, 1);
    assert_str(look_claim(world, "c1")->status.reserved_for[0].uid,
               dv_str_to_c(look_pod(world, "p1")->metadata.uid, world->api.arena));
    assert_at_rest(world);
}

static void a_claim_that_is_deleted_meanwhile_is_not_held(void **state)
{
    struct world *world = *state;

    decide(world);
    destroy(world, DV_KIND_CLAIM, "c1");
    release_requests(world);
    assert_string_equal(node_of(world, "p1"), "");
    assert_at_rest(world);
    make_claim(world, "c1", 1);
    pass(world, 12000);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_at_rest(world);
}

static void a_claim_that_is_changed_meanwhile_is_written_all_the_same(void **state)
{
    struct world *world = *state;

    decide(world);
    change(world, DV_KIND_CLAIM, "c1", "{metadata: {labels: {a: b}}}");
    release_requests(world);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_string_equal(devices_of(world, "c1"), "n1/gpu-0");
    assert_at_rest(world);
}

#define ALLOCATION(device)                                                                         \
    "{status: {allocation: {devices: {results: [{request: r, driver: gpu.example, pool: n1, "      \
    "device: " device "}]}, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: "              \
    "metadata.name, operator: In, values: [n1]}]}]}}}}"

static void a_claim_that_is_allocated_elsewhere_is_looked_at_again(void **state)
{
    struct world *world = *state;

    decide(world);
    change_status(world, DV_KIND_CLAIM, "c1", ALLOCATION("gpu-7"));
    settle(world);
    assert_int_equal(numbers(world).n_in_flight, 0); /* what was decided is not held any more */
    release_requests(world);
    pass(world, 12000);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_string_equal(devices_of(world, "c1"), "n1/gpu-7");
    assert_at_rest(world);
}

static void a_node_that_vanishes_is_not_bound_to(void **state)
{
    struct world *world = *state;

    decide(world);
    destroy(world, DV_KIND_NODE, "n1");
    release_requests(world);
    assert_string_equal(node_of(world, "p1"), "");
    assert_string_equal(devices_of(world, "c1"), "");
    make_node(world, "n2", 1);
    pass(world, 12000);
    assert_string_equal(node_of(world, "p1"), "n2");
    assert_string_equal(devices_of(world, "c1"), "n2/gpu-0");
    assert_at_rest(world);
}

static void a_binding_that_is_refused_is_undone(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", "");
    world->api.front.fault = FAULT_REFUSED;
    world->api.front.fault_at = 2;
    open_sched(world);
    assert_string_equal(node_of(world, "p1"), "");
    assert_string_equal(devices_of(world, "c1"), "");
    assert_int_equal(look_claim(world, "c1")->status.n_reserved_for, 0);
    assert_string_equal(said_of(world, "p1"), "a fault of the test");
    pass(world, 3000);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_string_equal(said_of(world, "p1"), ""); /* the binding says that it is scheduled */
    assert_at_rest(world);
}

static void a_pod_that_others_bind_keeps_its_claims(void **state)
{
    struct world *world = *state;
    struct dv_sched *other;

    decide(world);
    other = open_another(world); /* it holds back the first one's requests only */
    close_another(world, other);
    release_requests(world);
    pass(world, 12000);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_at_rest(world);
}

/* ---- two schedulers ---- */

static void two_schedulers_give_no_device_twice(void **state)
{
    struct world *world = *state;
    struct dv_sched *other;
    size_t n_bound = 0;

    make_node(world, "n1", 4);
    make_node(world, "n2", 4);
    open_sched(world);
    world->options.scheduler_name = DV_STR("second");
    other = open_another(world);
    for (unsigned i = 0; i < 12; i++) {
        make_claim(world, text(world, "c%u", i), 1);
        make_pod(world, text(world, "p%u", i), text(world, "c%u", i),
                 i % 3 ? "" : ", schedulerName: second");
    }
    pass(world, 60000);
    for (unsigned i = 0; i < 12; i++) {
        const char *devices = devices_of(world, text(world, "c%u", i));

        n_bound += node_of(world, text(world, "p%u", i))[0] != '\0';
        for (unsigned j = 0; j < i; j++)
            if (devices[0])
                assert_string_not_equal(devices, devices_of(world, text(world, "c%u", j)));
    }
    assert_int_equal(n_bound, 8);
    assert_at_rest(world);
    close_another(world, other);
}

/* Both decide on the only device, for different claims, before either is written. */
static void of_two_schedulers_the_first_to_write_wins(void **state)
{
    struct world *world = *state;
    struct dv_sched *other;
    struct dv_sched_numbers theirs;
    const char *loser;

    world->options.scheduler_name = DV_STR("first");
    make_node(world, "n1", 1);
    open_sched(world);
    make_claim(world, "c1", 1);
    make_claim(world, "c2", 1);
    world->api.front.is_holding = true;
    make_pod(world, "p1", "c1", ", schedulerName: first");
    settle(world);
    world->options.scheduler_name = DV_STR("second");
    other = open_another(world);
    make_pod(world, "p2", "c2", ", schedulerName: second");
    settle(world);
    dv_sched_get_numbers(other, &theirs);
    assert_int_equal(numbers(world).n_in_flight, 1);
    assert_int_equal(theirs.n_in_flight, 1);
    release_requests(world);
    pass(world, 30000);
    assert_int_equal((devices_of(world, "c1")[0] != 0) + (devices_of(world, "c2")[0] != 0), 1);
    loser = devices_of(world, "c1")[0] ? "p2" : "p1";
    assert_string_equal(node_of(world, loser), "");
    assert_string_equal(said_of(world, loser),
                        "0/1 nodes are available: 1 cannot allocate all claims. still not "
                        "schedulable. r: 1 wanted, 1 looked at: taken by another claim (gpu-0 on "
                        "n1)");
    close_another(world, other);
    assert_at_rest(world);
}

/* ---- conditions of devices ---- */

static void make_slow_device(struct world *world)
{
    make_node(world, "n1", 0);
    (void)make(world, DV_KIND_SLICE,
               "{metadata: {name: s}, spec: {driver: gpu.example, nodeName: n1, pool: {name: n1, "
               "generation: 1, resourceSliceCount: 1}, devices: [{name: slow, bindsToNode: true, "
               "bindingConditions: [a/ready], bindingFailureConditions: [a/failed]}]}}");
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_string_equal(devices_of(world, "c1"), "n1/slow");
    assert_string_equal(node_of(world, "p1"), "");
    assert_int_equal(n_events(world, "p1", "BindingConditionsPending"), 1);
}

static void set_condition(struct world *world, const char *type)
{
    change_status(world, DV_KIND_CLAIM, "c1",
                  text(world,
                       "{status: {devices: [{driver: gpu.example, pool: n1, device: slow, "
                       "conditions: [{type: %s, status: 'True', reason: r, message: '', "
                       "lastTransitionTime: '2024-01-01T00:00:00Z'}]}]}}",
                       type));
    settle(world);
}

static void a_pod_is_bound_when_its_devices_are_ready(void **state)
{
    struct world *world = *state;

    make_slow_device(world);
    set_condition(world, "a/other");
    assert_string_equal(node_of(world, "p1"), "");
    set_condition(world, "a/ready");
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_at_rest(world);
}

static void a_device_that_fails_is_given_back(void **state)
{
    struct world *world = *state;

    make_slow_device(world);
    set_condition(world, "a/failed");
    assert_string_equal(node_of(world, "p1"), "");
    assert_string_equal(devices_of(world, "c1"), "");
    assert_non_null(strstr(said_of(world, "p1"), "device binding failed"));
    pass(world, 2000); /* and tried again */
    assert_string_equal(devices_of(world, "c1"), "n1/slow");
    set_condition(world, "a/ready");
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_at_rest(world);
}

static void a_device_that_takes_too_long_is_given_back(void **state)
{
    struct world *world = *state;

    world->options.binding_timeout_ms = 10000;
    make_slow_device(world);
    pass(world, 9500);
    assert_string_equal(devices_of(world, "c1"), "n1/slow");
    pass(world, 500);
    assert_string_equal(devices_of(world, "c1"), "");
    assert_non_null(strstr(said_of(world, "p1"), "device binding timeout"));
}

static void a_clock_that_jumps_changes_nothing(void **state)
{
    struct world *world = *state;

    world->options.binding_timeout_ms = 10000;
    make_slow_device(world);
    world->api.clock.wall_offset_ns += UINT64_C(3600) * 1000000000u;
    pass(world, 5000);
    assert_string_equal(devices_of(world, "c1"), "n1/slow");
    world->api.clock.wall_offset_ns -= UINT64_C(7200) * 1000000000u;
    pass(world, 4000);
    set_condition(world, "a/ready");
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_at_rest(world);
}

static void a_claim_that_is_deallocated_while_it_is_waited_for_fails(void **state)
{
    struct world *world = *state;

    make_slow_device(world);
    change_status(world, DV_KIND_CLAIM, "c1", "{status: {allocation: null, reservedFor: null}}");
    settle(world);
    assert_non_null(strstr(said_of(world, "p1"), "deallocated"));
    pass(world, 3000);
    set_condition(world, "a/ready");
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_at_rest(world);
}

static void waiting_goes_on_after_a_restart(void **state)
{
    struct world *world = *state;

    make_slow_device(world);
    close_sched(world);
    open_sched(world);
    assert_string_equal(node_of(world, "p1"), "");
    set_condition(world, "a/ready");
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_at_rest(world);
}

static void without_the_gate_conditions_do_not_count(void **state)
{
    struct world *world = *state;

    world->options.gates = DV_GATES_DEFAULT & ~DV_GATE_BINDING_CONDITIONS;
    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_false(look_claim(world, "c1")->status.allocation->allocation_timestamp.is_set);
}

/* ---- extended resources ---- */

static void make_extended_class(struct world *world)
{
    (void)make(world, DV_KIND_CLASS,
               "{metadata: {name: ext}, spec: {extendedResourceName: ex.ample/gpu, selectors: "
               "[{cel: {expression: 'device.driver == \"gpu.example\"'}}]}}");
}

static void make_extended_pod(struct world *world, const char *name, const char *resource,
                              unsigned n)
{
    (void)make(world, DV_KIND_POD,
               text(world,
                    "{metadata: {name: %s}, spec: {containers: [{name: c, image: pause, "
                    "resources: {requests: {%s: %u}, limits: {%s: %u}}}]}}",
                    name, resource, n, resource, n));
}

static const struct dv_api_resource_claim *extended_claim(struct world *world, size_t *n)
{
    struct dv_object **claims;

    *n = list(world, DV_KIND_CLAIM, &claims);
    return *n > 0 ? claims[0]->value : NULL;
}

static void a_class_serves_an_extended_resource(void **state)
{
    static const char *const resources[] = {"ex.ample/gpu",
                                            "deviceclass.resource.kubernetes.io/ext"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(resources); i++) {
        const struct dv_api_resource_claim *claim;
        const struct dv_api_pod *pod;
        struct world *world;
        size_t n;

        (void)start_world((void **)&world);
        make_extended_class(world);
        make_node(world, "n1", 2);
        make_extended_pod(world, "p1", resources[i], 2);
        open_sched(world);
        assert_string_equal(node_of(world, "p1"), "n1");
        claim = extended_claim(world, &n);
        assert_int_equal(n, 1);
        assert_int_equal(claim->status.allocation->devices.n_results, 2);
        assert_int_equal(claim->status.n_reserved_for, 1);
        pod = look_pod(world, "p1");
        assert_non_null(pod->status.extended_resource_claim_status);
        assert_str(pod->status.extended_resource_claim_status->resource_claim_name,
                   dv_str_to_c(claim->metadata.name, world->api.arena));
        assert_int_equal(pod->status.extended_resource_claim_status->n_request_mappings, 1);
        assert_true(dv_str_starts_with(claim->metadata.name, DV_STR("p1-extended-resources-")));
        assert_at_rest(world);
        (void)end_world((void **)&world);
    }
}

static void what_a_node_has_of_its_own_needs_no_claim(void **state)
{
    struct world *world = *state;
    size_t n;

    make_extended_class(world);
    make_node(world, "n1", 0);
    change_status(world, DV_KIND_NODE, "n1", "{status: {allocatable: {ex.ample/gpu: '2'}}}");
    open_sched(world);
    make_extended_pod(world, "p1", "ex.ample/gpu", 2);
    make_extended_pod(world, "p2", "ex.ample/gpu", 1);
    make_extended_pod(world, "p3", "ex.ample/unknown", 1);
    settle(world);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_string_equal(said_of(world, "p2"),
                        "0/1 nodes are available: 1 Insufficient ex.ample/gpu. still not "
                        "schedulable. pod wants ex.ample/gpu: 1, most free on a node is 0 (n1)");
    assert_string_equal(said_of(world, "p3"),
                        "0/1 nodes are available: 1 Insufficient ex.ample/unknown. no new claims "
                        "to deallocate. pod wants ex.ample/unknown: 1, no node has any");
    (void)extended_claim(world, &n);
    assert_int_equal(n, 0);
}

static void an_extended_resource_waits_for_its_class(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_extended_pod(world, "p1", "ex.ample/gpu", 1);
    open_sched(world);
    assert_string_equal(node_of(world, "p1"), "");
    make_extended_class(world);
    pass(world, 2000);
    assert_string_equal(node_of(world, "p1"), "n1");
}

static void devices_for_extended_resources_are_held_before_their_claim_is_there(void **state)
{
    struct world *world = *state;

    make_extended_class(world);
    make_node(world, "n1", 1);
    open_sched(world);
    world->api.front.is_holding = true;
    make_extended_pod(world, "p1", "ex.ample/gpu", 1);
    make_extended_pod(world, "p2", "ex.ample/gpu", 1);
    settle(world);
    assert_int_equal(numbers(world).n_in_flight, 1);
    release_requests(world);
    pass(world, 5000);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_string_equal(node_of(world, "p2"), "");
    assert_at_rest(world);
}

static void a_left_over_claim_is_removed_first(void **state)
{
    struct world *world = *state;
    size_t n;

    make_extended_class(world);
    make_node(world, "n1", 1);
    make_extended_pod(world, "p1", "ex.ample/gpu", 1);
    (void)make(world, DV_KIND_CLAIM,
               text(world,
                    "{metadata: {name: left, annotations: "
                    "{resource.kubernetes.io/extended-resource-claim: 'true'}, finalizers: "
                    "[resource.kubernetes.io/delete-protection], ownerReferences: [{apiVersion: "
                    "v1, kind: Pod, name: p1, uid: %.*s, controller: true}]}, spec: {devices: "
                    "{requests: [{name: r, exactly: {deviceClassName: ext}}]}}}",
                    DV_FMT(look_pod(world, "p1")->metadata.uid)));
    change_status(world, DV_KIND_CLAIM, "left", ALLOCATION("gpu-0"));
    open_sched(world);
    pass(world, 5000);
    assert_null(look_claim(world, "left"));
    assert_string_equal(node_of(world, "p1"), "n1");
    (void)extended_claim(world, &n);
    assert_int_equal(n, 1);
    assert_at_rest(world);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pod_that_is_deleted_meanwhile_leaves_nothing),
        TEST(a_pod_that_is_replaced_meanwhile_is_another),
        TEST(a_claim_that_is_deleted_meanwhile_is_not_held),
        TEST(a_claim_that_is_changed_meanwhile_is_written_all_the_same),
        TEST(a_claim_that_is_allocated_elsewhere_is_looked_at_again),
        TEST(a_node_that_vanishes_is_not_bound_to),
        TEST(a_binding_that_is_refused_is_undone),
        TEST(a_pod_that_others_bind_keeps_its_claims),
        TEST(two_schedulers_give_no_device_twice),
        TEST(of_two_schedulers_the_first_to_write_wins),
        TEST(a_pod_is_bound_when_its_devices_are_ready),
        TEST(a_device_that_fails_is_given_back),
        TEST(a_device_that_takes_too_long_is_given_back),
        TEST(a_clock_that_jumps_changes_nothing),
        TEST(a_claim_that_is_deallocated_while_it_is_waited_for_fails),
        TEST(waiting_goes_on_after_a_restart),
        TEST(without_the_gate_conditions_do_not_count),
        TEST(a_class_serves_an_extended_resource),
        TEST(what_a_node_has_of_its_own_needs_no_claim),
        TEST(an_extended_resource_waits_for_its_class),
        TEST(devices_for_extended_resources_are_held_before_their_claim_is_there),
        TEST(a_left_over_claim_is_removed_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

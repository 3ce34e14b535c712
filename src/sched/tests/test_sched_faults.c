/* Every request may fail, in every way, and the end is the same. */
#include "sched/tests/test_sched_world.h"

#include "support/dvtest.h"

#include <stdbool.h>
#include <string.h>

#include "base/defs.h"
#include "cluster/cluster.h"
#include "resource/resource.h"
#include "support/api_front.h"
#include "support/embedded_count.h"

/* Pods with and without claims, shared claims, extended resources, one that does not fit, one that
 * is bound already. */
static void tell_story(struct world *world)
{
    make_node(world, "n1", 3);
    make_node(world, "n2", 3);
    (void)make(world, DV_KIND_CLASS,
               "{metadata: {name: ext}, spec: {extendedResourceName: ex.ample/gpu, selectors: "
               "[{cel: {expression: 'device.driver == \"gpu.example\"'}}]}}");
    for (unsigned i = 1; i <= 4; i++)
        make_claim(world, text(world, "c%u", i), i == 4 ? 9 : 1);
    open_sched(world);
    make_pod(world, "p1", "c1", "");
    make_pod(world, "p2", "c2", "");
    make_pod(world, "p3", "c2", "");
    make_pod(world, "p4", "c4", "");
    make_pod(world, "p5", NULL, "");
    make_pod(world, "p6", "c3", ", nodeName: n2");
    (void)make(world, DV_KIND_POD,
               "{metadata: {name: p7}, spec: {containers: [{name: c, image: pause, resources: "
               "{limits: {ex.ample/gpu: 1}}}]}}");
    pass(world, 60000);
}

static void check_end(struct world *world)
{
    static const char *const bound[] = {"p1", "p2", "p3", "p5", "p7"};

    for (size_t i = 0; i < DV_COUNT(bound); i++)
        assert_string_not_equal(node_of(world, bound[i]), "");
    assert_string_equal(node_of(world, "p2"), node_of(world, "p3"));
    assert_int_equal(look_claim(world, "c2")->status.n_reserved_for, 2);
    assert_int_equal(strncmp(devices_of(world, "c3"), "n2/", 3), 0);
    assert_string_equal(devices_of(world, "c4"), "");
    /* Which device is the nearest depends on when the others were given away. */
    assert_non_null(strstr(said_of(world, "p4"),
                           "0/2 nodes are available: 2 cannot allocate all claims. still not "
                           "schedulable. r: 9 wanted, "));
    assert_non_null(look_pod(world, "p7")->status.extended_resource_claim_status);
    /* Of claims for extended resources, only the one that is used is left. */
    assert_int_equal(embedded_count(world->api.embedded, dv_kind(DV_KIND_CLAIM)), 5);
    assert_at_rest(world);
}

/* Each request of the story fails in each way. Over a server the writes are others. */
static void fail_all(bool is_embedded)
{
    static const enum fault faults[] = {FAULT_BEFORE, FAULT_AFTER, FAULT_CONFLICT, FAULT_REFUSED};
    uint64_t n_requests = 1;

    for (size_t i = 0; i < DV_COUNT(faults); i++)
        for (uint64_t at = 1; at <= n_requests; at++) {
            struct world *world;

            (void)start_world((void **)&world);
            world->api.front.cluster.is_embedded = is_embedded;
            world->api.front.fault = faults[i];
            world->api.front.fault_at = at;
            tell_story(world);
            check_end(world);
            if (n_requests == 1)
                n_requests = world->api.front.n_requests;
            (void)end_world((void **)&world);
        }
    assert_true(n_requests > 12);
}

static void the_end_is_the_same_whatever_fails(void **state)
{
    (void)state;
    fail_all(true);
}

static void over_a_server_the_end_is_the_same_whatever_fails(void **state)
{
    (void)state;
    fail_all(false);
}

static void nothing_works_for_a_minute_and_then_all_does(void **state)
{
    struct world *world = *state;

    world->api.front.fault = FAULT_BEFORE;
    tell_story(world);
    assert_string_equal(node_of(world, "p1"), "");
    world->api.front.fault = FAULT_NONE;
    pass(world, 30000);
    check_end(world);
}

/* It is closed while the n-th request is under way; the next one goes on. */
static void it_may_be_closed_at_any_point(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 12; n++) {
        struct world *world;

        (void)start_world((void **)&world);
        make_node(world, "n1", 3);
        open_sched(world);
        world->api.front.is_holding = true;
        make_claim(world, "c1", 1);
        make_pod(world, "p1", "c1", "");
        make_claim(world, "c2", 1);
        make_pod(world, "p2", "c2", "");
        make_pod(world, "p3", "c9", "");
        for (unsigned i = 0; i < n; i++) {
            settle(world);
            release_some(world, 1);
        }
        close_sched(world);
        world->api.front.is_holding = false;
        open_sched(world);
        pass(world, 15000);
        assert_string_equal(node_of(world, "p1"), "n1");
        assert_string_equal(node_of(world, "p2"), "n1");
        assert_string_not_equal(devices_of(world, "c1"), devices_of(world, "c2"));
        assert_at_rest(world);
        (void)end_world((void **)&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_is_the_same_whatever_fails),
        cmocka_unit_test(over_a_server_the_end_is_the_same_whatever_fails),
        cmocka_unit_test_setup_teardown(nothing_works_for_a_minute_and_then_all_does, start_world,
                                        end_world),
        cmocka_unit_test(it_may_be_closed_at_any_point),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_control_faults.c - requests that fail, conflicts, and controllers that are closed in
 * between: the end is always the same, and nothing is there twice. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "base/defs.h"
#include "control/control.h"
#include "control/tests/test_control_world.h"
#include "resource/resource.h"
#include "support/api_front.h"

/* ---- a story with all that controllers do ---- */

#define RULE                                                                                       \
    "{metadata: {name: r}, spec: {deviceSelector: {device: bad}, taint: {key: k, effect: "         \
    "NoExecute}}}"

static void begin_story(struct world *world)
{
    (void)make(world, DV_KIND_TEMPLATE, "default", TEMPLATE);
    /* gets two claims */
    (void)make(world, DV_KIND_POD, "default",
               POD("new", BY_TEMPLATE ", {name: f, resourceClaimTemplateName: t}", ""));
    /* gets a reservation */
    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("shared"));
    (void)make(world, DV_KIND_POD, "default", POD("bound", BY_NAME("shared"), ON_NODE));
    allocate(world, "shared", RESULT("good", ""), "");
    /* loses its only user, which the API does not have any more */
    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("left"));
    allocate(world, "left", RESULT("old", ""), "gone");
    /* is deleted, and waits for us */
    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("unwanted"));
    allocate(world, "unwanted", RESULT("spare", ""), "");
    destroy(world, DV_KIND_CLAIM, "default", "unwanted");
    /* is over, with a claim that was made for it */
    (void)make(world, DV_KIND_POD, "default", POD("over", BY_TEMPLATE, ON_NODE));
    (void)make(world, DV_KIND_CLAIM, "default",
               text(world,
                    "{metadata: {name: overs, annotations: "
                    "{resource.kubernetes.io/pod-claim-name: e}, ownerReferences: [{apiVersion: "
                    "v1, kind: Pod, name: over, uid: %.*s, controller: true}]}, spec: {devices: "
                    "{requests: [{name: r, exactly: {deviceClassName: c}}]}}}",
                    DV_FMT(look_pod(world, "over")->metadata.uid)));
    allocate(world, "overs", RESULT("used", ""), "over");
    change_status(world, DV_KIND_POD, "default", "over",
                  "{status: {phase: Succeeded, resourceClaimStatuses: [{name: e, "
                  "resourceClaimName: overs}]}}");
    /* has to go */
    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("tainted"));
    (void)make(world, DV_KIND_POD, "default", POD("evicted", BY_NAME("tainted"), ON_NODE));
    allocate(world, "tainted", RESULT("bad", ""), "evicted");
    (void)make(world, DV_KIND_TAINT_RULE, "", RULE);
}

static void check_end(struct world *world)
{
    const struct dv_api_pod *pod = look_pod(world, "new");
    const struct dv_api_resource_claim *claim;
    const struct dv_object *rule;
    struct dv_object **claims;

    assert_non_null(generated(world, "new", "e"));
    assert_non_null(generated(world, "new", "f"));
    assert_int_equal(pod->status.n_resource_claim_statuses, 2);
    claim = look_claim(world, "shared");
    assert_int_equal(claim->status.n_reserved_for, 1);
    assert_str(claim->status.reserved_for[0].name, "bound");
    claim = look_claim(world, "left");
    assert_int_equal(claim->status.n_reserved_for, 0);
    assert_null(claim->status.allocation);
    assert_int_equal(claim->metadata.n_finalizers, 0);
    assert_null(look_claim(world, "unwanted"));
    assert_null(look_claim(world, "overs"));
    assert_non_null(look_pod(world, "over"));
    assert_true(look_pod(world, "evicted")->metadata.deletion_timestamp.is_set);
    /* shared, left, tainted, and the two */
    assert_int_equal(list(world, DV_KIND_CLAIM, "default", &claims), 5);
    rule = look(world, DV_KIND_TAINT_RULE, "", "r");
    assert_int_equal(((struct dv_api_device_taint_rule *)rule->value)->status.n_conditions, 1);
}

/* How many requests the story takes when nothing fails. */
static uint64_t count_requests(bool is_embedded)
{
    struct world *world;
    uint64_t n;

    (void)start_world((void **)&world);
    world->api.front.cluster.is_embedded = is_embedded;
    begin_story(world);
    open_control(world);
    check_end(world);
    n = world->api.front.n_requests;
    (void)end_world((void **)&world);
    return n;
}

static void fail_each_once(bool is_embedded)
{
    static const enum fault faults[] = {FAULT_BEFORE, FAULT_AFTER, FAULT_CONFLICT};
    uint64_t n = count_requests(is_embedded);

    assert_true(n > 10);
    for (size_t i = 0; i < DV_COUNT(faults); i++) {
        for (uint64_t at = 1; at <= n; at++) {
            struct world *world;

            (void)start_world((void **)&world);
            world->api.front.cluster.is_embedded = is_embedded;
            begin_story(world);
            world->api.front.fault = faults[i];
            world->api.front.fault_at = at;
            open_control(world);
            pass(world, 15000);
            check_end(world);
            (void)end_world((void **)&world);
        }
    }
}

static void every_request_may_fail_once(void **state)
{
    (void)state;
    fail_each_once(true);
}

static void over_a_server_every_request_may_fail_once(void **state)
{
    (void)state;
    fail_each_once(false);
}

/* Finalizers of claims that are given back go with their allocation. */
static void an_embedded_api_takes_fewer_writes(void **state)
{
    (void)state;
    assert_true(count_requests(true) < count_requests(false));
}

static void all_requests_may_fail_for_a_while(void **state)
{
    struct world *world = *state;
    struct dv_control_stats stats;

    begin_story(world);
    world->api.front.fault = FAULT_BEFORE;
    open_control(world);
    pass(world, 120000);
    dv_control_get_stats(world->control, &stats);
    /* the pauses have grown: each of the eight or so is tried a few dozen times at most */
    assert_true(stats.n_retries > 30);
    assert_true(stats.n_retries < 400);
    world->api.front.fault = FAULT_NONE;
    pass(world, 75000);
    check_end(world);
}

/* Closed after each request, whether it was passed on or not; then opened again. */
static void it_may_be_closed_at_any_point(void **state)
{
    uint64_t n = count_requests(true);

    (void)state;
    for (uint64_t at = 1; at <= n; at++) {
        struct world *world;

        (void)start_world((void **)&world);
        begin_story(world);
        world->api.front.fault = at % 2 ? FAULT_AFTER : FAULT_BEFORE;
        world->api.front.fault_at = at;
        open_control(world);
        close_control(world);
        world->api.front.fault = FAULT_NONE;
        open_control(world);
        pass(world, 45000); /* a finalizer that was left goes after half a minute */
        check_end(world);
        (void)end_world((void **)&world);
    }
}

static void it_may_be_closed_while_requests_are_under_way(void **state)
{
    struct world *world = *state;

    begin_story(world);
    for (unsigned i = 0; i < 5; i++) {
        world->api.front.is_holding = true;
        open_control(world);
        close_control(world);
        world->api.front.is_holding = false;
    }
    open_control(world);
    pass(world, 45000);
    check_end(world);
    assert_int_equal(world->api.front.n_created[DV_KIND_CLAIM], 2);
}

static void it_may_be_closed_before_it_has_begun(void **state)
{
    struct world *world = *state;
    struct dv_err err;

    begin_story(world);
    world->control = dv_control_open(world->api.loop, &world->options, &err);
    assert_ok(world->control, &err);
    assert_false(dv_control_is_ready(world->control));
    close_control(world);
    assert_int_equal(world->api.front.n_requests, 0);
    open_control(world);
    assert_true(dv_control_is_ready(world->control));
    pass(world, 1000);
    check_end(world);
}

/* ---- others work on the same objects ---- */

static void a_claim_that_changes_meanwhile_is_looked_at_again(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
    (void)make(world, DV_KIND_POD, "default", POD("q", BY_NAME("k"), ON_NODE));
    allocate(world, "k", RESULT("d0", ""), "p");
    world->api.front.is_holding = true;
    open_control(world); /* the reservation for q is on its way */
    change_status(world, DV_KIND_CLAIM, "default", "k",
                  "{status: {devices: [{driver: d.example, pool: p, device: d0}]}}");
    release_requests(world);
    settle(world);
    pass(world, 1000);
    assert_int_equal(look_claim(world, "k")->status.n_reserved_for, 2);
    assert_int_equal(look_claim(world, "k")->status.n_devices, 1); /* and nothing was lost */
}

static void a_pod_that_goes_meanwhile_leaves_nothing(void **state)
{
    struct world *world = *state;
    struct dv_object **claims;

    (void)make(world, DV_KIND_TEMPLATE, "default", TEMPLATE);
    open_control(world);
    world->api.front.is_holding = true;
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ""));
    destroy(world, DV_KIND_POD, "default", "p"); /* before its claim is made */
    release_requests(world);
    settle(world);
    pass(world, 5000);
    assert_int_equal(list(world, DV_KIND_CLAIM, "default", &claims), 0);
}

static void an_eviction_that_is_cancelled_on_its_way_stops(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
    allocate(world, "k", RESULT("bad", ""), "p");
    (void)make(world, DV_KIND_TAINT_RULE, "", RULE);
    world->api.front.is_holding = true;
    open_control(world);
    for (unsigned i = 0; i < 2; i++) { /* the rule's status, then GET */
        release_requests(world);
        world->api.front.is_holding = true;
        settle(world);
    }
    destroy(world, DV_KIND_TAINT_RULE, "", "r");
    release_requests(world);
    settle(world);
    pass(world, 5000);
    assert_false(look_pod(world, "p")->metadata.deletion_timestamp.is_set);
    assert_int_equal(n_events(world, "p", "DeviceTaintManagerEviction", "Cancelling deletion"), 1);
}

static void another_may_delete_the_pod_first(void **state)
{
    struct world *world = *state;
    struct dv_control_stats stats;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
    allocate(world, "k", RESULT("bad", ""), "p");
    (void)make(world, DV_KIND_TAINT_RULE, "", RULE);
    world->api.front.is_holding = true;
    open_control(world);
    release_requests(world);
    world->api.front.is_holding = true;
    settle(world);
    destroy(world, DV_KIND_POD, "default", "p");
    release_requests(world);
    settle(world);
    dv_control_get_stats(world->control, &stats);
    assert_int_equal(stats.n_pod_deletions, 0);
    assert_int_equal(stats.n_retries, 0);
}

static void a_pod_that_takes_the_name_of_an_evicted_one_is_judged_for_itself(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("good"));
    for (unsigned i = 0; i < 2; i++) {
        (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
        allocate(world, "k", RESULT("bad", ""), "p");
        (void)make(world, DV_KIND_TAINT_RULE, "", RULE);
        open_control(world);
        close_control(world);
        destroy(world, DV_KIND_POD, "default", "p");
        /* again, and gone before the API is asked for it */
        (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
        allocate(world, "k", RESULT("bad", ""), "p");
        world->api.front.is_holding = true;
        open_control(world);
        destroy(world, DV_KIND_POD, "default", "p");
        if (i == 0) { /* one that uses the same claim */
            (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
            allocate(world, "k", RESULT("bad", ""), "p");
        } else {
            (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("good"), ON_NODE));
            allocate(world, "good", RESULT("fine", ""), "p");
        }
        release_requests(world);
        settle(world);
        pass(world, 5000);
        assert_int_equal(look_pod(world, "p")->metadata.deletion_timestamp.is_set, i == 0);
        close_control(world);
        destroy(world, DV_KIND_POD, "default", "p");
        destroy(world, DV_KIND_TAINT_RULE, "", "r");
    }
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, start_world, end_world)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_may_fail_once),
        cmocka_unit_test(over_a_server_every_request_may_fail_once),
        cmocka_unit_test(an_embedded_api_takes_fewer_writes),
        ROW(all_requests_may_fail_for_a_while),
        cmocka_unit_test(it_may_be_closed_at_any_point),
        ROW(it_may_be_closed_while_requests_are_under_way),
        ROW(it_may_be_closed_before_it_has_begun),
        ROW(a_claim_that_changes_meanwhile_is_looked_at_again),
        ROW(a_pod_that_goes_meanwhile_leaves_nothing),
        ROW(an_eviction_that_is_cancelled_on_its_way_stops),
        ROW(another_may_delete_the_pod_first),
        ROW(a_pod_that_takes_the_name_of_an_evicted_one_is_judged_for_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

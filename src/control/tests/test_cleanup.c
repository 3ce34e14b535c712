/* test_cleanup.c - claims that are reserved, given back, and removed. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "base/defs.h"
#include "control/control.h"
#include "control/tests/test_control_world.h"
#include "resource/resource.h"
#include "support/api_front.h"

#define FINALIZER_NAME "resource.kubernetes.io/delete-protection"

static bool has_finalizer(const struct dv_api_resource_claim *claim)
{
    return claim->metadata.n_finalizers == 1 &&
           dv_str_eq(claim->metadata.finalizers[0], DV_STR(FINALIZER_NAME));
}

static void start_with_template(struct world *world)
{
    (void)make(world, DV_KIND_TEMPLATE, "default", TEMPLATE);
    open_control(world);
}

/* ---- reservations ---- */

static void an_allocated_claim_is_reserved_for_a_pod_on_a_node(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("l"));
    open_control(world);
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
    (void)make(world, DV_KIND_POD, "default", POD("q", BY_NAME("l"), ON_NODE));
    (void)make(world, DV_KIND_POD, "default", POD("r", BY_NAME("k"), ""));
    assert_int_equal(world->api.front.n_requests, 0); /* allocating is the scheduler's */
    allocate(world, "k", RESULT("d0", ""), "");
    assert_int_equal(look_claim(world, "k")->status.n_reserved_for, 1);
    assert_str(look_claim(world, "k")->status.reserved_for[0].name, "p");
    assert_str(look_claim(world, "k")->status.reserved_for[0].resource, "pods");
    assert_true(dv_str_eq(look_claim(world, "k")->status.reserved_for[0].uid,
                          look_pod(world, "p")->metadata.uid));
    assert_int_equal(look_claim(world, "l")->status.n_reserved_for, 0);
}

static void reservations_of_pods_that_are_gone_go(void **state)
{
    struct world *world = *state;
    const struct dv_api_resource_claim *claim;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
    (void)make(world, DV_KIND_POD, "default", POD("q", BY_NAME("k"), ON_NODE));
    allocate(world, "k", RESULT("d0", ""), "p q");
    change_status(world, DV_KIND_CLAIM, "default", "k",
                  "{status: {devices: [{driver: d.example, pool: p, device: d0}]}}");
    open_control(world);
    assert_int_equal(look_claim(world, "k")->status.n_reserved_for, 2);
    destroy(world, DV_KIND_POD, "default", "q");
    claim = look_claim(world, "k");
    assert_int_equal(claim->status.n_reserved_for, 1);
    assert_str(claim->status.reserved_for[0].name, "p");
    assert_non_null(claim->status.allocation);
    assert_true(has_finalizer(claim));
    change_status(world, DV_KIND_POD, "default", "p", "{status: {phase: Succeeded}}");
    claim = look_claim(world, "k");
    assert_int_equal(claim->status.n_reserved_for, 0);
    assert_null(claim->status.allocation);
    assert_int_equal(claim->status.n_devices, 0);
    assert_int_equal(claim->metadata.n_finalizers, 0);
}

static void who_is_no_pod_keeps_its_reservation(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
    allocate(world, "k", RESULT("d0", ""), "p");
    change_status(world, DV_KIND_CLAIM, "default", "k",
                  text(world,
                       "{status: {reservedFor: [{resource: pods, name: p, uid: %.*s}, {apiGroup: "
                       "example.com, resource: things, name: x, uid: u}]}}",
                       DV_FMT(look_pod(world, "p")->metadata.uid)));
    open_control(world);
    destroy(world, DV_KIND_POD, "default", "p");
    assert_int_equal(look_claim(world, "k")->status.n_reserved_for, 1);
    assert_str(look_claim(world, "k")->status.reserved_for[0].resource, "things");
    assert_non_null(look_claim(world, "k")->status.allocation);
}

static void a_claim_that_is_deleted_in_use_waits_for_its_pods(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
    allocate(world, "k", RESULT("d0", ""), "p");
    open_control(world);
    destroy(world, DV_KIND_CLAIM, "default", "k");
    assert_non_null(look_claim(world, "k"));
    destroy(world, DV_KIND_POD, "default", "p");
    assert_null(look_claim(world, "k"));
}

/* Who watches sees a claim without its allocation before it is gone: the write of the status does
 * not take the finalizer with it, as it does for a claim that stays. */
static void a_claim_is_deallocated_before_it_goes(void **state)
{
    struct world *world = *state;
    size_t n_before;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("l"));
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
    (void)make(world, DV_KIND_POD, "default", POD("q", BY_NAME("l"), ON_NODE));
    allocate(world, "k", RESULT("d0", ""), "p");
    allocate(world, "l", RESULT("d1", ""), "q");
    open_control(world);
    destroy(world, DV_KIND_CLAIM, "default", "k");
    n_before = world->api.front.n_requests;
    destroy(world, DV_KIND_POD, "default", "p");
    assert_null(look_claim(world, "k"));
    assert_int_equal(world->api.front.n_requests - n_before, 2);
    n_before = world->api.front.n_requests;
    destroy(world, DV_KIND_POD, "default", "q");
    assert_int_equal(look_claim(world, "l")->metadata.n_finalizers, 0);
    assert_int_equal(world->api.front.n_requests - n_before, 1);
}

static void an_unused_claim_that_is_deleted_is_deallocated(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    allocate(world, "k", RESULT("d0", ""), "");
    open_control(world);
    pass(world, 60000);
    assert_non_null(look_claim(world, "k")->status.allocation); /* allocated in advance: it stays */
    assert_true(has_finalizer(look_claim(world, "k")));
    destroy(world, DV_KIND_CLAIM, "default", "k");
    assert_null(look_claim(world, "k"));
}

static void a_reservation_for_another_pod_of_that_name_goes(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_POD, "default", POD("p", "", ON_NODE));
    (void)make(world, DV_KIND_POD, "default", POD("q", "", ON_NODE));
    allocate(world, "k", RESULT("d0", ""), "p q");
    change_status(world, DV_KIND_CLAIM, "default", "k",
                  text(world,
                       "{status: {reservedFor: [{resource: pods, name: p, uid: other}, {resource: "
                       "pods, name: q, uid: %.*s}, {resource: pods, name: never, uid: u}]}}",
                       DV_FMT(look_pod(world, "q")->metadata.uid)));
    open_control(world);
    assert_int_equal(look_claim(world, "k")->status.n_reserved_for, 1);
    assert_str(look_claim(world, "k")->status.reserved_for[0].name, "q");
    assert_non_null(look_claim(world, "k")->status.allocation);
}

static void a_full_claim_takes_no_more(void **state)
{
    struct world *world = *state;
    const char *list_of = "";

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
    allocate(world, "k", RESULT("d0", ""), "");
    for (unsigned i = 0; i < 256; i++)
        list_of = text(world, "%s{apiGroup: example.com, resource: things, name: x, uid: u%u},",
                       list_of, i);
    change_status(world, DV_KIND_CLAIM, "default", "k",
                  text(world, "{status: {reservedFor: [%s]}}", list_of));
    open_control(world);
    assert_int_equal(look_claim(world, "k")->status.n_reserved_for, 256);
    assert_int_equal(world->api.front.n_requests, 0);
}

static void pods_that_the_view_does_not_show_are_asked_for(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(
        world, DV_KIND_POD, "default",
        "{metadata: {name: p, labels: {hidden: a}}, spec: {nodeName: n1, containers: [{name: "
        "c, image: pause}], resourceClaims: [{name: e, resourceClaimName: k}]}}");
    allocate(world, "k", RESULT("d0", ""), "p");
    world->api.front.hidden = DV_STR("!hidden");
    open_control(world);
    assert_int_equal(world->api.front.n_requests, 1);
    assert_int_equal(look_claim(world, "k")->status.n_reserved_for, 1);
    assert_non_null(look_claim(world, "k")->status.allocation);
}

/* ---- what was generated goes ---- */

static void a_generated_claim_goes_when_its_pod_is_done(void **state)
{
    static const char *const phases[] = {"Succeeded", "Failed"};
    struct world *world = *state;

    start_with_template(world);
    for (size_t i = 0; i < DV_COUNT(phases); i++) {
        const char *name;

        (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ON_NODE));
        name = text(world, "%.*s", DV_FMT(generated(world, "p", "e")->metadata.name));
        allocate(world, name, RESULT("d0", ""), "p");
        change_status(world, DV_KIND_POD, "default", "p", "{status: {phase: Running}}");
        assert_non_null(look_claim(world, name)); /* also when its containers begin again */
        change_status(world, DV_KIND_POD, "default", "p",
                      text(world, "{status: {phase: %s}}", phases[i]));
        assert_null(look_claim(world, name));
        assert_non_null(look_pod(world, "p"));
        destroy(world, DV_KIND_POD, "default", "p");
    }
}

static void a_generated_claim_goes_with_its_pod(void **state)
{
    struct world *world = *state;
    const char *name;

    start_with_template(world);
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ON_NODE));
    name = text(world, "%.*s", DV_FMT(generated(world, "p", "e")->metadata.name));
    allocate(world, name, RESULT("d0", ""), "p");
    destroy(world, DV_KIND_POD, "default", "p");
    pass(world, 3000);
    assert_null(look_claim(world, name));
    /* one of the same name gets a claim of its own */
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ON_NODE));
    assert_non_null(generated(world, "p", "e"));
    assert_null(look_claim(world, name));
}

static void extended_claims_are_cleaned_up_as_well(void **state)
{
    static const char *const ends[] = {"Succeeded", "Failed", NULL};
    struct world *world = *state;

    start_with_template(world);
    for (size_t i = 0; i < DV_COUNT(ends); i++) {
        struct dv_control_stats stats;
        const char *own;

        (void)make(world, DV_KIND_POD, "default",
                   "{metadata: {name: p}, spec: {nodeName: n1, resourceClaims: [" BY_TEMPLATE
                   "], containers: [{name: c, image: pause, resources: {requests: "
                   "{example.com/g: 1}, limits: {example.com/g: 1}}}]}}");
        own = text(world, "%.*s", DV_FMT(generated(world, "p", "e")->metadata.name));
        (void)make(world, DV_KIND_CLAIM, "default",
                   text(world,
                        "{metadata: {name: x, annotations: "
                        "{resource.kubernetes.io/extended-resource-claim: \"true\"}, "
                        "ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: %.*s, "
                        "controller: true}]}, spec: {devices: {requests: [{name: r, exactly: "
                        "{deviceClassName: c}}]}}}",
                        DV_FMT(look_pod(world, "p")->metadata.uid)));
        allocate(world, "x", RESULT("d1", ""), "p");
        change_status(world, DV_KIND_POD, "default", "p",
                      "{status: {phase: Running, extendedResourceClaimStatus: {resourceClaimName: "
                      "x, requestMappings: [{containerName: c, resourceName: example.com/g, "
                      "requestName: r}]}}}");
        pass(world, 60000);
        assert_non_null(look_claim(world, "x"));
        dv_control_get_stats(world->control, &stats);
        assert_int_equal(stats.n_claims[1][0][DV_CLAIM_EXTENDED], 1);
        if (ends[i])
            change_status(world, DV_KIND_POD, "default", "p",
                          text(world, "{status: {phase: %s}}", ends[i]));
        else
            destroy(world, DV_KIND_POD, "default", "p");
        pass(world, 3000);
        assert_null(look_claim(world, "x"));
        assert_null(look_claim(world, own));
        destroy(world, DV_KIND_POD, "default", "p");
    }
}

static void a_node_that_vanishes_changes_nothing_by_itself(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_NODE, "", "{metadata: {name: n1}}");
    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_NAME("k"), ON_NODE));
    allocate(world, "k", RESULT("d0", ""), "p");
    open_control(world);
    destroy(world, DV_KIND_NODE, "", "n1");
    delete_gently(world, DV_KIND_POD, "default", "p"); /* nobody is there to end it */
    pass(world, 60000);
    assert_int_equal(look_claim(world, "k")->status.n_reserved_for, 1);
    destroy(world, DV_KIND_POD, "default", "p");
    assert_null(look_claim(world, "k")->status.allocation);
}

static void a_finalizer_for_nothing_goes_after_a_while(void **state)
{
    struct world *world = *state;

    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    change(world, DV_KIND_CLAIM, "default", "k", FINALIZER);
    open_control(world);
    pass(world, 20000);
    assert_true(has_finalizer(look_claim(world, "k"))); /* a scheduler may be about to allocate */
    change(world, DV_KIND_CLAIM, "default", "k", "{metadata: {labels: {a: b}}}");
    pass(world, 20000);
    assert_true(has_finalizer(look_claim(world, "k"))); /* somebody was there */
    pass(world, 20000);
    assert_false(has_finalizer(look_claim(world, "k")));
}

static void the_reference_leaves_it_there_and_more_to_the_server(void **state)
{
    struct world *world = *state;

    world->options.is_strict = true;
    (void)make(world, DV_KIND_TEMPLATE, "default", TEMPLATE);
    (void)make(world, DV_KIND_POD, "default", POD("p", BY_TEMPLATE, ""));
    (void)make(world, DV_KIND_CLAIM, "default", CLAIM("k"));
    change(world, DV_KIND_CLAIM, "default", "k", FINALIZER);
    open_control(world);
    assert_non_null(generated(world, "p", "e")); /* under a name that the server chose */
    pass(world, 90000);
    assert_true(has_finalizer(look_claim(world, "k")));
    destroy(world, DV_KIND_CLAIM, "default", "k");
    assert_null(look_claim(world, "k"));
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, start_world, end_world)
    const struct CMUnitTest tests[] = {
        ROW(an_allocated_claim_is_reserved_for_a_pod_on_a_node),
        ROW(reservations_of_pods_that_are_gone_go),
        ROW(who_is_no_pod_keeps_its_reservation),
        ROW(a_claim_that_is_deleted_in_use_waits_for_its_pods),
        ROW(a_claim_is_deallocated_before_it_goes),
        ROW(an_unused_claim_that_is_deleted_is_deallocated),
        ROW(a_reservation_for_another_pod_of_that_name_goes),
        ROW(a_full_claim_takes_no_more),
        ROW(pods_that_the_view_does_not_show_are_asked_for),
        ROW(a_generated_claim_goes_when_its_pod_is_done),
        ROW(a_generated_claim_goes_with_its_pod),
        ROW(extended_claims_are_cleaned_up_as_well),
        ROW(a_node_that_vanishes_changes_nothing_by_itself),
        ROW(a_finalizer_for_nothing_goes_after_a_while),
        ROW(the_reference_leaves_it_there_and_more_to_the_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

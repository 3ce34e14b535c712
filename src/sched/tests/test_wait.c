/* Who waits, for what, and who is woken. */
#include "sched/tests/test_sched_world.h"

#include "support/dvtest.h"

#include <string.h>

#include "base/defs.h"
#include "resource/resource.h"
#include "sched/sched.h"
#include "support/api_front.h"

static uint64_t n_attempts(struct world *world)
{
    struct dv_sched_numbers now = numbers(world);

    return now.n_attempts[DV_SCHED_SCHEDULED] + now.n_attempts[DV_SCHED_UNSCHEDULABLE] +
           now.n_attempts[DV_SCHED_ERROR];
}

/* ---- claims that are not there yet ---- */

static void make_template_pod(struct world *world, const char *name)
{
    (void)make(world, DV_KIND_POD,
               text(world,
                    "{metadata: {name: %s}, spec: {containers: [{name: c, image: pause}], "
                    "resourceClaims: [{name: e, resourceClaimTemplateName: t}]}}",
                    name));
}

static void make_generated(struct world *world, const char *pod, const char *uid)
{
    (void)make(world, DV_KIND_CLAIM,
               text(world,
                    "{metadata: {name: %s-e, ownerReferences: [{apiVersion: v1, kind: Pod, name: "
                    "%s, uid: %s, controller: true}]}, spec: {devices: {requests: [{name: r, "
                    "exactly: {deviceClassName: gpu}}]}}}",
                    pod, pod, uid));
}

static const char *uid_of(struct world *world, const char *pod)
{
    return dv_str_to_c(look_pod(world, pod)->metadata.uid, world->api.arena);
}

static void a_generated_claim_is_waited_for(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    open_sched(world);
    make_template_pod(world, "p1");
    settle(world);
    assert_int_equal(n_attempts(world), 0);
    assert_int_equal(numbers(world).n_pending[DV_SCHED_GATED], 1);
    make_generated(world, "p1", uid_of(world, "p1"));
    settle(world);
    assert_int_equal(n_attempts(world), 0);
    change_status(world, DV_KIND_POD, "p1",
                  "{status: {resourceClaimStatuses: [{name: e, resourceClaimName: p1-e}]}}");
    settle(world);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_int_equal(n_attempts(world), 1);
    assert_at_rest(world);
}

static void an_entry_that_needs_no_claim_is_passed_over(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0);
    make_template_pod(world, "p1");
    change_status(world, DV_KIND_POD, "p1", "{status: {resourceClaimStatuses: [{name: e}]}}");
    open_sched(world);
    assert_string_equal(node_of(world, "p1"), "n1");
}

static void what_is_waited_for_long_is_said(void **state)
{
    static const struct {
        const char *claim; /* as YAML; NULL: none */
        const char *said;
    } rows[] = {
        {.said = "resourceclaim \"p1-e\" not found"                              },
        { .claim = "{metadata: {name: p1-e}, spec: {devices: {requests: [{name: r, exactly: "
                  "{deviceClassName: gpu}}]}}}", .said = "resourceclaim \"p1-e\" was not created for pod \"default/p1\""},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct world *world;

        (void)start_world((void **)&world);
        make_node(world, "n1", 1);
        if (rows[i].claim)
            (void)make(world, DV_KIND_CLAIM, rows[i].claim);
        make_template_pod(world, "p1");
        change_status(world, DV_KIND_POD, "p1",
                      "{status: {resourceClaimStatuses: [{name: e, resourceClaimName: p1-e}]}}");
        open_sched(world);
        assert_string_equal(said_of(world, "p1"), "");
        pass(world, 3000);
        assert_non_null(strstr(said_of(world, "p1"), rows[i].said));
        assert_int_equal(n_attempts(world), 0);
        assert_int_equal(world->api.front.n_requests, 1);
        (void)end_world((void **)&world);
    }
}

static bool is_making_claims(void *ctx, dv_str namespace, dv_str pod)
{
    (void)namespace;
    (void)pod;
    return *(const bool *)ctx;
}

static void a_pod_whose_claims_are_being_made_says_nothing(void **state)
{
    struct world *world = *state;
    bool is_busy = true;

    world->options.is_making_claims = is_making_claims;
    world->options.ctx = &is_busy;
    make_node(world, "n1", 1);
    make_template_pod(world, "p1");
    open_sched(world);
    pass(world, 3000);
    pass(world, 3000);
    assert_string_equal(said_of(world, "p1"), "");
    assert_int_equal(n_events(world, "p1", "FailedScheduling"), 0);
    is_busy = false;
    pass(world, 3000);
    assert_non_null(strstr(said_of(world, "p1"), "is not created yet"));
    close_sched(world);
}

static void a_claim_that_is_deleted_is_not_used(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    change(world, DV_KIND_CLAIM, "c1", "{metadata: {finalizers: [a.b/c]}}");
    destroy(world, DV_KIND_CLAIM, "c1");
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    pass(world, 3000);
    assert_string_equal(said_of(world, "p1"),
                        "0/1 nodes are available: resourceclaim \"c1\" is being deleted.");
    change(world, DV_KIND_CLAIM, "c1", "{metadata: {finalizers: null}}");
    make_claim(world, "c1", 1);
    settle(world);
    assert_string_equal(node_of(world, "p1"), "n1");
}

/* ---- events that help, and those that do not ---- */

/* Three pods wait: for a class, for a slice on n2, for a node with a label. */
static void make_waiting(struct world *world)
{
    make_node(world, "n1", 0);
    make_node(world, "n2", 0);
    (void)make(world, DV_KIND_CLAIM,
               "{metadata: {name: c1}, spec: {devices: {requests: [{name: r, exactly: "
               "{deviceClassName: later}}]}}}");
    make_pod(world, "class", "c1", "");
    make_claim(world, "c2", 1);
    make_pod(world, "slice", "c2", "");
    make_pod(world, "node", NULL, ", nodeSelector: {special: x}");
    open_sched(world);
    pass(world, 2000); /* their back-off is over */
    assert_int_equal(n_attempts(world), 3);
}

static void a_class_wakes_who_waits_for_it(void **state)
{
    struct world *world = *state;

    make_waiting(world);
    (void)make(world, DV_KIND_CLASS, "{metadata: {name: unrelated}, spec: {}}");
    settle(world);
    assert_int_equal(n_attempts(world), 3);
    (void)make(world, DV_KIND_CLASS, "{metadata: {name: later}, spec: {}}");
    settle(world);
    assert_int_equal(n_attempts(world), 4);
    assert_string_equal(said_of(world, "class"),
                        "0/2 nodes are available: 2 cannot allocate all claims. still not "
                        "schedulable. r: 1 wanted, there are no devices on n1");
}

static void a_slice_wakes_who_waits_for_devices(void **state)
{
    struct world *world = *state;

    make_waiting(world);
    make_slice(world, "n2", 1);
    settle(world);
    assert_int_equal(n_attempts(world), 4);
    assert_string_equal(node_of(world, "slice"), "n2");
}

static void a_node_wakes_whom_it_may_fit(void **state)
{
    struct world *world = *state;

    make_waiting(world);
    change(world, DV_KIND_NODE, "n1", "{spec: {unschedulable: true}}");
    settle(world);
    assert_int_equal(n_attempts(world), 3); /* worse, for all */
    change_status(world, DV_KIND_NODE, "n1",
                  "{status: {conditions: [{type: Ready, status: 'True'}]}}");
    settle(world);
    assert_int_equal(n_attempts(world), 3); /* a heartbeat */
    change(world, DV_KIND_NODE, "n2", "{metadata: {labels: {special: x}}}");
    settle(world);
    assert_string_equal(node_of(world, "node"), "n2");
    assert_int_equal(n_attempts(world), 5); /* and the one that wants devices looks, too */
}

static void claims_of_others_wake_nobody(void **state)
{
    struct world *world = *state;

    make_waiting(world);
    make_claim(world, "c9", 1);
    change(world, DV_KIND_CLAIM, "c9", "{metadata: {labels: {a: b}}}");
    change(world, DV_KIND_CLAIM, "c2", "{metadata: {labels: {a: b}}}"); /* nor labels */
    destroy(world, DV_KIND_CLAIM, "c9");
    settle(world);
    assert_int_equal(n_attempts(world), 3);
}

static void nothing_is_polled(void **state)
{
    struct world *world = *state;
    uint64_t n;

    make_waiting(world);
    n = world->api.front.n_requests;
    pass(world, 600000);
    assert_int_equal(n_attempts(world), 3);
    assert_int_equal(world->api.front.n_requests, n);
}

/* ---- back-off and fairness ---- */

static void a_pod_that_failed_waits_before_it_is_tried_again(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    make_slice(world, "n1", 1);
    settle(world);
    assert_int_equal(numbers(world).n_pending[DV_SCHED_BACKOFF], 1);
    assert_string_equal(node_of(world, "p1"), "");
    pass(world, 1000);
    assert_string_equal(node_of(world, "p1"), "n1");
}

static void one_of_those_who_are_alike_is_tried_then_the_next(void **state)
{
    struct world *world = *state;
    size_t n_bound = 0;

    make_node(world, "n1", 0);
    for (unsigned i = 0; i < 10; i++) {
        make_claim(world, text(world, "c%u", i), 1);
        make_pod(world, text(world, "p%u", i), text(world, "c%u", i), "");
    }
    open_sched(world);
    pass(world, 2000);
    assert_int_equal(n_attempts(world), 10);
    make_slice(world, "n1", 3);
    settle(world);
    for (unsigned i = 0; i < 10; i++)
        n_bound += node_of(world, text(world, "p%u", i))[0] != '\0';
    assert_int_equal(n_bound, 3);
    assert_int_equal(n_attempts(world), 14); /* three that fit, and one that does not */
    for (unsigned i = 0; i < 3; i++)
        assert_string_equal(node_of(world, text(world, "p%u", i)), "n1"); /* the oldest */
    assert_at_rest(world);
}

static void when_the_one_that_was_woken_goes_the_next_is_tried(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0);
    for (unsigned i = 0; i < 2; i++) {
        make_claim(world, text(world, "c%u", i), 1);
        make_pod(world, text(world, "p%u", i), text(world, "c%u", i), "");
    }
    open_sched(world);
    make_slice(world, "n1", 1);
    settle(world);
    assert_int_equal(numbers(world).n_pending[DV_SCHED_BACKOFF], 1);
    destroy(world, DV_KIND_POD, "p0");
    pass(world, 2000);
    assert_string_equal(node_of(world, "p1"), "n1");
}

static void when_the_one_that_was_woken_lacks_its_claim_the_next_is_tried(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0);
    for (unsigned i = 0; i < 2; i++) {
        make_claim(world, text(world, "c%u", i), 1);
        make_pod(world, text(world, "p%u", i), text(world, "c%u", i), "");
    }
    open_sched(world);
    make_slice(world, "n1", 1);
    settle(world);
    destroy(world, DV_KIND_CLAIM, "c0");
    pass(world, 2000);
    assert_string_equal(node_of(world, "p1"), "n1");
    make_claim(world, "c0", 1);
    pass(world, 2000);
    assert_string_equal(node_of(world, "p0"), "");
    assert_at_rest(world);
}

static void a_device_that_is_given_back_goes_to_the_next(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    for (unsigned i = 0; i < 4; i++) {
        make_claim(world, text(world, "c%u", i), 1);
        make_pod(world, text(world, "p%u", i), text(world, "c%u", i), "");
    }
    open_sched(world);
    for (unsigned i = 0; i < 4; i++) {
        const char *bound = NULL;

        pass(world, 12000);
        for (unsigned j = 0; j < 4; j++) {
            const char *pod = text(world, "p%u", j);

            if (node_of(world, pod)[0] == '\0')
                continue;
            assert_null(bound); /* there is one device */
            bound = pod;
        }
        assert_non_null(bound);
        destroy(world, DV_KIND_POD, bound);
        clean_up(world);
    }
    pass(world, 12000);
    assert_at_rest(world);
}

/* The pod that was first is deleted while its claim is written, and the write is refused: nothing
 * of it is stored, so that no change of the claim tells the other pod. */
static void a_shared_claim_that_is_not_allocated_after_all_wakes_the_other_pod(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    open_sched(world);
    world->api.front.is_holding = true;
    world->api.front.fault = FAULT_REFUSED;
    world->api.front.fault_at = world->api.front.n_requests + 1;
    make_pod(world, "p1", "c1", "");
    settle(world);
    make_pod(world, "p2", "c1", "");
    settle(world);
    assert_int_equal(numbers(world).n_pending[DV_SCHED_WAITING], 1);
    destroy(world, DV_KIND_POD, "p1");
    release_requests(world);
    assert_string_equal(node_of(world, "p2"), "n1");
    assert_at_rest(world);
}

static void room_that_a_pod_leaves_is_taken_by_the_next(void **state)
{
    static const char big[] = ", nodeSelector: {zone: z1}, runtimeClassName: big";
    struct world *world = *state;

    make_node(world, "n1", 0);
    (void)make(world, DV_KIND_RUNTIME_CLASS,
               "{metadata: {name: big}, handler: h, overhead: {podFixed: {cpu: 3}}}");
    make_pod(world, "p1", NULL, big);
    make_pod(world, "p2", NULL, big);
    open_sched(world);
    assert_string_equal(said_of(world, "p2"),
                        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate. "
                        "pod wants cpu: 3, most free on a node is 1 (n1)");
    pass(world, 2000);
    change_status(world, DV_KIND_POD, "p1", "{status: {phase: Succeeded}}");
    settle(world);
    assert_string_equal(node_of(world, "p2"), "n1");
}

static void priority_goes_first(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", ", priority: 1");
    make_claim(world, "c2", 1);
    make_pod(world, "p2", "c2", ", priority: 2");
    open_sched(world);
    assert_string_equal(node_of(world, "p2"), "n1");
    assert_string_equal(node_of(world, "p1"), "");
}

static void what_fits_nowhere_is_not_searched_again(void **state)
{
    struct world *world = *state;
    uint64_t n;

    for (unsigned i = 0; i < 20; i++)
        make_node(world, text(world, "n%u", i), 1);
    open_sched(world);
    make_claim(world, "c0", 2);
    make_pod(world, "p0", "c0", "");
    settle(world);
    n = numbers(world).n_allocations;
    assert_int_equal(n, 20);
    for (unsigned i = 1; i < 10; i++) {
        make_claim(world, text(world, "c%u", i), 2);
        make_pod(world, text(world, "p%u", i), text(world, "c%u", i), "");
    }
    settle(world);
    assert_int_equal(numbers(world).n_allocations, n);
    pass(world, 2000);
    change(world, DV_KIND_NODE, "n3", "{metadata: {labels: {a: b}}}");
    settle(world);
    assert_int_equal(numbers(world).n_allocations, n + 1); /* that node, for one of them */
}

/* ---- events of many pods ---- */

static size_t n_told(struct world *world, size_t n_pods)
{
    size_t n = 0;

    for (size_t i = 0; i < n_pods; i++)
        n += n_events(world, text(world, "p%zu", i), "Scheduled");
    return n;
}

static void events_of_many_pods_are_written_together(void **state)
{
    struct world *world = *state;
    const size_t n_pods = 20;

    make_node(world, "n1", 0);
    for (size_t i = 0; i < n_pods; i++)
        make_pod(world, text(world, "p%zu", i), NULL, "");
    world->api.front.is_holding = true;
    open_sched(world);
    world->api.front.is_holding = false; /* the bindings are held, and events are not */
    release_some(world, 4);
    assert_int_equal(n_told(world, n_pods), 0); /* they wait for those of the others */
    pass(world, 100);
    assert_int_equal(n_told(world, n_pods), 4); /* but not long */
    release_some(world, 8);
    assert_int_equal(n_told(world, n_pods), 4);
    release_some(world, 2);
    assert_int_equal(n_told(world, n_pods), 14); /* few pods are left: nothing is waited for */
    release_requests(world);
    assert_int_equal(n_told(world, n_pods), n_pods);
    assert_at_rest(world);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_generated_claim_is_waited_for),
        TEST(an_entry_that_needs_no_claim_is_passed_over),
        cmocka_unit_test(what_is_waited_for_long_is_said),
        TEST(a_pod_whose_claims_are_being_made_says_nothing),
        TEST(a_claim_that_is_deleted_is_not_used),
        TEST(a_class_wakes_who_waits_for_it),
        TEST(a_slice_wakes_who_waits_for_devices),
        TEST(a_node_wakes_whom_it_may_fit),
        TEST(claims_of_others_wake_nobody),
        TEST(nothing_is_polled),
        TEST(a_pod_that_failed_waits_before_it_is_tried_again),
        TEST(one_of_those_who_are_alike_is_tried_then_the_next),
        TEST(when_the_one_that_was_woken_goes_the_next_is_tried),
        TEST(when_the_one_that_was_woken_lacks_its_claim_the_next_is_tried),
        TEST(a_device_that_is_given_back_goes_to_the_next),
        TEST(a_shared_claim_that_is_not_allocated_after_all_wakes_the_other_pod),
        TEST(room_that_a_pod_leaves_is_taken_by_the_next),
        TEST(priority_goes_first),
        TEST(what_fits_nowhere_is_not_searched_again),
        TEST(events_of_many_pods_are_written_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

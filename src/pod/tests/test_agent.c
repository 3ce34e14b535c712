#include "support/dvtest.h"

#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/map.h"
#include "cluster/embedded.h"
#include "number/number.h"
#include "pod/agent.h"
#include "pod/tests/test_agent_host.h"
#include "resource/resource.h"

static const struct dv_api_container_status *container_of(const struct world *world,
                                                          const char *pod)
{
    const struct dv_api_pod_status *status = &pod_of(world, pod)->status;

    assert_int_equal(status->n_container_statuses, 1);
    return &status->container_statuses[0];
}

/* ---- admission ---- */

static void a_bound_pod_gets_its_devices_and_says_how_to_start_it(void **state)
{
    struct world *world = *state;
    const struct dv_api_container_status *container;

    create_pod(world, "p1", 2, NULL);
    expect(world, "p1", READY);
    assert_string_equal(held(world), "p1=g0,g1 ");
    assert_true(pod_of(world, "p1")->status.start_time.is_set);
    container = container_of(world, "p1");
    assert_false(container->ready);
    assert_null(container->state.running);
    assert_str(container->state.waiting->reason, "NoContainerRuntime");
    assert_true(dv_str_find(container->state.waiting->message,
                            DV_STR("davit container started default/p1 c --pid")) <
                container->state.waiting->message.n);
    assert_int_equal(container->n_allocated_resources_status, 1);
    assert_str(container->allocated_resources_status[0].name, GPU);
    assert_int_equal(container->allocated_resources_status[0].n_resources, 2);
    assert_str(container->allocated_resources_status[0].resources[0].health, "Healthy");
}

static void a_pod_of_another_node_is_left_alone(void **state)
{
    struct world *world = *state;

    (void)create(world, DV_KIND_POD,
                 "{metadata: {name: p1}, spec: {nodeName: n2, containers: [{name: c, image: x}]}}");
    (void)create(world, DV_KIND_POD,
                 "{metadata: {name: p2}, spec: {containers: [{name: c, image: x}]}}");
    pass(world, 2000);
    assert_string_equal(phase_of(world, "p1"), "Pending");
    assert_string_equal(phase_of(world, "p2"), "Pending");
    assert_string_equal(held(world), "");
}

static void a_pod_that_cannot_be_is_failed_with_reason_and_message(void **state)
{
    static const struct {
        const char *name;
        const char *limits;
        const char *phase;
        const char *message;
    } cases[] = {
        {"many",    GPU ": \"9\"",         "Failed UnexpectedAdmissionError",
         "Pod was rejected: Allocate failed due to "},
        {"unknown", "other.io/gpu: \"1\"", "Failed UnknownResource",
         "Pod was rejected: container c asks for"   },
    };
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const char *message;

        (void)create(world, DV_KIND_POD,
                     text(world,
                          "{metadata: {name: %s}, spec: {nodeName: " NODE ", containers: [{name: "
                          "c, image: x, resources: {limits: {%s}}}]}}",
                          cases[i].name, cases[i].limits));
        expect(world, cases[i].name, cases[i].phase);
        if (!dv_str_starts_with(pod_of(world, cases[i].name)->status.message,
                                dv_str_from_c(cases[i].message)))
            fail_msg("%s: %.*s", cases[i].name,
                     DV_FMT(pod_of(world, cases[i].name)->status.message));
        assert_true(pod_of(world, cases[i].name)->status.start_time.is_set);
        assert_int_equal(n_events(world, strchr(cases[i].phase, ' ') + 1, &message), 1);
        assert_string_equal(held(world), "");
        delete_pod(world, cases[i].name, -1); /* holds nothing: goes at once */
        expect(world, cases[i].name, "-");
    }
}

static void claims_that_are_not_ready_are_waited_for(void **state)
{
    struct world *world = *state;
    const char *message;
    size_t n_tries;

    create_claim(world, "c1");
    create_pod(world, "p1", 1, "c1");
    expect(world, "p1", "Pending FailedPrepareDynamicResources");
    n_tries = n_events(world, "FailedPrepareDynamicResources", &message);
    assert_in_range(n_tries, 1, 2);
    if (!strstr(message, "Failed to prepare dynamic resources: "))
        fail_msg("%s", message);
    pass(world, 16000); /* 0.25 s, and twice as long each time, with a fifth of jitter */
    n_tries = n_events(world, "FailedPrepareDynamicResources", NULL);
    assert_in_range(n_tries, 5, 9);
    assert_string_equal(held(world), ""); /* meanwhile others may have the device */
    allocate_claim(world, "c1", "p1");
    expect(world, "p1", READY);
    assert_string_equal(held(world), "p1=g0+c1 ");
    assert_int_equal(world->driver.prepared.n, 1);
}

static void a_driver_that_refuses_is_asked_again(void **state)
{
    struct world *world = *state;

    world->driver.refuses = true;
    create_claim(world, "c1");
    create_pod(world, "p1", 0, "c1");
    allocate_claim(world, "c1", "p1");
    expect(world, "p1", "Pending FailedPrepareDynamicResources");
    world->driver.refuses = false;
    expect(world, "p1", READY);
    delete_pod(world, "p1", -1);
    expect(world, "p1", "-");
    assert_int_equal(world->driver.prepared.n, 0);
    assert_string_equal(held(world), "");
}

/* ---- the end of a pod ---- */

static void what_nobody_has_started_is_gone_at_once(void **state)
{
    struct world *world = *state;

    create_claim(world, "c1");
    create_pod(world, "p1", 1, "c1");
    allocate_claim(world, "c1", "p1");
    expect(world, "p1", READY);
    delete_pod(world, "p1", -1);
    settle(world);
    assert_string_equal(phase_of(world, "p1"), "-");
    assert_string_equal(held(world), "");
    assert_int_equal(world->driver.prepared.n, 0);
}

static void what_was_started_has_its_grace_period(void **state)
{
    struct world *world = *state;

    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", READY);
    assert_null(start_by_hand(world, "p1"));
    delete_pod(world, "p1", -1);
    pass(world, 28500);
    assert_string_equal(phase_of(world, "p1"), READY);
    assert_string_equal(held(world), "p1=g0 ");
    pass(world, 3000);
    assert_string_equal(phase_of(world, "p1"), "-");
    assert_string_equal(held(world), "");
}

static void a_grace_period_can_be_made_shorter(void **state)
{
    struct world *world = *state;

    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", READY);
    assert_null(start_by_hand(world, "p1"));
    delete_pod(world, "p1", -1);
    pass(world, 2000);
    delete_pod(world, "p1", 5);
    pass(world, 2500);
    assert_string_equal(phase_of(world, "p1"), READY);
    pass(world, 4500);
    assert_string_equal(phase_of(world, "p1"), "-");
}

static void who_releases_a_pod_ends_it(void **state)
{
    struct world *world = *state;
    const struct dv_api_container_status *container;

    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", READY);
    assert_null(release_by_hand(world, "p1"));
    expect(world, "p1", "Succeeded PodCompleted");
    container = container_of(world, "p1");
    assert_null(container->state.running);
    assert_non_null(container->state.terminated);
    assert_false(container->ready);
    pass(world, 5000);
    assert_string_equal(phase_of(world, "p1"), "Succeeded PodCompleted"); /* and stays ended */
    assert_string_equal(held(world), "");
    delete_pod(world, "p1", -1);
    expect(world, "p1", "-");
}

static void a_release_ends_the_grace_period(void **state)
{
    struct world *world = *state;

    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", READY);
    assert_null(start_by_hand(world, "p1"));
    delete_pod(world, "p1", -1);
    pass(world, 1000);
    assert_string_equal(phase_of(world, "p1"), READY);
    assert_null(release_by_hand(world, "p1"));
    pass(world, 500);
    assert_string_equal(phase_of(world, "p1"), "-");
}

static void a_pod_that_vanishes_is_released(void **state)
{
    struct world *world = *state;

    create_claim(world, "c1");
    create_pod(world, "p1", 1, "c1");
    allocate_claim(world, "c1", "p1");
    expect(world, "p1", READY);
    assert_null(start_by_hand(world, "p1"));
    delete_pod(world, "p1", 0);
    assert_string_equal(phase_of(world, "p1"), "-");
    expect_held(world, "");
    assert_int_equal(world->driver.prepared.n, 0);
}

static void a_pod_that_vanishes_while_it_is_admitted_holds_nothing(void **state)
{
    struct world *world = *state;

    world->plugin.holds_allocate = true;
    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", "Pending AdmittingPod");
    delete_pod(world, "p1", 0);
    expect_held(world, "");
    world->plugin.holds_allocate = false;
    create_pod(world, "p2", 4, NULL);
    expect(world, "p2", READY);
}

/* kubectl shows a reason for which a container waits before that of the pod. */
static void a_refused_pod_has_no_containers_that_wait(void **state)
{
    struct world *world = *state;
    const struct dv_api_pod_status *status;

    world_close(world);
    world->is_strict = true; /* a plugin that fails is not asked again */
    world_open(world);
    settle(world);
    world->plugin.holds_allocate = true;
    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", "Pending AdmittingPod");
    assert_int_equal(pod_of(world, "p1")->status.n_container_statuses, 1);
    pass(world, 61000); /* what is not answered in a minute has failed */
    expect(world, "p1", "Failed UnexpectedAdmissionError");
    status = &pod_of(world, "p1")->status;
    assert_int_equal(status->n_container_statuses, 0);
    for (size_t i = 0; i < status->n_conditions; i++)
        assert_str(status->conditions[i].type, "PodScheduled");
    expect_held(world, "");
}

static void a_pod_of_the_same_name_is_another_pod(void **state)
{
    struct world *world = *state;
    const char *uid;

    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", READY);
    uid = uid_of(world, "p1");
    delete_pod(world, "p1", 0);
    create_pod(world, "p1", 2, NULL);
    assert_string_not_equal(uid_of(world, "p1"), uid);
    expect(world, "p1", READY);
    settle(world);
    assert_int_equal(dv_pods_count(world->pods), 1);
    assert_int_equal(container_of(world, "p1")->allocated_resources_status[0].n_resources, 2);
    delete_pod(world, "p1", -1);
    expect(world, "p1", "-");
    assert_string_equal(held(world), "");
}

static void a_pod_with_finalizers_is_removed_now_and_then(void **state)
{
    struct world *world = *state;
    int n;

    create_pod_with(world, "p1", "finalizers: [example.com/wait]");
    expect(world, "p1", READY);
    delete_pod(world, "p1", -1);
    expect_held(world, "");
    n = world->shaky.n_pod_requests;
    pass(world, 10000);
    assert_non_null(pod_of(world, "p1"));
    assert_in_range(world->shaky.n_pod_requests - n, 1, 10);
    patch(world, DV_KIND_POD, "p1", DV_SUB_NONE, "{metadata: {finalizers: null}}");
    expect(world, "p1", "-");
}

static void a_pod_that_is_told_to_have_failed_gives_back_what_it_holds(void **state)
{
    struct world *world = *state;

    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", READY);
    patch(world, DV_KIND_POD, "p1", DV_SUB_STATUS, "{status: {phase: Failed, reason: Evicted}}");
    expect_held(world, "");
    assert_string_equal(phase_of(world, "p1"), "Failed Evicted");
}

static void a_driver_that_does_not_let_go_is_asked_again(void **state)
{
    struct world *world = *state;
    struct dv_agent_unadmitted unreleased;
    const char *message;
    dv_str uid;

    create_claim(world, "c1");
    create_pod(world, "p1", 1, "c1");
    allocate_claim(world, "c1", "p1");
    expect(world, "p1", READY);
    world->driver.keeps = true;
    delete_pod(world, "p1", -1);
    pass(world, 3000);
    assert_string_equal(phase_of(world, "p1"), READY);
    assert_string_equal(held(world), "p1=g0+c1 ");
    assert_in_range(n_events(world, "FailedUnprepareDynamicResources", &message), 2, 8);
    if (!strstr(message, "not today"))
        fail_msg("%s", message);
    uid = dv_agent_find_pod(world->agent, DV_STR("default"), DV_STR("p1"))->meta->uid;
    assert_true(dv_agent_find_unreleased(world->agent, uid, &unreleased));
    assert_str(unreleased.reason, "FailedUnprepareDynamicResources");
    assert_true(strstr(dv_str_to_c(unreleased.message, world->arena), "not today") &&
                unreleased.since_wall_ns > 0 && unreleased.retry_at_ms > 0);
    world->driver.keeps = false;
    expect(world, "p1", "-");
    assert_string_equal(held(world), "");
}

/* Whatever a driver does, the node can be stopped: at once. */
static void closes_while_a_driver_does_not_let_go(void **state)
{
    struct world *world = *state;

    for (int holds = 0; holds < 2; holds++) {
        create_claim(world, text(world, "c%d", holds));
        create_pod(world, text(world, "p%d", holds), 1, text(world, "c%d", holds));
        allocate_claim(world, text(world, "c%d", holds), text(world, "p%d", holds));
        expect(world, text(world, "p%d", holds), READY);
        world->driver.keeps = true;
        world->driver.holds = holds;
        delete_pod(world, text(world, "p%d", holds), -1);
        turn(world, 12);
        world_close_node(world);
        world->driver.keeps = world->driver.holds = false;
        world_open_node(world);
        expect(world, text(world, "p%d", holds), "-");
        expect_held(world, "");
        assert_int_equal(world->driver.prepared.n, 0);
    }
}

/* ---- what the node tells ---- */

static const char *amount_of(struct world *world, const struct dv_quantity_entry *list, size_t n,
                             const char *key)
{
    for (size_t i = 0; i < n; i++) {
        struct dv_buf buf;
        const char *amount;

        if (!dv_str_eq(list[i].key, dv_str_from_c(key)))
            continue;
        dv_buf_init(&buf, 64);
        dv_quantity_print(&list[i].value, &buf);
        amount = text(world, "%s", dv_buf_c(&buf));
        dv_buf_fini(&buf);
        return amount;
    }
    return "-";
}

/* "4/3": capacity and what can be allocated. */
static const char *offer_of(struct world *world, const char *resource)
{
    const struct dv_object *object =
        dv_embedded_get(world->api, dv_kind(DV_KIND_NODE), DV_STR(""), DV_STR(NODE));
    const struct dv_api_node_status *status;

    if (!object)
        return "no node";
    status = &((const struct dv_api_node *)object->value)->status;
    return text(world, "%s/%s", amount_of(world, status->capacity, status->n_capacity, resource),
                amount_of(world, status->allocatable, status->n_allocatable, resource));
}

static void expect_offer(struct world *world, const char *resource, const char *offer)
{
    for (int i = 0; i < 5000; i++) {
        settle(world);
        if (strcmp(offer_of(world, resource), offer) == 0)
            return;
        dv_clock_virtual_advance_ms(&world->clock, 500);
    }
    fail_msg("%s: %s, not %s", resource, offer_of(world, resource), offer);
}

static void the_node_offers_what_its_plugins_list(void **state)
{
    struct world *world = *state;

    expect_offer(world, "cpu", "2/2");
    expect_offer(world, "memory", "1Gi/1Gi");
    expect_offer(world, GPU, "4/4");
    device_plugin_list(&world->plugin, "g0 g1! g2 g3 g4");
    expect_offer(world, GPU, "5/4");
    device_plugin_kill(&world->plugin);
    expect_offer(world, GPU, "5/0"); /* it may come back */
    pass(world, 6 * 60 * 1000);
    expect_offer(world, GPU, "0/0"); /* it does not: gone, and a merge takes nothing away */
}

static void a_node_that_is_deleted_is_made_again(void **state)
{
    struct world *world = *state;
    struct dv_object *object;

    expect_offer(world, GPU, "4/4");
    object = dv_embedded_get(world->api, dv_kind(DV_KIND_NODE), DV_STR(""), DV_STR(NODE));
    assert_str(object->meta->name, NODE);
    delete_object(world, DV_KIND_NODE, NODE, -1);
    expect_offer(world, GPU, "4/4");
}

static struct dv_time renewed_at(const struct world *world)
{
    const struct dv_object *object = dv_embedded_get(world->api, dv_kind(DV_KIND_LEASE),
                                                     DV_STR("kube-node-lease"), DV_STR(NODE));

    return object ? ((const struct dv_api_lease *)object->value)->spec.renew_time
                  : (struct dv_time){0};
}

/* Whether the lease is owned by the Node that there is now. */
static bool is_lease_owned(const struct world *world)
{
    const struct dv_object *node =
        dv_embedded_get(world->api, dv_kind(DV_KIND_NODE), DV_STR(""), DV_STR(NODE));
    const struct dv_object *lease = dv_embedded_get(world->api, dv_kind(DV_KIND_LEASE),
                                                    DV_STR("kube-node-lease"), DV_STR(NODE));

    return node && lease && lease->meta->n_owner_references == 1 &&
           dv_str_eq(lease->meta->owner_references[0].uid, node->meta->uid);
}

static void the_lease_is_owned_by_the_node_before_it_is_renewed(void **state)
{
    struct world *world = *state;

    expect_offer(world, GPU, "4/4");
    pass(world, 1);
    assert_true(is_lease_owned(world));
    delete_object(world, DV_KIND_NODE, NODE, -1);
    expect_offer(world, GPU, "4/4");
    pass(world, 4000);
    assert_true(is_lease_owned(world));
}

static void the_lease_is_renewed_every_ten_seconds(void **state)
{
    struct world *world = *state;
    struct dv_time last;
    int n_renewed = 0;

    settle(world);
    last = renewed_at(world);
    assert_true(last.is_set);
    for (int s = 0; s < 60; s++) {
        struct dv_time now;

        pass(world, 1000);
        now = renewed_at(world);
        n_renewed += now.seconds != last.seconds;
        last = now;
    }
    assert_in_range(n_renewed, 5, 6); /* a fifth of jitter */
    world_close_node(world);
    pass(world, 30000);
    world_open_node(world); /* finds the lease of before */
    pass(world, 3000);
    assert_in_range(renewed_at(world).seconds - last.seconds, 29, 46); /* before, too */
}

static void health_is_told(void **state)
{
    struct world *world = *state;

    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", READY);
    device_plugin_list(&world->plugin, "g0! g1 g2 g3");
    settle(world);
    pass(world, 200);
    assert_str(container_of(world, "p1")->allocated_resources_status[0].resources[0].health,
               "Unhealthy");
    assert_string_equal(phase_of(world, "p1"), READY);
    device_plugin_list(&world->plugin, "g0 g1 g2 g3");
    pass(world, 200);
    assert_str(container_of(world, "p1")->allocated_resources_status[0].resources[0].health,
               "Healthy");
}

/* The same again is not written: it costs a write of the disk. */
static void nothing_is_written_while_nothing_changes(void **state)
{
    struct world *world = *state;
    uint64_t version;

    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", READY);
    settle(world);
    version = dv_embedded_version(world->api);
    pass(world, 9000); /* less than the lease */
    assert_in_range(dv_embedded_version(world->api) - version, 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_bound_pod_gets_its_devices_and_says_how_to_start_it),
        world_test(a_pod_of_another_node_is_left_alone),
        world_test(a_pod_that_cannot_be_is_failed_with_reason_and_message),
        world_test(claims_that_are_not_ready_are_waited_for),
        world_test(a_driver_that_refuses_is_asked_again),
        world_test(what_nobody_has_started_is_gone_at_once),
        world_test(what_was_started_has_its_grace_period),
        world_test(a_grace_period_can_be_made_shorter),
        world_test(who_releases_a_pod_ends_it),
        world_test(a_release_ends_the_grace_period),
        world_test(a_pod_that_vanishes_is_released),
        world_test(a_pod_that_vanishes_while_it_is_admitted_holds_nothing),
        world_test(a_refused_pod_has_no_containers_that_wait),
        world_test(a_pod_of_the_same_name_is_another_pod),
        world_test(a_pod_with_finalizers_is_removed_now_and_then),
        world_test(a_pod_that_is_told_to_have_failed_gives_back_what_it_holds),
        world_test(a_driver_that_does_not_let_go_is_asked_again),
        world_test(closes_while_a_driver_does_not_let_go),
        world_test(the_node_offers_what_its_plugins_list),
        world_test(a_node_that_is_deleted_is_made_again),
        world_test(the_lease_is_owned_by_the_node_before_it_is_renewed),
        world_test(the_lease_is_renewed_every_ten_seconds),
        world_test(health_is_told),
        world_test(nothing_is_written_while_nothing_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

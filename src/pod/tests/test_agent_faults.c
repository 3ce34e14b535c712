/* test_agent_faults.c - whatever fails, and whenever the node is stopped: it ends the same. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "base/map.h"
#include "cluster/embedded.h"
#include "pod/pod.h"
#include "pod/tests/test_agent_host.h"
#include "resource/resource.h"
#include "support/dra_driver.h"

static void begin(struct world *world)
{
    create_claim(world, "c1");
    create_pod(world, "p1", 1, "c1");
    allocate_claim(world, "c1", "p1");
}

static void check_runs(struct world *world)
{
    expect(world, "p1", READY);
    expect_held(world, "p1=g0+c1 ");
    assert_int_equal(world->driver.prepared.n, 1);
}

static void check_gone(struct world *world)
{
    expect(world, "p1", "-");
    expect_held(world, "");
    assert_int_equal(world->driver.prepared.n, 0);
}

static void live(struct world *world)
{
    begin(world);
    check_runs(world);
    delete_pod(world, "p1", -1);
    check_gone(world);
    create_pod(world, "p2", 1, NULL);
    expect(world, "p2", READY);
    assert_null(release_by_hand(world, "p2"));
    expect(world, "p2", "Succeeded PodCompleted");
    create_pod(world, "p3", 9, NULL);
    expect(world, "p3", "Failed UnexpectedAdmissionError");
}

static void a_request_that_fails_is_made_again(void **state)
{
    struct world *world = *state;

    for (int fails_after = 0; fails_after < 2; fails_after++) {
        int n = 1;

        for (;; n++) {
            world->shaky.fails_after = fails_after;
            world->fails_at = n;
            world_renew(world);
            live(world);
            if (world->shaky.n_until_failure > 0)
                break; /* there were not so many */
        }
        assert_in_range(n, 10, 1000);
    }
}

static bool is_ready(struct world *world)
{
    const struct dv_object *object =
        dv_embedded_get(world->api, dv_kind(DV_KIND_NODE), DV_STR_NONE, DV_STR(NODE));
    const struct dv_api_node *node = object ? object->value : NULL;

    for (size_t i = 0; node && i < node->status.n_conditions; i++)
        if (dv_str_eq(node->status.conditions[i].type, DV_STR("Ready")))
            return dv_str_eq(node->status.conditions[i].status, DV_STR("True"));
    return false;
}

/* It is there by the time that we hear that it was there before: as when the view lags behind the
 * first answer, and it is made a second time. */
static void a_node_that_is_made_twice_says_what_it_has(void **state)
{
    struct world *world = *state;

    settle(world);
    assert_true(is_ready(world));
    world->shaky.fails_after = true;
    world->shaky.has_conflict = true;
    world->shaky.n_until_failure = 1;
    delete_object(world, DV_KIND_NODE, NODE, -1);
    settle(world);
    assert_int_equal(world->shaky.n_until_failure, 0);
    assert_true(is_ready(world));
}

static void an_api_that_was_away_is_told_all(void **state)
{
    struct world *world = *state;

    create_pod(world, "p1", 1, NULL);
    create_pod(world, "p2", 1, NULL);
    create_pod(world, "p3", 1, NULL);
    expect(world, "p1", READY);
    expect(world, "p2", READY);
    expect(world, "p3", READY);
    world->shaky.is_down = true;
    create_pod(world, "p4", 1, NULL);
    assert_null(release_by_hand(world, "p1"));
    delete_pod(world, "p2", -1);
    assert_null(start_by_hand(world, "p3"));
    delete_pod(world, "p3", 20);
    pass(world, 15000);
    assert_int_equal(dv_pods_count(world->pods), 2);
    pass(world, 45000); /* the grace period is over, whatever can be written */
    assert_int_equal(dv_pods_count(world->pods), 1);
    assert_string_equal(phase_of(world, "p1"), READY);
    assert_string_equal(phase_of(world, "p4"), "Pending");
    assert_in_range(world->shaky.n_pod_requests, 10, 100); /* it is not asked all the time */
    world->shaky.is_down = false;
    expect(world, "p1", "Succeeded PodCompleted");
    expect(world, "p2", "-");
    expect(world, "p3", "-");
    expect(world, "p4", READY);
}

/* ---- restarts ---- */

enum meanwhile {
    NOTHING,
    ALL_RESTARTS, /* the API, too */
    IS_DELETED,
    VANISHES,
    IS_REPLACED,
    N_MEANWHILE,
};

static void restart(struct world *world, enum meanwhile meanwhile)
{
    if (meanwhile == ALL_RESTARTS) {
        world_close(world);
        world_open(world);
        return;
    }
    world_close_node(world);
    if (meanwhile == IS_DELETED && pod_of(world, "p1"))
        delete_pod(world, "p1", -1);
    if (meanwhile == VANISHES || meanwhile == IS_REPLACED)
        if (pod_of(world, "p1"))
            delete_pod(world, "p1", 0);
    if (meanwhile == IS_REPLACED)
        create_pod(world, "p1", 2, NULL);
    world_open_node(world);
}

/* Stopped at each moment of an admission. */
static void goes_on_with_an_admission(void **state)
{
    struct world *world = *state;

    for (int meanwhile = 0; meanwhile < N_MEANWHILE; meanwhile++)
        for (int n = 0; n < 60; n += meanwhile == NOTHING ? 1 : 4) {
            world_renew(world);
            begin(world);
            turn(world, n);
            restart(world, (enum meanwhile)meanwhile);
            if (meanwhile == NOTHING || meanwhile == ALL_RESTARTS) {
                check_runs(world);
            } else if (meanwhile == IS_REPLACED) {
                expect(world, "p1", READY);
                expect_held(world, "p1=g?,g? "); /* the one before may still have had g0 */
                assert_int_equal(world->driver.prepared.n, 0);
            } else {
                check_gone(world);
            }
        }
}

/* And of a deletion. */
static void goes_on_with_a_deletion(void **state)
{
    struct world *world = *state;

    for (int meanwhile = 0; meanwhile <= VANISHES; meanwhile++)
        for (int n = 0; n < 40; n += 2) {
            world_renew(world);
            begin(world);
            check_runs(world);
            delete_pod(world, "p1", -1);
            turn(world, n);
            restart(world, (enum meanwhile)meanwhile);
            check_gone(world);
        }
}

static void a_pod_that_runs_survives_a_restart(void **state)
{
    struct world *world = *state;
    struct dv_time since;

    begin(world);
    check_runs(world);
    since = pod_of(world, "p1")->status.start_time;
    pass(world, 5000);
    for (int i = 0; i < 3; i++) {
        restart(world, i == 1 ? ALL_RESTARTS : NOTHING);
        check_runs(world);
        assert_int_equal(world->driver.n_prepare, 1); /* it is prepared still */
    }
    pass(world, 2000);
    assert_int_equal(pod_of(world, "p1")->status.start_time.seconds, since.seconds);
}

static void a_pod_that_has_ended_is_not_admitted_again(void **state)
{
    struct world *world = *state;

    create_pod(world, "p1", 1, NULL);
    create_pod(world, "p2", 9, NULL);
    expect(world, "p1", READY);
    expect(world, "p2", "Failed UnexpectedAdmissionError");
    assert_null(release_by_hand(world, "p1"));
    expect(world, "p1", "Succeeded PodCompleted");
    restart(world, NOTHING);
    pass(world, 3000);
    assert_string_equal(phase_of(world, "p1"), "Succeeded PodCompleted");
    assert_string_equal(phase_of(world, "p2"), "Failed UnexpectedAdmissionError");
    assert_string_equal(held(world), "");
}

/* What was released before the API could be told is not admitted again by the next davitd. */
static void a_release_outlives_a_restart_before_the_api_knows(void **state)
{
    struct world *world = *state;

    create_pod(world, "p1", 1, NULL);
    expect(world, "p1", READY);
    world->shaky.is_down = true;
    assert_null(release_by_hand(world, "p1"));
    world_close(world);
    world->shaky.is_down = false;
    world_open(world);
    expect(world, "p1", "Succeeded PodCompleted");
    assert_false(dv_pods_has_ended(world->pods, dv_str_from_c(uid_of(world, "p1"))));
    delete_pod(world, "p1", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_release_outlives_a_restart_before_the_api_knows),
        world_test(a_request_that_fails_is_made_again),
        world_test(a_node_that_is_made_twice_says_what_it_has),
        world_test(an_api_that_was_away_is_told_all),
        world_test(goes_on_with_an_admission),
        world_test(goes_on_with_a_deletion),
        world_test(a_pod_that_runs_survives_a_restart),
        world_test(a_pod_that_has_ended_is_not_admitted_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Pods of lower priority make room for others. */

#include "sched/placed.h"

#include "sched/tests/test_sched_world.h"
#include "support/api_front.h"
#include "support/dvtest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "resource/resource.h"
#include "sched/sched.h"

/* ---- who, and where ---- */

static void the_most_important_pod_comes_first(void **state)
{
    struct dv_sched_victim all[] = {
        {NULL, 1, 50, false},
        {NULL, 9, 80, false},
        {NULL, 1, 20, false},
        {NULL, 9, 70, false},
    };

    (void)state;
    qsort(all, DV_COUNT(all), sizeof(all[0]), dv_sched_compare_victims);
    assert_int_equal(all[0].started_s, 70);
    assert_int_equal(all[1].started_s, 80);
    assert_int_equal(all[2].started_s, 20);
    assert_int_equal(all[3].started_s, 50);
}

static const struct {
    struct dv_sched_victim less[3];
    size_t n_less;
    struct dv_sched_victim more[3];
    size_t n_more;
} tolls[] = {
  /* The fewest whom a budget is against; the lowest highest priority, though there are more of
  * them; the lowest sum, also of negative   ones; the fewest; those who began last. */
    {{{NULL, 1, 5, false}, {NULL, 1, 5, false}}, 2, {{NULL, 2, 5, false}},                        1},
    {{{NULL, 5, 5, false}, {NULL, 1, 5, false}}, 2, {{NULL, 5, 5, false}, {NULL, 2, 5, false}},   2},
    {{{NULL, -5, 5, false}},                     1, {{NULL, -5, 5, false}, {NULL, -5, 5, false}}, 2},
    {{{NULL, 5, 9, false}},                      1, {{NULL, 5, 8, false}},                        1},
    {{{NULL, 9, 1, false}, {NULL, 9, 1, false}}, 2, {{NULL, 1, 9, true}},                         1},
    {{{NULL, 5, 9, false}, {NULL, 1, 1, false}}, 2, {{NULL, 5, 8, false}, {NULL, 1, 7, false}},   2},
};

static struct dv_sched_toll toll_of(const struct dv_sched_victim *victims, size_t n)
{
    struct dv_sched_toll toll = {0};

    for (size_t i = 0; i < n; i++)
        dv_sched_toll_add(&toll, &victims[i]);
    return toll;
}

static void the_node_is_freed_that_costs_least(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(tolls); i++) {
        struct dv_sched_toll less = toll_of(tolls[i].less, tolls[i].n_less);
        struct dv_sched_toll more = toll_of(tolls[i].more, tolls[i].n_more);

        assert_true(dv_sched_toll_is_less(&less, &more));
        assert_false(dv_sched_toll_is_less(&more, &less));
        assert_false(dv_sched_toll_is_less(&less, &less));
    }
}

/* ---- through the API ---- */

/* A pod that wants so many cpus, of low, mid or high priority. */
static void make_ranked(struct world *world, const char *name, const char *rank, unsigned cpus,
                        const char *more)
{
    int priority = strcmp(rank, "low") == 0 ? 10 : strcmp(rank, "mid") == 0 ? 20 : 100;

    (void)make(world, DV_KIND_POD,
               text(world,
                    "{metadata: {name: %s}, spec: {priority: %d, containers: [{name: c, image: "
                    "pause, resources: {requests: {cpu: '%u'}}}]%s}}",
                    name, priority, cpus, more));
}

static bool is_going(struct world *world, const char *pod)
{
    return !look(world, DV_KIND_POD, pod) ||
           look_pod(world, pod)->metadata.deletion_timestamp.is_set;
}

static const char *condition_of(struct world *world, const char *pod)
{
    const struct dv_api_pod *value = look_pod(world, pod);

    for (size_t i = 0; value && i < value->status.n_conditions; i++)
        if (dv_str_eq(value->status.conditions[i].type, DV_STR("DisruptionTarget")))
            return text(world, "%.*s: %.*s", DV_FMT(value->status.conditions[i].reason),
                        DV_FMT(value->status.conditions[i].message));
    return "";
}

static const char *nominated_of(struct world *world, const char *pod)
{
    return text(world, "%.*s", DV_FMT(look_pod(world, pod)->status.nominated_node_name));
}

static void the_lowest_pods_make_room(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0); /* 4 cpus */
    make_ranked(world, "a", "low", 1, "");
    make_ranked(world, "b", "mid", 1, "");
    make_ranked(world, "c", "low", 1, "");
    make_ranked(world, "d", "mid", 1, "");
    open_sched(world);
    make_ranked(world, "p", "high", 2, "");
    pass(world, 1000);
    assert_true(is_going(world, "a") && is_going(world, "c"));
    assert_false(is_going(world, "b") || is_going(world, "d"));
    assert_string_equal(condition_of(world, "a"),
                        "PreemptionByScheduler: default-scheduler: preempting to accommodate a "
                        "higher priority pod");
    assert_string_equal(nominated_of(world, "p"), "n1");
    assert_int_equal(n_events(world, "a", "Preempted"), 1);
    assert_int_equal(n_events(world, "p", "Preempting"), 1);
    assert_string_equal(said_of(world, "p"), "0/1 nodes are available: 1 Insufficient cpu.");
    /* It waits for both, and takes nobody else's room meanwhile. */
    destroy(world, DV_KIND_POD, "a");
    pass(world, 30000);
    assert_string_equal(node_of(world, "p"), "");
    assert_false(is_going(world, "b") || is_going(world, "d"));
    destroy(world, DV_KIND_POD, "c");
    pass(world, 1000);
    assert_string_equal(node_of(world, "p"), "n1");
    assert_int_equal(numbers(world).n_preempted, 2);
    assert_at_rest(world);
}

static void what_was_freed_is_not_given_to_lower_pods(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0);
    make_ranked(world, "a", "low", 2, "");
    make_ranked(world, "b", "low", 2, "");
    open_sched(world);
    make_ranked(world, "p", "high", 4, "");
    pass(world, 1000);
    make_ranked(world, "q", "mid", 2, "");
    destroy(world, DV_KIND_POD, "a");
    pass(world, 30000);
    assert_string_equal(node_of(world, "q"), "");
    assert_string_equal(node_of(world, "p"), "");
    destroy(world, DV_KIND_POD, "b");
    pass(world, 30000);
    assert_string_equal(node_of(world, "p"), "n1");
    assert_string_equal(node_of(world, "q"), "");
    /* When the one that goes before it is gone, it has its turn. */
    destroy(world, DV_KIND_POD, "p");
    pass(world, 30000);
    assert_string_equal(node_of(world, "q"), "n1");
}

static void nobody_is_harmed_in_vain(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0);
    make_ranked(world, "a", "low", 1, "");
    make_ranked(world, "b", "high", 2, "");
    open_sched(world);
    make_ranked(world, "p", "high", 3, "");
    make_ranked(world, "q", "high", 9, "");
    make_ranked(world, "r", "high", 2, ", preemptionPolicy: Never");
    pass(world, 30000);
    assert_false(is_going(world, "a") || is_going(world, "b"));
    assert_non_null(strstr(said_of(world, "p"),
                           "1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes "
                           "are available: 1 No preemption victims found for incoming pod."));
    assert_non_null(strstr(said_of(world, "q"),
                           "preemption: 0/1 nodes are available: 1 Preemption is not helpful for "
                           "scheduling."));
    assert_non_null(
        strstr(said_of(world, "r"), "preemption: not eligible due to preemptionPolicy=Never."));
    assert_int_equal(numbers(world).n_preempted, 0);
}

static void those_whom_a_budget_is_against_go_last(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0); /* 4 cpus */
    (void)make(
        world, DV_KIND_POD,
        "{metadata: {name: a, labels: {app: kept}}, spec: {priority: 10, containers: [{name: "
        "c, image: pause, resources: {requests: {cpu: '2'}}}]}}");
    make_ranked(world, "b", "mid", 2, "");
    (void)make(world, DV_KIND_DISRUPTION_BUDGET,
               "{metadata: {name: x}, spec: {minAvailable: 1, selector: {matchLabels: {app: "
               "kept}}}}");
    open_sched(world);
    make_ranked(world, "p", "high", 2, "");
    pass(world, 1000);
    assert_true(is_going(world, "b"));
    assert_false(is_going(world, "a"));
    /* They go all the same when there is nobody else. */
    destroy(world, DV_KIND_POD, "b");
    pass(world, 1000);
    make_ranked(world, "q", "high", 2, "");
    pass(world, 1000);
    assert_true(is_going(world, "a"));
}

static void distance_is_made_by_preemption_too(void **state)
{
    struct world *world = *state;
    const char *apart =
        ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "[{labelSelector: {}, topologyKey: zone}]}}";

    make_node(world, "n1", 0);
    make_ranked(world, "a", "low", 1, "");
    open_sched(world);
    make_ranked(world, "p", "high", 1, apart);
    pass(world, 1000);
    assert_true(is_going(world, "a"));
    destroy(world, DV_KIND_POD, "a");
    pass(world, 1000);
    assert_string_equal(node_of(world, "p"), "n1");
    assert_at_rest(world);
}

static void make_with_claim(struct world *world, const char *name, const char *class,
                            const char *claim)
{
    make_ranked(world, name, class, 1,
                text(world, ", resourceClaims: [{name: e, resourceClaimName: %s}]", claim));
}

static void devices_are_not_preempted_by_default(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    make_claim(world, "c2", 1);
    make_with_claim(world, "a", "low", "c1");
    open_sched(world);
    make_with_claim(world, "p", "high", "c2");
    pass(world, 30000);
    assert_false(is_going(world, "a"));
    assert_non_null(strstr(said_of(world, "p"), "Preemption is not helpful for scheduling."));
}

static void devices_of_the_lowest_go_to_the_highest(void **state)
{
    struct world *world = *state;

    world->options.preempts_devices = true;
    make_node(world, "n1", 3);
    for (unsigned i = 1; i <= 4; i++)
        make_claim(world, text(world, "c%u", i), i == 4 ? 2 : 1);
    make_with_claim(world, "a", "low", "c1");
    make_with_claim(world, "b", "mid", "c2");
    make_ranked(world, "x", "low", 1, ""); /* has no devices, and is in nobody's way */
    open_sched(world);
    make_with_claim(world, "p", "high", "c4");
    pass(world, 1000);
    assert_true(is_going(world, "a"));
    assert_false(is_going(world, "b") || is_going(world, "x"));
    assert_string_equal(nominated_of(world, "p"), "n1");
    /* The pod is gone, its claim is not given back yet: nobody else has to go. */
    destroy(world, DV_KIND_POD, "a");
    pass(world, 2000);
    assert_false(is_going(world, "b") || is_going(world, "x"));
    assert_string_equal(node_of(world, "p"), "");
    /* Another pod that would take the device does not get it. */
    make_with_claim(world, "q", "mid", "c3");
    pass(world, 1000);
    clean_up(world);
    pass(world, 1000);
    assert_string_equal(node_of(world, "p"), "n1");
    assert_string_equal(node_of(world, "q"), "");
    assert_string_equal(devices_of(world, "c1"), "");
    assert_at_rest(world);
}

static void shared_claims_are_freed_by_all_or_none(void **state)
{
    struct world *world = *state;

    world->options.preempts_devices = true;
    make_node(world, "n1", 1);
    make_claim(world, "c1", 1);
    make_claim(world, "c2", 1);
    make_with_claim(world, "a", "low", "c1");
    make_with_claim(world, "b", "high", "c1");
    open_sched(world);
    make_with_claim(world, "p", "high", "c2");
    pass(world, 30000);
    /* The device stays in use by a pod that is as important: nobody goes. */
    assert_false(is_going(world, "a") || is_going(world, "b"));
    destroy(world, DV_KIND_POD, "b");
    clean_up(world);
    pass(world, 30000);
    assert_true(is_going(world, "a"));
}

/* Another pod that gets the victim's name while it is being told is not told, and stays. */
static void only_the_victim_itself_is_harmed(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0);
    make_ranked(world, "a", "low", 4, "");
    open_sched(world);
    world->api.front.is_holding = true;
    make_ranked(world, "p", "high", 4, "");
    pass(world, 1000);
    destroy(world, DV_KIND_POD, "a");
    make_ranked(world, "a", "low", 1, ", nodeName: n2");
    release_requests(world);
    pass(world, 30000);
    assert_string_equal(condition_of(world, "a"), "");
    assert_false(is_going(world, "a"));
    assert_string_equal(node_of(world, "p"), "n1");
}

/* What was begun is gone on with by the next scheduler, and nobody goes twice. */
static void a_restart_changes_nothing(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 0);
    make_ranked(world, "a", "low", 2, "");
    make_ranked(world, "b", "low", 2, "");
    open_sched(world);
    make_ranked(world, "p", "high", 4, "");
    pass(world, 1000);
    close_sched(world);
    destroy(world, DV_KIND_POD, "a");
    make_ranked(world, "q", "mid", 2, "");
    open_sched(world);
    pass(world, 30000);
    assert_string_equal(node_of(world, "q"), "");
    destroy(world, DV_KIND_POD, "b");
    pass(world, 30000);
    assert_string_equal(node_of(world, "p"), "n1");
    assert_int_equal(numbers(world).n_preempted, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_important_pod_comes_first),
        cmocka_unit_test(the_node_is_freed_that_costs_least),
        TEST(the_lowest_pods_make_room),
        TEST(what_was_freed_is_not_given_to_lower_pods),
        TEST(nobody_is_harmed_in_vain),
        TEST(those_whom_a_budget_is_against_go_last),
        TEST(distance_is_made_by_preemption_too),
        TEST(devices_are_not_preempted_by_default),
        TEST(devices_of_the_lowest_go_to_the_highest),
        TEST(shared_claims_are_freed_by_all_or_none),
        TEST(only_the_victim_itself_is_harmed),
        TEST(a_restart_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Selectors and searches that take long: they give way to the loop, and come to the same end. */
#include "sched/tests/test_sched_world.h"

#include "support/dvtest.h"

#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "sched/sched.h"
#include "support/api_front.h"

#define WAIT_MS 60000u
#define TURN_BUDGET 20000u
#define SIXTEEN "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]"
/* Some tens of thousands of units on a device: more than a turn's budget. */
#define COSTLY SIXTEEN ".all(a, " SIXTEEN ".all(b, " SIXTEEN ".all(c, a + b + c >= 0)))"

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_world, end_world)

/* A claim for devices on which the selector is true; `more` makes it unlike others. */
static void make_costly_claim(struct world *world, const char *name, const char *more)
{
    (void)make(world, DV_KIND_CLAIM,
               text(world,
                    "{metadata: {name: %s}, spec: {devices: {requests: [{name: r, exactly: "
                    "{deviceClassName: gpu, selectors: [{cel: {expression: \"" COSTLY "%s\"}}]}}]}"
                    "}}",
                    name, more));
}

static bool has_job(void *ctx)
{
    return numbers(ctx).n_jobs > 0;
}

/* Until a search is being made beside the loop, or was. */
static void wait_for_job(struct world *world)
{
    assert_true(dv_loop_run_until(world->api.loop, has_job, world, WAIT_MS));
}

static void a_costly_search_is_made_beside_the_loop(void **state)
{
    struct world *world = *state;

    world->options.turn_budget = TURN_BUDGET;
    for (unsigned i = 0; i < 3; i++)
        make_node(world, text(world, "n%u", i), 4);
    make_costly_claim(world, "c1", "");
    make_pod(world, "p1", "c1", "");
    make_pod(world, "p2", NULL, "");
    open_sched(world);
    assert_string_not_equal(node_of(world, "p1"), "");
    assert_string_not_equal(node_of(world, "p2"), "");
    assert_true(numbers(world).n_jobs > 0);
    /* What it was begun for may be a little more than what was left of the budget. */
    assert_true(numbers(world).turn_cost_max < TURN_BUDGET + TURN_BUDGET / 2);
    assert_at_rest(world);
}

static void what_costs_little_is_decided_on_the_spot(void **state)
{
    struct world *world = *state;

    for (unsigned i = 0; i < 3; i++)
        make_node(world, text(world, "n%u", i), 4);
    for (unsigned i = 0; i < 12; i++) {
        make_claim(world, text(world, "c%u", i), 1);
        make_pod(world, text(world, "p%u", i), text(world, "c%u", i), "");
    }
    open_sched(world);
    for (unsigned i = 0; i < 12; i++)
        assert_string_not_equal(node_of(world, text(world, "p%u", i)), "");
    assert_int_equal(numbers(world).n_jobs, 0);
    assert_at_rest(world);
}

static void delete_the_pod(struct world *world)
{
    destroy(world, DV_KIND_POD, "p1");
}

static void delete_the_claim(struct world *world)
{
    destroy(world, DV_KIND_POD, "p1");
    destroy(world, DV_KIND_CLAIM, "c1");
}

static void delete_the_node(struct world *world)
{
    destroy(world, DV_KIND_NODE, "n1");
}

static void delete_the_slice(struct world *world)
{
    destroy(world, DV_KIND_SLICE, "n1");
}

static void cordon_the_node(struct world *world)
{
    change(world, DV_KIND_NODE, "n1", "{spec: {unschedulable: true}}");
}

static void change_the_labels(struct world *world)
{
    change(world, DV_KIND_NODE, "n1", "{metadata: {labels: {zone: z2}}}");
}

static void replace_the_class(struct world *world)
{
    change(world, DV_KIND_CLASS, "gpu",
           "{spec: {selectors: [{cel: {expression: \"device.driver == 'none'\"}}]}}");
}

static void add_another_pod(struct world *world)
{
    make_claim(world, "c2", 1);
    make_pod(world, "p2", "c2", "");
}

static void close_it(struct world *world)
{
    close_sched(world);
}

static const struct {
    void (*happens)(struct world *world);
    const char *node; /* of p1, in the end */
} meanwhile[] = {
    {delete_the_pod,    ""  },
    {delete_the_claim,  ""  },
    {delete_the_node,   ""  },
    {delete_the_slice,  ""  },
    {cordon_the_node,   ""  },
    {change_the_labels, ""  },
    {replace_the_class, ""  },
    {add_another_pod,   "n1"},
    {close_it,          ""  },
};

/* Whatever comes while the devices are searched for, what is decided is right when it is decided.
 * The search may be over before, or not: both must do. */
static void what_happens_meanwhile_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(meanwhile); i++) {
        struct world *world;

        (void)start_world((void **)&world);
        world->options.turn_budget = 1;
        open_sched(world);
        world->api.front.is_holding = true; /* so that nothing is final before it happens */
        make_node(world, "n1", 4);
        make_costly_claim(world, "c1", "");
        make_pod(world, "p1", "c1", ", nodeSelector: {zone: z1}");
        wait_for_job(world);
        meanwhile[i].happens(world);
        release_requests(world);
        if (world->sched) {
            pass(world, 15000);
            assert_false(numbers(world).is_searching);
            assert_at_rest(world);
        }
        if (meanwhile[i].node[0])
            assert_string_equal(node_of(world, "p1"), meanwhile[i].node);
        (void)end_world((void **)&world);
    }
}

/* Keeps the only worker busy, so that a search does not begin. */
struct busy {
    struct dv_work work;
    sem_t is_over;
    bool is_done;
};

static void wait_until_over(struct dv_work *work)
{
    while (sem_wait(&DV_CONTAINER(work, struct busy, work)->is_over) != 0)
        ; /* interrupted by a signal */
}

static void on_over(struct dv_work *work, const struct dv_err *err)
{
    assert_null(err);
    DV_CONTAINER(work, struct busy, work)->is_done = true;
}

/* The search finds nothing, in what was there when it began. The slice that came meanwhile is put
 * into the inventory before the answer is looked at: the answer must not be remembered as if it had
 * been found in that. */
static void what_came_before_the_answer_is_looked_at_counts(void **state)
{
    struct world *world = *state;
    struct busy busy = {
        .work = {.run = wait_until_over, .done = on_over}
    };

    assert_int_equal(sem_init(&busy.is_over, 0, 0), 0);
    world->options.turn_budget = 1;
    open_sched(world);
    make_node(world, "n1", 1);
    dv_work_start(&busy.work, world->api.loop);
    make_claim(world, "c1", 2);
    make_pod(world, "p1", "c1", "");
    wait_for_job(world);
    change(world, DV_KIND_SLICE, "n1", "{spec: {devices: [{name: gpu-0}, {name: gpu-1}]}}");
    assert_int_equal(sem_post(&busy.is_over), 0);
    pass(world, 5000);
    assert_true(busy.is_done);
    assert_string_equal(node_of(world, "p1"), "n1");
    assert_at_rest(world);
    assert_int_equal(sem_destroy(&busy.is_over), 0);
}

/* Pods that are alike do not search each for itself. */
static void a_crowd_searches_once(void **state)
{
    struct world *world = *state;
    uint64_t n_jobs;

    world->options.turn_budget = TURN_BUDGET;
    make_node(world, "n1", 24);
    make_costly_claim(world, "c0", " && false");
    make_pod(world, "p0", "c0", "");
    open_sched(world);
    n_jobs = numbers(world).n_jobs;
    assert_true(n_jobs > 0);
    for (unsigned i = 1; i < 10; i++) {
        make_costly_claim(world, text(world, "c%u", i), " && false");
        make_pod(world, text(world, "p%u", i), text(world, "c%u", i), "");
    }
    settle(world);
    assert_int_equal(numbers(world).n_jobs, n_jobs);
    for (unsigned i = 0; i < 10; i++)
        assert_non_null(
            strstr(said_of(world, text(world, "p%u", i)), "cannot allocate all claims"));
    assert_at_rest(world);
}

/* More than an attempt may cost: it is said, others are not held up, and in the end it is known. */
static void each_attempt_comes_further(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 100);
    (void)make(world, DV_KIND_CLAIM,
               "{metadata: {name: c1}, spec: {devices: {requests: [{name: r, exactly: "
               "{deviceClassName: gpu, selectors: [{cel: {expression: \"" SIXTEEN
               ".all(d, d > 2 || " COSTLY ")\"}}, {cel: {expression: \"false\"}}]}}]}}}");
    make_pod(world, "p1", "c1", "");
    make_node(world, "n2", 0);
    make_pod(world, "p2", NULL, "");
    open_sched(world);
    assert_non_null(strstr(said_of(world, "p1"), "the search was given up at its limit of cost"));
    assert_string_not_equal(node_of(world, "p2"), "");
    pass(world, 60000);
    assert_non_null(strstr(said_of(world, "p1"), "2 cannot allocate all claims"));
    assert_at_rest(world);
}

/* All that is there at the start comes in one turn, and a rule may concern all of it. */
static void very_many_slices_are_caught_up_with(void **state)
{
    struct world *world = *state;

    world->options.turn_budget = TURN_BUDGET;
    for (unsigned i = 0; i < 60; i++)
        make_node(world, text(world, "n%u", i), 16);
    make_claim(world, "c1", 16);
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_string_not_equal(node_of(world, "p1"), "");
    (void)make(world, DV_KIND_TAINT_RULE,
               "{metadata: {name: all}, spec: {deviceSelector: {driver: gpu.example}, taint: {key: "
               "k, effect: NoSchedule}}}");
    make_claim(world, "c2", 16);
    make_pod(world, "p2", "c2", "");
    settle(world);
    assert_string_equal(node_of(world, "p2"), "");
    destroy(world, DV_KIND_TAINT_RULE, "all");
    pass(world, 12000);
    assert_string_not_equal(node_of(world, "p2"), "");
    assert_true(numbers(world).turn_cost_max < TURN_BUDGET + TURN_BUDGET / 2);
    assert_at_rest(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_costly_search_is_made_beside_the_loop),
        TEST(what_costs_little_is_decided_on_the_spot),
        cmocka_unit_test(what_happens_meanwhile_counts),
        TEST(what_came_before_the_answer_is_looked_at_counts),
        TEST(a_crowd_searches_once),
        TEST(each_attempt_comes_further),
        TEST(very_many_slices_are_caught_up_with),
    };

    /* libuv reads it when the first job is started: struct busy needs no more than one. */
    assert_int_equal(setenv("UV_THREADPOOL_SIZE", "1", 1), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

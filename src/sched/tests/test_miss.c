/* What a pod is told of the devices that it does not get: the nearest miss, in one line. */
#include "sched/tests/test_sched_world.h"

#include "support/dvtest.h"

#include <string.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "sched/sched.h"

#define DV_SCHED_REFUSED                                                                           \
    "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable"
#define N_ALIKE 50u

static void make_gpus(struct world *world, const char *devices)
{
    make_node(world, "n1", 0);
    (void)make(world, DV_KIND_SLICE,
               text(world,
                    "{metadata: {name: s1}, spec: {driver: gpu.example, nodeName: n1, pool: {name: "
                    "n1, generation: 1, resourceSliceCount: 1}, devices: [%s]}}",
                    devices));
}

static void make_choosy_claim(struct world *world, const char *name, const char *selector)
{
    (void)make(world, DV_KIND_CLAIM,
               text(world,
                    "{metadata: {name: %s}, spec: {devices: {requests: [{name: gpu, exactly: "
                    "{deviceClassName: gpu, selectors: [{cel: {expression: '%s'}}]}}]}}}",
                    name, selector));
}

#define SMALL                                                                                      \
    "{name: small, attributes: {model: {string: t4}, nvlink: {bool: false}, cores: {int: 8}, "     \
    "driver: {version: 1.2.3}}, capacity: {memory: {value: 16Gi}}}"
#define MEMORY "device.capacity[\"gpu.example\"].memory"
#define A "device.attributes[\"gpu.example\"]."

static const struct {
    const char *selector;
    const char *said;
} selectors[] = {
    {MEMORY ".compareTo(quantity(\"40Gi\")) >= 0",          "memory = 16Gi, wanted >= 40Gi"                     },
    {MEMORY ".isGreaterThan(quantity(\"40Gi\"))",           "memory = 16Gi, wanted > 40Gi"                      },
    {MEMORY ".isLessThan(quantity(\"1Gi\"))",               "memory = 16Gi, wanted < 1Gi"                       },
    {A "model == \"h200\"",                                 "model = \"t4\", wanted == \"h200\""                },
    {"device.driver == \"gpu.example\" && " A "cores > 64", "cores = 8, wanted > 64"                            },
    {A "cores in [1, 2]",                                   "cores = 8, wanted in [1, 2]"                       },
    {A "nvlink",                                            "nvlink = false, wanted true"                       },
    {A "driver.compareTo(semver(\"2.0.0\")) >= 0",          "driver = 1.2.3, wanted >= 2.0.0"                   },
    {A "model.startsWith(\"h\")",                           A "model.startsWith(\"h\") is false, model = \"t4\""},
    {A "cores > 64 || " A "nvlink",                         A "cores > 64 || " A "nvlink is false"              },
};

static void selectors_are_told_by_the_value_that_they_saw(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(selectors); i++) {
        struct world *world;

        (void)start_world((void **)&world);
        make_gpus(world, SMALL);
        make_choosy_claim(world, "c1", selectors[i].selector);
        make_pod(world, "p1", "c1", "");
        open_sched(world);
        assert_string_equal(said_of(world, "p1"),
                            text(world,
                                 DV_SCHED_REFUSED ". gpu: 1 wanted, 1 looked at: %s (small on n1)",
                                 selectors[i].said));
        assert_int_equal(n_events(world, "p1", "FailedScheduling"), 1);
        assert_at_rest(world);
        (void)end_world((void **)&world);
    }
}

static void of_many_nodes_the_nearest_is_told(void **state)
{
    struct world *world = *state;

    make_gpus(world, SMALL);
    make_node(world, "n0", 0);
    make_node(world, "n2", 1);
    make_node(world, "n3", 3);
    make_claim(world, "c1", 4);
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_string_equal(said_of(world, "p1"),
                        "0/4 nodes are available: 4 cannot allocate all claims. still not "
                        "schedulable. r: 4 wanted, 3 looked at, 3 fit (on n3)");
}

/* Who holds a device is not told: the claim may be of a namespace that is not the reader's. */
static void no_claim_is_named(void **state)
{
    struct world *world = *state;

    make_node(world, "n1", 1);
    open_sched(world);
    make_claim(world, "c1", 1);
    make_pod(world, "p1", "c1", "");
    settle(world);
    make_claim(world, "c2", 1);
    make_pod(world, "p2", "c2", "");
    settle(world);
    assert_string_equal(said_of(world, "p2"), DV_SCHED_REFUSED
                        ". r: 1 wanted, 1 looked at: taken by another claim (gpu-0 on "
                        "n1)");
}

static void the_line_is_cut_where_nobody_reads_on(void **state)
{
    struct world *world = *state;
    const char *said;

    make_gpus(world, SMALL);
    make_choosy_claim(world, "c1",
                      A "cores in [1, 2, 3] || " A "cores in [4, 5, 6] || " A
                        "cores in [7, 70, 700] || " A "model == \"h100\" || " A
                        "model == \"h200\" || " A "nvlink");
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    said = said_of(world, "p1");
    assert_int_equal(strlen(said), strlen(DV_SCHED_REFUSED ". ") + 200);
    assert_string_equal(said + strlen(said) - 3, "...");
}

/* A burst of pods is told the same, and the allocator is asked for the first of them only. */
static void alike_pods_are_told_the_same(void **state)
{
    struct world *world = *state;
    uint64_t n;

    make_gpus(world, SMALL);
    make_choosy_claim(world, "c0", MEMORY ".compareTo(quantity(\"40Gi\")) >= 0");
    make_pod(world, "p0", "c0", "");
    open_sched(world);
    n = numbers(world).n_allocations;
    for (unsigned i = 1; i < N_ALIKE; i++) {
        make_choosy_claim(world, text(world, "c%u", i),
                          MEMORY ".compareTo(quantity(\"40Gi\")) >= 0");
        make_pod(world, text(world, "p%u", i), text(world, "c%u", i), "");
    }
    settle(world);
    assert_int_equal(numbers(world).n_allocations, n);
    for (unsigned i = 1; i < N_ALIKE; i++)
        assert_string_equal(said_of(world, text(world, "p%u", i)), said_of(world, "p0"));
}

/* It is found out again when a node was. */
static void what_is_told_follows_the_devices(void **state)
{
    struct world *world = *state;

    make_gpus(world, SMALL);
    make_choosy_claim(world, "c1", MEMORY ".compareTo(quantity(\"40Gi\")) >= 0");
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    change(world, DV_KIND_SLICE, "s1",
           "{spec: {pool: {generation: 2}, devices: [{name: small, capacity: {memory: {value: "
           "32Gi}}}]}}");
    pass(world, 20000);
    assert_string_equal(said_of(world, "p1"), DV_SCHED_REFUSED
                        ". gpu: 1 wanted, 1 looked at: memory = 32Gi, wanted >= 40Gi "
                        "(small on n1)");
}

static void strictly_it_is_the_text_of_the_reference(void **state)
{
    struct world *world = *state;

    world->options.is_strict = true;
    make_gpus(world, SMALL);
    make_choosy_claim(world, "c1", A "nvlink");
    make_pod(world, "p1", "c1", "");
    open_sched(world);
    assert_string_equal(said_of(world, "p1"), DV_SCHED_REFUSED);
}

#define SHORT "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"

/* It is found out again after a while: rooms change without a node being looked at anew. */
static void what_is_told_follows_the_room(void **state)
{
    static const char big[] = ", runtimeClassName: big";
    struct world *world = *state;

    make_node(world, "n1", 0);
    (void)make(world, DV_KIND_RUNTIME_CLASS,
               "{metadata: {name: big}, handler: h, overhead: {podFixed: {cpu: 9}}}");
    (void)make(world, DV_KIND_RUNTIME_CLASS,
               "{metadata: {name: some}, handler: h, overhead: {podFixed: {cpu: 3}}}");
    make_pod(world, "p1", NULL, big);
    open_sched(world);
    assert_string_equal(said_of(world, "p1"), SHORT ". pod wants cpu: 9, most on a node is 4 (n1)");
    change_status(world, DV_KIND_NODE, "n1", "{status: {allocatable: {cpu: '10'}}}");
    make_pod(world, "p0", NULL, ", runtimeClassName: some");
    settle(world);
    pass(world, 20000);
    if (strcmp(node_of(world, "p0"), "n1") != 0)
        fail_msg("p0 is not on n1: %s", said_of(world, "p0"));
    assert_string_equal(node_of(world, "p1"), "");
    assert_string_equal(said_of(world, "p1"),
                        SHORT ". pod wants cpu: 9, most free on a node is 7 (n1)");
}

static void strictly_nothing_is_said_of_room(void **state)
{
    struct world *world = *state;

    world->options.is_strict = true;
    make_node(world, "n1", 0);
    (void)make(world, DV_KIND_RUNTIME_CLASS,
               "{metadata: {name: big}, handler: h, overhead: {podFixed: {cpu: 9}}}");
    make_pod(world, "p1", NULL, ", runtimeClassName: big");
    open_sched(world);
    assert_string_equal(said_of(world, "p1"), SHORT);
}

/* What a page asks for: all nodes, the nearest first, and on each the devices one by one. */
static void explained_are_nodes_and_their_devices(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct world *world = *state;
    const struct dv_api_resource_claim *claim;
    struct dv_sched_verdicts verdicts;
    struct dv_err err;

    make_gpus(world, SMALL);
    make_node(world, "n0", 0);
    make_node(world, "n2", 1);
    make_node(world, "n3", 3);
    make_claim(world, "c1", 4);
    make_claim(world, "c2", 2);
    open_sched(world);
    claim = look_claim(world, "c1");
    assert_true(dv_sched_explain(world->sched, &claim, 1, DV_STR(""), arena, &verdicts, &err));
    assert_int_equal(verdicts.n, 4);
    assert_str(verdicts.v[0].node, "n3");
    assert_int_equal(verdicts.v[0].explanation.outcome, DV_ALLOC_NONE);
    assert_int_equal(verdicts.v[0].explanation.requests[0].n_wanted, 4);
    assert_int_equal(verdicts.v[0].explanation.requests[0].n_devices, 3);
    claim = look_claim(world, "c2");
    assert_true(dv_sched_explain(world->sched, &claim, 1, DV_STR(""), arena, &verdicts, &err));
    assert_str(verdicts.v[0].node, "n3");
    assert_int_equal(verdicts.v[0].explanation.outcome, DV_ALLOC_DONE);
    assert_true(dv_sched_explain(world->sched, &claim, 1, DV_STR("n2"), arena, &verdicts, &err));
    assert_int_equal(verdicts.n, 1);
    assert_int_equal(verdicts.n_nodes, 1);
    assert_int_equal(verdicts.v[0].explanation.outcome, DV_ALLOC_NONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selectors_are_told_by_the_value_that_they_saw),
        TEST(of_many_nodes_the_nearest_is_told),
        TEST(no_claim_is_named),
        TEST(the_line_is_cut_where_nobody_reads_on),
        TEST(alike_pods_are_told_the_same),
        TEST(what_is_told_follows_the_devices),
        TEST(strictly_it_is_the_text_of_the_reference),
        TEST(what_is_told_follows_the_room),
        TEST(strictly_nothing_is_said_of_room),
        TEST(explained_are_nodes_and_their_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

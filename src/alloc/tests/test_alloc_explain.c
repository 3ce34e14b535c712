/* Why not: every reason has its sentence, and the nearest miss comes first. */
#include "tests/support/dvtest.h"

#include <stdio.h>

#include "alloc/alloc.h"
#include "alloc/tests/test_alloc_world.h"
#include "base/arena.h"

#define CLASSES                                                                                    \
    "'deviceClasses':[{'metadata':{'name':'c'},'spec':{}},{'metadata':{'name':'picky'},'spec':{"   \
    "'selectors':[{'cel':{'expression':'device.driver == `other`'}}]}}],"
#define EXACT(class, n) "'deviceClassName':'" class "','allocationMode':'ExactCount','count':" n
#define REQUEST(name, terms) "{'name':'" name "','exactly':{" terms "}}"
#define CLAIM(requests)                                                                            \
    "'claims':[{'metadata':{'namespace':'ns','name':'claim'},'spec':{'devices':{'requests':"       \
    "[" requests "}}}],"
#define SLICE(name, rest) "{'metadata':{'name':'" name "'},'spec':{'driver':'d'," rest "}}"
#define POOL "'pool':{'name':'p','generation':1,'resourceSliceCount':1},'nodeName':'node-1',"
#define DEVICES(devices) "'resourceSlices':[" SLICE("s", POOL "'devices':[" devices "]") "],"
#define HALF "'pool':{'name':'p','generation':1,'resourceSliceCount':2},'nodeName':'node-1',"
#define COUNTED(n, devices)                                                                        \
    "'resourceSlices':[" SLICE("s1", HALF "'devices':[" devices "]") "," SLICE(                    \
        "s2", HALF "'sharedCounters':[{'name':'set','counters':{'m':{'value':'" n "'}}}]") "],"
#define TAKES(n) ",'consumesCounters':[{'counterSet':'set','counters':{'m':{'value':'" n "'}}}]"
#define HELD "'state':{'allocatedDevices':[{'driver':'d','pool':'p','device':'a'}]}"

struct fixture {
    struct world world;
    struct dv_inventory *inventory;
    struct dv_arena *arena;
    struct dv_explanation explanation;
};

static void explain(struct fixture *f, const char *text)
{
    *f = (struct fixture){.arena = dv_arena_new()};
    world_write(&f->world, text);
    f->inventory = world_inventory(&f->world);
    dv_alloc_explain(f->inventory, &f->world.node, f->world.claims.v, f->world.claims.n,
                     &(struct dv_alloc_options){0}, f->arena, &f->explanation);
}

static void close_fixture(struct fixture *f)
{
    dv_inventory_free(f->inventory);
    world_close(&f->world);
    dv_arena_free(f->arena);
}

/* The request's first device that is as far away as that is refused with these words. */
static void expect(enum dv_why why, size_t at, const char *words, const char *world)
{
    const struct dv_why_request *request;
    size_t i = 0;
    char text[4096];
    struct fixture f;

    (void)snprintf(text, sizeof(text), "{%s}", world);
    explain(&f, text);
    assert_true(f.explanation.n_requests > at);
    request = &f.explanation.requests[at];
    while (i < request->n_devices && request->devices[i].why != why)
        i++;
    if (i == request->n_devices)
        fail_msg("no device is %s: %.*s", dv_why_name(why), DV_FMT(f.explanation.summary));
    assert_str(request->devices[i].text, words);
    close_fixture(&f);
}

static void says_of_every_device_what_speaks_against_it(void **state)
{
    (void)state;
    expect(DV_WHY_FITS, 0, "nothing speaks against it",
           CLASSES DEVICES("{'name':'a'},{'name':'b'}") CLAIM(REQUEST(
               "r", EXACT("c", "1")) "," REQUEST("s", EXACT("picky", "1")) "]") "'state':{}");
    expect(
        DV_WHY_CONSTRAINT, 1, "matchAttribute d/x: it has 2, a has 1",
        CLASSES DEVICES("{'name':'a','attributes':{'x':{'int':1}}},{'name':'b','attributes':{'x':"
                        "{'int':2}}}")
            CLAIM(REQUEST("r", EXACT("c", "1")) "," REQUEST(
                "s", EXACT("c", "1")) "],'constraints':[{'matchAttribute':'d/x'}]") "'state':{}");
    expect(
        DV_WHY_CONSTRAINT, 1, "distinctAttribute d/x: it has \"u\", a has \"u\"",
        CLASSES DEVICES("{'name':'a','attributes':{'x':{'string':'u'}}},{'name':'b','attributes':"
                        "{'x':{'string':'u'}}}")
            CLAIM(REQUEST("r", EXACT("c", "1")) "," REQUEST(
                "s",
                EXACT("c", "1")) "],'constraints':[{'distinctAttribute':'d/x'}]") "'state':{}");
    expect(DV_WHY_CONSTRAINT, 0,
           "it has no attribute d/x, which a constraint of the claim is about",
           CLASSES DEVICES("{'name':'a'}") CLAIM(REQUEST(
               "r", EXACT("c", "1")) "],'constraints':[{'matchAttribute':'d/x'}]") "'state':{}");
    expect(DV_WHY_TAKEN_HERE, 1, "taken by request r of claim claim",
           CLASSES DEVICES("{'name':'a'}") CLAIM(
               REQUEST("r", EXACT("c", "1")) "," REQUEST("s", EXACT("c", "1")) "]") "'state':{}");
    expect(DV_WHY_TAKEN_HERE, 0, "taken by this request",
           CLASSES DEVICES("{'name':'a','allowMultipleAllocations':true}")
               CLAIM(REQUEST("r", EXACT("c", "2")) "]") "'state':{}");
    expect(DV_WHY_COUNTER, 0, "the counter set/m is short by 2: 5 needed, 3 of 3 left",
           CLASSES COUNTED("3", "{'name':'a'" TAKES("5") "}")
               CLAIM(REQUEST("r", EXACT("c", "1")) "]") "'state':{}");
    expect(DV_WHY_CAPACITY, 0, "the capacity m is short by 1: 3 wanted, 2 of 2 left",
           CLASSES DEVICES("{'name':'a','capacity':{'m':{'value':'2'}}}") CLAIM(REQUEST(
               "r", EXACT("c", "1") ",'capacity':{'requests':{'m':'3'}}") "]") "'state':{}");
    expect(DV_WHY_CAPACITY, 0, "it has no capacity m",
           CLASSES DEVICES("{'name':'a'}") CLAIM(REQUEST(
               "r", EXACT("c", "1") ",'capacity':{'requests':{'m':'3'}}") "]") "'state':{}");
    expect(
        DV_WHY_CAPACITY, 0, "3 of the capacity m is against its request policy",
        CLASSES DEVICES("{'name':'a','capacity':{'m':{'value':'9','requestPolicy':{'default':'1',"
                        "'validValues':['1','2']}}}}")
            CLAIM(REQUEST("r",
                          EXACT("c", "1") ",'capacity':{'requests':{'m':'3'}}") "]") "'state':{}");
    expect(DV_WHY_TAINTED, 0, "the taint t=v:NoSchedule is not tolerated",
           CLASSES DEVICES("{'name':'a','taints':[{'key':'t','value':'v','effect':'NoSchedule'}]}")
               CLAIM(REQUEST("r", EXACT("c", "1")) "]") "'state':{}");
    expect(DV_WHY_TAKEN, 0, "taken by default/holder",
           CLASSES DEVICES("{'name':'a'}") CLAIM(REQUEST("r", EXACT("c", "1")) "]") HELD);
    expect(DV_WHY_REQUEST_SELECTOR, 0,
           "device.attributes[\"d\"].x == 2 is false; device.attributes[\"d\"].x = 1",
           CLASSES DEVICES("{'name':'a','attributes':{'x':{'int':1}}}") CLAIM(REQUEST(
               "r", EXACT("c", "1") ",'selectors':[{'cel':{'expression':"
                                    "'device.attributes[`d`].x == 2'}}]") "]") "'state':{}");
    expect(DV_WHY_CLASS_SELECTOR, 0,
           "class picky: device.driver == \"other\" is false; device.driver = \"d\"",
           CLASSES DEVICES("{'name':'a'}")
               CLAIM(REQUEST("r", EXACT("picky", "1")) "]") "'state':{}");
    expect(DV_WHY_SELECTOR_FAILS, 0, "device.attributes[\"d\"].x == 2 fails: no such key: x",
           CLASSES DEVICES("{'name':'a'}") CLAIM(REQUEST(
               "r", EXACT("c", "1") ",'selectors':[{'cel':{'expression':"
                                    "'device.attributes[`d`].x == 2'}}]") "]") "'state':{}");
    expect(DV_WHY_OTHER_NODE, 0, "it is for other nodes",
           CLASSES "'resourceSlices':[" SLICE(
               "s",
               "'pool':{'name':'p','generation':1,"
               "'resourceSliceCount':1},'perDeviceNodeSelection':true,'devices':[{'name':'a',"
               "'nodeName':'node-2'},{'name':'b','nodeName':'node-1','taints':[{'key':'t','effect':"
               "'NoSchedule'}]}]") "]," CLAIM(REQUEST("r", EXACT("c", "1")) "]") "'state':{}");
    expect(DV_WHY_GATE, 0, "it has binding conditions, and DRADeviceBindingConditions is off",
           CLASSES DEVICES("{'name':'a','bindingConditions':['x']}") CLAIM(
               REQUEST("r", EXACT("c", "1")) "]") "'features':{'deviceBindingAndStatus':false}");
    expect(DV_WHY_GATE, 0, "it consumes counters, and DRAPartitionableDevices is off",
           CLASSES DEVICES("{'name':'a'" TAKES("1") "}") CLAIM(
               REQUEST("r", EXACT("c", "1")) "]") "'features':{'partitionableDevices':false}");
    expect(DV_WHY_POOL_UPDATING, 0, "the pool is being updated: not all of its slices are there",
           CLASSES "'resourceSlices':[" SLICE("s", HALF "'devices':[{'name':'a'}]") "]," CLAIM(
               REQUEST("r", EXACT("c", "1")) "]") "'state':{}");
    expect(
        DV_WHY_POOL_INVALID, 0, "the pool contradicts itself: two slices have a device named a",
        CLASSES "'resourceSlices':[" SLICE("s1", HALF "'devices':[{'name':'a'}]") "," SLICE(
            "s2", HALF
            "'devices':[{'name':'a'}]") "]," CLAIM(REQUEST("r", EXACT("c", "1")) "]") "'state':{}");
    expect(
        DV_WHY_POOL_OBSOLETE, 0, "a newer generation of the pool is being published",
        CLASSES "'resourceSlices':[" SLICE("s1", HALF "'devices':[{'name':'a'}]") "," SLICE(
            "s2",
            "'pool':{'name':'p','generation':2,'resourceSliceCount':2},"
            "'nodeName':'node-2','devices':[]") "]," CLAIM(REQUEST("r",
                                                                   EXACT("c",
                                                                         "1")) "]") "'state':{}");
}

static void names_the_slice_of_another_node_in_the_pool(void **state)
{
    (void)state;
    /* A slice with counters is for every node: its generation hides the node's own devices. */
    expect(
        DV_WHY_POOL_RIVAL, 0, "pool d/p is also that of slice s2 of node node-2",
        CLASSES "'resourceSlices':[" SLICE(
            "s1",
            "'pool':{'name':'p','generation':1,'resourceSliceCount':1},"
            "'nodeName':'node-1','devices':[{'name':'a'}]") "," SLICE("s2",
                                                                      "'pool':{'name':'p','"
                                                                      "generation':9,'"
                                                                      "resourceSliceCount':1},"
                                                                      "'nodeName':'node-2','"
                                                                      "sharedCounters':[{'name':'c'"
                                                                      ",'counters':{'x':{"
                                                                      "'value':'1'}}}]") "]," CLAIM(REQUEST("r",
                                                                                                            EXACT(
                                                                                                                "c",
                                                                                                                "1")) "]") "'state':{}");
}

static void names_every_reason(void **state)
{
    (void)state;
    for (int i = DV_WHY_FITS; i <= DV_WHY_POOL_RIVAL; i++) {
        assert_non_null(dv_why_name((enum dv_why)i));
        for (int j = DV_WHY_FITS; j < i; j++)
            assert_string_not_equal(dv_why_name((enum dv_why)i), dv_why_name((enum dv_why)j));
    }
    assert_string_equal(dv_why_name(DV_WHY_TAKEN_HERE), "taken-here");
}

static void puts_the_nearest_miss_first(void **state)
{
    static const enum dv_why order[] = {DV_WHY_COUNTER, DV_WHY_TAINTED, DV_WHY_TAKEN,
                                        DV_WHY_REQUEST_SELECTOR};
    struct fixture f;

    (void)state;
    explain(
        &f,
        "{" CLASSES COUNTED(
            "1",
            "{'name':'z','attributes':{'x':{'int':1}}},"
            "{'name':'a','attributes':{'x':{'int':2}}},"
            "{'name':'t','attributes':{'x':{'int':2}},'taints':[{'key':'t','effect':'NoExecute'}]},"
            "{'name':'c','attributes':{'x':{'int':2}}" TAKES("2") "}")
            CLAIM(REQUEST("r", EXACT("c", "1") ",'selectors':[{'cel':{'expression':"
                                               "'device.attributes[`d`].x == 2'}}]") "]") HELD "}");
    assert_int_equal(f.explanation.outcome, DV_ALLOC_NONE);
    assert_int_equal(f.explanation.n_requests, 1);
    assert_str(f.explanation.requests[0].claim, "ns/claim");
    assert_str(f.explanation.requests[0].request, "r");
    assert_true(f.explanation.requests[0].is_stuck);
    assert_int_equal(f.explanation.requests[0].n_devices, DV_COUNT(order));
    for (size_t i = 0; i < DV_COUNT(order); i++)
        assert_int_equal(f.explanation.requests[0].devices[i].why, order[i]);
    assert_str(f.explanation.summary, "claim ns/claim, request r: 1 wanted of 4: 1 counter, "
                                      "1 tainted, 1 taken, 1 request-selector");
    close_fixture(&f);
}

/* The first request is served: it is the second that is stuck. */
static void tells_which_request_is_stuck(void **state)
{
    struct fixture f;

    (void)state;
    explain(&f, "{" CLASSES DEVICES("{'name':'a'},{'name':'b'}") CLAIM(REQUEST(
                    "r", EXACT("c", "2")) "," REQUEST("s", EXACT("c", "1")) "]") "'state':{}}");
    assert_int_equal(f.explanation.outcome, DV_ALLOC_NONE);
    assert_false(f.explanation.requests[0].is_stuck);
    assert_true(f.explanation.requests[1].is_stuck);
    assert_int_equal(f.explanation.requests[1].n_fitting, 0);
    close_fixture(&f);
}

/* The line, at a limit of cost. */
static void expect_miss(uint64_t cost_max, const char *words, const char *world)
{
    const struct dv_alloc_options options = {.cost_max = cost_max};
    struct dv_alloc_miss miss;
    struct fixture f;

    explain(&f, world);
    dv_alloc_miss(f.inventory, &f.world.node, f.world.claims.v, f.world.claims.n, &options, f.arena,
                  &miss);
    assert_str(miss.text, words);
    close_fixture(&f);
}

static void tells_the_nearest_miss_in_one_line(void **state)
{
    static const char *const match =
        "{" CLASSES DEVICES("{'name':'a','attributes':{'x':{'int':1}}},{'name':'b','attributes':"
                            "{'x':{'int':2}}}")
            CLAIM(REQUEST(
                "r", EXACT("c", "2")) "],'constraints':[{'matchAttribute':'d/x'}]") "'state':{}}";

    (void)state;
    expect_miss(0,
                "r: 2 wanted, 2 looked at, 1 fits: matchAttribute d/x: it has 2, a has 1 (b on "
                "node-1)",
                match);
    expect_miss(50, "", match); /* that is not enough to find out */
    expect_miss(0, "r: 1 wanted, there are no devices on node-1",
                "{" CLASSES CLAIM(REQUEST("r", EXACT("c", "1")) "]") "'state':{}}");
    expect_miss(0, "s: 1 wanted, 1 looked at: taken by another request of the pod (a on node-1)",
                "{" CLASSES DEVICES("{'name':'a'}") CLAIM(REQUEST("r", EXACT("c", "1")) "," REQUEST(
                    "s", EXACT("c", "1")) "]") "'state':{}}");
    expect_miss(0,
                "r: 1 wanted, 1 looked at: the pool is being updated: not all of its slices are "
                "there (on node-1)",
                "{" CLASSES
                "'resourceSlices':[" SLICE("s", HALF "'devices':[{'name':'a'}]") "]," CLAIM(
                    REQUEST("r", EXACT("c", "1")) "]") "'state':{}}");
}

static void says_that_nothing_stands_in_the_way(void **state)
{
    struct fixture f;

    (void)state;
    explain(&f, "{" CLASSES DEVICES("{'name':'a'}")
                    CLAIM(REQUEST("r", EXACT("c", "1")) "]") "'state':{}}");
    assert_int_equal(f.explanation.outcome, DV_ALLOC_DONE);
    assert_str(f.explanation.summary, "it can be allocated on this node");
    close_fixture(&f);
}

static void tells_what_is_wrong_with_a_claim(void **state)
{
    struct fixture f;

    (void)state;
    explain(&f, "{" CLASSES DEVICES("{'name':'a'}")
                    CLAIM(REQUEST("r", EXACT("none", "1")) "]") "'state':{}}");
    assert_int_equal(f.explanation.outcome, DV_ALLOC_FAILED);
    assert_str(f.explanation.summary,
               "claim ns/claim, request r: could not retrieve device class none");
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_of_every_device_what_speaks_against_it),
        cmocka_unit_test(names_the_slice_of_another_node_in_the_pool),
        cmocka_unit_test(names_every_reason),
        cmocka_unit_test(puts_the_nearest_miss_first),
        cmocka_unit_test(tells_which_request_is_stuck),
        cmocka_unit_test(tells_the_nearest_miss_in_one_line),
        cmocka_unit_test(says_that_nothing_stands_in_the_way),
        cmocka_unit_test(tells_what_is_wrong_with_a_claim),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

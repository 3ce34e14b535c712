/* What a search must not do, and how it ends when it may not go on. Which devices it finds is
 * pinned by the reference corpus, and by the model in test_alloc_random.c. */
#include "tests/support/dvtest.h"

#include <stdio.h>

#include "alloc/alloc.h"
#include "alloc/tests/test_alloc_world.h"
#include "base/arena.h"
#include "base/buf.h"
#include "resource/resource.h"

#define TEXT_BYTES_MAX (4u << 20)
#define CLASS "'deviceClasses':[{'metadata':{'name':'c'},'spec':{}}],"
#define EXACT(n) "'deviceClassName':'c','allocationMode':'ExactCount','count':" n
#define REQUEST(name, terms) "{'name':'" name "','exactly':{" terms "}}"
#define CLAIM(name, requests)                                                                      \
    "{'metadata':{'namespace':'default','name':'" name "'},'spec':{'devices':{" requests "}}}"
#define POOL(name, n, rest)                                                                        \
    "{'metadata':{'name':'" name "'},'spec':{'driver':'d','pool':{'name':'p','generation':1,"      \
    "'resourceSliceCount':" n "},'nodeName':'node-1'," rest "}}"
#define SLICES(devices) "'resourceSlices':[" POOL("s", "1", "'devices':[" devices "]") "],"
#define DEVICE(name, rest) "{'name':'" name "'" rest "}"
#define TAKES(n) ",'consumesCounters':[{'counterSet':'set','counters':{'m':{'value':'" n "'}}}]"
#define COUNTERS(n, devices)                                                                       \
    "'resourceSlices':[" POOL("s1", "2", "'devices':[" devices "]") "," POOL(                      \
        "s2", "2", "'sharedCounters':[{'name':'set','counters':{'m':{'value':'" n "'}}}]") "],"
#define GROUP(n) ",'attributes':{'group':{'int':" n "}}"
#define TAINT ",'taints':[{'key':'t','effect':'NoSchedule'}]"

struct fixture {
    struct world world;
    struct dv_inventory *inventory;
    struct dv_arena *arena;
    struct dv_alloc_options options;
    struct dv_alloc_result result;
    struct dv_err err;
};

static void open_fixture(struct fixture *f, const char *text)
{
    *f = (struct fixture){.arena = dv_arena_new()};
    world_write(&f->world, text);
    f->inventory = world_inventory(&f->world);
}

static void close_fixture(struct fixture *f)
{
    dv_inventory_free(f->inventory);
    world_close(&f->world);
    dv_arena_free(f->arena);
}

static enum dv_alloc_outcome allocate(struct fixture *f)
{
    f->err = (struct dv_err){0};
    dv_allocate(f->inventory, &f->world.node, f->world.claims.v, f->world.claims.n, &f->options,
                f->arena, &f->result, &f->err);
    return f->result.outcome;
}

/* "claim:device,device claim:device" */
static dv_str print(struct fixture *f)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < f->world.claims.n; i++) {
        const struct dv_api_allocation_result *allocation = &f->result.allocations[i];

        dv_buf_printf(&buf, "%s%.*s:", i ? " " : "", DV_FMT(f->world.claims.v[i]->metadata.name));
        for (size_t j = 0; j < allocation->devices.n_results; j++)
            dv_buf_printf(&buf, "%s%.*s", j ? "," : "",
                          DV_FMT(allocation->devices.results[j].device));
    }
    return dv_str_copy(dv_buf_str(&buf), f->arena);
}

/* ---- bugs that the reference once had, and others may have ---- */

static void never_gives_one_device_to_two_claims_of_a_call(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, "{" CLASS SLICES(DEVICE("a", "") "," DEVICE("b", "")) "'claims':[" CLAIM(
                         "x", "'requests':[" REQUEST(
                                  "r", EXACT("1")) "]") "," CLAIM("y",
                                                                  "'requests':[" REQUEST(
                                                                      "r", EXACT("1")) "]") "]}");
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_str(print(&f), "x:a y:b");
    close_fixture(&f);
    open_fixture(&f, "{" CLASS SLICES(DEVICE("a", "")) "'claims':[" CLAIM(
                         "x", "'requests':[" REQUEST(
                                  "r", EXACT("1")) "]") "," CLAIM("y",
                                                                  "'requests':[" REQUEST(
                                                                      "r", EXACT("1")) "]") "]}");
    assert_int_equal(allocate(&f), DV_ALLOC_NONE);
    close_fixture(&f);
}

/* Each row refuses `a` after its counters were reserved: they must be there for `b`. */
static void gives_back_counters_whenever_a_device_is_refused(void **state)
{
    static const char *const rows[] = {
        /* a taint */
        "{" CLASS COUNTERS("4",
                           DEVICE("a", TAKES("4") TAINT) "," DEVICE(
                               "b", TAKES("4"))) "'claims':[" CLAIM("x",
                                                                    "'requests':[" REQUEST(
                                                                        "r", EXACT("1")) "]") "]}",
        /* a constraint */
        "{" CLASS COUNTERS(
            "4",
            DEVICE("a", TAKES("4")) "," DEVICE(
                "b",
                TAKES("4") GROUP(
                    "1"))) "'claims':[" CLAIM("x",
                                              "'requests':[" REQUEST(
                                                  "r",
                                                  EXACT("1")) "],'constraints':[{"
                                                              "'matchAttribute':'d/group'}]") "]}",
        /* a capacity, refused by the search before and by the taking after */
        "{" CLASS COUNTERS(
            "4",
            DEVICE("a", TAKES("4") ",'capacity':{'m':{'value':'1'}}") "," DEVICE(
                "b",
                TAKES(
                    "4") ",'capacity':{'m':{'value':'8'}}")) "'claims':[" CLAIM("x",
                                                                                "'requests':"
                                                                                "[" REQUEST(
                                                                                    "r",
                                                                                    EXACT(
                                                                                        "1") ",'"
                                                                                             "capac"
                                                                                             "ity':"
                                                                                             "{'"
                                                                                             "reque"
                                                                                             "sts':"
                                                                                             "{'m':"
                                                                                             "'2'}"
                                                                                             "}") "]") "]}",
        /* a later request: `a` is taken and given back */
        "{" CLASS COUNTERS(
            "4",
            DEVICE("a", TAKES("3") GROUP("1")) "," DEVICE("b", TAKES("2") GROUP("2")) "," DEVICE(
                "c", TAKES("2") GROUP("2"))) "'claims':[" CLAIM("x",
                                                                "'requests':[" REQUEST(
                                                                    "r", EXACT("2")) "]") "]}",
    };
    static const char *const found[] = {"x:b", "x:b", "x:b", "x:b,c"};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct fixture f;

        open_fixture(&f, rows[i]);
        if (allocate(&f) != DV_ALLOC_DONE)
            fail_msg("row %zu: outcome %d %s", i, (int)f.result.outcome, f.err.msg);
        assert_str(print(&f), found[i]);
        close_fixture(&f);
    }
}

/* The reference says of a constraint on all devices that it cannot be; the counters that were
 * reserved on the way must not be missed afterwards. */
static void gives_back_counters_after_an_error(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(
        &f,
        "{" CLASS COUNTERS(
            "4",
            DEVICE("a", TAKES("2") GROUP("1")) "," DEVICE(
                "b", TAKES("2") GROUP(
                         "2"))) "'claims':[" CLAIM("x",
                                                   "'requests':[" REQUEST(
                                                       "r",
                                                       "'deviceClassName':'c','allocationMode':'"
                                                       "All'") "],'constraints':[{'matchAttribute':"
                                                               "'d/group'}]") "]}");
    assert_int_equal(allocate(&f), DV_ALLOC_FAILED);
    assert_err(&f.err, DV_FAILED_PRECONDITION, "cannot add device d/p/b");
    assert_int_equal(allocate(&f), DV_ALLOC_FAILED); /* and again: nothing is kept */
    close_fixture(&f);
}

/* As in the reference: a share without any capacity counts as an allocation of the device, but does
 * not tell that its counters are taken by it. */
static void takes_counters_again_for_a_share_without_capacity(void **state)
{
    static const char *const rows[] = {
        "'allocatedSharedDevices':[{'driver':'d','pool':'p','device':'a','shareID':'1'}]",
        "'consumedCapacity':[{'driver':'d','pool':'p','device':'a','capacity':{'m':'1'}}]",
    };
    static const enum dv_alloc_outcome outcomes[] = {DV_ALLOC_NONE, DV_ALLOC_DONE};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        char text[2048];
        struct fixture f;

        (void)snprintf(
            text, sizeof(text), "{%s'state':{%s}}",
            CLASS COUNTERS(
                "4",
                DEVICE(
                    "a",
                    TAKES(
                        "4") ",'allowMultipleAllocations':true,'capacity':{'m':{'value':'8',"
                             "'requestPolicy':{'default':'1'}}}")) "'claims':[" CLAIM("x",
                                                                                      "'requests':"
                                                                                      "[" REQUEST(
                                                                                          "r",
                                                                                          EXACT(
                                                                                              "1")) "]") "],",
            rows[i]);
        open_fixture(&f, text);
        assert_int_equal(allocate(&f), outcomes[i]);
        close_fixture(&f);
    }
}

/* ---- what is left out changes nothing ---- */

#define SIX(a, b)                                                                                  \
    DEVICE("0", a)                                                                                 \
    "," DEVICE("1", b) "," DEVICE("2", a) "," DEVICE("3", a) "," DEVICE("4", b) "," DEVICE("5", a)

/* With distinctAttribute only the last device of a request is remembered, so it matters which of
 * two equal devices is left for it: 0 and 2 are not the same here. */
static void does_not_take_twins_for_the_same_where_order_counts(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(
        &f,
        "{" CLASS SLICES(
            DEVICE("0", GROUP("1")) "," DEVICE("1", GROUP("2")) "," DEVICE("2", GROUP("1")) "," DEVICE(
                "3",
                GROUP(
                    "1"))) "'claims':[" CLAIM("x",
                                              "'requests':[" REQUEST(
                                                  "r",
                                                  EXACT(
                                                      "1") ",'selectors':"
                                                           "[{'cel':{'"
                                                           "expression':'"
                                                           "device."
                                                           "attributes[`"
                                                           "d`].group == "
                                                           "1'}}]") "," REQUEST("s",
                                                                                EXACT(
                                                                                    "3")) "],'"
                                                                                          "constrai"
                                                                                          "nts':[{'"
                                                                                          "distinct"
                                                                                          "Attribut"
                                                                                          "e':"
                                                                                          "'d/"
                                                                                          "group','"
                                                                                          "requests"
                                                                                          "':['s']}"
                                                                                          "]") "]"
                                                                                               "}");
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_str(print(&f), "x:2,0,1,3");
    close_fixture(&f);
}

/* The second request cannot be served, but before it comes to that a selector fails. */
static void runs_into_errors_where_counting_would_not(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(
        &f,
        "{" CLASS SLICES(SIX(GROUP("1"), "")) "'claims':[" CLAIM(
            "x", "'requests':[" REQUEST("r", EXACT("4")) "," REQUEST(
                     "s", EXACT("2") ",'selectors':[{'cel':{'expression':'device.attributes[`d`]."
                                     "group == 2'}}]") "," REQUEST("t", EXACT("4")) "]") "]}");
    assert_int_equal(allocate(&f), DV_ALLOC_FAILED);
    assert_err(&f.err, DV_INVALID_ARGUMENT, "request s: selector #0");
    close_fixture(&f);
}

static void proves_that_there_is_no_solution(void **state)
{
    static const char *const rows[] = {
        "[" REQUEST("r", EXACT("30")) "]",
        "[" REQUEST("r", EXACT("5")) "],'constraints':[{'matchAttribute':'d/group'}]",
        "[" REQUEST("q", EXACT("1")) "," REQUEST("r", EXACT("1")) "," REQUEST(
            "s", EXACT("1")) "],'constraints':[{'distinctAttribute':'d/group'}]",
        "[" REQUEST("q", EXACT("1")) "," REQUEST("r", EXACT("2")) "," REQUEST(
            "s", EXACT("2")) "],'constraints':[{'matchAttribute':'d/group'}]",
        "[" REQUEST("q", EXACT("3")) "," REQUEST("r", EXACT("2")) "," REQUEST("s", EXACT("2")) "]",
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        char text[4096];
        struct fixture f;

        (void)snprintf(text, sizeof(text),
                       "{%s'claims':[{'metadata':{'name':'x'},'spec':{'devices':{'requests':%s}}}]"
                       "}",
                       CLASS SLICES(SIX(GROUP("1"), GROUP("2"))), rows[i]);
        open_fixture(&f, text);
        assert_int_equal(allocate(&f), DV_ALLOC_NONE);
        assert_in_range(f.result.n_steps, 1, 100);
        close_fixture(&f);
    }
}

static void counts_what_counters_can_serve(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct fixture f;

    (void)state;
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_add_c(&buf, "{" CLASS "'resourceSlices':[");
    dv_buf_add_c(&buf, POOL("s2", "2",
                            "'sharedCounters':[{'name':'set','counters':{'m':{'value':"
                            "'7'}}}]") ",");
    dv_buf_add_c(&buf, "{'metadata':{'name':'s1'},'spec':{'driver':'d','pool':{'name':'p',"
                       "'generation':1,'resourceSliceCount':2},'nodeName':'node-1','devices':[");
    for (int i = 0; i < 40; i++) /* all differ, so that they are no twins */
        dv_buf_printf(&buf,
                      "%s{'name':'%d','attributes':{'n':{'int':%d}},'consumesCounters':[{"
                      "'counterSet':'set','counters':{'m':{'value':'1'}}}]}",
                      i ? "," : "", i, i);
    dv_buf_add_c(&buf,
                 "]}}],'claims':[" CLAIM("x", "'requests':[" REQUEST("r", EXACT("8")) "]") "]}");
    open_fixture(&f, dv_buf_c(&buf));
    assert_int_equal(allocate(&f), DV_ALLOC_NONE);
    assert_in_range(f.result.n_steps, 1, 100);
    close_fixture(&f);
}

/* ---- how it ends ---- */

/* Hard to search, and nothing that counting would see: a selector that fails on one device, which
 * is never reached, keeps it from being left out. */
#define HARD                                                                                                    \
    "{" CLASS SLICES(                                                                                           \
        SIX(GROUP("1"), GROUP("2")) "," DEVICE("6", GROUP("1")) "," DEVICE("7", GROUP("2")) "," DEVICE(         \
            "8", GROUP(                                                                                         \
                     "1")) "," DEVICE("9",                                                                      \
                                      GROUP(                                                                    \
                                          "2"))) "'claims':[" CLAIM("x",                                        \
                                                                    "'requests':[{'name':'r','"                 \
                                                                    "firstAvailable':[{'name':'s'"              \
                                                                    "," EXACT(                                  \
                                                                        "5") "},{'name':"                       \
                                                                             "'t'," EXACT("40") "}]}," REQUEST( \
                                                                                 "u",                           \
                                                                                 EXACT(                         \
                                                                                     "4")) "," REQUEST("v",     \
                                                                                                       EXACT(   \
                                                                                                           "2")) "]") "]}"

static void gives_up_when_its_steps_are_spent(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, HARD);
    f.options.n_steps_max = 50;
    assert_int_equal(allocate(&f), DV_ALLOC_GAVE_UP);
    assert_err(&f.err, DV_RESOURCE_EXHAUSTED, "neither a solution nor a proof");
    assert_int_equal(f.result.n_steps, 51);
    f.options.n_steps_max = 0;
    assert_int_equal(allocate(&f), DV_ALLOC_NONE);
    close_fixture(&f);
}

static bool count_down(void *ctx)
{
    int *n = ctx;

    return --*n == 0;
}

static void stops_when_it_is_cancelled(void **state)
{
    struct fixture f;
    int n = 2;

    (void)state;
    open_fixture(&f, HARD);
    f.options.is_cancelled = count_down;
    f.options.ctx = &n;
    assert_int_equal(allocate(&f), DV_ALLOC_GAVE_UP);
    assert_err(&f.err, DV_CANCELLED, "filter operation aborted");
    assert_int_equal(n, 0);
    close_fixture(&f);
}

/* A selector may take long by itself. */
static void stops_a_selector_when_it_is_cancelled(void **state)
{
    struct fixture f;
    int n = 1;

    (void)state;
    open_fixture(&f,
                 "{" CLASS SLICES(DEVICE("a", "")) "'claims':[" CLAIM(
                     "x", "'requests':[" REQUEST(
                              "r", EXACT("1") ",'selectors':[{'cel':{'expression':"
                                              "'[1,2,3,4,5,6,7,8].all(a, [1,2,3,4,5,6,7,8].all(b, "
                                              "[1,2,3,4,5,6,7,8].all(c, "
                                              "a + b + c > 0)))'}}]") "]") "]}");
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    close_fixture(&f);
    open_fixture(&f,
                 "{" CLASS SLICES(DEVICE("a", "")) "'claims':[" CLAIM(
                     "x", "'requests':[" REQUEST(
                              "r", EXACT("1") ",'selectors':[{'cel':{'expression':"
                                              "'[1,2,3,4,5,6,7,8].all(a, [1,2,3,4,5,6,7,8].all(b, "
                                              "[1,2,3,4,5,6,7,8].all(c, "
                                              "a + b + c > 0)))'}}]") "]") "]}");
    f.options.is_cancelled = count_down;
    f.options.ctx = &n;
    assert_int_equal(allocate(&f), DV_ALLOC_GAVE_UP);
    close_fixture(&f);
}

/* The stack of the search is its own. */
static void takes_very_many_claims_at_once(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct fixture f;

    (void)state;
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_add_c(&buf, "{" CLASS "'resourceSlices':[" POOL("s", "1", "'devices':[]"));
    dv_buf_add_c(&buf, ",{'metadata':{'name':'t'},'spec':{'driver':'d','pool':{'name':'q',"
                       "'generation':1,'resourceSliceCount':1},'nodeName':'node-1','devices':[");
    for (int i = 0; i < 3000; i++)
        dv_buf_printf(&buf, "%s{'name':'%d'}", i ? "," : "", i);
    dv_buf_add_c(&buf, "]}}],'claims':[");
    for (int i = 0; i < 3000; i++)
        dv_buf_printf(
            &buf, "%s%s", i ? "," : "",
            CLAIM("x",
                  "'requests':[" REQUEST("r", EXACT("1")) "," REQUEST(
                      "s", "'deviceClassName':'c','allocationMode':'ExactCount','count':0") "]"));
    dv_buf_add_c(&buf, "]}");
    open_fixture(&f, dv_buf_c(&buf));
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_str(f.result.allocations[2999].devices.results[0].device, "2999");
    close_fixture(&f);
}

/* ---- shares ---- */

static void name_share(void *ctx, char text[37])
{
    int *n = ctx;

    (void)snprintf(text, 37, "share-%d", ++*n);
}

static void names_shares_as_it_is_told(void **state)
{
    struct fixture f;
    int n = 0;

    (void)state;
    open_fixture(
        &f, "{" CLASS SLICES(DEVICE("a", ",'allowMultipleAllocations':true")) "'claims':[" CLAIM(
                "x", "'requests':[" REQUEST(
                         "r", EXACT("1")) "]") "," CLAIM("y",
                                                         "'requests':[" REQUEST(
                                                             "r", EXACT("1")) "]") "]}");
    f.options.share_id = name_share;
    f.options.ctx = &n;
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_str(f.result.allocations[0].devices.results[0].share_id, "share-1");
    assert_str(f.result.allocations[1].devices.results[0].share_id, "share-2");
    assert_null(f.result.allocations[0].devices.results[0].consumed_capacity);
    f.options.share_id = NULL;
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_str(f.result.allocations[1].devices.results[0].share_id,
               "00000000-0000-0000-0000-000000000002");
    assert_int_equal(allocate(&f), DV_ALLOC_DONE); /* not again in another call */
    assert_str(f.result.allocations[1].devices.results[0].share_id,
               "00000000-0000-0000-0000-000000000004");
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_gives_one_device_to_two_claims_of_a_call),
        cmocka_unit_test(gives_back_counters_whenever_a_device_is_refused),
        cmocka_unit_test(gives_back_counters_after_an_error),
        cmocka_unit_test(takes_counters_again_for_a_share_without_capacity),
        cmocka_unit_test(does_not_take_twins_for_the_same_where_order_counts),
        cmocka_unit_test(runs_into_errors_where_counting_would_not),
        cmocka_unit_test(proves_that_there_is_no_solution),
        cmocka_unit_test(counts_what_counters_can_serve),
        cmocka_unit_test(gives_up_when_its_steps_are_spent),
        cmocka_unit_test(stops_when_it_is_cancelled),
        cmocka_unit_test(stops_a_selector_when_it_is_cancelled),
        cmocka_unit_test(takes_very_many_claims_at_once),
        cmocka_unit_test(names_shares_as_it_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

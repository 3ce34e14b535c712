/* An inventory that is kept current answers as a new one, and keeps what it found out. */
#include "tests/support/dvtest.h"

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "alloc/tests/test_alloc_world.h"
#include "base/arena.h"
#include "base/map.h"
#include "number/number.h"
#include "resource/resource.h"

#define CLASS "'deviceClasses':[{'metadata':{'name':'c'},'spec':{}}],"
#define CLAIM(n)                                                                                   \
    "'claims':[{'metadata':{'namespace':'default','name':'claim'},'spec':{'devices':{'requests':[" \
    "{'name':'r','exactly':{'deviceClassName':'c','allocationMode':'ExactCount','count':" n        \
    "}}]}}}]"
#define SLICE(name, pool, where, devices)                                                          \
    "{'metadata':{'name':'" name "'},'spec':{'driver':'d','pool':{'name':'" pool                   \
    "','generation':1,'resourceSliceCount':1}," where ",'devices':[" devices "]}}"
#define HERE "'nodeName':'node-1'"
#define THERE "'nodeName':'node-2'"

struct fixture {
    struct world world;
    struct dv_inventory *inventory;
    struct dv_inventory_slice *slices[8];
    struct dv_arena *arena;
    struct dv_alloc_result result;
    struct dv_err err;
};

static void open_fixture(struct fixture *f, const char *text)
{
    *f = (struct fixture){.arena = dv_arena_new()};
    world_write(&f->world, text);
    f->inventory = dv_inventory_new(&f->world.features);
    for (size_t i = 0; i < f->world.classes.n; i++)
        dv_inventory_set_class(f->inventory, f->world.classes.v[i]);
    for (size_t i = 0; i < f->world.slices.n; i++)
        f->slices[i] = dv_inventory_add_slice(f->inventory, f->world.slices.v[i]);
}

static void close_fixture(struct fixture *f)
{
    dv_inventory_free(f->inventory);
    world_close(&f->world);
    dv_arena_free(f->arena);
}

static enum dv_alloc_outcome allocate(struct fixture *f)
{
    struct dv_alloc_options options = {0};

    dv_allocate(f->inventory, &f->world.node, f->world.claims.v, f->world.claims.n, &options,
                f->arena, &f->result, &f->err);
    return f->result.outcome;
}

/* The device of the first result. */
static dv_str device_of(const struct fixture *f)
{
    return f->result.allocations[0].devices.results[0].device;
}

static void hold(struct fixture *f, const char *pool, const char *device)
{
    world_hold(f->inventory,
               &(struct dv_api_device_request_allocation_result){.driver = DV_STR("d"),
                                                                 .pool = dv_str_from_c(pool),
                                                                 .device = dv_str_from_c(device)},
               DV_STR("default/other"));
}

static void release(struct fixture *f, const char *pool, const char *device)
{
    world_release(
        f->inventory,
        &(struct dv_api_device_request_allocation_result){
            .driver = DV_STR("d"), .pool = dv_str_from_c(pool), .device = dv_str_from_c(device)});
}

/* ---- holding ---- */

static void gives_back_what_was_held(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, "{" CLASS "'resourceSlices':[" SLICE("s", "p", HERE,
                                                          "{'name':'a'}") "]," CLAIM("1") "}");
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    dv_inventory_hold(f.inventory, &f.result.allocations[0], DV_STR("default/claim"));
    assert_int_equal(allocate(&f), DV_ALLOC_NONE);
    release(&f, "p", "a");
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    close_fixture(&f);
}

static void passes_over_a_release_of_what_is_not_held(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, "{" CLASS "'resourceSlices':[" SLICE("s", "p", HERE,
                                                          "{'name':'a'}") "]," CLAIM("1") "}");
    release(&f, "p", "a");
    release(&f, "p", "never-seen");
    release(&f, "nowhere", "a");
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    hold(&f, "p", "a");
    release(&f, "p", "a");
    release(&f, "p", "a");
    hold(&f, "p", "a");
    assert_int_equal(allocate(&f), DV_ALLOC_NONE);
    release(&f, "p", "a");
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_int_equal(f.inventory->idents.n, 1); /* nothing is left of what was not there */
    close_fixture(&f);
}

static void counts_those_who_hold_the_same_device(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, "{" CLASS "'resourceSlices':[" SLICE("s", "p", HERE,
                                                          "{'name':'a'}") "]," CLAIM("1") "}");
    hold(&f, "p", "a");
    hold(&f, "p", "a");
    release(&f, "p", "a");
    assert_int_equal(allocate(&f), DV_ALLOC_NONE);
    release(&f, "p", "a");
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    close_fixture(&f);
}

static void releases_the_share_that_is_named(void **state)
{
    struct fixture f;
    struct dv_quantity_entry three = {DV_STR("memory"),
                                      dv_quantity_from_i64(3, DV_QUANTITY_DECIMAL_SI)};
    struct dv_quantity_entry one = {DV_STR("memory"),
                                    dv_quantity_from_i64(1, DV_QUANTITY_DECIMAL_SI)};
    struct dv_api_device_request_allocation_result large = {.driver = DV_STR("d"),
                                                            .pool = DV_STR("p"),
                                                            .device = DV_STR("a"),
                                                            .share_id = DV_STR("large"),
                                                            .consumed_capacity = &three,
                                                            .n_consumed_capacity = 1};
    struct dv_api_device_request_allocation_result small = large;

    (void)state;
    small.share_id = DV_STR("small");
    small.consumed_capacity = &one;
    open_fixture(&f, "{" CLASS
                     "'resourceSlices':[" SLICE("s", "p", HERE,
                                                "{'name':'a','allowMultipleAllocations':true,"
                                                "'capacity':{'memory':{'value':'4','requestPolicy':"
                                                "{'default':'2'}}}}") "]," CLAIM("1") "}");
    world_hold(f.inventory, &small, DV_STR("default/small"));
    world_hold(f.inventory, &large, DV_STR("default/large"));
    assert_int_equal(allocate(&f), DV_ALLOC_NONE);
    world_release(f.inventory, &small);
    world_release(f.inventory, &small);
    assert_int_equal(allocate(&f), DV_ALLOC_NONE); /* 1 is left, 2 are wanted */
    world_hold(f.inventory, &small, DV_STR("default/small"));
    world_release(f.inventory, &large);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    close_fixture(&f);
}

static void tells_names_with_slashes_apart(void **state)
{
    static const struct {
        const char *pool;
        const char *device;
        enum dv_alloc_outcome outcome;
    } rows[] = {
        {"p/q", "a",   DV_ALLOC_NONE},
        {"p",   "q/a", DV_ALLOC_DONE},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct fixture f;

        open_fixture(&f, "{" CLASS "'resourceSlices':[" SLICE("s", "p/q", HERE,
                                                              "{'name':'a'}") "]," CLAIM("1") "}");
        hold(&f, rows[i].pool, rows[i].device);
        assert_int_equal(allocate(&f), rows[i].outcome);
        close_fixture(&f);
    }
}

static void holds_devices_that_no_slice_has_yet(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, "{" CLASS "'resourceSlices':[]," CLAIM("1") "}");
    hold(&f, "p", "a");
    world_close(&f.world);
    world_write(&f.world, "{" CLASS "'resourceSlices':[" SLICE(
                              "s", "p", HERE, "{'name':'a'},{'name':'b'}") "]," CLAIM("1") "}");
    f.slices[0] = dv_inventory_add_slice(f.inventory, f.world.slices.v[0]);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_str(device_of(&f), "b");
    close_fixture(&f);
}

/* ---- views ---- */

#define TWO_NODES                                                                                  \
    "{" CLASS "'resourceSlices':[" SLICE("s1", "p1", HERE, "{'name':'a'},{'name':'b'}") "," SLICE( \
        "s2", "p2", THERE, "{'name':'c'}") "," SLICE("s3", "p3", "'allNodes':true",                \
                                                     "{'name':'z'}") "]," CLAIM("1") "}"

static void keeps_what_it_found_out_about_a_node(void **state)
{
    struct fixture f;
    uint64_t n_views;

    (void)state;
    open_fixture(&f, TWO_NODES);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    n_views = f.inventory->view_mark;
    hold(&f, "p1", "a");
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_str(device_of(&f), "b");
    dv_inventory_remove_slice(f.inventory, f.slices[1]); /* of the other node */
    dv_inventory_set_class(f.inventory, f.world.classes.v[0]);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_int_equal(f.inventory->view_mark, n_views);
    close_fixture(&f);
}

static void finds_out_anew_what_has_changed(void **state)
{
    struct dv_str_entry label = {DV_STR("zone"), DV_STR("z")};
    struct fixture f;
    uint64_t n_views;

    (void)state;
    open_fixture(&f, TWO_NODES);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    n_views = f.inventory->view_mark;
    dv_inventory_remove_slice(f.inventory, f.slices[0]);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_str(device_of(&f), "z");
    assert_int_equal(f.inventory->view_mark, n_views + 1);
    dv_inventory_remove_slice(f.inventory, f.slices[2]);
    assert_int_equal(allocate(&f), DV_ALLOC_NONE);
    assert_int_equal(f.inventory->view_mark, n_views + 2);
    f.world.node.labels = &label;
    f.world.node.n_labels = 1;
    assert_int_equal(allocate(&f), DV_ALLOC_NONE);
    assert_int_equal(f.inventory->view_mark, n_views + 3);
    close_fixture(&f);
}

/* A pool of two slices, of which one is for another node: whether it is complete depends on both.
 */
static void notices_slices_of_its_pools_on_other_nodes(void **state)
{
    static const char text[] =
        "{" CLASS "'resourceSlices':[{'metadata':{'name':'s1'},'spec':{'driver':'d','pool':{"
        "'name':'p','generation':1,'resourceSliceCount':2}," HERE ",'devices':[{'name':'a'}]}},"
        "{'metadata':{'name':'s2'},'spec':{'driver':'d','pool':{'name':'p','generation':1,"
        "'resourceSliceCount':2}," THERE ",'devices':[{'name':'b'}]}},{'metadata':{'name':'s3'},"
        "'spec':{'driver':'d','pool':{'name':'p','generation':2,'resourceSliceCount':1}," THERE
        ",'devices':[{'name':'b'}]}}]," CLAIM("1") "}";
    struct fixture f;

    (void)state;
    open_fixture(&f, text);
    assert_int_equal(allocate(&f), DV_ALLOC_NONE); /* obsolete */
    dv_inventory_remove_slice(f.inventory, f.slices[2]);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    dv_inventory_remove_slice(f.inventory, f.slices[1]);
    assert_int_equal(allocate(&f), DV_ALLOC_NONE); /* incomplete */
    (void)dv_inventory_add_slice(f.inventory, f.world.slices.v[1]);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    close_fixture(&f);
}

static void forgets_a_node(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, TWO_NODES);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    f.world.node.name = DV_STR("node-3");
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_int_equal(f.inventory->nodes.n, 3);
    dv_inventory_forget_node(f.inventory, DV_STR("node-3"));
    dv_inventory_forget_node(f.inventory, DV_STR("node-3"));
    assert_int_equal(f.inventory->nodes.n, 2);
    dv_inventory_forget_node(f.inventory, DV_STR("node-1")); /* its slice is still there */
    assert_int_equal(f.inventory->nodes.n, 2);
    dv_inventory_remove_slice(f.inventory, f.slices[0]);
    dv_inventory_remove_slice(f.inventory, f.slices[1]);
    assert_int_equal(f.inventory->nodes.n, 0);
    f.world.node.name = DV_STR("node-1");
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_str(device_of(&f), "z");
    close_fixture(&f);
}

static void rest(struct fixture *f)
{
    while (dv_inventory_rest(f->inventory))
        continue;
}

static bool sleeps(const struct fixture *f, size_t slice)
{
    return !f->slices[slice]->spec && !f->slices[slice]->devices[0].api;
}

static void gives_back_what_it_made_and_answers_as_before(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, TWO_NODES);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    hold(&f, "p1", "a");
    rest(&f);
    assert_true(sleeps(&f, 0));
    assert_true(sleeps(&f, 1));
    assert_false(sleeps(&f, 2)); /* it is for all nodes */
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_str(device_of(&f), "b"); /* `a` is held still */
    assert_false(sleeps(&f, 0));
    assert_true(sleeps(&f, 1)); /* nobody has asked about its node */
    dv_inventory_lend(f.inventory);
    assert_true(dv_inventory_rest(f.inventory));
    assert_false(sleeps(&f, 0)); /* it is lent */
    dv_inventory_return(f.inventory);
    rest(&f);
    assert_true(sleeps(&f, 0));
    dv_inventory_remove_slice(f.inventory, f.slices[0]);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    assert_str(device_of(&f), "z");
    close_fixture(&f);
}

/* A pool of two nodes: one looks at the slices of the other, which is at rest, for their counters.
 */
static void wakes_the_slices_of_others_for_their_counters(void **state)
{
    static const char text[] =
        "{" CLASS "'resourceSlices':[{'metadata':{'name':'s1'},'spec':{'driver':'d','pool':{"
        "'name':'p','generation':1,'resourceSliceCount':3}," HERE ",'devices':[{'name':'a',"
        "'consumesCounters':[{'counterSet':'set','counters':{'m':{'value':'1'}}}]}]}},"
        "{'metadata':{'name':'s2'},'spec':{'driver':'d','pool':{'name':'p','generation':1,"
        "'resourceSliceCount':3}," THERE ",'devices':[{'name':'b',"
        "'consumesCounters':[{'counterSet':'set','counters':{'m':{'value':'1'}}}]}]}},"
        "{'metadata':{'name':'s3'},'spec':{'driver':'d','pool':{'name':'p','generation':1,"
        "'resourceSliceCount':3},'allNodes':true,'sharedCounters':[{'name':'set','counters':{'m':{"
        "'value':'1'}}}]}}]," CLAIM("1") "}";
    struct fixture f;

    (void)state;
    open_fixture(&f, text);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    dv_inventory_forget_node(f.inventory, DV_STR("node-2"));
    assert_true(sleeps(&f, 1));
    hold(&f, "p", "b");
    assert_int_equal(allocate(&f), DV_ALLOC_NONE); /* `b` has used the counter up */
    release(&f, "p", "b");
    rest(&f);
    assert_int_equal(allocate(&f), DV_ALLOC_DONE);
    close_fixture(&f);
}

static void takes_the_selectors_of_the_new_class(void **state)
{
    static const char *const expressions[] = {"true", "false", "true"};
    struct fixture f;

    (void)state;
    open_fixture(&f, TWO_NODES);
    for (size_t i = 0; i < DV_COUNT(expressions); i++) {
        struct dv_api_cel_device_selector cel = {.expression = dv_str_from_c(expressions[i])};
        struct dv_api_device_selector selector = {.cel = &cel};
        struct dv_api_device_class class = {
            .metadata = {.name = DV_STR("c")},
            .spec = { .selectors = &selector,   .n_selectors = 1},
        };
        struct dv_object *object = dv_object_new(dv_kind(DV_KIND_CLASS), &class);

        dv_inventory_set_class(f.inventory, object);
        dv_object_unref(object);
        assert_int_equal(allocate(&f), i == 1 ? DV_ALLOC_NONE : DV_ALLOC_DONE);
    }
    dv_inventory_remove_class(f.inventory, DV_STR("c"));
    assert_int_equal(allocate(&f), DV_ALLOC_FAILED);
    close_fixture(&f);
}

/* A slice that takes the place of another must not inherit what selectors said of that. */
static void asks_selectors_again_about_a_new_slice(void **state)
{
    static const char text[] =
        "{'deviceClasses':[{'metadata':{'name':'c'},'spec':{'selectors':[{'cel':{'expression':"
        "'device.attributes[`d`].good'}}]}}],'resourceSlices':[" SLICE(
            "s1", "p", HERE,
            "{'name':'a','attributes':{'good':{'bool':true}}}") "," SLICE("s2", "p", HERE,
                                                                          "{'name':'a','attributes'"
                                                                          ":{'good':{'bool':false}}"
                                                                          "}") "]," CLAIM("1") "}";
    struct fixture f;

    (void)state;
    open_fixture(&f, text);
    dv_inventory_remove_slice(f.inventory, f.slices[1]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(allocate(&f), DV_ALLOC_DONE);
        dv_inventory_remove_slice(f.inventory, f.slices[0]);
        f.slices[1] = dv_inventory_add_slice(f.inventory, f.world.slices.v[1]);
        assert_int_equal(allocate(&f), DV_ALLOC_NONE);
        dv_inventory_remove_slice(f.inventory, f.slices[1]);
        f.slices[0] = dv_inventory_add_slice(f.inventory, f.world.slices.v[0]);
    }
    close_fixture(&f);
}

static size_t kept_bytes(const struct fixture *f)
{
    const struct dv_alloc_node_view *view =
        dv_inventory_node(f->inventory, f->world.node.name)->view;
    size_t n = dv_arena_size_bytes(view->arena) + dv_arena_size_bytes(f->inventory->scratch);

    for (size_t i = 0; i < view->n_pools; i++)
        if (view->pools[i].sums)
            n += dv_arena_size_bytes(view->pools[i].sums);
    return n;
}

/* Counters of forty digits, whose sums take memory. */
static void does_not_grow_with_every_change(void **state)
{
#define LARGE "'1000000000000000000000000000000000000001'"
    static const char text[] =
        "{" CLASS "'resourceSlices':[{'metadata':{'name':'s1'},'spec':{'driver':'d','pool':{"
        "'name':'p','generation':1,'resourceSliceCount':2}," HERE ",'devices':[{'name':'a',"
        "'consumesCounters':[{'counterSet':'set','counters':{'m':{'value':" LARGE "}}}]},{'name':"
        "'b','consumesCounters':[{'counterSet':'set','counters':{'m':{'value':" LARGE "}}}]}]}},"
        "{'metadata':{'name':'s2'},'spec':{'driver':'d','pool':{'name':'p','generation':1,"
        "'resourceSliceCount':2}," HERE ",'sharedCounters':[{'name':'set','counters':{'m':{"
        "'value':" LARGE "}}}]}}]," CLAIM("1") "}";
    struct fixture f;
    size_t size_bytes = 0;

    (void)state;
    open_fixture(&f, text);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(allocate(&f), DV_ALLOC_DONE);
        if (i == 10)
            size_bytes = kept_bytes(&f);
        if (i > 10)
            assert_int_equal(kept_bytes(&f), size_bytes);
        hold(&f, "p", "b");
        assert_int_equal(allocate(&f), DV_ALLOC_NONE); /* the counter is used up */
        release(&f, "p", "b");
        dv_arena_reset(f.arena);
    }
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_back_what_was_held),
        cmocka_unit_test(passes_over_a_release_of_what_is_not_held),
        cmocka_unit_test(counts_those_who_hold_the_same_device),
        cmocka_unit_test(releases_the_share_that_is_named),
        cmocka_unit_test(tells_names_with_slashes_apart),
        cmocka_unit_test(holds_devices_that_no_slice_has_yet),
        cmocka_unit_test(keeps_what_it_found_out_about_a_node),
        cmocka_unit_test(finds_out_anew_what_has_changed),
        cmocka_unit_test(notices_slices_of_its_pools_on_other_nodes),
        cmocka_unit_test(forgets_a_node),
        cmocka_unit_test(gives_back_what_it_made_and_answers_as_before),
        cmocka_unit_test(wakes_the_slices_of_others_for_their_counters),
        cmocka_unit_test(takes_the_selectors_of_the_new_class),
        cmocka_unit_test(asks_selectors_again_about_a_new_slice),
        cmocka_unit_test(does_not_grow_with_every_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* An inventory that is lent stays as it was, and catches up when it is returned. */
#include "tests/support/dvtest.h"

#include "alloc/alloc.h"
#include "alloc/tests/test_alloc_world.h"
#include "base/arena.h"
#include "resource/resource.h"

#define SLICE(name, pool, where, device)                                                           \
    "{'metadata':{'name':'" name "'},'spec':{'driver':'d','pool':{'name':'" pool                   \
    "','generation':1,'resourceSliceCount':1}," where ",'devices':[{'name':'" device "'}]}}"
#define WORLD                                                                                      \
    "{'deviceClasses':[{'metadata':{'name':'c'},'spec':{}}],'resourceSlices':[" SLICE(             \
        "s1", "p1", "'nodeName':'node-1'",                                                         \
        "a") "," SLICE("s2", "p2", "'nodeName':'node-1'",                                          \
                       "b") "," SLICE("s3", "p3", "'nodeName':'node-2'",                           \
                                      "c") "," SLICE("s4", "p4", "'allNodes':true",                \
                                                     "d") "],'claims':[{'metadata':{'namespace':'" \
                                                          "default',"                              \
                                                          "'name':'x'},'spec':{'devices':{'"       \
                                                          "requests':[{'name':'r','exactly':{'"    \
                                                          "deviceClassName':'c',"                  \
                                                          "'allocationMode':'ExactCount','count':" \
                                                          "1}}]}}}]}"

struct fixture {
    struct world world;
    struct dv_inventory *inventory;
    struct dv_inventory_slice *slices[4];
    struct dv_arena *arena;
    struct dv_alloc_result result;
    struct dv_err err;
};

static void open_fixture(struct fixture *f)
{
    *f = (struct fixture){.arena = dv_arena_new()};
    world_write(&f->world, WORLD);
    f->inventory = dv_inventory_new(&f->world.features);
    dv_inventory_set_class(f->inventory, f->world.classes.v[0]);
    for (size_t i = 0; i < 3; i++) /* the last one comes later */
        f->slices[i] = dv_inventory_add_slice(f->inventory, f->world.slices.v[i]);
}

static void close_fixture(struct fixture *f)
{
    dv_inventory_free(f->inventory);
    world_close(&f->world);
    dv_arena_free(f->arena);
}

/* The device that is found; "none" when there is none, "failed" when the class is not there. */
static dv_str find(struct fixture *f)
{
    const struct dv_alloc_options options = {0};

    dv_allocate(f->inventory, &f->world.node, f->world.claims.v, 1, &options, f->arena, &f->result,
                &f->err);
    if (f->result.outcome == DV_ALLOC_DONE)
        return f->result.allocations[0].devices.results[0].device;
    return f->result.outcome == DV_ALLOC_NONE ? DV_STR("none") : DV_STR("failed");
}

static void hold(struct fixture *f, const char *pool, const char *device)
{
    const struct dv_api_device_request_allocation_result result = {
        .driver = DV_STR("d"), .pool = dv_str_from_c(pool), .device = dv_str_from_c(device)};

    world_hold(f->inventory, &result, DV_STR("default/other"));
}

static void release(struct fixture *f, const char *pool, const char *device)
{
    const struct dv_api_device_request_allocation_result result = {
        .driver = DV_STR("d"), .pool = dv_str_from_c(pool), .device = dv_str_from_c(device)};

    world_release(f->inventory, &result);
}

static void what_is_changed_shows_when_it_is_returned(void **state)
{
    struct fixture f;
    struct dv_inventory_slice *passing;

    (void)state;
    open_fixture(&f);
    assert_str(find(&f), "a");
    dv_inventory_lend(f.inventory);
    hold(&f, "p1", "a");
    hold(&f, "p2", "b");
    release(&f, "p1", "a");
    dv_inventory_remove_slice(f.inventory, f.slices[0]);
    passing = dv_inventory_add_slice(f.inventory, f.world.slices.v[3]);
    dv_inventory_remove_slice(f.inventory, passing);
    assert_str(find(&f), "a"); /* as it was */
    dv_inventory_return(f.inventory);
    assert_str(find(&f), "none");
    dv_inventory_lend(f.inventory);
    (void)dv_inventory_add_slice(f.inventory, f.world.slices.v[3]);
    dv_inventory_remove_class(f.inventory, DV_STR("c"));
    dv_inventory_forget_node(f.inventory, DV_STR("node-1"));
    assert_str(find(&f), "none");
    dv_inventory_return(f.inventory);
    assert_str(find(&f), "failed");
    dv_inventory_lend(f.inventory);
    dv_inventory_set_class(f.inventory, f.world.classes.v[0]);
    dv_inventory_return(f.inventory);
    assert_str(find(&f), "d");
    close_fixture(&f);
}

static void do_nothing(struct fixture *f)
{
    (void)f;
}

static void hold_here(struct fixture *f)
{
    hold(f, "p2", "b");
}

static void hold_elsewhere(struct fixture *f)
{
    hold(f, "p3", "c");
}

static void release_here(struct fixture *f)
{
    hold(f, "p1", "a");
    release(f, "p1", "a");
}

static void remove_here(struct fixture *f)
{
    dv_inventory_remove_slice(f->inventory, f->slices[1]);
}

static void remove_elsewhere(struct fixture *f)
{
    dv_inventory_remove_slice(f->inventory, f->slices[2]);
}

static void add_for_all(struct fixture *f)
{
    (void)dv_inventory_add_slice(f->inventory, f->world.slices.v[3]);
}

static void set_class(struct fixture *f)
{
    dv_inventory_set_class(f->inventory, f->world.classes.v[0]);
}

static void forget_it(struct fixture *f)
{
    dv_inventory_forget_node(f->inventory, DV_STR("node-1")); /* results may be gone with it */
}

static const struct {
    void (*change)(struct fixture *f);
    bool is_seen; /* by a search on node-1 */
} changes[] = {
    {do_nothing,       false},
    {hold_here,        true },
    {hold_elsewhere,   false},
    {release_here,     true },
    {remove_here,      true },
    {remove_elsewhere, false},
    {add_for_all,      true },
    {set_class,        true },
    {forget_it,        true },
};

static void only_what_a_node_sees_makes_it_search_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(changes); i++) {
        for (int is_lent = 0; is_lent < 2; is_lent++) {
            struct fixture f;
            uint64_t then;

            open_fixture(&f);
            assert_str(find(&f), "a");
            then = dv_inventory_now(f.inventory);
            if (is_lent)
                dv_inventory_lend(f.inventory);
            changes[i].change(&f);
            if (is_lent)
                dv_inventory_return(f.inventory);
            assert_int_equal(dv_inventory_has_changed(f.inventory, DV_STR("node-1"), then),
                             changes[i].is_seen);
            close_fixture(&f);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_changed_shows_when_it_is_returned),
        cmocka_unit_test(only_what_a_node_sees_makes_it_search_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a search may cost: selectors count as they cost in CEL, and what was found out is kept. */
#include "tests/support/dvtest.h"

#include <string.h>

#include "alloc/alloc.h"
#include "alloc/tests/test_alloc_world.h"
#include "base/arena.h"
#include "base/buf.h"
#include "resource/resource.h"

#define TEXT_BYTES_MAX (1u << 20)
#define N_DEVICES 32u
#define TEN "[0,1,2,3,4,5,6,7,8,9]"
/* About ten thousand units on each device. */
#define COSTLY TEN ".all(a, " TEN ".all(b, " TEN ".all(c, a + b + c >= 0)))"
#define COST_EACH_MIN 5000u
#define COST_EACH_MAX 50000u

struct fixture {
    struct world world;
    struct dv_inventory *inventory;
    struct dv_arena *arena;
    struct dv_alloc_options options;
    struct dv_alloc_result result;
    struct dv_err err;
};

/* A node with N_DEVICES devices, and a claim for one on which `selector` is true. */
static void open_fixture(struct fixture *f, const char *selector)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    *f = (struct fixture){.arena = dv_arena_new()};
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_add_c(&buf, "{'deviceClasses':[{'metadata':{'name':'c'},'spec':{}}],'resourceSlices':[{"
                       "'metadata':{'name':'s'},'spec':{'driver':'d','nodeName':'node-1','pool':{"
                       "'name':'p','generation':1,'resourceSliceCount':1},'devices':[");
    for (unsigned i = 0; i < N_DEVICES; i++)
        dv_buf_printf(&buf, "%s{'name':'dev-%u','attributes':{'number':{'int':%u}}}",
                      i > 0 ? "," : "", i, i);
    dv_buf_printf(&buf,
                  "]}}],'claims':[{'metadata':{'namespace':'default','name':'x'},'spec':{'devices':"
                  "{'requests':[{'name':'r','exactly':{'deviceClassName':'c','allocationMode':"
                  "'ExactCount','count':1,'selectors':[{'cel':{'expression':'%s'}}]}}]}}}]}",
                  selector);
    world_write(&f->world, dv_str_to_c(dv_buf_str(&buf), f->arena));
    f->inventory = world_inventory(&f->world);
}

static void close_fixture(struct fixture *f)
{
    dv_inventory_free(f->inventory);
    world_close(&f->world);
    dv_arena_free(f->arena);
}

static enum dv_alloc_outcome allocate(struct fixture *f, uint64_t cost_max)
{
    f->err = (struct dv_err){0};
    f->options.cost_max = cost_max;
    dv_allocate(f->inventory, &f->world.node, f->world.claims.v, f->world.claims.n, &f->options,
                f->arena, &f->result, &f->err);
    return f->result.outcome;
}

static void counts_what_selectors_cost(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, COSTLY " && false");
    assert_int_equal(allocate(&f, 0), DV_ALLOC_NONE);
    assert_true(f.result.cost > N_DEVICES * (uint64_t)COST_EACH_MIN);
    assert_true(f.result.cost < N_DEVICES * (uint64_t)COST_EACH_MAX);
    /* What a selector was on a device is known the second time. */
    assert_int_equal(allocate(&f, 0), DV_ALLOC_NONE);
    assert_true(f.result.cost < COST_EACH_MIN);
    close_fixture(&f);
}

static void gives_up_when_its_cost_is_spent(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, COSTLY " && false");
    assert_int_equal(allocate(&f, 3 * COST_EACH_MAX), DV_ALLOC_GAVE_UP);
    assert_err(&f.err, DV_RESOURCE_EXHAUSTED, "the search was given up at a cost of 150000");
    assert_err(&f.err, DV_RESOURCE_EXHAUSTED, "simplify the selectors");
    assert_true(f.result.cost <= 3 * COST_EACH_MAX + COST_EACH_MIN / 10);
    close_fixture(&f);
}

/* Each try goes on where the one before it had to stop. */
static void comes_to_an_end_try_by_try(void **state)
{
    struct fixture f;
    unsigned n_tries = 1;

    (void)state;
    open_fixture(&f, COSTLY " && device.attributes[`d`].number == 31");
    while (allocate(&f, 2 * COST_EACH_MAX) == DV_ALLOC_GAVE_UP)
        assert_true(n_tries++ < N_DEVICES);
    assert_int_equal(f.result.outcome, DV_ALLOC_DONE);
    assert_str(f.result.allocations[0].devices.results[0].device, "dev-31");
    assert_true(n_tries > 2);
    close_fixture(&f);
}

/* An evaluation that is cut short by the search's limit is not the selector's fault; one that
 * passes CEL's own limit is. */
static void tells_its_own_limit_from_that_of_a_selector(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, COSTLY);
    assert_int_equal(allocate(&f, COST_EACH_MIN / 2), DV_ALLOC_GAVE_UP);
    close_fixture(&f);
    open_fixture(&f, TEN ".all(x, " TEN ".all(y, " TEN ".all(z, " COSTLY ")))");
    assert_int_equal(allocate(&f, COST_EACH_MAX), DV_ALLOC_GAVE_UP);
    assert_int_equal(allocate(&f, 0), DV_ALLOC_FAILED);
    assert_err(&f.err, DV_RESOURCE_EXHAUSTED, "claim default/x, request r: selector #0");
    close_fixture(&f);
}

static void counts_compiling_and_looking_at_slices(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, "true");
    assert_int_equal(allocate(&f, 10 * N_DEVICES), DV_ALLOC_GAVE_UP);
    assert_int_equal(allocate(&f, 0), DV_ALLOC_DONE);
    assert_true(f.result.cost > 10 * N_DEVICES);
    assert_int_equal(allocate(&f, 10 * N_DEVICES), DV_ALLOC_DONE);
    close_fixture(&f);
}

static void explains_within_its_cost(void **state)
{
    struct fixture f;
    struct dv_explanation explanation;
    size_t n_left = 0;

    (void)state;
    open_fixture(&f, COSTLY " && false");
    f.options.cost_max = 8 * COST_EACH_MAX;
    dv_alloc_explain(f.inventory, &f.world.node, f.world.claims.v, f.world.claims.n, &f.options,
                     f.arena, &explanation);
    assert_int_equal(explanation.outcome, DV_ALLOC_GAVE_UP);
    assert_true(explanation.cost <= 9 * COST_EACH_MAX);
    assert_non_null(strstr(dv_str_to_c(explanation.summary, f.arena), "given up"));
    f.options.cost_max = 0;
    dv_alloc_explain(f.inventory, &f.world.node, f.world.claims.v, f.world.claims.n, &f.options,
                     f.arena, &explanation);
    assert_int_equal(explanation.outcome, DV_ALLOC_NONE);
    /* All verdicts are known now, but saying why takes an evaluation for each. */
    f.options.cost_max = 4 * COST_EACH_MAX;
    dv_alloc_explain(f.inventory, &f.world.node, f.world.claims.v, f.world.claims.n, &f.options,
                     f.arena, &explanation);
    assert_int_equal(explanation.outcome, DV_ALLOC_NONE);
    assert_int_equal(explanation.n_requests, 1);
    for (size_t i = 0; i < explanation.requests[0].n_devices; i++)
        n_left += explanation.requests[0].devices[i].why == DV_WHY_SELECTOR_FAILS;
    assert_in_range(n_left, 1, N_DEVICES - 1);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_selectors_cost),
        cmocka_unit_test(gives_up_when_its_cost_is_spent),
        cmocka_unit_test(comes_to_an_end_try_by_try),
        cmocka_unit_test(tells_its_own_limit_from_that_of_a_selector),
        cmocka_unit_test(counts_compiling_and_looking_at_slices),
        cmocka_unit_test(explains_within_its_cost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

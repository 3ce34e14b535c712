/* The rate limit of PodResources, and what is counted. */
#include "support/dvtest.h"

#include "serve/podresources/podres_gate.h"
#include "serve/serve.h"

#define MS UINT64_C(1000000)
#define START_NS (1000 * MS)

static unsigned pass_many(struct dv_podres_gate *gate, unsigned n_calls, uint64_t now_ns)
{
    unsigned n_passed = 0;
    struct dv_err err;

    for (unsigned i = 0; i < n_calls; i++)
        n_passed += dv_podres_gate_pass(gate, DV_PODRES_LIST, now_ns, &err);
    return n_passed;
}

static void the_first_ten_calls_of_a_burst_pass(void **state)
{
    struct dv_podres_gate gate;
    struct dv_err err;

    (void)state;
    dv_podres_gate_init(&gate, START_NS);
    for (unsigned i = 0; i < 10; i++)
        assert_ok(dv_podres_gate_pass(&gate, DV_PODRES_LIST, START_NS, &err), &err);
    assert_false(dv_podres_gate_pass(&gate, DV_PODRES_LIST, START_NS, &err));
    assert_int_equal(err.code, DV_RESOURCE_EXHAUSTED);
    assert_string_equal(err.msg, "rejected by rate limit");
}

static void a_token_comes_back_every_ten_milliseconds(void **state)
{
    struct dv_podres_gate gate;

    (void)state;
    dv_podres_gate_init(&gate, START_NS);
    assert_int_equal(pass_many(&gate, 200, START_NS), 10);
    assert_int_equal(pass_many(&gate, 1, START_NS + 10 * MS - 1), 0);
    assert_int_equal(pass_many(&gate, 2, START_NS + 10 * MS), 1);
    assert_int_equal(pass_many(&gate, 200, START_NS + 45 * MS), 3);
    assert_int_equal(pass_many(&gate, 2, START_NS + 50 * MS), 1); /* the half was not lost */
}

static void a_hundred_calls_a_second_pass_for_ever(void **state)
{
    struct dv_podres_gate gate;
    unsigned n_passed = 0;

    (void)state;
    dv_podres_gate_init(&gate, START_NS);
    for (uint64_t ms = 0; ms < 10000; ms++) /* ten times as many are tried */
        n_passed += pass_many(&gate, 1, START_NS + ms * MS);
    assert_int_equal(n_passed, 10 + 999);
}

static void no_more_than_ten_are_saved(void **state)
{
    struct dv_podres_gate gate;

    (void)state;
    dv_podres_gate_init(&gate, START_NS);
    assert_int_equal(pass_many(&gate, 200, START_NS), 10);
    assert_int_equal(pass_many(&gate, 200, START_NS + 5000 * MS), 10);
    assert_int_equal(pass_many(&gate, 200, UINT64_MAX), 10);
}

static void time_that_goes_back_saves_nothing(void **state)
{
    struct dv_podres_gate gate;

    (void)state;
    dv_podres_gate_init(&gate, START_NS);
    assert_int_equal(pass_many(&gate, 200, START_NS), 10);
    assert_int_equal(pass_many(&gate, 1, START_NS - 500 * MS), 0);
    assert_int_equal(pass_many(&gate, 1, START_NS), 0);
    assert_int_equal(pass_many(&gate, 2, START_NS + 10 * MS), 1);
}

static void both_versions_share_the_tokens(void **state)
{
    struct dv_podres_gate gate;
    struct dv_err err;

    (void)state;
    dv_podres_gate_init(&gate, START_NS);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(dv_podres_gate_pass(&gate, DV_PODRES_ALPHA_LIST, START_NS, &err));
        assert_true(dv_podres_gate_pass(&gate, DV_PODRES_GET, START_NS, &err));
    }
    assert_false(dv_podres_gate_pass(&gate, DV_PODRES_ALPHA_LIST, START_NS, &err));
    assert_false(dv_podres_gate_pass(&gate, DV_PODRES_LIST, START_NS, &err));
}

static void each_call_is_counted_by_its_kind(void **state)
{
    static const enum dv_podres_call calls[] = {DV_PODRES_LIST, DV_PODRES_GET_ALLOCATABLE,
                                                DV_PODRES_GET, DV_PODRES_ALPHA_LIST};
    struct dv_podres_gate gate;
    struct dv_err err;

    (void)state;
    dv_podres_gate_init(&gate, START_NS);
    for (size_t i = 0; i < DV_COUNT(calls); i++)
        assert_true(dv_podres_gate_pass(&gate, calls[i], START_NS, &err));
    assert_int_equal(gate.counts.n_requests[0], 3);
    assert_int_equal(gate.counts.n_requests[1], 1);
    assert_int_equal(gate.counts.n_list, 1);
    assert_int_equal(gate.counts.n_get_allocatable, 1);
    assert_int_equal(gate.counts.n_get, 1);
    assert_int_equal(gate.counts.n_get_errors, 0);
}

static void refused_calls_are_not_counted(void **state)
{
    struct dv_podres_gate gate;

    (void)state;
    dv_podres_gate_init(&gate, START_NS);
    (void)pass_many(&gate, 200, START_NS);
    assert_int_equal(gate.counts.n_requests[0], 10);
    assert_int_equal(gate.counts.n_list, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_ten_calls_of_a_burst_pass),
        cmocka_unit_test(a_token_comes_back_every_ten_milliseconds),
        cmocka_unit_test(a_hundred_calls_a_second_pass_for_ever),
        cmocka_unit_test(no_more_than_ten_are_saved),
        cmocka_unit_test(time_that_goes_back_saves_nothing),
        cmocka_unit_test(both_versions_share_the_tokens),
        cmocka_unit_test(each_call_is_counted_by_its_kind),
        cmocka_unit_test(refused_calls_are_not_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

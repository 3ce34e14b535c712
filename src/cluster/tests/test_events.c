#include "support/dvtest.h"

#include "cluster/embedded.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "resource/resource.h"
#include "support/embedded_count.h"

#define N_MAX 20u

static const char event[] = "{\"metadata\":{\"name\":\"e%zu\"},\"involvedObject\":{\"kind\":"
                            "\"Pod\",\"namespace\":\"default\",\"name\":\"p\"},\"message\":\"m\"}";

static int start_small(void **state)
{
    struct fixture *fixture;

    if (start_on_disk(state) != 0)
        return 1;
    fixture = *state;
    fixture->options.n_events_max = N_MAX;
    reopen(fixture);
    return 0;
}

static size_t n_events(const struct fixture *fixture)
{
    return embedded_count(fixture->embedded, dv_kind(DV_KIND_EVENT));
}

static bool has(struct fixture *fixture, size_t i)
{
    return exists(fixture, DV_KIND_EVENT, "default", numbered(fixture, "e%zu", i));
}

static void make(struct fixture *fixture, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        (void)must(create(fixture, DV_KIND_EVENT, "default", numbered(fixture, event, i)));
        settle(fixture);
    }
}

static void the_oldest_events_go_when_there_are_too_many(void **state)
{
    struct fixture *fixture = *state;

    make(fixture, 0, N_MAX);
    (void)must(patch(fixture, DV_KIND_EVENT, "default", "e0", DV_PATCH_MERGE, "{\"count\":2}"));
    make(fixture, N_MAX, N_MAX + 5);
    assert_int_equal(n_events(fixture), N_MAX);
    assert_true(has(fixture, 0)); /* it was written since */
    for (size_t i = 1; i < N_MAX + 5; i++)
        assert_int_equal(has(fixture, i), i > 5);
}

/* Their order is that of their versions, not of their names. */
static void the_order_of_events_outlives_a_restart(void **state)
{
    struct fixture *fixture = *state;

    make(fixture, 0, N_MAX);
    (void)must(patch(fixture, DV_KIND_EVENT, "default", "e0", DV_PATCH_MERGE, "{\"count\":2}"));
    reopen(fixture);
    settle(fixture);
    assert_int_equal(n_events(fixture), N_MAX);
    make(fixture, N_MAX, N_MAX + 3);
    assert_true(has(fixture, 0));
    assert_false(has(fixture, 1));
    assert_false(has(fixture, 3));
    assert_true(has(fixture, 4));
    fixture->options.n_events_max = N_MAX / 2; /* a smaller limit holds from the start */
    reopen(fixture);
    settle(fixture);
    assert_int_equal(n_events(fixture), N_MAX / 2);
    assert_true(has(fixture, N_MAX + 2));
}

static void the_bytes_of_events_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_object *first;

    first = must(create(fixture, DV_KIND_EVENT, "default", numbered(fixture, event, 0)));
    fixture->options.events_bytes_max = 10 * first->size_bytes;
    reopen(fixture);
    make(fixture, 1, N_MAX);
    assert_in_range(n_events(fixture), 8, 10);
    assert_true(has(fixture, N_MAX - 1));
}

/* A store that takes nothing lets none go; it is tried again. */
static void an_event_that_cannot_be_removed_is_tried_again(void **state)
{
    struct fixture *fixture = *state;

    fixture->options.n_events_max = N_MAX;
    open_api(fixture);
    make(fixture, 0, N_MAX - 1);
    (void)must(create(fixture, DV_KIND_EVENT, "default", numbered(fixture, event, N_MAX)));
    settle(fixture);
    (void)must(create(fixture, DV_KIND_EVENT, "default", numbered(fixture, event, N_MAX + 1)));
    fixture->faults = (struct test_store_faults){.n_until = 1, .code = DV_RESOURCE_EXHAUSTED};
    settle(fixture);
    pass(fixture, 120 * 1000);
    assert_int_equal(n_events(fixture), N_MAX);
    close_api(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_oldest_events_go_when_there_are_too_many, start_small,
                                        end),
        cmocka_unit_test_setup_teardown(the_order_of_events_outlives_a_restart, start_small, end),
        cmocka_unit_test_setup_teardown(the_bytes_of_events_are_bounded, start_small, end),
        cmocka_unit_test_setup_teardown(an_event_that_cannot_be_removed_is_tried_again,
                                        start_without_api, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_lease_queue.c - the queue of leases: its promises under random scripts, and what people see.
 */
#include "base/num.h"
#include "lease/state/lease_queue.h"
#include "support/dvtest.h"
#include "test_queue_model.h"

#define N_ROUNDS 40u
#define SCRIPT_BYTES 800u

static void keeps_its_promises_whatever_comes(void **state)
{
    uint8_t script[SCRIPT_BYTES];
    size_t n_went = 0;

    (void)state;
    for (size_t round = 0; round < N_ROUNDS; round++) {
        for (size_t i = 0; i < sizeof(script); i++)
            script[i] = (uint8_t)dv_random_u64();
        n_went += dv_test_queue_run(script, sizeof(script));
    }
    assert_true(n_went > N_ROUNDS); /* the scripts do something */
}

struct request {
    struct dv_lease_item item;
    struct dv_lease_want want;
};

static void add(struct dv_lease_queue *queue, struct request *request, struct dv_lease_pool *pool,
                uint64_t n, int32_t priority, uint64_t order)
{
    request->want = (struct dv_lease_want){pool, n};
    request->item = (struct dv_lease_item){
        .priority = priority, .order = order, .wants = &request->want, .n_wants = 1};
    dv_lease_queue_add(queue, &request->item);
}

/* Walks once; every request that may go does. Returns the first that went. */
static struct dv_lease_item *walk(struct dv_lease_queue *queue)
{
    struct dv_lease_item *first = NULL;
    struct dv_lease_item *item;
    struct dv_lease_walk walking;

    dv_lease_walk_begin(&walking, queue);
    while ((item = dv_lease_walk_next(&walking))) {
        dv_lease_walk_tell(&walking, item, true);
        first = first ? first : item;
    }
    return first;
}

static void a_large_request_is_not_starved_by_small_ones(void **state)
{
    struct dv_lease_queue queue = {0};
    struct dv_lease_pool *pool = dv_lease_queue_pool(&queue, false, DV_STR("example.com/gpu"));
    struct request large;
    struct request small[64];
    size_t n_rounds = 0;

    (void)state;
    add(&queue, &large, pool, 8, 0, 1);
    /* One device comes back a round, and one more small request arrives: the large one goes after
     * eight rounds, and none of the small ones before it. */
    for (pool->n_free = 0; dv_lease_queue_place(&queue, &large.item) > 0; n_rounds++) {
        struct dv_lease_item *went;

        assert_true(n_rounds < 9);
        add(&queue, &small[n_rounds], pool, 1, 0, 2 + n_rounds);
        pool->n_free++;
        went = walk(&queue);
        assert_true(went == NULL || went == &large.item);
    }
    assert_int_equal(n_rounds, 8);
    pool->n_free = 1;
    assert_ptr_equal(walk(&queue), &small[0].item);
    dv_lease_queue_fini(&queue);
}

static void a_small_request_passes_where_that_delays_nobody(void **state)
{
    struct dv_lease_queue queue = {0};
    struct dv_lease_pool *gpu = dv_lease_queue_pool(&queue, false, DV_STR("example.com/gpu"));
    struct dv_lease_pool *nic = dv_lease_queue_pool(&queue, false, DV_STR("example.com/nic"));
    struct dv_lease_want both[2] = {
        {gpu, 2},
        {nic, 1}
    };
    struct dv_lease_item large = {.order = 1, .wants = both, .n_wants = 2};
    struct request second, third;

    (void)state;
    dv_lease_queue_add(&queue, &large);
    add(&queue, &second, gpu, 1, 0, 2);
    add(&queue, &third, gpu, 1, 0, 3);
    gpu->n_free = 3; /* the large one waits for a nic, and two of the gpus are set aside for it */
    nic->n_free = 0;
    assert_ptr_equal(walk(&queue), &second.item);
    assert_int_equal(gpu->n_free, 2);
    assert_int_equal(dv_lease_queue_place(&queue, &third.item), 2);
    nic->n_free = 1;
    assert_ptr_equal(walk(&queue), &large);
    dv_lease_queue_fini(&queue);
}

static void priority_comes_before_arrival(void **state)
{
    struct dv_lease_queue queue = {0};
    struct dv_lease_pool *pool = dv_lease_queue_pool(&queue, false, DV_STR("example.com/gpu"));
    struct request low, high;

    (void)state;
    add(&queue, &low, pool, 1, 0, 1);
    add(&queue, &high, pool, 1, 5, 2);
    assert_int_equal(dv_lease_queue_place(&queue, &high.item), 1);
    pool->n_free = 1;
    assert_ptr_equal(walk(&queue), &high.item);
    dv_lease_queue_remove(&queue, &low.item);
    assert_ptr_equal(dv_lease_queue_pool(&queue, false, DV_STR("example.com/gpu")), pool);
    dv_lease_pool_unref(&queue, pool);
    assert_int_equal(queue.pools.n, 1); /* the other reference keeps it */
    dv_lease_pool_unref(&queue, pool);
    assert_int_equal(queue.pools.n, 0);
    dv_lease_queue_fini(&queue);
}

static void a_number_beyond_all_sizes_is_only_waited_for(void **state)
{
    struct dv_lease_queue queue = {0};
    struct dv_lease_pool *pool = dv_lease_queue_pool(&queue, false, DV_STR("example.com/gpu"));
    struct request huge[3];

    (void)state;
    for (size_t i = 0; i < 3; i++)
        add(&queue, &huge[i], pool, UINT64_MAX - i, 0, i + 1);
    pool->n_free = 7;
    assert_null(walk(&queue));
    dv_lease_queue_fini(&queue);
}

static size_t n_looked_at;

static bool counts(const struct dv_lease_item *item)
{
    (void)item;
    n_looked_at++;
    return false;
}

/* Where nothing is left, those far behind are not looked at; nor is what nobody waits for. */
static void a_walk_ends_where_nothing_is_left(void **state)
{
    struct dv_lease_queue queue = {0};
    struct dv_lease_pool *pool = dv_lease_queue_pool(&queue, false, DV_STR("example.com/gpu"));
    struct dv_lease_walk walking;
    struct request all[100];

    (void)state;
    for (size_t i = 0; i < DV_COUNT(all); i++)
        add(&queue, &all[i], pool, 2, 0, i);
    pool->n_free = 3;
    dv_lease_queue_pool(&queue, false, DV_STR("example.com/nic"))->n_free = 8;
    dv_lease_walk_begin(&walking, &queue);
    walking.bars = counts;
    assert_ptr_equal(dv_lease_walk_next(&walking), &all[0].item);
    dv_lease_walk_tell(&walking, &all[0].item, true);
    assert_null(dv_lease_walk_next(&walking));
    assert_int_equal(n_looked_at, 2);
    dv_lease_queue_fini(&queue);
}

static void classes_wait_for_each_other_only_with_devices_in_common(void **state)
{
    static const uint64_t serial[] = {7, 3, 9};
    static const uint64_t camera[] = {8, 1};
    static const uint64_t usb[] = {1, 3};
    struct dv_lease_queue queue = {0};
    struct dv_lease_pool *first = dv_lease_queue_pool(&queue, true, DV_STR("serial"));
    struct dv_lease_pool *second = dv_lease_queue_pool(&queue, true, DV_STR("camera"));
    struct dv_lease_pool *third = dv_lease_queue_pool(&queue, true, DV_STR("usb"));
    struct request all[3];
    struct dv_lease_walk walking;

    (void)state;
    dv_lease_pool_set_members(&queue, first, serial, DV_COUNT(serial));
    dv_lease_pool_set_members(&queue, second, camera, DV_COUNT(camera));
    dv_lease_pool_set_members(&queue, third, usb, DV_COUNT(usb));
    assert_true(dv_lease_pool_has(first, 3) && !dv_lease_pool_has(second, 3));
    add(&queue, &all[0], first, 1, 0, 1);
    add(&queue, &all[1], third, 1, 0, 2);
    add(&queue, &all[2], second, 1, 0, 3);
    dv_lease_walk_begin(&walking, &queue);
    assert_ptr_equal(dv_lease_walk_next(&walking), &all[0].item);
    dv_lease_walk_tell(&walking, &all[0].item, false);
    /* the one for usb could take what the first one waits for; the one for cameras cannot, but
     * could delay the second */
    assert_null(dv_lease_walk_next(&walking));
    dv_lease_queue_remove(&queue, &all[1].item);
    dv_lease_pool_unref(&queue, third);
    dv_lease_walk_begin(&walking, &queue);
    assert_ptr_equal(dv_lease_walk_next(&walking), &all[0].item);
    dv_lease_walk_tell(&walking, &all[0].item, false);
    assert_ptr_equal(dv_lease_walk_next(&walking), &all[2].item);
    /* devices that have come since */
    dv_lease_pool_set_members(&queue, second, serial, 1);
    dv_lease_walk_begin(&walking, &queue);
    assert_ptr_equal(dv_lease_walk_next(&walking), &all[0].item);
    dv_lease_walk_tell(&walking, &all[0].item, false);
    assert_null(dv_lease_walk_next(&walking));
    dv_lease_queue_fini(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_its_promises_whatever_comes),
        cmocka_unit_test(a_large_request_is_not_starved_by_small_ones),
        cmocka_unit_test(a_small_request_passes_where_that_delays_nobody),
        cmocka_unit_test(priority_comes_before_arrival),
        cmocka_unit_test(a_number_beyond_all_sizes_is_only_waited_for),
        cmocka_unit_test(a_walk_ends_where_nothing_is_left),
        cmocka_unit_test(classes_wait_for_each_other_only_with_devices_in_common),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

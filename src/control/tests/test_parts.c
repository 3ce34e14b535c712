/* test_parts.c - the queue and the index by themselves. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "control/control_index.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "loop/loop.h"
#include "support/growth.h"

/* ---- the index ---- */

static size_t count(const struct dv_index *index, const char *word)
{
    const struct dv_list *refs = dv_index_find(index, dv_str_from_c(word));
    struct dv_link *link;
    size_t n = 0;

    if (refs)
        DV_LIST_EACH (refs, link)
            n++;
    return n;
}

static void things_are_found_by_their_words(void **state)
{
    const dv_str ab[] = {DV_STR("a"), DV_STR("b"), DV_STR("a")};
    const dv_str bc[] = {DV_STR("b"), DV_STR("c")};
    struct dv_index index;

    (void)state;
    dv_index_init(&index);
    dv_index_set(&index, DV_STR("x"), ab, DV_COUNT(ab));
    dv_index_set(&index, DV_STR("y"), bc, DV_COUNT(bc));
    assert_int_equal(count(&index, "a"), 1); /* once, though it is there twice */
    assert_int_equal(count(&index, "b"), 2);
    assert_int_equal(count(&index, "d"), 0);
    dv_index_set(&index, DV_STR("x"), bc, DV_COUNT(bc));
    assert_int_equal(count(&index, "a"), 0);
    assert_int_equal(count(&index, "c"), 2);
    dv_index_set(&index, DV_STR("x"), NULL, 0);
    dv_index_set(&index, DV_STR("never"), NULL, 0);
    assert_int_equal(count(&index, "c"), 1);
    dv_index_set(&index, DV_STR("y"), NULL, 0);
    assert_int_equal(index.words.n, 0); /* words that nothing has are forgotten */
    dv_index_set(&index, DV_STR("x"), ab, DV_COUNT(ab));
    dv_index_fini(&index);
}

static void the_oldest_is_forgotten(void **state)
{
    struct dv_recent recent;

    (void)state;
    dv_recent_init(&recent, 2);
    dv_recent_add(&recent, DV_STR("a"));
    dv_recent_add(&recent, DV_STR("a"));
    dv_recent_add(&recent, DV_STR("b"));
    dv_recent_add(&recent, DV_STR_NONE);
    assert_true(dv_recent_has(&recent, DV_STR("a")));
    dv_recent_add(&recent, DV_STR("c"));
    assert_false(dv_recent_has(&recent, DV_STR("a")));
    assert_true(dv_recent_has(&recent, DV_STR("b")));
    assert_true(dv_recent_has(&recent, DV_STR("c")));
    dv_recent_fini(&recent);
}

/* ---- the queue ---- */

struct bench {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    struct dv_queue queue;
    struct work *running[8];
    size_t n_running;
    size_t n_runs;
    bool holds;
    bool fails;
    bool is_stopped;
    uint64_t pause_ms;
};

struct work {
    struct dv_queue_item item;
    size_t n_runs;
};

static struct bench *bench_of(const struct dv_queue_item *item)
{
    return DV_CONTAINER(item->queue, struct bench, queue);
}

static void run(struct dv_queue_item *item)
{
    struct bench *bench = bench_of(item);
    struct work *work = DV_CONTAINER(item, struct work, item);

    work->n_runs++;
    bench->n_runs++;
    if (bench->holds)
        bench->running[bench->n_running++] = work;
    else if (bench->fails)
        bench->pause_ms = dv_queue_retry(item, 0);
    else
        dv_queue_finish(item);
}

static void cancel(struct dv_queue_item *item)
{
    struct bench *bench = bench_of(item);

    assert_true(bench->holds);
}

static void stopped(struct dv_queue *queue)
{
    DV_CONTAINER(queue, struct bench, queue)->is_stopped = true;
}

static int start(void **state)
{
    struct bench *bench = DV_ALLOC(struct bench);
    struct dv_err err;

    *state = bench;
    dv_clock_virtual_init(&bench->clock);
    bench->loop = dv_loop_new(&bench->clock.clock, &err);
    assert_ok(bench->loop, &err);
    dv_queue_init(&bench->queue, &(struct dv_queue_options){.loop = bench->loop,
                                                            .item_bytes = sizeof(struct work),
                                                            .n_running_max = 2,
                                                            .run = run,
                                                            .cancel = cancel,
                                                            .stopped = stopped});
    return 0;
}

static int end(void **state)
{
    struct bench *bench = *state;

    dv_queue_fini(&bench->queue);
    dv_loop_free(bench->loop);
    free(bench);
    return 0;
}

static bool is_rested(void *ctx)
{
    return ++*(size_t *)ctx > 10;
}

static void stay_awake(struct dv_timer *timer)
{
    dv_timer_start(timer, timer->loop, dv_loop_now_ms(timer->loop), stay_awake);
}

/* Runs a few turns, after so much time. */
static void turn(struct bench *bench, uint64_t ms)
{
    struct dv_timer timer = {0};
    size_t n = 0;

    dv_clock_virtual_advance_ms(&bench->clock, ms);
    dv_timer_start(&timer, bench->loop, dv_loop_now_ms(bench->loop), stay_awake);
    assert_true(dv_loop_run_until(bench->loop, is_rested, &n, 5000));
    dv_timer_cancel(&timer);
}

static void add(struct bench *bench, const char *name)
{
    dv_queue_add(&bench->queue, DV_STR("ns"), dv_str_from_c(name));
}

static void what_is_added_often_runs_once(void **state)
{
    struct bench *bench = *state;

    for (size_t i = 0; i < 5; i++)
        add(bench, "a");
    add(bench, "b");
    turn(bench, 0);
    assert_int_equal(bench->n_runs, 0); /* not before it is started */
    assert_int_equal(dv_queue_n(&bench->queue), 2);
    dv_queue_start(&bench->queue);
    turn(bench, 0);
    assert_int_equal(bench->n_runs, 2);
    assert_int_equal(bench->queue.items.n, 0); /* and then it is forgotten */
}

static void what_is_added_while_it_runs_runs_again(void **state)
{
    struct bench *bench = *state;

    dv_queue_start(&bench->queue);
    bench->holds = true;
    add(bench, "a");
    turn(bench, 0);
    add(bench, "a");
    add(bench, "a");
    turn(bench, 0);
    assert_int_equal(bench->n_runs, 1); /* one run at a time */
    bench->holds = false;
    dv_queue_finish(&bench->running[0]->item);
    turn(bench, 0);
    assert_int_equal(bench->n_runs, 2);
}

static void who_asks_is_told_what_is_worked_on(void **state)
{
    struct bench *bench = *state;
    dv_str namespace = DV_STR("ns");

    assert_false(dv_queue_is_busy_with(&bench->queue, namespace, DV_STR("a")));
    add(bench, "a");
    dv_queue_add_after(&bench->queue, namespace, DV_STR("b"), 1000);
    assert_true(dv_queue_is_busy_with(&bench->queue, namespace, DV_STR("a")));
    assert_false(dv_queue_is_busy_with(&bench->queue, namespace, DV_STR("b")));
    dv_queue_start(&bench->queue);
    bench->holds = true;
    turn(bench, 0);
    assert_true(dv_queue_is_busy_with(&bench->queue, namespace, DV_STR("a")));
    (void)dv_queue_retry(&bench->running[0]->item, 0);
    assert_false(dv_queue_is_busy_with(&bench->queue, namespace, DV_STR("a")));
}

static void so_many_run_at_a_time(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct bench *bench = *state;

    dv_queue_start(&bench->queue);
    bench->holds = true;
    for (size_t i = 0; i < DV_COUNT(names); i++)
        add(bench, names[i]);
    turn(bench, 0);
    assert_int_equal(bench->n_running, 2);
    assert_str(bench->running[0]->item.namespace, "ns");
    assert_str(bench->running[0]->item.name, "a");
    for (size_t i = 0; i < 4; i++) {
        dv_queue_finish(&bench->running[i]->item);
        turn(bench, 0);
    }
    assert_int_equal(bench->n_runs, 4);
}

static void pauses_grow_to_a_minute(void **state)
{
    struct bench *bench = *state;
    uint64_t last_ms = 0;

    dv_queue_start(&bench->queue);
    bench->fails = true;
    add(bench, "a");
    turn(bench, 0);
    for (size_t i = 0; i < 16; i++) {
        assert_true(bench->pause_ms >= last_ms / 2);
        assert_true(bench->pause_ms <= 72000); /* with its jitter */
        if (i == 0)
            assert_true(bench->pause_ms >= 4 && bench->pause_ms <= 6);
        last_ms = bench->pause_ms;
        turn(bench, bench->pause_ms - 1);
        assert_int_equal(bench->n_runs, i + 1);
        turn(bench, 1);
        assert_int_equal(bench->n_runs, i + 2);
    }
    assert_true(last_ms >= 48000);
    add(bench, "a"); /* something has changed: at once */
    bench->fails = false;
    turn(bench, 0);
    assert_int_equal(bench->n_runs, 18);
    assert_int_equal(bench->queue.n_retries, 17);
}

static void the_earlier_of_two_times_counts(void **state)
{
    struct bench *bench = *state;

    dv_queue_start(&bench->queue);
    dv_queue_add_after(&bench->queue, DV_STR("ns"), DV_STR("a"), 1000);
    dv_queue_add_after(&bench->queue, DV_STR("ns"), DV_STR("a"), 500);
    dv_queue_add_after(&bench->queue, DV_STR("ns"), DV_STR("a"), 2000);
    turn(bench, 499);
    assert_int_equal(bench->n_runs, 0);
    turn(bench, 1);
    assert_int_equal(bench->n_runs, 1);
    turn(bench, 5000);
    assert_int_equal(bench->n_runs, 1);
    bench->holds = true;
    add(bench, "a");
    turn(bench, 0);
    dv_queue_finish_after(&bench->running[0]->item, 100);
    bench->holds = false;
    turn(bench, 100);
    assert_int_equal(bench->n_runs, 3);
}

static void what_runs_ends_before_the_queue_does(void **state)
{
    struct bench *bench = *state;

    dv_queue_start(&bench->queue);
    bench->holds = true;
    add(bench, "a");
    add(bench, "b");
    add(bench, "c");
    turn(bench, 0);
    dv_queue_stop(&bench->queue);
    assert_false(bench->is_stopped);
    add(bench, "d"); /* too late */
    (void)dv_queue_retry(&bench->running[0]->item, 0);
    assert_false(bench->is_stopped);
    dv_queue_finish(&bench->running[1]->item);
    assert_true(bench->is_stopped);
    turn(bench, 1000);
    assert_int_equal(bench->n_runs, 2);
}

/* All words are different, and each is there twice. */
static void index_many(void *ctx, size_t n)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str *words = DV_NEW_ARRAY(arena, dv_str, 2 * n);
    struct dv_index index;

    (void)ctx;
    for (size_t i = 0; i < 2 * n; i++)
        words[i] = dv_str_printf(arena, "w%zu", i % n);
    dv_index_init(&index);
    dv_index_set(&index, DV_STR("x"), words, 2 * n);
    dv_index_set(&index, DV_STR("y"), words, 2 * n);
    assert_int_equal(count(&index, "w0"), 2);
    dv_index_fini(&index);
}

static void a_thing_costs_its_words(void **state)
{
    (void)state;
    assert_true(growth_is_linear(index_many, NULL, 4000));
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, start, end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(things_are_found_by_their_words),
        cmocka_unit_test(a_thing_costs_its_words),
        cmocka_unit_test(the_oldest_is_forgotten),
        ROW(what_is_added_often_runs_once),
        ROW(what_is_added_while_it_runs_runs_again),
        ROW(who_asks_is_told_what_is_worked_on),
        ROW(so_many_run_at_a_time),
        ROW(pauses_grow_to_a_minute),
        ROW(the_earlier_of_two_times_counts),
        ROW(what_runs_ends_before_the_queue_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

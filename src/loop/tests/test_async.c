#include "support/dvtest.h"

#include <pthread.h>

#include "base/clock.h"
#include "loop/loop.h"

#define N_WAKES 1000

struct fixture {
    struct dv_loop *loop;
    struct dv_async *async;
    pthread_t thread; /* the loop's */
    int n_sent;       /* plain, written by the other thread: the lock orders it */
    int n_seen;       /* the last that was seen by `woken` */
    int n_woken;
    int n_closed;
    pthread_mutex_t lock;
};

static void on_woken(void *ctx)
{
    struct fixture *fixture = ctx;

    assert_true(pthread_equal(fixture->thread, pthread_self()));
    (void)pthread_mutex_lock(&fixture->lock);
    fixture->n_seen = fixture->n_sent;
    (void)pthread_mutex_unlock(&fixture->lock);
    fixture->n_woken++;
}

static void *send_wakes(void *ctx)
{
    struct fixture *fixture = ctx;

    for (int i = 0; i < N_WAKES; i++) {
        (void)pthread_mutex_lock(&fixture->lock);
        fixture->n_sent++;
        (void)pthread_mutex_unlock(&fixture->lock);
        dv_async_wake(fixture->async);
    }
    return NULL;
}

static int start(void **state)
{
    static struct fixture fixture;
    struct dv_err err;

    fixture = (struct fixture){.thread = pthread_self(), .lock = PTHREAD_MUTEX_INITIALIZER};
    fixture.loop = dv_loop_new(dv_clock_real(), &err);
    assert_non_null(fixture.loop);
    fixture.async = dv_async_open(fixture.loop, on_woken, &fixture, &err);
    assert_non_null(fixture.async);
    *state = &fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;

    if (fixture->async)
        dv_async_close(fixture->async, NULL, NULL);
    dv_loop_free(fixture->loop);
    return 0;
}

static bool saw_all(void *ctx)
{
    return ((struct fixture *)ctx)->n_seen == N_WAKES;
}

static bool was_woken(void *ctx)
{
    return ((struct fixture *)ctx)->n_woken > 0;
}

static void count_closed(void *ctx)
{
    ((struct fixture *)ctx)->n_closed++;
}

static bool is_closed(void *ctx)
{
    return ((struct fixture *)ctx)->n_closed > 0;
}

static void the_last_wake_of_a_thread_is_never_lost(void **state)
{
    struct fixture *fixture = *state;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, send_wakes, fixture), 0);
    assert_true(dv_loop_run_until(fixture->loop, saw_all, fixture, 10000));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_in_range(fixture->n_woken, 1, N_WAKES);
}

static void waking_from_the_loops_own_thread_returns_first(void **state)
{
    struct fixture *fixture = *state;

    dv_async_wake(fixture->async);
    dv_async_wake(fixture->async);
    assert_int_equal(fixture->n_woken, 0);
    assert_true(dv_loop_run_until(fixture->loop, was_woken, fixture, 5000));
    assert_int_equal(fixture->n_woken, 1);
}

static void nothing_runs_after_close_but_its_callback(void **state)
{
    struct fixture *fixture = *state;

    dv_async_wake(fixture->async);
    dv_async_close(fixture->async, count_closed, fixture);
    fixture->async = NULL;
    assert_int_equal(fixture->n_closed, 0);
    assert_true(dv_loop_run_until(fixture->loop, is_closed, fixture, 5000));
    assert_int_equal(fixture->n_woken, 0);
    assert_int_equal(fixture->n_closed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_wake_of_a_thread_is_never_lost, start, end),
        cmocka_unit_test_setup_teardown(waking_from_the_loops_own_thread_returns_first, start, end),
        cmocka_unit_test_setup_teardown(nothing_runs_after_close_but_its_callback, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

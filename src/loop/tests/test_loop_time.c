#include "support/dvtest.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "support/turns.h"

struct fixture {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    int fired[1000]; /* ids, in order */
    size_t n_fired;
};

struct numbered {
    struct dv_timer timer;
    struct dv_task task;
    struct fixture *fixture;
    int id;
};

static int start(void **state)
{
    static struct fixture fixture;
    struct dv_err err;

    fixture = (struct fixture){0};
    dv_clock_virtual_init(&fixture.clock);
    fixture.loop = dv_loop_new(&fixture.clock.clock, &err);
    assert_non_null(fixture.loop);
    *state = &fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;

    dv_loop_free(fixture->loop);
    return 0;
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

/* Lets everything that is due happen. */
static void turn(struct fixture *fixture)
{
    loop_turns(fixture->loop, 1);
}

static void note(struct numbered *item)
{
    item->fixture->fired[item->fixture->n_fired++] = item->id;
}

static void on_fire(struct dv_timer *timer)
{
    note(DV_CONTAINER(timer, struct numbered, timer));
}

static void on_task(struct dv_task *task)
{
    note(DV_CONTAINER(task, struct numbered, task));
}

static void timers_fire_in_order_when_the_clock_is_turned(void **state)
{
    static const uint64_t delays_ms[] = {50, 10, 30, 10, 0, 1000};
    static const int want[] = {4, 1, 3, 2, 0};
    struct fixture *fixture = *state;
    struct numbered items[DV_COUNT(delays_ms)] = {0};

    for (size_t i = 0; i < DV_COUNT(items); i++) {
        items[i].fixture = fixture;
        items[i].id = (int)i;
        dv_timer_start(&items[i].timer, fixture->loop, dv_loop_now_ms(fixture->loop) + delays_ms[i],
                       on_fire);
    }
    dv_clock_virtual_advance_ms(&fixture->clock, 9);
    turn(fixture);
    assert_int_equal(fixture->n_fired, 1); /* only the one with no delay */
    dv_clock_virtual_advance_ms(&fixture->clock, 91);
    turn(fixture);
    assert_int_equal(fixture->n_fired, DV_COUNT(want));
    for (size_t i = 0; i < DV_COUNT(want); i++) /* equal times: either order */
        if (want[i] != fixture->fired[i] && !(want[i] % 2 && fixture->fired[i] % 2))
            fail_msg("place %zu: timer %d", i, fixture->fired[i]);
    assert_true(dv_timer_is_set(&items[5].timer));
    dv_timer_cancel(&items[5].timer);
    dv_timer_cancel(&items[5].timer); /* idempotent */
    dv_clock_virtual_advance_ms(&fixture->clock, 5000);
    turn(fixture);
    assert_int_equal(fixture->n_fired, DV_COUNT(want));
}

static void a_cancelled_or_moved_timer_keeps_the_heap_right(void **state)
{
    struct fixture *fixture = *state;
    static struct numbered items[300];
    uint64_t begin_ms = dv_loop_now_ms(fixture->loop);
    uint64_t random = 99;
    size_t n_set = 0;
    uint64_t last_ms = 0;

    for (int round = 0; round < 3000; round++) {
        struct numbered *item;

        random = random * 6364136223846793005u + 1442695040888963407u;
        item = &items[(random >> 40) % DV_COUNT(items)];
        item->fixture = fixture;
        item->id = (int)(item - items);
        if ((random >> 20) % 3 == 0)
            dv_timer_cancel(&item->timer);
        else
            dv_timer_start(&item->timer, fixture->loop, begin_ms + (random >> 50) % 1000, on_fire);
    }
    for (size_t i = 0; i < DV_COUNT(items); i++)
        n_set += dv_timer_is_set(&items[i].timer);
    dv_clock_virtual_advance_ms(&fixture->clock, 1000);
    turn(fixture);
    assert_int_equal(fixture->n_fired, n_set);
    for (size_t i = 0; i < n_set; i++) {
        assert_true(items[fixture->fired[i]].timer.at_ms >= last_ms);
        last_ms = items[fixture->fired[i]].timer.at_ms;
    }
}

static void restart_in_the_past(struct dv_timer *timer)
{
    struct numbered *item = DV_CONTAINER(timer, struct numbered, timer);

    note(item);
    if (item->fixture->n_fired < 5)
        dv_timer_start(timer, item->fixture->loop, 0, restart_in_the_past);
}

static bool fired_five(void *ctx)
{
    const struct fixture *fixture = ctx;

    return fixture->n_fired == 5;
}

static bool fired_two(void *ctx)
{
    const struct fixture *fixture = ctx;

    return fixture->n_fired == 2;
}

static void a_timer_that_restarts_itself_does_not_hold_the_loop(void **state)
{
    struct fixture *fixture = *state;
    struct numbered item = {.fixture = fixture};
    struct numbered other = {.fixture = fixture, .id = 1};

    dv_timer_start(&item.timer, fixture->loop, 0, restart_in_the_past);
    dv_task_post(&other.task, fixture->loop, on_task);
    assert_true(dv_loop_run_until(fixture->loop, fired_five, fixture, 5000));
    dv_timer_cancel(&item.timer);
    assert_int_equal(fixture->fired[1], 1); /* the task had its turn in between */
}

struct reposting {
    struct dv_task task;
    struct fixture *fixture;
    int left;
};

static void repost(struct dv_task *task)
{
    struct reposting *self = DV_CONTAINER(task, struct reposting, task);

    self->fixture->n_fired++;
    if (--self->left > 0)
        dv_task_post(task, self->fixture->loop, repost);
}

static bool all_reposted(void *ctx)
{
    return ((struct reposting *)ctx)->left == 0;
}

static void tasks_run_once_later_and_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct numbered items[4] = {0};
    struct reposting reposting = {.fixture = fixture, .left = 10};

    for (int i = 0; i < 4; i++) {
        items[i].fixture = fixture;
        items[i].id = i;
        dv_task_post(&items[i].task, fixture->loop, on_task);
        dv_task_post(&items[i].task, fixture->loop, on_task); /* twice is once */
    }
    dv_task_cancel(&items[2].task);
    assert_int_equal(fixture->n_fired, 0); /* never before the start has returned */
    turn(fixture);
    assert_int_equal(fixture->n_fired, 3);
    assert_int_equal(fixture->fired[2], 3);
    dv_task_post(&reposting.task, fixture->loop, repost);
    assert_true(dv_loop_run_until(fixture->loop, all_reposted, &reposting, 5000));
    assert_int_equal(fixture->n_fired, 13);
}

/* A task that posts itself for the next turn, and in each turn another one that counts turns. */
struct parts {
    struct dv_task part;
    struct dv_task same_turn;
    struct dv_loop *loop;
    int n_parts;
    int n_turns;
    int turns_at[4]; /* the turn that each part ran in */
};

static void count_turn(void *ctx, const struct dv_loop_hold *hold)
{
    (void)hold;
    ((struct parts *)ctx)->n_turns++;
}

static void run_part(struct dv_task *task)
{
    struct parts *parts = DV_CONTAINER(task, struct parts, part);

    parts->turns_at[parts->n_parts++] = parts->n_turns;
    if (parts->n_parts < 4)
        dv_task_post_next_turn(task, parts->loop, run_part);
}

static void post_part(struct dv_task *task)
{
    struct parts *parts = DV_CONTAINER(task, struct parts, same_turn);

    dv_task_post_next_turn(&parts->part, parts->loop, run_part);
    dv_task_post_next_turn(&parts->part, parts->loop, run_part); /* twice is once */
}

static bool all_parts(void *ctx)
{
    return ((struct parts *)ctx)->n_parts == 4;
}

/* Longer than the time after which a turn takes on no more parts. */
#define LONG_PART_NS 6000000u
#define N_LONG_PARTS 4u

struct long_parts {
    struct dv_task tasks[N_LONG_PARTS];
    size_t n_run;
    size_t n_run_before; /* at the end of the turn before */
    size_t n_in_a_turn_max;
};

static struct long_parts long_parts;

static void run_long_part(struct dv_task *task)
{
    struct dv_clock *clock = dv_clock_real();
    uint64_t end_ns = dv_clock_now_ns(clock) + LONG_PART_NS;

    (void)task;
    while (dv_clock_now_ns(clock) < end_ns)
        ;
    long_parts.n_run++;
}

static void on_turn_ended(void *ctx, const struct dv_loop_hold *hold)
{
    size_t n = long_parts.n_run - long_parts.n_run_before;

    (void)ctx;
    (void)hold;
    long_parts.n_run_before = long_parts.n_run;
    if (n > long_parts.n_in_a_turn_max)
        long_parts.n_in_a_turn_max = n;
}

static bool all_long_parts_ran(void *ctx)
{
    (void)ctx;
    return long_parts.n_run == N_LONG_PARTS;
}

static void a_long_turn_leaves_parts_to_the_next(void **state)
{
    struct fixture *fixture = *state;

    long_parts = (struct long_parts){0};
    dv_loop_watch_holds(fixture->loop, on_turn_ended, NULL);
    for (size_t i = 0; i < N_LONG_PARTS; i++)
        dv_task_post_next_turn(&long_parts.tasks[i], fixture->loop, run_long_part);
    assert_true(dv_loop_run_until(fixture->loop, all_long_parts_ran, NULL, 10000));
    turn(fixture);
    dv_loop_watch_holds(fixture->loop, NULL, NULL);
    assert_int_equal(long_parts.n_in_a_turn_max, 1);
}

static void a_task_for_the_next_turn_leaves_this_one_alone(void **state)
{
    struct fixture *fixture = *state;
    struct parts parts = {.loop = fixture->loop};
    struct numbered cancelled = {.fixture = fixture};

    dv_loop_watch_holds(fixture->loop, count_turn, &parts);
    dv_task_post(&parts.same_turn, fixture->loop, post_part);
    dv_task_post_next_turn(&cancelled.task, fixture->loop, on_task);
    dv_task_cancel(&cancelled.task);
    assert_true(dv_loop_run_until(fixture->loop, all_parts, &parts, 60000));
    for (int i = 1; i < 4; i++)
        assert_true(parts.turns_at[i] > parts.turns_at[i - 1]);
    assert_int_equal(fixture->n_fired, 0);
    dv_loop_watch_holds(fixture->loop, NULL, NULL);
}

static void an_arena_of_any_size_is_freed(void **state)
{
    static const size_t sizes[] = {0, 100, 10000000};
    struct fixture *fixture = *state;

    dv_loop_free_arena(fixture->loop, NULL);
    for (size_t i = 0; i < DV_COUNT(sizes); i++) { /* the sanitizer tells of one that is not */
        struct dv_arena *arena = dv_arena_new();

        memset(dv_arena_alloc(arena, sizes[i], 1), 1, sizes[i]);
        dv_loop_free_arena(fixture->loop, arena);
    }
}

static void waiting_for_what_never_comes_ends(void **state)
{
    struct fixture *fixture = *state;

    assert_true(dv_loop_run_until(fixture->loop, always, NULL, 0));
    assert_false(dv_loop_run_until(fixture->loop, never, NULL, 20));
    for (int i = 0; i < 100; i++) /* over before the loop has turned */
        assert_false(dv_loop_run_until(fixture->loop, never, NULL, 0));
}

struct job {
    struct dv_work work;
    pthread_t thread;
    int n_done;
    enum dv_code code;
};

static void run_job(struct dv_work *work)
{
    struct job *job = DV_CONTAINER(work, struct job, work);

    job->thread = pthread_self();
}

static void slow_job(struct dv_work *work)
{
    struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};

    (void)work;
    (void)nanosleep(&pause, NULL);
}

static void job_done(struct dv_work *work, const struct dv_err *err)
{
    struct job *job = DV_CONTAINER(work, struct job, work);

    job->n_done++;
    job->code = err ? err->code : DV_OK;
}

static bool jobs_done(void *ctx)
{
    const struct job *jobs = ctx;

    for (size_t i = 0; i < 20; i++)
        if (jobs[i].n_done == 0)
            return false;
    return true;
}

static void work_runs_elsewhere_and_ends_exactly_once(void **state)
{
    struct fixture *fixture = *state;
    static struct job jobs[20];
    size_t n_cancelled = 0;

    for (size_t i = 0; i < DV_COUNT(jobs); i++) {
        jobs[i] = (struct job){
            .work = {.run = i < 10 ? slow_job : run_job, .done = job_done}
        };
        dv_work_start(&jobs[i].work, fixture->loop);
    }
    for (size_t i = 15; i < DV_COUNT(jobs); i++) {
        dv_work_cancel(&jobs[i].work);
        dv_work_cancel(&jobs[i].work); /* idempotent */
        assert_int_equal(jobs[i].n_done, 0);
    }
    assert_true(dv_loop_run_until(fixture->loop, jobs_done, jobs, 10000));
    for (size_t i = 0; i < DV_COUNT(jobs); i++) {
        assert_int_equal(jobs[i].n_done, 1);
        n_cancelled += jobs[i].code == DV_CANCELLED;
        dv_work_cancel(&jobs[i].work); /* after the end it does nothing */
    }
    assert_in_range(n_cancelled, 1, 5);
    assert_false(pthread_equal(jobs[10].thread, pthread_self()));
}

struct chain {
    struct dv_task task;
    struct dv_work work;
    struct dv_loop *loop;
    int n_steps;
};

static void chain_task(struct dv_task *task)
{
    struct chain *chain = DV_CONTAINER(task, struct chain, task);

    if (++chain->n_steps == 1)
        dv_work_start(&chain->work, chain->loop);
}

static void chain_done(struct dv_work *work, const struct dv_err *err)
{
    struct chain *chain = DV_CONTAINER(work, struct chain, work);

    assert_null(err);
    chain->n_steps++;
    dv_task_post(&chain->task, chain->loop, chain_task);
}

static void freeing_the_loop_runs_all_that_is_under_way(void **state)
{
    struct dv_err err;
    struct dv_loop *loop = dv_loop_new(dv_clock_real(), &err);
    struct chain chain = {
        .work = {.run = slow_job, .done = chain_done},
          .loop = loop
    };

    (void)state;
    /* starts work, whose end posts a task */
    dv_task_post_next_turn(&chain.task, loop, chain_task);
    dv_loop_free(loop);
    assert_int_equal(chain.n_steps, 3);
}

static void real_timers_fire_not_before_their_time(void **state)
{
    struct dv_err err;
    struct dv_loop *loop = dv_loop_new(dv_clock_real(), &err);
    struct fixture *fixture = *state;
    struct numbered items[3] = {0};
    uint64_t begin_ms = dv_loop_now_ms(loop);

    for (int i = 0; i < 3; i++) {
        items[i].fixture = fixture;
        items[i].id = i;
        dv_timer_start(&items[i].timer, loop, begin_ms + 30 - 10 * (uint64_t)i, on_fire);
    }
    dv_timer_cancel(&items[1].timer);
    assert_true(dv_loop_run_until(loop, fired_two, fixture, 5000));
    assert_int_equal(fixture->fired[0], 2);
    assert_int_equal(fixture->fired[1], 0);
    assert_true(dv_loop_now_ms(loop) >= begin_ms + 30);
    dv_loop_free(loop);
}

struct restless {
    struct dv_timer timer;
    struct dv_loop *loop;
    size_t n_fired;
    size_t n_turns;
};

static void fire_again_now(struct dv_timer *timer)
{
    struct restless *restless = DV_CONTAINER(timer, struct restless, timer);

    restless->n_fired++;
    dv_timer_start(timer, restless->loop, dv_loop_now_ms(restless->loop), fire_again_now);
}

static bool has_turned(void *ctx)
{
    return ++((struct restless *)ctx)->n_turns >= 10;
}

static void a_real_timer_set_to_now_waits_for_the_others(void **state)
{
    struct dv_err err;
    struct dv_loop *loop = dv_loop_new(dv_clock_real(), &err);
    struct restless restless = {.loop = loop};

    (void)state;
    assert_non_null(loop);
    dv_timer_start(&restless.timer, loop, dv_loop_now_ms(loop), fire_again_now);
    assert_true(dv_loop_run_until(loop, has_turned, &restless, 5000));
    assert_in_range(restless.n_fired, 1, 3 * restless.n_turns);
    dv_timer_cancel(&restless.timer);
    dv_loop_free(loop);
}

static void note_longest(void *ctx, const struct dv_loop_hold *hold)
{
    struct dv_loop_hold *longest = ctx;

    if (hold->wall_ns > longest->wall_ns)
        *longest = *hold;
}

static void spin(struct dv_task *task)
{
    struct timespec from = {0};
    struct timespec now = {0};

    (void)task;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 30000000L);
}

static void a_turn_that_takes_long_is_told_and_sleep_is_not(void **state)
{
    struct dv_loop_hold longest = {0};
    struct dv_task task = {0};
    struct dv_err err;
    struct dv_loop *loop = dv_loop_new(dv_clock_real(), &err);

    (void)state;
    assert_non_null(loop);
    dv_loop_watch_holds(loop, note_longest, &longest);
    assert_false(dv_loop_run_until(loop, never, NULL, 50)); /* sleeps all the time */
    assert_true(longest.cpu_ns < 30000000u);
    dv_task_post(&task, loop, spin);
    assert_false(dv_loop_run_until(loop, never, NULL, 50));
    assert_true(longest.cpu_ns >= 30000000u);
    assert_true(longest.wall_ns >= 30000000u);
    dv_loop_watch_holds(loop, NULL, NULL);
    dv_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(timers_fire_in_order_when_the_clock_is_turned, start, end),
        cmocka_unit_test_setup_teardown(a_cancelled_or_moved_timer_keeps_the_heap_right, start,
                                        end),
        cmocka_unit_test_setup_teardown(a_timer_that_restarts_itself_does_not_hold_the_loop, start,
                                        end),
        cmocka_unit_test_setup_teardown(tasks_run_once_later_and_in_order, start, end),
        cmocka_unit_test_setup_teardown(a_long_turn_leaves_parts_to_the_next, start, end),
        cmocka_unit_test_setup_teardown(a_task_for_the_next_turn_leaves_this_one_alone, start, end),
        cmocka_unit_test_setup_teardown(an_arena_of_any_size_is_freed, start, end),
        cmocka_unit_test_setup_teardown(waiting_for_what_never_comes_ends, start, end),
        cmocka_unit_test_setup_teardown(work_runs_elsewhere_and_ends_exactly_once, start, end),
        cmocka_unit_test_setup_teardown(freeing_the_loop_runs_all_that_is_under_way, start, end),
        cmocka_unit_test_setup_teardown(real_timers_fire_not_before_their_time, start, end),
        cmocka_unit_test(a_real_timer_set_to_now_waits_for_the_others),
        cmocka_unit_test(a_turn_that_takes_long_is_told_and_sleep_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

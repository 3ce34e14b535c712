/* timer.c - a binary heap of timers on the loop's clock, under a single libuv timer.
 *
 * Nearly every call arms a timer and cancels it unfired. Both cost a few steps in the heap and
 * leave the libuv timer alone: it is set only when something is due earlier than it would wake,
 * and a wake-up that finds nothing due sets it anew. */
#include <assert.h>
#include <stddef.h>

#include <uv.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "loop/uvloop.h"

static void put(struct dv_loop *loop, size_t place, struct dv_timer *timer)
{
    loop->timers.v[place - 1] = timer;
    timer->place = place;
}

static struct dv_timer *at(const struct dv_loop *loop, size_t place)
{
    return loop->timers.v[place - 1];
}

static void sift_up(struct dv_loop *loop, struct dv_timer *timer)
{
    size_t place = timer->place;

    for (; place > 1 && at(loop, place / 2)->at_ms > timer->at_ms; place /= 2)
        put(loop, place, at(loop, place / 2));
    put(loop, place, timer);
}

static void sift_down(struct dv_loop *loop, struct dv_timer *timer)
{
    size_t place = timer->place;
    size_t n = loop->timers.n;

    while (place * 2 <= n) {
        size_t child = place * 2;

        if (child < n && at(loop, child + 1)->at_ms < at(loop, child)->at_ms)
            child++;
        if (at(loop, child)->at_ms >= timer->at_ms)
            break;
        put(loop, place, at(loop, child));
        place = child;
    }
    put(loop, place, timer);
}

static void on_wake(uv_timer_t *wake);
static void on_overdue(struct dv_task *task);

/* Sees to it that the loop wakes for the earliest timer, or before. */
static void set_wake(struct dv_loop *loop)
{
    uint64_t now_ms;
    uint64_t first_ms;

    if (loop->clock->is_virtual || loop->timers.n == 0)
        return;
    first_ms = at(loop, 1)->at_ms;
    if (first_ms >= loop->wake_at_ms)
        return;
    now_ms = dv_loop_now_ms(loop);
    /* libuv would run a timer that is set to now by one that fires at once, and never come to
     * anything else. A task comes after the others' turn. */
    if (loop->is_firing && first_ms <= now_ms) {
        dv_task_post(&loop->overdue, loop, on_overdue);
        return;
    }
    uv_update_time(&loop->uv);
    (void)uv_timer_start(&loop->wake, on_wake, first_ms > now_ms ? first_ms - now_ms : 0,
                         0); /* fails only without a callback */
    loop->wake_at_ms = first_ms;
}

static void fire_due(struct dv_loop *loop)
{
    loop->is_firing = true;
    dv_loop_run_due_timers(loop);
    set_wake(loop);
    loop->is_firing = false;
}

static void on_wake(uv_timer_t *wake)
{
    struct dv_loop *loop = wake->data;

    loop->wake_at_ms = UINT64_MAX;
    fire_due(loop);
}

static void on_overdue(struct dv_task *task)
{
    fire_due(DV_CONTAINER(task, struct dv_loop, overdue));
}

void dv_loop_run_due_timers(struct dv_loop *loop)
{
    uint64_t now_ms = dv_loop_now_ms(loop);

    /* A timer set to now or the past by one that fires waits for the next turn when the clock has
     * not moved, so that I/O gets its share: at_ms <= now_ms would never end. */
    for (size_t left = loop->timers.n; left > 0 && loop->timers.n > 0; left--) {
        struct dv_timer *timer = at(loop, 1);

        if (timer->at_ms > now_ms)
            break;
        dv_timer_cancel(timer);
        timer->fire(timer);
    }
}

bool dv_loop_has_due_timer(struct dv_loop *loop)
{
    return loop->clock->is_virtual && loop->timers.n > 0 &&
           at(loop, 1)->at_ms <= dv_loop_now_ms(loop);
}

void dv_timer_start(struct dv_timer *timer, struct dv_loop *loop, uint64_t at_ms,
                    void (*fire)(struct dv_timer *timer))
{
    uint64_t before_ms = timer->at_ms;

    assert(!timer->place || timer->loop == loop);
    timer->fire = fire;
    timer->loop = loop;
    timer->at_ms = at_ms;
    if (timer->place == 0) {
        *dv_vec_add(&loop->timers) = timer;
        timer->place = loop->timers.n;
        sift_up(loop, timer);
    } else if (at_ms < before_ms) {
        sift_up(loop, timer);
    } else {
        sift_down(loop, timer);
    }
    if (timer->place == 1)
        set_wake(loop);
}

void dv_timer_cancel(struct dv_timer *timer)
{
    struct dv_loop *loop = timer->loop;
    struct dv_timer *last;

    if (timer->place == 0)
        return;
    last = at(loop, loop->timers.n);
    loop->timers.n--;
    if (last != timer) {
        put(loop, timer->place, last);
        sift_up(loop, last);
        sift_down(loop, last);
    }
    timer->place = 0;
}

bool dv_timer_is_set(const struct dv_timer *timer)
{
    return timer->place != 0;
}

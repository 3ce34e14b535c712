/* loop_hold.c - how long a turn of the loop takes: the time in which nobody else is served. */
#include <time.h>

#include <uv.h>

#include "base/clock.h"
#include "loop/loop.h"
#include "loop/uvloop.h"

static uint64_t thread_cpu_ns(void)
{
    struct timespec spent = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent); /* a clock that is always there */
    return (uint64_t)spent.tv_sec * DV_NS_PER_S + (uint64_t)spent.tv_nsec;
}

static void start_turn(struct dv_loop *loop)
{
    loop->turn = (struct dv_loop_turn){
        .at_ns = uv_hrtime(),
        .asleep_ns = uv_metrics_idle_time(&loop->uv),
        .cpu_ns = thread_cpu_ns(),
    };
}

void dv_loop_end_turn(struct dv_loop *loop)
{
    struct dv_loop_turn before = loop->turn;
    struct dv_loop_hold hold;
    uint64_t whole_ns;
    uint64_t asleep_ns;

    start_turn(loop);
    whole_ns = loop->turn.at_ns - before.at_ns;
    asleep_ns = loop->turn.asleep_ns - before.asleep_ns;
    hold.wall_ns = whole_ns > asleep_ns ? whole_ns - asleep_ns : 0;
    hold.cpu_ns = loop->turn.cpu_ns - before.cpu_ns;
    if (loop->held)
        loop->held(loop->held_ctx, &hold);
}

void dv_loop_watch_holds(struct dv_loop *loop, dv_loop_held_fn *held, void *ctx)
{
    loop->held = held;
    loop->held_ctx = ctx;
    if (held)
        start_turn(loop);
}

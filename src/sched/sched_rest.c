/* sched_rest.c - has the inventory give back what it made for decisions, when there have been none
 * for a while. A cluster's slices as structs, and what its nodes see of them, are most of the
 * memory of a scheduler that has nothing to do. */
#include <stdbool.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "base/defs.h"
#include "loop/loop.h"
#include "sched/sched_state.h"

/* Longer than the pauses in a burst, so that it does not make anew what it uses all the time. */
#define REST_MS 2000u
/* Between two portions: others come first. */
#define PORTION_MS 1u

static void on_rest(struct dv_timer *timer)
{
    struct dv_sched *sched = DV_CONTAINER(timer, struct dv_sched, rest);
    bool is_calm = !sched->is_used && !sched->attempt && !dv_sched_slices_are_behind(sched);
    bool has_more = !is_calm || dv_inventory_rest(sched->inventory);

    sched->is_used = false;
    if (has_more)
        dv_timer_start(timer, sched->loop,
                       dv_loop_now_ms(sched->loop) + (is_calm ? PORTION_MS : REST_MS), on_rest);
}

void dv_sched_inventory_used(struct dv_sched *sched)
{
    sched->is_used = true;
    if (!dv_timer_is_set(&sched->rest) && !sched->is_closing)
        dv_timer_start(&sched->rest, sched->loop, dv_loop_now_ms(sched->loop) + REST_MS, on_rest);
}

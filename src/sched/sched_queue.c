/* sched_queue.c - which pod is decided on next, and when. Pods are taken by priority, then by
 * arrival; one that failed comes back after a pause. Decisions are made in turns of the loop, each
 * with a budget of cost, so that a long queue does not hold up anything else on the loop. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/list.h"
#include "base/num.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "sched/crowd.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* How many decisions are made in one turn of the loop at most. What a decision costs beside what is
 * counted adds up to about a millisecond by then. */
#define N_TURN_MAX 32u
/* When less than an eighth of the budget is left, nothing more is begun: a search with so little
 * would be given up and made again in the next turn. */
#define BUDGET_PART_MIN 8u

/* ---- states ---- */

static enum dv_sched_queue queue_of(enum dv_sched_pod_state state)
{
    switch (state) {
    case DV_SCHED_POD_GATED:
        return DV_SCHED_GATED;
    case DV_SCHED_POD_ACTIVE:
        return DV_SCHED_ACTIVE;
    case DV_SCHED_POD_BACKOFF:
        return DV_SCHED_BACKOFF;
    case DV_SCHED_POD_WAITING:
        return DV_SCHED_WAITING;
    case DV_SCHED_POD_BINDING:
    case DV_SCHED_POD_BOUND:
        break;
    }
    return DV_SCHED_N_QUEUES;
}

void dv_sched_set_state(struct dv_sched_pod *pod, enum dv_sched_pod_state state)
{
    struct dv_sched *sched = pod->sched;
    enum dv_sched_queue from = queue_of(pod->state);
    enum dv_sched_queue to = queue_of(state);

    if (from != DV_SCHED_N_QUEUES)
        sched->n_pending[from]--;
    if (to != DV_SCHED_N_QUEUES)
        sched->n_pending[to]++;
    pod->state = state;
}

/* ---- the heap ---- */

static bool is_before(const struct dv_sched_pod *a, const struct dv_sched_pod *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    /* A pod whose search was given up costs a tenth of a second each time: those of the same
     * priority that may be quick go first. */
    return a->is_late != b->is_late ? b->is_late : a->order < b->order;
}

static void put(struct dv_sched *sched, size_t i, struct dv_sched_pod *pod)
{
    sched->heap.v[i] = pod;
    pod->place = i + 1;
}

static void rise(struct dv_sched *sched, size_t i, struct dv_sched_pod *pod)
{
    while (i > 0 && is_before(pod, sched->heap.v[(i - 1) / 2])) {
        put(sched, i, sched->heap.v[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(sched, i, pod);
}

static void sink(struct dv_sched *sched, size_t i, struct dv_sched_pod *pod)
{
    size_t n = sched->heap.n;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child < n - 1 && is_before(sched->heap.v[child + 1], sched->heap.v[child]))
            child++;
        if (child >= n || !is_before(sched->heap.v[child], pod))
            break;
        put(sched, i, sched->heap.v[child]);
        i = child;
    }
    put(sched, i, pod);
}

static void push(struct dv_sched *sched, struct dv_sched_pod *pod)
{
    (void)dv_vec_add(&sched->heap);
    rise(sched, sched->heap.n - 1, pod);
}

static void take_out(struct dv_sched *sched, struct dv_sched_pod *pod)
{
    size_t i = pod->place - 1;
    struct dv_sched_pod *last = sched->heap.v[sched->heap.n - 1];

    sched->heap.n--;
    pod->place = 0;
    if (last == pod)
        return;
    if (i > 0 && is_before(last, sched->heap.v[(i - 1) / 2]))
        rise(sched, i, last);
    else
        sink(sched, i, last);
}

/* ---- in and out ---- */

void dv_sched_unqueue(struct dv_sched_pod *pod)
{
    if (dv_sched_attempt_pod(pod->sched) == pod)
        dv_sched_attempt_drop(pod->sched);
    if (pod->place > 0)
        take_out(pod->sched, pod);
    dv_timer_cancel(&pod->timer);
    dv_sched_leave_class(pod);
    dv_link_remove(&pod->waits);
    if (pod->crowd && dv_list_is_empty(&pod->crowd->waiting))
        dv_link_remove(&pod->crowd->waits);
}

static void on_backoff_over(struct dv_timer *timer)
{
    dv_sched_queue(DV_CONTAINER(timer, struct dv_sched_pod, timer));
}

void dv_sched_queue(struct dv_sched_pod *pod)
{
    struct dv_sched *sched = pod->sched;

    if (pod->state == DV_SCHED_POD_ACTIVE)
        return;
    dv_sched_unqueue(pod);
    if (pod->backoff_until_ms > dv_loop_now_ms(sched->loop)) {
        dv_sched_set_state(pod, DV_SCHED_POD_BACKOFF);
        dv_timer_start(&pod->timer, sched->loop, pod->backoff_until_ms, on_backoff_over);
        return;
    }
    dv_sched_set_state(pod, DV_SCHED_POD_ACTIVE);
    push(sched, pod);
    dv_sched_turn(sched);
}

static struct dv_sched_pod *next_in_queue(struct dv_sched *sched)
{
    struct dv_sched_pod *pod = sched->heap.n > 0 ? sched->heap.v[0] : NULL;

    if (pod)
        take_out(sched, pod);
    return pod;
}

/* ---- rest ---- */

/* What the inventory made for decisions it gives back when there have been none for a while: a
 * cluster's slices as structs, and what its nodes see of them, are most of the memory of a
 * scheduler that has nothing to do. */

/* Longer than the pauses in a burst, so that it does not make anew what it uses all the time. */
#define REST_MS 2000u
/* Between two portions: others come first. */
#define PORTION_MS 1u

static void on_rest(struct dv_timer *timer)
{
    struct dv_sched *sched = DV_CONTAINER(timer, struct dv_sched, rest);
    bool is_calm = !sched->is_used && !sched->attempt && !dv_sched_slices_are_behind(sched) &&
                   !dv_inventory_is_lent(sched->inventory);
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

/* ---- turns ---- */

void dv_sched_spend(struct dv_sched *sched, uint64_t cost)
{
    sched->budget_left -= dv_u64_min(cost, sched->budget_left);
    sched->turn_cost += cost;
}

bool dv_sched_has_budget(const struct dv_sched *sched)
{
    return sched->budget_left > sched->options.turn_budget / BUDGET_PART_MIN;
}

static bool has_work(const struct dv_sched *sched)
{
    if (sched->is_closing || dv_sched_attempt_is_waiting(sched))
        return false;
    if (dv_sched_slices_are_behind(sched))
        return true;
    if (sched->n_unsynced > 0)
        return false;
    if (sched->attempt)
        return true;
    return sched->heap.n > 0 && sched->n_binding < sched->options.n_binding_max &&
           dv_sched_says_keep_up(sched);
}

static void on_turn(struct dv_task *task)
{
    struct dv_sched *sched = DV_CONTAINER(task, struct dv_sched, turn);

    sched->budget_left = sched->options.turn_budget;
    sched->turn_cost = 0;
    dv_sched_inventory_used(sched);
    for (size_t i = 0; i < N_TURN_MAX && dv_sched_has_budget(sched) && has_work(sched); i++) {
        if (dv_sched_slices_are_behind(sched))
            /* Decisions are made only when all slices that were told are in the inventory. */
            dv_sched_slices_catch_up(sched);
        else if (sched->attempt)
            dv_sched_attempt_go_on(sched);
        else
            dv_sched_decide(next_in_queue(sched));
    }
    sched->numbers.turn_cost_max = dv_u64_max(sched->numbers.turn_cost_max, sched->turn_cost);
    dv_sched_turn(sched);
}

void dv_sched_turn(struct dv_sched *sched)
{
    if (has_work(sched))
        dv_task_post_next_turn(&sched->turn, sched->loop, on_turn);
}

#include "loop/loop.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <uv.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "loop/uvloop.h"

/* After this much time a turn takes on no more of the tasks that were posted for it. */
#define LONG_TURN_NS 5000000u

bool dv_loop_fail_uv(struct dv_err *err, int status, const char *fmt, ...)
{
    char what[DV_ERR_MSG_BYTES];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, args); /* dv_fail marks what is cut */
    va_end(args);
    /* On Linux libuv's own statuses lie below -3000; the others are negated errno values. */
    if (status > -3000)
        return dv_fail_errno(err, -status, "%s", what);
    return dv_fail(err, status == UV_EOF ? DV_UNAVAILABLE : DV_INTERNAL, "%s: %s", what,
                   uv_strerror(status));
}

/* Runs what was posted until now; what those post runs in the next round, before sleeping. */
static void run_tasks(struct dv_loop *loop)
{
    struct dv_list now;
    struct dv_link *link;

    dv_list_init(&now);
    dv_list_move_all(&now, &loop->tasks);
    while ((link = dv_list_shift(&now)) != NULL) {
        struct dv_task *task = DV_CONTAINER(link, struct dv_task, link);

        task->run(task);
    }
    if (dv_list_is_empty(&loop->tasks) && dv_list_is_empty(&loop->parts) &&
        !dv_loop_has_due_timer(loop))
        (void)uv_idle_stop(&loop->stay_awake); /* cannot fail */
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* only there to keep the loop from sleeping */
}

/* How long this turn has taken so far, without sleep. */
static uint64_t spent_ns(struct dv_loop *loop)
{
    uint64_t whole_ns = uv_hrtime() - loop->polled.at_ns;
    uint64_t asleep_ns = uv_metrics_idle_time(&loop->uv) - loop->polled.asleep_ns;

    return whole_ns > asleep_ns ? whole_ns - asleep_ns : 0;
}

/* Runs tasks that were posted for this turn. One at least, so that all get on; when the turn has
 * become long the others wait for the next: several parts of the process may have milliseconds of
 * work to do because of one large object. */
static void run_parts(struct dv_loop *loop)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&loop->parts)) != NULL) {
        struct dv_task *task = DV_CONTAINER(link, struct dv_task, link);

        task->run(task);
        if (spent_ns(loop) >= LONG_TURN_NS)
            break;
    }
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct dv_loop *loop = prepare->data;

    if (loop->clock->is_virtual) {
        dv_loop_run_due_timers(loop);
        if (dv_loop_has_due_timer(loop))
            (void)uv_idle_start(&loop->stay_awake, on_idle); /* fails only without a callback */
    }
    run_tasks(loop);
    if (loop->held)
        dv_loop_end_turn(loop);
    loop->polled.at_ns = uv_hrtime();
    loop->polled.asleep_ns = uv_metrics_idle_time(&loop->uv);
    dv_list_move_all(&loop->parts, &loop->next_tasks); /* they run when the loop has polled */
    if (dv_list_is_empty(&loop->parts))
        return;
    (void)uv_idle_start(&loop->stay_awake, on_idle); /* fails only without a callback */
}

static void on_check(uv_check_t *check)
{
    struct dv_loop *loop = check->data;

    run_parts(loop);
    run_tasks(loop);
}

static void ignore_sigpipe(void)
{
    struct sigaction action;

    if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
        action.sa_handler = SIG_IGN;
        (void)sigaction(SIGPIPE, &action, NULL); /* valid arguments: cannot fail */
    }
}

/* Handles of the loop's own: set up once, never the reason why it runs. */
static void start_hooks(struct dv_loop *loop)
{
    int status = 0;

    status |= uv_timer_init(&loop->uv, &loop->wake);
    status |= uv_timer_init(&loop->uv, &loop->guard);
    status |= uv_prepare_init(&loop->uv, &loop->before_sleep);
    status |= uv_check_init(&loop->uv, &loop->after_poll);
    status |= uv_idle_init(&loop->uv, &loop->stay_awake);
    loop->wake.data = loop->before_sleep.data = loop->after_poll.data = loop;
    status |= uv_prepare_start(&loop->before_sleep, on_prepare);
    status |= uv_check_start(&loop->after_poll, on_check);
    assert(status == 0); /* none of these can fail on a good loop */
}

struct dv_loop *dv_loop_new(struct dv_clock *clock, struct dv_err *err)
{
    struct dv_loop *loop = DV_ALLOC(struct dv_loop);
    int status = uv_loop_init(&loop->uv);

    if (status < 0) {
        (void)dv_loop_fail_uv(err, status, "event loop");
        free(loop);
        return NULL;
    }
    /* Sleep is no hold. Fails only on a loop that is not there. */
    (void)uv_loop_configure(&loop->uv, UV_METRICS_IDLE_TIME);
    loop->clock = clock;
    loop->wake_at_ms = UINT64_MAX;
    dv_list_init(&loop->tasks);
    dv_list_init(&loop->next_tasks);
    dv_list_init(&loop->parts);
    ignore_sigpipe();
    start_hooks(loop);
    return loop;
}

/* The loop's own handles stop being a reason for it to run. */
static void unref_hooks(struct dv_loop *loop)
{
    uv_unref((uv_handle_t *)&loop->wake);
    uv_unref((uv_handle_t *)&loop->guard);
    uv_unref((uv_handle_t *)&loop->before_sleep);
    uv_unref((uv_handle_t *)&loop->after_poll);
    uv_unref((uv_handle_t *)&loop->stay_awake);
}

static void close_hooks(struct dv_loop *loop)
{
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->guard, NULL);
    uv_close((uv_handle_t *)&loop->before_sleep, NULL);
    uv_close((uv_handle_t *)&loop->after_poll, NULL);
    uv_close((uv_handle_t *)&loop->stay_awake, NULL);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT); /* says only whether handles are left */
}

void dv_loop_free(struct dv_loop *loop)
{
    int status;

    if (!loop)
        return;
    /* A handle that closes may post tasks, and a task may close handles: this runs until neither is
     * left. */
    unref_hooks(loop);
    do {
        dv_list_move_all(&loop->tasks, &loop->parts);
        dv_list_move_all(&loop->tasks, &loop->next_tasks);
        run_tasks(loop);
        (void)uv_run(&loop->uv, UV_RUN_DEFAULT); /* says only whether handles are left */
    } while (!dv_list_is_empty(&loop->tasks) || !dv_list_is_empty(&loop->parts) ||
             !dv_list_is_empty(&loop->next_tasks));
    close_hooks(loop);
    status = uv_loop_close(&loop->uv);
    assert(status == 0); /* else a handle was never closed */
    dv_vec_fini(&loop->timers);
    free(loop);
}

void dv_loop_run(struct dv_loop *loop)
{
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT); /* says only whether handles are left */
}

void dv_loop_stop(struct dv_loop *loop)
{
    uv_stop(&loop->uv);
}

/* Timers that are due run before the loop sleeps; with no other timer left it would sleep for ever,
 * if it were not stopped. */
static void on_guard(uv_timer_t *guard)
{
    bool *is_over = guard->data;

    *is_over = true;
    uv_stop(guard->loop);
}

bool dv_loop_run_until(struct dv_loop *loop, bool (*is_met)(void *ctx), void *ctx,
                       uint64_t timeout_ms)
{
    bool is_over = false;
    bool met;

    loop->guard.data = &is_over;
    uv_update_time(&loop->uv);
    (void)uv_timer_start(&loop->guard, on_guard, timeout_ms, 0); /* fails only without a callback */
    while (!(met = is_met(ctx)) && !is_over)
        (void)uv_run(&loop->uv, UV_RUN_ONCE);
    (void)uv_timer_stop(&loop->guard); /* cannot fail */
    return met;
}

struct dv_clock *dv_loop_clock(struct dv_loop *loop)
{
    return loop->clock;
}

uint64_t dv_loop_now_ms(struct dv_loop *loop)
{
    return dv_clock_now_ms(loop->clock);
}

uint64_t dv_loop_now_ns(struct dv_loop *loop)
{
    return dv_clock_now_ns(loop->clock);
}

static void post(struct dv_task *task, struct dv_loop *loop, struct dv_list *list,
                 void (*run)(struct dv_task *task))
{
    task->run = run;
    if (dv_link_is_in(&task->link))
        return;
    dv_list_push(list, &task->link);
    (void)uv_idle_start(&loop->stay_awake, on_idle); /* fails only without a callback */
}

void dv_task_post(struct dv_task *task, struct dv_loop *loop, void (*run)(struct dv_task *task))
{
    post(task, loop, &loop->tasks, run);
}

void dv_task_post_next_turn(struct dv_task *task, struct dv_loop *loop,
                            void (*run)(struct dv_task *task))
{
    post(task, loop, &loop->next_tasks, run);
}

void dv_task_cancel(struct dv_task *task)
{
    dv_link_remove(&task->link);
}

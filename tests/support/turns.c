#include "support/turns.h"

#include "base/defs.h"
#include "loop/loop.h"
#include "support/dvtest.h"

void loop_wait(struct dv_loop *loop, bool (*is_met)(void *ctx), void *ctx)
{
    assert_true(dv_loop_run_until(loop, is_met, ctx, TEST_WAIT_MS));
}

struct wait {
    const bool *flag;
    const int *count;
    int at_least;
};

static bool has_come(void *ctx)
{
    const struct wait *wait = ctx;

    return wait->flag ? *wait->flag : *wait->count >= wait->at_least;
}

void loop_wait_flag(struct dv_loop *loop, const bool *flag)
{
    loop_wait(loop, has_come, &(struct wait){.flag = flag});
}

void loop_wait_count(struct dv_loop *loop, const int *count, int at_least)
{
    loop_wait(loop, has_come, &(struct wait){.count = count, .at_least = at_least});
}

static void on_mark(struct dv_task *task)
{
    DV_CONTAINER(task, struct mark, task)->n_passed++;
}

void mark_post(struct mark *mark, struct dv_loop *loop)
{
    *mark = (struct mark){0};
    dv_task_post(&mark->task, loop, on_mark);
}

void loop_turns(struct dv_loop *loop, int n)
{
    for (int i = 0; i < n; i++) {
        struct mark mark;

        mark_post(&mark, loop);
        loop_wait_count(loop, &mark.n_passed, 1);
    }
}

void set_flag(void *ctx)
{
    *(bool *)ctx = true;
}

/* loop_work.c - jobs on worker threads. */
#include <assert.h>
#include <stdlib.h>

#include <uv.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "loop/loop.h"
#include "loop/uvloop.h"

/* Up to this size an arena is freed on the loop: that takes less than handing it to a worker and
 * back. */
#define FREED_BYTES_MAX (256u * 1024u)

static void on_run(uv_work_t *req)
{
    struct dv_work *work = req->data;

    work->run(work);
}

static void on_done(uv_work_t *req, int status)
{
    struct dv_work *work = req->data;
    struct dv_err err;

    free(req);
    work->priv = NULL;
    if (status == 0) {
        work->done(work, NULL);
        return;
    }
    (void)dv_fail(&err, DV_CANCELLED, "cancelled before it began");
    work->done(work, &err);
}

void dv_work_start(struct dv_work *work, struct dv_loop *loop)
{
    uv_work_t *req = DV_ALLOC(uv_work_t);
    int status;

    req->data = work;
    work->priv = req;
    status = uv_queue_work(&loop->uv, req, on_run, on_done);
    assert(status == 0); /* fails only without a function */
}

void dv_work_cancel(struct dv_work *work)
{
    if (work->priv)
        (void)uv_cancel(work->priv); /* busy: it has begun, and runs to its end */
}

/* ---- memory ---- */

struct discarded {
    struct dv_work work;
    struct dv_arena *arena;
};

static void run_discard(struct dv_work *work)
{
    dv_arena_free(DV_CONTAINER(work, struct discarded, work)->arena);
}

static void on_discarded(struct dv_work *work, const struct dv_err *err)
{
    (void)err; /* nobody cancels it */
    free(DV_CONTAINER(work, struct discarded, work));
}

void dv_loop_free_arena(struct dv_loop *loop, struct dv_arena *arena)
{
    struct discarded *discarded;

    if (!arena || dv_arena_size_bytes(arena) <= FREED_BYTES_MAX) {
        dv_arena_free(arena);
        return;
    }
    discarded = DV_ALLOC(struct discarded);
    discarded->arena = arena;
    discarded->work = (struct dv_work){.run = run_discard, .done = on_discarded};
    dv_work_start(&discarded->work, loop);
}

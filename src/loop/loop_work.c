#include <assert.h>
#include <stdlib.h>

#include <uv.h>

#include "base/arena.h"
#include "base/err.h"
#include "loop/loop.h"
#include "loop/uvloop.h"

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

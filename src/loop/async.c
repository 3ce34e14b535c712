/* async.c - wakes the loop from another thread. */
#include <stdlib.h>

#include <uv.h>

#include "base/arena.h"
#include "loop/loop.h"
#include "loop/uvloop.h"

struct dv_async {
    uv_async_t async;
    void (*woken)(void *ctx);
    void *ctx;
    dv_closed_fn *closed;
    void *closed_ctx;
};

static void on_woken(uv_async_t *handle)
{
    struct dv_async *async = handle->data;

    async->woken(async->ctx);
}

static void on_closed(uv_handle_t *handle)
{
    struct dv_async *async = handle->data;
    dv_closed_fn *closed = async->closed;
    void *ctx = async->closed_ctx;

    free(async);
    if (closed)
        closed(ctx);
}

struct dv_async *dv_async_open(struct dv_loop *loop, void (*woken)(void *ctx), void *ctx,
                               struct dv_err *err)
{
    struct dv_async *async = DV_ALLOC(struct dv_async);
    int status = uv_async_init(&loop->uv, &async->async, on_woken);

    if (status < 0) { /* libuv has not taken the handle: nothing to close */
        (void)dv_loop_fail_uv(err, status, "wake-ups for the loop");
        free(async);
        return NULL;
    }
    async->async.data = async;
    async->woken = woken;
    async->ctx = ctx;
    return async;
}

void dv_async_wake(struct dv_async *async)
{
    (void)uv_async_send(&async->async); /* fails only on a handle of another kind */
}

void dv_async_close(struct dv_async *async, dv_closed_fn *closed, void *ctx)
{
    async->closed = closed;
    async->closed_ctx = ctx;
    uv_close((uv_handle_t *)&async->async, on_closed);
}

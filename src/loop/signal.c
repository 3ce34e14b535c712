/* signal.c - signals of the process, told on the loop's thread. */
#include <stdlib.h>

#include <uv.h>

#include "base/arena.h"
#include "base/err.h"
#include "loop/loop.h"
#include "loop/uvloop.h"

struct dv_signal {
    uv_signal_t signal;
    void (*raised)(void *ctx, int signum);
    void *ctx;
    dv_closed_fn *closed;
    void *closed_ctx;
};

static void on_signal_closed(uv_handle_t *handle)
{
    struct dv_signal *signal = handle->data;
    dv_closed_fn *closed = signal->closed;
    void *ctx = signal->closed_ctx;

    free(signal);
    if (closed)
        closed(ctx);
}

static void on_signal(uv_signal_t *handle, int signum)
{
    struct dv_signal *signal = handle->data;

    signal->raised(signal->ctx, signum);
}

struct dv_signal *dv_signal_open(struct dv_loop *loop, int signum,
                                 void (*raised)(void *ctx, int signum), void *ctx,
                                 struct dv_err *err)
{
    struct dv_signal *signal = DV_ALLOC(struct dv_signal);
    int status = uv_signal_init(&loop->uv, &signal->signal);

    if (status < 0) { /* libuv has not taken the handle: nothing to close */
        (void)dv_loop_fail_uv(err, status, "signal %d", signum);
        free(signal);
        return NULL;
    }
    signal->signal.data = signal;
    signal->raised = raised;
    signal->ctx = ctx;
    status = uv_signal_start(&signal->signal, on_signal, signum);
    if (status < 0) {
        (void)dv_loop_fail_uv(err, status, "signal %d", signum);
        dv_signal_close(signal, NULL, NULL);
        return NULL;
    }
    return signal;
}

void dv_signal_close(struct dv_signal *signal, dv_closed_fn *closed, void *ctx)
{
    signal->closed = closed;
    signal->closed_ctx = ctx;
    uv_close((uv_handle_t *)&signal->signal, on_signal_closed);
}

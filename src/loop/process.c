#include <signal.h>
#include <stdlib.h>

#include <uv.h>

#include "base/arena.h"
#include "base/err.h"
#include "loop/loop.h"
#include "loop/uvloop.h"

/* ---- signals ---- */

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

/* ---- processes ---- */

struct dv_process {
    uv_process_t process;
    void (*exited)(void *ctx, struct dv_process_exit exit);
    void *ctx;
    dv_closed_fn *closed;
    void *closed_ctx;
};

static void on_process_closed(uv_handle_t *handle)
{
    struct dv_process *process = handle->data;
    dv_closed_fn *closed = process->closed;
    void *ctx = process->closed_ctx;

    free(process);
    if (closed)
        closed(ctx);
}

static void on_exit_status(uv_process_t *handle, int64_t status, int signum)
{
    struct dv_process *process = handle->data;

    process->exited(process->ctx, (struct dv_process_exit){(int)status, signum});
}

struct dv_process *dv_process_open(struct dv_loop *loop, const struct dv_process_options *options,
                                   void (*exited)(void *ctx, struct dv_process_exit exit),
                                   void *ctx, struct dv_err *err)
{
    struct dv_process *process = DV_ALLOC(struct dv_process);
    uv_stdio_container_t fds[3];
    /* libuv does not write to these, its types only lack the const. */
    uv_process_options_t spawn = {
        .exit_cb = on_exit_status,
        .file = options->argv[0],
        .args = (char **)(uintptr_t)options->argv,
        .env = (char **)(uintptr_t)options->env,
        .cwd = options->dir,
        .stdio_count = 3,
        .stdio = fds,
    };
    int status;

    for (int i = 0; i < 3; i++) {
        fds[i].flags = options->fds[i] < 0 ? UV_IGNORE : UV_INHERIT_FD;
        fds[i].data.fd = options->fds[i];
    }
    process->process.data = process;
    process->exited = exited;
    process->ctx = ctx;
    status = uv_spawn(&loop->uv, &process->process, &spawn);
    if (status < 0) {
        (void)dv_loop_fail_uv(err, status, "start %s", options->argv[0]);
        dv_process_close(process, NULL, NULL);
        return NULL;
    }
    return process;
}

pid_t dv_process_pid(const struct dv_process *process)
{
    return uv_process_get_pid(&process->process);
}

bool dv_process_kill(struct dv_process *process, int signum, struct dv_err *err)
{
    int status = uv_process_kill(&process->process, signum);

    if (status == UV_ESRCH)
        return dv_fail(err, DV_NOT_FOUND, "process %d has ended",
                       (int)uv_process_get_pid(&process->process));
    if (status < 0)
        return dv_loop_fail_uv(err, status, "signal %d to process %d", signum,
                               (int)uv_process_get_pid(&process->process));
    return true;
}

void dv_process_close(struct dv_process *process, dv_closed_fn *closed, void *ctx)
{
    process->closed = closed;
    process->closed_ctx = ctx;
    uv_close((uv_handle_t *)&process->process, on_process_closed);
}

/* kube_work.c - does what takes long on a worker: reading large bodies, printing large answers. */
#include "base/defs.h"
#include "base/err.h"
#include "loop/loop.h"
#include "serve/kube/kube_call.h"

/* Reading or printing so much takes about a millisecond, which the loop can spare. */
#define LARGE_BYTES (64u * 1024u)

static void run(struct dv_work *work)
{
    struct dv_kube_call *call = DV_CONTAINER(work, struct dv_kube_call, work);

    call->run(call);
}

static void done(struct dv_work *work, const struct dv_err *err)
{
    struct dv_kube_call *call = DV_CONTAINER(work, struct dv_kube_call, work);

    (void)err; /* nobody cancels it */
    call->then(call);
}

void dv_kube_work(struct dv_kube_call *call, size_t n_bytes,
                  void (*run_call)(struct dv_kube_call *call),
                  void (*then)(struct dv_kube_call *call))
{
    if (n_bytes <= LARGE_BYTES) {
        run_call(call);
        then(call);
        return;
    }
    call->run = run_call;
    call->then = then;
    call->work = (struct dv_work){.run = run, .done = done};
    dv_work_start(&call->work, call->kube->options.loop);
}

/* device_run.c - an allocation or a container's start on the loop: plugins are asked, then the
 * result is put on the disk, then whoever waits is told.
 *
 *     begin --> go_on --> ask a plugin --> its answer --> go_on ...   the operation decides whom
 *                 |            '--- gone, or vetoed ----> go_on ...
 *                 |-- DONE ----> save --> end     nothing is new, or the caller saves: end
 *                 '-- FAILED --> fail --> end
 *
 * What is asked next, and what an answer or a refusal means, is decided in device_operation.c. */
#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "device/manager/device_manager_state.h"
#include "device/state/device_operation.h"

/* The reference has no timeout for the first two calls; a plugin that takes longer hangs, and the
 * pod would wait for ever. */
#define ALLOCATE_TIMEOUT_MS 60000u
#define PREFERRED_TIMEOUT_MS 30000u
#define PRESTART_TIMEOUT_MS 30000u

static void go_on(struct dv_device_run *run);

static void end(struct dv_device_run *run, const struct dv_err *err)
{
    struct dv_device_manager *devices = run->priv.devices;

    dv_device_operation_free(run->priv.operation); /* gives back what has not become a record */
    run->priv.operation = NULL;
    dv_link_remove(&run->priv.link);
    dv_task_cancel(&run->priv.task);
    dv_buf_fini(&run->priv.answer);
    dv_device_manager_check_closed(devices);
    run->done(run, err); /* last: it may free the run */
}

static void on_saved(struct dv_save *save, const struct dv_err *err)
{
    struct dv_device_run *run = DV_CONTAINER(save, struct dv_device_run, priv.save);

    run->priv.is_saving = false;
    end(run, err);
}

/* All is decided: writes the result, if there is one, before `done` runs. */
static void save(struct dv_device_run *run)
{
    run->priv.is_saving = true;
    run->priv.save.done = on_saved;
    dv_device_manager_save(run->priv.devices, &run->priv.save);
}

static void fail(struct dv_device_run *run, const struct dv_device_step *step)
{
    struct dv_err err = step->err;

    run->has_failure = true;
    run->failure = step->failure;
    /* writes what the container got of other resources before the failure */
    dv_saver_later(&run->priv.devices->saver);
    end(run, &err);
}

static void on_message(struct dv_call *call, dv_str message)
{
    struct dv_device_run *run = DV_CONTAINER(call, struct dv_device_run, priv.call);

    dv_buf_clear(&run->priv.answer);
    dv_buf_add(&run->priv.answer, message);
}

static void on_done(struct dv_call *call, const struct dv_err *err)
{
    struct dv_device_run *run = DV_CONTAINER(call, struct dv_device_run, priv.call);
    const struct dv_device_step *step = dv_device_operation_step(run->priv.operation);
    struct dv_endpoint *endpoint =
        dv_endpoint_find(run->priv.devices, step->resource, step->socket);
    struct dv_err own;

    run->priv.is_calling = false;
    run->priv.has_allocated |= step->kind == DV_DEVICE_ASK_ALLOCATE;
    if (step->kind == DV_DEVICE_ASK_ALLOCATE && run->priv.devices->options.allocated)
        run->priv.devices->options.allocated(run->priv.devices->options.ctx, step->resource,
                                             dv_loop_now_ns(run->priv.devices->loop) -
                                                 run->priv.asked_ns);
    if (run->priv.end.code != DV_OK) { /* the run was given up while the plugin was asked */
        own = run->priv.end;
        end(run, &own);
        return;
    }
    if (!err && !dv_buf_check(&run->priv.answer, "answer", &own))
        err = &own;
    if (!err && endpoint && !dv_endpoint_convert(endpoint, step->kind, &run->priv.answer, &own))
        err = &own;
    if (err)
        dv_device_operation_refuse(run->priv.operation, err);
    else
        dv_device_operation_answer(run->priv.operation, dv_buf_str(&run->priv.answer));
    go_on(run);
}

static uint64_t timeout_of(enum dv_device_step_kind kind)
{
    if (kind == DV_DEVICE_ASK_PRESTART)
        return PRESTART_TIMEOUT_MS;
    return kind == DV_DEVICE_ASK_PREFERRED ? PREFERRED_TIMEOUT_MS : ALLOCATE_TIMEOUT_MS;
}

/* Calls the plugin. False: it is gone, and the operation has been told. */
static bool ask(struct dv_device_run *run, const struct dv_device_step *step)
{
    struct dv_device_manager *devices = run->priv.devices;
    struct dv_endpoint *endpoint = dv_endpoint_find(devices, step->resource, step->socket);
    struct dv_err err;

    if (!endpoint) {
        (void)dv_fail(&err, DV_UNAVAILABLE, "the plugin on %.*s is gone", DV_FMT(step->socket));
        dv_device_operation_refuse(run->priv.operation, &err);
        return false;
    }
    if (step->kind == DV_DEVICE_ASK_ALLOCATE && run->may_allocate &&
        !run->may_allocate(run, step->resource, step->ids, step->n_ids, &err)) {
        run->is_vetoed = true;
        dv_device_operation_refuse(run->priv.operation, &err);
        return false;
    }
    memset(&run->priv.call, 0, sizeof(run->priv.call));
    run->priv.call.message = on_message;
    run->priv.call.done = on_done;
    run->priv.call.pod_uid = run->priv.operation->request.pod_uid;
    run->priv.call.container = run->priv.operation->request.container;
    run->priv.call.deadline_ms = dv_loop_now_ms(devices->loop) + timeout_of(step->kind);
    run->priv.is_calling = run->has_asked = true;
    run->priv.asked_ns = dv_loop_now_ns(devices->loop);
    dv_endpoint_call(endpoint, step, &run->priv.call);
    return true;
}

static void go_on(struct dv_device_run *run)
{
    for (;;) {
        const struct dv_device_step *step = dv_device_operation_step(run->priv.operation);

        if (step->kind == DV_DEVICE_DONE) {
            if (run->leaves_saving || !run->priv.has_allocated)
                /* nothing is new, so a disk that cannot be written is no reason to fail */
                end(run, NULL);
            else
                save(run);
            return;
        }
        if (step->kind == DV_DEVICE_FAILED) {
            fail(run, step);
            return;
        }
        if (ask(run, step))
            return;
    }
}

static void on_begin(struct dv_task *task)
{
    struct dv_device_run *run = DV_CONTAINER(task, struct dv_device_run, priv.task);
    struct dv_err err = run->priv.end;

    if (err.code == DV_OK)
        go_on(run);
    else
        end(run, &err);
}

static void begin(struct dv_device_manager *devices, struct dv_device_run *run,
                  struct dv_device_operation *operation)
{
    assert(run->done);
    memset(&run->priv, 0, sizeof(run->priv));
    run->has_failure = run->has_asked = run->is_vetoed = false;
    run->priv.devices = devices;
    run->priv.operation = operation;
    dv_buf_init(&run->priv.answer, DV_DEVICE_RESPONSE_BYTES_MAX);
    dv_list_push(&devices->runs, &run->priv.link);
    if (devices->is_closing)
        (void)dv_fail(&run->priv.end, DV_CANCELLED, "davitd is stopping");
    dv_task_post(&run->priv.task, devices->loop, on_begin);
}

void dv_device_manager_allocate(struct dv_device_manager *devices, struct dv_device_run *run,
                                const struct dv_device_request *request)
{
    begin(devices, run, dv_device_allocate(devices->state, request));
}

void dv_device_manager_start_container(struct dv_device_manager *devices, struct dv_device_run *run,
                                       const struct dv_device_request *request)
{
    begin(devices, run, dv_device_start(devices->state, request));
}

bool dv_device_run_call(const struct dv_device_run *run, struct dv_device_call *call)
{
    static const char *const methods[] = {
        [DV_DEVICE_ASK_PREFERRED] = "GetPreferredAllocation",
        [DV_DEVICE_ASK_ALLOCATE] = "Allocate",
        [DV_DEVICE_ASK_PRESTART] = "PreStartContainer",
    };
    const struct dv_device_step *step;

    if (!run->priv.is_calling)
        return false;
    step = dv_device_operation_step(run->priv.operation);
    *call = (struct dv_device_call){
        .resource = step->resource,
        .socket = step->socket,
        .method = methods[step->kind],
        .pod_uid = run->priv.operation->request.pod_uid,
        .container = run->priv.operation->request.container,
        .since_ns = run->priv.asked_ns,
    };
    return true;
}

void dv_device_manager_each_call(const struct dv_device_manager *devices,
                                 void (*see)(void *ctx, const struct dv_device_call *call),
                                 void *ctx)
{
    struct dv_device_call call;
    struct dv_link *link;

    DV_LIST_EACH (&devices->runs, link) {
        if (dv_device_run_call(DV_CONTAINER(link, struct dv_device_run, priv.link), &call))
            see(ctx, &call);
    }
    DV_LIST_EACH (&devices->endpoints, link) {
        if (dv_endpoint_link_call(link, &call))
            see(ctx, &call);
    }
}

void dv_device_manager_cancel(struct dv_device_run *run)
{
    if (!run->priv.operation || run->priv.is_saving || run->priv.end.code != DV_OK)
        return; /* the run is over, or decided and being saved */
    (void)dv_fail(&run->priv.end, DV_CANCELLED, "cancelled");
    if (run->priv.is_calling)
        dv_call_cancel(&run->priv.call);
}

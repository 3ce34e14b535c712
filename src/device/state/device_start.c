/* device_start.c - before a container starts: PreStartContainer, and what is not recorded (9.5). */
#include "base/arena.h"
#include "device/state/device_operation.h"

#define PRE_START_FAILED "device plugin PreStartContainer rpc failed with err: "

static void note_unrecorded(struct dv_device_op *op)
{
    if (op->pod->is_active &&
        !dv_device_held_find(op->state, op->pod, op->request.container, op->resource))
        op->needs_allocation = true;
    dv_device_op_release(op);
}

static bool call_pre_start(struct dv_device_op *op)
{
    const struct dv_device_plugin *plugin = dv_device_resource_plugin(op->resource);
    const struct dv_device_held *held =
        dv_device_held_find(op->state, op->pod, op->request.container, op->resource);
    struct dv_device **devices;

    if (!held)
        return dv_device_op_fail(op, DV_DEVICE_FAIL_NOTHING_ALLOCATED,
                                 "no devices found allocated in local cache for pod %.*s, "
                                 "container %.*s, resource %.*s",
                                 DV_FMT(op->request.pod_uid), DV_FMT(op->request.container),
                                 DV_FMT(op->resource->name));
    if (!plugin)
        return dv_device_op_fail_stopped(op, DV_DEVICE_FAIL_PLUGIN_PRESTART, PRE_START_FAILED);
    devices = DV_NEW_ARRAY(op->scratch, struct dv_device *, held->n_holdings);
    for (size_t i = 0; i < held->n_holdings; i++)
        devices[i] = held->holdings[i].device;
    dv_device_op_call(op, DV_DEVICE_ASK_PRESTART, plugin, devices, held->n_holdings);
    return false;
}

/* True: done with this limit. */
bool dv_device_pre_start_limit(struct dv_device_op *op, const struct dv_device_limit *limit)
{
    if (limit->amount == 0 || !dv_device_op_is_for_plugins(op, limit))
        return true;
    dv_device_op_hold(op, dv_device_resource_find(op->state, limit->resource));
    if (op->resource->n_plugins == 0 && !op->resource->is_stopped)
        return dv_device_op_fail(op, DV_DEVICE_FAIL_NO_ENDPOINT,
                                 "endpoint not found in cache for a registered resource: %.*s",
                                 DV_FMT(op->resource->name));
    if (op->resource->has_options && op->resource->options.needs_pre_start)
        return call_pre_start(op);
    note_unrecorded(op);
    return true;
}

void dv_device_pre_start_answered(struct dv_device_op *op, dv_str response)
{
    (void)response; /* is empty, whatever it says */
    note_unrecorded(op);
    op->at++;
    dv_device_op_go_on(op);
}

void dv_device_pre_start_refused(struct dv_device_op *op, const struct dv_err *status)
{
    (void)dv_device_op_fail_status(op, DV_DEVICE_FAIL_PLUGIN_PRESTART, PRE_START_FAILED, status);
}

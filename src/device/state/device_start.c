/* device_start.c - before a container starts: PreStartContainer, and what is not recorded. */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "device/state/device_operation.h"

#define PRE_START_FAILED "device plugin PreStartContainer rpc failed with err: "

static void note_unrecorded(struct dv_device_operation *operation)
{
    if (operation->pod->is_active &&
        !dv_device_held_find(operation->state, operation->pod, operation->request.container,
                             operation->resource))
        operation->needs_allocation = true;
    dv_device_operation_leave_resource(operation);
}

static bool call_pre_start(struct dv_device_operation *operation)
{
    const struct dv_device_plugin *plugin = dv_device_resource_plugin(operation->resource);
    const struct dv_device_held *held = dv_device_held_find(
        operation->state, operation->pod, operation->request.container, operation->resource);
    struct dv_device **devices;

    if (!held)
        return dv_device_operation_fail(operation, DV_DEVICE_FAIL_NOTHING_ALLOCATED,
                                        "no devices found allocated in local cache for pod %.*s, "
                                        "container %.*s, resource %.*s",
                                        DV_FMT(operation->request.pod_uid),
                                        DV_FMT(operation->request.container),
                                        DV_FMT(operation->resource->name));
    if (!plugin)
        return dv_device_operation_fail_stopped(operation, DV_DEVICE_FAIL_PLUGIN_PRESTART,
                                                PRE_START_FAILED);
    devices = DV_NEW_ARRAY(operation->scratch, struct dv_device *, held->n_holdings);
    for (size_t i = 0; i < held->n_holdings; i++)
        devices[i] = held->holdings[i].device;
    dv_device_operation_call(operation, DV_DEVICE_ASK_PRESTART, plugin, devices, held->n_holdings);
    return false;
}

/* Handles one limit. True: it is done with. */
bool dv_device_pre_start_limit(struct dv_device_operation *operation,
                               const struct dv_device_limit *limit)
{
    if (limit->amount == 0 || !dv_device_operation_is_for_plugins(operation, limit))
        return true;
    dv_device_operation_use_resource(operation,
                                     dv_device_resource_find(operation->state, limit->resource));
    if (operation->resource->n_plugins == 0 && !operation->resource->is_stopped)
        return dv_device_operation_fail(
            operation, DV_DEVICE_FAIL_NO_ENDPOINT,
            "endpoint not found in cache for a registered resource: %.*s",
            DV_FMT(operation->resource->name));
    if (operation->resource->has_options && operation->resource->options.needs_pre_start)
        return call_pre_start(operation);
    note_unrecorded(operation);
    return true;
}

void dv_device_pre_start_answered(struct dv_device_operation *operation, dv_str response)
{
    (void)response; /* PreStartContainerResponse has no fields */
    note_unrecorded(operation);
    operation->at++;
    dv_device_operation_go_on(operation);
}

void dv_device_pre_start_refused(struct dv_device_operation *operation, const struct dv_err *status)
{
    (void)dv_device_operation_fail_status(operation, DV_DEVICE_FAIL_PLUGIN_PRESTART,
                                          PRE_START_FAILED, status);
}

/* conditions.c - devices that have to be made ready between allocation and binding (KEP-5007,
 * binding conditions). The driver says so in the claim's status; bind.c waits until all conditions
 * are true, and undoes the decision when one of the failure conditions is. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

static const struct dv_api_allocated_device_status *
status_of(const struct dv_api_resource_claim *claim,
          const struct dv_api_device_request_allocation_result *result)
{
    for (size_t i = 0; i < claim->status.n_devices; i++) {
        const struct dv_api_allocated_device_status *status = &claim->status.devices[i];

        if (dv_str_eq(status->driver, result->driver) && dv_str_eq(status->pool, result->pool) &&
            dv_str_eq(status->device, result->device))
            return status;
    }
    return NULL;
}

static bool is_true(const struct dv_api_allocated_device_status *status, dv_str type)
{
    for (size_t i = 0; status && i < status->n_conditions; i++)
        if (dv_str_eq(status->conditions[i].type, type))
            return dv_str_eq(status->conditions[i].status, DV_STR("True"));
    return false;
}

bool dv_sched_conditions_hold(const struct dv_api_resource_claim *claim)
{
    const struct dv_api_allocation_result *allocation = claim->status.allocation;

    for (size_t i = 0; allocation && i < allocation->devices.n_results; i++) {
        const struct dv_api_device_request_allocation_result *result =
            &allocation->devices.results[i];

        for (size_t j = 0; j < result->n_binding_conditions; j++)
            if (!is_true(status_of(claim, result), result->binding_conditions[j]))
                return false;
    }
    return true;
}

bool dv_sched_conditions_have_failed(const struct dv_api_resource_claim *claim, struct dv_err *err)
{
    const struct dv_api_allocation_result *allocation = claim->status.allocation;

    for (size_t i = 0; allocation && i < allocation->devices.n_results; i++) {
        const struct dv_api_device_request_allocation_result *result =
            &allocation->devices.results[i];

        for (size_t j = 0; j < result->n_binding_failure_conditions; j++)
            if (is_true(status_of(claim, result), result->binding_failure_conditions[j])) {
                (void)dv_fail(err, DV_ABORTED,
                              "device binding failed: %.*s of device %.*s/%.*s/%.*s is true",
                              DV_FMT(result->binding_failure_conditions[j]), DV_FMT(result->driver),
                              DV_FMT(result->pool), DV_FMT(result->device));
                return true;
            }
    }
    return false;
}

bool dv_sched_conditions_failed(const struct dv_sched *sched,
                                const struct dv_api_resource_claim *claim, struct dv_err *err)
{
    const struct dv_api_allocation_result *allocation = claim->status.allocation;
    int64_t timeout_s = (int64_t)(sched->options.binding_timeout_ms / 1000);

    if (!(sched->options.gates & DV_GATE_BINDING_CONDITIONS) || !allocation)
        return false;
    if (dv_sched_conditions_have_failed(claim, err))
        return true;
    /* Without a timestamp it is not known since when the devices are being made ready: then no
     * timeout applies here. */
    if (!allocation->allocation_timestamp.is_set || dv_sched_conditions_hold(claim) ||
        dv_sched_now(sched).seconds <= allocation->allocation_timestamp.seconds + timeout_s)
        return false;
    return !dv_fail(err, DV_DEADLINE_EXCEEDED, "device binding timeout: claim %.*s",
                    DV_FMT(claim->metadata.name));
}

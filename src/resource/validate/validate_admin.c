/* validate_admin.c - admin access to devices: only where the namespace says that it may be asked
 * for. Such access is to devices that others use, so that the right to make claims must not be
 * enough. */
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "resource/resource.h"
#include "resource/validate/problem.h"

#define ADMIN_LABEL "resource.kubernetes.io/admin-access"

static bool is_allowed_in(const struct dv_api_object_meta *namespace)
{
    const struct dv_str_entry *label =
        namespace ? dv_entry_find(namespace->labels, namespace->n_labels, DV_STR(ADMIN_LABEL))
                  : NULL;

    return label && dv_str_eq(label->value, DV_STR("true"));
}

static void refuse(struct dv_problems *problems, const struct dv_field_path *item)
{
    dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, item, "adminAccess", dv_bad_none(),
                   "admin access to devices requires the `" ADMIN_LABEL
                   ": true` label on the containing namespace");
}

/* The index of the first request that asks for admin access, n_requests when none does;
 * alternatives cannot. */
static size_t find_request(const struct dv_api_device_claim *devices)
{
    size_t i = 0;

    for (; i < devices->n_requests; i++) {
        const struct dv_api_exact_device_request *exact = devices->requests[i].exactly;

        if (exact && exact->admin_access && *exact->admin_access)
            break;
    }
    return i;
}

static size_t find_result(const struct dv_api_allocation_result *allocation)
{
    size_t i = 0;

    while (allocation && i < allocation->devices.n_results &&
           !(allocation->devices.results[i].admin_access &&
             *allocation->devices.results[i].admin_access))
        i++;
    return i;
}

static bool has_result(const struct dv_api_allocation_result *allocation)
{
    return allocation && find_result(allocation) < allocation->devices.n_results;
}

static void check_requests(struct dv_problems *problems, const struct dv_api_device_claim *devices,
                           const struct dv_field_path *spec)
{
    struct dv_field_path devices_path = dv_path_name(spec, "devices");
    struct dv_field_path path = dv_path_name(&devices_path, "requests");
    size_t at = find_request(devices);
    struct dv_field_path item = dv_path_index(&path, at);

    if (at < devices->n_requests)
        refuse(problems, &item);
}

/* Checks only results that are new: access that was granted before stays. */
static void check_results(struct dv_problems *problems, const struct dv_api_resource_claim *claim,
                          const struct dv_api_resource_claim *old)
{
    struct dv_field_path status = dv_path_name(NULL, "status");
    struct dv_field_path allocation = dv_path_name(&status, "allocation");
    struct dv_field_path devices = dv_path_name(&allocation, "devices");
    struct dv_field_path path = dv_path_name(&devices, "results");
    struct dv_field_path item = dv_path_index(&path, find_result(claim->status.allocation));

    if (has_result(claim->status.allocation) && !has_result(old->status.allocation))
        refuse(problems, &item);
}

void dv_validate_admin_access(const struct dv_validation *what,
                              const struct dv_api_object_meta *namespace,
                              struct dv_problems *problems)
{
    struct dv_field_path spec = dv_path_name(NULL, "spec");
    struct dv_field_path inner = dv_path_name(&spec, "spec");

    if (is_allowed_in(namespace))
        return;
    if (what->kind->id == DV_KIND_TEMPLATE && what->operation == DV_CREATE)
        check_requests(
            problems,
            &((const struct dv_api_resource_claim_template *)what->value)->spec.spec.devices,
            &inner);
    if (what->kind->id != DV_KIND_CLAIM)
        return;
    if (what->operation == DV_CREATE)
        check_requests(problems, &((const struct dv_api_resource_claim *)what->value)->spec.devices,
                       &spec);
    else if (what->operation == DV_UPDATE_STATUS)
        check_results(problems, what->value, what->old);
}

/* auth_write.c - what users who are confined to a node may change in an object. */
#include "serve/auth.h"

#include "resource/resource.h"
#include "resource/select.h"

struct change {
    const struct dv_object *old;
    const void *value;
    const struct dv_object *node;
    dv_str node_name;
    dv_str driver; /* empty: a node's own program */
    struct dv_arena *arena;
    dv_str *reason;
};

static bool refuse(const struct change *change, dv_str reason)
{
    *change->reason = reason;
    return false;
}

/* ---- slices ---- */

static bool is_own_slice(const struct change *change, const struct dv_api_resource_slice *slice)
{
    if (!dv_str_eq(slice->spec.node_name, change->node_name))
        return refuse(change,
                      dv_str_printf(change->arena,
                                    "the slice belongs to node \"%.*s\", not to "
                                    "\"%.*s\"",
                                    DV_FMT(slice->spec.node_name), DV_FMT(change->node_name)));
    if (change->driver.n && !dv_str_eq(slice->spec.driver, change->driver))
        return refuse(change, dv_str_printf(change->arena,
                                            "the slice belongs to driver \"%.*s\", not to "
                                            "\"%.*s\"",
                                            DV_FMT(slice->spec.driver), DV_FMT(change->driver)));
    return true;
}

static bool check_slice(const struct change *change)
{
    return (!change->old || is_own_slice(change, change->old->value)) &&
           (!change->value || is_own_slice(change, change->value));
}

/* ---- the status of claims ---- */

static bool is_allocated_here(const struct change *change,
                              const struct dv_api_resource_claim_status *status)
{
    const struct dv_api_allocation_result *allocation = status->allocation;
    const struct dv_api_object_meta *meta = change->node ? change->node->meta : NULL;
    bool has_driver = false;

    for (size_t i = 0; allocation && i < allocation->devices.n_results; i++)
        if (dv_str_eq(allocation->devices.results[i].driver, change->driver))
            has_driver = true;
    return has_driver && allocation->node_selector &&
           dv_node_selector_matches(allocation->node_selector, change->node_name,
                                    meta ? meta->labels : NULL, meta ? meta->n_labels : 0);
}

static const struct dv_api_allocated_device_status *
find_device(const struct dv_api_resource_claim_status *status,
            const struct dv_api_allocated_device_status *like)
{
    for (size_t i = 0; i < status->n_devices; i++) {
        const struct dv_api_allocated_device_status *device = &status->devices[i];

        if (dv_str_eq(device->driver, like->driver) && dv_str_eq(device->pool, like->pool) &&
            dv_str_eq(device->device, like->device) && dv_str_eq(device->share_id, like->share_id))
            return device;
    }
    return NULL;
}

/* Whether each device of another driver in `a` is the same in `b`. */
static bool has_others_of(const struct change *change, const struct dv_api_resource_claim_status *a,
                          const struct dv_api_resource_claim_status *b)
{
    for (size_t i = 0; i < a->n_devices; i++) {
        const struct dv_api_allocated_device_status *device = &a->devices[i];
        const struct dv_api_allocated_device_status *other;

        if (dv_str_eq(device->driver, change->driver))
            continue;
        other = find_device(b, device);
        if (!other || !dv_message_eq(&dv_message_allocated_device_status, device, other))
            return refuse(change,
                          dv_str_printf(change->arena,
                                        "changes of status.devices of driver \"%.*s\" are not "
                                        "allowed",
                                        DV_FMT(device->driver)));
    }
    return true;
}

static bool check_claim_status(const struct change *change)
{
    const struct dv_api_resource_claim *old = change->old ? change->old->value : NULL;
    const struct dv_api_resource_claim *claim = change->value;
    struct dv_api_resource_claim_status was, is;

    if (!old || !claim)
        return refuse(change, DV_STR("only the status of a claim may be changed"));
    if (!is_allocated_here(change, &old->status))
        return refuse(change, dv_str_printf(change->arena,
                                            "the claim is not allocated to driver \"%.*s\" on node "
                                            "\"%.*s\"",
                                            DV_FMT(change->driver), DV_FMT(change->node_name)));
    was = old->status;
    is = claim->status;
    was.n_devices = is.n_devices = 0;
    was.devices = is.devices = NULL;
    if (!dv_message_eq(&dv_message_resource_claim_status, &was, &is))
        return refuse(change,
                      DV_STR("status.allocation and status.reservedFor are not the driver's"));
    return has_others_of(change, &old->status, &claim->status) &&
           has_others_of(change, &claim->status, &old->status);
}

/* ---- pods and nodes ---- */

static bool check_pod(const struct change *change)
{
    const struct dv_api_pod *pod = change->value ? change->value
                                   : change->old ? change->old->value
                                                 : NULL;

    if (pod && !dv_str_eq(pod->spec.node_name, change->node_name))
        return refuse(change, dv_str_printf(change->arena, "the pod is not of node \"%.*s\"",
                                            DV_FMT(change->node_name)));
    return true;
}

static bool check_node(const struct change *change)
{
    const struct dv_api_node *node = change->value;

    if (node && !dv_str_eq(node->metadata.name, change->node_name))
        return refuse(change,
                      dv_str_printf(change->arena,
                                    "node \"%.*s\" is not allowed to modify "
                                    "node \"%.*s\"",
                                    DV_FMT(change->node_name), DV_FMT(node->metadata.name)));
    return true;
}

/* The name of a new one is only in its body. */
static bool check_lease(const struct change *change)
{
    const struct dv_api_lease *lease = change->value;

    if (lease && !dv_str_eq(lease->metadata.name, change->node_name))
        return refuse(change, DV_STR("can only access node lease with the same name as the "
                                     "requesting node"));
    return true;
}

bool dv_auth_check_write(const struct dv_api_user_info *user, const struct dv_auth_request *request,
                         const struct dv_object *old, const void *value,
                         const struct dv_object *node, struct dv_arena *arena, dv_str *reason)
{
    struct change change = {old, value, node, {0}, {0}, arena, reason};
    enum dv_auth_scope scope = dv_auth_scope(user, &change.node_name, &change.driver);

    *reason = DV_STR_NONE;
    if (scope != DV_SCOPE_NODE && scope != DV_SCOPE_DRIVER)
        return true;
    if (dv_str_eq(request->resource, DV_STR("resourceslices")))
        return check_slice(&change);
    if (dv_str_eq(request->resource, DV_STR("resourceclaims")))
        return check_claim_status(&change);
    if (dv_str_eq(request->resource, DV_STR("pods")) && !request->subresource.n)
        return check_pod(&change);
    if (dv_str_eq(request->resource, DV_STR("nodes")))
        return check_node(&change);
    if (dv_str_eq(request->resource, DV_STR("leases")))
        return check_lease(&change);
    return true;
}

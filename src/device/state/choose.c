/* choose.c - which devices a container gets. */
#include "base/arena.h"
#include "base/str.h"
#include "device/state/device_operation.h"
#include "topology/topology.h"

/* -- Taking --------------------------------------------------------------------------------- */

static void take(struct dv_device_operation *operation, struct dv_device *device)
{
    device->n_reserved++;
    dv_device_refresh(device);
    *dv_vec_add(&operation->taken) = device;
    operation->n_needed--;
}

static enum dv_numa_side side_of(const struct dv_device_operation *operation,
                                 const struct dv_device_nodes *nodes)
{
    return dv_topology_side(&nodes->place, &operation->request.affinity);
}

/* Takes what init containers have lent; their health is not looked at, as in the reference. */
static void take_lent(struct dv_device_operation *operation)
{
    struct dv_link *link;

    DV_LIST_EACH (&operation->pod->lent, link) {
        struct dv_device *device = DV_CONTAINER(link, struct dv_device, in_lender);

        if (operation->n_needed == 0)
            return;
        if (device->resource == operation->resource && dv_device_is_lendable(device))
            take(operation, device);
    }
}

/* Takes free devices on one side of the affinity, in their order of choice. */
static void take_side(struct dv_device_operation *operation, enum dv_numa_side side)
{
    const struct dv_device_resource *resource = operation->resource;

    for (size_t i = 0; i < resource->groups.n && operation->n_needed > 0; i++) {
        const struct dv_device_nodes *nodes = resource->groups.v[i];
        size_t rank;

        if (nodes->n_free == 0 || side_of(operation, nodes) != side)
            continue;
        while (operation->n_needed > 0 &&
               (rank = dv_device_bits_next(&resource->free_ranks, nodes->begin)) < nodes->end)
            take(operation, resource->ranked.v[rank]);
    }
}

/* Takes those that the plugin names and that are free, in the plugin's order. */
static void take_named(struct dv_device_operation *operation, const dv_str *ids, size_t n_ids)
{
    for (size_t i = 0; i < n_ids && operation->n_needed > 0; i++) {
        struct dv_device *device = dv_map_get(&operation->resource->devices, ids[i]);

        if (device && device->is_free &&
            (!operation->is_aligned_only || side_of(operation, device->nodes) == DV_NUMA_ALIGNED))
            take(operation, device);
    }
}

/* -- Asking --------------------------------------------------------------------------------- */

static uint64_t count_aligned(const struct dv_device_operation *operation)
{
    uint64_t n = 0;

    for (size_t i = 0; i < operation->resource->groups.n; i++)
        if (side_of(operation, operation->resource->groups.v[i]) == DV_NUMA_ALIGNED)
            n += operation->resource->groups.v[i]->n_free;
    return n;
}

/* Collects what was taken, and all free devices that may be chosen. */
static size_t gather_candidates(struct dv_device_operation *operation,
                                struct dv_device ***candidates)
{
    const struct dv_device_resource *resource = operation->resource;
    struct dv_device **v =
        DV_NEW_ARRAY(operation->scratch, struct dv_device *, operation->taken.n + resource->n_free);
    size_t n = 0;

    for (size_t i = 0; i < operation->taken.n; i++)
        v[n++] = operation->taken.v[i];
    for (size_t i = 0; i < resource->groups.n; i++) {
        const struct dv_device_nodes *nodes = resource->groups.v[i];

        if (operation->is_aligned_only && side_of(operation, nodes) != DV_NUMA_ALIGNED)
            continue;
        for (size_t rank = dv_device_bits_next(&resource->free_ranks, nodes->begin);
             rank < nodes->end; rank = dv_device_bits_next(&resource->free_ranks, rank + 1))
            v[n++] = resource->ranked.v[rank];
    }
    *candidates = v;
    return n;
}

static enum dv_device_choice ask(struct dv_device_operation *operation)
{
    const struct dv_device_resource *resource = operation->resource;
    const struct dv_device_plugin *plugin = dv_device_resource_plugin(resource);
    struct dv_device **candidates;
    size_t n;

    if (!plugin && !resource->is_stopped) {
        (void)dv_device_operation_fail(
            operation, DV_DEVICE_FAIL_NO_ENDPOINT,
            "endpoint not found in cache for a registered resource: %.*s", DV_FMT(resource->name));
        return DV_DEVICE_CHOICE_FAILED;
    }
    if (!plugin || !resource->options.has_preference)
        return dv_device_choose_preferred(operation, NULL, 0);
    n = gather_candidates(operation, &candidates);
    operation->step = (struct dv_device_step){
        .kind = DV_DEVICE_ASK_PREFERRED,
        .resource = dv_str_copy(resource->name, operation->scratch),
        .socket = dv_str_copy(plugin->socket, operation->scratch),
        .ids = dv_device_operation_copy_ids(operation, candidates, n),
        .n_ids = n,
        .must_include =
            dv_device_operation_copy_ids(operation, operation->taken.v, operation->taken.n),
        .n_must_include = operation->taken.n,
        .size = operation->n_required < INT32_MAX ? (int32_t)operation->n_required : INT32_MAX,
    };
    return DV_DEVICE_CHOICE_ASKS;
}

enum dv_device_choice dv_device_choose_preferred(struct dv_device_operation *operation,
                                                 const dv_str *ids, size_t n_ids)
{
    /* Other operations, lists and plugins may have been here since the plugin was asked, so this
     * looks at what is free now; after what the reference would do, whatever else is there. */
    take_named(operation, ids, n_ids);
    take_side(operation, DV_NUMA_ALIGNED);
    if (!operation->is_aligned_only) {
        take_side(operation, DV_NUMA_UNALIGNED);
        take_side(operation, DV_NUMA_NO_SIDE);
    }
    if (operation->n_needed == 0)
        return DV_DEVICE_CHOSEN;
    (void)dv_device_operation_fail(operation, DV_DEVICE_FAIL_ALLOCATED_LESS,
                                   "unexpectedly allocated less resources than required. "
                                   "Requested: %llu, Got: %zu",
                                   (unsigned long long)operation->n_required, operation->taken.n);
    return DV_DEVICE_CHOICE_FAILED;
}

/* -- Choosing ------------------------------------------------------------------------------- */

static bool all_healthy(const struct dv_device_held *held)
{
    for (size_t i = 0; held && i < held->n_holdings; i++)
        if (!dv_device_is_healthy_now(held->holdings[i].device))
            return false;
    return true;
}

/* Checks what is held and offered. These checks come first even when nothing is needed, so that no
 * pod starts after a reboot before its plugin is back. */
static bool check_offer(struct dv_device_operation *operation, const struct dv_device_held *held)
{
    const struct dv_device_resource *resource = operation->resource;

    if (!resource->has_healthy)
        return dv_device_operation_fail(operation, DV_DEVICE_FAIL_UNREGISTERED,
                                        "cannot allocate unregistered device %.*s",
                                        DV_FMT(resource->name));
    if (dv_device_resource_n_healthy(resource) == 0)
        return dv_device_operation_fail(
            operation, DV_DEVICE_FAIL_NO_HEALTHY_DEVICES,
            "no healthy devices present; cannot allocate unhealthy devices %.*s",
            DV_FMT(resource->name));
    if (!all_healthy(held))
        return dv_device_operation_fail(operation, DV_DEVICE_FAIL_ALLOCATED_UNHEALTHY,
                                        "previously allocated devices are no longer healthy; "
                                        "cannot allocate unhealthy devices %.*s",
                                        DV_FMT(resource->name));
    return true;
}

static enum dv_device_choice choose_needed(struct dv_device_operation *operation)
{
    struct dv_device_resource *resource = operation->resource;
    uint64_t n_aligned;

    resource->has_allocated = true;
    take_lent(operation);
    if (operation->n_needed == 0)
        return DV_DEVICE_CHOSEN;
    if (resource->n_free < operation->n_needed) {
        (void)dv_device_operation_fail(
            operation, DV_DEVICE_FAIL_UNAVAILABLE,
            "requested number of devices unavailable for %.*s. Requested: %llu, Available: %zu",
            DV_FMT(resource->name), (unsigned long long)operation->n_needed, resource->n_free);
        return DV_DEVICE_CHOICE_FAILED;
    }
    n_aligned = count_aligned(operation);
    operation->is_aligned_only = operation->n_needed < n_aligned;
    if (!operation->is_aligned_only)
        take_side(operation, DV_NUMA_ALIGNED);
    return operation->n_needed == 0 ? DV_DEVICE_CHOSEN : ask(operation);
}

enum dv_device_choice dv_device_choose(struct dv_device_operation *operation,
                                       const struct dv_device_limit *limit)
{
    const struct dv_device_request *request = &operation->request;
    const struct dv_device_held *held = dv_device_held_find(
        operation->state, operation->pod, request->container, operation->resource);

    operation->n_required = (uint64_t)limit->amount;
    operation->n_needed = held ? 0 : operation->n_required;
    if (held && held->n_holdings != operation->n_required) {
        (void)dv_device_operation_fail(
            operation, DV_DEVICE_FAIL_CHANGED_REQUEST,
            "pod \"%.*s\" container \"%.*s\" changed request for resource \"%.*s\" "
            "from %zu to %llu",
            DV_FMT(request->pod_uid), DV_FMT(request->container), DV_FMT(operation->resource->name),
            held->n_holdings, (unsigned long long)operation->n_required);
        return DV_DEVICE_CHOICE_FAILED;
    }
    if (!operation->state->is_ready &&
        dv_device_is_running(operation->state, request->pod_uid, request->container))
        return DV_DEVICE_CHOSE_NOTHING;
    if (!check_offer(operation, held))
        return DV_DEVICE_CHOICE_FAILED;
    return operation->n_needed == 0 ? DV_DEVICE_CHOSE_NOTHING : choose_needed(operation);
}

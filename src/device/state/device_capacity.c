/* device_capacity.c - what the node reports: how many devices, which, and their health. */
#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "device/state/device_state.h"

static bool is_reported(const struct dv_device_resource *resource)
{
    return resource->has_healthy || resource->has_unhealthy;
}

/* The time when the resource's grace period is over; UINT64_MAX: it has a plugin. */
static uint64_t removal_ns(const struct dv_device_resource *resource)
{
    if (resource->n_plugins > 0)
        return UINT64_MAX;
    if (!resource->is_stopped)
        return 0; /* it has a list and never had a plugin, so there is no grace period */
    return dv_u64_add_clamped(resource->stopped_ns, DV_DEVICE_GRACE_NS + 1);
}

static void expire(struct dv_device_resource *resource)
{
    resource->is_stopped = resource->has_options = false;
    resource->has_healthy = resource->has_unhealthy = false;
    resource->sets = DV_DEVICE_SETS_EMPTY;
    dv_device_resource_drop(resource);
}

void dv_device_capacity(struct dv_device_state *state, uint64_t now_ns, struct dv_arena *arena,
                        struct dv_device_capacities *capacities)
{
    struct dv_device_resource **resources;
    size_t n = dv_device_resources_sorted(state, arena, &resources);
    struct dv_device_capacity *v = DV_NEW_ARRAY(arena, struct dv_device_capacity, n);
    dv_str *removed = DV_NEW_ARRAY(arena, dv_str, n);

    *capacities = (struct dv_device_capacities){.v = v, .removed = removed};
    for (size_t i = 0; i < n; i++) {
        struct dv_device_resource *resource = resources[i];
        size_t n_healthy = dv_device_resource_n_healthy(resource);

        if (!is_reported(resource))
            continue;
        if (now_ns >= removal_ns(resource)) {
            removed[capacities->n_removed++] = dv_str_copy(resource->name, arena);
            expire(resource);
            continue;
        }
        v[capacities->n++] = (struct dv_device_capacity){
            .resource = resource->name,
            .capacity = n_healthy + dv_device_resource_n_unhealthy(resource),
            .allocatable = n_healthy,
            .has_allocatable = resource->has_healthy,
        };
    }
}

uint64_t dv_device_next_removal_ns(const struct dv_device_state *state)
{
    const struct dv_map_entry *entry;
    uint64_t first_ns = UINT64_MAX;

    for (size_t at = 0; (entry = dv_map_next(&state->resources, &at)) != NULL;)
        if (is_reported(entry->value))
            first_ns = dv_u64_min(first_ns, removal_ns(entry->value));
    return first_ns;
}

bool dv_device_should_reset_capacity(const dv_str *names, size_t n_names)
{
    for (size_t i = 0; i < n_names; i++)
        if (!dv_str_starts_with(names[i], DV_STR(".")))
            return false;
    return true;
}

size_t dv_device_allocatable(const struct dv_device_state *state, struct dv_arena *arena,
                             const struct dv_device_healthy **devices)
{
    struct dv_device_resource **resources;
    size_t n_resources = dv_device_resources_sorted(state, arena, &resources);
    struct dv_device_healthy *v;
    size_t n = 0;

    for (size_t i = 0; i < n_resources; i++)
        n += dv_device_resource_n_healthy(resources[i]);
    v = DV_NEW_ARRAY(arena, struct dv_device_healthy, n);
    n = 0;
    for (size_t i = 0; i < n_resources; i++) {
        for (size_t k = 0; k < resources[i]->ranked.n; k++) {
            const struct dv_device *device = resources[i]->ranked.v[k];

            if (!dv_device_is_healthy_now(device))
                continue;
            v[n++] = (struct dv_device_healthy){
                .resource = resources[i]->name,
                .id = device->id,
                .nodes = device->nodes->v,
                .n_nodes = device->nodes->n,
                .has_topology = device->nodes->has_topology,
            };
        }
    }
    *devices = v;
    return n;
}

static int64_t amount_of(const struct dv_device_resource *resource)
{
    return (int64_t)resource->n_taken;
}

/* Raises the amount of this resource; false: it is not in the list. */
static bool raise(struct dv_device_amount *amounts, size_t n,
                  const struct dv_device_resource *resource)
{
    for (size_t i = 0; i < n; i++) {
        if (!dv_str_eq(amounts[i].resource, resource->name))
            continue;
        if (amounts[i].amount < amount_of(resource))
            amounts[i].amount = amount_of(resource);
        return true;
    }
    return false;
}

size_t dv_device_raise_amounts(const struct dv_device_state *state, dv_str pod_uid,
                               const struct dv_device_amount *amounts, size_t n_amounts,
                               struct dv_arena *arena, const struct dv_device_amount **raised)
{
    const struct dv_device_pod *pod = dv_device_pod_find(state, pod_uid);
    struct dv_device_resource **resources;
    size_t n_resources = dv_device_resources_sorted(state, arena, &resources);
    struct dv_device_amount *v =
        DV_NEW_ARRAY(arena, struct dv_device_amount, n_amounts + n_resources);
    size_t n = n_amounts;

    for (size_t i = 0; i < n_amounts; i++)
        v[i] = amounts[i];
    for (size_t i = 0; pod && !dv_list_is_empty(&pod->held) && i < n_resources; i++)
        if (resources[i]->has_allocated && !raise(v, n_amounts, resources[i]))
            v[n++] = (struct dv_device_amount){resources[i]->name, amount_of(resources[i])};
    *raised = v;
    return n;
}

static void describe_status(const struct dv_device_held *held, struct dv_arena *arena,
                            struct dv_device_status *status)
{
    dv_str *ids = DV_NEW_ARRAY(arena, dv_str, held->n_holdings);
    bool *is_healthy = DV_NEW_ARRAY(arena, bool, held->n_holdings);

    for (size_t i = 0; i < held->n_holdings; i++) {
        const struct dv_device *device = held->holdings[i].device;

        ids[i] = device->id;
        is_healthy[i] = !device->is_listed || device->is_healthy;
    }
    *status = (struct dv_device_status){
        .resource = held->resource->name,
        .ids = ids,
        .is_healthy = is_healthy,
        .n_ids = held->n_holdings,
    };
}

size_t dv_device_status(const struct dv_device_state *state, dv_str pod_uid, dv_str container,
                        struct dv_arena *arena, const struct dv_device_status **statuses)
{
    struct dv_device_held **held;
    size_t n = dv_device_held_of(state, pod_uid, container, arena, &held);
    struct dv_device_status *v = DV_NEW_ARRAY(arena, struct dv_device_status, n);

    for (size_t i = 0; i < n; i++)
        describe_status(held[i], arena, &v[i]);
    *statuses = v;
    return n;
}

/* agent_outside.c - devices that are held and that no pod of the API accounts for.
 *
 * A scheduler knows what a node has and which pods are on it. What `davit admit` gave away, and
 * what a pod still holds that the API has forgotten or knows to have ended, it cannot know: so that
 * is no part of what the Node object says can be allocated. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/agent.h"
#include "pod/agent/agent_state.h"
#include "pod/pod.h"
#include "resource/resource.h"

/* The devices of one resource that are held outside the API; in the arena of the call. */
struct held {
    size_t n;
    struct dv_map ids; /* an init container may pass its devices on: each counts once */
};

static bool is_accounted_for(const struct dv_agent *agent, dv_str uid)
{
    const struct dv_agent_pod *pod = dv_map_get(&agent->pods, uid);
    const struct dv_api_pod *value = pod && pod->object ? pod->object->value : NULL;

    return value && !dv_pod_is_terminal(value);
}

static void add_status(struct dv_map *all, const struct dv_device_status *status,
                       struct dv_arena *arena)
{
    struct held *held = dv_map_get(all, status->resource);

    if (!held) {
        held = DV_NEW(arena, struct held);
        dv_map_init(&held->ids);
        (void)dv_map_set(all, dv_str_copy(status->resource, arena), held);
    }
    for (size_t i = 0; i < status->n_ids; i++) {
        if (!status->is_healthy[i] || dv_map_get(&held->ids, status->ids[i]))
            continue; /* a device that is not healthy is not allocatable anyway */
        (void)dv_map_set(&held->ids, dv_str_copy(status->ids[i], arena), held);
        held->n++;
    }
}

static void add_pod(const struct dv_agent *agent, const struct dv_pod_spec *spec,
                    struct dv_arena *arena, struct dv_map *all)
{
    const struct dv_device_state *state = dv_device_manager_state(agent->options.devices);

    for (size_t i = 0; i < spec->n_containers; i++) {
        const struct dv_device_status *statuses;
        size_t n =
            dv_device_status(state, spec->ref.uid, spec->containers[i].name, arena, &statuses);

        for (size_t k = 0; k < n; k++)
            add_status(all, &statuses[k], arena);
    }
}

/* How many healthy devices of the resource are taken. No more than these are subtracted: a device
 * that its plugin lists no more may be held outside the API too, and is not allocatable anyway. */
static size_t n_taken(const struct dv_agent *agent, dv_str resource)
{
    struct dv_device_resource_info info;

    if (!dv_device_find(dv_device_manager_state(agent->options.devices), resource, &info) ||
        info.n_healthy < info.n_free)
        return 0;
    return info.n_healthy - info.n_free;
}

void dv_agent_subtract_outside(const struct dv_agent *agent, struct dv_arena *arena,
                               struct dv_device_capacities *capacities)
{
    const struct dv_map_entry *entry;
    struct dv_device_capacity *less;
    struct dv_pod_view view;
    struct dv_map all;

    if (!agent->is_synced || agent->options.is_strict)
        /* which pods are the API's is not known yet; or strictly, where the reference subtracts
         * nothing */
        return;
    dv_map_init(&all);
    for (size_t at = 0; dv_pods_next(agent->options.pods, &at, &view);)
        if (!is_accounted_for(agent, view.spec->ref.uid))
            add_pod(agent, view.spec, arena, &all);
    less = DV_NEW_ARRAY(arena, struct dv_device_capacity, capacities->n);
    for (size_t i = 0; i < capacities->n; i++) {
        const struct held *held = dv_map_get(&all, capacities->v[i].resource);
        size_t n = held ? dv_size_min(held->n, n_taken(agent, capacities->v[i].resource)) : 0;

        less[i] = capacities->v[i];
        less[i].allocatable -= dv_size_min(n, less[i].allocatable);
    }
    capacities->v = less;
    for (size_t at = 0; (entry = dv_map_next(&all, &at)) != NULL;)
        dv_map_fini(&((struct held *)entry->value)->ids);
    dv_map_fini(&all);
}

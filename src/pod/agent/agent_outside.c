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
#include "pod/agent/outside.h"
#include "pod/pod.h"
#include "resource/resource.h"

bool dv_agent_pod_is_accounted_for(const struct dv_agent_pod *pod)
{
    const struct dv_api_pod *value = pod && pod->object ? pod->object->value : NULL;

    return value && !dv_pod_is_terminal(value);
}

/* Whether there is anything to count: which pods are the API's may not be known yet; and strictly,
 * nothing is subtracted, as the reference does. */
static bool is_counted(const struct dv_agent *agent)
{
    return agent->is_synced && !agent->options.is_strict;
}

void dv_agent_note_holder(struct dv_agent *agent, dv_str uid)
{
    const struct dv_device_state *state = dv_device_manager_state(agent->options.devices);
    const struct dv_pod_ref ref = {.uid = uid};
    struct dv_pod_view view;

    if (is_counted(agent) &&
        dv_outside_set(agent->outside, state, uid,
                       dv_pods_find(agent->options.pods, &ref, &view) &&
                           !dv_agent_pod_is_accounted_for(dv_map_get(&agent->pods, uid))))
        agent->node.is_dirty = true;
}

void dv_agent_note_holders(struct dv_agent *agent)
{
    struct dv_pod_view view;

    for (size_t at = 0; dv_pods_next(agent->options.pods, &at, &view);)
        dv_agent_note_holder(agent, view.spec->ref.uid);
}

void dv_agent_subtract_outside(struct dv_agent *agent, struct dv_arena *arena,
                               struct dv_device_capacities *capacities)
{
    const struct dv_device_state *state = dv_device_manager_state(agent->options.devices);
    struct dv_device_capacity *less = DV_NEW_ARRAY(arena, struct dv_device_capacity, capacities->n);

    for (size_t i = 0; i < capacities->n; i++) {
        size_t n = dv_outside_count(agent->outside, state, capacities->v[i].resource);

        less[i] = capacities->v[i];
        less[i].allocatable -= dv_size_min(n, less[i].allocatable);
    }
    capacities->v = less;
}

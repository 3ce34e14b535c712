/* agent_room.c - asks whether there is room on this node for a pod that is to be admitted. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "number/number.h"
#include "pod/agent.h"
#include "pod/agent/agent_fit.h"
#include "pod/agent/agent_state.h"
#include "pod/agent/agent_step.h"
#include "resource/resource.h"

/* Whether the pod takes room: it has been let in, if only to wait for devices, and has not
 * ended. */
static bool counts(const struct dv_agent_pod *pod)
{
    return pod->object && !dv_pod_is_terminal(pod->object->value) && pod->state != DV_AGENT_NEW &&
           pod->state != DV_AGENT_REFUSED && pod->state != DV_AGENT_RELEASED;
}

static void list_others(const struct dv_agent_pod *pod, struct dv_arena *arena,
                        struct dv_agent_fit *fit)
{
    const struct dv_agent *agent = pod->agent;
    const struct dv_api_pod **others =
        DV_NEW_ARRAY(arena, const struct dv_api_pod *, agent->pods.n);
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&agent->pods, &at)) != NULL;) {
        const struct dv_agent_pod *other = entry->value;

        if (other != pod && counts(other))
            others[fit->n_others++] = other->object->value;
    }
    fit->others = others;
}

static void list_held(const struct dv_agent *agent, struct dv_arena *arena,
                      struct dv_agent_fit *fit)
{
    const struct dv_api_node_status *status = &fit->node->status;
    struct dv_quantity_entry *held =
        DV_NEW_ARRAY(arena, struct dv_quantity_entry, status->n_allocatable);

    for (size_t i = 0; i < status->n_allocatable; i++) {
        struct dv_device_resource_info info;

        if (!dv_device_find(dv_device_manager_state(agent->options.devices),
                            status->allocatable[i].key, &info))
            continue;
        held[fit->n_held].key = status->allocatable[i].key;
        held[fit->n_held++].value =
            dv_quantity_from_i64((int64_t)info.n_allocated, DV_QUANTITY_DECIMAL_SI);
    }
    fit->held = held;
}

bool dv_agent_pod_fits(const struct dv_agent_pod *pod, struct dv_arena *arena,
                       struct dv_agent_misfit *misfit)
{
    const struct dv_agent *agent = pod->agent;
    const struct dv_object *node =
        agent->node.view ? dv_view_get(agent->node.view, DV_STR(""), agent->options.node_name)
                         : NULL;
    struct dv_agent_fit fit = {.pod = pod->object->value,
                               .counts_devices = agent->options.is_strict};

    if (!node)
        return true; /* nobody knows yet what there is */
    fit.node = node->value;
    list_others(pod, arena, &fit);
    list_held(agent, arena, &fit);
    return dv_agent_fits(&fit, arena, misfit);
}

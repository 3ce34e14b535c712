/* need.c - what a pod asks for and this node does not have: not yet, or not at all. */
#include "base/str.h"
#include "device/device.h"
#include "device/manager.h"
#include "pod/pod.h"
#include "pod/pods.h"

/* Whether a plugin of this resource is known and not there, or there and silent so far. */
static bool is_away(const struct dv_device_state *state, dv_str resource)
{
    struct dv_device_resource_info info;

    if (!dv_device_find(state, resource, &info))
        return false;
    return info.plugin == DV_DEVICE_STOPPED || info.plugin == DV_DEVICE_NOT_LISTED ||
           (info.plugin == DV_DEVICE_NO_PLUGIN && info.is_known);
}

static bool is_unknown(const struct dv_device_state *state, dv_str resource)
{
    struct dv_device_resource_info info;

    return !dv_device_find(state, resource, &info) || !info.is_known;
}

static bool find(const struct dv_pod *pod,
                 bool (*is_missing)(const struct dv_device_state *state, dv_str resource),
                 struct dv_pod_need *need)
{
    const struct dv_device_state *state = dv_devices_state(pod->pods->options.devices);

    for (size_t i = 0; i < pod->spec.n_containers; i++) {
        const struct dv_pod_container *container = &pod->spec.containers[i];

        for (size_t k = 0; k < container->n_limits; k++) {
            const struct dv_device_limit *limit = &container->limits[k];

            if (limit->amount == 0 || limit->is_claimed || !is_missing(state, limit->resource))
                continue;
            *need = (struct dv_pod_need){container->name, limit->resource};
            return true;
        }
    }
    return false;
}

bool dv_pod_find_away(const struct dv_pod *pod, struct dv_pod_need *need)
{
    return find(pod, is_away, need);
}

bool dv_pod_find_unknown(const struct dv_pod *pod, struct dv_pod_need *need)
{
    return find(pod, is_unknown, need);
}

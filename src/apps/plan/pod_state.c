#include "apps/plan/pod_state.h"

#include "base/str.h"
#include "resource/resource.h"

bool dv_pod_is_waiting(const struct dv_api_pod *pod)
{
    return pod->spec.node_name.n == 0;
}

bool dv_pod_is_available(const struct dv_api_pod *pod, int64_t min_ready_s, struct dv_time now)
{
    struct dv_time since = {0};

    if (!dv_pod_is_ready(pod, &since))
        return false;
    return min_ready_s == 0 || (since.is_set && since.seconds + min_ready_s <= now.seconds);
}

bool dv_pod_is_active(const struct dv_api_pod *pod)
{
    return !dv_pod_is_terminal(pod) && !pod->metadata.deletion_timestamp.is_set;
}

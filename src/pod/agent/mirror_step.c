#include "pod/agent/mirror_step.h"

/* Whether the API has a mirror that should not be there. While a pod ends whose file is gone, or
 * says something else, its mirror stays and shows how. */
static bool is_wrong(const struct dv_mirror_facts *facts)
{
    if (!facts->has_pod)
        return true;
    return facts->is_wanted && (!facts->is_same || facts->is_deleting);
}

enum dv_mirror_step dv_mirror_next(const struct dv_mirror_facts *facts)
{
    if (facts->is_writing || facts->is_pausing || !facts->is_settled)
        return DV_MIRROR_WAIT;
    if (facts->is_there)
        return is_wrong(facts) ? DV_MIRROR_REMOVE : DV_MIRROR_WAIT;
    if (facts->is_wanted)
        return facts->has_node ? DV_MIRROR_CREATE : DV_MIRROR_WAIT;
    return facts->has_pod ? DV_MIRROR_WAIT : DV_MIRROR_FORGET;
}

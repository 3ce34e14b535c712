#include "serve/kubelet/node_target.h"

#include "pod/agent.h"
#include "resource/resource.h"
#include "serve/kubelet/node_route.h"

bool dv_node_target_find(const struct dv_agent *agent, const struct dv_node_route *route,
                         size_t n_containers, struct dv_node_target *target)
{
    size_t n_after = route->n_segments - 3; /* the path's name, a namespace, a pod */
    const struct dv_object *pod =
        agent ? dv_agent_find_pod(agent, route->segments[1], route->segments[2]) : NULL;

    if (!pod || (n_after > n_containers && !dv_str_eq(pod->meta->uid, route->segments[3])))
        return false;
    target->pod = pod;
    target->container = n_containers > 0 ? route->segments[route->n_segments - 1] : DV_STR("");
    return true;
}

/* align.c - on which NUMA nodes a pod's devices are to be: their hints, merged under the policy. */
#include "base/arena.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"
#include "topology/topology.h"

static bool merge(const struct dv_pods *pods, const struct dv_hint_list *lists, size_t n_lists,
                  struct dv_topology_verdict *verdict, struct dv_err *err)
{
    return dv_topology_merge(pods->options.topology, pods->options.machine, lists, n_lists, verdict,
                             err);
}

bool dv_pod_align(const struct dv_pod *pod, struct dv_topology_verdict *verdict, struct dv_err *err)
{
    const struct dv_pods *pods = pod->pods;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_device_request *requests =
        DV_NEW_ARRAY(arena, struct dv_device_request, pod->spec.n_containers);
    const struct dv_hint_list *lists;
    size_t n_lists;

    for (size_t i = 0; i < pod->spec.n_containers; i++)
        requests[i] = dv_pod_request(pod, i);
    return dv_device_pod_hints(dv_devices_state(pods->options.devices), pods->options.machine,
                               requests, pod->spec.n_containers, arena, &lists, &n_lists, err) &&
           merge(pods, lists, n_lists, verdict, err);
}

bool dv_pod_align_container(const struct dv_pod *pod, size_t i_container,
                            struct dv_topology_verdict *verdict, struct dv_err *err)
{
    const struct dv_pods *pods = pod->pods;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_device_request request = dv_pod_request(pod, i_container);
    const struct dv_hint_list *lists;
    size_t n_lists;

    return dv_device_container_hints(dv_devices_state(pods->options.devices), pods->options.machine,
                                     &request, arena, &lists, &n_lists, err) &&
           merge(pods, lists, n_lists, verdict, err);
}

/* step_align.c - on which NUMA nodes a pod's devices are to be: their hints, merged under the
 * policy.
 */
#include "base/arena.h"
#include "base/err.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/admission/admission.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"
#include "topology/topology.h"

static bool merge(const struct dv_pods *pods, const struct dv_hint_list *lists, size_t n_lists,
                  struct dv_topology_verdict *verdict, struct dv_err *err)
{
    return dv_topology_merge(pods->options.topology, pods->options.machine, lists, n_lists, verdict,
                             err);
}

/* Finds the NUMA nodes for the whole pod, in pod scope. */
static bool align_pod(const struct dv_pod *pod, struct dv_topology_verdict *verdict,
                      struct dv_err *err)
{
    const struct dv_pods *pods = pod->pods;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_device_request *requests =
        DV_NEW_ARRAY(arena, struct dv_device_request, pod->spec.n_containers);
    const struct dv_hint_list *lists;
    size_t n_lists;

    for (size_t i = 0; i < pod->spec.n_containers; i++)
        requests[i] = dv_pod_request(pod, i);
    return dv_device_pod_hints(dv_device_manager_state(pods->options.devices),
                               pods->options.machine, requests, pod->spec.n_containers, arena,
                               &lists, &n_lists, err) &&
           merge(pods, lists, n_lists, verdict, err);
}

static bool align_container(const struct dv_pod *pod, size_t i_container,
                            struct dv_topology_verdict *verdict, struct dv_err *err)
{
    const struct dv_pods *pods = pod->pods;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_device_request request = dv_pod_request(pod, i_container);
    const struct dv_hint_list *lists;
    size_t n_lists;

    return dv_device_container_hints(dv_device_manager_state(pods->options.devices),
                                     pods->options.machine, &request, arena, &lists, &n_lists,
                                     err) &&
           merge(pods, lists, n_lists, verdict, err);
}

/* Keeps the affinity that was found, or refuses the pod. */
static enum dv_pod_outcome take(struct dv_pod_admission *admission, bool is_known,
                                const struct dv_topology_verdict *verdict, const struct dv_err *err)
{
    struct dv_pods *pods = admission->priv.op.pods;

    if (!is_known)
        return dv_admission_refuse_allocation(admission, err);
    if (!verdict->is_admitted) {
        dv_topology_count(pods->options.topology, DV_TOPOLOGY_REJECTED, &pods->counts);
        return dv_admission_refuse(
            admission, DV_POD_UNALIGNED, DV_STR(DV_TOPOLOGY_REJECTED_MESSAGE),
            !pods->options.is_strict && dv_pod_has_rivals(admission->priv.op.pod));
    }
    admission->priv.affinity = verdict->affinity;
    return DV_STEP_DONE;
}

enum dv_pod_outcome dv_admit_align_pod(struct dv_pod_operation *op)
{
    struct dv_topology_verdict verdict;
    struct dv_err err;
    bool is_known;

    if (op->pods->options.topology->scope != DV_TOPOLOGY_SCOPE_POD)
        return DV_STEP_DONE;
    is_known = align_pod(op->pod, &verdict, &err);
    return take(dv_admission_of(op), is_known, &verdict, &err);
}

enum dv_pod_outcome dv_admit_align_container(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);
    struct dv_topology_verdict verdict;
    struct dv_err err;
    bool is_known;

    if (op->pods->options.topology->scope != DV_TOPOLOGY_SCOPE_CONTAINER)
        return DV_STEP_DONE;
    is_known = align_container(op->pod, admission->priv.i_container, &verdict, &err);
    return take(admission, is_known, &verdict, &err);
}

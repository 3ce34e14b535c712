/* pod_log_find.c - where the log of a container is: what the node's status and the runtime say. */
#include "base/arena.h"
#include "base/str.h"
#include "cri/cri.h"
#include "pod/runner.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "serve/logs/pod_log.h"
#include "serve/logs/pod_logs.h"
#include "serve/serve.h"

/* Returns the UID by which the node knows the pod: a mirror stands for a static pod, and has the
 * UID of that in its annotation. */
static dv_str uid_on_node(const struct dv_object *pod)
{
    const struct dv_str_entry *mirrored = NULL;

    if (dv_pod_is_mirror(pod->value))
        mirrored = dv_entry_find(pod->meta->annotations, pod->meta->n_annotations,
                                 DV_STR(DV_MIRROR_ANNOTATION));
    return mirrored ? mirrored->value : pod->meta->uid;
}

static const CriV1__ContainerStatus *find_container(const struct dv_cri *cri, dv_str uid, dv_str id)
{
    const struct dv_cri_pod *pod = dv_cri_view_pod(cri, uid);

    for (size_t i = 0; pod && i < pod->n_containers; i++)
        if (dv_str_eq(dv_str_from_c(pod->containers[i]->id), id))
            return pod->containers[i];
    return NULL;
}

/* Returns the id as the runtime knows it, of "containerd://ID". */
static dv_str id_of_runtime(dv_str name)
{
    size_t colon = dv_str_find_char(name, ':');

    return dv_str_starts_with(dv_str_slice(name, colon, name.n), DV_STR("://"))
               ? dv_str_slice(name, colon + 3, name.n)
               : name;
}

static bool refuse(struct dv_pod_log_refusal *refusal, unsigned code, dv_str text)
{
    *refusal = (struct dv_pod_log_refusal){code, text};
    return false;
}

/* Returns the status of the pod, as new as it is known. */
static const struct dv_api_pod_status *status_of(const struct dv_runner *runner, dv_str uid,
                                                 const struct dv_object *pod)
{
    const struct dv_api_pod_status *status = dv_runner_status(runner, uid);
    const struct dv_api_pod *value = pod->value;

    return status ? status : &value->status;
}

bool dv_pod_log_find(const struct dv_pod_logs *logs, const struct dv_object *pod, dv_str container,
                     bool is_previous, struct dv_arena *arena, struct dv_pod_log_target *target,
                     struct dv_pod_log_refusal *refusal)
{
    const struct dv_runner *runner = logs->node->runner;
    const struct dv_cri *cri = runner && !logs->is_stopped ? dv_runner_cri(runner) : NULL;
    const CriV1__ContainerStatus *found;
    dv_str uid = uid_on_node(pod);
    dv_str name, id, text;

    if (!cri)
        return refuse(refusal, 503,
                      DV_STR("this node has no container runtime: it knows of no logs"));
    if (logs->n >= DV_POD_LOGS_MAX)
        return refuse(refusal, 429, DV_STR("too many logs are being read on this node"));
    if (!dv_pod_log_instance(status_of(runner, uid, pod), pod->meta->name, container, is_previous,
                             arena, &name, &text))
        return refuse(refusal, 400, text);
    id = id_of_runtime(name);
    found = find_container(cri, uid, id);
    if (!found || !found->log_path || !found->log_path[0])
        return refuse(
            refusal, 400,
            dv_str_printf(arena, "unable to retrieve container logs for %.*s", DV_FMT(name)));
    *target = (struct dv_pod_log_target){
        .uid = dv_str_copy(uid, arena),
        .id = dv_str_copy(id, arena),
        .path = dv_str_copy(dv_str_from_c(found->log_path), arena),
    };
    return true;
}

bool dv_pod_log_is_written(const struct dv_pod_log *log)
{
    const struct dv_runner *runner = log->logs->node->runner;
    const struct dv_cri *cri = runner ? dv_runner_cri(runner) : NULL;
    const CriV1__ContainerStatus *found;

    if (!cri || !dv_cri_is_connected(cri) || dv_cri_view_taken_ns(cri, log->uid) == 0)
        return true;
    found = find_container(cri, log->uid, log->id);
    return found && (found->state == CRI_V1__CONTAINER_STATE__CONTAINER_RUNNING ||
                     found->state == CRI_V1__CONTAINER_STATE__CONTAINER_CREATED);
}

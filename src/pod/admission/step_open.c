/* step_open.c - the first step of an operation: is there such a pod, and is nothing else under way
 * for it? */
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "loop/loop.h"
#include "pod/admission/admission.h"
#include "pod/admission/owner.h"
#include "pod/admission/pod_marks.h"
#include "pod/admission/pod_row.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"
#include "resource/resource.h"
#include "topology/topology.h"

/* ---- admission ---- */

/* Whether the node can admit this pod beside the one that has its uid or its name. */
static bool check_old(const struct dv_pod *old, const struct dv_pod_ref *ref, struct dv_err *err)
{
    if (old && old->state != DV_POD_ADMITTED)
        return dv_fail(err, DV_ABORTED, "pod %.*s is %s already", DV_FMT(old->full_name),
                       dv_pod_state_name(old->state));
    if (old && old->spec.origin != DV_POD_ORIGIN_IMPORT &&
        (!dv_str_eq(old->spec.ref.name, ref->name) ||
         !dv_str_eq(old->spec.ref.namespace, ref->namespace)))
        return dv_fail(err, DV_INVALID_ARGUMENT, "uid %.*s is that of pod %.*s", DV_FMT(ref->uid),
                       DV_FMT(old->full_name));
    return true;
}

/* Fills the operation's pod and priv.old; DV_ABORTED: something is under way for it. */
static bool open_pod(struct dv_pod_admission *admission, struct dv_err *err)
{
    struct dv_pods *pods = admission->priv.op.pods;
    struct dv_pod_input *input = admission->priv.input;
    struct dv_pod_spec *spec = &input->spec;
    char uid[DV_UUID_BYTES];
    struct dv_pod *old;
    struct dv_pod *pod;

    if (!dv_owner_settle(spec, input->arena, err))
        return false;
    old = dv_pods_get(pods, &spec->ref);
    if (!check_old(old, &spec->ref, err))
        return false;
    if (spec->ref.uid.n == 0)
        spec->ref.uid = dv_str_copy(old ? old->spec.ref.uid : dv_random_uuid(uid), input->arena);
    if (spec->object)
        spec->object->metadata.uid = spec->ref.uid;
    spec->since_ms =
        old ? old->spec.since_ms : dv_clock_wall_ns(dv_loop_clock(pods->loop)) / DV_NS_PER_MS;
    admission->priv.old = old;
    pod = dv_pod_new(pods, input->arena, spec);
    pod->state = DV_POD_ADMITTING;
    pod->object = input->object;
    if (!pod->object)
        pod->row = dv_pod_row_print(spec, input->json, input->arena);
    admission->priv.op.pod = pod;
    admission->priv.input = NULL; /* the pod has taken the input's arena, and its object */
    if (!old)
        dv_pods_add(pods, pod);
    return true;
}

enum dv_pod_outcome dv_admit_open(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);

    if (!open_pod(admission, &op->err))
        return DV_STEP_FAILED;
    admission->priv.is_pod = true;
    dv_topology_count(op->pods->options.topology, DV_TOPOLOGY_ASKED, &op->pods->counts);
    return DV_STEP_DONE;
}

/* ---- release ---- */

/* A pod that is not known here may still have claims, whose drivers have to unprepare them. */
enum dv_pod_outcome dv_release_open(struct dv_pod_operation *op)
{
    struct dv_pods *pods = op->pods;
    const struct dv_pod_ref *ref = dv_release_of(op)->priv.ref;
    struct dv_pod *pod = dv_pods_get(pods, ref);

    if (pod && (pods->is_closing || pod->state != DV_POD_ADMITTED)) {
        (void)dv_fail(&op->err, DV_ABORTED, "pod %.*s is being %s; try again",
                      DV_FMT(pod->full_name),
                      pod->state == DV_POD_RELEASING ? "released" : "admitted");
        return dv_pod_operation_post(op, DV_STEP_FAILED);
    }
    if (!pod && (pods->is_closing || !dv_pods_has_claims(pods, ref->uid)))
        return dv_pod_operation_post(op, DV_STEP_ABSENT);
    op->pod = pod;
    if (pod)
        dv_pod_set_state(pod, DV_POD_RELEASING);
    return DV_STEP_DONE;
}

/* ---- start of a container ---- */

static bool find_container(const struct dv_pod *pod, dv_str name, size_t *i_container)
{
    for (size_t i = 0; i < pod->spec.n_containers; i++) {
        if (dv_str_eq(pod->spec.containers[i].name, name)) {
            *i_container = i;
            return true;
        }
    }
    return false;
}

enum dv_pod_outcome dv_start_open(struct dv_pod_operation *op)
{
    struct dv_pod_start *start = dv_start_of(op);
    struct dv_pod *pod = dv_pods_get(op->pods, start->priv.ref);

    if (!pod || pod->state != DV_POD_ADMITTED) {
        dv_pods_fail_unknown(start->priv.ref, &op->err);
        return dv_pod_operation_post(op, DV_STEP_FAILED);
    }
    if (!find_container(pod, start->priv.container, &start->priv.i_container)) {
        (void)dv_fail(&op->err, DV_NOT_FOUND, "pod %.*s has no container \"%.*s\"",
                      DV_FMT(pod->full_name), DV_FMT(start->priv.container));
        return dv_pod_operation_post(op, DV_STEP_FAILED);
    }
    op->pod = pod;
    if (!pod->may_run && !dv_pod_marks_remove(op->pods->marks, pod->spec.ref.uid, &op->err))
        return dv_pod_operation_post(op, DV_STEP_FAILED);
    pod->may_run = true;
    return DV_STEP_DONE;
}

/* step_end.c - the last step of an operation: what it did is told, or undone. */
#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "pod/admission/admission.h"
#include "pod/admission/holdings.h"
#include "pod/admission/owner.h"
#include "pod/admission/pod_marks.h"
#include "pod/admission/pods.h"
#include "pod/admission/runs.h"
#include "pod/pod.h"
#include "topology/topology.h"

enum dv_pod_outcome dv_pod_operation_fail(struct dv_pod_operation *op, const struct dv_err *err)
{
    if (op->err.code == DV_OK)
        op->err = *err;
    return DV_STEP_FAILED;
}

/* ---- admission ---- */

struct dv_device_state *dv_admission_devices(const struct dv_pod_admission *admission)
{
    return dv_device_manager_state(admission->priv.op.pods->options.devices);
}

struct dv_pod *dv_admission_shown(const struct dv_pod_admission *admission)
{
    return admission->priv.old ? admission->priv.old : admission->priv.op.pod;
}

const char *dv_pod_refusal_name(enum dv_pod_refusal refusal)
{
    static const char *const names[] = {
        [DV_POD_UNEXPECTED] = "UnexpectedAdmissionError",
        [DV_POD_UNALIGNED] = DV_TOPOLOGY_REJECTED_REASON,
        [DV_POD_UNKNOWN_RESOURCE] = "UnknownResource",
        [DV_POD_UNPREPARED] = "FailedPrepareDynamicResources",
        [DV_POD_DEVICE_IN_USE] = "DeviceInUse",
    };

    return names[refusal];
}

enum dv_pod_outcome dv_admission_refuse(struct dv_pod_admission *admission,
                                        enum dv_pod_refusal refusal, dv_str message, bool may_come)
{
    admission->priv.refusal = (struct dv_pod_verdict){
        .refusal = refusal,
        .may_come = may_come,
        .message = dv_str_copy(message, admission->priv.op.pod->arena),
    };
    return DV_STEP_REFUSED;
}

enum dv_pod_outcome dv_admission_refuse_for_now(struct dv_pod_admission *admission,
                                                enum dv_pod_refusal refusal,
                                                const struct dv_err *err)
{
    struct dv_pods *pods = admission->priv.op.pods;

    dv_topology_count(pods->options.topology, DV_TOPOLOGY_FAILED, &pods->counts);
    return dv_admission_refuse(admission, refusal, dv_str_from_c(err->msg), true);
}

/* Gives back the devices of containers that the pod did not have before this admission. */
static void give_back_new(struct dv_pod_admission *admission)
{
    const struct dv_pod *old = admission->priv.old;
    struct dv_device_request *requests = DV_NEW_ARRAY(
        admission->priv.op.pod->arena, struct dv_device_request, old->spec.n_containers);

    for (size_t i = 0; i < old->spec.n_containers; i++)
        requests[i] = dv_pod_request(old, i);
    dv_device_manager_trim_pod(old->pods->options.devices, old->spec.ref.uid, requests,
                               old->spec.n_containers);
}

/* Undoes the admission: the pod holds what it held before. */
static void undo(struct dv_pod_admission *admission)
{
    struct dv_device_state *state = dv_admission_devices(admission);
    struct dv_pods *pods = admission->priv.op.pods;
    struct dv_pod *pod = admission->priv.op.pod;

    if (!pod)
        return;
    dv_device_end_admission(state, pod->spec.ref.uid);
    if (admission->priv.old) { /* the pod was admitted before and keeps what it held */
        give_back_new(admission);
        dv_holdings_refresh(pods->holdings, admission->priv.old);
        dv_pod_set_state(admission->priv.old, DV_POD_ADMITTED);
        dv_pod_free(pod);
    } else {
        dv_device_deactivate_pod(state, pod->spec.ref.uid);
        (void)dv_device_collect(state); /* how many went does not matter */
        dv_holdings_give_back(pods->holdings, pod);
        if (pod->spec.object && pods->options.claims)
            /* claims that were prepared for this pod have no user now */
            dv_claim_manager_reconcile(pods->options.claims);
        dv_pods_remove(pods, pod);
        dv_pods_look_again(pods); /* its devices are free for others */
    }
    admission->priv.op.pod = NULL;
}

static void tell_ended(struct dv_pod_admission *admission, const struct dv_pod_verdict *verdict)
{
    const struct dv_pods *pods = admission->priv.op.pods;
    uint64_t now_ns = dv_loop_now_ns(pods->loop);
    struct dv_pod_times times = {.all_ns = now_ns - admission->priv.start_ns};

    if (!admission->priv.is_pod || !pods->options.ended)
        return;
    if (admission->priv.look_ns > 0)
        times.allocation_ns = now_ns - admission->priv.look_ns;
    pods->options.ended(pods->options.ctx, verdict, &times);
}

static enum dv_pod_outcome end_admission(struct dv_pod_admission *admission,
                                         const struct dv_pod_verdict *verdict,
                                         const struct dv_err *err)
{
    struct dv_pods *pods = admission->priv.op.pods;

    tell_ended(admission, verdict);
    dv_admission_stop_waiting(admission);
    dv_admission_let_go(admission);
    dv_pod_input_free(admission->priv.input);
    admission->priv.input = NULL;
    dv_pods_end_one(pods);
    admission->done(admission, verdict, err); /* last: it may free the admission */
    return DV_STEP_PENDING;
}

enum dv_pod_outcome dv_admit_end_admitted(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);
    struct dv_pod_verdict verdict = {.is_admitted = true};
    struct dv_pod *pod = op->pod;

    if (admission->priv.old) {
        pod->may_run = admission->priv.old->may_run;
        dv_pods_remove(op->pods, admission->priv.old);
        dv_pods_add(op->pods, pod);
    }
    if (!pod->may_run)
        dv_pod_marks_put(op->pods->marks, pod->spec.ref.uid);
    pod->was_admitted = true;
    pod->owner = dv_owner_watch(pod);
    dv_pod_set_state(pod, DV_POD_ADMITTED);
    dv_log(DV_LOG_INFO, "pod: admitted", DV_F_STR("pod", pod->full_name),
           DV_F_STR("uid", pod->spec.ref.uid));
    verdict.ref = pod->spec.ref;
    return end_admission(admission, &verdict, NULL);
}

enum dv_pod_outcome dv_admit_end_refused(struct dv_pod_operation *op)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_pod_admission *admission = dv_admission_of(op);
    const struct dv_pod_ref *ref = &op->pod->spec.ref;
    struct dv_pod_verdict verdict = admission->priv.refusal;

    verdict.was_asked = admission->priv.was_asked || op->claims.has_asked;
    verdict.rival = verdict.refusal == DV_POD_DEVICE_IN_USE && admission->priv.rival
                        ? dv_str_copy(admission->priv.rival->pod_uid, arena)
                        : DV_STR("");
    /* the pod, whose arena has the text, is freed before `done` runs */
    verdict.message = dv_str_copy(verdict.message, arena);
    verdict.ref =
        (struct dv_pod_ref){dv_str_copy(ref->uid, arena), dv_str_copy(ref->namespace, arena),
                            dv_str_copy(ref->name, arena)};
    dv_log(DV_LOG_WARN, "pod: refused", DV_F_STR("pod", op->pod->full_name),
           DV_F_STR("uid", ref->uid), DV_F_C("reason", dv_pod_refusal_name(verdict.refusal)),
           DV_F_STR("message", verdict.message));
    undo(admission);
    return end_admission(admission, &verdict, NULL);
}

enum dv_pod_outcome dv_admit_end_failed(struct dv_pod_operation *op)
{
    struct dv_err err = op->err; /* a copy, as `done` may free the operation that holds the error */

    undo(dv_admission_of(op));
    return end_admission(dv_admission_of(op), NULL, &err);
}

/* ---- release ---- */

static enum dv_pod_outcome end_release(struct dv_pod_operation *op, bool was_known,
                                       const struct dv_err *err)
{
    struct dv_pod_release *release = dv_release_of(op);

    dv_pods_end_one(op->pods);
    release->done(release, was_known, err); /* last: it may free the release */
    return DV_STEP_PENDING;
}

enum dv_pod_outcome dv_release_end_released(struct dv_pod_operation *op)
{
    struct dv_pods *pods = op->pods;
    struct dv_pod *pod = op->pod;

    dv_log(DV_LOG_INFO, "pod: released", DV_F_STR("pod", pod->full_name),
           DV_F_STR("uid", pod->spec.ref.uid));
    dv_holdings_give_back(pods->holdings, pod);
    if (dv_pod_origin_is_agents(pod->spec.origin))
        /* what was told about its containers is needed until the API knows how they ended */
        dv_pods_note_ended(pods, pod->spec.ref.uid);
    else
        dv_runs_forget(pods, pod->spec.ref.uid);
    dv_pods_remove(pods, pod);
    dv_pods_look_again(pods);
    return end_release(op, true, NULL);
}

enum dv_pod_outcome dv_release_end_absent(struct dv_pod_operation *op)
{
    return end_release(op, false, NULL);
}

/* The row is still on the disk, so the pod stays in memory too; the caller tries again. */
enum dv_pod_outcome dv_release_end_failed(struct dv_pod_operation *op)
{
    struct dv_err err = op->err;

    if (!op->pod)
        return end_release(op, false, &err);
    (void)dv_wrap(&err, "release pod %.*s", DV_FMT(op->pod->full_name));
    dv_pod_set_state(op->pod, DV_POD_ADMITTED);
    return end_release(op, true, &err);
}

/* ---- start of a container ---- */

static enum dv_pod_outcome end_start(struct dv_pod_operation *op, const struct dv_err *err)
{
    struct dv_pod_start *start = dv_start_of(op);

    dv_pods_end_one(op->pods);
    start->done(start, err); /* last: it may free the start */
    return DV_STEP_PENDING;
}

enum dv_pod_outcome dv_start_end_ready(struct dv_pod_operation *op)
{
    return end_start(op, NULL);
}

enum dv_pod_outcome dv_start_end_failed(struct dv_pod_operation *op)
{
    struct dv_err err = op->err;

    return end_start(op, &err);
}

/* step_claims.c - the claims of a pod: prepared before it is admitted, prepared anew before a
 * container starts where the machine was started anew, unprepared before the pod is gone. */
#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "loop/loop.h"
#include "pod/admission/admission.h"
#include "pod/admission/holdings.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"

/* Starts an operation on the pod's claims. The pod that others see tells what it waits for. */
static void begin(struct dv_pod_operation *op, struct dv_pod *shown)
{
    if (shown)
        shown->preparing = &op->claims;
    dv_list_push(&op->pods->claim_ops, &op->link);
}

static void end(struct dv_pod_operation *op, struct dv_pod *shown)
{
    if (shown)
        shown->preparing = NULL;
    dv_link_remove(&op->link);
}

void dv_pod_operation_cancel_claims(struct dv_pod_operation *op)
{
    dv_claim_manager_cancel(&op->claims);
}

/* ---- admission ---- */

/* Asks the ledger, from what slices say, before a driver is called: no driver prepares a device
 * that another pod has. */
static bool may_prepare(struct dv_claim_operation *claims,
                        const struct dv_api_resource_claim *const *objects, size_t n_objects,
                        struct dv_err *err)
{
    struct dv_pod_operation *op = DV_CONTAINER(claims, struct dv_pod_operation, claims);
    struct dv_pod_admission *admission = dv_admission_of(op);

    dv_admission_open_aside(admission);
    if (dv_holdings_reserve_claims(op->pods->holdings, op->pod, objects, n_objects,
                                   admission->priv.aside_arena, admission->priv.rival, err))
        return true;
    admission->priv.in_use = *err;
    return false;
}

/* A claim that is not allocated, or not reserved for the pod, stays so when the pod came from a
 * client of the node: the API's scheduler, which does both, knows only the pods of the API. */
static const struct dv_err *with_advice(const struct dv_pod_operation *op, const struct dv_err *err,
                                        struct dv_err *own)
{
    bool is_not_given = err->code == DV_UNAVAILABLE || err->code == DV_PERMISSION_DENIED;

    if (!is_not_given || op->pod->spec.origin != DV_POD_ORIGIN_NODE || op->pods->options.is_strict)
        return err;
    (void)dv_fail(own, err->code,
                  "%s; claims are allocated for pods that are created through the API: create it "
                  "there, or take a lease",
                  err->msg);
    return own;
}

static enum dv_pod_outcome take_prepared(struct dv_pod_admission *admission,
                                         const struct dv_err *err)
{
    struct dv_pod_operation *op = &admission->priv.op;
    struct dv_err own;

    if (op->err.code != DV_OK) /* the operation was given up while the drivers were asked */
        return DV_STEP_FAILED;
    if (!err)
        return DV_STEP_DONE;
    if (err->code == DV_CANCELLED)
        return dv_pod_operation_fail(op, err);
    if (admission->priv.in_use.code != DV_OK)
        return dv_admission_refuse_for_now(admission, DV_POD_DEVICE_IN_USE,
                                           &admission->priv.in_use);
    return dv_admission_refuse_for_now(admission, DV_POD_UNPREPARED, with_advice(op, err, &own));
}

static void on_prepared(struct dv_claim_operation *claims, const struct dv_err *err)
{
    struct dv_pod_operation *op = DV_CONTAINER(claims, struct dv_pod_operation, claims);
    struct dv_pod_admission *admission = dv_admission_of(op);

    end(op, dv_admission_shown(admission));
    dv_pod_operation_go(op, take_prepared(admission, err));
}

enum dv_pod_outcome dv_admit_prepare(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);
    uint64_t now_ms = dv_loop_now_ms(op->pods->loop);
    struct dv_err err;

    if (!op->pod->spec.object)
        return DV_STEP_DONE;
    if (!op->pods->options.claims) {
        (void)dv_fail(
            &err, DV_FAILED_PRECONDITION,
            "the pod uses ResourceClaims, and this node has no API to find them in: start "
            "davitd with the role api, or with --kubeconfig");
        return dv_admission_refuse_for_now(admission, DV_POD_UNPREPARED, &err);
    }
    op->claims = (struct dv_claim_operation){
        .done = on_prepared,
        .may_prepare = may_prepare,
        .wait_ms =
            admission->priv.wait_until_ms > now_ms ? admission->priv.wait_until_ms - now_ms : 0,
    };
    begin(op, dv_admission_shown(admission));
    dv_claim_manager_prepare(op->pods->options.claims, &op->claims, op->pod->spec.object);
    return DV_STEP_PENDING;
}

/* ---- release ---- */

bool dv_pods_has_claims(const struct dv_pods *pods, dv_str uid)
{
    return pods->options.claims &&
           dv_claim_pod_has_any(dv_claim_manager_state(pods->options.claims), uid);
}

static void on_unprepared(struct dv_claim_operation *claims, const struct dv_err *err)
{
    struct dv_pod_operation *op = DV_CONTAINER(claims, struct dv_pod_operation, claims);

    end(op, op->pod);
    if (err && op->pod)
        dv_log(DV_LOG_WARN, "pod: not released yet", DV_F_STR("pod", op->pod->full_name),
               DV_F_ERR(err));
    if (err)
        dv_pod_operation_go(op, dv_pod_operation_fail(op, err));
    else
        dv_pod_operation_go(op, op->pod ? DV_STEP_DONE : DV_STEP_ABSENT);
}

/* Unprepares before the devices are given back, as the reference does: what a driver has prepared
 * is in use until it says otherwise. */
enum dv_pod_outcome dv_release_unprepare(struct dv_pod_operation *op)
{
    dv_str uid = op->pod ? op->pod->spec.ref.uid : dv_release_of(op)->priv.ref->uid;

    if (!dv_pods_has_claims(op->pods, uid))
        return DV_STEP_DONE;
    op->claims = (struct dv_claim_operation){.done = on_unprepared};
    begin(op, op->pod);
    dv_claim_manager_unprepare(op->pods->options.claims, &op->claims, uid);
    return DV_STEP_PENDING;
}

/* ---- start of a container ---- */

/* Whether all claims that the pod uses are prepared. They are, unless the machine was booted since.
 * The reference does not look again at the start of a container. */
static bool are_ready(const struct dv_pods *pods, const struct dv_pod *pod)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    struct dv_claim_ref *refs;
    struct dv_err err;
    size_t n_refs;

    if (!pod->spec.object || !pods->options.claims || pods->options.is_strict)
        return true;
    arena = dv_arena_new();
    if (!dv_claim_refs(pod->spec.object, arena, &refs, &n_refs, &err))
        return false;
    for (size_t i = 0; i < n_refs; i++) {
        const struct dv_claim *claim = dv_claim_find(dv_claim_manager_state(pods->options.claims),
                                                     pod->spec.ref.namespace, refs[i].name);

        if (!claim || claim->record.phase != DV_CLAIM_PREPARED ||
            !dv_claim_is_attached(claim, pod->spec.ref.uid))
            return false;
    }
    return true;
}

static void on_start_prepared(struct dv_claim_operation *claims, const struct dv_err *err)
{
    struct dv_pod_operation *op = DV_CONTAINER(claims, struct dv_pod_operation, claims);

    end(op, op->pod);
    dv_pod_set_state(op->pod, DV_POD_ADMITTED);
    dv_pod_operation_go(op, err ? dv_pod_operation_fail(op, err) : DV_STEP_DONE);
}

/* The pod's state is "admitting" meanwhile, so that nobody releases it while drivers prepare its
 * claims. */
enum dv_pod_outcome dv_start_prepare(struct dv_pod_operation *op)
{
    struct dv_pods *pods = op->pods;

    if (are_ready(pods, op->pod))
        return DV_STEP_DONE;
    dv_pod_set_state(op->pod, DV_POD_ADMITTING);
    op->claims =
        (struct dv_claim_operation){.done = on_start_prepared, .wait_ms = pods->options.wait_ms};
    begin(op, op->pod);
    dv_claim_manager_prepare(pods->options.claims, &op->claims, op->pod->spec.object);
    return DV_STEP_PENDING;
}

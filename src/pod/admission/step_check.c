/* step_check.c - whether the CDI names that a pod got can be found, and no other pod has its
 * devices. One that another pod has by another way is kept back, and the devices are chosen anew.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "pod/admission/admission.h"
#include "pod/admission/holdings.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"

/* One admission keeps back this many devices. A node where more are held twice has another
 * problem. */
#define ASIDE_MAX 64u

void dv_admission_open_aside(struct dv_pod_admission *admission)
{
    (void)dv_succeed(&admission->priv.in_use);
    if (!admission->priv.aside_arena)
        admission->priv.aside_arena = dv_arena_new();
    admission->priv.rival = DV_NEW(admission->priv.aside_arena, struct dv_holdings_rival);
}

void dv_admission_let_go(struct dv_pod_admission *admission)
{
    struct dv_device_state *state = dv_admission_devices(admission);

    for (size_t i = 0; i < admission->priv.n_aside; i++)
        dv_device_let_go(state, admission->priv.aside[i].resource, admission->priv.aside[i].id);
    admission->priv.n_aside = 0;
    dv_holdings_taking_free(admission->priv.taking);
    admission->priv.taking = NULL;
    dv_arena_free(admission->priv.aside_arena);
    admission->priv.aside_arena = NULL;
    admission->priv.rival = NULL;
}

bool dv_admission_reserve(struct dv_pod_admission *admission, dv_str resource, const dv_str *ids,
                          size_t n_ids, struct dv_err *err)
{
    const struct dv_pod *pod = admission->priv.op.pod;

    dv_admission_open_aside(admission);
    if (dv_holdings_reserve_devices(
            pod->pods->holdings, pod, pod->spec.containers[admission->priv.i_container].name,
            resource, ids, n_ids, admission->priv.aside_arena, admission->priv.rival, err))
        return true;
    admission->priv.in_use = *err;
    return false;
}

enum dv_pod_outcome dv_admit_check(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);
    struct dv_err err;

    dv_admission_open_aside(admission);
    if (!dv_holdings_resolve(op->pods->holdings, op->pod, &err))
        return dv_admission_refuse_for_now(admission, DV_POD_UNPREPARED, &err);
    return DV_STEP_DONE;
}

enum dv_pod_outcome dv_admit_take(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);
    bool has_begun = admission->priv.taking != NULL;
    struct dv_err err;

    switch (dv_holdings_take(op->pods->holdings, op->pod, &admission->priv.taking,
                             admission->priv.aside_arena, admission->priv.rival, &err)) {
    case DV_HOLDINGS_ALL:
        break;
    case DV_HOLDINGS_PART:
        return dv_pod_operation_post_next_turn(op, DV_STEP_MORE);
    case DV_HOLDINGS_IN_USE:
        admission->priv.in_use = err;
        return DV_STEP_IN_USE;
    }
    /* devices that were too many for one turn are written in one more */
    return has_begun ? dv_pod_operation_post_next_turn(op, DV_STEP_DONE) : DV_STEP_DONE;
}

/* Keeps the rival's device back, so that the next choice avoids it. False: that does not help, as
 * the device was not chosen here or too many are kept back. */
static bool keep_back(struct dv_pod_admission *admission)
{
    const struct dv_holdings_rival *rival = admission->priv.rival;

    if (rival->resource.n == 0 || admission->priv.old || admission->priv.n_aside == ASIDE_MAX ||
        !dv_device_keep_back(dv_admission_devices(admission), rival->resource, rival->id))
        return false;
    if (admission->priv.n_aside == 0) {
        admission->priv.aside =
            DV_NEW_ARRAY(admission->priv.aside_arena, struct dv_holdings_rival, ASIDE_MAX);
        admission->priv.aside_err = admission->priv.in_use;
    }
    admission->priv.aside[admission->priv.n_aside++] = *rival;
    return true;
}

enum dv_pod_outcome dv_admit_evade(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);
    struct dv_device_state *state = dv_admission_devices(admission);

    if (!keep_back(admission))
        return dv_admission_refuse_for_now(admission, DV_POD_DEVICE_IN_USE,
                                           &admission->priv.in_use);
    dv_device_deactivate_pod(state, op->pod->spec.ref.uid);
    (void)dv_device_collect(state); /* how many went does not matter */
    dv_holdings_give_back(op->pods->holdings, op->pod);
    return DV_STEP_DONE;
}

/* Drivers prepare claims again after a boot, and a spec in /run is gone then: it has to be there
 * again before a container starts. */
enum dv_pod_outcome dv_start_find_specs(struct dv_pod_operation *op)
{
    return dv_holdings_resolve(op->pods->holdings, op->pod, &op->err)
               ? DV_STEP_DONE
               : dv_pod_operation_post(op, DV_STEP_FAILED);
}

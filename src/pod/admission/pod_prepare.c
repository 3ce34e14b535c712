/* pod_prepare.c - the claims of a pod: prepared before it is admitted, unprepared before it is
 * gone. */
#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/admission/holdings.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"

/* Devices that are kept back for one admission: more, and something is wrong. */
#define ASIDE_MAX 64u

void dv_pod_claims_begin(struct dv_pods *pods, struct dv_pod_claims *claims)
{
    claims->is_running = true;
    dv_list_push(&pods->claim_ops, &claims->link);
}

void dv_pod_claims_end(struct dv_pod_claims *claims)
{
    claims->is_running = false;
    dv_link_remove(&claims->link);
}

void dv_pods_cancel_claims(struct dv_pods *pods)
{
    struct dv_link *link;

    DV_LIST_EACH (&pods->claim_ops, link) {
        dv_claims_cancel(&DV_CONTAINER(link, struct dv_pod_claims, link)->op);
    }
}

/* ---- of an admission ---- */

/* A device that another pod has by another way is kept back, and the devices are chosen anew.
 * False: that does not help. */
static bool choose_others(struct dv_pod_admission *admission, const struct dv_holdings_rival *rival,
                          const struct dv_err *err)
{
    struct dv_device_state *state = dv_devices_state(admission->priv.pods->options.devices);
    dv_str uid = admission->priv.pod->spec.ref.uid;

    if (rival->resource.n == 0 || admission->priv.old || admission->priv.n_aside == ASIDE_MAX ||
        !dv_device_keep_back(state, rival->resource, rival->id))
        return false;
    if (admission->priv.n_aside == 0) {
        admission->priv.aside =
            DV_NEW_ARRAY(admission->priv.aside_arena, struct dv_holdings_rival, ASIDE_MAX);
        admission->priv.aside_err = *err;
    }
    admission->priv.aside[admission->priv.n_aside++] = *rival;
    dv_device_deactivate_pod(state, uid);
    (void)dv_device_collect(state); /* at least this one */
    dv_holdings_give_back(admission->priv.pods->holdings, admission->priv.pod);
    dv_admission_look(admission);
    return true;
}

void dv_admission_let_go(struct dv_pod_admission *admission)
{
    struct dv_device_state *state = dv_devices_state(admission->priv.pods->options.devices);

    for (size_t i = 0; i < admission->priv.n_aside; i++)
        dv_device_let_go(state, admission->priv.aside[i].resource, admission->priv.aside[i].id);
    admission->priv.n_aside = 0;
    dv_arena_free(admission->priv.aside_arena);
    admission->priv.aside_arena = NULL;
    admission->priv.rival = NULL;
}

/* Room for who has what the pod is about to get. */
static void open_aside(struct dv_pod_admission *admission)
{
    (void)dv_succeed(&admission->priv.in_use);
    if (!admission->priv.aside_arena)
        admission->priv.aside_arena = dv_arena_new();
    admission->priv.rival = DV_NEW(admission->priv.aside_arena, struct dv_holdings_rival);
}

bool dv_admission_reserve(struct dv_pod_admission *admission, dv_str resource, const dv_str *ids,
                          size_t n_ids, struct dv_err *err)
{
    const struct dv_pod *pod = admission->priv.pod;

    open_aside(admission);
    if (dv_holdings_reserve_devices(admission->priv.pods->holdings, pod,
                                    pod->spec.containers[admission->priv.i_container].name,
                                    resource, ids, n_ids, admission->priv.aside_arena,
                                    admission->priv.rival, err))
        return true;
    admission->priv.in_use = *err;
    return false;
}

void dv_admission_evade(struct dv_pod_admission *admission)
{
    struct dv_err err = admission->priv.in_use;

    if (!choose_others(admission, admission->priv.rival, &err))
        dv_admission_refuse_for_now(admission, DV_POD_DEVICE_IN_USE, &err);
}

/* It has all: is that what it seems, and nobody else's? */
static void check(struct dv_pod_admission *admission)
{
    struct dv_holdings *holdings = admission->priv.pods->holdings;
    struct dv_err err;

    open_aside(admission);
    if (!dv_holdings_resolve(holdings, admission->priv.pod, &err)) {
        dv_admission_refuse_for_now(admission, DV_POD_FAILED_PREPARE, &err);
    } else if (dv_holdings_take(holdings, admission->priv.pod, admission->priv.aside_arena,
                                admission->priv.rival, &err)) {
        dv_admission_save(admission);
    } else {
        admission->priv.in_use = err;
        dv_admission_evade(admission);
    }
}

/* What slices say of the devices: no driver is asked about one that another pod has. */
static bool may_prepare(struct dv_claim_operation *op,
                        const struct dv_api_resource_claim *const *objects, size_t n_objects,
                        struct dv_err *err)
{
    struct dv_pod_admission *admission = DV_CONTAINER(op, struct dv_pod_admission, priv.claims.op);

    open_aside(admission);
    if (dv_holdings_reserve_claims(admission->priv.pods->holdings, admission->priv.pod, objects,
                                   n_objects, admission->priv.aside_arena, admission->priv.rival,
                                   err))
        return true;
    admission->priv.in_use = *err;
    return false;
}

static void on_prepared(struct dv_claim_operation *op, const struct dv_err *err)
{
    struct dv_pod_admission *admission = DV_CONTAINER(op, struct dv_pod_admission, priv.claims.op);
    struct dv_pod *shown = admission->priv.old ? admission->priv.old : admission->priv.pod;

    shown->preparing = NULL;
    dv_pod_claims_end(&admission->priv.claims);
    if (admission->priv.err.code != DV_OK) /* given up meanwhile */
        dv_admission_fail(admission, &admission->priv.err);
    else if (err && err->code == DV_CANCELLED)
        dv_admission_fail(admission, err);
    else if (err && admission->priv.in_use.code != DV_OK)
        dv_admission_refuse_for_now(admission, DV_POD_DEVICE_IN_USE, &admission->priv.in_use);
    else if (err)
        dv_admission_refuse_for_now(admission, DV_POD_FAILED_PREPARE, err);
    else
        check(admission);
}

void dv_admission_prepare(struct dv_pod_admission *admission)
{
    struct dv_pods *pods = admission->priv.pods;
    struct dv_pod *pod = admission->priv.pod;
    struct dv_pod *shown = admission->priv.old ? admission->priv.old : pod;
    uint64_t now_ms = dv_loop_now_ms(pods->loop);
    struct dv_err err;

    if (!pod->spec.object) {
        check(admission);
        return;
    }
    if (!pods->options.claims) {
        (void)dv_fail(
            &err, DV_FAILED_PRECONDITION,
            "the pod uses ResourceClaims, and this node has no API to find them in: start "
            "davitd with the role api, or with --kubeconfig");
        dv_admission_refuse_for_now(admission, DV_POD_FAILED_PREPARE, &err);
        return;
    }
    admission->priv.claims.op = (struct dv_claim_operation){
        .done = on_prepared,
        .may_prepare = may_prepare,
        .wait_ms =
            admission->priv.wait_until_ms > now_ms ? admission->priv.wait_until_ms - now_ms : 0,
    };
    shown->preparing = &admission->priv.claims.op;
    dv_pod_claims_begin(pods, &admission->priv.claims);
    dv_claims_prepare(pods->options.claims, &admission->priv.claims.op, pod->spec.object);
}

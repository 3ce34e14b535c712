/* dra_service.c - what an agent asks a DRA driver, in v1 and in v1beta1: the same on the wire, but
 * for shares. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "davit/dra.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "lib/common/lib_call.h"
#include "lib/dra/dra.h"
#include "lib/dra/dra_claim.h"
#include "lib/dra/dra_health.h"
#include "lib/dra/dra_job.h"
#include "pb/pb.h"
#include "proto/dra_v1.pb-c.h"

/* The most claims in one request, which has all claims of a pod. */
#define CLAIMS_MAX 1024u

static void refuse(const struct davit_dra *dra, struct dv_server_call *call,
                   const struct dv_err *err)
{
    dv_log(DV_LOG_WARN, "driver: call refused", DV_F_STR("driver", dra->name),
           DV_F_REQUEST(dv_server_call_id(call)), DV_F_CODE(err), DV_F_ERR(err));
    dv_server_call_finish(call, err);
}

static bool check_claims(DraV1__Claim *const *claims, size_t n, struct dv_err *err)
{
    struct dv_map seen;
    bool is_good = true;

    if (n > CLAIMS_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%zu claims are more than %u", n, CLAIMS_MAX);
    dv_map_init(&seen);
    for (size_t i = 0; i < n && is_good; i++) {
        dv_str uid = dv_str_from_c(claims[i]->uid);

        if (uid.n == 0 || uid.n > DV_LIB_UID_BYTES_MAX || claims[i]->name[0] == '\0')
            is_good = dv_fail(err, DV_INVALID_ARGUMENT, "claim %s/%s: bad name or UID \"%.40s\"",
                              claims[i]->namespace_, claims[i]->name, claims[i]->uid);
        else if (dv_map_set(&seen, uid, &seen)) /* any value */
            is_good = dv_fail(err, DV_INVALID_ARGUMENT, "claim %s/%s is there twice",
                              claims[i]->namespace_, claims[i]->name);
    }
    dv_map_fini(&seen);
    return is_good;
}

static void start(struct davit_dra *dra, struct dv_server_call *call, enum dv_lib_rpc_kind kind,
                  bool has_shares, DraV1__Claim *const *claims, size_t n)
{
    struct dv_lib_rpc *rpc;
    struct dv_err err;

    if (!check_claims(claims, n, &err)) {
        refuse(dra, call, &err);
        return;
    }
    if (n == 0) {
        dv_server_call_reply(call, dv_h2_msg_new(0));
        return;
    }
    rpc = dv_lib_rpc_new(&dra->rpcs, call, kind, n);
    for (size_t i = 0; i < n; i++)
        rpc->calls[i].claim.ref =
            (struct davit_dra_claim_ref){claims[i]->namespace_, claims[i]->name, claims[i]->uid};
    dv_lib_dra_job_start(dra, rpc, has_shares);
}

static void prepare(struct davit_dra *dra, struct dv_server_call *call, dv_str request,
                    bool has_shares)
{
    struct dv_err err;
    const DraV1__NodePrepareResourcesRequest *ask =
        dv_pb_decode(&dra_v1__node_prepare_resources_request__descriptor, request,
                     dv_server_call_arena(call), &err);

    if (ask)
        start(dra, call, DV_RPC_PREPARE, has_shares, ask->claims, ask->n_claims);
    else
        refuse(dra, call, &err);
}

static void handle_prepare(void *ctx, struct dv_server_call *call, dv_str request)
{
    prepare(ctx, call, request, true);
}

static void handle_prepare_beta(void *ctx, struct dv_server_call *call, dv_str request)
{
    prepare(ctx, call, request, false);
}

static void handle_unprepare(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct dv_err err;
    const DraV1__NodeUnprepareResourcesRequest *ask =
        dv_pb_decode(&dra_v1__node_unprepare_resources_request__descriptor, request,
                     dv_server_call_arena(call), &err);

    if (ask)
        start(ctx, call, DV_RPC_UNPREPARE, false, ask->claims, ask->n_claims);
    else
        refuse(ctx, call, &err);
}

static void handle_health(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct davit_dra *dra = ctx;

    (void)request; /* has no fields */
    dv_lib_health_watch(&dra->health, call);
}

#define DRA "/k8s.io.kubelet.pkg.apis.dra."

const struct dv_method dv_lib_dra_v1_methods[] = {
    {DRA "v1.DRAPlugin/NodePrepareResources",   handle_prepare  },
    {DRA "v1.DRAPlugin/NodeUnprepareResources", handle_unprepare},
};
const size_t dv_lib_n_dra_v1_methods = DV_COUNT(dv_lib_dra_v1_methods);

const struct dv_method dv_lib_dra_v1beta1_methods[] = {
    {DRA "v1beta1.DRAPlugin/NodePrepareResources",   handle_prepare_beta},
    {DRA "v1beta1.DRAPlugin/NodeUnprepareResources", handle_unprepare   },
};
const size_t dv_lib_n_dra_v1beta1_methods = DV_COUNT(dv_lib_dra_v1beta1_methods);

const struct dv_method dv_lib_health_methods[] = {
    {"/v1.DRAResourceHealth/NodeWatchResources",       handle_health},
    {"/v1alpha1.DRAResourceHealth/NodeWatchResources", handle_health},
};
const size_t dv_lib_n_health_methods = DV_COUNT(dv_lib_health_methods);

/* ---- answers ---- */

/* Checks a text. The first mistake is kept, and fails the call. */
static bool check_text(struct davit_call *call, const char *what, const char *text)
{
    if (call->err.code != DV_OK)
        return false;
    if (text && text[0] != '\0' && dv_str_is_utf8(dv_str_from_c(text)))
        return true;
    return dv_fail(&call->err, DV_INTERNAL, "the driver's answer: %s is %s", what,
                   !text             ? "missing"
                   : text[0] == '\0' ? "empty"
                                     : "not UTF-8");
}

static bool check_prepared(struct davit_call *call, const struct davit_dra_prepared *prepared)
{
    if (call->rpc->kind != DV_RPC_PREPARE && call->err.code == DV_OK)
        (void)dv_fail(&call->err, DV_INTERNAL,
                      "the driver answers with what this call did not ask for");
    for (size_t i = 0; i < prepared->n_requests; i++)
        if (!check_text(call, "a request's name", prepared->requests[i]))
            return false;
    for (size_t i = 0; i < prepared->n_cdi; i++)
        if (!check_text(call, "a CDI name", prepared->cdi[i]))
            return false;
    return check_text(call, "a pool's name", prepared->pool) &&
           check_text(call, "a device's name", prepared->device) &&
           (!prepared->share_id || check_text(call, "a share", prepared->share_id));
}

void davit_dra_add_device(struct davit_call *call, const struct davit_dra_prepared *prepared)
{
    size_t mark;

    if (!check_prepared(call, prepared))
        return;
    mark = dv_pb_begin(&call->answer, 1);
    for (size_t i = 0; i < prepared->n_requests; i++)
        dv_pb_add_bytes(&call->answer, 1,
                        dv_lib_base_request(dv_str_from_c(prepared->requests[i])));
    dv_pb_add_bytes(&call->answer, 2, dv_str_from_c(prepared->pool));
    dv_pb_add_bytes(&call->answer, 3, dv_str_from_c(prepared->device));
    for (size_t i = 0; i < prepared->n_cdi; i++)
        dv_pb_add_bytes(&call->answer, 4, dv_str_from_c(prepared->cdi[i]));
    if (prepared->share_id && call->rpc->job->has_shares)
        dv_pb_add_bytes(&call->answer, 5, dv_str_from_c(prepared->share_id));
    dv_pb_end(&call->answer, mark);
}

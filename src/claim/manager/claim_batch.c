/* claim_batch.c - one driver is asked to prepare or unprepare claims: all in one call, or with the
 * oldest services one after the other. */
#include <assert.h>

#include "base/arena.h"
#include "base/log.h"
#include "claim/manager/claim_manager_state.h"
#include "http2/http2.h"

#define CALL_TIMEOUT_MS 45000u
/* The message of an error, with the words around it. */
#define STATUS_BYTES_MAX (DV_ERR_MSG_BYTES + 256u)
/* A gRPC server takes 4 MiB by default, and drivers leave it at that: a request is not larger. */
#define REQUEST_BYTES_MAX (4u * 1024u * 1024u)
/* The longest answer of a driver; what is kept of it is far less. */
#define ANSWER_BYTES_MAX (16u * 1024u * 1024u)

static void ask(struct dv_claim_batch *batch);

static bool is_prepare(const struct dv_claim_batch *batch)
{
    return dv_claim_operation_is_prepare(batch->operation);
}

static const char *method_of(const struct dv_claim_batch *batch)
{
    return is_prepare(batch) ? dv_dra_prepare_method(batch->service)
                             : dv_dra_unprepare_method(batch->service);
}

static bool takes_one(const struct dv_claim_batch *batch)
{
    return batch->service == DV_DRA_V1ALPHA2 || batch->service == DV_DRA_V1ALPHA1;
}

static void on_ended(struct dv_task *task)
{
    dv_claim_batch_ended(DV_CONTAINER(task, struct dv_claim_batch, task));
}

static void on_message(struct dv_call *call, dv_str message)
{
    struct dv_claim_batch *batch = DV_CONTAINER(call, struct dv_claim_batch, call);

    dv_buf_clear(&batch->message);
    dv_buf_add(&batch->message, message);
}

static void fail_status(struct dv_claim_batch *batch, const struct dv_err *status)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, STATUS_BYTES_MAX);
    dv_err_print_rpc(status, &text);
    (void)dv_fail(&batch->err, status->code, "%s: %s",
                  is_prepare(batch) ? "NodePrepareResources" : "NodeUnprepareResources",
                  dv_buf_c(&text));
}

/* With one claim a call, a refusal is about that claim. */
static void fail_claim(struct dv_claim_batch *batch, const struct dv_err *status)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, STATUS_BYTES_MAX);
    dv_err_print_rpc(status, &text);
    (void)dv_fail(&batch->err, status->code, "%s failed for ResourceClaim %.*s: %s",
                  is_prepare(batch) ? "NodePrepareResources" : "NodeUnprepareResources",
                  DV_FMT(batch->claims.v[batch->at]->record.name), dv_buf_c(&text));
}

static bool take_answer(struct dv_claim_batch *batch)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_claim **claims = takes_one(batch) ? &batch->claims.v[batch->at] : batch->claims.v;
    size_t n_claims = takes_one(batch) ? 1 : batch->claims.n;
    struct dv_claim_answer *answers;
    size_t n_answers;
    struct dv_err status;

    if (!dv_buf_check(&batch->message, "answer", &status) ||
        !dv_claim_response_decode(batch->service, is_prepare(batch), claims[0]->record.uid,
                                  dv_buf_str(&batch->message), arena, &answers, &n_answers,
                                  &status)) {
        status.code = DV_INTERNAL;
        fail_status(batch, &status);
        return false;
    }
    return dv_claim_apply(batch->operation->priv.claims->state, is_prepare(batch), batch->driver,
                          claims, n_claims, answers, n_answers, &batch->err);
}

/* The driver does not know the service: notes an older one for it, and asks again. */
static bool try_older(struct dv_claim_batch *batch, const struct dv_err *err)
{
    enum dv_dra_service older = dv_dra_older(batch->service);

    if (!err || err->code != DV_UNIMPLEMENTED || older == DV_N_DRA_SERVICES ||
        batch->instance->is_closing)
        return false;
    dv_log(DV_LOG_INFO, "claim: the driver does not have the service; trying an older one",
           DV_F_STR("driver", batch->driver), DV_F_C("service", dv_dra_service_name(older)));
    batch->service = older;
    batch->instance->base.service = older;
    return true;
}

static void on_done(struct dv_call *call, const struct dv_err *err)
{
    struct dv_claim_batch *batch = DV_CONTAINER(call, struct dv_claim_batch, call);
    struct dv_claim_manager *claims = batch->operation->priv.claims;

    batch->is_calling = false;
    if (claims->options.call_ended)
        claims->options.call_ended(claims->options.ctx, batch->driver, call->method,
                                   err ? err->code : DV_OK,
                                   dv_loop_now_ns(claims->loop) - batch->asked_ns);
    if (batch->operation->priv.end.code == DV_OK && try_older(batch, err)) {
        ask(batch);
        return;
    }
    if (err && takes_one(batch))
        fail_claim(batch, err);
    else if (err)
        fail_status(batch, err);
    else if (take_answer(batch) && takes_one(batch) && ++batch->at < batch->claims.n &&
             batch->operation->priv.end.code == DV_OK && !batch->instance->is_closing) {
        ask(batch);
        return;
    }
    if (batch->err.code == DV_OK && takes_one(batch) && batch->at < batch->claims.n)
        (void)dv_fail(&batch->err, DV_CANCELLED, "given up");
    dv_claim_batch_ended(batch);
}

static void ask(struct dv_claim_batch *batch)
{
    struct dv_claim_manager *claims = batch->operation->priv.claims;
    struct dv_claim **asked = takes_one(batch) ? &batch->claims.v[batch->at] : batch->claims.v;
    DV_CLEANUP(dv_buf_fini) struct dv_buf request;

    dv_buf_init(&request, REQUEST_BYTES_MAX);
    dv_buf_clear(&batch->message);
    dv_claim_request_encode(batch->service, is_prepare(batch), asked,
                            takes_one(batch) ? 1 : batch->claims.n, batch->driver, &request);
    if (!dv_buf_check(&request, "the claims of one call", &batch->err)) {
        dv_task_post(&batch->task, claims->loop, on_ended);
        return;
    }
    batch->call = (struct dv_call){
        .method = method_of(batch),
        .message = on_message,
        .done = on_done,
        .deadline_ms = dv_loop_now_ms(claims->loop) + CALL_TIMEOUT_MS,
        .pod_uid = batch->operation->priv.pod_uid,
    };
    batch->is_calling = true;
    batch->asked_ns = dv_loop_now_ns(claims->loop);
    dv_call_start(batch->instance->channel, &batch->call, dv_h2_msg_copy(dv_buf_str(&request)));
}

void dv_claim_batch_start(struct dv_claim_batch *batch)
{
    struct dv_claim_manager *claims = batch->operation->priv.claims;
    struct dv_dra_instance *instance = dv_dra_choose(claims->drivers, batch->driver, &batch->err);

    dv_buf_init(&batch->message, ANSWER_BYTES_MAX);
    if (!instance) {
        dv_task_post(&batch->task, claims->loop, on_ended);
        return;
    }
    (void)dv_succeed(&batch->err);
    batch->instance = DV_CONTAINER(instance, struct dv_instance, base);
    batch->service = instance->service;
    ask(batch);
}

dv_str dv_claim_batch_method(const struct dv_claim_batch *batch)
{
    dv_str path = dv_str_from_c(batch->call.method);
    size_t at = path.n;

    while (at > 0 && path.p[at - 1] != '/')
        at--;
    return dv_str_slice(path, at, path.n);
}

void dv_claim_batch_cancel(struct dv_claim_batch *batch)
{
    if (batch->is_calling)
        dv_call_cancel(&batch->call);
}

void dv_claim_batch_fini(struct dv_claim_batch *batch)
{
    assert(!batch->is_calling);
    dv_task_cancel(&batch->task);
    dv_buf_fini(&batch->message);
}

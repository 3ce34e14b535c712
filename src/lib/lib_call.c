/* lib_call.c - calls to a plugin of the library: handed to the program's function, answered when it
 * finishes, and cancelled when the caller has gone. */
#include "lib/common/lib_call.h"

#include <assert.h>
#include <stdarg.h>

#include "base/arena.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "lib/dra/dra.h"
#include "lib/dra/dra_job.h"
#include "lib/plugin/device_plugin.h"
#include "pb/pb.h"

/* The longest answer for one container or claim: a kubelet receives no larger message. */
#define ANSWER_BYTES_MAX (4u << 20)
/* The bytes around an answer: lengths, a claim's uid, an error. */
#define OVERHEAD_BYTES_MAX (DV_LIB_UID_BYTES_MAX + DV_ERR_MSG_BYTES + 64u)

void dv_lib_rpcs_init(struct dv_lib_rpcs *rpcs)
{
    *rpcs = (struct dv_lib_rpcs){.is_closing = false};
    dv_list_init(&rpcs->open);
}

struct dv_lib_rpc *dv_lib_rpc_new(struct dv_lib_rpcs *rpcs, struct dv_server_call *server_call,
                                  enum dv_lib_rpc_kind kind, size_t n_calls)
{
    struct dv_arena *arena = dv_server_call_arena(server_call);
    struct dv_lib_rpc *rpc = DV_NEW(arena, struct dv_lib_rpc);

    rpc->rpcs = rpcs;
    rpc->server_call = server_call;
    rpc->kind = kind;
    rpc->calls = DV_NEW_ARRAY(arena, struct davit_call, n_calls);
    rpc->n_calls = n_calls;
    rpc->n_open = n_calls;
    for (size_t i = 0; i < n_calls; i++) {
        rpc->calls[i].rpc = rpc;
        dv_buf_init(&rpc->calls[i].answer, ANSWER_BYTES_MAX);
    }
    dv_list_push(&rpcs->open, &rpc->link);
    return rpc;
}

static bool is_about_claims(const struct dv_lib_rpc *rpc)
{
    return rpc->kind == DV_RPC_PREPARE || rpc->kind == DV_RPC_UNPREPARE;
}

/* Adds an entry of the map: the claim's uid, and its answer or its error. */
static void add_claim(const struct davit_call *call, struct dv_buf *buf)
{
    size_t mark = dv_pb_begin(buf, 1);
    size_t value;

    dv_pb_add_bytes(buf, 1, dv_str_from_c(call->claim.ref.uid));
    value = dv_pb_begin(buf, 2);
    if (call->err.code == DV_OK)
        dv_buf_add(buf, dv_buf_str(&call->answer));
    else
        dv_pb_add_bytes(buf, call->rpc->kind == DV_RPC_PREPARE ? 2 : 1,
                        dv_str_from_c(call->err.msg));
    dv_pb_end(buf, value);
    dv_pb_end(buf, mark);
}

/* Makes the response from the parts for each container or claim. PreStartContainerResponse is
 * empty. */
static struct dv_h2_msg *make_response(const struct dv_lib_rpc *rpc)
{
    struct dv_h2_msg *msg;
    struct dv_buf buf;

    dv_buf_init(&buf, rpc->n_calls * (ANSWER_BYTES_MAX + OVERHEAD_BYTES_MAX));
    for (size_t i = 0; i < rpc->n_calls && rpc->kind != DV_RPC_PRESTART; i++) {
        if (is_about_claims(rpc))
            add_claim(&rpc->calls[i], &buf);
        else
            dv_pb_add_bytes(&buf, 1, dv_buf_str(&rpc->calls[i].answer));
    }
    assert(!buf.is_over); /* each part is under its ceiling */
    msg = dv_h2_msg_copy(dv_buf_str(&buf));
    dv_buf_fini(&buf);
    return msg;
}

static void end_rpc(struct dv_lib_rpc *rpc)
{
    struct dv_h2_msg *msg = NULL;
    struct dv_err err = rpc->err;

    for (size_t i = 0; i < rpc->n_calls && err.code == DV_OK && !is_about_claims(rpc); i++)
        err = rpc->calls[i].err;
    if (err.code == DV_OK)
        msg = make_response(rpc);
    for (size_t i = 0; i < rpc->n_calls; i++)
        dv_buf_fini(&rpc->calls[i].answer);
    dv_link_remove(&rpc->link);
    if (rpc->job)
        dv_lib_dra_job_ended(rpc->job);
    if (msg)
        dv_server_call_reply(rpc->server_call, msg);
    else
        dv_server_call_finish(rpc->server_call, &err);
}

static void end_call(struct davit_call *call)
{
    struct dv_lib_rpc *rpc = call->rpc;

    if (call->is_ended && rpc->rpcs->is_closing)
        return;              /* by the driver's own callback, which has just closed the plugin */
    assert(!call->is_ended); /* otherwise the driver has answered twice */
    call->is_ended = true;
    rpc->n_open--;
    if (rpc->n_open == 0 && !rpc->is_asking)
        end_rpc(rpc);
}

static void ask_dra(struct davit_call *call)
{
    const struct davit_dra_options *options =
        &DV_CONTAINER(call->rpc->rpcs, struct davit_dra, rpcs)->options;

    if (call->rpc->kind == DV_RPC_PREPARE)
        options->prepare(options->ctx, call, &call->claim);
    else
        options->unprepare(options->ctx, call, &call->claim.ref);
}

static void ask_plugin(struct davit_call *call)
{
    const struct davit_device_plugin_options *options =
        &DV_CONTAINER(call->rpc->rpcs, struct davit_device_plugin, rpcs)->options;

    switch (call->rpc->kind) {
    case DV_RPC_ALLOCATE:
        options->allocate(options->ctx, call, &call->allocate);
        break;
    case DV_RPC_PRESTART:
        options->prestart(options->ctx, call, call->allocate.ids, call->allocate.n_ids);
        break;
    case DV_RPC_PREFER:
        options->prefer(options->ctx, call, &call->prefer);
        break;
    case DV_RPC_PREPARE:
    case DV_RPC_UNPREPARE:
        break; /* not of a device plugin */
    }
}

void dv_lib_rpc_fail(struct dv_lib_rpc *rpc, const struct dv_err *err)
{
    for (size_t i = 0; i < rpc->n_calls; i++)
        rpc->calls[i].is_ended = true;
    rpc->n_open = 0;
    rpc->err = *err;
    if (!rpc->is_asking)
        end_rpc(rpc);
}

void dv_lib_rpc_ask(struct dv_lib_rpc *rpc)
{
    rpc->is_asking = true;
    for (size_t i = 0; i < rpc->n_calls && !rpc->rpcs->is_closing; i++) {
        if (is_about_claims(rpc))
            ask_dra(&rpc->calls[i]); /* the callback may close everything */
        else
            ask_plugin(&rpc->calls[i]);
    }
    rpc->is_asking = false;
    if (rpc->n_open == 0)
        end_rpc(rpc);
}

void dv_lib_rpcs_close(struct dv_lib_rpcs *rpcs, const char *what)
{
    struct dv_link *next;
    struct dv_err err;

    rpcs->is_closing = true;
    (void)dv_fail(&err, DV_UNAVAILABLE, "%s is closing", what);
    for (struct dv_link *link = rpcs->open.head.next; link != &rpcs->open.head; link = next) {
        next = link->next;
        dv_lib_rpc_fail(DV_CONTAINER(link, struct dv_lib_rpc, link), &err);
    }
}

void davit_call_finish(struct davit_call *call)
{
    struct dv_err err;

    if (call->err.code == DV_OK && !dv_buf_check(&call->answer, "the driver's answer", &err))
        call->err = err;
    end_call(call);
}

void davit_call_fail(struct davit_call *call, enum davit_code code, const char *format, ...)
{
    bool is_known = code > DAVIT_OK && code <= DAVIT_UNAUTHENTICATED;
    struct dv_err err;
    va_list args;

    va_start(args, format);
    (void)dv_vfail(&err, is_known ? (enum dv_code)code : DV_UNKNOWN, format, args);
    va_end(args);
    if (!call->is_ended)
        call->err = err;
    end_call(call);
}

bool davit_call_is_cancelled(const struct davit_call *call)
{
    return dv_server_call_is_cancelled(call->rpc->server_call);
}

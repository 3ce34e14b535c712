#include "lib/call.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "lib/plugin.h"
#include "pb/pb.h"

/* Of the answer for one container: what a kubelet receives in one message. */
#define ANSWER_BYTES_MAX (4u << 20)

struct dv_lib_rpc *dv_lib_rpc_new(struct davit_device_plugin *plugin,
                                  struct dv_server_call *server_call, enum dv_lib_rpc_kind kind,
                                  size_t n_calls)
{
    struct dv_arena *arena = dv_server_call_arena(server_call);
    struct dv_lib_rpc *rpc = DV_NEW(arena, struct dv_lib_rpc);

    rpc->plugin = plugin;
    rpc->server_call = server_call;
    rpc->kind = kind;
    rpc->calls = DV_NEW_ARRAY(arena, struct davit_call, n_calls);
    rpc->n_calls = n_calls;
    rpc->n_open = n_calls;
    for (size_t i = 0; i < n_calls; i++) {
        rpc->calls[i].rpc = rpc;
        dv_buf_init(&rpc->calls[i].answer, ANSWER_BYTES_MAX);
    }
    dv_list_push(&plugin->rpcs, &rpc->link);
    return rpc;
}

/* The response: for each container its part. PreStartContainerResponse is empty. */
static struct dv_h2_msg *make_response(const struct dv_lib_rpc *rpc)
{
    struct dv_h2_msg *msg;
    struct dv_buf buf;

    dv_buf_init(&buf, rpc->n_calls * (ANSWER_BYTES_MAX + 16));
    for (size_t i = 0; i < rpc->n_calls && rpc->kind != DV_RPC_PRESTART; i++)
        dv_pb_add_bytes(&buf, 1, dv_buf_str(&rpc->calls[i].answer));
    assert(!buf.is_over); /* each part is under its ceiling */
    msg = dv_h2_msg_copy(dv_buf_str(&buf));
    dv_buf_fini(&buf);
    return msg;
}

static void end_rpc(struct dv_lib_rpc *rpc)
{
    struct dv_h2_msg *msg = NULL;
    struct dv_err err = {0};

    for (size_t i = 0; i < rpc->n_calls && err.code == DV_OK; i++)
        err = rpc->calls[i].err;
    if (err.code == DV_OK)
        msg = make_response(rpc);
    for (size_t i = 0; i < rpc->n_calls; i++)
        dv_buf_fini(&rpc->calls[i].answer);
    dv_link_remove(&rpc->link);
    if (msg)
        dv_server_call_reply(rpc->server_call, msg);
    else
        dv_server_call_finish(rpc->server_call, &err);
}

static void end_call(struct davit_call *call)
{
    struct dv_lib_rpc *rpc = call->rpc;

    if (call->is_ended && rpc->plugin->is_closing)
        return;              /* by the driver's own callback, which has just closed the plugin */
    assert(!call->is_ended); /* else the driver answers twice */
    call->is_ended = true;
    rpc->n_open--;
    if (rpc->n_open == 0 && !rpc->is_asking)
        end_rpc(rpc);
}

static void ask(struct davit_call *call)
{
    const struct davit_device_plugin_options *options = &call->rpc->plugin->options;

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
    }
}

static void abandon(struct dv_lib_rpc *rpc)
{
    for (size_t i = 0; i < rpc->n_calls; i++) {
        struct davit_call *call = &rpc->calls[i];

        if (call->is_ended)
            continue;
        call->is_ended = true;
        (void)dv_fail(&call->err, DV_UNAVAILABLE, "the device plugin is closing");
    }
    rpc->n_open = 0;
    if (!rpc->is_asking)
        end_rpc(rpc);
}

void dv_lib_rpc_ask(struct dv_lib_rpc *rpc)
{
    rpc->is_asking = true;
    for (size_t i = 0; i < rpc->n_calls && !rpc->plugin->is_closing; i++)
        ask(&rpc->calls[i]); /* may close the plugin */
    rpc->is_asking = false;
    if (rpc->n_open == 0)
        end_rpc(rpc);
}

void dv_lib_rpcs_abandon(struct davit_device_plugin *plugin)
{
    struct dv_link *next;

    for (struct dv_link *link = plugin->rpcs.head.next; link != &plugin->rpcs.head; link = next) {
        next = link->next;
        abandon(DV_CONTAINER(link, struct dv_lib_rpc, link));
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
    char text[2 * DV_ERR_MSG_BYTES];
    struct dv_err err;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* dv_fail marks what is cut */
    va_end(args);
    (void)dv_fail(&err, is_known ? (enum dv_code)code : DV_UNKNOWN, "%s", text);
    if (!dv_str_is_utf8(dv_str_from_c(err.msg))) /* a Go client would not accept it */
        (void)dv_fail(&err, err.code, "the driver failed, with a text that is not UTF-8");
    if (!call->is_ended)
        call->err = err;
    end_call(call);
}

bool davit_call_is_cancelled(const struct davit_call *call)
{
    return dv_server_call_is_cancelled(call->rpc->server_call);
}

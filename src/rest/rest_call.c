/* rest_call.c - one request, from its first line to its answer. */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "loop/loop.h"
#include "rest/rest_server.h"

uint64_t dv_rest_next_id(void)
{
    static atomic_uint_fast64_t last;

    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/* ---- the end of a call ---- */

void dv_rest_call_log_end(const struct dv_rest_call *call, uint64_t n_bytes,
                          const struct dv_err *err)
{
    dv_log(DV_LOG_DEBUG, "rest: call ended", DV_F_REQUEST(call->id),
           DV_F_STR("server", call->server->options.name), DV_F_U64("status", call->status),
           DV_F_U64("bytes", n_bytes), DV_F_C("error", err ? err->msg : ""),
           DV_F_U64("us", (dv_loop_now_ns(call->server->loop) - call->start_ns) / 1000));
}

void dv_rest_call_free(struct dv_rest_call *call)
{
    struct dv_rest_server *server = call->server;

    if (call->exchange)
        dv_rest_exchange_lose_call(call->exchange);
    else if (call->conn)
        call->conn->call = NULL;
    dv_task_cancel(&call->task);
    dv_rest_shares_give_body_back(call);
    dv_buf_fini(&call->body);
    dv_buf_fini(&call->unsent);
    dv_loop_free_arena(server->loop, call->arena);
    free(call);
    server->n_calls--;
    dv_rest_server_check_closed(server);
}

void dv_rest_call_detach(struct dv_rest_call *call, const struct dv_err *err)
{
    call->conn = NULL;
    if (call->stream) {
        dv_rest_stream_end(call, err);
        return;
    }
    if (call->tunnel) {
        dv_rest_tunnel_end(call, err);
        return;
    }
    dv_rest_call_log_end(call, 0, err);
    if (!call->is_handed) /* otherwise the handler is going to answer it */
        dv_rest_call_free(call);
    else if (call->gone)
        call->gone(call->gone_ctx);
}

bool dv_rest_call_watch(struct dv_rest_call *call, void (*gone)(void *ctx), void *ctx)
{
    call->gone = gone;
    call->gone_ctx = ctx;
    return call->conn && !call->conn->is_hung_up;
}

/* ---- refusing ---- */

/* The limit of a refusal's body: an error's message, and what surrounds it. */
#define REFUSAL_BYTES_MAX 4096u

const char *dv_rest_refusal_print(const struct dv_rest_server *server,
                                  const struct dv_rest_refusal *refusal, struct dv_buf *body)
{
    const struct dv_rest_server_options *options = &server->options;

    dv_buf_init(body, REFUSAL_BYTES_MAX);
    if (options->refusal)
        return options->refusal(options->ctx, refusal->status, &refusal->err, body);
    dv_buf_printf(body, "%s\n", refusal->err.msg);
    return "text/plain; charset=utf-8";
}

/* ---- arriving ---- */

struct dv_rest_call *dv_rest_call_new(struct dv_rest_conn *conn)
{
    struct dv_rest_server *server = conn->server;
    struct dv_rest_call *call = DV_ALLOC(struct dv_rest_call);

    call->server = server;
    call->conn = conn;
    call->arena = dv_arena_new();
    call->id = dv_rest_next_id();
    call->start_ns = dv_loop_now_ns(server->loop);
    memcpy(call->peer, conn->peer, sizeof(call->peer));
    dv_buf_init(&call->body, server->options.body_bytes_max);
    server->n_calls++;
    return call;
}

void dv_rest_call_begin(struct dv_rest_call *call, bool has_body)
{
    const struct dv_rest_server_options *options = &call->server->options;
    const struct dv_rest_request *request = &call->request;

    dv_log(DV_LOG_DEBUG, "rest: call started", DV_F_REQUEST(call->id),
           DV_F_STR("server", options->name), DV_F_C("peer", call->peer),
           DV_F_STR("method", request->method), DV_F_STR("path", request->path));
    if (has_body && options->arriving)
        options->arriving(options->ctx, call, request);
}

bool dv_rest_call_add_body(struct dv_rest_call *call, dv_str bytes, struct dv_rest_refusal *refusal)
{
    if (bytes.n > call->server->options.body_bytes_max - call->body.n) {
        dv_rest_header_too_large(call->server, refusal);
        return false;
    }
    if (!dv_rest_shares_take_body(call, bytes.n)) {
        refusal->status = 503;
        return dv_fail(&refusal->err, DV_UNAVAILABLE, "too many large requests at once");
    }
    dv_buf_add(&call->body, bytes);
    return true;
}

void dv_rest_call_hand_over(struct dv_rest_call *call)
{
    const struct dv_rest_server_options *options = &call->server->options;

    call->is_handed = true;
    call->request.body = dv_buf_str(&call->body);
    options->handle(options->ctx, call, &call->request);
}

/* ---- answering ---- */

bool dv_rest_is_sendable(dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
            return false;
    return true;
}

void dv_rest_call_add_field(struct dv_rest_call *call, dv_str name, dv_str value)
{
    if (dv_rest_is_sendable(name) && dv_rest_is_sendable(value))
        *dv_vec_add_in(&call->fields, call->arena) =
            (struct dv_h1_field){dv_str_copy(name, call->arena), dv_str_copy(value, call->arena)};
}

bool dv_rest_call_is_lost(const struct dv_rest_call *call)
{
    return !call->conn || dv_rest_conn_is_breaking(call->conn) ||
           (call->exchange && dv_rest_exchange_is_reset(call->exchange));
}

void dv_rest_call_run_later(struct dv_rest_call *call)
{
    if (call->exchange)
        dv_rest_exchange_run_later(call->exchange);
    else if (call->conn)
        dv_rest_conn_run_later(call->conn);
}

void dv_rest_call_answer(struct dv_rest_call *call, unsigned status, struct dv_buf *body)
{
    assert(call->is_handed && status >= 200 && status <= 599);
    call->status = status;
    if (dv_rest_call_is_lost(call))
        return;
    if (call->exchange)
        dv_rest_http2_answer(call, body);
    else
        dv_rest_http1_answer(call, body);
}

void dv_rest_call_reply_buf(struct dv_rest_call *call, unsigned status, struct dv_buf *body)
{
    struct dv_buf taken = *body;

    assert(!call->stream);
    dv_buf_init(body, taken.max);
    call->status = status;
    if (call->conn) /* otherwise the end was logged when the client went */
        dv_rest_call_log_end(call, taken.n, NULL);
    dv_rest_call_answer(call, status, &taken);
    dv_buf_fini(&taken);
    dv_rest_call_free(call);
}

void dv_rest_call_reply(struct dv_rest_call *call, unsigned status, dv_str body)
{
    struct dv_buf copy;

    dv_buf_init(&copy, body.n);
    dv_buf_add(&copy, body);
    dv_rest_call_reply_buf(call, status, &copy);
}

struct dv_arena *dv_rest_call_arena(struct dv_rest_call *call)
{
    return call->arena;
}

dv_str dv_rest_request_field(const struct dv_rest_request *request, dv_str name)
{
    for (size_t i = 0; i < request->n_fields; i++)
        if (dv_str_eq_nocase(request->fields[i].name, name))
            return request->fields[i].value;
    return DV_STR("");
}

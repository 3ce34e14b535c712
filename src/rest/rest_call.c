/* rest_call.c - one request, from its first line to its answer. */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/num.h"
#include "loop/loop.h"
#include "rest/rest_server.h"
#include "rest/target.h"

/* A client that takes an answer more slowly than this counts as stuck. */
#define ANSWER_BYTES_PER_MS 16u

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

    if (call->conn)
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
    dv_rest_call_log_end(call, 0, err);
    if (!call->is_handed) /* otherwise the handler is going to answer it */
        dv_rest_call_free(call);
}

/* ---- refusing ---- */

/* The limit of a refusal's body: an error's message, and what surrounds it. */
#define REFUSAL_BYTES_MAX 4096u

static struct MHD_Response *make_refusal(const struct dv_rest_server *server, unsigned status,
                                         const struct dv_err *err)
{
    const struct dv_rest_server_options *options = &server->options;
    const char *type = "text/plain; charset=utf-8";
    DV_CLEANUP(dv_buf_fini) struct dv_buf body;
    struct MHD_Response *answer;

    dv_buf_init(&body, REFUSAL_BYTES_MAX);
    if (options->refusal)
        type = options->refusal(options->ctx, status, err, &body);
    else
        dv_buf_printf(&body, "%s\n", err->msg);
    answer = MHD_create_response_from_buffer(body.n, body.p, MHD_RESPMEM_MUST_COPY);
    if (!answer)
        abort(); /* out of memory */
    (void)MHD_add_response_header(answer, "Content-Type", type);
    return answer;
}

/* Refuses a request without showing it to the handler. The answer goes out when the rest of the
 * request has come. */
static void refuse(struct dv_rest_call *call, const struct dv_rest_refusal *refusal)
{
    struct dv_rest_conn *conn = call->conn;

    call->status = refusal->status;
    dv_rest_call_log_end(call, 0, &refusal->err);
    conn->phase = DV_REST_REFUSED;
    conn->discarded_bytes = 0;
    conn->answer = make_refusal(conn->server, refusal->status, &refusal->err);
    conn->status = refusal->status;
    conn->answer_bytes = 0;
    if (refusal->status == MHD_HTTP_SERVICE_UNAVAILABLE)
        (void)MHD_add_response_header(conn->answer, "Retry-After", "1");
    if (refusal->closes)
        (void)MHD_add_response_header(conn->answer, "Connection", "close");
    dv_rest_call_free(call);
    dv_rest_server_complain(conn->server, conn->peer, &refusal->err);
}

/* ---- arriving ---- */

/* Hides the query from libmicrohttpd, which is about to split it. That costs memory for each part,
 * which is meant for the header, and when it runs out of that, it neither answers nor closes. The
 * text is libmicrohttpd's own, and may be changed. */
static void hide_query(const char *target)
{
    char *query = (char *)(uintptr_t)(target ? strchr(target, '?') : NULL);

    if (query)
        query[1] = '\0';
}

void *dv_rest_call_begin(void *ctx, const char *target, struct MHD_Connection *mhd)
{
    struct dv_rest_conn *conn = dv_rest_conn_of(mhd);
    struct dv_rest_server *server = ctx;
    struct dv_rest_call *call = DV_ALLOC(struct dv_rest_call);
    struct dv_rest_request *request = &call->request;

    assert(conn->phase == DV_REST_IDLE && !conn->call);
    conn->phase = DV_REST_ARRIVING;
    conn->call = call;
    call->server = server;
    call->conn = conn;
    call->arena = dv_arena_new();
    call->id = dv_rest_next_id();
    call->start_ns = dv_loop_now_ns(server->loop);
    memcpy(call->peer, conn->peer, sizeof(call->peer));
    dv_buf_init(&call->body, server->options.body_bytes_max);
    server->n_calls++;
    if (dv_rest_target_parse(dv_str_copy(dv_str_from_c(target), call->arena), &request->path,
                             &request->query, &call->target_err))
        (void)dv_succeed(&call->target_err);
    call->target = (dv_str){target, target ? strlen(target) : 0};
    hide_query(target);
    conn->has_spoken = true;
    dv_rest_conn_expect_header(conn);
    return NULL;
}

static enum MHD_Result queue_answer(struct dv_rest_conn *conn)
{
    struct MHD_Response *answer = conn->answer;
    enum MHD_Result result = MHD_queue_response(conn->mhd, conn->status, answer);

    conn->answer = NULL;
    conn->phase = conn->call ? DV_REST_STREAMING : DV_REST_ANSWERING;
    MHD_destroy_response(answer); /* libmicrohttpd has a reference of its own */
    dv_rest_conn_expect(conn, dv_u64_add_clamped(conn->server->options.timeout_ms,
                                                 conn->answer_bytes / ANSWER_BYTES_PER_MS));
    return result;
}

static bool has_body(const struct dv_rest_request *request)
{
    return dv_rest_request_field(request, DV_STR("Content-Length")).n > 0 ||
           dv_rest_request_field(request, DV_STR("Transfer-Encoding")).n > 0;
}

static enum MHD_Result take_header(struct dv_rest_call *call, const char *method,
                                   const char *version)
{
    struct dv_rest_conn *conn = call->conn;
    const struct dv_rest_request *request = &call->request;
    struct dv_rest_refusal refusal = {0};

    call->has_header = true;
    call->is_old = strcmp(version, "HTTP/1.0") == 0;
    dv_rest_header_take(call, method, version, &refusal);
    dv_log(DV_LOG_DEBUG, "rest: call started", DV_F_REQUEST(call->id),
           DV_F_STR("server", call->server->options.name), DV_F_C("peer", call->peer),
           DV_F_STR("method", request->method), DV_F_STR("path", request->path));
    dv_rest_conn_expect(conn, conn->server->options.timeout_ms); /* for the body */
    if (refusal.status == 0) {
        if (has_body(request) && conn->server->options.arriving)
            conn->server->options.arriving(conn->server->options.ctx, call, request);
        return dv_rest_conn_is_breaking(conn) ? MHD_NO : MHD_YES;
    }
    if (refusal.closes)
        dv_rest_server_count(conn->server, DV_REST_DROP_BAD_REQUEST);
    refuse(call, &refusal);
    /* An answer that comes before the body was read also ends the connection. */
    return refusal.is_body_unwanted || refusal.closes ? queue_answer(conn) : MHD_YES;
}

static enum MHD_Result take_body(struct dv_rest_conn *conn, dv_str bytes)
{
    struct dv_rest_server *server = conn->server;
    struct dv_rest_call *call = conn->call;
    struct dv_rest_refusal refusal = {0};

    if (conn->phase == DV_REST_REFUSED) {
        conn->discarded_bytes += bytes.n;
        return conn->discarded_bytes > DV_REST_DISCARD_BYTES_MAX ? MHD_NO : MHD_YES;
    }
    if (bytes.n > server->options.body_bytes_max - call->body.n) {
        dv_rest_header_too_large(call, &refusal);
        refuse(call, &refusal);
    } else if (!dv_rest_shares_take_body(call, bytes.n)) {
        refusal.status = MHD_HTTP_SERVICE_UNAVAILABLE;
        (void)dv_fail(&refusal.err, DV_UNAVAILABLE, "too many large requests at once");
        refuse(call, &refusal);
    } else {
        dv_buf_add(&call->body, bytes);
    }
    return MHD_YES;
}

static enum MHD_Result hand_over(struct dv_rest_call *call)
{
    struct dv_rest_conn *conn = call->conn;
    const struct dv_rest_server_options *options = &call->server->options;

    conn->phase = DV_REST_HANDED;
    dv_timer_cancel(&conn->timer); /* the client has sent everything */
    call->is_handed = true;
    call->request.body = dv_buf_str(&call->body);
    options->handle(options->ctx, call, &call->request);
    if (dv_rest_conn_is_breaking(conn))
        return MHD_NO;
    if (conn->answer)
        return queue_answer(conn);
    dv_rest_conn_suspend(conn);
    return MHD_YES;
}

/* libmicrohttpd calls this with the header, with each piece of the body, and when the request is
 * complete, again and again until there is an answer. */
enum MHD_Result dv_rest_call_access(void *ctx, struct MHD_Connection *mhd, const char *url,
                                    const char *method, const char *version, const char *bytes,
                                    size_t *n_bytes, void **request_ctx)
{
    struct dv_rest_conn *conn = dv_rest_conn_of(mhd);
    dv_str piece = {bytes, *n_bytes};

    (void)ctx;
    (void)url;
    (void)request_ctx;
    *n_bytes = 0; /* tells libmicrohttpd that everything was taken */
    if (dv_rest_conn_is_breaking(conn))
        return MHD_NO;
    if (conn->phase == DV_REST_ARRIVING && !conn->call->has_header)
        return take_header(conn->call, method, version);
    if (piece.n > 0)
        return take_body(conn, piece);
    if (conn->phase == DV_REST_ARRIVING)
        return hand_over(conn->call);
    return queue_answer(conn);
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
            (struct dv_rest_field){dv_str_copy(name, call->arena), dv_str_copy(value, call->arena)};
}

void dv_rest_call_set_answer(struct dv_rest_call *call, unsigned status,
                             struct MHD_Response *answer, size_t n_bytes)
{
    struct dv_rest_conn *conn = call->conn;

    assert(call->is_handed && status >= 200 && status <= 599);
    if (!answer)
        abort(); /* out of memory */
    call->status = status;
    if (!conn || dv_rest_conn_is_breaking(conn)) {
        MHD_destroy_response(answer);
        return;
    }
    for (size_t i = 0; i < call->fields.n; i++)
        (void)MHD_add_response_header(answer, dv_str_to_c(call->fields.v[i].name, call->arena),
                                      dv_str_to_c(call->fields.v[i].value, call->arena));
    if (call->server->is_closing)
        (void)MHD_add_response_header(answer, "Connection", "close");
    conn->answer = answer;
    conn->status = status;
    conn->answer_bytes = n_bytes;
    dv_rest_conn_resume(conn);
}

static void reply(struct dv_rest_call *call, unsigned status, dv_str body,
                  enum MHD_ResponseMemoryMode mode)
{
    /* libmicrohttpd's type lacks the const; it does not write to the bytes. */
    char *bytes = (char *)(uintptr_t)body.p;

    assert(!call->stream);
    dv_rest_call_set_answer(call, status, MHD_create_response_from_buffer(body.n, bytes, mode),
                            body.n);
    if (call->conn) /* otherwise the end was logged when the client went */
        dv_rest_call_log_end(call, body.n, NULL);
    dv_rest_call_free(call);
}

void dv_rest_call_reply(struct dv_rest_call *call, unsigned status, dv_str body)
{
    reply(call, status, body, MHD_RESPMEM_MUST_COPY);
}

void dv_rest_call_reply_buf(struct dv_rest_call *call, unsigned status, struct dv_buf *body)
{
    struct dv_buf taken = *body;

    dv_buf_init(body, taken.max);
    if (taken.n > 0) {
        reply(call, status, dv_buf_str(&taken), MHD_RESPMEM_MUST_FREE);
        return;
    }
    dv_buf_fini(&taken);
    reply(call, status, DV_STR(""), MHD_RESPMEM_PERSISTENT);
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

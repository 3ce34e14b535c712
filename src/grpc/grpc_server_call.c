/* grpc_server_call.c - a call to us, from the request to the answer. */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_places.h"
#include "grpc/grpc_server.h"
#include "grpc/ids.h"
#include "http2/http2.h"
#include "loop/loop.h"

/* How long the request's message may take after its headers, where the client set no shorter
 * deadline. */
#define REQUEST_TIMEOUT_MS 60000u

struct dv_server_call {
    struct dv_server *server;
    struct dv_conn *conn;       /* NULL once the call is over for the client */
    struct dv_h2_call *h2_call; /* NULL once the call is over for the client */
    const struct dv_bound_method *bound;
    struct dv_arena *arena; /* made when it is first asked for */
    struct dv_timer timer;
    struct dv_peer peer;
    uint64_t connection; /* for the observer */
    uint64_t id;
    uint64_t start_ns;
    uint64_t deadline_ms;
    bool is_handed; /* the handler has the call, and must finish it */
    bool is_cancelled;
    void (*cancelled)(void *ctx, struct dv_server_call *call);
    void *cancelled_ctx;
    void (*drained)(void *ctx, struct dv_server_call *call);
    void *drained_ctx;
};

/* ---- what the observer is told ---- */

static void observe(const struct dv_server_call *call, struct dv_grpc_event *event)
{
    event->connection = call->connection;
    event->peer = call->peer;
    event->call = call->id;
    event->method = dv_str_from_c(call->bound->method->path);
    dv_server_observe(call->server, NULL, event);
}

static void observe_message(const struct dv_server_call *call, bool is_sent, dv_str message)
{
    struct dv_grpc_event event = {.kind = DV_GRPC_MESSAGE, .is_sent = is_sent, .message = message};

    if (call->server->options.observer)
        observe(call, &event);
}

/* A call begins; with a status it ends at once, because nobody serves it. */
static void observe_request(struct dv_server_conn *sc, const struct dv_h2_request *request,
                            uint64_t id, const struct dv_err *status)
{
    struct dv_grpc_event event = {
        .kind = DV_GRPC_CALL,
        .call = id,
        .method = request->path,
        .timeout_ms = request->has_timeout ? request->timeout_ns / 1000000 : DV_NO_DEADLINE,
    };

    if (!sc->server->options.observer)
        return;
    dv_server_observe(sc->server, sc, &event);
    if (status) {
        event.kind = DV_GRPC_END;
        event.status = status;
        dv_server_observe(sc->server, sc, &event);
    }
}

static void observe_end(const struct dv_server_call *call, enum dv_code code, dv_str text)
{
    struct dv_grpc_event event = {.kind = DV_GRPC_END};
    struct dv_err status;

    if (code != DV_OK) {
        (void)dv_fail(&status, code, "%.*s", DV_FMT(text));
        event.status = &status;
    }
    observe(call, &event);
}

/* ---- the end of a call ---- */

static void note_end(const struct dv_server_call *call, enum dv_code code, dv_str text)
{
    if (call->server->options.observer)
        observe_end(call, code, text);
    dv_log(DV_LOG_DEBUG, "grpc: served call ended", DV_F_REQUEST(call->id),
           DV_F_STR("server", call->server->options.name),
           DV_F_C("method", call->bound->method->path), DV_F_C("code", dv_code_name(code)),
           DV_F_STR("error", text),
           DV_F_U64("us", (dv_loop_now_ns(call->server->loop) - call->start_ns) / 1000));
}

static void free_call(struct dv_server_call *call)
{
    struct dv_server *server = call->server;

    dv_timer_cancel(&call->timer);
    dv_arena_free(call->arena);
    free(call);
    server->n_calls--;
    dv_server_check_closed(server);
}

static struct dv_place *place_of(const struct dv_server_call *call)
{
    return &DV_CONTAINER(call->conn, struct dv_server_conn, conn)->place;
}

/* Leaves the session's call: the client is answered or gone. */
static void detach(struct dv_server_call *call)
{
    if (call->h2_call)
        dv_h2_call_set_ctx(call->h2_call, NULL);
    if (call->conn && call->is_handed)
        place_of(call)->n_calls--;
    call->h2_call = NULL;
    call->conn = NULL;
}

/* Cancels the call: the client will not hear the answer, but the handler may still be at work on
 * it. */
static void cancel_call(struct dv_server_call *call)
{
    detach(call);
    dv_timer_cancel(&call->timer);
    call->is_cancelled = true;
    if (!call->is_handed)
        free_call(call);
    else if (call->cancelled)
        call->cancelled(call->cancelled_ctx, call); /* comes last, because it may finish the call */
}

static void on_deadline(struct dv_timer *timer)
{
    struct dv_server_call *call = DV_CONTAINER(timer, struct dv_server_call, timer);
    dv_str text = call->is_handed ? DV_STR("the deadline has passed")
                                  : DV_STR("the request did not arrive in time");

    note_end(call, DV_DEADLINE_EXCEEDED, text);
    dv_h2_finish(call->h2_call, DV_DEADLINE_EXCEEDED, text);
    dv_conn_flush_later(call->conn);
    cancel_call(call);
}

/* ---- what a session tells ---- */

/* Refuses an unknown method in the words of the reference's servers, which clients match on. */
static void refuse_unknown(struct dv_server_conn *sc, struct dv_h2_call *h2_call,
                           const struct dv_h2_request *request)
{
    struct dv_server *server = sc->server;
    dv_str path = request->path;
    dv_str rest = dv_str_slice(path, 1, path.n);
    size_t slash = dv_str_find_char(rest, '/');
    dv_str service = dv_str_slice(rest, 0, slash);
    dv_str prefix = dv_str_slice(path, 0, slash + 2); /* "/service/" */
    struct dv_err err;
    bool is_known = false;

    for (size_t i = 0; i < server->methods.n && !is_known; i++)
        is_known = dv_str_starts_with(dv_str_from_c(server->bound[i].method->path), prefix);
    if (is_known)
        (void)dv_fail(&err, DV_UNIMPLEMENTED, "unknown method %.*s for service %.*s",
                      DV_FMT(dv_str_slice(rest, slash + 1, rest.n)), DV_FMT(service));
    else
        (void)dv_fail(&err, DV_UNIMPLEMENTED, "unknown service %.*s", DV_FMT(service));
    observe_request(sc, request, dv_grpc_next_id(), &err);
    dv_server_complain(server, &sc->peer, &err);
    dv_h2_finish(h2_call, err.code, dv_str_from_c(err.msg));
}

static void on_request(struct dv_h2_handler *handler, struct dv_h2_call *h2_call,
                       const struct dv_h2_request *request)
{
    struct dv_server_conn *sc = DV_CONTAINER(handler, struct dv_server_conn, handler);
    struct dv_server *server = sc->server;
    const struct dv_bound_method *bound = dv_map_get(&server->methods, request->path);
    uint64_t now_ms = dv_loop_now_ms(server->loop);
    struct dv_server_call *call;

    if (!bound) {
        refuse_unknown(sc, h2_call, request);
        return;
    }
    if (server->is_closing) {
        dv_h2_finish(h2_call, DV_UNAVAILABLE, DV_STR("the server is closing"));
        return;
    }
    call = DV_ALLOC(struct dv_server_call);
    call->server = server;
    call->conn = &sc->conn;
    call->h2_call = h2_call;
    call->bound = bound;
    call->peer = sc->peer;
    call->connection = sc->id;
    call->id = dv_grpc_next_id();
    call->start_ns = dv_loop_now_ns(server->loop);
    call->deadline_ms = DV_NO_DEADLINE;
    if (request->has_timeout) /* rounded up, so that it does not end before the client's own */
        call->deadline_ms = dv_u64_add_clamped(now_ms, request->timeout_ns / 1000000 +
                                                           (request->timeout_ns % 1000000 != 0));
    dv_h2_call_set_ctx(h2_call, call);
    server->n_calls++;
    dv_timer_start(&call->timer, server->loop,
                   dv_u64_min(call->deadline_ms, now_ms + REQUEST_TIMEOUT_MS), on_deadline);
    dv_log(DV_LOG_DEBUG, "grpc: served call started", DV_F_REQUEST(call->id),
           DV_F_STR("server", server->options.name), DV_F_STR("method", request->path),
           DV_F_I64("pid", call->peer.pid), DV_F_U64("uid", call->peer.uid));
    observe_request(sc, request, call->id, NULL);
}

static void on_message(struct dv_h2_handler *handler, struct dv_h2_call *h2_call, dv_str message)
{
    struct dv_server_call *call = dv_h2_call_ctx(h2_call);
    const struct dv_server_options *options;
    struct dv_err err;

    (void)handler;
    if (!call)
        return; /* the call was refused at its headers */
    observe_message(call, false, message);
    if (dv_loop_now_ms(call->server->loop) >= call->deadline_ms) {
        on_deadline(&call->timer); /* the timeout was 0, or the request came too slowly */
        return;
    }
    call->is_handed = true;
    place_of(call)->n_calls++;
    place_of(call)->is_used = true;
    if (call->deadline_ms == DV_NO_DEADLINE)
        dv_timer_cancel(&call->timer);
    else
        dv_timer_start(&call->timer, call->server->loop, call->deadline_ms, on_deadline);
    options = &call->server->options;
    if (options->allows_call &&
        !options->allows_call(options->ctx, call, call->bound->method->path, &err))
        dv_server_call_finish(call, &err);
    else
        call->bound->method->handle(call->bound->ctx, call, message);
}

static void on_ended(struct dv_h2_handler *handler, struct dv_h2_call *h2_call,
                     const struct dv_h2_end *end)
{
    struct dv_server_call *call = dv_h2_call_ctx(h2_call);

    (void)handler;
    if (!call)
        return; /* the call has been answered */
    note_end(call, end->status.code, dv_str_from_c(end->status.msg));
    cancel_call(call);
}

static void on_drained(struct dv_h2_handler *handler, struct dv_h2_call *h2_call)
{
    struct dv_server_call *call = dv_h2_call_ctx(h2_call);

    (void)handler;
    if (call && call->drained)
        call->drained(call->drained_ctx, call);
}

void dv_server_handle_calls(struct dv_h2_handler *handler)
{
    handler->request = on_request;
    handler->message = on_message;
    handler->ended = on_ended;
    handler->drained = on_drained;
}

/* ---- answering ---- */

bool dv_server_call_send(struct dv_server_call *call, struct dv_h2_msg *msg, struct dv_err *err)
{
    if (!call->h2_call)
        return dv_fail(err, DV_CANCELLED, "the client is gone");
    if (!dv_h2_send(call->h2_call, msg, err))
        return false;
    observe_message(call, true, (dv_str){dv_h2_msg_data(msg), dv_h2_msg_size(msg)});
    dv_conn_flush_later(call->conn);
    return true;
}

void dv_server_call_finish(struct dv_server_call *call, const struct dv_err *err)
{
    enum dv_code code = err ? err->code : DV_OK;
    dv_str text = err ? dv_str_from_c(err->msg) : DV_STR("");

    assert(call->is_handed);
    if (call->h2_call) {
        note_end(call, code, text);
        dv_h2_finish(call->h2_call, code, text);
        dv_conn_flush_later(call->conn);
        detach(call);
    }
    free_call(call);
}

void dv_server_call_reply(struct dv_server_call *call, struct dv_h2_msg *msg)
{
    struct dv_err err;

    if (dv_server_call_send(call, msg, &err) || err.code == DV_CANCELLED)
        dv_server_call_finish(call, NULL); /* a client that is gone hears nothing */
    else
        dv_server_call_finish(call, &err);
    dv_h2_msg_unref(msg);
}

void dv_server_call_on_cancel(struct dv_server_call *call,
                              void (*cancelled)(void *ctx, struct dv_server_call *call), void *ctx)
{
    call->cancelled = cancelled;
    call->cancelled_ctx = ctx;
}

void dv_server_call_on_drained(struct dv_server_call *call,
                               void (*drained)(void *ctx, struct dv_server_call *call), void *ctx)
{
    call->drained = drained;
    call->drained_ctx = ctx;
}

bool dv_server_call_is_cancelled(const struct dv_server_call *call)
{
    return call->is_cancelled;
}

struct dv_arena *dv_server_call_arena(struct dv_server_call *call)
{
    if (!call->arena)
        call->arena = dv_arena_new();
    return call->arena;
}

uint64_t dv_server_call_id(const struct dv_server_call *call)
{
    return call->id;
}

struct dv_peer dv_server_call_peer(const struct dv_server_call *call)
{
    return call->peer;
}

const struct dv_stream *dv_server_call_stream(const struct dv_server_call *call)
{
    return call->conn ? call->conn->stream : NULL;
}

uint64_t dv_server_call_deadline_ms(const struct dv_server_call *call)
{
    return call->deadline_ms;
}

size_t dv_server_call_unsent_bytes(const struct dv_server_call *call)
{
    return call->h2_call ? dv_h2_call_unsent_bytes(call->h2_call) : 0;
}

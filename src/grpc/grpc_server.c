/* grpc_server.c - calls to us: connections, and the calls on them from request to answer. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "grpc/grpc.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_places.h"
#include "grpc/ids.h"

/* For a client's preface and settings. */
#define HANDSHAKE_TIMEOUT_MS 20000u
/* For the request's message, after its headers, where the client set no shorter deadline. */
#define REQUEST_TIMEOUT_MS 60000u
/* Idle connections cost about 16 KiB each. */
#define CONNECTIONS_DEFAULT 1024u
/* Of the process's descriptors a server takes one in so many: there are several servers. */
#define DESCRIPTORS_PART 8u
/* Complaints about peers: so many in a period, the rest is dropped. */
#define COMPLAINTS_MAX 100u
#define COMPLAINTS_PERIOD_MS 10000u

struct server_conn {
    struct dv_conn conn;
    struct dv_h2_handler handler;
    struct dv_server *server;
    struct dv_link link;
    struct dv_place place;
    struct dv_peer peer;
    struct dv_timer handshake_timer;
};

struct bound_method {
    const struct dv_method *method;
    void *ctx;
};

struct dv_server {
    struct dv_loop *loop;
    struct dv_server_options options;
    struct dv_listener *listener;
    struct dv_listener_handler listener_handler;
    struct dv_map methods; /* bound_method by path */
    struct bound_method *bound;
    struct dv_list conns;
    size_t n_conns; /* with those that are being closed */
    struct dv_places places;
    size_t n_calls; /* that a handler has not finished */
    uint64_t complaints_since_ms;
    unsigned n_complaints;
    struct dv_timer grace_timer;
    struct dv_task close_task;
    bool is_listening;
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
    char name[];
};

struct dv_server_call {
    struct dv_server *server;
    struct dv_conn *conn;       /* NULL once the call is over for the client */
    struct dv_h2_call *h2_call; /* likewise */
    const struct bound_method *bound;
    struct dv_arena *arena; /* made when asked for */
    struct dv_timer timer;
    struct dv_peer peer;
    uint64_t id;
    uint64_t start_ns;
    uint64_t deadline_ms;
    bool is_handed; /* the handler has it, and finishes it */
    bool is_cancelled;
    void (*cancelled)(void *ctx, struct dv_server_call *call);
    void *cancelled_ctx;
    void (*drained)(void *ctx, struct dv_server_call *call);
    void *drained_ctx;
};

/* A peer may do wrong as often as it likes; a log cannot say so as often. */
static bool may_complain(struct dv_server *server)
{
    uint64_t now_ms = dv_loop_now_ms(server->loop);

    if (now_ms - server->complaints_since_ms >= COMPLAINTS_PERIOD_MS) {
        server->complaints_since_ms = now_ms;
        server->n_complaints = 0;
    }
    return server->n_complaints++ < COMPLAINTS_MAX;
}

static void complain(struct dv_server *server, const struct dv_peer *peer, const struct dv_err *err)
{
    if (!may_complain(server))
        return;
    dv_log(DV_LOG_DEBUG, "grpc: peer refused", DV_F_STR("server", server->options.name),
           DV_F_I64("pid", peer->pid), DV_F_U64("uid", peer->uid), DV_F_CODE(err), DV_F_ERR(err));
    if (server->options.complaint)
        server->options.complaint(server->options.ctx, peer, err);
}

/* ---- the end of a server ---- */

static void on_close_task(struct dv_task *task)
{
    struct dv_server *server = DV_CONTAINER(task, struct dv_server, close_task);
    dv_closed_fn *closed = server->closed;
    void *ctx = server->closed_ctx;

    if (server->n_calls > 0 || server->n_conns > 0 || server->is_listening)
        return;
    dv_timer_cancel(&server->grace_timer);
    dv_map_fini(&server->methods);
    free(server->bound);
    free(server);
    if (closed)
        closed(ctx);
}

static void check_closed(struct dv_server *server)
{
    if (server->is_closing)
        dv_task_post(&server->close_task, server->loop, on_close_task);
}

/* ---- the end of a call ---- */

static void log_end(const struct dv_server_call *call, enum dv_code code, dv_str text)
{
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
    check_closed(server);
}

static struct dv_place *place_of(const struct dv_server_call *call)
{
    return &DV_CONTAINER(call->conn, struct server_conn, conn)->place;
}

/* The client is answered or gone: the session's call is not ours any more. */
static void detach(struct dv_server_call *call)
{
    if (call->h2_call)
        dv_h2_call_set_ctx(call->h2_call, NULL);
    if (call->conn && call->is_handed)
        place_of(call)->n_calls--;
    call->h2_call = NULL;
    call->conn = NULL;
}

/* The client will not hear the answer; the handler may still be at work on it. */
static void cancel_call(struct dv_server_call *call)
{
    detach(call);
    dv_timer_cancel(&call->timer);
    call->is_cancelled = true;
    if (!call->is_handed)
        free_call(call);
    else if (call->cancelled)
        call->cancelled(call->cancelled_ctx, call); /* last: it may finish the call */
}

static void on_deadline(struct dv_timer *timer)
{
    struct dv_server_call *call = DV_CONTAINER(timer, struct dv_server_call, timer);
    dv_str text = call->is_handed ? DV_STR("the deadline has passed")
                                  : DV_STR("the request did not arrive in time");

    log_end(call, DV_DEADLINE_EXCEEDED, text);
    dv_h2_finish(call->h2_call, DV_DEADLINE_EXCEEDED, text);
    dv_conn_flush_later(call->conn);
    cancel_call(call);
}

/* ---- what a session tells ---- */

/* In the words of the reference's servers, which clients match on. */
static void refuse_unknown(struct server_conn *sc, struct dv_h2_call *h2_call, dv_str path)
{
    struct dv_server *server = sc->server;
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
    complain(server, &sc->peer, &err);
    dv_h2_finish(h2_call, err.code, dv_str_from_c(err.msg));
}

static void on_request(struct dv_h2_handler *handler, struct dv_h2_call *h2_call,
                       const struct dv_h2_request *request)
{
    struct server_conn *sc = DV_CONTAINER(handler, struct server_conn, handler);
    struct dv_server *server = sc->server;
    const struct bound_method *bound = dv_map_get(&server->methods, request->path);
    uint64_t now_ms = dv_loop_now_ms(server->loop);
    struct dv_server_call *call;

    if (!bound) {
        refuse_unknown(sc, h2_call, request->path);
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
    call->id = dv_grpc_next_id();
    call->start_ns = dv_loop_now_ns(server->loop);
    call->deadline_ms = DV_NO_DEADLINE;
    if (request->has_timeout) /* rounded up: never before the client's own */
        call->deadline_ms = dv_u64_add_clamped(now_ms, request->timeout_ns / 1000000 +
                                                           (request->timeout_ns % 1000000 != 0));
    dv_h2_call_set_ctx(h2_call, call);
    server->n_calls++;
    dv_timer_start(&call->timer, server->loop,
                   dv_u64_min(call->deadline_ms, now_ms + REQUEST_TIMEOUT_MS), on_deadline);
    dv_log(DV_LOG_DEBUG, "grpc: served call started", DV_F_REQUEST(call->id),
           DV_F_STR("server", server->options.name), DV_F_STR("method", request->path),
           DV_F_I64("pid", call->peer.pid), DV_F_U64("uid", call->peer.uid));
}

static void on_message(struct dv_h2_handler *handler, struct dv_h2_call *h2_call, dv_str message)
{
    struct dv_server_call *call = dv_h2_call_ctx(h2_call);

    (void)handler;
    if (!call)
        return; /* refused at its headers */
    if (dv_loop_now_ms(call->server->loop) >= call->deadline_ms) {
        on_deadline(&call->timer); /* a timeout of 0, or a request that came slowly */
        return;
    }
    call->is_handed = true;
    place_of(call)->n_calls++;
    place_of(call)->is_used = true;
    if (call->deadline_ms == DV_NO_DEADLINE)
        dv_timer_cancel(&call->timer);
    else
        dv_timer_start(&call->timer, call->server->loop, call->deadline_ms, on_deadline);
    call->bound->method->handle(call->bound->ctx, call, message);
}

static void on_ended(struct dv_h2_handler *handler, struct dv_h2_call *h2_call,
                     const struct dv_h2_end *end)
{
    struct dv_server_call *call = dv_h2_call_ctx(h2_call);

    (void)handler;
    if (!call)
        return; /* answered */
    log_end(call, end->status.code, dv_str_from_c(end->status.msg));
    cancel_call(call);
}

static void on_drained(struct dv_h2_handler *handler, struct dv_h2_call *h2_call)
{
    struct dv_server_call *call = dv_h2_call_ctx(h2_call);

    (void)handler;
    if (call && call->drained)
        call->drained(call->drained_ctx, call);
}

static void on_refused(struct dv_h2_handler *handler, const struct dv_err *err)
{
    struct server_conn *sc = DV_CONTAINER(handler, struct server_conn, handler);

    complain(sc->server, &sc->peer, err);
}

static void on_ready(struct dv_h2_handler *handler)
{
    struct server_conn *sc = DV_CONTAINER(handler, struct server_conn, handler);

    dv_timer_cancel(&sc->handshake_timer);
    sc->place.is_ready = true;
}

/* ---- connections ---- */

static void on_gone(struct dv_conn *conn, const struct dv_err *reason)
{
    struct server_conn *sc = DV_CONTAINER(conn, struct server_conn, conn);

    dv_timer_cancel(&sc->handshake_timer);
    dv_places_leave(&sc->server->places, &sc->place);
    /* A peer that went away is no fault; one that broke the protocol or the time limits is. */
    if (reason->code != DV_UNAVAILABLE && reason->code != DV_CANCELLED)
        complain(sc->server, &sc->peer, reason);
}

static void on_conn_closed(struct dv_conn *conn)
{
    struct server_conn *sc = DV_CONTAINER(conn, struct server_conn, conn);
    struct dv_server *server = sc->server;

    dv_link_remove(&sc->link);
    server->n_conns--;
    free(sc);
    check_closed(server);
}

static void on_handshake_timeout(struct dv_timer *timer)
{
    struct server_conn *sc = DV_CONTAINER(timer, struct server_conn, handshake_timer);

    dv_conn_break(&sc->conn, DV_DEADLINE_EXCEEDED, "the peer said nothing in HTTP/2 for 20 s");
}

/* The place is the newcomer's already. */
static void displace(struct server_conn *sc)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_RESOURCE_EXHAUSTED,
                  "an idle connection was closed: its place was needed for another");
    complain(sc->server, &sc->peer, &err);
    dv_conn_dismiss(&sc->conn, DV_CANCELLED, err.msg);
}

/* Whether the peer may connect, and there is a place for it. */
static bool admit(struct dv_server *server, const struct dv_stream *stream, struct server_conn *sc,
                  struct dv_err *err)
{
    struct dv_place *displaced;

    if (server->is_closing)
        return dv_fail(err, DV_UNAVAILABLE, "connection refused: the server is closing");
    if (server->options.allows && !server->options.allows(server->options.ctx, stream, err))
        return false;
    if (!dv_places_take(&server->places, &sc->place, &sc->peer, dv_loop_now_ms(server->loop),
                        &displaced, err))
        return false;
    if (displaced)
        displace(DV_CONTAINER(displaced, struct server_conn, place));
    return true;
}

static void on_accept(struct dv_listener_handler *handler, struct dv_stream *stream)
{
    struct dv_server *server = DV_CONTAINER(handler, struct dv_server, listener_handler);
    struct dv_h2_options options = dv_h2_default_options(true);
    struct server_conn *sc = DV_ALLOC(struct server_conn);
    struct dv_err err;

    sc->server = server;
    sc->peer = dv_stream_peer(stream);
    if (!admit(server, stream, sc, &err)) {
        complain(server, &sc->peer, &err);
        dv_stream_close(stream, NULL, NULL);
        free(sc);
        return;
    }
    options.message_bytes_max = server->options.message_bytes_max;
    options.partial_bytes_max =
        dv_size_max(options.partial_bytes_max, options.message_bytes_max * 2);
    options.unsent_bytes_max = dv_size_max(options.unsent_bytes_max, options.message_bytes_max);
    sc->conn.gone = on_gone;
    sc->conn.closed = on_conn_closed;
    sc->handler = (struct dv_h2_handler){
        .request = on_request,
        .message = on_message,
        .ended = on_ended,
        .drained = on_drained,
        .ready = on_ready,
        .refused = on_refused,
    };
    dv_list_push(&server->conns, &sc->link);
    server->n_conns++;
    dv_timer_start(&sc->handshake_timer, server->loop,
                   dv_loop_now_ms(server->loop) + HANDSHAKE_TIMEOUT_MS, on_handshake_timeout);
    dv_conn_start(&sc->conn, server->loop, stream, &options, &sc->handler);
}

static void on_accept_failed(struct dv_listener_handler *handler, const struct dv_err *err)
{
    struct dv_server *server = DV_CONTAINER(handler, struct dv_server, listener_handler);

    complain(server, &(struct dv_peer){.pid = -1, .uid = (uid_t)-1, .gid = (gid_t)-1}, err);
}

/* ---- servers ---- */

static void bind_methods(struct dv_server *server)
{
    const struct dv_server_options *options = &server->options;
    size_t n = 0;

    for (size_t i = 0; i < options->n_services; i++)
        n += options->services[i].n_methods;
    server->bound = dv_alloc((n + 1) * sizeof(server->bound[0]));
    n = 0;
    for (size_t i = 0; i < options->n_services; i++) {
        const struct dv_service *service = &options->services[i];

        for (size_t k = 0; k < service->n_methods; k++) {
            struct bound_method *bound = &server->bound[n++];

            *bound = (struct bound_method){&service->methods[k], service->ctx};
            if (dv_map_set(&server->methods, dv_str_from_c(bound->method->path), bound))
                assert(false && "a method is offered twice");
        }
    }
}

static size_t default_connections_max(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return CONNECTIONS_DEFAULT;
    return dv_size_max(dv_size_min(CONNECTIONS_DEFAULT, (size_t)limit.rlim_cur / DESCRIPTORS_PART),
                       1);
}

struct dv_server *dv_server_open(struct dv_loop *loop, dv_str path,
                                 const struct dv_server_options *options, struct dv_err *err)
{
    struct dv_server *server = dv_alloc(sizeof(*server) + options->name.n);

    if (options->name.n > 0)
        memcpy(server->name, options->name.p, options->name.n);
    server->loop = loop;
    server->options = *options;
    server->options.name = (dv_str){server->name, options->name.n};
    if (server->options.message_bytes_max == 0)
        server->options.message_bytes_max = dv_h2_default_options(true).message_bytes_max;
    if (server->options.connections_max == 0)
        server->options.connections_max = default_connections_max();
    dv_places_init(&server->places, server->options.connections_max);
    server->listener_handler = (struct dv_listener_handler){on_accept, on_accept_failed};
    dv_list_init(&server->conns);
    server->listener = dv_listener_open(loop, path, options->mode, &server->listener_handler, err);
    if (!server->listener) {
        free(server);
        return NULL;
    }
    server->is_listening = true;
    dv_map_init(&server->methods);
    bind_methods(server);
    return server;
}

static void on_listener_closed(void *ctx)
{
    struct dv_server *server = ctx;

    server->is_listening = false;
    check_closed(server);
}

static void on_grace_over(struct dv_timer *timer)
{
    struct dv_server *server = DV_CONTAINER(timer, struct dv_server, grace_timer);
    struct dv_link *link;

    DV_LIST_EACH (&server->conns, link) {
        struct server_conn *sc = DV_CONTAINER(link, struct server_conn, link);

        dv_conn_break(&sc->conn, DV_CANCELLED, "the server was closed");
    }
}

void dv_server_close(struct dv_server *server, uint64_t grace_ms, dv_closed_fn *closed, void *ctx)
{
    struct dv_link *link;

    assert(!server->is_closing);
    server->is_closing = true;
    server->closed = closed;
    server->closed_ctx = ctx;
    dv_listener_close(server->listener, on_listener_closed, server);
    DV_LIST_EACH (&server->conns, link) {
        struct server_conn *sc = DV_CONTAINER(link, struct server_conn, link);

        if (dv_conn_is_breaking(&sc->conn))
            continue;
        dv_h2_shut_down(sc->conn.h2);
        dv_conn_flush_later(&sc->conn);
    }
    dv_timer_start(&server->grace_timer, server->loop,
                   dv_u64_add_clamped(dv_loop_now_ms(server->loop), grace_ms), on_grace_over);
}

size_t dv_server_n_connections(const struct dv_server *server)
{
    return server->n_conns;
}

/* ---- answering ---- */

bool dv_server_call_send(struct dv_server_call *call, struct dv_h2_msg *msg, struct dv_err *err)
{
    if (!call->h2_call)
        return dv_fail(err, DV_CANCELLED, "the client is gone");
    if (!dv_h2_send(call->h2_call, msg, err))
        return false;
    dv_conn_flush_later(call->conn);
    return true;
}

void dv_server_call_finish(struct dv_server_call *call, const struct dv_err *err)
{
    enum dv_code code = err ? err->code : DV_OK;
    dv_str text = err ? dv_str_from_c(err->msg) : DV_STR("");

    assert(call->is_handed);
    if (call->h2_call) {
        log_end(call, code, text);
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

uint64_t dv_server_call_deadline_ms(const struct dv_server_call *call)
{
    return call->deadline_ms;
}

size_t dv_server_call_unsent_bytes(const struct dv_server_call *call)
{
    return call->h2_call ? dv_h2_call_unsent_bytes(call->h2_call) : 0;
}

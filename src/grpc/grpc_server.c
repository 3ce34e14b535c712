/* grpc_server.c - opens and closes a server, and accepts connections to it. */
#include "grpc/grpc_server.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_places.h"
#include "grpc/ids.h"

/* How long a client may take to send its preface and settings. */
#define HANDSHAKE_TIMEOUT_MS 20000u
/* The default limit of connections; an idle one costs about 16 KiB. */
#define CONNECTIONS_DEFAULT 1024u
/* A server takes one in so many of the process's descriptors, because there are several servers. */
#define DESCRIPTORS_PART 8u
/* So many complaints about peers are passed on in a period; the rest is dropped. */
#define COMPLAINTS_MAX 100u
#define COMPLAINTS_PERIOD_MS 10000u

/* Whether one more complaint may be passed on: a peer can do wrong as often as it likes, and would
 * fill the log. */
static bool may_complain(struct dv_server *server)
{
    uint64_t now_ms = dv_loop_now_ms(server->loop);

    if (now_ms - server->complaints_since_ms >= COMPLAINTS_PERIOD_MS) {
        server->complaints_since_ms = now_ms;
        server->n_complaints = 0;
    }
    return server->n_complaints++ < COMPLAINTS_MAX;
}

void dv_server_observe(const struct dv_server *server, const struct dv_server_conn *sc,
                       struct dv_grpc_event *event)
{
    event->is_served = true;
    event->name = server->options.name;
    event->path = server->path;
    if (sc) {
        event->connection = sc->id;
        event->peer = sc->peer;
    }
    server->options.observer->event(server->options.observer, event);
}

void dv_server_complain(struct dv_server *server, const struct dv_peer *peer,
                        const struct dv_err *err)
{
    if (!may_complain(server))
        return;
    dv_log(DV_LOG_DEBUG, "grpc: peer refused", DV_F_STR("server", server->options.name),
           DV_F_I64("pid", peer->pid), DV_F_U64("uid", peer->uid), DV_F_CODE(err), DV_F_ERR(err));
    if (server->options.observer) {
        struct dv_grpc_event event = {.kind = DV_GRPC_REFUSED, .peer = *peer, .status = err};

        dv_server_observe(server, NULL, &event);
    }
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

void dv_server_check_closed(struct dv_server *server)
{
    if (server->is_closing)
        dv_task_post(&server->close_task, server->loop, on_close_task);
}

/* ---- connections ---- */

static void on_refused(struct dv_h2_handler *handler, const struct dv_err *err)
{
    struct dv_server_conn *sc = DV_CONTAINER(handler, struct dv_server_conn, handler);

    dv_server_complain(sc->server, &sc->peer, err);
}

static void on_ready(struct dv_h2_handler *handler)
{
    struct dv_server_conn *sc = DV_CONTAINER(handler, struct dv_server_conn, handler);

    dv_timer_cancel(&sc->handshake_timer);
    sc->place.is_ready = true;
}

static void on_gone(struct dv_conn *conn, const struct dv_err *reason)
{
    struct dv_server_conn *sc = DV_CONTAINER(conn, struct dv_server_conn, conn);

    dv_timer_cancel(&sc->handshake_timer);
    dv_places_leave(&sc->server->places, &sc->place);
    if (sc->server->options.observer) {
        struct dv_grpc_event event = {.kind = DV_GRPC_DISCONNECTED, .status = reason};

        dv_server_observe(sc->server, sc, &event);
    }
    /* A peer that went away has done nothing wrong; one that broke the protocol or a time limit
     * has. */
    if (reason->code != DV_UNAVAILABLE && reason->code != DV_CANCELLED)
        dv_server_complain(sc->server, &sc->peer, reason);
}

static void on_conn_closed(struct dv_conn *conn)
{
    struct dv_server_conn *sc = DV_CONTAINER(conn, struct dv_server_conn, conn);
    struct dv_server *server = sc->server;

    dv_link_remove(&sc->link);
    server->n_conns--;
    free(sc);
    dv_server_check_closed(server);
}

static void on_handshake_timeout(struct dv_timer *timer)
{
    struct dv_server_conn *sc = DV_CONTAINER(timer, struct dv_server_conn, handshake_timer);

    dv_conn_break(&sc->conn, DV_DEADLINE_EXCEEDED, "the peer said nothing in HTTP/2 for 20 s");
}

/* Ends a connection whose place was given to a newcomer. */
static void displace(struct dv_server_conn *sc)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_RESOURCE_EXHAUSTED,
                  "an idle connection was closed: its place was needed for another");
    dv_server_complain(sc->server, &sc->peer, &err);
    dv_conn_dismiss(&sc->conn, DV_CANCELLED, err.msg);
}

/* Whether the policy lets the peer connect, and there is a place for it. */
static bool admit(struct dv_server *server, const struct dv_stream *stream,
                  struct dv_server_conn *sc, struct dv_err *err)
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
        displace(DV_CONTAINER(displaced, struct dv_server_conn, place));
    return true;
}

static void on_accept(struct dv_listener_handler *handler, struct dv_stream *stream)
{
    struct dv_server *server = DV_CONTAINER(handler, struct dv_server, listener_handler);
    struct dv_h2_options options = dv_h2_default_options(true);
    struct dv_server_conn *sc = DV_ALLOC(struct dv_server_conn);
    struct dv_err err;

    sc->server = server;
    sc->peer = dv_stream_peer(stream);
    if (!admit(server, stream, sc, &err)) {
        dv_server_complain(server, &sc->peer, &err);
        dv_stream_close(stream, NULL, NULL);
        free(sc);
        return;
    }
    options.message_bytes_max = server->options.message_bytes_max;
    /* There is room for two messages of the largest size that arrive at the same time. */
    options.partial_bytes_max =
        dv_size_max(options.partial_bytes_max, options.message_bytes_max * 2);
    options.unsent_bytes_max = dv_size_max(options.unsent_bytes_max, options.message_bytes_max);
    sc->conn.gone = on_gone;
    sc->conn.closed = on_conn_closed;
    sc->handler = (struct dv_h2_handler){.ready = on_ready, .refused = on_refused};
    dv_server_handle_calls(&sc->handler);
    dv_list_push(&server->conns, &sc->link);
    server->n_conns++;
    dv_timer_start(&sc->handshake_timer, server->loop,
                   dv_loop_now_ms(server->loop) + HANDSHAKE_TIMEOUT_MS, on_handshake_timeout);
    if (server->options.observer) {
        struct dv_grpc_event event = {.kind = DV_GRPC_CONNECTED};

        sc->id = dv_grpc_next_id();
        dv_server_observe(server, sc, &event);
    }
    dv_conn_start(&sc->conn, server->loop, stream, &options, &sc->handler);
}

static void on_accept_failed(struct dv_listener_handler *handler, const struct dv_err *err)
{
    struct dv_server *server = DV_CONTAINER(handler, struct dv_server, listener_handler);

    /* There is no peer to name: the connection was never accepted. */
    dv_server_complain(server, &(struct dv_peer){.pid = -1, .uid = (uid_t)-1, .gid = (gid_t)-1},
                       err);
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
            struct dv_bound_method *bound = &server->bound[n++];

            *bound = (struct dv_bound_method){&service->methods[k], service->ctx};
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
    struct dv_server *server = dv_alloc(sizeof(*server) + options->name.n + path.n);
    char *at = server->text;

    server->loop = loop;
    server->options = *options;
    server->options.name = dv_str_put(options->name, &at);
    server->path = dv_str_put(path, &at);
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
    if (options->remade)
        dv_server_watch_file(server);
    return server;
}

static void on_listener_closed(void *ctx)
{
    struct dv_server *server = ctx;

    server->is_listening = false;
    dv_server_check_closed(server);
}

static void on_grace_over(struct dv_timer *timer)
{
    struct dv_server *server = DV_CONTAINER(timer, struct dv_server, grace_timer);
    struct dv_link *link;

    DV_LIST_EACH (&server->conns, link) {
        struct dv_server_conn *sc = DV_CONTAINER(link, struct dv_server_conn, link);

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
    dv_server_unwatch_file(server);
    dv_listener_close(server->listener, on_listener_closed, server);
    DV_LIST_EACH (&server->conns, link) {
        struct dv_server_conn *sc = DV_CONTAINER(link, struct dv_server_conn, link);

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

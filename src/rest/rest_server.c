/* rest_server.c - servers, from the listening socket to the last call. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "rest/rest_server.h"
#include "rest/tls.h"

/* The default limit of a body, which is the Kubernetes API's. */
#define BODY_BYTES_DEFAULT (3u * 1024u * 1024u)
/* The default limit of all bodies: a burst of the largest ones, which a small machine can spare. */
#define BODIES_BYTES_DEFAULT (64u * 1024u * 1024u)
/* The default limit of a stream's unsent bytes: the largest object, with what came before it. */
#define UNSENT_BYTES_DEFAULT (4u * 1024u * 1024u)
#define CONNECTIONS_DEFAULT 1024u
#define TIMEOUT_DEFAULT_MS 60000u

void dv_rest_server_complain(struct dv_rest_server *server, const char *peer,
                             const struct dv_err *err)
{
    dv_log(DV_LOG_DEBUG, "rest: client refused", DV_F_STR("server", server->options.name),
           DV_F_C("peer", peer), DV_F_CODE(err), DV_F_ERR(err));
    if (server->options.complaint)
        server->options.complaint(server->options.ctx, dv_str_from_c(peer), err);
}

dv_str dv_rest_server_date(struct dv_rest_server *server)
{
    int64_t seconds = (int64_t)(dv_clock_wall_ns(dv_loop_clock(server->loop)) / DV_NS_PER_S);

    if (seconds != server->date_seconds)
        (void)dv_h1_print_date(seconds, server->date); /* the text is read below */
    server->date_seconds = seconds;
    return dv_str_from_c(server->date);
}

/* ---- opening ---- */

static size_t or_default(size_t value, size_t by_default)
{
    return value > 0 ? value : by_default;
}

static struct dv_rest_server *new_server(struct dv_loop *loop,
                                         const struct dv_rest_server_options *options)
{
    struct dv_rest_server *server = dv_alloc(sizeof(*server) + options->name.n);
    struct dv_rest_server_options *own = &server->options;

    if (options->name.n > 0)
        memcpy(server->name, options->name.p, options->name.n);
    server->loop = loop;
    *own = *options;
    own->name = (dv_str){server->name, options->name.n};
    own->tls = NULL; /* belongs to the caller; see `creds` */
    own->body_bytes_max = or_default(own->body_bytes_max, BODY_BYTES_DEFAULT);
    own->bodies_bytes_max = or_default(own->bodies_bytes_max, BODIES_BYTES_DEFAULT);
    own->unsent_bytes_max = or_default(own->unsent_bytes_max, UNSENT_BYTES_DEFAULT);
    own->connections_max = or_default(own->connections_max, CONNECTIONS_DEFAULT);
    own->timeout_ms = own->timeout_ms > 0 ? own->timeout_ms : TIMEOUT_DEFAULT_MS;
    server->listen_fd = server->epoll_fd = -1;
    server->date_seconds = -1;
    server->read_buffer = dv_alloc(DV_REST_READ_BYTES);
    dv_list_init(&server->conns);
    dv_list_init(&server->ready);
    dv_list_init(&server->shakes);
    dv_rest_shares_init(&server->shares);
    return server;
}

static void stop_listening(struct dv_rest_server *server)
{
    dv_timer_cancel(&server->accept_timer);
    if (server->listen_poll)
        dv_poll_close(server->listen_poll, NULL, NULL);
    dv_close_fd(&server->listen_fd);
    server->listen_poll = NULL;
    server->listen_fd = -1;
}

/* Frees a server, also one that is half open. */
static void free_server(struct dv_rest_server *server)
{
    stop_listening(server);
    dv_timer_cancel(&server->grace_timer);
    dv_task_cancel(&server->close_task);
    if (server->epoll_poll)
        dv_poll_close(server->epoll_poll, NULL, NULL);
    dv_close_fd(&server->epoll_fd);
    dv_task_cancel(&server->run_task);
    free(server->read_buffer);
    dv_rest_creds_unref(server->creds);
    dv_rest_shares_fini(&server->shares);
    free(server);
}

struct dv_rest_server *dv_rest_server_open_fd(struct dv_loop *loop, int fd,
                                              const struct dv_rest_server_options *options,
                                              struct dv_err *err)
{
    struct dv_rest_server *server = new_server(loop, options);

    server->listen_fd = fd;
    if (options->tls)
        server->creds = dv_rest_creds_new(options->tls, err);
    if ((options->tls && !server->creds) || !dv_rest_listen_check(fd, err))
        goto failed;
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->epoll_fd < 0) {
        (void)dv_fail_errno(err, errno, "epoll");
        goto failed;
    }
    server->epoll_poll = dv_poll_open(loop, server->epoll_fd, dv_rest_conn_events, server, err);
    if (!server->epoll_poll)
        goto failed;
    dv_poll_set(server->epoll_poll, DV_POLL_READ);
    server->listen_poll = dv_poll_open(loop, fd, dv_rest_conn_accept, server, err);
    if (!server->listen_poll)
        goto failed;
    dv_poll_set(server->listen_poll, DV_POLL_READ);
    return server;
failed:
    free_server(server);
    return NULL;
}

struct dv_rest_server *dv_rest_server_open(struct dv_loop *loop, dv_str address,
                                           const struct dv_rest_server_options *options,
                                           struct dv_err *err)
{
    int fd;

    if (!dv_rest_listen(address, &fd, err))
        return NULL;
    return dv_rest_server_open_fd(loop, fd, options, err);
}

uint16_t dv_rest_server_port(const struct dv_rest_server *server)
{
    return server->listen_fd < 0 ? 0 : dv_rest_listen_port(server->listen_fd);
}

size_t dv_rest_server_n_connections(const struct dv_rest_server *server)
{
    return server->n_conns;
}

/* ---- closing ---- */

static void on_close_task(struct dv_task *task)
{
    struct dv_rest_server *server = DV_CONTAINER(task, struct dv_rest_server, close_task);
    dv_closed_fn *closed = server->closed;
    void *ctx = server->closed_ctx;

    if (server->n_conns > 0 || server->n_calls > 0)
        return;
    free_server(server);
    if (closed)
        closed(ctx);
}

void dv_rest_server_check_closed(struct dv_rest_server *server)
{
    if (server->is_closing)
        dv_task_post(&server->close_task, server->loop, on_close_task);
}

static void on_grace_over(struct dv_timer *timer)
{
    struct dv_rest_server *server = DV_CONTAINER(timer, struct dv_rest_server, grace_timer);
    struct dv_link *link;

    DV_LIST_EACH (&server->conns, link)
        dv_rest_conn_break(DV_CONTAINER(link, struct dv_rest_conn, link), DV_CANCELLED,
                           "the server was closed");
}

void dv_rest_server_close(struct dv_rest_server *server, uint64_t grace_ms, dv_closed_fn *closed,
                          void *ctx)
{
    struct dv_link *link;

    assert(!server->is_closing);
    server->is_closing = true;
    server->closed = closed;
    server->closed_ctx = ctx;
    stop_listening(server);
    DV_LIST_EACH (&server->conns, link) {
        struct dv_rest_conn *conn = DV_CONTAINER(link, struct dv_rest_conn, link);

        if (conn->phase <= DV_REST_LEAVING)
            dv_rest_conn_break(conn, DV_CANCELLED, "the server is closing");
        else if (conn->h2)
            dv_rest_http2_close(conn);
    }
    dv_timer_start(&server->grace_timer, server->loop,
                   dv_u64_add_clamped(dv_loop_now_ms(server->loop), grace_ms), on_grace_over);
    dv_rest_server_check_closed(server);
}

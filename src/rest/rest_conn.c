/* rest_conn.c - connections: how they are accepted, what they wait for, and how they end. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/num.h"
#include "loop/loop.h"
#include "rest/rest_server.h"
#include "rest/tls.h"

/* The limit of connections that are accepted in one turn, so that the others get their share of
 * time. */
#define ACCEPTS_MAX 32
/* Without a free descriptor, accepting is tried again after this time: some must be closed
 * first. */
#define ACCEPT_PAUSE_MS 100u
#define EVENTS_MAX 64

/* The answer when there is no room. It is written in one piece into an empty socket buffer. */
static const char too_many[] = "HTTP/1.1 503 Service Unavailable\r\n"
                               "Connection: close\r\n"
                               "Retry-After: 1\r\n"
                               "Content-Length: 0\r\n\r\n";

/* ---- the end ---- */

bool dv_rest_conn_is_breaking(const struct dv_rest_conn *conn)
{
    return conn->reason.code != DV_OK;
}

void dv_rest_conn_break(struct dv_rest_conn *conn, enum dv_code code, const char *text)
{
    if (dv_rest_conn_is_breaking(conn))
        return;
    (void)dv_fail(&conn->reason, code, "%s", text);
    dv_timer_cancel(&conn->timer);
    dv_rest_conn_run_later(conn);
}

static void end(struct dv_rest_conn *conn)
{
    struct dv_rest_server *server = conn->server;

    if (conn->h2)
        dv_rest_http2_end(conn);
    dv_rest_http1_end(conn);
    dv_timer_cancel(&conn->timer);
    dv_rest_tls_end(conn);
    dv_rest_io_close(conn);
    dv_rest_shares_leave(conn);
    dv_link_remove(&conn->ready_link);
    dv_link_remove(&conn->link);
    free(conn);
    server->n_conns--;
    dv_rest_server_check_closed(server);
}

/* ---- waiting for the client ---- */

static void on_timeout(struct dv_timer *timer)
{
    struct dv_rest_conn *conn = DV_CONTAINER(timer, struct dv_rest_conn, timer);
    const char *text = "the client did not take the answer in time";

    if (conn->phase == DV_REST_LEAVING) {
        dv_rest_conn_break(conn, DV_CANCELLED, "the answer was the last one");
        return;
    }
    if (conn->phase == DV_REST_TUNNELLED && !dv_rest_io_has_output(conn)) {
        dv_rest_server_count(conn->server, DV_REST_DROP_SILENT);
        dv_rest_conn_break(conn, DV_DEADLINE_EXCEEDED, "nothing was sent either way for too long");
        return;
    }
    dv_rest_server_count(conn->server, conn->is_shaking              ? DV_REST_DROP_HANDSHAKE
                                       : conn->phase == DV_REST_IDLE ? DV_REST_DROP_SILENT
                                                                     : DV_REST_DROP_SLOW);
    if (conn->phase == DV_REST_IDLE && !conn->is_shaking) {
        dv_rest_conn_break(conn, DV_CANCELLED, "no request for a while");
        return;
    }
    if (conn->is_shaking)
        text = "the TLS handshake was not done in time";
    else if (conn->phase <= DV_REST_REFUSED)
        text = "the request did not arrive in time";
    dv_rest_conn_break(conn, DV_DEADLINE_EXCEEDED, text);
    dv_rest_server_complain(conn->server, conn->peer, &conn->reason);
}

void dv_rest_conn_expect(struct dv_rest_conn *conn, uint64_t within_ms)
{
    struct dv_loop *loop = conn->server->loop;

    if (!dv_rest_conn_is_breaking(conn))
        dv_timer_start(&conn->timer, loop, dv_u64_add_clamped(dv_loop_now_ms(loop), within_ms),
                       on_timeout);
}

void dv_rest_conn_expect_header(struct dv_rest_conn *conn)
{
    dv_rest_conn_expect(conn, dv_u64_min(conn->server->options.timeout_ms, DV_REST_HEADER_MS));
}

void dv_rest_conn_expect_request(struct dv_rest_conn *conn)
{
    if (conn->server->options.has_users && !conn->user)
        dv_rest_conn_expect_header(conn);
    else
        dv_rest_conn_expect(conn, conn->server->options.timeout_ms);
}

/* ---- running them ---- */

static void run(struct dv_rest_conn *conn)
{
    struct dv_rest_server *server = conn->server;

    assert(!server->running);
    server->running = conn;
    dv_link_remove(&conn->ready_link);
    if (!dv_rest_conn_is_breaking(conn) && conn->is_shaking)
        dv_rest_tls_shake(conn);
    if (!dv_rest_conn_is_breaking(conn) && !conn->is_shaking) {
        if (conn->h2)
            dv_rest_http2_run(conn);
        else
            dv_rest_http1_run(conn);
    }
    server->running = NULL;
    if (dv_rest_conn_is_breaking(conn) && !dv_rest_tls_is_lent(conn))
        end(conn);
}

static void on_run_task(struct dv_task *task)
{
    struct dv_rest_server *server = DV_CONTAINER(task, struct dv_rest_server, run_task);
    struct dv_list now;
    struct dv_link *link;

    dv_list_init(&now);
    dv_list_move_all(&now, &server->ready);
    while ((link = dv_list_first(&now)) != NULL)
        run(DV_CONTAINER(link, struct dv_rest_conn, ready_link));
}

void dv_rest_conn_run_later(struct dv_rest_conn *conn)
{
    struct dv_rest_server *server = conn->server;

    if (server->running == conn)
        return; /* it looks again at what there is to do before it returns */
    if (!dv_link_is_in(&conn->ready_link))
        dv_list_push(&server->ready, &conn->ready_link);
    dv_task_post(&server->run_task, server->loop, on_run_task);
}

void dv_rest_conn_run_next_turn(struct dv_rest_conn *conn)
{
    struct dv_rest_server *server = conn->server;

    if (!dv_link_is_in(&conn->ready_link))
        dv_list_push(&server->ready, &conn->ready_link);
    dv_task_post_next_turn(&server->run_task, server->loop, on_run_task);
}

static void note_events(struct dv_rest_conn *conn, uint32_t events)
{
    if (events & EPOLLIN)
        conn->is_readable = true;
    if (events & EPOLLOUT)
        conn->is_writable = true;
    if (!(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
        return;
    /* Like Go's servers, we assume that a client that will send no more does not wait for a stream
     * either; an answer that comes all the same is sent. */
    conn->is_hung_up = true;
    conn->is_readable = true;
}

void dv_rest_conn_events(void *ctx, unsigned ready)
{
    struct dv_rest_server *server = ctx;
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_wait(server->epoll_fd, events, EVENTS_MAX, 0);

    (void)ready;
    /* A connection that is run may end itself, and no other one. */
    for (int i = 0; i < n; i++) {
        struct dv_rest_conn *conn = events[i].data.ptr;

        note_events(conn, events[i].events);
        run(conn);
    }
}

/* ---- how they come ---- */

static bool watch(struct dv_rest_conn *conn)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = conn};

    return epoll_ctl(conn->server->epoll_fd, EPOLL_CTL_ADD, conn->fd, &event) == 0;
}

static void begin(struct dv_rest_conn *conn)
{
    struct dv_rest_server *server = conn->server;
    int one = 1;

    dv_list_push(&server->conns, &conn->link);
    server->n_conns++;
    /* Answers are written whole; fails on Unix sockets, which have no such thing. */
    (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    conn->is_writable = true;
    dv_rest_conn_expect_header(conn);
    if (server->creds)
        dv_rest_tls_begin(conn);
    if (!watch(conn)) {
        dv_rest_conn_break(conn, DV_RESOURCE_EXHAUSTED, "the kernel watches no more sockets");
        dv_rest_server_complain(server, conn->peer, &conn->reason);
    }
}

static void add_conn(struct dv_rest_server *server, int fd, const struct sockaddr *address)
{
    struct dv_rest_conn *conn = DV_ALLOC(struct dv_rest_conn);
    struct dv_err err;

    conn->server = server;
    conn->fd = fd;
    dv_list_init(&conn->out);
    dv_buf_init(&conn->in, DV_REST_READ_BYTES);
    dv_rest_address_print(address, conn->peer);
    if (dv_rest_shares_join(conn, address, &err)) {
        begin(conn);
        return;
    }
    dv_rest_server_complain(server, conn->peer, &err);
    if (!server->creds) /* under TLS an answer would cost a handshake */
        (void)send(fd, too_many, sizeof(too_many) - 1,
                   /* A client that cannot take it at once goes without. */
                   MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)close(fd);
    free(conn);
}

static void on_pause_over(struct dv_timer *timer)
{
    struct dv_rest_server *server = DV_CONTAINER(timer, struct dv_rest_server, accept_timer);

    dv_poll_set(server->listen_poll, DV_POLL_READ);
}

static void pause_accepting(struct dv_rest_server *server, int errnum)
{
    struct dv_err err;

    (void)dv_fail_errno(&err, errnum, "accept a connection");
    dv_rest_shares_spare_descriptor(server);
    dv_rest_server_complain(server, "unknown", &err);
    if (server->listen_fd < 0)
        return; /* the complaint has closed it */
    dv_poll_set(server->listen_poll, 0);
    dv_timer_start(&server->accept_timer, server->loop,
                   dv_loop_now_ms(server->loop) + ACCEPT_PAUSE_MS, on_pause_over);
}

void dv_rest_conn_accept(void *ctx, unsigned ready)
{
    struct dv_rest_server *server = ctx;

    (void)ready;
    for (int i = 0; i < ACCEPTS_MAX && server->listen_fd >= 0; i++) {
        struct sockaddr_storage address = {0};
        socklen_t n = sizeof(address);
        int fd = accept4(server->listen_fd, (struct sockaddr *)&address, &n,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        int errnum = errno;

        if (fd >= 0) {
            add_conn(server, fd, (const struct sockaddr *)&address);
        } else if (errnum == EMFILE || errnum == ENFILE || errnum == ENOBUFS || errnum == ENOMEM) {
            pause_accepting(server, errnum);
            return;
        } else if (errnum == EAGAIN) {
            return;
        } /* any other error is of a connection that is gone again */
    }
}

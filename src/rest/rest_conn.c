/* rest_conn.c - connections: how they are accepted, what they wait for, and how they end. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/num.h"
#include "rest/rest_server.h"
#include "rest/tls.h"

/* The limit of connections that are accepted in one turn, so that the others get their share of
 * time. */
#define ACCEPTS_MAX 32
/* Without a free descriptor, accepting is tried again after this time: some must be closed
 * first. */
#define ACCEPT_PAUSE_MS 100u
#define HANGUPS_MAX 64
/* When a client's end is seen, everything that it has sent is in the kernel, and is read long
 * before this time has passed. */
#define HUNG_UP_MS 1000u

/* The answer when there is no room. It is written in one piece into an empty socket buffer. */
static const char too_many[] = "HTTP/1.1 503 Service Unavailable\r\n"
                               "Connection: close\r\n"
                               "Retry-After: 1\r\n"
                               "Content-Length: 0\r\n\r\n";

struct dv_rest_conn *dv_rest_conn_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

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
    /* libmicrohttpd cannot be told to end one connection, but it sees the end of the socket. */
    (void)shutdown(conn->fd, SHUT_RDWR); /* fails when the client was first */
    dv_rest_conn_resume(conn);
    dv_rest_server_run_later(conn->server);
}

void dv_rest_conn_suspend(struct dv_rest_conn *conn)
{
    assert(!conn->is_suspended);
    conn->is_suspended = true;
    MHD_suspend_connection(conn->mhd);
}

void dv_rest_conn_resume(struct dv_rest_conn *conn)
{
    if (!conn->is_suspended)
        return;
    conn->is_suspended = false;
    MHD_resume_connection(conn->mhd);
    dv_rest_server_run_later(conn->server);
}

/* ---- waiting for the client ---- */

/* Whether it is the client's turn to send. */
static bool is_sending(const struct dv_rest_conn *conn)
{
    return conn->phase <= DV_REST_REFUSED;
}

static bool is_shaking(const struct dv_rest_conn *conn)
{
    return conn->shake != DV_REST_SHAKE_DONE;
}

static void on_timeout(struct dv_timer *timer)
{
    struct dv_rest_conn *conn = DV_CONTAINER(timer, struct dv_rest_conn, timer);
    const char *text = "the client did not take the answer in time";

    if (is_sending(conn) && conn->is_hung_up) {
        dv_rest_conn_break(conn, DV_CANCELLED, "the client is gone");
        return;
    }
    dv_rest_server_count(conn->server, is_shaking(conn)              ? DV_REST_DROP_HANDSHAKE
                                       : conn->phase == DV_REST_IDLE ? DV_REST_DROP_SILENT
                                                                     : DV_REST_DROP_SLOW);
    if (conn->phase == DV_REST_IDLE && !is_shaking(conn)) {
        dv_rest_conn_break(conn, DV_CANCELLED, "no request for a while");
        return;
    }
    if (is_shaking(conn))
        text = "the TLS handshake was not done in time";
    else if (is_sending(conn))
        text = "the request did not arrive in time";
    dv_rest_conn_break(conn, DV_DEADLINE_EXCEEDED, text);
    dv_rest_server_complain(conn->server, conn->peer, &conn->reason);
}

void dv_rest_conn_expect(struct dv_rest_conn *conn, uint64_t within_ms)
{
    struct dv_loop *loop = conn->server->loop;

    if (dv_rest_conn_is_breaking(conn))
        return;
    if (is_sending(conn) && conn->is_hung_up)
        within_ms = dv_u64_min(within_ms, HUNG_UP_MS);
    dv_timer_start(&conn->timer, loop, dv_u64_add_clamped(dv_loop_now_ms(loop), within_ms),
                   on_timeout);
}

void dv_rest_conn_expect_header(struct dv_rest_conn *conn)
{
    dv_rest_conn_expect(conn, dv_u64_min(conn->server->options.timeout_ms, DV_REST_HEADER_MS));
}

/* Handles that the client has closed its side. libmicrohttpd does not see that while it has the
 * connection suspended, nor when the end arrives together with the last bytes: it does not read
 * again after a short read, and the kernel tells it once. Like Go's servers, we assume that a
 * client that will send no more does not wait either; an answer that comes all the same is sent. */
static void hang_up(struct dv_rest_conn *conn)
{
    conn->is_hung_up = true;
    if (is_sending(conn))
        dv_rest_conn_expect(conn, HUNG_UP_MS);
    else if (conn->is_suspended && conn->phase == DV_REST_STREAMING)
        dv_rest_conn_break(conn, DV_CANCELLED, "the client is gone");
}

void dv_rest_conn_hangups(void *ctx, unsigned ready)
{
    struct dv_rest_server *server = ctx;
    struct epoll_event events[HANGUPS_MAX];
    int n = epoll_wait(server->hangup_fd, events, HANGUPS_MAX, 0);

    (void)ready;
    /* No connection is freed in this loop: only libmicrohttpd ends them, when it is run. */
    for (int i = 0; i < n; i++) {
        struct dv_rest_conn *conn = events[i].data.ptr;

        if (events[i].events & ~(uint32_t)EPOLLIN)
            hang_up(conn);
        if (is_shaking(conn))
            dv_rest_conn_resume(conn);
    }
}

bool dv_rest_conn_watch(struct dv_rest_conn *conn, int epoll_op)
{
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = conn};

    if (is_shaking(conn))
        event.events |= EPOLLIN;
    return epoll_ctl(conn->server->hangup_fd, epoll_op, conn->fd, &event) == 0;
}

/* ---- what libmicrohttpd tells ---- */

static void begin(struct dv_rest_conn *conn, struct MHD_Connection *mhd)
{
    struct dv_rest_server *server = conn->server;

    conn->mhd = mhd;
    dv_list_push(&server->conns, &conn->link);
    server->n_conns++;
    dv_rest_conn_expect_header(conn);
    if (server->creds)
        dv_rest_tls_begin(conn);
    if (!dv_rest_conn_watch(conn, EPOLL_CTL_ADD)) {
        dv_rest_conn_break(conn, DV_RESOURCE_EXHAUSTED, "the kernel watches no more sockets");
        dv_rest_server_complain(server, conn->peer, &conn->reason);
    }
}

/* Finds out why a request was not answered in full. */
static void explain(const struct dv_rest_conn *conn, enum MHD_RequestTerminationCode how,
                    struct dv_err *err)
{
    const struct dv_rest_call *call = conn->call;

    if (dv_rest_conn_is_breaking(conn))
        *err = conn->reason;
    else if (how == MHD_REQUEST_TERMINATED_WITH_ERROR && call && !call->is_handed)
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "bad request: %s",
                      conn->server->said[0] ? conn->server->said : "malformed");
    else
        (void)dv_fail(err, DV_CANCELLED, "the client is gone");
}

/* Ends a request, which was answered or whose connection is ending. */
static void let_go(struct dv_rest_conn *conn, enum MHD_RequestTerminationCode how)
{
    struct dv_rest_server *server = conn->server;
    struct dv_rest_call *call = conn->call;
    struct dv_err err;

    if (conn->phase == DV_REST_IDLE)
        return;
    explain(conn, how, &err);
    if (how != MHD_REQUEST_TERMINATED_COMPLETED_OK && !call)
        dv_log(DV_LOG_DEBUG, "rest: an answer was not taken",
               DV_F_STR("server", server->options.name), DV_F_C("peer", conn->peer),
               DV_F_CODE(&err), DV_F_ERR(&err));
    conn->phase = DV_REST_IDLE;
    conn->call = NULL;
    if (conn->answer)
        MHD_destroy_response(conn->answer);
    conn->answer = NULL;
    if (how != MHD_REQUEST_TERMINATED_COMPLETED_OK && err.code == DV_INVALID_ARGUMENT) {
        dv_rest_server_count(server, DV_REST_DROP_BAD_REQUEST);
        dv_rest_server_complain(server, conn->peer, &err);
    }
    if (call) /* tells the handler */
        dv_rest_call_detach(call, how == MHD_REQUEST_TERMINATED_COMPLETED_OK ? NULL : &err);
}

void dv_rest_conn_completed(void *ctx, struct MHD_Connection *mhd, void **request_ctx,
                            enum MHD_RequestTerminationCode how)
{
    struct dv_rest_conn *conn = dv_rest_conn_of(mhd);
    struct dv_rest_server *server = ctx;

    (void)request_ctx;
    let_go(conn, how);
    if (server->is_closing)
        dv_rest_conn_break(conn, DV_CANCELLED, "the server is closing");
    else if (server->options.has_users && !conn->user)
        dv_rest_conn_expect_header(conn);
    else
        dv_rest_conn_expect(conn, server->options.timeout_ms);
}

static void end(struct dv_rest_conn *conn)
{
    struct dv_rest_server *server = conn->server;

    /* Without memory, libmicrohttpd closes without a word. */
    let_go(conn, MHD_REQUEST_TERMINATED_WITH_ERROR);
    (void)epoll_ctl(server->hangup_fd, EPOLL_CTL_DEL, conn->fd,
                    NULL); /* not there: as we want it */
    dv_timer_cancel(&conn->timer);
    dv_rest_tls_end(conn);
    dv_rest_shares_leave(conn);
    dv_link_remove(&conn->link);
    free(conn);
    server->n_conns--;
    dv_rest_server_check_closed(server);
}

void dv_rest_conn_changed(void *ctx, struct MHD_Connection *mhd, void **socket_ctx,
                          enum MHD_ConnectionNotificationCode change)
{
    struct dv_rest_server *server = ctx;

    if (change == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_ctx = server->new_conn;
        server->new_conn = NULL;
        begin(*socket_ctx, mhd);
    } else {
        end(*socket_ctx);
    }
}

/* ---- how they come ---- */

static void add_conn(struct dv_rest_server *server, int fd, const struct sockaddr *address,
                     socklen_t n)
{
    struct dv_rest_conn *conn = DV_ALLOC(struct dv_rest_conn);
    struct dv_err err;

    conn->server = server;
    conn->fd = fd;
    dv_rest_address_print(address, conn->peer);
    if (!dv_rest_shares_join(conn, address, &err)) {
        dv_rest_server_complain(server, conn->peer, &err);
        if (!server->creds) /* under TLS an answer would cost a handshake */
            (void)send(fd, too_many, sizeof(too_many) - 1,
                       /* A client that cannot take it at once goes without. */
                       MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)close(fd);
        free(conn);
        return;
    }
    server->new_conn = conn;
    if (MHD_add_connection(server->mhd, fd, address, n) == MHD_YES)
        return;
    /* Libmicrohttpd has closed the socket. */
    (void)dv_fail_errno(&err, errno, "connection refused");
    dv_log(DV_LOG_DEBUG, "rest: connection refused", DV_F_STR("server", server->options.name),
           DV_F_ERR(&err));
    if (server->new_conn) /* otherwise it had begun, and has ended by itself */
        dv_rest_shares_leave(server->new_conn);
    free(server->new_conn);
    server->new_conn = NULL;
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
            add_conn(server, fd, (const struct sockaddr *)&address, n);
        } else if (errnum == EMFILE || errnum == ENFILE || errnum == ENOBUFS || errnum == ENOMEM) {
            pause_accepting(server, errnum);
            return;
        } else if (errnum == EAGAIN) {
            return;
        } /* any other error is of a connection that is gone again */
    }
}

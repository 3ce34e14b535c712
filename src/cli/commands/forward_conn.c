#include "cli/commands/forward.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "upgrade/spdy_streams.h"

#define READ_BYTES (32u * 1024u)
/* While more than this waits for a local client, nothing is read from the server. */
#define WAITING_BYTES_MAX (256u * 1024u)
/* It may grow beyond that by what was read at once. */
#define OUT_BYTES_MAX (16u * 1024u * 1024u)
#define REASON_BYTES_MAX 4096u
#define NUMBER_BYTES 16u

/* A connection of a local client. */
struct conn {
    struct dv_forward *forward;
    struct dv_link link;
    struct dv_poll *poll;
    int fd; /* negative: it is closed, and its streams are ending */
    uint16_t remote;
    struct dv_spdy_stream *data; /* NULL: it has ended */
    struct dv_spdy_stream *error;
    struct dv_buf reason; /* of the error stream */
    struct dv_buf out;    /* for the client */
    size_t out_at;
    bool is_read_up;  /* the client sends no more */
    bool is_finished; /* the pod sends no more */
    bool is_full;
};

/* ---- connections ---- */

static void watch(struct conn *conn)
{
    struct dv_forward *forward = conn->forward;
    size_t waiting = conn->out.n - conn->out_at;
    bool has_room = dv_spdy_unsent_bytes(forward->spdy) + dv_ws_unsent_bytes(forward->ws) +
                        dv_rest_dial_unsent_bytes(&forward->socket.dial) <
                    DV_CLI_SOCKET_FULL_BYTES;

    forward->n_full -= conn->is_full;
    conn->is_full = conn->fd >= 0 && waiting > WAITING_BYTES_MAX;
    forward->n_full += conn->is_full;
    dv_rest_dial_pause(&forward->socket.dial, forward->n_full > 0);
    if (conn->poll)
        dv_poll_set(conn->poll, (!conn->is_read_up && has_room ? DV_POLL_READ : 0) |
                                    (waiting > 0 ? DV_POLL_WRITE : 0));
}

static void hang_up(struct conn *conn)
{
    if (conn->poll)
        dv_poll_close(conn->poll, NULL, NULL);
    conn->poll = NULL;
    dv_close_fd(&conn->fd);
    conn->fd = -1;
    watch(conn);
}

static void free_if_over(struct conn *conn)
{
    if (conn->data || conn->error || conn->fd >= 0)
        return;
    dv_link_remove(&conn->link);
    dv_buf_fini(&conn->out);
    dv_buf_fini(&conn->reason);
    free(conn);
}

/* Gives the client what it takes; after the last byte it is told that there are no more. */
static void flush(struct conn *conn)
{
    while (conn->fd >= 0 && conn->out_at < conn->out.n) {
        ssize_t n = send(conn->fd, conn->out.p + conn->out_at, conn->out.n - conn->out_at,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0 && errno != EINTR) { /* the client is gone */
            if (conn->data)
                dv_spdy_reset(conn->data, DV_SPDY_CANCEL);
            hang_up(conn);
            return;
        }
        conn->out_at += n > 0 ? (size_t)n : 0;
    }
    if (conn->out_at == conn->out.n) {
        dv_buf_clear(&conn->out);
        conn->out_at = 0;
        if (conn->is_finished && conn->fd >= 0 && conn->is_read_up)
            hang_up(conn);
        else if (conn->is_finished && conn->fd >= 0)
            (void)shutdown(conn->fd, SHUT_WR); /* fails when the client was first */
    }
    watch(conn);
}

static void read_client(struct conn *conn)
{
    static char buffer[READ_BYTES];
    ssize_t n = recv(conn->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0 && conn->data) {
        /* It is all taken: nothing is read while much waits. */
        (void)dv_spdy_send(conn->data, (dv_str){buffer, (size_t)n});
        return;
    }
    conn->is_read_up = true;
    if (conn->data && n == 0)
        dv_spdy_finish(conn->data);
    else if (conn->data)
        dv_spdy_reset(conn->data, DV_SPDY_CANCEL);
    if (n < 0 || !conn->data)
        hang_up(conn);
}

static void on_ready(void *ctx, unsigned events)
{
    struct conn *conn = ctx;
    struct dv_forward *forward = conn->forward;

    if (events & DV_POLL_READ && !conn->is_read_up)
        read_client(conn);
    flush(conn);
    free_if_over(conn);
    dv_cli_socket_push(&forward->socket);
}

static struct dv_spdy_stream *open_stream(struct conn *conn, enum dv_stream_type type,
                                          struct dv_err *err)
{
    struct dv_forward *forward = conn->forward;
    char port[NUMBER_BYTES];
    char request[2 * NUMBER_BYTES];
    const struct dv_spdy_field fields[] = {
        {DV_STR("streamtype"), dv_stream_type_name(type)                                       },
        {DV_STR("port"),       {port, (size_t)snprintf(port, sizeof(port), "%u", conn->remote)}},
        {DV_STR("requestid"),
         {request, (size_t)snprintf(request, sizeof(request), "%llu",
                                    (unsigned long long)forward->n_requests)}                  },
    };

    return dv_spdy_open(forward->spdy, fields, DV_COUNT(fields), conn, err);
}

void dv_forward_accept(struct dv_forward_port *port, int fd)
{
    struct dv_forward *forward = port->forward;
    struct conn *conn = DV_ALLOC(struct conn);
    struct dv_err err;

    conn->forward = forward;
    conn->fd = fd;
    conn->remote = port->remote;
    dv_buf_init(&conn->out, OUT_BYTES_MAX);
    dv_buf_init(&conn->reason, REASON_BYTES_MAX);
    dv_list_push(&forward->conns, &conn->link);
    conn->error = open_stream(conn, DV_STREAM_ERROR, &err);
    conn->data = conn->error ? open_stream(conn, DV_STREAM_DATA, &err) : NULL;
    forward->n_requests++;
    if (conn->error)
        dv_spdy_finish(conn->error); /* only the server speaks there */
    conn->poll = conn->data ? dv_poll_open(forward->loop, fd, on_ready, conn, &err) : NULL;
    if (conn->poll) {
        watch(conn);
    } else {
        (void)dv_cli_complain("a connection to port %u: %s", conn->remote, err.msg);
        if (conn->error)
            dv_spdy_reset(conn->error, DV_SPDY_CANCEL);
        if (conn->data)
            dv_spdy_reset(conn->data, DV_SPDY_CANCEL);
        hang_up(conn);
        free_if_over(conn);
    }
    dv_cli_socket_push(&forward->socket);
}

/* ---- the server ---- */

static void on_data(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream, dv_str bytes)
{
    struct conn *conn = dv_spdy_stream_ctx(stream);

    (void)handler;
    if (stream == conn->error) {
        dv_buf_add(&conn->reason, bytes);
        return;
    }
    if (conn->out_at > conn->out.n / 2) { /* what was sent is more than what was not */
        memmove(conn->out.p, conn->out.p + conn->out_at, conn->out.n - conn->out_at);
        conn->out.n -= conn->out_at;
        conn->out_at = 0;
    }
    dv_buf_add(&conn->out, bytes);
    flush(conn);
}

static void on_finished(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    struct conn *conn = dv_spdy_stream_ctx(stream);

    (void)handler;
    if (stream != conn->data)
        return;
    conn->is_finished = true;
    flush(conn);
}

static void on_stream_ended(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                            const struct dv_err *err)
{
    struct conn *conn = dv_spdy_stream_ctx(stream);

    (void)handler;
    if (stream == conn->data) {
        conn->data = NULL;
        conn->is_finished = true;
        if (err)
            hang_up(conn);
    } else {
        conn->error = NULL;
        if (conn->reason.n > 0) {
            (void)dv_cli_complain("port %u: %.*s", conn->remote,
                                  DV_FMT(dv_str_trim(dv_buf_str(&conn->reason))));
            conn->forward->is_refused = true;
            dv_rest_dial_cancel(&conn->forward->socket.dial);
        }
    }
    free_if_over(conn);
}

const struct dv_spdy_handler dv_forward_handler = {
    .data = on_data, .finished = on_finished, .ended = on_stream_ended};

void dv_forward_watch_all(struct dv_forward *forward)
{
    struct dv_link *link;

    DV_LIST_EACH (&forward->conns, link)
        watch(DV_CONTAINER(link, struct conn, link));
}

void dv_forward_hang_up_all(struct dv_forward *forward)
{
    struct dv_link *link = forward->conns.head.next;

    while (link != &forward->conns.head) {
        struct conn *conn = DV_CONTAINER(link, struct conn, link);

        link = link->next; /* taken first: one without streams is freed */
        hang_up(conn);
        free_if_over(conn);
    }
}

void dv_forward_free_all(struct dv_forward *forward)
{
    struct dv_link *link;

    while ((link = dv_list_first(&forward->conns)) != NULL) {
        struct conn *conn = DV_CONTAINER(link, struct conn, link);

        conn->data = conn->error = NULL; /* they went with the session */
        free_if_over(conn);
    }
}

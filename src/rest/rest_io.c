/* rest_io.c - bytes from and to a connection's socket, plain or under TLS. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "rest/rest_server.h"
#include "rest/tls.h"

/* So much is written in one turn, about a millisecond's worth under TLS: a client that reads as
 * fast as we write must not keep the others waiting. */
#define FLUSH_BYTES_MAX (1024u * 1024u)
/* No answer is as large: who makes one has limits. */
#define PIECE_BYTES_MAX ((size_t)1 << 30)

/* ---- from the client ---- */

static ssize_t read_plain(struct dv_rest_conn *conn, char *to, size_t n)
{
    ssize_t got;

    do
        got = recv(conn->fd, to, n, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN ? DV_REST_AGAIN : DV_REST_ENDED;
    if (got == 0)
        return DV_REST_ENDED;
    /* After a short read there is nothing more, and the kernel will tell when there is. The end is
     * told together with the last bytes, so it is looked for. */
    if ((size_t)got < n && !conn->is_hung_up)
        conn->is_readable = false;
    return got;
}

size_t dv_rest_io_read(struct dv_rest_conn *conn, char *to, size_t n)
{
    ssize_t got;

    if (!conn->is_readable || conn->has_ended)
        return 0;
    got = conn->tls ? dv_rest_tls_read(conn, to, n) : read_plain(conn, to, n);
    if (got > 0) {
        conn->has_spoken = true;
        return (size_t)got;
    }
    conn->is_readable = false;
    if (got == DV_REST_ENDED)
        conn->has_ended = true;
    return 0;
}

/* ---- to the client ---- */

struct dv_rest_piece *dv_rest_piece_new(void)
{
    struct dv_rest_piece *piece = DV_ALLOC(struct dv_rest_piece);

    dv_buf_init(&piece->bytes, PIECE_BYTES_MAX);
    return piece;
}

void dv_rest_piece_free(struct dv_rest_piece *piece)
{
    if (!piece)
        return;
    dv_buf_fini(&piece->bytes);
    free(piece);
}

bool dv_rest_io_has_output(const struct dv_rest_conn *conn)
{
    return !dv_list_is_empty(&conn->out);
}

void dv_rest_io_send(struct dv_rest_conn *conn, struct dv_rest_piece *piece)
{
    dv_list_push(&conn->out, &piece->link);
}

static ssize_t write_plain(struct dv_rest_conn *conn, const char *from, size_t n)
{
    ssize_t put;

    do
        put = send(conn->fd, from, n, MSG_NOSIGNAL);
    while (put < 0 && errno == EINTR);
    if (put < 0)
        return errno == EAGAIN ? DV_REST_AGAIN : DV_REST_ENDED;
    return put;
}

/* Writes from the first piece, and frees it when it is used up. Returns how many bytes the kernel
 * took. */
static size_t write_first(struct dv_rest_conn *conn)
{
    struct dv_rest_piece *piece =
        DV_CONTAINER(dv_list_first(&conn->out), struct dv_rest_piece, link);
    const char *from = piece->bytes.p + piece->at;
    size_t n = piece->bytes.n - piece->at;
    ssize_t put = n == 0      ? 0
                  : conn->tls ? dv_rest_tls_write(conn, from, n)
                              : write_plain(conn, from, n);

    if (put < 0) {
        conn->is_writable = false;
        if (put == DV_REST_ENDED)
            dv_rest_conn_break(conn, DV_CANCELLED, "the client is gone");
        return 0;
    }
    piece->at += (size_t)put;
    if (piece->at == piece->bytes.n) {
        dv_link_remove(&piece->link);
        dv_rest_piece_free(piece);
    }
    return (size_t)put;
}

size_t dv_rest_io_flush(struct dv_rest_conn *conn)
{
    size_t n_taken = 0;

    while (conn->is_writable && dv_rest_io_has_output(conn) && n_taken < FLUSH_BYTES_MAX)
        n_taken += write_first(conn);
    if (n_taken >= FLUSH_BYTES_MAX)
        dv_rest_conn_run_next_turn(conn);
    return n_taken;
}

void dv_rest_io_shut_down(struct dv_rest_conn *conn)
{
    if (conn->tls)
        dv_rest_tls_bye(conn);
    (void)shutdown(conn->fd, SHUT_WR); /* fails when the client was first */
}

void dv_rest_io_close(struct dv_rest_conn *conn)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&conn->out)) != NULL)
        dv_rest_piece_free(DV_CONTAINER(link, struct dv_rest_piece, link));
    dv_buf_fini(&conn->in);
    (void)close(conn->fd); /* what was sent is the kernel's */
}

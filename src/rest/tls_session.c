/* tls_session.c - GnuTLS under a connection. Handshakes, which sign and verify, are made by
 * workers: a session is lent to one until the client has to say more. */
#include "rest/tls_session.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "rest/rest_server.h"
#include "rest/tls.h"

/* So many handshakes of a server are made at once: a flood of them must leave workers for others.
 */
#define SHAKES_MAX 2u
/* So much is read ahead: the requests that a busy client has sent meanwhile. */
#define AHEAD_BYTES 4096u

/* ---- the beginning ---- */

/* The names of protocols in a handshake (ALPN). */
static unsigned char http1[] = "http/1.1";
static unsigned char http2[] = "h2";
#define DATUM(text) ((gnutls_datum_t){(text), sizeof(text) - 1})

/* Notes when the kernel has nothing more: GnuTLS asks to be called again in other cases, too, and
 * the kernel tells of new bytes only once. */
static ssize_t pull(struct dv_rest_session *tls, void *to, size_t n)
{
    ssize_t got = recv(tls->fd, to, n, 0);

    tls->has_spoken |= got > 0;
    tls->is_dry = got < 0 && errno == EAGAIN;
    return got;
}

static size_t take_ahead(struct dv_rest_session *tls, void *to, size_t n)
{
    n = dv_size_min(n, tls->n_ahead - tls->ahead_at);
    memcpy(to, tls->ahead + tls->ahead_at, n);
    tls->ahead_at += n;
    if (tls->ahead_at == tls->n_ahead) { /* a connection that is idle keeps nothing */
        free(tls->ahead);
        tls->ahead = NULL;
    }
    return n;
}

/* GnuTLS asks for the five bytes that a record begins with, then for the record, and a request is a
 * record or two: all that is there is read at once. */
static ssize_t on_pull(gnutls_transport_ptr_t ctx, void *to, size_t n)
{
    struct dv_rest_session *tls = ctx;
    char bytes[AHEAD_BYTES];
    ssize_t got;

    if (tls->ahead)
        return (ssize_t)take_ahead(tls, to, n);
    if (n >= sizeof(bytes))
        return pull(tls, to, n);
    got = pull(tls, bytes, sizeof(bytes));
    if (got <= 0)
        return got;
    tls->n_ahead = (size_t)got;
    tls->ahead_at = dv_size_min(n, tls->n_ahead);
    memcpy(to, bytes, tls->ahead_at);
    if (tls->ahead_at == tls->n_ahead)
        return got;
    tls->ahead = dv_alloc(tls->n_ahead);
    memcpy(tls->ahead, bytes, tls->n_ahead);
    return (ssize_t)tls->ahead_at;
}

static int on_message(gnutls_session_t session, unsigned type, unsigned when, unsigned is_incoming,
                      const gnutls_datum_t *message)
{
    struct dv_rest_session *tls = gnutls_session_get_ptr(session);

    (void)type;
    (void)when;
    (void)message;
    tls->has_answered |= !is_incoming;
    return 0;
}

void dv_rest_tls_begin(struct dv_rest_conn *conn)
{
    const gnutls_datum_t protocols[] = {DATUM(http2), DATUM(http1)};
    struct dv_rest_creds *creds = conn->server->creds;
    struct dv_rest_session *tls = DV_ALLOC(struct dv_rest_session);

    conn->is_shaking = true;
    conn->tls = tls;
    tls->conn = conn;
    tls->fd = conn->fd;
    tls->creds = creds;
    creds->n_refs++;
    if (gnutls_init(&tls->gnutls, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) != 0 ||
        gnutls_priority_set(tls->gnutls, creds->priorities) != 0 ||
        gnutls_credentials_set(tls->gnutls, GNUTLS_CRD_CERTIFICATE, creds->gnutls) != 0)
        abort(); /* out of memory */
    if (creds->asks)
        gnutls_certificate_server_set_request(tls->gnutls, GNUTLS_CERT_REQUEST);
    gnutls_session_set_ptr(tls->gnutls, tls);
    gnutls_transport_set_ptr2(tls->gnutls, tls, (gnutls_transport_ptr_t)(intptr_t)conn->fd);
    gnutls_transport_set_pull_function(tls->gnutls, on_pull);
    if (gnutls_alpn_set_protocols(tls->gnutls, protocols, DV_COUNT(protocols), 0) != 0)
        abort(); /* out of memory */
    /* The connection's own timer ends a handshake that takes too long. */
    gnutls_handshake_set_timeout(tls->gnutls, GNUTLS_INDEFINITE_TIMEOUT);
    gnutls_handshake_set_hook_function(tls->gnutls, GNUTLS_HANDSHAKE_ANY, GNUTLS_HOOK_POST,
                                       on_message);
}

/* ---- the handshake, on a worker ---- */

/* Whether a session that wants to be called again can go on now. */
static bool can_go_on(const struct dv_rest_session *tls)
{
    return !tls->is_dry && gnutls_record_get_direction(tls->gnutls) == 0;
}

static bool is_broken(int status)
{
    return status == GNUTLS_E_PREMATURE_TERMINATION || status == GNUTLS_E_PULL_ERROR ||
           status == GNUTLS_E_PUSH_ERROR;
}

static void run_shake(struct dv_work *work)
{
    struct dv_rest_session *tls = DV_CONTAINER(work, struct dv_rest_session, work);

    tls->is_dry = false;
    do
        tls->status = gnutls_handshake(tls->gnutls);
    while (tls->status == GNUTLS_E_INTERRUPTED || tls->status == GNUTLS_E_WARNING_ALERT_RECEIVED ||
           (tls->status == GNUTLS_E_AGAIN && can_go_on(tls)));
    if (tls->status == GNUTLS_E_SUCCESS && tls->creds->asks)
        tls->who = dv_rest_who_find(tls->gnutls);
    else if (tls->status < 0 && tls->status != GNUTLS_E_AGAIN && !is_broken(tls->status))
        /* Fails when the client does not take it at once, which is its own loss. */
        (void)gnutls_alert_send_appropriate(tls->gnutls, tls->status);
}

/* ---- the handshake, on the loop ---- */

/* Finds out why a handshake has failed, as far as that shows. False: the client has connected and
 * closed, as probes do. */
static bool explain(const struct dv_rest_session *tls, struct dv_err *err)
{
    if (tls->status == GNUTLS_E_FATAL_ALERT_RECEIVED)
        (void)dv_fail(err, DV_UNAUTHENTICATED, "TLS handshake: the client says: %s",
                      gnutls_alert_get_name(gnutls_alert_get(tls->gnutls)));
    else if (tls->has_answered)
        (void)dv_fail(err, DV_UNAUTHENTICATED,
                      "TLS handshake: the client broke off: perhaps it does not trust our "
                      "certificate");
    else if (!is_broken(tls->status))
        (void)dv_fail(err, DV_INVALID_ARGUMENT,
                      "TLS handshake: the client does not speak TLS 1.2 or newer with a cipher "
                      "that we have");
    else
        return dv_fail(err, DV_CANCELLED, "the client is gone");
    return true;
}

static bool has_chosen_http2(gnutls_session_t session)
{
    gnutls_datum_t chosen;

    return gnutls_alpn_get_selected_protocol(session, &chosen) == 0 &&
           chosen.size == sizeof(http2) - 1 && memcmp(chosen.data, http2, chosen.size) == 0;
}

static void end_shake(struct dv_rest_conn *conn)
{
    const struct dv_rest_session *tls = conn->tls;
    struct dv_err err;

    if (tls->status == GNUTLS_E_SUCCESS) {
        conn->is_shaking = false;
        dv_rest_conn_expect_header(conn);
        if (has_chosen_http2(tls->gnutls))
            dv_rest_http2_begin(conn);
        return;
    }
    if (explain(tls, &err)) {
        dv_rest_server_count(conn->server, DV_REST_DROP_BAD_SHAKE);
        dv_rest_server_complain(conn->server, conn->peer, &err);
    }
    dv_rest_conn_break(conn, err.code, err.msg);
}

static void on_shaken(struct dv_work *work, const struct dv_err *err);

/* Gives the session to a worker. What the kernel tells meanwhile is noted anew. */
static void lend(struct dv_rest_session *tls)
{
    struct dv_rest_conn *conn = tls->conn;

    tls->is_lent = true;
    conn->server->n_shaking++;
    conn->is_readable = conn->is_writable = false;
    tls->work = (struct dv_work){.run = run_shake, .done = on_shaken};
    dv_work_start(&tls->work, conn->server->loop);
}

static void on_shaken(struct dv_work *work, const struct dv_err *err)
{
    struct dv_rest_session *tls = DV_CONTAINER(work, struct dv_rest_session, work);
    struct dv_rest_conn *conn = tls->conn;
    struct dv_rest_server *server = conn->server;
    bool is_waiting = tls->status == GNUTLS_E_AGAIN;
    struct dv_link *link = dv_list_shift(&server->shakes);

    (void)err; /* nobody cancels it */
    tls->is_lent = false;
    server->n_shaking--;
    if (link)
        lend(DV_CONTAINER(link, struct dv_rest_session, link));
    conn->has_spoken |= tls->has_spoken;
    conn->is_readable |= !tls->is_dry;
    conn->is_writable |= !is_waiting || gnutls_record_get_direction(tls->gnutls) == 0;
    if (!is_waiting && !dv_rest_conn_is_breaking(conn))
        end_shake(conn);
    dv_rest_conn_run_later(conn);
}

bool dv_rest_tls_is_lent(const struct dv_rest_conn *conn)
{
    return conn->tls && conn->tls->is_lent;
}

void dv_rest_tls_shake(struct dv_rest_conn *conn)
{
    struct dv_rest_session *tls = conn->tls;
    struct dv_rest_server *server = conn->server;
    bool wants_to_write;

    if (tls->is_lent || dv_link_is_in(&tls->link))
        return;
    wants_to_write = gnutls_record_get_direction(tls->gnutls) == 1;
    if (wants_to_write ? !conn->is_writable : !conn->is_readable)
        return;
    if (server->n_shaking < SHAKES_MAX)
        lend(tls);
    else
        dv_list_push(&server->shakes, &tls->link);
}

/* ---- bytes ---- */

ssize_t dv_rest_tls_read(struct dv_rest_conn *conn, char *to, size_t n)
{
    struct dv_rest_session *tls = conn->tls;
    ssize_t got;

    tls->is_dry = false;
    do
        got = gnutls_record_recv(tls->gnutls, to, n);
    while (got == GNUTLS_E_INTERRUPTED || got == GNUTLS_E_WARNING_ALERT_RECEIVED ||
           (got == GNUTLS_E_AGAIN && can_go_on(tls)));
    if (got > 0)
        return got;
    tls->is_left |= got == 0;
    /* A client that wants another handshake ends here: it has no use for one. */
    return got == GNUTLS_E_AGAIN ? DV_REST_AGAIN : DV_REST_ENDED;
}

ssize_t dv_rest_tls_write(struct dv_rest_conn *conn, const char *from, size_t n)
{
    ssize_t put;

    do
        put = gnutls_record_send(conn->tls->gnutls, from, n);
    while (put == GNUTLS_E_INTERRUPTED);
    if (put >= 0)
        return put;
    return put == GNUTLS_E_AGAIN ? DV_REST_AGAIN : DV_REST_ENDED;
}

void dv_rest_tls_bye(struct dv_rest_conn *conn)
{
    struct dv_rest_session *tls = conn->tls;

    if (!tls->has_said_bye) /* fails when the client takes nothing any more */
        (void)gnutls_bye(tls->gnutls, GNUTLS_SHUT_WR);
    tls->has_said_bye = true;
}

void dv_rest_tls_end(struct dv_rest_conn *conn)
{
    struct dv_rest_session *tls = conn->tls;

    if (!tls)
        return;
    assert(!tls->is_lent);
    if (tls->is_left) /* a client that closes in order waits for the same from us */
        dv_rest_tls_bye(conn);
    dv_link_remove(&tls->link);
    dv_rest_who_free(tls->who);
    gnutls_deinit(tls->gnutls);
    free(tls->ahead);
    dv_rest_creds_unref(tls->creds);
    free(tls);
}

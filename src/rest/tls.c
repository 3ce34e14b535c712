/* tls.c - GnuTLS under a server's connections. Credentials are counted, so that they can be
 * replaced while connections use them. */
#include "rest/tls.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "rest/rest.h"
#include "rest/rest_server.h"

/* The limit of a name. RFC 5280's is 64 characters, but some certificates have more. */
#define NAME_BYTES_MAX 256u
/* The limit of groups, more than anyone is in. */
#define GROUPS_MAX 256u

/* TLS 1.2 and 1.3 with GnuTLS's order of ciphers; the server's order decides, not the client's. */
#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

struct dv_rest_creds {
    size_t n_refs;
    gnutls_certificate_credentials_t gnutls;
    gnutls_priority_t priorities;
    bool asks; /* client certificates are asked for */
};

struct dv_rest_session {
    gnutls_session_t gnutls;
    struct dv_rest_creds *creds;
};

/* The result of checking a client's certificate. */
struct dv_rest_who {
    struct dv_arena *arena;
    struct dv_rest_identity identity;
    struct dv_err err; /* code DV_OK: it is good */
};

/* ---- credentials ---- */

static bool is_size_good(dv_str text)
{
    return text.n > 0 && text.n <= INT_MAX;
}

static gnutls_datum_t datum_of(dv_str text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text.p, (unsigned)text.n};
}

static bool set_key(gnutls_certificate_credentials_t creds, dv_str cert, dv_str key,
                    struct dv_err *err)
{
    gnutls_datum_t cert_datum = datum_of(cert);
    gnutls_datum_t key_datum = datum_of(key);
    int status;

    if (!is_size_good(cert) || !is_size_good(key))
        return dv_fail(err, DV_INVALID_ARGUMENT, "certificate and key: one of them is missing");
    status =
        gnutls_certificate_set_x509_key_mem(creds, &cert_datum, &key_datum, GNUTLS_X509_FMT_PEM);
    if (status < 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "certificate and key: %s",
                       gnutls_strerror(status));
    return true;
}

static bool set_ca(gnutls_certificate_credentials_t creds, dv_str ca, struct dv_err *err)
{
    gnutls_datum_t datum = datum_of(ca);
    int n_certs = is_size_good(ca)
                      ? gnutls_certificate_set_x509_trust_mem(creds, &datum, GNUTLS_X509_FMT_PEM)
                      : GNUTLS_E_NO_CERTIFICATE_FOUND;

    if (n_certs <= 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "CA certificate: %s",
                       gnutls_strerror(n_certs < 0 ? n_certs : GNUTLS_E_NO_CERTIFICATE_FOUND));
    return true;
}

static void free_gnutls(gnutls_certificate_credentials_t *creds)
{
    if (*creds)
        gnutls_certificate_free_credentials(*creds);
}

static gnutls_certificate_credentials_t new_gnutls(void)
{
    gnutls_certificate_credentials_t creds = NULL;

    if (gnutls_certificate_allocate_credentials(&creds) != 0)
        abort(); /* out of memory */
    return creds;
}

bool dv_rest_tls_check_key(dv_str cert, dv_str key, struct dv_err *err)
{
    DV_CLEANUP(free_gnutls) gnutls_certificate_credentials_t creds = new_gnutls();

    return set_key(creds, cert, key, err);
}

bool dv_rest_tls_check_ca(dv_str ca, struct dv_err *err)
{
    DV_CLEANUP(free_gnutls) gnutls_certificate_credentials_t creds = new_gnutls();

    return set_ca(creds, ca, err);
}

struct dv_rest_creds *dv_rest_creds_new(const struct dv_rest_tls *tls, struct dv_err *err)
{
    struct dv_rest_creds *creds = DV_ALLOC(struct dv_rest_creds);

    creds->n_refs = 1;
    creds->gnutls = new_gnutls();
    if (gnutls_priority_init(&creds->priorities, PRIORITIES, NULL) != 0)
        abort(); /* out of memory: the text is good */
    creds->asks = tls->client_ca.n > 0;
    if (set_key(creds->gnutls, tls->cert, tls->key, err) &&
        (!creds->asks || set_ca(creds->gnutls, tls->client_ca, err)))
        return creds;
    (void)dv_wrap(err, "TLS");
    dv_rest_creds_unref(creds);
    return NULL;
}

void dv_rest_creds_unref(struct dv_rest_creds *creds)
{
    if (!creds || --creds->n_refs > 0)
        return;
    free_gnutls(&creds->gnutls);
    gnutls_priority_deinit(creds->priorities);
    free(creds);
}

bool dv_rest_server_set_tls(struct dv_rest_server *server, const struct dv_rest_tls *tls,
                            struct dv_err *err)
{
    struct dv_rest_creds *creds = dv_rest_creds_new(tls, err);

    assert(server->creds);
    if (!creds)
        return false;
    dv_rest_creds_unref(server->creds);
    server->creds = creds;
    return true;
}

/* ---- a connection's session ---- */

/* The name of HTTP/2 in a handshake (ALPN). */
static const dv_str http2_name = DV_STR_INIT("h2");

/* Notes when the kernel has nothing more: GnuTLS asks to be called again in other cases, too, and
 * the kernel tells of new bytes only once. */
static ssize_t on_pull(gnutls_transport_ptr_t ctx, void *to, size_t n)
{
    struct dv_rest_conn *conn = ctx;
    ssize_t got = recv(conn->fd, to, n, 0);

    if (got > 0)
        conn->has_spoken = true;
    else if (got < 0 && errno == EAGAIN)
        conn->is_readable = false;
    return got;
}

static int on_message(gnutls_session_t session, unsigned type, unsigned when, unsigned is_incoming,
                      const gnutls_datum_t *message)
{
    struct dv_rest_conn *conn = gnutls_session_get_ptr(session);

    (void)type;
    (void)when;
    (void)message;
    if (!is_incoming)
        conn->shake = DV_REST_SHAKE_ANSWERED;
    return 0;
}

void dv_rest_tls_begin(struct dv_rest_conn *conn)
{
    const gnutls_datum_t protocols[] = {datum_of(http2_name), datum_of(DV_STR("http/1.1"))};
    struct dv_rest_creds *creds = conn->server->creds;
    struct dv_rest_session *tls = DV_ALLOC(struct dv_rest_session);

    conn->shake = DV_REST_SHAKE_BEGUN;
    conn->tls = tls;
    tls->creds = creds;
    creds->n_refs++;
    if (gnutls_init(&tls->gnutls, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) != 0 ||
        gnutls_priority_set(tls->gnutls, creds->priorities) != 0 ||
        gnutls_credentials_set(tls->gnutls, GNUTLS_CRD_CERTIFICATE, creds->gnutls) != 0)
        abort(); /* out of memory */
    if (creds->asks)
        gnutls_certificate_server_set_request(tls->gnutls, GNUTLS_CERT_REQUEST);
    gnutls_session_set_ptr(tls->gnutls, conn);
    gnutls_transport_set_ptr2(tls->gnutls, conn, (gnutls_transport_ptr_t)(intptr_t)conn->fd);
    gnutls_transport_set_pull_function(tls->gnutls, on_pull);
    if (gnutls_alpn_set_protocols(tls->gnutls, protocols, DV_COUNT(protocols), 0) != 0)
        abort(); /* out of memory */
    /* The connection's own timer ends a handshake that takes too long. */
    gnutls_handshake_set_timeout(tls->gnutls, GNUTLS_INDEFINITE_TIMEOUT);
    gnutls_handshake_set_hook_function(tls->gnutls, GNUTLS_HANDSHAKE_ANY, GNUTLS_HOOK_POST,
                                       on_message);
}

/* Finds out why a handshake has failed, as far as that shows. False: the client has connected and
 * closed, as probes do. */
static bool explain(const struct dv_rest_conn *conn, int status, struct dv_err *err)
{
    bool has_ended = status == GNUTLS_E_PREMATURE_TERMINATION || status == GNUTLS_E_PULL_ERROR ||
                     status == GNUTLS_E_PUSH_ERROR;

    if (status == GNUTLS_E_FATAL_ALERT_RECEIVED)
        (void)dv_fail(err, DV_UNAUTHENTICATED, "TLS handshake: the client says: %s",
                      gnutls_alert_get_name(gnutls_alert_get(conn->tls->gnutls)));
    else if (conn->shake == DV_REST_SHAKE_ANSWERED)
        (void)dv_fail(err, DV_UNAUTHENTICATED,
                      "TLS handshake: the client broke off: perhaps it does not trust our "
                      "certificate");
    else if (!has_ended)
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
           dv_str_eq((dv_str){(const char *)chosen.data, chosen.size}, http2_name);
}

/* Whether a session that wants to be called again can go on now. */
static bool wants_to_read(const struct dv_rest_conn *conn)
{
    return conn->is_readable && gnutls_record_get_direction(conn->tls->gnutls) == 0;
}

void dv_rest_tls_shake(struct dv_rest_conn *conn)
{
    gnutls_session_t session = conn->tls->gnutls;
    struct dv_err err;
    int status;

    do
        status = gnutls_handshake(session);
    while (status == GNUTLS_E_INTERRUPTED || status == GNUTLS_E_WARNING_ALERT_RECEIVED ||
           (status == GNUTLS_E_AGAIN && wants_to_read(conn)));
    if (status == GNUTLS_E_AGAIN)
        return;
    if (status == GNUTLS_E_SUCCESS) {
        conn->shake = DV_REST_SHAKE_DONE;
        dv_rest_conn_expect_header(conn);
        if (has_chosen_http2(session))
            dv_rest_http2_begin(conn);
        return;
    }
    if (explain(conn, status, &err)) {
        dv_rest_server_count(conn->server, DV_REST_DROP_BAD_SHAKE);
        dv_rest_server_complain(conn->server, conn->peer, &err);
        /* Fails when the client does not take it at once, which is its own loss. */
        (void)gnutls_alert_send_appropriate(session, status);
    }
    dv_rest_conn_break(conn, err.code, err.msg);
}

ssize_t dv_rest_tls_read(struct dv_rest_conn *conn, char *to, size_t n)
{
    ssize_t got;

    do
        got = gnutls_record_recv(conn->tls->gnutls, to, n);
    while (got == GNUTLS_E_INTERRUPTED || got == GNUTLS_E_WARNING_ALERT_RECEIVED ||
           (got == GNUTLS_E_AGAIN && wants_to_read(conn)));
    if (got > 0)
        return got;
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
    /* Fails when the client takes nothing any more. */
    (void)gnutls_bye(conn->tls->gnutls, GNUTLS_SHUT_WR);
}

static void free_who(struct dv_rest_who *who)
{
    struct dv_arena *arena = who ? who->arena : NULL;

    dv_arena_free(arena); /* `who` itself is in this arena */
}

void dv_rest_tls_end(struct dv_rest_conn *conn)
{
    if (!conn->tls)
        return;
    free_who(conn->who);
    gnutls_deinit(conn->tls->gnutls);
    dv_rest_creds_unref(conn->tls->creds);
    free(conn->tls);
}

/* ---- who the client is ---- */

static bool verify(gnutls_session_t session, struct dv_err *err)
{
    gnutls_typed_vdata_st wanted = {GNUTLS_DT_KEY_PURPOSE_OID,
                                    (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT, 0};
    gnutls_datum_t text = {0};
    unsigned flaws = 0;
    int status = gnutls_certificate_verify_peers(session, &wanted, 1, &flaws);

    if (status < 0)
        return dv_fail(err, DV_UNAUTHENTICATED, "client certificate: %s", gnutls_strerror(status));
    if (flaws == 0)
        return true;
    status = gnutls_certificate_verification_status_print(flaws, GNUTLS_CRT_X509, &text, 0);
    (void)dv_fail(err, DV_UNAUTHENTICATED, "client certificate: %s",
                  status == 0 ? (const char *)text.data : "not good");
    gnutls_free(text.data);
    return false;
}

/* Reads the i-th value of that kind in the subject; false: there are fewer. */
static bool get_name(gnutls_x509_crt_t cert, const char *oid, unsigned i, struct dv_arena *arena,
                     dv_str *name, struct dv_err *err)
{
    char text[NAME_BYTES_MAX + 1]; /* GnuTLS adds a NUL */
    size_t n = sizeof(text);
    int status = gnutls_x509_crt_get_dn_by_oid(cert, oid, i, 0, text, &n);

    (void)dv_succeed(err);
    if (status == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        return false;
    if (status != 0)
        return dv_fail(err, DV_UNAUTHENTICATED, "client certificate: its subject: %s",
                       gnutls_strerror(status));
    *name = dv_str_copy((dv_str){text, n}, arena);
    if (!dv_str_is_utf8(*name) || !dv_rest_is_sendable(*name))
        return dv_fail(err, DV_UNAUTHENTICATED,
                       "client certificate: its subject has characters that are none");
    return true;
}

static bool read_subject(gnutls_x509_crt_t cert, struct dv_rest_who *who, struct dv_err *err)
{
    DV_VEC(dv_str) groups = {0};
    dv_str group;

    if (!get_name(cert, GNUTLS_OID_X520_COMMON_NAME, 0, who->arena, &who->identity.name, err)) {
        if (err->code == DV_OK)
            (void)dv_fail(err, DV_UNAUTHENTICATED, "client certificate: it has no CN");
        return false;
    }
    while (groups.n < GROUPS_MAX && get_name(cert, GNUTLS_OID_X520_ORGANIZATION_NAME,
                                             (unsigned)groups.n, who->arena, &group, err))
        *dv_vec_add_in(&groups, who->arena) = group;
    who->identity.groups = groups.v;
    who->identity.n_groups = groups.n;
    return err->code == DV_OK;
}

static void free_cert(gnutls_x509_crt_t *cert)
{
    gnutls_x509_crt_deinit(*cert);
}

static bool identify(gnutls_session_t session, struct dv_rest_who *who, struct dv_err *err)
{
    DV_CLEANUP(free_cert) gnutls_x509_crt_t cert = NULL;
    unsigned n_certs = 0;
    const gnutls_datum_t *certs = gnutls_certificate_get_peers(session, &n_certs);
    int status;

    if (!certs || n_certs == 0)
        return dv_fail(err, DV_NOT_FOUND, "no client certificate");
    if (!verify(session, err))
        return false;
    status = gnutls_x509_crt_init(&cert);
    if (status == 0)
        status = gnutls_x509_crt_import(cert, &certs[0], GNUTLS_X509_FMT_DER);
    if (status != 0)
        return dv_fail(err, DV_UNAUTHENTICATED, "client certificate: %s", gnutls_strerror(status));
    return read_subject(cert, who, err);
}

/* Checks the client's certificate, once for a connection because that verifies a signature or
 * two. */
static const struct dv_rest_who *find_out(struct dv_rest_conn *conn)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_rest_who *who = DV_NEW(arena, struct dv_rest_who);

    who->arena = arena;
    if (identify(conn->tls->gnutls, who, &who->err))
        (void)dv_succeed(&who->err);
    conn->who = who;
    return who;
}

/* Copies the identity into the call's arena, because the connection may end before the call
 * does. */
static void copy_identity(const struct dv_rest_identity *from, struct dv_arena *arena,
                          struct dv_rest_identity *to)
{
    dv_str *groups = DV_NEW_ARRAY(arena, dv_str, from->n_groups);

    for (size_t i = 0; i < from->n_groups; i++)
        groups[i] = dv_str_copy(from->groups[i], arena);
    *to = (struct dv_rest_identity){dv_str_copy(from->name, arena), groups, from->n_groups};
}

bool dv_rest_call_identity(struct dv_rest_call *call, struct dv_rest_identity *identity,
                           struct dv_err *err)
{
    struct dv_rest_conn *conn = call->conn;
    const struct dv_rest_who *who;

    if (!conn)
        return dv_fail(err, DV_CANCELLED, "the client is gone");
    if (!conn->tls || !conn->tls->creds->asks)
        return dv_fail(err, DV_NOT_FOUND, "no client certificate");
    who = conn->who ? conn->who : find_out(conn);
    if (who->err.code != DV_OK) {
        *err = who->err;
        return false;
    }
    copy_identity(&who->identity, call->arena, identity);
    return true;
}

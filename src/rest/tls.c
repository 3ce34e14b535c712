/* tls.c - GnuTLS under a server's connections. Credentials are counted, so that they can be
 * replaced while connections use them. */
#include "rest/tls.h"

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "rest/rest.h"
#include "rest/rest_server.h"
#include "rest/tls_session.h"

/* The limit of a name. RFC 5280's is 64 characters, but some certificates have more. */
#define NAME_BYTES_MAX 256u
/* The limit of groups, more than anyone is in. */
#define GROUPS_MAX 256u

/* TLS 1.2 and 1.3 with GnuTLS's order of ciphers; the server's order decides, not the client's. */
#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

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

struct dv_rest_who *dv_rest_who_find(gnutls_session_t session)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_rest_who *who = DV_NEW(arena, struct dv_rest_who);

    who->arena = arena;
    if (identify(session, who, &who->err))
        (void)dv_succeed(&who->err);
    return who;
}

void dv_rest_who_free(struct dv_rest_who *who)
{
    if (who)
        dv_arena_free(who->arena); /* `who` itself is in it */
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
    who = conn->tls ? conn->tls->who : NULL;
    if (!who)
        return dv_fail(err, DV_NOT_FOUND, "no client certificate");
    if (who->err.code != DV_OK) {
        *err = who->err;
        return false;
    }
    copy_identity(&who->identity, call->arena, identity);
    return true;
}

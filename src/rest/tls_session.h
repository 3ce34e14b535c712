/* tls_session.h - one connection's session, and what the files that know GnuTLS share. */
#ifndef DV_REST_TLS_SESSION_H
#define DV_REST_TLS_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include <gnutls/gnutls.h>

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"
#include "rest/rest.h"

struct dv_arena;
struct dv_rest_conn;

struct dv_rest_creds {
    size_t n_refs; /* changed on the loop's thread only */
    gnutls_certificate_credentials_t gnutls;
    gnutls_priority_t priorities;
    bool asks; /* client certificates are asked for */
};

/* The result of checking a client's certificate. */
struct dv_rest_who {
    struct dv_arena *arena;
    struct dv_rest_identity identity;
    struct dv_err err; /* code DV_OK: it is good */
};

/* While a worker has it, the loop touches nothing of it but the first four members. */
struct dv_rest_session {
    struct dv_rest_conn *conn;
    struct dv_work work;
    struct dv_link link; /* in the list of handshakes that wait for a worker */
    bool is_lent;        /* a worker has it */
    gnutls_session_t gnutls;
    struct dv_rest_creds *creds;
    int fd;
    char *ahead; /* read, and not yet asked for by GnuTLS; NULL: nothing is */
    size_t ahead_at;
    size_t n_ahead;
    bool is_dry;             /* the kernel had nothing more to read */
    bool has_spoken;         /* something has come from the client */
    bool has_answered;       /* the client's hello was good, and it has got ours */
    bool is_left;            /* the client has said that it sends nothing more */
    bool has_said_bye;       /* so have we */
    int status;              /* of the handshake, as GnuTLS has it */
    struct dv_rest_who *who; /* NULL: no certificate was asked for */
};

/* Checks the client's certificate, once for a connection because that verifies a signature or
 * two. */
struct dv_rest_who *dv_rest_who_find(gnutls_session_t session);
void dv_rest_who_free(struct dv_rest_who *who); /* NULL is fine */

#endif

/* tls.h - the certificate of a server, and the identities of its clients. */
#ifndef DV_REST_TLS_H
#define DV_REST_TLS_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;
struct dv_rest_conn;
struct dv_rest_creds;
struct dv_rest_server;
struct dv_rest_tls;

/* TLS 1.2 and 1.3 with GnuTLS's order of ciphers; the server's order decides, not the client's. */
#define DV_REST_TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

/* Makes credentials: certificate and key as GnuTLS wants them. They are shared by the server, for
 * new connections, and by the connections that began with them. */
struct dv_rest_creds *dv_rest_creds_new(const struct dv_rest_tls *tls, struct dv_err *err);
void dv_rest_creds_unref(struct dv_rest_creds *creds); /* NULL is fine */

/* Checks that the key belongs to the certificate. DV_INVALID_ARGUMENT: a text is not valid, or they
 * do not belong together. */
DV_CHECKED bool dv_rest_tls_check_key(dv_str cert, dv_str key, struct dv_err *err);
DV_CHECKED bool dv_rest_tls_check_ca(dv_str ca, struct dv_err *err);

/* The connection has a TLS session that has not been used yet: gives it our credentials. */
void dv_rest_tls_begin(struct dv_rest_conn *conn);
/* libmicrohttpd has logged something: this is the last moment at which a failed handshake shows
 * why. */
void dv_rest_tls_note(struct dv_rest_server *server);
/* The connection is gone, and so is its session. */
void dv_rest_tls_end(struct dv_rest_conn *conn);

#endif

/* tls.h - what a server proves itself with, and who its clients prove to be. */
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

/* TLS 1.2 and 1.3, as GnuTLS has them in order; ours decides, not the client's. */
#define DV_REST_TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

/* Certificate and key as GnuTLS wants them. Shared by the server, for connections to come, and by
 * the connections that began with them. */
struct dv_rest_creds *dv_rest_creds_new(const struct dv_rest_tls *tls, struct dv_err *err);
void dv_rest_creds_unref(struct dv_rest_creds *creds); /* NULL is fine */

/* DV_INVALID_ARGUMENT: no such texts, or they do not belong together. */
DV_CHECKED bool dv_rest_tls_check_key(dv_str cert, dv_str key, struct dv_err *err);
DV_CHECKED bool dv_rest_tls_check_ca(dv_str ca, struct dv_err *err);

/* The connection has a session, and has not used it. */
void dv_rest_tls_begin(struct dv_rest_conn *conn);
/* libmicrohttpd had something to say: the last moment at which a handshake that failed shows why.
 */
void dv_rest_tls_note(struct dv_rest_server *server);
/* The connection is gone, and its session too. */
void dv_rest_tls_end(struct dv_rest_conn *conn);

#endif

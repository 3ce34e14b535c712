/* tls.h - the certificate of a server, and the identities of its clients. */
#ifndef DV_REST_TLS_H
#define DV_REST_TLS_H

#include <stdbool.h>
#include <sys/types.h>

struct dv_err;
struct dv_rest_conn;
struct dv_rest_creds;
struct dv_rest_tls;

/* Makes credentials: certificate and key as GnuTLS wants them. They are shared by the server, for
 * new connections, and by the connections that began with them. */
struct dv_rest_creds *dv_rest_creds_new(const struct dv_rest_tls *tls, struct dv_err *err);
void dv_rest_creds_unref(struct dv_rest_creds *creds); /* NULL is fine */

/* What reading and writing return in place of a count. */
enum {
    DV_REST_AGAIN = -1, /* nothing can be read or written for now */
    DV_REST_ENDED = -2, /* the client has ended the connection, or it is broken */
};

/* Gives the connection a session, with the server's credentials. */
void dv_rest_tls_begin(struct dv_rest_conn *conn);
/* Goes on with the handshake, later and on a worker, if the client has said something. The
 * connection is run when that is done; when the handshake has failed, it is being ended. */
void dv_rest_tls_shake(struct dv_rest_conn *conn);
/* Whether a worker has the session: then the connection cannot be ended yet. */
bool dv_rest_tls_is_lent(const struct dv_rest_conn *conn);
ssize_t dv_rest_tls_read(struct dv_rest_conn *conn, char *to, size_t n);
/* After DV_REST_AGAIN it wants the same bytes again. */
ssize_t dv_rest_tls_write(struct dv_rest_conn *conn, const char *from, size_t n);
/* Tells the client that nothing more will come. */
void dv_rest_tls_bye(struct dv_rest_conn *conn);
void dv_rest_tls_end(struct dv_rest_conn *conn);

#endif

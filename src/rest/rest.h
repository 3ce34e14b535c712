/* rest.h - HTTP/1.1 on the loop: servers and clients, plain or under TLS, and certificates.
 *
 * Every call and every fetch has an id that stands in the log at its start and at its end. What the
 * other side may send or leave unread is bounded: header fields, bodies, the time for either,
 * connections. */
#ifndef DV_REST_H
#define DV_REST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_rest_server;
struct dv_rest_call;
struct dv_rest_client;
struct dv_rest_transfer;

/* ---- requests ---- */

struct dv_rest_field {
    dv_str name;
    dv_str value;
};

struct dv_rest_request {
    dv_str method;                      /* "GET" */
    dv_str path;                        /* as sent: "/a%20b"; begins with '/' */
    dv_str query;                       /* as sent, without the '?' */
    const struct dv_rest_field *fields; /* of the header, in the order of arrival */
    size_t n_fields;
    dv_str body;
};

/* The first field of that name, in any case of letters; empty when absent. */
dv_str dv_rest_request_field(const struct dv_rest_request *request, dv_str name);

/* Takes the next segment off *rest, which begins as a request's path, and decodes it: "/a/b%2Fc"
 * gives "a" and "b/c". False at the end. Empty segments count: "/" gives one. A request with
 * broken encodings, or with what is not UTF-8 when decoded, never reaches a handler. */
bool dv_rest_path_next(dv_str *rest, struct dv_arena *arena, dv_str *segment);
/* Like dv_rest_path_next, for the pairs of a query: "a=b+c&d" gives "a", "b c" and "d", "". */
bool dv_rest_query_next(dv_str *rest, struct dv_arena *arena, dv_str *name, dv_str *value);
/* The first value of that name; false when absent. */
bool dv_rest_query_get(dv_str query, dv_str name, struct dv_arena *arena, dv_str *value);

/* ---- servers ---- */

/* What a server proves itself with; PEM texts. TLS is 1.2 or newer. */
struct dv_rest_tls {
    dv_str cert; /* the server's own, then what leads from it to its CA */
    dv_str key;
    /* Of those whose client certificates count; empty: none is asked for. A client may come without
     * one. */
    dv_str client_ca;
};

/* Why a connection or a request of a client was given up; for counting. */
enum dv_rest_drop {
    DV_REST_DROP_PEER,        /* for a newcomer: its origin had too many that are not known */
    DV_REST_DROP_UNKNOWN,     /* for a newcomer: all together had too many that are not known */
    DV_REST_DROP_USER,        /* its user has too many */
    DV_REST_DROP_FULL,        /* there is no room, and nobody to drop */
    DV_REST_DROP_DESCRIPTORS, /* the process has none left */
    DV_REST_DROP_HANDSHAKE,   /* the TLS handshake was not done in time */
    DV_REST_DROP_SILENT,      /* no request came in time */
    DV_REST_DROP_SLOW,        /* a request did not arrive, or an answer was not taken, in time */
    DV_REST_DROP_BAD_REQUEST, /* it was no good HTTP */
    DV_REST_DROP_BAD_SHAKE,   /* the TLS handshake failed */
};
#define DV_REST_N_DROPS 10u

const char *dv_rest_drop_name(enum dv_rest_drop drop); /* "peer_share": of a metric's label */

struct dv_rest_server_options {
    dv_str name;                   /* for the log */
    const struct dv_rest_tls *tls; /* copied; NULL: plain HTTP */
    /* A request has arrived whole; it lives as long as the call. The call must be answered, now or
     * later, also after it was cancelled. */
    void (*handle)(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request);
    /* The header of a request with a body has arrived: the moment to say whose it is
     * (dv_rest_call_vouch), since bodies have shares too. May be NULL. */
    void (*arriving)(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request);
    /* A client did something that was refused, or broke the protocol: for the log. `peer` is its
     * address. May be NULL. */
    void (*complaint)(void *ctx, dv_str peer, const struct dv_err *err);
    /* Prints the body of an answer that refuses what never reaches `handle` (too large, not HTTP),
     * and returns its content type. NULL: the message, as plain text. */
    const char *(*refusal)(void *ctx, unsigned status, const struct dv_err *err,
                           struct dv_buf *body);
    /* One was given up. May be NULL. */
    void (*dropped)(void *ctx, enum dv_rest_drop drop);
    void *ctx;
    /* The handler says who asks (dv_rest_call_vouch); a quarter of the connections is for clients
     * that it knows nothing of. False: all clients are alike. */
    bool has_users;
    size_t body_bytes_max; /* of one request: 413 beyond it; 0: the default of 3 MiB */
    /* Of all unanswered requests: 503 beyond it; with users, a half of it for each, and a quarter
     * for all who are not known. 0: 64 MiB. */
    size_t bodies_bytes_max;
    size_t unsent_bytes_max; /* of one streamed answer; 0: 4 MiB */
    /* Beyond it the oldest that are not known and wait for nothing are dropped for newcomers, else
     * these get 503; 0: 1024. */
    size_t connections_max;
    /* For a request to arrive, from its first line; for a client to send the next one; for it to
     * take an answer, with 1 s more for every 16,000 bytes, or the next part of a streamed one. For
     * a handshake, and for the header of a request, 10 s if that is less; also for the next request
     * of a client that is not known, if there are users. A handler may take as long as it likes.
     * 0: 60 s. */
    uint64_t timeout_ms;
};

/* Listens on "ADDRESS:PORT": "127.0.0.1:6443", "[::1]:6443", "localhost:0". Without an address
 * (":6443") it is the loopback's; port 0 lets the kernel choose. `options` is copied.
 * DV_INVALID_ARGUMENT: no such address can be. DV_ALREADY_EXISTS: it is in use. */
struct dv_rest_server *dv_rest_server_open(struct dv_loop *loop, dv_str address,
                                           const struct dv_rest_server_options *options,
                                           struct dv_err *err);
/* Takes the listening socket `fd` (socket activation, Unix sockets), also on failure. */
struct dv_rest_server *dv_rest_server_open_fd(struct dv_loop *loop, int fd,
                                              const struct dv_rest_server_options *options,
                                              struct dv_err *err);
/* Takes no more connections and requests at once, lets running calls be answered for grace_ms, then
 * cancels them. `closed` runs when the last call has been answered by its handler; may be NULL. */
void dv_rest_server_close(struct dv_rest_server *server, uint64_t grace_ms, dv_closed_fn *closed,
                          void *ctx);
/* Another certificate, for connections that come from now on. The server was opened with one. When
 * it fails, nothing has changed. DV_INVALID_ARGUMENT: no such texts, or a key of something else. */
DV_CHECKED bool dv_rest_server_set_tls(struct dv_rest_server *server, const struct dv_rest_tls *tls,
                                       struct dv_err *err);
uint16_t dv_rest_server_port(const struct dv_rest_server *server); /* 0: not on TCP */
size_t dv_rest_server_n_connections(const struct dv_rest_server *server);

/* ---- calls: a request waiting for its answer ---- */

/* The connection of the call is of this user from now on. Admins may have more connections, and on
 * the loopback some that nobody else can have. May be called for every call.
 * DV_RESOURCE_EXHAUSTED: the user has too many, or all have; the connection is of nobody then, and
 * should be closed with the answer. */
DV_CHECKED bool dv_rest_call_vouch(struct dv_rest_call *call, dv_str user, bool is_admin,
                                   struct dv_err *err);
/* It is of nobody that is known, from now on. */
void dv_rest_call_disown(struct dv_rest_call *call);

/* A field of the answer's header. One that cannot be sent (control characters) is left out. */
void dv_rest_call_add_field(struct dv_rest_call *call, dv_str name, dv_str value);
/* The answer in one piece; the call is gone. */
void dv_rest_call_reply(struct dv_rest_call *call, unsigned status, dv_str body);
/* Like dv_rest_call_reply, with a body that is not copied: takes the bytes and leaves `body`
 * empty. */
void dv_rest_call_reply_buf(struct dv_rest_call *call, unsigned status, struct dv_buf *body);

/* `cancelled` runs once if the client goes away or the server closes before the call is answered.
 * The handler still answers it. */
void dv_rest_call_on_cancel(struct dv_rest_call *call,
                            void (*cancelled)(void *ctx, struct dv_rest_call *call), void *ctx);
bool dv_rest_call_is_cancelled(const struct dv_rest_call *call);

/* Memory that lives as long as the call. */
struct dv_arena *dv_rest_call_arena(struct dv_rest_call *call);

struct dv_rest_identity {
    dv_str name;          /* the certificate's CN */
    const dv_str *groups; /* each O of it */
    size_t n_groups;
};

/* Whom the client's certificate names; in the call's arena.
 * DV_NOT_FOUND: it has shown none. DV_UNAUTHENTICATED: one that the client CA does not vouch for,
 * or without a name. DV_CANCELLED: the client is gone. */
DV_CHECKED bool dv_rest_call_identity(struct dv_rest_call *call, struct dv_rest_identity *identity,
                                      struct dv_err *err);

/* ---- streams: an answer in pieces, for as long as it takes ---- */

/* Embedded in what produces the answer; zeroed, then filled in; lent until `ended` has run. */
struct dv_rest_stream {
    /* Nearly all that was sent has gone out: the moment to send more. May be NULL. */
    void (*room)(struct dv_rest_stream *stream);
    /* The end, exactly once. err: NULL when all was handed to the kernel; DV_CANCELLED: the client
     * is gone, the server closes, or it was cancelled; DV_DEADLINE_EXCEEDED: the client took
     * nothing for too long. */
    void (*ended)(struct dv_rest_stream *stream, const struct dv_err *err);
    struct dv_rest_call *priv;
};

/* Begins the answer. The call lives on, with its request and arena, until `ended` has run. */
void dv_rest_stream_start(struct dv_rest_stream *stream, struct dv_rest_call *call,
                          unsigned status);
/* Queues a copy. DV_RESOURCE_EXHAUSTED: the client does not read; nothing was queued.
 * DV_CANCELLED: it is gone, `ended` will tell. */
DV_CHECKED bool dv_rest_stream_send(struct dv_rest_stream *stream, dv_str bytes,
                                    struct dv_err *err);
size_t dv_rest_stream_unsent_bytes(const struct dv_rest_stream *stream);
/* No more will be sent; `ended` runs when the client has got it all. */
void dv_rest_stream_finish(struct dv_rest_stream *stream);
/* Breaks off, so that the client sees that it has not got it all. Nothing happens once `ended` has
 * run. */
void dv_rest_stream_cancel(struct dv_rest_stream *stream);

/* ---- clients: where fetches go ---- */

struct dv_rest_client_options {
    dv_str base_url;    /* "https://10.0.0.1:6443", perhaps with a path: what all targets follow */
    dv_str ca;          /* PEM: who may vouch for the server; empty: whom the system trusts */
    dv_str cert;        /* PEM: our own, if any */
    dv_str key;         /* PEM: of `cert` */
    dv_str socket_path; /* of a Unix socket to connect to in place of the URL's host */
    dv_str user_agent;
    size_t connections_max;      /* fetches beyond it wait; streams count; 0: 64 */
    uint64_t connect_timeout_ms; /* look-up, connection and handshake; 0: 10 s */
};

/* `options` is copied. Nothing is connected yet; connections are kept and used again. Proxies of
 * the environment are not used. DV_INVALID_ARGUMENT: what is at fault is named. */
struct dv_rest_client *dv_rest_client_open(struct dv_loop *loop,
                                           const struct dv_rest_client_options *options,
                                           struct dv_err *err);
/* The bearer token of fetches that start from now on; empty: none. Copied. */
void dv_rest_client_set_token(struct dv_rest_client *client, dv_str token);
/* Cancels what is under way; nothing can be started any more. `closed` runs after the last `done`;
 * may be NULL. */
void dv_rest_client_close(struct dv_rest_client *client, dv_closed_fn *closed, void *ctx);

/* One request and its answer, embedded in what waits for it; zeroed, then filled in; lent, with the
 * texts it refers to, until `done` has run.
 *
 * An answer of any status is a success; redirects are not followed. A request that goes out on a
 * kept connection just as the server closes that, unanswered, is sent once more on another. */
struct dv_rest_fetch {
    dv_str method; /* "GET" */
    dv_str target; /* path and query, encoded: "/api/v1/pods?limit=1" */
    const struct dv_rest_field *fields;
    size_t n_fields;
    dv_str body;
    /* On the loop's clock, of all from the start to the end; 0: none, then idle_ms is set. */
    uint64_t deadline_ms;
    uint64_t idle_ms;      /* the longest time without a byte of the answer; 0: no limit */
    size_t body_bytes_max; /* of an answer that is gathered; 0: 64 MiB */
    /* The next part of the body of an answer with a 2xx status. NULL: it is gathered, as that of
     * any other status always is. May cancel. */
    void (*on_body)(struct dv_rest_fetch *fetch, dv_str part);
    /* The end, exactly once. err: NULL when the answer is complete. DV_UNAVAILABLE: no connection,
     * or it broke. DV_UNAUTHENTICATED: the server is not who it should be.
     * DV_DEADLINE_EXCEEDED: too slow, in all or for too long. DV_RESOURCE_EXHAUSTED: more than
     * fits. DV_INTERNAL: what came is not HTTP. DV_INVALID_ARGUMENT: no such request can be sent.
     * DV_CANCELLED: it was, or its client was closed. */
    void (*done)(struct dv_rest_fetch *fetch, const struct dv_err *err);

    unsigned status; /* of the answer, from the first part of the body on */
    /* Until `done` has returned, when there is no error: */
    dv_str answer; /* the gathered body */
    const struct dv_rest_field *answer_fields;
    size_t n_answer_fields;
    struct dv_rest_transfer *priv;
};

void dv_rest_fetch_start(struct dv_rest_client *client, struct dv_rest_fetch *fetch);
/* `done` still runs, with DV_CANCELLED; on_body does not. Nothing happens once `done` has run. */
void dv_rest_fetch_cancel(struct dv_rest_fetch *fetch);
/* The first field of the answer of that name, in any case of letters; empty when absent. */
dv_str dv_rest_fetch_field(const struct dv_rest_fetch *fetch, dv_str name);

/* ---- certificates: EC keys on P-256, all as PEM texts in the arena ---- */

struct dv_rest_cert {
    dv_str cert;
    dv_str key;
};

/* What a certificate is for. It is valid from a little before `now_ns` (wall time) on. */
struct dv_rest_cert_request {
    dv_str name;          /* CN */
    const dv_str *groups; /* O, for clients */
    size_t n_groups;
    const dv_str *hosts; /* DNS names and IP addresses, for servers */
    size_t n_hosts;
    uint64_t now_ns;
    uint64_t valid_days;
};

/* DV_INVALID_ARGUMENT: a name or host that cannot be in a certificate. */
DV_CHECKED bool dv_rest_cert_make_ca(const struct dv_rest_cert_request *request,
                                     struct dv_arena *arena, struct dv_rest_cert *ca,
                                     struct dv_err *err);
/* DV_INVALID_ARGUMENT: also a CA that is none. */
DV_CHECKED bool dv_rest_cert_make_server(const struct dv_rest_cert *ca,
                                         const struct dv_rest_cert_request *request,
                                         struct dv_arena *arena, struct dv_rest_cert *cert,
                                         struct dv_err *err);
DV_CHECKED bool dv_rest_cert_make_client(const struct dv_rest_cert *ca,
                                         const struct dv_rest_cert_request *request,
                                         struct dv_arena *arena, struct dv_rest_cert *cert,
                                         struct dv_err *err);
/* When the first certificate of a PEM text ends to be valid, in wall time. */
DV_CHECKED bool dv_rest_cert_end(dv_str pem, uint64_t *end_ns, struct dv_err *err);

/* ---- secrets ---- */

#define DV_REST_SHA256_BYTES 32u
void dv_rest_sha256(dv_str text, unsigned char digest[DV_REST_SHA256_BYTES]);
/* As 64 lower-case digits, in the arena. */
dv_str dv_rest_sha256_hex(dv_str text, struct dv_arena *arena);

/* 256 random bits as 43 characters of base64url. */
dv_str dv_rest_random_token(struct dv_arena *arena);

#endif

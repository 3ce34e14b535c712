/* rest.h - HTTP on the loop: servers and clients, plain or under TLS, and certificates. Servers
 * speak HTTP/1.1 and, under TLS with clients that choose it, HTTP/2; handlers see no difference.
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
struct dv_rest_line;
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
    const struct dv_rest_field *fields; /* the header's fields, in the order of arrival */
    size_t n_fields;
    dv_str body;
};

/* Returns the first field of that name, in any case of letters; empty when there is none. */
dv_str dv_rest_request_field(const struct dv_rest_request *request, dv_str name);

/* Takes the next segment off *rest, which begins as a request's path, and decodes it: "/a/b%2Fc"
 * gives "a" and "b/c". False at the end. Empty segments count: "/" gives one. A request with
 * broken encodings, or with what is not UTF-8 when decoded, never reaches a handler. */
bool dv_rest_path_next(dv_str *rest, struct dv_arena *arena, dv_str *segment);
/* Like dv_rest_path_next, for the pairs of a query: "a=b+c&d" gives "a", "b c" and "d", "". */
bool dv_rest_query_next(dv_str *rest, struct dv_arena *arena, dv_str *name, dv_str *value);
/* Sets *value to the first value of that name; false when there is none. */
bool dv_rest_query_get(dv_str query, dv_str name, struct dv_arena *arena, dv_str *value);
/* Adds text as it stands in a path or a query: what the functions above decode to the same text. */
void dv_rest_add_encoded(struct dv_buf *buf, dv_str text);

/* ---- servers ---- */

/* What a server proves its identity with, as PEM texts. TLS is 1.2 or newer. */
struct dv_rest_tls {
    dv_str cert; /* the server's certificate, then those that lead from it to its CA */
    dv_str key;
    /* The CA of accepted client certificates; empty: none is asked for. A client may come without a
     * certificate. */
    dv_str client_ca;
};

/* Why a client's connection or request was dropped; for counting. */
enum dv_rest_drop {
    DV_REST_DROP_PEER, /* for a newcomer: its origin had too many unknown connections */
    /* For a newcomer: all origins together had too many unknown connections. */
    DV_REST_DROP_UNKNOWN,
    DV_REST_DROP_USER,        /* its user has too many connections */
    DV_REST_DROP_FULL,        /* there is no room, and nobody can be dropped */
    DV_REST_DROP_DESCRIPTORS, /* the process has no descriptors left */
    DV_REST_DROP_HANDSHAKE,   /* the TLS handshake was not done in time */
    DV_REST_DROP_SILENT,      /* no request came in time */
    DV_REST_DROP_SLOW,        /* a request did not arrive, or an answer was not taken, in time */
    DV_REST_DROP_BAD_REQUEST, /* the request was not valid HTTP */
    DV_REST_DROP_BAD_SHAKE,   /* the TLS handshake failed */
};
#define DV_REST_N_DROPS 10u

const char *dv_rest_drop_name(enum dv_rest_drop drop); /* "peer_share": of a metric's label */

struct dv_rest_server_options {
    dv_str name;                   /* for the log */
    const struct dv_rest_tls *tls; /* copied; NULL: plain HTTP */
    /* A complete request has arrived; it lives as long as the call. A connection may have many at
     * once (HTTP/2). The call must be answered, now or later; that the client has left meanwhile is
     * told to who asks for it (dv_rest_call_watch). */
    void (*handle)(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request);
    /* The header of a request with a body has arrived. The handler can now say whose it is
     * (dv_rest_call_vouch), since bodies have shares too. May be NULL. */
    void (*arriving)(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request);
    /* A client did something that was refused, or broke the protocol: for the log. `peer` is its
     * address. May be NULL. */
    void (*complaint)(void *ctx, dv_str peer, const struct dv_err *err);
    /* Prints the body of an answer that refuses what never reaches `handle` (too large, not HTTP),
     * and returns its content type. NULL: the message, as plain text. */
    const char *(*refusal)(void *ctx, unsigned status, const struct dv_err *err,
                           struct dv_buf *body);
    /* A connection or a request was dropped. May be NULL. */
    void (*dropped)(void *ctx, enum dv_rest_drop drop);
    void *ctx;
    /* The handler says who sends a request (dv_rest_call_vouch); a quarter of the connections is
     * for clients that it does not know. False: all clients are treated alike. */
    bool has_users;
    size_t body_bytes_max; /* limit of one request, 413 beyond it; 0: the default of 3 MiB */
    /* The limit of all unanswered requests, 503 beyond it. With users, each may have half of it,
     * and all unknown clients together a quarter. 0: 64 MiB. */
    size_t bodies_bytes_max;
    size_t unsent_bytes_max; /* limit of one streamed answer; 0: 4 MiB */
    /* The limit of connections. Beyond it the oldest unknown connections that wait for nothing are
     * dropped for newcomers; when there are none, newcomers get 503. 0: 1024. */
    size_t connections_max;
    /* How long a client may take to send a request, from its first line; to send the next one; and
     * to take an answer, with 1 s more for every 16,000 bytes, or the next part of a streamed one.
     * A handshake and the header of a request have 10 s if that is less, and so has the next
     * request of an unknown client, if there are users. A handler may take as long as it likes. 0:
     * 60 s. */
    uint64_t timeout_ms;
};

/* Checks "ADDRESS:PORT" as dv_rest_server_open takes it, and sets whether this machine alone
 * reaches it. DV_INVALID_ARGUMENT: there can be no such address. */
DV_CHECKED bool dv_rest_address_check(dv_str address, bool *is_local, struct dv_err *err);
/* Listens on "ADDRESS:PORT": "127.0.0.1:6443", "[::1]:6443", "localhost:0". Without an address
 * (":6443") it listens on the loopback; with port 0 the kernel chooses one. `options` is copied.
 * DV_INVALID_ARGUMENT: there can be no such address. DV_ALREADY_EXISTS: it is in use. */
struct dv_rest_server *dv_rest_server_open(struct dv_loop *loop, dv_str address,
                                           const struct dv_rest_server_options *options,
                                           struct dv_err *err);
/* Serves on the listening socket `fd` (socket activation, Unix sockets), and owns it, also on
 * failure. */
struct dv_rest_server *dv_rest_server_open_fd(struct dv_loop *loop, int fd,
                                              const struct dv_rest_server_options *options,
                                              struct dv_err *err);
/* Takes no more connections and requests, lets running calls be answered for grace_ms, then cancels
 * them. `closed` runs when the last call has been answered by its handler; may be NULL. */
void dv_rest_server_close(struct dv_rest_server *server, uint64_t grace_ms, dv_closed_fn *closed,
                          void *ctx);
/* Sets another certificate for connections that come from now on; the server must have been opened
 * with one. On failure nothing has changed. DV_INVALID_ARGUMENT: a text is not valid, or the key
 * belongs to something else. */
DV_CHECKED bool dv_rest_server_set_tls(struct dv_rest_server *server, const struct dv_rest_tls *tls,
                                       struct dv_err *err);
uint16_t dv_rest_server_port(const struct dv_rest_server *server); /* 0: not on TCP */
size_t dv_rest_server_n_connections(const struct dv_rest_server *server);

/* ---- calls: a request waiting for its answer ---- */

/* The connection of the call belongs to this user from now on. Admins may have more connections,
 * and on the loopback some that nobody else can have. May be called for every call.
 * DV_RESOURCE_EXHAUSTED: the user has too many, or all together have; the connection then belongs
 * to nobody, and should be closed with the answer. */
DV_CHECKED bool dv_rest_call_vouch(struct dv_rest_call *call, dv_str user, bool is_admin,
                                   struct dv_err *err);
/* The connection of the call belongs to no known user from now on. */
void dv_rest_call_disown(struct dv_rest_call *call);

/* Adds a field to the answer's header. One that cannot be sent (control characters) is left out. */
void dv_rest_call_add_field(struct dv_rest_call *call, dv_str name, dv_str value);
/* Sends the answer in one piece; the call is freed. */
void dv_rest_call_reply(struct dv_rest_call *call, unsigned status, dv_str body);
/* Like dv_rest_call_reply, but does not copy the body: it takes the bytes and leaves `body`
 * empty. */
void dv_rest_call_reply_buf(struct dv_rest_call *call, unsigned status, struct dv_buf *body);

/* Returns memory that lives as long as the call. */
struct dv_arena *dv_rest_call_arena(struct dv_rest_call *call);

/* Has `gone` called when the client leaves before the call is answered, which it has to be all the
 * same, but not from within `gone`. NULL: it is not told any more. False: the client has left
 * already. */
bool dv_rest_call_watch(struct dv_rest_call *call, void (*gone)(void *ctx), void *ctx);

struct dv_rest_identity {
    dv_str name;          /* the certificate's CN */
    const dv_str *groups; /* each O of it */
    size_t n_groups;
};

/* Returns whom the client's certificate names, in the call's arena. DV_NOT_FOUND: the client has
 * shown none. DV_UNAUTHENTICATED: the client CA has not signed it, or it has no name. DV_CANCELLED:
 * the client is gone. */
DV_CHECKED bool dv_rest_call_identity(struct dv_rest_call *call, struct dv_rest_identity *identity,
                                      struct dv_err *err);

/* ---- streams: an answer in pieces, for as long as it takes ---- */

/* A streamed answer. It is embedded in what produces it, zeroed, filled in, and lent until `ended`
 * has run. */
struct dv_rest_stream {
    /* Nearly everything that was sent has gone out, so more can be sent. May be NULL. */
    void (*room)(struct dv_rest_stream *stream);
    /* The stream has ended; runs exactly once. err is NULL when everything was handed to the
     * kernel. DV_CANCELLED: the client is gone, the server closes, or the stream was cancelled.
     * DV_DEADLINE_EXCEEDED: the client took nothing for too long. */
    void (*ended)(struct dv_rest_stream *stream, const struct dv_err *err);
    struct dv_rest_call *priv;
};

/* Begins the answer. The call, its request and its arena live until `ended` has run. */
void dv_rest_stream_start(struct dv_rest_stream *stream, struct dv_rest_call *call,
                          unsigned status);
/* Queues a copy of the bytes. DV_RESOURCE_EXHAUSTED: the client does not read, and nothing was
 * queued. DV_CANCELLED: the client is gone, and `ended` will tell. */
DV_CHECKED bool dv_rest_stream_send(struct dv_rest_stream *stream, dv_str bytes,
                                    struct dv_err *err);
size_t dv_rest_stream_unsent_bytes(const struct dv_rest_stream *stream);
/* Ends the stream: `ended` runs when the client has got everything. */
void dv_rest_stream_finish(struct dv_rest_stream *stream);
/* Breaks the stream off, so that the client sees that something is missing. Does nothing once
 * `ended` has run. */
void dv_rest_stream_cancel(struct dv_rest_stream *stream);

/* ---- tunnels: a connection that leaves HTTP, with TLS in place ---- */

/* A connection that goes on with another protocol. It is embedded in what speaks that, zeroed,
 * filled in, and lent until `ended` has run. The connection keeps its place among those of its
 * user. */
struct dv_rest_tunnel {
    /* Bytes have come from the client; borrowed. */
    void (*received)(struct dv_rest_tunnel *tunnel, dv_str bytes);
    /* Nearly everything that was sent has gone out, so more can be sent. May be NULL. */
    void (*room)(struct dv_rest_tunnel *tunnel);
    /* The tunnel has ended; runs exactly once. err is NULL when it was finished and everything was
     * handed to the kernel. DV_CANCELLED: the client has ended it, the server closes, or it was
     * cancelled. DV_DEADLINE_EXCEEDED: nothing went either way, or the client took nothing, for too
     * long. */
    void (*ended)(struct dv_rest_tunnel *tunnel, const struct dv_err *err);
    /* The longest time without a byte in either direction, and for which the client may leave
     * unread what was sent to it; 0: there is no limit, and the server's for answers. */
    uint64_t idle_ms;
    struct dv_rest_call *priv;
};

/* Answers with 101 and the name of the protocol, after what dv_rest_call_add_field has added; what
 * follows in either direction is the tunnel's. The call, its request and its arena live until
 * `ended` has run. On failure the call is still to be answered. DV_FAILED_PRECONDITION: the client
 * has not asked for another protocol, or speaks HTTP/1.0 or HTTP/2, which have no way to change.
 * DV_CANCELLED: the client is gone. */
DV_CHECKED bool dv_rest_call_upgrade(struct dv_rest_call *call, dv_str protocol,
                                     struct dv_rest_tunnel *tunnel, struct dv_err *err);
/* Queues a copy of the bytes. DV_RESOURCE_EXHAUSTED: the client does not read, and nothing was
 * queued. DV_CANCELLED: the client is gone, and `ended` will tell. */
DV_CHECKED bool dv_rest_tunnel_send(struct dv_rest_tunnel *tunnel, dv_str bytes,
                                    struct dv_err *err);
size_t dv_rest_tunnel_unsent_bytes(const struct dv_rest_tunnel *tunnel);
/* While it is paused, nothing is received, and the client cannot send more than the kernel takes.
 * What it has sent before it hung up is lost then: the tunnel ends. */
void dv_rest_tunnel_pause(struct dv_rest_tunnel *tunnel, bool is_paused);
/* Ends the tunnel when the client has got everything; nothing more is received. */
void dv_rest_tunnel_finish(struct dv_rest_tunnel *tunnel);
/* Breaks the tunnel off. Does nothing once `ended` has run. */
void dv_rest_tunnel_cancel(struct dv_rest_tunnel *tunnel);

/* ---- clients: where fetches go ---- */

struct dv_rest_client_options {
    dv_str base_url; /* "https://10.0.0.1:6443", perhaps with a path: what all targets follow */
    /* PEM: the CAs that the server's certificate may be from; empty: those that the system
     * trusts. */
    dv_str ca;
    dv_str cert;        /* PEM: our own, if any */
    dv_str key;         /* PEM: of `cert` */
    dv_str socket_path; /* path of a Unix socket that is used in place of the URL's host */
    dv_str user_agent;
    /* Any certificate is accepted, for any name: who only asks whether a server answers does not
     * mind whose it is. */
    bool is_unverified;
    /* As dv_rest_cert_pin prints it: who has this key is the server, whatever its certificate says.
     * Empty: none. */
    dv_str key_pin;
    size_t connections_max;      /* fetches beyond it wait; streams count; 0: 64 */
    uint64_t connect_timeout_ms; /* look-up, connection and handshake; 0: 10 s */
};

/* Opens a client. `options` is copied. Nothing is connected yet; connections are kept and used
 * again. Proxies of the environment are not used. DV_INVALID_ARGUMENT: the text names what is
 * wrong. */
struct dv_rest_client *dv_rest_client_open(struct dv_loop *loop,
                                           const struct dv_rest_client_options *options,
                                           struct dv_err *err);
/* Sets the bearer token of fetches that start from now on, as a copy; empty: none. */
void dv_rest_client_set_token(struct dv_rest_client *client, dv_str token);
/* Cancels the fetches that are under way; no more can be started. `closed` runs after the last
 * `done`; may be NULL. */
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
    /* "10.0.0.1:8443", "[fd00::1]:443": where to connect to, in place of the host and the port in
     * the client's URL; the server still has to be who is named there. Empty: to these. */
    dv_str connect_to;
    /* The limit for everything from the start to the end, on the loop's clock; 0: there is none,
     * and idle_ms must be set. */
    uint64_t deadline_ms;
    uint64_t idle_ms;      /* the longest time without a byte of the answer; 0: no limit */
    size_t body_bytes_max; /* limit of an answer that is gathered; 0: 64 MiB */
    /* The header of an answer with a 2xx status is complete; `status` is set. May be NULL. It may
     * cancel the fetch. */
    void (*on_head)(struct dv_rest_fetch *fetch);
    /* The next part of the body of an answer with a 2xx status. NULL: the body is gathered, as that
     * of any other status always is. It may pause or cancel the fetch. */
    void (*on_body)(struct dv_rest_fetch *fetch, dv_str part);
    /* The end, exactly once. err: NULL when the answer is complete. DV_UNAVAILABLE: no connection,
     * or it broke. DV_UNAUTHENTICATED: the server is not who it should be.
     * DV_DEADLINE_EXCEEDED: too slow, in all or for too long. DV_RESOURCE_EXHAUSTED: more than
     * fits. DV_INTERNAL: what came is not HTTP. DV_INVALID_ARGUMENT: no such request can be sent.
     * DV_CANCELLED: it was, or its client was closed. */
    void (*done)(struct dv_rest_fetch *fetch, const struct dv_err *err);

    unsigned status;   /* status of the answer, set from the first part of the body on */
    int connect_errno; /* why there was no connection; 0: there was one, or that is not known */
    /* These live until `done` has returned, and are set when there is no error. */
    dv_str answer; /* the gathered body */
    const struct dv_rest_field *answer_fields;
    size_t n_answer_fields;
    struct dv_rest_transfer *priv;
};

void dv_rest_fetch_start(struct dv_rest_client *client, struct dv_rest_fetch *fetch);
/* Cancels the fetch: `done` still runs, with DV_CANCELLED; on_body does not. Does nothing once
 * `done` has run. */
void dv_rest_fetch_cancel(struct dv_rest_fetch *fetch);
/* While it is paused, on_body is not called, and the server cannot send more than a buffer of
 * libcurl's and the kernel's take. It goes on later in the turn. Only for a fetch with on_body. */
void dv_rest_fetch_pause(struct dv_rest_fetch *fetch, bool is_paused);
/* Returns the first field of the answer with that name, in any case of letters; empty when there is
 * none. */
dv_str dv_rest_fetch_field(const struct dv_rest_fetch *fetch, dv_str name);

/* ---- dials: connections of ours that leave HTTP ---- */

/* A request that asks to go on with another protocol, and the connection then. It is embedded in
 * what speaks that, zeroed, filled in, and lent until `ended` has run.
 *
 *     start -> connected -> request sent -> answer 101: opened -> bytes both ways -> ended
 */
struct dv_rest_dial {
    dv_str method; /* texts are copied by the start */
    dv_str target;
    const struct dv_rest_field *fields; /* those that ask for it too: Connection, Upgrade */
    size_t n_fields;
    /* The server has answered with 101. `fields` and `n_fields` are now those of the answer. */
    void (*opened)(struct dv_rest_dial *dial);
    /* Bytes have come; borrowed. It may be that `dial` is cancelled from within. */
    void (*received)(struct dv_rest_dial *dial, dv_str bytes);
    /* Nearly everything that was sent has gone out, so more can be sent. May be NULL. */
    void (*room)(struct dv_rest_dial *dial);
    /* It has ended; runs exactly once. err is NULL when the server has closed an open connection,
     * or it was finished. Otherwise the codes are those of a fetch; DV_FAILED_PRECONDITION: the
     * server has answered with `status` instead of 101, and `answer` is the body. */
    void (*ended)(struct dv_rest_dial *dial, const struct dv_err *err);

    unsigned status; /* of the answer; 0: there was none */
    dv_str answer;   /* the body of a refusal, at most 64 KiB; borrowed while `ended` runs */
    struct dv_rest_line *priv;
};

/* The limit of what waits to be sent on a dialled connection. */
#define DV_REST_DIAL_UNSENT_BYTES_MAX (1024u * 1024u)

/* Connects to the client's server, and waits for an answer as long as the client does for a
 * connection. The client's token and certificate are used as for fetches. */
void dv_rest_dial_start(struct dv_rest_client *client, struct dv_rest_dial *dial);
/* Queues a copy of the bytes. DV_RESOURCE_EXHAUSTED: the server does not read, and nothing was
 * queued. DV_CANCELLED: the connection is not open, and `ended` tells why. */
DV_CHECKED bool dv_rest_dial_send(struct dv_rest_dial *dial, dv_str bytes, struct dv_err *err);
size_t dv_rest_dial_unsent_bytes(const struct dv_rest_dial *dial);
/* While it is paused, nothing is received. */
void dv_rest_dial_pause(struct dv_rest_dial *dial, bool is_paused);
/* Ends it when everything has been handed to the kernel; nothing more is received. */
void dv_rest_dial_finish(struct dv_rest_dial *dial);
/* Breaks it off: `ended` runs with DV_CANCELLED. Does nothing once `ended` has run. */
void dv_rest_dial_cancel(struct dv_rest_dial *dial);
/* Returns the first field of the answer with that name; empty when there is none. */
dv_str dv_rest_dial_field(const struct dv_rest_dial *dial, dv_str name);

/* ---- certificates: EC keys on P-256, all as PEM texts in the arena ---- */

struct dv_rest_cert {
    dv_str cert;
    dv_str key;
};

/* What a certificate is for. It is valid from a little before `now_ns` (wall time). */
struct dv_rest_cert_request {
    dv_str name;          /* CN */
    const dv_str *groups; /* O, for clients */
    size_t n_groups;
    const dv_str *hosts; /* DNS names and IP addresses, for servers */
    size_t n_hosts;
    uint64_t now_ns;
    uint64_t valid_days;
};

/* Makes a CA. DV_INVALID_ARGUMENT: a name or host cannot be in a certificate. */
DV_CHECKED bool dv_rest_cert_make_ca(const struct dv_rest_cert_request *request,
                                     struct dv_arena *arena, struct dv_rest_cert *ca,
                                     struct dv_err *err);
/* Makes a server's certificate. DV_INVALID_ARGUMENT: as above, or `ca` is no CA. */
DV_CHECKED bool dv_rest_cert_make_server(const struct dv_rest_cert *ca,
                                         const struct dv_rest_cert_request *request,
                                         struct dv_arena *arena, struct dv_rest_cert *cert,
                                         struct dv_err *err);
DV_CHECKED bool dv_rest_cert_make_client(const struct dv_rest_cert *ca,
                                         const struct dv_rest_cert_request *request,
                                         struct dv_arena *arena, struct dv_rest_cert *cert,
                                         struct dv_err *err);
/* Checks that the key belongs to the certificate. DV_INVALID_ARGUMENT: a text is not valid, or they
 * do not belong together. */
DV_CHECKED bool dv_rest_tls_check_key(dv_str cert, dv_str key, struct dv_err *err);
DV_CHECKED bool dv_rest_tls_check_ca(dv_str ca, struct dv_err *err);
/* Finds when the first certificate of a PEM text expires, in wall time. */
DV_CHECKED bool dv_rest_cert_end(dv_str pem, uint64_t *end_ns, struct dv_err *err);
/* Prints the SHA-256 of the public key in the first certificate of a PEM text, into the arena:
 * "sha256//BASE64". Clients that know it need no CA to know the server. */
DV_CHECKED bool dv_rest_cert_pin(dv_str pem, struct dv_arena *arena, dv_str *pin,
                                 struct dv_err *err);
/* Whether the text is such a pin. */
bool dv_rest_is_pin(dv_str text);

/* ---- secrets ---- */

#define DV_REST_SHA256_BYTES 32u
void dv_rest_sha256(dv_str text, unsigned char digest[DV_REST_SHA256_BYTES]);
/* Returns the hash as 64 lower-case digits, in the arena. */
dv_str dv_rest_sha256_hex(dv_str text, struct dv_arena *arena);

/* Returns 256 random bits as 43 characters of base64url. */
dv_str dv_rest_random_token(struct dv_arena *arena);

#endif

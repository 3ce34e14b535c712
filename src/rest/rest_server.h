/* rest_server.h - what the files of this module share: servers, connections, calls.
 *
 * libmicrohttpd owns the sockets and speaks HTTP; it is run from the loop, and all that it tells
 * arrives from within MHD_run. Whatever is asked of a connection at another time is
 * noted here, and done when it is run next:
 *
 *     accept -> IDLE -> ARRIVING -> HANDED -> ANSWERING ----> IDLE
 *                           |          `----> STREAMING ----> IDLE
 *                           `-> REFUSED ----> ANSWERING
 *
 * While a handler has the call, or a stream has nothing to send, libmicrohttpd has the connection
 * suspended, and does not look at its socket: a second epoll watches it for the client's end. It is
 * suspended, too, while the client's next part of a TLS handshake has not come: libmicrohttpd would
 * try to read it again and again, without a pause. */
#ifndef DV_REST_SERVER_H
#define DV_REST_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <microhttpd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "rest/rest.h"

struct dv_rest_creds;
struct dv_rest_peer;
struct dv_rest_user;
struct dv_rest_who;

/* For a handshake, and for the header of a request from its first byte on: as long as the slowest
 * client needs that means it, on a loaded machine. */
#define DV_REST_HEADER_MS 10000u
/* Of each connection, for its request's line and header, some of the body, and the answer's header;
 * all of it is zeroed after every request. Tokens and selectors take a few KiB. */
#define DV_REST_CONNECTION_BYTES (16u * 1024u)
/* Of a refused request so much is still read, and forgotten, before its answer: most clients send
 * all before they listen. Who sends more is cut off. */
#define DV_REST_DISCARD_BYTES_MAX (16u * 1024u * 1024u)
/* "[ffff:...:255.255.255.255]:65535" and the end. */
#define DV_REST_PEER_BYTES 56u

enum dv_rest_phase {
    DV_REST_IDLE,      /* no request, or nothing but the beginning of its first line */
    DV_REST_ARRIVING,  /* the call exists, its header or body is not complete */
    DV_REST_REFUSED,   /* there is no call; the rest of the request is thrown away, then answered */
    DV_REST_HANDED,    /* the handler has the call, or has just answered it */
    DV_REST_ANSWERING, /* there is no call; the answer goes out */
    DV_REST_STREAMING, /* the answer goes out piece by piece */
};

/* How far the TLS handshake is. */
enum dv_rest_shake {
    DV_REST_SHAKE_DONE, /* or there is none */
    DV_REST_SHAKE_BEGUN,
    DV_REST_SHAKE_ANSWERED, /* the client's hello was good, and it has got ours */
};

/* Where a connection comes from, as far as that tells clients apart: see peer.c. */
struct dv_rest_origin {
    char key[1 + 8]; /* a letter for the kind, then an address, a network or a user */
    size_t n_key;
    bool is_local; /* on the loopback, or a Unix socket */
};

/* Whose the places for connections are: see shares.c. */
struct dv_rest_shares {
    struct dv_map peers; /* by the origin's key: struct dv_rest_peer */
    struct dv_map users; /* by name: struct dv_rest_user */
    size_t n_unknown;    /* connections that nobody has vouched for */
    size_t unknown_bodies_bytes;
    size_t n_known;
    int diag_fd;            /* to ask the kernel whose the other end is; negative: not open */
    uint64_t complained_ms; /* when drops were last told; 0: never */
};

struct dv_rest_conn {
    struct dv_rest_server *server;
    struct dv_link link;
    struct MHD_Connection *mhd;
    int fd; /* libmicrohttpd's; ours to watch and to shut down */
    enum dv_rest_phase phase;
    struct dv_rest_call *call;
    struct MHD_Response *answer; /* until libmicrohttpd comes for it */
    unsigned status;             /* of the answer */
    size_t answer_bytes;
    size_t discarded_bytes; /* of the body of a refused request */
    bool is_suspended;
    bool is_hung_up;             /* the client has closed its side */
    bool has_spoken;             /* something has come from the client */
    struct dv_rest_peer *from;   /* NULL: it is not counted yet */
    struct dv_link unknown_link; /* among those that nobody has vouched for */
    struct dv_rest_user *user;   /* NULL: it is not known */
    struct dv_rest_creds *creds; /* NULL: plain */
    enum dv_rest_shake shake;
    bool has_ended;          /* the client, in the middle of the handshake */
    int alert;               /* that ended it; 0: none */
    struct dv_rest_who *who; /* the client, by its certificate; NULL: nobody has asked */
    struct dv_timer timer;
    struct dv_err reason; /* why it is being ended; code DV_OK: it is not */
    char peer[DV_REST_PEER_BYTES];
};

struct dv_rest_server {
    struct dv_loop *loop;
    struct dv_rest_server_options options; /* no zeros */
    struct MHD_Daemon *mhd;
    struct dv_poll *mhd_poll;
    struct dv_task run_task;
    int listen_fd; /* negative: closed */
    struct dv_poll *listen_poll;
    struct dv_timer accept_timer; /* set while accepting makes a pause */
    int hangup_fd;
    struct dv_poll *hangup_poll;
    struct dv_rest_conn *new_conn;    /* being added to libmicrohttpd */
    struct dv_rest_creds *creds;      /* for connections to come; NULL: plain */
    struct dv_rest_conn *handshaking; /* the latest that was heard of; NULL: it has succeeded */
    struct dv_list conns;
    size_t n_conns;
    struct dv_rest_shares shares;
    size_t n_calls;      /* that exist: arriving, or not answered */
    size_t bodies_bytes; /* that they hold */
    char said[160];      /* libmicrohttpd's latest message */
    bool is_closing;
    struct dv_timer grace_timer;
    struct dv_task close_task;
    dv_closed_fn *closed;
    void *closed_ctx;
    char name[];
};

struct dv_rest_call {
    struct dv_rest_server *server;
    struct dv_rest_conn *conn; /* NULL once the client cannot be answered */
    struct dv_arena *arena;
    struct dv_rest_request request;
    dv_str target;            /* as it lies in libmicrohttpd's memory, until the header was taken */
    struct dv_err target_err; /* code DV_OK: path and query are known */
    struct dv_buf body;
    struct dv_rest_user *payer; /* whose share the body is in; NULL: of those who are not known */
    DV_VEC(struct dv_rest_field) fields; /* of the answer; in the arena */
    uint64_t id;
    uint64_t start_ns;
    bool has_header; /* of the request, whole */
    bool is_old;     /* HTTP/1.0 */
    bool is_handed;
    bool is_cancelled;
    void (*cancelled)(void *ctx, struct dv_rest_call *call);
    void *cancelled_ctx;
    struct dv_task task; /* for a cancellation or an end that is known at once */
    unsigned status;
    char peer[DV_REST_PEER_BYTES];

    struct dv_rest_stream *stream; /* NULL: not begun */
    struct dv_buf unsent;
    size_t unsent_at; /* what is before it has been sent */
    uint64_t sent_bytes;
    bool is_finished; /* no more will be sent */
    bool wants_room;  /* something was sent since `room` ran */
};

/* ---- rest_server.c ---- */

/* Lets libmicrohttpd go on, later in this turn. */
void dv_rest_server_run_later(struct dv_rest_server *server);
/* Looks, later, whether a closing server is done. */
void dv_rest_server_check_closed(struct dv_rest_server *server);
void dv_rest_server_complain(struct dv_rest_server *server, const char *peer,
                             const struct dv_err *err);

/* ---- listen.c ---- */

/* A socket that listens there. */
DV_CHECKED bool dv_rest_listen(dv_str address, int *fd, struct dv_err *err);
/* DV_INVALID_ARGUMENT: `fd` is no listening socket. */
DV_CHECKED bool dv_rest_listen_check(int fd, struct dv_err *err);
uint16_t dv_rest_listen_port(int fd);
void dv_rest_address_print(const struct sockaddr *address, char text[DV_REST_PEER_BYTES]);

/* ---- peer.c ---- */

/* *diag_fd is opened when it is needed. */
void dv_rest_origin_find(int *diag_fd, int fd, const struct sockaddr *peer,
                         struct dv_rest_origin *origin);

/* ---- shares.c ---- */

void dv_rest_shares_init(struct dv_rest_shares *shares);
void dv_rest_shares_fini(struct dv_rest_shares *shares);
/* Gives the connection a place, perhaps that of another. DV_RESOURCE_EXHAUSTED: there is none. */
DV_CHECKED bool dv_rest_shares_join(struct dv_rest_conn *conn, const struct sockaddr *address,
                                    struct dv_err *err);
void dv_rest_shares_leave(struct dv_rest_conn *conn); /* twice is fine */
/* The process has no descriptor for the next connection: one that does nothing gives its own. */
void dv_rest_shares_spare_descriptor(struct dv_rest_server *server);
/* Whether so many bytes more of its body fit into the share of who sends it; then they count until
 * the call gives them back. */
DV_CHECKED bool dv_rest_shares_take_body(struct dv_rest_call *call, size_t n_bytes);
void dv_rest_shares_give_body_back(struct dv_rest_call *call);
void dv_rest_server_count(struct dv_rest_server *server, enum dv_rest_drop drop);

/* ---- rest_conn.c ---- */

void dv_rest_conn_accept(void *server, unsigned events);  /* of listen_poll */
void dv_rest_conn_hangups(void *server, unsigned events); /* of hangup_poll */
struct dv_rest_conn *dv_rest_conn_of(struct MHD_Connection *mhd);
/* Called by libmicrohttpd: a connection is there or gone, a request is over. */
void dv_rest_conn_changed(void *server, struct MHD_Connection *mhd, void **ctx,
                          enum MHD_ConnectionNotificationCode change);
void dv_rest_conn_completed(void *server, struct MHD_Connection *mhd, void **ctx,
                            enum MHD_RequestTerminationCode how);
/* To be told of the client's end and, during a handshake, of what it sends. */
DV_CHECKED bool dv_rest_conn_watch(struct dv_rest_conn *conn, int epoll_op);
/* The client has to do something by then. */
void dv_rest_conn_expect(struct dv_rest_conn *conn, uint64_t within_ms);
/* Like dv_rest_conn_expect, for the header of a request, and for the handshake before the first
 * one. */
void dv_rest_conn_expect_header(struct dv_rest_conn *conn);
void dv_rest_conn_suspend(struct dv_rest_conn *conn);
void dv_rest_conn_resume(struct dv_rest_conn *conn); /* nothing happens unless it is suspended */
/* Ends the connection, soon; the first reason counts. */
void dv_rest_conn_break(struct dv_rest_conn *conn, enum dv_code code, const char *text);
bool dv_rest_conn_is_breaking(const struct dv_rest_conn *conn);

/* ---- rest_call.c ---- */

/* Called by libmicrohttpd: the first line of a request, and all that follows it. */
void *dv_rest_call_begin(void *server, const char *target, struct MHD_Connection *mhd);
enum MHD_Result dv_rest_call_access(void *server, struct MHD_Connection *mhd, const char *url,
                                    const char *method, const char *version, const char *bytes,
                                    size_t *n_bytes, void **ctx);
/* The connection has let go of it: tells who has it, or frees it. err: NULL when the answer of a
 * stream is complete. */
void dv_rest_call_detach(struct dv_rest_call *call, const struct dv_err *err);
/* The client does not wait any more, but may still hear the answer. */
void dv_rest_call_cancel(struct dv_rest_call *call);
/* Makes the answer wait for libmicrohttpd. Takes the reference. */
void dv_rest_call_set_answer(struct dv_rest_call *call, unsigned status,
                             struct MHD_Response *answer, size_t n_bytes);
void dv_rest_call_free(struct dv_rest_call *call);
void dv_rest_call_log_end(const struct dv_rest_call *call, uint64_t n_bytes,
                          const struct dv_err *err);

/* The number of a call or a fetch: unique in the process, from 1. */
uint64_t dv_rest_next_id(void);
/* Whether it can be a method or the name of a field (rest_request.c). */
bool dv_rest_is_token(dv_str text);
/* Whether it can be in a header field: no control characters. */
bool dv_rest_is_sendable(dv_str text);

/* ---- header.c ---- */

/* Why a request is not handed to the handler. */
struct dv_rest_refusal {
    unsigned status; /* 0: it is */
    struct dv_err err;
    bool is_body_unwanted; /* it must not even be read to its end */
    bool closes;           /* nobody knows where the next request begins */
};

/* Takes the fields and the method of a request whose header has come whole, and checks them. */
void dv_rest_header_take(struct dv_rest_call *call, const char *method, const char *version,
                         struct dv_rest_refusal *refusal);
void dv_rest_header_too_large(const struct dv_rest_call *call, struct dv_rest_refusal *refusal);

/* ---- rest_stream.c ---- */

void dv_rest_stream_end(struct dv_rest_call *call, const struct dv_err *err);

#endif

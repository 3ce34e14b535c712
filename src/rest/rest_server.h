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

/* The limit for a handshake, and for the header of a request from its first byte on: as long as the
 * slowest honest client needs on a loaded machine. */
#define DV_REST_HEADER_MS 10000u
/* The memory of each connection for its request's line and header, some of the body, and the
 * answer's header; all of it is zeroed after every request. Tokens and selectors take a few KiB. */
#define DV_REST_CONNECTION_BYTES (16u * 1024u)
/* So much of a refused request is still read and dropped before it is answered, because most
 * clients send everything before they listen. A client that sends more is cut off. */
#define DV_REST_DISCARD_BYTES_MAX (16u * 1024u * 1024u)
/* Room for "[ffff:...:255.255.255.255]:65535" and the NUL. */
#define DV_REST_PEER_BYTES 56u

enum dv_rest_phase {
    DV_REST_IDLE,     /* no request, or nothing but the beginning of its first line */
    DV_REST_ARRIVING, /* the call exists, its header or body is not complete */
    /* There is no call; the rest of the request is dropped, then it is answered. */
    DV_REST_REFUSED,
    DV_REST_HANDED,    /* the handler has the call, or has just answered it */
    DV_REST_ANSWERING, /* there is no call; the answer goes out */
    DV_REST_STREAMING, /* the answer goes out piece by piece */
};

/* How far the TLS handshake has come. */
enum dv_rest_shake {
    DV_REST_SHAKE_DONE, /* it is done, or there is none */
    DV_REST_SHAKE_BEGUN,
    DV_REST_SHAKE_ANSWERED, /* the client's hello was good, and it has got ours */
};

/* Where a connection comes from, as far as that tells clients apart; see peer.c. */
struct dv_rest_origin {
    char key[1 + 8]; /* a letter for the kind, then an address, a network or a user */
    size_t n_key;
    bool is_local; /* on the loopback, or a Unix socket */
};

/* Who has the places for connections; see shares.c. */
struct dv_rest_shares {
    struct dv_map peers; /* by the origin's key: struct dv_rest_peer */
    struct dv_map users; /* by name: struct dv_rest_user */
    size_t n_unknown;    /* connections without a known user */
    size_t unknown_bodies_bytes;
    size_t n_known;
    /* Socket to ask the kernel who owns the other end; negative: not open. */
    int diag_fd;
    uint64_t complained_ms; /* when drops were last logged; 0: never */
};

struct dv_rest_conn {
    struct dv_rest_server *server;
    struct dv_link link;
    struct MHD_Connection *mhd;
    int fd; /* belongs to libmicrohttpd; we watch it and shut it down */
    enum dv_rest_phase phase;
    struct dv_rest_call *call;
    struct MHD_Response *answer; /* kept until libmicrohttpd asks for it */
    unsigned status;             /* status of the answer */
    size_t answer_bytes;
    size_t discarded_bytes; /* how much of a refused request's body was dropped */
    bool is_suspended;
    bool is_hung_up;             /* the client has closed its side */
    bool has_spoken;             /* something has come from the client */
    struct dv_rest_peer *from;   /* NULL: it is not counted yet */
    struct dv_link unknown_link; /* in the list of connections without a known user */
    struct dv_rest_user *user;   /* NULL: the user is not known */
    struct dv_rest_creds *creds; /* NULL: plain */
    enum dv_rest_shake shake;
    bool has_ended;          /* the client has gone in the middle of the handshake */
    int alert;               /* the alert that ended the handshake; 0: none */
    struct dv_rest_who *who; /* the client by its certificate; NULL: nobody has asked */
    struct dv_timer timer;
    struct dv_err reason; /* why the connection is being ended; code DV_OK: it is not */
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
    struct dv_timer accept_timer; /* set while accepting pauses */
    int hangup_fd;
    struct dv_poll *hangup_poll;
    struct dv_rest_conn *new_conn; /* being added to libmicrohttpd */
    struct dv_rest_creds *creds;   /* for new connections; NULL: plain HTTP */
    /* The latest one that is in a handshake; NULL: that has succeeded. */
    struct dv_rest_conn *handshaking;
    struct dv_list conns;
    size_t n_conns;
    struct dv_rest_shares shares;
    size_t n_calls;      /* calls that are arriving or not answered */
    size_t bodies_bytes; /* the bytes of their bodies */
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
    struct dv_rest_user *payer; /* whose share the body counts for; NULL: that of unknown clients */
    DV_VEC(struct dv_rest_field) fields; /* fields of the answer; in the arena */
    uint64_t id;
    uint64_t start_ns;
    bool has_header; /* the request's header is complete */
    bool is_old;     /* HTTP/1.0 */
    bool is_handed;
    struct dv_task task; /* tells a stream's end that is known at once */
    unsigned status;
    char peer[DV_REST_PEER_BYTES];

    struct dv_rest_stream *stream; /* NULL: not begun */
    struct dv_buf unsent;
    size_t unsent_at; /* everything before it has been sent */
    uint64_t sent_bytes;
    bool is_finished; /* no more will be sent */
    bool wants_room;  /* something was sent since `room` ran */
};

/* ---- rest_server.c ---- */

/* Runs libmicrohttpd later in this turn. */
void dv_rest_server_run_later(struct dv_rest_server *server);
/* Checks later whether a closing server is done. */
void dv_rest_server_check_closed(struct dv_rest_server *server);
void dv_rest_server_complain(struct dv_rest_server *server, const char *peer,
                             const struct dv_err *err);

/* ---- listen.c ---- */

/* Opens a socket that listens at the address. */
DV_CHECKED bool dv_rest_listen(dv_str address, int *fd, struct dv_err *err);
/* DV_INVALID_ARGUMENT: `fd` is no listening socket. */
DV_CHECKED bool dv_rest_listen_check(int fd, struct dv_err *err);
uint16_t dv_rest_listen_port(int fd);
void dv_rest_address_print(const struct sockaddr *address, char text[DV_REST_PEER_BYTES]);

/* ---- peer.c ---- */

/* Finds the origin of a connection. *diag_fd is opened when it is needed. */
void dv_rest_origin_find(int *diag_fd, int fd, const struct sockaddr *peer,
                         struct dv_rest_origin *origin);

/* ---- shares.c ---- */

void dv_rest_shares_init(struct dv_rest_shares *shares);
void dv_rest_shares_fini(struct dv_rest_shares *shares);
/* Gives the connection a place, perhaps that of another one. DV_RESOURCE_EXHAUSTED: there is
 * none. */
DV_CHECKED bool dv_rest_shares_join(struct dv_rest_conn *conn, const struct sockaddr *address,
                                    struct dv_err *err);
void dv_rest_shares_leave(struct dv_rest_conn *conn); /* a second call does nothing */
/* The process has no descriptor for the next connection: ends a connection that does nothing. */
void dv_rest_shares_spare_descriptor(struct dv_rest_server *server);
/* Whether so many more bytes of the body fit into the sender's share; they then count until the
 * call gives them back. */
DV_CHECKED bool dv_rest_shares_take_body(struct dv_rest_call *call, size_t n_bytes);
void dv_rest_shares_give_body_back(struct dv_rest_call *call);
void dv_rest_server_count(struct dv_rest_server *server, enum dv_rest_drop drop);

/* ---- rest_conn.c ---- */

void dv_rest_conn_accept(void *server, unsigned events);  /* handles listen_poll */
void dv_rest_conn_hangups(void *server, unsigned events); /* handles hangup_poll */
struct dv_rest_conn *dv_rest_conn_of(struct MHD_Connection *mhd);
/* Called by libmicrohttpd when a connection is there or gone, and when a request is over. */
void dv_rest_conn_changed(void *server, struct MHD_Connection *mhd, void **ctx,
                          enum MHD_ConnectionNotificationCode change);
void dv_rest_conn_completed(void *server, struct MHD_Connection *mhd, void **ctx,
                            enum MHD_RequestTerminationCode how);
/* Watches the socket for the client's end and, during a handshake, for what it sends. */
DV_CHECKED bool dv_rest_conn_watch(struct dv_rest_conn *conn, int epoll_op);
/* Ends the connection unless the client does something within this time. */
void dv_rest_conn_expect(struct dv_rest_conn *conn, uint64_t within_ms);
/* Like dv_rest_conn_expect, for the header of a request, and for the handshake before the first
 * one. */
void dv_rest_conn_expect_header(struct dv_rest_conn *conn);
void dv_rest_conn_suspend(struct dv_rest_conn *conn);
void dv_rest_conn_resume(struct dv_rest_conn *conn); /* nothing happens unless it is suspended */
/* Ends the connection soon; the first reason counts. */
void dv_rest_conn_break(struct dv_rest_conn *conn, enum dv_code code, const char *text);
bool dv_rest_conn_is_breaking(const struct dv_rest_conn *conn);

/* ---- rest_call.c ---- */

/* Called by libmicrohttpd with the first line of a request, and with everything that follows it. */
void *dv_rest_call_begin(void *server, const char *target, struct MHD_Connection *mhd);
enum MHD_Result dv_rest_call_access(void *server, struct MHD_Connection *mhd, const char *url,
                                    const char *method, const char *version, const char *bytes,
                                    size_t *n_bytes, void **ctx);
/* The connection is done with the call: tells its stream, or frees it unless a handler has it. err
 * is NULL when the answer of a stream is complete. */
void dv_rest_call_detach(struct dv_rest_call *call, const struct dv_err *err);
/* Keeps the answer until libmicrohttpd asks for it. Takes the reference. */
void dv_rest_call_set_answer(struct dv_rest_call *call, unsigned status,
                             struct MHD_Response *answer, size_t n_bytes);
void dv_rest_call_free(struct dv_rest_call *call);
void dv_rest_call_log_end(const struct dv_rest_call *call, uint64_t n_bytes,
                          const struct dv_err *err);

/* Returns a number for a call or a fetch that is unique in the process, from 1 on. */
uint64_t dv_rest_next_id(void);
/* Whether the text can be a method or the name of a field (fetch_request.c). */
bool dv_rest_is_token(dv_str text);
/* Whether the text can be in a header field, which has no control characters. */
bool dv_rest_is_sendable(dv_str text);

/* ---- header.c ---- */

/* Why a request is not handed to the handler. */
struct dv_rest_refusal {
    unsigned status; /* 0: the request is handed on */
    struct dv_err err;
    bool is_body_unwanted; /* the body must not be read to its end */
    bool closes;           /* it is not known where the next request begins */
};

/* Takes the fields and the method of a request whose header is complete, and checks them. */
void dv_rest_header_take(struct dv_rest_call *call, const char *method, const char *version,
                         struct dv_rest_refusal *refusal);
void dv_rest_header_too_large(const struct dv_rest_call *call, struct dv_rest_refusal *refusal);

/* ---- rest_stream.c ---- */

void dv_rest_stream_end(struct dv_rest_call *call, const struct dv_err *err);

#endif

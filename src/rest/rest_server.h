/* rest_server.h - what the files of this module share: servers, connections, calls.
 *
 * A server has an epoll of its own, edge-triggered, in which a connection's socket is once and for
 * all; what is known of it is kept in flags. A connection that has something to do is run: from
 * there everything happens to it, and there it ends. Whatever is asked of it at another time is
 * noted, and it is run later in the turn:
 *
 *     accept -> handshake -> IDLE -> ARRIVING -> HANDED -> ANSWERING ----> IDLE, or LEAVING
 *                                        |          `----> STREAMING ----> IDLE, or LEAVING
 *                                        |          `----> TUNNELLED ----> LEAVING
 *                                        `-> REFUSED ----> ANSWERING
 *
 * That is HTTP/1.1; rest_http2.c has many requests at once. While a handler has the call, nothing
 * more is read, so that a client which does not listen is not listened to either; the kernel still
 * tells when it is gone. */
#ifndef DV_REST_SERVER_H
#define DV_REST_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "http1/http1.h"
#include "http2/http2_server.h"
#include "loop/loop.h"
#include "rest/rest.h"

struct dv_rest_creds;
struct dv_rest_exchange;
struct dv_rest_peer;
struct dv_rest_session;
struct dv_rest_user;

/* The limit for a handshake, and for the header of a request from its first byte on: as long as the
 * slowest honest client needs on a loaded machine. */
#define DV_REST_HEADER_MS 10000u
/* So much of a refused request is still read and dropped before it is answered, because most
 * clients send everything before they listen. A client that sends more is cut off. */
#define DV_REST_DISCARD_BYTES_MAX (16u * 1024u * 1024u)
/* A client that takes an answer more slowly than this counts as stuck. */
#define DV_REST_ANSWER_BYTES_PER_MS 16u
/* Room for "[ffff:...:255.255.255.255]:65535" and the NUL. */
#define DV_REST_PEER_BYTES 56u
/* So much is read from a socket at once. */
#define DV_REST_READ_BYTES (64u * 1024u)

enum dv_rest_phase {
    DV_REST_IDLE,     /* no request, or nothing but the beginning of its first line */
    DV_REST_ARRIVING, /* its header or body is not complete */
    /* There is no call; the rest of the request is dropped, then it is answered. */
    DV_REST_REFUSED,
    /* The last answer has gone out before the client had sent everything: what it still sends is
     * dropped for a while, because the kernel would take the answer back from one that sends to a
     * closed socket. */
    DV_REST_LEAVING,
    DV_REST_HANDED,    /* the handler has the call */
    DV_REST_ANSWERING, /* there is no call; the answer goes out */
    DV_REST_STREAMING, /* the answer goes out piece by piece */
    DV_REST_TUNNELLED, /* it speaks another protocol */
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

/* Bytes that wait for the kernel to take them. */
struct dv_rest_piece {
    struct dv_link link;
    struct dv_buf bytes;
    size_t at; /* everything before it has been taken */
};

struct dv_rest_conn {
    struct dv_rest_server *server;
    struct dv_link link;
    struct dv_link ready_link; /* in the list of those that are run next */
    int fd;
    /* As far as the kernel has told, or a read or a write has not found out otherwise. */
    bool is_readable;
    bool is_writable;
    bool is_hung_up; /* the client has closed its side; there may be bytes before its end */
    bool has_ended;  /* its end was read, or the connection is broken */
    bool has_spoken; /* something has come from the client */
    bool is_cut_off; /* the answer goes out before the request has been read to its end */
    enum dv_rest_phase phase;
    struct dv_h1 h1;
    struct dv_buf in; /* what was read and is not looked at yet */
    size_t in_at;
    struct dv_list out; /* struct dv_rest_piece */
    struct dv_rest_call *call;
    struct dv_rest_piece *refusal; /* waits for the end of the request */
    size_t discarded_bytes;        /* of a refused request's body, or of one that leaves */
    struct dv_h2_server *h2;       /* NULL: it speaks HTTP/1.1 */
    struct dv_h2_server_handler h2_handler;
    struct dv_list ready_exchanges; /* those that have something to send */
    size_t n_exchanges;
    size_t n_waiting;            /* those whose call a handler has */
    struct dv_rest_peer *from;   /* NULL: it is not counted yet */
    struct dv_link unknown_link; /* in the list of connections without a known user */
    struct dv_rest_user *user;   /* NULL: the user is not known */
    struct dv_rest_session *tls; /* NULL: plain */
    bool is_shaking;             /* the TLS handshake is not done */
    struct dv_timer timer;
    struct dv_err reason; /* why the connection is being ended; code DV_OK: it is not */
    char peer[DV_REST_PEER_BYTES];
};

struct dv_rest_server {
    struct dv_loop *loop;
    struct dv_rest_server_options options; /* no zeros */
    int listen_fd;                         /* negative: closed */
    struct dv_poll *listen_poll;
    struct dv_timer accept_timer; /* set while accepting pauses */
    int epoll_fd;                 /* of all connections */
    struct dv_poll *epoll_poll;
    struct dv_list ready; /* connections to run */
    struct dv_task run_task;
    struct dv_rest_conn *running; /* NULL: none is being run */
    char *read_buffer;            /* DV_REST_READ_BYTES, for all connections */
    struct dv_rest_creds *creds;  /* for new connections; NULL: plain HTTP */
    struct dv_list shakes;        /* sessions whose handshakes wait for a worker */
    size_t n_shaking;             /* those that a worker has */
    struct dv_list conns;
    size_t n_conns;
    struct dv_rest_shares shares;
    size_t n_calls;       /* calls that are arriving or not answered */
    size_t bodies_bytes;  /* the bytes of their bodies */
    int64_t date_seconds; /* what `date` shows */
    char date[DV_H1_DATE_BYTES];
    bool is_closing;
    struct dv_timer grace_timer;
    struct dv_task close_task;
    dv_closed_fn *closed;
    void *closed_ctx;
    char name[];
};

struct dv_rest_call {
    struct dv_rest_server *server;
    struct dv_rest_conn *conn;         /* NULL once the client cannot be answered */
    struct dv_rest_exchange *exchange; /* NULL: HTTP/1.1, or as `conn` */
    struct dv_arena *arena;
    struct dv_rest_request request;
    struct dv_buf body;
    struct dv_rest_user *payer; /* whose share the body counts for; NULL: that of unknown clients */
    DV_VEC(struct dv_h1_field) fields; /* fields of the answer; in the arena */
    uint64_t id;
    uint64_t start_ns;
    bool may_upgrade; /* the client would leave HTTP for another protocol */
    bool is_handed;
    void (*gone)(void *ctx); /* told when the client leaves; NULL: nobody is */
    void *gone_ctx;
    struct dv_task task; /* tells a stream's end that is known at once */
    unsigned status;
    char peer[DV_REST_PEER_BYTES];

    struct dv_rest_stream *stream; /* NULL: not begun */
    enum dv_h1_framing framing;    /* of a stream */
    struct dv_buf unsent;
    size_t unsent_at; /* everything before it has been sent */
    uint64_t sent_bytes;
    bool is_finished;              /* no more will be sent */
    struct dv_rest_tunnel *tunnel; /* NULL: none */
    bool is_paused;                /* the tunnel does not want to receive */
    bool wants_room;               /* something was sent since `room` ran */
};

/* ---- rest_server.c ---- */

/* Checks later whether a closing server is done. */
void dv_rest_server_check_closed(struct dv_rest_server *server);
void dv_rest_server_complain(struct dv_rest_server *server, const char *peer,
                             const struct dv_err *err);
/* Returns the time for the field Date. */
dv_str dv_rest_server_date(struct dv_rest_server *server);

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

void dv_rest_conn_accept(void *server, unsigned events); /* handles listen_poll */
void dv_rest_conn_events(void *server, unsigned events); /* handles epoll_poll */
/* Runs the connection later in this turn, unless it is being run now. */
void dv_rest_conn_run_later(struct dv_rest_conn *conn);
/* Runs the connection in the next turn, because others want their turn, too. */
void dv_rest_conn_run_next_turn(struct dv_rest_conn *conn);
/* Ends the connection unless the client does something within this time. */
void dv_rest_conn_expect(struct dv_rest_conn *conn, uint64_t within_ms);
/* Like dv_rest_conn_expect, for the header of a request, and for the handshake before the first
 * one. */
void dv_rest_conn_expect_header(struct dv_rest_conn *conn);
/* Like dv_rest_conn_expect, for the next request. */
void dv_rest_conn_expect_request(struct dv_rest_conn *conn);
/* Ends the connection soon; the first reason counts. */
void dv_rest_conn_break(struct dv_rest_conn *conn, enum dv_code code, const char *text);
bool dv_rest_conn_is_breaking(const struct dv_rest_conn *conn);

/* ---- rest_io.c ---- */

/* Reads at most n bytes. 0: there are none for now, or the connection has ended (has_ended). */
size_t dv_rest_io_read(struct dv_rest_conn *conn, char *to, size_t n);
/* Gives the kernel what waits, as far as it takes it. Returns how many bytes it took; a connection
 * that is broken is being ended. */
size_t dv_rest_io_flush(struct dv_rest_conn *conn);
bool dv_rest_io_has_output(const struct dv_rest_conn *conn);
struct dv_rest_piece *dv_rest_piece_new(void);
void dv_rest_piece_free(struct dv_rest_piece *piece);                         /* NULL is fine */
void dv_rest_io_send(struct dv_rest_conn *conn, struct dv_rest_piece *piece); /* takes it */
/* Tells the client that nothing more will come. */
void dv_rest_io_shut_down(struct dv_rest_conn *conn);
void dv_rest_io_close(struct dv_rest_conn *conn);

/* ---- rest_http1.c ---- */

/* Does what there is to do on a connection that speaks HTTP/1.1. */
void dv_rest_http1_run(struct dv_rest_conn *conn);
/* Answers the call that the handler has: takes the body and leaves it empty. */
void dv_rest_http1_answer(struct dv_rest_call *call, struct dv_buf *body);
/* To be called when the connection is ending: lets go of its call. */
void dv_rest_http1_end(struct dv_rest_conn *conn);

/* To be called when the answer has gone out, or the tunnel has ended. */
void dv_rest_http1_complete(struct dv_rest_conn *conn);

/* ---- rest_tunnel.c ---- */

/* Does the next thing for a connection that has left HTTP. False: there is nothing for now. */
bool dv_rest_tunnel_step(struct dv_rest_conn *conn);
void dv_rest_tunnel_end(struct dv_rest_call *call, const struct dv_err *err);

/* ---- rest_http2.c ---- */

void dv_rest_http2_begin(struct dv_rest_conn *conn);
/* Does what there is to do on a connection that speaks HTTP/2. */
void dv_rest_http2_run(struct dv_rest_conn *conn);
/* Answers the call that the handler has: takes the body and leaves it empty. */
void dv_rest_http2_answer(struct dv_rest_call *call, struct dv_buf *body);
/* Takes no more requests; those that are there may be answered. */
void dv_rest_http2_close(struct dv_rest_conn *conn);
/* To be called when the connection is ending: lets go of its calls. */
void dv_rest_http2_end(struct dv_rest_conn *conn);

/* To be called when the exchange's stream has something to send, or has to look whether there
 * is. */
void dv_rest_exchange_run_later(struct dv_rest_exchange *exchange);
/* Breaks the exchange off; the first reason counts. */
void dv_rest_exchange_reset(struct dv_rest_exchange *exchange, enum dv_code code, const char *text);
bool dv_rest_exchange_is_reset(const struct dv_rest_exchange *exchange);
/* To be called when the exchange's call is being freed. */
void dv_rest_exchange_lose_call(struct dv_rest_exchange *exchange);

/* ---- rest_call.c ---- */

/* Makes a call of a request whose header is complete; header.c fills it. */
struct dv_rest_call *dv_rest_call_new(struct dv_rest_conn *conn);
/* Why a request is not handed to the handler. */
struct dv_rest_refusal {
    unsigned status; /* 0: the request is handed on */
    struct dv_err err;
    bool is_body_unwanted; /* the body must not be read to its end */
    bool closes;           /* it is not known where the next request begins */
};

/* Logs the beginning of a call whose header is good, and tells `arriving` if a body follows. */
void dv_rest_call_begin(struct dv_rest_call *call, bool has_body);
/* Adds bytes to the request's body. False: they are refused. */
DV_CHECKED bool dv_rest_call_add_body(struct dv_rest_call *call, dv_str bytes,
                                      struct dv_rest_refusal *refusal);
/* Gives the complete request to the handler, which may answer at once. */
void dv_rest_call_hand_over(struct dv_rest_call *call);
/* The connection is done with the call: tells its stream, or frees it unless a handler has it. err
 * is NULL when the answer of a stream is complete. */
void dv_rest_call_detach(struct dv_rest_call *call, const struct dv_err *err);
void dv_rest_call_free(struct dv_rest_call *call);
void dv_rest_call_log_end(const struct dv_rest_call *call, uint64_t n_bytes,
                          const struct dv_err *err);
/* Whether there is nobody to answer any more. */
bool dv_rest_call_is_lost(const struct dv_rest_call *call);
/* The call's stream has something to send, or has ended. */
void dv_rest_call_run_later(struct dv_rest_call *call);
/* Begins the answer, if there is still somebody to answer. Takes the body and leaves it empty. */
void dv_rest_call_answer(struct dv_rest_call *call, unsigned status, struct dv_buf *body);
/* Prints the body of an answer that refuses a request; returns its content type. */
const char *dv_rest_refusal_print(const struct dv_rest_server *server,
                                  const struct dv_rest_refusal *refusal, struct dv_buf *body);

/* Returns a number for a call or a fetch that is unique in the process, from 1 on. */
uint64_t dv_rest_next_id(void);
/* Whether the text can be in a header field, which has no control characters. */
bool dv_rest_is_sendable(dv_str text);

/* ---- header.c ---- */

/* Takes the request's line and fields into the call's arena, and checks them. */
void dv_rest_header_take(struct dv_rest_call *call, const struct dv_h1_head *head,
                         struct dv_rest_refusal *refusal);
void dv_rest_header_take_http2(struct dv_rest_call *call, const struct dv_h2_http_request *received,
                               struct dv_rest_refusal *refusal);
void dv_rest_header_too_large(const struct dv_rest_server *server, struct dv_rest_refusal *refusal);

/* ---- rest_stream.c ---- */

/* Queues a copy of the bytes, for a stream or a tunnel; NULL: there is none any more. */
DV_CHECKED bool dv_rest_call_send(struct dv_rest_call *call, dv_str bytes, struct dv_err *err);
size_t dv_rest_call_unsent_bytes(const struct dv_rest_call *call);
void dv_rest_stream_end(struct dv_rest_call *call, const struct dv_err *err);
/* Asks the producer for more when little is left. The stream, its call or the connection may be
 * ending afterwards. */
void dv_rest_stream_ask(struct dv_rest_call *call);
/* Returns the next bytes, borrowed until the stream is next used; empty when there are none. They
 * count as sent. */
dv_str dv_rest_stream_take(struct dv_rest_call *call);

#endif

/* grpc.h - gRPC over Unix sockets on the loop: channels and calls, servers and their calls.
 *
 * Every call, of ours or to us, has an id that is unique in the process and stands in the log at
 * its start and at its end. Messages are bytes here; module pb knows what is in them. */
#ifndef DV_GRPC_H
#define DV_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "http2/http2.h"
#include "loop/loop.h"

struct dv_arena;
struct dv_conn;

/* ---- observers: who is told of all that channels and servers send and receive ---- */

enum dv_grpc_event_kind {
    DV_GRPC_CONNECTED,      /* a socket is connected, by us or by the peer */
    DV_GRPC_CONNECT_FAILED, /* `status` says why; the next attempt may come */
    DV_GRPC_DISCONNECTED,   /* `status` says why */
    DV_GRPC_CALL,           /* a call begins; the message is our request, or follows */
    DV_GRPC_MESSAGE,
    DV_GRPC_END,     /* of a call; `status` says how */
    DV_GRPC_REFUSED, /* a server refused something that a peer did; `status` says what */
};

/* What an observer is told; all of it is borrowed. */
struct dv_grpc_event {
    enum dv_grpc_event_kind kind;
    bool is_served;      /* the peer calls us; otherwise we call the peer */
    bool is_sent;        /* the message goes out */
    dv_str name;         /* of the channel or the server */
    dv_str path;         /* of the socket */
    uint64_t connection; /* unique in the process; 0: none */
    uint64_t call;       /* the call's id; 0: none */
    dv_str method;
    struct dv_peer peer; /* pid 0: not known */
    uint64_t timeout_ms; /* of a call; DV_NO_DEADLINE: none */
    unsigned n_tries;    /* DV_GRPC_END: on how many connections it was begun */
    dv_str pod_uid;      /* DV_GRPC_CALL: what it is made for; or empty */
    dv_str container;
    dv_str message;
    const struct dv_err *status; /* NULL: DV_OK */
};

/* An observer outlives the channels and servers that have it, and must return at once: it is called
 * from within everything. It may not call anything of this header. */
struct dv_grpc_observer {
    void (*event)(struct dv_grpc_observer *observer, const struct dv_grpc_event *event);
};

/* ---- channels: calls to a peer ---- */

enum dv_channel_state {
    DV_CHANNEL_CONNECTING,
    DV_CHANNEL_READY,
    DV_CHANNEL_FAILING, /* the last attempt failed; the next one comes after a back-off */
    DV_CHANNEL_LOST,    /* connects_once: it will not be tried again */
};

struct ProtobufCMessage;
struct dv_channel;

struct dv_channel_options {
    dv_str name;              /* names the peer in the log */
    size_t message_bytes_max; /* limit of a received message; 0: the default of 16 MiB */
    bool connects_once;       /* the first failure or loss is final */
    /* The first pause between attempts to connect, and the longest; 0: those of gRPC. */
    uint64_t backoff_first_ms;
    uint64_t backoff_max_ms;
    /* Whether we may talk to the process that listens; false sets `err`, and the attempt has
     * failed. May be NULL. */
    bool (*allows)(void *ctx, const struct dv_stream *stream, struct dv_err *err);
    /* Runs after every change of state, never from within a function of this header. May be
     * NULL. */
    void (*changed)(void *ctx, enum dv_channel_state state, const struct dv_err *err);
    void *ctx;
    struct dv_grpc_observer *observer; /* may be NULL */
};

/* Begins to connect to the socket at `path`, again and again with growing pauses (1 s unless told
 * otherwise, then 1.6 times longer each, at most 120 s, give or take a fifth). A connection counts
 * once the peer has sent its settings, for which it has 20 s. DV_INVALID_ARGUMENT: the path is no
 * socket address. */
struct dv_channel *dv_channel_open(struct dv_loop *loop, dv_str path,
                                   const struct dv_channel_options *options, struct dv_err *err);
/* Closes the channel. Running calls end with DV_CANCELLED before `closed` runs, which may be
 * NULL. */
void dv_channel_close(struct dv_channel *channel, dv_closed_fn *closed, void *ctx);
enum dv_channel_state dv_channel_state(const struct dv_channel *channel);
/* Tries to connect now, if the channel waits for the end of a back-off. */
void dv_channel_retry_now(struct dv_channel *channel);

#define DV_NO_DEADLINE UINT64_MAX

/* Encodes a generated message for a call; the caller has one reference. */
struct dv_h2_msg *dv_grpc_encode(const struct ProtobufCMessage *message);

/* One call. It is embedded in what waits for it, zeroed, then filled in, and lent to the channel
 * until `done` has run. */
struct dv_call {
    const char *method; /* "/package.Service/Method"; lives as long as the call */
    /* A response has arrived, borrowed; at most one unless is_stream. May be NULL. */
    void (*message)(struct dv_call *call, dv_str message);
    /* The call has ended; runs exactly once. err is NULL when the peer said OK and, unless
     * is_stream, sent one message. */
    void (*done)(struct dv_call *call, const struct dv_err *err);
    uint64_t deadline_ms; /* on the loop's clock; DV_NO_DEADLINE for streams that watch */
    bool is_stream;
    /* While the peer cannot be reached, wait instead of failing with DV_UNAVAILABLE. */
    bool waits_for_ready;
    /* What the call is made for, for the observer; may be empty, and live as long as the call. */
    dv_str pod_uid;
    dv_str container;
    struct {
        struct dv_channel *channel;
        struct dv_conn *conn;       /* NULL while the call waits for one */
        struct dv_h2_call *h2_call; /* the call on that connection */
        struct dv_h2_msg *request;
        struct dv_link link; /* in the channel's waiting calls */
        struct dv_timer deadline;
        struct dv_task task; /* reports an end that is known at once */
        struct dv_err end;   /* how we ended it; code DV_OK: we did not */
        uint64_t id;
        uint64_t start_ns;
        uint64_t connection; /* the last one that it was begun on, for the observer */
        unsigned n_tries;
        bool is_running;
    } priv;
};

/* Starts the call and takes the reference to `request`. */
void dv_call_start(struct dv_channel *channel, struct dv_call *call, struct dv_h2_msg *request);
/* Cancels the call: `done` still runs, with DV_CANCELLED. Does nothing once `done` has run. */
void dv_call_cancel(struct dv_call *call);

/* ---- servers: calls to us ---- */

struct dv_server;
struct dv_server_call;

struct dv_method {
    const char *path; /* "/package.Service/Method" */
    /* Handles a call, which must be finished, now or later, also after it was cancelled. */
    void (*handle)(void *ctx, struct dv_server_call *call, dv_str request);
};

struct dv_service {
    const struct dv_method *methods;
    size_t n_methods;
    void *ctx; /* is passed to its handlers */
};

struct dv_server_options {
    dv_str name; /* names the server in the log */
    mode_t mode; /* mode of the socket file */
    const struct dv_service *services;
    size_t n_services;
    size_t message_bytes_max; /* limit of a received message; 0: the default of 16 MiB */
    size_t connections_max;   /* 0: 1024, or an eighth of the process's descriptors */
    /* Whether the process that connects may do so; false sets `err`, and the connection is closed.
     * May be NULL. */
    bool (*allows)(void *ctx, const struct dv_stream *stream, struct dv_err *err);
    /* Whether the caller may use the method of that path, asked for every call before its handler
     * is; false sets `err`, with which the call ends. NULL: all who may connect may. */
    bool (*allows_call)(void *ctx, const struct dv_server_call *call, const char *path,
                        struct dv_err *err);
    /* A peer did something that was refused, or broke the protocol. Meant for the log, and called
     * no more often than a log can stand. May be NULL. */
    void (*complaint)(void *ctx, const struct dv_peer *peer, const struct dv_err *err);
    /* Set if the server has to make its socket anew when the file was removed or another one took
     * its place, and to tell so. err is NULL when the file has been made anew; otherwise nobody can
     * connect, and it is tried again until it works. With NULL nothing is looked after. */
    void (*remade)(void *ctx, const struct dv_err *err);
    void *ctx;
    struct dv_grpc_observer *observer; /* may be NULL */
};

/* Opens the server. `options` and the services are copied, the methods are borrowed. */
struct dv_server *dv_server_open(struct dv_loop *loop, dv_str path,
                                 const struct dv_server_options *options, struct dv_err *err);
/* Takes no more connections and calls, lets running calls finish for grace_ms, then cancels them.
 * `closed` runs when the last call has been finished by its handler; it may be NULL. */
void dv_server_close(struct dv_server *server, uint64_t grace_ms, dv_closed_fn *closed, void *ctx);
size_t dv_server_n_connections(const struct dv_server *server);

/* Sends the one answer of a unary call and ends it with DV_OK. Takes the reference to `msg`; the
 * call is freed. */
void dv_server_call_reply(struct dv_server_call *call, struct dv_h2_msg *msg);
/* Sends one of many answers; keeps a reference of its own. DV_CANCELLED: the client is gone.
 * DV_RESOURCE_EXHAUSTED: the client does not read. */
DV_CHECKED bool dv_server_call_send(struct dv_server_call *call, struct dv_h2_msg *msg,
                                    struct dv_err *err);
/* Ends the call, with DV_OK when err is NULL; the call is freed. */
void dv_server_call_finish(struct dv_server_call *call, const struct dv_err *err);

/* `cancelled` runs once if the client gives up, its deadline passes, or the server closes, before
 * the call is finished. The handler must still finish it. */
void dv_server_call_on_cancel(struct dv_server_call *call,
                              void (*cancelled)(void *ctx, struct dv_server_call *call), void *ctx);
/* `drained` runs whenever all that was sent has gone out: the moment to send more. */
void dv_server_call_on_drained(struct dv_server_call *call,
                               void (*drained)(void *ctx, struct dv_server_call *call), void *ctx);
bool dv_server_call_is_cancelled(const struct dv_server_call *call);

/* Returns memory that lives as long as the call. */
struct dv_arena *dv_server_call_arena(struct dv_server_call *call);
uint64_t dv_server_call_id(const struct dv_server_call *call);
struct dv_peer dv_server_call_peer(const struct dv_server_call *call);
/* Returns the connection that the call came by; NULL once that is gone. */
const struct dv_stream *dv_server_call_stream(const struct dv_server_call *call);
/* Returns the deadline on the loop's clock; DV_NO_DEADLINE when the client set none. */
uint64_t dv_server_call_deadline_ms(const struct dv_server_call *call);
size_t dv_server_call_unsent_bytes(const struct dv_server_call *call);

#endif

/* grpc_server.h - a server and its connections, as grpc_server.c keeps them and grpc_server_call.c
 * needs them for the calls on them. */
#ifndef DV_GRPC_SERVER_H
#define DV_GRPC_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_places.h"
#include "http2/http2.h"
#include "loop/loop.h"

struct dv_err;

struct dv_server_conn {
    struct dv_conn conn;
    struct dv_h2_handler handler;
    struct dv_server *server;
    struct dv_link link;
    struct dv_place place;
    struct dv_peer peer;
    uint64_t id; /* for the observer; 0: there is none */
    struct dv_timer handshake_timer;
};

struct dv_bound_method {
    const struct dv_method *method;
    void *ctx;
};

/* The file of the server's socket, where it is looked after. */
struct dv_server_file {
    struct dv_watch *watch; /* on the directory; NULL: the file is looked at now and then */
    struct dv_timer timer;  /* the next attempt, or the next look */
    uint64_t retry_ms;
    uint64_t remade_ms; /* when it was made anew; 0: never */
    mode_t dir_mode;
};

struct dv_server {
    struct dv_loop *loop;
    struct dv_server_options options;
    struct dv_listener *listener;
    struct dv_listener_handler listener_handler;
    struct dv_map methods; /* bound_method by path */
    struct dv_bound_method *bound;
    struct dv_server_file file;
    struct dv_list conns;
    size_t n_conns; /* including those that are being closed */
    struct dv_places places;
    size_t n_calls; /* calls that a handler has not finished */
    uint64_t complaints_since_ms;
    unsigned n_complaints;
    struct dv_timer grace_timer;
    struct dv_task close_task;
    bool is_listening;
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
    dv_str path;
    char text[]; /* the texts of name and path */
};

/* Tells the server's observer, which is not NULL, about the connection, or about the peer alone. */
void dv_server_observe(const struct dv_server *server, const struct dv_server_conn *sc,
                       struct dv_grpc_event *event);

/* Tells the log and the server's owner what a peer did wrong, no more often than a log can
 * stand. */
void dv_server_complain(struct dv_server *server, const struct dv_peer *peer,
                        const struct dv_err *err);
/* Looks after the file of the socket from now on, until the watch is closed. */
void dv_server_watch_file(struct dv_server *server);
void dv_server_unwatch_file(struct dv_server *server);
/* A call or a connection has gone, and a server that is being closed may have waited for it. */
void dv_server_check_closed(struct dv_server *server);
/* Sets the functions of the handler that are about calls. */
void dv_server_handle_calls(struct dv_h2_handler *handler);

#endif

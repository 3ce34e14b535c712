/* serve_socket.h - a Unix socket with one gRPC service: who may call is the policy's to say, and
 * peers that misbehave are told of in the log. */
#ifndef DV_SERVE_SOCKET_H
#define DV_SERVE_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/defs.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_err;
struct dv_node;
struct dv_server;
struct dv_service;

/* Embedded first in the server whose it is; zeroed to begin with. */
struct dv_serve_socket {
    const struct dv_node *node;
    dv_str name; /* in policies and in the log; outlives it */
    struct dv_server *server;
    void (*free_owner)(struct dv_serve_socket *socket); /* when all has ended */
    dv_closed_fn *closed;
    void *closed_ctx;
};

struct dv_serve_socket_options {
    dv_str server_name; /* in metrics */
    mode_t mode;
    const struct dv_service *service;
    size_t message_bytes_max;
};

DV_CHECKED bool dv_serve_socket_open(struct dv_serve_socket *socket, dv_str path,
                                     const struct dv_serve_socket_options *options,
                                     struct dv_err *err);
/* Calls that are under way have `grace_ms`. Frees the owner, then calls `closed` (may be NULL). */
void dv_serve_socket_close(struct dv_serve_socket *socket, uint64_t grace_ms, dv_closed_fn *closed,
                           void *ctx);

#endif

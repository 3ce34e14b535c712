/* serve_socket.h - a Unix socket with one gRPC service. The policy decides who may call, and the
 * log tells of peers that misbehave. */
#ifndef DV_SERVE_SOCKET_H
#define DV_SERVE_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"
#include "serve/health.h"

struct dv_err;
struct dv_node;
struct dv_server;
struct dv_server_call;
struct dv_service;

/* The socket of a server; it must be the first field of the server's struct, and zeroed at
 * first. */
struct dv_serve_socket {
    const struct dv_node *node;
    dv_str name;              /* its name in policies and in the log; must outlive it */
    enum dv_health_part part; /* what is in trouble when its file cannot be made anew */
    struct dv_server *server;
    bool has_group; /* the socket file is given to this group */
    gid_t group;
    mode_t mode;
    char path[DV_SOCKET_PATH_MAX + 1];
    void (*free_owner)(struct dv_serve_socket *socket); /* runs when all has ended */
    dv_closed_fn *closed;
    void *closed_ctx;
};

struct dv_serve_socket_options {
    dv_str server_name; /* its name in metrics */
    mode_t mode;
    const struct dv_service *service;
    size_t message_bytes_max;
    bool has_group; /* the socket file is given to this group */
    gid_t group;
    /* Whether the caller may use the method of that path; NULL: all may. */
    bool (*allows_call)(void *ctx, const struct dv_server_call *call, const char *path,
                        struct dv_err *err);
};

DV_CHECKED bool dv_serve_socket_open(struct dv_serve_socket *socket, dv_str path,
                                     const struct dv_serve_socket_options *options,
                                     struct dv_err *err);
/* Lets running calls finish for `grace_ms`. Frees the owner, then calls `closed` (may be NULL). */
void dv_serve_socket_close(struct dv_serve_socket *socket, uint64_t grace_ms, dv_closed_fn *closed,
                           void *ctx);

#endif

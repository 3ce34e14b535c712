/* socket.h - a gRPC server on a socket file that is kept there: when the file vanishes (a kubelet
 * that starts removes all sockets from device-plugins/), the server is made anew. */
#ifndef DV_LIB_SOCKET_H
#define DV_LIB_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "lib/common/dir.h"
#include "loop/loop.h"

struct dv_err;
struct dv_lib_parts;
struct dv_server;
struct dv_service;

struct dv_lib_socket_options {
    dv_str path;                       /* borrowed */
    dv_str own_dir;                    /* made when it is not there, borrowed; empty: another's */
    const struct dv_service *services; /* borrowed, with their methods */
    size_t n_services;
    void (*serving)(void *ctx);
    /* Called when the file is gone, and the server with it: streams on it have to be ended now,
     * other calls may still be finished. The next server comes by itself. */
    void (*lost)(void *ctx, const struct dv_err *err);
    void (*failed)(void *ctx, const struct dv_err *err, uint64_t retry_ms);
    void *ctx;
};

struct dv_lib_socket {
    struct dv_lib_parts *parts;
    struct dv_lib_socket_options options;
    struct dv_server *server; /* NULL: waits for the timer */
    struct dv_lib_file file;  /* that it made */
    uint64_t since_ms;        /* that it serves */
    uint64_t backoff_ms;
    struct dv_timer timer;
};

/* Begins to serve in the next turn. */
void dv_lib_socket_open(struct dv_lib_socket *socket, struct dv_lib_parts *parts,
                        const struct dv_lib_socket_options *options);
/* To be called when something happened in the socket's directory, with the name that dv_lib_dir
 * gives. */
void dv_lib_socket_check(struct dv_lib_socket *socket, dv_str name);
/* Serves on a new file, as if the old one had vanished: agents that watch the directory see it. */
void dv_lib_socket_remake(struct dv_lib_socket *socket, const struct dv_err *why);
void dv_lib_socket_close(struct dv_lib_socket *socket);

#endif

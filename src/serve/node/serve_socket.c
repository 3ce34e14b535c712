#include "serve/node/serve_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "grpc/grpc.h"
#include "plugin/guard.h"
#include "policy/policy.h"
#include "serve/health.h"
#include "serve/serve.h"

static void on_complaint(void *ctx, const struct dv_peer *peer, const struct dv_err *err)
{
    const struct dv_serve_socket *socket = ctx;

    dv_log(DV_LOG_WARN, "serve: bad peer", DV_F_STR("socket", socket->name),
           DV_F_I64("pid", peer->pid), DV_F_U64("uid", peer->uid), DV_F_CODE(err), DV_F_ERR(err));
}

static bool may_call(void *ctx, const struct dv_stream *stream, struct dv_err *err)
{
    const struct dv_serve_socket *socket = ctx;

    return dv_guard_allows(socket->node->guard, stream, DV_POLICY_CALL, socket->name, err);
}

/* Gives the file to its group, if it has one: first the group, since with the mode alone the group
 * that made the file could use it. */
static void give_to_group(const struct dv_serve_socket *socket)
{
    if (socket->has_group && (chown(socket->path, (uid_t)-1, socket->group) < 0 ||
                              chmod(socket->path, socket->mode | S_IRGRP | S_IWGRP) < 0))
        dv_log(DV_LOG_ERROR, "serve: the socket cannot be given to its group; it stays root's",
               DV_F_STR("socket", socket->name), DV_F_C("error", strerror(errno)));
}

static void on_remade(void *ctx, const struct dv_err *err)
{
    const struct dv_serve_socket *socket = ctx;

    if (!err) {
        give_to_group(socket);
        dv_log(DV_LOG_WARN, "serve: a socket was removed, and has been made anew",
               DV_F_C("path", socket->path));
    }
    dv_health_set(socket->node->health, socket->part, err);
}

bool dv_serve_socket_open(struct dv_serve_socket *socket, dv_str path,
                          const struct dv_serve_socket_options *options, struct dv_err *err)
{
    const struct dv_server_options server = {
        .name = options->server_name,
        .mode = options->mode,
        .services = options->service,
        .n_services = 1,
        .message_bytes_max = options->message_bytes_max,
        .allows = may_call,
        .allows_call = options->allows_call,
        .complaint = on_complaint,
        .remade = on_remade,
        .ctx = socket,
    };

    if (!dv_socket_path_check(path, err))
        return false;
    memcpy(socket->path, path.p, path.n);
    socket->has_group = options->has_group;
    socket->group = options->group;
    socket->mode = options->mode;
    socket->server = dv_server_open(socket->node->loop, path, &server, err);
    if (!socket->server)
        return false;
    give_to_group(socket);
    return true;
}

static void on_closed(void *ctx)
{
    struct dv_serve_socket *socket = ctx;
    /* Copied first: the socket is a part of its owner, and is freed with it. */
    dv_closed_fn *closed = socket->closed;
    void *closed_ctx = socket->closed_ctx;

    socket->free_owner(socket);
    if (closed)
        closed(closed_ctx);
}

void dv_serve_socket_close(struct dv_serve_socket *socket, uint64_t grace_ms, dv_closed_fn *closed,
                           void *ctx)
{
    socket->closed = closed;
    socket->closed_ctx = ctx;
    dv_server_close(socket->server, grace_ms, on_closed, socket);
}

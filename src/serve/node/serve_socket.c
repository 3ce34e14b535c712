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
        .ctx = socket,
    };

    char name[DV_SOCKET_PATH_MAX + 1] = "";

    if (!dv_socket_path_check(path, err))
        return false;
    memcpy(name, path.p, path.n);
    socket->server = dv_server_open(socket->node->loop, path, &server, err);
    if (!socket->server)
        return false;
    /* The group first: with the mode alone, the group that made the file could use it. */
    if (options->has_group && (chown(name, (uid_t)-1, options->group) < 0 ||
                               chmod(name, options->mode | S_IRGRP | S_IWGRP) < 0))
        dv_log(DV_LOG_ERROR, "serve: the socket cannot be given to its group; it stays root's",
               DV_F_STR("socket", socket->name), DV_F_C("error", strerror(errno)));
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

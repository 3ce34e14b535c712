#include "lib/common/socket.h"

#include <sys/stat.h>

#include "base/err.h"
#include "base/num.h"
#include "grpc/grpc.h"
#include "lib/common/lib_name.h"
#include "lib/common/parts.h"

/* The pauses between attempts to listen: a directory, or another process, may need as long to come
 * or go. */
#define BACKOFF_FIRST_MS 500u
#define BACKOFF_MAX_MS 10000u
#define BACKOFF_JITTER_PER_MILLE 200u
/* When the file stayed this long, it was not removed in a fight over the path: listen again at
 * once. */
#define GOOD_FILE_MS 1000u
/* The time for answers to go out after the file has vanished, or when the plugin closes. */
#define LOST_GRACE_MS 5000u
#define CLOSE_GRACE_MS 500u
/* What kubelets give the directories of plugins. */
#define OWN_DIR_MODE 0750

/* The most connections: agents and people who look have one each. */
#define CONNECTIONS_MAX 64u

static void on_timer(struct dv_timer *timer);

static void listen_at(struct dv_lib_socket *socket, uint64_t at_ms)
{
    dv_timer_start(&socket->timer, socket->parts->loop, at_ms, on_timer);
}

static uint64_t next_pause_ms(struct dv_lib_socket *socket)
{
    uint64_t pause_ms = dv_jitter(socket->backoff_ms, BACKOFF_JITTER_PER_MILLE);

    socket->backoff_ms = dv_u64_min(socket->backoff_ms * 2, BACKOFF_MAX_MS);
    return pause_ms;
}

static void on_timer(struct dv_timer *timer)
{
    struct dv_lib_socket *socket = DV_CONTAINER(timer, struct dv_lib_socket, timer);
    struct dv_loop *loop = socket->parts->loop;
    struct dv_server_options options = {
        .name = socket->options.path,
        .mode = 0600,
        .services = socket->options.services,
        .n_services = socket->options.n_services,
        .connections_max = CONNECTIONS_MAX,
    };
    struct dv_err err;

    /* When that fails, the path of the socket that cannot be made says enough. */
    if (socket->options.own_dir.n > 0)
        (void)mkdir(socket->options.own_dir.p, OWN_DIR_MODE);
    socket->server = dv_server_open(loop, socket->options.path, &options, &err);
    if (!socket->server) {
        uint64_t pause_ms = next_pause_ms(socket);

        listen_at(socket, dv_loop_now_ms(loop) + pause_ms);
        socket->options.failed(socket->options.ctx, &err, pause_ms);
        return;
    }
    dv_lib_parts_add(socket->parts);
    /* when the file is gone already, the next check sees it */
    (void)dv_lib_file_look(socket->options.path, &socket->file);
    socket->since_ms = dv_loop_now_ms(loop);
    socket->options.serving(socket->options.ctx);
}

void dv_lib_socket_open(struct dv_lib_socket *socket, struct dv_lib_parts *parts,
                        const struct dv_lib_socket_options *options)
{
    *socket = (struct dv_lib_socket){
        .parts = parts,
        .options = *options,
        .backoff_ms = BACKOFF_FIRST_MS,
    };
    listen_at(socket, dv_loop_now_ms(parts->loop));
}

void dv_lib_socket_remake(struct dv_lib_socket *socket, const struct dv_err *why)
{
    uint64_t now_ms = dv_loop_now_ms(socket->parts->loop);

    if (!socket->server)
        return;
    dv_server_close(socket->server, LOST_GRACE_MS, dv_lib_part_closed, socket->parts);
    socket->server = NULL;
    if (now_ms - socket->since_ms >= GOOD_FILE_MS) {
        socket->backoff_ms = BACKOFF_FIRST_MS;
        listen_at(socket, now_ms);
    } else {
        listen_at(socket, now_ms + next_pause_ms(socket));
    }
    socket->options.lost(socket->options.ctx, why);
}

void dv_lib_socket_check(struct dv_lib_socket *socket, dv_str name)
{
    bool has_event = dv_str_eq(name, dv_lib_file_name(socket->options.path));
    struct dv_lib_file file;
    struct dv_err err;

    if (!socket->server || (name.n > 0 && !has_event))
        return;
    if (!dv_lib_file_look(socket->options.path, &file))
        (void)dv_fail(&err, DV_ABORTED, "socket %.*s was removed", DV_FMT(socket->options.path));
    else if (has_event ? !dv_lib_file_is_untouched(&file, &socket->file)
                       : !dv_lib_file_is_same(&file, &socket->file))
        (void)dv_fail(&err, DV_ABORTED, "socket %.*s was replaced", DV_FMT(socket->options.path));
    else
        return;
    dv_lib_socket_remake(socket, &err);
}

void dv_lib_socket_close(struct dv_lib_socket *socket)
{
    dv_timer_cancel(&socket->timer);
    if (socket->server)
        dv_server_close(socket->server, CLOSE_GRACE_MS, dv_lib_part_closed, socket->parts);
    socket->server = NULL;
}

/* loop_stream.c - Unix sockets: streams that read into one buffer of the loop and queue what the
 * kernel does not take, listeners, and who is at the other end. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <uv.h>

#include "base/arena.h"
#include "base/err.h"
#include "loop/loop.h"
#include "loop/uvloop.h"

/* How many connections may wait to be accepted: what a kernel allows by default. */
#define LISTEN_BACKLOG 4096
/* Newer than our headers. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

struct dv_stream {
    uv_pipe_t pipe;
    struct dv_loop *loop;
    struct dv_stream_handler *handler;
    struct dv_peer peer;
    struct dv_task end_task; /* a write that failed is told later, never from within the write */
    int write_status;
    bool has_ended; /* `end` has run */
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

struct queued_write {
    uv_write_t req;
    struct dv_stream *stream;
    char bytes[];
};

bool dv_socket_path_check(dv_str path, struct dv_err *err)
{
    if (path.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "socket path is empty");
    if (path.n > DV_SOCKET_PATH_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "socket path of %zu bytes is longer than %u: %.*s",
                       path.n, DV_SOCKET_PATH_MAX, DV_FMT(path));
    if (dv_str_find_char(path, '\0') < path.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "socket path has a NUL byte: %.*s", DV_FMT(path));
    return true;
}

static struct sockaddr_un address_of(dv_str path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, path.p, path.n);
    return address;
}

/* Connects a socket to `path`; returns -1 with errno set when that fails. */
static int connect_fd(dv_str path)
{
    struct sockaddr_un address = address_of(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int status;
    int saved;

    if (fd < 0)
        return -1;
    do
        status = connect(fd, (const struct sockaddr *)&address, sizeof(address));
    while (status < 0 && errno == EINTR);
    if (status == 0)
        return fd;
    saved = errno;
    (void)close(fd); /* never connected */
    errno = saved;
    return -1;
}

/* ---- streams ---- */

static struct dv_stream *stream_alloc(struct dv_loop *loop)
{
    struct dv_stream *stream = DV_ALLOC(struct dv_stream);
    int status = uv_pipe_init(&loop->uv, &stream->pipe, 0);

    assert(status == 0); /* cannot fail on Linux */
    stream->loop = loop;
    stream->pipe.data = stream;
    return stream;
}

static struct dv_peer peer_of(int fd)
{
    struct ucred cred = {.pid = -1, .uid = (uid_t)-1, .gid = (gid_t)-1};
    socklen_t n = sizeof(cred);

    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n); /* unknown stays -1 */
    return (struct dv_peer){cred.pid, cred.uid, cred.gid};
}

static void read_peer(struct dv_stream *stream)
{
    uv_os_fd_t fd = -1;

    (void)uv_fileno((uv_handle_t *)&stream->pipe, &fd); /* none: then the peer is unknown */
    stream->peer = peer_of(fd);
}

/* Takes the connected socket `fd`, also on failure. */
static struct dv_stream *open_stream(struct dv_loop *loop, int fd, struct dv_err *err)
{
    struct dv_stream *stream = stream_alloc(loop);
    int status = uv_pipe_open(&stream->pipe, fd);

    if (status < 0) {
        (void)dv_loop_fail_uv(err, status, "open socket");
        (void)close(fd); /* not libuv's yet */
        dv_stream_close(stream, NULL, NULL);
        return NULL;
    }
    read_peer(stream);
    return stream;
}

struct dv_stream *dv_stream_connect(struct dv_loop *loop, dv_str path, struct dv_err *err)
{
    int fd;

    if (!dv_socket_path_check(path, err))
        return NULL;
    fd = connect_fd(path);
    if (fd < 0) {
        (void)dv_fail_errno(err, errno, "connect to %.*s", DV_FMT(path));
        return NULL;
    }
    return open_stream(loop, fd, err);
}

static int fd_of(const struct dv_stream *stream)
{
    uv_os_fd_t fd = -1;

    (void)uv_fileno((const uv_handle_t *)&stream->pipe, &fd); /* none: stays -1 */
    return fd;
}

int dv_stream_pidfd(const struct dv_stream *stream)
{
    int pidfd = -1;
    socklen_t n = sizeof(pidfd);

    return getsockopt(fd_of(stream), SOL_SOCKET, SO_PEERPIDFD, &pidfd, &n) == 0 ? pidfd : -1;
}

size_t dv_stream_groups(const struct dv_stream *stream, gid_t *gids, size_t max)
{
    socklen_t n = (socklen_t)(max * sizeof(gids[0]));

    return getsockopt(fd_of(stream), SOL_SOCKET, SO_PEERGROUPS, gids, &n) == 0 ? n / sizeof(gids[0])
                                                                               : 0;
}

bool dv_socket_listener(dv_str path, struct dv_peer *peer, struct dv_err *err)
{
    int fd;

    if (!dv_socket_path_check(path, err))
        return false;
    fd = connect_fd(path);
    if (fd < 0)
        return dv_fail_errno(err, errno, "connect to %.*s", DV_FMT(path));
    *peer = peer_of(fd);
    (void)close(fd); /* nothing was said */
    return true;
}

static void end_stream(struct dv_stream *stream, int status)
{
    struct dv_err err;

    if (stream->has_ended || stream->is_closing)
        return;
    stream->has_ended = true;
    (void)uv_read_stop((uv_stream_t *)&stream->pipe); /* always 0 */
    if (status == UV_EOF) {
        stream->handler->end(stream->handler, NULL);
        return;
    }
    (void)dv_loop_fail_uv(&err, status, "connection");
    stream->handler->end(stream->handler, &err);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct dv_stream *stream = handle->data;

    (void)suggested;
    *buf = uv_buf_init(stream->loop->read_buffer, READ_BUFFER_BYTES);
}

static void on_read(uv_stream_t *pipe, ssize_t got, const uv_buf_t *buf)
{
    struct dv_stream *stream = pipe->data;

    if (got > 0)
        stream->handler->read(stream->handler, (dv_str){buf->base, (size_t)got});
    else if (got < 0)
        end_stream(stream, (int)got);
}

void dv_stream_start(struct dv_stream *stream, struct dv_stream_handler *handler)
{
    int status;

    stream->handler = handler;
    status = uv_read_start((uv_stream_t *)&stream->pipe, on_alloc, on_read);
    assert(status == 0); /* fails only on a stream that is closing */
}

static void on_write_failed(struct dv_task *task)
{
    struct dv_stream *stream = DV_CONTAINER(task, struct dv_stream, end_task);

    end_stream(stream, stream->write_status);
}

static void fail_write(struct dv_stream *stream, int status)
{
    stream->write_status = status;
    dv_task_post(&stream->end_task, stream->loop, on_write_failed);
}

static void on_written(uv_write_t *req, int status)
{
    struct dv_stream *stream = req->data;

    free(req);
    if (stream->is_closing)
        return;
    if (status < 0)
        fail_write(stream, status);
    else if (dv_stream_queued_bytes(stream) == 0 && stream->handler->drained)
        stream->handler->drained(stream->handler);
}

void dv_stream_write(struct dv_stream *stream, dv_str bytes)
{
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)bytes.p, 0); /* libuv only reads from it */
    struct queued_write *queued;
    int status;

    if (bytes.n == 0)
        return;
    buf.len = bytes.n;
    status = uv_try_write((uv_stream_t *)&stream->pipe, &buf, 1);
    if (status == UV_EAGAIN)
        status = 0;
    if (status < 0) {
        fail_write(stream, status);
        return;
    }
    bytes = dv_str_slice(bytes, (size_t)status, bytes.n);
    if (bytes.n == 0)
        return;
    queued = dv_alloc(sizeof(*queued) + bytes.n);
    memcpy(queued->bytes, bytes.p, bytes.n);
    queued->req.data = stream;
    buf = uv_buf_init(queued->bytes, 0);
    buf.len = bytes.n;
    status = uv_write(&queued->req, (uv_stream_t *)&stream->pipe, &buf, 1, on_written);
    if (status < 0) {
        free(queued);
        fail_write(stream, status);
    }
}

size_t dv_stream_queued_bytes(const struct dv_stream *stream)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&stream->pipe);
}

struct dv_peer dv_stream_peer(const struct dv_stream *stream)
{
    return stream->peer;
}

static void on_stream_closed(uv_handle_t *handle)
{
    struct dv_stream *stream = handle->data;
    dv_closed_fn *closed = stream->closed;
    void *ctx = stream->closed_ctx;

    free(stream);
    if (closed)
        closed(ctx);
}

void dv_stream_close(struct dv_stream *stream, dv_closed_fn *closed, void *ctx)
{
    assert(!stream->is_closing);
    stream->is_closing = true;
    stream->closed = closed;
    stream->closed_ctx = ctx;
    dv_task_cancel(&stream->end_task);
    uv_close((uv_handle_t *)&stream->pipe, on_stream_closed);
}

/* ---- listeners ---- */

struct dv_listener {
    uv_pipe_t pipe;
    struct dv_loop *loop;
    struct dv_listener_handler *handler;
    dev_t dev; /* of the socket file that we made */
    ino_t ino;
    char path[DV_SOCKET_PATH_MAX + 1]; /* "": not ours to remove */
    dv_closed_fn *closed;
    void *closed_ctx;
};

static void fail_accept(struct dv_listener *listener, int status)
{
    struct dv_err err;

    if (!listener->handler->failed)
        return;
    (void)dv_loop_fail_uv(&err, status, "accept");
    listener->handler->failed(listener->handler, &err);
}

static void on_connection(uv_stream_t *pipe, int status)
{
    struct dv_listener *listener = pipe->data;
    struct dv_stream *stream;

    if (status < 0) {
        fail_accept(listener, status);
        return;
    }
    stream = stream_alloc(listener->loop);
    status = uv_accept(pipe, (uv_stream_t *)&stream->pipe);
    if (status < 0) {
        dv_stream_close(stream, NULL, NULL);
        fail_accept(listener, status);
        return;
    }
    read_peer(stream);
    listener->handler->accept(listener->handler, stream);
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct dv_listener *listener = handle->data;
    dv_closed_fn *closed = listener->closed;
    void *ctx = listener->closed_ctx;

    free(listener);
    if (closed)
        closed(ctx);
}

bool dv_listener_is_there(const struct dv_listener *listener)
{
    struct stat info;

    return listener->path[0] && lstat(listener->path, &info) == 0 && info.st_dev == listener->dev &&
           info.st_ino == listener->ino;
}

void dv_listener_close(struct dv_listener *listener, dv_closed_fn *closed, void *ctx)
{
    if (dv_listener_is_there(listener))
        (void)unlink(listener->path); /* gone is what we want */
    listener->closed = closed;
    listener->closed_ctx = ctx;
    uv_close((uv_handle_t *)&listener->pipe, on_listener_closed);
}

/* Takes the listening socket `fd`, also on failure. */
static struct dv_listener *open_listener(struct dv_loop *loop, int fd,
                                         struct dv_listener_handler *handler, struct dv_err *err)
{
    struct dv_listener *listener = DV_ALLOC(struct dv_listener);
    int status = uv_pipe_init(&loop->uv, &listener->pipe, 0);

    assert(status == 0); /* cannot fail on Linux */
    listener->loop = loop;
    listener->handler = handler;
    listener->pipe.data = listener;
    status = uv_pipe_open(&listener->pipe, fd);
    if (status < 0)
        (void)close(fd); /* not libuv's yet */
    else
        status = uv_listen((uv_stream_t *)&listener->pipe, LISTEN_BACKLOG, on_connection);
    if (status == 0)
        return listener;
    (void)dv_loop_fail_uv(err, status, "listen");
    dv_listener_close(listener, NULL, NULL);
    return NULL;
}

/* Whether nothing is at `path`, or a socket that nobody answers on. */
static bool is_free(const char *path, struct dv_err *err)
{
    struct stat info;
    int fd;

    if (lstat(path, &info) < 0)
        return errno == ENOENT || dv_fail_errno(err, errno, "look at %s", path);
    if (!S_ISSOCK(info.st_mode))
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "%s exists and is not a socket; remove it or choose another path", path);
    fd = connect_fd(dv_str_from_c(path));
    if (fd >= 0 || errno == EAGAIN) {
        dv_close_fd(&fd);
        return dv_fail(err, DV_ALREADY_EXISTS, "another process listens on %s", path);
    }
    return true;
}

bool dv_socket_is_free(dv_str path, struct dv_err *err)
{
    char name[DV_SOCKET_PATH_MAX + 1] = "";

    if (!dv_socket_path_check(path, err))
        return false;
    memcpy(name, path.p, path.n);
    return is_free(name, err);
}

static bool clear_path(const char *path, struct dv_err *err)
{
    if (!is_free(path, err))
        return false;
    if (unlink(path) < 0 && errno != ENOENT)
        return dv_fail_errno(err, errno, "remove the stale socket %s", path);
    return true;
}

/* Binds a socket to `path`; returns -1 when that fails. */
static int bind_fd(const char *path, mode_t mode, struct dv_err *err)
{
    struct sockaddr_un address = address_of(dv_str_from_c(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        (void)dv_fail_errno(err, errno, "socket for %s", path);
        return -1;
    }
    /* The mode is set before bind, so that the file never has a wider one (the umask still narrows
     * it). */
    if (fchmod(fd, mode) < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        (void)dv_fail_errno(err, errno, "bind %s", path);
        (void)close(fd); /* never bound */
        return -1;
    }
    /* The umask may have narrowed it: set it as asked. */
    if (chmod(path, mode) < 0) {
        (void)dv_fail_errno(err, errno, "set the mode of %s", path);
        (void)unlink(path); /* gone is what we want */
        (void)close(fd);    /* nobody has connected */
        return -1;
    }
    return fd;
}

struct dv_listener *dv_listener_open(struct dv_loop *loop, dv_str path, mode_t mode,
                                     struct dv_listener_handler *handler, struct dv_err *err)
{
    char name[DV_SOCKET_PATH_MAX + 1] = "";
    struct dv_listener *listener;
    struct stat info = {0};
    int fd;

    if (!dv_socket_path_check(path, err))
        return NULL;
    memcpy(name, path.p, path.n);
    if (!clear_path(name, err))
        return NULL;
    fd = bind_fd(name, mode, err);
    if (fd < 0)
        return NULL;
    (void)lstat(name, &info); /* unknown: then close leaves the file */
    listener = open_listener(loop, fd, handler, err);
    if (!listener) {
        (void)dv_wrap(err, "%s", name);
        (void)unlink(name); /* gone is what we want */
        return NULL;
    }
    memcpy(listener->path, name, sizeof(name));
    listener->dev = info.st_dev;
    listener->ino = info.st_ino;
    return listener;
}

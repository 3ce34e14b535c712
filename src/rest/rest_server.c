/* rest_server.c - runs libmicrohttpd on the loop, from the listening socket to the last call. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/num.h"
#include "rest/rest_server.h"
#include "rest/tls.h"

/* The default limit of a body, which is the Kubernetes API's. */
#define BODY_BYTES_DEFAULT (3u * 1024u * 1024u)
/* The default limit of all bodies: a burst of the largest ones, which a small machine can spare. */
#define BODIES_BYTES_DEFAULT (64u * 1024u * 1024u)
/* The default limit of a stream's unsent bytes: the largest object, with what came before it. */
#define UNSENT_BYTES_DEFAULT (4u * 1024u * 1024u)
#define CONNECTIONS_DEFAULT 1024u
#define TIMEOUT_DEFAULT_MS 60000u
/* Room for connections that were dropped for others and that libmicrohttpd has not closed yet:
 * those of a turn or two. */
#define DROPPED_MAX 256u

void dv_rest_server_complain(struct dv_rest_server *server, const char *peer,
                             const struct dv_err *err)
{
    dv_log(DV_LOG_DEBUG, "rest: client refused", DV_F_STR("server", server->options.name),
           DV_F_C("peer", peer), DV_F_CODE(err), DV_F_ERR(err));
    if (server->options.complaint)
        server->options.complaint(server->options.ctx, dv_str_from_c(peer), err);
}

/* ---- running libmicrohttpd ---- */

static void run(struct dv_rest_server *server)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;

    (void)MHD_run(server->mhd); /* fails only when stopped */
    /* libmicrohttpd has no timeouts here, except for connections that it closes: if it does not
     * want to wait for its sockets alone, it has something to do now. */
    if (MHD_get_timeout(server->mhd, &wait_ms) == MHD_YES)
        dv_rest_server_run_later(server);
}

static void on_ready(void *ctx, unsigned events)
{
    (void)events;
    run(ctx);
}

static void on_run_task(struct dv_task *task)
{
    run(DV_CONTAINER(task, struct dv_rest_server, run_task));
}

void dv_rest_server_run_later(struct dv_rest_server *server)
{
    dv_task_post(&server->run_task, server->loop, on_run_task);
}

__attribute__((format(printf, 2, 0))) static void on_said(void *ctx, const char *format,
                                                          va_list args)
{
    struct dv_rest_server *server = ctx;
    dv_str text;

    (void)vsnprintf(server->said, sizeof(server->said), format, args); /* a long text is cut */
    text = dv_str_trim(dv_str_from_c(server->said));
    server->said[text.n] = '\0'; /* all that is trimmed is its line's end */
    dv_rest_tls_note(server);
    dv_log(DV_LOG_DEBUG, "rest: libmicrohttpd says", DV_F_STR("server", server->options.name),
           DV_F_STR("text", text));
}

/* Leaves the text as it is: libmicrohttpd would decode in place what we have copied before. */
static size_t leave_encoded(void *ctx, struct MHD_Connection *mhd, char *text)
{
    (void)ctx;
    (void)mhd;
    return strlen(text);
}

/* Returns the text for libmicrohttpd, whose type lacks the const; it does not write to it. */
static void *c_text(dv_str text, struct dv_arena *arena)
{
    return (void *)(uintptr_t)dv_str_to_c(text, arena);
}

static bool start_mhd(struct dv_rest_server *server, const struct dv_rest_tls *tls,
                      struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    /* libmicrohttpd does not start without a certificate; connections get theirs from
     * dv_rest_tls_begin. */
    const struct MHD_OptionItem tls_options[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)DV_REST_TLS_PRIORITIES},
        {MHD_OPTION_HTTPS_MEM_CERT,   0, c_text(tls ? tls->cert : DV_STR(""),       scratch)},
        {MHD_OPTION_HTTPS_MEM_KEY,                           0,     c_text(tls ? tls->key : DV_STR(""),                   scratch)},
        {MHD_OPTION_END,                   0,                    NULL                             },
    };
    const struct MHD_OptionItem options[] = {
  /* The logger comes first, so that it hears what is wrong with the other options. */
        {MHD_OPTION_EXTERNAL_LOGGER,         (intptr_t)on_said,                                         server},
        {MHD_OPTION_CONNECTION_LIMIT,        (intptr_t)(server->options.connections_max + DROPPED_MAX),
         NULL                                                                                                 },
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, DV_REST_CONNECTION_BYTES,                                  NULL  },
        {MHD_OPTION_UNESCAPE_CALLBACK,       (intptr_t)leave_encoded,                                   NULL  },
        {MHD_OPTION_URI_LOG_CALLBACK,        (intptr_t)dv_rest_call_begin,                              server},
        {MHD_OPTION_NOTIFY_CONNECTION,       (intptr_t)dv_rest_conn_changed,                            server},
        {MHD_OPTION_NOTIFY_COMPLETED,        (intptr_t)dv_rest_conn_completed,                          server},
        {MHD_OPTION_END,                     0,                                                         NULL  },
    };
    const union MHD_DaemonInfo *info;
    unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_ERROR_LOG | (tls ? MHD_USE_TLS : 0u);

#if MHD_VERSION >= 0x00097707
    /* Everything runs on the loop's thread. Without this flag, releases that have it put a new
     * connection into a queue, and tell of it long after add_conn has returned. */
    flags |= MHD_USE_NO_THREAD_SAFETY;
    /* Without this one, they answer a target with a space in it by a redirect to what may have been
     * meant; older releases leave it to us, and we refuse it. */
    flags |= MHD_USE_PEDANTIC_CHECKS;
#endif
    server->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, dv_rest_call_access, server, MHD_OPTION_ARRAY, options,
        tls ? MHD_OPTION_ARRAY : MHD_OPTION_END, tls_options, MHD_OPTION_END);
    if (!server->mhd)
        return dv_fail(err, DV_INTERNAL, "libmicrohttpd: %s", server->said);
    info = MHD_get_daemon_info(server->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    assert(info);
    server->mhd_poll = dv_poll_open(server->loop, info->epoll_fd, on_ready, server, err);
    if (!server->mhd_poll)
        return false;
    dv_poll_set(server->mhd_poll, DV_POLL_READ);
    return true;
}

/* ---- opening ---- */

static size_t or_default(size_t value, size_t by_default)
{
    return value > 0 ? value : by_default;
}

static struct dv_rest_server *new_server(struct dv_loop *loop,
                                         const struct dv_rest_server_options *options)
{
    struct dv_rest_server *server = dv_alloc(sizeof(*server) + options->name.n);
    struct dv_rest_server_options *own = &server->options;

    if (options->name.n > 0)
        memcpy(server->name, options->name.p, options->name.n);
    server->loop = loop;
    *own = *options;
    own->name = (dv_str){server->name, options->name.n};
    own->tls = NULL; /* belongs to the caller; see `creds` */
    own->body_bytes_max = or_default(own->body_bytes_max, BODY_BYTES_DEFAULT);
    own->bodies_bytes_max = or_default(own->bodies_bytes_max, BODIES_BYTES_DEFAULT);
    own->unsent_bytes_max = or_default(own->unsent_bytes_max, UNSENT_BYTES_DEFAULT);
    own->connections_max = or_default(own->connections_max, CONNECTIONS_DEFAULT);
    own->timeout_ms = own->timeout_ms > 0 ? own->timeout_ms : TIMEOUT_DEFAULT_MS;
    assert(own->connections_max <= 1u << 20); /* libmicrohttpd counts in unsigned */
    server->listen_fd = server->hangup_fd = -1;
    dv_list_init(&server->conns);
    dv_rest_shares_init(&server->shares);
    return server;
}

static void stop_listening(struct dv_rest_server *server)
{
    dv_timer_cancel(&server->accept_timer);
    if (server->listen_poll)
        dv_poll_close(server->listen_poll, NULL, NULL);
    dv_close_fd(&server->listen_fd);
    server->listen_poll = NULL;
    server->listen_fd = -1;
}

/* Frees a server, also one that is half open. */
static void free_server(struct dv_rest_server *server)
{
    stop_listening(server);
    dv_timer_cancel(&server->grace_timer);
    dv_task_cancel(&server->close_task);
    if (server->hangup_poll)
        dv_poll_close(server->hangup_poll, NULL, NULL);
    dv_close_fd(&server->hangup_fd);
    if (server->mhd_poll)
        dv_poll_close(server->mhd_poll, NULL, NULL);
    if (server->mhd)
        MHD_stop_daemon(server->mhd);
    dv_task_cancel(&server->run_task);
    dv_rest_creds_unref(server->creds);
    dv_rest_shares_fini(&server->shares);
    free(server);
}

struct dv_rest_server *dv_rest_server_open_fd(struct dv_loop *loop, int fd,
                                              const struct dv_rest_server_options *options,
                                              struct dv_err *err)
{
    struct dv_rest_server *server = new_server(loop, options);

    server->listen_fd = fd;
    if (options->tls)
        server->creds = dv_rest_creds_new(options->tls, err);
    if ((options->tls && !server->creds) || !dv_rest_listen_check(fd, err) ||
        !start_mhd(server, options->tls, err))
        goto failed;
    server->hangup_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->hangup_fd < 0) {
        (void)dv_fail_errno(err, errno, "epoll");
        goto failed;
    }
    server->hangup_poll = dv_poll_open(loop, server->hangup_fd, dv_rest_conn_hangups, server, err);
    if (!server->hangup_poll)
        goto failed;
    dv_poll_set(server->hangup_poll, DV_POLL_READ);
    server->listen_poll = dv_poll_open(loop, fd, dv_rest_conn_accept, server, err);
    if (!server->listen_poll)
        goto failed;
    dv_poll_set(server->listen_poll, DV_POLL_READ);
    return server;
failed:
    free_server(server);
    return NULL;
}

struct dv_rest_server *dv_rest_server_open(struct dv_loop *loop, dv_str address,
                                           const struct dv_rest_server_options *options,
                                           struct dv_err *err)
{
    int fd;

    if (!dv_rest_listen(address, &fd, err))
        return NULL;
    return dv_rest_server_open_fd(loop, fd, options, err);
}

uint16_t dv_rest_server_port(const struct dv_rest_server *server)
{
    return server->listen_fd < 0 ? 0 : dv_rest_listen_port(server->listen_fd);
}

size_t dv_rest_server_n_connections(const struct dv_rest_server *server)
{
    return server->n_conns;
}

/* ---- closing ---- */

static void on_close_task(struct dv_task *task)
{
    struct dv_rest_server *server = DV_CONTAINER(task, struct dv_rest_server, close_task);
    dv_closed_fn *closed = server->closed;
    void *ctx = server->closed_ctx;

    if (server->n_conns > 0 || server->n_calls > 0)
        return;
    free_server(server);
    if (closed)
        closed(ctx);
}

void dv_rest_server_check_closed(struct dv_rest_server *server)
{
    if (server->is_closing)
        dv_task_post(&server->close_task, server->loop, on_close_task);
}

static void on_grace_over(struct dv_timer *timer)
{
    struct dv_rest_server *server = DV_CONTAINER(timer, struct dv_rest_server, grace_timer);
    struct dv_link *link;

    DV_LIST_EACH (&server->conns, link)
        dv_rest_conn_break(DV_CONTAINER(link, struct dv_rest_conn, link), DV_CANCELLED,
                           "the server was closed");
}

void dv_rest_server_close(struct dv_rest_server *server, uint64_t grace_ms, dv_closed_fn *closed,
                          void *ctx)
{
    struct dv_link *link;

    assert(!server->is_closing);
    server->is_closing = true;
    server->closed = closed;
    server->closed_ctx = ctx;
    stop_listening(server);
    DV_LIST_EACH (&server->conns, link) {
        struct dv_rest_conn *conn = DV_CONTAINER(link, struct dv_rest_conn, link);

        if (conn->phase <= DV_REST_REFUSED)
            dv_rest_conn_break(conn, DV_CANCELLED, "the server is closing");
    }
    dv_timer_start(&server->grace_timer, server->loop,
                   dv_u64_add_clamped(dv_loop_now_ms(server->loop), grace_ms), on_grace_over);
    dv_rest_server_check_closed(server);
}

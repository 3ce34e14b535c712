/* cmd_port_forward.c - local ports that lead to ports of a pod: each connection is a pair of SPDY
 * streams, all of them in one WebSocket. */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/api_exchange.h"
#include "cli/client/api_socket.h"
#include "cli/client/cli_api.h"
#include "cli/client/cli_kinds.h"
#include "cli/commands/forward.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "upgrade/channels.h"
#include "upgrade/spdy.h"
#include "upgrade/websocket.h"

#define BACKLOG 128

static const dv_str protocol = DV_STR_INIT(DV_CHANNEL_TUNNEL);

static void on_message(struct dv_ws_handler *handler, const struct dv_ws_part *part)
{
    struct dv_forward *forward = DV_CONTAINER(handler, struct dv_forward, ws_handler);
    struct dv_err err;

    if (!dv_spdy_receive(forward->spdy, part->bytes, &err))
        dv_ws_close(forward->ws, DV_WS_PROTOCOL_ERROR, DV_STR_NONE);
}

/* The end is seen by dv_ws_is_over. */
static void on_closed(struct dv_ws_handler *handler, unsigned code, dv_str reason)
{
    (void)handler;
    (void)code;
    (void)reason;
}

static bool receive(struct dv_cli_socket *socket, dv_str bytes, struct dv_err *err)
{
    struct dv_forward *forward = DV_CONTAINER(socket, struct dv_forward, socket);
    bool is_good = dv_ws_receive(forward->ws, bytes, err);

    if (is_good && !dv_ws_is_over(forward->ws) && !dv_spdy_is_over(forward->spdy))
        return true;
    dv_cli_socket_push(socket);
    dv_rest_dial_finish(&socket->dial);
    return is_good;
}

static bool pull(struct dv_cli_socket *socket, dv_str *bytes)
{
    struct dv_forward *forward = DV_CONTAINER(socket, struct dv_forward, socket);
    struct dv_err err;

    if (dv_spdy_pull(forward->spdy, bytes) && !dv_ws_send(forward->ws, false, *bytes, &err))
        return false; /* it is closed */
    return dv_ws_pull(forward->ws, bytes);
}

static void on_room(struct dv_cli_socket *socket)
{
    dv_forward_watch_all(DV_CONTAINER(socket, struct dv_forward, socket));
}

/* ---- local ports ---- */

static void on_client(void *ctx, unsigned events)
{
    struct dv_forward_port *port = ctx;
    int fd = accept4(port->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)events;
    if (fd >= 0) /* otherwise the client is gone again */
        dv_forward_accept(port, fd);
}

/* "8080", "8888:80", ":80" */
static bool read_ports(dv_str word, uint16_t *local, uint16_t *remote)
{
    size_t colon = dv_str_find_char(word, ':');
    dv_str first = dv_str_slice(word, 0, colon);
    dv_str last = colon < word.n ? dv_str_slice(word, colon + 1, word.n) : word;
    uint32_t from = 0;
    uint32_t to = 0;

    if (!dv_str_to_u32(last, &to) || to == 0 || to > UINT16_MAX ||
        (first.n > 0 && !dv_str_to_u32(first, &from)) || from > UINT16_MAX)
        return false;
    *local = (uint16_t)(colon < word.n ? from : to);
    *remote = (uint16_t)to;
    return true;
}

static bool listen_on(struct dv_forward *forward, uint16_t local, uint16_t remote,
                      struct dv_err *err)
{
    struct dv_forward_port *port = DV_ALLOC(struct dv_forward_port);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(local)};
    socklen_t n = sizeof(address);
    int one = 1;

    port->forward = forward;
    port->remote = remote;
    dv_list_push(&forward->ports, &port->link);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    port->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (port->fd < 0 || setsockopt(port->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(port->fd, (const struct sockaddr *)&address, n) < 0 || listen(port->fd, BACKLOG) < 0 ||
        getsockname(port->fd, (struct sockaddr *)&address, &n) < 0)
        return dv_fail_errno(err, errno, "127.0.0.1:%u", local);
    port->local = ntohs(address.sin_port);
    port->poll = dv_poll_open(forward->loop, port->fd, on_client, port, err);
    return port->poll != NULL;
}

static bool listen_all(struct dv_forward *forward, const struct dv_cli *cli, struct dv_err *err)
{
    for (size_t i = 1; i < cli->n_words; i++) {
        uint16_t local = 0;
        uint16_t remote = 0;

        if (!read_ports(cli->words[i], &local, &remote))
            return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is not [LOCAL:]REMOTE",
                           DV_FMT(cli->words[i]));
        if (!listen_on(forward, local, remote, err))
            return false;
    }
    return true;
}

static void begin(struct dv_forward *forward)
{
    struct dv_link *link;

    DV_LIST_EACH (&forward->ports, link) {
        struct dv_forward_port *port = DV_CONTAINER(link, struct dv_forward_port, link);

        (void)printf("Forwarding from 127.0.0.1:%u -> %u\n", port->local, port->remote);
        dv_poll_set(port->poll, DV_POLL_READ);
    }
    (void)fflush(stdout); /* who reads it waits for it */
}

static void open_sessions(struct dv_forward *forward)
{
    const struct dv_ws_options ws = {.is_client = true,
                                     .random = dv_cli_socket_mask,
                                     .unsent_bytes_max = 8 * DV_CLI_SOCKET_FULL_BYTES};
    const struct dv_spdy_options spdy = {.is_client = true,
                                         .unsent_bytes_max = 2 * DV_CLI_SOCKET_FULL_BYTES};

    forward->ws = dv_ws_new(&ws, &forward->ws_handler);
    forward->spdy = dv_spdy_new(&spdy, &forward->spdy_handler);
}

static void close_sessions(struct dv_forward *forward)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_CANCELLED, "the connection is gone");
    dv_forward_hang_up_all(forward);
    dv_spdy_lose(forward->spdy, &err); /* a connection is freed with its last stream */
    dv_spdy_free(forward->spdy);
    dv_forward_free_all(forward);
    dv_ws_free(forward->ws);
}

/* Makes a connection to the pod in place of the last one. After a connection to a port was refused,
 * runtimes wait for ever for somebody to read what was sent to it, and nothing else comes through:
 * kubectl ends then. */
static void renew(struct dv_forward *forward)
{
    close_sessions(forward);
    open_sessions(forward);
    forward->is_refused = false;
    forward->socket.is_ended = false;
    (void)dv_succeed(&forward->socket.err);
}

static void close_ports(struct dv_forward *forward)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&forward->ports)) != NULL) {
        struct dv_forward_port *port = DV_CONTAINER(link, struct dv_forward_port, link);

        if (port->poll)
            dv_poll_close(port->poll, NULL, NULL);
        dv_close_fd(&port->fd);
        free(port);
    }
}

static dv_str print_target(const struct dv_cli_api *api, dv_str pod)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_POD);
    const struct dv_cli_ask ask = {
        .kind = kind, .namespace = api->namespace, .name = pod, .subresource = "portforward"};
    DV_CLEANUP(dv_buf_fini) struct dv_buf target;

    dv_buf_init(&target, DV_CLI_TARGET_BYTES_MAX);
    dv_cli_ask_print(&ask, &kind->versions[0], &target);
    return dv_str_copy(dv_buf_str(&target), api->cli->arena);
}

static enum dv_exit go_on(struct dv_forward *forward, struct dv_cli_api *api)
{
    bool has_begun = false;

    do {
        if (forward->is_refused)
            renew(forward);
        if (!dv_cli_socket_open(api, &forward->socket))
            return api->exit;
        if (!has_begun)
            begin(forward);
        has_begun = true;
        dv_cli_socket_push(&forward->socket);
        dv_cli_socket_run(&forward->socket);
    } while (forward->is_refused);
    return dv_cli_complain("the connection to the pod has ended%s%s",
                           forward->socket.err.code != DV_OK ? ": " : "",
                           forward->socket.err.code != DV_OK ? forward->socket.err.msg : "");
}

static enum dv_exit run(struct dv_cli_api *api, dv_str pod)
{
    struct dv_forward forward = {
        .socket = {.protocol = protocol, .receive = receive, .pull = pull, .room = on_room},
        .ws_handler = {.message = on_message,     .closed = on_closed                      },
        .spdy_handler = dv_forward_handler,
        .loop = api->loop,
    };
    enum dv_exit exit;
    struct dv_err err;

    dv_list_init(&forward.ports);
    dv_list_init(&forward.conns);
    open_sessions(&forward);
    forward.socket.target = print_target(api, pod);
    if (listen_all(&forward, api->cli, &err))
        exit = go_on(&forward, api);
    else
        exit = dv_cli_complain("%s", err.msg);
    close_ports(&forward);
    close_sessions(&forward);
    return exit;
}

enum dv_exit dv_cmd_port_forward(struct dv_cli *cli)
{
    struct dv_cli_api api;
    enum dv_exit exit;
    dv_str pod;

    if (cli->n_words < 2 || !dv_cli_pod_name(cli->words[0], &pod))
        return dv_cli_complain_usage("port-forward", "it needs a pod and ports");
    exit = dv_cli_api_open(cli, &api);
    if (exit != DV_EXIT_OK)
        return exit;
    exit = run(&api, pod);
    dv_cli_api_close(&api);
    return exit;
}

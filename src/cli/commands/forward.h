/* forward.h - a port-forward: its session with the server, its ports, and their connections. */
#ifndef DV_CLI_FORWARD_H
#define DV_CLI_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "cli/client/api_socket.h"
#include "upgrade/spdy.h"
#include "upgrade/websocket.h"

struct dv_forward {
    struct dv_cli_socket socket;
    struct dv_ws *ws;
    struct dv_ws_handler ws_handler;
    struct dv_spdy *spdy;
    struct dv_spdy_handler spdy_handler;
    struct dv_loop *loop;
    struct dv_list ports;
    struct dv_list conns;
    uint64_t n_requests;
    size_t n_full;   /* connections whose clients do not read */
    bool is_refused; /* the pod has refused a connection: all begins anew */
};

struct dv_forward_port {
    struct dv_forward *forward;
    struct dv_link link;
    struct dv_poll *poll;
    int fd;
    uint16_t local;
    uint16_t remote;
};

/* ---- forward_conn.c: connections of local clients, a pair of streams each ---- */

/* What happens to their streams. */
extern const struct dv_spdy_handler dv_forward_handler;
/* Takes the descriptor of a client that has come. */
void dv_forward_accept(struct dv_forward_port *port, int fd);
/* To be called when there may be room for what clients send. */
void dv_forward_watch_all(struct dv_forward *forward);
/* Closes all; each is freed with its last stream. */
void dv_forward_hang_up_all(struct dv_forward *forward);
/* Frees those that are left when the session is gone; they have been hung up. */
void dv_forward_free_all(struct dv_forward *forward);

#endif

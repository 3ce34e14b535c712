/* api_socket.h - a WebSocket to the API server, on which a pod's streams are carried. */
#ifndef DV_CLI_API_SOCKET_H
#define DV_CLI_API_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "rest/rest.h"
#include "upgrade/websocket.h"

struct dv_cli_api;

/* While more than this waits to be sent, nothing should be added. */
#define DV_CLI_SOCKET_FULL_BYTES (256u * 1024u)

/* It is embedded in what uses it. Zeroed, then filled in. */
struct dv_cli_socket {
    dv_str target;   /* path and query */
    dv_str protocol; /* the WebSocket's subprotocol */
    /* What has come, of the session's bytes; then `pull` is asked for what is to be sent. */
    bool (*receive)(struct dv_cli_socket *socket, dv_str bytes, struct dv_err *err);
    bool (*pull)(struct dv_cli_socket *socket, dv_str *bytes);
    /* More can be sent. */
    void (*room)(struct dv_cli_socket *socket);

    struct dv_cli_api *api;
    struct dv_rest_dial dial;
    char key[DV_WS_KEY_BYTES];
    bool is_open;
    bool is_ended;
    struct dv_err err; /* why it ended; code DV_OK: the server or we have closed it */
};

/* Connects, and waits for the server's answer. False: it said no, or nothing; that is printed, and
 * api->exit says how to end. */
DV_CHECKED bool dv_cli_socket_open(struct dv_cli_api *api, struct dv_cli_socket *socket);
/* Sends what there is to be sent. */
void dv_cli_socket_push(struct dv_cli_socket *socket);
/* Waits until the connection has ended; handlers run meanwhile. */
void dv_cli_socket_run(struct dv_cli_socket *socket);
/* Fills in the mask of a frame: `random` of struct dv_ws_options. */
void dv_cli_socket_mask(void *ctx, uint8_t mask[4]);

#endif

#include "cli/client/api_socket.h"

#include <string.h>

#include "base/defs.h"
#include "base/num.h"
#include "cli/client/api_exchange.h"
#include "cli/client/cli_api.h"
#include "loop/loop.h"

void dv_cli_socket_mask(void *ctx, uint8_t mask[4])
{
    uint64_t number = dv_random_u64();

    (void)ctx;
    memcpy(mask, &number, 4);
}

void dv_cli_socket_push(struct dv_cli_socket *socket)
{
    struct dv_err err;
    dv_str bytes;

    while (socket->is_open && dv_rest_dial_unsent_bytes(&socket->dial) < DV_CLI_SOCKET_FULL_BYTES &&
           socket->pull(socket, &bytes))
        if (!dv_rest_dial_send(&socket->dial, bytes, &err))
            return; /* it is ending */
}

/* ---- what happens to the connection ---- */

static struct dv_cli_socket *of_dial(struct dv_rest_dial *dial)
{
    return DV_CONTAINER(dial, struct dv_cli_socket, dial);
}

static void on_opened(struct dv_rest_dial *dial)
{
    struct dv_cli_socket *socket = of_dial(dial);
    dv_str chosen = dv_rest_dial_field(dial, DV_STR("Sec-WebSocket-Protocol"));
    const struct dv_ws_fields fields = {
        .connection = dv_rest_dial_field(dial, DV_STR("Connection")),
        .upgrade = dv_rest_dial_field(dial, DV_STR("Upgrade")),
        .accept = dv_rest_dial_field(dial, DV_STR("Sec-WebSocket-Accept")),
        .extensions = dv_rest_dial_field(dial, DV_STR("Sec-WebSocket-Extensions")),
        .protocols = &chosen,
        .n_protocols = chosen.n > 0 ? 1 : 0,
    };
    dv_str protocol;

    socket->is_open = dv_ws_check_answer(&fields, dv_str_from_c(socket->key), &socket->protocol, 1,
                                         &protocol, &socket->err);
    if (!socket->is_open)
        dv_rest_dial_cancel(dial);
    dv_loop_stop(socket->api->loop);
}

static void on_received(struct dv_rest_dial *dial, dv_str bytes)
{
    struct dv_cli_socket *socket = of_dial(dial);

    if (!socket->receive(socket, bytes, &socket->err)) {
        dv_cli_socket_push(socket);
        dv_rest_dial_finish(dial);
        return;
    }
    dv_cli_socket_push(socket);
}

static void on_room(struct dv_rest_dial *dial)
{
    struct dv_cli_socket *socket = of_dial(dial);

    dv_cli_socket_push(socket);
    socket->room(socket);
}

static void on_ended(struct dv_rest_dial *dial, const struct dv_err *err)
{
    struct dv_cli_socket *socket = of_dial(dial);
    struct dv_cli_api *api = socket->api;
    const struct dv_api_status *failure;

    if (err && socket->err.code == DV_OK)
        socket->err = *err;
    if (!socket->is_open && err && err->code == DV_FAILED_PRECONDITION) {
        failure = dv_cli_read_failure(dial->status, dial->answer, api->cli->arena);
        api->exit = dv_cli_api_complain(api, failure, DV_STR_NONE);
    } else if (!socket->is_open) {
        (void)dv_cli_api_explain(api, &socket->err);
    }
    socket->is_open = false;
    socket->is_ended = true;
    dv_loop_stop(api->loop);
}

bool dv_cli_socket_open(struct dv_cli_api *api, struct dv_cli_socket *socket)
{
    uint64_t nonce[DV_WS_NONCE_BYTES / sizeof(uint64_t)];
    const struct dv_rest_field fields[] = {
        {DV_STR("Connection"),             DV_STR("Upgrade")                 },
        {DV_STR("Upgrade"),                DV_STR("websocket")               },
        {DV_STR("Sec-WebSocket-Version"),  DV_STR("13")                      },
        {DV_STR("Sec-WebSocket-Key"),      {socket->key, DV_WS_KEY_BYTES - 1}},
        {DV_STR("Sec-WebSocket-Protocol"), socket->protocol                  },
    };

    for (size_t i = 0; i < DV_COUNT(nonce); i++)
        nonce[i] = dv_random_u64();
    dv_ws_key((const uint8_t *)nonce, socket->key);
    socket->api = api;
    socket->dial = (struct dv_rest_dial){.method = DV_STR("GET"),
                                         .target = socket->target,
                                         .fields = fields,
                                         .n_fields = DV_COUNT(fields),
                                         .opened = on_opened,
                                         .received = on_received,
                                         .room = on_room,
                                         .ended = on_ended};
    dv_rest_dial_start(api->client, &socket->dial);
    dv_loop_run(api->loop); /* until it is open, or has ended */
    if (!socket->is_open && !socket->is_ended)
        dv_loop_run(api->loop);
    return socket->is_open;
}

void dv_cli_socket_run(struct dv_cli_socket *socket)
{
    while (!socket->is_ended)
        dv_loop_run(socket->api->loop);
}

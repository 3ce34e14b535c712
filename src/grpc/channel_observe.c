/* channel_observe.c - tells the observer of a channel what happens to its connections and calls. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "grpc/grpc_channel.h"
#include "http2/http2.h"
#include "loop/loop.h"

static void tell(const struct dv_channel *channel, struct dv_grpc_event *event)
{
    event->name = channel->options.name;
    event->path = channel->path;
    channel->options.observer->event(channel->options.observer, event);
}

void dv_channel_observe(const struct dv_channel *channel, const struct dv_channel_conn *conn,
                        enum dv_grpc_event_kind kind, const struct dv_err *status)
{
    struct dv_grpc_event event = {.kind = kind, .status = status};

    if (conn) {
        event.connection = conn->id;
        event.peer = conn->peer;
    }
    tell(channel, &event);
}

static void tell_call(const struct dv_call *call, struct dv_grpc_event *event)
{
    event->connection = call->priv.connection;
    event->call = call->priv.id;
    event->method = dv_str_from_c(call->method);
    tell(call->priv.channel, event);
}

void dv_channel_observe_start(const struct dv_call *call)
{
    uint64_t now_ms = dv_loop_now_ms(call->priv.channel->loop);
    struct dv_h2_msg *request = call->priv.request;
    struct dv_grpc_event event = {
        .kind = DV_GRPC_CALL,
        .is_sent = true,
        .timeout_ms = call->deadline_ms,
        .pod_uid = call->pod_uid,
        .container = call->container,
        .message = {dv_h2_msg_data(request), dv_h2_msg_size(request)},
    };

    if (event.timeout_ms != DV_NO_DEADLINE)
        event.timeout_ms -= event.timeout_ms > now_ms ? now_ms : event.timeout_ms;
    tell_call(call, &event);
}

void dv_channel_observe_message(const struct dv_call *call, dv_str message)
{
    struct dv_grpc_event event = {.kind = DV_GRPC_MESSAGE, .message = message};

    tell_call(call, &event);
}

void dv_channel_observe_end(const struct dv_call *call, const struct dv_err *status)
{
    struct dv_grpc_event event = {
        .kind = DV_GRPC_END,
        .status = status->code == DV_OK ? NULL : status,
        .n_tries = call->priv.n_tries,
    };

    tell_call(call, &event);
}

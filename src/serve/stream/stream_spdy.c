/* stream_spdy.c - clients that speak SPDY/3.1, at once or within a WebSocket. Each stream of the
 * client has one at the runtime, and what happens to one happens to the other. The frames are not
 * passed on as they are: what a client sends that is no SPDY, or too much of it, ends here. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "loop/loop.h"
#include "serve/stream/stream_bridge.h"
#include "serve/stream/stream_channels.h"
#include "upgrade/spdy.h"
#include "upgrade/spdy_streams.h"
#include "upgrade/websocket.h"

#define FAILURE_BYTES_MAX (16u * 1024u)
#define NUMBER_BYTES 16u

/* A stream of the client and the one at the runtime; NULL: that one has ended. */
struct hop {
    struct dv_link link;
    struct dv_spdy_stream *client;
    struct dv_spdy_stream *runtime;
};

static bool is_exec(const struct dv_pod_bridge *bridge)
{
    return bridge->version != NULL;
}

static void free_if_over(struct hop *hop)
{
    if (hop->client || hop->runtime)
        return;
    dv_link_remove(&hop->link);
    free(hop);
}

/* ---- the client ---- */

static struct dv_pod_bridge *of_handler(struct dv_spdy_handler *handler)
{
    return DV_CONTAINER(handler, struct dv_pod_bridge, spdy_handler);
}

/* Opens the stream at the runtime. It gets the fields that there are for it, and no others. */
static struct dv_spdy_stream *open_at_runtime(struct dv_pod_bridge *bridge,
                                              const struct dv_spdy_stream *stream,
                                              const struct dv_port_pair *pair, struct hop *hop,
                                              struct dv_err *err)
{
    enum dv_stream_type type = DV_STREAM_DATA;
    char port[NUMBER_BYTES];
    struct dv_spdy_field fields[3];

    if (!pair)
        (void)dv_exec_streams_find(&bridge->at_client, stream, &type);
    else if (pair->error == stream)
        type = DV_STREAM_ERROR;
    fields[0] = (struct dv_spdy_field){DV_STR("streamtype"), dv_stream_type_name(type)};
    if (!pair)
        return dv_spdy_open(bridge->runtime, fields, 1, hop, err);
    (void)snprintf(port, sizeof(port), "%u", pair->port);
    fields[1] = (struct dv_spdy_field){DV_STR("port"), dv_str_from_c(port)};
    fields[2] = (struct dv_spdy_field){DV_STR("requestid"), dv_str_from_c(pair->request)};
    return dv_spdy_open(bridge->runtime, fields, DV_COUNT(fields), hop, err);
}

/* Whether the stream is one that the request speaks of; it has a pair when it is for a port. */
static bool is_welcome(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream,
                       const struct dv_spdy_field *fields, size_t n_fields,
                       const struct dv_port_pair **pair)
{
    struct dv_err err;
    bool is_good;

    *pair = NULL;
    if (is_exec(bridge)) {
        is_good = dv_exec_streams_add(&bridge->at_client, stream, fields, n_fields, &err);
        if (dv_exec_streams_are_complete(&bridge->at_client))
            dv_timer_cancel(&bridge->timer);
    } else {
        *pair = dv_port_pairs_add(&bridge->pairs, stream, fields, n_fields, &err);
        is_good = *pair != NULL;
    }
    if (!is_good)
        dv_spdy_reset(stream, err.code == DV_RESOURCE_EXHAUSTED ? DV_SPDY_REFUSED_STREAM
                                                                : DV_SPDY_PROTOCOL_ERROR);
    return is_good;
}

static void on_opened(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                      const struct dv_spdy_field *fields, size_t n_fields)
{
    struct dv_pod_bridge *bridge = of_handler(handler);
    const struct dv_port_pair *pair;
    struct dv_err err;
    struct hop *hop;

    if (!is_welcome(bridge, stream, fields, n_fields, &pair))
        return;
    hop = DV_ALLOC(struct hop);
    hop->client = stream;
    hop->runtime = open_at_runtime(bridge, stream, pair, hop, &err);
    dv_list_push(&bridge->hops, &hop->link);
    dv_spdy_stream_set_ctx(stream, hop);
    if (hop->runtime)
        dv_spdy_reply(stream);
    else
        dv_spdy_reset(stream, DV_SPDY_REFUSED_STREAM);
}

static void on_data(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream, dv_str bytes)
{
    struct hop *hop = dv_spdy_stream_ctx(stream);

    if (hop && hop->runtime)
        dv_stream_to_spdy(of_handler(handler), hop->runtime, bytes);
}

static void on_finished(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    struct hop *hop = dv_spdy_stream_ctx(stream);

    (void)handler;
    if (hop && hop->runtime)
        dv_spdy_finish(hop->runtime);
}

/* The name of a port's connection, or the place of an exec's stream, is free for nobody else before
 * both of its streams have ended. */
static void forget(struct dv_pod_bridge *bridge, const struct dv_spdy_stream *stream)
{
    struct dv_port_pair *pair;
    enum dv_stream_type type;

    if (is_exec(bridge)) {
        if (!dv_exec_streams_find(&bridge->at_client, stream, &type))
            return;
        bridge->at_client.streams[type] = NULL;
        bridge->at_client.is_wanted[type] = false; /* there is one of each */
        return;
    }
    pair = dv_port_pairs_find(&bridge->pairs, stream);
    if (!pair)
        return;
    if (pair->data == stream)
        pair->data = NULL;
    else
        pair->error = NULL;
    if (!pair->data && !pair->error)
        dv_port_pairs_remove(&bridge->pairs, pair);
}

static void on_ended(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                     const struct dv_err *err)
{
    struct dv_pod_bridge *bridge = of_handler(handler);
    struct hop *hop = dv_spdy_stream_ctx(stream);

    forget(bridge, stream);
    if (!hop)
        return;
    hop->client = NULL;
    if (err && hop->runtime)
        dv_spdy_reset(hop->runtime, DV_SPDY_CANCEL);
    free_if_over(hop);
}

/* ---- the runtime ---- */

static void on_runtime_data(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream,
                            dv_str bytes)
{
    struct hop *hop = dv_spdy_stream_ctx(stream);
    enum dv_stream_type type;

    if (!hop->client)
        return;
    if (is_exec(bridge) && dv_exec_streams_find(&bridge->at_client, hop->client, &type))
        bridge->has_status |= type == DV_STREAM_ERROR;
    dv_stream_to_spdy(bridge, hop->client, bytes);
}

static void on_runtime_finished(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream)
{
    struct hop *hop = dv_spdy_stream_ctx(stream);

    (void)bridge;
    if (hop->client)
        dv_spdy_finish(hop->client);
}

static void on_runtime_ended(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream,
                             const struct dv_err *err)
{
    struct hop *hop = dv_spdy_stream_ctx(stream);

    (void)bridge;
    hop->runtime = NULL;
    if (err && hop->client)
        dv_spdy_reset(hop->client, DV_SPDY_CANCEL);
    free_if_over(hop);
}

/* ---- the relay ---- */

static void on_late(struct dv_timer *timer)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(timer, struct dv_pod_bridge, timer);
    struct dv_err err;

    (void)dv_fail(&err, DV_DEADLINE_EXCEEDED, "the client has not opened all streams within %u s",
                  DV_STREAM_CREATION_MS / 1000);
    dv_bridge_end(bridge, &err);
}

static bool begin(struct dv_pod_bridge *bridge, struct dv_err *err)
{
    const struct dv_exec_request request = dv_bridge_exec_request(bridge);
    const struct dv_spdy_options spdy = {.streams_max = 2 * DV_STREAM_PAIRS_MAX,
                                         .unsent_bytes_max = DV_STREAM_UNSENT_BYTES_MAX};

    (void)err;
    bridge->spdy_handler = (struct dv_spdy_handler){
        .opened = on_opened, .data = on_data, .finished = on_finished, .ended = on_ended};
    bridge->spdy = dv_spdy_new(&spdy, &bridge->spdy_handler);
    if (!is_exec(bridge))
        return true;
    dv_exec_streams_init(&bridge->at_client, &request, bridge->version);
    dv_timer_start(&bridge->timer, bridge->loop,
                   dv_loop_now_ms(bridge->loop) + DV_STREAM_CREATION_MS, on_late);
    return true;
}

static bool receive(struct dv_pod_bridge *bridge, dv_str bytes, struct dv_err *err)
{
    return dv_spdy_receive(bridge->spdy, bytes, err);
}

static bool pull(struct dv_pod_bridge *bridge, dv_str *bytes)
{
    return dv_spdy_pull(bridge->spdy, bytes);
}

static size_t unsent_bytes(const struct dv_pod_bridge *bridge)
{
    return dv_spdy_unsent_bytes(bridge->spdy);
}

static bool is_over(const struct dv_pod_bridge *bridge)
{
    return dv_spdy_is_over(bridge->spdy);
}

/* Tells how an exec ended when the runtime did not. Clients take no word for success. */
static void tell_failure(struct dv_pod_bridge *bridge, const struct dv_err *err)
{
    struct dv_spdy_stream *stream = bridge->at_client.streams[DV_STREAM_ERROR];
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_err missing;

    dv_buf_init(&text, FAILURE_BYTES_MAX);
    if (!is_exec(bridge) || !stream || bridge->has_status || (!err && !bridge->version->has_status))
        return;
    (void)dv_fail(&missing, DV_INTERNAL, "the container runtime did not say how the process ended");
    dv_stream_print_failure(bridge->version->has_status, err ? err : &missing, &text);
    dv_stream_to_spdy(bridge, stream, dv_buf_str(&text));
}

static void end(struct dv_pod_bridge *bridge, const struct dv_err *err)
{
    struct dv_link *link;

    tell_failure(bridge, err);
    DV_LIST_EACH (&bridge->hops, link) {
        struct hop *hop = DV_CONTAINER(link, struct hop, link);

        if (!hop->client)
            continue;
        if (is_exec(bridge))
            dv_spdy_finish(hop->client);
        else /* what came through so far is not all */
            dv_spdy_reset(hop->client, DV_SPDY_CANCEL);
    }
    dv_spdy_go_away(bridge->spdy);
}

/* The bridge's other session has no streams any more. */
static void free_sessions(struct dv_pod_bridge *bridge)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_CANCELLED, "the client is gone");
    dv_timer_cancel(&bridge->timer);
    if (bridge->spdy)
        dv_spdy_lose(bridge->spdy, &err);
    dv_spdy_free(bridge->spdy);
    dv_ws_free(bridge->ws);
    dv_port_pairs_fini(&bridge->pairs);
}

static const struct dv_pod_face face = {
    .receive = receive,
    .pull = pull,
    .unsent_bytes = unsent_bytes,
    .is_over = is_over,
};

const struct dv_pod_relay dv_relay_spdy = {
    .face = &face,
    .begin = begin,
    .end = end,
    .free = free_sessions,
    .data = on_runtime_data,
    .finished = on_runtime_finished,
    .ended = on_runtime_ended,
};

/* ---- within a WebSocket ---- */

static void on_message(struct dv_ws_handler *handler, const struct dv_ws_part *part)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(handler, struct dv_pod_bridge, ws_handler);
    struct dv_err err;

    if (bridge->is_ws_over)
        return;
    if (part->is_text)
        (void)dv_fail(&err, DV_INVALID_ARGUMENT, "a tunnel's messages are binary");
    else if (dv_spdy_receive(bridge->spdy, part->bytes, &err))
        return;
    bridge->is_ws_over = true;
    if (!bridge->is_settled)
        bridge->err = err;
    bridge->is_settled = true;
}

static void on_closed(struct dv_ws_handler *handler, unsigned code, dv_str reason)
{
    (void)code;
    (void)reason;
    DV_CONTAINER(handler, struct dv_pod_bridge, ws_handler)->is_ws_over = true;
}

static bool begin_tunnel(struct dv_pod_bridge *bridge, struct dv_err *err)
{
    const struct dv_ws_options options = {.unsent_bytes_max = 4 * DV_STREAM_UNSENT_BYTES_MAX};

    bridge->ws_handler = (struct dv_ws_handler){.message = on_message, .closed = on_closed};
    bridge->ws = dv_ws_new(&options, &bridge->ws_handler);
    return begin(bridge, err);
}

/* Puts what SPDY has to send into messages. */
static void wrap(struct dv_pod_bridge *bridge)
{
    struct dv_err err;
    dv_str bytes;

    while (dv_spdy_pull(bridge->spdy, &bytes))
        if (!dv_ws_send(bridge->ws, false, bytes, &err) && err.code == DV_RESOURCE_EXHAUSTED)
            dv_bridge_overrun(bridge);
}

static bool receive_tunnel(struct dv_pod_bridge *bridge, dv_str bytes, struct dv_err *err)
{
    bool is_good = dv_ws_receive(bridge->ws, bytes, err);

    if (!bridge->is_ws_over)
        return is_good;
    wrap(bridge); /* its reason for a client that broke the protocol */
    dv_ws_close(bridge->ws, DV_WS_PROTOCOL_ERROR, DV_STR_NONE);
    return is_good;
}

static bool pull_tunnel(struct dv_pod_bridge *bridge, dv_str *bytes)
{
    wrap(bridge);
    return dv_ws_pull(bridge->ws, bytes);
}

static size_t unsent_bytes_tunnel(const struct dv_pod_bridge *bridge)
{
    return dv_spdy_unsent_bytes(bridge->spdy) + dv_ws_unsent_bytes(bridge->ws);
}

static bool is_over_tunnel(const struct dv_pod_bridge *bridge)
{
    return bridge->is_ws_over || dv_ws_is_over(bridge->ws) || dv_spdy_is_over(bridge->spdy);
}

static void end_tunnel(struct dv_pod_bridge *bridge, const struct dv_err *err)
{
    end(bridge, err);
    wrap(bridge);
    dv_ws_close(bridge->ws, DV_WS_NORMAL, DV_STR_NONE);
}

static const struct dv_pod_face face_tunnel = {
    .receive = receive_tunnel,
    .pull = pull_tunnel,
    .unsent_bytes = unsent_bytes_tunnel,
    .is_over = is_over_tunnel,
};

const struct dv_pod_relay dv_relay_tunnel = {
    .face = &face_tunnel,
    .begin = begin_tunnel,
    .end = end_tunnel,
    .free = free_sessions,
    .data = on_runtime_data,
    .finished = on_runtime_finished,
    .ended = on_runtime_ended,
};

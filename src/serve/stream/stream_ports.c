/* stream_ports.c - port-forward for a client with channels in a WebSocket: two for each port that
 * its query names, one connection each. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "serve/pod_stream.h"
#include "serve/stream/stream_bridge.h"
#include "serve/stream/stream_channels.h"
#include "upgrade/channels.h"
#include "upgrade/spdy.h"
#include "upgrade/spdy_streams.h"
#include "upgrade/websocket.h"

#define NUMBER_BYTES 16u

/* ---- the client ---- */

static void on_data(struct dv_channels_handler *handler, unsigned channel, dv_str bytes)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(handler, struct dv_pod_bridge, channels_handler);
    struct dv_spdy_stream *stream = bridge->port_streams[channel];

    if (stream && channel % 2 == 0)
        dv_stream_to_spdy(bridge, stream, bytes);
}

/* The end of the client is seen by dv_channels_is_over. */
static void on_ended(struct dv_channels_handler *handler, unsigned code, dv_str reason)
{
    (void)handler;
    (void)code;
    (void)reason;
}

/* ---- the runtime ---- */

static bool find_channel(const struct dv_pod_bridge *bridge, const struct dv_spdy_stream *stream,
                         unsigned *channel)
{
    for (size_t i = 0; i < bridge->n_port_streams; i++)
        if (bridge->port_streams[i] == stream) {
            *channel = (unsigned)i;
            return true;
        }
    return false;
}

static void on_runtime_data(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream,
                            dv_str bytes)
{
    unsigned channel;

    if (find_channel(bridge, stream, &channel))
        dv_stream_to_channel(bridge, channel, bytes);
}

/* A channel cannot be ended alone: the stream is, and with the last one the WebSocket. */
static void on_runtime_finished(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream)
{
    (void)bridge;
    dv_spdy_finish(stream);
}

static void on_runtime_ended(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream,
                             const struct dv_err *err)
{
    unsigned channel;

    (void)err;
    if (!find_channel(bridge, stream, &channel))
        return;
    bridge->port_streams[channel] = NULL;
    bridge->is_done = --bridge->n_open == 0;
}

static struct dv_spdy_stream *open_stream(struct dv_pod_bridge *bridge, size_t i,
                                          enum dv_stream_type type, struct dv_err *err)
{
    char port[NUMBER_BYTES];
    char request[NUMBER_BYTES];
    const struct dv_spdy_field fields[] = {
        {DV_STR("streamtype"), dv_stream_type_name(type)                                      },
        {DV_STR("port"),
         {port, (size_t)snprintf(port, sizeof(port), "%u", bridge->stream->options->ports[i])}},
        {DV_STR("requestid"),  {request, (size_t)snprintf(request, sizeof(request), "%zu", i)}},
    };

    return dv_spdy_open(bridge->runtime, fields, DV_COUNT(fields), NULL, err);
}

static bool open_port(struct dv_pod_bridge *bridge, size_t i, struct dv_err *err)
{
    uint16_t port = bridge->stream->options->ports[i];
    const char text[] = {(char)(port & 0xff), (char)(port >> 8)};
    struct dv_spdy_stream **streams = &bridge->port_streams[2 * i];

    streams[1] = open_stream(bridge, i, DV_STREAM_ERROR, err);
    streams[0] = streams[1] ? open_stream(bridge, i, DV_STREAM_DATA, err) : NULL;
    bridge->n_open += streams[0] ? 2u : streams[1] ? 1u : 0u;
    if (!streams[0])
        return false;
    dv_spdy_finish(streams[1]); /* nothing is said there but by the runtime */
    return dv_channels_send(bridge->channels, (unsigned)(2 * i), (dv_str){text, sizeof(text)},
                            err) &&
           dv_channels_send(bridge->channels, (unsigned)(2 * i + 1), (dv_str){text, sizeof(text)},
                            err);
}

static bool begin(struct dv_pod_bridge *bridge, struct dv_err *err)
{
    size_t n_ports = bridge->stream->options->n_ports;

    bridge->n_port_streams = 2 * n_ports;
    bridge->port_streams = dv_alloc(bridge->n_port_streams * sizeof(struct dv_spdy_stream *));
    bridge->channels_handler = (struct dv_channels_handler){.data = on_data, .ended = on_ended};
    dv_stream_open_channels(bridge, (unsigned)bridge->n_port_streams);
    for (size_t i = 0; i < n_ports; i++)
        if (!open_port(bridge, i, err))
            return false;
    return true;
}

static void end(struct dv_pod_bridge *bridge, const struct dv_err *err)
{
    dv_channels_end(bridge->channels, err ? DV_WS_INTERNAL_ERROR : DV_WS_NORMAL,
                    dv_str_from_c(err ? err->msg : ""));
}

static void free_relay(struct dv_pod_bridge *bridge)
{
    free(bridge->port_streams);
    dv_stream_channels_free(bridge);
}

const struct dv_pod_relay dv_relay_ports = {
    .face = &dv_stream_channels,
    .begin = begin,
    .end = end,
    .free = free_relay,
    .data = on_runtime_data,
    .finished = on_runtime_finished,
    .ended = on_runtime_ended,
};

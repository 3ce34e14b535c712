/* stream_exec.c - exec and attach for a client with channels in a WebSocket. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
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

#define FAILURE_BYTES_MAX (16u * 1024u)

static const unsigned channel_of[DV_N_STREAM_TYPES] = {
    [DV_STREAM_ERROR] = DV_CHANNEL_ERROR,   [DV_STREAM_STDIN] = DV_CHANNEL_STDIN,
    [DV_STREAM_STDOUT] = DV_CHANNEL_STDOUT, [DV_STREAM_STDERR] = DV_CHANNEL_STDERR,
    [DV_STREAM_RESIZE] = DV_CHANNEL_RESIZE,
};

/* Returns the runtime's stream for what a client sends; NULL: there is none. */
static struct dv_spdy_stream *stream_of(const struct dv_pod_bridge *bridge, unsigned channel)
{
    const struct dv_exec_streams *set = &bridge->at_runtime;

    if (channel == DV_CHANNEL_STDIN)
        return set->streams[DV_STREAM_STDIN];
    return channel == DV_CHANNEL_RESIZE ? set->streams[DV_STREAM_RESIZE] : NULL;
}

/* ---- the client ---- */

static void on_data(struct dv_channels_handler *handler, unsigned channel, dv_str bytes)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(handler, struct dv_pod_bridge, channels_handler);
    struct dv_spdy_stream *stream = stream_of(bridge, channel);

    if (stream)
        dv_stream_to_spdy(bridge, stream, bytes);
}

static void on_closed(struct dv_channels_handler *handler, unsigned channel)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(handler, struct dv_pod_bridge, channels_handler);
    struct dv_spdy_stream *stream = stream_of(bridge, channel);

    if (stream)
        dv_spdy_finish(stream);
}

/* The end of the client is seen by dv_channels_is_over. */
static void on_ended(struct dv_channels_handler *handler, unsigned code, dv_str reason)
{
    (void)handler;
    (void)code;
    (void)reason;
}

/* ---- the runtime ---- */

/* Nothing more comes on this stream. When that is so of all, the process has closed its output, and
 * how it ended is known. */
static void note_done(struct dv_pod_bridge *bridge, const struct dv_spdy_stream *stream)
{
    enum dv_stream_type type;

    if (!dv_exec_streams_find(&bridge->at_runtime, stream, &type) || type == DV_STREAM_STDIN ||
        type == DV_STREAM_RESIZE || bridge->is_silent[type])
        return;
    bridge->is_silent[type] = true;
    bridge->is_done = --bridge->n_open == 0;
}

static void on_runtime_data(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream,
                            dv_str bytes)
{
    enum dv_stream_type type;

    if (!dv_exec_streams_find(&bridge->at_runtime, stream, &type))
        return;
    bridge->has_status |= type == DV_STREAM_ERROR;
    dv_stream_to_channel(bridge, channel_of[type], bytes);
}

static void on_runtime_finished(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream)
{
    note_done(bridge, stream);
}

static void on_runtime_ended(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream,
                             const struct dv_err *err)
{
    enum dv_stream_type type;

    (void)err; /* the runtime resets streams at an orderly end, too */
    note_done(bridge, stream);
    if (dv_exec_streams_find(&bridge->at_runtime, stream, &type))
        bridge->at_runtime.streams[type] = NULL;
}

static bool begin(struct dv_pod_bridge *bridge, struct dv_err *err)
{
    const struct dv_pod_stream_options *options = bridge->stream->options;
    const struct dv_exec_request request = dv_bridge_exec_request(bridge);
    unsigned first = options->has_stdout   ? DV_CHANNEL_STDOUT
                     : options->has_stderr ? DV_CHANNEL_STDERR
                                           : DV_CHANNEL_ERROR;

    bridge->channels_handler =
        (struct dv_channels_handler){.data = on_data, .closed = on_closed, .ended = on_ended};
    dv_stream_open_channels(bridge, DV_N_CHANNELS);
    dv_exec_streams_init(&bridge->at_runtime, &request, bridge->version);
    bridge->n_open = 1u + options->has_stdout + options->has_stderr;
    /* Clients wait for a first message, as the reference sends one. */
    return dv_channels_send(bridge->channels, first, DV_STR_NONE, err) &&
           dv_exec_streams_open(&bridge->at_runtime, bridge->runtime, err);
}

/* The process may have ended well before the connection broke. */
static void end(struct dv_pod_bridge *bridge, const struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    bool has_status = bridge->channeled->has_status;
    struct dv_err missing;

    dv_buf_init(&text, FAILURE_BYTES_MAX);
    (void)dv_fail(&missing, DV_INTERNAL, "the container runtime did not say how the process ended");
    if (!bridge->has_status && (err || has_status)) {
        dv_stream_print_failure(has_status, err ? err : &missing, &text);
        dv_stream_to_channel(bridge, DV_CHANNEL_ERROR, dv_buf_str(&text));
    }
    dv_channels_end(bridge->channels, DV_WS_NORMAL, DV_STR_NONE);
}

const struct dv_pod_relay dv_relay_exec = {
    .face = &dv_stream_channels,
    .begin = begin,
    .end = end,
    .free = dv_stream_channels_free,
    .data = on_runtime_data,
    .finished = on_runtime_finished,
    .ended = on_runtime_ended,
};

#include "serve/stream/stream_channels.h"

#include "base/err.h"
#include "serve/stream/stream_bridge.h"
#include "upgrade/channels.h"
#include "upgrade/spdy.h"

void dv_stream_open_channels(struct dv_pod_bridge *bridge, unsigned n_channels)
{
    const struct dv_channels_options options = {
        .ws = {.unsent_bytes_max = DV_STREAM_UNSENT_BYTES_MAX},
        .protocol = bridge->channeled,
        .n_channels = n_channels,
    };

    bridge->channels = dv_channels_new(&options, &bridge->channels_handler);
}

void dv_stream_to_channel(struct dv_pod_bridge *bridge, unsigned channel, dv_str bytes)
{
    struct dv_err err;

    if (!dv_channels_send(bridge->channels, channel, bytes, &err) &&
        err.code == DV_RESOURCE_EXHAUSTED)
        dv_bridge_overrun(bridge);
}

void dv_stream_to_spdy(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream, dv_str bytes)
{
    size_t n = dv_spdy_send(stream, bytes);

    if (n > 0 && n < bytes.n) /* none at all: it has been finished, and nobody reads them */
        dv_bridge_overrun(bridge);
}

static bool receive(struct dv_pod_bridge *bridge, dv_str bytes, struct dv_err *err)
{
    return dv_channels_receive(bridge->channels, bytes, err);
}

static bool pull(struct dv_pod_bridge *bridge, dv_str *bytes)
{
    return dv_channels_pull(bridge->channels, bytes);
}

static size_t unsent_bytes(const struct dv_pod_bridge *bridge)
{
    return dv_channels_unsent_bytes(bridge->channels);
}

static bool is_over(const struct dv_pod_bridge *bridge)
{
    return dv_channels_is_over(bridge->channels);
}

const struct dv_pod_face dv_stream_channels = {
    .receive = receive, .pull = pull, .unsent_bytes = unsent_bytes, .is_over = is_over};

void dv_stream_channels_free(struct dv_pod_bridge *bridge)
{
    dv_channels_free(bridge->channels);
}

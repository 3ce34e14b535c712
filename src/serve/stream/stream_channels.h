/* stream_channels.h - what the relays for channels of a WebSocket share. */
#ifndef DV_SERVE_STREAM_CHANNELS_H
#define DV_SERVE_STREAM_CHANNELS_H

#include "base/str.h"
#include "serve/stream/stream_bridge.h"

struct dv_pod_bridge;
struct dv_pod_face;
struct dv_spdy_stream;

/* Makes the client's session; its handler has been set. */
void dv_stream_open_channels(struct dv_pod_bridge *bridge, unsigned n_channels);
/* Puts bytes out. Those that do not fit, which the pace excludes, end the bridge. */
void dv_stream_to_channel(struct dv_pod_bridge *bridge, unsigned channel, dv_str bytes);
void dv_stream_to_spdy(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream, dv_str bytes);

extern const struct dv_pod_face dv_stream_channels;
void dv_stream_channels_free(struct dv_pod_bridge *bridge);

#endif

/* channels.h - the streams of exec, attach and port-forward as channels of one WebSocket: the first
 * byte of a message says which. Bytes in, bytes out; no sockets, no clock.
 *
 *     bytes from the peer --> dv_channels_receive --> handler: data, closed, ended
 *     bytes to the peer   <-- dv_channels_pull    <-- dv_channels_send, dv_channels_end
 *
 * Handlers run inside dv_channels_receive. They may send and end; they must not receive, pull or
 * free the session that called. */
#ifndef DV_UPGRADE_CHANNELS_H
#define DV_UPGRADE_CHANNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "upgrade/websocket.h"

struct dv_channels;
struct dv_err;

/* The channels of exec and attach. Those of port-forward are 2n for the data and 2n + 1 for the
 * error of port n; the server begins each with the port as two bytes, the lower one first. */
enum dv_exec_channel {
    DV_CHANNEL_STDIN,
    DV_CHANNEL_STDOUT,
    DV_CHANNEL_STDERR,
    DV_CHANNEL_ERROR,
    DV_CHANNEL_RESIZE,
    DV_N_CHANNELS,
};

/* A WebSocket subprotocol. */
struct dv_channel_protocol {
    dv_str name;     /* may be empty */
    bool is_base64;  /* messages are text: the channel as a digit, then base64 */
    bool has_status; /* the error channel carries a Status as JSON; else plain text for failures */
    bool can_close;  /* a client can end a single channel, stdin for one */
};

/* What is served over WebSocket. The order has no meaning: clients choose by theirs. */
enum dv_channel_use {
    DV_CHANNELS_OF_EXEC, /* and of attach */
    DV_CHANNELS_OF_PORT_FORWARD,
};
/* Returns the names of its subprotocols, for dv_ws_accept. */
const dv_str *dv_channel_protocols(enum dv_channel_use use, size_t *n);
/* Returns NULL when there are no channels in it, as in DV_CHANNEL_TUNNEL. */
const struct dv_channel_protocol *dv_channel_protocol_find(dv_str name);
/* Port-forward of newer clients: the messages carry the bytes of a SPDY session (spdy.h). */
#define DV_CHANNEL_TUNNEL "SPDY/3.1+portforward.k8s.io"

struct dv_channels_handler {
    /* Bytes of a channel, never none. What a peer sends to a channel that is not there is dropped.
     */
    void (*data)(struct dv_channels_handler *handler, unsigned channel, dv_str bytes);
    /* The client has ended this channel. May be NULL. */
    void (*closed)(struct dv_channels_handler *handler, unsigned channel);
    /* The peer has closed the WebSocket: nothing more will come. */
    void (*ended)(struct dv_channels_handler *handler, unsigned code, dv_str reason);
};

struct dv_channels_options {
    struct dv_ws_options ws;
    const struct dv_channel_protocol *protocol;
    unsigned n_channels; /* at most 255 */
};

/* Makes a session for a connection whose handshake is done. `handler` is kept for its life. */
struct dv_channels *dv_channels_new(const struct dv_channels_options *options,
                                    struct dv_channels_handler *handler);
void dv_channels_free(struct dv_channels *channels); /* NULL is fine */

/* These are as in websocket.h. */
DV_CHECKED bool dv_channels_receive(struct dv_channels *channels, dv_str bytes, struct dv_err *err);
bool dv_channels_pull(struct dv_channels *channels, dv_str *bytes);
bool dv_channels_is_over(const struct dv_channels *channels);
size_t dv_channels_unsent_bytes(const struct dv_channels *channels);
void dv_channels_ping(struct dv_channels *channels);

/* Sends bytes on a channel, in messages of at most 32 KiB; no bytes make an empty message, which
 * tells that the channel is there. DV_RESOURCE_EXHAUSTED: too much waits already, and nothing was
 * sent. DV_FAILED_PRECONDITION: we have ended. */
DV_CHECKED bool dv_channels_send(struct dv_channels *channels, unsigned channel, dv_str bytes,
                                 struct dv_err *err);
/* Client: ends a channel, where the protocol can. DV_UNIMPLEMENTED: it cannot. */
DV_CHECKED bool dv_channels_close(struct dv_channels *channels, unsigned channel,
                                  struct dv_err *err);
/* Closes the WebSocket after what was sent. Clients take any other code than DV_WS_NORMAL for a
 * failure. */
void dv_channels_end(struct dv_channels *channels, enum dv_ws_code code, dv_str reason);

#endif

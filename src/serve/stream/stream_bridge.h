/* stream_bridge.h - one client joined to the runtime, which the files of this folder share.
 *
 *     ASKING    the runtime is asked for the address of a stream (CRI)
 *     DIALLING  that is connected to, and leaves HTTP for SPDY
 *     OPEN      the client has got its 101: bytes both ways, through a relay
 *     CLOSING   the client gets what is left for it, and the end; the runtime is not heard any more
 *     GONE      the client's connection has ended
 *
 * A relay is one way to speak with the client. It holds the client's session, opens streams at the
 * runtime, and puts what comes on one side out on the other. */
#ifndef DV_SERVE_STREAM_BRIDGE_H
#define DV_SERVE_STREAM_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "cri/cri.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "upgrade/channels.h"
#include "upgrade/spdy.h"
#include "upgrade/spdy_streams.h"
#include "upgrade/websocket.h"

struct dv_buf;
struct dv_pod_bridge;
struct dv_pod_stream;
struct dv_pod_streams;

/* What a relay's session may hold beyond the limits of the bridge, see pace() in stream_bridge.c: a
 * chunk that was read is put out whole, whatever it becomes in the other protocol. */
#define DV_STREAM_UNSENT_BYTES_MAX (1024u * 1024u)
/* Connections of one port-forward at once, of two streams each. */
#define DV_STREAM_PAIRS_MAX 512u
/* How long the client may take to open all streams of an exec, as in the reference. */
#define DV_STREAM_CREATION_MS 30000u

/* The client's session. */
struct dv_pod_face {
    /* Handles bytes of the client. False: it broke its protocol. */
    bool (*receive)(struct dv_pod_bridge *bridge, dv_str bytes, struct dv_err *err);
    /* As those functions of the sessions. */
    bool (*pull)(struct dv_pod_bridge *bridge, dv_str *bytes);
    size_t (*unsent_bytes)(const struct dv_pod_bridge *bridge);
    /* Whether the client has ended, or broke its protocol. */
    bool (*is_over)(const struct dv_pod_bridge *bridge);
};

struct dv_pod_relay {
    const struct dv_pod_face *face;
    /* The client has its 101, and the runtime can be sent to. */
    bool (*begin)(struct dv_pod_bridge *bridge, struct dv_err *err);
    /* Nothing more comes from the runtime: tells the client so. err is NULL when that is as it
     * should be. Runs once. */
    void (*end)(struct dv_pod_bridge *bridge, const struct dv_err *err);
    void (*free)(struct dv_pod_bridge *bridge);
    /* What happens to a stream at the runtime, as in struct dv_spdy_handler. */
    void (*data)(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream, dv_str bytes);
    void (*finished)(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream);
    void (*ended)(struct dv_pod_bridge *bridge, struct dv_spdy_stream *stream,
                  const struct dv_err *err);
};

extern const struct dv_pod_relay dv_relay_exec;   /* exec and attach in channels of a WebSocket */
extern const struct dv_pod_relay dv_relay_ports;  /* port-forward in channels of a WebSocket */
extern const struct dv_pod_relay dv_relay_spdy;   /* all of them in SPDY */
extern const struct dv_pod_relay dv_relay_tunnel; /* port-forward in SPDY in a WebSocket */

enum dv_bridge_state {
    DV_BRIDGE_ASKING,
    DV_BRIDGE_DIALLING,
    DV_BRIDGE_OPEN,
    DV_BRIDGE_CLOSING,
    DV_BRIDGE_GONE,
};

struct dv_pod_bridge {
    struct dv_pod_streams *streams;
    struct dv_link link;
    struct dv_loop *loop;
    struct dv_pod_stream *stream; /* NULL: it was told that it ended, or was refused */
    struct dv_task task;          /* starts it */
    enum dv_bridge_state state;
    bool is_cancelled;
    struct dv_err err; /* why it ends; code DV_OK: as it should */
    bool is_settled;   /* `err` is set */
    bool is_ended;     /* the relay was told that nothing more comes */

    /* What was agreed on with the client. */
    const struct dv_pod_relay *relay;
    dv_str protocol;                 /* subprotocol, or version of streams */
    char accept[DV_WS_ACCEPT_BYTES]; /* of a WebSocket */
    const struct dv_channel_protocol
        *channeled;                        /* how channels are carried; NULL: there are none */
    const struct dv_exec_version *version; /* spoken with the runtime, for exec */

    /* The runtime's side. */
    struct dv_cri_call cri;
    bool is_asking;
    struct dv_rest_client *client; /* NULL: none yet */
    struct dv_rest_dial dial;
    bool is_dialled; /* it has not ended yet */
    struct dv_spdy *runtime;
    struct dv_spdy_handler runtime_handler;

    /* The client's side. */
    struct dv_rest_tunnel tunnel;
    bool is_tunnelled; /* it has not ended yet */
    bool is_finished;  /* nothing more is handed to it */
    struct dv_channels *channels;
    struct dv_channels_handler channels_handler;
    struct dv_ws *ws;
    struct dv_ws_handler ws_handler;
    struct dv_spdy *spdy;
    struct dv_spdy_handler spdy_handler;
    bool is_ws_over;

    struct dv_exec_streams at_runtime; /* of exec in channels */
    bool has_status;                   /* something has come on its error stream */
    struct dv_exec_streams at_client;  /* of exec in SPDY */
    struct dv_timer timer;             /* for them to be complete */
    struct dv_list hops;               /* streams of a client in SPDY, see stream_spdy.c */
    struct dv_port_pairs pairs;
    struct dv_spdy_stream **port_streams; /* by channel; NULL: ended */
    size_t n_port_streams;
    size_t n_open;                     /* streams at the runtime that something may still come on */
    bool is_silent[DV_N_STREAM_TYPES]; /* those of exec that nothing comes on any more */
    bool is_done;                      /* a relay: nothing more comes from the runtime */
};

/* Returns which streams of an exec the client wants. */
struct dv_exec_request dv_bridge_exec_request(const struct dv_pod_bridge *bridge);

/* Starts to speak with both sides: the runtime has answered 101. */
void dv_bridge_open(struct dv_pod_bridge *bridge);
/* Ends an open bridge: what is left for the client is sent, and what `err` says. NULL: it ends as
 * it should. */
void dv_bridge_end(struct dv_pod_bridge *bridge, const struct dv_err *err);
/* The bytes could not all be put out, which the pace excludes: breaks off. */
void dv_bridge_overrun(struct dv_pod_bridge *bridge);
/* The client's tunnel or the dial has ended; frees the bridge when both have. */
void dv_bridge_release(struct dv_pod_bridge *bridge);

/* Prints what the error stream of an exec carries that failed, not by its process. */
void dv_stream_print_failure(bool has_status, const struct dv_err *err, struct dv_buf *text);

#endif

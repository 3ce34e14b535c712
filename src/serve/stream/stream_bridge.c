/* stream_bridge.c - bytes between a client and the runtime, and when one of them is not read. */
#include "serve/stream/stream_bridge.h"

#include "base/buf.h"
#include "serve/pod_stream.h"

/* While more than this waits for one side, the other one is not read. */
#define HIGH_BYTES (128u * 1024u)
/* What waits for a side can grow beyond that by one chunk that was read, and by answers to what the
 * side itself sends (pings, refused streams). With more than this, it sends and does not read: then
 * it is not read either. */
#define FLOOD_BYTES (512u * 1024u)
/* Bytes are handed to a connection while less than this waits in it. */
#define HANDED_BYTES_MAX (64u * 1024u)

/* ---- pace ---- */

static size_t client_backlog(const struct dv_pod_bridge *bridge)
{
    return bridge->relay->face->unsent_bytes(bridge) + dv_rest_tunnel_unsent_bytes(&bridge->tunnel);
}

static size_t runtime_backlog(const struct dv_pod_bridge *bridge)
{
    return dv_spdy_unsent_bytes(bridge->runtime) + dv_rest_dial_unsent_bytes(&bridge->dial);
}

static void pace(struct dv_pod_bridge *bridge)
{
    size_t for_client = client_backlog(bridge);
    size_t for_runtime = runtime_backlog(bridge);

    if (bridge->is_tunnelled)
        dv_rest_tunnel_pause(&bridge->tunnel, for_runtime > HIGH_BYTES || for_client > FLOOD_BYTES);
    if (bridge->is_dialled)
        dv_rest_dial_pause(&bridge->dial, for_client > HIGH_BYTES || for_runtime > FLOOD_BYTES);
}

static bool push_to_runtime(struct dv_pod_bridge *bridge)
{
    struct dv_err err;
    dv_str bytes;

    if (!bridge->is_dialled || bridge->state != DV_BRIDGE_OPEN ||
        dv_rest_dial_unsent_bytes(&bridge->dial) >= HANDED_BYTES_MAX ||
        !dv_spdy_pull(bridge->runtime, &bytes))
        return false;
    if (!dv_rest_dial_send(&bridge->dial, bytes, &err))
        dv_rest_dial_cancel(&bridge->dial); /* it is ending already, or takes nothing at all */
    return true;
}

static bool push_to_client(struct dv_pod_bridge *bridge)
{
    struct dv_err err;
    dv_str bytes;

    if (!bridge->is_tunnelled || bridge->is_finished ||
        dv_rest_tunnel_unsent_bytes(&bridge->tunnel) >= HANDED_BYTES_MAX ||
        !bridge->relay->face->pull(bridge, &bytes))
        return false;
    if (!dv_rest_tunnel_send(&bridge->tunnel, bytes, &err))
        dv_rest_tunnel_cancel(&bridge->tunnel);
    return true;
}

/* Moves what can be moved; then looks whether that was all there will be. */
static void pump(struct dv_pod_bridge *bridge)
{
    bool has_moved = true;

    while (has_moved) {
        has_moved = push_to_runtime(bridge);
        has_moved |= push_to_client(bridge);
    }
    if (bridge->state == DV_BRIDGE_OPEN && bridge->relay->face->is_over(bridge))
        bridge->state = DV_BRIDGE_CLOSING;
    if (bridge->state == DV_BRIDGE_OPEN && bridge->is_done) {
        dv_bridge_end(bridge, NULL); /* pumps again */
        return;
    }
    pace(bridge);
    if (bridge->state != DV_BRIDGE_CLOSING)
        return;
    if (bridge->is_dialled) /* what the client has sent goes out while the client is there */
        dv_rest_dial_finish(&bridge->dial);
    if (bridge->is_tunnelled && bridge->relay->face->unsent_bytes(bridge) == 0) {
        bridge->is_finished = true;
        dv_rest_tunnel_finish(&bridge->tunnel);
    }
}

void dv_bridge_end(struct dv_pod_bridge *bridge, const struct dv_err *err)
{
    if (bridge->is_ended || bridge->state != DV_BRIDGE_OPEN)
        return;
    bridge->is_ended = true;
    if (err && !bridge->is_settled)
        bridge->err = *err;
    bridge->is_settled = true;
    bridge->relay->end(bridge, err);
    bridge->state = DV_BRIDGE_CLOSING;
    pump(bridge);
}

void dv_bridge_overrun(struct dv_pod_bridge *bridge)
{
    dv_rest_tunnel_cancel(&bridge->tunnel);
    dv_rest_dial_cancel(&bridge->dial);
}

/* ---- the client ---- */

static void on_client_bytes(struct dv_rest_tunnel *tunnel, dv_str bytes)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(tunnel, struct dv_pod_bridge, tunnel);
    struct dv_err err;

    if (!bridge->relay->face->receive(bridge, bytes, &err) && !bridge->is_settled) {
        bridge->err = err;
        bridge->is_settled = true;
    }
    pump(bridge);
}

static void on_client_room(struct dv_rest_tunnel *tunnel)
{
    pump(DV_CONTAINER(tunnel, struct dv_pod_bridge, tunnel));
}

/* The call and what lies in its arena go with this. */
static void on_client_ended(struct dv_rest_tunnel *tunnel, const struct dv_err *err)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(tunnel, struct dv_pod_bridge, tunnel);
    struct dv_pod_stream *stream = bridge->stream;

    bridge->is_tunnelled = false;
    bridge->state = DV_BRIDGE_GONE;
    if (err && !bridge->is_settled)
        bridge->err = *err;
    bridge->is_settled = true;
    bridge->stream = NULL;
    stream->priv = NULL;
    dv_rest_dial_cancel(&bridge->dial);
    stream->ended(stream, bridge->err.code == DV_OK ? NULL : &bridge->err);
    dv_bridge_release(bridge);
}

/* ---- the runtime ---- */

static struct dv_pod_bridge *of_handler(struct dv_spdy_handler *handler)
{
    return DV_CONTAINER(handler, struct dv_pod_bridge, runtime_handler);
}

static void on_data(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream, dv_str bytes)
{
    struct dv_pod_bridge *bridge = of_handler(handler);

    if (bridge->state == DV_BRIDGE_OPEN)
        bridge->relay->data(bridge, stream, bytes);
}

static void on_finished(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    struct dv_pod_bridge *bridge = of_handler(handler);

    if (bridge->state == DV_BRIDGE_OPEN)
        bridge->relay->finished(bridge, stream);
}

static void on_stream_ended(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                            const struct dv_err *err)
{
    struct dv_pod_bridge *bridge = of_handler(handler);

    bridge->relay->ended(bridge, stream, err);
}

static void on_runtime_bytes(struct dv_rest_dial *dial, dv_str bytes)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(dial, struct dv_pod_bridge, dial);
    struct dv_err err;

    if (bridge->state != DV_BRIDGE_OPEN)
        return;
    if (!dv_spdy_receive(bridge->runtime, bytes, &err)) {
        (void)dv_wrap(&err, "container runtime");
        dv_bridge_end(bridge, &err);
        return;
    }
    pump(bridge);
}

static void on_runtime_room(struct dv_rest_dial *dial)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(dial, struct dv_pod_bridge, dial);

    if (bridge->state == DV_BRIDGE_OPEN)
        pump(bridge);
}

/* The connection to the runtime has ended: after the last bytes, or in their midst. */
static void on_runtime_ended(struct dv_rest_dial *dial, const struct dv_err *err)
{
    struct dv_pod_bridge *bridge = DV_CONTAINER(dial, struct dv_pod_bridge, dial);
    struct dv_err lost;

    (void)dv_fail(&lost, DV_UNAVAILABLE, "%s", err ? err->msg : "the runtime has closed");
    bridge->is_dialled = false;
    dv_bridge_end(bridge, err ? &lost : NULL); /* before the streams, which end by it */
    dv_spdy_lose(bridge->runtime, &lost);
    dv_bridge_release(bridge);
}

struct dv_exec_request dv_bridge_exec_request(const struct dv_pod_bridge *bridge)
{
    const struct dv_pod_stream_options *options = bridge->stream->options;

    return (struct dv_exec_request){.has_stdin = options->has_stdin,
                                    .has_stdout = options->has_stdout,
                                    .has_stderr = options->has_stderr,
                                    .has_tty = options->has_tty};
}

void dv_bridge_open(struct dv_pod_bridge *bridge)
{
    const struct dv_spdy_options options = {.is_client = true,
                                            .unsent_bytes_max = DV_STREAM_UNSENT_BYTES_MAX};
    struct dv_err err;

    bridge->state = DV_BRIDGE_OPEN;
    bridge->dial.received = on_runtime_bytes;
    bridge->dial.room = on_runtime_room;
    bridge->dial.ended = on_runtime_ended;
    bridge->tunnel.received = on_client_bytes;
    bridge->tunnel.room = on_client_room;
    bridge->tunnel.ended = on_client_ended;
    bridge->runtime_handler = (struct dv_spdy_handler){
        .data = on_data, .finished = on_finished, .ended = on_stream_ended};
    bridge->runtime = dv_spdy_new(&options, &bridge->runtime_handler);
    if (!bridge->relay->begin(bridge, &err))
        dv_bridge_end(bridge, &err);
    else
        pump(bridge);
}

/* ---- the end ---- */

void dv_stream_print_failure(bool has_status, const struct dv_err *err, struct dv_buf *text)
{
    if (!has_status) {
        dv_buf_add_c(text, err->msg);
        return;
    }
    dv_buf_add_c(text, "{\"metadata\":{},\"status\":\"Failure\",\"message\":");
    dv_buf_add_json(text, dv_str_from_c(err->msg));
    dv_buf_add_c(text, ",\"reason\":\"InternalError\",\"details\":{\"causes\":[{\"message\":");
    dv_buf_add_json(text, dv_str_from_c(err->msg));
    dv_buf_add_c(text, "}]},\"code\":500}");
}

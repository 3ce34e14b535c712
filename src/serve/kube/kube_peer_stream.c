/* kube_peer_stream.c - exec, attach and port-forward in a pod on another node: that node's own API
 * speaks with the client; the bytes between them go through here as they are. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "base/vec.h"
#include "rest/rest.h"
#include "serve/kube/kube_call.h"
#include "serve/pod_stream.h"
#include "serve/tokens.h"

/* While more than this waits for one side, the other one is not read. */
#define HIGH_BYTES (128u * 1024u)
/* The longest time without a byte in either direction: the reference's. */
#define IDLE_MS (4u * 60u * 60u * 1000u)
/* Of what a client may send as the head of its request, encoded anew. */
#define QUERY_BYTES_MAX (256u * 1024u)

struct peer_stream {
    struct dv_kube_peer_call peer_call;
    struct dv_kube *kube;
    struct dv_kube_call *call; /* NULL: it has been answered, or has ended */
    struct dv_rest_client *client;
    struct dv_rest_dial dial;
    struct dv_rest_tunnel tunnel;
    struct dv_token_use use; /* use of the token that it was begun with */
    dv_str node;             /* in the arena of the call */
    bool is_dialled;         /* it has not ended yet */
    bool is_tunnelled;       /* as is_dialled */
};

/* What the client says about the protocol that it wants, and the node about the one that it takes:
 * handed on. */
static const dv_str asked[] = {
    DV_STR_INIT("Upgrade"),
    DV_STR_INIT("X-Stream-Protocol-Version"),
    DV_STR_INIT("Sec-WebSocket-Key"),
    DV_STR_INIT("Sec-WebSocket-Version"),
    DV_STR_INIT("Sec-WebSocket-Protocol"),
};
static const dv_str taken[] = {
    DV_STR_INIT("X-Stream-Protocol-Version"),
    DV_STR_INIT("Sec-WebSocket-Accept"),
    DV_STR_INIT("Sec-WebSocket-Protocol"),
};

static bool is_one_of(const dv_str *names, size_t n_names, dv_str name)
{
    for (size_t i = 0; i < n_names; i++)
        if (dv_str_eq_nocase(names[i], name))
            return true;
    return false;
}

/* ---- the end ---- */

static void cancel(struct dv_kube_peer_call *peer_call)
{
    struct peer_stream *stream = DV_CONTAINER(peer_call, struct peer_stream, peer_call);

    if (stream->is_tunnelled)
        dv_rest_tunnel_cancel(&stream->tunnel);
    dv_rest_dial_cancel(&stream->dial);
}

static void on_token_ended(struct dv_token_use *use)
{
    cancel(&DV_CONTAINER(use, struct peer_stream, use)->peer_call);
}

/* The client has its answer, or is gone: the API is not used any more. */
static void leave(struct peer_stream *stream)
{
    dv_token_use_end(&stream->use);
    dv_link_remove(&stream->peer_call.link);
    stream->call = NULL;
}

static void release(struct peer_stream *stream)
{
    if (stream->is_dialled || stream->is_tunnelled)
        return;
    dv_rest_client_close(stream->client, NULL, NULL);
    free(stream);
}

/* ---- bytes ---- */

static void pace(struct peer_stream *stream)
{
    dv_rest_tunnel_pause(&stream->tunnel, dv_rest_dial_unsent_bytes(&stream->dial) > HIGH_BYTES);
    dv_rest_dial_pause(&stream->dial, dv_rest_tunnel_unsent_bytes(&stream->tunnel) > HIGH_BYTES);
}

static void on_client_bytes(struct dv_rest_tunnel *tunnel, dv_str bytes)
{
    struct peer_stream *stream = DV_CONTAINER(tunnel, struct peer_stream, tunnel);
    struct dv_err err;

    if (!dv_rest_dial_send(&stream->dial, bytes, &err))
        dv_rest_dial_cancel(&stream->dial); /* it is ending already */
    pace(stream);
}

static void on_client_room(struct dv_rest_tunnel *tunnel)
{
    pace(DV_CONTAINER(tunnel, struct peer_stream, tunnel));
}

static void on_client_ended(struct dv_rest_tunnel *tunnel, const struct dv_err *err)
{
    struct peer_stream *stream = DV_CONTAINER(tunnel, struct peer_stream, tunnel);
    struct dv_kube *kube = stream->kube;

    (void)err; /* the client knows */
    stream->is_tunnelled = false;
    leave(stream);
    dv_rest_dial_cancel(&stream->dial);
    release(stream);
    dv_kube_release(kube);
}

static void on_node_bytes(struct dv_rest_dial *dial, dv_str bytes)
{
    struct peer_stream *stream = DV_CONTAINER(dial, struct peer_stream, dial);
    struct dv_err err;

    if (stream->is_tunnelled && !dv_rest_tunnel_send(&stream->tunnel, bytes, &err))
        dv_rest_tunnel_cancel(&stream->tunnel); /* it is ending already */
    pace(stream);
}

static void on_node_room(struct dv_rest_dial *dial)
{
    pace(DV_CONTAINER(dial, struct peer_stream, dial));
}

static void on_node_ended(struct dv_rest_dial *dial, const struct dv_err *err)
{
    struct peer_stream *stream = DV_CONTAINER(dial, struct peer_stream, dial);
    struct dv_kube_call *call = stream->call;

    stream->is_dialled = false;
    if (stream->is_tunnelled) {
        dv_rest_tunnel_pause(&stream->tunnel, false);
        dv_rest_tunnel_finish(&stream->tunnel); /* the client gets what the node has sent */
    } else if (call) {
        leave(stream);
        if (err->code == DV_FAILED_PRECONDITION)
            dv_kube_reply_peer_refusal(call, stream->node, dial->status, dial->answer);
        else
            dv_kube_reply_peer_error(call, "error dialing backend: ", err);
    }
    release(stream);
}

/* ---- the beginning ---- */

/* The node goes on with another protocol: so does the client. */
static void on_opened(struct dv_rest_dial *dial)
{
    struct peer_stream *stream = DV_CONTAINER(dial, struct peer_stream, dial);
    struct dv_kube_call *call = stream->call;
    struct dv_err err;

    for (size_t i = 0; i < dial->n_fields; i++)
        if (is_one_of(taken, DV_COUNT(taken), dial->fields[i].name))
            dv_rest_call_add_field(call->rest, dial->fields[i].name, dial->fields[i].value);
    stream->tunnel = (struct dv_rest_tunnel){.received = on_client_bytes,
                                             .room = on_client_room,
                                             .ended = on_client_ended,
                                             .idle_ms = IDLE_MS};
    if (dv_rest_call_upgrade(call->rest, dv_rest_dial_field(dial, DV_STR("Upgrade")),
                             &stream->tunnel, &err)) {
        stream->is_tunnelled = true;
        dv_kube_count(call, 101);
        return;
    }
    leave(stream);
    dv_rest_dial_cancel(dial);
    dv_kube_reply_peer_refusal(call, stream->node, 400, dv_str_from_c(err.msg));
}

static dv_str print_target(const struct dv_kube_call *call, dv_str container,
                           const struct dv_pod_stream_options *options)
{
    static const char *const verbs[] = {
        [DV_POD_EXEC] = "exec",
        [DV_POD_ATTACH] = "attach",
        [DV_POD_PORT_FORWARD] = "portForward",
    };
    const struct dv_route *route = &call->route;
    DV_CLEANUP(dv_buf_fini) struct dv_buf query;

    dv_buf_init(&query, QUERY_BYTES_MAX);
    dv_pod_stream_print(options, &query);
    return dv_str_printf(call->arena, "/%s/%.*s/%.*s%s%.*s?%.*s", verbs[options->verb],
                         DV_FMT(route->namespace), DV_FMT(route->name), container.n > 0 ? "/" : "",
                         DV_FMT(container), DV_FMT(dv_buf_str(&query)));
}

void dv_kube_peer_stream(struct dv_kube_call *call, dv_str node, dv_str container,
                         const struct dv_pod_stream_options *options)
{
    struct dv_kube *kube = call->kube;
    const struct dv_rest_request *request = call->request;
    DV_VEC(struct dv_rest_field) fields = {0};
    struct peer_stream *stream;
    struct dv_rest_client *client;

    if (dv_rest_request_field(request, DV_STR("Upgrade")).n == 0) {
        dv_kube_reply_peer_refusal(call, node, 400, DV_STR("Upgrade request required"));
        return;
    }
    if (!dv_kube_open_peer(call, node, &client))
        return;
    *dv_vec_add_in(&fields, call->arena) =
        (struct dv_rest_field){DV_STR("Connection"), DV_STR("Upgrade")};
    for (size_t i = 0; i < request->n_fields; i++)
        if (is_one_of(asked, DV_COUNT(asked), request->fields[i].name))
            *dv_vec_add_in(&fields, call->arena) = request->fields[i];
    stream = DV_ALLOC(struct peer_stream);
    stream->kube = kube;
    stream->call = call;
    stream->client = client;
    stream->node = dv_str_copy(node, call->arena);
    stream->is_dialled = true;
    stream->peer_call.cancel = cancel;
    dv_list_push(&kube->peer_calls, &stream->peer_call.link);
    stream->dial = (struct dv_rest_dial){.method = request->method,
                                         .target = print_target(call, container, options),
                                         .fields = fields.v,
                                         .n_fields = fields.n,
                                         .opened = on_opened,
                                         .received = on_node_bytes,
                                         .room = on_node_room,
                                         .ended = on_node_ended};
    dv_rest_dial_start(client, &stream->dial);
    stream->use.ended = on_token_ended;
    if (call->token_hash.n &&
        !dv_token_use_begin(&stream->use, kube->options.tokens, call->token_hash))
        on_token_ended(&stream->use);
}

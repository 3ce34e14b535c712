/* kube_peer_log.c - the log of a container on another node: asked of that node's own API, and
 * handed on as it comes. The node is not read while the client does not read. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "rest/rest.h"
#include "serve/kube/kube_call.h"
#include "serve/tokens.h"

/* While more than this waits for the client, the node is not read. */
#define HIGH_BYTES (128u * 1024u)
/* The longest time without a line of a log that is followed: the reference's. */
#define IDLE_MS (4u * 60u * 60u * 1000u)

struct peer_log {
    struct dv_kube_peer_call peer_call;
    struct dv_kube *kube;
    struct dv_kube_call *call; /* NULL: it is being answered, or was */
    struct dv_rest_client *client;
    struct dv_rest_fetch fetch;
    struct dv_rest_stream stream;
    struct dv_token_use use; /* use of the token that it was begun with */
    dv_str node;             /* in the arena of the call */
    bool is_fetching;
    bool is_streaming;
    bool is_admins;
};

static void cancel(struct dv_kube_peer_call *peer_call)
{
    struct peer_log *log = DV_CONTAINER(peer_call, struct peer_log, peer_call);

    if (log->is_streaming)
        dv_rest_stream_cancel(&log->stream);
    dv_rest_fetch_cancel(&log->fetch);
}

static void on_token_ended(struct dv_token_use *use)
{
    cancel(&DV_CONTAINER(use, struct peer_log, use)->peer_call);
}

/* The client has, or will have, its answer: the API is not used any more. */
static void leave(struct peer_log *log)
{
    dv_token_use_end(&log->use);
    dv_link_remove(&log->peer_call.link);
    log->kube->n_logs_of_others -= !log->is_admins;
    log->kube = NULL;
}

static void release(struct peer_log *log)
{
    if (log->is_fetching || log->is_streaming)
        return;
    dv_rest_client_close(log->client, NULL, NULL);
    free(log);
}

/* ---- the client ---- */

static void on_room(struct dv_rest_stream *stream)
{
    dv_rest_fetch_pause(&DV_CONTAINER(stream, struct peer_log, stream)->fetch, false);
}

static void on_stream_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    struct peer_log *log = DV_CONTAINER(stream, struct peer_log, stream);
    struct dv_kube *kube = log->kube;

    (void)err; /* the client knows */
    log->is_streaming = false;
    leave(log);
    dv_rest_fetch_cancel(&log->fetch);
    release(log);
    dv_kube_release(kube);
}

/* ---- the node ---- */

static void on_head(struct dv_rest_fetch *fetch)
{
    struct peer_log *log = DV_CONTAINER(fetch, struct peer_log, fetch);
    struct dv_kube_call *call = log->call;

    log->call = NULL;
    log->is_streaming = true;
    log->stream.room = on_room;
    log->stream.ended = on_stream_ended;
    dv_kube_add_fields(call, "text/plain");
    dv_kube_count(call, 200);
    dv_rest_stream_start(&log->stream, call->rest, 200);
}

static void on_body(struct dv_rest_fetch *fetch, dv_str part)
{
    struct peer_log *log = DV_CONTAINER(fetch, struct peer_log, fetch);
    struct dv_err err;

    if (!log->is_streaming)
        return; /* the fetch is being cancelled */
    if (!dv_rest_stream_send(&log->stream, part, &err))
        dv_rest_stream_cancel(&log->stream);
    if (dv_rest_stream_unsent_bytes(&log->stream) > HIGH_BYTES)
        dv_rest_fetch_pause(fetch, true);
}

static void on_done(struct dv_rest_fetch *fetch, const struct dv_err *err)
{
    struct peer_log *log = DV_CONTAINER(fetch, struct peer_log, fetch);
    struct dv_kube_call *call = log->call;

    log->is_fetching = false;
    if (log->is_streaming && err)
        dv_rest_stream_cancel(&log->stream);
    else if (log->is_streaming)
        dv_rest_stream_finish(&log->stream);
    if (call) {
        leave(log);
        if (err)
            dv_kube_reply_peer_error(call, "", err);
        else
            dv_kube_reply_peer_refusal(call, log->node, fetch->status, fetch->answer);
    }
    release(log);
}

void dv_kube_peer_log(struct dv_kube_call *call, dv_str node, dv_str container, bool is_admins)
{
    struct dv_kube *kube = call->kube;
    const struct dv_route *route = &call->route;
    struct dv_rest_client *client;
    struct peer_log *log;

    if (!dv_kube_open_peer(call, node, &client))
        return;
    log = DV_ALLOC(struct peer_log);
    log->kube = kube;
    log->call = call;
    log->client = client;
    log->node = dv_str_copy(node, call->arena);
    log->is_admins = is_admins;
    log->is_fetching = true;
    log->peer_call.cancel = cancel;
    dv_list_push(&kube->peer_calls, &log->peer_call.link);
    kube->n_logs_of_others += !is_admins;
    log->fetch = (struct dv_rest_fetch){
        .method = DV_STR("GET"),
        /* Names have no characters that must be encoded, and nodes read the same query. */
        .target = dv_str_printf(call->arena, "/containerLogs/%.*s/%.*s/%.*s?%.*s",
                                DV_FMT(route->namespace), DV_FMT(route->name), DV_FMT(container),
                                DV_FMT(call->request->query)),
        .idle_ms = IDLE_MS,
        .on_head = on_head,
        .on_body = on_body,
        .done = on_done};
    dv_rest_fetch_start(client, &log->fetch);
    log->use.ended = on_token_ended;
    if (call->token_hash.n &&
        !dv_token_use_begin(&log->use, kube->options.tokens, call->token_hash))
        on_token_ended(&log->use);
}

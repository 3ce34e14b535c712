/* kube_node.c - davit's own part of the API: the node, for pages.
 *
 *     GET /davit/v1/node               one document
 *     GET /davit/v1/node?watch=true    a line with a document now, and with what has changed then
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/kube/kube_call.h"
#include "serve/node/node_feed.h"
#include "serve/tokens.h"

struct watch {
    struct dv_kube *kube;
    struct dv_feed_watch feed;
    struct dv_token_use use; /* use of the token that the watch was begun with */
};

static void on_token_ended(struct dv_token_use *use)
{
    dv_rest_stream_cancel(&DV_CONTAINER(use, struct watch, use)->feed.stream);
}

static void on_ended(struct dv_feed_watch *feed)
{
    struct watch *watch = DV_CONTAINER(feed, struct watch, feed);
    struct dv_kube *kube = watch->kube;

    dv_token_use_end(&watch->use);
    free(watch);
    dv_kube_release(kube);
}

static void start_watch(struct dv_kube_call *call)
{
    struct watch *watch = DV_ALLOC(struct watch);
    struct dv_tokens *tokens = call->kube->options.tokens;
    dv_str hash = call->token_hash;

    watch->kube = call->kube;
    watch->feed.ended = on_ended;
    watch->feed.is_once = !dv_query_is_true(call->query.watch);
    dv_kube_add_fields(call, "application/json");
    dv_kube_count(call, 200);
    dv_feed_watch_start(call->kube->options.feed, &watch->feed, call->rest);
    watch->use.ended = on_token_ended;
    if (hash.n && !dv_token_use_begin(&watch->use, tokens, hash))
        on_token_ended(&watch->use);
}

void dv_kube_serve_node(struct dv_kube_call *call)
{
    const struct dv_node_feed *feed = call->kube->options.feed;

    if (!dv_str_eq(call->request->method, DV_STR("GET")))
        dv_kube_reply_status(call, dv_status_method_not_allowed(call->arena));
    else if (!feed || dv_node_feed_is_stopped(feed))
        dv_kube_reply_status(call, dv_status_new(503, DV_STR("ServiceUnavailable"), call->arena,
                                                 "the node is not served now"));
    else
        start_watch(call);
}

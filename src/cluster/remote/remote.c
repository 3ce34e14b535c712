/* remote.c - the engine over a real API server: one HTTP client for all requests and views, the
 * token and its renewal, and the versions of each kind that the server has. */
#include "cluster/remote.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/remote/remote_engine.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "rest/rest.h"

#define PAGE_OBJECTS 500u

static const struct dv_cluster_engine engine = {
    .view_open = dv_remote_view_open,
    .view_close = dv_remote_view_close,
    .request_start = dv_remote_request_start,
    .request_cancel = dv_remote_request_cancel,
    .review_start = dv_remote_review_start,
    .review_cancel = dv_remote_review_cancel,
};

struct dv_remote *dv_remote_open(struct dv_loop *loop, const struct dv_kubeconfig *config,
                                 const struct dv_remote_options *options, struct dv_err *err)
{
    struct dv_remote *remote = DV_ALLOC(struct dv_remote);
    struct dv_rest_client_options client = {
        .base_url = config->server,
        .ca = config->ca,
        .cert = config->cert,
        .key = config->key,
        .socket_path = config->socket,
        .user_agent = options->user_agent.n ? options->user_agent : DV_STR("davit"),
        /* Each view holds a connection for its watch; requests share the rest. */
        .connections_max = 256,
    };

    remote->cluster = (struct dv_cluster){.engine = &engine, .loop = loop};
    remote->n_page_objects = options->n_page_objects ? options->n_page_objects : PAGE_OBJECTS;
    dv_list_init(&remote->requests);
    dv_list_init(&remote->views);
    remote->client = dv_rest_client_open(loop, &client, err);
    if (!remote->client) {
        free(remote);
        (void)dv_wrap(err, "API server %.*s", DV_FMT(config->server));
        return NULL;
    }
    dv_rest_client_set_token(remote->client, config->token);
    if (config->token_file.n || config->exec)
        remote->token = dv_remote_token_open(remote, config);
    return remote;
}

struct dv_cluster *dv_remote_cluster(struct dv_remote *remote)
{
    return &remote->cluster;
}

const struct dv_api_version *dv_remote_version(const struct dv_remote *remote,
                                               const struct dv_kind *kind)
{
    return &kind->versions[remote->versions[kind->id]];
}

bool dv_remote_version_refused(struct dv_remote *remote, const struct dv_kind *kind,
                               const struct dv_api_version *version)
{
    size_t *at = &remote->versions[kind->id];

    if (version != &kind->versions[*at])
        return true; /* another request has found out the same meanwhile */
    *at = (*at + 1) % kind->n_versions;
    return *at != 0;
}

void dv_remote_free_if_done(struct dv_remote *remote)
{
    dv_closed_fn *closed = remote->closed;
    void *ctx = remote->closed_ctx;

    if (!remote->is_client_closed || !dv_list_is_empty(&remote->requests))
        return;
    free(remote);
    if (closed)
        closed(ctx);
}

static void on_client_closed(void *ctx)
{
    struct dv_remote *remote = ctx;

    remote->is_client_closed = true;
    dv_remote_free_if_done(remote);
}

void dv_remote_close(struct dv_remote *remote, dv_closed_fn *closed, void *ctx)
{
    remote->is_closing = true;
    remote->closed = closed;
    remote->closed_ctx = ctx;
    dv_remote_token_close(remote->token);
    remote->token = NULL;
    dv_remote_views_end(remote);
    dv_remote_requests_end(remote);
    dv_rest_client_close(remote->client, on_client_closed, remote);
}

/* remote_engine.h - the parts of the engine over a real API server. */
#ifndef DV_CLUSTER_REMOTE_ENGINE_H
#define DV_CLUSTER_REMOTE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "number/number.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_rest_client;
struct dv_rest_fetch;
struct dv_kubeconfig;
struct kube_token;

struct dv_remote {
    struct dv_cluster cluster;
    struct dv_rest_client *client;
    struct dv_list requests; /* under way or waiting */
    struct dv_list views;
    size_t n_page_objects;
    size_t versions[DV_N_KINDS]; /* of each kind's, the one that the server has */
    struct kube_token *token;    /* NULL: it does not change */
    bool is_closing;
    bool is_client_closed;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* remote.c */
/* Gives its memory back when it was closed and nothing is under way. */
void dv_remote_free_if_done(struct dv_remote *remote);
/* The version in which the server has the kind, as far as is known: the newest first. */
const struct dv_api_version *dv_remote_version(const struct dv_remote *remote,
                                               const struct dv_kind *kind);
/* It has not got it in `version`. True: next time it is asked for one that was not tried yet; else
 * it all begins again. */
bool dv_remote_version_refused(struct dv_remote *remote, const struct dv_kind *kind,
                               const struct dv_api_version *version);

/* remote_path.c: pure. */
/* "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/b/status" */
void dv_remote_path(const struct dv_kind *kind, const struct dv_api_version *version,
                    dv_str namespace, dv_str name, dv_str subresource, struct dv_buf *buf);
/* "?name=value" or "&name=value", encoded; nothing when the value is empty. */
void dv_remote_query(struct dv_buf *buf, const char *name, dv_str value);
void dv_remote_query_u64(struct dv_buf *buf, const char *name, uint64_t value);
/* The Status in a body, or one made from the code when there is none. */
struct dv_api_status *dv_remote_status(unsigned code, dv_str body, struct dv_arena *arena);
/* Whether a 404 is about the path, not about an object: the server has no such kind or version. */
bool dv_remote_is_no_path(const struct dv_api_status *status);
/* The text of a Warning field: 299 - "text" */
dv_str dv_remote_warning(dv_str field, struct dv_arena *arena);
/* Whether a field Retry-After tells when to come again; the time is bounded. */
bool dv_remote_retry_after(dv_str field, uint64_t *wait_ms);

/* remote_request.c */
void dv_remote_request_start(struct dv_cluster *cluster, struct dv_request *request);
void dv_remote_request_cancel(struct dv_cluster *cluster, struct dv_request *request);
void dv_remote_requests_end(struct dv_remote *remote);

/* remote_review.c: the client, when it closes, ends those that are under way. */
void dv_remote_review_start(struct dv_cluster *cluster, struct dv_user_review *review);
void dv_remote_review_cancel(struct dv_cluster *cluster, struct dv_user_review *review);

/* remote_view.c */
struct dv_view *dv_remote_view_open(struct dv_cluster *cluster,
                                    const struct dv_view_options *options, struct dv_err *err);
void dv_remote_view_close(struct dv_view *view);
void dv_remote_views_end(struct dv_remote *remote);

/* remote_token.c: a token file, read anew, or the program that makes the token, run anew. */
struct kube_token *dv_remote_token_open(struct dv_remote *remote,
                                        const struct dv_kubeconfig *config);
/* The server does not know us: perhaps the file has a newer one. NULL is fine. */
void dv_remote_token_doubt(struct kube_token *token);
/* NULL is fine; it goes when its job has ended. */
void dv_remote_token_close(struct kube_token *token);

#endif

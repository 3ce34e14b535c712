/* kube_api.h - the Kubernetes API over HTTP: what the embedded API holds, for kubectl, drivers and
 * other clients, as a cluster's API server would serve it.
 *
 * All that arrives is first authenticated (a bearer token, else a client certificate), then
 * authorized (auth.h), then answered. */
#ifndef DV_SERVE_KUBE_API_H
#define DV_SERVE_KUBE_API_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "loop/loop.h"
#include "resource/resource.h"

struct dv_embedded;
struct dv_err;
struct dv_kube;
struct dv_metrics;
struct dv_node_feed;
struct dv_pod_logs;
struct dv_pod_streams;
struct dv_rest_call;
struct dv_rest_request;
struct dv_sched;
struct dv_tokens;

/* What a client may do that shows neither token nor certificate. */
enum dv_kube_anonymous {
    DV_ANONYMOUS_HEALTH, /* may ask for /version and health, and for nothing else */
    DV_ANONYMOUS_OFF,    /* gets 401 everywhere */
    DV_ANONYMOUS_ON,     /* is the user system:anonymous, and mostly gets 403 */
};

struct dv_kube_options {
    struct dv_loop *loop;
    struct dv_embedded *embedded;
    struct dv_tokens *tokens;
    struct dv_metrics *metrics;     /* gets our families; NULL: nothing is counted */
    struct dv_node_feed *feed;      /* feed of this node; NULL: it is not served */
    struct dv_pod_logs *logs;       /* those of this node; NULL: they are not served */
    struct dv_pod_streams *streams; /* exec and the like on this node; NULL: they are not served */
    enum dv_kube_anonymous anonymous;
    /* Whom tokens of service accounts are for that name no audience, and who accepts tokens here;
     * empty: the issuer. Borrowed. */
    struct dv_strs audiences;
    /* Returns why the daemon is not ready, for /readyz; NULL: it is. May be NULL. */
    const struct dv_err *(*trouble)(void *ctx);
    void *ctx;
    struct dv_sched *const *sched; /* where the scheduler is once it is open; may be NULL */
    uint64_t bookmark_ms; /* how often watches that allow it are told where they are; 0: 60 s */
};

/* The body size that the HTTP server must allow. The API's own limit is 3 MiB, and a body that is a
 * little larger still gets the API's own answer. */
#define DV_KUBE_BODY_BYTES_MAX (3u * 1024u * 1024u + 64u * 1024u)

/* Opens the API. `options` is copied; what it points to must outlive the API. */
struct dv_kube *dv_kube_open(const struct dv_kube_options *options);
/* Ends all watches except those of the feed, which was stopped before, and lets running calls be
 * answered; the embedded API must still run. `closed` may be NULL. */
void dv_kube_close(struct dv_kube *kube, dv_closed_fn *closed, void *ctx);

/* Says where pods reach this API: an IP address, which is kept and must outlive the API. The
 * service default/kubernetes then tells of it. */
void dv_kube_set_address(struct dv_kube *kube, dv_str address, uint16_t port);

/* Whether the roles and bindings that always exist have been made: before that service accounts may
 * do nothing. */
bool dv_kube_is_settled(const struct dv_kube *kube);

/* Answers the call, now or later. False: it is for /metrics, the client may see them, and the
 * caller has to print them. */
bool dv_kube_handle(struct dv_kube *kube, struct dv_rest_call *call,
                    const struct dv_rest_request *request);
/* The header of a call has come, but not its body: finds out whose the connection is. */
void dv_kube_greet(struct dv_kube *kube, struct dv_rest_call *call,
                   const struct dv_rest_request *request);

#endif

/* serve.h - what a node offers on its sockets: davit.node.v1 on davit.sock, PodResources on
 * pod-resources/kubelet.sock. Reading and calling only; what happens is decided below. */
#ifndef DV_SERVE_H
#define DV_SERVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"
#include "store/store.h"

struct dv_builtin_driver;
struct dv_cluster;
struct dv_err;
struct dv_kube;
struct dv_metrics;
struct dv_pod_times;
struct dv_pod_verdict;
struct dv_rest_tls;
struct dv_podres_server;
struct dv_store;
struct dv_health;

/* The parts of a node that are served; they must outlive the servers. */
struct dv_node {
    struct dv_loop *loop;
    struct dv_device_manager *devices;
    struct dv_claim_manager *claims;
    struct dv_plugins *plugins;
    struct dv_pods *pods;
    struct dv_leases *leases;          /* NULL: there are none, or davitd is stopping */
    struct dv_agent *agent;            /* has the pods of the API; NULL: there is none */
    struct dv_runner *runner;          /* runs the pods of the API; NULL: nobody does */
    struct dv_builtin_driver *builtin; /* hands out what is offered; NULL: nothing is */
    struct dv_recorder *recorder;      /* records events; NULL: there is no API */
    struct dv_node_pools *pools;       /* devices of DRA drivers; NULL: there is no API */
    struct dv_health *health;
    struct dv_guard *guard; /* judges callers; NULL: all are allowed */
    struct dv_store *store; /* what is durable */
    const char *copy_path;  /* where copies of it are made, one at a time */
    dv_str name;
    uint64_t started_wall_ns;
    bool is_strict; /* answers are exactly the reference's, oddities included */
    bool has_group; /* davit.sock is given to a group */
    gid_t group;
};

/* ---- metrics, and HTTP for them: /metrics, /healthz, /readyz, /ui ---- */

struct dv_node_metrics;

struct dv_node_metrics *dv_node_metrics_new(void);
void dv_node_metrics_free(struct dv_node_metrics *metrics); /* NULL is fine */
/* From now on `node` is asked when metrics are printed; it must outlive them. */
void dv_node_metrics_watch(struct dv_node_metrics *metrics, const struct dv_node *node,
                           struct dv_store *store, const struct dv_podres_server *podres);
void dv_node_metrics_allocated(struct dv_node_metrics *metrics, dv_str resource, uint64_t ns);
/* Counts an admission that has ended; verdict is NULL when nothing was decided. */
void dv_node_metrics_ended(struct dv_node_metrics *metrics, const struct dv_pod_verdict *verdict,
                           const struct dv_pod_times *times);

/* Counts an operation on claims that has ended: "PrepareResources". */
void dv_node_metrics_operation(struct dv_node_metrics *metrics, const char *name, bool is_error,
                               uint64_t ns);
/* Counts a call to a DRA driver that has ended. */
void dv_node_metrics_driver_call(struct dv_node_metrics *metrics, dv_str driver, const char *method,
                                 enum dv_code code, uint64_t ns);

/* Returns the registry to which other parts may add families; they are printed with ours. */
struct dv_metrics *dv_node_metrics_registry(struct dv_node_metrics *metrics);

struct dv_http_server;

struct dv_http_options {
    dv_str address;                /* ADDRESS:PORT */
    const struct dv_rest_tls *tls; /* NULL: plain HTTP; health and metrics are public then */
    /* The Kubernetes API; NULL: only health and metrics are served. */
    struct dv_kube *kube;
    /* Returns why the daemon is not ready; NULL: it is. */
    const struct dv_err *(*trouble)(void *ctx);
    void *ctx;
};

/* Opens the server. `options` is copied, `metrics` kept. */
struct dv_http_server *dv_http_server_open(struct dv_loop *loop, struct dv_node_metrics *metrics,
                                           const struct dv_http_options *options,
                                           struct dv_err *err);
/* Sets another certificate for connections to come. */
DV_CHECKED bool dv_http_server_set_tls(struct dv_http_server *server, const struct dv_rest_tls *tls,
                                       struct dv_err *err);
uint16_t dv_http_server_port(const struct dv_http_server *server);
void dv_http_server_close(struct dv_http_server *server, dv_closed_fn *closed, void *ctx);

/* ---- the devices of DRA drivers ---- */

struct dv_node_pools;

struct dv_node_pools_options {
    struct dv_cluster *cluster; /* kept, and outlives the pools */
    dv_str node_name;           /* kept */
    /* The API is our own: slices that are not of this node alone, claims, rules and the node are
     * read too. */
    bool is_embedded;
    void (*changed)(void *ctx); /* devices, or what claims hold of them, have changed */
    void *ctx;
};

struct dv_node_pools *dv_node_pools_open(const struct dv_node_pools_options *options,
                                         struct dv_err *err);
void dv_node_pools_close(struct dv_node_pools *pools); /* NULL is fine */

/* ---- davit.node.v1 ---- */

struct dv_node_server;

/* Serves at `path`: for root, and where the node has a group for its members, who may look at what
 * there is and use leases. `node` is kept. */
struct dv_node_server *dv_node_server_open(const struct dv_node *node, dv_str path,
                                           struct dv_err *err);
/* Closes the server; running calls are cancelled after grace_ms. `closed` may be NULL. */
void dv_node_server_close(struct dv_node_server *server, uint64_t grace_ms, dv_closed_fn *closed,
                          void *ctx);
/* Tell those who watch that devices or their holders have changed, and that pods or the health of
 * what they hold have changed. */
void dv_node_server_devices_changed(struct dv_node_server *server);
void dv_node_server_pods_changed(struct dv_node_server *server);
void dv_node_server_claims_changed(struct dv_node_server *server);
void dv_node_server_leases_changed(struct dv_node_server *server);

/* ---- the node as JSON, for pages ---- */

struct dv_node_feed;

enum dv_feed_part {
    DV_FEED_STATUS = 1, /* pods are in it too */
    DV_FEED_PLUGINS = 2,
    DV_FEED_DEVICES = 4,
    DV_FEED_CLAIMS = 8,
    DV_FEED_LEASES = 16,
    DV_FEED_USES = 32,
};

/* Makes a feed. `node` is kept; it may be filled in later, before anything is asked. */
struct dv_node_feed *dv_node_feed_new(const struct dv_node *node);
/* Begins to count what is held, once the node is filled in. */
void dv_node_feed_start(struct dv_node_feed *feed);
/* Notes that parts have changed, bits of the enum. `feed` may be NULL. */
void dv_node_feed_changed(struct dv_node_feed *feed, unsigned parts);
/* The node is about to be freed: ends those who watch, and tells nothing any more. */
void dv_node_feed_stop(struct dv_node_feed *feed);
void dv_node_feed_free(struct dv_node_feed *feed); /* NULL is fine; nobody watches any more */

/* ---- the logs of containers ---- */

struct dv_pod_logs;

/* Makes what reads the logs of this node. `node` is kept; it may be filled in later, before
 * anything is asked. */
struct dv_pod_logs *dv_pod_logs_new(struct dv_loop *loop, const struct dv_node *node);
/* The node is about to be closed: ends all answers, and begins no more. */
void dv_pod_logs_stop(struct dv_pod_logs *logs);
void dv_pod_logs_free(struct dv_pod_logs *logs); /* NULL is fine; stopped, and all have ended */

/* ---- PodResources, v1 and v1alpha1 ---- */

struct dv_podres_server;

struct dv_podres_counts {
    uint64_t n_requests[2]; /* v1, v1alpha1 */
    uint64_t n_list;
    uint64_t n_get_allocatable;
    uint64_t n_get;
    uint64_t n_get_errors;
};

struct dv_podres_server *dv_podres_server_open(const struct dv_node *node, dv_str path,
                                               struct dv_err *err);
void dv_podres_server_close(struct dv_podres_server *server, dv_closed_fn *closed, void *ctx);
void dv_podres_server_get_counts(const struct dv_podres_server *server,
                                 struct dv_podres_counts *counts);

#endif

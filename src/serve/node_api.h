/* node_api.h - the node's own API over HTTPS, as a kubelet has it on port 10250: pods, metrics,
 * health, statistics, for an API server, for monitoring and for people. And health alone, without
 * TLS, for the machine itself (port 10248).
 *
 * A client shows a certificate of the client CA or a bearer token; there is nothing for others.
 * What it may do is asked of the API server, see kubelet/node_auth.h. */
#ifndef DV_SERVE_NODE_API_H
#define DV_SERVE_NODE_API_H

#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_agent;
struct dv_cluster;
struct dv_err;
struct dv_node;
struct dv_node_api;
struct dv_node_metrics;
struct dv_node_usage;
struct dv_pod_logs;
struct dv_pod_streams;
struct dv_rest_tls;

struct dv_node_api_options {
    dv_str address;                /* ADDRESS:PORT; empty: not served */
    const struct dv_rest_tls *tls; /* with the client CA, if there is one; copied */
    dv_str health_address;         /* of the health without TLS; empty: not served */
    struct dv_cluster *cluster;    /* says who clients are; it and the next six outlive the API */
    const struct dv_node *node;
    const struct dv_agent *agent;
    struct dv_node_metrics *metrics;
    struct dv_node_usage *usage;
    struct dv_pod_logs *logs;
    struct dv_pod_streams *streams;
    dv_str config; /* how the node is set up, as the text of a JSON object; kept */
};

struct dv_node_api *dv_node_api_open(struct dv_loop *loop,
                                     const struct dv_node_api_options *options, struct dv_err *err);
/* Gives up what clients wait for. `closed` may be NULL. */
void dv_node_api_close(struct dv_node_api *api, dv_closed_fn *closed, void *ctx);
/* Sets another certificate for connections to come. */
DV_CHECKED bool dv_node_api_set_tls(struct dv_node_api *api, const struct dv_rest_tls *tls,
                                    struct dv_err *err);
uint16_t dv_node_api_port(const struct dv_node_api *api);        /* 0: not served */
uint16_t dv_node_api_health_port(const struct dv_node_api *api); /* 0: not served */

#endif

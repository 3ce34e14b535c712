/* node_logs.h - answers /containerLogs of the node's own API: what an API server asks for when
 * somebody reads the log of a pod here. */
#ifndef DV_SERVE_NODE_LOGS_H
#define DV_SERVE_NODE_LOGS_H

struct dv_agent;
struct dv_loop;
struct dv_node_route;
struct dv_pod_logs;
struct dv_rest_call;
struct dv_rest_request;

/* What there is to be read. */
struct dv_node_logs {
    struct dv_loop *loop;
    const struct dv_agent *agent;
    struct dv_pod_logs *logs;
};

/* Answers the call, for as long as it takes. The route's segments are the path's name, a namespace,
 * a pod and a container. */
void dv_node_logs_answer(const struct dv_node_logs *logs, const struct dv_node_route *route,
                         struct dv_rest_call *call, const struct dv_rest_request *request);

#endif

/* node_streams.h - answers /exec, /attach and /portForward of the node's own API: what an API
 * server asks for when somebody wants to be joined to a container here. */
#ifndef DV_SERVE_NODE_STREAMS_H
#define DV_SERVE_NODE_STREAMS_H

#include "serve/pod_stream.h"

struct dv_agent;
struct dv_node_route;
struct dv_rest_call;
struct dv_rest_request;

/* Answers the call, for as long as it takes. The route's segments are the path's name, a namespace,
 * a pod, perhaps its uid, and for exec and attach a container. */
void dv_node_streams_answer(const struct dv_agent *agent, struct dv_pod_streams *streams,
                            enum dv_pod_stream_verb verb, const struct dv_node_route *route,
                            struct dv_rest_call *call, const struct dv_rest_request *request);

#endif

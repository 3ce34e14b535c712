/* node_route.h - what a request to the node's own API is for, and what its client must be allowed
 * to do. Pure.
 *
 * A client needs a right on the Node object itself: the verb is the method's, the subresource that
 * of the path. Where there are two, either is enough: the narrow one, or `proxy`, which stands for
 * all of this API. */
#ifndef DV_SERVE_NODE_ROUTE_H
#define DV_SERVE_NODE_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_arena;
struct dv_buf;

enum dv_node_route_id {
    DV_NODE_UNKNOWN, /* there is nothing of that name */
    DV_NODE_HEALTH,
    DV_NODE_PODS,
    DV_NODE_RUNNING_PODS,
    DV_NODE_METRICS,
    DV_NODE_RESOURCE_METRICS,
    DV_NODE_SUMMARY,
    DV_NODE_CONFIG,
    DV_NODE_LOGS, /* segments: namespace, pod, container */
    DV_NODE_EXEC, /* namespace, pod, perhaps its uid, container */
    DV_NODE_ATTACH,
    DV_NODE_RUN,
    DV_NODE_PORT_FORWARD, /* namespace, pod, perhaps its uid */
};

/* The segments of a path that has parameters; a longer path is not known. */
#define DV_NODE_SEGMENTS_MAX 6u
#define DV_NODE_SUBRESOURCES_MAX 2u

struct dv_node_route {
    enum dv_node_route_id id;
    bool is_allowed_method;                /* the path is there for this method */
    dv_str segments[DV_NODE_SEGMENTS_MAX]; /* decoded; the first is the path's name */
    size_t n_segments;
    dv_str verb; /* "get"; empty: no verb of the API is that method */
    dv_str subresources[DV_NODE_SUBRESOURCES_MAX]; /* the client needs one of these */
    size_t n_subresources;
};

/* Reads the method and the path of a request, which is as it was sent. Texts are in `arena` or
 * constant. */
void dv_node_route_parse(dv_str method, dv_str path, struct dv_arena *arena,
                         struct dv_node_route *route);
/* Prints the reference's text for a client that lacks the right, or (is_error) for one whose right
 * could not be found out. */
void dv_node_route_print_refusal(const struct dv_node_route *route, dv_str user, bool is_error,
                                 struct dv_buf *buf);

#endif

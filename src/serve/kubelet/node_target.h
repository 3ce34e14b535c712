/* node_target.h - the pod and the container that a path of the node's own API names. */
#ifndef DV_SERVE_NODE_TARGET_H
#define DV_SERVE_NODE_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_agent;
struct dv_node_route;
struct dv_object;

struct dv_node_target {
    const struct dv_object *pod; /* borrowed until the next turn */
    dv_str container;            /* empty: the path names none */
};

/* Finds what a path with the segments name, namespace, pod, perhaps its uid, and `n_containers` (0
 * or 1) is about. False: there is no such pod here. `agent` may be NULL. */
bool dv_node_target_find(const struct dv_agent *agent, const struct dv_node_route *route,
                         size_t n_containers, struct dv_node_target *target);

#endif

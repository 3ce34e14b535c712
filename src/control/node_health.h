/* node_health.h - nodes whose agents have fallen silent: what is said of them. Pure. */
#ifndef DV_CONTROL_NODE_HEALTH_H
#define DV_CONTROL_NODE_HEALTH_H

#include <stdbool.h>

struct dv_api_node;
struct dv_arena;
struct dv_json;
struct dv_time;

/* As the reference: four renewals of the lease that did not come. */
#define DV_NODE_SILENT_MS 40000u
#define DV_NODE_LEASES "kube-node-lease"
#define DV_NODE_TAINT "node.kubernetes.io/unreachable"

enum dv_health_step {
    DV_HEALTH_NOTHING,
    DV_HEALTH_ADD_TAINT, /* first: that nothing comes to it any more */
    DV_HEALTH_SET_UNKNOWN,
    DV_HEALTH_REMOVE_TAINT, /* that it is ready its agent says itself */
};

/* What is to be written next. */
enum dv_health_step dv_health_next(const struct dv_api_node *node, bool is_silent);
/* The step as a strategic merge patch, of the status for DV_HEALTH_SET_UNKNOWN. That of the taints
 * is refused when the node has changed. */
struct dv_json *dv_health_patch(const struct dv_api_node *node, enum dv_health_step step,
                                struct dv_time now, struct dv_arena *arena);

#endif

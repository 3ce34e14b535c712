/* node_usage.h - tells what the node, its pods and their containers use, over HTTP: as metrics,
 * with the devices that containers hold, and as the reference's Summary. */
#ifndef DV_SERVE_NODE_USAGE_H
#define DV_SERVE_NODE_USAGE_H

#include "loop/loop.h"

struct dv_node;
struct dv_node_usage;
struct dv_rest_call;

enum dv_usage_page {
    DV_USAGE_METRICS,       /* for Prometheus */
    DV_USAGE_SUMMARY,       /* JSON */
    DV_USAGE_BRIEF_SUMMARY, /* the summary without disks */
};

/* `node` is kept, and asked from the first call on. */
struct dv_node_usage *dv_node_usage_new(const struct dv_node *node);
/* The node is about to be freed: calls that wait, and all that come, are answered with 503. */
void dv_node_usage_stop(struct dv_node_usage *usage);
/* It was stopped, and no calls come any more. `closed` may be NULL. */
void dv_node_usage_close(struct dv_node_usage *usage, dv_closed_fn *closed, void *ctx);
/* Answers the call, later. */
void dv_node_usage_answer(struct dv_node_usage *usage, struct dv_rest_call *call,
                          enum dv_usage_page page);

#endif

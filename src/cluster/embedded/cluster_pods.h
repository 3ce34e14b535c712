/* cluster_pods.h - the subresources of pods: binding and eviction. */
#ifndef DV_CLUSTER_PODS_H
#define DV_CLUSTER_PODS_H

#include <stdbool.h>

struct dv_op;

/* These are the `run` of operations whose request has a Binding or an Eviction. */
bool dv_pods_bind(struct dv_op *op);
bool dv_pods_evict(struct dv_op *op);

#endif

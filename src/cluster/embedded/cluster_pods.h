/* cluster_pods.h - the subresources of pods: binding and eviction. */
#ifndef DV_CLUSTER_PODS_H
#define DV_CLUSTER_PODS_H

#include <stdbool.h>

struct dv_op;

/* As `run` of an op whose request has the Binding or Eviction. */
bool dv_pods_bind(struct dv_op *op);
bool dv_pods_evict(struct dv_op *op);

#endif

/* cluster_pods.h - the subresources of pods: binding and eviction. */
#ifndef DV_CLUSTER_PODS_H
#define DV_CLUSTER_PODS_H

#include <stdbool.h>

struct dv_cluster_operation;

/* These are the `run` of operations whose request has a Binding or an Eviction. */
bool dv_cluster_pod_bind(struct dv_cluster_operation *operation);
bool dv_cluster_pod_evict(struct dv_cluster_operation *operation);

#endif

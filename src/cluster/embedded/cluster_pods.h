/* cluster_pods.h - what pods have beside other kinds: binding, eviction, and what they are given
 * when they are created. */
#ifndef DV_CLUSTER_PODS_H
#define DV_CLUSTER_PODS_H

#include <stdbool.h>

struct dv_cluster_operation;

/* These are the `run` of operations whose request has a Binding or an Eviction. */
bool dv_cluster_pod_bind(struct dv_cluster_operation *operation);
bool dv_cluster_pod_evict(struct dv_cluster_operation *operation);

/* Looks up the service account of a pod that is about to be created, where pods have one; of all
 * other objects nothing. False: the operation has ended, because there is no such account. */
bool dv_account_admit(struct dv_cluster_operation *operation, const void *value);
/* Gives the pod what its account says, after dv_account_admit. */
void dv_account_apply(struct dv_cluster_operation *operation, void *value);

/* Looks up the PriorityClass of a pod that is about to be created, or the one of pods that name
 * none; of all other objects nothing. False: the operation has ended, because there is no such
 * class. */
bool dv_priority_admit(struct dv_cluster_operation *operation, const void *value);
/* Gives the pod its priority, after dv_priority_admit. False: the operation has ended, because the
 * pod has another one. */
bool dv_priority_apply(struct dv_cluster_operation *operation, void *value);
/* Sees to it that only one PriorityClass is that of pods that name none. */
bool dv_default_priority_admit(struct dv_cluster_operation *operation, const void *value);

/* Chooses an address for a service that is about to be created and has none; of all other objects
 * nothing. False: the operation has ended, because its own is another's. */
bool dv_service_admit(struct dv_cluster_operation *operation, const void *value);
/* Gives the service its address, after dv_service_admit. */
void dv_service_apply(struct dv_cluster_operation *operation, void *value);

/* Looks up the RuntimeClass of a pod that is about to be created; of all other objects nothing.
 * False: the operation has ended, because there is no such class. */
bool dv_runtime_class_admit(struct dv_cluster_operation *operation, const void *value);
/* Gives the pod what its class says, after dv_runtime_class_admit, and once it has passed
 * validation checks that its overhead is that of the class. False: the operation has ended, because
 * pod and class do not go together. */
bool dv_runtime_class_apply(struct dv_cluster_operation *operation, void *value);
bool dv_runtime_class_check(struct dv_cluster_operation *operation, const void *value);

#endif

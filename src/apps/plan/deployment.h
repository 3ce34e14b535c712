/* deployment.h - Deployments: a ReplicaSet for each template, of which the newest grows while the
 * others shrink. The numbers that are wanted of each are planned; pods are the ReplicaSets'. */
#ifndef DV_APPS_DEPLOYMENT_H
#define DV_APPS_DEPLOYMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "resource/values.h"

struct dv_api_deployment;
struct dv_api_pod;
struct dv_api_replica_set;
struct dv_plan;

/* On pods and ReplicaSets: the hash of their template. */
#define DV_TEMPLATE_HASH_LABEL "pod-template-hash"

/* What is there; all of it outlives the plan. */
struct dv_deployment_input {
    const struct dv_api_deployment *deployment;
    const struct dv_api_replica_set *const *sets; /* its own, and those that are nobody's */
    size_t n_sets;
    /* Of each set: whether a pod of it has not ended. Only looked at when pods are recreated. */
    const bool *have_pods;
    struct dv_time now;
    bool has_failed;   /* what was planned could not be done: nothing but the status is planned */
    bool has_collided; /* because the name of a ReplicaSet is taken */
    dv_str failed_message;
};

void dv_deployment_plan(const struct dv_deployment_input *input, struct dv_plan *plan);

#endif

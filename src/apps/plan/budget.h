/* budget.h - PodDisruptionBudgets: their status says how many pods may be sent away. */
#ifndef DV_APPS_BUDGET_H
#define DV_APPS_BUDGET_H

#include <stddef.h>

#include "resource/values.h"

struct dv_api_deployment;
struct dv_api_pod;
struct dv_api_pod_disruption_budget;
struct dv_api_replica_set;
struct dv_plan;

/* What is there in the budget's namespace; all of it outlives the plan. */
struct dv_budget_input {
    const struct dv_api_pod_disruption_budget *budget;
    const struct dv_api_pod *const *pods; /* among them all that it selects */
    size_t n_pods;
    const struct dv_api_replica_set *const *sets; /* that may have made them */
    size_t n_sets;
    const struct dv_api_deployment *const *deployments; /* of those sets */
    size_t n_deployments;
    struct dv_time now;
};

void dv_budget_plan(const struct dv_budget_input *input, struct dv_plan *plan);

#endif

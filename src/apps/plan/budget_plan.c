/* budget_plan.c - the status of a PodDisruptionBudget, when it says something else than is there.
 */
#include <stdbool.h>
#include <stddef.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/budget.h"
#include "base/arena.h"
#include "base/str.h"
#include "resource/disruption.h"
#include "resource/resource.h"

static const void *find_owner(void *ctx, enum dv_kind_id kind, dv_str name)
{
    const struct dv_budget_input *input = ctx;

    for (size_t i = 0; kind == DV_KIND_REPLICA_SET && i < input->n_sets; i++)
        if (dv_str_eq(input->sets[i]->metadata.name, name))
            return input->sets[i];
    for (size_t i = 0; kind == DV_KIND_DEPLOYMENT && i < input->n_deployments; i++)
        if (dv_str_eq(input->deployments[i]->metadata.name, name))
            return input->deployments[i];
    return NULL;
}

static bool set_status(const struct dv_action *action, void *value, struct dv_arena *arena)
{
    struct dv_api_pod_disruption_budget *budget = value;

    (void)arena;
    budget->status = *(const struct dv_api_pod_disruption_budget_status *)action->with;
    return true;
}

void dv_budget_plan(const struct dv_budget_input *input, struct dv_plan *plan)
{
    const struct dv_api_pod_disruption_budget *budget = input->budget;
    struct dv_budget_input owners = *input;
    struct dv_api_pod_disruption_budget_status *status =
        DV_NEW(plan->arena, struct dv_api_pod_disruption_budget_status);
    struct dv_disruption disruption;
    struct dv_action *action;

    if (budget->metadata.deletion_timestamp.is_set)
        return;
    dv_disruption_begin(&disruption, budget, plan->arena);
    disruption.find = find_owner;
    disruption.ctx = &owners;
    for (size_t i = 0; i < input->n_pods; i++)
        dv_disruption_add(&disruption, input->pods[i]);
    dv_disruption_end(&disruption, input->now, plan->arena, status);
    if (dv_message_eq(&dv_message_pod_disruption_budget_status, status, &budget->status))
        return;
    action = dv_plan_change(plan, dv_kind(DV_KIND_DISRUPTION_BUDGET), &budget->metadata);
    action->type = DV_ACTION_CHANGE_STATUS;
    action->change = set_status;
    action->with = status;
}

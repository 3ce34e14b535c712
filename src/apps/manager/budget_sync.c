/* budget_sync.c - PodDisruptionBudgets: which changes concern which of them, and what their status
 * is made from. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "apps/manager/apps_state.h"
#include "apps/plan/budget.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "control/control_queue.h"
#include "loop/loop.h"
#include "resource/disruption.h"
#include "resource/resource.h"

/* ---- changes ---- */

static bool is_same_selector(const struct dv_object *old, const struct dv_object *now)
{
    const struct dv_api_pod_disruption_budget *a = old->value;
    const struct dv_api_pod_disruption_budget *b = now->value;

    return a->spec.selector && b->spec.selector &&
           dv_message_eq(&dv_message_label_selector, a->spec.selector, b->spec.selector);
}

void dv_apps_budget_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_apps *apps = ctx;
    const struct dv_object *budget = now ? now : old;
    const struct dv_object *pod;
    size_t at = 0;

    assert(budget);
    if (!old || !now || !is_same_selector(old, now)) {
        dv_apps_index_keeper(apps, DV_APPS_BUDGETS, now, budget->meta);
        while ((pod = dv_view_next(apps->views[DV_APPS_PODS], &at)) != NULL)
            if (dv_str_eq(pod->meta->namespace, budget->meta->namespace))
                dv_apps_index_budgeted(apps, pod->meta, true);
    }
    if (now)
        dv_queue_add(&apps->queues[DV_APPS_BUDGET_QUEUE], now->meta->namespace, now->meta->name);
}

void dv_apps_budget_pod_changed(struct dv_apps *apps, struct dv_object *old, struct dv_object *now)
{
    const struct dv_view *budgets = apps->views[DV_APPS_BUDGETS];

    if (!budgets || dv_view_n(budgets) == 0)
        return;
    dv_apps_index_budgeted(apps, (now ? now : old)->meta, now != NULL);
    if (old)
        dv_apps_queue_budgets(apps, old->meta->namespace, old->meta);
    if (now)
        dv_apps_queue_budgets(apps, now->meta->namespace, now->meta);
}

/* ---- plans ---- */

/* Holds the ReplicaSets that may have made pods of the budget, and their Deployments. */
static void gather_owners(struct dv_apps_sync *sync, struct dv_budget_input *input)
{
    DV_VEC(const struct dv_api_replica_set *) sets = {0};
    DV_VEC(const struct dv_api_deployment *) deployments = {0};
    struct dv_disruption disruption;
    struct dv_object *object;
    size_t at = 0;

    dv_disruption_begin(&disruption, input->budget, sync->arena);
    while ((object = dv_view_next(sync->apps->views[DV_APPS_REPLICA_SETS], &at)) != NULL) {
        const struct dv_api_replica_set *set = object->value;
        const struct dv_api_owner_reference *owner = dv_controller_of(object->meta);
        struct dv_object *deployment;

        if (!dv_str_eq(object->meta->namespace, input->budget->metadata.namespace) ||
            !dv_disruption_selects(&disruption, &set->spec.template.metadata))
            continue;
        *dv_vec_add_in(&sets, sync->arena) = dv_apps_hold(sync, object);
        deployment = owner ? dv_view_get(sync->apps->views[DV_APPS_DEPLOYMENTS],
                                         object->meta->namespace, owner->name)
                           : NULL;
        if (deployment)
            *dv_vec_add_in(&deployments, sync->arena) = dv_apps_hold(sync, deployment);
    }
    input->sets = sets.v;
    input->n_sets = sets.n;
    input->deployments = deployments.v;
    input->n_deployments = deployments.n;
}

static void *gather(struct dv_apps_sync *sync)
{
    struct dv_budget_input *input = DV_NEW(sync->arena, struct dv_budget_input);

    input->budget = sync->object->value;
    input->pods = (const struct dv_api_pod *const *)dv_apps_gather_budgeted(
        sync, input->budget->spec.selector, &input->n_pods);
    gather_owners(sync, input);
    input->now = dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(sync->apps->loop)));
    return input;
}

static void plan(const void *input, struct dv_plan *plan)
{
    dv_budget_plan(input, plan);
}

const struct dv_apps_controller dv_budget_controller = {
    .view = DV_APPS_BUDGETS,
    .component = "controllermanager",
    .gather = gather,
    .reads_pods_later = true,
    .plan = plan,
};

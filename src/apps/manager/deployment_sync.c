/* deployment_sync.c - Deployments: which changes concern which of them, and what a plan is made
 * from. */
#include <stdbool.h>
#include <stddef.h>

#include "apps/manager/apps_state.h"
#include "apps/plan/deployment.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "control/control_queue.h"
#include "loop/loop.h"
#include "resource/resource.h"

void dv_apps_deployment_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_apps *apps = ctx;

    const struct dv_api_deployment *deployment = (now ? now : old)->value;

    dv_apps_index_keeper(apps, DV_APPS_DEPLOYMENTS, now, (now ? now : old)->meta);
    if (!old || !now || old->meta->generation != now->meta->generation)
        dv_apps_queue_budgets(apps, deployment->metadata.namespace,
                              &deployment->spec.template.metadata);
    if (now)
        dv_queue_add(&apps->queues[DV_APPS_DEPLOYMENT_QUEUE], now->meta->namespace,
                     now->meta->name);
}

/* Whether a pod of the set has not ended. Only who recreates asks: a look at all pods costs. */
static bool has_pods(struct dv_apps_sync *sync, const struct dv_api_replica_set *set)
{
    size_t n;
    const void **pods = dv_apps_gather_of(sync, DV_APPS_PODS, &set->metadata.uid, 1, &n);

    for (size_t i = 0; i < n; i++)
        if (!dv_pod_is_terminal(pods[i]))
            return true;
    return false;
}

static void *gather(struct dv_apps_sync *sync)
{
    const struct dv_api_deployment *deployment = sync->object->value;
    struct dv_deployment_input *input = DV_NEW(sync->arena, struct dv_deployment_input);
    bool recreates = dv_str_eq(deployment->spec.strategy.type, DV_STR("Recreate"));
    bool *have_pods;

    input->deployment = deployment;
    input->sets = (const struct dv_api_replica_set *const *)dv_apps_gather_owned(
        sync, DV_APPS_REPLICA_SETS, deployment->spec.selector, &input->n_sets);
    have_pods = DV_NEW_ARRAY(sync->arena, bool, input->n_sets + 1);
    for (size_t i = 0; i < input->n_sets; i++)
        have_pods[i] = recreates && has_pods(sync, input->sets[i]);
    input->have_pods = have_pods;
    input->now = dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(sync->apps->loop)));
    input->has_failed = sync->has_failed;
    input->has_collided = sync->has_collided;
    if (sync->has_failed)
        input->failed_message = dv_str_copy(dv_str_from_c(dv_err_text(&sync->err)), sync->arena);
    return input;
}

static void plan(const void *input, struct dv_plan *plan)
{
    dv_deployment_plan(input, plan);
}

const struct dv_apps_controller dv_deployment_controller = {
    .view = DV_APPS_DEPLOYMENTS,
    .component = "deployment-controller",
    .gather = gather,
    .plan = plan,
};

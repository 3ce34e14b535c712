/* replica_sync.c - ReplicaSets: which changes concern which of them, and what a plan is made from.
 */
#include <stddef.h>

#include "apps/manager/apps_state.h"
#include "apps/plan/replica_set.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "control/control_queue.h"
#include "loop/loop.h"
#include "resource/resource.h"

void dv_apps_replica_set_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_apps *apps = ctx;
    const struct dv_object *object = now ? now : old;
    const struct dv_api_replica_set *set = object->value;

    if (!old || !now || old->meta->generation != now->meta->generation)
        dv_apps_queue_budgets(apps, set->metadata.namespace, &set->spec.template.metadata);
    dv_apps_index(apps, DV_APPS_REPLICA_SETS, now, object->meta);
    dv_apps_index_keeper(apps, DV_APPS_REPLICA_SETS, now, object->meta);
    dv_apps_queue_owners(apps, DV_APPS_REPLICA_SETS, object->meta);
    if (old && now && dv_controller_of(old->meta) && !dv_controller_of(now->meta))
        dv_apps_queue_owners(apps, DV_APPS_REPLICA_SETS, old->meta);
    if (now)
        dv_queue_add(&apps->queues[DV_APPS_REPLICA_QUEUE], now->meta->namespace, now->meta->name);
}

/* Whether so many pods are too many. */
static bool are_too_many(const struct dv_api_replica_set *set, size_t n_pods)
{
    return (int64_t)n_pods > (set->spec.replicas ? *set->spec.replicas : 1);
}

/* The pods of other sets with the same owner: of too many, those on crowded nodes go first. They
 * are not looked at when nobody has to go. */
static void gather_siblings(struct dv_apps_sync *sync, struct dv_replica_input *input)
{
    const struct dv_api_owner_reference *owner = dv_controller_of(sync->object->meta);
    size_t n_sets = 0;
    size_t n = 0;
    const void **sets;
    dv_str *uids;

    if (!owner || !are_too_many(input->set, input->n_pods))
        return;
    sets = dv_apps_gather_of(sync, DV_APPS_REPLICA_SETS, &owner->uid, 1, &n_sets);
    uids = DV_NEW_ARRAY(sync->arena, dv_str, n_sets + 1);
    for (size_t i = 0; i < n_sets; i++) {
        const struct dv_api_replica_set *set = sets[i];

        if (!dv_str_eq(set->metadata.uid, input->set->metadata.uid))
            uids[n++] = set->metadata.uid;
    }
    input->siblings = (const struct dv_api_pod *const *)dv_apps_gather_of(sync, DV_APPS_PODS, uids,
                                                                          n, &input->n_siblings);
}

static void *gather(struct dv_apps_sync *sync)
{
    const struct dv_api_replica_set *set = sync->object->value;
    struct dv_replica_input *input = DV_NEW(sync->arena, struct dv_replica_input);

    input->set = set;
    input->pods = (const struct dv_api_pod *const *)dv_apps_gather_owned(
        sync, DV_APPS_PODS, set->spec.selector, &input->n_pods);
    gather_siblings(sync, input);
    input->now = dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(sync->apps->loop)));
    input->has_failed = sync->has_failed;
    if (sync->has_failed) {
        input->failed_reason = sync->failed_reason;
        input->failed_message = sync->failed_message;
    }
    return input;
}

static void plan(const void *input, struct dv_plan *plan)
{
    dv_replica_plan(input, plan);
}

const struct dv_apps_controller dv_replica_controller = {
    .view = DV_APPS_REPLICA_SETS,
    .component = "replicaset-controller",
    .gather = gather,
    .reads_pods_later = true,
    .plan = plan,
};

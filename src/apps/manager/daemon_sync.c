/* daemon_sync.c - DaemonSets: which changes concern which of them, and what a plan is made from. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/manager/apps_state.h"
#include "apps/manager/failed_pods.h"
#include "apps/plan/daemon_set.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "control/control_queue.h"
#include "loop/loop.h"
#include "resource/resource.h"

/* ---- changes ---- */

void dv_apps_daemon_set_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_apps *apps = ctx;

    dv_apps_index_keeper(apps, DV_APPS_DAEMON_SETS, now, (now ? now : old)->meta);
    if (now)
        dv_queue_add(&apps->queues[DV_APPS_DAEMON_QUEUE], now->meta->namespace, now->meta->name);
}

/* Whether a DaemonSet may see the node in another light: heartbeats are none of its business. */
static bool is_same_place(const struct dv_api_node *a, const struct dv_api_node *b)
{
    const struct dv_api_node_spec x = {.taints = a->spec.taints, .n_taints = a->spec.n_taints};
    const struct dv_api_node_spec y = {.taints = b->spec.taints, .n_taints = b->spec.n_taints};
    const struct dv_api_object_meta of_x = {.labels = a->metadata.labels,
                                            .n_labels = a->metadata.n_labels};
    const struct dv_api_object_meta of_y = {.labels = b->metadata.labels,
                                            .n_labels = b->metadata.n_labels};

    return dv_message_eq(&dv_message_node_spec, &x, &y) &&
           dv_message_eq(&dv_message_object_meta, &of_x, &of_y);
}

void dv_apps_node_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_apps *apps = ctx;
    struct dv_object *set;
    size_t at = 0;

    if (old && now && is_same_place(old->value, now->value))
        return;
    while ((set = dv_view_next(apps->views[DV_APPS_DAEMON_SETS], &at)) != NULL)
        dv_queue_add(&apps->queues[DV_APPS_DAEMON_QUEUE], set->meta->namespace, set->meta->name);
}

/* ---- plans ---- */

static const struct dv_api_node *const *gather_nodes(struct dv_apps_sync *sync, size_t *n)
{
    DV_VEC(const struct dv_api_node *) nodes = {0};
    struct dv_object *object;
    size_t at = 0;

    while ((object = dv_view_next(sync->apps->views[DV_APPS_NODES], &at)) != NULL)
        *dv_vec_add_in(&nodes, sync->arena) = dv_apps_hold(sync, object);
    *n = nodes.n;
    return nodes.v;
}

/* Where and of what template a pod has failed. */
static dv_str failed_key(const struct dv_apps_sync *sync, dv_str node)
{
    const struct dv_api_daemon_set *set = sync->object->value;

    return dv_str_printf(sync->arena, "%.*s/%lld/%.*s", DV_FMT(set->metadata.uid),
                         (long long)set->status.observed_generation, DV_FMT(node));
}

static void gather_waits(struct dv_apps_sync *sync, struct dv_daemon_input *input)
{
    DV_VEC(struct dv_daemon_wait) waits = {0};
    uint64_t now_ms = dv_loop_now_ms(sync->apps->loop);

    for (size_t i = 0; i < input->n_pods; i++) {
        const struct dv_api_pod *pod = input->pods[i];
        uint64_t ms;

        if (!dv_str_eq(pod->status.phase, DV_STR("Failed")))
            continue;
        ms = dv_failed_pods_wait_ms(&sync->apps->failed, failed_key(sync, dv_daemon_node_of(pod)),
                                    now_ms);
        if (ms > 0)
            *dv_vec_add_in(&waits, sync->arena) = (struct dv_daemon_wait){pod, ms};
    }
    input->waits = waits.v;
    input->n_waits = waits.n;
}

static void *gather(struct dv_apps_sync *sync)
{
    const struct dv_api_daemon_set *set = sync->object->value;
    struct dv_daemon_input *input = DV_NEW(sync->arena, struct dv_daemon_input);

    input->set = set;
    input->nodes = gather_nodes(sync, &input->n_nodes);
    input->pods = (const struct dv_api_pod *const *)dv_apps_gather_owned(
        sync, DV_APPS_PODS, set->spec.selector, &input->n_pods);
    input->revisions = (const struct dv_api_controller_revision *const *)dv_apps_gather_owned(
        sync, DV_APPS_REVISIONS, set->spec.selector, &input->n_revisions);
    input->now = dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(sync->apps->loop)));
    input->has_failed = sync->has_failed;
    input->has_collided = sync->has_collided;
    gather_waits(sync, input);
    return input;
}

static void plan(const void *input, struct dv_plan *plan)
{
    dv_daemon_plan(input, plan);
}

/* Remembers that a pod has failed, and was deleted for it. */
static void done(struct dv_apps_sync *sync, const struct dv_action *action)
{
    const struct dv_daemon_input *input = sync->input;

    if (!input || !dv_str_eq(action->reason, DV_STR("FailedDaemonPod")))
        return;
    for (size_t i = 0; i < input->n_pods; i++)
        if (dv_str_eq(input->pods[i]->metadata.uid, action->uid))
            dv_failed_pods_note(&sync->apps->failed,
                                failed_key(sync, dv_daemon_node_of(input->pods[i])),
                                dv_loop_now_ms(sync->apps->loop));
}

const struct dv_apps_controller dv_daemon_controller = {
    .view = DV_APPS_DAEMON_SETS,
    .component = "daemonset-controller",
    .gather = gather,
    .plan = plan,
    .done = done,
};

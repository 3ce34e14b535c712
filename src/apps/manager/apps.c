/* apps.c - opens and closes the controllers of what makes pods. Views tell changes, which put keys
 * into queues (apps_owned.c, daemon_sync.c); each queue runs the looks of one controller
 * (apps_sync.c). */
#include "apps/apps.h"

#include <assert.h>
#include <stdlib.h>

#include "apps/manager/apps_state.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/recorder.h"
#include "control/control_index.h"
#include "control/control_queue.h"
#include "resource/resource.h"

/* How many objects of a kind are looked at at a time. */
#define N_RUNNING_MAX 16u

const struct dv_apps_controller *const dv_apps_controllers[DV_N_APPS_QUEUES] = {
    [DV_APPS_DAEMON_QUEUE] = &dv_daemon_controller,
    [DV_APPS_REPLICA_QUEUE] = &dv_replica_controller,
    [DV_APPS_DEPLOYMENT_QUEUE] = &dv_deployment_controller,
    [DV_APPS_JOB_QUEUE] = &dv_job_controller,
    [DV_APPS_TRACKED_QUEUE] = &dv_tracked_controller,
    [DV_APPS_BUDGET_QUEUE] = &dv_budget_controller,
};

/* ---- views ---- */

static void pod_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_apps *apps = ctx;

    dv_apps_index(apps, DV_APPS_PODS, now, (now ? now : old)->meta);
    dv_apps_tracked_changed(apps, old, now);
    dv_apps_budget_pod_changed(apps, old, now);
    if (old)
        dv_apps_queue_owners(apps, DV_APPS_PODS, old->meta);
    if (now)
        dv_apps_queue_owners(apps, DV_APPS_PODS, now->meta);
}

static void revision_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_apps *apps = ctx;
    const struct dv_object *object = now ? now : old;

    dv_apps_index(apps, DV_APPS_REVISIONS, now, object->meta);
    dv_apps_queue_owners(apps, DV_APPS_REVISIONS, object->meta);
}

static const struct {
    enum dv_kind_id kind;
    void (*changed)(void *ctx, struct dv_object *old, struct dv_object *now);
} view_table[DV_N_APPS_VIEWS] = {
    [DV_APPS_PODS] = {DV_KIND_POD,                 pod_changed                },
    [DV_APPS_NODES] = {DV_KIND_NODE,                dv_apps_node_changed       },
    [DV_APPS_REVISIONS] = {DV_KIND_CONTROLLER_REVISION, revision_changed           },
    [DV_APPS_DAEMON_SETS] = {DV_KIND_DAEMON_SET,          dv_apps_daemon_set_changed },
    [DV_APPS_REPLICA_SETS] = {DV_KIND_REPLICA_SET,         dv_apps_replica_set_changed},
    [DV_APPS_DEPLOYMENTS] = {DV_KIND_DEPLOYMENT,          dv_apps_deployment_changed },
    [DV_APPS_JOBS] = {DV_KIND_JOB,                 dv_apps_job_changed        },
    [DV_APPS_BUDGETS] = {DV_KIND_DISRUPTION_BUDGET,   dv_apps_budget_changed     },
};

static void on_synced(void *ctx)
{
    struct dv_apps *apps = ctx;

    for (size_t i = 0; i < DV_N_APPS_VIEWS; i++)
        if (!apps->views[i] || !dv_view_is_synced(apps->views[i]))
            return;
    for (size_t i = 0; i < DV_N_APPS_QUEUES; i++)
        dv_queue_start(&apps->queues[i]);
}

static void close_views(struct dv_apps *apps)
{
    for (size_t i = 0; i < DV_N_APPS_VIEWS; i++) {
        if (apps->views[i])
            dv_view_close(apps->views[i]);
        apps->views[i] = NULL;
    }
}

static bool open_views(struct dv_apps *apps, struct dv_err *err)
{
    for (size_t i = 0; i < DV_N_APPS_VIEWS; i++) {
        const struct dv_view_options options = {.kind = dv_kind(view_table[i].kind),
                                                .changed = view_table[i].changed,
                                                .synced = on_synced,
                                                .ctx = apps};

        apps->views[i] = dv_view_open(apps->cluster, &options, err);
        if (!apps->views[i]) {
            close_views(apps);
            return dv_wrap(err, "view of %.*s", DV_FMT(options.kind->plural));
        }
    }
    return true;
}

/* ---- life ---- */

static void free_apps(struct dv_apps *apps)
{
    dv_task_cancel(&apps->close_task);
    for (size_t i = 0; i < DV_N_APPS_QUEUES; i++)
        dv_queue_fini(&apps->queues[i]);
    for (size_t i = 0; i < DV_N_APPS_VIEWS; i++) {
        dv_index_fini(&apps->owned[i]);
        dv_index_fini(&apps->selecting[i]);
    }
    dv_index_fini(&apps->budgeted);
    dv_failed_pods_fini(&apps->failed);
    dv_apps_fini_job_failures(apps);
    free(apps);
}

static void on_close_task(struct dv_task *task)
{
    struct dv_apps *apps = DV_CONTAINER(task, struct dv_apps, close_task);
    dv_closed_fn *closed = apps->closed;
    void *ctx = apps->closed_ctx;

    free_apps(apps);
    if (closed)
        closed(ctx);
}

static void part_closed(void *ctx)
{
    struct dv_apps *apps = ctx;

    assert(apps->n_closing > 0);
    if (--apps->n_closing == 0)
        dv_task_post(&apps->close_task, apps->loop, on_close_task);
}

static void on_queue_stopped(struct dv_queue *queue)
{
    part_closed(queue->options.ctx);
}

struct dv_apps *dv_apps_open(struct dv_loop *loop, struct dv_cluster *cluster, struct dv_err *err)
{
    struct dv_apps *apps = DV_ALLOC(struct dv_apps);

    apps->loop = loop;
    apps->cluster = cluster;
    dv_index_init(&apps->budgeted);
    dv_failed_pods_init(&apps->failed);
    dv_map_init(&apps->job_failures);
    for (size_t i = 0; i < DV_N_APPS_VIEWS; i++) {
        dv_index_init(&apps->owned[i]);
        dv_index_init(&apps->selecting[i]);
    }
    for (size_t i = 0; i < DV_N_APPS_QUEUES; i++)
        dv_queue_init(&apps->queues[i],
                      &(struct dv_queue_options){.loop = loop,
                                                 .item_bytes = sizeof(struct dv_apps_sync),
                                                 .n_running_max = N_RUNNING_MAX,
                                                 .run = dv_apps_sync_run,
                                                 .cancel = dv_apps_sync_cancel,
                                                 .stopped = on_queue_stopped,
                                                 .ctx = apps});
    if (!open_views(apps, err)) {
        free_apps(apps);
        (void)dv_wrap(err, "apps");
        return NULL;
    }
    for (size_t i = 0; i < DV_N_APPS_QUEUES; i++)
        apps->recorders[i] = dv_recorder_open(
            cluster, dv_str_from_c(dv_apps_controllers[i]->component), DV_STR_NONE);
    return apps;
}

void dv_apps_close(struct dv_apps *apps, dv_closed_fn *closed, void *ctx)
{
    assert(!apps->is_closing);
    apps->is_closing = true;
    apps->closed = closed;
    apps->closed_ctx = ctx;
    apps->n_closing = 2 * (size_t)DV_N_APPS_QUEUES;
    close_views(apps);
    for (size_t i = 0; i < DV_N_APPS_QUEUES; i++) {
        dv_queue_stop(&apps->queues[i]);
        dv_recorder_close(apps->recorders[i], part_closed, apps);
    }
}

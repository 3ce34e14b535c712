/* job_sync.c - Jobs (of the group batch): which changes concern which of them, and what a plan is
 * made from. Pods whose Job is gone or over, and which still have its finalizer, are looked at one
 * by one. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "apps/manager/apps_state.h"
#include "apps/plan/job_plan.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "control/control_queue.h"
#include "loop/loop.h"
#include "resource/resource.h"

/* ---- failures of pods that have been let go ---- */

/* Of a Job; kept until it goes. */
struct record {
    struct dv_job_failures failures;
    size_t n_uid;
    char uid[];
};

static struct record *find_record(struct dv_apps *apps, dv_str uid)
{
    struct record *record = dv_map_get(&apps->job_failures, uid);

    if (record)
        return record;
    record = dv_alloc(sizeof(*record) + uid.n);
    record->n_uid = uid.n;
    for (size_t i = 0; i < uid.n; i++)
        record->uid[i] = uid.p[i];
    (void)dv_map_set(&apps->job_failures, (dv_str){record->uid, record->n_uid}, record);
    return record;
}

static void forget_record(struct dv_apps *apps, dv_str uid)
{
    free(dv_map_remove(&apps->job_failures, uid));
}

void dv_apps_fini_job_failures(struct dv_apps *apps)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(&apps->job_failures, &at)) != NULL)
        free(entry->value);
    dv_map_fini(&apps->job_failures);
}

static bool is_tracked(const struct dv_object *object)
{
    return object && dv_meta_has_finalizer(object->meta, DV_STR(DV_JOB_FINALIZER));
}

/* Notes how a pod has ended which is let go now, or was before this process began. A pod that was
 * too many is let go before it is deleted, and has not ended. */
static void note_end(struct dv_apps *apps, const struct dv_object *old, const struct dv_object *now,
                     const struct dv_api_owner_reference *owner)
{
    const struct dv_api_pod *pod = now->value;
    bool has_succeeded = dv_str_eq(pod->status.phase, DV_STR("Succeeded"));
    bool has_failed = dv_str_eq(pod->status.phase, DV_STR("Failed")) ||
                      (is_tracked(old) && !has_succeeded && old->meta->deletion_timestamp.is_set);

    if (is_tracked(now) || (old && !is_tracked(old)) || (!has_succeeded && !has_failed))
        return;
    dv_job_failures_note(&find_record(apps, owner->uid)->failures, has_succeeded,
                         dv_job_pod_end(pod));
}

/* ---- changes ---- */

static const struct dv_api_owner_reference *job_of(const struct dv_api_object_meta *meta)
{
    const struct dv_api_owner_reference *owner = dv_controller_of(meta);
    dv_str version;
    dv_str group;

    if (!owner || !dv_str_eq(owner->kind, dv_kind(DV_KIND_JOB)->name))
        return NULL;
    dv_api_version_split(owner->api_version, &group, &version);
    return dv_str_eq(group, DV_STR(DV_BATCH_GROUP)) ? owner : NULL;
}

static void queue_tracked(struct dv_apps *apps, const struct dv_api_object_meta *pod)
{
    dv_queue_add(&apps->queues[DV_APPS_TRACKED_QUEUE], pod->namespace, pod->name);
}

void dv_apps_tracked_changed(struct dv_apps *apps, struct dv_object *old, struct dv_object *now)
{
    const struct dv_api_owner_reference *owner = now ? job_of(now->meta) : NULL;
    const struct dv_object *job = NULL;

    if (owner)
        note_end(apps, old, now, owner);
    if (!is_tracked(now))
        return;
    if (owner && apps->views[DV_APPS_JOBS])
        job = dv_view_get(apps->views[DV_APPS_JOBS], now->meta->namespace, owner->name);
    if (!job || !dv_str_eq(job->meta->uid, owner->uid) || dv_job_is_finished(job->value))
        queue_tracked(apps, now->meta);
}

/* Looks at the pods that nobody counts any more. */
static void queue_left(struct dv_apps *apps, const struct dv_api_object_meta *job)
{
    const struct dv_list *refs = dv_index_find(&apps->owned[DV_APPS_PODS], job->uid);
    struct dv_link *link;

    if (!refs)
        return;
    DV_LIST_EACH (refs, link) {
        const struct dv_object *pod = dv_apps_find(apps, DV_APPS_PODS, link);

        if (is_tracked(pod))
            queue_tracked(apps, pod->meta);
    }
}

void dv_apps_job_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_apps *apps = ctx;

    dv_apps_index_keeper(apps, DV_APPS_JOBS, now, (now ? now : old)->meta);
    if (now)
        dv_queue_add(&apps->queues[DV_APPS_JOB_QUEUE], now->meta->namespace, now->meta->name);
    if (!now || dv_job_is_finished(now->value)) {
        forget_record(apps, (now ? now : old)->meta->uid);
        queue_left(apps, (now ? now : old)->meta);
    }
    if (old && now && !dv_str_eq(old->meta->uid, now->meta->uid)) {
        forget_record(apps, old->meta->uid);
        queue_left(apps, old->meta);
    }
}

/* ---- plans ---- */

static void *gather(struct dv_apps_sync *sync)
{
    const struct dv_api_job *of = sync->object->value;
    const struct record *record = dv_map_get(&sync->apps->job_failures, of->metadata.uid);
    struct dv_job_input *input = DV_NEW(sync->arena, struct dv_job_input);

    input->job = of;
    input->pods = (const struct dv_api_pod *const *)dv_apps_gather_owned(
        sync, DV_APPS_PODS, of->spec.selector, &input->n_pods);
    if (record)
        input->failures = record->failures;
    input->now = dv_api_seconds_from_ns(dv_clock_wall_ns(dv_loop_clock(sync->apps->loop)));
    input->has_failed = sync->has_failed;
    return input;
}

static void plan(const void *input, struct dv_plan *plan)
{
    dv_job_plan(input, plan);
}

const struct dv_apps_controller dv_job_controller = {
    .view = DV_APPS_JOBS,
    .component = "job-controller",
    .gather = gather,
    .plan = plan,
};

static void *gather_tracked(struct dv_apps_sync *sync)
{
    struct dv_tracked_input *input = DV_NEW(sync->arena, struct dv_tracked_input);
    const struct dv_api_owner_reference *owner = job_of(sync->object->meta);
    struct dv_object *found = owner ? dv_view_get(sync->apps->views[DV_APPS_JOBS],
                                                  sync->object->meta->namespace, owner->name)
                                    : NULL;

    input->pod = sync->object->value;
    input->job = found ? dv_apps_hold(sync, found) : NULL;
    return input;
}

static void plan_tracked(const void *input, struct dv_plan *plan)
{
    dv_tracked_plan(input, plan);
}

const struct dv_apps_controller dv_tracked_controller = {
    .view = DV_APPS_PODS,
    .component = "job-controller",
    .gather = gather_tracked,
    .plan = plan_tracked,
};

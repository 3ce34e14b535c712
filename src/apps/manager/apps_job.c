/* apps_job.c - a look at one object: what concerns it is gathered, a plan is made, its actions are
 * done, and then it is looked again, until there is nothing to do. When an action fails the rest is
 * left, the status says what is so far, and it is tried again after a pause.
 *
 *     gather -> plan -> actions: 1, 2, 4 ... at a time -> again
 *                          | one fails
 *                          v
 *                       gather -> plan the status -> action -> again after a pause */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/manager/apps_state.h"
#include "apps/plan/apps_plan.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/recorder.h"
#include "control/control_queue.h"
#include "loop/loop.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/status.h"

/* With objects that take more memory than this the plan is made on a worker, too: revisions are
 * read as text, templates written as such. */
#define ON_LOOP_BYTES_MAX ((size_t)256 * 1024)
/* The name under which fields of objects are set. */
#define MANAGER DV_STR("kube-controller-manager")

static void next_actions(struct dv_apps_job *job);
static void look(struct dv_apps_job *job);

/* ---- life of a run ---- */

const void *dv_apps_hold(struct dv_apps_job *job, struct dv_object *object)
{
    *dv_vec_add(&job->held) = dv_object_ref(object);
    return object->value;
}

/* Gives back what the plan refers to. */
static void drop_plan(struct dv_apps_job *job)
{
    for (size_t i = 0; i < job->held.n; i++)
        dv_object_unref(job->held.v[i]);
    dv_vec_fini(&job->held);
    for (size_t i = 0; i < job->kept.n; i++)
        dv_object_unkeep(job->kept.v[i]);
    dv_vec_fini(&job->kept);
    dv_vec_fini(&job->unread);
    dv_object_unref(job->object);
    job->object = NULL;
}

static void clean(struct dv_apps_job *job)
{
    assert(job->n_running == 0 && !job->is_working);
    drop_plan(job);
    dv_loop_free_arena(job->apps->loop, job->arena);
    job->arena = NULL;
    job->requests = NULL;
    job->n_started = job->n_batch = 0;
}

static void finish(struct dv_apps_job *job)
{
    uint64_t again_ms = job->plan.actions.n > 0 && !job->is_hopeless ? 0 : job->plan.again_ms;

    job->has_failed = job->has_collided = job->is_hopeless = false;
    clean(job);
    if (again_ms == DV_PLAN_NEVER)
        dv_queue_finish(&job->item);
    else
        dv_queue_finish_after(&job->item, again_ms);
}

/* The level at which a failure is logged: of failures in a row the first, second, fourth, eighth
 * and so on are warnings. A conflict is none: somebody else was faster. */
static enum dv_log_level level_of(const struct dv_apps_job *job)
{
    uint32_t n = job->item.n_failures;

    return job->err.code != DV_ABORTED && (n & (n - 1)) == 0 ? DV_LOG_WARN : DV_LOG_DEBUG;
}

static void retry(struct dv_apps_job *job)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str key = dv_str_copy(job->item.key, scratch);
    enum dv_log_level level = level_of(job);
    struct dv_err err = job->err;
    uint64_t ms_min = job->retry_ms_min;
    uint64_t pause_ms;

    job->has_failed = job->has_collided = false;
    clean(job);
    pause_ms = dv_queue_retry(&job->item, ms_min);
    dv_log(level, "apps: failed; retrying", DV_F_STR("object", key), DV_F_CODE(&err),
           DV_F_ERR(&err), DV_F_U64("retry_ms", pause_ms));
}

/* ---- actions ---- */

static bool change(const struct dv_request *request, void *value, struct dv_arena *arena)
{
    const struct dv_action *action = request->ctx;
    const struct dv_api_object_meta *meta = value; /* the first member of every object */

    return dv_str_eq(meta->uid, action->uid) && action->change(action, value, arena);
}

static void note(struct dv_apps_job *job, bool is_warning, dv_str reason, dv_str message)
{
    struct dv_note_subject subject = dv_note_subject_of(job->object);

    dv_recorder_note(job->recorder, &subject, is_warning, reason, message);
}

static void tell_done(struct dv_apps_job *job, const struct dv_apps_request *asked)
{
    const struct dv_action *action = asked->action;
    dv_str name = asked->request.object ? asked->request.object->meta->name : action->name;

    if (action->reason.n > 0)
        note(job, action->is_warning, action->reason, action->message);
    if (action->kind->id == DV_KIND_POD && action->type == DV_ACTION_CREATE)
        note(job, false, DV_STR("SuccessfulCreate"),
             dv_str_printf(job->arena, "Created pod: %.*s", DV_FMT(name)));
    if (action->kind->id == DV_KIND_POD && action->type == DV_ACTION_DELETE)
        note(job, false, DV_STR("SuccessfulDelete"),
             dv_str_printf(job->arena, "Deleted pod: %.*s", DV_FMT(name)));
    if (job->controller->done)
        job->controller->done(job, action);
}

static bool is_terminating(const struct dv_api_status *failure)
{
    for (size_t i = 0; failure->details && i < failure->details->n_causes; i++)
        if (dv_str_eq(failure->details->causes[i].reason, DV_STR("NamespaceTerminating")))
            return true;
    return false;
}

static void fail(struct dv_apps_job *job, const struct dv_action *action,
                 const struct dv_api_status *failure)
{
    bool is_create = action->type == DV_ACTION_CREATE;
    dv_str message = dv_str_copy(failure->message, job->arena);

    job->has_failed = true;
    dv_status_to_err(failure, &job->err);
    job->retry_ms_min = failure->code >= 400 && failure->code < 499 ? 0 : 1000;
    job->has_collided = is_create && failure->code == 409 && action->name.n > 0;
    job->is_hopeless = is_create && is_terminating(failure);
    if (action->kind->id != DV_KIND_POD || action->type == DV_ACTION_CHANGE || job->is_hopeless)
        return;
    job->failed_reason = is_create ? DV_STR("FailedCreate") : DV_STR("FailedDelete");
    job->failed_message = message;
    note(job, true, job->failed_reason,
         dv_str_printf(job->arena, "Error %s: %.*s", is_create ? "creating" : "deleting",
                       DV_FMT(message)));
}

static void on_answered(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_apps_request *asked = DV_CONTAINER(request, struct dv_apps_request, request);
    struct dv_apps_job *job = asked->job;

    asked->is_asking = false;
    job->n_running--;
    if (!failure)
        tell_done(job, asked);
    else if (!(asked->action->type == DV_ACTION_DELETE && failure->code == 404) &&
             !job->apps->is_closing)
        fail(job, asked->action, failure);
    if (job->n_running == 0)
        next_actions(job);
}

static void start(struct dv_apps_job *job, struct dv_apps_request *asked,
                  const struct dv_action *action)
{
    static const enum dv_verb verbs[] = {
        [DV_ACTION_CREATE] = DV_VERB_CREATE,
        [DV_ACTION_DELETE] = DV_VERB_DELETE,
        [DV_ACTION_CHANGE] = DV_VERB_PATCH,
        [DV_ACTION_CHANGE_STATUS] = DV_VERB_PATCH,
    };

    asked->job = job;
    asked->action = action;
    asked->is_asking = true;
    asked->preconditions = (struct dv_api_preconditions){.uid = action->uid};
    asked->delete_options = (struct dv_api_delete_options){
        .preconditions = &asked->preconditions, .propagation_policy = action->propagation_policy};
    asked->request = (struct dv_request){
        .verb = verbs[action->type],
        .subresource = action->type == DV_ACTION_CHANGE_STATUS ? DV_SUB_STATUS : DV_SUB_NONE,
        .kind = action->kind,
        .namespace = action->namespace,
        .name = action->name,
        .value = action->value,
        .change = action->change ? change : NULL,
        .delete_options = action->type == DV_ACTION_DELETE ? &asked->delete_options : NULL,
        .field_manager = MANAGER,
        .is_untracked = true,
        .ctx = (void *)(uintptr_t)action,
        .size_bytes = action->type == DV_ACTION_CREATE ? job->object->size_bytes : 0,
        .done = on_answered,
    };
    job->n_running++;
    dv_request_start(job->apps->cluster, &asked->request);
}

/* Starts the next actions, twice as many as the last time; or goes on when that were all. */
static void next_actions(struct dv_apps_job *job)
{
    size_t n_left = job->plan.actions.n - job->n_started;
    size_t n = dv_size_min(n_left, dv_size_min(job->n_batch, DV_APPS_BATCH_MAX));

    if (!job->apps->is_closing && job->has_failed && job->input) {
        look(job); /* once more, for the status */
    } else if (!job->apps->is_closing && job->has_failed && n_left == 0 && !job->is_hopeless) {
        retry(job);
    } else if (job->apps->is_closing || n_left == 0) {
        finish(job);
    } else {
        size_t from = job->n_started;

        job->n_started += n;
        job->n_batch *= 2;
        for (size_t i = 0; i < n; i++)
            start(job, &job->requests[i], &job->plan.actions.v[from + i]);
    }
}

/* ---- plans ---- */

static void begin_actions(struct dv_apps_job *job)
{
    size_t n = dv_size_min(job->plan.actions.n, DV_APPS_BATCH_MAX);

    job->requests = DV_NEW_ARRAY(job->arena, struct dv_apps_request, n);
    job->n_batch = 1;
    job->n_started = 0;
    if (job->has_failed)
        job->input = NULL; /* this was the look for the status */
    next_actions(job);
}

/* Reads what was left to the worker. */
static void read_all(struct dv_apps_job *job)
{
    for (size_t i = 0; i < job->unread.n; i++) {
        const struct dv_apps_unread *some = &job->unread.v[i];

        for (size_t k = 0; k < some->n; k++) {
            struct dv_object *whole = DV_NEW(job->arena, struct dv_object);

            if (!some->values[k])
                some->values[k] = dv_object_read(some->objects[k], job->arena, whole)->value;
        }
    }
}

static void on_work(struct dv_work *work)
{
    struct dv_apps_job *job = DV_CONTAINER(work, struct dv_apps_job, work);

    read_all(job);
    job->controller->plan(job->input, &job->plan);
}

static void on_work_done(struct dv_work *work, const struct dv_err *err)
{
    struct dv_apps_job *job = DV_CONTAINER(work, struct dv_apps_job, work);

    job->is_working = false;
    if (err || job->apps->is_closing)
        finish(job);
    else
        begin_actions(job);
}

/* Whether a plan for what was gathered would hold up the loop. */
static bool is_much(const struct dv_apps_job *job)
{
    size_t n_bytes = job->object->size_bytes;

    for (size_t i = 0; i < job->held.n && n_bytes <= ON_LOOP_BYTES_MAX; i++)
        n_bytes += job->held.v[i]->size_bytes;
    return job->held.n >= DV_APPS_ON_LOOP_MAX || n_bytes > ON_LOOP_BYTES_MAX;
}

/* Gathers what there is now, and plans. */
static void look(struct dv_apps_job *job)
{
    struct dv_object *object =
        dv_view_get(job->apps->views[job->controller->view], job->item.namespace, job->item.name);

    drop_plan(job);
    dv_plan_init(&job->plan, job->arena);
    if (!object) {
        job->is_hopeless = true;
        finish(job);
        return;
    }
    job->object = dv_object_ref(object);
    job->input = job->controller->gather(job);
    if (is_much(job)) {
        job->work = (struct dv_work){.run = on_work, .done = on_work_done};
        job->is_working = true;
        dv_work_start(&job->work, job->apps->loop);
        return;
    }
    job->controller->plan(job->input, &job->plan);
    begin_actions(job);
}

void dv_apps_job_run(struct dv_queue_item *item)
{
    struct dv_apps_job *job = DV_CONTAINER(item, struct dv_apps_job, item);
    struct dv_apps *apps = item->queue->options.ctx;
    size_t at = (size_t)(item->queue - apps->queues);

    job->apps = apps;
    job->controller = dv_apps_controllers[at];
    job->recorder = apps->recorders[at];
    job->arena = dv_arena_new();
    look(job);
}

void dv_apps_job_cancel(struct dv_queue_item *item)
{
    struct dv_apps_job *job = DV_CONTAINER(item, struct dv_apps_job, item);
    size_t n;

    if (job->is_working)
        return; /* it ends by itself */
    n = dv_size_min(job->plan.actions.n, DV_APPS_BATCH_MAX);
    for (size_t i = 0; job->requests && i < n; i++)
        if (job->requests[i].is_asking)
            dv_request_cancel(job->apps->cluster, &job->requests[i].request);
}

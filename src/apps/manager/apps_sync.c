/* apps_sync.c - a look at one object: what concerns it is gathered, a plan is made, its actions are
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

static void next_actions(struct dv_apps_sync *sync);
static void look(struct dv_apps_sync *sync);

/* ---- life of a run ---- */

const void *dv_apps_hold(struct dv_apps_sync *sync, struct dv_object *object)
{
    *dv_vec_add(&sync->held) = dv_object_ref(object);
    return object->value;
}

/* Gives back what the plan refers to. */
static void drop_plan(struct dv_apps_sync *sync)
{
    for (size_t i = 0; i < sync->held.n; i++)
        dv_object_unref(sync->held.v[i]);
    dv_vec_fini(&sync->held);
    for (size_t i = 0; i < sync->kept.n; i++)
        dv_object_unkeep(sync->kept.v[i]);
    dv_vec_fini(&sync->kept);
    dv_vec_fini(&sync->unread);
    dv_object_unref(sync->object);
    sync->object = NULL;
}

static void clean(struct dv_apps_sync *sync)
{
    assert(sync->n_running == 0 && !sync->is_working);
    drop_plan(sync);
    dv_loop_free_arena(sync->apps->loop, sync->arena);
    sync->arena = NULL;
    sync->requests = NULL;
    sync->n_started = sync->n_batch = 0;
}

static void finish(struct dv_apps_sync *sync)
{
    uint64_t again_ms = sync->plan.actions.n > 0 && !sync->is_hopeless ? 0 : sync->plan.again_ms;

    sync->has_failed = sync->has_collided = sync->is_hopeless = false;
    clean(sync);
    if (again_ms == DV_PLAN_NEVER)
        dv_queue_finish(&sync->item);
    else
        dv_queue_finish_after(&sync->item, again_ms);
}

/* The level at which a failure is logged: of failures in a row the first, second, fourth, eighth
 * and so on are warnings. A conflict is none: somebody else was faster. */
static enum dv_log_level level_of(const struct dv_apps_sync *sync)
{
    uint32_t n = sync->item.n_failures;

    return sync->err.code != DV_ABORTED && (n & (n - 1)) == 0 ? DV_LOG_WARN : DV_LOG_DEBUG;
}

static void retry(struct dv_apps_sync *sync)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str key = dv_str_copy(sync->item.key, scratch);
    enum dv_log_level level = level_of(sync);
    struct dv_err err = sync->err;
    uint64_t ms_min = sync->retry_ms_min;
    uint64_t pause_ms;

    sync->has_failed = sync->has_collided = false;
    clean(sync);
    pause_ms = dv_queue_retry(&sync->item, ms_min);
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

static void note(struct dv_apps_sync *sync, bool is_warning, dv_str reason, dv_str message)
{
    struct dv_note_subject subject = dv_note_subject_of(sync->object);

    dv_recorder_note(sync->recorder, &subject, is_warning, reason, message);
}

static void tell_done(struct dv_apps_sync *sync, const struct dv_apps_request *asked)
{
    const struct dv_action *action = asked->action;
    dv_str name = asked->request.object ? asked->request.object->meta->name : action->name;

    if (action->reason.n > 0)
        note(sync, action->is_warning, action->reason, action->message);
    if (action->kind->id == DV_KIND_POD && action->type == DV_ACTION_CREATE)
        note(sync, false, DV_STR("SuccessfulCreate"),
             dv_str_printf(sync->arena, "Created pod: %.*s", DV_FMT(name)));
    if (action->kind->id == DV_KIND_POD && action->type == DV_ACTION_DELETE)
        note(sync, false, DV_STR("SuccessfulDelete"),
             dv_str_printf(sync->arena, "Deleted pod: %.*s", DV_FMT(name)));
    if (sync->controller->done)
        sync->controller->done(sync, action);
}

static bool is_terminating(const struct dv_api_status *failure)
{
    for (size_t i = 0; failure->details && i < failure->details->n_causes; i++)
        if (dv_str_eq(failure->details->causes[i].reason, DV_STR("NamespaceTerminating")))
            return true;
    return false;
}

static void fail(struct dv_apps_sync *sync, const struct dv_action *action,
                 const struct dv_api_status *failure)
{
    bool is_create = action->type == DV_ACTION_CREATE;
    dv_str message = dv_str_copy(failure->message, sync->arena);

    sync->has_failed = true;
    dv_status_to_err(failure, &sync->err);
    sync->retry_ms_min = failure->code >= 400 && failure->code < 499 ? 0 : 1000;
    sync->has_collided = is_create && failure->code == 409 && action->name.n > 0;
    sync->is_hopeless = is_create && is_terminating(failure);
    if (action->kind->id != DV_KIND_POD || action->type == DV_ACTION_CHANGE || sync->is_hopeless)
        return;
    sync->failed_reason = is_create ? DV_STR("FailedCreate") : DV_STR("FailedDelete");
    sync->failed_message = message;
    note(sync, true, sync->failed_reason,
         dv_str_printf(sync->arena, "Error %s: %.*s", is_create ? "creating" : "deleting",
                       DV_FMT(message)));
}

static void on_answered(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_apps_request *asked = DV_CONTAINER(request, struct dv_apps_request, request);
    struct dv_apps_sync *sync = asked->sync;

    asked->is_asking = false;
    sync->n_running--;
    if (!failure)
        tell_done(sync, asked);
    else if (!(asked->action->type == DV_ACTION_DELETE && failure->code == 404) &&
             !sync->apps->is_closing)
        fail(sync, asked->action, failure);
    if (sync->n_running == 0)
        next_actions(sync);
}

static void start(struct dv_apps_sync *sync, struct dv_apps_request *asked,
                  const struct dv_action *action)
{
    static const enum dv_verb verbs[] = {
        [DV_ACTION_CREATE] = DV_VERB_CREATE,
        [DV_ACTION_DELETE] = DV_VERB_DELETE,
        [DV_ACTION_CHANGE] = DV_VERB_PATCH,
        [DV_ACTION_CHANGE_STATUS] = DV_VERB_PATCH,
    };

    asked->sync = sync;
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
        .size_bytes = action->type == DV_ACTION_CREATE ? sync->object->size_bytes : 0,
        .done = on_answered,
    };
    sync->n_running++;
    dv_request_start(sync->apps->cluster, &asked->request);
}

/* Starts the next actions, twice as many as the last time; or goes on when that were all. */
static void next_actions(struct dv_apps_sync *sync)
{
    size_t n_left = sync->plan.actions.n - sync->n_started;
    size_t n = dv_size_min(n_left, dv_size_min(sync->n_batch, DV_APPS_BATCH_MAX));

    if (!sync->apps->is_closing && sync->has_failed && sync->input) {
        look(sync); /* once more, for the status */
    } else if (!sync->apps->is_closing && sync->has_failed && n_left == 0 && !sync->is_hopeless) {
        retry(sync);
    } else if (sync->apps->is_closing || n_left == 0) {
        finish(sync);
    } else {
        size_t from = sync->n_started;

        sync->n_started += n;
        sync->n_batch *= 2;
        for (size_t i = 0; i < n; i++)
            start(sync, &sync->requests[i], &sync->plan.actions.v[from + i]);
    }
}

/* ---- plans ---- */

static void begin_actions(struct dv_apps_sync *sync)
{
    size_t n = dv_size_min(sync->plan.actions.n, DV_APPS_BATCH_MAX);

    sync->requests = DV_NEW_ARRAY(sync->arena, struct dv_apps_request, n);
    sync->n_batch = 1;
    sync->n_started = 0;
    if (sync->has_failed)
        sync->input = NULL; /* this was the look for the status */
    next_actions(sync);
}

/* Reads what was left to the worker. */
static void read_all(struct dv_apps_sync *sync)
{
    for (size_t i = 0; i < sync->unread.n; i++) {
        const struct dv_apps_unread *some = &sync->unread.v[i];

        for (size_t k = 0; k < some->n; k++) {
            struct dv_object *whole = DV_NEW(sync->arena, struct dv_object);

            if (!some->values[k])
                some->values[k] = dv_object_read(some->objects[k], sync->arena, whole)->value;
        }
    }
}

static void on_work(struct dv_work *work)
{
    struct dv_apps_sync *sync = DV_CONTAINER(work, struct dv_apps_sync, work);

    read_all(sync);
    sync->controller->plan(sync->input, &sync->plan);
}

static void on_work_done(struct dv_work *work, const struct dv_err *err)
{
    struct dv_apps_sync *sync = DV_CONTAINER(work, struct dv_apps_sync, work);

    sync->is_working = false;
    if (err || sync->apps->is_closing)
        finish(sync);
    else
        begin_actions(sync);
}

/* Whether a plan for what was gathered would hold up the loop. */
static bool is_much(const struct dv_apps_sync *sync)
{
    size_t n_bytes = sync->object->size_bytes;

    for (size_t i = 0; i < sync->held.n && n_bytes <= ON_LOOP_BYTES_MAX; i++)
        n_bytes += sync->held.v[i]->size_bytes;
    return sync->held.n >= DV_APPS_ON_LOOP_MAX || n_bytes > ON_LOOP_BYTES_MAX;
}

/* Gathers what there is now, and plans. */
static void look(struct dv_apps_sync *sync)
{
    struct dv_object *object = dv_view_get(sync->apps->views[sync->controller->view],
                                           sync->item.namespace, sync->item.name);

    drop_plan(sync);
    dv_plan_init(&sync->plan, sync->arena);
    if (!object) {
        sync->is_hopeless = true;
        finish(sync);
        return;
    }
    sync->object = dv_object_ref(object);
    sync->input = sync->controller->gather(sync);
    if (is_much(sync)) {
        sync->work = (struct dv_work){.run = on_work, .done = on_work_done};
        sync->is_working = true;
        dv_work_start(&sync->work, sync->apps->loop);
        return;
    }
    sync->controller->plan(sync->input, &sync->plan);
    begin_actions(sync);
}

void dv_apps_sync_run(struct dv_queue_item *item)
{
    struct dv_apps_sync *sync = DV_CONTAINER(item, struct dv_apps_sync, item);
    struct dv_apps *apps = item->queue->options.ctx;
    size_t at = (size_t)(item->queue - apps->queues);

    sync->apps = apps;
    sync->controller = dv_apps_controllers[at];
    sync->recorder = apps->recorders[at];
    sync->arena = dv_arena_new();
    look(sync);
}

void dv_apps_sync_cancel(struct dv_queue_item *item)
{
    struct dv_apps_sync *sync = DV_CONTAINER(item, struct dv_apps_sync, item);
    size_t n;

    if (sync->is_working)
        return; /* it ends by itself */
    n = dv_size_min(sync->plan.actions.n, DV_APPS_BATCH_MAX);
    for (size_t i = 0; sync->requests && i < n; i++)
        if (sync->requests[i].is_asking)
            dv_request_cancel(sync->apps->cluster, &sync->requests[i].request);
}

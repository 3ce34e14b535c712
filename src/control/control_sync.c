/* control_sync.c - what all syncs of the queues have in common: an arena and an object for the time
 * of a run, one request at a time, and what is done about a failure. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "control/control.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "resource/resource.h"
#include "resource/status.h"

/* When it is not known whether a request had its effect, the views get this time to show it. A
 * claim that was made after all must be found before another one is made. */
#define UNSURE_MS 1000u

void dv_control_sync_begin(struct dv_control_sync *sync, struct dv_control *control,
                           struct dv_object *object)
{
    sync->control = control;
    sync->arena = dv_arena_new();
    sync->object = dv_object_ref(object);
}

/* Frees what the run had: its arena and its object. */
static void clean(struct dv_control_sync *sync)
{
    assert(!sync->is_asking);
    dv_object_unref(sync->object);
    sync->object = NULL;
    dv_arena_free(sync->arena);
    sync->arena = NULL;
}

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_control_sync *sync = DV_CONTAINER(request, struct dv_control_sync, request);

    sync->is_asking = false;
    if (sync->control->is_closing)
        dv_control_sync_finish(sync);
    else
        sync->answered(sync, failure);
}

void dv_control_sync_ask(struct dv_control_sync *sync,
                         void (*answered)(struct dv_control_sync *sync,
                                          const struct dv_api_status *failure))
{
    assert(!sync->is_asking);
    sync->is_asking = true;
    sync->answered = answered;
    sync->request.done = on_done;
    sync->request.is_untracked = true;
    dv_request_start(sync->control->options.cluster, &sync->request);
}

void dv_control_sync_cancel(struct dv_queue_item *item)
{
    struct dv_control_sync *sync = DV_CONTAINER(item, struct dv_control_sync, item);

    if (sync->is_asking)
        dv_request_cancel(sync->control->options.cluster, &sync->request);
}

void dv_control_sync_finish(struct dv_control_sync *sync)
{
    clean(sync);
    dv_queue_finish(&sync->item);
}

void dv_control_sync_finish_after(struct dv_control_sync *sync, uint64_t ms)
{
    clean(sync);
    dv_queue_finish_after(&sync->item, ms);
}

/* The level at which a failure is logged: of failures in a row the first, second, fourth, eighth
 * and so on are warnings, so that a server which is down for an hour does not fill the log. */
static enum dv_log_level level_of(const struct dv_control_sync *sync, enum dv_code code)
{
    uint32_t n = sync->item.n_failures;

    if (code == DV_ABORTED)
        return DV_LOG_DEBUG; /* a conflict: somebody else was faster, and nothing is wrong */
    return (n & (n - 1)) == 0 ? DV_LOG_WARN : DV_LOG_DEBUG;
}

static void retry(struct dv_control_sync *sync, const char *what, const struct dv_err *err,
                  uint64_t ms_min)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str key = dv_str_copy(sync->item.key, scratch);
    enum dv_log_level level = level_of(sync, err->code);
    uint64_t pause_ms;

    clean(sync);
    pause_ms = dv_queue_retry(&sync->item, ms_min);
    dv_log(level, "control: failed; retrying", DV_F_C("step", what), DV_F_STR("object", key),
           DV_F_CODE(err), DV_F_ERR(err), DV_F_U64("retry_ms", pause_ms));
}

void dv_control_sync_fail_err(struct dv_control_sync *sync, const char *what,
                              const struct dv_err *err)
{
    retry(sync, what, err, 0);
}

void dv_control_sync_fail(struct dv_control_sync *sync, const char *what,
                          const struct dv_api_status *failure)
{
    uint64_t ms_min = failure->code >= 400 && failure->code < 499 ? 0 : UNSURE_MS;
    struct dv_err err;

    if (failure->details && failure->details->retry_after_seconds > 0)
        ms_min = (uint64_t)failure->details->retry_after_seconds * 1000;
    dv_status_to_err(failure, &err);
    retry(sync, what, &err, ms_min);
}

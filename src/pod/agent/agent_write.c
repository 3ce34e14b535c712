/* agent_write.c - what is written to the API about a pod: its status, and that it is gone. */
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "pod/agent/agent_pause.h"
#include "pod/agent/agent_state.h"
#include "resource/resource.h"
#include "json/json.h"

#define PAUSE_JITTER_PER_MILLE 200u
#define NOT_FOUND 404
#define CONFLICT 409
#define STATUS_BYTES_MAX (1u << 20)

static void on_write_timer(struct dv_timer *timer)
{
    dv_agent_pod_look(DV_CONTAINER(timer, struct dv_agent_pod, write_timer));
}

/* Starts the pause after a write was refused, or while a removed pod is still in the API. */
static void pause_writes(struct dv_agent_pod *pod)
{
    uint64_t now_ms = dv_loop_now_ms(pod->agent->loop);
    uint64_t pause_ms = dv_agent_pause_fail(&pod->write_pause, now_ms, DV_AGENT_PAUSE_MAX_MS);

    dv_timer_start(&pod->write_timer, pod->agent->loop,
                   now_ms + dv_jitter(pause_ms, PAUSE_JITTER_PER_MILLE), on_write_timer);
}

/* A failed write was made from an old view of the pod, which the watch will correct. Until then,
 * and while finalizers keep a removed pod in the API, writes pause. */
static void on_written(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_agent_pod *pod = DV_CONTAINER(request, struct dv_agent_pod, write.request);
    bool is_gone = failure && (failure->code == NOT_FOUND || failure->code == CONFLICT);
    bool was_removal = request->verb == DV_VERB_DELETE;

    if (failure && !is_gone && !pod->agent->is_closing)
        dv_log(DV_LOG_WARN, "pod: the API does not take what is written of a pod",
               DV_F_STR("namespace", pod->namespace), DV_F_STR("pod", pod->name),
               DV_F_STR("why", failure->message));
    dv_agent_write_end(&pod->write);
    if (pod->agent->is_closing) {
        dv_agent_check_closed(pod->agent);
        return;
    }
    if (failure) {
        pod->written = 0;
        pod->is_dirty = true;
    }
    if (failure || was_removal)
        pause_writes(pod);
    else
        pod->write_pause = (struct dv_agent_pause){0};
    dv_agent_pod_look(pod);
}

static void address(struct dv_agent_pod *pod, enum dv_verb verb)
{
    struct dv_request *request = &pod->write.request;

    request->verb = verb;
    request->kind = dv_kind(DV_KIND_POD);
    request->namespace = pod->namespace;
    request->name = pod->name;
    request->done = on_written;
}

static void patch_status(struct dv_agent_pod *pod, struct dv_json *patch)
{
    address(pod, DV_VERB_PATCH);
    pod->write.request.subresource = DV_SUB_STATUS;
    pod->write.request.patch_type = DV_PATCH_STRATEGIC;
    pod->write.request.patch = patch;
    dv_request_start(pod->agent->options.cluster, &pod->write.request);
}

/* Writes the status only when it differs from the last one: each write costs the API one of its
 * disk. */
void dv_agent_pod_write(struct dv_agent_pod *pod)
{
    struct dv_buf text;
    struct dv_json *patch;
    uint64_t hash;

    if (!pod->is_dirty || !pod->object || !dv_agent_pod_shown(pod) ||
        dv_timer_is_set(&pod->write_timer) || !dv_agent_write_begin(&pod->write))
        return;
    pod->is_dirty = false;
    patch = dv_agent_status(pod, pod->write.arena);
    dv_buf_init(&text, STATUS_BYTES_MAX);
    if (patch)
        dv_json_print(patch, NULL, &text);
    hash = dv_hash(dv_buf_str(&text));
    if (!patch || pod->written == hash) {
        dv_agent_write_end(&pod->write);
    } else {
        pod->written = hash;
        patch_status(pod, patch);
    }
    dv_buf_fini(&text);
}

void dv_agent_pod_remove(struct dv_agent_pod *pod)
{
    static const int64_t at_once = 0;
    struct dv_api_delete_options *options;

    if (dv_timer_is_set(&pod->write_timer) || !dv_agent_write_begin(&pod->write))
        return; /* writes pause, or one is under way */
    options = DV_NEW(pod->write.arena, struct dv_api_delete_options);
    options->grace_period_seconds = &at_once;
    options->preconditions = DV_NEW(pod->write.arena, struct dv_api_preconditions);
    options->preconditions->uid = pod->uid;
    address(pod, DV_VERB_DELETE);
    pod->write.request.delete_options = options;
    dv_request_start(pod->agent->options.cluster, &pod->write.request);
}

/* agent_pod.c - one pod of the API, step by step. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/num.h"
#include "cluster/cluster.h"
#include "cluster/recorder.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "pod/agent/agent_fit.h"
#include "pod/agent/agent_state.h"
#include "pod/agent/agent_step.h"
#include "pod/agent/bare_status.h"
#include "pod/pod.h"
#include "pod/runner.h"
#include "resource/resource.h"

/* The longest pause of a pod when no plugin or driver was asked and its claims are not watched:
 * what would help it can only be found by asking the API again. */
#define LOOK_MAX_MS 10000u
#define PAUSE_JITTER_PER_MILLE 200u

/* Operations are large, and most pods have none under way. */
struct dv_agent_admitting {
    struct dv_agent_pod *pod;
    struct dv_pod_admission admission;
};

struct dv_agent_releasing {
    struct dv_agent_pod *pod;
    struct dv_pod_release release;
};

static void step(struct dv_agent_pod *pod);

static uint64_t wall_ns(const struct dv_agent_pod *pod)
{
    return dv_clock_wall_ns(dv_loop_clock(pod->agent->loop));
}

static const struct dv_api_pod *value_of(const struct dv_agent_pod *pod)
{
    return pod->object ? pod->object->value : NULL;
}

static void set_text(char **text, dv_str value)
{
    free(*text);
    *text = dv_alloc(value.n + 1);
    if (value.n > 0)
        memcpy(*text, value.p, value.n);
}

/* ---- life ---- */

struct dv_agent_pod *dv_agent_pod_new(struct dv_agent *agent, dv_str uid, dv_str namespace,
                                      dv_str name)
{
    struct dv_agent_pod *pod = dv_alloc(sizeof(*pod) + uid.n + namespace.n + name.n);
    char *at = pod->text;

    memcpy(at, uid.p, uid.n);
    pod->uid = (dv_str){at, uid.n};
    at += uid.n;
    memcpy(at, namespace.p, namespace.n);
    pod->namespace = (dv_str){at, namespace.n};
    at += namespace.n;
    memcpy(at, name.p, name.n);
    pod->name = (dv_str){at, name.n};
    pod->agent = agent;
    (void)dv_map_set(&agent->pods, pod->uid, pod);
    return pod;
}

void dv_agent_pod_free(struct dv_agent_pod *pod)
{
    dv_timer_cancel(&pod->timer);
    dv_timer_cancel(&pod->write_timer);
    dv_task_cancel(&pod->task);
    dv_link_remove(&pod->waiting);
    dv_object_unref(pod->object);
    dv_object_unref(pod->file);
    dv_arena_free(pod->write.arena);
    free(pod->rival);
    free(pod->reason);
    free(pod->message);
    free(pod->awaited);
    free(pod->kept);
    free(pod);
}

static void forget(struct dv_agent_pod *pod)
{
    dv_pods_forget_ended(pod->agent->options.pods, pod->uid);
    (void)dv_map_remove(&pod->agent->pods, pod->uid);
    if (pod->is_static)
        dv_agent_mirror_forget(pod->agent, pod);
    dv_agent_pod_free(pod);
}

bool dv_agent_pod_is_idle(const struct dv_agent_pod *pod)
{
    return pod->state != DV_AGENT_ADMITTING && pod->state != DV_AGENT_RELEASING &&
           !pod->write.is_running;
}

void dv_agent_pod_stop(struct dv_agent_pod *pod)
{
    dv_timer_cancel(&pod->timer);
    dv_timer_cancel(&pod->write_timer);
    dv_task_cancel(&pod->task);
    if (pod->admitting)
        dv_pods_cancel(&pod->admitting->admission);
    if (pod->releasing)
        dv_pods_cancel_release(&pod->releasing->release);
    if (pod->write.is_running)
        dv_request_cancel(pod->agent->options.cluster, &pod->write.request);
}

static void on_task(struct dv_task *task)
{
    step(DV_CONTAINER(task, struct dv_agent_pod, task));
}

void dv_agent_pod_look(struct dv_agent_pod *pod)
{
    if (pod->agent->is_closing)
        dv_agent_check_closed(pod->agent);
    else
        dv_task_post(&pod->task, pod->agent->loop, on_task);
}

static void note(struct dv_agent_pod *pod, bool is_warning, const char *reason, dv_str message)
{
    struct dv_note_subject subject = {.kind = DV_STR("Pod"),
                                      .api_version = DV_STR("v1"),
                                      .namespace = pod->namespace,
                                      .name = pod->name,
                                      .uid = pod->uid};

    dv_recorder_note(pod->agent->options.recorder, &subject, is_warning, dv_str_from_c(reason),
                     message);
}

/* ---- pauses ---- */

static void on_timer(struct dv_timer *timer)
{
    struct dv_agent_pod *pod = DV_CONTAINER(timer, struct dv_agent_pod, timer);

    dv_agent_pod_look(pod);
}

bool dv_agent_pod_is_waiting(const struct dv_agent_pod *pod)
{
    return pod->state == DV_AGENT_ADMITTING || pod->state == DV_AGENT_PAUSING || pod->kept;
}

static void note_waiting(struct dv_agent_pod *pod)
{
    if (!dv_link_is_in(&pod->waiting))
        dv_list_push(&pod->agent->waiting, &pod->waiting);
}

/* Starts the pause after an admission or a release that has failed. */
static void pause(struct dv_agent_pod *pod, uint64_t max_ms)
{
    uint64_t now_ms = dv_loop_now_ms(pod->agent->loop);
    uint64_t pause_ms = dv_agent_pause_fail(&pod->pause, now_ms, max_ms);

    note_waiting(pod);
    pod->epoch = dv_agent_pod_epoch(pod);
    dv_timer_start(&pod->timer, pod->agent->loop,
                   now_ms + dv_jitter(pause_ms, PAUSE_JITTER_PER_MILLE), on_timer);
}

void dv_agent_pod_wake(struct dv_agent_pod *pod)
{
    uint64_t at_ms;

    if (!dv_timer_is_set(&pod->timer) || pod->agent->is_closing ||
        (pod->state != DV_AGENT_PAUSING && !pod->kept))
        return;
    at_ms = dv_agent_pause_wake(&pod->pause, dv_loop_now_ms(pod->agent->loop), pod->timer.at_ms);
    dv_timer_start(&pod->timer, pod->agent->loop, at_ms, on_timer);
}

/* ---- admission ---- */

static void clear_text(char **text)
{
    free(*text);
    *text = NULL;
}

/* Keeps the old reason where the new one differs in numbers only: each new text would be a write of
 * the status, and an event of its own. */
static void set_reason(struct dv_agent_pod *pod, const char *reason, dv_str message)
{
    if (pod->refused_ns == 0)
        pod->refused_ns = wall_ns(pod);
    if (pod->reason && strcmp(pod->reason, reason) == 0 &&
        dv_agent_says_same(dv_str_from_c(pod->message), message))
        return;
    set_text(&pod->reason, dv_str_from_c(reason));
    set_text(&pod->message, message);
}

static void take_refusal(struct dv_agent_pod *pod, const struct dv_pod_verdict *verdict)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const char *reason = dv_pod_refusal_name(verdict->refusal);
    bool is_prepare = verdict->refusal == DV_POD_UNPREPARED;
    /* nobody else decided that a static pod fits here: its plugin may come for the first time */
    bool may_come = verdict->may_come || (verdict->refusal == DV_POD_UNKNOWN_RESOURCE &&
                                          (pod->is_static || dv_agent_pod_was_possible(pod)));

    set_reason(pod, reason, verdict->message);
    pod->is_behind_rival = verdict->refusal == DV_POD_DEVICE_IN_USE;
    pod->was_asked = verdict->was_asked;
    note(pod, true, reason,
         is_prepare ? dv_str_printf(arena, "Failed to prepare dynamic resources: %s", pod->message)
                    : dv_str_from_c(pod->message));
    clear_text(&pod->rival);
    if (verdict->rival.n > 0)
        set_text(&pod->rival, verdict->rival);
    pod->state = may_come ? DV_AGENT_PAUSING : DV_AGENT_REFUSED;
    if (may_come)
        pause(pod, verdict->was_asked || pod->agent->claims ? DV_AGENT_PAUSE_MAX_MS : LOOK_MAX_MS);
}

void dv_agent_pod_note_wait(struct dv_agent_pod *pod)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    struct dv_pod_ref ref = {.uid = pod->uid};
    struct dv_pod_view view;

    if (!dv_pods_find(pod->agent->options.pods, &ref, &view) || view.awaited.n == 0 ||
        view.is_brief || (pod->awaited && dv_str_eq(dv_str_from_c(pod->awaited), view.awaited)))
        return;
    arena = dv_arena_new();
    set_text(&pod->awaited, view.awaited);
    note(pod, true, "WaitingForDevices", dv_str_printf(arena, "waits for %s", pod->awaited));
}

static void try_later(struct dv_agent_pod *pod, const struct dv_err *err)
{
    pod->state = DV_AGENT_PAUSING;
    pod->is_behind_rival = false;
    set_reason(pod, "NotAdmittedYet", dv_str_from_c(err->msg));
    pause(pod, DV_AGENT_PAUSE_MAX_MS);
}

static void on_admitted(struct dv_pod_admission *admission, const struct dv_pod_verdict *verdict,
                        const struct dv_err *err)
{
    struct dv_agent_admitting *admitting =
        DV_CONTAINER(admission, struct dv_agent_admitting, admission);
    struct dv_agent_pod *pod = admitting->pod;

    pod->admitting = NULL;
    pod->is_dirty = true;
    if (err) { /* nothing was decided: the disk failed, or the admission was given up */
        try_later(pod, err);
    } else if (!verdict->is_admitted) {
        take_refusal(pod, verdict);
    } else {
        pod->state = DV_AGENT_ADMITTED;
        pod->pause = (struct dv_agent_pause){0};
        pod->is_behind_rival = false;
        clear_text(&pod->reason);
        clear_text(&pod->message);
        clear_text(&pod->awaited);
        clear_text(&pod->rival);
        pod->since_ns = wall_ns(pod);
        pod->refused_ns = 0;
    }
    free(admitting); /* with the verdict */
    dv_agent_pod_look(pod);
}

/* Refuses a pod that the node has no room for, as the reference does: for good. One that waits for
 * devices was let in before. */
static bool refuse_misfit(struct dv_agent_pod *pod)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_agent_misfit misfit;

    if (dv_agent_pod_fits(pod, arena, &misfit))
        return false;
    pod->refused_ns = wall_ns(pod);
    set_text(&pod->reason, misfit.reason);
    set_text(&pod->message, misfit.message);
    note(pod, true, pod->reason, misfit.message);
    pod->state = DV_AGENT_REFUSED;
    dv_agent_pod_look(pod);
    return true;
}

static void admit(struct dv_agent_pod *pod)
{
    struct dv_err err;
    struct dv_pod_input *input;

    pod->is_dirty = true;
    if (pod->state == DV_AGENT_NEW && refuse_misfit(pod))
        return;
    input = dv_pod_input_of_object(pod->object, &err);
    if (!input) { /* the API accepted a pod that we cannot read; an update may mend it */
        try_later(pod, &err);
        dv_agent_pod_look(pod);
        return;
    }
    if (pod->is_static)
        input->spec.origin = DV_POD_ORIGIN_FILE;
    pod->state = DV_AGENT_ADMITTING;
    note_waiting(pod);
    pod->admitting = DV_ALLOC(struct dv_agent_admitting);
    pod->admitting->pod = pod;
    pod->admitting->admission = (struct dv_pod_admission){.done = on_admitted, .is_patient = true};
    dv_pods_admit(pod->agent->options.pods, &pod->admitting->admission, input,
                  DV_POD_WAIT_FOR_EVER_MS);
}

/* ---- release ---- */

/* A release fails when drivers do not unprepare, when the disk does, or while a container is being
 * started: it is tried again until it is done. */
static void take_failed_release(struct dv_agent_pod *pod, const struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    pod->state = pod->state_before;
    if (!pod->kept)
        pod->kept_ns = wall_ns(pod);
    set_text(&pod->kept, dv_str_from_c(err->msg));
    if (err->code != DV_ABORTED && !pod->agent->is_closing)
        note(pod, true, DV_AGENT_FAILED_UNPREPARE,
             dv_str_printf(arena, "Failed to give back what the pod holds: %s", err->msg));
    if (!pod->agent->is_closing)
        pause(pod, DV_AGENT_PAUSE_MAX_MS);
    dv_agent_check_closed(pod->agent);
}

static void on_released(struct dv_pod_release *release, bool was_known, const struct dv_err *err)
{
    struct dv_agent_releasing *releasing =
        DV_CONTAINER(release, struct dv_agent_releasing, release);
    struct dv_agent_pod *pod = releasing->pod;
    struct dv_err failed = {0};

    (void)was_known; /* somebody may have released the pod by hand, which is as good */
    if (err)
        failed = *err; /* it may be in the release */
    pod->releasing = NULL;
    free(releasing);
    if (failed.code != DV_OK) {
        take_failed_release(pod, &failed);
        return;
    }
    pod->state = DV_AGENT_RELEASED;
    clear_text(&pod->kept);
    pod->pause = (struct dv_agent_pause){0};
    if (dv_agent_has_runner(pod->agent))
        dv_runner_set_released(pod->agent->options.runner, pod->uid);
    dv_agent_pod_look(pod);
}

static void release(struct dv_agent_pod *pod)
{
    struct dv_pod_ref ref = {.uid = pod->uid};

    if (dv_timer_is_set(&pod->timer) && pod->kept)
        return; /* the pod pauses: its timer looks again */
    dv_timer_cancel(&pod->timer);
    pod->state_before = pod->state;
    pod->state = DV_AGENT_RELEASING;
    pod->releasing = DV_ALLOC(struct dv_agent_releasing);
    pod->releasing->pod = pod;
    pod->releasing->release = (struct dv_pod_release){.done = on_released};
    dv_pods_release(pod->agent->options.pods, &pod->releasing->release, &ref);
}

/* ---- the runner ---- */

/* Gives the pod to the runner. One that was not admitted by this daemon, or was released already,
 * only has to end; it is not started again. What is deleted, or does not restart, ends anyway. */
static void give(struct dv_agent_pod *pod)
{
    struct dv_runner *runner = pod->agent->options.runner;

    dv_timer_cancel(&pod->timer);
    dv_runner_set_pod(runner, pod->object, pod->is_static);
    if (pod->state == DV_AGENT_ADMITTED)
        return;
    pod->state = DV_AGENT_ENDING;
    if (dv_str_eq(value_of(pod)->spec.restart_policy, DV_STR("Always")) &&
        !value_of(pod)->metadata.deletion_timestamp.is_set)
        dv_runner_evict(runner, pod->uid, DV_STR("Released"),
                        DV_STR("What the pod held was given back"));
}

/* Waits for the end of the grace period, which may have become shorter since the last look. */
static void wait_for_end(struct dv_agent_pod *pod)
{
    const struct dv_time *due = &value_of(pod)->metadata.deletion_timestamp;
    uint64_t now_s = wall_ns(pod) / DV_NS_PER_S;
    uint64_t wait_s = due->seconds > (int64_t)now_s ? (uint64_t)due->seconds - now_s : 0;

    dv_timer_start(&pod->timer, pod->agent->loop,
                   dv_loop_now_ms(pod->agent->loop) + wait_s * 1000 + 1, on_timer);
}

/* ---- one step ---- */

static struct dv_agent_facts facts_of(const struct dv_agent_pod *pod)
{
    const struct dv_api_pod *value = value_of(pod);
    struct dv_pod_ref ref = {.uid = pod->uid};
    struct dv_pod_told told = dv_pods_told(pod->agent->options.pods, pod->uid);
    struct dv_pod_view view = {0};
    struct dv_agent_facts facts = {
        .state = pod->state,
        .is_there = value != NULL,
        .has_ended = pod->has_ended,
        .is_running = told.is_running,
        .is_writing = pod->write.is_running,
        .is_time = !dv_timer_is_set(&pod->timer),
        .is_settled = pod->agent->is_synced,
        .is_behind = pod->state == DV_AGENT_NEW && dv_agent_pod_is_behind(pod),
        .has_runner = dv_agent_has_runner(pod->agent),
    };

    if (facts.has_runner)
        facts.runtime = dv_runner_state(pod->agent->options.runner, pod->uid);

    if (dv_pods_find(pod->agent->options.pods, &ref, &view)) {
        facts.may_run = view.may_run;
        facts.has_ended |= view.has_ended;
    }
    if (!value)
        return facts;
    facts.is_deleting = value->metadata.deletion_timestamp.is_set;
    facts.is_due = facts.is_deleting && value->metadata.deletion_timestamp.seconds <=
                                            (int64_t)(wall_ns(pod) / DV_NS_PER_S);
    /* what the API says of its mirror does not end a static pod */
    facts.is_terminal = !pod->is_static && dv_pod_is_terminal(value);
    facts.has_ended |= dv_bare_has_ended(value, told.statuses, told.n_statuses);
    return facts;
}

static void step(struct dv_agent_pod *pod)
{
    struct dv_agent_facts facts = facts_of(pod);

    if (facts.is_terminal)
        /* the API has the pod as ended, so the mark on the disk can go; that of a static pod stays
         * as long as its file */
        dv_pods_forget_ended(pod->agent->options.pods, pod->uid);
    pod->has_ended = facts.has_ended;
    switch (dv_agent_next(&facts)) {
    case DV_AGENT_WAIT:
        dv_agent_pod_write(pod);
        return;
    case DV_AGENT_ADMIT:
        admit(pod);
        return;
    case DV_AGENT_CANCEL:
        dv_pods_cancel(&pod->admitting->admission);
        return;
    case DV_AGENT_GIVE:
        give(pod);
        return;
    case DV_AGENT_GRACE:
        wait_for_end(pod);
        dv_agent_pod_write(pod);
        return;
    case DV_AGENT_RELEASE:
        release(pod);
        return;
    case DV_AGENT_REMOVE:
        dv_agent_pod_remove(pod);
        return;
    case DV_AGENT_FINISH:
        pod->is_dirty = true;
        dv_agent_pod_write(pod);
        return;
    case DV_AGENT_FORGET:
        if (!pod->write.is_running)
            forget(pod);
        return;
    }
}

#include "pod/admission/owner.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "loop/loop.h"
#include "pod/admission/pods.h"
#include "pod/cgroup_members.h"
#include "pod/pod.h"
#include "pod/process.h"

/* A control group of version 1 sends no event when it becomes empty, so it is read this often. */
#define LOOK_MS 1000u
/* Pauses between attempts to release a pod that has ended. */
#define RETRY_FIRST_MS 10000u
#define RETRY_MAX_MS 600000u
#define RETRY_JITTER_PER_MILLE 200u

struct dv_owner {
    struct dv_pod *pod;
    struct dv_process process; /* not watched when a control group is the owner */
    struct dv_timer timer;     /* of the next look at the control group, or attempt to release */
    uint64_t retry_ms;         /* before the next attempt to release it; 0: none has failed */
    bool was_used;             /* the control group has had processes */
};

/* ---- at admission ---- */

bool dv_owner_settle(struct dv_pod_spec *spec, struct dv_arena *arena, struct dv_err *err)
{
    if (spec->owner_cgroup.n > 0 &&
        !dv_cgroup_exists(dv_cgroup_dir(spec->owner_cgroup, arena), arena))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "annotation " DV_POD_OWNER_CGROUP ": there is no control group %.*s",
                       DV_FMT(dv_cgroup_dir(spec->owner_cgroup, arena)));
    if (spec->owner_pid == 0)
        return true;
    spec->owner_start = dv_process_start(spec->owner_pid, arena);
    return spec->owner_start.n > 0 ||
           dv_fail(err, DV_INVALID_ARGUMENT,
                   "annotation " DV_POD_OWNER_PID ": there is no process %u", spec->owner_pid);
}

/* ---- watching ---- */

/* The release of a pod that has ended. It does not point to the pod, which may be gone, or
 * replaced, when the release is over. */
struct ended {
    struct dv_pod_release release;
    struct dv_arena *arena;
    dv_str uid;
};

static void on_retry(struct dv_timer *timer);

static void retry_later(struct dv_owner *owner)
{
    struct dv_loop *loop = owner->pod->pods->loop;
    uint64_t pause_ms = owner->retry_ms ? owner->retry_ms : RETRY_FIRST_MS;

    owner->retry_ms = dv_u64_min(pause_ms * 2, RETRY_MAX_MS);
    dv_timer_start(&owner->timer, loop,
                   dv_loop_now_ms(loop) + dv_jitter(pause_ms, RETRY_JITTER_PER_MILLE), on_retry);
}

static void on_released(struct dv_pod_release *release, bool was_known, const struct dv_err *err)
{
    struct ended *ended = DV_CONTAINER(release, struct ended, release);
    struct dv_pods *pods = release->priv.op.pods;
    const struct dv_pod_ref ref = {.uid = ended->uid};
    struct dv_pod *pod = err && !pods->is_closing ? dv_pods_get(pods, &ref) : NULL;

    (void)was_known; /* a pod that is busy ends with an error, which is handled */
    if (pod && pod->owner && pod->has_ended)
        retry_later(pod->owner);
    dv_arena_free(ended->arena);
    free(ended);
}

static void release(struct dv_pod *pod)
{
    struct ended *ended;

    if (dv_pod_origin_is_agents(pod->spec.origin) || pod->pods->is_closing)
        /* the agent releases its pods itself, so that their status and their devices go together */
        return;
    ended = DV_ALLOC(struct ended);
    ended->arena = dv_arena_new();
    ended->uid = dv_str_copy(pod->spec.ref.uid, ended->arena);
    ended->release.done = on_released;
    dv_pods_release(pod->pods, &ended->release, &pod->spec.ref);
}

static void on_retry(struct dv_timer *timer)
{
    release(DV_CONTAINER(timer, struct dv_owner, timer)->pod);
}

static void stop(struct dv_owner *owner)
{
    dv_timer_cancel(&owner->timer);
    dv_process_stop(&owner->process);
}

static void end(struct dv_owner *owner)
{
    struct dv_pod *pod = owner->pod;

    stop(owner);
    dv_log(DV_LOG_INFO, "pod: what runs it has ended", DV_F_STR("pod", pod->full_name),
           DV_F_STR("uid", pod->spec.ref.uid));
    pod->has_ended = true;
    dv_pods_tell_changed(pod->pods, pod->spec.ref.uid);
    release(pod);
}

static void on_ended(struct dv_process *process)
{
    end(DV_CONTAINER(process, struct dv_owner, process));
}

/* Whether the control group has had processes and has none now. */
static bool is_empty_again(struct dv_owner *owner, struct dv_arena *arena)
{
    dv_str dir = dv_cgroup_dir(owner->pod->spec.owner_cgroup, arena);
    bool has_any = dv_cgroup_is_used(dir, arena);

    owner->was_used = owner->was_used || has_any || dv_cgroup_has_run(dir, arena);
    return !dv_cgroup_exists(dir, arena) || (owner->was_used && !has_any);
}

static void on_look(struct dv_timer *timer)
{
    struct dv_owner *owner = DV_CONTAINER(timer, struct dv_owner, timer);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    bool was_used = owner->was_used;

    if (is_empty_again(owner, arena)) {
        end(owner);
        return;
    }
    if (owner->was_used && !was_used)
        /* the pod counts as running now */
        dv_pods_tell_changed(owner->pod->pods, owner->pod->spec.ref.uid);
    dv_timer_start(&owner->timer, owner->pod->pods->loop,
                   dv_loop_now_ms(owner->pod->pods->loop) + LOOK_MS, on_look);
}

struct dv_owner *dv_owner_watch(struct dv_pod *pod)
{
    struct dv_owner *owner;

    if (pod->spec.owner_pid == 0 && pod->spec.owner_cgroup.n == 0)
        return NULL;
    owner = DV_ALLOC(struct dv_owner);
    owner->pod = pod;
    if (pod->spec.owner_pid != 0)
        dv_process_watch(&owner->process, pod->pods->loop, pod->spec.owner_pid,
                         pod->spec.owner_start, on_ended);
    else
        dv_timer_start(&owner->timer, pod->pods->loop, dv_loop_now_ms(pod->pods->loop) + 1,
                       on_look);
    return owner;
}

bool dv_owner_runs(const struct dv_owner *owner)
{
    return owner && (dv_process_is_watched(&owner->process) || owner->was_used);
}

void dv_owner_free(struct dv_owner *owner)
{
    if (!owner)
        return;
    stop(owner);
    free(owner);
}

/* life_sync.c - one sync of a pod. Its steps come one after the other; what each does when it is
 * entered and when its actions have ended is one function:
 *
 *   SET_UP -> KILL -> CHECK -> SANDBOXES -> REMOVE -> PREPARE -> RUN -> START -> end
 *
 * START starts each container. What is not planned is passed over. An error ends the sync; it comes
 * again after a pause. */
#include "base/arena.h"
#include "resource/resource.h"
#include "workload/life/life_state.h"

enum sync_step {
    SYNC_SET_UP,
    SYNC_KILL,
    SYNC_CHECK,     /* what was killed has ended */
    SYNC_SANDBOXES, /* those of a pod that is killed are stopped */
    SYNC_REMOVE,    /* instances that must not be taken for new ones */
    SYNC_PREPARE,
    SYNC_RUN,
    SYNC_START,
    SYNC_N_STEPS,
};

struct dv_life_sync {
    struct dv_arena *arena;
    enum sync_step step;
    bool has_entered; /* the step has begun what it does */
    bool has_failed;
    uint64_t since_ms;
    uint64_t retry_ms; /* SET_UP is tried again then */
    unsigned n_tries;
    struct dv_life_plan plan;
    struct dv_life_actions actions; /* of this step */
    struct dv_strs ips;
    size_t i_start;
    struct dv_life_starting starting;
    int64_t rest_ms; /* of the back-off that ends first; 0: nothing waits for one */
};

static struct dv_life_action *begin(struct dv_life_looking *look, struct dv_life_sync *sync,
                                    enum dv_life_action_kind kind, dv_str id)
{
    sync->has_entered = true;
    return dv_life_actions_begin(look, &sync->actions, sync->arena, kind, id);
}

static enum dv_life_go fail(struct dv_life_sync *sync)
{
    sync->has_failed = true;
    return DV_LIFE_STOP;
}

/* ---- SET_UP ---- */

static enum dv_life_go retry_set_up(struct dv_life_looking *look, struct dv_life_sync *sync,
                                    const struct dv_life_result *result)
{
    uint64_t pause_ms = DV_LIFE_SET_UP_RETRY_MS;

    if (look->life->is_ending)
        return DV_LIFE_STOP;
    if (result->reason.n > 0)
        dv_life_add_note(look, true, dv_str_to_c(result->reason, look->arena), DV_STR_NONE, "%.*s",
                         DV_FMT(result->error));
    if (look->facts->now_ms - sync->since_ms >= DV_LIFE_SET_UP_LIMIT_MS)
        return fail(sync);
    for (unsigned i = 0; i < sync->n_tries && pause_ms < DV_LIFE_SET_UP_RETRY_MAX_MS; i++)
        pause_ms *= 2;
    sync->n_tries++;
    sync->retry_ms =
        look->facts->now_ms +
        (pause_ms < DV_LIFE_SET_UP_RETRY_MAX_MS ? pause_ms : DV_LIFE_SET_UP_RETRY_MAX_MS);
    dv_life_actions_forget(look->life, &sync->actions);
    sync->has_entered = false;
    dv_life_look_at(look, sync->retry_ms);
    return DV_LIFE_WAIT;
}

static enum dv_life_go set_up(struct dv_life_looking *look, struct dv_life_sync *sync)
{
    const struct dv_life_result *result;

    if (sync->retry_ms != 0 && look->life->is_ending)
        return DV_LIFE_STOP;
    if (look->facts->now_ms < sync->retry_ms) {
        dv_life_look_at(look, sync->retry_ms);
        return DV_LIFE_WAIT;
    }
    if (!sync->has_entered)
        (void)begin(look, sync, DV_LIFE_SET_UP, DV_STR_NONE);
    if (!dv_life_actions_have_ended(look->life, &sync->actions))
        return DV_LIFE_WAIT;
    result = dv_life_actions_failure(look->life, &sync->actions);
    return result ? retry_set_up(look, sync, result) : DV_LIFE_NEXT;
}

/* ---- KILL, SANDBOXES, REMOVE ---- */

static enum dv_life_go kill(struct dv_life_looking *look, struct dv_life_sync *sync)
{
    struct dv_life_plan *plan = &sync->plan;

    if (dv_life_is_forced(look)) { /* the end stops all of them, and gives them little time */
        dv_life_kill_cancel(look, &plan->kills);
        return DV_LIFE_STOP;
    }
    if (!sync->has_entered) {
        sync->has_entered = true;
        if (plan->creates_sandbox && plan->has_changed)
            dv_life_add_note(look, false, "SandboxChanged", DV_STR_NONE,
                             "Pod sandbox changed, it will be killed and re-created.");
        if (plan->kills_pod)
            dv_life_kill_all(look->pod, &look->facts->view, -1, sync->arena, &plan->kills);
    }
    if (dv_life_kill_step(look, &plan->kills, sync->arena) == DV_LIFE_WAIT)
        return DV_LIFE_WAIT;
    return dv_life_kill_failed(&plan->kills) ? fail(sync) : DV_LIFE_NEXT;
}

static bool was_killed(const struct dv_life_sync *sync, const struct dv_life_container *container)
{
    for (size_t i = 0; i < sync->plan.kills.n; i++)
        if (dv_str_eq(sync->plan.kills.v[i].id, container->id))
            return true;
    return false;
}

/* A runtime may say that it has stopped what runs on; two instances of a container must not run. */
static enum dv_life_go check(struct dv_life_looking *look, struct dv_life_sync *sync)
{
    const struct dv_life_view *view = &look->facts->view;

    if (sync->plan.kills.n == 0)
        return DV_LIFE_NEXT;
    if (!sync->has_entered) {
        sync->has_entered = true;
        look->life->view_after_ms = look->facts->now_ms;
    }
    if (look->facts->view_ms <= look->life->view_after_ms)
        return DV_LIFE_WAIT;
    for (size_t i = 0; i < view->n_containers; i++)
        if (view->containers[i].state == DV_LIFE_RUNNING && was_killed(sync, &view->containers[i]))
            return fail(sync);
    return DV_LIFE_NEXT;
}

static enum dv_life_go stop_sandboxes(struct dv_life_looking *look, struct dv_life_sync *sync)
{
    if (!sync->plan.kills_pod)
        return DV_LIFE_NEXT;
    if (!sync->has_entered) {
        for (size_t i = 0; i < look->facts->view.n_sandboxes; i++)
            (void)begin(look, sync, DV_LIFE_STOP_SANDBOX, look->facts->view.sandboxes[i].id);
        sync->has_entered = true;
    }
    if (!dv_life_actions_have_ended(look->life, &sync->actions))
        return DV_LIFE_WAIT;
    if (dv_life_actions_failure(look->life, &sync->actions))
        return fail(sync);
    /* Without a sandbox to make, the next sync finds that the pod is done. */
    return sync->plan.creates_sandbox ? DV_LIFE_NEXT : DV_LIFE_STOP;
}

static bool is_init(const struct dv_api_pod *pod, dv_str name)
{
    enum dv_workload_kind kind;

    return dv_workload_container(pod, name, &kind) &&
           (kind == DV_WORKLOAD_INIT || kind == DV_WORKLOAD_SIDECAR);
}

/* Which instances go before anything is started. */
static bool is_removed(struct dv_life_looking *look, const struct dv_life_sync *sync,
                       const struct dv_life_container *container)
{
    if (sync->plan.resets)
        return true;
    if (!is_init(look->pod, container->name) || container->state == DV_LIFE_RUNNING)
        return false;
    /* In a new sandbox init containers begin anew: what they did in the old one does not count. */
    return sync->plan.creates_sandbox;
}

static enum dv_life_go remove_instances(struct dv_life_looking *look, struct dv_life_sync *sync)
{
    const struct dv_life_view *view = &look->facts->view;

    if (!sync->has_entered) {
        sync->has_entered = true;
        for (size_t i = 0; i < view->n_containers; i++)
            if (is_removed(look, sync, &view->containers[i])) {
                struct dv_life_action *action =
                    begin(look, sync, DV_LIFE_REMOVE_CONTAINER, view->containers[i].id);

                dv_life_for_container(look, action, view->containers[i].name);
                action->keeps_log = true; /* the count goes on from there */
            }
    }
    if (!dv_life_actions_have_ended(look->life, &sync->actions))
        return DV_LIFE_WAIT;
    if (sync->plan.resets) {
        for (size_t i = 0; i < view->n_containers; i++)
            dv_life_member(look->life, view->containers[i].name)->was_reset = true;
        look->life->wants_sync = true;
        return dv_life_actions_failure(look->life, &sync->actions) ? fail(sync) : DV_LIFE_STOP;
    }
    return DV_LIFE_NEXT; /* what could not be removed is only looked at as old */
}

/* ---- PREPARE, RUN ---- */

static enum dv_life_go prepare(struct dv_life_looking *look, struct dv_life_sync *sync)
{
    const struct dv_life_result *result;

    if (!sync->plan.creates_sandbox)
        return DV_LIFE_NEXT;
    if (!sync->has_entered)
        (void)begin(look, sync, DV_LIFE_PREPARE, DV_STR_NONE);
    if (!dv_life_actions_have_ended(look->life, &sync->actions))
        return DV_LIFE_WAIT;
    result = dv_life_actions_failure(look->life, &sync->actions);
    if (!result)
        return DV_LIFE_NEXT;
    if (!look->life->is_ending)
        dv_life_add_note(look, true, "FailedPrepareDynamicResources", DV_STR_NONE,
                         "Failed to prepare dynamic resources: %.*s", DV_FMT(result->error));
    return DV_LIFE_STOP; /* no error, as in the reference: tried again with the next sync */
}

static enum dv_life_go run_sandbox(struct dv_life_looking *look, struct dv_life_sync *sync)
{
    const struct dv_life_result *result;

    if (!sync->plan.creates_sandbox)
        return DV_LIFE_NEXT;
    if (!sync->has_entered)
        begin(look, sync, DV_LIFE_RUN_SANDBOX, DV_STR_NONE)->attempt = sync->plan.attempt;
    if (!dv_life_actions_have_ended(look->life, &sync->actions))
        return DV_LIFE_WAIT;
    result = dv_life_actions_failure(look->life, &sync->actions);
    if (result) {
        if (look->life->is_ending)
            return DV_LIFE_STOP;
        dv_life_add_note(look, true,
                         result->reason.n > 0 ? dv_str_to_c(result->reason, look->arena)
                                              : "FailedCreatePodSandBox",
                         DV_STR_NONE, "Failed to create pod sandbox: %.*s", DV_FMT(result->error));
        return fail(sync);
    }
    result = dv_life_result_of(look->life, sync->actions.ids.v[0]);
    sync->plan.sandbox_id = dv_str_copy(result->id, sync->arena);
    if (!look->pod->spec.host_network)
        sync->ips = dv_life_copy_strs(result->ips, sync->arena);
    dv_life_publish_sandbox(look);
    return DV_LIFE_NEXT;
}

/* ---- START ---- */

static void end_start(struct dv_life_sync *sync)
{
    const struct dv_life_starting *starting = &sync->starting;

    if (starting->has_backed_off) {
        if (sync->rest_ms == 0 || starting->backoff_rest_ms < sync->rest_ms)
            sync->rest_ms = starting->backoff_rest_ms;
    } else if (starting->step == DV_LIFE_START_FAILED) {
        sync->has_failed = true;
    }
}

static enum dv_life_go start(struct dv_life_looking *look, struct dv_life_sync *sync)
{
    while (sync->i_start < sync->plan.starts.n) {
        const struct dv_life_start *next = &sync->plan.starts.v[sync->i_start];
        bool has_failed;

        if (dv_life_start_step(look, next, sync->plan.sandbox_id, sync->ips, &sync->starting,
                               sync->arena) == DV_LIFE_WAIT)
            return DV_LIFE_WAIT;
        end_start(sync);
        has_failed = sync->starting.step == DV_LIFE_START_FAILED;
        sync->starting = (struct dv_life_starting){0};
        sync->i_start++;
        /* Nothing may run before an init container has done its part. */
        if (has_failed && next->kind == DV_WORKLOAD_INIT)
            return DV_LIFE_STOP;
    }
    return DV_LIFE_NEXT;
}

/* ---- all of it ---- */

typedef enum dv_life_go step_fn(struct dv_life_looking *look, struct dv_life_sync *sync);
static step_fn *const steps[SYNC_N_STEPS] = {
    [SYNC_SET_UP] = set_up,
    [SYNC_KILL] = kill,
    [SYNC_CHECK] = check,
    [SYNC_SANDBOXES] = stop_sandboxes,
    [SYNC_REMOVE] = remove_instances,
    [SYNC_PREPARE] = prepare,
    [SYNC_RUN] = run_sandbox,
    [SYNC_START] = start,
};

void dv_life_sync_free(struct dv_life_sync *sync)
{
    if (!sync)
        return;
    dv_arena_free(sync->arena); /* the sync itself is in it */
}

/* When the next sync is due without news. */
static uint64_t pause_ms(const struct dv_life_looking *look, const struct dv_life_sync *sync)
{
    uint64_t rest_ms = (uint64_t)sync->rest_ms;

    if (sync->has_failed)
        return dv_life_stretch(look, rest_ms > 0 && rest_ms < DV_LIFE_RETRY_MS ? rest_ms
                                                                               : DV_LIFE_RETRY_MS);
    if (rest_ms > 0)
        return dv_life_stretch(look, rest_ms < DV_LIFE_RESYNC_MS ? rest_ms : DV_LIFE_RESYNC_MS);
    return dv_life_stretch(look, DV_LIFE_RESYNC_MS);
}

static void end_sync(struct dv_life_looking *look)
{
    struct dv_life *life = look->life;
    struct dv_life_sync *sync = life->sync;

    dv_life_actions_forget(look->life, &sync->actions);
    life->next_sync_ms = look->facts->now_ms + pause_ms(look, sync);
    life->view_after_ms = look->facts->now_ms;
    life->sync = NULL;
    dv_life_sync_free(sync);
}

void dv_life_sync_go(struct dv_life_looking *look)
{
    struct dv_life_sync *sync = look->life->sync;

    while (sync->step < SYNC_N_STEPS) {
        enum dv_life_go go = steps[sync->step](look, sync);

        if (go == DV_LIFE_WAIT)
            return;
        if (go == DV_LIFE_STOP)
            break;
        dv_life_actions_forget(look->life, &sync->actions);
        sync->has_entered = false;
        sync->step++;
    }
    end_sync(look);
}

void dv_life_sync_begin(struct dv_life_looking *look)
{
    struct dv_life *life = look->life;
    struct dv_arena *arena = dv_arena_new();
    struct dv_life_sync *sync = DV_NEW(arena, struct dv_life_sync);

    sync->arena = arena;
    sync->since_ms = look->facts->now_ms;
    sync->ips = dv_life_copy_strs(dv_life_ips(life), arena);
    life->sync = sync;
    dv_life_plan(look, arena, &sync->plan);
}

void dv_life_sync_cancel(struct dv_life_looking *look)
{
    struct dv_life *life = look->life;

    /* A runtime's call that makes something is not cut short: nobody could tell whether it did. */
    for (size_t i = 0; i < life->pending.n; i++) {
        enum dv_life_action_kind kind = life->pending.v[i].kind;

        if (kind == DV_LIFE_SET_UP || kind == DV_LIFE_PREPARE || kind == DV_LIFE_PULL_IMAGE ||
            kind == DV_LIFE_POST_START)
            dv_life_cancel(look, life->pending.v[i].id);
    }
}

/* life_end.c - the end of a pod, step by step:
 *
 *   KILL -> SANDBOXES -> VIEW (nothing runs) -> RELEASE -> TERMINATED -> CLEAN_UP -> FINISHED
 *        ^-----------------(an error, after a pause)---'
 *
 * and, once its object is gone, the removal of what the runtime still has. */
#include "base/arena.h"
#include "resource/resource.h"
#include "workload/life/life_state.h"

enum end_step {
    END_KILL,
    END_SANDBOXES,
    END_VIEW,
    END_RELEASE,
    END_CLEAN_UP,
    END_N_STEPS,
};

struct dv_life_ending {
    struct dv_arena *arena;
    enum end_step step;
    bool has_entered;
    uint64_t retry_ms; /* 0: now */
    struct dv_life_kills kills;
    struct dv_life_actions actions; /* of this step */
};

static void begin(struct dv_life_looking *look, struct dv_life_ending *ending,
                  enum dv_life_action_kind kind, dv_str id)
{
    (void)dv_life_actions_begin(look, &ending->actions, ending->arena, kind, id);
}

/* Begins the step again after a pause, with a new view. */
static enum dv_life_go again(struct dv_life_looking *look, struct dv_life_ending *ending,
                             enum end_step step)
{
    dv_life_actions_forget(look->life, &ending->actions);
    ending->step = step;
    ending->has_entered = false;
    ending->kills = (struct dv_life_kills){0};
    ending->retry_ms = look->facts->now_ms + dv_life_stretch(look, DV_LIFE_RETRY_MS);
    look->life->view_after_ms = look->facts->now_ms;
    dv_life_look_at(look, ending->retry_ms);
    return DV_LIFE_WAIT;
}

static enum dv_life_go fail_kill(struct dv_life_looking *look, struct dv_life_ending *ending,
                                 const char *what, dv_str name, dv_str error)
{
    dv_life_add_note(look, true, "FailedKillPod", DV_STR_NONE,
                     "error killing pod: failed to \"%s\" for \"%.*s\" with %sError: \"%.*s\"",
                     what, DV_FMT(name), what, DV_FMT(error));
    return again(look, ending, END_KILL);
}

/* ---- steps ---- */

/* How long containers get; it can only shrink. */
static int64_t grace_s(struct dv_life_looking *look)
{
    const struct dv_api_pod *pod = look->pod;
    int64_t grace = look->life->grace_s;
    int64_t asked = 0;

    if (!pod)
        return 1; /* as for what is deleted by force; StopContainer has the least that there is */
    if (dv_life_is_forced(look))
        asked = 1; /* deleted by force: there is nobody to wait for */
    else if (pod->metadata.deletion_grace_period_seconds)
        asked = *pod->metadata.deletion_grace_period_seconds;
    else if (pod->spec.termination_grace_period_seconds)
        asked = *pod->spec.termination_grace_period_seconds;
    if (asked < 1)
        asked = 1;
    if (grace == 0 || asked < grace)
        grace = asked;
    look->life->grace_s = grace > UINT32_MAX ? UINT32_MAX : (uint32_t)grace;
    return look->life->grace_s;
}

/* Begins anew when the pod is deleted by force meanwhile. A shorter grace alone changes nothing, as
 * with the reference; but nobody could end containers any more whose object is gone. */
static void hurry(struct dv_life_looking *look, struct dv_life_ending *ending)
{
    int64_t before_s = look->life->grace_s;

    if (!ending->has_entered || !dv_life_is_forced(look) || grace_s(look) >= before_s)
        return;
    dv_life_kill_cancel(look, &ending->kills);
    ending->has_entered = false;
}

static enum dv_life_go kill(struct dv_life_looking *look, struct dv_life_ending *ending)
{
    const struct dv_life_kill *failed;

    hurry(look, ending);
    if (!ending->has_entered) {
        if (look->facts->view_ms <= look->life->view_after_ms)
            return DV_LIFE_WAIT;
        ending->has_entered = true;
        if (look->pod)
            (void)dv_life_publish(look, DV_LIFE_RECKON_ALIVE);
        dv_life_kill_all(look->pod, &look->facts->view, grace_s(look), ending->arena,
                         &ending->kills);
    }
    if (dv_life_kill_step(look, &ending->kills, ending->arena) == DV_LIFE_WAIT)
        return DV_LIFE_WAIT;
    failed = dv_life_kill_failed(&ending->kills);
    if (failed)
        return fail_kill(look, ending, "KillContainer", failed->name, failed->error);
    return DV_LIFE_NEXT;
}

static enum dv_life_go stop_sandboxes(struct dv_life_looking *look, struct dv_life_ending *ending)
{
    const struct dv_life_view *view = &look->facts->view;
    const struct dv_life_result *result;

    if (!ending->has_entered) {
        ending->has_entered = true;
        for (size_t i = 0; i < view->n_sandboxes; i++)
            begin(look, ending, DV_LIFE_STOP_SANDBOX, view->sandboxes[i].id);
    }
    if (!dv_life_actions_have_ended(look->life, &ending->actions))
        return DV_LIFE_WAIT;
    result = dv_life_actions_failure(look->life, &ending->actions);
    if (result)
        return fail_kill(look, ending, "KillPodSandbox", look->facts->uid, result->error);
    look->life->view_after_ms = look->facts->now_ms;
    return DV_LIFE_NEXT;
}

/* What the runtime says it has stopped is looked at once more: claims are given back only when
 * nothing can use them. */
static enum dv_life_go check_view(struct dv_life_looking *look, struct dv_life_ending *ending)
{
    if (look->facts->view_ms <= look->life->view_after_ms)
        return DV_LIFE_WAIT;
    if (dv_life_has_running(&look->facts->view))
        return again(look, ending, END_KILL);
    return DV_LIFE_NEXT;
}

static enum dv_life_go release(struct dv_life_looking *look, struct dv_life_ending *ending)
{
    if (!ending->has_entered) {
        ending->has_entered = true;
        begin(look, ending, DV_LIFE_RELEASE, DV_STR_NONE);
    }
    if (!dv_life_actions_have_ended(look->life, &ending->actions))
        return DV_LIFE_WAIT;
    if (dv_life_actions_failure(look->life, &ending->actions))
        return again(look, ending, END_KILL);
    /* The phase may be told from now on. */
    look->life->stage = DV_LIFE_TERMINATED;
    if (look->pod)
        (void)dv_life_publish(look, DV_LIFE_RECKON_STOPPED);
    return DV_LIFE_NEXT;
}

static enum dv_life_go clean_up(struct dv_life_looking *look, struct dv_life_ending *ending)
{
    if (!ending->has_entered) {
        ending->has_entered = true;
        begin(look, ending, DV_LIFE_CLEAN_UP, DV_STR_NONE);
    }
    if (!dv_life_actions_have_ended(look->life, &ending->actions))
        return DV_LIFE_WAIT;
    if (dv_life_actions_failure(look->life, &ending->actions))
        return again(look, ending, END_CLEAN_UP);
    if (look->pod)
        dv_life_publish_last(look);
    look->life->stage = DV_LIFE_FINISHED;
    return DV_LIFE_NEXT;
}

typedef enum dv_life_go step_fn(struct dv_life_looking *look, struct dv_life_ending *ending);
static step_fn *const steps[END_N_STEPS] = {
    [END_KILL] = kill,       [END_SANDBOXES] = stop_sandboxes, [END_VIEW] = check_view,
    [END_RELEASE] = release, [END_CLEAN_UP] = clean_up,
};

void dv_life_ending_free(struct dv_life_ending *ending)
{
    if (ending)
        dv_arena_free(ending->arena); /* it is in it */
}

void dv_life_end_begin(struct dv_life_looking *look)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_life_ending *ending = DV_NEW(arena, struct dv_life_ending);

    ending->arena = arena;
    look->life->ending = ending;
    look->life->stage = DV_LIFE_TERMINATING;
    if (look->pod)
        look->life->was_initialized = dv_life_was_initialized(look);
}

/* ---- what is left in the runtime ---- */

/* Whether nobody will ask for the instance again: another exited one is newer; or it was made and
 * never started, because the agent ended then, and there is another one now. */
static bool is_old(const struct dv_life_view *view, const struct dv_life_container *container)
{
    if (container->state == DV_LIFE_CREATED)
        return dv_life_newest(view, container->name) != container;
    return container->state == DV_LIFE_EXITED &&
           dv_life_newest_exited(view, container->name) != container;
}

static bool has_containers(const struct dv_life_view *view, const struct dv_life_sandbox *sandbox)
{
    for (size_t i = 0; i < view->n_containers; i++)
        if (dv_life_is_in_sandbox(view, &view->containers[i], sandbox))
            return true;
    return false;
}

static void remove_once(struct dv_life_looking *look, enum dv_life_action_kind kind, dv_str id)
{
    if (!dv_life_is_pending(look->life, kind, id))
        (void)dv_life_begin(look, kind, id);
}

/* The results are of no interest: what could not be removed is there at the next look. */
void dv_life_collect(struct dv_life_looking *look)
{
    const struct dv_life_view *view = &look->facts->view;
    const struct dv_life_sandbox *newest = dv_life_newest_sandbox(view);
    bool is_gone = look->life->stage == DV_LIFE_FINISHED &&
                   (!look->pod || look->facts->has_vanished || dv_life_is_deleted(look->pod));

    for (size_t i = 0; i < view->n_containers; i++) {
        const struct dv_life_container *container = &view->containers[i];

        if (is_gone || is_old(view, container))
            remove_once(look, DV_LIFE_REMOVE_CONTAINER, container->id);
    }
    for (size_t i = 0; i < view->n_sandboxes; i++) {
        const struct dv_life_sandbox *sandbox = &view->sandboxes[i];

        if ((is_gone || (!sandbox->is_ready && sandbox != newest)) &&
            !has_containers(view, sandbox))
            remove_once(look, DV_LIFE_REMOVE_SANDBOX, sandbox->id);
    }
}

void dv_life_end_go(struct dv_life_looking *look)
{
    struct dv_life_ending *ending = look->life->ending;

    while (ending && ending->step < END_N_STEPS) {
        if (look->facts->now_ms < ending->retry_ms) {
            dv_life_look_at(look, ending->retry_ms);
            return;
        }
        if (steps[ending->step](look, ending) == DV_LIFE_WAIT)
            return;
        dv_life_actions_forget(look->life, &ending->actions);
        ending->has_entered = false;
        ending->retry_ms = 0;
        ending->step++;
    }
    dv_life_ending_free(ending);
    look->life->ending = NULL;
}

/* life_kill.c - some containers are stopped, all at the same time, each by its own steps:
 *
 *   BEGIN --(preStop)--> PRE_STOP --> TURN --(the others have ended, or its time is over)--> STOP
 */
#include "base/arena.h"
#include "resource/resource.h"
#include "workload/life/life_state.h"

/* What the pod or the probe that failed gives it, in seconds. */
static int64_t own_grace(const struct dv_api_pod *pod, const struct dv_api_container *spec,
                         enum dv_life_kill_reason reason)
{
    const struct dv_api_probe *probe = NULL;

    if (pod->metadata.deletion_grace_period_seconds)
        return *pod->metadata.deletion_grace_period_seconds;
    if (spec && reason == DV_LIFE_KILL_LIVENESS)
        probe = spec->liveness_probe;
    else if (spec && reason == DV_LIFE_KILL_STARTUP)
        probe = spec->startup_probe;
    if (probe && probe->termination_grace_period_seconds)
        return *probe->termination_grace_period_seconds;
    return pod->spec.termination_grace_period_seconds ? *pod->spec.termination_grace_period_seconds
                                                      : DV_LIFE_GRACE_MIN_S;
}

/* Seconds whose milliseconds can be added to a time. */
static int64_t bounded(int64_t grace_s)
{
    return grace_s > UINT32_MAX ? UINT32_MAX : grace_s;
}

void dv_life_kill_all(const struct dv_api_pod *pod, const struct dv_life_view *view,
                      int64_t grace_s, struct dv_arena *arena, struct dv_life_kills *kills)
{
    *kills = (struct dv_life_kills){.is_ordered = true};
    for (size_t i = 0; i < view->n_containers; i++) {
        const struct dv_life_container *container = &view->containers[i];
        struct dv_life_kill *kill;

        /* What the runtime lost track of may run: that is for sure only when it was stopped. */
        if (container->state != DV_LIFE_RUNNING && container->state != DV_LIFE_UNKNOWN)
            continue;
        kill = dv_vec_add_in(kills, arena);
        kill->id = dv_str_copy(container->id, arena);
        kill->name = dv_str_copy(container->name, arena);
        kill->kind = DV_WORKLOAD_REGULAR;
        kill->grace_s = grace_s;
        if (!pod)
            continue;
        (void)dv_workload_container(pod, container->name, &kill->kind); /* unknown: a regular one */
        for (size_t j = 0; j < pod->spec.n_init_containers; j++)
            if (dv_str_eq(pod->spec.init_containers[j].name, container->name))
                kill->place = j;
    }
}

const struct dv_life_kill *dv_life_kill_failed(const struct dv_life_kills *kills)
{
    for (size_t i = 0; i < kills->n; i++)
        if (kills->v[i].step == DV_LIFE_KILL_FAILED)
            return &kills->v[i];
    return NULL;
}

static bool has_ended(const struct dv_life_kill *kill)
{
    return kill->step == DV_LIFE_KILL_DONE || kill->step == DV_LIFE_KILL_FAILED;
}

/* A sidecar goes after all regular containers and all sidecars behind it. */
static bool is_its_turn(const struct dv_life_kills *kills, const struct dv_life_kill *kill)
{
    if (!kills->is_ordered || kill->kind != DV_WORKLOAD_SIDECAR)
        return true;
    for (size_t i = 0; i < kills->n; i++) {
        const struct dv_life_kill *other = &kills->v[i];
        bool is_before = other->kind == DV_WORKLOAD_REGULAR ||
                         (other->kind == DV_WORKLOAD_SIDECAR && other->place > kill->place);

        if (is_before && !has_ended(other))
            return false;
    }
    return true;
}

/* What is left of the grace after `since_ms`, counted down by whole seconds as the reference does.
 */
static void use_up(struct dv_life_looking *look, struct dv_life_kill *kill)
{
    kill->grace_s -= (int64_t)((look->facts->now_ms - kill->since_ms) / 1000);
    kill->since_ms = look->facts->now_ms;
}

/* What is known of the container whose pod is not. */
static const struct dv_api_container *kept_spec(const struct dv_life_looking *look, dv_str id)
{
    const struct dv_life_view *view = &look->facts->view;

    for (size_t i = 0; i < view->n_containers; i++)
        if (dv_str_eq(view->containers[i].id, id))
            return view->containers[i].kept;
    return NULL;
}

/* The pod's addresses; of one that is not known those that the runtime tells. */
static struct dv_strs ips_of(const struct dv_life_looking *look)
{
    const struct dv_life_sandbox *sandbox = dv_life_newest_sandbox(&look->facts->view);

    return !look->pod && sandbox ? sandbox->ips : dv_life_ips(look->life);
}

static void begin_pre_stop(struct dv_life_looking *look, struct dv_life_kill *kill,
                           const struct dv_api_container *spec)
{
    struct dv_life_action *action = dv_life_begin(look, DV_LIFE_PRE_STOP, kill->id);

    dv_life_for_container(look, action, kill->name);
    action->spec = spec;
    action->hook = spec->lifecycle->pre_stop;
    action->ips = dv_life_copy_strs(ips_of(look), look->arena);
    action->limit_ms = (uint64_t)kill->grace_s * 1000;
    kill->action = action->id_of_action;
    kill->step = DV_LIFE_KILL_PRE_STOP;
}

static void begin_stop(struct dv_life_looking *look, struct dv_life_kill *kill)
{
    struct dv_life_action *action = dv_life_begin(look, DV_LIFE_STOP_CONTAINER, kill->id);
    int64_t grace_s = kill->grace_s > DV_LIFE_GRACE_MIN_S ? kill->grace_s : DV_LIFE_GRACE_MIN_S;

    dv_life_for_container(look, action, kill->name);
    action->grace_s = (uint32_t)bounded(grace_s);
    kill->action = action->id_of_action;
    kill->step = DV_LIFE_KILL_STOP;
}

static void begin_kill(struct dv_life_looking *look, struct dv_life_kill *kill)
{
    const struct dv_api_container *spec =
        look->pod ? dv_life_spec(look, kill->name, NULL) : kept_spec(look, kill->id);

    if (look->pod && kill->grace_s < 0)
        kill->grace_s = bounded(own_grace(look->pod, spec, kill->reason));
    if (kill->message.n > 0)
        dv_life_add_note(look, false, "Killing", kill->name, "%.*s", DV_FMT(kill->message));
    else
        dv_life_add_note(look, false, "Killing", kill->name, "Stopping container %.*s",
                         DV_FMT(kill->name));
    kill->since_ms = look->facts->now_ms;
    kill->step = DV_LIFE_KILL_TURN;
    if (spec && spec->lifecycle && spec->lifecycle->pre_stop && kill->grace_s > 0)
        begin_pre_stop(look, kill, spec);
}

static void end_pre_stop(struct dv_life_looking *look, struct dv_life_kill *kill)
{
    const struct dv_life_result *result = dv_life_result_of(look->life, kill->action);
    uint64_t limit_ms = (uint64_t)kill->grace_s * 1000;
    uint64_t age_ms = look->facts->now_ms - kill->since_ms;

    if (!result && age_ms < limit_ms) {
        dv_life_look_at(look, kill->since_ms + limit_ms);
        return;
    }
    if (!result)
        dv_life_cancel(look, kill->action); /* its result is not waited for */
    if (!result || result->has_failed)
        dv_life_add_note(look, true, "FailedPreStopHook", kill->name, "PreStopHook failed");
    dv_life_forget(look->life, kill->action);
    use_up(look, kill);
    kill->step = DV_LIFE_KILL_TURN;
}

static void wait_for_turn(struct dv_life_looking *look, const struct dv_life_kills *kills,
                          struct dv_life_kill *kill)
{
    uint64_t end_ms = kill->since_ms + (kill->grace_s > 0 ? (uint64_t)kill->grace_s * 1000 : 0);

    if (!is_its_turn(kills, kill) && look->facts->now_ms < end_ms) {
        dv_life_look_at(look, end_ms);
        return;
    }
    use_up(look, kill);
    begin_stop(look, kill);
}

static void end_stop(struct dv_life_looking *look, struct dv_life_kill *kill,
                     struct dv_arena *arena)
{
    const struct dv_life_result *result = dv_life_result_of(look->life, kill->action);

    if (!result)
        return;
    kill->step = result->has_failed ? DV_LIFE_KILL_FAILED : DV_LIFE_KILL_DONE;
    kill->error = dv_str_copy(result->error, arena);
    dv_life_forget(look->life, kill->action);
}

static bool go_on(struct dv_life_looking *look, struct dv_life_kills *kills,
                  struct dv_life_kill *kill, struct dv_arena *arena)
{
    enum dv_life_kill_step before = kill->step;

    switch (kill->step) {
    case DV_LIFE_KILL_BEGIN:
        begin_kill(look, kill);
        break;
    case DV_LIFE_KILL_PRE_STOP:
        end_pre_stop(look, kill);
        break;
    case DV_LIFE_KILL_TURN:
        wait_for_turn(look, kills, kill);
        break;
    case DV_LIFE_KILL_STOP:
        end_stop(look, kill, arena);
        break;
    case DV_LIFE_KILL_DONE:
    case DV_LIFE_KILL_FAILED:
        break;
    }
    return kill->step != before;
}

bool dv_life_is_forced(const struct dv_life_looking *look)
{
    return look->pod && look->facts->has_vanished && !look->facts->is_static;
}

void dv_life_kill_cancel(struct dv_life_looking *look, struct dv_life_kills *kills)
{
    for (size_t i = 0; i < kills->n; i++) {
        const struct dv_life_kill *kill = &kills->v[i];

        if (kill->step != DV_LIFE_KILL_PRE_STOP && kill->step != DV_LIFE_KILL_STOP)
            continue;
        dv_life_cancel(look, kill->action);
        dv_life_forget(look->life, kill->action);
    }
    *kills = (struct dv_life_kills){0};
}

enum dv_life_go dv_life_kill_step(struct dv_life_looking *look, struct dv_life_kills *kills,
                                  struct dv_arena *arena)
{
    bool has_moved = true;
    size_t n_ended = 0;

    while (has_moved) { /* the end of one may be the turn of another */
        has_moved = false;
        for (size_t i = 0; i < kills->n; i++)
            has_moved |= go_on(look, kills, &kills->v[i], arena);
    }
    for (size_t i = 0; i < kills->n; i++)
        n_ended += has_ended(&kills->v[i]);
    return n_ended == kills->n ? DV_LIFE_NEXT : DV_LIFE_WAIT;
}

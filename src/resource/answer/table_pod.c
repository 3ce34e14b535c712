/* table_pod.c - the row of a pod: what its containers say, told in one word. */
#include "resource/answer/table_pod.h"

#include <inttypes.h>

#include "resource/resource.h"
#include "resource/table.h"

struct view {
    const struct dv_api_pod *pod;
    struct dv_arena *arena;
    dv_str reason;
    int64_t n_ready;
    int64_t n_containers;
    int64_t n_restarts;
    struct dv_time restarted; /* last */
};

static const struct dv_api_pod_condition *find_condition(const struct dv_api_pod *pod, dv_str type)
{
    for (size_t i = 0; i < pod->status.n_conditions; i++)
        if (dv_str_eq(pod->status.conditions[i].type, type))
            return &pod->status.conditions[i];
    return NULL;
}

static bool is_true(const struct dv_api_pod *pod, dv_str type)
{
    const struct dv_api_pod_condition *condition = find_condition(pod, type);

    return condition && dv_str_eq(condition->status, DV_STR("True"));
}

/* Whether it is an init container that goes on running beside the others. */
static bool is_sidecar(const struct dv_api_container *container)
{
    return dv_str_eq(container->restart_policy, DV_STR("Always"));
}

static bool is_sidecar_name(const struct dv_api_pod *pod, dv_str name)
{
    for (size_t i = 0; i < pod->spec.n_init_containers; i++)
        if (dv_str_eq(pod->spec.init_containers[i].name, name))
            return is_sidecar(&pod->spec.init_containers[i]);
    return false;
}

static void count_restarts(struct view *view, const struct dv_api_container_status *status)
{
    const struct dv_api_container_state_terminated *last = status->last_state.terminated;

    view->n_restarts += status->restart_count;
    if (last && last->finished_at.is_set &&
        (!view->restarted.is_set || view->restarted.seconds < last->finished_at.seconds))
        view->restarted = last->finished_at;
}

/* "Error", "Signal:9", "ExitCode:1" */
static dv_str why_terminated(const struct dv_api_container_state_terminated *terminated,
                             struct dv_arena *arena)
{
    if (terminated->reason.n > 0)
        return terminated->reason;
    if (terminated->signal != 0)
        return dv_str_printf(arena, "Signal:%" PRId64, terminated->signal);
    return dv_str_printf(arena, "ExitCode:%" PRId64, terminated->exit_code);
}

/* What keeps init container `i` from being done; empty when nothing does. */
static dv_str init_reason(struct view *view, size_t i)
{
    const struct dv_api_container_status *status = &view->pod->status.init_container_statuses[i];
    const struct dv_api_container_state *state = &status->state;
    dv_str why;

    if (state->terminated && state->terminated->exit_code == 0)
        return DV_STR("");
    if (is_sidecar_name(view->pod, status->name) && status->started && *status->started) {
        view->n_ready += status->ready;
        return DV_STR("");
    }
    if (state->terminated) {
        why = why_terminated(state->terminated, view->arena);
        return dv_str_printf(view->arena, "Init:%.*s", DV_FMT(why));
    }
    if (state->waiting && state->waiting->reason.n > 0 &&
        !dv_str_eq(state->waiting->reason, DV_STR("PodInitializing")))
        return dv_str_printf(view->arena, "Init:%.*s", DV_FMT(state->waiting->reason));
    return dv_str_printf(view->arena, "Init:%zu/%zu", i, view->pod->spec.n_init_containers);
}

/* Whether init containers are still at work. */
static bool look_at_init(struct view *view)
{
    const struct dv_api_pod_status *status = &view->pod->status;

    for (size_t i = 0; i < status->n_init_container_statuses; i++) {
        dv_str reason;

        count_restarts(view, &status->init_container_statuses[i]);
        reason = init_reason(view, i);
        if (reason.n > 0) {
            view->reason = reason;
            return true;
        }
    }
    return false;
}

/* Restarts of init containers do not count once they are done, except those of sidecars. Only those
 * up to where look_at_init stopped were looked at. */
static void recount_sidecars(struct view *view)
{
    const struct dv_api_pod_status *status = &view->pod->status;
    struct view all = *view;

    view->n_restarts = 0;
    view->restarted = (struct dv_time){0};
    for (size_t i = 0; i < status->n_init_container_statuses; i++) {
        if (is_sidecar_name(view->pod, status->init_container_statuses[i].name))
            count_restarts(view, &status->init_container_statuses[i]);
        if (init_reason(&all, i).n > 0)
            break;
    }
}

static void look_at_containers(struct view *view)
{
    const struct dv_api_pod_status *status = &view->pod->status;
    bool is_running = false;

    for (size_t i = status->n_container_statuses; i-- > 0;) {
        const struct dv_api_container_status *container = &status->container_statuses[i];
        const struct dv_api_container_state *state = &container->state;

        count_restarts(view, container);
        if (state->waiting && state->waiting->reason.n > 0) {
            view->reason = state->waiting->reason;
        } else if (state->terminated) {
            view->reason = why_terminated(state->terminated, view->arena);
        } else if (container->ready && state->running) {
            is_running = true;
            view->n_ready++;
        }
    }
    if (is_running && dv_str_eq(view->reason, DV_STR("Completed")))
        view->reason = is_true(view->pod, DV_STR("Ready")) ? DV_STR("Running") : DV_STR("NotReady");
}

static dv_str first_reason(const struct dv_api_pod *pod)
{
    static const dv_str gated = DV_STR_INIT("SchedulingGated");

    for (size_t i = 0; i < pod->status.n_conditions; i++)
        if (dv_str_eq(pod->status.conditions[i].type, DV_STR("PodScheduled")) &&
            dv_str_eq(pod->status.conditions[i].reason, gated))
            return gated;
    return pod->status.reason.n > 0 ? pod->status.reason : pod->status.phase;
}

static struct view look(const struct dv_api_pod *pod, struct dv_arena *arena)
{
    struct view view = {.pod = pod,
                        .arena = arena,
                        .reason = first_reason(pod),
                        .n_containers = (int64_t)pod->spec.n_containers};

    for (size_t i = 0; i < pod->spec.n_init_containers; i++)
        view.n_containers += is_sidecar(&pod->spec.init_containers[i]);
    if (!look_at_init(&view) || is_true(pod, DV_STR("Initialized"))) {
        recount_sidecars(&view);
        look_at_containers(&view);
    }
    if (pod->metadata.deletion_timestamp.is_set) {
        if (dv_str_eq(pod->status.reason, DV_STR("NodeLost")))
            view.reason = DV_STR("Unknown");
        else if (!dv_pod_is_terminal(pod))
            view.reason = DV_STR("Terminating");
    }
    return view;
}

/* "2/3": how many of the gates are open. */
static dv_str print_gates(const struct dv_api_pod *pod, struct dv_arena *arena)
{
    size_t n_open = 0;

    if (pod->spec.n_readiness_gates == 0)
        return DV_STR("<none>");
    for (size_t i = 0; i < pod->spec.n_readiness_gates; i++)
        n_open += is_true(pod, pod->spec.readiness_gates[i].condition_type);
    return dv_str_printf(arena, "%zu/%zu", n_open, pod->spec.n_readiness_gates);
}

struct dv_pod_columns dv_pod_columns(const struct dv_api_pod *pod, struct dv_time now,
                                     struct dv_arena *arena)
{
    struct view view = look(pod, arena);
    dv_str restarts = dv_str_printf(arena, "%" PRId64, view.n_restarts);

    if (view.n_restarts != 0 && view.restarted.is_set)
        restarts = dv_str_printf(arena, "%" PRId64 " (%.*s ago)", view.n_restarts,
                                 DV_FMT(dv_age_print(now.seconds - view.restarted.seconds, arena)));
    return (struct dv_pod_columns){
        .ready = dv_str_printf(arena, "%" PRId64 "/%" PRId64, view.n_ready, view.n_containers),
        .status = view.reason,
        .restarts = restarts,
        .gates = print_gates(pod, arena),
    };
}

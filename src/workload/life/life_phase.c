/* life_phase.c - a pod's phase, from the statuses of its containers. */
#include "base/defs.h"
#include "resource/resource.h"
#include "workload/life/life_state.h"

static const dv_str names[] = {
    [DV_LIFE_PHASE_PENDING] = DV_STR_INIT("Pending"),
    [DV_LIFE_PHASE_RUNNING] = DV_STR_INIT("Running"),
    [DV_LIFE_PHASE_SUCCEEDED] = DV_STR_INIT("Succeeded"),
    [DV_LIFE_PHASE_FAILED] = DV_STR_INIT("Failed"),
};

dv_str dv_life_phase_name(enum dv_life_phase phase)
{
    return names[phase];
}

enum dv_life_phase dv_life_phase_read(dv_str name)
{
    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (dv_str_eq(names[i], name))
            return (enum dv_life_phase)i;
    return DV_LIFE_PHASE_PENDING;
}

/* How many containers are in which state. */
struct counts {
    size_t n_failed_init; /* init containers that failed for good */
    size_t n_pending_init;
    size_t n_pending_sidecars;
    size_t n_waiting;
    size_t n_running;
    size_t n_stopped;
    size_t n_succeeded;
    size_t n_restarting; /* stopped, and may be started again */
};

/* The end that counts: a terminated state, or that of before when it waits to be started again. */
static const struct dv_api_container_state_terminated *
end_of(const struct dv_api_container_status *status)
{
    if (status->state.terminated)
        return status->state.terminated;
    return status->state.waiting ? status->last_state.terminated : NULL;
}

/* RestartAllContainers removed it: it is started again whatever the policies say. */
static bool was_reset(const struct dv_api_container_state_terminated *end)
{
    return dv_str_eq(end->reason, DV_STR("RestartingAllContainers"));
}

static void count_init(const struct dv_api_pod *pod, const struct dv_api_container *container,
                       const struct dv_api_container_status *status, struct counts *counts)
{
    const struct dv_api_container_state_terminated *end = end_of(status);

    if (!end)
        counts->n_pending_init++;
    else if (end->exit_code != 0 && !was_reset(end) &&
             !dv_life_restarts_after(pod, container, end->exit_code))
        counts->n_failed_init++;
}

static void count_sidecar(const struct dv_api_container_status *status, struct counts *counts)
{
    if (status->state.running) {
        if (!status->started || !*status->started)
            counts->n_pending_sidecars++;
        counts->n_running++;
    } else if (!end_of(status)) {
        counts->n_pending_sidecars++;
        counts->n_waiting++;
    }
}

static void count_regular(const struct dv_api_pod *pod, const struct dv_api_container *container,
                          const struct dv_api_container_status *status, struct counts *counts)
{
    const struct dv_api_container_state_terminated *end = end_of(status);

    if (status->state.running) {
        counts->n_running++;
    } else if (end) {
        counts->n_stopped++;
        counts->n_succeeded += status->state.terminated && end->exit_code == 0;
        counts->n_restarting +=
            was_reset(end) || dv_life_restarts_after(pod, container, end->exit_code);
    } else {
        counts->n_waiting++;
    }
}

/* Whether a regular container was made in the sandbox that is the pod's now. */
static bool is_initialized(const struct dv_life_reckoning *reckoning)
{
    const struct dv_life_view *view = &reckoning->look->facts->view;
    const struct dv_api_pod_spec *spec = &reckoning->look->pod->spec;
    const struct dv_life_sandbox *sandbox = dv_life_newest_sandbox(view);

    for (size_t i = 0; i < spec->n_containers && sandbox; i++) {
        const struct dv_life_container *newest = dv_life_newest(view, spec->containers[i].name);

        if (newest && dv_life_is_in_sandbox(view, newest, sandbox))
            return true;
    }
    return false;
}

enum dv_life_phase dv_life_reckon_phase(const struct dv_life_reckoning *reckoning)
{
    const struct dv_api_pod *pod = reckoning->look->pod;
    const struct dv_api_pod_status *status = reckoning->status;
    struct counts counts = {0};

    for (size_t i = 0; i < status->n_init_container_statuses; i++) {
        const struct dv_api_container *container = &pod->spec.init_containers[i];

        if (dv_life_is_sidecar(container))
            count_sidecar(&status->init_container_statuses[i], &counts);
        else
            count_init(pod, container, &status->init_container_statuses[i], &counts);
    }
    for (size_t i = 0; i < status->n_container_statuses; i++) {
        const struct dv_api_container *container =
            dv_workload_container(pod, status->container_statuses[i].name, NULL);

        if (container)
            count_regular(pod, container, &status->container_statuses[i], &counts);
    }
    if (counts.n_failed_init > 0)
        return DV_LIFE_PHASE_FAILED;
    if (counts.n_pending_init > 0 || (counts.n_pending_sidecars > 0 && !is_initialized(reckoning)))
        return DV_LIFE_PHASE_PENDING;
    if (counts.n_waiting > 0)
        return DV_LIFE_PHASE_PENDING;
    if (counts.n_running > 0)
        return DV_LIFE_PHASE_RUNNING;
    if (counts.n_stopped == 0)
        return DV_LIFE_PHASE_PENDING;
    if (reckoning->reckon == DV_LIFE_RECKON_STOPPED && !reckoning->look->facts->is_static)
        return counts.n_succeeded == counts.n_stopped ? DV_LIFE_PHASE_SUCCEEDED
                                                      : DV_LIFE_PHASE_FAILED;
    if (counts.n_restarting > 0)
        return DV_LIFE_PHASE_RUNNING;
    return counts.n_succeeded == counts.n_stopped ? DV_LIFE_PHASE_SUCCEEDED : DV_LIFE_PHASE_FAILED;
}

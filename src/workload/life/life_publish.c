/* life_publish.c - the whole status of a pod, and what of it is told now.
 *
 * A terminal phase is computed as soon as the containers have ended, and told when everything is
 * released: who reads it takes the pod's claims and devices for free. */
#include "base/arena.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "workload/life/life_state.h"

#define TERMINATED_TEXT "The container could not be located when the pod was terminated"
#define DEADLINE_TEXT "Pod was active on the node longer than the specified deadline"

const struct dv_api_pod_status *dv_life_status_before(const struct dv_life_looking *look)
{
    if (look->life->status)
        return look->life->status;
    return &look->pod->status;
}

/* ---- parts that do not depend on containers ---- */

static bool is_ipv6(dv_str ip)
{
    return dv_str_find_char(ip, ':') < ip.n;
}

/* Adds the first address of a family. */
static void add_ip(const struct dv_strs *ips, bool wants_ipv6, struct dv_api_pod_status *status)
{
    for (size_t i = 0; i < ips->n; i++) {
        if (is_ipv6(ips->v[i]) != wants_ipv6)
            continue;
        status->pod_i_ps[status->n_pod_i_ps++].ip = ips->v[i];
        return;
    }
}

static void reckon_ips(const struct dv_life_reckoning *reckoning)
{
    const struct dv_life_looking *look = reckoning->look;
    const struct dv_life_facts *facts = look->facts;
    const struct dv_life_sandbox *sandbox = dv_life_newest_sandbox(&facts->view);
    struct dv_api_pod_status *status = reckoning->status;
    struct dv_strs ips = {0};
    bool is_first_ipv6;

    status->host_i_ps = DV_NEW_ARRAY(look->arena, struct dv_api_host_ip, facts->host_ips.n);
    status->n_host_i_ps = facts->host_ips.n;
    for (size_t i = 0; i < facts->host_ips.n; i++)
        status->host_i_ps[i].ip = facts->host_ips.v[i];
    status->host_ip = facts->host_ips.n > 0 ? facts->host_ips.v[0] : DV_STR_NONE;
    if (look->pod->spec.host_network)
        ips = facts->host_ips;
    else if (sandbox && sandbox->is_ready)
        ips = sandbox->ips;
    if (ips.n == 0) { /* kept after the sandbox is gone */
        status->pod_ip = reckoning->old->pod_ip;
        status->pod_i_ps = reckoning->old->pod_i_ps;
        status->n_pod_i_ps = reckoning->old->n_pod_i_ps;
        return;
    }
    is_first_ipv6 = facts->host_ips.n > 0 && is_ipv6(facts->host_ips.v[0]);
    status->pod_i_ps = DV_NEW_ARRAY(look->arena, struct dv_api_pod_ip, 2);
    add_ip(&ips, is_first_ipv6, status);
    add_ip(&ips, !is_first_ipv6, status);
    status->pod_ip = status->pod_i_ps[0].ip;
}

/* What the node does not write stays as the API has it. */
static void begin_status(const struct dv_life_looking *look, const struct dv_api_pod_status *old,
                         struct dv_api_pod_status *status)
{
    *status = look->pod->status;
    status->observed_generation = look->pod->metadata.generation;
    status->reason = status->message = DV_STR_NONE;
    status->host_ip = status->pod_ip = DV_STR_NONE;
    status->n_pod_i_ps = 0;
    status->start_time =
        old->start_time.is_set ? old->start_time : dv_api_time_round(look->facts->now, false);
    if (status->qos_class.n == 0)
        status->qos_class = dv_pod_qos_class(look->pod, look->arena);
}

static void keep_ips(struct dv_life *life)
{
    const struct dv_api_pod_status *status = dv_life_status(life);

    dv_vec_clear(&life->ips);
    for (size_t i = 0; i < status->n_pod_i_ps; i++)
        *dv_vec_add(&life->ips) = status->pod_i_ps[i].ip;
}

/* A copy in one block of a new arena. */
static struct dv_api_pod_status *copy_status(const struct dv_api_pod_status *status,
                                             struct dv_arena **arena)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *trial = dv_arena_new();
    struct dv_api_pod_status *copy = DV_NEW(trial, struct dv_api_pod_status);

    dv_message_copy(&dv_message_pod_status, status, trial, copy);
    *arena = dv_arena_new_sized(dv_arena_used_bytes(trial));
    copy = DV_NEW(*arena, struct dv_api_pod_status);
    dv_message_copy(&dv_message_pod_status, status, *arena, copy);
    return copy;
}

static void store(struct dv_life_looking *look, const struct dv_api_pod_status *status)
{
    struct dv_life *life = look->life;
    struct dv_arena *arena;

    if (life->status && dv_message_eq(&dv_message_pod_status, life->status, status))
        return;
    life->status = copy_status(status, &arena);
    dv_arena_free(life->status_arena); /* not sooner: its texts may be in the new one */
    life->status_arena = arena;
    look->has_new_status = true;
    keep_ips(life);
}

/* ---- the phase ---- */

enum dv_life_phase dv_life_phase_before(const struct dv_life_looking *look)
{
    const struct dv_api_pod_status *api = &look->pod->status;
    enum dv_life_phase phase =
        look->life->status ? look->life->phase : dv_life_phase_read(api->phase);

    if (look->life->status || dv_life_phase_is_terminal(phase))
        return phase;
    /* An agent before us had decided that the pod is to end, and could not tell the phase yet: its
     * claims may be given back already, so that nothing may be started again. */
    for (size_t i = 0; i < api->n_conditions; i++) {
        if (!dv_str_eq(api->conditions[i].type, DV_STR("Ready")))
            continue;
        if (dv_str_eq(api->conditions[i].reason, DV_STR("PodFailed")))
            return DV_LIFE_PHASE_FAILED;
        if (dv_str_eq(api->conditions[i].reason, DV_STR("PodCompleted")))
            return DV_LIFE_PHASE_SUCCEEDED;
    }
    return phase;
}

static bool is_past_deadline(const struct dv_life_looking *look,
                             const struct dv_api_pod_status *status)
{
    const int64_t *deadline_s = look->pod->spec.active_deadline_seconds;

    return deadline_s && status->start_time.is_set &&
           look->facts->now.seconds - status->start_time.seconds >= *deadline_s;
}

struct ending {
    enum dv_life_phase phase;
    dv_str reason;
    dv_str message;
};

static struct ending reckon_end(struct dv_life_looking *look,
                                const struct dv_life_reckoning *reckoning)
{
    struct dv_life *life = look->life;
    const struct dv_api_pod_status *api = &look->pod->status;
    enum dv_life_phase api_phase = dv_life_phase_read(api->phase);
    enum dv_life_phase old_phase = dv_life_phase_before(look);
    struct ending end = {.phase = dv_life_reckon_phase(reckoning)};

    if (!dv_life_phase_is_terminal(end.phase)) {
        if (dv_life_phase_is_terminal(old_phase))
            end.phase = old_phase;
        else if (dv_life_phase_is_terminal(api_phase))
            end.phase = api_phase;
    }
    if (end.phase == old_phase) {
        end.reason = life->status ? life->held_reason : api->reason;
        end.message = life->status ? life->held_message : api->message;
    }
    if (look->facts->eviction_reason.n > 0) {
        end = (struct ending){DV_LIFE_PHASE_FAILED, look->facts->eviction_reason,
                              look->facts->eviction_message};
    } else if (!dv_life_phase_is_terminal(api_phase) && is_past_deadline(look, reckoning->status)) {
        dv_life_add_note(look, false, "DeadlineExceeded", DV_STR_NONE, DEADLINE_TEXT);
        end = (struct ending){DV_LIFE_PHASE_FAILED, DV_STR("DeadlineExceeded"),
                              DV_STR(DEADLINE_TEXT)};
    }
    if (dv_life_phase_is_terminal(api_phase) && end.phase != api_phase)
        end = (struct ending){api_phase, api->reason, api->message};
    return end;
}

/* What is told of the phase now. */
static void tell_phase(struct dv_life_looking *look, const struct ending *end,
                       const struct dv_api_pod_status *old, struct dv_api_pod_status *status)
{
    bool is_told = !dv_life_phase_is_terminal(end->phase) ||
                   look->life->stage >= DV_LIFE_TERMINATED ||
                   dv_life_phase_is_terminal(dv_life_phase_read(old->phase));

    status->phase = is_told ? dv_life_phase_name(end->phase)
                            : dv_life_phase_name(dv_life_phase_read(old->phase));
    status->reason = is_told ? end->reason : old->reason;
    status->message = is_told ? end->message : old->message;
}

static void keep_end(struct dv_life *life, const struct ending *end)
{
    dv_str old_reason = life->held_reason;
    dv_str old_message = life->held_message;

    life->phase = end->phase;
    life->held_reason = life->held_message = DV_STR_NONE;
    dv_life_set_text(&life->held_reason, end->reason); /* may be a copy of the old one */
    dv_life_set_text(&life->held_message, end->message);
    dv_life_set_text(&old_reason, DV_STR_NONE);
    dv_life_set_text(&old_message, DV_STR_NONE);
}

/* ---- what may not be told ---- */

static bool leaves_end(const struct dv_api_pod *pod, const struct dv_api_container_status *old,
                       const struct dv_api_container_status *now, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct dv_api_container *container = dv_workload_container(pod, old[i].name, NULL);

        if (container && dv_str_eq(old[i].name, now[i].name) && old[i].state.terminated &&
            !now[i].state.terminated && !dv_life_is_sidecar(container) &&
            !dv_life_restarts_after(pod, container, old[i].state.terminated->exit_code))
            return true;
    }
    return false;
}

/* A container that has ended for good must not look as if it ran again. */
static bool is_refused(const struct dv_life_reckoning *reckoning)
{
    const struct dv_api_pod *pod = reckoning->look->pod;
    const struct dv_api_pod_status *old = reckoning->old;
    const struct dv_api_pod_status *now = reckoning->status;

    if (dv_str_eq(pod->spec.restart_policy, DV_STR("Always")) || dv_life_has_reset_rules(pod) ||
        old->n_container_statuses != now->n_container_statuses ||
        old->n_init_container_statuses != now->n_init_container_statuses)
        return false;
    return leaves_end(pod, old->container_statuses, now->container_statuses,
                      now->n_container_statuses) ||
           leaves_end(pod, old->init_container_statuses, now->init_container_statuses,
                      now->n_init_container_statuses);
}

enum dv_life_phase dv_life_publish(struct dv_life_looking *look, enum dv_life_reckon reckon)
{
    struct dv_life *life = look->life;
    struct dv_api_pod_status status;
    struct dv_life_reckoning reckoning = {
        .look = look,
        .old = dv_life_status_before(look),
        .status = &status,
        .reckon = reckon,
    };
    struct ending end;

    begin_status(look, reckoning.old, &status);
    dv_life_reckon_containers(&reckoning);
    reckon_ips(&reckoning);
    end = reckon_end(look, &reckoning);
    reckoning.phase = end.phase;
    dv_life_reckon_conditions(&reckoning);
    tell_phase(look, &end, reckoning.old, &status);
    for (size_t i = 0; i < life->members.n; i++)
        life->members.v[i].was_reset = false;
    if (!is_refused(&reckoning))
        store(look, &status);
    keep_end(life, &end); /* last: the status has its texts until it is stored */
    return end.phase;
}

/* ---- changes of the status as it is ---- */

static void copy_lists(struct dv_life_looking *look, struct dv_api_pod_status *status)
{
    struct dv_api_container_status *inits = DV_NEW_ARRAY(
        look->arena, struct dv_api_container_status, status->n_init_container_statuses);
    struct dv_api_container_status *regulars =
        DV_NEW_ARRAY(look->arena, struct dv_api_container_status, status->n_container_statuses);
    struct dv_api_pod_condition *conditions =
        DV_NEW_ARRAY(look->arena, struct dv_api_pod_condition, status->n_conditions + 2);

    for (size_t i = 0; i < status->n_init_container_statuses; i++)
        inits[i] = status->init_container_statuses[i];
    for (size_t i = 0; i < status->n_container_statuses; i++)
        regulars[i] = status->container_statuses[i];
    for (size_t i = 0; i < status->n_conditions; i++)
        conditions[i] = status->conditions[i];
    status->init_container_statuses = inits;
    status->container_statuses = regulars;
    status->conditions = conditions;
}

void dv_life_publish_sandbox(struct dv_life_looking *look)
{
    struct dv_api_pod_status status = *dv_life_status_before(look);

    copy_lists(look, &status);
    for (size_t i = 0; i < status.n_conditions; i++) {
        struct dv_api_pod_condition *condition = &status.conditions[i];

        if (!dv_str_eq(condition->type, DV_STR("PodReadyToStartContainers")) ||
            dv_str_eq(condition->status, DV_STR("True")))
            continue;
        condition->status = DV_STR("True");
        condition->last_transition_time = dv_api_time_round(look->facts->now, false);
    }
    store(look, &status);
}

void dv_life_publish_probes(struct dv_life_looking *look)
{
    struct dv_api_pod_status status;
    struct dv_life_reckoning reckoning = {.look = look,
                                          .status = &status,
                                          .old = dv_life_status_before(look),
                                          .phase = look->life->phase};

    if (!look->life->status)
        return;
    status = *reckoning.old;
    copy_lists(look, &status);
    dv_life_reckon_probes(&reckoning);
    dv_life_reckon_ready(&reckoning);
    store(look, &status);
}

/* ---- the last words ---- */

bool dv_life_was_initialized(const struct dv_life_looking *look)
{
    const struct dv_api_pod_status *status = dv_life_status_before(look);
    const struct dv_api_pod_spec *spec = &look->pod->spec;
    const struct dv_api_container_status *last;

    if (spec->n_init_containers == 0)
        return true;
    for (size_t i = 0; i < status->n_container_statuses; i++) {
        const struct dv_api_container_status *container = &status->container_statuses[i];

        if (container->last_state.terminated || container->state.running ||
            container->state.terminated)
            return true;
    }
    if (status->n_init_container_statuses != spec->n_init_containers)
        return false;
    last = &status->init_container_statuses[status->n_init_container_statuses - 1];
    if (dv_life_is_sidecar(&spec->init_containers[spec->n_init_containers - 1]))
        return last->state.running && last->started && *last->started;
    return last->state.terminated && last->state.terminated->exit_code == 0;
}

static void give_end(struct dv_life_looking *look, struct dv_api_container_status *status)
{
    struct dv_api_container_state_terminated *end;

    if (status->state.terminated)
        return;
    end = DV_NEW(look->arena, struct dv_api_container_state_terminated);
    end->exit_code = 137;
    end->reason = DV_STR("ContainerStatusUnknown");
    end->message = DV_STR(TERMINATED_TEXT);
    status->state = (struct dv_api_container_state){.terminated = end};
}

/* How many init containers are past their turn; those behind never had one. */
static size_t count_begun(const struct dv_api_pod_status *status)
{
    for (size_t i = status->n_init_container_statuses; i-- > 0;)
        if (!status->init_container_statuses[i].state.waiting ||
            status->init_container_statuses[i].last_state.terminated)
            return i + 1;
    return status->n_init_container_statuses > 0 ? 1 : 0;
}

void dv_life_publish_last(struct dv_life_looking *look)
{
    struct dv_api_pod_status status = *dv_life_status_before(look);
    size_t n_begun = count_begun(&status);

    copy_lists(look, &status);
    for (size_t i = 0; i < status.n_container_statuses && look->life->was_initialized; i++)
        give_end(look, &status.container_statuses[i]);
    for (size_t i = 0; i < n_begun; i++)
        give_end(look, &status.init_container_statuses[i]);
    if (!dv_life_phase_is_terminal(dv_life_phase_read(status.phase)))
        status.phase = dv_life_phase_name(DV_LIFE_PHASE_FAILED);
    look->life->phase = dv_life_phase_read(status.phase);
    store(look, &status);
}

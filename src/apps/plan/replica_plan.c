/* replica_plan.c - what is to be done next for a ReplicaSet: its pods are its own, there are as
 * many as are wanted, the status says so. Pods that have ended do not count, and stay. */
#include <stdint.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/pod_state.h"
#include "apps/plan/replica_set.h"
#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

#define FAILURE DV_STR("ReplicaFailure")

struct state {
    const struct dv_replica_input *input;
    const struct dv_plan_owner *owner;
    struct dv_plan *plan;
    DV_VEC(const struct dv_api_pod *) active;
    int64_t n_terminating;
    int64_t n_waiting; /* of the active ones: they have no node yet */
};

static void find_pods(struct state *state)
{
    const struct dv_replica_input *input = state->input;

    for (size_t i = 0; i < input->n_pods; i++) {
        const struct dv_api_pod *pod = input->pods[i];

        if (dv_plan_ownership(state->owner, &pod->metadata) != DV_OWNER_HAS)
            continue;
        if (dv_pod_is_active(pod)) {
            *dv_vec_add_in(&state->active, state->plan->arena) = pod;
            state->n_waiting += dv_pod_is_waiting(pod);
        }
        state->n_terminating += pod->metadata.deletion_timestamp.is_set && !dv_pod_is_terminal(pod);
    }
}

static void plan_pods(struct state *state)
{
    const struct dv_api_replica_set_spec *spec = &state->input->set->spec;
    int64_t wanted = spec->replicas ? *spec->replicas : 1;
    int64_t n_more = wanted - (int64_t)state->active.n;
    size_t n_less = n_more < 0 ? (size_t)-n_more : 0;

    /* Those that are missing are made when some of those have a node that wait for one. */
    if (n_more > DV_PODS_WAITING_MAX - state->n_waiting)
        n_more = DV_PODS_WAITING_MAX - state->n_waiting;
    for (int64_t i = 0; i < n_more && i < DV_REPLICA_BURST; i++)
        (void)dv_plan_create(state->plan, dv_kind(DV_KIND_POD),
                             dv_plan_pod(state->owner, &spec->template, state->plan->arena));
    if (n_less > 0)
        dv_replica_sort(state->input, state->active.v, state->active.n, state->plan->arena);
    for (size_t i = 0; i < n_less && i < DV_REPLICA_BURST; i++)
        (void)dv_plan_delete(state->plan, dv_kind(DV_KIND_POD), &state->active.v[i]->metadata);
}

/* ---- status ---- */

static bool has_labels(const struct dv_api_object_meta *meta,
                       const struct dv_api_object_meta *wanted)
{
    for (size_t i = 0; i < wanted->n_labels; i++) {
        const struct dv_str_entry *label =
            dv_entry_find(meta->labels, meta->n_labels, wanted->labels[i].key);

        if (!label || !dv_str_eq(label->value, wanted->labels[i].value))
            return false;
    }
    return true;
}

/* The conditions with what has failed now; what is cured is left out. */
static void set_conditions(const struct state *state, struct dv_api_replica_set_status *status)
{
    const struct dv_replica_input *input = state->input;
    const struct dv_api_replica_set_status *had = &input->set->status;
    struct dv_api_replica_set_condition *all = DV_NEW_ARRAY(
        state->plan->arena, struct dv_api_replica_set_condition, had->n_conditions + 1);
    bool has_failure = false;
    size_t n = 0;

    for (size_t i = 0; i < had->n_conditions; i++) {
        bool is_failure = dv_str_eq(had->conditions[i].type, FAILURE);

        has_failure |= is_failure;
        if (!is_failure || input->failed_reason.n > 0)
            all[n++] = had->conditions[i];
    }
    if (input->failed_reason.n > 0 && !has_failure)
        all[n++] = (struct dv_api_replica_set_condition){.type = FAILURE,
                                                         .status = DV_STR("True"),
                                                         .last_transition_time = input->now,
                                                         .reason = input->failed_reason,
                                                         .message = input->failed_message};
    status->conditions = all;
    status->n_conditions = n;
}

static bool set_status(const struct dv_action *action, void *value, struct dv_arena *arena)
{
    struct dv_api_replica_set *set = value;

    (void)arena;
    set->status = *(const struct dv_api_replica_set_status *)action->with;
    return true;
}

static void plan_status(struct state *state)
{
    const struct dv_api_replica_set *set = state->input->set;
    struct dv_api_replica_set_status *status =
        DV_NEW(state->plan->arena, struct dv_api_replica_set_status);
    int64_t *n_terminating = DV_NEW(state->plan->arena, int64_t);
    struct dv_action *action;

    *n_terminating = state->n_terminating;
    status->replicas = (int64_t)state->active.n;
    for (size_t i = 0; i < state->active.n; i++) {
        const struct dv_api_pod *pod = state->active.v[i];

        status->fully_labeled_replicas += has_labels(&pod->metadata, &set->spec.template.metadata);
        status->ready_replicas += dv_pod_is_ready(pod, NULL);
        status->available_replicas +=
            dv_pod_is_available(pod, set->spec.min_ready_seconds, state->input->now);
    }
    status->terminating_replicas = n_terminating;
    status->observed_generation = set->metadata.generation;
    set_conditions(state, status);
    if (status->ready_replicas != status->available_replicas)
        dv_plan_again(state->plan, (uint64_t)set->spec.min_ready_seconds * 1000);
    if (dv_message_eq(&dv_message_replica_set_status, status, &set->status))
        return;
    action = dv_plan_change(state->plan, state->owner->kind, &set->metadata);
    action->type = DV_ACTION_CHANGE_STATUS;
    action->change = set_status;
    action->with = status;
}

void dv_replica_plan(const struct dv_replica_input *input, struct dv_plan *plan)
{
    const struct dv_api_replica_set *set = input->set;
    struct state state = {.input = input, .plan = plan};

    if (set->metadata.deletion_timestamp.is_set)
        return; /* what it owns is the collector's */
    state.owner =
        dv_plan_owner_of(DV_KIND_REPLICA_SET, &set->metadata, set->spec.selector, plan->arena);
    find_pods(&state);
    if (!input->has_failed) {
        for (size_t i = 0; i < input->n_pods; i++)
            dv_plan_adopt_or_release(plan, state.owner, dv_kind(DV_KIND_POD),
                                     &input->pods[i]->metadata);
        if (plan->actions.n == 0)
            plan_pods(&state);
    }
    if (plan->actions.n == 0)
        plan_status(&state);
}

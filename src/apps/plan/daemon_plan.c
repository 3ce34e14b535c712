/* daemon_plan.c - what is to be done next for a DaemonSet: the first of these that is not so is
 * planned, and the others when it is done. Its pods are its own, the template has a revision, old
 * revisions are gone, every node has the pod that it shall have, pods are of the newest template,
 * the status says all that. Revisions go first, so that they do not pile up where pods are refused
 * for long. */
#include "apps/plan/daemon_set.h"

#include <stdlib.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/daemon_state.h"
#include "apps/plan/pod_state.h"
#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"

bool dv_daemon_is_updated(const struct dv_daemon_state *state, const struct dv_api_pod *pod)
{
    const struct dv_api_object_meta *meta = &pod->metadata;
    const struct dv_str_entry *generation =
        dv_entry_find(meta->labels, meta->n_labels, DV_STR(DV_TEMPLATE_GENERATION_LABEL));
    const struct dv_str_entry *hash =
        dv_entry_find(meta->labels, meta->n_labels, DV_STR(DV_REVISION_HASH_LABEL));

    return (generation && dv_str_eq(generation->value, state->generation)) ||
           (hash && state->hash.n > 0 && dv_str_eq(hash->value, state->hash));
}

/* A selector can exclude the labels that are added here to those of the template. What it excludes
 * would be given up when it is made, and made again without end. */
bool dv_daemon_is_own(const struct dv_daemon_state *state, const struct dv_api_object_meta *meta)
{
    return dv_plan_ownership(state->owner, meta) == DV_OWNER_HAS;
}

void dv_daemon_create_pod(struct dv_daemon_state *state, dv_str node)
{
    const struct dv_api_daemon_set *set = state->input->set;
    struct dv_arena *arena = state->plan->arena;
    struct dv_api_pod *pod;

    if (state->n_created++ >= DV_DAEMON_BURST)
        return;
    pod = dv_plan_pod(state->owner, &set->spec.template, arena);
    pod->spec = *dv_daemon_pod_spec(set, node, arena);
    dv_entry_set(&pod->metadata.labels, &pod->metadata.n_labels,
                 DV_STR(DV_TEMPLATE_GENERATION_LABEL), state->generation, arena);
    dv_entry_set(&pod->metadata.labels, &pod->metadata.n_labels, DV_STR(DV_REVISION_HASH_LABEL),
                 state->hash, arena);
    if (dv_daemon_is_own(state, &pod->metadata))
        (void)dv_plan_create(state->plan, dv_kind(DV_KIND_POD), pod);
}

static struct dv_action *delete_pod(struct dv_daemon_state *state, const struct dv_api_pod *pod)
{
    if (state->n_deleted++ >= DV_DAEMON_BURST)
        return NULL;
    return dv_plan_delete(state->plan, dv_kind(DV_KIND_POD), &pod->metadata);
}

void dv_daemon_delete_pod(struct dv_daemon_state *state, const struct dv_api_pod *pod)
{
    (void)delete_pod(state, pod);
}

/* ---- places ---- */

static struct dv_daemon_place *place_of(struct dv_daemon_state *state, dv_str name)
{
    struct dv_daemon_place *place = dv_map_get(&state->by_name, name);

    if (place)
        return place;
    place = DV_NEW(state->plan->arena, struct dv_daemon_place);
    place->name = name;
    (void)dv_map_set(&state->by_name, name, place);
    *dv_vec_add_in(&state->places, state->plan->arena) = place;
    return place;
}

/* The order in which pods are kept: those on a node first, then the oldest. */
static int compare_pods(const void *a, const void *b)
{
    const struct dv_api_pod *x = *(const struct dv_api_pod *const *)a;
    const struct dv_api_pod *y = *(const struct dv_api_pod *const *)b;
    bool is_x_bound = x->spec.node_name.n > 0;
    bool is_y_bound = y->spec.node_name.n > 0;
    int64_t age = x->metadata.creation_timestamp.seconds - y->metadata.creation_timestamp.seconds;

    if (is_x_bound != is_y_bound)
        return is_x_bound ? -1 : 1;
    if (age != 0)
        return age < 0 ? -1 : 1;
    return dv_str_cmp(x->metadata.name, y->metadata.name);
}

static void place_pods(struct dv_daemon_state *state)
{
    for (size_t i = 0; i < state->input->n_pods; i++) {
        const struct dv_api_pod *pod = state->input->pods[i];
        dv_str node = dv_daemon_node_of(pod);

        if (node.n > 0 && !(dv_pod_is_terminal(pod) && pod->metadata.deletion_timestamp.is_set) &&
            dv_daemon_is_own(state, &pod->metadata))
            *dv_vec_add_in(&place_of(state, node)->pods, state->plan->arena) = pod;
    }
    for (size_t i = 0; i < state->places.n; i++)
        if (state->places.v[i]->pods.n > 1)
            qsort(state->places.v[i]->pods.v, state->places.v[i]->pods.n,
                  sizeof(state->places.v[i]->pods.v[0]), compare_pods);
}

static void place_nodes(struct dv_daemon_state *state)
{
    const struct dv_api_daemon_set *set = state->input->set;
    const struct dv_api_pod_spec *spec = dv_daemon_pod_spec(set, DV_STR_NONE, state->plan->arena);

    for (size_t i = 0; i < state->input->n_nodes; i++) {
        struct dv_daemon_place *place = place_of(state, state->input->nodes[i]->metadata.name);

        place->node = state->input->nodes[i];
        place->verdict = dv_daemon_judge(set, spec, place->node);
        state->n_desired += place->verdict.shall_run;
    }
}

static void set_limits(struct dv_daemon_state *state)
{
    const struct dv_api_daemon_set_update_strategy *strategy =
        &state->input->set->spec.update_strategy;

    if (!strategy->rolling_update || !dv_str_eq(strategy->type, DV_STR("RollingUpdate")))
        return;
    state->max_surge = dv_scaled(strategy->rolling_update->max_surge, state->n_desired, true);
    state->max_unavailable =
        dv_scaled(strategy->rolling_update->max_unavailable, state->n_desired, true);
    if (state->max_surge == 0 && state->max_unavailable == 0)
        state->max_unavailable = 1; /* a share of no node: one at a time */
}

/* ---- a pod on each node ---- */

static uint64_t wait_of(const struct dv_daemon_input *input, const struct dv_api_pod *pod)
{
    for (size_t i = 0; i < input->n_waits; i++)
        if (input->waits[i].pod == pod)
            return input->waits[i].ms;
    return 0;
}

/* Tells of a pod that has ended, and deletes it; one that failed only when others there have not
 * failed a moment ago. */
static void delete_ended(struct dv_daemon_state *state, const struct dv_daemon_place *place,
                         const struct dv_api_pod *pod)
{
    bool is_failed = dv_str_eq(pod->status.phase, DV_STR("Failed"));
    uint64_t wait_ms = is_failed ? wait_of(state->input, pod) : 0;
    struct dv_action *action;

    if (wait_ms > 0) {
        dv_plan_again(state->plan, wait_ms);
        return;
    }
    action = delete_pod(state, pod);
    if (!action)
        return;
    action->reason = is_failed ? DV_STR("FailedDaemonPod") : DV_STR("SucceededDaemonPod");
    action->is_warning = is_failed;
    action->message = dv_str_printf(
        state->plan->arena, "Found %s daemon pod %.*s/%.*s on node %.*s, will try to %s it",
        is_failed ? "failed" : "succeeded", DV_FMT(pod->metadata.namespace),
        DV_FMT(pod->metadata.name), DV_FMT(place->name), is_failed ? "kill" : "delete");
}

/* Of several pods that run on a node while surging, the oldest of the newest template and the
 * oldest of all others stay, the latter until it is not needed. */
static void manage_surge(struct dv_daemon_state *state, const struct dv_api_pod *const *pods,
                         size_t n)
{
    const struct dv_daemon_input *input = state->input;
    const struct dv_api_pod *newest = NULL;
    const struct dv_api_pod *older = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct dv_api_pod **kept = dv_daemon_is_updated(state, pods[i]) ? &newest : &older;

        if (*kept)
            dv_daemon_delete_pod(state, pods[i]);
        else
            *kept = pods[i];
    }
    if (newest && older &&
        (!dv_pod_is_ready(older, NULL) ||
         dv_pod_is_available(newest, input->set->spec.min_ready_seconds, input->now)))
        dv_daemon_delete_pod(state, older);
}

static void manage_place(struct dv_daemon_state *state, const struct dv_daemon_place *place)
{
    DV_VEC(const struct dv_api_pod *) running = {0};
    bool is_surging = state->max_surge > 0;

    if (place->verdict.shall_run && place->pods.n == 0)
        dv_daemon_create_pod(state, place->name);
    for (size_t i = 0; i < place->pods.n; i++) {
        const struct dv_api_pod *pod = place->pods.v[i];

        if (pod->metadata.deletion_timestamp.is_set)
            continue;
        if (!place->verdict.may_stay)
            dv_daemon_delete_pod(state, pod);
        else if (dv_pod_is_terminal(pod))
            delete_ended(state, place, pod);
        else
            *dv_vec_add_in(&running, state->plan->arena) = pod;
    }
    if (!place->verdict.may_stay || place->pods.n == 0)
        return;
    if (is_surging && running.n == 0 && place->verdict.shall_run)
        dv_daemon_create_pod(state, place->name); /* beside one that is ending */
    else if (is_surging)
        manage_surge(state, running.v, running.n);
    for (size_t i = 1; !is_surging && i < running.n; i++)
        dv_daemon_delete_pod(state, running.v[i]);
}

/* Deletes what waits for a node that is gone. What was on it is the collector's. */
static void manage_gone(struct dv_daemon_state *state, const struct dv_daemon_place *place)
{
    for (size_t i = 0; i < place->pods.n; i++)
        if (place->pods.v[i]->spec.node_name.n == 0 &&
            !place->pods.v[i]->metadata.deletion_timestamp.is_set)
            dv_daemon_delete_pod(state, place->pods.v[i]);
}

static void plan_pods(struct dv_daemon_state *state)
{
    for (size_t i = 0; i < state->places.n; i++)
        if (state->places.v[i]->node)
            manage_place(state, state->places.v[i]);
        else
            manage_gone(state, state->places.v[i]);
}

/* ---- status ---- */

static bool set_status(const struct dv_action *action, void *value, struct dv_arena *arena)
{
    struct dv_api_daemon_set *set = value;

    (void)arena;
    set->status = *(const struct dv_api_daemon_set_status *)action->with;
    return true;
}

static void count(const struct dv_daemon_state *state, const struct dv_daemon_place *place,
                  struct dv_api_daemon_set_status *status)
{
    const struct dv_daemon_input *input = state->input;
    const struct dv_api_pod *pod = place->pods.n > 0 ? place->pods.v[0] : NULL;

    if (!place->verdict.shall_run) {
        status->number_misscheduled += pod != NULL;
        return;
    }
    status->desired_number_scheduled++;
    if (!pod)
        return;
    status->current_number_scheduled++;
    status->number_ready += dv_pod_is_ready(pod, NULL);
    status->number_available +=
        dv_pod_is_available(pod, input->set->spec.min_ready_seconds, input->now);
    status->updated_number_scheduled += dv_daemon_is_updated(state, pod);
}

static const int64_t *count_collision(const struct dv_daemon_state *state)
{
    const int64_t *had = state->input->set->status.collision_count;
    int64_t *n;

    if (!state->input->has_collided)
        return had;
    n = DV_NEW(state->plan->arena, int64_t);
    *n = had ? *had + 1 : 1;
    return n;
}

static void plan_status(struct dv_daemon_state *state)
{
    const struct dv_api_daemon_set *set = state->input->set;
    struct dv_api_daemon_set_status *status =
        DV_NEW(state->plan->arena, struct dv_api_daemon_set_status);
    struct dv_action *action;

    status->observed_generation =
        state->input->has_failed ? set->status.observed_generation : set->metadata.generation;
    status->collision_count = count_collision(state);
    status->conditions = set->status.conditions;
    status->n_conditions = set->status.n_conditions;
    for (size_t i = 0; i < state->places.n; i++)
        if (state->places.v[i]->node)
            count(state, state->places.v[i], status);
    status->number_unavailable = status->desired_number_scheduled - status->number_available;
    if (status->number_ready != status->number_available)
        dv_plan_again(state->plan, (uint64_t)set->spec.min_ready_seconds * 1000);
    if (dv_message_eq(&dv_message_daemon_set_status, status, &set->status))
        return;
    action = dv_plan_change(state->plan, state->owner->kind, &set->metadata);
    action->type = DV_ACTION_CHANGE_STATUS;
    action->change = set_status;
    action->with = status;
}

/* ---- all of it ---- */

static void plan_claims(struct dv_daemon_state *state)
{
    const struct dv_daemon_input *input = state->input;

    for (size_t i = 0; i < input->n_pods; i++)
        dv_plan_adopt_or_release(state->plan, state->owner, dv_kind(DV_KIND_POD),
                                 &input->pods[i]->metadata);
    for (size_t i = 0; i < input->n_revisions; i++)
        dv_plan_adopt_or_release(state->plan, state->owner, dv_kind(DV_KIND_CONTROLLER_REVISION),
                                 &input->revisions[i]->metadata);
}

static void plan_all(struct dv_daemon_state *state)
{
    static void (*const steps[])(struct dv_daemon_state * state) = {
        dv_daemon_plan_history, plan_pods, dv_daemon_plan_update};

    if (state->input->has_failed) {
        plan_status(state);
        return;
    }
    plan_claims(state);
    if (state->plan->actions.n == 0)
        dv_daemon_plan_revision(state);
    for (size_t i = 0; state->revision && state->plan->actions.n == 0 && i < DV_COUNT(steps); i++)
        steps[i](state);
    if (state->plan->actions.n == 0)
        plan_status(state);
}

static dv_str template_generation(const struct dv_api_daemon_set *set)
{
    const struct dv_str_entry *entry =
        dv_entry_find(set->metadata.annotations, set->metadata.n_annotations,
                      DV_STR(DV_TEMPLATE_GENERATION_ANNOTATION));

    return entry ? entry->value : DV_STR_NONE;
}

void dv_daemon_plan(const struct dv_daemon_input *input, struct dv_plan *plan)
{
    const struct dv_api_daemon_set *set = input->set;
    struct dv_daemon_state state = {.input = input, .plan = plan};

    if (set->metadata.deletion_timestamp.is_set)
        return; /* what it owns is the collector's */
    state.owner =
        dv_plan_owner_of(DV_KIND_DAEMON_SET, &set->metadata, set->spec.selector, plan->arena);
    state.generation = template_generation(set);
    dv_map_init(&state.by_name);
    place_nodes(&state);
    place_pods(&state);
    set_limits(&state);
    plan_all(&state);
    dv_map_fini(&state.by_name);
}

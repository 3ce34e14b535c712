/* deployment_status.c - what the status of a Deployment says: how many pods of which template there
 * are, whether enough work, and whether a roll-out makes progress. */
#include <string.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/deployment.h"
#include "apps/plan/deployment_state.h"
#include "base/arena.h"
#include "base/str.h"
#include "resource/resource.h"

#define AVAILABLE DV_STR("Available")
#define PROGRESSING DV_STR("Progressing")
#define FAILURE DV_STR("ReplicaFailure")
#define IS_COMPLETE DV_STR("NewReplicaSetAvailable")
#define IS_LATE DV_STR("ProgressDeadlineExceeded")
#define IS_PAUSED DV_STR("DeploymentPaused")
/* A deadline that never comes. */
#define NO_DEADLINE INT32_MAX
#define N_CONDITIONS_MAX 3u

typedef struct dv_api_deployment_condition condition;
typedef struct dv_api_deployment_status statuses;

static condition *find(const statuses *status, dv_str type)
{
    for (size_t i = 0; i < status->n_conditions; i++)
        if (dv_str_eq(status->conditions[i].type, type))
            return &status->conditions[i];
    return NULL;
}

static void drop(statuses *status, dv_str type)
{
    size_t n = 0;

    for (size_t i = 0; i < status->n_conditions; i++)
        if (!dv_str_eq(status->conditions[i].type, type))
            status->conditions[n++] = status->conditions[i];
    status->n_conditions = n;
}

/* Sets a condition; one of the same status and reason stays as it is, and one of the same status
 * keeps since when it is so. */
static void set(statuses *status, condition now)
{
    const condition *had = find(status, now.type);

    if (had && dv_str_eq(had->status, now.status) && dv_str_eq(had->reason, now.reason))
        return;
    if (had && dv_str_eq(had->status, now.status))
        now.last_transition_time = had->last_transition_time;
    drop(status, now.type);
    status->conditions[status->n_conditions++] = now;
}

static condition made(const struct dv_deployment_state *state, dv_str type, const char *status,
                      dv_str reason, dv_str message)
{
    return (condition){.type = type,
                       .status = dv_str_from_c(status),
                       .last_update_time = state->input->now,
                       .last_transition_time = state->input->now,
                       .reason = reason,
                       .message = message};
}

/* ---- numbers ---- */

/* The status with the numbers of now and the conditions so far, for which there is room for all. */
static statuses *count(const struct dv_deployment_state *state)
{
    const struct dv_api_deployment *deployment = state->input->deployment;
    struct dv_arena *arena = state->plan->arena;
    statuses *status = DV_NEW(arena, statuses);
    int64_t *n_terminating = DV_NEW(arena, int64_t);
    int64_t n_total = 0;

    *status = (statuses){.observed_generation = deployment->metadata.generation,
                         .collision_count = deployment->status.collision_count,
                         .terminating_replicas = n_terminating,
                         .n_conditions = deployment->status.n_conditions};
    status->conditions =
        DV_NEW_ARRAY(arena, condition, deployment->status.n_conditions + N_CONDITIONS_MAX);
    if (status->n_conditions > 0)
        memcpy(status->conditions, deployment->status.conditions,
               status->n_conditions * sizeof(condition));
    for (size_t i = 0; i < state->sets.n; i++) {
        const struct dv_api_replica_set_status *of = &state->sets.v[i].set->status;

        n_total += state->sets.v[i].n_had;
        status->replicas += of->replicas;
        status->ready_replicas += of->ready_replicas;
        status->available_replicas += of->available_replicas;
        *n_terminating += of->terminating_replicas ? *of->terminating_replicas : 0;
    }
    status->updated_replicas = state->newest ? state->newest->set->status.replicas : 0;
    if (n_total > status->available_replicas)
        status->unavailable_replicas = n_total - status->available_replicas;
    return status;
}

static bool is_complete(const struct dv_deployment_state *state, const statuses *status)
{
    return status->updated_replicas == state->n_wanted && status->replicas == state->n_wanted &&
           status->available_replicas == state->n_wanted;
}

bool dv_deployment_is_complete(const struct dv_deployment_state *state)
{
    return is_complete(state, count(state));
}

static bool is_progress(const statuses *now, const statuses *had)
{
    return now->updated_replicas > had->updated_replicas ||
           now->replicas - now->updated_replicas < had->replicas - had->updated_replicas ||
           now->ready_replicas > had->ready_replicas ||
           now->available_replicas > had->available_replicas;
}

/* ---- conditions ---- */

static int64_t deadline_of(const struct dv_deployment_state *state)
{
    const int64_t *deadline = state->input->deployment->spec.progress_deadline_seconds;

    return deadline ? *deadline : NO_DEADLINE;
}

static dv_str say(const struct dv_deployment_state *state, const char *what)
{
    const struct dv_api_deployment *deployment = state->input->deployment;

    return dv_str_printf(
        state->plan->arena, "%s \"%.*s\" %s", state->newest ? "ReplicaSet" : "Deployment",
        DV_FMT(state->newest ? state->newest->set->metadata.name : deployment->metadata.name),
        what);
}

static void set_available(const struct dv_deployment_state *state, statuses *status)
{
    bool is_enough = status->available_replicas >= state->n_wanted - state->max_unavailable;

    set(status, is_enough ? made(state, AVAILABLE, "True", DV_STR("MinimumReplicasAvailable"),
                                 DV_STR("Deployment has minimum availability."))
                          : made(state, AVAILABLE, "False", DV_STR("MinimumReplicasUnavailable"),
                                 DV_STR("Deployment does not have minimum availability.")));
}

/* Says of a roll-out that it has made progress now: this moves the deadline. */
static void set_progress(const struct dv_deployment_state *state, statuses *status)
{
    const condition *had = find(status, PROGRESSING);
    condition now = made(state, PROGRESSING, "True", DV_STR("ReplicaSetUpdated"),
                         say(state, "is progressing."));

    if (had && dv_str_eq(had->status, DV_STR("True")))
        now.last_transition_time = had->last_transition_time;
    drop(status, PROGRESSING);
    status->conditions[status->n_conditions++] = now;
}

static void set_progressing(const struct dv_deployment_state *state, statuses *status)
{
    const struct dv_api_deployment *deployment = state->input->deployment;
    const condition *had = find(status, PROGRESSING);
    bool was_complete =
        status->replicas == status->updated_replicas && had && dv_str_eq(had->reason, IS_COMPLETE);

    if (deadline_of(state) == NO_DEADLINE) {
        drop(status, PROGRESSING);
    } else if (deployment->spec.paused) {
        set(status, made(state, PROGRESSING, "Unknown", IS_PAUSED, DV_STR("Deployment is paused")));
    } else if (had && dv_str_eq(had->reason, IS_PAUSED)) {
        set(status, made(state, PROGRESSING, "Unknown", DV_STR("DeploymentResumed"),
                         DV_STR("Deployment is resumed")));
    } else if (was_complete) {
        return;
    } else if (is_complete(state, status)) {
        set(status, made(state, PROGRESSING, "True", IS_COMPLETE,
                         say(state, "has successfully progressed.")));
    } else if (is_progress(status, &deployment->status)) {
        set_progress(state, status);
    } else if (had && !dv_str_eq(had->reason, IS_COMPLETE) && !dv_str_eq(had->reason, IS_LATE)) {
        int64_t left =
            had->last_update_time.seconds + deadline_of(state) - state->input->now.seconds;

        if (left < 0)
            set(status, made(state, PROGRESSING, "False", IS_LATE,
                             say(state, "has timed out progressing.")));
        else
            dv_plan_again(state->plan, (uint64_t)(left + 1) * 1000);
    }
}

/* Tells what a set could not do: the newest first. */
static void set_failure(const struct dv_deployment_state *state, statuses *status)
{
    const struct dv_api_replica_set_condition *failure = NULL;

    for (size_t i = 0; i < state->sets.n; i++) {
        const struct dv_api_replica_set_status *of = &state->sets.v[i].set->status;

        for (size_t j = 0; j < of->n_conditions; j++)
            if (dv_str_eq(of->conditions[j].type, FAILURE) &&
                (!failure || &state->sets.v[i] == state->newest))
                failure = &of->conditions[j];
    }
    if (failure)
        set(status, made(state, FAILURE, "True", failure->reason, failure->message));
    else
        drop(status, FAILURE);
}

/* ---- actions ---- */

static bool write_status(const struct dv_action *action, void *value, struct dv_arena *arena)
{
    (void)arena;
    ((struct dv_api_deployment *)value)->status = *(const statuses *)action->with;
    return true;
}

static void plan_status(struct dv_deployment_state *state, const statuses *status)
{
    const struct dv_api_deployment *deployment = state->input->deployment;
    struct dv_action *action;

    if (dv_message_eq(&dv_message_deployment_status, status, &deployment->status))
        return;
    action = dv_plan_change(state->plan, state->owner->kind, &deployment->metadata);
    action->type = DV_ACTION_CHANGE_STATUS;
    action->change = write_status;
    action->with = status;
}

void dv_deployment_plan_status(struct dv_deployment_state *state)
{
    const struct dv_deployment_input *input = state->input;
    statuses *status = count(state);

    set_available(state, status);
    set_progressing(state, status);
    set_failure(state, status);
    if (input->has_collided) {
        int64_t *n = DV_NEW(state->plan->arena, int64_t);

        *n = status->collision_count ? *status->collision_count + 1 : 1;
        status->collision_count = n;
    } else if (input->has_failed && input->failed_message.n > 0 && !state->newest) {
        set(status, made(state, PROGRESSING, "False", DV_STR("ReplicaSetCreateError"),
                         input->failed_message));
    }
    plan_status(state, status);
}

void dv_deployment_plan_created(struct dv_deployment_state *state, dv_str name)
{
    statuses *status = count(state);

    if (deadline_of(state) == NO_DEADLINE)
        return;
    status->observed_generation = state->input->deployment->status.observed_generation;
    set(status,
        made(state, PROGRESSING, "True", DV_STR("NewReplicaSetCreated"),
             dv_str_printf(state->plan->arena, "Created new replica set \"%.*s\"", DV_FMT(name))));
    plan_status(state, status);
}

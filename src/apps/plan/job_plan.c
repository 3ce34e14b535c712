/* job_plan.c - what is to be done next for a Job: the first of these that is not so is planned, and
 * the others when it is done. Its pods are its own; at its end none is active; what has ended is
 * counted; there are as many pods as are wanted; the status says all that. Counting goes before
 * making pods, so that it goes on where pods are refused. */
#include "apps/plan/job_plan.h"

#include "apps/plan/apps_plan.h"
#include "apps/plan/job_state.h"
#include "base/str.h"
#include "resource/resource.h"

/* Who looks after Jobs that name nobody. */
#define MANAGER DV_STR("kubernetes.io/job-controller")

/* Whether somebody else looks after the Job. */
static bool is_managed_elsewhere(const struct dv_api_job *job)
{
    return job->spec.managed_by.p && !dv_str_eq(job->spec.managed_by, MANAGER);
}

/* ---- finished Jobs ---- */

/* Plans that the Job goes when it has been finished for as long as it says. */
static void plan_expiry(const struct dv_job_input *input, struct dv_plan *plan)
{
    const struct dv_api_job *job = input->job;
    const int64_t *ttl = job->spec.ttl_seconds_after_finished;
    struct dv_time end = {0};
    int64_t left_s;

    if (!ttl || job->metadata.deletion_timestamp.is_set)
        return;
    for (size_t i = 0; i < job->status.n_conditions; i++) {
        const struct dv_api_job_condition *condition = &job->status.conditions[i];

        if ((dv_str_eq(condition->type, DV_STR("Complete")) ||
             dv_str_eq(condition->type, DV_STR("Failed"))) &&
            dv_str_eq(condition->status, DV_STR("True")))
            end = condition->last_transition_time;
    }
    if (!end.is_set)
        return;
    left_s = *ttl - (input->now.seconds - end.seconds);
    if (left_s > 0)
        dv_plan_again(plan, (uint64_t)left_s * 1000);
    else
        dv_plan_delete(plan, dv_kind(DV_KIND_JOB), &job->metadata)->propagation_policy =
            DV_STR("Foreground");
}

/* ---- all of it ---- */

static void plan_claims(struct dv_job_state *state)
{
    const struct dv_job_input *input = state->input;

    for (size_t i = 0; i < input->n_pods; i++)
        dv_plan_adopt_or_release(state->plan, state->owner, dv_kind(DV_KIND_POD),
                                 &input->pods[i]->metadata);
}

static void plan_steps(struct dv_job_state *state)
{
    bool may_act = !state->input->has_failed;
    struct dv_plan *plan = state->plan;

    dv_job_decide_end(state);
    if (state->end.is_set && state->n_active > 0 && may_act) {
        dv_job_delete_active(state);
        return;
    }
    if (state->n_active > 0)
        state->end.is_set = false; /* not yet: some could not be deleted */
    dv_job_plan_count(state);
    if (plan->actions.n == 0 && may_act)
        dv_job_plan_letting_go(state);
    if (plan->actions.n == 0 && may_act && !state->end.is_set &&
        !state->job->metadata.deletion_timestamp.is_set)
        dv_job_plan_pods(state);
    if (plan->actions.n == 0)
        dv_job_plan_status(state);
}

static bool is_word(dv_str text, const char *word)
{
    return dv_str_eq(text, dv_str_from_c(word));
}

void dv_job_plan(const struct dv_job_input *input, struct dv_plan *plan)
{
    const struct dv_api_job *job = input->job;
    struct dv_plan_owner *owner;
    struct dv_job_state state = {
        .input = input,
        .job = job,
        .plan = plan,
        .is_indexed = is_word(job->spec.completion_mode, "Indexed"),
        .has_index_limit = is_word(job->spec.completion_mode, "Indexed") &&
                           job->spec.backoff_limit_per_index != NULL,
        .replaces_failed =
            is_word(job->spec.pod_replacement_policy, "Failed") || job->spec.pod_failure_policy,
        .is_suspended = job->spec.suspend && *job->spec.suspend,
    };

    if (is_managed_elsewhere(job))
        return;
    if (dv_job_is_finished(job)) {
        if (!input->has_failed)
            plan_expiry(input, plan);
        return;
    }
    owner = dv_plan_owner_of(DV_KIND_JOB, &job->metadata, job->spec.selector, plan->arena);
    owner->finalizer = DV_STR(DV_JOB_FINALIZER);
    state.owner = owner;
    if (!input->has_failed)
        plan_claims(&state);
    if (plan->actions.n > 0)
        return;
    dv_job_find_pods(&state);
    plan_steps(&state);
    dv_job_fini_pods(&state);
}

/* ---- pods whose Job counts no longer ---- */

void dv_tracked_plan(const struct dv_tracked_input *input, struct dv_plan *plan)
{
    const struct dv_api_object_meta *meta = &input->pod->metadata;
    const struct dv_api_owner_reference *owner = dv_controller_of(meta);
    const struct dv_api_job *job = input->job;
    dv_str version;
    dv_str group;

    if (!dv_meta_has_finalizer(meta, DV_STR(DV_JOB_FINALIZER)))
        return;
    if (owner) {
        dv_api_version_split(owner->api_version, &group, &version);
        if (!dv_str_eq(group, DV_STR(DV_BATCH_GROUP)) || !dv_str_eq(owner->kind, DV_STR("Job")))
            return;
        if (job && dv_str_eq(job->metadata.uid, owner->uid) &&
            (is_managed_elsewhere(job) || !dv_job_is_finished(job)))
            return;
    }
    dv_job_let_go(plan, input->pod);
}

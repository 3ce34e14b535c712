/* job_end.c - whether a Job is at its end: what the status says already, then failures, then
 * successes. */
#include "apps/plan/apps_plan.h"
#include "apps/plan/job_state.h"
#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"

/* Any number of seconds may be written; more than this no clock reaches. */
#define DEADLINE_MAX_S INT64_C(1000000000000)

static const struct dv_api_job_condition *find_true(const struct dv_api_job *job, dv_str type)
{
    for (size_t i = 0; i < job->status.n_conditions; i++)
        if (dv_str_eq(job->status.conditions[i].type, type) &&
            dv_str_eq(job->status.conditions[i].status, DV_STR("True")))
            return &job->status.conditions[i];
    return NULL;
}

bool dv_job_is_finished(const struct dv_api_job *job)
{
    return find_true(job, DV_STR("Complete")) || find_true(job, DV_STR("Failed"));
}

static void set_end(struct dv_job_state *state, bool is_success, dv_str reason, dv_str message)
{
    state->end = (struct dv_job_end){
        .is_set = true, .is_success = is_success, .reason = reason, .message = message};
}

static void fail(struct dv_job_state *state, const char *reason, const char *message)
{
    set_end(state, false, dv_str_from_c(reason), dv_str_from_c(message));
}

/* ---- what was decided before ---- */

static void find_told(struct dv_job_state *state)
{
    const struct dv_api_job_condition *success =
        find_true(state->job, DV_STR("SuccessCriteriaMet"));
    const struct dv_api_job_condition *failure = find_true(state->job, DV_STR("FailureTarget"));
    const struct dv_api_job_condition *told = success ? success : failure;

    if (!told)
        return;
    set_end(state, success != NULL, told->reason, told->message);
    state->end.is_told = true;
}

/* ---- failures ---- */

static void look_for_policy(struct dv_job_state *state)
{
    for (size_t i = 0; i < state->pods.n; i++) {
        const struct dv_job_pod *pod = &state->pods.v[i];
        dv_str message = {0};

        if (!pod->has_failed || pod->verdict != DV_JOB_FAIL)
            continue;
        (void)dv_job_judge(state->job->spec.pod_failure_policy, pod->pod, state->plan->arena,
                           &message);
        set_end(state, false, DV_STR("PodFailurePolicy"), message);
        return;
    }
}

static int64_t restarts_of(const struct dv_api_pod *pod)
{
    int64_t n = 0;

    for (size_t i = 0; i < pod->status.n_init_container_statuses; i++)
        n += pod->status.init_container_statuses[i].restart_count;
    for (size_t i = 0; i < pod->status.n_container_statuses; i++)
        n += pod->status.container_statuses[i].restart_count;
    return n;
}

/* Whether containers have been started again too often, where they are started again. */
static bool is_over_restarts(const struct dv_job_state *state)
{
    int64_t limit = *state->job->spec.backoff_limit;
    int64_t n = 0;

    if (!dv_str_eq(state->job->spec.template.spec.restart_policy, DV_STR("OnFailure")))
        return false;
    for (size_t i = 0; i < state->pods.n; i++) {
        dv_str phase = state->pods.v[i].pod->status.phase;

        if (dv_str_eq(phase, DV_STR("Running")) || dv_str_eq(phase, DV_STR("Pending")))
            n += restarts_of(state->pods.v[i].pod);
    }
    return limit == 0 ? n > 0 : n >= limit;
}

static void look_for_limits(struct dv_job_state *state)
{
    const struct dv_api_job_spec *spec = &state->job->spec;
    struct dv_time start = state->job->status.start_time;
    struct dv_time now = state->input->now;
    int64_t limit_s;
    int64_t left_s;

    if (state->n_failed > *spec->backoff_limit || is_over_restarts(state)) {
        fail(state, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
        return;
    }
    if (!spec->active_deadline_seconds || state->is_suspended)
        return;
    limit_s = *spec->active_deadline_seconds < DEADLINE_MAX_S ? *spec->active_deadline_seconds
                                                              : DEADLINE_MAX_S;
    left_s = start.is_set ? limit_s - (now.seconds - start.seconds) : limit_s;
    if (start.is_set && left_s <= 0)
        fail(state, "DeadlineExceeded", "Job was active longer than specified deadline");
    else if (left_s > 0 && left_s < INT32_MAX)
        dv_plan_again(state->plan, (uint64_t)left_s * 1000);
}

static void look_for_indexes(struct dv_job_state *state)
{
    const struct dv_api_job_spec *spec = &state->job->spec;
    int64_t n = dv_job_indexes_n(&state->failed);

    if (spec->max_failed_indexes && n > *spec->max_failed_indexes)
        fail(state, "MaxFailedIndexesExceeded",
             "Job has exceeded the specified maximal number of failed indexes");
    else if (n > 0 && spec->completions &&
             n + dv_job_indexes_n(&state->succeeded) >= *spec->completions)
        fail(state, "FailedIndexes", "Job has failed indexes");
}

/* ---- successes ---- */

static bool is_met(const struct dv_job_state *state, const struct dv_api_success_policy_rule *rule)
{
    int64_t completions = state->job->spec.completions ? *state->job->spec.completions : 0;
    struct dv_job_indexes wanted;
    int64_t n;

    if (!rule->succeeded_indexes.p)
        return rule->succeeded_count &&
               dv_job_indexes_n(&state->succeeded) >= *rule->succeeded_count;
    wanted = dv_job_indexes_parse(rule->succeeded_indexes, completions, state->plan->arena);
    if (wanted.intervals.n == 0)
        return false;
    n = dv_job_indexes_n_shared(&wanted, &state->succeeded);
    return n == dv_job_indexes_n(&wanted) || (rule->succeeded_count && n >= *rule->succeeded_count);
}

static void look_for_criteria(struct dv_job_state *state)
{
    const struct dv_api_success_policy *policy = state->job->spec.success_policy;

    if (!policy || state->succeeded.intervals.n == 0)
        return;
    for (size_t i = 0; i < policy->n_rules; i++)
        if (is_met(state, &policy->rules[i])) {
            set_end(state, true, DV_STR("SuccessPolicy"),
                    dv_str_printf(state->plan->arena, "Matched rules at index %zu", i));
            return;
        }
}

static void look_for_completions(struct dv_job_state *state)
{
    const int64_t *completions = state->job->spec.completions;

    if (state->n_active == 0 &&
        (completions ? state->n_succeeded >= *completions : state->n_succeeded > 0))
        set_end(state, true, DV_STR("CompletionsReached"),
                DV_STR("Reached expected number of succeeded pods"));
}

void dv_job_decide_end(struct dv_job_state *state)
{
    static void (*const looks[])(struct dv_job_state * state) = {
        find_told,        look_for_policy,   look_for_limits,
        look_for_indexes, look_for_criteria, look_for_completions};

    for (size_t i = 0; i < DV_COUNT(looks) && !state->end.is_set; i++)
        if (looks[i] != look_for_indexes || state->has_index_limit)
            looks[i](state);
}

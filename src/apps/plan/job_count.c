/* job_count.c - the status of a Job: what has ended is noted, let go, and counted, in writes of
 * which each may be the last before a crash; then the rest. */
#include "apps/plan/apps_plan.h"
#include "apps/plan/job_state.h"
#include "base/arena.h"
#include "base/str.h"
#include "resource/resource.h"

/* ---- changes ---- */

struct status_change {
    struct dv_api_job_status status;
    const struct dv_api_job_status *had;
};

static bool set_status(const struct dv_action *action, void *value, struct dv_arena *arena)
{
    const struct status_change *change = action->with;
    struct dv_api_job *job = value;

    (void)arena;
    /* Counted from another status it would be counted twice, or not at all. */
    if (!dv_message_eq(&dv_message_job_status, &job->status, change->had))
        return false;
    job->status = change->status;
    return true;
}

static struct dv_action *change_status(struct dv_job_state *state,
                                       const struct dv_api_job_status *status)
{
    struct status_change *change = DV_NEW(state->plan->arena, struct status_change);
    struct dv_action *action =
        dv_plan_change(state->plan, state->owner->kind, &state->job->metadata);

    *change = (struct status_change){*status, &state->job->status};
    action->type = DV_ACTION_CHANGE_STATUS;
    action->change = set_status;
    action->with = change;
    return action;
}

static void add_condition(const struct dv_job_state *state, struct dv_api_job_status *status,
                          dv_str type, dv_str reason, dv_str message)
{
    size_t n = status->n_conditions;
    struct dv_api_job_condition *all =
        DV_NEW_ARRAY(state->plan->arena, struct dv_api_job_condition, n + 1);

    for (size_t i = 0; i < n; i++)
        all[i] = status->conditions[i];
    all[n] = (struct dv_api_job_condition){.type = type,
                                           .status = DV_STR("True"),
                                           .last_probe_time = state->input->now,
                                           .last_transition_time = state->input->now,
                                           .reason = reason,
                                           .message = message};
    status->conditions = all;
    status->n_conditions = n + 1;
}

static const int64_t *new_number(const struct dv_job_state *state, size_t value)
{
    int64_t *number = DV_NEW(state->plan->arena, int64_t);

    *number = (int64_t)value;
    return number;
}

/* What follows from the pods at once. */
static void set_numbers(const struct dv_job_state *state, struct dv_api_job_status *status)
{
    status->active = (int64_t)state->n_active;
    status->ready = new_number(state, state->n_ready);
    status->terminating = new_number(state, state->n_terminating);
    if (!status->start_time.is_set && !state->is_suspended)
        status->start_time = state->input->now;
}

/* ---- counting ---- */

/* Whether the pod may go: it has ended, and nothing has to be learned from it any more; or the Job
 * has. */
static bool may_go(const struct dv_job_state *state, const struct dv_job_pod *pod)
{
    return pod->is_tracked &&
           (state->job->metadata.deletion_timestamp.is_set || state->end.is_set ||
            pod->has_succeeded || (pod->has_failed && !pod->is_delayed));
}

/* The uids that are still waited for; the others have been let go, and are counted. */
static size_t keep_noted(const dv_str *uids, size_t n, const struct dv_map *tracked, dv_str *left)
{
    size_t n_left = 0;

    for (size_t i = 0; i < n; i++)
        if (dv_map_get(tracked, uids[i]))
            left[n_left++] = uids[i];
    return n_left;
}

static void count_noted(const struct dv_job_state *state, struct dv_api_job_status *status,
                        struct dv_api_uncounted_terminated_pods *notes)
{
    static const struct dv_api_uncounted_terminated_pods none;
    const struct dv_api_uncounted_terminated_pods *had =
        state->job->status.uncounted_terminated_pods ? state->job->status.uncounted_terminated_pods
                                                     : &none;
    struct dv_arena *arena = state->plan->arena;
    struct dv_map tracked;

    dv_map_init(&tracked);
    for (size_t i = 0; i < state->pods.n; i++)
        if (state->pods.v[i].is_tracked)
            (void)dv_map_set(&tracked, state->pods.v[i].pod->metadata.uid, &state->pods.v[i]);
    notes->succeeded = DV_NEW_ARRAY(arena, dv_str, had->n_succeeded + DV_JOB_BURST);
    notes->failed = DV_NEW_ARRAY(arena, dv_str, had->n_failed + DV_JOB_BURST);
    notes->n_succeeded = keep_noted(had->succeeded, had->n_succeeded, &tracked, notes->succeeded);
    notes->n_failed = keep_noted(had->failed, had->n_failed, &tracked, notes->failed);
    status->succeeded += (int64_t)(had->n_succeeded - notes->n_succeeded);
    status->failed += (int64_t)(had->n_failed - notes->n_failed);
    status->uncounted_terminated_pods = notes;
    dv_map_fini(&tracked);
}

/* Notes a pod that has ended. The index is note enough of one that has succeeded with one. */
static void note(const struct dv_job_state *state, const struct dv_job_pod *pod,
                 struct dv_api_uncounted_terminated_pods *notes)
{
    /* With a Job that fails, all fail that have not succeeded. */
    bool fails = pod->has_failed || (state->end.is_set && !state->end.is_success);

    if (pod->has_succeeded && !pod->is_noted_failed) {
        if (!state->is_indexed && !pod->is_noted_succeeded)
            notes->succeeded[notes->n_succeeded++] = pod->pod->metadata.uid;
    } else if (fails && !pod->is_noted_failed && pod->is_valid &&
               !(pod->has_failed && pod->verdict == DV_JOB_IGNORE)) {
        notes->failed[notes->n_failed++] = pod->pod->metadata.uid;
    }
}

static void set_indexes(const struct dv_job_state *state, struct dv_api_job_status *status)
{
    if (!state->is_indexed)
        return;
    status->succeeded = dv_job_indexes_n(&state->succeeded);
    status->completed_indexes = dv_job_indexes_print(&state->succeeded, state->plan->arena);
    if (state->has_index_limit)
        status->failed_indexes = dv_job_indexes_print(&state->failed, state->plan->arena);
}

static bool is_counted_so(const struct dv_api_job_status *a, const struct dv_api_job_status *b)
{
    static const struct dv_api_uncounted_terminated_pods none;
    const struct dv_api_uncounted_terminated_pods *x = a->uncounted_terminated_pods;
    const struct dv_api_uncounted_terminated_pods *y = b->uncounted_terminated_pods;

    return a->succeeded == b->succeeded && a->failed == b->failed &&
           dv_str_eq(a->completed_indexes, b->completed_indexes) &&
           dv_str_eq(a->failed_indexes, b->failed_indexes) && a->n_conditions == b->n_conditions &&
           dv_message_eq(&dv_message_uncounted_terminated_pods, x ? x : &none, y ? y : &none);
}

void dv_job_plan_count(struct dv_job_state *state)
{
    struct dv_api_uncounted_terminated_pods *notes =
        DV_NEW(state->plan->arena, struct dv_api_uncounted_terminated_pods);
    struct dv_api_job_status status = state->job->status;
    size_t n = 0;

    count_noted(state, &status, notes);
    for (size_t i = 0; i < state->pods.n && n < DV_JOB_BURST; i++)
        if (may_go(state, &state->pods.v[i])) {
            note(state, &state->pods.v[i], notes);
            n++;
        }
    set_indexes(state, &status);
    if (state->end.is_set && !state->end.is_told)
        add_condition(state, &status,
                      state->end.is_success ? DV_STR("SuccessCriteriaMet")
                                            : DV_STR("FailureTarget"),
                      state->end.reason, state->end.message);
    if (is_counted_so(&status, &state->job->status))
        return;
    set_numbers(state, &status);
    (void)change_status(state, &status);
}

void dv_job_plan_letting_go(struct dv_job_state *state)
{
    size_t n = 0;

    for (size_t i = 0; i < state->pods.n && n < DV_JOB_BURST; i++)
        if (may_go(state, &state->pods.v[i])) {
            dv_job_let_go(state->plan, state->pods.v[i].pod);
            n++;
        }
}

/* ---- the rest ---- */

static struct dv_api_job_condition *find_suspended(struct dv_api_job_status *status)
{
    for (size_t i = 0; i < status->n_conditions; i++)
        if (dv_str_eq(status->conditions[i].type, DV_STR("Suspended")))
            return &status->conditions[i];
    return NULL;
}

/* Says that the Job is suspended, or no longer. False: that is said already. */
static bool set_suspended(const struct dv_job_state *state, struct dv_api_job_status *status)
{
    struct dv_api_job_condition *had = find_suspended(status);
    bool was = had && dv_str_eq(had->status, DV_STR("True"));
    struct dv_api_job_condition *all;

    if (was == state->is_suspended)
        return false;
    if (!had) {
        add_condition(state, status, DV_STR("Suspended"), DV_STR("JobSuspended"),
                      DV_STR("Job suspended"));
    } else {
        all = DV_NEW_ARRAY(state->plan->arena, struct dv_api_job_condition, status->n_conditions);
        for (size_t i = 0; i < status->n_conditions; i++)
            all[i] = status->conditions[i];
        had = &all[had - status->conditions];
        status->conditions = all;
        had->status = state->is_suspended ? DV_STR("True") : DV_STR("False");
        had->reason = state->is_suspended ? DV_STR("JobSuspended") : DV_STR("JobResumed");
        had->message = state->is_suspended ? DV_STR("Job suspended") : DV_STR("Job resumed");
        had->last_probe_time = had->last_transition_time = state->input->now;
    }
    /* The deadline counts from the last time that the Job was resumed. */
    status->start_time = state->is_suspended ? (struct dv_time){0} : state->input->now;
    return true;
}

static void tell(struct dv_action *action, bool is_warning, dv_str reason, dv_str message)
{
    action->is_warning = is_warning;
    action->reason = reason;
    action->message = message;
}

static void plan_end(struct dv_job_state *state, struct dv_api_job_status *status)
{
    const struct dv_job_end *end = &state->end;
    const int64_t *completions = state->job->spec.completions;
    struct dv_action *action;

    add_condition(state, status, end->is_success ? DV_STR("Complete") : DV_STR("Failed"),
                  end->reason, end->message);
    if (end->is_success)
        status->completion_time = state->input->now;
    /* A Job that was suspended has no such time; one that has ended without any completion to reach
     * needs none. */
    if (!status->start_time.is_set && !(completions && *completions == 0))
        status->start_time = state->input->now;
    action = change_status(state, status);
    if (end->is_success)
        tell(action, false, DV_STR("Completed"), DV_STR("Job completed"));
    else
        tell(action, true, end->reason, end->message);
}

void dv_job_plan_status(struct dv_job_state *state)
{
    const struct dv_api_uncounted_terminated_pods *notes =
        state->job->status.uncounted_terminated_pods;
    size_t n_noted = notes ? notes->n_succeeded + notes->n_failed : 0;
    struct dv_api_job_status status = state->job->status;
    struct dv_action *action;

    set_numbers(state, &status);
    if (!status.uncounted_terminated_pods)
        status.uncounted_terminated_pods =
            DV_NEW(state->plan->arena, struct dv_api_uncounted_terminated_pods);
    if (state->end.is_set && n_noted == 0 && state->n_terminating == 0) {
        plan_end(state, &status);
        return;
    }
    if (!state->end.is_set && !state->job->metadata.deletion_timestamp.is_set &&
        set_suspended(state, &status)) {
        action = change_status(state, &status);
        tell(action, false, state->is_suspended ? DV_STR("Suspended") : DV_STR("Resumed"),
             state->is_suspended ? DV_STR("Job suspended") : DV_STR("Job resumed"));
        return;
    }
    if (!dv_message_eq(&dv_message_job_status, &status, &state->job->status))
        (void)change_status(state, &status);
}

/* validate_job_status.c - the status of a Job: a Job that has ended stays so, and each end has what
 * comes before it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "resource/batch/job_checks.h"
#include "resource/job_indexes.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"

static const struct dv_field_path status_path = {.kind = PATH_NAME, .name = "status"};

/* What is known of one of both statuses. */
struct side {
    const struct dv_api_job_status *status;
    bool is_complete;
    bool is_failed;
    bool is_finished;
    bool has_failure_target;
    bool has_criteria;
};

bool dv_job_has_condition(const struct dv_api_job_status *status, const char *type)
{
    for (size_t i = 0; i < status->n_conditions; i++)
        if (dv_str_eq(status->conditions[i].type, dv_str_from_c(type)))
            return dv_str_eq(status->conditions[i].status, DV_STR("True"));
    return false;
}

static struct side side_of(const struct dv_api_job_status *status)
{
    struct side side = {
        .status = status,
        .is_complete = dv_job_has_condition(status, "Complete"),
        .is_failed = dv_job_has_condition(status, "Failed"),
        .has_failure_target = dv_job_has_condition(status, "FailureTarget"),
        .has_criteria = dv_job_has_condition(status, "SuccessCriteriaMet"),
    };

    side.is_finished = side.is_complete || side.is_failed;
    return side;
}

static bool is_same_time(struct dv_time a, struct dv_time b)
{
    return a.is_set == b.is_set && (!a.is_set || a.seconds == b.seconds);
}

static bool is_same_number(const int64_t *a, const int64_t *b)
{
    return a && b ? *a == *b : a == b;
}

static size_t n_uncounted(const struct dv_api_job_status *status)
{
    const struct dv_api_uncounted_terminated_pods *pods = status->uncounted_terminated_pods;

    return pods ? pods->n_succeeded + pods->n_failed : 0;
}

static bool is_same_uncounted(const struct dv_api_job_status *a, const struct dv_api_job_status *b)
{
    static const struct dv_api_uncounted_terminated_pods none;
    const struct dv_api_uncounted_terminated_pods *x = a->uncounted_terminated_pods;
    const struct dv_api_uncounted_terminated_pods *y = b->uncounted_terminated_pods;

    return dv_message_eq(&dv_message_uncounted_terminated_pods, x ? x : &none, y ? y : &none);
}

static struct dv_bad_value bad_time(struct dv_time time, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    if (!time.is_set)
        return dv_bad_null();
    dv_buf_init(&buf, 64);
    dv_api_time_print(time, false, &buf);
    return dv_bad_str(dv_str_copy(dv_buf_str(&buf), arena));
}

static void refuse_conditions(struct dv_problems *problems, const char *text)
{
    dv_problem_add(problems, DV_PROBLEM_INVALID, &status_path, "conditions", dv_bad_none(), "%s",
                   text);
}

static void refuse_number(struct dv_problems *problems, const char *name, int64_t value,
                          const char *text)
{
    dv_problem_add(problems, DV_PROBLEM_INVALID, &status_path, name, dv_bad_i64(value), "%s", text);
}

/* -- Numbers -------------------------------------------------------------------------------- */

static void check_uncounted(struct dv_problems *problems,
                            const struct dv_api_uncounted_terminated_pods *pods)
{
    struct dv_field_path path = dv_path_name(&status_path, "uncountedTerminatedPods");
    struct dv_field_path succeeded = dv_path_name(&path, "succeeded");
    struct dv_field_path failed = dv_path_name(&path, "failed");

    for (size_t i = 0; i < pods->n_succeeded + pods->n_failed; i++) {
        bool is_failed = i >= pods->n_succeeded;
        size_t at = is_failed ? i - pods->n_succeeded : i;
        struct dv_field_path item = dv_path_index(is_failed ? &failed : &succeeded, at);

        if ((is_failed ? pods->failed : pods->succeeded)[at].n == 0)
            dv_problem_add(problems, DV_PROBLEM_INVALID, &item, NULL, dv_bad_str(DV_STR("")),
                           "must not be empty");
    }
    dv_check_unique(problems, &succeeded, NULL, pods->succeeded, pods->n_succeeded, sizeof(dv_str));
    dv_check_unique(problems, &failed, NULL, pods->failed, pods->n_failed, sizeof(dv_str));
}

static void check_numbers(struct dv_problems *problems, const struct dv_api_job_status *status)
{
    dv_check_not_negative(problems, &status_path, "active", status->active);
    dv_check_not_negative(problems, &status_path, "succeeded", status->succeeded);
    dv_check_not_negative(problems, &status_path, "failed", status->failed);
    if (status->ready)
        dv_check_not_negative(problems, &status_path, "ready", *status->ready);
    if (status->terminating)
        dv_check_not_negative(problems, &status_path, "terminating", *status->terminating);
    if (status->uncounted_terminated_pods)
        check_uncounted(problems, status->uncounted_terminated_pods);
}

/* -- Ends ----------------------------------------------------------------------------------- */

static void check_times(struct dv_problems *problems, const struct side *now,
                        const struct side *old)
{
    struct dv_time start = now->status->start_time;
    struct dv_time end = now->status->completion_time;
    bool is_end_new =
        now->is_complete != old->is_complete || !is_same_time(end, old->status->completion_time);
    bool is_time_new = !is_same_time(start, old->status->start_time) ||
                       !is_same_time(end, old->status->completion_time);

    if (is_end_new && end.is_set && !now->is_complete)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &status_path, "completionTime",
                       bad_time(end, problems->arena),
                       "cannot set completionTime when there is no Complete=True condition");
    if (is_end_new && !end.is_set && now->is_complete)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &status_path, "completionTime", dv_bad_none(),
                       "completionTime is required for Complete jobs");
    if (is_time_new && start.is_set && end.is_set && end.seconds < start.seconds)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &status_path, "completionTime",
                       bad_time(end, problems->arena), "must be equal to or after `startTime`");
}

static void check_conditions(struct dv_problems *problems, const struct side *now,
                             const struct side *old)
{
    if ((now->is_complete != old->is_complete || now->is_failed != old->is_failed) &&
        now->is_complete && now->is_failed)
        refuse_conditions(problems, "cannot set Complete=True and Failed=true conditions");
    if ((now->is_complete != old->is_complete ||
         now->has_failure_target != old->has_failure_target) &&
        now->is_complete && now->has_failure_target)
        refuse_conditions(problems, "cannot set Complete=True and FailureTarget=true conditions");
}

static void check_before_ends(struct dv_problems *problems, const struct side *now,
                              const struct side *old)
{
    bool is_failure_new = now->is_failed != old->is_failed ||
                          !dv_str_eq(now->status->failed_indexes, old->status->failed_indexes);
    bool is_success_new =
        now->is_complete != old->is_complete || now->has_criteria != old->has_criteria;

    if (is_failure_new && now->is_failed && !now->has_failure_target)
        refuse_conditions(problems, "cannot set Failed=True condition without the "
                                    "FailureTarget=true condition");
    if (is_success_new && now->is_complete && !now->has_criteria)
        refuse_conditions(problems, "cannot set Complete=True condition without the "
                                    "SuccessCriteriaMet=true condition");
}

static void check_finished(struct dv_problems *problems, const struct dv_api_job *job,
                           const struct side *now, const struct side *old)
{
    const struct dv_api_job_status *status = now->status;
    bool is_new = now->is_finished != old->is_finished;
    /* Such a Job ends without having been started. */
    bool is_never_started = job->spec.suspend && *job->spec.suspend && job->spec.completions &&
                            *job->spec.completions == 0;

    if (!now->is_finished)
        return;
    if ((is_new || status->active != old->status->active) && status->active > 0)
        refuse_number(problems, "active", status->active, "active>0 is invalid for finished job");
    if ((is_new || !is_same_time(status->start_time, old->status->start_time)) &&
        !status->start_time.is_set && !is_never_started)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &status_path, "startTime", dv_bad_none(),
                       "startTime is required for finished job");
    if ((is_new || !is_same_uncounted(status, old->status)) && n_uncounted(status) > 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &status_path, "uncountedTerminatedPods",
                       dv_bad_message(&dv_message_uncounted_terminated_pods,
                                      status->uncounted_terminated_pods, problems->arena),
                       "must be empty for finished job");
}

/* -- Indexes -------------------------------------------------------------------------------- */

static void check_indexes(struct dv_problems *problems, const char *name, dv_str text,
                          int64_t completions)
{
    int64_t n;
    const char *fault = dv_job_indexes_fault(text, completions, problems->arena, &n);

    if (fault)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &status_path, name, dv_bad_str(text),
                       "error parsing %s: %s", name, fault);
}

/* Checks that no index has both failed and been completed. */
static void check_overlap(struct dv_problems *problems, const struct dv_api_job_status *status,
                          int64_t completions)
{
    struct dv_job_indexes completed =
        dv_job_indexes_parse(status->completed_indexes, completions, problems->arena);
    struct dv_job_indexes failed =
        dv_job_indexes_parse(status->failed_indexes, completions, problems->arena);
    int64_t shared = -1;

    for (size_t i = 0, j = 0; shared < 0 && i < completed.intervals.n && j < failed.intervals.n;) {
        const struct dv_job_interval *x = &completed.intervals.v[i];
        const struct dv_job_interval *y = &failed.intervals.v[j];

        if (x->first <= y->last && y->first <= x->last)
            shared = x->first > y->first ? x->first : y->first;
        else if (x->last < y->first)
            i++;
        else
            j++;
    }
    if (shared >= 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &status_path, "failedIndexes",
                       dv_bad_str(status->failed_indexes),
                       "failedIndexes and completedIndexes overlap at index: %lld",
                       (long long)shared);
}

static void check_all_indexes(struct dv_problems *problems, const struct dv_api_job *job,
                              const struct dv_api_job_status *old)
{
    const struct dv_api_job_status *status = &job->status;
    const int64_t *completions = job->spec.completions;
    bool is_completed_new = !dv_str_eq(status->completed_indexes, old->completed_indexes);
    bool is_failed_new = !dv_str_eq(status->failed_indexes, old->failed_indexes) ||
                         (status->failed_indexes.p == NULL) != (old->failed_indexes.p == NULL);

    if (is_completed_new && completions)
        check_indexes(problems, "completedIndexes", status->completed_indexes, *completions);
    if (is_failed_new && completions && job->spec.backoff_limit_per_index)
        check_indexes(problems, "failedIndexes", status->failed_indexes, *completions);
    if (is_completed_new && status->completed_indexes.n > 0 &&
        !dv_str_eq(job->spec.completion_mode, DV_STR("Indexed")))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &status_path, "completedIndexes",
                       dv_bad_str(status->completed_indexes),
                       "cannot set non-empty completedIndexes when non-indexed completion mode");
    if (is_failed_new && !job->spec.backoff_limit_per_index && status->failed_indexes.p)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &status_path, "failedIndexes",
                       dv_bad_str(status->failed_indexes),
                       "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
    if ((is_failed_new || is_completed_new) && completions)
        check_overlap(problems, status, *completions);
}

/* -- What follows what ---------------------------------------------------------------------- */

static void check_pods(struct dv_problems *problems, const struct side *now, const struct side *old)
{
    const struct dv_api_job_status *status = now->status;
    const struct dv_api_job_status *had = old->status;

    if ((now->is_finished != old->is_finished ||
         !is_same_number(status->terminating, had->terminating)) &&
        status->terminating && *status->terminating > 0 && now->is_finished)
        refuse_number(problems, "terminating", *status->terminating,
                      "terminating>0 is invalid for finished job");
    if ((!is_same_number(status->ready, had->ready) || status->active != had->active) &&
        status->ready && *status->ready > status->active)
        refuse_number(problems, "ready", *status->ready, "cannot set more ready pods than active");
}

static void check_criteria(struct dv_problems *problems, const struct dv_api_job *job,
                           const struct side *now)
{
    if (now->has_criteria && now->is_failed)
        refuse_conditions(problems,
                          "cannot set SuccessCriteriaMet=True and Failed=true conditions");
    if (now->has_criteria && now->has_failure_target)
        refuse_conditions(problems,
                          "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    if (job->spec.success_policy && !now->has_criteria && now->is_complete)
        refuse_conditions(problems, "cannot set Complete=True for Job with SuccessPolicy unless "
                                    "SuccessCriteriaMet=True");
}

static void check_order(struct dv_problems *problems, const struct side *now,
                        const struct side *old)
{
    if (old->is_failed && !now->is_failed)
        refuse_conditions(problems, "cannot disable the terminal Failed=True condition");
    if (old->is_complete && !now->is_complete)
        refuse_conditions(problems, "cannot disable the terminal Complete=True condition");
    if (old->has_failure_target && !now->has_failure_target)
        refuse_conditions(problems, "cannot disable the terminal FailureTarget=True condition");
}

static bool is_resuming(const struct dv_api_job_status *now, const struct dv_api_job_status *old)
{
    for (size_t i = 0; i < now->n_conditions; i++)
        if (dv_str_eq(now->conditions[i].type, DV_STR("Suspended")))
            return dv_job_has_condition(old, "Suspended") &&
                   dv_str_eq(now->conditions[i].status, DV_STR("False"));
    return false;
}

static void check_counters(struct dv_problems *problems, const struct dv_api_job *job,
                           const struct dv_api_job_status *old)
{
    const struct dv_api_job_status *status = &job->status;
    /* A Job with as many completions as pods at a time may be made smaller. */
    bool is_elastic = dv_str_eq(job->spec.completion_mode, DV_STR("Indexed")) &&
                      is_same_number(job->spec.completions, job->spec.parallelism);

    if (status->failed < old->failed)
        refuse_number(problems, "failed", status->failed, "cannot decrease the failed counter");
    if (!is_elastic && status->succeeded < old->succeeded)
        refuse_number(problems, "succeeded", status->succeeded,
                      "cannot decrease the succeeded counter");
    if (status->completion_time.is_set && old->completion_time.is_set &&
        !is_same_time(status->completion_time, old->completion_time))
        dv_immutable(problems, &status_path, "completionTime",
                     bad_time(status->completion_time, problems->arena));
    if (old->start_time.is_set && !is_same_time(status->start_time, old->start_time) &&
        !(job->spec.suspend && *job->spec.suspend) && !is_resuming(status, old))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &status_path, "startTime",
                       bad_time(status->start_time, problems->arena),
                       "field is immutable for unsuspended job once set");
}

void dv_check_job_status(struct dv_problems *problems, const struct dv_api_job *job,
                         const struct dv_api_job *old_job)
{
    struct side now = side_of(&job->status);
    struct side old = side_of(&old_job->status);

    check_numbers(problems, &job->status);
    check_conditions(problems, &now, &old);
    check_times(problems, &now, &old);
    check_before_ends(problems, &now, &old);
    check_finished(problems, job, &now, &old);
    check_all_indexes(problems, job, &old_job->status);
    check_pods(problems, &now, &old);
    check_criteria(problems, job, &now);
    check_order(problems, &now, &old);
    check_counters(problems, job, &old_job->status);
    if (old.has_criteria && !now.has_criteria)
        refuse_conditions(problems, "cannot disable the SuccessCriteriaMet=True condition");
    if (old.is_complete && !old.has_criteria && now.has_criteria)
        refuse_conditions(problems, "cannot set SuccessCriteriaMet=True for Job already has "
                                    "Complete=true conditions");
}

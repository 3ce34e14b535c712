/* job_plan.h - Jobs: pods run until enough of them have succeeded, or too many have failed.
 *
 * Each pod that has ended is counted once, whatever happens in between. A finalizer keeps it until
 * its uid is noted in the status; then the finalizer is taken off; and then the uid is moved from
 * the notes into the count. Each step is one write, and from what is stored it is clear which one
 * is next. */
#ifndef DV_APPS_JOB_PLAN_H
#define DV_APPS_JOB_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "resource/values.h"

struct dv_api_job;
struct dv_api_job_status;
struct dv_api_pod;
struct dv_api_pod_failure_policy;
struct dv_arena;
struct dv_plan;

/* How many pods are made, deleted or counted before it is looked again. */
#define DV_JOB_BURST 500u

/* The failures in a row, of pods that have been let go or of all: a success ends the row. */
struct dv_job_failures {
    int64_t n;
    struct dv_time last;    /* when the last pod failed */
    struct dv_time success; /* when the last pod succeeded */
};

/* What is there; all of it outlives the plan. */
struct dv_job_input {
    const struct dv_api_job *job;
    const struct dv_api_pod *const *pods; /* those that it owns, and those that are nobody's */
    size_t n_pods;
    struct dv_job_failures failures; /* of pods that have been let go */
    struct dv_time now;
    bool has_failed; /* what was planned could not be done: nothing but the status is planned */
};

void dv_job_plan(const struct dv_job_input *input, struct dv_plan *plan);
/* Plans that a pod loses the finalizer when nobody counts it any more. `job` is the one with the
 * name that the pod's owner has; NULL: there is none. */
struct dv_tracked_input {
    const struct dv_api_pod *pod;
    const struct dv_api_job *job;
};

void dv_tracked_plan(const struct dv_tracked_input *input, struct dv_plan *plan);

/* ---- parts ---- */

bool dv_job_is_finished(const struct dv_api_job *job);

/* When a pod has ended, as far as it can be known. */
struct dv_time dv_job_pod_end(const struct dv_api_pod *pod);
/* Notes the end of a pod. */
void dv_job_failures_note(struct dv_job_failures *failures, bool is_success, struct dv_time end);
/* How long no pod is made after so many failures in a row, the last one then. */
uint64_t dv_job_backoff_ms(const struct dv_job_failures *failures, struct dv_time now);

/* What a policy says about a pod that has failed. */
enum dv_job_verdict {
    DV_JOB_COUNT,
    DV_JOB_IGNORE,
    DV_JOB_FAIL_INDEX,
    DV_JOB_FAIL,
};

/* `policy` may be NULL. Sets *message, in the arena, for DV_JOB_FAIL. */
enum dv_job_verdict dv_job_judge(const struct dv_api_pod_failure_policy *policy,
                                 const struct dv_api_pod *pod, struct dv_arena *arena,
                                 dv_str *message);

#endif

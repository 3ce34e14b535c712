/* job_state.h - a Job while a plan is made: its pods, what they come to, and whether that is its
 * end. */
#ifndef DV_APPS_JOB_STATE_H
#define DV_APPS_JOB_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/plan/job_plan.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/job_indexes.h"

struct dv_api_pod_template_spec;
struct dv_plan;
struct dv_plan_owner;

/* On pods of Indexed Jobs, as label and annotation. */
#define DV_JOB_INDEX_LABEL "batch.kubernetes.io/job-completion-index"
/* How often pods of an index had failed before this one. */
#define DV_JOB_FAILURES_ANNOTATION "batch.kubernetes.io/job-index-failure-count"
#define DV_JOB_IGNORED_ANNOTATION "batch.kubernetes.io/job-index-ignored-failure-count"
#define DV_JOB_NO_INDEX (-1)

struct dv_job_pod {
    const struct dv_api_pod *pod;
    int64_t index;
    bool is_tracked;     /* it has the finalizer: it has not been counted */
    bool is_valid;       /* its index, if the Job has such, is one that is wanted */
    bool is_active;      /* neither ended nor to end */
    bool is_terminating; /* to end, and has not */
    bool has_succeeded;
    bool has_failed;             /* or counts as such, because it is being deleted */
    enum dv_job_verdict verdict; /* of one that has failed */
    bool is_noted_succeeded;     /* among those that are to be counted */
    bool is_noted_failed;
    bool is_delayed; /* it stays until the next pod of its index knows how often it had failed */
};

/* How the Job ends. */
struct dv_job_end {
    bool is_set;
    bool is_success;
    bool is_told; /* the status has the condition that comes before the end */
    dv_str reason;
    dv_str message;
};

struct dv_job_state {
    const struct dv_job_input *input;
    const struct dv_api_job *job;
    const struct dv_plan_owner *owner;
    struct dv_plan *plan;
    bool is_indexed;
    bool has_index_limit; /* failures count by index */
    bool replaces_failed; /* a pod is replaced when it has failed, not when it is to end */
    bool is_suspended;
    DV_VEC(struct dv_job_pod) pods; /* its own; by their indexes, where it has such */
    struct dv_map noted;            /* uids in the status' notes; to themselves */
    size_t n_active;
    size_t n_ready;
    size_t n_terminating;
    int64_t n_succeeded; /* also those that are yet to be counted */
    int64_t n_failed;
    struct dv_job_indexes succeeded_before; /* as the status has them */
    struct dv_job_indexes succeeded;
    struct dv_job_indexes failed;
    struct dv_job_end end;
};

/* job_pods.c: finds the Job's own pods, and what they come to. */
void dv_job_find_pods(struct dv_job_state *state);
void dv_job_fini_pods(struct dv_job_state *state);
/* The failures that the next pod has to wait for. */
struct dv_job_failures dv_job_failures_of(const struct dv_job_state *state);
int64_t dv_job_annotation(const struct dv_api_pod *pod, dv_str key);

/* job_end.c: decides whether the Job is at its end. */
void dv_job_decide_end(struct dv_job_state *state);

/* job_count.c: plans that the status counts what has ended, and that pods are let go which have
 * been counted. */
void dv_job_plan_count(struct dv_job_state *state);
void dv_job_plan_letting_go(struct dv_job_state *state);
/* Plans the rest of the status. */
void dv_job_plan_status(struct dv_job_state *state);

/* job_manage.c: plans that there are as many pods as are wanted. */
void dv_job_plan_pods(struct dv_job_state *state);
void dv_job_delete_active(struct dv_job_state *state);
/* Plans that the pod loses the finalizer. */
void dv_job_let_go(struct dv_plan *plan, const struct dv_api_pod *pod);

#endif

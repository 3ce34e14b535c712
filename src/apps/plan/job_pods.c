/* job_pods.c - the pods of a Job, and what they come to together. */
#include <stdlib.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/job_state.h"
#include "apps/plan/pod_state.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/resource.h"

int64_t dv_job_annotation(const struct dv_api_pod *pod, dv_str key)
{
    const struct dv_str_entry *entry =
        dv_entry_find(pod->metadata.annotations, pod->metadata.n_annotations, key);
    uint64_t number;

    if (!entry || !dv_str_to_u64(entry->value, &number) || number > INT32_MAX)
        return -1;
    return (int64_t)number;
}

static int64_t completions_of(const struct dv_job_state *state)
{
    return state->job->spec.completions ? *state->job->spec.completions : 0;
}

/* ---- pods ---- */

static void note_uids(struct dv_job_state *state, dv_str *uids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)dv_map_set(&state->noted, uids[i], &uids[i]);
}

static bool is_among(const struct dv_map *noted, dv_str uid, const dv_str *uids, size_t n)
{
    const dv_str *found = dv_map_get(noted, uid);

    return found && found >= uids && found < uids + n;
}

static struct dv_job_pod read_pod(const struct dv_job_state *state, const struct dv_api_pod *pod)
{
    const struct dv_api_uncounted_terminated_pods *notes =
        state->job->status.uncounted_terminated_pods;
    bool is_deleted = pod->metadata.deletion_timestamp.is_set;
    dv_str message;
    struct dv_job_pod read = {
        .pod = pod,
        .index = state->is_indexed ? dv_job_annotation(pod, DV_STR(DV_JOB_INDEX_LABEL))
                                   : DV_JOB_NO_INDEX,
        .is_tracked = dv_meta_has_finalizer(&pod->metadata, DV_STR(DV_JOB_FINALIZER)),
        .is_active = dv_pod_is_active(pod),
        .is_terminating = is_deleted && !dv_pod_is_terminal(pod),
        .has_succeeded = dv_str_eq(pod->status.phase, DV_STR("Succeeded")),
    };

    read.is_valid = !state->is_indexed || (read.index >= 0 && read.index < completions_of(state));
    read.has_failed = dv_str_eq(pod->status.phase, DV_STR("Failed")) ||
                      (is_deleted && !read.has_succeeded && !state->replaces_failed);
    if (read.has_failed)
        read.verdict =
            dv_job_judge(state->job->spec.pod_failure_policy, pod, state->plan->arena, &message);
    if (notes) {
        read.is_noted_succeeded =
            is_among(&state->noted, pod->metadata.uid, notes->succeeded, notes->n_succeeded);
        read.is_noted_failed =
            is_among(&state->noted, pod->metadata.uid, notes->failed, notes->n_failed);
    }
    return read;
}

static int compare(const void *a, const void *b)
{
    const struct dv_job_pod *x = a;
    const struct dv_job_pod *y = b;

    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return dv_str_cmp(x->pod->metadata.name, y->pod->metadata.name);
}

/* ---- indexes ---- */

static bool is_index_failed(const struct dv_job_state *state, const struct dv_job_pod *pod)
{
    int64_t n = dv_job_annotation(pod->pod, DV_STR(DV_JOB_FAILURES_ANNOTATION));

    if (!pod->has_failed || pod->verdict == DV_JOB_IGNORE)
        return false;
    return pod->verdict == DV_JOB_FAIL_INDEX ||
           (n < 0 ? 0 : n) >= *state->job->spec.backoff_limit_per_index;
}

/* The indexes that have come to their ends: those in the status, and those of pods that are not
 * counted yet. */
static void find_indexes(struct dv_job_state *state)
{
    const struct dv_api_job_status *status = &state->job->status;
    struct dv_arena *arena = state->plan->arena;
    int64_t completions = completions_of(state);
    struct dv_job_indexes failed_before =
        dv_job_indexes_parse(status->failed_indexes, completions, arena);
    struct dv_job_indexes succeeded = {0};
    struct dv_job_indexes failed = {0};

    for (size_t i = 0; i < state->pods.n; i++) {
        const struct dv_job_pod *pod = &state->pods.v[i];

        if (!pod->is_tracked || !pod->is_valid)
            continue;
        if (pod->has_succeeded)
            dv_job_indexes_append(&succeeded, pod->index, arena);
        else if (state->has_index_limit && is_index_failed(state, pod))
            dv_job_indexes_append(&failed, pod->index, arena);
    }
    state->succeeded_before = dv_job_indexes_parse(status->completed_indexes, completions, arena);
    state->succeeded = dv_job_indexes_union(&state->succeeded_before, &succeeded, arena);
    state->failed = dv_job_indexes_union(&failed_before, &failed, arena);
    state->n_succeeded = dv_job_indexes_n(&state->succeeded);
}

static bool is_earlier(struct dv_time a, struct dv_time b)
{
    return b.is_set && (!a.is_set || a.seconds < b.seconds);
}

static int64_t failures_of(const struct dv_job_pod *pod)
{
    int64_t counted = dv_job_annotation(pod->pod, DV_STR(DV_JOB_FAILURES_ANNOTATION));
    int64_t ignored = dv_job_annotation(pod->pod, DV_STR(DV_JOB_IGNORED_ANNOTATION));

    return (counted < 0 ? 0 : counted) + (ignored < 0 ? 0 : ignored);
}

/* Of the pods of one index: the last that has failed stays, unless another one runs or the index is
 * over, until its successor has been made with the number of failures so far. */
static void delay_one(const struct dv_job_state *state, struct dv_job_pod *pods, size_t n)
{
    struct dv_job_pod *last = NULL;

    if (!pods[0].is_valid || dv_job_indexes_has(&state->succeeded, pods[0].index) ||
        dv_job_indexes_has(&state->failed, pods[0].index))
        return;
    for (size_t i = 0; i < n; i++)
        if (pods[i].is_active)
            return;
    for (size_t i = 0; i < n; i++)
        if (pods[i].is_tracked && pods[i].has_failed &&
            (!last || (failures_of(last) <= failures_of(&pods[i]) &&
                       !is_earlier(dv_job_pod_end(pods[i].pod), dv_job_pod_end(last->pod)))))
            last = &pods[i];
    if (last)
        last->is_delayed = true;
}

static void delay_pods(struct dv_job_state *state)
{
    for (size_t from = 0, to; from < state->pods.n; from = to) {
        for (to = from + 1;
             to < state->pods.n && state->pods.v[to].index == state->pods.v[from].index; to++)
            ;
        delay_one(state, &state->pods.v[from], to - from);
    }
}

/* ---- all of them ---- */

static void count(struct dv_job_state *state)
{
    const struct dv_api_uncounted_terminated_pods *notes =
        state->job->status.uncounted_terminated_pods;

    state->n_succeeded = state->job->status.succeeded + (int64_t)(notes ? notes->n_succeeded : 0);
    state->n_failed = state->job->status.failed + (int64_t)(notes ? notes->n_failed : 0);
    for (size_t i = 0; i < state->pods.n; i++) {
        const struct dv_job_pod *pod = &state->pods.v[i];
        bool is_new = pod->is_tracked && pod->is_valid;

        state->n_active += pod->is_active;
        state->n_ready += pod->is_active && dv_pod_is_ready(pod->pod, NULL);
        state->n_terminating += pod->is_terminating;
        state->n_succeeded += is_new && pod->has_succeeded && !pod->is_noted_succeeded;
        state->n_failed +=
            is_new && pod->has_failed && !pod->is_noted_failed && pod->verdict != DV_JOB_IGNORE;
    }
}

void dv_job_find_pods(struct dv_job_state *state)
{
    const struct dv_job_input *input = state->input;
    const struct dv_api_uncounted_terminated_pods *notes =
        state->job->status.uncounted_terminated_pods;

    dv_map_init(&state->noted);
    if (notes) {
        note_uids(state, notes->succeeded, notes->n_succeeded);
        note_uids(state, notes->failed, notes->n_failed);
    }
    for (size_t i = 0; i < input->n_pods; i++)
        if (dv_plan_ownership(state->owner, &input->pods[i]->metadata) == DV_OWNER_HAS)
            *dv_vec_add_in(&state->pods, state->plan->arena) = read_pod(state, input->pods[i]);
    count(state);
    if (!state->is_indexed)
        return;
    if (state->pods.n > 0)
        qsort(state->pods.v, state->pods.n, sizeof(state->pods.v[0]), compare);
    find_indexes(state);
    if (state->has_index_limit)
        delay_pods(state);
}

void dv_job_fini_pods(struct dv_job_state *state)
{
    dv_map_fini(&state->noted);
}

/* ---- failures in a row ---- */

struct dv_job_failures dv_job_failures_of(const struct dv_job_state *state)
{
    struct dv_job_failures failures = state->input->failures;

    for (size_t i = 0; i < state->pods.n; i++) {
        const struct dv_job_pod *pod = &state->pods.v[i];

        if (pod->is_tracked && pod->is_valid && pod->has_succeeded)
            dv_job_failures_note(&failures, true, dv_job_pod_end(pod->pod));
    }
    for (size_t i = 0; i < state->pods.n; i++) {
        const struct dv_job_pod *pod = &state->pods.v[i];

        if (pod->is_tracked && pod->is_valid && pod->has_failed)
            dv_job_failures_note(&failures, false, dv_job_pod_end(pod->pod));
    }
    return failures;
}

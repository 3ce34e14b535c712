/* default_apps.c - the defaults of what makes pods. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "resource/prepare/default.h"
#include "resource/resource.h"

/* How many old revisions are kept, so that one can be gone back to. */
static const int64_t history = 10;

static const struct dv_int_or_str none = {.number = 0};
static const struct dv_int_or_str one = {.number = 1};

static const struct dv_int_or_str quarter = {.text = DV_STR_INIT("25%"), .is_text = true};
static const int64_t one_replica = 1;
/* How long a roll-out may make no progress until it is said to have failed. */
static const int64_t deadline_s = 600;

void dv_default_daemon_set(struct dv_api_daemon_set *set, struct dv_arena *arena)
{
    struct dv_api_daemon_set_update_strategy *strategy = &set->spec.update_strategy;

    dv_default_pod_spec(&set->spec.template.spec, arena);
    dv_default_str(&strategy->type, DV_STR("RollingUpdate"));
    if (dv_str_eq(strategy->type, DV_STR("RollingUpdate")) && !strategy->rolling_update)
        strategy->rolling_update = DV_NEW(arena, struct dv_api_rolling_update_daemon_set);
    if (strategy->rolling_update && !strategy->rolling_update->max_unavailable)
        strategy->rolling_update->max_unavailable = &one;
    if (strategy->rolling_update && !strategy->rolling_update->max_surge)
        strategy->rolling_update->max_surge = &none;
    if (!set->spec.revision_history_limit)
        set->spec.revision_history_limit = &history;
}

void dv_default_deployment(struct dv_api_deployment *deployment, struct dv_arena *arena)
{
    struct dv_api_deployment_spec *spec = &deployment->spec;
    struct dv_api_deployment_strategy *strategy = &spec->strategy;

    dv_default_pod_spec(&spec->template.spec, arena);
    if (!spec->replicas)
        spec->replicas = &one_replica;
    dv_default_str(&strategy->type, DV_STR("RollingUpdate"));
    if (dv_str_eq(strategy->type, DV_STR("RollingUpdate"))) {
        if (!strategy->rolling_update)
            strategy->rolling_update = DV_NEW(arena, struct dv_api_rolling_update_deployment);
        if (!strategy->rolling_update->max_unavailable)
            strategy->rolling_update->max_unavailable = &quarter;
        if (!strategy->rolling_update->max_surge)
            strategy->rolling_update->max_surge = &quarter;
    }
    if (!spec->revision_history_limit)
        spec->revision_history_limit = &history;
    if (!spec->progress_deadline_seconds)
        spec->progress_deadline_seconds = &deadline_s;
}

void dv_default_replica_set(struct dv_api_replica_set *set, struct dv_arena *arena)
{
    dv_default_pod_spec(&set->spec.template.spec, arena);
    if (!set->spec.replicas)
        set->spec.replicas = &one_replica;
}

/* ---- Jobs ---- */

static const int64_t six = 6;
/* With a limit for each index there is none for all of them together. */
static const int64_t no_limit = INT32_MAX;
static const bool no = false;

static void default_patterns(struct dv_api_pod_failure_policy *policy)
{
    for (size_t i = 0; i < policy->n_rules; i++)
        for (size_t j = 0; j < policy->rules[i].n_on_pod_conditions; j++)
            dv_default_str(&policy->rules[i].on_pod_conditions[j].status, DV_STR("True"));
}

void dv_default_job(struct dv_api_job *job, struct dv_arena *arena)
{
    struct dv_api_job_spec *spec = &job->spec;
    struct dv_api_object_meta *template = &spec->template.metadata;

    dv_default_pod_spec(&spec->template.spec, arena);
    if (!spec->completions && !spec->parallelism)
        spec->completions = &one_replica;
    if (!spec->parallelism)
        spec->parallelism = &one_replica;
    if (!spec->backoff_limit)
        spec->backoff_limit = spec->backoff_limit_per_index ? &no_limit : &six;
    if (job->metadata.n_labels == 0) {
        job->metadata.labels = template->labels;
        job->metadata.n_labels = template->n_labels;
    }
    if (!spec->completion_mode.p)
        spec->completion_mode = DV_STR("NonIndexed");
    if (!spec->suspend)
        spec->suspend = &no;
    if (!spec->pod_replacement_policy.p)
        spec->pod_replacement_policy =
            spec->pod_failure_policy ? DV_STR("Failed") : DV_STR("TerminatingOrFailed");
    if (!spec->manual_selector)
        spec->manual_selector = &no;
    if (spec->pod_failure_policy)
        default_patterns(spec->pod_failure_policy);
}

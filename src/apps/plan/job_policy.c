/* job_policy.c - what single pods mean for a Job: when they ended, how long the next one waits, and
 * what a policy says about a failure. */
#include "apps/plan/job_plan.h"

#include <string.h>

#include "base/str.h"
#include "resource/resource.h"

/* As in the reference. */
#define FIRST_PAUSE_S 10
#define LONGEST_PAUSE_S 600

/* ---- times ---- */

static bool is_sidecar(const struct dv_api_pod_spec *spec, dv_str name)
{
    for (size_t i = 0; i < spec->n_init_containers; i++)
        if (dv_str_eq(spec->init_containers[i].name, name))
            return dv_str_eq(spec->init_containers[i].restart_policy, DV_STR("Always"));
    return false;
}

/* When the last container ended. Unset: one has not, or there is none. */
static struct dv_time end_of_containers(const struct dv_api_pod *pod)
{
    const struct dv_api_pod_status *status = &pod->status;
    size_t n = status->n_container_statuses + status->n_init_container_statuses;
    struct dv_time end = {0};

    for (size_t i = 0; i < n; i++) {
        bool is_init = i >= status->n_container_statuses;
        const struct dv_api_container_status *of =
            is_init ? &status->init_container_statuses[i - status->n_container_statuses]
                    : &status->container_statuses[i];

        if (is_init && !is_sidecar(&pod->spec, of->name))
            continue;
        if (!of->state.terminated || !of->state.terminated->finished_at.is_set)
            return (struct dv_time){0};
        if (!end.is_set || end.seconds < of->state.terminated->finished_at.seconds)
            end = of->state.terminated->finished_at;
    }
    return end;
}

struct dv_time dv_job_pod_end(const struct dv_api_pod *pod)
{
    struct dv_time end = end_of_containers(pod);
    const int64_t *grace = pod->metadata.deletion_grace_period_seconds;

    if (end.is_set)
        return end;
    for (size_t i = 0; i < pod->status.n_conditions; i++) {
        const struct dv_api_pod_condition *condition = &pod->status.conditions[i];

        if (dv_str_eq(condition->type, DV_STR("Ready")) &&
            dv_str_eq(condition->status, DV_STR("False")) && condition->last_transition_time.is_set)
            return condition->last_transition_time;
    }
    if (pod->metadata.deletion_timestamp.is_set)
        return dv_api_time_add(pod->metadata.deletion_timestamp, grace ? -*grace : 0);
    return pod->metadata.creation_timestamp;
}

void dv_job_failures_note(struct dv_job_failures *failures, bool is_success, struct dv_time end)
{
    struct dv_time *latest = is_success ? &failures->success : &failures->last;

    if (!is_success && failures->success.is_set && end.seconds <= failures->success.seconds)
        return; /* a success came after it */
    if (!latest->is_set || latest->seconds < end.seconds)
        *latest = end;
    if (!is_success)
        failures->n++;
    else if (failures->success.seconds >= failures->last.seconds)
        failures->n = 0;
}

uint64_t dv_job_backoff_ms(const struct dv_job_failures *failures, struct dv_time now)
{
    int64_t pause_s = FIRST_PAUSE_S;
    int64_t left_s;

    if (failures->n <= 0 || !failures->last.is_set)
        return 0;
    for (int64_t i = 1; i < failures->n && pause_s < LONGEST_PAUSE_S; i++)
        pause_s *= 2;
    if (pause_s > LONGEST_PAUSE_S)
        pause_s = LONGEST_PAUSE_S;
    left_s = failures->last.seconds + pause_s - now.seconds;
    if (left_s > pause_s)
        left_s = pause_s; /* the failure is said to be in the future: clocks differ */
    return left_s > 0 ? (uint64_t)left_s * 1000 : 0;
}

/* ---- failures ---- */

static bool has_value(const struct dv_api_pod_failure_policy_on_exit_codes_requirement *codes,
                      int64_t value)
{
    for (size_t i = 0; i < codes->n_values; i++)
        if (codes->values[i] == value)
            return true;
    return false;
}

static const struct dv_api_container_status *
find_code(const struct dv_api_container_status *statuses, size_t n,
          const struct dv_api_pod_failure_policy_on_exit_codes_requirement *codes)
{
    for (size_t i = 0; i < n; i++) {
        const struct dv_api_container_state_terminated *end = statuses[i].state.terminated;

        if (!end || end->exit_code == 0 ||
            (codes->container_name.p && !dv_str_eq(codes->container_name, statuses[i].name)))
            continue;
        if (has_value(codes, end->exit_code) == dv_str_eq(codes->operator, DV_STR("In")))
            return &statuses[i];
    }
    return NULL;
}

static const struct dv_api_pod_condition *
find_condition(const struct dv_api_pod *pod, const struct dv_api_pod_failure_policy_rule *rule)
{
    for (size_t i = 0; i < pod->status.n_conditions; i++)
        for (size_t j = 0; j < rule->n_on_pod_conditions; j++)
            if (dv_str_eq(pod->status.conditions[i].type, rule->on_pod_conditions[j].type) &&
                dv_str_eq(pod->status.conditions[i].status, rule->on_pod_conditions[j].status))
                return &pod->status.conditions[i];
    return NULL;
}

static enum dv_job_verdict verdict_of(dv_str action)
{
    if (dv_str_eq(action, DV_STR("Ignore")))
        return DV_JOB_IGNORE;
    if (dv_str_eq(action, DV_STR("FailIndex")))
        return DV_JOB_FAIL_INDEX;
    return dv_str_eq(action, DV_STR("FailJob")) ? DV_JOB_FAIL : DV_JOB_COUNT;
}

/* What the rule says of the pod, as text. p NULL: it is not about this pod. */
static dv_str match(const struct dv_api_pod_failure_policy_rule *rule, size_t at,
                    const struct dv_api_pod *pod, struct dv_arena *arena)
{
    const struct dv_api_pod_status *status = &pod->status;
    const struct dv_api_container_status *container = NULL;
    const struct dv_api_pod_condition *condition = NULL;

    if (rule->on_exit_codes) {
        container = find_code(status->container_statuses, status->n_container_statuses,
                              rule->on_exit_codes);
        if (!container)
            container = find_code(status->init_container_statuses,
                                  status->n_init_container_statuses, rule->on_exit_codes);
    } else {
        condition = find_condition(pod, rule);
    }
    if (container)
        return dv_str_printf(
            arena,
            "Container %.*s for pod %.*s/%.*s failed with exit code %lld matching %.*s rule at "
            "index %zu",
            DV_FMT(container->name), DV_FMT(pod->metadata.namespace), DV_FMT(pod->metadata.name),
            (long long)container->state.terminated->exit_code, DV_FMT(rule->action), at);
    if (condition)
        return dv_str_printf(arena,
                             "Pod %.*s/%.*s has condition %.*s matching %.*s rule at index %zu",
                             DV_FMT(pod->metadata.namespace), DV_FMT(pod->metadata.name),
                             DV_FMT(condition->type), DV_FMT(rule->action), at);
    return (dv_str){0};
}

enum dv_job_verdict dv_job_judge(const struct dv_api_pod_failure_policy *policy,
                                 const struct dv_api_pod *pod, struct dv_arena *arena,
                                 dv_str *message)
{
    for (size_t i = 0; policy && i < policy->n_rules; i++) {
        dv_str text = match(&policy->rules[i], i, pod, arena);
        enum dv_job_verdict verdict = verdict_of(policy->rules[i].action);

        if (!text.p)
            continue;
        if (verdict == DV_JOB_FAIL)
            *message = text;
        return verdict;
    }
    return DV_JOB_COUNT;
}

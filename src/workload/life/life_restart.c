/* life_restart.c - whether and when a container that has ended is started again. */
#include "resource/resource.h"
#include "workload/life/life_state.h"

bool dv_life_is_sidecar(const struct dv_api_container *container)
{
    return dv_str_eq(container->restart_policy, DV_STR("Always"));
}

bool dv_life_is_deleted(const struct dv_api_pod *pod)
{
    return pod->metadata.deletion_timestamp.is_set;
}

static bool has_value(const struct dv_api_container_restart_rule_on_exit_codes *codes, int64_t code)
{
    for (size_t i = 0; i < codes->n_values; i++)
        if (codes->values[i] == code)
            return true;
    return false;
}

/* The first rule that is about this code; NULL: none is. */
static const struct dv_api_container_restart_rule *
matching_rule(const struct dv_api_container *container, int64_t code)
{
    for (size_t i = 0; i < container->n_restart_policy_rules; i++) {
        const struct dv_api_container_restart_rule *rule = &container->restart_policy_rules[i];

        if (!rule->exit_codes)
            continue;
        if (dv_str_eq(rule->exit_codes->operator, DV_STR("In")) &&
            has_value(rule->exit_codes, code))
            return rule;
        if (dv_str_eq(rule->exit_codes->operator, DV_STR("NotIn")) &&
            !has_value(rule->exit_codes, code))
            return rule;
    }
    return NULL;
}

static dv_str policy(const struct dv_api_pod *pod, const struct dv_api_container *container)
{
    return container->restart_policy.n > 0 ? container->restart_policy : pod->spec.restart_policy;
}

bool dv_life_restarts_on_failure(const struct dv_api_pod *pod,
                                 const struct dv_api_container *container)
{
    return !dv_str_eq(policy(pod, container), DV_STR("Never"));
}

bool dv_life_restarts_after(const struct dv_api_pod *pod, const struct dv_api_container *container,
                            int64_t exit_code)
{
    const struct dv_api_container_restart_rule *rule = matching_rule(container, exit_code);

    if (rule && (dv_str_eq(rule->action, DV_STR("Restart")) ||
                 dv_str_eq(rule->action, DV_STR("RestartAllContainers"))))
        return true;
    if (dv_str_eq(policy(pod, container), DV_STR("OnFailure")))
        return exit_code != 0;
    return dv_life_restarts_on_failure(pod, container);
}

bool dv_life_resets_after(const struct dv_api_container *container, int64_t exit_code)
{
    const struct dv_api_container_restart_rule *rule = matching_rule(container, exit_code);

    return rule && dv_str_eq(rule->action, DV_STR("RestartAllContainers"));
}

static bool have_reset_rules(const struct dv_api_container *containers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < containers[i].n_restart_policy_rules; j++)
            if (dv_str_eq(containers[i].restart_policy_rules[j].action,
                          DV_STR("RestartAllContainers")))
                return true;
    return false;
}

bool dv_life_has_reset_rules(const struct dv_api_pod *pod)
{
    return have_reset_rules(pod->spec.containers, pod->spec.n_containers) ||
           have_reset_rules(pod->spec.init_containers, pod->spec.n_init_containers);
}

bool dv_life_should_start(const struct dv_api_pod *pod, const struct dv_api_container *container,
                          const struct dv_life_view *view)
{
    const struct dv_life_container *newest = dv_life_newest(view, container->name);

    if (dv_life_is_deleted(pod))
        return false;
    if (!newest)
        return true;
    switch (newest->state) {
    case DV_LIFE_RUNNING:
        return false;
    case DV_LIFE_CREATED: /* an agent died between making and starting it */
    case DV_LIFE_UNKNOWN:
        return true;
    case DV_LIFE_EXITED:
        break;
    }
    return dv_life_restarts_after(pod, container, newest->exit_code);
}

/* ---- delays that double ---- */

/* A delay that did not grow for so long begins anew. */
static bool has_expired(const struct dv_life_backoff *backoff, int64_t since_ms)
{
    return since_ms - backoff->updated_ms > 2 * (int64_t)DV_LIFE_BACKOFF_MAX_S * 1000;
}

bool dv_life_backoff_waits(const struct dv_life_backoff *backoff, int64_t since_ms, int64_t now_ms,
                           int64_t *rest_ms)
{
    int64_t delay_ms = (int64_t)backoff->delay_s * 1000;

    if (backoff->delay_s == 0 || has_expired(backoff, since_ms))
        return false;
    /* The clock was set back: nobody waits for the time that it says. */
    if (now_ms < since_ms - delay_ms || now_ms - since_ms >= delay_ms)
        return false;
    *rest_ms = since_ms + delay_ms - now_ms;
    return true;
}

void dv_life_backoff_grow(struct dv_life_backoff *backoff, int64_t since_ms, int64_t now_ms)
{
    if (backoff->delay_s == 0 || has_expired(backoff, since_ms))
        backoff->delay_s = DV_LIFE_BACKOFF_FIRST_S;
    else if (backoff->delay_s < DV_LIFE_BACKOFF_MAX_S)
        backoff->delay_s = backoff->delay_s * 2 < DV_LIFE_BACKOFF_MAX_S ? backoff->delay_s * 2
                                                                        : DV_LIFE_BACKOFF_MAX_S;
    backoff->updated_ms = now_ms;
}

/* webhooks.h - the webhooks of both kinds of configurations as one type: those that validate are
 * those that mutate without a reinvocation policy. */
#ifndef DV_RESOURCE_WEBHOOKS_H
#define DV_RESOURCE_WEBHOOKS_H

#include "resource/resource.h"

static inline struct dv_api_mutating_webhook
dv_webhook_of(const struct dv_api_validating_webhook *hook)
{
    return (struct dv_api_mutating_webhook){
        .name = hook->name,
        .client_config = hook->client_config,
        .rules = hook->rules,
        .n_rules = hook->n_rules,
        .failure_policy = hook->failure_policy,
        .match_policy = hook->match_policy,
        .namespace_selector = hook->namespace_selector,
        .object_selector = hook->object_selector,
        .side_effects = hook->side_effects,
        .timeout_seconds = hook->timeout_seconds,
        .admission_review_versions = hook->admission_review_versions,
        .n_admission_review_versions = hook->n_admission_review_versions,
        .match_conditions = hook->match_conditions,
        .n_match_conditions = hook->n_match_conditions,
    };
}

/* Sets what defaults fill in. */
static inline void dv_webhook_set(struct dv_api_validating_webhook *hook,
                                  const struct dv_api_mutating_webhook *from)
{
    hook->client_config = from->client_config;
    hook->failure_policy = from->failure_policy;
    hook->match_policy = from->match_policy;
    hook->namespace_selector = from->namespace_selector;
    hook->object_selector = from->object_selector;
    hook->timeout_seconds = from->timeout_seconds;
}

#endif

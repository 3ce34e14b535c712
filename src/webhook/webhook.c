/* webhook.c - the index of webhooks. A change of any configuration settles anew which kinds they
 * are about: there are few, and a write then costs one look. */
#include "webhook/webhook.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/webhooks.h"
#include "vap/vap_conditions.h"

/* What a webhook has to answer unless it says otherwise, which defaults see to. */
#define TIMEOUT_S 10

/* A configuration's webhooks. */
struct config {
    DV_VEC(struct dv_webhook *) hooks;
};

struct phase {
    struct dv_map configs;           /* struct config, by name */
    DV_VEC(struct dv_webhook *) all; /* in their order */
    bool is_about[DV_KIND_CUSTOM + 1];
};

struct dv_webhooks {
    struct phase phases[DV_WEBHOOK_N_PHASES];
};

/* ---- one webhook ---- */

struct dv_webhook *dv_webhook_ref(struct dv_webhook *webhook)
{
    webhook->n_refs++;
    return webhook;
}

void dv_webhook_unref(struct dv_webhook *webhook)
{
    if (!webhook || --webhook->n_refs > 0)
        return;
    dv_object_unref(webhook->config);
    dv_arena_free(webhook->arena);
}

/* The rules in the form in which policies have theirs. */
static const struct dv_api_match_resources *match_of(const struct dv_api_mutating_webhook *hook,
                                                     struct dv_arena *arena)
{
    struct dv_api_match_resources *match = DV_NEW(arena, struct dv_api_match_resources);

    match->namespace_selector = hook->namespace_selector;
    match->object_selector = hook->object_selector;
    match->match_policy = hook->match_policy;
    match->n_resource_rules = hook->n_rules;
    match->resource_rules =
        DV_NEW_ARRAY(arena, struct dv_api_named_rule_with_operations, hook->n_rules + 1);
    for (size_t i = 0; i < hook->n_rules; i++)
        match->resource_rules[i].rule_with_operations = hook->rules[i];
    return match;
}

/* The first version in the list that there is. */
static enum dv_review_version review_of(const struct dv_api_mutating_webhook *hook)
{
    for (size_t i = 0; i < hook->n_admission_review_versions; i++) {
        if (dv_str_eq(hook->admission_review_versions[i], DV_STR("v1")))
            return DV_REVIEW_V1;
        if (dv_str_eq(hook->admission_review_versions[i], DV_STR("v1beta1")))
            return DV_REVIEW_V1BETA1;
    }
    return DV_REVIEW_V1;
}

static struct dv_webhook *webhook_new(struct dv_object *config, enum dv_webhook_phase phase,
                                      const struct dv_api_mutating_webhook *value, size_t place)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_webhook *webhook = DV_NEW(arena, struct dv_webhook);

    *webhook = (struct dv_webhook){
        .n_refs = 1,
        .arena = arena,
        .config = dv_object_ref(config),
        .value = *value,
        .place = place,
        .phase = phase,
        .match = dv_vap_match_of(match_of(value, arena), arena),
        .conditions =
            dv_vap_conditions_new(value->match_conditions, value->n_match_conditions, false, arena),
        .review = review_of(value),
        .is_fail = !dv_str_eq(value->failure_policy, DV_STR("Ignore")),
        .is_reinvoked = dv_str_eq(value->reinvocation_policy, DV_STR("IfNeeded")),
        .has_effects = !dv_str_eq(value->side_effects, DV_STR("None")) &&
                       !dv_str_eq(value->side_effects, DV_STR("NoneOnDryRun")),
        .timeout_ms =
            (uint64_t)(value->timeout_seconds ? *value->timeout_seconds : TIMEOUT_S) * 1000,
    };
    return webhook;
}

bool dv_webhook_matches(const struct dv_webhook *webhook, const struct dv_vap_write *write,
                        const struct dv_vap_labels *labels, const struct dv_api_version **version)
{
    /* A policy without rules is about everything, a webhook about nothing. */
    return webhook->value.n_rules > 0 && !dv_vap_is_exempt(write->kind) &&
           dv_vap_matches(&webhook->match, write, labels, version);
}

/* ---- the index ---- */

static void config_free(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->hooks.n; i++)
        dv_webhook_unref(config->hooks.v[i]);
    dv_vec_fini(&config->hooks);
    free(config);
}

static struct config *config_new(struct dv_object *object, enum dv_webhook_phase phase)
{
    const struct dv_api_mutating_webhook_configuration *mutating = object->value;
    const struct dv_api_validating_webhook_configuration *validating = object->value;
    struct config *config = DV_ALLOC(struct config);

    size_t n = phase == DV_WEBHOOK_MUTATES ? mutating->n_webhooks : validating->n_webhooks;

    for (size_t i = 0; i < n; i++) {
        struct dv_api_mutating_webhook value = phase == DV_WEBHOOK_MUTATES
                                                   ? mutating->webhooks[i]
                                                   : dv_webhook_of(&validating->webhooks[i]);

        *dv_vec_add(&config->hooks) = webhook_new(object, phase, &value, i);
    }
    return config;
}

static int compare(const void *a, const void *b)
{
    const struct dv_webhook *one = *(struct dv_webhook *const *)a;
    const struct dv_webhook *other = *(struct dv_webhook *const *)b;
    int order = dv_str_cmp(one->config->meta->name, other->config->meta->name);

    return order != 0 ? order : (one->place > other->place) - (one->place < other->place);
}

static void settle(struct phase *phase)
{
    const struct dv_map_entry *entry;

    dv_vec_clear(&phase->all);
    for (size_t at = 0; (entry = dv_map_next(&phase->configs, &at));) {
        const struct config *config = entry->value;

        for (size_t i = 0; i < config->hooks.n; i++)
            *dv_vec_add(&phase->all) = config->hooks.v[i];
    }
    if (phase->all.n > 0)
        qsort(phase->all.v, phase->all.n, sizeof(phase->all.v[0]), compare);
    phase->is_about[DV_KIND_CUSTOM] = phase->all.n > 0;
    for (int id = 0; id < DV_N_KINDS; id++) {
        const struct dv_kind *kind = dv_kind((enum dv_kind_id)id);

        phase->is_about[id] = false;
        for (size_t i = 0; i < phase->all.n && !dv_vap_is_exempt(kind); i++)
            phase->is_about[id] |= dv_vap_match_is_about(&phase->all.v[i]->match, kind);
    }
}

struct dv_webhooks *dv_webhooks_new(void)
{
    struct dv_webhooks *webhooks = DV_ALLOC(struct dv_webhooks);

    for (size_t i = 0; i < DV_WEBHOOK_N_PHASES; i++)
        dv_map_init(&webhooks->phases[i].configs);
    return webhooks;
}

void dv_webhooks_free(struct dv_webhooks *webhooks)
{
    if (!webhooks)
        return;
    for (size_t i = 0; i < DV_WEBHOOK_N_PHASES; i++) {
        struct phase *phase = &webhooks->phases[i];
        const struct dv_map_entry *entry;

        for (size_t at = 0; (entry = dv_map_next(&phase->configs, &at));)
            config_free(entry->value);
        dv_map_fini(&phase->configs);
        dv_vec_fini(&phase->all);
    }
    free(webhooks);
}

void dv_webhooks_changed(struct dv_webhooks *webhooks, const struct dv_object *old,
                         struct dv_object *now)
{
    const struct dv_object *any = now ? now : old;
    enum dv_webhook_phase id =
        any->kind->id == DV_KIND_MUTATING_WEBHOOKS ? DV_WEBHOOK_MUTATES : DV_WEBHOOK_VALIDATES;
    struct phase *phase = &webhooks->phases[id];
    struct config *before = now ? dv_map_set(&phase->configs, any->meta->name, config_new(now, id))
                                : dv_map_remove(&phase->configs, any->meta->name);

    settle(phase);
    config_free(before);
}

/* Rules name kinds that definitions make by their texts alone: each is looked at in full. */
bool dv_webhooks_are_about(const struct dv_webhooks *webhooks, enum dv_webhook_phase phase,
                           const struct dv_kind *kind)
{
    return webhooks->phases[phase].is_about[kind->id];
}

struct dv_webhook_list dv_webhooks_of(const struct dv_webhooks *webhooks,
                                      enum dv_webhook_phase phase)
{
    return (struct dv_webhook_list){webhooks->phases[phase].all.v, webhooks->phases[phase].all.n};
}

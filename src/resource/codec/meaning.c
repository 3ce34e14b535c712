/* meaning.c - what values of the API mean, for all who decide by them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "base/str.h"
#include "resource/resource.h"

bool dv_pod_is_terminal(const struct dv_api_pod *pod)
{
    return dv_str_eq(pod->status.phase, DV_STR("Succeeded")) ||
           dv_str_eq(pod->status.phase, DV_STR("Failed"));
}

bool dv_pod_is_ready(const struct dv_api_pod *pod, struct dv_time *since)
{
    for (size_t i = 0; i < pod->status.n_conditions; i++) {
        const struct dv_api_pod_condition *condition = &pod->status.conditions[i];

        if (!dv_str_eq(condition->type, DV_STR("Ready")))
            continue;
        if (since)
            *since = condition->last_transition_time;
        return dv_str_eq(condition->status, DV_STR("True"));
    }
    return false;
}

int64_t dv_scaled(const struct dv_int_or_str *value, int64_t total, bool is_rounded_up)
{
    dv_str text = value ? value->text : DV_STR_NONE;
    uint64_t percent;

    if (!value)
        return 0;
    if (!value->is_text)
        return value->number;
    if (text.n < 2 || text.p[text.n - 1] != '%' ||
        !dv_str_to_u64(dv_str_slice(text, 0, text.n - 1), &percent) || percent > INT32_MAX)
        return 0;
    return (total * (int64_t)percent + (is_rounded_up ? 99 : 0)) / 100;
}

bool dv_meta_has_finalizer(const struct dv_api_object_meta *meta, dv_str finalizer)
{
    for (size_t i = 0; i < meta->n_finalizers; i++)
        if (dv_str_eq(meta->finalizers[i], finalizer))
            return true;
    return false;
}

const struct dv_api_owner_reference *dv_controller_of(const struct dv_api_object_meta *meta)
{
    for (size_t i = 0; i < meta->n_owner_references; i++)
        if (meta->owner_references[i].controller && *meta->owner_references[i].controller)
            return &meta->owner_references[i];
    return NULL;
}

bool dv_claim_is_reserved_for(const struct dv_api_resource_claim *claim, dv_str pod_uid)
{
    for (size_t i = 0; i < claim->status.n_reserved_for; i++)
        if (dv_str_eq(claim->status.reserved_for[i].uid, pod_uid))
            return true;
    return false;
}

/* ---- taints ---- */

/* The members that tolerations and taints of nodes and of devices have in common. */
struct terms {
    dv_str key;
    dv_str operator; /* of a toleration */
    dv_str value;
    dv_str effect;
};

/* Whether the toleration is enough for the taint. An empty key or effect stands for all of them. */
static bool matches(const struct terms *toleration, const struct terms *taint)
{
    if (toleration->effect.n > 0 && !dv_str_eq(toleration->effect, taint->effect))
        return false;
    if (toleration->key.n > 0 && !dv_str_eq(toleration->key, taint->key))
        return false;
    if (dv_str_eq(toleration->operator, DV_STR("Exists")))
        return true;
    return (toleration->operator.n == 0 || dv_str_eq(toleration->operator, DV_STR("Equal"))) &&
           dv_str_eq(toleration->value, taint->value);
}

bool dv_toleration_matches(const struct dv_api_toleration *toleration,
                           const struct dv_api_taint *taint)
{
    return matches(&(struct terms){toleration->key, toleration->operator, toleration->value,
                                   toleration->effect},
                   &(struct terms){taint->key, DV_STR_NONE, taint->value, taint->effect});
}

bool dv_device_toleration_matches(const struct dv_api_device_toleration *toleration,
                                  const struct dv_api_device_taint *taint)
{
    return matches(&(struct terms){toleration->key, toleration->operator, toleration->value,
                                   toleration->effect},
                   &(struct terms){taint->key, DV_STR_NONE, taint->value, taint->effect});
}

/* ---- requests ---- */

struct dv_api_exact_device_request
dv_alternative_as_request(const struct dv_api_device_sub_request *alternative)
{
    return (struct dv_api_exact_device_request){
        .device_class_name = alternative->device_class_name,
        .selectors = alternative->selectors,
        .n_selectors = alternative->n_selectors,
        .allocation_mode = alternative->allocation_mode,
        .count = alternative->count,
        .tolerations = alternative->tolerations,
        .n_tolerations = alternative->n_tolerations,
        .capacity = alternative->capacity,
    };
}

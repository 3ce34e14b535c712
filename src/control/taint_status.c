/* taint_status.c - the condition of a DeviceTaintRule that tells what the rule does: its words are
 * the reference's. */
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "control/taint.h"
#include "resource/resource.h"
#include "json/json.h"

#define CONDITION_TYPE "EvictionInProgress"
#define MESSAGE_BYTES_MAX 1024u

const struct dv_api_condition *dv_rule_find_condition(const struct dv_api_device_taint_rule *rule)
{
    for (size_t i = 0; i < rule->status.n_conditions; i++)
        if (dv_str_eq(rule->status.conditions[i].type, DV_STR(CONDITION_TYPE)))
            return &rule->status.conditions[i];
    return NULL;
}

bool dv_rule_is_settled(const struct dv_api_device_taint_rule *rule)
{
    const struct dv_api_condition *condition = dv_rule_find_condition(rule);

    return !dv_taint_is_evicting(&rule->spec.taint) && condition &&
           condition->observed_generation == rule->metadata.generation;
}

bool dv_rule_has_condition(const struct dv_api_device_taint_rule *rule,
                           const struct dv_api_condition *condition)
{
    const struct dv_api_condition *old = dv_rule_find_condition(rule);

    return old && dv_str_eq(old->status, condition->status) &&
           dv_str_eq(old->reason, condition->reason) &&
           dv_str_eq(old->message, condition->message) &&
           old->observed_generation == condition->observed_generation;
}

/* ---- texts ---- */

/* "1 pod", "3 pods" */
static void add_count(struct dv_buf *text, size_t n, const char *one, const char *many)
{
    dv_buf_printf(text, "%zu %s", n, n == 1 ? one : many);
}

static void add_spaces(struct dv_buf *text, size_t n)
{
    add_count(text, n, "namespace", "different namespaces");
}

static const char *describe_evicting(const struct dv_rule_counts *counts, struct dv_buf *text)
{
    if (counts->n_pods == 0)
        return counts->n_evicted > 0 ? "Completed" : "NotStarted";
    add_count(text, counts->n_pods, "pod needs to be evicted in ", "pods need to be evicted in ");
    add_spaces(text, counts->n_namespaces);
    dv_buf_add_char(text, '.');
    return "PodsPendingEviction";
}

static const char *describe_none(const struct dv_rule_counts *counts, struct dv_buf *text)
{
    add_count(text, counts->n_published, "published device selected. ",
              "published devices selected. ");
    add_count(text, counts->n_allocated, "allocated device selected. ",
              "allocated devices selected. ");
    add_count(text, counts->n_pods, "pod would be evicted in ", "pods would be evicted in ");
    add_spaces(text, counts->n_namespaces);
    dv_buf_add_c(text, " if the effect was NoExecute. This information will not be updated again. "
                       "Recreate the DeviceTaintRule to trigger an update.");
    return "NoEffect";
}

void dv_rule_condition(const struct dv_api_device_taint_rule *rule,
                       const struct dv_rule_counts *counts, struct dv_time now,
                       struct dv_arena *arena, struct dv_api_condition *condition)
{
    const struct dv_api_device_taint *taint = &rule->spec.taint;
    const char *reason = "OtherEffect";
    bool is_evicting = dv_taint_is_evicting(taint);
    struct dv_buf text;

    dv_buf_init(&text, MESSAGE_BYTES_MAX);
    if (is_evicting)
        reason = describe_evicting(counts, &text);
    else if (dv_str_eq(taint->effect, DV_STR("None")))
        reason = describe_none(counts, &text);
    else
        dv_buf_add_c(&text, "Eviction only happens for the NoExecute effect.");
    if (counts->n_evicted > 0) {
        if (text.n > 0)
            dv_buf_add_char(&text, ' ');
        add_count(&text, counts->n_evicted, "pod ", "pods ");
        dv_buf_add_c(&text, "evicted since starting the controller.");
    }
    *condition = (struct dv_api_condition){
        .type = DV_STR(CONDITION_TYPE),
        .status = is_evicting && counts->n_pods > 0 ? DV_STR("True") : DV_STR("False"),
        .observed_generation = rule->metadata.generation,
        .last_transition_time = now,
        .reason = dv_str_from_c(reason),
        .message = dv_str_copy(dv_buf_str(&text), arena)};
    dv_buf_fini(&text);
}

/* ---- the patch ---- */

static void set(struct dv_json *object, const char *key, struct dv_json *value,
                struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), value, arena);
}

struct dv_json *dv_rule_status(const struct dv_api_device_taint_rule *rule,
                               const struct dv_api_condition *condition, dv_str api_version,
                               struct dv_arena *arena)
{
    struct dv_json *patch = dv_json_new_object(arena);
    struct dv_json *meta = dv_json_new_object(arena);
    struct dv_json *status = dv_json_new_object(arena);
    struct dv_json *list = dv_json_new_array(arena);

    set(patch, "apiVersion", dv_json_new_str(api_version, arena), arena);
    set(patch, "kind", dv_json_new_str(DV_STR("DeviceTaintRule"), arena), arena);
    set(meta, "name", dv_json_new_str(rule->metadata.name, arena), arena);
    set(meta, "uid", dv_json_new_str(rule->metadata.uid, arena), arena);
    set(patch, "metadata", meta, arena);
    dv_json_append(list,
                   dv_encode_json(&dv_message_condition, condition, NULL, DV_STR_NONE, arena));
    set(status, "conditions", list, arena);
    set(patch, "status", status, arena);
    return patch;
}

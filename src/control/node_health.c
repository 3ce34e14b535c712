/* node_health.c - what is said of a node whose agent has fallen silent: a taint that keeps new pods
 * away, and conditions that are unknown. Decides only; node_sync.c watches the leases and writes.
 */
#include "control/node_health.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "json/json.h"

#define EFFECT "NoSchedule"

static bool is_ours(const struct dv_api_taint *taint)
{
    return dv_str_eq(taint->key, DV_STR(DV_NODE_TAINT)) && dv_str_eq(taint->effect, DV_STR(EFFECT));
}

static bool has_taint(const struct dv_api_node *node)
{
    for (size_t i = 0; i < node->spec.n_taints; i++)
        if (is_ours(&node->spec.taints[i]))
            return true;
    return false;
}

static const struct dv_api_node_condition *ready_of(const struct dv_api_node *node)
{
    for (size_t i = 0; i < node->status.n_conditions; i++)
        if (dv_str_eq(node->status.conditions[i].type, DV_STR("Ready")))
            return &node->status.conditions[i];
    return NULL;
}

static bool is_unknown(const struct dv_api_node *node)
{
    const struct dv_api_node_condition *ready = ready_of(node);

    return ready && dv_str_eq(ready->status, DV_STR("Unknown"));
}

enum dv_health_step dv_health_next(const struct dv_api_node *node, bool is_silent)
{
    if (!is_silent)
        return has_taint(node) ? DV_HEALTH_REMOVE_TAINT : DV_HEALTH_NOTHING;
    if (!has_taint(node))
        return DV_HEALTH_ADD_TAINT;
    return is_unknown(node) ? DV_HEALTH_NOTHING : DV_HEALTH_SET_UNKNOWN;
}

static struct dv_json *unknown_patch(const struct dv_api_node *node, struct dv_time now,
                                     struct dv_arena *arena)
{
    const struct dv_api_node_condition *old = ready_of(node);
    const struct dv_api_node_condition ready = {
        .type = DV_STR("Ready"),
        .status = DV_STR("Unknown"),
        .last_heartbeat_time = old ? old->last_heartbeat_time : (struct dv_time){0},
        .last_transition_time = now,
        .reason = DV_STR("NodeStatusUnknown"),
        .message = DV_STR("Kubelet stopped posting node status."),
    };
    struct dv_json *patch = dv_json_new_object(arena);
    struct dv_json *status = dv_json_new_object(arena);
    struct dv_json *conditions = dv_json_new_array(arena);

    dv_json_append(conditions, dv_encode_patch(&dv_message_node_condition, &ready, arena));
    dv_json_set(status, DV_STR("conditions"), conditions, arena);
    dv_json_set(patch, DV_STR("status"), status, arena);
    return patch;
}

/* The patch of the taints: all that the node has, without ours or with it. The list is replaced as
 * a whole, so the patch names the version that it was made from. */
static struct dv_json *taints_patch(const struct dv_api_node *node, bool has_ours,
                                    struct dv_time now, struct dv_arena *arena)
{
    const struct dv_api_object_meta meta = {.resource_version = node->metadata.resource_version};
    struct dv_api_node_spec spec = {
        .taints = DV_NEW_ARRAY(arena, struct dv_api_taint, node->spec.n_taints + 1)};
    struct dv_json *patch = dv_json_new_object(arena);
    struct dv_json *changed;

    for (size_t i = 0; i < node->spec.n_taints; i++)
        if (!is_ours(&node->spec.taints[i]))
            spec.taints[spec.n_taints++] = node->spec.taints[i];
    if (has_ours)
        spec.taints[spec.n_taints++] = (struct dv_api_taint){
            .key = DV_STR(DV_NODE_TAINT), .effect = DV_STR(EFFECT), .time_added = now};
    changed = dv_encode_patch(&dv_message_node_spec, &spec, arena);
    if (spec.n_taints == 0)
        dv_json_set(changed, DV_STR("taints"), dv_json_new_null(arena), arena);
    dv_json_set(patch, DV_STR("metadata"), dv_encode_patch(&dv_message_object_meta, &meta, arena),
                arena);
    dv_json_set(patch, DV_STR("spec"), changed, arena);
    return patch;
}

struct dv_json *dv_health_patch(const struct dv_api_node *node, enum dv_health_step step,
                                struct dv_time now, struct dv_arena *arena)
{
    if (step == DV_HEALTH_SET_UNKNOWN)
        return unknown_patch(node, now, arena);
    return taints_patch(node, step == DV_HEALTH_ADD_TAINT, now, arena);
}

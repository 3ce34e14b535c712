/* validate_node.c - nodes: what is theirs for good, and what they have. */
#include "resource/validate/validate_kinds.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/map.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"

static const struct dv_field_path spec_path = {.kind = PATH_NAME, .name = "spec"};
/* The path under which the reference reports the taints. */
static const struct dv_field_path meta_path = {.kind = PATH_NAME, .name = "metadata"};

/* A text that is equal for equal pairs of key and effect. */
static dv_str taint_key(const struct dv_api_taint *taint, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%zu %.*s%.*s", taint->key.n, DV_FMT(taint->key),
                         DV_FMT(taint->effect));
}

static void check_taints(struct dv_problems *problems, const struct dv_api_node_spec *spec)
{
    static const dv_str effects[] = {
        DV_STR_INIT("NoSchedule"),
        DV_STR_INIT("PreferNoSchedule"),
        DV_STR_INIT("NoExecute"),
    };
    struct dv_field_path path = dv_path_name(&meta_path, "taints");
    DV_CLEANUP(dv_map_fini) struct dv_map seen;

    dv_map_init(&seen);
    for (size_t i = 0; i < spec->n_taints; i++) {
        struct dv_api_taint *taint = &spec->taints[i];
        struct dv_field_path item = dv_path_index(&path, i);

        dv_check_label_name(problems, &item, "key", taint->key);
        dv_check_label_value(problems, &item, "value", taint->value);
        if (taint->effect.n == 0)
            dv_required(problems, &item, "effect");
        else
            dv_check_one_of(problems, &item, "effect", taint->effect, effects, DV_COUNT(effects));
        if (dv_map_set(&seen, taint_key(taint, problems->arena), taint))
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &item, NULL,
                           dv_bad_message(&dv_message_taint, taint, problems->arena),
                           "taints must be unique by key and effect pair");
    }
}

static void check_amounts(struct dv_problems *problems, const char *name,
                          const struct dv_quantity_entry *entries, size_t n)
{
    struct dv_field_path status = dv_path_name(NULL, "status");
    struct dv_field_path path = dv_path_name(&status, name);

    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = {.up = &path, .kind = PATH_TEXT, .key = entries[i].key};

        dv_check_resource_value(problems, &item, entries[i].key, &entries[i].value);
    }
}

/* The range at the index. The first is also in podCIDR, which counts when they differ. */
static dv_str cidr_at(const struct dv_api_node_spec *spec, size_t i)
{
    if (i == 0 && spec->pod_cidr.n > 0)
        return spec->pod_cidr;
    return i < spec->n_pod_cid_rs ? spec->pod_cid_rs[i] : DV_STR("");
}

static size_t count_cidrs(const struct dv_api_node_spec *spec)
{
    if (spec->n_pod_cid_rs == 0)
        return spec->pod_cidr.n > 0;
    if (spec->pod_cidr.n > 0 && !dv_str_eq(spec->pod_cidr, spec->pod_cid_rs[0]))
        return 1;
    return spec->n_pod_cid_rs;
}

static bool has_same_cidrs(const struct dv_api_node_spec *a, const struct dv_api_node_spec *b)
{
    size_t n = count_cidrs(a);

    if (n != count_cidrs(b))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!dv_str_eq(cidr_at(a, i), cidr_at(b, i)))
            return false;
    return true;
}

static void check_fixed(struct dv_problems *problems, const struct dv_api_node_spec *spec,
                        const struct dv_api_node_spec *old)
{
    if (count_cidrs(old) > 0 && !has_same_cidrs(spec, old))
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &spec_path, "podCIDRs", dv_bad_none(),
                       "node updates may not change podCIDR except from \"\" to valid");
    if (old->provider_id.n > 0 && !dv_str_eq(spec->provider_id, old->provider_id))
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &spec_path, "providerID", dv_bad_none(),
                       "node updates may not change providerID except from \"\" to valid");
}

void dv_validate_node(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, false};
    const struct dv_api_node *node = what->value;
    const struct dv_api_node *old = what->old;

    if (!old) {
        dv_check_meta(problems, &node->metadata, &rules);
        check_taints(problems, &node->spec);
        return;
    }
    dv_check_kind_meta_update(problems, &node->metadata, &old->metadata);
    check_amounts(problems, "capacity", node->status.capacity, node->status.n_capacity);
    check_amounts(problems, "allocatable", node->status.allocatable, node->status.n_allocatable);
    check_fixed(problems, &node->spec, &old->spec);
    check_taints(problems, &node->spec);
    /* twice, as the reference does: once as for a new node, once as for a changed one */
    check_taints(problems, &node->spec);
}

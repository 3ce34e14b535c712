/* access_aggregate.c - ClusterRoles whose rules are those of others. */
#include "access/access.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "resource/select.h"

/* No object is larger. */
#define RULE_BYTES_MAX (8u * 1024u * 1024u)

struct rules {
    DV_VEC(struct dv_api_policy_rule) all;
    struct dv_map known; /* by their encoding */
    struct dv_arena *arena;
};

static void add_rule(struct rules *rules, struct dv_api_policy_rule *rule)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str key;

    dv_buf_init(&buf, RULE_BYTES_MAX);
    dv_encode_pb(&dv_message_policy_rule, rule, &buf);
    if (dv_map_get(&rules->known, dv_buf_str(&buf)))
        return;
    key = dv_str_copy(dv_buf_str(&buf), rules->arena);
    (void)dv_map_set(&rules->known, key, rule);
    *dv_vec_add_in(&rules->all, rules->arena) = *rule;
}

static int compare_names(const void *a, const void *b)
{
    const struct dv_api_cluster_role *const *x = a;
    const struct dv_api_cluster_role *const *y = b;

    return dv_str_cmp((*x)->metadata.name, (*y)->metadata.name);
}

static void add_selected(struct rules *rules, const struct dv_api_cluster_role *role,
                         const struct dv_api_label_selector *selects,
                         const struct dv_api_cluster_role *const *sorted, size_t n)
{
    const struct dv_label_selector *selector = dv_label_selector_of(selects, rules->arena);

    for (size_t i = 0; selector && i < n; i++) {
        const struct dv_api_object_meta *meta = &sorted[i]->metadata;

        if (dv_str_eq(meta->name, role->metadata.name) ||
            !dv_label_selector_matches(selector, meta->labels, meta->n_labels))
            continue;
        for (size_t k = 0; k < sorted[i]->n_rules; k++)
            add_rule(rules, &sorted[i]->rules[k]);
    }
}

struct dv_api_policy_rule *dv_access_aggregate(const struct dv_api_cluster_role *role,
                                               const struct dv_api_cluster_role *const *roles,
                                               size_t n_roles, struct dv_arena *arena, size_t *n)
{
    const struct dv_api_cluster_role **sorted =
        DV_NEW_ARRAY(arena, const struct dv_api_cluster_role *, n_roles + 1);
    struct rules rules = {.arena = arena};

    for (size_t i = 0; i < n_roles; i++)
        sorted[i] = roles[i];
    if (n_roles > 0)
        qsort(sorted, n_roles, sizeof(sorted[0]), compare_names);
    dv_map_init(&rules.known);
    for (size_t i = 0; i < role->aggregation_rule->n_cluster_role_selectors; i++)
        add_selected(&rules, role, &role->aggregation_rule->cluster_role_selectors[i], sorted,
                     n_roles);
    dv_map_fini(&rules.known);
    *n = rules.all.n;
    return rules.all.v;
}

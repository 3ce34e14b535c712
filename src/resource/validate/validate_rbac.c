/* validate_rbac.c - roles and what binds them to users. A Role has the struct of a ClusterRole, and
 * both bindings have one. */
#include "resource/validate/validate_kinds.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"

static const dv_str rbac_group[] = {DV_STR_INIT(DV_RBAC_GROUP)};

static void check_meta(struct dv_problems *problems, const struct dv_api_object_meta *meta,
                       bool is_namespaced)
{
    const struct dv_meta_rules rules = {dv_check_path_segment, is_namespaced};

    dv_check_meta(problems, meta, &rules);
}

/* -- Roles ---------------------------------------------------------------------------------- */

static void require(struct dv_problems *problems, const struct dv_field_path *path,
                    const char *name, size_t n, const char *text)
{
    if (n == 0)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, name, dv_bad_none(), "%s", text);
}

static void refuse_urls(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_api_policy_rule *rule, const char *text)
{
    dv_problem_add(problems, DV_PROBLEM_INVALID, path, "nonResourceURLs",
                   dv_bad_strs(rule->non_resource_urls, rule->n_non_resource_urls, problems->arena),
                   "%s", text);
}

static void check_rule(struct dv_problems *problems, const struct dv_field_path *path,
                       const struct dv_api_policy_rule *rule, bool is_namespaced)
{
    require(problems, path, "verbs", rule->n_verbs, "verbs must contain at least one value");
    if (rule->n_non_resource_urls == 0) {
        require(problems, path, "apiGroups", rule->n_api_groups,
                "resource rules must supply at least one api group");
        require(problems, path, "resources", rule->n_resources,
                "resource rules must supply at least one resource");
        return;
    }
    if (is_namespaced)
        refuse_urls(problems, path, rule, "namespaced rules cannot apply to non-resource URLs");
    if (rule->n_api_groups + rule->n_resources + rule->n_resource_names > 0)
        refuse_urls(problems, path, rule,
                    "rules cannot apply to both regular resources and non-resource URLs");
}

static void check_rules(struct dv_problems *problems, const struct dv_api_cluster_role *role,
                        bool is_namespaced)
{
    struct dv_field_path path = dv_path_name(NULL, "rules");

    for (size_t i = 0; i < role->n_rules && !dv_problems_are_full(problems); i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        check_rule(problems, &item, &role->rules[i], is_namespaced);
    }
}

static void check_aggregation(struct dv_problems *problems,
                              const struct dv_api_aggregation_rule *rule)
{
    struct dv_field_path path = dv_path_name(NULL, "aggregationRule");
    struct dv_field_path selectors = dv_path_name(&path, "clusterRoleSelectors");

    require(problems, &path, "clusterRoleSelectors", rule->n_cluster_role_selectors,
            "at least one clusterRoleSelector required if aggregationRule is non-nil");
    for (size_t i = 0; i < rule->n_cluster_role_selectors; i++) {
        struct dv_field_path item = dv_path_index(&selectors, i);

        dv_check_label_selector(problems, &item, &rule->cluster_role_selectors[i], true);
    }
}

static void validate_role(struct dv_problems *problems, const struct dv_validation *what,
                          bool is_namespaced)
{
    const struct dv_api_cluster_role *role = what->value;
    const struct dv_api_cluster_role *old = what->old;

    check_meta(problems, &role->metadata, is_namespaced);
    check_rules(problems, role, is_namespaced);
    if (role->aggregation_rule)
        check_aggregation(problems, role->aggregation_rule);
    if (old)
        dv_check_kind_meta_update(problems, &role->metadata, &old->metadata);
}

void dv_validate_role(struct dv_problems *problems, const struct dv_validation *what)
{
    validate_role(problems, what, true);
}

void dv_validate_cluster_role(struct dv_problems *problems, const struct dv_validation *what)
{
    validate_role(problems, what, false);
}

/* -- Bindings ------------------------------------------------------------------------------- */

static void check_subject(struct dv_problems *problems, const struct dv_field_path *path,
                          const struct dv_api_subject *subject, bool is_namespaced)
{
    static const dv_str kinds[] = {DV_STR_INIT("ServiceAccount"), DV_STR_INIT("User"),
                                   DV_STR_INIT("Group")};
    static const dv_str no_group[] = {DV_STR_INIT("")};

    if (subject->name.n == 0)
        dv_required(problems, path, "name");
    if (dv_str_eq(subject->kind, kinds[0])) {
        if (subject->name.n > 0)
            dv_check_dns_subdomain(problems, path, "name", subject->name);
        if (subject->api_group.n > 0)
            dv_not_supported(problems, path, "apiGroup", subject->api_group, no_group, 1);
        if (!is_namespaced && subject->namespace.n == 0)
            dv_required(problems, path, "namespace");
    } else if (dv_str_eq(subject->kind, kinds[1]) || dv_str_eq(subject->kind, kinds[2])) {
        if (!dv_str_eq(subject->api_group, rbac_group[0]))
            dv_not_supported(problems, path, "apiGroup", subject->api_group, rbac_group, 1);
    } else {
        dv_not_supported(problems, path, "kind", subject->kind, kinds, DV_COUNT(kinds));
    }
}

static void check_role_ref(struct dv_problems *problems, const struct dv_api_role_ref *ref,
                           bool is_namespaced)
{
    static const dv_str kinds[] = {DV_STR_INIT("Role"), DV_STR_INIT("ClusterRole")};
    struct dv_field_path path = dv_path_name(NULL, "roleRef");
    const dv_str *allowed = is_namespaced ? kinds : kinds + 1;

    if (!dv_str_eq(ref->api_group, rbac_group[0]))
        dv_not_supported(problems, &path, "apiGroup", ref->api_group, rbac_group, 1);
    if (!dv_str_eq(ref->kind, kinds[1]) && !(is_namespaced && dv_str_eq(ref->kind, kinds[0])))
        dv_not_supported(problems, &path, "kind", ref->kind, allowed, is_namespaced ? 2 : 1);
    if (ref->name.n == 0)
        dv_required(problems, &path, "name");
    else
        dv_check_path_segment(problems, &path, "name", ref->name);
}

/* The role that a binding gives is what it is: who wants another one makes another binding. */
static void check_same_role(struct dv_problems *problems, const struct dv_api_role_ref *ref,
                            const struct dv_api_role_ref *old)
{
    const struct dv_bad_member members[] = {
        {"APIGroup", ref->api_group},
        {"Kind",     ref->kind     },
        {"Name",     ref->name     },
    };

    if (!dv_message_eq(&dv_message_role_ref, ref, old))
        dv_problem_add(problems, DV_PROBLEM_INVALID, NULL, "roleRef",
                       dv_bad_object(members, DV_COUNT(members), problems->arena),
                       "cannot change roleRef");
}

static void validate_binding(struct dv_problems *problems, const struct dv_validation *what,
                             bool is_namespaced)
{
    const struct dv_api_role_binding *binding = what->value;
    const struct dv_api_role_binding *old = what->old;
    struct dv_field_path path = dv_path_name(NULL, "subjects");

    check_meta(problems, &binding->metadata, is_namespaced);
    check_role_ref(problems, &binding->role_ref, is_namespaced);
    for (size_t i = 0; i < binding->n_subjects && !dv_problems_are_full(problems); i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        check_subject(problems, &item, &binding->subjects[i], is_namespaced);
    }
    if (!old)
        return;
    dv_check_kind_meta_update(problems, &binding->metadata, &old->metadata);
    check_same_role(problems, &binding->role_ref, &old->role_ref);
}

void dv_validate_role_binding(struct dv_problems *problems, const struct dv_validation *what)
{
    validate_binding(problems, what, true);
}

void dv_validate_cluster_role_binding(struct dv_problems *problems,
                                      const struct dv_validation *what)
{
    validate_binding(problems, what, false);
}

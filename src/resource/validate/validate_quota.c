/* validate_quota.c - quotas of a namespace: amounts by name, and the pods that they are for;
 * budgets of disruptions: how many pods have to stay. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/quota_use.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/validate_kinds.h"

static const char unsupported[] = "unsupported scope";
static const char misapplied[] = "unsupported scope applied to resource";

static bool is_of_pods(dv_str resource)
{
    static const dv_str names[] = {
        DV_STR_INIT("cpu"),        DV_STR_INIT("memory"),        DV_STR_INIT("requests.cpu"),
        DV_STR_INIT("limits.cpu"), DV_STR_INIT("limits.memory"), DV_STR_INIT("requests.memory"),
    };

    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (dv_str_eq(resource, names[i]))
            return true;
    return dv_str_eq(resource, DV_STR("pods"));
}

static bool is_valid_for(enum dv_quota_scope scope, dv_str resource)
{
    switch (scope) {
    case DV_SCOPE_BEST_EFFORT:
        return dv_str_eq(resource, DV_STR("pods"));
    case DV_SCOPE_NOT_BEST_EFFORT:
    case DV_SCOPE_TERMINATING:
    case DV_SCOPE_NOT_TERMINATING:
    case DV_SCOPE_PRIORITY_CLASS:
    case DV_SCOPE_CROSS_NAMESPACE_AFFINITY:
        return is_of_pods(resource);
    case DV_SCOPE_VOLUME_ATTRIBUTES_CLASS:
        return dv_str_eq(resource, DV_STR("persistentvolumeclaims")) ||
               dv_str_eq(resource, DV_STR("requests.storage"));
    case DV_SCOPE_NONE:
        break;
    }
    return true;
}

/* How many of the quota's resources the scope cannot be for: each is told by itself. */
static size_t count_misapplied(const struct dv_api_resource_quota_spec *spec, dv_str scope)
{
    size_t n = 0;

    for (size_t i = 0; i < spec->n_hard; i++)
        n += dv_is_quota_resource(spec->hard[i].key) &&
             !is_valid_for(dv_quota_scope_of(scope), spec->hard[i].key);
    return n;
}

/* The number of pairs of scopes that exclude each other; `set` has a bit for each scope. */
static size_t count_conflicts(unsigned set)
{
    const unsigned efforts = 1u << DV_SCOPE_BEST_EFFORT | 1u << DV_SCOPE_NOT_BEST_EFFORT;
    const unsigned ends = 1u << DV_SCOPE_TERMINATING | 1u << DV_SCOPE_NOT_TERMINATING;

    return (size_t)((set & efforts) == efforts) + (size_t)((set & ends) == ends);
}

static void check_scopes(struct dv_problems *problems, const struct dv_field_path *path,
                         const struct dv_api_resource_quota_spec *spec)
{
    struct dv_bad_value all = dv_bad_strs(spec->scopes, spec->n_scopes, problems->arena);
    unsigned set = 0;

    for (size_t i = 0; i < spec->n_scopes; i++) {
        enum dv_quota_scope scope = dv_quota_scope_of(spec->scopes[i]);

        if (scope == DV_SCOPE_NONE)
            dv_problem_add(problems, DV_PROBLEM_INVALID, path, "scopes", all, "%s", unsupported);
        for (size_t n = count_misapplied(spec, spec->scopes[i]); n > 0; n--)
            dv_problem_add(problems, DV_PROBLEM_INVALID, path, "scopes", all, "%s", misapplied);
        set |= 1u << scope;
    }
    for (size_t n = count_conflicts(set); n > 0; n--)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "scopes", all, "conflicting scopes");
}

/* Checks the operator and values of an expression. */
static void check_operator(struct dv_problems *problems, const struct dv_field_path *path,
                           const struct dv_api_scoped_resource_selector_requirement *term)
{
    enum dv_quota_scope scope = dv_quota_scope_of(term->scope_name);
    bool has_values =
        dv_str_eq(term->operator, DV_STR("In")) || dv_str_eq(term->operator, DV_STR("NotIn"));
    bool is_about_key = dv_str_eq(term->operator, DV_STR("Exists")) ||
                        dv_str_eq(term->operator, DV_STR("DoesNotExist"));

    if (scope != DV_SCOPE_NONE && scope != DV_SCOPE_PRIORITY_CLASS &&
        scope != DV_SCOPE_VOLUME_ATTRIBUTES_CLASS && !dv_str_eq(term->operator, DV_STR("Exists")))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "operator", dv_bad_str(term->operator),
                       "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "
                       "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                       "ResourceQuotaScopeNotBestEffort or "
                       "ResourceQuotaScopeCrossNamespacePodAffinity");
    if (has_values && term->n_values == 0)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, "values", dv_bad_none(),
                       "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                       "selector");
    else if (is_about_key && term->n_values > 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "values",
                       dv_bad_strs(term->values, term->n_values, problems->arena),
                       "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope "
                       "selector");
    else if (!has_values && !is_about_key)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "operator", dv_bad_str(term->operator),
                       "not a valid selector operator");
}

static void check_selector(struct dv_problems *problems, const struct dv_field_path *spec_path,
                           const struct dv_api_resource_quota_spec *spec)
{
    struct dv_field_path selector = dv_path_name(spec_path, "scopeSelector");
    struct dv_field_path path = dv_path_name(&selector, "matchExpressions");
    struct dv_bad_value all =
        dv_bad_message(&dv_message_scope_selector, spec->scope_selector, problems->arena);
    unsigned set = 0;

    for (size_t i = 0; i < spec->scope_selector->n_match_expressions; i++) {
        const struct dv_api_scoped_resource_selector_requirement *term =
            &spec->scope_selector->match_expressions[i];

        if (dv_quota_scope_of(term->scope_name) == DV_SCOPE_NONE)
            dv_problem_add(problems, DV_PROBLEM_INVALID, &path, "scopeName",
                           dv_bad_str(term->scope_name), "%s", unsupported);
        for (size_t n = count_misapplied(spec, term->scope_name); n > 0; n--)
            dv_problem_add(problems, DV_PROBLEM_INVALID, &path, NULL, all, "%s", misapplied);
        check_operator(problems, &path, term);
        set |= 1u << dv_quota_scope_of(term->scope_name);
    }
    for (size_t n = count_conflicts(set); n > 0; n--)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, NULL,
                       dv_bad_strs(spec->scopes, spec->n_scopes, problems->arena),
                       "conflicting scopes");
}

static bool has_scope(const struct dv_api_resource_quota_spec *spec, dv_str scope)
{
    for (size_t i = 0; i < spec->n_scopes; i++)
        if (dv_str_eq(spec->scopes[i], scope))
            return true;
    return false;
}

/* Whether every scope of `a` is one of `b`. */
static bool is_within(const struct dv_api_resource_quota_spec *a,
                      const struct dv_api_resource_quota_spec *b)
{
    for (size_t i = 0; i < a->n_scopes; i++)
        if (!has_scope(b, a->scopes[i]))
            return false;
    return true;
}

static bool is_too_many(struct dv_problems *problems, const struct dv_field_path *path,
                        const char *name, size_t n, size_t max)
{
    if (n <= max)
        return false;
    dv_too_many(problems, path, name, n, max);
    return true;
}

/* Whether the quota has more of something than can be held against every object. */
static bool is_too_large(struct dv_problems *problems, const struct dv_field_path *spec_path,
                         const struct dv_api_resource_quota_spec *spec)
{
    struct dv_field_path path = dv_path_name(spec_path, "scopeSelector");
    const struct dv_api_scope_selector *selector = spec->scope_selector;
    size_t n_terms = selector ? selector->n_match_expressions : 0;

    if (is_too_many(problems, spec_path, "hard", spec->n_hard, DV_QUOTA_RESOURCES_MAX) ||
        is_too_many(problems, spec_path, "scopes", spec->n_scopes, DV_QUOTA_SCOPES_MAX) ||
        is_too_many(problems, &path, "matchExpressions", n_terms, DV_QUOTA_SCOPES_MAX))
        return true;
    path = dv_path_name(&path, "matchExpressions");
    for (size_t i = 0; i < n_terms; i++)
        if (is_too_many(problems, &path, "values", selector->match_expressions[i].n_values,
                        DV_QUOTA_VALUES_MAX))
            return true;
    return false;
}

static void check_spec(struct dv_problems *problems, const struct dv_api_resource_quota_spec *spec,
                       const struct dv_api_resource_quota_spec *old)
{
    static const struct dv_field_path path = {.kind = PATH_NAME, .name = "spec"};
    struct dv_field_path hard = dv_path_name(&path, "hard");

    if (is_too_large(problems, &path, spec))
        return;
    dv_check_quota_amounts(problems, &hard, spec->hard, spec->n_hard);
    check_scopes(problems, &path, spec);
    if (spec->scope_selector)
        check_selector(problems, &path, spec);
    if (old && (!is_within(spec, old) || !is_within(old, spec)))
        dv_immutable(problems, &path, "scopes",
                     dv_bad_strs(spec->scopes, spec->n_scopes, problems->arena));
}

void dv_validate_quota(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, true};
    static const struct dv_field_path status = {.kind = PATH_NAME, .name = "status"};
    const struct dv_api_resource_quota *quota = what->value;
    const struct dv_api_resource_quota *old = what->old;
    struct dv_field_path hard = dv_path_name(&status, "hard");
    struct dv_field_path used = dv_path_name(&status, "used");

    if (old)
        dv_check_kind_meta_update(problems, &quota->metadata, &old->metadata);
    else
        dv_check_meta(problems, &quota->metadata, &rules);
    if (what->operation != DV_UPDATE_STATUS) {
        check_spec(problems, &quota->spec, old ? &old->spec : NULL);
        return;
    }
    if (is_too_many(problems, &status, "hard", quota->status.n_hard, DV_QUOTA_RESOURCES_MAX) ||
        is_too_many(problems, &status, "used", quota->status.n_used, DV_QUOTA_RESOURCES_MAX))
        return;
    dv_check_quota_amounts(problems, &hard, quota->status.hard, quota->status.n_hard);
    dv_check_quota_amounts(problems, &used, quota->status.used, quota->status.n_used);
}

/* ---- how many pods have to stay ---- */

static void check_amount(struct dv_problems *problems, const struct dv_field_path *path,
                         const char *name, const struct dv_int_or_str *amount)
{
    if (!amount)
        return;
    dv_check_int_or_percent(problems, path, name, amount);
    dv_check_not_over_all(problems, path, name, amount);
}

static void check_budget(struct dv_problems *problems,
                         const struct dv_api_pod_disruption_budget_spec *spec)
{
    static const dv_str policies[] = {DV_STR_INIT("AlwaysAllow"), DV_STR_INIT("IfHealthyBudget")};
    struct dv_field_path path = dv_path_name(NULL, "spec");
    struct dv_field_path selector = dv_path_name(&path, "selector");

    if (spec->min_available && spec->max_unavailable)
        dv_problem_add(
            problems, DV_PROBLEM_INVALID, &path, NULL,
            dv_bad_message(&dv_message_pod_disruption_budget_spec, spec, problems->arena),
            "minAvailable and maxUnavailable cannot be both set");
    check_amount(problems, &path, "minAvailable", spec->min_available);
    check_amount(problems, &path, "maxUnavailable", spec->max_unavailable);
    if (spec->selector)
        dv_check_label_selector(problems, &selector, spec->selector, false);
    if (spec->unhealthy_pod_eviction_policy.n > 0)
        dv_check_one_of(problems, &path, "unhealthyPodEvictionPolicy",
                        spec->unhealthy_pod_eviction_policy, policies, DV_COUNT(policies));
}

static void check_budget_status(struct dv_problems *problems,
                                const struct dv_api_pod_disruption_budget_status *status)
{
    struct dv_field_path path = dv_path_name(NULL, "status");
    struct dv_field_path conditions = dv_path_name(&path, "conditions");
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"disruptionsAllowed", status->disruptions_allowed},
        {"currentHealthy",     status->current_healthy    },
        {"desiredHealthy",     status->desired_healthy    },
        {"expectedPods",       status->expected_pods      },
    };

    dv_check_conditions(problems, &conditions, status->conditions, status->n_conditions);
    for (size_t i = 0; i < DV_COUNT(numbers); i++)
        dv_check_not_negative(problems, &path, numbers[i].name, numbers[i].value);
}

void dv_validate_disruption_budget(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, true};
    const struct dv_api_pod_disruption_budget *budget = what->value;
    const struct dv_api_pod_disruption_budget *old = what->old;

    if (old)
        dv_check_kind_meta_update(problems, &budget->metadata, &old->metadata);
    else
        dv_check_meta(problems, &budget->metadata, &rules);
    if (what->operation == DV_UPDATE_STATUS)
        check_budget_status(problems, &budget->status);
    else
        check_budget(problems, &budget->spec);
}

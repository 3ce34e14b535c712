/* validate_vap_match.c - which requests an admission policy matches: operations, groups, versions,
 * resources and selectors. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"

#define ANY DV_STR("*")

static bool has(const dv_str *texts, size_t n, dv_str text)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(texts[i], text))
            return true;
    return false;
}

/* Checks a list that must not be empty, and in which "*" has to be alone. */
static void check_list(struct dv_problems *problems, const struct dv_field_path *path,
                       const char *name, const dv_str *texts, size_t n, const char *what)
{
    if (n == 0)
        dv_required(problems, path, name);
    if (n > 1 && has(texts, n, ANY))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name,
                       dv_bad_strs(texts, n, problems->arena),
                       "if '*' is present, must not specify other %s", what);
}

static void check_operations(struct dv_problems *problems, const struct dv_field_path *path,
                             const struct dv_api_rule_with_operations *rule)
{
    static const dv_str supported[] = {DV_STR_INIT("*"), DV_STR_INIT("CONNECT"),
                                       DV_STR_INIT("CREATE"), DV_STR_INIT("DELETE"),
                                       DV_STR_INIT("UPDATE")};
    struct dv_field_path operations = dv_path_name(path, "operations");

    check_list(problems, path, "operations", rule->operations, rule->n_operations, "operations");
    for (size_t i = 0; i < rule->n_operations; i++) {
        struct dv_field_path item = dv_path_index(&operations, i);

        dv_check_one_of(problems, &item, NULL, rule->operations[i], supported, DV_COUNT(supported));
    }
}

static void split(dv_str text, dv_str *resource, dv_str *subresource)
{
    size_t slash = dv_str_find_char(text, '/');

    *resource = dv_str_slice(text, 0, slash);
    *subresource = slash < text.n ? dv_str_slice(text, slash + 1, text.n) : DV_STR_NONE;
}

/* Whether one of the first `n` says all that entry n says: "pods/" for "pods/log", or "/log". */
static bool is_covered(const dv_str *resources, size_t n, bool by_resource)
{
    dv_str resource, subresource, other, other_sub;

    split(resources[n], &resource, &subresource);
    for (size_t i = 0; i < n; i++) {
        if (dv_str_find_char(resources[i], '/') == resources[i].n)
            continue;
        split(resources[i], &other, &other_sub);
        if (by_resource ? dv_str_eq(other_sub, ANY) && dv_str_eq(other, resource)
                        : dv_str_eq(other, ANY) && dv_str_eq(other_sub, subresource))
            return true;
    }
    return false;
}

static void check_resource(struct dv_problems *problems, const struct dv_field_path *path,
                           const dv_str *resources, size_t i)
{
    dv_str resource, subresource;

    split(resources[i], &resource, &subresource);
    if (is_covered(resources, i, true))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL, dv_bad_str(resources[i]),
                       "if '%.*s/*' is present, must not specify %.*s", DV_FMT(resource),
                       DV_FMT(resources[i]));
    if (is_covered(resources, i, false))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL, dv_bad_str(resources[i]),
                       "if '*/%.*s' is present, must not specify %.*s", DV_FMT(subresource),
                       DV_FMT(resources[i]));
}

static void check_resources(struct dv_problems *problems, const struct dv_field_path *path,
                            const dv_str *resources, size_t n)
{
    struct dv_field_path list = dv_path_name(path, "resources");
    bool is_plain = false; /* the last one that has no subresource is no wildcard */

    if (n == 0)
        dv_required(problems, path, "resources");
    for (size_t i = 0; i < n && !dv_problems_are_full(problems); i++) {
        struct dv_field_path item = dv_path_index(&list, i);

        if (resources[i].n == 0)
            dv_required(problems, &item, NULL);
        else if (dv_str_find_char(resources[i], '/') == resources[i].n)
            is_plain = !dv_str_eq(resources[i], ANY);
        else
            check_resource(problems, &item, resources, i);
    }
    if (n > 1 && has(resources, n, DV_STR("*/*")))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "resources",
                       dv_bad_strs(resources, n, problems->arena),
                       "if '*/*' is present, must not specify other resources");
    if (is_plain && has(resources, n, ANY))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "resources",
                       dv_bad_strs(resources, n, problems->arena),
                       "if '*' is present, must not specify other resources without "
                       "subresources");
}

void dv_check_rule_with_operations(struct dv_problems *problems, const struct dv_field_path *path,
                                   const struct dv_api_rule_with_operations *with)
{
    static const dv_str scopes[] = {DV_STR_INIT("*"), DV_STR_INIT("Cluster"),
                                    DV_STR_INIT("Namespaced")};
    const struct dv_api_rule *rule = &with->rule;
    struct dv_field_path versions = dv_path_name(path, "apiVersions");

    check_operations(problems, path, with);
    check_list(problems, path, "apiGroups", rule->api_groups, rule->n_api_groups, "API groups");
    check_list(problems, path, "apiVersions", rule->api_versions, rule->n_api_versions,
               "API versions");
    for (size_t i = 0; i < rule->n_api_versions; i++) {
        struct dv_field_path item = dv_path_index(&versions, i);

        if (rule->api_versions[i].n == 0)
            dv_required(problems, &item, NULL);
    }
    check_resources(problems, path, rule->resources, rule->n_resources);
    if (rule->scope.p)
        dv_check_one_of(problems, path, "scope", rule->scope, scopes, DV_COUNT(scopes));
}

static void check_rule(struct dv_problems *problems, const struct dv_field_path *path,
                       const struct dv_api_named_rule_with_operations *named)
{
    struct dv_field_path names = dv_path_name(path, "resourceNames");

    for (size_t i = 0; i < named->n_resource_names; i++) {
        struct dv_field_path item = dv_path_index(&names, i);

        dv_check_path_segment(problems, &item, NULL, named->resource_names[i]);
    }
    dv_check_unique(problems, &names, NULL, named->resource_names, named->n_resource_names,
                    sizeof(named->resource_names[0]));
    dv_check_rule_with_operations(problems, path, &named->rule_with_operations);
}

static void check_rules(struct dv_problems *problems, const struct dv_field_path *path,
                        const char *name, const struct dv_api_named_rule_with_operations *rules,
                        size_t n)
{
    struct dv_field_path list = dv_path_name(path, name);

    for (size_t i = 0; i < n && !dv_problems_are_full(problems); i++) {
        struct dv_field_path item = dv_path_index(&list, i);

        check_rule(problems, &item, &rules[i]);
    }
}

void dv_check_match_policy(struct dv_problems *problems, const struct dv_field_path *path,
                           dv_str policy)
{
    static const dv_str policies[] = {DV_STR_INIT("Equivalent"), DV_STR_INIT("Exact")};

    dv_check_one_of(problems, path, "matchPolicy", policy, policies, DV_COUNT(policies));
}

void dv_check_match_resources(struct dv_problems *problems, const struct dv_field_path *path,
                              const struct dv_api_match_resources *match)
{
    struct dv_field_path namespaces = dv_path_name(path, "namespaceSelector");
    struct dv_field_path objects = dv_path_name(path, "objectSelector");

    dv_check_match_policy(problems, path, match->match_policy);
    if (match->namespace_selector)
        dv_check_label_selector(problems, &namespaces, match->namespace_selector, false);
    if (match->object_selector)
        dv_check_label_selector(problems, &objects, match->object_selector, false);
    check_rules(problems, path, "resourceRules", match->resource_rules, match->n_resource_rules);
    check_rules(problems, path, "excludeResourceRules", match->exclude_resource_rules,
                match->n_exclude_resource_rules);
}

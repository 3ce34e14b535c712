#include "vap/vap_match.h"

#include <stddef.h>

#include "base/str.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "vap/vap.h"

#define ANY DV_STR("*")

static const dv_str operations[] = {
    [DV_VAP_CREATE] = DV_STR_INIT("CREATE"),
    [DV_VAP_UPDATE] = DV_STR_INIT("UPDATE"),
    [DV_VAP_DELETE] = DV_STR_INIT("DELETE"),
    [DV_VAP_CONNECT] = DV_STR_INIT("CONNECT"),
};

/* ---- rules ---- */

static bool has(const dv_str *texts, size_t n, dv_str text)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(texts[i], text) || dv_str_eq(texts[i], ANY))
            return true;
    return false;
}

static bool is_in_scope(dv_str scope, const struct dv_vap_write *write)
{
    if (dv_str_eq(scope, DV_STR("Namespaced")))
        return write->kind->is_namespaced;
    if (dv_str_eq(scope, DV_STR("Cluster")))
        return !write->kind->is_namespaced;
    return true;
}

/* "pods" is the resource alone, "pods/log" a subresource of it, "pods/STAR" both and all others. */
static bool has_resource(const struct dv_api_rule *rule, const struct dv_vap_write *write)
{
    for (size_t i = 0; i < rule->n_resources; i++) {
        dv_str text = rule->resources[i];
        size_t slash = dv_str_find_char(text, '/');
        dv_str resource = dv_str_slice(text, 0, slash);
        dv_str subresource = slash < text.n ? dv_str_slice(text, slash + 1, text.n) : DV_STR_NONE;

        if ((dv_str_eq(resource, ANY) || dv_str_eq(resource, write->kind->plural)) &&
            (dv_str_eq(subresource, ANY) || dv_str_eq(subresource, write->subresource)))
            return true;
    }
    return false;
}

static bool is_named(const struct dv_api_named_rule_with_operations *named, dv_str name)
{
    for (size_t i = 0; i < named->n_resource_names; i++)
        if (dv_str_eq(named->resource_names[i], name))
            return true;
    return named->n_resource_names == 0;
}

static bool matches_rule(const struct dv_api_named_rule_with_operations *named,
                         const struct dv_vap_write *write, const struct dv_api_version *version)
{
    const struct dv_api_rule_with_operations *with = &named->rule_with_operations;
    const struct dv_api_rule *rule = &with->rule;

    return is_in_scope(rule->scope, write) &&
           has(with->operations, with->n_operations, operations[write->operation]) &&
           has(rule->api_groups, rule->n_api_groups, version->group) &&
           has(rule->api_versions, rule->n_api_versions, version->version) &&
           has_resource(rule, write) && is_named(named, write->name);
}

/* Whether a rule names the request as it was made or, unless the match is to be exact, in another
 * version. */
static bool matches_rules(const struct dv_api_named_rule_with_operations *rules, size_t n,
                          bool is_exact, const struct dv_vap_write *write,
                          const struct dv_api_version **version)
{
    *version = write->version;
    for (size_t i = 0; i < n; i++)
        if (matches_rule(&rules[i], write, write->version))
            return true;
    for (size_t i = 0; i < n && !is_exact; i++)
        for (size_t v = 0; v < write->kind->n_versions; v++) {
            *version = &write->kind->versions[v];
            if (*version != write->version && matches_rule(&rules[i], write, *version))
                return true;
        }
    *version = write->version;
    return false;
}

/* ---- selectors ---- */

static bool selects(const struct dv_label_selector *selector, const struct dv_api_object_meta *meta)
{
    return meta && dv_label_selector_matches(selector, meta->labels, meta->n_labels);
}

/* Objects in no namespace are never excluded by it; a Namespace counts by its own labels. */
static bool is_in_namespaces(const struct dv_vap_match *match, const struct dv_vap_write *write,
                             const struct dv_vap_labels *labels)
{
    if (!match->namespaces)
        return false;
    if (dv_label_selector_is_empty(match->namespaces))
        return true;
    if (write->kind->id == DV_KIND_NAMESPACE)
        return selects(match->namespaces, write->object ? labels->object : labels->old);
    return !write->kind->is_namespaced || selects(match->namespaces, labels->namespace);
}

static bool is_among_objects(const struct dv_vap_match *match, const struct dv_vap_labels *labels)
{
    if (!match->objects)
        return false;
    return dv_label_selector_is_empty(match->objects) || selects(match->objects, labels->object) ||
           selects(match->objects, labels->old);
}

bool dv_vap_matches(const struct dv_vap_match *match, const struct dv_vap_write *write,
                    const struct dv_vap_labels *labels, const struct dv_api_version **version)
{
    const struct dv_api_match_resources *value = match->value;
    bool is_exact;

    *version = write->version;
    if (!value)
        return true;
    is_exact = dv_str_eq(value->match_policy, DV_STR("Exact"));
    if (!is_in_namespaces(match, write, labels) || !is_among_objects(match, labels))
        return false;
    if (matches_rules(value->exclude_resource_rules, value->n_exclude_resource_rules, is_exact,
                      write, version))
        return false;
    return value->n_resource_rules == 0 ||
           matches_rules(value->resource_rules, value->n_resource_rules, is_exact, write, version);
}

struct dv_vap_match dv_vap_match_of(const struct dv_api_match_resources *value,
                                    struct dv_arena *arena)
{
    static const struct dv_api_label_selector everything;
    struct dv_vap_match match = {.value = value};

    if (!value)
        return match;
    match.namespaces = dv_label_selector_of(
        value->namespace_selector ? value->namespace_selector : &everything, arena);
    match.objects =
        dv_label_selector_of(value->object_selector ? value->object_selector : &everything, arena);
    return match;
}

/* ---- kinds ---- */

static bool names_resource(const struct dv_api_rule *rule, dv_str plural)
{
    for (size_t i = 0; i < rule->n_resources; i++) {
        dv_str resource =
            dv_str_slice(rule->resources[i], 0, dv_str_find_char(rule->resources[i], '/'));

        if (dv_str_eq(resource, plural) || dv_str_eq(resource, DV_STR("*")))
            return true;
    }
    return false;
}

bool dv_vap_match_is_about(const struct dv_vap_match *match, const struct dv_kind *kind)
{
    const struct dv_api_match_resources *value = match->value;

    for (size_t i = 0; value && i < value->n_resource_rules; i++) {
        const struct dv_api_rule *rule = &value->resource_rules[i].rule_with_operations.rule;

        if (!names_resource(rule, kind->plural))
            continue;
        for (size_t v = 0; v < kind->n_versions; v++)
            if (has(rule->api_groups, rule->n_api_groups, kind->versions[v].group))
                return true;
    }
    return false;
}

bool dv_vap_is_exempt(const struct dv_kind *kind)
{
    return dv_str_eq(kind->versions->group, DV_STR(DV_ADMISSION_GROUP));
}

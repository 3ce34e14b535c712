/* quota_scope.c - which pods a quota is for. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/prepare.h"
#include "resource/quota_use.h"
#include "resource/resource.h"

enum dv_quota_scope dv_quota_scope_of(dv_str name)
{
    static const struct {
        dv_str name;
        enum dv_quota_scope scope;
    } scopes[] = {
        {DV_STR_INIT("Terminating"),               DV_SCOPE_TERMINATING             },
        {DV_STR_INIT("NotTerminating"),            DV_SCOPE_NOT_TERMINATING         },
        {DV_STR_INIT("BestEffort"),                DV_SCOPE_BEST_EFFORT             },
        {DV_STR_INIT("NotBestEffort"),             DV_SCOPE_NOT_BEST_EFFORT         },
        {DV_STR_INIT("PriorityClass"),             DV_SCOPE_PRIORITY_CLASS          },
        {DV_STR_INIT("CrossNamespacePodAffinity"), DV_SCOPE_CROSS_NAMESPACE_AFFINITY},
        {DV_STR_INIT("VolumeAttributesClass"),     DV_SCOPE_VOLUME_ATTRIBUTES_CLASS },
    };

    for (size_t i = 0; i < DV_COUNT(scopes); i++)
        if (dv_str_eq(name, scopes[i].name))
            return scopes[i].scope;
    return DV_SCOPE_NONE;
}

static bool crosses(const struct dv_api_pod_affinity_term *terms, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (terms[i].n_namespaces > 0 || terms[i].namespace_selector)
            return true;
    return false;
}

static bool crosses_preferred(const struct dv_api_weighted_pod_affinity_term *terms, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (crosses(&terms[i].pod_affinity_term, 1))
            return true;
    return false;
}

static bool has_cross_namespace_affinity(const struct dv_api_affinity *affinity)
{
    const struct dv_api_pod_affinity *near = affinity ? affinity->pod_affinity : NULL;
    const struct dv_api_pod_anti_affinity *far = affinity ? affinity->pod_anti_affinity : NULL;

    return (near &&
            (crosses(near->required_during_scheduling_ignored_during_execution,
                     near->n_required_during_scheduling_ignored_during_execution) ||
             crosses_preferred(near->preferred_during_scheduling_ignored_during_execution,
                               near->n_preferred_during_scheduling_ignored_during_execution))) ||
           (far &&
            (crosses(far->required_during_scheduling_ignored_during_execution,
                     far->n_required_during_scheduling_ignored_during_execution) ||
             crosses_preferred(far->preferred_during_scheduling_ignored_during_execution,
                               far->n_preferred_during_scheduling_ignored_during_execution)));
}

/* An expression about the name of the pod's class; a pod without one has no such label, which NotIn
 * and DoesNotExist are true for. */
static bool is_of_class(const struct dv_api_pod *pod,
                        const struct dv_api_scoped_resource_selector_requirement *term)
{
    dv_str class = pod->spec.priority_class_name;
    bool is_in = false;

    if (!term || dv_str_eq(term->operator, DV_STR("Exists")))
        return class.n > 0;
    if (dv_str_eq(term->operator, DV_STR("DoesNotExist")))
        return class.n == 0;
    for (size_t i = 0; i < term->n_values; i++)
        is_in |= class.n > 0 && dv_str_eq(class, term->values[i]);
    return is_in == dv_str_eq(term->operator, DV_STR("In"));
}

/* `term` NULL: the scope stands alone. */
static bool is_within(const struct dv_api_pod *pod, enum dv_quota_scope scope,
                      const struct dv_api_scoped_resource_selector_requirement *term,
                      struct dv_arena *arena)
{
    const int64_t *deadline = pod->spec.active_deadline_seconds;
    bool has_deadline = deadline && *deadline >= 0;

    switch (scope) {
    case DV_SCOPE_TERMINATING:
        return has_deadline;
    case DV_SCOPE_NOT_TERMINATING:
        return !has_deadline;
    case DV_SCOPE_BEST_EFFORT:
        return dv_str_eq(dv_pod_qos_class(pod, arena), DV_STR("BestEffort"));
    case DV_SCOPE_NOT_BEST_EFFORT:
        return !dv_str_eq(dv_pod_qos_class(pod, arena), DV_STR("BestEffort"));
    case DV_SCOPE_PRIORITY_CLASS:
        return is_of_class(pod, term);
    case DV_SCOPE_CROSS_NAMESPACE_AFFINITY:
        return has_cross_namespace_affinity(pod->spec.affinity);
    case DV_SCOPE_VOLUME_ATTRIBUTES_CLASS:
    case DV_SCOPE_NONE:
        break;
    }
    return false;
}

bool dv_quota_is_for(const struct dv_api_resource_quota_spec *spec, const struct dv_kind *kind,
                     const void *value, struct dv_arena *arena)
{
    const struct dv_api_scope_selector *selector = spec->scope_selector;

    if (spec->n_scopes == 0 && (!selector || selector->n_match_expressions == 0))
        return true;
    if (kind->id != DV_KIND_POD)
        return false;
    for (size_t i = 0; i < spec->n_scopes; i++)
        if (!is_within(value, dv_quota_scope_of(spec->scopes[i]), NULL, arena))
            return false;
    for (size_t i = 0; selector && i < selector->n_match_expressions; i++)
        if (!is_within(value, dv_quota_scope_of(selector->match_expressions[i].scope_name),
                       &selector->match_expressions[i], arena))
            return false;
    return true;
}

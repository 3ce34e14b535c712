/* validate_affinity.c - which nodes and pods a pod wants to be near, apart from, or spread over. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/pod_checks.h"

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static void check_weight(struct dv_problems *problems, const struct dv_field_path *path,
                         int64_t weight)
{
    if (weight < 1 || weight > 100)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "weight", dv_bad_i64(weight),
                       "must be in the range 1-100");
}

/* -- Nodes ---------------------------------------------------------------------------------- */

static void check_node_affinity(struct dv_problems *problems, const struct dv_field_path *path,
                                const struct dv_api_node_affinity *affinity)
{
    struct dv_field_path required = dv_path_name(path, REQUIRED);
    struct dv_field_path preferred = dv_path_name(path, PREFERRED);

    if (affinity->required_during_scheduling_ignored_during_execution)
        dv_check_node_selector(problems, &required,
                               affinity->required_during_scheduling_ignored_during_execution);
    for (size_t i = 0; i < affinity->n_preferred_during_scheduling_ignored_during_execution; i++) {
        const struct dv_api_preferred_scheduling_term *term =
            &affinity->preferred_during_scheduling_ignored_during_execution[i];
        struct dv_field_path item = dv_path_index(&preferred, i);
        struct dv_field_path preference = dv_path_name(&item, "preference");

        check_weight(problems, &item, term->weight);
        dv_check_node_selector_term(problems, &preference, &term->preference);
    }
}

/* -- Pods ----------------------------------------------------------------------------------- */

static bool has_key(const dv_str *keys, size_t n, dv_str key)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(keys[i], key))
            return true;
    return false;
}

/* False: there are none, or there is nothing that they could add to. */
static bool check_label_keys(struct dv_problems *problems, const struct dv_field_path *path,
                             const dv_str *keys, size_t n,
                             const struct dv_api_label_selector *selector)
{
    if (n == 0)
        return false;
    if (!selector) {
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, path, NULL, dv_bad_none(),
                       "must not be specified when labelSelector is not set");
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(path, i);

        dv_check_label_name(problems, &item, NULL, keys[i]);
    }
    return true;
}

static void check_topology_key(struct dv_problems *problems, const struct dv_field_path *path,
                               dv_str key)
{
    if (key.n == 0)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, "topologyKey", dv_bad_none(),
                       "can not be empty");
    else
        dv_check_label_name(problems, path, "topologyKey", key);
}

static void check_term(struct dv_problems *problems, const struct dv_field_path *path,
                       const struct dv_api_pod_affinity_term *term)
{
    struct dv_field_path selector = dv_path_name(path, "labelSelector");
    struct dv_field_path namespaces = dv_path_name(path, "namespaceSelector");
    struct dv_field_path match = dv_path_name(path, "matchLabelKeys");
    struct dv_field_path mismatch = dv_path_name(path, "mismatchLabelKeys");

    if (term->label_selector)
        dv_check_label_selector(problems, &selector, term->label_selector, false);
    if (term->namespace_selector)
        dv_check_label_selector(problems, &namespaces, term->namespace_selector, false);
    for (size_t i = 0; i < term->n_namespaces; i++)
        dv_check_dns_label(problems, path, "namespace", term->namespaces[i]);
    (void)check_label_keys(problems, &match, term->match_label_keys, term->n_match_label_keys,
                           term->label_selector);
    (void)check_label_keys(problems, &mismatch, term->mismatch_label_keys,
                           term->n_mismatch_label_keys, term->label_selector);
    for (size_t i = 0; i < term->n_match_label_keys; i++) {
        struct dv_field_path item = dv_path_index(&match, i);

        if (has_key(term->mismatch_label_keys, term->n_mismatch_label_keys,
                    term->match_label_keys[i]))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &item, NULL,
                           dv_bad_str(term->match_label_keys[i]),
                           "exists in both matchLabelKeys and mismatchLabelKeys");
    }
    check_topology_key(problems, path, term->topology_key);
}

static void check_terms(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_api_pod_affinity_term *required, size_t n_required,
                        const struct dv_api_weighted_pod_affinity_term *preferred,
                        size_t n_preferred)
{
    struct dv_field_path requires = dv_path_name(path, REQUIRED);
    struct dv_field_path prefers = dv_path_name(path, PREFERRED);

    for (size_t i = 0; i < n_required; i++) {
        struct dv_field_path item = dv_path_index(&requires, i);

        check_term(problems, &item, &required[i]);
    }
    for (size_t i = 0; i < n_preferred; i++) {
        struct dv_field_path item = dv_path_index(&prefers, i);
        struct dv_field_path term = dv_path_name(&item, "podAffinityTerm");

        check_weight(problems, &item, preferred[i].weight);
        check_term(problems, &term, &preferred[i].pod_affinity_term);
    }
}

void dv_check_affinity(struct dv_problems *problems, const struct dv_field_path *path,
                       const struct dv_api_affinity *affinity)
{
    struct dv_field_path node = dv_path_name(path, "nodeAffinity");
    struct dv_field_path near = dv_path_name(path, "podAffinity");
    struct dv_field_path apart = dv_path_name(path, "podAntiAffinity");

    if (affinity->node_affinity)
        check_node_affinity(problems, &node, affinity->node_affinity);
    if (affinity->pod_affinity)
        check_terms(problems, &near,
                    affinity->pod_affinity->required_during_scheduling_ignored_during_execution,
                    affinity->pod_affinity->n_required_during_scheduling_ignored_during_execution,
                    affinity->pod_affinity->preferred_during_scheduling_ignored_during_execution,
                    affinity->pod_affinity->n_preferred_during_scheduling_ignored_during_execution);
    if (affinity->pod_anti_affinity)
        check_terms(
            problems, &apart,
            affinity->pod_anti_affinity->required_during_scheduling_ignored_during_execution,
            affinity->pod_anti_affinity->n_required_during_scheduling_ignored_during_execution,
            affinity->pod_anti_affinity->preferred_during_scheduling_ignored_during_execution,
            affinity->pod_anti_affinity->n_preferred_during_scheduling_ignored_during_execution);
}

/* -- Spread --------------------------------------------------------------------------------- */

static bool selects_by(const struct dv_api_label_selector *selector, dv_str key)
{
    for (size_t i = 0; i < selector->n_match_expressions; i++)
        if (dv_str_eq(selector->match_expressions[i].key, key))
            return true;
    return dv_entry_find(selector->match_labels, selector->n_match_labels, key) != NULL;
}

static void check_min_domains(struct dv_problems *problems, const struct dv_field_path *path,
                              const struct dv_api_topology_spread_constraint *constraint)
{
    if (!constraint->min_domains)
        return;
    if (*constraint->min_domains <= 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "minDomains",
                       dv_bad_i64(*constraint->min_domains), "must be greater than zero");
    if (!dv_str_eq(constraint->when_unsatisfiable, DV_STR("DoNotSchedule")))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "minDomains",
                       dv_bad_i64(*constraint->min_domains),
                       "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not %.*s",
                       DV_FMT(constraint->when_unsatisfiable));
}

static void check_constraint(struct dv_problems *problems, const struct dv_field_path *path,
                             const struct dv_api_topology_spread_constraint *constraint,
                             bool is_repeated)
{
    static const dv_str actions[] = {DV_STR_INIT("DoNotSchedule"), DV_STR_INIT("ScheduleAnyway")};
    static const dv_str policies[] = {DV_STR_INIT("Honor"), DV_STR_INIT("Ignore")};
    struct dv_field_path keys = dv_path_name(path, "matchLabelKeys");
    struct dv_field_path selector = dv_path_name(path, "labelSelector");

    if (constraint->max_skew <= 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "maxSkew",
                       dv_bad_i64(constraint->max_skew), "must be greater than zero");
    check_topology_key(problems, path, constraint->topology_key);
    dv_check_one_of(problems, path, "whenUnsatisfiable", constraint->when_unsatisfiable, actions,
                    DV_COUNT(actions));
    if (is_repeated)
        dv_problem_add(problems, DV_PROBLEM_DUPLICATE, path, "{topologyKey, whenUnsatisfiable}",
                       dv_bad_str(dv_str_printf(problems->arena, "{%.*s, %.*s}",
                                                DV_FMT(constraint->topology_key),
                                                DV_FMT(constraint->when_unsatisfiable))),
                       "%s", "");
    check_min_domains(problems, path, constraint);
    if (constraint->node_affinity_policy.p)
        dv_check_one_of(problems, path, "nodeAffinityPolicy", constraint->node_affinity_policy,
                        policies, DV_COUNT(policies));
    if (constraint->node_taints_policy.p)
        dv_check_one_of(problems, path, "nodeTaintsPolicy", constraint->node_taints_policy,
                        policies, DV_COUNT(policies));
    if (check_label_keys(problems, &keys, constraint->match_label_keys,
                         constraint->n_match_label_keys, constraint->label_selector))
        for (size_t i = 0; i < constraint->n_match_label_keys; i++) {
            struct dv_field_path item = dv_path_index(&keys, i);

            if (selects_by(constraint->label_selector, constraint->match_label_keys[i]))
                dv_problem_add(problems, DV_PROBLEM_INVALID, &item, NULL,
                               dv_bad_str(constraint->match_label_keys[i]),
                               "exists in both matchLabelKeys and labelSelector");
        }
    if (constraint->label_selector)
        dv_check_label_selector(problems, &selector, constraint->label_selector, false);
}

void dv_check_spread(struct dv_problems *problems, const struct dv_field_path *path,
                     struct dv_api_topology_spread_constraint *constraints, size_t n)
{
    DV_CLEANUP(dv_map_fini) struct dv_map known;

    dv_map_init(&known);
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(path, i);
        dv_str pair =
            dv_str_printf(problems->arena, "%.*s %.*s", DV_FMT(constraints[i].topology_key),
                          DV_FMT(constraints[i].when_unsatisfiable));
        bool is_repeated = dv_map_set(&known, pair, &constraints[i]) != NULL;

        check_constraint(problems, &item, &constraints[i], is_repeated);
    }
}

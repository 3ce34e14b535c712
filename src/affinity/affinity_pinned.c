/* affinity_pinned.c - pods whose node affinity names their nodes, as the controller of DaemonSets
 * writes it: only those nodes are looked at, however many there are. Pure. */
#include <stdbool.h>
#include <stddef.h>

#include "affinity/affinity.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

static const struct dv_api_node_selector *required(const struct dv_api_pod_spec *pod)
{
    const struct dv_api_node_affinity *affinity =
        pod->affinity ? pod->affinity->node_affinity : NULL;

    return affinity ? affinity->required_during_scheduling_ignored_during_execution : NULL;
}

static bool is_by_name(const struct dv_api_node_selector_requirement *field)
{
    return dv_str_eq(field->key, DV_STR("metadata.name")) &&
           dv_str_eq(field->operator, DV_STR("In"));
}

static bool has_value(const struct dv_api_node_selector_requirement *field, dv_str name)
{
    for (size_t i = 0; i < field->n_values; i++)
        if (dv_str_eq(field->values[i], name))
            return true;
    return false;
}

/* The first field of the term that names nodes; NULL: none does. */
static const struct dv_api_node_selector_requirement *
naming(const struct dv_api_node_selector_term *term)
{
    for (size_t i = 0; i < term->n_match_fields; i++)
        if (is_by_name(&term->match_fields[i]))
            return &term->match_fields[i];
    return NULL;
}

/* Whether all fields of the term that name nodes name this one. */
static bool is_named_by_all(const struct dv_api_node_selector_term *term, dv_str name)
{
    for (size_t i = 0; i < term->n_match_fields; i++)
        if (is_by_name(&term->match_fields[i]) && !has_value(&term->match_fields[i], name))
            return false;
    return true;
}

bool dv_affinity_pinned(const struct dv_api_pod_spec *pod, struct dv_arena *arena,
                        struct dv_affinity_names *names)
{
    const struct dv_api_node_selector *selector = required(pod);
    DV_CLEANUP(dv_map_fini) struct dv_map known = {0};

    *names = (struct dv_affinity_names){0};
    if (!selector || selector->n_node_selector_terms == 0)
        return false;
    for (size_t i = 0; i < selector->n_node_selector_terms; i++)
        if (!naming(&selector->node_selector_terms[i]))
            return false;
    dv_map_init(&known);
    for (size_t i = 0; i < selector->n_node_selector_terms; i++) {
        const struct dv_api_node_selector_term *term = &selector->node_selector_terms[i];
        const struct dv_api_node_selector_requirement *field = naming(term);

        for (size_t j = 0; j < field->n_values; j++)
            if (is_named_by_all(term, field->values[j]) &&
                !dv_map_set(&known, field->values[j], &field->values[j]))
                *dv_vec_add_in(names, arena) = field->values[j];
    }
    return true;
}

bool dv_affinity_is_pinned_elsewhere(const struct dv_api_pod_spec *pod, dv_str node)
{
    const struct dv_api_node_selector *selector = required(pod);
    const struct dv_api_node_selector_requirement *field;

    if (!selector || selector->n_node_selector_terms != 1)
        return false;
    field = naming(&selector->node_selector_terms[0]);
    return field && field->n_values == 1 && !dv_str_eq(field->values[0], node);
}

/* select_node.c - node selectors of the core API: terms of which one must match. */
#include "resource/select.h"

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/name.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/resource.h"

enum node_op {
    OP_IN,
    OP_NOT_IN,
    OP_EXISTS,
    OP_DOES_NOT_EXIST,
    OP_GT,
    OP_LT,
    OP_UNKNOWN,
};

static enum node_op parse_op(dv_str text)
{
    static const dv_str names[] = {
        DV_STR_INIT("In"),           DV_STR_INIT("NotIn"), DV_STR_INIT("Exists"),
        DV_STR_INIT("DoesNotExist"), DV_STR_INIT("Gt"),    DV_STR_INIT("Lt"),
    };

    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (dv_str_eq(names[i], text))
            return (enum node_op)i;
    return OP_UNKNOWN;
}

static bool has_value(const struct dv_api_node_selector_requirement *requirement, dv_str value)
{
    for (size_t i = 0; i < requirement->n_values; i++)
        if (dv_str_eq(requirement->values[i], value))
            return true;
    return false;
}

/* Whether the requirement can be evaluated. */
static bool is_valid(const struct dv_api_node_selector_requirement *requirement, enum node_op op)
{
    for (size_t i = 0; i < requirement->n_values; i++)
        if (!dv_is_label_value(requirement->values[i]))
            return false;
    if (!dv_is_label_name(requirement->key))
        return false;
    switch (op) {
    case OP_IN:
    case OP_NOT_IN:
        return requirement->n_values > 0;
    case OP_EXISTS:
    case OP_DOES_NOT_EXIST:
        return requirement->n_values == 0;
    case OP_GT:
    case OP_LT:
        return requirement->n_values == 1;
    case OP_UNKNOWN:
        break;
    }
    return false;
}

static bool matches_label(const struct dv_api_node_selector_requirement *requirement,
                          const struct dv_str_entry *labels, size_t n_labels)
{
    const struct dv_str_entry *label = dv_entry_find(labels, n_labels, requirement->key);
    enum node_op op = parse_op(requirement->operator);
    bool is_listed = label && has_value(requirement, label->value);
    int64_t bound;
    int64_t number;

    if (!is_valid(requirement, op))
        return false;
    switch (op) {
    case OP_IN:
        return is_listed;
    case OP_NOT_IN:
        return !is_listed;
    case OP_EXISTS:
        return label != NULL;
    case OP_DOES_NOT_EXIST:
        return !label;
    case OP_GT:
    case OP_LT:
        if (!label || !dv_str_to_i64(requirement->values[0], &bound) ||
            !dv_str_to_i64(label->value, &number))
            return false;
        return op == OP_GT ? number > bound : number < bound;
    case OP_UNKNOWN:
        break;
    }
    return false;
}

/* Matches the node's name, which is the only field there is. */
static bool matches_name(const struct dv_api_node_selector_requirement *requirement,
                         dv_str node_name)
{
    enum node_op op = parse_op(requirement->operator);

    if (!dv_str_eq(requirement->key, DV_STR("metadata.name")) || requirement->n_values != 1)
        return false;
    if (op == OP_IN)
        return dv_str_eq(requirement->values[0], node_name);
    return op == OP_NOT_IN && !dv_str_eq(requirement->values[0], node_name);
}

static bool matches_term(const struct dv_api_node_selector_term *term, dv_str node_name,
                         const struct dv_str_entry *labels, size_t n_labels)
{
    if (term->n_match_expressions == 0 && term->n_match_fields == 0)
        return false;
    for (size_t i = 0; i < term->n_match_expressions; i++)
        if (!matches_label(&term->match_expressions[i], labels, n_labels))
            return false;
    for (size_t i = 0; i < term->n_match_fields; i++)
        if (!matches_name(&term->match_fields[i], node_name))
            return false;
    return true;
}

bool dv_node_selector_matches(const struct dv_api_node_selector *selector, dv_str node_name,
                              const struct dv_str_entry *labels, size_t n_labels)
{
    for (size_t i = 0; i < selector->n_node_selector_terms; i++)
        if (matches_term(&selector->node_selector_terms[i], node_name, labels, n_labels))
            return true;
    return false;
}

static bool check_label(const struct dv_api_node_selector_requirement *requirement,
                        struct dv_err *err)
{
    enum node_op op = parse_op(requirement->operator);
    int64_t bound;

    if (!is_valid(requirement, op) ||
        ((op == OP_GT || op == OP_LT) && !dv_str_to_i64(requirement->values[0], &bound)))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "node selector: the requirement on %.*s (operator %.*s, %zu values) cannot "
                       "be evaluated",
                       DV_FMT(requirement->key), DV_FMT(requirement->operator),
                       requirement->n_values);
    return true;
}

static bool check_field(const struct dv_api_node_selector_requirement *requirement,
                        struct dv_err *err)
{
    enum node_op op = parse_op(requirement->operator);

    if ((op != OP_IN && op != OP_NOT_IN) || requirement->n_values != 1)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "node selector: the field %.*s needs In or NotIn and one value",
                       DV_FMT(requirement->key));
    return true;
}

bool dv_node_selector_check(const struct dv_api_node_selector *selector, struct dv_err *err)
{
    for (size_t i = 0; i < selector->n_node_selector_terms; i++) {
        const struct dv_api_node_selector_term *term = &selector->node_selector_terms[i];

        for (size_t j = 0; j < term->n_match_expressions; j++)
            if (!check_label(&term->match_expressions[j], err))
                return false;
        for (size_t j = 0; j < term->n_match_fields; j++)
            if (!check_field(&term->match_fields[j], err))
                return false;
    }
    return true;
}

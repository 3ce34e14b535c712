/* validate_parts.c - what is the same in several kinds. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "json/json.h"

#define MESSAGE_BYTES_MAX 32768u
#define BINDING_MAX 4u
#define SELECTORS_MAX 32u

void dv_check_raw_object(struct dv_problems *problems, const struct dv_field_path *path,
                         const char *name, dv_str raw, size_t bytes_max, bool is_stored)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    const struct dv_json *json;
    struct dv_err err;

    if (raw.n == 0) {
        dv_required(problems, path, name);
        return;
    }
    if (!is_stored && raw.n > bytes_max) {
        dv_too_long(problems, path, name, bytes_max);
        return;
    }
    arena = dv_arena_new();
    json = dv_json_parse(raw, NULL, arena, &err);
    if (!json)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name,
                       dv_bad_str(DV_STR("<value omitted>")), "error parsing data as JSON: %s",
                       err.msg);
    else if (dv_json_is(json, DV_JSON_NULL))
        dv_required(problems, path, name);
    else if (!dv_json_is(json, DV_JSON_OBJECT))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name,
                       dv_bad_str(DV_STR("<value omitted>")), "must be a valid JSON object");
}

static void check_condition(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_api_condition *condition)
{
    static const dv_str statuses[] = {
        DV_STR_INIT("False"),
        DV_STR_INIT("True"),
        DV_STR_INIT("Unknown"),
    };

    dv_check_label_name(problems, path, "type", condition->type);
    dv_check_one_of(problems, path, "status", condition->status, statuses, DV_COUNT(statuses));
    if (condition->observed_generation < 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "observedGeneration",
                       dv_bad_i64(condition->observed_generation),
                       "must be greater than or equal to zero");
    if (!condition->last_transition_time.is_set)
        dv_required(problems, path, "lastTransitionTime");
    dv_check_required(problems, path, "reason", condition->reason, dv_check_condition_reason);
    if (condition->message.n > MESSAGE_BYTES_MAX)
        dv_too_long(problems, path, "message", MESSAGE_BYTES_MAX);
}

void dv_check_conditions(struct dv_problems *problems, const struct dv_field_path *path,
                         const struct dv_api_condition *conditions, size_t n)
{
    if (n == 0)
        return;
    dv_check_unique(problems, path, "type", &conditions[0].type, n, sizeof(conditions[0]));
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(path, i);

        check_condition(problems, &item, &conditions[i]);
    }
}

/* -- Selectors of labels -------------------------------------------------------------------- */

static void check_label_requirement(struct dv_problems *problems, const struct dv_field_path *path,
                                    const struct dv_api_label_selector_requirement *requirement)
{
    struct dv_field_path values = dv_path_name(path, "values");
    dv_str operator= requirement->operator;

    if (dv_str_eq(operator, DV_STR("In")) || dv_str_eq(operator, DV_STR("NotIn"))) {
        if (requirement->n_values == 0)
            dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, "values", dv_bad_none(),
                           "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (dv_str_eq(operator, DV_STR("Exists")) ||
               dv_str_eq(operator, DV_STR("DoesNotExist"))) {
        if (requirement->n_values > 0)
            dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, path, "values", dv_bad_none(),
                           "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else {
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "operator", dv_bad_str(operator),
                       "not a valid selector operator");
    }
    dv_check_label_name(problems, path, "key", requirement->key);
    for (size_t i = 0; i < requirement->n_values; i++) {
        struct dv_field_path item = dv_path_index(&values, i);

        dv_check_label_value(problems, &item, NULL, requirement->values[i]);
    }
}

void dv_check_label_selector(struct dv_problems *problems, const struct dv_field_path *path,
                             const struct dv_api_label_selector *selector, bool is_told_twice)
{
    struct dv_field_path expressions = dv_path_name(path, "matchExpressions");
    size_t n_before = problems->n;

    for (size_t i = 0; i < selector->n_match_labels; i++) {
        dv_check_label_name(problems, path, "matchLabels", selector->match_labels[i].key);
        dv_check_label_value(problems, path, "matchLabels", selector->match_labels[i].value);
    }
    for (size_t i = 0; i < selector->n_match_expressions; i++) {
        struct dv_field_path item = dv_path_index(&expressions, i);

        check_label_requirement(problems, &item, &selector->match_expressions[i]);
    }
    if (is_told_twice && problems->n > n_before)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL, dv_bad_null(),
                       "invalid label selector.");
}

void dv_check_not_negative(struct dv_problems *problems, const struct dv_field_path *path,
                           const char *name, int64_t value)
{
    if (value < 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_i64(value),
                       "must be greater than or equal to 0");
}

/* -- Node selectors ------------------------------------------------------------------------- */

enum selector_operator {
    OP_UNKNOWN,
    OP_IN,
    OP_EXISTS,
    OP_COMPARE,
};

static enum selector_operator operator_of(dv_str name)
{
    static const struct {
        dv_str name;
        enum selector_operator value;
    } operators[] = {
        {DV_STR_INIT("In"),           OP_IN     },
        {DV_STR_INIT("NotIn"),        OP_IN     },
        {DV_STR_INIT("Exists"),       OP_EXISTS },
        {DV_STR_INIT("DoesNotExist"), OP_EXISTS },
        {DV_STR_INIT("Gt"),           OP_COMPARE},
        {DV_STR_INIT("Lt"),           OP_COMPARE},
    };

    for (size_t i = 0; i < DV_COUNT(operators); i++)
        if (dv_str_eq(name, operators[i].name))
            return operators[i].value;
    return OP_UNKNOWN;
}

static void check_operator(struct dv_problems *problems, const struct dv_field_path *path,
                           const struct dv_api_node_selector_requirement *requirement)
{
    size_t n = requirement->n_values;

    switch (operator_of(requirement->operator)) {
    case OP_IN:
        if (n == 0)
            dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, "values", dv_bad_none(),
                           "must be specified when `operator` is 'In' or 'NotIn'");
        return;
    case OP_EXISTS:
        if (n > 0)
            dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, path, "values", dv_bad_none(),
                           "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        return;
    case OP_COMPARE:
        if (n != 1)
            dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, "values", dv_bad_none(),
                           "must be specified single value when `operator` is 'Lt' or 'Gt'");
        return;
    case OP_UNKNOWN:
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "operator",
                       dv_bad_str(requirement->operator), "not a valid selector operator");
        return;
    }
}

static void check_values(struct dv_problems *problems, const struct dv_field_path *up,
                         const struct dv_api_node_selector_requirement *requirement,
                         dv_check_text *check)
{
    struct dv_field_path path = dv_path_name(up, "values");

    for (size_t i = 0; i < requirement->n_values; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        check(problems, &item, NULL, requirement->values[i]);
    }
}

static void check_expression(struct dv_problems *problems, const struct dv_field_path *path,
                             const struct dv_api_node_selector_requirement *requirement)
{
    check_operator(problems, path, requirement);
    dv_check_label_name(problems, path, "key", requirement->key);
    check_values(problems, path, requirement, dv_check_label_value);
}

static void check_field(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_api_node_selector_requirement *requirement)
{
    if (operator_of(requirement->operator) != OP_IN)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "operator",
                       dv_bad_str(requirement->operator), "not a valid selector operator");
    else if (requirement->n_values != 1)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, "values", dv_bad_none(),
                       "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                       "selector");
    if (dv_str_eq(requirement->key, DV_STR("metadata.name")))
        check_values(problems, path, requirement, dv_check_dns_subdomain);
    else
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "key", dv_bad_str(requirement->key),
                       "not a valid field selector key");
}

void dv_check_node_selector_term(struct dv_problems *problems, const struct dv_field_path *up,
                                 const struct dv_api_node_selector_term *term)
{
    struct dv_field_path expressions = dv_path_name(up, "matchExpressions");
    struct dv_field_path fields = dv_path_name(up, "matchFields");

    for (size_t i = 0; i < term->n_match_expressions; i++) {
        struct dv_field_path item = dv_path_index(&expressions, i);

        check_expression(problems, &item, &term->match_expressions[i]);
    }
    for (size_t i = 0; i < term->n_match_fields; i++) {
        struct dv_field_path item = dv_path_index(&fields, i);

        check_field(problems, &item, &term->match_fields[i]);
    }
}

void dv_check_node_selector(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_api_node_selector *selector)
{
    struct dv_field_path terms = dv_path_name(path, "nodeSelectorTerms");

    if (selector->n_node_selector_terms == 0)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &terms, NULL, dv_bad_none(),
                       "must have at least one node selector term");
    for (size_t i = 0; i < selector->n_node_selector_terms; i++) {
        struct dv_field_path item = dv_path_index(&terms, i);

        dv_check_node_selector_term(problems, &item, &selector->node_selector_terms[i]);
    }
}

/* -- Devices -------------------------------------------------------------------------------- */

static void check_condition_names(struct dv_problems *problems, const struct dv_field_path *path,
                                  const dv_str *names, size_t n)
{
    if (n > BINDING_MAX) {
        dv_too_many(problems, path, NULL, n, BINDING_MAX);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(path, i);

        dv_check_label_name(problems, &item, NULL, names[i]);
    }
}

/* Checks one name after the other, so that the problems of an item stay together. */
static void check_failure_names(struct dv_problems *problems, const struct dv_field_path *path,
                                const dv_str *failure, size_t n_failure, const dv_str *binding,
                                size_t n_binding)
{
    DV_CLEANUP(dv_map_fini) struct dv_map bound;
    DV_CLEANUP(dv_map_fini) struct dv_map seen;

    dv_map_init(&bound);
    dv_map_init(&seen);
    for (size_t i = 0; i < n_binding; i++)
        (void)dv_map_set(&bound, binding[i], problems);
    for (size_t i = 0; i < n_failure; i++) {
        struct dv_field_path item = dv_path_index(path, i);

        if (dv_map_set(&seen, failure[i], problems))
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &item, NULL, dv_bad_str(failure[i]),
                           "%s", "");
        if (dv_map_get(&bound, failure[i]))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &item, NULL, dv_bad_str(failure[i]),
                           "bindingFailureConditions must not overlap with bindingConditions");
    }
}

void dv_check_binding(struct dv_problems *problems, const struct dv_field_path *path,
                      const dv_str *binding, size_t n_binding, const dv_str *failure,
                      size_t n_failure)
{
    struct dv_field_path binding_path = dv_path_name(path, "bindingConditions");
    struct dv_field_path failure_path = dv_path_name(path, "bindingFailureConditions");

    if (n_binding == 0 && n_failure == 0)
        return;
    check_condition_names(problems, &binding_path, binding, n_binding);
    check_condition_names(problems, &failure_path, failure, n_failure);
    dv_check_unique(problems, &binding_path, NULL, binding, n_binding, sizeof(*binding));
    check_failure_names(problems, &failure_path, failure, n_failure, binding, n_binding);
    if (n_binding == 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &binding_path, NULL,
                       dv_bad_strs(binding, n_binding, problems->arena),
                       "bindingConditions are required to use bindingFailureConditions");
    if (n_failure == 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &failure_path, NULL,
                       dv_bad_strs(failure, n_failure, problems->arena),
                       "bindingFailureConditions are required to use bindingConditions");
}

void dv_check_taint_effect(struct dv_problems *problems, const struct dv_field_path *path,
                           dv_str effect)
{
    static const dv_str effects[] = {
        DV_STR_INIT("NoExecute"),
        DV_STR_INIT("NoSchedule"),
        DV_STR_INIT("None"),
    };

    dv_check_one_of(problems, path, "effect", effect, effects, DV_COUNT(effects));
}

void dv_check_device_taint(struct dv_problems *problems, const struct dv_field_path *path,
                           const struct dv_api_device_taint *taint,
                           const struct dv_api_device_taint *old)
{
    dv_check_label_name(problems, path, "key", taint->key);
    dv_check_label_value(problems, path, "value", taint->value);
    if (old && dv_str_eq(old->effect, taint->effect))
        return; /* a newer release may have stored it */
    if (taint->effect.n == 0)
        dv_required(problems, path, "effect");
    else
        dv_check_taint_effect(problems, path, taint->effect);
}

void dv_check_selectors(struct dv_problems *problems, const struct dv_field_path *up,
                        const struct dv_api_device_selector *selectors, size_t n, bool is_stored)
{
    struct dv_field_path path = dv_path_name(up, "selectors");

    if (n > SELECTORS_MAX) {
        dv_too_many(problems, &path, NULL, n, SELECTORS_MAX);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(&path, i);
        struct dv_field_path cel = dv_path_name(&item, "cel");

        if (selectors[i].cel)
            dv_check_cel(problems, &cel, selectors[i].cel->expression, is_stored);
        else
            dv_required(problems, &cel, NULL);
    }
}

/* -- Tolerations of taints of nodes --------------------------------------------------------- */

static bool is_exists(const struct dv_api_toleration *toleration)
{
    return dv_str_eq(toleration->operator, DV_STR("Exists"));
}

static void check_toleration(struct dv_problems *problems, const struct dv_field_path *path,
                             const struct dv_api_toleration *toleration)
{
    static const dv_str operators[] = {DV_STR_INIT("Equal"), DV_STR_INIT("Exists")};
    static const dv_str effects[] = {
        DV_STR_INIT("NoSchedule"),
        DV_STR_INIT("PreferNoSchedule"),
        DV_STR_INIT("NoExecute"),
    };

    if (toleration->key.n > 0)
        dv_check_label_name(problems, path, "key", toleration->key);
    else if (!is_exists(toleration))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "operator",
                       dv_bad_str(toleration->operator),
                       "operator must be Exists when `key` is empty, which means \"match all "
                       "values and all keys\"");
    if (toleration->toleration_seconds && !dv_str_eq(toleration->effect, DV_STR("NoExecute")))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "effect", dv_bad_str(toleration->effect),
                       "effect must be 'NoExecute' when `tolerationSeconds` is set");
    if (toleration->operator.n == 0 || dv_str_eq(toleration->operator, DV_STR("Equal")))
        dv_check_label_value(problems, path, "operator", toleration->value);
    else if (!is_exists(toleration))
        dv_not_supported(problems, path, "operator", toleration->operator, operators,
                         DV_COUNT(operators));
    else if (toleration->value.n > 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "operator",
                       dv_bad_message(&dv_message_toleration, toleration, problems->arena),
                       "value must be empty when `operator` is 'Exists'");
    if (toleration->effect.n > 0)
        dv_check_one_of(problems, path, "effect", toleration->effect, effects, DV_COUNT(effects));
}

void dv_check_tolerations(struct dv_problems *problems, const struct dv_field_path *path,
                          const struct dv_api_toleration *tolerations, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(path, i);

        check_toleration(problems, &item, &tolerations[i]);
    }
}

/* validate_vap.c - validating admission policies and their bindings. Every expression has to
 * compile where it will be evaluated: conditions see no variables, messages no authorizer. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/name.h"
#include "base/str.h"
#include "cel/cel_policy.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/validate_kinds.h"

#define CONDITIONS_MAX 64u
#define ANNOTATIONS_MAX 20u
#define ANNOTATION_BYTES_MAX (5u * 1024u)
/* Problems quote the expression, line by line. */
#define TEXT_BYTES_MAX (1024u * 1024u)

static const struct dv_field_path spec_path = {.kind = PATH_NAME, .name = "spec"};

/* -- Expressions ---------------------------------------------------------------------------- */

struct checker {
    struct dv_problems *problems;
    struct dv_arena *arena;
    struct dv_cel_policy *policy;     /* with the variables */
    struct dv_cel_policy *conditions; /* without */
};

static bool is_blank(dv_str text)
{
    return dv_str_trim(text).n == 0;
}

static bool has_line_breaks(dv_str text)
{
    return dv_str_find_char(text, '\n') < text.n || dv_str_find_char(text, '\r') < text.n;
}

static void tell(struct checker *c, const struct dv_field_path *path, const char *name,
                 dv_str expression, struct dv_buf *problem)
{
    dv_problem_add(c->problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(expression), "%.*s",
                   DV_FMT(dv_buf_str(problem)));
}

static void check_expression(struct checker *c, const struct dv_cel_policy *policy,
                             const struct dv_field_path *path, const char *name, dv_str expression,
                             struct dv_cel_rule_options how)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf problem;

    dv_buf_init(&problem, TEXT_BYTES_MAX);
    if (!dv_cel_policy_compile(policy, expression, how, c->arena, &problem))
        tell(c, path, name, expression, &problem);
}

static void require(struct checker *c, const struct dv_field_path *path, const char *name,
                    const char *text)
{
    dv_problem_add(c->problems, DV_PROBLEM_REQUIRED, path, name, dv_bad_none(), "%s", text);
}

/* -- What policies and webhooks share ------------------------------------------------------- */

void dv_check_match_conditions(struct dv_problems *problems, const struct dv_field_path *list,
                               const struct dv_cel_policy *policy,
                               const struct dv_api_match_condition *conditions, size_t n,
                               struct dv_arena *arena)
{
    static const struct dv_cel_rule_options how = {DV_CEL_WANTS_BOOL, true};
    struct checker checker = {.problems = problems, .arena = arena};

    if (n > CONDITIONS_MAX)
        dv_too_many(problems, list, NULL, n, CONDITIONS_MAX);
    for (size_t i = 0; i < n && !dv_problems_are_full(problems); i++) {
        const struct dv_api_match_condition *condition = &conditions[i];
        struct dv_field_path path = dv_path_index(list, i);

        if (is_blank(condition->expression))
            dv_required(problems, &path, "expression");
        else
            check_expression(&checker, policy, &path, "expression",
                             dv_str_trim(condition->expression), how);
        if (condition->name.n == 0)
            dv_required(problems, &path, "name");
        else
            dv_check_label_name(problems, &path, "name", condition->name);
    }
    dv_check_unique(problems, list, "name", conditions, n, sizeof(conditions[0]));
}

void dv_check_failure_policy(struct dv_problems *problems, const struct dv_field_path *path,
                             dv_str policy)
{
    static const dv_str policies[] = {DV_STR_INIT("Fail"), DV_STR_INIT("Ignore")};

    dv_check_one_of(problems, path, "failurePolicy", policy, policies, DV_COUNT(policies));
}

/* -- Parts of a policy ---------------------------------------------------------------------- */

/* A kind's name in lower case, or a version: letters, digits and dashes. */
static bool is_dns_1035_label(dv_str text, struct dv_arena *arena)
{
    char *lower = dv_arena_alloc_raw(arena, text.n + 1, 1);

    for (size_t i = 0; i < text.n; i++)
        lower[i] = text.p[i] >= 'A' && text.p[i] <= 'Z' ? (char)(text.p[i] + 'a' - 'A') : text.p[i];
    return dv_is_dns_label((dv_str){lower, text.n}) && lower[0] >= 'a';
}

#define LABEL_1035_TEXT                                                                            \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "   \
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "           \
    "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

static void check_param_kind(struct checker *c, const struct dv_api_param_kind *kind)
{
    struct dv_field_path path = dv_path_name(&spec_path, "paramKind");
    dv_str group, version;

    dv_api_version_split(kind->api_version, &group, &version);
    if (kind->api_version.n == 0)
        dv_required(c->problems, &path, "apiVersion");
    else if (dv_str_find_char(version, '/') < version.n)
        dv_problem_add(c->problems, DV_PROBLEM_INVALID, &path, "apiVersion",
                       dv_bad_str(kind->api_version), "unexpected GroupVersion string: %.*s",
                       DV_FMT(kind->api_version));
    else if (group.n > 0 && !dv_is_dns_subdomain(group))
        dv_check_dns_subdomain(c->problems, &path, "apiVersion", group);
    else if (version.n == 0)
        dv_problem_add(c->problems, DV_PROBLEM_INVALID, &path, "apiVersion",
                       dv_bad_str(kind->api_version), "version must be specified");
    else if (!is_dns_1035_label(version, c->arena))
        dv_problem_add(c->problems, DV_PROBLEM_INVALID, &path, "apiVersion", dv_bad_str(version),
                       "%s", LABEL_1035_TEXT);
    if (kind->kind.n == 0)
        dv_required(c->problems, &path, "kind");
    else if (!is_dns_1035_label(kind->kind, c->arena))
        dv_problem_add(c->problems, DV_PROBLEM_INVALID, &path, "kind", dv_bad_str(kind->kind),
                       "may have mixed case, but should otherwise match: %s", LABEL_1035_TEXT);
}

static void check_variable(struct checker *c, const struct dv_field_path *path,
                           const struct dv_api_variable *variable)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf problem;

    dv_buf_init(&problem, TEXT_BYTES_MAX);
    if (is_blank(variable->name))
        require(c, path, "name", "name is not specified");
    else if (!dv_cel_is_identifier(variable->name))
        dv_problem_add(c->problems, DV_PROBLEM_INVALID, path, "name", dv_bad_str(variable->name),
                       "must be a valid CEL identifier");
    if (is_blank(variable->expression))
        require(c, path, "expression", "expression is not specified");
    else if (!dv_cel_policy_add_variable(c->policy, variable->name, variable->expression, &problem))
        tell(c, path, "expression", variable->expression, &problem);
}

static void check_message(struct checker *c, const struct dv_field_path *path,
                          const struct dv_api_validation *validation)
{
    static const struct dv_cel_rule_options how = {DV_CEL_WANTS_STRING, false};

    if (validation->message_expression.n > 0 && is_blank(validation->message_expression))
        dv_problem_add(c->problems, DV_PROBLEM_INVALID, path, "messageExpression",
                       dv_bad_str(validation->message_expression),
                       "must be non-empty if specified");
    else if (validation->message_expression.n > 0)
        check_expression(c, c->policy, path, "messageExpression", validation->message_expression,
                         how);
    if (validation->message.n > 0 && is_blank(validation->message))
        dv_problem_add(c->problems, DV_PROBLEM_INVALID, path, "message",
                       dv_bad_str(validation->message), "message must be non-empty if specified");
    else if (has_line_breaks(dv_str_trim(validation->message)))
        dv_problem_add(c->problems, DV_PROBLEM_INVALID, path, "message",
                       dv_bad_str(validation->message), "must not contain line breaks");
    else if (has_line_breaks(dv_str_trim(validation->expression)) && validation->message.n == 0)
        require(c, path, "message", "message must be specified if expression contains line breaks");
}

static void check_validation(struct checker *c, const struct dv_field_path *path,
                             const struct dv_api_validation *validation)
{
    static const struct dv_cel_rule_options how = {DV_CEL_WANTS_BOOL, true};
    static const dv_str reasons[] = {DV_STR_INIT("Forbidden"), DV_STR_INIT("Invalid"),
                                     DV_STR_INIT("RequestEntityTooLarge")};

    if (is_blank(validation->expression))
        require(c, path, "expression", "expression is not specified");
    else
        check_expression(c, c->policy, path, "expression", validation->expression, how);
    check_message(c, path, validation);
    if (validation->reason.p)
        dv_check_one_of(c->problems, path, "reason", validation->reason, reasons,
                        DV_COUNT(reasons));
}

static void check_annotation(struct checker *c, const struct dv_field_path *path, dv_str policy,
                             const struct dv_api_audit_annotation *annotation)
{
    static const struct dv_cel_rule_options how = {DV_CEL_WANTS_STRING_OR_NULL, true};
    dv_str expression = annotation->value_expression;

    dv_check_label_name(
        c->problems, path, "key",
        policy.n > 0 ? dv_str_printf(c->arena, "%.*s/%.*s", DV_FMT(policy), DV_FMT(annotation->key))
                     : annotation->key);
    if (is_blank(expression))
        require(c, path, "valueExpression", "valueExpression is not specified");
    else if (dv_str_trim(expression).n > ANNOTATION_BYTES_MAX)
        dv_problem_add(c->problems, DV_PROBLEM_REQUIRED, path, "valueExpression", dv_bad_none(),
                       "must not exceed %u bytes in length", ANNOTATION_BYTES_MAX);
    else
        check_expression(c, c->policy, path, "valueExpression", expression, how);
}

static void check_annotations(struct checker *c,
                              const struct dv_api_validating_admission_policy *policy)
{
    const struct dv_api_validating_admission_policy_spec *spec = &policy->spec;
    struct dv_field_path list = dv_path_name(&spec_path, "auditAnnotations");

    if (spec->n_audit_annotations > ANNOTATIONS_MAX)
        dv_problem_add(c->problems, DV_PROBLEM_INVALID, &list, NULL, dv_bad_none(),
                       "must not have more than %u auditAnnotations", ANNOTATIONS_MAX);
    for (size_t i = 0; i < spec->n_audit_annotations && !dv_problems_are_full(c->problems); i++) {
        struct dv_field_path path = dv_path_index(&list, i);

        check_annotation(c, &path, policy->metadata.name, &spec->audit_annotations[i]);
    }
    dv_check_unique(c->problems, &list, "key", spec->audit_annotations, spec->n_audit_annotations,
                    sizeof(spec->audit_annotations[0]));
}

/* -- The policy ----------------------------------------------------------------------------- */

static void check_variables(struct checker *c,
                            const struct dv_api_validating_admission_policy_spec *spec)
{
    struct dv_field_path list = dv_path_name(&spec_path, "variables");

    for (size_t i = 0; i < spec->n_variables && !dv_problems_are_full(c->problems); i++) {
        struct dv_field_path path = dv_path_index(&list, i);

        check_variable(c, &path, &spec->variables[i]);
    }
    dv_check_unique(c->problems, &list, "name", spec->variables, spec->n_variables,
                    sizeof(spec->variables[0]));
}

static void check_validations(struct checker *c,
                              const struct dv_api_validating_admission_policy *policy)
{
    static const char too_few[] = "validations or auditAnnotations must contain at least one item";
    const struct dv_api_validating_admission_policy_spec *spec = &policy->spec;
    struct dv_field_path list = dv_path_name(&spec_path, "validations");

    if (spec->n_validations == 0 && spec->n_audit_annotations == 0) {
        require(c, &spec_path, "validations", too_few);
        require(c, &spec_path, "auditAnnotations", too_few);
        return;
    }
    for (size_t i = 0; i < spec->n_validations && !dv_problems_are_full(c->problems); i++) {
        struct dv_field_path path = dv_path_index(&list, i);

        check_validation(c, &path, &spec->validations[i]);
    }
    check_annotations(c, policy);
}

static void check_policy_spec(struct checker *c,
                              const struct dv_api_validating_admission_policy *policy)
{
    const struct dv_api_validating_admission_policy_spec *spec = &policy->spec;
    struct dv_field_path match = dv_path_name(&spec_path, "matchConstraints");
    struct dv_field_path conditions = dv_path_name(&spec_path, "matchConditions");

    dv_check_failure_policy(c->problems, &spec_path, spec->failure_policy);
    if (spec->param_kind)
        check_param_kind(c, spec->param_kind);
    if (!spec->match_constraints) {
        dv_required(c->problems, &spec_path, "matchConstraints");
    } else {
        dv_check_match_resources(c->problems, &match, spec->match_constraints);
        if (spec->match_constraints->n_resource_rules == 0)
            dv_required(c->problems, &match, "resourceRules");
    }
    dv_check_match_conditions(c->problems, &conditions, c->conditions, spec->match_conditions,
                              spec->n_match_conditions, c->arena);
    check_variables(c, spec);
    check_validations(c, policy);
}

void dv_validate_validating_policy(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, false};
    static const struct dv_field_path status_path = {.kind = PATH_NAME, .name = "status"};
    const struct dv_api_validating_admission_policy *policy = what->value;
    const struct dv_api_validating_admission_policy *old = what->old;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_cel_policy_options options = {policy->spec.param_kind != NULL,
                                                  policy->spec.n_variables > 0};
    const struct dv_cel_policy_options no_variables = {policy->spec.param_kind != NULL, false};
    struct checker checker = {problems, arena, dv_cel_policy_new(&options, arena),
                              dv_cel_policy_new(&no_variables, arena)};
    struct dv_field_path conditions = dv_path_name(&status_path, "conditions");

    dv_check_meta(problems, &policy->metadata, &rules);
    if (old)
        dv_check_kind_meta_update(problems, &policy->metadata, &old->metadata);
    if (what->operation == DV_UPDATE_STATUS)
        dv_check_conditions(problems, &conditions, policy->status.conditions,
                            policy->status.n_conditions);
    else
        check_policy_spec(&checker, policy);
}

/* -- Bindings ------------------------------------------------------------------------------- */

static void check_param_ref(struct dv_problems *problems, const struct dv_api_param_ref *ref)
{
    static const char both[] = "name and selector are mutually exclusive";
    static const dv_str actions[] = {DV_STR_INIT("Deny"), DV_STR_INIT("Allow")};
    struct dv_field_path path = dv_path_name(&spec_path, "paramRef");
    struct dv_field_path selector = dv_path_name(&path, "selector");

    if (ref->name.n > 0) {
        dv_check_path_segment(problems, &path, "name", ref->name);
        if (ref->selector)
            dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &path, "name", dv_bad_none(), "%s",
                           both);
    }
    if (ref->selector) {
        dv_check_label_selector(problems, &selector, ref->selector, false);
        if (ref->name.n > 0)
            dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &path, "selector", dv_bad_none(), "%s",
                           both);
    }
    if (ref->name.n == 0 && !ref->selector)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &path, NULL, dv_bad_none(),
                       "one of name or selector must be specified");
    if (ref->parameter_not_found_action.n == 0)
        dv_required(problems, &path, "parameterNotFoundAction");
    else
        dv_check_one_of(problems, &path, "parameterNotFoundAction", ref->parameter_not_found_action,
                        actions, DV_COUNT(actions));
}

static bool has_action(const struct dv_api_validating_admission_policy_binding_spec *spec,
                       const char *action, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(spec->validation_actions[i], dv_str_from_c(action)))
            return true;
    return false;
}

static void check_actions(struct dv_problems *problems,
                          const struct dv_api_validating_admission_policy_binding_spec *spec)
{
    static const dv_str actions[] = {DV_STR_INIT("Audit"), DV_STR_INIT("Deny"),
                                     DV_STR_INIT("Warn")};
    struct dv_field_path list = dv_path_name(&spec_path, "validationActions");
    size_t n = spec->n_validation_actions;

    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(&list, i);

        dv_check_one_of(problems, &item, NULL, spec->validation_actions[i], actions,
                        DV_COUNT(actions));
    }
    dv_check_unique(problems, &list, NULL, spec->validation_actions, n,
                    sizeof(spec->validation_actions[0]));
    if (has_action(spec, "Deny", n) && has_action(spec, "Warn", n))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &list, NULL,
                       dv_bad_strs(spec->validation_actions, n, problems->arena),
                       "must not contain both Deny and Warn (repeating the same validation failure "
                       "information in the API response and headers serves no purpose)");
    if (n == 0)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &list, NULL, dv_bad_none(),
                       "at least one validation action is required");
}

void dv_validate_validating_policy_binding(struct dv_problems *problems,
                                           const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, false};
    const struct dv_api_validating_admission_policy_binding *binding = what->value;
    const struct dv_api_validating_admission_policy_binding *old = what->old;
    /* the reference's own spelling */
    struct dv_field_path match = dv_path_name(&spec_path, "matchResouces");

    dv_check_meta(problems, &binding->metadata, &rules);
    if (old)
        dv_check_kind_meta_update(problems, &binding->metadata, &old->metadata);
    dv_check_required(problems, &spec_path, "policyName", binding->spec.policy_name,
                      dv_check_dns_subdomain);
    if (binding->spec.param_ref)
        check_param_ref(problems, binding->spec.param_ref);
    if (binding->spec.match_resources)
        dv_check_match_resources(problems, &match, binding->spec.match_resources);
    check_actions(problems, &binding->spec);
}

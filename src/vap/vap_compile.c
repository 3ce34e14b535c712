/* vap_compile.c - compiles policies and bindings. What does not compile, which validation keeps out
 * of what is written today, fails when it is evaluated. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "cel/cel_policy.h"
#include "resource/resource.h"
#include "vap/vap_conditions.h"
#include "vap/vap_index.h"
#include "vap/vap_match.h"

#define PROBLEM_BYTES_MAX 65536u

struct dv_vap_rule dv_vap_rule_of(const struct dv_cel_policy *cel, dv_str text,
                                  struct dv_cel_rule_options how, struct dv_arena *arena)
{
    struct dv_vap_rule rule = {.text = text};
    DV_CLEANUP(dv_buf_fini) struct dv_buf problem;

    dv_buf_init(&problem, PROBLEM_BYTES_MAX);
    rule.rule = dv_cel_policy_compile(cel, text, how, arena, &problem);
    if (!rule.rule)
        rule.problem = dv_str_copy(dv_buf_str(&problem), arena);
    return rule;
}

static void compile_validations(struct dv_vap_policy *policy)
{
    static const struct dv_cel_rule_options wants_bool = {DV_CEL_WANTS_BOOL, true};
    static const struct dv_cel_rule_options wants_string = {DV_CEL_WANTS_STRING, false};
    const struct dv_api_validating_admission_policy_spec *spec = &policy->value->spec;
    const struct dv_cel_policy_options options = {spec->param_kind != NULL, spec->n_variables > 0};
    DV_CLEANUP(dv_buf_fini) struct dv_buf problem;

    dv_buf_init(&problem, PROBLEM_BYTES_MAX);
    policy->cel = dv_cel_policy_new(&options, policy->arena);
    for (size_t i = 0; i < spec->n_variables; i++)
        if (!dv_cel_policy_add_variable(policy->cel, spec->variables[i].name,
                                        spec->variables[i].expression, &problem))
            problem.n = 0; /* it is told when the variable is used */
    policy->validations =
        DV_NEW_ARRAY(policy->arena, struct dv_vap_validation, spec->n_validations + 1);
    for (size_t i = 0; i < spec->n_validations; i++) {
        const struct dv_api_validation *value = &spec->validations[i];
        struct dv_vap_validation *validation = &policy->validations[i];

        validation->value = value;
        validation->rule =
            dv_vap_rule_of(policy->cel, value->expression, wants_bool, policy->arena);
        if (value->message_expression.n > 0)
            validation->message =
                dv_vap_rule_of(policy->cel, value->message_expression, wants_string, policy->arena);
    }
}

static void find_param_kind(struct dv_vap_policy *policy)
{
    const struct dv_api_param_kind *wanted = policy->value->spec.param_kind;
    dv_str group, version;

    if (!wanted)
        return;
    dv_api_version_split(wanted->api_version, &group, &version);
    policy->param_kind = dv_kind_by_name(group, version, wanted->kind, &policy->param_version);
}

struct dv_vap_policy *dv_vap_policy_new(struct dv_object *object)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_vap_policy *policy = DV_NEW(arena, struct dv_vap_policy);

    policy->n_refs = 1;
    policy->arena = arena;
    policy->object = dv_object_ref(object);
    policy->value = object->value;
    policy->match = dv_vap_match_of(policy->value->spec.match_constraints, arena);
    policy->is_fail = !dv_str_eq(policy->value->spec.failure_policy, DV_STR("Ignore"));
    find_param_kind(policy);
    policy->conditions = dv_vap_conditions_new(policy->value->spec.match_conditions,
                                               policy->value->spec.n_match_conditions,
                                               policy->value->spec.param_kind != NULL, arena);
    compile_validations(policy);
    return policy;
}

void dv_vap_policy_unref(struct dv_vap_policy *policy)
{
    if (!policy || --policy->n_refs > 0)
        return;
    dv_vec_fini(&policy->bindings);
    dv_object_unref(policy->object);
    dv_arena_free(policy->arena);
}

struct dv_vap_binding *dv_vap_binding_new(struct dv_object *object)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_vap_binding *binding = DV_NEW(arena, struct dv_vap_binding);

    binding->n_refs = 1;
    binding->arena = arena;
    binding->object = dv_object_ref(object);
    binding->value = object->value;
    binding->match = dv_vap_match_of(binding->value->spec.match_resources, arena);
    return binding;
}

void dv_vap_binding_unref(struct dv_vap_binding *binding)
{
    if (!binding || --binding->n_refs > 0)
        return;
    dv_object_unref(binding->object);
    dv_arena_free(binding->arena);
}

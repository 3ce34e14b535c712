/* cel_policy.c - compiles the expressions of a policy, in the environment that it declares. */
#include "cel/cel_policy.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "cel/check/decls.h"
#include "cel/plan/cel_policy_env.h"
#include "cel/plan/compile.h"
#include "cel/plan/policy_types.h"
#include "cel/read/ast.h"

#define TYPE_BYTES_MAX 1000u
/* Of what is wrong with a variable, which is told again when something uses it. */
#define PROBLEM_BYTES_MAX 65536u

struct dv_cel_policy *dv_cel_policy_new(const struct dv_cel_policy_options *options,
                                        struct dv_arena *arena)
{
    struct dv_cel_policy *policy = DV_NEW(arena, struct dv_cel_policy);

    policy->arena = arena;
    policy->has_params = options->has_params;
    policy->has_variables = options->has_variables;
    return policy;
}

struct dv_cel_policy *dv_cel_policy_new_schema(bool has_old, struct dv_arena *arena)
{
    struct dv_cel_policy *policy = DV_NEW(arena, struct dv_cel_policy);

    policy->arena = arena;
    policy->is_schema = true;
    policy->has_old = has_old;
    return policy;
}

static void declare_self(const struct dv_cel_policy *policy, struct dv_cel_var *vars)
{
    vars[DV_CEL_VAR_OBJECT] = (struct dv_cel_var){DV_STR("self"), &dv_cel_t_dyn};
    if (policy->has_old)
        vars[DV_CEL_VAR_OLD_OBJECT] = (struct dv_cel_var){DV_STR("oldSelf"), &dv_cel_t_dyn};
}

static void declare_request(struct dv_cel_var *vars)
{
    vars[DV_CEL_VAR_OBJECT] = (struct dv_cel_var){DV_STR("object"), &dv_cel_t_dyn};
    vars[DV_CEL_VAR_OLD_OBJECT] = (struct dv_cel_var){DV_STR("oldObject"), &dv_cel_t_dyn};
    vars[DV_CEL_VAR_REQUEST] = (struct dv_cel_var){DV_STR("request"), &dv_cel_t_request};
    vars[DV_CEL_VAR_NAMESPACE] =
        (struct dv_cel_var){DV_STR("namespaceObject"), &dv_cel_t_namespace};
}

/* The declarations of one rule, in `vars`. */
static struct dv_cel_decls declare(const struct dv_cel_policy *policy, bool has_authorizer,
                                   struct dv_cel_var *vars, struct dv_cel_type *variables)
{
    if (policy->is_schema)
        declare_self(policy, vars);
    else
        declare_request(vars);
    if (policy->has_params)
        vars[DV_CEL_VAR_PARAMS] = (struct dv_cel_var){DV_STR("params"), &dv_cel_t_dyn};
    if (has_authorizer) {
        vars[DV_CEL_VAR_AUTHORIZER] =
            (struct dv_cel_var){DV_STR("authorizer"), &dv_cel_t_authorizer};
        vars[DV_CEL_VAR_REQUEST_RESOURCE] =
            (struct dv_cel_var){DV_STR("authorizer.requestResource"), &dv_cel_t_resource_check};
    }
    if (policy->has_variables) {
        *variables = (struct dv_cel_type){.kind = DV_CEL_T_OBJECT,
                                          .name = DV_STR("kubernetes.variables"),
                                          .fields = policy->fields.v,
                                          .n_fields = policy->fields.n};
        vars[DV_CEL_VAR_VARIABLES] = (struct dv_cel_var){DV_STR("variables"), variables};
    }
    return (struct dv_cel_decls){
        .vars = vars, .n_vars = DV_CEL_N_POLICY_VARS, .hide_includes = true, .is_policy = true};
}

static bool is_wanted(const struct dv_cel_type *type, enum dv_cel_wanted wanted)
{
    switch (wanted) {
    case DV_CEL_WANTS_BOOL:
        return type->kind == DV_CEL_T_BOOL;
    case DV_CEL_WANTS_STRING:
        return type->kind == DV_CEL_T_STRING;
    case DV_CEL_WANTS_STRING_OR_NULL:
        return type->kind == DV_CEL_T_STRING || type->kind == DV_CEL_T_NULL;
    case DV_CEL_WANTS_ANYTHING:
        break;
    }
    return true;
}

static void tell_type(const struct dv_cel_type *type, enum dv_cel_wanted wanted,
                      struct dv_buf *problem)
{
    static const char *const names[] = {
        [DV_CEL_WANTS_BOOL] = "bool",
        [DV_CEL_WANTS_STRING] = "string",
        [DV_CEL_WANTS_STRING_OR_NULL] = "one of [string null_type]",
    };
    DV_CLEANUP(dv_buf_fini) struct dv_buf got;

    dv_buf_init(&got, TYPE_BYTES_MAX);
    dv_cel_type_print(type, false, &got);
    dv_buf_printf(problem, "must evaluate to %s but got %s", names[wanted], dv_buf_c(&got));
}

const struct dv_cel_rule *dv_cel_policy_compile(const struct dv_cel_policy *policy, dv_str text,
                                                struct dv_cel_rule_options how,
                                                struct dv_arena *arena, struct dv_buf *problem)
{
    static const struct dv_cel_steps steps = {.skip_estimate = true};
    struct dv_cel_var *vars = DV_NEW_ARRAY(arena, struct dv_cel_var, DV_CEL_N_POLICY_VARS);
    struct dv_cel_type *variables = DV_NEW(arena, struct dv_cel_type);
    struct dv_cel_rule *rule = DV_NEW(arena, struct dv_cel_rule);
    struct dv_cel_decls decls = declare(policy, how.has_authorizer, vars, variables);
    struct dv_cel_issues issues = {.source = dv_str_copy(text, arena), .arena = arena};

    if (!dv_cel_program_make(issues.source, &decls, &steps, arena, &issues, &rule->program)) {
        dv_buf_add_c(problem, "compilation failed: ");
        dv_cel_issues_print(&issues, problem);
        return NULL;
    }
    if (is_wanted(rule->program.ast->type, how.wanted))
        return rule;
    tell_type(rule->program.ast->type, how.wanted, problem);
    return NULL;
}

bool dv_cel_policy_add_variable(struct dv_cel_policy *policy, dv_str name, dv_str text,
                                struct dv_buf *problem)
{
    const struct dv_cel_rule_options how = {DV_CEL_WANTS_ANYTHING, true};
    struct dv_cel_variable variable = {.name = dv_str_copy(name, policy->arena)};
    struct dv_cel_var field = {variable.name, &dv_cel_t_dyn};
    DV_CLEANUP(dv_buf_fini) struct dv_buf why;

    dv_buf_init(&why, PROBLEM_BYTES_MAX);
    variable.rule = dv_cel_policy_compile(policy, text, how, policy->arena, &why);
    if (variable.rule)
        field.type = dv_cel_variable_type(variable.rule->program.ast->type, policy->arena);
    variable.problem = dv_str_copy(dv_buf_str(&why), policy->arena);
    dv_buf_add(problem, variable.problem);
    *dv_vec_add_in(&policy->variables, policy->arena) = variable;
    *dv_vec_add_in(&policy->fields, policy->arena) = field;
    return variable.rule != NULL;
}

bool dv_cel_is_identifier(dv_str text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cel_issues issues = {.source = text, .arena = arena};
    const struct dv_cel_ast *ast = dv_cel_parse(text, arena, &issues);

    return ast && issues.list.n == 0 && ast->kind == DV_CEL_AST_IDENT && !ast->is_absolute &&
           dv_str_eq(ast->name, text);
}

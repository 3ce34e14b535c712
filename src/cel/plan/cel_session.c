/* cel_session.c - evaluates the expressions of a policy for one request. */
#include "base/arena.h"
#include "base/str.h"
#include "cel/cel.h"
#include "cel/cel_policy.h"
#include "cel/plan/cel_policy_env.h"
#include "cel/plan/compile.h"
#include "cel/value/cel_authz.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"

/* Variables that use others, which use others: each takes room on the stack, and an expression may
 * be 250 levels deep itself. */
#define DEPTH_MAX 32u

struct state {
    bool is_done;
    struct dv_cel_val value;
};

struct dv_cel_session {
    const struct dv_cel_policy *policy;
    struct dv_arena *arena;
    struct dv_cel_budget budget; /* for its is_cancelled alone */
    struct dv_cel_val vars[DV_CEL_N_POLICY_VARS];
    struct dv_cel_map variables; /* looked up by load() */
    struct state *states;        /* of the policy's variables */
    uint64_t variables_cost;     /* that nobody has been charged for yet */
    uint32_t depth;
};

static struct dv_cel_val value_of(const struct dv_cel_val *input)
{
    return input ? *input : dv_cel_null();
}

static struct dv_cel_val authz_value(enum dv_cel_kind kind, const struct dv_cel_inputs *inputs,
                                     struct dv_arena *arena)
{
    struct dv_cel_authz *authz;

    if (!inputs->authorizer)
        return dv_cel_null();
    authz = DV_NEW(arena, struct dv_cel_authz);
    authz->authorizer = inputs->authorizer;
    if (kind == DV_CEL_RESOURCE_CHECK)
        authz->check = inputs->authorizer->request;
    return (struct dv_cel_val){.kind = (uint8_t)kind, .authz = authz};
}

struct dv_cel_session *dv_cel_session_new(const struct dv_cel_policy *policy,
                                          const struct dv_cel_inputs *inputs,
                                          struct dv_arena *arena)
{
    struct dv_cel_session *session = DV_NEW(arena, struct dv_cel_session);

    session->policy = policy;
    session->arena = arena;
    session->budget.is_cancelled = inputs->is_stopped;
    session->budget.ctx = inputs->ctx;
    session->vars[DV_CEL_VAR_OBJECT] = value_of(inputs->object);
    session->vars[DV_CEL_VAR_OLD_OBJECT] = value_of(inputs->old_object);
    if (inputs->is_old_optional)
        session->vars[DV_CEL_VAR_OLD_OBJECT] =
            inputs->old_object ? dv_cel_optional(inputs->old_object, arena) : dv_cel_none();
    session->vars[DV_CEL_VAR_REQUEST] = value_of(inputs->request);
    session->vars[DV_CEL_VAR_NAMESPACE] = value_of(inputs->namespace_object);
    session->vars[DV_CEL_VAR_PARAMS] = value_of(inputs->params);
    session->vars[DV_CEL_VAR_AUTHORIZER] = authz_value(DV_CEL_AUTHORIZER, inputs, arena);
    session->vars[DV_CEL_VAR_REQUEST_RESOURCE] = authz_value(DV_CEL_RESOURCE_CHECK, inputs, arena);
    session->variables = *dv_cel_empty_map.map;
    session->variables.is_variables = true;
    session->vars[DV_CEL_VAR_VARIABLES] =
        (struct dv_cel_val){.kind = DV_CEL_MAP, .map = &session->variables};
    if (policy->variables.n > 0)
        session->states = DV_NEW_ARRAY(arena, struct state, policy->variables.n);
    return session;
}

static bool load(struct dv_cel_run *run, dv_str name, struct dv_cel_val *out);

/* Evaluates a program under a limit of its own. */
static uint64_t evaluate(struct dv_cel_session *session, const struct dv_cel_rule *rule,
                         struct dv_cel_val *out, bool *is_stopped)
{
    struct dv_cel_run run = {.arena = session->arena,
                             .cost_max = DV_CEL_RULE_COST_MAX,
                             .work_max = DV_CEL_WORK_MAX,
                             .memory_max = dv_arena_size_bytes(session->arena) + DV_CEL_MEMORY_MAX,
                             .budget = &session->budget,
                             .load = load,
                             .ctx = session};

    dv_cel_program_run(&rule->program, session->vars, &run, out);
    *is_stopped = run.stop == DV_CEL_FAULT_CANCELLED;
    return run.cost;
}

static struct dv_cel_val variable_error(struct dv_cel_session *session, dv_str name,
                                        const char *prefix, dv_str text)
{
    return dv_cel_error_printf(session->arena,
                               "composited variable \"%.*s\" fails to evaluate: %s%.*s",
                               DV_FMT(name), prefix, DV_FMT(text));
}

/* Evaluates a variable. False: the evaluation was stopped. */
static bool evaluate_variable(struct dv_cel_session *session,
                              const struct dv_cel_variable *variable, struct dv_cel_val *out)
{
    bool is_stopped;

    if (!variable->rule) {
        *out = variable_error(session, variable->name, "", variable->problem);
        return true;
    }
    if (session->depth >= DEPTH_MAX) {
        *out = variable_error(session, variable->name, "",
                              DV_STR("too many variables that use each other"));
        return true;
    }
    session->depth++;
    session->variables_cost += evaluate(session, variable->rule, out, &is_stopped);
    session->depth--;
    if (!is_stopped && dv_cel_is_error(out))
        *out = variable_error(session, variable->name, dv_cel_error_prefix(out), out->s);
    return !is_stopped;
}

static bool load(struct dv_cel_run *run, dv_str name, struct dv_cel_val *out)
{
    struct dv_cel_session *session = run->ctx;
    const struct dv_cel_policy *policy = session->policy;

    for (size_t i = 0; i < policy->variables.n; i++) {
        struct state *state = &session->states[i];

        if (!dv_str_eq(policy->variables.v[i].name, name))
            continue;
        if (!state->is_done)
            state->is_done = evaluate_variable(session, &policy->variables.v[i], &state->value);
        if (state->is_done)
            *out = state->value;
        else
            dv_cel_run_stop(run, DV_CEL_FAULT_CANCELLED, out);
        return true;
    }
    return false;
}

enum dv_cel_outcome dv_cel_session_eval(struct dv_cel_session *session,
                                        const struct dv_cel_rule *rule, struct dv_cel_gave *gave)
{
    struct dv_cel_val out;
    bool is_stopped;

    *gave = (struct dv_cel_gave){0};
    session->variables_cost = 0;
    gave->cost = evaluate(session, rule, &out, &is_stopped);
    gave->cost += session->variables_cost;
    if (is_stopped)
        return DV_CEL_STOPPED;
    switch ((int)out.kind) {
    case DV_CEL_ERROR:
        gave->s = dv_str_printf(session->arena, "%s%.*s", dv_cel_error_prefix(&out), DV_FMT(out.s));
        return DV_CEL_GAVE_ERROR;
    case DV_CEL_BOOL:
        gave->b = out.b;
        return DV_CEL_GAVE_BOOL;
    case DV_CEL_STRING:
        gave->s = out.s;
        return DV_CEL_GAVE_STRING;
    default:
        return DV_CEL_GAVE_OTHER;
    }
}

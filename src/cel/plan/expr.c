/* expr.c - selectors: compiled for the environment of devices, and evaluated on them. */
#include "cel/plan/expr.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cel/cel.h"
#include "cel/check/decls.h"
#include "cel/plan/cel_device.h"
#include "cel/read/ast.h"
#include "cel/value/cel_run.h"

/* The longest text of all blocks that explain why an expression does not compile. */
#define ISSUES_BYTES_MAX 65536u
#define ERROR_BYTES_MAX 1000u

static const struct dv_cel_var device_var = {DV_STR_INIT("device"), &dv_cel_t_device};

static struct dv_cel_decls device_decls(const struct dv_cel_options *options)
{
    bool is_new = options->env == DV_CEL_ENV_NEW;

    return (struct dv_cel_decls){
        .vars = &device_var,
        .n_vars = 1,
        .hide_includes = is_new && !options->features.list_type_attributes,
        .hide_multiple = is_new && !options->features.consumable_capacity,
        .dyn_attributes = options->features.list_type_attributes,
    };
}

/* Whether an expression may have this result: bool, or the type of an attribute. */
static bool is_result_type(const struct dv_cel_type *type, const struct dv_cel_decls *decls)
{
    return type->kind == DV_CEL_T_BOOL || type->kind == DV_CEL_T_ANY ||
           (type->kind == DV_CEL_T_DYN && decls->dyn_attributes);
}

static bool make(dv_str text, const struct dv_cel_options *options, struct dv_arena *arena,
                 struct dv_cel_issues *issues, struct dv_cel_program *program)
{
    static const struct dv_cel_options stored = {0};
    struct dv_cel_decls decls;
    struct dv_cel_steps steps = {0};
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, ERROR_BYTES_MAX);
    if (!options)
        options = &stored;
    decls = device_decls(options);
    steps.skip_estimate = options->skip_estimate;
    issues->source = text;
    issues->arena = arena;
    if (!dv_cel_program_make(text, &decls, &steps, arena, issues, program))
        return false;
    if (is_result_type(program->ast->type, &decls))
        return true;
    dv_cel_type_print(program->ast->type, false, &buf);
    dv_cel_issue_add(issues, program->ast->at, "must evaluate to bool or the unknown type, not %s",
                     dv_buf_c(&buf));
    return false;
}

struct dv_cel_expr *dv_cel_compile(dv_str text, const struct dv_cel_options *options,
                                   struct dv_arena *arena, struct dv_err *err)
{
    struct dv_cel_expr *expr = DV_NEW(arena, struct dv_cel_expr);
    struct dv_cel_issues issues = {0};
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, ISSUES_BYTES_MAX);
    if (text.n > DV_CEL_EXPRESSION_BYTES_MAX) {
        dv_fail(err, DV_RESOURCE_EXHAUSTED, "CEL expression: %zu bytes, the limit is %u", text.n,
                DV_CEL_EXPRESSION_BYTES_MAX);
        return NULL;
    }
    if (make(dv_str_copy(text, arena), options, arena, &issues, &expr->program))
        return expr;
    dv_cel_issues_print(&issues, &buf);
    dv_fail(err, DV_INVALID_ARGUMENT, "compilation failed: %s", dv_buf_c(&buf));
    return NULL;
}

void dv_cel_explain_error(dv_str text, const struct dv_cel_options *options, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cel_issues issues = {0};
    struct dv_cel_program program;

    if (!make(text, options, arena, &issues, &program))
        dv_cel_issues_print(&issues, buf);
}

uint64_t dv_cel_max_cost(const struct dv_cel_expr *expr)
{
    return expr->program.max_cost;
}

void dv_cel_print_type(const struct dv_cel_expr *expr, struct dv_buf *buf)
{
    dv_cel_type_print(expr->program.ast->type, false, buf);
}

void dv_cel_print(const struct dv_cel_expr *expr, struct dv_buf *buf)
{
    dv_cel_ast_print(expr->program.parsed, buf);
}

static enum dv_code code_of(const struct dv_cel_val *error)
{
    switch ((enum dv_cel_fault)error->fault) {
    case DV_CEL_FAULT_COST:
    case DV_CEL_FAULT_MEMORY:
        return DV_RESOURCE_EXHAUSTED;
    case DV_CEL_FAULT_CANCELLED:
        return DV_CANCELLED;
    case DV_CEL_FAULT_TEXT:
    case DV_CEL_FAULT_NO_KEY:
    case DV_CEL_FAULT_NO_OVERLOAD:
    case DV_CEL_FAULT_INTERNAL:
        break;
    }
    return DV_INVALID_ARGUMENT;
}

static bool fail(const struct dv_cel_val *error, struct dv_err *err)
{
    return dv_fail(err, code_of(error), "%s%.*s", dv_cel_error_prefix(error), DV_FMT(error->s));
}

bool dv_cel_eval(const struct dv_cel_expr *expr, const struct dv_cel_device *device,
                 struct dv_cel_budget *budget, struct dv_arena *scratch, bool *is_match,
                 struct dv_err *err)
{
    struct dv_cel_run run = {.arena = scratch,
                             .cost_max = budget->cost_max,
                             .work_max = budget->work_max ? budget->work_max : DV_CEL_WORK_MAX,
                             .memory_max = dv_arena_size_bytes(scratch) + DV_CEL_MEMORY_MAX,
                             .budget = budget};
    struct dv_cel_val result;

    budget->cost = 0;
    budget->work = 0;
    if (dv_cel_is_error(&device->fault))
        return fail(&device->fault, err);
    dv_cel_program_run(&expr->program, &device->self, &run, &result);
    budget->cost = run.cost;
    budget->work = run.work;
    if (dv_cel_is_error(&result))
        return fail(&result, err);
    if (result.kind != DV_CEL_BOOL)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "CEL result of type %.*s could not be converted to bool",
                       DV_FMT(dv_cel_val_type_name(&result)));
    *is_match = result.b;
    return true;
}

/* cel_explain.c - which part of a selector decided, and on what values. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "cel/cel.h"
#include "cel/plan/cel_device.h"
#include "cel/plan/expr.h"
#include "cel/plan/plan_node.h"
#include "cel/read/ast.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"

/* The longest text of a part or a value in the report; the rest is cut. */
#define TEXT_BYTES_MAX 2000u

struct explainer {
    struct dv_cel_run run;
    struct dv_arena *arena;
    DV_VEC(struct dv_cel_seen) seen;
};

static dv_str print_node(struct explainer *x, const struct dv_cel_node *node)
{
    const struct dv_cel_ast *ast = node->ast->source ? node->ast->source : node->ast;
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_cel_ast_print(ast, &buf);
    return dv_str_copy(dv_buf_str(&buf), x->arena);
}

static dv_str print_value(struct explainer *x, const struct dv_cel_val *val)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_cel_val_print(val, &buf);
    return dv_str_copy(dv_buf_str(&buf), x->arena);
}

/* Evaluates the node on its own, with the cost that is left. */
static void evaluate(struct explainer *x, const struct dv_cel_node *node, struct dv_cel_val *out)
{
    dv_cel_run_node(&x->run, node, out);
    if (x->run.stop)
        dv_cel_run_stop(&x->run, (enum dv_cel_fault)x->run.stop, out);
}

/* Finds the first part of a conjunction that is false or, when none is, the first that fails. */
static const struct dv_cel_node *find_part(struct explainer *x, const struct dv_cel_node *node,
                                           struct dv_cel_val *out)
{
    const struct dv_cel_node *failing = NULL;
    struct dv_cel_val error = {0};

    evaluate(x, node, out);
    if (node->kind != DV_CEL_NODE_AND || (out->kind == DV_CEL_BOOL && out->b) || x->run.stop)
        return node;
    for (uint32_t i = 0; i < node->n_args; i++) {
        struct dv_cel_val value;
        const struct dv_cel_node *part = find_part(x, node->args[i], &value);

        if (value.kind == DV_CEL_BOOL && !value.b) {
            *out = value;
            return part;
        }
        if (!failing && value.kind != DV_CEL_BOOL) {
            failing = part;
            error = value;
        }
    }
    if (failing)
        *out = error;
    return failing ? failing : node;
}

static void see(struct explainer *x, const struct dv_cel_node *node)
{
    struct dv_cel_seen *seen;
    struct dv_cel_val value;
    dv_str text = print_node(x, node);

    for (size_t i = 0; i < x->seen.n; i++)
        if (dv_str_eq(x->seen.v[i].expression, text))
            return;
    evaluate(x, node, &value);
    seen = dv_vec_add_in(&x->seen, x->arena);
    seen->expression = text;
    seen->value = print_value(x, &value);
}

/* Reports the attributes under a node, except those in a comprehension, which have a value for each
 * round. */
static void see_all(struct explainer *x, const struct dv_cel_node *node)
{
    if (node->kind == DV_CEL_NODE_ATTR && node->root == DV_CEL_ROOT_VAR) {
        see(x, node);
        return;
    }
    if (node->kind == DV_CEL_NODE_FOLD) {
        see_all(x, node->fold->range);
        return;
    }
    if (node->kind == DV_CEL_NODE_ATTR && node->root == DV_CEL_ROOT_SLOT)
        return;
    for (uint32_t i = 0; i < node->n_args; i++)
        see_all(x, node->args[i]);
}

void dv_cel_explain(const struct dv_cel_expr *expr, const struct dv_cel_device *device,
                    struct dv_arena *arena, struct dv_cel_report *report)
{
    const struct dv_cel_program *program = &expr->program;
    struct explainer x = {.arena = arena};
    const struct dv_cel_node *part;
    struct dv_cel_val value;

    *report = (struct dv_cel_report){.verdict = DV_CEL_FAILS};
    if (dv_cel_is_error(&device->fault)) {
        report->problem = print_value(&x, &device->fault);
        return;
    }
    x.run = (struct dv_cel_run){.arena = arena,
                                .cost_max = DV_CEL_COST_MAX,
                                .work_max = DV_CEL_WORK_MAX,
                                .memory_max = dv_arena_size_bytes(arena) + DV_CEL_MEMORY_MAX,
                                .vars = &device->self,
                                .slots = DV_NEW_ARRAY(arena, struct dv_cel_slot, program->n_slots)};
    part = find_part(&x, program->node, &value);
    report->part = print_node(&x, part);
    if (value.kind == DV_CEL_BOOL)
        report->verdict = value.b ? DV_CEL_MATCHES : DV_CEL_DIFFERS;
    else
        report->problem =
            dv_cel_is_error(&value) ? print_value(&x, &value) : DV_STR("the result is not a bool");
    if (!x.run.stop)
        see_all(&x, part);
    report->seen = x.seen.v;
    report->n_seen = x.seen.n;
    report->cost = x.run.cost + x.run.work;
}

#include "cel/plan/compile.h"

#include <string.h>

#include "base/arena.h"
#include "cel/check/cel_check.h"
#include "cel/check/cost.h"
#include "cel/check/decls.h"
#include "cel/plan/plan_node.h"
#include "cel/read/ast.h"
#include "cel/value/cel_run.h"

/* Up to this many slots are on the stack. */
#define SLOTS_ON_STACK 12u

bool dv_cel_program_make(dv_str text, const struct dv_cel_decls *decls,
                         const struct dv_cel_steps *steps, struct dv_arena *arena,
                         struct dv_cel_issues *issues, struct dv_cel_program *program)
{
    struct dv_cel_ast *parsed;

    *program = (struct dv_cel_program){.text = text, .max_cost = UINT64_MAX};
    parsed = dv_cel_parse(text, arena, issues);
    program->parsed = parsed;
    if (!parsed)
        return false;
    program->ast =
        steps->skip_macros ? parsed : dv_cel_expand(parsed, arena, issues, decls->is_policy);
    if (!program->ast)
        return false;
    if (!steps->skip_check) {
        dv_cel_check(program->ast, decls, arena, issues);
        if (issues->list.n == 0)
            dv_cel_validate(program->ast, decls, arena, issues);
    }
    if (issues->list.n > 0)
        return false;
    program->node = dv_cel_plan(program->ast, decls, arena, issues, &program->n_slots);
    if (!program->node)
        return false;
    if (!steps->skip_check && !steps->skip_estimate)
        program->max_cost = dv_cel_estimate(program->ast, arena);
    return true;
}

void dv_cel_program_run(const struct dv_cel_program *program, const struct dv_cel_val *vars,
                        struct dv_cel_run *run, struct dv_cel_val *out)
{
    struct dv_cel_slot slots[SLOTS_ON_STACK];

    run->vars = vars;
    run->slots = slots;
    if (program->n_slots > SLOTS_ON_STACK)
        run->slots = DV_NEW_ARRAY(run->arena, struct dv_cel_slot, program->n_slots);
    dv_cel_run_node(run, program->node, out);
    if (run->stop)
        dv_cel_run_stop(run, (enum dv_cel_fault)run->stop, out);
    run->slots = NULL;
}

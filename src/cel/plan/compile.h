/* compile.h - from text to a plan, in any environment: what dv_cel_compile and the tests share. */
#ifndef DV_CEL_COMPILE_H
#define DV_CEL_COMPILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct dv_arena;
struct dv_cel_ast;
struct dv_cel_decls;
struct dv_cel_issues;
struct dv_cel_node;
struct dv_cel_run;
struct dv_cel_val;

/* Steps to leave out. */
struct dv_cel_steps {
    bool skip_macros;
    bool skip_check;
    bool skip_estimate;
};

struct dv_cel_program {
    dv_str text;
    const struct dv_cel_ast *parsed;
    struct dv_cel_ast *ast; /* macros expanded, types filled in unless that was left out */
    const struct dv_cel_node *node;
    uint32_t n_slots;
    uint64_t max_cost;
};

/* Compiles into `arena`. False, with issues: the text does not compile. */
bool dv_cel_program_make(dv_str text, const struct dv_cel_decls *decls,
                         const struct dv_cel_steps *steps, struct dv_arena *arena,
                         struct dv_cel_issues *issues, struct dv_cel_program *program);

/* Evaluates with `vars` as the environment's variables, in their order. The caller sets the arena
 * and the limits in `run`. */
void dv_cel_program_run(const struct dv_cel_program *program, const struct dv_cel_val *vars,
                        struct dv_cel_run *run, struct dv_cel_val *out);

#endif

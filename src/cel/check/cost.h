/* cost.h - what calls cost: really, and at most. */
#ifndef DV_CEL_COST_H
#define DV_CEL_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/check/decls.h"

struct dv_arena;
struct dv_cel_ast;
struct dv_cel_val;

/* The cost of each character that is walked, and of each character of a regular expression. */
#define DV_CEL_STRING_FACTOR 0.1
#define DV_CEL_REGEX_FACTOR 0.25

/* The cost of a call that was made, with its arguments (a member's target first) and result. */
uint64_t dv_cel_call_cost(enum dv_cel_cost rule, const struct dv_cel_val *args, size_t n_args,
                          const struct dv_cel_val *result);
uint64_t dv_cel_eq_cost(const struct dv_cel_val *args, bool is_equality);

/* Estimates the worst case of a checked expression's cost. */
uint64_t dv_cel_estimate(struct dv_cel_ast *ast, struct dv_arena *arena);

#endif

/* cel_check.h - types of everything in an expression, and what is wrong with it. */
#ifndef DV_CEL_CHECK_H
#define DV_CEL_CHECK_H

#include <stdbool.h>

#include "base/str.h"

struct dv_arena;
struct dv_cel_ast;
struct dv_cel_decls;
struct dv_cel_issues;

/* Fills in types, overloads and full names. Problems are added to `issues`. */
void dv_cel_check(struct dv_cel_ast *ast, const struct dv_cel_decls *decls, struct dv_arena *arena,
                  struct dv_cel_issues *issues);
/* Validates an expression that was checked: literal times, durations, patterns and format strings,
 * and literals of lists and maps that mix types. */
void dv_cel_validate(const struct dv_cel_ast *ast, const struct dv_cel_decls *decls,
                     struct dv_arena *arena, struct dv_cel_issues *issues);
/* Validates a literal format string and its list. */
void dv_cel_validate_format(const struct dv_cel_ast *call, struct dv_cel_issues *issues);

/* Makes a name of a.b.c; false when it is another expression. */
bool dv_cel_qualified_name(const struct dv_cel_ast *ast, struct dv_arena *arena, dv_str *name);

#endif

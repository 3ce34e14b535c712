/* test_ast_eq.h - compares trees: blanks, parentheses and the notation of literals do not count. */
#ifndef DV_CEL_TEST_AST_EQ_H
#define DV_CEL_TEST_AST_EQ_H

#include <stdbool.h>

struct dv_cel_ast;

bool ast_eq(const struct dv_cel_ast *a, const struct dv_cel_ast *b);

#endif

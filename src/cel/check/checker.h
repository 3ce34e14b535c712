/* checker.h - what the files of the type checker share: cel_check.c and check_literal.c. */
#ifndef DV_CEL_CHECKER_H
#define DV_CEL_CHECKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "cel/value/type.h"

struct dv_arena;
struct dv_cel_ast;
struct dv_cel_decls;
struct dv_cel_issues;

/* A variable of a comprehension, innermost first. */
struct dv_cel_scope {
    const struct dv_cel_scope *up;
    dv_str name;
    const struct dv_cel_type *type;
};

struct dv_cel_checker {
    const struct dv_cel_decls *decls;
    struct dv_arena *arena;
    struct dv_cel_issues *issues;
    const struct dv_cel_scope *scope;
    struct dv_cel_unifier unifier;
};

/* Sets the types in the tree. */
void dv_cel_check_node(struct dv_cel_checker *c, struct dv_cel_ast *ast);
/* check_literal.c: literals of lists, maps and messages. */
void dv_cel_check_list(struct dv_cel_checker *c, struct dv_cel_ast *ast);
void dv_cel_check_map(struct dv_cel_checker *c, struct dv_cel_ast *ast);
void dv_cel_check_struct(struct dv_cel_checker *c, struct dv_cel_ast *ast);

/* Whether a value of the type can stand where the other is wanted; binds type variables. */
bool dv_cel_checker_fits(struct dv_cel_checker *c, const struct dv_cel_type *from,
                         const struct dv_cel_type *to);
/* The type with what is known by now of its variables. */
const struct dv_cel_type *dv_cel_checker_known(struct dv_cel_checker *c,
                                               const struct dv_cel_type *type);
bool dv_cel_type_is_dynamic(const struct dv_cel_type *type);

/* Add an issue. */
void dv_cel_checker_mismatch(struct dv_cel_checker *c, uint32_t at,
                             const struct dv_cel_type *expected, const struct dv_cel_type *found);
void dv_cel_checker_undeclared(struct dv_cel_checker *c, struct dv_cel_ast *ast, dv_str name);

#endif

/* check_literal.c - types of literals of lists, maps and messages. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cel/check/checker.h"
#include "cel/check/decls.h"
#include "cel/read/ast.h"
#include "cel/value/cel_message.h"

static const struct dv_cel_type *join(struct dv_cel_checker *c, const struct dv_cel_type *so_far,
                                      const struct dv_cel_type *next)
{
    if (!so_far)
        return next;
    if (dv_cel_checker_fits(c, so_far, next))
        return dv_cel_most_general(so_far, next);
    return &dv_cel_t_dyn; /* dv_cel_validate reports lists of mixed types */
}

/* The type of an element or value, without the optional when it is marked as one. */
static const struct dv_cel_type *element_type(struct dv_cel_checker *c, struct dv_cel_ast *ast,
                                              bool is_optional)
{
    const struct dv_cel_type *type;

    dv_cel_check_node(c, ast);
    if (!is_optional)
        return ast->type;
    type = dv_cel_checker_known(c, ast->type);
    if (dv_cel_type_is_optional(type))
        return type->params[0];
    if (!dv_cel_type_is_dynamic(type) && type->kind != DV_CEL_T_ERROR)
        dv_cel_checker_mismatch(c, ast->at, dv_cel_optional_of(type, c->arena), type);
    return type;
}

void dv_cel_check_list(struct dv_cel_checker *c, struct dv_cel_ast *ast)
{
    const struct dv_cel_type *type = NULL;

    for (uint32_t i = 0; i < ast->n_args; i++)
        type = join(c, type, element_type(c, ast->args[i], ast->optionals && ast->optionals[i]));
    ast->type = dv_cel_list_of(type ? type : dv_cel_var_new(&c->unifier), c->arena);
}

void dv_cel_check_map(struct dv_cel_checker *c, struct dv_cel_ast *ast)
{
    const struct dv_cel_type *key = NULL;
    const struct dv_cel_type *value = NULL;

    for (uint32_t i = 0; i < ast->n_args; i += 2) {
        dv_cel_check_node(c, ast->args[i]);
        key = join(c, key, ast->args[i]->type);
        value = join(c, value,
                     element_type(c, ast->args[i + 1], ast->optionals && ast->optionals[i / 2]));
    }
    ast->type = dv_cel_map_of(key ? key : dv_cel_var_new(&c->unifier),
                              value ? value : dv_cel_var_new(&c->unifier), c->arena);
}

void dv_cel_check_struct(struct dv_cel_checker *c, struct dv_cel_ast *ast)
{
    const struct dv_cel_type *type = NULL;

    for (size_t i = 0;
         !type && dv_cel_candidate(c->decls->container, ast->name, &i, c->arena, &ast->resolved);)
        type = dv_cel_message_type(ast->resolved, c->arena);
    if (!type) {
        dv_cel_checker_undeclared(c, ast, ast->name);
        return;
    }
    ast->type = type;
    for (uint32_t i = 0; i < ast->n_args; i++) {
        const struct dv_cel_type *field;

        dv_cel_check_node(c, ast->args[i]);
        field = type->kind == DV_CEL_T_OBJECT ? dv_cel_field_type(c->decls, ast->names[i], c->arena)
                                              : dv_cel_message_field(ast->resolved, ast->names[i]);
        if (!field)
            dv_cel_issue_add(c->issues, ast->at, "undefined field '%.*s'", DV_FMT(ast->names[i]));
        else if (!dv_cel_checker_fits(c, field, ast->args[i]->type))
            dv_cel_checker_mismatch(c, ast->args[i]->at, field, ast->args[i]->type);
    }
}

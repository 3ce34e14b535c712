#include "cel/check/cel_check.h"

#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "cel/check/checker.h"
#include "cel/check/decls.h"
#include "cel/read/ast.h"
#include "cel/value/cel_message.h"
#include "cel/value/cel_value.h"

/* An expression of ten kilobytes has a few thousand nodes, or some ten thousand with all macros
 * expanded. */
#define NODES_MAX 100000u

/* The longest name of a type in a message. */
#define TYPE_BYTES_MAX 2000u

bool dv_cel_checker_fits(struct dv_cel_checker *c, const struct dv_cel_type *from,
                         const struct dv_cel_type *to)
{
    return dv_cel_assignable(&c->unifier, &from, &to, 1);
}

const struct dv_cel_type *dv_cel_checker_known(struct dv_cel_checker *c,
                                               const struct dv_cel_type *type)
{
    return dv_cel_substitute(&c->unifier, type, false);
}

bool dv_cel_type_is_dynamic(const struct dv_cel_type *type)
{
    return type->kind == DV_CEL_T_DYN || type->kind == DV_CEL_T_ANY;
}

void dv_cel_checker_mismatch(struct dv_cel_checker *c, uint32_t at,
                             const struct dv_cel_type *expected, const struct dv_cel_type *found)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TYPE_BYTES_MAX);
    dv_buf_add_c(&buf, "expected type '");
    dv_cel_type_print(dv_cel_checker_known(c, expected), true, &buf);
    dv_buf_add_c(&buf, "' but found '");
    dv_cel_type_print(dv_cel_checker_known(c, found), true, &buf);
    dv_buf_add_char(&buf, '\'');
    dv_cel_issue_add(c->issues, at, "%s", dv_buf_c(&buf));
}

void dv_cel_checker_undeclared(struct dv_cel_checker *c, struct dv_cel_ast *ast, dv_str name)
{
    dv_cel_issue_add(c->issues, ast->at, "undeclared reference to '%.*s' (in container '%.*s')",
                     DV_FMT(name), DV_FMT(c->decls->container));
    ast->type = &dv_cel_t_error;
}

/* -- Names --------------------------------------------------------------------------------------
 */

bool dv_cel_qualified_name(const struct dv_cel_ast *ast, struct dv_arena *arena, dv_str *name)
{
    dv_str up;

    if (ast->kind == DV_CEL_AST_IDENT) {
        *name = ast->is_absolute ? dv_str_printf(arena, ".%.*s", DV_FMT(ast->name)) : ast->name;
        return true;
    }
    if (ast->kind != DV_CEL_AST_SELECT || ast->is_test ||
        !dv_cel_qualified_name(ast->target, arena, &up))
        return false;
    *name = dv_str_printf(arena, "%.*s.%.*s", DV_FMT(up), DV_FMT(ast->name));
    return true;
}

static const struct dv_cel_type *find_exact(const struct dv_cel_checker *c, dv_str name)
{
    const struct dv_cel_type *type;

    for (size_t i = 0; i < c->decls->n_vars; i++)
        if (dv_str_eq(c->decls->vars[i].name, name))
            return c->decls->vars[i].type;
    if (dv_str_eq(name, DV_CEL_NULL_VALUE))
        return &dv_cel_t_null;
    type = dv_cel_type_named(name);
    return type ? dv_cel_type_of(type, c->arena) : NULL;
}

/* The type of the variable or type that `name` means, and its full name; NULL: there is none. */
static const struct dv_cel_type *find_name(struct dv_cel_checker *c, dv_str name, dv_str *full)
{
    for (const struct dv_cel_scope *scope = c->scope; scope; scope = scope->up) {
        if (dv_str_eq(scope->name, name)) {
            *full = DV_STR_NONE;
            return scope->type;
        }
    }
    for (size_t i = 0; dv_cel_candidate(c->decls->container, name, &i, c->arena, full);) {
        const struct dv_cel_type *type = find_exact(c, *full);

        if (type)
            return type;
    }
    return NULL;
}

static void check_ident(struct dv_cel_checker *c, struct dv_cel_ast *ast)
{
    dv_str name;

    /* cannot fail: an identifier is a qualified name */
    (void)dv_cel_qualified_name(ast, c->arena, &name);
    ast->type = find_name(c, name, &ast->resolved);
    if (!ast->type)
        dv_cel_checker_undeclared(c, ast, ast->name);
}

/* -- Fields --------------------------------------------------------------------------------------
 */

static const struct dv_cel_type *field_type(struct dv_cel_checker *c, const struct dv_cel_ast *ast,
                                            const struct dv_cel_type *type, dv_str name)
{
    const struct dv_cel_type *field = NULL;
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TYPE_BYTES_MAX);
    if (type->kind == DV_CEL_T_MAP)
        return type->params[1];
    if (type->kind == DV_CEL_T_OBJECT) {
        if (dv_cel_type_eq(type, &dv_cel_t_device))
            field = dv_cel_field_type(c->decls, name, c->arena);
        for (size_t i = 0; i < type->n_fields && !field; i++)
            if (dv_str_eq(type->fields[i].name, name))
                field = type->fields[i].type;
        if (!field)
            dv_cel_issue_add(c->issues, ast->at, "undefined field '%.*s'", DV_FMT(name));
        return field ? field : &dv_cel_t_error;
    }
    if (type->kind == DV_CEL_T_VAR) {
        /* the variable is bound to dyn, whatever its element turns out to be */
        (void)dv_cel_checker_fits(c, &dv_cel_t_dyn, type);
        return &dv_cel_t_dyn;
    }
    if (!dv_cel_type_is_dynamic(type) && type->kind != DV_CEL_T_ERROR) {
        dv_cel_type_print(type, true, &buf);
        dv_cel_issue_add(c->issues, ast->at, "type '%s' does not support field selection",
                         dv_buf_c(&buf));
    }
    return &dv_cel_t_dyn;
}

static void check_field(struct dv_cel_checker *c, struct dv_cel_ast *ast,
                        struct dv_cel_ast *operand, dv_str name, bool is_optional)
{
    const struct dv_cel_type *type;

    dv_cel_check_node(c, operand);
    type = dv_cel_checker_known(c, operand->type);
    if (dv_cel_type_is_optional(type)) {
        is_optional = true;
        type = dv_cel_checker_known(c, type->params[0]);
    }
    ast->type = field_type(c, ast, type, name);
    if (is_optional)
        ast->type = dv_cel_optional_of(ast->type, c->arena);
    if (ast->is_test)
        ast->type = &dv_cel_t_bool;
}

static void check_select(struct dv_cel_checker *c, struct dv_cel_ast *ast)
{
    const struct dv_cel_type *type;
    dv_str name;
    dv_str full;

    if (!ast->is_test && dv_cel_qualified_name(ast, c->arena, &name) &&
        (type = find_name(c, name, &full))) {
        ast->kind = DV_CEL_AST_IDENT;
        ast->name = name;
        ast->resolved = full;
        ast->type = type;
        return;
    }
    check_field(c, ast, ast->target, ast->name, false);
}

/* -- Calls ----------------------------------------------------------------------------------------
 */

static void no_overload(struct dv_cel_checker *c, struct dv_cel_ast *ast,
                        const struct dv_cel_type *const *args, size_t n_args)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    size_t first = ast->target ? 1 : 0;

    dv_buf_init(&buf, TYPE_BYTES_MAX);
    if (ast->target) {
        dv_cel_type_print(dv_cel_checker_known(c, args[0]), true, &buf);
        dv_buf_add_char(&buf, '.');
    }
    dv_buf_add_char(&buf, '(');
    for (size_t i = first; i < n_args; i++) {
        if (i > first)
            dv_buf_add_c(&buf, ", ");
        dv_cel_type_print(dv_cel_checker_known(c, args[i]), true, &buf);
    }
    dv_buf_add_char(&buf, ')');
    dv_cel_issue_add(c->issues, ast->at, "found no matching overload for '%.*s' applied to '%s'",
                     DV_FMT(ast->name), dv_buf_c(&buf));
    ast->type = &dv_cel_t_error;
}

/* Finds all overloads that may take the arguments; the result is dyn when theirs differ. */
static void resolve(struct dv_cel_checker *c, struct dv_cel_ast *ast, dv_str function)
{
    const struct dv_cel_type *args[DV_CEL_PARAMS_MAX + 1];
    const struct dv_cel_type *params[DV_CEL_PARAMS_MAX];
    const struct dv_cel_type *result = NULL;
    const struct dv_cel_overload *row = NULL;
    DV_VEC(const struct dv_cel_overload *) rows = {0};
    size_t n_args = 0;

    if (ast->target)
        args[n_args++] = ast->target->type;
    for (uint32_t i = 0; i < ast->n_args && n_args <= DV_CEL_PARAMS_MAX; i++)
        args[n_args++] = ast->args[i]->type;
    while ((row = dv_cel_overload_next(c->decls, function, row))) {
        const struct dv_cel_type *type;

        if (dv_cel_overload_is_member(row) != (ast->target != NULL) ||
            dv_cel_overload_n_params(row) != n_args)
            continue;
        type = dv_cel_overload_types(row, &c->unifier, params);
        if (!dv_cel_assignable(&c->unifier, args, params, n_args))
            continue;
        *dv_vec_add_in(&rows, c->arena) = row;
        type = dv_cel_checker_known(c, type);
        if (!result)
            result = type;
        else if (!dv_cel_type_is_dynamic(result) && !dv_cel_type_eq(type, result))
            result = &dv_cel_t_dyn;
    }
    if (!result) {
        no_overload(c, ast, args, n_args);
        return;
    }
    ast->resolved = function;
    ast->overloads = rows.v;
    ast->n_overloads = (uint32_t)rows.n;
    ast->type = result;
}

static bool find_function(struct dv_cel_checker *c, dv_str name, dv_str *full)
{
    for (size_t i = 0; dv_cel_candidate(c->decls->container, name, &i, c->arena, full);)
        if (dv_cel_overload_next(c->decls, *full, NULL))
            return true;
    return false;
}

static void check_logical(struct dv_cel_checker *c, struct dv_cel_ast *ast)
{
    const struct dv_cel_type *bools[] = {&dv_cel_t_bool, &dv_cel_t_bool};

    for (uint32_t i = 0; i < ast->n_args; i++)
        dv_cel_check_node(c, ast->args[i]);
    ast->type = &dv_cel_t_bool;
    for (uint32_t i = 1; i < ast->n_args; i++) {
        const struct dv_cel_type *pair[] = {ast->args[i - 1]->type, ast->args[i]->type};

        if (!dv_cel_assignable(&c->unifier, pair, bools, 2)) {
            no_overload(c, ast, pair, 2);
            return;
        }
    }
}

static bool is_logical(const struct dv_cel_ast *ast)
{
    return !ast->target &&
           (dv_str_eq(ast->name, DV_STR("_&&_")) || dv_str_eq(ast->name, DV_STR("_||_")));
}

static void check_member(struct dv_cel_checker *c, struct dv_cel_ast *ast)
{
    dv_str prefix;
    dv_str full;

    if (dv_cel_qualified_name(ast->target, c->arena, &prefix) &&
        find_function(c, dv_str_printf(c->arena, "%.*s.%.*s", DV_FMT(prefix), DV_FMT(ast->name)),
                      &full)) {
        ast->target = NULL;
        ast->is_member = false;
        ast->name = full;
        resolve(c, ast, full);
        return;
    }
    dv_cel_check_node(c, ast->target);
    if (find_function(c, ast->name, &full))
        resolve(c, ast, full);
    else
        dv_cel_checker_undeclared(c, ast, ast->name);
}

static void check_call(struct dv_cel_checker *c, struct dv_cel_ast *ast)
{
    dv_str name = ast->name;
    dv_str full;

    if (dv_str_eq(name, DV_STR("_?._"))) {
        dv_cel_check_node(c, ast->args[1]);
        check_field(c, ast, ast->args[0], ast->args[1]->literal.s, true);
        return;
    }
    if (is_logical(ast)) {
        check_logical(c, ast);
        return;
    }
    for (uint32_t i = 0; i < ast->n_args; i++)
        dv_cel_check_node(c, ast->args[i]);
    if (ast->target) {
        check_member(c, ast);
        return;
    }
    if (ast->is_absolute)
        name = dv_str_printf(c->arena, ".%.*s", DV_FMT(name));
    if (find_function(c, name, &full))
        resolve(c, ast, full);
    else
        dv_cel_checker_undeclared(c, ast, ast->name);
}

/* -- Comprehensions -------------------------------------------------------------------------- */

static void range_types(struct dv_cel_checker *c, const struct dv_cel_ast *ast,
                        const struct dv_cel_type **iter, const struct dv_cel_type **iter2)
{
    const struct dv_cel_type *range = dv_cel_checker_known(c, ast->fold->range->type);
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TYPE_BYTES_MAX);
    *iter = *iter2 = &dv_cel_t_dyn;
    if (range->kind == DV_CEL_T_LIST) {
        *iter2 = range->params[0];
        *iter = ast->fold->iter2.n > 0 ? &dv_cel_t_int : range->params[0];
    } else if (range->kind == DV_CEL_T_MAP) {
        *iter = range->params[0];
        *iter2 = range->params[1];
    } else if (range->kind == DV_CEL_T_DYN || range->kind == DV_CEL_T_ERROR ||
               range->kind == DV_CEL_T_VAR) {
        (void)dv_cel_checker_fits(c, &dv_cel_t_dyn, range);
    } else {
        dv_cel_type_print(range, true, &buf);
        dv_cel_issue_add(c->issues, ast->fold->range->at,
                         "expression of type '%s' cannot be range of a comprehension (must be "
                         "list, map, or dynamic)",
                         dv_buf_c(&buf));
        *iter = *iter2 = &dv_cel_t_error;
    }
}

static void check_fold(struct dv_cel_checker *c, struct dv_cel_ast *ast)
{
    const struct dv_cel_fold *fold = ast->fold;
    const struct dv_cel_scope *outer = c->scope;
    struct dv_cel_scope accu = {.up = outer, .name = fold->accu};
    struct dv_cel_scope iter = {.up = &accu, .name = fold->iter};
    struct dv_cel_scope iter2 = {.up = &iter, .name = fold->iter2};

    dv_cel_check_node(c, fold->range);
    dv_cel_check_node(c, fold->init);
    accu.type = fold->init->type;
    range_types(c, ast, &iter.type, &iter2.type);
    c->scope = fold->iter2.n > 0 ? &iter2 : &iter;
    dv_cel_check_node(c, fold->cond);
    if (!dv_cel_checker_fits(c, &dv_cel_t_bool, fold->cond->type))
        dv_cel_checker_mismatch(c, fold->cond->at, &dv_cel_t_bool, fold->cond->type);
    dv_cel_check_node(c, fold->step);
    if (!dv_cel_checker_fits(c, accu.type, fold->step->type))
        dv_cel_checker_mismatch(c, fold->step->at, accu.type, fold->step->type);
    c->scope = &accu;
    dv_cel_check_node(c, fold->result);
    c->scope = outer;
    ast->type = dv_cel_checker_known(c, fold->result->type);
}

void dv_cel_check_node(struct dv_cel_checker *c, struct dv_cel_ast *ast)
{
    if (ast->type) /* optMap has its target twice in the tree, and it is checked once */
        return;
    switch (ast->kind) {
    case DV_CEL_AST_LITERAL:
        ast->type = dv_cel_val_type(&ast->literal);
        break;
    case DV_CEL_AST_IDENT:
        check_ident(c, ast);
        break;
    case DV_CEL_AST_SELECT:
        check_select(c, ast);
        break;
    case DV_CEL_AST_CALL:
        check_call(c, ast);
        break;
    case DV_CEL_AST_LIST:
        dv_cel_check_list(c, ast);
        break;
    case DV_CEL_AST_MAP:
        dv_cel_check_map(c, ast);
        break;
    case DV_CEL_AST_STRUCT:
        dv_cel_check_struct(c, ast);
        break;
    case DV_CEL_AST_FOLD:
        check_fold(c, ast);
        break;
    }
}

/* Replaces the variables in all types by what was found out; a free one becomes dyn. */
static void finish(struct dv_cel_checker *c, struct dv_cel_ast *ast)
{
    if (ast->is_finished) /* optMap has its target twice in the tree, and it is finished once */
        return;
    ast->is_finished = true;
    ast->type = dv_cel_substitute(&c->unifier, ast->type, true);
    if (ast->target && ast->target->type)
        finish(c, ast->target);
    for (uint32_t i = 0; i < ast->n_args; i++)
        finish(c, ast->args[i]);
    if (ast->fold) {
        finish(c, ast->fold->range);
        finish(c, ast->fold->init);
        finish(c, ast->fold->cond);
        finish(c, ast->fold->step);
        finish(c, ast->fold->result);
    }
}

/* Whether the tree has at most so many nodes. Macros may have their target twice, and that again,
 * so a short text can become a huge tree. */
static bool is_small(const struct dv_cel_ast *ast, uint32_t *n_left)
{
    if (*n_left == 0)
        return false;
    --*n_left;
    if (ast->target && !is_small(ast->target, n_left))
        return false;
    for (uint32_t i = 0; i < ast->n_args; i++)
        if (!is_small(ast->args[i], n_left))
            return false;
    return !ast->fold || (is_small(ast->fold->range, n_left) && is_small(ast->fold->init, n_left) &&
                          is_small(ast->fold->cond, n_left) && is_small(ast->fold->step, n_left) &&
                          is_small(ast->fold->result, n_left));
}

void dv_cel_check(struct dv_cel_ast *ast, const struct dv_cel_decls *decls, struct dv_arena *arena,
                  struct dv_cel_issues *issues)
{
    struct dv_cel_checker c = {.decls = decls, .arena = arena, .issues = issues};
    uint32_t n_left = NODES_MAX;

    if (!is_small(ast, &n_left)) {
        dv_cel_issue_add(issues, ast->at, "the expression is too large with its macros expanded");
        return;
    }
    c.unifier.arena = arena;
    dv_cel_check_node(&c, ast);
    if (issues->list.n == 0)
        finish(&c, ast);
    if (c.unifier.n_visits >= DV_CEL_TYPE_VISITS_MAX)
        dv_cel_issue_add(issues, ast->at, "the types of its values are too large");
}

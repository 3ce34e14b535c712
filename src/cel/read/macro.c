/* macro.c - has, all, exists, map and the like as what they stand for. */
#include <string.h>

#include "base/arena.h"
#include "cel/read/ast.h"

#define ACCU DV_STR("@result")
#define UNUSED DV_STR("#unused")
#define SORT_INPUT DV_STR("@__sortBy_input__")

struct expander {
    struct dv_arena *arena;
    struct dv_cel_issues *issues;
    uint32_t at;    /* of the macro */
    bool skip_bind; /* cel.bind() is no macro */
};

static struct dv_cel_ast *expand(struct expander *x, const struct dv_cel_ast *ast);

/* -- Making nodes ---------------------------------------------------------------------------------
 */

static struct dv_cel_ast *new_ast(struct expander *x, enum dv_cel_ast_kind kind)
{
    struct dv_cel_ast *ast = DV_NEW(x->arena, struct dv_cel_ast);

    ast->kind = kind;
    ast->at = x->at;
    return ast;
}

static struct dv_cel_ast *ident(struct expander *x, dv_str name)
{
    struct dv_cel_ast *ast = new_ast(x, DV_CEL_AST_IDENT);

    ast->name = name;
    return ast;
}

static struct dv_cel_ast *literal(struct expander *x, struct dv_cel_val value)
{
    struct dv_cel_ast *ast = new_ast(x, DV_CEL_AST_LITERAL);

    ast->literal = value;
    return ast;
}

static struct dv_cel_ast *call(struct expander *x, const char *name, uint32_t n_args,
                               struct dv_cel_ast *const *args)
{
    struct dv_cel_ast *ast = new_ast(x, DV_CEL_AST_CALL);

    ast->name = dv_str_from_c(name);
    ast->n_args = n_args;
    ast->args = DV_NEW_ARRAY(x->arena, struct dv_cel_ast *, n_args);
    if (n_args > 0)
        memcpy(ast->args, args, n_args * sizeof(args[0]));
    return ast;
}

static struct dv_cel_ast *call1(struct expander *x, const char *name, struct dv_cel_ast *a)
{
    return call(x, name, 1, (struct dv_cel_ast *[]){a});
}

static struct dv_cel_ast *call2(struct expander *x, const char *name, struct dv_cel_ast *a,
                                struct dv_cel_ast *b)
{
    return call(x, name, 2, (struct dv_cel_ast *[]){a, b});
}

static struct dv_cel_ast *choose(struct expander *x, struct dv_cel_ast *cond,
                                 struct dv_cel_ast *then, struct dv_cel_ast *other)
{
    return call(x, "_?_:_", 3, (struct dv_cel_ast *[]){cond, then, other});
}

static struct dv_cel_ast *member(struct expander *x, const char *name, struct dv_cel_ast *target)
{
    struct dv_cel_ast *ast = call(x, name, 0, NULL);

    ast->is_member = true;
    ast->target = target;
    return ast;
}

/* optional.of and optional.none are looked up under that name. */
static struct dv_cel_ast *list_of(struct expander *x, struct dv_cel_ast *element)
{
    struct dv_cel_ast *ast = new_ast(x, DV_CEL_AST_LIST);

    if (element) {
        ast->args = DV_NEW_ARRAY(x->arena, struct dv_cel_ast *, 1);
        ast->args[0] = element;
        ast->n_args = 1;
    }
    return ast;
}

static struct dv_cel_ast *fold(struct expander *x, const struct dv_cel_fold *parts)
{
    struct dv_cel_ast *ast = new_ast(x, DV_CEL_AST_FOLD);

    ast->fold = DV_NEW(x->arena, struct dv_cel_fold);
    *ast->fold = *parts;
    return ast;
}

/* Binds a variable to a value that is computed when it is first used. */
static struct dv_cel_ast *bind(struct expander *x, dv_str name, struct dv_cel_ast *value,
                               struct dv_cel_ast *body)
{
    return fold(x, &(struct dv_cel_fold){.iter = UNUSED,
                                         .accu = name,
                                         .range = list_of(x, NULL),
                                         .init = value,
                                         .cond = literal(x, dv_cel_bool(false)),
                                         .step = ident(x, name),
                                         .result = body});
}

/* -- Checks --------------------------------------------------------------------------------------
 */

static bool take_var(struct expander *x, const struct dv_cel_ast *arg, dv_str *name)
{
    if (arg->kind != DV_CEL_AST_IDENT || arg->is_absolute) {
        dv_cel_issue_add(x->issues, arg->at, "argument must be a simple name");
        return false;
    }
    *name = arg->name;
    if (dv_str_eq(*name, ACCU) || dv_str_eq(*name, DV_STR("__result__"))) {
        dv_cel_issue_add(x->issues, arg->at, "iteration variable overwrites accumulator variable");
        return false;
    }
    return true;
}

/* -- The macros ------------------------------------------------------------------------------ */

/* The use of a macro; its arguments and target are expanded already. `n_vars` is how many of the
 * arguments name variables. */
struct use {
    struct dv_cel_ast *target;
    struct dv_cel_ast **args;
    uint32_t n_args;
    uint32_t n_vars;
};

static bool take_vars(struct expander *x, const struct use *use, struct dv_cel_fold *parts)
{
    if (!take_var(x, use->args[0], &parts->iter))
        return false;
    if (use->n_vars < 2)
        return true;
    if (!take_var(x, use->args[1], &parts->iter2))
        return false;
    if (dv_str_eq(parts->iter, parts->iter2)) {
        dv_cel_issue_add(x->issues, use->args[1]->at, "duplicate variable name: %.*s",
                         DV_FMT(parts->iter));
        return false;
    }
    return true;
}

static struct dv_cel_ast *expand_has(struct expander *x, const struct use *use)
{
    const struct dv_cel_ast *arg = use->args[0];
    struct dv_cel_ast *test;

    if (arg->kind != DV_CEL_AST_SELECT || arg->is_test) {
        dv_cel_issue_add(x->issues, arg->at, "invalid argument to has() macro");
        return NULL;
    }
    test = new_ast(x, DV_CEL_AST_SELECT);
    test->target = arg->target;
    test->name = arg->name;
    test->is_test = true;
    return test;
}

static struct dv_cel_ast *expand_all(struct expander *x, const struct use *use)
{
    struct dv_cel_fold parts = {
        .accu = ACCU, .range = use->target, .init = literal(x, dv_cel_bool(true))};

    if (!take_vars(x, use, &parts))
        return NULL;
    parts.cond = call1(x, "@not_strictly_false", ident(x, ACCU));
    parts.step = call2(x, "_&&_", ident(x, ACCU), use->args[use->n_vars]);
    parts.result = ident(x, ACCU);
    return fold(x, &parts);
}

static struct dv_cel_ast *expand_exists(struct expander *x, const struct use *use)
{
    struct dv_cel_fold parts = {
        .accu = ACCU, .range = use->target, .init = literal(x, dv_cel_bool(false))};

    if (!take_vars(x, use, &parts))
        return NULL;
    parts.cond = call1(x, "@not_strictly_false", call1(x, "!_", ident(x, ACCU)));
    parts.step = call2(x, "_||_", ident(x, ACCU), use->args[use->n_vars]);
    parts.result = ident(x, ACCU);
    return fold(x, &parts);
}

static struct dv_cel_ast *expand_exists_one(struct expander *x, const struct use *use)
{
    struct dv_cel_fold parts = {
        .accu = ACCU, .range = use->target, .init = literal(x, dv_cel_int(0))};

    if (!take_vars(x, use, &parts))
        return NULL;
    parts.cond = literal(x, dv_cel_bool(true));
    parts.step = choose(x, use->args[use->n_vars],
                        call2(x, "_+_", ident(x, ACCU), literal(x, dv_cel_int(1))), ident(x, ACCU));
    parts.result = call2(x, "_==_", ident(x, ACCU), literal(x, dv_cel_int(1)));
    return fold(x, &parts);
}

/* Collects `item` from each round, where `filter` (NULL: always) is true. */
static struct dv_cel_ast *collect(struct expander *x, struct dv_cel_fold *parts,
                                  struct dv_cel_ast *filter, struct dv_cel_ast *item)
{
    parts->accu = ACCU;
    parts->init = list_of(x, NULL);
    parts->cond = literal(x, dv_cel_bool(true));
    parts->step = call2(x, "_+_", ident(x, ACCU), list_of(x, item));
    if (filter)
        parts->step = choose(x, filter, parts->step, ident(x, ACCU));
    parts->result = ident(x, ACCU);
    return fold(x, parts);
}

static struct dv_cel_ast *expand_map(struct expander *x, const struct use *use)
{
    struct dv_cel_fold parts = {.range = use->target};

    if (!take_vars(x, use, &parts))
        return NULL;
    return collect(x, &parts, use->n_args > use->n_vars + 1 ? use->args[use->n_vars] : NULL,
                   use->args[use->n_args - 1]);
}

static struct dv_cel_ast *expand_filter(struct expander *x, const struct use *use)
{
    struct dv_cel_fold parts = {.range = use->target};

    if (!take_vars(x, use, &parts))
        return NULL;
    return collect(x, &parts, use->args[1], ident(x, parts.iter));
}

/* Inserts `key` and `value`, or the entries of the map `value` when there is no key. */
static struct dv_cel_ast *insert(struct expander *x, const struct use *use,
                                 struct dv_cel_fold *parts, struct dv_cel_ast *key)
{
    struct dv_cel_ast *value = use->args[use->n_args - 1];

    parts->accu = ACCU;
    parts->range = use->target;
    parts->init = new_ast(x, DV_CEL_AST_MAP);
    parts->cond = literal(x, dv_cel_bool(true));
    if (key)
        parts->step =
            call(x, "cel.@mapInsert", 3, (struct dv_cel_ast *[]){ident(x, ACCU), key, value});
    else
        parts->step = call2(x, "cel.@mapInsert", ident(x, ACCU), value);
    if (use->n_args > use->n_vars + 1)
        parts->step = choose(x, use->args[use->n_vars], parts->step, ident(x, ACCU));
    parts->result = ident(x, ACCU);
    return fold(x, parts);
}

static struct dv_cel_ast *expand_transform_map(struct expander *x, const struct use *use)
{
    struct dv_cel_fold parts = {0};

    if (!take_vars(x, use, &parts))
        return NULL;
    return insert(x, use, &parts, ident(x, parts.iter));
}

static struct dv_cel_ast *expand_transform_map_entry(struct expander *x, const struct use *use)
{
    struct dv_cel_fold parts = {0};

    if (!take_vars(x, use, &parts))
        return NULL;
    return insert(x, use, &parts, NULL);
}

static struct dv_cel_ast *expand_bind(struct expander *x, const struct use *use)
{
    const struct dv_cel_ast *name = use->args[0];

    if (name->kind != DV_CEL_AST_IDENT || name->is_absolute) {
        dv_cel_issue_add(x->issues, name->at,
                         "cel.bind() variable names must be simple identifiers");
        return NULL;
    }
    return bind(x, name->name, use->args[1], use->args[2]);
}

static struct dv_cel_ast *opt_map(struct expander *x, const struct use *use, bool is_flat)
{
    struct dv_cel_ast *body;
    dv_str name;

    if (use->args[0]->kind != DV_CEL_AST_IDENT || use->args[0]->is_absolute) {
        dv_cel_issue_add(x->issues, use->args[0]->at,
                         "%s() variable name must be a simple identifier",
                         is_flat ? "optFlatMap" : "optMap");
        return NULL;
    }
    name = use->args[0]->name;
    body = bind(x, name, member(x, "value", use->target), use->args[1]);
    return choose(x, member(x, "hasValue", use->target),
                  is_flat ? body : call1(x, "optional.of", body),
                  call(x, "optional.none", 0, NULL));
}

static struct dv_cel_ast *expand_opt_map(struct expander *x, const struct use *use)
{
    return opt_map(x, use, false);
}

static struct dv_cel_ast *expand_opt_flat_map(struct expander *x, const struct use *use)
{
    return opt_map(x, use, true);
}

static struct dv_cel_ast *expand_sort_by(struct expander *x, const struct use *use)
{
    struct dv_cel_fold parts = {.range = ident(x, SORT_INPUT)};
    struct dv_cel_ast *sort;

    if (use->target->kind == DV_CEL_AST_LITERAL || use->target->kind == DV_CEL_AST_MAP ||
        use->target->kind == DV_CEL_AST_STRUCT) {
        dv_cel_issue_add(x->issues, use->target->at,
                         "sortBy can only be applied to a list, identifier, comprehension, call or "
                         "select expression");
        return NULL;
    }
    if (!take_vars(x, use, &parts))
        return NULL;
    sort = member(x, "@sortByAssociatedKeys", ident(x, SORT_INPUT));
    sort->args = DV_NEW_ARRAY(x->arena, struct dv_cel_ast *, 1);
    sort->args[0] = collect(x, &parts, NULL, use->args[1]);
    sort->n_args = 1;
    return bind(x, SORT_INPUT, use->target, sort);
}

static const struct {
    const char *name;
    uint32_t n_args;
    bool is_member;
    uint32_t n_vars;
    struct dv_cel_ast *(*expand)(struct expander *x, const struct use *use);
} macros[] = {
    {"has",               1, false, 0, expand_has                },
    {"all",               2, true,  1, expand_all                },
    {"all",               3, true,  2, expand_all                },
    {"exists",            2, true,  1, expand_exists             },
    {"exists",            3, true,  2, expand_exists             },
    {"exists_one",        2, true,  1, expand_exists_one         },
    {"exists_one",        3, true,  2, expand_exists_one         },
    {"existsOne",         3, true,  2, expand_exists_one         },
    {"map",               2, true,  1, expand_map                },
    {"map",               3, true,  1, expand_map                },
    {"filter",            2, true,  1, expand_filter             },
    {"transformList",     3, true,  2, expand_map                },
    {"transformList",     4, true,  2, expand_map                },
    {"transformMap",      3, true,  2, expand_transform_map      },
    {"transformMap",      4, true,  2, expand_transform_map      },
    {"transformMapEntry", 3, true,  2, expand_transform_map_entry},
    {"transformMapEntry", 4, true,  2, expand_transform_map_entry},
    {"optMap",            2, true,  1, expand_opt_map            },
    {"optFlatMap",        2, true,  1, expand_opt_flat_map       },
    {"sortBy",            2, true,  1, expand_sort_by            },
};

/* Expands a macro; a call of none is returned as it is. */
static struct dv_cel_ast *expand_macro(struct expander *x, struct dv_cel_ast *ast)
{
    struct use use = {ast->target, ast->args, ast->n_args, 0};

    x->at = ast->at;
    if (!x->skip_bind && ast->is_member && ast->n_args == 3 &&
        dv_str_eq(ast->name, DV_STR("bind")) && ast->target->kind == DV_CEL_AST_IDENT &&
        dv_str_eq(ast->target->name, DV_STR("cel")))
        return expand_bind(x, &use);
    for (size_t i = 0; i < DV_COUNT(macros); i++) {
        if (ast->n_args != macros[i].n_args || ast->is_member != macros[i].is_member ||
            !dv_str_eq(ast->name, dv_str_from_c(macros[i].name)))
            continue;
        use.n_vars = macros[i].n_vars;
        return macros[i].expand(x, &use);
    }
    return ast;
}

static struct dv_cel_ast *expand(struct expander *x, const struct dv_cel_ast *ast)
{
    struct dv_cel_ast *copy = DV_NEW(x->arena, struct dv_cel_ast);

    *copy = *ast;
    copy->source = ast;
    if (ast->target && !(copy->target = expand(x, ast->target)))
        return NULL;
    if (ast->n_args > 0)
        copy->args = DV_NEW_ARRAY(x->arena, struct dv_cel_ast *, ast->n_args);
    for (uint32_t i = 0; i < ast->n_args; i++)
        if (!(copy->args[i] = expand(x, ast->args[i])))
            return NULL;
    if (ast->kind != DV_CEL_AST_CALL)
        return copy;
    copy = expand_macro(x, copy);
    if (copy)
        copy->source = ast;
    return copy;
}

struct dv_cel_ast *dv_cel_expand(const struct dv_cel_ast *ast, struct dv_arena *arena,
                                 struct dv_cel_issues *issues, bool skip_bind)
{
    struct expander x = {.arena = arena, .issues = issues, .skip_bind = skip_bind};

    return expand(&x, ast);
}

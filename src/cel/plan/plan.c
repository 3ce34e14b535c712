/* plan.c - plans a checked expression: makes the compact tree that is evaluated from the syntax
 * tree and the types that the check has found. */
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "cel/cel.h"
#include "cel/check/cel_check.h"
#include "cel/check/decls.h"
#include "cel/functions/regex.h"
#include "cel/plan/plan_node.h"
#include "cel/read/ast.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_message.h"
#include "cel/value/cel_run.h"

struct scope {
    const struct scope *up;
    dv_str name;
    uint32_t slot;
};

struct planner {
    const struct dv_cel_decls *decls;
    struct dv_arena *arena;
    struct dv_cel_issues *issues;
    const struct scope *scope;
    uint32_t n_slots;
};

static const struct dv_cel_node *plan(struct planner *p, struct dv_cel_ast *ast);

static struct dv_cel_node *new_node(struct planner *p, enum dv_cel_node_kind kind,
                                    const struct dv_cel_ast *ast)
{
    struct dv_cel_node *node = DV_NEW(p->arena, struct dv_cel_node);

    node->kind = (uint8_t)kind;
    node->ast = ast;
    return node;
}

static struct dv_cel_node *constant(struct planner *p, const struct dv_cel_val *value,
                                    const struct dv_cel_ast *ast)
{
    struct dv_cel_node *node = new_node(p, DV_CEL_NODE_CONST, ast);

    node->value = *value;
    return node;
}

static bool plan_args(struct planner *p, struct dv_cel_node *node, struct dv_cel_ast *target,
                      struct dv_cel_ast *const *args, uint32_t n_args)
{
    const struct dv_cel_node **nodes =
        DV_NEW_ARRAY(p->arena, const struct dv_cel_node *, n_args + 1);
    uint32_t n = 0;

    if (target && !(nodes[n++] = plan(p, target)))
        return false;
    for (uint32_t i = 0; i < n_args; i++)
        if (!(nodes[n++] = plan(p, args[i])))
            return false;
    node->args = nodes;
    node->n_args = n;
    return true;
}

static bool is_const(const struct dv_cel_node *node)
{
    return node->kind == DV_CEL_NODE_CONST;
}

static bool are_const(const struct dv_cel_node *node)
{
    for (uint32_t i = 0; i < node->n_args; i++)
        if (!is_const(node->args[i]))
            return false;
    return !node->optionals;
}

/* Computes a constant part now. One that fails would fail every time, so it is refused. */
static const struct dv_cel_node *fold_const(struct planner *p, const struct dv_cel_node *node)
{
    struct dv_cel_run run = {.arena = p->arena,
                             .cost_max = UINT64_MAX,
                             .work_max = DV_CEL_WORK_MAX,
                             .memory_max = DV_CEL_MEMORY_MAX};
    struct dv_cel_val value;

    dv_cel_run_node(&run, node, &value);
    if (!dv_cel_is_error(&value))
        return constant(p, &value, node->ast);
    dv_cel_issue_add(p->issues, node->ast->at, "program instantiation failed: %s%.*s",
                     dv_cel_error_prefix(&value), DV_FMT(value.s));
    return NULL;
}

/* -- Names ----------------------------------------------------------------------------------- */

static bool find_slot(const struct planner *p, dv_str name, uint32_t *slot)
{
    for (const struct scope *scope = p->scope; scope; scope = scope->up) {
        if (dv_str_eq(scope->name, name)) {
            *slot = scope->slot;
            return true;
        }
    }
    return false;
}

/* Plans a variable or type by its full name; NULL: there is none. */
static struct dv_cel_node *plan_full_name(struct planner *p, dv_str name,
                                          const struct dv_cel_ast *ast)
{
    const struct dv_cel_type *type;
    struct dv_cel_node *node;

    for (size_t i = 0; i < p->decls->n_vars; i++) {
        if (!dv_str_eq(p->decls->vars[i].name, name))
            continue;
        node = new_node(p, DV_CEL_NODE_ATTR, ast);
        node->root = DV_CEL_ROOT_VAR;
        node->index = (uint32_t)i;
        return node;
    }
    if (dv_str_eq(name, DV_CEL_NULL_VALUE))
        return constant(p, &(struct dv_cel_val){.kind = DV_CEL_NULL}, ast);
    type = dv_cel_type_named(name);
    if (!type || type == &dv_cel_t_dyn) /* dyn is a type, but no value has it */
        return NULL;
    return constant(p, &(struct dv_cel_val){.kind = DV_CEL_TYPE, .type = type}, ast);
}

/* Plans a name as the checker resolved it or, where nothing was checked, by looking it up. */
static struct dv_cel_node *plan_name(struct planner *p, dv_str name, dv_str resolved,
                                     const struct dv_cel_ast *ast)
{
    struct dv_cel_node *node = NULL;
    uint32_t slot;
    dv_str full;

    if (resolved.n > 0)
        return plan_full_name(p, resolved, ast);
    if (find_slot(p, name, &slot)) {
        node = new_node(p, DV_CEL_NODE_ATTR, ast);
        node->root = DV_CEL_ROOT_SLOT;
        node->index = slot;
        return node;
    }
    for (size_t i = 0; !node && dv_cel_candidate(p->decls->container, name, &i, p->arena, &full);)
        node = plan_full_name(p, full, ast);
    return node;
}

static const struct dv_cel_node *plan_ident(struct planner *p, struct dv_cel_ast *ast)
{
    dv_str name = ast->name;
    struct dv_cel_node *node;
    struct dv_cel_val error;

    if (ast->is_absolute)
        name = dv_str_printf(p->arena, ".%.*s", DV_FMT(name));
    node = plan_name(p, name, ast->resolved, ast);
    if (node)
        return node;
    error = dv_cel_error_printf(p->arena, "no such attribute: %.*s", DV_FMT(name));
    return constant(p, &error, ast);
}

/* -- Attributes ------------------------------------------------------------------------------ */

/* Adds a qualifier to `base`: to the same node, when that is an attribute. */
static struct dv_cel_node *qualify(struct planner *p, const struct dv_cel_node *base,
                                   const struct dv_cel_qualifier *qualifier,
                                   const struct dv_cel_ast *ast)
{
    struct dv_cel_node *node = new_node(p, DV_CEL_NODE_ATTR, ast);
    struct dv_cel_qualifier *list;

    if (base->kind == DV_CEL_NODE_ATTR && !base->is_test) {
        *node = *base;
        node->ast = ast;
    } else {
        const struct dv_cel_node **args = DV_NEW_ARRAY(p->arena, const struct dv_cel_node *, 1);

        args[0] = base;
        node->root = DV_CEL_ROOT_NODE;
        node->args = args;
        node->n_args = 1;
    }
    list = DV_NEW_ARRAY(p->arena, struct dv_cel_qualifier, node->n_qualifiers + 1);
    if (node->n_qualifiers > 0)
        memcpy(list, node->qualifiers, node->n_qualifiers * sizeof(list[0]));
    list[node->n_qualifiers] = *qualifier;
    if (qualifier->key.kind == DV_CEL_STRING)
        list[node->n_qualifiers].hash = dv_cel_str_hash(qualifier->key.s);
    node->qualifiers = list;
    node->n_qualifiers++;
    return node;
}

static const struct dv_cel_node *plan_select(struct planner *p, struct dv_cel_ast *ast)
{
    struct dv_cel_qualifier qualifier = {.key = dv_cel_string(ast->name)};
    const struct dv_cel_node *operand;
    struct dv_cel_node *node;
    dv_str name;

    /* In an unchecked tree this may be a qualified name; the checker makes identifiers of those. */
    if (!ast->type && !ast->is_test && dv_cel_qualified_name(ast, p->arena, &name) &&
        (node = plan_name(p, name, DV_STR_NONE, ast)))
        return node;
    operand = plan(p, ast->target);
    if (!operand)
        return NULL;
    node = qualify(p, operand, &qualifier, ast);
    node->is_test = ast->is_test;
    return node;
}

static const struct dv_cel_node *plan_index(struct planner *p, struct dv_cel_ast *ast,
                                            bool is_optional)
{
    const struct dv_cel_node *base = plan(p, ast->args[0]);
    const struct dv_cel_node *key = base ? plan(p, ast->args[1]) : NULL;
    struct dv_cel_qualifier qualifier = {.is_optional = is_optional};

    if (!key)
        return NULL;
    if (is_const(key) && !dv_cel_is_error(&key->value)) {
        if (!dv_cel_is_key(&key->value)) {
            dv_cel_issue_add(p->issues, ast->at,
                             "program instantiation failed: invalid qualifier type: %.*s",
                             DV_FMT(dv_cel_val_type_name(&key->value)));
            return NULL;
        }
        qualifier.key = key->value;
    } else {
        qualifier.node = key;
    }
    return qualify(p, base, &qualifier, ast);
}

/* -- Calls ----------------------------------------------------------------------------------- */

static bool is_named(dv_str name, const char *other)
{
    return dv_str_eq(name, dv_str_from_c(other));
}

static bool is_conversion(dv_str name)
{
    static const char *const names[] = {"bool", "bytes",  "double",    "duration", "dyn",
                                        "int",  "string", "timestamp", "type",     "uint"};

    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (is_named(name, names[i]))
            return true;
    return false;
}

/* Whether the types that the checker found leave no doubt that the overload takes the arguments. */
static bool is_sure(const struct dv_cel_ast *ast, const struct dv_cel_overload *overload)
{
    size_t n = 0;

    if (ast->target && ast->is_member && !dv_cel_overload_suits(overload, n++, ast->target->type))
        return false;
    for (uint32_t i = 0; i < ast->n_args; i++)
        if (!dv_cel_overload_suits(overload, n++, ast->args[i]->type))
            return false;
    return n == dv_cel_overload_n_params(overload);
}

/* Takes the overload that the checker found when it is one; otherwise all of that name, to choose
 * from at run time. */
static void plan_overloads(struct planner *p, struct dv_cel_node *node,
                           const struct dv_cel_ast *ast)
{
    DV_VEC(const struct dv_cel_overload *) rows = {0};
    const struct dv_cel_overload *row = NULL;
    bool is_same = true;
    bool is_one = false;

    if (ast->n_overloads == 1) {
        *dv_vec_add_in(&rows, p->arena) = ast->overloads[0];
        node->cost = ast->overloads[0]->cost;
    } else {
        while ((row = dv_cel_overload_next(p->decls, node->name, row)))
            if (dv_cel_overload_n_params(row) == node->n_args)
                *dv_vec_add_in(&rows, p->arena) = row;
        if (rows.n > 0 && rows.v[0]->cost >= DV_CEL_COST_TRAVERSE)
            node->cost = rows.v[0]->cost;
    }
    node->is_strict = true;
    for (size_t i = 0; i < rows.n; i++) {
        is_same &= (rows.v[i]->flags & DV_CEL_FN_SELF_CHECKED) && rows.v[i]->fn == rows.v[0]->fn;
        if (rows.v[i]->flags & DV_CEL_FN_NOT_STRICT)
            node->is_strict = false;
        is_one |= (rows.v[i]->flags & DV_CEL_FN_ONE_FOR_ALL) != 0;
    }
    if (rows.n > 0 && (is_same || (ast->n_overloads == 1 && is_sure(ast, rows.v[0]))))
        node->fn = rows.v[0]->fn;
    node->overloads = rows.v;
    node->n_overloads = (uint32_t)rows.n;
    node->is_variadic = node->n_args > 2 || (ast->n_overloads != 1 && !node->fn && !is_one);
}

static bool plan_regex(struct planner *p, struct dv_cel_node *node)
{
    struct dv_cel_val error;

    if (!is_named(node->name, "matches") && !is_named(node->name, "find") &&
        !is_named(node->name, "findAll"))
        return true;
    if (node->n_args < 2 || !is_const(node->args[1]) || node->args[1]->value.kind != DV_CEL_STRING)
        return true;
    node->regex = dv_cel_regex_new(node->args[1]->value.s, p->arena, &error);
    node->is_variadic = true;
    if (!node->regex)
        dv_cel_issue_add(p->issues, node->ast->at, "program instantiation failed: %.*s",
                         DV_FMT(error.s));
    return node->regex != NULL;
}

/* Plans x in [1, 2, 3] as a lookup in a set, where all elements can be keys. */
static const struct dv_cel_node *plan_in_set(struct planner *p, struct dv_cel_node *node)
{
    const struct dv_cel_list *list = node->args[1]->value.list;

    if (list->n == 0)
        return constant(p, &(struct dv_cel_val){.kind = DV_CEL_BOOL, .b = false}, node->ast);
    node->set = dv_cel_set_of(list, p->arena);
    if (node->set)
        node->kind = DV_CEL_NODE_IN_SET;
    return node;
}

/* Whether the call is `or` or `orValue`, which evaluate their argument only when they need it. */
static bool is_optional_call(const struct dv_cel_node *node, const struct dv_cel_ast *ast,
                             const char *name)
{
    return is_named(node->name, name) && ast->is_member && node->n_args == 2;
}

static const struct dv_cel_node *finish_call(struct planner *p, struct dv_cel_node *node,
                                             const struct dv_cel_ast *ast)
{
    if (is_optional_call(node, ast, "or"))
        node->kind = DV_CEL_NODE_OPT_OR;
    else if (is_optional_call(node, ast, "orValue"))
        node->kind = DV_CEL_NODE_OPT_OR_VALUE;
    else if (node->cost == DV_CEL_COST_IN_LIST && is_const(node->args[1]))
        return plan_in_set(p, node);
    else if (is_conversion(node->name) && node->n_args == 1 && is_const(node->args[0]))
        return fold_const(p, node);
    else if (!plan_regex(p, node))
        return NULL;
    return node;
}

static const struct dv_cel_node *plan_function(struct planner *p, struct dv_cel_ast *ast)
{
    struct dv_cel_node *node = new_node(p, DV_CEL_NODE_CALL, ast);
    struct dv_cel_ast *target = ast->target;
    dv_str prefix;
    dv_str full;

    node->name = ast->resolved.n > 0 ? ast->resolved : ast->name;
    if (target && !ast->type && dv_cel_qualified_name(target, p->arena, &prefix)) {
        full = dv_str_printf(p->arena, "%.*s.%.*s", DV_FMT(prefix), DV_FMT(ast->name));
        if (dv_cel_overload_next(p->decls, full, NULL)) {
            node->name = full;
            target = NULL;
        }
    }
    if (!plan_args(p, node, target, ast->args, ast->n_args))
        return NULL;
    plan_overloads(p, node, ast);
    return finish_call(p, node, ast);
}

static const struct dv_cel_node *plan_call(struct planner *p, struct dv_cel_ast *ast)
{
    static const struct {
        const char *name;
        enum dv_cel_node_kind kind;
    } operators[] = {
        {"_&&_",  DV_CEL_NODE_AND   },
        {"_||_",  DV_CEL_NODE_OR    },
        {"_==_",  DV_CEL_NODE_EQ    },
        {"_!=_",  DV_CEL_NODE_NE    },
        {"_?_:_", DV_CEL_NODE_CHOOSE},
    };
    struct dv_cel_node *node;

    if (is_named(ast->name, "_[_]"))
        return plan_index(p, ast, false);
    if (is_named(ast->name, "_[?_]") || is_named(ast->name, "_?._"))
        return plan_index(p, ast, true);
    for (size_t i = 0; i < DV_COUNT(operators); i++) {
        if (!is_named(ast->name, operators[i].name))
            continue;
        node = new_node(p, operators[i].kind, ast);
        node->name = ast->name;
        return plan_args(p, node, NULL, ast->args, ast->n_args) ? node : NULL;
    }
    return plan_function(p, ast);
}

/* -- The rest -------------------------------------------------------------------------------- */

static const struct dv_cel_node *plan_aggregate(struct planner *p, struct dv_cel_ast *ast,
                                                enum dv_cel_node_kind kind)
{
    struct dv_cel_node *node = new_node(p, kind, ast);

    node->optionals = ast->optionals;
    if (!plan_args(p, node, NULL, ast->args, ast->n_args))
        return NULL;
    if (kind == DV_CEL_NODE_STRUCT) {
        node->name = ast->resolved.n > 0 ? ast->resolved : ast->name;
        node->names = ast->names;
        return node;
    }
    return are_const(node) ? fold_const(p, node) : node;
}

static const struct dv_cel_node *plan_fold(struct planner *p, struct dv_cel_ast *ast)
{
    struct dv_cel_node *node = new_node(p, DV_CEL_NODE_FOLD, ast);
    struct dv_cel_node_fold *fold = DV_NEW(p->arena, struct dv_cel_node_fold);
    const struct dv_cel_fold *parts = ast->fold;
    const struct scope *outer = p->scope;
    struct scope accu = {outer, parts->accu, p->n_slots};
    struct scope iter = {&accu, parts->iter, p->n_slots + 1};
    struct scope iter2 = {&iter, parts->iter2, p->n_slots + 2};

    p->n_slots += 3;
    fold->accu = accu.slot;
    fold->iter = iter.slot;
    fold->iter2 = iter2.slot;
    fold->has_iter2 = parts->iter2.n > 0;
    if (!(fold->range = plan(p, parts->range)) || !(fold->init = plan(p, parts->init)))
        return NULL;
    p->scope = fold->has_iter2 ? &iter2 : &iter;
    fold->cond = plan(p, parts->cond);
    fold->step = fold->cond ? plan(p, parts->step) : NULL;
    p->scope = &accu;
    fold->result = fold->step ? plan(p, parts->result) : NULL;
    p->scope = outer;
    node->fold = fold;
    if (!fold->result)
        return NULL;
    fold->search = (uint8_t)dv_cel_search_of(fold);
    return node;
}

static const struct dv_cel_node *plan_new(struct planner *p, struct dv_cel_ast *ast)
{
    switch (ast->kind) {
    case DV_CEL_AST_LITERAL:
        return constant(p, &ast->literal, ast);
    case DV_CEL_AST_IDENT:
        return plan_ident(p, ast);
    case DV_CEL_AST_SELECT:
        return plan_select(p, ast);
    case DV_CEL_AST_CALL:
        return plan_call(p, ast);
    case DV_CEL_AST_LIST:
        return plan_aggregate(p, ast, DV_CEL_NODE_LIST);
    case DV_CEL_AST_MAP:
        return plan_aggregate(p, ast, DV_CEL_NODE_MAP);
    case DV_CEL_AST_STRUCT:
        return plan_aggregate(p, ast, DV_CEL_NODE_STRUCT);
    case DV_CEL_AST_FOLD:
        break;
    }
    return plan_fold(p, ast);
}

static const struct dv_cel_node *plan(struct planner *p, struct dv_cel_ast *ast)
{
    if (!ast->node) /* optMap has its target twice in the tree, and it is planned once */
        ast->node = plan_new(p, ast);
    return ast->node;
}

const struct dv_cel_node *dv_cel_plan(struct dv_cel_ast *ast, const struct dv_cel_decls *decls,
                                      struct dv_arena *arena, struct dv_cel_issues *issues,
                                      uint32_t *n_slots)
{
    struct planner p = {.decls = decls, .arena = arena, .issues = issues};
    const struct dv_cel_node *node = plan(&p, ast);

    *n_slots = p.n_slots;
    return node;
}

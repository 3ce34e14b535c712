/* estimate.c - the worst case, as the API computes it when it admits an expression.
 *
 * Sizes are known of literals, of what is reached from `device`, and of what is made from these;
 * what is not known has no bound. */
#include "cel/check/estimate.h"

#include "base/arena.h"
#include "cel/check/cost.h"
#include "cel/value/cel_value.h"
#include "cel/value/type.h"

/* -- Names, literals, comprehensions --------------------------------------------------------- */

static struct dv_cel_size cost_ident(struct dv_cel_estimator *e, struct dv_cel_ast *ast)
{
    const struct dv_cel_local *local = dv_cel_local_find(e, ast->name);

    ast->path = local ? local->path : dv_cel_path_step(e, NULL, ast->name);
    return dv_cel_range_fixed(1);
}

static struct dv_cel_size cost_select(struct dv_cel_estimator *e, struct dv_cel_ast *ast)
{
    struct dv_cel_size cost = dv_cel_cost_of(e, ast->target);
    const struct dv_cel_type *type = ast->target->type;

    if (ast->is_test)
        return cost;
    if (type->kind == DV_CEL_T_MAP || type->kind == DV_CEL_T_OBJECT)
        cost = dv_cel_range_add(cost, dv_cel_range_fixed(1));
    ast->path = dv_cel_path_step(e, dv_cel_path_of(e, ast->target), ast->name);
    return cost;
}

static struct dv_cel_size widen(struct dv_cel_size size, struct dv_cel_size other)
{
    return dv_cel_range_join(size, (struct dv_cel_size){other.min, other.max});
}

static struct dv_cel_size cost_aggregate(struct dv_cel_estimator *e, struct dv_cel_ast *ast)
{
    bool is_map = ast->kind == DV_CEL_AST_MAP;
    struct dv_cel_size none = {ast->n_args == 0 ? 0 : UINT64_MAX, 0};
    struct dv_cel_entry_size *entry = DV_NEW(e->arena, struct dv_cel_entry_size);
    struct dv_cel_size cost = dv_cel_range_fixed(is_map ? DV_CEL_MAP_COST : DV_CEL_LIST_COST);

    *entry = (struct dv_cel_entry_size){
        is_map, is_map ? none : (struct dv_cel_size){1, 1},
              none
    };
    for (uint32_t i = 0; i < ast->n_args; i++) {
        struct dv_cel_size size;

        cost = dv_cel_range_add(cost, dv_cel_cost_of(e, ast->args[i]));
        size = dv_cel_size_or_unknown(e, ast->args[i]);
        if (is_map && i % 2 == 0)
            entry->key = widen(entry->key, size);
        else
            entry->value = widen(entry->value, size);
    }
    ast->entry_size = entry;
    return cost;
}

static struct dv_cel_size cost_struct(struct dv_cel_estimator *e, const struct dv_cel_ast *ast)
{
    struct dv_cel_size cost = dv_cel_range_fixed(DV_CEL_STRUCT_COST);

    for (uint32_t i = 0; i < ast->n_args; i++)
        cost = dv_cel_range_add(cost, dv_cel_cost_of(e, ast->args[i]));
    return cost;
}

/* Whether the comprehension is a cel.bind, which has no rounds. */
static bool is_bind(const struct dv_cel_fold *fold)
{
    return fold->range->kind == DV_CEL_AST_LIST && fold->range->n_args == 0 &&
           fold->cond->kind == DV_CEL_AST_LITERAL && fold->cond->literal.kind == DV_CEL_BOOL &&
           !fold->cond->literal.b;
}

static struct dv_cel_size cost_bind(struct dv_cel_estimator *e, struct dv_cel_ast *ast)
{
    const struct dv_cel_fold *fold = ast->fold;
    struct dv_cel_size cost =
        dv_cel_range_add(dv_cel_cost_of(e, fold->range), dv_cel_cost_of(e, fold->init));
    struct dv_cel_local local = {e->locals, fold->accu, dv_cel_path_of(e, fold->init),
                                 dv_cel_size_of(e, fold->init),
                                 dv_cel_entry_size_of(e, fold->init)};

    e->locals = &local;
    cost = dv_cel_range_add(cost, dv_cel_cost_of(e, fold->result));
    e->locals = local.up;
    /* The reference asks for the size when the name is gone: where it is the result itself, the
     * size is not known any more. */
    ast->size = dv_cel_size_of(e, fold->result);
    ast->entry_size = dv_cel_entry_size_of(e, fold->result);
    return cost;
}

/* Binds the variables of a comprehension to the sizes of what they go over. */
static void bind_range(struct dv_cel_estimator *e, const struct dv_cel_fold *fold,
                       struct dv_cel_local *iter, struct dv_cel_local *iter2)
{
    const struct dv_cel_entry_size *entry = dv_cel_entry_size_of(e, fold->range);
    const struct dv_cel_path *path = dv_cel_path_of(e, fold->range);
    bool is_list = entry ? !entry->is_map : fold->range->type->kind == DV_CEL_T_LIST;
    const struct dv_cel_size *key = entry ? &entry->key : NULL;
    const struct dv_cel_size *value = entry ? &entry->value : NULL;
    dv_str values = is_list ? DV_STR("@items") : DV_STR("@values");

    iter->name = fold->iter;
    iter2->name = fold->iter2;
    if (fold->iter2.n > 0) {
        iter->path = dv_cel_path_step(e, path, is_list ? DV_STR("@indices") : DV_STR("@keys"));
        iter->size = key;
        iter2->path = dv_cel_path_step(e, path, values);
        iter2->size = value;
    } else {
        iter->path = dv_cel_path_step(e, path, is_list ? values : DV_STR("@keys"));
        iter->size = is_list ? value : key;
    }
}

static struct dv_cel_size cost_fold(struct dv_cel_estimator *e, struct dv_cel_ast *ast)
{
    const struct dv_cel_fold *fold = ast->fold;
    struct dv_cel_size cost =
        dv_cel_range_add(dv_cel_cost_of(e, fold->range), dv_cel_cost_of(e, fold->init));
    struct dv_cel_local accu = {e->locals, fold->accu, dv_cel_path_of(e, fold->init),
                                dv_cel_size_of(e, fold->init), dv_cel_entry_size_of(e, fold->init)};
    struct dv_cel_local iter = {.up = &accu};
    struct dv_cel_local iter2 = {.up = &iter};
    struct dv_cel_size round;
    struct dv_cel_size n;

    bind_range(e, fold, &iter, &iter2);
    e->locals = fold->iter2.n > 0 ? &iter2 : &iter;
    round = dv_cel_range_add(dv_cel_cost_of(e, fold->cond), dv_cel_cost_of(e, fold->step));
    e->locals = &accu;
    cost = dv_cel_range_add(cost, dv_cel_cost_of(e, fold->result));
    e->locals = accu.up;
    n = dv_cel_size_or_unknown(e, fold->range);
    if (fold->init->kind == DV_CEL_AST_LITERAL) {
        ast->size = dv_cel_size_of(e, fold->init);
    } else if (fold->init->kind == DV_CEL_AST_LIST || fold->init->kind == DV_CEL_AST_MAP) {
        const struct dv_cel_entry_size *entry = dv_cel_entry_size_of(e, fold->step);

        ast->size = dv_cel_size_keep(e, n);
        if (entry)
            ast->entry_size = entry;
    }
    return dv_cel_range_add(cost, dv_cel_range_multiply(n, round));
}

static struct dv_cel_size compute(struct dv_cel_estimator *e, struct dv_cel_ast *ast)
{
    switch (ast->kind) {
    case DV_CEL_AST_LITERAL:
        return dv_cel_range_fixed(0);
    case DV_CEL_AST_IDENT:
        return cost_ident(e, ast);
    case DV_CEL_AST_SELECT:
        return cost_select(e, ast);
    case DV_CEL_AST_CALL:
        return dv_cel_cost_of_call(e, ast);
    case DV_CEL_AST_LIST:
    case DV_CEL_AST_MAP:
        return cost_aggregate(e, ast);
    case DV_CEL_AST_STRUCT:
        return cost_struct(e, ast);
    case DV_CEL_AST_FOLD:
        break;
    }
    return is_bind(ast->fold) ? cost_bind(e, ast) : cost_fold(e, ast);
}

struct dv_cel_size dv_cel_cost_of(struct dv_cel_estimator *e, struct dv_cel_ast *ast)
{
    if (!ast->cost) /* optMap has its target twice in the tree, and it is estimated once */
        ast->cost = dv_cel_size_keep(e, compute(e, ast));
    return dv_cel_range_of(ast->cost);
}

uint64_t dv_cel_estimate(struct dv_cel_ast *ast, struct dv_arena *arena)
{
    struct dv_cel_estimator e = {.arena = arena};

    return dv_cel_cost_of(&e, ast).max;
}

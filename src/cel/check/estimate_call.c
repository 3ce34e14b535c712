/* estimate_call.c - what a call costs at most. Each rule has its counterpart in cost.c. */
#include <assert.h>
#include <math.h>

#include "base/num.h"
#include "cel/check/cost.h"
#include "cel/check/decls.h"
#include "cel/check/estimate.h"
#include "cel/value/cel_value.h"

#define INCLUDES_COST 48u
/* The longest regular expression of a named format. */
#define FORMAT_REGEX_SIZE 128.0
#define FORMAT_SIZE 64u
/* The factor for comparing each element of a list with each. */
#define PAIR_FACTOR 2.0

/* -- Calls ----------------------------------------------------------------------------------- */

struct call {
    struct dv_cel_ast *ast;
    struct dv_cel_ast *target; /* NULL: not a member */
    struct dv_cel_ast **args;
    uint32_t n_args;
    const struct dv_cel_size *result; /* what was found out; NULL: nothing */
};

static struct dv_cel_size target_size(struct dv_cel_estimator *e, const struct call *call)
{
    return dv_cel_size_or_unknown(e, call->target);
}

static struct dv_cel_size arg_size(struct dv_cel_estimator *e, const struct call *call, uint32_t i)
{
    return dv_cel_size_or_unknown(e, call->args[i]);
}

/* The size of an element, when the target is a list. */
static struct dv_cel_size element_size(struct dv_cel_estimator *e, const struct dv_cel_ast *list)
{
    const struct dv_cel_path *path = dv_cel_path_of(e, list);
    struct dv_cel_size size;

    if (path && dv_cel_size_at(dv_cel_path_step(e, path, DV_STR("@items")), &size))
        return size;
    return DV_CEL_SIZE_UNKNOWN;
}

static struct dv_cel_size cost_traverse(struct dv_cel_estimator *e, const struct call *call)
{
    struct dv_cel_size element = dv_cel_range_fixed(1);
    const struct dv_cel_type *type;

    assert(call->target);
    type = call->target->type;
    if (type->n_params == 0)
        return dv_cel_range_scale(target_size(e, call), DV_CEL_STRING_FACTOR);
    if (type->params[0]->kind == DV_CEL_T_STRING || type->params[0]->kind == DV_CEL_T_BYTES)
        element = dv_cel_range_add(
            element, dv_cel_range_scale(element_size(e, call->target), DV_CEL_STRING_FACTOR));
    return dv_cel_range_multiply(target_size(e, call), element);
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    double quotient = ceil((double)a / (double)b);

    return quotient >= 0x1p64 ? UINT64_MAX : (uint64_t)quotient;
}

/* The size of the result of replace, from the sizes of the text, of the old part and of the new
 * one. */
static struct dv_cel_size replaced_size(struct dv_cel_size text, struct dv_cel_size old,
                                        struct dv_cel_size new)
{
    struct dv_cel_size count = {0, 0};
    struct dv_cel_size kept = {0, 0};

    if (old.min == 0) { /* an empty part is replaced before and after each character */
        count.max = dv_u64_add_clamped(text.max, 1);
        kept.max = text.max;
    } else if (new.max <= old.min) {
        kept.max = text.max;
    } else {
        count.max = divide_up(text.max, old.min);
    }
    if (old.max == 0) {
        count.min = dv_u64_add_clamped(text.min, 1);
        kept.min = text.min;
    } else if (old.max <= new.min) {
        kept.min = text.min;
    } else {
        count.min = divide_up(text.min, old.max);
    }
    return dv_cel_range_add(dv_cel_range_multiply(count, new), kept);
}

static struct dv_cel_size cost_replace(struct dv_cel_estimator *e, struct call *call)
{
    struct dv_cel_size size = target_size(e, call);

    call->result =
        dv_cel_size_keep(e, replaced_size(size, arg_size(e, call, 0), arg_size(e, call, 1)));
    return dv_cel_range_scale(size, 2 * DV_CEL_STRING_FACTOR);
}

static struct dv_cel_size cost_split(struct dv_cel_estimator *e, struct call *call)
{
    struct dv_cel_size size = target_size(e, call);
    uint64_t max = size.max;

    if (call->n_args > 1 && call->args[1]->kind == DV_CEL_AST_LITERAL &&
        call->args[1]->literal.kind == DV_CEL_INT)
        max = call->args[1]->literal.u;
    call->result = dv_cel_size_keep(e, (struct dv_cel_size){0, max});
    return dv_cel_range_scale(size, 2 * DV_CEL_STRING_FACTOR);
}

static struct dv_cel_size cost_join(struct dv_cel_estimator *e, struct call *call)
{
    struct dv_cel_size list = target_size(e, call);
    struct dv_cel_size size = {0, 0};

    assert(call->target);
    if (call->target->type->n_params > 0)
        size = dv_cel_range_multiply(list, element_size(e, call->target));
    if (call->n_args > 0)
        size = dv_cel_range_add(
            size, dv_cel_range_multiply(arg_size(e, call, 0),
                                        (struct dv_cel_size){list.min > 0 ? list.min - 1 : 0,
                                                             list.max > 0 ? list.max - 1 : 0}));
    call->result = dv_cel_size_keep(e, size);
    return dv_cel_range_scale(size, DV_CEL_STRING_FACTOR);
}

/* The cost of a pattern over a text. */
static struct dv_cel_size cost_search(struct dv_cel_size text, struct dv_cel_size pattern)
{
    return dv_cel_range_multiply(
        dv_cel_range_scale(dv_cel_range_add(text, dv_cel_range_fixed(1)), DV_CEL_STRING_FACTOR),
        dv_cel_range_scale(pattern, DV_CEL_REGEX_FACTOR));
}

static struct dv_cel_size cost_contains_net(struct dv_cel_estimator *e, const struct call *call,
                                            bool is_cidr, bool is_string)
{
    struct dv_cel_size ip = {4, 16};
    struct dv_cel_size cost = dv_cel_range_scale(dv_cel_range_add(ip, ip), DV_CEL_STRING_FACTOR);

    if (is_cidr)
        cost =
            dv_cel_range_add(dv_cel_range_add(cost, dv_cel_range_scale(ip, DV_CEL_STRING_FACTOR)),
                             dv_cel_range_fixed(1));
    if (is_string)
        cost =
            dv_cel_range_add(cost, dv_cel_range_scale(arg_size(e, call, 0), DV_CEL_STRING_FACTOR));
    return cost;
}

static bool is_named(const struct dv_cel_type *type, const struct dv_cel_type *other)
{
    return dv_str_eq(type->name, other->name);
}

static struct dv_cel_size cost_equal(struct dv_cel_estimator *e, const struct call *call,
                                     bool is_equality)
{
    const struct dv_cel_type *type = call->args[0]->type;
    struct dv_cel_size a = arg_size(e, call, 0);
    struct dv_cel_size b = arg_size(e, call, 1);
    uint64_t max = dv_u64_min(a.max, b.max);

    if (is_equality && dv_cel_type_eq(type, call->args[1]->type)) {
        if (is_named(type, &dv_cel_t_ip) || is_named(type, &dv_cel_t_cidr) ||
            is_named(type, &dv_cel_t_quantity) || is_named(type, &dv_cel_t_version))
            return dv_cel_range_fixed(1);
        if (is_named(type, &dv_cel_t_format))
            return dv_cel_range_scale((struct dv_cel_size){1, FORMAT_SIZE}, DV_CEL_STRING_FACTOR);
        if (is_named(type, &dv_cel_t_url)) {
            const struct dv_cel_size *size = dv_cel_size_of(e, call->args[1]);

            return dv_cel_range_scale((struct dv_cel_size){1, size ? size->max : 1},
                                      DV_CEL_STRING_FACTOR);
        }
    }
    return dv_cel_range_scale((struct dv_cel_size){max > 0 ? 1 : 0, max}, DV_CEL_STRING_FACTOR);
}

static struct dv_cel_size cost_concat(struct dv_cel_estimator *e, struct call *call, bool is_list)
{
    struct dv_cel_size size = dv_cel_range_add(arg_size(e, call, 0), arg_size(e, call, 1));
    const struct dv_cel_entry_size *entry = dv_cel_entry_join(
        e, dv_cel_entry_size_of(e, call->args[0]), dv_cel_entry_size_of(e, call->args[1]));

    if (entry)
        call->ast->entry_size = entry;
    call->result = dv_cel_size_keep(e, size);
    return is_list ? dv_cel_range_fixed(1) : dv_cel_range_scale(size, DV_CEL_STRING_FACTOR);
}

static struct dv_cel_size cost_sets(struct dv_cel_estimator *e, const struct call *call,
                                    double factor)
{
    struct dv_cel_size product = dv_cel_range_multiply(arg_size(e, call, 0), arg_size(e, call, 1));

    return dv_cel_range_add(dv_cel_range_scale(product, factor), dv_cel_range_fixed(1));
}

/* The cost of a call that walks its argument and makes something else of it. */
static struct dv_cel_size cost_walk(struct dv_cel_estimator *e, struct call *call,
                                    enum dv_cel_cost rule)
{
    struct dv_cel_size size = arg_size(e, call, 0);
    struct dv_cel_size result = {size.min, size.max * 4}; /* four bytes a character */

    if (rule == DV_CEL_COST_QUOTE)
        result = (struct dv_cel_size){size.min + 2, size.max * 2 + 2};
    else if (rule == DV_CEL_COST_DECODE)
        result = (struct dv_cel_size){size.min / 4, size.max};
    call->result = dv_cel_size_keep(e, result);
    return dv_cel_range_scale(size, DV_CEL_STRING_FACTOR);
}

static struct dv_cel_size cost_string(struct dv_cel_estimator *e, struct call *call,
                                      struct dv_cel_ast *text)
{
    struct dv_cel_size size = dv_cel_size_or_unknown(e, text);

    call->result = dv_cel_size_keep(e, size);
    return dv_cel_range_scale(size, DV_CEL_STRING_FACTOR);
}

static struct dv_cel_size cost_find(struct dv_cel_estimator *e, struct call *call)
{
    struct dv_cel_size size = target_size(e, call);

    call->result = dv_cel_size_keep(e, (struct dv_cel_size){0, size.max});
    return cost_search(size, arg_size(e, call, 0));
}

/* The number of a literal, 0 when it is below; `other` when it is no literal. */
static uint64_t literal_or(const struct dv_cel_ast *ast, uint64_t other)
{
    if (ast->kind != DV_CEL_AST_LITERAL || ast->literal.kind != DV_CEL_INT)
        return other;
    return ast->literal.i > 0 ? ast->literal.u : 0;
}

/* The cost of calls that make lists from lists: a new one is made, and the old one walked, once or
 * for every element. */
static struct dv_cel_size cost_list(struct dv_cel_estimator *e, struct call *call,
                                    enum dv_cel_cost rule)
{
    struct dv_cel_size base = dv_cel_range_fixed(DV_CEL_LIST_COST + 1);
    struct dv_cel_size size = call->target ? target_size(e, call) : DV_CEL_SIZE_UNKNOWN;

    if (rule == DV_CEL_COST_RANGE) {
        size = dv_cel_range_fixed(literal_or(call->args[0], UINT64_MAX));
        call->result = dv_cel_size_keep(e, size);
    } else if (rule == DV_CEL_COST_SLICE) {
        /* Like the reference, which is not troubled by an end before the start. */
        uint64_t from = literal_or(call->args[0], 0);
        uint64_t to = literal_or(call->args[1], size.max);

        size = dv_cel_range_fixed(to - from);
        call->result = dv_cel_size_keep(e, size);
        size = dv_cel_range_scale(size, 1); /* large numbers are rounded by this */
    } else if (rule == DV_CEL_COST_PAIRWISE || rule == DV_CEL_COST_PAIRWISE_TEXT) {
        bool is_text = rule == DV_CEL_COST_PAIRWISE_TEXT;

        size = dv_cel_range_multiply(
            size, size); /* the reference counts as if the result were as long, too */
        call->result = dv_cel_size_keep(e, size);
        size = dv_cel_range_scale(size, is_text ? PAIR_FACTOR + DV_CEL_STRING_FACTOR : PAIR_FACTOR);
    } else {
        call->result = dv_cel_size_keep(e, size);
    }
    return dv_cel_range_add(size, base);
}

/* The cost of a call by its rule, without the costs of its arguments. */
static struct dv_cel_size cost_rule(struct dv_cel_estimator *e, struct call *call,
                                    enum dv_cel_cost rule)
{
    switch (rule) {
    case DV_CEL_COST_EQ:
        return cost_equal(e, call, dv_str_eq(call->ast->name, DV_STR("_==_")));
    case DV_CEL_COST_LESS:
        return cost_equal(e, call, false);
    case DV_CEL_COST_AFFIX:
    case DV_CEL_COST_PARSE:
        return dv_cel_range_scale(arg_size(e, call, 0), DV_CEL_STRING_FACTOR);
    case DV_CEL_COST_CANONICAL:
        return dv_cel_range_scale(arg_size(e, call, 0), 2 * DV_CEL_STRING_FACTOR);
    case DV_CEL_COST_RANGE:
    case DV_CEL_COST_SLICE:
    case DV_CEL_COST_FLATTEN:
    case DV_CEL_COST_REVERSE:
    case DV_CEL_COST_PAIRWISE:
    case DV_CEL_COST_PAIRWISE_TEXT:
        return cost_list(e, call, rule);
    case DV_CEL_COST_ENCODE:
    case DV_CEL_COST_DECODE:
    case DV_CEL_COST_QUOTE:
        return cost_walk(e, call, rule);
    case DV_CEL_COST_IN_LIST:
        return arg_size(e, call, 1);
    case DV_CEL_COST_CONCAT:
    case DV_CEL_COST_ADD_LIST:
        return cost_concat(e, call, rule == DV_CEL_COST_ADD_LIST);
    case DV_CEL_COST_CONTAINS:
        return dv_cel_range_multiply(
            dv_cel_range_scale(target_size(e, call), DV_CEL_STRING_FACTOR),
            dv_cel_range_scale(arg_size(e, call, 0), DV_CEL_STRING_FACTOR));
    case DV_CEL_COST_MATCHES:
        return cost_search(target_size(e, call), arg_size(e, call, 0));
    case DV_CEL_COST_FORMAT:
        return dv_cel_range_scale(target_size(e, call), DV_CEL_STRING_FACTOR);
    case DV_CEL_COST_SETS:
        return cost_sets(e, call, 1);
    case DV_CEL_COST_SETS_TWICE:
        return cost_sets(e, call, 2);
    case DV_CEL_COST_TRAVERSE:
        return cost_traverse(e, call);
    case DV_CEL_COST_URL:
        return cost_string(e, call, call->args[0]);
    case DV_CEL_COST_STRING:
        return cost_string(e, call, call->target);
    case DV_CEL_COST_REPLACE:
        return cost_replace(e, call);
    case DV_CEL_COST_SPLIT:
        return cost_split(e, call);
    case DV_CEL_COST_JOIN:
        return cost_join(e, call);
    case DV_CEL_COST_FIND:
        return cost_find(e, call);
    case DV_CEL_COST_CONTAINS_IP:
        return cost_contains_net(e, call, false, false);
    case DV_CEL_COST_CONTAINS_IP_STRING:
        return cost_contains_net(e, call, false, true);
    case DV_CEL_COST_CONTAINS_CIDR:
        return cost_contains_net(e, call, true, false);
    case DV_CEL_COST_CONTAINS_CIDR_STRING:
        return cost_contains_net(e, call, true, true);
    case DV_CEL_COST_VALIDATE:
        return dv_cel_range_scale(dv_cel_range_scale(arg_size(e, call, 0), DV_CEL_STRING_FACTOR),
                                  FORMAT_REGEX_SIZE * DV_CEL_REGEX_FACTOR);
    case DV_CEL_COST_INCLUDES:
        return dv_cel_range_fixed(INCLUDES_COST);
    case DV_CEL_COST_ONE:
    case DV_CEL_COST_CHOOSE:
    case DV_CEL_COST_INDEX_LIST:
    case DV_CEL_COST_INDEX_MAP:
    case DV_CEL_COST_MEMBER:
    case DV_CEL_COST_AUTHORIZE: /* of policies, whose cost is not estimated */
    case DV_CEL_COST_SELECTOR:
        break;
    }
    return dv_cel_range_fixed(1);
}

static struct dv_cel_size cost_choose(struct dv_cel_estimator *e, struct call *call)
{
    const struct dv_cel_entry_size *entry;
    struct dv_cel_size cond = dv_cel_cost_of(e, call->args[0]);
    struct dv_cel_size branches =
        dv_cel_range_join(dv_cel_cost_of(e, call->args[1]), dv_cel_cost_of(e, call->args[2]));

    call->result =
        dv_cel_size_keep(e, dv_cel_range_join(arg_size(e, call, 1), arg_size(e, call, 2)));
    entry = dv_cel_entry_join(e, dv_cel_entry_size_of(e, call->args[1]),
                              dv_cel_entry_size_of(e, call->args[2]));
    if (entry)
        call->ast->entry_size = entry;
    call->ast->size = call->result;
    return dv_cel_range_add(cond, branches);
}

static struct dv_cel_size cost_logical(struct dv_cel_estimator *e, const struct dv_cel_ast *ast)
{
    struct dv_cel_size sum = dv_cel_cost_of(e, ast->args[0]);

    for (uint32_t i = 1; i < ast->n_args; i++)
        sum.max = dv_u64_add_clamped(sum.max, dv_cel_cost_of(e, ast->args[i]).max);
    return sum;
}

/* Notes the size of what an index gives, and its place in the device. */
static void note_index(struct dv_cel_estimator *e, struct call *call, bool is_map)
{
    const struct dv_cel_entry_size *entry = dv_cel_entry_size_of(e, call->args[0]);

    call->result =
        entry ? dv_cel_size_keep(e, (struct dv_cel_size){entry->value.min, entry->value.max})
              : NULL;
    call->ast->path = dv_cel_path_step(e, dv_cel_path_of(e, call->args[0]),
                                       is_map ? DV_STR("@values") : DV_STR("@items"));
}

/* The cost of the overload that costs most, of all that the call may be. */
static struct dv_cel_size cost_overloads(struct dv_cel_estimator *e, struct call *call)
{
    struct dv_cel_size cost = {UINT64_MAX, 0};
    const struct dv_cel_size *result = NULL;

    for (uint32_t i = 0; i < call->ast->n_overloads; i++) {
        enum dv_cel_cost rule = (enum dv_cel_cost)call->ast->overloads[i]->cost;

        call->result = NULL;
        cost = dv_cel_range_join(cost, cost_rule(e, call, rule));
        if (call->result)
            result = result ? dv_cel_size_keep(e, dv_cel_range_join(dv_cel_range_of(result),
                                                                    dv_cel_range_of(call->result)))
                            : call->result;
        if (rule == DV_CEL_COST_INDEX_LIST || rule == DV_CEL_COST_INDEX_MAP) {
            note_index(e, call, rule == DV_CEL_COST_INDEX_MAP);
            result = call->result;
        }
        if (!result)
            result = dv_cel_size_of(e, call->ast);
    }
    if (result)
        call->ast->size = result;
    return cost;
}

struct dv_cel_size dv_cel_cost_of_call(struct dv_cel_estimator *e, struct dv_cel_ast *ast)
{
    struct call call = {ast, ast->target, ast->args, ast->n_args, NULL};
    struct dv_cel_size args = {0, 0};
    struct dv_cel_size own;

    if (dv_str_eq(ast->name, DV_STR("_&&_")) || dv_str_eq(ast->name, DV_STR("_||_")))
        return cost_logical(e, ast);
    if (dv_str_eq(ast->name, DV_STR("_?_:_")))
        return cost_choose(e, &call);
    for (uint32_t i = 0; i < ast->n_args; i++)
        args = dv_cel_range_add(args, dv_cel_cost_of(e, ast->args[i]));
    if (dv_str_eq(ast->name, DV_STR("dyn")) && !ast->target) {
        ast->size = dv_cel_size_of(e, ast->args[0]);
        ast->entry_size = dv_cel_entry_size_of(e, ast->args[0]);
        return dv_cel_range_add(args, dv_cel_range_fixed(1));
    }
    if (dv_str_eq(ast->name, DV_STR("_?._")))
        return dv_cel_range_add(args, dv_cel_range_fixed(1));
    if (ast->target)
        args = dv_cel_range_add(args, dv_cel_cost_of(e, ast->target));
    own = cost_overloads(e, &call);
    return dv_cel_range_add(args, own);
}

/* estimate.c - the worst case, as the API computes it when it admits an expression.
 *
 * Sizes are known of literals, of what is reached from `device`, and of what is made from these;
 * what is not known has no bound. Each rule here has its counterpart in cost.c. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "cel/ast.h"
#include "cel/cost.h"
#include "cel/decls.h"
#include "cel/type.h"

/* The API's own bounds on a device. */
#define DRIVER_SIZE 63u
#define DOMAIN_SIZE 63u
#define ID_SIZE 32u
#define N_ENTRIES 32u
#define VALUE_SIZE 64u
#define INCLUDES_COST 48u
/* The longest regular expression of a named format. */
#define FORMAT_REGEX_SIZE 128.0
#define FORMAT_SIZE 64u

#define LIST_COST 10u
#define MAP_COST 30u
#define STRUCT_COST 40u
/* Of comparing each element of a list with each. */
#define PAIR_FACTOR 2.0

/* A range of sizes or costs. */
struct range {
    uint64_t min;
    uint64_t max;
};

struct local {
    const struct local *up;
    dv_str name;
    const struct dv_cel_path *path;
    const struct dv_cel_size *size;
    const struct dv_cel_entry_size *entry_size;
};

struct estimator {
    struct dv_arena *arena;
    const struct local *locals;
};

static struct range cost_of(struct estimator *e, struct dv_cel_ast *ast);

/* -- Ranges -------------------------------------------------------------------------------------
 */

static const struct range unknown = {0, UINT64_MAX};

static struct range fixed(uint64_t n)
{
    return (struct range){n, n};
}

static uint64_t multiply_u64(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t scale_u64(uint64_t n, double factor)
{
    double product = ceil((double)n * factor);

    if ((double)n > 0 && factor > 0 && (double)n > 0x1p64 / factor)
        return UINT64_MAX;
    return product >= 0x1p64 ? UINT64_MAX : (uint64_t)product;
}

static struct range add(struct range a, struct range b)
{
    return (struct range){dv_u64_add_clamped(a.min, b.min), dv_u64_add_clamped(a.max, b.max)};
}

static struct range multiply(struct range a, struct range b)
{
    return (struct range){multiply_u64(a.min, b.min), multiply_u64(a.max, b.max)};
}

static struct range scale(struct range a, double factor)
{
    return (struct range){scale_u64(a.min, factor), scale_u64(a.max, factor)};
}

static struct range both(struct range a, struct range b)
{
    return (struct range){dv_u64_min(a.min, b.min), dv_u64_max(a.max, b.max)};
}

static const struct dv_cel_size *keep(struct estimator *e, struct range range)
{
    struct dv_cel_size *size = DV_NEW(e->arena, struct dv_cel_size);

    *size = (struct dv_cel_size){range.min, range.max};
    return size;
}

static struct range from_size(const struct dv_cel_size *size)
{
    return size ? (struct range){size->min, size->max} : unknown;
}

/* -- Paths ---------------------------------------------------------------------------------------
 */

static const struct dv_cel_path *step(struct estimator *e, const struct dv_cel_path *up,
                                      dv_str name)
{
    struct dv_cel_path *path = DV_NEW(e->arena, struct dv_cel_path);

    *path = (struct dv_cel_path){up, name};
    return path;
}

static const struct local *find_local(const struct estimator *e, dv_str name)
{
    const struct local *local = e->locals;

    while (local && !dv_str_eq(local->name, name))
        local = local->up;
    return local;
}

static const struct dv_cel_path *path_of(const struct estimator *e, const struct dv_cel_ast *ast)
{
    if (ast->kind == DV_CEL_AST_IDENT) {
        const struct local *local = find_local(e, ast->name);

        if (local)
            return local->path;
    }
    return ast->path;
}

static bool is_step(const struct dv_cel_path *path, const char *name)
{
    return dv_str_eq(path->name, dv_str_from_c(name));
}

/* What is at a place of the device. */
enum place {
    NOWHERE,
    DEVICE,
    DRIVER,
    MULTIPLE,
    ATTRIBUTES,
    CAPACITY,
    INNER_ATTRIBUTES,
    INNER_CAPACITY,
    DOMAIN,
    ID,
    ATTRIBUTE,
    QUANTITY,
};

static enum place field_place(const struct dv_cel_path *path)
{
    if (is_step(path, "driver"))
        return DRIVER;
    if (is_step(path, "attributes"))
        return ATTRIBUTES;
    if (is_step(path, "capacity"))
        return CAPACITY;
    return is_step(path, "allowMultipleAllocations") ? MULTIPLE : NOWHERE;
}

static enum place place_of(const struct dv_cel_path *path)
{
    bool is_value;
    bool is_key;
    enum place up;

    if (!path->up)
        return is_step(path, "device") ? DEVICE : NOWHERE;
    up = place_of(path->up);
    is_value = is_step(path, "@values") || is_step(path, "@items");
    is_key = is_step(path, "@keys");
    switch (up) {
    case DEVICE:
        return field_place(path);
    case ATTRIBUTES:
        return is_value ? INNER_ATTRIBUTES : (is_key ? DOMAIN : NOWHERE);
    case CAPACITY:
        return is_value ? INNER_CAPACITY : (is_key ? DOMAIN : NOWHERE);
    case INNER_ATTRIBUTES:
        return is_key ? ID : ATTRIBUTE;
    case INNER_CAPACITY:
        return is_value ? QUANTITY : (is_key ? ID : NOWHERE);
    case NOWHERE:
    case DRIVER:
    case MULTIPLE:
    case DOMAIN:
    case ID:
    case ATTRIBUTE:
    case QUANTITY:
        break;
    }
    return NOWHERE;
}

/* False: no bound is known. */
static bool size_at(const struct dv_cel_path *path, struct range *size)
{
    static const uint64_t sizes[] = {
        [DEVICE] = 0,
        [DRIVER] = DRIVER_SIZE,
        [MULTIPLE] = 1,
        [ATTRIBUTES] = N_ENTRIES,
        [CAPACITY] = N_ENTRIES,
        [INNER_ATTRIBUTES] = N_ENTRIES,
        [INNER_CAPACITY] = N_ENTRIES,
        [DOMAIN] = DOMAIN_SIZE,
        [ID] = ID_SIZE,
        [ATTRIBUTE] = VALUE_SIZE,
        [QUANTITY] = VALUE_SIZE,
    };
    enum place place = path ? place_of(path) : NOWHERE;

    if (place == NOWHERE)
        return false;
    *size = (struct range){0, sizes[place]};
    return true;
}

/* -- Sizes
 * ----------------------------------------------------------------------------------------- */

static bool is_scalar(const struct dv_cel_type *type)
{
    switch (type->kind) {
    case DV_CEL_T_BOOL:
    case DV_CEL_T_INT:
    case DV_CEL_T_UINT:
    case DV_CEL_T_DOUBLE:
    case DV_CEL_T_TIMESTAMP:
    case DV_CEL_T_DURATION:
        return true;
    case DV_CEL_T_OPAQUE:
        return dv_cel_type_is_optional(type) && is_scalar(type->params[0]);
    case DV_CEL_T_ERROR:
    case DV_CEL_T_DYN:
    case DV_CEL_T_ANY:
    case DV_CEL_T_NULL:
    case DV_CEL_T_STRING:
    case DV_CEL_T_BYTES:
    case DV_CEL_T_TYPE:
    case DV_CEL_T_LIST:
    case DV_CEL_T_MAP:
    case DV_CEL_T_OBJECT:
    case DV_CEL_T_WRAPPER:
    case DV_CEL_T_VAR:
        break;
    }
    return false;
}

static bool own_size(const struct dv_cel_ast *ast, struct range *size)
{
    if (ast->kind == DV_CEL_AST_LITERAL)
        *size = fixed(dv_cel_val_size(&ast->literal));
    else if (ast->kind == DV_CEL_AST_LIST)
        *size = fixed(ast->n_args);
    else if (ast->kind == DV_CEL_AST_MAP)
        *size = fixed(ast->n_args / 2);
    else
        return false;
    return true;
}

/* NULL: unknown. */
static const struct dv_cel_size *size_of(struct estimator *e, struct dv_cel_ast *ast)
{
    const struct local *local;
    struct range size;

    if (ast->size)
        return ast->size;
    if (own_size(ast, &size))
        return keep(e, size);
    if (size_at(path_of(e, ast), &size)) {
        ast->size = keep(e, size);
        return ast->size;
    }
    if (is_scalar(ast->type))
        return keep(e, fixed(1));
    local = ast->kind == DV_CEL_AST_IDENT ? find_local(e, ast->name) : NULL;
    return local ? local->size : NULL;
}

static struct range size_or_unknown(struct estimator *e, struct dv_cel_ast *ast)
{
    return from_size(size_of(e, ast));
}

static const struct dv_cel_entry_size *entry_size_of(const struct estimator *e,
                                                     const struct dv_cel_ast *ast)
{
    const struct local *local;

    if (ast->entry_size)
        return ast->entry_size;
    local = ast->kind == DV_CEL_AST_IDENT ? find_local(e, ast->name) : NULL;
    return local ? local->entry_size : NULL;
}

static struct dv_cel_size size_union(struct dv_cel_size a, struct dv_cel_size b)
{
    return (struct dv_cel_size){dv_u64_min(a.min, b.min), dv_u64_max(a.max, b.max)};
}

static const struct dv_cel_entry_size *entry_union(struct estimator *e,
                                                   const struct dv_cel_entry_size *a,
                                                   const struct dv_cel_entry_size *b)
{
    struct dv_cel_entry_size *size;

    if (!a || !b)
        return NULL;
    size = DV_NEW(e->arena, struct dv_cel_entry_size);
    size->is_map = a->is_map;
    size->key = size_union(a->key, b->key);
    size->value = size_union(a->value, b->value);
    return size;
}

/* -- Calls
 * ------------------------------------------------------------------------------------------ */

struct call {
    struct dv_cel_ast *ast;
    struct dv_cel_ast *target; /* NULL: not a member */
    struct dv_cel_ast **args;
    uint32_t n_args;
    const struct dv_cel_size *result; /* what was found out; NULL: nothing */
};

static struct range target_size(struct estimator *e, const struct call *call)
{
    return size_or_unknown(e, call->target);
}

static struct range arg_size(struct estimator *e, const struct call *call, uint32_t i)
{
    return size_or_unknown(e, call->args[i]);
}

/* Of an element, when the target is a list. */
static struct range element_size(struct estimator *e, const struct dv_cel_ast *list)
{
    const struct dv_cel_path *path = path_of(e, list);
    struct range size;

    if (path && size_at(step(e, path, DV_STR("@items")), &size))
        return size;
    return unknown;
}

static struct range cost_traverse(struct estimator *e, const struct call *call)
{
    const struct dv_cel_type *type = call->target->type;
    struct range element = fixed(1);

    if (type->n_params == 0)
        return scale(target_size(e, call), DV_CEL_STRING_FACTOR);
    if (type->params[0]->kind == DV_CEL_T_STRING || type->params[0]->kind == DV_CEL_T_BYTES)
        element = add(element, scale(element_size(e, call->target), DV_CEL_STRING_FACTOR));
    return multiply(target_size(e, call), element);
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    double quotient = ceil((double)a / (double)b);

    return quotient >= 0x1p64 ? UINT64_MAX : (uint64_t)quotient;
}

/* The size of the result, from the sizes of the text, of what is replaced, and of what by. */
static struct range replaced_size(struct range text, struct range old, struct range new)
{
    struct range count = {0, 0};
    struct range kept = {0, 0};

    if (old.min == 0) { /* may be empty: before and after each character */
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
    return add(multiply(count, new), kept);
}

static struct range cost_replace(struct estimator *e, struct call *call)
{
    struct range size = target_size(e, call);

    call->result = keep(e, replaced_size(size, arg_size(e, call, 0), arg_size(e, call, 1)));
    return scale(size, 2 * DV_CEL_STRING_FACTOR);
}

static struct range cost_split(struct estimator *e, struct call *call)
{
    struct range size = target_size(e, call);
    uint64_t max = size.max;

    if (call->n_args > 1 && call->args[1]->kind == DV_CEL_AST_LITERAL &&
        call->args[1]->literal.kind == DV_CEL_INT)
        max = call->args[1]->literal.u;
    call->result = keep(e, (struct range){0, max});
    return scale(size, 2 * DV_CEL_STRING_FACTOR);
}

static struct range cost_join(struct estimator *e, struct call *call)
{
    struct range list = target_size(e, call);
    struct range size = {0, 0};

    if (call->target->type->n_params > 0)
        size = multiply(list, element_size(e, call->target));
    if (call->n_args > 0)
        size = add(size,
                   multiply(arg_size(e, call, 0), (struct range){list.min > 0 ? list.min - 1 : 0,
                                                                 list.max > 0 ? list.max - 1 : 0}));
    call->result = keep(e, size);
    return scale(size, DV_CEL_STRING_FACTOR);
}

/* A pattern over a text. */
static struct range cost_search(struct range text, struct range pattern)
{
    return multiply(scale(add(text, fixed(1)), DV_CEL_STRING_FACTOR),
                    scale(pattern, DV_CEL_REGEX_FACTOR));
}

static struct range cost_contains_net(struct estimator *e, const struct call *call, bool is_cidr,
                                      bool is_string)
{
    struct range ip = {4, 16};
    struct range cost = scale(add(ip, ip), DV_CEL_STRING_FACTOR);

    if (is_cidr)
        cost = add(add(cost, scale(ip, DV_CEL_STRING_FACTOR)), fixed(1));
    if (is_string)
        cost = add(cost, scale(arg_size(e, call, 0), DV_CEL_STRING_FACTOR));
    return cost;
}

static bool is_named(const struct dv_cel_type *type, const struct dv_cel_type *other)
{
    return dv_str_eq(type->name, other->name);
}

static struct range cost_equal(struct estimator *e, const struct call *call, bool is_equality)
{
    const struct dv_cel_type *type = call->args[0]->type;
    struct range a = arg_size(e, call, 0);
    struct range b = arg_size(e, call, 1);
    uint64_t max = dv_u64_min(a.max, b.max);

    if (is_equality && dv_cel_type_eq(type, call->args[1]->type)) {
        if (is_named(type, &dv_cel_t_ip) || is_named(type, &dv_cel_t_cidr) ||
            is_named(type, &dv_cel_t_quantity) || is_named(type, &dv_cel_t_version))
            return fixed(1);
        if (is_named(type, &dv_cel_t_format))
            return scale((struct range){1, FORMAT_SIZE}, DV_CEL_STRING_FACTOR);
        if (is_named(type, &dv_cel_t_url)) {
            const struct dv_cel_size *size = size_of(e, call->args[1]);

            return scale((struct range){1, size ? size->max : 1}, DV_CEL_STRING_FACTOR);
        }
    }
    return scale((struct range){max > 0 ? 1 : 0, max}, DV_CEL_STRING_FACTOR);
}

static struct range cost_concat(struct estimator *e, struct call *call, bool is_list)
{
    struct range size = add(arg_size(e, call, 0), arg_size(e, call, 1));
    const struct dv_cel_entry_size *entry =
        entry_union(e, entry_size_of(e, call->args[0]), entry_size_of(e, call->args[1]));

    if (entry)
        call->ast->entry_size = entry;
    call->result = keep(e, size);
    return is_list ? fixed(1) : scale(size, DV_CEL_STRING_FACTOR);
}

static struct range cost_sets(struct estimator *e, const struct call *call, double factor)
{
    struct range product = multiply(arg_size(e, call, 0), arg_size(e, call, 1));

    return add(scale(product, factor), fixed(1));
}

/* Walks its argument into something else. */
static struct range cost_walk(struct estimator *e, struct call *call, enum dv_cel_cost rule)
{
    struct range size = arg_size(e, call, 0);
    struct range result = {size.min, size.max * 4}; /* four bytes a character */

    if (rule == DV_CEL_COST_QUOTE)
        result = (struct range){size.min + 2, size.max * 2 + 2};
    else if (rule == DV_CEL_COST_DECODE)
        result = (struct range){size.min / 4, size.max};
    call->result = keep(e, result);
    return scale(size, DV_CEL_STRING_FACTOR);
}

static struct range cost_string(struct estimator *e, struct call *call, struct dv_cel_ast *text)
{
    struct range size = size_or_unknown(e, text);

    call->result = keep(e, size);
    return scale(size, DV_CEL_STRING_FACTOR);
}

static struct range cost_find(struct estimator *e, struct call *call)
{
    struct range size = target_size(e, call);

    call->result = keep(e, (struct range){0, size.max});
    return cost_search(size, arg_size(e, call, 0));
}

/* Lists from lists: a new one is made, and the old one walked, once or for every element. */
static struct range cost_list(struct estimator *e, struct call *call, enum dv_cel_cost rule)
{
    struct range base = fixed(LIST_COST + 1);
    struct range size = call->target ? target_size(e, call) : unknown;

    if (rule == DV_CEL_COST_RANGE) {
        const struct dv_cel_ast *n = call->args[0];

        if (n->kind == DV_CEL_AST_LITERAL)
            size = fixed(n->literal.i > 0 ? n->literal.u : 0);
        call->result = keep(e, size);
    } else if (rule == DV_CEL_COST_SLICE) {
        const struct dv_cel_ast *from = call->args[0];
        const struct dv_cel_ast *to = call->args[1];

        if (from->kind == DV_CEL_AST_LITERAL && to->kind == DV_CEL_AST_LITERAL)
            size = fixed(to->literal.u - (from->literal.i > 0 ? from->literal.u : 0));
        call->result = keep(e, size);
    } else if (rule == DV_CEL_COST_PAIRWISE || rule == DV_CEL_COST_PAIRWISE_TEXT) {
        bool is_text = rule == DV_CEL_COST_PAIRWISE_TEXT;

        size = multiply(size, size); /* that the result were as long is the reference's slip */
        call->result = keep(e, size);
        size = scale(size, is_text ? PAIR_FACTOR + DV_CEL_STRING_FACTOR : PAIR_FACTOR);
    } else {
        call->result = keep(e, size);
    }
    return add(size, base);
}

/* Without the arguments' own costs. */
static struct range cost_rule(struct estimator *e, struct call *call, enum dv_cel_cost rule)
{
    switch (rule) {
    case DV_CEL_COST_EQ:
        return cost_equal(e, call, dv_str_eq(call->ast->name, DV_STR("_==_")));
    case DV_CEL_COST_LESS:
        return cost_equal(e, call, false);
    case DV_CEL_COST_AFFIX:
    case DV_CEL_COST_PARSE:
        return scale(arg_size(e, call, 0), DV_CEL_STRING_FACTOR);
    case DV_CEL_COST_CANONICAL:
        return scale(arg_size(e, call, 0), 2 * DV_CEL_STRING_FACTOR);
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
        return multiply(scale(target_size(e, call), DV_CEL_STRING_FACTOR),
                        scale(arg_size(e, call, 0), DV_CEL_STRING_FACTOR));
    case DV_CEL_COST_MATCHES:
        return cost_search(target_size(e, call), arg_size(e, call, 0));
    case DV_CEL_COST_FORMAT:
        return scale(target_size(e, call), DV_CEL_STRING_FACTOR);
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
        return scale(scale(arg_size(e, call, 0), DV_CEL_STRING_FACTOR),
                     FORMAT_REGEX_SIZE * DV_CEL_REGEX_FACTOR);
    case DV_CEL_COST_INCLUDES:
        return fixed(INCLUDES_COST);
    case DV_CEL_COST_ONE:
    case DV_CEL_COST_CHOOSE:
    case DV_CEL_COST_INDEX_LIST:
    case DV_CEL_COST_INDEX_MAP:
    case DV_CEL_COST_MEMBER:
        break;
    }
    return fixed(1);
}

static struct range cost_choose(struct estimator *e, struct call *call)
{
    const struct dv_cel_entry_size *entry;
    struct range cond = cost_of(e, call->args[0]);
    struct range branches = both(cost_of(e, call->args[1]), cost_of(e, call->args[2]));

    call->result = keep(e, both(arg_size(e, call, 1), arg_size(e, call, 2)));
    entry = entry_union(e, entry_size_of(e, call->args[1]), entry_size_of(e, call->args[2]));
    if (entry)
        call->ast->entry_size = entry;
    call->ast->size = call->result;
    return add(cond, branches);
}

static struct range cost_logical(struct estimator *e, const struct dv_cel_ast *ast)
{
    struct range sum = cost_of(e, ast->args[0]);

    for (uint32_t i = 1; i < ast->n_args; i++)
        sum.max = dv_u64_add_clamped(sum.max, cost_of(e, ast->args[i]).max);
    return sum;
}

/* What an index gives, and where that is. */
static void note_index(struct estimator *e, struct call *call, bool is_map)
{
    const struct dv_cel_entry_size *entry = entry_size_of(e, call->args[0]);

    call->result = entry ? keep(e, (struct range){entry->value.min, entry->value.max}) : NULL;
    call->ast->path =
        step(e, path_of(e, call->args[0]), is_map ? DV_STR("@values") : DV_STR("@items"));
}

/* All overloads that it may be; the largest counts. */
static struct range cost_overloads(struct estimator *e, struct call *call)
{
    struct range cost = {UINT64_MAX, 0};
    const struct dv_cel_size *result = NULL;

    for (uint32_t i = 0; i < call->ast->n_overloads; i++) {
        enum dv_cel_cost rule = (enum dv_cel_cost)call->ast->overloads[i]->cost;

        call->result = NULL;
        cost = both(cost, cost_rule(e, call, rule));
        if (call->result)
            result =
                result ? keep(e, both(from_size(result), from_size(call->result))) : call->result;
        if (rule == DV_CEL_COST_INDEX_LIST || rule == DV_CEL_COST_INDEX_MAP) {
            note_index(e, call, rule == DV_CEL_COST_INDEX_MAP);
            result = call->result;
        }
        if (!result)
            result = size_of(e, call->ast);
    }
    if (result)
        call->ast->size = result;
    return cost;
}

static struct range cost_call(struct estimator *e, struct dv_cel_ast *ast)
{
    struct call call = {ast, ast->target, ast->args, ast->n_args, NULL};
    struct range args = {0, 0};
    struct range own;

    if (dv_str_eq(ast->name, DV_STR("_&&_")) || dv_str_eq(ast->name, DV_STR("_||_")))
        return cost_logical(e, ast);
    if (dv_str_eq(ast->name, DV_STR("_?_:_")))
        return cost_choose(e, &call);
    for (uint32_t i = 0; i < ast->n_args; i++)
        args = add(args, cost_of(e, ast->args[i]));
    if (dv_str_eq(ast->name, DV_STR("dyn")) && !ast->target) {
        ast->size = size_of(e, ast->args[0]);
        ast->entry_size = entry_size_of(e, ast->args[0]);
        return add(args, fixed(1));
    }
    if (dv_str_eq(ast->name, DV_STR("_?._")))
        return add(args, fixed(1));
    if (ast->target)
        args = add(args, cost_of(e, ast->target));
    own = cost_overloads(e, &call);
    return add(args, own);
}

/* -- The rest
 * ------------------------------------------------------------------------------------------ */

static struct range cost_ident(struct estimator *e, struct dv_cel_ast *ast)
{
    const struct local *local = find_local(e, ast->name);

    ast->path = local ? local->path : step(e, NULL, ast->name);
    return fixed(1);
}

static struct range cost_select(struct estimator *e, struct dv_cel_ast *ast)
{
    struct range cost = cost_of(e, ast->target);
    const struct dv_cel_type *type = ast->target->type;

    if (ast->is_test)
        return cost;
    if (type->kind == DV_CEL_T_MAP || type->kind == DV_CEL_T_OBJECT)
        cost = add(cost, fixed(1));
    ast->path = step(e, path_of(e, ast->target), ast->name);
    return cost;
}

static struct dv_cel_size widen(struct dv_cel_size size, struct range other)
{
    return size_union(size, (struct dv_cel_size){other.min, other.max});
}

static struct range cost_aggregate(struct estimator *e, struct dv_cel_ast *ast)
{
    bool is_map = ast->kind == DV_CEL_AST_MAP;
    struct dv_cel_size none = {ast->n_args == 0 ? 0 : UINT64_MAX, 0};
    struct dv_cel_entry_size *entry = DV_NEW(e->arena, struct dv_cel_entry_size);
    struct range cost = fixed(is_map ? MAP_COST : LIST_COST);

    *entry = (struct dv_cel_entry_size){
        is_map, is_map ? none : (struct dv_cel_size){1, 1},
              none
    };
    for (uint32_t i = 0; i < ast->n_args; i++) {
        struct range size;

        cost = add(cost, cost_of(e, ast->args[i]));
        size = size_or_unknown(e, ast->args[i]);
        if (is_map && i % 2 == 0)
            entry->key = widen(entry->key, size);
        else
            entry->value = widen(entry->value, size);
    }
    ast->entry_size = entry;
    return cost;
}

static struct range cost_struct(struct estimator *e, const struct dv_cel_ast *ast)
{
    struct range cost = fixed(STRUCT_COST);

    for (uint32_t i = 0; i < ast->n_args; i++)
        cost = add(cost, cost_of(e, ast->args[i]));
    return cost;
}

/* cel.bind: nothing is gone through. */
static bool is_bind(const struct dv_cel_fold *fold)
{
    return fold->range->kind == DV_CEL_AST_LIST && fold->range->n_args == 0 &&
           fold->cond->kind == DV_CEL_AST_LITERAL && fold->cond->literal.kind == DV_CEL_BOOL &&
           !fold->cond->literal.b;
}

static struct range cost_bind(struct estimator *e, struct dv_cel_ast *ast)
{
    const struct dv_cel_fold *fold = ast->fold;
    struct range cost = add(cost_of(e, fold->range), cost_of(e, fold->init));
    struct local local = {e->locals, fold->accu, path_of(e, fold->init), size_of(e, fold->init),
                          entry_size_of(e, fold->init)};

    e->locals = &local;
    cost = add(cost, cost_of(e, fold->result));
    ast->size = size_of(e, fold->result);
    ast->entry_size = entry_size_of(e, fold->result);
    e->locals = local.up;
    return cost;
}

/* What the variables of a comprehension go over. */
static void bind_range(struct estimator *e, const struct dv_cel_fold *fold, struct local *iter,
                       struct local *iter2)
{
    const struct dv_cel_entry_size *entry = entry_size_of(e, fold->range);
    const struct dv_cel_path *path = path_of(e, fold->range);
    bool is_list = entry ? !entry->is_map : fold->range->type->kind == DV_CEL_T_LIST;
    const struct dv_cel_size *key = entry ? &entry->key : NULL;
    const struct dv_cel_size *value = entry ? &entry->value : NULL;
    dv_str values = is_list ? DV_STR("@items") : DV_STR("@values");

    iter->name = fold->iter;
    iter2->name = fold->iter2;
    if (fold->iter2.n > 0) {
        iter->path = step(e, path, is_list ? DV_STR("@indices") : DV_STR("@keys"));
        iter->size = key;
        iter2->path = step(e, path, values);
        iter2->size = value;
    } else {
        iter->path = step(e, path, is_list ? values : DV_STR("@keys"));
        iter->size = is_list ? value : key;
    }
}

static struct range cost_fold(struct estimator *e, struct dv_cel_ast *ast)
{
    const struct dv_cel_fold *fold = ast->fold;
    struct range cost = add(cost_of(e, fold->range), cost_of(e, fold->init));
    struct local accu = {e->locals, fold->accu, path_of(e, fold->init), size_of(e, fold->init),
                         entry_size_of(e, fold->init)};
    struct local iter = {.up = &accu};
    struct local iter2 = {.up = &iter};
    struct range round;
    struct range n;

    bind_range(e, fold, &iter, &iter2);
    e->locals = fold->iter2.n > 0 ? &iter2 : &iter;
    round = add(cost_of(e, fold->cond), cost_of(e, fold->step));
    e->locals = &accu;
    cost = add(cost, cost_of(e, fold->result));
    e->locals = accu.up;
    n = size_or_unknown(e, fold->range);
    if (fold->init->kind == DV_CEL_AST_LITERAL) {
        ast->size = size_of(e, fold->init);
    } else if (fold->init->kind == DV_CEL_AST_LIST || fold->init->kind == DV_CEL_AST_MAP) {
        const struct dv_cel_entry_size *entry = entry_size_of(e, fold->step);

        ast->size = keep(e, n);
        if (entry)
            ast->entry_size = entry;
    }
    return add(cost, multiply(n, round));
}

static struct range compute(struct estimator *e, struct dv_cel_ast *ast)
{
    switch (ast->kind) {
    case DV_CEL_AST_LITERAL:
        return fixed(0);
    case DV_CEL_AST_IDENT:
        return cost_ident(e, ast);
    case DV_CEL_AST_SELECT:
        return cost_select(e, ast);
    case DV_CEL_AST_CALL:
        return cost_call(e, ast);
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

static struct range cost_of(struct estimator *e, struct dv_cel_ast *ast)
{
    if (!ast->cost) /* optMap has its target twice */
        ast->cost = keep(e, compute(e, ast));
    return from_size(ast->cost);
}

uint64_t dv_cel_estimate(struct dv_cel_ast *ast, struct dv_arena *arena)
{
    struct estimator e = {.arena = arena};

    return cost_of(&e, ast).max;
}

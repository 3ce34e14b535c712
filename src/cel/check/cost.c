#include "cel/check/cost.h"

#include <math.h>

#include "cel/value/cel_map.h"
#include "cel/value/cel_value.h"
#include "cel/value/format.h"

/* The cost of a new list, and of the call that makes it. */
#define LIST_BASE 11u
#define PAIR_FACTOR 2.0
/* So high that an expression may ask twice. */
#define AUTHORIZE_COST 350000u

static uint64_t scaled(double n, double factor)
{
    return (uint64_t)ceil(n * factor);
}

static uint64_t walk(const struct dv_cel_val *val)
{
    return scaled((double)dv_cel_val_size(val), DV_CEL_STRING_FACTOR);
}

uint64_t dv_cel_eq_cost(const struct dv_cel_val *args, bool is_equality)
{
    uint64_t a;
    uint64_t b;

    if (is_equality && args[0].kind >= DV_CEL_QUANTITY)
        return 1;
    a = dv_cel_val_size(&args[0]);
    b = dv_cel_val_size(&args[1]);
    return scaled((double)(a < b ? a : b), DV_CEL_STRING_FACTOR);
}

/* The cost of walking over all that is in a value. */
static uint64_t traverse(const struct dv_cel_val *val)
{
    uint64_t sum = 0;

    switch (val->kind) {
    case DV_CEL_STRING:
    case DV_CEL_BYTES:
        return (uint64_t)((double)val->s.n * DV_CEL_STRING_FACTOR);
    case DV_CEL_LIST:
        for (uint32_t i = 0; i < val->list->n; i++)
            sum += traverse(&val->list->v[i]);
        return sum;
    case DV_CEL_MAP:
        for (uint32_t i = 0; i < val->map->n; i++)
            sum += traverse(&val->map->v[i].key) + traverse(&val->map->v[i].value);
        return sum;
    default:
        return 1;
    }
}

/* The cost of a pattern of `size` characters over a text. */
static uint64_t search(const struct dv_cel_val *text, double size)
{
    return scaled(1.0 + (double)dv_cel_val_size(text), DV_CEL_STRING_FACTOR) *
           scaled(size, DV_CEL_REGEX_FACTOR);
}

static uint64_t contains_net(const struct dv_cel_val *args, bool is_cidr, bool is_string)
{
    double size = (double)dv_cel_val_size(&args[0]);
    uint64_t cost = scaled(size + size, DV_CEL_STRING_FACTOR);

    if (is_cidr)
        cost += scaled(size, DV_CEL_STRING_FACTOR) + 1;
    if (is_string)
        cost += walk(&args[1]);
    return cost;
}

static uint64_t sets(const struct dv_cel_val *args, double factor)
{
    double product = (double)(dv_cel_val_size(&args[0]) * dv_cel_val_size(&args[1]));

    return 1 + (uint64_t)(product * factor);
}

/* The cost of comparing each element with each; texts are walked, too. */
static uint64_t pairwise(const struct dv_cel_val *list)
{
    double n = (double)dv_cel_val_size(list);
    bool is_text =
        list->kind == DV_CEL_LIST && list->list->n > 0 &&
        (list->list->v[0].kind == DV_CEL_STRING || list->list->v[0].kind == DV_CEL_BYTES);

    return LIST_BASE +
           (uint64_t)(n * n * (is_text ? PAIR_FACTOR + DV_CEL_STRING_FACTOR : PAIR_FACTOR));
}

uint64_t dv_cel_call_cost(enum dv_cel_cost rule, const struct dv_cel_val *args, size_t n_args,
                          const struct dv_cel_val *result)
{
    switch (rule) {
    case DV_CEL_COST_EQ:
    case DV_CEL_COST_LESS:
        return dv_cel_eq_cost(args, false);
    case DV_CEL_COST_AFFIX:
    case DV_CEL_COST_ENCODE:
    case DV_CEL_COST_DECODE:
    case DV_CEL_COST_QUOTE:
    case DV_CEL_COST_FORMAT:
    case DV_CEL_COST_URL:
    case DV_CEL_COST_PARSE:
    case DV_CEL_COST_STRING:
        return walk(&args[0]);
    case DV_CEL_COST_AUTHORIZE:
        return AUTHORIZE_COST;
    case DV_CEL_COST_SELECTOR:
        return walk(&args[1]);
    case DV_CEL_COST_IN_LIST:
        return dv_cel_val_size(&args[1]);
    case DV_CEL_COST_CONCAT:
        return scaled((double)(dv_cel_val_size(&args[0]) + dv_cel_val_size(&args[1])),
                      DV_CEL_STRING_FACTOR);
    case DV_CEL_COST_CONTAINS:
        return walk(&args[0]) * walk(&args[1]);
    case DV_CEL_COST_MATCHES:
    case DV_CEL_COST_FIND:
        return search(&args[0], (double)dv_cel_val_size(&args[1]));
    case DV_CEL_COST_SETS:
        return sets(args, 1);
    case DV_CEL_COST_SETS_TWICE:
        return sets(args, 2);
    case DV_CEL_COST_RANGE:
    case DV_CEL_COST_SLICE:
    case DV_CEL_COST_REVERSE:
        return LIST_BASE + dv_cel_val_size(result);
    case DV_CEL_COST_FLATTEN:
        return LIST_BASE + dv_cel_val_size(&args[0]);
    case DV_CEL_COST_PAIRWISE:
    case DV_CEL_COST_PAIRWISE_TEXT:
        return pairwise(&args[n_args - 1]);
    case DV_CEL_COST_TRAVERSE:
        return traverse(&args[0]);
    case DV_CEL_COST_REPLACE:
    case DV_CEL_COST_SPLIT:
    case DV_CEL_COST_CANONICAL:
        return scaled((double)dv_cel_val_size(&args[0]) * 2, DV_CEL_STRING_FACTOR);
    case DV_CEL_COST_JOIN:
        return scaled((double)dv_cel_val_size(result) * 2, DV_CEL_STRING_FACTOR);
    case DV_CEL_COST_CONTAINS_IP:
        return contains_net(args, false, false);
    case DV_CEL_COST_CONTAINS_IP_STRING:
        return contains_net(args, false, true);
    case DV_CEL_COST_CONTAINS_CIDR:
        return contains_net(args, true, false);
    case DV_CEL_COST_CONTAINS_CIDR_STRING:
        return contains_net(args, true, true);
    case DV_CEL_COST_VALIDATE:
        if (n_args == 2 && args[0].kind == DV_CEL_FORMAT)
            return search(&args[1], (double)dv_cel_format_regex_size(args[0].format));
        return 1;
    case DV_CEL_COST_ONE:
    case DV_CEL_COST_ADD_LIST:
    case DV_CEL_COST_CHOOSE:
    case DV_CEL_COST_INDEX_LIST:
    case DV_CEL_COST_INDEX_MAP:
    case DV_CEL_COST_MEMBER:
    case DV_CEL_COST_INCLUDES:
        break;
    }
    return 1;
}

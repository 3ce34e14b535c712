/* eval.c - evaluates planned expressions. */
#include "base/arena.h"
#include "cel/cel.h"
#include "cel/check/cost.h"
#include "cel/check/decls.h"
#include "cel/plan/plan_node.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_message.h"
#include "cel/value/cel_run.h"

#define LIST_COST 10u
#define MAP_COST 30u
#define STRUCT_COST 40u
/* After so many rounds the caller is asked whether to go on. */
#define ROUNDS_BETWEEN_CHECKS 100u
#define ARGS_ON_STACK 4u

void dv_cel_run_stop(struct dv_cel_run *run, enum dv_cel_fault fault, struct dv_cel_val *out)
{
    if (!run->stop)
        run->stop = (uint8_t)fault;
    *out = (struct dv_cel_val){.kind = DV_CEL_ERROR, .fault = run->stop};
}

/* To be called after something was charged or built: false when it was too much. */
static bool is_within(struct dv_cel_run *run, struct dv_cel_val *out)
{
    if (!run->stop && dv_arena_size_bytes(run->arena) > run->memory_max)
        run->stop = DV_CEL_FAULT_MEMORY;
    if (run->stop)
        *out = (struct dv_cel_val){.kind = DV_CEL_ERROR, .fault = run->stop};
    return !run->stop;
}

/* -- What costs little and takes long -------------------------------------------------------- */

/* The weight of a value, counted only as far as work is left. */
static uint64_t weigh(const struct dv_cel_run *run, const struct dv_cel_val *val)
{
    return dv_cel_val_weigh(val, run->work_max - run->work + 1);
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Counts the work of a call that its cost leaves out. It is counted before the call, which is not
 * made when it is too much. */
static void weigh_call(struct dv_cel_run *run, enum dv_cel_cost rule, const struct dv_cel_val *args,
                       uint32_t n_args)
{
    switch ((int)rule) {
    case DV_CEL_COST_IN_LIST: /* the shorter one of a pair ends a comparison */
        dv_cel_run_work(run, weigh(run, &args[1]));
        break;
    case DV_CEL_COST_SETS:
    case DV_CEL_COST_SETS_TWICE: /* each is compared with each */
        dv_cel_run_work(run, times(weigh(run, &args[0]), dv_cel_val_size(&args[1])));
        break;
    case DV_CEL_COST_PAIRWISE:
    case DV_CEL_COST_PAIRWISE_TEXT:
        for (uint32_t i = 0; i < n_args; i++)
            dv_cel_run_work(run, times(weigh(run, &args[i]), dv_cel_val_size(&args[i])));
        break;
    case DV_CEL_COST_TRAVERSE:
    case DV_CEL_COST_INCLUDES:
    case DV_CEL_COST_FORMAT:
    case DV_CEL_COST_FLATTEN:
    case DV_CEL_COST_JOIN:
        for (uint32_t i = 0; i < n_args; i++)
            dv_cel_run_work(run, weigh(run, &args[i]));
        break;
    default:
        break;
    }
}

/* -- Operators and calls --------------------------------------------------------------------- */

/* Evaluates && or || from the operand `first` on: a `decisive` one ends it, and an error counts
 * only when no operand decides. */
static void eval_logical(struct dv_cel_run *run, const struct dv_cel_node *node, uint32_t first,
                         bool decisive, struct dv_cel_val *out)
{
    struct dv_cel_val error = {0};
    bool has_error = false;

    for (uint32_t i = first; i < node->n_args; i++) {
        dv_cel_run_node(run, node->args[i], out);
        if (run->stop)
            return;
        if (out->kind == DV_CEL_BOOL) {
            if (out->b == decisive)
                return;
        } else if (!has_error) {
            has_error = true;
            error = dv_cel_is_error(out) ? *out : dv_cel_no_overload(node->name);
        }
    }
    *out = has_error ? error : dv_cel_bool(!decisive);
}

static void eval_eq(struct dv_cel_run *run, const struct dv_cel_node *node, struct dv_cel_val *out)
{
    bool is_equality = node->kind == DV_CEL_NODE_EQ;
    enum dv_cel_equality result;
    struct dv_cel_val args[2];

    dv_cel_run_node(run, node->args[0], &args[0]);
    dv_cel_run_node(run, node->args[1], &args[1]);
    dv_cel_run_charge(run, dv_cel_eq_cost(args, is_equality));
    if (args[0].kind == args[1].kind && args[0].kind != DV_CEL_ERROR)
        dv_cel_run_work(run, weigh(run, &args[0]));
    if (!is_within(run, out))
        return;
    if (dv_cel_is_error(&args[0])) {
        *out = args[0];
        return;
    }
    if (dv_cel_is_error(&args[1])) {
        *out = args[1];
        return;
    }
    result = dv_cel_compare(&args[0], &args[1]);
    if (is_equality && result == DV_CEL_INCOMPARABLE)
        *out = dv_cel_no_overload(node->name);
    else
        *out = dv_cel_bool((result == DV_CEL_EQUAL) == is_equality);
}

static void dispatch(struct dv_cel_run *run, const struct dv_cel_node *node,
                     const struct dv_cel_val *args, struct dv_cel_val *out)
{
    run->regex = node->regex;
    if (node->fn) {
        node->fn(run, args, out);
        return;
    }
    for (uint32_t i = 0; i < node->n_overloads; i++) {
        if (dv_cel_overload_takes(node->overloads[i], args, node->n_args)) {
            node->overloads[i]->fn(run, args, out);
            return;
        }
    }
    *out = dv_cel_no_overload(node->name);
}

static void eval_call(struct dv_cel_run *run, const struct dv_cel_node *node,
                      struct dv_cel_val *out)
{
    struct dv_cel_val args[ARGS_ON_STACK];
    const struct dv_cel_val *error = NULL;

    if (node->n_args > ARGS_ON_STACK) { /* no function takes so many */
        *out = dv_cel_no_overload(node->name);
        return;
    }
    for (uint32_t i = 0; i < node->n_args; i++) {
        dv_cel_run_node(run, node->args[i], &args[i]);
        if (run->stop) {
            *out = args[i];
            return;
        }
        if (node->is_strict && !error && dv_cel_is_error(&args[i]))
            error = &args[i];
        /* the error ends the call there, and the rest is not charged */
        if (error && node->is_variadic && i + 1 < node->n_args) {
            *out = *error;
            return;
        }
    }
    if (!error)
        weigh_call(run, (enum dv_cel_cost)node->cost, args, node->n_args);
    if (!is_within(run, out))
        return;
    if (error)
        *out = *error;
    else
        dispatch(run, node, args, out);
    if (node->n_args > 0 &&
        (node->cost == DV_CEL_COST_PAIRWISE || node->cost == DV_CEL_COST_PAIRWISE_TEXT) &&
        (args[0].kind != DV_CEL_LIST || args[node->n_args - 1].kind != DV_CEL_LIST)) {
        /* The reference fails for good here: neither || nor && absorbs the error. */
        dv_cel_run_stop(run, DV_CEL_FAULT_INTERNAL, out);
        return;
    }
    dv_cel_run_charge(run, dv_cel_call_cost((enum dv_cel_cost)node->cost, args, node->n_args, out));
    (void)is_within(run, out);
}

static void eval_in_set(struct dv_cel_run *run, const struct dv_cel_node *node,
                        struct dv_cel_val *out)
{
    dv_cel_run_node(run, node->args[0], out);
    if (!dv_cel_is_error(out))
        *out = dv_cel_bool(dv_cel_map_find(node->set, out) != NULL);
}

static void eval_optional_or(struct dv_cel_run *run, const struct dv_cel_node *node,
                             struct dv_cel_val *out)
{
    dv_cel_run_node(run, node->args[0], out);
    if (dv_cel_is_error(out))
        return;
    if (out->kind != DV_CEL_OPTIONAL)
        *out = dv_cel_no_overload(node->name);
    else if (!out->optional)
        dv_cel_run_node(run, node->args[1], out);
    else if (node->kind == DV_CEL_NODE_OPT_OR_VALUE)
        *out = *out->optional;
}

/* -- Literals of lists and maps -------------------------------------------------------------- */

static bool is_optional_at(const struct dv_cel_node *node, uint32_t i)
{
    return node->optionals && node->optionals[i];
}

/* Takes an optional element out of its optional; false when it has no value, or is no optional at
 * all. */
static bool unwrap(struct dv_cel_run *run, struct dv_cel_val *element, struct dv_cel_val *out)
{
    if (element->kind != DV_CEL_OPTIONAL) {
        *out = dv_cel_error_printf(run->arena,
                                   "cannot initialize optional entry from non-optional value %.*s",
                                   DV_FMT(dv_cel_val_type_name(element)));
        return false;
    }
    if (!element->optional)
        return false;
    *element = *element->optional;
    return true;
}

static void eval_list(struct dv_cel_run *run, const struct dv_cel_node *node,
                      struct dv_cel_val *out)
{
    struct dv_cel_val *elements;
    struct dv_cel_val list = dv_cel_list_new(node->n_args, run->arena, &elements);
    uint32_t n = 0;

    *out = dv_cel_null();
    for (uint32_t i = 0; i < node->n_args; i++) {
        struct dv_cel_val element;

        dv_cel_run_node(run, node->args[i], &element);
        if (dv_cel_is_error(&element)) {
            *out = element;
            return;
        }
        if (!is_optional_at(node, i) || unwrap(run, &element, out))
            elements[n++] = element;
        if (dv_cel_is_error(out))
            return;
    }
    if (n < node->n_args)
        list = dv_cel_list_slice(list.list, 0, n, run->arena);
    *out = list;
}

static void eval_map(struct dv_cel_run *run, const struct dv_cel_node *node, struct dv_cel_val *out)
{
    struct dv_cel_map *map = dv_cel_map_new(node->n_args / 2, run->arena);

    *out = dv_cel_null();
    for (uint32_t i = 0; i < node->n_args; i += 2) {
        struct dv_cel_val key;
        struct dv_cel_val value;

        dv_cel_run_node(run, node->args[i], &key);
        if (dv_cel_is_error(&key)) {
            *out = key;
            return;
        }
        dv_cel_run_node(run, node->args[i + 1], &value);
        if (dv_cel_is_error(&value)) {
            *out = value;
            return;
        }
        /* The two kinds that cannot be keys in the reference. */
        if (key.kind == DV_CEL_BYTES || key.kind == DV_CEL_VERSION) {
            *out = dv_cel_error(DV_STR("unsupported key type"));
            return;
        }
        if (!is_optional_at(node, i / 2) || unwrap(run, &value, out))
            dv_cel_map_set(map, &key, &value, run->arena);
        if (dv_cel_is_error(out))
            return;
    }
    *out = (struct dv_cel_val){.kind = DV_CEL_MAP, .map = map};
}

static void eval_struct(struct dv_cel_run *run, const struct dv_cel_node *node,
                        struct dv_cel_val *out)
{
    struct dv_cel_val *values = DV_NEW_ARRAY(run->arena, struct dv_cel_val, node->n_args);
    dv_str *names = DV_NEW_ARRAY(run->arena, dv_str, node->n_args);
    uint32_t n = 0;

    *out = dv_cel_null();
    for (uint32_t i = 0; i < node->n_args; i++) {
        struct dv_cel_val *value = &values[n];

        dv_cel_run_node(run, node->args[i], value);
        if (dv_cel_is_error(value)) {
            *out = *value;
            return;
        }
        if (!is_optional_at(node, i) || unwrap(run, value, out))
            names[n++] = node->names[i];
        if (dv_cel_is_error(out))
            return;
    }
    *out = dv_cel_message_make(node->name, names, values, n, run->arena);
}

/* -- Comprehensions -------------------------------------------------------------------------- */

static bool is_going_on(struct dv_cel_run *run, struct dv_cel_val *out)
{
    if (!is_within(run, out))
        return false;
    if (++run->n_rounds % ROUNDS_BETWEEN_CHECKS == 0 && run->budget && run->budget->is_cancelled &&
        run->budget->is_cancelled(run->budget->ctx)) {
        dv_cel_run_stop(run, DV_CEL_FAULT_CANCELLED, out);
        return false;
    }
    return true;
}

static void set_slot(struct dv_cel_run *run, uint32_t index, const struct dv_cel_val *value)
{
    run->slots[index] = (struct dv_cel_slot){.value = *value};
}

/* Sets the variables for round i. */
static void set_round(struct dv_cel_run *run, const struct dv_cel_node_fold *fold,
                      const struct dv_cel_val *range, uint32_t i)
{
    if (range->kind == DV_CEL_MAP) {
        set_slot(run, fold->iter, &range->map->v[i].key);
        if (fold->has_iter2)
            set_slot(run, fold->iter2, &range->map->v[i].value);
    } else if (fold->has_iter2) {
        set_slot(run, fold->iter, &(struct dv_cel_val){.kind = DV_CEL_INT, .i = i});
        set_slot(run, fold->iter2, &range->list->v[i]);
    } else {
        set_slot(run, fold->iter, &range->list->v[i]);
    }
}

/* What a round of exists() or all() costs before its condition is looked at: the accumulator twice,
 * and the calls around it. */
#define EXISTS_ROUND_COST 4u
#define ALL_ROUND_COST 3u

/* Runs the first rounds of exists() or all(), as long as their conditions only leave open what
 * comes out: the accumulator need not be looked at then. Returns how many rounds it was. */
static uint32_t search(struct dv_cel_run *run, const struct dv_cel_node_fold *fold,
                       const struct dv_cel_val *range, uint32_t n)
{
    bool is_exists = fold->search == DV_CEL_SEARCH_EXISTS;
    uint32_t cost = is_exists ? EXISTS_ROUND_COST : ALL_ROUND_COST;
    struct dv_cel_val value;

    for (uint32_t i = 0; i < n; i++) {
        /* The generic way stops at the right place. */
        if (run->cost + cost > run->cost_max)
            return i;
        dv_cel_run_charge(run, cost);
        set_round(run, fold, range, i);
        eval_logical(run, fold->step, 1, is_exists, &value);
        set_slot(run, fold->accu, &value);
        if (value.kind != DV_CEL_BOOL || value.b == is_exists || run->stop ||
            !is_going_on(run, &value))
            return i + 1;
    }
    return n;
}

static bool run_rounds(struct dv_cel_run *run, const struct dv_cel_node_fold *fold,
                       const struct dv_cel_val *range, struct dv_cel_val *out)
{
    uint32_t n = range->kind == DV_CEL_MAP ? range->map->n : range->list->n;
    uint32_t done = fold->search == DV_CEL_SEARCH_NONE ? 0 : search(run, fold, range, n);

    if (run->stop) {
        dv_cel_run_stop(run, DV_CEL_FAULT_COST, out);
        return false;
    }
    for (uint32_t i = done; i < n; i++) {
        struct dv_cel_val value;

        set_round(run, fold, range, i);
        dv_cel_run_node(run, fold->cond, &value);
        if (value.kind == DV_CEL_BOOL && !value.b)
            break;
        dv_cel_run_node(run, fold->step, &value);
        set_slot(run, fold->accu, &value);
        if (!is_going_on(run, out))
            return false;
    }
    return true;
}

static void eval_fold(struct dv_cel_run *run, const struct dv_cel_node *node,
                      struct dv_cel_val *out)
{
    const struct dv_cel_node_fold *fold = node->fold;
    struct dv_cel_val range;

    dv_cel_run_node(run, fold->range, &range);
    if (dv_cel_is_error(&range)) {
        *out = range;
        return;
    }
    if (range.kind != DV_CEL_MAP && range.kind != DV_CEL_LIST) {
        *out = dv_cel_error_printf(run->arena, "got '%.*s', expected iterable type",
                                   DV_FMT(dv_cel_val_type_name(&range)));
        return;
    }
    run->slots[fold->accu] = (struct dv_cel_slot){.lazy = fold->init};
    if (run_rounds(run, fold, &range, out))
        dv_cel_run_node(run, fold->result, out);
}

void dv_cel_run_node(struct dv_cel_run *run, const struct dv_cel_node *node, struct dv_cel_val *out)
{
    switch ((enum dv_cel_node_kind)node->kind) {
    case DV_CEL_NODE_CONST:
        *out = node->value;
        break;
    case DV_CEL_NODE_ATTR:
        dv_cel_run_attr(run, node, out);
        break;
    case DV_CEL_NODE_CHOOSE:
        dv_cel_run_choose(run, node, out);
        break;
    case DV_CEL_NODE_CALL:
        eval_call(run, node, out);
        break;
    case DV_CEL_NODE_AND:
        eval_logical(run, node, 0, false, out);
        break;
    case DV_CEL_NODE_OR:
        eval_logical(run, node, 0, true, out);
        break;
    case DV_CEL_NODE_EQ:
    case DV_CEL_NODE_NE:
        eval_eq(run, node, out);
        break;
    case DV_CEL_NODE_LIST:
        eval_list(run, node, out);
        dv_cel_run_charge(run, LIST_COST);
        break;
    case DV_CEL_NODE_MAP:
        eval_map(run, node, out);
        dv_cel_run_charge(run, MAP_COST);
        break;
    case DV_CEL_NODE_STRUCT:
        eval_struct(run, node, out);
        dv_cel_run_charge(run, STRUCT_COST);
        break;
    case DV_CEL_NODE_FOLD:
        eval_fold(run, node, out);
        break;
    case DV_CEL_NODE_IN_SET:
        eval_in_set(run, node, out);
        break;
    case DV_CEL_NODE_OPT_OR:
    case DV_CEL_NODE_OPT_OR_VALUE:
        eval_optional_or(run, node, out);
        break;
    }
}

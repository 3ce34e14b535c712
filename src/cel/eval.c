/* eval.c - evaluates planned expressions.
 *
 * What is charged, and when, follows the reference's evaluator: an attribute costs 1 when it is
 * evaluated and 1 for each qualifier; as a branch of ?: or as a key it is resolved, which costs its
 * qualifiers alone. */
#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "cel/cel.h"
#include "cel/cost.h"
#include "cel/decls.h"
#include "cel/map.h"
#include "cel/message.h"
#include "cel/node.h"
#include "cel/run.h"

#define LIST_COST 10u
#define MAP_COST 30u
#define STRUCT_COST 40u
/* How often somebody is asked whether to go on. */
#define ROUNDS_BETWEEN_CHECKS 100u
#define ARGS_ON_STACK 4u

static void resolve(struct dv_cel_run *run, const struct dv_cel_node *node, struct dv_cel_val *out);

void dv_cel_run_stop(struct dv_cel_run *run, enum dv_cel_fault fault, struct dv_cel_val *out)
{
    if (!run->stop)
        run->stop = (uint8_t)fault;
    *out = (struct dv_cel_val){.kind = DV_CEL_ERROR, .fault = run->stop};
}

/* Counts `cost`, unless the end was reached before. */
static void charge(struct dv_cel_run *run, uint64_t cost)
{
    if (run->stop)
        return;
    run->cost += cost;
    if (run->cost > run->cost_max)
        run->stop = DV_CEL_FAULT_COST;
}

/* After something was charged or built: false when that was too much. */
static bool is_within(struct dv_cel_run *run, struct dv_cel_val *out)
{
    if (!run->stop && dv_arena_size_bytes(run->arena) > run->memory_max)
        run->stop = DV_CEL_FAULT_MEMORY;
    if (run->stop)
        *out = (struct dv_cel_val){.kind = DV_CEL_ERROR, .fault = run->stop};
    return !run->stop;
}

/* -- Attributes
 * -------------------------------------------------------------------------------------- */

static void load_slot(struct dv_cel_run *run, uint32_t index, struct dv_cel_val *out)
{
    struct dv_cel_slot *slot = &run->slots[index];

    if (slot->lazy) {
        const struct dv_cel_node *lazy = slot->lazy;

        slot->lazy = NULL;
        dv_cel_run_node(run, lazy, &slot->value);
    }
    *out = slot->value;
}

/* The place of `key` in a list; false when it is no index at all. */
static bool to_index(const struct dv_cel_val *key, int64_t *index)
{
    switch (key->kind) {
    case DV_CEL_INT:
        *index = key->i;
        return true;
    case DV_CEL_UINT:
        *index = key->u > INT64_MAX ? -1 : (int64_t)key->u;
        return true;
    case DV_CEL_DOUBLE:
        if (trunc(key->d) != key->d || fabs(key->d) >= 0x1p62)
            return false;
        *index = (int64_t)key->d;
        return true;
    default:
        return false;
    }
}

enum found {
    FOUND,
    ABSENT,
    FAILED, /* with the error in out */
};

static enum found look_up_list(struct dv_cel_run *run, const struct dv_cel_list *list,
                               const struct dv_cel_val *key, struct dv_cel_val *out)
{
    int64_t index;

    if (!to_index(key, &index)) {
        *out = dv_cel_error_printf(run->arena, "unsupported index type '%.*s' in list",
                                   DV_FMT(dv_cel_val_type_name(key)));
        return FAILED;
    }
    if (index < 0 || index >= list->n) {
        *out = dv_cel_error_printf(run->arena, "index out of bounds: %lld", (long long)index);
        return ABSENT;
    }
    *out = list->v[index];
    return FOUND;
}

static enum found look_up(struct dv_cel_run *run, const struct dv_cel_val *object,
                          const struct dv_cel_val *key, uint32_t hash, struct dv_cel_val *out)
{
    const struct dv_cel_val *value = NULL;

    if (object->kind == DV_CEL_MAP) {
        if (key->kind == DV_CEL_STRING) {
            value = dv_cel_map_find_str(object->map, key->s, hash);
        } else if (dv_cel_is_key(key)) {
            value = dv_cel_map_find(object->map, key);
        } else {
            *out = dv_cel_no_overload(DV_STR("_[_]"));
            return FAILED;
        }
        if (!value && object->map->is_domains && key->kind == DV_CEL_STRING)
            value = &dv_cel_empty_map;
        if (value) {
            *out = *value;
            return FOUND;
        }
    } else if (object->kind == DV_CEL_LIST) {
        return look_up_list(run, object->list, key, out);
    }
    *out = (struct dv_cel_val){.kind = DV_CEL_ERROR, .fault = DV_CEL_FAULT_NO_KEY};
    if (key->kind == DV_CEL_STRING)
        out->s = key->s;
    return ABSENT;
}

/* One qualifier on *object, which becomes the result. */
static enum found apply(struct dv_cel_run *run, const struct dv_cel_qualifier *qualifier,
                        bool is_test, struct dv_cel_val *object)
{
    const struct dv_cel_val *key = &qualifier->key;
    uint32_t hash = qualifier->hash;
    struct dv_cel_val computed;
    struct dv_cel_val out;
    enum found found;

    if (qualifier->node) {
        resolve(run, qualifier->node, &computed);
        if (dv_cel_is_error(&computed)) {
            if (!is_test)
                charge(run, 1);
            *object = computed;
            return FAILED;
        }
        key = &computed;
        if (key->kind == DV_CEL_STRING)
            hash = dv_cel_str_hash(key->s);
    }
    found = look_up(run, object, key, hash, &out);
    if (found == FOUND || !is_test)
        charge(run, 1);
    *object = out;
    return found;
}

/* Applies the qualifiers to *out, which holds what the attribute begins with. */
static void apply_all(struct dv_cel_run *run, const struct dv_cel_node *node,
                      struct dv_cel_val *out)
{
    bool is_optional = out->kind == DV_CEL_OPTIONAL;
    uint32_t n = node->n_qualifiers;

    if (n == 0)
        return;
    if (is_optional) {
        if (!out->optional) {
            if (node->is_test)
                *out = dv_cel_bool(false);
            return;
        }
        *out = *out->optional;
    }
    for (uint32_t i = 0; i < n; i++) {
        bool is_last = node->is_test && i + 1 == n;
        enum found found;

        is_optional |= node->qualifiers[i].is_optional;
        if (dv_cel_is_error(out))
            return;
        found = apply(run, &node->qualifiers[i], is_optional && !is_last, out);
        if (is_last && found != FAILED) {
            *out = dv_cel_bool(found == FOUND);
            return;
        }
        if (found == FAILED || (found == ABSENT && !is_optional))
            return;
        if (found == ABSENT) {
            *out = node->is_test ? dv_cel_bool(false) : dv_cel_none();
            return;
        }
    }
    if (is_optional)
        *out = dv_cel_optional(out, run->arena);
}

static void resolve_attr(struct dv_cel_run *run, const struct dv_cel_node *node,
                         struct dv_cel_val *out)
{
    switch (node->root) {
    case DV_CEL_ROOT_VAR:
        *out = run->vars[node->index];
        break;
    case DV_CEL_ROOT_SLOT:
        load_slot(run, node->index, out);
        break;
    default:
        dv_cel_run_node(run, node->args[0], out);
        break;
    }
    if (!dv_cel_is_error(out))
        apply_all(run, node, out);
}

static void eval_attr(struct dv_cel_run *run, const struct dv_cel_node *node,
                      struct dv_cel_val *out)
{
    bool is_choice = node->root == DV_CEL_ROOT_NODE && node->args[0]->kind == DV_CEL_NODE_CHOOSE;

    resolve_attr(run, node, out);
    if (!is_choice && !node->is_test)
        charge(run, 1);
}

static void eval_choose(struct dv_cel_run *run, const struct dv_cel_node *node,
                        struct dv_cel_val *out)
{
    dv_cel_run_node(run, node->args[0], out);
    if (dv_cel_is_error(out))
        return;
    if (out->kind != DV_CEL_BOOL)
        *out = dv_cel_no_overload(node->name);
    else
        resolve(run, node->args[out->b ? 1 : 2], out);
}

/* As a branch or a key: an attribute itself costs nothing then. */
static void resolve(struct dv_cel_run *run, const struct dv_cel_node *node, struct dv_cel_val *out)
{
    if (node->kind == DV_CEL_NODE_ATTR && !node->is_test)
        resolve_attr(run, node, out);
    else
        dv_cel_run_node(run, node, out);
}

/* -- Operators and calls
 * ------------------------------------------------------------------------------ */

/* `decisive` ends it; an error counts only when nothing decides. */
static void eval_logical(struct dv_cel_run *run, const struct dv_cel_node *node, bool decisive,
                         struct dv_cel_val *out)
{
    struct dv_cel_val error = {0};
    bool has_error = false;

    for (uint32_t i = 0; i < node->n_args; i++) {
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
    charge(run, dv_cel_eq_cost(args, is_equality));
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

    if (node->n_args > ARGS_ON_STACK) { /* nothing takes so many */
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
        if (error && node->is_variadic && i + 1 < node->n_args) { /* ends it there, unpaid */
            *out = *error;
            return;
        }
    }
    if (error)
        *out = *error;
    else
        dispatch(run, node, args, out);
    if ((node->cost == DV_CEL_COST_PAIRWISE || node->cost == DV_CEL_COST_PAIRWISE_TEXT) &&
        (args[0].kind != DV_CEL_LIST || args[node->n_args - 1].kind != DV_CEL_LIST)) {
        /* Here the reference fails for good, and nothing absorbs it. */
        dv_cel_run_stop(run, DV_CEL_FAULT_INTERNAL, out);
        return;
    }
    charge(run, dv_cel_call_cost((enum dv_cel_cost)node->cost, args, node->n_args, out));
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

/* -- Literals of lists and maps
 * ------------------------------------------------------------------------ */

static bool is_optional_at(const struct dv_cel_node *node, uint32_t i)
{
    return node->optionals && node->optionals[i];
}

/* Takes an optional element out of its optional: false when it is none, or no optional at all. */
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
        if (key.kind == DV_CEL_BYTES) { /* the one kind that the reference cannot have there */
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

/* -- Comprehensions
 * ------------------------------------------------------------------------------------- */

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

/* What the variables are in round i. */
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

static bool run_rounds(struct dv_cel_run *run, const struct dv_cel_node_fold *fold,
                       const struct dv_cel_val *range, struct dv_cel_val *out)
{
    uint32_t n = range->kind == DV_CEL_MAP ? range->map->n : range->list->n;

    for (uint32_t i = 0; i < n; i++) {
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
        eval_attr(run, node, out);
        break;
    case DV_CEL_NODE_CHOOSE:
        eval_choose(run, node, out);
        break;
    case DV_CEL_NODE_CALL:
        eval_call(run, node, out);
        break;
    case DV_CEL_NODE_AND:
        eval_logical(run, node, false, out);
        break;
    case DV_CEL_NODE_OR:
        eval_logical(run, node, true, out);
        break;
    case DV_CEL_NODE_EQ:
    case DV_CEL_NODE_NE:
        eval_eq(run, node, out);
        break;
    case DV_CEL_NODE_LIST:
        eval_list(run, node, out);
        charge(run, LIST_COST);
        break;
    case DV_CEL_NODE_MAP:
        eval_map(run, node, out);
        charge(run, MAP_COST);
        break;
    case DV_CEL_NODE_STRUCT:
        eval_struct(run, node, out);
        charge(run, STRUCT_COST);
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

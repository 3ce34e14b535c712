/* attr.c - evaluates attributes: a variable or other value with qualifiers behind it, and choices
 * between them.
 *
 * What is charged, and when, follows the reference's evaluator: an attribute costs 1 when it is
 * evaluated and 1 for each qualifier; as a branch of ?: or as a key it is resolved, which costs its
 * qualifiers alone. */
#include <math.h>

#include "cel/plan/plan_node.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_run.h"
#include "cel/value/type.h"

static void resolve(struct dv_cel_run *run, const struct dv_cel_node *node, struct dv_cel_val *out);

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

/* The index that `key` means in a list; false when it cannot be one. */
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

/* A variable of a policy is evaluated when it is first asked for. */
static enum found look_up_variable(struct dv_cel_run *run, dv_str name, struct dv_cel_val *out)
{
    if (!run->load(run, name, out)) {
        *out = (struct dv_cel_val){.kind = DV_CEL_ERROR, .fault = DV_CEL_FAULT_NO_KEY, .s = name};
        return ABSENT;
    }
    return dv_cel_is_error(out) ? FAILED : FOUND;
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
        if (object->map->is_variables && key->kind == DV_CEL_STRING)
            return look_up_variable(run, key->s, out);
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

/* Applies one qualifier to *object, which becomes the result. */
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
                dv_cel_run_charge(run, 1);
            *object = computed;
            return FAILED;
        }
        key = &computed;
        if (key->kind == DV_CEL_STRING)
            hash = dv_cel_str_hash(key->s);
    }
    found = look_up(run, object, key, hash, &out);
    if (found == FOUND || !is_test)
        dv_cel_run_charge(run, 1);
    *object = out;
    return found;
}

/* In the reference, an optional that a name or a branch stands for is taken apart and made anew:
 * what is inside becomes a plain value. The name of a type is a text then, an optional inside is
 * lost, and what the API server has added to the language is an error. */
static void remake_optional(struct dv_cel_run *run, struct dv_cel_val *out)
{
    struct dv_cel_val inside;

    if (out->kind != DV_CEL_OPTIONAL || !out->optional)
        return;
    inside = *out->optional;
    while (inside.kind == DV_CEL_OPTIONAL)
        inside = inside.optional ? *inside.optional : dv_cel_null();
    if (inside.kind == DV_CEL_TYPE)
        inside = dv_cel_string(inside.type->name);
    else if (inside.kind >= DV_CEL_QUANTITY) /* all that the API server has added */
        inside = dv_cel_error(DV_STR("unsupported conversion to ref.Val"));
    else if (out->optional->kind != DV_CEL_OPTIONAL)
        return;
    *out = dv_cel_optional(&inside, run->arena);
}

/* Applies the qualifiers to *out, which holds what the attribute begins with. */
static void apply_all(struct dv_cel_run *run, const struct dv_cel_node *node,
                      struct dv_cel_val *out)
{
    bool is_optional = out->kind == DV_CEL_OPTIONAL;
    uint32_t n = node->n_qualifiers;

    if (n == 0) {
        remake_optional(run, out);
        return;
    }
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

void dv_cel_run_attr(struct dv_cel_run *run, const struct dv_cel_node *node, struct dv_cel_val *out)
{
    bool is_choice = node->root == DV_CEL_ROOT_NODE && node->args[0]->kind == DV_CEL_NODE_CHOOSE;

    resolve_attr(run, node, out);
    if (!is_choice && !node->is_test)
        dv_cel_run_charge(run, 1);
}

void dv_cel_run_choose(struct dv_cel_run *run, const struct dv_cel_node *node,
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

/* Resolves a branch or a key: an attribute itself costs nothing there. */
static void resolve(struct dv_cel_run *run, const struct dv_cel_node *node, struct dv_cel_val *out)
{
    if (node->kind == DV_CEL_NODE_ATTR && !node->is_test) {
        resolve_attr(run, node, out);
    } else {
        dv_cel_run_node(run, node, out);
        remake_optional(run, out);
    }
}

/* compare.c - from typed documents to sets of fields: what a document sets, and how two differ. */
#include "resource/patch/typed.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "json/json.h"

/* The items of two lists that one step names. More than one on a side is against the rules, but
 * stored objects have it: such items count as one thing. */
struct pair {
    char kind;
    dv_str text;
    DV_VEC(const struct dv_json *) a;
    DV_VEC(const struct dv_json *) b;
};

struct pairs {
    DV_VEC(struct pair *) list;
    struct dv_map by_text;
};

static void compare_node(const struct dv_typed *type, const struct dv_json *a,
                         const struct dv_json *b, struct dv_arena *arena, struct dv_fields *node);
static void gather_node(const struct dv_typed *type, const struct dv_json *doc,
                        struct dv_arena *arena, struct dv_fields *node);

static void keep(struct dv_fields *parent, const struct dv_fields *child, struct dv_arena *arena)
{
    if (!dv_fields_is_empty(child))
        *dv_vec_add_in(parent, arena) = *child;
}

static void pair_items(struct pairs *pairs, const struct dv_typed *type, const struct dv_json *list,
                       bool is_first, struct dv_arena *arena)
{
    for (const struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item)) {
        struct pair *pair;
        dv_str text;
        char kind;

        if (!dv_typed_step(type, item, arena, &kind, &text))
            continue;
        pair = dv_map_get(&pairs->by_text, text);
        if (!pair) {
            pair = DV_NEW(arena, struct pair);
            pair->kind = kind;
            pair->text = text;
            (void)dv_map_set(&pairs->by_text, text, pair);
            *dv_vec_add_in(&pairs->list, arena) = pair;
        }
        if (is_first)
            *dv_vec_add_in(&pair->a, arena) = item;
        else
            *dv_vec_add_in(&pair->b, arena) = item;
    }
}

static bool are_equal(const struct pair *pair)
{
    if (pair->a.n != pair->b.n)
        return false;
    for (size_t i = 0; i < pair->a.n; i++)
        if (!dv_json_eq(pair->a.v[i], pair->b.v[i]))
            return false;
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void compare_pair(const struct dv_typed *item, const struct pair *pair,
                         struct dv_arena *arena, struct dv_fields *node)
{
    const struct dv_json *a = pair->a.n > 0 ? pair->a.v[0] : NULL;
    const struct dv_json *b = pair->b.n > 0 ? pair->b.v[0] : NULL;

    if (pair->a.n <= 1 && pair->b.n <= 1) {
        compare_node(item, a, b, arena, node);
    } else if (pair->a.n >= 2 && pair->b.n >= 2) {
        node->in |= are_equal(pair) ? 0 : DV_FIELDS_MODIFIED;
    } else if (pair->a.n >= 2) {
        if (b)
            compare_node(item, NULL, b, arena, node);
        node->in |= DV_FIELDS_REMOVED;
    } else {
        if (a)
            compare_node(item, a, NULL, arena, node);
        node->in |= DV_FIELDS_ADDED;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void compare_items(const struct dv_typed *type, const struct dv_json *a,
                          const struct dv_json *b, struct dv_arena *arena, struct dv_fields *node)
{
    struct dv_typed item = dv_typed_item(type);
    struct pairs pairs = {0};

    dv_map_init(&pairs.by_text);
    pair_items(&pairs, type, a, true, arena);
    pair_items(&pairs, type, b, false, arena);
    for (size_t i = 0; i < pairs.list.n; i++) {
        struct dv_fields child = {.kind = pairs.list.v[i]->kind, .text = pairs.list.v[i]->text};

        compare_pair(&item, pairs.list.v[i], arena, &child);
        keep(node, &child, arena);
    }
    dv_map_fini(&pairs.by_text);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void compare_member(const struct dv_typed *type, dv_str key, const struct dv_json *a,
                           const struct dv_json *b, struct dv_arena *arena, struct dv_fields *node)
{
    struct dv_fields child = {.kind = 'f', .text = key};
    struct dv_typed member;

    if (!dv_typed_member(type, key, &member))
        return; /* the API does not know the field, so nobody can own it */
    compare_node(&member, a, b, arena, &child);
    keep(node, &child, arena);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void compare_members(const struct dv_typed *type, const struct dv_json *a,
                            const struct dv_json *b, struct dv_arena *arena, struct dv_fields *node)
{
    for (const struct dv_json *old = dv_json_first(a); old; old = dv_json_next(old))
        compare_member(type, dv_json_key(old), old, dv_json_get(b, dv_json_key(old)), arena, node);
    for (const struct dv_json *new = dv_json_first(b); new; new = dv_json_next(new))
        if (!dv_json_get(a, dv_json_key(new)))
            compare_member(type, dv_json_key(new), NULL, new, arena, node);
}

/* Of `a` and `b` one may be NULL: absent. A container that is empty on both sides is compared as a
 * value, to keep the difference between empty and absent. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void compare_node(const struct dv_typed *type, const struct dv_json *a,
                         const struct dv_json *b, struct dv_arena *arena, struct dv_fields *node)
{
    enum dv_json_kind kind = dv_typed_is_list(type) ? DV_JSON_ARRAY : DV_JSON_OBJECT;
    const struct dv_json *x = dv_json_is(a, kind) && dv_json_n(a) > 0 ? a : NULL;
    const struct dv_json *y = dv_json_is(b, kind) && dv_json_n(b) > 0 ? b : NULL;

    if (!a)
        node->in |= DV_FIELDS_ADDED;
    else if (!b)
        node->in |= DV_FIELDS_REMOVED;
    if (type->shape == DV_TYPED_LEAF || (!x && !y)) {
        if (a && b && !dv_json_eq(a, b))
            node->in |= DV_FIELDS_MODIFIED;
        return;
    }
    if (dv_typed_is_list(type))
        compare_items(type, x, y, arena, node);
    else
        compare_members(type, x, y, arena, node);
    dv_fields_sort(node);
}

struct dv_fields dv_typed_compare(const struct dv_typed *root, const struct dv_json *a,
                                  const struct dv_json *b, struct dv_arena *arena)
{
    struct dv_fields all = {0};

    compare_node(root, a, b, arena, &all);
    all.in = DV_FIELDS_OUT;
    return all;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void gather_items(const struct dv_typed *type, const struct dv_json *list,
                         struct dv_arena *arena, struct dv_fields *node)
{
    struct dv_typed item = dv_typed_item(type);
    struct pairs pairs = {0};

    dv_map_init(&pairs.by_text);
    pair_items(&pairs, type, list, true, arena);
    for (size_t i = 0; i < pairs.list.n; i++) {
        const struct pair *pair = pairs.list.v[i];
        struct dv_fields child = {.kind = pair->kind, .text = pair->text};

        if (pair->a.n == 1)
            gather_node(&item, pair->a.v[0], arena, &child);
        child.in = DV_FIELDS_MEMBER;
        keep(node, &child, arena);
    }
    dv_map_fini(&pairs.by_text);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void gather_members(const struct dv_typed *type, const struct dv_json *object,
                           struct dv_arena *arena, struct dv_fields *node)
{
    for (const struct dv_json *value = dv_json_first(object); value; value = dv_json_next(value)) {
        struct dv_fields child = {.kind = 'f', .text = dv_json_key(value)};
        struct dv_typed member;

        if (!dv_typed_member(type, child.text, &member))
            continue;
        gather_node(&member, value, arena, &child);
        if (type->shape == DV_TYPED_MAP || dv_json_is(value, DV_JSON_NULL) ||
            (dv_json_is(value, DV_JSON_OBJECT) && dv_json_n(value) == 0))
            child.in = DV_FIELDS_MEMBER;
        keep(node, &child, arena);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void gather_node(const struct dv_typed *type, const struct dv_json *doc,
                        struct dv_arena *arena, struct dv_fields *node)
{
    if (type->shape == DV_TYPED_LEAF) {
        node->in = DV_FIELDS_MEMBER;
        return;
    }
    if (dv_typed_is_list(type) && dv_json_is(doc, DV_JSON_ARRAY))
        gather_items(type, doc, arena, node);
    else if (!dv_typed_is_list(type))
        gather_members(type, doc, arena, node);
    dv_fields_sort(node);
}

struct dv_fields dv_typed_fields(const struct dv_typed *root, const struct dv_json *doc,
                                 struct dv_arena *arena)
{
    struct dv_fields all = {0};

    gather_node(root, doc, arena, &all);
    return all;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static struct dv_fields with_parents(const struct dv_typed *type, const struct dv_fields *fields,
                                     struct dv_arena *arena)
{
    struct dv_fields out = *fields;

    out.v = DV_NEW_ARRAY(arena, struct dv_fields, fields->n);
    for (size_t i = 0; i < fields->n; i++) {
        const struct dv_fields *child = &fields->v[i];
        struct dv_typed inner = {.shape = DV_TYPED_LEAF};
        bool is_named = false;

        if (child->kind != 'f' && dv_typed_is_list(type))
            inner = dv_typed_item(type);
        else if (child->kind == 'f' &&
                 (type->shape == DV_TYPED_STRUCT || type->shape == DV_TYPED_MAP))
            is_named = dv_typed_member(type, child->text, &inner) && type->shape == DV_TYPED_STRUCT;
        out.v[i] = with_parents(&inner, child, arena);
        if (is_named && child->n > 0)
            out.v[i].in = DV_FIELDS_MEMBER;
    }
    return out;
}

struct dv_fields dv_typed_with_parents(const struct dv_typed *root, const struct dv_fields *fields,
                                       struct dv_arena *arena)
{
    return with_parents(root, fields, arena);
}

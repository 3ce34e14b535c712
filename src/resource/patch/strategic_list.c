/* strategic_list.c - lists in strategic merge patches: matched by a key or by value, then put in
 * order: what the patch names in the order that it says, the rest where the server had it. */
#include "resource/patch/strategic.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "resource/field.h"
#include "json/json.h"

#define NOWHERE SIZE_MAX

/* An item of the merged list. */
struct item {
    struct dv_json *node; /* in no container */
    dv_str key;
    size_t server;  /* its place in the server's list */
    size_t ordered; /* and in the list that gives the order */
    size_t same;    /* the next item with the same key: its index + 1 */
    bool is_gone;
};

struct list {
    struct dv_patch_work *work;
    const struct dv_field *field;
    DV_VEC(struct item) items;
    struct dv_map places; /* by key: index in `items` + 1, as a pointer */
};

/* A text that is equal for equal values. Strings stand for themselves; a line break before the
 * others tells 1 from "1". */
static dv_str value_text(const struct dv_json *node, struct dv_arena *arena)
{
    struct dv_err ignored;
    bool value;

    if (dv_json_is(node, DV_JSON_STRING))
        return dv_patch_text(node);
    if (dv_json_is(node, DV_JSON_NUMBER))
        return dv_str_printf(arena, "\n%.*s", DV_FMT(dv_json_number_text(node)));
    if (dv_json_is(node, DV_JSON_BOOL) && dv_json_as_bool(node, &value, &ignored))
        return value ? DV_STR("\ntrue") : DV_STR("\nfalse");
    return DV_STR("\nnull");
}

static bool is_keyed(const struct list *list)
{
    return list->field->patch_key.n > 0;
}

/* Finds the item's key. False, with an error: the item lacks the key of the list, or is a list
 * itself. */
static bool item_key(const struct list *list, const struct dv_json *node, dv_str *key)
{
    const struct dv_json *value = node;

    if (dv_json_is(node, DV_JSON_ARRAY))
        return dv_fail(list->work->err, DV_FAILED_PRECONDITION,
                       "the server rejected our request due to an error in our request");
    if (is_keyed(list) != dv_json_is(node, DV_JSON_OBJECT))
        return dv_fail(list->work->err, DV_INTERNAL, "list element types are not identical");
    if (is_keyed(list)) {
        value = dv_json_get(node, list->field->patch_key);
        if (!value)
            return dv_patch_no_key(node, list->field->patch_key, list->work->err);
    }
    *key = value_text(value, list->work->arena);
    return true;
}

static struct item *find_item(struct list *list, dv_str key)
{
    uintptr_t place = (uintptr_t)dv_map_get(&list->places, key);

    return place ? &list->items.v[place - 1] : NULL;
}

static void add_item(struct list *list, struct dv_json *node, dv_str key, size_t server)
{
    struct item *first;

    *dv_vec_add_in(&list->items, list->work->arena) =
        (struct item){.node = node, .key = key, .server = server, .ordered = NOWHERE};
    first = find_item(list, key);
    if (first) {
        list->items.v[list->items.n - 1].same = first->same;
        first->same = list->items.n;
        return;
    }
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the map keeps pointers, this is an index */
    (void)dv_map_set(&list->places, key, (void *)(uintptr_t)list->items.n);
}

static bool add_server_items(struct list *list, const struct dv_json *doc)
{
    dv_str key = DV_STR_NONE;
    size_t i = 0;

    for (const struct dv_json *node = dv_json_first(doc); node; node = dv_json_next(node), i++) {
        if (!item_key(list, node, &key))
            return false;
        if (is_keyed(list) || !dv_map_get(&list->places, key)) /* a set has no repetitions */
            add_item(list, dv_json_copy(node, list->work->arena), key, i);
    }
    return true;
}

static void delete_items(struct list *list, dv_str key)
{
    struct item *item = find_item(list, key);

    while (item) {
        item->is_gone = true;
        item = item->same ? &list->items.v[item->same - 1] : NULL;
    }
    (void)dv_map_remove(&list->places, key);
}

/* The word of a $patch directive in a list; false when the item is none. */
static bool directive_of(const struct dv_json *node, const struct dv_json **directive, dv_str *word)
{
    *directive = dv_json_get(node, DV_STR("$patch"));
    *word = dv_patch_text(*directive);
    return *directive != NULL;
}

/* Runs the directives first: they delete items, or replace the list as a whole. */
static bool run_directives(struct list *list, const struct dv_json *patch, bool *is_replaced)
{
    const struct dv_json *directive;
    dv_str key = DV_STR_NONE;
    dv_str word;

    *is_replaced = false;
    for (const struct dv_json *node = dv_json_first(patch); node; node = dv_json_next(node)) {
        if (!directive_of(node, &directive, &word))
            continue;
        if (dv_str_eq(word, DV_STR("replace"))) {
            *is_replaced = true;
        } else if (dv_str_eq(word, DV_STR("delete"))) {
            if (!item_key(list, node, &key))
                return false;
            delete_items(list, key);
        } else if (dv_str_eq(word, DV_STR("merge"))) {
            return dv_fail(list->work->err, DV_INTERNAL,
                           "merging lists cannot yet be specified in the patch");
        } else {
            return dv_patch_bad_type(directive, node, list->work->err);
        }
    }
    for (size_t i = 0; *is_replaced && i < list->items.n; i++)
        list->items.v[i].is_gone = true;
    if (*is_replaced)
        dv_map_clear(&list->places);
    return true;
}

/* The next node from *node on that is no directive, and its key. False: there is none, or its key
 * is bad, and then *node is it. */
static bool next_item(struct list *list, const struct dv_json **node, dv_str *key)
{
    const struct dv_json *directive;
    dv_str word;

    while (*node && directive_of(*node, &directive, &word))
        *node = dv_json_next(*node);
    return *node && item_key(list, *node, key);
}

/* `is_replaced`: nothing is merged, not even items of the patch that have the same key. */
static bool add_patch_items(struct list *list, const struct dv_json *patch, bool is_replaced)
{
    const struct dv_json *node = dv_json_first(patch);
    dv_str key = DV_STR_NONE;

    for (; next_item(list, &node, &key); node = dv_json_next(node)) {
        struct item *item = is_replaced ? NULL : find_item(list, key);

        if (!item) {
            add_item(list, dv_patch_new(node, list->work->arena), key, NOWHERE);
        } else if (is_keyed(list)) {
            item->node =
                dv_patch_map(list->work, dv_strategic_type_of(list->field), item->node, node);
            if (!item->node)
                return false;
        }
    }
    return !node; /* otherwise its key is bad */
}

/* Notes the place of each item in the list that gives the order. */
static bool note_order(struct list *list, const struct dv_json *order)
{
    dv_str key = DV_STR_NONE;
    size_t i = 0;

    for (const struct dv_json *node = dv_json_first(order); node; node = dv_json_next(node), i++) {
        const struct dv_json *directive;
        struct item *item;
        dv_str word;

        if (directive_of(node, &directive, &word))
            continue;
        if (!item_key(list, node, &key))
            return false;
        item = find_item(list, key);
        if (item && item->ordered == NOWHERE)
            item->ordered = i;
    }
    return true;
}

/* Checks that the items which the patch sets are in $setElementOrder, in the same order. */
static bool check_order(struct list *list, const struct dv_json *patch, const struct dv_json *order)
{
    const struct dv_json *at = dv_json_first(order);
    dv_str wanted = DV_STR_NONE;
    dv_str found = DV_STR_NONE;

    for (const struct dv_json *node = dv_json_first(patch); at && node; node = dv_json_next(node)) {
        if (dv_json_get(node, DV_STR("$patch")))
            continue;
        if (!item_key(list, node, &wanted))
            return false;
        for (; at; at = dv_json_next(at)) {
            if (!item_key(list, at, &found))
                return false;
            if (dv_str_eq(wanted, found))
                break;
        }
        if (!at)
            return dv_fail(list->work->err, DV_INTERNAL,
                           "The order in patch list of %.*s doesn't match $setElementOrder list",
                           DV_FMT(list->field->name));
        at = dv_json_next(at);
    }
    return true;
}

static int cmp_ordered(const void *a, const void *b)
{
    const struct item *x = *(const struct item *const *)a;
    const struct item *y = *(const struct item *const *)b;

    return (x->ordered > y->ordered) - (x->ordered < y->ordered);
}

/* Arranges the ordered items in their order. One of the others goes before an ordered one when the
 * server's list had it so. */
static struct dv_json *arrange(struct list *list)
{
    struct dv_arena *arena = list->work->arena;
    struct item **ordered = DV_NEW_ARRAY(arena, struct item *, list->items.n);
    struct item **others = DV_NEW_ARRAY(arena, struct item *, list->items.n);
    struct dv_json *out = dv_json_new_array(arena);
    size_t n_ordered = 0;
    size_t n_others = 0;
    size_t at = 0;

    for (size_t i = 0; i < list->items.n; i++) {
        struct item *item = &list->items.v[i];

        if (item->is_gone)
            continue;
        if (item->ordered != NOWHERE)
            ordered[n_ordered++] = item;
        else
            others[n_others++] = item;
    }
    qsort(ordered, n_ordered, sizeof(struct item *), cmp_ordered);
    for (size_t i = 0; i < n_ordered; i++) {
        while (at < n_others && ordered[i]->server != NOWHERE &&
               others[at]->server < ordered[i]->server)
            dv_json_append(out, others[at++]->node);
        dv_json_append(out, ordered[i]->node);
    }
    while (at < n_others)
        dv_json_append(out, others[at++]->node);
    return out;
}

static bool merge_items(struct list *list, const struct dv_json *doc, const struct dv_json *patch,
                        const struct dv_json *order)
{
    bool is_replaced;

    if (order && patch && !check_order(list, patch, order))
        return false;
    if (!add_server_items(list, doc) || !run_directives(list, patch, &is_replaced) ||
        !add_patch_items(list, patch, is_replaced))
        return false;
    return is_replaced || note_order(list, order ? order : patch);
}

struct dv_json *dv_patch_list(struct dv_patch_work *work, const struct dv_field *field,
                              const struct dv_json *doc, const struct dv_json *patch,
                              const struct dv_json *order)
{
    struct list list = {.work = work, .field = field};
    struct dv_json *out = NULL;

    dv_map_init(&list.places);
    if (merge_items(&list, doc, patch, order))
        out = arrange(&list);
    dv_map_fini(&list.places);
    return out;
}

struct dv_json *dv_patch_drop(struct dv_patch_work *work, const struct dv_json *doc,
                              const struct dv_json *gone)
{
    struct dv_json *out = dv_json_new_array(work->arena);
    struct dv_map keys;

    dv_map_init(&keys);
    for (struct dv_json *node = dv_json_first(gone); node; node = dv_json_next(node))
        (void)dv_map_set(&keys, value_text(node, work->arena), node);
    for (const struct dv_json *node = dv_json_first(doc); node; node = dv_json_next(node))
        if (dv_json_kind(node) >= DV_JSON_ARRAY ||
            !dv_map_get(&keys, value_text(node, work->arena)))
            dv_json_append(out, dv_json_copy(node, work->arena));
    dv_map_fini(&keys);
    return out;
}

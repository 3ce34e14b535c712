/* apply_merge.c - a configuration merged into a live document, and fields taken out of one. */
#include "resource/patch/typed.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/map.h"
#include "json/json.h"

static struct dv_json *merge_node(const struct dv_typed *type, const struct dv_json *live,
                                  const struct dv_json *config, struct dv_arena *arena);
static struct dv_json *remove_node(const struct dv_typed *type, const struct dv_json *doc,
                                   const struct dv_fields *gone, struct dv_arena *arena);

/* An item of the live or of the applied list. */
struct item {
    const struct dv_json *node;
    dv_str text; /* of the step to it */
};

struct items {
    struct item *v;
    size_t n;
    struct dv_map by_text;
};

static void index_items(struct items *items, const struct dv_typed *type,
                        const struct dv_json *list, struct dv_arena *arena)
{
    char kind;

    items->v = DV_NEW_ARRAY(arena, struct item, dv_json_n(list));
    items->n = 0;
    dv_map_init(&items->by_text);
    for (const struct dv_json *node = dv_json_first(list); node; node = dv_json_next(node)) {
        struct item *item = &items->v[items->n];

        if (!dv_typed_step(type, node, arena, &kind, &item->text))
            continue;
        item->node = node;
        items->n++;
        if (!dv_map_get(&items->by_text, item->text))
            (void)dv_map_set(&items->by_text, item->text, item);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void append_merged(struct dv_json *out, const struct dv_typed *item,
                          const struct dv_json *live, const struct dv_json *config,
                          struct dv_arena *arena)
{
    dv_json_append(out, merge_node(item, live, config, arena));
}

/* Appends what only the live list has, from *at up to the item `next` (may be NULL) that both have.
 * NOLINTNEXTLINE(misc-no-recursion) */
static void append_theirs(struct dv_json *out, const struct dv_typed *item,
                          const struct items *live, const struct items *config,
                          const struct item *next, size_t *at, struct dv_arena *arena)
{
    for (; *at < live->n; ++*at) {
        const struct item *theirs = &live->v[*at];

        if (!dv_map_get(&config->by_text, theirs->text))
            append_merged(out, item, theirs->node, NULL, arena);
        else if (next && dv_str_eq(next->text, theirs->text))
            return;
    }
}

/* The items of the configuration in its order. What only the live list has stays before the item
 * that it was before, as far as both orders agree.
 * NOLINTNEXTLINE(misc-no-recursion) */
static struct dv_json *interleave(const struct dv_typed *type, const struct items *live,
                                  const struct items *config, struct dv_arena *arena)
{
    struct dv_json *out = dv_json_new_array(arena);
    struct dv_typed item = dv_typed_item(type);
    size_t next = 0;
    size_t at = 0;

    for (size_t i = 0; i < config->n; i++) {
        const struct item *ours = &config->v[i];
        const struct item *theirs = dv_map_get(&live->by_text, ours->text);

        for (next = next < i ? i : next; next < config->n; next++)
            if (dv_map_get(&live->by_text, config->v[next].text))
                break;
        append_theirs(out, &item, live, config, next < config->n ? &config->v[next] : NULL, &at,
                      arena);
        append_merged(out, &item, theirs ? theirs->node : NULL, ours->node, arena);
    }
    append_theirs(out, &item, live, config, NULL, &at, arena);
    return out;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static struct dv_json *merge_items(const struct dv_typed *type, const struct dv_json *live,
                                   const struct dv_json *config, struct dv_arena *arena)
{
    struct items theirs;
    struct items ours;
    struct dv_json *out;

    index_items(&theirs, type, live, arena);
    index_items(&ours, type, config, arena);
    out = interleave(type, &theirs, &ours, arena);
    dv_map_fini(&theirs.by_text);
    dv_map_fini(&ours.by_text);
    return out;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static struct dv_json *merge_members(const struct dv_typed *type, const struct dv_json *live,
                                     const struct dv_json *config, struct dv_arena *arena)
{
    struct dv_json *out = dv_json_new_object(arena);
    struct dv_typed member;

    for (const struct dv_json *old = dv_json_first(live); old; old = dv_json_next(old)) {
        const struct dv_json *new = dv_json_get(config, dv_json_key(old));

        if (!dv_typed_member(type, dv_json_key(old), &member))
            member = (struct dv_typed){.shape = DV_TYPED_LEAF};
        dv_json_set(out, dv_json_key(old), merge_node(&member, old, new, arena), arena);
    }
    for (const struct dv_json *new = dv_json_first(config); new; new = dv_json_next(new))
        if (!dv_json_get(live, dv_json_key(new)))
            dv_json_set(out, dv_json_key(new), dv_json_copy(new, arena), arena);
    return out;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static struct dv_json *merge_node(const struct dv_typed *type, const struct dv_json *live,
                                  const struct dv_json *config, struct dv_arena *arena)
{
    enum dv_json_kind kind = dv_typed_is_list(type) ? DV_JSON_ARRAY : DV_JSON_OBJECT;

    if (!config)
        return dv_json_copy(live, arena);
    if (!live || type->shape == DV_TYPED_LEAF || !dv_json_is(live, kind) || dv_json_n(live) == 0)
        return dv_json_copy(config, arena);
    if (!dv_json_is(config, kind))
        return dv_json_copy(live, arena); /* null for a list or an object changes nothing */
    if (dv_typed_is_list(type))
        return merge_items(type, live, config, arena);
    return merge_members(type, live, config, arena);
}

struct dv_json *dv_typed_merge(const struct dv_typed *root, const struct dv_json *live,
                               const struct dv_json *config, struct dv_arena *arena)
{
    return merge_node(root, live, config, arena);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static struct dv_json *remove_items(const struct dv_typed *type, const struct dv_json *list,
                                    const struct dv_fields *gone, struct dv_arena *arena)
{
    struct dv_json *out = dv_json_new_array(arena);
    struct dv_typed inner = dv_typed_item(type);

    for (const struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item)) {
        const struct dv_fields *under = NULL;
        struct dv_json *left;
        dv_str text;
        char kind;

        if (dv_typed_step(type, item, arena, &kind, &text))
            under = dv_fields_find(gone, kind, text);
        if (under && under->in != DV_FIELDS_OUT)
            continue;
        left = under ? remove_node(&inner, item, under, arena) : dv_json_copy(item, arena);
        if (left)
            dv_json_append(out, left);
    }
    return dv_json_n(out) > 0 ? out : NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static struct dv_json *remove_members(const struct dv_typed *type, const struct dv_json *object,
                                      const struct dv_fields *gone, struct dv_arena *arena)
{
    struct dv_json *out = dv_json_new_object(arena);
    struct dv_typed member;

    for (const struct dv_json *value = dv_json_first(object); value; value = dv_json_next(value)) {
        dv_str key = dv_json_key(value);
        const struct dv_fields *under = dv_fields_find(gone, 'f', key);
        struct dv_json *left;

        if (under && under->in != DV_FIELDS_OUT)
            continue;
        if (under && dv_typed_member(type, key, &member))
            left = remove_node(&member, value, under, arena);
        else
            left = dv_json_copy(value, arena);
        dv_json_set(out, key, left ? left : dv_json_new_null(arena), arena);
    }
    return dv_json_n(out) > 0 ? out : NULL;
}

/* NULL when nothing is left.
 * NOLINTNEXTLINE(misc-no-recursion) */
static struct dv_json *remove_node(const struct dv_typed *type, const struct dv_json *doc,
                                   const struct dv_fields *gone, struct dv_arena *arena)
{
    if (dv_typed_is_list(type) && dv_json_is(doc, DV_JSON_ARRAY))
        return remove_items(type, doc, gone, arena);
    if (type->shape != DV_TYPED_LEAF && !dv_typed_is_list(type) && dv_json_is(doc, DV_JSON_OBJECT))
        return remove_members(type, doc, gone, arena);
    return dv_json_copy(doc, arena);
}

struct dv_json *dv_typed_remove(const struct dv_typed *root, const struct dv_json *doc,
                                const struct dv_fields *gone, struct dv_arena *arena)
{
    struct dv_json *out = remove_node(root, doc, gone, arena);

    return out ? out : dv_json_new_object(arena);
}

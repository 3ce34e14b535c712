/* cel_tree.c - values made by other modules, an element after the other. */
#include <assert.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "cel/cel_policy.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_value.h"

/* A list or a map that has not ended. */
struct level {
    struct dv_cel_map *map;      /* NULL: a list */
    struct dv_cel_val *elements; /* of a list */
    size_t n;
    size_t n_done;
    struct dv_cel_val key;
    struct dv_cel_val self;
};

struct dv_cel_tree {
    struct dv_arena *arena;
    DV_VEC(struct level) open;
    struct dv_cel_val value;
};

struct dv_cel_tree *dv_cel_tree_new(struct dv_arena *arena)
{
    struct dv_cel_tree *tree = DV_NEW(arena, struct dv_cel_tree);

    tree->arena = arena;
    tree->value = dv_cel_null();
    return tree;
}

static void add(struct dv_cel_tree *tree, struct dv_cel_val value)
{
    struct level *level = tree->open.n > 0 ? &tree->open.v[tree->open.n - 1] : NULL;

    if (!level) {
        tree->value = value;
        return;
    }
    assert(level->n_done < level->n);
    if (level->map)
        dv_cel_map_set(level->map, &level->key, &value, tree->arena);
    else
        level->elements[level->n_done] = value;
    level->n_done++;
}

void dv_cel_tree_null(struct dv_cel_tree *tree)
{
    add(tree, dv_cel_null());
}

void dv_cel_tree_bool(struct dv_cel_tree *tree, bool value)
{
    add(tree, dv_cel_bool(value));
}

void dv_cel_tree_int(struct dv_cel_tree *tree, int64_t value)
{
    add(tree, dv_cel_int(value));
}

void dv_cel_tree_double(struct dv_cel_tree *tree, double value)
{
    add(tree, dv_cel_double(value));
}

void dv_cel_tree_string(struct dv_cel_tree *tree, dv_str value)
{
    add(tree, dv_cel_string(value));
}

void dv_cel_tree_begin_list(struct dv_cel_tree *tree, size_t n)
{
    struct level level = {.n = n};

    level.self = dv_cel_list_new(n, tree->arena, &level.elements);
    *dv_vec_add_in(&tree->open, tree->arena) = level;
}

void dv_cel_tree_begin_map(struct dv_cel_tree *tree, size_t n)
{
    struct level level = {.map = dv_cel_map_new((uint32_t)n, tree->arena), .n = n};

    level.self = (struct dv_cel_val){.kind = DV_CEL_MAP, .map = level.map};
    *dv_vec_add_in(&tree->open, tree->arena) = level;
}

void dv_cel_tree_key(struct dv_cel_tree *tree, dv_str key)
{
    tree->open.v[tree->open.n - 1].key = dv_cel_string(key);
}

void dv_cel_tree_end(struct dv_cel_tree *tree)
{
    struct level level;

    assert(tree->open.n > 0);
    level = tree->open.v[tree->open.n - 1];
    assert(level.n_done == level.n);
    tree->open.n--;
    add(tree, level.self);
}

const struct dv_cel_val *dv_cel_tree_value(const struct dv_cel_tree *tree)
{
    assert(tree->open.n == 0);
    return &tree->value;
}

#include "json/tree.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"

/* Up to here comparing keys one by one is as fast as hashing one; most objects have fewer. */
#define LINEAR_MAX 16u
/* Lengths are an int in libyaml, and what YAML escapes stand for can be half longer. */
#define BYTES_MAX (INT32_MAX / 2)

/* Open addressing, at most half full. */
struct dv_json_index {
    size_t n_slots; /* a power of two */
    struct dv_json *slots[];
};

static struct dv_json_container *container_of(struct dv_json *node)
{
    assert(dv_json_is_container(node));
    return DV_CONTAINER(node, struct dv_json_container, node);
}

static const struct dv_json_container *const_container_of(const struct dv_json *node)
{
    return (const struct dv_json_container *)(const void *)node;
}

static bool has_key(const struct dv_json *node, dv_str key)
{
    return node->key_n == key.n && (key.n == 0 || memcmp(node->key, key.p, key.n) == 0);
}

static bool is_attached(const struct dv_json *node)
{
    return node->next != NULL;
}

/* -- The index of a large object ------------------------------------------------------------ */

/* The slot of that key, or the free one where it would go. */
static struct dv_json **find_slot(struct dv_json_index *index, dv_str key)
{
    size_t at = (size_t)dv_hash(key) & (index->n_slots - 1);

    while (index->slots[at] && !has_key(index->slots[at], key))
        at = (at + 1) & (index->n_slots - 1);
    return &index->slots[at];
}

/* Empties a slot; members behind it that could not be found any more move up. */
static void empty_slot(struct dv_json_index *index, struct dv_json **slot)
{
    size_t mask = index->n_slots - 1;
    size_t hole = (size_t)(slot - index->slots);

    for (size_t at = (hole + 1) & mask; index->slots[at]; at = (at + 1) & mask) {
        size_t home = (size_t)dv_hash(dv_json_key(index->slots[at])) & mask;

        if (((at - home) & mask) < ((at - hole) & mask))
            continue; /* it is found without passing the hole */
        index->slots[hole] = index->slots[at];
        hole = at;
    }
    index->slots[hole] = NULL;
}

static struct dv_json_index *new_index(size_t n_members, struct dv_arena *arena)
{
    struct dv_json_index *index;
    size_t n_slots = 4 * LINEAR_MAX;

    while (n_slots < 2 * n_members)
        n_slots *= 2;
    index = dv_arena_alloc(arena, sizeof(*index) + n_slots * sizeof(index->slots[0]),
                           _Alignof(struct dv_json_index));
    index->n_slots = n_slots;
    return index;
}

static void fill_index(struct dv_json *object, struct dv_json_index *index)
{
    for (struct dv_json *child = object->first; child; child = dv_json_next(child))
        *find_slot(index, dv_json_key(child)) = child;
}

void dv_json_index_members(struct dv_json *object, struct dv_arena *arena)
{
    struct dv_json_container *container = container_of(object);

    if (object->n <= LINEAR_MAX)
        return;
    container->index = new_index(object->n, arena);
    fill_index(object, container->index);
}

/* Updates the index after a member was added. It doubles when it grows, so that adding
 * stays cheap. */
static void update_index(struct dv_json *object, struct dv_json *added, struct dv_arena *arena)
{
    struct dv_json_container *container = container_of(object);

    if (container->index && object->n <= container->index->n_slots / 2) {
        *find_slot(container->index, dv_json_key(added)) = added;
    } else if (object->n > LINEAR_MAX) {
        container->index = new_index(2 * (size_t)object->n, arena);
        fill_index(object, container->index);
    }
}

/* -- Links ---------------------------------------------------------------------------------- */

struct dv_json *dv_json_new(enum dv_json_kind kind, struct dv_arena *arena)
{
    struct dv_json *node;

    if (kind >= DV_JSON_ARRAY)
        node = &DV_NEW(arena, struct dv_json_container)->node;
    else
        node = DV_NEW(arena, struct dv_json);
    node->kind = kind & 7u;
    return node;
}

void dv_json_link(struct dv_json *container, struct dv_json *child)
{
    struct dv_json_container *into = container_of(container);

    assert(!is_attached(child));
    if (into->last) {
        into->last->next = child;
        into->last->is_last = 0;
    } else {
        container->first = child;
    }
    child->next = container;
    child->is_last = 1;
    into->last = child;
    container->n++;
}

/* The sibling before `node`, or NULL when it is the first. */
static struct dv_json *find_previous(const struct dv_json *parent, const struct dv_json *node)
{
    struct dv_json *previous = NULL;

    for (struct dv_json *child = parent->first; child != node; child = child->next)
        previous = child;
    return previous;
}

/* Makes `next`, which may be NULL, follow `previous`, which may be NULL. */
static void join(struct dv_json *parent, struct dv_json *previous, struct dv_json *next)
{
    if (!next)
        container_of(parent)->last = previous;
    if (!previous) {
        parent->first = next;
        return;
    }
    previous->next = next ? next : parent;
    previous->is_last = next ? 0 : 1;
}

static void detach(struct dv_json *node)
{
    node->next = NULL;
    node->is_last = 0;
    node->key = NULL;
    node->key_n = 0;
}

struct dv_json *dv_json_shift(struct dv_json *container)
{
    struct dv_json *child = container->first;

    if (!child)
        return NULL;
    join(container, NULL, dv_json_next(child));
    container->n--;
    child->next = NULL;
    child->is_last = 0;
    return child;
}

/* -- Objects as read ------------------------------------------------------------------------ */

/* Both have the same key; a merge is there to be overridden. */
static bool drop(struct dv_json *earlier, struct dv_json *later, bool refuse, struct dv_err *err)
{
    bool is_mistake = !earlier->is_merged && !later->is_merged;

    if (is_mistake && refuse)
        return dv_json_fail_at(later->line, later->column, DV_INVALID_ARGUMENT, err,
                               "duplicate key \"%.*s\", first given on line %u",
                               DV_FMT(dv_json_key(later)), earlier->line);
    earlier->is_dropped = 1;
    later->is_repeated = is_mistake || earlier->is_repeated;
    return true;
}

static bool find_duplicates(struct dv_json *object, bool refuse, struct dv_err *err)
{
    struct dv_json_index *index = container_of(object)->index;

    for (struct dv_json *child = object->first; child; child = dv_json_next(child)) {
        struct dv_json *earlier;

        if (index) {
            struct dv_json **slot = find_slot(index, dv_json_key(child));

            earlier = *slot;
            *slot = child;
        } else {
            earlier = object->first;
            while (earlier->is_dropped || !has_key(earlier, dv_json_key(child)))
                earlier = earlier->next; /* ends at the child itself */
        }
        if (earlier && earlier != child && !drop(earlier, child, refuse, err))
            return false;
    }
    return true;
}

bool dv_json_seal(struct dv_json *object, bool refuse_duplicates, struct dv_arena *arena,
                  struct dv_err *err)
{
    struct dv_json *previous = NULL;

    if (object->n > LINEAR_MAX)
        container_of(object)->index = new_index(object->n, arena);
    if (!find_duplicates(object, refuse_duplicates, err))
        return false;
    for (struct dv_json *child = object->first, *next; child; child = next) {
        next = dv_json_next(child);
        if (child->is_dropped) { /* never the last one */
            join(object, previous, next);
            object->n--;
        } else {
            previous = child;
        }
    }
    return true;
}

/* -- Looking -------------------------------------------------------------------------------- */

enum dv_json_kind dv_json_kind(const struct dv_json *node)
{
    return (enum dv_json_kind)node->kind;
}

bool dv_json_is(const struct dv_json *node, enum dv_json_kind kind)
{
    return node && node->kind == (unsigned)kind;
}

uint32_t dv_json_line(const struct dv_json *node)
{
    return node->line;
}

bool dv_json_is_repeated(const struct dv_json *node)
{
    return node->is_repeated;
}

size_t dv_json_n(const struct dv_json *node)
{
    return node && dv_json_is_container(node) ? node->n : 0;
}

dv_str dv_json_key(const struct dv_json *node)
{
    return (dv_str){node->key, node->key_n};
}

struct dv_json *dv_json_first(const struct dv_json *node)
{
    return node && dv_json_is_container(node) ? node->first : NULL;
}

struct dv_json *dv_json_next(const struct dv_json *node)
{
    return node->is_last ? NULL : node->next;
}

struct dv_json *dv_json_parent(const struct dv_json *node)
{
    while (node->next && !node->is_last)
        node = node->next;
    return node->next;
}

struct dv_json *dv_json_get(const struct dv_json *object, dv_str key)
{
    struct dv_json *child;

    if (!dv_json_is(object, DV_JSON_OBJECT))
        return NULL;
    if (const_container_of(object)->index)
        return *find_slot(const_container_of(object)->index, key);
    for (child = object->first; child; child = dv_json_next(child)) {
        if (has_key(child, key))
            break;
    }
    return child;
}

struct dv_json *dv_json_at(const struct dv_json *array, size_t i)
{
    struct dv_json *child = dv_json_is(array, DV_JSON_ARRAY) ? array->first : NULL;

    for (; child && i > 0; i--)
        child = dv_json_next(child);
    return child;
}

/* -- Editing -------------------------------------------------------------------------------- */

dv_str dv_json_source(const struct dv_json *node)
{
    const struct dv_json_container *container = const_container_of(node);

    if (!dv_json_is_container(node) || !container->text || container->text->is_edited)
        return DV_STR_NONE;
    return (dv_str){container->text->p + container->start, container->end - container->start};
}

static void mark_edited(struct dv_json *container)
{
    struct dv_json_text *text = container_of(container)->text;

    if (text)
        text->is_edited = true;
}

void dv_json_append(struct dv_json *array, struct dv_json *value)
{
    assert(dv_json_is(array, DV_JSON_ARRAY));
    mark_edited(array);
    dv_json_link(array, value);
}

struct dv_json *dv_json_new_strs(const dv_str *values, size_t n, struct dv_arena *arena)
{
    struct dv_json *array = dv_json_new_array(arena);

    for (size_t i = 0; i < n; i++)
        dv_json_append(array, dv_json_new_str(values[i], arena));
    return array;
}

struct dv_json *dv_json_new_strs_or_null(const dv_str *values, size_t n, struct dv_arena *arena)
{
    return values ? dv_json_new_strs(values, n, arena) : dv_json_new_null(arena);
}

void dv_json_insert(struct dv_json *array, size_t i, struct dv_json *value)
{
    struct dv_json *next = dv_json_at(array, i);

    assert(i <= dv_json_n(array));
    if (!next) {
        dv_json_append(array, value);
        return;
    }
    assert(!is_attached(value));
    mark_edited(array);
    join(array, find_previous(array, next), value);
    join(array, value, next);
    array->n++;
}

void dv_json_replace(struct dv_json *old, struct dv_json *value)
{
    struct dv_json *parent = dv_json_parent(old);
    struct dv_json *next = dv_json_next(old);

    assert(parent && !is_attached(value));
    mark_edited(parent);
    if (container_of(parent)->index)
        *find_slot(container_of(parent)->index, dv_json_key(old)) = value;
    value->key = old->key;
    value->key_n = old->key_n;
    join(parent, find_previous(parent, old), value);
    join(parent, value, next);
    detach(old);
}

void dv_json_remove(struct dv_json *node)
{
    struct dv_json *parent = dv_json_parent(node);
    struct dv_json_index *index;

    assert(parent);
    mark_edited(parent);
    index = container_of(parent)->index;
    join(parent, find_previous(parent, node), dv_json_next(node));
    parent->n--;
    if (index)
        empty_slot(index, find_slot(index, dv_json_key(node)));
    detach(node);
}

void dv_json_add(struct dv_json *object, dv_str key, struct dv_json *value, struct dv_arena *arena)
{
    assert(dv_json_is(object, DV_JSON_OBJECT));
    assert(key.n <= INT32_MAX);
    mark_edited(object);
    value->key = key.p;
    value->key_n = (uint32_t)key.n;
    dv_json_link(object, value);
    update_index(object, value, arena);
}

void dv_json_set(struct dv_json *object, dv_str key, struct dv_json *value, struct dv_arena *arena)
{
    struct dv_json *old;

    assert(dv_json_is(object, DV_JSON_OBJECT));
    key = dv_json_to_utf8(key, arena);
    old = dv_json_get(object, key);
    if (old) {
        dv_json_replace(old, value);
        return;
    }
    dv_json_add(object, dv_str_copy(key, arena), value, arena);
}

/* ---- limits of the readers ---- */

struct dv_json_opts dv_json_fill_opts(const struct dv_json_opts *opts, uint32_t depth_max)
{
    struct dv_json_opts filled = {0};

    if (opts)
        filled = *opts;
    if (filled.bytes_max == 0)
        filled.bytes_max = DV_JSON_BYTES_MAX;
    filled.bytes_max = dv_size_min(filled.bytes_max, BYTES_MAX);
    if (filled.nodes_max == 0)
        filled.nodes_max = DV_JSON_NODES_MAX;
    if (filled.depth_max == 0)
        filled.depth_max = depth_max;
    return filled;
}

bool dv_json_check_size(dv_str text, const struct dv_json_opts *opts, struct dv_err *err)
{
    if (text.n <= opts->bytes_max)
        return true;
    return dv_fail(err, DV_RESOURCE_EXHAUSTED, "a text of %zu bytes: at most %zu are allowed",
                   text.n, opts->bytes_max);
}

/* compare_values.c - how two structs differ, as the documents would that they print: the same rules
 * as in compare.c, without the documents. Each write of a client asks this. */
#include "resource/patch/typed.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/codec/json_field.h"
#include "resource/codec/layout.h"
#include "resource/field.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (64u * 1024u * 1024u)

/* Which of the two have members that JSON shows. */
struct found {
    bool a;
    bool b;
};

static struct found compare_members(const struct dv_message *message, const char *a, const char *b,
                                    struct dv_arena *arena, struct dv_fields *node);

static void keep(struct dv_fields *parent, const struct dv_fields *child, struct dv_arena *arena)
{
    if (!dv_fields_is_empty(child))
        *dv_vec_add_in(parent, arena) = *child;
}

/* ---- values that are owned as a whole ---- */

/* Whether two texts are the same JSON. Where they differ a raw text may still mean the same. */
static bool is_same_json(dv_str a, dv_str b)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    const struct dv_json *x;
    const struct dv_json *y;
    struct dv_err err;

    if (dv_str_eq(a, b))
        return true;
    arena = dv_arena_new();
    x = dv_json_parse(a, NULL, arena, &err);
    y = dv_json_parse(b, NULL, arena, &err);
    return x && y && dv_json_eq(x, y);
}

static bool is_same_field(const struct dv_field *field, const char *a, const char *b)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf x;
    DV_CLEANUP(dv_buf_fini) struct dv_buf y;

    dv_buf_init(&x, TEXT_BYTES_MAX);
    dv_buf_init(&y, TEXT_BYTES_MAX);
    dv_field_put_json(&x, field, a);
    dv_field_put_json(&y, field, b);
    return is_same_json(dv_buf_str(&x), dv_buf_str(&y));
}

static bool is_same_value(const struct dv_field *field, const void *a, const void *b)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf x;
    DV_CLEANUP(dv_buf_fini) struct dv_buf y;

    dv_buf_init(&x, TEXT_BYTES_MAX);
    dv_buf_init(&y, TEXT_BYTES_MAX);
    dv_value_put_json(&x, field, a);
    dv_value_put_json(&y, field, b);
    return is_same_json(dv_buf_str(&x), dv_buf_str(&y));
}

/* ---- maps ---- */

/* Compares one value of a map or list. Of `a` and `b` one may be NULL: absent. */
static void compare_value(const struct dv_field *field, const struct dv_typed *type, const char *a,
                          const char *b, struct dv_arena *arena, struct dv_fields *node)
{
    if (!a || !b)
        node->in |= !a ? DV_FIELDS_ADDED : DV_FIELDS_REMOVED;
    if (type->shape == DV_TYPED_STRUCT) {
        (void)compare_members(type->message, a, b, arena, node); /* two that are empty are equal */
        dv_fields_sort(node);
    } else if (a && b && !is_same_value(field, a, b)) {
        node->in |= DV_FIELDS_MODIFIED;
    }
}

static const char *entry_at(const struct dv_items *items, size_t i)
{
    return i < items->n ? items->first + i * items->size : NULL;
}

static dv_str key_of(const char *entry)
{
    return *(const dv_str *)(const void *)entry;
}

static void compare_entries(const struct dv_field *field, const struct dv_items *x,
                            const struct dv_items *y, struct dv_arena *arena,
                            struct dv_fields *node)
{
    const struct dv_typed map = {.shape = DV_TYPED_MAP, .field = field};
    struct dv_typed type = dv_typed_item(&map);
    size_t i = 0;
    size_t j = 0;

    while (i < x->n || j < y->n) {
        const char *a = entry_at(x, i);
        const char *b = entry_at(y, j);
        int order = !a ? 1 : !b ? -1 : dv_str_cmp(key_of(a), key_of(b));
        struct dv_fields child = {.kind = 'f'};

        if (order > 0)
            a = NULL;
        if (order < 0)
            b = NULL;
        i += a != NULL;
        j += b != NULL;
        child.text = key_of(a ? a : b);
        compare_value(field, &type, a ? a + x->value_offset : NULL, b ? b + y->value_offset : NULL,
                      arena, &child);
        keep(node, &child, arena);
    }
}

/* ---- lists whose items are told apart ---- */

/* An item with the step that names it. */
struct named {
    dv_str text;
    const char *value;
};

struct names {
    struct named *v;
    size_t n;
};

static int cmp_names(const void *a, const void *b)
{
    const struct named *x = a;
    const struct named *y = b;
    int order = dv_str_cmp(x->text, y->text);

    return order != 0 ? order : (x->value > y->value) - (x->value < y->value);
}

static struct names name_items(const struct dv_typed *type, const struct dv_items *items,
                               struct dv_arena *arena, char *kind)
{
    struct names names = {.v = DV_NEW_ARRAY(arena, struct named, items->n)};

    for (size_t i = 0; i < items->n; i++) {
        struct named *named = &names.v[names.n];

        named->value = items->first + i * items->size;
        names.n += dv_typed_step_of_value(type, named->value, arena, kind, &named->text);
    }
    if (names.n > 1)
        qsort(names.v, names.n, sizeof(names.v[0]), cmp_names);
    return names;
}

/* How many from `i` on have that step. */
static size_t count(const struct names *names, size_t i, dv_str text)
{
    size_t end = i;

    while (end < names->n && dv_str_eq(names->v[end].text, text))
        end++;
    return end - i;
}

static bool are_equal(const struct dv_field *field, const struct named *a, const struct named *b,
                      size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_same_value(field, a[i].value, b[i].value))
            return false;
    return true;
}

/* Compares the items that one step names. More than one on a side is against the rules, but stored
 * objects have it: such items count as one thing. */
static void compare_named(const struct dv_field *field, const struct dv_typed *type,
                          const struct names *x, const struct names *y, struct dv_arena *arena,
                          struct dv_fields *node)
{
    const char *a = x->n > 0 ? x->v[0].value : NULL;
    const char *b = y->n > 0 ? y->v[0].value : NULL;

    if (x->n <= 1 && y->n <= 1) {
        compare_value(field, type, a, b, arena, node);
    } else if (x->n >= 2 && y->n >= 2) {
        if (x->n != y->n || !are_equal(field, x->v, y->v, x->n))
            node->in |= DV_FIELDS_MODIFIED;
    } else if (x->n >= 2) {
        if (b)
            compare_value(field, type, NULL, b, arena, node);
        node->in |= DV_FIELDS_REMOVED;
    } else {
        if (a)
            compare_value(field, type, a, NULL, arena, node);
        node->in |= DV_FIELDS_ADDED;
    }
}

static void compare_items(const struct dv_typed *type, const struct dv_items *x,
                          const struct dv_items *y, struct dv_arena *arena, struct dv_fields *node)
{
    struct dv_typed item = dv_typed_item(type);
    char kind = 'k';
    struct names a = name_items(type, x, arena, &kind);
    struct names b = name_items(type, y, arena, &kind);
    size_t i = 0;
    size_t j = 0;

    while (i < a.n || j < b.n) {
        bool is_a =
            j == b.n || (i < a.n && dv_str_cmp(a.v[i].text, b.v[j].text) <= 0); /* comes first */
        struct dv_fields child = {.kind = kind, .text = is_a ? a.v[i].text : b.v[j].text};
        struct names now_a = {a.v + i, count(&a, i, child.text)};
        struct names now_b = {b.v + j, count(&b, j, child.text)};

        compare_named(type->field, &item, &now_a, &now_b, arena, &child);
        keep(node, &child, arena);
        i += now_a.n;
        j += now_b.n;
    }
}

/* ---- fields ---- */

static enum dv_presence presence_of(const struct dv_field *field, const char *value)
{
    return value ? dv_field_presence(field, dv_field_home(field, value)) : DV_ABSENT;
}

/* The struct that is the field's value; NULL when there is none. */
static const char *struct_of(const struct dv_field *field, const char *value,
                             enum dv_presence presence)
{
    return presence == DV_PRESENT ? dv_field_value(field, dv_field_home(field, value)) : NULL;
}

static struct dv_items items_of(const struct dv_field *field, const char *value,
                                enum dv_presence presence)
{
    return presence == DV_PRESENT ? dv_field_items(field, dv_field_home(field, value))
                                  : (struct dv_items){0};
}

/* Compares what is under two containers. Returns which of them have something. */
static struct found compare_inside(const struct dv_typed *type, const struct dv_field *field,
                                   const char *a, enum dv_presence in_a, const char *b,
                                   enum dv_presence in_b, struct dv_arena *arena,
                                   struct dv_fields *node)
{
    struct dv_items x;
    struct dv_items y;

    if (type->shape == DV_TYPED_STRUCT)
        return compare_members(type->message, struct_of(field, a, in_a), struct_of(field, b, in_b),
                               arena, node);
    x = items_of(field, a, in_a);
    y = items_of(field, b, in_b);
    if (type->shape == DV_TYPED_MAP)
        compare_entries(field, &x, &y, arena, node);
    else
        compare_items(type, &x, &y, arena, node);
    return (struct found){x.n > 0, y.n > 0};
}

static void compare_field(const struct dv_field *field, const char *a, const char *b,
                          struct dv_arena *arena, struct dv_fields *node, struct found *found)
{
    enum dv_presence in_a = presence_of(field, a);
    enum dv_presence in_b = presence_of(field, b);
    struct dv_fields child = {.kind = 'f', .text = field->name};
    struct dv_typed type = dv_typed_field(field);
    bool has_both = in_a != DV_ABSENT && in_b != DV_ABSENT;
    struct found inside = {0};

    found->a |= in_a != DV_ABSENT;
    found->b |= in_b != DV_ABSENT;
    if (in_a == DV_ABSENT && in_b == DV_ABSENT)
        return;
    if (!has_both)
        child.in = in_a == DV_ABSENT ? DV_FIELDS_ADDED : DV_FIELDS_REMOVED;
    if (type.shape == DV_TYPED_LEAF) {
        if (has_both && (in_a != in_b ||
                         !is_same_field(field, dv_field_home(field, a), dv_field_home(field, b))))
            child.in = DV_FIELDS_MODIFIED;
    } else {
        inside = compare_inside(&type, field, a, in_a, b, in_b, arena, &child);
        /* An empty one is not the same as null. */
        if (has_both && !inside.a && !inside.b && in_a != in_b)
            child.in = DV_FIELDS_MODIFIED;
        dv_fields_sort(&child);
    }
    keep(node, &child, arena);
}

/* Compares a field that is the same struct once more, one object deeper in JSON, and always
 * there. */
static void compare_view(const struct dv_field *field, const char *a, const char *b,
                         struct dv_arena *arena, struct dv_fields *node, struct found *found)
{
    struct dv_fields child = {.kind = 'f', .text = field->name};

    found->a |= a != NULL;
    found->b |= b != NULL;
    if (!a || !b)
        child.in = !a ? DV_FIELDS_ADDED : DV_FIELDS_REMOVED;
    (void)compare_members(field->message, a, b, arena, &child); /* two that are empty are equal */
    dv_fields_sort(&child);
    keep(node, &child, arena);
}

/* Whether a closer look would find the field in neither: so it is with most. */
static bool is_in_neither(const struct dv_field *field, const char *a, const char *b)
{
    return !field->into && !(field->flags & DV_FIELD_ALWAYS) && field->type != DV_TYPE_RAW &&
           (!a || dv_is_nothing(field, a)) && (!b || dv_is_nothing(field, b));
}

/* Of `a` and `b` one may be NULL: it has no members.
 * NOLINTNEXTLINE(misc-no-recursion): as deep as the tables */
static struct found compare_members(const struct dv_message *message, const char *a, const char *b,
                                    struct dv_arena *arena, struct dv_fields *node)
{
    struct found found = {a && dv_unknown_of(message, a), b && dv_unknown_of(message, b)};

    /* In the order of names, in which a set is sorted. */
    for (size_t i = 0; i < message->n_names; i++) {
        const struct dv_field *field = &message->fields[message->names[i]];

        if (field->shape == DV_SHAPE_VIEW)
            compare_view(field, a, b, arena, node, &found);
        else if (!is_in_neither(field, a, b))
            compare_field(field, a, b, arena, node, &found);
    }
    for (size_t i = 0; i < message->n_fields && message->n_names < message->n_fields; i++) {
        const struct dv_field *field = &message->fields[i];
        struct found inside;

        if (field->shape != DV_SHAPE_INLINE)
            continue;
        inside = compare_members(field->message, a ? a + field->offset : NULL,
                                 b ? b + field->offset : NULL, arena, node);
        found.a |= inside.a;
        found.b |= inside.b;
    }
    return found;
}

struct dv_fields dv_typed_compare_values(const struct dv_message *message, const void *a,
                                         const void *b, struct dv_arena *arena)
{
    struct dv_fields root = {0};

    (void)compare_members(message, a, b, arena, &root);
    dv_fields_sort(&root);
    return root;
}

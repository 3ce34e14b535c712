/* field_set.c - sets of fields: sorted trees, combined by walking two of them side by side. No tree
 * is deeper than DEPTH_MAX of fields_print.c, so these functions may recurse. */
#include "resource/patch/field_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

struct dv_fields *dv_fields_add(struct dv_fields *node, char kind, dv_str text,
                                struct dv_arena *arena)
{
    struct dv_fields *child = dv_vec_add_in(node, arena);

    child->kind = kind;
    child->text = text;
    return child;
}

int dv_fields_cmp(const struct dv_fields *a, const struct dv_fields *b)
{
    static const char order[] = "fkvi";
    const char *x;
    const char *y;

    if (a->kind == b->kind)
        return dv_str_cmp(a->text, b->text);
    x = strchr(order, a->kind);
    y = strchr(order, b->kind);
    return (x > y) - (x < y);
}

static int cmp_children(const void *a, const void *b)
{
    return dv_fields_cmp(a, b);
}

void dv_fields_sort(struct dv_fields *node)
{
    for (size_t i = 1; i < node->n; i++) {
        if (dv_fields_cmp(&node->v[i - 1], &node->v[i]) > 0) {
            qsort(node->v, node->n, sizeof(node->v[0]), cmp_children);
            return;
        }
    }
}

const struct dv_fields *dv_fields_find(const struct dv_fields *node, char kind, dv_str text)
{
    struct dv_fields key = {.kind = kind, .text = text};

    if (!node || node->n == 0)
        return NULL;
    return bsearch(&key, node->v, node->n, sizeof(node->v[0]), cmp_children);
}

bool dv_fields_is_empty(const struct dv_fields *node)
{
    return node->in == DV_FIELDS_OUT && node->n == 0;
}

/* How two sets are combined. */
struct rule {
    bool keeps_first;  /* what only the first has */
    bool keeps_second; /* and only the second */
    bool cuts;         /* a member of the second takes all under it away */
    uint8_t (*in)(uint8_t a, uint8_t b);
    uint8_t mask; /* of the second's members */
};

static void add_as_is(struct dv_fields *out, const struct dv_fields *child, struct dv_arena *arena)
{
    *dv_vec_add_in(out, arena) = *child;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the trees, which are bounded */
static struct dv_fields combine(const struct dv_fields *a, const struct dv_fields *b,
                                const struct rule *rule, struct dv_arena *arena)
{
    struct dv_fields out = {.kind = a->kind, .text = a->text};
    size_t i = 0;
    size_t j = 0;

    if (rule->cuts && (b->in & rule->mask))
        return out;
    out.in = rule->in(a->in, b->in & rule->mask);
    while (i < a->n || j < b->n) {
        int order = i == a->n ? 1 : j == b->n ? -1 : dv_fields_cmp(&a->v[i], &b->v[j]);
        struct dv_fields child;

        if (order < 0) {
            if (rule->keeps_first)
                add_as_is(&out, &a->v[i], arena);
            i++;
        } else if (order > 0) {
            if (rule->keeps_second)
                add_as_is(&out, &b->v[j], arena);
            j++;
        } else {
            child = combine(&a->v[i++], &b->v[j++], rule, arena);
            if (!dv_fields_is_empty(&child))
                add_as_is(&out, &child, arena);
        }
    }
    return out;
}

static uint8_t in_either(uint8_t a, uint8_t b)
{
    return a | b;
}

static uint8_t in_both(uint8_t a, uint8_t b)
{
    return b ? a : DV_FIELDS_OUT;
}

static uint8_t in_first_only(uint8_t a, uint8_t b)
{
    return b ? DV_FIELDS_OUT : a;
}

struct dv_fields dv_fields_union(const struct dv_fields *a, const struct dv_fields *b,
                                 struct dv_arena *arena)
{
    const struct rule rule = {
        .keeps_first = true, .keeps_second = true, .in = in_either, .mask = UINT8_MAX};

    return combine(a, b, &rule, arena);
}

struct dv_fields dv_fields_difference(const struct dv_fields *a, const struct dv_fields *b,
                                      uint8_t mask, struct dv_arena *arena)
{
    const struct rule rule = {.keeps_first = true, .in = in_first_only, .mask = mask};

    return combine(a, b, &rule, arena);
}

struct dv_fields dv_fields_intersection(const struct dv_fields *a, const struct dv_fields *b,
                                        uint8_t mask, struct dv_arena *arena)
{
    const struct rule rule = {.in = in_both, .mask = mask};

    return combine(a, b, &rule, arena);
}

struct dv_fields dv_fields_without(const struct dv_fields *a, const struct dv_fields *b,
                                   struct dv_arena *arena)
{
    const struct rule rule = {
        .keeps_first = true, .cuts = true, .in = in_first_only, .mask = UINT8_MAX};

    return combine(a, b, &rule, arena);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
struct dv_fields dv_fields_only(const struct dv_fields *a, uint8_t mask, struct dv_arena *arena)
{
    struct dv_fields out = {.kind = a->kind, .text = a->text};

    out.in = a->in & mask ? DV_FIELDS_MEMBER : DV_FIELDS_OUT;
    for (size_t i = 0; i < a->n; i++) {
        struct dv_fields child = dv_fields_only(&a->v[i], mask, arena);

        if (!dv_fields_is_empty(&child))
            add_as_is(&out, &child, arena);
    }
    return out;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
bool dv_fields_eq(const struct dv_fields *a, const struct dv_fields *b)
{
    if (a->in != b->in || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (dv_fields_cmp(&a->v[i], &b->v[i]) != 0 || !dv_fields_eq(&a->v[i], &b->v[i]))
            return false;
    return true;
}

/* field_set.h - sets of fields: what a manager owns of an object, or how two objects differ.
 *
 * A set is a tree of steps into an object. A node is in the set or only on the way to one that is.
 * Sets are values in an arena that nobody changes; operations share what stays as it was. */
#ifndef DV_RESOURCE_FIELD_SET_H
#define DV_RESOURCE_FIELD_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_json;

enum dv_fields_in {
    DV_FIELDS_OUT = 0, /* not a member itself: on the way to one */
    DV_FIELDS_MEMBER = 1,
    /* of a comparison */
    DV_FIELDS_ADDED = 1,
    DV_FIELDS_MODIFIED = 2,
    DV_FIELDS_REMOVED = 4,
};

struct dv_fields {
    char kind;   /* of the step: 'f' a field, 'k' an item by its keys, 'v' an item by its value,
                    'i' by its place; 0 at the root */
    uint8_t in;  /* enum dv_fields_in */
    dv_str text; /* the field's name; else JSON: {"name":"a"}, "x", 0 */
    struct dv_fields *v; /* sorted */
    size_t n;
    size_t size;
};

/* Adds a child at the end; to be sorted when all are there. The pointer is valid until the next one
 * is added. */
struct dv_fields *dv_fields_add(struct dv_fields *node, char kind, dv_str text,
                                struct dv_arena *arena);
void dv_fields_sort(struct dv_fields *node); /* its children, not theirs */
int dv_fields_cmp(const struct dv_fields *a, const struct dv_fields *b); /* by their steps */
/* The child of that step; NULL when there is none. `node` may be NULL. */
const struct dv_fields *dv_fields_find(const struct dv_fields *node, char kind, dv_str text);
bool dv_fields_is_empty(const struct dv_fields *node);

/* Set operations. Of comparisons, only what `mask` says counts as a member. */
struct dv_fields dv_fields_union(const struct dv_fields *a, const struct dv_fields *b,
                                 struct dv_arena *arena);
struct dv_fields dv_fields_difference(const struct dv_fields *a, const struct dv_fields *b,
                                      uint8_t mask, struct dv_arena *arena);
struct dv_fields dv_fields_intersection(const struct dv_fields *a, const struct dv_fields *b,
                                        uint8_t mask, struct dv_arena *arena);
/* The set `a` without the members of `b` and all that is under them. */
struct dv_fields dv_fields_without(const struct dv_fields *a, const struct dv_fields *b,
                                   struct dv_arena *arena);
/* The members that `mask` selects, as a set. */
struct dv_fields dv_fields_only(const struct dv_fields *a, uint8_t mask, struct dv_arena *arena);
bool dv_fields_eq(const struct dv_fields *a, const struct dv_fields *b);

/* Parses FieldsV1. Fails on other texts. */
DV_CHECKED bool dv_fields_parse(dv_str text, struct dv_arena *arena, struct dv_fields *fields,
                                struct dv_err *err);
dv_str dv_fields_print(const struct dv_fields *fields, struct dv_arena *arena);
/* Calls `call` with every member and its path: .spec.containers[name="a"].image */
void dv_fields_each(const struct dv_fields *fields, struct dv_arena *arena,
                    void (*call)(void *data, dv_str path), void *data);

#endif

/* typed.h - JSON documents seen through the field tables, as server-side apply sees them: what is
 * merged, what is replaced as a whole, and what tells the items of a list apart.
 *
 * A document is only followed as deep as the tables go, so these functions may recurse. */
#ifndef DV_RESOURCE_TYPED_H
#define DV_RESOURCE_TYPED_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/patch/field_set.h"

struct dv_arena;
struct dv_err;
struct dv_field;
struct dv_json;
struct dv_message;
struct dv_structural;

enum dv_typed_shape {
    DV_TYPED_LEAF,   /* owned and replaced as a whole */
    DV_TYPED_STRUCT, /* the fields of a message */
    DV_TYPED_MAP,    /* free keys */
    DV_TYPED_KEYED,  /* a list whose items have keys */
    DV_TYPED_SET,    /* a list of values that are their own keys */
};

struct dv_typed {
    enum dv_typed_shape shape;
    const struct dv_message *message; /* STRUCT */
    const struct dv_field *field;     /* the others; NULL for items that are values */
    /* Of what no table has but the schema of a custom object; at the root beside the table. */
    const struct dv_structural *schema;
};

struct dv_typed dv_typed_root(const struct dv_message *message);
/* Of a custom object: its metadata by the table, and the rest by the schema. */
struct dv_typed dv_typed_custom_root(const struct dv_message *message,
                                     const struct dv_structural *schema);
/* The type of a member of a STRUCT or MAP; false: the table has no such field. */
bool dv_typed_member(const struct dv_typed *type, dv_str key, struct dv_typed *member);
struct dv_typed dv_typed_item(const struct dv_typed *list);
struct dv_typed dv_typed_field(const struct dv_field *field); /* of a field's value */
/* The step to an item of a list: 'k' or 'v' and its text. False: it has none of its keys. */
bool dv_typed_step(const struct dv_typed *list, const struct dv_json *item, struct dv_arena *arena,
                   char *kind, dv_str *text);
/* Like dv_typed_step, for an item of a list in a struct, which JSON would print so. */
bool dv_typed_step_of_value(const struct dv_typed *list, const char *value, struct dv_arena *arena,
                            char *kind, dv_str *text);
static inline bool dv_typed_is_list(const struct dv_typed *type)
{
    return type->shape == DV_TYPED_KEYED || type->shape == DV_TYPED_SET;
}

/* Compares two documents: a tree with DV_FIELDS_ADDED and the like says how `b` differs
 * from `a`. */
struct dv_fields dv_typed_compare(const struct dv_typed *root, const struct dv_json *a,
                                  const struct dv_json *b, struct dv_arena *arena);
/* Compares two structs as dv_typed_compare compares the documents that they print, without
 * printing them. */
struct dv_fields dv_typed_compare_values(const struct dv_message *message, const void *a,
                                         const void *b, struct dv_arena *arena);
/* The fields that a configuration sets. */
struct dv_fields dv_typed_fields(const struct dv_typed *root, const struct dv_json *doc,
                                 struct dv_arena *arena);
/* The fields, with every struct field on the way to a member as a member itself. */
struct dv_fields dv_typed_with_parents(const struct dv_typed *root, const struct dv_fields *fields,
                                       struct dv_arena *arena);

/* A copy of `live` with everything that `config` sets. */
struct dv_json *dv_typed_merge(const struct dv_typed *root, const struct dv_json *live,
                               const struct dv_json *config, struct dv_arena *arena);
/* A copy of `doc` without the members of `gone`. A container that becomes empty by this is null. */
struct dv_json *dv_typed_remove(const struct dv_typed *root, const struct dv_json *doc,
                                const struct dv_fields *gone, struct dv_arena *arena);

/* Checks a configuration. DV_INTERNAL: it has a field that the table lacks, or a value that does
 * not fit: ".spec.x: field not declared in schema". */
DV_CHECKED bool dv_typed_check(const struct dv_typed *root, const struct dv_json *config,
                               struct dv_arena *arena, struct dv_err *err);

#endif

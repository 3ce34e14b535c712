/* strategic.h - the parts of a strategic merge patch: maps, lists, and patches for what is not
 * there yet. */
#ifndef DV_RESOURCE_STRATEGIC_H
#define DV_RESOURCE_STRATEGIC_H

#include <stdbool.h>

#include "base/str.h"

struct dv_arena;
struct dv_err;
struct dv_field;
struct dv_json;
struct dv_message;

/* What a JSON object is by the tables: a message, or the values of a map. Both NULL: unknown. */
struct dv_strategic_type {
    const struct dv_message *message;
    const struct dv_field *map;
};

struct dv_patch_work {
    struct dv_arena *arena;
    struct dv_err *err;
};

/* The type of a value of the field, or of an item of its list. */
struct dv_strategic_type dv_strategic_type_of(const struct dv_field *field);

/* Applies `patch` to `doc`, and returns a new object. NULL: work->err is set. */
struct dv_json *dv_patch_map(struct dv_patch_work *work, struct dv_strategic_type type,
                             const struct dv_json *doc, const struct dv_json *patch);
/* Like dv_patch_map, for the lists of a field that merges; `order` (may be NULL) is its
 * $setElementOrder. Of `doc` and `patch` one may be NULL. */
struct dv_json *dv_patch_list(struct dv_patch_work *work, const struct dv_field *field,
                              const struct dv_json *doc, const struct dv_json *patch,
                              const struct dv_json *order);
/* The list without the values of `gone`. */
struct dv_json *dv_patch_drop(struct dv_patch_work *work, const struct dv_json *doc,
                              const struct dv_json *gone);
/* What a patch creates where nothing was: a copy of it without directives and nulls. */
struct dv_json *dv_patch_new(const struct dv_json *patch, struct dv_arena *arena);

bool dv_patch_is_directive(dv_str key);
/* The text of a string; empty for other values, and for NULL. */
dv_str dv_patch_text(const struct dv_json *node);
/* "map: map[image:x] does not contain declared merge key: name" */
bool dv_patch_no_key(const struct dv_json *item, dv_str key, struct dv_err *err);
/* "unknown patch type: x in map: map[...]" */
bool dv_patch_bad_type(const struct dv_json *directive, const struct dv_json *patch,
                       struct dv_err *err);
/* "expected a []interface {}, but received a string" */
bool dv_patch_no_list(const struct dv_json *node, struct dv_err *err);

#endif

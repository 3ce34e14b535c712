/* table.h - objects as rows of a table: what `kubectl get` and `davit get` show. */
#ifndef DV_RESOURCE_TABLE_H
#define DV_RESOURCE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "resource/values.h"

struct dv_api_version;
struct dv_arena;
struct dv_json;
struct dv_kind;
struct dv_object;

struct dv_column {
    dv_str name;
    dv_str type;   /* "string", "integer" */
    dv_str format; /* "name" for the first, else "" */
    dv_str description;
    int priority; /* above 0: with -o wide only */
};

const struct dv_column *dv_table_columns(const struct dv_kind *kind,
                                         const struct dv_api_version *version, size_t *n);
/* The cells of an object, as a JSON array in the order of the columns; ages are seen from `now`. */
struct dv_json *dv_table_cells(const struct dv_object *object, const struct dv_api_version *version,
                               struct dv_time now, struct dv_arena *arena);
/* "5m", "3d4h": as kubectl prints an age. */
dv_str dv_age_print(int64_t seconds, struct dv_arena *arena);

#endif

/* table_custom.h - the cells of objects whose columns a definition says. */
#ifndef DV_RESOURCE_TABLE_CUSTOM_H
#define DV_RESOURCE_TABLE_CUSTOM_H

#include "base/str.h"
#include "resource/values.h"

struct dv_arena;
struct dv_custom_version;
struct dv_json;
struct dv_object;

/* Appends the cells of the object to the array. */
void dv_table_custom(const struct dv_object *object, const struct dv_custom_version *version,
                     struct dv_time now, struct dv_json *cells, struct dv_arena *arena);

#endif

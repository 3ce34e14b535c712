/* object_row.h - what rows of the store have beside the protobuf of the API. */
#ifndef DV_RESOURCE_OBJECT_ROW_H
#define DV_RESOURCE_OBJECT_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_copy_size;
struct dv_err;
struct dv_kind;

/* The members of a message that its table lacks, as JSON text: a number that no field has. */
#define DV_ROW_UNKNOWN 65535u
/* How a raw JSON text is kept: as it is, as in the API's protobuf; or packed (pack_fields.h). */
#define DV_ROW_RAW 1u
#define DV_ROW_PACKED 2u

/* Whether it is a row of the first layout, which the functions below do not know. */
bool dv_row_is_json(dv_str row);
uint64_t dv_row_version(dv_str row);
dv_str dv_row_body(dv_str row); /* the protobuf */
/* Finds the bytes of a field in the protobuf of a message. False: it has none. */
bool dv_row_find(dv_str bytes, uint32_t number, dv_str *found);
/* Decodes a row into the zeroed struct `value`. `size` is enough for a copy of it, and *made_texts
 * for those of its texts that are not in `row`. */
DV_CHECKED bool dv_row_decode(const struct dv_kind *kind, dv_str row, struct dv_arena *arena,
                              void *value, struct dv_copy_size *size, size_t *made_texts,
                              struct dv_err *err);

#endif

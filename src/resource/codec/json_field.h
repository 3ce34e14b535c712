/* json_field.h - what JSON says of one field of a struct: for who looks at objects as documents
 * without printing them. */
#ifndef DV_RESOURCE_JSON_FIELD_H
#define DV_RESOURCE_JSON_FIELD_H

#include <stdbool.h>

#include "resource/codec/layout.h"
#include "resource/field.h"

struct dv_buf;

enum dv_presence {
    DV_ABSENT,
    DV_NULL, /* it is there, as null */
    DV_PRESENT,
};

/* Whether JSON has the field of the struct `home`, which is NULL when it is behind a pointer that
 * is not set. Not for inline fields and views, which are always there. */
enum dv_presence dv_field_presence(const struct dv_field *field, const char *home);
/* Whether a closer look would find that it is absent: so it is with most fields. A raw text that is
 * empty is there, as null. */
static inline bool dv_field_is_skipped(const struct dv_field *field, const char *home)
{
    return home && !(field->flags & DV_FIELD_ALWAYS) &&
           (field->type != DV_TYPE_RAW || field->shape != DV_SHAPE_ONE) &&
           dv_is_nothing(field, home);
}

/* Adds the JSON of a field that is not absent, without its name. */
void dv_field_put_json(struct dv_buf *buf, const struct dv_field *field, const char *home);
/* Adds the JSON of one value of the field: an item of a list, the value of an entry of a map. */
void dv_value_put_json(struct dv_buf *buf, const struct dv_field *field, const void *value);

#endif

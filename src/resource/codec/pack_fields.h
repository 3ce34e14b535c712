/* pack_fields.h - the FieldsV1 of managedFields in a tenth of their space, for rows of the store.
 *
 * The text has the names of fields again and again; packed it has their protobuf numbers, by the
 * table of the object's kind:
 *
 *     {"f:spec":{"f:nodeName":{}}}   ->   spec with members, nodeName, end
 *
 * Packing and unpacking gives the same text, byte for byte. */
#ifndef DV_RESOURCE_PACK_FIELDS_H
#define DV_RESOURCE_PACK_FIELDS_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_buf;
struct dv_err;
struct dv_message;

/* Adds `text` to `buf`, packed. False: it is not as our own printer writes such a text, and nothing
 * was added. */
bool dv_fields_pack(const struct dv_message *message, dv_str text, struct dv_buf *buf);
/* Adds the text to `buf`. Fails with DV_DATA_LOSS. */
DV_CHECKED bool dv_fields_unpack(const struct dv_message *message, dv_str packed,
                                 struct dv_buf *buf, struct dv_err *err);

#endif

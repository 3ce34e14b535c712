/* pack_fields.h - the FieldsV1 of managedFields in a tenth of their space, in memory and in rows of
 * the store: they are printed when somebody reads them.
 *
 * The text has the names of fields again and again; packed it has their protobuf numbers, by the
 * table of the object's kind:
 *
 *     {"f:spec":{"f:nodeName":{}}}   ->   spec with members, nodeName, end
 *
 * Packing and unpacking gives the same text, byte for byte. In an object that is kept, a member
 * that is packed begins with a zero byte, which no JSON has, and with the kind whose table it is
 * by. */
#ifndef DV_RESOURCE_PACK_FIELDS_H
#define DV_RESOURCE_PACK_FIELDS_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_kind;
struct dv_message;

/* Adds `text` to `buf`, packed. False: it is not as our own printer writes such a text, and nothing
 * was added. */
bool dv_fields_pack(const struct dv_message *message, dv_str text, struct dv_buf *buf);
/* Checks what was packed. Fails with DV_DATA_LOSS. */
DV_CHECKED bool dv_fields_check(const struct dv_message *message, dv_str packed,
                                struct dv_err *err);

/* The member of a kept object with what was packed, which has been checked. */
dv_str dv_fields_member(const struct dv_kind *kind, dv_str packed, struct dv_arena *arena);
bool dv_fields_is_packed(dv_str member);
/* What was packed, without what the member begins with. */
dv_str dv_fields_packed(dv_str member);
/* Adds the text of a member, whether it is packed or not. True: the text is plain (json_text.h). */
bool dv_fields_add_text(dv_str member, struct dv_buf *buf);
/* The text of a member, in `arena` if it was packed. */
dv_str dv_fields_text(dv_str member, struct dv_arena *arena);

#endif

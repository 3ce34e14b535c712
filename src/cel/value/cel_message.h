/* cel_message.h - the messages that an expression can make: protobuf's own for single values, which
 * are those values. */
#ifndef DV_CEL_MESSAGE_H
#define DV_CEL_MESSAGE_H

#include <stddef.h>

#include "base/str.h"

struct dv_arena;
struct dv_cel_type;
struct dv_cel_val;

/* The one constant that goes with them. */
#define DV_CEL_NULL_VALUE DV_STR("google.protobuf.NullValue.NULL_VALUE")

/* The type of the value that making the message gives: a scalar or null for the wrappers, a
 * duration, dyn and so on. NULL: there is no such message. */
const struct dv_cel_type *dv_cel_message_type(dv_str name, struct dv_arena *arena);
/* The type of the field; NULL: the message has no such field. */
const struct dv_cel_type *dv_cel_message_field(dv_str message, dv_str field);

/* Makes the value from the fields that are set. */
struct dv_cel_val dv_cel_message_make(dv_str message, const dv_str *fields,
                                      const struct dv_cel_val *values, size_t n,
                                      struct dv_arena *arena);

#endif

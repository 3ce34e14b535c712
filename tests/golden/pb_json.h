/* pb_json.h - the protobuf JSON form of a decoded message, as reference corpora give it: field
 * names of the .proto file, 64-bit numbers as strings, bytes in base64, enums by name, maps as
 * objects, and what is zero or absent left out. */
#ifndef DV_GOLDEN_PB_JSON_H
#define DV_GOLDEN_PB_JSON_H

#include <stdbool.h>

#include <jansson.h>

#include "base/defs.h"

struct ProtobufCMessage;
struct dv_err;

/* The caller owns the reference. */
json_t *pb_to_json(const struct ProtobufCMessage *message);

/* Whether both are equal; the first difference is in *err: "devices[2].health: got ..., want ...".
 */
DV_CHECKED bool json_compare(json_t *got, json_t *want, struct dv_err *err);

#endif

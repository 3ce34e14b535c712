/* openapi.h - the API described for programs: OpenAPI v2 and v3, made from the field tables. Pure.
 */
#ifndef DV_SERVE_OPENAPI_H
#define DV_SERVE_OPENAPI_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_custom_set;
struct dv_err;

/* Prints one group and version as JSON. `customs` are the kinds that definitions make; NULL: none.
 */
void dv_openapi_v3(const struct dv_custom_set *customs, dv_str group, dv_str version,
                   struct dv_arena *arena, struct dv_buf *buf);
/* Prints everything as JSON. */
void dv_openapi_v2(const struct dv_custom_set *customs, struct dv_arena *arena, struct dv_buf *buf);
/* Turns what dv_openapi_v2 printed into the protobuf form that older clients ask for. */
DV_CHECKED bool dv_openapi_v2_protobuf(dv_str json, struct dv_buf *buf, struct dv_err *err);

#endif

/* target.h - splits the target of a request into path and query, and checks them. Pure. */
#ifndef DV_REST_TARGET_H
#define DV_REST_TARGET_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;

/* Splits "/path?query", or "http://host/path?query", into parts of `target`. DV_INVALID_ARGUMENT:
 * it is neither, has a character that must be encoded, an encoding that is none, or is not UTF-8
 * when decoded. */
DV_CHECKED bool dv_rest_target_parse(dv_str target, dv_str *path, dv_str *query,
                                     struct dv_err *err);

#endif

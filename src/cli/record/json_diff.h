/* json_diff.h - where two JSON documents differ, field by field. */
#ifndef DV_CLI_JSON_DIFF_H
#define DV_CLI_JSON_DIFF_H

#include <stddef.h>

#include "base/str.h"

struct dv_arena;

/* One line for each field that differs, in `arena`: `devices[0].ID: recorded "a", now "b"`. Returns
 * how many there are. */
size_t dv_json_diff(dv_str recorded, dv_str now, struct dv_arena *arena, const char *const **lines);

#endif

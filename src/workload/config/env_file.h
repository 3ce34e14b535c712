/* env_file.h - files that a container writes for the environment of another one:
 *
 *     # a comment
 *     NAME='value'        in single quotes, also over several lines; nothing is escaped
 */
#ifndef DV_WORKLOAD_ENV_FILE_H
#define DV_WORKLOAD_ENV_FILE_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;

/* Finds the first variable of that name; `value` is empty when there is none. Lines after it are
 * not looked at. False: a line before that has another form. */
DV_CHECKED bool dv_env_file_find(dv_str text, dv_str name, struct dv_arena *arena, dv_str *value);

#endif

/* file.h - small blocking file operations, for start-up, tools and work jobs; never on the loop. */
#ifndef DV_BASE_FILE_H
#define DV_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;

/* The whole file into `arena`. DV_RESOURCE_EXHAUSTED: it is larger than max_bytes. */
DV_CHECKED bool dv_file_read(dv_str path, size_t max_bytes, struct dv_arena *arena, dv_str *text,
                             struct dv_err *err);

/* Puts the text there in one step: who reads the path sees the old file or the whole new one, also
 * after a crash. `mode` is the new file's. */
DV_CHECKED bool dv_file_replace(dv_str path, dv_str text, unsigned mode, struct dv_err *err);

#endif

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

/* Reads what is left of an open file; the message does not name it. */
DV_CHECKED bool dv_file_read_fd(int fd, size_t max_bytes, struct dv_arena *arena, dv_str *text,
                                struct dv_err *err);

/* Puts the text there in one step: who reads the path sees the old file or the whole new one, also
 * after a crash. `mode` is the new file's. */
DV_CHECKED bool dv_file_replace(dv_str path, dv_str text, unsigned mode, struct dv_err *err);

/* Sees to it that nobody but its owner, and that is us or root, can use what is at `path`: bits of
 * the mode beyond `mode_max` are taken away, and *old_mode is then the mode it had; else 0. What is
 * not there is fine.
 * DV_FAILED_PRECONDITION: neither a regular file nor (is_dir) a directory, a link for example, or
 * of another owner. */
DV_CHECKED bool dv_file_make_private(const char *path, bool is_dir, unsigned mode_max,
                                     unsigned *old_mode, struct dv_err *err);

#endif

/* path.h - paths of files as text; nothing is looked up. */
#ifndef DV_BASE_PATH_H
#define DV_BASE_PATH_H

#include "base/str.h"

struct dv_arena;

/* Cleans a path as Go's path.Clean does: without doubled slashes, ".", a slash at the end, and ".."
 * wherever a name stands before it: "a//b/../c/" as "a/c", nothing as ".". The result is in
 * `arena`. */
dv_str dv_path_clean(dv_str path, struct dv_arena *arena);
/* Like dv_path_clean, but a path that is not absolute is taken from the root: "a/../b" as "/b". */
dv_str dv_path_clean_absolute(dv_str path, struct dv_arena *arena);
/* Returns the part before the last slash, borrowed: "/a" of "/a/b", nothing of "/a" and of "a". */
dv_str dv_path_dir(dv_str path);

#endif

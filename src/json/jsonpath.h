/* jsonpath.h - paths into documents, and templates of -o jsonpath, as kubectl reads them: text with
 * {paths}, {"quoted text"} and {range PATH}...{end} in it. Pure. */
#ifndef DV_JSONPATH_H
#define DV_JSONPATH_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_json;

/* Prints the template with the values of the document. A path has .key, ['key'], [0], [-1], [0:2],
 * [*], .*, ..key and [?(@.key=="value")]; what is not there is printed as nothing. Braces may be
 * left out around a single path. DV_INVALID_ARGUMENT says what is wrong, and at which character. */
DV_CHECKED bool dv_jsonpath_print(dv_str template, const struct dv_json *doc,
                                  struct dv_arena *arena, struct dv_buf *buf, struct dv_err *err);

/* Finds the first node that a single path leads to, without braces: ".spec.x". False: it is no such
 * path, and `err` says why. *found is NULL when nothing is there. */
DV_CHECKED bool dv_jsonpath_first(dv_str path, const struct dv_json *doc, struct dv_arena *arena,
                                  const struct dv_json **found, struct dv_err *err);

#endif

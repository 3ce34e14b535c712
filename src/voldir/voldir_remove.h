/* voldir_remove.h - removes a tree that others have filled. */
#ifndef DV_VOLDIR_REMOVE_H
#define DV_VOLDIR_REMOVE_H

#include <stdbool.h>

#include "base/defs.h"

struct dv_err;

/* Removes `name` in `parent` and all that is in it; that there is none is fine. Links are removed
 * and never followed. What is mounted in it is not entered: DV_FAILED_PRECONDITION, and that mount
 * and what it hides are as they were. */
DV_CHECKED bool dv_voldir_remove(int parent, const char *name, struct dv_err *err);

#endif

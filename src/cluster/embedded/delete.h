/* delete.h - the verb DELETE: at once, with grace, or when the finalizers are gone. */
#ifndef DV_CLUSTER_DELETE_H
#define DV_CLUSTER_DELETE_H

#include <stdbool.h>

#include "base/defs.h"

struct dv_api_delete_options;
struct dv_api_status;
struct dv_arena;
struct dv_op;

/* NULL when the options (which may be NULL) can be. */
struct dv_api_status *dv_delete_check_options(const struct dv_api_delete_options *options,
                                              struct dv_arena *arena);
/* That the object is the one which the options mean. False: the op has failed. */
DV_CHECKED bool dv_delete_check_preconditions(struct dv_op *op);
/* Deletes the object as op->delete_options say; as `run` of an op. */
bool dv_delete_run(struct dv_op *op);
/* The same; a pod is told why in `value`, a copy of it. */
bool dv_delete_value(struct dv_op *op, void *value);

#define DV_FINALIZER_FOREGROUND "foregroundDeletion"
#define DV_FINALIZER_ORPHAN "orphan"

#endif

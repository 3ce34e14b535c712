/* delete.h - the verbs DELETE (at once, with grace, or when the finalizers are gone) and
 * DELETE_COLLECTION. */
#ifndef DV_CLUSTER_DELETE_H
#define DV_CLUSTER_DELETE_H

#include <stdbool.h>

#include "base/defs.h"

struct dv_api_delete_options;
struct dv_api_status;
struct dv_arena;
struct dv_cluster_operation;

/* Checks the options, which may be NULL. Returns the failure, or NULL when they are valid. */
struct dv_api_status *dv_delete_check_options(const struct dv_api_delete_options *options,
                                              struct dv_arena *arena);
/* Checks the preconditions of the options: that the object is the one which is meant. False: the
 * operation has failed. */
DV_CHECKED bool dv_delete_check_preconditions(struct dv_cluster_operation *operation);
/* Warns a caller who has not said what becomes of a Job's pods. */
void dv_delete_warn(struct dv_cluster_operation *operation);
/* Deletes the object as operation->delete_options say; as `run` of an operation. */
bool dv_delete_run(struct dv_cluster_operation *operation);
/* Like dv_delete_run, for a pod whose status shall say why it is deleted: `value` is a copy of the
 * pod with that reason, and is stored before the pod goes. */
bool dv_delete_value(struct dv_cluster_operation *operation, void *value);

/* delete_collection.c: deletes the objects that the request selects, each as if it were deleted by
 * itself. Answers, when all are done, with what the objects were. */
void dv_delete_collection(struct dv_cluster_operation *operation);

#define DV_FINALIZER_FOREGROUND "foregroundDeletion"
#define DV_FINALIZER_ORPHAN "orphan"

#endif

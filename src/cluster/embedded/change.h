/* change.h - from a value to a write: what all verbs have in common. */
#ifndef DV_CLUSTER_CHANGE_H
#define DV_CLUSTER_CHANGE_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/status.h"

struct dv_api_object_meta;
struct dv_embedded;
struct dv_object;
struct dv_cluster_operation;
struct dv_custom_version;
struct dv_problems;
struct dv_validation;

/* The object and kind that an operation is about, for messages of failures. */
struct dv_status_about dv_change_about(const struct dv_cluster_operation *operation);
/* Copies the stored value so that its fields can be set. The copy is shallow: what the fields refer
 * to is shared, and must not be changed in place. */
void *dv_change_copy(struct dv_cluster_operation *operation);
/* Asks the caller of the request whether it admits the change; `value` NULL: the object goes.
 * False: the operation has failed. */
DV_CHECKED bool dv_change_admit(struct dv_cluster_operation *operation, const void *value);

/* Adds a problem when the namespace of the object does not allow admin access; see
 * dv_validate_admin_access. */
void dv_change_check_admin_access(const struct dv_cluster_operation *operation,
                                  const struct dv_validation *what, struct dv_problems *problems);

/* Holds a pod to the standard that its namespace demands, and warns of a pod or a template for pods
 * that violates another one. False: the operation has failed. */
DV_CHECKED bool dv_change_check_security(struct dv_cluster_operation *operation, const void *value);

/* The version of its kind's definition that the request is made in. NULL: the kind is built in, the
 * definition is gone, or the version is not served any more. */
const struct dv_custom_version *dv_change_version(const struct dv_cluster_operation *operation);
/* The value of a stored object as the request sees it: of a custom object by the schema that there
 * is now, which may not be the one that it was written by. */
const void *dv_change_stored(const struct dv_cluster_operation *operation,
                             const struct dv_object *object);
/* Gives the value what its kind says: defaults, and for a kind that a definition made only the
 * fields that its schema has. False: the operation has failed. */
DV_CHECKED bool dv_change_default(struct dv_cluster_operation *operation, void *value);
/* Sets back what the request may not change, and checks the rest of what the kind's definition
 * says; does nothing for a kind that is built in. `old` is what is stored, or NULL. */
void dv_change_prepare_custom(struct dv_cluster_operation *operation, void *value,
                              const struct dv_object *old);
void dv_change_check_custom(struct dv_cluster_operation *operation, const void *value,
                            const struct dv_object *old, struct dv_problems *problems);

/* Asks for admission and whether something is to be changed, then goes on with `next`. An operation
 * that a worker computes is put aside for that, because admission is asked on the loop. Returns
 * what `run` of an operation returns. */
bool dv_change_admit_then(struct dv_cluster_operation *operation, void *value,
                          bool (*next)(struct dv_cluster_operation *operation, void *value));

/* Asks who serves the request whether something is to be changed in what is admitted, and goes on
 * with `next`, now or later; `value` NULL: the object goes. Returns what `run` of an operation
 * returns. */
bool dv_change_mutate_then(struct dv_cluster_operation *operation, void *value,
                           bool (*next)(struct dv_cluster_operation *operation, void *value));
/* Asks who serves the request what it says of a write that is complete and valid, once an
 * operation, and goes on with `next`, now or later; `value` NULL: the object goes. Returns what
 * `run` of an operation returns. */
bool dv_change_judge_then(struct dv_cluster_operation *operation, void *value,
                          bool (*next)(struct dv_cluster_operation *operation, void *value));

/* Makes `value` the new state of the object: writes it, or removes the object when only its last
 * finalizer was waited for, or just answers when nothing has changed. Returns what `run` of an
 * operation returns. */
bool dv_change_finish(struct dv_cluster_operation *operation, void *value);
/* Like dv_change_finish, for a name that has no object yet. */
bool dv_change_create(struct dv_cluster_operation *operation, void *value);
/* For a worker: makes the object and its text from the operation's result, as far as they are
 * needed. */
void dv_change_make(struct dv_cluster_operation *operation);
/* Writes the result that a worker has prepared, on the loop. */
bool dv_change_commit(struct dv_cluster_operation *operation);

/* Adds a warning for the caller; keeps the text. An empty one is none. */
void dv_change_warn(struct dv_cluster_operation *operation, dv_str warning);
/* Removes owner references that are named twice, and adds a warning for the caller. */
void dv_change_dedup_owners(struct dv_cluster_operation *operation, void *value);

/* Removes the finalizer from a copy of the list. False: it was not there. */
bool dv_meta_remove_finalizer(struct dv_cluster_operation *operation,
                              struct dv_api_object_meta *meta, dv_str finalizer);

/* Checks that the namespace exists and takes new objects. False: the operation has failed with 404
 * or 403. */
DV_CHECKED bool dv_change_check_namespace(struct dv_cluster_operation *operation, dv_str namespace,
                                          dv_str name);

#endif

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
struct dv_op;
struct dv_problems;
struct dv_validation;

/* "object X of kind Y", for failures. */
struct dv_status_about dv_change_about(const struct dv_op *op);
/* The value of what is stored, copied so that its own fields can be set; what they refer to is
 * shared. */
void *dv_change_copy(struct dv_op *op);
/* Whether the caller of the request admits the change (`value` NULL: it goes). False: it has
 * failed. */
DV_CHECKED bool dv_change_admit(struct dv_op *op, const void *value);

/* Adds what the namespace of the object does not allow; see dv_validate_admin_access. */
void dv_change_check_admin_access(const struct dv_op *op, const struct dv_validation *what,
                                  struct dv_problems *problems);

/* Asks for it and goes on with `next`; a worker's op goes on when it has been asked on the loop. As
 * `run` of an op. */
bool dv_change_admit_then(struct dv_op *op, void *value,
                          bool (*next)(struct dv_op *op, void *value));

/* The object shall be `value` from now on: writes it, or removes the object when it was waiting
 * for its last finalizer only, or answers when nothing has changed. As `run` of an op. */
bool dv_change_finish(struct dv_op *op, void *value);
/* The same for a name that has no object yet. */
bool dv_change_create(struct dv_op *op, void *value);
/* For a worker: makes the object and its text of the op's result, as far as they are needed. */
void dv_change_make(struct dv_op *op);
/* Writes the op's result, as the two above do with theirs. On the loop. */
bool dv_change_commit(struct dv_op *op);

/* Owners that are named twice are taken once, and the caller is told. */
void dv_change_dedup_owners(struct dv_op *op, void *value);

bool dv_meta_has_finalizer(const struct dv_api_object_meta *meta, dv_str finalizer);
/* Takes it out, in a list of its own. False: it was not there. */
bool dv_meta_remove_finalizer(struct dv_op *op, struct dv_api_object_meta *meta, dv_str finalizer);

/* A namespace is there and takes new objects. False: the op has failed with 404 or 403. */
DV_CHECKED bool dv_change_check_space(struct dv_op *op, dv_str space, dv_str name);

#endif

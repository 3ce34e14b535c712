/* update.h - the verbs CREATE, UPDATE and PATCH: as `run` of ops. */
#ifndef DV_CLUSTER_UPDATE_H
#define DV_CLUSTER_UPDATE_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/patch.h"

struct dv_op;

/* Makes an object of the request's value, under the request's name or its own. */
void dv_create_start(struct dv_op *op);
/* Makes an object of `value` (the op's, with defaults to come) under the name that is held.
 * `managed` (in the op's arena) NULL: the fields are the manager's by this request. */
bool dv_create_value(struct dv_op *op, void *value, const struct dv_managed_fields *managed);

bool dv_update_run(struct dv_op *op);
/* The object that is there becomes `value`, as above. */
bool dv_update_value(struct dv_op *op, void *value, const struct dv_managed_fields *managed);
/* spec.finalizers of a namespace. */
bool dv_update_finalize(struct dv_op *op);

bool dv_patch_run(struct dv_op *op);

/* That the object is the one which is meant, when `uid` or `version` are given. False: the op has
 * failed with a conflict. */
DV_CHECKED bool dv_update_check_uid(struct dv_op *op, dv_str uid);
DV_CHECKED bool dv_update_check_version(struct dv_op *op, dv_str version);
/* That name and namespace in the value are those of the request, where it has them; fills them in
 * where not. False: the op has failed. */
DV_CHECKED bool dv_update_check_names(struct dv_op *op, void *value);

/* The version that the request is made in. */
const struct dv_api_version *dv_update_version(const struct dv_op *op);
/* Who makes the request, for managedFields. */
struct dv_manager dv_update_manager(const struct dv_op *op);

#endif

/* update.h - the verbs CREATE, UPDATE and PATCH: as `run` of operations. */
#ifndef DV_CLUSTER_UPDATE_H
#define DV_CLUSTER_UPDATE_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/patch.h"

struct dv_arena;
struct dv_cluster_operation;

/* Starts CREATE: makes an object of the request's value, under the name of the request or of the
 * value. */
void dv_create_start(struct dv_cluster_operation *operation);
/* Fails the operation because there is an object of that name. Returns false. */
bool dv_create_fail_existing(struct dv_cluster_operation *operation);
/* Makes a name with random letters after the prefix, as for generateName, in `arena`. */
dv_str dv_generate_name(dv_str prefix, struct dv_arena *arena);
/* Creates an object from `value`, to which defaults are still added, under the name that is held.
 * `managed`, in the operation's arena, are the owners of its fields; NULL: they become the
 * manager's by this request. */
bool dv_create_value(struct dv_cluster_operation *operation, void *value,
                     const struct dv_managed_fields *managed);

bool dv_update_run(struct dv_cluster_operation *operation);
/* Updates the stored object to `value`; `managed` as for dv_create_value. */
bool dv_update_value(struct dv_cluster_operation *operation, void *value,
                     const struct dv_managed_fields *managed);
/* Updates the stored object by the request's `change`. */
bool dv_update_change(struct dv_cluster_operation *operation);
/* Updates spec.finalizers of a namespace (the subresource "finalize"). */
bool dv_update_finalize(struct dv_cluster_operation *operation);

bool dv_patch_run(struct dv_cluster_operation *operation);
/* Fails the operation by what is wrong with its patch. Returns false. */
bool dv_patch_fail(struct dv_cluster_operation *operation, const struct dv_err *err);
/* Updates or patches how many pods the stored object wants (the subresource "scale"). */
bool dv_scale_run(struct dv_cluster_operation *operation);

/* Checks that the stored object has the `uid`, or the `version`, when one is given. False: the
 * operation has failed with a conflict. */
DV_CHECKED bool dv_update_check_uid(struct dv_cluster_operation *operation, dv_str uid);
DV_CHECKED bool dv_update_check_version(struct dv_cluster_operation *operation, dv_str version);
/* Returns the value of the request, which may be changed. */
void *dv_update_take_value(struct dv_cluster_operation *operation);
/* Checks that name and namespace in the value are those of the request, and fills them in where the
 * value has none. False: the operation has failed. */
DV_CHECKED bool dv_update_check_names(struct dv_cluster_operation *operation, void *value);

/* The version of the API that the request is made in. */
const struct dv_api_version *dv_update_version(const struct dv_cluster_operation *operation);
/* The manager who makes the request, for managedFields. */
struct dv_manager dv_update_manager(const struct dv_cluster_operation *operation);

#endif

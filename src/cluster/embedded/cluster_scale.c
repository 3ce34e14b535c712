/* cluster_scale.c - the subresource `scale`: an object is updated by the number of pods that it
 * shall want, and nothing else of it is shown or changed. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/update.h"
#include "cluster/objects/collection.h"
#include "resource/custom.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "resource/scale.h"
#include "resource/status.h"
#include "resource/validate.h"

static const struct dv_api_version scale_version = {DV_STR_INIT("autoscaling"), DV_STR_INIT("v1"),
                                                    &dv_message_scale};

/* The stored object as a Scale. False: the operation has failed. */
static bool scale_of(struct dv_cluster_operation *operation, struct dv_api_scale *scale)
{
    const struct dv_object *object = operation->entry->object;
    const struct dv_custom_version *version = dv_change_version(operation);
    dv_str missing;

    if (!dv_kind_is_custom(object->kind)) {
        dv_scale_of(object, operation->arena, scale);
        return true;
    }
    if (!version || !version->scale)
        return dv_cluster_operation_fail(operation, dv_status_no_such_path(operation->arena));
    if (dv_scale_of_custom(object, version, operation->arena, scale, &missing))
        return true;
    return dv_cluster_operation_fail(
        operation,
        dv_status_new(500, DV_STR_NONE, operation->arena,
                      "the spec replicas field \"%.*s\" does not exist", DV_FMT(missing)));
}

/* Sets the number in a copy of the stored object. False: the operation has failed. */
static bool set_replicas(struct dv_cluster_operation *operation, void *value, int64_t replicas)
{
    const struct dv_object *object = operation->entry->object;

    if (!dv_kind_is_custom(object->kind)) {
        dv_scale_set(object, value, replicas, operation->arena);
        return true;
    }
    if (dv_scale_set_custom(dv_change_version(operation), value, replicas, operation->arena))
        return true;
    return dv_cluster_operation_fail(
        operation, dv_status_bad_request(operation->arena, "the spec replicas field is not where "
                                                           "the definition says"));
}

static struct dv_json *patch_document(struct dv_cluster_operation *operation,
                                      const struct dv_api_scale *scale, struct dv_err *err)
{
    const struct dv_request *request = operation->request;
    struct dv_arena *arena = operation->arena;
    struct dv_json *doc;

    doc = dv_encode_json(&dv_message_scale, scale, &scale_version, DV_STR("Scale"), arena);
    if (request->patch_type == DV_PATCH_JSON)
        return dv_patch_json(doc, request->patch, arena, err);
    if (request->patch_type == DV_PATCH_STRATEGIC)
        return dv_patch_strategic(&dv_message_scale, doc, request->patch, arena, err);
    if (request->patch_type == DV_PATCH_MERGE)
        return dv_patch_merge_check(request->patch, err)
                   ? dv_patch_merge(doc, request->patch, arena)
                   : NULL;
    (void)dv_fail(err, DV_INVALID_ARGUMENT, "a scale is not applied: patch or update it");
    return NULL;
}

/* The Scale that the request wants. NULL: the operation has failed. */
static struct dv_api_scale *wanted_of(struct dv_cluster_operation *operation)
{
    struct dv_api_scale *scale = DV_NEW(operation->arena, struct dv_api_scale);
    struct dv_api_scale now;
    struct dv_json *doc;
    struct dv_err err;

    if (!scale_of(operation, &now))
        return NULL;
    if (operation->request->verb == DV_VERB_UPDATE) {
        *scale = *(const struct dv_api_scale *)operation->request->value;
        return scale;
    }
    doc = patch_document(operation, &now, &err);
    if (doc && dv_decode_json(&dv_message_scale, doc, DV_UNKNOWN_DROP, operation->arena, scale,
                              NULL, &err))
        return scale;
    (void)dv_patch_fail(operation, &err);
    return NULL;
}

static bool check_replicas(struct dv_cluster_operation *operation, const struct dv_api_scale *scale)
{
    const struct dv_status_about about = {.what = DV_STR("Scale"),
                                          .group = DV_STR("autoscaling"),
                                          .name = dv_entry_name(operation->entry)};
    struct dv_problem problem = {.type = DV_PROBLEM_INVALID, .field = DV_STR("spec.replicas")};
    struct dv_problems problems = {.v = &problem, .n = 1, .arena = operation->arena};

    if (scale->spec.replicas >= 0)
        return true;
    problem.detail =
        dv_str_printf(operation->arena, "Invalid value: %lld: must be greater than or equal to 0",
                      (long long)scale->spec.replicas);
    return dv_cluster_operation_fail(operation,
                                     dv_status_invalid(&about, &problems, operation->arena));
}

bool dv_scale_run(struct dv_cluster_operation *operation)
{
    struct dv_status_about about = dv_change_about(operation);
    struct dv_api_scale *scale;
    void *value;

    if (!operation->entry->object)
        return dv_cluster_operation_fail(operation, dv_status_not_found(&about, operation->arena));
    scale = wanted_of(operation);
    if (!scale || !dv_update_check_names(operation, scale) ||
        !dv_update_check_uid(operation, scale->metadata.uid) ||
        !dv_update_check_version(operation, scale->metadata.resource_version) ||
        !check_replicas(operation, scale))
        return false;
    value = dv_change_copy(operation);
    return set_replicas(operation, value, scale->spec.replicas) &&
           dv_update_value(operation, value, NULL);
}

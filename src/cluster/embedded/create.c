/* create.c - the verb CREATE: chooses a name where the request has only generateName, sets what the
 * server sets (uid, times, managedFields), validates and writes. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/cluster_pods.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/update.h"
#include "cluster/objects/collection.h"
#include "resource/custom.h"
#include "resource/patch.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "resource/status.h"

/* For generateName: the number of random characters behind the prefix, which is cut so that the
 * name fits into a label (63 bytes). */
#define N_RANDOM 5u
#define PREFIX_BYTES_MAX (63u - N_RANDOM)
#define N_TRIES 8u

/* Without vowels, so that names do not become words, and without what looks alike. */
static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";

dv_str dv_generate_name(dv_str prefix, struct dv_arena *arena)
{
    size_t n = dv_size_min(prefix.n, PREFIX_BYTES_MAX);
    char *name = dv_arena_alloc_raw(arena, n + N_RANDOM, 1);
    uint64_t random = dv_random_u64();

    memcpy(name, prefix.p, n);
    for (size_t i = 0; i < N_RANDOM; i++) {
        name[n + i] = letters[random % (sizeof(letters) - 1)];
        random /= sizeof(letters) - 1;
    }
    return (dv_str){name, n + N_RANDOM};
}

/* Records what the manager of the request owns: what it sent, with the API's defaults; not what the
 * server and webhooks add, nor the status, which this endpoint does not write. */
static void own_fields(struct dv_cluster_operation *operation, const void *value)
{
    struct dv_managed_fields *managed = DV_NEW(operation->arena, struct dv_managed_fields);
    const struct dv_api_version *version = dv_update_version(operation);
    struct dv_manager manager = dv_update_manager(operation);
    const struct dv_managed_fields none = {0};

    dv_apply_update(version->message, NULL, value, &none, &manager, operation->arena, managed);
    operation->managed = managed;
}

bool dv_create_fail_existing(struct dv_cluster_operation *operation)
{
    struct dv_status_about about = dv_change_about(operation);
    struct dv_api_status *failure = dv_status_already_exists(&about, operation->arena);

    if (operation->entry->object->meta->deletion_timestamp.is_set)
        failure->message = dv_str_printf(operation->arena, "object is being deleted: %.*s",
                                         DV_FMT(failure->message));
    return dv_cluster_operation_fail(operation, failure);
}

static bool create_admitted(struct dv_cluster_operation *operation, void *value)
{
    const struct dv_kind *kind = operation->entry->collection->kind;
    struct dv_api_object_meta *meta = dv_meta_of(value);
    struct dv_problems problems = {.arena = operation->arena};
    struct dv_status_about about = dv_change_about(operation);
    const struct dv_prepare how = {.now = dv_cluster_operation_now(operation),
                                   .gates = operation->embedded->options.gates,
                                   .arena = operation->arena};
    const struct dv_validation what = {.kind = kind,
                                       .operation = DV_CREATE,
                                       .version = dv_update_version(operation),
                                       .value = value};
    struct dv_managed_fields owned = {0};

    if (operation->managed)
        owned = *operation->managed;
    if (operation->takes_account)
        dv_account_apply(operation, value);
    if (!dv_priority_apply(operation, value) || !dv_runtime_class_apply(operation, value))
        return false;
    dv_service_apply(operation, value);
    dv_prepare_create(kind, value, &how);
    dv_change_prepare_custom(operation, value, NULL);
    dv_change_check_admin_access(operation, &what, &problems);
    dv_validate(&what, &problems);
    dv_change_check_custom(operation, value, NULL, &problems);
    if (problems.n > 0)
        return dv_cluster_operation_fail(operation,
                                         dv_status_invalid(&about, &problems, operation->arena));
    if (!dv_runtime_class_check(operation, value) || !dv_change_check_security(operation, value))
        return false;
    /* The reference's store finds that, which a dry run does not reach. */
    if (operation->sent_version.n > 0 && !operation->is_dry_run)
        return dv_cluster_operation_fail(
            operation, dv_status_new(500, DV_STR_NONE, operation->arena,
                                     "resourceVersion should not be set on objects to be created"));
    if (operation->entry->object)
        return dv_create_fail_existing(operation);
    dv_managed_fields_pack(kind, owned.v, owned.n, operation->arena);
    meta->managed_fields = owned.v;
    meta->n_managed_fields = owned.n;
    return dv_change_create(operation, value);
}

bool dv_create_value(struct dv_cluster_operation *operation, void *value,
                     const struct dv_managed_fields *managed)
{
    const struct dv_kind *kind = operation->entry->collection->kind;
    struct dv_api_object_meta *meta = dv_meta_of(value);
    struct dv_time now = dv_cluster_operation_now(operation);
    char uid[DV_UUID_BYTES];

    if (kind->is_namespaced && !dv_change_check_namespace(operation, meta->namespace, meta->name))
        return false;
    operation->managed = managed;
    operation->sent_version = meta->resource_version;
    meta->creation_timestamp = now;
    meta->uid = dv_str_copy(dv_random_uuid(uid), operation->arena);
    meta->resource_version = DV_STR_NONE;
    meta->managed_fields = NULL;
    meta->n_managed_fields = 0;
    if (!dv_change_default(operation, value))
        return false;
    dv_change_dedup_owners(operation, value);
    if (!managed && !operation->request->is_untracked)
        own_fields(operation, value);
    return dv_change_admit_then(operation, value, create_admitted);
}

static bool run(struct dv_cluster_operation *operation)
{
    void *value = dv_update_take_value(operation);

    if (!dv_update_check_names(operation, value))
        return false;
    return dv_create_value(operation, value, NULL);
}

/* Makes names at random until one is free, a few times at most. */
static dv_str choose_name(struct dv_cluster_operation *operation, dv_str prefix)
{
    const struct dv_request *request = operation->request;
    struct dv_collection *collection = dv_engine_collection(operation->embedded, request->kind);
    dv_str name = {0};

    for (size_t i = 0; i < N_TRIES; i++) {
        name = dv_generate_name(prefix, operation->arena);
        if (!dv_collection_get(collection, request->namespace, name))
            break;
    }
    return name;
}

/* Whether there may be another object of the kind. False: the operation has failed. */
static bool may_create(struct dv_cluster_operation *operation, dv_str name)
{
    const struct dv_kind *kind = operation->request->kind;
    const struct dv_collection *collection = dv_engine_collection(operation->embedded, kind);
    const struct dv_status_about about = {.kind = kind, .name = name};

    if (dv_kind_is_custom(kind) && kind->custom && kind->custom->is_terminating)
        return dv_cluster_operation_fail(
            operation, dv_status_forbidden(&about, operation->arena,
                                           "create not allowed while custom resource definition is "
                                           "terminating"));
    if (kind->id == DV_KIND_CUSTOM_DEFINITION && collection->n >= DV_CUSTOM_DEFINITIONS_MAX)
        return dv_cluster_operation_fail(
            operation, dv_status_forbidden(&about, operation->arena,
                                           "there are %u definitions already, which is the limit",
                                           DV_CUSTOM_DEFINITIONS_MAX));
    return true;
}

void dv_create_start(struct dv_cluster_operation *operation)
{
    const struct dv_request *request = operation->request;
    const struct dv_api_object_meta *meta = request->value;
    dv_str name = request->name.n > 0 ? request->name : meta->name;

    if (!may_create(operation, name))
        return;
    if (name.n == 0 && meta->generate_name.n > 0)
        name = choose_name(operation, meta->generate_name);
    operation->is_computable = true;
    dv_cluster_operation_start(operation, request->kind, request->namespace, name, run);
}

/* update.c - the verb UPDATE, and what it shares with PATCH: is the object the one that is meant,
 * who owns which field, and what this endpoint may change. */
#include "cluster/embedded/update.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/collection.h"
#include "resource/custom.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "resource/status.h"

const struct dv_api_version *dv_update_version(const struct dv_cluster_operation *operation)
{
    const struct dv_request *request = operation->request;

    return request->version ? request->version : &request->kind->versions[0];
}

struct dv_manager dv_update_manager(const struct dv_cluster_operation *operation)
{
    const struct dv_api_version *version = dv_update_version(operation);
    const struct dv_request *request = operation->request;
    struct dv_manager manager = {.name = request->field_manager,
                                 .now = dv_cluster_operation_now(operation),
                                 .custom = dv_change_version(operation)};

    if (manager.name.n == 0)
        manager.name = DV_STR("davit");
    if (request->subresource == DV_SUB_STATUS)
        manager.subresource = DV_STR("status");
    if (request->subresource == DV_SUB_SCALE)
        manager.subresource = DV_STR("scale");
    manager.api_version = version->group.n > 0
                              ? dv_str_printf(operation->arena, "%.*s/%.*s", DV_FMT(version->group),
                                              DV_FMT(version->version))
                              : version->version;
    return manager;
}

/* ---- is it the one that is meant? ---- */

/* The key under which the reference keeps an object in etcd: one of its messages names it. */
static dv_str registry_of(const struct dv_kind *kind)
{
    return kind->id == DV_KIND_NODE ? DV_STR("minions") : kind->plural;
}

bool dv_update_check_uid(struct dv_cluster_operation *operation, dv_str uid)
{
    const struct dv_object *object = operation->entry->object;
    struct dv_status_about about = dv_change_about(operation);
    dv_str key = dv_entry_key(operation->entry);
    dv_str registry = registry_of(about.kind);

    if (uid.n == 0 || dv_str_eq(uid, object->meta->uid))
        return true;
    return dv_cluster_operation_fail(
        operation,
        dv_status_conflict(&about, operation->arena,
                           "StorageError: invalid object, Code: 4, Key: /registry/%.*s/%.*s, "
                           "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID "
                           "in precondition: %.*s, UID in object meta: %.*s",
                           DV_FMT(registry), DV_FMT(key), DV_FMT(uid), DV_FMT(object->meta->uid)));
}

bool dv_update_check_version(struct dv_cluster_operation *operation, dv_str version)
{
    struct dv_status_about about = dv_change_about(operation);
    uint64_t number = 0;

    if (version.n == 0)
        return true;
    if (!dv_str_to_u64(version, &number))
        return dv_cluster_operation_fail(
            operation, dv_status_new(500, DV_STR_NONE, operation->arena,
                                     "resourceVersion: Invalid value: \"%.*s\": "
                                     "strconv.ParseUint: parsing \"%.*s\": invalid syntax",
                                     DV_FMT(version), DV_FMT(version)));
    if (number == 0 || number == operation->entry->object->version)
        return true;
    return dv_cluster_operation_fail(
        operation, dv_status_conflict(&about, operation->arena,
                                      "the object has been modified; please apply your "
                                      "changes to the latest version and try again"));
}

bool dv_update_check_names(struct dv_cluster_operation *operation, void *value)
{
    struct dv_api_object_meta *meta = dv_meta_of(value);
    dv_str name = dv_entry_name(operation->entry);
    dv_str namespace = dv_entry_namespace(operation->entry);

    if (meta->name.n > 0 && !dv_str_eq(meta->name, name))
        return dv_cluster_operation_fail(
            operation, dv_status_bad_request(
                           operation->arena,
                           "the name of the object (%.*s) does not match the name on the URL "
                           "(%.*s)",
                           DV_FMT(meta->name), DV_FMT(name)));
    /* An object without a namespace loses what it says of one. */
    if (operation->request->kind->is_namespaced && meta->namespace.n > 0 &&
        !dv_str_eq(meta->namespace, namespace))
        return dv_cluster_operation_fail(
            operation, dv_status_bad_request(operation->arena,
                                             "the namespace of the provided object does not match "
                                             "the namespace sent on the request"));
    meta->name = name;
    meta->namespace = namespace;
    return true;
}

static bool is_about_webhooks(const struct dv_kind *kind)
{
    return kind->id == DV_KIND_VALIDATING_WEBHOOKS || kind->id == DV_KIND_MUTATING_WEBHOOKS;
}

/* Leases must name the version that they were read in, as in the reference: two who want to lead
 * would otherwise overwrite each other. Runtime classes must, too, webhook configurations, into
 * which others write the bundles of their CAs, definitions and the objects whose kinds they make.
 */
static bool needs_version(const struct dv_kind *kind)
{
    return kind->id == DV_KIND_LEASE || kind->id == DV_KIND_RUNTIME_CLASS ||
           kind->id == DV_KIND_CUSTOM_DEFINITION || dv_kind_is_custom(kind) ||
           is_about_webhooks(kind);
}

static bool is_about_rights(const struct dv_kind *kind)
{
    return kind->id == DV_KIND_ROLE || kind->id == DV_KIND_CLUSTER_ROLE ||
           kind->id == DV_KIND_ROLE_BINDING || kind->id == DV_KIND_CLUSTER_ROLE_BINDING;
}

static bool is_created_by_update(const struct dv_kind *kind)
{
    return kind->id == DV_KIND_LEASE || kind->id == DV_KIND_RUNTIME_CLASS ||
           is_about_rights(kind) || kind->id == DV_KIND_EVENT;
}

static bool fail_without_version(struct dv_cluster_operation *operation)
{
    struct dv_status_about about = dv_change_about(operation);
    struct dv_problem problem = {.type = DV_PROBLEM_INVALID,
                                 .field = DV_STR("metadata.resourceVersion"),
                                 .detail = DV_STR("Invalid value: 0: must be specified for an "
                                                  "update")};
    struct dv_problems problems = {.v = &problem, .n = 1, .arena = operation->arena};

    /* The reference's message names the resource here, and not the kind. */
    about.what = about.kind->plural;
    return dv_cluster_operation_fail(operation,
                                     dv_status_invalid(&about, &problems, operation->arena));
}

/* ---- ownership of fields ---- */

static struct dv_managed_fields managed_of(const struct dv_object *object)
{
    return (struct dv_managed_fields){.v = object->meta->managed_fields,
                                      .n = object->meta->n_managed_fields};
}

/* Sets managedFields. When nothing but their times would change, they stay as they were, so that an
 * update that changes nothing writes nothing. */
static void own_fields(struct dv_cluster_operation *operation, void *value,
                       const struct dv_managed_fields *applied)
{
    const struct dv_api_version *version = dv_update_version(operation);
    const struct dv_object *old = operation->entry->object;
    struct dv_manager manager = dv_update_manager(operation);
    struct dv_managed_fields before = managed_of(old);
    struct dv_managed_fields after = before;

    dv_meta_of(value)->managed_fields = before.v;
    dv_meta_of(value)->n_managed_fields = before.n;
    if (!applied && operation->request->is_untracked)
        return;
    if (applied)
        after = *applied;
    else if (!dv_message_eq(old->kind->versions[0].message, value, old->value))
        dv_apply_update(version->message, dv_change_stored(operation, old), value, &before,
                        &manager, operation->arena, &after);
    if (after.v != before.v) /* what is stored is packed already, and is not ours to change */
        dv_managed_fields_pack(old->kind, after.v, after.n, operation->arena);
    if (dv_managed_fields_eq(&before, &after) &&
        dv_message_eq(old->kind->versions[0].message, value, old->value))
        return;
    dv_meta_of(value)->managed_fields = after.v;
    dv_meta_of(value)->n_managed_fields = after.n;
}

/* ---- UPDATE ---- */

static bool update_admitted(struct dv_cluster_operation *operation, void *value)
{
    const struct dv_object *old = operation->entry->object;
    const struct dv_kind *kind = old->kind;
    struct dv_problems problems = {.arena = operation->arena};
    struct dv_status_about about = dv_change_about(operation);
    const struct dv_prepare how = {.now = dv_cluster_operation_now(operation),
                                   .gates = operation->embedded->options.gates,
                                   .arena = operation->arena};
    struct dv_validation what = {.kind = kind,
                                 .operation = operation->request->subresource == DV_SUB_STATUS
                                                  ? DV_UPDATE_STATUS
                                                  : DV_UPDATE,
                                 .version = dv_update_version(operation),
                                 .value = value,
                                 .old = old->value};

    struct dv_api_object_meta *meta = dv_meta_of(value);
    dv_str *finalizers = meta->finalizers;
    size_t n_finalizers = meta->n_finalizers;

    dv_change_dedup_owners(operation, value);
    dv_prepare_update(kind, what.operation, value, old->value, &how);
    dv_change_prepare_custom(operation, value, old);
    if (operation->request->sets_finalizers) {
        /* This is a write of the status, so dv_prepare_update has set them back. */
        meta->finalizers = finalizers;
        meta->n_finalizers = n_finalizers;
    }
    dv_change_check_admin_access(operation, &what, &problems);
    dv_validate_before_update(&what, &problems);
    dv_validate(&what, &problems);
    dv_change_check_custom(operation, value, old, &problems);
    if (problems.n > 0)
        return dv_cluster_operation_fail(operation,
                                         dv_status_invalid(&about, &problems, operation->arena));
    /* Pods are held to it when they are made: what is looked at cannot be changed later. */
    if (what.operation == DV_UPDATE && kind->id != DV_KIND_POD &&
        !dv_change_check_security(operation, value))
        return false;
    own_fields(operation, value, operation->managed);
    return dv_change_finish(operation, value);
}

bool dv_update_value(struct dv_cluster_operation *operation, void *value,
                     const struct dv_managed_fields *managed)
{
    const struct dv_object *old = operation->entry->object;
    struct dv_api_object_meta *meta = dv_meta_of(value);

    operation->managed = managed;
    meta->creation_timestamp = old->meta->creation_timestamp;
    meta->resource_version = old->meta->resource_version;
    return dv_change_default(operation, value) &&
           dv_change_admit_then(operation, value, update_admitted);
}

bool dv_update_change(struct dv_cluster_operation *operation)
{
    const struct dv_request *request = operation->request;
    struct dv_status_about about = dv_change_about(operation);
    void *value;

    if (!operation->entry->object)
        return dv_cluster_operation_fail(operation, dv_status_not_found(&about, operation->arena));
    value = dv_change_copy(operation);
    if (!request->change(request, value, operation->arena))
        return dv_cluster_operation_fail(
            operation, dv_status_conflict(&about, operation->arena,
                                          "the object has been modified; please apply your "
                                          "changes to the latest version and try again"));
    return dv_change_admit_then(operation, value, update_admitted);
}

void *dv_update_take_value(struct dv_cluster_operation *operation)
{
    const struct dv_request *request = operation->request;
    const struct dv_message *message = request->kind->versions[0].message;
    void *value = dv_arena_alloc_raw(operation->arena, message->size, message->align);

    if (request->gives_value)
        memcpy(value, request->value, message->size);
    else
        dv_message_copy(message, request->value, operation->arena, value);
    return value;
}

bool dv_update_run(struct dv_cluster_operation *operation)
{
    const struct dv_kind *kind = operation->request->kind;
    struct dv_status_about about = dv_change_about(operation);
    void *value = dv_update_take_value(operation);
    const struct dv_api_object_meta *meta = dv_meta_of(value);

    if (!dv_update_check_names(operation, value))
        return false;
    if (!operation->entry->object) {
        if (is_created_by_update(kind) && operation->request->subresource == DV_SUB_NONE)
            return dv_create_value(operation, value, NULL);
        return dv_cluster_operation_fail(operation, dv_status_not_found(&about, operation->arena));
    }
    if (!dv_update_check_uid(operation, meta->uid))
        return false;
    if (meta->resource_version.n == 0 && needs_version(kind))
        return fail_without_version(operation);
    if (!dv_update_check_version(operation, meta->resource_version))
        return false;
    return dv_update_value(operation, value, NULL);
}

bool dv_update_finalize(struct dv_cluster_operation *operation)
{
    const struct dv_api_namespace *wanted = operation->request->value;
    struct dv_status_about about = dv_change_about(operation);
    struct dv_api_namespace *namespace;

    if (!operation->entry->object)
        return dv_cluster_operation_fail(operation, dv_status_not_found(&about, operation->arena));
    if (!dv_update_check_uid(operation, wanted->metadata.uid) ||
        !dv_update_check_version(operation, wanted->metadata.resource_version))
        return false;
    namespace = dv_change_copy(operation);
    namespace->spec.finalizers = wanted->spec.finalizers;
    namespace->spec.n_finalizers = wanted->spec.n_finalizers;
    return dv_change_admit_then(operation, namespace, dv_change_finish);
}

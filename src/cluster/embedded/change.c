/* change.c - from a value to a write: what CREATE, UPDATE, PATCH and DELETE have in common once
 * they know what the object shall be. A small value is written at once; for a large one a worker
 * makes the object and its text (dv_change_make), and the loop only commits them. */
#include "cluster/embedded/change.h"

#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/cluster_pods.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/events.h"
#include "cluster/embedded/namespace_quota.h"
#include "cluster/embedded/update.h"
#include "cluster/objects/collection.h"
#include "resource/custom.h"
#include "resource/pod_security.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "store/store.h"

/* The ceiling of a message that lists fields which nobody knows. */
#define NOTES_BYTES_MAX 65536u

static const struct dv_kind *kind_of(const struct dv_cluster_operation *operation)
{
    return operation->entry->collection->kind;
}

struct dv_status_about dv_change_about(const struct dv_cluster_operation *operation)
{
    return (struct dv_status_about){.kind = kind_of(operation),
                                    .name = dv_entry_name(operation->entry)};
}

void *dv_change_copy(struct dv_cluster_operation *operation)
{
    const struct dv_message *message = kind_of(operation)->versions[0].message;
    void *copy = dv_arena_alloc_raw(operation->arena, message->size, message->align);

    memcpy(copy, operation->entry->object->value, message->size);
    return copy;
}

/* What was looked up for an earlier value of the operation does not count for this one. */
static void forget_admitted(struct dv_cluster_operation *operation)
{
    struct dv_object **found[] = {&operation->account, &operation->class, &operation->priority};

    for (size_t i = 0; i < DV_COUNT(found); i++) {
        dv_object_unref(*found[i]);
        *found[i] = NULL;
    }
    operation->takes_account = operation->takes_class = operation->takes_priority = false;
}

bool dv_change_admit(struct dv_cluster_operation *operation, const void *value)
{
    struct dv_request *request = operation->request  ? operation->request
                                 : operation->parent ? operation->parent->request
                                                     : NULL;
    struct dv_problems problems = {.arena = operation->arena};
    struct dv_status_about about = dv_change_about(operation);

    forget_admitted(operation);
    if (request && request->admit)
        request->admit(request, operation->entry->object, value, &problems);
    if (problems.n > 0)
        return dv_cluster_operation_fail(operation,
                                         dv_status_invalid(&about, &problems, operation->arena));
    if (value && !dv_default_priority_admit(operation, value))
        return false;
    if (!value || operation->entry->object)
        return true;
    return dv_account_admit(operation, value) && dv_priority_admit(operation, value) &&
           dv_runtime_class_admit(operation, value) && dv_service_admit(operation, value);
}

bool dv_change_admit_then(struct dv_cluster_operation *operation, void *value,
                          bool (*next)(struct dv_cluster_operation *operation, void *value))
{
    if (!operation->is_computing)
        return dv_change_admit(operation, value) && dv_change_mutate_then(operation, value, next);
    operation->value = value;
    operation->next = next;
    return true;
}

void dv_change_warn(struct dv_cluster_operation *operation, dv_str warning)
{
    dv_str *all;

    if (warning.n == 0)
        return;
    all = DV_NEW_ARRAY(operation->arena, dv_str, operation->n_warnings + 1);
    if (operation->n_warnings > 0)
        memcpy(all, operation->warnings, operation->n_warnings * sizeof(all[0]));
    all[operation->n_warnings++] = warning;
    operation->warnings = all;
}

void dv_change_dedup_owners(struct dv_cluster_operation *operation, void *value)
{
    dv_change_warn(operation, dv_dedup_owners(dv_meta_of(value), operation->arena));
}

/* ---- finalizers ---- */

bool dv_meta_remove_finalizer(struct dv_cluster_operation *operation,
                              struct dv_api_object_meta *meta, dv_str finalizer)
{
    dv_str *left;
    size_t n = 0;

    if (!dv_meta_has_finalizer(meta, finalizer))
        return false;
    left = DV_NEW_ARRAY(operation->arena, dv_str, meta->n_finalizers);
    for (size_t i = 0; i < meta->n_finalizers; i++)
        if (!dv_str_eq(meta->finalizers[i], finalizer))
            left[n++] = meta->finalizers[i];
    meta->finalizers = n > 0 ? left : NULL;
    meta->n_finalizers = n;
    return true;
}

/* Whether the object goes with this change: it was deleted before, and its last finalizer has been
 * removed. A pod with a grace period does not go by itself: its node deletes it once more, without
 * grace, when its containers have ended. */
static bool is_at_its_end(const struct dv_kind *kind, const struct dv_object *old, void *value)
{
    const int64_t *grace = old->meta->deletion_grace_period_seconds;

    if (dv_meta_of(value)->n_finalizers > 0 || !old->meta->deletion_timestamp.is_set)
        return false;
    if (kind->id == DV_KIND_NAMESPACE)
        return ((const struct dv_api_namespace *)value)->spec.n_finalizers == 0;
    return grace && *grace == 0;
}

/* ---- writes ---- */

void dv_change_make(struct dv_cluster_operation *operation)
{
    struct dv_result *result = &operation->result;
    struct dv_api_object_meta *meta = dv_meta_of(result->value);
    dv_str version = meta->resource_version;

    if (result->is_same || result->is_end || operation->is_dry_run)
        return;
    meta->resource_version = DV_VERSION_ROOM;
    result->made = dv_object_new(kind_of(operation), result->value);
    meta->resource_version = version;
    dv_buf_init(&result->row, DV_STORE_VALUE_BYTES_MAX);
    dv_encode_row(result->made, &result->row);
    result->is_unreadable =
        !result->row.is_over &&
        !dv_cluster_operation_check_row(operation, dv_buf_str(&result->row), &result->err);
}

/* Writes a change that was judged and not refused, once it fits the quotas of its namespace. */
static bool commit_judged(struct dv_cluster_operation *operation, void *value)
{
    const struct dv_result *result = &operation->result;

    if ((result->is_new || dv_quota_moves(operation)) && !dv_quota_admit(operation))
        return false;
    if (result->is_same)
        return dv_cluster_operation_answer(operation, operation->entry->object);
    operation->is_created = result->is_new;
    if (result->is_end || operation->is_dry_run) {
        operation->object = dv_object_new(kind_of(operation), value);
        operation->is_removed = result->is_end;
        if (operation->is_dry_run)
            return dv_cluster_operation_answer(operation, NULL);
        (void)dv_cluster_operation_remove(operation);
    } else {
        operation->object = dv_object_ref(dv_cluster_operation_put(operation, value));
    }
    return dv_cluster_operation_write(operation);
}

bool dv_change_commit(struct dv_cluster_operation *operation)
{
    const struct dv_result *result = &operation->result;
    const struct dv_api_object_meta *meta = dv_meta_of(result->value);

    /* A token may have been revoked, or the namespace deleted, while a worker computed the change
     * or somebody else was asked about it: both are looked at again. */
    if ((operation->work.run || operation->has_let_go) && operation->request &&
        operation->request->is_authentic && !operation->request->is_authentic(operation->request))
        return dv_cluster_operation_fail(operation, dv_status_unauthorized(operation->arena));
    if (result->is_new && operation->work.run && kind_of(operation)->is_namespaced &&
        !dv_change_check_namespace(operation, meta->namespace, meta->name))
        return false;
    if (result->is_new && kind_of(operation)->id == DV_KIND_EVENT &&
        !dv_events_have_room(operation->embedded))
        return dv_cluster_operation_fail(
            operation, dv_status_too_many_requests(
                           1, operation->arena,
                           "there are %zu Events, which is more than there may be: the "
                           "oldest are being removed, try again later",
                           operation->entry->collection->n));
    return dv_change_judge_then(operation, result->value, commit_judged);
}

bool dv_change_finish(struct dv_cluster_operation *operation, void *value)
{
    const struct dv_kind *kind = kind_of(operation);
    const struct dv_object *old = operation->entry->object;
    bool is_end = is_at_its_end(kind, old, value);

    /* The version takes no part in the comparison: it is the stored one, or the caller was refused
     * before. */
    dv_meta_of(value)->resource_version = old->meta->resource_version;
    operation->result = (struct dv_result){
        .value = value,
        .is_end = is_end,
        .is_same = !is_end && dv_message_eq(kind->versions[0].message, value, old->value),
    };
    return operation->is_computing || dv_change_commit(operation);
}

bool dv_change_create(struct dv_cluster_operation *operation, void *value)
{
    operation->result = (struct dv_result){.value = value, .is_new = true};
    return operation->is_computing || dv_change_commit(operation);
}

/* ---- kinds that definitions make ---- */

const struct dv_custom_version *dv_change_version(const struct dv_cluster_operation *operation)
{
    if (!operation->custom)
        return NULL;
    return operation->request && operation->request->version
               ? dv_custom_version_find(operation->custom, operation->request->version->version)
               : operation->custom->storage;
}

const void *dv_change_stored(const struct dv_cluster_operation *operation,
                             const struct dv_object *object)
{
    const struct dv_custom_version *version = dv_change_version(operation);

    return version ? dv_custom_shown(object, version, operation->arena) : object->value;
}

static bool fail_unknown(struct dv_cluster_operation *operation,
                         const struct dv_decode_notes *notes)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    const struct dv_kind *kind = kind_of(operation);

    dv_buf_init(&buf, NOTES_BYTES_MAX);
    for (size_t i = 0; i < notes->n; i++) {
        dv_buf_add_c(&buf, i > 0 ? ", " : "");
        dv_buf_add(&buf, notes->v[i]);
    }
    return dv_cluster_operation_fail(
        operation,
        dv_status_bad_request(operation->arena,
                              "%.*s in version \"%.*s\" cannot be handled as a %.*s: "
                              "strict decoding error: %.*s",
                              DV_FMT(kind->name), DV_FMT(dv_change_version(operation)->api.version),
                              DV_FMT(kind->name), DV_FMT(dv_buf_str(&buf))));
}

static void add_warnings(struct dv_cluster_operation *operation,
                         const struct dv_decode_notes *notes)
{
    dv_str *all = DV_NEW_ARRAY(operation->arena, dv_str, operation->n_warnings + notes->n);

    if (operation->n_warnings > 0)
        memcpy(all, operation->warnings, operation->n_warnings * sizeof(all[0]));
    if (notes->n > 0)
        memcpy(all + operation->n_warnings, notes->v, notes->n * sizeof(all[0]));
    operation->warnings = all;
    operation->n_warnings += notes->n;
}

static bool settle(struct dv_cluster_operation *operation, void *value)
{
    const struct dv_custom_version *version = dv_change_version(operation);
    enum dv_field_validation validation =
        operation->request ? operation->request->field_validation : DV_VALIDATE_IGNORE;
    struct dv_decode_notes notes = {0};

    if (!version)
        return dv_cluster_operation_fail(operation, dv_status_no_such_path(operation->arena));
    if (!dv_custom_settle(version, value, operation->arena, &notes))
        return dv_cluster_operation_fail(
            operation, dv_status_new(413, DV_STR("RequestEntityTooLarge"), operation->arena,
                                     "with the defaults of its schema the object is too large"));
    if (notes.n > 0 && validation == DV_VALIDATE_STRICT)
        return fail_unknown(operation, &notes);
    if (validation == DV_VALIDATE_WARN)
        add_warnings(operation, &notes);
    return true;
}

bool dv_change_default(struct dv_cluster_operation *operation, void *value)
{
    const struct dv_kind *kind = kind_of(operation);

    if (dv_kind_is_custom(kind))
        return settle(operation, value);
    dv_default(kind, dv_update_version(operation), value, dv_cluster_operation_now(operation),
               operation->arena);
    return true;
}

void dv_change_prepare_custom(struct dv_cluster_operation *operation, void *value,
                              const struct dv_object *old)
{
    const struct dv_custom_version *version = dv_change_version(operation);
    bool is_status = operation->request && operation->request->subresource == DV_SUB_STATUS;

    if (!version)
        return;
    if (old)
        dv_custom_prepare_update(version, is_status, value, dv_change_stored(operation, old),
                                 operation->arena);
    else
        dv_custom_prepare_create(version, value, operation->arena);
}

/* Compiles a definition that is written, because what cannot be compiled is refused. */
static void check_definition(const void *value, const struct dv_object *old,
                             struct dv_problems *problems)
{
    dv_custom_check_definition(value, old ? old->value : NULL, problems);
    if (problems->n == 0)
        dv_custom_unref(dv_custom_new(value, problems));
}

static void check_custom(struct dv_cluster_operation *operation,
                         const struct dv_custom_version *version, const void *value,
                         const struct dv_object *old, struct dv_problems *problems)
{
    struct dv_problems warnings = {.arena = operation->arena};

    dv_custom_check(version, value, old ? dv_change_stored(operation, old) : NULL, problems,
                    &warnings);
    for (size_t i = 0; i < warnings.n; i++)
        dv_change_warn(operation,
                       dv_str_printf(operation->arena, "%.*s: %.*s", DV_FMT(warnings.v[i].field),
                                     DV_FMT(warnings.v[i].detail)));
}

void dv_change_check_custom(struct dv_cluster_operation *operation, const void *value,
                            const struct dv_object *old, struct dv_problems *problems)
{
    const struct dv_custom_version *version = dv_change_version(operation);
    bool is_status = operation->request && operation->request->subresource == DV_SUB_STATUS;

    if (version)
        check_custom(operation, version, value, old, problems);
    else if (kind_of(operation)->id == DV_KIND_CUSTOM_DEFINITION && !is_status)
        check_definition(value, old, problems);
}

/* ---- namespaces ---- */

bool dv_change_check_namespace(struct dv_cluster_operation *operation, dv_str namespace,
                               dv_str name)
{
    const struct dv_kind *namespaces = dv_kind(DV_KIND_NAMESPACE);
    const struct dv_object *found =
        operation->is_computing
            ? operation->namespace
            : dv_embedded_get(operation->embedded, namespaces, DV_STR_NONE, namespace);
    struct dv_status_about about = {.kind = namespaces, .name = namespace};
    struct dv_api_status *failure;

    if (!found)
        return dv_cluster_operation_fail(operation, dv_status_not_found(&about, operation->arena));
    if (!found->meta->deletion_timestamp.is_set)
        return true;
    about = (struct dv_status_about){.kind = kind_of(operation), .name = name};
    failure = dv_status_forbidden(
        &about, operation->arena,
        "unable to create new content in namespace %.*s because it is being terminated",
        DV_FMT(namespace));
    dv_status_add_cause(
        failure, DV_STR("NamespaceTerminating"),
        dv_str_printf(operation->arena, "namespace %.*s is being terminated", DV_FMT(namespace)),
        DV_STR("metadata.namespace"), operation->arena);
    return dv_cluster_operation_fail(operation, failure);
}

/* The metadata of the namespace that the object is in; NULL: there is none. */
static const struct dv_api_object_meta *namespace_of(const struct dv_cluster_operation *operation)
{
    const struct dv_object *namespace =
        operation->is_computing
            ? operation->namespace
            : dv_embedded_get(operation->embedded, dv_kind(DV_KIND_NAMESPACE), DV_STR_NONE,
                              dv_entry_namespace(operation->entry));

    return namespace ? namespace->meta : NULL;
}

void dv_change_check_admin_access(const struct dv_cluster_operation *operation,
                                  const struct dv_validation *what, struct dv_problems *problems)
{
    if (what->kind->id == DV_KIND_CLAIM || what->kind->id == DV_KIND_TEMPLATE)
        dv_validate_admin_access(what, namespace_of(operation), problems);
}

bool dv_change_check_security(struct dv_cluster_operation *operation, const void *value)
{
    const struct dv_kind *kind = kind_of(operation);
    const struct dv_api_pod_template_spec *template = dv_pod_template_of(kind, value);
    const struct dv_api_pod *pod = kind->id == DV_KIND_POD ? value : NULL;
    const struct dv_api_object_meta *meta = pod ? &pod->metadata : NULL;
    const struct dv_api_object_meta *namespace;
    dv_str found = DV_STR_NONE;

    if (template)
        meta = &template->metadata;
    if (!meta)
        return true;
    namespace = namespace_of(operation);
    if (pod)
        found = dv_pod_security_violations(namespace, DV_POD_SECURITY_ENFORCE, meta, &pod->spec,
                                           operation->arena);
    if (found.n > 0) {
        struct dv_status_about about = dv_change_about(operation);

        return dv_cluster_operation_fail(
            operation,
            dv_status_forbidden(&about, operation->arena, "violates %.*s", DV_FMT(found)));
    }
    found = dv_pod_security_violations(namespace, DV_POD_SECURITY_WARN, meta,
                                       pod ? &pod->spec : &template->spec, operation->arena);
    if (found.n > 0)
        dv_change_warn(operation,
                       dv_str_printf(operation->arena, "would violate %.*s", DV_FMT(found)));
    return true;
}

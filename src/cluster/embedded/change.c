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
#include "cluster/embedded/engine.h"
#include "cluster/embedded/events.h"
#include "cluster/objects/shelf.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "store/store.h"

static const struct dv_kind *kind_of(const struct dv_op *op)
{
    return op->entry->shelf->kind;
}

struct dv_status_about dv_change_about(const struct dv_op *op)
{
    return (struct dv_status_about){.kind = kind_of(op), .name = dv_entry_name(op->entry)};
}

void *dv_change_copy(struct dv_op *op)
{
    const struct dv_message *message = kind_of(op)->versions[0].message;
    void *copy = dv_arena_alloc_raw(op->arena, message->size, message->align);

    memcpy(copy, op->entry->object->value, message->size);
    return copy;
}

bool dv_change_admit(struct dv_op *op, const void *value)
{
    struct dv_request *request = op->request  ? op->request
                                 : op->parent ? op->parent->request
                                              : NULL;
    struct dv_problems problems = {.arena = op->arena};
    struct dv_status_about about = dv_change_about(op);

    if (!request || !request->admit)
        return true;
    request->admit(request, op->entry->object, value, &problems);
    return problems.n == 0 || dv_op_fail(op, dv_status_invalid(&about, &problems, op->arena));
}

bool dv_change_admit_then(struct dv_op *op, void *value,
                          bool (*next)(struct dv_op *op, void *value))
{
    if (!op->is_computing)
        return dv_change_admit(op, value) && next(op, value);
    op->value = value;
    op->next = next;
    return true;
}

void dv_change_dedup_owners(struct dv_op *op, void *value)
{
    dv_str warning = dv_dedup_owners(dv_meta_of(value), op->arena);
    dv_str *all;

    if (warning.n == 0)
        return;
    all = DV_NEW_ARRAY(op->arena, dv_str, op->n_warnings + 1);
    if (op->n_warnings > 0)
        memcpy(all, op->warnings, op->n_warnings * sizeof(all[0]));
    all[op->n_warnings++] = warning;
    op->warnings = all;
}

/* ---- finalizers ---- */

bool dv_meta_remove_finalizer(struct dv_op *op, struct dv_api_object_meta *meta, dv_str finalizer)
{
    dv_str *left;
    size_t n = 0;

    if (!dv_meta_has_finalizer(meta, finalizer))
        return false;
    left = DV_NEW_ARRAY(op->arena, dv_str, meta->n_finalizers);
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

void dv_change_make(struct dv_op *op)
{
    struct dv_result *result = &op->result;
    struct dv_api_object_meta *meta = dv_meta_of(result->value);
    dv_str version = meta->resource_version;

    if (result->is_same || result->is_end || op->is_dry_run)
        return;
    meta->resource_version = DV_VERSION_ROOM;
    result->made = dv_object_new(kind_of(op), result->value);
    meta->resource_version = version;
    dv_buf_init(&result->text, DV_STORE_VALUE_BYTES_MAX);
    dv_encode_json_text(kind_of(op)->versions[0].message, result->made->value, NULL, DV_STR_NONE,
                        &result->text);
    result->is_unreadable =
        !result->text.is_over && !dv_op_check_text(op, dv_buf_str(&result->text), &result->err);
}

bool dv_change_commit(struct dv_op *op)
{
    const struct dv_result *result = &op->result;
    void *value = result->value;
    const struct dv_api_object_meta *meta = dv_meta_of(value);

    /* A token may have been revoked, or the namespace deleted, while a worker computed the change:
     * both are looked at again. */
    if (op->work.run && op->request && op->request->is_authentic &&
        !op->request->is_authentic(op->request))
        return dv_op_fail(op, dv_status_unauthorized(op->arena));
    if (result->is_new && op->work.run && kind_of(op)->is_namespaced &&
        !dv_change_check_namespace(op, meta->namespace, meta->name))
        return false;
    if (result->is_new && kind_of(op)->id == DV_KIND_EVENT && !dv_events_have_room(op->embedded))
        return dv_op_fail(op, dv_status_too_many_requests(
                                  1, op->arena,
                                  "there are %zu Events, which is more than there may be: the "
                                  "oldest are being removed, try again later",
                                  op->entry->shelf->n));
    if (result->is_same)
        return dv_op_answer(op, op->entry->object);
    op->is_created = result->is_new;
    if (result->is_end || op->is_dry_run) {
        op->object = dv_object_new(kind_of(op), value);
        op->is_removed = result->is_end;
        if (op->is_dry_run)
            return dv_op_answer(op, NULL);
        (void)dv_op_remove(op);
    } else {
        op->object = dv_object_ref(dv_op_put(op, value));
    }
    return dv_op_write(op);
}

bool dv_change_finish(struct dv_op *op, void *value)
{
    const struct dv_kind *kind = kind_of(op);
    const struct dv_object *old = op->entry->object;
    bool is_end = is_at_its_end(kind, old, value);

    /* The version takes no part in the comparison: it is the stored one, or the caller was refused
     * before. */
    dv_meta_of(value)->resource_version = old->meta->resource_version;
    op->result = (struct dv_result){
        .value = value,
        .is_end = is_end,
        .is_same = !is_end && dv_message_eq(kind->versions[0].message, value, old->value),
    };
    return op->is_computing || dv_change_commit(op);
}

bool dv_change_create(struct dv_op *op, void *value)
{
    op->result = (struct dv_result){.value = value, .is_new = true};
    return op->is_computing || dv_change_commit(op);
}

/* ---- namespaces ---- */

bool dv_change_check_namespace(struct dv_op *op, dv_str namespace, dv_str name)
{
    const struct dv_kind *namespaces = dv_kind(DV_KIND_NAMESPACE);
    const struct dv_object *found =
        op->is_computing ? op->namespace
                         : dv_embedded_get(op->embedded, namespaces, DV_STR_NONE, namespace);
    struct dv_status_about about = {.kind = namespaces, .name = namespace};
    struct dv_api_status *failure;

    if (!found)
        return dv_op_fail(op, dv_status_not_found(&about, op->arena));
    if (!found->meta->deletion_timestamp.is_set)
        return true;
    about = (struct dv_status_about){.kind = kind_of(op), .name = name};
    failure = dv_status_forbidden(
        &about, op->arena,
        "unable to create new content in namespace %.*s because it is being terminated",
        DV_FMT(namespace));
    dv_status_add_cause(
        failure, DV_STR("NamespaceTerminating"),
        dv_str_printf(op->arena, "namespace %.*s is being terminated", DV_FMT(namespace)),
        DV_STR("metadata.namespace"), op->arena);
    return dv_op_fail(op, failure);
}

void dv_change_check_admin_access(const struct dv_op *op, const struct dv_validation *what,
                                  struct dv_problems *problems)
{
    const struct dv_object *namespace;

    if (what->kind->id != DV_KIND_CLAIM && what->kind->id != DV_KIND_TEMPLATE)
        return;
    namespace = op->is_computing ? op->namespace
                                 : dv_embedded_get(op->embedded, dv_kind(DV_KIND_NAMESPACE),
                                                   DV_STR_NONE, dv_entry_namespace(op->entry));
    dv_validate_admin_access(what, namespace ? namespace->meta : NULL, problems);
}

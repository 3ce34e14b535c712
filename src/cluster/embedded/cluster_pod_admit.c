/* cluster_pod_admit.c - what pods that are created get from their service account, PriorityClass
 * and RuntimeClass, as the reference's admission plugins of these names have it. These objects are
 * looked up on the loop; what they say may be applied by a worker. */
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cluster/embedded.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/cluster_pods.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/update.h"
#include "cluster/objects/collection.h"
#include "resource/prepare.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "resource/status.h"

static bool refuse(struct dv_cluster_operation *operation, const char *why)
{
    struct dv_status_about about = dv_change_about(operation);

    return dv_cluster_operation_fail(operation,
                                     dv_status_forbidden(&about, operation->arena, "%s", why));
}

bool dv_account_admit(struct dv_cluster_operation *operation, const void *value)
{
    const struct dv_embedded *embedded = operation->embedded;
    const struct dv_api_pod *pod = value;
    dv_str namespace;
    dv_str name;

    if (!embedded->options.has_accounts || operation->entry->collection->kind->id != DV_KIND_POD)
        return true;
    if (dv_pod_is_mirror(pod)) {
        const char *fault = dv_mirror_pod_fault(pod);

        return !fault || refuse(operation, fault);
    }
    namespace = pod->metadata.namespace;
    name = pod->spec.service_account_name.n > 0 ? pod->spec.service_account_name
                                                : DV_STR(DV_DEFAULT_ACCOUNT);
    operation->account =
        dv_embedded_get(embedded, dv_kind(DV_KIND_SERVICE_ACCOUNT), namespace, name);
    if (operation->account)
        operation->account = dv_object_ref(operation->account);
    /* The default one of a new namespace is about to be made: the reference waits for it a while,
     * and here the pod goes ahead. It says nothing, or it would have been made by somebody. */
    else if (!dv_str_eq(name, DV_STR(DV_DEFAULT_ACCOUNT)))
        return refuse(operation,
                      dv_str_printf(operation->arena,
                                    "error looking up service account %.*s/%.*s: serviceaccount "
                                    "\"%.*s\" not found",
                                    DV_FMT(namespace), DV_FMT(name), DV_FMT(name))
                          .p);
    operation->takes_account = true;
    return true;
}

void dv_account_apply(struct dv_cluster_operation *operation, void *value)
{
    dv_pod_add_account(value, operation->account ? operation->account->value : NULL,
                       dv_generate_name(DV_STR(DV_API_ACCESS_VOLUME), operation->arena),
                       operation->arena);
}

/* ---- priorities ---- */

/* The class of pods that name none: of several the one with the lowest value. `but` is the name of
 * a class that is not looked at. NULL: there is none. */
static struct dv_object *default_priority(const struct dv_embedded *embedded, dv_str but)
{
    struct dv_collection_range range =
        dv_collection_range(&embedded->collections[DV_KIND_PRIORITY_CLASS], DV_STR_NONE);
    struct dv_object *found = NULL;
    struct dv_entry *entry;

    while ((entry = dv_collection_range_next(&range)) != NULL) {
        struct dv_object *object = dv_entry_object(entry);
        const struct dv_api_priority_class *class = object->value;

        if (!class->global_default || dv_str_eq(class->metadata.name, but))
            continue;
        if (!found || class->value < ((const struct dv_api_priority_class *)found->value)->value)
            found = object;
    }
    return found;
}

bool dv_default_priority_admit(struct dv_cluster_operation *operation, const void *value)
{
    const struct dv_api_priority_class *class = value;
    const struct dv_object *other;

    if (!operation->embedded->options.has_accounts ||
        operation->entry->collection->kind->id != DV_KIND_PRIORITY_CLASS || !class->global_default)
        return true;
    other = default_priority(operation->embedded, dv_entry_name(operation->entry));
    return !other || refuse(operation, dv_str_printf(operation->arena,
                                                     "PriorityClass %.*s is already marked as "
                                                     "default. Only one default can exist",
                                                     DV_FMT(other->meta->name))
                                           .p);
}

bool dv_priority_admit(struct dv_cluster_operation *operation, const void *value)
{
    const struct dv_embedded *embedded = operation->embedded;
    const struct dv_api_pod *pod = value;
    dv_str name;

    if (!embedded->options.has_accounts || operation->entry->collection->kind->id != DV_KIND_POD)
        return true;
    name = pod->spec.priority_class_name;
    operation->priority =
        name.n > 0 ? dv_embedded_get(embedded, dv_kind(DV_KIND_PRIORITY_CLASS), DV_STR_NONE, name)
                   : default_priority(embedded, DV_STR_NONE);
    if (name.n > 0 && !operation->priority)
        return refuse(operation,
                      dv_str_printf(operation->arena, "no PriorityClass with name %.*s was found",
                                    DV_FMT(name))
                          .p);
    if (operation->priority)
        operation->priority = dv_object_ref(operation->priority);
    operation->takes_priority = true;
    return true;
}

bool dv_priority_apply(struct dv_cluster_operation *operation, void *value)
{
    const char *fault = NULL;

    if (operation->takes_priority)
        fault = dv_pod_add_priority(value, operation->priority ? operation->priority->value : NULL,
                                    operation->arena);
    return !fault || refuse(operation, fault);
}

/* ---- runtime classes ---- */

bool dv_runtime_class_admit(struct dv_cluster_operation *operation, const void *value)
{
    const struct dv_api_pod *pod = value;
    dv_str name;

    if (operation->entry->collection->kind->id != DV_KIND_POD)
        return true;
    operation->takes_class = true;
    name = pod->spec.runtime_class_name;
    if (!name.p)
        return true;
    operation->class =
        dv_embedded_get(operation->embedded, dv_kind(DV_KIND_RUNTIME_CLASS), DV_STR_NONE, name);
    if (!operation->class)
        return refuse(operation,
                      dv_str_printf(operation->arena,
                                    "pod rejected: RuntimeClass \"%.*s\" not found", DV_FMT(name))
                          .p);
    operation->class = dv_object_ref(operation->class);
    return true;
}

bool dv_runtime_class_apply(struct dv_cluster_operation *operation, void *value)
{
    const char *fault = NULL;

    if (operation->class)
        fault = dv_pod_add_runtime_class(value, operation->class->value, operation->arena);
    return !fault || refuse(operation, fault);
}

bool dv_runtime_class_check(struct dv_cluster_operation *operation, const void *value)
{
    const char *fault = NULL;

    if (operation->takes_class)
        fault = dv_pod_overhead_fault(value, operation->class ? operation->class->value : NULL);
    return !fault || refuse(operation, fault);
}

/* cluster_pod_admit.c - what pods that are created get from their service account and their
 * RuntimeClass, as the reference's admission plugins of these names have it. Both objects are
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

/* cluster_pod_admit.c - service accounts of pods that are created, as the reference's admission
 * plugin ServiceAccount has it. The account is looked up on the loop; what it says may be applied
 * by a worker. */
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cluster/embedded.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/cluster_pods.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/update.h"
#include "cluster/objects/shelf.h"
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

    if (!embedded->options.has_accounts || operation->entry->shelf->kind->id != DV_KIND_POD)
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

/* cluster_request.c - the entry of requests into the embedded API: which verb is done by which
 * function, and what becomes of a request that its caller cancels. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/cluster_pods.h"
#include "cluster/embedded/delete.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/update.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "resource/status.h"

static void get(struct dv_cluster_operation *operation)
{
    const struct dv_request *request = operation->request;
    struct dv_object *object =
        dv_embedded_get(operation->embedded, request->kind, request->namespace, request->name);
    struct dv_status_about about = {.kind = request->kind, .name = request->name};

    if (object)
        (void)dv_cluster_operation_answer(operation, object);
    else
        (void)dv_cluster_operation_fail(operation, dv_status_not_found(&about, operation->arena));
}

static void start_named(struct dv_cluster_operation *operation,
                        bool (*run)(struct dv_cluster_operation *operation))
{
    const struct dv_request *request = operation->request;

    dv_cluster_operation_start(operation, request->kind, request->namespace, request->name, run);
}

static void start_delete(struct dv_cluster_operation *operation,
                         void (*start)(struct dv_cluster_operation *operation))
{
    struct dv_api_status *failure =
        dv_delete_check_options(operation->delete_options, operation->arena);

    dv_delete_warn(operation);
    if (failure)
        (void)dv_cluster_operation_fail(operation, failure);
    else if (start)
        start(operation);
    else
        start_named(operation, dv_delete_run);
}

static bool is_served(const struct dv_request *request)
{
    switch (request->subresource) {
    case DV_SUB_NONE:
        return true;
    case DV_SUB_STATUS:
        return request->kind->has_status &&
               (request->verb == DV_VERB_GET || request->verb == DV_VERB_UPDATE ||
                request->verb == DV_VERB_PATCH);
    case DV_SUB_BINDING:
    case DV_SUB_EVICTION:
        return request->kind->id == DV_KIND_POD && request->verb == DV_VERB_CREATE;
    case DV_SUB_FINALIZE:
        return request->kind->id == DV_KIND_NAMESPACE && request->verb == DV_VERB_UPDATE;
    case DV_SUB_SCALE:
        return request->kind->has_scale &&
               (request->verb == DV_VERB_UPDATE || request->verb == DV_VERB_PATCH);
    case DV_SUB_TOKEN:
        return request->kind->id == DV_KIND_SERVICE_ACCOUNT && request->verb == DV_VERB_CREATE;
    }
    return false;
}

static void start_create(struct dv_cluster_operation *operation)
{
    operation->is_computable = operation->request->subresource == DV_SUB_BINDING;
    if (operation->request->subresource == DV_SUB_BINDING)
        start_named(operation, dv_cluster_pod_bind);
    else if (operation->request->subresource == DV_SUB_EVICTION)
        start_named(operation, dv_cluster_pod_evict);
    else if (operation->request->subresource == DV_SUB_TOKEN)
        dv_cluster_token_start(operation);
    else
        dv_create_start(operation);
}

static void start(struct dv_cluster_operation *operation)
{
    const struct dv_request *request = operation->request;

    if (!is_served(request)) {
        (void)dv_cluster_operation_fail(operation, dv_status_method_not_allowed(operation->arena));
        return;
    }
    if (request->subresource == DV_SUB_SCALE) {
        operation->is_computable = dv_kind_is_custom(request->kind);
        start_named(operation, dv_scale_run);
        return;
    }
    switch (request->verb) {
    case DV_VERB_GET:
        get(operation);
        return;
    case DV_VERB_CREATE:
        start_create(operation);
        return;
    case DV_VERB_UPDATE:
        operation->is_computable = request->subresource != DV_SUB_FINALIZE;
        start_named(operation,
                    request->subresource == DV_SUB_FINALIZE ? dv_update_finalize : dv_update_run);
        return;
    case DV_VERB_PATCH:
        operation->is_computable = true;
        start_named(operation, request->change ? dv_update_change : dv_patch_run);
        return;
    case DV_VERB_DELETE:
        start_delete(operation, NULL);
        return;
    case DV_VERB_DELETE_COLLECTION:
        start_delete(operation, dv_delete_collection);
        return;
    }
}

void dv_engine_release_held(struct dv_embedded *embedded)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&embedded->held)) != NULL)
        start(DV_CONTAINER(link, struct dv_cluster_operation, link));
}

void dv_embedded_request_start(struct dv_cluster *cluster, struct dv_request *request)
{
    struct dv_embedded *embedded = DV_CONTAINER(cluster, struct dv_embedded, cluster);
    struct dv_cluster_operation *operation = dv_cluster_operation_new(embedded, request);

    if (embedded->is_closing)
        (void)dv_cluster_operation_fail(operation, dv_status_new(503, DV_STR("ServiceUnavailable"),
                                                                 operation->arena,
                                                                 "the server is shutting down"));
    else if (!embedded->is_ready)
        dv_list_push(&embedded->held, &operation->link);
    else
        start(operation);
}

void dv_embedded_request_cancel(struct dv_cluster *cluster, struct dv_request *request)
{
    struct dv_embedded *embedded = DV_CONTAINER(cluster, struct dv_embedded, cluster);
    struct dv_cluster_operation *operation = request->priv;
    const struct dv_api_status *failure;

    if (!operation || dv_cluster_operation_has_ended(operation))
        return;
    /* A worker, or who judges it, still reads the request: its caller is told when they have
     * ended. */
    if (operation->is_computing || operation->after_answer) {
        operation->is_given_up = true;
        return;
    }
    if (operation->entry ? dv_cluster_operation_is_waiting(operation)
                         : dv_link_is_in(&operation->link)) {
        dv_cluster_operation_leave(operation);
    } else {
        /* It is being written, or a token is: the caller is told now, and that ends by itself. */
        operation->request = NULL;
        operation = dv_cluster_operation_new(embedded, request);
    }
    failure = dv_status_new(499, DV_STR_NONE, operation->arena, "the request was cancelled");
    (void)dv_cluster_operation_fail(operation, failure);
}

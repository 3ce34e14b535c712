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
#include "cluster/embedded/collection.h"
#include "cluster/embedded/delete.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/update.h"
#include "resource/resource.h"
#include "resource/status.h"

static void get(struct dv_op *op)
{
    const struct dv_request *request = op->request;
    struct dv_object *object =
        dv_embedded_get(op->embedded, request->kind, request->namespace, request->name);
    struct dv_status_about about = {.kind = request->kind, .name = request->name};

    if (object)
        (void)dv_op_answer(op, object);
    else
        (void)dv_op_fail(op, dv_status_not_found(&about, op->arena));
}

static void start_named(struct dv_op *op, bool (*run)(struct dv_op *op))
{
    const struct dv_request *request = op->request;

    dv_op_start(op, request->kind, request->namespace, request->name, run);
}

static void start_delete(struct dv_op *op, void (*start)(struct dv_op *op))
{
    struct dv_api_status *failure = dv_delete_check_options(op->delete_options, op->arena);

    if (failure)
        (void)dv_op_fail(op, failure);
    else if (start)
        start(op);
    else
        start_named(op, dv_delete_run);
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
    }
    return false;
}

static void start_create(struct dv_op *op)
{
    op->is_computable = op->request->subresource == DV_SUB_BINDING;
    if (op->request->subresource == DV_SUB_BINDING)
        start_named(op, dv_pods_bind);
    else if (op->request->subresource == DV_SUB_EVICTION)
        start_named(op, dv_pods_evict);
    else
        dv_create_start(op);
}

static void start(struct dv_op *op)
{
    const struct dv_request *request = op->request;

    if (!is_served(request)) {
        (void)dv_op_fail(op, dv_status_method_not_allowed(op->arena));
        return;
    }
    switch (request->verb) {
    case DV_VERB_GET:
        get(op);
        return;
    case DV_VERB_CREATE:
        start_create(op);
        return;
    case DV_VERB_UPDATE:
        op->is_computable = request->subresource != DV_SUB_FINALIZE;
        start_named(op,
                    request->subresource == DV_SUB_FINALIZE ? dv_update_finalize : dv_update_run);
        return;
    case DV_VERB_PATCH:
        op->is_computable = true;
        start_named(op, dv_patch_run);
        return;
    case DV_VERB_DELETE:
        start_delete(op, NULL);
        return;
    case DV_VERB_DELETE_COLLECTION:
        start_delete(op, dv_collection_delete);
        return;
    }
}

void dv_engine_release_held(struct dv_embedded *embedded)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&embedded->held)) != NULL)
        start(DV_CONTAINER(link, struct dv_op, link));
}

void dv_embedded_request_start(struct dv_cluster *cluster, struct dv_request *request)
{
    struct dv_embedded *embedded = DV_CONTAINER(cluster, struct dv_embedded, cluster);
    struct dv_op *op = dv_op_new(embedded, request);

    if (embedded->is_closing)
        (void)dv_op_fail(op, dv_status_new(503, DV_STR("ServiceUnavailable"), op->arena,
                                           "the server is shutting down"));
    else if (!embedded->is_ready)
        dv_list_push(&embedded->held, &op->link);
    else
        start(op);
}

void dv_embedded_request_cancel(struct dv_cluster *cluster, struct dv_request *request)
{
    struct dv_embedded *embedded = DV_CONTAINER(cluster, struct dv_embedded, cluster);
    struct dv_op *op = request->priv;
    const struct dv_api_status *failure;

    if (!op || dv_op_has_ended(op))
        return;
    /* The worker still reads the request, so its caller is told when the worker has ended. */
    if (op->is_computing) {
        op->is_given_up = true;
        return;
    }
    if (op->entry ? dv_op_is_waiting(op) : dv_link_is_in(&op->link)) {
        dv_op_leave(op);
    } else { /* it is being written: the caller is told now, and the write ends by itself */
        op->request = NULL;
        op = dv_op_new(embedded, request);
    }
    failure = dv_status_new(499, DV_STR_NONE, op->arena, "the request was cancelled");
    (void)dv_op_fail(op, failure);
}

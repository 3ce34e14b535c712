/* cluster_work.c - large writes are computed on a worker.
 *
 * The operation holds its name, so what is stored under it stays as it is. `run` then only looks at
 * the request, at that object and at what the operation was given for it, and ends in a failure, an
 * answer or a result; all else is done on the loop when the worker is through. */
#include <stdbool.h>

#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/collection.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/status.h"

/* An object of a kind that a definition made is checked by its schema and its rules, which take
 * long also when the object is small. */
static bool takes_long(const struct dv_cluster_operation *operation)
{
    return operation->custom != NULL;
}

static bool is_large(const struct dv_cluster_operation *operation)
{
    const struct dv_object *object = operation->entry->object;
    size_t bytes_max = operation->embedded->options.worker_bytes;

    return operation->request->size_bytes > bytes_max || (object && object->size_bytes > bytes_max);
}

static void compute(struct dv_work *work)
{
    struct dv_cluster_operation *operation = DV_CONTAINER(work, struct dv_cluster_operation, work);
    bool (*next)(struct dv_cluster_operation *, void *) = operation->next;

    operation->next = NULL;
    if (next)
        (void)next(operation, operation->value); /* its result is in the operation */
    else
        (void)operation->run(operation);
    if (operation->result.value)
        dv_change_make(operation);
}

/* Starts the worker. The name stays held, as for a write. */
static bool compute_next(struct dv_cluster_operation *operation)
{
    operation->is_computing = true;
    dv_work_start(&operation->work, operation->embedded->cluster.loop);
    return true;
}

bool dv_cluster_operation_compute(struct dv_cluster_operation *operation, void *value,
                                  bool (*next)(struct dv_cluster_operation *operation, void *value))
{
    if (!operation->work.run)
        return next(operation, value);
    operation->value = value;
    operation->next = next;
    return compute_next(operation);
}

static void on_computed(struct dv_work *work, const struct dv_err *err)
{
    struct dv_cluster_operation *operation = DV_CONTAINER(work, struct dv_cluster_operation, work);
    struct dv_entry *entry = operation->entry;
    struct dv_object *answer = operation->answer;
    bool (*next)(struct dv_cluster_operation *, void *) = operation->next;
    bool is_writing = false;

    (void)err; /* the job cannot fail: nobody cancels it */
    operation->is_computing = false;
    operation->answer = NULL;
    operation->next = NULL;
    if (operation->is_given_up)
        (void)dv_cluster_operation_fail(operation, dv_status_new(499, DV_STR_NONE, operation->arena,
                                                                 "the request was cancelled"));
    else if (answer)
        operation->object = dv_object_ref(answer);
    else if (next)
        is_writing = dv_change_admit_then(operation, operation->value, next);
    else if (!operation->failure)
        is_writing = dv_change_commit(operation);
    dv_cluster_operation_worked(operation, entry, is_writing);
}

bool dv_cluster_operation_work(struct dv_cluster_operation *operation)
{
    struct dv_embedded *embedded = operation->embedded;
    struct dv_object *namespace;

    if (!operation->is_computable || (!is_large(operation) && !takes_long(operation)))
        return false;
    namespace = operation->request->namespace.n > 0
                    ? dv_embedded_get(embedded, dv_kind(DV_KIND_NAMESPACE), DV_STR_NONE,
                                      operation->request->namespace)
                    : NULL;
    operation->namespace = namespace ? dv_object_ref(namespace) : NULL;
    operation->now = dv_engine_now(embedded);
    operation->work.run = compute;
    operation->work.done = on_computed;
    return compute_next(operation);
}

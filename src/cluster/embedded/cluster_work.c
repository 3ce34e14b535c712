/* cluster_work.c - large writes are computed on a worker.
 *
 * The op holds its name, so what is stored under it stays as it is. `run` then only looks at the
 * request, at that object and at what the op was given for it, and ends in a failure, an answer or
 * a result; all else is done on the loop when the worker is through. */
#include <stdbool.h>

#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/shelf.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/status.h"

static bool is_large(const struct dv_op *op)
{
    const struct dv_object *object = op->entry->object;
    size_t bytes_max = op->embedded->options.worker_bytes;

    return op->request->size_bytes > bytes_max || (object && object->size_bytes > bytes_max);
}

static void compute(struct dv_work *work)
{
    struct dv_op *op = DV_CONTAINER(work, struct dv_op, work);
    bool (*next)(struct dv_op *, void *) = op->next;

    op->next = NULL;
    if (next)
        (void)next(op, op->value); /* its result is in the operation */
    else
        (void)op->run(op);
    if (op->result.value)
        dv_change_make(op);
}

/* Starts the worker. The name stays held, as for a write. */
static bool compute_next(struct dv_op *op)
{
    op->is_computing = true;
    dv_work_start(&op->work, op->embedded->cluster.loop);
    return true;
}

static void on_computed(struct dv_work *work, const struct dv_err *err)
{
    struct dv_op *op = DV_CONTAINER(work, struct dv_op, work);
    struct dv_entry *entry = op->entry;
    struct dv_object *answer = op->answer;
    bool is_writing = false;

    (void)err; /* the job cannot fail: nobody cancels it */
    op->is_computing = false;
    op->answer = NULL;
    if (op->is_given_up)
        (void)dv_op_fail(op,
                         dv_status_new(499, DV_STR_NONE, op->arena, "the request was cancelled"));
    else if (answer)
        op->object = dv_object_ref(answer);
    else if (op->next && dv_change_admit(op, op->value))
        is_writing = compute_next(op);
    else if (!op->next && !op->failure)
        is_writing = dv_change_commit(op);
    dv_op_worked(op, entry, is_writing);
}

bool dv_op_work(struct dv_op *op)
{
    struct dv_embedded *embedded = op->embedded;
    struct dv_object *namespace;

    if (!op->is_computable || !is_large(op))
        return false;
    namespace = op->request->namespace.n > 0 ? dv_embedded_get(embedded, dv_kind(DV_KIND_NAMESPACE),
                                                               DV_STR_NONE, op->request->namespace)
                                             : NULL;
    op->namespace = namespace ? dv_object_ref(namespace) : NULL;
    op->now = dv_engine_now(embedded);
    op->work.run = compute;
    op->work.done = on_computed;
    return compute_next(op);
}

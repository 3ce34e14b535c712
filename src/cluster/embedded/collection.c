/* collection.c - the verb DELETE_COLLECTION: lists what is selected and deletes each object by an
 * operation of its own, a few hundred at a time. The answer comes when all are done. */
#include "cluster/embedded/collection.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/delete.h"
#include "resource/resource.h"
#include "resource/status.h"

/* How many deletions of one collection are under way together. */
#define N_RUNNING_MAX 256u

struct collection {
    struct dv_op *op;
    size_t n_started;
    size_t n_running;
};

static void go_on(struct collection *collection);

/* Whether a deletion has failed. An object that is gone already (404), or was replaced by another
 * (409), is no failure of the collection. */
static bool is_failure(const struct dv_api_status *failure)
{
    return failure && failure->code != 404 && failure->code != 409;
}

static void on_deleted(struct dv_op *child)
{
    struct collection *collection = child->ctx;
    struct dv_op *op = collection->op;

    collection->n_running--;
    if (is_failure(child->failure) && !op->failure)
        op->failure =
            dv_status_new((int)child->failure->code, dv_str_copy(child->failure->reason, op->arena),
                          op->arena, "%.*s", DV_FMT(child->failure->message));
    go_on(collection);
}

/* Deletes one object. Nothing more is deleted for a caller who has cancelled: whether it may be
 * deleted can no longer be asked. */
static bool run(struct dv_op *child)
{
    if (!child->parent->request)
        return dv_op_fail(
            child, dv_status_new(499, DV_STR_NONE, child->arena, "the request was cancelled"));
    return dv_delete_run(child);
}

static void start_one(struct collection *collection, const struct dv_object *object)
{
    struct dv_op *op = collection->op;
    struct dv_op *child = dv_op_new(op->embedded, NULL);
    struct dv_api_delete_options *options = DV_NEW(child->arena, struct dv_api_delete_options);

    if (op->delete_options)
        *options = *op->delete_options;
    /* The precondition names the object that was listed. */
    options->preconditions = DV_NEW(child->arena, struct dv_api_preconditions);
    options->preconditions->uid = object->meta->uid;
    child->parent = op;
    child->is_dry_run = op->is_dry_run;
    child->delete_options = options;
    child->ctx = collection;
    child->done = on_deleted;
    collection->n_running++;
    dv_op_start(child, object->kind, object->meta->namespace, object->meta->name, run);
}

/* Starts as many deletions as may be under way. A child tells its end in a later turn, never from
 * within dv_op_start, so the loop is safe. */
static void go_on(struct collection *collection)
{
    struct dv_op *op = collection->op;

    while (collection->n_running < N_RUNNING_MAX && collection->n_started < op->n_objects &&
           !op->failure && op->request)
        start_one(collection, op->objects[collection->n_started++]);
    if (collection->n_running == 0)
        (void)(op->failure ? dv_op_fail(op, op->failure) : dv_op_answer(op, NULL));
}

void dv_collection_delete(struct dv_op *op)
{
    const struct dv_request *request = op->request;
    const struct dv_list_query query = {.kind = request->kind,
                                        .version = request->version,
                                        .namespace = request->namespace,
                                        .label_selector = request->label_selector,
                                        .field_selector = request->field_selector};
    struct collection *collection = DV_NEW(op->arena, struct collection);
    struct dv_api_status *failure;
    struct dv_list_page page;

    if (!dv_embedded_list(op->embedded, &query, op->arena, &page, &failure)) {
        (void)dv_op_fail(op, failure);
        return;
    }
    op->objects = page.objects;
    op->n_objects = page.n_objects;
    for (size_t i = 0; i < page.n_objects; i++)
        (void)dv_object_ref(page.objects[i]);
    collection->op = op;
    go_on(collection);
}

/* delete_collection.c - the verb DELETE_COLLECTION: lists what is selected and deletes each
 * object by an operation of its own, a few hundred at a time. The answer comes when all are done.
 */
#include "cluster/embedded/delete.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/cluster_operation.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/status.h"

/* How many deletions of one collection are under way together. */
#define N_RUNNING_MAX 256u

struct deletions {
    struct dv_cluster_operation *operation;
    size_t n_started;
    size_t n_running;
};

static void go_on(struct deletions *deletions);

/* Whether a deletion has failed. An object that is gone already (404), or was replaced by another
 * (409), is no failure of the collection. */
static bool is_failure(const struct dv_api_status *failure)
{
    return failure && failure->code != 404 && failure->code != 409;
}

static void on_deleted(struct dv_cluster_operation *child)
{
    struct deletions *deletions = child->ctx;
    struct dv_cluster_operation *operation = deletions->operation;

    deletions->n_running--;
    if (is_failure(child->failure) && !operation->failure)
        operation->failure = dv_status_new(
            (int)child->failure->code, dv_str_copy(child->failure->reason, operation->arena),
            operation->arena, "%.*s", DV_FMT(child->failure->message));
    go_on(deletions);
}

/* Deletes one object. Nothing more is deleted for a caller who has cancelled: whether it may be
 * deleted can no longer be asked. */
static bool run(struct dv_cluster_operation *child)
{
    if (!child->parent->request)
        return dv_cluster_operation_fail(
            child, dv_status_new(499, DV_STR_NONE, child->arena, "the request was cancelled"));
    return dv_delete_run(child);
}

static void start_one(struct deletions *deletions, const struct dv_object *object)
{
    struct dv_cluster_operation *operation = deletions->operation;
    struct dv_cluster_operation *child = dv_cluster_operation_new(operation->embedded, NULL);
    struct dv_api_delete_options *options = DV_NEW(child->arena, struct dv_api_delete_options);
    struct dv_object_names names = dv_object_names(object);

    if (operation->delete_options)
        *options = *operation->delete_options;
    /* The precondition names the object that was listed. */
    options->preconditions = DV_NEW(child->arena, struct dv_api_preconditions);
    options->preconditions->uid = names.uid;
    child->parent = operation;
    child->is_dry_run = operation->is_dry_run;
    child->delete_options = options;
    child->ctx = deletions;
    child->done = on_deleted;
    deletions->n_running++;
    dv_cluster_operation_start(child, object->kind, names.namespace, names.name, run);
}

/* Starts as many deletions as may be under way. A child tells its end in a later turn, never from
 * within dv_cluster_operation_start, so the loop is safe. */
static void go_on(struct deletions *deletions)
{
    struct dv_cluster_operation *operation = deletions->operation;

    while (deletions->n_running < N_RUNNING_MAX && deletions->n_started < operation->n_objects &&
           !operation->failure && operation->request)
        start_one(deletions, operation->objects[deletions->n_started++]);
    if (deletions->n_running == 0)
        (void)(operation->failure ? dv_cluster_operation_fail(operation, operation->failure)
                                  : dv_cluster_operation_answer(operation, NULL));
}

void dv_delete_collection(struct dv_cluster_operation *operation)
{
    const struct dv_request *request = operation->request;
    const struct dv_list_query query = {.kind = request->kind,
                                        .version = request->version,
                                        .namespace = request->namespace,
                                        .label_selector = request->label_selector,
                                        .field_selector = request->field_selector};
    struct deletions *deletions = DV_NEW(operation->arena, struct deletions);
    struct dv_api_status *failure;
    struct dv_list_page page;

    if (!dv_embedded_list(operation->embedded, &query, operation->arena, &page, &failure)) {
        (void)dv_cluster_operation_fail(operation, failure);
        return;
    }
    operation->objects = page.objects;
    operation->n_objects = page.n_objects;
    for (size_t i = 0; i < page.n_objects; i++)
        (void)dv_object_keep(page.objects[i]);
    deletions->operation = operation;
    go_on(deletions);
}

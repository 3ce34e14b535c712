/* cluster_judge.c - the last word on a write: who serves the request sees what would be stored, and
 * may refuse it. That may take a while; the name is held meanwhile, as for a worker. */
#include <stdbool.h>

#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/objects/collection.h"
#include "resource/status.h"

/* Goes on with what was judged. Returns what `run` of an operation returns. */
static bool go_on(struct dv_cluster_operation *operation)
{
    bool (*next)(struct dv_cluster_operation *, void *) = operation->judged;

    operation->judged = NULL;
    if (operation->is_given_up)
        return dv_cluster_operation_fail(
            operation,
            dv_status_new(499, DV_STR_NONE, operation->arena, "the request was cancelled"));
    if (operation->judging.failure)
        return dv_cluster_operation_fail(operation, operation->judging.failure);
    operation->is_judged = true;
    return next(operation, operation->value);
}

static void on_settled(struct dv_judging *judging)
{
    struct dv_cluster_operation *operation =
        DV_CONTAINER(judging, struct dv_cluster_operation, judging);
    struct dv_entry *entry = operation->entry;

    dv_cluster_operation_worked(operation, entry, go_on(operation));
}

bool dv_change_judge_then(struct dv_cluster_operation *operation, void *value,
                          bool (*next)(struct dv_cluster_operation *operation, void *value))
{
    struct dv_request *request = operation->request  ? operation->request
                                 : operation->parent ? operation->parent->request
                                                     : NULL;

    if (!request || !request->judge || operation->is_judged)
        return next(operation, value);
    operation->value = value;
    operation->judged = next;
    operation->judging = (struct dv_judging){.request = request,
                                             .old = operation->entry->object,
                                             .value = value,
                                             .arena = operation->arena,
                                             .settled = on_settled};
    return request->judge(&operation->judging) == DV_JUDGED_LATER || go_on(operation);
}

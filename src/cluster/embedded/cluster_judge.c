/* cluster_judge.c - what who serves a request says of its write: it may change what is to be
 * written (`mutate`), and has the last word on it (`judge`). Both may take a while. The name is
 * held meanwhile, as for a worker, or (`lets_others_pass`) let go: who comes back to it and finds
 * that others have written begins anew, so that a write is always based on what is stored.
 *
 *     admitted -> mutate -> changed: admitted again -> mutate once more
 *              -> validated -> judge -> written
 */
#include <stdbool.h>

#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/cluster_pods.h"
#include "cluster/embedded/update.h"
#include "cluster/objects/collection.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "resource/status.h"

static struct dv_request *request_of(const struct dv_cluster_operation *operation)
{
    return operation->request  ? operation->request
           : operation->parent ? operation->parent->request
                               : NULL;
}

/* ---- questions ---- */

/* Goes on with what was answered. Returns what `run` of an operation returns. */
static bool go_on(struct dv_cluster_operation *operation)
{
    bool (*next)(struct dv_cluster_operation *, void *) = operation->after_answer;

    operation->after_answer = NULL;
    if (operation->is_given_up)
        return dv_cluster_operation_fail(
            operation,
            dv_status_new(499, DV_STR_NONE, operation->arena, "the request was cancelled"));
    if (operation->judging.failure)
        return dv_cluster_operation_fail(operation, operation->judging.failure);
    return next(operation, operation->value);
}

/* Goes on when the name is held again. A refusal is told whatever has become of the object; what is
 * created needs its namespace still. */
static bool come_back(struct dv_cluster_operation *operation)
{
    bool is_late = dv_cluster_operation_is_late(operation);
    bool is_new = !operation->stored && operation->value;

    if (operation->is_given_up || operation->judging.failure)
        return go_on(operation);
    if (is_late && is_new && operation->request->verb == DV_VERB_CREATE)
        return dv_create_fail_existing(operation);
    if (is_late) {
        operation->after_answer = NULL;
        return dv_cluster_operation_again(operation);
    }
    if (is_new && operation->entry->collection->kind->is_namespaced &&
        !dv_change_check_namespace(operation, dv_entry_namespace(operation->entry),
                                   dv_entry_name(operation->entry)))
        return false;
    return go_on(operation);
}

static void on_settled(struct dv_judging *judging)
{
    struct dv_cluster_operation *operation =
        DV_CONTAINER(judging, struct dv_cluster_operation, judging);
    struct dv_entry *entry = operation->entry;

    if (entry)
        dv_cluster_operation_worked(operation, entry, go_on(operation));
    else
        dv_cluster_operation_take_again(operation, come_back);
}

/* Asks, and goes on with `after_answer`, now or later. Returns what `run` of an operation returns.
 */
static bool ask(struct dv_cluster_operation *operation, void *value,
                enum dv_judged (*question)(struct dv_judging *judging),
                bool (*after_answer)(struct dv_cluster_operation *operation, void *value))
{
    struct dv_judging *judging = &operation->judging;

    operation->value = value;
    operation->after_answer = after_answer;
    *judging = (struct dv_judging){.request = request_of(operation),
                                   .old = operation->entry->object,
                                   .value = value,
                                   .arena = operation->arena,
                                   .is_again = judging->is_again,
                                   .ctx = judging->ctx,
                                   .settled = on_settled};
    if (question(judging) == DV_JUDGED_NOW)
        return go_on(operation);
    if (judging->request->lets_others_pass)
        dv_cluster_operation_let_go(operation);
    return true;
}

/* ---- changes ---- */

/* Gives a pod that is created what it has from its account and its classes, so that who changes it
 * sees that too. False: the operation has failed. */
static bool complete(struct dv_cluster_operation *operation, void *value)
{
    if (operation->takes_account)
        dv_account_apply(operation, value);
    return dv_priority_apply(operation, value) && dv_runtime_class_apply(operation, value);
}

/* What was changed is admitted as what the client sends is, and then shown once more to those who
 * were asked before it was changed. */
static bool on_mutated(struct dv_cluster_operation *operation, void *value)
{
    struct dv_judging *judging = &operation->judging;
    const struct dv_request *request = judging->request;

    if (!judging->changed)
        return dv_cluster_operation_compute(operation, value, operation->after_judging);
    value = judging->changed;
    /* Only the schema knows the defaults of a kind that a definition made, and which fields it has.
     */
    if (dv_kind_is_custom(operation->entry->collection->kind) &&
        !dv_change_default(operation, value))
        return false;
    dv_change_dedup_owners(operation, value);
    if (!dv_change_admit(operation, value))
        return false;
    if (judging->is_again)
        return dv_cluster_operation_compute(operation, value, operation->after_judging);
    judging->is_again = true;
    return complete(operation, value) && ask(operation, value, request->mutate, on_mutated);
}

bool dv_change_mutate_then(struct dv_cluster_operation *operation, void *value,
                           bool (*next)(struct dv_cluster_operation *operation, void *value))
{
    const struct dv_request *request = request_of(operation);

    if (!request || !request->mutate)
        return dv_cluster_operation_compute(operation, value, next);
    operation->after_judging = next;
    operation->judging = (struct dv_judging){0};
    return (!value || complete(operation, value)) &&
           ask(operation, value, request->mutate, on_mutated);
}

/* ---- the last word ---- */

static bool on_judged(struct dv_cluster_operation *operation, void *value)
{
    operation->is_judged = true;
    return operation->after_judging(operation, value);
}

bool dv_change_judge_then(struct dv_cluster_operation *operation, void *value,
                          bool (*next)(struct dv_cluster_operation *operation, void *value))
{
    const struct dv_request *request = request_of(operation);

    if (!request || !request->judge || operation->is_judged)
        return next(operation, value);
    operation->after_judging = next;
    operation->judging = (struct dv_judging){0};
    return ask(operation, value, request->judge, on_judged);
}

/* claim_prepare.c - the claims of a pod are prepared (5). */
#include <assert.h>
#include <stdio.h>

#include "base/arena.h"
#include "claim/manager/claims.h"
#include "resource/resource.h"

/* ---- the objects ---- */

static const struct dv_api_resource_claim *object_of(const struct dv_claim_job *job)
{
    return job->object->value;
}

/* Errors count in the order of the pod's list. */
static bool check_all(struct dv_claim_operation *operation, struct dv_err *err)
{
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim_job *job = &operation->priv.jobs[i];

        if (job->err.code != DV_OK) {
            *err = job->err;
            return false;
        }
        if (!dv_claim_check(operation->priv.pod, &job->ref, object_of(job),
                            operation->priv.claims->options.takes_groups, err))
            return false;
    }
    return true;
}

static void fetched(struct dv_claim_operation *operation)
{
    struct dv_err err;

    operation->priv.has_waited = false;
    if (operation->priv.end.code != DV_OK)
        dv_claim_operation_finish(operation, &operation->priv.end);
    else if (!check_all(operation, &err))
        dv_claim_operation_finish(operation, &err);
    else
        dv_claim_prepare_look(operation);
}

static void on_fetched(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_claim_job *job = DV_CONTAINER(request, struct dv_claim_job, request);

    request->done = NULL; /* it is ours again */
    (void)dv_succeed(&job->err);
    if (failure)
        (void)dv_fail(&job->err, DV_NOT_FOUND, "fetch ResourceClaim %.*s: %.*s", DV_FMT(job->name),
                      DV_FMT(failure->message));
    else
        job->object = dv_object_ref(request->object);
    if (--job->operation->priv.n_fetching == 0)
        fetched(job->operation);
}

static void fetch(struct dv_claim_operation *operation)
{
    struct dv_cluster *cluster = operation->priv.claims->options.cluster;
    struct dv_err err;

    if (!cluster) {
        (void)dv_fail(&err, DV_UNAVAILABLE, "fetch ResourceClaim %.*s: there is no API server",
                      DV_FMT(operation->priv.jobs[0].name));
        dv_claim_operation_finish(operation, &err);
        return;
    }
    operation->priv.step = DV_CLAIM_STEP_FETCH;
    operation->priv.n_fetching = operation->priv.n_jobs;
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim_job *job = &operation->priv.jobs[i];

        dv_object_unref(job->object);
        job->object = NULL;
        job->request = (struct dv_request){
            .verb = DV_VERB_GET,
            .kind = dv_kind(DV_KIND_CLAIM),
            .space = job->space,
            .name = job->name,
            .done = on_fetched,
        };
        dv_request_start(cluster, &job->request);
    }
}

/* ---- what is in the way ---- */

static bool need_drivers(struct dv_claim_operation *operation, const struct dv_claim_job *job)
{
    const struct dv_api_allocation_result *allocation;
    const struct dv_claim *claim;

    if (job->object) {
        allocation = object_of(job)->status.allocation;
        for (size_t i = 0; i < allocation->devices.n_results; i++)
            if (!dv_claim_operation_need_driver(operation, allocation->devices.results[i].driver))
                return false;
        return true;
    }
    claim = dv_claim_find(operation->priv.claims->state, job->space, job->name);
    for (size_t i = 0; claim && i < claim->record.n_drivers; i++)
        if (!dv_claim_operation_need_driver(operation, claim->record.drivers[i].name))
            return false;
    return true;
}

/* A former claim of that name is still here, or drivers are being asked about this one: for
 * another pod, or to undo it. */
static bool is_in_the_way(const struct dv_claim_job *job, const struct dv_claim *claim)
{
    if (!dv_str_eq(claim->record.uid, object_of(job)->metadata.uid))
        return true;
    return claim->n_calls > 0 && claim->record.phase != DV_CLAIM_PREPARED;
}

static bool is_for_another(const struct dv_claim_job *job, const struct dv_claim *claim)
{
    return dv_str_eq(claim->record.uid, object_of(job)->metadata.uid) &&
           claim->record.phase != DV_CLAIM_UNPREPARING;
}

static bool need_way(struct dv_claim_operation *operation, const struct dv_claim_job *job)
{
    struct dv_claim *claim =
        job->object ? dv_claim_find(operation->priv.claims->state, job->space, job->name) : NULL;

    if (!claim || !is_in_the_way(job, claim) || !dv_claim_operation_may_wait(operation))
        return true; /* attaching tells */
    (void)snprintf(operation->awaited, sizeof(operation->awaited),
                   is_for_another(job, claim) ? "ResourceClaim %.*s with UID %.*s to be prepared"
                                              : "ResourceClaim %.*s with UID %.*s to be unprepared",
                   DV_FMT(job->name), DV_FMT(claim->record.uid));
    dv_claim_operation_wait(operation, claim);
    return false;
}

/* ---- the steps ---- */

/* Of an operation of our own: the record as it is, unless a pod is at it itself by now. */
static struct dv_claim *left_over(struct dv_claim_operation *operation,
                                  const struct dv_claim_job *job)
{
    struct dv_claim *claim = dv_claim_find(operation->priv.claims->state, job->space, job->name);

    return claim && dv_str_eq(claim->record.uid, job->uid) &&
                   claim->record.phase == DV_CLAIM_PREPARING && claim->n_calls == 0
               ? claim
               : NULL;
}

static bool attach(struct dv_claim_operation *operation, struct dv_claim_job *job,
                   struct dv_err *err)
{
    struct dv_claim *claim;

    if (!job->object)
        claim = left_over(operation, job);
    else if (!dv_claim_attach(operation->priv.claims->state, operation->priv.pod_uid,
                              object_of(job), &claim, err))
        return false;
    if (claim && claim->record.phase != DV_CLAIM_PREPARED)
        dv_claim_operation_hold(job, claim);
    return true;
}

/* Whoever asked for the operation knows what else speaks against it. */
static bool ask_owner(struct dv_claim_operation *operation, struct dv_err *err)
{
    const struct dv_api_resource_claim **objects;

    if (!operation->may_prepare || !operation->priv.pod)
        return true;
    objects = DV_NEW_ARRAY(operation->priv.arena, const struct dv_api_resource_claim *,
                           operation->priv.n_jobs);
    for (size_t i = 0; i < operation->priv.n_jobs; i++)
        objects[i] = object_of(&operation->priv.jobs[i]);
    return operation->may_prepare(operation, objects, operation->priv.n_jobs, err);
}

void dv_claim_prepare_look(struct dv_claim_operation *operation)
{
    struct dv_err err;

    for (size_t i = 0; i < operation->priv.n_jobs; i++)
        if (!need_drivers(operation, &operation->priv.jobs[i]) ||
            !need_way(operation, &operation->priv.jobs[i]))
            return;
    if (operation->priv.has_waited && operation->priv.pod) {
        fetch(operation); /* they may have changed meanwhile */
        return;
    }
    if (!ask_owner(operation, &err)) {
        dv_claim_operation_finish(operation, &err);
        return;
    }
    for (size_t i = 0; i < operation->priv.n_jobs; i++)
        if (!attach(operation, &operation->priv.jobs[i], &err)) {
            dv_claim_operation_finish(operation, &err);
            return;
        }
    dv_claim_operation_save(operation, DV_CLAIM_STEP_RECORD);
}

void dv_claim_prepare_recorded(struct dv_claim_operation *operation)
{
    struct dv_err err;

    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim *claim = operation->priv.jobs[i].claim;
        bool is_legal = !claim || dv_claim_handle(operation->priv.claims->state, claim,
                                                  DV_CLAIM_ON_SAVED, &err);

        assert(is_legal); /* what is held is wanted */
        (void)is_legal;
    }
    dv_claim_operation_call(operation);
}

void dv_claim_prepare_called(struct dv_claim_operation *operation)
{
    const struct dv_err *failure = operation->priv.end.code == DV_OK ? NULL : &operation->priv.end;
    bool has_any = false;
    struct dv_err err;

    for (size_t i = 0; !failure && i < operation->priv.n_batches; i++)
        if (operation->priv.batches[i].err.code != DV_OK)
            failure = &operation->priv.batches[i].err;
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim *claim = operation->priv.jobs[i].claim;
        bool is_legal =
            !claim || dv_claim_handle(operation->priv.claims->state, claim,
                                      failure ? DV_CLAIM_ON_FAILED : DV_CLAIM_ON_PREPARED, &err);

        assert(is_legal); /* the same */
        (void)is_legal;
        if (claim)
            dv_claim_answered(operation->priv.claims, claim, true, failure);
        has_any |= claim != NULL;
    }
    if (failure)
        dv_claim_operation_finish(operation, failure);
    else if (has_any)
        dv_claim_operation_save(operation, DV_CLAIM_STEP_STORE);
    else
        dv_claim_operation_finish(operation,
                                  NULL); /* all was prepared before, and is on the disk */
}

void dv_claim_prepare_begin(struct dv_claim_operation *operation)
{
    const struct dv_api_pod *pod = operation->priv.pod;
    struct dv_claim_ref *refs;
    struct dv_err err;
    size_t n_refs;

    if (!pod) { /* our own: the jobs are known */
        dv_claim_prepare_look(operation);
        return;
    }
    if (!dv_claim_refs(pod, operation->priv.arena, &refs, &n_refs, &err)) {
        dv_claim_operation_finish(operation, &err);
        return;
    }
    if (n_refs == 0) {
        dv_claim_operation_finish(operation, NULL);
        return;
    }
    dv_claim_operation_set_jobs(operation, n_refs);
    for (size_t i = 0; i < n_refs; i++) {
        operation->priv.jobs[i].ref = refs[i];
        operation->priv.jobs[i].space = pod->metadata.namespace;
        operation->priv.jobs[i].name = refs[i].name;
    }
    fetch(operation);
}

void dv_claims_prepare(struct dv_claims *claims, struct dv_claim_operation *operation,
                       const struct dv_api_pod *pod)
{
    dv_claim_operation_begin(claims, operation, DV_CLAIM_PREPARE);
    operation->priv.pod = pod;
    operation->priv.pod_uid = pod->metadata.uid;
    dv_claim_operation_start(operation);
}

/* claim_prepare.c - the steps by which the claims of a pod are prepared; claim_operation.c has
 * their order. */
#include <assert.h>
#include <stdio.h>

#include "claim/manager/claim_manager_state.h"
#include "resource/resource.h"

/* An allocation has at most 32 devices and 64 configurations of 10 KiB. */
#define HANDLE_BYTES_MAX (1024u * 1024u)

/* ---- which claims, and what the API says of them ---- */

static const struct dv_api_resource_claim *object_of(const struct dv_claim_job *job)
{
    return job->object->value;
}

enum dv_claim_progress dv_claim_prepare_list(struct dv_claim_operation *operation,
                                             struct dv_err *err)
{
    const struct dv_api_pod *pod = operation->priv.pod;
    struct dv_claim_ref *refs;
    size_t n_refs;

    if (!dv_claim_refs(pod, operation->priv.arena, &refs, &n_refs, err))
        return DV_CLAIM_STEP_FAILED;
    if (n_refs == 0)
        return DV_CLAIM_STEP_WAS_LAST;
    dv_claim_operation_set_jobs(operation, n_refs);
    for (size_t i = 0; i < n_refs; i++) {
        operation->priv.jobs[i].ref = refs[i];
        operation->priv.jobs[i].namespace = pod->metadata.namespace;
        operation->priv.jobs[i].name = refs[i].name;
    }
    return DV_CLAIM_STEP_IS_DONE;
}

static void on_fetched(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_claim_job *job = DV_CONTAINER(request, struct dv_claim_job, request);

    request->done = NULL; /* the request can be used again */
    (void)dv_succeed(&job->err);
    if (failure)
        (void)dv_fail(&job->err, DV_NOT_FOUND, "fetch ResourceClaim %.*s: %.*s", DV_FMT(job->name),
                      DV_FMT(failure->message));
    else
        job->object = dv_object_ref(request->object);
    if (--job->operation->priv.n_fetching == 0)
        dv_claim_step_ended(job->operation, NULL); /* each job has its own error */
}

enum dv_claim_progress dv_claim_prepare_fetch(struct dv_claim_operation *operation,
                                              struct dv_err *err)
{
    struct dv_cluster *cluster = operation->priv.claims->options.cluster;

    if (!cluster) {
        (void)dv_fail(err, DV_UNAVAILABLE, "fetch ResourceClaim %.*s: there is no API server",
                      DV_FMT(operation->priv.jobs[0].name));
        return DV_CLAIM_STEP_FAILED;
    }
    operation->priv.n_reserved = 0;
    operation->priv.n_fetching = operation->priv.n_jobs;
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim_job *job = &operation->priv.jobs[i];

        dv_object_unref(job->object);
        job->object = NULL;
        job->request = (struct dv_request){
            .verb = DV_VERB_GET,
            .kind = dv_kind(DV_KIND_CLAIM),
            .namespace = job->namespace,
            .name = job->name,
            .may_be_early = true,
            .done = on_fetched,
        };
        dv_request_start(cluster, &job->request);
    }
    return DV_CLAIM_STEP_GOES_ON;
}

void dv_claim_prepare_cancel_fetch(struct dv_claim_operation *operation)
{
    for (size_t i = 0; i < operation->priv.n_jobs; i++)
        if (operation->priv.jobs[i].request.done)
            dv_request_cancel(operation->priv.claims->options.cluster,
                              &operation->priv.jobs[i].request);
}

/* Reports the first error in the order of the pod's list, whichever answer came first. */
enum dv_claim_progress dv_claim_prepare_check(struct dv_claim_operation *operation,
                                              struct dv_err *err)
{
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim_job *job = &operation->priv.jobs[i];

        if (job->err.code != DV_OK) {
            *err = job->err;
            return DV_CLAIM_STEP_FAILED;
        }
        if (!dv_claim_check(operation->priv.pod, &job->ref, object_of(job),
                            operation->priv.claims->options.takes_groups, err))
            return DV_CLAIM_STEP_FAILED;
    }
    return DV_CLAIM_STEP_IS_DONE;
}

/* ---- what is in the way ---- */

static enum dv_claim_progress await_drivers(struct dv_claim_operation *operation,
                                            const struct dv_claim_job *job, struct dv_err *err)
{
    const struct dv_api_allocation_result *allocation = object_of(job)->status.allocation;

    for (size_t i = 0; i < allocation->devices.n_results; i++) {
        enum dv_claim_progress progress =
            dv_claim_await_driver(operation, allocation->devices.results[i].driver, err);

        if (progress != DV_CLAIM_STEP_IS_DONE)
            return progress;
    }
    return DV_CLAIM_STEP_IS_DONE;
}

/* Whether a former claim of that name still has a record, or drivers are being asked about this
 * one: for another pod, or to undo it. */
static bool is_in_the_way(const struct dv_claim_job *job, const struct dv_claim *claim)
{
    if (!dv_str_eq(claim->record.uid, object_of(job)->metadata.uid))
        return true;
    return claim->n_holds > 0 && claim->record.phase != DV_CLAIM_PREPARED;
}

static bool is_for_another(const struct dv_claim_job *job, const struct dv_claim *claim)
{
    return dv_str_eq(claim->record.uid, object_of(job)->metadata.uid) &&
           claim->record.phase != DV_CLAIM_UNPREPARING;
}

static enum dv_claim_progress await_others(struct dv_claim_operation *operation,
                                           const struct dv_claim_job *job)
{
    struct dv_claim *claim =
        dv_claim_find(operation->priv.claims->state, job->namespace, job->name);

    if (!claim || !is_in_the_way(job, claim) || !dv_claim_may_wait(operation))
        return DV_CLAIM_STEP_IS_DONE; /* attaching in HOLD will say what is wrong */
    (void)snprintf(operation->awaited, sizeof(operation->awaited),
                   is_for_another(job, claim) ? "ResourceClaim %.*s with UID %.*s to be prepared"
                                              : "ResourceClaim %.*s with UID %.*s to be unprepared",
                   DV_FMT(job->name), DV_FMT(claim->record.uid));
    return dv_claim_wait(operation, claim);
}

enum dv_claim_progress dv_claim_prepare_await(struct dv_claim_operation *operation,
                                              struct dv_err *err)
{
    enum dv_claim_progress progress = DV_CLAIM_STEP_IS_DONE;

    for (size_t i = 0; progress == DV_CLAIM_STEP_IS_DONE && i < operation->priv.n_jobs; i++) {
        progress = await_drivers(operation, &operation->priv.jobs[i], err);
        if (progress == DV_CLAIM_STEP_IS_DONE)
            progress = await_others(operation, &operation->priv.jobs[i]);
    }
    return progress;
}

/* ---- the pod gets its claims ---- */

/* Asks the owner of the operation, who knows what other pods hold; about many claims over several
 * turns, and then others may have come meanwhile: AWAIT follows once more. */
enum dv_claim_progress dv_claim_prepare_reserve(struct dv_claim_operation *operation,
                                                struct dv_err *err)
{
    size_t left = operation->priv.n_jobs - operation->priv.n_reserved;
    size_t n = left < DV_CLAIM_JOBS_PER_TURN ? left : DV_CLAIM_JOBS_PER_TURN;
    const struct dv_api_resource_claim *objects[DV_CLAIM_JOBS_PER_TURN];

    if (!operation->may_prepare || left == 0)
        return DV_CLAIM_STEP_IS_DONE;
    for (size_t i = 0; i < n; i++)
        objects[i] = object_of(&operation->priv.jobs[operation->priv.n_reserved + i]);
    if (!operation->may_prepare(operation, objects, n, err))
        return DV_CLAIM_STEP_FAILED;
    operation->priv.n_reserved += n;
    if (n == left)
        return DV_CLAIM_STEP_IS_DONE;
    operation->priv.has_waited = true;
    return dv_claim_go_on_next_turn(operation);
}

/* Keeps the handles for drivers whose service wants them: the object may be gone when the claim is
 * unprepared, or prepared again after a crash. */
static void keep_handles(struct dv_claim_manager *claims, struct dv_claim *claim,
                         const struct dv_api_resource_claim *object)
{
    for (size_t i = 0; i < claim->record.n_drivers; i++) {
        dv_str driver = claim->record.drivers[i].name;
        DV_CLEANUP(dv_buf_fini) struct dv_buf handle;
        const struct dv_dra_instance *instance;
        struct dv_err absent;

        dv_buf_init(&handle, HANDLE_BYTES_MAX);
        instance = dv_dra_choose(claims->drivers, driver, &absent);
        if (!instance || instance->service < DV_DRA_V1ALPHA3 ||
            claim->record.drivers[i].handle.n > 0)
            continue;
        dv_claim_handle_encode(object, driver, claims->options.node_name, &handle);
        if (!handle.is_over)
            dv_claim_set_handle(claims->state, claim, driver, dv_buf_str(&handle));
    }
}

enum dv_claim_progress dv_claim_prepare_hold(struct dv_claim_operation *operation,
                                             struct dv_err *err)
{
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim_job *job = &operation->priv.jobs[i];
        struct dv_claim *claim;

        if (!dv_claim_attach(operation->priv.claims->state, operation->priv.pod_uid, object_of(job),
                             &claim, err))
            return DV_CLAIM_STEP_FAILED;
        if (claim->record.phase == DV_CLAIM_PREPARED)
            continue;
        keep_handles(operation->priv.claims, claim, object_of(job));
        dv_claim_hold(job, claim);
    }
    return DV_CLAIM_STEP_IS_DONE;
}

/* ---- the drivers prepare them ---- */

static void handle(struct dv_claim_operation *operation, struct dv_claim *claim,
                   enum dv_claim_event event)
{
    struct dv_err err;
    bool is_legal = dv_claim_handle(operation->priv.claims->state, claim, event, &err);

    assert(is_legal); /* a claim that is held is wanted, and nobody else changes it */
    (void)is_legal;
}

enum dv_claim_progress dv_claim_prepare_call(struct dv_claim_operation *operation,
                                             struct dv_err *err)
{
    for (size_t i = 0; i < operation->priv.n_jobs; i++)
        if (operation->priv.jobs[i].claim)
            handle(operation, operation->priv.jobs[i].claim, DV_CLAIM_ON_SAVED);
    return dv_claim_call_drivers(operation, err);
}

/* The first failure, if there is one: a pod starts with all of its claims or not at all. */
static const struct dv_err *failure_of(const struct dv_claim_operation *operation)
{
    if (operation->priv.end.code != DV_OK)
        return &operation->priv.end;
    for (size_t i = 0; i < operation->priv.n_batches; i++)
        if (operation->priv.batches[i].err.code != DV_OK)
            return &operation->priv.batches[i].err;
    return NULL;
}

enum dv_claim_progress dv_claim_prepare_answer(struct dv_claim_operation *operation,
                                               struct dv_err *err)
{
    const struct dv_err *failure = failure_of(operation);
    bool has_any = false;

    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim *claim = operation->priv.jobs[i].claim;

        if (!claim)
            continue;
        handle(operation, claim, failure ? DV_CLAIM_ON_FAILED : DV_CLAIM_ON_PREPARED);
        dv_claim_answered(operation->priv.claims, claim, true, failure);
        has_any = true;
    }
    if (failure) {
        *err = *failure;
        return DV_CLAIM_STEP_FAILED;
    }
    /* If no claim is held, all were prepared and on the disk before. */
    return has_any ? DV_CLAIM_STEP_IS_DONE : DV_CLAIM_STEP_WAS_LAST;
}

/* ---- again, after a crash or a boot ---- */

enum dv_claim_progress dv_claim_again_await(struct dv_claim_operation *operation,
                                            struct dv_err *err)
{
    enum dv_claim_progress progress = DV_CLAIM_STEP_IS_DONE;

    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        const struct dv_claim_job *job = &operation->priv.jobs[i];
        const struct dv_claim *claim =
            dv_claim_find(operation->priv.claims->state, job->namespace, job->name);

        for (size_t k = 0; claim && k < claim->record.n_drivers; k++) {
            progress = dv_claim_await_driver(operation, claim->record.drivers[k].name, err);
            if (progress != DV_CLAIM_STEP_IS_DONE)
                return progress;
        }
    }
    return progress;
}

/* Holds the claims as their records are, except those that a pod's own operation holds by now. */
enum dv_claim_progress dv_claim_again_hold(struct dv_claim_operation *operation, struct dv_err *err)
{
    (void)err; /* a claim that is gone needs nothing */
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim_job *job = &operation->priv.jobs[i];
        struct dv_claim *claim =
            dv_claim_find(operation->priv.claims->state, job->namespace, job->name);

        if (claim && dv_str_eq(claim->record.uid, job->uid) &&
            claim->record.phase == DV_CLAIM_PREPARING && claim->n_holds == 0)
            dv_claim_hold(job, claim);
    }
    return DV_CLAIM_STEP_IS_DONE;
}

void dv_claim_manager_prepare(struct dv_claim_manager *claims, struct dv_claim_operation *operation,
                              const struct dv_api_pod *pod)
{
    dv_claim_operation_init(claims, operation, DV_CLAIM_PREPARE);
    operation->priv.pod = pod;
    operation->priv.pod_uid = pod->metadata.uid;
    dv_claim_operation_start(operation);
}

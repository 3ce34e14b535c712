/* unprepare.c - the claims that a pod has left are unprepared (7). */
#include <assert.h>
#include <stdio.h>

#include "claim/manager/claims.h"

/* The record that the job is about; NULL: gone, or another one by now. */
static struct dv_claim *claim_of(struct dv_claim_operation *operation,
                                 const struct dv_claim_job *job)
{
    struct dv_claim *claim = dv_claim_find(operation->priv.claims->state, job->space, job->name);

    return claim && dv_str_eq(claim->record.uid, job->uid) ? claim : NULL;
}

/* One of our own is about what was true when it was planned: a pod may have come for it since. */
static bool is_wanted_again(const struct dv_claim_operation *operation,
                            const struct dv_claim_job *job, const struct dv_claim *claim)
{
    const struct dv_claims_options *options = &operation->priv.claims->options;

    if (!operation->priv.is_chore)
        return false;
    if (job->ignores_pods)
        return claim->record.n_pods > 0 && claim->record.phase != DV_CLAIM_UNPREPARING;
    return !options->is_wanted || options->is_wanted(options->ctx, operation->priv.pod_uid);
}

/* The one that is to be unprepared; NULL: nothing is to be done, or it has been. */
static struct dv_claim *unwanted(struct dv_claim_operation *operation,
                                 const struct dv_claim_job *job)
{
    struct dv_claim *claim = claim_of(operation, job);

    if (!claim || is_wanted_again(operation, job, claim))
        return NULL;
    if (job->ignores_pods)
        return claim;
    if (!dv_claim_is_attached(claim, operation->priv.pod_uid))
        return NULL; /* another pod's */
    if (claim->record.n_pods > 1) {
        dv_claim_detach(operation->priv.claims->state, claim, operation->priv.pod_uid);
        return NULL;
    }
    return claim;
}

/* False: the operation waits. */
static bool need_quiet(struct dv_claim_operation *operation, const struct dv_claim_job *job)
{
    struct dv_claim *claim = unwanted(operation, job);

    if (!claim || claim->n_calls == 0)
        return true;
    (void)snprintf(operation->awaited, sizeof(operation->awaited),
                   "the driver's answer for ResourceClaim %.*s", DV_FMT(job->name));
    dv_claim_operation_wait(operation, claim);
    return false;
}

/* False: the operation waits. A driver that is not waited for is the job's error: what others have
 * is unprepared without it. */
static bool need_drivers(struct dv_claim_operation *operation, struct dv_claim_job *job)
{
    const struct dv_claim *claim = unwanted(operation, job);

    (void)dv_succeed(&job->err);
    for (size_t i = 0; claim && i < claim->record.n_drivers; i++) {
        dv_str driver = claim->record.drivers[i].name;
        struct dv_err err;

        if (!dv_claim_operation_may_wait(operation)) {
            if (!dv_dra_choose(operation->priv.claims->drivers, driver, &err) &&
                job->err.code == DV_OK)
                job->err = err;
        } else if (!dv_claim_operation_need_driver(operation, driver)) {
            return false;
        }
    }
    return true;
}

static void begin(struct dv_claim_operation *operation, struct dv_claim_job *job)
{
    struct dv_claim *claim = job->err.code == DV_OK ? unwanted(operation, job) : NULL;
    struct dv_err err;
    bool is_legal =
        !claim || dv_claim_handle(operation->priv.claims->state, claim, DV_CLAIM_ON_UNWANTED, &err);

    assert(is_legal); /* every phase may be */
    (void)is_legal;
    if (claim)
        dv_claim_operation_hold(job, claim);
}

void dv_claim_unprepare_look(struct dv_claim_operation *operation)
{
    for (size_t i = 0; i < operation->priv.n_jobs; i++)
        if (!need_quiet(operation, &operation->priv.jobs[i]))
            return;
    for (size_t i = 0; operation->priv.kind != DV_CLAIM_RELEASE && i < operation->priv.n_jobs; i++)
        if (!need_drivers(operation, &operation->priv.jobs[i]))
            return;
    for (size_t i = 0; i < operation->priv.n_jobs; i++)
        begin(operation, &operation->priv.jobs[i]);
    dv_claim_operation_save(operation, DV_CLAIM_STEP_RECORD);
}

void dv_claim_unprepare_recorded(struct dv_claim_operation *operation)
{
    if (operation->priv.kind == DV_CLAIM_RELEASE)
        dv_claim_unprepare_called(operation);
    else
        dv_claim_operation_call(operation);
}

static const struct dv_err *failure_of(const struct dv_claim_operation *operation,
                                       const struct dv_claim *claim)
{
    for (size_t i = 0; i < operation->priv.n_batches; i++) {
        const struct dv_claim_batch *batch = &operation->priv.batches[i];

        for (size_t k = 0; batch->err.code != DV_OK && k < batch->n_claims; k++)
            if (batch->claims[k] == claim)
                return &batch->err;
    }
    return NULL;
}

/* What all drivers have let go of is forgotten; the rest is tried again, by whoever asks. */
void dv_claim_unprepare_called(struct dv_claim_operation *operation)
{
    struct dv_err err;

    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim *claim = operation->priv.jobs[i].claim;
        const struct dv_err *failure =
            claim ? failure_of(operation, claim) : &operation->priv.jobs[i].err; /* DV_OK: none */
        bool is_legal;

        if (failure && operation->priv.end.code == DV_OK)
            operation->priv.end = *failure;
        if (!claim)
            continue;
        dv_claim_operation_let_go(&operation->priv.jobs[i]);
        dv_claim_answered(operation->priv.claims, claim, false, failure);
        is_legal = dv_claim_handle(operation->priv.claims->state, claim,
                                   failure ? DV_CLAIM_ON_FAILED : DV_CLAIM_ON_UNPREPARED, &err);
        assert(is_legal); /* nobody else had it */
        (void)is_legal;
    }
    dv_claim_operation_save(operation, DV_CLAIM_STEP_STORE);
}

void dv_claim_unprepare_begin(struct dv_claim_operation *operation)
{
    struct dv_err err;

    if (operation->priv.n_jobs > 0 && operation->priv.kind == DV_CLAIM_RELEASE &&
        operation->priv.jobs[0].uid.p == NULL) {
        (void)dv_fail(&err, DV_NOT_FOUND, "ResourceClaim %.*s/%.*s is not known on this node",
                      DV_FMT(operation->priv.jobs[0].space), DV_FMT(operation->priv.jobs[0].name));
        dv_claim_operation_finish(operation, &err);
        return;
    }
    if (operation->priv.n_jobs == 0)
        dv_claim_operation_finish(operation, NULL);
    else
        dv_claim_unprepare_look(operation);
}

static void set_job(struct dv_claim_operation *operation, struct dv_claim_job *job,
                    const struct dv_claim_record *record)
{
    job->space = dv_str_copy(record->space, operation->priv.arena);
    job->name = dv_str_copy(record->name, operation->priv.arena);
    job->uid = dv_str_copy(record->uid, operation->priv.arena);
}

void dv_claims_unprepare(struct dv_claims *claims, struct dv_claim_operation *operation,
                         dv_str pod_uid)
{
    struct dv_claim **of_pod;
    size_t n;

    dv_claim_operation_begin(claims, operation, DV_CLAIM_UNPREPARE);
    operation->priv.pod_uid = dv_str_copy(pod_uid, operation->priv.arena);
    n = dv_claim_of_pod(claims->state, pod_uid, operation->priv.arena, &of_pod);
    dv_claim_operation_set_jobs(operation, n);
    for (size_t i = 0; i < n; i++)
        set_job(operation, &operation->priv.jobs[i], &of_pod[i]->record);
    dv_claim_operation_start(operation);
}

void dv_claims_release(struct dv_claims *claims, struct dv_claim_operation *operation, dv_str space,
                       dv_str name)
{
    const struct dv_claim *claim = dv_claim_find(claims->state, space, name);

    dv_claim_operation_begin(claims, operation, DV_CLAIM_RELEASE);
    dv_claim_operation_set_jobs(operation, 1);
    operation->priv.jobs[0].ignores_pods = true;
    if (claim) {
        set_job(operation, &operation->priv.jobs[0], &claim->record);
    } else {
        operation->priv.jobs[0].space = dv_str_copy(space, operation->priv.arena);
        operation->priv.jobs[0].name = dv_str_copy(name, operation->priv.arena);
    }
    dv_claim_operation_start(operation);
}

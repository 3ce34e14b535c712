/* claim_unprepare.c - the steps by which claims that pods have left are unprepared, or released by
 * force; claim_operation.c has their order. */
#include <assert.h>
#include <stdio.h>

#include "claim/manager/claim_manager_state.h"

/* ---- which claims ---- */

enum dv_claim_progress dv_claim_unprepare_list(struct dv_claim_operation *operation,
                                               struct dv_err *err)
{
    (void)err; /* cannot fail: the jobs were made at the start, and a pod without claims is fine */
    return operation->priv.n_jobs > 0 ? DV_CLAIM_STEP_IS_DONE : DV_CLAIM_STEP_WAS_LAST;
}

enum dv_claim_progress dv_claim_release_list(struct dv_claim_operation *operation,
                                             struct dv_err *err)
{
    struct dv_claim_job *job = &operation->priv.jobs[0];
    const struct dv_claim *claim =
        dv_claim_find(operation->priv.claims->state, job->namespace, job->name);

    if (!claim) {
        (void)dv_fail(err, DV_NOT_FOUND, "ResourceClaim %.*s/%.*s is not known on this node",
                      DV_FMT(job->namespace), DV_FMT(job->name));
        return DV_CLAIM_STEP_FAILED;
    }
    job->uid = dv_str_copy(claim->record.uid, operation->priv.arena);
    return DV_CLAIM_STEP_IS_DONE;
}

/* The claim that the job is about; NULL when it is gone, or another one has its name by now. */
static struct dv_claim *claim_of(struct dv_claim_operation *operation,
                                 const struct dv_claim_job *job)
{
    struct dv_claim *claim =
        dv_claim_find(operation->priv.claims->state, job->namespace, job->name);

    return claim && dv_str_eq(claim->record.uid, job->uid) ? claim : NULL;
}

/* Whether a pod has come for the claim since the chore was planned. */
static bool is_wanted_again(const struct dv_claim_operation *operation,
                            const struct dv_claim_job *job, const struct dv_claim *claim)
{
    const struct dv_claim_manager_options *options = &operation->priv.claims->options;

    if (!operation->priv.is_chore)
        return false;
    if (job->ignores_pods)
        return claim->record.n_pods > 0 && claim->record.phase != DV_CLAIM_UNPREPARING;
    return !options->is_wanted || options->is_wanted(options->ctx, operation->priv.pod_uid);
}

/* The claim that the pod still has and leaves; NULL when nothing is to be done any more. */
static struct dv_claim *find_left(struct dv_claim_operation *operation,
                                  const struct dv_claim_job *job)
{
    struct dv_claim *claim = claim_of(operation, job);

    if (!claim || is_wanted_again(operation, job, claim))
        return NULL;
    return job->ignores_pods || dv_claim_is_attached(claim, operation->priv.pod_uid) ? claim : NULL;
}

/* Whether other pods keep the claim when this one leaves it. */
static bool is_shared(const struct dv_claim_job *job, const struct dv_claim *claim)
{
    return !job->ignores_pods && claim->record.n_pods > 1;
}

/* The claim that is to be unprepared, because no other pod has it; NULL: there is none. */
static struct dv_claim *find_unwanted(struct dv_claim_operation *operation,
                                      const struct dv_claim_job *job)
{
    struct dv_claim *claim = find_left(operation, job);

    return claim && !is_shared(job, claim) ? claim : NULL;
}

/* ---- what is in the way ---- */

static enum dv_claim_progress await_answers(struct dv_claim_operation *operation,
                                            const struct dv_claim_job *job)
{
    struct dv_claim *claim = find_unwanted(operation, job);

    if (!claim || claim->n_holds == 0)
        return DV_CLAIM_STEP_IS_DONE;
    (void)snprintf(operation->awaited, sizeof(operation->awaited),
                   "the driver's answer for ResourceClaim %.*s", DV_FMT(job->name));
    return dv_claim_wait(operation, claim);
}

/* Waits for the drivers of the claim. A driver that is not there in time is the job's error: claims
 * of other drivers are unprepared without it. */
static enum dv_claim_progress await_drivers(struct dv_claim_operation *operation,
                                            struct dv_claim_job *job, struct dv_err *err)
{
    const struct dv_claim *claim = find_unwanted(operation, job);

    (void)dv_succeed(&job->err);
    for (size_t i = 0; claim && i < claim->record.n_drivers; i++) {
        dv_str driver = claim->record.drivers[i].name;
        enum dv_claim_progress progress;

        if (!dv_claim_may_wait(operation)) {
            if (!dv_dra_choose(operation->priv.claims->drivers, driver, err) &&
                job->err.code == DV_OK)
                job->err = *err;
            continue;
        }
        progress = dv_claim_await_driver(operation, driver, err);
        if (progress != DV_CLAIM_STEP_IS_DONE)
            return progress;
    }
    return DV_CLAIM_STEP_IS_DONE;
}

enum dv_claim_progress dv_claim_release_await(struct dv_claim_operation *operation,
                                              struct dv_err *err)
{
    enum dv_claim_progress progress = DV_CLAIM_STEP_IS_DONE;

    (void)err; /* waiting for an answer cannot fail */
    for (size_t i = 0; progress == DV_CLAIM_STEP_IS_DONE && i < operation->priv.n_jobs; i++)
        progress = await_answers(operation, &operation->priv.jobs[i]);
    return progress;
}

enum dv_claim_progress dv_claim_unprepare_await(struct dv_claim_operation *operation,
                                                struct dv_err *err)
{
    enum dv_claim_progress progress = dv_claim_release_await(operation, err);

    for (size_t i = 0; progress == DV_CLAIM_STEP_IS_DONE && i < operation->priv.n_jobs; i++)
        progress = await_drivers(operation, &operation->priv.jobs[i], err);
    return progress;
}

/* ---- the claims go ---- */

enum dv_claim_progress dv_claim_unprepare_hold(struct dv_claim_operation *operation,
                                               struct dv_err *err)
{
    struct dv_claim_state *state = operation->priv.claims->state;

    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim_job *job = &operation->priv.jobs[i];
        struct dv_claim *claim = job->err.code == DV_OK ? find_left(operation, job) : NULL;
        bool is_legal;

        if (!claim)
            continue;
        if (is_shared(job, claim)) {
            dv_claim_detach(state, claim, operation->priv.pod_uid);
            continue;
        }
        is_legal = dv_claim_handle(state, claim, DV_CLAIM_ON_UNWANTED, err);
        assert(is_legal); /* phase.c allows UNPREPARING in every phase */
        (void)is_legal;
        dv_claim_hold(job, claim);
    }
    return DV_CLAIM_STEP_IS_DONE;
}

/* Forgets the claim when all its drivers have unprepared it, and keeps it when one has not. */
static const struct dv_err *take_answer(struct dv_claim_operation *operation,
                                        struct dv_claim_job *job)
{
    struct dv_claim *claim = job->claim;
    const struct dv_err *failure = dv_claim_call_failure(operation, claim);
    struct dv_err err;
    bool is_legal;

    dv_claim_let_go(job);
    dv_claim_answered(operation->priv.claims, claim, false, failure);
    is_legal = dv_claim_handle(operation->priv.claims->state, claim,
                               failure ? DV_CLAIM_ON_FAILED : DV_CLAIM_ON_UNPREPARED, &err);
    assert(is_legal); /* the operation held it, so nobody else changed its phase */
    (void)is_legal;
    return failure;
}

/* The first failure is the operation's. A claim that is kept is tried again by chores.c, or by
 * whoever asks. */
enum dv_claim_progress dv_claim_unprepare_answer(struct dv_claim_operation *operation,
                                                 struct dv_err *err)
{
    *err = operation->priv.end; /* code DV_OK, unless the operation was cancelled */
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        struct dv_claim_job *job = &operation->priv.jobs[i];
        const struct dv_err *failure = job->claim ? take_answer(operation, job) : &job->err;

        if (failure && err->code == DV_OK)
            *err = *failure;
    }
    return err->code == DV_OK ? DV_CLAIM_STEP_IS_DONE : DV_CLAIM_STEP_FAILED;
}

/* ---- asking for it ---- */

void dv_claim_manager_unprepare(struct dv_claim_manager *claims,
                                struct dv_claim_operation *operation, dv_str pod_uid)
{
    struct dv_claim **of_pod;
    size_t n;

    dv_claim_operation_init(claims, operation, DV_CLAIM_UNPREPARE);
    operation->priv.pod_uid = dv_str_copy(pod_uid, operation->priv.arena);
    n = dv_claim_of_pod(claims->state, pod_uid, operation->priv.arena, &of_pod);
    dv_claim_operation_set_jobs(operation, n);
    for (size_t i = 0; i < n; i++) {
        const struct dv_claim_record *record = &of_pod[i]->record;

        dv_claim_job_set(&operation->priv.jobs[i], record->namespace, record->name, record->uid);
    }
    dv_claim_operation_start(operation);
}

void dv_claim_manager_release(struct dv_claim_manager *claims, struct dv_claim_operation *operation,
                              dv_str namespace, dv_str name)
{
    dv_claim_operation_init(claims, operation, DV_CLAIM_RELEASE);
    dv_claim_operation_set_jobs(operation, 1);
    operation->priv.jobs[0].ignores_pods = true;
    dv_claim_job_set(&operation->priv.jobs[0], namespace, name, DV_STR_NONE);
    dv_claim_operation_start(operation);
}

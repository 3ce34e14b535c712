/* job_claims.c - the claims and devices of a pod: prepared before each sandbox, given back after
 * the last container has ended. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "claim/claim_manager.h"
#include "pod/pod.h"
#include "pod/runner.h"
#include "pod/runner/runner_job.h"
#include "pod/runner/runner_state.h"
#include "resource/resource.h"

static void end(struct dv_runner_job *job, const struct dv_err *err)
{
    job->cancel = NULL;
    if (err)
        dv_runner_job_fail(job, err);
    else
        dv_runner_job_end(job);
}

/* ---- prepare ---- */

static void on_prepared(struct dv_claim_operation *operation, const struct dv_err *err)
{
    end(DV_CONTAINER(operation, struct dv_runner_job, part.claims), err);
}

static void cancel_prepare(struct dv_runner_job *job)
{
    dv_claim_manager_cancel(&job->part.claims);
}

/* The admission has prepared the claims. A boot since then has undone that, and a sandbox that is
 * made anew must not be without them. */
void dv_runner_begin_prepare(struct dv_runner_job *job)
{
    const struct dv_api_pod *pod = dv_runner_job_pod(job);

    if (!job->pod->runner->options.claims ||
        (pod->spec.n_resource_claims == 0 && !pod->status.extended_resource_claim_status)) {
        dv_runner_job_end_later(job, NULL);
        return;
    }
    job->part.claims = (struct dv_claim_operation){.done = on_prepared, .wait_ms = DV_POD_WAIT_MS};
    job->cancel = cancel_prepare;
    dv_claim_manager_prepare(job->pod->runner->options.claims, &job->part.claims, pod);
}

/* ---- release ---- */

static void on_released(struct dv_pod_release *release, bool was_known, const struct dv_err *err)
{
    (void)was_known; /* claims may be there without the pod */
    end(DV_CONTAINER(release, struct dv_runner_job, part.release), err);
}

static void cancel_release(struct dv_runner_job *job)
{
    dv_pods_cancel_release(&job->part.release);
}

/* The agent releases the pods that it has given, and says when that is done. */
void dv_runner_begin_release(struct dv_runner_job *job)
{
    struct dv_pod_ref ref = {.uid = job->pod->uid};

    if (job->pod->is_given) {
        job->pod->releasing = job;
        dv_runner_tell(job->pod);
        return;
    }
    job->part.release = (struct dv_pod_release){.done = on_released};
    job->cancel = cancel_release;
    dv_pods_release(job->pod->runner->options.pods, &job->part.release, &ref);
}

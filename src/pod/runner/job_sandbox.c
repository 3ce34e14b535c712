/* job_sandbox.c - the sandbox of a pod: made, stopped, removed; and which runtime handles it. */
#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cri/cri.h"
#include "pod/runner.h"
#include "pod/runner/runner_job.h"
#include "pod/runner/runner_state.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "workload/config.h"
#include "workload/life.h"
#include "workload/workload.h"

#define NOT_FOUND 404

static void note_all(struct dv_runner_job *job, const struct dv_config_notes *notes)
{
    for (size_t i = 0; i < notes->n; i++) {
        struct dv_life_note note = {
            .is_warning = true, .reason = notes->v[i].reason, .message = notes->v[i].message};

        dv_runner_pod_note(job->pod, &note);
    }
}

/* ---- the handler ---- */

static void on_class(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_runner_job *job = DV_CONTAINER(request, struct dv_runner_job, request);
    const struct dv_api_runtime_class *class;
    struct dv_err err;

    job->cancel = NULL;
    if (!failure) {
        class = request->object->value;
        job->workload.handler = dv_str_copy(class->handler, job->arena);
        job->got_handler(job, NULL);
        return;
    }
    if (failure->code == NOT_FOUND)
        (void)dv_fail(&err, DV_NOT_FOUND, "runtimeclass.node.k8s.io \"%.*s\" not found",
                      DV_FMT(request->name));
    else
        (void)dv_fail(&err, DV_UNAVAILABLE, "failed to lookup RuntimeClass %.*s: %.*s",
                      DV_FMT(request->name), DV_FMT(failure->message));
    job->got_handler(job, &err);
}

static void cancel_request(struct dv_runner_job *job)
{
    dv_request_cancel(job->pod->runner->options.cluster, &job->request);
}

/* The class is asked for whenever it is needed: few pods have one, and what the API says then
 * counts. */
void dv_runner_job_get_handler(struct dv_runner_job *job,
                               void (*done)(struct dv_runner_job *job, const struct dv_err *err))
{
    dv_str name = dv_runner_job_pod(job)->spec.runtime_class_name;

    if (name.n == 0) { /* the runtime has a default */
        done(job, NULL);
        return;
    }
    job->got_handler = done;
    job->request = (struct dv_request){.verb = DV_VERB_GET,
                                       .kind = dv_kind(DV_KIND_RUNTIME_CLASS),
                                       .name = name,
                                       .done = on_class};
    job->cancel = cancel_request;
    dv_request_start(job->pod->runner->options.cluster, &job->request);
}

/* ---- made ---- */

static void on_status(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_runner_job *job = dv_runner_job_of_call(call);
    const CriV1__PodSandboxStatusResponse *response = answer;
    struct dv_life_sandbox sandbox;

    if (err) {
        job->result.reason = DV_STR("FailedPodSandBoxStatus");
        dv_runner_job_fail(job, err);
        return;
    }
    dv_life_read_sandbox(response->status, job->arena, &sandbox);
    job->result.ips = sandbox.ips;
    dv_runner_job_end(job);
}

static void on_run(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_runner_job *job = dv_runner_job_of_call(call);
    const CriV1__RunPodSandboxResponse *response = answer;
    CriV1__PodSandboxStatusRequest request = CRI_V1__POD_SANDBOX_STATUS_REQUEST__INIT;

    if (err) {
        dv_runner_job_fail(job, err);
        return;
    }
    job->result.id = dv_str_from_c(response->pod_sandbox_id);
    request.pod_sandbox_id = response->pod_sandbox_id;
    dv_runner_job_call(job, DV_CRI_POD_SANDBOX_STATUS, &request.base, on_status);
}

static void run(struct dv_runner_job *job, const struct dv_err *without_handler)
{
    CriV1__RunPodSandboxRequest request = CRI_V1__RUN_POD_SANDBOX_REQUEST__INIT;
    struct dv_config_notes notes = {0};
    struct dv_err err;

    if (without_handler) {
        dv_runner_job_fail(job, without_handler);
        return;
    }
    request.config = dv_config_sandbox(&job->pod->runner->node, &job->workload, job->action.attempt,
                                       job->arena, &notes, &err);
    note_all(job, &notes);
    if (!request.config) {
        dv_runner_job_end_later(job, &err);
        return;
    }
    request.runtime_handler = dv_str_to_c(job->workload.handler, job->arena);
    dv_runner_job_call(job, DV_CRI_RUN_POD_SANDBOX, &request.base, on_run);
}

void dv_runner_begin_sandbox(struct dv_runner_job *job)
{
    dv_runner_job_get_handler(job, run);
}

/* ---- stopped, removed ---- */

void dv_runner_begin_stop_sandbox(struct dv_runner_job *job)
{
    CriV1__StopPodSandboxRequest request = CRI_V1__STOP_POD_SANDBOX_REQUEST__INIT;

    request.pod_sandbox_id = dv_str_to_c(job->action.id, job->arena);
    dv_runner_job_call(job, DV_CRI_STOP_POD_SANDBOX, &request.base, dv_runner_job_on_empty);
}

static void on_stopped(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_runner_job *job = dv_runner_job_of_call(call);
    CriV1__RemovePodSandboxRequest request = CRI_V1__REMOVE_POD_SANDBOX_REQUEST__INIT;

    (void)answer; /* it is empty */
    if (err) {
        dv_runner_job_fail(job, err);
        return;
    }
    request.pod_sandbox_id = dv_str_to_c(job->action.id, job->arena);
    dv_runner_job_call(job, DV_CRI_REMOVE_POD_SANDBOX, &request.base, dv_runner_job_on_empty);
}

/* A sandbox that is not ready may still have a network: runtimes remove only what was stopped. */
void dv_runner_begin_remove_sandbox(struct dv_runner_job *job)
{
    CriV1__StopPodSandboxRequest request = CRI_V1__STOP_POD_SANDBOX_REQUEST__INIT;

    request.pod_sandbox_id = dv_str_to_c(job->action.id, job->arena);
    dv_runner_job_call(job, DV_CRI_STOP_POD_SANDBOX, &request.base, on_stopped);
}

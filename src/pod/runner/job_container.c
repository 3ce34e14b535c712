/* job_container.c - a container that was made: started, stopped, removed. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cri/cri.h"
#include "pod/runner.h"
#include "pod/runner/runner_job.h"
#include "pod/runner/runner_state.h"
#include "proto/cri_v1.pb-c.h"
#include "voldir/voldir.h"
#include "workload/life.h"

void dv_runner_begin_start(struct dv_runner_job *job)
{
    CriV1__StartContainerRequest request = CRI_V1__START_CONTAINER_REQUEST__INIT;

    request.container_id = dv_str_to_c(job->action.id, job->arena);
    dv_runner_job_call(job, DV_CRI_START_CONTAINER, &request.base, dv_runner_job_on_empty);
}

void dv_runner_begin_stop(struct dv_runner_job *job)
{
    CriV1__StopContainerRequest request = CRI_V1__STOP_CONTAINER_REQUEST__INIT;

    request.container_id = dv_str_to_c(job->action.id, job->arena);
    request.timeout = (int64_t)job->action.grace_s;
    dv_runner_job_call(job, DV_CRI_STOP_CONTAINER, &request.base, dv_runner_job_on_empty);
}

/* ---- removed ---- */

/* Sets the two parts of the path of the container's log, "<logs>/<pod>" and "<container>/0.log".
 * False: the runtime does not say, or it is elsewhere. */
static bool find_log(const struct dv_runner_job *job, dv_str *dir, dv_str *file)
{
    const struct dv_runner *runner = job->pod->runner;
    const struct dv_cri_pod *view = dv_cri_view_pod(runner->cri, job->pod->uid);
    dv_str logs = runner->options.log_dir;

    for (size_t i = 0; view && i < view->n_containers; i++) {
        dv_str path = dv_str_from_c(view->containers[i]->log_path);
        size_t slash;

        if (!dv_str_eq(dv_str_from_c(view->containers[i]->id), job->action.id))
            continue;
        if (!dv_str_starts_with(path, logs) || path.n <= logs.n || path.p[logs.n] != '/')
            return false;
        slash = logs.n + 1 + dv_str_find_char(dv_str_slice(path, logs.n + 1, path.n), '/');
        *dir = dv_str_copy(dv_str_slice(path, 0, slash), job->arena);
        *file = dv_str_copy(dv_str_slice(path, slash + 1, path.n), job->arena);
        return file->n > 0;
    }
    return false;
}

static void on_logs_removed(struct dv_voldir_remove_logs *op, const struct dv_err *err)
{
    struct dv_runner_job *job = DV_CONTAINER(op, struct dv_runner_job, part.remove_logs);

    (void)err; /* what is left goes with the pod's log directory */
    dv_runner_job_end(job);
}

static void on_removed(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_runner_job *job = dv_runner_job_of_call(call);

    (void)answer; /* it is empty */
    if (err)
        dv_runner_job_fail(job, err);
    else if (job->part.remove_logs.file.n > 0)
        dv_voldir_remove_logs(&job->part.remove_logs, job->pod->runner->loop);
    else
        dv_runner_job_end(job);
}

void dv_runner_begin_remove(struct dv_runner_job *job)
{
    CriV1__RemoveContainerRequest request = CRI_V1__REMOVE_CONTAINER_REQUEST__INIT;

    job->part.remove_logs = (struct dv_voldir_remove_logs){.done = on_logs_removed};
    if (!job->action.keeps_log &&
        !find_log(job, &job->part.remove_logs.log_dir, &job->part.remove_logs.file))
        job->part.remove_logs.file = DV_STR("");
    request.container_id = dv_str_to_c(job->action.id, job->arena);
    dv_runner_job_call(job, DV_CRI_REMOVE_CONTAINER, &request.base, on_removed);
}

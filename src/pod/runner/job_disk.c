/* job_disk.c - what a pod has on the disk: set up before its sandbox, removed after its end. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "pod/runner.h"
#include "pod/runner/pod_objects.h"
#include "pod/runner/runner_cgroup.h"
#include "pod/runner/runner_job.h"
#include "pod/runner/runner_state.h"
#include "resource/resource.h"
#include "voldir/voldir.h"
#include "workload/life.h"
#include "workload/volume.h"
#include "workload/workload.h"

/* The names in one event. */
#define NAMES_BYTES_MAX 1024u

/* ---- set up ---- */

/* Tells of volumes that could not be set up, from the one of that number on. */
static void note_problems(struct dv_runner_job *job, size_t from)
{
    const struct dv_voldir_set_up *op = &job->part.set_up;

    for (size_t i = from; i < op->n_problems; i++) {
        struct dv_life_note note = {
            .is_warning = true,
            .reason = DV_STR("FailedMount"),
            .message = dv_volume_event(op->problems[i].volume, op->problems[i].text, job->arena),
        };

        dv_runner_pod_note(job->pod, &note);
    }
}

static void on_set_up(struct dv_voldir_set_up *op, const struct dv_err *err)
{
    struct dv_runner_job *job = DV_CONTAINER(op, struct dv_runner_job, part.set_up);

    job->cancel = NULL;
    /* The volumes of a pod that runs stay as they were when an object is gone, or the disk full. */
    if (!err || (op->is_refresh && op->n_problems > 0)) {
        note_problems(job, 0);
        job->pod->is_set_up = true;
        job->pod->has_cgroup = job->pod->has_cgroup || op->cgroup;
        dv_runner_job_end(job);
        return;
    }
    if (op->has_no_cgroup) {
        job->err = *err;
        (void)dv_wrap(&job->err, "unable to ensure pod container exists");
        job->result.reason = DV_STR("FailedCreatePodContainer");
        dv_runner_job_fail(job, &job->err);
        return;
    }
    note_problems(job, 1); /* of the first one tells the result */
    job->result.reason = DV_STR("FailedMount");
    dv_runner_job_fail(job, err);
}

static void cancel_set_up(struct dv_runner_job *job)
{
    dv_voldir_cancel(&job->part.set_up.priv);
}

/* A pull secret that is missing is told and does no harm: the image may be public. */
static void note_missing_secrets(struct dv_runner_job *job)
{
    const struct dv_api_pod *pod = dv_runner_job_pod(job);
    struct dv_buf names;

    dv_buf_init(&names, NAMES_BYTES_MAX);
    for (size_t i = 0; i < pod->spec.n_image_pull_secrets; i++) {
        dv_str name = pod->spec.image_pull_secrets[i].name;

        if (dv_workload_secret(&job->objects.objects, name))
            continue;
        if (names.n > 0)
            dv_buf_add_c(&names, ", ");
        dv_buf_add(&names, name);
    }
    if (names.n > 0) {
        struct dv_life_note note = {
            .is_warning = true,
            .reason = DV_STR("FailedToRetrieveImagePullSecret"),
            .message = dv_str_printf(
                job->arena,
                "Unable to retrieve some image pull secrets (%s); attempting to pull the image "
                "may not succeed.",
                dv_buf_c(&names)),
        };

        dv_runner_pod_note(job->pod, &note);
    }
    dv_buf_fini(&names);
}

static void on_tokens(struct dv_runner_job *job)
{
    dv_runner_job_plan(job);
    job->part.set_up = (struct dv_voldir_set_up){
        .done = on_set_up,
        .plan = job->plan,
        .cgroup = dv_runner_cgroups_plan(job),
        .is_refresh = job->pod->is_set_up,
        .arena = job->arena,
    };
    job->cancel = cancel_set_up;
    dv_voldir_set_up(&job->part.set_up, job->pod->runner->loop);
}

static void on_objects(struct dv_pod_objects *op, const struct dv_err *err)
{
    struct dv_runner_job *job = DV_CONTAINER(op, struct dv_runner_job, objects);

    job->cancel = NULL;
    if (err && job->pod->is_set_up) { /* the API is away: what there is stays as it is */
        dv_runner_job_end(job);
        return;
    }
    if (err) {
        job->result.reason = DV_STR("FailedMount");
        dv_runner_job_fail(job, err);
        return;
    }
    note_missing_secrets(job);
    dv_runner_job_get_tokens(job, on_tokens);
}

void dv_runner_begin_set_up(struct dv_runner_job *job)
{
    dv_runner_job_get_objects(job, on_objects);
}

/* ---- clean up ---- */

static void on_torn_down(struct dv_voldir_tear_down *op, const struct dv_err *err)
{
    struct dv_runner_job *job = DV_CONTAINER(op, struct dv_runner_job, part.tear_down);

    job->cancel = NULL;
    job->pod->is_set_up = false;
    if (!err) {
        dv_runner_job_end(job);
        return;
    }
    /* The pod stays until it can be removed: who wonders why finds it here. */
    dv_log(DV_LOG_WARN, "pod: the directory of a pod cannot be removed",
           DV_F_STR("uid", job->pod->uid), DV_F_ERR(err));
    dv_runner_job_fail(job, err);
}

void dv_runner_begin_clean_up(struct dv_runner_job *job)
{
    job->part.tear_down = (struct dv_voldir_tear_down){
        .done = on_torn_down,
        .root_dir = job->pod->runner->options.root_dir,
        .uid = job->pod->uid,
        .cgroup_dirs = dv_runner_cgroups_dirs(job->pod->runner->cgroups, job->pod->uid, job->arena),
    };
    dv_voldir_tear_down(&job->part.tear_down, job->pod->runner->loop);
}

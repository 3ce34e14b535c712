/* list_job.c - a long list is read on a worker, becomes the resource's list on the loop, and the
 * list before it is freed on a worker again. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "device/manager/device_manager_state.h"
#include "loop/loop.h"

struct dv_list_job {
    struct dv_work work;
    struct dv_device_manager *devices;
    struct dv_device_list *list;
    struct dv_buf bytes;
    bool is_read;
    struct dv_err err; /* set when the list was refused */
    dv_list_job_fn *done;
    void *ctx;
};

static void run_free(struct dv_work *work)
{
    struct dv_list_job *job = DV_CONTAINER(work, struct dv_list_job, work);

    dv_device_list_free(job->list);
    dv_buf_fini(&job->bytes);
}

static void on_freed(struct dv_work *work, const struct dv_err *err)
{
    struct dv_list_job *job = DV_CONTAINER(work, struct dv_list_job, work);
    struct dv_device_manager *devices = job->devices;

    if (err) /* the worker did not run the job */
        run_free(work);
    free(job);
    devices->n_list_jobs--;
    dv_device_manager_check_closed(devices);
}

static void run_read(struct dv_work *work)
{
    struct dv_list_job *job = DV_CONTAINER(work, struct dv_list_job, work);

    job->is_read = dv_device_list_read(job->list, dv_buf_str(&job->bytes), &job->err);
}

static void on_read(struct dv_work *work, const struct dv_err *err)
{
    struct dv_list_job *job = DV_CONTAINER(work, struct dv_list_job, work);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_device_diff diff;
    bool has_changed = false;

    if (err || !job->is_read || !job->done)
        dv_device_list_abandon(job->list);
    else
        has_changed = dv_device_list_commit(job->list, arena, &diff);
    if (job->done) /* only a forgotten job is cancelled, so this one has run */
        job->done(job->ctx, has_changed ? &diff : NULL, job->is_read ? NULL : &job->err);
    job->done = NULL;
    job->work = (struct dv_work){.run = run_free, .done = on_freed};
    dv_work_start(&job->work, job->devices->loop);
}

struct dv_list_job *dv_list_job_start(struct dv_device_manager *devices, dv_str resource,
                                      dv_str message, dv_list_job_fn *done, void *ctx)
{
    struct dv_list_job *job = DV_ALLOC(struct dv_list_job);

    job->devices = devices;
    job->done = done;
    job->ctx = ctx;
    job->list = dv_device_list_begin(devices->state, resource);
    dv_buf_init(&job->bytes, DV_DEVICE_LIST_BYTES_MAX);
    dv_buf_add(&job->bytes, message);
    job->work = (struct dv_work){.run = run_read, .done = on_read};
    devices->n_list_jobs++;
    dv_work_start(&job->work, devices->loop);
    return job;
}

void dv_list_job_forget(struct dv_list_job *job)
{
    job->done = NULL;
    dv_work_cancel(&job->work);
}

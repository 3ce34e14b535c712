/* job_image.c - images: looked for, and pulled one at a time from each registry; one that takes
 * long goes on beside the next. */
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "cri/cri.h"
#include "loop/loop.h"
#include "pod/runner/pod_objects.h"
#include "pod/runner/pull_secret.h"
#include "pod/runner/runner_job.h"
#include "pod/runner/runner_state.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "workload/config.h"
#include "workload/life.h"
#include "workload/workload.h"

/* How long one pull keeps others waiting: a registry that hangs must not stop other pods. */
#define TURN_MS 10000u
/* How many registries are pulled from at a time: unpacking is work for the disk. */
#define TURNS_MAX 5u

static void look_for(struct dv_runner_job *job, dv_str image,
                     void (*done)(struct dv_cri_call *call, const void *answer,
                                  const struct dv_err *err))
{
    CriV1__ImageStatusRequest request = CRI_V1__IMAGE_STATUS_REQUEST__INIT;

    request.image = dv_runner_job_image(job, image);
    dv_runner_job_call(job, DV_CRI_IMAGE_STATUS, &request.base, done);
}

/* ---- looked for ---- */

static void on_inspected(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_runner_job *job = dv_runner_job_of_call(call);
    const CriV1__ImageStatusResponse *response = answer;

    if (err) {
        dv_runner_job_fail(job, err);
        return;
    }
    if (response->image) {
        job->result.id = dv_str_from_c(response->image->id);
        job->result.size_bytes = response->image->size;
    }
    dv_runner_job_end(job);
}

void dv_runner_begin_inspect(struct dv_runner_job *job)
{
    look_for(job, job->action.image, on_inspected);
}

/* ---- pulled ---- */

static void pull_next(struct dv_runner *runner);

/* Lets the next one pull. The job goes on with what needs no turn. */
static void give_turn(struct dv_runner_job *job)
{
    if (!job->part.pull.has_turn)
        return;
    job->part.pull.has_turn = false;
    dv_timer_cancel(&job->timer);
    dv_link_remove(&job->waiting);
    pull_next(job->pod->runner);
}

static void on_turn_over(struct dv_timer *timer)
{
    give_turn(DV_CONTAINER(timer, struct dv_runner_job, timer));
}

/* The pull has worked. What its size is, is only for the event. */
static void on_measured(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_runner_job *job = dv_runner_job_of_call(call);
    const CriV1__ImageStatusResponse *response = answer;

    if (!err && response->image)
        job->result.size_bytes = response->image->size;
    dv_runner_job_end(job);
}

static void pull(struct dv_runner_job *job);

/* The next credentials are tried when these were not good; the last failure is told. */
static void on_pulled(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_runner_job *job = dv_runner_job_of_call(call);
    struct dv_runner_pull *pull_part = &job->part.pull;
    const CriV1__PullImageResponse *response = answer;

    if (err && !job->is_cancelled && ++pull_part->i_auth < pull_part->n_auths) {
        pull(job);
        return;
    }
    give_turn(job);
    if (err) {
        dv_runner_job_fail(job, err);
        return;
    }
    job->result.id = dv_str_from_c(response->image_ref);
    look_for(job, job->action.image, on_measured);
}

static void pull(struct dv_runner_job *job)
{
    CriV1__PullImageRequest request = CRI_V1__PULL_IMAGE_REQUEST__INIT;
    CriV1__AuthConfig auth = CRI_V1__AUTH_CONFIG__INIT;
    const struct dv_runner_pull *part = &job->part.pull;
    struct dv_config_notes notes = {0}; /* they were told when the sandbox was made */
    struct dv_err err;

    request.image = dv_runner_job_image(job, job->action.image);
    request.sandbox_config = dv_config_sandbox(&job->pod->runner->node, &job->workload,
                                               job->action.attempt, job->arena, &notes, &err);
    if (part->n_auths > 0) {
        auth.username = dv_str_to_c(part->auths[part->i_auth].username, job->arena);
        auth.password = dv_str_to_c(part->auths[part->i_auth].password, job->arena);
        request.auth = &auth;
    }
    dv_runner_job_call(job, DV_CRI_PULL_IMAGE, &request.base, on_pulled);
}

/* Whether there is a turn for the registry: nobody has its own, and not too many have one. */
static bool is_free(const struct dv_runner *runner, dv_str registry)
{
    struct dv_link *link;
    size_t n = 0;

    DV_LIST_EACH (&runner->pulling, link) {
        const struct dv_runner_job *other = DV_CONTAINER(link, struct dv_runner_job, waiting);

        if (++n == TURNS_MAX || dv_str_eq(other->part.pull.registry, registry))
            return false;
    }
    return true;
}

/* The first that waits and may begin; NULL: none may. */
static struct dv_runner_job *find_next(const struct dv_runner *runner)
{
    struct dv_link *link;

    DV_LIST_EACH (&runner->pulls, link) {
        struct dv_runner_job *job = DV_CONTAINER(link, struct dv_runner_job, waiting);

        if (is_free(runner, job->part.pull.registry))
            return job;
    }
    return NULL;
}

static void pull_next(struct dv_runner *runner)
{
    struct dv_runner_job *job;

    while ((job = find_next(runner)) != NULL) {
        dv_link_remove(&job->waiting);
        dv_list_push(&runner->pulling, &job->waiting);
        job->part.pull.has_turn = true;
        dv_timer_start(&job->timer, runner->loop, dv_loop_now_ms(runner->loop) + TURN_MS,
                       on_turn_over);
        pull(job);
    }
}

static void cancel_wait(struct dv_runner_job *job)
{
    struct dv_err err;

    job->cancel = NULL;
    dv_link_remove(&job->waiting);
    (void)dv_fail(&err, DV_CANCELLED, "context canceled");
    dv_runner_job_end_later(job, &err);
}

/* ---- credentials ---- */

/* Finds the credentials, on a worker: there may be megabytes to read. */
static void find_auths(struct dv_work *work)
{
    struct dv_runner_job *job = DV_CONTAINER(work, struct dv_runner_job, part.pull.work);
    struct dv_runner_pull *part = &job->part.pull;

    part->n_auths = dv_pull_secret_find(part->secrets, part->n_secrets, job->action.image,
                                        job->arena, &part->auths);
}

static void on_auths(struct dv_work *work, const struct dv_err *err)
{
    struct dv_runner_job *job = DV_CONTAINER(work, struct dv_runner_job, part.pull.work);

    (void)err; /* it is never cancelled */
    job->cancel = cancel_wait;
    if (job->is_cancelled) {
        cancel_wait(job);
        return;
    }
    dv_list_push(&job->pod->runner->pulls, &job->waiting);
    pull_next(job->pod->runner);
}

/* Returns the pull secrets that exist, each once, in the pod's order. */
static size_t find_secrets(const struct dv_pod_objects *op, const struct dv_api_pod *pod,
                           struct dv_arena *arena, const struct dv_api_secret ***secrets)
{
    struct dv_map seen;
    size_t n = 0;

    dv_map_init(&seen);
    *secrets = DV_NEW_ARRAY(arena, const struct dv_api_secret *, pod->spec.n_image_pull_secrets);
    for (size_t i = 0; i < pod->spec.n_image_pull_secrets; i++) {
        const struct dv_api_local_object_reference *named = &pod->spec.image_pull_secrets[i];
        const struct dv_api_secret *secret = dv_workload_secret(&op->objects, named->name);

        if (secret && !dv_map_set(&seen, named->name, &pod->spec.image_pull_secrets[i]))
            (*secrets)[n++] = secret;
    }
    dv_map_fini(&seen);
    return n;
}

static void on_objects(struct dv_pod_objects *op, const struct dv_err *err)
{
    struct dv_runner_job *job = DV_CONTAINER(op, struct dv_runner_job, objects);
    struct dv_runner_pull *part = &job->part.pull;

    (void)err; /* secrets that could not be got are as good as none: the image may be public */
    *part = (struct dv_runner_pull){
        .registry = dv_pull_registry(job->action.image),
        .work = {.run = find_auths, .done = on_auths},
    };
    part->n_secrets = find_secrets(op, dv_runner_job_pod(job), job->arena, &part->secrets);
    job->cancel = NULL; /* the credentials are found in a moment */
    if (part->n_secrets > 0)
        dv_work_start(&part->work, job->pod->runner->loop);
    else
        on_auths(&part->work, NULL);
}

void dv_runner_begin_pull(struct dv_runner_job *job)
{
    dv_runner_job_get_objects(job, on_objects);
}

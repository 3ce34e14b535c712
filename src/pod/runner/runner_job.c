#include "pod/runner/runner_job.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/calendar.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cri/cri.h"
#include "pod/runner.h"
#include "pod/runner/runner_state.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "workload/volume.h"

/* The longest text that is told about a failure. */
#define ERROR_BYTES_MAX (4u * DV_ERR_MSG_BYTES)

static void (*const begins[DV_N_LIFE_ACTION_KINDS])(struct dv_runner_job *job) = {
    [DV_LIFE_SET_UP] = dv_runner_begin_set_up,
    [DV_LIFE_PREPARE] = dv_runner_begin_prepare,
    [DV_LIFE_RUN_SANDBOX] = dv_runner_begin_sandbox,
    [DV_LIFE_INSPECT_IMAGE] = dv_runner_begin_inspect,
    [DV_LIFE_PULL_IMAGE] = dv_runner_begin_pull,
    [DV_LIFE_CREATE_CONTAINER] = dv_runner_begin_create,
    [DV_LIFE_START_CONTAINER] = dv_runner_begin_start,
    [DV_LIFE_POST_START] = dv_runner_begin_hook,
    [DV_LIFE_PRE_STOP] = dv_runner_begin_hook,
    [DV_LIFE_STOP_CONTAINER] = dv_runner_begin_stop,
    [DV_LIFE_REMOVE_CONTAINER] = dv_runner_begin_remove,
    [DV_LIFE_STOP_SANDBOX] = dv_runner_begin_stop_sandbox,
    [DV_LIFE_REMOVE_SANDBOX] = dv_runner_begin_remove_sandbox,
    [DV_LIFE_PROBE] = dv_runner_begin_probe,
    [DV_LIFE_RELEASE] = dv_runner_begin_release,
    [DV_LIFE_CLEAN_UP] = dv_runner_begin_clean_up,
};

/* ---- life ---- */

static struct dv_strs copy_texts(const struct dv_strs *texts, struct dv_arena *arena)
{
    struct dv_strs copy = {DV_NEW_ARRAY(arena, dv_str, texts->n), texts->n};

    for (size_t i = 0; i < texts->n; i++)
        copy.v[i] = dv_str_copy(texts->v[i], arena);
    return copy;
}

static dv_str print_time(uint64_t wall_ns, struct dv_arena *arena)
{
    char text[DV_RFC3339_BYTES];
    size_t n = dv_rfc3339_print((struct dv_rfc3339){.seconds = (int64_t)(wall_ns / DV_NS_PER_S),
                                                    .nanos = (int32_t)(wall_ns % DV_NS_PER_S)},
                                DV_RFC3339_TRIMMED, text);

    return dv_str_copy((dv_str){text, n}, arena);
}

static void fill_workload(struct dv_runner_job *job)
{
    const struct dv_runner_pod *pod = job->pod;
    const struct dv_api_pod *value = dv_runner_job_pod(job);

    job->workload = (struct dv_workload_pod){
        .pod = value,
        .uid = pod->uid,
        .source = pod->is_static ? DV_STR("file") : DV_STR("api"),
        .seen = print_time(pod->seen_wall_ns, job->arena),
        .ips = job->action.ips,
    };
}

/* Copies what is known of the container. Without an object it belongs to the look that told of it,
 * and goes with that. */
static void keep_spec(struct dv_runner_job *job)
{
    struct dv_api_container *copy;

    if (job->object || !job->action.spec)
        return;
    copy = DV_NEW(job->arena, struct dv_api_container);
    dv_message_copy(&dv_message_container, job->action.spec, job->arena, copy);
    job->action.spec = copy;
    job->action.hook = copy->lifecycle ? copy->lifecycle->pre_stop : NULL;
}

void dv_runner_job_start(struct dv_runner_pod *pod, const struct dv_life_action *action)
{
    struct dv_runner_job *job = DV_ALLOC(struct dv_runner_job);

    job->pod = pod;
    job->arena = dv_arena_new();
    job->object = pod->object ? dv_object_ref(pod->object) : NULL;
    job->action = *action;
    job->action.container = dv_str_copy(action->container, job->arena);
    job->action.id = dv_str_copy(action->id, job->arena);
    job->action.sandbox_id = dv_str_copy(action->sandbox_id, job->arena);
    job->action.image = dv_str_copy(action->image, job->arena);
    job->action.image_id = dv_str_copy(action->image_id, job->arena);
    job->action.ips = copy_texts(&action->ips, job->arena);
    keep_spec(job);
    fill_workload(job);
    dv_list_push(&pod->jobs, &job->link);
    begins[action->kind](job);
}

void dv_runner_job_cancel(struct dv_runner_job *job)
{
    job->is_cancelled = true;
    if (job->cancel)
        job->cancel(job);
}

static void free_job(struct dv_runner_job *job)
{
    dv_link_remove(&job->link);
    dv_link_remove(&job->waiting);
    dv_task_cancel(&job->task);
    dv_timer_cancel(&job->timer);
    dv_pod_objects_fini(&job->objects);
    dv_object_unref(job->object);
    dv_arena_free(job->arena);
    free(job);
}

void dv_runner_job_end(struct dv_runner_job *job)
{
    struct dv_runner_pod *pod = job->pod;

    dv_life_done(pod->life, job->action.id_of_action, &job->result);
    pod->relisted_ns = 0; /* a view that was asked for before this does not show it */
    free_job(job);
    dv_runner_pod_look(pod);
}

void dv_runner_job_fail(struct dv_runner_job *job, const struct dv_err *err)
{
    struct dv_buf text;

    dv_buf_init(&text, ERROR_BYTES_MAX);
    dv_cri_print_text(dv_str_from_c(err->msg), job->action.id, job->action.container, &text);
    job->result.has_failed = true;
    job->result.error = dv_str_copy(dv_buf_str(&text), job->arena);
    dv_buf_fini(&text);
    dv_runner_job_end(job);
}

static void on_task(struct dv_task *task)
{
    struct dv_runner_job *job = DV_CONTAINER(task, struct dv_runner_job, task);

    if (job->err.code == DV_OK)
        dv_runner_job_end(job);
    else
        dv_runner_job_fail(job, &job->err);
}

void dv_runner_job_end_later(struct dv_runner_job *job, const struct dv_err *err)
{
    if (err)
        job->err = *err;
    dv_task_post(&job->task, job->pod->runner->loop, on_task);
}

/* ---- what several kinds need ---- */

const struct dv_api_pod *dv_runner_job_pod(const struct dv_runner_job *job)
{
    return job->object ? job->object->value : NULL;
}

static void cancel_call(struct dv_runner_job *job)
{
    dv_cri_call_cancel(&job->call);
}

struct dv_runner_job *dv_runner_job_of_call(struct dv_cri_call *call)
{
    struct dv_runner_job *job = DV_CONTAINER(call, struct dv_runner_job, call);

    job->cancel = NULL;
    return job;
}

void dv_runner_job_on_empty(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_runner_job *job = dv_runner_job_of_call(call);

    (void)answer;
    if (err)
        dv_runner_job_fail(job, err);
    else
        dv_runner_job_end(job);
}

void dv_runner_job_call(struct dv_runner_job *job, enum dv_cri_method method,
                        const struct ProtobufCMessage *request,
                        void (*done)(struct dv_cri_call *call, const void *answer,
                                     const struct dv_err *err))
{
    job->call = (struct dv_cri_call){.method = method, .arena = job->arena, .done = done};
    job->cancel = cancel_call;
    dv_cri_call_start(job->pod->runner->cri, &job->call, request);
}

struct CriV1__ImageSpec *dv_runner_job_image(struct dv_runner_job *job, dv_str image)
{
    CriV1__ImageSpec *spec = DV_NEW(job->arena, CriV1__ImageSpec);
    struct dv_str_entry *annotations;
    size_t n = 0;

    cri_v1__image_spec__init(spec);
    spec->image = dv_str_to_c(image, job->arena);
    if (!job->workload.pod)
        return spec;
    annotations = dv_workload_annotations(&job->workload, job->arena, &n);
    spec->annotations = DV_NEW_ARRAY(job->arena, CriV1__ImageSpec__AnnotationsEntry *, n);
    for (size_t i = 0; i < n; i++) {
        CriV1__ImageSpec__AnnotationsEntry *entry =
            DV_NEW(job->arena, CriV1__ImageSpec__AnnotationsEntry);

        cri_v1__image_spec__annotations_entry__init(entry);
        entry->key = dv_str_to_c(annotations[i].key, job->arena);
        entry->value = dv_str_to_c(annotations[i].value, job->arena);
        spec->annotations[spec->n_annotations++] = entry;
    }
    return spec;
}

static void cancel_objects(struct dv_runner_job *job)
{
    dv_pod_objects_cancel(&job->objects);
}

void dv_runner_job_get_objects(struct dv_runner_job *job,
                               void (*done)(struct dv_pod_objects *op, const struct dv_err *err))
{
    struct dv_runner *runner = job->pod->runner;

    job->objects = (struct dv_pod_objects){.done = done,
                                           .loop = runner->loop,
                                           .cluster = runner->options.cluster,
                                           .arena = job->arena};
    job->cancel = cancel_objects;
    dv_pod_objects_start(&job->objects, dv_runner_job_pod(job));
}

void dv_runner_job_plan(struct dv_runner_job *job)
{
    const struct dv_workload_node *node = &job->pod->runner->node;
    struct dv_config_cgroup cgroup;
    struct dv_volume_input input = {
        .node = node,
        .pod = &job->workload,
        .objects = &job->objects.objects,
        .tokens = job->tokens,
        .n_tokens = job->n_tokens,
    };

    dv_config_cgroup(&job->workload, job->arena, &cgroup);
    input.memory_bytes = cgroup.memory_bytes > 0 ? (uint64_t)cgroup.memory_bytes : 0;
    job->plan = dv_volume_plan(&input, job->arena);
}

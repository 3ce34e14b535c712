/* runner_pod.c - one pod: its facts are gathered, its life says what to do, jobs do it. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/recorder.h"
#include "cri/cri.h"
#include "loop/loop.h"
#include "pod/runner.h"
#include "pod/runner/device_health.h"
#include "pod/runner/runner_cgroup.h"
#include "pod/runner/runner_job.h"
#include "pod/runner/runner_state.h"
#include "pod/runner/runner_words.h"
#include "resource/resource.h"
#include "workload/life.h"
#include "workload/workload.h"

/* ---- life ---- */

struct dv_runner_pod *dv_runner_pod_new(struct dv_runner *runner, dv_str uid)
{
    struct dv_runner_pod *pod = dv_alloc(sizeof(*pod) + uid.n);

    memcpy(pod->text, uid.p, uid.n);
    pod->uid = (dv_str){pod->text, uid.n};
    pod->runner = runner;
    pod->life = dv_life_new();
    pod->seen_wall_ns = dv_clock_wall_ns(dv_loop_clock(runner->loop));
    dv_list_init(&pod->jobs);
    dv_list_init(&pod->words);
    dv_list_init(&pod->tokens);
    (void)dv_map_set(&runner->pods, pod->uid, pod);
    return pod;
}

void dv_runner_pod_free(struct dv_runner_pod *pod)
{
    dv_timer_cancel(&pod->timer);
    dv_task_cancel(&pod->task);
    dv_runner_words_clear(pod);
    dv_runner_tokens_clear(pod);
    dv_life_free(pod->life);
    dv_object_unref(pod->object);
    free(pod->eviction_reason);
    free(pod->eviction_message);
    free(pod);
}

bool dv_runner_pod_is_idle(const struct dv_runner_pod *pod)
{
    return dv_list_is_empty(&pod->jobs) && pod->n_reading == 0;
}

void dv_runner_pod_stop(struct dv_runner_pod *pod)
{
    struct dv_link *link;

    dv_timer_cancel(&pod->timer);
    dv_task_cancel(&pod->task);
    if (pod->releasing) { /* its release is the agent's */
        dv_runner_job_end(pod->releasing);
        pod->releasing = NULL;
    }
    DV_LIST_EACH (&pod->jobs, link) {
        dv_runner_job_cancel(DV_CONTAINER(link, struct dv_runner_job, link));
    }
}

void dv_runner_pod_note(struct dv_runner_pod *pod, const struct dv_life_note *note)
{
    struct dv_note_subject subject;

    if (!pod->object)
        return; /* nobody would find an event about it */
    subject = (struct dv_note_subject){
        .kind = DV_STR("Pod"),
        .api_version = DV_STR("v1"),
        .namespace = pod->object->meta->namespace,
        .name = pod->object->meta->name,
        .uid = pod->object->meta->uid,
        .field_path = note->field_path,
    };
    dv_recorder_note(pod->runner->options.recorder, &subject, note->is_warning, note->reason,
                     note->message);
}

/* ---- in a word ---- */

/* The container whose image could not be pulled and will be tried again; NULL: none. */
static const struct dv_api_container_status *without_image(const struct dv_runner_pod *pod)
{
    static const dv_str reasons[] = {
        DV_STR_INIT("ErrImagePull"),
        DV_STR_INIT("ImagePullBackOff"),
        DV_STR_INIT("RegistryUnavailable"),
        DV_STR_INIT("SignatureValidationFailed"),
    };
    const struct dv_api_pod_status *status = dv_life_status(pod->life);

    for (size_t i = 0; status && i < status->n_container_statuses; i++) {
        const struct dv_api_container_status *container = &status->container_statuses[i];

        for (size_t k = 0; container->state.waiting && k < DV_COUNT(reasons); k++)
            if (dv_str_eq(container->state.waiting->reason, reasons[k]))
                return container;
    }
    return NULL;
}

/* The image that is being pulled; empty: none. */
static dv_str image_pulled(const struct dv_runner_pod *pod)
{
    struct dv_link *link;

    DV_LIST_EACH (&pod->jobs, link) {
        const struct dv_runner_job *job = DV_CONTAINER(link, struct dv_runner_job, link);

        if (job->action.kind == DV_LIFE_PULL_IMAGE)
            return job->action.image;
    }
    return DV_STR_NONE;
}

static struct dv_runner_doing pulling(const struct dv_runner_pod *pod)
{
    const struct dv_api_container_status *container = without_image(pod);
    struct dv_runner_doing doing = {.word = "pulling", .image = image_pulled(pod)};

    if (container && (doing.image.n == 0 || dv_str_eq(doing.image, container->image))) {
        doing.image = container->image;
        doing.why = container->state.waiting->message;
    }
    return doing;
}

struct dv_runner_doing dv_runner_doing(const struct dv_runner *runner, dv_str uid)
{
    const struct dv_runner_pod *pod = dv_map_get(&runner->pods, uid);
    const struct dv_api_pod_status *status;
    struct dv_runner_doing doing;

    if (!pod || !pod->is_given)
        return (struct dv_runner_doing){0};
    if (pod->stage >= DV_LIFE_TERMINATED)
        return (struct dv_runner_doing){.word = "ended"};
    if (pod->stage == DV_LIFE_TERMINATING)
        return (struct dv_runner_doing){.word = "ending"};
    status = dv_life_status(pod->life);
    doing = pulling(pod);
    if (doing.image.n > 0)
        return doing;
    if (status && dv_str_eq(status->phase, DV_STR("Running")))
        return (struct dv_runner_doing){.word = "running"};
    return (struct dv_runner_doing){.word = "starting"};
}

/* ---- facts ---- */

static uint64_t view_ms(const struct dv_runner_pod *pod)
{
    const struct dv_cri *cri = pod->runner->cri;
    uint64_t taken_ns = dv_cri_view_taken_ns(cri, pod->uid);

    if (!dv_cri_view_is_complete(cri))
        return 0;
    /* asked for after the last job, if within the same millisecond */
    if (pod->relisted_ns > 0 && taken_ns >= pod->relisted_ns)
        return dv_u64_max(taken_ns / DV_NS_PER_MS, pod->view_after_ms + 1);
    return taken_ns / DV_NS_PER_MS;
}

static void read_view(const struct dv_runner_pod *pod, const struct dv_cri_pod *view,
                      struct dv_arena *arena, struct dv_life_view *read)
{
    struct dv_life_sandbox *sandboxes;
    struct dv_life_container *containers;

    if (!view)
        return;
    sandboxes = DV_NEW_ARRAY(arena, struct dv_life_sandbox, view->n_sandboxes);
    containers = DV_NEW_ARRAY(arena, struct dv_life_container, view->n_containers);
    for (size_t i = 0; i < view->n_sandboxes; i++)
        dv_life_read_sandbox(view->sandboxes[i], arena, &sandboxes[i]);
    for (size_t i = 0; i < view->n_containers; i++) {
        dv_life_read_container(view->containers[i], arena, &containers[i]);
        containers[i].end_message = dv_runner_words_of(pod, containers[i].id);
    }
    *read = (struct dv_life_view){sandboxes, view->n_sandboxes, containers, view->n_containers};
}

static void gather(const struct dv_runner_pod *pod, const struct dv_cri_pod *view,
                   struct dv_arena *arena, struct dv_life_facts *facts)
{
    const struct dv_runner *runner = pod->runner;
    const struct dv_cri_runtime *runtime = dv_cri_runtime(runner->cri);
    uint64_t wall_ns = dv_clock_wall_ns(dv_loop_clock(runner->loop));
    struct dv_err *err = DV_NEW(arena, struct dv_err);

    *facts = (struct dv_life_facts){
        .pod = pod->object ? pod->object->value : NULL,
        .uid = pod->uid,
        .is_static = pod->is_static,
        .has_vanished = pod->has_vanished,
        .eviction_reason = dv_str_from_c(pod->eviction_reason),
        .eviction_message = dv_str_from_c(pod->eviction_message),
        .view_ms = view_ms(pod),
        .host_ips = runner->node.host_ips,
        .runtime_name = runtime ? runtime->name : DV_STR(""),
        .now = {.seconds = (int64_t)(wall_ns / DV_NS_PER_S),
                .nanos = (int32_t)(wall_ns % DV_NS_PER_S),
                .is_set = true},
        .now_ms = dv_loop_now_ms(runner->loop),
        .random = (uint32_t)dv_random_u64(),
    };
    facts->agent_age_ms = facts->now_ms - runner->start_ms;
    read_view(pod, view, arena, &facts->view);
    if (!dv_cri_check_network(runner->cri, err))
        facts->network_problem = dv_str_from_c(err->msg);
    if (facts->pod)
        facts->n_devices =
            dv_pod_device_health(runner->options.devices, runner->options.claims, facts->pod,
                                 pod->uid, wall_ns, arena, &facts->devices);
}

/* ---- looking ---- */

static void on_timer(struct dv_timer *timer)
{
    dv_runner_pod_look(DV_CONTAINER(timer, struct dv_runner_pod, timer));
}

static void cancel_jobs(struct dv_runner_pod *pod, const struct dv_life_orders *orders)
{
    for (size_t i = 0; i < orders->n_cancels; i++) {
        struct dv_link *link;

        DV_LIST_EACH (&pod->jobs, link) {
            struct dv_runner_job *job = DV_CONTAINER(link, struct dv_runner_job, link);

            if (job->action.id_of_action == orders->cancels[i] && job != pod->releasing)
                dv_runner_job_cancel(job);
        }
    }
}

static void obey(struct dv_runner_pod *pod, const struct dv_life_facts *facts,
                 const struct dv_life_orders *orders)
{
    struct dv_runner *runner = pod->runner;

    for (size_t i = 0; i < orders->n_notes; i++)
        dv_runner_pod_note(pod, &orders->notes[i]);
    cancel_jobs(pod, orders);
    for (size_t i = 0; i < orders->n_actions; i++)
        dv_runner_job_start(pod, &orders->actions[i]);
    pod->view_after_ms = orders->view_after_ms;
    if (orders->view_after_ms > 0 && facts->view_ms <= orders->view_after_ms &&
        (pod->relisted_ns == 0 || pod->is_told)) {
        pod->relisted_ns = dv_loop_now_ns(runner->loop);
        pod->is_told = false;
        dv_cri_view_relist(runner->cri, pod->uid);
    }
    dv_timer_cancel(&pod->timer);
    if (orders->again_ms != UINT64_MAX)
        dv_timer_start(&pod->timer, runner->loop, orders->again_ms, on_timer);
}

static void look(struct dv_task *task)
{
    struct dv_runner_pod *pod = DV_CONTAINER(task, struct dv_runner_pod, task);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    const struct dv_cri_pod *view;
    struct dv_life_facts facts;
    struct dv_life_orders orders = {0};
    struct dv_err err;
    bool is_news;

    if (!dv_cri_check_runtime(pod->runner->cri, &err))
        return; /* all pods are looked at when it is ready again */
    if (dv_runner_cgroups_are_busy(pod->runner->cgroups))
        return; /* and when it is known whether pods have cgroups */
    view = dv_cri_view_pod(pod->runner->cri, pod->uid);
    if (!dv_runner_words_read(pod, view))
        return; /* it is looked at again when they are read */
    arena = dv_arena_new();
    gather(pod, view, arena, &facts);
    dv_life_look(pod->life, &facts, arena, &orders);
    is_news = orders.has_new_status || orders.stage != pod->stage;
    pod->stage = orders.stage;
    obey(pod, &facts, &orders);
    if (is_news)
        dv_runner_tell(pod);
    if (pod->stage == DV_LIFE_GONE && dv_runner_pod_is_idle(pod)) {
        (void)dv_map_remove(&pod->runner->pods, pod->uid);
        dv_runner_pod_free(pod);
    }
}

void dv_runner_pod_look(struct dv_runner_pod *pod)
{
    if (pod->runner->is_closing)
        dv_runner_check_closed(pod->runner);
    else if (pod->runner->cri)
        dv_task_post(&pod->task, pod->runner->loop, look);
}

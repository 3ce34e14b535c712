/* runner.c - opens and closes the runner, and hands pods to runner_pod.c. */
#include "pod/runner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "cri/cri.h"
#include "number/number.h"
#include "pod/runner/host_facts.h"
#include "pod/runner/runner_cgroup.h"
#include "pod/runner/runner_images.h"
#include "pod/runner/runner_job.h"
#include "pod/runner/runner_links.h"
#include "pod/runner/runner_state.h"
#include "resource/resource.h"
#include "workload/life.h"
#include "workload/workload.h"

/* How often what is left over is looked for: the reference's garbage collection. */
#define SWEEP_MS 60000u
/* How often the sizes of logs are looked at, as in the reference. */
#define ROTATE_MS 10000u

/* ---- the listener ---- */

void dv_runner_listen(struct dv_runner *runner, const struct dv_runner_listener *listener)
{
    runner->listener = listener ? *listener : (struct dv_runner_listener){0};
}

void dv_runner_tell(struct dv_runner_pod *pod)
{
    const struct dv_runner_listener *listener = &pod->runner->listener;

    if (listener->pod_changed && !pod->runner->is_closing)
        listener->pod_changed(listener->ctx, pod->uid);
}

/* ---- what others ask ---- */

bool dv_runner_is_active(const struct dv_runner *runner)
{
    return runner->cri != NULL;
}

bool dv_runner_check(const struct dv_runner *runner, struct dv_err *err)
{
    if (!runner->cri)
        return true;
    return dv_cri_check_runtime(runner->cri, err) && dv_cri_check_network(runner->cri, err);
}

struct dv_cri *dv_runner_cri(const struct dv_runner *runner)
{
    return runner->cri;
}

const struct dv_strs *dv_runner_host_ips(const struct dv_runner *runner)
{
    return &runner->node.host_ips;
}

dv_str dv_runner_log_dir(const struct dv_runner *runner)
{
    return runner->options.log_dir;
}

void dv_runner_set_api(struct dv_runner *runner, dv_str address, uint16_t port)
{
    bool is_any =
        address.n == 0 || dv_str_eq(address, DV_STR("0.0.0.0")) || dv_str_eq(address, DV_STR("::"));

    if (is_any && runner->node.host_ips.n == 0)
        return;
    runner->api_port =
        (struct dv_workload_port){.name = DV_STR("https"), .port = port, .protocol = DV_STR("TCP")};
    runner->api = (struct dv_workload_service){
        .namespace = DV_STR("default"),
        .name = DV_STR("kubernetes"),
        .cluster_ip = dv_str_copy(is_any ? runner->node.host_ips.v[0] : address, runner->arena),
        .ports = &runner->api_port,
        .n_ports = 1,
    };
}

/* ---- pods ---- */

void dv_runner_set_pod(struct dv_runner *runner, struct dv_object *object, bool is_static)
{
    dv_str uid = object->meta->uid;
    struct dv_runner_pod *pod = dv_map_get(&runner->pods, uid);

    if (!pod) {
        pod = dv_runner_pod_new(runner, uid);
        if (runner->cri)
            dv_runner_links_look(runner->links, uid);
    }
    dv_object_ref(object);
    dv_object_unref(pod->object);
    pod->object = object;
    pod->is_given = true;
    pod->is_static = is_static;
    dv_runner_pod_look(pod);
}

void dv_runner_set_vanished(struct dv_runner *runner, dv_str uid)
{
    struct dv_runner_pod *pod = dv_map_get(&runner->pods, uid);

    if (!pod) {
        dv_runner_take_left_over(runner, uid);
    } else if (!pod->has_vanished) {
        pod->has_vanished = true;
        dv_runner_pod_look(pod);
    }
}

static char *copy_text(dv_str text)
{
    char *copy = dv_alloc(text.n + 1);

    if (text.n > 0)
        memcpy(copy, text.p, text.n);
    return copy;
}

void dv_runner_evict(struct dv_runner *runner, dv_str uid, dv_str reason, dv_str message)
{
    struct dv_runner_pod *pod = dv_map_get(&runner->pods, uid);

    if (!pod || pod->eviction_reason)
        return;
    pod->eviction_reason = copy_text(reason);
    pod->eviction_message = copy_text(message);
    dv_runner_pod_look(pod);
}

void dv_runner_set_released(struct dv_runner *runner, dv_str uid)
{
    struct dv_runner_pod *pod = dv_map_get(&runner->pods, uid);
    struct dv_runner_job *job = pod ? pod->releasing : NULL;

    if (!job)
        return;
    pod->releasing = NULL;
    dv_runner_job_end(job);
}

void dv_runner_look(struct dv_runner *runner, dv_str uid)
{
    struct dv_runner_pod *pod = dv_map_get(&runner->pods, uid);

    if (pod)
        dv_runner_pod_look(pod);
}

void dv_runner_settle(struct dv_runner *runner)
{
    runner->is_settled = true;
    dv_runner_take_all_left_over(runner);
}

enum dv_runner_state dv_runner_state(const struct dv_runner *runner, dv_str uid)
{
    const struct dv_runner_pod *pod = dv_map_get(&runner->pods, uid);

    if (!runner->cri)
        return DV_RUNNER_UNKNOWN;
    if (!pod || !pod->is_given) {
        if (dv_cri_view_taken_ns(runner->cri, uid) == 0)
            return DV_RUNNER_UNSEEN;
        return pod || dv_cri_view_pod(runner->cri, uid) ? DV_RUNNER_LEFT_OVER : DV_RUNNER_UNKNOWN;
    }
    if (pod->releasing)
        return DV_RUNNER_STOPPED;
    if (pod->stage >= DV_LIFE_FINISHED)
        return DV_RUNNER_FINISHED;
    return pod->stage == DV_LIFE_TERMINATED ? DV_RUNNER_RELEASED : DV_RUNNER_RUNNING;
}

const struct dv_api_pod_status *dv_runner_status(const struct dv_runner *runner, dv_str uid)
{
    const struct dv_runner_pod *pod = dv_map_get(&runner->pods, uid);

    return pod && pod->is_given ? dv_life_status(pod->life) : NULL;
}

/* ---- life ---- */

static void free_runner(struct dv_runner *runner)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&runner->pods, &at)) != NULL;)
        dv_runner_pod_free(entry->value);
    dv_map_fini(&runner->pods);
    dv_task_cancel(&runner->runtime_task);
    dv_runner_cgroups_free(runner->cgroups);
    dv_runner_images_free(runner->images);
    dv_runner_links_free(runner->links);
    dv_arena_free(runner->runtime_arena);
    dv_arena_free(runner->arena);
    free(runner);
}

static void on_cri_closed(void *ctx)
{
    struct dv_runner *runner = ctx;

    runner->cri = NULL;
    runner->is_cri_closing = false;
    dv_runner_check_closed(runner);
}

static void on_close_task(struct dv_task *task)
{
    struct dv_runner *runner = DV_CONTAINER(task, struct dv_runner, close_task);
    dv_closed_fn *closed = runner->closed;
    void *ctx = runner->closed_ctx;
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&runner->pods, &at)) != NULL;)
        if (!dv_runner_pod_is_idle(entry->value))
            return;
    if (runner->sweep || runner->rotation || runner->is_cri_closing ||
        dv_runner_cgroups_are_busy(runner->cgroups) || dv_runner_images_are_busy(runner->images) ||
        dv_runner_links_are_busy(runner->links))
        return;
    if (runner->cri) { /* nobody calls any more */
        runner->is_cri_closing = true;
        dv_cri_close(runner->cri, on_cri_closed, runner);
        return;
    }
    free_runner(runner);
    if (closed)
        closed(ctx);
}

void dv_runner_check_closed(struct dv_runner *runner)
{
    if (runner->is_closing)
        dv_task_post(&runner->close_task, runner->loop, on_close_task);
}

void dv_runner_close(struct dv_runner *runner, dv_closed_fn *closed, void *ctx)
{
    const struct dv_map_entry *entry;

    assert(!runner->is_closing);
    runner->is_closing = true;
    runner->closed = closed;
    runner->closed_ctx = ctx;
    dv_timer_cancel(&runner->find_timer);
    dv_timer_cancel(&runner->sweep_timer);
    dv_timer_cancel(&runner->rotate_timer);
    dv_task_cancel(&runner->runtime_task);
    for (size_t at = 0; (entry = dv_map_next(&runner->pods, &at)) != NULL;)
        dv_runner_pod_stop(entry->value);
    dv_runner_sweep_stop(runner);
    dv_runner_rotate_stop(runner);
    dv_runner_images_stop(runner->images);
    dv_runner_check_closed(runner);
}

static void on_sweep(struct dv_timer *timer)
{
    struct dv_runner *runner = DV_CONTAINER(timer, struct dv_runner, sweep_timer);

    /* What was wanted when the runtime told of it may not be any more. */
    dv_runner_take_all_left_over(runner);
    if (runner->cri && runner->is_settled && dv_cri_view_is_complete(runner->cri))
        dv_runner_sweep_start(runner);
    dv_timer_start(timer, runner->loop, dv_loop_now_ms(runner->loop) + SWEEP_MS, on_sweep);
}

static void on_rotate(struct dv_timer *timer)
{
    struct dv_runner *runner = DV_CONTAINER(timer, struct dv_runner, rotate_timer);

    if (runner->cri && dv_cri_is_connected(runner->cri))
        dv_runner_rotate_start(runner);
    dv_timer_start(timer, runner->loop, dv_loop_now_ms(runner->loop) + ROTATE_MS, on_rotate);
}

static void set_node(struct dv_runner *runner)
{
    const struct dv_runner_options *options = &runner->options;
    struct dv_quantity_entry *amounts = DV_NEW_ARRAY(runner->arena, struct dv_quantity_entry, 3);
    size_t n = options->storage_bytes > 0 ? 3 : 2;

    amounts[0].key = DV_STR("cpu");
    amounts[0].value = dv_quantity_from_i64((int64_t)options->n_cpus, DV_QUANTITY_DECIMAL_SI);
    amounts[1].key = DV_STR("memory");
    amounts[1].value = dv_quantity_from_i64((int64_t)options->memory_bytes, DV_QUANTITY_BINARY_SI);
    amounts[2].key = DV_STR("ephemeral-storage");
    amounts[2].value = dv_quantity_from_i64((int64_t)options->storage_bytes, DV_QUANTITY_BINARY_SI);
    runner->node = (struct dv_workload_node){
        .name = options->node_name,
        .root_dir = options->root_dir,
        .log_dir = options->log_dir,
        .allocatable = amounts,
        .n_allocatable = n,
        .capacity = amounts,
        .n_capacity = n,
        .cluster_domain = DV_STR("cluster.local"),
        .cgroup_root = options->cgroup_root,
    };
    dv_host_facts_read(runner->arena, &runner->node);
}

struct dv_runner *dv_runner_open(struct dv_loop *loop, const struct dv_runner_options *options,
                                 struct dv_err *err)
{
    const dv_str scheme = DV_STR("unix://");
    struct dv_runner *runner = DV_ALLOC(struct dv_runner);

    runner->loop = loop;
    runner->options = *options;
    runner->arena = dv_arena_new();
    runner->runtime_arena = dv_arena_new();
    runner->start_ms = dv_loop_now_ms(loop);
    dv_map_init(&runner->pods);
    dv_list_init(&runner->pulls);
    dv_list_init(&runner->pulling);
    set_node(runner);
    runner->cgroups = dv_runner_cgroups_new(runner, dv_runner_look_at_all);
    runner->images = dv_runner_images_new(runner);
    runner->links = dv_runner_links_new(runner);
    dv_timer_start(&runner->sweep_timer, loop, dv_loop_now_ms(loop) + SWEEP_MS, on_sweep);
    dv_timer_start(&runner->rotate_timer, loop, dv_loop_now_ms(loop) + ROTATE_MS, on_rotate);
    if (dv_str_eq(options->cri, DV_STR("none")))
        return runner;
    if (dv_str_eq(options->cri, DV_STR("auto"))) {
        dv_runner_find_cri(runner);
        return runner;
    }
    if (dv_str_starts_with(options->cri, scheme) &&
        dv_runner_open_cri(runner, dv_str_slice(options->cri, scheme.n, options->cri.n), err))
        return runner;
    if (!dv_str_starts_with(options->cri, scheme))
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is no address of a runtime",
                      DV_FMT(options->cri));
    dv_timer_cancel(&runner->sweep_timer);
    dv_timer_cancel(&runner->rotate_timer);
    free_runner(runner);
    return NULL;
}

/* runner_runtime.c - the container runtime: which one it is, what it says of itself, and what it
 * has that nobody here wants. */
#include <stdbool.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "cri/cri.h"
#include "loop/loop.h"
#include "pod/runner.h"
#include "pod/runner/runner_cgroup.h"
#include "pod/runner/runner_links.h"
#include "pod/runner/runner_state.h"
#include "proto/cri_v1.pb-c.h"
#include "workload/workload.h"

/* How often a runtime is looked for that is not there. */
#define FIND_MS 5000u
/* The longest path of a runtime's socket that is remembered. */
#define SOCKET_BYTES_MAX 256u

/* ---- whose a pod is ---- */

/* Whether the path is ROOT/pods/UID/...: a container's hosts file and the file of its last words
 * are mounted from there. */
static bool is_inside(dv_str path, dv_str root_dir, dv_str uid)
{
    dv_str pods = DV_STR("/pods/");

    if (!dv_str_starts_with(path, root_dir))
        return false;
    path = dv_str_slice(path, root_dir.n, path.n);
    if (!dv_str_starts_with(path, pods))
        return false;
    path = dv_str_slice(path, pods.n, path.n);
    return dv_str_starts_with(path, uid) && path.n > uid.n && path.p[uid.n] == '/';
}

/* Whether the pod has a directory here. It is made before the first sandbox is. */
static bool has_directory(dv_str root_dir, dv_str uid)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str path = dv_str_printf(arena, "%.*s/pods/%.*s", DV_FMT(root_dir), DV_FMT(uid));

    return access(path.p, F_OK) == 0;
}

bool dv_runner_is_ours(const struct dv_cri_pod *pod, dv_str root_dir)
{
    for (size_t i = 0; i < pod->n_containers; i++)
        for (size_t k = 0; k < pod->containers[i]->n_mounts; k++)
            if (is_inside(dv_str_from_c(pod->containers[i]->mounts[k]->host_path), root_dir,
                          pod->uid))
                return true;
    for (size_t i = 0; i < pod->n_sandboxes; i++)
        if (pod->sandboxes[i]->state == CRI_V1__POD_SANDBOX_STATE__SANDBOX_READY)
            return has_directory(root_dir, pod->uid);
    /* A sandbox that has ended and has no containers is of use to nobody, whoever made it. */
    return pod->n_containers == 0;
}

/* ---- what the runtime has ---- */

static bool is_wanted(const struct dv_runner *runner, dv_str uid)
{
    return runner->listener.is_wanted && runner->listener.is_wanted(runner->listener.ctx, uid);
}

void dv_runner_take_left_over(struct dv_runner *runner, dv_str uid)
{
    const struct dv_cri_pod *view = dv_cri_view_pod(runner->cri, uid);

    if (!runner->is_settled || runner->is_closing || dv_map_get(&runner->pods, uid) ||
        is_wanted(runner, uid) || !view || !dv_runner_is_ours(view, runner->options.root_dir))
        return;
    dv_log(DV_LOG_INFO, "pod: the runtime has a pod that nobody wants; it is ended",
           DV_F_STR("uid", uid));
    dv_runner_pod_look(dv_runner_pod_new(runner, uid));
}

void dv_runner_take_all_left_over(struct dv_runner *runner)
{
    const struct dv_cri_pod *view;

    if (!runner->cri || !dv_cri_view_is_complete(runner->cri))
        return;
    for (size_t at = 0; (view = dv_cri_view_next(runner->cri, &at)) != NULL;)
        dv_runner_take_left_over(runner, view->uid);
}

void dv_runner_look_at_all(struct dv_runner *runner)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&runner->pods, &at)) != NULL;)
        dv_runner_pod_look(entry->value);
}

/* ---- the runtime ---- */

static void on_runtime_task(struct dv_task *task)
{
    struct dv_runner *runner = DV_CONTAINER(task, struct dv_runner, runtime_task);

    if (runner->listener.runtime_changed)
        runner->listener.runtime_changed(runner->listener.ctx);
}

/* Copies what the runtime says of itself: the configs of containers depend on it. */
static void read_runtime(struct dv_runner *runner)
{
    const struct dv_cri_runtime *runtime = dv_cri_runtime(runner->cri);
    struct dv_workload_node *node = &runner->node;
    struct dv_workload_handler *handlers;

    if (!runtime)
        return;
    dv_arena_reset(runner->runtime_arena);
    handlers = DV_NEW_ARRAY(runner->runtime_arena, struct dv_workload_handler, runtime->n_handlers);
    for (size_t i = 0; i < runtime->n_handlers; i++)
        handlers[i] = (struct dv_workload_handler){
            .name = dv_str_copy(runtime->handlers[i].name, runner->runtime_arena),
            .has_recursive_read_only = runtime->handlers[i].has_recursive_read_only,
            .has_user_namespaces = runtime->handlers[i].has_user_namespaces,
        };
    node->handlers = handlers;
    node->n_handlers = runtime->n_handlers;
    node->has_supplemental_groups_policy = runtime->has_supplemental_groups_policy;
    node->lacks_image_volumes = !runtime->has_image_volumes;
    node->has_systemd_cgroups = runtime->knows_cgroup_driver && runtime->is_systemd_cgroups;
    node->runtime_name = dv_str_copy(runtime->name, runner->runtime_arena);
    node->runtime_version = dv_str_copy(runtime->version, runner->runtime_arena);
    dv_runner_cgroups_read(runner->cgroups, runtime);
}

static void on_state_changed(void *ctx)
{
    struct dv_runner *runner = ctx;

    if (runner->is_closing)
        return;
    read_runtime(runner);
    dv_runner_take_all_left_over(runner);
    dv_runner_look_at_all(runner);
    dv_task_post(&runner->runtime_task, runner->loop, on_runtime_task);
}

static void on_pod_changed(void *ctx, dv_str uid)
{
    struct dv_runner *runner = ctx;
    struct dv_runner_pod *pod = dv_map_get(&runner->pods, uid);

    dv_runner_links_look(runner->links, uid);
    if (pod) {
        pod->is_told = true;
        dv_runner_pod_look(pod);
    } else if (!runner->is_closing) {
        dv_runner_take_left_over(runner, uid);
    }
}

bool dv_runner_open_cri(struct dv_runner *runner, dv_str path, struct dv_err *err)
{
    struct dv_cri_options options = {.path = path,
                                     .state_changed = on_state_changed,
                                     .pod_changed = on_pod_changed,
                                     .ctx = runner};

    runner->cri = dv_cri_open(runner->loop, &options, err);
    if (!runner->cri)
        return false;
    dv_log(DV_LOG_INFO, "pod: containers run on the runtime at", DV_F_STR("socket", path));
    dv_task_post(&runner->runtime_task, runner->loop, on_runtime_task);
    return true;
}

static void remember(const struct dv_runner *runner, dv_str path)
{
    struct dv_err err;

    if (runner->options.memory_file.n > 0 &&
        !dv_file_replace(runner->options.memory_file, path, 0600, &err))
        dv_log(DV_LOG_WARN, "pod: which runtime has the containers could not be written",
               DV_F_ERR(&err));
}

/* The runtime that "auto" has found before, also when its socket is not there at the moment. */
static dv_str recall(const struct dv_runner *runner, struct dv_arena *arena)
{
    struct dv_err absent;
    dv_str path;

    if (runner->options.memory_file.n == 0 ||
        !dv_file_read(runner->options.memory_file, SOCKET_BYTES_MAX, arena, &path, &absent))
        return DV_STR("");
    return dv_str_trim(path);
}

static void on_find(struct dv_timer *timer);

void dv_runner_find_cri(struct dv_runner *runner)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str path = recall(runner, arena);
    struct dv_err err;

    if (path.n == 0) {
        path = dv_cri_find();
        if (path.n > 0)
            remember(runner, path);
    }
    if (path.n == 0)
        dv_timer_start(&runner->find_timer, runner->loop, dv_loop_now_ms(runner->loop) + FIND_MS,
                       on_find);
    else if (!dv_runner_open_cri(runner, path, &err))
        dv_log(DV_LOG_ERROR, "pod: the runtime cannot be used", DV_F_ERR(&err));
}

static void on_find(struct dv_timer *timer)
{
    dv_runner_find_cri(DV_CONTAINER(timer, struct dv_runner, find_timer));
}

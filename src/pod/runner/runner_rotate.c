/* runner_rotate.c - logs of running containers that have grown large: set aside, and the runtime
 * told to begin new ones; also where somebody has removed one, so that nothing more is lost. All
 * sizes are looked at by one job; what is large is seldom. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cri/cri.h"
#include "pod/runner/runner_state.h"
#include "proto/cri_v1.pb-c.h"
#include "voldir/voldir.h"

/* The reference's limits. */
#define LOG_BYTES_MAX (10u * 1024u * 1024u)
#define LOG_FILES_MAX 5u

struct dv_runner_rotation {
    struct dv_runner *runner;
    struct dv_arena *arena;
    DV_VEC(dv_str) paths;
    DV_VEC(dv_str) ids; /* of the containers */
    struct dv_voldir_rotate rotate;
    struct dv_voldir_unrotate back;
    struct dv_cri_call call;
    bool is_calling;
    size_t i; /* the one that the runtime is told of */
};

static void next(struct dv_runner_rotation *rotation);

static void end(struct dv_runner_rotation *rotation)
{
    struct dv_runner *runner = rotation->runner;

    runner->rotation = NULL;
    dv_arena_free(rotation->arena);
    free(rotation);
    dv_runner_check_closed(runner);
}

static void on_back(struct dv_voldir_unrotate *op, const struct dv_err *err)
{
    struct dv_runner_rotation *rotation = DV_CONTAINER(op, struct dv_runner_rotation, back);

    if (err)
        dv_log(DV_LOG_WARN, "pod: a log that was set aside could not be brought back",
               DV_F_ERR(err));
    rotation->i++;
    next(rotation);
}

static void on_reopened(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_runner_rotation *rotation = DV_CONTAINER(call, struct dv_runner_rotation, call);

    (void)answer;
    rotation->is_calling = false;
    if (!err) {
        rotation->i++;
        next(rotation);
        return;
    }
    dv_log(DV_LOG_WARN, "pod: the runtime does not begin a new log; the old one goes on",
           DV_F_STR("log", rotation->paths.v[rotation->i]), DV_F_ERR(err));
    if (rotation->rotate.are_absent[rotation->i]) { /* there is nothing to be brought back */
        rotation->i++;
        next(rotation);
        return;
    }
    rotation->back = (struct dv_voldir_unrotate){
        .done = on_back,
        .log_path = rotation->paths.v[rotation->i],
        .aside_path = rotation->rotate.aside_paths[rotation->i],
    };
    dv_voldir_unrotate(&rotation->back, rotation->runner->loop);
}

/* Tells the runtime of the next log that is not there any more. Also while the runner closes: the
 * runtime would write to a file that nobody reads. */
static void next(struct dv_runner_rotation *rotation)
{
    CriV1__ReopenContainerLogRequest request = CRI_V1__REOPEN_CONTAINER_LOG_REQUEST__INIT;
    const struct dv_voldir_rotate *rotate = &rotation->rotate;

    while (rotate->aside_paths && rotation->i < rotation->paths.n &&
           rotate->aside_paths[rotation->i].n == 0 && !rotate->are_absent[rotation->i])
        rotation->i++;
    if (!rotate->aside_paths || rotation->i == rotation->paths.n) {
        end(rotation);
        return;
    }
    request.container_id = dv_str_to_c(rotation->ids.v[rotation->i], rotation->arena);
    rotation->call =
        (struct dv_cri_call){.method = DV_CRI_REOPEN_CONTAINER_LOG, .done = on_reopened};
    rotation->is_calling = true;
    dv_cri_call_start(rotation->runner->cri, &rotation->call, &request.base);
}

static void on_rotated(struct dv_voldir_rotate *op, const struct dv_err *err)
{
    struct dv_runner_rotation *rotation = DV_CONTAINER(op, struct dv_runner_rotation, rotate);

    if (err && err->code != DV_CANCELLED)
        dv_log(DV_LOG_WARN, "pod: a large log could not be set aside", DV_F_ERR(err));
    next(rotation);
}

/* Gathers the logs of pods that are ours: another program may use the same runtime. */
static void gather(struct dv_runner_rotation *rotation)
{
    struct dv_runner *runner = rotation->runner;
    const struct dv_cri_pod *pod;

    for (size_t at = 0; (pod = dv_cri_view_next(runner->cri, &at)) != NULL;) {
        if (!dv_map_get(&runner->pods, pod->uid))
            continue;
        for (size_t i = 0; i < pod->n_containers; i++) {
            const CriV1__ContainerStatus *container = pod->containers[i];
            dv_str path = dv_str_from_c(container->log_path);

            if (container->state != CRI_V1__CONTAINER_STATE__CONTAINER_RUNNING || path.n == 0)
                continue;
            *dv_vec_add_in(&rotation->paths, rotation->arena) = dv_str_copy(path, rotation->arena);
            *dv_vec_add_in(&rotation->ids, rotation->arena) =
                dv_str_copy(dv_str_from_c(container->id), rotation->arena);
        }
    }
}

void dv_runner_rotate_start(struct dv_runner *runner)
{
    struct dv_runner_rotation *rotation;

    if (runner->rotation)
        return;
    rotation = DV_ALLOC(struct dv_runner_rotation);
    rotation->runner = runner;
    rotation->arena = dv_arena_new();
    runner->rotation = rotation;
    gather(rotation);
    rotation->rotate = (struct dv_voldir_rotate){
        .done = on_rotated,
        .log_paths = rotation->paths.v,
        .n_logs = rotation->paths.n,
        .max_bytes = LOG_BYTES_MAX,
        .n_files_max = LOG_FILES_MAX,
        .arena = rotation->arena,
    };
    if (rotation->paths.n > 0)
        dv_voldir_rotate(&rotation->rotate, runner->loop);
    else
        end(rotation);
}

void dv_runner_rotate_stop(struct dv_runner *runner)
{
    if (!runner->rotation)
        return;
    if (runner->rotation->is_calling)
        dv_cri_call_cancel(&runner->rotation->call);
    else
        dv_voldir_cancel(&runner->rotation->rotate.priv);
}

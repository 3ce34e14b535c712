/* runner_ours.c - whether a pod that the runtime has, and nobody here wants, was started here. A
 * runtime may serve more than one agent, and what another one runs is none of our business. */
#include <stdbool.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cri/cri.h"
#include "pod/runner/runner_state.h"
#include "proto/cri_v1.pb-c.h"

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

#include "pod/runner/runner_links.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/vec.h"
#include "cri/cri.h"
#include "loop/loop.h"
#include "pod/runner.h"
#include "pod/runner/runner_state.h"
#include "proto/cri_v1.pb-c.h"
#include "voldir/voldir.h"
#include "workload/workload.h"

#define LINKS_DIR "containers"

/* A link that is there, or is about to be. */
struct made {
    struct dv_link link; /* in its pod's */
    dv_str id;           /* of the container */
    dv_str path;
    bool is_seen; /* the container is in the view that is looked at */
    char text[];
};

/* The links of a pod. */
struct pod_links {
    dv_str uid;
    struct dv_list made;
    char text[];
};

struct dv_runner_links {
    struct dv_runner *runner;
    struct dv_arena *arena;
    dv_str dir;
    struct dv_map pods; /* pod_links, by uid */
    /* What is to be done, and what is being done; each with an arena of its own. */
    struct dv_arena *next_arena;
    DV_VEC(struct dv_voldir_link) next;
    struct dv_arena *op_arena; /* NULL: nothing is under way */
    struct dv_voldir_links op;
    struct dv_task task;
};

/* ---- done ---- */

static void go(struct dv_runner_links *links);

static void on_done(struct dv_voldir_links *op, const struct dv_err *err)
{
    struct dv_runner_links *links = DV_CONTAINER(op, struct dv_runner_links, op);

    if (err)
        dv_log(DV_LOG_WARN, "pod: a link to a container's log could not be made", DV_F_ERR(err));
    dv_arena_free(links->op_arena);
    links->op_arena = NULL;
    go(links);
    dv_runner_check_closed(links->runner);
}

/* Does all that has come up meanwhile, in one job. */
static void go(struct dv_runner_links *links)
{
    if (links->op_arena || links->next.n == 0 || links->runner->is_closing)
        return;
    links->op_arena = links->next_arena;
    links->op =
        (struct dv_voldir_links){.done = on_done, .links = links->next.v, .n_links = links->next.n};
    links->next_arena = dv_arena_new();
    memset(&links->next, 0, sizeof(links->next));
    dv_voldir_links(&links->op, links->runner->loop);
}

static void on_task(struct dv_task *task)
{
    go(DV_CONTAINER(task, struct dv_runner_links, task));
}

static void plan(struct dv_runner_links *links, dv_str path, dv_str target)
{
    *dv_vec_add_in(&links->next, links->next_arena) =
        (struct dv_voldir_link){.path = dv_str_copy(path, links->next_arena),
                                .target = dv_str_copy(target, links->next_arena)};
    dv_task_post(&links->task, links->runner->loop, on_task);
}

/* ---- looked at ---- */

static struct made *find(const struct pod_links *pod, dv_str id)
{
    struct dv_link *link;

    DV_LIST_EACH (&pod->made, link) {
        struct made *made = DV_CONTAINER(link, struct made, link);

        if (dv_str_eq(made->id, id))
            return made;
    }
    return NULL;
}

static struct made *add(struct dv_runner_links *links, struct pod_links *pod,
                        const CriV1__PodSandboxMetadata *sandbox,
                        const CriV1__ContainerStatus *container)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str id = dv_str_from_c(container->id);
    dv_str name =
        dv_workload_log_link(dv_str_from_c(sandbox->name), dv_str_from_c(sandbox->namespace_),
                             dv_str_from_c(container->metadata->name), id, arena);
    dv_str path = dv_str_printf(arena, "%.*s/%.*s", DV_FMT(links->dir), DV_FMT(name));
    struct made *made = dv_alloc(sizeof(*made) + id.n + path.n);
    char *at = made->text;

    made->id = dv_str_put(id, &at);
    made->path = dv_str_put(path, &at);
    dv_list_push(&pod->made, &made->link);
    plan(links, path, dv_str_from_c(container->log_path));
    return made;
}

/* Whether there is a log of ours to link to: the runtime begins it with the container's start. */
static bool has_log(const struct dv_runner_links *links, const CriV1__ContainerStatus *container)
{
    dv_str path = dv_str_from_c(container->log_path);
    dv_str dir = links->runner->options.log_dir;

    return container->state != CRI_V1__CONTAINER_STATE__CONTAINER_CREATED &&
           container->started_at > 0 && dv_str_starts_with(path, dir) && path.n > dir.n &&
           path.p[dir.n] == '/';
}

/* Takes away the links of containers that were not seen. */
static void drop_unseen(struct dv_runner_links *links, struct pod_links *pod)
{
    struct dv_link *link = dv_list_first(&pod->made);

    while (link && link != &pod->made.head) {
        struct made *made = DV_CONTAINER(link, struct made, link);

        link = link->next;
        if (made->is_seen) {
            made->is_seen = false;
            continue;
        }
        plan(links, made->path, DV_STR(""));
        dv_link_remove(&made->link);
        free(made);
    }
}

static struct pod_links *new_pod(struct dv_runner_links *links, dv_str uid)
{
    struct pod_links *pod = dv_alloc(sizeof(*pod) + uid.n);
    char *at = pod->text;

    pod->uid = dv_str_put(uid, &at);
    dv_list_init(&pod->made);
    (void)dv_map_set(&links->pods, pod->uid, pod);
    return pod;
}

void dv_runner_links_look(struct dv_runner_links *links, dv_str uid)
{
    const struct dv_runner *runner = links->runner;
    const struct dv_cri_pod *view = dv_cri_view_pod(runner->cri, uid);
    struct pod_links *pod = dv_map_get(&links->pods, uid);

    if (runner->is_closing || (!pod && (!view || !dv_map_get(&runner->pods, uid))))
        return; /* another agent's, perhaps */
    if (!pod)
        pod = new_pod(links, uid);
    for (size_t i = 0; view && i < view->n_containers; i++) {
        const CriV1__ContainerStatus *container = view->containers[i];
        struct made *made = find(pod, dv_str_from_c(container->id));

        if (!made && view->n_sandboxes > 0 && has_log(links, container))
            made = add(links, pod, view->sandboxes[0]->metadata, container);
        if (made)
            made->is_seen = true;
    }
    drop_unseen(links, pod);
    if (dv_list_is_empty(&pod->made)) {
        (void)dv_map_remove(&links->pods, pod->uid);
        free(pod);
    }
}

/* ---- life ---- */

dv_str dv_runner_links_dir(const struct dv_runner_links *links)
{
    return links->dir;
}

struct dv_strs dv_runner_links_ids(const struct dv_runner_links *links, struct dv_arena *arena)
{
    DV_VEC(dv_str) ids = {0};
    const struct dv_cri_pod *pod;

    for (size_t at = 0; (pod = dv_cri_view_next(links->runner->cri, &at)) != NULL;)
        for (size_t i = 0; i < pod->n_containers; i++)
            *dv_vec_add_in(&ids, arena) = dv_str_copy(dv_str_from_c(pod->containers[i]->id), arena);
    return (struct dv_strs){ids.v, ids.n};
}

bool dv_runner_links_are_busy(const struct dv_runner_links *links)
{
    return links->op_arena != NULL;
}

/* Beside the logs' own directory: "/var/log/pods" has "/var/log/containers". */
static dv_str dir_beside(dv_str log_dir, struct dv_arena *arena)
{
    size_t n = log_dir.n;

    while (n > 0 && log_dir.p[n - 1] != '/')
        n--;
    return dv_str_printf(arena, "%.*s" LINKS_DIR, DV_FMT(dv_str_slice(log_dir, 0, n)));
}

struct dv_runner_links *dv_runner_links_new(struct dv_runner *runner)
{
    struct dv_runner_links *links = DV_ALLOC(struct dv_runner_links);

    links->runner = runner;
    links->arena = dv_arena_new();
    links->next_arena = dv_arena_new();
    links->dir = dir_beside(runner->options.log_dir, links->arena);
    dv_map_init(&links->pods);
    return links;
}

void dv_runner_links_free(struct dv_runner_links *links)
{
    const struct dv_map_entry *entry;

    if (!links)
        return;
    for (size_t at = 0; (entry = dv_map_next(&links->pods, &at)) != NULL;) {
        struct pod_links *pod = entry->value;
        struct dv_link *link;

        while ((link = dv_list_shift(&pod->made)) != NULL)
            free(DV_CONTAINER(link, struct made, link));
        free(pod);
    }
    dv_map_fini(&links->pods);
    dv_task_cancel(&links->task);
    dv_arena_free(links->next_arena);
    dv_arena_free(links->arena);
    free(links);
}

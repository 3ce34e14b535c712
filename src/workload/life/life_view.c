/* life_view.c - the runtime's view of a pod: how it is read, what is newest, what is news. */
#include <stdlib.h>

#include "base/arena.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "workload/config.h"
#include "workload/life/life_state.h"

/* Later, by the time it was made, and by the count where two have the same time. */
static bool is_later(const struct dv_life_container *a, const struct dv_life_container *b)
{
    if (a->created_ns != b->created_ns)
        return a->created_ns > b->created_ns;
    if (a->restart_count != b->restart_count)
        return a->restart_count > b->restart_count;
    return dv_str_cmp(a->id, b->id) > 0;
}

const struct dv_life_container *dv_life_newest(const struct dv_life_view *view, dv_str name)
{
    const struct dv_life_container *newest = NULL;

    for (size_t i = 0; i < view->n_containers; i++) {
        const struct dv_life_container *container = &view->containers[i];

        if (dv_str_eq(container->name, name) && (!newest || is_later(container, newest)))
            newest = container;
    }
    return newest;
}

const struct dv_life_container *dv_life_older(const struct dv_life_view *view,
                                              const struct dv_life_container *than)
{
    const struct dv_life_container *older = NULL;

    for (size_t i = 0; i < view->n_containers; i++) {
        const struct dv_life_container *container = &view->containers[i];

        if (container != than && dv_str_eq(container->name, than->name) &&
            is_later(than, container) && (!older || is_later(container, older)))
            older = container;
    }
    return older;
}

const struct dv_life_container *dv_life_newest_exited(const struct dv_life_view *view, dv_str name)
{
    const struct dv_life_container *container = dv_life_newest(view, name);

    while (container && container->state != DV_LIFE_EXITED)
        container = dv_life_older(view, container);
    return container;
}

const struct dv_life_sandbox *dv_life_newest_sandbox(const struct dv_life_view *view)
{
    const struct dv_life_sandbox *newest = NULL;

    for (size_t i = 0; i < view->n_sandboxes; i++) {
        const struct dv_life_sandbox *sandbox = &view->sandboxes[i];

        if (!newest || sandbox->attempt > newest->attempt ||
            (sandbox->attempt == newest->attempt && sandbox->created_ns > newest->created_ns))
            newest = sandbox;
    }
    return newest;
}

bool dv_life_is_in_sandbox(const struct dv_life_view *view,
                           const struct dv_life_container *container,
                           const struct dv_life_sandbox *sandbox)
{
    const struct dv_life_sandbox *found = NULL;

    if (container->sandbox_id.n > 0)
        return dv_str_eq(container->sandbox_id, sandbox->id);
    for (size_t i = 0; i < view->n_sandboxes; i++) {
        const struct dv_life_sandbox *other = &view->sandboxes[i];

        if (other->created_ns <= container->created_ns &&
            (!found || other->created_ns > found->created_ns))
            found = other;
    }
    return found == sandbox;
}

bool dv_life_has_running(const struct dv_life_view *view)
{
    for (size_t i = 0; i < view->n_containers; i++)
        if (view->containers[i].state == DV_LIFE_RUNNING ||
            view->containers[i].state == DV_LIFE_UNKNOWN)
            return true;
    return false;
}

/* The lowest bit of a mark tells whether what it stands for was running. */
static uint64_t container_mark(const struct dv_life_container *container)
{
    uint64_t mark = dv_life_hash(container->id) * 31 + (uint64_t)container->state + 1;

    return mark << 1 | (container->state == DV_LIFE_RUNNING);
}

static uint64_t sandbox_mark(const struct dv_life_sandbox *sandbox)
{
    return (dv_life_hash(sandbox->id) * 31 + (sandbox->is_ready ? 7 : 11)) << 1 |
           (sandbox->is_ready ? 1 : 0);
}

static bool has_seen(const struct dv_life *life, uint64_t mark)
{
    for (size_t i = 0; i < life->seen.n; i++)
        if (life->seen.v[i] == mark)
            return true;
    return false;
}

static bool is_in_view(const struct dv_life_view *view, uint64_t mark)
{
    for (size_t i = 0; i < view->n_containers; i++)
        if (container_mark(&view->containers[i]) == mark)
            return true;
    for (size_t i = 0; i < view->n_sandboxes; i++)
        if (sandbox_mark(&view->sandboxes[i]) == mark)
            return true;
    return false;
}

bool dv_life_has_news(const struct dv_life *life, const struct dv_life_view *view)
{
    /* What was made and did not start, a container or a sandbox, is what a sync left behind that
     * failed: it is tried again in its time, not because of that. */
    for (size_t i = 0; i < view->n_containers; i++)
        if (view->containers[i].state != DV_LIFE_CREATED &&
            !has_seen(life, container_mark(&view->containers[i])))
            return true;
    for (size_t i = 0; i < view->n_sandboxes; i++)
        if (view->sandboxes[i].is_ready && !has_seen(life, sandbox_mark(&view->sandboxes[i])))
            return true;
    /* A dead instance may be removed without notice, a running one may not. */
    for (size_t i = 0; i < life->seen.n; i++)
        if ((life->seen.v[i] & 1) != 0 && !is_in_view(view, life->seen.v[i]))
            return true;
    return false;
}

void dv_life_see(struct dv_life *life, const struct dv_life_view *view)
{
    dv_vec_clear(&life->seen);
    for (size_t i = 0; i < view->n_containers; i++)
        *dv_vec_add(&life->seen) = container_mark(&view->containers[i]);
    for (size_t i = 0; i < view->n_sandboxes; i++)
        *dv_vec_add(&life->seen) = sandbox_mark(&view->sandboxes[i]);
}

/* ---- the runtime's messages ---- */

static int compare_entries(const void *a, const void *b)
{
    return dv_str_cmp(((const struct dv_str_entry *)a)->key, ((const struct dv_str_entry *)b)->key);
}

/* The annotations as a map of the API: sorted. */
static struct dv_str_entry *read_map(const CriV1__ContainerStatus *status, struct dv_arena *arena,
                                     size_t *n)
{
    struct dv_str_entry *map = DV_NEW_ARRAY(arena, struct dv_str_entry, status->n_annotations);

    for (size_t i = 0; i < status->n_annotations; i++)
        map[i] = (struct dv_str_entry){dv_str_from_c(status->annotations[i]->key),
                                       dv_str_from_c(status->annotations[i]->value)};
    qsort(map, status->n_annotations, sizeof(map[0]), compare_entries);
    *n = status->n_annotations;
    return map;
}

static const struct dv_api_container_user *read_user(const CriV1__ContainerUser *user,
                                                     struct dv_arena *arena)
{
    struct dv_api_container_user *read;

    if (!user || !user->linux)
        return NULL;
    read = DV_NEW(arena, struct dv_api_container_user);
    read->linux_ = DV_NEW(arena, struct dv_api_linux_container_user);
    read->linux_->uid = user->linux->uid;
    read->linux_->gid = user->linux->gid;
    read->linux_->supplemental_groups = user->linux->supplemental_groups;
    read->linux_->n_supplemental_groups = user->linux->n_supplemental_groups;
    return read;
}

static enum dv_life_container_state read_state(CriV1__ContainerState state)
{
    switch ((int)state) {
    case DV_LIFE_CREATED:
    case DV_LIFE_RUNNING:
    case DV_LIFE_EXITED:
        return (enum dv_life_container_state)state;
    default: /* a runtime may send any number */
        return DV_LIFE_UNKNOWN;
    }
}

static const struct dv_api_container *keep(dv_str name, const struct dv_config_memo *memo,
                                           struct dv_arena *arena)
{
    struct dv_api_container *kept;

    if (!memo->pre_stop)
        return NULL;
    kept = DV_NEW(arena, struct dv_api_container);
    kept->name = name;
    kept->ports = memo->ports;
    kept->n_ports = memo->n_ports;
    kept->lifecycle = DV_NEW(arena, struct dv_api_lifecycle);
    kept->lifecycle->pre_stop = memo->pre_stop;
    return kept;
}

void dv_life_read_container(const CriV1__ContainerStatus *status, struct dv_arena *arena,
                            struct dv_life_container *container)
{
    struct dv_config_memo memo = {0};
    size_t n_annotations = 0;
    struct dv_str_entry *annotations = read_map(status, arena, &n_annotations);

    dv_config_read_annotations(annotations, n_annotations, arena, &memo);
    *container = (struct dv_life_container){
        .name = status->metadata ? dv_str_from_c(status->metadata->name) : DV_STR_NONE,
        .id = dv_str_from_c(status->id),
        .state = read_state(status->state),
        .restart_count = memo.restart_count,
        .hash = memo.hash,
        .has_hash = memo.has_hash,
        .created_ns = status->created_at,
        .started_ns = status->started_at,
        .finished_ns = status->finished_at,
        .exit_code = status->exit_code,
        .reason = dv_str_from_c(status->reason),
        .message = dv_str_from_c(status->message),
        .image = status->image ? dv_str_from_c(status->image->image) : DV_STR_NONE,
        .image_id = dv_str_from_c(status->image_ref && status->image_ref[0] ? status->image_ref
                                                                            : status->image_id),
        .user = read_user(status->user, arena),
    };
    container->kept = keep(container->name, &memo, arena);
}

void dv_life_read_sandbox(const CriV1__PodSandboxStatus *status, struct dv_arena *arena,
                          struct dv_life_sandbox *sandbox)
{
    const CriV1__PodSandboxNetworkStatus *network = status->network;
    const CriV1__LinuxPodSandboxStatus *own = status->linux;

    *sandbox = (struct dv_life_sandbox){
        .id = dv_str_from_c(status->id),
        .attempt = status->metadata ? status->metadata->attempt : 0,
        .is_ready = status->state == CRI_V1__POD_SANDBOX_STATE__SANDBOX_READY,
        .has_host_network = own && own->namespaces && own->namespaces->options &&
                            own->namespaces->options->network == CRI_V1__NAMESPACE_MODE__NODE,
        .has_status = network != NULL,
        .created_ns = status->created_at,
    };
    if (!network || !network->ip || !network->ip[0])
        return;
    sandbox->ips.v = DV_NEW_ARRAY(arena, dv_str, network->n_additional_ips + 1);
    sandbox->ips.v[sandbox->ips.n++] = dv_str_from_c(network->ip);
    for (size_t i = 0; i < network->n_additional_ips; i++)
        sandbox->ips.v[sandbox->ips.n++] = dv_str_from_c(network->additional_ips[i]->ip);
}

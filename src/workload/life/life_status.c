/* life_status.c - the statuses of a pod's containers, from their instances, the statuses of before
 * and why they could not be started. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/num.h"
#include "resource/resource.h"
#include "workload/life/life_state.h"

#define LOST_TEXT                                                                                  \
    "The container could not be located when the pod was deleted.  The container used to be "      \
    "Running"
#define RESET_TEXT "The container is removed because RestartAllContainers in place"

/* One of the three lists of a status. */
struct list {
    const struct dv_life_reckoning *reckoning;
    const struct dv_api_pod *pod;
    const struct dv_life_view *view;
    const struct dv_api_container_status *old;
    size_t n_old;
    enum dv_workload_kind kind; /* INIT: sidecars, too */
    size_t message_bytes;       /* what each container may say */
    struct dv_arena *arena;
};

static const struct dv_api_container_status *find(const struct dv_api_container_status *statuses,
                                                  size_t n, dv_str name)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(statuses[i].name, name))
            return &statuses[i];
    return NULL;
}

static struct dv_api_container_state waiting(struct dv_arena *arena, dv_str reason, dv_str message)
{
    struct dv_api_container_state state = {0};

    state.waiting = DV_NEW(arena, struct dv_api_container_state_waiting);
    state.waiting->reason = reason;
    state.waiting->message = message;
    return state;
}

static struct dv_api_container_state terminated(struct dv_arena *arena, int64_t exit_code,
                                                dv_str reason, dv_str message)
{
    struct dv_api_container_state state = {0};

    state.terminated = DV_NEW(arena, struct dv_api_container_state_terminated);
    state.terminated->exit_code = exit_code;
    state.terminated->reason = reason;
    state.terminated->message = message;
    return state;
}

static struct dv_time time_of(int64_t ns)
{
    return (struct dv_time){.seconds = ns / 1000000000, .is_set = true};
}

/* ---- an instance ---- */

static dv_str end_text(const struct list *list, const struct dv_life_container *instance)
{
    dv_str text = instance->message;

    if (text.n > 0 && instance->end_message.n > 0)
        text =
            dv_str_printf(list->arena, "%.*s: %.*s", DV_FMT(text), DV_FMT(instance->end_message));
    else if (instance->end_message.n > 0)
        text = instance->end_message;
    if (text.n > list->message_bytes) {
        text.n = list->message_bytes;
        while (text.n > 0 && ((unsigned char)text.p[text.n] & 0xc0) == 0x80)
            text.n--; /* not within a character */
    }
    return text;
}

static dv_str full_id(const struct list *list, const struct dv_life_container *instance)
{
    return dv_str_printf(list->arena, "%.*s://%.*s",
                         DV_FMT(list->reckoning->look->facts->runtime_name), DV_FMT(instance->id));
}

static struct dv_api_container_state end_state(const struct list *list,
                                               const struct dv_life_container *instance)
{
    struct dv_api_container_state state =
        terminated(list->arena, instance->exit_code, instance->reason, end_text(list, instance));

    state.terminated->started_at = time_of(instance->started_ns);
    state.terminated->finished_at = time_of(instance->finished_ns);
    state.terminated->container_id = full_id(list, instance);
    return state;
}

static struct dv_api_container_state instance_state(const struct list *list,
                                                    const struct dv_life_container *instance)
{
    struct dv_api_container_state state = {0};

    switch (instance->state) {
    case DV_LIFE_RUNNING:
        state.running = DV_NEW(list->arena, struct dv_api_container_state_running);
        state.running->started_at = time_of(instance->started_ns);
        return state;
    case DV_LIFE_EXITED:
        return end_state(list, instance);
    case DV_LIFE_CREATED:
    case DV_LIFE_UNKNOWN:
        break;
    }
    return waiting(list->arena, DV_STR_NONE, DV_STR_NONE);
}

static void fill_devices(const struct list *list, struct dv_api_container_status *status)
{
    const struct dv_life_facts *facts = list->reckoning->look->facts;

    for (size_t i = 0; i < facts->n_devices; i++) {
        if (!dv_str_eq(facts->devices[i].container, status->name))
            continue;
        status->allocated_resources_status =
            DV_NEW_ARRAY(list->arena, struct dv_api_resource_status, facts->devices[i].n);
        for (size_t j = 0; j < facts->devices[i].n; j++)
            status->allocated_resources_status[j] = facts->devices[i].v[j];
        status->n_allocated_resources_status = facts->devices[i].n;
    }
}

static void fill_mounts(const struct list *list, const struct dv_api_container *container,
                        struct dv_api_container_status *status)
{
    status->volume_mounts =
        DV_NEW_ARRAY(list->arena, struct dv_api_volume_mount_status, container->n_volume_mounts);
    status->n_volume_mounts = container->n_volume_mounts;
    for (size_t i = 0; i < container->n_volume_mounts; i++) {
        const struct dv_api_volume_mount *mount = &container->volume_mounts[i];

        status->volume_mounts[i].name = mount->name;
        status->volume_mounts[i].mount_path = mount->mount_path;
        status->volume_mounts[i].read_only = mount->read_only;
        if (mount->read_only)
            status->volume_mounts[i].recursive_read_only = DV_STR("Disabled");
    }
}

static void fill_instance(const struct list *list, const struct dv_api_container *container,
                          const struct dv_life_container *instance,
                          const struct dv_api_container_status *old,
                          struct dv_api_container_status *status)
{
    const struct dv_life_container *older = dv_life_older(list->view, instance);
    struct dv_api_resource_requirements *resources =
        DV_NEW(list->arena, struct dv_api_resource_requirements);
    struct dv_api_container_user *user;

    status->state = instance_state(list, instance);
    status->restart_count = instance->restart_count;
    status->image = instance->image;
    status->image_id = instance->image_id;
    status->container_id = full_id(list, instance);
    *resources = instance->resources ? *instance->resources : container->resources;
    status->resources = resources;
    status->allocated_resources = container->resources.requests;
    status->n_allocated_resources = container->resources.n_requests;
    if (instance->user) {
        user = DV_NEW(list->arena, struct dv_api_container_user);
        *user = *instance->user;
        status->user = user;
    }
    /* The runtime lost a container that ran: it did not merely not start yet. */
    if (instance->state == DV_LIFE_UNKNOWN && old && old->state.running) {
        status->state =
            terminated(list->arena, 137, DV_STR("ContainerStatusUnknown"), DV_STR(LOST_TEXT));
        status->restart_count++;
    }
    if (older)
        status->last_state = instance_state(list, older);
    else if (old && old->restart_count == status->restart_count) /* the runtime dropped it */
        status->last_state = old->last_state;
}

/* ---- no instance ---- */

static bool has_any_regular(const struct list *list)
{
    for (size_t i = 0; i < list->pod->spec.n_containers; i++)
        if (dv_life_newest(list->view, list->pod->spec.containers[i].name))
            return true;
    return false;
}

static bool was_reset(const struct list *list, const struct dv_api_container *container)
{
    const struct dv_life_member *member =
        dv_life_member_find(list->reckoning->look->life, container->name);

    return member && member->was_reset;
}

static void fill_absent(const struct list *list, const struct dv_api_container *container,
                        const struct dv_api_container_status *old,
                        struct dv_api_container_status *status)
{
    if (list->kind == DV_WORKLOAD_INIT && !dv_life_is_sidecar(container) && has_any_regular(list) &&
        !(old && old->state.terminated)) {
        status->state = terminated(list->arena, 0, DV_STR("Completed"),
                                   DV_STR("Unable to get init container status from container "
                                          "runtime and pod has been initialized, treat it as "
                                          "exited normally"));
        return;
    }
    if (!old)
        return;
    if (old->state.terminated) {
        *status = *old;
        return;
    }
    status->restart_count = old->restart_count;
    status->last_state = old->last_state;
    if (!old->state.running || old->last_state.terminated || was_reset(list, container))
        return;
    status->last_state =
        terminated(list->arena, 137, DV_STR("ContainerStatusUnknown"), DV_STR(LOST_TEXT));
    if (!dv_life_is_deleted(list->pod))
        status->restart_count++;
}

/* ---- why it could not be started ---- */

static void apply_reset(const struct list *list, struct dv_api_container_status *status)
{
    status->restart_count++;
    status->last_state =
        terminated(list->arena, 137, DV_STR("RestartingAllContainers"), DV_STR(RESET_TEXT));
    status->state = waiting(list->arena, DV_STR("RestartingAllContainers"), DV_STR(RESET_TEXT));
}

static void apply_reason(const struct list *list, const struct dv_api_container *container,
                         const struct dv_life_container *newest,
                         struct dv_api_container_status *status)
{
    const struct dv_life_member *member =
        dv_life_member_find(list->reckoning->look->life, container->name);

    if (!member)
        return;
    if (member->was_reset && !newest) {
        apply_reset(list, status);
        return;
    }
    if (member->reason.n == 0 || !dv_life_should_start(list->pod, container, list->view))
        return;
    if (list->kind == DV_WORKLOAD_INIT && newest && newest->state == DV_LIFE_EXITED &&
        newest->exit_code == 0 && !dv_life_is_sidecar(container))
        return; /* it has done its part */
    if (status->state.terminated)
        status->last_state = status->state;
    status->state = waiting(list->arena, member->reason, member->message);
}

static void reckon(const struct list *list, const struct dv_api_container *container,
                   struct dv_api_container_status *status)
{
    const struct dv_api_container_status *old = find(list->old, list->n_old, container->name);
    const struct dv_life_container *newest = dv_life_newest(list->view, container->name);

    status->name = container->name;
    status->image = container->image;
    status->image_id = DV_STR("");
    status->state = waiting(list->arena,
                            list->pod->spec.n_init_containers > 0 ? DV_STR("PodInitializing")
                                                                  : DV_STR("ContainerCreating"),
                            DV_STR_NONE);
    if (newest)
        fill_instance(list, container, newest, old, status);
    else
        fill_absent(list, container, old, status);
    fill_mounts(list, container, status);
    fill_devices(list, status);
    apply_reason(list, container, newest, status);
}

static int compare_names(const void *a, const void *b)
{
    return dv_str_cmp(((const struct dv_api_container_status *)a)->name,
                      ((const struct dv_api_container_status *)b)->name);
}

/* ---- probes' part ---- */

static void reckon_started(const struct dv_life_reckoning *reckoning,
                           const struct dv_api_container *container, enum dv_workload_kind kind,
                           const struct dv_api_container_status *old,
                           struct dv_api_container_status *status)
{
    struct dv_life *life = reckoning->look->life;
    const struct dv_life_container *newest =
        dv_life_newest(&reckoning->look->facts->view, container->name);
    bool *started = DV_NEW(reckoning->look->arena, bool);
    bool is_ready = false;

    /* A status of before the newest instance says nothing about it. */
    if (status->state.running && newest && dv_str_ends_with(status->container_id, newest->id)) {
        *started = !container->startup_probe ||
                   (dv_life_probe_knows(life, container->name, DV_PROBE_STARTUP, newest->id)
                        ? dv_life_probe_result(life, container->name, DV_PROBE_STARTUP,
                                               newest->id) == DV_PROBE_HAS_SUCCEEDED
                        : old && old->started && *old->started &&
                              dv_str_eq(old->container_id, status->container_id));
        is_ready =
            *started &&
            (!container->readiness_probe ||
             (dv_life_probe_knows(life, container->name, DV_PROBE_READINESS, newest->id)
                  ? dv_life_probe_result(life, container->name, DV_PROBE_READINESS, newest->id) ==
                        DV_PROBE_HAS_SUCCEEDED
                  : old && old->ready && dv_str_eq(old->container_id, status->container_id)));
    }
    /* Whether it is ready now is asked at once rather than at the probe's next turn. */
    if (*started && !is_ready && container->readiness_probe)
        dv_life_probe_want(life, container->name);
    if (kind == DV_WORKLOAD_INIT)
        is_ready = status->state.terminated ? status->state.terminated->exit_code == 0
                                            : status->state.waiting && status->ready;
    status->started = started;
    status->ready = is_ready;
}

void dv_life_reckon_probes(const struct dv_life_reckoning *reckoning)
{
    const struct dv_api_pod *pod = reckoning->look->pod;
    struct dv_api_pod_status *status = reckoning->status;

    for (size_t i = 0; i < pod->spec.n_init_containers; i++) {
        const struct dv_api_container *container = &pod->spec.init_containers[i];

        if (i < status->n_init_container_statuses)
            reckon_started(reckoning, container,
                           dv_life_is_sidecar(container) ? DV_WORKLOAD_SIDECAR : DV_WORKLOAD_INIT,
                           find(reckoning->old->init_container_statuses,
                                reckoning->old->n_init_container_statuses, container->name),
                           &status->init_container_statuses[i]);
    }
    for (size_t i = 0; i < status->n_container_statuses; i++) {
        const struct dv_api_container *container =
            dv_workload_container(pod, status->container_statuses[i].name, NULL);

        if (container)
            reckon_started(reckoning, container, DV_WORKLOAD_REGULAR,
                           find(reckoning->old->container_statuses,
                                reckoning->old->n_container_statuses, container->name),
                           &status->container_statuses[i]);
    }
}

void dv_life_reckon_containers(const struct dv_life_reckoning *reckoning)
{
    const struct dv_api_pod *pod = reckoning->look->pod;
    const struct dv_api_pod_spec *spec = &pod->spec;
    struct dv_api_pod_status *status = reckoning->status;
    struct dv_arena *arena = reckoning->look->arena;
    size_t n_all = spec->n_init_containers + spec->n_containers + spec->n_ephemeral_containers;
    struct list list = {
        .reckoning = reckoning,
        .pod = pod,
        .view = &reckoning->look->facts->view,
        .arena = arena,
        .message_bytes = DV_LIFE_MESSAGE_BYTES / dv_size_max(n_all, 1),
    };

    list.kind = DV_WORKLOAD_INIT;
    list.old = reckoning->old->init_container_statuses;
    list.n_old = reckoning->old->n_init_container_statuses;
    status->init_container_statuses =
        DV_NEW_ARRAY(arena, struct dv_api_container_status, spec->n_init_containers);
    for (size_t i = 0; i < spec->n_init_containers; i++)
        reckon(&list, &spec->init_containers[i], &status->init_container_statuses[i]);
    status->n_init_container_statuses = spec->n_init_containers;

    list.kind = DV_WORKLOAD_REGULAR;
    list.old = reckoning->old->container_statuses;
    list.n_old = reckoning->old->n_container_statuses;
    status->container_statuses =
        DV_NEW_ARRAY(arena, struct dv_api_container_status, spec->n_containers);
    for (size_t i = 0; i < spec->n_containers; i++)
        reckon(&list, &spec->containers[i], &status->container_statuses[i]);
    status->n_container_statuses = spec->n_containers;
    qsort(status->container_statuses, spec->n_containers, sizeof(status->container_statuses[0]),
          compare_names);

    list.kind = DV_WORKLOAD_EPHEMERAL;
    list.old = reckoning->old->ephemeral_container_statuses;
    list.n_old = reckoning->old->n_ephemeral_container_statuses;
    status->ephemeral_container_statuses =
        DV_NEW_ARRAY(arena, struct dv_api_container_status, spec->n_ephemeral_containers);
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        reckon(&list, &spec->ephemeral_containers[i].ephemeral_container_common,
               &status->ephemeral_container_statuses[i]);
    status->n_ephemeral_container_statuses = spec->n_ephemeral_containers;
    qsort(status->ephemeral_container_statuses, spec->n_ephemeral_containers,
          sizeof(status->ephemeral_container_statuses[0]), compare_names);
    dv_life_reckon_probes(reckoning);
}

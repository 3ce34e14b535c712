/* node_status.c - makes the overview of the node: the resources that it reports, its pods and the
 * health of what they hold. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "lease/lease.h"
#include "lease/lease_spec.h"
#include "loop/loop.h"
#include "plugin/plugin.h"
#include "pod/agent.h"
#include "pod/pod.h"
#include "pod/runner.h"
#include "proto/davit_node_v1.pb-c.h"
#include "resource/resource.h"
#include "serve/health.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

/* ---- resources ---- */

static struct dv_serve_resource resource_of(const struct dv_device_resource_info *info)
{
    return (struct dv_serve_resource){
        .name = info->name,
        .held = info->n_allocated,
        .is_connected = info->plugin == DV_DEVICE_SERVING || info->plugin == DV_DEVICE_NOT_LISTED,
    };
}

/* Merges three sorted lists; what is reported is also known. Removed resources are known only while
 * something of them is held. */
size_t dv_serve_resources(const struct dv_node *node, struct dv_arena *arena,
                          const struct dv_serve_resource **resources)
{
    struct dv_device_capacities reported;
    const struct dv_device_resource_info *infos;
    struct dv_serve_resource *v;
    size_t n_infos;
    size_t n = 0;
    size_t at_info = 0;
    size_t at_reported = 0;
    size_t at_removed = 0;

    dv_device_manager_capacity(node->devices, arena, &reported);
    n_infos = dv_device_resources(dv_device_manager_state(node->devices), arena, &infos);
    v = DV_NEW_ARRAY(arena, struct dv_serve_resource, n_infos + reported.n_removed);
    while (at_info < n_infos || at_removed < reported.n_removed) {
        struct dv_serve_resource *resource = &v[n++];

        if (at_info == n_infos ||
            (at_removed < reported.n_removed &&
             dv_str_cmp(reported.removed[at_removed], infos[at_info].name) < 0)) {
            resource->name = reported.removed[at_removed++];
            resource->is_removed = true;
            continue;
        }
        *resource = resource_of(&infos[at_info++]);
        if (at_reported < reported.n &&
            dv_str_eq(reported.v[at_reported].resource, resource->name)) {
            resource->capacity = reported.v[at_reported].capacity;
            resource->allocatable = reported.v[at_reported++].allocatable;
        }
        if (at_removed < reported.n_removed &&
            dv_str_eq(reported.removed[at_removed], resource->name)) {
            resource->is_removed = true;
            at_removed++;
        }
    }
    *resources = v;
    return n;
}

/* ---- pods ---- */

static NodeV1__ResourceHealth *new_health(dv_str name, size_t n_devices, struct dv_arena *arena)
{
    NodeV1__ResourceHealth *resource = DV_NEW(arena, NodeV1__ResourceHealth);

    node_v1__resource_health__init(resource);
    resource->resource = dv_str_to_c(name, arena);
    resource->devices = DV_NEW_ARRAY(arena, NodeV1__DeviceHealth *, n_devices);
    return resource;
}

static void add_device_health(NodeV1__ResourceHealth *resource, dv_str id, const char *health,
                              struct dv_arena *arena)
{
    NodeV1__DeviceHealth *device = DV_NEW(arena, NodeV1__DeviceHealth);

    node_v1__device_health__init(device);
    device->id = dv_str_to_c(id, arena);
    device->health = health;
    resource->devices[resource->n_devices++] = device;
}

/* Makes the health of the devices that a container has of a plugin's resource. */
static NodeV1__ResourceHealth *plugin_health(const struct dv_device_status *status,
                                             struct dv_arena *arena)
{
    NodeV1__ResourceHealth *resource = new_health(status->resource, status->n_ids, arena);

    for (size_t i = 0; i < status->n_ids; i++)
        add_device_health(resource, status->ids[i], status->is_healthy[i] ? "Healthy" : "Unhealthy",
                          arena);
    return resource;
}

/* Makes the health of a claim's devices, "claim:gpu", as in a pod's status. */
static NodeV1__ResourceHealth *claim_health(const struct dv_api_resource_status *status,
                                            struct dv_arena *arena)
{
    NodeV1__ResourceHealth *resource = new_health(status->name, status->n_resources, arena);

    for (size_t i = 0; i < status->n_resources; i++)
        add_device_health(resource, status->resources[i].resource_id,
                          dv_str_to_c(status->resources[i].health, arena), arena);
    return resource;
}

/* `lookup` is of the pod's object, if it has one. */
static size_t claim_statuses(const struct dv_node *node, const struct dv_pod_spec *spec,
                             const struct dv_claim_lookup *lookup, dv_str name,
                             struct dv_arena *arena, struct dv_api_resource_status **statuses)
{
    const struct dv_api_container *container = dv_pod_spec_container(spec, name);
    struct dv_claim_status_options options = {.now_wall_ns =
                                                  dv_clock_wall_ns(dv_loop_clock(node->loop))};
    size_t n = 0;

    if (container)
        dv_claim_container_status(dv_claim_manager_state(node->claims), lookup, container, NULL, 0,
                                  &options, arena, statuses, &n);
    return n;
}

/* Adds the health of the containers that hold devices. */
static void add_health(NodeV1__PodStatus *pod, const struct dv_node *node,
                       const struct dv_pod_spec *spec, struct dv_arena *arena)
{
    const struct dv_device_state *state = dv_device_manager_state(node->devices);
    struct dv_claim_lookup lookup = {0};

    if (spec->object)
        dv_claim_lookup_init(&lookup, spec->object);
    pod->containers = DV_NEW_ARRAY(arena, NodeV1__ContainerHealth *, spec->n_containers);
    for (size_t i = 0; i < spec->n_containers; i++) {
        const struct dv_device_status *statuses;
        size_t n =
            dv_device_status(state, spec->ref.uid, spec->containers[i].name, arena, &statuses);
        struct dv_api_resource_status *claimed;
        size_t n_claimed =
            claim_statuses(node, spec, &lookup, spec->containers[i].name, arena, &claimed);
        NodeV1__ContainerHealth *container;

        if (n + n_claimed == 0)
            continue;
        container = DV_NEW(arena, NodeV1__ContainerHealth);
        node_v1__container_health__init(container);
        container->container = dv_str_to_c(spec->containers[i].name, arena);
        container->resources = DV_NEW_ARRAY(arena, NodeV1__ResourceHealth *, n + n_claimed);
        for (size_t k = 0; k < n; k++)
            container->resources[container->n_resources++] = plugin_health(&statuses[k], arena);
        for (size_t k = 0; k < n_claimed; k++)
            container->resources[container->n_resources++] = claim_health(&claimed[k], arena);
        pod->containers[pod->n_containers++] = container;
    }
    dv_claim_lookup_fini(&lookup);
}

/* Adds what was told about the containers. */
static void add_runs(NodeV1__PodStatus *pod, const struct dv_node *node, dv_str uid,
                     struct dv_arena *arena)
{
    struct dv_pod_told told = dv_pods_told(node->pods, uid);

    pod->runs = DV_NEW_ARRAY(arena, NodeV1__ContainerRun *, told.n_statuses);
    for (size_t i = 0; i < told.n_statuses; i++) {
        const struct dv_api_container_status *status = &told.statuses[i];
        NodeV1__ContainerRun *run = DV_NEW(arena, NodeV1__ContainerRun);

        node_v1__container_run__init(run);
        run->container = dv_str_to_c(status->name, arena);
        run->state = status->state.terminated ? "ended" : "running";
        run->restarts = status->restart_count;
        run->id = dv_str_to_c(status->container_id, arena);
        if (status->state.terminated) {
            run->exit_code = (int32_t)status->state.terminated->exit_code;
            run->reason = dv_str_to_c(status->state.terminated->reason, arena);
        }
        pod->runs[pod->n_runs++] = run;
    }
}

/* Says what the pod does: one that was admitted may be run by davitd itself. */
static void add_state(NodeV1__PodStatus *pod, const struct dv_node *node,
                      const struct dv_pod_view *view, struct dv_arena *arena)
{
    struct dv_runner_doing doing = {0};

    pod->state = dv_pod_state_name(view->state);
    pod->awaited = dv_str_to_c(view->awaited, arena);
    if (node->runner && view->state == DV_POD_ADMITTED)
        doing = dv_runner_doing(node->runner, view->spec->ref.uid);
    if (!doing.word)
        return;
    pod->state = doing.word;
    if (doing.image.n > 0)
        pod->awaited = dv_str_to_c(dv_str_printf(arena, "image %.*s%s%.*s", DV_FMT(doing.image),
                                                 doing.why.n > 0 ? ": " : "", DV_FMT(doing.why)),
                                   arena);
}

/* Empty: it is a pod. */
static const char *lease_id(const struct dv_node *node, const struct dv_pod_spec *pod,
                            struct dv_arena *arena)
{
    const struct dv_lease *lease = dv_serve_lease_of(node, pod);
    struct dv_lease_view view = {0};

    if (lease)
        dv_lease_get_view(lease, &view);
    return dv_str_to_c(lease ? view.spec->id : DV_STR(""), arena);
}

/* Says why a pod was not admitted, or cannot go: "reason: message". */
static void add_reason(NodeV1__PodStatus *pod, const struct dv_node *node,
                       const struct dv_agent_unadmitted *from, struct dv_arena *arena)
{
    pod->reason = dv_str_to_c(from->reason, arena);
    pod->awaited = dv_str_to_c(
        dv_str_printf(arena, "%.*s: %.*s", DV_FMT(from->reason), DV_FMT(from->message)), arena);
    pod->since_ms = (int64_t)(from->since_wall_ns / DV_NS_PER_MS);
    if (from->retry_at_ms > 0)
        pod->retry_at_ms = dv_serve_wall_ms(node, from->retry_at_ms);
}

static NodeV1__PodStatus *pod_message(const struct dv_node *node, const struct dv_pod_view *view,
                                      struct dv_arena *arena)
{
    NodeV1__PodStatus *pod = DV_NEW(arena, NodeV1__PodStatus);
    struct dv_agent_unadmitted unreleased;

    node_v1__pod_status__init(pod);
    pod->pod = dv_serve_ref(&view->spec->ref, arena);
    add_state(pod, node, view, arena);
    pod->since_ms = (int64_t)(view->since_wall_ns / DV_NS_PER_MS);
    if (node->agent && dv_agent_find_unreleased(node->agent, view->spec->ref.uid, &unreleased)) {
        /* between two tries it is as it was before them, and all the same on its way out */
        pod->state = dv_pod_state_name(DV_POD_RELEASING);
        add_reason(pod, node, &unreleased, arena);
    }
    pod->lease = lease_id(node, view->spec, arena);
    add_health(pod, node, view->spec, arena);
    add_runs(pod, node, view->spec->ref.uid, arena);
    return pod;
}

/* Makes the status of a pod that the API has on this node and that was not admitted. */
static NodeV1__PodStatus *unadmitted_message(const struct dv_node *node,
                                             const struct dv_agent_unadmitted *from,
                                             struct dv_arena *arena)
{
    NodeV1__PodStatus *pod = DV_NEW(arena, NodeV1__PodStatus);

    node_v1__pod_status__init(pod);
    pod->pod = dv_serve_ref(&(struct dv_pod_ref){from->uid, from->namespace, from->name}, arena);
    pod->state = from->is_final ? "refused" : "retrying";
    add_reason(pod, node, from, arena);
    return pod;
}

static bool is_meant(const struct dv_pod_ref *ref, const struct dv_agent_unadmitted *pod)
{
    if (ref->uid.n > 0)
        return dv_str_eq(ref->uid, pod->uid);
    return ref->name.n == 0 ||
           (dv_str_eq(ref->name, pod->name) && dv_str_eq(ref->namespace, pod->namespace));
}

/* Adds the pods that were not admitted, or the one that `ref` names. */
static size_t add_unadmitted(const struct dv_node *node, const struct dv_pod_ref *ref,
                             struct dv_arena *arena, NodeV1__PodStatus ***pods, size_t n)
{
    struct dv_agent_unadmitted unadmitted;
    DV_VEC(NodeV1__PodStatus *) all = {*pods, n, n};

    for (size_t at = 0; node->agent && dv_agent_next_unadmitted(node->agent, &at, &unadmitted);)
        if (is_meant(ref, &unadmitted))
            *dv_vec_add_in(&all, arena) = unadmitted_message(node, &unadmitted, arena);
    *pods = all.v;
    return all.n;
}

/* Sets *pods to all pods and returns how many there are. */
static size_t all_pods(const struct dv_node *node, struct dv_arena *arena,
                       NodeV1__PodStatus ***pods)
{
    struct dv_pod_view view;
    size_t at = 0;
    size_t n = 0;

    *pods = DV_NEW_ARRAY(arena, NodeV1__PodStatus *, dv_pods_count(node->pods));
    while (dv_pods_next(node->pods, &at, &view))
        (*pods)[n++] = pod_message(node, &view, arena);
    return add_unadmitted(node, &(struct dv_pod_ref){0}, arena, pods, n);
}

NodeV1__WatchPodsResponse *dv_serve_pod_list(const struct dv_node *node,
                                             const struct dv_pod_ref *ref, struct dv_arena *arena)
{
    NodeV1__WatchPodsResponse *response = DV_NEW(arena, NodeV1__WatchPodsResponse);
    struct dv_pod_view view;

    node_v1__watch_pods_response__init(response);
    if (ref->uid.n == 0 && ref->name.n == 0) {
        response->n_pods = all_pods(node, arena, &response->pods);
    } else if (dv_pods_find(node->pods, ref, &view)) {
        response->pods = DV_NEW_ARRAY(arena, NodeV1__PodStatus *, 1);
        response->pods[response->n_pods++] = pod_message(node, &view, arena);
    } else {
        response->n_pods = add_unadmitted(node, ref, arena, &response->pods, 0);
    }
    return response;
}

/* ---- all of it ---- */

static NodeV1__ResourceStatus *resource_message(const struct dv_serve_resource *from,
                                                struct dv_arena *arena)
{
    NodeV1__ResourceStatus *resource = DV_NEW(arena, NodeV1__ResourceStatus);

    node_v1__resource_status__init(resource);
    resource->name = dv_str_to_c(from->name, arena);
    resource->capacity = from->capacity;
    resource->allocatable = from->allocatable;
    resource->held = from->held;
    resource->connected = from->is_connected;
    resource->removed = from->is_removed;
    return resource;
}

/* What somebody has to look at. A container runtime that is not ready comes last. */
static void add_notes(NodeV1__StatusResponse *response, const struct dv_node *node,
                      struct dv_arena *arena)
{
    const dv_str *notes;
    const dv_str *faults;
    size_t n = dv_health_notes(node->health, &notes);
    size_t n_faults = dv_health_faults(node->health, &faults);
    const char **texts = DV_NEW_ARRAY(arena, const char *, n + n_faults + 1);
    struct dv_err err;

    for (size_t i = 0; i < n; i++)
        texts[i] = dv_str_to_c(notes[i], arena);
    for (size_t i = 0; i < n_faults; i++)
        texts[n + i] = dv_str_to_c(faults[i], arena);
    response->notes = texts;
    response->n_notes = n + n_faults;
    if (node->runner && !dv_runner_check(node->runner, &err))
        texts[response->n_notes++] =
            dv_str_to_c(dv_str_printf(arena, "no containers are started: %s", err.msg), arena);
}

/* Returns why nothing can be written; NULL: it can. */
static const struct dv_err *trouble_of(const struct dv_node *node)
{
    const struct dv_err *err = dv_health_trouble(node->health);

    if (!err)
        err = dv_device_manager_store_error(node->devices);
    return err ? err : dv_claim_manager_store_error(node->claims);
}

NodeV1__StatusResponse *dv_serve_status(const struct dv_node *node, struct dv_arena *arena)
{
    NodeV1__StatusResponse *response = DV_NEW(arena, NodeV1__StatusResponse);
    const struct dv_err *store_err = trouble_of(node);
    const struct dv_serve_resource *resources;
    size_t n = dv_serve_resources(node, arena, &resources);

    node_v1__status_response__init(response);
    response->version = DV_VERSION;
    response->node_name = dv_str_to_c(node->name, arena);
    response->started_at_ms = (int64_t)(node->started_wall_ns / DV_NS_PER_MS);
    response->n_pods = all_pods(node, arena, &response->pods);
    response->n_calls = dv_serve_calls(node, arena, &response->calls);
    response->resource_status = DV_NEW_ARRAY(arena, NodeV1__ResourceStatus *, n);
    for (size_t i = 0; i < n; i++) {
        response->resource_status[response->n_resource_status++] =
            resource_message(&resources[i], arena);
        response->n_resources += !resources[i].is_removed;
        response->n_devices += resources[i].capacity;
    }
    response->n_plugins = dv_plugins_status(node->plugins).n_actual;
    response->state_error = store_err ? dv_str_to_c(dv_str_from_c(store_err->msg), arena) : "";
    add_notes(response, node, arena);
    return response;
}

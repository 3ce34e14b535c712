/* node_pods.c - davit.node.v1: AdmitPod, ReleasePod and ContainerOptions. */
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "grpc/grpc.h"
#include "pod/pod.h"
#include "pod/runner.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/node_service.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

/* A call whose answer comes later; in the call's arena. */
struct pending {
    struct dv_node_server *server;
    struct dv_server_call *call;
    struct dv_pod_admission admission;
    struct dv_pod_release release;
    struct dv_pod_start start;
    struct dv_pod_ref ref;
    dv_str container;
};

static struct pending *new_pending(void *ctx, struct dv_server_call *call)
{
    struct pending *pending = DV_NEW(dv_server_call_arena(call), struct pending);

    pending->server = ctx;
    pending->call = call;
    return pending;
}

/* Fails the call. DV_UNAVAILABLE becomes another code: that a driver cannot be reached must not
 * look as if we could not be. */
static void fail(struct pending *pending, const struct dv_err *err)
{
    struct dv_err own = *err;

    if (own.code == DV_UNAVAILABLE)
        own.code = DV_FAILED_PRECONDITION;
    dv_server_call_finish(pending->call, &own);
}

/* ---- AdmitPod ---- */

void dv_node_add_ids(NodeV1__ResourceDevices *resource, const struct dv_device_record *record,
                     struct dv_arena *arena)
{
    DV_CLEANUP(dv_map_fini) struct dv_map seen;
    size_t n = 0;

    dv_map_init(&seen);
    for (size_t i = 0; i < record->n_placed; i++)
        n += record->placed[i].n_ids;
    resource->device_ids = DV_NEW_ARRAY(arena, const char *, n);
    for (size_t i = 0; i < record->n_placed; i++)
        for (size_t k = 0; k < record->placed[i].n_ids; k++) {
            dv_str id = record->placed[i].ids[k];

            /* A device on two NUMA nodes is listed twice, so it is added once. */
            if (record->n_placed == 1 || !dv_map_set(&seen, id, resource))
                resource->device_ids[resource->n_device_ids++] = dv_str_to_c(id, arena);
        }
}

/* Adds what the containers of the pod hold, in the pod's order. */
static void add_containers(NodeV1__AdmitPodResponse *response, const struct dv_node *node,
                           const struct dv_pod_ref *ref, struct dv_arena *arena)
{
    const struct dv_device_record *records;
    size_t n_records =
        dv_device_records_of_pod(dv_device_manager_state(node->devices), ref->uid, arena, &records);
    struct dv_pod_view view;

    if (!dv_pods_find(node->pods, ref, &view))
        return;
    response->containers = DV_NEW_ARRAY(arena, NodeV1__ContainerDevices *, view.spec->n_containers);
    for (size_t i = 0; i < view.spec->n_containers; i++) {
        NodeV1__ContainerDevices *container = DV_NEW(arena, NodeV1__ContainerDevices);

        node_v1__container_devices__init(container);
        container->container = dv_str_to_c(view.spec->containers[i].name, arena);
        container->resources = DV_NEW_ARRAY(arena, NodeV1__ResourceDevices *, n_records);
        for (size_t k = 0; k < n_records; k++) {
            NodeV1__ResourceDevices *resource;

            if (!dv_str_eq(records[k].container, view.spec->containers[i].name))
                continue;
            resource = DV_NEW(arena, NodeV1__ResourceDevices);
            node_v1__resource_devices__init(resource);
            resource->resource = dv_str_to_c(records[k].resource, arena);
            dv_node_add_ids(resource, &records[k], arena);
            container->resources[container->n_resources++] = resource;
        }
        response->containers[response->n_containers++] = container;
    }
}

static void on_admitted(struct dv_pod_admission *admission, const struct dv_pod_verdict *verdict,
                        const struct dv_err *err)
{
    struct pending *pending = DV_CONTAINER(admission, struct pending, admission);
    struct dv_arena *arena = dv_server_call_arena(pending->call);
    NodeV1__AdmitPodResponse response = NODE_V1__ADMIT_POD_RESPONSE__INIT;

    if (err) {
        dv_server_call_finish(pending->call, err);
        return;
    }
    response.admitted = verdict->is_admitted;
    response.reason = verdict->is_admitted ? "" : dv_pod_refusal_name(verdict->refusal);
    response.message = dv_str_to_c(verdict->message, arena);
    response.pod = dv_serve_ref(&verdict->ref, arena);
    if (verdict->is_admitted)
        add_containers(&response, pending->server->node, &verdict->ref, arena);
    dv_serve_reply(pending->call, &response.base);
}

static void on_admit_cancelled(void *ctx, struct dv_server_call *call)
{
    struct pending *pending = ctx;

    (void)call;
    dv_pods_cancel(&pending->admission);
}

void dv_node_handle_admit(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    const NodeV1__AdmitPodRequest *request =
        dv_node_decode(call, &node_v1__admit_pod_request__descriptor, bytes);
    struct dv_pod_input *input;
    struct pending *pending;
    uint64_t wait_ms = UINT64_MAX;
    struct dv_err err;

    if (!request)
        return;
    input = dv_pod_input_parse((dv_str){(const char *)request->pod.data, request->pod.len}, &err);
    if (!input) {
        dv_server_call_finish(call, &err);
        return;
    }
    pending = new_pending(ctx, call);
    if (request->has_wait_seconds_case == NODE_V1__ADMIT_POD_REQUEST__HAS_WAIT_SECONDS_WAIT_SECONDS)
        wait_ms = (uint64_t)request->wait_seconds * 1000;
    pending->admission.done = on_admitted;
    dv_server_call_on_cancel(call, on_admit_cancelled, pending);
    dv_pods_admit(pending->server->node->pods, &pending->admission, input, wait_ms);
}

/* ---- ReleasePod ---- */

static void on_released(struct dv_pod_release *release, bool was_known, const struct dv_err *err)
{
    struct pending *pending = DV_CONTAINER(release, struct pending, release);
    NodeV1__ReleasePodResponse response = NODE_V1__RELEASE_POD_RESPONSE__INIT;

    if (err) {
        fail(pending, err);
        return;
    }
    response.was_known = was_known;
    dv_serve_reply(pending->call, &response.base);
}

/* Whether containers of the pod may run: they are ended, and the pod is released after that. A
 * device that was given back while it is in use would be given to another pod. */
static bool ends_first(const struct dv_node *node, const struct dv_pod_ref *ref, struct dv_err *err)
{
    struct dv_pod_view view;
    enum dv_runner_state state;

    if (!node->runner || !dv_pods_find(node->pods, ref, &view) ||
        view.spec->origin == DV_POD_ORIGIN_NODE)
        return false;
    state = dv_runner_state(node->runner, view.spec->ref.uid);
    if (state == DV_RUNNER_UNKNOWN || state >= DV_RUNNER_STOPPED)
        return false;
    dv_runner_evict(node->runner, view.spec->ref.uid, DV_STR("Released"),
                    DV_STR("Somebody wants back what the pod holds"));
    (void)dv_fail(
        err, DV_FAILED_PRECONDITION,
        "pod %.*s/%.*s has containers: they are being ended, and it is released after that",
        DV_FMT(view.spec->ref.namespace), DV_FMT(view.spec->ref.name));
    return true;
}

void dv_node_handle_release(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    const NodeV1__ReleasePodRequest *request =
        dv_node_decode(call, &node_v1__release_pod_request__descriptor, bytes);
    struct pending *pending;
    struct dv_err err;

    if (!request)
        return;
    pending = new_pending(ctx, call);
    pending->ref = dv_node_ref(request->pod);
    pending->release.done = on_released;
    if (ends_first(pending->server->node, &pending->ref, &err)) {
        fail(pending, &err);
        return;
    }
    dv_pods_release(pending->server->node->pods, &pending->release, &pending->ref);
}

/* ---- ContainerOptions ---- */

static NodeV1__KeyValue **pairs(const struct dv_device_pair *v, size_t n, struct dv_arena *arena)
{
    NodeV1__KeyValue **made = DV_NEW_ARRAY(arena, NodeV1__KeyValue *, n);

    for (size_t i = 0; i < n; i++) {
        made[i] = DV_NEW(arena, NodeV1__KeyValue);
        node_v1__key_value__init(made[i]);
        made[i]->key = dv_str_to_c(v[i].name, arena);
        made[i]->value = dv_str_to_c(v[i].value, arena);
    }
    return made;
}

static void add_mounts(NodeV1__ContainerOptionsResponse *response,
                       const struct dv_device_options *options, struct dv_arena *arena)
{
    response->n_mounts = options->n_mounts;
    response->mounts = DV_NEW_ARRAY(arena, NodeV1__Mount *, options->n_mounts);
    for (size_t i = 0; i < options->n_mounts; i++) {
        NodeV1__Mount *mount = DV_NEW(arena, NodeV1__Mount);

        node_v1__mount__init(mount);
        mount->container_path = dv_str_to_c(options->mounts[i].container_path, arena);
        mount->host_path = dv_str_to_c(options->mounts[i].host_path, arena);
        mount->read_only = options->mounts[i].is_read_only;
        response->mounts[i] = mount;
    }
}

static void add_nodes(NodeV1__ContainerOptionsResponse *response,
                      const struct dv_device_options *options, struct dv_arena *arena)
{
    response->n_devices = options->n_nodes;
    response->devices = DV_NEW_ARRAY(arena, NodeV1__DeviceNode *, options->n_nodes);
    for (size_t i = 0; i < options->n_nodes; i++) {
        NodeV1__DeviceNode *device = DV_NEW(arena, NodeV1__DeviceNode);

        node_v1__device_node__init(device);
        device->container_path = dv_str_to_c(options->nodes[i].container_path, arena);
        device->host_path = dv_str_to_c(options->nodes[i].host_path, arena);
        device->permissions = dv_str_to_c(options->nodes[i].permissions, arena);
        response->devices[i] = device;
    }
}

static void log_conflicts(dv_str container, const struct dv_device_options *options)
{
    for (size_t i = 0; i < options->n_conflicts; i++)
        dv_log(DV_LOG_ERROR, "serve: two plugins set the same thing; the first counts",
               DV_F_STR("container", container), DV_F_C("part", options->conflicts[i].part),
               DV_F_STR("name", options->conflicts[i].name),
               DV_F_STR("kept", options->conflicts[i].kept),
               DV_F_STR("dropped", options->conflicts[i].dropped));
}

static bool find_cdi_names(const struct dv_node *node, const struct dv_api_pod *pod,
                           const struct dv_api_container *container, struct dv_arena *arena,
                           struct dv_claim_cdi_name **names, size_t *n, struct dv_err *err)
{
    const struct dv_claim_state *state = dv_claim_manager_state(node->claims);
    struct dv_claim_lookup lookup;
    bool is_known;

    dv_claim_lookup_init(&lookup, pod);
    is_known = dv_claim_cdi_names(state, &lookup, container, arena, names, n, err);
    dv_claim_lookup_fini(&lookup);
    return is_known;
}

/* Adds the CDI names; those of claims come first, as in the reference. */
static bool add_cdi_names(NodeV1__ContainerOptionsResponse *response, const struct dv_node *node,
                          const struct dv_pod_spec *spec, dv_str name,
                          const struct dv_device_options *options, struct dv_arena *arena,
                          struct dv_err *err)
{
    const struct dv_api_container *container = dv_pod_spec_container(spec, name);
    struct dv_claim_cdi_name *names = NULL;
    size_t n = 0;

    if (container && !find_cdi_names(node, spec->object, container, arena, &names, &n, err))
        return false;
    response->cdi_devices = DV_NEW_ARRAY(arena, const char *, n + options->n_cdi_names);
    for (size_t i = 0; i < n; i++)
        response->cdi_devices[response->n_cdi_devices++] = dv_str_to_c(names[i].id, arena);
    for (size_t i = 0; i < options->n_cdi_names; i++)
        response->cdi_devices[response->n_cdi_devices++] =
            dv_str_to_c(options->cdi_names[i], arena);
    return true;
}

static void add_options(NodeV1__ContainerOptionsResponse *response,
                        const struct dv_device_options *options, struct dv_arena *arena)
{
    response->envs = pairs(options->envs, options->n_envs, arena);
    response->n_envs = options->n_envs;
    response->annotations = pairs(options->annotations, options->n_annotations, arena);
    response->n_annotations = options->n_annotations;
    add_mounts(response, options, arena);
    add_nodes(response, options, arena);
}

bool dv_node_container_options(const struct dv_node *node, const struct dv_pod_ref *ref,
                               dv_str container, struct dv_arena *arena,
                               NodeV1__ContainerOptionsResponse *response, struct dv_err *err)
{
    struct dv_device_options options = {0};
    struct dv_pod_view view;

    if (!dv_pods_find(node->pods, ref, &view)) /* the pod is gone meanwhile */
        return true;
    if (dv_device_container_options(dv_device_manager_state(node->devices), view.spec->ref.uid,
                                    container, arena, &options)) {
        log_conflicts(container, &options);
        add_options(response, &options, arena);
    }
    return add_cdi_names(response, node, view.spec, container, &options, arena, err);
}

static void on_started(struct dv_pod_start *start, const struct dv_err *err)
{
    struct pending *pending = DV_CONTAINER(start, struct pending, start);
    NodeV1__ContainerOptionsResponse response = NODE_V1__CONTAINER_OPTIONS_RESPONSE__INIT;
    struct dv_err failed;

    if (err)
        fail(pending, err);
    else if (dv_node_container_options(pending->server->node, &pending->ref, pending->container,
                                       dv_server_call_arena(pending->call), &response, &failed))
        dv_serve_reply(pending->call, &response.base);
    else
        dv_server_call_finish(pending->call, &failed);
}

static void on_start_cancelled(void *ctx, struct dv_server_call *call)
{
    struct pending *pending = ctx;

    (void)call;
    dv_pods_cancel_start(&pending->start);
}

/* Chooses the only container of the pod. Where there are more, the caller has to name one: the call
 * has failed. */
static bool choose_container(struct pending *pending)
{
    struct dv_arena *arena = dv_server_call_arena(pending->call);
    struct dv_pod_view view;
    dv_str names = DV_STR("");
    struct dv_err err;

    if (!dv_pods_find(pending->server->node->pods, &pending->ref, &view))
        return true; /* that there is no such pod is told as with a name */
    for (size_t i = 0; i < view.spec->n_containers; i++)
        names = dv_str_printf(arena, "%.*s%s%.*s", DV_FMT(names), i > 0 ? ", " : "",
                              DV_FMT(view.spec->containers[i].name));
    if (view.spec->n_containers != 1) {
        (void)dv_fail(&err, DV_INVALID_ARGUMENT, "name one of the pod's containers: %.*s",
                      DV_FMT(names));
        fail(pending, &err);
        return false;
    }
    pending->container = dv_str_copy(view.spec->containers[0].name, arena);
    return true;
}

void dv_node_handle_options(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    const NodeV1__ContainerOptionsRequest *request =
        dv_node_decode(call, &node_v1__container_options_request__descriptor, bytes);
    struct pending *pending;

    if (!request)
        return;
    pending = new_pending(ctx, call);
    pending->ref = dv_node_ref(request->pod);
    pending->container = dv_str_from_c(request->container);
    if (pending->container.n == 0 && !choose_container(pending))
        return;
    pending->start.done = on_started;
    dv_server_call_on_cancel(call, on_start_cancelled, pending);
    dv_pods_start_container(pending->server->node->pods, &pending->start, &pending->ref,
                            pending->container);
}

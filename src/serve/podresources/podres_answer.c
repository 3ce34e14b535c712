#include "serve/podresources/podres_answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "device/device.h"
#include "pod/pod.h"
#include "proto/podresources_v1.pb-c.h"
#include "proto/podresources_v1alpha1.pb-c.h"

/* ---- devices of plugins ---- */

struct entries {
    PodresV1__ContainerDevices **v;
    size_t n;
    size_t size;
};

static PodresV1__TopologyInfo *topology_message(int64_t node, struct dv_arena *arena)
{
    PodresV1__TopologyInfo *topology = DV_NEW(arena, PodresV1__TopologyInfo);

    podres_v1__topology_info__init(topology);
    topology->nodes = DV_NEW_ARRAY(arena, PodresV1__NUMANode *, 1);
    topology->nodes[0] = DV_NEW(arena, PodresV1__NUMANode);
    topology->n_nodes = 1;
    podres_v1__numanode__init(topology->nodes[0]);
    topology->nodes[0]->id = node;
    return topology;
}

/* Adds one entry for each device and NUMA node; DV_DEVICE_NO_NODE has no topology. `resource` is in
 * the arena. */
static void add_entry(struct entries *entries, const char *resource, dv_str id, int64_t node,
                      struct dv_arena *arena)
{
    PodresV1__ContainerDevices *entry = DV_NEW(arena, PodresV1__ContainerDevices);

    podres_v1__container_devices__init(entry);
    entry->resource_name = resource;
    entry->device_ids = DV_NEW_ARRAY(arena, const char *, 1);
    entry->device_ids[0] = dv_str_to_c(id, arena);
    entry->n_device_ids = 1;
    if (node != DV_DEVICE_NO_NODE)
        entry->topology = topology_message(node, arena);
    *dv_vec_add_in(entries, arena) = entry;
}

static int64_t node_of(const PodresV1__ContainerDevices *entry)
{
    return entry->topology ? entry->topology->nodes[0]->id : DV_DEVICE_NO_NODE;
}

static int compare_entries(const void *a, const void *b)
{
    const PodresV1__ContainerDevices *x = *(PodresV1__ContainerDevices *const *)a;
    const PodresV1__ContainerDevices *y = *(PodresV1__ContainerDevices *const *)b;
    int order = strcmp(x->resource_name, y->resource_name);

    if (order == 0)
        order = strcmp(x->device_ids[0], y->device_ids[0]);
    return order ? order : (node_of(x) > node_of(y)) - (node_of(x) < node_of(y));
}

static bool are_sorted(const struct entries *entries)
{
    for (size_t i = 1; i < entries->n; i++)
        if (compare_entries(&entries->v[i - 1], &entries->v[i]) > 0)
            return false;
    return true;
}

/* Most lists are sorted: those of one record, without NUMA nodes. */
static void sort_entries(struct entries *entries)
{
    if (!are_sorted(entries))
        qsort(entries->v, entries->n, sizeof(entries->v[0]), compare_entries);
}

/* What a pod's containers hold, read once for all of them. */
struct holdings {
    const struct dv_device_record *records;
    size_t n_records;
};

static struct holdings holdings_of(const struct dv_podres_node *node, const struct dv_pod_spec *pod,
                                   struct dv_arena *arena)
{
    struct holdings holdings;

    holdings.n_records =
        dv_device_records_of_pod(node->devices, pod->ref.uid, arena, &holdings.records);
    return holdings;
}

static void add_record(struct entries *entries, const struct dv_device_record *record,
                       struct dv_arena *arena)
{
    const char *resource = dv_str_to_c(record->resource, arena);

    for (size_t i = 0; i < record->n_placed; i++)
        for (size_t k = 0; k < record->placed[i].n_ids; k++)
            add_entry(entries, resource, record->placed[i].ids[k], record->placed[i].node, arena);
}

static struct entries held_entries(const struct holdings *holdings, dv_str container,
                                   struct dv_arena *arena)
{
    struct entries entries = {0};

    for (size_t i = 0; i < holdings->n_records; i++)
        if (dv_str_eq(holdings->records[i].container, container))
            add_record(&entries, &holdings->records[i], arena);
    sort_entries(&entries);
    return entries;
}

/* ---- devices of claims ---- */

static void add_cdi_devices(PodresV1__ClaimResource *message,
                            const struct dv_podres_claim_device *device, struct dv_arena *arena)
{
    for (size_t i = 0; i < device->n_cdi_ids; i++) {
        PodresV1__CDIDevice *cdi = DV_NEW(arena, PodresV1__CDIDevice);

        podres_v1__cdidevice__init(cdi);
        cdi->name = dv_str_to_c(device->cdi_ids[i], arena);
        message->cdi_devices[message->n_cdi_devices++] = cdi;
    }
}

/* Makes the entry of device i of the driver, with the CDI ids of devices first..i. */
static PodresV1__ClaimResource *claim_resource(const struct dv_podres_claim_driver *driver,
                                               size_t first, size_t i, struct dv_arena *arena)
{
    const struct dv_podres_claim_device *device = &driver->devices[i];
    PodresV1__ClaimResource *message = DV_NEW(arena, PodresV1__ClaimResource);
    size_t n = 0;

    podres_v1__claim_resource__init(message);
    message->driver_name = dv_str_to_c(driver->name, arena);
    message->pool_name = dv_str_to_c(device->pool, arena);
    message->device_name = dv_str_to_c(device->device, arena);
    if (device->has_share_id) {
        message->has_share_id_case = PODRES_V1__CLAIM_RESOURCE__HAS_SHARE_ID_SHARE_ID;
        message->share_id = dv_str_to_c(device->share_id, arena);
    }
    for (size_t k = first; k <= i; k++)
        n += driver->devices[k].n_cdi_ids;
    message->cdi_devices = DV_NEW_ARRAY(arena, PodresV1__CDIDevice *, n);
    for (size_t k = first; k <= i; k++)
        add_cdi_devices(message, &driver->devices[k], arena);
    return message;
}

static PodresV1__DynamicResource *claim_message(const struct dv_podres_node *node,
                                                const struct dv_podres_claim *claim,
                                                struct dv_arena *arena)
{
    PodresV1__DynamicResource *message = DV_NEW(arena, PodresV1__DynamicResource);
    size_t n = 0;

    podres_v1__dynamic_resource__init(message);
    message->claim_name = dv_str_to_c(claim->name, arena);
    message->claim_namespace = dv_str_to_c(claim->namespace, arena);
    for (size_t i = 0; i < claim->n_drivers; i++)
        n += claim->drivers[i].n_devices;
    message->claim_resources = DV_NEW_ARRAY(arena, PodresV1__ClaimResource *, n);
    for (size_t i = 0; i < claim->n_drivers; i++)
        for (size_t k = 0; k < claim->drivers[i].n_devices; k++)
            message->claim_resources[message->n_claim_resources++] =
                claim_resource(&claim->drivers[i], node->is_strict ? 0 : k, k, arena);
    return message;
}

static bool is_prepared(const struct dv_podres_use *use)
{
    for (size_t i = 0; i < use->n_claims; i++)
        if (!use->claims[i])
            return false;
    return true;
}

static void add_claims(PodresV1__ContainerResources *message, const struct dv_podres_node *node,
                       const struct dv_podres_use *use, struct dv_arena *arena)
{
    if (!is_prepared(use))
        return;
    message->dynamic_resources = DV_NEW_ARRAY(arena, PodresV1__DynamicResource *, use->n_claims);
    for (size_t i = 0; i < use->n_claims; i++)
        message->dynamic_resources[message->n_dynamic_resources++] =
            claim_message(node, use->claims[i], arena);
}

/* ---- pods, v1 ---- */

/* Makes the message of a pod. Sidecars come before regular containers, as in the spec; plain init
 * containers are left out. */
static PodresV1__PodResources *pod_message(const struct dv_podres_node *node,
                                           const struct dv_podres_pod *pod, struct dv_arena *arena)
{
    const struct dv_pod_spec *spec = pod->spec;
    struct holdings holdings = holdings_of(node, spec, arena);
    PodresV1__PodResources *message = DV_NEW(arena, PodresV1__PodResources);

    podres_v1__pod_resources__init(message);
    message->name = dv_str_to_c(spec->ref.name, arena);
    message->namespace_ = dv_str_to_c(spec->ref.namespace, arena);
    message->containers = DV_NEW_ARRAY(arena, PodresV1__ContainerResources *, spec->n_containers);
    for (size_t i = 0; i < spec->n_containers; i++) {
        PodresV1__ContainerResources *container;
        struct entries entries;

        if (spec->containers[i].kind == DV_DEVICE_INIT)
            continue;
        container = DV_NEW(arena, PodresV1__ContainerResources);
        podres_v1__container_resources__init(container);
        container->name = dv_str_to_c(spec->containers[i].name, arena);
        entries = held_entries(&holdings, spec->containers[i].name, arena);
        container->devices = entries.v;
        container->n_devices = entries.n;
        if (pod->uses)
            add_claims(container, node, &pod->uses[i], arena);
        message->containers[message->n_containers++] = container;
    }
    return message;
}

static int compare_pods(const void *a, const void *b)
{
    const struct dv_pod_ref *x = &(*(const struct dv_podres_pod *const *)a)->spec->ref;
    const struct dv_pod_ref *y = &(*(const struct dv_podres_pod *const *)b)->spec->ref;
    int order = dv_str_cmp(x->namespace, y->namespace);

    return order ? order : dv_str_cmp(x->name, y->name);
}

static const struct dv_podres_pod **sorted_pods(const struct dv_podres_node *node,
                                                struct dv_arena *arena)
{
    const struct dv_podres_pod **pods =
        DV_NEW_ARRAY(arena, const struct dv_podres_pod *, node->n_pods);

    for (size_t i = 0; i < node->n_pods; i++)
        pods[i] = &node->pods[i];
    qsort(pods, node->n_pods, sizeof(pods[0]), compare_pods);
    return pods;
}

PodresV1__ListPodResourcesResponse *dv_podres_list(const struct dv_podres_node *node,
                                                   struct dv_arena *arena)
{
    PodresV1__ListPodResourcesResponse *response =
        DV_NEW(arena, PodresV1__ListPodResourcesResponse);
    const struct dv_podres_pod **pods = sorted_pods(node, arena);

    podres_v1__list_pod_resources_response__init(response);
    response->pod_resources = DV_NEW_ARRAY(arena, PodresV1__PodResources *, node->n_pods);
    for (size_t i = 0; i < node->n_pods; i++)
        if (pods[i]->is_active)
            response->pod_resources[response->n_pod_resources++] =
                pod_message(node, pods[i], arena);
    return response;
}

PodresV1__GetPodResourcesResponse *dv_podres_get(const struct dv_podres_node *node,
                                                 dv_str namespace, dv_str name,
                                                 struct dv_arena *arena, struct dv_err *err)
{
    PodresV1__GetPodResourcesResponse *response;

    for (size_t i = 0; i < node->n_pods; i++) {
        const struct dv_podres_pod *pod = &node->pods[i];

        if (!dv_str_eq(pod->spec->ref.namespace, namespace) ||
            !dv_str_eq(pod->spec->ref.name, name) || (!pod->is_active && !node->is_strict))
            continue;
        response = DV_NEW(arena, PodresV1__GetPodResourcesResponse);
        podres_v1__get_pod_resources_response__init(response);
        response->pod_resources = pod_message(node, pod, arena);
        return response;
    }
    (void)dv_fail(err, DV_UNKNOWN, "pod %.*s in namespace %.*s not found", DV_FMT(name),
                  DV_FMT(namespace));
    return NULL;
}

/* ---- what could be allocated ---- */

PodresV1__AllocatableResourcesResponse *dv_podres_allocatable(const struct dv_podres_node *node,
                                                              struct dv_arena *arena)
{
    PodresV1__AllocatableResourcesResponse *response =
        DV_NEW(arena, PodresV1__AllocatableResourcesResponse);
    const struct dv_device_healthy *healthy;
    struct entries entries = {0};
    size_t n = dv_device_allocatable(node->devices, arena, &healthy);
    const char *resource = NULL;

    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !dv_str_eq(healthy[i].resource, healthy[i - 1].resource))
            resource = dv_str_to_c(healthy[i].resource, arena);
        for (size_t k = 0; k < healthy[i].n_nodes; k++)
            add_entry(&entries, resource, healthy[i].id, healthy[i].nodes[k], arena);
        if (healthy[i].n_nodes == 0 && !(healthy[i].has_topology && node->is_strict))
            add_entry(&entries, resource, healthy[i].id, DV_DEVICE_NO_NODE, arena);
    }
    sort_entries(&entries);
    podres_v1__allocatable_resources_response__init(response);
    response->devices = entries.v;
    response->n_devices = entries.n;
    return response;
}

/* ---- pods, v1alpha1 ---- */

static PodresV1alpha1__ContainerResources *
alpha_container(dv_str name, const struct entries *entries, struct dv_arena *arena)
{
    PodresV1alpha1__ContainerResources *message = DV_NEW(arena, PodresV1alpha1__ContainerResources);

    podres_v1alpha1__container_resources__init(message);
    message->name = dv_str_to_c(name, arena);
    message->devices = DV_NEW_ARRAY(arena, PodresV1alpha1__ContainerDevices *, entries->n);
    for (size_t i = 0; i < entries->n; i++) {
        PodresV1alpha1__ContainerDevices *devices = DV_NEW(arena, PodresV1alpha1__ContainerDevices);

        podres_v1alpha1__container_devices__init(devices);
        devices->resource_name = entries->v[i]->resource_name;
        devices->device_ids = entries->v[i]->device_ids;
        devices->n_device_ids = entries->v[i]->n_device_ids;
        message->devices[message->n_devices++] = devices;
    }
    return message;
}

static PodresV1alpha1__PodResources *
alpha_pod(const struct dv_podres_node *node, const struct dv_pod_spec *spec, struct dv_arena *arena)
{
    struct holdings holdings = holdings_of(node, spec, arena);
    PodresV1alpha1__PodResources *message = DV_NEW(arena, PodresV1alpha1__PodResources);

    podres_v1alpha1__pod_resources__init(message);
    message->name = dv_str_to_c(spec->ref.name, arena);
    message->namespace_ = dv_str_to_c(spec->ref.namespace, arena);
    message->containers =
        DV_NEW_ARRAY(arena, PodresV1alpha1__ContainerResources *, spec->n_containers);
    for (size_t i = 0; i < spec->n_containers; i++) {
        struct entries entries;

        if (spec->containers[i].kind != DV_DEVICE_REGULAR)
            continue;
        entries = held_entries(&holdings, spec->containers[i].name, arena);
        message->containers[message->n_containers++] =
            alpha_container(spec->containers[i].name, &entries, arena);
    }
    return message;
}

PodresV1alpha1__ListPodResourcesResponse *dv_podres_alpha_list(const struct dv_podres_node *node,
                                                               struct dv_arena *arena)
{
    PodresV1alpha1__ListPodResourcesResponse *response =
        DV_NEW(arena, PodresV1alpha1__ListPodResourcesResponse);
    const struct dv_podres_pod **pods = sorted_pods(node, arena);

    podres_v1alpha1__list_pod_resources_response__init(response);
    response->pod_resources = DV_NEW_ARRAY(arena, PodresV1alpha1__PodResources *, node->n_pods);
    for (size_t i = 0; i < node->n_pods; i++)
        response->pod_resources[response->n_pod_resources++] =
            alpha_pod(node, pods[i]->spec, arena);
    return response;
}

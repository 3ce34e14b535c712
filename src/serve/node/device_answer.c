/* device_answer.c - makes the list of the node's devices, with who holds them. */
#include "base/arena.h"
#include "base/str.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/pod.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

/* The holder that was described last: a container may hold very many devices. */
struct last_holder {
    const struct dv_device_holder *holder; /* NULL: none yet */
    NodeV1__Holder *message;
};

static bool is_same_holder(const struct dv_device_holder *a, const struct dv_device_holder *b)
{
    return dv_str_eq(a->pod_uid, b->pod_uid) && dv_str_eq(a->container, b->container);
}

static NodeV1__Holder *holder_message(const struct dv_node *node,
                                      const struct dv_device_holder *holder,
                                      struct last_holder *last, struct dv_arena *arena)
{
    NodeV1__Holder *message;
    struct dv_pod_ref uid = {.uid = holder->pod_uid};
    struct dv_pod_view view;

    if (last->holder && is_same_holder(last->holder, holder))
        return last->message;
    message = DV_NEW(arena, NodeV1__Holder);
    *last = (struct last_holder){holder, message};
    node_v1__holder__init(message);
    message->pod =
        dv_serve_ref(dv_pods_find(node->pods, &uid, &view) ? &view.spec->ref : &uid, arena);
    message->container = dv_str_to_c(holder->container, arena);
    return message;
}

static NodeV1__Device *device_message(const struct dv_node *node, const struct dv_device_view *view,
                                      struct last_holder *last, struct dv_arena *arena)
{
    NodeV1__Device *device = DV_NEW(arena, NodeV1__Device);

    node_v1__device__init(device);
    device->id = dv_str_to_c(view->id, arena);
    device->healthy = view->is_healthy;
    device->n_numa_nodes = view->n_nodes;
    device->numa_nodes = DV_NEW_ARRAY(arena, int64_t, view->n_nodes);
    for (size_t i = 0; i < view->n_nodes; i++)
        device->numa_nodes[i] = view->nodes[i];
    device->n_holders = view->n_holders;
    device->holders = DV_NEW_ARRAY(arena, NodeV1__Holder *, view->n_holders);
    for (size_t i = 0; i < view->n_holders; i++)
        device->holders[i] = holder_message(node, &view->holders[i], last, arena);
    return device;
}

static NodeV1__Resource *resource_message(const struct dv_node *node,
                                          const struct dv_serve_resource *from,
                                          struct dv_arena *arena)
{
    NodeV1__Resource *resource = DV_NEW(arena, NodeV1__Resource);
    struct last_holder last = {0};
    const struct dv_device_view *views;
    size_t n_views =
        dv_device_views(dv_device_manager_state(node->devices), from->name, arena, &views);

    node_v1__resource__init(resource);
    resource->name = dv_str_to_c(from->name, arena);
    resource->capacity = from->capacity;
    resource->allocatable = from->allocatable;
    resource->connected = from->is_connected;
    resource->removed = from->is_removed;
    resource->n_devices = n_views;
    resource->devices = DV_NEW_ARRAY(arena, NodeV1__Device *, n_views);
    for (size_t i = 0; i < n_views; i++)
        resource->devices[i] = device_message(node, &views[i], &last, arena);
    return resource;
}

NodeV1__ListDevicesResponse *dv_serve_device_list(const struct dv_node *node, dv_str resource,
                                                  struct dv_arena *arena)
{
    NodeV1__ListDevicesResponse *response = DV_NEW(arena, NodeV1__ListDevicesResponse);
    const struct dv_serve_resource *resources;
    size_t n = dv_serve_resources(node, arena, &resources);

    node_v1__list_devices_response__init(response);
    response->resources = DV_NEW_ARRAY(arena, NodeV1__Resource *, n);
    for (size_t i = 0; i < n; i++)
        if (resource.n == 0 || dv_str_eq(resource, resources[i].name))
            response->resources[response->n_resources++] =
                resource_message(node, &resources[i], arena);
    return response;
}

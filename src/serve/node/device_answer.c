/* device_answer.c - makes the one list of the node's devices, whoever offers them: with who holds
 * them, since when, and how many there are of each state. All that shows or counts devices asks
 * here. */
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "builtin/builtin.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device_manager.h"
#include "lease/lease.h"
#include "lease/lease_spec.h"
#include "loop/loop.h"
#include "offer/offer.h"
#include "pod/pod.h"
#include "proto/davit_node_v1.pb-c.h"
#include "resource/resource.h"
#include "serve/node/node_pools.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

#define MS_PER_S 1000

/* ---- states and counts ---- */

#define GONE "gone"
#define UNHEALTHY "unhealthy"
#define TAINTED "tainted"
#define BLOCKED "blocked"

/* What a device is, from what is the matter with it ("" for nothing) and whether it is held. */
static const char *state_of(const char *trouble, size_t n_holders)
{
    if (n_holders > 0)
        return "held"; /* whatever is the matter with it: somebody has it */
    return trouble[0] ? trouble : "free";
}

static NodeV1__DeviceCounts *new_counts(struct dv_arena *arena)
{
    NodeV1__DeviceCounts *counts = DV_NEW(arena, NodeV1__DeviceCounts);

    node_v1__device_counts__init(counts);
    return counts;
}

static void count(NodeV1__DeviceCounts *counts, const char *trouble, NodeV1__Holder *const *holders,
                  size_t n_holders)
{
    counts->total++;
    if (n_holders > 0) {
        counts->held++;
        counts->held_bad += trouble[0] != '\0';
        counts->leased += holders[0]->lease[0] != '\0';
    } else if (!trouble[0]) {
        counts->free++;
    } else if (strcmp(trouble, GONE) == 0) {
        counts->gone++;
    } else if (strcmp(trouble, UNHEALTHY) == 0) {
        counts->unhealthy++;
    } else if (strcmp(trouble, TAINTED) == 0) {
        counts->tainted++;
    } else {
        counts->blocked++;
    }
}

static void add_counts(NodeV1__DeviceCounts *sum, const NodeV1__DeviceCounts *counts)
{
    sum->total += counts->total;
    sum->free += counts->free;
    sum->held += counts->held;
    sum->gone += counts->gone;
    sum->unhealthy += counts->unhealthy;
    sum->tainted += counts->tainted;
    sum->blocked += counts->blocked;
    sum->leased += counts->leased;
    sum->held_bad += counts->held_bad;
    sum->offered += counts->offered;
}

/* ---- who holds a device ---- */

/* The lease whose pod, or claim, this is; NULL: it is no lease's. */
static const struct dv_lease *find_lease(const struct dv_node *node, dv_str namespace, dv_str name)
{
    const dv_str prefix = DV_STR(DV_LEASE_POD_PREFIX);

    if (!node->leases || !dv_str_starts_with(name, prefix) ||
        !dv_str_eq(namespace, DV_STR(DV_LEASE_NAMESPACE)))
        return NULL;
    return dv_leases_find(node->leases, dv_str_slice(name, prefix.n, name.n));
}

const struct dv_lease *dv_serve_lease_of(const struct dv_node *node, const struct dv_pod_spec *pod)
{
    return pod->origin == DV_POD_ORIGIN_LEASE ? find_lease(node, pod->ref.namespace, pod->ref.name)
                                              : NULL;
}

static void set_lease(NodeV1__Holder *holder, const struct dv_lease *lease, struct dv_arena *arena)
{
    struct dv_lease_view view;

    dv_lease_get_view(lease, &view);
    holder->lease = dv_str_to_c(view.spec->id, arena);
    holder->user = dv_str_to_c(view.spec->user_name, arena);
    holder->since_ms = (int64_t)view.spec->since_ms;
}

/* Sets the pod, and since when it has what it has; or the lease, if it is one's. */
static void set_pod(NodeV1__Holder *holder, const struct dv_node *node, dv_str pod_uid,
                    struct dv_arena *arena)
{
    struct dv_pod_ref uid = {.uid = pod_uid};
    struct dv_pod_view view;
    const struct dv_lease *lease = NULL;

    if (!dv_pods_find(node->pods, &uid, &view)) {
        holder->pod = dv_serve_ref_of_uid(node, pod_uid, arena);
        return;
    }
    holder->pod = dv_serve_ref(&view.spec->ref, arena);
    if (holder->since_ms == 0) /* else it is known when the claim got its devices */
        holder->since_ms = (int64_t)dv_pod_held_since_ms(&view);
    lease = dv_serve_lease_of(node, view.spec);
    if (lease)
        set_lease(holder, lease, arena);
}

/* ---- devices of plugins ---- */

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

    if (last->holder && is_same_holder(last->holder, holder))
        return last->message;
    message = DV_NEW(arena, NodeV1__Holder);
    *last = (struct last_holder){holder, message};
    node_v1__holder__init(message);
    set_pod(message, node, holder->pod_uid, arena);
    message->container = dv_str_to_c(holder->container, arena);
    return message;
}

static NodeV1__Device *device_message(const struct dv_node *node, const struct dv_device_view *view,
                                      bool is_there, struct last_holder *last,
                                      struct dv_arena *arena)
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
    if (!is_there)
        device->trouble = GONE;
    else if (!view->is_healthy)
        device->trouble = UNHEALTHY;
    device->state = state_of(device->trouble, view->n_holders);
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
    resource->counts = new_counts(arena);
    resource->n_devices = n_views;
    resource->devices = DV_NEW_ARRAY(arena, NodeV1__Device *, n_views);
    for (size_t i = 0; i < n_views; i++) {
        NodeV1__Device *device =
            device_message(node, &views[i], from->is_connected && !from->is_removed, &last, arena);

        resource->devices[i] = device;
        count(resource->counts, device->trouble, device->holders, device->n_holders);
    }
    return resource;
}

/* ---- devices of DRA drivers ---- */

/* Whether the attribute tells a NUMA node: "numa", "numaNode", "numa_node", in any domain. */
static bool is_numa(dv_str name)
{
    static const dv_str names[] = {DV_STR_INIT("numa"), DV_STR_INIT("numaNode"),
                                   DV_STR_INIT("numa_node")};
    size_t slash = dv_str_find_char(name, '/');

    if (slash < name.n)
        name = dv_str_slice(name, slash + 1, name.n);
    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (dv_str_eq_nocase(name, names[i]))
            return true;
    return false;
}

static void add_numa(NodeV1__PoolDevice *device, const struct dv_api_device *api,
                     struct dv_arena *arena)
{
    for (size_t i = 0; i < api->n_attributes; i++)
        if (is_numa(api->attributes[i].key) && api->attributes[i].value.int_) {
            device->numa_nodes = DV_NEW(arena, int64_t);
            device->numa_nodes[0] = *api->attributes[i].value.int_;
            device->n_numa_nodes = 1;
            return;
        }
}

static void add_taints(NodeV1__PoolDevice *device, const struct dv_pool_device *from,
                       struct dv_arena *arena)
{
    device->taints = DV_NEW_ARRAY(arena, const char *, from->n_taints);
    for (size_t i = 0; i < from->n_taints; i++) {
        const struct dv_api_device_taint *taint = from->taints[i];

        device->taints[device->n_taints++] =
            dv_str_to_c(dv_str_printf(arena, "%.*s%s%.*s:%.*s", DV_FMT(taint->key),
                                      taint->value.n > 0 ? "=" : "", DV_FMT(taint->value),
                                      DV_FMT(taint->effect)),
                        arena);
    }
}

static void add_shortage(NodeV1__PoolDevice *device, const struct dv_pool_device *from,
                         struct dv_arena *arena)
{
    device->shortage = dv_str_to_c(from->shortage, arena);
    device->blocked_by = DV_NEW_ARRAY(arena, const char *, from->n_blocked_by);
    for (size_t i = 0; i < from->n_blocked_by; i++)
        device->blocked_by[device->n_blocked_by++] = dv_str_to_c(from->blocked_by[i], arena);
}

static NodeV1__Holder *new_claim_holder(const struct dv_pool_use *use, struct dv_arena *arena)
{
    NodeV1__Holder *holder = DV_NEW(arena, NodeV1__Holder);

    node_v1__holder__init(holder);
    holder->claim = dv_str_to_c(
        dv_str_printf(arena, "%.*s/%.*s", DV_FMT(use->namespace), DV_FMT(use->name)), arena);
    holder->claim_state =
        use->record ? dv_claim_phase_name(use->record->record.phase) : "allocated";
    if (use->object && use->object->status.allocation->allocation_timestamp.is_set)
        holder->since_ms = use->object->status.allocation->allocation_timestamp.seconds * MS_PER_S;
    return holder;
}

/* One holder for each pod of the claim, or one without a pod. */
static void add_use(NodeV1__PoolDevice *device, const struct dv_node *node,
                    const struct dv_pool_use *use, struct dv_arena *arena)
{
    const struct dv_lease *lease = find_lease(node, use->namespace, use->name);
    const struct dv_claim_record *record = use->record ? &use->record->record : NULL;
    size_t n_reserved = use->object ? use->object->status.n_reserved_for : 0;

    if (lease) {
        NodeV1__Holder *holder = new_claim_holder(use, arena);

        set_lease(holder, lease, arena);
        device->holders[device->n_holders++] = holder;
    } else if (record && record->n_pods > 0) {
        for (size_t i = 0; i < record->n_pods; i++) {
            NodeV1__Holder *holder = new_claim_holder(use, arena);

            set_pod(holder, node, record->pods[i], arena);
            device->holders[device->n_holders++] = holder;
        }
    } else if (n_reserved > 0) {
        for (size_t i = 0; i < n_reserved; i++) {
            const struct dv_api_resource_claim_consumer_reference *by =
                &use->object->status.reserved_for[i];
            NodeV1__Holder *holder = new_claim_holder(use, arena);

            holder->pod =
                dv_serve_ref(&(struct dv_pod_ref){by->uid, use->namespace, by->name}, arena);
            device->holders[device->n_holders++] = holder;
        }
    } else {
        device->holders[device->n_holders++] = new_claim_holder(use, arena);
    }
}

static void add_holders(NodeV1__PoolDevice *device, const struct dv_node *node,
                        const struct dv_pool_device *from, struct dv_arena *arena)
{
    size_t n = 0;

    for (const struct dv_pool_use *use = from->uses; use; use = use->next)
        n += 1 + (use->record ? use->record->record.n_pods : 0) +
             (use->object ? use->object->status.n_reserved_for : 0);
    device->holders = DV_NEW_ARRAY(arena, NodeV1__Holder *, n);
    for (const struct dv_pool_use *use = from->uses; use; use = use->next)
        add_use(device, node, use, arena);
}

/* The name of the offer that the device comes from. */
static const char *offer_of(const struct dv_node *node, const struct dv_pool_device *from,
                            struct dv_arena *arena)
{
    struct dv_builtin_view view;

    if (!node->builtin || !dv_str_eq(from->driver, DV_STR(DV_OFFER_DRIVER)))
        return "";
    view = dv_builtin_view(node->builtin);
    for (size_t i = 0; i < view.list->n_devices; i++)
        if (dv_str_eq(view.list->devices[i].name, from->name))
            return dv_str_to_c(view.list->devices[i].offer->name, arena);
    return "";
}

static NodeV1__PoolDevice *pool_device_message(const struct dv_node *node,
                                               const struct dv_pool_device *from, bool is_there,
                                               struct dv_arena *arena)
{
    NodeV1__PoolDevice *device = DV_NEW(arena, NodeV1__PoolDevice);
    dv_str told = DV_STR("");
    enum dv_claim_health health =
        dv_claim_health_get(dv_claim_manager_state(node->claims), from->driver, from->pool,
                            from->name, dv_clock_wall_ns(dv_loop_clock(node->loop)), &told);

    node_v1__pool_device__init(device);
    device->name = dv_str_to_c(from->name, arena);
    device->health = dv_claim_health_name(health);
    device->message = dv_str_to_c(told, arena);
    device->listed = from->api != NULL;
    if (from->api) {
        device->shared =
            from->api->allow_multiple_allocations && *from->api->allow_multiple_allocations;
        add_numa(device, from->api, arena);
    }
    add_taints(device, from, arena);
    add_holders(device, node, from, arena);
    device->offer = offer_of(node, from, arena);
    if (!is_there)
        device->trouble = GONE;
    else if (health == DV_CLAIM_UNHEALTHY)
        device->trouble = UNHEALTHY;
    else if (from->n_taints > 0)
        device->trouble = TAINTED;
    else if (from->shortage.n > 0)
        device->trouble = BLOCKED;
    add_shortage(device, from, arena);
    device->state = state_of(device->trouble, device->n_holders);
    return device;
}

static NodeV1__Pool *pool_message(const struct dv_node *node, struct dv_pool_device *const *devices,
                                  size_t n_devices, struct dv_arena *arena)
{
    NodeV1__Pool *pool = DV_NEW(arena, NodeV1__Pool);

    node_v1__pool__init(pool);
    pool->driver = dv_str_to_c(devices[0]->driver, arena);
    pool->name = dv_str_to_c(devices[0]->pool, arena);
    pool->connected = dv_dra_is_usable(dv_claim_manager_drivers(node->claims), devices[0]->driver);
    pool->counts = new_counts(arena);
    pool->devices = DV_NEW_ARRAY(arena, NodeV1__PoolDevice *, n_devices);
    for (size_t i = 0; i < n_devices; i++) {
        NodeV1__PoolDevice *device = pool_device_message(node, devices[i], pool->connected, arena);

        pool->devices[pool->n_devices++] = device;
        count(pool->counts, device->trouble, device->holders, device->n_holders);
        pool->counts->offered += device->offer[0] != '\0';
    }
    return pool;
}

/* How many devices at the beginning of the list are of one pool. */
static size_t pool_length(struct dv_pool_device *const *devices, size_t n_devices)
{
    size_t n = 1;

    while (n < n_devices && dv_str_eq(devices[n]->pool, devices[0]->pool) &&
           dv_str_eq(devices[n]->driver, devices[0]->driver))
        n++;
    return n;
}

/* Makes the pools, of one driver when `driver` is not empty; adds their counts to *sum. */
static size_t make_pools(const struct dv_node *node, dv_str driver, struct dv_arena *arena,
                         NodeV1__DeviceCounts *sum, NodeV1__Pool ***pools)
{
    struct dv_pool_device **devices;
    size_t n_devices = dv_pool_devices(node, arena, &devices);
    size_t length;
    size_t n = 0;

    *pools = DV_NEW_ARRAY(arena, NodeV1__Pool *, n_devices);
    for (size_t i = 0; i < n_devices; i += length) {
        length = pool_length(&devices[i], n_devices - i);
        if (driver.n > 0 && !dv_str_eq(driver, devices[i]->driver))
            continue;
        (*pools)[n] = pool_message(node, &devices[i], length, arena);
        add_counts(sum, (*pools)[n++]->counts);
    }
    return n;
}

/* ---- all of it ---- */

NodeV1__ListDevicesResponse *dv_serve_device_list(const struct dv_node *node, dv_str resource,
                                                  struct dv_arena *arena)
{
    NodeV1__ListDevicesResponse *response = DV_NEW(arena, NodeV1__ListDevicesResponse);
    const struct dv_serve_resource *resources;
    size_t n = dv_serve_resources(node, arena, &resources);

    node_v1__list_devices_response__init(response);
    response->counts = new_counts(arena);
    response->resources = DV_NEW_ARRAY(arena, NodeV1__Resource *, n);
    for (size_t i = 0; i < n; i++) {
        NodeV1__Resource *made;

        if (resource.n > 0 && !dv_str_eq(resource, resources[i].name))
            continue;
        made = resource_message(node, &resources[i], arena);
        response->resources[response->n_resources++] = made;
        add_counts(response->counts, made->counts);
    }
    response->n_pools = make_pools(node, resource, arena, response->counts, &response->pools);
    return response;
}

void dv_serve_add_counts(const struct dv_node *node, NodeV1__StatusResponse *status,
                         struct dv_arena *arena)
{
    const NodeV1__ListDevicesResponse *list = dv_serve_device_list(node, DV_STR(""), arena);

    status->device_counts = list->counts;
    status->n_devices = list->counts->total;
    for (size_t i = 0; i < list->n_resources && i < status->n_resource_status; i++)
        status->resource_status[i]->counts = list->resources[i]->counts; /* both are by name */
    status->pool_status = DV_NEW_ARRAY(arena, NodeV1__PoolStatus *, list->n_pools);
    for (size_t i = 0; i < list->n_pools; i++) {
        NodeV1__PoolStatus *pool = DV_NEW(arena, NodeV1__PoolStatus);

        node_v1__pool_status__init(pool);
        pool->driver = list->pools[i]->driver;
        pool->name = list->pools[i]->name;
        pool->connected = list->pools[i]->connected;
        pool->counts = list->pools[i]->counts;
        status->pool_status[status->n_pool_status++] = pool;
    }
}

/* lease_answer.c - leases as messages: what each holds, who waits, and for whom. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "lease/lease.h"
#include "lease/lease_spec.h"
#include "pod/pod.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/node_service.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

/* How many holders one who waits is told, and how many pods are looked at for them. */
#define HOLDERS_MAX 4u
#define PODS_MAX 1000u

static NodeV1__LeaseOwner *make_owner(const struct dv_lease_owner *owner, struct dv_arena *arena)
{
    const dv_str root = DV_STR("/sys/fs/cgroup/");
    NodeV1__LeaseOwner *made = DV_NEW(arena, NodeV1__LeaseOwner);
    dv_str cgroup = owner->cgroup;

    node_v1__lease_owner__init(made);
    if (dv_str_starts_with(cgroup, root))
        cgroup = dv_str_slice(cgroup, root.n, cgroup.n);
    made->pid = owner->kind == DV_LEASE_OWNER_PROCESS ? owner->pid : 0;
    made->cgroup = dv_str_to_c(cgroup, arena);
    made->unit = dv_str_to_c(owner->unit, arena);
    return made;
}

static dv_str class_of(const struct dv_lease_spec *spec, const struct dv_claim_device *device)
{
    for (size_t i = 0; i < spec->n_devices; i++)
        for (size_t k = 0; k < device->n_requests; k++)
            if (dv_str_eq(spec->devices[i].request, device->requests[k]))
                return spec->devices[i].class;
    return spec->n_devices > 0 ? spec->devices[0].class : DV_STR("");
}

static void add_claim(NodeV1__Lease *made, const struct dv_lease_spec *spec,
                      const struct dv_claim *claim, struct dv_arena *arena)
{
    size_t n = 0;

    for (size_t i = 0; i < claim->record.n_drivers; i++)
        n += claim->record.drivers[i].n_devices;
    made->claims = DV_NEW_ARRAY(arena, NodeV1__ClaimDevices *, n);
    for (size_t i = 0; i < claim->record.n_drivers; i++)
        for (size_t k = 0; k < claim->record.drivers[i].n_devices; k++) {
            const struct dv_claim_device *device = &claim->record.drivers[i].devices[k];
            NodeV1__ClaimDevices *one = DV_NEW(arena, NodeV1__ClaimDevices);

            node_v1__claim_devices__init(one);
            one->device_class = dv_str_to_c(class_of(spec, device), arena);
            one->driver = dv_str_to_c(claim->record.drivers[i].name, arena);
            one->pool = dv_str_to_c(device->pool, arena);
            one->device = dv_str_to_c(device->name, arena);
            made->claims[made->n_claims++] = one;
        }
}

static void add_held(NodeV1__Lease *made, const struct dv_node *node,
                     const struct dv_lease_spec *spec, struct dv_arena *arena)
{
    const struct dv_device_record *records;
    size_t n = dv_device_records_of_pod(dv_device_manager_state(node->devices), spec->uid, arena,
                                        &records);
    struct dv_claim **claims;

    made->resources = DV_NEW_ARRAY(arena, NodeV1__ResourceDevices *, n);
    for (size_t i = 0; i < n; i++) {
        NodeV1__ResourceDevices *resource = DV_NEW(arena, NodeV1__ResourceDevices);

        node_v1__resource_devices__init(resource);
        resource->resource = dv_str_to_c(records[i].resource, arena);
        dv_node_add_ids(resource, &records[i], arena);
        made->resources[made->n_resources++] = resource;
    }
    if (spec->n_devices > 0 &&
        dv_claim_of_pod(dv_claim_manager_state(node->claims), spec->uid, arena, &claims) > 0)
        add_claim(made, spec, claims[0], arena);
}

/* "2 nvidia.com/gpu, 1 gpu.nvidia.com" */
static dv_str print_wanted(const struct dv_lease_spec *spec, struct dv_arena *arena)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < spec->n_resources; i++)
        text = dv_str_printf(arena, "%.*s%s%llu %.*s", DV_FMT(text), text.n > 0 ? ", " : "",
                             (unsigned long long)spec->resources[i].n,
                             DV_FMT(spec->resources[i].name));
    for (size_t i = 0; i < spec->n_devices; i++)
        text =
            dv_str_printf(arena, "%.*s%s%llu %.*s", DV_FMT(text), text.n > 0 ? ", " : "",
                          (unsigned long long)spec->devices[i].n, DV_FMT(spec->devices[i].class));
    return text;
}

struct NodeV1__Lease *dv_serve_lease(const struct dv_node *node, const struct dv_lease *lease,
                                     uint32_t uid, struct dv_arena *arena)
{
    NodeV1__Lease *made = DV_NEW(arena, NodeV1__Lease);
    struct dv_lease_view view;

    dv_lease_get_view(lease, &view);
    node_v1__lease__init(made);
    made->id = dv_str_to_c(view.spec->id, arena);
    made->state = dv_lease_state_name(view.state);
    made->uid = view.spec->user;
    made->user = dv_str_to_c(view.spec->user_name, arena);
    made->owner = make_owner(&view.spec->owner, arena);
    made->command = DV_NEW_ARRAY(arena, const char *, view.spec->n_command);
    for (size_t i = 0; i < view.spec->n_command; i++)
        made->command[made->n_command++] = dv_str_to_c(view.spec->command[i], arena);
    made->since_ms = (int64_t)view.spec->since_ms;
    made->ends_ms = (int64_t)view.spec->ends_ms;
    made->priority = (int32_t)view.spec->priority;
    made->place = (uint32_t)view.place;
    made->wanted = dv_str_to_c(print_wanted(view.spec, arena), arena);
    made->awaited = dv_str_to_c(view.awaited, arena);
    made->end_reason = dv_str_to_c(view.spec->end.reason, arena);
    made->is_own = uid == 0 || uid == view.spec->user;
    if (view.state != DV_LEASE_STATE_WAITING)
        add_held(made, node, view.spec, arena);
    return made;
}

struct NodeV1__ListLeasesResponse *dv_serve_lease_list(const struct dv_node *node, uint32_t uid,
                                                       bool is_own, struct dv_arena *arena)
{
    NodeV1__ListLeasesResponse *response = DV_NEW(arena, NodeV1__ListLeasesResponse);
    const struct dv_lease **all;
    size_t n;

    node_v1__list_leases_response__init(response);
    n = node->leases ? dv_leases_list(node->leases, arena, &all) : 0;
    response->leases = DV_NEW_ARRAY(arena, NodeV1__Lease *, n);
    for (size_t i = 0; i < n; i++) {
        struct dv_lease_view view;

        dv_lease_get_view(all[i], &view);
        if (!is_own || view.spec->user == uid)
            response->leases[response->n_leases++] = dv_serve_lease(node, all[i], uid, arena);
    }
    return response;
}

/* ---- waiting ---- */

/* Who waits, and for what. */
struct wait {
    const struct dv_node *node;
    const struct dv_lease *lease;
    struct dv_lease_shortage shortage;
    struct dv_arena *arena;
};

/* How many devices the pod holds by claims that the lease could use. */
static uint64_t n_claimed(const struct wait *wait, dv_str pod_uid)
{
    struct dv_claim **claims;
    size_t n =
        dv_claim_of_pod(dv_claim_manager_state(wait->node->claims), pod_uid, wait->arena, &claims);
    uint64_t n_found = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < claims[i]->record.n_drivers; d++)
            for (size_t k = 0; k < claims[i]->record.drivers[d].n_devices; k++)
                n_found += dv_lease_could_use(wait->lease, claims[i]->record.drivers[d].name,
                                              claims[i]->record.drivers[d].devices[k].pool,
                                              claims[i]->record.drivers[d].devices[k].name);
    return n_found;
}

static uint64_t n_leased(const struct wait *wait, const struct dv_lease_spec *spec)
{
    uint64_t n = 0;

    if (wait->shortage.is_class)
        return n_claimed(wait, spec->uid);
    for (size_t i = 0; i < spec->n_resources; i++)
        n += dv_str_eq(spec->resources[i].name, wait->shortage.name) ? spec->resources[i].n : 0;
    return n;
}

static uint64_t n_of_pod(const struct wait *wait, const struct dv_pod_spec *spec)
{
    uint64_t n = 0;

    if (wait->shortage.is_class)
        return n_claimed(wait, spec->ref.uid);
    for (size_t i = 0; i < spec->n_containers; i++)
        for (size_t k = 0; k < spec->containers[i].n_limits; k++)
            if (dv_str_eq(spec->containers[i].limits[k].resource, wait->shortage.name))
                n += (uint64_t)spec->containers[i].limits[k].amount;
    return n;
}

static void add_holder(NodeV1__LeaseWaiting *waiting, const NodeV1__LeaseHolder *holder,
                       struct dv_arena *arena)
{
    NodeV1__LeaseHolder *copy;

    if (waiting->n_holders >= HOLDERS_MAX) {
        waiting->n_more_holders++;
        return;
    }
    copy = DV_NEW(arena, NodeV1__LeaseHolder);
    *copy = *holder;
    waiting->holders[waiting->n_holders++] = copy;
}

static dv_str file_name(dv_str path)
{
    dv_str name = path;
    dv_str part;

    while (path.n > 0 && dv_str_split(&path, '/', &part))
        name = part.n > 0 ? part : name;
    return name;
}

static void add_leases(NodeV1__LeaseWaiting *waiting, const struct wait *wait)
{
    struct dv_arena *arena = wait->arena;
    const struct dv_lease **all;
    size_t n = dv_leases_list(wait->node->leases, arena, &all);

    for (size_t i = 0; i < n; i++) {
        NodeV1__LeaseHolder holder = NODE_V1__LEASE_HOLDER__INIT;
        struct dv_lease_view view;

        dv_lease_get_view(all[i], &view);
        if (view.state == DV_LEASE_STATE_WAITING)
            break; /* those that hold devices come first */
        holder.n_devices = n_leased(wait, view.spec);
        if (holder.n_devices == 0)
            continue;
        holder.name = view.spec->n_command > 0
                          ? dv_str_to_c(file_name(view.spec->command[0]), arena)
                          : dv_str_to_c(view.spec->owner.unit, arena);
        if (holder.name[0] == '\0') /* taken by a shell, for itself */
            holder.name =
                dv_str_to_c(dv_str_printf(arena, "lease %.*s", DV_FMT(view.spec->id)), arena);
        holder.lease = dv_str_to_c(view.spec->id, arena);
        holder.user = dv_str_to_c(view.spec->user_name, arena);
        holder.uid = view.spec->user;
        holder.pid = view.spec->owner.pid;
        holder.since_ms = (int64_t)view.spec->since_ms;
        holder.ends_ms = (int64_t)view.spec->ends_ms;
        add_holder(waiting, &holder, arena);
    }
}

static void add_pods(NodeV1__LeaseWaiting *waiting, const struct wait *wait)
{
    struct dv_arena *arena = wait->arena;
    struct dv_pod_view view;
    size_t n = 0;

    for (size_t at = 0; n < PODS_MAX && dv_pods_next(wait->node->pods, &at, &view); n++) {
        NodeV1__LeaseHolder holder = NODE_V1__LEASE_HOLDER__INIT;

        if (view.spec->origin == DV_POD_ORIGIN_LEASE || !view.was_admitted)
            continue;
        holder.n_devices = n_of_pod(wait, view.spec);
        if (holder.n_devices == 0)
            continue;
        holder.name =
            dv_str_to_c(dv_str_printf(arena, "%.*s/%.*s", DV_FMT(view.spec->ref.namespace),
                                      DV_FMT(view.spec->ref.name)),
                        arena);
        holder.since_ms = (int64_t)dv_pod_held_since_ms(&view);
        add_holder(waiting, &holder, arena);
    }
}

struct NodeV1__LeaseWaiting *dv_serve_lease_waiting(const struct dv_node *node,
                                                    const struct dv_lease *lease,
                                                    struct dv_arena *arena)
{
    NodeV1__LeaseWaiting *waiting = DV_NEW(arena, NodeV1__LeaseWaiting);
    struct wait wait = {.node = node, .lease = lease, .arena = arena};
    const struct dv_lease_shortage *shortage = &wait.shortage;
    struct dv_lease_view view;

    dv_lease_get_view(lease, &view);
    dv_lease_get_shortage(lease, &wait.shortage);
    node_v1__lease_waiting__init(waiting);
    waiting->lease = dv_str_to_c(view.spec->id, arena);
    waiting->place = (uint32_t)view.place;
    waiting->n_waiting = (uint32_t)dv_leases_n_waiting(node->leases);
    waiting->short_of = dv_str_to_c(shortage->name, arena);
    waiting->n_wanted = shortage->n_wanted;
    if (shortage->has_count)
        waiting->n_free = shortage->n_free;
    waiting->has_count = shortage->has_count;
    waiting->awaited = dv_str_to_c(view.awaited, arena);
    waiting->holders = DV_NEW_ARRAY(arena, NodeV1__LeaseHolder *, HOLDERS_MAX);
    if (shortage->name.n > 0) {
        add_leases(waiting, &wait);
        add_pods(waiting, &wait);
    }
    return waiting;
}

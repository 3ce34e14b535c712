/* hints.c - what the topology manager needs to know about devices. */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "device/state/device_state.h"
#include "topology/topology.h"

/* Counts of one resource, by place: a group for each set of nodes, and one for devices that are not
 * listed. */
struct counts {
    struct dv_device_resource *resource;
    struct dv_numa_group *groups;
    size_t n;
};

static void init_counts(struct counts *counts, struct dv_device_resource *resource,
                        struct dv_arena *arena)
{
    bool is_live = resource->sets == DV_DEVICE_SETS_LIVE;

    *counts = (struct counts){.resource = resource, .n = resource->groups.n + 1};
    counts->groups = DV_NEW_ARRAY(arena, struct dv_numa_group, counts->n);
    for (size_t i = 0; i < resource->groups.n; i++) {
        const struct dv_device_nodes *nodes = resource->groups.v[i];

        counts->groups[i] = (struct dv_numa_group){
            .place = nodes->place,
            .n_listed = (uint32_t)(nodes->end - nodes->begin),
            .n_available = is_live ? (uint32_t)nodes->n_free : 0,
        };
    }
}

/* The group of a device; that of devices which are not listed is the last. */
static struct dv_numa_group *group_of(const struct counts *counts, const struct dv_device *device)
{
    size_t low = 0;
    size_t high = counts->resource->groups.n;

    if (!device->is_listed)
        return &counts->groups[counts->n - 1];
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (counts->resource->groups.v[middle]->begin <= device->rank)
            low = middle;
        else
            high = middle;
    }
    return &counts->groups[low];
}

static void count_lent(struct counts *counts, const struct dv_device_pod *pod)
{
    struct dv_link *link;

    if (!pod)
        return;
    DV_LIST_EACH (&pod->lent, link) {
        const struct dv_device *device = DV_CONTAINER(link, struct dv_device, in_lender);
        struct dv_numa_group *group;

        if (device->resource != counts->resource || !dv_device_is_lendable(device))
            continue;
        group = group_of(counts, device);
        group->n_reusable++;
        if (device->is_free && group->n_available > 0)
            group->n_available--; /* a device is counted once */
    }
}

static void count_held(struct counts *counts, const struct dv_device_held *held)
{
    for (size_t i = 0; held && i < held->n_holdings; i++)
        group_of(counts, held->holdings[i].device)->n_held++;
}

/* Counts what all containers of the pod hold; a device that was handed on from one to the other
 * counts once. */
static void count_pod_held(struct counts *counts, const struct dv_device_pod *pod)
{
    struct dv_link *link;

    if (!pod)
        return;
    /* a generation that no list has marks the devices that were counted */
    counts->resource->generation++;
    DV_LIST_EACH (&pod->held, link) {
        struct dv_device_held *held = DV_CONTAINER(link, struct dv_device_held, in_pod);

        for (size_t i = 0; held->resource == counts->resource && i < held->n_holdings; i++) {
            struct dv_device *device = held->holdings[i].device;

            if (device->generation == counts->resource->generation)
                continue;
            device->generation = counts->resource->generation;
            group_of(counts, device)->n_held++;
        }
    }
}

/* The resource of a limit that is for plugins; NULL otherwise. */
static struct dv_device_resource *resource_of(const struct dv_device_state *state,
                                              const struct dv_device_limit *limit)
{
    struct dv_device_resource *resource = dv_device_resource_find(state, limit->resource);

    return resource && dv_device_resource_is_known(resource) ? resource : NULL;
}

static bool make_hints(const struct counts *counts, const struct dv_numa_machine *machine,
                       uint64_t n_requested, struct dv_arena *arena, struct dv_hint_list *list,
                       struct dv_err *err)
{
    if (!dv_topology_device_hints(machine, counts->groups, counts->n, n_requested, arena, list,
                                  err))
        return dv_wrap(err, "%.*s", DV_FMT(counts->resource->name));
    return true;
}

static uint64_t amount_of(const struct dv_device_limit *limit)
{
    /* the allocation refuses a negative amount */
    return limit->amount > 0 ? (uint64_t)limit->amount : 0;
}

bool dv_device_container_hints(struct dv_device_state *state, const struct dv_numa_machine *machine,
                               const struct dv_device_request *request, struct dv_arena *arena,
                               const struct dv_hint_list **lists, size_t *n_lists,
                               struct dv_err *err)
{
    struct dv_hint_list *v = DV_NEW_ARRAY(arena, struct dv_hint_list, request->n_limits);
    size_t n = 0;

    (void)dv_device_collect(state); /* the number of pods that it collected is not needed */
    for (size_t i = 0; i < request->n_limits; i++) {
        struct dv_device_resource *resource = resource_of(state, &request->limits[i]);
        const struct dv_device_pod *pod = dv_device_pod_find(state, request->pod_uid);
        struct counts counts;

        if (!resource)
            continue;
        init_counts(&counts, resource, arena);
        count_lent(&counts, pod);
        count_held(&counts, dv_device_held_find(state, pod, request->container, resource));
        if (!make_hints(&counts, machine, amount_of(&request->limits[i]), arena, &v[n++], err))
            return false;
    }
    *lists = v;
    *n_lists = n;
    return true;
}

/* -- Pod scope ------------------------------------------------------------------------------ */

static uint64_t pod_request(const struct dv_device_request *containers, size_t n_containers,
                            dv_str resource, struct dv_arena *arena)
{
    static const enum dv_topology_need_kind kinds[] = {
        [DV_DEVICE_INIT] = DV_TOPOLOGY_NEED_INIT,
        [DV_DEVICE_SIDECAR] = DV_TOPOLOGY_NEED_SIDECAR,
        [DV_DEVICE_REGULAR] = DV_TOPOLOGY_NEED_REGULAR,
    };
    struct dv_topology_need *needs = DV_NEW_ARRAY(arena, struct dv_topology_need, n_containers);

    for (size_t i = 0; i < n_containers; i++) {
        needs[i].kind = kinds[containers[i].kind];
        for (size_t k = 0; k < containers[i].n_limits; k++)
            if (dv_str_eq(containers[i].limits[k].resource, resource))
                needs[i].limit = amount_of(&containers[i].limits[k]);
    }
    return dv_topology_pod_request(needs, n_containers);
}

/* Whether an earlier container has the resource of this limit. */
static bool is_repeated(const struct dv_device_request *containers, size_t container, size_t limit)
{
    for (size_t i = 0; i < container; i++)
        for (size_t k = 0; k < containers[i].n_limits; k++)
            if (dv_str_eq(containers[i].limits[k].resource,
                          containers[container].limits[limit].resource))
                return true;
    return false;
}

bool dv_device_pod_hints(struct dv_device_state *state, const struct dv_numa_machine *machine,
                         const struct dv_device_request *containers, size_t n_containers,
                         struct dv_arena *arena, const struct dv_hint_list **lists, size_t *n_lists,
                         struct dv_err *err)
{
    DV_VEC(struct dv_hint_list) v = {0};

    (void)dv_device_collect(state); /* the number of pods that it collected is not needed */
    for (size_t i = 0; i < n_containers; i++) {
        for (size_t k = 0; k < containers[i].n_limits; k++) {
            const struct dv_device_limit *limit = &containers[i].limits[k];
            struct dv_device_resource *resource = resource_of(state, limit);
            struct counts counts;

            if (!resource || is_repeated(containers, i, k))
                continue;
            init_counts(&counts, resource, arena);
            count_pod_held(&counts, dv_device_pod_find(state, containers[i].pod_uid));
            if (!make_hints(&counts, machine,
                            pod_request(containers, n_containers, limit->resource, arena), arena,
                            dv_vec_add_in(&v, arena), err))
                return false;
        }
    }
    *lists = v.v;
    *n_lists = v.n;
    return true;
}

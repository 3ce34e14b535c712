/* need.c - what a pod asks for and this node does not have: not yet, or not at all. */
#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"

/* Whether a plugin of this resource is known and not connected, or is connected and has not listed
 * its devices yet. */
static bool is_away(const struct dv_device_state *state, dv_str resource)
{
    struct dv_device_resource_info info;

    if (!dv_device_find(state, resource, &info))
        return false;
    return info.plugin == DV_DEVICE_STOPPED || info.plugin == DV_DEVICE_NOT_LISTED ||
           (info.plugin == DV_DEVICE_NO_PLUGIN && info.is_known);
}

static bool is_unknown(const struct dv_device_state *state, dv_str resource)
{
    struct dv_device_resource_info info;

    return !dv_device_find(state, resource, &info) || !info.is_known;
}

static bool find(const struct dv_pod *pod,
                 bool (*is_missing)(const struct dv_device_state *state, dv_str resource),
                 struct dv_pod_need *need)
{
    const struct dv_device_state *state = dv_device_manager_state(pod->pods->options.devices);

    for (size_t i = 0; i < pod->spec.n_containers; i++) {
        const struct dv_pod_container *container = &pod->spec.containers[i];

        for (size_t k = 0; k < container->n_limits; k++) {
            const struct dv_device_limit *limit = &container->limits[k];

            if (limit->amount == 0 || limit->is_claimed || !is_missing(state, limit->resource))
                continue;
            *need = (struct dv_pod_need){container->name, limit->resource};
            return true;
        }
    }
    return false;
}

bool dv_pod_find_away(const struct dv_pod *pod, struct dv_pod_need *need)
{
    return find(pod, is_away, need);
}

bool dv_pod_find_unknown(const struct dv_pod *pod, struct dv_pod_need *need)
{
    return find(pod, is_unknown, need);
}

static bool is_shared(const struct dv_device_state *state, dv_str resource)
{
    struct dv_device_resource_info info;

    return dv_device_find(state, resource, &info) && info.n_free < info.n_devices;
}

bool dv_pod_has_rivals(const struct dv_pod *pod)
{
    struct dv_pod_need need;

    return find(pod, is_shared, &need);
}

/* ---- how many ---- */

/* How many devices of one resource a pod needs at the same time. An init container ends before the
 * others start, so it passes its devices on to them. */
struct demand {
    uint64_t n_staying; /* containers that run together, sidecars among them */
    uint64_t n_passing; /* the largest init container */
};

static void add_demand(struct demand *demand, enum dv_device_container_kind kind, uint64_t n)
{
    if (kind == DV_DEVICE_INIT)
        demand->n_passing = n > demand->n_passing ? n : demand->n_passing;
    else
        demand->n_staying = dv_u64_add_clamped(demand->n_staying, n);
}

static void gather(const struct dv_pod *pod, struct dv_arena *arena, struct dv_map *demands)
{
    for (size_t i = 0; i < pod->spec.n_containers; i++) {
        const struct dv_pod_container *container = &pod->spec.containers[i];

        for (size_t k = 0; k < container->n_limits; k++) {
            const struct dv_device_limit *limit = &container->limits[k];
            struct demand *demand = dv_map_get(demands, limit->resource);

            if (limit->amount <= 0 || limit->is_claimed)
                continue;
            if (!demand) {
                demand = DV_NEW(arena, struct demand);
                (void)dv_map_set(demands, limit->resource, demand);
            }
            add_demand(demand, container->kind, (uint64_t)limit->amount);
        }
    }
}

static uint64_t n_own(const struct dv_device_record *records, size_t n, dv_str resource)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; dv_str_eq(records[i].resource, resource) && k < records[i].n_placed; k++)
            sum += records[i].placed[k].n_ids;
    return sum;
}

bool dv_pod_find_shortage(const struct dv_pod *pod, struct dv_pod_shortage *shortage)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_device_state *state = dv_device_manager_state(pod->pods->options.devices);
    const struct dv_map_entry *entry;
    const struct dv_device_record *records;
    size_t n = dv_device_records_of_pod(state, pod->spec.ref.uid, arena, &records);
    bool is_short = false;
    struct dv_map demands;

    dv_map_init(&demands);
    gather(pod, arena, &demands);
    for (size_t at = 0; !is_short && (entry = dv_map_next(&demands, &at)) != NULL;) {
        const struct demand *demand = entry->value;
        struct dv_device_resource_info info;

        if (!dv_device_find(state, entry->key, &info))
            continue;
        *shortage = (struct dv_pod_shortage){
            .resource = entry->key,
            .n_needed =
                demand->n_staying > demand->n_passing ? demand->n_staying : demand->n_passing,
            .n_listed = info.n_devices,
        };
        is_short = shortage->n_needed > info.n_free + n_own(records, n, entry->key);
    }
    dv_map_fini(&demands);
    return is_short;
}

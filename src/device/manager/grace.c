/* grace.c - what the node reports of its resources, and until when after their plugins went. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "device/manager/device_manager_state.h"

static void on_grace_over(struct dv_timer *timer)
{
    struct dv_device_manager *devices = DV_CONTAINER(timer, struct dv_device_manager, grace_timer);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_device_capacities capacities;

    dv_device_manager_capacity(devices, arena, &capacities);
    dv_device_manager_watch_grace(devices); /* sets the timer for the next resource */
}

void dv_device_manager_watch_grace(struct dv_device_manager *devices)
{
    uint64_t at_ns = dv_device_next_removal_ns(devices->state);

    if (at_ns == UINT64_MAX || devices->is_closing)
        dv_timer_cancel(&devices->grace_timer);
    else
        dv_timer_start(&devices->grace_timer, devices->loop,
                       dv_u64_add_clamped(at_ns, DV_NS_PER_MS - 1) / DV_NS_PER_MS, on_grace_over);
}

/* Keeps the resource's name until it is reported again. Plugins choose the names, so their number
 * is limited. */
static void note_removed(struct dv_device_manager *devices, dv_str resource)
{
    char *name;

    dv_log(DV_LOG_WARN, "device: resource removed; its plugin has not come back",
           DV_F_STR("resource", resource));
    if (devices->removed.n >= DV_DEVICE_RESOURCES_MAX || dv_map_get(&devices->removed, resource))
        return;
    name = dv_alloc(resource.n);
    memcpy(name, resource.p, resource.n); /* no resource has an empty name */
    (void)dv_map_set(&devices->removed, (dv_str){name, resource.n}, name); /* is not there yet */
}

void dv_device_manager_capacity(struct dv_device_manager *devices, struct dv_arena *arena,
                                struct dv_device_capacities *capacities)
{
    const struct dv_map_entry *entry;
    dv_str *removed;
    size_t n = 0;

    dv_device_capacity(devices->state, dv_loop_now_ns(devices->loop), arena, capacities);
    for (size_t i = 0; i < capacities->n_removed; i++)
        note_removed(devices, capacities->removed[i]);
    if (capacities->n_removed > 0) {
        dv_saver_later(&devices->saver);
        dv_device_manager_tell_changed(devices);
    }
    for (size_t i = 0; devices->removed.n > 0 && i < capacities->n; i++)
        /* it is reported again */
        free(dv_map_remove(&devices->removed, capacities->v[i].resource));
    removed = DV_NEW_ARRAY(arena, dv_str, devices->removed.n);
    for (size_t at = 0; (entry = dv_map_next(&devices->removed, &at)) != NULL;)
        removed[n++] = dv_str_copy(entry->key, arena);
    if (n > 0)
        qsort(removed, n, sizeof(removed[0]), dv_str_compare);
    capacities->removed = removed;
    capacities->n_removed = n;
}

bool dv_device_manager_is_removed(const struct dv_device_manager *devices, dv_str resource)
{
    struct dv_device_resource_info info;

    return dv_map_get(&devices->removed, resource) &&
           (!dv_device_find(devices->state, resource, &info) || info.plugin == DV_DEVICE_NO_PLUGIN);
}

void dv_device_manager_forget_removed(struct dv_device_manager *devices)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&devices->removed, &at)) != NULL;)
        free(entry->value);
    dv_map_fini(&devices->removed);
}

/* device_view.c - devices and who holds them: for those who look, for a pod that is to hold less,
 * and for a store that begins anew. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "device/device_manager.h"
#include "device/manager/device_manager_state.h"
#include "device/state/device_state.h"

static int compare_views(const void *a, const void *b)
{
    return dv_str_natural_cmp(((const struct dv_device_view *)a)->id,
                              ((const struct dv_device_view *)b)->id);
}

static void add_holders(const struct dv_device *device, struct dv_arena *arena,
                        struct dv_device_view *view)
{
    struct dv_device_holder *holders;
    struct dv_link *link;
    size_t n = 0;

    DV_LIST_EACH (&device->holders, link) {
        n++;
    }
    holders = DV_NEW_ARRAY(arena, struct dv_device_holder, n);
    view->holders = holders;
    DV_LIST_EACH (&device->holders, link) {
        const struct dv_device_held *held =
            DV_CONTAINER(link, struct dv_device_holding, in_device)->held;

        holders[view->n_holders++] = (struct dv_device_holder){held->pod->uid, held->container};
    }
}

static void describe(const struct dv_device *device, struct dv_arena *arena,
                     struct dv_device_view *view)
{
    view->id = device->id;
    view->is_healthy = dv_device_is_healthy_now(device);
    if (device->nodes) {
        view->nodes = device->nodes->v;
        view->n_nodes = device->nodes->n;
    }
    add_holders(device, arena, view);
}

static bool is_sorted(const struct dv_device_view *views, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (compare_views(&views[i - 1], &views[i]) > 0)
            return false;
    return true;
}

/* The listed devices come in their order of choice, which is that of their ids where all have the
 * same nodes: then they need no sorting. */
size_t dv_device_views(const struct dv_device_state *state, dv_str resource, struct dv_arena *arena,
                       const struct dv_device_view **views)
{
    const struct dv_device_resource *found = dv_device_resource_find(state, resource);
    struct dv_device_view *made;
    struct dv_link *link;
    size_t n = 0;

    *views = NULL;
    if (!found)
        return 0;
    made = DV_NEW_ARRAY(arena, struct dv_device_view, found->devices.n);
    for (size_t i = 0; i < found->ranked.n; i++)
        describe(found->ranked.v[i], arena, &made[n++]);
    DV_LIST_EACH (&found->kept, link) {
        const struct dv_device *device = DV_CONTAINER(link, struct dv_device, in_kept);

        if (!device->is_listed && !dv_list_is_empty(&device->holders))
            describe(device, arena, &made[n++]);
    }
    if (!is_sorted(made, n))
        qsort(made, n, sizeof(made[0]), compare_views);
    *views = made;
    return n;
}

static bool is_asked_for(const struct dv_device_held *held,
                         const struct dv_device_request *containers, size_t n_containers)
{
    for (size_t i = 0; i < n_containers; i++) {
        const struct dv_device_request *container = &containers[i];

        for (size_t k = 0; k < container->n_limits; k++)
            if (container->limits[k].amount > 0 &&
                dv_str_eq(container->container, held->container) &&
                dv_str_eq(container->limits[k].resource, held->resource->name))
                return true;
    }
    return false;
}

void dv_device_manager_trim_pod(struct dv_device_manager *devices, dv_str pod_uid,
                                const struct dv_device_request *containers, size_t n_containers)
{
    struct dv_device_pod *pod = dv_device_pod_find(devices->state, pod_uid);
    struct dv_link *link = pod ? dv_list_first(&pod->held) : NULL;
    size_t n = 0;

    while (link && link != &pod->held.head) {
        struct dv_device_held *held = DV_CONTAINER(link, struct dv_device_held, in_pod);

        link = link->next; /* the call may take the element out of the list */
        if (is_asked_for(held, containers, n_containers))
            continue;
        for (size_t i = 0; i < held->n_holdings; i++)
            dv_device_unlend(held->holdings[i].device);
        dv_device_held_remove(held);
        n++;
    }
    if (n == 0)
        return;
    dv_device_rebuild_allocated(devices->state);
    dv_saver_later(&devices->saver);
    dv_device_manager_tell_changed(devices);
}

void dv_device_manager_save_all(struct dv_device_manager *devices)
{
    struct dv_device_state *state = devices->state;
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(&state->resources, &at)) != NULL)
        ((struct dv_device_resource *)entry->value)->is_saved = false;
    at = 0;
    while ((entry = dv_map_next(&state->held, &at)) != NULL) {
        struct dv_device_held *held = entry->value;

        held->is_saved = false;
        if (!dv_link_is_in(&held->in_dirty))
            dv_list_push(&state->dirty, &held->in_dirty);
    }
}

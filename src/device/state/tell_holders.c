/* tell_holders.c - the pods that are told when a list changes the health of what they hold; each
 * once. */
#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "device/device.h"
#include "device/state/device_state.h"

static void tell_pod(struct dv_device_told *told, const struct dv_device_pod *pod,
                     struct dv_arena *arena)
{
    if (dv_map_get(&told->seen, pod->uid))
        return;
    *dv_vec_add_in(&told->pods, arena) = pod->uid;
    (void)dv_map_set(&told->seen, pod->uid, told); /* any value */
}

void dv_device_tell_holders(struct dv_device_told *told, const struct dv_device *device,
                            struct dv_arena *arena)
{
    struct dv_link *link;

    DV_LIST_EACH (&device->holders, link)
        tell_pod(told, DV_CONTAINER(link, struct dv_device_holding, in_device)->held->pod, arena);
}

void dv_device_tell_first_holder(struct dv_device_told *told, const struct dv_device_state *state,
                                 dv_str id, struct dv_arena *arena)
{
    const struct dv_device_pod *first = NULL;
    const struct dv_map_entry *entry;
    struct dv_link *link;

    for (size_t at = 0; (entry = dv_map_next(&state->resources, &at)) != NULL;) {
        const struct dv_device_resource *resource = entry->value;
        const struct dv_device *device = dv_map_get(&resource->devices, id);

        if (!device)
            continue;
        DV_LIST_EACH (&device->holders, link) {
            const struct dv_device_pod *pod =
                DV_CONTAINER(link, struct dv_device_holding, in_device)->held->pod;

            if (!first || dv_str_cmp(pod->uid, first->uid) < 0)
                first = pod;
        }
    }
    if (first)
        tell_pod(told, first, arena);
}

void dv_device_told_end(struct dv_device_told *told, struct dv_device_diff *diff)
{
    dv_map_fini(&told->seen);
    diff->pods = told->pods.v;
    diff->n_pods = told->pods.n;
}

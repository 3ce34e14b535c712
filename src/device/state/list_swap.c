/* list_swap.c - a long list is read apart, and then takes the place of the one before.
 *
 *     begin          read, on any thread       commit                        free, on any thread
 *     target ------> a state of its own -----> its devices are the target's  those of before
 *
 * Reading is what dv_device_apply_list does, into a state that has nothing else. When the devices
 * change places only those that someone points to, taken or lent, are looked at: each takes the
 * place of the one that was read for its id. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "device/device.h"
#include "device/state/device_state.h"

struct dv_device_list {
    struct dv_device_resource *target; /* NULL: ended */
    uint64_t number;
    struct dv_device_state *apart;
    struct dv_device_resource *read; /* in `apart`; NULL: refused, or not yet */
    struct dv_arena *arena;
    size_t n_duplicates;
    dv_str duplicate;
    dv_str name;
    char text[];
};

struct dv_device_list *dv_device_list_begin(struct dv_device_state *state, dv_str resource)
{
    struct dv_device_list *list = dv_alloc(sizeof(*list) + resource.n);

    memcpy(list->text, resource.p, resource.n);
    list->name = (dv_str){list->text, resource.n};
    list->target = dv_device_resource_ensure(state, resource);
    list->target->n_operations++; /* keeps the resource until the end */
    list->number = ++state->n_lists;
    list->arena = dv_arena_new();
    /* strict or not makes no difference there: nobody holds anything */
    list->apart = dv_device_state_new(NULL);
    return list;
}

/* ---- on any thread ---- */

/* Takes duplicates out of the order, so that each device is replaced only once. */
static void drop_duplicates(struct dv_device_order *order)
{
    size_t n = 0;

    for (size_t i = 0; i < order->n; i++) {
        struct dv_device *device = order->v[i];

        if (device->position != i)
            continue;
        device->position = (uint32_t)n;
        order->v[n++] = device;
    }
    order->n = n;
}

bool dv_device_list_read(struct dv_device_list *list, dv_str bytes, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_device_resource *resource;
    struct dv_device_diff diff;

    assert(!list->read);
    if (!dv_device_apply_list(list->apart, list->name, bytes, scratch, &diff, err))
        return false;
    resource = dv_device_resource_find(list->apart, list->name);
    drop_duplicates(&resource->in_order);
    for (size_t i = 0; i < resource->ranked.n; i++)
        /* only its address is used: the loop owns what is there */
        resource->ranked.v[i]->resource = list->target;
    list->n_duplicates = diff.n_duplicates;
    list->duplicate = dv_str_copy(diff.duplicate, list->arena);
    list->read = resource;
    return true;
}

void dv_device_list_free(struct dv_device_list *list)
{
    if (!list)
        return;
    assert(!list->target);
    /* none of these is held: they are the new devices, or those that were replaced */
    if (list->read) {
        for (size_t i = 0; i < list->read->ranked.n; i++)
            free(list->read->ranked.v[i]); /* NULL: it was carried over */
        dv_map_fini(&list->read->devices);
    }
    dv_device_state_free(list->apart);
    dv_arena_free(list->arena);
    free(list);
}

/* ---- the end ---- */

/* Finds the pods that are told, before the change: those that hold a device that comes or whose
 * health differs. */
static void find_told(const struct dv_device_list *list, struct dv_device_resource *holding,
                      struct dv_device_told *told, struct dv_arena *arena)
{
    const struct dv_device_resource *target = list->target;
    bool is_strict = target->state->opts.is_strict;
    struct dv_link *link;

    DV_LIST_EACH (&holding->kept, link) {
        const struct dv_device *device = DV_CONTAINER(link, struct dv_device, in_kept);
        const struct dv_device *now = dv_map_get(&list->read->devices, device->id);
        const struct dv_device *before =
            holding == target ? device : dv_map_get(&target->devices, device->id);

        if (!now || (before && before->is_listed && before->is_healthy == now->is_healthy))
            continue;
        if (is_strict)
            dv_device_tell_first_holder(told, target->state, device->id, arena);
        else
            dv_device_tell_holders(told, device, arena);
    }
}

static void find_all_told(const struct dv_device_list *list, struct dv_arena *arena,
                          struct dv_device_diff *diff)
{
    const struct dv_device_state *state = list->target->state;
    struct dv_device_told told = {0};
    const struct dv_map_entry *entry;

    if (!state->opts.is_strict)
        find_told(list, list->target, &told, arena);
    else
        for (size_t at = 0; (entry = dv_map_next(&state->resources, &at)) != NULL;)
            find_told(list, entry->value, &told, arena);
    dv_device_told_end(&told, diff);
}

/* Moves all that a list decides. */
static void move_devices(struct dv_device_resource *to, const struct dv_device_resource *from)
{
    to->devices = from->devices;
    to->n_listed = from->n_listed;
    to->n_healthy = from->n_healthy;
    to->in_order = from->in_order;
    to->text = from->text;
    to->nodes = from->nodes;
    to->groups = from->groups;
    to->ranked = from->ranked;
    to->free_ranks = from->free_ranks;
    to->n_free = from->n_free;
}

static void swap_devices(struct dv_device_resource *a, struct dv_device_resource *b)
{
    struct dv_device_resource was = *a;

    move_devices(a, b);
    move_devices(b, &was);
}

/* Others point to this device, so it replaces the one that was read for its id. */
static void carry_over(struct dv_device_resource *resource, struct dv_device_resource *old,
                       struct dv_device *device)
{
    struct dv_device *fresh = dv_map_get(&resource->devices, device->id);

    if (device->rank != DV_DEVICE_NO_RANK)
        old->ranked.v[device->rank] = NULL;
    if (fresh) {
        device->is_listed = true;
        device->is_healthy = fresh->is_healthy;
        device->is_free = fresh->is_free;
        device->rank = fresh->rank;
        device->position = fresh->position;
        device->nodes = fresh->nodes;
        resource->ranked.v[device->rank] = device;
        resource->in_order.v[device->position] = device;
    } else {
        device->is_listed = device->is_free = false;
        device->rank = DV_DEVICE_NO_RANK;
        if (device->nodes) {
            device->nodes = dv_device_nodes_ensure(resource, device->nodes->key);
            device->nodes->n_users++;
        }
    }
    (void)dv_map_set(&resource->devices, device->id, device); /* replaces the key, too */
    free(fresh);
    dv_device_refresh(device);
}

static struct dv_device_resource *end(struct dv_device_list *list)
{
    struct dv_device_resource *target = list->target;

    list->target = NULL;
    target->n_operations--;
    return target;
}

bool dv_device_list_commit(struct dv_device_list *list, struct dv_arena *arena,
                           struct dv_device_diff *diff)
{
    struct dv_device_resource *resource = list->target;
    struct dv_link *link;

    assert(resource && list->read);
    if (resource->list_number > list->number) {
        dv_device_list_abandon(list);
        return false;
    }
    *diff = (struct dv_device_diff){
        .is_back = resource->sets != DV_DEVICE_SETS_LIVE,
        .n_duplicates = list->n_duplicates,
        .duplicate = dv_str_copy(list->duplicate, arena),
    };
    find_all_told(list, arena, diff);
    swap_devices(resource, list->read);
    DV_LIST_EACH (&resource->kept, link)
        carry_over(resource, list->read, DV_CONTAINER(link, struct dv_device, in_kept));
    resource->list_number = list->number;
    resource->generation++; /* the devices that were read have the first generation */
    resource->is_listed = true;
    resource->has_healthy = resource->has_unhealthy = true;
    resource->sets = DV_DEVICE_SETS_LIVE;
    (void)end(list);
    return true;
}

void dv_device_list_abandon(struct dv_device_list *list)
{
    dv_device_resource_drop(end(list));
}

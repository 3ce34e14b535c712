/* device_resource.c - resources and their devices: what is known of them, and until when. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "device/device.h"
#include "device/state/device_state.h"
#include "resource/validate.h"

struct dv_device_resource *dv_device_resource_find(const struct dv_device_state *state, dv_str name)
{
    return dv_map_get(&state->resources, name);
}

struct dv_device_resource *dv_device_resource_ensure(struct dv_device_state *state, dv_str name)
{
    struct dv_device_resource *resource = dv_device_resource_find(state, name);
    char *text;

    if (resource)
        return resource;
    resource = dv_alloc(sizeof(*resource) + name.n);
    text = (char *)(resource + 1);
    memcpy(text, name.p ? name.p : "", name.n);
    resource->state = state;
    resource->name = (dv_str){text, name.n};
    dv_list_init(&resource->plugins);
    dv_list_init(&resource->kept);
    dv_map_init(&resource->devices);
    dv_map_init(&resource->nodes);
    (void)dv_map_set(&state->resources, resource->name, resource); /* is not there yet */
    return resource;
}

void dv_device_resource_free(struct dv_device_resource *resource)
{
    const struct dv_map_entry *entry;
    struct dv_link *link;

    (void)dv_map_remove(&resource->state->resources, resource->name); /* gone is what we want */
    while ((link = dv_list_shift(&resource->plugins)) != NULL)
        free(DV_CONTAINER(link, struct dv_device_plugin, in_resource));
    for (size_t at = 0; (entry = dv_map_next(&resource->devices, &at)) != NULL;) {
        struct dv_device *device = entry->value;
        struct dv_device_pod *lender = device->lender;

        assert(dv_list_is_empty(&device->holders) && device->n_reserved == 0);
        dv_device_unlend(device);
        if (lender)
            dv_device_pod_drop(lender);
        dv_link_remove(&device->in_leaked);
        dv_link_remove(&device->in_kept); /* its neighbours in the list are freed one by one, too */
        free(device);
    }
    dv_map_fini(&resource->devices);
    dv_device_nodes_free_all(resource);
    dv_vec_fini(&resource->in_order);
    dv_vec_fini(&resource->spare);
    dv_device_text_fini(&resource->text);
    dv_vec_fini(&resource->groups);
    dv_vec_fini(&resource->ranked);
    dv_device_bits_fini(&resource->free_ranks);
    free(resource);
}

void dv_device_resource_drop(struct dv_device_resource *resource)
{
    bool is_in_use = resource->n_operations > 0 || resource->n_plugins > 0 ||
                     resource->is_stopped || resource->has_healthy || resource->has_unhealthy ||
                     resource->has_allocated || resource->n_records > 0 || resource->is_saved;

    /* A resource that is forgotten loses its list; the reference keeps it, but shows it to
     * nobody. */
    if (!is_in_use && resource->n_taken == 0)
        dv_device_resource_free(resource);
}

bool dv_device_resource_is_known(const struct dv_device_resource *resource)
{
    return resource->has_healthy || resource->has_allocated;
}

size_t dv_device_resource_n_healthy(const struct dv_device_resource *resource)
{
    return resource->sets == DV_DEVICE_SETS_LIVE ? resource->n_healthy : 0;
}

size_t dv_device_resource_n_unhealthy(const struct dv_device_resource *resource)
{
    size_t n_listed = resource->sets == DV_DEVICE_SETS_EMPTY ? 0 : resource->n_listed;

    return n_listed - dv_device_resource_n_healthy(resource);
}

struct dv_device_plugin *dv_device_resource_plugin(const struct dv_device_resource *resource)
{
    if (dv_list_is_empty(&resource->plugins))
        return NULL;
    return DV_CONTAINER(resource->plugins.head.prev, struct dv_device_plugin, in_resource);
}

static int resource_ptr_cmp(const void *a, const void *b)
{
    const struct dv_device_resource *const *x = a;
    const struct dv_device_resource *const *y = b;

    return dv_str_cmp((*x)->name, (*y)->name);
}

size_t dv_device_resources_sorted(const struct dv_device_state *state, struct dv_arena *arena,
                                  struct dv_device_resource ***resources)
{
    struct dv_device_resource **v =
        DV_NEW_ARRAY(arena, struct dv_device_resource *, state->resources.n);
    const struct dv_map_entry *entry;
    size_t n = 0;

    for (size_t at = 0; (entry = dv_map_next(&state->resources, &at)) != NULL;)
        v[n++] = entry->value;
    qsort(v, n, sizeof(v[0]), resource_ptr_cmp);
    *resources = v;
    return n;
}

struct dv_device *dv_device_ensure(struct dv_device_resource *resource, dv_str id)
{
    struct dv_device *device = dv_map_get(&resource->devices, id);
    char *text;

    if (device)
        return device;
    device = dv_alloc(sizeof(*device) + id.n);
    text = (char *)(device + 1);
    memcpy(text, id.p ? id.p : "", id.n);
    device->resource = resource;
    device->id = (dv_str){text, id.n};
    device->rank = DV_DEVICE_NO_RANK;
    dv_list_init(&device->holders);
    (void)dv_map_set(&resource->devices, device->id, device); /* is not there yet */
    return device;
}

void dv_device_keep(struct dv_device *device)
{
    bool is_kept = device->is_taken || device->lender;

    if (is_kept == dv_link_is_in(&device->in_kept))
        return;
    if (is_kept)
        dv_list_push(&device->resource->kept, &device->in_kept);
    else
        dv_link_remove(&device->in_kept);
}

void dv_device_refresh(struct dv_device *device)
{
    struct dv_device_resource *resource = device->resource;
    bool is_taken = !dv_list_is_empty(&device->holders) || device->n_reserved > 0 ||
                    dv_link_is_in(&device->in_leaked);
    bool is_free =
        device->rank != DV_DEVICE_NO_RANK && device->is_listed && device->is_healthy && !is_taken;

    if (is_taken != device->is_taken) {
        device->is_taken = is_taken;
        resource->n_taken = is_taken ? resource->n_taken + 1 : resource->n_taken - 1;
        dv_device_keep(device);
    }
    if (is_free == device->is_free)
        return;
    device->is_free = is_free;
    dv_device_bits_set(&resource->free_ranks, device->rank, is_free);
    resource->n_free = is_free ? resource->n_free + 1 : resource->n_free - 1;
    device->nodes->n_free = is_free ? device->nodes->n_free + 1 : device->nodes->n_free - 1;
}

void dv_device_drop(struct dv_device *device)
{
    if (device->is_listed || device->is_taken || device->lender)
        return;
    (void)dv_map_remove(&device->resource->devices, device->id); /* its memory is freed next */
    if (device->nodes)
        device->nodes->n_users--;
    free(device);
}

bool dv_device_is_healthy_now(const struct dv_device *device)
{
    return device->resource->sets == DV_DEVICE_SETS_LIVE && device->is_listed && device->is_healthy;
}

bool dv_device_name_check(dv_str resource, struct dv_err *err)
{
    return dv_is_extended_resource_name(resource) ||
           dv_fail(err, DV_INVALID_ARGUMENT, "the ResourceName \"%.*s\" is invalid",
                   DV_FMT(resource));
}

/* ---- devices that are kept back, while others are chosen for a pod ---- */

static struct dv_device *find(const struct dv_device_state *state, dv_str resource, dv_str id)
{
    struct dv_device_resource *known = dv_device_resource_find(state, resource);

    return known ? dv_map_get(&known->devices, id) : NULL;
}

bool dv_device_is_healthy(const struct dv_device_state *state, dv_str resource, dv_str id)
{
    const struct dv_device *device = find(state, resource, id);

    return device && dv_device_is_healthy_now(device);
}

uint64_t dv_device_health_version(const struct dv_device_state *state, dv_str resource)
{
    const struct dv_device_resource *known = dv_device_resource_find(state, resource);

    /* Lists are counted from 1; without one that counts, no device is healthy. */
    return known && known->sets == DV_DEVICE_SETS_LIVE ? known->list_number : 0;
}

bool dv_device_keep_back(struct dv_device_state *state, dv_str resource, dv_str id)
{
    struct dv_device *device = find(state, resource, id);

    if (!device)
        return false;
    device->n_reserved++;
    dv_device_refresh(device);
    return true;
}

void dv_device_let_go(struct dv_device_state *state, dv_str resource, dv_str id)
{
    struct dv_device *device = find(state, resource, id); /* a reserved device is always there */

    device->n_reserved--;
    dv_device_refresh(device);
    dv_device_drop(device);
}

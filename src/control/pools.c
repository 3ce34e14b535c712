/* pools.c - the taints that drivers publish in their slices. Only the newest generation of a pool
 * counts. A change in a pool in which no slice has a taint that evicts, as nearly all are, has no
 * claim judged. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "control/controllers.h"
#include "control/evict.h"
#include "control/evictor.h"
#include "control/taint.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/select.h"

static bool is_evicting_device(const struct dv_api_device *device)
{
    for (size_t i = 0; i < device->n_taints; i++)
        if (dv_taint_is_evicting(&device->taints[i]))
            return true;
    return false;
}

/* Until the next turn of the loop; of a tainted one as long as it is there. */
static const struct dv_api_resource_slice *slice_of(const struct dv_pool_slice *slice)
{
    return dv_object_unpack(slice->object)->value;
}

static bool is_tainted(const struct dv_api_resource_slice *slice)
{
    for (size_t i = 0; i < slice->spec.n_devices; i++)
        if (is_evicting_device(&slice->spec.devices[i]))
            return true;
    return false;
}

/* ---- pools ---- */

static dv_str pool_key(dv_str driver, dv_str pool, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s/%.*s", DV_FMT(driver), DV_FMT(pool));
}

static struct dv_pool *want_pool(struct dv_evictor *evictor,
                                 const struct dv_api_resource_slice_spec *spec)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str key = pool_key(spec->driver, spec->pool.name, scratch);
    struct dv_pool *pool = dv_map_get(&evictor->pools, key);

    if (pool)
        return pool;
    pool = dv_alloc(sizeof(*pool) + key.n);
    memcpy(pool + 1, key.p, key.n);
    pool->key = (dv_str){(const char *)(pool + 1), key.n};
    dv_list_init(&pool->slices);
    (void)dv_map_set(&evictor->pools, pool->key, pool); /* looked up above: there was none */
    return pool;
}

/* Finds the newest generation of a pool anew, after a slice came or went. */
static void refresh(struct dv_evictor *evictor, struct dv_pool *pool)
{
    struct dv_link *link;

    if (dv_list_is_empty(&pool->slices)) {
        (void)dv_map_remove(&evictor->pools, pool->key);
        free(pool);
        return;
    }
    pool->generation = INT64_MIN;
    pool->n_tainted = 0;
    DV_LIST_EACH (&pool->slices, link) {
        const struct dv_pool_slice *slice = DV_CONTAINER(link, struct dv_pool_slice, link);

        if (slice->generation > pool->generation)
            pool->generation = slice->generation;
        pool->n_tainted += slice->is_tainted;
    }
}

/* Removes a slice. True: claims of the pool may have to be judged again, because the slice had
 * taints or hid others. */
static bool remove_slice(struct dv_evictor *evictor, struct dv_pool_slice *slice)
{
    struct dv_pool *pool = slice->pool;
    bool matters = pool->n_tainted > 0;

    (void)dv_map_remove(&evictor->slices, slice->name);
    dv_link_remove(&slice->link);
    if (slice->is_tainted)
        dv_object_unref(slice->object);
    else
        dv_object_unkeep(slice->object);
    free(slice);
    refresh(evictor, pool);
    return matters;
}

static bool add_slice(struct dv_evictor *evictor, struct dv_object *object)
{
    const struct dv_api_resource_slice *value = object->value;
    struct dv_pool_slice *slice = DV_ALLOC(struct dv_pool_slice);

    slice->is_tainted = is_tainted(value);
    slice->object = slice->is_tainted ? dv_object_ref(object) : dv_object_keep(object);
    slice->name = dv_object_names(object).name;
    slice->generation = value->spec.pool.generation;
    slice->n_devices = value->spec.n_devices;
    slice->pool = want_pool(evictor, &value->spec);
    dv_list_push(&slice->pool->slices, &slice->link);
    (void)dv_map_set(&evictor->slices, slice->name, slice); /* the old one was removed */
    refresh(evictor, slice->pool);
    return slice->pool->n_tainted > 0;
}

static void mark_pool(struct dv_evictor *evictor, const struct dv_object *object)
{
    const struct dv_api_resource_slice *slice = object->value;
    const struct dv_api_device_taint_selector selector = {.pool = slice->spec.pool.name};

    dv_evictor_mark_claims(evictor, &selector);
}

void dv_evictor_slice_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_evictor *evictor = ((struct dv_control *)ctx)->evictor;
    struct dv_pool_slice *known = old ? dv_map_get(&evictor->slices, old->meta->name) : NULL;

    if (known && remove_slice(evictor, known))
        mark_pool(evictor, old);
    if (now && add_slice(evictor, now))
        mark_pool(evictor, now);
}

void dv_pools_fini(struct dv_evictor *evictor)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(&evictor->slices, &at)) != NULL)
        /* All is being freed, and nothing is judged any more. */
        (void)remove_slice(evictor, entry->value);
    dv_map_fini(&evictor->slices);
    dv_map_fini(&evictor->pools);
}

/* ---- devices ---- */

static void apply_device(const struct dv_pool_slice *slice, const struct dv_api_device *device,
                         const struct dv_api_device_request_allocation_result *result,
                         struct dv_arena *arena, struct dv_eviction *eviction)
{
    for (size_t i = 0; i < device->n_taints; i++) {
        const struct dv_taint_source source = {.taint = &device->taints[i],
                                               .since = slice->object->meta->creation_timestamp};

        dv_taint_apply(result, &source, arena, eviction);
    }
}

void dv_pools_apply(const struct dv_evictor *evictor,
                    const struct dv_api_device_request_allocation_result *result,
                    struct dv_arena *arena, struct dv_eviction *eviction)
{
    const struct dv_pool *pool =
        dv_map_get(&evictor->pools, pool_key(result->driver, result->pool, arena));
    struct dv_link *link;

    if (!pool || pool->n_tainted == 0)
        return;
    DV_LIST_EACH (&pool->slices, link) {
        const struct dv_pool_slice *slice = DV_CONTAINER(link, struct dv_pool_slice, link);
        const struct dv_api_resource_slice_spec *spec;

        if (!slice->is_tainted || slice->generation != pool->generation)
            continue;
        spec = &slice_of(slice)->spec;
        for (size_t i = 0; i < spec->n_devices; i++)
            if (dv_str_eq(spec->devices[i].name, result->device))
                apply_device(slice, &spec->devices[i], result, arena, eviction);
    }
}

struct counting {
    dv_str name;
    size_t n;
};

static void count_name(void *ctx, dv_str name)
{
    struct counting *counting = ctx;

    counting->n += dv_str_eq(name, counting->name);
}

/* How many devices of a slice in such a pool the rule selects. Slices may be packed, and stay so.
 */
static size_t count(const struct dv_pool_slice *slice,
                    const struct dv_api_device_taint_selector *selector)
{
    size_t slash = dv_str_find_char(slice->pool->key, '/'); /* a driver's name has none */
    dv_str driver = dv_str_slice(slice->pool->key, 0, slash);
    dv_str pool = dv_str_slice(slice->pool->key, slash + 1, slice->pool->key.n);
    struct dv_api_device_taint_selector whole = *selector;
    struct counting counting = {selector->device, 0};

    whole.device = DV_STR_NONE;
    if (!dv_taint_selects(&whole, driver, pool, DV_STR_NONE))
        return 0;
    if (!selector->device.p)
        return slice->n_devices;
    if (!dv_object_each_text(slice->object, DV_STR("spec.devices.name"), count_name, &counting)) {
        const struct dv_api_resource_slice *value = slice->object->value;

        for (size_t i = 0; i < value->spec.n_devices; i++)
            count_name(&counting, value->spec.devices[i].name);
    }
    return counting.n;
}

size_t dv_pools_count(const struct dv_evictor *evictor,
                      const struct dv_api_device_taint_selector *selector)
{
    const struct dv_map_entry *entry;
    size_t at = 0;
    size_t n = 0;

    while (selector && (entry = dv_map_next(&evictor->slices, &at)) != NULL) {
        const struct dv_pool_slice *slice = entry->value;

        if (slice->generation == slice->pool->generation)
            n += count(slice, selector);
    }
    return n;
}

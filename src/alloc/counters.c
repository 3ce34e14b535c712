/* counters.c - counters that the devices of a pool share (partitionable devices): what each device
 * takes from them, and what is left after all that is in use anywhere. */
#include "alloc/inventory.h"
#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "number/number.h"
#include "resource/resource.h"

static struct dv_alloc_counter *find(const struct dv_alloc_node_pool *pool, dv_str set, dv_str name)
{
    for (size_t i = 0; i < pool->n_counters; i++)
        if (dv_str_eq(pool->counters[i].name, name) && dv_str_eq(pool->counters[i].set, set))
            return &pool->counters[i];
    return NULL;
}

/* Whether the pool has all counters that the device consumes; if not, pool->problem names the first
 * that it lacks. */
static bool knows_consumption(struct dv_alloc_node_view *view, struct dv_alloc_node_pool *pool,
                              const struct dv_alloc_device *device)
{
    const struct dv_api_device *api = device->api;

    for (size_t i = 0; i < api->n_consumes_counters; i++) {
        const struct dv_api_device_counter_consumption *from = &api->consumes_counters[i];
        bool has_set = false;

        for (size_t j = 0; j < pool->sets.n && !has_set; j++)
            has_set = dv_str_eq(pool->sets.v[j], from->counter_set);
        if (!has_set) {
            pool->problem = dv_str_printf(view->arena,
                                          "device %.*s consumes of the counter set %.*s, which "
                                          "the pool does not have",
                                          DV_FMT(api->name), DV_FMT(from->counter_set));
            return false;
        }
        for (size_t j = 0; j < from->n_counters; j++)
            if (!find(pool, from->counter_set, from->counters[j].key)) {
                pool->problem = dv_str_printf(
                    view->arena,
                    "device %.*s consumes of %.*s, which is not in the counter set "
                    "%.*s",
                    DV_FMT(api->name), DV_FMT(from->counters[j].key), DV_FMT(from->counter_set));
                return false;
            }
    }
    return true;
}

static bool knows_all(struct dv_inventory *inventory, struct dv_alloc_node_view *view,
                      struct dv_alloc_node_pool *pool, struct dv_inventory_slice *const *slices,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!slices[i]->is_consuming)
            continue;
        dv_inventory_wake(inventory, slices[i]);
        for (size_t j = 0; slices[i]->spec->n_shared_counters == 0 && j < slices[i]->n_devices; j++)
            if (!knows_consumption(view, pool, &slices[i]->devices[j]))
                return false;
    }
    return true;
}

static bool add_set(struct dv_alloc_node_view *view, struct dv_alloc_node_pool *pool,
                    const struct dv_api_counter_set *set)
{
    for (size_t i = 0; i < pool->sets.n; i++)
        if (dv_str_eq(pool->sets.v[i], set->name)) {
            pool->problem =
                dv_str_printf(view->arena, "there are two counter sets %.*s", DV_FMT(set->name));
            return false;
        }
    *dv_vec_add_in(&pool->sets, view->arena) = set->name;
    return true;
}

/* Makes the counters of the pool. False, with pool->problem set, when devices name counters that
 * the pool does not have. */
bool dv_pool_make_counters(struct dv_inventory *inventory, struct dv_alloc_node_view *view,
                           struct dv_alloc_node_pool *pool)
{
    size_t n = 0;

    for (size_t i = 0; i < pool->n_slices; i++) {
        const struct dv_api_resource_slice_spec *spec = pool->slices[i]->spec;

        for (size_t j = 0; j < spec->n_shared_counters; j++) {
            if (!add_set(view, pool, &spec->shared_counters[j]))
                return false;
            n += spec->shared_counters[j].n_counters;
        }
    }
    pool->counters = DV_NEW_ARRAY(view->arena, struct dv_alloc_counter, n);
    for (size_t i = 0; i < pool->n_slices; i++) {
        const struct dv_api_resource_slice_spec *spec = pool->slices[i]->spec;

        for (size_t j = 0; j < spec->n_shared_counters; j++)
            for (size_t k = 0; k < spec->shared_counters[j].n_counters; k++)
                pool->counters[pool->n_counters++] = (struct dv_alloc_counter){
                    .set = spec->shared_counters[j].name,
                    .name = spec->shared_counters[j].counters[k].key,
                    .value = spec->shared_counters[j].counters[k].value.value,
                };
    }
    if (!view->checks_counters)
        return true;
    return knows_all(inventory, view, pool, pool->slices, pool->n_slices) &&
           knows_all(inventory, view, pool, pool->others, pool->n_others);
}

static void subtract(struct dv_alloc_node_pool *pool, const struct dv_inventory_slice *slice,
                     struct dv_arena *arena)
{
    for (size_t i = 0; i < slice->n_devices; i++) {
        const struct dv_api_device *api = slice->devices[i].api;

        if (api->n_consumes_counters == 0 || !dv_ident_is_in_use(slice->devices[i].ident))
            continue;
        for (size_t j = 0; j < api->n_consumes_counters; j++)
            for (size_t k = 0; k < api->consumes_counters[j].n_counters; k++) {
                struct dv_alloc_counter *counter = find(pool, api->consumes_counters[j].counter_set,
                                                        api->consumes_counters[j].counters[k].key);

                counter->available = dv_quantity_sub(
                    &counter->available, &api->consumes_counters[j].counters[k].value.value, arena);
            }
    }
}

/* Copies what is available out of the scratch arena. Quantities below 19 digits need no memory, so
 * nearly always nothing is allocated. */
static void keep_sums(struct dv_alloc_node_pool *pool)
{
    dv_arena_free(pool->sums);
    pool->sums = NULL;
    for (size_t i = 0; i < pool->n_counters; i++) {
        if (dv_quantity_room(&pool->counters[i].available) == 0)
            continue;
        if (!pool->sums)
            pool->sums = dv_arena_new();
        pool->counters[i].available = dv_quantity_copy(&pool->counters[i].available, pool->sums);
    }
}

void dv_pool_refresh_counters(struct dv_inventory *inventory, struct dv_alloc_node_pool *pool)
{
    if (pool->n_counters == 0 || pool->state != DV_ALLOC_POOL_USABLE ||
        pool->usage_version == pool->pool->usage_version)
        return;
    pool->usage_version = pool->pool->usage_version;
    for (size_t i = 0; i < pool->n_counters; i++)
        pool->counters[i].available = pool->counters[i].value;
    for (size_t i = 0; i < pool->n_slices; i++)
        if (pool->slices[i]->spec->n_shared_counters == 0)
            subtract(pool, pool->slices[i], inventory->scratch);
    for (size_t i = 0; i < pool->n_others; i++) {
        if (!pool->others[i]->is_consuming)
            continue;
        dv_inventory_wake(inventory, pool->others[i]); /* its own node may be at rest */
        subtract(pool, pool->others[i], inventory->scratch);
    }
    keep_sums(pool);
    dv_arena_reset(inventory->scratch);
}

/* Adds to what the place consumes of the counter: a device may name one twice. */
static void consume(struct dv_alloc_node_view *view, struct dv_alloc_place *place,
                    const struct dv_alloc_counter *counter, const struct dv_quantity *value)
{
    uint32_t index = (uint32_t)(counter - place->pool->counters);
    size_t at = 0;

    if (dv_quantity_sign(value) < 0)
        view->has_negative = true;
    while (at < place->n_consumes && place->consumes[at].counter != index)
        at++;
    if (at < place->n_consumes) {
        place->consumes[at].value = dv_quantity_add(&place->consumes[at].value, value, view->arena);
        return;
    }
    place->consumes[place->n_consumes++] = (struct dv_alloc_consumption){index, *value};
}

void dv_place_find_counters(struct dv_alloc_node_view *view, struct dv_alloc_place *place)
{
    const struct dv_api_device *api = place->device->api;
    size_t n = 0;

    for (size_t i = 0; i < api->n_consumes_counters; i++)
        n += api->consumes_counters[i].n_counters;
    place->consumes = DV_NEW_ARRAY(view->arena, struct dv_alloc_consumption, n);
    for (size_t i = 0; i < api->n_consumes_counters; i++)
        for (size_t j = 0; j < api->consumes_counters[i].n_counters; j++) {
            const struct dv_alloc_counter *counter =
                find(place->pool, api->consumes_counters[i].counter_set,
                     api->consumes_counters[i].counters[j].key);

            if (counter) /* with the feature gate off a pool has no counters */
                consume(view, place, counter, &api->consumes_counters[i].counters[j].value.value);
        }
}

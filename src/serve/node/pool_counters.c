#include "serve/node/pool_counters.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/key.h"
#include "base/num.h"
#include "base/vec.h"
#include "number/number.h"
#include "resource/resource.h"
#include "serve/node/node_pools.h"

/* Names of the API are shorter. */
#define KEY_BYTES_MAX 4096u
/* How many of the devices are named that have a counter. */
#define N_NAMED_MAX 3u

struct counter {
    dv_str name;
    struct dv_quantity left;
};

struct set {
    struct counter *counters;
    size_t n_counters;
    DV_VEC(dv_str) takers; /* devices */
};

void dv_pool_counters_init(struct dv_pool_counters *counters, struct dv_arena *arena)
{
    counters->arena = arena;
    dv_map_init(&counters->sets);
}

void dv_pool_counters_fini(struct dv_pool_counters *counters)
{
    dv_map_fini(&counters->sets);
}

static dv_str key_of(const struct dv_pool_counters *counters, dv_str driver, dv_str pool,
                     dv_str name)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf key;

    dv_buf_init(&key, KEY_BYTES_MAX);
    dv_key_add(&key, driver);
    dv_key_add(&key, pool);
    dv_key_add(&key, name);
    return dv_str_copy(dv_buf_str(&key), counters->arena);
}

static struct set *set_of(const struct dv_pool_counters *counters,
                          const struct dv_pool_device *device, dv_str name)
{
    return dv_map_get(&counters->sets, key_of(counters, device->driver, device->pool, name));
}

static struct counter *counter_of(const struct set *set, dv_str name)
{
    for (size_t i = 0; set && i < set->n_counters; i++)
        if (dv_str_eq(set->counters[i].name, name))
            return &set->counters[i];
    return NULL;
}

void dv_pool_counters_add(struct dv_pool_counters *counters, dv_str driver, dv_str pool,
                          const struct dv_api_counter_set *from)
{
    dv_str key = key_of(counters, driver, pool, from->name);
    struct set *set;

    if (dv_map_get(&counters->sets, key))
        return;
    set = DV_NEW(counters->arena, struct set);
    set->counters = DV_NEW_ARRAY(counters->arena, struct counter, from->n_counters);
    set->n_counters = from->n_counters;
    for (size_t i = 0; i < from->n_counters; i++)
        set->counters[i] = (struct counter){from->counters[i].key, from->counters[i].value.value};
    (void)dv_map_set(&counters->sets, key, set);
}

void dv_pool_counters_take(struct dv_pool_counters *counters, const struct dv_pool_device *device)
{
    for (size_t i = 0; i < device->api->n_consumes_counters; i++) {
        const struct dv_api_device_counter_consumption *from = &device->api->consumes_counters[i];
        struct set *set = set_of(counters, device, from->counter_set);

        for (size_t k = 0; k < from->n_counters; k++) {
            struct counter *counter = counter_of(set, from->counters[k].key);

            if (counter)
                counter->left = dv_quantity_sub(&counter->left, &from->counters[k].value.value,
                                                counters->arena);
        }
        if (set)
            *dv_vec_add_in(&set->takers, counters->arena) = device->name;
    }
}

/* "memory of gpu-0: 10Gi wanted, 2Gi left" */
static dv_str tell(const struct dv_pool_counters *counters, dv_str set,
                   const struct counter *counter, const struct dv_quantity *wanted)
{
    struct dv_quantity left = counter->left;

    if (dv_quantity_sign(&left) < 0) /* it was made smaller while devices were held */
        left = dv_quantity_from_i64(0, left.format);
    return dv_str_printf(counters->arena, "%.*s of %.*s: %.*s wanted, %.*s left",
                         DV_FMT(counter->name), DV_FMT(set),
                         DV_FMT(dv_quantity_text(wanted, counters->arena)),
                         DV_FMT(dv_quantity_text(&left, counters->arena)));
}

void dv_pool_counters_find(const struct dv_pool_counters *counters, struct dv_pool_device *device)
{
    for (size_t i = 0; i < device->api->n_consumes_counters; i++) {
        const struct dv_api_device_counter_consumption *from = &device->api->consumes_counters[i];
        const struct set *set = set_of(counters, device, from->counter_set);

        for (size_t k = 0; k < from->n_counters; k++) {
            const struct dv_quantity *wanted = &from->counters[k].value.value;
            const struct counter *counter = counter_of(set, from->counters[k].key);

            if (!counter || dv_quantity_cmp(wanted, &counter->left) <= 0)
                continue;
            device->shortage = tell(counters, from->counter_set, counter, wanted);
            device->blocked_by = set->takers.v;
            device->n_blocked_by = dv_size_min(set->takers.n, N_NAMED_MAX);
            return;
        }
    }
}

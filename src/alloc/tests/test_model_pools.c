/* test_model_pools.c - pools, shared counters and consumable capacity, gathered anew for every
 * question. */
#include <stdlib.h>

#include "alloc/tests/test_alloc_model.h"
#include "alloc/tests/test_alloc_world.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "number/number.h"
#include "resource/resource.h"
#include "resource/select.h"

static const struct dv_api_resource_slice_spec *spec_of(const struct dv_object *object)
{
    return &((const struct dv_api_resource_slice *)object->value)->spec;
}

static bool selection(const struct world *world, dv_str name, const bool *all,
                      const struct dv_api_node_selector *selector, bool *is_for)
{
    const struct dv_alloc_node *node = &world->node;
    struct dv_err err;

    *is_for = false;
    if (name.p && name.n) {
        *is_for = dv_str_eq(name, node->name);
    } else if (all && *all) {
        *is_for = true;
    } else if (selector) {
        *is_for = dv_node_selector_matches(selector, node->name, node->labels, node->n_labels);
        return dv_node_selector_check(selector, &err);
    }
    return true;
}

bool model_is_for(const struct world *world, const struct model_device *device, bool *is_for)
{
    const struct dv_api_device *api = device->api;

    if (device->spec->per_device_node_selection && *device->spec->per_device_node_selection)
        return selection(world, api->node_name, api->all_nodes, api->node_selector, is_for);
    *is_for = true;
    return true;
}

static bool is_relevant(const struct world *world, const struct dv_api_resource_slice_spec *spec,
                        bool *is_for)
{
    *is_for = false;
    if (!world->features.partitionable_devices &&
        (spec->per_device_node_selection || spec->n_shared_counters))
        return true;
    if (spec->n_shared_counters) {
        *is_for = true;
        return true;
    }
    if (spec->node_name.p || spec->all_nodes || spec->node_selector)
        return selection(world, spec->node_name, spec->all_nodes, spec->node_selector, is_for);
    for (size_t i = 0; i < spec->n_devices && !*is_for; i++) {
        struct model_device device = {.api = &spec->devices[i], .spec = spec};

        if (!spec->per_device_node_selection || !*spec->per_device_node_selection)
            return true;
        if (!model_is_for(world, &device, is_for))
            return false;
    }
    return true;
}

static void add_slice(struct model_pools *pools, const struct dv_object *slice,
                      struct dv_arena *arena)
{
    const struct dv_api_resource_slice_spec *spec = spec_of(slice);
    struct model_pool *pool = NULL;

    for (size_t i = 0; i < pools->pools.n; i++)
        if (dv_str_eq(pools->pools.v[i].driver, spec->driver) &&
            dv_str_eq(pools->pools.v[i].name, spec->pool.name))
            pool = &pools->pools.v[i];
    if (!pool) {
        pool = dv_vec_add_in(&pools->pools, arena);
        pool->driver = spec->driver;
        pool->name = spec->pool.name;
        pool->generation = spec->pool.generation;
    }
    if (spec->pool.generation < pool->generation)
        return;
    if (spec->pool.generation > pool->generation)
        dv_vec_clear(&pool->slices);
    pool->generation = spec->pool.generation;
    *dv_vec_add_in(&pool->slices, arena) = slice;
}

/* False: obsolete. */
static bool check_complete(const struct world *world, struct model_pool *pool,
                           struct dv_arena *arena)
{
    int64_t n_wanted = spec_of(pool->slices.v[0])->pool.resource_slice_count;
    int64_t n = 0;

    if ((int64_t)pool->slices.n == n_wanted)
        return true;
    for (size_t i = 0; i < world->slices.n; i++) {
        const struct dv_api_resource_slice_spec *spec = spec_of(world->slices.v[i]);
        bool is_kept = false;

        if (!dv_str_eq(spec->driver, pool->driver) || !dv_str_eq(spec->pool.name, pool->name))
            continue;
        if (spec->pool.generation > pool->generation)
            return false;
        if (spec->pool.generation < pool->generation)
            continue;
        n++;
        for (size_t j = 0; j < pool->slices.n; j++)
            is_kept = is_kept || pool->slices.v[j] == world->slices.v[i];
        if (!is_kept)
            *dv_vec_add_in(&pool->others, arena) = world->slices.v[i];
    }
    if (n != n_wanted)
        pool->state = MODEL_INCOMPLETE;
    return true;
}

struct model_counter *model_counter(struct model_pool *pool, dv_str set, dv_str name)
{
    for (size_t i = 0; i < pool->counters.n; i++)
        if (dv_str_eq(pool->counters.v[i].set, set) && dv_str_eq(pool->counters.v[i].name, name))
            return &pool->counters.v[i];
    return NULL;
}

static bool has_set(const struct model_pool *pool, dv_str set, size_t n_slices, size_t n_sets)
{
    for (size_t i = 0; i < pool->slices.n && i <= n_slices; i++) {
        const struct dv_api_resource_slice_spec *spec = spec_of(pool->slices.v[i]);

        for (size_t j = 0; j < spec->n_shared_counters && (i < n_slices || j < n_sets); j++)
            if (dv_str_eq(spec->shared_counters[j].name, set))
                return true;
    }
    return false;
}

static bool add_counters(struct model_pool *pool, struct dv_arena *arena)
{
    for (size_t i = 0; i < pool->slices.n; i++) {
        const struct dv_api_resource_slice_spec *spec = spec_of(pool->slices.v[i]);

        for (size_t j = 0; j < spec->n_shared_counters; j++) {
            const struct dv_api_counter_set *set = &spec->shared_counters[j];

            if (has_set(pool, set->name, i, j))
                return false;
            for (size_t k = 0; k < set->n_counters; k++)
                *dv_vec_add_in(&pool->counters, arena) =
                    (struct model_counter){.set = set->name,
                                           .name = set->counters[k].key,
                                           .available = set->counters[k].value.value};
        }
    }
    return true;
}

static bool knows_counters(struct model_pool *pool, const struct dv_object *slice)
{
    const struct dv_api_resource_slice_spec *spec = spec_of(slice);

    for (size_t i = 0; i < spec->n_devices && spec->n_shared_counters == 0; i++)
        for (size_t j = 0; j < spec->devices[i].n_consumes_counters; j++) {
            const struct dv_api_device_counter_consumption *from =
                &spec->devices[i].consumes_counters[j];

            if (!has_set(pool, from->counter_set, pool->slices.n, 0))
                return false;
            for (size_t k = 0; k < from->n_counters; k++)
                if (!model_counter(pool, from->counter_set, from->counters[k].key))
                    return false;
        }
    return true;
}

static bool has_twice(const struct model_pool *pool)
{
    for (size_t i = 0; i < pool->slices.n; i++)
        for (size_t j = 0; j < pool->slices.n; j++) {
            const struct dv_api_resource_slice_spec *a = spec_of(pool->slices.v[i]);
            const struct dv_api_resource_slice_spec *b = spec_of(pool->slices.v[j]);

            if (a->n_shared_counters || b->n_shared_counters)
                continue;
            for (size_t k = 0; k < a->n_devices; k++)
                for (size_t l = 0; l < b->n_devices; l++)
                    if ((i != j || k != l) && dv_str_eq(a->devices[k].name, b->devices[l].name))
                        return true;
        }
    return false;
}

static bool is_valid(const struct world *world, struct model_pool *pool, struct dv_arena *arena)
{
    if (has_twice(pool) || !add_counters(pool, arena))
        return false;
    if (!world->features.partitionable_devices)
        return true;
    for (size_t i = 0; i < pool->slices.n; i++)
        if (!knows_counters(pool, pool->slices.v[i]))
            return false;
    for (size_t i = 0; i < pool->others.n; i++)
        if (!knows_counters(pool, pool->others.v[i]))
            return false;
    return true;
}

static bool is_held(const struct dv_api_device_request_allocation_result *held,
                    const struct dv_api_resource_slice_spec *spec, const struct dv_api_device *api)
{
    return dv_str_eq(held->driver, spec->driver) && dv_str_eq(held->pool, spec->pool.name) &&
           dv_str_eq(held->device, api->name) && !(held->admin_access && *held->admin_access);
}

static bool is_in_use(const struct world *world, const struct dv_api_resource_slice_spec *spec,
                      const struct dv_api_device *api)
{
    for (size_t i = 0; i < world->held.n; i++)
        if (is_held(&world->held.v[i], spec, api))
            return true;
    return false;
}

static void subtract(const struct world *world, struct model_pool *pool,
                     const struct dv_object *slice, struct dv_arena *arena)
{
    const struct dv_api_resource_slice_spec *spec = spec_of(slice);

    for (size_t i = 0; i < spec->n_devices && spec->n_shared_counters == 0; i++) {
        const struct dv_api_device *api = &spec->devices[i];

        for (size_t j = 0; is_in_use(world, spec, api) && j < api->n_consumes_counters; j++)
            for (size_t k = 0; k < api->consumes_counters[j].n_counters; k++) {
                struct model_counter *counter =
                    model_counter(pool, api->consumes_counters[j].counter_set,
                                  api->consumes_counters[j].counters[k].key);

                if (counter)
                    counter->available =
                        dv_quantity_sub(&counter->available,
                                        &api->consumes_counters[j].counters[k].value.value, arena);
            }
    }
}

static int by_name(const void *a, const void *b)
{
    return dv_str_cmp((*(const struct dv_object *const *)a)->meta->name,
                      (*(const struct dv_object *const *)b)->meta->name);
}

static int by_order(const void *a, const void *b)
{
    const struct model_pool *left = a;
    const struct model_pool *right = b;
    int order = (int)left->has_binding - (int)right->has_binding;

    if (order == 0)
        order = dv_str_cmp(left->driver, right->driver);
    return order ? order : dv_str_cmp(left->name, right->name);
}

static void finish_pool(const struct world *world, struct model_pool *pool, struct dv_arena *arena)
{
    qsort(pool->slices.v, pool->slices.n, sizeof(struct dv_object *), by_name);
    if (pool->state != MODEL_USABLE)
        return;
    if (!is_valid(world, pool, arena)) {
        pool->state = MODEL_INVALID;
        return;
    }
    for (size_t i = 0; i < pool->slices.n; i++) {
        const struct dv_api_resource_slice_spec *spec = spec_of(pool->slices.v[i]);

        subtract(world, pool, pool->slices.v[i], arena);
        for (size_t j = 0; j < spec->n_devices && spec->n_shared_counters == 0; j++)
            pool->has_binding = pool->has_binding || spec->devices[j].binding_conditions;
    }
    for (size_t i = 0; i < pool->others.n; i++)
        subtract(world, pool, pool->others.v[i], arena);
}

static void read_use(const struct world *world, struct model_device *device, struct dv_arena *arena)
{
    const struct dv_api_device *api = device->api;

    for (size_t i = 0; i < world->held.n; i++) {
        const struct dv_api_device_request_allocation_result *held = &world->held.v[i];
        bool is_share = held->share_id.p && world->features.consumable_capacity;

        if (!is_held(held, device->spec, api))
            continue;
        device->is_dedicated = device->is_dedicated || !is_share;
        device->is_share = device->is_share || is_share;
        if (!is_share || !held->consumed_capacity)
            continue;
        device->is_aggregated = true;
        for (size_t j = 0; j < held->n_consumed_capacity; j++)
            for (size_t k = 0; k < api->n_capacity; k++)
                if (dv_str_eq(api->capacity[k].key, held->consumed_capacity[j].key))
                    device->aggregated[k] = dv_quantity_add(
                        &device->aggregated[k], &held->consumed_capacity[j].value, arena);
    }
}

static void add_devices(const struct world *world, struct model_pools *pools, size_t at,
                        struct dv_arena *arena)
{
    const struct model_pool *pool = &pools->pools.v[at];

    for (size_t i = 0; i < pool->slices.n; i++) {
        const struct dv_api_resource_slice_spec *spec = spec_of(pool->slices.v[i]);

        for (size_t j = 0; j < spec->n_devices && spec->n_shared_counters == 0; j++) {
            struct model_device *device = dv_vec_add_in(&pools->devices, arena);
            const struct dv_api_device *api = &spec->devices[j];

            device->api = api;
            device->spec = spec;
            device->pool = at;
            device->is_multi = world->features.consumable_capacity &&
                               api->allow_multiple_allocations && *api->allow_multiple_allocations;
            device->aggregated = DV_NEW_ARRAY(arena, struct dv_quantity, api->n_capacity);
            device->taken = DV_NEW_ARRAY(arena, struct dv_quantity, api->n_capacity);
            device->taken_by = DV_NEW_ARRAY(arena, bool, world->claims.n);
            read_use(world, device, arena);
        }
    }
}

void model_gather(const struct world *world, struct dv_arena *arena, struct model_pools *pools)
{
    size_t n = 0;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < world->slices.n; i++) {
            const struct dv_api_resource_slice_spec *spec = spec_of(world->slices.v[i]);
            bool is_own = spec->node_name.p && spec->n_shared_counters == 0;
            bool is_for;

            if (is_own != (pass == 0) || (is_own && !dv_str_eq(spec->node_name, world->node.name)))
                continue;
            if (!is_relevant(world, spec, &is_for))
                pools->has_failed = true;
            else if (is_for)
                add_slice(pools, world->slices.v[i], arena);
        }
    for (size_t i = 0; i < pools->pools.n; i++)
        if (check_complete(world, &pools->pools.v[i], arena)) {
            finish_pool(world, &pools->pools.v[i], arena);
            pools->pools.v[n++] = pools->pools.v[i];
        }
    pools->pools.n = n;
    if (n > 0)
        qsort(pools->pools.v, n, sizeof(struct model_pool), by_order);
    for (size_t i = 0; i < n; i++)
        if (pools->pools.v[i].state == MODEL_USABLE)
            add_devices(world, pools, i, arena);
}

/* ---- capacity ---- */

static const struct dv_quantity *wanted_of(const struct dv_api_capacity_requirements *capacity,
                                           dv_str name)
{
    for (size_t i = 0; capacity && i < capacity->n_requests; i++)
        if (dv_str_eq(capacity->requests[i].key, name))
            return &capacity->requests[i].value;
    return NULL;
}

static int64_t whole(const struct dv_quantity *quantity)
{
    int64_t value;

    if (dv_quantity_to_i64_ceil(quantity, &value))
        return value;
    return dv_quantity_sign(quantity) < 0 ? INT64_MIN : INT64_MAX;
}

static struct dv_quantity amount_of(const struct dv_api_device_capacity *capacity,
                                    const struct dv_quantity *wanted)
{
    const struct dv_api_capacity_request_policy *policy = capacity->request_policy;

    if (!wanted)
        return policy && policy->default_ ? *policy->default_ : capacity->value;
    if (policy && policy->valid_range && policy->valid_range->min) {
        const struct dv_api_capacity_request_policy_range *range = policy->valid_range;
        int64_t min = whole(range->min);
        int64_t step = range->step ? whole(range->step) : 0;

        if (dv_quantity_cmp(wanted, range->min) < 0)
            return *range->min;
        if (step <= 0)
            return *wanted;
        return dv_quantity_from_i64(min + (whole(wanted) - min + step - 1) / step * step,
                                    DV_QUANTITY_BINARY_SI);
    }
    for (size_t i = 0; policy && i < policy->n_valid_values; i++)
        if (dv_quantity_cmp(wanted, &policy->valid_values[i]) <= 0)
            return policy->valid_values[i];
    return *wanted;
}

static bool violates(const struct dv_api_capacity_request_policy *policy,
                     const struct dv_quantity *amount)
{
    if (!policy || (policy->default_ && dv_quantity_cmp(amount, policy->default_) == 0))
        return false;
    if (policy->valid_range) {
        const struct dv_api_capacity_request_policy_range *range = policy->valid_range;
        int64_t step = range->step ? whole(range->step) : 1;

        if (range->max && dv_quantity_cmp(amount, range->max) > 0)
            return true;
        return range->step &&
               (step == 0 || (whole(amount) - (range->min ? whole(range->min) : 0)) % step != 0);
    }
    for (size_t i = 0; i < policy->n_valid_values; i++)
        if (dv_quantity_cmp(amount, &policy->valid_values[i]) == 0)
            return false;
    return policy->n_valid_values > 0;
}

bool model_capacity(const struct model_device *device,
                    const struct dv_api_capacity_requirements *capacity, struct dv_arena *arena,
                    struct dv_quantity *consumed)
{
    const struct dv_api_device *api = device->api;

    for (size_t i = 0; capacity && i < capacity->n_requests; i++) {
        bool is_there = false;

        for (size_t j = 0; j < api->n_capacity; j++)
            is_there = is_there || dv_str_eq(api->capacity[j].key, capacity->requests[i].key);
        if (!is_there)
            return false;
    }
    for (size_t i = 0; i < api->n_capacity; i++) {
        const struct dv_api_device_capacity *of = &api->capacity[i].value;
        struct dv_quantity sum;

        consumed[i] = amount_of(of, wanted_of(capacity, api->capacity[i].key));
        sum = dv_quantity_add(&consumed[i], &device->aggregated[i], arena);
        sum = dv_quantity_add(&sum, &device->taken[i], arena);
        if (violates(of->request_policy, &consumed[i]) || dv_quantity_cmp(&sum, &of->value) > 0)
            return false;
    }
    return true;
}

#include "alloc/tests/test_verify.h"

#include <string.h>

#include "alloc/alloc.h"
#include "alloc/tests/test_alloc_model.h"
#include "alloc/tests/test_alloc_world.h"
#include "base/arena.h"
#include "base/str.h"
#include "number/number.h"
#include "resource/resource.h"
#include "resource/select.h"

typedef const struct dv_api_device_request_allocation_result *result_ref;

/* One result, with all that it is about. */
struct given {
    result_ref result;
    const struct dv_api_resource_claim *claim;
    const struct dv_api_device_request *request;
    struct dv_api_exact_device_request terms;
    struct model_device *device;
    size_t task;
};

struct verification {
    const struct world *world;
    struct dv_arena *arena;
    struct model_pools pools;
    DV_VEC(struct given) given;
};

/* ---- finding ---- */

static struct model_device *find_device(struct verification *all, result_ref result)
{
    for (size_t i = 0; i < all->pools.devices.n; i++) {
        struct model_device *device = &all->pools.devices.v[i];

        if (dv_str_eq(device->api->name, result->device) &&
            dv_str_eq(device->spec->driver, result->driver) &&
            dv_str_eq(device->spec->pool.name, result->pool))
            return device;
    }
    return NULL;
}

static bool find_request(struct given *given, dv_str name)
{
    const struct dv_api_device_claim *devices = &given->claim->spec.devices;

    for (size_t i = 0; i < devices->n_requests; i++) {
        const struct dv_api_device_request *request = &devices->requests[i];

        given->request = request;
        if (request->n_first_available == 0 && request->exactly && dv_str_eq(request->name, name)) {
            given->terms = *request->exactly;
            return true;
        }
        for (size_t j = 0; j < request->n_first_available; j++) {
            const struct dv_api_device_sub_request *sub = &request->first_available[j];

            if (name.n != request->name.n + 1 + sub->name.n ||
                !dv_str_starts_with(name, request->name) || name.p[request->name.n] != '/' ||
                !dv_str_ends_with(name, sub->name))
                continue;
            given->terms = (struct dv_api_exact_device_request){
                .device_class_name = sub->device_class_name,
                .selectors = sub->selectors,
                .n_selectors = sub->n_selectors,
                .allocation_mode = sub->allocation_mode,
                .count = sub->count,
                .tolerations = sub->tolerations,
                .n_tolerations = sub->n_tolerations,
                .capacity = sub->capacity,
            };
            return true;
        }
    }
    return false;
}

/* ---- each result ---- */

static bool all_match(const struct verification *all,
                      const struct dv_api_device_selector *selectors, size_t n,
                      const struct model_device *device)
{
    for (size_t i = 0; i < n; i++) {
        bool is_match;

        if (!selectors[i].cel ||
            !model_evaluate(all->world, selectors[i].cel->expression, device, &is_match) ||
            !is_match)
            return false;
    }
    return true;
}

static bool is_selected(const struct verification *all, const struct given *given)
{
    for (size_t i = 0; i < all->world->classes.n; i++) {
        const struct dv_api_device_class *class = all->world->classes.v[i]->value;

        if (dv_str_eq(class->metadata.name, given->terms.device_class_name))
            return all_match(all, class->spec.selectors, class->spec.n_selectors, given->device) &&
                   all_match(all, given->terms.selectors, given->terms.n_selectors, given->device);
    }
    return false;
}

static bool is_tolerated(const struct verification *all, const struct given *given)
{
    for (size_t i = 0; all->world->features.device_taints && i < given->device->api->n_taints;
         i++) {
        const struct dv_api_device_taint *taint = &given->device->api->taints[i];
        bool is_fine = !dv_str_eq(taint->effect, DV_STR("NoSchedule")) &&
                       !dv_str_eq(taint->effect, DV_STR("NoExecute"));

        for (size_t j = 0; j < given->terms.n_tolerations; j++)
            is_fine = is_fine || model_tolerates(&given->terms.tolerations[j], taint);
        if (!is_fine)
            return false;
    }
    return true;
}

static bool is_admin(const struct given *given)
{
    return given->terms.admin_access && *given->terms.admin_access;
}

static const char *verify_one(struct verification *all, const struct given *given)
{
    bool is_for;

    if (!is_selected(all, given))
        return "a device that is not selected";
    if (!is_tolerated(all, given))
        return "a taint that is not tolerated";
    if (!model_is_for(all->world, given->device, &is_for) || !is_for)
        return "a device of another node";
    if (given->device->is_dedicated && !is_admin(given))
        return "a device that is in use";
    if (given->device->is_multi != (given->result->share_id.p != NULL))
        return "a share of what is not shared, or none of what is";
    if (is_admin(given) != (given->result->admin_access && *given->result->admin_access))
        return "admin access of the wrong kind";
    if (!all->world->features.binding_conditions && given->device->api->n_binding_conditions)
        return "binding conditions with the gate off";
    for (size_t i = 0; i < all->given.n; i++) {
        const struct given *other = &all->given.v[i];

        if (other == given || other->device != given->device || given->device->is_multi)
            continue;
        if (other->task == given->task || (!is_admin(other) && !is_admin(given)))
            return "one device twice";
    }
    return NULL;
}

/* ---- capacity and counters ---- */

static const char *verify_capacity(struct verification *all, struct given *given)
{
    struct model_device *device = given->device;
    struct dv_quantity *consumed =
        DV_NEW_ARRAY(all->arena, struct dv_quantity, device->api->n_capacity);

    if (!all->world->features.consumable_capacity)
        return NULL;
    if (!model_capacity(device, given->terms.capacity, all->arena, consumed))
        return "more capacity than there is, or against its policy";
    if (!device->is_multi)
        return given->result->consumed_capacity ? "capacity of what is not shared" : NULL;
    if (given->result->n_consumed_capacity != device->api->n_capacity)
        return "not all capacities";
    for (size_t i = 0; i < device->api->n_capacity; i++) {
        if (dv_quantity_cmp(&given->result->consumed_capacity[i].value, &consumed[i]) != 0)
            return "another amount of capacity";
        device->taken[i] = dv_quantity_add(&device->taken[i], &consumed[i], all->arena);
    }
    return NULL;
}

static const char *verify_counters(struct verification *all, const struct given *given)
{
    struct model_device *device = given->device;
    const struct dv_api_device *api = device->api;
    struct model_pool *pool = &all->pools.pools.v[device->pool];
    bool is_counted = device->is_multi && (device->is_aggregated || device->n_shares > 0);

    device->n_shares += device->is_multi;
    if (is_counted || api->n_consumes_counters == 0)
        return NULL;
    if (!all->world->features.partitionable_devices)
        return "counters with the gate off";
    for (size_t i = 0; i < api->n_consumes_counters; i++)
        for (size_t j = 0; j < api->consumes_counters[i].n_counters; j++) {
            struct model_counter *counter =
                model_counter(pool, api->consumes_counters[i].counter_set,
                              api->consumes_counters[i].counters[j].key);

            if (!counter)
                return "a counter that is not there";
            counter->consumed = dv_quantity_add(
                &counter->consumed, &api->consumes_counters[i].counters[j].value.value, all->arena);
        }
    for (size_t i = 0; i < pool->counters.n; i++)
        if (dv_quantity_cmp(&pool->counters.v[i].consumed, &pool->counters.v[i].available) > 0)
            return "more of a counter than there is";
    return NULL;
}

/* ---- claims ---- */

static const char *verify_counts(const struct verification *all, size_t task)
{
    const struct dv_api_device_claim *devices = &all->world->claims.v[task]->spec.devices;
    size_t n_all = 0;

    for (size_t i = 0; i < devices->n_requests; i++) {
        int64_t n = 0;
        const struct given *one = NULL;

        for (size_t j = 0; j < all->given.n; j++)
            if (all->given.v[j].task == task && all->given.v[j].request == &devices->requests[i]) {
                if (one && !dv_str_eq(one->result->request, all->given.v[j].result->request))
                    return "two alternatives of a request";
                one = &all->given.v[j];
                n++;
            }
        n_all += (size_t)n;
        if (one && !dv_str_eq(one->terms.allocation_mode, DV_STR("All")) && n != one->terms.count)
            return "not as many as wanted";
        if (!one && devices->requests[i].exactly && devices->requests[i].exactly->count > 0)
            return "nothing for a request";
    }
    return n_all > DV_ALLOC_RESULTS_MAX ? "too many for a claim" : NULL;
}

static bool applies(const struct dv_api_device_constraint *constraint, const struct given *given)
{
    for (size_t i = 0; i < constraint->n_requests; i++)
        if (dv_str_eq(constraint->requests[i], given->request->name) ||
            dv_str_eq(constraint->requests[i], given->result->request))
            return true;
    return constraint->n_requests == 0;
}

static const struct dv_api_device_attribute *attribute_of(const struct given *given, dv_str name)
{
    const struct dv_api_device *api = given->device->api;
    size_t slash = dv_str_find_char(name, '/');

    for (size_t i = 0; i < api->n_attributes; i++)
        if (dv_str_eq(api->attributes[i].key, name))
            return &api->attributes[i].value;
    for (size_t i = 0; i < api->n_attributes; i++)
        if (dv_str_eq(api->attributes[i].key, dv_str_slice(name, slash + 1, name.n)) &&
            dv_str_eq(given->device->spec->driver, dv_str_slice(name, 0, slash)))
            return &api->attributes[i].value;
    return NULL;
}

/* Of single values; what cannot be compared is not the same. */
static bool same_value(const struct dv_api_device_attribute *a,
                       const struct dv_api_device_attribute *b)
{
    if (a->string.p && b->string.p)
        return dv_str_eq(a->string, b->string);
    if (a->version.p && b->version.p)
        return dv_str_eq(a->version, b->version);
    if (a->bool_ && b->bool_)
        return *a->bool_ == *b->bool_;
    return a->int_ && b->int_ && *a->int_ == *b->int_;
}

static const char *verify_constraint(const struct verification *all, size_t task,
                                     const struct dv_api_device_constraint *constraint)
{
    bool is_match = constraint->match_attribute.p != NULL;
    dv_str name = is_match ? constraint->match_attribute : constraint->distinct_attribute;

    for (size_t i = 0; i < all->given.n; i++) {
        const struct given *one = &all->given.v[i];

        if (one->task != task || !applies(constraint, one))
            continue;
        if (!attribute_of(one, name))
            return "a device without the attribute of a constraint";
        for (size_t j = 0; !all->world->features.list_attributes && j < i; j++) {
            const struct given *other = &all->given.v[j];
            bool is_same;

            if (other->task != task || !applies(constraint, other))
                continue;
            is_same = same_value(attribute_of(one, name), attribute_of(other, name));
            if (is_match && !is_same)
                return "values that differ";
            /* Of several devices of a request only one is remembered, as in the reference. */
            if (!is_match && is_same && one->terms.count == 1 && other->terms.count == 1 &&
                one->request != other->request)
                return "values that are the same";
        }
    }
    return NULL;
}

static const char *verify_claim(const struct verification *all, size_t task,
                                const struct dv_api_allocation_result *allocation)
{
    const struct dv_api_device_claim *devices = &all->world->claims.v[task]->spec.devices;
    const struct dv_alloc_node *node = &all->world->node;
    const char *problem = verify_counts(all, task);

    for (size_t i = 0; !problem && i < devices->n_constraints; i++)
        problem = verify_constraint(all, task, &devices->constraints[i]);
    if (!problem && allocation->node_selector &&
        !dv_node_selector_matches(allocation->node_selector, node->name, node->labels,
                                  node->n_labels))
        return "a node selector that is not for the node";
    return problem;
}

/* Results name requests: where two have one name, they cannot be told apart. */
static bool has_namesakes(const struct dv_api_device_claim *devices)
{
    for (size_t i = 0; i < devices->n_requests; i++)
        for (size_t j = 0; j < i; j++)
            if (dv_str_eq(devices->requests[i].name, devices->requests[j].name))
                return true;
    for (size_t i = 0; i < devices->n_requests; i++)
        for (size_t j = 0; j < devices->requests[i].n_first_available; j++)
            for (size_t k = 0; k < j; k++)
                if (dv_str_eq(devices->requests[i].first_available[j].name,
                              devices->requests[i].first_available[k].name))
                    return true;
    return false;
}

const char *verify(const struct world *world, const struct dv_api_allocation_result *allocations,
                   struct dv_arena *arena)
{
    struct verification all = {.world = world, .arena = arena};
    const char *problem = NULL;

    for (size_t i = 0; i < world->claims.n; i++)
        if (has_namesakes(&world->claims.v[i]->spec.devices))
            return NULL;
    model_gather(world, arena, &all.pools);
    for (size_t i = 0; i < world->claims.n; i++)
        for (size_t j = 0; j < allocations[i].devices.n_results; j++) {
            struct given *given = dv_vec_add_in(&all.given, arena);

            given->result = &allocations[i].devices.results[j];
            given->claim = world->claims.v[i];
            given->task = i;
            given->device = find_device(&all, given->result);
            if (!given->device)
                return "a device that is not there";
            if (!find_request(given, given->result->request))
                return "a request that is not there";
        }
    for (size_t i = 0; !problem && i < all.given.n; i++) {
        problem = verify_one(&all, &all.given.v[i]);
        if (!problem)
            problem = verify_capacity(&all, &all.given.v[i]);
        if (!problem)
            problem = verify_counters(&all, &all.given.v[i]);
    }
    for (size_t i = 0; !problem && i < world->claims.n; i++)
        problem = verify_claim(&all, i, &allocations[i]);
    return problem;
}

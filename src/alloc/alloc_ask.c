/* alloc_ask.c - reads what claims ask for, once, before the search begins: requests and their
 * alternatives, their classes and selectors, and for requests of all devices which these are. A
 * mistake in a claim or class is found here, so that it is the same on every node. */
#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "alloc/search.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cel/cel.h"
#include "resource/resource.h"

static bool fail(struct dv_alloc_search *search, const struct dv_alloc_task *task, dv_str request,
                 const char *what)
{
    return dv_fail(search->err, DV_INVALID_ARGUMENT, "claim %.*s/%.*s, request %.*s: %s",
                   DV_FMT(task->claim->metadata.namespace), DV_FMT(task->claim->metadata.name),
                   DV_FMT(request), what);
}

/* ---- selectors ---- */

static bool add_selectors(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                          struct dv_alloc_want *want,
                          const struct dv_api_device_selector *selectors, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!selectors[i].cel)
            return fail(search, task, want->name,
                        "a selector without a CEL expression: written by a newer version?");
        if (dv_inventory_is_new_selector(search->inventory, selectors[i].cel->expression) &&
            !dv_search_charge(search, selectors[i].cel->expression.n * COST_COMPILED_BYTE))
            return false;
        want->selectors[want->n_selectors++] =
            dv_inventory_selector(search->inventory, selectors[i].cel->expression);
    }
    return true;
}

/* Whether the selector is true on the device. The evaluation may cost no more than what is left of
 * the search's own budget; when that ends it, the search gives up, and nothing is wrong with the
 * selector. */
static bool selector_matches(struct dv_alloc_search *search, struct dv_alloc_selector *selector,
                             struct dv_alloc_device *device, bool *matches)
{
    struct dv_cel_budget budget = {.is_cancelled = search->options->is_cancelled,
                                   .ctx = search->options->ctx};
    uint64_t left;
    bool is_ok;

    if (dv_selector_recall(selector, device, matches))
        return dv_search_charge(search, COST_SELECTOR);
    if (!dv_search_charge(search, COST_EVALUATION))
        return false;
    left = search->cost_max - search->cost;
    budget.cost_max = dv_u64_min(DV_CEL_COST_MAX, left);
    budget.work_max = dv_u64_min(DV_CEL_WORK_MAX, left + 1);
    is_ok =
        dv_selector_evaluate(search->inventory, selector, device, &budget, matches, search->err);
    if (!is_ok && ((budget.cost > budget.cost_max && budget.cost_max < DV_CEL_COST_MAX) ||
                   (budget.work > budget.work_max && budget.work_max < DV_CEL_WORK_MAX)))
        return dv_search_charge(search, left + 1); /* more than is left: the search gives up */
    search->cost += dv_u64_min(budget.cost, left) + dv_u64_min(budget.work, left);
    return is_ok;
}

bool dv_want_selects(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                     const struct dv_alloc_want *want, const struct dv_alloc_place *place,
                     bool *selects)
{
    struct dv_alloc_device *device = place->device;

    *selects = false;
    if (!search->inventory->features.binding_conditions && device->api->n_binding_conditions > 0)
        return true;
    for (size_t i = 0; i < want->n_selectors; i++) {
        bool matches;

        if (!selector_matches(search, want->selectors[i], device, &matches)) {
            if (search->gave_up)
                return false;
            if (i < want->n_class_selectors)
                return dv_wrap(search->err, "class %.*s: selector #%zu",
                               DV_FMT(want->class->metadata.name), i);
            return dv_wrap(search->err, "claim %.*s/%.*s, request %.*s: selector #%zu",
                           DV_FMT(task->claim->metadata.namespace),
                           DV_FMT(task->claim->metadata.name), DV_FMT(want->name),
                           i - want->n_class_selectors);
        }
        if (!matches)
            return true;
    }
    return dv_alloc_device_is_for(device, search->node, selects, search->err);
}

/* ---- all devices ---- */

static bool list_all(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                     struct dv_alloc_want *want)
{
    struct dv_alloc_node_view *view = search->view;
    DV_VEC(uint32_t) all = {0};

    for (size_t i = 0; i < view->n_pools; i++) {
        const struct dv_alloc_node_pool *pool = &view->pools[i];

        if (pool->state != DV_ALLOC_POOL_USABLE)
            return dv_fail(search->err, DV_FAILED_PRECONDITION,
                           "claim %.*s/%.*s, request %.*s: asks for all devices, but resource pool "
                           "%.*s is currently %s",
                           DV_FMT(task->claim->metadata.namespace),
                           DV_FMT(task->claim->metadata.name), DV_FMT(want->name),
                           DV_FMT(pool->pool->path),
                           pool->state == DV_ALLOC_POOL_INVALID ? "invalid" : "being updated");
    }
    for (uint32_t i = 0; i < view->n_places; i++) {
        bool selects;

        if (!dv_want_selects(search, task, want, &view->places[i], &selects))
            return false;
        if (!selects)
            continue;
        if (search->inventory->features.consumable_capacity &&
            !dv_capacity_fits(search, want, i, NULL))
            continue;
        *dv_vec_add_in(&all, search->arena) = i;
    }
    want->all = all.v;
    want->n_devices = all.n;
    return true;
}

/* ---- requests ---- */

static bool check_gates(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                        const struct dv_alloc_want *want,
                        const struct dv_api_exact_device_request *terms)
{
    const struct dv_alloc_features *features = &search->inventory->features;

    if (terms->capacity && !features->consumable_capacity)
        return fail(search, task, want->name,
                    "has capacity requests, but the DRAConsumableCapacity feature is disabled");
    if (terms->admin_access && !features->admin_access)
        return fail(search, task, want->name,
                    "admin access is requested, but the DRAAdminAccess feature is disabled");
    if (terms->device_class_name.n == 0)
        return fail(search, task, want->name,
                    "missing device class name (unsupported request type?)");
    return true;
}

static bool read_want(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                      const struct dv_api_exact_device_request *terms, struct dv_alloc_want *want)
{
    const struct dv_api_device_class *class;

    if (!check_gates(search, task, want, terms))
        return false;
    class = dv_inventory_class(search->inventory, terms->device_class_name);
    if (!class)
        return dv_fail(search->err, DV_NOT_FOUND,
                       "claim %.*s/%.*s, request %.*s: could not retrieve device class %.*s",
                       DV_FMT(task->claim->metadata.namespace), DV_FMT(task->claim->metadata.name),
                       DV_FMT(want->name), DV_FMT(terms->device_class_name));
    want->class = class;
    want->selectors = DV_NEW_ARRAY(search->arena, struct dv_alloc_selector *,
                                   class->spec.n_selectors + terms->n_selectors);
    if (!add_selectors(search, task, want, class->spec.selectors, class->spec.n_selectors))
        return false;
    want->n_class_selectors = want->n_selectors;
    if (!add_selectors(search, task, want, terms->selectors, terms->n_selectors))
        return false;
    want->is_admin = terms->admin_access && *terms->admin_access;
    want->tolerations = terms->tolerations;
    want->n_tolerations = terms->n_tolerations;
    want->capacity = terms->capacity;
    if (dv_str_eq(terms->allocation_mode, DV_STR("ExactCount"))) {
        want->n_devices = terms->count > 0 ? (uint64_t)terms->count : 0;
        return true;
    }
    if (!dv_str_eq(terms->allocation_mode, DV_STR("All")))
        return fail(search, task, want->name, "unsupported count mode");
    want->takes_all = true;
    return list_all(search, task, want);
}

static bool read_ask(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                     const struct dv_api_device_request *api, struct dv_alloc_ask *ask)
{
    ask->api = api;
    ask->has_alternatives = api->n_first_available > 0;
    if (!ask->has_alternatives) {
        static const struct dv_api_exact_device_request nothing;

        ask->n_wants = 1;
        ask->wants = DV_NEW(search->arena, struct dv_alloc_want);
        ask->wants[0].name = api->name;
        return read_want(search, task, api->exactly ? api->exactly : &nothing, &ask->wants[0]);
    }
    if (!search->inventory->features.prioritized_list)
        return fail(search, task, api->name,
                    "has subrequests, but the DRAPrioritizedList feature is disabled");
    ask->n_wants = api->n_first_available;
    ask->wants = DV_NEW_ARRAY(search->arena, struct dv_alloc_want, ask->n_wants);
    for (size_t i = 0; i < ask->n_wants; i++) {
        const struct dv_api_exact_device_request terms =
            dv_alternative_as_request(&api->first_available[i]);

        ask->wants[i].name = dv_str_printf(search->arena, "%.*s/%.*s", DV_FMT(api->name),
                                           DV_FMT(api->first_available[i].name));
        if (!read_want(search, task, &terms, &ask->wants[i]))
            return false;
    }
    return true;
}

/* ---- claims ---- */

/* Counts how many devices the claim needs at least and could need at most, and makes room for them:
 * one that needs more than the API allows in a claim is refused before anything is searched. */
static bool count(struct dv_alloc_search *search, struct dv_alloc_task *task)
{
    uint64_t n_min = 0;
    uint64_t n_max = 0;

    for (size_t i = 0; i < task->n_asks; i++) {
        const struct dv_alloc_ask *ask = &task->asks[i];
        uint64_t least = ask->wants[0].n_devices;
        uint64_t most = least;

        for (size_t j = 1; j < ask->n_wants; j++) {
            uint64_t n = ask->wants[j].n_devices;

            least = n < least ? n : least;
            most = n > most ? n : most;
        }
        n_min = n_min + least < n_min ? UINT64_MAX : n_min + least;
        n_max = n_max + most < n_max ? UINT64_MAX : n_max + most;
    }
    if (n_min > DV_ALLOC_RESULTS_MAX)
        return dv_fail(
            search->err, DV_INVALID_ARGUMENT,
            "claim %.*s/%.*s: asks for %llu devices, which exceeds the claim limit of %u",
            DV_FMT(task->claim->metadata.namespace), DV_FMT(task->claim->metadata.name),
            (unsigned long long)n_min, DV_ALLOC_RESULTS_MAX);
    task->n_max = n_max;
    n_max = dv_u64_min(n_max, DV_ALLOC_RESULTS_MAX);
    task->picks = DV_NEW_ARRAY(search->arena, struct dv_alloc_pick, n_max);
    task->rooms = DV_NEW_ARRAY(search->arena, struct dv_alloc_room, n_max);
    return true;
}

static bool read_constraints(struct dv_alloc_search *search, struct dv_alloc_task *task)
{
    const struct dv_api_device_claim *devices = &task->claim->spec.devices;

    task->constraints =
        DV_NEW_ARRAY(search->arena, struct dv_alloc_constraint, devices->n_constraints);
    for (size_t i = 0; i < devices->n_constraints; i++) {
        if (!dv_constraint_read(search, task, &devices->constraints[i], &task->constraints[i]))
            return false;
        task->n_constraints++;
    }
    return true;
}

static bool read_task(struct dv_alloc_search *search, const struct dv_api_resource_claim *claim,
                      struct dv_alloc_task *task)
{
    const struct dv_api_device_claim *devices = &claim->spec.devices;
    size_t n_wants = 0;

    task->claim = claim;
    task->asks = DV_NEW_ARRAY(search->arena, struct dv_alloc_ask, devices->n_requests);
    task->first_want = DV_NEW_ARRAY(search->arena, size_t, devices->n_requests + 1);
    for (size_t i = 0; i < devices->n_requests; i++) {
        if (!read_ask(search, task, &devices->requests[i], &task->asks[i]))
            return false;
        task->n_asks++;
        task->first_want[i] = n_wants;
        n_wants += task->asks[i].n_wants;
    }
    task->first_want[task->n_asks] = n_wants;
    return count(search, task) && read_constraints(search, task);
}

bool dv_search_read(struct dv_alloc_search *search,
                    const struct dv_api_resource_claim *const *claims, size_t n_claims)
{
    search->tasks = DV_NEW_ARRAY(search->arena, struct dv_alloc_task, n_claims);
    search->n_tasks = n_claims;
    for (size_t i = 0; i < n_claims; i++)
        if (!read_task(search, claims[i], &search->tasks[i]))
            return false;
    return true;
}

/* sched_hold.c - devices for those who are no pods: chosen from the same inventory, by the same
 * allocator, and held there until the claim that gets them shows them. Between the choice and the
 * write nobody else can choose them, because there is one inventory and one thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "cel/cel.h"
#include "cluster/cluster.h"
#include "resource/object_pool.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* What a search may cost here, on the loop: some 5 ms. A request that takes longer is refused. */
#define COST_MAX UINT64_C(500000)
/* What one choice may cost where devices are only counted: some 0.2 ms. */
#define COUNT_COST_MAX UINT64_C(20000)
#define SHOWN_MAX 1000u

static void make_share_id(void *ctx, char text[DV_UUID_BYTES])
{
    (void)ctx;
    (void)dv_random_uuid(text);
}

bool dv_sched_can_be_asked(const struct dv_sched *sched, struct dv_err *err)
{
    if (sched->is_closing || sched->n_unsynced > 0 || dv_sched_slices_are_behind(sched) ||
        dv_inventory_is_lent(sched->inventory))
        return dv_fail(err, DV_UNAVAILABLE, "the scheduler is busy");
    return true;
}

/* Returns the node if the inventory can be asked now; otherwise devices_changed tells when to try
 * again. */
static const struct dv_sched_node *ready_node(struct dv_sched *sched, dv_str name,
                                              struct dv_err *err)
{
    const struct dv_sched_node *node = dv_map_get(&sched->nodes_by_name, name);

    if (!dv_sched_can_be_asked(sched, err))
        return NULL;
    dv_sched_inventory_used(sched);
    if (node && node->object)
        return node;
    (void)dv_fail(err, DV_UNAVAILABLE, "node %.*s is not in the API yet", DV_FMT(name));
    return NULL;
}

static struct dv_alloc_node place_of(const struct dv_sched_node *node)
{
    const struct dv_api_object_meta *meta = node->object->meta;

    return (struct dv_alloc_node){
        .name = node->name, .labels = meta->labels, .n_labels = meta->n_labels};
}

static enum dv_sched_answer ask(struct dv_inventory *inventory, const struct dv_sched_node *node,
                                const struct dv_api_resource_claim *claim, struct dv_arena *arena,
                                struct dv_api_allocation_result *allocation, struct dv_err *err)
{
    const struct dv_alloc_node where = place_of(node);
    const struct dv_alloc_options options = {.cost_max = COST_MAX, .share_id = make_share_id};
    struct dv_alloc_result result = {0};
    struct dv_alloc_miss miss = {0};

    dv_allocate(inventory, &where, &claim, 1, &options, arena, &result, err);
    switch (result.outcome) {
    case DV_ALLOC_DONE:
        *allocation = result.allocations[0];
        return DV_SCHED_HELD;
    case DV_ALLOC_NONE:
        dv_alloc_miss(inventory, &where, &claim, 1, &options, arena, &miss);
        (void)dv_fail(err, DV_FAILED_PRECONDITION, "%.*s",
                      DV_FMT(miss.text.n > 0 ? miss.text : DV_STR("no devices that fit")));
        return DV_SCHED_NOT_NOW;
    case DV_ALLOC_GAVE_UP:
        (void)dv_fail(err, DV_RESOURCE_EXHAUSTED,
                      "the search for devices was given up at its limit of cost: simplify the "
                      "selectors or ask for less");
        return DV_SCHED_NEVER;
    case DV_ALLOC_FAILED:
    case DV_ALLOC_NODE_FAILED:
        break;
    }
    return DV_SCHED_NEVER;
}

enum dv_sched_answer dv_sched_hold(struct dv_sched *sched, dv_str node_name,
                                   const struct dv_api_resource_claim *claim,
                                   struct dv_arena *arena,
                                   struct dv_api_allocation_result *allocation, struct dv_err *err)
{
    const struct dv_sched_node *node = ready_node(sched, node_name, err);
    enum dv_sched_answer answer;

    if (!node)
        return DV_SCHED_BUSY;
    answer = ask(sched->inventory, node, claim, arena, allocation, err);
    if (answer == DV_SCHED_HELD)
        dv_inventory_hold(sched->inventory, allocation,
                          dv_sched_key(sched, claim->metadata.namespace, claim->metadata.name));
    return answer;
}

void dv_sched_let_go(struct dv_sched *sched, const struct dv_api_allocation_result *allocation)
{
    if (sched->is_closing)
        return;
    dv_inventory_release(sched->inventory, allocation);
    for (size_t i = 0; i < allocation->devices.n_results; i++)
        dv_sched_pool_improved(sched, allocation->devices.results[i].driver,
                               allocation->devices.results[i].pool);
}

/* False without a look at the slice, which may be packed, for most of other nodes. */
static bool may_be_for(const struct dv_sched_slice *slice, dv_str node)
{
    return slice->is_wide || dv_str_eq(slice->pool->node, node);
}

static const struct dv_api_resource_slice_spec *spec_of(const struct dv_sched_slice *slice)
{
    const struct dv_api_resource_slice *value = dv_object_unpack(slice->object)->value;

    return &value->spec;
}

static bool is_for_node(const struct dv_api_resource_slice_spec *spec, dv_str node)
{
    return spec->node_name.n == 0 || dv_str_eq(spec->node_name, node);
}

static void add_class(struct dv_inventory *inventory, struct dv_view *classes, dv_str name)
{
    struct dv_object *class = dv_view_get(classes, DV_STR(""), name);

    if (class)
        dv_inventory_set_class(inventory, class);
}

enum dv_sched_answer dv_sched_would_do(struct dv_sched *sched, dv_str node_name,
                                       const struct dv_api_resource_claim *claim,
                                       struct dv_err *err)
{
    const struct dv_sched_node *node = ready_node(sched, node_name, err);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_allocation_result allocation;
    const struct dv_map_entry *entry;
    struct dv_inventory *inventory;
    enum dv_sched_answer answer;

    if (!node)
        return DV_SCHED_BUSY;
    inventory = dv_sched_new_inventory(sched->options.gates);
    for (size_t at = 0; (entry = dv_map_next(&sched->slices, &at));) {
        const struct dv_sched_slice *slice = entry->value;

        if (may_be_for(slice, node_name) && is_for_node(spec_of(slice), node_name))
            (void)dv_inventory_add_slice(inventory, slice->object);
    }
    for (size_t i = 0; i < claim->spec.devices.n_requests; i++)
        if (claim->spec.devices.requests[i].exactly)
            add_class(inventory, sched->views[DV_SCHED_VIEW_CLASSES],
                      claim->spec.devices.requests[i].exactly->device_class_name);
    answer = ask(inventory, node, claim, arena, &allocation, err);
    dv_inventory_free(inventory);
    return answer == DV_SCHED_NOT_NOW ? DV_SCHED_NEVER : answer;
}

/* ---- what there is ---- */

/* Whether so many devices can be had for the first of the claim's requests, without the others. */
static bool has_so_many(struct dv_inventory *inventory, const struct dv_sched_node *node,
                        const struct dv_api_resource_claim *claim, uint64_t n)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_alloc_options options = {.cost_max = COUNT_COST_MAX, .share_id = make_share_id};
    const struct dv_alloc_node where = place_of(node);
    struct dv_api_exact_device_request exactly = *claim->spec.devices.requests[0].exactly;
    struct dv_api_device_request request = claim->spec.devices.requests[0];
    struct dv_api_resource_claim asked = *claim;
    const struct dv_api_resource_claim *const claims[] = {&asked};
    struct dv_alloc_result result = {0};
    struct dv_err ignored; /* what cannot be found within the cost counts as not free */

    exactly.count = (int64_t)n;
    request.exactly = &exactly;
    asked.spec.devices.requests = &request;
    asked.spec.devices.n_requests = 1;
    for (size_t i = 0; i < asked.spec.devices.n_constraints; i++)
        if (asked.spec.devices.constraints[i].n_requests == 0 ||
            !dv_str_eq(asked.spec.devices.constraints[i].requests[0], request.name))
            asked.spec.devices.n_constraints = i; /* of the first request: they stand first */
    dv_allocate(inventory, &where, claims, 1, &options, arena, &result, &ignored);
    return result.outcome == DV_ALLOC_DONE;
}

bool dv_sched_count_free(struct dv_sched *sched, dv_str node_name,
                         const struct dv_api_resource_claim *claim, uint64_t *n)
{
    struct dv_err busy; /* told by the result */
    const struct dv_sched_node *node = ready_node(sched, node_name, &busy);
    uint64_t known = 0;
    uint64_t more;

    if (!node || claim->spec.devices.n_requests == 0 || !claim->spec.devices.requests[0].exactly)
        return false;
    more = (uint64_t)claim->spec.devices.requests[0].exactly->count + 1;
    /* `known` can be had, `more` cannot, or is more than is wanted */
    while (more - known > 1) {
        uint64_t middle = known + (more - known) / 2;

        if (has_so_many(sched->inventory, node, claim, middle))
            known = middle;
        else
            more = middle;
    }
    *n = known;
    return true;
}

struct looking {
    struct dv_arena *arena;
    struct dv_arena *scratch;
    struct dv_cel_expr **selectors;
    size_t n_selectors;
    size_t n_shown;
};

static bool is_of_class(struct looking *looking, dv_str driver, const struct dv_api_device *device)
{
    struct dv_cel_device *seen = dv_alloc_cel_device(device, driver, false, looking->scratch);
    bool is_match = true;

    for (size_t i = 0; i < looking->n_selectors && is_match; i++) {
        struct dv_cel_budget budget = {.cost_max = DV_CEL_COST_MAX};
        struct dv_err ignored; /* a device on which a selector fails is none of the class */

        if (!dv_cel_eval(looking->selectors[i], seen, &budget, looking->scratch, &is_match,
                         &ignored))
            is_match = false;
    }
    dv_arena_reset(looking->scratch);
    return is_match;
}

static void read_selectors(struct looking *looking, const struct dv_api_device_class *class)
{
    looking->selectors =
        DV_NEW_ARRAY(looking->arena, struct dv_cel_expr *, class->spec.n_selectors);
    for (size_t i = 0; i < class->spec.n_selectors; i++) {
        const struct dv_api_cel_device_selector *cel = class->spec.selectors[i].cel;
        struct dv_err ignored; /* one that does not compile is told when a claim uses the class */
        struct dv_cel_expr *expr =
            cel ? dv_cel_compile(cel->expression, NULL, looking->arena, &ignored) : NULL;

        if (expr)
            looking->selectors[looking->n_selectors++] = expr;
    }
}

bool dv_sched_each_of_class(struct dv_sched *sched, dv_str node, dv_str name,
                            void (*see)(void *ctx, const struct dv_api_resource_slice_spec *slice,
                                        const struct dv_api_device *device),
                            void *ctx)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct looking looking = {.arena = arena, .scratch = scratch};
    struct dv_object *class = dv_view_get(sched->views[DV_SCHED_VIEW_CLASSES], DV_STR(""), name);
    const struct dv_map_entry *entry;

    if (!class)
        return false;
    read_selectors(&looking, class->value);
    for (size_t at = 0; (entry = dv_map_next(&sched->slices, &at));) {
        const struct dv_sched_slice *slice = entry->value;
        const struct dv_api_resource_slice_spec *spec;

        if (!may_be_for(slice, node))
            continue;
        spec = spec_of(slice);
        if (!is_for_node(spec, node))
            continue;
        for (size_t i = 0; i < spec->n_devices && looking.n_shown < SHOWN_MAX; i++)
            if (is_of_class(&looking, spec->driver, &spec->devices[i])) {
                see(ctx, spec, &spec->devices[i]);
                looking.n_shown++;
            }
    }
    return true;
}

void dv_sched_each_class(const struct dv_sched *sched,
                         void (*see)(void *ctx, const struct dv_api_device_class *class), void *ctx)
{
    const struct dv_object *object;

    for (size_t at = 0; (object = dv_view_next(sched->views[DV_SCHED_VIEW_CLASSES], &at));)
        see(ctx, object->value);
}

bool dv_sched_has_class(const struct dv_sched *sched, dv_str class)
{
    return dv_view_get(sched->views[DV_SCHED_VIEW_CLASSES], DV_STR(""), class) != NULL;
}

/* Asks the view and not the inventory, which may be lent. */
dv_str dv_sched_class_serving(const struct dv_sched *sched, dv_str resource)
{
    const dv_str prefix = DV_STR(DV_ALLOC_EXTENDED_PREFIX);
    const struct dv_api_device_class *found = NULL;
    const struct dv_object *object;

    if (!(sched->options.gates & DV_GATE_EXTENDED_RESOURCE))
        return DV_STR("");
    if (dv_str_starts_with(resource, prefix)) {
        dv_str name = dv_str_slice(resource, prefix.n, resource.n);

        return dv_sched_has_class(sched, name) ? name : DV_STR("");
    }
    for (size_t at = 0; (object = dv_view_next(sched->views[DV_SCHED_VIEW_CLASSES], &at));) {
        const struct dv_api_device_class *class = object->value;

        if (dv_str_eq(class->spec.extended_resource_name, resource) && resource.n > 0 &&
            (!found || dv_class_serves_before(class, found)))
            found = class;
    }
    return found ? found->metadata.name : DV_STR("");
}

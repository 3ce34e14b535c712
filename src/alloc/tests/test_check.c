/* test_check.c - all that must hold of a world, whatever it is. */
#include "alloc/alloc.h"
#include "alloc/tests/test_alloc_model.h"
#include "alloc/tests/test_alloc_world.h"
#include "alloc/tests/test_verify.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"

/* The one thing that is counted after it was done: taking a device. */
#define PIECE_COST_MAX 10000u

static struct dv_api_allocation_result without_shares(const struct dv_api_allocation_result *from,
                                                      struct dv_arena *arena)
{
    struct dv_api_allocation_result copy = *from;

    copy.devices.results = DV_NEW_ARRAY(arena, struct dv_api_device_request_allocation_result,
                                        from->devices.n_results);
    for (size_t i = 0; i < from->devices.n_results; i++) {
        copy.devices.results[i] = from->devices.results[i];
        if (copy.devices.results[i].share_id.p)
            copy.devices.results[i].share_id = DV_STR("share");
    }
    return copy;
}

bool same_results(const struct world *world, const struct dv_alloc_result *a,
                  const struct dv_alloc_result *b, struct dv_arena *arena)
{
    if (a->outcome != b->outcome)
        return false;
    for (size_t i = 0; a->outcome == DV_ALLOC_DONE && i < world->claims.n; i++) {
        struct dv_api_allocation_result left = without_shares(&a->allocations[i], arena);
        struct dv_api_allocation_result right = without_shares(&b->allocations[i], arena);

        if (!dv_message_eq(&dv_message_allocation_result, &left, &right))
            return false;
    }
    return true;
}

static void allocate(struct dv_inventory *inventory, const struct world *world,
                     uint64_t n_steps_max, struct dv_arena *arena, struct dv_alloc_result *result)
{
    struct dv_alloc_options options = {.n_steps_max = n_steps_max};
    struct dv_err err = {0};

    dv_allocate(inventory, &world->node, world->claims.v, world->claims.n, &options, arena, result,
                &err);
}

/* ---- the model ---- */

static const char *compare(const struct world *world, const struct dv_alloc_result *result,
                           const struct model_result *model)
{
    size_t at = 0;

    if (model->outcome == DV_ALLOC_GAVE_UP || result->outcome == DV_ALLOC_GAVE_UP)
        return NULL;
    if (model->outcome == DV_ALLOC_DONE && result->outcome == DV_ALLOC_FAILED)
        return NULL; /* a result that cannot be written: the model does not write any */
    if (model->outcome != result->outcome)
        return "another outcome than the model's";
    for (size_t i = 0; result->outcome == DV_ALLOC_DONE && i < world->claims.n; i++)
        for (size_t j = 0; j < result->allocations[i].devices.n_results; j++, at++) {
            const struct dv_api_device_request_allocation_result *got =
                &result->allocations[i].devices.results[j];
            const struct model_pick *want = &model->picks[at];

            if (at == model->n_picks || want->claim != i ||
                !dv_str_eq(want->request, got->request) ||
                !dv_str_eq(want->device->api->name, got->device) ||
                !dv_str_eq(want->device->spec->pool.name, got->pool) ||
                !dv_str_eq(want->device->spec->driver, got->driver))
                return "another device than the model's";
        }
    return at == model->n_picks || result->outcome != DV_ALLOC_DONE ? NULL : "not all devices";
}

/* ---- the inventory ---- */

static void rest(struct dv_inventory *inventory)
{
    while (dv_inventory_rest(inventory))
        continue;
}

/* Comes to the same inventory by a longer way: with slices that go and come again, classes that are
 * replaced, devices that are held for a while, questions and rests in between. */
static struct dv_inventory *longer_way(const struct world *world, struct dv_arena *arena)
{
    struct dv_inventory *inventory = dv_inventory_new(&world->features);
    struct dv_inventory_slice **slices =
        DV_NEW_ARRAY(arena, struct dv_inventory_slice *, world->slices.n);
    struct dv_alloc_result ignored;
    size_t half = world->slices.n / 2;

    for (size_t i = 0; i < world->classes.n; i++)
        dv_inventory_set_class(inventory, world->classes.v[i]);
    for (size_t i = 0; i < world->held.n; i++)
        world_hold(inventory, &world->held.v[i], DV_STR("default/first"));
    for (size_t i = 0; i < world->slices.n; i++)
        slices[i] = dv_inventory_add_slice(inventory, world->slices.v[i]);
    rest(inventory);
    allocate(inventory, world, 1000, arena, &ignored);
    for (size_t i = half; i < world->slices.n; i++)
        dv_inventory_remove_slice(inventory, slices[i]);
    allocate(inventory, world, 1000, arena, &ignored);
    for (size_t i = 0; ignored.outcome == DV_ALLOC_DONE && i < world->claims.n; i++)
        dv_inventory_hold(inventory, &ignored.allocations[i], DV_STR("default/passing"));
    for (size_t i = 0; i < world->held.n; i++)
        world_release(inventory, &world->held.v[i]);
    for (size_t i = half; i < world->slices.n; i++)
        (void)dv_inventory_add_slice(inventory, world->slices.v[i]);
    for (size_t i = 0; i < world->classes.n; i++) {
        dv_inventory_remove_class(inventory, world->classes.v[i]->meta->name);
        dv_inventory_set_class(inventory, world->classes.v[i]);
    }
    for (size_t i = 0; ignored.outcome == DV_ALLOC_DONE && i < world->claims.n; i++)
        dv_inventory_release(inventory, &ignored.allocations[i]);
    for (size_t i = world->held.n; i > 0; i--)
        world_hold(inventory, &world->held.v[i - 1], DV_STR("default/second"));
    dv_inventory_forget_node(inventory, DV_STR("node-2"));
    rest(inventory);
    return inventory;
}

/* ---- explanations ---- */

/* Whether something is said against the request: not enough fit, or not for want of devices. */
static bool is_explained(const struct dv_why_request *request)
{
    return request->n_fitting == 0 || request->n_fitting < request->n_wanted;
}

/* Constraints that remember what was tried: then it may be the order that stands in the way. */
static bool has_traces(const struct world *world)
{
    for (size_t i = 0; i < world->claims.n; i++) {
        const struct dv_api_device_claim *devices = &world->claims.v[i]->spec.devices;

        for (size_t j = 0; j < devices->n_constraints; j++)
            if (world->features.list_attributes || devices->constraints[j].distinct_attribute.p)
                return true;
    }
    return false;
}

static const char *check_explanation(struct dv_inventory *inventory, const struct world *world,
                                     const struct dv_alloc_result *result, struct dv_arena *arena)
{
    struct dv_explanation explanation;
    bool is_stuck = false;

    dv_alloc_explain(inventory, &world->node, world->claims.v, world->claims.n,
                     &(struct dv_alloc_options){0}, arena, &explanation);
    if (result->outcome != DV_ALLOC_GAVE_UP && explanation.outcome != result->outcome)
        return "an explanation of something else";
    if (explanation.summary.n == 0)
        return "an explanation without a word";
    for (size_t i = 0; i < explanation.n_requests; i++) {
        const struct dv_why_request *request = &explanation.requests[i];

        is_stuck = is_stuck || (request->is_stuck && is_explained(request));
        for (size_t j = 0; j < request->n_devices; j++)
            if (request->devices[j].text.n == 0 ||
                (j > 0 && request->devices[j].why < request->devices[j - 1].why))
                return "a device that is not explained, or not in its place";
    }
    if (explanation.outcome == DV_ALLOC_NONE && !is_stuck && !has_traces(world))
        return "nothing speaks against it, but it cannot be";
    return NULL;
}

/* ---- in pieces ---- */

/* Tries with hardly any budget, then with more and more: how often it was given up before, and
 * where, must not show. */
static const char *check_pieces(const struct world *world, const struct dv_alloc_result *result,
                                uint64_t n_steps_max, struct dv_arena *arena)
{
    struct dv_inventory *inventory = world_inventory(world);
    struct dv_alloc_options options = {.n_steps_max = n_steps_max, .cost_max = 1};
    struct dv_alloc_result piece = {.outcome = DV_ALLOC_GAVE_UP};
    const char *problem = NULL;

    while (!problem && piece.outcome == DV_ALLOC_GAVE_UP && options.cost_max < DV_ALLOC_COST_MAX) {
        struct dv_err err = {0};

        dv_allocate(inventory, &world->node, world->claims.v, world->claims.n, &options, arena,
                    &piece, &err);
        if (piece.cost > options.cost_max + PIECE_COST_MAX)
            problem = "more was spent than there was";
        options.cost_max += options.cost_max / 8 + 1;
    }
    if (!problem && !same_results(world, result, &piece, arena))
        problem = "another result after it was given up";
    dv_inventory_free(inventory);
    return problem;
}

const char *check_world(const struct world *world, uint64_t n_steps_max)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_inventory *inventory = world_inventory(world);
    struct dv_alloc_result result;
    struct dv_alloc_result again;
    struct model_result model;
    const char *problem = NULL;

    allocate(inventory, world, n_steps_max, arena, &result);
    if (result.outcome == DV_ALLOC_DONE)
        problem = verify(world, result.allocations, arena);
    if (!problem) {
        model_allocate(world, n_steps_max, arena, &model);
        problem = compare(world, &result, &model);
    }
    if (!problem)
        problem = check_explanation(inventory, world, &result, arena);
    allocate(inventory, world, n_steps_max, arena, &again);
    if (!problem && !same_results(world, &result, &again, arena))
        problem = "another result the second time";
    dv_inventory_free(inventory);
    if (problem)
        return problem;
    inventory = longer_way(world, arena);
    allocate(inventory, world, n_steps_max, arena, &again);
    if (!same_results(world, &result, &again, arena))
        problem = "another result from the same things in another order";
    dv_inventory_free(inventory);
    if (!problem && result.outcome != DV_ALLOC_GAVE_UP)
        problem = check_pieces(world, &result, n_steps_max, arena);
    return problem;
}

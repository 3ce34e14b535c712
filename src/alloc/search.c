/* search.c - depth first, and the first solution wins: the reference's order, step by step.
 *
 * Branches that cannot hold a solution are left out: by counting what is left, and by trying only
 * one of devices that nothing tells apart. Neither changes which solution is found. */
#include <stdint.h>

#include "alloc/alloc.h"
#include "alloc/inside.h"
#include "alloc/search.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"

/* About a second of the worst kind of steps. */
#define STEPS_MAX 1000000u
#define STEPS_BETWEEN_QUESTIONS 1000u
/* Kinds of devices that are remembered as tried, at one place of the search. */
#define TWINS_MAX 16u

enum found {
    FOUND,
    FOUND_NOT,
    FOUND_LIMIT, /* the claim would get more devices than it may have */
    FOUND_ERROR,
};

/* Where the search stands. */
struct at {
    size_t task;
    size_t ask;
    size_t want;
    uint64_t device; /* how many of this want are taken */
    uint32_t start;  /* the first place that may be tried */
    bool is_inside;  /* `want` has been chosen */
};

static enum found walk(struct search *search, struct at at);

/* ---- counting ---- */

enum could {
    COULD,
    COULD_NOT,
    COULD_FAIL, /* a selector fails on it: so does the search, if it gets there */
};

/* Whether the place could be taken now, as far as can be told without taking it. */
static enum could could_take(struct search *search, const struct task *task, size_t ask,
                             size_t want, uint32_t place)
{
    const struct want *wanted = &task->asks[ask].wants[want];
    const struct place *at = &search->view->places[place];
    struct dv_err before = *search->err;
    bool selects;

    if (!dv_place_is_free(search, task, wanted, place))
        return COULD_NOT;
    if (!dv_want_selects(search, task, wanted, at, &selects)) {
        *search->err = before;
        return COULD_FAIL;
    }
    if (!selects || dv_want_repelled(search, wanted, at->device))
        return COULD_NOT;
    for (size_t i = 0; i < task->n_constraints; i++)
        if (!task->constraints[i].is_distinct &&
            !dv_constraint_allows(search, &task->constraints[i], task, ask, want, at->device))
            return COULD_NOT;
    return COULD;
}

/* Whether there are no longer enough places for the rest of this want. */
static bool lacks_places(struct search *search, const struct task *task, const struct at *at)
{
    uint64_t n_needed = task->asks[at->ask].wants[at->want].n_devices - at->device;

    for (uint32_t i = at->start; i < search->view->n_places && n_needed > 0; i++)
        switch (could_take(search, task, at->ask, at->want, i)) {
        case COULD:
            n_needed--;
            break;
        case COULD_FAIL:
            return false; /* it is for the search to run into it */
        case COULD_NOT:
            break;
        }
    return n_needed > 0;
}

/* The same for all requests to come that ask for the same devices. */
static bool lacks_places_for_all(struct search *search, const struct task *task,
                                 const struct at *at)
{
    uint64_t n_needed = 0;
    size_t n_asks = 0;

    for (size_t i = at->ask; i < task->n_asks; i++)
        if (task->asks[i].like == task->asks[at->ask].like) {
            n_needed += task->asks[i].wants[0].n_devices;
            n_asks++;
        }
    if (n_asks < 2)
        return false;
    for (uint32_t i = 0; i < search->view->n_places && n_needed > 0; i++) {
        enum could could = could_take(search, task, at->ask, at->want, i);

        if (could == COULD_FAIL ||
            (could == COULD && search->view->places[i].device->is_multi)) /* serves each of them */
            return false;
        n_needed -= could == COULD;
    }
    return n_needed > 0;
}

static bool is_hopeless(struct search *search, const struct task *task, const struct at *at)
{
    if (!task->can_prune || search->furthest || task->asks[at->ask].wants[at->want].is_admin)
        return false;
    return lacks_places(search, task, at) ||
           (at->device == 0 && !at->is_inside && lacks_places_for_all(search, task, at));
}

/* ---- twins ---- */

struct twins {
    uint32_t v[TWINS_MAX];
    size_t n;
};

/* Whether nothing but its name tells the device from others that look the same. */
static bool has_twins(const struct want *want, const struct device *device)
{
    return !want->is_admin && !device->is_multi && device->ident->n_shares == 0;
}

static bool was_tried(const struct twins *twins, const struct want *want,
                      const struct device *device)
{
    if (!has_twins(want, device))
        return false;
    for (size_t i = 0; i < twins->n; i++)
        if (twins->v[i] == device->twin)
            return true;
    return false;
}

static void remember(struct twins *twins, const struct want *want, const struct device *device)
{
    if (twins->n < TWINS_MAX && has_twins(want, device))
        twins->v[twins->n++] = device->twin;
}

/* ---- the search ---- */

static bool may_go_on(struct search *search)
{
    search->n_steps++;
    if (search->n_steps > search->n_steps_max) {
        search->gave_up = true;
        return dv_fail(
            search->err, DV_RESOURCE_EXHAUSTED,
            "gave up after %llu steps: neither a solution nor a proof that there is none",
            (unsigned long long)search->n_steps_max);
    }
    if (search->options->is_cancelled && search->n_steps % STEPS_BETWEEN_QUESTIONS == 0 &&
        search->options->is_cancelled(search->options->ctx)) {
        search->gave_up = true;
        return dv_fail(search->err, DV_CANCELLED, "filter operation aborted");
    }
    return true;
}

static enum found try_alternatives(struct search *search, struct at at)
{
    struct ask *ask = &search->tasks[at.task].asks[at.ask];
    bool is_all_limit = true;

    for (size_t i = 0; i < ask->n_wants; i++) {
        struct at next = at;
        enum found found;

        next.want = i;
        next.is_inside = true;
        next.start = 0;
        found = walk(search, next);
        if (found == FOUND)
            ask->chosen = i;
        if (found == FOUND || found == FOUND_ERROR)
            return found;
        if (found != FOUND_LIMIT)
            is_all_limit = false;
    }
    return is_all_limit ? FOUND_LIMIT : FOUND_NOT;
}

static enum found try_all(struct search *search, struct at at)
{
    struct task *task = &search->tasks[at.task];
    const struct want *want = &task->asks[at.ask].wants[at.want];
    struct at next = at;
    enum took took = dv_take(search, task, at.ask, at.want, want->all[at.device], true);
    enum found found;

    if (took != TOOK)
        return took == TOOK_ERROR ? FOUND_ERROR : FOUND_NOT;
    next.device++;
    found = walk(search, next);
    if (found != FOUND)
        dv_untake(search, task);
    return found;
}

/* Takes the place if it can be, and goes on. */
static enum found try_place(struct search *search, struct at at, uint32_t place)
{
    struct task *task = &search->tasks[at.task];
    const struct want *want = &task->asks[at.ask].wants[at.want];
    struct at next = at;
    enum found found;
    bool selects;

    if (!dv_want_selects(search, task, want, &search->view->places[place], &selects))
        return FOUND_ERROR;
    if (!selects || (search->inventory->features.consumable_capacity &&
                     !dv_capacity_fits(search, want, place, NULL)))
        return FOUND_NOT;
    if (dv_take(search, task, at.ask, at.want, place, false) != TOOK)
        return FOUND_NOT;
    next.device++;
    next.start = place + 1;
    found = walk(search, next);
    if (found != FOUND)
        dv_untake(search, task);
    return found;
}

static enum found try_places(struct search *search, struct at at)
{
    const struct task *task = &search->tasks[at.task];
    const struct want *want = &task->asks[at.ask].wants[at.want];
    struct twins tried = {.n = 0};

    if (is_hopeless(search, task, &at))
        return FOUND_NOT;
    for (uint32_t i = at.start; i < search->view->n_places; i++) {
        const struct device *device = search->view->places[i].device;
        enum found found;

        if (!dv_place_is_free(search, task, want, i) || was_tried(&tried, want, device))
            continue;
        found = try_place(search, at, i);
        if (found != FOUND_NOT)
            return found;
        remember(&tried, want, device);
    }
    return FOUND_NOT;
}

/* Remembers how far it came. */
static void look_back(struct search *search, const struct at *at)
{
    struct furthest *furthest = search->furthest;
    size_t n = 0;

    for (size_t i = 0; i < search->n_tasks; i++)
        n += search->tasks[i].n_picks;
    if (furthest->is_set && n <= furthest->n_picks)
        return;
    furthest->is_set = true;
    furthest->n_picks = 0;
    furthest->task = at->task;
    furthest->ask = at->ask;
    furthest->want = at->want;
    for (size_t i = 0; i < search->n_tasks; i++)
        for (size_t j = 0; j < search->tasks[i].n_picks; j++) {
            furthest->tasks[furthest->n_picks] = i;
            furthest->picks[furthest->n_picks++] = search->tasks[i].picks[j];
        }
}

static enum found walk(struct search *search, struct at at)
{
    struct task *task;
    const struct want *want;

    if (!may_go_on(search))
        return FOUND_ERROR;
    if (at.task == search->n_tasks)
        return FOUND;
    task = &search->tasks[at.task];
    if (at.ask == task->n_asks) {
        enum found found = walk(search, (struct at){.task = at.task + 1});

        return found == FOUND_LIMIT ? FOUND_NOT : found;
    }
    if (task->asks[at.ask].has_alternatives && !at.is_inside)
        return try_alternatives(search, at);
    want = &task->asks[at.ask].wants[at.want];
    if (search->furthest)
        look_back(search, &at);
    if (want->takes_all && want->n_devices == 0)
        return FOUND_NOT;
    if (at.device >= want->n_devices)
        return walk(search, (struct at){.task = at.task, .ask = at.ask + 1});
    if (task->n_picks + (want->n_devices - at.device) > DV_ALLOC_RESULTS_MAX)
        return FOUND_LIMIT;
    return want->takes_all ? try_all(search, at) : try_places(search, at);
}

/* ---- the whole ---- */

static enum dv_alloc_outcome conclude(struct search *search, enum found found)
{
    switch (found) {
    case FOUND:
        return DV_ALLOC_DONE;
    case FOUND_ERROR:
        return search->gave_up ? DV_ALLOC_GAVE_UP : DV_ALLOC_FAILED;
    case FOUND_NOT:
    case FOUND_LIMIT:
        break;
    }
    if (!search->view->has_invalid)
        return DV_ALLOC_NONE;
    for (size_t i = 0; i < search->view->n_pools; i++) {
        const struct node_pool *pool = &search->view->pools[i];

        if (pool->state == POOL_INVALID) {
            (void)dv_fail(search->err, DV_FAILED_PRECONDITION,
                          "invalid resource pools were encountered: %.*s: %.*s",
                          DV_FMT(pool->pool->key), DV_FMT(pool->problem));
            break;
        }
    }
    return DV_ALLOC_NODE_FAILED;
}

bool dv_search_begin(struct search *search, const struct dv_api_resource_claim *const *claims,
                     size_t n_claims)
{
    search->view = dv_inventory_view(search->inventory, search->node, search->err);
    if (!search->view)
        return false;
    search->taken = DV_NEW_ARRAY(search->arena, struct taken, search->view->n_places);
    search->used = DV_NEW_ARRAY(search->arena, struct dv_quantity *, search->view->n_pools);
    return dv_search_read(search, claims, n_claims);
}

enum dv_alloc_outcome dv_search_run(struct search *search)
{
    return conclude(search, walk(search, (struct at){0}));
}

static enum dv_alloc_outcome run(struct search *search,
                                 const struct dv_api_resource_claim *const *claims, size_t n_claims,
                                 struct dv_alloc_result *result)
{
    enum dv_alloc_outcome outcome;

    if (!dv_search_begin(search, claims, n_claims))
        return DV_ALLOC_FAILED;
    outcome = dv_search_run(search);
    if (outcome != DV_ALLOC_DONE)
        return outcome;
    result->allocations = DV_NEW_ARRAY(search->arena, struct dv_api_allocation_result, n_claims);
    for (size_t i = 0; i < n_claims; i++)
        if (!dv_search_result(search, &search->tasks[i], &result->allocations[i]))
            return DV_ALLOC_FAILED;
    return DV_ALLOC_DONE;
}

void dv_allocate(struct dv_inventory *inventory, const struct dv_alloc_node *node,
                 const struct dv_api_resource_claim *const *claims, size_t n_claims,
                 const struct dv_alloc_options *options, struct dv_arena *arena,
                 struct dv_alloc_result *result, struct dv_err *err)
{
    struct search search = {
        .inventory = inventory,
        .node = node,
        .options = options,
        .n_steps_max = options->n_steps_max ? options->n_steps_max : STEPS_MAX,
        .arena = arena,
        .err = err,
    };

    *result = (struct dv_alloc_result){0};
    dv_inventory_trim_selectors(inventory);
    result->outcome = run(&search, claims, n_claims, result);
    result->n_steps = search.n_steps;
}

/* alloc_explain.c - explains why claims cannot be allocated on a node: for every request and every
 * device the first thing that speaks against it (why.c), the nearest miss first. The search is made
 * once more, without leaving anything out, to see how far it comes: what was taken by then is a
 * reason, too. */
#include <stdlib.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "alloc/search.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"

/* Enough steps to come as far as a search gets. An explanation does not need the proof that nothing
 * else would do, which takes most of the steps. */
#define EXPLAIN_STEPS_MAX 20000u
#define TEXT_BYTES_MAX 16384u
/* How many pools that other nodes publish as well are named: one is a mistake of a driver, and more
 * of them have the same cause. */
#define RIVALS_MAX 16u
/* The ceiling of an explanation: thousands of requests, each with a line for every device of a
 * large node, are not read by anyone. */
#define BYTES_MAX (256u << 20)

static const char *const names[] = {
    [DV_WHY_FITS] = "fits",
    [DV_WHY_CONSTRAINT] = "constraint",
    [DV_WHY_TAKEN_HERE] = "taken-here",
    [DV_WHY_COUNTER] = "counter",
    [DV_WHY_CAPACITY] = "capacity",
    [DV_WHY_TAINTED] = "tainted",
    [DV_WHY_TAKEN] = "taken",
    [DV_WHY_REQUEST_SELECTOR] = "request-selector",
    [DV_WHY_CLASS_SELECTOR] = "class-selector",
    [DV_WHY_SELECTOR_FAILS] = "selector-fails",
    [DV_WHY_OTHER_NODE] = "other-node",
    [DV_WHY_GATE] = "gate",
    [DV_WHY_POOL_UPDATING] = "pool-updating",
    [DV_WHY_POOL_INVALID] = "pool-invalid",
    [DV_WHY_POOL_OBSOLETE] = "pool-obsolete",
    [DV_WHY_POOL_RIVAL] = "pool-rival",
};

const char *dv_why_name(enum dv_why why)
{
    return names[why];
}

/* ---- one request ---- */

static int by_nearness(const void *a, const void *b)
{
    const struct dv_why_device *left = a;
    const struct dv_why_device *right = b;
    int order;

    if (left->why != right->why)
        return left->why < right->why ? -1 : 1;
    order = dv_str_cmp(left->driver, right->driver);
    if (order == 0)
        order = dv_str_cmp(left->pool, right->pool);
    return order ? order : dv_str_cmp(left->device, right->device);
}

static void explain_pool(const struct dv_alloc_search *search,
                         const struct dv_alloc_node_pool *pool, struct dv_why_device *device)
{
    device->driver = pool->pool->driver;
    device->pool = pool->pool->name;
    if (pool->state == DV_ALLOC_POOL_INVALID) {
        device->why = DV_WHY_POOL_INVALID;
        device->text = dv_str_printf(search->arena, "the pool contradicts itself: %.*s",
                                     DV_FMT(pool->problem));
    } else {
        device->why = DV_WHY_POOL_UPDATING;
        device->text = DV_STR("the pool is being updated: not all of its slices are there");
    }
}

static void explain_rivals(const struct dv_alloc_search *search, struct dv_why_request *request)
{
    struct dv_alloc_rival rivals[RIVALS_MAX];
    size_t n = dv_inventory_rivals(search->inventory, search->node->name, rivals, RIVALS_MAX);

    for (size_t i = 0; i < n; i++)
        request->devices[request->n_devices++] = (struct dv_why_device){
            .why = DV_WHY_POOL_RIVAL,
            .driver = rivals[i].own->pool->driver,
            .pool = rivals[i].own->pool->name,
            .text = dv_rival_print(&rivals[i], search->arena),
        };
}

static void explain_want(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                         size_t ask, size_t want, struct dv_why_request *request)
{
    struct dv_alloc_node_view *view = search->view;
    const struct dv_alloc_want *wanted = &task->asks[ask].wants[want];
    size_t n_max = view->n_places + view->n_pools + view->obsolete.n + RIVALS_MAX;

    request->claim =
        dv_str_printf(search->arena, "%.*s/%.*s", DV_FMT(task->claim->metadata.namespace),
                      DV_FMT(task->claim->metadata.name));
    request->request = wanted->name;
    request->n_wanted = wanted->n_devices;
    request->devices = DV_NEW_ARRAY(search->arena, struct dv_why_device, n_max);
    for (uint32_t i = 0; i < view->n_places; i++) {
        struct dv_why_device *device = &request->devices[request->n_devices++];
        device->driver = view->places[i].device->slice->pool->driver;
        device->pool = view->places[i].device->slice->pool->name;
        device->device = view->places[i].device->api->name;
        dv_why_explain(search, task, ask, want, i, device);
        request->n_fitting += device->why == DV_WHY_FITS;
    }
    for (size_t i = 0; i < view->n_pools; i++)
        if (view->pools[i].state != DV_ALLOC_POOL_USABLE)
            explain_pool(search, &view->pools[i], &request->devices[request->n_devices++]);
    for (size_t i = 0; i < view->obsolete.n; i++)
        request->devices[request->n_devices++] = (struct dv_why_device){
            .why = DV_WHY_POOL_OBSOLETE,
            .driver = view->obsolete.v[i].pool->driver,
            .pool = view->obsolete.v[i].pool->name,
            .text = DV_STR("a newer generation of the pool is being published"),
        };
    explain_rivals(search, request);
    qsort(request->devices, request->n_devices, sizeof(struct dv_why_device), by_nearness);
}

/* ---- the whole ---- */

/* Puts the search back to where it came furthest, so that why.c sees what was taken there. */
static void return_to(struct dv_alloc_search *search, const struct dv_alloc_furthest *furthest)
{
    dv_search_untake_all(search);
    for (size_t i = 0; i < furthest->n_picks; i++) {
        const struct dv_alloc_pick *pick = &furthest->picks[i];

        if (dv_take(search, &search->tasks[furthest->tasks[i]], pick->ask, pick->want, pick->place,
                    false) != DV_ALLOC_TOOK)
            /* A constraint refuses what it had allowed, because it keeps traces (bound.c): the
             * state so far has to do. */
            return;
    }
}

static dv_str summarize(const struct dv_alloc_search *search,
                        const struct dv_explanation *explanation)
{
    for (size_t i = 0; i < explanation->n_requests; i++) {
        const struct dv_why_request *request = &explanation->requests[i];
        size_t counts[DV_COUNT(names)] = {0};
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf = {0};
        bool is_first = true;

        if (!request->is_stuck)
            continue;
        dv_buf_init(&buf, TEXT_BYTES_MAX);
        dv_buf_printf(&buf, "claim %.*s, request %.*s: ", DV_FMT(request->claim),
                      DV_FMT(request->request));
        if (request->n_devices == 0) {
            dv_buf_add_c(&buf, "there are no devices on this node");
        } else {
            dv_buf_printf(&buf, "%llu wanted of %zu", (unsigned long long)request->n_wanted,
                          request->n_devices);
            for (size_t j = 0; j < request->n_devices; j++)
                counts[request->devices[j].why]++;
            for (size_t j = 0; j < DV_COUNT(names); j++)
                if (counts[j] > 0) {
                    dv_buf_printf(&buf, "%s%zu %s", is_first ? ": " : ", ", counts[j], names[j]);
                    is_first = false;
                }
        }
        return dv_str_copy(dv_buf_str(&buf), search->arena);
    }
    return DV_STR("no request stands in the way by itself: their combination does");
}

/* Whether the search came as far as this want, and no further. */
static bool is_stuck(const struct dv_alloc_search *search, const struct dv_alloc_spot *spot)
{
    const struct dv_alloc_furthest *furthest = search->furthest;

    if (!furthest->is_set || furthest->task != spot->task || furthest->ask != spot->ask)
        return false;
    if (furthest->want == spot->want)
        return true;
    for (size_t i = 0; i < furthest->n_picks; i++)
        if (furthest->tasks[i] == spot->task && furthest->picks[i].ask == spot->ask)
            return false; /* another alternative of the request came further */
    return true;
}

static void explain_requests(struct dv_alloc_search *search, struct dv_explanation *explanation)
{
    size_t n = 0;

    for (size_t i = 0; i < search->n_tasks; i++)
        n += search->tasks[i].first_want[search->tasks[i].n_asks];
    explanation->requests = DV_NEW_ARRAY(search->arena, struct dv_why_request, n);
    for (size_t i = 0; i < search->n_tasks; i++)
        for (size_t j = 0; j < search->tasks[i].n_asks; j++)
            for (size_t k = 0; k < search->tasks[i].asks[j].n_wants; k++) {
                struct dv_why_request *request;

                if (dv_arena_size_bytes(search->arena) - search->bytes_before > BYTES_MAX)
                    return; /* longer than anyone would read */
                request = &explanation->requests[explanation->n_requests++];
                explain_want(search, &search->tasks[i], j, k, request);
                request->is_stuck = is_stuck(search, &(struct dv_alloc_spot){i, j, k, 0, 0});
            }
}

struct dv_alloc_search dv_explain_start(struct dv_inventory *inventory,
                                        const struct dv_alloc_node *node,
                                        const struct dv_alloc_options *options,
                                        struct dv_arena *arena)
{
    return (struct dv_alloc_search){
        .inventory = inventory,
        .node = node,
        .options = options,
        .arena = arena,
        .bytes_before = dv_arena_size_bytes(arena),
        .cost_max = options->cost_max ? options->cost_max : DV_ALLOC_COST_MAX,
    };
}

bool dv_explain_search(struct dv_alloc_search *search,
                       const struct dv_api_resource_claim *const *claims, size_t n_claims)
{
    *search->furthest = (struct dv_alloc_furthest){0};
    search->n_steps = 0;
    search->n_steps_max = EXPLAIN_STEPS_MAX;
    if (!dv_search_begin(search, claims, n_claims))
        return false;            /* the claims are at fault themselves, or the budget is spent */
    (void)dv_search_run(search); /* its outcome is known; only how far it came counts */
    return_to(search, search->furthest);
    return true;
}

bool dv_explain_stuck(struct dv_alloc_search *search, struct dv_why_request *request,
                      size_t *n_passed)
{
    size_t n = 0;

    for (size_t i = 0; i < search->n_tasks; i++)
        for (size_t j = 0; j < search->tasks[i].n_asks; j++)
            for (size_t k = 0; k < search->tasks[i].asks[j].n_wants; k++, n++) {
                if (!is_stuck(search, &(struct dv_alloc_spot){i, j, k, 0, 0}))
                    continue;
                *n_passed = n;
                explain_want(search, &search->tasks[i], j, k, request);
                return true;
            }
    return false;
}

void dv_alloc_explain(struct dv_inventory *inventory, const struct dv_alloc_node *node,
                      const struct dv_api_resource_claim *const *claims, size_t n_claims,
                      const struct dv_alloc_options *options, struct dv_arena *arena,
                      struct dv_explanation *explanation)
{
    struct dv_alloc_options half = *options;
    struct dv_alloc_furthest furthest;
    struct dv_alloc_result result;
    struct dv_err err = {0};
    struct dv_err ignored = {0}; /* the outcome is told by the first search */
    struct dv_alloc_search search = dv_explain_start(inventory, node, options, arena);

    half.cost_max = search.cost_max / 2 + 1; /* the other half is for the explanation */
    dv_allocate(inventory, node, claims, n_claims, &half, arena, &result, &err);
    *explanation = (struct dv_explanation){.outcome = result.outcome, .cost = result.cost};
    search.cost = result.cost;
    if (result.outcome == DV_ALLOC_DONE) {
        explanation->summary = DV_STR("it can be allocated on this node");
        return;
    }
    search.furthest = &furthest;
    search.err = &ignored;
    if (dv_explain_search(&search, claims, n_claims))
        explain_requests(&search, explanation);
    explanation->cost = search.cost;
    explanation->summary = result.outcome == DV_ALLOC_NONE
                               ? summarize(&search, explanation)
                               : dv_str_copy(dv_str_from_c(err.msg), arena);
}

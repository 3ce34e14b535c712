/* bound.c - what the search may leave out.
 *
 * The search is the reference's, step by step, and what it finds first is the answer, an error
 * included. So a branch is left out only when the reference would find nothing in it either, and
 * would come out of it as it went in:
 *
 * - Nothing in it may fail: no selector on any place that could be tried, no constraint on a
 * request for all devices, no limit of results that ends a request early.
 * - Nothing in it may leave traces: with lists, a match constraint stays as narrow as it once was.
 * - Taking more must never make more possible: no counter or capacity is consumed negatively.
 *
 * Then counting is safe: what is taken, or against a constraint, stays so to the end of the branch.
 *
 * A twin of a device that led nowhere leads nowhere, for exchanging the two in a solution gives
 * another. This asks that the order of taking does not matter, which it does to a distinct
 * constraint on a request for several devices: only the last of them is remembered. */
#include <stdint.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "alloc/search.h"
#include "base/arena.h"
#include "base/err.h"
#include "number/number.h"

#define BITS 64u
/* ---- what may be left out ---- */

/* Finds the places that the want may take while nothing else is taken. False: looking at one of
 * them may fail, or taking it would give back instead of consuming; then nothing may be left
 * out. */
static bool find_eligible(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                          struct dv_alloc_want *want, const size_t flat)
{
    bool by_capacity = search->inventory->features.consumable_capacity;

    want->eligible = DV_NEW_ARRAY(search->arena, uint64_t, search->n_words);
    for (uint32_t i = 0; i < search->view->n_places; i++) {
        const struct dv_alloc_place *place = &search->view->places[i];
        bool is_eligible;

        if (!want->is_admin && place->device->ident->n_dedicated > 0)
            continue;
        if (!dv_want_selects(search, task, want, place, &is_eligible))
            return false;
        if (is_eligible && by_capacity) {
            if (dv_capacity_is_negative(want, place->device))
                return false;
            is_eligible = dv_capacity_fits(search, want, i, NULL);
        }
        for (size_t j = 0; is_eligible && j < task->n_constraints; j++)
            is_eligible = !task->constraints[j].applies[flat] || task->constraints[j].value_of[i];
        if (is_eligible && !dv_want_repelled(search, want, place->device))
            want->eligible[i / BITS] |= 1ull << i % BITS;
    }
    return true;
}

static size_t n_wants(const struct dv_alloc_search *search)
{
    size_t n = 0;

    for (size_t i = 0; i < search->n_tasks; i++)
        n += search->tasks[i].first_want[search->tasks[i].n_asks];
    return n;
}

static bool same_bits(const uint64_t *a, const uint64_t *b, size_t n_words)
{
    return a == b || memcmp(a, b, n_words * sizeof(uint64_t)) == 0;
}

/* Gives wants that may take exactly the same places the same number: they can be counted
 * together. */
static void find_kinds(struct dv_alloc_search *search)
{
    size_t n_kinds = 0;
    struct dv_alloc_want **first =
        DV_NEW_ARRAY(search->arena, struct dv_alloc_want *, n_wants(search));

    for (size_t i = 0; i < search->n_tasks; i++)
        for (size_t j = 0; j < search->tasks[i].n_asks; j++)
            for (size_t k = 0; k < search->tasks[i].asks[j].n_wants; k++) {
                struct dv_alloc_want *want = &search->tasks[i].asks[j].wants[k];

                want->kind = 0;
                while (want->kind < n_kinds &&
                       !same_bits(first[want->kind]->eligible, want->eligible, search->n_words))
                    want->kind++;
                if (want->kind == n_kinds)
                    first[n_kinds++] = want;
            }
}

/* What the constraints of the claim allow to be left out: nothing, when one of them can fail or
 * leaves traces. */
static enum dv_alloc_bounds bounds_of_constraints(struct dv_alloc_search *search,
                                                  struct dv_alloc_task *task)
{
    enum dv_alloc_bounds bounds = DV_ALLOC_BOUNDS_TWINS;

    for (size_t i = 0; i < task->n_constraints; i++) {
        struct dv_alloc_constraint *constraint = &task->constraints[i];

        if (search->inventory->features.list_attributes)
            return DV_ALLOC_BOUNDS_NONE;
        for (size_t j = 0; j < task->n_asks; j++)
            for (size_t k = 0; k < task->asks[j].n_wants; k++) {
                const struct dv_alloc_want *want = &task->asks[j].wants[k];

                if (!constraint->applies[task->first_want[j] + k])
                    continue;
                if (want->takes_all)
                    return DV_ALLOC_BOUNDS_NONE;
                if (constraint->is_distinct && want->n_devices > 1)
                    bounds = DV_ALLOC_BOUNDS_COUNT;
            }
        dv_constraint_number(search, constraint);
    }
    return bounds;
}

/* Whether two wants ask for the same devices in the same words. */
static bool same_terms(const struct dv_alloc_task *task, const struct dv_alloc_want *a,
                       size_t flat_a, const struct dv_alloc_want *b, size_t flat_b)
{
    if (a->class != b->class || a->is_admin != b->is_admin || a->n_tolerations > 0 ||
        b->n_tolerations > 0 || a->capacity || b->capacity || a->n_selectors != b->n_selectors)
        return false;
    for (size_t i = 0; i < a->n_selectors; i++)
        if (a->selectors[i] != b->selectors[i])
            return false;
    for (size_t i = 0; i < task->n_constraints; i++)
        if (task->constraints[i].applies[flat_a] != task->constraints[i].applies[flat_b])
            return false;
    return true;
}

/* The eligible places of an earlier want of the claim that asks for the same; NULL: there is none.
 * A claim with a hundred equal requests is looked at once. */
static uint64_t *eligible_of_alike(const struct dv_alloc_task *task, size_t ask, size_t want)
{
    const struct dv_alloc_want *of = &task->asks[ask].wants[want];
    size_t flat = task->first_want[ask] + want;

    for (size_t i = 0; i <= ask; i++)
        for (size_t j = 0; j < task->asks[i].n_wants && task->first_want[i] + j < flat; j++)
            if (same_terms(task, &task->asks[i].wants[j], task->first_want[i] + j, of, flat))
                return task->asks[i].wants[j].eligible;
    return NULL;
}

static enum dv_alloc_bounds bounds_of_task(struct dv_alloc_search *search,
                                           struct dv_alloc_task *task)
{
    enum dv_alloc_bounds bounds = bounds_of_constraints(search, task);

    if (bounds == DV_ALLOC_BOUNDS_NONE || task->n_max > DV_ALLOC_RESULTS_MAX)
        return DV_ALLOC_BOUNDS_NONE;
    for (size_t i = 0; i < task->n_asks; i++)
        for (size_t j = 0; j < task->asks[i].n_wants; j++) {
            struct dv_alloc_want *want = &task->asks[i].wants[j];

            want->eligible = eligible_of_alike(task, i, j);
            if (!want->eligible && !find_eligible(search, task, want, task->first_want[i] + j))
                return DV_ALLOC_BOUNDS_NONE;
        }
    return bounds;
}

/* Makes the scratch memory for counting, once, as large as any count needs. */
static void make_sheet(struct dv_alloc_search *search)
{
    const struct dv_alloc_node_view *view = search->view;
    size_t n_counters = 0;

    search->sheet = DV_NEW(search->arena, struct dv_alloc_sheet);
    for (size_t i = 0; i < view->n_pools; i++)
        if (view->pools[i].n_counters > n_counters)
            n_counters = view->pools[i].n_counters;
    search->sheet->counts = DV_NEW_ARRAY(search->arena, uint64_t, view->n_places + 1);
    search->sheet->flags = DV_NEW_ARRAY(search->arena, bool, view->n_places + 1);
    search->sheet->least = DV_NEW_ARRAY(search->arena, struct dv_quantity, n_counters);
    search->sheet->n_consumers = DV_NEW_ARRAY(search->arena, uint64_t, n_counters);
}

uint64_t dv_bound_work(const struct dv_alloc_search *search)
{
    return (uint64_t)n_wants(search) * search->view->n_places;
}

void dv_bound_begin(struct dv_alloc_search *search)
{
    struct dv_err *err = search->err;
    struct dv_alloc_taken *taken = search->taken;
    /* The search runs into the same error when it gets there, and reports it. */
    struct dv_err ignored;
    enum dv_alloc_bounds bounds = DV_ALLOC_BOUNDS_TWINS;

    search->err = &ignored;
    search->taken = DV_NEW_ARRAY(search->arena, struct dv_alloc_taken, search->view->n_places);
    if (search->view->has_negative)
        bounds = DV_ALLOC_BOUNDS_NONE;
    for (size_t i = 0; i < search->n_tasks && bounds != DV_ALLOC_BOUNDS_NONE; i++) {
        enum dv_alloc_bounds own = bounds_of_task(search, &search->tasks[i]);

        bounds = own < bounds ? own : bounds;
    }
    search->err = err;
    search->taken = taken;
    search->bounds = bounds;
    if (bounds == DV_ALLOC_BOUNDS_NONE)
        return;
    find_kinds(search);
    make_sheet(search);
}

/* ---- twins ---- */

/* Whether nothing but its name tells the device from others with the same content, for this
 * want. */
static bool has_twins(const struct dv_alloc_want *want, const struct dv_alloc_device *device)
{
    return !want->is_admin && !device->is_multi && device->ident->n_shares == 0;
}

bool dv_bound_has_tried_twin(const struct dv_alloc_search *search, const struct dv_alloc_task *task,
                             const struct dv_alloc_want *want, uint32_t start, uint32_t place)
{
    const struct dv_alloc_node_view *view = search->view;
    uint32_t twin = view->places[place].twin;

    if (search->bounds != DV_ALLOC_BOUNDS_TWINS || !has_twins(want, view->places[place].device))
        return false;
    for (; twin != NO_PLACE && twin >= start; twin = view->places[twin].twin)
        if (has_twins(want, view->places[twin].device) &&
            dv_place_is_free(search, task, want, twin))
            return true;
    return false;
}

/* take.c - takes one device for a claim, and gives it back. The checks are made in the reference's
 * order, and each may refuse; a refusal undoes what the checks before it have taken, so that the
 * search stands where it stood. */
#include <stdio.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "alloc/search.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "number/number.h"
#include "resource/resource.h"

#define BITS 64u

/* ---- in use, tainted ---- */

static bool has_taken(const struct dv_alloc_task *task, uint32_t place)
{
    for (size_t i = 0; i < task->n_picks; i++)
        if (task->picks[i].place == place && !task->picks[i].is_multi)
            return true;
    return false;
}

bool dv_place_is_free(const struct dv_alloc_search *search, const struct dv_alloc_task *task,
                      const struct dv_alloc_want *want, uint32_t place)
{
    if (want->is_admin)
        return !has_taken(task, place);
    return search->view->places[place].device->ident->n_dedicated == 0 &&
           search->taken[place].n_marks == 0;
}

const struct dv_api_device_taint *dv_want_repelled(const struct dv_alloc_search *search,
                                                   const struct dv_alloc_want *want,
                                                   const struct dv_alloc_device *device)
{
    const struct dv_api_device *api = device->api;

    if (!search->inventory->features.device_taints)
        return NULL;
    for (size_t i = 0; i < api->n_taints; i++) {
        const struct dv_api_device_taint *taint = &api->taints[i];
        size_t j = 0;

        if (!dv_str_eq(taint->effect, DV_STR("NoSchedule")) &&
            !dv_str_eq(taint->effect, DV_STR("NoExecute")))
            continue;
        while (j < want->n_tolerations &&
               !dv_device_toleration_matches(&want->tolerations[j], taint))
            j++;
        if (j == want->n_tolerations)
            return taint;
    }
    return NULL;
}

/* ---- counters ---- */

static void release_counters(struct dv_alloc_search *search, const struct dv_alloc_place *place)
{
    struct dv_quantity *used = search->used[place->pool - search->view->pools];

    for (size_t i = 0; i < place->n_consumes; i++) {
        struct dv_quantity *sum = &used[place->consumes[i].counter];

        *sum = dv_quantity_sub(sum, &place->consumes[i].value, search->arena);
    }
}

/* Takes what the device consumes of the pool's counters. All counters of the pool must then be
 * covered, also those that the device does not touch: the reference checks it so. Returns the first
 * that is not, with nothing taken; otherwise NULL. */
static const struct dv_alloc_counter *reserve_counters(struct dv_alloc_search *search,
                                                       const struct dv_alloc_place *place)
{
    struct dv_alloc_node_pool *pool = place->pool;
    struct dv_quantity **used = &search->used[pool - search->view->pools];
    const struct dv_alloc_counter *shortest = NULL;

    if (!*used)
        *used = DV_NEW_ARRAY(search->arena, struct dv_quantity, pool->n_counters);
    for (size_t i = 0; i < place->n_consumes; i++) {
        struct dv_quantity *sum = &(*used)[place->consumes[i].counter];

        *sum = dv_quantity_add(sum, &place->consumes[i].value, search->arena);
    }
    for (size_t i = 0; i < pool->n_counters && !shortest; i++)
        if (dv_quantity_cmp(&pool->counters[i].available, &(*used)[i]) < 0)
            shortest = &pool->counters[i];
    if (shortest)
        release_counters(search, place);
    return shortest;
}

/* Whether the device is shared already: then its counters were taken with its first share. */
static bool is_shared(const struct dv_alloc_search *search, uint32_t place)
{
    const struct dv_alloc_device *device = search->view->places[place].device;

    return device->is_multi &&
           (device->ident->n_with_capacity > 0 || search->taken[place].n_shares > 0);
}

const struct dv_alloc_counter *dv_place_lacks_counter(struct dv_alloc_search *search,
                                                      uint32_t place)
{
    const struct dv_alloc_place *at = &search->view->places[place];
    const struct dv_alloc_counter *lacking;

    if (at->n_consumes == 0 || is_shared(search, place))
        return NULL;
    lacking = reserve_counters(search, at);
    if (!lacking)
        release_counters(search, at);
    return lacking;
}

/* ---- shares ---- */

static void name_share(struct dv_alloc_search *search, struct dv_alloc_pick *pick)
{
    if (search->options->share_id)
        search->options->share_id(search->options->ctx, pick->share_id);
    else
        (void)snprintf(pick->share_id, sizeof(pick->share_id),
                       "00000000-0000-0000-0000-%012llx", /* 36 bytes, which fit */
                       (unsigned long long)++search->inventory->n_shares & 0xffffffffffffull);
}

/* Takes a share of a device that is shared by capacity. For any other device it only looks whether
 * it has the capacity. */
static bool take_capacity(struct dv_alloc_search *search, struct dv_alloc_task *task,
                          const struct dv_alloc_want *want, struct dv_alloc_pick *pick)
{
    struct dv_alloc_room *room = &task->rooms[task->n_picks];
    const struct dv_alloc_device *device = search->view->places[pick->place].device;
    struct dv_alloc_taken *taken = &search->taken[pick->place];
    size_t n = device->api->n_capacity;

    if (!pick->is_multi)
        return dv_capacity_fits(search, want, pick->place, NULL);
    if (room->n < n) {
        room->consumed = DV_NEW_ARRAY(search->arena, struct dv_quantity_entry, n);
        room->n = n;
    }
    pick->consumed = room->consumed;
    pick->n_consumed = n;
    if (!dv_capacity_fits(search, want, pick->place, pick->consumed))
        return false;
    if (!taken->capacity)
        taken->capacity = DV_NEW_ARRAY(search->arena, struct dv_quantity, n);
    for (size_t i = 0; i < n; i++)
        taken->capacity[i] =
            dv_quantity_add(&taken->capacity[i], &pick->consumed[i].value, search->arena);
    taken->n_shares++;
    name_share(search, pick);
    return true;
}

static void give_back_capacity(struct dv_alloc_search *search, const struct dv_alloc_pick *pick)
{
    struct dv_alloc_taken *taken = &search->taken[pick->place];

    for (size_t i = 0; i < pick->n_consumed; i++)
        taken->capacity[i] =
            dv_quantity_sub(&taken->capacity[i], &pick->consumed[i].value, search->arena);
    taken->n_shares--;
}

/* ---- constraints ---- */

static bool add_to_constraints(struct dv_alloc_search *search, struct dv_alloc_task *task,
                               size_t ask, size_t want, const struct dv_alloc_device *device)
{
    for (size_t i = 0; i < task->n_constraints; i++) {
        if (dv_constraint_add(search, &task->constraints[i], task, ask, want, device))
            continue;
        while (i-- > 0)
            dv_constraint_remove(&task->constraints[i], task, ask, want);
        return false;
    }
    return true;
}

static void remove_from_constraints(struct dv_alloc_task *task, size_t ask, size_t want)
{
    for (size_t i = 0; i < task->n_constraints; i++)
        dv_constraint_remove(&task->constraints[i], task, ask, want);
}

/* ---- taking ---- */

/* Marks the device as taken. It is a count, because an administrator's request may take a device
 * that another one has. */
static void mark(struct dv_alloc_search *search, uint32_t place)
{
    search->taken[place].n_marks++;
    search->marked[place / BITS] |= 1ull << place % BITS;
}

static void unmark(struct dv_alloc_search *search, uint32_t place)
{
    if (--search->taken[place].n_marks == 0)
        search->marked[place / BITS] &= ~(1ull << place % BITS);
}

/* The checks after the counters. When one refuses, the caller gives the counters back. */
static enum dv_alloc_took take_rest(struct dv_alloc_search *search, struct dv_alloc_task *task,
                                    struct dv_alloc_pick *pick, bool must)
{
    const struct dv_alloc_want *want = &task->asks[pick->ask].wants[pick->want];
    const struct dv_alloc_device *device = search->view->places[pick->place].device;

    if (dv_want_repelled(search, want, device))
        return DV_ALLOC_TOOK_NOT;
    if (!add_to_constraints(search, task, pick->ask, pick->want, device)) {
        if (!must)
            return DV_ALLOC_TOOK_NOT;
        (void)dv_fail(search->err, DV_FAILED_PRECONDITION,
                      "claim %.*s/%.*s, request %.*s: cannot add device %.*s/%.*s because a claim "
                      "constraint would not be satisfied",
                      DV_FMT(task->claim->metadata.namespace), DV_FMT(task->claim->metadata.name),
                      DV_FMT(want->name), DV_FMT(device->ident->pool->path),
                      DV_FMT(dv_ident_name(device->ident)));
        return DV_ALLOC_TOOK_ERROR;
    }
    if (search->inventory->features.consumable_capacity &&
        !take_capacity(search, task, want, pick)) {
        remove_from_constraints(task, pick->ask, pick->want);
        return DV_ALLOC_TOOK_NOT;
    }
    if (!pick->is_multi)
        mark(search, pick->place);
    return DV_ALLOC_TOOK;
}

enum dv_alloc_took dv_take(struct dv_alloc_search *search, struct dv_alloc_task *task, size_t ask,
                           size_t want, uint32_t place, bool must)
{
    const struct dv_alloc_place *at = &search->view->places[place];
    const struct dv_alloc_want *wanted = &task->asks[ask].wants[want];
    struct dv_alloc_pick pick = {
        .place = place,
        .ask = (uint32_t)ask,
        .want = (uint32_t)want,
        .is_multi = at->device->is_multi,
    };
    enum dv_alloc_took took;

    /* The cost is only added here; next_place in search.c looks before each place whether it has
     * become too much. */
    search->cost += COST_TAKE + task->n_constraints * COST_TAKE + at->n_consumes +
                    (at->n_consumes ? at->pool->n_counters : 0) + at->device->api->n_capacity +
                    at->device->api->n_taints * (1 + wanted->n_tolerations);
    if (!(wanted->is_admin && pick.is_multi) && !dv_place_is_free(search, task, wanted, place))
        return DV_ALLOC_TOOK_NOT;
    if (at->device->api->n_consumes_counters > 0) {
        if (!search->inventory->features.partitionable_devices)
            return DV_ALLOC_TOOK_NOT;
        pick.has_counters = !is_shared(search, place);
        if (pick.has_counters && reserve_counters(search, at))
            return DV_ALLOC_TOOK_NOT;
    }
    took = take_rest(search, task, &pick, must);
    if (took != DV_ALLOC_TOOK) {
        if (pick.has_counters)
            release_counters(search, at);
        return took;
    }
    task->picks[task->n_picks++] = pick;
    search->n_picks++;
    return DV_ALLOC_TOOK;
}

/* Copies what was taken where the search came furthest. What was taken since then is of the same
 * claim or of later ones, so it stands behind. */
static void keep_furthest(struct dv_alloc_search *search)
{
    struct dv_alloc_furthest *furthest = search->furthest;

    if (furthest->n_reached > furthest->n_room) {
        furthest->n_room = 2 * furthest->n_reached;
        furthest->picks = DV_NEW_ARRAY(search->arena, struct dv_alloc_pick, furthest->n_room);
        furthest->tasks = DV_NEW_ARRAY(search->arena, size_t, furthest->n_room);
    }
    furthest->n_picks = 0;
    for (size_t i = 0; i < search->n_tasks && furthest->n_picks < furthest->n_reached; i++)
        for (size_t j = 0; j < search->tasks[i].n_picks && furthest->n_picks < furthest->n_reached;
             j++) {
            furthest->tasks[furthest->n_picks] = i;
            furthest->picks[furthest->n_picks++] = search->tasks[i].picks[j];
        }
    furthest->is_kept = true;
    search->cost += furthest->n_picks;
}

void dv_untake(struct dv_alloc_search *search, struct dv_alloc_task *task)
{
    const struct dv_alloc_pick *pick;

    if (search->furthest && search->furthest->is_set && !search->furthest->is_kept)
        keep_furthest(search);
    pick = &task->picks[--task->n_picks];
    search->n_picks--;
    if (pick->is_multi)
        give_back_capacity(search, pick);
    else
        unmark(search, pick->place);
    remove_from_constraints(task, pick->ask, pick->want);
    if (pick->has_counters)
        release_counters(search, &search->view->places[pick->place]);
}

void dv_search_untake_all(struct dv_alloc_search *search)
{
    for (size_t i = search->n_tasks; i > 0; i--)
        while (search->tasks[i - 1].n_picks > 0)
            dv_untake(search, &search->tasks[i - 1]);
}

/* alloc_count.c - counts what is left, to see whether a branch of the search can still lead to a
 * solution. A search that fails would otherwise try every combination of the devices that are left.
 * Every count is of at least as many devices as can really be had, so when even the count is too
 * small, there is no solution in the branch. It is used only where bound.c has found that leaving
 * out a branch cannot change the answer. */
#include <stdint.h>
#include <string.h>

#include "alloc/inventory.h"
#include "alloc/search.h"
#include "number/number.h"

#define BITS 64u
/* How many places may be counted: a million for every search, about a millisecond, and 64 more for
 * each step, about as long as the step itself takes. So counting can at most double the time of a
 * search in which it does not help. */
#define PLACES_FREE (1u << 20)
#define PLACES_A_STEP 64u
#define PLACES_A_UNIT 8u

bool dv_count_may(struct dv_alloc_search *search, uint64_t n_places)
{
    uint64_t n_max = PLACES_FREE + search->n_steps * PLACES_A_STEP;

    if (search->n_counted >= n_max || n_places > n_max - search->n_counted)
        return false;
    search->n_counted += n_places;
    return dv_search_charge(search, n_places / PLACES_A_UNIT);
}

static bool has_bit(const uint64_t *bits, uint32_t place)
{
    return bits[place / BITS] >> place % BITS & 1;
}

/* ---- counting ---- */

/* One or several asks that need places of the same kind. */
struct need {
    /* NULL: asks of several claims, whose constraints are then left aside. */
    const struct dv_alloc_task *task;
    const struct dv_alloc_want *want;
    size_t flat; /* the index of the want among all wants of the task */
    uint64_t n;
    size_t n_asks;
    uint32_t start;
};

/* Finds the value that the devices taken so far for the claim have in common, by the constraint. */
static void find_value(const struct dv_alloc_task *task, struct dv_alloc_constraint *constraint)
{
    constraint->value_now = 0;
    for (size_t i = 0; i < task->n_picks && constraint->value_now == 0; i++) {
        const struct dv_alloc_pick *pick = &task->picks[i];

        if (constraint->applies[task->first_want[pick->ask] + pick->want])
            constraint->value_now = constraint->value_of[pick->place];
    }
}

static bool is_left(const struct dv_alloc_search *search, const struct need *need, uint32_t place)
{
    if (!has_bit(need->want->eligible, place) ||
        (!need->want->is_admin && has_bit(search->marked, place)))
        return false;
    for (size_t i = 0; need->task && i < need->task->n_constraints; i++) {
        const struct dv_alloc_constraint *constraint = &need->task->constraints[i];

        if (!constraint->is_distinct && constraint->applies[need->flat] && constraint->value_now &&
            constraint->value_now != constraint->value_of[place])
            return false;
    }
    return true;
}

/* How many of `n` places a counter of the pool can serve, when each consumes at least `least` of
 * it. */
static uint64_t served(struct dv_alloc_search *search, const struct dv_alloc_node_pool *pool,
                       size_t counter, const struct dv_quantity *least, uint64_t n)
{
    struct dv_quantity *const *used = &search->used[pool - search->view->pools];
    struct dv_quantity sum = {0};
    uint64_t n_served = 0;

    if (dv_quantity_sign(least) <= 0)
        return n;
    if (*used)
        sum = (*used)[counter];
    while (n_served < n) {
        sum = dv_quantity_add(&sum, least, search->arena);
        if (dv_quantity_cmp(&sum, &pool->counters[counter].available) > 0)
            break;
        n_served++;
    }
    return n_served;
}

/* How many of the places that are left in a pool its counters can serve. A counter bounds them only
 * when every one of these places consumes of it: one that does not could be taken without. */
static uint64_t served_in_pool(struct dv_alloc_search *search, const struct need *need,
                               const struct dv_alloc_node_pool *pool, uint32_t from, uint32_t to,
                               uint64_t n)
{
    struct dv_alloc_sheet *sheet = search->sheet;
    uint64_t n_left = n;

    memset(sheet->n_consumers, 0, pool->n_counters * sizeof(uint64_t));
    for (uint32_t i = from; i < to; i++) {
        const struct dv_alloc_place *place = &search->view->places[i];

        for (size_t j = 0; is_left(search, need, i) && j < place->n_consumes; j++) {
            size_t counter = place->consumes[j].counter;

            if (sheet->n_consumers[counter]++ == 0 ||
                dv_quantity_cmp(&place->consumes[j].value, &sheet->least[counter]) < 0)
                sheet->least[counter] = place->consumes[j].value;
        }
    }
    for (size_t i = 0; i < pool->n_counters; i++)
        if (sheet->n_consumers[i] == n_left)
            n = served(search, pool, i, &sheet->least[i], n);
    return n;
}

static uint64_t count_in_pool(struct dv_alloc_search *search, const struct need *need,
                              const struct dv_alloc_node_pool *pool, uint32_t from, uint32_t to)
{
    uint64_t n = 0;
    bool has_shares = false;

    for (uint32_t i = from; i < to; i++)
        if (is_left(search, need, i)) {
            has_shares = has_shares || search->view->places[i].device->is_multi;
            n += search->view->places[i].device->is_multi ? need->n_asks : 1;
        }
    if (pool->n_counters == 0 || has_shares || n == 0)
        return n;
    return served_in_pool(search, need, pool, from, to, n);
}

/* Whether fewer places are left than are needed. */
static bool lacks(struct dv_alloc_search *search, const struct need *need)
{
    uint32_t n_places = (uint32_t)search->view->n_places;
    uint64_t n = 0;

    for (uint32_t from = need->start; from < n_places && n < need->n;) {
        const struct dv_alloc_node_pool *pool = search->view->places[from].pool;
        uint32_t to = from;

        while (to < n_places && search->view->places[to].pool == pool)
            to++;
        n += count_in_pool(search, need, pool, from, to);
        from = to;
    }
    return n < need->n;
}

/* Whether one of the devices is not free, for a want that takes all that match. */
static bool lacks_one_of_all(const struct dv_alloc_search *search, const struct dv_alloc_want *want)
{
    if (want->n_devices == 0)
        return true;
    for (size_t i = 0; i < want->n_devices && !want->is_admin; i++) {
        const struct dv_alloc_device *device = search->view->places[want->all[i]].device;

        if (device->ident->n_dedicated > 0 || has_bit(search->marked, want->all[i]))
            return true;
    }
    return false;
}

/* ---- one ask ---- */

static struct need need_of(const struct dv_alloc_search *search, const struct dv_alloc_spot *spot,
                           size_t task, size_t ask, size_t want)
{
    const struct dv_alloc_task *of = &search->tasks[task];
    struct need need = {
        .task = of,
        .want = &of->asks[ask].wants[want],
        .flat = of->first_want[ask] + want,
        .n = of->asks[ask].wants[want].n_devices,
        .n_asks = 1,
    };

    if (task == spot->task && ask == spot->ask) {
        need.n -= spot->n_taken;
        need.start = spot->start;
    }
    return need;
}

/* Whether no alternative of the ask can be served any more. */
static bool ask_is_hopeless(struct dv_alloc_search *search, const struct dv_alloc_spot *spot,
                            size_t task, size_t ask)
{
    const struct dv_alloc_ask *of = &search->tasks[task].asks[ask];
    bool is_here = task == spot->task && ask == spot->ask;

    for (size_t i = 0; i < of->n_wants; i++) {
        struct need need = need_of(search, spot, task, ask, i);

        if (is_here && i != spot->want)
            continue; /* another alternative has been chosen already */
        /* Where the search stands at a want for all devices, it is in the middle of taking them. */
        if (need.want->takes_all ? is_here || !lacks_one_of_all(search, need.want)
                                 : !lacks(search, &need))
            return false;
    }
    return true;
}

/* ---- several asks together ---- */

/* Whether the ask has no alternatives, takes a number of devices and is not an administrator's:
 * only such asks can be added up. */
static bool is_plain(const struct dv_alloc_task *task, size_t ask)
{
    const struct dv_alloc_want *want = &task->asks[ask].wants[0];

    return !task->asks[ask].has_alternatives && !want->takes_all && !want->is_admin;
}

static bool same_constraints(const struct dv_alloc_task *task, size_t a, size_t b)
{
    for (size_t i = 0; i < task->n_constraints; i++)
        if (task->constraints[i].applies[task->first_want[a]] !=
            task->constraints[i].applies[task->first_want[b]])
            return false;
    return true;
}

/* Whether two asks of the claim can be served by the same devices, whatever has been taken. */
static bool are_alike(const struct dv_alloc_task *task, size_t a, size_t b)
{
    return is_plain(task, a) && is_plain(task, b) &&
           task->asks[a].wants[0].kind == task->asks[b].wants[0].kind &&
           same_constraints(task, a, b);
}

/* What this ask needs together with all asks like it that come later in the claim. */
static struct need need_with_alike(const struct dv_alloc_search *search,
                                   const struct dv_alloc_spot *spot, size_t task, size_t ask)
{
    const struct dv_alloc_task *of = &search->tasks[task];
    struct need need = need_of(search, spot, task, ask, 0);

    for (size_t i = ask + 1; i < of->n_asks; i++)
        if (are_alike(of, ask, i)) {
            need.n += of->asks[i].wants[0].n_devices;
            need.n_asks++;
            need.start = 0;
        }
    return need;
}

/* Whether an earlier ask, from `first` on, is like this one: then the two were counted together. */
static bool is_counted(const struct dv_alloc_task *task, size_t first, size_t ask)
{
    for (size_t i = first; i < ask; i++)
        if (are_alike(task, i, ask))
            return true;
    return false;
}

/* Like ask_is_hopeless, for all asks of one kind in all claims together, without their
 * constraints. */
static bool kind_is_hopeless(struct dv_alloc_search *search, const struct dv_alloc_spot *spot)
{
    const struct dv_alloc_want *want = &search->tasks[spot->task].asks[spot->ask].wants[spot->want];
    struct need need = need_of(search, spot, spot->task, spot->ask, spot->want);

    if (want->takes_all || want->is_admin)
        return false;
    need.task = NULL;
    need.start = 0;
    for (size_t i = spot->task; i < search->n_tasks; i++)
        for (size_t j = i == spot->task ? spot->ask + 1 : 0; j < search->tasks[i].n_asks; j++)
            if (is_plain(&search->tasks[i], j) &&
                search->tasks[i].asks[j].wants[0].kind == want->kind) {
                need.n += search->tasks[i].asks[j].wants[0].n_devices;
                need.n_asks++;
            }
    return need.n_asks > 1 && lacks(search, &need);
}

/* Strikes out those values of a matching constraint of which too few devices are left for the
 * need. */
static void strike_values(struct dv_alloc_search *search,
                          const struct dv_alloc_constraint *constraint, const struct need *need)
{
    uint64_t *counts = search->sheet->counts;

    memset(counts, 0, (constraint->n_values + 1) * sizeof(uint64_t));
    for (uint32_t i = need->start; i < search->view->n_places; i++)
        if (is_left(search, need, i))
            counts[constraint->value_of[i]] +=
                search->view->places[i].device->is_multi ? need->n_asks : 1;
    for (uint32_t i = 1; i <= constraint->n_values; i++)
        if (counts[i] < need->n)
            search->sheet->flags[i] = true;
}

/* Whether there is no value that all asks to come could have in common, for a matching
 * constraint. */
static bool match_is_hopeless(struct dv_alloc_search *search, const struct dv_alloc_spot *spot,
                              size_t task, const struct dv_alloc_constraint *constraint)
{
    const struct dv_alloc_task *of = &search->tasks[task];
    size_t first = task == spot->task ? spot->ask : 0;
    bool *is_out = search->sheet->flags;
    bool is_asked = false;

    if (constraint->value_now)
        return false; /* a value is fixed already: ask_is_hopeless counts only devices with it */
    memset(is_out, 0, constraint->n_values + 1);
    for (size_t i = first; i < of->n_asks; i++) {
        struct need need;

        if (!is_plain(of, i) || !constraint->applies[of->first_want[i]] || is_counted(of, first, i))
            continue;
        is_asked = true;
        need = need_with_alike(search, spot, task, i);
        strike_values(search, constraint, &need);
    }
    for (uint32_t i = 1; i <= constraint->n_values; i++)
        if (!is_out[i])
            return false;
    return is_asked;
}

/* Whether a distinct constraint has fewer values left than asks that each need another one. */
static bool distinct_is_hopeless(struct dv_alloc_search *search, const struct dv_alloc_spot *spot,
                                 size_t task, const struct dv_alloc_constraint *constraint)
{
    const struct dv_alloc_task *of = &search->tasks[task];
    size_t first = task == spot->task ? spot->ask : 0;
    bool *is_there = search->sheet->flags;
    size_t last = of->n_asks; /* the last ask that was looked at */
    size_t n_asks = 0;
    size_t n_values = 0;

    if (constraint->has_unknown)
        /* A device without a comparable value clashes with nothing, so that there may be any number
         * of them. */
        return false;
    memset(is_there, 0, constraint->n_values + 1);
    for (size_t i = first; i < of->n_asks; i++) {
        struct need need = need_of(search, spot, task, i, 0);

        if (!is_plain(of, i) || need.want->n_devices != 1 || !constraint->applies[need.flat])
            continue;
        n_asks++;
        if (last < of->n_asks && are_alike(of, last, i))
            continue; /* its values are those of the ask before, and counted */
        last = i;
        for (uint32_t j = 0; j < search->view->n_places; j++)
            if (is_left(search, &need, j))
                is_there[constraint->value_of[j]] = true;
    }
    for (size_t i = 0; i < of->n_picks; i++) {
        const struct dv_alloc_pick *pick = &of->picks[i];

        if (of->asks[pick->ask].wants[pick->want].n_devices == 1 &&
            constraint->applies[of->first_want[pick->ask] + pick->want])
            is_there[constraint->value_of[pick->place]] = false;
    }
    for (uint32_t i = 1; i <= constraint->n_values; i++)
        n_values += is_there[i];
    return n_values < n_asks;
}

static bool asks_are_hopeless(struct dv_alloc_search *search, const struct dv_alloc_spot *spot,
                              size_t task)
{
    const struct dv_alloc_task *of = &search->tasks[task];
    size_t first = task == spot->task ? spot->ask : 0;

    for (size_t i = first; i < of->n_asks; i++) {
        struct need need;

        if (is_plain(of, i) && is_counted(of, first, i))
            continue;
        if (ask_is_hopeless(search, spot, task, i))
            return true;
        if (!is_plain(of, i))
            continue;
        need = need_with_alike(search, spot, task, i);
        if (need.n_asks > 1 && lacks(search, &need))
            return true;
    }
    return false;
}

static bool task_is_hopeless(struct dv_alloc_search *search, const struct dv_alloc_spot *spot,
                             size_t task)
{
    struct dv_alloc_task *of = &search->tasks[task];

    for (size_t i = 0; i < of->n_constraints; i++)
        find_value(of, &of->constraints[i]);
    if (asks_are_hopeless(search, spot, task))
        return true;
    for (size_t i = 0; i < of->n_constraints; i++) {
        const struct dv_alloc_constraint *constraint = &of->constraints[i];

        if (constraint->is_distinct ? distinct_is_hopeless(search, spot, task, constraint)
                                    : match_is_hopeless(search, spot, task, constraint))
            return true;
    }
    return false;
}

/* How many places a count looks at, at most: each ask by itself, together with those like it, and
 * once for every constraint. */
static uint64_t work(const struct dv_alloc_search *search, const struct dv_alloc_spot *spot)
{
    uint64_t n = 1;

    for (size_t i = spot->task; i < search->n_tasks; i++) {
        const struct dv_alloc_task *task = &search->tasks[i];

        n += task->first_want[task->n_asks] * (2 + task->n_constraints);
    }
    return n * search->view->n_places;
}

bool dv_count_is_hopeless(struct dv_alloc_search *search, const struct dv_alloc_spot *spot)
{
    if (search->bounds < DV_ALLOC_BOUNDS_COUNT || !dv_count_may(search, work(search, spot)))
        return false;
    for (size_t i = spot->task; i < search->n_tasks; i++)
        if (task_is_hopeless(search, spot, i))
            return true;
    return kind_is_hopeless(search, spot);
}

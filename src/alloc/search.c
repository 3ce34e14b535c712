/* search.c - the search for devices: depth first in the reference's order, and the first solution
 * wins, so that the answer is the reference's. After a few steps back it begins again and leaves
 * out branches that cannot hold a solution (bound.c, alloc_count.c). It keeps its own stack instead
 * of calling itself, so that many claims with many devices cannot use up the thread's. */
#include <stdint.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "alloc/search.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

/* Half a second to five, depending on what a step does; the reference gives up after ten
 * seconds. */
#define STEPS_MAX 10000000u
#define STEPS_BETWEEN_QUESTIONS 1000u
/* Most searches end with fewer steps back than this: for them, finding out what may be left out
 * would cost more than it saves. */
#define BACKS_BEFORE_BOUNDS 4u
#define BITS 64u
/* The memory that a search may take, for sums of large quantities and for its stack. */
#define BYTES_MAX (256u << 20)

enum found {
    FOUND,
    FOUND_NOT,
    FOUND_LIMIT, /* the claim would get more devices than it may have */
    FOUND_ERROR,
    FOUND_NOTHING_YET, /* not decided yet: there is more to try */
};

/* Where the search is: which device of which request of which claim comes next. */
struct at {
    size_t task;
    size_t ask;
    size_t want;
    uint64_t device; /* how many devices of this want are taken */
    uint32_t start;  /* the first place that may be tried */
    bool is_inside;  /* `want` has been chosen */
};

/* A place to go back to when a branch has led nowhere, with what is to be tried next there. */
struct frame {
    enum frame_kind {
        FRAME_TASK,         /* a claim has all it asks for */
        FRAME_ALTERNATIVES, /* one of them is being tried */
        FRAME_ALL,          /* one device of a want for all was taken */
        FRAME_PLACES,       /* places are being tried */
    } kind;
    struct at at;
    uint32_t next;     /* place, or alternative, to be tried */
    bool has_taken;    /* FRAME_PLACES: the one before `next` */
    bool is_all_limit; /* FRAME_ALTERNATIVES: all so far were too many */
};

struct stack {
    DV_VEC(struct frame) v;
};

static bool give_up(struct dv_alloc_search *search, enum dv_code code, const char *why)
{
    search->gave_up = true;
    return dv_fail(search->err, code, "%s after %llu steps", why,
                   (unsigned long long)search->n_steps);
}

bool dv_search_charge(struct dv_alloc_search *search, uint64_t cost)
{
    if (search->cost <= search->cost_max && cost <= search->cost_max - search->cost) {
        search->cost += cost;
        return true;
    }
    /* What is charged is not done, so it counts as spent to the limit. */
    search->cost = dv_u64_max(search->cost, search->cost_max);
    search->gave_up = true;
    return dv_fail(search->err, DV_RESOURCE_EXHAUSTED,
                   "the search was given up at a cost of %llu, with neither a solution nor a proof "
                   "that there is none: simplify the selectors or ask for less",
                   (unsigned long long)search->cost_max);
}

static bool may_go_on(struct dv_alloc_search *search)
{
    search->n_steps++;
    if (!dv_search_charge(search, COST_STEP))
        return false;
    if (search->n_steps > search->n_steps_max)
        return give_up(search, DV_RESOURCE_EXHAUSTED,
                       "gave up with neither a solution nor a proof that there is none,");
    if (dv_arena_size_bytes(search->arena) - search->bytes_before > BYTES_MAX)
        return give_up(search, DV_RESOURCE_EXHAUSTED, "gave up for lack of memory");
    if (search->options->is_cancelled && search->n_steps % STEPS_BETWEEN_QUESTIONS == 0 &&
        search->options->is_cancelled(search->options->ctx))
        return give_up(search, DV_CANCELLED, "filter operation aborted");
    return true;
}

/* ---- entering ---- */

/* Remembers where the search stands, if it never came this far before: for explanations. */
static void look_back(struct dv_alloc_search *search, const struct at *at)
{
    struct dv_alloc_furthest *furthest = search->furthest;

    if (furthest->is_set && search->n_picks <= furthest->n_reached)
        return;
    furthest->is_set = true;
    furthest->is_kept = false;
    furthest->n_reached = search->n_picks;
    furthest->task = at->task;
    furthest->ask = at->ask;
    furthest->want = at->want;
}

static void push(struct dv_alloc_search *search, struct stack *stack, enum frame_kind kind,
                 const struct at *at)
{
    struct frame *frame = dv_vec_add_in(&stack->v, search->arena);

    *frame = (struct frame){.kind = kind, .at = *at, .next = at->start, .is_all_limit = true};
}

/* Takes the next device of a want for all devices. There is no choice: when it cannot be had, the
 * branch has failed. */
static enum found enter_all(struct dv_alloc_search *search, struct stack *stack, struct at *at)
{
    struct dv_alloc_task *task = &search->tasks[at->task];
    const struct dv_alloc_want *want = &task->asks[at->ask].wants[at->want];

    switch (dv_take(search, task, at->ask, at->want, want->all[at->device], true)) {
    case DV_ALLOC_TOOK_ERROR:
        return FOUND_ERROR;
    case DV_ALLOC_TOOK_NOT:
        return FOUND_NOT;
    case DV_ALLOC_TOOK:
        break;
    }
    push(search, stack, FRAME_ALL, at);
    at->device++;
    return FOUND_NOTHING_YET;
}

static bool is_hopeless(struct dv_alloc_search *search, const struct at *at)
{
    return dv_count_is_hopeless(
        search, &(struct dv_alloc_spot){at->task, at->ask, at->want, at->device, at->start});
}

/* Begins with the next device of a want, or goes on to the next request when the want has all. */
static enum found enter_want(struct dv_alloc_search *search, struct stack *stack, struct at *at)
{
    const struct dv_alloc_task *task = &search->tasks[at->task];
    const struct dv_alloc_want *want = &task->asks[at->ask].wants[at->want];

    /* "all devices" of a kind of which there is none is not fulfilled by taking nothing. */
    bool is_nothing = want->takes_all && want->n_devices == 0;

    if (at->device >= want->n_devices && !is_nothing) {
        *at = (struct at){.task = at->task, .ask = at->ask + 1};
        return FOUND_NOTHING_YET;
    }
    if (search->furthest)
        look_back(search, at);
    if (is_nothing)
        return FOUND_NOT;
    if (task->n_picks + (want->n_devices - at->device) > DV_ALLOC_RESULTS_MAX)
        return FOUND_LIMIT;
    if (is_hopeless(search, at))
        return FOUND_NOT;
    if (want->takes_all)
        return enter_all(search, stack, at);
    push(search, stack, FRAME_PLACES, at);
    /* Nothing is taken yet: resume() tries the places of the new frame, one by one. */
    return FOUND_NOT;
}

/* One step: `at` moves on, or a frame is pushed to which the search comes back. */
static enum found enter(struct dv_alloc_search *search, struct stack *stack, struct at *at)
{
    const struct dv_alloc_task *task = &search->tasks[at->task];

    if (!may_go_on(search))
        return FOUND_ERROR;
    if (at->task == search->n_tasks)
        return FOUND;
    if (at->ask == task->n_asks) {
        push(search, stack, FRAME_TASK, at);
        *at = (struct at){.task = at->task + 1};
        return FOUND_NOTHING_YET;
    }
    if (task->asks[at->ask].has_alternatives && !at->is_inside) {
        push(search, stack, FRAME_ALTERNATIVES, at);
        at->is_inside = true;
        return FOUND_NOTHING_YET;
    }
    return enter_want(search, stack, at);
}

/* ---- going on ---- */

/* Takes the place for the want, if the want's selectors, node and capacity allow it. */
static enum dv_alloc_took try_place(struct dv_alloc_search *search, const struct at *at,
                                    uint32_t place)
{
    struct dv_alloc_task *task = &search->tasks[at->task];
    const struct dv_alloc_want *want = &task->asks[at->ask].wants[at->want];
    bool selects;

    if (!dv_want_selects(search, task, want, &search->view->places[place], &selects))
        return DV_ALLOC_TOOK_ERROR;
    if (!selects || (search->inventory->features.consumable_capacity &&
                     !dv_capacity_fits(search, want, place, NULL)))
        return DV_ALLOC_TOOK_NOT;
    return dv_take(search, task, at->ask, at->want, place, false);
}

static enum found next_place(struct dv_alloc_search *search, struct frame *frame, enum found found,
                             struct at *at)
{
    struct dv_alloc_task *task = &search->tasks[frame->at.task];
    const struct dv_alloc_want *want = &task->asks[frame->at.ask].wants[frame->at.want];

    if (frame->has_taken) {
        dv_untake(search, task);
        search->n_backs++;
    }
    frame->has_taken = false;
    if (found == FOUND_LIMIT)
        return found;
    while (frame->next < search->view->n_places) {
        uint32_t place = frame->next++;

        if (!dv_search_charge(search, COST_PLACE))
            return FOUND_ERROR;
        if (!dv_place_is_free(search, task, want, place) ||
            dv_bound_has_tried_twin(search, task, want, frame->at.start, place))
            continue;
        switch (try_place(search, &frame->at, place)) {
        case DV_ALLOC_TOOK_ERROR:
            return FOUND_ERROR;
        case DV_ALLOC_TOOK_NOT:
            continue;
        case DV_ALLOC_TOOK:
            break;
        }
        frame->has_taken = true;
        *at = frame->at;
        at->device++;
        at->start = place + 1;
        return FOUND_NOTHING_YET;
    }
    return FOUND_NOT;
}

static enum found next_alternative(const struct dv_alloc_search *search, struct frame *frame,
                                   enum found found, struct at *at)
{
    const struct dv_alloc_ask *ask = &search->tasks[frame->at.task].asks[frame->at.ask];

    if (found != FOUND_LIMIT)
        frame->is_all_limit = false;
    if (++frame->next == ask->n_wants)
        return frame->is_all_limit ? FOUND_LIMIT : FOUND_NOT;
    *at = frame->at;
    at->want = frame->next;
    at->is_inside = true;
    return FOUND_NOTHING_YET;
}

/* Goes on from the newest frame after a branch from it has led nowhere. Any result but
 * FOUND_NOTHING_YET ends the frame. */
static enum found resume(struct dv_alloc_search *search, struct frame *frame, enum found found,
                         struct at *at)
{
    switch (frame->kind) {
    case FRAME_TASK:
        /* The limit of devices is one claim's own: for the claim before, this branch has just
         * failed. */
        return FOUND_NOT;
    case FRAME_ALTERNATIVES:
        return next_alternative(search, frame, found, at);
    case FRAME_ALL:
        dv_untake(search, &search->tasks[frame->at.task]);
        return found;
    case FRAME_PLACES:
        break;
    }
    return next_place(search, frame, found, at);
}

static void note_choices(struct dv_alloc_search *search, const struct stack *stack)
{
    for (size_t i = 0; i < stack->v.n; i++) {
        const struct frame *frame = &stack->v.v[i];

        if (frame->kind == FRAME_ALTERNATIVES)
            search->tasks[frame->at.task].asks[frame->at.ask].chosen = frame->next;
    }
}

/* After the first steps back: finds out what may be left out, and if there is anything, begins the
 * search again from the start with that. */
static bool begins_again(struct dv_alloc_search *search, struct stack *stack)
{
    if (search->n_backs < BACKS_BEFORE_BOUNDS || search->bounds != DV_ALLOC_BOUNDS_UNKNOWN ||
        search->furthest || !dv_count_may(search, dv_bound_work(search)))
        return false;
    dv_bound_begin(search);
    if (search->bounds == DV_ALLOC_BOUNDS_NONE)
        return false;
    dv_search_untake_all(search);
    dv_vec_clear(&stack->v);
    return true;
}

static enum found walk(struct dv_alloc_search *search)
{
    struct stack stack = {0};
    struct at at = {0};
    enum found found = FOUND_NOTHING_YET;

    for (;;) {
        while (found == FOUND_NOTHING_YET) {
            if (begins_again(search, &stack))
                at = (struct at){0};
            found = enter(search, &stack, &at);
        }
        if (found == FOUND)
            note_choices(search, &stack);
        if (found == FOUND || found == FOUND_ERROR || stack.v.n == 0)
            return found;
        found = resume(search, &stack.v.v[stack.v.n - 1], found, &at);
        if (found != FOUND_NOTHING_YET)
            stack.v.n--;
    }
}

/* ---- the whole ---- */

static enum dv_alloc_outcome conclude(struct dv_alloc_search *search, enum found found)
{
    switch (found) {
    case FOUND:
        return DV_ALLOC_DONE;
    case FOUND_ERROR:
        return search->gave_up || search->err->code == DV_CANCELLED ? DV_ALLOC_GAVE_UP
                                                                    : DV_ALLOC_FAILED;
    case FOUND_NOT:
    case FOUND_LIMIT:
    case FOUND_NOTHING_YET:
        break;
    }
    if (!search->view->has_invalid)
        return DV_ALLOC_NONE;
    for (size_t i = 0; i < search->view->n_pools; i++) {
        const struct dv_alloc_node_pool *pool = &search->view->pools[i];

        if (pool->state == DV_ALLOC_POOL_INVALID) {
            (void)dv_fail(search->err, DV_FAILED_PRECONDITION,
                          "invalid resource pools were encountered: %.*s: %.*s",
                          DV_FMT(pool->pool->path), DV_FMT(pool->problem));
            break;
        }
    }
    return DV_ALLOC_NODE_FAILED;
}

bool dv_search_begin(struct dv_alloc_search *search,
                     const struct dv_api_resource_claim *const *claims, size_t n_claims)
{
    uint64_t n_made;
    uint64_t n_counted;

    dv_inventory_view_work(search->inventory, search->node, &n_made, &n_counted);
    if (!dv_search_charge(search, n_made * COST_VIEW_DEVICE + n_counted * COST_COUNTER_DEVICE))
        return false;
    search->view = dv_inventory_view(search->inventory, search->node, search->err);
    if (!search->view)
        return false;
    search->taken = DV_NEW_ARRAY(search->arena, struct dv_alloc_taken, search->view->n_places);
    search->n_words = (search->view->n_places + BITS - 1) / BITS;
    search->marked = DV_NEW_ARRAY(search->arena, uint64_t, search->n_words);
    search->used = DV_NEW_ARRAY(search->arena, struct dv_quantity *, search->view->n_pools);
    return dv_search_read(search, claims, n_claims);
}

enum dv_alloc_outcome dv_search_run(struct dv_alloc_search *search)
{
    return conclude(search, walk(search));
}

static enum dv_alloc_outcome run(struct dv_alloc_search *search,
                                 const struct dv_api_resource_claim *const *claims, size_t n_claims,
                                 struct dv_alloc_result *result)
{
    enum dv_alloc_outcome outcome;
    struct dv_alloc_rival rival;

    if (!dv_search_begin(search, claims, n_claims))
        return search->gave_up || search->err->code == DV_CANCELLED ? DV_ALLOC_GAVE_UP
                                                                    : DV_ALLOC_FAILED;
    outcome = dv_search_run(search);
    if (outcome == DV_ALLOC_NONE &&
        dv_inventory_rivals(search->inventory, search->node->name, &rival, 1) > 0)
        result->note = dv_rival_print(&rival, search->arena);
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
    struct dv_alloc_search search = {
        .inventory = inventory,
        .node = node,
        .options = options,
        .n_steps_max = options->n_steps_max ? options->n_steps_max : STEPS_MAX,
        .cost_max = options->cost_max ? options->cost_max : DV_ALLOC_COST_MAX,
        .arena = arena,
        .bytes_before = dv_arena_size_bytes(arena),
        .err = err,
    };

    *result = (struct dv_alloc_result){0};
    dv_inventory_trim_selectors(inventory);
    result->outcome = run(&search, claims, n_claims, result);
    result->n_steps = search.n_steps;
    result->cost = search.cost;
}

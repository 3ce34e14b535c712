/* decide.c - one attempt to place a pod: which node it goes to and which devices it gets, or why it
 * goes nowhere. The stages are drawn in attempt.h. An attempt nearly always ends within one call; a
 * long one is put aside when the budget of this turn is used up, and goes on in the next turn, when
 * nodes and claims may have changed. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "affinity/affinity.h"
#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "sched/attempt.h"
#include "sched/crowd.h"
#include "sched/fit.h"
#include "sched/placed.h"
#include "sched/sched_state.h"

/* What the searches for devices in one attempt may cost together, in the allocator's units: some
 * 0.1 s. When every node was searched and some were given up, the next attempt searches them at
 * twice the cost (search_longer in refuse.c). */
#define COST_MAX UINT64_C(10000000)
/* Nodes are all over the memory, and fetching one takes longer than looking at it: so many nodes
 * ahead are prefetched. */
#define N_AHEAD 8u
/* How many nodes at most are searched for devices when a request lists alternatives: there the
 * score depends on what each node has, so that all candidates are searched, and not only the
 * best. */
#define N_ALTERNATIVES_MAX 100u

/* ---- the best ---- */

/* Eight points for the first alternative of a request, one less for each further one, as the
 * reference scores them. A request has at most eight. */
static int64_t rank_alternatives(const struct dv_sched_attempt *attempt,
                                 const struct dv_sched_candidate *candidate)
{
    int64_t rank = 0;

    for (size_t i = 0; i < attempt->n_open; i++) {
        const struct dv_api_device_claim *devices = &attempt->asked[i]->spec.devices;
        const struct dv_api_device_allocation_result *given =
            &candidate->offer->result.allocations[i].devices;

        for (size_t j = 0; j < devices->n_requests; j++) {
            const struct dv_api_device_request *request = &devices->requests[j];

            for (size_t k = 0; k < request->n_first_available; k++) {
                dv_str name =
                    dv_str_printf(attempt->sched->scratch, "%.*s/%.*s", DV_FMT(request->name),
                                  DV_FMT(request->first_available[k].name));

                for (size_t l = 0; l < given->n_results; l++)
                    if (dv_str_eq(given->results[l].request, name)) {
                        rank += 8 - (int64_t)k;
                        break;
                    }
            }
        }
    }
    return rank;
}

/* Whether all candidates are to be asked for devices, and not only the best: to rank alternatives,
 * or because nobody has looked whether a selector fails on one of them. A selector that does keeps
 * the pod from all nodes, as in the reference, which asks all for each pod; here the first of pods
 * that are alike does it, each time that slices, classes or nodes have changed. */
static bool asks_all(const struct dv_sched_attempt *attempt)
{
    const struct dv_sched *sched = attempt->sched;
    const struct dv_sched_crowd *crowd = attempt->crowd;

    if (attempt->has_alternatives)
        return true;
    return (attempt->n_open > 0 || attempt->pod->is_extended) &&
           (crowd->checked_shape != sched->shape + 1 ||
            crowd->checked_slices != sched->n_slice_changes + 1);
}

/* Asks all candidates for devices: those that have none are removed, the others are ranked by
 * the alternatives that they offer. False: the budget is used up, or a job searches; it is called
 * again. */
static bool rank_all(struct dv_sched_attempt *attempt)
{
    while (attempt->n_ranked < attempt->candidates.n &&
           (attempt->has_alternatives || attempt->cost_left > 0)) {
        struct dv_sched_candidate *candidate = &attempt->candidates.v[attempt->n_ranked];

        switch (dv_sched_offer_ask(attempt, candidate)) {
        case DV_SCHED_PENDING:
            return false;
        case DV_SCHED_REFUSED:
            dv_vec_remove(&attempt->candidates, attempt->n_ranked);
            break;
        case DV_SCHED_OFFERED:
            candidate->merit.preference = dv_sched_points(rank_alternatives(attempt, candidate));
            attempt->n_ranked++;
            break;
        }
    }
    attempt->crowd->checked_shape = attempt->sched->shape + 1;
    attempt->crowd->checked_slices = attempt->sched->n_slice_changes + 1;
    return true;
}

/* The best of the candidates; the first of equals, so that nodes are filled in turn. */
static size_t find_best(const struct dv_sched_attempt *attempt)
{
    struct dv_sched_best best = {0};
    int64_t top = -1;
    size_t at = 0;

    for (size_t i = 0; i < attempt->candidates.n; i++)
        dv_sched_merit_raise(&best, &attempt->candidates.v[i].merit);
    for (size_t i = 0; attempt->crowd->wants && i < attempt->candidates.n; i++)
        dv_sched_merit_relate(&best, &attempt->candidates.v[i].merit);
    for (size_t i = 0; i < attempt->candidates.n; i++) {
        int64_t score = dv_sched_score(&attempt->candidates.v[i].merit, &best);

        if (score > top) {
            top = score;
            at = i;
        }
    }
    return at;
}

/* Whether what was found out about the node, some turns ago, is still true. If not, the candidate
 * is refused, or its offer is dropped and asked for again. */
static bool still_holds(struct dv_sched_attempt *attempt, struct dv_sched_candidate *candidate)
{
    const struct dv_sched_node *node = candidate->node;

    if (attempt->crowd->wants)
        dv_affinity_look_around(attempt->sched->affinity, attempt->crowd->wants, attempt->value);
    if (candidate->node_version != node->version || attempt->crowd->wants) {
        candidate->node_version = node->version;
        if (!dv_sched_attempt_may_be_on(attempt, node))
            candidate->offer->is_refused = true;
    }
    if (!candidate->offer->is_refused && candidate->offer->result.allocations &&
        dv_inventory_has_changed(attempt->sched->inventory, node->name, candidate->offer->version))
        candidate->offer = NULL;
    return candidate->offer && !candidate->offer->is_refused;
}

enum choice {
    CHOSEN,
    NOTHING, /* none of the candidates has the devices */
    NOT_YET,
};

static enum choice choose(struct dv_sched_attempt *attempt,
                          const struct dv_sched_candidate **chosen)
{
    while (attempt->candidates.n > 0) {
        size_t at = find_best(attempt);
        struct dv_sched_candidate *candidate = &attempt->candidates.v[at];

        /* Devices are searched for on the best node first, and on the next only when it has none: a
         * search costs far more than the score. */
        switch (dv_sched_offer_ask(attempt, candidate)) {
        case DV_SCHED_PENDING:
            return NOT_YET;
        case DV_SCHED_REFUSED:
            dv_vec_remove(&attempt->candidates, at);
            break;
        case DV_SCHED_OFFERED:
            if (!attempt->is_paused || still_holds(attempt, candidate)) {
                *chosen = candidate;
                return CHOSEN;
            }
            break;
        }
    }
    return NOTHING;
}

/* at % n, where `at` is nearly always less than 2 n: a division costs as much as the rest. */
static size_t wrap(size_t at, size_t n)
{
    if (at < n)
        return at;
    return at - n < n ? at - n : at % n;
}

/* Looks at nodes until there are enough candidates. False: the budget is used up; it is called
 * again. */
static bool look_around(struct dv_sched_attempt *attempt)
{
    struct dv_sched *sched = attempt->sched;
    size_t n = attempt->n_nodes;

    while (attempt->n_seen < n && attempt->candidates.n < attempt->n_wanted) {
        size_t at = attempt->start + attempt->n_seen;
        const struct dv_sched_node *later = attempt->nodes[wrap(at + N_AHEAD, n)];

        if (!dv_sched_has_budget(sched))
            return false;
        __builtin_prefetch(later);
        __builtin_prefetch(&later->room.taken);
        attempt->n_seen++;
        dv_sched_attempt_visit(attempt, attempt->nodes[wrap(at, n)]);
    }
    return true;
}

/* ---- the beginning ---- */

static void drop_references(struct dv_sched_attempt *attempt)
{
    dv_object_unref(attempt->object);
    attempt->object = NULL;
    for (size_t i = 0; i < attempt->n_claims; i++)
        dv_object_unref(attempt->claims[i]);
    free(attempt->claims);
    attempt->claims = NULL;
    attempt->n_claims = 0;
}

static void take_references(struct dv_sched_attempt *attempt)
{
    struct dv_sched_pod *pod = attempt->pod;

    drop_references(attempt);
    attempt->object = dv_object_ref(pod->object);
    attempt->value = attempt->object->value;
    attempt->claims =
        pod->n_claims > 0 ? dv_alloc(pod->n_claims * sizeof(attempt->claims[0])) : NULL;
    for (size_t i = 0; i < pod->n_claims; i++) {
        struct dv_object *claim = pod->claims[i].claim->object;

        attempt->claims[attempt->n_claims++] = claim ? dv_object_ref(claim) : NULL;
    }
}

/* Gathers the nodes that are to be looked at. The reference, too, looks only at those that the pod
 * names, when every term of its node affinity does. */
static void gather_nodes(struct dv_sched_attempt *attempt)
{
    struct dv_sched *sched = attempt->sched;
    struct dv_affinity_names names;
    struct dv_sched_node **nodes;

    attempt->nodes = sched->nodes.v;
    attempt->n_nodes = sched->nodes.n;
    attempt->start = sched->nodes.n > 0 ? sched->next_node % sched->nodes.n : 0;
    attempt->is_pinned = !attempt->pod->is_preset && attempt->value->spec.affinity &&
                         dv_affinity_pinned(&attempt->value->spec, sched->scratch, &names);
    if (!attempt->is_pinned)
        return;
    attempt->is_contradiction = names.n == 0;
    nodes = DV_NEW_ARRAY(sched->scratch, struct dv_sched_node *, names.n);
    attempt->nodes = nodes;
    attempt->n_nodes = 0;
    attempt->start = 0;
    for (size_t i = 0; i < names.n; i++) {
        struct dv_sched_node *node = dv_map_get(&sched->nodes_by_name, names.v[i]);

        if (node && node->object)
            nodes[attempt->n_nodes++] = node;
    }
}

/* For a pod that somebody has bound already, its node is the only candidate. */
static void visit_preset(struct dv_sched_attempt *attempt)
{
    struct dv_sched_node *node =
        dv_map_get(&attempt->sched->nodes_by_name, attempt->value->spec.node_name);

    attempt->n_seen = attempt->n_nodes;
    attempt->is_nowhere = !node || !node->object;
    if (!attempt->is_nowhere)
        dv_sched_attempt_visit(attempt, node);
}

/* ---- the end ---- */

void dv_sched_attempt_free(struct dv_sched_attempt *attempt)
{
    drop_references(attempt);
    dv_sched_amounts_fini(&attempt->amounts);
    if (attempt->sched->attempt == attempt)
        attempt->sched->attempt = NULL;
    free(attempt);
}

void dv_sched_attempt_drop(struct dv_sched *sched)
{
    struct dv_sched_attempt *attempt = sched->attempt;

    if (!attempt || attempt->is_dropped)
        return;
    attempt->is_dropped = true;
    /* The inventory and the arena belong to the job until it has ended. */
    if (attempt->job.is_running) {
        dv_sched_offer_cancel(attempt);
        return;
    }
    dv_sched_attempt_free(attempt);
    dv_sched_turn(sched);
}

static void decide_on(struct dv_sched_attempt *attempt, const struct dv_sched_candidate *chosen)
{
    struct dv_sched_pod *pod = attempt->pod;
    struct dv_sched_decision decision = {.node = chosen->node,
                                         .allocations = chosen->offer->result.allocations,
                                         .claims = attempt->open,
                                         .n_claims = attempt->n_open,
                                         .requests = chosen->offer->extended.requests,
                                         .n_requests = chosen->offer->extended.n_requests,
                                         .mappings = chosen->offer->extended.mappings,
                                         .n_mappings = chosen->offer->extended.n_mappings};

    pod->is_late = false;
    dv_sched_unnominate(pod);
    dv_sched_crowd_leave(attempt->sched, pod);
    dv_sched_bind(pod, &decision);
}

/* Ends the attempt. sched->attempt is cleared first, because what is done about the end (a pod is
 * woken, another one is queued) may begin the next attempt. */
static void end(struct dv_sched_attempt *attempt, const struct dv_sched_candidate *chosen)
{
    struct dv_sched *sched = attempt->sched;

    sched->attempt = NULL;
    /* The next attempt starts where this one stopped, so that pods are spread over nodes although
     * only a part of the nodes is looked at each time. The reference does the same. */
    if (!attempt->pod->is_preset && !attempt->is_pinned)
        sched->next_node =
            sched->nodes.n > 0 ? (attempt->start + attempt->n_seen) % sched->nodes.n : 0;
    if (chosen)
        decide_on(attempt, chosen);
    else
        dv_sched_attempt_fail(attempt);
    dv_sched_attempt_free(attempt);
}

/* ---- stages ---- */

/* Whether the pods around it matter to the pod, or it to them. */
static bool is_related(const struct dv_sched_attempt *attempt)
{
    return !attempt->pod->is_preset &&
           (dv_affinity_has_terms(&attempt->value->spec) ||
            dv_affinity_is_meant(attempt->sched->affinity, attempt->value));
}

/* Counts the pods that this one looks at. What the crowd remembers of nodes is true only as long as
 * those are the same. False: the budget is used up; it is called again. */
static bool count_others(struct dv_sched_attempt *attempt)
{
    struct dv_sched *sched = attempt->sched;
    struct dv_sched_crowd *crowd = attempt->crowd;
    uint64_t cost = 0;
    bool is_done = dv_affinity_count(sched->affinity, crowd->wants, sched->budget_left, &cost);

    dv_sched_spend(sched, cost);
    if (!is_done)
        return false;
    dv_affinity_look_around(sched->affinity, crowd->wants, attempt->value);
    attempt->visit_cost += dv_affinity_cost(crowd->wants);
    if (crowd->wants_seen != dv_affinity_changed(crowd->wants)) {
        crowd->wants_seen = dv_affinity_changed(crowd->wants);
        crowd->improved = ++sched->tick;
        attempt->tick = sched->tick;
    }
    return true;
}

/* Begins, or begins again from the start. False: the attempt is over, because something has to be
 * cleared away first or because no node can be right. */
static bool begin(struct dv_sched_attempt *attempt)
{
    struct dv_sched *sched = attempt->sched;
    struct dv_sched_pod *pod = attempt->pod;

    dv_arena_reset(sched->scratch);
    take_references(attempt);
    attempt->crowd = NULL;
    attempt->n_open = 0;
    attempt->candidates.v = NULL; /* what it had was in the arena, which was reset */
    attempt->candidates.n = 0;
    attempt->candidates.size = 0;
    attempt->n_ranked = 0;
    attempt->n_seen = 0;
    attempt->has_alternatives = false;
    attempt->is_contradiction = false;
    attempt->is_error = false;
    attempt->fatal = NULL;
    attempt->preempts = false;
    attempt->preemption = DV_STR_NONE;
    attempt->is_paused = false;
    attempt->job.is_answered = false;
    attempt->shape = sched->shape;
    attempt->tick = sched->tick;
    sched->attempt = NULL; /* an attempt that ends below was never under way */
    if (dv_sched_attempt_clear(attempt)) {
        dv_sched_attempt_free(attempt);
        return false;
    }
    if (!dv_sched_attempt_check(attempt)) {
        dv_sched_crowd_leave(sched, pod);
        dv_sched_set_state(pod, DV_SCHED_POD_WAITING); /* until the claim or the class is there */
        if (!attempt->is_early)
            dv_sched_attempt_give_up(attempt, dv_str_copy(dv_buf_str(&sched->why), sched->scratch));
        dv_sched_attempt_free(attempt);
        return false;
    }
    sched->attempt = attempt;
    dv_sched_attempt_read(attempt);
    pod->is_related = is_related(attempt);
    attempt->crowd = dv_sched_crowd_join(sched, pod, dv_sched_crowd_key(sched, pod));
    /* Only the first time: beginning again does not get a new budget. */
    if (attempt->stage == DV_SCHED_AT_BEGIN)
        attempt->cost_left = dv_u64_max(COST_MAX, dv_sched_offer_cost(attempt->crowd));
    for (size_t i = 0; i < attempt->crowd->all.n; i++)
        attempt->crowd->all.v[i]->n_nodes = 0;
    attempt->visit_cost = dv_sched_attempt_visit_cost(attempt);
    dv_sched_spend(sched, attempt->visit_cost);
    gather_nodes(attempt);
    attempt->n_wanted = dv_sched_n_wanted(attempt->n_nodes);
    if (attempt->has_alternatives && attempt->n_wanted > N_ALTERNATIVES_MAX)
        attempt->n_wanted = N_ALTERNATIVES_MAX;
    attempt->stage = attempt->crowd->wants ? DV_SCHED_AT_COUNTING : DV_SCHED_AT_NODES;
    if (pod->is_preset)
        visit_preset(attempt);
    return true;
}

/* Whether nodes, classes and the claims of the pod are those that it began with. */
static bool is_current(const struct dv_sched_attempt *attempt)
{
    if (attempt->shape != attempt->sched->shape || attempt->n_claims != attempt->pod->n_claims ||
        attempt->pod->is_related != is_related(attempt))
        return false;
    for (size_t i = 0; i < attempt->n_claims; i++)
        if (attempt->claims[i] != attempt->pod->claims[i].claim->object)
            return false;
    return true;
}

/* Puts the attempt aside until the next turn, or until its job has ended. sched->amounts are a
 * scratch value that others use meanwhile: the attempt takes its own with it. */
static void pause(struct dv_sched_attempt *attempt)
{
    attempt->is_paused = true;
    attempt->amounts = attempt->sched->amounts;
    attempt->sched->amounts = (struct dv_sched_amounts){0};
}

/* Chooses, and ends the attempt or puts it aside. True: it goes on with another stage. */
static bool conclude(struct dv_sched_attempt *attempt)
{
    const struct dv_sched_candidate *chosen;

    switch (choose(attempt, &chosen)) {
    case NOT_YET:
        pause(attempt);
        return false;
    case CHOSEN:
        end(attempt, attempt->fatal ? NULL : chosen);
        return false;
    case NOTHING:
        break;
    }
    if (!attempt->fatal && attempt->n_seen < attempt->n_nodes) {
        attempt->stage = DV_SCHED_AT_NODES;
        return true;
    }
    if (dv_sched_preempt_begin(attempt)) {
        attempt->stage = DV_SCHED_AT_PREEMPTING;
        return true;
    }
    end(attempt, NULL);
    return false;
}

static void go_on(struct dv_sched_attempt *attempt)
{
    for (;;) {
        switch (attempt->stage) {
        case DV_SCHED_AT_BEGIN:
            if (!begin(attempt))
                return;
            break;
        case DV_SCHED_AT_COUNTING:
            if (!count_others(attempt)) {
                pause(attempt);
                return;
            }
            attempt->stage = DV_SCHED_AT_NODES;
            break;
        case DV_SCHED_AT_NODES:
            if (!look_around(attempt)) {
                pause(attempt);
                return;
            }
            attempt->n_ranked = 0;
            attempt->stage = asks_all(attempt) ? DV_SCHED_AT_RANKING : DV_SCHED_AT_CHOOSING;
            break;
        case DV_SCHED_AT_RANKING:
            if (!rank_all(attempt)) {
                pause(attempt);
                return;
            }
            attempt->stage = DV_SCHED_AT_CHOOSING;
            break;
        case DV_SCHED_AT_CHOOSING:
            if (!conclude(attempt))
                return;
            break;
        case DV_SCHED_AT_PREEMPTING:
            if (dv_sched_preempt_look(attempt))
                end(attempt, NULL);
            else
                pause(attempt);
            return;
        }
    }
}

void dv_sched_attempt_go_on(struct dv_sched *sched)
{
    struct dv_sched_attempt *attempt = sched->attempt;

    dv_sched_amounts_fini(&sched->amounts);
    sched->amounts = attempt->amounts;
    attempt->amounts = (struct dv_sched_amounts){0};
    if (is_current(attempt) || begin(attempt))
        go_on(attempt);
}

const struct dv_sched_pod *dv_sched_attempt_pod(const struct dv_sched *sched)
{
    return sched->attempt && !sched->attempt->is_dropped ? sched->attempt->pod : NULL;
}

bool dv_sched_attempt_is_waiting(const struct dv_sched *sched)
{
    return sched->attempt && sched->attempt->job.is_running;
}

void dv_sched_decide(struct dv_sched_pod *pod)
{
    struct dv_sched_attempt *attempt = DV_ALLOC(struct dv_sched_attempt);

    attempt->sched = pod->sched;
    attempt->pod = pod;
    attempt->begin_ns = dv_loop_now_ns(pod->sched->loop);
    go_on(attempt);
}

/* decide.c - one attempt: where a pod goes and which devices it gets, or why it goes nowhere. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "sched/attempt.h"
#include "sched/fit.h"
#include "sched/inside.h"
#include "sched/sched.h"

/* Of searches for devices, in the allocator's units of ten nanoseconds: on one node, and in one
 * attempt. When no node is left that was not searched, all are again, at twice the cost a node, up
 * to eight times. */
#define COST_NODE UINT64_C(500000)
#define COST_MAX UINT64_C(2000000)
/* Nodes are all over the memory: one is fetched while so many before it are looked at. */
#define N_AHEAD 8u
/* Nodes that are searched for devices to find the best alternative. */
#define N_ALTERNATIVES_MAX 100u

/* ---- a node ---- */

static void count(struct attempt *attempt, struct crowd_reason *reason)
{
    reason->n_nodes++;
    attempt->is_error |= reason->is_error;
}

static void turn_down(struct attempt *attempt, const struct node *node, dv_str why)
{
    struct crowd_reason *reason = dv_sched_crowd_reason(attempt->crowd, why);

    dv_sched_crowd_remember(attempt->sched, attempt->crowd, node, reason);
    count(attempt, reason);
}

/* Claims that are allocated already say where the pod can be. */
static bool are_claims_at_hand(const struct attempt *attempt, const struct node *node)
{
    const struct dv_api_node *value = node->object->value;

    for (size_t i = 0; i < attempt->pod->n_claims; i++) {
        const struct claim *record = attempt->pod->claims[i].claim;
        const struct dv_api_resource_claim *claim = dv_sched_claim_value(record);
        const struct dv_api_allocation_result *allocation = claim->status.allocation;
        struct dv_err err;

        if (!allocation)
            continue;
        if (dv_sched_claim_is_rivalled(record)) /* by a scheduler that did not live to undo it */
            return false;
        if (allocation->node_selector &&
            !dv_node_selector_matches(allocation->node_selector, node->name, value->metadata.labels,
                                      value->metadata.n_labels))
            return false;
        if (dv_sched_conditions_failed(attempt->sched, claim, &err))
            return false;
    }
    return true;
}

static void visit(struct attempt *attempt, struct node *node)
{
    struct dv_sched *sched = attempt->sched;
    const struct dv_api_pod_spec *spec = &attempt->value->spec;
    struct crowd_reason *known = dv_sched_crowd_recall(sched, attempt->crowd, node);
    struct candidate *candidate;

    if (known) {
        count(attempt, known);
        return;
    }
    sched->numbers.n_node_visits++;
    dv_buf_clear(&sched->why);
    if (!attempt->pod->is_preset) {
        if (!dv_sched_fits(spec, &sched->amounts, &sched->resources, node->object, &node->room,
                           &sched->why)) {
            turn_down(attempt, node, dv_buf_str(&sched->why));
            return;
        }
        if (attempt->n_open < attempt->pod->n_claims && !are_claims_at_hand(attempt, node)) {
            turn_down(attempt, node, DV_STR(UNAVAILABLE));
            return;
        }
    }
    candidate = dv_vec_add_in(&attempt->candidates, sched->scratch);
    candidate->node = node;
    dv_sched_merit(spec, &sched->amounts, node->object, &node->room, &candidate->merit);
}

/* ---- devices ---- */

static void make_share_id(void *ctx, char text[37])
{
    uint64_t high = dv_random_u64();
    uint64_t low = dv_random_u64();

    (void)ctx;
    (void)snprintf(text, 37, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(high >> 32),
                   (unsigned)(high >> 16) & 0xffffu, (unsigned)high & 0xfffu,
                   (unsigned)(low >> 48 & 0x3fffu) | 0x8000u,
                   (unsigned long long)(low & UINT64_C(0xffffffffffff)));
}

/* The claim for extended resources that the pod would need on the node. */
static bool add_extended(struct attempt *attempt, struct candidate *candidate, size_t *n_asked,
                         struct dv_err *err)
{
    struct dv_sched *sched = attempt->sched;
    const struct dv_api_node *node = candidate->node->object->value;
    struct dv_api_resource_claim *claim;

    if (!attempt->pod->is_extended)
        return true;
    if (!dv_extended_read(sched->inventory, &attempt->value->spec, node->status.allocatable,
                          node->status.n_allocatable, sched->scratch, &candidate->offer->extended,
                          err))
        return false;
    if (candidate->offer->extended.n_requests == 0)
        return true;
    claim = DV_NEW(sched->scratch, struct dv_api_resource_claim);
    claim->metadata.name = DV_STR("<extended-resources>");
    claim->metadata.namespace = attempt->value->metadata.namespace;
    claim->spec.devices.requests = candidate->offer->extended.requests;
    claim->spec.devices.n_requests = candidate->offer->extended.n_requests;
    attempt->asked[(*n_asked)++] = claim;
    return true;
}

static void note_failure(struct attempt *attempt, const struct node *node,
                         enum dv_alloc_outcome outcome, const struct dv_err *err)
{
    dv_str text = dv_str_from_c(err->msg);

    if (outcome == DV_ALLOC_NONE)
        text = DV_STR("cannot allocate all claims");
    dv_sched_crowd_reason(attempt->crowd, text)->is_error = outcome == DV_ALLOC_FAILED;
    turn_down(attempt, node, text);
}

/* The cost is spent: this node's, which is remembered, or that of the attempt. */
static void note_spent(struct attempt *attempt, const struct node *node, bool is_searched)
{
    struct crowd_reason *reason = dv_sched_crowd_reason(
        attempt->crowd, is_searched
                            ? DV_STR("timed out trying to allocate devices: the search was given "
                                     "up at its limit of cost, simplify the selectors or ask for "
                                     "less")
                            : DV_STR("not searched for devices yet"));

    reason->is_error = true;
    reason->is_spent = is_searched;
    attempt->is_spent = true;
    if (is_searched)
        dv_sched_crowd_remember(attempt->sched, attempt->crowd, node, reason);
    count(attempt, reason);
}

static bool allocate(struct attempt *attempt, struct candidate *candidate)
{
    struct dv_sched *sched = attempt->sched;
    struct node *node = candidate->node;
    const struct dv_api_object_meta *meta = node->object->meta;
    const struct dv_alloc_node where = {
        .name = node->name, .labels = meta->labels, .n_labels = meta->n_labels};
    uint64_t cost = COST_NODE << attempt->crowd->n_doubled;
    const struct dv_alloc_options options = {.cost_max = dv_u64_min(attempt->cost_left, cost),
                                             .share_id = make_share_id};
    size_t n_asked = attempt->n_open;
    struct dv_err err = {0};

    candidate->offer = DV_NEW(sched->scratch, struct offer);
    if (!add_extended(attempt, candidate, &n_asked, &err)) {
        note_failure(attempt, node, DV_ALLOC_FAILED, &err);
        return false;
    }
    if (n_asked == 0)
        return true;
    if (attempt->cost_left == 0) {
        note_spent(attempt, node, false);
        return false;
    }
    sched->numbers.n_allocations++;
    dv_allocate(sched->inventory, &where, attempt->asked, n_asked, &options, sched->scratch,
                &candidate->offer->result, &err);
    attempt->cost_left -= dv_u64_min(candidate->offer->result.cost, attempt->cost_left);
    if (candidate->offer->result.outcome == DV_ALLOC_DONE)
        return true;
    if (candidate->offer->result.outcome == DV_ALLOC_GAVE_UP)
        note_spent(attempt, node, options.cost_max == cost);
    else
        note_failure(attempt, node, candidate->offer->result.outcome, &err);
    return false;
}

/* ---- the best ---- */

/* Eight for the first alternative of a request, one less for each further one. */
static int64_t rank_alternatives(const struct attempt *attempt, const struct candidate *candidate)
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

/* Those without devices for it go; the others are ranked by the alternatives that they have. */
static void allocate_all(struct attempt *attempt)
{
    size_t n = 0;

    for (size_t i = 0; i < attempt->candidates.n; i++) {
        struct candidate *candidate = &attempt->candidates.v[i];

        if (!allocate(attempt, candidate))
            continue;
        candidate->merit.first_wish = rank_alternatives(attempt, candidate);
        attempt->candidates.v[n++] = *candidate;
    }
    attempt->candidates.n = n;
}

/* The best of the candidates that has the devices; the first of equals, so that nodes are filled in
 * turn. They are searched for only where it matters. */
static struct candidate *choose(struct attempt *attempt)
{
    bool is_ranked = attempt->has_alternatives;
    struct merit best = {0};

    if (is_ranked)
        allocate_all(attempt);
    for (size_t i = 0; i < attempt->candidates.n; i++)
        dv_sched_merit_raise(&best, &attempt->candidates.v[i].merit);
    while (attempt->candidates.n > 0) {
        size_t at = 0;
        int64_t top = -1;

        for (size_t i = 0; i < attempt->candidates.n; i++) {
            int64_t score = dv_sched_score(&attempt->candidates.v[i].merit, &best);

            if (score > top) {
                top = score;
                at = i;
            }
        }
        if (is_ranked || allocate(attempt, &attempt->candidates.v[at]))
            return &attempt->candidates.v[at];
        dv_vec_remove(&attempt->candidates, at);
    }
    return NULL;
}

static struct candidate *look_around(struct attempt *attempt)
{
    struct dv_sched *sched = attempt->sched;
    size_t n = sched->nodes.n;
    size_t n_wanted = dv_sched_n_wanted(n);
    size_t start = n > 0 ? sched->next_node % n : 0;
    struct candidate *chosen = NULL;
    size_t i = 0;

    if (attempt->has_alternatives && n_wanted > N_ALTERNATIVES_MAX)
        n_wanted = N_ALTERNATIVES_MAX;
    while (i < n && !chosen) {
        dv_vec_clear(&attempt->candidates);
        for (; i < n && attempt->candidates.n < n_wanted; i++) {
            const struct node *later = sched->nodes.v[(start + i + N_AHEAD) % n];

            __builtin_prefetch(later);
            __builtin_prefetch(&later->room.taken);
            visit(attempt, sched->nodes.v[(start + i) % n]);
        }
        chosen = choose(attempt);
    }
    sched->next_node = n > 0 ? (start + i) % n : 0;
    return chosen;
}

/* The node that a pod is on already. */
static struct candidate *look_there(struct attempt *attempt)
{
    struct node *node = dv_map_get(&attempt->sched->nodes_by_name, attempt->value->spec.node_name);

    attempt->is_nowhere = !node || !node->object;
    if (attempt->is_nowhere)
        return NULL;
    visit(attempt, node);
    return choose(attempt);
}

/* ---- a node was found ---- */

static void decide_on(struct attempt *attempt, const struct candidate *chosen)
{
    struct pod *pod = attempt->pod;
    struct decision decision = {.node = chosen->node,
                                .allocations = chosen->offer->result.allocations,
                                .claims = attempt->open,
                                .n_claims = attempt->n_open,
                                .requests = chosen->offer->extended.requests,
                                .n_requests = chosen->offer->extended.n_requests,
                                .mappings = chosen->offer->extended.mappings,
                                .n_mappings = chosen->offer->extended.n_mappings};

    dv_sched_crowd_leave(attempt->sched, pod);
    dv_sched_bind(pod, &decision);
}

void dv_sched_decide(struct pod *pod)
{
    struct dv_sched *sched = pod->sched;
    struct attempt attempt = {.sched = sched,
                              .pod = pod,
                              .value = dv_sched_pod_value(pod),
                              .begin_ns = dv_loop_now_ns(sched->loop)};
    const struct candidate *chosen;

    dv_arena_reset(sched->scratch);
    if (dv_sched_attempt_clear(&attempt))
        return;
    if (!dv_sched_attempt_check(&attempt)) {
        dv_sched_crowd_leave(sched, pod);
        dv_sched_set_state(pod, POD_WAITING); /* for the claim, or for the class */
        if (!attempt.is_early)
            dv_sched_attempt_give_up(&attempt,
                                     dv_str_copy(dv_buf_str(&sched->why), sched->scratch));
        return;
    }
    dv_sched_attempt_read(&attempt);
    attempt.crowd = dv_sched_crowd_join(sched, pod, dv_sched_crowd_key(sched, pod));
    attempt.cost_left = dv_u64_max(COST_MAX, COST_NODE << attempt.crowd->n_doubled);
    for (size_t i = 0; i < attempt.crowd->all.n; i++)
        attempt.crowd->all.v[i]->n_nodes = 0;
    chosen = pod->is_preset ? look_there(&attempt) : look_around(&attempt);
    if (chosen)
        decide_on(&attempt, chosen);
    else
        dv_sched_attempt_fail(&attempt);
}

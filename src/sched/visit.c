/* visit.c - looks at one node: whether the pod may be there as far as filters and allocated claims
 * go. Devices that have yet to be allocated are offer.c's: they cost far more and are asked of few
 * nodes. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "affinity/affinity.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "sched/attempt.h"
#include "sched/crowd.h"
#include "sched/fit.h"
#include "sched/placed.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* What looking at a node costs, and for each allocated claim of the pod, in the allocator's
 * units. */
#define COST_VISIT 10u
#define COST_CLAIM 10u

void dv_sched_attempt_count(struct dv_sched_attempt *attempt, struct dv_sched_crowd_reason *reason)
{
    reason->n_nodes++;
    attempt->is_error |= reason->is_error;
    if (reason->is_fatal)
        attempt->fatal = reason;
}

void dv_sched_attempt_turn_down(struct dv_sched_attempt *attempt, const struct dv_sched_node *node,
                                dv_str why)
{
    struct dv_sched_crowd_reason *reason = dv_sched_crowd_reason(attempt->crowd, why);

    /* A pod that names its nodes has few of them, and a crowd of its own on each: to remember would
     * cost more than to look again. */
    if (!attempt->is_pinned)
        dv_sched_crowd_remember(attempt->sched, attempt->crowd, node, reason);
    dv_sched_attempt_count(attempt, reason);
}

bool dv_sched_attempt_has_claims_at_hand(const struct dv_sched_attempt *attempt,
                                         const struct dv_sched_node *node)
{
    const struct dv_api_node *value = node->object->value;

    for (size_t i = 0; i < attempt->pod->n_claims; i++) {
        const struct dv_sched_claim *record = attempt->pod->claims[i].claim;
        const struct dv_api_resource_claim *claim = dv_sched_claim_value(record);
        const struct dv_api_allocation_result *allocation = claim->status.allocation;
        struct dv_err err;

        if (!allocation)
            continue;
        /* Two claims have the same device, and this one was later: the scheduler that gave it away
         * ended before it could undo that. The claim is of no use anywhere, until it is
         * deallocated. */
        if (dv_sched_claim_is_rivalled(record))
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

bool dv_sched_attempt_may_be_on(struct dv_sched_attempt *attempt, const struct dv_sched_node *node)
{
    struct dv_sched *sched = attempt->sched;

    dv_buf_clear(&sched->why);
    if (attempt->pod->is_preset)
        return true;
    if (!dv_sched_fits(&attempt->value->spec, &sched->amounts, &sched->resources, node->object,
                       &node->room, &sched->why)) {
        dv_sched_attempt_turn_down(attempt, node, dv_buf_str(&sched->why));
        return false;
    }
    /* Not remembered: it depends on the priorities of both. */
    if (!dv_list_is_empty(&sched->nominated) && !dv_sched_fits_beside_nominated(attempt, node)) {
        dv_sched_attempt_count(attempt,
                               dv_sched_crowd_reason(attempt->crowd, dv_buf_str(&sched->why)));
        return false;
    }
    if (attempt->crowd->wants) {
        enum dv_affinity_verdict verdict = dv_affinity_check(attempt->crowd->wants, &node->near);

        if (verdict != DV_AFFINITY_FITS) {
            dv_sched_attempt_turn_down(attempt, node, dv_affinity_reason(verdict));
            return false;
        }
    }
    if (attempt->n_open < attempt->pod->n_claims &&
        !dv_sched_attempt_has_claims_at_hand(attempt, node)) {
        dv_sched_attempt_turn_down(attempt, node, DV_STR(DV_SCHED_UNAVAILABLE));
        return false;
    }
    return true;
}

void dv_sched_attempt_visit(struct dv_sched_attempt *attempt, struct dv_sched_node *node)
{
    struct dv_sched *sched = attempt->sched;
    struct dv_sched_crowd_reason *known = dv_sched_crowd_recall(sched, attempt->crowd, node);
    struct dv_sched_candidate *candidate;
    size_t n_taints;

    if (known) {
        dv_sched_attempt_count(attempt, known);
        dv_sched_spend(sched, 1);
        return;
    }
    sched->numbers.n_node_visits++;
    /* Hundreds of nodes are looked at for each pod, and their objects lie anywhere in memory: the
     * object of one without taints is not touched. */
    n_taints = node->room.has_taints
                   ? ((const struct dv_api_node *)node->object->value)->spec.n_taints
                   : 0;
    dv_sched_spend(sched, attempt->visit_cost + dv_sched_tolerating_cost(
                                                    attempt->value->spec.n_tolerations, n_taints));
    /* Each of them is asked whether it goes first there, once or twice. */
    dv_sched_spend(sched, sched->n_nominated);
    if (!dv_sched_attempt_may_be_on(attempt, node))
        return;
    candidate = dv_vec_add_in(&attempt->candidates, sched->scratch);
    candidate->node = node;
    candidate->node_version = node->version;
    dv_sched_merit(&attempt->value->spec, &sched->amounts, node->object, &node->room,
                   &candidate->merit);
    if (attempt->crowd->wants) {
        candidate->merit.near =
            dv_sched_points(dv_affinity_attraction(attempt->crowd->wants, &node->near));
        candidate->merit.crowded =
            dv_sched_points(dv_affinity_crowding(attempt->crowd->wants, &node->near));
    }
}

static size_t n_terms(const struct dv_api_node_selector *selector)
{
    size_t n = 0;

    for (size_t i = 0; selector && i < selector->n_node_selector_terms; i++) {
        const struct dv_api_node_selector_term *term = &selector->node_selector_terms[i];

        n += 1 + term->n_match_fields;
        for (size_t j = 0; j < term->n_match_expressions; j++)
            n += 1 + term->match_expressions[j].n_values;
    }
    return n;
}

uint64_t dv_sched_attempt_visit_cost(const struct dv_sched_attempt *attempt)
{
    const struct dv_api_pod_spec *spec = &attempt->value->spec;
    const struct dv_api_node_affinity *affinity =
        spec->affinity ? spec->affinity->node_affinity : NULL;
    uint64_t cost = COST_VISIT + attempt->sched->amounts.all.n + 2 * spec->n_node_selector +
                    COST_CLAIM * (attempt->pod->n_claims - attempt->n_open);

    if (!affinity)
        return cost;
    cost += n_terms(affinity->required_during_scheduling_ignored_during_execution);
    for (size_t i = 0; i < affinity->n_preferred_during_scheduling_ignored_during_execution; i++) {
        struct dv_api_preferred_scheduling_term *term =
            &affinity->preferred_during_scheduling_ignored_during_execution[i];

        cost += n_terms(&(struct dv_api_node_selector){.node_selector_terms = &term->preference,
                                                       .n_node_selector_terms = 1});
    }
    return cost;
}

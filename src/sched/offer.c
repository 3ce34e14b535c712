/* offer.c - the devices that a node would give a pod. What takes little is searched for on the
 * spot; what takes longer by a job, to which the inventory is lent.
 *
 *     dv_sched_offer_ask -> within the budget of this turn -> DV_SCHED_OFFERED or DV_SCHED_REFUSED
 *                        -> longer: the job -> the attempt goes on, and asks again -> its answer */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "sched/attempt.h"
#include "sched/crowd.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* What the search for devices on one node may cost: some 25 ms. It is doubled each time that all
 * nodes were searched in vain and some were given up, up to 0.8 s. */
#define COST_NODE UINT64_C(2500000)
/* The most claims that are read here: to read more takes so long that a job does it from the
 * beginning. */
#define ASKED_HERE_MAX 256u

uint64_t dv_sched_offer_cost(const struct dv_sched_crowd *crowd)
{
    return COST_NODE << crowd->n_doubled;
}

static void make_share_id(void *ctx, char text[DV_UUID_BYTES])
{
    (void)ctx;
    (void)dv_random_uuid(text);
}

bool dv_sched_offer_add_extended(struct dv_sched_attempt *attempt, const struct dv_sched_node *at,
                                 struct dv_extended *extended, size_t *n_asked, struct dv_err *err)
{
    struct dv_sched *sched = attempt->sched;
    const struct dv_api_node *node = at->object->value;
    struct dv_api_resource_claim *claim;

    if (!attempt->pod->is_extended)
        return true;
    if (!dv_extended_read(sched->inventory, &attempt->value->spec, node->status.allocatable,
                          node->status.n_allocatable, sched->scratch, extended, err))
        return false;
    if (extended->n_requests == 0)
        return true;
    claim = DV_NEW(sched->scratch, struct dv_api_resource_claim);
    claim->metadata.name = DV_STR("<extended-resources>");
    claim->metadata.namespace = attempt->value->metadata.namespace;
    claim->spec.devices.requests = extended->requests;
    claim->spec.devices.n_requests = extended->n_requests;
    attempt->asked[(*n_asked)++] = claim;
    return true;
}

static void note_failure(struct dv_sched_attempt *attempt, const struct dv_sched_node *node,
                         const struct dv_alloc_result *result, const struct dv_err *err)
{
    enum dv_alloc_outcome outcome = result->outcome;
    dv_str text = dv_str_from_c(err->msg);
    struct dv_sched_crowd_reason *reason;

    if (outcome == DV_ALLOC_NONE) {
        /* What is told of the crowd's nearest miss is out of date. */
        free(attempt->crowd->miss);
        attempt->crowd->miss = NULL;
        text = DV_STR(DV_SCHED_NO_DEVICES);
    }
    if (outcome == DV_ALLOC_NONE && result->note.n > 0 && !attempt->sched->options.is_strict)
        text = dv_str_printf(attempt->sched->scratch, DV_SCHED_NO_DEVICES " (%.*s)",
                             DV_FMT(result->note));
    reason = dv_sched_crowd_reason(attempt->crowd, text);
    reason->is_error = outcome == DV_ALLOC_FAILED;
    reason->is_fatal = outcome == DV_ALLOC_FAILED;
    dv_sched_attempt_turn_down(attempt, node, text);
}

/* Notes that a search was given up. is_searched: this node was searched at the full cost, which is
 * remembered, so that it is not searched again in vain. Otherwise the attempt had spent its own
 * budget on other nodes, and this one is still unknown. */
static void note_spent(struct dv_sched_attempt *attempt, const struct dv_sched_node *node,
                       bool is_searched)
{
    struct dv_sched_crowd_reason *reason = dv_sched_crowd_reason(
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
    dv_sched_attempt_count(attempt, reason);
}

/* Draws the conclusion from a search that has ended: an offer, or a reason against the node. */
static void conclude(struct dv_sched_attempt *attempt, const struct dv_sched_node *node,
                     struct dv_sched_offer *offer, uint64_t cost_max, const struct dv_err *err)
{
    attempt->cost_left -= dv_u64_min(offer->result.cost, attempt->cost_left);
    offer->is_refused = offer->result.outcome != DV_ALLOC_DONE;
    if (offer->result.outcome == DV_ALLOC_GAVE_UP)
        note_spent(attempt, node, cost_max == dv_sched_offer_cost(attempt->crowd));
    else if (offer->is_refused)
        note_failure(attempt, node, &offer->result, err);
}

/* ---- by a job ---- */

static bool is_cancelled(void *ctx)
{
    struct dv_sched_attempt *attempt = ctx;

    return atomic_load(&attempt->job.is_cancelled);
}

static void run(struct dv_work *work) /* on another thread */
{
    struct dv_sched_attempt *attempt = DV_CONTAINER(work, struct dv_sched_attempt, job.work);
    const struct dv_alloc_options options = {.cost_max = attempt->job.cost_max,
                                             .share_id = make_share_id,
                                             .is_cancelled = is_cancelled,
                                             .ctx = attempt};

    dv_allocate(attempt->sched->inventory, &attempt->job.where, attempt->asked,
                attempt->job.n_asked, &options, attempt->sched->scratch, &attempt->job.result,
                &attempt->job.err);
}

/* The answer is kept until the attempt goes on and asks for it. */
static void on_run(struct dv_work *work, const struct dv_err *err)
{
    struct dv_sched_attempt *attempt = DV_CONTAINER(work, struct dv_sched_attempt, job.work);
    struct dv_sched *sched = attempt->sched;

    dv_inventory_return(sched->inventory);
    dv_object_unref(attempt->job.node);
    attempt->job.node = NULL;
    attempt->job.is_running = false;
    attempt->job.is_answered = !err;
    if (attempt->is_dropped)
        dv_sched_attempt_free(attempt);
    dv_sched_tell_devices(sched); /* who asked while the inventory was lent may ask again */
    dv_sched_turn(sched);
    dv_sched_request_done(sched);
}

static void start(struct dv_sched_attempt *attempt, const struct dv_sched_node *node,
                  struct dv_sched_offer *offer, size_t n_asked, uint64_t cost_max)
{
    struct dv_sched *sched = attempt->sched;
    struct dv_sched_job *job = &attempt->job;

    sched->numbers.n_jobs++;
    sched->n_requests++; /* counted like a request: closing waits for the job */
    job->node = dv_object_ref(node->object);
    job->where = (struct dv_alloc_node){.name = dv_str_copy(node->name, sched->scratch),
                                        .labels = job->node->meta->labels,
                                        .n_labels = job->node->meta->n_labels};
    job->offer = offer;
    job->n_asked = n_asked;
    job->cost_max = cost_max;
    job->result = (struct dv_alloc_result){0};
    job->err = (struct dv_err){0};
    job->begun = dv_inventory_now(sched->inventory);
    job->is_running = true;
    job->is_answered = false;
    job->work = (struct dv_work){.run = run, .done = on_run};
    dv_inventory_lend(sched->inventory);
    dv_work_start(&job->work, sched->loop);
}

void dv_sched_offer_cancel(struct dv_sched_attempt *attempt)
{
    atomic_store(&attempt->job.is_cancelled, true);
    dv_work_cancel(&attempt->job.work);
}

/* ---- asking ---- */

/* Searches here and now, at the cost that is left of this turn's budget. DV_ALLOC_GAVE_UP: that was
 * not enough. */
static void search(struct dv_sched_attempt *attempt, const struct dv_sched_node *node,
                   struct dv_sched_offer *offer, size_t n_asked, uint64_t cost_max,
                   struct dv_err *err)
{
    struct dv_sched *sched = attempt->sched;
    const struct dv_api_object_meta *meta = node->object->meta;
    const struct dv_alloc_node where = {
        .name = node->name, .labels = meta->labels, .n_labels = meta->n_labels};
    const struct dv_alloc_options options = {.cost_max = cost_max, .share_id = make_share_id};

    sched->numbers.n_allocations++;
    offer->version = dv_inventory_now(sched->inventory);
    dv_allocate(sched->inventory, &where, attempt->asked, n_asked, &options, sched->scratch,
                &offer->result, err);
    dv_sched_spend(sched, offer->result.cost);
}

/* Takes the answer of the job, when it was made for this offer. False: there is none, and a search
 * has to begin; also when what it was found in has changed since, while the job ran or in the turn
 * before this one: a refusal that is out of date would be remembered as if it were new, and the
 * change that made it wrong would help nobody. */
static bool take_answer(struct dv_sched_attempt *attempt, const struct dv_sched_node *node,
                        struct dv_sched_offer *offer)
{
    struct dv_sched_job *job = &attempt->job;

    if (!job->is_answered || job->offer != offer)
        return false;
    job->is_answered = false;
    if (dv_inventory_has_changed(attempt->sched->inventory, job->where.name, job->begun)) {
        attempt->cost_left -= dv_u64_min(job->result.cost, attempt->cost_left);
        return false;
    }
    offer->result = job->result;
    offer->version = job->begun;
    conclude(attempt, node, offer, job->cost_max, &job->err);
    return true;
}

static enum dv_sched_offered begin(struct dv_sched_attempt *attempt,
                                   const struct dv_sched_node *node, struct dv_sched_offer *offer)
{
    struct dv_sched *sched = attempt->sched;
    uint64_t cost_max = dv_u64_min(attempt->cost_left, dv_sched_offer_cost(attempt->crowd));
    uint64_t cost_now = dv_u64_min(cost_max, sched->budget_left);
    size_t n_asked = attempt->n_open;
    struct dv_err err = {0};

    if (!dv_sched_offer_add_extended(attempt, node, &offer->extended, &n_asked, &err)) {
        offer->is_refused = true;
        note_failure(attempt, node, &(struct dv_alloc_result){.outcome = DV_ALLOC_FAILED}, &err);
        return DV_SCHED_REFUSED;
    }
    if (n_asked == 0)
        return DV_SCHED_OFFERED;
    if (attempt->cost_left == 0) {
        offer->is_refused = true;
        note_spent(attempt, node, false);
        return DV_SCHED_REFUSED;
    }
    if (n_asked > ASKED_HERE_MAX) {
        start(attempt, node, offer, n_asked, cost_max);
        return DV_SCHED_PENDING;
    }
    search(attempt, node, offer, n_asked, cost_now, &err);
    /* The search did not fit into this turn but may cost more: it is made once more from the
     * beginning, by a job. What the first one learned about selectors is remembered by the
     * inventory, so that little of it is lost. */
    if (offer->result.outcome == DV_ALLOC_GAVE_UP && cost_now < cost_max) {
        start(attempt, node, offer, n_asked, cost_max);
        return DV_SCHED_PENDING;
    }
    conclude(attempt, node, offer, cost_max, &err);
    return offer->is_refused ? DV_SCHED_REFUSED : DV_SCHED_OFFERED;
}

enum dv_sched_offered dv_sched_offer_ask(struct dv_sched_attempt *attempt,
                                         struct dv_sched_candidate *candidate)
{
    if (candidate->offer && candidate->offer->is_known)
        return candidate->offer->is_refused ? DV_SCHED_REFUSED : DV_SCHED_OFFERED;
    if (!candidate->offer)
        candidate->offer = DV_NEW(attempt->sched->scratch, struct dv_sched_offer);
    if (!take_answer(attempt, candidate->node, candidate->offer)) {
        if (!dv_sched_has_budget(attempt->sched))
            return DV_SCHED_PENDING;
        if (begin(attempt, candidate->node, candidate->offer) == DV_SCHED_PENDING)
            return DV_SCHED_PENDING;
    }
    candidate->offer->is_known = true;
    return candidate->offer->is_refused ? DV_SCHED_REFUSED : DV_SCHED_OFFERED;
}

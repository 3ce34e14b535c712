/* sched_preempt.c - whether pods of lower priority shall make room for one that fits nowhere, and
 * on which node. As in the reference, a part of the nodes is enough, from one at random on; the
 * node is tried once more before anybody is sent away, because others may have come meanwhile. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "resource/disruption.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "sched/attempt.h"
#include "sched/crowd.h"
#include "sched/fit.h"
#include "sched/placed.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* So many candidates are enough, or this part of the nodes. */
#define N_CANDIDATES_MIN 100u
#define CANDIDATES_PART 10u
#define TEXT_BYTES_MAX 256u
/* What a look at a node costs beside what is counted there, in the allocator's units. */
#define COST_NODE 100u
/* What it costs to hold a pod against a budget, in the allocator's units. */
#define COST_BUDGET 10u

/* ---- what costs less: the rules of the reference, in its order; pure ---- */

int dv_sched_compare_victims(const void *a, const void *b)
{
    const struct dv_sched_victim *x = a;
    const struct dv_sched_victim *y = b;

    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    if (x->started_s != y->started_s)
        return x->started_s < y->started_s ? -1 : 1;
    return 0;
}

void dv_sched_toll_add(struct dv_sched_toll *toll, const struct dv_sched_victim *victim)
{
    if (toll->n == 0 || victim->priority > toll->highest) {
        toll->highest = victim->priority;
        toll->started_s = victim->started_s;
    } else if (victim->priority == toll->highest && victim->started_s < toll->started_s) {
        toll->started_s = victim->started_s;
    }
    toll->n++;
    toll->n_spared += victim->is_spared;
    /* Counted from the lowest, so that one pod more never costs less: priorities may be negative.
     */
    toll->sum += victim->priority - INT32_MIN;
}

bool dv_sched_toll_is_less(const struct dv_sched_toll *toll, const struct dv_sched_toll *than)
{
    if (toll->n_spared != than->n_spared)
        return toll->n_spared < than->n_spared;
    if (toll->highest != than->highest)
        return toll->highest < than->highest;
    if (toll->sum != than->sum)
        return toll->sum < than->sum;
    if (toll->n != than->n)
        return toll->n < than->n;
    return toll->started_s > than->started_s;
}

/* ---- whom budgets are against ---- */

struct budget {
    struct dv_disruption disruption; /* for its selector */
    int64_t n_left;
};

/* Takes one of what each budget of the pod has left. Returns whether one has nothing left. */
static bool is_against(struct budget *budgets, size_t n, const struct dv_api_object_meta *pod)
{
    bool is_refused = false;

    for (size_t i = 0; i < n; i++) {
        const struct dv_disruption *disruption = &budgets[i].disruption;

        if (dv_str_eq(disruption->budget->metadata.namespace, pod->namespace) &&
            dv_disruption_selects(disruption, pod))
            is_refused |= --budgets[i].n_left < 0;
    }
    return is_refused;
}

void dv_sched_budget_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    (void)ctx;
    (void)old;
    (void)now;
}

void dv_sched_spare(struct dv_sched *sched, struct dv_sched_victim *victims, size_t n)
{
    const struct dv_view *view = sched->views[DV_SCHED_VIEW_BUDGETS];
    size_t n_budgets = 0;
    struct budget *budgets;
    const struct dv_object *object;
    size_t at = 0;

    if (n == 0 || !view || dv_view_n(view) == 0)
        return;
    budgets = DV_NEW_ARRAY(sched->scratch, struct budget, dv_view_n(view));
    while ((object = dv_view_next(view, &at)) != NULL) {
        const struct dv_api_pod_disruption_budget *value = object->value;

        dv_disruption_begin(&budgets[n_budgets].disruption, value, sched->scratch);
        budgets[n_budgets++].n_left = value->status.disruptions_allowed;
    }
    for (size_t i = 0; i < n; i++)
        victims[i].is_spared =
            is_against(budgets, n_budgets, dv_object_unpack(victims[i].placed->object)->meta);
    dv_sched_spend(sched, (n + 1) * n_budgets * COST_BUDGET);
}

/* ---- for whom, and where ---- */

/* The words for a pod that does not send others away; `text` is a literal. */
static bool refuse(struct dv_sched_attempt *attempt, const char *text)
{
    attempt->preemption = dv_str_from_c(text);
    return false;
}

static bool is_leaving_for_others(const struct dv_api_pod *pod)
{
    if (!pod->metadata.deletion_timestamp.is_set)
        return false;
    for (size_t i = 0; i < pod->status.n_conditions; i++)
        if (dv_str_eq(pod->status.conditions[i].type, DV_STR("DisruptionTarget")) &&
            dv_str_eq(pod->status.conditions[i].reason, DV_STR("PreemptionByScheduler")))
            return true;
    return false;
}

/* Whether victims on the node that the pod is nominated for have yet to go. */
static bool is_waiting(const struct dv_sched_pod *pod)
{
    const struct dv_sched_node *node =
        pod->nominated ? dv_map_get(&pod->sched->nodes_by_name, dv_str_from_c(pod->nominated))
                       : NULL;

    if (dv_sched_is_preempting(pod))
        return true;
    for (size_t i = 0; node && i < node->near.pods.n; i++) {
        const struct dv_sched_placed *placed =
            DV_CONTAINER(node->near.pods.v[i], struct dv_sched_placed, pod);

        if (placed->pod.is_terminating && placed->priority < pod->priority &&
            is_leaving_for_others(dv_object_unpack(placed->object)->value))
            return true;
    }
    return false;
}

bool dv_sched_preempt_begin(struct dv_sched_attempt *attempt)
{
    struct dv_sched *sched = attempt->sched;
    const struct dv_sched_pod *pod = attempt->pod;
    const struct dv_sched_crowd *crowd = attempt->crowd;

    attempt->preemption = DV_STR_NONE;
    if (pod->is_preset || attempt->fatal || attempt->is_error || attempt->is_contradiction ||
        attempt->n_nodes == 0 || sched->priorities.n == 0 ||
        sched->priorities.v[0].priority >= pod->priority || dv_sched_attempt_may_clear(attempt))
        return false;
    if (dv_str_eq(attempt->value->spec.preemption_policy, DV_STR("Never")))
        return refuse(attempt, "preemption: not eligible due to preemptionPolicy=Never.");
    if (is_waiting(pod)) {
        attempt->preempts = !sched->options.is_strict; /* and says the same as when it began */
        return refuse(attempt, "preemption: not eligible due to a terminating pod on the "
                               "nominated node.");
    }
    if (crowd->vain && crowd->vain_at == sched->n_placings && crowd->vain_tick == sched->tick &&
        pod->priority <= crowd->vain_priority)
        return refuse(attempt, crowd->vain);
    attempt->trial =
        (struct dv_sched_search){.start = (size_t)(dv_random_u64() % attempt->n_nodes)};
    return true;
}

/* The words of the reference when nobody can help. */
static void tell_vain(struct dv_sched_attempt *attempt)
{
    struct dv_sched *sched = attempt->sched;
    struct dv_sched_crowd *crowd = attempt->crowd;
    const struct dv_sched_search *search = &attempt->trial;
    const struct dv_sched_reason all[] = {
        {DV_STR("No preemption victims found for incoming pod"), search->n_in_vain                 },
        {DV_STR("Preemption is not helpful for scheduling"),     sched->nodes.n - search->n_in_vain},
    };
    struct dv_sched_reason some[2];
    size_t n = 0;
    struct dv_buf text;

    for (size_t i = 0; i < 2; i++)
        if (all[i].n_nodes > 0)
            some[n++] = all[i];
    dv_buf_init(&text, TEXT_BYTES_MAX);
    dv_buf_add_c(&text, "preemption: ");
    dv_sched_summary(sched->nodes.n, some, n, DV_STR_NONE, DV_STR_NONE, &text);
    free(crowd->vain);
    crowd->vain = dv_alloc(text.n + 1);
    memcpy(crowd->vain, dv_buf_str(&text).p, text.n);
    dv_buf_fini(&text);
    crowd->vain_at = sched->n_placings;
    crowd->vain_tick = sched->tick;
    crowd->vain_priority = attempt->pod->priority;
    attempt->preemption = dv_str_from_c(crowd->vain);
}

static void note_candidate(struct dv_sched_search *search, struct dv_sched_node *node,
                           const struct dv_sched_victims *victims)
{
    struct dv_sched_toll toll = {0};

    for (size_t i = 0; i < victims->n; i++)
        dv_sched_toll_add(&toll, &victims->v[i]);
    if (search->n_candidates++ == 0 || dv_sched_toll_is_less(&toll, &search->toll)) {
        search->node = node;
        search->toll = toll;
    }
}

/* Tries the chosen node once more, and sends its victims away. */
static void conclude(struct dv_sched_attempt *attempt)
{
    struct dv_sched_node *node = attempt->trial.node;
    struct dv_sched_victims victims;

    if (!node) {
        tell_vain(attempt);
        return;
    }
    if (dv_sched_trial(attempt, node, &victims) != DV_SCHED_TRIAL_CANDIDATE) {
        attempt->is_paused = true; /* the world is another one: the pod is tried again */
        attempt->sched->tick++;
        return;
    }
    attempt->preempts = true;
    dv_sched_evict(attempt->pod, node, &victims);
}

bool dv_sched_preempt_look(struct dv_sched_attempt *attempt)
{
    struct dv_sched *sched = attempt->sched;
    struct dv_sched_search *search = &attempt->trial;
    size_t n_enough = dv_size_max(N_CANDIDATES_MIN, attempt->n_nodes / CANDIDATES_PART);

    while (search->n_seen < attempt->n_nodes && search->n_candidates < n_enough) {
        struct dv_sched_node *node =
            attempt->nodes[(search->start + search->n_seen) % attempt->n_nodes];
        struct dv_sched_victims victims;

        if (!dv_sched_has_budget(sched))
            return false;
        dv_sched_spend(sched, COST_NODE + attempt->visit_cost);
        search->n_seen++;
        switch (dv_sched_trial(attempt, node, &victims)) {
        case DV_SCHED_TRIAL_UNHELPFUL:
            break;
        case DV_SCHED_TRIAL_IN_VAIN:
            search->n_in_vain++;
            break;
        case DV_SCHED_TRIAL_CANDIDATE:
            note_candidate(search, node, &victims);
            break;
        }
    }
    conclude(attempt);
    return true;
}

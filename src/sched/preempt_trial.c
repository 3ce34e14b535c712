/* preempt_trial.c - what would be if pods of lower priority left a node. Their room, ports,
 * relations and devices are taken away, then given back to one after the other, the most important
 * first, as long as the pod still fits: who gets nothing back is a victim. It all happens in one
 * turn and in memory, and in the end everything is as before. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "affinity/affinity.h"
#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/object_pool.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "sched/attempt.h"
#include "sched/crowd.h"
#include "sched/fit.h"
#include "sched/placed.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* What one search for devices may cost here, and how many are made for a node: it is on the loop. A
 * node where that is not enough is no candidate. */
#define SEARCH_COST_MAX UINT64_C(20000)
#define N_SEARCHES_MAX 32u
/* What it costs to try a pod, in the allocator's units. */
#define COST_POD 100u

/* A claim that pods on the node use. Its devices are free when all of them have left. */
struct hold {
    dv_str key;
    size_t n_left;
    bool is_released;
};

struct trial {
    struct dv_sched_attempt *attempt;
    struct dv_sched *sched;
    struct dv_sched_node *node;
    struct dv_sched_room room;
    struct dv_sched_amounts amounts; /* of the pod that leaves or comes back */
    struct dv_map holds;             /* by claim */
    bool needs_devices;
    size_t n_searches;
    bool is_too_costly;
};

/* ---- leaving and coming back ---- */

static const struct dv_api_pod *value_of(const struct dv_sched_placed *placed)
{
    return dv_object_unpack(placed->object)->value;
}

/* Whether the consumer is a pod that is no more: its reservation is about to go. */
static bool is_gone(struct dv_sched *sched, const struct dv_api_resource_claim *claim,
                    const struct dv_api_resource_claim_consumer_reference *consumer)
{
    dv_str key = dv_sched_key(sched, claim->metadata.namespace, consumer->name);
    const struct dv_sched_placed *placed = dv_map_get(&sched->placed, key);
    const struct dv_sched_pod *waiting = dv_map_get(&sched->pods, key);

    return dv_str_eq(consumer->resource, DV_STR("pods")) && consumer->api_group.n == 0 &&
           !(placed && dv_str_eq(dv_object_names(placed->object).uid, consumer->uid)) &&
           !(waiting && dv_str_eq(waiting->object->meta->uid, consumer->uid));
}

static void change_hold(struct trial *trial, struct dv_sched_claim *claim, bool is_leaving)
{
    const struct dv_api_resource_claim *value = dv_sched_claim_value(claim);
    struct hold *hold = dv_map_get(&trial->holds, claim->key);
    const struct dv_api_allocation_result *allocation;

    /* What was decided on and is not written yet is not given away again. */
    if (!value || !value->status.allocation || !claim->held_by)
        return;
    allocation = value->status.allocation;
    if (!hold) {
        hold = DV_NEW(trial->sched->scratch, struct hold);
        *hold = (struct hold){.key = claim->key};
        for (size_t i = 0; i < value->status.n_reserved_for; i++)
            hold->n_left += is_gone(trial->sched, value, &value->status.reserved_for[i]);
        dv_map_set(&trial->holds, hold->key, hold);
    }
    if (is_leaving)
        hold->n_left++;
    else
        hold->n_left--;
    if (is_leaving && hold->n_left == value->status.n_reserved_for) {
        dv_inventory_release(trial->sched->inventory, allocation);
        hold->is_released = true;
    } else if (!is_leaving && hold->is_released) {
        dv_inventory_hold(trial->sched->inventory, allocation, claim->key);
        hold->is_released = false;
    }
}

/* The devices that the pod has by claims that are reserved for it. Returns whether there are
 * any. */
static bool change_holds(struct trial *trial, const struct dv_sched_placed *placed, bool is_leaving)
{
    const struct dv_api_pod *pod = value_of(placed);
    struct dv_sched *sched = trial->sched;
    struct dv_sched_claim *claim = dv_map_get(&sched->extended, pod->metadata.uid);
    DV_CLEANUP(dv_map_fini) struct dv_map statuses = {0};

    if (claim)
        change_hold(trial, claim, is_leaving);
    if (pod->spec.n_resource_claims == 0)
        return claim != NULL;
    dv_pod_index_claim_statuses(pod, &statuses);
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        dv_str name;
        const struct dv_api_resource_claim *value;

        if (!dv_sched_claim_name(&statuses, &pod->spec.resource_claims[i], &name) || name.n == 0)
            continue;
        claim = dv_map_get(&sched->claims, dv_sched_key(sched, pod->metadata.namespace, name));
        value = claim ? dv_sched_claim_value(claim) : NULL;
        if (value && dv_claim_is_reserved_for(value, pod->metadata.uid))
            change_hold(trial, claim, is_leaving);
    }
    return true;
}

static void leave(struct trial *trial, struct dv_sched_placed *placed)
{
    dv_sched_amounts_read(&trial->amounts, &trial->sched->resources, &value_of(placed)->spec);
    dv_sched_room_give_back(&trial->room, &trial->amounts);
    if (trial->attempt->crowd->wants)
        dv_affinity_remove(trial->sched->affinity, &placed->pod);
    if (trial->needs_devices && trial->sched->options.preempts_devices)
        (void)change_holds(trial, placed, true);
}

/* Returns whether devices came back too. */
static bool come_back(struct trial *trial, struct dv_sched_placed *placed)
{
    dv_sched_amounts_read(&trial->amounts, &trial->sched->resources, &value_of(placed)->spec);
    dv_sched_room_take(&trial->room, &trial->amounts);
    if (trial->attempt->crowd->wants)
        dv_affinity_add(trial->sched->affinity, &trial->node->near, &placed->pod, placed->object);
    return trial->needs_devices && trial->sched->options.preempts_devices &&
           change_holds(trial, placed, false);
}

/* ---- does it fit? ---- */

static bool has_devices(struct trial *trial)
{
    struct dv_sched_attempt *attempt = trial->attempt;
    const struct dv_api_object_meta *meta = trial->node->object->meta;
    const struct dv_alloc_node where = {
        .name = trial->node->name, .labels = meta->labels, .n_labels = meta->n_labels};
    const struct dv_alloc_options options = {.cost_max = SEARCH_COST_MAX};
    struct dv_extended extended = {0};
    struct dv_alloc_result result = {0};
    size_t n_asked = attempt->n_open;
    struct dv_err err;

    if (!trial->needs_devices)
        return true;
    if (trial->n_searches++ == N_SEARCHES_MAX) {
        trial->is_too_costly = true;
        return false;
    }
    if (!dv_sched_offer_add_extended(attempt, trial->node, &extended, &n_asked, &err))
        return false;
    if (n_asked == 0)
        return true;
    dv_allocate(trial->sched->inventory, &where, attempt->asked, n_asked, &options,
                trial->sched->scratch, &result, &err);
    dv_sched_spend(trial->sched, result.cost);
    return result.outcome == DV_ALLOC_DONE;
}

/* `with_devices`: what is free of them has changed since the last question. */
static bool fits(struct trial *trial, bool with_devices)
{
    struct dv_sched_attempt *attempt = trial->attempt;
    struct dv_sched *sched = trial->sched;

    dv_buf_clear(&sched->why);
    return dv_sched_fits(&attempt->value->spec, &sched->amounts, &sched->resources,
                         trial->node->object, &trial->room, &sched->why) &&
           (!attempt->crowd->wants ||
            dv_affinity_check(attempt->crowd->wants, &trial->node->near) == DV_AFFINITY_FITS) &&
           (!with_devices || has_devices(trial));
}

/* Whether something is against the node that nobody who leaves can change. */
static bool is_hopeless(struct trial *trial)
{
    struct dv_sched_attempt *attempt = trial->attempt;
    struct dv_sched *sched = trial->sched;
    struct dv_sched_room empty = {.is_closed = trial->room.is_closed,
                                  .has_taints = trial->room.has_taints,
                                  .more_has = trial->room.more_has};
    bool is_devices;

    for (size_t i = 0; i < DV_SCHED_N_FIXED_RESOURCES; i++)
        empty.has[i] = trial->room.has[i];
    dv_buf_clear(&sched->why);
    if (!dv_sched_fits(&attempt->value->spec, &sched->amounts, &sched->resources,
                       trial->node->object, &empty, &sched->why))
        return true;
    if (attempt->crowd->wants &&
        !dv_affinity_is_resolvable(dv_affinity_check(attempt->crowd->wants, &trial->node->near)))
        return true;
    if (!dv_sched_attempt_has_claims_at_hand(attempt, trial->node))
        return true;
    /* Devices are freed only when that is wanted: by default they have to be there. */
    is_devices = trial->needs_devices && !sched->options.preempts_devices;
    return is_devices && !has_devices(trial);
}

/* ---- the trial ---- */

/* Pods of lower priority, the most important first. One that leaves already is none: its room will
 * be free without anybody's doing. */
static void gather(struct trial *trial, struct dv_sched_victims *lower)
{
    struct dv_sched *sched = trial->sched;

    for (size_t i = 0; i < trial->node->near.pods.n; i++) {
        struct dv_sched_placed *placed =
            DV_CONTAINER(trial->node->near.pods.v[i], struct dv_sched_placed, pod);
        struct dv_time started;

        if (placed->priority >= trial->attempt->pod->priority)
            continue;
        started = value_of(placed)->status.start_time;
        *dv_vec_add_in(lower, sched->scratch) = (struct dv_sched_victim){
            .placed = placed,
            .priority = placed->priority,
            .started_s = started.is_set ? started.seconds : dv_sched_now(sched).seconds};
    }
    if (lower->n > 0)
        qsort(lower->v, lower->n, sizeof(lower->v[0]), dv_sched_compare_victims);
    dv_sched_spare(sched, lower->v, lower->n);
    dv_sched_spend(sched, lower->n * COST_POD);
}

/* Takes what pods are promised that are nominated for the node and go first. */
static void keep_promises(struct trial *trial)
{
    struct dv_link *link;

    DV_LIST_EACH (&trial->sched->nominated, link) {
        const struct dv_sched_pod *other = DV_CONTAINER(link, struct dv_sched_pod, nominates);

        if (other == trial->attempt->pod || other->priority < trial->attempt->pod->priority ||
            !dv_str_eq(dv_str_from_c(other->nominated), trial->node->name))
            continue;
        dv_sched_amounts_read(&trial->amounts, &trial->sched->resources,
                              &dv_sched_pod_value(other)->spec);
        dv_sched_room_take(&trial->room, &trial->amounts);
    }
}

static void choose(struct trial *trial, const struct dv_sched_victims *lower,
                   struct dv_sched_victims *victims)
{
    /* First those whom a budget is against, then the others. */
    for (size_t i = 0; i < 2 * lower->n; i++) {
        const struct dv_sched_victim *one = &lower->v[i % lower->n];
        bool has_taken;

        if (one->is_spared != (i < lower->n))
            continue;
        has_taken = come_back(trial, one->placed);
        if (fits(trial, has_taken))
            continue;
        leave(trial, one->placed);
        *dv_vec_add_in(victims, trial->sched->scratch) = *one;
    }
}

bool dv_sched_fits_beside_nominated(struct dv_sched_attempt *attempt,
                                    const struct dv_sched_node *node)
{
    struct dv_sched *sched = attempt->sched;
    struct trial trial = {.attempt = attempt, .sched = sched};
    bool needs_devices = attempt->n_open > 0 || attempt->pod->is_extended;
    bool is_fit;

    if (needs_devices && dv_sched_is_promised(attempt->pod, node, true)) {
        dv_buf_add_c(&sched->why, "node(s) are freeing devices for a pod of higher priority");
        return false;
    }
    if (!dv_sched_is_promised(attempt->pod, node, false))
        return true;
    trial.node = dv_map_get(&sched->nodes_by_name, node->name);
    dv_sched_room_copy(&trial.room, &node->room);
    keep_promises(&trial);
    is_fit = dv_sched_fits(&attempt->value->spec, &sched->amounts, &sched->resources, node->object,
                           &trial.room, &sched->why);
    dv_sched_room_fini(&trial.room);
    dv_sched_amounts_fini(&trial.amounts);
    return is_fit;
}

enum dv_sched_trial_result dv_sched_trial(struct dv_sched_attempt *attempt,
                                          struct dv_sched_node *node,
                                          struct dv_sched_victims *victims)
{
    struct trial trial = {.attempt = attempt,
                          .sched = attempt->sched,
                          .node = node,
                          .needs_devices = attempt->n_open > 0 || attempt->pod->is_extended};
    enum dv_sched_trial_result result = DV_SCHED_TRIAL_IN_VAIN;
    struct dv_sched_victims lower = {0};

    *victims = (struct dv_sched_victims){0};
    dv_map_init(&trial.holds);
    dv_sched_room_copy(&trial.room, &node->room);
    dv_affinity_set_trial(attempt->sched->affinity, true);
    if (is_hopeless(&trial)) {
        result = DV_SCHED_TRIAL_UNHELPFUL;
    } else {
        gather(&trial, &lower);
        keep_promises(&trial);
        for (size_t i = 0; i < lower.n; i++)
            leave(&trial, lower.v[i].placed);
        if (lower.n > 0 && fits(&trial, true))
            choose(&trial, &lower, victims);
        else
            for (size_t i = 0; i < lower.n; i++)
                (void)come_back(&trial, lower.v[i].placed);
        for (size_t i = 0; i < victims->n; i++)
            (void)come_back(&trial, victims->v[i].placed);
        if (victims->n > 0 && !trial.is_too_costly)
            result = DV_SCHED_TRIAL_CANDIDATE;
    }
    dv_affinity_set_trial(attempt->sched->affinity, false);
    dv_sched_room_fini(&trial.room);
    dv_sched_amounts_fini(&trial.amounts);
    dv_map_fini(&trial.holds);
    return result;
}

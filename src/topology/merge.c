/* merge.c - merges the hints of all providers under a policy into the one set of NUMA nodes that
 * the pod or container gets, and says whether it is admitted. */
#include "topology/topology.h"

#include "base/arena.h"
#include "base/err.h"
#include "topology/choice.h"
#include "topology/mask_set.h"
#include "topology/reach.h"

/* Whether the policy lets a preferred hint take part. */
static bool is_eligible(const struct dv_topology_config *config, const struct dv_numa_hint *hint)
{
    if (!hint->is_preferred)
        return false;
    return config->policy != DV_TOPOLOGY_SINGLE_NUMA_NODE || !hint->has_mask ||
           dv_topology_mask_count(hint->mask) == 1;
}

/* Goes along with whatever the others prefer. */
static bool is_lenient(const struct dv_hint_list *list)
{
    for (size_t i = 0; i < list->n_hints; i++)
        if (list->hints[i].is_preferred && !list->hints[i].has_mask)
            return true;
    return list->is_any;
}

static const struct dv_numa_hint *next_preferred(const struct dv_topology_config *config,
                                                 const struct dv_hint_list *list, size_t *at)
{
    while (*at < list->n_hints) {
        const struct dv_numa_hint *hint = &list->hints[(*at)++];

        if (hint->has_mask && hint->mask != 0 && is_eligible(config, hint))
            return hint;
    }
    return NULL;
}

/* Offers candidates when all providers accept anything: each one's preferences, and having none. */
static void offer_any(const struct dv_topology_config *config, const struct dv_hint_list *lists,
                      size_t n_lists, struct dv_topology_choice *choice)
{
    dv_numa_mask all = choice->machine->mask;

    dv_topology_choice_offer(choice, all, true);
    for (size_t i = 0; i < n_lists; i++) {
        const struct dv_numa_hint *hint;
        size_t at = 0;

        while ((hint = next_preferred(config, &lists[i], &at)) != NULL)
            dv_topology_choice_offer(choice, hint->mask & all, true);
    }
}

/* Offers the masks that every list which is not lenient prefers. `first` is one of these: its masks
 * are the only ones that can be. A mask's vote tells how many lists in a row have it. */
static void offer_agreed(const struct dv_topology_config *config, const struct dv_hint_list *lists,
                         size_t n_lists, size_t first, struct dv_topology_choice *choice)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_numa_hint *hint;
    struct dv_mask_set masks;
    size_t n_votes = 0;
    size_t *votes;
    size_t at = 0;

    dv_mask_set_init(&masks, lists[first].n_hints, scratch);
    votes = DV_NEW_ARRAY(scratch, size_t, masks.n_slots);
    while ((hint = next_preferred(config, &lists[first], &at)) != NULL)
        dv_mask_set_add(&masks, hint->mask, scratch);
    for (size_t i = first + 1; masks.n > 0 && i < n_lists; i++) {
        if (is_lenient(&lists[i]))
            continue;
        for (at = 0; (hint = next_preferred(config, &lists[i], &at)) != NULL;) {
            size_t slot = dv_mask_set_find(&masks, hint->mask);

            if (masks.slots[slot] && votes[slot] == n_votes)
                votes[slot]++;
        }
        n_votes++;
    }
    for (size_t slot = 0; slot < masks.n_slots; slot++)
        if (masks.slots[slot] && votes[slot] == n_votes)
            dv_topology_choice_offer(choice, masks.slots[slot] & choice->machine->mask, true);
}

/* A candidate is preferred when all its hints are, and those with masks have the same. */
static void offer_preferred(const struct dv_topology_config *config,
                            const struct dv_hint_list *lists, size_t n_lists,
                            struct dv_topology_choice *choice)
{
    size_t first = 0;

    while (first < n_lists && is_lenient(&lists[first]))
        first++;
    if (first == n_lists)
        offer_any(config, lists, n_lists, choice);
    else
        offer_agreed(config, lists, n_lists, first, choice);
}

/* Offers candidates when nothing preferred was found: every intersection that is not empty, none of
 * them preferred. */
static bool offer_others(const struct dv_hint_list *lists, size_t n_lists,
                         struct dv_topology_choice *choice, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_mask_set reached;

    if (!dv_topology_reach(choice->machine->mask, lists, n_lists, scratch, &reached, err))
        return false;
    choice->n_nodes_wanted = dv_topology_nodes_wanted(lists, n_lists);
    for (size_t i = 0; i < reached.n_slots; i++)
        dv_topology_choice_offer(choice, reached.slots[i], false);
    return true;
}

bool dv_topology_merge(const struct dv_topology_config *config,
                       const struct dv_numa_machine *machine, const struct dv_hint_list *lists,
                       size_t n_lists, struct dv_topology_verdict *verdict, struct dv_err *err)
{
    bool is_single = config->policy == DV_TOPOLOGY_SINGLE_NUMA_NODE;
    struct dv_topology_choice choice = {
        .machine = machine,
        .prefers_closest = config->prefers_closest && !is_single,
        .best = {machine->mask, true, false},
    };

    if (config->policy == DV_TOPOLOGY_NONE) {
        *verdict = (struct dv_topology_verdict){.is_admitted = true};
        return true;
    }
    offer_preferred(config, lists, n_lists, &choice);
    /* With single-numa-node only preferred hints of one node are left, and two different ones have
     * nothing in common. */
    if (!choice.has_best && !is_single && !offer_others(lists, n_lists, &choice, err))
        return false;
    if (is_single && choice.best.mask == machine->mask)
        choice.best = (struct dv_numa_hint){.is_preferred = choice.best.is_preferred};
    *verdict = (struct dv_topology_verdict){
        .affinity = choice.best,
        .is_admitted = config->policy == DV_TOPOLOGY_BEST_EFFORT || choice.best.is_preferred,
    };
    return true;
}

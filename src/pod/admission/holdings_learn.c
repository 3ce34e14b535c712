/* holdings_learn.c - what slices say of devices that pods hold is read again when a slice has
 * changed. A slice that is gone takes nothing back: what it said of a device stays true.
 *
 * All pods of the node may hold tens of thousands of devices, so it is done in parts. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"
#include "loop/loop.h"
#include "pod/admission/holdings_items.h"
#include "pod/admission/pods.h"
#include "pod/ledger/finder.h"
#include "pod/ledger/ledger.h"

struct dv_holdings_learning {
    struct dv_holdings *holdings;
    struct dv_task task;
    struct dv_arena *arena; /* of the uids */
    dv_str *uids;           /* the pods that had claims when it began */
    size_t n_uids;
    size_t at;
    struct dv_holdings_place place; /* in the claims of that one */
    bool has_entered;               /* all of them: what they tell about common nodes is learned */
    bool is_asked;                  /* a slice has changed meanwhile: again from the start */
};

static void find_pods(struct dv_holdings_learning *learning)
{
    const struct dv_map *pods = &learning->holdings->pods->by_uid;
    const struct dv_map_entry *entry;

    dv_arena_free(learning->arena);
    learning->arena = dv_arena_new();
    learning->uids = DV_NEW_ARRAY(learning->arena, dv_str, pods->n);
    learning->n_uids = learning->at = 0;
    learning->place = (struct dv_holdings_place){0};
    learning->has_entered = learning->is_asked = false;
    for (size_t at = 0; (entry = dv_map_next(pods, &at)) != NULL;)
        if (((const struct dv_pod *)entry->value)->spec.object)
            learning->uids[learning->n_uids++] = dv_str_copy(entry->key, learning->arena);
}

/* Enters the pod's next claims; returns what that took, counted in devices. */
static size_t enter(struct dv_holdings_learning *learning, const struct dv_pod *pod)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_holdings *holdings = learning->holdings;
    struct dv_finder *finder = dv_finder_new(arena);
    struct dv_holdings_items items = {0};

    learning->has_entered =
        dv_holdings_add_claims(holdings, pod, &learning->place, DV_HOLDINGS_COST_PER_TURN,
                               dv_finder_host(finder), arena, &items);
    dv_finder_fini(finder);
    for (size_t i = 0; i < items.n; i++)
        if (items.v[i].is_described)
            dv_ledger_hold(holdings->ledger, &items.v[i].holder, items.v[i].identities.v,
                           items.v[i].identities.n);
    return learning->has_entered ? items.n + 1 : DV_HOLDINGS_COST_PER_TURN;
}

/* Does a part for the pod that is at turn; one that is gone needs none. Returns what it took. */
static size_t do_part(struct dv_holdings_learning *learning)
{
    dv_str uid = learning->uids[learning->at];
    const struct dv_pod *pod = dv_map_get(&learning->holdings->pods->by_uid, uid);

    if (pod && pod->was_admitted && pod->spec.object) {
        if (!learning->has_entered)
            return enter(learning, pod);
        if (!dv_ledger_learn(learning->holdings->ledger, uid, DV_HOLDINGS_COST_PER_TURN))
            return DV_HOLDINGS_COST_PER_TURN;
    }
    learning->at++;
    learning->place = (struct dv_holdings_place){0};
    learning->has_entered = false;
    return 1;
}

static void on_learn(struct dv_task *task)
{
    struct dv_holdings_learning *learning = DV_CONTAINER(task, struct dv_holdings_learning, task);
    size_t cost = 0;

    if (!learning->arena || (learning->at == learning->n_uids && learning->is_asked))
        find_pods(learning);
    while (learning->at < learning->n_uids && cost < DV_HOLDINGS_COST_PER_TURN)
        cost += do_part(learning);
    if (learning->at < learning->n_uids || learning->is_asked)
        dv_task_post_next_turn(task, learning->holdings->pods->loop, on_learn);
    else
        dv_holdings_stop_learning(learning->holdings);
}

void dv_holdings_learn_slices(struct dv_holdings *holdings)
{
    if (holdings->learning) {
        holdings->learning->is_asked = true;
        return;
    }
    holdings->learning = DV_ALLOC(struct dv_holdings_learning);
    holdings->learning->holdings = holdings;
    dv_task_post(&holdings->learning->task, holdings->pods->loop, on_learn);
}

void dv_holdings_stop_learning(struct dv_holdings *holdings)
{
    if (!holdings->learning)
        return;
    dv_task_cancel(&holdings->learning->task);
    dv_arena_free(holdings->learning->arena);
    free(holdings->learning);
    holdings->learning = NULL;
}

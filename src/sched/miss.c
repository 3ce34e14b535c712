/* miss.c - tells a crowd what its pods lack: the nearest miss of all nodes that have refused. Where
 * devices are missing it is what they lack, as far as it is found within a part of the turn's
 * budget; else what nodes lack (lack.h). It is found out when a pod is told that it fits nowhere,
 * and again only after a node was searched anew, or after a while; a burst of pods that are alike
 * costs one look. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "sched/attempt.h"
#include "sched/crowd.h"
#include "sched/lack.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* The part of a turn's budget that all nodes together may cost: the attempt had its own before. */
#define BUDGET_PART 4u
/* Of a node that is looked at, beside what the allocator counts. */
#define COST_NODE 200u
/* How many nodes are looked at. More than these are seldom different in what they have. */
#define N_NODES_MAX 32u
/* How long what nodes lack is said as it was found: rooms change with every pod. */
#define LACK_MS 1000u
/* Of what nodes lack: names and labels of others may be long. */
#define LACK_BYTES_MAX 300u

struct looks {
    const struct dv_sched_node *nodes[N_NODES_MAX]; /* by name */
    size_t n;
};

/* Puts the node among those with the first names, so that it does not depend on the order in which
 * nodes came which of them are looked at. */
static void add_node(struct looks *looks, const struct dv_sched_node *node)
{
    size_t at = looks->n;

    while (at > 0 && dv_str_cmp(node->name, looks->nodes[at - 1]->name) < 0)
        at--;
    if (at == N_NODES_MAX)
        return;
    if (looks->n < N_NODES_MAX)
        looks->n++;
    memmove(&looks->nodes[at + 1], &looks->nodes[at],
            (looks->n - 1 - at) * sizeof(looks->nodes[0]));
    looks->nodes[at] = node;
}

/* Looks at one node. Its cost is added to `cost`. */
static void look(struct dv_sched_attempt *attempt, const struct dv_sched_node *node,
                 uint64_t cost_max, struct dv_arena *arena, uint64_t *cost,
                 struct dv_alloc_miss *miss)
{
    const struct dv_api_object_meta *meta = node->object->meta;
    const struct dv_alloc_node where = {
        .name = node->name, .labels = meta->labels, .n_labels = meta->n_labels};
    const struct dv_alloc_options options = {.cost_max = cost_max - *cost};
    struct dv_extended extended = {0};
    size_t n_asked = attempt->n_open;
    struct dv_err err;

    *miss = (struct dv_alloc_miss){0};
    *cost += COST_NODE;
    if (!dv_sched_offer_add_extended(attempt, node, &extended, &n_asked, &err))
        return; /* the reason against the node is another one by now */
    dv_alloc_miss(attempt->sched->inventory, &where, attempt->asked, n_asked, &options, arena,
                  miss);
    *cost += miss->cost;
}

/* The nearest miss on these nodes; of two that are as near, that of the first. */
static void find(struct dv_sched_attempt *attempt, const struct looks *looks,
                 struct dv_arena *arena, struct dv_alloc_miss *nearest)
{
    struct dv_sched *sched = attempt->sched;
    uint64_t cost_max = sched->options.turn_budget / BUDGET_PART;
    uint64_t cost = 0;

    *nearest = (struct dv_alloc_miss){0};
    for (size_t i = 0; i < looks->n && cost < cost_max; i++) {
        struct dv_alloc_miss miss;

        look(attempt, looks->nodes[i], cost_max, arena, &cost, &miss);
        if (dv_alloc_miss_is_nearer(&miss, nearest))
            *nearest = miss;
    }
    dv_sched_spend(sched, cost);
}

static char *to_keep(dv_str text)
{
    char *copy = dv_alloc(text.n + 1);

    if (text.n > 0)
        memcpy(copy, text.p, text.n);
    return copy;
}

/* What devices lack. */
static dv_str tell_devices(struct dv_sched_attempt *attempt,
                           const struct dv_sched_crowd_reason *reason)
{
    struct dv_sched *sched = attempt->sched;
    struct dv_sched_crowd *crowd = attempt->crowd;
    struct looks looks = {0};

    if (!crowd->miss) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_alloc_miss nearest;

        for (size_t i = 0; i < sched->nodes.n; i++)
            if (dv_sched_crowd_recall(sched, crowd, sched->nodes.v[i]) == reason)
                add_node(&looks, sched->nodes.v[i]);
        find(attempt, &looks, arena, &nearest);
        crowd->miss = to_keep(nearest.text);
    }
    return dv_str_from_c(crowd->miss);
}

/* What nodes lack. The pod's amounts are in sched->amounts. */
static void find_lack(struct dv_sched_attempt *attempt, struct dv_arena *arena,
                      struct dv_sched_lack *lack)
{
    struct dv_sched *sched = attempt->sched;
    struct dv_sched_places places = {
        .v = DV_NEW_ARRAY(arena, struct dv_sched_place, sched->nodes.n)};

    *lack = (struct dv_sched_lack){0};
    for (size_t i = 0; i < sched->nodes.n; i++) {
        const struct dv_sched_node *node = sched->nodes.v[i];
        const struct dv_sched_crowd_reason *reason =
            dv_sched_crowd_recall(sched, attempt->crowd, node);

        if (!reason)
            return; /* it got better meanwhile: nothing is true of all */
        if (dv_str_eq(reason->text, DV_STR(DV_SCHED_UNAVAILABLE)))
            places.n_barred++;
        else
            places.v[places.n++] = (struct dv_sched_place){node->object, &node->room, reason->text};
    }
    dv_sched_lack_find(&attempt->value->spec, &sched->amounts, &sched->resources, &places, arena,
                       lack);
    dv_sched_spend(sched, places.n * attempt->visit_cost);
}

static dv_str tell_nodes(struct dv_sched_attempt *attempt)
{
    struct dv_sched_crowd *crowd = attempt->crowd;
    uint64_t now = dv_loop_now_ms(attempt->sched->loop);

    if (!crowd->lack || now - crowd->lack_at_ms >= LACK_MS) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_sched_lack lack;

        find_lack(attempt, arena, &lack);
        free(crowd->lack);
        crowd->lack = to_keep(dv_str_slice(lack.text, 0, LACK_BYTES_MAX));
        crowd->lack_at_ms = now;
    }
    return dv_str_from_c(crowd->lack);
}

dv_str dv_sched_attempt_miss(struct dv_sched_attempt *attempt)
{
    struct dv_sched_crowd *crowd = attempt->crowd;
    const struct dv_sched_crowd_reason *reason =
        crowd ? dv_map_get(&crowd->reasons, DV_STR(DV_SCHED_NO_DEVICES)) : NULL;

    if (attempt->sched->options.is_strict || !crowd)
        return DV_STR_NONE;
    if (reason && reason->n_nodes > 0)
        return tell_devices(attempt, reason);
    return attempt->is_error || attempt->pod->is_preset ? DV_STR_NONE : tell_nodes(attempt);
}

/* sched_explain.c - tells device by device why claims have none, from the same inventory and by the
 * same allocator that decides. Nothing is held, and nothing is kept. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* What the nodes of one answer may cost together, on the loop: some 5 ms. */
#define COST_MAX UINT64_C(500000)
/* More nodes than these are seldom different in what they have. */
#define N_NODES_MAX 32u

/* Gathers the nodes that are asked, the first by name, so that every answer is about the same. */
static size_t gather_nodes(const struct dv_sched *sched, dv_str only,
                           const struct dv_sched_node **nodes)
{
    size_t n = 0;

    for (size_t i = 0; i < sched->nodes.n; i++) {
        const struct dv_sched_node *node = sched->nodes.v[i];
        size_t at = n;

        if (only.n > 0 && !dv_str_eq(only, node->name))
            continue;
        while (at > 0 && dv_str_cmp(node->name, nodes[at - 1]->name) < 0)
            at--;
        if (at == N_NODES_MAX)
            continue;
        n += n < N_NODES_MAX;
        memmove(&nodes[at + 1], &nodes[at], (n - 1 - at) * sizeof(nodes[0]));
        nodes[at] = node;
    }
    return n;
}

static bool fits(const struct dv_sched_verdict *verdict)
{
    return verdict->explanation.outcome == DV_ALLOC_DONE;
}

static bool is_nearer(const struct dv_sched_verdict *verdict, const struct dv_sched_verdict *than)
{
    if (fits(verdict) != fits(than))
        return fits(verdict);
    return !fits(verdict) && dv_alloc_miss_is_nearer(&verdict->miss, &than->miss);
}

/* Puts the verdict behind those that are as near, so that equals stay in the order of their names.
 */
static void add_verdict(struct dv_sched_verdicts *verdicts, const struct dv_sched_verdict *verdict)
{
    size_t at = verdicts->n++;

    for (; at > 0 && is_nearer(verdict, &verdicts->v[at - 1]); at--)
        verdicts->v[at] = verdicts->v[at - 1];
    verdicts->v[at] = *verdict;
}

bool dv_sched_explain(struct dv_sched *sched, const struct dv_api_resource_claim *const *claims,
                      size_t n_claims, dv_str node, struct dv_arena *arena,
                      struct dv_sched_verdicts *verdicts, struct dv_err *err)
{
    const struct dv_sched_node *nodes[N_NODES_MAX + 1];
    uint64_t cost = 0;
    size_t n;

    if (!dv_sched_can_be_asked(sched, err))
        return false;
    dv_sched_inventory_used(sched);
    n = gather_nodes(sched, node, nodes);
    *verdicts = (struct dv_sched_verdicts){
        .v = DV_NEW_ARRAY(arena, struct dv_sched_verdict, n),
        .n_nodes = node.n > 0 ? n : sched->nodes.n,
    };
    for (size_t i = 0; i < n && cost < COST_MAX; i++) {
        const struct dv_api_object_meta *meta = nodes[i]->object->meta;
        const struct dv_alloc_node where = {
            .name = nodes[i]->name, .labels = meta->labels, .n_labels = meta->n_labels};
        const struct dv_alloc_options options = {.cost_max = COST_MAX - cost};
        struct dv_sched_verdict verdict = {.node = nodes[i]->name};

        dv_alloc_explain(sched->inventory, &where, claims, n_claims, &options, arena,
                         &verdict.explanation);
        if (verdict.explanation.outcome == DV_ALLOC_NONE)
            dv_alloc_miss(sched->inventory, &where, claims, n_claims, &options, arena,
                          &verdict.miss);
        cost += verdict.explanation.cost + verdict.miss.cost;
        add_verdict(verdicts, &verdict);
    }
    return true;
}

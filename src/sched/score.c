/* score.c - which of the nodes that fit is best, and the words when none fits; both as the
 * reference has them. */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "sched/fit.h"

/* ---- scores ---- */

/* The share of cpu and memory that is left, 0 to 100: the mean of those of the two that the node
 * has any of. */
static int64_t free_share(const struct dv_sched_amounts *amounts, const struct dv_sched_room *room)
{
    static const uint32_t scored[] = {DV_SCHED_RESOURCE_CPU, DV_SCHED_RESOURCE_MEMORY};
    int64_t shares = 0;
    int64_t n = 0;

    for (size_t i = 0; i < DV_COUNT(scored); i++) {
        int64_t has = dv_sched_room_has(room, scored[i]);
        double taken = (double)room->scored[i] + (double)amounts->scored[i];

        if (has <= 0)
            continue;
        n++;
        if (taken < (double)has)
            shares += (int64_t)(((double)has - taken) * 100.0 / (double)has);
    }
    return n > 0 ? shares / n : 0;
}

static int64_t preference(const struct dv_api_pod_spec *pod, const struct dv_api_node *node)
{
    const struct dv_api_node_affinity *affinity =
        pod->affinity ? pod->affinity->node_affinity : NULL;
    const struct dv_api_object_meta *meta = &node->metadata;
    int64_t weight = 0;

    if (!affinity)
        return 0;
    for (size_t i = 0; i < affinity->n_preferred_during_scheduling_ignored_during_execution; i++) {
        struct dv_api_preferred_scheduling_term *term =
            &affinity->preferred_during_scheduling_ignored_during_execution[i];
        const struct dv_api_node_selector selector = {.node_selector_terms = &term->preference,
                                                      .n_node_selector_terms = 1};

        if (dv_node_selector_matches(&selector, meta->name, meta->labels, meta->n_labels))
            weight += term->weight;
    }
    return weight;
}

int32_t dv_sched_points(int64_t sum)
{
    if (sum > INT32_MAX)
        return INT32_MAX;
    return sum < INT32_MIN ? INT32_MIN : (int32_t)sum;
}

void dv_sched_merit(const struct dv_api_pod_spec *pod, const struct dv_sched_amounts *amounts,
                    const struct dv_object *node, const struct dv_sched_room *room,
                    struct dv_sched_merit *merit)
{
    *merit = (struct dv_sched_merit){
        .free = (int32_t)free_share(amounts, room),
        .preferred = pod->affinity ? dv_sched_points(preference(pod, node->value)) : 0,
        .disliked =
            room->has_taints
                ? dv_sched_points((int64_t)dv_sched_untolerated(pod, node->value, true, NULL))
                : 0};
}

static void raise_to(int32_t *best, int32_t value)
{
    if (value > *best)
        *best = value;
}

void dv_sched_merit_raise(struct dv_sched_best *best, const struct dv_sched_merit *merit)
{
    raise_to(&best->high.free, merit->free);
    raise_to(&best->high.preferred, merit->preferred);
    raise_to(&best->high.disliked, merit->disliked);
    raise_to(&best->high.preference, merit->preference);
}

void dv_sched_merit_relate(struct dv_sched_best *best, const struct dv_sched_merit *merit)
{
    if (!best->is_related) {
        best->near_low = merit->near;
        best->high.near = merit->near;
        best->crowded_low = INT32_MAX;
    }
    best->is_related = true;
    raise_to(&best->high.near, merit->near);
    raise_to(&best->high.crowded, merit->crowded);
    if (merit->near < best->near_low)
        best->near_low = merit->near;
    if (merit->crowded >= 0 && merit->crowded < best->crowded_low)
        best->crowded_low = merit->crowded;
}

static int64_t percent(int64_t value, int64_t best)
{
    return best > 0 ? value * 100 / best : 0;
}

/* The emptiest domain gets 100, and the others less by how many more pods they have. */
static int64_t spread_percent(const struct dv_sched_merit *merit, const struct dv_sched_best *best)
{
    if (merit->crowded < 0)
        return 0;
    return best->high.crowded > 0
               ? percent((int64_t)best->high.crowded + best->crowded_low - merit->crowded,
                         best->high.crowded)
               : 100;
}

int64_t dv_sched_score(const struct dv_sched_merit *merit, const struct dv_sched_best *best)
{
    /* The weights of the reference's default profile: NodeResourcesFit 1, NodeAffinity 2,
     * TaintToleration 3, DynamicResources 2, InterPodAffinity 2, PodTopologySpread 2. */
    int64_t score = merit->free + 2 * percent(merit->preferred, best->high.preferred) +
                    3 * (100 - percent(merit->disliked, best->high.disliked)) +
                    2 * percent(merit->preference, best->high.preference);

    if (best->is_related)
        score += 2 * percent((int64_t)merit->near - best->near_low,
                             (int64_t)best->high.near - best->near_low) +
                 2 * spread_percent(merit, best);
    return score;
}

size_t dv_sched_n_wanted(size_t n_nodes)
{
    /* As the reference: half of the nodes, less the more there are, but 5 % and 100 nodes at least.
     * Looking at all of them would find a better node only by a little. */
    size_t per_cent = n_nodes / 125 < 45 ? 50 - n_nodes / 125 : 5;
    size_t n = n_nodes * per_cent / 100;

    if (n_nodes < 100)
        return n_nodes;
    return n < 100 ? 100 : n;
}

/* ---- why not ---- */

static void add_reasons(const struct dv_sched_reason *reasons, size_t n_reasons,
                        struct dv_buf *text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str *lines = DV_NEW_ARRAY(arena, dv_str, n_reasons);

    for (size_t i = 0; i < n_reasons; i++)
        lines[i] = dv_str_printf(arena, "%zu %.*s", reasons[i].n_nodes, DV_FMT(reasons[i].text));
    qsort(lines, n_reasons, sizeof(lines[0]), dv_str_compare);
    for (size_t i = 0; i < n_reasons; i++) {
        dv_buf_add_c(text, i > 0 ? ", " : " ");
        dv_buf_add(text, lines[i]);
    }
    dv_buf_add_char(text, '.');
}

void dv_sched_summary(size_t n_nodes, const struct dv_sched_reason *reasons, size_t n_reasons,
                      dv_str before, dv_str after, struct dv_buf *text)
{
    if (n_nodes == 0 && before.n == 0) {
        dv_buf_add_c(text, "no nodes available to schedule pods");
        return;
    }
    dv_buf_printf(text, "0/%zu nodes are available:", n_nodes);
    if (before.n > 0)
        dv_buf_printf(text, " %.*s.", DV_FMT(before));
    else if (n_reasons > 0)
        add_reasons(reasons, n_reasons, text);
    if (after.n > 0)
        dv_buf_printf(text, " %.*s", DV_FMT(after));
}

dv_str dv_sched_sentence(dv_str message)
{
    static const dv_str ends[] = {DV_STR_INIT(DV_SCHED_STILL ". "),
                                  DV_STR_INIT(DV_SCHED_NO_CLAIMS ". ")};

    for (size_t i = 0; i < DV_COUNT(ends); i++) {
        size_t at = dv_str_find(message, ends[i]);

        if (at + ends[i].n < message.n)
            return dv_str_slice(message, at + ends[i].n, message.n);
    }
    return message;
}

/* ---- back-off ---- */

uint64_t dv_sched_backoff_ms(unsigned n_attempts)
{
    static const uint64_t pauses[] = {0, 1000, 2000, 4000, 8000};

    return n_attempts < DV_COUNT(pauses) ? pauses[n_attempts] : 10000;
}

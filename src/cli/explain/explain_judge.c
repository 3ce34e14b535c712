#include "cli/explain/explain_judge.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "cli/explain/cli_explain.h"
#include "cli/explain/world.h"
#include "resource/resource.h"
#include "resource/select.h"

/* The cost of all searches together, some twenty seconds. */
#define COST_MAX (2 * DV_ALLOC_COST_MAX)

const struct dv_api_resource_claim *
dv_cli_foreign_claim(const struct dv_cli_explain_subject *subject, const struct dv_alloc_node *node)
{
    for (size_t i = 0; i < subject->allocated.n; i++) {
        const struct dv_api_node_selector *selector =
            subject->allocated.v[i]->status.allocation->node_selector;

        if (selector &&
            !dv_node_selector_matches(selector, node->name, node->labels, node->n_labels))
            return subject->allocated.v[i];
    }
    return NULL;
}

void dv_cli_judge(const struct dv_cli_explain *explain, const struct dv_alloc_node *node,
                  uint64_t cost_max, struct dv_arena *arena, struct dv_explanation *explanation)
{
    const struct dv_alloc_options options = {.cost_max = cost_max};
    const struct dv_api_resource_claim *foreign = dv_cli_foreign_claim(explain->subject, node);

    if (foreign) {
        *explanation = (struct dv_explanation){
            .outcome = DV_ALLOC_NONE,
            .summary =
                dv_str_printf(arena, "claim %.*s/%.*s is allocated, and not for this node",
                              DV_FMT(foreign->metadata.namespace), DV_FMT(foreign->metadata.name)),
        };
        return;
    }
    dv_alloc_explain(explain->inventory, node, explain->subject->pending.v,
                     explain->subject->pending.n, &options, arena, explanation);
}

/* Measures as the sentence in events does, so that both name the same node. */
static void measure_request(const struct dv_why_request *request, struct dv_cli_verdict *verdict)
{
    const struct dv_why_device *nearest = NULL;
    uint64_t n_fitting = 0;

    for (size_t i = 0; i < request->n_devices; i++) {
        if (dv_why_is_fitting(&request->devices[i]))
            n_fitting++;
        else if (!nearest)
            nearest = &request->devices[i];
    }
    verdict->n_lacking = request->n_wanted - dv_u64_min(request->n_wanted, n_fitting);
    if (request->n_devices > 0) /* all may do, and be too few */
        verdict->nearest = nearest ? nearest->why : DV_WHY_FITS;
}

static void measure(const struct dv_explanation *explanation, struct dv_cli_verdict *verdict)
{
    verdict->nearest = DV_WHY_POOL_RIVAL;
    for (size_t i = 0; i < explanation->n_requests; i++) {
        if (!explanation->requests[i].is_stuck)
            continue;
        verdict->n_passed = i;
        measure_request(&explanation->requests[i], verdict);
        return;
    }
}

static int outcome_rank(enum dv_alloc_outcome outcome)
{
    static const int ranks[] = {
        [DV_ALLOC_DONE] = 0,        [DV_ALLOC_GAVE_UP] = 1, [DV_ALLOC_NONE] = 2,
        [DV_ALLOC_NODE_FAILED] = 3, [DV_ALLOC_FAILED] = 4,
    };

    return ranks[outcome];
}

static int by_nearness(const void *a, const void *b)
{
    const struct dv_cli_verdict *left = a;
    const struct dv_cli_verdict *right = b;

    if (left->outcome != right->outcome)
        return outcome_rank(left->outcome) < outcome_rank(right->outcome) ? -1 : 1;
    if (left->n_passed != right->n_passed)
        return left->n_passed > right->n_passed ? -1 : 1;
    if (left->nearest != right->nearest)
        return left->nearest < right->nearest ? -1 : 1;
    if (left->n_lacking != right->n_lacking)
        return left->n_lacking < right->n_lacking ? -1 : 1;
    return dv_str_natural_cmp(left->node->name, right->node->name);
}

static int by_group(const void *a, const void *b)
{
    const struct dv_cli_verdict *left = a;
    const struct dv_cli_verdict *right = b;

    if (left->group != right->group)
        return left->group < right->group ? -1 : 1;
    return by_nearness(a, b);
}

/* Moves those that say the same together, to the first of them: nodes that are equally near are
 * ordered by name, and one that differs may be between them. */
static void group(struct dv_cli_verdicts *verdicts)
{
    struct dv_map first;

    dv_map_init(&first);
    for (size_t i = 0; i < verdicts->n; i++) {
        struct dv_cli_verdict *verdict = &verdicts->v[i];
        const struct dv_cli_verdict *known = dv_map_get(&first, verdict->summary);

        verdict->group = known ? known->group : i;
        if (!known)
            (void)dv_map_set(&first, verdict->summary, verdict);
    }
    dv_map_fini(&first);
    qsort(verdicts->v, verdicts->n, sizeof(struct dv_cli_verdict), by_group);
}

struct dv_cli_verdicts dv_cli_judge_all(const struct dv_cli_explain *explain)
{
    const struct dv_cli_nodes *nodes = explain->nodes;
    struct dv_cli_verdicts verdicts = {
        .v = DV_NEW_ARRAY(explain->arena, struct dv_cli_verdict, nodes->n),
        .n = nodes->n,
    };

    uint64_t cost_left = COST_MAX;

    for (size_t i = 0; i < nodes->n; i++) {
        /* Every device of every node has a sentence: only what is shown is kept. */
        DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
        struct dv_cli_verdict *verdict = &verdicts.v[i];
        struct dv_explanation explanation;

        dv_cli_judge(explain, &nodes->v[i], dv_u64_max(cost_left, DV_CLI_NODE_COST_MIN), scratch,
                     &explanation);
        cost_left -= dv_u64_min(cost_left, explanation.cost);
        verdict->node = &nodes->v[i];
        verdict->outcome = explanation.outcome;
        verdict->summary = dv_str_copy(explanation.summary, explain->arena);
        measure(&explanation, verdict);
        verdicts.n_fitting += explanation.outcome == DV_ALLOC_DONE;
    }
    if (verdicts.n > 0) {
        qsort(verdicts.v, verdicts.n, sizeof(struct dv_cli_verdict), by_nearness);
        group(&verdicts);
    }
    return verdicts;
}

const struct dv_api_allocation_result *dv_cli_allocate(const struct dv_cli_explain *explain,
                                                       const struct dv_alloc_node *node)
{
    const struct dv_alloc_options options = {0};
    struct dv_alloc_result result;
    struct dv_err err;

    dv_allocate(explain->inventory, node, explain->subject->pending.v, explain->subject->pending.n,
                &options, explain->arena, &result, &err);
    return result.outcome == DV_ALLOC_DONE ? result.allocations : NULL;
}

dv_str dv_cli_short_summary(const struct dv_cli_explain *explain,
                            const struct dv_cli_verdict *verdict)
{
    dv_str prefix = dv_str_printf(explain->arena, "%.*s, ", DV_FMT(explain->subject->what));

    if (verdict->outcome == DV_ALLOC_DONE)
        return DV_STR_NONE;
    if (!dv_str_starts_with(verdict->summary, prefix))
        return verdict->summary;
    return dv_str_slice(verdict->summary, prefix.n, verdict->summary.n);
}

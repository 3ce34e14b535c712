/* explain_judge.h - what is found out about each node, for those who print it. */
#ifndef DV_CLI_EXPLAIN_JUDGE_H
#define DV_CLI_EXPLAIN_JUDGE_H

#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "base/str.h"

struct dv_api_allocation_result;
struct dv_api_resource_claim;
struct dv_arena;
struct dv_cli_explain;
struct dv_cli_explain_subject;

/* What one node may cost when the rest is spent: half a second. What was found out on it before
 * costs nothing the second time. */
#define DV_CLI_NODE_COST_MIN (DV_ALLOC_COST_MAX / 20)

/* What was found out about a node, and how far it is from fitting. */
struct dv_cli_verdict {
    const struct dv_alloc_node *node;
    enum dv_alloc_outcome outcome;
    dv_str summary;
    size_t n_passed; /* requests that the search came past */
    uint64_t n_lacking;
    enum dv_why nearest; /* of the devices that do not fit */
    size_t group;        /* the same for all of which the same is to be said */
};

struct dv_cli_verdicts {
    struct dv_cli_verdict *v; /* the best first, and behind each those that are like it */
    size_t n;
    size_t n_fitting;
};

/* A claim that has its devices already, and not for this node; NULL: none. */
const struct dv_api_resource_claim *
dv_cli_foreign_claim(const struct dv_cli_explain_subject *subject,
                     const struct dv_alloc_node *node);
/* Finds out about all nodes. */
struct dv_cli_verdicts dv_cli_judge_all(const struct dv_cli_explain *explain);
/* Finds out about one, device by device, in `arena`. */
void dv_cli_judge(const struct dv_cli_explain *explain, const struct dv_alloc_node *node,
                  uint64_t cost_max, struct dv_arena *arena, struct dv_explanation *explanation);
/* The allocation of the claims on a node that fits; NULL: it does not any more. */
const struct dv_api_allocation_result *dv_cli_allocate(const struct dv_cli_explain *explain,
                                                       const struct dv_alloc_node *node);
/* The node's summary without the claim's name, when there is only one. */
dv_str dv_cli_short_summary(const struct dv_cli_explain *explain,
                            const struct dv_cli_verdict *verdict);

#endif

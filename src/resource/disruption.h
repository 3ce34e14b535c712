/* disruption.h - what a PodDisruptionBudget allows: how many of its pods work, how many have to,
 * and how many may be sent away. */
#ifndef DV_RESOURCE_DISRUPTION_H
#define DV_RESOURCE_DISRUPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/str.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_label_selector;

/* Counts the pods of one budget, one after the other. */
struct dv_disruption {
    const struct dv_api_pod_disruption_budget *budget;
    const struct dv_label_selector *selector; /* NULL: it selects nothing */
    /* The ReplicaSet or the Deployment of that name in the budget's namespace; NULL: there is none.
     */
    const void *(*find)(void *ctx, enum dv_kind_id kind, dv_str name);
    void *ctx;
    struct dv_map owners; /* whose wanted number has been counted, by uid */
    int64_t n_pods;
    int64_t n_healthy;
    int64_t n_wanted; /* by those that keep a number of such pods */
};

/* Keeps the budget. */
void dv_disruption_begin(struct dv_disruption *disruption,
                         const struct dv_api_pod_disruption_budget *budget, struct dv_arena *arena);
bool dv_disruption_selects(const struct dv_disruption *disruption,
                           const struct dv_api_object_meta *pod);
/* Counts a pod of the budget's namespace, if the budget selects it. */
void dv_disruption_add(struct dv_disruption *disruption, const struct dv_api_pod *pod);
/* The status by what was counted, in the arena. Nothing is counted afterwards. */
void dv_disruption_end(struct dv_disruption *disruption, struct dv_time now, struct dv_arena *arena,
                       struct dv_api_pod_disruption_budget_status *status);

#endif

/* agent_fit.h - whether a pod fits on this node beside those that are there, as the reference's
 * node agent asks once more when a pod comes: a scheduler may not have known better, and a pod may
 * have come without one. Pure. */
#ifndef DV_POD_AGENT_FIT_H
#define DV_POD_AGENT_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_api_node;
struct dv_api_pod;
struct dv_arena;
struct dv_quantity_entry;

struct dv_agent_fit {
    const struct dv_api_pod *pod;
    const struct dv_api_node *node; /* its labels, and what is allocatable */
    /* The pods that the node has and that have not ended, without this one. */
    const struct dv_api_pod *const *others;
    size_t n_others;
    /* How many devices of plugins all pods hold: a plugin that has lost some of them takes nothing
     * away from pods that have theirs (sanitizeNodeAllocatable). */
    const struct dv_quantity_entry *held;
    size_t n_held;
    /* Whether devices of plugins count. Otherwise the admission itself decides about them, and
     * waits where the reference refuses. */
    bool counts_devices;
};

struct dv_agent_misfit {
    dv_str reason; /* "OutOfcpu", "NodeAffinity" */
    dv_str message;
};

/* False: the pod does not fit, and why, in `arena`. Of several reasons the first one counts. */
bool dv_agent_fits(const struct dv_agent_fit *fit, struct dv_arena *arena,
                   struct dv_agent_misfit *misfit);

#endif

#include "topology/topology.h"

void dv_topology_count(const struct dv_topology_config *config, enum dv_topology_event event,
                       struct dv_topology_counts *counts)
{
    struct dv_topology_alignment *alignment =
        config->scope == DV_TOPOLOGY_SCOPE_POD ? &counts->of_pods : &counts->of_containers;
    bool is_promised = config->policy == DV_TOPOLOGY_SINGLE_NUMA_NODE;

    switch (event) {
    case DV_TOPOLOGY_ASKED:
        counts->n_requests++;
        break;
    case DV_TOPOLOGY_ALLOCATED:
        alignment->n_kept += is_promised;
        break;
    case DV_TOPOLOGY_REJECTED:
        alignment->n_broken += is_promised;
        counts->n_errors++;
        break;
    case DV_TOPOLOGY_FAILED: /* policy none counts no errors */
        counts->n_errors += config->policy != DV_TOPOLOGY_NONE;
        break;
    }
}

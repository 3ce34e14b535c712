/* topology.h - NUMA alignment: which nodes each resource of a container could come from (hints),
 * and the one set of nodes that suits them all under a policy (merge).
 *
 *     per-device nodes --> device hints --.
 *                                          >-- merge --> affinity, and whether the pod is admitted
 *     other providers' hints -------------'
 *
 * Decisions are those of Kubernetes 1.36. Everything is a plain value: nothing is kept between
 * calls, and a pointer is borrowed for its call. The machine is parsed from texts; reading /sys is
 * for the caller, because this module does no I/O. */
#ifndef DV_TOPOLOGY_H
#define DV_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;

/* -- Sets of NUMA nodes --------------------------------------------------------------------- */

/* Bit i is NUMA node i. Union, intersection and equality are the language's own. */
typedef uint64_t dv_numa_mask;
#define DV_NUMA_ID_MAX 63

unsigned dv_topology_mask_count(dv_numa_mask mask);

/* -- The machine ---------------------------------------------------------------------------- */

/* The most that Linux can be built for (NODES_SHIFT 10). */
#define DV_NUMA_NODES_MAX 1024u

struct dv_numa_node {
    uint32_t id;
    size_t n_distances; /* 0: not known */
    const uint32_t *distances;
};

struct dv_numa_machine {
    struct dv_numa_node *nodes; /* by id, which may begin above 0 and have gaps */
    size_t n_nodes;
    dv_numa_mask mask; /* those with ids up to 63: a policy other than none wants no others */
};

/* Parses the text of /sys/devices/system/node/online ("0-1,4"), into `arena`, without distances. A
 * kernel without NUMA has no such file: that is one node, "0". */
DV_CHECKED bool dv_topology_machine_parse(dv_str online, struct dv_arena *arena,
                                          struct dv_numa_machine *machine, struct dv_err *err);
/* Parses the text of node<id>/distance ("10 21"), into `arena`. Only prefer-closest needs
 * distances. */
DV_CHECKED bool dv_topology_distances_parse(struct dv_numa_node *node, dv_str text,
                                            struct dv_arena *arena, struct dv_err *err);

/* -- Configuration -------------------------------------------------------------------------- */

enum dv_topology_policy {
    DV_TOPOLOGY_NONE,
    DV_TOPOLOGY_BEST_EFFORT,
    DV_TOPOLOGY_RESTRICTED,
    DV_TOPOLOGY_SINGLE_NUMA_NODE,
};

/* The scope that shares one affinity: a container or the whole pod. */
enum dv_topology_scope {
    DV_TOPOLOGY_SCOPE_NONE, /* nothing does: the policy is none */
    DV_TOPOLOGY_SCOPE_CONTAINER,
    DV_TOPOLOGY_SCOPE_POD,
};

struct dv_topology_option {
    dv_str name;
    dv_str value;
};

/* The reference's number, which max-allowable-numa-nodes can only raise. */
#define DV_TOPOLOGY_NODES_DEFAULT 8

struct dv_topology_config {
    enum dv_topology_policy policy;
    enum dv_topology_scope scope;
    bool prefers_closest;
    int64_t max_nodes; /* above the default is worth a warning when the daemon starts */
};

/* Checks the settings against the machine, in the reference's order and with its texts. With policy
 * none nothing else is looked at. DV_INVALID_ARGUMENT: the settings are wrong.
 * DV_FAILED_PRECONDITION: this machine cannot do it. */
DV_CHECKED bool dv_topology_config_parse(dv_str policy, dv_str scope,
                                         const struct dv_topology_option *options, size_t n_options,
                                         const struct dv_numa_machine *machine,
                                         struct dv_topology_config *config, struct dv_err *err);

/* -- Hints ---------------------------------------------------------------------------------- */

/* Zeroed, it is also the affinity of a container that nobody has merged hints for. */
struct dv_numa_hint {
    dv_numa_mask mask; /* 0 without has_mask */
    bool has_mask;     /* otherwise any nodes will do */
    bool is_preferred;
};

/* A provider's answer for one resource. Without hints it says one of two opposite things. */
struct dv_hint_list {
    const struct dv_numa_hint *hints;
    size_t n_hints; /* 0 without is_any: cannot be satisfied */
    bool is_any;    /* does not care; has no hints. As good as no list at all */
};

/* -- Hints of devices ----------------------------------------------------------------------- */

/* What a plugin said about where a device is; each kind has what those before it lack. Zeroed, the
 * plugin has sent no topology. */
enum dv_numa_place_kind {
    DV_NUMA_NOT_TOLD,
    DV_NUMA_NO_NODES, /* a topology that lists none */
    DV_NUMA_PSEUDO,   /* only node -1, which stands for no node */
    DV_NUMA_NODES,
};

struct dv_numa_place {
    dv_numa_mask mask; /* ids outside 0..63 are in no mask, but still make it DV_NUMA_NODES */
    enum dv_numa_place_kind kind;
};

/* Makes a place of a topology that was sent, from its ids as they came. */
struct dv_numa_place dv_topology_place_from_ids(const int64_t *ids, size_t n_ids);

enum dv_numa_side {
    DV_NUMA_NO_SIDE, /* no nodes on one of the two: alignment says nothing */
    DV_NUMA_ALIGNED,
    DV_NUMA_UNALIGNED,
};

/* Tells on which side of a container's merged affinity a device is. */
enum dv_numa_side dv_topology_side(const struct dv_numa_place *place,
                                   const struct dv_numa_hint *affinity);

/* Devices of one resource that are in the same place: as many as the caller likes, down to one. A
 * place may come more than once, so that counts can be kept as devices come and go. All counts of a
 * resource together fit in 32 bits. */
struct dv_numa_group {
    struct dv_numa_place place;
    uint32_t n_listed;    /* by the plugin now, healthy or not, in use or not */
    uint32_t n_available; /* of these, healthy and free */
    /* Devices that init containers of the pod use and lend on; none of them is available. 0 in pod
     * scope. A device that is no longer listed counts as one in no known place. */
    uint32_t n_reusable;
    /* Recorded for this container; in pod scope, for any of the pod, each device once. */
    uint32_t n_held;
};

/* Every set of nodes that can serve `requested` devices has a hint, so that more nodes than this
 * with devices of one resource are too many to try. */
#define DV_TOPOLOGY_DEVICE_NODES_MAX 20u

/* The hints of one resource, in the reference's order: by number of nodes, then by their ids. They
 * are in `arena`. Takes O(groups + n 2^n) for n nodes that have devices.
 * DV_RESOURCE_EXHAUSTED: more nodes than can be tried. */
DV_CHECKED bool dv_topology_device_hints(const struct dv_numa_machine *machine,
                                         const struct dv_numa_group *groups, size_t n_groups,
                                         uint64_t requested, struct dv_arena *arena,
                                         struct dv_hint_list *list, struct dv_err *err);

enum dv_topology_need_kind {
    DV_TOPOLOGY_NEED_REGULAR,
    DV_TOPOLOGY_NEED_INIT,
    DV_TOPOLOGY_NEED_SIDECAR, /* an init container that stays */
};

/* One container's limit for a resource. */
struct dv_topology_need {
    enum dv_topology_need_kind kind;
    uint64_t limit;
};

/* The most devices of a resource that a pod holds at one time, which it requests in pod scope. Init
 * containers are in the pod's order. UINT64_MAX when the sum does not fit. */
uint64_t dv_topology_pod_request(const struct dv_topology_need *needs, size_t n_needs);

/* -- Merge ---------------------------------------------------------------------------------- */

struct dv_topology_verdict {
    struct dv_numa_hint affinity; /* to be kept with the container, or with all of the pod */
    bool is_admitted;
};

/* The reason and the message for a pod that is refused. */
#define DV_TOPOLOGY_REJECTED_REASON "TopologyAffinityError"
#define DV_TOPOLOGY_REJECTED_MESSAGE "Resources cannot be allocated with Topology locality"

/* Merges the answers of all providers; a provider that answers for no resource adds no list. The
 * order of lists does not matter.
 *
 * The reference walks the product of all lists. Here a result that all lists prefer is found in one
 * pass over the hints. Otherwise each list takes the distinct intersections so far to the next, at
 * most 2^n for n nodes: O(hints + min(intersections x hints, n 2^n)) for a list. So 8 nodes cost
 * some 5 microseconds a list, whatever it holds; 16 nodes may cost milliseconds. Under
 * single-numa-node and none there is only the pass. DV_RESOURCE_EXHAUSTED: hints over more than 20
 * nodes with too many intersections to try. */
DV_CHECKED bool dv_topology_merge(const struct dv_topology_config *config,
                                  const struct dv_numa_machine *machine,
                                  const struct dv_hint_list *lists, size_t n_lists,
                                  struct dv_topology_verdict *verdict, struct dv_err *err);

/* -- Counts for metrics --------------------------------------------------------------------- */

/* Counts of alignment, for single-numa-node only: no other policy promises it. */
struct dv_topology_alignment {
    uint64_t n_kept;   /* aligned_compute_resources_count */
    uint64_t n_broken; /* aligned_compute_resources_failure_count */
};

struct dv_topology_counts {
    uint64_t n_requests;
    uint64_t n_errors;
    struct dv_topology_alignment of_containers; /* by scope */
    struct dv_topology_alignment of_pods;
};

enum dv_topology_event {
    DV_TOPOLOGY_ASKED,     /* a pod asks for admission */
    DV_TOPOLOGY_ALLOCATED, /* and its devices, or a container's in container scope, are allocated */
    DV_TOPOLOGY_REJECTED,  /* by the merge */
    DV_TOPOLOGY_FAILED,    /* by a provider */
};

void dv_topology_count(const struct dv_topology_config *config, enum dv_topology_event event,
                       struct dv_topology_counts *counts);

#endif

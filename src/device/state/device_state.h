/* device_state.h - the parts of a dv_device_state, for the files of this folder.
 *
 *     state --- resource --- device ---.
 *       |          |           |       |
 *       |          |- nodes ---'    holding
 *       |          '- plugin           |
 *       |                              |
 *       '------- pod ---------------- held
 *
 * A device is known while it is listed, held, reserved or lent. Free devices are bits in the order
 * in which they are chosen: by nodes, then by id. A device that is taken is not free:
 *
 *     held       a record says that a container has it
 *     reserved   as often as n_reserved says, by those who will let go of it
 *     leaked     strict only: a choice that failed has left it taken, as in the reference
 *
 * An operation reserves the devices that it has chosen, until they are in a record or given back.
 * An admission reserves devices that it keeps back (dv_device_keep_back, dv_device_let_go), because
 * it has found that another pod has the same hardware by another way: they are its devices `aside`.
 * It then evades (the step of that name in module pod): it gives back what it was given, and the
 * choice is made anew among the rest. At its end it lets go of all that is aside. */
#ifndef DV_DEVICE_STATE_H
#define DV_DEVICE_STATE_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "device/device.h"
#include "device/state/bits.h"
#include "topology/topology.h"

#define DV_DEVICE_NO_RANK UINT32_MAX

/* The NUMA nodes that some devices of a resource have, as the plugin gave them. Devices with the
 * same nodes share one. */
struct dv_device_nodes {
    dv_str key; /* in its resource's map: numbers of 64 bits, has_topology and then the nodes */
    struct dv_numa_place place;
    bool has_topology;
    size_t n_users;   /* devices that point here */
    size_t begin;     /* its devices are those of the ranks from here */
    size_t end;       /* up to here */
    size_t n_free;    /* of its devices */
    const int64_t *v; /* in the key */
    size_t n;
};

/* Which devices count as healthy and unhealthy. */
enum dv_device_sets {
    DV_DEVICE_SETS_EMPTY, /* none: no list counts */
    DV_DEVICE_SETS_LIVE,  /* as listed */
    DV_DEVICE_SETS_DOWN,  /* all that is listed is unhealthy: the last plugin has gone */
};

/* The devices of a list, in its order. */
struct dv_device_order {
    struct dv_device **v;
    size_t n;
    size_t size;
};

/* The bytes of a list (list_same.c). */
struct dv_device_text {
    char *p;
    size_t n;
    size_t size;
};

struct dv_device_plugin {
    struct dv_link in_resource;
    struct dv_device_plugin_options options;
    dv_str socket;
};

struct dv_device_resource {
    struct dv_device_state *state;
    dv_str name;
    size_t n_operations; /* that point here */

    /* Plugins. */
    struct dv_list plugins; /* connected; the last is called */
    size_t n_plugins;
    uint64_t epoch;  /* of the state, when the last one connected */
    bool is_stopped; /* none is connected, since: */
    uint64_t stopped_ns;
    bool has_options; /* of the last that was called */
    struct dv_device_plugin_options options;

    /* The list. `has_healthy` and `has_unhealthy`, and `has_allocated` below, are whether the
     * reference's sets of that name exist for the resource; empty ones count. */
    struct dv_map devices; /* by id */
    bool is_listed;        /* since the last plugin connected */
    bool has_healthy;
    bool has_unhealthy;
    enum dv_device_sets sets;
    size_t n_listed;
    size_t n_healthy;                /* listed as such */
    uint64_t generation;             /* of the list that was read last */
    struct dv_device_order in_order; /* of that list: where to look first */
    struct dv_device_order spare;    /* memory for that of the next */
    struct dv_device_text text;      /* that list; empty where an entry need not be a device */

    uint64_t list_number; /* of that list, among all of the state's */

    /* Free devices. */
    struct dv_map nodes;                     /* by key */
    DV_VEC(struct dv_device_nodes *) groups; /* those in use, in order of choice */
    DV_VEC(struct dv_device *) ranked;       /* listed devices in order of choice */
    struct dv_device_bits free_ranks;
    size_t n_free;

    /* Taken devices. */
    size_t n_records;
    size_t n_taken;
    struct dv_list kept; /* devices that are taken or lent, and so stay known, listed or not */
    bool has_allocated;
    bool is_saved; /* the store has it */
};

/* A device. The members that reading a list touches come last, next to the text of the id behind
 * them: in a long list each further cache line costs as much as all the rest. */
struct dv_device {
    struct dv_device_resource *resource;
    struct dv_list holders;       /* of dv_device_holding */
    struct dv_device_pod *lender; /* the pod whose later containers may take it */
    struct dv_link in_lender;
    struct dv_link in_leaked;
    struct dv_link in_kept;
    uint32_t n_reserved; /* see above */
    uint32_t rank;
    bool is_taken;
    bool is_free;
    bool is_healthy; /* as listed last */
    bool is_listed;
    uint32_t position;             /* in the list that was read last */
    struct dv_device_nodes *nodes; /* NULL until it is listed; as listed last */
    /* While a list is read: the generation in which it was seen, and what the list says. */
    struct dv_device_nodes *next_nodes;
    uint64_t generation;
    bool next_healthy;
    bool is_changing;
    dv_str id;
};

/* One container's hold on one device. */
struct dv_device_holding {
    struct dv_link in_device;
    struct dv_device *device;
    struct dv_device_held *held;
};

struct dv_device_placement {
    int64_t node;
    size_t order;             /* within a node */
    struct dv_device *device; /* NULL: a node for which the file lists no device */
};

/* What a container holds of a resource. */
struct dv_device_held {
    struct dv_link in_pod;
    struct dv_link in_dirty; /* to be saved */
    bool is_saved;           /* the store has it, perhaps in an older form */
    bool is_lending;         /* of an init container, as far as is known: others may hold it too */
    struct dv_device_pod *pod;
    struct dv_device_resource *resource;
    char *text; /* holds the next three */
    dv_str key; /* in the state's map */
    dv_str container;
    dv_str response;
    struct dv_device_placement *placements; /* by node */
    size_t n_placements;
    size_t n_holdings;
    struct dv_device_holding holdings[]; /* each device once */
};

struct dv_device_pod {
    struct dv_device_state *state;
    dv_str uid;
    uint64_t serial; /* no two pods ever have the same */
    bool is_active;
    size_t n_admissions;
    size_t n_operations;
    struct dv_list held;
    struct dv_list lent;        /* devices */
    struct dv_link in_lenders;  /* while it lends */
    struct dv_link in_inactive; /* while it holds something and is not active */
};

struct dv_device_state {
    struct dv_device_opts opts;
    bool is_ready;           /* sources are */
    struct dv_map resources; /* by name */
    struct dv_map pods;      /* by uid */
    uint64_t n_pods_ever;
    uint64_t epoch;        /* plugins that have connected so far */
    uint64_t n_lists;      /* that have begun to be read so far */
    struct dv_map held;    /* by key: see dv_device_held_find */
    struct dv_map running; /* by pod and container; values are the keys' memory */
    struct dv_list lenders;
    struct dv_list inactive;
    struct dv_list leaked;      /* devices that failed choices left taken: strict only */
    struct dv_list dirty;       /* of dv_device_held */
    DV_VEC(struct dv_buf) gone; /* keys for the store to remove */
    struct dv_buf key;          /* scratch */
};

/* -- device_resource.c */

struct dv_device_resource *dv_device_resource_find(const struct dv_device_state *state,
                                                   dv_str name);
struct dv_device_resource *dv_device_resource_ensure(struct dv_device_state *state, dv_str name);
void dv_device_resource_free(struct dv_device_resource *resource);
/* Frees the resource when nothing needs it. */
void dv_device_resource_drop(struct dv_device_resource *resource);
bool dv_device_resource_is_known(const struct dv_device_resource *resource);
size_t dv_device_resource_n_healthy(const struct dv_device_resource *resource);
size_t dv_device_resource_n_unhealthy(const struct dv_device_resource *resource);
/* The plugin to call; NULL: there is none. */
struct dv_device_plugin *dv_device_resource_plugin(const struct dv_device_resource *resource);
/* Lists all resources, by name, in `arena`. */
size_t dv_device_resources_sorted(const struct dv_device_state *state, struct dv_arena *arena,
                                  struct dv_device_resource ***resources);

/* The device of that id, which is made when it is not known. */
struct dv_device *dv_device_ensure(struct dv_device_resource *resource, dv_str id);
/* To be called after each change to what makes the device taken or free. */
void dv_device_refresh(struct dv_device *device);
/* To be called after each change to what keeps the device known. */
void dv_device_keep(struct dv_device *device);
/* Frees the device when nothing needs it. */
void dv_device_drop(struct dv_device *device);
bool dv_device_is_healthy_now(const struct dv_device *device);

/* -- device_nodes.c */

struct dv_device_nodes *dv_device_nodes_ensure(struct dv_device_resource *resource, dv_str key);
void dv_device_nodes_free_all(struct dv_device_resource *resource);
/* The order of choice between groups; those without nodes come last. */
int dv_device_nodes_cmp(const struct dv_device_nodes *a, const struct dv_device_nodes *b);
/* Frees the node sets that no device points to. */
void dv_device_nodes_prune(struct dv_device_resource *resource);
/* Ranks the listed devices anew: `fresh`, which it sorts, are those that came or moved; ranked ones
 * that went or moved have DV_DEVICE_NO_RANK. */
void dv_device_rank(struct dv_device_resource *resource, struct dv_device **fresh, size_t n_fresh);

/* -- list_same.c */

void dv_device_text_set(struct dv_device_text *text, dv_str bytes);
void dv_device_text_fini(struct dv_device_text *text);

/* -- device_list.c */

/* Applies entries of a list that stand where the last one had `n` devices from place `first` on.
 * False, and nothing has changed: they are not the same devices in the same order, or are bad. */
DV_CHECKED bool dv_device_list_change(struct dv_device_resource *resource, dv_str entries,
                                      size_t first, size_t n, struct dv_arena *arena,
                                      struct dv_device_diff *diff);

/* -- tell_holders.c: who is told of a change of health */

struct dv_device_told {
    DV_VEC(dv_str) pods;
    struct dv_map seen; /* by uid */
};

/* Adds the pods that hold the device. */
void dv_device_tell_holders(struct dv_device_told *told, const struct dv_device *device,
                            struct dv_arena *arena);
/* As the reference does, for strict mode: of the pods that hold this id of whatever resource, adds
 * the one with the first uid. */
void dv_device_tell_first_holder(struct dv_device_told *told, const struct dv_device_state *state,
                                 dv_str id, struct dv_arena *arena);
/* Gives the pods to the diff; `told` is of no use any more. */
void dv_device_told_end(struct dv_device_told *told, struct dv_device_diff *diff);

/* -- device_pods.c */

struct dv_device_pod *dv_device_pod_find(const struct dv_device_state *state, dv_str uid);
struct dv_device_pod *dv_device_pod_ensure(struct dv_device_state *state, dv_str uid);
void dv_device_pod_drop(struct dv_device_pod *pod); /* when nothing needs it */
void dv_device_pod_free(struct dv_device_pod *pod);
bool dv_device_is_running(struct dv_device_state *state, dv_str pod_uid, dv_str container);
/* Moves the pod into or out of the list of inactive pods that hold something. */
void dv_device_pod_refresh(struct dv_device_pod *pod);

void dv_device_lend(struct dv_device_pod *pod, struct dv_device *device);
/* Whether another container may still take a device that is lent. */
bool dv_device_is_lendable(const struct dv_device *device);
void dv_device_unlend(struct dv_device *device);
/* Forgets what other pods lend, unless they are being admitted too. */
void dv_device_unlend_others(struct dv_device_pod *pod);
/* Frees what failed choices left taken, which happens in strict mode only. */
void dv_device_rebuild_allocated(struct dv_device_state *state);

/* -- held.c */

struct dv_device_held *dv_device_held_find(struct dv_device_state *state,
                                           const struct dv_device_pod *pod, dv_str container,
                                           const struct dv_device_resource *resource);
/* Adds it, in place of what the container has of the resource. `placements` are copied, and sorted
 * by node; their devices are in `resource`, and their order is set here. */
struct dv_device_held *dv_device_held_add(struct dv_device_pod *pod, dv_str container,
                                          struct dv_device_resource *resource,
                                          const struct dv_device_placement *placements,
                                          size_t n_placements, dv_str response);
void dv_device_held_remove(struct dv_device_held *held);
/* Describes it as a value; arrays are in `arena`, text is in the state. */
void dv_device_held_describe(const struct dv_device_held *held, struct dv_arena *arena,
                             struct dv_device_record *record);
/* Lists what a container holds, by resource, in `arena`. */
size_t dv_device_held_of(const struct dv_device_state *state, dv_str pod_uid, dv_str container,
                         struct dv_arena *arena, struct dv_device_held ***held);
/* Adds a record that was read from the store or a checkpoint. */
struct dv_device_held *dv_device_held_restore(struct dv_device_state *state,
                                              const struct dv_device_record *record);
/* Makes the resource known, stopped since now_ns, as after a start from a file. */
void dv_device_resource_restore(struct dv_device_state *state, dv_str name, uint64_t now_ns);

#endif

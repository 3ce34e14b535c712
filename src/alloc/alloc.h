/* alloc.h - choosing devices: which devices a claim gets on a node, exactly as the reference would.
 *
 * An inventory holds the slices and classes of a cluster and what of them is in use; it is kept
 * current by adding and removing, and answers for one node after the other. It keeps what it found
 * out: which slices make pools on a node, which devices a selector matches. All that costs is
 * bounded by the node at hand and by what was changed, not by the size of the cluster.
 *
 * One thread uses an inventory at a time: its owner's, or one that it is lent to. Nothing here has
 * a clock, or reads anything. */
#ifndef DV_ALLOC_H
#define DV_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "number/number.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_cel_device;
struct dv_err;
struct dv_inventory;
struct dv_inventory_slice;

/* The API's limit on the devices of one claim. */
#define DV_ALLOC_RESULTS_MAX 32u

/* Feature gates. What an object uses although its gate is off is ignored or an error, as in the
 * reference. */
struct dv_alloc_features {
    bool admin_access;
    bool consumable_capacity;
    bool binding_conditions; /* DRADeviceBindingConditions with DRAResourceClaimDeviceStatus */
    bool device_taints;
    bool list_attributes;
    bool partitionable_devices;
    bool prioritized_list;
};

/* As Kubernetes 1.36 has them by default: all but list_attributes. */
struct dv_alloc_features dv_alloc_features_default(void);

/* ---- the inventory ---- */

struct dv_inventory *dv_inventory_new(const struct dv_alloc_features *features);
void dv_inventory_free(struct dv_inventory *inventory); /* NULL is fine */

/* Takes a reference to the ResourceSlice. Slices count in the order in which they were added. */
struct dv_inventory_slice *dv_inventory_add_slice(struct dv_inventory *inventory,
                                                  struct dv_object *slice);
void dv_inventory_remove_slice(struct dv_inventory *inventory, struct dv_inventory_slice *slice);
/* Forgets what is known of a node that is gone, or will not be asked for again soon. Its slices
 * stay; what is asked of it again is found out anew. */
void dv_inventory_forget_node(struct dv_inventory *inventory, dv_str name);
/* Gives back what is known of some nodes, and holds their slices so that they may be packed; true:
 * there are more, or it is lent. What is needed again is made anew: to be called when nothing has
 * been asked for a while, until it is false. */
bool dv_inventory_rest(struct dv_inventory *inventory);
/* Takes a reference to the DeviceClass, in place of one of that name. */
void dv_inventory_set_class(struct dv_inventory *inventory, struct dv_object *class);
void dv_inventory_remove_class(struct dv_inventory *inventory, dv_str name);

/* What claims hold: each result of an allocation. With adminAccess it holds nothing. A device that
 * no slice has is held all the same. `holder` is for explanations and is copied. */
void dv_inventory_hold(struct dv_inventory *inventory,
                       const struct dv_api_allocation_result *allocation, dv_str holder);
/* Gives back what dv_inventory_hold took, of each result once: of the same device and, where it is
 * shared, the same share. What is not held is passed over. */
void dv_inventory_release(struct dv_inventory *inventory,
                          const struct dv_api_allocation_result *allocation);

/* ---- allocating ---- */

struct dv_alloc_node {
    dv_str name;
    const struct dv_str_entry *labels;
    size_t n_labels;
};

enum dv_alloc_outcome {
    DV_ALLOC_DONE,        /* every claim has its allocation */
    DV_ALLOC_NONE,        /* there is no solution on this node */
    DV_ALLOC_FAILED,      /* a claim, class or selector is at fault: no node would do better */
    DV_ALLOC_NODE_FAILED, /* pools on this node are at fault: another node may do */
    DV_ALLOC_GAVE_UP,     /* the steps or the cost were spent, or `is_cancelled` said so */
};

/* What a search costs, in units of about ten nanoseconds: those of CEL's cost, and for what else
 * takes time as many as it takes (search.h). A billion is about as long as the reference's
 * scheduler takes before it gives up on a node, ten seconds. */
#define DV_ALLOC_COST_MAX UINT64_C(1000000000)

struct dv_alloc_options {
    uint64_t n_steps_max; /* of the search; 0: ten million, up to a few seconds */
    uint64_t cost_max;    /* of all that is done for it; 0: DV_ALLOC_COST_MAX */
    /* Random UUIDs for shares of devices. NULL: counted, for tests. */
    void (*share_id)(void *ctx, char text[DV_UUID_BYTES]);
    bool (*is_cancelled)(void *ctx); /* asked every thousand steps; NULL: never */
    void *ctx;
};

struct dv_alloc_result {
    enum dv_alloc_outcome outcome;
    struct dv_api_allocation_result *allocations; /* one a claim, in their order; DV_ALLOC_DONE */
    dv_str note; /* what may be behind DV_ALLOC_NONE: a pool that two nodes publish; or empty */
    uint64_t n_steps;
    uint64_t cost; /* may be above the limit by the cost of one step */
};

/* Chooses devices for all claims together. Changes nothing: hold what you take. The result is in
 * `arena`, but for texts and lists of slices and claims, which are borrowed: of slices until they
 * are removed, their node is forgotten or dv_inventory_rest is called. `err` is set unless
 * the outcome is DV_ALLOC_DONE or DV_ALLOC_NONE. What selectors were found to be true on is kept
 * also when it gives up, so that the same question costs less each time. */
void dv_allocate(struct dv_inventory *inventory, const struct dv_alloc_node *node,
                 const struct dv_api_resource_claim *const *claims, size_t n_claims,
                 const struct dv_alloc_options *options, struct dv_arena *arena,
                 struct dv_alloc_result *result, struct dv_err *err);

/* A device as selectors see it: for evaluating them without an inventory. `has_lists` is the gate
 * of attributes that are lists. Keeps the device and the name. */
struct dv_cel_device *dv_alloc_cel_device(const struct dv_api_device *api, dv_str driver,
                                          bool has_lists, struct dv_arena *arena);

/* ---- lending ---- */

/* Until it is returned the inventory is that of one job on another thread, which may call
 * dv_allocate and nothing else. Its owner may go on to add, set, hold, release, remove and forget,
 * to no effect until then, and may not ask it anything. */
void dv_inventory_lend(struct dv_inventory *inventory);
void dv_inventory_return(struct dv_inventory *inventory); /* carries out what was put off */
bool dv_inventory_is_lent(const struct dv_inventory *inventory);
/* A number for the state of the inventory now, for dv_inventory_has_changed. */
uint64_t dv_inventory_now(const struct dv_inventory *inventory);
/* Whether anything that a search on the node depends on has changed after `since`, or may have. */
bool dv_inventory_has_changed(const struct dv_inventory *inventory, dv_str node, uint64_t since);

/* ---- extended resources ---- */

/* A class is asked for by the name of an extended resource, in a container's requests: by the one
 * that it gives itself, and by this prefix with its own name. */
#define DV_ALLOC_EXTENDED_PREFIX "deviceclass.resource.kubernetes.io/"

/* The class that serves the resource; NULL: none does. Of two that give themselves the same name
 * the newer serves it, of the same age that with the smaller name. */
bool dv_class_serves_before(const struct dv_api_device_class *a,
                            const struct dv_api_device_class *b);
const struct dv_api_device_class *dv_inventory_extended(struct dv_inventory *inventory,
                                                        dv_str resource);

struct dv_extended {
    struct dv_api_device_request *requests; /* of the claim that the pod needs; by name */
    size_t n_requests;                      /* 0: it needs none */
    struct dv_api_container_extended_resource_request *mappings;
    size_t n_mappings;
};

/* What a pod's containers ask of classes as extended resources, on a node with these allocatable
 * resources: what the node has of its own is served by that. DV_INVALID_ARGUMENT: an amount that is
 * no whole number. */
DV_CHECKED bool dv_extended_read(struct dv_inventory *inventory, const struct dv_api_pod_spec *pod,
                                 const struct dv_quantity_entry *allocatable, size_t n_allocatable,
                                 struct dv_arena *arena, struct dv_extended *extended,
                                 struct dv_err *err);

/* ---- why not ---- */

/* Ordered by nearness: the first lacks least. */
enum dv_why {
    DV_WHY_FITS,             /* nothing against it */
    DV_WHY_CONSTRAINT,       /* a constraint of the claim, together with another device */
    DV_WHY_TAKEN_HERE,       /* it is taken by another request of the same claims */
    DV_WHY_COUNTER,          /* a shared counter is short */
    DV_WHY_CAPACITY,         /* its capacity is short, or not there */
    DV_WHY_TAINTED,          /* a taint is not tolerated */
    DV_WHY_TAKEN,            /* it is taken by another claim */
    DV_WHY_REQUEST_SELECTOR, /* a selector of the request is false */
    DV_WHY_CLASS_SELECTOR,   /* a selector of the class is false */
    DV_WHY_SELECTOR_FAILS,   /* a selector cannot be evaluated on it, or was not: it costs much */
    DV_WHY_OTHER_NODE,       /* it is for other nodes */
    DV_WHY_GATE,             /* it needs a feature that is off */
    DV_WHY_POOL_UPDATING,    /* its pool is not complete */
    DV_WHY_POOL_INVALID,     /* its pool contradicts itself */
    DV_WHY_POOL_OBSOLETE,    /* a newer generation of its pool is being published */
    DV_WHY_POOL_RIVAL,       /* a slice that is not of this node has the same pool */
};

/* The word for a reason: "taken", "constraint". */
const char *dv_why_name(enum dv_why why);

struct dv_why_device {
    enum dv_why why;
    dv_str driver;
    dv_str pool;
    dv_str device; /* empty: the whole pool */
    dv_str text;   /* a sentence: `taken by default/claim-a` */
    dv_str brief;  /* in fewer words, without names of claims; empty: `text` is that */
};

/* Whether it would do, or is what the request was given. */
bool dv_why_is_fitting(const struct dv_why_device *device);

/* One request, or one alternative of it. */
struct dv_why_request {
    dv_str claim;   /* "namespace/name" */
    dv_str request; /* "request" or "request/alternative" */
    uint64_t n_wanted;
    size_t n_fitting;
    bool is_stuck;                 /* the search came this far and no further */
    struct dv_why_device *devices; /* the nearest miss first */
    size_t n_devices;
};

struct dv_explanation {
    enum dv_alloc_outcome outcome;
    dv_str summary; /* one line */
    struct dv_why_request *requests;
    size_t n_requests;
    uint64_t cost;
};

/* Why these claims cannot be allocated on the node, device by device; or that they can. All in
 * `arena`, but for names that are borrowed. `options` are those of the search; its cost is that of
 * the whole: what is not found out within it is said not to be. */
void dv_alloc_explain(struct dv_inventory *inventory, const struct dv_alloc_node *node,
                      const struct dv_api_resource_claim *const *claims, size_t n_claims,
                      const struct dv_alloc_options *options, struct dv_arena *arena,
                      struct dv_explanation *explanation);

/* What stands in the way on a node, in one line. */
struct dv_alloc_miss {
    /* `gpu: 1 wanted, 4 looked at: memory = 16Gi, wanted >= 40Gi (gpu-0 on n1)`, of 200 bytes at
     * most, and without names of claims; empty: that was not found out. */
    dv_str text;
    size_t n_passed;  /* how many requests come before the one that it is about */
    bool has_devices; /* that were looked at */
    enum dv_why why;  /* of the device that lacks least */
    uint64_t n_lacking;
    uint64_t cost;
};

/* Finds it for claims for which dv_allocate found DV_ALLOC_NONE on the node, at a limit of cost as
 * there; in `arena`. */
void dv_alloc_miss(struct dv_inventory *inventory, const struct dv_alloc_node *node,
                   const struct dv_api_resource_claim *const *claims, size_t n_claims,
                   const struct dv_alloc_options *options, struct dv_arena *arena,
                   struct dv_alloc_miss *miss);
/* Whether less stands in the way than on the node of the other. */
bool dv_alloc_miss_is_nearer(const struct dv_alloc_miss *miss, const struct dv_alloc_miss *than);

#endif

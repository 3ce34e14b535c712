/* inventory.h - the parts of an inventory, for the files of this folder: slices with their devices,
 * pools, what is in use, compiled selectors, and for each node a view of what it sees. A `version`
 * is a number that grows with every change: what was derived from something remembers its version,
 * and is made anew when that is another one. */
#ifndef DV_ALLOC_INVENTORY_H
#define DV_ALLOC_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "number/number.h"

struct dv_cel_budget;
struct dv_cel_device;
struct dv_cel_expr;

/* A device by its name, whether or not a slice has it. What is in use is recorded here. */
struct dv_alloc_ident {
    struct dv_alloc_pool *pool;
    struct dv_list holds;       /* the newest last */
    struct dv_alloc_sums *sums; /* NULL: no capacity is consumed */
    uint32_t n_refs;            /* from slices that have it, and from holds */
    uint32_t n_dedicated;
    uint32_t n_shares;
    uint32_t n_with_capacity; /* how many of the shares consume capacity */
    uint32_t n_name;
    char name[];
};

/* What shares of a device consume together. */
struct dv_alloc_sums {
    struct dv_arena *arena;      /* has all of it */
    struct dv_quantity_entry *v; /* by name */
    size_t n;
};

/* One result of an allocation that is held, in one block with all that it refers to. */
struct dv_alloc_hold {
    dv_str holder;
    dv_str share_id; /* p is NULL: it holds the whole device */
    const struct dv_quantity_entry *consumed;
    size_t n_consumed;
    bool has_capacity;
    uint32_t n_bytes;    /* of the block */
    struct dv_link link; /* in the list of its ident */
};

/* A driver's pool with all its slices, whatever nodes they are for. */
struct dv_alloc_pool {
    dv_str key;  /* its key in the map (see alloc_hold.c), in the same block */
    dv_str path; /* "driver/pool", the beginning of the key */
    dv_str driver;
    dv_str name;
    struct dv_list slices;
    size_t n_refs;           /* from slices and idents */
    uint64_t slices_version; /* the version of the last change of its slices */
    uint64_t usage_version;  /* the version of the last change of what is in use */
    uint64_t seen_mark;      /* scratch of node_view.c: the view_mark with which seen_at was set */
    size_t seen_at;
    uint64_t rival_mark; /* scratch of rival.c: the mark of the search that looked at it last */
};

struct dv_alloc_device {
    const struct dv_api_device *api; /* NULL: its slice sleeps */
    struct dv_inventory_slice *slice;
    struct dv_alloc_ident *ident;
    /* As CEL sees it; valid while `cel_version` is the inventory's: see dv_inventory_cel_device. */
    struct dv_cel_device *cel;
    uint32_t cel_version;
    uint32_t slot;    /* its bit in the verdicts */
    uint64_t content; /* a hash of all but its name: see twin.c */
    bool is_multi;    /* may be allocated several times, and the gate is on */
};

struct dv_inventory_slice {
    struct dv_object *object;
    const struct dv_api_resource_slice_spec *spec; /* NULL: it sleeps, see alloc_rest.c */
    struct dv_arena *woken; /* has what `spec` points into, of a slice that slept; or NULL */
    bool is_pinned;         /* `object` is a reference with which it is not packed */
    struct dv_alloc_pool *pool;
    struct dv_alloc_inventory_node
        *node; /* the only node that it is for; NULL: it may be for any */
    struct dv_arena *arena;
    struct dv_alloc_device *devices;
    size_t n_devices;
    int64_t generation; /* of the pool */
    bool is_consuming;  /* a device consumes counters */
    uint64_t order;
    struct dv_link in_pool; /* by `order` */
    struct dv_link in_node; /* in its node's slices, or in the inventory's shared ones */
};

/* A compiled selector, and on which devices it is known to be true or false. */
struct dv_alloc_selector {
    dv_str text; /* in the arena */
    struct dv_arena *arena;
    struct dv_cel_expr *expr; /* NULL: does not compile */
    struct dv_err err;        /* why it does not compile */
    uint64_t *known;          /* a bit for each slot: it was evaluated on that device */
    uint64_t *matches;
    size_t n_words;
    struct dv_link link; /* in the list by use, the newest first */
};

enum dv_alloc_pool_state {
    DV_ALLOC_POOL_USABLE,
    DV_ALLOC_POOL_INCOMPLETE,
    DV_ALLOC_POOL_INVALID,
};

struct dv_alloc_counter {
    dv_str set;
    dv_str name;
    struct dv_quantity value;     /* as published */
    struct dv_quantity available; /* the value less what is in use, as of `usage_version` */
};

struct dv_alloc_consumption {
    uint32_t counter; /* index into the pool's counters */
    struct dv_quantity value;
};

/* One device as a node sees it: what the search takes. */
struct dv_alloc_place {
    struct dv_alloc_device *device;
    struct dv_alloc_node_pool *pool;
    struct dv_alloc_consumption *consumes;
    size_t n_consumes;
    uint32_t twin; /* the last place before it that only its name tells from it; or NO_PLACE */
};

#define NO_PLACE UINT32_MAX

/* A pool as a node sees it. */
struct dv_alloc_node_pool {
    struct dv_alloc_pool *pool;
    enum dv_alloc_pool_state state;
    dv_str problem;                     /* why it is invalid */
    struct dv_inventory_slice **slices; /* by name */
    size_t n_slices;
    struct dv_inventory_slice **others; /* slices for other nodes: they count for counters */
    size_t n_others;
    DV_VEC(dv_str) sets; /* the names of its sets of counters */
    struct dv_alloc_counter *counters;
    size_t n_counters;
    struct dv_arena *sums; /* memory of `available`, where a quantity needs any; NULL: none does */
    uint64_t usage_version;
    bool is_late; /* a device has binding conditions: these pools come last */
    /* Slices of other nodes were looked at: it is current as long as the pool's slices_version is
     * this one. */
    bool looked_wider;
    uint64_t slices_version;
};

/* A pool that a newer generation elsewhere hides from the node. */
struct dv_alloc_obsolete {
    struct dv_alloc_pool *pool;
    uint64_t slices_version;
};

/* What a node sees: its pools and their devices. Made anew when something that it depends on has
 * changed. */
struct dv_alloc_node_view {
    struct dv_arena *arena;
    struct dv_str_entry *labels; /* a copy */
    size_t n_labels;
    struct dv_alloc_node_pool *pools;
    size_t n_pools;
    struct dv_alloc_place *places; /* the devices of usable pools, in the order of the search */
    size_t n_places;
    DV_VEC(struct dv_alloc_obsolete) obsolete;
    uint64_t own_version;
    uint64_t shared_version;
    bool has_invalid;
    bool checks_counters;
    bool has_negative; /* a device consumes less than nothing of a counter: it adds to it */
    /* Set when a node selector cannot be evaluated; otherwise its code is DV_OK. */
    struct dv_err err;
};

struct dv_alloc_inventory_node {
    dv_str name; /* in the same block */
    struct dv_list slices;
    size_t n_devices; /* of all its slices */
    uint64_t version;
    struct dv_link awake; /* in the inventory's `awake`: it has something to give back at rest */
    struct dv_alloc_node_view *view; /* NULL: not asked for yet */
};

/* A change that was put off while the inventory was lent. */
struct dv_alloc_change {
    enum change_kind {
        DV_ALLOC_CHANGE_ADD_SLICE,
        DV_ALLOC_CHANGE_REMOVE_SLICE,
        DV_ALLOC_CHANGE_FORGET_NODE,
        DV_ALLOC_CHANGE_SET_CLASS,
        DV_ALLOC_CHANGE_REMOVE_CLASS,
        DV_ALLOC_CHANGE_HOLD,
        DV_ALLOC_CHANGE_RELEASE,
    } kind;
    struct dv_inventory_slice *slice;
    struct dv_object *class;                           /* a reference */
    dv_str name;                                       /* of a node or a class, or the holder */
    const struct dv_api_allocation_result *allocation; /* a copy */
};

struct dv_alloc_lent {
    bool is_lent;
    DV_VEC(struct dv_alloc_change) changes;
    struct dv_arena *arena; /* has the changes; NULL: there never were any */
};

struct dv_inventory {
    struct dv_alloc_features features;
    struct dv_names idents; /* by the key of the pool and the name of the device */
    struct dv_slabs memory; /* of idents and holds */
    struct dv_map pools;
    struct dv_map nodes;
    struct dv_map classes;  /* name -> struct dv_object */
    struct dv_map extended; /* extended resource -> the class that serves it */
    bool is_extended_current;
    struct dv_map selectors;
    struct dv_list selectors_by_use;
    size_t n_selectors;
    struct dv_list shared; /* slices that are not for a single node */
    struct dv_list awake;  /* nodes that have something to give back at rest */
    size_t n_shared_devices;
    uint64_t shared_version;
    uint64_t classes_version;
    uint64_t version;
    uint64_t view_mark; /* how many views were made */
    uint64_t rival_mark;
    struct dv_alloc_lent lent;
    uint64_t order;
    uint64_t n_shares; /* for counted share ids */
    DV_VEC(uint32_t) free_slots;
    uint32_t n_slots;
    struct dv_arena *scratch; /* for evaluations and for making views */
    struct dv_arena *cel;     /* has the devices as CEL sees them */
    uint32_t cel_version;     /* how often it was emptied; counted from 1 */
    struct dv_buf text;       /* for a key that is looked up, or a content that is hashed */
};

/* alloc_hold.c */
void dv_idents_init(struct dv_inventory *inventory);
void dv_idents_fini(struct dv_inventory *inventory); /* with all holds */
struct dv_alloc_pool *dv_pool_ref(struct dv_inventory *inventory, dv_str driver, dv_str name);
void dv_pool_unref(struct dv_inventory *inventory, struct dv_alloc_pool *pool);
struct dv_alloc_ident *dv_ident_ref(struct dv_inventory *inventory, dv_str driver, dv_str pool,
                                    dv_str device);
dv_str dv_ident_name(const struct dv_alloc_ident *ident); /* the device's */
void dv_ident_unref(struct dv_inventory *inventory, struct dv_alloc_ident *ident);
bool dv_ident_is_in_use(const struct dv_alloc_ident *ident);

/* lend.c */
/* Puts a change off while the inventory is lent: returns where its details are to be kept. NULL: it
 * is not lent, and the change is to be made now. */
struct dv_alloc_change *dv_inventory_put_off(struct dv_inventory *inventory, enum change_kind kind);
void dv_inventory_free_lent(struct dv_inventory *inventory);

/* twin.c */
uint64_t dv_alloc_device_content(struct dv_inventory *inventory,
                                 const struct dv_alloc_device *device);
/* Links the places of a view that are twins. */
void dv_alloc_view_find_twins(struct dv_inventory *inventory, struct dv_alloc_node_view *view);

/* alloc_rest.c */
/* Makes `spec` of the slice, and `api` of its devices, if it sleeps. */
void dv_inventory_wake(struct dv_inventory *inventory, struct dv_inventory_slice *slice);
/* The node has something that dv_inventory_rest gives back. */
void dv_inventory_rest_later(struct dv_inventory *inventory, struct dv_alloc_inventory_node *node);
/* May free the node. */
void dv_inventory_rest_node(struct dv_inventory *inventory, struct dv_alloc_inventory_node *node);
/* Gives back the slice's reference to its object, and what was made of it. */
void dv_inventory_unpin(struct dv_inventory_slice *slice);

/* inventory.c */
void dv_inventory_enter_slice(struct dv_inventory *inventory, struct dv_inventory_slice *slice);
struct dv_alloc_inventory_node *dv_inventory_node(struct dv_inventory *inventory,
                                                  dv_str name); /* made when new */
/* Frees a node without slices and view. */
void dv_inventory_drop_if_unused(struct dv_inventory *inventory,
                                 struct dv_alloc_inventory_node *node);
const struct dv_api_device_class *dv_inventory_class(const struct dv_inventory *inventory,
                                                     dv_str name); /* NULL when absent */

/* selector.c */
struct dv_alloc_selector *dv_inventory_selector(struct dv_inventory *inventory, dv_str text);
/* Whether dv_inventory_selector would have to compile it. */
bool dv_inventory_is_new_selector(const struct dv_inventory *inventory, dv_str text);
/* Whether the selector was evaluated on the device before; if so, sets *matches. */
bool dv_selector_recall(const struct dv_alloc_selector *selector,
                        const struct dv_alloc_device *device, bool *matches);
/* Evaluates the selector within the budget, and remembers the result. Fails when it does not
 * compile, or fails on the device. */
DV_CHECKED bool dv_selector_evaluate(struct dv_inventory *inventory,
                                     struct dv_alloc_selector *selector,
                                     struct dv_alloc_device *device, struct dv_cel_budget *budget,
                                     bool *matches, struct dv_err *err);
void dv_inventory_forget_slot(struct dv_inventory *inventory, uint32_t slot);
void dv_inventory_free_selectors(struct dv_inventory *inventory);
void dv_inventory_trim_selectors(struct dv_inventory *inventory);
/* The device as CEL sees it, made when it is not there. Valid until the next call. */
struct dv_cel_device *dv_inventory_cel_device(struct dv_inventory *inventory,
                                              struct dv_alloc_device *device);

/* node_view.c */
/* How many devices would be looked at to make the view, and to sum up counters anew: the cost is
 * charged before it is done. */
void dv_inventory_view_work(const struct dv_inventory *inventory, const struct dv_alloc_node *node,
                            uint64_t *n_made, uint64_t *n_counted);
/* The current view of the node, made anew if needed. NULL: a node selector of a slice cannot be
 * evaluated. */
struct dv_alloc_node_view *dv_inventory_view(struct dv_inventory *inventory,
                                             const struct dv_alloc_node *node, struct dv_err *err);
void dv_alloc_node_view_free(struct dv_alloc_node_view *view);
/* Whether slice-level or device-level selection is for the node. */
DV_CHECKED bool dv_alloc_device_is_for(const struct dv_alloc_device *device,
                                       const struct dv_alloc_node *node, bool *is_for,
                                       struct dv_err *err);

/* What is consumed of shared counters (counters.c). */
/* ---- pools of two nodes ---- */

/* A slice of the node, and one of the same pool that is not. */
struct dv_alloc_rival {
    const struct dv_inventory_slice *own;
    const struct dv_inventory_slice *other;
};

/* Finds a rival for each pool that the node shares with another, up to n_max; returns how many. */
size_t dv_inventory_rivals(struct dv_inventory *inventory, dv_str node,
                           struct dv_alloc_rival *rivals, size_t n_max);
/* "pool gpu.example.com/n2 is also that of slice x of node n1" */
dv_str dv_rival_print(const struct dv_alloc_rival *rival, struct dv_arena *arena);

DV_CHECKED bool dv_pool_make_counters(struct dv_inventory *inventory,
                                      struct dv_alloc_node_view *view,
                                      struct dv_alloc_node_pool *pool);
void dv_pool_refresh_counters(struct dv_inventory *inventory, struct dv_alloc_node_pool *pool);
void dv_place_find_counters(struct dv_alloc_node_view *view, struct dv_alloc_place *place);

#endif

/* dra_slices.h - the ResourceSlices of a pool: as wanted, and what to do about those that are
 * there. Pure. */
#ifndef DV_LIB_DRA_SLICES_H
#define DV_LIB_DRA_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct davit_dra_pool;
struct dv_api_counter_set;
struct dv_api_device;
struct dv_api_node_selector;
struct dv_api_resource_slice_spec;
struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_object;

/* One slice holds devices or counter sets, not both: the API's rule. */
struct dv_lib_slice {
    struct dv_api_device *devices;
    size_t n_devices;
    struct dv_api_counter_set *counters;
    size_t n_counters;
};

/* A pool as it is wanted; a slice's index in the list is its number. */
struct dv_lib_desired {
    dv_str driver;
    dv_str pool;
    int64_t generation; /* 0: counted by us */
    dv_str node_name;   /* empty: not of one node */
    struct dv_api_node_selector *node_selector;
    bool is_for_all_nodes;
    bool is_per_device;
    struct dv_lib_slice *slices;
    size_t n_slices;
};

/* Makes the pool of what the driver says, all copied into `arena`. `node` is the name of this node.
 * DV_INVALID_ARGUMENT: see davit_dra_publish. */
DV_CHECKED bool dv_lib_desired_make(const struct davit_dra_pool *pool, dv_str driver, dv_str node,
                                    struct dv_arena *arena, struct dv_lib_desired *desired,
                                    struct dv_err *err);

/* Spreads devices and counter sets over slices, in order and within the API's limits: as few slices
 * as possible without changing the order. At least one. */
void dv_lib_slices_split(struct dv_api_device *devices, size_t n_devices,
                         struct dv_api_counter_set *counters, size_t n_counters,
                         struct dv_arena *arena, struct dv_lib_slice **slices, size_t *n_slices);

/* ---- names: the number in hex, so that a slice can be found again ---- */

/* The prefix of a slice's name, which the server completes: "0001f-gpu.example.com-node-1-".
 * `owner` may be empty. */
dv_str dv_lib_slice_prefix(size_t number, size_t n_slices, dv_str driver, dv_str owner,
                           struct dv_arena *arena);
/* Reads the number from a slice's name. False: it is not that of one of n_slices, or has another
 * length. */
bool dv_lib_slice_number(dv_str name, size_t n_slices, size_t *number);

/* ---- what to do ---- */

struct dv_lib_slice_update {
    struct dv_object *old;
    size_t number;
};

/* The steps to be done, in this order; objects are borrowed. */
struct dv_lib_slice_plan {
    int64_t generation; /* of all slices that stay or come */
    struct dv_object **deletes;
    size_t n_deletes;
    struct dv_lib_slice_update *updates;
    size_t n_updates;
    size_t *creates; /* numbers */
    size_t n_creates;
};

/* Plans the steps. `existing` are all slices of the pool (by driver, and node if it has one). NULL
 * for `desired`: the pool is not wanted any more. */
void dv_lib_slices_plan(const struct dv_lib_desired *desired, struct dv_object *const *existing,
                        size_t n_existing, struct dv_arena *arena, struct dv_lib_slice_plan *plan);

/* Makes the spec of a slice. Taints for which the driver gave no time keep that of `old` (may be
 * NULL). */
void dv_lib_slice_fill(const struct dv_lib_desired *desired, size_t number, int64_t generation,
                       const struct dv_api_resource_slice_spec *old, struct dv_arena *arena,
                       struct dv_api_resource_slice_spec *spec);

/* The device of that name; NULL: there is none. `guess` is its usual index. */
const struct dv_api_device *dv_lib_slice_device(const struct dv_api_resource_slice_spec *spec,
                                                dv_str name, size_t guess);

/* Whether the server stored something else than was sent; the features that it seems not to have
 * are added to `features`, separated by commas: none when it only filled something in. */
bool dv_lib_slice_differs(const struct dv_api_resource_slice_spec *sent,
                          const struct dv_api_resource_slice_spec *stored, struct dv_buf *features);

#endif

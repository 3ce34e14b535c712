/* test_alloc_model.h - the allocator once more, as slow and as plain as its rules.
 *
 * Nothing is left out by counting, nothing is kept between two questions, pools are gathered anew:
 * what is found here is what the allocator has to find. Only devices, not the rest of a result. */
#ifndef DV_ALLOC_TEST_ALLOC_MODEL_H
#define DV_ALLOC_TEST_ALLOC_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "alloc/tests/test_alloc_world.h"
#include "base/str.h"
#include "base/vec.h"
#include "number/number.h"
#include "resource/resource.h"

struct dv_api_device;
struct dv_api_resource_slice_spec;
struct dv_arena;

/* ---- pools ---- */

struct model_device {
    const struct dv_api_device *api;
    const struct dv_api_resource_slice_spec *spec;
    size_t pool;
    bool is_dedicated; /* in use */
    bool is_share;
    bool is_aggregated;
    struct dv_quantity *aggregated; /* of each of its capacities */
    bool is_multi;
    /* in this attempt */
    bool *taken_by; /* claims */
    size_t n_shares;
    struct dv_quantity *taken; /* of each of its capacities */
};

struct model_counter {
    dv_str set;
    dv_str name;
    struct dv_quantity available;
    struct dv_quantity consumed; /* in this attempt */
};

enum model_state {
    MODEL_USABLE,
    MODEL_INCOMPLETE,
    MODEL_INVALID,
};

struct model_pool {
    dv_str driver;
    dv_str name;
    enum model_state state;
    bool has_binding;
    int64_t generation;
    DV_VEC(const struct dv_object *) slices;
    DV_VEC(const struct dv_object *) others;
    DV_VEC(struct model_counter) counters;
};

struct model_pools {
    DV_VEC(struct model_pool) pools;
    DV_VEC(struct model_device) devices; /* of usable pools, in order */
    bool has_failed;                     /* a node selector cannot be */
};

void model_gather(const struct world *world, struct dv_arena *arena, struct model_pools *pools);
/* Whether a device with a selection of its own is for the node. */
bool model_is_for(const struct world *world, const struct model_device *device, bool *is_for);
struct model_counter *model_counter(struct model_pool *pool, dv_str set, dv_str name);

/* ---- capacity ---- */

/* Whether what is requested fits; then what of each capacity is consumed. */
bool model_capacity(const struct model_device *device,
                    const struct dv_api_capacity_requirements *capacity, struct dv_arena *arena,
                    struct dv_quantity *consumed);

/* ---- selectors and taints ---- */

/* False: the expression fails on the device. */
bool model_evaluate(const struct world *world, dv_str expression, const struct model_device *device,
                    bool *is_match);
bool model_tolerates(const struct dv_api_device_toleration *toleration,
                     const struct dv_api_device_taint *taint);

/* ---- the search ---- */

struct model_pick {
    size_t claim;
    dv_str request;
    const struct model_device *device;
    struct dv_quantity *consumed;
};

struct model_result {
    enum dv_alloc_outcome outcome;
    struct model_pick *picks;
    size_t n_picks;
    uint64_t n_steps;
};

void model_allocate(const struct world *world, uint64_t n_steps_max, struct dv_arena *arena,
                    struct model_result *result);

#endif

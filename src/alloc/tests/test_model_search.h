/* test_model_search.h - the model's search, and what it takes. */
#ifndef DV_ALLOC_TEST_MODEL_SEARCH_H
#define DV_ALLOC_TEST_MODEL_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/tests/test_alloc_model.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

struct dv_arena;
struct world;

#define RESULTS_MAX 32u

/* An alternative, or the request itself when it has none. */
struct choice {
    dv_str name; /* "request" or "request/sub" */
    struct dv_api_exact_device_request terms;
    const struct dv_api_device_class *class;
    uint64_t n_wanted;
    bool takes_all;
    DV_VEC(size_t) all;
    unsigned char *memo; /* a device: 0 unknown, 1 selectable, 2 not */
};

struct request {
    dv_str name;
    bool has_alternatives;
    DV_VEC(struct choice) choices;
};

/* Attribute values as texts that begin with their type. */
struct texts {
    DV_VEC(dv_str) v;
};

struct checker {
    const struct dv_api_device_constraint *api;
    size_t n;
    struct texts common;
    struct texts *seen; /* a request */
};

struct claim {
    const struct dv_api_resource_claim *api;
    DV_VEC(struct request) requests;
    DV_VEC(struct checker) checkers;
    size_t n_results;
};

struct model {
    const struct world *world;
    struct dv_arena *arena;
    struct model_pools pools;
    DV_VEC(struct claim) claims;
    DV_VEC(struct model_pick) picks;
    uint64_t n_steps;
    uint64_t n_steps_max;
    bool has_failed; /* a hard error */
    bool gave_up;
};

/* What taking it did, to be undone. */
struct taking {
    struct model_device *device;
    size_t c;
    size_t r;
    const struct choice *choice;
    bool has_counters;
    struct dv_quantity *consumed;
};

bool model_is_in_use(const struct model *model, size_t c, const struct choice *choice,
                     const struct model_device *device);
bool model_take(struct model *model, struct taking *taking, bool must);
void model_untake(struct model *model, const struct taking *taking);

#endif

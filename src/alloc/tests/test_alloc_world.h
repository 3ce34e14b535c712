/* test_alloc_world.h - a small cluster from a line of JSON, and an inventory of it, for tests.
 *
 * A line has features, node, deviceClasses, resourceSlices, claims and state, as the reference
 * corpus does; what is missing is empty, features that are missing are on but for lists. */
#ifndef DV_ALLOC_TEST_ALLOC_WORLD_H
#define DV_ALLOC_TEST_ALLOC_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

struct dv_api_device_request_allocation_result;
struct dv_arena;
struct dv_object;
struct dv_object_pool;

struct world {
    struct dv_arena *arena;
    struct dv_object_pool *pool;
    struct dv_alloc_features features;
    struct dv_alloc_node node;
    DV_VEC(struct dv_object *) classes;
    DV_VEC(struct dv_object *) slices;
    DV_VEC(struct dv_api_device_request_allocation_result) held;
    DV_VEC(const struct dv_api_resource_claim *) claims;
};

/* False when the line is not such a cluster; the world is then to be closed all the same. */
bool world_open(struct world *world, dv_str line);
void world_close(struct world *world);
/* The same from text for people: ' stands for ", and ` for '. Aborts when it cannot be read. */
void world_write(struct world *world, const char *text);

struct dv_inventory *world_inventory(const struct world *world);
/* One result as an allocation of its own, for holding and releasing. */
void world_hold(struct dv_inventory *inventory,
                const struct dv_api_device_request_allocation_result *result, dv_str holder);
void world_release(struct dv_inventory *inventory,
                   const struct dv_api_device_request_allocation_result *result);

/* ---- worlds at random ---- */

/* Where choices come from: the bytes of a fuzzer, and when they are used up (or when there are none
 * and a seed) a generator. */
struct choices {
    const uint8_t *data;
    size_t size;
    uint64_t seed; /* 0: zeros after the bytes */
};

unsigned choose(struct choices *choices, unsigned n); /* 0 to n - 1 */

/* A line with a few nodes, pools and claims, of all kinds and most ways of being wrong. */
dv_str world_line(struct choices *choices, struct dv_arena *arena);

#endif

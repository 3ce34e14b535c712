/* test_verify.h - whether an allocation may be given, whoever chose it. */
#ifndef DV_ALLOC_TEST_VERIFY_H
#define DV_ALLOC_TEST_VERIFY_H

#include "alloc/alloc.h"
#include "alloc/tests/test_alloc_world.h"
#include "resource/resource.h"

struct dv_arena;

/* Looks at the devices, not at how they were found: each is there, free, wanted, tolerated, as the
 * constraints want it; no counter and no capacity is exceeded. NULL, or what is wrong. */
const char *verify(const struct world *world, const struct dv_api_allocation_result *allocations,
                   struct dv_arena *arena);

/* Compares all of two results but the names of shares. */
bool same_results(const struct world *world, const struct dv_alloc_result *a,
                  const struct dv_alloc_result *b, struct dv_arena *arena);

/* All that must hold of a world: what is found may be given, is what the model finds, does not
 * depend on how the inventory came to be, and is explained. NULL, or what is wrong. */
const char *check_world(const struct world *world, uint64_t n_steps_max);

#endif

/* test_life_runtime.h - the runtime of a world of tests: what its actions do. */
#ifndef DV_WORKLOAD_TESTS_TEST_LIFE_RUNTIME_H
#define DV_WORKLOAD_TESTS_TEST_LIFE_RUNTIME_H

#include <stdint.h>

#include "base/str.h"
#include "test_life_world.h"

/* When worlds begin, in seconds since 1970. */
#define BASE_S INT64_C(1767225600)

/* The action is done, and the life is told. */
void life_runtime_finish(struct life_world *world, const struct life_job *job);
struct dv_life_container *life_runtime_find(struct life_world *world, dv_str id);
/* What the container does at this attempt. */
const struct life_habit *life_runtime_habit(const struct life_world *world, dv_str name,
                                            uint32_t attempt);

#endif

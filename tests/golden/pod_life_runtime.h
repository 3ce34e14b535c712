/* pod_life_runtime.h - a container runtime in virtual time, whose calls take as long and end as
 * they did when they were recorded. */
#ifndef DV_GOLDEN_POD_LIFE_RUNTIME_H
#define DV_GOLDEN_POD_LIFE_RUNTIME_H

#include <stdint.h>

#include "pod_life_world.h"

/* Begins what the life wants; returns how many milliseconds it takes. */
uint64_t runtime_begin(struct world *world, struct dv_life_action *action);
/* It is done, and the life is told. */
void runtime_finish(struct world *world, const struct world_job *job);
/* A container ends: as it was recorded, otherwise with this code and reason. */
void runtime_end(struct world *world, struct world_container *container, int32_t exit_code,
                 const char *reason);
/* The agent's view is taken anew. */
void runtime_list(struct world *world);

#endif

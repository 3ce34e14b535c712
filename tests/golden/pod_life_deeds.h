/* pod_life_deeds.h - what people did to the pod, its containers and the agent while it was
 * recorded, and what the API makes of it. */
#ifndef DV_GOLDEN_POD_LIFE_DEEDS_H
#define DV_GOLDEN_POD_LIFE_DEEDS_H

#include <stdint.h>

#include "pod_life_world.h"

/* When it is done. */
uint64_t deed_ms(const struct record_action *action);
void deed_do(struct world *world, const struct record_action *action);

/* The object is gone from the API. */
void deed_vanish(struct world *world);
/* An agent that remembers nothing takes over. */
void deed_start_agent(struct world *world);

#endif

/* pool_counters.h - counters that devices of a pool share, such as the memory of which partitions
 * have a part each: what those that are held leave for the others. */
#ifndef DV_SERVE_POOL_COUNTERS_H
#define DV_SERVE_POOL_COUNTERS_H

#include "base/map.h"
#include "base/str.h"

struct dv_api_counter_set;
struct dv_arena;
struct dv_pool_device;

struct dv_pool_counters {
    struct dv_arena *arena;
    struct dv_map sets; /* by driver, pool and name */
};

void dv_pool_counters_init(struct dv_pool_counters *counters, struct dv_arena *arena);
void dv_pool_counters_fini(struct dv_pool_counters *counters);
/* Adds a set, of which nothing is taken yet. Keeps it. Of two of one name the first one counts. */
void dv_pool_counters_add(struct dv_pool_counters *counters, dv_str driver, dv_str pool,
                          const struct dv_api_counter_set *set);
/* Takes what the device consumes, which is held. */
void dv_pool_counters_take(struct dv_pool_counters *counters, const struct dv_pool_device *device);
/* Finds what keeps the device, which is not held, from being taken, and sets its `shortage` and
 * `blocked_by`. */
void dv_pool_counters_find(const struct dv_pool_counters *counters, struct dv_pool_device *device);

#endif
